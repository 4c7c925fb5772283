"""Minimum risk: the expected loss's gradient in the scores, by finite differences of enumerated risks."""

from __future__ import annotations

import kernel_calls
import literal
import numpy as np
import pytest
import twins

from sparsezo.tasks.chunking.kernel import ChunkGold, chunk_task

PROBLEMS = {
    "chunking": lambda: literal.chunking(2),
    "chunking, order 1": lambda: literal.chunking(1),
    "text": lambda: literal.text(4),
    "rerank": lambda: literal.rerank(14),
}


def check(task, gold, x, S, gamma, risk_of):
    """D against differences of ``risk_of(S)`` along random directions; and the risk itself."""
    rng = np.random.default_rng(x)
    D = np.full(S.shape, 9, S.dtype)
    risk = kernel_calls.risk_gradient(gold, task, x, S, gamma, D)
    assert risk == pytest.approx(risk_of(S.astype(float)), abs=3e-6)
    assert risk == pytest.approx(kernel_calls.risk(gold, task, x, S, gamma), abs=1e-6)
    for _ in range(6):
        u, eps = rng.normal(0, 1, S.shape), 1e-5
        slope = (risk_of(S + eps * u) - risk_of(S - eps * u)) / (2 * eps)
        assert (D * u).sum() == pytest.approx(-slope, rel=2e-4, abs=3e-5)
    return np.abs(D).max()


@pytest.mark.parametrize("gamma", [0.4, 1.0, 3.0])
@pytest.mark.parametrize("name", PROBLEMS)
def test_the_gradient_is_that_of_the_enumerated_risk(name, gamma):
    problem, rng = PROBLEMS[name](), np.random.default_rng(4)
    largest = 0.0
    for x in range(problem.N):
        S = rng.normal(0, 1, (len(problem.C[x]), problem.L)).astype(problem.dtype)

        def risk_of(T, x=x):
            return literal.probabilities(problem, x, T, gamma) @ problem.losses[x]

        largest = max(largest, check(problem.task, problem.gold, x, S, gamma, risk_of))
    assert largest > 0.02


@pytest.mark.parametrize("order", [1, 2])
def test_tags_that_are_no_chunks_have_the_gradient_of_their_errors(order):
    K, R, gamma = 3, 4, 1.7
    rng = np.random.default_rng(order)
    tokens, kinds = np.array([R], np.int64), (np.zeros(K, np.int8), np.full(K, -1, np.int32))
    task = chunk_task(tokens, *kinds, 0, order=order, risk=True, chunks=False)
    z = rng.integers(0, K, R).astype(np.int16)
    paths = twins.all_paths(R, K)
    phi, losses = twins.score_features(paths, K, 0, order), (paths != z).mean(axis=1)
    S = rng.normal(0, 1, phi.shape[1:]).astype(np.float32)

    def risk_of(T):
        return twins.softmax(gamma * (phi * T).sum(axis=(1, 2))) @ losses

    assert check(task, ChunkGold(np.array([0, R]), z), 0, S, gamma, risk_of) > 0.02


def test_a_sure_model_has_a_finite_gradient():
    problem = literal.chunking(2)
    for size in (30.0, 300.0):
        for x in range(problem.N):
            S = (size * np.sign(np.random.default_rng(x).normal(0, 1, (len(problem.C[x]), problem.L)))).astype(
                np.float32
            )
            D = np.full(S.shape, np.nan, np.float32)
            assert 0 <= kernel_calls.risk_gradient(problem.gold, problem.task, x, S, 1.0, D) <= 1 + 1e-6
            assert np.isfinite(D).all()
