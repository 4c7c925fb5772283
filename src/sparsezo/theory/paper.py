"""What the paper proves (Sec. 3 and its appendix), as formulas to compute with: docs/theory.md has the remarks.

A function takes the dimension that drives the cost: n for perturbation all, n_bar for active (the paper's theorem),
r_bar for score (the same theorem, proof in docs/theory.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import UsageError
from sparsezo.theory.checks import formula, not_negative, numbers, positive, whole

# Lemma 2: the norm of a perturbation


@formula
def moment_bound(p: float, n_bar: float) -> float:
    """Lemma 2: E||u||^p <= (p + n_bar)^(p/2) for p >= 2; below 2, n_bar^(p/2) (Nesterov & Spokoiny, Lemma 1)."""
    not_negative(p=p)
    positive(n_bar=n_bar)
    return float((p + n_bar) ** (p / 2) if p >= 2 else n_bar ** (p / 2))


@formula
def moment(p: float, n_bar: float) -> float:
    """E||u||^p itself, of a chi distribution with n_bar degrees: 2^(p/2) Gamma((n_bar + p)/2) / Gamma(n_bar/2)."""
    not_negative(p=p)
    positive(n_bar=n_bar)
    return math.exp(p / 2 * math.log(2) + math.lgamma((n_bar + p) / 2) - math.lgamma(n_bar / 2))


# Theorem 1: the average squared gradient norm of f_mu along a run


@formula
def gradient_norm_bound(
    h: float | Sequence[float] | NDArray[Any], gap: float, n_bar: float, L0: float, L1: float, N: int | None = None
) -> float:
    """Theorem 1's right-hand side. ``gap`` is f_mu(w_0) - f*; h is h_0 ... h_N, or one constant and N beside it."""
    not_negative(gap=gap)
    positive(n_bar=n_bar, L0=L0, L1=L1)
    S_N, sum_of_squares = _rates(h, N)
    return (gap + 0.5 * L1 * (n_bar + 4) ** 2 * L0**2 * sum_of_squares) / S_N  # eq. (bound)


def _rates(h: float | Sequence[float] | NDArray[Any], N: int | None) -> tuple[float, float]:
    """S_N, the sum of all h_k, and the sum of their squares."""
    rates = numbers("h", h)
    if not (rates.size and np.isfinite(rates).all() and (rates > 0).all()):
        raise UsageError("h: every learning rate must be positive and finite, and there must be at least one")
    if rates.ndim == 0:
        if N is None:
            raise UsageError("h is one constant: give N, the number of the last step, too")
        whole(N=N)
        return float(rates) * (N + 1), float(rates) ** 2 * (N + 1)
    if rates.ndim > 1 or (N is not None and rates.size != N + 1):
        raise UsageError(f"h: give N + 1 rates h_0 ... h_N in one row, not an array of shape {rates.shape}")
    with np.errstate(over="ignore"):
        return float(rates.sum()), float(rates @ rates)


# Corollary 1: constant h, mu = mu_tilde


@formula
def mu_tilde(alpha: float, n_bar: float, L0: float) -> float:
    """The largest mu with |f_mu - f| <= alpha everywhere."""
    positive(alpha=alpha, n_bar=n_bar, L0=L0)
    return alpha / (math.sqrt(n_bar) * L0)


@formula
def L1(n_bar: float, mu: float, L0: float) -> float:
    """A Lipschitz constant of f_mu's gradient (Nesterov & Spokoiny, eq. (22))."""
    positive(n_bar=n_bar, mu=mu, L0=L0)
    return math.sqrt(n_bar) * L0 / mu


@formula
def bound_at_h(h: float, alpha: float, R: float, n_bar: float, L0: float, N: int) -> float:
    """The appendix's bound for a constant h: Theorem 1 with L1 at mu_tilde and gap L0 R, without its factor 1/2."""
    positive(h=h, alpha=alpha, R=R, n_bar=n_bar, L0=L0)
    whole(N=N)
    return L0 * R / ((N + 1) * h) + h / alpha * n_bar * (n_bar + 4) ** 2 * L0**4


@formula
def h_star(alpha: float, R: float, n_bar: float, L0: float, N: int) -> float:
    """The constant h that makes ``bound_at_h`` smallest."""
    positive(alpha=alpha, R=R, n_bar=n_bar, L0=L0)
    whole(N=N)
    return math.sqrt(alpha * R / (n_bar * (n_bar + 4) ** 2 * L0**3 * (N + 1)))


@formula
def bound_at_h_star(alpha: float, R: float, n_bar: float, L0: float, N: int) -> float:
    """``bound_at_h`` at h_star: what N + 1 steps guarantee."""
    positive(alpha=alpha, R=R, n_bar=n_bar, L0=L0)
    whole(N=N)
    return 2 * math.sqrt(n_bar * (n_bar + 4) ** 2 * L0**5 * R / (alpha * (N + 1)))


def iterations(epsilon: float, alpha: float, R: float, n_bar: float, L0: float) -> int:
    """Corollary 1's N(epsilon): the smallest N with bound_at_h_star <= epsilon, to the unit however large."""
    positive(epsilon=epsilon, alpha=alpha, R=R, n_bar=n_bar, L0=L0)
    e, a, r, m, l = (Fraction(float(value)) for value in (epsilon, alpha, R, n_bar, L0))
    return math.ceil(4 * m * (m + 4) ** 2 * l**5 * r / (a * e**2)) - 1
