"""What the rules descend and what they do not: docs/theory.md, "What the rules descend".

Seeds are fixed. A simulated mean may be off by 4.5 of its standard errors.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from sparsezo.kernels import codes
from sparsezo.kernels.coefficient import coefficient
from sparsezo.learner import Learner
from sparsezo.settings import Settings
from sparsezo.tasks.text.synthetic import generate_text
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


def mean_step(rule, w):
    """E[c u] / h, exactly: F+ depends on the sign of w + mu u, and the mean of u above -w / mu is phi(w / mu)."""
    phi = norm.pdf(w / MU)
    total = 0.0
    for x in range(3):
        low, high = (coefficient(RULES[rule], 1.0, MU, F_plus, loss(w, x), 0.0) for F_plus in LOSSES[x])
        total += (high - low) * phi / 3
    return total


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


# 0/1 losses


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
