"""minimize(F, w0) and Optimizer(n) with nothing chosen: what they find and say, and that workers change nothing."""

from __future__ import annotations

import functools
import math
import multiprocessing
import os
import runpy
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse

from sparsezo import Optimizer, Settings, minimize, replay, scipy_method
from sparsezo.errors import UsageError

N = 100
WANTED = np.random.default_rng(3).standard_normal(N)
STEEP = np.logspace(-1.5, 1.5, N)
HERE = os.getpid()


def sphere(w):
    return 0.5 * float(((w - WANTED) ** 2).sum())


def long(w):
    return 0.5 * float(STEEP @ (w - WANTED) ** 2)


def corner(w):
    return float(np.abs(w - WANTED).sum())


def noisy(F, noise, seed=1):
    rng = np.random.default_rng(seed)
    return lambda w: F(w) + noise * rng.standard_normal()


@pytest.mark.parametrize("scale", [1.0, 1e4, 1e-8])
@pytest.mark.parametrize("F", [sphere, long, corner])
def test_functions_without_noise_of_any_scale(F, scale):
    result = minimize(lambda w: scale * F(w), np.zeros(N), 4_000)
    assert F(result.x) < 1e-4 * F(np.zeros(N))
    assert result.success
    assert result.fun == scale * F(result.x)
    assert result.nfev <= 4_000
    assert (np.diff(result.curve[:, 0]) >= 0).all()


def turned(w):
    """The same as long, but for reflections, behind which every weight has a part in all of it."""
    for v in np.random.default_rng(8).standard_normal((4, N)):
        w = w - 2 * (v @ w) / (v @ v) * v
    return long(w)


def test_weights_that_hang_together():
    """Searches along weights alone leave 0.002 of it; slopes and a memory of them do not."""
    result = minimize(turned, np.zeros(N), 8_000)
    assert turned(result.x) < 1e-5 * turned(np.zeros(N))


def test_a_curved_valley():
    F = lambda w: float((100 * (w[1:] - w[:-1] ** 2) ** 2 + (1 - w[:-1]) ** 2).sum())  # noqa: E731
    assert minimize(F, np.zeros(10), 8_000).fun < 1e-6


def test_what_is_not_along_the_weights():
    """A narrow valley across all of them: searches along weights alone would stand still at once."""
    across = np.ones(N)
    F = lambda w: float(np.abs(across @ w - 10) * 100 + np.abs(w - WANTED).max())  # noqa: E731
    result = minimize(F, np.zeros(N), 8_000)
    assert F(result.x) < 0.02 * F(np.zeros(N))


@functools.cache
def rare_class(n):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((400, n - 1))
    return X, X @ rng.standard_normal(n - 1) > 1.3 * math.sqrt(n)


def f1_loss(w):
    """1 - F1 of a rare class by a linear model, of which w is all weights and the last one a bias."""
    X, rare = rare_class(w.size)
    said = X @ w[:-1] + w[-1] > 0
    return 1 - 2 * float((said & rare).sum()) / max(float(said.sum() + rare.sum()), 1.0)


def stairs(w):
    return float(np.floor(STEEP[-w.size :] * np.abs(w - WANTED[-w.size :])).sum())


@pytest.mark.parametrize(("F", "n", "left"), [(f1_loss, 20, 0.05), (stairs, 1, 0.0), (stairs, 50, 0.02)])
@pytest.mark.parametrize("scale", [1.0, 1e-8])
def test_functions_made_of_steps(F, n, left, scale):
    for start in (np.zeros(n), np.full(n, 0.5)):
        result = minimize(lambda w: scale * F(w), start, 4_000, seed=3)
        assert result.fun == scale * F(result.x)
        assert F(result.x) <= left * F(np.zeros(n))
        assert result.success


def test_steps_beside_what_is_smooth():
    """Errors and a penalty: slopes next to a point are those of the penalty, and mislead."""
    result = minimize(lambda w: f1_loss(w) + 1e-4 * float(w @ w), np.zeros(20), 4_000)
    assert f1_loss(result.x) < 0.1


