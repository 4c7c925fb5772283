"""Two learners compared: the statistics against SciPy's tests and simulations, verdicts, and drawn test sets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from reported import run_of
from scipy import stats

from sparsezo.study.reports.comparisons import (
    FAILS,
    HOLDS,
    UNDECIDED,
    Comparison,
    Difference,
    Quantity,
    corrected,
    holm,
    over,
    resampled_lead,
    welch,
)
from sparsezo.study.reports.results import LearnerRuns, Spread
from sparsezo.tasks.metrics import METRICS

TEST = Quantity("test", "test F1", False, ("tuned", "fixed"))
LOSS = Quantity("average_loss", "average cumulative 1 - F1", True, ("fixed", "tuned"))
NOISE = (-0.001, -0.001, 0.002)  # mean 0, median not; sd 0.0017
LEFT = [0.91, 0.93, 0.85, 0.90, 0.92]
RIGHT = [0.90, 0.91, 0.86, 0.88, 0.91]


def test_a_paired_difference_is_scipys():
    found, theirs = over(np.subtract(LEFT, RIGHT).tolist()), stats.ttest_rel(LEFT, RIGHT)
    low, high = theirs.confidence_interval(0.95)
    assert found.p_value == pytest.approx(theirs.pvalue)
    assert (found.mean - found.margin, found.mean + found.margin) == pytest.approx((low, high))


@pytest.mark.parametrize("right", [RIGHT, RIGHT[:2], [0.5, 0.1, 0.9]])
def test_welchs_difference_is_scipys(right):
    found, theirs = welch(LEFT, right), stats.ttest_ind(LEFT, right, equal_var=False)
    low, high = theirs.confidence_interval(0.95)
    assert (found.p_value, found.freedom) == pytest.approx((theirs.pvalue, theirs.df))
    assert (found.mean - found.margin, found.mean + found.margin) == pytest.approx((low, high))


def test_equivalence_is_two_one_sided_tests():
    found = over(np.subtract(LEFT, RIGHT).tolist())
    for margin, around in ((0.02, 0.0), (0.005, 0.0), (0.03, 0.01)):
        gaps = np.subtract(LEFT, RIGHT)
        above = stats.ttest_1samp(gaps, around - margin, alternative="greater").pvalue
        below = stats.ttest_1samp(gaps, around + margin, alternative="less").pvalue
        assert found.p_within(margin, around) == pytest.approx(max(above, below))
        beyond = stats.ttest_1samp(gaps, around + margin, alternative="greater").pvalue
        short = stats.ttest_1samp(gaps, around - margin, alternative="less").pvalue
        assert found.p_outside(margin, around) == pytest.approx(min(1.0, 2 * min(beyond, short)))


def test_without_any_noise_what_is_there_is_certain():
    assert over([0.0, 0.0]).p_value == 1.0
    assert over([0.1, 0.1]).p_value == 0.0
    assert welch([0.6, 0.6], [0.5, 0.5]) == Difference(pytest.approx(0.1), 0.0, 1.0)
    assert Difference(0.01, 0.0, 3).p_within(0.02) == 0.0
    assert Difference(0.03, 0.0, 3).p_within(0.02) == 1.0
    assert (Difference(0.03, 0.0, 3).p_outside(0.02), Difference(0.01, 0.0, 3).p_outside(0.02)) == (0.0, 1.0)


def test_holms_correction_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == pytest.approx([1.0, 1.0])
    assert holm([0.02]) == [0.02]
    assert holm([]) == []


@pytest.mark.parametrize("seeds", [3, 10])
def test_the_gap_that_could_have_been_seen_is_seen_in_four_of_five(seeds):
    rng = np.random.default_rng(seeds)
    gap = Difference(0.0, 1.0, seeds - 1).detectable / np.sqrt(seeds)  # in standard deviations
    gaps = rng.normal(gap, 1.0, (4000, seeds))
    p = stats.ttest_1samp(gaps, 0.0, axis=1).pvalue
    assert np.mean(p <= 0.05) == pytest.approx(0.8, abs=0.025)


# One comparison


def compared(left, right, quantity=TEST, exact=False, aside=""):
    return Comparison("a", "b", Spread(tuple(left)), Spread(tuple(right), exact=exact), quantity, "tuned", aside)


def test_the_margin_decides():
    """Two seeds 0.02 apart against a bound: the margin is 12.706 * 0.01 = 0.127."""
    seeds = (0.5, 0.52)
    verdicts = [compared(seeds, (bound,), exact=True).verdict for bound in (0.38, 0.40, 0.51, 0.62, 0.64)]
    assert verdicts == [HOLDS, UNDECIDED, UNDECIDED, UNDECIDED, FAILS]
    verdicts = [compared(seeds, (bound,), LOSS, exact=True).verdict for bound in (0.38, 0.51, 0.64)]
    assert verdicts == [FAILS, UNDECIDED, HOLDS]


def test_a_lead_of_nothing_is_none_even_without_noise():
    assert compared((0.5, 0.5), (0.5, 0.5)).verdict == UNDECIDED


# Seed by seed, and with a correction for the number of comparisons


def spread(values, seeds=None, exact=False):
    values = tuple(values)
    return Spread(values, exact, tuple(range(len(values))) if seeds is None else seeds)


def over_seeds(left, right, **how):
    return Comparison("a", "b", left, right, TEST, "tuned", **how)


MANY, FEWER = (0.80, 0.85, 0.90, 0.95), (0.79, 0.842, 0.889, 0.938)


def test_with_the_same_seeds_the_difference_is_taken_seed_by_seed():
    """What the seeds do to both is ten times the difference, and the difference is sure."""
    found = over_seeds(spread(MANY), spread(FEWER))
    assert found.paired
    assert found.p_shown == pytest.approx(stats.ttest_rel(MANY, FEWER).pvalue)
    assert found.verdict == HOLDS


@pytest.mark.parametrize("seeds", [(1, 2, 3, 4), (), (0, 1, 3, 2)])
def test_other_seeds_are_no_pairs(seeds):
    found = over_seeds(spread(MANY), spread(FEWER, seeds))
    assert not found.paired
    assert found.p_shown == pytest.approx(stats.ttest_ind(MANY, FEWER, equal_var=False).pvalue)
    assert found.verdict == UNDECIDED


def test_what_a_claim_says_is_not_corrected_and_the_other_way_round_is():
    """A difference of p 0.02 shows a claim beside any others; against one it counts alone."""
    one = over_seeds(spread((0.502, 0.5, 0.505)), spread((0.5,), exact=True))
    gap = stats.t.isf(0.01, 2)  # standard errors
    nothing = over_seeds(spread((0.4, 0.5, 0.61)), spread((0.5,), exact=True))
    for sign, alone, beside in ((1, HOLDS, HOLDS), (-1, FAILS, UNDECIDED)):
        some = replace(one, left_values=spread(0.5 + sign * gap / 100 + d / 100 for d in (-(3**0.5), 0, 3**0.5)))
        assert some.p_shown == pytest.approx(0.02, rel=1e-6)
        assert corrected([[some]])[0][0].verdict == alone
        (found, _), (other,) = corrected([[some, nothing], [nothing]])
        assert (found.verdict, other.verdict) == (beside, UNDECIDED)


def test_a_comparison_of_one_seed_is_not_counted():
    single = over_seeds(spread((0.5,)), spread((0.4,)))
    sure = over_seeds(spread(FEWER), spread(MANY))
    (first, second), (third,) = corrected([[single, sure], [single]])
    assert [item.p_adjusted for item in (first, second, third)] == [None, sure.p_against, None]
    (first, second), (third,) = corrected([[sure, single], [sure]])
    assert [item.p_adjusted for item in (first, second, third)] == [2 * sure.p_against, None, 2 * sure.p_against]


def test_all_must_hold_errs_no_more_than_one_and_any_denied_no_more_than_stated():
    """Simulated: two true leads of 0 in a claim of two, or ten claims of two."""
    rng = np.random.default_rng(7)

    def drawn(lead):
        gaps = lead + rng.normal(0, 1, 5)
        return over_seeds(spread(gaps), spread((0.0,), exact=True))

    shown = denied = 0
    for _ in range(1000):
        claims = corrected([[drawn(3.0), drawn(0.0)] for _ in range(5)])
        shown += all(item.verdict == HOLDS for item in claims[0])
        denied += any(item.verdict == FAILS for found in claims for item in found)
    assert shown / 1000 <= 0.05  # half of the two-sided 5%, and no more
    assert denied / 1000 <= 0.06


def test_more_variance_is_added_with_its_degrees_of_freedom():
    found = Difference(0.1, 0.02, 4).with_more((0.0012, 2), (0.0, 1))
    assert (found.mean, found.error) == (0.1, pytest.approx(0.04))
    assert found.freedom == pytest.approx(0.0016**2 / (0.0004**2 / 4 + 0.0012**2 / 2))
    assert Difference(0.1, 0.02, 4).with_more((0.0, 2)) == Difference(0.1, 0.02, 4)


# As good as


@pytest.mark.parametrize(
    ("lead", "verdict"),
    [(0.0, HOLDS), (0.01, HOLDS), (-0.01, HOLDS), (0.0199, UNDECIDED), (0.05, FAILS), (-0.05, FAILS)],
)
def test_equal_is_what_is_shown_to_be_within_the_margin(lead, verdict):
    found = over_seeds(spread(v + lead for v in FEWER), spread(v + d for v, d in zip(FEWER, (*NOISE, 0), strict=True)))
    assert replace(found, equal_within=0.02).verdict == verdict
    assert replace(found, equal_within=0.02, around=1.0).verdict == FAILS
    assert replace(found, equal_within=0.02, around=lead).verdict == HOLDS


# Drawn test sets

RNG = np.random.default_rng(11)


def counted(name, counts, metric="accuracy", told=None):
    """A run for each of counts [seeds, inputs, k]."""
    runs = []
    for seed, mine in enumerate(counts):
        value = float(METRICS[metric](mine.sum(axis=0))) if told is None else told
        runs.append(run_of("tuned", seed, {"test": value}, counts=mine))
    return LearnerRuns(name, name, None, True, {"tuned": tuple(runs)})


def right_or_wrong(share, seeds=3, inputs=400):
    right = (RNG.random((seeds, inputs)) < share).astype(np.int64)
    return np.stack((right, np.ones_like(right)), axis=2)


def test_the_interval_is_a_literal_bootstraps():
    left, right = right_or_wrong(0.8), right_or_wrong(0.7)
    low, high = resampled_lead(counted("a", left), counted("b", right), "tuned", "accuracy")
    rng = np.random.default_rng(3)
    leads = []
    for _ in range(4000):
        drawn = rng.integers(0, 400, 400)
        leads.append(np.mean([side[:, drawn, 0].mean() for side in (left,)]) - right[:, drawn, 0].mean())
    wanted = np.quantile(leads, (0.025, 0.975))
    assert (low, high) == pytest.approx(tuple(wanted), abs=0.004)


def test_what_is_easy_or_hard_for_both_is_no_difference():
    """Outputs that are equal but for a few inputs: an interval of the few, not of the test set."""
    left = right_or_wrong(0.5, 1, 1000)
    right = left.copy()
    right[0, :10, 0] = 0
    low, high = resampled_lead(counted("a", left), counted("b", right), "tuned", "accuracy")
    assert 0 <= low < high < 0.02


def test_there_is_no_interval_without_all_counts():
    whole = counted("a", right_or_wrong(0.8))
    assert resampled_lead(whole, counted("b", right_or_wrong(0.8, inputs=300)), "tuned", "accuracy") is None
    assert resampled_lead(whole, counted("b", right_or_wrong(0.8), told=0.1), "tuned", "accuracy") is None
    assert resampled_lead(whole, whole, "fixed", "accuracy") is None
    assert resampled_lead(whole, whole, "tuned", "a metric of one's own") is None
