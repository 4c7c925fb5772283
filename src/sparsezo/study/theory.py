"""The theory as formulas to compute with: what the paper proves, and what can be proved beside it (docs/theory.md).

Symbols are the paper's; f_mu is f smoothed by mu u, m the dimension of the direction: n for perturbation all, n_bar for
active (the paper's theorem), r_bar for score.

>>> iterations(epsilon=0.1, alpha=0.5, R=1.0, n_bar=10.0, L0=1.0)
1567999
>>> case = Complexity(n=10_000, n_bar=100, r_bar=10, L0=1.0, R=1.0, alpha=0.5, epsilon=0.1)
>>> [(row.perturb, row.N) for row in case.rows()]
[('all', 800640127999999), ('active', 865279999), ('score', 1567999)]
>>> step_moment(m=3300, r=213), round(symmetric_moment(m=3300, r=213))
(703326.0, 3329)
>>> step_moment(m=[1, 9], r=[1, 9])  # not 5 * 7 = 35, what the means say
51.0
>>> round(bounded_h(mu=0.1, m=213, N=4_000_000), 9)
6.96e-07
>>> round(scaled_bound(bounded_rate(m=213, N=4_000_000), m=213, N=4_000_000), 5)  # (0.968 m / (N + 1))^(1/2)
0.00718
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral, Real
from typing import ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import digamma

from sparsezo.errors import UsageError

PERTURBS = ("all", "active", "score")
_PHI_1 = math.exp(-0.5) / math.sqrt(2 * math.pi)  # the normal density at 1: E|z^2 - 1| = 4 phi(1)
_SHORTER = {"two-point": 1, "baseline": 1, "symmetric": 4}  # E||s||^2 <= m / (this mu^2)
LARGEST_GRADIENT = 1 / (2 * math.pi)  # mu^2 ||grad f_mu||^2 is never above (E|z| / 2)^2

Each = float | Sequence[float] | NDArray[np.float64]  # one number for all inputs, or one for each
NotNegative = float
P = ParamSpec("P")
T = TypeVar("T", bound=float)


# What a caller of a formula may give


def formula(formula: Callable[P, T]) -> Callable[P, T]:
    """Checks arguments by their annotations: float is positive, int whole. Refuses a result past what a float holds.

    NumPy's numbers become Python's, for their integers wrap around.
    """
    signature = inspect.signature(formula)

    @functools.wraps(formula)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        given = signature.bind(*args, **kwargs)
        for name, value in given.arguments.items():
            plain = given.arguments[name] = value.item() if isinstance(value, np.generic) else value
            _check(signature.parameters[name].annotation, name, plain)
        try:
            value = formula(*given.args, **given.kwargs)
            if isinstance(value, int) or math.isfinite(value):
                return value
        except (OverflowError, ZeroDivisionError):
            pass
        raise UsageError(f"{formula.__name__}: the result does not fit a float; give less extreme values")

    return checked


def _check(kind: str, name: str, value: object) -> None:
    if kind == "int":
        if not isinstance(value, Integral) or int(value) < 0:
            raise UsageError(f"{name} {value}: must be a whole number, 0 or more")
    elif kind == "float":
        if not 0 < _number(name, value) < math.inf:
            raise UsageError(f"{name} {value}: must be positive and finite")
    elif kind == "NotNegative" and not 0 <= _number(name, value) < math.inf:
        raise UsageError(f"{name} {value}: must be finite and not negative")


def _positive(**values: object) -> None:
    for name, value in values.items():
        _check("float", name, value)


def _number(name: str, value: object) -> float:
    try:
        if isinstance(value, Real):
            return float(value)
    except OverflowError:
        pass
    raise UsageError(f"{name}: must be a number, and fit a float")


def _numbers(name: str, values: ArrayLike) -> NDArray[np.float64]:
    try:
        return np.asarray(values, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise UsageError(f"{name}: must be a number or numbers") from None


# The paper: Lemma 2, the norm of a perturbation


@formula
def moment_bound(p: NotNegative, n_bar: float) -> float:
    """Lemma 2: E||u||^p <= (p + n_bar)^(p/2) for p >= 2; below 2, n_bar^(p/2) (Nesterov & Spokoiny, Lemma 1)."""
    return float((p + n_bar) ** (p / 2) if p >= 2 else n_bar ** (p / 2))


@formula
def moment(p: NotNegative, n_bar: float) -> float:
    """E||u||^p itself, of a chi distribution with n_bar degrees: 2^(p/2) Gamma((n_bar + p)/2) / Gamma(n_bar/2)."""
    return math.exp(_log_moment(p, n_bar))


def _log_moment(p: float, n_bar: float) -> float:
    return p / 2 * math.log(2) + math.lgamma((n_bar + p) / 2) - math.lgamma(n_bar / 2)


# The paper: Theorem 1, the average squared gradient norm of f_mu along a run


@formula
def gradient_norm_bound(h: Each, gap: NotNegative, n_bar: float, L0: float, L1: float, N: int | None = None) -> float:
    """Theorem 1's right-hand side. ``gap`` is f_mu(w_0) - f*; h is h_0 ... h_N, or one constant and N beside it."""
    rates = _numbers("h", h)
    if not (rates.size and np.isfinite(rates).all() and (rates > 0).all()):
        raise UsageError("h: every learning rate must be positive and finite, and there must be at least one")
    if rates.ndim == 0:
        if N is None:
            raise UsageError("h is one constant: give N, the number of the last step, too")
        _check("int", "N", N)
        S_N, sum_of_squares = float(rates) * (N + 1), float(rates) ** 2 * (N + 1)
    else:
        if rates.ndim > 1 or (N is not None and rates.size != N + 1):
            raise UsageError(f"h: give N + 1 rates h_0 ... h_N in one row, not an array of shape {rates.shape}")
        with np.errstate(over="ignore"):
            S_N, sum_of_squares = float(rates.sum()), float(rates @ rates)
    return (gap + 0.5 * L1 * (n_bar + 4) ** 2 * L0**2 * sum_of_squares) / S_N  # eq. (bound)


