"""Drawn test sets: against a literal bootstrap, and against the standard error of a mean where that is known."""

from __future__ import annotations

import numpy as np
import pytest

from sparsezo.reports import bootstrap
from sparsezo.reports.bootstrap import resampled_lead
from sparsezo.reports.results import LearnerRuns, ReportedRun
from sparsezo.tasks.counts import METRICS

RNG = np.random.default_rng(11)


def learner(name, counts, metric="accuracy", told=None):
    """A run for each of counts [seeds, inputs, k]."""
    runs = []
    for seed, mine in enumerate(counts):
        value = float(METRICS[metric](mine.sum(axis=0))) if told is None else told
        runs.append(ReportedRun(name, "tuned", seed, {}, 10, {"test": value}, {}, {}, None, None, counts=mine))
    return LearnerRuns(name, name, None, True, {"tuned": tuple(runs)})


def right_or_wrong(share, seeds=3, inputs=400):
    right = (RNG.random((seeds, inputs)) < share).astype(np.int64)
    return np.stack((right, np.ones_like(right)), axis=2)


def test_the_interval_is_a_literal_bootstraps():
    left, right = right_or_wrong(0.8), right_or_wrong(0.7)
    low, high = resampled_lead(learner("a", left), learner("b", right), "tuned", "accuracy")
    rng = np.random.default_rng(3)
    leads = []
    for _ in range(4000):
        drawn = rng.integers(0, 400, 400)
        leads.append(np.mean([side[:, drawn, 0].mean() for side in (left,)]) - right[:, drawn, 0].mean())
    wanted = np.quantile(leads, (0.025, 0.975))
    assert (low, high) == pytest.approx(tuple(wanted), abs=0.004)


def test_the_interval_is_as_wide_as_the_standard_error_says():
    left, right = right_or_wrong(0.8, 1, 2000), right_or_wrong(0.7, 1, 2000)
    low, high = resampled_lead(learner("a", left), learner("b", right), "tuned", "accuracy")
    gaps = left[0, :, 0] - right[0, :, 0]  # paired: of the same inputs
    assert (high - low) / 2 == pytest.approx(1.96 * gaps.std(ddof=1) / 2000**0.5, rel=0.08)


def test_what_is_easy_or_hard_for_both_is_no_difference():
    """Outputs that are equal but for a few inputs: an interval of the few, not of the test set."""
    left = right_or_wrong(0.5, 1, 1000)
    right = left.copy()
    right[0, :10, 0] = 0
    low, high = resampled_lead(learner("a", left), learner("b", right), "tuned", "accuracy")
    assert 0 <= low < high < 0.02


def test_the_same_is_said_whenever_it_is_asked():
    sides = learner("a", right_or_wrong(0.8)), learner("b", right_or_wrong(0.7))
    first = resampled_lead(*sides, "tuned", "accuracy")
    bootstrap._draws.cache_clear()
    bootstrap._means.cache_clear()
    assert resampled_lead(*sides, "tuned", "accuracy") == first
    assert resampled_lead(*sides[::-1], "tuned", "accuracy") == pytest.approx((-first[1], -first[0]))


def test_there_is_no_interval_without_all_counts():
    whole = learner("a", right_or_wrong(0.8))
    assert resampled_lead(whole, learner("b", right_or_wrong(0.8, inputs=300)), "tuned", "accuracy") is None
    assert resampled_lead(whole, learner("b", right_or_wrong(0.8), told=0.1), "tuned", "accuracy") is None
    assert resampled_lead(whole, whole, "fixed", "accuracy") is None
    assert resampled_lead(whole, whole, "tuned", "a metric of one's own") is None
