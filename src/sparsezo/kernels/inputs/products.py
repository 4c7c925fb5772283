"""Products with an input's sparse C: C times a table, its transpose's scatter, and Adagrad's step (design 1, 2.4).

Each is done for up to 16 labels at a time, by two vectors that cover these: of 8 numbers each for 9 to 16 labels, of 4
for 5 to 8, of 2 for 3 and 4, of 1 for 1 and 2 (``simd``). Every label's sum is in the order of the entries, so that the
bits are those of the plain loop, whatever the number of labels is. What a width does is written once and copied into
the four branches.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsezo.kernels.jit import inlined_kernel, kernel
from sparsezo.kernels.simd import adagrad_two, combine_two, scatter_two

AT_ONCE = 16  # labels


@kernel
def weight(value: Any, e: Any) -> Any:
    if value is None:
        return np.float32(1)
    return value[e]


@inlined_kernel
def _combine(
    width: Any, low: Any, high: Any, table: Any, index: Any, value: Any, first: Any, last: Any, out: Any
) -> None:
    """``combine`` of the labels low to high + width."""
    combine_two(width, table, index, value, first, last, low, high, out, 0)


@kernel
def combine(table: Any, index: Any, value: Any, first: Any, last: Any, out: Any) -> None:
    """out[0] = sum over e in first..last-1 of value[e] * table[index[e]]. None: value 1; index e - first."""
    L = table.shape[1]
    for low in range(0, L, AT_ONCE):
        end = min(low + AT_ONCE, L)
        if end - low > 8:
            _combine(8, low, end - 8, table, index, value, first, last, out)
        elif end - low > 4:
            _combine(4, low, end - 4, table, index, value, first, last, out)
        elif end - low > 2:
            _combine(2, low, end - 2, table, index, value, first, last, out)
        else:
            _combine(1, low, end - 1, table, index, value, first, last, out)


@inlined_kernel
def _gather(width: Any, low: Any, high: Any, inputs: Any, x: Any, index: Any, table: Any, S: Any) -> None:
    """``gather`` of the labels low to high + width."""
    start = inputs.row_start[x]
    for r in range(start, inputs.row_start[x + 1]):
        begin, end = inputs.row_ptr[r], inputs.row_ptr[r + 1]
        combine_two(width, table, index, inputs.values, begin, end, low, high, S, (r - start) * table.shape[1])


@kernel
def gather(inputs: Any, x: Any, index: Any, table: Any, S: Any) -> None:
    """S = C table, with table's rows found by index."""
    L = table.shape[1]
    for low in range(0, L, AT_ONCE):
        end = min(low + AT_ONCE, L)
        if end - low > 8:
            _gather(8, low, end - 8, inputs, x, index, table, S)
        elif end - low > 4:
            _gather(4, low, end - 4, inputs, x, index, table, S)
        elif end - low > 2:
            _gather(2, low, end - 2, inputs, x, index, table, S)
        else:
            _gather(1, low, end - 1, inputs, x, index, table, S)


@inlined_kernel
def _lower_triangle(width: Any, low: Any, high: Any, K: Any, first: Any, R: Any, Z: Any, V: Any) -> None:
    """``lower_triangle`` of the labels low to high + width."""
    for i in range(R):
        combine_two(width, Z, None, K, first, first + i + 1, low, high, V, i * Z.shape[1])
        first += i + 1


@kernel
def lower_triangle(K: Any, first: Any, R: Any, Z: Any, V: Any) -> None:
    """V = K Z, K a lower triangle by rows from number first on."""
    L = Z.shape[1]
    for low in range(0, L, AT_ONCE):
        end = min(low + AT_ONCE, L)
        if end - low > 8:
            _lower_triangle(8, low, end - 8, K, first, R, Z, V)
        elif end - low > 4:
            _lower_triangle(4, low, end - 4, K, first, R, Z, V)
        elif end - low > 2:
            _lower_triangle(2, low, end - 2, K, first, R, Z, V)
        else:
            _lower_triangle(1, low, end - 1, K, first, R, Z, V)


@inlined_kernel
def _upper_triangle(width: Any, low: Any, high: Any, K: Any, first: Any, R: Any, Z: Any, D: Any) -> None:
    """``upper_triangle`` of the labels low to high + width."""
    for i in range(R):
        combine_two(width, Z[i:], None, K, first, first + R - i, low, high, D, i * Z.shape[1])
        first += R - i


@kernel
def upper_triangle(K: Any, first: Any, R: Any, Z: Any, D: Any) -> None:
    """D = K Z, K an upper triangle by rows from number first on."""
    L = Z.shape[1]
    for low in range(0, L, AT_ONCE):
        end = min(low + AT_ONCE, L)
        if end - low > 8:
            _upper_triangle(8, low, end - 8, K, first, R, Z, D)
        elif end - low > 4:
            _upper_triangle(4, low, end - 4, K, first, R, Z, D)
        elif end - low > 2:
            _upper_triangle(2, low, end - 2, K, first, R, Z, D)
        else:
            _upper_triangle(1, low, end - 1, K, first, R, Z, D)


