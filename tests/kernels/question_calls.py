"""The operations of tasks that ask questions, callable from tests."""

from __future__ import annotations

import numpy as np
import pytest

from sparsezo.kernels import protocol, random
from sparsezo.kernels.jit import allocating_kernel as kernel

KEY = np.uint64(random.stream_key(3, random.CHOICE))


def evidence(task, x, S, kind, about, q, y, other, answer, e0, e1, D):
    """Answers are floats, as the loop has them: a form for whole numbers would be compiled beside it."""
    return _evidence(task, x, S, kind, about, q, y, other, float(answer), float(e0), float(e1), D)


@kernel
def _evidence(task, x, S, kind, about, q, y, other, answer, e0, e1, D):
    return protocol.evidence(task, x, S, kind, about, q, y, other, answer, e0, e1, D)


@kernel
def truth(gold, task, x, kind, about, q, y, other):
    return protocol.truth(gold, task, x, kind, about, q, y, other)


@kernel
def look(task, x, S, kind, about, mode, key, step, q, y, other):
    return protocol.look(task, x, S, kind, about, mode, (0.5, 0.12, 0.7, 2.5), key, step, q, y, other)


@kernel
def options(task, x, kind, about):
    return protocol.options(task, x, kind, about)


@kernel
def option(task, x, kind, about, k):
    return protocol.option(task, x, kind, about, k)


def output(k):
    return np.array([k], np.int32)


def checked(task, S, kind, q, y, other, answer, e0, e1, likelihood):
    """The likelihood is as given, a function of S; D is the gradient of its logarithm. Returns (likelihood, D)."""
    D = np.full(S.shape, np.nan, S.dtype)
    got = evidence(task, 0, S, kind, 0, q, output(y), output(other), answer, e0, e1, D)
    S = S.astype(float)
    assert got == pytest.approx(likelihood(S), rel=1e-4)
    step = 1e-5
    for place in np.ndindex(S.shape):
        up, down = S.copy(), S.copy()
        up[place] += step
        down[place] -= step
        slope = (np.log(likelihood(up)) - np.log(likelihood(down))) / (2 * step)
        assert D[place] == pytest.approx(slope, rel=1e-3, abs=1e-4)
    return got, D.astype(float)
