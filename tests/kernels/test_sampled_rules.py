"""What the first-order rules minimise: the mean of a step over all outputs, against the objective's slope."""

from __future__ import annotations

import literal
import numpy as np
import pytest

from sparsezo.kernels import codes
from sparsezo.kernels import coefficient as rules

PROBLEMS = {
    "chunking": lambda: literal.chunking(2),
    "chunking, order 1": lambda: literal.chunking(1),
    "text": lambda: literal.text(4),
    "rerank": lambda: literal.rerank(14),
}
MOST = 30  # outputs; pairs are the square of them


def expected_loss(p, q, losses):
    return p @ losses


def pair_loss(p, q, losses):
    """Of a pair from p_w(y) p_{-w}(y'): by how much y is worse than y'."""
    return p @ np.maximum(losses[:, None] - losses[None, :], 0) @ q


def cross_entropy(p, q, losses):
    """- sum of g log p, g = 1 - loss; log p goes on as a straight line from LEAST_PROBABILITY down."""
    k = literal.LEAST
    return -(1 - losses) @ np.where(p >= k, np.log(np.maximum(p, k)), p / k - 1 + np.log(k))


OBJECTIVES = {codes.FIRST_ORDER: expected_loss, codes.PAIRWISE: pair_loss, codes.CROSS_ENTROPY: cross_entropy}


def test_the_least_probability_is_what_the_objective_says():
    assert rules.LEAST_PROBABILITY == literal.LEAST


def test_a_prompt_answer_counts_once_to_the_last_bit():
    for chance in (0.0, -0.1, -700.3, -np.inf):
        assert rules.late_factor(chance, chance) == 1.0


@pytest.mark.parametrize("rule", OBJECTIVES, ids=["first-order", "pairwise", "cross-entropy"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_the_mean_step_is_the_objective_s_gradient(name, rule):
    """Of the direction as it is taken literally; test_steps.py has the loop's against it."""
    problem, rng = PROBLEMS[name](), np.random.default_rng(5)
    seen = []
    for x in range(problem.N):
        outputs = problem.outputs[x]
        if not 1 < len(outputs) <= MOST:
            continue
        R, losses = len(problem.C[x]), problem.losses[x]
        S = rng.normal(0, 1, (R, problem.L)).astype(problem.dtype)
        p, q = (literal.probabilities(problem, x, sign * S.astype(float)) for sign in (1, -1))
        mean = np.zeros(S.shape)
        others = range(len(outputs)) if rule == codes.PAIRWISE else [0]
        for one in range(len(outputs)):
            for two in others:
                chance = p[one] * (q[two] if rule == codes.PAIRWISE else 1)
                c = rules.coefficient(rule, 1.0, 0.0, losses[one], losses[two], 0.0)
                mean += chance * c * literal.sampled_direction(problem, x, S.astype(float), rule, one, two)
        seen.append((p.min(), p.max()))
        eps = 1e-5
        for _ in range(10):
            u = rng.normal(0, 1, S.shape)
            up, down = (
                OBJECTIVES[rule](*(literal.probabilities(problem, x, way * (S + small)) for way in (1, -1)), losses)
                for small in (eps * u, -eps * u)
            )
            assert (mean * u).sum() == pytest.approx(-(up - down) / (2 * eps), rel=2e-4, abs=2e-5)
    least, most = min(each[0] for each in seen), max(each[1] for each in seen)
    assert least < literal.LEAST < most  # both sides of where cross-entropy's objective bends
