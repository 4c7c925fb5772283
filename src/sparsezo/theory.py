"""What the paper proves (Sec. 3 and its appendix), as formulas to compute with: docs/theory.md has their remarks.

A function takes the dimension that drives the cost: n for perturbation all, n_bar for active (the paper's theorem),
r_bar for score (the same theorem, proof in docs/theory.md). Symbols are the paper's; f_mu is f smoothed by mu u.

>>> iterations(epsilon=0.1, alpha=0.5, R=1.0, n_bar=10.0, L0=1.0)
1567999
>>> case = Complexity(n=10_000, n_bar=100, r_bar=10, L0=1.0, R=1.0, alpha=0.5, epsilon=0.1)
>>> [(row.perturb, row.N) for row in case.rows()]
[('all', 800640127999999), ('active', 865279999), ('score', 1567999)]
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral, Real
from typing import Any, ParamSpec

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsezo.errors import UsageError

P = ParamSpec("P")


def _formula(formula: Callable[P, float]) -> Callable[P, float]:
    """Takes NumPy's numbers as Python's, for their integers wrap around; refuses a value past what a float holds."""

    @functools.wraps(formula)
    def checked(*args: P.args, **kwargs: P.kwargs) -> float:
        plain: Any = [_plain(value) for value in args]
        named: Any = {name: _plain(value) for name, value in kwargs.items()}
        try:
            value = float(formula(*plain, **named))
        except (OverflowError, ZeroDivisionError):
            value = math.inf
        if not math.isfinite(value):
            raise UsageError(f"{formula.__name__}: the result does not fit a float; give less extreme values")
        return value

    return checked


# Lemma 2: the norm of a perturbation


@_formula
def moment_bound(p: float, n_bar: float) -> float:
    """Lemma 2: E||u||^p <= (p + n_bar)^(p/2) for p >= 2; below 2, n_bar^(p/2) (Nesterov & Spokoiny, Lemma 1)."""
    _not_negative(p=p)
    _positive(n_bar=n_bar)
    return float((p + n_bar) ** (p / 2) if p >= 2 else n_bar ** (p / 2))


@_formula
def moment(p: float, n_bar: float) -> float:
    """E||u||^p itself, of a chi distribution with n_bar degrees: 2^(p/2) Gamma((n_bar + p)/2) / Gamma(n_bar/2)."""
    _not_negative(p=p)
    _positive(n_bar=n_bar)
    return math.exp(p / 2 * math.log(2) + math.lgamma((n_bar + p) / 2) - math.lgamma(n_bar / 2))


@_formula
def step_moment(m: float, r: float) -> float:
    """E[||P u||^2 ||u||^2] = r (m + 2), where u has m coordinates and the loss sees r of them (docs/theory.md).

    Times L0^2 it bounds E||s_mu||^2. At r = m it is E||u||^4, for which Theorem 1 writes (m + 4)^2.
    """
    _positive(m=m, r=r)
    if r > m:
        raise UsageError(f"r {r:g}: the loss cannot see more than the m = {m:g} coordinates of u")
    return r * (m + 2)


# Theorem 1: the average squared gradient norm of f_mu along a run


@_formula
def gradient_norm_bound(
    h: float | Sequence[float] | NDArray[Any], gap: float, n_bar: float, L0: float, L1: float, N: int | None = None
) -> float:
    """Theorem 1's right-hand side. ``gap`` is f_mu(w_0) - f*; h is h_0 ... h_N, or one constant and N beside it."""
    _not_negative(gap=gap)
    _positive(n_bar=n_bar, L0=L0, L1=L1)
    S_N, sum_of_squares = _rates(h, N)
    return (gap + 0.5 * L1 * (n_bar + 4) ** 2 * L0**2 * sum_of_squares) / S_N  # eq. (bound)


def _rates(h: float | Sequence[float] | NDArray[Any], N: int | None) -> tuple[float, float]:
    """S_N, the sum of all h_k, and the sum of their squares."""
    rates = _numbers("h", h)
    if not (rates.size and np.isfinite(rates).all() and (rates > 0).all()):
        raise UsageError("h: every learning rate must be positive and finite, and there must be at least one")
    if rates.ndim == 0:
        if N is None:
            raise UsageError("h is one constant: give N, the number of the last step, too")
        _whole(N=N)
        return float(rates) * (N + 1), float(rates) ** 2 * (N + 1)
    if rates.ndim > 1 or (N is not None and rates.size != N + 1):
        raise UsageError(f"h: give N + 1 rates h_0 ... h_N in one row, not an array of shape {rates.shape}")
    with np.errstate(over="ignore"):
        return float(rates.sum()), float(rates @ rates)


# Corollary 1: constant h, mu = mu_tilde


@_formula
def mu_tilde(alpha: float, n_bar: float, L0: float) -> float:
    """The largest mu with |f_mu - f| <= alpha everywhere."""
    _positive(alpha=alpha, n_bar=n_bar, L0=L0)
    return alpha / (math.sqrt(n_bar) * L0)


@_formula
def L1(n_bar: float, mu: float, L0: float) -> float:
    """A Lipschitz constant of f_mu's gradient (Nesterov & Spokoiny, eq. (22))."""
    _positive(n_bar=n_bar, mu=mu, L0=L0)
    return math.sqrt(n_bar) * L0 / mu


