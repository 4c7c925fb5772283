"""From the answers so far: how often each person errs, how far people agree, and what that says of the audit.

found = estimated(answers, n_labels, audits)        # slow, a tenth of a second: not under the session's lock
found.rates[person].e0, found.alpha, found.error
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sparsezo.serve.audit import Share, accuracy
from sparsezo.serve.forecast import forecast
from sparsezo.serve.log import EventRow, QuestionRow
from sparsezo.serve.people import ErrorRates, alpha, error_rates

LEAST_PEOPLE = 3  # two who differ do not say who errs
LEAST_TWICE = 30  # questions that more than one person answered, before any rate is believed
_LEAST_RATE, _MOST_RATE = 0.005, 0.45  # that is believed of anybody
_MOVED = 0.01  # a rate that has changed by less is not worth an event


@dataclass(frozen=True)
class Estimated:
    """rates: by person; agreement: the share of questions asked of others, too, on which all others agree."""

    rates: dict[int, ErrorRates] = field(default_factory=dict)
    agreement: dict[int, float] = field(default_factory=dict)
    alpha: float | None = None
    twice: int = 0  # questions that more than one person answered

    def error(self, by: Counter[int]) -> Share | None:
        """How often raters err who gave so many answers each; None where too little is known."""
        total = sum(by.values())
        if not self.known or not total or any(person not in self.rates for person in by):
            return None
        theirs = [(n / total, self.rates[person].error) for person, n in by.items()]
        value = sum(share * each.value for share, each in theirs)
        below = math.hypot(
            *(share * (each.value - each.low) for share, each in theirs)
        )  # doubts of people are their own
        above = math.hypot(*(share * (each.high - each.value) for share, each in theirs))
        return Share(value, max(0.0, value - below), min(1.0, value + above))

    def error_of(self, person: int, believed: float) -> float:
        """How often somebody errs; what is believed of everybody where it is not known."""
        return self.rates[person].error.value if self.known and person in self.rates else believed

    @property
    def known(self) -> bool:
        """Whether there is enough to say who errs how often."""
        return len(self.rates) >= LEAST_PEOPLE and self.twice >= LEAST_TWICE

    def beliefs(self, believed: dict[int, tuple[float, float]]) -> dict[int, tuple[float, float]]:
        """What learning should believe from now on, of those about whom it changes."""
        if not self.known:
            return {}
        found = {}
        for person, each in self.rates.items():
            e0, e1 = (round(min(max(rate.value, _LEAST_RATE), _MOST_RATE), 4) for rate in (each.e0, each.e1))
            before = believed.get(person)
            if before is None or max(abs(e0 - before[0]), abs(e1 - before[1])) >= _MOVED:
                found[person] = e0, e1
        return found


def estimated(answers: Sequence[tuple[EventRow, QuestionRow]]) -> Estimated:
    """answers: those that count, audits left out."""
    said: dict[int, dict[int, bool]] = defaultdict(dict)  # question -> person -> whether what is shown is right
    believed: dict[int, float] = {}
    for event, row in answers:
        yes = _agrees(event, row)
        if yes is None or row.believed is None:
            continue
        number = row.id if row.again is None else row.again
        said[number][event.person] = yes
        believed.setdefault(number, row.believed)
    people = sorted({person for each in said.values() for person in each})
    place = {person: k for k, person in enumerate(people)}
    numbers = list(said)
    rows = [(place[person], k, yes) for k, number in enumerate(numbers) for person, yes in said[number].items()]
    columns = [np.array(column) for column in zip(*rows, strict=True)] if rows else [np.zeros(0, np.int64)] * 3
    chance = np.array([believed[number] for number in numbers], np.float64)
    twice = [list(each.values()) for each in said.values() if len(each) > 1]
    enough = len(people) >= LEAST_PEOPLE and len(twice) >= LEAST_TWICE
    found = error_rates(columns[0], columns[1], columns[2].astype(np.bool_), chance, len(people)) if enough else []
    return Estimated(dict(zip(people, found, strict=False)), _agreement(said), alpha(twice), len(twice))


def _agrees(event: EventRow, row: QuestionRow) -> bool | None:
    """Whether the answer says that what is shown is right; None where it says nothing of the kind."""
    answer = json.loads(event.answer or "null")
    if row.kind == "pair":
        return {"first": True, "second": False}.get(answer)
    if row.kind in ("part", "span"):
        return bool(answer == "yes")  # a label or another span was named instead: what is shown is not right
    return None


def _agreement(said: dict[int, dict[int, bool]]) -> dict[int, float]:
    same: Counter[int] = Counter()
    asked: Counter[int] = Counter()
    for each in said.values():
        if len(each) < 2:
            continue
        for person, yes in each.items():
            asked[person] += 1
            same[person] += all(other == yes for who, other in each.items() if who != person)
    return {person: same[person] / n for person, n in asked.items()}


def audited(rows: Sequence[dict[str, Any]], labels: int, found: Estimated, believed: float) -> dict[str, Any]:
    """Of the audit set: n asked, right under the present model, and the model's accuracy with its interval.

    Corrected by what is known of the raters' errors; before that, by what is believed of all of them, from
    none to three times as many.
    """
    n, right = len(rows), sum(row["answer"] == row["model"] for row in rows)
    error = found.error(Counter(row["person"] for row in rows))
    if error is None and believed > 0:
        error = Share(believed, 0.0, min(3 * believed, _MOST_RATE))
    once = accuracy(right, n, error=error, labels=labels)
    always = accuracy(right, n, error=error, labels=labels, always=True)
    return {
        "asked": n,
        "right": right,
        "accuracy": once.value if n else None,
        "low": once.low,
        "high": once.high,
        "always_low": always.low,
        "always_high": always.high,
        "error": None if error is None else error.as_dict(),
    }


def forecast_of(curve: Sequence[Sequence[float]], ahead: int) -> dict[str, Any] | None:
    """Of the value after so many more answers."""
    found = forecast([point[0] for point in curve], [point[1] for point in curve], ahead)
    if found is None:
        return None
    return {
        "answers": found.answers,
        "value": found.value + found.gain,
        "gain": found.gain,
        "low": found.value + found.low,
        "high": found.value + found.high,
        "within_noise": found.noise,
    }
