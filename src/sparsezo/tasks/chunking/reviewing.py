"""Whole sentences that people review: tags as spans and back, and what the model suggests around what is fixed.

    reviewing = Reviewing(task, problem)
    found = reviewing.suggested(W, x)                           # the best tags, how likely each span is
    reviewing.spans(found.output, found.chances)                # [{"first": 2, "last": 3, "label": "PER", "p": 0.83}]
    reviewing.suggested(W, x, fixed=reviewing.fixed([{"first": 5, "last": 6, "label": None}], n))
    reviewing.output([{"first": 2, "last": 2, "label": "LOC"}], n)

Tags that are no chunks are spans of one token each, of which every token has one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import DivergedError, UsageError, quoted, shown
from sparsezo.learner import workspace_of
from sparsezo.tasks.base import AnyArray, Json, Problem
from sparsezo.tasks.chunking.kernels.events import ANYTHING
from sparsezo.tasks.chunking.kernels.suggestion import suggest
from sparsezo.tasks.chunking.options import PLAIN

if TYPE_CHECKING:
    from sparsezo.tasks.chunking.task import Chunking

UNSURE = 0.05  # a token whose best tag is wrong with at least this probability may be underlined
_MOST_NAMES = 8  # of labels in a message


class Suggestion(NamedTuple):
    """What the model makes of a sentence: tags as they are shown, the probability of each span where it begins (of
    plain tags: of each tag), and that of each token's best tag."""

    output: NDArray[np.int32]
    chances: NDArray[np.float32]
    sure: NDArray[np.float32]

    @property
    def unsure(self) -> list[int]:
        """Tokens to be underlined: half as unsure as the most unsure one, at least. Where a model knows little it is
        unsure of all, and a line under everything would say nothing."""
        doubt = 1 - self.sure
        return np.flatnonzero(doubt >= max(UNSURE, doubt.max(initial=0) / 2)).tolist()


class Reviewing:
    """Of a task's sentences (``problem``); has scratch of its own and is not for several threads at once."""

    def __init__(self, task: Chunking, problem: Problem) -> None:
        self.plain = task.scheme == PLAIN
        begins = [tag for tag in task.tags if self.plain or tag[0] == "B"]
        self.labels = tuple(tag if self.plain else tag[2:] or "chunk" for tag in begins)
        self._number = {label: task.tags.index(tag) for label, tag in zip(self.labels, begins, strict=True)}
        self._label = {number: label for label, number in self._number.items()}
        self._outside = len(task.tags) - 1  # of chunks: I stands behind its B, and O at the end
        self._start, (self._inputs, self._task) = problem.output_start, problem.private()
        self._work = workspace_of(problem)

    def length(self, x: int) -> int:
        return int(self._start[x + 1] - self._start[x])

    def label(self, tag: int) -> str:
        """What the spans are called that begin with this tag."""
        return self._label[tag]

    def spans(self, output: AnyArray, chances: AnyArray | None = None) -> list[Json]:
        """Of tags as they are shown: an I goes on what stands before it. ``chances``: as a suggestion has them."""
        found: list[Json] = []
        for i, tag in enumerate(output.tolist()):
            if tag in self._label:
                found.append({"first": i, "last": i, "label": self._label[tag]})
                if chances is not None:
                    found[-1]["p"] = round(float(chances[i]), 4)
            elif tag != self._outside:
                found[-1]["last"] = i
        return found

    def output(self, spans: object, n: int) -> NDArray[np.int32]:
        """The tags of a sentence of n tokens with these spans and no others; UsageError where there is none."""
        made = np.full(n, -1, np.int32)
        for first, last, label in self._checked(spans, n):
            if label is None:
                raise UsageError("a span needs a label")
            self._set(made, first, last, label)
        if self.plain and (made < 0).any():
            raise UsageError(f"word {int((made < 0).argmax())} has no tag; every word needs one")
        made[made < 0] = self._outside
        return made

    def fixed(self, given: object, n: int) -> NDArray[np.int16]:
        """What is fixed of each token: by a span with a label exactly that span, by one without that none is there."""
        made = np.full(n, ANYTHING, np.int16)
        ends = []
        for first, last, label in self._checked(given, n):
            if label is not None:
                self._set(made, first, last, label)
                ends.append((last + 1, self._number[label]))
            elif self.plain:
                raise UsageError("a tag can be changed, not removed; name another label")
            else:
                made[first : last + 1] = self._outside
        for place, tag in () if self.plain else ends:
            if place < n and made[place] == ANYTHING:
                made[place] = -2 - (tag + 1)  # events.other_than: the span does not go on
        return made

    def _set(self, tags: AnyArray, first: int, last: int, label: str) -> None:
        tags[first : last + 1] = self._number[label] + (0 if self.plain else 1)
        tags[first] = self._number[label]

    def _checked(self, spans: object, n: int) -> list[tuple[int, int, str | None]]:
        if not isinstance(spans, Sequence) or isinstance(spans, str):
            raise UsageError("spans are a list")
        found: list[tuple[int, int, str | None]] = []
        taken = np.zeros(n, bool)
        for span in spans:
            if not isinstance(span, Mapping) or set(span) != {"first", "last", "label"}:
                raise UsageError(f"{shown(span)}: a span has first, last and label")
            first, last, label = span["first"], span["last"], span["label"]
            if type(first) is not int or type(last) is not int or not 0 <= first <= last < n:
                raise UsageError(f"a span from {shown(first)} to {shown(last)}: the {n} words are 0 to {n - 1}")
            if label is not None and (not isinstance(label, str) or label not in self._number):
                some = ", ".join(map(quoted, self.labels[:_MOST_NAMES]))
                more = ", ..." if len(self.labels) > _MOST_NAMES else ""
                raise UsageError(f"label {shown(label, repr)}: there are {some}{more}")
            if taken[first : last + 1].any():
                raise UsageError(f"the span from {first} to {last} overlaps another; a word is in one at most")
            taken[first : last + 1] = True
            found.append((first, last, label))
        return found

    def suggested(
        self, W: AnyArray, x: int, *, output: AnyArray | None = None, fixed: NDArray[np.int16] | None = None
    ) -> Suggestion:
        """The best tags of sentence x with what is ``fixed``; or of the tags ``output``, as they are shown, how likely
        they are."""
        n = self.length(x)
        fixed = np.full(n, ANYTHING, np.int16) if fixed is None else fixed
        y = np.zeros(n, np.int32) if output is None else np.array(output, np.int32)
        chances, sure = np.zeros(n, np.float32), np.zeros(n, np.float32)
        args = (self._inputs, self._task, W, self._work.S, x, fixed, output is None, y, chances, sure)
        if not suggest(*args):
            raise DivergedError("the model's weights give scores that are not finite; start again with a smaller h")
        return Suggestion(y, chances, sure)
