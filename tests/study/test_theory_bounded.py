"""Any loss in [0, 1]: f_mu's Hessian, the length of a step, and the bound that follows, by closed forms and by runs.

Seeds are fixed. A simulated mean may be off by 4.5 of its standard errors; under a bound it stays with 3 added.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from sparsezo.errors import UsageError
from sparsezo.kernels import codes
from sparsezo.kernels.coefficient import coefficient
from sparsezo.study.theory import (
    LARGEST_GRADIENT,
    bounded_h,
    bounded_iterations,
    bounded_L1,
    bounded_moment,
    bounded_rate,
    bounded_rows,
    bounded_steps,
    gradient_norm_bound,
    scaled_bound,
)

RULES = ("two-point", "baseline", "symmetric")


def phi(z):
    return np.exp(-np.square(z) / 2) / math.sqrt(2 * math.pi)


def mean_and_error(samples):
    return samples.mean(0), samples.std(0, ddof=1) / math.sqrt(len(samples))


class Steps:
    """A loss on the line that is constant between its jumps: f_mu's derivatives are closed forms."""

    def __init__(self, jumps, values):
        self.at, self.values = np.array([-np.inf, *jumps, np.inf]), np.array(values)

    def _ends(self, w, mu):
        return (self.at - w) / mu

    def gradient(self, w, mu):  # E[F u] / mu; the integral of z phi(z) is -phi(z)
        return -np.diff(phi(self._ends(w, mu))) @ self.values / mu

    def hessian(self, w, mu):  # E[(F - 1/2)(u^2 - 1)] / mu^2; the integral of (z^2 - 1) phi(z) is -z phi(z)
        z = self._ends(w, mu)
        z = np.where(np.isinf(z), 0.0, z) * phi(z)
        return -np.diff(z) @ (self.values - 0.5) / mu**2


# The Hessian


@pytest.mark.parametrize("mu", [0.1, 1.0, 3.0])
def test_no_loss_has_a_longer_hessian_and_one_has_that(mu):
    assert bounded_L1(mu) == pytest.approx(0.48394 / mu**2, rel=1e-5)
    rng = np.random.default_rng(1)
    for _ in range(2000):
        loss = Steps(np.sort(rng.normal(size=3)) * mu, rng.integers(2, size=4))
        assert abs(loss.hessian(rng.normal() * mu, mu)) <= bounded_L1(mu) * (1 + 1e-12)
    outside = Steps([-mu, mu], [1, 0, 1])  # 1{|w| >= mu}
    assert outside.hessian(0.0, mu) == pytest.approx(bounded_L1(mu), rel=1e-12)


def test_no_gradient_is_longer_than_a_half_spaces():
    rng = np.random.default_rng(4)
    for _ in range(1000):
        loss = Steps(np.sort(rng.normal(size=3)), rng.integers(2, size=4))
        assert loss.gradient(rng.normal(), 1.0) ** 2 <= LARGEST_GRADIENT * (1 + 1e-12)
    assert Steps([0.0], [0, 1]).gradient(0.0, 2.0) ** 2 * 2.0**2 == pytest.approx(LARGEST_GRADIENT)
    assert pytest.approx(0.159, abs=5e-4) == LARGEST_GRADIENT


# The length of a step


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("perturb", "m"), [("all", 20), ("active", 8), ("score", 3)])
def test_second_moment_of_a_step(rule, perturb, m):
    """The loss of the best of six outputs, whose features span 3 dimensions of 8 active weights of 20."""
    rng = np.random.default_rng(5)
    C = np.zeros((6, 20))
    C[:, :8] = rng.normal(size=(6, 3)) @ rng.normal(size=(3, 8))
    P = np.linalg.pinv(C) @ C
    losses, w, mu = rng.random(6), np.zeros(20), 0.4
    u = rng.normal(size=(40_000, 20)) * (1 if perturb == "all" else C.any(0))

    def F(w):
        return losses[(w @ C.T).argmax(-1)]

    change = {
        "two-point": F(w + mu * u) - F(w),
        "baseline": F(w + mu * u) - F(w + mu * u).mean(),
        "symmetric": (F(w + mu * u) - F(w - mu * u)) / 2,
    }[rule]
    squared = (change / mu) ** 2 * ((u @ P if perturb == "score" else u) ** 2).sum(1)
    mean, error = mean_and_error(squared)
    assert 0 < mean + 3 * error <= bounded_moment(m, mu, rule)


