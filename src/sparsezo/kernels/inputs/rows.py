"""Inputs of one row, such as documents (R = 1, design 1): S = x W, and all of design 2 with a number in place of G.

C is one sparse row x, so G = C C' = ||x||^2 and its factor is K = ||x||. What ``sparse`` does by triangular solves is
here a multiplication, and as the columns of a row are distinct (``row_inputs`` checks), an entry is its own slot:
memory is a column and a value an entry, nothing more. For the same keys both draw the same numbers.

    inputs = row_inputs(X)                  # a scipy CSR matrix, float32 and int32: taken as they are, not copied
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsezo import validation
from sparsezo.errors import UsageError
from sparsezo.kernels import protocol
from sparsezo.kernels.adagrad import adagrad
from sparsezo.kernels.inputs.columns import in_use
from sparsezo.kernels.inputs.products import combine
from sparsezo.kernels.jit import allocating_kernel, kernel
from sparsezo.kernels.lazy import settle_columns
from sparsezo.kernels.protocol import implements
from sparsezo.kernels.random import fill_normals
from sparsezo.kernels.simd import combine_lanes, prefetch_element

_ONE, _ZERO = np.float32(1), np.float32(0)


class RowInputs(NamedTuple):
    """N inputs; input x is columns[indptr[x]:indptr[x + 1]], distinct, with their values."""

    indptr: NDArray[np.int64]  # N + 1
    columns: NDArray[np.int32]  # one an entry
    values: NDArray[np.float32]  # one an entry
    norm: NDArray[np.float32]  # N: ||x||, which is K

    def check(self, problem: Any) -> None:
        """``row_inputs`` has looked at the arrays; whether the problem has room for them."""
        validation.offsets("indptr", self.indptr, n=len(problem), end=self.columns.size)
        validation.below("columns", self.columns, problem.n_features)
        validation.at_least("max_rows", problem.max_rows, 1)
        validation.at_least("max_columns", problem.max_columns, int(np.diff(self.indptr).max(initial=0)))

    def sizes(self) -> tuple[float, float]:
        """(sum of |x|, sum of x^2) over all entries."""
        return float(np.abs(self.values).sum(dtype=np.float64)), float(np.square(self.values).sum(dtype=np.float64))


@implements(protocol.rows, RowInputs)
def _rows(inputs: Any, x: Any) -> Any:
    return 1


@implements(protocol.scores, RowInputs)
def _scores(inputs: Any, x: Any, W: Any, S: Any) -> None:
    begin, end = inputs.indptr[x], inputs.indptr[x + 1]
    if S.shape[1] == 4:  # as ``combine`` does, but without a view of S: making one costs as much as ten words
        combine_lanes(4, W, inputs.columns, inputs.values, begin, end, S)
    else:
        combine(W, inputs.columns, inputs.values, begin, end, S[0])


@implements(protocol.prefetch, RowInputs)
def _prefetch(inputs: Any, soon: Any, later: Any, W: Any) -> None:
    """Where ``later`` begins, and (as that is known by now) the entries of ``soon``, 64 bytes at a time.

    Not W: words are frequent, so most of what is needed of it is near already.
    """
    prefetch_element(inputs.indptr, later)
    prefetch_element(inputs.norm, later)
    for e in range(inputs.indptr[soon], inputs.indptr[soon + 1], 16):
        prefetch_element(inputs.columns, e)
        prefetch_element(inputs.values, e)


@implements(protocol.draw, RowInputs)
def _draw(inputs: Any, x: Any, key: Any, step: Any, Z: Any) -> None:
    fill_normals(key, step, Z[0])


@implements(protocol.scores_with, RowInputs)
def _scores_with(inputs: Any, x: Any, W: Any, Z: Any, S: Any, V: Any) -> None:
    protocol.scores(inputs, x, W, S)
    K = inputs.norm[x]
    for l in range(Z.shape[1]):
        V[0, l] = K * Z[0, l]  # ~ N(0, ||x||^2)


@kernel
def _inverse(K: Any) -> Any:
    """1 / K, and 0 for a row of zeros, whose scores see nothing of u."""
    return _ONE / K if K > 0 else _ZERO


@implements(protocol.project, RowInputs)
def _project(inputs: Any, x: Any, Z: Any, D: Any) -> None:
    inverse = _inverse(inputs.norm[x])
    for l in range(Z.shape[1]):
        D[0, l] = inverse * Z[0, l]


@implements(protocol.draw_complement, RowInputs)
def _draw_complement(inputs: Any, x: Any, key: Any, step: Any, Z: Any, D: Any, U: Any, row: Any) -> None:
    """u = U0 + x' (Z - x U0 / K) / K; U0 is left in U, Z is overwritten."""
    L = Z.shape[1]
    begin, end = inputs.indptr[x], inputs.indptr[x + 1]
    fill_normals(key, step, U.reshape(-1)[: (end - begin) * L])
    combine(U, None, inputs.values, begin, end, row)
    inverse = _inverse(inputs.norm[x])
    for l in range(L):
        Z[0, l] -= inverse * row[l]
        D[0, l] = inverse * Z[0, l]