# The paper: Corollary 1, constant h, mu = mu_tilde


@formula
def mu_tilde(alpha: float, n_bar: float, L0: float) -> float:
    """The largest mu with |f_mu - f| <= alpha everywhere."""
    return alpha / (math.sqrt(n_bar) * L0)


@formula
def L1(n_bar: float, mu: float, L0: float) -> float:
    """A Lipschitz constant of f_mu's gradient (Nesterov & Spokoiny, eq. (22))."""
    return math.sqrt(n_bar) * L0 / mu


@formula
def bound_at_h(h: float, alpha: float, R: float, n_bar: float, L0: float, N: int) -> float:
    """The appendix's bound for a constant h: Theorem 1 with L1 at mu_tilde and gap L0 R, without its factor 1/2."""
    return L0 * R / ((N + 1) * h) + h / alpha * n_bar * (n_bar + 4) ** 2 * L0**4


@formula
def h_star(alpha: float, R: float, n_bar: float, L0: float, N: int) -> float:
    """The constant h that makes ``bound_at_h`` smallest."""
    return math.sqrt(alpha * R / (n_bar * (n_bar + 4) ** 2 * L0**3 * (N + 1)))


@formula
def bound_at_h_star(alpha: float, R: float, n_bar: float, L0: float, N: int) -> float:
    """``bound_at_h`` at h_star: what N + 1 steps guarantee."""
    return 2 * math.sqrt(n_bar * (n_bar + 4) ** 2 * L0**5 * R / (alpha * (N + 1)))


@formula
def iterations(epsilon: float, alpha: float, R: float, n_bar: float, L0: float) -> int:
    """Corollary 1's N(epsilon): the smallest N with bound_at_h_star <= epsilon, to the unit however large."""
    e, a, r, m, l = (Fraction(float(value)) for value in (epsilon, alpha, R, n_bar, L0))
    return math.ceil(4 * m * (m + 4) ** 2 * l**5 * r / (a * e**2)) - 1


# F Lipschitz with L0: m coordinates of u are drawn (or, for score, kept), and the loss sees r of them. m, r and L0 are
# one number each, or one for each input, over which the moments are means.


@formula
def step_moment(m: Each, r: Each, L0: Each = 1.0) -> float:
    """E[L0(x)^2 r(x) (m(x) + 2)], two-point's bound of E||s_mu||^2: E[||P u||^2 ||u||^2] = r (m + 2) for an input.

    A kink attains it. At r = m it is E||u||^4, for which Theorem 1 writes (m + 4)^2.
    """
    m, r, L0 = _sizes(m=m, r=r, L0=L0)
    with np.errstate(over="ignore"):
        return float(np.mean(L0**2 * r * (m + 2)))


@formula
def symmetric_moment(m: Each, r: Each, L0: Each = 1.0) -> float:
    """E[L0(x)^2 (m(x) + 2 r(x)^(1/2))], the bound of E||s_mu||^2 for rule symmetric (Poincare and Stein)."""
    m, r, L0 = _sizes(m=m, r=r, L0=L0)
    with np.errstate(over="ignore"):
        return float(np.mean(L0**2 * (m + 2 * np.sqrt(r))))


def _sizes(**given: Each) -> list[NDArray[np.float64]]:
    """Of each input; an input that has no feature at all has m = r = 0."""
    sizes = {name: _numbers(name, value) for name, value in given.items()}
    for name, size in sizes.items():
        if size.ndim == 0:
            _positive(**{name: given[name]})
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