def test_the_bounds_of_a_step_are_attained():
    """Two-point where w alone is right; symmetric on the edge of a half-space."""
    u = np.random.default_rng(6).normal(size=(40_000, 5))
    mu, norms = 0.3, (u**2).sum(1)
    mean, error = mean_and_error(((1 - 0) / mu) ** 2 * norms)
    assert abs(mean - bounded_moment(5, mu)) <= 4.5 * error
    change = (u[:, 0] > 0).astype(float) - (u[:, 0] < 0)
    mean, error = mean_and_error((change / (2 * mu)) ** 2 * norms)
    assert abs(mean - bounded_moment(5, mu, "symmetric")) <= 4.5 * error


def test_baselines_mean_step_is_a_gradient_times_1_minus_1_over_k():
    """Over the step's own u, whatever the mean before it is."""
    loss, mu, h, before, k = Steps([0.2], [0.2, 0.9]), 0.5, 0.1, 0.65, 4
    u = np.random.default_rng(7).normal(size=200_000)
    F = loss.values[(mu * u > 0.2).astype(int)]
    mean_k = ((k - 1) * before + F) / k
    steps = np.array([coefficient(codes.BASELINE, h, mu, *pair) for pair in zip(F, 0 * F, mean_k, strict=True)]) * u
    mean, error = mean_and_error(steps)
    assert abs(mean + h * (1 - 1 / k) * loss.gradient(0.0, mu)) <= 4.5 * error
    assert abs(mean) > 30 * error


# The theorem


@pytest.mark.parametrize("rule", ["two-point", "symmetric"])
@pytest.mark.parametrize("mu", [0.1, 2.0])
def test_the_scaled_bound_is_theorem_1_with_these_constants(rule, mu):
    """f_mu(w_0) - f* <= 1; gradient_norm_bound has (n_bar + 4)^2 L0^2 for what is M here."""
    m, N, h = 30, 500, 0.02
    M = bounded_moment(m, mu, rule)
    theorem = gradient_norm_bound(h, 1.0, 1.0, math.sqrt(M) / 5, bounded_L1(mu), N)
    assert scaled_bound(h / mu**2, m, N, rule) == pytest.approx(mu**2 * theorem)


@pytest.mark.parametrize(("rule", "of_rate", "of_bound"), [("two-point", 4.13, 0.968), ("symmetric", 16.53, 0.242)])
@pytest.mark.parametrize(("m", "N"), [(4, 10), (213, 4_000_000), (2.8e6, 4_000_000)])
def test_the_best_rate_and_its_bound_by_their_constants(rule, of_rate, of_bound, m, N):
    best = bounded_rate(m, N, rule)
    assert best == pytest.approx(math.sqrt(of_rate / (m * (N + 1))), rel=1e-3)
    assert scaled_bound(best, m, N, rule) == pytest.approx(math.sqrt(of_bound * m / (N + 1)), rel=1e-3)
    for factor in (0.1, 0.99, 1.01, 10):
        assert scaled_bound(best * factor, m, N, rule) > scaled_bound(best, m, N, rule)
    assert bounded_h(0.3, m, N, rule) == pytest.approx(0.09 * best)


@pytest.mark.parametrize("N", [1, 7, 998, 999, 1000, 20_000])
def test_baselines_weights_are_summed(N):
    weight = sum(1 - 1 / k for k in range(1, N + 2))
    assert bounded_rate(9.0, N, "baseline") == pytest.approx(1 / math.sqrt(phi(1) * 9.0 * weight), rel=1e-12)
    assert scaled_bound(0.01, 9.0, N, "baseline") == pytest.approx(1 / (0.01 * weight) + phi(1) * 9.0 * 0.01, rel=1e-12)


@pytest.mark.parametrize("rule", ["two-point", "symmetric"])
@pytest.mark.parametrize("epsilon", [0.001, 0.02, 0.3])
def test_the_number_of_iterations_is_tight(rule, epsilon):
    m = 213
    N = bounded_iterations(epsilon, m, rule)
    assert scaled_bound(bounded_rate(m, N, rule), m, N, rule) <= epsilon * (1 + 1e-12)
    assert scaled_bound(bounded_rate(m, N - 1, rule), m, N - 1, rule) > epsilon * (1 - 1e-12)
    assert bounded_iterations(epsilon, 2 * m, rule) == pytest.approx(2 * N, rel=0.02)  # linear in m


