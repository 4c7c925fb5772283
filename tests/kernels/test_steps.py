"""One step of the loop against the same step taken literally, from some dozens of states for every combination.

What is compared: weights, Adagrad's sums, debts, all counts and sums. So this says which stream and which number of a
step every draw comes from, too.
"""

from __future__ import annotations

from dataclasses import replace

import literal
import numpy as np
import pytest
import twins

from sparsezo.kernels import codes, loop, random

ZEROTH = [codes.TWO_POINT, codes.SYMMETRIC, codes.COMPARISON, codes.PREFERENCE, codes.BASELINE]
NAMES = ["two-point", "symmetric", "comparison", "preference", "baseline", "first-order", "supervised"]
LAWS = {"all": codes.ALL, "active": codes.ACTIVE, "score": codes.SCORE}
TIMES = 80
PROBLEMS = {
    "chunking": [
        lambda: literal.chunking(2),
        lambda: literal.chunking(1),
        lambda: literal.chunking(1, chunks=False),
        lambda: literal.chunking(1, attributes=True),
        lambda: literal.chunking(2, start=1),
    ],
    "text": [lambda: literal.text(4), lambda: literal.text(3)],
    "rerank": [lambda: literal.rerank(14), lambda: literal.rerank(3)],
}


@pytest.fixture(scope="module")
def problems():
    built = {}

    def build(task):
        if task not in built:
            built[task] = [make() for make in PROBLEMS[task]]
        return built[task]

    return build


def run_one(problem, law, memory, room=None):
    stop = memory.counts[loop.STEP] + 1
    return loop.run(
        problem.inputs, problem.task, problem.gold, law, problem.N, stop, 2**62, memory, room or problem.room()
    )


def input_of(problem, law, memory):
    return twins.below(int(law.keys[random.INPUTS]), int(memory.counts[loop.ASKED]), problem.N)


def assert_same(memory, expected, problem):
    near = {"rtol": 1e-4, "atol": 5e-5} if problem.dtype is np.float32 else {"rtol": 1e-9, "atol": 1e-9}
    np.testing.assert_allclose(memory.W, expected.W, **near)
    np.testing.assert_allclose(memory.q, expected.q, **near)
    np.testing.assert_allclose(memory.Q_row, expected.Q_row, rtol=1e-5)
    np.testing.assert_allclose(memory.sums, expected.sums, rtol=1e-5)
    np.testing.assert_array_equal(memory.counts, expected.counts)


def compare(problems, seed, lazy=False, adagrad=False, times=TIMES, **settings):
    """Steps from random states; returns what happened in each."""
    rng = np.random.default_rng(seed)
    seen = []
    for time in range(times):
        problem = problems[time % len(problems)]
        law = literal.some_law(rng, **settings)
        memory = literal.some_memory(rng, problem, lazy, adagrad)
        try:
            expected, what = literal.step(problem, law, memory)
        except literal.UnclearError:
            continue
        assert run_one(problem, law, memory)
        assert_same(memory, expected, problem)
        seen.append(what)
    assert len(seen) > 0.8 * times
    return seen


# ---- the zeroth-order rules ----


@pytest.mark.parametrize("perturb", LAWS)
@pytest.mark.parametrize("rule", ZEROTH, ids=NAMES[:5])
@pytest.mark.parametrize("criterion", [codes.MAP, codes.ANNEALED], ids=["map", "annealed"])
@pytest.mark.parametrize("task", PROBLEMS)
def test_a_step_is_the_literal_step(problems, task, criterion, rule, perturb):
    settings = {"rule": rule, "perturbation": LAWS[perturb], "criterion": criterion}
    seen = compare(problems(task), [rule, criterion, LAWS[perturb]], lazy=perturb == "all", **settings)
    moved = sum(what.c != 0 for what in seen)
    assert moved > 4  # the comparison is not of steps that do nothing
    if criterion == codes.MAP and rule != codes.BASELINE:
        assert moved < len(seen)


@pytest.mark.parametrize("perturb", ["active", "score"])
@pytest.mark.parametrize("task", PROBLEMS)
def test_an_adagrad_step_is_the_literal_step(problems, task, perturb):
    for rule in (codes.SYMMETRIC, codes.BASELINE):
        compare(problems(task), [rule, 7], adagrad=True, rule=rule, perturbation=LAWS[perturb])