@formula
def annealed_L0(gamma: float, D: float) -> float:
    """Of the annealed criterion with losses in [0, 1]: gamma D / 4, D the largest distance of two outputs' features."""
    return gamma * D / 4


@formula
def sharp_L1(mu: float, L0: float) -> float:
    """A Lipschitz constant of f_mu's gradient whatever the dimension: (2/pi)^(1/2) L0 / mu."""
    return math.sqrt(2 / math.pi) * L0 / mu


@formula
def sharp_iterations(epsilon: float, alpha: float, R: float, L0: float, r: float, moment: float) -> int:
    """The smallest N whose bound (2 L0 R L1 M / (N + 1))^(1/2) is <= epsilon: Theorem 1 at its best h, with its 1/2.

    M = L0^2 ``moment`` bounds E||s_mu||^2, by ``step_moment`` or ``symmetric_moment`` at L0 = 1; L1 is ``sharp_L1`` at
    mu = alpha / (r^(1/2) L0), for the loss sees r coordinates under every perturbation.
    """
    e, a, d, l, m = (Fraction(float(value)) for value in (epsilon, alpha, R, L0, moment))
    root = Fraction(math.sqrt(2 / math.pi * float(r)))
    return math.ceil(2 * root * d * l**5 * m / (a * e**2)) - 1


# A measurable F with values in [0, 1], as MAP's loss: f_mu is smooth all the same, and E||s||^2 <= m / mu^2, a
# quarter of it for symmetric. Only h / mu^2, here ``rate``, counts. It is about rules two-point, baseline and symmetric
# with constant steps; comparison and preference do not descend f.


@formula
def bounded_L1(mu: float) -> float:
    """A Lipschitz constant of f_mu's gradient, 2 phi(1) / mu^2; the loss 1{|v'w| >= mu} has it, for any unit v."""
    return 2 * _PHI_1 / mu**2


@formula
def bounded_moment(m: float, mu: float, rule: str = "two-point") -> float:
    """The bound of E||s||^2; m is the mean over inputs, which is enough here."""
    return m / (_shorter(rule) * mu**2)


@formula
def scaled_bound(rate: float, m: float, N: int, rule: str = "two-point") -> float:
    """mu^2 times the bound of the average squared gradient norm of f_mu over N + 1 steps, at h = ``rate`` mu^2.

    Baseline's average has weights 1 - 1/k, k = 1 ... N + 1: its first step is none.
    """
    return 1 / (rate * _weight(N, rule)) + _PHI_1 * m * rate / _shorter(rule)


@formula
def bounded_rate(m: float, N: int, rule: str = "two-point") -> float:
    """The h / mu^2 that makes ``scaled_bound`` smallest: (4.13 / (m (N + 1)))^(1/2), twice that for symmetric."""
    return math.sqrt(_shorter(rule) / (_PHI_1 * m * _weight(N, rule)))


@formula
def bounded_h(mu: float, m: float, N: int, rule: str = "two-point") -> float:
    """The h of a run of N + 1 steps by this theorem: safe whatever the losses, and so far smaller than the best one."""
    return bounded_rate(m, N, rule) * mu**2


@formula
def bounded_iterations(epsilon: float, m: float, rule: str = "two-point") -> int:
    """The smallest N with mu^2 times the average squared gradient norm <= epsilon: 0.968 m / epsilon^2 steps."""
    if rule == "baseline":
        raise UsageError("rule baseline: its weights 1 - 1/k have no closed form; two-point's N is nearly its own")
    e, wide = Fraction(float(epsilon)), Fraction(float(m))
    return max(0, math.ceil(4 * Fraction(_PHI_1) * wide / (_shorter(rule) * e**2)) - 1)


def bounded_steps(m: float, rule: str = "two-point") -> int:
    """The first N at which the theorem says anything: below, its bound is above what no gradient can exceed."""
    return bounded_iterations(LARGEST_GRADIENT, m, rule)


# From f_mu to f, for losses in [0, 1]: the margin condition Pr(margin(x) <= t ||w||) <= (C t)^a for every t. r is the
# largest r(x), and ``ratio`` is mu / ||w||, on which alone f_mu - f depends under MAP.


@formula
def smoothing_gap(ratio: float, C: float, a: float, r: float) -> float:
    """The bound of |f_mu - f|: (C ratio)^a E||u||^a, at most (C ratio r^(1/2))^a for a <= 2; never above 1."""
    return math.exp(min(0.0, a * math.log(C * ratio) + _log_moment(a, r)))


