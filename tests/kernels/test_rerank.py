"""Reranking's kernels: the best candidate, sampling, gradients and the expected loss, against enumeration."""

from __future__ import annotations

import kernel_calls
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from literal import rank_gold

from sparsezo.kernels import random
from sparsezo.kernels.inputs.dense import dense_inputs
from sparsezo.tasks.rerank.kernels.task import argmax, rank_task

KEY = np.uint64(random.stream_key(3, random.OUTPUT))
SIZES = [1, 2, 7, 8, 9, 30]
OFFSETS = np.concatenate([[0], np.cumsum(SIZES)]).astype(np.int64)
TASK = rank_task(OFFSETS)
LOSSES = np.random.default_rng(2).uniform(0, 1, OFFSETS[-1])
GOLD = rank_gold(OFFSETS, LOSSES)


def column(n, seed=0, scale=1.0):
    return scale * np.random.default_rng(seed).standard_normal((n, 1))


def losses(x):
    return LOSSES[OFFSETS[x] : OFFSETS[x + 1]]


@given(st.lists(st.sampled_from([-np.inf, -2.0, -0.0, 0.0, 1.5, 3.0, np.nan]), min_size=1, max_size=40))
@settings(deadline=None, max_examples=100)
def test_argmax_is_the_first_of_the_largest(values):
    S = np.array(values).reshape(-1, 1)
    place, value = argmax(S, len(values), np.zeros(8), np.zeros(8, np.int64))
    fine = [v for v in values if v > -np.inf]  # NaN never leads
    assert value == max(fine, default=-np.inf)
    assert place == (values.index(max(fine)) if fine else 0)


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


def test_large_scores_and_impossible_candidates():
    S, y = np.array([[-9e5], [1e6], [1e6], [-1e6], [2.0], [1e6], [-9e9]]), np.zeros(1, np.int32)
    for step in range(100):
        assert kernel_calls.sample(TASK, 2, S, KEY, step, y) == 3
        assert y[0] in (1, 2, 5)
    assert kernel_calls.risk(GOLD, TASK, 2, S, 1.0) == pytest.approx(losses(2)[[1, 2, 5]].mean())
