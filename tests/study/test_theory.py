"""Theory is tested as theory: every bound against simulation, every formula against another way to get its value.

Seeds are fixed. A simulated mean may be off by 4.5 of its standard errors; a simulated mean under a bound has to stay
under it with 3 standard errors added.
"""

from __future__ import annotations

import doctest
import inspect
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import erf

from sparsezo.errors import UsageError
from sparsezo.study import theory
from sparsezo.study.theory import (
    Complexity,
    bound_at_h,
    bound_at_h_star,
    gradient_norm_bound,
    h_star,
    iterations,
    moment,
    moment_bound,
    mu_tilde,
    n_bar_of,
    sharp_iterations,
    sharp_L1,
    step_moment,
    step_moments,
    symmetric_moment,
)

CONSTANTS = [
    {"alpha": 0.5, "R": 1.0, "n_bar": 10.0, "L0": 1.0},
    {"alpha": 0.01, "R": 30.0, "n_bar": 3300.0, "L0": 0.7},
    {"alpha": 2.0, "R": 0.3, "n_bar": 1.0, "L0": 1.9},
]


def mean_and_error(samples):
    """Over the first axis."""
    return samples.mean(0), samples.std(0, ddof=1) / math.sqrt(len(samples))


def assert_mean_is(samples, expected):
    mean, error = mean_and_error(samples)
    assert (np.abs(mean - expected) <= 4.5 * error + 1e-12).all(), (mean, expected, error)


def assert_mean_below(samples, bound):
    mean, error = mean_and_error(samples)
    assert mean + 3 * error <= bound, (mean, error, bound)


class Absolute:
    """f(w) = mean over x of F(w, x) = |a_x'w - b_x|, each a_x sparse. b = A w*, so that f* = f(w*) = 0.

    One score an input: r(x) = 1. f_mu and its gradient are closed forms and the same under all three perturbations,
    for a'u is N(0, ||a||^2) under each.
    """

    def __init__(self, n, active, seed, signs=(-1, 1)):
        rng = np.random.default_rng(seed)
        self.A = np.zeros((len(active), n))
        for a, size in zip(self.A, active, strict=True):
            a[rng.choice(n, size, replace=False)] = rng.choice(signs, size) * rng.uniform(0.5, 1.5, size)
        self.A /= np.linalg.norm(self.A, axis=1, keepdims=True) * rng.uniform(1, 1.25, (len(active), 1))
        self.norms = np.linalg.norm(self.A, axis=1)
        self.L0 = float(self.norms.max())
        self.w_star = rng.normal(size=n)
        self.b = self.A @ self.w_star

    def f(self, w):
        return np.abs(w @ self.A.T - self.b).mean(-1)

    def f_mu(self, w, mu):
        z, s = w @ self.A.T - self.b, mu * self.norms  # E|z + s N(0, 1)|
        return (s * math.sqrt(2 / math.pi) * np.exp(-((z / s) ** 2) / 2) + z * erf(z / (s * math.sqrt(2)))).mean(-1)

    def gradient(self, w, mu):
        return erf((w @ self.A.T - self.b) / (mu * self.norms * math.sqrt(2))) @ self.A / len(self.A)

    def directions(self, perturb, xs, rng):
        """u of every input in xs, and the direction to move along: P u for score, u itself otherwise."""
        a = self.A[xs]
        u = rng.normal(size=a.shape)
        if perturb != "all":
            u *= a != 0
        if perturb == "score":
            return u, ((a * u).sum(1) / (a * a).sum(1))[:, None] * a
        return u, u

    def steps(self, perturb, w, mu, xs, rng, rule="two-point"):
        """s_mu(w) of every input in xs, w one vector or one for each."""
        a, b = self.A[xs], self.b[xs]
        u, direction = self.directions(perturb, xs, rng)
        z = (a * w).sum(1) - b
        up = mu * (a * u).sum(1)
        change = np.abs(z + up) - np.abs(z) if rule == "two-point" else (np.abs(z + up) - np.abs(z - up)) / 2
        return (change / mu)[:, None] * direction

    def dimension(self, perturb):
        """The n_bar of Theorem 1, or n, or r_bar."""
        counts = {"all": np.full(len(self.A), self.A.shape[1]), "active": (self.A != 0).sum(1)}
        return n_bar_of(counts.get(perturb, np.ones(len(self.A)))).valid


