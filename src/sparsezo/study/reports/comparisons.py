"""Two learners compared in one quantity: their lead, how sure it is, and what follows for a claim.

    found = Comparison("a", "b", left.spread("tuned", "test"), right.spread("tuned", "test"), quantity, "tuned")
    found.lead, found.margin, found.p_value, found.verdict, found.detectable
    resampled_lead(left, right, "tuned", "f1")      # (0.0041, 0.0102): the 95% interval over drawn test sets

Where both have the same seeds the difference is taken seed by seed: runs with one seed see the same inputs in the same
order, and with the same perturbation the same draws (how much that takes out: docs/experiments.md). Otherwise it is
Welch's, for groups with variances of their own.
With ``equal_within`` the claim is that the two are equal, up to so much (two one-sided tests).

A comparison shows its claim at 5% by itself: a claim that needs several holds where each of them does, which errs no
more often than one of them (intersection-union; Berger 1982), so nothing is corrected. It is denied where a comparison
is found the other way round, and any of a report's could be by chance: so that is asked after Holm's correction for all
comparisons of all claims of the report (``corrected``). Both ways drawn test sets must agree with the seeds, where
there are such.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import nctdtrinc, stdtr, stdtrit

from sparsezo.study.reports.results import LearnerRuns, ReportedRun, Spread
from sparsezo.tasks.base import AnyArray
from sparsezo.tasks.metrics import METRICS

HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "cannot be said"
LEVEL, POWER = 0.05, 0.8  # at which a difference counts; with which a gap would have been seen


@dataclass(frozen=True)
class Difference:
    """A mean difference, its standard error, and the degrees of freedom that this was estimated with."""

    mean: float
    error: float
    freedom: float

    @property
    def margin(self) -> float:
        """Half of the 95% interval."""
        return float(stdtrit(self.freedom, 1 - LEVEL / 2)) * self.error

    @property
    def p_value(self) -> float:
        """Two-sided, of no difference at all."""
        return self.p_outside(0.0)

    def p_within(self, margin: float, around: float = 0.0) -> float:
        """Of two one-sided tests (TOST; Schuirmann 1987): that the difference is ``margin`` or more from ``around``."""
        return max(self._above(around - margin), self._below(around + margin))

    def p_outside(self, margin: float, around: float = 0.0) -> float:
        """Of the other way round: that it is within. Two-sided, since it may lie outside on either side."""
        return min(1.0, 2 * min(self._above(around + margin), self._below(around - margin)))

    @property
    def detectable(self) -> float:
        """The smallest gap that would count in ``POWER`` of all repetitions with such a spread: by the noncentral t."""
        return float(nctdtrinc(self.freedom, 1 - POWER, stdtrit(self.freedom, 1 - LEVEL / 2))) * self.error

    def with_more(self, *more: tuple[float, float]) -> Difference:
        """With variances of other sources, each with its degrees of freedom (Welch, Satterthwaite)."""
        parts = [(self.error**2, self.freedom), *((variance, df) for variance, df in more if variance)]
        total = sum(variance for variance, _ in parts)
        if len(parts) == 1 or not total:
            return self
        freedom = total**2 / sum(variance**2 / df for variance, df in parts)
        return Difference(self.mean, math.sqrt(total), freedom)

    def _above(self, bound: float) -> float:
        """How likely so large a mean is where the truth is at most ``bound``."""
        if self.error == 0:
            return 0.0 if self.mean > bound else 1.0
        return float(stdtr(self.freedom, (bound - self.mean) / self.error))

    def _below(self, bound: float) -> float:
        return Difference(-self.mean, self.error, self.freedom)._above(-bound)


def over(values: Sequence[float]) -> Difference:
    """The mean of values, at least two; of differences pair by pair, what a seed does to both alike is no noise."""
    return Difference(statistics.fmean(values), statistics.stdev(values) / math.sqrt(len(values)), len(values) - 1)


def welch(left: Sequence[float], right: Sequence[float]) -> Difference:
    """Of two groups, each of at least two, with variances of their own (Welch, Satterthwaite)."""
    shares = [(statistics.variance(side) / len(side), len(side) - 1) for side in (left, right)]
    variance = sum(share for share, _ in shares)
    freedom = variance**2 / sum(share**2 / df for share, df in shares) if variance else 1.0
    return Difference(statistics.fmean(left) - statistics.fmean(right), math.sqrt(variance), freedom)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted for looking at so many (Holm 1979): the chance of any false one is kept at the level."""
    p = np.array(p_values, float)
    order = np.argsort(p, kind="stable")
    p[order] = np.maximum.accumulate(np.minimum(1.0, p[order] * np.arange(p.size, 0, -1)))
    return [float(each) for each in p]


