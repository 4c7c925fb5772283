"""Grades on one scale: some people never give a 5, some give little else.

    grades = Grades()
    grades.add(person, loss)
    grades.standard(person, loss)       # as everybody together would have it

A person's losses are moved and stretched to the mean and the spread of all. Of somebody who has said little, little is
believed: as if some answers like everybody's had come first.
"""

from __future__ import annotations

import math
from collections import defaultdict

_BEFORE = 10.0  # answers like everybody's that each person begins with
_LEAST = 20  # answers in all before anything is changed
_LEAST_SPREAD = 0.05


class Grades:
    """Counts, sums and sums of squares of losses, by person."""

    def __init__(self) -> None:
        self._of: dict[int, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])

    def add(self, person: int, loss: float, by: int = 1) -> None:
        """``by`` -1: an answer that was taken back."""
        mine = self._of[person]
        for k, value in enumerate((1.0, loss, loss * loss)):
            mine[k] += by * value

    def standard(self, person: int, loss: float) -> float:
        total = [sum(each[k] for each in self._of.values()) for k in range(3)]
        people = sum(each[0] > 0 for each in self._of.values())
        if total[0] < _LEAST or people < 2:
            return loss
        mean, spread = _moments(total)
        usual = [_BEFORE, _BEFORE * mean, _BEFORE * (spread * spread + mean * mean)]
        mine = self._of.get(person, [0.0, 0.0, 0.0])
        my_mean, my_spread = _moments([a + b for a, b in zip(mine, usual, strict=True)])
        return min(1.0, max(0.0, mean + (loss - my_mean) * spread / my_spread))


def _moments(sums: list[float]) -> tuple[float, float]:
    """(mean, standard deviation)"""
    mean = sums[1] / sums[0]
    return mean, max(_LEAST_SPREAD, math.sqrt(max(0.0, sums[2] / sums[0] - mean * mean)))
