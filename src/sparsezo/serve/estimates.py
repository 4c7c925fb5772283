"""From the answers so far: how often each person errs and how far people agree; and what audits say of the model.

    found = estimated(answers)        # slow, a tenth of a second: not under the session's lock
    found.rates[person].e0, found.alpha
    audited(rows, labels=3)["agreed"]

The errors found are those of yes and no to questions that the model is unsure of. How often people misname what was
drawn at random is another matter, so audits know nothing of them.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sparsezo.serve.audit import ENOUGH_TWICE, accuracy
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


def audited(rows: Sequence[dict[str, Any]], labels: int) -> dict[str, Any]:
    """Of the audit set, of which each row is an answer (``place``, ``answer``) beside what the ``model`` says now.

    What was counted: ``asked`` parts; ``agreed``: in how many the model says what the person said who answered first;
    ``majority``: the label that people gave most often, and in how many. ``twice``: the parts that a second person
    answered, in how many the two said the ``same``, in how many just one agreed with the model (``split``), and how
    many are ``enough``. Then the model's accuracy with its interval, ``corrected`` for people's errors or not: see
    ``audit.accuracy``.
    """
    said: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        said[row["place"]].append(row)
    first = [each[0] for each in said.values()]
    pairs = [each[:2] for each in said.values() if len(each) > 1]
    n, agreed = len(first), sum(row["answer"] == row["model"] for row in first)
    same = sum(one["answer"] == other["answer"] for one, other in pairs)
    split = sum((one["answer"] == one["model"]) != (other["answer"] == other["model"]) for one, other in pairs)
    once, always = (
        accuracy(agreed, n, twice=len(pairs), split=split, labels=labels, always=always) for always in (False, True)
    )
    usual = Counter(row["answer"] for row in first if row.get("kind") == "label").most_common(1)
    return {
        "asked": n,
        "agreed": agreed,
        "majority": {"label": usual[0][0], "agreed": usual[0][1]} if usual else None,
        "twice": {"asked": len(pairs), "same": same, "split": split, "enough": ENOUGH_TWICE},
        "corrected": len(pairs) >= ENOUGH_TWICE,
        "accuracy": once.value if n else None,
        "low": once.low,
        "high": once.high,
        "always_low": always.low,
        "always_high": always.high,
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
