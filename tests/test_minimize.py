"""minimize against the paper's own statements and against the literal algorithm, which draws all n normals a step.

Seeds are fixed. Means over seeds may be off by 4.5 of their standard errors.
"""

from __future__ import annotations

import doctest
import math

import numpy as np
import pytest

from sparsezo import minimize as module
from sparsezo.errors import SparsezoError, UsageError
from sparsezo.minimize import minimize
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


def test_features_are_projected_on_in_double_precision():
    C = Problem().C[0].astype(np.float32)
    seen = []
    given = {"rule": "baseline", "perturb": "score", "h": 1, "mu": 1.0, "steps": 1, "seed": 2}
    for features in (C, C.astype(np.float64)):
        args = (lambda w, x: seen.append(w.copy()) or 0.0, lambda k: 0, lambda x: [0, 1, 2], 3)
        minimize(*args, features=lambda x, features=features: features, **given)
    np.testing.assert_array_equal(seen[0], seen[1])


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


# A run by hand


def stream(seed, k, which):
    """0: a step's draws; 1: what a reading of all of w pays."""
    return np.random.default_rng((seed, k, which))


def by_hand(problem, rule, perturb, h, mu, steps, seed):
    """Algorithm 1 word for word, with the same random numbers: (w as read at the end, losses, c)."""
    w, paid, Q = problem.w0.copy(), np.zeros(problem.n), 0.0
    losses, cs = [], []
    for k in range(steps):
        x = problem.sample(k)
        a, draw = problem.A[x], stream(seed, k, 0)
        if perturb == "all":
            w[a] += np.sqrt(Q - paid[a]) * draw.standard_normal(len(a))
        u = np.zeros(problem.n)
        u[a] = draw.standard_normal(len(a))
        if perturb == "score":
            u[a] = np.linalg.pinv(problem.C[x]) @ problem.C[x] @ u[a]
        F_plus, F_0, F_minus = (problem.absolute(w + t * u, x) for t in (mu, 0.0, -mu))
        losses.append(F_plus)
        c = {
            "two-point": -h * (F_plus - F_0) / mu,
            "symmetric": -h * (F_plus - F_minus) / (2 * mu),
            "comparison": h / mu if F_plus < F_0 else 0.0,
            "preference": h / mu if F_plus < F_0 else -h / mu,
            "baseline": -h * (F_plus - np.mean(losses)) / mu,  # the present one included
        }[rule]
        cs.append(c)
        w += c * u
        Q += c * c
        paid[a] = Q
    if perturb == "all":
        w += np.sqrt(Q - paid) * stream(seed, steps, 1).standard_normal(problem.n)
    return w, np.array(losses), np.array(cs)


@pytest.mark.parametrize("perturb", PERTURBS)
@pytest.mark.parametrize("rule", RULE_NAMES)
def test_a_run_is_what_it_is_by_hand(rule, perturb):
    """A few steps, in which rounding cannot grow."""
    problem = Problem(n=9)
    run = problem.minimize(rule=rule, perturb=perturb, h=0.1, mu=0.3, steps=6, seed=7)
    w, losses, cs = by_hand(problem, rule, perturb, 0.1, 0.3, 6, 7)
    np.testing.assert_allclose(run.history, losses, atol=1e-9)
    np.testing.assert_allclose(run.c, cs, atol=1e-9)
    np.testing.assert_allclose(run.w, w, atol=1e-9)
    assert run.average_loss == pytest.approx(losses.mean())
    assert len({problem.sample(k) for k in range(6)}) > 1


def test_what_a_reading_pays_is_not_what_a_step_draws():
    """Streams of one seed and place: a reading after k steps and step k's own debts are independent."""
    problem = Problem(n=4_000, M=2, R=1)
    run = problem.minimize(perturb="all", steps=3, seed=5)
    asleep = np.setdiff1d(np.arange(problem.n), problem.A)
    paid = (run.w - run.state.w)[asleep] / np.sqrt(run.state.Q)
    drawn = stream(5, 3, 0).standard_normal(problem.n)[asleep]
    assert abs(np.corrcoef(paid, drawn)[0, 1]) < 5 / math.sqrt(len(asleep))
    np.testing.assert_allclose(paid, stream(5, 3, 1).standard_normal(problem.n)[asleep], atol=1e-9)


