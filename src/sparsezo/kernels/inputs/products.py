"""Products with an input's C: C times a table, and its transpose's scatter (design 1).

C is sparse. The first rows of an input may have dense columns beside their entries (vectors of tokens): d of them, one
after the other, whose rows in a table begin at ``first``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsezo.kernels.jit import kernel
from sparsezo.kernels.simd import add, combine_lanes, load, store, weighted

_LANES_AND_ONE = 9  # labels of the paper's chunking: eight that are worked on at once, and the last


@kernel
def weight(value: Any, e: Any) -> Any:
    if value is None:
        return np.float32(1)
    return value[e]


@kernel
def combine(table: Any, index: Any, value: Any, first: Any, last: Any, out: Any) -> None:
    """out = sum over e in first..last-1 of value[e] * table[index[e]]. None: value 1; index e - first."""
    if out.size == _LANES_AND_ONE:
        combine_lanes(9, table, index, value, first, last, out)
    elif out.size == 4:  # its text classes
        combine_lanes(4, table, index, value, first, last, out)
    else:
        out[:] = 0
        for e in range(first, last):
            t = table[e - first] if index is None else table[index[e]]
            v = weight(value, e)
            for l in range(out.size):
                out[l] += v * t[l]


@kernel
def scatter(inputs: Any, x: Any, index: Any, first: Any, c: Any, D: Any, table: Any) -> None:
    """table[index[e]] += c * value[e] * D[row of e] for all entries e: table += c C' D."""
    start = inputs.row_start[x]
    _scatter_dense(inputs.dense, inputs.dense_start[x], inputs.dense_start[x + 1], first, c, D, table)
    if table.shape[1] == _LANES_AND_ONE:
        _scatter_nine(inputs, x, index, c, D, table)
        return
    for r in range(start, inputs.row_start[x + 1]):
        d = D[r - start]
        for e in range(inputs.row_ptr[r], inputs.row_ptr[r + 1]):
            t = table[index[e]]
            v = c * weight(inputs.values, e)
            for l in range(t.size):
                t[l] += v * d[l]


@kernel
def _scatter_nine(inputs: Any, x: Any, index: Any, c: Any, D: Any, table: Any) -> None:
    """The same for nine labels, bit for bit, in vector code, which the loop over labels does not become by itself."""
    start = inputs.row_start[x]
    for r in range(start, inputs.row_start[x + 1]):
        place = (r - start) * _LANES_AND_ONE
        lanes, last = load(D, place), D[r - start, _LANES_AND_ONE - 1]
        for e in range(inputs.row_ptr[r], inputs.row_ptr[r + 1]):
            v, col = c * weight(inputs.values, e), np.int64(index[e])
            store(table, col * _LANES_AND_ONE, add(load(table, col * _LANES_AND_ONE), weighted(v, lanes)))
            table[col, _LANES_AND_ONE - 1] += v * last


@kernel
def _scatter_dense(dense: Any, begin: Any, end: Any, first: Any, c: Any, D: Any, table: Any) -> None:
    """table[first + m] += c * the sum over i of dense[begin + i, m] * D[i]."""
    if dense is None:
        return
    for m in range(dense.shape[1]):
        place = first + m
        if table.shape[1] == _LANES_AND_ONE:
            lanes, last = load(table, place * _LANES_AND_ONE), table[place, _LANES_AND_ONE - 1]
            for i in range(end - begin):
                v = c * dense[begin + i, m]
                lanes = add(lanes, weighted(v, load(D, i * _LANES_AND_ONE)))
                last += v * D[i, _LANES_AND_ONE - 1]
            store(table, place * _LANES_AND_ONE, lanes)
            table[place, _LANES_AND_ONE - 1] = last
        else:
            t = table[place]
            for i in range(end - begin):
                v, d = c * dense[begin + i, m], D[i]
                for l in range(t.size):
                    t[l] += v * d[l]


@kernel
def gather(inputs: Any, x: Any, index: Any, first: Any, table: Any, S: Any) -> None:
    """S = C table, with table's rows found by index."""
    start = inputs.row_start[x]
    for r in range(start, inputs.row_start[x + 1]):
        combine(table, index, inputs.values, inputs.row_ptr[r], inputs.row_ptr[r + 1], S[r - start])
    _gather_dense(inputs.dense, inputs.dense_start[x], inputs.dense_start[x + 1], first, table, inputs.scratch.row, S)


@kernel
def _gather_dense(dense: Any, begin: Any, end: Any, first: Any, table: Any, row: Any, S: Any) -> None:
    """S[i] += the sum over m of dense[begin + i, m] * table[first + m]. row: room for one of S."""
    if dense is None:
        return
    d = dense.shape[1]
    for i in range(end - begin):
        combine(table[first:], None, dense[begin + i], 0, d, row)
        s = S[i]
        for l in range(s.size):
            s[l] += row[l]


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