# Lemma 2


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 1.9, 2.0, 3.0, 4.0, 6.5])
@pytest.mark.parametrize("n_bar", [1, 7, 40])
def test_moments_of_the_perturbation(p, n_bar):
    norms = np.linalg.norm(np.random.default_rng(n_bar).normal(size=(20_000, n_bar)), axis=1)
    assert_mean_is(norms**p, moment(p, n_bar))
    assert moment(p, n_bar) <= moment_bound(p, n_bar) * (1 + 1e-12)


@pytest.mark.parametrize("n_bar", [0.3, 1, 5, 213.4, 3300, 2.8e6])
def test_known_moments(n_bar):
    assert moment(0, n_bar) == pytest.approx(1)
    assert moment(2, n_bar) == pytest.approx(n_bar, rel=1e-7)  # E||u||^2 = n_bar
    assert moment(4, n_bar) == pytest.approx(n_bar * (n_bar + 2), rel=1e-7)
    assert step_moment(n_bar, n_bar) == pytest.approx(moment(4, n_bar), rel=1e-7)
    assert moment_bound(4, n_bar) == pytest.approx((n_bar + 4) ** 2)
    assert moment_bound(1.5, n_bar) == pytest.approx(n_bar**0.75)
    for p in np.linspace(0, 12, 49):
        assert moment(p, n_bar) <= moment_bound(p, n_bar) * (1 + 1e-7)


# Lemma 1


@pytest.mark.parametrize("perturb", ["all", "active", "score"])
def test_all_three_perturbations_have_the_same_mean_step(perturb):
    problem, mu = Absolute(n=12, active=[3, 1, 5, 4], seed=4), 0.7
    rng = np.random.default_rng(5)
    w = rng.normal(size=12)
    xs = rng.integers(4, size=200_000)
    assert_mean_is(problem.steps(perturb, w, mu, xs, rng), problem.gradient(w, mu))


# Theorem 1


@pytest.mark.parametrize(("perturb", "m"), [("all", 60), ("active", 12), ("score", 4)])
@pytest.mark.parametrize(
    ("rule", "loss"),
    [
        *(("two-point", loss) for loss in ("norm", "largest", "wave")),
        *(("symmetric", loss) for loss in ("linear", "norm", "largest", "wave")),
    ],
)
def test_second_moment_of_a_step(perturb, m, rule, loss):
    """A loss of r = 4 scores C w, C's 4 rows orthonormal on 12 of 60 weights; L0 = 1."""
    rng = np.random.default_rng(8)
    n, n_active, r, mu = 60, 12, 4, 0.8
    C = np.zeros((r, n))
    C[:, rng.choice(n, n_active, replace=False)] = np.linalg.qr(rng.normal(size=(n_active, r)))[0].T
    F = {
        "linear": lambda S: S[..., 0],
        "norm": lambda S: np.linalg.norm(S, axis=-1),
        "largest": lambda S: np.abs(S).max(-1),
        "wave": lambda S: np.sin(np.linalg.norm(S - 1, axis=-1)),  # not convex
    }[loss]
    u = rng.normal(size=(50_000, n)) * (1 if perturb == "all" else C.any(0))
    attained = (rule, loss) in (("two-point", "norm"), ("symmetric", "linear"))
    w = np.zeros(n) if rule == "two-point" and attained else rng.normal(size=n) * 0.3
    other = w if rule == "two-point" else w - mu * u
    change = (F((w + mu * u) @ C.T) - F(other @ C.T)) / (mu if rule == "two-point" else 2 * mu)
    direction = u @ C.T @ C if perturb == "score" else u
    squared = change**2 * (direction**2).sum(1)
    assert_mean_below(squared, (m + 4) ** 2)  # L0^2 (n_bar + 4)^2, the paper's
    if attained:  # at w = 0 a norm's change is ||P u||; of one score, r is 1
        assert_mean_is(squared, step_moment(m, r) if rule == "two-point" else symmetric_moment(m, 1))
    else:
        assert_mean_below(squared, (step_moment if rule == "two-point" else symmetric_moment)(m, r))


