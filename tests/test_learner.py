"""The learner: what a tell does, by hand; ask/tell against run; answers late and out of order; what is refused."""

from __future__ import annotations

import json
import math
from dataclasses import FrozenInstanceError, replace
from types import SimpleNamespace

import numpy as np
import pytest

from sparsezo.decoding import workspace_of
from sparsezo.errors import SparsezoError, UsageError
from sparsezo.kernels import loop, random
from sparsezo.learner import Learner, predict
from sparsezo.optimizer import Asked
from sparsezo.perturbations import PERTURBATIONS
from sparsezo.proposals import Info, Proposal
from sparsezo.rules import RULES
from sparsezo.settings import Settings
from sparsezo.tasks.chunking.generate import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking

STEPS = 150


def every_combination(step: str) -> list[Settings]:
    found = []
    for rule in (rule for rule in RULES.values() if not rule.asks):  # these are in test_asking.py
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
    if settings.rule == "supervised":
        with pytest.raises(UsageError, match="supervised"):
            compiled.ask()
        return
    compiled.run(gold, answers=STEPS)
    assert compiled.answers == compiled.questions == STEPS <= compiled.step
    assert compiled.updates > 0
    by_hand, total = Learner(problem, settings), 0.0
    for _ in range(STEPS):
        proposal = by_hand.ask()
        feedback = simulated(by_hand, gold, proposal)
        total += feedback[0] if isinstance(feedback, tuple) else feedback
        by_hand.tell(proposal, feedback)
        assert not np.array_equal(proposal.candidate, proposal.incumbent)  # nobody needs to be asked about these
    np.testing.assert_array_equal(compiled.weights(), by_hand.weights())
    np.testing.assert_array_equal(compiled.state.q, by_hand.state.q)
    np.testing.assert_array_equal(compiled.state.counts[:-1], by_hand.state.counts[:-1])
    assert by_hand.average_loss == pytest.approx(total / STEPS)  # of a step without a question nobody tells the loss


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
    ("rule", "feedback", "takes"),
    [
        ("two-point", 0.5, "the losses of the two outputs"),
        ("two-point", "candidate", "the losses of the two outputs"),
        ("two-point", True, "the losses of the two outputs"),
        ("two-point", (0.1, 0.2, 0.3), "the losses of the two outputs"),
        ("symmetric", 0.5, "the losses of the two outputs"),
        ("symmetric", np.True_, "the losses of the two outputs"),
        ("symmetric", (0.1,), "the losses of the two outputs"),
        ("comparison", 0.5, "whether the candidate is better"),
        ("comparison", "Candidate", "whether the candidate is better"),
        ("preference", "both", "which output is better"),
        ("preference", 1, "which output is better"),
        ("baseline", (0.1, 0.2), "the loss of the output"),
        ("baseline", True, "the loss of the output"),
        ("baseline", "tie", "the loss of the output"),
    ],
)
def test_feedback_of_the_wrong_kind_is_refused(chunking, rule, feedback, takes):
    learner = Learner(chunking[1], Settings(rule, "score", 0.01, 0.1))
    with pytest.raises(UsageError) as caught:
        learner.tell(learner.ask(), feedback)
    assert str(caught.value) == f"feedback {feedback!r}: rule {rule} takes {takes}"
    assert (learner.step, learner.updates) == (0, 0)


@pytest.mark.parametrize(
    ("rule", "feedback"),
    [
        ("two-point", (math.nan, 0.0)),
        ("two-point", (0.0, math.nan)),
        ("symmetric", (0.5, math.inf)),
        ("comparison", (0.5, math.nan)),
        ("preference", (-math.inf, 0.5)),
        ("baseline", math.nan),
        ("baseline", np.float32(np.inf)),
    ],
)
def test_a_loss_that_is_not_finite_is_refused_and_nothing_is_counted(chunking, rule, feedback):
    learner = Learner(chunking[1], Settings(rule, "score", 0.01, 0.1))
    proposal = learner.ask()
    with pytest.raises(SparsezoError) as caught:
        learner.tell(proposal, feedback)
    assert str(caught.value) == f"feedback {feedback!r}: a loss must be finite"
    assert caught.value.exit_code == 1
    assert (learner.step, learner.updates, learner.average_loss) == (0, 0, 0.0)
    assert not learner.weights().any()


