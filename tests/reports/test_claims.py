"""The claims' verdicts on results made for the purpose: clear, the other way round, too noisy, missing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sparsezo.reports.claims import FAILS, HOLDS, UNDECIDED, Comparison, Quantity, check_claims
from sparsezo.reports.results import Curve, LearnerRuns, ReportedExperiment, ReportedRun, Spread

TEST = Quantity("test", "test F1", False, ("tuned", "fixed"))
LOSS = Quantity("average_loss", "average cumulative 1 - F1", True, ("fixed", "tuned"))
NOISE = (-0.001, 0.0, 0.001)
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


def learner(rule, perturb, test, *, noise=NOISE, phases=("fixed", "tuned"), n_active=100.0):
    """Its average loss is 1 - test."""
    settings = {"rule": rule, "perturb": perturb, "h": 0.01, "mu": 0.01 if perturb else None, "step": "constant"}
    points = np.array([0, 50, 100])
    runs = {
        phase: tuple(
            ReportedRun(
                f"{rule} {perturb}",
                phase,
                seed,
                settings,
                100,
                {"test": test + e, "average_loss": 1 - test - e, "n": 1000, "n_active": n_active},
                {},
                {},
                None,
                Curve(points, np.array([1.0, 1.1 - test, 1 - test]) - e, np.full(3, test)),
            )
            for seed, e in enumerate(noise)
        )
        for phase in phases
    }
    return LearnerRuns(f"{rule} {perturb}" if perturb else rule, rule, perturb, True, runs)


def experiment(values, task="chunking", bounds=None, **how):
    learners = tuple(learner(rule, perturb, value, **how) for (rule, perturb), value in values.items())
    runs = tuple(run for item in learners for runs in item.phases.values() for run in runs)
    return ReportedExperiment(
        Path(), task, task, "bleu" if task == "rerank" else "f1", runs, learners, bounds=bounds or {}
    )


def verdicts(experiment):
    return {claim.title: claim.verdict for claim in check_claims(experiment)}


def test_all_hold_on_clear_results():
    claims = check_claims(experiment(CLEAR))
    assert [claim.verdict for claim in claims] == [HOLDS] * len(claims)
    assert [len(claim.evidence) for claim in claims] == [3, 3, 3, 4, 4, 4, 6, 3, 3, 3]
    assert all(claim.evidence and claim.words for claim in claims)
    assert "2 of 2 points" in str(claims[0].evidence[0])


def test_one_pair_the_other_way_round_and_it_does_not_hold():
    found = verdicts(experiment({**CLEAR, ("baseline", "active"): 0.815}))
    assert found["ACTIVE ends better on test than ALL, for every rule"] == FAILS
    assert found["two-point > baseline > comparison on test"] == FAILS
    assert found["SFO stays above every SZO learner of the paper"] == HOLDS
    words = next(claim.words for claim in check_claims(experiment({**CLEAR, ("baseline", "active"): 0.815})))
    assert words == "the other way round for baseline active against baseline all"


def test_within_noise_nothing_can_be_said():
    found = check_claims(experiment(CLEAR, noise=(-0.04, 0.0, 0.04)))
    active = next(claim for claim in found if claim.title.startswith("ACTIVE ends better"))
    assert active.verdict == UNDECIDED
    assert "within seed noise" in active.words


def test_a_single_seed_says_nothing_of_chance():
    claims = check_claims(experiment(CLEAR, noise=(0.0,)))
    assert {claim.verdict for claim in claims} == {UNDECIDED}
    assert all("a single seed" in claim.words for claim in claims)


def test_a_missing_learner_leaves_it_open_and_is_named():
    values = {key: value for key, value in CLEAR.items() if key != ("comparison", "all")}
    claims = {claim.title: claim for claim in check_claims(experiment(values))}
    active = claims["ACTIVE learns faster than ALL, for every rule, fixed settings"]
    assert active.verdict == UNDECIDED
    assert "comparison all" in active.words
    assert len(active.evidence) == 2


def test_nothing_at_all():
    claims = check_claims(experiment({}))
    assert {claim.verdict for claim in claims} == {UNDECIDED}
    assert all("nothing to compare" in claim.words for claim in claims)


def test_learners_of_another_kind_are_not_the_papers():
    """Adagrad rows must not stand for the paper's learners."""
    values = {key: value for key, value in CLEAR.items() if key != ("two-point", "active")}
    base = experiment(values)
    other = learner("two-point", "active", 0.99)
    adagrad = LearnerRuns(other.name, other.rule, other.perturb, False, other.phases)
    found = verdicts(ReportedExperiment(Path(), "x", "chunking", "f1", base.runs, (*base.learners, adagrad)))
    assert found["ACTIVE ends better on test than ALL, for every rule"] == UNDECIDED
    assert found["SFO stays above every SZO learner of the paper"] == HOLDS


