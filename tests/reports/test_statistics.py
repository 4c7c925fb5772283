"""The report's statistics against SciPy's, and against simulations where SciPy has none."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.special import betainc

from sparsezo.reports.statistics import (
    Difference,
    against,
    detectable_errors,
    holm,
    incomplete_beta,
    paired,
    power,
    t_cdf,
    t_quantile,
    welch,
)

FREEDOMS = [1, 1.7, 2, 3, 4.4, 9, 18, 30, 200]
LEFT = [0.91, 0.93, 0.85, 0.90, 0.92]
RIGHT = [0.90, 0.91, 0.86, 0.88, 0.91]


@pytest.mark.parametrize("a", [0.5, 1.0, 4.5, 100.0])
@pytest.mark.parametrize("x", [0.0, 1e-9, 0.1, 0.5, 0.93, 1 - 1e-9, 1.0])
def test_the_incomplete_beta_function_is_scipys(a, x):
    for b in (0.5, 3.0):
        assert incomplete_beta(a, b, x) == pytest.approx(betainc(a, b, x), rel=1e-10, abs=1e-14)


@pytest.mark.parametrize("freedom", FREEDOMS)
def test_t_is_students(freedom):
    for t in (-40.0, -2.0, 0.0, 0.3, 2.0, 12.0):
        assert t_cdf(t, freedom) == pytest.approx(stats.t.cdf(t, freedom), rel=1e-9, abs=1e-14)
    for p in (0.5, 0.8, 0.95, 0.975, 0.9999):
        assert t_quantile(p, freedom) == pytest.approx(stats.t.ppf(p, freedom), rel=1e-8, abs=1e-12)


def test_a_paired_difference_is_scipys():
    found, theirs = paired(LEFT, RIGHT), stats.ttest_rel(LEFT, RIGHT)
    low, high = theirs.confidence_interval(0.95)
    assert found.p_value == pytest.approx(theirs.pvalue)
    assert (found.mean - found.margin, found.mean + found.margin) == pytest.approx((low, high))


@pytest.mark.parametrize("right", [RIGHT, RIGHT[:2], [0.5, 0.1, 0.9]])
def test_welchs_difference_is_scipys(right):
    found, theirs = welch(LEFT, right), stats.ttest_ind(LEFT, right, equal_var=False)
    low, high = theirs.confidence_interval(0.95)
    assert (found.p_value, found.freedom) == pytest.approx((theirs.pvalue, theirs.df))
    assert (found.mean - found.margin, found.mean + found.margin) == pytest.approx((low, high))


def test_a_difference_from_a_bound_is_scipys():
    found, theirs = against(LEFT, 0.88), stats.ttest_1samp(LEFT, 0.88)
    assert (found.mean, found.p_value) == pytest.approx((np.mean(LEFT) - 0.88, theirs.pvalue))


def test_equivalence_is_two_one_sided_tests():
    found = paired(LEFT, RIGHT)
    for margin, around in ((0.02, 0.0), (0.005, 0.0), (0.03, 0.01)):
        gaps = np.subtract(LEFT, RIGHT)
        above = stats.ttest_1samp(gaps, around - margin, alternative="greater").pvalue
        below = stats.ttest_1samp(gaps, around + margin, alternative="less").pvalue
        assert found.p_within(margin, around) == pytest.approx(max(above, below))
        beyond = stats.ttest_1samp(gaps, around + margin, alternative="greater").pvalue
        short = stats.ttest_1samp(gaps, around - margin, alternative="less").pvalue
        assert found.p_outside(margin, around) == pytest.approx(min(1.0, 2 * min(beyond, short)))


def test_equivalence_is_claimed_at_its_margin_in_one_case_of_twenty():
    """Where the truth is the margin itself, which is the hardest case of all."""
    rng = np.random.default_rng(5)
    gaps = rng.normal(0.02, 0.003, (4000, 6))
    found = [against(row, 0.0).p_within(0.02) <= 0.05 for row in gaps.tolist()]
    assert np.mean(found) == pytest.approx(0.05, abs=0.012)


def test_without_any_noise_what_is_there_is_certain():
    assert paired([0.5, 0.5], [0.5, 0.5]).p_value == 1.0
    assert paired([0.6, 0.6], [0.5, 0.5]).p_value == 0.0
    assert welch([0.6, 0.6], [0.5, 0.5]) == Difference(pytest.approx(0.1), 0.0, 1.0)
    assert Difference(0.01, 0.0, 3).p_within(0.02) == 0.0
    assert Difference(0.03, 0.0, 3).p_within(0.02) == 1.0
    assert (Difference(0.03, 0.0, 3).p_outside(0.02), Difference(0.01, 0.0, 3).p_outside(0.02)) == (0.0, 1.0)


def test_holms_correction_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == pytest.approx([1.0, 1.0])
    assert holm([0.02]) == [0.02]
    assert holm([]) == []


def test_holms_correction_lets_one_family_in_twenty_err():
    rng = np.random.default_rng(2)
    p = rng.random((4000, 6))
    raw, adjusted = np.mean(p.min(axis=1) <= 0.05), np.mean([min(holm(row)) <= 0.05 for row in p.tolist()])
    assert raw > 0.2
    assert adjusted == pytest.approx(0.05, abs=0.012)


@pytest.mark.parametrize("freedom", FREEDOMS)
def test_power_is_the_noncentral_ts(freedom):
    bound = stats.t.ppf(0.975, freedom)
    for gap in (0.5, 2.0, 4.0):
        theirs = stats.nct.sf(bound, freedom, gap) + stats.nct.cdf(-bound, freedom, gap)
        assert power(gap, freedom) == pytest.approx(theirs, abs=2e-3)
    assert power(0.0, freedom) == pytest.approx(0.05, abs=2e-3)


@pytest.mark.parametrize("seeds", [3, 10])
def test_the_gap_that_could_have_been_seen_is_seen_in_four_of_five(seeds):
    rng = np.random.default_rng(seeds)
    gap = detectable_errors(seeds - 1) / np.sqrt(seeds)  # in standard deviations
    gaps = rng.normal(gap, 1.0, (4000, seeds))
    p = stats.ttest_1samp(gaps, 0.0, axis=1).pvalue
    assert np.mean(p <= 0.05) == pytest.approx(0.8, abs=0.025)
    assert Difference(0.0, 0.1, seeds - 1).detectable == pytest.approx(0.1 * detectable_errors(seeds - 1))