@pytest.mark.parametrize("adagrad", [False, True], ids=["constant", "adagrad"])
@pytest.mark.parametrize("task", PROBLEMS)
def test_an_automatic_step_is_the_literal_step(problems, task, adagrad):
    for rule in (*ZEROTH, codes.FIRST_ORDER, codes.PAIRWISE, codes.CROSS_ENTROPY):
        how = {"rule": rule, "perturbation": codes.SCORE, "unit": 0.3, "adagrad": adagrad, "times": 30}
        seen = compare(problems(task), [rule, 9], **how)
        assert any(what.c != 0 for what in seen)


def first_change(problem, law, memory):
    """(x, mu, output before, output after): where the best output at w + mu u first changes as mu grows from 0."""
    x = input_of(problem, law, memory)
    S = literal.product(problem.C[x], memory.W.astype(float))
    V, _ = literal.perturb(problem, law, x, int(memory.counts[loop.ASKED]))
    if len(problem.outputs[x]) == 1:
        raise literal.UnclearError
    at, slope = (literal.output_scores(problem, x, scores) for scores in (S, V))
    first = int(at.argmax())
    gain = slope - slope[first]
    crossings = np.full(len(at), np.inf)
    np.divide(at[first] - at, gain, out=crossings, where=gain > 0)
    soonest, next_one = np.sort(crossings)[:2]
    if next_one < 1.02 * soonest or gain[crossings.argmin()] < 0.05:
        raise literal.UnclearError
    return x, float(crossings.min()), first, int(crossings.argmin())


@pytest.mark.parametrize("rule", [codes.TWO_POINT, codes.SYMMETRIC, codes.BASELINE], ids=lambda rule: NAMES[rule])
@pytest.mark.parametrize("task", PROBLEMS)
def test_the_candidate_is_at_w_plus_mu_u_to_the_percent(problems, task, rule, monkeypatch):
    """mu a percent below the first place where the output changes, and a percent above it."""
    monkeypatch.setattr(literal, "CLEAR", 1e-4)
    rng = np.random.default_rng(3)
    tried = 0
    for time in range(40):
        problem = problems(task)[time % 2]
        law, memory = literal.some_law(rng, rule, codes.SCORE), literal.some_memory(rng, problem)
        try:
            x, mu, *outputs = first_change(problem, law, memory)
            laws = [law._replace(mu=factor * mu) for factor in (0.99, 1.01)]
            steps = [literal.step(problem, near, memory) for near in laws]
        except literal.UnclearError:
            continue
        if not 0.3 < mu < 3 or problem.losses[x][outputs[0]] == problem.losses[x][outputs[1]]:
            continue
        tried += 1
        assert [what.y for _, what in steps] == outputs
        for near, (expected, _) in zip(laws, steps, strict=True):
            moved = literal.copied(memory)
            assert run_one(problem, near, moved)
            assert_same(moved, expected, problem)
    assert tried >= 5


# ---- the others ----


@pytest.mark.parametrize("criterion", [codes.MAP, codes.ANNEALED], ids=["map", "annealed"])
@pytest.mark.parametrize("control", [0, 1], ids=["plain", "baseline"])
@pytest.mark.parametrize("task", PROBLEMS)
def test_a_first_order_step_is_the_literal_step(problems, task, control, criterion):
    """Its output is sampled and its loss is that output's, whatever the criterion says."""
    settings = {"rule": codes.FIRST_ORDER, "perturbation": codes.SCORE, "criterion": criterion, "control": control}
    seen = compare(problems(task), 5, **settings)
    assert len({what.y for what in seen}) > 2
    compare(problems(task), 6, adagrad=True, **settings)


