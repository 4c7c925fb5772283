"""Products with an input's C: C times a table, its transpose's scatter, and Adagrad's step (design 1, 2.4).

C is sparse. The first rows of an input may have dense columns beside their entries (vectors of tokens), whose rows in a
table begin at ``first`` and stand one after the other.

Two vectors cover the labels, whatever their number is (``simd.by_width``). Every label's sum is in the order of the
entries, so that the bits are those of the plain loop.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsezo.kernels.jit import inlined_kernel, kernel
from sparsezo.kernels.simd import adagrad_two, by_width, combine_two, scatter_two


@kernel
def weight(value: Any, e: Any) -> Any:
    if value is None:
        return np.float32(1)
    return value[e]


@inlined_kernel
def _combine(width: Any, low: Any, high: Any, args: Any) -> None:
    table, index, value, first, last, out = args
    combine_two(width, table, index, value, first, last, low, high, out, 0)


@inlined_kernel
def combine(table: Any, index: Any, value: Any, first: Any, last: Any, out: Any) -> None:
    """out[0] = sum over e in first..last-1 of value[e] * table[index[e]]. None: value 1; index e - first."""
    by_width(_combine, table.shape[1], (table, index, value, first, last, out))


@inlined_kernel
def _gather(width: Any, low: Any, high: Any, args: Any) -> None:
    inputs, x, index, table, S = args
    start = inputs.row_start[x]
    for r in range(start, inputs.row_start[x + 1]):
        begin, end = inputs.row_ptr[r], inputs.row_ptr[r + 1]
        combine_two(width, table, index, inputs.values, begin, end, low, high, S, (r - start) * table.shape[1])


@kernel
def gather(inputs: Any, x: Any, index: Any, first: Any, table: Any, S: Any) -> None:
    """S = C table, with table's rows found by index."""
    by_width(_gather, table.shape[1], (inputs, x, index, table, S))
    _gather_dense(inputs.dense, inputs.dense_start[x], inputs.dense_start[x + 1], first, table, inputs.scratch.row, S)


@kernel
def _gather_dense(dense: Any, begin: Any, end: Any, first: Any, table: Any, row: Any, S: Any) -> None:
    """S[i] += the sum over m of dense[begin + i, m] * table[first + m]. row: room for one of S."""
    if dense is None:
        return
    for i in range(end - begin):
        combine(table[first:], None, dense[begin + i], 0, dense.shape[1], row)
        s = S[i]
        for l in range(s.size):
            s[l] += row[l]


@inlined_kernel
def _lower_triangle(width: Any, low: Any, high: Any, args: Any) -> None:
    K, first, R, Z, V = args
    for i in range(R):
        combine_two(width, Z, None, K, first, first + i + 1, low, high, V, i * Z.shape[1])
        first += i + 1


@kernel
def lower_triangle(K: Any, first: Any, R: Any, Z: Any, V: Any) -> None:
    """V = K Z, K a lower triangle by rows from number first on."""
    by_width(_lower_triangle, Z.shape[1], (K, first, R, Z, V))


@inlined_kernel
def _upper_triangle(width: Any, low: Any, high: Any, args: Any) -> None:
    K, first, R, Z, D = args
    for i in range(R):
        combine_two(width, Z[i:], None, K, first, first + R - i, low, high, D, i * Z.shape[1])
        first += R - i


@kernel
def upper_triangle(K: Any, first: Any, R: Any, Z: Any, D: Any) -> None:
    """D = K Z, K an upper triangle by rows from number first on."""
    by_width(_upper_triangle, Z.shape[1], (K, first, R, Z, D))


@inlined_kernel
def _scatter_row(width: Any, low: Any, high: Any, args: Any) -> None:
    c, D, index, value, first, last, table = args
    scatter_two(width, c, D, 0, index, value, first, last, low, high, table)


@inlined_kernel
def scatter_row(c: Any, D: Any, index: Any, value: Any, first: Any, last: Any, table: Any) -> None:
    """table[index[e]] += c * value[e] * D[0] for e in first..last-1. None: value 1; index e - first."""
    by_width(_scatter_row, table.shape[1], (c, D, index, value, first, last, table))


@inlined_kernel
def _scatter(width: Any, low: Any, high: Any, args: Any) -> None:
    inputs, x, index, c, D, table = args
    start = inputs.row_start[x]
    for r in range(start, inputs.row_start[x + 1]):
        begin, end = inputs.row_ptr[r], inputs.row_ptr[r + 1]
        scatter_two(width, c, D, (r - start) * table.shape[1], index, inputs.values, begin, end, low, high, table)


@kernel
def scatter(inputs: Any, x: Any, index: Any, first: Any, c: Any, D: Any, table: Any) -> None:
    """table[index[e]] += c * value[e] * D[row of e] for all entries e: table += c C' D."""
    _scatter_dense(inputs.dense, inputs.dense_start[x], inputs.dense_start[x + 1], first, c, D, table)
    by_width(_scatter, table.shape[1], (inputs, x, index, c, D, table))


@kernel
def _scatter_dense(dense: Any, begin: Any, end: Any, first: Any, c: Any, D: Any, table: Any) -> None:
    """table[first + m] += c * the sum over i of dense[begin + i, m] * D[i]."""
    if dense is None:
        return
    for i in range(end - begin):
        scatter_row(c, D[i:], None, dense[begin + i], 0, dense.shape[1], table[first:])


@inlined_kernel
def _add_rows(width: Any, low: Any, high: Any, args: Any) -> None:
    c, U, columns, first, last, W = args
    for m in range(first, last):
        scatter_two(width, c, U, (m - first) * W.shape[1], columns, None, m, m + 1, low, high, W)


@kernel
def add_rows(c: Any, U: Any, columns: Any, first: Any, last: Any, W: Any) -> None:
    """W[columns[m]] += c * U[m - first] for m in first..last-1."""
    by_width(_add_rows, W.shape[1], (c, U, columns, first, last, W))


@inlined_kernel
def _adagrad_rows(width: Any, low: Any, high: Any, args: Any) -> None:
    c, h, U, columns, first, last, W, q = args
    scale, L = c / h, W.shape[1]
    for m in range(first, last):
        adagrad_two(width, scale, h, U, (m - first) * L, low, high, W, q, np.int64(columns[m]) * L)


@kernel
def adagrad_rows(c: Any, h: Any, U: Any, columns: Any, first: Any, last: Any, W: Any, q: Any) -> None:
    """Adagrad's step along U[m - first] for W[columns[m]], m in first..last-1."""
    by_width(_adagrad_rows, W.shape[1], (c, h, U, columns, first, last, W, q))


@kernel
def dense_dot(dense: Any, begin: Any, end: Any, i: Any, j: Any) -> Any:
    """What the dense columns add to (C C')[i, j] of an input whose dense rows are begin to end (exclusive)."""
    dot = 0.0
    if dense is None:
        return dot
    if begin + i < end and begin + j < end:
        for m in range(dense.shape[1]):
            dot += np.float64(dense[begin + i, m]) * np.float64(dense[begin + j, m])
    return dot