@dataclass(frozen=True)
class Quantity:
    key: str  # in a run's result
    name: str
    lower_is_better: bool
    phases: tuple[str, ...]  # where to look, best first
    digits: int = 4


@dataclass(frozen=True)
class Comparison:
    """``left`` is claimed to be better than ``right``, or as good."""

    left: str
    right: str
    left_values: Spread
    right_values: Spread
    quantity: Quantity
    phase: str
    aside: str = ""
    equal_within: float | None = None  # the claim: the lead is ``around``, up to so much
    around: float = 0.0
    p_adjusted: float | None = None  # of the other way round, by Holm, among all comparisons of the report
    inputs: tuple[float, float] | None = None  # 95% interval of the lead over drawn test sets
    more: tuple[tuple[float, float], ...] = ()  # variances that the seeds do not show: of tuning, of a bound's making

    @property
    def pair(self) -> str:
        return f"{self.left} against {self.right}"

    @property
    def lead(self) -> float:
        """How much better left is: positive where a claim that it is better is right."""
        difference = self.left_values.mean - self.right_values.mean
        return -difference if self.quantity.lower_is_better else difference

    @property
    def has_bound(self) -> bool:
        """One side is a number that no seed changes."""
        return self.left_values.exact or self.right_values.exact

    @property
    def paired(self) -> bool:
        seeds = self.left_values.seeds
        return bool(seeds) and seeds == self.right_values.seeds and not self.has_bound

    @cached_property
    def difference(self) -> Difference | None:
        """Of the lead; None where a single seed leaves its spread unknown."""
        sides = (self.left_values, self.right_values)
        if all(side.exact for side in sides) or any(len(side.values) < 2 and not side.exact for side in sides):
            return None
        left, right = (side.values for side in sides)
        if self.has_bound:
            found = over(left if self.right_values.exact else right)  # its spread is that of the one side
        elif self.paired:
            found = over([a - b for a, b in zip(left, right, strict=True)])
        else:
            found = welch(left, right)
        return replace(found, mean=self.lead).with_more(*self.more)

    @property
    def interval(self) -> tuple[float, float] | None:
        """95%, of the lead."""
        return None if (half := self.margin) is None else (self.lead - half, self.lead + half)

    @property
    def margin(self) -> float | None:
        """Half of the 95% interval of the lead; None where a single seed leaves it unknown."""
        return None if self.difference is None else self.difference.margin

    @cached_property
    def p_values(self) -> tuple[float, float] | None:
        """That what the claim says is not so, and that it is not the other way round; None where nothing is known."""
        found = self.difference
        if found is None:
            return None
        if self.equal_within is not None:
            return found.p_within(self.equal_within, self.around), found.p_outside(self.equal_within, self.around)
        return (found.p_value, 1.0) if self.lead > 0 else (1.0, found.p_value)

    @property
    def p_against(self) -> float | None:
        """That it is not the other way round, before any correction."""
        return None if self.p_values is None else self.p_values[1]

    @property
    def shows(self) -> bool:
        """Whether the lead is on the claim's side; on neither it is said to be on the other."""
        return self.p_values is not None and self.p_values[0] < self.p_values[1]

    @property
    def p_shown(self) -> float | None:
        """Of the side that the lead is on; for the other way round after correction."""
        if self.p_values is None:
            return None
        if self.shows or self.p_adjusted is None:
            return min(self.p_values)
        return self.p_adjusted

    @property
    def by_seeds(self) -> str:
        """The verdict of seeds alone."""
        if self.p_shown is None or self.p_shown > LEVEL:
            return UNDECIDED
        return HOLDS if self.shows else FAILS

    @property
    def verdict(self) -> str:
        return UNDECIDED if self.over_inputs is False else self.by_seeds

    @property
    def doubt(self) -> str | None:
        """Why nothing can be said; None where something can."""
        if self.verdict != UNDECIDED:
            return None
        if self.margin is None:
            return "one seed"
        return "within seed noise" if self.by_seeds == UNDECIDED else "not sure over drawn test sets"

    @property
    def detectable(self) -> float | None:
        """Where nothing can be said: the gap that four of five such experiments would have shown."""
        found = self.difference
        return None if found is None or found.error == 0 or self.by_seeds != UNDECIDED else found.detectable

    @property
    def over_inputs(self) -> bool | None:
        """Whether drawn test sets agree with the seeds; None where there are none, or nothing to agree with."""
        if self.inputs is None or self.by_seeds == UNDECIDED:
            return None
        low, high = self.inputs
        if self.equal_within is None:
            return low > 0 if self.by_seeds == HOLDS else high < 0
        least, most = self.around - self.equal_within, self.around + self.equal_within
        return least < low and high < most if self.by_seeds == HOLDS else high < least or low > most


