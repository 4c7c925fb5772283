"""What the rules descend and what they do not: docs/theory.md, "What the rules descend".

Seeds are fixed. A simulated mean may be off by 4.5 of its standard errors.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from sparsezo import minimize
from sparsezo.kernels import codes
from sparsezo.kernels.adagrad import adagrad
from sparsezo.kernels.coefficient import coefficient
from sparsezo.learner import Learner
from sparsezo.settings import Settings
from sparsezo.tasks.chunking.generate import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.text.generate import generate_text
from sparsezo.tasks.text.task import TextClassification

H, MU = 0.01, 1.0
RULES = {
    "two-point": codes.TWO_POINT,
    "symmetric": codes.SYMMETRIC,
    "comparison": codes.COMPARISON,
    "preference": codes.PREFERENCE,
    "baseline": codes.BASELINE,
}


def mean_and_error(samples):
    return samples.mean(0), samples.std(0, ddof=1) / math.sqrt(len(samples))


# The counterexample: one weight, three inputs with two outputs each, the second best where w > 0


LOSSES = np.array([[0.0, 0.1], [0.0, 0.1], [0.9, 0.0]])  # x: of its first output, of its second


def loss(w, x):
    return float(LOSSES[x, int(w > 0)])


def f(w):
    return np.mean([loss(w, x) for x in range(3)])


def mean_step(rule, w):
    """E[c u] / h, exactly: F+ depends on the sign of w + mu u, and the mean of u above -w / mu is phi(w / mu)."""
    phi = norm.pdf(w / MU)
    total = 0.0
    for x in range(3):
        low, high = (coefficient(RULES[rule], 1.0, MU, F_plus, loss(w, x), 0.0) for F_plus in LOSSES[x])
        total += (high - low) * phi / 3
    return total


def test_the_counterexamples_minimum_is_where_w_is_positive():
    assert f(1.0) == pytest.approx(0.2 / 3)
    assert f(-1.0) == pytest.approx(0.3)


@pytest.mark.parametrize("w", [-2.0, -0.5, 0.5, 2.0])
def test_two_point_goes_down_where_preference_goes_up(w):
    """f_mu(w) is 0.3 - 0.7/3 Phi(w / mu): two-point's mean step is minus its gradient, preference's has its sign."""
    assert mean_step("two-point", w) == pytest.approx(0.7 / 3 * norm.pdf(w / MU) / MU)
    assert mean_step("preference", w) == pytest.approx(-1 / 3 * norm.pdf(w / MU) / MU)


@pytest.mark.parametrize("w", [0.5, 2.0])
def test_comparison_goes_back_to_where_outputs_change(w):
    """It learns where something is wrong now: above 0 from the two slips, below 0 from the one grave mistake."""
    assert mean_step("comparison", w) == pytest.approx(-2 / 3 * norm.pdf(w / MU) / MU)  # up in f
    assert mean_step("comparison", -w) == pytest.approx(1 / 3 * norm.pdf(w / MU) / MU)


@pytest.mark.parametrize("seed", range(2))
def test_runs_of_the_counterexample(seed):
    found = {}
    for rule in ("two-point", "preference", "comparison"):
        order = np.random.default_rng(seed).integers(3, size=3000)
        found[rule] = minimize(
            lambda w, x: loss(w[0], x),
            order.tolist(),
            active=lambda x: [0],
            n=1,
            rule=rule,
            perturb="active",
            h=H,
            mu=MU,
            seed=seed,
            steps=3000,
        ).w[0]
    assert f(found["two-point"]) < f(found["preference"])
    assert found["two-point"] > 1.5 * MU
    assert found["preference"] < -1.5 * MU
    assert abs(found["comparison"]) < MU


# 0/1 losses


@pytest.mark.parametrize("F_plus", [0.0, 1.0])
@pytest.mark.parametrize("F", [0.0, 1.0])
def test_of_losses_0_and_1_preference_is_two_point(F_plus, F):
    """To the last bit."""
    for h, mu in ((0.1, 0.3), (1e-5, 0.7), (4.642e-05, 0.01)):
        assert coefficient(codes.PREFERENCE, h, mu, F_plus, F, 0.0) == coefficient(codes.TWO_POINT, h, mu, F_plus, F, 0)


def weights_after(problem, gold, rule, **more):
    learner = Learner(problem, Settings(rule=rule, h=0.01, mu=0.1, **more))
    learner.run(gold, steps=2000)
    return learner.weights()


@pytest.mark.parametrize("more", [{"perturb": "all"}, {"perturb": "score", "step": "adagrad"}])
def test_on_text_preference_and_two_point_are_one_learner(text, more):
    """Whatever the perturbation and the step; and noise that swaps the answers swaps the losses, too."""
    problem, gold = text
    first = weights_after(problem, gold, "preference", **more)
    assert first.any()
    np.testing.assert_array_equal(first, weights_after(problem, gold, "two-point", **more))


@pytest.fixture(scope="module")
def text():
    task, data = TextClassification.fit(generate_text(60, seed=1, vocabulary=500, words=20).documents())
    return task.problem(data), task.gold(data)


def test_on_chunking_they_are_not():
    task, corpus = Chunking.fit(chunking_corpus(40, seed=1))
    problem, gold = task.problem(corpus), task.gold(corpus)
    first, second = (weights_after(problem, gold, rule, perturb="score") for rule in ("preference", "two-point"))
    assert (first != second).any()


# The projected direction


class Lists:
    """Candidates with features C, of rank 2 in 4 weights, two of them alike; the best one by C w has its loss."""

    C = np.array([[1.0, 0, 2, 1], [0, 1, 1, -1], [1, 1, 3, 0], [1, 1, 3, 0], [-1, -1, -3, 0]])
    losses = np.array([0.1, 0.8, 0.45, 0.45, 1.0])
    w = np.array([0.2, 0.3, 0.1, 0.0])  # its loss is neither the best nor the worst
    P = np.linalg.pinv(C) @ C

    def F(self, w):
        return self.losses[(w @ self.C.T).argmax(-1)]

    def coefficients(self, rule, u, mean=0.55):
        F_plus = self.F(self.w + MU * u)
        F = self.F(self.w - MU * u) if rule == "symmetric" else np.full(len(u), self.F(self.w))
        return np.array([coefficient(RULES[rule], H, MU, *pair, mean) for pair in zip(F_plus, F, strict=True)])


@pytest.mark.parametrize("rule", RULES)
def test_the_mean_step_of_score_is_that_of_active_for_every_rule(rule):
    """E[c u] = E[c P u], as c sees u through C u alone; and the step is shorter by what c does not see."""
    lists = Lists()
    u = np.random.default_rng(1).normal(size=(60_000, 4))
    c = lists.coefficients(rule, u)[:, None]
    projected = u @ lists.P
    mean, error = mean_and_error(c * u - c * projected)
    assert (np.abs(mean) <= 4.5 * error + 1e-15).all()
    mean, error = mean_and_error(c * projected)
    assert (np.abs(mean) > 20 * error).any()
    shorter = ((c * u) ** 2).sum(1) - ((c * projected) ** 2).sum(1) - (4 - 2) * c[:, 0] ** 2
    mean, error = mean_and_error(shorter)
    assert abs(mean) <= 4.5 * error  # E||c u||^2 = E||c P u||^2 + (m - r) E c^2


def test_adagrads_mean_step_of_score_is_not_that_of_active():
    """It divides by a root that holds the direction's own square; the step is no longer linear in the direction."""
    lists = Lists()
    u = np.random.default_rng(2).normal(size=(60_000, 4))
    c = lists.coefficients("two-point", u)
    moved = {}
    for name, direction in (("active", u), ("score", u @ lists.P)):
        steps = np.zeros((len(u), 4), np.float32)
        for k, (each, one) in enumerate(zip(c, direction.astype(np.float32), strict=True)):
            adagrad(np.float32(100 * each), np.float32(1), one, steps[k], np.zeros(4, np.float32))
        moved[name] = steps
    mean, error = mean_and_error(moved["active"] - moved["score"])
    assert (np.abs(mean) > 10 * error).any()