@formula
def smoothing_ratio(alpha: float, C: float, a: float, r: float) -> float:
    """The largest mu / ||w|| with ``smoothing_gap`` <= alpha, for an alpha below 1."""
    if alpha >= 1:
        raise UsageError(f"alpha {alpha:g}: losses lie in [0, 1]; give less than 1")
    return math.exp((math.log(alpha) - _log_moment(a, r)) / a) / C


def _shorter(rule: str) -> int:
    if rule not in _SHORTER:
        raise UsageError(f"rule {rule}: choose from {', '.join(_SHORTER)}, for no other rule descends f in general")
    return _SHORTER[rule]


def _weight(N: int, rule: str) -> float:
    """The sum of all h_k / h: N + 1, or N + 1 less the harmonic number of N + 1."""
    if rule != "baseline":
        return N + 1
    if N == 0:
        raise UsageError("N 0: baseline's first step is none; give at least 1")
    return N + 1 - float(digamma(N + 2) + np.euler_gamma)  # 1 + 1/2 + ... + 1 / (N + 1)


# All, active and score beside each other


@dataclass(frozen=True)
class Row:
    perturb: str
    dimension: float  # n, n_bar or r_bar
    mu_tilde: float
    h_star: float  # for a run of N + 1 steps
    N: int  # steps k = 0 ... N reach epsilon, by the paper's bound
    N_two_point: int  # by E||s||^2 <= L0^2 E[r(x) (m(x) + 2)] and a sharper L1
    N_symmetric: int  # likewise, by E||s||^2 <= L0^2 (m + 2 r^(1/2))


@dataclass(frozen=True)
class Complexity:
    """Corollary 1 for all, active and score: what it takes until the average squared gradient norm is <= epsilon.

    ``moments``: E[r(x) (m(x) + 2)] of each, as ``step_moments`` has it; without, all inputs are taken to be alike.
    """

    n: float
    n_bar: float
    r_bar: float
    L0: float
    R: float
    alpha: float
    epsilon: float
    moments: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        _positive(**{name: value for name, value in vars(self).items() if name != "moments"})
        _check_order(self.n, self.n_bar, self.r_bar)
        if self.moments is not None:
            if set(self.moments) != set(PERTURBS):
                raise UsageError(f"moments: give one for each of {', '.join(PERTURBS)}")
            _positive(**self.moments)

    def rows(self) -> list[Row]:
        """Of all, active and score."""
        rows, r = [], self.r_bar
        for perturb, m in zip(PERTURBS, (self.n, self.n_bar, r), strict=True):
            N = iterations(self.epsilon, self.alpha, self.R, m, self.L0)
            moment = step_moment(m, r) if self.moments is None else self.moments[perturb]
            two_point, symmetric = (
                sharp_iterations(self.epsilon, self.alpha, self.R, self.L0, r, each)
                for each in (moment, symmetric_moment(m, r))
            )
            h = h_star(self.alpha, self.R, m, self.L0, N)
            rows.append(Row(perturb, m, mu_tilde(self.alpha, m, self.L0), h, N, two_point, symmetric))
        return rows


@dataclass(frozen=True)
class BoundedRow:
    """Of losses in [0, 1], two-point and baseline; symmetric has twice the h, half the bound and a quarter of says."""

    perturb: str
    m: float  # the mean of n, n(x) or r(x)
    rate: float  # h / mu^2
    h: float  # at mu
    bound: float  # of mu^2 times the average squared gradient norm
    says: int  # N from which the bound is below what no gradient can exceed


def bounded_rows(n: float, n_bar: float, r_bar: float, mu: float, N: int) -> list[BoundedRow]:
    """A row for each of all, active and score, of a run of N + 1 steps."""
    _positive(n=n, n_bar=n_bar, r_bar=r_bar)
    _check_order(n, n_bar, r_bar)
    rows = []
    for perturb, m in zip(PERTURBS, (n, n_bar, r_bar), strict=True):
        rate = bounded_rate(m, N)
        rows.append(BoundedRow(perturb, m, rate, bounded_h(mu, m, N), scaled_bound(rate, m, N), bounded_steps(m)))
    return rows


def _check_order(n: float, n_bar: float, r_bar: float) -> None:
    if not r_bar <= n_bar <= n:
        raise UsageError(
            f"n {n:g}, n_bar {n_bar:g}, r_bar {r_bar:g}: must be r_bar <= n_bar <= n, "
            "for scores are made of active weights and these are some of all"
        )


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


def step_moments(n: float, n_active: ArrayLike, n_score: ArrayLike) -> dict[str, float]:
    """E[r(x) (m(x) + 2)] of all, active and score: sizes of one input go together, so the means would say less."""
    _positive(n=n)
    active, score = _numbers("n_active", n_active), _numbers("n_score", n_score)
    return {"all": step_moment(n, score), "active": step_moment(active, score), "score": step_moment(score, score)}