NOT_FINITE = "step {}: the scores or the loss are not finite; `h` {} is probably too large, try a tenth of it"


def test_weights_that_run_away_stop_the_run_with_the_step(chunking):
    _, problem, gold, _ = chunking
    learner = Learner(problem, Settings("two-point", "active", 1e37, 0.1))
    with pytest.raises(SparsezoError) as caught:
        learner.run(gold, 1000)
    assert 0 < learner.step < 1000
    assert str(caught.value) == NOT_FINITE.format(learner.step, "1e+37")


def test_scores_that_are_not_finite_stop_ask_with_the_step(chunking):
    _, problem, _, _ = chunking
    learner = Learner(problem, Settings(h=0.25))
    learner.ask()
    learner.ask()
    learner.state.W[:] = np.nan
    following = learner.next_input()
    with pytest.raises(SparsezoError) as caught:
        learner.ask()
    assert str(caught.value) == NOT_FINITE.format(2, "0.25")
    assert learner.next_input() == following  # a question that was not put does not count


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_predict_refuses_scores_that_are_not_finite(chunking, value):
    """One weight is enough, of a feature that the last input alone has."""
    _, problem, _, _ = chunking
    W = np.zeros((problem.n_features, problem.n_labels), np.float32)
    predict(problem, W)
    last = problem.inputs.cols[problem.inputs.col_start[-2] :]
    others = problem.inputs.cols[: problem.inputs.col_start[-2]]
    W[np.setdiff1d(last, others)[0]] = value
    with pytest.raises(SparsezoError) as caught:
        predict(problem, W)
    message = "the model's weights give scores that are not finite; train it again with a smaller h"
    assert str(caught.value) == message


@pytest.mark.parametrize("x", [-1, -40, 40, 1000])
def test_an_input_that_is_not_there(chunking, x, monkeypatch):
    """It is refused before compiled code, which checks no bounds, sees it."""
    learner = Learner(chunking[1], Settings())
    with monkeypatch.context() as patched:
        patched.setattr(loop, "propose", None)
        with pytest.raises(UsageError) as caught:
            learner.ask(x)
    assert str(caught.value) == f"there is no input {x}; inputs are 0 to 39"
    assert [learner.ask(x).step for x in (0, 39)] == [0, 1]


def test_what_cannot_be_asked(chunking):
    _, problem, _, _ = chunking
    with pytest.raises(UsageError) as caught:
        Learner(problem, Settings("supervised", None, 0.01, None)).ask()
    assert str(caught.value) == "rule supervised asks for no feedback; use run() with gold"
    with pytest.raises(UsageError) as caught:
        Learner(problem, Settings(criterion="annealed")).ask()
    message = "the annealed criterion needs the losses of all outputs; ask() goes with criterion map"
    assert str(caught.value) == message


@pytest.mark.parametrize("within", ["a", -1, 1.5, True, [3]])
def test_within_is_a_number_of_inputs(chunking, within):
    _, problem, _, _ = chunking
    learner = Learner(problem, Settings())
    with pytest.raises(UsageError) as caught:
        learner.ask(within=within)
    assert str(caught.value) == f"`within` {within}: must be a whole number, 0 or more"
    assert learner.ask(within=0) is None
    assert learner.ask(within=np.int64(40)).step == 0


@pytest.mark.parametrize("gold", [(), (1, 2), [1], None, "gold", np.zeros(3)], ids=repr)
def test_gold_is_what_a_task_gives(chunking, gold):
    _, problem, _, _ = chunking
    with pytest.raises(UsageError) as caught:
        Learner(problem, Settings()).run(gold, 10)
    assert str(caught.value) == f"gold is a {type(gold).__name__}; give what task.gold(data) gives"


# What a tell does, by hand


def tell_all(learner, answers):
    return [learner.tell(learner.ask(), answer).c for answer in answers]


