"""h and mu by themselves, for ``Optimizer``: how long a step is, from what was told and how far the weights have gone.

Rules that are told losses have distance-over-gradients steps (Ivgi, Hinder and Carmon 2023) of symmetric differences:

    g = (F(w + mu u) - F(w - mu u)) / (2 mu),   w -= r / sqrt(sum of g^2 dim(x)) g u,   mu = r / sqrt(N)

r: the farthest that the weights have been from their start, at first a tenth of ``FIRST`` a weight; dim(x): weights
active in x, for score the rank of C; N: weights that have moved. Where F is made of steps (errors, F1) and most
perturbations change nothing, mu is that times a factor of at least 1, steered to where nine in ten of them do. F may
be of any scale.

Rules that are told which of two is better go to the better one, and mu grows by a yes and shrinks by a no so that one
in five is a yes (Rechenberg's rule).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import UsageError
from sparsezo.questions import Json
from sparsezo.validation import Array

FIRST = 0.1  # how far to look at first, a weight, times the weights' own size where they start elsewhere than at 0
_HEARD, _FASTER = 0.9, 0.1  # perturbations that are to change F, and how fast mu goes there
SUCCESS = 0.2  # of a rule that chooses: how many candidates are to be better
NAMES = ("squares", "farthest", "gone", "woken", "mu", "factor")


class AutomaticStep:
    """What makes c and mu of a run, from where its weights ``w`` are and where they started."""

    def __init__(self, w: Array, start: Array, chooses: bool) -> None:
        self.w, self.start, self.chooses = w, start, chooses
        self.elsewhere = bool(start.any())  # than at 0
        self.first = FIRST * (float(np.sqrt(np.mean(start**2))) or 1.0)
        self.squares = 0.0  # sum of g^2 dim(x)
        self.farthest = 0.0  # r, as far as it was gone
        self.gone = 0.0  # the square of the distance now
        self.woken = 0  # N
        self.mu = self.first
        self.factor = 1.0  # of mu, where F is made of steps
        self.open: dict[int, tuple[float, int, int]] = {}  # open proposals: mu, dim(x), weights that had not moved
        self._moves = 0  # of the weights, here; and how many there were when a proposal was made
        self._moves_at: dict[int, int] = {}

    def length(self, step: int, active: NDArray[np.int64], w: Array, dim: int) -> float:
        """The mu of a proposal about the active weights, which are w; its u has so many dimensions."""
        asleep = self._asleep(active, w)
        if not self.chooses:
            awake = max(self.woken + asleep, 1)
            self.mu = self._distance(awake) * min(self.factor / math.sqrt(awake), 1.0)
        self.open[step] = self.mu, dim, asleep
        self._moves_at[step] = self._moves
        return self.mu

    def _asleep(self, active: NDArray[np.int64], w: Array) -> int:
        """How many of the active weights stand where they started."""
        return active.size - int(np.count_nonzero(w - self.start[active] if self.elsewhere else w))

    def _distance(self, awake: int) -> float:
        return max(self.farthest, self.first * math.sqrt(awake) * 0.1)

    def coefficient(self, step: int, active: NDArray[np.int64], F_plus: float, F_incumbent: float) -> float:
        """c of the step; and mu, N and the sum of squares as they are after it."""
        mu, dim, asleep = self.open.pop(step)
        alone = self._moves_at.pop(step, None) == self._moves  # else others may have moved its weights since
        if self.chooses:
            better = F_plus < F_incumbent
            self.mu *= math.exp((better - SUCCESS) / math.sqrt(max(dim, 1)))
            return mu if better else 0.0
        g = (F_plus - F_incumbent) / (2 * mu)
        self.factor = min(max(self.factor * math.exp(_FASTER * (_HEARD - (g != 0))), 1.0), math.sqrt(self.start.size))
        if g == 0:
            return 0.0
        if asleep:
            self.woken += asleep if alone else self._asleep(active, self.w[active])
        self.squares += g * g * dim
        return -g * self._distance(max(self.woken, 1)) / math.sqrt(self.squares)

    def moved(self, active: NDArray[np.int64], before: Array, move: Array) -> None:
        """Keep the distance from the start, by the weights that moved, from where and by how much."""
        self._moves += 1
        off = before - self.start[active] if self.elsewhere else before
        self.gone = max(0.0, self.gone + float(move @ move + 2 * (off @ move)))
        self.farthest = max(self.farthest, math.sqrt(self.gone))

    def put_elsewhere(self) -> None:
        """All weights have been set anew."""
        self._moves += 1
        off = self.w - self.start
        self.gone, self.woken = float(off @ off), int(np.count_nonzero(off))
        self.farthest = max(self.farthest, math.sqrt(self.gone))

    def as_json(self) -> Json:
        """To bytes with a state: all but the start."""
        asked = {str(step): list(each) for step, each in self.open.items()}
        return {"chooses": self.chooses, "open": asked, **{name: getattr(self, name) for name in NAMES}}

    def restore(self, given: Json) -> None:
        """As ``as_json`` had it."""
        numbers = {name: float(given[name]) for name in NAMES}
        if not all(0 <= number < math.inf for number in numbers.values()) or numbers["mu"] == 0:
            raise UsageError("automatic steps of no length")
        self.squares, self.farthest, self.gone = numbers["squares"], numbers["farthest"], numbers["gone"]
        self.woken, self.mu, self.factor = int(numbers["woken"]), numbers["mu"], numbers["factor"]
        self.open = {int(step): (float(mu), int(dim), int(asleep)) for step, (mu, dim, asleep) in given["open"].items()}
