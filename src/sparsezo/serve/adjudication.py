"""Where two people's reviews of a sentence differ, and who decides.

    adjudication = Adjudication(queue, presentation, store.rows(QuestionRow))
    adjudication.take(event)                        # after the queue has it: a new case, one that is none any more
    adjudication.new(person, number, at, answers)   # the question that decides a case, for somebody, or None
    adjudication.counts()                           # {"waiting": 3, "decided": 12}

A case is a sentence that two people were asked to review (``overlap``) and have left with different labels. Who gave
neither answer is asked to decide: a review of its own (``QuestionRow.decides``) that shows both, in random order and
without names. What programs say makes no case: people look at that anyway. All of it is a function of the store's rows.
``decides`` of such a question has the events of the two ``answers``, the ``second`` one's labels, and that it
``replaces`` the two among what is gone over again (``online_model.Lessons``), which it did not in earlier logs.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sparsezo.kernels.codes import NOT_SAID, STANDING
from sparsezo.serve import store as log
from sparsezo.serve.lease_queue import OPEN, Entry, LeaseQueue
from sparsezo.serve.presentation import Presentation
from sparsezo.serve.store import ANSWER, EventRow, QuestionRow

DECIDED_ERROR = 0.005  # of a tag that was decided: somebody has looked at just this, with two opinions before them
_CLOSING = (ANSWER, log.SKIP, log.CANNOT_TELL, log.RETRACTION)


class Adjudication:
    """Not safe by itself: the session's lock is held. A case's number is that of the question that was asked first."""

    def __init__(
        self, queue: LeaseQueue, presentation: Presentation, rows: Iterable[QuestionRow] = (), seed: int = 0
    ) -> None:
        self._queue, self._presentation, self._seed = queue, presentation, seed
        self.waiting: dict[int, tuple[EventRow, EventRow]] = {}  # cases that nobody is asked about: the two answers
        self._second: dict[int, int] = {}  # case -> the question that was asked of the second person
        self._decisions: dict[int, int] = {}  # case -> the question that decides it, the newest
        self._authors: dict[int, set[int]] = defaultdict(set)  # who answered either
        self._declined: dict[int, set[int]] = defaultdict(set)  # who would not decide
        for row in rows:
            self.asked(row)

    def asked(self, row: QuestionRow) -> None:
        """A question that was put to somebody."""
        if row.again is not None and row.decides is not None:
            self._decisions[row.again] = row.id
            self.waiting.pop(row.again, None)

    def take(self, event: EventRow) -> None:
        """One more event, after the queue has it."""
        if event.question is None or event.what not in _CLOSING:
            return
        row = self._queue.row(event.question)
        if row.kind != "review" or not (row.twice or row.again):
            return
        case = row.again or row.id
        if row.decides is not None:
            if event.what == log.SKIP:
                self._declined[case].add(event.person)
        elif event.what == ANSWER:
            self._authors[case].add(event.person)
            if row.again is not None:
                self._second[case] = row.id
        self._look_at(case)

    def _look_at(self, case: int) -> None:
        self.waiting.pop(case, None)
        queue, second = self._queue, self._second.get(case)
        decision = queue.entries.get(self._decisions.get(case, 0))
        if second is None or (decision is not None and (decision.closed_by is None or not _skipped(decision))):
            return
        answers = (queue.entries[case].closed_by, queue.entries[second].closed_by)
        if any(each is None or each.what != ANSWER or each.person in queue.programs for each in answers):
            return
        first, other = (each for each in answers if each is not None)
        if self._differing(first, other).any():
            self.waiting[case] = first, other

    def _left(self, event: EventRow) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """(labels as an answer leaves them, whether it says anything of each)"""
        output, how = self._presentation.left(self._queue.row(event.question or 0), event)
        return self._presentation.normal(output), how != NOT_SAID

    def _differing(self, first: EventRow, second: EventRow) -> NDArray[np.bool_]:
        (one, said), (other, also) = self._left(first), self._left(second)
        return np.asarray((one != other) & said & also)

    # Asking

    def returned(self, person: int, now: float, held: set[int], *, anybody: bool = False) -> Entry | None:
        """A case that somebody has left for too long."""
        for case, number in self._decisions.items():
            entry = self._queue.entries[number]
            if entry.state == OPEN and entry.until < now and number not in held and self._may(person, case, anybody):
                return entry
        return None

    def new(self, person: int, number: int, at: float, answers: int, *, anybody: bool = False) -> QuestionRow | None:
        """The question, of that number, that decides a case; None where there is none for this person. ``answers``:
        that the model has learned from.

        ``anybody``: they have come to decide. They may then have given one of the answers, and those that they have
        passed over come last.
        """
        there = [case for case in self.waiting if self._may(person, case, anybody)]
        fresh = [case for case in there if person not in self._declined[case]]
        if not (fresh or (anybody and there)):
            return None
        case = (fresh or there)[0]
        two = list(self.waiting[case])
        random.Random(f"{self._seed} decides {number}").shuffle(two)  # nobody knows whose is shown first
        (first, said), (second, also) = (self._left(each) for each in two)
        how = np.where(said | also, STANDING, NOT_SAID)
        asked = self._queue.row(case)
        return replace(
            asked,
            id=number,
            at=at,
            person=person,
            outputs=json.dumps([first.tolist(), how.tolist()]),
            chance=1.0,
            twice=0,
            again=case,
            lessons=answers,
            believed=None,
            decides=json.dumps({"answers": [each.seq for each in two], "second": second.tolist(), "replaces": True}),
        )

    def _may(self, person: int, case: int, anybody: bool) -> bool:
        return person not in self._queue.programs and (anybody or person not in self._authors[case])

    def counts(self) -> dict[str, int]:
        """Cases that are not decided yet, being asked or not, and those that are."""
        entries = [self._queue.entries[number] for number in self._decisions.values()]
        decided = sum(each.closed_by is not None and each.closed_by.what == ANSWER for each in entries)
        return {"waiting": len(self.waiting) + sum(each.state == OPEN for each in entries), "decided": decided}


def _skipped(entry: Entry) -> bool:
    return entry.closed_by is not None and entry.closed_by.what == log.SKIP
