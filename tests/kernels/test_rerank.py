"""Reranking's kernels: the best candidate, sampling, gradients and the expected loss, against enumeration."""

from __future__ import annotations

import kernel_calls
import numpy as np
import pytest
import twins
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsezo.kernels import random
from sparsezo.kernels.inputs.dense import dense_inputs
from sparsezo.tasks.rerank.kernel import RankGold, argmax, rank_task

KEY = np.uint64(random.stream_key(3, random.OUTPUT))
SIZES = [1, 2, 7, 8, 9, 30]
OFFSETS = np.concatenate([[0], np.cumsum(SIZES)]).astype(np.int64)
TASK = rank_task(OFFSETS)
LOSSES = np.random.default_rng(2).uniform(0, 1, OFFSETS[-1])
GOLD = RankGold(OFFSETS, LOSSES, np.zeros((OFFSETS[-1], 10), np.int16))


def column(n, seed=0, scale=1.0):
    return scale * np.random.default_rng(seed).standard_normal((n, 1))


def losses(x):
    return LOSSES[OFFSETS[x] : OFFSETS[x + 1]]


def log_p(S):
    return S - S.max() - np.log(np.exp(S - S.max()).sum())


def differences(f, S, e=1e-5):
    """Of f at S, one score after the other."""
    steps = e * np.eye(len(S))
    return np.array([(f(S + step) - f(S - step)) / (2 * e) for step in steps])


@given(st.lists(st.sampled_from([-np.inf, -2.0, -0.0, 0.0, 1.5, 3.0, np.nan]), min_size=1, max_size=40))
@settings(deadline=None, max_examples=300)
def test_argmax_is_the_first_of_the_largest(values):
    S = np.array(values).reshape(-1, 1)
    place, value = argmax(S, len(values), np.zeros(8), np.zeros(8, np.int64))
    fine = [v for v in values if v > -np.inf]  # NaN never leads
    assert value == max(fine, default=-np.inf)
    assert place == (values.index(max(fine)) if fine else 0)


def test_decode():
    for x, R in enumerate(SIZES):
        for seed in range(30):
            S = np.round(column(max(SIZES), seed), 1)  # ties, and scores behind the list
            y = np.full(1, -1, np.int32)
            score = kernel_calls.decode(TASK, x, S, y)
            assert y[0] == np.argmax(S[:R, 0])
            assert score == S[:R].max()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite_show(bad):
    features = np.random.default_rng(0).integers(-1, 2, (OFFSETS[-1], 14)).astype(np.float32)
    inputs = dense_inputs(features, OFFSETS, learn=False)
    W = column(14)
    W[3] = bad
    S, y = np.zeros((max(SIZES), 1)), np.zeros(1, np.int32)
    for x in range(len(SIZES)):
        kernel_calls.scores(inputs, x, W, S)
        assert not np.isfinite(kernel_calls.decode(TASK, x, S, y))
        assert not np.isfinite(kernel_calls.sample(TASK, x, S, KEY, 0, y))


def test_sample_is_the_inverse_of_the_distribution():
    for x, R in enumerate(SIZES):
        S, y = column(R, x, 2.0), np.zeros(1, np.int32)
        ends = np.cumsum(twins.softmax(S[:, 0]))
        for step in range(50):
            assert np.isfinite(kernel_calls.sample(TASK, x, S, KEY, step, y))
            at = twins.uniform(int(KEY), step, 0)
            if np.abs(ends - at).min() > 1e-12:
                assert y[0] == min(np.searchsorted(ends, at, side="right"), R - 1)
        np.testing.assert_allclose(TASK.scratch.p[:R], twins.softmax(S[:, 0]), rtol=1e-12)


def test_sample_frequencies():
    """10,000 draws of 7 candidates, each within 5 standard errors."""
    S, y, n = column(7, 1), np.zeros(1, np.int32), 10_000
    counts = np.zeros(7)
    for step in range(n):
        kernel_calls.sample(TASK, 2, S, KEY, step, y)
        counts[y[0]] += 1
    p = twins.softmax(S[:, 0])
    assert (np.abs(counts / n - p) < 5 * np.sqrt(p * (1 - p) / n)).all()


def test_large_scores_and_impossible_candidates():
    S, y = np.array([[-9e5], [1e6], [1e6], [-1e6], [2.0], [1e6], [-9e9]]), np.zeros(1, np.int32)
    for step in range(100):
        assert kernel_calls.sample(TASK, 2, S, KEY, step, y) == 3
        assert y[0] in (1, 2, 5)
    assert kernel_calls.risk(GOLD, TASK, 2, S, 1.0) == pytest.approx(losses(2)[[1, 2, 5]].mean())


def test_score_gradient_is_that_of_log_p():
    for x, R in enumerate(SIZES):
        S, y, D = column(R, x), np.zeros(1, np.int32), np.full((max(SIZES), 1), np.nan)
        kernel_calls.sample(TASK, x, S, KEY, 0, y)
        for j in range(R):
            y[0] = j
            kernel_calls.score_gradient(TASK, x, S, y, D)
            expected = differences(lambda s, j=j: log_p(s)[j], S[:, 0])
            np.testing.assert_allclose(D[:R, 0], expected, atol=1e-8)
        assert np.isnan(D[R:]).all()


def test_supervised_direction_descends_the_expected_loss():
    for x, R in enumerate(SIZES):
        S, D = column(R, x), np.full((max(SIZES), 1), np.nan)
        kernel_calls.supervise(GOLD, TASK, x, S, D)
        expected = -differences(lambda s, x=x: twins.softmax(s) @ losses(x), S[:, 0])
        np.testing.assert_allclose(D[:R, 0], expected, atol=1e-8)


def test_delta():
    for x, R in enumerate(SIZES):
        for j in range(R):
            assert kernel_calls.delta(GOLD, TASK, x, np.array([j], np.int32)) == losses(x)[j]


@pytest.mark.parametrize("gamma", [0.01, 1.0, 7.5])
def test_risk_is_the_expected_loss(gamma):
    for x, R in enumerate(SIZES):
        S = column(R, x)
        expected = twins.softmax(gamma * S[:, 0]) @ losses(x)
        assert kernel_calls.risk(GOLD, TASK, x, S, gamma) == pytest.approx(expected, rel=1e-12)


def test_large_gamma_gives_the_loss_of_the_best():
    for x, R in enumerate(SIZES):
        S = column(R, x)
        assert kernel_calls.risk(GOLD, TASK, x, S, 1e9) == pytest.approx(losses(x)[np.argmax(S)], abs=1e-12)
