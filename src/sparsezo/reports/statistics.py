"""The statistics of a report: differences over seeds, Holm's correction, equivalence, what could have been seen.

    found = paired(left, right)                 # or welch(left, right), against(left, bound)
    found.mean, found.margin                    # the 95% interval is mean ± margin
    found.p_value, found.p_within(0.02)         # that there is no difference; that it is 0.02 or more (TOST)
    found.detectable                            # the gap that four of five repetitions would have shown
    holm([0.01, 0.04, 0.03])                    # [0.03, 0.06, 0.06]

Student's t is computed here from the incomplete beta function, so that a report needs no SciPy; the tests compare all
of it with SciPy's, or with simulations.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from sparsezo.bisection import root_above_0

LEVEL = 0.05  # at which a difference counts
POWER = 0.8  # with which a gap that could have been seen would have been seen
_DENSE = 4001  # points of the integral over the standard error's law


@dataclass(frozen=True)
class Difference:
    """A mean difference, its standard error, and the degrees of freedom that this was estimated with."""

    mean: float
    error: float
    freedom: float

    @property
    def margin(self) -> float:
        """Half of the 95% interval."""
        return t_quantile(1 - LEVEL / 2, self.freedom) * self.error

    @property
    def p_value(self) -> float:
        """Two-sided, of no difference at all."""
        return 2 * min(self._above(0.0), self._below(0.0), 0.5)

    def p_within(self, margin: float, around: float = 0.0) -> float:
        """Of two one-sided tests (TOST; Schuirmann 1987): that the difference is ``margin`` or more from ``around``."""
        return max(self._above(around - margin), self._below(around + margin))

    def p_outside(self, margin: float, around: float = 0.0) -> float:
        """Of the other way round: that it is within. Two-sided, since it may lie outside on either side."""
        return min(1.0, 2 * min(self._above(around + margin), self._below(around - margin)))

    @property
    def detectable(self) -> float:
        """The smallest gap that would count in ``POWER`` of all repetitions, with a spread such as this one."""
        return detectable_errors(self.freedom) * self.error

    def _above(self, bound: float) -> float:
        """How likely so large a mean is where the truth is at most ``bound``."""
        if self.error == 0:
            return 0.0 if self.mean > bound else 1.0
        return 1 - t_cdf((self.mean - bound) / self.error, self.freedom)

    def _below(self, bound: float) -> float:
        return Difference(-self.mean, self.error, self.freedom)._above(-bound)


def paired(left: Sequence[float], right: Sequence[float]) -> Difference:
    """Left minus right, pair by pair: what a seed does to both alike is no noise."""
    return against([a - b for a, b in zip(left, right, strict=True)], 0.0)


def against(values: Sequence[float], bound: float) -> Difference:
    """The mean of values, at least two, minus a number that is known."""
    error = statistics.stdev(values) / math.sqrt(len(values))
    return Difference(statistics.fmean(values) - bound, error, len(values) - 1)


def welch(left: Sequence[float], right: Sequence[float]) -> Difference:
    """Of two groups, each of at least two, with variances of their own (Welch, Satterthwaite)."""
    shares = [(statistics.variance(side) / len(side), len(side) - 1) for side in (left, right)]
    variance = sum(share for share, _ in shares)
    freedom = variance**2 / sum(share**2 / df for share, df in shares) if variance else 1.0
    return Difference(statistics.fmean(left) - statistics.fmean(right), math.sqrt(variance), freedom)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted for looking at so many (Holm 1979): the chance of any false one is kept at the level."""
    adjusted, largest = [0.0] * len(p_values), 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=lambda k: p_values[k])):
        largest = max(largest, min(1.0, (len(p_values) - place) * p_values[index]))
        adjusted[index] = largest
    return adjusted


# Student's t


def t_cdf(t: float, freedom: float) -> float:
    tail = 0.5 * incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))
    return 1 - tail if t > 0 else tail


@lru_cache(maxsize=4096)
def t_quantile(p: float, freedom: float) -> float:
    """By bisection, for p from 0.5 on: it is asked for a few hundred times in a report."""
    return root_above_0(lambda t: t_cdf(t, freedom) - p)


def incomplete_beta(a: float, b: float, x: float) -> float:
    """Regularised, by its continued fraction (Lentz; Press et al., Numerical Recipes, 6.4)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - incomplete_beta(b, a, 1 - x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    tiny = 1e-300
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1) or tiny)
    value = d
    for m in range(1, 10_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for part in (even, odd):
            d, c = 1 / (1 + part * d or tiny), 1 + part / c or tiny
            value *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return front * value / a


@lru_cache(maxsize=4096)
def detectable_errors(freedom: float) -> float:
    """The smallest gap that is seen with ``POWER``, in standard errors: by the noncentral t."""
    return root_above_0(lambda gap: power(gap, freedom) - POWER)


def power(gap: float, freedom: float) -> float:
    """How often a gap of so many standard errors counts: P(|T| > t) of the noncentral t, over the error's own law."""
    bound = t_quantile(1 - LEVEL / 2, freedom)
    widest = 1 + 9 / math.sqrt(freedom)
    s = np.linspace(0, widest, _DENSE)[1:]  # estimated standard error / true one: sqrt(chi^2 / freedom)
    log = (freedom - 1) * np.log(s) - freedom * s**2 / 2
    density = np.exp(log - log.max())
    seen = [_normal(gap - bound * each) + _normal(-gap - bound * each) for each in s.tolist()]
    return float((density * np.array(seen)).sum() / density.sum())


def _normal(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2))
