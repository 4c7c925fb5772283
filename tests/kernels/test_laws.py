"""Theory as theory: the laws of u, of a step and of whole runs, against Algorithm 1 taken literally.

Differences are counted in standard errors. 6 of them are 2e-9 for one comparison, and so under 1e-6 for some hundreds.
"""

from __future__ import annotations

import kernel_calls
import numpy as np
import pytest
import twins

from sparsezo.kernels import codes, loop, random
from sparsezo.kernels import coefficient as rules

H, MU, STEPS = 0.4, 0.8, 40
RUNS = 12_000
ZEROTH = ["two-point", "symmetric", "comparison", "preference", "baseline"]  # by their numbers
OFTEN, SELDOM = [(0, 0), (0, 2), (2, 1), (1, 8), (3, 6)], [(9, 6), (10, 2), (10, 8), (11, 0), (11, 6)]
SOME = tuple(np.array(OFTEN + SELDOM).T)


def law(rule=codes.TWO_POINT, perturbation=codes.ACTIVE, criterion=codes.MAP, control=0, gamma=1.0, seed=1):
    keys = np.array([random.stream_key(seed, stream) for stream in range(6)], np.uint64)
    no_rater, no_questions = (0, 0.0, 0.0, 0), (0, 0, 0.0, 0.0, 0, 1, 1, 0)
    return loop.StepParams(rule, perturbation, criterion, control, H, MU, gamma, *no_rater, *no_questions, keys)


@pytest.fixture(scope="module")
def literal(tiny):
    return twins.LiteralChunking(tiny.inputs, tiny.gold, tiny.n_cols, tiny.kind, tiny.chunk_type, tiny.start)


# ---- the laws of u ----


@pytest.mark.parametrize("x", range(4))
def test_squared_norm_of_u(tiny, x):
    """E||u||^2 = n_bar(x) for ACTIVE (Theorem 1) and r_bar(x) = rank(C) L for SCORE (DESIGN 2.3)."""
    C = twins.dense(tiny.inputs, x, tiny.n_cols)
    keys = law().keys[1:3]
    n = 20_000
    for whole, size in [(True, C.any(axis=0).sum() * tiny.L), (False, np.linalg.matrix_rank(C) * tiny.L)]:
        room = tiny.room()
        out = np.empty((n, C.any(axis=0).sum(), tiny.L), np.float32)
        given = np.zeros((0, tiny.L), np.float32)
        kernel_calls.directions(tiny.inputs, x, whole, keys, given, room.Z, room.D, room.U, room.row, out)
        norms = (out.astype(float) ** 2).sum(axis=(1, 2))  # chi-square: mean `size`, variance 2 `size`
        assert abs(norms.mean() - size) < 6 * np.sqrt(2 * size / n)
        assert norms.var() == pytest.approx(2 * size, rel=6 * np.sqrt((2 + 12 / size) / n))


# ---- the mean of a step ----


def repeat(tiny, settings, steps, times, out, lazy=False):
    """(sum, sum of squares) of the moves of many short runs from tiny.W."""
    total, squares = np.zeros((tiny.n_cols, tiny.L)), np.zeros((tiny.n_cols, tiny.L))
    data = (tiny.inputs, tiny.task, tiny.gold, settings, tiny.N)
    memory = tiny.memory(tiny.W, lazy=lazy)
    assert kernel_calls.repeat(*data, steps, times, memory, tiny.room(), tiny.W, total, squares, out)
    return total, squares


def mean_step(tiny, settings, times):
    """(mean, its standard error) of a step's move from tiny.W, entry by entry."""
    total, squares = repeat(tiny, settings, 1, times, np.empty((0, tiny.n_cols, tiny.L), np.float32))
    mean = total / times
    return mean, np.sqrt((squares / times - mean**2) / times)


def assert_same_mean(first, second, errors=6):
    (a, error_a), (b, error_b) = first, second
    # 1e-7: the rounding of float32 weights
    assert (np.abs(a - b) <= errors * np.hypot(error_a, error_b) + 1e-7).all()


@pytest.fixture(scope="module")
def literal_step(tiny, literal):
    return literal_mean_step(tiny, literal, 20)