def test_step_moments_of_a_data_set():
    active, score = [10, 40, 0], [2, 9, 0]
    assert step_moments(100, active, score) == {
        "all": pytest.approx(11 * 102 / 3),
        "active": pytest.approx((2 * 12 + 9 * 42) / 3),
        "score": pytest.approx((2 * 4 + 9 * 11) / 3),
    }
    assert step_moment(active, score, [1, 2, 5]) == pytest.approx((24 + 4 * 378) / 3)
    assert symmetric_moment(active, score, 3) == pytest.approx(9 * (10 + 2 * 2**0.5 + 40 + 6) / 3)
    # the means are enough for symmetric, since the root is concave
    assert symmetric_moment(active, score) <= symmetric_moment(np.mean(active), np.mean(score))


@pytest.mark.parametrize("seed", range(5))
def test_n_bar_of(seed):
    counts = np.random.default_rng(seed).poisson(20, 1000) * (seed + 1)
    n_bar = n_bar_of(counts)
    assert n_bar.mean == pytest.approx(counts.mean())
    assert (n_bar.valid + 4) ** 2 == pytest.approx(((counts + 4.0) ** 2).mean())
    assert n_bar.mean <= n_bar.valid <= counts.max()
    # The mean itself does exactly as long as the variance is at most 6 mean + 16
    fourth = np.mean([step_moment(c, c) for c in counts if c])
    fourth *= np.count_nonzero(counts) / counts.size
    assert (fourth <= (n_bar.mean + 4) ** 2) == (counts.var() <= 6 * n_bar.mean + 16)


def assert_a_run_keeps(bound, problem, perturb, h, mu, N, rule="two-point"):
    """Averaged over 24 runs, from far away; and the bound says something: the gradient has to have shrunk."""
    rng = np.random.default_rng(11)
    w = np.repeat(start_of(problem)[None], 24, axis=0)
    average = np.zeros(24)
    for _ in range(N + 1):
        average += (problem.gradient(w, mu) ** 2).sum(1) / (N + 1)
        w -= h * problem.steps(perturb, w, mu, rng.integers(len(problem.A), size=24), rng, rule)
    assert_mean_below(average, bound)
    assert bound < 0.8 * (problem.gradient(start_of(problem), mu) ** 2).sum()


def start_of(problem):
    return problem.w_star + 8 / math.sqrt(5)


@pytest.mark.parametrize("perturb", ["all", "active", "score"])
def test_a_run_keeps_theorem_1(perturb):
    """With the h that is best for the bound."""
    problem, mu, N = Absolute(n=5, active=[3, 1, 2, 3, 2, 1], seed=10, signs=(1,)), 2.0, 10_000
    m, gap = problem.dimension(perturb), float(problem.f_mu(start_of(problem), mu))  # f* = 0
    L1 = theory.L1(m, mu, problem.L0)
    h = math.sqrt(gap / ((N + 1) * 0.5 * L1 * (m + 4) ** 2 * problem.L0**2))
    assert_a_run_keeps(gradient_norm_bound(h, gap, m, problem.L0, L1, N), problem, perturb, h, mu, N)


def test_theorem_1_of_a_sequence_is_that_of_a_constant():
    constants = {"gap": 2.0, "n_bar": 7.0, "L0": 0.8, "L1": 3.0}
    assert gradient_norm_bound([0.01] * 101, **constants) == pytest.approx(
        gradient_norm_bound(0.01, **constants, N=100)
    )
    h = 0.1 / np.sqrt(np.arange(1, 51))
    expected = (2 + 0.5 * 3 * 11**2 * 0.64 * sum(v * v for v in h)) / sum(h)
    assert gradient_norm_bound(h, **constants) == pytest.approx(expected)
    assert gradient_norm_bound(list(h), **constants, N=49) == pytest.approx(expected)


# Corollary 1


def test_mu_tilde_is_its_formula():
    """alpha / (sqrt(n_bar) L0), and attained: |f_mu - f| of F(w) = L0 ||w|| at w = 0 is mu L0 E||u||, near alpha."""
    assert mu_tilde(0.3, 9.0, 2.0) == pytest.approx(0.05)
    assert theory.L1(9.0, 0.05, 2.0) == pytest.approx(120)
    n_bar, alpha, L0 = 400, 0.3, 2.0
    assert 0.998 * alpha < mu_tilde(alpha, n_bar, L0) * L0 * moment(1, n_bar) <= alpha