def test_steps_by_ranks_against_their_equations():
    """The first move of the mean, ties sharing their weights; and a monotone function of F changes nothing."""
    coarse, seen = lambda w: float(stairs(w) // 20), []
    minimize(lambda w: seen.append(w.copy()) or coarse(w), np.zeros(10), 18 + 2 * 21)
    drawn, mean = np.array(seen[18:38]), seen[59]
    assert (seen[38] == 0).all()  # the mean itself comes last
    losses = np.array([coarse(w) for w in drawn])
    assert len(set(losses)) < 15
    weights = np.maximum(math.log(10.5) - np.log(np.arange(1, 21)), 0)
    ranks = [[weights[np.sum(losses < a) : np.sum(losses <= a)].mean()] for a in losses]
    np.testing.assert_allclose(mean, (np.array(ranks) * drawn).sum(0) / weights.sum())
    by_rank = minimize(lambda w: math.exp(0.1 * coarse(w)), np.zeros(10), 600)
    assert (by_rank.x == minimize(coarse, np.zeros(10), 600).x).all()


@pytest.mark.parametrize(
    ("F", "noise", "left"), [(sphere, 0.1, 3e-3), (sphere, 5.0, 0.2), (long, 0.1, 0.05), (corner, 0.1, 0.1)]
)
def test_noise(F, noise, left):
    result = minimize(noisy(F, noise), np.zeros(N), 8_000)
    assert F(result.x) < left * F(np.zeros(N))
    assert result.success


def test_a_start_that_is_not_zero_and_weights_of_another_size():
    start = 1e6 + np.zeros(N)
    F = lambda w: float(((w / 1e6 - WANTED) ** 2).sum())  # noqa: E731
    assert minimize(F, start, 4_000).fun < 1e-6 * F(start)


def test_inputs_with_active_weights_and_sparse_rows():
    rng = np.random.default_rng(0)
    X = scipy.sparse.random_array((200, 40), density=0.1, rng=rng, format="csr")
    wanted = rng.standard_normal(40)
    F = lambda w, x: float(np.abs((x @ (w - wanted)).sum()))  # noqa: E731
    mean = lambda w: np.abs(X @ (w - wanted)).mean()  # noqa: E731
    by_rows = minimize(F, np.zeros(40), 6_000, sample=X)
    assert mean(by_rows.x) < 0.6 * mean(np.zeros(40))
    row = lambda k: X[[k % 200]]  # noqa: E731
    said = minimize(F, np.zeros(40), 6_000, sample=row, active=lambda x: np.unique(x.indices))
    assert (said.x == by_rows.x).all()
    all_of_them = minimize(lambda w, k: F(w, row(k)), np.zeros(40), 6_000)  # neither: x is the step, all are active
    assert mean(all_of_them.x) < 0.7 * mean(np.zeros(40))


def test_weights_in_a_dict_come_back_in_one():
    seen = []

    def F(w):
        seen.append({name: part.shape for name, part in w.items()})
        return float(((w["A"] - 2) ** 2).sum() + (w["b"] + 1) ** 2)

    result = minimize(F, {"A": np.zeros((2, 3)), "b": 0.0}, 300)
    assert all(shapes == {"A": (2, 3), "b": ()} for shapes in seen)
    np.testing.assert_allclose(result.x["A"], np.full((2, 3), 2.0), atol=1e-3)
    assert float(result.x["b"]) == pytest.approx(-1, abs=1e-3)


@pytest.mark.parametrize("F", [lambda a, b: bool(sphere(a) < sphere(b)), sphere])
def test_comparisons_need_no_lengths_either(F):
    result = minimize(F, np.zeros(N), 10_000, rule="comparison")
    assert sphere(result.x) < 0.01 * sphere(np.zeros(N))


def test_given_h_and_mu_are_algorithm_1():
    result = minimize(sphere, np.zeros(N), 42, h=0.01, mu=0.1, rule="two-point", seed=5)
    optimizer = Optimizer(N, Settings("two-point", "active", h=0.01, mu=0.1, seed=5))
    for _ in range(21):
        proposal = optimizer.ask()
        optimizer.tell(proposal, [sphere(values) for values in proposal.outputs])
    assert (result.x == optimizer.weights()).all()
    with pytest.raises(UsageError, match="h and mu: give both, or neither"):
        minimize(sphere, np.zeros(N), h=0.1)


# Stops


def test_target_stall_seconds_and_callback_end_a_run():
    assert minimize(sphere, N, target=1e-3).nfev < 1_000
    stalled = minimize(lambda w: max(sphere(w), 1.0), N, stall=500)
    assert (stalled.fun, stalled.message) == (1.0, "no progress in 500 evaluations")
    assert minimize(sphere, N, seconds=0).message == "0 seconds are over"
    results = []
    ended = minimize(sphere, N, callback=lambda result: results.append(result) or len(results) == 3)
    assert (ended.message, len(results)) == ("the callback ended it", 3)
    assert results[0].fun > results[2].fun


def test_a_known_point_is_the_start():
    result = minimize(sphere, N, 200, known=[(WANTED + 0.1, 0.5), (WANTED, 0.0)], callback=None)
    assert result.fun == 0.0


# What has gone wrong is said


def run(*args, **given):
    with pytest.warns(RuntimeWarning, match="minimize: ") as said:
        result = minimize(*args, **given)
    assert [str(each.message) for each in said] == [f"minimize: {result.message}"]
    assert not result.success
    return result


def test_divergence_names_h_and_returns_the_best_seen():
    result = run(sphere, np.zeros(N), h=1.0, mu=0.1, rule="two-point")
    assert "it diverges" in result.message
    assert "a smaller h" in result.message
    assert (result.x == 0).all()
    assert result.fun == sphere(np.zeros(N))


def test_a_plateau_is_named_and_ends_the_run():
    result = run(lambda w: 1.0, np.zeros(N))
    assert "a plateau: no perturbation changed F" in result.message
    assert result.nfev < 1_100


def test_an_F_without_lower_bound_ends_the_run_and_a_bound_helps():
    result = run(lambda w: -float((w**2).sum()), np.ones(20), 40_000)
    assert "no lower bound; `bounds`" in result.message
    assert result.nfev < 10_000
    assert minimize(lambda w: -float((w**2).sum()), np.ones(20), 2_000, bounds=[(-2, 2)]).fun == -80
    with pytest.raises(UsageError, match="for each of 20 weights, or one pair in a list"):
        minimize(lambda w: 0.0, np.ones(20), bounds=(-2, 2))


def test_a_mu_that_cannot_work_is_named():
    result = run(lambda w: float((w > 0.5).sum()), np.zeros(N), h=0.1, mu=1e-9)
    assert "mu 1e-09 may be too small" in result.message


def test_a_run_that_learned_nothing_says_so():
    rng = np.random.default_rng(0)
    result = run(lambda w: rng.standard_normal(), np.zeros(N), 5_000)
    assert "learned nothing" in result.message
    assert "learned nothing" in run(lambda a, b: False, N, 500, rule="comparison").message
    chance = lambda w: float(np.random.default_rng(np.abs(np.floor(w * 1e3)).astype(int)).integers(10))  # noqa: E731
    assert "F at the last 100 points is not lower than at the first" in run(chance, np.zeros(20), 3_000).message


# SciPy, workers, ask and tell


def test_scipys_minimize_takes_it_as_a_method():
    seen = []
    result = scipy.optimize.minimize(
        lambda w, by: sphere(w) + by, np.zeros(N), args=(1.0,), method=scipy_method, callback=seen.append,
        options={"maxfev": 2_000},
    )  # fmt: skip
    assert isinstance(result, scipy.optimize.OptimizeResult)
    assert result.fun == pytest.approx(1.0, abs=1e-6)
    assert seen
    assert seen[0].shape == (N,)
    inside = scipy.optimize.minimize(
        sphere, np.zeros(N), method=scipy_method, bounds=[(-0.5, 0.5)] * N, options={"budget": 3_000}
    )
    np.testing.assert_allclose(inside.x, np.clip(WANTED, -0.5, 0.5), atol=0.01)
    with pytest.raises(UsageError, match="takes no constraints"):
        scipy.optimize.minimize(sphere, np.zeros(N), method=scipy_method, constraints={"type": "eq", "fun": sum})


@pytest.mark.parametrize("given", [{}, {"noisy": True}, {"rule": "comparison"}, {"h": 0.001, "mu": 0.1}])
def test_workers_change_nothing(given):
    alone = minimize(sphere, np.zeros(N), 2_000, ahead=8, **given)
    with ThreadPoolExecutor(3) as pool, warnings.catch_warnings():
        for workers in (pool, pool.map, map):
            result = minimize(sphere, np.zeros(N), 2_000, ahead=8, workers=workers, **given)
            assert (result.x == alone.x).all()
            assert (result.fun, result.nfev) == (alone.fun, alone.nfev)
    assert sphere(alone.x) < 0.9 * sphere(np.zeros(N))


def where_sphere_is_evaluated(w):
    """sphere, and a hair more in another process: whoever evaluates here by mistake has another least value."""
    return sphere(w) + (1.0 if os.getpid() != HERE else 0.0)


def test_a_number_of_workers_is_processes_of_its_own():
    alone = minimize(sphere, np.zeros(N), 400, ahead=16)
    result = minimize(where_sphere_is_evaluated, np.zeros(N), 400, workers=2)
    np.testing.assert_allclose(result.x, alone.x, atol=1e-6)
    assert result.fun == pytest.approx(1 + alone.fun)
    assert not multiprocessing.active_children()
    with pytest.raises(UsageError, match=r"workers 2: F cannot go to other processes .* define it at the top of a"):
        minimize(lambda w: sphere(w), np.zeros(N), workers=2)


@pytest.mark.parametrize("prefer", ["threads", "processes"])
def test_joblib(prefer):
    joblib = pytest.importorskip("joblib")
    wanted, here = WANTED, os.getpid()

    def F(w):  # goes by value
        return 0.5 * float(((w - wanted) ** 2).sum()), os.getpid() != here

    elsewhere = []

    def counted(call, tasks):
        found = joblib.Parallel(2, prefer=prefer)((call, (task,), {}) for task in tasks)
        elsewhere.extend(other for _, other in found)
        return [value for value, _ in found]

    alone = minimize(sphere, np.zeros(N), 200, ahead=16)
    assert (minimize(F, np.zeros(N), 200, ahead=16, workers=counted).x == alone.x).all()
    assert all(elsewhere) == (prefer == "processes")
    with joblib.Parallel(2, prefer=prefer) as pool:
        assert (minimize(lambda w: F(w)[0], np.zeros(N), 200, workers=pool).x == alone.x).all()


def test_a_ray_pool(own_ray):
    from ray.util.multiprocessing import Pool

    wanted = WANTED

    def F(w):  # goes by value: Ray's workers do not know this file
        return 0.5 * float(((w - wanted) ** 2).sum())

    alone = minimize(sphere, np.zeros(N), 200, ahead=16)
    pool = Pool(2)
    try:
        assert (minimize(F, np.zeros(N), 200, workers=pool).x == alone.x).all()
    finally:
        pool.terminate()
        pool.join()


def test_an_optimizer_with_nothing_chosen_goes_on_bit_for_bit_and_is_replayed():
    rng, events = np.random.default_rng(0), []
    rows = [rng.choice(N, 10, replace=False) for _ in range(400)]
    optimizer, again = Optimizer(N, seed=4), Optimizer(N, seed=4)
    optimizer.on_event = events.append

    def teach(optimizer, rows):
        for proposals in (optimizer.ask_many(rows[k : k + 4]) for k in range(0, len(rows), 4)):
            optimizer.tell_many(
                proposals, [np.array([np.abs(v - WANTED[p.x]).sum() for v in p.outputs]) for p in proposals]
            )

    teach(optimizer, rows[:200])
    asked = optimizer.ask(rows[0])
    other = Optimizer.from_bytes(optimizer.to_bytes())
    for each in (optimizer, other):
        each.tell(each.open_proposals[0], (1.0, 2.0))
        teach(each, rows[200:])
    assert (optimizer.weights() == other.weights()).all()
    assert corner(optimizer.weights()) < 0.65 * corner(np.zeros(N))
    replay(again, events)
    assert (again.weights() == optimizer.weights()).all()
    assert asked.step == 200


def test_the_automatic_step_against_its_equations():
    optimizer, w, r, squares = Optimizer(N), np.zeros(N), 0.0, 0.0
    for _ in range(50):
        proposal = optimizer.ask()
        F_plus, F_minus = sphere(proposal.candidate), sphere(proposal.incumbent)
        r_now = max(r, 0.01 * math.sqrt(N))
        mu = r_now / math.sqrt(N)
        u = (proposal.candidate - proposal.incumbent) / (2 * mu)
        assert abs((u**2).mean() - 1) < 5 * math.sqrt(2 / N)
        g = (F_plus - F_minus) / (2 * mu)
        squares += g * g * N
        w = w - r_now / math.sqrt(squares) * g * u
        r = max(r, float(np.linalg.norm(w)))
        optimizer.tell(proposal, (F_plus, F_minus))
        np.testing.assert_allclose(optimizer.weights(), w, rtol=1e-9, atol=1e-12)


def test_a_weight_that_two_open_proposals_wake_has_moved_once():
    """mu = r / sqrt(N), N the weights that have moved or would."""
    optimizer, r = Optimizer(N), 0.0
    for _ in range(100):
        for proposal in optimizer.ask_many([range(10), range(10)]):
            optimizer.tell(proposal, [-float(values.sum()) for values in proposal.outputs])
            r = max(r, float(np.linalg.norm(optimizer.weights())))
    assert r > 0.01 * math.sqrt(20)
    optimizer.ask(range(10, 20))
    assert optimizer.mu == pytest.approx(r / math.sqrt(20))


def test_telling_what_was_not_asked():
    optimizer = Optimizer(N)
    assert optimizer.tell_known(WANTED, 0.0)
    proposal = optimizer.ask()
    optimizer.tell(proposal, [sphere(values) for values in proposal.outputs])
    assert not optimizer.tell_known(np.zeros(N), 50.0)
    assert sphere(optimizer.weights()) < 1.0


def test_what_the_page_says_to_users_of_others_runs():
    page = (Path(__file__).parent.parent / "docs" / "minimize.md").read_text("utf-8")
    blocks = [part.split("```")[0] for part in page.split("## From Nevergrad")[1].split("```python\n")[1:]]
    assert len(blocks) == 3
    named = {"F": sphere}
    for block in blocks:
        exec(block, named)  # the names of the first go on in the others
        assert sphere(named.pop("w")) < 0.05 * sphere(np.zeros(N))


def test_the_example_runs(capsys):
    runpy.run_path(str(Path(__file__).parent.parent / "examples" / "own_function.py"))
    assert capsys.readouterr().out.startswith("1 - F1 is 0.")
