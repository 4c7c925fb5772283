"""Products with an input's sparse C: C times a table, and its transpose's scatter (design 1)."""

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
def scatter(inputs: Any, x: Any, index: Any, c: Any, D: Any, table: Any) -> None:
    """table[index[e]] += c * value[e] * D[row of e] for all entries e: table += c C' D."""
    start = inputs.row_start[x]
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
def gather(inputs: Any, x: Any, index: Any, table: Any, S: Any) -> None:
    """S = C table, with table's rows found by index."""
    start = inputs.row_start[x]
    for r in range(start, inputs.row_start[x + 1]):
        combine(table, index, inputs.values, inputs.row_ptr[r], inputs.row_ptr[r + 1], S[r - start])
