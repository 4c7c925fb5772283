"""Which question an annotator gets next.

    strategy = QueryStrategy(learner, queue, audit_set, audit_kind="label", overlap=0.1)
    entry = strategy.returned(person, now, held)        # one whose lease is over, or None
    row, unsure = strategy.new(person, now, answers)    # one that was not asked before

Next is what came back because its lease was over; then what was drawn to be asked of a second annotator; one in twenty
is of the audit set; then, of people alone, what a program has answered and the model did not expect; every other one is
a span that the inputs came with, while there are any; the rest are the learner's own, chosen where the model is unsure
(docs/answers.md). Never: an input of the audit set, a part that somebody is being asked about now, one whose answer is
known, or what this annotator has seen; and of a program nothing of the audit set. Of reviews: a sentence that somebody
has just now; one that was reviewed comes again where the model has come to disagree. Spans that a sentence came with
are part of what its first review shows.
"""

from __future__ import annotations

import bisect
import itertools
import json
import random
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import SparsezoError, UsageError
from sparsezo.kernels.codes import STANDING
from sparsezo.query_learner import QueryLearner
from sparsezo.questions import Question
from sparsezo.serve.errors import Refused
from sparsezo.serve.lease_queue import Entry, LeaseQueue, content, part
from sparsezo.serve.quality import agrees
from sparsezo.serve.store import ANSWER, AuditRow, EventRow, QuestionRow

AUDIT_SHARE = 0.05  # of the questions, while any of the audit set is left
AUDIT_TWICE = 0.5  # of the inputs of the audit set, of which a second annotator is asked all that one was asked
SURE = 0.98  # a question fetched ahead is replaced when the model has come to know its answer by this probability
_TRIES = 500  # of the learner's questions that may be passed over for one that can be asked
_REVIEWS = 20  # likewise of its reviews, each of which is the best of some sentences; then any that nobody has reviewed
_MOST_LOOKS = 3000  # sentences, before there is nothing to review just now


def alternately(audit: Sequence[AuditRow], parts: int | None) -> list[AuditRow]:
    """The audit set as it is asked: of the first ``parts`` rows (None: all) and of the rest in turn."""
    single, whole = list(audit[:parts]), [] if parts is None else list(audit[parts:])
    both = itertools.chain.from_iterable(itertools.zip_longest(single, whole))
    return [row for row in both if row is not None]


