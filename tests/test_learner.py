"""The learner: ask/tell against run, every combination, answers late and out of order, what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sparsezo.errors import SparsezoError, UsageError
from sparsezo.kernels import loop
from sparsezo.learner import Learner, Proposal, predict
from sparsezo.perturbations import PERTURBATIONS
from sparsezo.rules import RULES
from sparsezo.settings import Settings
from sparsezo.tasks.chunking.generate import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking

STEPS = 150


def every_combination(step: str) -> list[Settings]:
    found = []
    for rule in RULES.values():
        for perturb in PERTURBATIONS if rule.zeroth_order else [None]:
            if (step, perturb) != ("adagrad", "all"):
                found.append(Settings(rule.name, perturb, 0.01, 0.1 if perturb else None, step=step, seed=3))
    return found


COMBINATIONS = [*every_combination("constant"), *every_combination("adagrad")]


@pytest.fixture(scope="module", params=[1, 2], ids=["order1", "order2"])
def chunking(request):
    task, corpus = Chunking.fit(chunking_corpus(40, seed=5), order=request.param)
    return task, task.problem(corpus, risk=True), task.gold(corpus), corpus


def simulated(learner: Learner, gold, proposal: Proposal):
    """The feedback that run() computes, through the front door."""
    loss = loop.loss(gold, learner.problem.task, proposal.x, proposal.candidate)
    if proposal.incumbent is None:
        return loss
    return loss, loop.loss(gold, learner.problem.task, proposal.x, proposal.incumbent)


@pytest.mark.parametrize("settings", COMBINATIONS, ids=str)
def test_ask_and_tell_give_what_run_gives_bit_for_bit(chunking, settings):
    _, problem, gold, _ = chunking
    compiled = Learner(problem, settings)
    compiled.run(gold, STEPS)
    assert compiled.step == STEPS
    assert compiled.updates > 0
    if settings.rule == "supervised":
        with pytest.raises(UsageError, match="supervised"):
            compiled.ask()
        return
    by_hand = Learner(problem, settings)
    for _ in range(STEPS):
        proposal = by_hand.ask()
        by_hand.tell(proposal, simulated(by_hand, gold, proposal))
    np.testing.assert_array_equal(compiled.weights(), by_hand.weights())
    np.testing.assert_array_equal(compiled.state.q, by_hand.state.q)
    assert compiled.average_loss == by_hand.average_loss


@pytest.mark.parametrize("perturb", [*PERTURBATIONS])
def test_run_in_pieces_is_one_run(chunking, perturb):
    _, problem, gold, _ = chunking
    whole, pieces = (Learner(problem, Settings(perturb=perturb, h=0.01)) for _ in range(2))
    whole.run(gold, 100)
    for steps in (1, 30, 69):
        pieces.run(gold, steps)
    np.testing.assert_array_equal(whole.weights(), pieces.weights())


@pytest.mark.parametrize("settings", [each for each in COMBINATIONS if each.perturb], ids=str)
def test_only_the_ratio_of_h_and_mu_squared_counts(chunking, settings):
    """From 0 with MAP, doubled weights decode alike, and powers of two cost no rounding (docs/theory.md, "Scale")."""
    _, problem, gold, _ = chunking
    small = Learner(problem, settings)
    large = Learner(problem, replace(settings, h=4 * settings.h, mu=2 * settings.mu))
    small.run(gold, STEPS)
    large.run(gold, STEPS)
    assert small.updates > 0
    same = np.array_equal(2 * small.weights(), large.weights()) and small.average_loss == large.average_loss
    assert same == settings.scale_free


@pytest.mark.parametrize("rule", ["comparison", "preference"])
def test_one_bit_is_enough(chunking, rule):
    """comparison and preference learn the same from "which is better" as from the two losses."""
    _, problem, gold, _ = chunking
    losses, bits = (Learner(problem, Settings(rule, "score", 0.01, 0.1)) for _ in range(2))
    for _ in range(STEPS):
        proposal = losses.ask()
        F_plus, F_other = simulated(losses, gold, proposal)
        losses.tell(proposal, (F_plus, F_other))
        better = "candidate" if F_plus < F_other else ("incumbent" if F_plus > F_other else "tie")
        bits.tell(bits.ask(), better)
    np.testing.assert_array_equal(losses.weights(), bits.weights())


def test_a_proposal_is_rebuilt_from_its_step_and_input(chunking):
    """Answered late, after others, it moves the weights by c times its own direction, whatever happened since."""
    _, problem, _, _ = chunking
    settings = Settings("two-point", "score", 0.01, 0.1)
    alone = Learner(problem, settings)
    alone.tell(alone.ask(), (1.0, 0.0))
    direction = alone.weights().copy()
    late = Learner(problem, settings)
    first, second, third = late.ask(), late.ask(), late.ask()
    assert [first.step, second.step, third.step] == [0, 1, 2]
    late.tell(third, (0.0, 1.0))
    late.tell(second, (0.5, 0.5))
    before = late.weights().copy()
    late.tell(first, (1.0, 0.0))
    np.testing.assert_allclose(late.weights() - before, direction, atol=1e-6)
    assert late.step == 3


def test_inputs_do_not_depend_on_the_learner(chunking):
    """All learners of one seed see the same inputs; another seed sees others."""
    _, problem, gold, _ = chunking
    seen = {}
    for settings in (Settings(seed=1), Settings("first-order", None, 0.01, None, seed=1), Settings(seed=2)):
        learner = Learner(problem, settings)
        xs = []
        for _ in range(30):
            proposal = learner.ask()
            xs.append(proposal.x)
            learner.tell(proposal, simulated(learner, gold, proposal))
        seen[settings.rule, settings.seed] = xs
    assert seen["two-point", 1] == seen["first-order", 1] != seen["two-point", 2]


def test_it_learns(chunking):
    """From feedback alone, from nothing: training F1 ends far above where it starts."""
    task, problem, gold, _ = chunking
    learner = Learner(problem, Settings("two-point", "score", 0.01, 0.1))
    start = task.quality(problem, gold, predict(problem, learner.weights()))
    learner.run(gold, 20_000)
    assert task.quality(problem, gold, predict(problem, learner.weights())) > start + 0.5


def test_annealed_learns_too(chunking):
    task, problem, gold, _ = chunking
    learner = Learner(problem, Settings("two-point", "score", 0.05, 0.1, criterion="annealed", gamma=1.0))
    learner.run(gold, 3_000)
    assert task.quality(problem, gold, predict(problem, learner.weights())) > 0.8
    with pytest.raises(UsageError, match="annealed"):
        learner.ask()


def test_baseline_compares_with_the_mean_so_far(chunking):
    """c = -h (F+ - mean of the F+ so far) / mu, the present one included, as the paper writes it."""
    _, problem, _, _ = chunking
    learner = Learner(problem, Settings("baseline", "score", 0.01, 0.1))
    losses = [0.9, 0.2, 0.4]
    cs = [learner.tell(learner.ask(), loss).c for loss in losses]
    means = np.cumsum(losses) / np.arange(1, 4)
    np.testing.assert_allclose(cs, -0.01 * (np.array(losses) - means) / 0.1, atol=1e-15)


@pytest.mark.parametrize(
    ("rule", "feedback"),
    [
        ("two-point", 0.5),
        ("two-point", "candidate"),
        ("two-point", (0.1, 0.2, 0.3)),
        ("comparison", 0.5),
        ("preference", "both"),
        ("baseline", (0.1, 0.2)),
        ("baseline", True),
    ],
)
def test_feedback_of_the_wrong_kind_is_refused(chunking, rule, feedback):
    learner = Learner(chunking[1], Settings(rule, "score", 0.01, 0.1))
    with pytest.raises(UsageError, match=f"rule {rule} takes"):
        learner.tell(learner.ask(), feedback)


def test_a_loss_that_is_not_finite_is_refused(chunking):
    learner = Learner(chunking[1], Settings("two-point", "score", 0.01, 0.1))
    with pytest.raises(SparsezoError, match="finite"):
        learner.tell(learner.ask(), (float("nan"), 0.0))
    assert learner.step == 0


def test_weights_that_run_away_stop_the_run_with_the_step(chunking):
    _, problem, gold, _ = chunking
    learner = Learner(problem, Settings("two-point", "active", 1e37, 0.1))
    with pytest.raises(SparsezoError, match=r"step \d+: .* not finite; h 1e\+37"):
        learner.run(gold, 1000)


def test_an_input_that_is_not_there(chunking):
    with pytest.raises(UsageError, match="there is no input 40"):
        Learner(chunking[1], Settings()).ask(40)
