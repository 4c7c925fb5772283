"""The learner: what a tell does, by hand; ask/tell against run; answers late and out of order; what is refused."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, replace
from types import SimpleNamespace

import numpy as np
import pytest

from sparsezo.errors import SparsezoError, UsageError
from sparsezo.kernels import codes, loop, random
from sparsezo.learner import Learner, workspace_of
from sparsezo.questions import Info, Proposal
from sparsezo.rules import PERTURBATIONS, RULES
from sparsezo.settings import Settings
from sparsezo.tasks.chunking.synthetic import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking

STEPS = 150


def every_combination(step: str) -> list[Settings]:
    found = []
    for rule in (rule for rule in RULES.values() if not rule.asks and rule.name != "supervised"):  # test_asking.py
        for perturb in PERTURBATIONS if rule.zeroth_order else [None]:
            if (step, perturb) != ("adagrad", "all"):
                found.append(Settings(rule.name, perturb, 0.01, 0.1 if perturb else None, step=step, seed=3))
    return found


COMBINATIONS = [*every_combination("constant"), *every_combination("adagrad")]


@pytest.fixture(scope="module", params=[1, 2], ids=["order1", "order2"])
def chunking(request):
    task, corpus = Chunking.fit(chunking_corpus(40, seed=5), order=request.param)
    return task, task.problem(corpus, risk=True), task.gold(corpus), corpus


@pytest.fixture(scope="module")
def problem(chunking):
    return chunking[1]


@pytest.fixture(scope="module")
def gold(chunking):
    return chunking[2]


def simulated(learner: Learner, gold, proposal: Proposal):
    """The feedback that run() computes, through the front door."""
    loss = loop.loss(gold, learner.problem.task, proposal.x, proposal.candidate)
    if proposal.incumbent is None:
        return loss
    return loss, loop.loss(gold, learner.problem.task, proposal.x, proposal.incumbent)


@pytest.mark.parametrize("settings", COMBINATIONS, ids=str)
def test_ask_and_tell_give_what_run_gives_bit_for_bit(problem, gold, settings):
    compiled = Learner(problem, settings)
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
    np.testing.assert_array_equal(*(np.delete(each.state.counts, loop.SILENT) for each in (compiled, by_hand)))
    assert by_hand.average_loss == pytest.approx(total / STEPS)  # of a step without a question nobody tells the loss


@pytest.mark.parametrize("settings", [*COMBINATIONS, Settings("supervised", None, 0.01, None)], ids=str)
def test_what_a_learner_does_not_read_is_not_made(chunking, settings):
    """K where weights are perturbed, places where each active weight has a draw or a sum of its own; the same bits."""
    task, _, gold, corpus = chunking
    problems = [task.problem(corpus, risk=True) for _ in range(2)]
    problems[1].private(factors=True, places=True)
    learners = [Learner(problem, settings) for problem in problems]
    for learner in learners:
        learner.run(gold, STEPS)
    np.testing.assert_array_equal(*(learner.state.W for learner in learners))
    inputs = problems[0].inputs
    assert (inputs.chol.size > 0) == (inputs.inverse.size > 0) == (settings.perturb is not None)
    spread = settings.perturb in ("active", "all") or settings.step == "adagrad"
    assert (inputs.slots.size > 0) == (inputs.cols.size > 0) == spread
    np.testing.assert_array_equal(*(problem.n_score for problem in problems))


@pytest.mark.parametrize("settings", [each for each in COMBINATIONS if each.perturb], ids=str)
def test_only_the_ratio_of_h_and_mu_squared_counts(problem, gold, settings):
    """From 0 with MAP, doubled weights decode alike, and powers of two cost no rounding (docs/theory.md, "Scale")."""
    small = Learner(problem, settings)
    large = Learner(problem, replace(settings, h=4 * settings.h, mu=2 * settings.mu))
    small.run(gold, STEPS)
    large.run(gold, STEPS)
    assert small.updates > 0
    same = np.array_equal(2 * small.weights(), large.weights()) and small.average_loss == large.average_loss
    assert same == settings.scale_free


NOT_FINITE = "step {}: the scores or the loss are not finite; `h` {} is probably too large, try a tenth of it"


def test_weights_that_run_away_stop_the_run_with_the_step(problem, gold):
    learner = Learner(problem, Settings("two-point", "active", 1e37, 0.1))
    with pytest.raises(SparsezoError) as caught:
        learner.run(gold, 1000)
    assert 0 < learner.step < 1000
    assert str(caught.value) == NOT_FINITE.format(learner.step, "1e+37")


def test_scores_that_are_not_finite_stop_ask_with_the_step(problem):
    learner = Learner(problem, Settings(h=0.25))
    learner.ask()
    learner.ask()
    learner.state.W[:] = np.nan
    following = learner.next_input()
    with pytest.raises(SparsezoError) as caught:
        learner.ask()
    assert str(caught.value) == NOT_FINITE.format(2, "0.25")
    assert learner.next_input() == following  # a question that was not put does not count


def test_what_cannot_be_asked(problem):
    with pytest.raises(UsageError) as caught:
        Learner(problem, Settings("supervised", None, 0.01, None)).ask()
    assert str(caught.value) == "rule supervised asks for no feedback; use run() with gold"
    with pytest.raises(UsageError) as caught:
        Learner(problem, Settings(criterion="annealed")).ask()
    message = "the annealed criterion needs the losses of all outputs; ask() goes with criterion map"
    assert str(caught.value) == message


@pytest.mark.parametrize("within", ["a", -1, 1.5, True, [3]])
def test_within_is_a_number_of_inputs(problem, within):
    learner = Learner(problem, Settings())
    with pytest.raises(UsageError) as caught:
        learner.ask(within=within)
    assert str(caught.value) == f"`within` {within}: must be a whole number, 0 or more"
    assert learner.ask(within=0) is None
    assert learner.ask(within=np.int64(40)).step == 0


# What a tell does, by hand


def tell_all(learner, answers):
    return [learner.tell(learner.ask(), answer).c for answer in answers]


# h / mu = 0.15; by the table of design 2
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
        ("first-order with baseline", [0.9, 0.2, 0.4], [0, 0.03 * 0.35, 0.03 * 0.1]),
        ("cross-entropy", [0.5, 0.25, 1, 0], [0.015, 0.0225, 0, 0.03]),
        ("pairwise", [(0.7, 0.3), (0.25, 0.75), (0.5, 0.5)], [-0.012, 0, 0]),
        ("pairwise", ["candidate", "incumbent", "tie", True, False], [0, -0.03, 0, 0, -0.03]),
    ],
)
def test_c_is_what_the_table_says(chunking, rule, answers, expected):
    rule, _, baseline = rule.partition(" with ")
    mu = 0.2 if RULES[rule].zeroth_order else None
    learner = Learner(chunking[1], Settings(rule, mu and "score", 0.03, mu, baseline=bool(baseline)))
    assert tell_all(learner, answers) == pytest.approx(expected, abs=1e-15)
    assert learner.updates == sum(c != 0 for c in expected)
    assert learner.step == len(answers)


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
def test_a_late_answer_moves_as_if_told_at_once(problem, perturb):
    """Whatever happened since, the move is c times the direction of the proposal's own step and input."""
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