def test_phases_are_never_mixed_in_a_comparison():
    tuned = [
        learner("two-point", "active", 0.9, phases=("tuned",)),
        learner("two-point", "all", 0.8, phases=("fixed",)),
    ]
    mixed = ReportedExperiment(Path(), "x", "chunking", "f1", (), tuple(tuned))
    claim = next(claim for claim in check_claims(mixed) if claim.title.startswith("ACTIVE ends"))
    assert claim.verdict == UNDECIDED
    assert "in the same phase" in claim.words


def smt(**values):
    szo = {("comparison", "active"): 0.265, ("baseline", "active"): 0.267, ("two-point", "active"): 0.273}
    szo |= {("two-point", "score"): 0.276, ("first-order", None): values.pop("first_order", 0.263)}
    bounds = {"out-of-domain": {"bleu": 0.257}, "in-domain": {"bleu": 0.284}, "oracle": {"bleu": 0.4}}
    noise = (-0.0002, 0.0, 0.0002)
    return check_claims(experiment(szo, "rerank", bounds, noise=noise, n_active=1000.0))


def test_smt_against_first_order_and_bounds():
    claims = {claim.title: claim for claim in smt()}
    assert claims["Every SZO learner of the paper beats SFO on SMT"].verdict == HOLDS
    improved = claims["SZO improves on the out-of-domain model it starts from"]
    assert improved.verdict == HOLDS
    two_point = next(item for item in improved.evidence if item.left == "two-point active")
    assert two_point.aside == "59% of the way to the in-domain model"
    claims = {claim.title: claim for claim in smt(first_order=0.280)}
    assert claims["Every SZO learner of the paper beats SFO on SMT"].verdict == FAILS


def test_where_every_feature_is_active_there_is_nothing_to_compare_with_all():
    claims = smt()
    assert claims[0].verdict == UNDECIDED
    assert "ACTIVE is ALL in law" in claims[0].words


@pytest.mark.parametrize(
    ("left", "right", "margin"),
    [
        # Welch with equal variances and 3 seeds each: 4 degrees of freedom, t 2.776; sd 0.001
        ((0.899, 0.9, 0.901), (0.799, 0.8, 0.801), 2.776 * 0.001 * (2 / 3) ** 0.5),
        # one side without variance: 2 degrees of freedom
        ((0.899, 0.9, 0.901), (0.8, 0.8, 0.8), 4.303 * 0.001 * (1 / 3) ** 0.5),
        ((0.9, 0.9), (0.8, 0.8), 0.0),
    ],
)
def test_margin_is_welchs(left, right, margin):
    comparison = Comparison("a", "b", Spread(left), Spread(right), TEST, "tuned")
    assert comparison.margin == pytest.approx(margin, rel=1e-6)
    assert comparison.lead == pytest.approx(0.1)
    assert comparison.verdict == HOLDS


def test_a_bound_has_no_noise_of_its_own():
    comparison = Comparison("a", "b", Spread((0.899, 0.9, 0.901)), Spread((0.8,), exact=True), TEST, "tuned")
    assert comparison.margin == pytest.approx(4.303 * 0.001 * (1 / 3) ** 0.5, rel=1e-6)


def test_a_lower_loss_leads():
    comparison = Comparison("a", "b", Spread((0.1, 0.101)), Spread((0.3, 0.301)), LOSS, "fixed")
    assert comparison.lead == pytest.approx(0.2)
    assert comparison.verdict == HOLDS
    assert "0.2000 better" in str(comparison)
