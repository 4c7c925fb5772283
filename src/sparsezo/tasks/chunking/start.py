"""The weights that learning starts from: what is known of tags before anybody is asked, and what is labelled already.

    rows, values = start_weights(task)          # W[rows] = values; W is 0 elsewhere
    W = learned_labels(task, list(read_documents("export.jsonl")), "export.jsonl")

Most words belong to no span, an I continues something, and a capital inside of a sentence may begin a name. None of it
is enough to tag anything: with ``start_weights`` alone the best output of every sentence is O throughout.

Of labels, tokens of which nothing is known (Prodigy's) are left open: what is climbed is the probability of what is
known. Spans that were rejected are answers "no".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sparsezo.learner import Learner
from sparsezo.messages import counted, say
from sparsezo.query_learner import QueryLearner
from sparsezo.questions import YES_NO, Question
from sparsezo.settings import Settings
from sparsezo.tasks.base import AnyArray, Json
from sparsezo.tasks.chunking.features.attributes import AttributeIndex, HashedTemplates
from sparsezo.tasks.chunking.features.templates import BIAS, CAPITAL
from sparsezo.tasks.chunking.io.conll import Corpus
from sparsezo.tasks.chunking.io.documents import Document, Span
from sparsezo.tasks.chunking.io.raw import corpus_of
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
    outside = np.array([tag == OUTSIDE for tag in task.tags])
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
        found[capital[1]] = np.tile(_CAPITAL * ~outside, times)
        found[capital[2]] = np.tile(_OTHER * outside, times)
    found.pop(-1, None)  # no token of the data is like that
    return np.array(list(found), np.int64), np.array(list(found.values()), np.float32)


def _after_tags(task: Chunking) -> NDArray[np.float64]:
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
    found = index.transform(probe) if isinstance(index, AttributeIndex) else index.rows(probe).columns.reshape(n, -1)
    return [int(number) for number in found[:, place]]


_PASSES = 10  # over the labelled sentences


def learned_labels(task: Chunking, documents: Sequence[Document], path: str) -> AnyArray:
    """Features x labels, from labelled documents of words that the task's own data may or may not have."""
    labelled = [document for document in documents if document.spans is not None]
    how: Json = {"split": task.split or "spaces", "language": task.language}
    corpus = task.seen(corpus_of(labelled, path, labelled=True, cuts=True, **how))
    problem = task.problem(corpus, asks=True)
    start = QueryLearner(problem, Settings.complete({"rule": "part"}, task.defaults)).weights()
    settings = Settings.complete({"rule": "supervised", "step": "adagrad"}, task.defaults)
    learner = Learner(problem, settings, start)
    learner.run(task.known(corpus), steps=_PASSES * len(corpus))
    W = learner.weights()
    rejected = [
        Question("", 0, x, "part", "chunk", numbers, (), 1.0, tuple(YES_NO), tuple(YES_NO.values()))
        for x, numbers in placed_spans(task, corpus, "rejected")
    ]
    if rejected:
        of_parts = QueryLearner(problem, Settings.complete({"rule": "part", "about": "chunk"}, task.defaults), W)
        for _ in range(_PASSES):
            for question in rejected:
                of_parts.learn_from(question, "no")
        W = of_parts.weights()
    spans = sum(len(document.spans or ()) for document in labelled)
    no = f" and {counted(len(rejected), 'rejected span')}" if rejected else ""
    say(f"{path}: starts from {counted(spans, 'labelled span')}{no} in {counted(len(corpus), 'sentence')}")
    return W


def placed_spans(task: Chunking, corpus: Corpus, which: str) -> list[tuple[int, tuple[int, ...]]]:
    """(sentence, a question's numbers) of the documents' ``suggested`` or ``rejected`` spans, where these begin and end
    with a token of one sentence and are of a type that the task has."""
    source = corpus.source
    if source is None:
        return []
    found: list[tuple[int, tuple[int, ...]]] = []
    number = {tag: k for k, tag in enumerate(task.tags)}
    firsts = np.searchsorted(source.of_sentence, np.arange(len(source.documents) + 1))
    for k, document in enumerate(source.documents):
        spans: Sequence[Span] = getattr(document, which)
        if not spans or firsts[k] == firsts[k + 1]:
            continue
        begin, end = int(corpus.offsets[firsts[k]]), int(corpus.offsets[firsts[k + 1]])
        starts = {place: begin + i for i, place in enumerate(source.starts[begin:end].tolist())}
        ends = {place: begin + i for i, place in enumerate(source.ends[begin:end].tolist())}
        for span in spans:
            first, last, tag = starts.get(span.start), ends.get(span.end), number.get(f"B-{span.label}")
            if first is None or last is None or tag is None or last < first:
                continue
            x = int(np.searchsorted(corpus.offsets, first, side="right")) - 1
            if last < corpus.offsets[x + 1]:
                at = int(corpus.offsets[x])
                found.append((x, (first - at, tag, last - at, 0)))
    return found
