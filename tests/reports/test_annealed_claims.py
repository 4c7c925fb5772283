"""What the paper says of the annealed criterion, checked against runs; and MAP's claims do without its rows."""

from __future__ import annotations

from dataclasses import replace

import pytest
from test_claims import CLEAR, experiment, experiment_of, learner

from sparsezo.reports.claims import check_claims
from sparsezo.reports.comparisons import FAILS, HOLDS, UNDECIDED

SIMILAR_TITLE = "The annealed criterion ends as good as MAP on test, up to 0.02, for every rule and perturbation"
APPROACHES = "The annealed criterion approaches MAP as gamma grows"


def annealed(rule, perturb, level, **how):
    plain = learner(rule, perturb, level, plain=False, phases=("tuned",), **how)
    name = f"{plain.name} annealed"
    settings = {"rule": rule, "perturb": perturb, "criterion": "annealed", "gamma": 3.0, "h": 0.1, "mu": 0.1}
    runs = tuple(replace(run, learner=name, settings=settings) for run in plain.phases["tuned"])
    return replace(plain, name=name, phases={"tuned": runs}, annealed=True)


def trial(rule, h, gamma, seed, expected, best):
    """A run of tuning with both of its average losses."""
    run = annealed(rule, "score", 0.9).phases["tuned"][0]
    settings = {**run.settings, "h": h, "gamma": gamma}
    result = {"average_loss": expected, "map_average_loss": best}
    return replace(run, phase="tune", seed=seed, settings=settings, result=result)


def with_annealed(difference, noise=(-0.0004, 0.0, 0.0004), runs=()):
    base = experiment(CLEAR)
    rows = [
        annealed(rule, perturb, value + difference, noise=noise) for (rule, perturb), value in CLEAR.items() if perturb
    ]
    found = experiment_of(*base.learners, *rows)
    return replace(found, runs=(*found.runs, *runs))


def claim_of(found, title):
    return next(claim for claim in check_claims(found) if claim.title == title)


@pytest.mark.parametrize(
    ("difference", "noise", "verdict"),
    [
        (0.004, (-0.0004, 0.0, 0.0004), HOLDS),
        (-0.004, (-0.0004, 0.0, 0.0004), HOLDS),
        (0.06, (-0.0004, 0.0, 0.0004), FAILS),  # better is not similar either
        (-0.06, (-0.0004, 0.0, 0.0004), FAILS),
        (0.0, (-0.02, 0.0, 0.02), UNDECIDED),  # seeds differ too much to tell
        (0.0195, (-0.0004, 0.0, 0.0004), UNDECIDED),  # near, and the interval goes beyond
    ],
)
def test_similar_is_shown_where_the_whole_interval_is_near(difference, noise, verdict):
    claim = claim_of(with_annealed(difference, noise), SIMILAR_TITLE)
    assert claim.verdict == verdict
    if verdict == FAILS:
        assert claim.words.startswith("better than that for" if difference > 0 else "worse than that for")
    assert len(claim.evidence) == 9
    assert {item.quantity.key for item in claim.evidence} == {"test"}


def test_no_claim_about_map_looks_at_annealed_rows():
    before = check_claims(experiment(CLEAR))
    after = check_claims(with_annealed(-0.5))
    assert [str(claim) for claim in after[: len(before)]] == [str(claim) for claim in before]
    assert [claim.title for claim in after[len(before) :]] == [SIMILAR_TITLE, APPROACHES]


def test_bounds_are_for_map_rows():
    values = {"out-of-domain": {"bleu": 0.2}, "in-domain": {"bleu": 0.95}}
    base = experiment(CLEAR, task="rerank", bounds=values)
    rows = [annealed("two-point", "score", 0.5)]
    found = experiment_of(*base.learners, *rows, task="rerank", bounds=values)
    claim = next(claim for claim in check_claims(found) if "out-of-domain" in claim.title)
    assert not any("annealed" in item.left for item in claim.evidence)


def gaps(*by_gamma):
    """Trials at gamma 1, 10, 100 whose two losses are so far apart, for two learners and three h."""
    return [
        trial(rule, h, 10.0**k, 0, 0.5 + gap * (1 + h), 0.5)
        for rule in ("two-point", "baseline")
        for h in (0.1, 0.2, 0.3)
        for k, gap in enumerate(by_gamma)
    ]


def test_it_approaches_map_where_the_two_losses_come_together():
    claim = claim_of(with_annealed(0.0, runs=gaps(0.1, 0.03, 0.001)), APPROACHES)
    assert (claim.verdict, claim.words) == (HOLDS, "all 2 comparisons show it")
    assert [(item.left, item.right) for item in claim.evidence] == [("gamma 10", "gamma 1"), ("gamma 100", "gamma 10")]
    assert all(item.paired and item.p_adjusted >= item.p_value for item in claim.evidence)
    assert claim_of(with_annealed(0.0, runs=gaps(0.1, 0.03, 0.06)), APPROACHES).verdict == FAILS
    assert claim_of(with_annealed(0.0), APPROACHES).verdict == UNDECIDED


def test_a_distance_that_is_gone_cannot_shrink():
    runs = gaps(0.1, 0.03, 0.00001, 0.00001)
    claim = claim_of(with_annealed(0.0, runs=runs), APPROACHES)
    assert (claim.verdict, len(claim.evidence)) == (HOLDS, 2)


def test_a_distance_below_counts_as_one_above():
    """The best outputs' loss may be the larger one."""
    runs = [
        trial("two-point", h, 10.0**k, 0, 0.5 - gap, 0.5 + h)
        for h in (0.1, 0.2)
        for k, gap in enumerate((0.2, 0.1, 0.05))
    ]
    assert claim_of(with_annealed(0.0, runs=runs), APPROACHES).verdict == HOLDS
