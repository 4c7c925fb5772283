"""Theory as theory (make torture): the laws of a step and of whole runs, against Algorithm 1 taken literally.

Differences are counted in standard errors. 6 of them are 2e-9 for one comparison, and so under 1e-6 for some hundreds.
That every single step is the one that these laws are of, to the number, is in test_steps.py.
"""

from __future__ import annotations

import kernel_calls
import numpy as np
import pytest
import twins

from sparsezo.kernels import codes, loop, random
from sparsezo.rules import BUILT_IN

pytestmark = pytest.mark.torture

H, MU, STEPS = 0.4, 0.8, 40
RUNS = 80_000
ZEROTH = ["two-point", "symmetric", "comparison", "preference", "baseline"]  # by their numbers
OFTEN, SELDOM = [(0, 0), (0, 2), (2, 1), (1, 8), (3, 6)], [(9, 6), (10, 2), (10, 8), (11, 0), (11, 6)]
SOME = tuple(np.array(OFTEN + SELDOM).T)


def law(rule=codes.TWO_POINT, perturbation=codes.ACTIVE, criterion=codes.MAP, control=0, gamma=1.0, seed=1):
    keys = np.array([random.stream_key(seed, stream) for stream in range(6)], np.uint64)
    no_rater, no_questions = (0, 0.0, 0.0, 0), (0, 0, 0.0, 0.0, 0)
    points = np.array(next(each.points for each in BUILT_IN.values() if each.code == rule), np.float64)
    chosen = (rule, perturbation, criterion, control, H, MU, gamma)
    return loop.StepParams(*chosen, *no_rater, *no_questions, keys, points, *points[:2].tolist())


@pytest.fixture(scope="module")
def literal(tiny):
    return twins.LiteralChunking(tiny.inputs, tiny.gold, tiny.n_cols, tiny.kind, tiny.chunk_type, tiny.start)


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


def compiled_runs(tiny, settings, lazy):
    out = np.empty((RUNS, tiny.n_cols, tiny.L), np.float32)
    repeat(tiny, settings, STEPS, RUNS, out, lazy)
    return out.astype(float)


def literal_runs(tiny, literal, perturb_all, **faults):
    rng = np.random.default_rng(6)
    w = np.tile(tiny.W.ravel().astype(float), (RUNS, 1))
    for _ in range(STEPS):
        w += literal.step(rng, w, H, MU, perturb_all, **faults)
    return w.reshape(RUNS, *tiny.W.shape)


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


@pytest.mark.parametrize("fault", [{"asleep": 1.02}, {"reach": 1.04}], ids=["asleep", "reach"])
def test_small_faults_would_show(tiny, literal, lazy_all, way, fault):
    """Sleeping weights that move 2% too far, and a candidate 4% too far away: this is how fine these eyes are."""
    wrong = literal_runs(tiny, literal, perturb_all=True, **fault)
    assert np.abs(apart(lazy_all, wrong, tiny.W, way)).max() > 5


@pytest.mark.parametrize("gamma", [None, 0.7], ids=["map", "annealed"])
@pytest.mark.parametrize("rule", ZEROTH)
def test_every_rule_has_the_mean_step_of_the_literal_algorithm(tiny, literal, rule, gamma):
    """Half a million steps each: entry by entry, and pooled along the step itself."""
    criterion = codes.MAP if gamma is None else codes.ANNEALED
    expected = literal_mean_step(tiny, literal, 50, rule=rule, gamma=gamma)
    for perturbation in (codes.ACTIVE, codes.SCORE):
        settings = law(ZEROTH.index(rule), perturbation, criterion, gamma=gamma or 1.0)
        compiled = mean_step(tiny, settings, 500_000)
        assert_same_mean(compiled, expected)
        (found, error), (true, other) = along(compiled, expected[0]), along(expected, expected[0])
        assert abs(found - true) < 6 * np.hypot(error, other)
        assert true > 30 * np.hypot(error, other)