def test_it_says_something_from_38_steps_a_dimension():
    assert bounded_steps(1000) + 1 == pytest.approx(16 * math.pi**2 * phi(1) * 1000, abs=1)
    assert bounded_steps(1000) == pytest.approx(38_210, abs=10)
    assert bounded_steps(1000, "symmetric") == pytest.approx(38_210 / 4, abs=10)


class Halves:
    """F(w, x) = a loss on the wrong side of x, another on the right one: two outputs, best by the sign of a_x'w."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.n, self.N = 6, 5
        self.A = np.zeros((self.N, self.n))
        for a in self.A:
            a[rng.choice(self.n, 3, replace=False)] = rng.uniform(0.5, 1.5, 3)
        self.norms = np.linalg.norm(self.A, axis=1)
        self.losses = np.array([rng.uniform(0.8, 1, self.N), rng.uniform(0, 0.2, self.N)])

    def gradient(self, w, mu):
        z = w @ self.A.T / (mu * self.norms)
        return (phi(z) * (self.losses[1] - self.losses[0]) / (mu * self.norms)) @ self.A / self.N

    def F(self, w, x):
        return self.losses[((w * self.A[x]).sum(1) > 0).astype(int), x]

    def direction(self, perturb, x, rng):
        u = rng.normal(size=(len(x), self.n))
        if perturb == "all":
            return u, u
        u *= self.A[x] != 0
        P_u = ((u * self.A[x]).sum(1) / self.norms[x] ** 2)[:, None] * self.A[x]
        return u, P_u if perturb == "score" else u


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("perturb", "m"), [("all", 6), ("active", 3), ("score", 1)])
@pytest.mark.parametrize("faster", [1, 8])
def test_a_run_keeps_the_bound(rule, perturb, m, faster):
    """Under MAP, from weights that are all wrong, averaged over 30 runs; at the bound's best h and at 8 times it."""
    problem, mu, N, runs = Halves(8), 0.5, 2500, 30
    rng = np.random.default_rng(9)
    w = np.repeat(-0.5 * mu * problem.A.mean(0)[None], runs, axis=0)
    rate = faster * bounded_rate(m, N, rule)
    h, told = rate * mu**2, np.zeros(runs)
    average, weights = np.zeros(runs), 0.0
    first = mu**2 * (problem.gradient(w[:1], mu) ** 2).sum()
    for k in range(1, N + 2):
        weight = 1 - 1 / k if rule == "baseline" else 1.0
        average += weight * mu**2 * (problem.gradient(w, mu) ** 2).sum(1)
        weights += weight
        x = rng.integers(problem.N, size=runs)
        u, direction = problem.direction(perturb, x, rng)
        F_plus = problem.F(w + mu * u, x)
        told += F_plus
        if rule == "symmetric":
            change = (F_plus - problem.F(w - mu * u, x)) / 2
        else:
            change = F_plus - (told / k if rule == "baseline" else problem.F(w, x))
        w -= (h / mu * change)[:, None] * direction
    mean, error = mean_and_error(average / weights)
    bound = scaled_bound(rate, m, N, rule)
    assert mean + 3 * error <= bound
    if faster == 1 and m <= 3:
        assert bound < 0.8 * first  # the theorem says something here: the gradient has to have shrunk


# What the command line shows, and what is refused


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bounded_moment(3, 1, "comparison"), "rule comparison: choose from two-point, baseline, symmetric"),
        (lambda: bounded_rate(3, 10, "preference"), "no other rule descends f in general"),
        (lambda: bounded_iterations(0.1, 3, "baseline"), "have no closed form"),
        (lambda: scaled_bound(0.1, 3, 0, "baseline"), "N 0: baseline's first step is none"),
        (lambda: bounded_rows(10, 20, 5, 1, 1), "must be r_bar <= n_bar <= n"),
        (lambda: bounded_L1(1e-200), "bounded_L1: the result does not fit a float"),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(UsageError) as caught:
        call()
    assert message in str(caught.value)
