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
from sparsezo.kernels.inputs.columns import in_use
from sparsezo.kernels.inputs.products import adagrad_rows, add_rows, combine, scatter_row
from sparsezo.kernels.jit import allocating_kernel, kernel
from sparsezo.kernels.lazy import settle_columns
from sparsezo.kernels.protocol import implements
from sparsezo.kernels.random import fill_normals
from sparsezo.kernels.simd import prefetch_element

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

    def dimensions(self) -> NDArray[np.int64]:
        """rank(C) of every input."""
        return (self.norm > 0).astype(np.int64)

    def sizes(self) -> tuple[float, float]:
        """(sum of |x|, sum of x^2) over all entries."""
        return float(np.abs(self.values).sum(dtype=np.float64)), float(np.square(self.values).sum(dtype=np.float64))


@implements(protocol.rows, RowInputs)
def _rows(inputs: Any, x: Any) -> Any:
    return 1


@implements(protocol.scores, RowInputs)
def _scores(inputs: Any, x: Any, W: Any, S: Any) -> None:
    combine(W, inputs.columns, inputs.values, inputs.indptr[x], inputs.indptr[x + 1], S)


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
    begin, end = inputs.indptr[x], inputs.indptr[x + 1]
    if q.size > 0:
        if not whole:
            U[: end - begin] = 0
        scatter_row(_ONE, D, None, inputs.values, begin, end, U)
        adagrad_rows(c, h, U, inputs.columns, begin, end, W, q)
        return
    if whole:
        add_rows(c, U, inputs.columns, begin, end, W)
    scatter_row(c, D, inputs.columns, inputs.values, begin, end, W)


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