@pytest.mark.parametrize("rule", [codes.PAIRWISE, codes.CROSS_ENTROPY], ids=["pairwise", "cross-entropy"])
@pytest.mark.parametrize("task", PROBLEMS)
def test_a_step_of_the_other_first_order_rules_is_the_literal_step(problems, task, rule):
    settings = {"rule": rule, "perturbation": codes.SCORE}
    seen = compare(problems(task), [rule, 5], **settings)
    assert len({what.y for what in seen}) > 2
    assert sum(what.c != 0 for what in seen) > 10
    if rule == codes.PAIRWISE:
        assert any(what.y == what.incumbent for what in seen)  # nobody was asked
        assert sum(what.F_plus < what.F_other for what in seen) > 5
    compare(problems(task), [rule, 6], adagrad=True, **settings)


@pytest.mark.parametrize("model", [codes.RATING, codes.BINARY, codes.FLIP], ids=["rating", "binary", "flip"])
def test_a_pair_may_be_told_by_a_rater(problems, model):
    settings = {"rule": codes.PAIRWISE, "perturbation": codes.SCORE, "model": model, "noise": 0.5}
    seen = compare(problems("rerank"), [12, model], times=120, **settings)
    assert sum(what.F_plus != what.loss for what in seen) > 10


@pytest.mark.parametrize("criterion", [codes.MAP, codes.ANNEALED], ids=["likelihood", "risk"])
@pytest.mark.parametrize("task", PROBLEMS)
def test_a_supervised_step_is_the_literal_step(problems, task, criterion):
    settings = {"rule": codes.SUPERVISED, "perturbation": codes.SCORE, "criterion": criterion}
    for adagrad in (False, True):
        compare(problems(task), 8, adagrad=adagrad, **settings)


def test_a_sure_model_has_a_finite_gradient_of_the_risk(problems):
    rng = np.random.default_rng(20)
    for size in (30.0, 300.0):
        for problem in problems("chunking"):
            law = literal.some_law(rng, codes.SUPERVISED, codes.SCORE, codes.ANNEALED)
            memory = literal.some_memory(rng, problem)
            memory.W[:] = size * np.sign(memory.W)
            assert run_one(problem, law, memory)
            assert np.isfinite(memory.W).all()


# ---- raters (of losses that are not 0 or 1) ----


@pytest.mark.parametrize("model", [codes.RATING, codes.BINARY], ids=["rating", "binary"])
@pytest.mark.parametrize("rule", [*range(6)], ids=NAMES[:6])
def test_a_step_with_a_rater_is_the_literal_step(problems, rule, model):
    """Shown the same output twice it says the same; SEEN adds up what it said, LOSS the truth."""
    seen = compare(problems("rerank"), [rule, model], rule=rule, perturbation=codes.SCORE, model=model, times=120)
    assert sum(what.F_plus != what.loss for what in seen) > 10
    if rule < codes.BASELINE:
        told_apart = [what.F_plus != what.F_other for what in seen if what.y != what.incumbent]
        assert sum(told_apart) > 4


@pytest.mark.parametrize("model", [codes.RATING, codes.BINARY], ids=["rating", "binary"])
def test_a_rater_is_asked_about_expected_losses_too(problems, model):
    """Under the annealed criterion no two outputs are the same: candidate and rival have noise of their own."""
    settings = {"criterion": codes.ANNEALED, "perturbation": codes.SCORE, "model": model}
    seen = compare(problems("rerank"), 9, rule=codes.TWO_POINT, times=120, **settings)
    assert sum(what.F_plus != what.F_other for what in seen) > 10
    compare(problems("rerank"), 9, rule=codes.BASELINE, times=120, **settings)


@pytest.mark.parametrize("rule", [codes.COMPARISON, codes.PREFERENCE], ids=lambda rule: NAMES[rule])
def test_a_wrong_answer_swaps_the_two(problems, rule):
    settings = {"rule": rule, "perturbation": codes.SCORE, "model": codes.FLIP, "noise": 0.5}
    seen = compare(problems("rerank"), [rule, 10], times=80, **settings)
    swapped = [what for what in seen if what.F_plus != what.loss]
    assert len(swapped) > 5
    assert any(what.F_plus < what.F_other for what in swapped)
    assert any(what.F_plus > what.F_other for what in swapped)


def test_supervised_sees_no_rater(problems):
    for model in (codes.RATING, codes.BINARY):
        seen = compare(problems("rerank"), 11, rule=codes.SUPERVISED, perturbation=codes.SCORE, model=model)
        assert all(what.F_plus == what.loss for what in seen)


