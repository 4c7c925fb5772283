"""Late answers of the first-order rules: outputs drawn at other weights, and the mean step is still that of now."""

from __future__ import annotations

import literal
import numpy as np
import pytest
from test_sampled_rules import MOST, OBJECTIVES, PROBLEMS

from sparsezo.kernels import codes, loop
from sparsezo.kernels import coefficient as rules

NAMES = ["first-order", "pairwise", "cross-entropy"]


def log_chances(problem, x, S, rule, one, two):
    """log of the probability of an output, or of a pair, by enumeration."""
    p, q = (literal.probabilities(problem, x, sign * S) for sign in (1, -1))
    return np.log(p[one]) + (np.log(q[two]) if rule == codes.PAIRWISE else 0)


def mean_step(problem, params, x, W, then, late):
    """Of all outputs drawn at the weights ``then`` and answered at W; ``late``: whether their chances are told."""
    rule, outputs, losses = params.rule, problem.outputs[x].astype(np.int32), problem.losses[x]
    S_then = literal.product(problem.C[x], then.astype(float))
    S_now = literal.product(problem.C[x], W.astype(float))
    total = np.zeros(W.shape)
    for one in range(len(outputs)):
        for two in range(len(outputs)) if rule == codes.PAIRWISE else [0]:
            chance = log_chances(problem, x, S_then, rule, one, two)
            c = float(rules.coefficient(rule, 1.0, 0.0, losses[one], losses[two], 0.0))
            memory = literal.some_memory(np.random.default_rng(0), problem)
            memory.W[:] = W
            args = (problem.inputs, problem.task, params, x, 3, outputs[one], outputs[two])
            told = chance if late else log_chances(problem, x, S_now, rule, one, two)
            loop.answer(*args, told, c, memory, problem.room())
            total += np.exp(chance) * (memory.W.astype(float) - W)
    return total


@pytest.mark.parametrize("rule", OBJECTIVES, ids=NAMES)
@pytest.mark.parametrize("name", PROBLEMS)
def test_the_mean_late_step_is_the_gradient_at_the_weights_of_now(name, rule):
    """And without the chances of then it is another one. The weights are near enough for no ratio to be cut."""
    problem, rng = PROBLEMS[name](), np.random.default_rng(8)
    params = literal.some_law(rng, rule, codes.SCORE)._replace(h=1.0)
    x = next(x for x in range(problem.N) if 4 <= len(problem.outputs[x]) <= MOST)
    W = rng.normal(0, 0.4, (problem.n_cols, problem.L)).astype(problem.dtype)
    then = W + rng.normal(0, 0.12, W.shape).astype(problem.dtype)
    expected = mean_step(problem, params, x, W, W, late=True)
    got = mean_step(problem, params, x, W, then, late=True)
    np.testing.assert_allclose(got, expected, atol=3e-5)
    biased = mean_step(problem, params, x, W, then, late=False)
    assert np.abs(biased - expected).max() > 20 * max(np.abs(got - expected).max(), 1e-6)


def test_a_ratio_is_cut_at_ten():
    assert rules.late_factor(0.0, -50.0) == rules.late_factor(0.0, -1e300) == rules.MOST_LATE == 10.0
    assert rules.late_factor(-1.0, -2.0) == pytest.approx(np.e)
    assert rules.late_factor(-50.0, 0.0) == pytest.approx(np.exp(-50))
    assert rules.late_factor(-np.inf, -1.0) == 0.0


def test_a_prompt_answer_counts_once_to_the_last_bit():
    for chance in (0.0, -0.1, -700.3, -np.inf):
        assert rules.late_factor(chance, chance) == 1.0