# h / mu = 0.15; by the table of DESIGN 2
@pytest.mark.parametrize(
    ("rule", "answers", "expected"),
    [
        ("two-point", [(0.7, 0.3), (0.25, 0.75), (0.5, 0.5), (1, 0)], [-0.06, 0.075, 0, -0.15]),
        ("symmetric", [(0.7, 0.3), (0.25, 0.75), (0.5, 0.5), (0, 1)], [-0.03, 0.0375, 0, 0.075]),
        ("comparison", [(0.7, 0.3), (0.25, 0.75), (0.5, 0.5)], [0, 0.15, 0]),
        ("comparison", ["candidate", "incumbent", "tie", True, False], [0.15, 0, 0, 0.15, 0]),
        ("preference", [(0.7, 0.3), (0.25, 0.75), (0.5, 0.5)], [-0.15, 0.15, 0]),
        ("preference", ["candidate", "incumbent", "tie", True, False], [0.15, -0.15, 0, 0.15, -0.15]),
        ("preference", [np.True_, np.False_], [0.15, -0.15]),
        ("two-point", [(np.float32(0.75), np.float64(0.25)), (np.int64(0), 1)], [-0.075, 0.15]),
        ("baseline", [0.9, 0.2, 0.4, 1], [0, 0.15 * 0.35, 0.15 * 0.1, -0.15 * 0.375]),
        ("baseline", [np.float32(0.5), np.float64(0.25)], [0, 0.15 * 0.125]),
        ("first-order", [0.5, 0.25, 0, 1], [-0.015, -0.0075, 0, -0.03]),
        ("cross-entropy", [0.5, 0.25, 1, 0], [0.015, 0.0225, 0, 0.03]),
        ("pairwise", [(0.7, 0.3), (0.25, 0.75), (0.5, 0.5)], [-0.012, 0, 0]),
        ("pairwise", ["candidate", "incumbent", "tie", True, False], [0, -0.03, 0, 0, -0.03]),
    ],
)
def test_c_is_what_the_table_says(chunking, rule, answers, expected):
    mu = 0.2 if RULES[rule].zeroth_order else None
    learner = Learner(chunking[1], Settings(rule, mu and "score", 0.03, mu))
    assert tell_all(learner, answers) == pytest.approx(expected, abs=1e-15)
    assert learner.updates == sum(c != 0 for c in expected)
    assert learner.step == len(answers)


def test_first_order_may_subtract_the_mean_loss(chunking):
    learner = Learner(chunking[1], Settings("first-order", None, 0.03, None, baseline=True))
    assert tell_all(learner, [0.9, 0.2, 0.4]) == pytest.approx([0, 0.03 * 0.35, 0.03 * 0.1], abs=1e-15)


def test_what_a_tell_reports(chunking):
    """The proposal's own step, however late; the mean of the candidates' losses; nothing that can be changed."""
    learner = Learner(chunking[1], Settings("two-point", "score", 0.03, 0.2))
    first, second, third = learner.ask(), learner.ask(), learner.ask()
    assert (learner.step, learner.average_loss) == (0, 0.0)
    assert learner.tell(third, (0.75, 0.25)) == Info(2, pytest.approx(-0.075), 0.75)
    assert learner.tell(first, (0.25, 0.25)) == Info(0, 0.0, 0.5)
    assert (learner.step, learner.updates, learner.average_loss) == (2, 1, 0.5)
    info = learner.tell(second, (0.125, 1.0))
    assert info == Info(1, pytest.approx(0.13125), 0.375)
    assert (learner.step, learner.updates, learner.average_loss) == (3, 2, 0.375)
    with pytest.raises(FrozenInstanceError):
        info.c = 0.0


def some_weights(problem, seed=8):
    shape = problem.n_features, problem.n_labels
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def move_of(learner, proposal, answer):
    """(c, how W moved) by one tell."""
    before = learner.weights().copy()
    c = learner.tell(proposal, answer).c
    return c, learner.weights() - before


def active_rows(problem, x):
    return np.sort(problem.inputs.cols[problem.inputs.col_start[x] : problem.inputs.col_start[x + 1]])


@pytest.mark.parametrize("perturb", [*PERTURBATIONS])
def test_the_answer_gives_the_length_and_not_the_direction(chunking, perturb):
    _, problem, _, _ = chunking
    x, W = 7, some_weights(chunking[1])
    directions = []
    for answer, c_expected in (((0.0, 1.0), 1.0), ((0.875, 0.5), -0.375)):
        learner = Learner(problem, Settings("two-point", perturb, 0.5, 0.5, seed=6), W)
        c, move = move_of(learner, learner.ask(x), answer)
        assert c == c_expected
        directions.append((move / c)[active_rows(problem, x)])
    np.testing.assert_allclose(directions[0], directions[1], atol=1e-5)
    assert np.linalg.norm(directions[0]) > 1