def test_the_first_step_of_baseline_does_not_move():
    """The mean of the losses so far is then the loss itself."""
    problem = Problem()
    run = problem.minimize(rule="baseline", steps=1)
    assert run.c.tolist() == [0.0]
    assert (run.w == problem.w0).all()


def test_baseline_s_mean_goes_on_with_the_state():
    losses = iter([0.5, 1.0, 0.0, 0.5])
    args = (lambda w, x: next(losses), lambda k: 0, lambda x: [0, 1], 2)
    given = {"rule": "baseline", "h": 0.3, "mu": 0.2}
    first = minimize(*args, **given, steps=2)
    second = minimize(*args, **given, steps=2, state=first.state)
    # means so far: 0.5, 0.75, 0.5, 0.5
    assert [*first.c, *second.c] == pytest.approx([0.0, -1.5 * 0.25, 1.5 * 0.5, 0.0])
    assert (second.average_loss, second.steps, second.history.tolist()) == (0.5, 4, [0.0, 0.5])


@pytest.mark.parametrize(("rule", "sign"), [("two-point", 0), ("comparison", 0), ("preference", 0), ("symmetric", -1)])
def test_where_the_two_losses_are_taken(rule, sign):
    problem, seen = Problem(), []

    def F(w, x):
        seen.append(w.copy())
        return problem.absolute(w, x)

    problem.minimize(F, rule=rule, mu=0.2, seed=4)
    u = np.zeros(problem.n)
    a = problem.A[problem.sample(0)]
    u[a] = stream(4, 0, 0).standard_normal(len(a))
    np.testing.assert_allclose(seen[0], problem.w0 + 0.2 * u, atol=1e-12)
    np.testing.assert_allclose(seen[1], problem.w0 + sign * 0.2 * u, atol=1e-12)
    assert len(seen) == 2


def test_a_state_counts_on_and_its_start_is_left_alone():
    problem = Problem()
    w0 = problem.w0.copy()
    first = problem.minimize(perturb="all", steps=4)
    assert (problem.w0 == w0).all()
    kept = first.state.copy()
    second = problem.minimize(perturb="all", steps=3, w0=None, state=first.state)
    for name in ("w", "paid"):
        np.testing.assert_array_equal(getattr(first.state, name), getattr(kept, name))
        assert getattr(kept, name) is not getattr(first.state, name)
    assert (first.state.Q, first.state.k, first.state.loss) == (kept.Q, 4, kept.loss)
    assert second.state.k == second.steps == 7
    np.testing.assert_allclose(second.state.Q, (first.c**2).sum() + (second.c**2).sum())
    assert second.state.loss == pytest.approx(first.history.sum() + second.history.sum())
    assert second.average_loss == pytest.approx(second.state.loss / 7)
    assert second.history.size == second.c.size == 3


def test_reading_does_not_change_a_run():
    problem = Problem()
    plain = problem.minimize(perturb="all", steps=20)
    read = problem.minimize(perturb="all", steps=20, callback=lambda info: info.weights() is None)
    assert (plain.w == read.w).all()
    one, other = plain.state.weights(0), plain.state.weights(0)
    assert (one == other).all()
    assert one is not plain.state.w
    assert (plain.state.weights(1) != one).any()


@pytest.mark.parametrize("perturb", ["active", "score"])
def test_without_debts_the_weights_are_the_state_s(perturb):
    run = Problem().minimize(perturb=perturb, steps=5)
    assert run.state.paid.size == 0
    assert run.state.Q == 0.0
    assert (run.w == run.state.w).all()
    run.w[:] = 0  # a copy
    assert run.state.w.any()


