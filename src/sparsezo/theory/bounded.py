"""Any measurable F with values in [0, 1], as MAP's loss: what holds without a Lipschitz constant (docs/theory.md).

f_mu is smooth all the same: its Hessian is E[(F - 1/2)(uu' - I)] / mu^2, at most 2 phi(1) / mu^2 long, and a step is
short because F is: E||s||^2 <= m / mu^2, a quarter of it for symmetric. Only h / mu^2, here ``rate``, counts.

>>> round(bounded_L1(mu=1.0), 3)
0.484
>>> round(scaled_bound(bounded_rate(m=213, N=4_000_000), m=213, N=4_000_000), 5)  # (0.968 m / (N + 1))^(1/2)
0.00718

It is about rules two-point, baseline and symmetric with constant steps; comparison and preference do not descend f.
"""

from __future__ import annotations

import math
from fractions import Fraction

from sparsezo.errors import UsageError
from sparsezo.theory.checks import formula, positive, whole

_PHI_1 = math.exp(-0.5) / math.sqrt(2 * math.pi)  # the normal density at 1: E|z^2 - 1| = 4 phi(1)
_SHORTER = {"two-point": 1, "baseline": 1, "symmetric": 4}  # E||s||^2 <= m / (this mu^2)
LARGEST_GRADIENT = 1 / (2 * math.pi)  # mu^2 ||grad f_mu||^2 is never above (E|z| / 2)^2


@formula
def bounded_L1(mu: float) -> float:
    """A Lipschitz constant of f_mu's gradient, 2 phi(1) / mu^2; the loss 1{|v'w| >= mu} has it, for any unit v."""
    positive(mu=mu)
    return 2 * _PHI_1 / mu**2


@formula
def bounded_moment(m: float, mu: float, rule: str = "two-point") -> float:
    """The bound of E||s||^2; m is the mean over inputs, which is enough here."""
    positive(m=m, mu=mu)
    return m / (_shorter(rule) * mu**2)


@formula
def scaled_bound(rate: float, m: float, N: int, rule: str = "two-point") -> float:
    """mu^2 times the bound of the average squared gradient norm of f_mu over N + 1 steps, at h = ``rate`` mu^2.

    Baseline's average has weights 1 - 1/k, k = 1 ... N + 1: its first step is none.
    """
    positive(rate=rate, m=m)
    return 1 / (rate * _weight(N, rule)) + _PHI_1 * m * rate / _shorter(rule)


@formula
def bounded_rate(m: float, N: int, rule: str = "two-point") -> float:
    """The h / mu^2 that makes ``scaled_bound`` smallest: (4.13 / (m (N + 1)))^(1/2), twice that for symmetric."""
    positive(m=m)
    return math.sqrt(_shorter(rule) / (_PHI_1 * m * _weight(N, rule)))


@formula
def bounded_h(mu: float, m: float, N: int, rule: str = "two-point") -> float:
    """The h of a run of N + 1 steps by this theorem: safe whatever the losses, and so far smaller than the best one."""
    positive(mu=mu)
    return bounded_rate(m, N, rule) * mu**2


def bounded_iterations(epsilon: float, m: float, rule: str = "two-point") -> int:
    """The smallest N with mu^2 times the average squared gradient norm <= epsilon: 0.968 m / epsilon^2 steps."""
    positive(epsilon=epsilon, m=m)
    if rule == "baseline":
        raise UsageError("rule baseline: its weights 1 - 1/k have no closed form; two-point's N is nearly its own")
    e, wide = Fraction(float(epsilon)), Fraction(float(m))
    return max(0, math.ceil(4 * Fraction(_PHI_1) * wide / (_shorter(rule) * e**2)) - 1)


def bounded_steps(m: float, rule: str = "two-point") -> int:
    """The first N at which the theorem says anything: below, its bound is above what no gradient can exceed."""
    return bounded_iterations(LARGEST_GRADIENT, m, rule)


def _shorter(rule: str) -> int:
    if rule not in _SHORTER:
        raise UsageError(f"rule {rule}: choose from {', '.join(_SHORTER)}, for no other rule descends f in general")
    return _SHORTER[rule]


def _weight(N: int, rule: str) -> float:
    """The sum of all h_k / h: N + 1, or N + 1 less the harmonic number of N + 1."""
    whole(N=N)
    if rule != "baseline":
        return N + 1
    if N == 0:
        raise UsageError("N 0: baseline's first step is none; give at least 1")
    return N + 1 - _harmonic(N + 1)


def _harmonic(n: int) -> float:
    """1 + 1/2 + ... + 1/n; from 1,000 on by its expansion, to the last digit."""
    if n < 1000:
        return math.fsum(1 / k for k in range(1, n + 1))
    return math.log(n) + 0.57721566490153286 + 1 / (2 * n) - 1 / (12 * n**2)