@pytest.mark.parametrize("perturb", ["active", "score"])
def test_only_active_rows_move(chunking, perturb):
    _, problem, _, _ = chunking
    learner = Learner(problem, Settings("two-point", perturb, 0.5, 0.5), some_weights(problem))
    _, move = move_of(learner, learner.ask(7), (0.0, 1.0))
    assert np.flatnonzero(move.any(axis=1)).tolist() == active_rows(problem, 7).tolist()


def test_all_moves_the_active_rows_as_active_does_and_owes_the_others(chunking):
    _, problem, _, _ = chunking
    active, everything = (
        Learner(problem, Settings("two-point", perturb, 0.5, 0.5, seed=6), some_weights(problem))
        for perturb in ("active", "all")
    )
    for learner in (active, everything):
        learner.tell(learner.ask(7), (0.0, 0.5))
    np.testing.assert_array_equal(active.state.W, everything.state.W)
    assert everything.state.sums[loop.Q_TOTAL] == 0.25
    sleeping = np.setdiff1d(np.arange(problem.n_features), active_rows(problem, 7))
    debts = (everything.weights() - active.state.W)[sleeping]
    assert (debts != 0).all()
    assert not (everything.weights() - active.state.W)[active_rows(problem, 7)].any()
    assert abs(debts.std() - 0.5) < 5 * 0.5 / math.sqrt(2 * debts.size)


@pytest.mark.parametrize("perturb", [*PERTURBATIONS])
@pytest.mark.parametrize("rule", ["two-point", "symmetric", "comparison", "preference", "baseline"])
def test_outputs_are_decoded_where_the_step_goes(chunking, rule, perturb):
    """u is what the step then moves by: the candidate stands at w + mu u, what it is compared with at w or w - mu u."""
    _, problem, _, _ = chunking
    W, mu = some_weights(problem), 0.75
    learner = Learner(problem, Settings(rule, perturb, 2 * mu, mu, seed=11))
    differ = 0
    for x in range(12):
        learner.weights()  # pays what is owed
        learner.state.W[:] = W
        if rule == "baseline":
            learner.tell(learner.ask(39), 1.0)  # so that the mean is not the loss itself
            learner.weights()  # pays what is owed
            learner.state.W[:] = W
        proposal = learner.ask(x)
        c, move = move_of(learner, proposal, 0.0 if rule == "baseline" else (0.0, 1.0))
        assert c > 0
        u = move / np.float32(c)

        def decoded(weights, own=slice(*problem.output_start[x : x + 2])):
            return predict(problem, weights)[own].tolist()

        assert proposal.candidate.tolist() == decoded(W + np.float32(mu) * u)
        if rule == "baseline":
            assert proposal.incumbent is None
            differ += proposal.candidate.tolist() != decoded(W)
        else:
            rival = W - np.float32(mu) * u if rule == "symmetric" else W
            assert proposal.incumbent.tolist() == decoded(rival)
            assert rule != "symmetric" or proposal.incumbent.tolist() != decoded(W)
            differ += proposal.candidate.tolist() != proposal.incumbent.tolist()
    assert differ > 6


def test_first_order_shows_one_output_and_takes_it_back_from_the_proposal(chunking):
    """The direction is d log p(y) / dW at the output of the proposal, not at one sampled anew."""
    _, problem, _, _ = chunking
    settings, W = Settings("first-order", None, 1.0, None, seed=2), some_weights(problem)
    told, changed = Learner(problem, settings, W), Learner(problem, settings, W)
    proposal = told.ask(3)
    assert proposal.incumbent is None
    assert proposal.candidate.size == np.diff(problem.output_start)[3]
    asked, y = changed.ask(3), (proposal.candidate + 1) % 3
    # as if this one had been sampled, just as likely as it is
    other = replace(asked, candidate=y, log_chance=changed._drawn(3, asked.step, y, None))
    changed._open[other.step] = Asked(other)
    c, move = move_of(told, proposal, 1.0)
    _, move_other = move_of(changed, other, 1.0)
    assert c == -1.0
    # marginals cancel in the difference: what is left are counts of attributes with tags, whole numbers
    counts = move - move_other
    np.testing.assert_allclose(counts, counts.round(), atol=1e-4)
    assert np.abs(counts).max() >= 1