def test_score_and_active_have_the_mean_step_of_the_literal_algorithm(tiny, literal_step):
    active = mean_step(tiny, law(perturbation=codes.ACTIVE), 200_000)
    score = mean_step(tiny, law(perturbation=codes.SCORE, seed=2), 200_000)
    assert_same_mean(active, literal_step)
    assert_same_mean(score, literal_step)
    assert_same_mean(score, active)
    assert np.abs(score[0] / np.maximum(score[1], 1e-12)).max() > 30  # it is not that all of them are 0
    assert (score[1] ** 2).sum() < (active[1] ** 2).sum()  # Rao-Blackwell: less variance


@pytest.mark.parametrize("rule", [codes.SYMMETRIC, codes.TWO_POINT])
@pytest.mark.parametrize("criterion", [codes.MAP, codes.ANNEALED])
def test_score_and_active_have_the_same_mean_step(tiny, rule, criterion):
    active = mean_step(tiny, law(rule, codes.ACTIVE, criterion), 100_000)
    score = mean_step(tiny, law(rule, codes.SCORE, criterion, seed=2), 100_000)
    assert_same_mean(active, score)
    assert np.abs(score[0] / np.maximum(score[1], 1e-12)).max() > 15


def expected_loss_gradient(tiny, literal):
    """d/dW of the mean over inputs of E[Delta(y)], y ~ p_w, by enumeration."""
    gradient = np.zeros(tiny.W.shape)
    for phi, losses in zip(literal.phi, literal.losses, strict=True):
        p = twins.softmax(phi @ tiny.W.ravel().astype(float))
        gradient += ((p * (losses - p @ losses)) @ phi).reshape(tiny.W.shape) / tiny.N
    return gradient


def literal_mean_step(tiny, literal, batches, **settings):
    """(mean, its standard error) of a step's move by drawing u and decoding, nothing else; ACTIVE."""
    rng = np.random.default_rng(0)
    n, total, squares = batches * 10_000, 0, 0
    w = np.tile(tiny.W.ravel().astype(float), (10_000, 1))
    for _ in range(batches):
        moves = literal.step(rng, w, H, MU, perturb_all=False, **settings).reshape(-1, *tiny.W.shape)
        total, squares = total + moves.sum(axis=0), squares + (moves**2).sum(axis=0)
    mean = total / n
    return mean, np.sqrt((squares / n - mean**2) / n)


def along(step, direction):
    """(mean, its standard error, at most) of the step along a direction: all weights pooled to one number."""
    mean, error = step
    return (mean * direction).sum(), np.sqrt(((error * direction) ** 2).sum())


@pytest.mark.parametrize("rule", [codes.TWO_POINT, codes.SYMMETRIC, codes.BASELINE], ids=lambda rule: ZEROTH[rule])
def test_a_binary_rater_has_the_mean_step_of_exact_losses(tiny, rule):
    """These rules are linear in the losses, and a thumb is down as often as the loss says."""
    exact = mean_step(tiny, law(rule, codes.SCORE), 60_000)
    thumbs = mean_step(tiny, law(rule, codes.SCORE)._replace(feedback=codes.BINARY), 60_000)
    assert_same_mean(thumbs, exact)
    (told, error), (true, _) = along(thumbs, exact[0]), along(exact, exact[0])
    assert abs(told - true) < 6 * error
    assert true > 20 * error
    assert (thumbs[1] > exact[1]).mean() > 0.95  # at a price


@pytest.mark.parametrize("wrong", [0.15, 0.5, 1.0])
def test_wrong_answers_shorten_the_mean_step_of_preference(tiny, wrong):
    """By 1 - 2 P: at P = 0.5 the answers say nothing, at 1 they lead away."""
    exact = mean_step(tiny, law(codes.PREFERENCE, codes.SCORE), 60_000)
    noisy = mean_step(
        tiny, law(codes.PREFERENCE, codes.SCORE, seed=2)._replace(feedback=codes.FLIP, noise=wrong), 60_000
    )
    assert_same_mean(noisy, ((1 - 2 * wrong) * exact[0], exact[1]))
    (told, error), (true, _) = along(noisy, exact[0]), along(exact, exact[0])
    assert abs(told - (1 - 2 * wrong) * true) < 9 * error  # 6 errors of a difference
    assert true > 20 * error


