"""How many seconds a review takes whom: a + b tokens + c parts to look at + d corrections, of each person's own log.

    seconds = Seconds()
    seconds.take(event, spent)              # an answer: the seconds in its event, and what they were spent on
    seconds.of(person)                      # (a, b, c, d), for the learner to choose by
    seconds.about(person)                   # for whoever runs the session: the fit, predicted and measured seconds, n

A ridge regression towards ``TABLE``, what is known of nobody: who has answered little is taken to be as quick as that.
Seconds vary in proportion to what they are, and some are not spent on the answer at all: residuals are relative, those
that are far off count less (Huber's weights), the time in which the page was hidden is taken off, and what is longer
than ``MOST`` is left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize

from sparsezo.questions import Answer, Question, effort_of
from sparsezo.serve.store import EventRow
from sparsezo.settings import SECONDS
from sparsezo.tasks.base import Json

TABLE = SECONDS["ours"]  # each review, a token that is filled in, one that is marked, a correction by hand
MOST = 600.0  # seconds; who took longer has done something else
_POINTS = 200  # shown of each person, the newest
_KEPT = 2000  # answers that are fitted
_STEPS = 12  # of reweighting
_NEAR = 0.75  # of what is predicted: residuals beyond it count less
_PRIOR = 0.1  # residuals of answers vary by some 0.4 of what is predicted, people by more than the table itself
_LEAST = 0.05  # of the table: nothing takes no time at all
_APART = 5  # answers between two fits
Fit = tuple[float, float, float, float]


class Spent(NamedTuple):
    """What the time of one review goes to: tokens of a sentence that is checked throughout, or else tokens that are
    marked, and corrections by hand."""

    tokens: int
    marked: int
    corrections: int


def spent_on(question: Question, answer: Answer) -> Spent:
    """Of a review, with the labels that it offers, and its answer."""
    looked, corrections = effort_of(question, answer, 0.0)
    n = len(question.outputs[0])
    return Spent(n, 0, corrections) if looked == n else Spent(0, looked, corrections)


def measured(event: EventRow) -> float:
    """The seconds that an answer took, without those in which the page was hidden; 0 where that is not known."""
    took = (event.seconds or 0.0) - (event.away or 0.0)
    return took if 0 < took <= MOST else 0.0


def fit_seconds(spent: ArrayLike, seconds: ArrayLike, table: Sequence[float] = TABLE) -> Fit:
    """(a, b, c, d), all above 0. ``spent``: a row (tokens, marked, corrections) for each of the seconds."""
    times = np.asarray(seconds, np.float64)
    X = np.column_stack([np.ones(len(times)), np.asarray(spent, np.float64).reshape(-1, 3)]) * np.asarray(table)
    found = np.ones(4)  # in units of the table
    for _ in range(_STEPS):
        predicted = np.maximum(X @ found, 0.1)
        off = np.abs(times - predicted) / predicted
        root = np.sqrt(np.where(off > _NEAR, _NEAR / np.maximum(off, _NEAR), 1.0)) / predicted
        rows = np.vstack([X * root[:, None], np.sqrt(_PRIOR) * np.eye(4)])
        found, _ = optimize.nnls(rows, np.append(times * root, np.full(4, np.sqrt(_PRIOR))))
    a, b, c, d = (float(each) for each in np.maximum(found, _LEAST) * np.asarray(table))
    return a, b, c, d


class Seconds:
    """Of all people of a session. Not safe by itself: the session's lock is held."""

    def __init__(self) -> None:
        self._spent: dict[int, list[Spent]] = defaultdict(list)
        self._measured: dict[int, list[float]] = defaultdict(list)
        self._counted: dict[int, int] = defaultdict(int)
        self._fitted: dict[int, tuple[int, Fit]] = {}  # at so many answers

    def take(self, event: EventRow, spent: Spent) -> None:
        """One more answer. One that is taken back later has taken its time all the same."""
        took = measured(event)
        if not took:
            return
        self._spent[event.person] = [*self._spent[event.person][1 - _KEPT :], spent]
        self._measured[event.person] = [*self._measured[event.person][1 - _KEPT :], took]
        self._counted[event.person] += 1

    def of(self, person: int, *, now: bool = False) -> Fit:
        """By the answers of some moments ago; ``now``: by all of them."""
        n = self._counted[person]
        at, found = self._fitted.get(person, (0, TABLE))
        if n > at and (now or at == 0 or n >= at + max(_APART, at // 10)):
            found = fit_seconds(self._spent[person], self._measured[person])
            self._fitted[person] = n, found
        return found

    def about(self, person: int) -> Json:
        """``points``: [predicted, measured] of the newest answers."""
        a, b, c, d = fit = self.of(person, now=True)
        newest = list(zip(self._spent[person], self._measured[person], strict=True))[-_POINTS:]
        points = [[a + b * each.tokens + c * each.marked + d * each.corrections, took] for each, took in newest]
        return {
            "fit": [round(each, 3) for each in fit],
            "points": [[round(one, 2), round(other, 2)] for one, other in points],
            "n": self._counted[person],
        }