def test_what_sleeping_weights_miss_is_normal_given_the_coefficients_and_not_under_adagrad():
    """lazy ALL: sum of c_k u_k is N(0, sum of c_k^2) whatever made the c_k. Adagrad's sum has a lower fourth moment."""
    rng = np.random.default_rng(3)
    c, u = np.array([0.5, -2.0, 0.0, 1.0, 3.0]), rng.normal(size=(100_000, 5))
    scaled = u @ c / np.sqrt((c**2).sum())
    for power, moment in ((1, 0), (2, 1), (4, 3), (6, 15)):
        mean, error = mean_and_error(scaled**power)
        assert abs(mean - moment) <= 4.5 * error
    g = u * c
    steps = (g / np.sqrt(1 + np.cumsum(g**2, axis=1))).sum(1)
    assert (steps**4).mean() / (steps**2).mean() ** 2 < 2.9


# The direction given its output


def probabilities(C, w, mu):
    """P_mu of each of three outputs: both differences to the others are positive, and they are normal."""
    found = []
    for y in range(3):
        A = C[y] - np.delete(C, y, axis=0)
        found.append(multivariate_normal(-A @ w, mu**2 * A @ A.T).cdf(np.zeros(2)))
    return np.array(found)


def test_the_directions_mean_given_its_output_is_the_gradient_of_its_log_probability():
    """E[u given y+] = mu d log P_mu(y+) / dw, so baseline's mean step is REINFORCE's, for the perturbed argmax."""
    C = np.array([[1.0, 0, 2, 1], [0, 1, 1, -1], [-1, 0.5, 0, 0.5]])
    w, mu, losses, before = np.array([0.3, -0.2, 0.1, 0.0]), 0.6, np.array([0.1, 0.8, 0.5]), 0.4
    p, d = probabilities(C, w, mu), 1e-3
    assert p.sum() == pytest.approx(1, abs=1e-6)
    slopes = [(probabilities(C, w + d * e, mu) - probabilities(C, w - d * e, mu)) / (2 * d) for e in np.eye(4)]
    gradient = np.array(slopes).T / p[:, None]  # of log P_mu, one row an output
    u = np.random.default_rng(4).normal(size=(200_000, 4))
    y = ((w + mu * u) @ C.T).argmax(1)
    for output in range(3):
        mean, error = mean_and_error(u[y == output])
        assert (np.abs(mean - mu * gradient[output]) <= 4.5 * error + 1e-4).all()
        assert (np.abs(mean) > 20 * error).any()
    reinforce = -((p * (losses - before)) @ gradient)
    mean, error = mean_and_error(-(losses[y] - before)[:, None] / mu * u)
    assert (np.abs(mean - reinforce) <= 4.5 * error + 1e-4).all()


def test_it_holds_where_the_scores_are_of_lower_rank():
    """Three outputs, one number: a'w below -1, between, above 1; C C' is singular and log P_mu has a gradient in w."""
    a, w, mu = np.array([0.6, -0.8, 0.0]), np.array([0.3, 0.4, 2.0]), 0.9
    u = np.random.default_rng(5).normal(size=(100_000, 3))
    edges = (np.array([-np.inf, -1, 1, np.inf]) - a @ w) / mu
    p = np.diff(norm.cdf(edges))
    y = np.searchsorted(edges[1:-1], u @ a)
    for output in range(3):
        gradient = -np.diff(norm.pdf(edges))[output] / (mu * p[output]) * a
        mean, error = mean_and_error(u[y == output])
        assert (np.abs(mean - mu * gradient) <= 4.5 * error).all()
