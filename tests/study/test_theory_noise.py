"""Preference and comparison with answers that may be wrong, and what any learner needs: docs/theory.md.

Seeds are fixed. A simulated mean may be off by 4.5 of its standard errors; under a bound it stays with 3 added.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from sparsezo.kernels import codes
from sparsezo.kernels.coefficient import coefficient

MU = 1.0


def phi(z):
    return np.exp(-np.square(z) / 2) / math.sqrt(2 * math.pi)


def mean_and_error(samples):
    return samples.mean(0), samples.std(0, ddof=1) / math.sqrt(len(samples))


def flips(p):
    """psi of answers that are wrong with probability p: Pr("the candidate is better") = (1 + psi(F - F+)) / 2."""
    return lambda gap: (1 - 2 * p) * np.sign(gap)


def bradley_terry(tau):
    return lambda gap: np.tanh(gap / (2 * tau))


def in_proportion(gap):
    return gap


# Three inputs of one weight, of which preference learns the wrong thing: two slips against one grave mistake


LOSSES = np.array([[0.0, 0.1], [0.0, 0.1], [0.9, 0.0]])  # x: of its first output, of its second, best where w > 0


def mean_step(psi, w):
    """Preference's, over h: E[psi(F(w) - F(w + mu u)) u] / mu; the mean of u above -w / mu is phi(w / mu)."""
    F = LOSSES[:, int(w > 0)]
    return (psi(F - LOSSES[:, 1]) - psi(F - LOSSES[:, 0])).mean() * phi(w / MU) / MU


def run(psi, steps=3000, runs=200, h=0.02, rule="preference", seed=0):
    """Literal runs from w = 0, at which ties are the second output's; equal losses are no question but a tie."""
    rng, w = np.random.default_rng(seed), np.zeros(runs)
    code = {"preference": codes.PREFERENCE, "comparison": codes.COMPARISON, "two-point": codes.TWO_POINT}[rule]
    table = np.array([coefficient(code, h, MU, *pair, 0.0) for pair in ((0.0, 1.0), (1.0, 0.0))])  # better, worse
    for _ in range(steps):
        u, x = rng.normal(size=runs), rng.integers(len(LOSSES), size=runs)
        gap = LOSSES[x, (w > 0).astype(int)] - LOSSES[x, (w + MU * u > 0).astype(int)]
        if rule == "two-point":
            w += h / MU * gap * u
        else:
            better = rng.random(runs) < (1 + psi(gap)) / 2
            w += np.where(gap != 0, np.where(better, *table), 0.0) * u
    return w


@pytest.mark.parametrize("w", [-1.5, -0.2, 0.3, 2.0])
def test_wrong_answers_only_shorten_the_mean_step_of_preference(w):
    assert mean_step(flips(0.2), w) == pytest.approx(0.6 * mean_step(np.sign, w))
    assert mean_step(np.sign, w) == pytest.approx(-1 / 3 * phi(w / MU))  # the package's own, test_theory_rules.py


@pytest.mark.parametrize(
    ("psi", "right"),
    [
        (flips(0.2), False),
        (bradley_terry(0.05), False),
        (bradley_terry(0.5), True),
        (in_proportion, True),
    ],
    ids=["flips", "sure", "unsure", "in proportion"],
)
def test_preference_ends_right_where_answers_say_how_much(psi, right):
    """Of people who are sure of small differences it learns to avoid two slips; of the others the grave mistake."""
    assert (mean_step(psi, 0.5) > 0) == right
    mean, error = mean_and_error(run(psi))
    assert (mean > 4.5 * error) if right else (mean < -4.5 * error)


def test_preference_turns_where_two_slips_weigh_as_much_as_the_grave_mistake():
    tau = 0.0910  # tanh(0.9 / 2 tau) = 2 tanh(0.1 / 2 tau), docs/theory.md
    assert mean_step(bradley_terry(tau - 0.0005), 0.5) < 0 < mean_step(bradley_terry(tau + 0.0005), 0.5)


def test_comparison_with_wrong_answers_is_half_of_preference_and_a_drift_away_from_the_present_loss():
    """psi / 2 of the one, and E[u 1{F+ != F}] / 2 of the other, however often answers are wrong: back to w = 0."""
    for w, p in itertools.product([-0.7, 0.4], [0.0, 0.2, 0.45]):
        rng = np.random.default_rng(3)
        u, x = rng.normal(size=400_000), rng.integers(3, size=400_000)
        gap = LOSSES[x, int(w > 0)] - LOSSES[x, (w + MU * u > 0).astype(int)]
        told = (gap > 0) ^ (rng.random(gap.size) < p)
        steps = np.where(told & (gap != 0), coefficient(codes.COMPARISON, 1.0, MU, 0.0, 1.0, 0.0), 0.0) * u
        mean, error = mean_and_error(steps)
        drift = -np.sign(w) * phi(w / MU) / MU  # E[u 1{the other output}] / mu
        assert abs(mean - (mean_step(flips(p), w) + drift) / 2) <= 4.5 * error
    ends = run(flips(0.2), rule="comparison")
    mean, error = mean_and_error(ends)
    assert np.abs(ends).mean() < np.abs(run(flips(0.2))).mean() / 3
    assert np.abs(run(in_proportion, rule="two-point")).mean() > 3 * np.abs(ends).mean()