@pytest.mark.parametrize("perturb", ["active", "score"])
def test_adagrad_s_move_by_hand(chunking, perturb):
    """With g = direction c / h: q += g^2 and W += h g / sqrt(1 + q), DESIGN 2.4."""
    _, problem, _, _ = chunking
    settings = Settings("two-point", perturb, 0.3, 0.5)
    plain, adagrad = Learner(problem, settings), Learner(problem, replace(settings, step="adagrad"))
    q = np.zeros((problem.n_features, problem.n_labels))
    for answer in ((0.0, 1.0), (0.75, 0.25)):
        c, move = move_of(plain, plain.ask(4), answer)
        assert c == pytest.approx(-0.6 * (answer[0] - answer[1]))
        _, got = move_of(adagrad, adagrad.ask(4), answer)
        g = move.astype(float) / 0.3
        q += g * g
        np.testing.assert_allclose(got, 0.3 * g / np.sqrt(1 + q), atol=1e-5)
    np.testing.assert_allclose(adagrad.state.q, q, rtol=1e-4, atol=1e-5)
    assert plain.state.q.size == 0


@pytest.mark.parametrize("perturb", [*PERTURBATIONS])
def test_a_late_answer_moves_as_if_told_at_once(chunking, perturb):
    """Whatever happened since, the move is c times the direction of the proposal's own step and input."""
    _, problem, _, _ = chunking
    settings = Settings("two-point", perturb, 0.25, 0.5, seed=9)
    directions = []
    for step in range(3):
        alone = Learner(problem, settings)
        for _ in range(step):
            alone.ask()
        proposal = alone.ask()
        directions.append((proposal, move_of(alone, proposal, (0.0, 2.0))[1]))  # c = 1
    late = Learner(problem, settings)
    proposals = [late.ask(), late.ask(), late.ask()]
    assert [proposal.step for proposal in proposals] == [0, 1, 2]
    for number, answer, c_expected in ((2, (0.0, 1.0), 0.5), (1, (0.5, 0.5), 0.0), (0, (1.0, 0.25), -0.375)):
        proposal, direction = directions[number]
        assert (proposals[number].x, proposals[number].step) == (proposal.x, number)
        c, move = move_of(late, proposals[number], answer)
        assert c == c_expected
        own = active_rows(problem, proposal.x)
        np.testing.assert_allclose(move[own], c * direction[own], atol=1e-5)
        if perturb != "all" or c == 0:
            assert not np.delete(move, own, axis=0).any()
    assert (late.step, late.updates) == (3, 2)
    assert not np.allclose(directions[0][1], directions[1][1], atol=0.1)


def test_the_same_input_twice_has_two_directions(chunking):
    _, problem, _, _ = chunking
    learner = Learner(problem, Settings("two-point", "active", 0.5, 0.5))
    moves = [move_of(learner, learner.ask(3), (0.0, 1.0))[1][active_rows(problem, 3)].ravel() for _ in range(2)]
    assert abs(np.corrcoef(moves)[0, 1]) < 5 / math.sqrt(moves[0].size)


# What the weights are


@pytest.mark.parametrize("perturb", [*PERTURBATIONS])
def test_start_weights_stay_the_caller_s(chunking, perturb):
    _, problem, gold, _ = chunking
    W = some_weights(problem)
    kept = W.copy()
    one, other = (Learner(problem, Settings(perturb=perturb, h=0.01, seed=seed), W) for seed in (1, 2))
    np.testing.assert_array_equal(one.weights(), kept)
    one.run(gold, 50)
    one.tell(one.ask(), (0.0, 1.0))
    one.weights()
    np.testing.assert_array_equal(W, kept)
    np.testing.assert_array_equal(other.weights(), kept)


def test_start_weights_of_another_type_or_shape(chunking):
    _, problem, gold, _ = chunking
    n, L = problem.n_features, problem.n_labels
    assert L > 1
    W = some_weights(problem).astype(np.float64)
    for given in (W, W.tolist()):
        learner = Learner(problem, Settings(), given)
        assert (learner.state.W.dtype, learner.state.W.shape) == (np.float32, (n, L))
        assert learner.state.W.flags.c_contiguous
        np.testing.assert_array_equal(learner.weights(), W.astype(np.float32))
    learner.run(gold, 5)
    for wrong in (W[1:], W.ravel(), W.T):
        with pytest.raises(UsageError, match="the weights to start from have shape"):
            Learner(problem, Settings(), wrong)


