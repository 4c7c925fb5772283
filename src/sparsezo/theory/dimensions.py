"""n_bar and r_bar of a data set, and the moments that are not made of their means."""

from __future__ import annotations

import math
from dataclasses import dataclass

from numpy.typing import ArrayLike

from sparsezo.errors import UsageError
from sparsezo.theory.checks import numbers, positive
from sparsezo.theory.lipschitz import step_moment


@dataclass(frozen=True)
class Dimension:
    """Of n_bar(x) or r_bar(x) over inputs x."""

    mean: float  # what the paper calls n_bar
    valid: float  # sqrt(E[(n(x) + 4)^2]) - 4 >= mean: with it for n_bar every step of Theorem 1's proof holds


def n_bar_of(n_active: ArrayLike) -> Dimension:
    """From the number of active weights (or of scores, for r_bar) of each input."""
    counts = numbers("n_active", n_active)
    if counts.ndim != 1 or not counts.size:
        raise UsageError(f"n_active: give one number for each input, not an array of shape {counts.shape}")
    if not ((counts >= 0).all() and 0 < counts.max() < 2**53):
        raise UsageError("n_active: the numbers must be from 0 to 2^53, and not all 0")
    mean = float(counts.mean())
    second = float((counts + 4) @ (counts + 4)) / counts.size  # E[(n(x) + 4)^2]
    return Dimension(mean, max(mean, math.sqrt(second) - 4))


def step_moments(n: float, n_active: ArrayLike, n_score: ArrayLike) -> dict[str, float]:
    """E[r(x) (m(x) + 2)] of all, active and score: sizes of one input go together, so the means would say less."""
    positive(n=n)
    active, score = (numbers("n_active", n_active), numbers("n_score", n_score))
    return {"all": step_moment(n, score), "active": step_moment(active, score), "score": step_moment(score, score)}
