"""The weights that learning from answers starts with: what is known of tags before anything is known of words.

Most words belong to no span, an I continues something, and a capital inside of a sentence may begin a name. None of it
is enough to tag anything: with these weights alone the best output of every sentence is O throughout.

    rows, values = start_weights(task)          # W[rows] = values; W is 0 elsewhere
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sparsezo.tasks.chunking.attributes import AttributeIndex
from sparsezo.tasks.chunking.conll import Corpus
from sparsezo.tasks.chunking.feature_sets import BIAS, CAPITAL
from sparsezo.tasks.chunking.hashed import HashedTemplates
from sparsezo.tasks.chunking.tags import OUTSIDE

if TYPE_CHECKING:
    from sparsezo.tasks.chunking.task import Chunking

Rows = tuple[NDArray[np.int64], NDArray[np.float32]]  # numbers of rows of W, and what stands in them

USUAL, CONTINUES, CONTINUES_NOTHING = 2.0, 1.5, -4.0  # of O, of an I after its own type, of an I after anything else
_CAPITAL, _OTHER = 0.5, 2.0  # capital inside of a sentence: for B and I; no capital: for O
_WORDS = ("a", "A", "a")  # by which the rows of CAPITAL are found: the second and the third are not a sentence's first


def start_weights(task: Chunking) -> Rows | None:
    """None where the tags are no chunks, or the features have no row that every token has (order 2)."""
    if task.metric != "f1" or task.listed:
        return None
    after = _after_tags(task)
    inside, outside = (
        np.array([float(tag != OUTSIDE) for tag in task.tags]),
        np.array([tag == OUTSIDE for tag in task.tags]),
    )
    found: dict[int, NDArray[np.float64]] = {}
    if task.order == 1:
        found |= {len(task.index) + a: row for a, row in enumerate(after)}
    else:
        bias = _rows_of(task, BIAS)
        if bias is None:
            return None
        found[bias[0]] = after.reshape(-1)
    capital = _rows_of(task, CAPITAL)
    if capital is not None:
        times = 1 if task.order == 1 else len(task.tags)  # order 2: whatever the tag before it
        found[capital[1]] = np.tile(_CAPITAL * inside, times)
        found[capital[2]] = np.tile(_OTHER * outside, times)
    found.pop(-1, None)  # no token of the data is like that
    return np.array(list(found), np.int64), np.array(list(found.values()), np.float32)


def _after_tags(task: Chunking) -> NDArray[np.float64]:
    """tags x tags: of each tag after each."""
    made = np.zeros((len(task.tags), len(task.tags)))
    for a, before in enumerate(task.tags):
        for b, tag in enumerate(task.tags):
            if tag == OUTSIDE:
                made[a, b] = USUAL
            elif tag[0] == "I":
                made[a, b] = CONTINUES if before != OUTSIDE and before[1:] == tag[1:] else CONTINUES_NOTHING
    return made


def _rows_of(task: Chunking, line: str) -> list[int] | None:
    """The attribute that a template gives each of ``_WORDS``, -1 where training has none; None without the template."""
    index = task.index
    if not isinstance(index, AttributeIndex | HashedTemplates):
        return None
    place = next((t for t, template in enumerate(index.templates) if str(template) == line), None)
    if place is None:
        return None
    n = len(_WORDS)
    probe = Corpus("", (list(_WORDS), *([""] * n for _ in range(index.n_columns - 1))), None, np.array([0, n]))
    if isinstance(index, AttributeIndex):
        return [int(number) for number in index.transform(probe)[:, place]]
    return [int(number) for number in index.rows(probe).columns.reshape(n, -1)[:, place]]
