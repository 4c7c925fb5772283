"""minimize against the paper's own statements and against the literal algorithm, which draws all n normals a step.

Seeds are fixed. Means over seeds may be off by 4.5 of their standard errors.
"""

from __future__ import annotations

import doctest
import math

import numpy as np
import pytest
from sparsezo.minimize import minimize

from sparsezo import minimize as module
from sparsezo.errors import SparsezoError, UsageError
from sparsezo.rules import RULES

RULE_NAMES = [name for name, rule in RULES.items() if rule.zeroth_order]
PERTURBS = ["all", "active", "score"]


class Problem:
    """n weights; input x sees those of A[x] through scores C[x] w[A[x]], with targets that w_star meets."""

    def __init__(self, n=6, M=3, R=2, inputs=4, seed=0):
        rng = np.random.default_rng(seed)
        self.n = n
        self.A = np.array([rng.choice(n, M, replace=False) for _ in range(inputs)])
        self.C = rng.standard_normal((inputs, R, M))
        self.w_star = rng.standard_normal(n)
        self.w0 = rng.standard_normal(n)

    def active(self, x):
        return self.A[x]

    def features(self, x):
        return self.C[x]

    def sample(self, k):
        return (k * k + k // 3) % len(self.A)

    def errors(self, w, x):
        return self.C[x] @ (w - self.w_star)[self.A[x]]

    def absolute(self, w, x):
        return np.abs(self.errors(w, x)).mean()

    def quadratic(self, w, x):
        return 0.5 * (self.errors(w, x) ** 2).sum()

    def minimize(self, F=None, **given):
        given = {"h": 0.1, "mu": 0.2, "steps": 1, "features": self.features, "w0": self.w0, **given}
        return minimize(F or self.absolute, self.sample, self.active, self.n, **given)


def assert_same_mean(left, right):
    """Two samples, each with its seeds along the first axis."""
    error = np.sqrt(left.var(0) / len(left) + right.var(0) / len(right))
    assert (np.abs(left.mean(0) - right.mean(0)) <= 4.5 * error + 1e-12).all()


def assert_mean_is(samples, expected):
    error = samples.std(0, ddof=1) / math.sqrt(len(samples))
    assert (np.abs(samples.mean(0) - expected) <= 4.5 * error + 1e-12).all(), (samples.mean(0), expected, error)


def products(samples):
    """All w_i w_j, whose means are the second moments."""
    return np.einsum("si,sj->sij", samples, samples).reshape(len(samples), -1)


def test_the_example_in_the_docstring():
    assert doctest.testmod(module).failed == 0


# The law


def literal_all(problem, rule, h, mu, steps, runs, seed):
    """Algorithm 1 with u ~ N(0, I) on all n weights, many runs at once."""
    rng = np.random.default_rng(seed)
    w = np.tile(problem.w0, (runs, 1))

    def F(w, x):
        return np.abs((w - problem.w_star)[:, problem.A[x]] @ problem.C[x].T).mean(1)

    for k in range(steps):
        x = problem.sample(k)
        u = rng.standard_normal(w.shape)
        F_plus, F_0 = F(w + mu * u, x), F(w, x)
        c = -h * (F_plus - F_0) / mu if rule == "two-point" else np.where(F_plus < F_0, h / mu, 0.0)
        w += c[:, None] * u
    return w


@pytest.mark.parametrize("rule", ["two-point", "comparison"])
def test_lazy_all_has_the_law_of_literal_all(rule):
    problem, h, mu, steps = Problem(), 0.3, 0.5, 7
    literal = literal_all(problem, rule, h, mu, steps, runs=60_000, seed=1)
    given = {"rule": rule, "perturb": "all", "h": h, "mu": mu}
    lazy = np.array([problem.minimize(**given, steps=steps, seed=seed).w for seed in range(5_000)])
    assert_same_mean(lazy, literal)
    assert_same_mean(products(lazy), products(literal))


def test_sleeping_weights_are_owed_the_sum_of_c_squared():
    problem = Problem(n=2_000, M=2, R=1)
    asleep = np.setdiff1d(np.arange(problem.n), problem.A)
    runs = [problem.minimize(perturb="all", steps=3, seed=seed) for seed in range(10)]
    assert all((run.state.w[asleep] == problem.w0[asleep]).all() for run in runs)
    normals = np.concatenate([(run.w - problem.w0)[asleep] / math.sqrt((run.c**2).sum()) for run in runs])
    assert_mean_is(normals, 0.0)
    assert_mean_is(normals**2, 1.0)


@pytest.mark.parametrize("perturb", PERTURBS)
@pytest.mark.parametrize("rule", ["two-point", "symmetric"])
def test_the_mean_step_is_the_gradient_of_a_quadratic(rule, perturb):
    """f_mu differs from a quadratic f by a constant, so Lemma 1 gives f's own gradient."""
    problem = Problem()
    h, x = 0.1, problem.sample(0)
    runs = (problem.minimize(problem.quadratic, rule=rule, perturb=perturb, h=h, seed=seed) for seed in range(4_000))
    moves = np.array([run.w - problem.w0 for run in runs])
    gradient = np.zeros(problem.n)
    gradient[problem.A[x]] = problem.C[x].T @ problem.errors(problem.w0, x)
    assert_mean_is(moves, -h * gradient)


def test_score_has_active_s_mean_step_and_less_variance():
    problem = Problem(n=12, M=8, R=2)
    moves = {}
    for perturb, first_seed in (("active", 0), ("score", 10_000)):
        runs = (problem.minimize(perturb=perturb, seed=first_seed + seed) for seed in range(3_000))
        moves[perturb] = np.array([run.w - problem.w0 for run in runs])
    assert_same_mean(moves["active"], moves["score"])
    assert (moves["score"] ** 2).sum(1).mean() < 0.6 * (moves["active"] ** 2).sum(1).mean()


def test_score_s_step_is_active_s_projected():
    problem = Problem()
    active, score = (problem.minimize(perturb=perturb, seed=3) for perturb in ("active", "score"))
    assert score.c == pytest.approx(active.c)
    x = problem.sample(0)
    P = np.linalg.pinv(problem.C[x]) @ problem.C[x]
    move = (active.w - problem.w0)[problem.A[x]]
    np.testing.assert_allclose((score.w - problem.w0)[problem.A[x]], P @ move, rtol=1e-9, atol=1e-12)


def test_dependent_rows_do_not_matter():
    """C of rank 1: P is a projector on one dimension."""
    row = np.array([[1.0, 2.0, 2.0]])
    C = np.concatenate([row, 2 * row, row])
    seen = []
    for seed in range(2_000):
        minimize(
            lambda w, x: seen.append(w.copy()) or 0.0,
            lambda k: 0,
            lambda x: [0, 1, 2],
            3,
            rule="baseline",
            perturb="score",
            features=lambda x: C,
            h=1,
            mu=0.1,
            steps=1,
            seed=seed,
        )
    u = np.array(seen) / 0.1
    np.testing.assert_allclose(u, np.outer(u @ row[0] / 9, row[0]), atol=1e-12)
    assert_mean_is((u**2).sum(1), 1.0)


@pytest.mark.parametrize(("perturb", "dimension"), [("active", 5), ("score", 2), ("all", 9)])
def test_mean_squared_norm_of_u(perturb, dimension):
    """n_bar(x) as in the paper's Sec. 3; rank(C) for score; n for all."""
    problem = Problem(n=9, M=5, R=2)
    norms = []
    for seed in range(3_000):
        run = problem.minimize(perturb=perturb, rule="preference", seed=seed)  # its c is never 0 here
        norms.append((((run.w - problem.w0) / run.c[0]) ** 2).sum())
    assert_mean_is(np.array(norms), dimension)


# How it runs


@pytest.mark.parametrize("perturb", PERTURBS)
@pytest.mark.parametrize("rule", RULE_NAMES)
def test_it_optimises_what_has_no_derivative(rule, perturb):
    problem = Problem(n=12, M=4, R=2, inputs=8, seed=2)

    def mean_loss(w):
        return np.mean([problem.absolute(w, x) for x in range(len(problem.A))])

    h, mu = {"comparison": (0.001, 0.05), "preference": (0.001, 0.05), "baseline": (0.004, 0.3)}.get(rule, (0.02, 0.05))
    run = problem.minimize(rule=rule, perturb=perturb, h=h, mu=mu, steps=3_000)
    assert mean_loss(run.w) < 0.5 * mean_loss(problem.w0)


@pytest.mark.parametrize("perturb", PERTURBS)
@pytest.mark.parametrize("rule", RULE_NAMES)
def test_a_stopped_run_goes_on_bit_for_bit(rule, perturb):
    problem = Problem()
    given = {"rule": rule, "perturb": perturb, "seed": 5}
    whole = problem.minimize(**given, steps=20)
    first = problem.minimize(**given, steps=8)
    before = first.state.w.copy()
    rest = problem.minimize(**given, steps=12, w0=None, state=first.state)
    assert (rest.w == whole.w).all()
    assert (np.concatenate([first.history, rest.history]) == whole.history).all()
    assert (rest.average_loss, rest.steps) == (whole.average_loss, 20)
    assert (first.state.w == before).all()


def test_what_f_sees():
    """w + mu u first, then w itself, restored to the bit; and only active weights ever differ."""
    problem, seen = Problem(), []

    def F(w, x):
        seen.append(w.copy())
        with pytest.raises(ValueError, match="read-only"):
            w[0] = 1
        return problem.absolute(w, x)

    problem.minimize(F)
    plus, at_w = seen
    assert (at_w == problem.w0).all()
    assert set(np.flatnonzero(plus != at_w)) == set(problem.A[problem.sample(0)])


@pytest.mark.parametrize(("rule", "calls"), [("two-point", 2), ("symmetric", 2), ("comparison", 2), ("baseline", 1)])
def test_baseline_asks_for_one_loss(rule, calls):
    problem, count = Problem(), []
    problem.minimize(lambda w, x: count.append(x) or problem.absolute(w, x), rule=rule, steps=5)
    assert len(count) == 5 * calls


def test_average_loss_and_history():
    problem = Problem()
    run = problem.minimize(steps=50)
    assert run.history.shape == run.c.shape == (50,)
    assert run.average_loss == pytest.approx(run.history.mean())
    assert (problem.minimize(steps=50).w == run.w).all()
    assert (problem.minimize(steps=50, seed=1).w != run.w).any()


def test_the_callback_sees_every_step_and_may_stop():
    problem, infos = Problem(), []
    run = problem.minimize(perturb="all", steps=50, callback=lambda info: infos.append(info) or info.k == 9)
    assert run.steps == 10
    assert [info.k for info in infos] == list(range(10))
    assert [info.F_plus for info in infos] == list(run.history)
    assert (infos[-1].weights() == run.w).all()
    assert infos[-1].average_loss == run.average_loss


def test_inputs_from_an_iterable():
    problem = Problem()
    stream = iter([problem.sample(k) for k in range(12)])
    args = (problem.absolute, stream, problem.active, problem.n)
    given = {"h": 0.1, "mu": 0.2, "w0": problem.w0}
    first = minimize(*args, **given, steps=10)
    assert (first.w == problem.minimize(steps=10).w).all()
    assert minimize(*args, **given, steps=10).steps == 2  # where it ends, the run ends
    empty = minimize(*args, **given, steps=10)
    assert (empty.steps, empty.average_loss, empty.history.size) == (0, 0.0, 0)
    assert (empty.w == problem.w0).all()


def test_an_input_without_active_weights():
    run = minimize(lambda w, x: 1.0, lambda k: k, lambda x: [], 4, h=1, mu=1, steps=3, perturb="all")
    assert (run.w == 0).all()


# What is refused


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"h": 0}, "h 0: must be positive"),
        ({"mu": math.inf}, "mu inf: must be positive"),
        ({"h": "fast"}, "h fast: must be positive"),
        ({"steps": 0}, "steps 0: must be a whole number, 1 or more"),
        ({"steps": 2.5}, "steps 2.5: must be a whole number"),
        ({"seed": -1}, "seed -1: must be a whole number"),
        ({"rule": "first-order"}, "rule first-order: choose from two-point, "),
        ({"perturb": "some"}, "perturb some: choose from all, active, score"),
        ({"perturb": "score", "features": None}, "perturb score needs features"),
        ({"perturb": "score", "features": lambda x: np.ones((2, 5))}, r"step 0: features\(x\) has shape \(2, 5\)"),
        ({"w0": np.zeros(5)}, "w0: must be 6 weights"),
        ({"w0": np.full(6, np.nan)}, "w0: every weight must be finite"),
    ],
)
def test_wrong_settings(given, message):
    with pytest.raises(UsageError, match=f"^{message}") as error:
        Problem().minimize(**given)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("indices", "message"),
    [
        ([0, 6], r"step 0: active\(x\) has 6; the 6 weights are 0 to 5"),
        ([-1], r"step 0: active\(x\) has -1"),
        ([2, 3, 2], r"step 0: active\(x\) names a weight twice"),
        ([0.0, 1.0], r"step 0: active\(x\) must be one row of whole numbers"),
        ([[0, 1]], r"step 0: active\(x\) must be one row"),
    ],
)
def test_wrong_indices(indices, message):
    with pytest.raises(UsageError, match=message):
        minimize(lambda w, x: 0.0, lambda k: k, lambda x: indices, 6, h=1, mu=1, steps=1)