@pytest.mark.parametrize("alpha", [0.01, 1.0])
def test_mu_tilde_keeps_f_mu_within_alpha_and_L1_is_a_lipschitz_constant(alpha):
    problem = Absolute(n=30, active=[4, 9, 2, 6], seed=12)
    n_bar = n_bar_of((problem.A != 0).sum(1)).mean  # for these two the mean is enough: sqrt is concave
    rng = np.random.default_rng(13)
    for m in (n_bar, 1.0):  # active, score
        mu = mu_tilde(alpha, m, problem.L0)
        w = problem.w_star + rng.normal(size=(500, 30)) * rng.choice([0.0, 0.01, 1.0], (500, 1)) * mu
        v = w + rng.normal(size=(500, 30)) * mu * 0.1
        assert (np.abs(problem.f_mu(w, mu) - problem.f(w)) <= alpha).all()
        change = np.linalg.norm(problem.gradient(w, mu) - problem.gradient(v, mu), axis=1)
        assert (change <= theory.L1(m, mu, problem.L0) * np.linalg.norm(w - v, axis=1)).all()
        tighter = math.sqrt(2 / math.pi) * problem.L0 / mu
        assert (change <= tighter * np.linalg.norm(w - v, axis=1)).all()


@pytest.mark.parametrize("gamma", [0.3, 1.0, 5.0])
def test_L0_of_the_annealed_criterion(gamma):
    """gamma Cov(Delta, phi) is never longer than gamma D / 4, and with two opposite outputs as long as that."""
    rng = np.random.default_rng(15)
    for case in range(200):
        phi = rng.normal(size=(2 + case % 4, 3))
        Delta = rng.random(len(phi)) if case % 2 else rng.integers(2, size=len(phi))
        D = np.linalg.norm(phi[:, None] - phi[None], axis=2).max()
        scores = gamma * phi @ rng.normal(size=3)
        p = np.exp(scores - scores.max())
        p /= p.sum()
        assert np.linalg.norm(gamma * (p * (Delta - p @ Delta)) @ phi) <= theory.annealed_L0(gamma, D) * (1 + 1e-12)
    phi, Delta, p = np.array([[1.0], [-1.0]]), np.array([0, 1]), np.array([0.5, 0.5])
    assert np.linalg.norm(gamma * (p * (Delta - p @ Delta)) @ phi) == pytest.approx(theory.annealed_L0(gamma, 2))


@pytest.mark.parametrize("constants", CONSTANTS)
@pytest.mark.parametrize("N", [0, 10, 4_000_000])
def test_h_star_makes_the_bound_smallest(constants, N):
    best = h_star(**constants, N=N)
    at_best = bound_at_h(best, **constants, N=N)
    assert at_best == pytest.approx(bound_at_h_star(**constants, N=N), rel=1e-12)
    for factor in np.geomspace(0.01, 100, 81):
        assert bound_at_h(best * factor, **constants, N=N) >= at_best * (1 - 1e-12)
    for factor in (0.99, 1.01):
        assert bound_at_h(best * factor, **constants, N=N) > at_best


@pytest.mark.parametrize("constants", CONSTANTS)
def test_the_printed_bound_is_above_theorem_1_and_its_best_sqrt_2_above(constants):
    """The appendix drops Theorem 1's 1/2: an upper bound of it, sqrt(2) too large at the two best h, N twice."""
    N, (alpha, R, n_bar, L0) = 1000, constants.values()
    L1 = theory.L1(n_bar, mu_tilde(alpha, n_bar, L0), L0)
    best = h_star(**constants, N=N)
    rates = best * np.geomspace(0.001, 1000, 601)
    halved = [gradient_norm_bound(h, L0 * R, n_bar, L0, L1, N) for h in rates]
    printed = [bound_at_h(h, **constants, N=N) for h in rates]
    assert all(p > t for p, t in zip(printed, halved, strict=True))
    assert min(printed) == pytest.approx(math.sqrt(2) * min(halved), rel=1e-3)
    at_half = gradient_norm_bound(best * math.sqrt(2), L0 * R, n_bar, L0, L1, N)
    assert at_half * math.sqrt(2) == pytest.approx(bound_at_h_star(**constants, N=N))


