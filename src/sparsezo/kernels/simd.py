"""The inner loops that have a fast form in LLVM's vector types, each beside a plain twin that gives the same bits.

``combine_two`` is the inner loop of nearly all this package does, a weighted sum of table rows, by two vectors that
cover a row; ``scatter_two`` and ``adagrad_two`` move rows; ``add_two``, ``best_two`` and ``forward_two`` go along
chains of tags; ``dot_eights`` scores n-best lists, ``add_eights`` sums their rows, ``lane_leaders`` finds their best
candidate; ``prefetch_element`` asks memory in advance. ``load``, ``store``, ``fill``, ``add``, ``times`` and
``sum_lanes`` work on eight float32 numbers as one value.

The fast forms (``intrinsics``) lean on private corners of Numba. Where they cannot be compiled, the plain ones are used
and one warning says so; SPARSEZO_PLAIN_KERNELS=1 asks for them.
"""

from __future__ import annotations

import warnings
from typing import Any

import numba
import numpy as np

from sparsezo.kernels import jit
from sparsezo.kernels.jit import inlined_kernel, kernel, standalone_kernel

LANES = 8
PADDED = 2 * LANES  # a weight vector as ``dot_eights`` wants it


# Plain twins


@kernel
def plain_combine_two(
    width: Any,
    table: Any,
    index: Any,
    value: Any,
    first: Any,
    last: Any,
    low: Any,
    high: Any,
    out: Any,
    place: Any,
) -> None:
    """out[place + l] = sum over e in first..last-1 of value[e] * table[index[e], l], low <= l < high + width.

    None for value: 1; for index: the row is e - first. out is counted flat. low + width >= high.
    """
    sums = out.reshape(-1)
    for l in range(low, high + width):
        total = np.float32(0)
        for e in range(first, last):
            cell = table[e - first, l] if index is None else table[index[e], l]
            total += cell if value is None else cell * value[e]
        sums[place + l] = total


@kernel
def plain_scatter_two(
    width: Any,
    c: Any,
    D: Any,
    place: Any,
    index: Any,
    value: Any,
    first: Any,
    last: Any,
    low: Any,
    high: Any,
    table: Any,
) -> None:
    """table[index[e], l] += c * value[e] * D[place + l] for e in first..last-1, low <= l < high + width.

    None for value and index as for ``combine_two``; D is counted flat.
    """
    d = D.reshape(-1)[place:]
    for e in range(first, last):
        row = table[e - first] if index is None else table[index[e]]
        v = c if value is None else c * value[e]
        for l in range(low, high + width):
            row[l] += v * d[l]


@kernel
def plain_adagrad_two(
    width: Any, scale: Any, h: Any, U: Any, place: Any, low: Any, high: Any, W: Any, q: Any, at: Any
) -> None:
    """Adagrad's step (design 2.4) of the labels low <= l < high + width: of U[place:], for W[at:] and q[at:].

    scale = c / h. All three are counted flat.
    """
    direction, w, squares = U.reshape(-1)[place:], W.reshape(-1)[at:], q.reshape(-1)[at:]
    for l in range(low, high + width):
        g = direction[l] * scale
        squares[l] += g * g
        w[l] += h * g / np.sqrt(np.float32(1) + squares[l])


@kernel
def plain_add_two(width: Any, A: Any, a: Any, B: Any, b: Any, low: Any, high: Any, out: Any, place: Any) -> None:
    """out[place + l] = A[a + l] + B[b + l], low <= l < high + width; all counted flat."""
    left, right, to = A.reshape(-1)[a:], B.reshape(-1)[b:], out.reshape(-1)[place:]
    for l in range(low, high + width):
        to[l] = left[l] + right[l]


@kernel
def plain_best_two(width: Any, P: Any, place: Any, K: Any, low: Any, high: Any, best: Any, back: Any, row: Any) -> None:
    """best[row + 1, b] = the largest of best[row, a] + P[place + a K + b] over a, and back[row + 1, b] that a.

    For low <= b < high + width. The last a wins a tie. P is counted flat; best and back have K columns. back None:
    nobody asks for the a.
    """
    scores = P.reshape(-1)[place:]
    for b in range(low, high + width):
        top, arg = best[row, 0] + scores[b], 0
        for a in range(1, K):
            score = best[row, a] + scores[a * K + b]
            if score >= top:
                top, arg = score, a
        best[row + 1, b] = top
        if back is not None:
            back[row + 1, b] = arg


