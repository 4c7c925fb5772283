"""h and mu by themselves, for ``Optimizer``: how long a step is, from what was told and how far the weights have gone.

Rules that are told losses have distance-over-gradients steps (Ivgi, Hinder and Carmon 2023) of symmetric differences:

    g = (F(w + mu u) - F(w - mu u)) / (2 mu),   w -= r / sqrt(sum of g^2 dim(x)) g u,   mu = r / sqrt(N)

r: the farthest that the weights have been from their start, at first a tenth of ``FIRST`` a weight; dim(x): weights
active in x; N: weights that have been active. F may be of any scale. Rules that are told which of two is better go to
the better one, and mu grows by a yes and shrinks by a no so that one in five is a yes (Rechenberg's rule).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import UsageError
from sparsezo.questions import Json
from sparsezo.validation import Array

FIRST = 0.1  # how far to look at first, a weight, times the weights' own size where they start elsewhere than at 0
SUCCESS = 0.2  # of a rule that chooses: how many candidates are to be better
NAMES = ("squares", "farthest", "gone", "woken", "mu")


class AutomaticStep:
    """What makes c and mu of a run: five numbers, the start, and which weights have been active."""

    def __init__(self, start: NDArray[np.float64], chooses: bool) -> None:
        self.start, self.chooses = start, chooses
        self.elsewhere = bool(start.any())  # than at 0
        self.awake = np.zeros(start.size, np.bool_)
        self.first = FIRST * (float(np.sqrt(np.mean(start**2))) or 1.0)
        self.squares = 0.0  # sum of g^2 dim(x)
        self.farthest = 0.0  # r, as far as it was gone
        self.gone = 0.0  # the square of the distance now
        self.woken = 0  # N
        self.mu = self.first
        self.mus: dict[int, float] = {}  # of the open proposals

    def wake(self, step: int, active: NDArray[np.int64]) -> float:
        """The mu of a proposal about these weights."""
        if self.woken < self.start.size:
            self.woken += active.size - int(np.count_nonzero(self.awake[active]))
            self.awake[active] = True
        if not self.chooses:
            self.mu = self.distance / math.sqrt(max(self.woken, 1))
        self.mus[step] = self.mu
        return self.mu

    @property
    def distance(self) -> float:
        return max(self.farthest, self.first * math.sqrt(max(self.woken, 1)) * 0.1)

    def coefficient(self, step: int, dim: int, F_plus: float, F_incumbent: float) -> float:
        """c of the step; and mu and the sum of squares as they are after it."""
        mu = self.mus.pop(step)
        if self.chooses:
            better = F_plus < F_incumbent
            self.mu *= math.exp((better - SUCCESS) / math.sqrt(max(dim, 1)))
            return mu if better else 0.0
        g = (F_plus - F_incumbent) / (2 * mu)
        self.squares += g * g * dim
        return -g * self.distance / math.sqrt(self.squares) if self.squares > 0 else 0.0

    def moved(self, active: NDArray[np.int64], before: Array, move: Array) -> None:
        """Keep the distance from the start, by the weights that moved, from where and by how much."""
        off = before - self.start[active] if self.elsewhere else before
        self.gone = max(0.0, self.gone + float(move @ move + 2 * (off @ move)))
        self.farthest = max(self.farthest, math.sqrt(self.gone))

    def as_json(self) -> Json:
        """To bytes with a state: all but the arrays."""
        mus = {str(step): mu for step, mu in self.mus.items()}
        return {"chooses": self.chooses, "mus": mus, **{name: getattr(self, name) for name in NAMES}}

    def restore(self, given: Json, awake: NDArray[np.bool_] | None) -> None:
        """As ``as_json`` and ``awake`` had it."""
        numbers = {name: float(given[name]) for name in NAMES}
        if awake is None or awake.shape != self.awake.shape or awake.dtype != self.awake.dtype:
            raise UsageError("it does not say which weights have been active")
        if not all(0 <= number < math.inf for number in numbers.values()) or numbers["mu"] == 0:
            raise UsageError("automatic steps of no length")
        self.squares, self.farthest, self.gone = numbers["squares"], numbers["farthest"], numbers["gone"]
        self.woken, self.mu, self.awake = int(awake.sum()), numbers["mu"], awake.copy()
        self.mus = {int(step): float(mu) for step, mu in given["mus"].items()}
