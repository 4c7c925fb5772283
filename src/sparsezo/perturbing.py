"""What ``sparsezo.torch`` does to weights on a CPU, compiled: random signs added, and distinct numbers of rows.

Word j of a parameter is mix(key + j GAMMA), SplitMix64 read at any place, and its bit b is about weight 64 j + b: the
sign is - where it is 1. Of a table each row begins with a word of its own, so a row's signs are the same wherever and
however often it is looked up.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from sparsezo.kernels.jit import standalone_kernel
from sparsezo.kernels.random import GAMMA, mix

WORD = 64  # signs of a word
LANES = 16
_BYTES = np.uint64(0x0101010101010101)
_ONE, _EIGHT = np.uint64(1), np.uint64(8)
CHUNK = 240  # rows that are counted in bytes


@intrinsic  # type: ignore[untyped-decorator]
def _add_word(_context: Any, word: Any, scale: Any, w: Any, at: Any, out: Any, to: Any) -> Any:
    """out[to + b] = w[at + b] + scale times sign b of the word, b < 64; both are counted flat.

    In LLVM's vectors, 16 numbers each: of a plain loop it makes no vector code, as w may be out.
    """

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        word, scale, w, at, out, to = args
        number = context.get_value_type(w_type.dtype)
        lanes, ints = ir.VectorType(number, LANES), ir.VectorType(ir.IntType(32), LANES)

        def all_lanes(value: Any, kind: Any) -> Any:
            one = builder.insert_element(ir.Constant(kind, ir.Undefined), value, ir.Constant(ir.IntType(32), 0))
            return builder.shuffle_vector(one, one, ir.Constant(ints, [0] * LANES))

        def cells(kind: Any, array: Any, place: Any) -> Any:
            data = context.make_array(kind)(context, builder, array).data
            return builder.bitcast(builder.gep(data, [place]), lanes.as_pointer())

        plus, minus = all_lanes(scale, lanes), all_lanes(builder.fneg(scale), lanes)
        halves = [builder.trunc(builder.lshr(word, ir.Constant(word.type, k)), ir.IntType(32)) for k in (0, 32)]
        align = w_type.dtype.bitwidth // 8
        sums = []
        for k in range(WORD // LANES):
            bits = ir.Constant(ints, [1 << (k * LANES + b) % 32 for b in range(LANES)])
            chosen = builder.and_(all_lanes(halves[k * LANES // 32], ints), bits)
            negative = builder.icmp_signed("!=", chosen, ir.Constant(ints, [0] * LANES))
            place = builder.add(at, ir.Constant(at.type, k * LANES))
            value = builder.load(cells(sig.args[2], w, place), align=align)
            sums.append(builder.fadd(value, builder.select(negative, minus, plus)))
        for k, value in enumerate(sums):
            builder.store(value, cells(sig.args[4], out, builder.add(to, ir.Constant(to.type, k * LANES))), align=align)
        return context.get_dummy_value()

    w_type = w
    return types.void(types.uint64, w.dtype, w, types.int64, out, types.int64), generate


@standalone_kernel
def _add_bits(word: Any, scale: Any, w: Any, at: Any, out: Any, to: Any, n: Any) -> None:
    """As ``_add_word``, b < n."""
    for b in range(n):
        out[to + b] = w[at + b] + (-scale if (word >> np.uint64(b)) & _ONE else scale)


@standalone_kernel
def add_signs(key: Any, scale: Any, w: Any, out: Any) -> None:
    """out = w + scale u, u random signs by the key; out may be w."""
    n, word = w.size, key
    for first in range(0, n - WORD + 1, WORD):
        _add_word(mix(word), scale, w, first, out, first)
        word += GAMMA
    if n % WORD:
        first = n // WORD * WORD
        _add_bits(mix(word), scale, w, first, out, first, n - first)


@standalone_kernel
def add_row_signs(
    key: Any,
    scale: Any,
    padding: Any,
    rows: Any,
    dim: Any,
    n_rows: Any,
    w: Any,
    w_by_row: Any,
    out: Any,
    out_by_row: Any,
) -> Any:
    """out[i] = w[i] + scale times the signs of row rows[i], without signs for the row for padding (-1: none).

    w[rows[i]] and out[rows[i]] where it is said. w and out are flat, rows of ``dim`` weights. False where a number is
    none of a row.
    """
    words = (dim + WORD - 1) // WORD
    for i in range(rows.size):
        row = np.int64(rows[i])
        if row < 0 or row >= n_rows:
            return False
        at, to = dim * (row if w_by_row else i), dim * (row if out_by_row else i)
        c = scale if row != padding else scale * 0
        place = key + np.uint64(row * words) * GAMMA
        for first in range(0, dim - WORD + 1, WORD):
            _add_word(mix(place), c, w, at + first, out, to + first)
            place += GAMMA
        if dim % WORD:
            first = dim // WORD * WORD
            _add_bits(mix(place), c, w, at + first, out, to + first, dim - first)
    return True


@standalone_kernel
def bag_signs(key: Any, padding: Any, rows: Any, begins: Any, mean: Any, words: Any, out: Any) -> None:
    """out[i]: the sum, or mean, of the signs of rows[begins[i] : begins[i + 1]] but those for padding.

    words: room for ``CHUNK`` words. They are counted bit by bit, eight bits of a word at once.
    """
    dim = out.shape[1]
    each = (dim + WORD - 1) // WORD
    for bag in range(out.shape[0]):
        begin, end = max(begins[bag], 0), min(begins[bag + 1], rows.size)
        sums, counted = out[bag], np.int64(0)
        sums[:] = 0
        for column in range(each):
            counted = np.int64(0)
            while begin < end:
                n = np.int64(0)
                if padding < 0:
                    n = min(end - begin, np.int64(CHUNK))
                    for i in range(n):
                        words[i] = np.uint64(rows[begin + i] * each + column)
                    begin += n
                else:
                    while begin < end and n < CHUNK:
                        words[n] = np.uint64(rows[begin] * each + column)
                        n += rows[begin] != padding
                        begin += 1
                counted += n
                for i in range(n):
                    words[i] = mix(key + words[i] * GAMMA)
                for k in range(8):
                    total, shift = np.uint64(0), np.uint64(k)
                    for i in range(n):
                        total += (words[i] >> shift) & _BYTES
                    for b in range(column * WORD + k, min(dim, (column + 1) * WORD), 8):
                        sums[b] += n - 2 * np.int64(total & np.uint64(255))
                        total >>= _EIGHT
            begin = max(begins[bag], 0)
        if mean and counted:
            for b in range(dim):
                sums[b] /= counted


@standalone_kernel
def distinct(indices: Any, padding: Any, marks: Any, rows: Any, count: Any) -> Any:
    """Append to rows[:count] those of the indices that are not in it, nor for padding; the count after that.

    marks: a bit for each row of the table, set where it is in ``rows``, which has room for one more than all.
    """
    for i in range(indices.size):
        row = np.int64(indices[i])
        place, bit = row >> 6, _ONE << np.uint64(row & 63)
        mark = marks[place]
        rows[count] = row
        count += np.int64((mark & bit) == 0) & np.int64(row != padding)
        marks[place] = mark | bit
    return count