# What the weights are


@pytest.mark.parametrize("perturb", [*PERTURBATIONS])
def test_start_weights_stay_the_caller_s(problem, gold, perturb):
    W = some_weights(problem)
    kept = W.copy()
    one, other = (Learner(problem, Settings(perturb=perturb, h=0.01, seed=seed), W) for seed in (1, 2))
    np.testing.assert_array_equal(one.weights(), kept)
    one.run(gold, 50)
    one.tell(one.ask(), (0.0, 1.0))
    one.weights()
    np.testing.assert_array_equal(W, kept)
    np.testing.assert_array_equal(other.weights(), kept)


def test_what_is_paid_is_drawn_from_the_stream_of_folds(problem):
    """Blocks of 1,024 rows, each with the normals of one more fold; a saved run relies on it."""
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


def test_the_next_input_is_the_one_that_is_asked(problem):
    """It depends on what was asked, not on what was answered; asking for an input by name counts as a step."""
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


def test_a_proposal_keeps_its_outputs(problem):
    """They are the proposal's own, not the room that the next ask works in."""
    learner = Learner(problem, Settings("symmetric", "score", 0.1, 0.1), some_weights(problem))
    proposals = [learner.ask(x) for x in range(10)]
    again = Learner(problem, Settings("symmetric", "score", 0.1, 0.1), some_weights(problem))
    for x, proposal in enumerate(proposals):
        same = again.ask(x)
        assert proposal.candidate.tolist() == same.candidate.tolist()
        assert proposal.incumbent.tolist() == same.incumbent.tolist()
        assert proposal.candidate.size == proposal.incumbent.size == np.diff(problem.output_start)[x]


