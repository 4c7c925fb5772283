"""minimize against the paper's own statements and against the literal algorithm, which draws all n normals a step.

Seeds are fixed. Means over seeds may be off by 4.5 of their standard errors.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from sparsezo.errors import SparsezoError, UsageError
from sparsezo.minimization import minimize
from sparsezo.optimizer import Optimizer
from sparsezo.rules import RULES
from sparsezo.settings import Settings

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


def assert_mean_is(samples, expected):
    error = samples.std(0, ddof=1) / math.sqrt(len(samples))
    assert (np.abs(samples.mean(0) - expected) <= 4.5 * error + 1e-12).all(), (samples.mean(0), expected, error)


# The law


@pytest.mark.parametrize("perturb", PERTURBS)
@pytest.mark.parametrize("rule", ["two-point", "symmetric"])
def test_the_mean_step_is_the_gradient_of_a_quadratic(rule, perturb):
    """f_mu differs from a quadratic f by a constant, so Lemma 1 gives f's own gradient."""
    problem = Problem()
    h, x = 0.1, problem.sample(0)
    runs = (problem.minimize(problem.quadratic, rule=rule, perturb=perturb, h=h, seed=seed) for seed in range(500))
    moves = np.array([run.w - problem.w0 for run in runs])
    gradient = np.zeros(problem.n)
    gradient[problem.A[x]] = problem.C[x].T @ problem.errors(problem.w0, x)
    assert_mean_is(moves, -h * gradient)


def test_dependent_rows_do_not_matter():
    """C of rank 1: P is a projector on one dimension."""
    row = np.array([[1.0, 2.0, 2.0]])
    C = np.concatenate([row, 2 * row, row])
    seen = []
    given = {"rule": "baseline", "perturb": "score", "features": lambda x: C, "h": 1, "mu": 0.1, "steps": 1}
    for seed in range(1_000):
        minimize(lambda w, x: seen.append(w.copy()) or 0.0, lambda k: 0, lambda x: [0, 1, 2], 3, **given, seed=seed)
    u = np.array(seen) / 0.1
    np.testing.assert_allclose(u, np.outer(u @ row[0] / 9, row[0]), atol=1e-12)
    assert_mean_is((u**2).sum(1), 1.0)


# A run by hand


@pytest.mark.parametrize("perturb", PERTURBS)
@pytest.mark.parametrize("rule", RULE_NAMES)
def test_a_run_is_ask_and_tell_one_after_the_other(rule, perturb):
    """test_optimizer.py has ask and tell against Algorithm 1 taken literally."""
    problem = Problem(n=9)
    run = problem.minimize(rule=rule, perturb=perturb, h=0.1, mu=0.3, steps=6, seed=7)
    optimizer, losses, cs = Optimizer(9, Settings(rule, perturb, 0.1, 0.3, seed=7), problem.w0), [], []
    for x in map(problem.sample, range(6)):
        proposal = optimizer.ask(problem.A[x], problem.C[x])
        F = [np.abs(problem.C[x] @ (values - problem.w_star[problem.A[x]])).mean() for values in proposal.outputs]
        cs.append(optimizer.tell(proposal, F if len(F) == 2 else F[0]).c)
        losses.append(F[0])
    assert (run.history.tolist(), run.c.tolist(), run.average_loss) == (losses, cs, optimizer.average_loss)
    np.testing.assert_array_equal(run.w, optimizer.weights())
    assert len({problem.sample(k) for k in range(6)}) > 1


# How it runs


@pytest.mark.parametrize("rule", RULE_NAMES)
def test_it_optimises_what_has_no_derivative(rule):
    problem = Problem(n=12, M=4, R=2, inputs=8, seed=2)

    def mean_loss(w):
        return np.mean([problem.absolute(w, x) for x in range(len(problem.A))])

    h, mu = {"comparison": (0.001, 0.05), "preference": (0.001, 0.05), "baseline": (0.004, 0.3)}.get(rule, (0.02, 0.05))
    run = problem.minimize(rule=rule, perturb="active", h=h, mu=mu, steps=3_000)
    assert mean_loss(run.w) < 0.5 * mean_loss(problem.w0)


@pytest.mark.parametrize("perturb", PERTURBS)
@pytest.mark.parametrize("rule", RULE_NAMES)
def test_a_stopped_run_goes_on_bit_for_bit(rule, perturb):
    problem = Problem()
    given = {"rule": rule, "perturb": perturb, "seed": 5}
    # under all the end of the first part is a reading, so the whole run has one there, too
    whole = problem.minimize(**given, steps=20, callback=lambda info: info.k == 7 and info.weights() is None)
    first = problem.minimize(**given, steps=8)
    before = first.state
    rest = problem.minimize(**given, steps=12, w0=None, state=first.state)
    assert (rest.w == whole.w).all()
    assert (np.concatenate([first.history, rest.history]) == whole.history).all()
    assert (rest.average_loss, rest.steps) == (whole.average_loss, 20)
    assert first.state == before


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


# What is refused


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"h": 0}, "`h` 0.0: must be positive and finite"),
        ({"h": "fast"}, "h fast: must be positive and finite"),
        ({"steps": 0}, "steps 0: must be a whole number, 1 or more"),
        ({"steps": 2.5}, "steps 2.5: must be a whole number, 1 or more"),
        ({"seed": -1}, "seed -1: must be a whole number, 0 or more"),
        ({"seed": 1.0}, "seed 1.0: must be a whole number, 0 or more"),
        ({"rule": "first-order"}, "rule first-order perturbs nothing: leave out `perturb` and `mu`"),
        (
            {"perturb": "score", "features": None},
            "perturb score needs features(x): C, where F reads w through C w[active(x)] alone",
        ),
        (
            {"perturb": "score", "features": lambda x: np.ones((2, 5))},
            "step 0: C has shape (2, 5); make it rows x 3, as active is long",
        ),
        ({"w0": np.zeros(5)}, "the weights to start from have shape (5,); make it (6, 1)"),
        ({"w0": np.zeros((6, 2))}, "the weights to start from have shape (6, 2); make it (6, 1)"),
        ({"w0": np.full(6, np.nan)}, "the weights to start from must all be finite"),
    ],
)
def test_wrong_settings(given, message):
    with pytest.raises(UsageError) as error:
        Problem().minimize(**given)
    assert str(error.value) == message


def test_features_that_are_not_finite_stop_the_run_at_their_step():
    C = np.ones((1, 3))
    with pytest.raises(SparsezoError) as error:
        Problem().minimize(perturb="score", steps=3, features=lambda x: C if x == Problem().sample(0) else C * np.inf)
    assert str(error.value) == "step 1: C is not finite"
    assert error.value.exit_code == 1


def test_wrong_indices_are_said_with_the_step_at_which_they_come():
    with pytest.raises(UsageError) as error:
        minimize(lambda w, x: 0.0, lambda k: k, lambda x: [0, 6] if x else [5, 0], 6, h=1, mu=1, steps=2)
    assert str(error.value) == "step 1: active has 6; the 6 weights are 0 to 5"


def test_a_state_goes_with_its_perturbation_and_without_w0():
    problem = Problem()
    state = problem.minimize(perturb="all", steps=2).state
    with pytest.raises(UsageError) as error:
        problem.minimize(perturb="active", w0=None, state=state)
    assert str(error.value) == (
        "state: is of a run with two-point, all, h 0.1, mu 0.2, seed 0; start from its weights by w0=result.w"
    )
    with pytest.raises(UsageError, match="is of a run with two-point, active"):
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