def test_first_order_step_is_the_gradient_of_the_expected_loss(tiny, literal):
    mean, error = mean_step(tiny, law(codes.FIRST_ORDER, codes.SCORE), 200_000)
    expected = -H * expected_loss_gradient(tiny, literal)
    assert (np.abs(mean - expected) <= 6 * error + 1e-6).all()
    assert np.abs(expected).max() > 30 * error.max()


def test_small_annealed_steps_follow_the_gradient_of_the_expected_loss(tiny, literal):
    """f_mu's gradient tends to f's as mu does to 0; at mu 0.02 what is left is far below the error."""
    settings = law(codes.SYMMETRIC, codes.SCORE, codes.ANNEALED)._replace(mu=0.02)
    mean, error = mean_step(tiny, settings, 100_000)
    expected = -H * expected_loss_gradient(tiny, literal)
    # float32 scores: a loss is good to 1e-6, and divided by mu to 5e-5 with a sign that u does not know
    assert (np.abs(mean - expected) <= 6 * error + 2e-6).all()
    assert np.abs(expected).max() > 30 * error.max()


# ---- whole runs ----


def compiled_runs(tiny, settings, lazy, runs=RUNS):
    out = np.empty((runs, tiny.n_cols, tiny.L), np.float32)
    repeat(tiny, settings, STEPS, runs, out, lazy)
    return out.astype(float)


def literal_runs(tiny, literal, perturb_all, runs=RUNS, **faults):
    rng = np.random.default_rng(6)
    w = np.tile(tiny.W.ravel().astype(float), (runs, 1))
    for _ in range(STEPS):
        w += literal.step(rng, w, H, MU, perturb_all, **faults)
    return w.reshape(runs, *tiny.W.shape)


def moments(W):
    """(estimates, their standard errors): all means, all variances (also a row's together), some covariances."""
    centred = W - W.mean(axis=0)
    some = centred[:, SOME[0], SOME[1]]
    products = (some[:, :, None] * some[:, None, :])[:, *np.triu_indices(len(SOME[0]), 1)]
    squares = centred**2
    rows = squares.sum(axis=2)
    runs = len(W)
    samples = np.concatenate([W.reshape(runs, -1), squares.reshape(runs, -1), rows, products], axis=1)
    return samples.mean(axis=0), samples.std(axis=0) / np.sqrt(runs)


def pooled(W, start, way):
    """Likewise, few and strong: how far weights went that mostly sleep, and the others; fourth powers; how far along
    way."""
    moves = W - start
    asleep, awake = moves[:, 9:], moves[:, :9]
    samples = np.stack(
        [
            (asleep**2).sum(axis=(1, 2)),
            (awake**2).sum(axis=(1, 2)),
            (asleep**4).sum(axis=(1, 2)),
            (moves * way).sum(axis=(1, 2)),
        ],
        axis=1,
    )
    return samples.mean(axis=0), samples.std(axis=0) / np.sqrt(len(W))


def assert_same_law(first, second, start, way):
    (a, error_a), (b, error_b) = moments(first), moments(second)
    # 273 comparisons of 6 standard errors: 5e-7 in all
    assert (np.abs(a - b) <= 6 * np.hypot(error_a, error_b) + 1e-6).all()
    assert np.abs(apart(first, second, start, way)).max() < 5


def apart(first, second, start, way):
    """The pooled statistics' distances in standard errors."""
    (a, error_a), (b, error_b) = pooled(first, start, way), pooled(second, start, way)
    return (a - b) / np.hypot(error_a, error_b)


@pytest.fixture(scope="module")
def lazy_all(tiny):
    return compiled_runs(tiny, law(perturbation=codes.ALL), lazy=True)


@pytest.fixture(scope="module")
def compiled_active(tiny):
    return compiled_runs(tiny, law(perturbation=codes.ACTIVE), lazy=False)


@pytest.fixture(scope="module")
def way(tiny, literal):
    """The direction in which the expected loss falls from where the runs start."""
    gradient = expected_loss_gradient(tiny, literal)
    return -gradient / np.linalg.norm(gradient)


def test_lazy_all_has_the_law_of_literal_all(tiny, literal, lazy_all, way):
    assert_same_law(lazy_all, literal_runs(tiny, literal, perturb_all=True), tiny.W, way)