@_formula
def bound_at_h(h: float, alpha: float, R: float, n_bar: float, L0: float, N: int) -> float:
    """The appendix's bound for a constant h: Theorem 1 with L1 at mu_tilde and gap L0 R, without its factor 1/2."""
    _positive(h=h, alpha=alpha, R=R, n_bar=n_bar, L0=L0)
    _whole(N=N)
    return L0 * R / ((N + 1) * h) + h / alpha * n_bar * (n_bar + 4) ** 2 * L0**4


@_formula
def h_star(alpha: float, R: float, n_bar: float, L0: float, N: int) -> float:
    """The constant h that makes ``bound_at_h`` smallest."""
    _positive(alpha=alpha, R=R, n_bar=n_bar, L0=L0)
    _whole(N=N)
    return math.sqrt(alpha * R / (n_bar * (n_bar + 4) ** 2 * L0**3 * (N + 1)))


@_formula
def bound_at_h_star(alpha: float, R: float, n_bar: float, L0: float, N: int) -> float:
    """``bound_at_h`` at h_star: what N + 1 steps guarantee."""
    _positive(alpha=alpha, R=R, n_bar=n_bar, L0=L0)
    _whole(N=N)
    return 2 * math.sqrt(n_bar * (n_bar + 4) ** 2 * L0**5 * R / (alpha * (N + 1)))


def iterations(epsilon: float, alpha: float, R: float, n_bar: float, L0: float) -> int:
    """Corollary 1's N(epsilon): the smallest N with bound_at_h_star <= epsilon, to the unit however large."""
    _positive(epsilon=epsilon, alpha=alpha, R=R, n_bar=n_bar, L0=L0)
    e, a, r, m, l = (Fraction(float(value)) for value in (epsilon, alpha, R, n_bar, L0))
    return math.ceil(4 * m * (m + 4) ** 2 * l**5 * r / (a * e**2)) - 1


# The dimension of a data set


@dataclass(frozen=True)
class Dimension:
    """Of n_bar(x) or r_bar(x) over inputs x."""

    mean: float  # what the paper calls n_bar
    valid: float  # sqrt(E[(n(x) + 4)^2]) - 4 >= mean: with it for n_bar every step of Theorem 1's proof holds


def n_bar_of(n_active: ArrayLike) -> Dimension:
    """From the number of active weights (or of scores, for r_bar) of each input."""
    counts = _numbers("n_active", n_active)
    if counts.ndim != 1 or not counts.size:
        raise UsageError(f"n_active: give one number for each input, not an array of shape {counts.shape}")
    if not ((counts >= 0).all() and 0 < counts.max() < 2**53):
        raise UsageError("n_active: the numbers must be from 0 to 2^53, and not all 0")
    mean = float(counts.mean())
    second = float((counts + 4) @ (counts + 4)) / counts.size  # E[(n(x) + 4)^2]
    return Dimension(mean, max(mean, math.sqrt(second) - 4))


# The three perturbations beside each other


@dataclass(frozen=True)
class Row:
    perturb: str
    dimension: float  # n, n_bar or r_bar
    mu_tilde: float
    h_star: float  # for a run of N + 1 steps
    N: int  # steps k = 0 ... N reach epsilon


@dataclass(frozen=True)
class Complexity:
    """Corollary 1 for all, active and score: what it takes until the average squared gradient norm is <= epsilon."""

    n: float
    n_bar: float
    r_bar: float
    L0: float
    R: float
    alpha: float
    epsilon: float

    def __post_init__(self) -> None:
        _positive(**vars(self))
        if not self.r_bar <= self.n_bar <= self.n:
            raise UsageError(
                f"n {self.n:g}, n_bar {self.n_bar:g}, r_bar {self.r_bar:g}: must be r_bar <= n_bar <= n, "
                "for scores are made of active weights and these are some of all"
            )

    def row(self, perturb: str) -> Row:
        dimensions = {"all": self.n, "active": self.n_bar, "score": self.r_bar}
        if perturb not in dimensions:
            raise UsageError(f"perturb {perturb}: choose from {', '.join(dimensions)}")
        m = dimensions[perturb]
        N = iterations(self.epsilon, self.alpha, self.R, m, self.L0)
        return Row(perturb, m, mu_tilde(self.alpha, m, self.L0), h_star(self.alpha, self.R, m, self.L0, N), N)

    def rows(self) -> list[Row]:
        return [self.row(perturb) for perturb in ("all", "active", "score")]


# What a caller gave


def _plain(value: object) -> object:
    return value.item() if isinstance(value, np.generic) else value


def _number(name: str, value: object) -> float:
    try:
        if isinstance(value, Real):
            return float(value)
    except OverflowError:
        pass
    raise UsageError(f"{name}: must be a number, and fit a float")


def _positive(**values: object) -> None:
    for name, value in values.items():
        if not 0 < _number(name, value) < math.inf:
            raise UsageError(f"{name} {value}: must be positive and finite")


def _not_negative(**values: object) -> None:
    for name, value in values.items():
        if not 0 <= _number(name, value) < math.inf:
            raise UsageError(f"{name} {value}: must be finite and not negative")


def _whole(**values: object) -> None:
    for name, value in values.items():
        if not isinstance(value, Integral) or int(value) < 0:
            raise UsageError(f"{name} {value}: must be a whole number, 0 or more")


def _numbers(name: str, values: object) -> NDArray[np.float64]:
    try:
        return np.asarray(values, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise UsageError(f"{name}: must be a number or numbers") from None
