"""The claims' verdicts on results made for the purpose: clear, the other way round, too noisy, missing.

Seeds are not symmetric about their mean, and the phases disagree: what one of them shows, the other denies.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from sparsezo.reports.claims import check_claims
from sparsezo.reports.comparisons import FAILS, HOLDS, UNDECIDED, Comparison, Quantity, corrected
from sparsezo.reports.results import Curve, LearnerRuns, ReportedExperiment, ReportedRun, Spread

TEST = Quantity("test", "test F1", False, ("tuned", "fixed"))
LOSS = Quantity("average_loss", "average cumulative 1 - F1", True, ("fixed", "tuned"))
SEEDS = (3, 8, 4)
NOISE = (-0.001, -0.001, 0.002)  # mean 0, median not; sd 0.0017
# test F1 in the paper's order
CLEAR = {
    ("comparison", "all"): 0.810,
    ("baseline", "all"): 0.819,
    ("two-point", "all"): 0.841,
    ("comparison", "active"): 0.842,
    ("baseline", "active"): 0.869,
    ("two-point", "active"): 0.888,
    ("comparison", "score"): 0.870,
    ("baseline", "score"): 0.890,
    ("two-point", "score"): 0.925,
    ("first-order", None): 0.940,
}
RULES = ("two-point", "baseline", "comparison")


def name_of(rule, perturb):
    return f"{rule} {perturb}" if perturb else rule


def learner(rule, perturb, level, *, noise=NOISE, good=("tuned",), phases=("fixed", "tuned"), **how):
    """Its test is ``level`` in the good phases, 1.7 - level in the others; its average loss is 1 - test."""
    settings = {"rule": rule, "perturb": perturb}
    curve = how.get("curve", lambda loss: Curve(np.array([0, 50, 100]), np.array([1.0, 0.1, 0]) + loss, np.ones(3)))
    runs = {}
    for phase in phases:
        test = level if phase in good else 1.7 - level
        runs[phase] = tuple(
            ReportedRun(
                name_of(rule, perturb),
                phase,
                seed,
                settings,
                100,
                {"test": test + e, "average_loss": 1 - test - e, "n": 1000, "n_active": how.get("n_active", 100.0)},
                {},
                {},
                None,
                curve(1 - test - e),
            )
            for seed, e in zip(SEEDS, noise, strict=False)
        )
    return LearnerRuns(name_of(rule, perturb), rule, perturb, how.get("plain", True), runs)


def experiment_of(*learners, task="chunking", bounds=None):
    runs = tuple(run for item in learners for runs in item.phases.values() for run in runs)
    metric = {"rerank": "bleu", "text": "accuracy"}.get(task, "f1")
    return ReportedExperiment(Path(), task, task, metric, runs, learners, bounds=bounds or {})


def experiment(values, task="chunking", bounds=None, **how):
    learners = [learner(rule, perturb, value, **how) for (rule, perturb), value in values.items()]
    return experiment_of(*learners, task=task, bounds=bounds)


def without(*keys):
    return {key: value for key, value in CLEAR.items() if key not in keys}


def claims_of(found):
    return {claim.title: claim for claim in check_claims(found)}


def pairs(claim):
    return [(item.left, item.right) for item in claim.evidence]


def same_rule(better, worse, rules=RULES):
    return [(f"{rule} {better}", f"{rule} {worse}") for rule in rules]


ORDER = [
    *(("two-point all", "baseline all"), ("baseline all", "comparison all")),
    *(("two-point active", "baseline active"), ("baseline active", "comparison active")),
]
ACTIVE_FASTER, ACTIVE_BETTER = (
    "ACTIVE learns faster than ALL, for every rule",
    "ACTIVE ends better on test than ALL, for every rule",
)
SCORE_FASTER = "SCORE learns faster than ACTIVE, for every rule"
SCORE_BETTER = "SCORE ends better on test than ACTIVE, for every rule"
ORDER_OF_SPEED, ORDER_ON_TEST = (
    "two-point > baseline > comparison in speed",
    "two-point > baseline > comparison on test",
)
SFO_ABOVE = "SFO stays above every SZO learner of the paper"
AS_FAST, AS_GOOD = (
    "Two-point ACTIVE learns as fast as SFO, up to 0.02",
    "Two-point ACTIVE ends as good on test as SFO, up to 0.02",
)
SZO_BEATS = "Every SZO learner of the paper beats SFO on SMT"
ABOVE_BOUND = "SZO improves on the out-of-domain model it starts from"
FIXED, TUNED = ", fixed settings", ", tuned settings"


# Which claims, of what, in which phase


def test_a_result_at_tuned_settings_is_read_there_and_nowhere_else():
    """Everything holds at the tuned settings, and everything is the other way round at the fixed ones."""
    claims = check_claims(experiment(CLEAR))
    assert [(claim.title, claim.verdict) for claim in claims] == [
        (ACTIVE_FASTER + FIXED, FAILS),
        (ACTIVE_FASTER + TUNED, HOLDS),
        (ACTIVE_BETTER, HOLDS),
        (ORDER_OF_SPEED + FIXED, FAILS),
        (ORDER_OF_SPEED + TUNED, HOLDS),
        (ORDER_ON_TEST, HOLDS),
        (SFO_ABOVE, HOLDS),
        (AS_FAST + FIXED, FAILS),
        (AS_FAST + TUNED, FAILS),
        (AS_GOOD, FAILS),
        (SCORE_FASTER + FIXED, FAILS),
        (SCORE_FASTER + TUNED, HOLDS),
        (SCORE_BETTER, HOLDS),
    ]
    seen = [{(item.quantity.name, item.phase) for item in claim.evidence} for claim in claims]
    slow, fast, test = (
        {("average cumulative 1 - F1", "fixed")},
        {("average cumulative 1 - F1", "tuned")},
        {("test F1", "tuned")},
    )
    assert seen == [slow, fast, test, slow, fast, test, test, slow, fast, test, slow, fast, test]


def test_a_result_at_fixed_settings_is_read_there():
    verdicts = [claim.verdict for claim in check_claims(experiment(CLEAR, good=("fixed",)))]
    assert verdicts == [HOLDS, FAILS, FAILS, HOLDS, FAILS, FAILS, FAILS, FAILS, FAILS, FAILS, HOLDS, FAILS, FAILS]


def test_every_claim_compares_its_pairs_the_better_first():
    claims = check_claims(experiment(CLEAR))
    active, score = same_rule("active", "all"), same_rule("score", "active", RULES[::-1])
    first = [("first-order", name_of(*key)) for key in CLEAR if key[1] in ("all", "active")]
    close = [("two-point active", "first-order")]
    assert [pairs(claim) for claim in claims] == [active] * 3 + [ORDER] * 3 + [first] + [close] * 3 + [score] * 3
    two_point = claims[2].evidence[0]
    assert two_point.left_values.values == pytest.approx([0.887, 0.887, 0.890])
    assert two_point.right_values.values == pytest.approx([0.840, 0.840, 0.843])
    assert two_point.paired
    assert two_point.margin == pytest.approx(0, abs=1e-9)  # the seeds do the same to both
    assert two_point.lead == pytest.approx(0.047)
    assert claims[0].evidence[0].left_values.values == pytest.approx([0.189, 0.189, 0.186])  # the loss, fixed


def test_every_claim_says_where_it_stands():
    sources = [claim.source for claim in check_claims(experiment(CLEAR))]
    active, order = "paper Sec. 5, chunking; supplement, text classification", "paper Sec. 5, Table 1"
    assert sources == [active] * 3 + [order] * 3 + [
        "paper Table 1; supplement, in speed",
        *['paper Sec. 5, chunking: "a similar convergence speed as the SFO algorithm"'] * 2,
        'paper Sec. 5, chunking: "SPARSE two-point updates coming close to the SFO result"',
        *["not in the paper"] * 3,
    ]


def test_on_text_sfo_is_above_in_speed():
    claims = claims_of(experiment(CLEAR, "text"))
    assert SFO_ABOVE not in claims
    assert claims[SFO_ABOVE + FIXED].verdict == FAILS
    assert claims[SFO_ABOVE + TUNED].verdict == HOLDS
    for claim in (claims[SFO_ABOVE + FIXED], claims[SFO_ABOVE + TUNED]):
        assert {item.quantity.name for item in claim.evidence} == {"average cumulative error"}
        assert claim.source == "paper Table 1; supplement, in speed"
    assert {item.quantity.name for item in claims[ACTIVE_BETTER].evidence} == {"test accuracy"}


@pytest.mark.parametrize("phase", ["fixed", "tuned"])
def test_with_one_phase_it_is_not_named_in_the_titles(phase):
    claims = check_claims(experiment(CLEAR, phases=(phase,), good=(phase,)))
    assert [claim.title for claim in claims] == [
        *(ACTIVE_FASTER, ACTIVE_BETTER, ORDER_OF_SPEED, ORDER_ON_TEST, SFO_ABOVE, AS_FAST, AS_GOOD),
        *(SCORE_FASTER, SCORE_BETTER),
    ]
    assert {claim.verdict for claim in claims if claim.title not in (AS_FAST, AS_GOOD)} == {HOLDS}
    assert {item.phase for claim in claims for item in claim.evidence} == {phase}


def test_a_pair_is_compared_in_the_best_phase_that_both_have():
    first, second = learner("two-point", "active", 0.9), learner("two-point", "all", 0.8, phases=("fixed",))
    (item,) = claims_of(experiment_of(first, second))[ACTIVE_BETTER].evidence
    assert item.phase == "fixed"
    assert item.left_values.mean == pytest.approx(0.8)  # 1.7 - 0.9
    assert item.right_values.mean == pytest.approx(0.9)
    assert item.verdict == FAILS


def test_phases_are_never_mixed_in_a_comparison():
    tuned = learner("two-point", "active", 0.9, phases=("tuned",))
    fixed = learner("two-point", "all", 0.8, phases=("fixed",))
    claim = claims_of(experiment_of(tuned, fixed))[ACTIVE_BETTER]
    assert claim.verdict == UNDECIDED
    assert claim.words == (
        "there is nothing to compare; not run, or without this result: "
        "two-point active and two-point all in the same phase, "
        "baseline active and baseline all, comparison active and comparison all"
    )


# The words


def test_words_where_it_holds():
    assert claims_of(experiment(CLEAR))[ACTIVE_BETTER].words == "all 3 comparisons show it"
    values = {("two-point", "all"): 0.8, ("first-order", None): 0.9}
    assert claims_of(experiment(values))[SFO_ABOVE].words == "the only comparison shows it"
    assert claims_of(experiment(values))[SFO_ABOVE].verdict == HOLDS


def test_one_pair_the_other_way_round_and_it_does_not_hold():
    claims = claims_of(experiment({**CLEAR, ("baseline", "active"): 0.813}))
    assert claims[ACTIVE_BETTER].verdict == FAILS
    assert claims[ACTIVE_BETTER].words == "the other way round for baseline active against baseline all"
    assert claims[ORDER_ON_TEST].words == "the other way round for baseline active against comparison active"
    assert claims[SFO_ABOVE].verdict == HOLDS
    slow = claims[ACTIVE_FASTER + FIXED]
    assert slow.words == (
        "the other way round for two-point active against two-point all, comparison active against comparison all"
    )


def test_within_noise_nothing_can_be_said_and_the_pairs_are_named():
    values = {**CLEAR, ("baseline", "active"): 0.821, ("comparison", "active"): 0.807}
    noise = {"active": NOISE, "all": NOISE[1:] + NOISE[:1]}
    learners = [learner(rule, p, level, noise=noise.get(p, NOISE)) for (rule, p), level in values.items()]
    claim = claims_of(experiment_of(*learners))[ACTIVE_BETTER]
    assert [item.verdict for item in claim.evidence] == [HOLDS, UNDECIDED, UNDECIDED]
    assert claim.verdict == UNDECIDED
    # differences of 0, -0.003 and 0.003: a standard error of 0.0017, of which 5.7 would be seen in four of five
    assert claim.words == (
        "1 of 3 comparisons show it, but within seed noise: "
        "baseline active against baseline all (0.0098 could have been seen), "
        "comparison active against comparison all (0.0098 could have been seen)"
    )


def test_a_single_seed_says_nothing_of_chance():
    claims = check_claims(experiment(CLEAR, noise=(0.0,)))
    assert {claim.verdict for claim in claims} == {UNDECIDED}
    assert claims[0].words == "0 of 3 comparisons show it, but a single seed says nothing of chance"
    assert claims[-1].evidence[0].detectable is None
    assert all("a single seed says nothing of chance" in claim.words for claim in claims)


def test_a_single_seed_on_one_side_is_said_even_where_others_are_clear():
    first = learner("two-point", "active", 0.9), learner("two-point", "all", 0.8)
    second = learner("baseline", "active", 0.9), learner("baseline", "all", 0.8, noise=(0.0,))
    claim = claims_of(experiment_of(*first, *second))[ACTIVE_BETTER]
    assert claim.verdict == UNDECIDED
    assert claim.words == (
        "1 of 2 comparisons show it, but a single seed says nothing of chance; "
        "not run, or without this result: comparison active and comparison all"
    )


def test_a_missing_learner_leaves_it_open_and_is_named():
    claims = claims_of(experiment(without(("comparison", "all"))))
    active = claims[ACTIVE_BETTER]
    assert active.verdict == UNDECIDED
    assert pairs(active) == same_rule("active", "all", RULES[:2])
    assert active.words == ("all 2 comparisons that there are show it; not run, or without this result: comparison all")
    failed = claims[ACTIVE_FASTER + FIXED]
    assert failed.verdict == FAILS  # one found the other way round is enough
    assert failed.words == (
        "the other way round for two-point active against two-point all, baseline active against baseline all; "
        "not run, or without this result: comparison all"
    )


def test_what_is_missing_is_named_once():
    claim = claims_of(experiment(without(("first-order", None))))[SFO_ABOVE]
    assert claim.words == "there is nothing to compare; not run, or without this result: first-order"
    assert (claim.verdict, claim.evidence) == (UNDECIDED, ())


def test_a_learner_without_the_result_is_as_good_as_not_run():
    nan = learner("two-point", "all", math.nan)
    claim = claims_of(experiment_of(learner("two-point", "active", 0.9), nan))[ACTIVE_BETTER]
    assert claim.words.startswith("there is nothing to compare; not run, or without this result: two-point all, ")


def test_nothing_at_all():
    claims = check_claims(experiment({}))
    assert {claim.verdict for claim in claims} == {UNDECIDED}
    assert all(claim.words.startswith("there is nothing to compare") for claim in claims)
    assert [claim.title for claim in claims][:2] == [ACTIVE_FASTER, ACTIVE_BETTER]
    words = {claim.title: claim.words for claim in claims}
    assert words[ORDER_ON_TEST] == "there is nothing to compare"  # no group of rules was begun


# Who is compared


@pytest.mark.parametrize("perturb", ["all", "active", "score"])
def test_learners_of_another_kind_are_not_the_papers(perturb):
    """Adagrad rows must not stand for the paper's learners, nor for SCORE's."""
    strange = learner("two-point", perturb, 0.99, plain=False)
    base = experiment(without(("two-point", perturb)))
    claims = check_claims(experiment_of(*base.learners, strange))
    name = f"two-point {perturb}"
    assert not [pair for claim in claims for pair in pairs(claim) if name in pair]
    assert claims == check_claims(base)


def test_the_papers_learner_is_taken_where_both_are_there():
    strange = learner("two-point", "active", 0.5, plain=False)
    base = experiment(CLEAR)
    assert claims_of(experiment_of(strange, *base.learners))[ACTIVE_BETTER].evidence[0].left_values.mean == (
        pytest.approx(0.888)
    )


def test_sfo_is_compared_with_the_papers_learners_alone():
    """Not with others (score, symmetric), which may well be better."""
    values = {**CLEAR, ("two-point", "score"): 0.99, ("symmetric", "active"): 0.99}
    claim = claims_of(experiment(values))[SFO_ABOVE]
    assert claim.verdict == HOLDS
    assert len(claim.evidence) == 6


def test_the_order_of_rules_is_asked_of_the_perturbations_that_were_run():
    values = {key: value for key, value in CLEAR.items() if key[1] != "all"}
    claim = claims_of(experiment(values))[ORDER_ON_TEST]
    assert pairs(claim) == ORDER[2:]
    assert claim.verdict == HOLDS
    one = claims_of(experiment({("baseline", "all"): 0.8}))[ORDER_ON_TEST]
    assert one.words == "there is nothing to compare; not run, or without this result: two-point all, comparison all"


def test_score_is_asked_of_further_rules_where_both_were_run():
    values = {("symmetric", "score"): 0.93, ("symmetric", "active"): 0.9, ("preference", "score"): 0.8}
    values |= {("comparison", "score"): 0.8}
    claim = claims_of(experiment(values))[SCORE_BETTER]
    assert pairs(claim) == [("symmetric score", "symmetric active")]
    assert claim.words == (
        "the only comparison that there is shows it; not run, or without this result: comparison active"
    )


# Dense inputs, and the bounds of reranking


BOUNDS = {"out-of-domain": {"bleu": 0.257}, "in-domain": {"bleu": 0.284}, "oracle": {"bleu": 0.4}}
SMT = {
    ("first-order", None): 0.263,
    ("comparison", "active"): 0.265,
    ("baseline", "active"): 0.267,
    ("two-point", "active"): 0.273,
    ("two-point", "score"): 0.276,
}


def smt(values=(), bounds=BOUNDS, **how):
    how = {"noise": (-0.0001, -0.0001, 0.0002), "n_active": 1000.0, "good": ("fixed", "tuned"), **how}
    return experiment({**SMT, **dict(values)}, "rerank", bounds, **how)


def test_on_smt_every_learner_of_the_paper_is_to_beat_sfo():
    claim = claims_of(smt())[SZO_BEATS]
    assert claim.verdict == HOLDS
    assert claim.source == "paper Sec. 5, SMT: 0.265 to 0.273 BLEU against 0.263"
    assert pairs(claim) == [(f"{rule} active", "first-order") for rule in ("comparison", "baseline", "two-point")]
    assert claims_of(smt({("first-order", None): 0.280}))[SZO_BEATS].verdict == FAILS
    assert SFO_ABOVE not in claims_of(smt())


def test_the_way_from_out_of_domain_to_in_domain():
    claim = claims_of(smt({("baseline", "active"): 0.256}))[ABOVE_BOUND]
    assert [(item.left, item.right, item.verdict, item.aside) for item in claim.evidence] == [
        ("comparison active", "out-of-domain", HOLDS, "30% of the way to the in-domain model"),
        ("baseline active", "out-of-domain", FAILS, "-4% of the way to the in-domain model"),
        ("two-point active", "out-of-domain", HOLDS, "59% of the way to the in-domain model"),
        ("two-point score", "out-of-domain", HOLDS, "70% of the way to the in-domain model"),
    ]
    assert claim.verdict == FAILS
    assert claim.source == (
        "paper Sec. 5, SMT: two-point gains 1.6 of the 2.7 BLEU points between the out-of-domain and in-domain models"
    )
    first = claim.evidence[0]
    assert first.right_values == Spread((0.257,), exact=True)
    assert first.margin == pytest.approx(4.3027 * math.sqrt(3e-8 / 3), rel=1e-4)  # of one side: 2 degrees of freedom
    assert (first.phase, first.quantity.name) == ("tuned", "test BLEU")


def test_the_bound_is_compared_at_the_best_phase_of_each():
    unlike = smt(good=("tuned",))  # 1.7 - level at the fixed settings
    assert [item.left_values.mean for item in claims_of(unlike)[ABOVE_BOUND].evidence] == (
        pytest.approx([0.265, 0.267, 0.273, 0.276])
    )
    untested = learner("two-point", "active", math.nan, good=("tuned",)).phases["tuned"]
    tested = learner("two-point", "active", 0.27, good=("fixed",)).phases["fixed"]
    half = LearnerRuns("two-point active", "two-point", "active", True, {"tuned": untested, "fixed": tested})
    (item,) = claims_of(experiment_of(half, task="rerank", bounds=BOUNDS))[ABOVE_BOUND].evidence
    assert (item.phase, item.left_values.mean) == ("fixed", pytest.approx(0.27))
    fixed = smt(phases=("fixed",))
    assert {item.phase for item in claims_of(fixed)[ABOVE_BOUND].evidence} == {"fixed"}


@pytest.mark.parametrize("high", [None, 0.257, 0.25])
def test_without_an_in_domain_model_above_there_is_no_way_to_it(high):
    bounds = {"out-of-domain": {"bleu": 0.257}} | ({} if high is None else {"in-domain": {"bleu": high}})
    claim = claims_of(smt(bounds=bounds))[ABOVE_BOUND]
    assert [item.aside for item in claim.evidence] == [""] * 4
    assert claim.words == "all 4 comparisons show it"


def test_without_the_out_of_domain_score_nothing_is_above_it():
    claim = claims_of(smt(bounds={"in-domain": {"bleu": 0.284}}))[ABOVE_BOUND]
    assert (claim.verdict, claim.evidence) == (UNDECIDED, ())
    assert claim.words == (
        "there is nothing to compare; not run, or without this result: the score of the out-of-domain model"
    )
    assert ABOVE_BOUND not in claims_of(smt(bounds={}))


def test_a_learner_without_a_result_is_left_out_beside_the_bound():
    claim = claims_of(smt({("comparison", "active"): math.nan}))[ABOVE_BOUND]
    assert [item.left for item in claim.evidence] == ["baseline active", "two-point active", "two-point score"]


def test_where_every_feature_is_active_there_is_nothing_to_compare_with_all():
    law = "every feature is active in every input here, so ACTIVE is ALL in law and the paper makes no such claim"
    claims = claims_of(smt())
    assert claims[ACTIVE_BETTER].verdict == UNDECIDED
    assert claims[ACTIVE_BETTER].words == law
    assert claims[ACTIVE_BETTER].source == "paper Sec. 5, chunking; supplement, text classification"
    both = claims_of(smt({("two-point", "all"): 0.2}))[ACTIVE_BETTER]
    assert both.words == law + "; what differs below is chance"
    assert pairs(both) == [("two-point active", "two-point all")]
    assert (both.evidence[0].verdict, both.verdict) == (HOLDS, UNDECIDED)


def test_where_active_is_all_score_is_compared_with_the_one_that_was_run():
    assert pairs(claims_of(smt())[SCORE_BETTER]) == [("two-point score", "two-point active")]
    values = {("two-point", "score"): 0.9, ("two-point", "all"): 0.8}
    dense, sparse = claims_of(experiment(values, n_active=1000.0)), claims_of(experiment(values))
    title = "SCORE ends better on test than ACTIVE (here the same as ALL), for every rule"
    assert pairs(dense[title]) == [("two-point score", "two-point all")]
    assert "SCORE learns faster than ACTIVE (here the same as ALL), for every rule, fixed settings" in dense
    assert not sparse[SCORE_BETTER].evidence


# How much of the way a mean curve lies below


def curve(*points):
    steps, losses = zip(*points, strict=True)
    return Curve(np.array(steps), np.array(losses), np.ones(len(points)))


def aside(left, right):
    items = (learner("two-point", "active", 0.9, curve=left), learner("two-point", "all", 0.8, curve=right))
    return claims_of(experiment_of(*items))[ACTIVE_FASTER + TUNED].evidence[0].aside


def test_points_below_are_counted_where_both_curves_have_them():
    ours = curve((0, 0.1), (1, 0.30), (20, 0.0), (40, 0.5), (50, 0.2), (60, 0.25), (80, 0.2))
    theirs = curve((0, 0.9), (1, 0.31), (30, 0.9), (40, 0.4), (50, 0.2), (60, 0.40), (80, 0.1))
    assert aside(lambda loss: ours, lambda loss: theirs) == "Its mean curve is below at 2 of 5 points"


def test_points_below_are_of_the_mean_over_seeds():
    """At 10 the mean is above, although the median and the least of the seeds are below."""
    losses = {seed: curve((10, first), (20, 0.1)) for seed, first in enumerate((0.1, 0.1, 0.8))}
    seeds = iter([*losses.values()] * 2)
    flat = curve((10, 0.2), (20, 0.2))
    assert aside(lambda loss: next(seeds), lambda loss: flat) == "Its mean curve is below at 1 of 2 points"


def test_points_below_are_of_the_phase_compared():
    levels = {0.2: 0.5, 0.1: 0.1}  # the loss of 1.7 - 0.9 at the fixed settings, and of 0.9 at the tuned ones
    ours = lambda loss: curve((10, levels[round(loss, 1)]))  # noqa: E731
    assert aside(ours, lambda loss: curve((10, 0.3))) == "Its mean curve is below at 1 of 1 points"


@pytest.mark.parametrize("other", [None, curve((0, 0.5), (30, 0.9))])
def test_without_points_in_common_nothing_is_said_of_curves(other):
    assert aside(lambda loss: curve((0, 0.1), (20, 0.2)), lambda loss: other) == ""
    assert aside(lambda loss: other, lambda loss: curve((0, 0.1), (20, 0.2))) == ""


def test_curves_are_of_the_loss_and_no_aside_on_test():
    claims = claims_of(experiment(CLEAR))
    assert {item.aside for item in claims[ACTIVE_FASTER + TUNED].evidence} == {
        "Its mean curve is below at 2 of 2 points"
    }
    assert {item.aside for item in claims[ACTIVE_FASTER + FIXED].evidence} == {
        "Its mean curve is below at 0 of 2 points"
    }
    assert {item.aside for item in claims[ACTIVE_BETTER].evidence} == {""}


# One comparison


def compared(left, right, quantity=TEST, exact=False, aside=""):
    return Comparison("a", "b", Spread(tuple(left)), Spread(tuple(right), exact=exact), quantity, "tuned", aside)


@pytest.mark.parametrize("freedom", [*range(1, 31), 31, 60, 200])
def test_t_is_students(freedom):
    """Against a bound the degrees of freedom are the seeds less one."""
    values = [0.5 + 0.01 * (seed % 3) for seed in range(freedom + 1)]
    margin = compared(values, (0.1,), exact=True).margin
    t = margin / (np.std(values, ddof=1) / math.sqrt(len(values)))
    assert t == pytest.approx(stats.t.ppf(0.975, freedom))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((0.90, 0.93, 0.85), (0.80, 0.801, 0.799)),
        ((0.90, 0.93, 0.85, 0.91, 0.94), (0.80, 0.83)),
        ((0.9, 0.91), (0.80, 0.85, 0.83, 0.71, 0.60, 0.84, 0.88, 0.75)),
        ((0.9, 0.95, 0.91, 0.97), (0.80, 0.85, 0.83, 0.81, 0.82, 0.84)),
        ([0.9 + 0.001 * (seed % 7) for seed in range(40)], [0.8 + 0.001 * (seed % 5) for seed in range(25)]),
    ],
)
def test_margin_is_welchs(left, right):
    found = stats.ttest_ind(left, right, equal_var=False)
    low, high = found.confidence_interval(0.95)
    for comparison in (compared(left, right), compared(right, left), compared(left, right, LOSS)):
        assert comparison.margin == pytest.approx((high - low) / 2)
        assert comparison.p_value == pytest.approx(found.pvalue)


@pytest.mark.parametrize(
    ("left", "right", "margin"),
    [
        # equal variances and 3 seeds each: 4 degrees of freedom, though floating point may make it 3.9999; sd 0.001
        ((0.899, 0.9, 0.901), (0.799, 0.8, 0.801), 2.77645 * 0.001 * (2 / 3) ** 0.5),
        # one side without variance: 2 degrees of freedom
        ((0.899, 0.9, 0.901), (0.8, 0.8, 0.8), 4.30265 * 0.001 * (1 / 3) ** 0.5),
        ((0.9, 0.9), (0.8, 0.8), 0.0),
    ],
)
def test_margin_by_hand(left, right, margin):
    comparison = compared(left, right)
    assert comparison.margin == pytest.approx(margin, rel=1e-5)
    assert comparison.lead == pytest.approx(0.1)
    assert comparison.verdict == HOLDS


def test_with_a_single_seed_the_margin_is_unknown():
    assert compared((0.9, 0.91), (0.1,)).margin is None
    assert compared((0.9,), (0.1, 0.11)).margin is None
    assert compared((0.9,), (0.1, 0.11)).verdict == UNDECIDED


def test_a_bound_has_no_noise_of_its_own():
    comparison = compared((0.899, 0.9, 0.901), (0.8,), exact=True)
    assert comparison.margin == pytest.approx(4.30265 * 0.001 * (1 / 3) ** 0.5, rel=1e-5)


def test_the_margin_decides():
    """Two seeds 0.02 apart against a bound: the margin is 12.706 * 0.01 = 0.127."""
    seeds = (0.5, 0.52)
    verdicts = [compared(seeds, (bound,), exact=True).verdict for bound in (0.38, 0.40, 0.51, 0.62, 0.64)]
    assert verdicts == [HOLDS, UNDECIDED, UNDECIDED, UNDECIDED, FAILS]
    verdicts = [compared(seeds, (bound,), LOSS, exact=True).verdict for bound in (0.38, 0.51, 0.64)]
    assert verdicts == [FAILS, UNDECIDED, HOLDS]


def test_a_lead_of_nothing_is_none_even_without_noise():
    assert compared((0.5, 0.5), (0.5, 0.5)).verdict == UNDECIDED


def test_a_comparison_in_words():
    comparison = compared((0.1, 0.101, 0.105), (0.3, 0.301, 0.301), LOSS, aside="So it is")
    assert str(comparison) == (
        "a 0.1020 ± 0.0026, b 0.3007 ± 0.0006 (average cumulative 1 - F1, tuned): 0.1987 better, "
        "95% interval ± 0.0062; holds. So it is"
    )
    assert (
        str(compared((0.5,), (0.625,)))
        == "a 0.5000, b 0.6250 (test F1, tuned): 0.1250 worse, a single seed; cannot be said"
    )
    assert "0.0000 better, 95% interval ± 0.0000; cannot be said" in str(compared((0.5, 0.5), (0.5, 0.5)))
    assert str(compared((0.5, 0.5), (0.75, 0.75))).endswith(": 0.2500 worse, 95% interval ± 0.0000; does not hold")


# Seed by seed, and with a correction for the number of comparisons


def spread(values, seeds=None, exact=False):
    values = tuple(values)
    return Spread(values, exact, tuple(range(len(values))) if seeds is None else seeds)


def over_seeds(left, right, **how):
    return Comparison("a", "b", left, right, TEST, "tuned", **how)


LEFT, RIGHT = (0.80, 0.85, 0.90, 0.95), (0.79, 0.842, 0.889, 0.938)


def test_with_the_same_seeds_the_difference_is_taken_seed_by_seed():
    """What the seeds do to both is ten times the difference, and the difference is sure."""
    found = over_seeds(spread(LEFT), spread(RIGHT))
    assert found.paired
    assert found.p_value == pytest.approx(stats.ttest_rel(LEFT, RIGHT).pvalue)
    assert found.verdict == HOLDS
    assert "paired" in str(found)


@pytest.mark.parametrize("seeds", [(1, 2, 3, 4), (), (0, 1, 3, 2)])
def test_other_seeds_are_no_pairs(seeds):
    found = over_seeds(spread(LEFT), spread(RIGHT, seeds))
    assert not found.paired
    assert found.p_value == pytest.approx(stats.ttest_ind(LEFT, RIGHT, equal_var=False).pvalue)
    assert found.verdict == UNDECIDED


def test_a_claim_corrects_for_the_number_of_its_comparisons_whichever_way_they_fall():
    """A difference of p 0.02 counts alone, and not beside two that say nothing."""
    one = over_seeds(spread((0.502, 0.5, 0.505)), spread((0.5,), exact=True))
    gap = stats.t.isf(0.01, 2)  # standard errors
    for sign, verdict in ((1, HOLDS), (-1, FAILS)):
        some = replace(one, left_values=spread(0.5 + sign * gap / 100 + d / 100 for d in (-(3**0.5), 0, 3**0.5)))
        assert some.p_value == pytest.approx(0.02, rel=1e-6)
        nothing = over_seeds(spread((0.4, 0.5, 0.61)), spread((0.5,), exact=True))
        assert [item.verdict for item in corrected([some])] == [verdict]
        assert [item.verdict for item in corrected([some, nothing])] == [verdict, UNDECIDED]
        assert [item.verdict for item in corrected([some, nothing, nothing])] == [UNDECIDED] * 3


def test_a_comparison_of_one_seed_is_not_counted():
    single = over_seeds(spread((0.5,)), spread((0.4,)))
    sure = over_seeds(spread(LEFT), spread(RIGHT))
    assert [item.p_adjusted for item in corrected([single, sure, single])] == [None, None, None]
    assert [item.p_adjusted for item in corrected([sure, single, sure])] == [2 * sure.p_value, None, 2 * sure.p_value]


# As good as


@pytest.mark.parametrize(
    ("lead", "verdict"),
    [(0.0, HOLDS), (0.01, HOLDS), (-0.01, HOLDS), (0.0199, UNDECIDED), (0.05, FAILS), (-0.05, FAILS)],
)
def test_equal_is_what_is_shown_to_be_within_the_margin(lead, verdict):
    found = over_seeds(spread(v + lead for v in RIGHT), spread(v + d for v, d in zip(RIGHT, (*NOISE, 0), strict=True)))
    assert replace(found, equal_within=0.02).verdict == verdict
    assert replace(found, equal_within=0.02, around=1.0).verdict == FAILS
    assert replace(found, equal_within=0.02, around=lead).verdict == HOLDS


def test_a_difference_that_is_not_seen_does_not_make_two_equal():
    found = over_seeds(spread((0.90, 0.95, 0.85, 0.9)), spread((0.95, 0.85, 0.9, 0.91)))
    assert found.verdict == UNDECIDED
    assert replace(found, equal_within=0.02).verdict == UNDECIDED


def test_two_point_active_as_fast_as_sfo():
    values = {**CLEAR, ("first-order", None): 0.905}
    claims = claims_of(experiment(values, good=("fixed", "tuned")))
    assert [claims[title].verdict for title in (AS_FAST + FIXED, AS_FAST + TUNED, AS_GOOD)] == [HOLDS] * 3
    assert claims[AS_GOOD].words == "the only comparison shows it"
    slower = claims_of(experiment({**CLEAR, ("first-order", None): 0.95}, good=("fixed", "tuned")))[AS_GOOD]
    assert (slower.verdict, slower.words) == (FAILS, "worse than that for two-point active against first-order")
    assert not [title for title in claims_of(smt()) if title.startswith("Two-point ACTIVE")]  # the paper has ALL alone


GAIN = "Two-point gains 1.0 BLEU points over SFO, up to 0.2"
EARLY = "Two-point is best on dev within 1M iterations (the paper: about 100k), baseline and comparison later"
IN_DOMAIN = "SZO ends as good as the in-domain model, up to 0.002"
SCORE_AS_GOOD = "SCORE ends as good on test as ACTIVE, for every rule, up to 0.002"


def test_the_gain_over_sfo_is_the_papers():
    assert claims_of(smt())[GAIN].verdict == HOLDS  # 0.273 against 0.263
    assert claims_of(smt({("two-point", "active"): 0.266}))[GAIN].verdict == FAILS
    assert claims_of(smt({("two-point", "active"): 0.280}))[GAIN].verdict == FAILS
    assert GAIN not in claims_of(experiment(CLEAR))


def at_iterations(**best):
    found = []
    for rule, iterations in best.items():
        item = learner(rule.replace("_", "-"), "all", 0.27, n_active=1000.0)
        runs = {
            phase: tuple(
                replace(run, result={**run.result, "best_iteration": iterations[k]}) for k, run in enumerate(mine)
            )
            for phase, mine in item.phases.items()
        }
        found.append(replace(item, phases=runs))
    return claims_of(experiment_of(*found, task="rerank"))[EARLY]


def test_two_point_is_best_early_and_the_others_late():
    late = (3e6, 3.1e6, 3.2e6)
    claim = at_iterations(two_point=(9e4, 1e5, 1.2e5), baseline=late, comparison=late)
    assert claim.verdict == HOLDS
    assert pairs(claim) == [("two-point all", "1M"), ("1M", "baseline all"), ("1M", "comparison all")]
    assert at_iterations(two_point=late, baseline=late, comparison=late).verdict == FAILS
    early = at_iterations(two_point=(9e4, 1e5, 1.2e5), baseline=(1e5, 1.1e5, 2e5), comparison=late)
    assert early.words == "the other way round for 1M against baseline all"


def test_as_good_as_the_in_domain_model_is_up_to_a_margin():
    bounds = {"out-of-domain": {"bleu": 0.257}, "in-domain": {"bleu": 0.2735}}
    claim = claims_of(smt(bounds=bounds))[IN_DOMAIN]
    verdicts = {item.left: item.verdict for item in claim.evidence}
    assert verdicts == {
        "comparison active": FAILS,
        "baseline active": FAILS,
        "two-point active": HOLDS,
        "two-point score": FAILS,
    }


def test_score_as_good_as_active_is_asked_where_features_are_dense():
    claims = claims_of(smt({("two-point", "score"): 0.2735}))
    assert claims[SCORE_AS_GOOD].verdict == HOLDS
    assert claims_of(smt())[SCORE_AS_GOOD].verdict == FAILS  # 0.276 against 0.273
    assert not [title for title in claims_of(experiment(CLEAR)) if "as good on test as ACTIVE" in title]


def test_where_most_features_are_active_the_papers_learners_are_those_with_all():
    """It has no SPARSE there; active is run beside it, and is nothing that the paper speaks of."""
    values = {("first-order", None): 0.263, ("two-point", "active"): 0.1}
    values |= {("two-point", "all"): 0.273, ("baseline", "all"): 0.267, ("comparison", "all"): 0.265}
    found = experiment(values, "rerank", BOUNDS, n_active=907.0, good=("fixed", "tuned"))
    claims = claims_of(found)
    assert pairs(claims[SZO_BEATS]) == [(f"{rule} all", "first-order") for rule in RULES]
    assert pairs(claims[ORDER_ON_TEST]) == ORDER[:2]
    assert pairs(claims[GAIN]) == [("two-point all", "first-order")]
    assert claims[ACTIVE_BETTER].source == "not in the paper"
    assert claims[ACTIVE_BETTER].verdict == FAILS


# Over test inputs


def with_counts(item, right):
    """Accuracy on ten inputs, of which these are right."""
    counts = np.stack((np.array(right), np.ones(len(right), int)), axis=1)
    return replace(
        item,
        phases={
            phase: tuple(replace(run, result={**run.result, "test": np.mean(right)}, counts=counts) for run in runs)
            for phase, runs in item.phases.items()
        },
    )


def on_inputs(left, right):
    sides = [with_counts(learner("two-point", p, 0.5), some) for p, some in (("active", left), ("all", right))]
    return claims_of(experiment_of(*sides, task="text"))[ACTIVE_BETTER]


def test_drawn_test_sets_say_what_the_seeds_cannot():
    """No seed differs, so the seeds are sure; but the lead is one input of ten, or five."""
    one, five = on_inputs([1] * 6 + [0] * 4, [1] * 5 + [0] * 5), on_inputs([1] * 8 + [0] * 2, [1] * 3 + [0] * 7)
    assert one.evidence[0].verdict == five.evidence[0].verdict == HOLDS
    assert one.evidence[0].inputs[0] == 0.0
    assert five.evidence[0].inputs[0] > 0.1
    assert "over drawn test sets not sure for two-point active against two-point all" in one.words
    assert "drawn" not in five.words


def test_without_counts_nothing_is_said_of_test_sets():
    assert all(item.inputs is None for claim in check_claims(experiment(CLEAR)) for item in claim.evidence)
    half = with_counts(learner("two-point", "active", 0.5), [1, 0]), learner("two-point", "all", 0.5)
    assert claims_of(experiment_of(*half, task="text"))[ACTIVE_BETTER].evidence[0].inputs is None