# ---- answers that come later ----


@pytest.mark.parametrize("perturb", LAWS)
@pytest.mark.parametrize("task", PROBLEMS)
def test_an_answer_moves_along_the_direction_of_its_own_step(problems, task, perturb):
    rng = np.random.default_rng(12)
    for time in range(TIMES):
        problem = problems(task)[time % 2]
        law = literal.some_law(rng, codes.PREFERENCE, LAWS[perturb])
        memory = literal.some_memory(rng, problem, lazy=perturb == "all")
        earlier, x, c = int(memory.counts[loop.ASKED]) - 7, time % problem.N, -0.3
        expected = literal.copied(memory)._replace(W=memory.W.astype(float))
        literal.fold(problem, law, x, expected)
        literal.move(law, expected, x, problem, c, literal.direction(problem, law, x, earlier))
        y = np.zeros(problem.outputs[x].shape[1], np.int32)
        room = problem.room()
        assert loop.answer(problem.inputs, problem.task, law, x, earlier, y, y, 0.0, c, memory, room) == c
        assert_same(memory, expected, problem)


@pytest.mark.parametrize("rule", literal.SAMPLED)
@pytest.mark.parametrize("task", PROBLEMS)
def test_a_late_first_order_answer_uses_the_outputs_that_were_shown_by_how_likely_they_were(problems, task, rule):
    """p_now / p_then, up to 10."""
    rng = np.random.default_rng(13)
    for time in range(TIMES):
        problem = problems(task)[time % 2]
        law, memory = literal.some_law(rng, rule, codes.SCORE), literal.some_memory(rng, problem)
        x, c = time % problem.N, -0.3
        shown, other = (int(each) for each in rng.integers(len(problem.outputs[x]), size=2))
        expected = literal.copied(memory)._replace(W=memory.W.astype(float))
        S = literal.product(problem.C[x], expected.W)
        towards = problem.C[x].T @ literal.sampled_direction(problem, x, S, rule, shown, other)
        now = literal.probabilities(problem, x, S)[shown]
        if rule == codes.PAIRWISE:
            now *= literal.probabilities(problem, x, -S)[other]
        then = min(now * 10 ** rng.uniform(-2, 2), 1)
        ratio = min(now / then, 10.0)
        literal.move(law, expected, x, problem, c * ratio, towards)
        y, y_other = (problem.outputs[x][each].astype(np.int32) for each in (shown, other))
        args = (problem.inputs, problem.task, law, x, 17, y, y_other)
        applied = loop.answer(*args, np.log(then), c, memory, problem.room())
        assert applied == pytest.approx(c * ratio, rel=1e-4)
        assert_same(memory, expected, problem)


# ---- decoding ----


@pytest.mark.parametrize("task", PROBLEMS)
def test_decoding_all_inputs(problems, task):
    rng = np.random.default_rng(14)
    for problem in problems(task):
        lengths = [outputs.shape[1] for outputs in problem.outputs]
        start = np.concatenate([[2], 2 + np.cumsum(lengths)])
        for first, last in [(0, problem.N), (1, problem.N - 1), (2, 2)]:
            W = literal.some_memory(rng, problem).W
            out, room = np.full(start[-1] + 1, -9, np.int32), problem.room()
            expected = out.copy()
            for x in range(first, last):
                y = problem.outputs[x][literal.best(problem, x, literal.product(problem.C[x], W.astype(float)))]
                expected[start[x] : start[x + 1]] = y
            data = problem.inputs, problem.task, W, room.S, room.y
            assert loop.decode_all(*data, first, last, start, out)
            np.testing.assert_array_equal(out, expected)
        W[:] = np.nan
        assert not loop.decode_all(problem.inputs, problem.task, W, room.S, room.y, 0, problem.N, start, out)


# ---- what is not finite ----


def refused(problem, law, memory):
    """The run stops, and neither counts nor sums nor weights have changed."""
    before = literal.copied(memory)
    assert not run_one(problem, law, memory)
    for now, then in zip(memory, before, strict=True):
        np.testing.assert_array_equal(now, then)