@kernel
def plain_forward_two(width: Any, E: Any, place: Any, K: Any, low: Any, high: Any, best: Any, row: Any) -> None:
    """E[place + a K + b] *= best[row, a] for all a, then over their sum, which is left in best[row + 1, b].

    For low <= b < high + width. E is counted flat; best has K columns.
    """
    chances = E.reshape(-1)[place:]
    for b in range(low, high + width):
        alpha = np.float32(0)
        for a in range(K):
            chances[a * K + b] *= best[row, a]
            alpha += chances[a * K + b]
        inverse = np.float32(1) / alpha
        for a in range(K):
            chances[a * K + b] *= inverse
        best[row + 1, b] = alpha


@kernel
def plain_prefetch_element(array: Any, place: Any) -> None:
    """Memory answers when it is asked."""


@kernel
def in_order(f: Any, w: Any) -> Any:
    """The sum of one row times the weights, added in the order of ``dot_eights``: bit for bit the same.

    w is padded: the weights of f's first eight columns, then those of its last eight, 0 for what came already.
    """
    g = f[f.size - LANES :]
    t0, t4 = f[0] * w[0] + g[0] * w[8], f[4] * w[4] + g[4] * w[12]
    t1, t5 = f[1] * w[1] + g[1] * w[9], f[5] * w[5] + g[5] * w[13]
    t2, t6 = f[2] * w[2] + g[2] * w[10], f[6] * w[6] + g[6] * w[14]
    t3, t7 = f[3] * w[3] + g[3] * w[11], f[7] * w[7] + g[7] * w[15]
    return ((t0 + t4) + (t2 + t6)) + ((t1 + t5) + (t3 + t7))


@kernel
def plain_dot_eights(features: Any, first: Any, n: Any, w: Any, S: Any) -> None:
    """S[:n] = features[first:first+n] w, n divisible by 8."""
    for j in range(n):
        S[j, 0] = in_order(features[first + j], w)


@kernel
def plain_dot_eights_twice(features: Any, first: Any, n: Any, w: Any, u: Any, S: Any, V: Any) -> None:
    """S[:n] = features[first:first+n] w and V[:n] = ... u, reading the features once."""
    for j in range(n):
        S[j, 0] = in_order(features[first + j], w)
        V[j, 0] = in_order(features[first + j], u)


@kernel
def plain_add_eights(features: Any, first: Any, n: Any, D: Any, U: Any) -> None:
    """U[:M] += features[first:first+n]' D, row by row but those where D is 0; M from 8 to 16."""
    for j in range(n):
        d = D[j, 0]
        if d != 0:
            f = features[first + j]
            for m in range(f.size):
                U[m, 0] += d * f[m]


@kernel
def plain_lane_leaders(S: Any, n: Any, value: Any, place: Any) -> None:
    """value[l], place[l] = the largest of S[l], S[l + 8], ... below n and where it first stands; n divisible by 8.

    NaN never leads.
    """
    for l in range(LANES):
        value[l], place[l] = -np.inf, 0
        for j in range(l, n, LANES):
            if S[j, 0] > value[l]:
                value[l], place[l] = S[j, 0], j


@kernel
def plain_load(array: Any, place: Any) -> Any:
    """The eight numbers of array from number ``place`` (counted flat): here a tuple of them."""
    a, k = array.reshape(-1), place
    return (a[k], a[k + 1], a[k + 2], a[k + 3], a[k + 4], a[k + 5], a[k + 6], a[k + 7])


@kernel
def plain_store(array: Any, place: Any, lanes: Any) -> None:
    a = array.reshape(-1)
    for l in range(LANES):
        a[place + l] = lanes[l]


@kernel
def plain_fill(number: Any) -> Any:
    return (number, number, number, number, number, number, number, number)


@kernel
def plain_add(x: Any, y: Any) -> Any:
    first = (x[0] + y[0], x[1] + y[1], x[2] + y[2], x[3] + y[3])
    return (*first, x[4] + y[4], x[5] + y[5], x[6] + y[6], x[7] + y[7])


@kernel
def plain_times(x: Any, y: Any) -> Any:
    first = (x[0] * y[0], x[1] * y[1], x[2] * y[2], x[3] * y[3])
    return (*first, x[4] * y[4], x[5] * y[5], x[6] * y[6], x[7] * y[7])


@kernel
def plain_sum_lanes(x: Any) -> Any:
    """The sum of the lanes: halves, then quarters, then eighths."""
    return ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]))


# Which are used


