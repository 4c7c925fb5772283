"""Steps in batches: all of a batch evaluated at the same weights, then applied in their order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sparsezo.errors import DivergedError, UsageError
from sparsezo.kernels import batching, loop
from sparsezo.learner import Learner
from sparsezo.optimizer import Optimizer
from sparsezo.settings import Settings
from sparsezo.tasks.chunking.generate import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking

B = 7
PLAIN = Settings("two-point", "score", 0.01, 0.1, seed=4)
COMPARED = [
    PLAIN,
    Settings("symmetric", "active", 0.01, 0.1),
    Settings("comparison", "score", 0.01, 0.1),
    Settings("preference", "active", 0.05, 0.2, step="adagrad"),
    Settings("two-point", "score", 0.1, 0.3, step="adagrad"),
]


@pytest.fixture(scope="module")
def chunking():
    task, train = Chunking.fit(chunking_corpus(40, seed=1), only="NP")
    return task.problem(train, risk=True), task.gold(train)


def loss(problem, gold, x, y):
    return float(loop.loss(gold, problem.task, x, y))


def ask_all_then_tell(learner, gold, batch):
    """A batch, literally: nothing moves before the last of its steps has been asked."""
    asked = [learner.ask(within=1) for _ in range(batch)]
    for proposal in filter(None, asked):
        told = (loss(learner.problem, gold, proposal.x, y) for y in (proposal.candidate, proposal.incumbent))
        learner.tell(proposal, tuple(told))


@pytest.mark.parametrize("settings", COMPARED, ids=str)
def test_a_batch_is_asking_all_of_it_before_telling_any(chunking, settings):
    problem, gold = chunking
    literal, compiled = Learner(problem, settings), Learner(problem, replace(settings, batch=B))
    for _ in range(12):
        ask_all_then_tell(literal, gold, B)
    compiled.run(gold, 12 * B)
    assert literal.updates == compiled.updates > 12
    np.testing.assert_array_equal(compiled.state.W, literal.state.W)
    np.testing.assert_array_equal(compiled.state.q, literal.state.q)
    for count in (loop.ASKED, loop.STEP, loop.QUESTIONS, loop.ANSWERS, loop.PASSED):
        assert compiled.state.counts[count] == literal.state.counts[count]


def moves_from(learner, gold, settings):
    """What each step of the next batch would do to W and to the sums if it came first."""
    for k in range(B):
        alone = Learner(learner.problem, replace(settings, batch=1))
        for mine, its in zip(alone.state, learner.state, strict=True):
            mine[...] = its
        alone.state.counts[loop.ASKED] += k
        alone.run(gold, 1)
        yield alone.state.W.astype(float) - learner.state.W, alone.state.sums - learner.state.sums


@pytest.mark.parametrize("rule", ["two-point", "baseline"])
@pytest.mark.parametrize("more", [{}, {"criterion": "annealed"}, {"feedback": "rating:5,0.1,0"}], ids=str)
def test_the_steps_of_a_batch_are_those_that_each_would_be_as_the_first(chunking, rule, more):
    """So baseline compares with the mean of what came before the batch, and of the step itself."""
    problem, gold = chunking
    settings = Settings(rule, "score", 0.01, 0.1, batch=B, **more)
    learner = Learner(problem, settings)
    learner.run(gold, 5 * B)
    W, sums = learner.state.W.astype(float), learner.state.sums.copy()
    moves, told = zip(*moves_from(learner, gold, settings), strict=True)
    learner.run(gold, B)
    np.testing.assert_allclose(learner.state.W - W, sum(moves), atol=2e-6)
    np.testing.assert_allclose(learner.state.sums - sums, sum(told), atol=1e-8)


@pytest.mark.parametrize("settings", [*COMPARED, Settings("baseline", "active", 0.01, 0.1)], ids=str)
def test_batches_of_one_step_are_the_plain_loop(chunking, settings):
    problem, gold = chunking
    plain, batched = Learner(problem, settings), Learner(problem, settings)
    plain.run(gold, 60)
    parts = batched.parts(gold)
    assert batching.run(batching.room_for(1), *parts, 60, 2**62, batched.state, batched.workspace)
    near = 1e-6 if settings.rule == "baseline" else 0  # its sum of losses is rounded
    np.testing.assert_allclose(batched.state.W, plain.state.W, rtol=0, atol=near)
    np.testing.assert_array_equal(batched.state.counts, plain.state.counts)
    np.testing.assert_allclose(batched.state.sums, plain.state.sums, rtol=1e-8)


def test_a_run_that_is_cut_between_batches_is_the_same(chunking):
    problem, gold = chunking
    once, cut = (Learner(problem, replace(PLAIN, batch=B)) for _ in range(2))
    once.run(gold, 10 * B + 3)  # the last one is shorter
    for steps in (3 * B, B, 6 * B + 3):
        cut.run(gold, steps)
    for mine, its in zip(cut.state, once.state, strict=True):
        np.testing.assert_array_equal(mine, its)
    assert once.step == 10 * B + 3


def test_a_batch_ends_at_a_multiple_of_its_size_wherever_the_run_began(chunking):
    problem, gold = chunking
    learner, literal = Learner(problem, replace(PLAIN, batch=B)), Learner(problem, PLAIN)
    learner.run(gold, 3)
    learner.run(gold, 2 * B - 3)
    for size in (3, B - 3, B):
        ask_all_then_tell(literal, gold, size)
    np.testing.assert_array_equal(learner.state.W, literal.state.W)


def test_a_run_by_answers_ends_with_the_batch_that_has_the_last_one(chunking):
    problem, gold = chunking
    learner = Learner(problem, replace(PLAIN, batch=B))
    learner.run(gold, answers=20)
    assert 20 <= learner.answers < 20 + B
    assert learner.step % B == 0


def test_scores_that_are_not_finite_stop_the_batch_before_it_moves_anything(chunking):
    problem, gold = chunking
    learner = Learner(problem, replace(PLAIN, batch=B))
    learner.run(gold, B)
    learner.state.W[...] = np.inf
    before = [part.copy() for part in learner.state]
    with pytest.raises(DivergedError, match=f"^step {B}: "):
        learner.run(gold, B)
    for mine, its in zip(learner.state, before, strict=True):
        np.testing.assert_array_equal(mine, its)


@pytest.mark.parametrize(
    ("batch", "N"), [(1, 40), (32, 40), (33, 1), (33, 40), (300, 256), (1000, 257), (999, 100_000)]
)
def test_the_steps_of_a_batch_take_turns_by_input(chunking, batch, N):
    learner = Learner(chunking[0], replace(PLAIN, batch=max(batch, 2)))
    room, params = batching.room_for(batch), learner._params
    for first in (0, 5 * batch):
        batching.arrange(params, N, first, first + batch, room)
        inputs = [batching.input_of(params, first + k, N) for k in range(batch)]
        expected = sorted(range(batch), key=inputs.__getitem__)  # keeps the order of steps with the same input
        np.testing.assert_array_equal(room.turns, [(k, inputs[k]) for k in expected])


def test_what_moves_is_put_into_the_order_of_steps(chunking):
    learner = Learner(chunking[0], replace(PLAIN, batch=50))
    room, params = batching.room_for(50), learner._params
    moved = np.random.default_rng(3).permutation(50)[:20]
    room.tally[batching.MOVES] = 20
    room.at[:20] = [(k, batching.input_of(params, 100 + k, 40)) for k in moved]
    room.c[:20] = 1 + moved
    assert batching.in_order(params, 40, 100, 150, room)
    np.testing.assert_array_equal(room.at[:20, 0], np.sort(moved))
    np.testing.assert_array_equal(room.at[:20, 1], [batching.input_of(params, 100 + k, 40) for k in np.sort(moved)])
    np.testing.assert_array_equal(room.c[:20], 1 + np.sort(moved))


@pytest.mark.parametrize("settings", [*COMPARED, Settings("baseline", "active", 0.01, 0.1)], ids=str)
@pytest.mark.parametrize("criterion", ["map", "annealed"])
def test_turns_of_one_input_are_what_each_would_be_alone(chunking, settings, criterion):
    """What they share is computed once, in a batch that sees each input several times; a turn alone shares nothing."""
    problem, gold = chunking
    learner = Learner(problem, replace(settings, batch=200, criterion=criterion))
    learner.run(gold, 200)
    together, alone = batching.room_for(200), batching.room_for(200)
    *parts, N = learner.parts(gold)
    for batch in (together, alone):
        batching.arrange(parts[-1], N, 200, 400, batch)
        batch.tally[batching.ASKED_LAST] = batch.tally[batching.FAILED] = -1
    assert batching.evaluate(*parts, 200, 0, 200, learner.state, learner.workspace, together)
    for k in range(200):
        assert batching.evaluate(*parts, 200, k, k + 1, learner.state, learner.workspace, alone)
    np.testing.assert_array_equal(together.tally, alone.tally)
    np.testing.assert_array_equal(together.at, alone.at)
    np.testing.assert_array_equal(together.c, alone.c)
    assert together.tally[batching.MOVES] > 20


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"batch": 0}, "`batch` 0: must be a whole number, 1 or more"),
        ({"batch": 1_000_001}, "`batch` 1000001: must be at most 1,000,000"),
        ({"perturb": "all"}, "sleeping weights are owed their share"),
        ({"rule": "first-order", "perturb": None, "mu": None}, "the direction of rule first-order depends"),
        ({"rule": "part", "perturb": None, "mu": None}, "the direction of rule part depends"),
    ],
)
def test_batches_that_make_no_sense_are_refused(changes, words):
    with pytest.raises(UsageError, match=words):
        replace(replace(PLAIN, batch=2), **changes)


def test_a_batch_is_of_runs_alone(chunking):
    with pytest.raises(UsageError, match="ask several before you tell"):
        Learner(chunking[0], replace(PLAIN, batch=2)).ask()
    with pytest.raises(UsageError, match="ask several before you tell"):
        Optimizer(3, replace(PLAIN, batch=2))


def test_a_batch_is_part_of_a_learners_name_and_record_unless_it_is_one():
    assert "batch" not in PLAIN.name
    assert "batch" not in PLAIN.as_dict()
    batched = replace(PLAIN, batch=64)
    assert "batch 64" in batched.name
    assert batched.as_dict()["batch"] == 64