@implements(protocol.move, RowInputs)
def _move(inputs: Any, x: Any, c: Any, h: Any, D: Any, U: Any, whole: Any, W: Any, q: Any) -> None:
    c, h = W.dtype.type(c), W.dtype.type(h)
    L = W.shape[1]
    begin, end = inputs.indptr[x], inputs.indptr[x + 1]
    d = D[0]
    if q.size > 0:
        if L == 4:
            _adagrad4(inputs, begin, end, c / h, h, d, U, whole, W, q)
            return
        for e in range(begin, end):
            u, v, col = U[e - begin], inputs.values[e], inputs.columns[e]
            for l in range(L):
                u[l] = (u[l] if whole else _ZERO) + v * d[l]
            adagrad(c, h, u, W[col], q[col])
        return
    if whole:
        for e in range(begin, end):
            w, u = W[inputs.columns[e]], U[e - begin]
            for l in range(L):
                w[l] += c * u[l]
    if L == 4:
        _scatter4(inputs, begin, end, c, d, W)
    else:
        for e in range(begin, end):
            w, v = W[inputs.columns[e]], c * inputs.values[e]
            for l in range(L):
                w[l] += v * d[l]


@kernel
def _scatter4(inputs: Any, begin: Any, end: Any, c: Any, d: Any, W: Any) -> None:
    """W += c x' D for four labels. All is read before anything is written, so that it becomes vector code."""
    d0, d1, d2, d3 = d[0], d[1], d[2], d[3]
    for e in range(begin, end):
        w, v = W[inputs.columns[e]], c * inputs.values[e]
        w0, w1, w2, w3 = w[0] + v * d0, w[1] + v * d1, w[2] + v * d2, w[3] + v * d3
        w[0], w[1], w[2], w[3] = w0, w1, w2, w3


@kernel
def _adagrad4(
    inputs: Any, begin: Any, end: Any, scale: Any, h: Any, d: Any, U: Any, whole: Any, W: Any, q: Any
) -> None:
    """``sparse.adagrad`` on (x' D + U if whole) for four labels, likewise."""
    d0, d1, d2, d3 = d[0], d[1], d[2], d[3]
    for e in range(begin, end):
        v, w, r = inputs.values[e], W[inputs.columns[e]], q[inputs.columns[e]]
        g0, g1, g2, g3 = v * d0, v * d1, v * d2, v * d3
        if whole:
            u = U[e - begin]
            g0, g1, g2, g3 = g0 + u[0], g1 + u[1], g2 + u[2], g3 + u[3]
        g0, g1, g2, g3 = g0 * scale, g1 * scale, g2 * scale, g3 * scale
        q0, q1, q2, q3 = r[0] + g0 * g0, r[1] + g1 * g1, r[2] + g2 * g2, r[3] + g3 * g3
        r[0], r[1], r[2], r[3] = q0, q1, q2, q3
        q0, q1, q2, q3 = np.sqrt(_ONE + q0), np.sqrt(_ONE + q1), np.sqrt(_ONE + q2), np.sqrt(_ONE + q3)
        w0, w1, w2, w3 = w[0] + h * g0 / q0, w[1] + h * g1 / q1, w[2] + h * g2 / q2, w[3] + h * g3 / q3
        w[0], w[1], w[2], w[3] = w0, w1, w2, w3


@implements(protocol.settle, RowInputs)
def _settle(inputs: Any, x: Any, key: Any, count: Any, Q: Any, Q_row: Any, U: Any, W: Any) -> Any:
    return settle_columns(inputs.columns, inputs.indptr[x], inputs.indptr[x + 1], key, count, Q, Q_row, U, W)


@implements(protocol.mark_settled, RowInputs)
def _mark_settled(inputs: Any, x: Any, Q: Any, Q_row: Any) -> None:
    for e in range(inputs.indptr[x], inputs.indptr[x + 1]):
        Q_row[inputs.columns[e]] = Q


@allocating_kernel
def _measure(indptr: Any, columns: Any, values: Any, n_columns: Any, norm: Any) -> Any:
    """norm = ||x|| of every row; returns the first row with a wrong entry, or -1."""
    last = np.full(n_columns, -1, np.int64)  # the row that each column was last seen in
    for x in range(norm.size):
        total = 0.0
        for e in range(indptr[x], indptr[x + 1]):
            col, v = columns[e], np.float64(values[e])
            if not 0 <= col < n_columns or last[col] == x or not np.isfinite(v):
                return x
            last[col] = x
            total += v * v
        norm[x] = np.sqrt(total)
    return -1


def row_inputs(X: Any) -> RowInputs:
    """Inputs from a CSR matrix whose rows name no column twice. Float32 values and int32 columns are not copied."""
    norm = np.empty(X.shape[0], np.float32)
    inputs = RowInputs(
        np.ascontiguousarray(X.indptr, np.int64),
        np.ascontiguousarray(X.indices, np.int32),
        np.ascontiguousarray(X.data, np.float32),
        norm,
    )
    validation.offsets("indptr", inputs.indptr, n=X.shape[0], end=inputs.columns.size)
    validation.array("values", inputs.values, "f", (inputs.columns.size,))
    names, numbers = in_use(inputs.columns, X.shape[1])
    size = X.shape[1] if names is None else names.size
    wrong = _measure(inputs.indptr, numbers, inputs.values, size, norm)
    if wrong >= 0:
        raise UsageError(f"row {wrong} names a column twice, a column that is not there, or a value that is not finite")
    return inputs