class QueryStrategy:
    """Not safe by itself: the session's lock is held.

    audit: the audit set in the order in which it is asked, with questions of ``audit_kind``. overlap: the share of
    questions that a second annotator is asked, too. suggested: spans that the inputs came with, as (input, a question's
    numbers). sensible: whether a question would not puzzle people. around: where whole outputs are reviewed, the best
    output of an input with such spans in it.
    """

    def __init__(
        self,
        learner: QueryLearner,
        queue: LeaseQueue,
        audit: Sequence[AuditRow],
        audit_kind: str,
        overlap: float,
        suggested: Sequence[tuple[int, list[int]]] = (),
        sensible: Callable[[Question], bool] = lambda _: True,
        around: Callable[[int, Sequence[list[int]]], NDArray[np.int32]] | None = None,
    ) -> None:
        self._learner, self._queue, self._overlap, self._kind = learner, queue, overlap, audit_kind
        self._sensible = sensible
        self._audited = {row.x for row in audit}
        self._around = around
        self._given: dict[int, list[list[int]]] = {}  # reviews: the spans that inputs not asked about yet came with
        self._suggested = [each for each in reversed(suggested) if each[0] not in self._audited]
        if around is not None:
            for x, numbers in suggested:
                if x not in self._audited and x not in queue.asked:
                    self._given.setdefault(x, []).append(numbers)
            self._suggested = []
        self.audits_left = [row for row in audit if row.place not in queue.audits]
        self._doubted: list[tuple[float, int]] = []  # answered by programs: minus how sure the model was, the question

    def take(self, event: EventRow) -> None:
        """One more event, after the queue has it. What a program says and the model did not expect is for a person to
        say, too: first where the model was surest."""
        queue, number = self._queue, event.question
        if event.what != ANSWER or number is None or event.person not in queue.programs or number in queue.repeated:
            return
        row = queue.row(number)
        if row.again is None and not row.twice and (sure := self._sure_of_another(event, row)) is not None:
            bisect.insort(self._doubted, (-sure, number))

    def _sure_of_another(self, event: EventRow, row: QuestionRow) -> float | None:
        """How sure the model was of what it expected; None where the answer is just that, or that is not known."""
        if row.believed is None:
            return None
        if row.kind in ("label", "review"):
            expected = "right" if row.kind == "review" else self._shown(row.question())
            return None if event.said() == expected else row.believed
        right = agrees(event, row)
        sure = 0.0 if right is None else 1 - row.believed if right else row.believed
        return sure if sure > 0.5 else None

    def returned(self, person: int, now: float, held: set[int]) -> Entry | None:
        """A question of somebody whose lease is over, but for those that are ``held``."""
        for entry in self._queue.open.values():
            if entry.until >= now or entry.id in held or entry.row is None:
                continue
            if person in self._queue.programs and (entry.audit or entry.row.again is not None):
                continue
            if entry.lessee != person and entry.row.decides is not None:
                continue  # not for those who differ
            if entry.lessee == person or content(entry.row) not in self._queue.seen[person]:
                return entry
        return None

    def new(self, person: int, at: float, answers: int) -> tuple[QuestionRow, bool]:
        """A question that was not asked before, and whether the model, which has learned from so many ``answers``, is
        unsure of it."""
        queue, seed = self._queue, self._learner.settings.seed
        number = queue.questions + 1
        chance = random.Random(f"{seed} {number}")
        audits, overlaps, swaps = (chance.random() for _ in range(3))
        audit, twice, again, believed = None, False, None, None
        human = person not in queue.programs
        if (second := self._for_second(person, queue.second)) is not None:
            question, again, audit = second.question(), second.id, second.audit
        elif human and audits < AUDIT_SHARE and self.audits_left:
            drawn = self.audits_left.pop(0)
            audit = drawn.place
            question = _made(self._kind, "token", drawn.x, json.loads(drawn.numbers), json.loads(drawn.outputs))
            # an input is to be asked of two people or of one, all of its parts alike
            of_two = random.Random(f"{seed} twice {drawn.x}").random() < AUDIT_TWICE
            twice = of_two and len(queue.seen.keys() - queue.programs) > 1
        elif human and (second := self._for_second(person, self._still_doubted())) is not None:
            question, again = second.question(), second.id
        else:
            question = self._of_suggestion(person, number) or self._of_learner(person)
            twice = overlaps < self._overlap
        if audit is None:
            believed = self._believed(question)
        swapped = question.kind == "pair" and swaps < 0.5
        row = replace(
            QuestionRow.of(question, number, at, person),
            swapped=int(swapped),
            audit=audit,
            twice=int(twice),
            again=again,
            lessons=answers,
            believed=believed,
        )
        return row, audit is None and not self.sure(question, believed)

    def _for_second(self, person: int, waiting: Sequence[int]) -> QuestionRow | None:
        """Of the questions that wait for a second answer the first that this annotator may be asked."""
        seen, busy = self._queue.seen[person], self._queue.busy() if waiting else ()
        for number in waiting:
            entry = self._queue.entries[number]
            if entry.part in busy or (entry.audit and person in self._queue.programs):
                continue
            if content(row := self._queue.row(number)) not in seen:
                return row
        return None

    def _still_doubted(self) -> list[int]:
        """Without those that somebody has been asked since, and answers that were taken back."""
        queue = self._queue
        self._doubted = [
            (sure, number)
            for sure, number in self._doubted
            if number not in queue.repeated and queue.entries[number].closed_by is not None
        ]
        return [number for _, number in self._doubted]

    def _of_suggestion(self, person: int, number: int) -> Question | None:
        """A span that the inputs came with, every other time while there are any: they are not all there is to ask."""
        while (self._suggested or self._given) and number % 2:
            if self._given:
                question = self._with_given(_made("review", "token", next(iter(self._given)), [0] * 4, [], number))
            else:
                x, numbers = self._suggested.pop()
                question = _made("span", "chunk", x, numbers, [], number)
            if self._fresh(question, self._queue.busy(), self._queue.seen[person]):
                return question
        return None

    def _with_given(self, question: Question) -> Question:
        """A review that has the spans in it that its input came with, the first time that it is asked about."""
        if self._around is None or question.x not in self._given:
            return question
        output = self._around(question.x, self._given.pop(question.x))
        return replace(question, outputs=(output, np.full(len(output), STANDING, np.int32))).frozen()

    def _of_learner(self, person: int) -> Question:
        learner, reviews = self._learner, self._learner.settings.rule == "review"
        busy, seen = self._queue.busy(), self._queue.seen[person]
        for _ in range(_REVIEWS if reviews else _TRIES):
            try:
                most = min(len(learner.problem), _MOST_LOOKS)
                question = learner.ask(within=most) if reviews else learner.ask()
            except UsageError:
                raise
            except SparsezoError as error:
                raise Refused(f"{error}", "nothing-to-ask") from None
            if question is None:
                break
            learner.let_go(question)  # it is the store's from here on
            if question.x not in self._audited and self._sensible(question) and self._fresh(question, busy, seen):
                return self._with_given(question)
        for x in self._not_reviewed(busy) if reviews else ():
            if (question := learner.ask(x)) is not None:
                learner.let_go(question)
                if self._fresh(question, busy, seen):
                    return self._with_given(question)
        raise Refused("all that is worth a question is answered, or being asked of somebody", "nothing-to-ask")

    def _not_reviewed(self, busy: set[Hashable]) -> list[int]:
        """Some inputs that nobody has said anything of: in a small session those that are worth most may all be with
        somebody."""
        queue, n = self._queue, len(self._learner.problem)
        begin = queue.questions % n
        free = (x % n for x in range(begin, begin + n))
        left = (x for x in free if not (x in self._audited or x in busy or x in queue.left or queue.reviewed[x] > 0))
        return list(itertools.islice(left, _TRIES))

    def _fresh(self, question: Question, busy: set[Hashable], seen: set[Hashable]) -> bool:
        row, queue = QuestionRow.of(question), self._queue
        if row.kind == "span" and queue.is_settled(row):
            return False
        if row.kind == "review" and row.x in queue.left and queue.left[row.x] == question.outputs[0].tolist():
            return False
        what, about = content(row), part(row)
        return not (about in busy or what in seen or queue.certain[about] > 0 or queue.answered[what] > 0)

    def _believed(self, question: Question) -> float | None:
        """The model's probability of what is shown."""
        answer: str | None = {"part": "yes", "pair": "first", "span": "yes", "review": "right"}.get(question.kind)
        if question.kind == "label":
            answer = self._shown(question)
        elif question.kind == "best":  # the place of the one that the model takes for the best
            answer = str(question.numbers[1] + 1)
        return None if answer is None else float(self._learner.probability(question, answer))

    def _shown(self, question: Question) -> str | None:
        """Of a question that asks for a label: the one that the model would give."""
        answers = self._learner.problem.questions["label", question.about]
        return next((name for name, code in answers.items() if code == question.numbers[1]), None)

    def sure(self, question: Question, believed: float | None = None) -> bool:
        """Whether the model knows what the answer will be."""
        p = self._believed(question) if believed is None else believed
        if p is None:
            return False
        other = 0.0
        if question.kind == "part":
            other = 1 - p
        elif question.kind == "pair":
            other = self._learner.probability(question, "second")
        elif question.kind == "span":  # the last choice says that nothing is there
            other = self._learner.probability(question, list(self._learner.problem.questions["span", "chunk"])[-1])
        return max(p, other) > SURE


def _made(kind: str, about: str, x: int, numbers: list[int], outputs: list[list[int]], step: int = 0) -> Question:
    """A question that the learner has not chosen."""
    given = {"kind": kind, "about": about, "x": x, "numbers": numbers, "outputs": outputs}
    return Question.from_json({**given, "owner": "", "step": step, "chance": 1.0, "choices": [], "codes": []})