def _fast() -> bool:
    """Whether the fast forms are to be used and can be compiled."""
    if jit.PLAIN:
        return False
    try:
        from sparsezo.kernels import intrinsics

        @standalone_kernel
        def probe(table: Any, index: Any, w: Any, S: Any, place: Any, back: Any) -> None:
            intrinsics.combine_two(2, table, index, None, 0, 1, 0, 2, table, 0)
            intrinsics.scatter_two(2, table[0, 0], table, 0, index, None, 0, 1, 0, 2, table)
            intrinsics.adagrad_two(2, table[0, 0], table[0, 0], table, 0, 0, 2, table, table, 0)
            intrinsics.add_two(2, table, 0, table, 0, 0, 0, table, 0)
            intrinsics.best_two(2, table, 0, 2, 0, 0, table, back, 0)
            intrinsics.best_two(2, table, 0, 2, 0, 0, table, None, 0)
            intrinsics.forward_two(2, table, 0, 2, 0, 0, table, 0)
            intrinsics.prefetch_element(table, 0)
            intrinsics.dot_eights(table, 0, 0, w, S)
            intrinsics.dot_eights_twice(table, 0, 0, w, w, S, S)
            intrinsics.add_eights(table, 0, 0, S, S)
            intrinsics.lane_leaders(S, 0, w, place)
            one = intrinsics.load(table, 0)
            both = intrinsics.times(intrinsics.add(one, one), intrinsics.fill(intrinsics.sum_lanes(one)))
            intrinsics.store(table, 0, both)

        table, index, back = np.zeros((2, 4), np.float32), np.zeros(1, np.int32), np.zeros((2, 2), np.int16)
        probe(table, index, np.zeros(PADDED), np.zeros((8, 1)), np.zeros(8, int), back)
    except Exception as error:  # whatever another Numba may say of them
        warnings.warn(
            f"the fast kernels cannot be compiled with Numba {numba.__version__} ({type(error).__name__}); "
            "plain ones take their place: the same results, more slowly",
            stacklevel=2,
        )
        return False
    return True


FAST = _fast()
if FAST:
    from sparsezo.kernels.intrinsics import (
        adagrad_two,
        add,
        add_eights,
        add_two,
        best_two,
        combine_two,
        dot_eights,
        dot_eights_twice,
        fill,
        forward_two,
        lane_leaders,
        load,
        prefetch_element,
        scatter_two,
        store,
        sum_lanes,
        times,
    )
else:
    combine_two, scatter_two, adagrad_two = plain_combine_two, plain_scatter_two, plain_adagrad_two
    add_two, best_two, forward_two = plain_add_two, plain_best_two, plain_forward_two
    prefetch_element = plain_prefetch_element
    dot_eights, dot_eights_twice, lane_leaders = plain_dot_eights, plain_dot_eights_twice, plain_lane_leaders
    add_eights = plain_add_eights
    add, fill, load, store, times = plain_add, plain_fill, plain_load, plain_store, plain_times
    sum_lanes = plain_sum_lanes


@inlined_kernel
def by_width(part: Any, L: Any, args: Any) -> None:
    """``part(width, low, high, args)`` for the labels 0 to L - 1, up to 16 at a time, covered by two vectors.

    Of 8 numbers each for 9 to 16 labels, of 4 for 4 to 8, of 2 for 3, of 1 for 1 and 2: they begin at low and at
    high. What a part does is written once and copied into the four branches.
    """
    for low in range(0, L, 2 * LANES):
        end = min(low + 2 * LANES, L)
        if end - low > 8:
            part(8, low, end - 8, args)
        elif end - low > 4:
            part(4, low, end - 4, args)
        elif end - low == 4:
            part(4, low, low, args)  # which the compiler sees to be one vector, and not two
        elif end - low > 2:
            part(2, low, end - 2, args)
        else:
            part(1, low, end - 1, args)


@kernel
def weighted(number: Any, lanes: Any) -> Any:
    """A number times each lane."""
    return times(fill(number), lanes)


__all__ = [
    "FAST",
    "LANES",
    "PADDED",
    "adagrad_two",
    "add",
    "add_eights",
    "add_two",
    "best_two",
    "by_width",
    "combine_two",
    "dot_eights",
    "dot_eights_twice",
    "fill",
    "forward_two",
    "in_order",
    "lane_leaders",
    "load",
    "prefetch_element",
    "scatter_two",
    "store",
    "sum_lanes",
    "times",
    "weighted",
]