def corrected(claims: Sequence[Sequence[Comparison]]) -> list[list[Comparison]]:
    """The comparisons of all claims of a report, with p of the other way round by Holm; one that says nothing is left
    out."""
    told = [p for found in claims for item in found if (p := item.p_against) is not None]
    adjusted = iter(holm(told))
    return [
        [item if item.p_against is None else replace(item, p_adjusted=next(adjusted)) for item in found]
        for found in claims
    ]


# A paired bootstrap over the test set's inputs (Efron and Tibshirani 1993; Koehn 2004 for BLEU). Seeds say how much of
# a difference is the learner's chance, but share one test set, and another one of its size would have given other
# figures for all of them. So test sets are drawn from it, the same ones for all learners, from the runs' test.counts.

SAMPLES, _SEED = 1000, 2000


def resampled_lead(left: LearnerRuns, right: LearnerRuns, phase: str, metric: str) -> tuple[float, float] | None:
    """The 95% interval of left minus right over test sets; None where not all runs have what it takes."""
    ours, theirs = (_resampled_means(side.runs(phase), metric) for side in (left, right))
    sizes = [{len(run.counts) for run in side.runs(phase) if run.counts is not None} for side in (left, right)]
    if ours is None or theirs is None or sizes[0] != sizes[1]:
        return None
    return _middle(ours - theirs)


def resampled_beside(
    left: LearnerRuns, phase: str, metric: str, bounds: Sequence[AnyArray | None], share: float | None = None
) -> tuple[float, float] | None:
    """Likewise, beside weights that were only evaluated, of which there are counts: left minus the only bound; or of
    two, from low to high, how much more than ``share`` of the way left goes."""
    ours = _resampled_means(left.runs(phase), metric)
    sizes = {len(run.counts) for run in left.runs(phase) if run.counts is not None}
    if ours is None or any(counts is None or {len(counts)} != sizes for counts in bounds):
        return None
    drawn = [METRICS[metric](_draws(len(counts)) @ counts) for counts in bounds if counts is not None]
    if share is None:
        return _middle(ours - drawn[0])
    low, high = drawn
    return _middle((ours - low) / (high - low) - share)


def _middle(values: NDArray[np.float64]) -> tuple[float, float]:
    low, high = np.quantile(values, (0.025, 0.975))
    return float(low), float(high)


@lru_cache(maxsize=512)
def _resampled_means(runs: tuple[ReportedRun, ...], metric: str) -> NDArray[np.float64] | None:
    """[SAMPLES]: the mean over seeds of the metric on each drawn test set."""
    tested = [run for run in runs if run.value("test") is not None]
    arrays = [run.counts for run in tested if run.counts is not None and run.counts.shape[0]]
    if not tested or len(arrays) < len(tested) or metric not in METRICS or len({a.shape for a in arrays}) > 1:
        return None
    counts = np.stack(arrays)  # [seeds, inputs, k]
    told = np.array([run.value("test") for run in tested], np.float64)
    if not np.allclose(METRICS[metric](counts.sum(axis=1)), told, atol=1e-6):
        return None  # of another test set, or of another way to count
    seeds, inputs, k = counts.shape
    flat = counts.transpose(1, 0, 2).reshape(inputs, seeds * k).astype(np.float64)
    sums = (_draws(inputs) @ flat).reshape(-1, seeds, k)
    return np.asarray(METRICS[metric](sums).mean(axis=1))


@lru_cache(maxsize=4)
def _draws(inputs: int) -> NDArray[np.float64]:
    """[SAMPLES, inputs]: how often each input is in each drawn test set; the same whenever it is asked for."""
    rng = np.random.default_rng(_SEED)
    return rng.multinomial(inputs, np.full(inputs, 1 / inputs), size=SAMPLES).astype(np.float64)
