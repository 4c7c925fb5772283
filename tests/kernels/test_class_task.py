"""Classification kernels against softmax and enumeration."""

from __future__ import annotations

import kernel_calls
import numpy as np
import pytest

from sparsezo.kernels.random import stream_key
from sparsezo.tasks.text.kernels.task import ClassGold, class_task

KEY = np.uint64(stream_key(4, 4))


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


def test_sample_of_extreme_scores():
    y = np.zeros(1, np.int32)
    for S in ([[-3e38, 3e38, 0, 0]], [[-1e9, 1e9, 5, 5]]):
        for step in range(50):
            assert np.isfinite(kernel_calls.sample(class_task(4), 0, np.array(S, np.float32), KEY, step, y))
            assert y[0] == 1