def test_active_has_the_law_of_literal_active(tiny, literal, compiled_active, way):
    assert_same_law(compiled_active, literal_runs(tiny, literal, perturb_all=False), tiny.W, way)


def test_these_comparisons_can_tell_all_from_active(lazy_all, compiled_active):
    (a, error_a), (b, error_b) = moments(lazy_all), moments(compiled_active)
    assert (np.abs(a - b) / np.hypot(error_a, error_b)).max() > 50


# ---- bit for bit ----


@pytest.mark.parametrize("perturbation", [codes.ALL, codes.ACTIVE, codes.SCORE])
@pytest.mark.parametrize("rule", range(7))
def test_a_stopped_run_continues_bit_for_bit(tiny, rule, perturbation):
    adagrad = perturbation == codes.SCORE
    lazy = perturbation == codes.ALL and rule < codes.FIRST_ORDER
    settings = law(rule, perturbation)
    once, twice = tiny.memory(tiny.W, lazy, adagrad), tiny.memory(tiny.W, lazy, adagrad)
    room = tiny.room()
    assert loop.run(tiny.inputs, tiny.task, tiny.gold, settings, tiny.N, 300, 2**62, once, room)
    for stop in [1, 120, 300]:
        fresh = tiny.room()
        for scratch in fresh:
            scratch.fill(3)  # nothing in a room outlives a step
        assert loop.run(tiny.inputs, tiny.task, tiny.gold, settings, tiny.N, stop, 2**62, twice, fresh)
    for a, b in zip(once, twice, strict=True):
        np.testing.assert_array_equal(a, b)
    assert once.counts[loop.STEP] == 300
    assert 0 < once.counts[loop.UPDATES] <= 300
    assert (once.W != tiny.W).any()


@pytest.mark.parametrize("perturbation", [codes.ALL, codes.ACTIVE, codes.SCORE])
def test_the_halves_of_a_step_make_the_run(tiny, perturbation):
    """look, decode, feedback, coefficient, apply one by one are the run, bit for bit."""
    settings = law(codes.TWO_POINT, perturbation)
    lazy = perturbation == codes.ALL
    whole, halves, room = tiny.memory(tiny.W, lazy), tiny.memory(tiny.W, lazy), tiny.room()
    assert loop.run(tiny.inputs, tiny.task, tiny.gold, settings, tiny.N, 100, 2**62, whole, tiny.room())
    for step in range(100):
        x = random.below(settings.keys[random.INPUTS], step, tiny.N)
        loop.propose(tiny.inputs, tiny.task, settings, x, step, halves, room)
        plus = kernel_calls.delta(tiny.gold, tiny.task, x, room.y)
        other = kernel_calls.delta(tiny.gold, tiny.task, x, room.incumbent)
        halves.counts[loop.ASKED] += 1
        halves.counts[loop.PASSED] += 1
        if not np.array_equal(room.y[: tiny.task.tokens[x]], room.incumbent[: tiny.task.tokens[x]]):
            loop.count_question(halves)
            halves.counts[loop.ANSWERS] += 1
        mean = loop.count_step(settings, plus, plus, halves)
        c = rules.coefficient(settings.rule, H, MU, plus, other, mean)
        if c != 0:
            loop.apply(tiny.inputs, settings, x, step, c, halves, room)
    for a, b in zip(whole, halves, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_score_that_is_not_finite_stops_the_run(tiny):
    memory = tiny.memory(np.full(tiny.W.shape, np.inf))
    assert not loop.run(tiny.inputs, tiny.task, tiny.gold, law(), tiny.N, 100, 2**62, memory, tiny.room())
    assert memory.counts[loop.STEP] == memory.counts[loop.ASKED] == 0


def test_baseline_compares_with_the_running_mean(tiny):
    """c of step k uses the mean of F+ up to and with step k."""
    memory = tiny.memory(tiny.W)
    settings = law(codes.BASELINE)
    losses = [0.2, 1.0, 0.0, 0.5]
    means = [loop.count_step(settings, loss, loss, memory) for loss in losses]
    np.testing.assert_allclose(means, np.cumsum(losses) / np.arange(1, 5))
    assert loop.count_step(law(codes.TWO_POINT), 0.3, 0.3, memory) == 0