@inlined_kernel
def _scatter_row(
    width: Any, low: Any, high: Any, c: Any, D: Any, index: Any, value: Any, first: Any, last: Any, table: Any
) -> None:
    """``scatter_row`` of the labels low to high + width."""
    scatter_two(width, c, D, 0, index, value, first, last, low, high, table)


@kernel
def scatter_row(c: Any, D: Any, index: Any, value: Any, first: Any, last: Any, table: Any) -> None:
    """table[index[e]] += c * value[e] * D[0] for e in first..last-1. None: value 1; index e - first."""
    L = table.shape[1]
    for low in range(0, L, AT_ONCE):
        end = min(low + AT_ONCE, L)
        if end - low > 8:
            _scatter_row(8, low, end - 8, c, D, index, value, first, last, table)
        elif end - low > 4:
            _scatter_row(4, low, end - 4, c, D, index, value, first, last, table)
        elif end - low > 2:
            _scatter_row(2, low, end - 2, c, D, index, value, first, last, table)
        else:
            _scatter_row(1, low, end - 1, c, D, index, value, first, last, table)


@inlined_kernel
def _scatter(width: Any, low: Any, high: Any, inputs: Any, x: Any, index: Any, c: Any, D: Any, table: Any) -> None:
    """``scatter`` of the labels low to high + width."""
    start = inputs.row_start[x]
    for r in range(start, inputs.row_start[x + 1]):
        begin, end = inputs.row_ptr[r], inputs.row_ptr[r + 1]
        scatter_two(width, c, D, (r - start) * table.shape[1], index, inputs.values, begin, end, low, high, table)


@kernel
def scatter(inputs: Any, x: Any, index: Any, c: Any, D: Any, table: Any) -> None:
    """table[index[e]] += c * value[e] * D[row of e] for all entries e: table += c C' D."""
    L = table.shape[1]
    for low in range(0, L, AT_ONCE):
        end = min(low + AT_ONCE, L)
        if end - low > 8:
            _scatter(8, low, end - 8, inputs, x, index, c, D, table)
        elif end - low > 4:
            _scatter(4, low, end - 4, inputs, x, index, c, D, table)
        elif end - low > 2:
            _scatter(2, low, end - 2, inputs, x, index, c, D, table)
        else:
            _scatter(1, low, end - 1, inputs, x, index, c, D, table)


@inlined_kernel
def _add_rows(width: Any, low: Any, high: Any, c: Any, U: Any, columns: Any, first: Any, last: Any, W: Any) -> None:
    """``add_rows`` of the labels low to high + width."""
    for m in range(first, last):
        scatter_two(width, c, U, (m - first) * W.shape[1], columns, None, m, m + 1, low, high, W)


@kernel
def add_rows(c: Any, U: Any, columns: Any, first: Any, last: Any, W: Any) -> None:
    """W[columns[m]] += c * U[m - first] for m in first..last-1."""
    L = W.shape[1]
    for low in range(0, L, AT_ONCE):
        end = min(low + AT_ONCE, L)
        if end - low > 8:
            _add_rows(8, low, end - 8, c, U, columns, first, last, W)
        elif end - low > 4:
            _add_rows(4, low, end - 4, c, U, columns, first, last, W)
        elif end - low > 2:
            _add_rows(2, low, end - 2, c, U, columns, first, last, W)
        else:
            _add_rows(1, low, end - 1, c, U, columns, first, last, W)


@inlined_kernel
def _adagrad_rows(
    width: Any, low: Any, high: Any, c: Any, h: Any, U: Any, columns: Any, first: Any, last: Any, W: Any, q: Any
) -> None:
    """``adagrad_rows`` of the labels low to high + width."""
    scale, L = c / h, W.shape[1]
    for m in range(first, last):
        adagrad_two(width, scale, h, U, (m - first) * L, low, high, W, q, np.int64(columns[m]) * L)


@kernel
def adagrad_rows(c: Any, h: Any, U: Any, columns: Any, first: Any, last: Any, W: Any, q: Any) -> None:
    """Adagrad's step along U[m - first] for W[columns[m]], m in first..last-1."""
    L = W.shape[1]
    for low in range(0, L, AT_ONCE):
        end = min(low + AT_ONCE, L)
        if end - low > 8:
            _adagrad_rows(8, low, end - 8, c, h, U, columns, first, last, W, q)
        elif end - low > 4:
            _adagrad_rows(4, low, end - 4, c, h, U, columns, first, last, W, q)
        elif end - low > 2:
            _adagrad_rows(2, low, end - 2, c, h, U, columns, first, last, W, q)
        else:
            _adagrad_rows(1, low, end - 1, c, h, U, columns, first, last, W, q)
