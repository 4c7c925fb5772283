"""F Lipschitz with L0: how long a step is, by rule and perturbation, and the iterations that follow (docs/theory.md).

m coordinates of u are drawn (or, for score, kept), and the loss sees r of them. Two-point's step is bounded by
L0^2 r (m + 2), which a kink attains; symmetric's by L0^2 (m + 2 r^(1/2)), for its difference is odd in u.
Both are means over inputs: m, r and L0 are one number each, or one for each input.

>>> step_moment(m=3300, r=213), round(symmetric_moment(m=3300, r=213))
(703326.0, 3329)
>>> step_moment(m=[1, 9], r=[1, 9])  # not 5 * 7 = 35, what the means say
51.0
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import UsageError
from sparsezo.theory.checks import formula, numbers, positive

Each = float | Sequence[float] | NDArray[Any]  # one number for all inputs, or one for each


@formula
def step_moment(m: Each, r: Each, L0: Each = 1.0) -> float:
    """E[L0(x)^2 r(x) (m(x) + 2)], two-point's bound of E||s_mu||^2: E[||P u||^2 ||u||^2] = r (m + 2) for an input.

    At r = m it is E||u||^4, for which Theorem 1 writes (m + 4)^2.
    """
    m, r, L0 = _sizes(m, r, L0)
    return _mean(L0**2 * r * (m + 2))


@formula
def symmetric_moment(m: Each, r: Each, L0: Each = 1.0) -> float:
    """E[L0(x)^2 (m(x) + 2 r(x)^(1/2))], the bound of E||s_mu||^2 for rule symmetric (Poincare and Stein)."""
    m, r, L0 = _sizes(m, r, L0)
    return _mean(L0**2 * (m + 2 * np.sqrt(r)))


def _sizes(m: Each, r: Each, L0: Each) -> list[NDArray[np.float64]]:
    """Of each input; an input that has no feature at all has m = r = 0."""
    given = {"m": m, "r": r, "L0": L0}
    sizes = {name: numbers(name, value) for name, value in given.items()}
    for name, size in sizes.items():
        if size.ndim == 0:
            positive(**{name: given[name]})
        elif size.ndim > 1 or not size.size:
            raise UsageError(f"{name}: give one number, or one for each input, not an array of shape {size.shape}")
        elif not (np.isfinite(size).all() and (size >= 0).all()):
            raise UsageError(f"{name}: the numbers must be finite and not negative")
    if len({size.size for size in sizes.values() if size.ndim}) > 1:
        raise UsageError("m, r, L0: give equally many of each, or one number")
    if (sizes["r"] > sizes["m"]).any():
        m, r = (float(size.max()) for size in (sizes["m"], sizes["r"]))
        raise UsageError(f"r {r:g}: the loss cannot see more than the m = {m:g} coordinates of u")
    return list(sizes.values())


def _mean(values: NDArray[np.float64]) -> float:
    with np.errstate(over="ignore"):
        return float(np.mean(values))


@formula
def annealed_L0(gamma: float, D: float) -> float:
    """Of the annealed criterion with losses in [0, 1]: gamma D / 4, D the largest distance of two outputs' features."""
    positive(gamma=gamma, D=D)
    return gamma * D / 4


@formula
def sharp_L1(mu: float, L0: float) -> float:
    """A Lipschitz constant of f_mu's gradient whatever the dimension: (2/pi)^(1/2) L0 / mu."""
    positive(mu=mu, L0=L0)
    return math.sqrt(2 / math.pi) * L0 / mu


def sharp_iterations(epsilon: float, alpha: float, R: float, L0: float, r: float, moment: float) -> int:
    """The smallest N whose bound (2 L0 R L1 M / (N + 1))^(1/2) is <= epsilon: Theorem 1 at its best h, with its 1/2.

    M = L0^2 ``moment`` bounds E||s_mu||^2, by ``step_moment`` or ``symmetric_moment`` at L0 = 1; L1 is ``sharp_L1`` at
    mu = alpha / (r^(1/2) L0), for the loss sees r coordinates under every perturbation.
    """
    positive(epsilon=epsilon, alpha=alpha, R=R, L0=L0, r=r, moment=moment)
    e, a, d, l, m = (Fraction(float(value)) for value in (epsilon, alpha, R, L0, moment))
    root = Fraction(math.sqrt(2 / math.pi * float(r)))
    return math.ceil(2 * root * d * l**5 * m / (a * e**2)) - 1