@pytest.mark.parametrize("constants", [*CONSTANTS, {"alpha": 0.1, "R": 10.0, "n_bar": 2.8e6, "L0": 1.0}])
@pytest.mark.parametrize("epsilon", [0.001, 0.1, 0.25, 3.0])
def test_N_of_epsilon_is_tight(constants, epsilon):
    N = iterations(epsilon, **constants)
    alpha, R, n_bar, L0 = (Fraction(value) for value in constants.values())

    def squared(N):  # bound_at_h_star^2, exactly: past 2^53 floats cannot tell N from N - 1
        return 4 * n_bar * (n_bar + 4) ** 2 * L0**5 * R / (alpha * (N + 1))

    assert N >= 0
    assert squared(N) <= Fraction(epsilon) ** 2
    assert N == 0 or squared(N - 1) > Fraction(epsilon) ** 2
    assert bound_at_h_star(**constants, N=N) <= epsilon * (1 + 1e-12)


@pytest.mark.parametrize("epsilon", [0.003, 0.1])
@pytest.mark.parametrize("moment_of", [step_moment, symmetric_moment])
def test_sharp_iterations_are_theorem_1_at_its_best_h(epsilon, moment_of):
    alpha, R, L0, r, m = 0.2, 3.0, 0.7, 6.0, 50.0
    M = moment_of(m, r)
    N = sharp_iterations(epsilon, alpha, R, L0, r, M)
    gap, L1 = L0 * R, sharp_L1(mu_tilde(alpha, r, L0), L0)

    def best(N):  # gradient_norm_bound has (n_bar + 4)^2 L0^2 for what is L0^2 M here
        h = math.sqrt(2 * gap / (L1 * L0**2 * M * (N + 1)))
        return gradient_norm_bound(h, gap, 1.0, L0 * math.sqrt(M) / 5, L1, N)

    assert best(N) <= epsilon * (1 + 1e-12)
    assert best(N - 1) > epsilon * (1 - 1e-12)


@pytest.mark.parametrize("rule", ["two-point", "symmetric"])
@pytest.mark.parametrize(("perturb", "m"), [("all", 5), ("active", 3), ("score", 1)])
def test_a_run_keeps_the_sharper_bound(rule, perturb, m):
    """At the bound's best h, which is larger than the paper's."""
    problem, mu, N = Absolute(n=5, active=[3] * 6, seed=10, signs=(1,)), 2.0, 3000
    gap, L1 = float(problem.f_mu(start_of(problem), mu)), sharp_L1(mu, problem.L0)
    M = problem.L0**2 * (step_moment if rule == "two-point" else symmetric_moment)(m, 1)
    h = math.sqrt(2 * gap / (L1 * M * (N + 1)))
    assert_a_run_keeps(math.sqrt(2 * gap * L1 * M / (N + 1)), problem, perturb, h, mu, N, rule)


# The rows of the command line


def test_rows():
    case = Complexity(n=2_800_000, n_bar=3300, r_bar=213, L0=0.5, R=10, alpha=0.1, epsilon=0.01)
    rows = case.rows()
    assert [row.perturb for row in rows] == ["all", "active", "score"]
    assert [row.dimension for row in rows] == [2_800_000, 3300, 213]
    for row in rows:
        constants = {"alpha": 0.1, "R": 10, "n_bar": row.dimension, "L0": 0.5}
        assert row.mu_tilde == mu_tilde(0.1, row.dimension, 0.5)
        assert iterations(0.01, **constants) == row.N
        assert row.h_star == h_star(**constants, N=row.N)
        sharp = {"epsilon": 0.01, "alpha": 0.1, "R": 10, "L0": 0.5, "r": 213}  # the loss sees r of u under each
        assert row.N_two_point == sharp_iterations(**sharp, moment=step_moment(row.dimension, 213))
        assert row.N_symmetric == sharp_iterations(**sharp, moment=symmetric_moment(row.dimension, 213))
        assert bound_at_h(row.h_star, **constants, N=row.N) == pytest.approx(0.01, rel=1e-6)
    assert rows[0].N > rows[1].N > rows[2].N
    moments = {"all": 7e8, "active": 9e5, "score": 6e4}
    known = Complexity(2_800_000, 3300, 213, 0.5, 10, 0.1, 0.01, moments).rows()
    for row, moment_of_it, before in zip(known, moments.values(), rows, strict=True):
        assert row.N_two_point == sharp_iterations(0.01, 0.1, 10, 0.5, 213, moment_of_it) != before.N_two_point
        assert (row.N, row.N_symmetric) == (before.N, before.N_symmetric)