def test_it_starts_at_0():
    run = minimize(lambda w, x: float(w.any()), lambda k: k, lambda x: [], 3, h=1, mu=1, steps=2, rule="baseline")
    assert run.history.tolist() == [0.0, 0.0]
    assert run.w.tolist() == [0.0, 0.0, 0.0]


def test_the_defaults():
    """two-point, active and seed 0."""
    problem = Problem()
    args = (problem.absolute, problem.sample, problem.active, problem.n)
    given = {"h": 0.1, "mu": 0.2, "steps": 5, "w0": problem.w0}
    plain = minimize(*args, **given)
    assert (plain.w == minimize(*args, **given, rule="two-point", perturb="active", seed=0).w).all()
    w, _, _ = by_hand(problem, "two-point", "active", 0.1, 0.2, 5, 0)
    np.testing.assert_allclose(plain.w, w, atol=1e-9)


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
    assert [info.c for info in infos] == list(run.c)
    assert [info.x for info in infos] == [problem.sample(k) for k in range(10)]
    assert [info.average_loss for info in infos] == pytest.approx(np.cumsum(run.history) / np.arange(1, 11))
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

RULE_LIST = "two-point, symmetric, comparison, preference, baseline"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"h": 0}, "h 0: must be positive and finite"),
        ({"h": -1.0}, "h -1.0: must be positive and finite"),
        ({"h": math.nan}, "h nan: must be positive and finite"),
        ({"mu": 0.0}, "mu 0.0: must be positive and finite"),
        ({"mu": math.inf}, "mu inf: must be positive and finite"),
        ({"h": "fast"}, "h fast: must be positive and finite"),
        ({"steps": 0}, "steps 0: must be a whole number, 1 or more"),
        ({"steps": 2.5}, "steps 2.5: must be a whole number, 1 or more"),
        ({"seed": -1}, "seed -1: must be a whole number, 0 or more"),
        ({"seed": 1.0}, "seed 1.0: must be a whole number, 0 or more"),
        ({"rule": "first-order"}, f"rule first-order: choose from {RULE_LIST}"),
        ({"rule": "supervised"}, f"rule supervised: choose from {RULE_LIST}"),
        ({"perturb": "some"}, "perturb some: choose from all, active, score"),
        (
            {"perturb": "score", "features": None},
            "perturb score needs features(x): C, where F reads w through C w[active(x)] alone",
        ),
        (
            {"perturb": "score", "features": lambda x: np.ones((2, 5))},
            "step 0: features(x) has shape (2, 5); make it rows x 3, as active(x) is long",
        ),
        (
            {"perturb": "score", "features": lambda x: np.ones(3)},
            "step 0: features(x) has shape (3,); make it rows x 3, as active(x) is long",
        ),
        ({"w0": np.zeros(5)}, "w0: must be 6 weights in one row, not an array of shape (5,)"),
        ({"w0": np.zeros((6, 1))}, "w0: must be 6 weights in one row, not an array of shape (6, 1)"),
        ({"w0": np.full(6, np.nan)}, "w0: every weight must be finite"),
    ],
)
def test_wrong_settings(given, message):
    with pytest.raises(UsageError) as error:
        Problem().minimize(**given)
    assert str(error.value) == message


def test_settings_at_the_edge_are_taken():
    run = Problem().minimize(steps=np.int64(1), seed=np.int32(0), h=1, mu=np.float32(0.5))
    assert run.steps == 1
    assert minimize(lambda w, x: 0.0, lambda k: k, lambda x: [0], 1, h=1, mu=1, steps=1).w.shape == (1,)


def test_features_that_are_not_finite_stop_the_run_at_their_step():
    C = np.ones((1, 3))
    with pytest.raises(SparsezoError) as error:
        Problem().minimize(perturb="score", steps=3, features=lambda x: C if x == Problem().sample(0) else C * np.inf)
    assert str(error.value) == "step 1: features(x) is not finite"
    assert error.value.exit_code == 1