def test_n_must_be_a_number_of_weights():
    with pytest.raises(UsageError, match="n 0: must be a whole number, 1 or more"):
        minimize(lambda w, x: 0.0, lambda k: k, lambda x: [0], 0, h=1, mu=1, steps=1)


def test_a_state_goes_with_its_perturbation_and_without_w0():
    problem = Problem()
    state = problem.minimize(perturb="all", steps=2).state
    with pytest.raises(UsageError, match="not of a run with perturb active"):
        problem.minimize(perturb="active", w0=None, state=state)
    with pytest.raises(UsageError, match="w0 and state"):
        problem.minimize(perturb="all", state=state)


@pytest.mark.parametrize("value", [math.nan, math.inf, np.float32(np.nan)])
def test_a_loss_that_is_not_finite_stops_and_says_where(value):
    problem = Problem()
    calls = []

    def F(w, x):
        calls.append(x)
        return value if len(calls) > 8 else problem.absolute(w, x)

    with pytest.raises(SparsezoError, match=r"^step 4: F is (nan|inf), not finite") as error:
        problem.minimize(F, steps=10)
    assert error.value.exit_code == 1


def test_a_loss_that_is_no_number():
    with pytest.raises(UsageError, match="step 0: F must return a number, not ndarray"):
        Problem().minimize(lambda w, x: w)
