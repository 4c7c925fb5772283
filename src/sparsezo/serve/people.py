"""How far people agree, and how often each of them errs, from questions that more than one was asked.

    alpha([["yes", "yes"], ["no", "yes", "no"]])        # Krippendorff's, of nominal values
    rates = error_rates(person, question, yes, chance)  # e0, e1 of each, with intervals; ``chance``: the model's P(A)

Nobody knows the right answers. Dawid and Skene's way out is to take them as hidden: each person errs at rates of their
own, and the answers to one question are independent given the right one. The model is one more rater: what it thought
the chance of a yes was, before the answer came, is where the right answer starts from, once that is calibrated.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsezo.serve.audit import Share

Numbers = NDArray[np.float64]

_WORST = 0.5  # nobody is taken to say the contrary on purpose: a rate is half of sigma(its parameter)
_USUAL, _SPREAD = -1.4, 1.2  # of that parameter, before anything is known: a rate of 0.1, from 0.01 to 0.36
_TIED = 0.7  # of the difference of a person's two parameters: who errs one way errs the other
_LOOSE = 1.0  # spread of the calibration's two parameters about "as the model says"
_EDGE = 1e-4  # of a chance that the model gives
_STEPS = 40  # of Newton's method, at most
_SETTLED = 1e-4


def alpha(units: Iterable[Sequence[Hashable]]) -> float | None:
    """1: all agree; 0: as by chance. None where nothing was asked twice, or only one value was ever said."""
    pairs: Counter[tuple[Hashable, Hashable]] = Counter()
    for values in units:
        if len(values) < 2:
            continue
        counts = Counter(values)
        for a, n_a in counts.items():
            for b, n_b in counts.items():
                pairs[a, b] += (n_a * (n_b - (a == b))) / (len(values) - 1)  # type: ignore[assignment]
    total = sum(pairs.values())
    margin: Counter[Hashable] = Counter()
    for (a, _), n in pairs.items():
        margin[a] += n
    expected = sum(margin[a] * margin[b] for a in margin for b in margin if a != b)
    if total == 0 or expected == 0:
        return None
    observed = sum(n for (a, b), n in pairs.items() if a != b)
    return float(1 - (total - 1) * observed / expected)


@dataclass(frozen=True)
class ErrorRates:
    """Of one person. e0: yes, though wrong; e1: no, though right; error: of both, as often as they came up."""

    answers: int
    e0: Share
    e1: Share
    error: Share


def error_rates(
    person: NDArray[np.int64],
    question: NDArray[np.int64],
    yes: NDArray[np.bool_],
    chance: Numbers,
    n_people: int,
) -> list[ErrorRates]:
    """person, question, yes: one entry an answer. chance: one a question, of a yes, as the model had it before.

    The most likely rates under a weak belief that people err in one of ten, with intervals from the curvature there.
    """
    hidden = _Hidden(person, question, yes, np.clip(chance, _EDGE, 1 - _EDGE), n_people)
    at, covariance = hidden.solved()
    rates = _rate(at[: 2 * n_people])
    ends = [_rate(at[: 2 * n_people] + sign * 1.96 * np.sqrt(np.diag(covariance)[: 2 * n_people])) for sign in (-1, 1)]
    right = hidden.right(at)[question]
    answers = np.bincount(person, minlength=n_people)
    yes_share = np.bincount(person, right, minlength=n_people) / np.maximum(answers, 1)
    found = []
    for j in range(n_people):
        e0, e1 = (Share(*(float(each[k]) for each in (rates, *ends))) for k in (j, n_people + j))
        weights = np.array([1 - yes_share[j], yes_share[j]])
        slopes = weights * [rate * (1 - rate / _WORST) for rate in (e0.value, e1.value)]
        both = np.ix_([j, n_people + j], [j, n_people + j])
        wide = 1.96 * math.sqrt(max(0.0, float(slopes @ covariance[both] @ slopes)))
        error = float(weights @ [e0.value, e1.value])
        found.append(ErrorRates(int(answers[j]), e0, e1, Share(error, max(0.0, error - wide), min(1.0, error + wide))))
    return found


def _rate(parameter: Numbers) -> Numbers:
    rate: Numbers = _WORST / (1 + np.exp(-parameter))
    return rate


class _Hidden:
    """The answers' likelihood, with the right answers summed out. Parameters: e0 of all, e1 of all, shift, slope."""

    def __init__(
        self,
        person: NDArray[np.int64],
        question: NDArray[np.int64],
        yes: NDArray[np.bool_],
        chance: Numbers,
        n_people: int,
    ) -> None:
        self.person, self.question, self.yes, self.n_people = person, question, yes, n_people
        self.logit = np.log(chance / (1 - chance))
        self.usual = np.array([_USUAL] * (2 * n_people) + [0.0, 1.0])
        # what was believed before, as a precision: each parameter's own, and that a person's two are alike
        self.before = np.diag([1 / _SPREAD**2] * (2 * n_people) + [1 / _LOOSE**2] * 2)
        for a, b in ((k, n_people + k) for k in range(n_people)):
            self.before[[a, b], [a, b]] += 1 / _TIED**2
            self.before[[a, b], [b, a]] -= 1 / _TIED**2

    def right(self, at: Numbers) -> Numbers:
        """Pr(the right answer is yes), of each question, given what was said."""
        e0, e1 = np.split(_rate(at[:-2]), 2)
        for_yes = np.where(self.yes, 1 - e1[self.person], e1[self.person])
        for_no = np.where(self.yes, e0[self.person], 1 - e0[self.person])
        said = np.bincount(self.question, np.log(for_yes / for_no), minlength=len(self.logit))
        return _sigma(at[-2] + at[-1] * self.logit + said)

    def slopes(self, at: Numbers) -> Numbers:
        """Questions x parameters: the derivatives of the logarithm of each question's likelihood."""
        n = self.n_people
        rates, right = _rate(at[:-2]), self.right(at)
        inner = rates * (1 - rates / _WORST)  # d rate / d parameter
        e0, e1 = rates[:n][self.person], rates[n:][self.person]
        of_yes = right[self.question]
        for_e0 = (1 - of_yes) * np.where(self.yes, 1 / e0, -1 / (1 - e0)) * inner[:n][self.person]
        for_e1 = of_yes * np.where(self.yes, -1 / (1 - e1), 1 / e1) * inner[n:][self.person]
        found = np.zeros((len(self.logit), len(at)))
        np.add.at(found, (self.question, self.person), for_e0)
        np.add.at(found, (self.question, n + self.person), for_e1)
        found[:, -2] = right - _sigma(at[-2] + at[-1] * self.logit)
        found[:, -1] = found[:, -2] * self.logit
        return found

    def step(self, at: Numbers) -> tuple[Numbers, Numbers]:
        """(gradient, curvature) of the logarithm of the likelihood and of what was believed before.

        The curvature is that of the slopes' squares, which is what it is in the mean (Berndt, Hall, Hall and Hausman).
        """
        slopes = self.slopes(at)
        gradient: Numbers = slopes.sum(axis=0) - self.before @ (at - self.usual)
        curvature: Numbers = slopes.T @ slopes + self.before
        return gradient, curvature

    def solved(self) -> tuple[Numbers, Numbers]:
        """The most likely parameters, and their covariance."""
        at = self.usual.copy()
        gradient, curvature = self.step(at)
        damping = 1.0
        for _ in range(_STEPS):
            move = np.linalg.solve(curvature + damping * np.eye(len(at)), gradient)
            move *= min(1.0, 1.0 / max(np.abs(move).max(), 1e-12))
            there = self.step(at + move)
            if move @ (gradient + there[0]) >= 0:  # it went up, by the trapezium rule
                at, (gradient, curvature), damping = at + move, there, damping / 5
            else:
                damping *= 10
            if np.abs(move).max() < _SETTLED:
                break
        covariance: Numbers = np.linalg.inv(curvature).astype(np.float64)
        return at, covariance


def _sigma(values: Numbers) -> Numbers:
    result: Numbers = 1 / (1 + np.exp(-np.clip(values, -30, 30)))
    return result