@pytest.mark.parametrize(
    ("indices", "message"),
    [
        ([0, 6], "active(x) has 6; the 6 weights are 0 to 5"),
        ([5, 9, 0], "active(x) has 9; the 6 weights are 0 to 5"),
        ([-1], "active(x) has -1; the 6 weights are 0 to 5"),
        ([-2, 3, 8], "active(x) has -2; the 6 weights are 0 to 5"),
        ([2, 3, 2], "active(x) names a weight twice; np.unique makes them distinct"),
        ([0, 0], "active(x) names a weight twice; np.unique makes them distinct"),
        ([0.0, 1.0], "active(x) must be one row of whole numbers, not float64 of shape (2,)"),
        ([True, False], "active(x) must be one row of whole numbers, not bool of shape (2,)"),
        (np.array([[0, 1]], np.int64), "active(x) must be one row of whole numbers, not int64 of shape (1, 2)"),
        (np.int64(3), "active(x) must be one row of whole numbers, not int64 of shape ()"),
    ],
)
def test_wrong_indices(indices, message):
    """At the step at which they come."""
    with pytest.raises(UsageError) as error:
        minimize(lambda w, x: 0.0, lambda k: k, lambda x: indices if x else [5, 0], 6, h=1, mu=1, steps=2)
    assert str(error.value) == f"step 1: {message}"


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.uint64])
def test_indices_of_any_whole_type(dtype):
    problem = Problem()
    run = problem.minimize(steps=3)
    args = (problem.absolute, problem.sample, lambda x: problem.A[x].astype(dtype), problem.n)
    assert (minimize(*args, h=0.1, mu=0.2, steps=3, w0=problem.w0).w == run.w).all()


def test_n_must_be_a_number_of_weights():
    with pytest.raises(UsageError, match="n 0: must be a whole number, 1 or more"):
        minimize(lambda w, x: 0.0, lambda k: k, lambda x: [0], 0, h=1, mu=1, steps=1)


def test_a_state_goes_with_its_perturbation_and_without_w0():
    problem = Problem()
    state = problem.minimize(perturb="all", steps=2).state
    with pytest.raises(UsageError) as error:
        problem.minimize(perturb="active", w0=None, state=state)
    assert str(error.value) == "state: not of a run with perturb active; start from its weights by w0=result.w"
    with pytest.raises(UsageError, match="not of a run with perturb all;"):
        problem.minimize(perturb="all", w0=None, state=problem.minimize(steps=2).state)
    with pytest.raises(UsageError) as error:
        problem.minimize(perturb="all", state=state)
    assert str(error.value) == "w0 and state: give one of them, for a state has its own weights"


@pytest.mark.parametrize("value", [math.nan, math.inf, np.float32(np.nan)])
def test_a_loss_that_is_not_finite_stops_and_says_where(value):
    problem = Problem()
    calls = []

    def F(w, x):
        calls.append(x)
        return value if len(calls) > 8 else problem.absolute(w, x)

    with pytest.raises(SparsezoError) as error:
        problem.minimize(F, steps=10)
    assert str(error.value) == f"step 4: F is {float(value)}, not finite; if h is too large, try a tenth of it"
    assert error.value.exit_code == 1


def test_a_loss_that_is_no_number():
    for value, kind in ((np.zeros(6), "ndarray"), ("low", "str"), (None, "NoneType"), (1j, "complex")):
        with pytest.raises(UsageError) as error:
            Problem().minimize(lambda w, x, value=value: value)
        assert str(error.value) == f"step 0: F must return a number, not {kind}"


@pytest.mark.parametrize("kind", [np.float32, np.int64, np.array, int, bool])
def test_a_loss_of_any_kind_of_number(kind):
    run = Problem().minimize(lambda w, x: kind(1), rule="baseline", steps=2)
    assert run.history.tolist() == [1.0, 1.0]