def test_without_start_weights_it_starts_at_0(chunking):
    _, problem, _, _ = chunking
    doubles = Learner(replace(problem, dtype=np.float64), Settings(step="adagrad"))
    singles = Learner(problem, Settings(step="adagrad"))
    for learner, dtype in ((singles, np.float32), (doubles, np.float64)):
        for array in (learner.state.W, learner.state.q):
            assert array.dtype == dtype
            assert array.shape == (problem.n_features, problem.n_labels)
            assert not array.any()


@pytest.mark.parametrize(
    ("settings", "q", "Q_row"),
    [
        (Settings(perturb="all"), 0, 1),
        (Settings(perturb="active"), 0, 0),
        (Settings(perturb="score"), 0, 0),
        (Settings(perturb="active", step="adagrad"), 1, 0),
        (Settings("first-order", None, 0.01, None), 0, 0),
        (Settings("pairwise", None, 0.01, None), 0, 0),
    ],
    ids=str,
)
def test_the_state_has_what_the_settings_need(chunking, settings, q, Q_row):
    _, problem, _, _ = chunking
    n, L = problem.n_features, problem.n_labels
    state = Learner(problem, settings).state
    assert state.q.shape == (n * q, L)
    assert state.Q_row.shape == (n * Q_row,)
    assert state.Q_row.dtype == state.sums.dtype == np.float64
    assert state.counts.dtype == np.int64
    assert state.counts.tolist() == [0] * loop.N_COUNTS
    assert state.sums.tolist() == [0.0] * loop.N_SUMS
    assert not state.Q_row.any()


def test_reading_the_weights_pays_what_sleeping_rows_are_owed_once(chunking):
    _, problem, gold, _ = chunking
    learner = Learner(problem, Settings(perturb="all", h=0.05, mu=0.5, seed=4), some_weights(problem))
    learner.run(gold, 10)
    state = learner.state
    before, Q, Q_row = state.W.copy(), float(state.sums[loop.Q_TOTAL]), state.Q_row.copy()
    owed = Q - Q_row
    assert Q > 0
    assert 0 < (owed > 0).mean() < 1
    read = learner.weights()
    np.testing.assert_array_equal(read, state.W)
    assert read is not state.W  # a copy
    paid = read - before
    assert not paid[owed == 0].any()
    normals = paid[owed > 0] / np.sqrt(owed[owed > 0])[:, None]
    assert normals.shape[0] > 1024  # more than one block of rows
    assert len(np.unique(normals.round(3))) > 1000
    error = 1 / math.sqrt(normals.size)
    assert abs(normals.mean()) < 5 * error
    assert abs((normals**2).mean() - 1) < 5 * math.sqrt(2) * error
    assert (state.Q_row == Q).all()
    after = read.copy()
    np.testing.assert_array_equal(learner.weights(), after)
    assert state.sums[loop.Q_TOTAL] == Q


def test_two_readings_pay_with_different_numbers(chunking):
    """Debts of two stretches of a run are independent, within a reading from block to block too."""
    _, problem, _, _ = chunking
    learner = Learner(problem, Settings("two-point", "all", 0.5, 0.5, seed=4))
    sleeping = np.setdiff1d(np.arange(problem.n_features), np.r_[active_rows(problem, 0), active_rows(problem, 1)])
    payments = []
    for x in (0, 1):
        before = learner.weights().copy()
        learner.tell(learner.ask(x), (0.0, 1.0))
        payments.append((learner.weights() - before)[sleeping].ravel())
    half = payments[0].size // 2
    limit = 5 / math.sqrt(half)
    assert abs(np.corrcoef(payments)[0, 1]) < limit
    assert abs(np.corrcoef(payments[0][:half], payments[0][half : 2 * half])[0, 1]) < limit
    assert len(np.unique(payments[0])) > 0.9 * payments[0].size


