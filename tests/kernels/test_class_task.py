"""Classification kernels against softmax and enumeration."""

from __future__ import annotations

import kernel_calls
import numpy as np
import pytest

from sparsezo.kernels import protocol
from sparsezo.kernels.jit import allocating_kernel as kernel
from sparsezo.kernels.random import stream_key
from sparsezo.tasks.text.kernel import ClassGold, class_task

KEY = np.uint64(stream_key(4, 4))
CLASSES = [2, 4, 7]


def scores(K, seed=0, scale=2.0):
    return np.random.default_rng([seed, K]).normal(0, scale, (1, K)).astype(np.float32)


def softmax(S, gamma=1.0):
    e = np.exp(gamma * (S[0].astype(float) - S[0].max()))
    return e / e.sum()


@pytest.mark.parametrize("K", CLASSES)
def test_decode_is_argmax(K):
    y = np.zeros(1, np.int32)
    for seed in range(20):
        S = scores(K, seed)
        assert kernel_calls.decode(class_task(K), 0, S, y) == S.max()
        assert y[0] == S[0].argmax()


@pytest.mark.parametrize(
    ("S", "best"), [([0, 0, 0, 0], 0), ([1, 2, 2, 0], 1), ([-1, -1, -2, -1], 0), ([0, 1, 0, np.inf], 3)]
)
def test_the_first_wins_a_tie(S, best):
    y = np.zeros(1, np.int32)
    kernel_calls.decode(class_task(4), 0, np.array([S], np.float32), y)
    assert y[0] == best


@pytest.mark.parametrize("place", range(4))
def test_nan_does_not_go_unseen(place):
    S = np.array([[3, 4, 5, 2]], np.float32)
    S[0, place] = np.nan
    y = np.zeros(1, np.int32)
    assert np.isnan(kernel_calls.decode(class_task(4), 0, S, y))
    assert np.isnan(kernel_calls.sample(class_task(4), 0, S, KEY, 0, y))
    assert np.isnan(kernel_calls.risk(ClassGold(np.zeros(1, np.int32)), class_task(4), 0, S, 1.0))


@kernel
def class_counts(task, S, key, y, counts, n):
    for step in range(n):
        protocol.sample(task, 0, S, key, step, y)
        counts[y[0]] += 1


@pytest.mark.parametrize("K", CLASSES)
def test_sample_is_softmax(K):
    """Every frequency within 5 standard errors."""
    n, S, counts = 100_000, scores(K, scale=1.0), np.zeros(K, np.int64)
    class_counts(class_task(K), S, KEY, np.zeros(1, np.int32), counts, n)
    p = softmax(S)
    assert counts.sum() == n
    assert (np.abs(counts / n - p) < 5 * np.sqrt(p * (1 - p) / n)).all()


def test_sample_of_extreme_scores():
    y = np.zeros(1, np.int32)
    for S in ([[-3e38, 3e38, 0, 0]], [[-1e9, 1e9, 5, 5]]):
        for step in range(50):
            assert np.isfinite(kernel_calls.sample(class_task(4), 0, np.array(S, np.float32), KEY, step, y))
            assert y[0] == 1


@pytest.mark.parametrize("K", CLASSES)
def test_score_gradient_is_that_of_log_p(K):
    S, D, task, y = scores(K), np.zeros((1, K), np.float32), class_task(K), np.zeros(1, np.int32)
    kernel_calls.sample(task, 0, S, KEY, 0, y)
    for k in range(K):
        kernel_calls.score_gradient(task, 0, S, np.array([k], np.int32), D)
        slope = []
        for j in range(K):
            shift = 1e-4 * (np.arange(K) == j)
            up, down = S.astype(float) + shift, S.astype(float) - shift
            slope.append((np.log(softmax(up)[k]) - np.log(softmax(down)[k])) / 2e-4)
        np.testing.assert_allclose(D[0], slope, atol=1e-6)


@pytest.mark.parametrize("K", CLASSES)
def test_supervise_is_gold_minus_p(K):
    S, gold = scores(K), ClassGold(np.arange(K, dtype=np.int32))
    for x in range(K):
        D = np.full((1, K), np.nan, np.float32)
        kernel_calls.supervise(gold, class_task(K), x, S, D)
        np.testing.assert_allclose(D[0], (np.arange(K) == x) - softmax(S), atol=1e-6)


def test_delta():
    gold, task = ClassGold(np.array([2, 0], np.int32)), class_task(3)
    losses = [[kernel_calls.delta(gold, task, x, np.array([y], np.int32)) for y in range(3)] for x in range(2)]
    assert losses == [[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]]


@pytest.mark.parametrize("K", CLASSES)
@pytest.mark.parametrize("gamma", [0.1, 1.0, 10.0])
def test_risk_is_the_expected_loss(K, gamma):
    S, gold, task = scores(K), ClassGold(np.arange(K, dtype=np.int32)), class_task(K)
    for x in range(K):
        loss = np.array([kernel_calls.delta(gold, task, x, np.array([y], np.int32)) for y in range(K)])
        assert kernel_calls.risk(gold, task, x, S, gamma) == pytest.approx(softmax(S, gamma) @ loss, rel=1e-12)


@pytest.mark.parametrize("K", CLASSES)
def test_risk_with_large_gamma_is_the_loss_of_the_best(K):
    y, gold, task = np.zeros(1, np.int32), ClassGold(np.arange(K, dtype=np.int32)), class_task(K)
    for seed in range(5):
        S = scores(K, seed)
        kernel_calls.decode(task, 0, S, y)
        for x in range(K):
            assert kernel_calls.risk(gold, task, x, S, 1e6) == kernel_calls.delta(gold, task, x, y)
    assert kernel_calls.risk(gold, task, 0, np.zeros((1, K), np.float32), 1e6) == pytest.approx(1 - 1 / K)
