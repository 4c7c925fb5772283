"""The ledger of ALL: what sleeping weights are owed, and paying it (design 2.2).

A weight that sleeps from step a to step b has missed the sum of c_k u_k, whose u_k the c_k do not know: N(0, sum of
c_k^2). Q is the running total of c_k^2, and Q_row holds, for each row of W, Q when the row was last settled.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsezo.kernels.jit import allocating_kernel, kernel
from sparsezo.kernels.random import fill_normals


@kernel
def settle_columns(cols: Any, begin: Any, end: Any, key: Any, count: Any, Q: Any, Q_row: Any, U: Any, W: Any) -> Any:
    """Give rows cols[begin:end] what they missed asleep, sqrt(Q - Q_row) N(0, 1); returns how often was paid so far."""
    L = W.shape[1]
    stale = False
    for m in range(begin, end):
        stale |= Q_row[cols[m]] < Q
    if not stale:
        return count
    fill_normals(key, count, U.reshape(-1)[: (end - begin) * L])
    for m in range(begin, end):
        col = cols[m]
        scale = W.dtype.type(np.sqrt(Q - Q_row[col]))
        w, u = W[col], U[m - begin]
        for l in range(L):
            w[l] += scale * u[l]
        Q_row[col] = Q
    return count + 1


@allocating_kernel
def settle_all(key: Any, count: Any, Q: Any, Q_row: Any, U: Any, W: Any) -> Any:
    """Settle every row, before anything reads all of W; returns how often was paid so far."""
    n, L = W.shape
    block = U.shape[0]
    if Q_row.min() >= Q:
        return count
    for begin in range(0, n, block):
        size = min(block, n - begin)
        fill_normals(key, count, U.reshape(-1)[: size * L])
        count += 1
        for r in range(size):
            scale = W.dtype.type(np.sqrt(Q - Q_row[begin + r]))
            for l in range(L):
                W[begin + r, l] += scale * U[r, l]
            Q_row[begin + r] = Q
    return count