def steps_with_two_outputs(problem, rule, criterion):
    """(law, memory, x, candidate, rival) of steps whose two outputs differ."""
    rng = np.random.default_rng(15)
    found = 0
    while found < 5:
        law = literal.some_law(rng, rule, codes.ACTIVE)
        memory = literal.some_memory(rng, problem)
        try:
            _, what = literal.step(problem, law, memory)
        except literal.UnclearError:
            continue
        if what.y != what.incumbent:
            found += 1
            yield law._replace(criterion=criterion), memory, what


@pytest.mark.parametrize("rule", [codes.TWO_POINT, codes.SYMMETRIC, codes.COMPARISON, codes.PREFERENCE])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_loss_that_is_not_finite_stops_the_run(problems, rule, bad):
    """The candidate's or its rival's; comparisons would pass over a NaN without a word."""
    problem = problems("rerank")[0]
    for law, memory, what in steps_with_two_outputs(problem, rule, codes.MAP):
        for place in (what.y, what.incumbent):
            losses = problem.gold.losses.copy()
            losses[problem.gold.offsets[what.x] + place] = bad
            wrong = replace(problem, gold=literal.rank_gold(problem.gold.offsets, losses))
            refused(wrong, law, literal.copied(memory))


@pytest.mark.parametrize("rule", ZEROTH, ids=NAMES[:5])
def test_a_risk_that_is_not_finite_stops_the_run(problems, rule):
    problem = problems("rerank")[0]
    rng = np.random.default_rng(16)
    law, memory = literal.some_law(rng, rule, codes.ACTIVE, codes.ANNEALED), literal.some_memory(rng, problem)
    losses = np.full_like(problem.gold.losses, np.nan)
    refused(replace(problem, gold=literal.rank_gold(problem.gold.offsets, losses)), law, memory)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("rule", range(7), ids=NAMES)
@pytest.mark.parametrize("task", PROBLEMS)
def test_weights_that_are_not_finite_stop_the_run(problems, task, rule, bad):
    problem = problems(task)[0]
    rng = np.random.default_rng(17)
    for criterion in (codes.MAP, codes.ANNEALED):
        law = literal.some_law(rng, rule, codes.SCORE, criterion)
        memory = literal.some_memory(rng, problem)
        memory.W[:] = bad
        while not problem.C[input_of(problem, law, memory)].any():  # a document without words sees no weights
            memory.counts[loop.ASKED] += 1
        refused(problem, law, memory)


def test_a_run_keeps_what_it_did_before_the_step_that_stops_it(problems):
    problem = problems("rerank")[0]
    rng = np.random.default_rng(18)
    law, memory = literal.some_law(rng, codes.TWO_POINT, codes.ACTIVE), literal.some_memory(rng, problem)
    memory.counts[:] = 0
    memory.sums[:] = 0
    visits = [twins.below(int(law.keys[random.INPUTS]), step, problem.N) for step in range(40)]
    last = max(range(problem.N), key=visits.index)
    losses = problem.gold.losses.copy()
    losses[problem.gold.offsets[last] : problem.gold.offsets[last + 1]] = np.nan
    good = literal.copied(memory)
    steps = visits.index(last)
    data = problem.inputs, problem.task
    assert loop.run(*data, problem.gold, law, problem.N, steps, 2**62, good, problem.room())
    wrong = literal.rank_gold(problem.gold.offsets, losses)
    assert not loop.run(*data, wrong, law, problem.N, 40, 2**62, memory, problem.room())
    assert steps >= 4
    assert memory.counts[loop.STEP] == memory.counts[loop.ASKED] == steps
    for a, b in zip(memory, good, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_run_that_is_there_already_does_nothing(problems):
    problem = problems("text")[0]
    rng = np.random.default_rng(19)
    law, memory = literal.some_law(rng, codes.BASELINE, codes.ACTIVE), literal.some_memory(rng, problem)
    before = literal.copied(memory)
    for stop in (0, int(memory.counts[loop.STEP])):
        assert loop.run(problem.inputs, problem.task, problem.gold, law, problem.N, stop, 2**62, memory, problem.room())
    for now, then in zip(memory, before, strict=True):
        np.testing.assert_array_equal(now, then)