def test_what_is_paid_is_drawn_from_the_stream_of_folds(chunking):
    """Blocks of 1,024 rows, each with the normals of one more fold; a saved run relies on it."""
    _, problem, _, _ = chunking
    learner = Learner(problem, Settings("two-point", "all", 0.5, 0.5, seed=4))
    learner.tell(learner.ask(0), (0.0, 1.0))
    before, L = learner.state.W.copy(), problem.n_labels
    paid = learner.weights() - before
    key = random.stream_key(4, random.DEBT)
    sleeping = np.setdiff1d(np.arange(problem.n_features), active_rows(problem, 0))
    for block, first in enumerate(range(0, problem.n_features, 1024)):
        rows = range(first, min(first + 1024, problem.n_features))
        normals = np.empty(len(rows) * L, np.float32)
        random.fill_normals(key, block, normals)
        own = np.isin(rows, sleeping)
        np.testing.assert_allclose(paid[rows][own], normals.reshape(-1, L)[own], atol=1e-5)  # c = 1
    assert learner.state.counts[loop.SETTLEMENTS] == block + 1


@pytest.mark.parametrize("perturb", ["active", "score"])
def test_reading_the_weights_changes_nothing_else(chunking, perturb):
    _, problem, gold, _ = chunking
    learner = Learner(problem, Settings(perturb=perturb, h=0.05))
    learner.run(gold, 30)
    before, counts, sums = learner.state.W.copy(), learner.state.counts.copy(), learner.state.sums.copy()
    np.testing.assert_array_equal(learner.weights(), learner.state.W)
    np.testing.assert_array_equal(learner.state.W, before)
    np.testing.assert_array_equal(learner.state.counts, counts)
    np.testing.assert_array_equal(learner.state.sums, sums)


def test_the_next_input_is_the_one_that_is_asked(chunking):
    """It depends on what was asked, not on what was answered; asking for an input by name counts as a step."""
    _, problem, _, _ = chunking
    learner = Learner(problem, Settings(seed=5))
    key = random.stream_key(5, random.INPUTS)
    wanted = [int(random.below(key, step, 40)) for step in range(6)]
    assert len(set(wanted)) > 3
    got = []
    for step in range(6):
        assert learner.next_input() == learner.next_input() == wanted[step]
        proposal = learner.ask(0 if step == 2 else None)
        got.append(proposal.x)
        assert proposal.step == step
    assert got == [0 if step == 2 else x for step, x in enumerate(wanted)]
    assert isinstance(learner.next_input(), int)


def test_a_proposal_keeps_its_outputs(chunking):
    """They are the proposal's own, not the room that the next ask works in."""
    _, problem, _, _ = chunking
    learner = Learner(problem, Settings("symmetric", "score", 0.1, 0.1), some_weights(problem))
    proposals = [learner.ask(x) for x in range(10)]
    again = Learner(problem, Settings("symmetric", "score", 0.1, 0.1), some_weights(problem))
    for x, proposal in enumerate(proposals):
        same = again.ask(x)
        assert proposal.candidate.tolist() == same.candidate.tolist()
        assert proposal.incumbent.tolist() == same.incumbent.tolist()
        assert proposal.candidate.size == proposal.incumbent.size == np.diff(problem.output_start)[x]


def test_run_counts_steps_updates_and_losses(chunking):
    """Against a tell for each step, with the losses added up here."""
    _, problem, gold, _ = chunking
    learner, by_hand = (Learner(problem, Settings("two-point", "score", 0.01, 0.1, seed=3)) for _ in range(2))
    assert (learner.step, learner.updates, learner.average_loss) == (0, 0, 0.0)
    total, moves = 0.0, 0
    for _ in range(40):
        proposal = by_hand.ask()
        F_plus, F_other = simulated(by_hand, gold, proposal)
        by_hand.tell(proposal, (F_plus, F_other))
        total, moves = total + F_plus, moves + (F_plus != F_other)
    learner.run(gold, 15)
    learner.run(gold, 25)
    assert (learner.step, learner.updates) == (40, moves)
    assert 0 < moves < 40
    assert learner.average_loss == pytest.approx(total / 40, rel=1e-12)
    assert learner.next_input() == by_hand.next_input()