def test_numpy_numbers_do_not_wrap_around():
    n = np.int64(2_800_000)
    assert bound_at_h_star(0.1, 1.0, n, np.int32(1), np.int64(4)) == bound_at_h_star(0.1, 1.0, 2.8e6, 1.0, 4)
    case = Complexity(n, np.int64(3300), np.float32(213), 1, 1, 0.1, 0.1)
    assert case.rows() == Complexity(2.8e6, 3300, 213, 1, 1, 0.1, 0.1).rows()
    assert Complexity(n, n, n, 1, 1, 0.1, 0.1).rows()[0].N > 10**20


# What is refused

GOOD = {"alpha": 0.5, "R": 1.0, "n_bar": 10.0, "L0": 1.0, "N": 5, "epsilon": 0.1, "mu": 0.1, "h": 0.1, "p": 2.0, "m": 4}
GOOD |= {"r": 2, "gap": 1.0, "L1": 1.0, "n": 20.0, "r_bar": 5.0, "rate": 0.1, "gamma": 1.0, "D": 2.0, "moment": 9.0}
GOOD |= {"C": 3.0, "a": 1.5, "ratio": 0.01}
FORMULAS = [each for each in vars(theory).values() if hasattr(each, "__wrapped__")]  # those that check what they get


@pytest.mark.parametrize("formula", [*FORMULAS, Complexity], ids=lambda formula: formula.__name__)
def test_every_argument_is_checked(formula):
    names = [name for name in inspect.signature(formula).parameters if name not in ("rule", "moments")]
    good = {name: GOOD[name] for name in names}
    formula(**good)
    for name in names:
        bad = [-1, math.nan, math.inf, "?", [[1.0]]]
        bad += [] if name == "N" else [10**400]  # a whole number may be that large; then the bound is just 0
        bad += [] if formula is gradient_norm_bound and name == "N" else [None]
        for value in bad:
            with pytest.raises(UsageError) as caught:
                formula(**{**good, name: value})
            assert "\n" not in str(caught.value)
        if name not in ("p", "gap", "N"):
            with pytest.raises(UsageError):
                formula(**{**good, name: 0})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mu_tilde(0.1, 0, 1), "n_bar 0: must be positive and finite"),
        (lambda: h_star(1, 1, 1, 1, 2.5), "N 2.5: must be a whole number, 0 or more"),
        (lambda: gradient_norm_bound(0.1, 1, 1, 1, 1), "give N"),
        (lambda: gradient_norm_bound([0.1, 0.0], 1, 1, 1, 1), "every learning rate must be positive"),
        (lambda: gradient_norm_bound([0.1, 0.1], 1, 1, 1, 1, N=4), "give N + 1 rates h_0 ... h_N in one row"),
        (lambda: gradient_norm_bound([[0.1, 0.1]], 1, 1, 1, 1), "in one row, not an array of shape (1, 2)"),
        (lambda: step_moment(3, 4), "cannot see more than the m = 3"),
        (lambda: step_moment([3, 4], [1, 2, 3]), "give equally many of each"),
        (lambda: symmetric_moment([3, 4], [1, -2]), "r: the numbers must be finite and not negative"),
        (lambda: Complexity(10, 5, 2, 1, 1, 1, 1, {"all": 1}), "moments: give one for each of all, active, score"),
        (lambda: Complexity(10, 5, 2, 1, 1, 1, 1, dict.fromkeys(("all", "active", "score"), 0)), "must be positive"),
        (lambda: moment(1e5, 3), "moment: the result does not fit a float"),
        (lambda: gradient_norm_bound([1e200, 1], 1, 1, 1, 1), "gradient_norm_bound: the result does not fit"),
        (lambda: n_bar_of(3), "one number for each input"),
        (lambda: n_bar_of([0, 0]), "not all 0"),
        (lambda: n_bar_of([1e200, 1]), "from 0 to 2^53"),
        (lambda: n_bar_of(["many"]), "n_active: must be a number or numbers"),
        (lambda: Complexity(10, 20, 5, 1, 1, 1, 1), "must be r_bar <= n_bar <= n"),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(UsageError) as caught:
        call()
    assert message in str(caught.value)
    assert caught.value.exit_code == 2


def test_examples():
    tried = doctest.testmod(theory)
    assert tried.attempted >= 7
    assert tried.failed == 0
