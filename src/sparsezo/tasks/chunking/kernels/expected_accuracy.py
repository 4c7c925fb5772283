"""The expected accuracy of a chain's tag paths, and its gradient: for tags that are no chunks, as ``expected_f1``."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsezo.kernels.jit import kernel
from sparsezo.tasks.chunking.kernels import chains

_F = np.float32


@kernel
def expected_accuracy_gradient(
    E: Any, R: Any, K: Any, start: Any, z: Any, right: Any, now: Any, before: Any, p: Any, DP: Any
) -> Any:
    """DP += d E[accuracy(y, z)] / dP for y from the chain that ``chains.relative`` left in E; returns E[accuracy].

    It is E[accuracy 1{a, b at i}] - E[accuracy] p(a, b at i), from the tokens that are right up to each, given its tag
    (right, tokens x tags), and those behind it. Room: right; now, before, of 2 x tags x 1 at least; p, 2 x tags.
    """
    each = _F(1 / R)
    for b in range(K):
        right[0, b] = each if b == z[0] else _F(0)
    for i in range(1, R):
        for b in range(K):
            right[i, b] = each if b == z[i] else _F(0)
            for a in range(K):
                right[i, b] += E[i, a * K + b] * right[i - 1, a]
    value = 0.0
    for b in range(K):
        now[0, b, 0] = E[R, b]  # p(b here)
        now[1, b, 0] = E[R, b] * each if b == z[R - 1] else _F(0)  # ... times what is right here and behind
        value += E[R, b] * right[R - 1, b]
    for i in range(R - 1, 0, -1):
        for a in range(K):
            before[0, a, 0] = 0
            before[1, a, 0] = 0
            for b in range(K):
                e = E[i, a * K + b]
                before[0, a, 0] += e * now[0, b, 0]
                before[1, a, 0] += e * now[1, b, 0]
                DP[i, a * K + b] += e * (now[0, b, 0] * right[i - 1, a] + now[1, b, 0])
            if a == z[i - 1]:
                before[1, a, 0] += each * before[0, a, 0]
        now, before = before, now
    for b in range(K):
        DP[0, start * K + b] += now[1, b, 0]
    chains.add_marginals(E, R, K, start, p, _F(-value), DP)
    return value
