"""A paired bootstrap over the test set's inputs (Efron and Tibshirani 1993; Koehn 2004 for BLEU).

    resampled_lead(left, right, "tuned", "f1")      # (0.0041, 0.0102): the 95% interval of left minus right

Seeds say how much of a difference is the learner's chance. They share one test set, and another one of its size would
have given other figures for all of them. So test sets are drawn from it, with replacement, the same ones for all
learners; in each the metric is computed for every seed, and the means over seeds are compared. What this needs is what
a run leaves as test.counts; where runs do not have it, there is no interval and the report says so.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sparsezo.reports.results import LearnerRuns, ReportedRun
from sparsezo.tasks.counts import METRICS

SAMPLES = 1000
_SEED = 2000
_CLOSE = 1e-6  # between what the counts say of the whole test set and what the run does


def resampled_lead(left: LearnerRuns, right: LearnerRuns, phase: str, metric: str) -> tuple[float, float] | None:
    """The 95% interval of left minus right over test sets; None where not all runs have what it takes."""
    ours, theirs = (_means(side.runs(phase), metric) for side in (left, right))
    if ours is None or theirs is None or _inputs(left, phase) != _inputs(right, phase):
        return None
    low, high = np.quantile(ours - theirs, (0.025, 0.975))
    return float(low), float(high)


def _inputs(learner: LearnerRuns, phase: str) -> set[int]:
    return {run.counts.shape[0] for run in learner.runs(phase) if run.counts is not None}


@lru_cache(maxsize=512)
def _means(runs: tuple[ReportedRun, ...], metric: str) -> NDArray[np.float64] | None:
    """[SAMPLES]: the mean over seeds of the metric on each drawn test set."""
    tested = [run for run in runs if run.value("test") is not None]
    arrays = [run.counts for run in tested if run.counts is not None and run.counts.shape[0]]
    if not tested or len(arrays) < len(tested) or metric not in METRICS or len({a.shape for a in arrays}) > 1:
        return None
    counts = np.stack(arrays)  # [seeds, inputs, k]
    told = np.array([run.value("test") for run in tested], np.float64)
    if not np.allclose(METRICS[metric](counts.sum(axis=1)), told, atol=_CLOSE):
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