def test_there_is_room_for_every_input(problem):
    L = problem.n_labels
    sizes = {"n_labels": L, "dtype": np.float64, "max_outputs": problem.max_outputs}
    room = workspace_of(SimpleNamespace(max_rows=5, max_columns=3, **sizes))
    shapes = {name: array.shape for name, array in room._asdict().items()}
    longest = (int(np.diff(problem.output_start).max()),)
    rows, columns = (5, L), (3, L)
    outputs = {"y": longest, "incumbent": longest, "more": (codes.MOST_POINTS - 2, *longest)}
    expected = {"S": rows, "T": rows, "V": rows, "Z": rows, "D": rows, "U": columns, "row": (L,)}
    assert shapes == {**expected, **outputs, "losses": (codes.MOST_POINTS,), "q": (4,)}
    wide = workspace_of(SimpleNamespace(max_rows=5, max_columns=8, **sizes))
    assert (wide.Z.shape, wide.U.shape, wide.S.shape) == ((8, L), (8, L), (5, L))
    for name, array in room._asdict().items():
        assert array.dtype == (np.int32 if name in ("y", "incumbent", "more", "q") else np.float64)
    smallest = workspace_of(SimpleNamespace(max_rows=0, max_columns=0, **{**sizes, "max_outputs": 0}))
    assert {array.shape for array in smallest} == {
        (1, L),
        (L,),
        (5,),
        (4,),
        (6, 5),
        (8,),
    }  # outputs have room for five candidates


# Late answers of the rules that sample


@pytest.mark.parametrize("rule", ["first-order", "pairwise", "cross-entropy"])
def test_a_late_answer_is_weighed_by_how_likely_its_output_was(problem, rule):
    settings, W = Settings(rule, None, 0.5, None, seed=4), some_weights(problem)
    answer = (0.75, 0.25) if rule == "pairwise" else 0.25
    prompt, late = Learner(problem, settings, W), Learner(problem, settings, W)
    proposal = late.ask(3)
    full = prompt.tell(prompt.ask(3), answer).c
    drift = np.random.default_rng(1).normal(0, 0.05, W.shape)
    late.state.W[...] += drift.astype(W.dtype)  # others have answered
    loop.perturb(loop.way_of(late._params), late._inputs, late._params, 3, proposal.step, late.state, late.workspace)
    now = late._drawn(3, proposal.step, proposal.candidate.copy(), (proposal.outputs[-1]).copy())
    info = late.tell(proposal, answer)
    assert info.c / full == pytest.approx(np.exp(now - proposal.log_chance))
    assert info.c != full


def test_a_proposal_keeps_how_likely_it_was_through_json_and_bytes(problem):
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
def test_an_open_proposal_without_its_probability_is_no_state_of_ours(problem, wrong):
    """Such as one that an earlier version wrote: its answer could not be weighed."""
    learner = Learner(problem, Settings("first-order", None, 0.5, None))
    proposal = learner.ask(2)
    learner._open[proposal.step] = replace(proposal, log_chance=wrong)
    with pytest.raises(SparsezoError):
        Learner.from_bytes(learner.to_bytes(), problem)


def test_an_annealed_run_has_two_average_losses(problem, gold):
    """Of the expected losses that it minimises, and of the best outputs at w + mu u, which are MAP's."""
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
