"""Which question a person gets next.

First what came back because its time was over; then what was drawn to be asked of a second person; one in twenty is of
the audit set; every other one is a span that the inputs came with, while there are any; the rest are the learner's own,
chosen where the model is unsure (docs/answers.md). Never: an input of the audit set, a part that somebody is being
asked about now, one whose answer is known, or what this person has seen.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from sparsezo.errors import SparsezoError, UsageError
from sparsezo.kernels import loop
from sparsezo.learner import Learner
from sparsezo.questions import Question
from sparsezo.serve.desk import Desk, Entry, content, part
from sparsezo.serve.errors import Refused
from sparsezo.serve.log import AuditRow, QuestionRow

AUDIT_SHARE = 0.05  # of the questions, while any of the audit set is left
AUDIT_TWICE = 0.5  # of the inputs of the audit set, of which a second person is asked all that one was asked
SURE = 0.98  # a question fetched ahead is replaced when the model has come to know its answer by this probability
_TRIES = 500  # of the learner's questions that may be passed over for one that can be asked


def alternately(audit: Sequence[AuditRow], parts: int | None) -> list[AuditRow]:
    """The audit set in the order in which it is asked: one of the single parts (``parts`` of them, at its start; None:
    all), one of the whole inputs, and so on, so that both kinds of figures come early."""
    single, whole = list(audit[:parts]), [] if parts is None else list(audit[parts:])
    both = itertools.chain.from_iterable(itertools.zip_longest(single, whole))
    return [row for row in both if row is not None]


class Chooser:
    """Not safe by itself: the session's lock is held."""

    def __init__(
        self,
        learner: Learner,
        desk: Desk,
        audit: list[AuditRow],
        audit_kind: str,
        overlap: float,
        suggested: Sequence[tuple[int, list[int]]] = (),
        sensible: Callable[[Question], bool] = lambda _: True,
    ) -> None:
        self._sensible = sensible  # whether a question would not puzzle people
        self._suggested = [each for each in reversed(suggested) if each[0] not in {row.x for row in audit}]
        self._learner, self._desk, self._overlap, self._kind = learner, desk, overlap, audit_kind
        self._audit = {row.place: row for row in audit}
        self._audited = {row.x for row in audit}
        self._left = [row.place for row in audit if row.place not in desk.audits]

    def returned(self, person: int, now: float, held: set[int]) -> Entry | None:
        """A question of somebody whose time is over."""
        for entry in self._desk.open.values():
            if entry.until >= now or entry.id in held or entry.row is None:
                continue
            if entry.lessee == person or content(entry.row) not in self._desk.seen[person]:
                return entry
        return None

    def new(self, person: int, at: float, lessons: int) -> tuple[QuestionRow, bool]:
        """A question that was not asked before, and whether the model is unsure of it."""
        number = self._desk.questions + 1
        chance = random.Random(f"{self._learner.settings.seed} {number}")
        audits, twice, swapped = (chance.random() for _ in range(3))
        own: dict[str, Any] = {"id": number, "at": at, "person": person, "lessons": lessons, "audit": None}
        own |= {"swapped": 0, "twice": 0, "again": None, "believed": None}
        second = self._for_second(person)
        if second is not None:
            question, own["again"], own["audit"] = second.question(), second.id, second.audit
        elif audits < AUDIT_SHARE and self._left:
            own["audit"] = self._left.pop(0)
            question = self._of_audit(self._audit[own["audit"]])
            own["twice"] = int(len(self._desk.seen) > 1 and self._is_twice(question.x))
        else:
            question = self._of_suggestion(person, number) or self._of_learner(person)
            own["twice"] = int(twice < self._overlap)
        own["swapped"] = int(question.kind == "pair" and swapped < 0.5)
        if own["audit"] is None:
            own["believed"] = self._believed(question)
        row = QuestionRow.of(question, **own)
        return row, row.audit is None and not self._knows(question, own["believed"])

    def _is_twice(self, x: int) -> bool:
        """Whether an input of the audit set was drawn to be asked of two people: the same for all of its parts."""
        return random.Random(f"{self._learner.settings.seed} twice {x}").random() < AUDIT_TWICE

    def _for_second(self, person: int) -> QuestionRow | None:
        seen, busy = self._desk.seen[person], None
        for number in self._desk.second:
            row = self._desk.row(number)
            busy = self._desk.busy() if busy is None else busy
            if content(row) not in seen and self._desk.entries[number].part not in busy:
                return row
        return None

    def _of_audit(self, row: AuditRow) -> Question:
        return self._made(self._kind, "token", row.x, json.loads(row.numbers), json.loads(row.outputs))

    def _made(self, kind: str, about: str, x: int, numbers: list[int], outputs: list[Any], step: int = 0) -> Question:
        """One that the learner has not chosen."""
        given = {"kind": kind, "about": about, "x": x, "numbers": numbers, "outputs": outputs}
        rest = {"owner": "", "step": step, "chance": 1.0, "choices": [], "codes": []}
        return Question.from_json({**given, **rest})

    def _of_suggestion(self, person: int, number: int) -> Question | None:
        """A span that the inputs came with, every other time while there are any: they are not all there is to ask."""
        while self._suggested and number % 2:
            x, numbers = self._suggested.pop()
            question = self._made("span", "chunk", x, numbers, [], number)
            if self._fresh(QuestionRow.of(question, **_NOTHING), self._desk.busy(), self._desk.seen[person]):
                return question
        return None

    def _of_learner(self, person: int) -> Question:
        busy, seen = self._desk.busy(), self._desk.seen[person]
        for _ in range(_TRIES):
            try:
                question: Question = self._learner.ask()
            except UsageError:
                raise
            except SparsezoError as error:
                raise Refused(f"{error}", "nothing-to-ask") from None
            self._learner.let_go(question)  # it is the log's from here on
            if question.x in self._audited or not self._sensible(question):
                continue
            if self._fresh(QuestionRow.of(question, **_NOTHING), busy, seen):
                return question
        raise Refused("all that is worth a question is answered, or being asked of somebody", "nothing-to-ask")

    def _fresh(self, row: QuestionRow, busy: set[Hashable], seen: set[Hashable]) -> bool:
        what, about = content(row), part(row)
        desk = self._desk
        if row.kind == "span" and desk.is_settled(row):
            return False
        return not (about in busy or what in seen or desk.certain[about] > 0 or desk.answered[what] > 0)

    def _believed(self, question: Question) -> float | None:
        """The model's probability of what is shown."""
        answer: str | None = {"part": "yes", "pair": "first", "span": "yes"}.get(question.kind)
        if question.kind == "label":
            answers = self._learner.problem.questions["label", question.about]
            answer = next((name for name, code in answers.items() if code == question.numbers[1]), None)
        return None if answer is None else float(self._learner.probability(question, answer))

    def sure(self, row: QuestionRow) -> bool:
        """Whether the model knows what the answer will be."""
        question = row.question()
        return self._knows(question, self._believed(question))

    def _knows(self, question: Question, p: float | None) -> bool:
        """p: its probability of what is shown."""
        if p is None:
            return False
        if question.kind == "pair":
            return max(p, self._learner.probability(question, "second")) > SURE
        if question.kind == "span":
            return max(p, self._learner.probability(question, self._nothing)) > SURE
        return p > SURE or (question.kind == "part" and 1 - p > SURE)

    @property
    def _nothing(self) -> str:
        """The answer to span that nothing is there: the last choice."""
        return list(self._learner.problem.questions["span", "chunk"])[-1]

    def go_on_from(self, step: int) -> None:
        """After a start: the learner's own order goes on where it was."""
        counts = self._learner.state.counts
        counts[loop.ASKED] = counts[loop.STEP] = max(int(counts[loop.ASKED]), step)


_NOTHING: dict[str, Any] = {
    "id": 0,
    "at": 0.0,
    "person": 0,
    "swapped": 0,
    "audit": None,
    "twice": 0,
    "again": None,
    "lessons": 0,
    "believed": None,
}