def test_there_is_room_for_every_input(chunking):
    _, problem, _, _ = chunking
    L = problem.n_labels
    sizes = {"n_labels": L, "dtype": np.float64, "max_outputs": problem.max_outputs}
    room = workspace_of(SimpleNamespace(max_rows=5, max_columns=3, **sizes))
    shapes = {name: array.shape for name, array in room._asdict().items()}
    longest = (int(np.diff(problem.output_start).max()),)
    rows, columns = (5, L), (3, L)
    expected = {"S": rows, "T": rows, "V": rows, "Z": rows, "D": rows, "U": columns, "row": (L,)}
    assert shapes == {**expected, "y": longest, "incumbent": longest, "q": (4,)}
    wide = workspace_of(SimpleNamespace(max_rows=5, max_columns=8, **sizes))
    assert (wide.Z.shape, wide.U.shape, wide.S.shape) == ((8, L), (8, L), (5, L))
    for name, array in room._asdict().items():
        assert array.dtype == (np.int32 if name in ("y", "incumbent", "q") else np.float64)
    smallest = workspace_of(SimpleNamespace(max_rows=0, max_columns=0, **{**sizes, "max_outputs": 0}))
    assert {array.shape for array in smallest} == {(1, L), (L,), (1,), (4,)}


# Late answers of the rules that sample


@pytest.mark.parametrize("rule", ["first-order", "pairwise", "cross-entropy"])
def test_a_late_answer_is_weighed_by_how_likely_its_output_was(chunking, rule):
    _, problem, _, _ = chunking
    settings, W = Settings(rule, None, 0.5, None, seed=4), some_weights(problem)
    answer = (0.75, 0.25) if rule == "pairwise" else 0.25
    prompt, late = Learner(problem, settings, W), Learner(problem, settings, W)
    proposal = late.ask(3)
    full = prompt.tell(prompt.ask(3), answer).c
    drift = np.random.default_rng(1).normal(0, 0.05, W.shape)
    late.state.W[...] += drift.astype(W.dtype)  # others have answered
    loop.perturb(late._inputs, late._params, 3, proposal.step, late.state, late.workspace)
    now = late._drawn(3, proposal.step, proposal.candidate.copy(), (proposal.outputs[-1]).copy())
    info = late.tell(proposal, answer)
    assert info.c / full == pytest.approx(np.exp(now - proposal.log_chance))
    assert info.c != full


def test_a_proposal_keeps_how_likely_it_was_through_json_and_bytes(chunking):
    _, problem, _, _ = chunking
    learner = Learner(problem, Settings("first-order", None, 0.5, None), some_weights(problem))
    proposal = learner.ask(2)
    assert proposal.log_chance < 0
    assert Proposal.from_json(json.loads(json.dumps(proposal.as_json()))).log_chance == proposal.log_chance
    again = Learner.from_bytes(learner.to_bytes(), problem)
    (reopened,) = again.open_proposals
    assert reopened.log_chance == proposal.log_chance
    assert again.tell(reopened, 0.5).c == learner.tell(proposal, 0.5).c == -0.25
    perturbed = Learner(problem, Settings("preference", "score", 0.1, 0.5)).ask(2)
    assert perturbed.log_chance is None
    assert "log_chance" not in perturbed.as_json()


@pytest.mark.parametrize("wrong", [None, 0.5, "much"])
def test_an_open_proposal_without_its_probability_is_no_state_of_ours(chunking, wrong):
    """Such as one that an earlier version wrote: its answer could not be weighed."""
    _, problem, _, _ = chunking
    learner = Learner(problem, Settings("first-order", None, 0.5, None))
    proposal = learner.ask(2)
    learner._open[proposal.step] = Asked(replace(proposal, log_chance=wrong))
    with pytest.raises(SparsezoError):
        Learner.from_bytes(learner.to_bytes(), problem)


def test_an_annealed_run_has_two_average_losses(chunking):
    """Of the expected losses that it minimises, and of the best outputs at w + mu u, which are MAP's."""
    _, problem, gold, _ = chunking
    plain = Settings("two-point", "score", 1e-30, 0.5, seed=6)  # too small a step to change an output
    annealed, map_ = Learner(problem, replace(plain, criterion="annealed")), Learner(problem, plain)
    for learner in (annealed, map_):
        learner.run(gold, 60)
    assert map_.map_average_loss is None
    assert annealed.map_average_loss == pytest.approx(map_.average_loss, rel=1e-12)
    assert abs(annealed.average_loss - map_.average_loss) > 1e-3
    cold = Learner(problem, replace(plain, criterion="annealed", gamma=1e4))
    cold.run(gold, 60)
    assert cold.average_loss == pytest.approx(cold.map_average_loss, abs=1e-3)  # as gamma grows
    best = Learner(problem, Settings("supervised", None, 1e-30, None, criterion="annealed"))
    best.run(gold, 60)
    assert best.map_average_loss > best.average_loss * 0.1