# Bradley and Terry: the mean step is two-point's with h / (2 tau), but for what is cubic in the losses' difference


class Steps:
    """A loss on the line that is constant between its jumps."""

    def __init__(self, jumps, values):
        self.at, self.values = np.array([-np.inf, *jumps, np.inf]), np.array(values)

    def mean(self, g, w, mu):
        """E[g(F(w + mu u)) u] / mu: the integral of z phi(z) is -phi(z)."""
        return -np.diff(phi((self.at - w) / mu)) @ g(self.values) / mu

    def F(self, w):
        return self.values[np.searchsorted(self.at[1:-1], w)]


def test_bradley_terrys_mean_step_is_near_the_gradient():
    rng, worst = np.random.default_rng(1), 0.0
    for _ in range(2000):
        loss = Steps(np.sort(rng.normal(size=3)), rng.integers(2, size=4).astype(float))
        w, mu, tau = rng.normal(), rng.uniform(0.3, 2), rng.uniform(0.5, 3)
        gradient = loss.mean(lambda F: F, w, mu)
        c = loss.F(w)
        step = loss.mean(lambda F, c=c, tau=tau: np.tanh((c - F) / (2 * tau)), w, mu)
        off = abs(2 * tau * step + gradient)
        bound = math.sqrt(2 / math.pi) / (12 * tau**2 * mu)
        assert off <= bound
        worst = max(worst, off / bound)
    assert worst > 0.4


@pytest.mark.parametrize("tau", [0.6, 1.0])
def test_a_run_on_bradley_terrys_answers_keeps_the_bound(tau):
    """mu^2 times the mean squared gradient, over 100 runs of one input that is wrong where w < 0."""
    N, runs, rng = 4000, 100, np.random.default_rng(4)
    rate = 1 / math.sqrt(4 * phi(1) * tau**2 * (N + 1))  # h / (2 tau mu^2), m = 1
    h, w, squares = 2 * tau * rate * MU**2, np.full(runs, -0.3), np.zeros(runs)
    first = phi(w[0] / MU) ** 2
    for _ in range(N + 1):
        squares += phi(w / MU) ** 2 / (N + 1)
        u = rng.normal(size=runs)
        gap = (w <= 0) * 1.0 - (w + MU * u <= 0)
        better = rng.random(runs) < (1 + np.tanh(gap / (2 * tau))) / 2
        w += np.where(gap != 0, np.where(better, h / MU, -h / MU), 0.0) * u
    bound = 8 * tau * math.sqrt(phi(1) / (N + 1)) + 2 / math.pi / (144 * tau**4)
    mean, error = mean_and_error(squares)
    assert mean + 3 * error <= bound
    assert bound < 0.7 * first  # it says something here: the gradient has to have shrunk


# What any learner needs: lists of all sign vectors y, one part i of which an input's loss looks at


def law(outputs, z, delta):
    """Pr of each row of losses 1{y_i != xi} of these outputs, over i and xi, Pr(xi = z_i) = (1 + delta) / 2."""
    found = {}
    for i, xi in itertools.product(range(len(z)), (-1, 1)):
        told = tuple(int(y[i] != xi) for y in outputs)
        found[told] = found.get(told, 0.0) + (1 + delta * xi * z[i]) / 2 / len(z)
    return found


@pytest.mark.parametrize("shown", [1, 2])
def test_a_step_tells_little_of_every_part(shown):
    """The sum over parts j of KL(z, z with its j-th sign turned) is at most shown (16/3) delta^2 / r."""
    rng, worst = np.random.default_rng(2), 0.0
    for _ in range(400):
        r, delta = rng.integers(2, 9), rng.uniform(0.05, 0.5)
        z, outputs = rng.choice([-1, 1], r), rng.choice([-1, 1], (shown, r))
        p, total = law(outputs, z, delta), 0.0
        for j in range(r):
            turned = z * np.where(np.arange(r) == j, -1, 1)
            q = law(outputs, turned, delta)
            total += sum(p[told] * math.log(p[told] / q[told]) for told in p)
        bound = shown * 16 / 3 * delta**2 / r
        assert total <= bound * (1 + 1e-9)
        worst = max(worst, total / bound)
    assert worst > 0.3


@pytest.mark.parametrize(("r", "T"), [(5, 200), (20, 3000)])
def test_a_good_learner_stays_above_the_bound(r, T):
    """Two losses a step, of outputs that differ in one part, each in turn: it shows xi where i is that part."""
    rng, delta, runs = np.random.default_rng(5), 0.3062 * r / math.sqrt(2 * T), 400
    assert delta <= 0.5
    i, xi_right = rng.integers(r, size=(runs, T)), rng.random((runs, T)) < (1 + delta) / 2
    seen = i == np.arange(T) % r
    votes = np.zeros((runs, r))
    for j in range(r):
        votes[:, j] = (seen[:, j::r] * np.where(xi_right[:, j::r], 1, -1)).sum(1)
    wrong = (votes < 0) + (votes == 0) / 2
    mean, error = mean_and_error(delta * wrong.mean(1))
    assert mean - 3 * error >= 0.0765 * r / math.sqrt(2 * T)
    assert mean < 6 * 0.0765 * r / math.sqrt(2 * T)
