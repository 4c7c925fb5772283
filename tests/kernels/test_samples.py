"""Several perturbations of an input: the loop against the mean of literal directions, all from the same weights."""

from __future__ import annotations

import literal
import numpy as np
import pytest

from sparsezo.kernels import batching, codes, loop

ZEROTH = [codes.TWO_POINT, codes.SYMMETRIC, codes.COMPARISON, codes.PREFERENCE, codes.BASELINE]
NAMES = ["two-point", "symmetric", "comparison", "preference", "baseline"]
LAWS = {"active": codes.ACTIVE, "score": codes.SCORE}
PROBLEMS = {"chunking": literal.chunking, "text": literal.text, "rerank": literal.rerank}
TIMES = 20


@pytest.fixture(scope="module")
def problems():
    built = {}

    def build(task):
        return built.setdefault(task, PROBLEMS[task]())

    return build


def run_an_input(problem, law, memory):
    data, stop = (problem.inputs, problem.task, problem.gold), memory.counts[loop.STEP] + law.samples
    return batching.run(batching.room_for(law.batch), *data, law, problem.N, stop, 2**62, memory, problem.room())


def assert_same(memory, expected, problem):
    near = {"rtol": 1e-4, "atol": 5e-5} if problem.dtype is np.float32 else {"rtol": 1e-9, "atol": 1e-9}
    np.testing.assert_allclose(memory.W, expected.W, **near)
    np.testing.assert_allclose(memory.q, expected.q, **near)
    np.testing.assert_allclose(memory.sums, expected.sums, rtol=1e-5)
    np.testing.assert_array_equal(memory.counts, expected.counts)


def compare(problem, seed, adagrad=False, times=TIMES, antithetic=0, **settings):
    """The samples of one input from random states; returns what happened in each."""
    rng = np.random.default_rng(seed)
    seen = []
    for time in range(times):
        K = (2, 4)[time % 2] if antithetic else 2 + time % 4
        law = literal.some_law(rng, **settings)._replace(batch=K, samples=K, antithetic=antithetic)
        memory = literal.some_memory(rng, problem, adagrad=adagrad)
        memory.counts[loop.ASKED] = K * rng.integers(1, 500)
        try:
            expected, what = literal.samples(problem, law, memory)
        except literal.UnclearError:
            continue
        assert run_an_input(problem, law, memory)
        assert_same(memory, expected, problem)
        seen.append(what)
    assert len(seen) > 0.6 * times  # each of the K may hang on rounding
    return seen


def moved(what):
    return sum(each.c != 0 for each in what)


WAYS = [(rule, antithetic) for antithetic in (0, 1) for rule in ZEROTH if not (antithetic and rule == codes.SYMMETRIC)]


@pytest.mark.parametrize("perturb", LAWS)
@pytest.mark.parametrize("criterion", [codes.MAP, codes.ANNEALED], ids=["map", "annealed"])
@pytest.mark.parametrize(("rule", "antithetic"), WAYS, ids=[f"{NAMES[rule]}-{'anti' * sign}" for rule, sign in WAYS])
@pytest.mark.parametrize("task", PROBLEMS)
def test_the_weights_move_by_the_mean_of_literal_directions(problems, task, rule, criterion, perturb, antithetic):
    settings = {"rule": rule, "perturbation": LAWS[perturb], "criterion": criterion, "antithetic": antithetic}
    seen = compare(problems(task), [rule, criterion, LAWS[perturb], antithetic], **settings)
    assert sum(moved(what) for what in seen) > 3  # the comparison is not of steps that do nothing
    if (rule, antithetic) != (codes.COMPARISON, 1):  # seldom is both this way and the other better
        assert any(moved(what) > 1 for what in seen)


@pytest.mark.parametrize("perturb", LAWS)
@pytest.mark.parametrize("task", PROBLEMS)
def test_adagrad_adds_up_the_squares_of_each_share_as_it_is_applied(problems, task, perturb):
    for rule, antithetic in ((codes.TWO_POINT, 1), (codes.BASELINE, 0)):
        settings = {"rule": rule, "perturbation": LAWS[perturb], "antithetic": antithetic}
        compare(problems(task), [rule, 7], adagrad=True, **settings)


@pytest.mark.parametrize("model", [codes.RATING, codes.BINARY], ids=["rating", "binary"])
@pytest.mark.parametrize("rule", ZEROTH, ids=NAMES)
def test_one_rater_tells_all_of_an_input_and_its_loss_at_w_once(problems, rule, model):
    settings = {"rule": rule, "perturbation": codes.SCORE, "model": model}
    seen = compare(problems("rerank"), [rule, model], times=40, **settings)
    if rule in (codes.TWO_POINT, codes.PREFERENCE):
        at_w = [{each.F_other for each in what if each.y != each.incumbent} for what in seen]
        assert all(len(told) < 2 for told in at_w)
        assert sum(len(told) for told in at_w) > 5


@pytest.mark.parametrize("rule", [codes.COMPARISON, codes.PREFERENCE], ids=lambda rule: NAMES[rule])
def test_a_comparison_may_be_answered_the_wrong_way_round(problems, rule):
    settings = {"rule": rule, "perturbation": codes.SCORE, "model": codes.FLIP, "noise": 0.5}
    seen = compare(problems("rerank"), [rule, 10], times=30, **settings)
    assert sum(each.F_plus != each.loss for what in seen for each in what) > 5


@pytest.mark.parametrize("criterion", [codes.MAP, codes.ANNEALED], ids=["map", "annealed"])
def test_what_is_known_of_an_input_is_not_computed_again(problems, criterion):
    """Scores and an incumbent that are not the weights' own are believed, and so is F(w)."""
    problem, rng = problems("text"), np.random.default_rng(3)
    checked = 0
    for _ in range(20):
        law = literal.some_law(rng, codes.TWO_POINT, codes.SCORE, criterion)
        memory, room, x = literal.some_memory(rng, problem), problem.room(), int(rng.integers(problem.N))
        room.S[0] = rng.normal(0, 2, problem.L)
        room.incumbent[0] = rng.integers(problem.L)
        S, incumbent = room.S[:1].astype(float), int(room.incumbent[0])
        data = (problem.inputs, problem.task, problem.gold)
        try:
            _, (F_plus, F_w) = literal.look(problem, law, x, 5, S)
        except literal.UnclearError:
            continue
        expected = problem.losses[x][incumbent] if criterion == codes.MAP else 0.125
        found = loop.observe(*data, law, x, 5, True, 0.125, memory, room)
        np.testing.assert_allclose(found[1:3], (F_plus, expected), atol=1e-5)
        assert room.incumbent[0] == incumbent
        checked += F_w != expected
    assert checked > 3
