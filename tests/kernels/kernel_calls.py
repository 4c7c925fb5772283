"""The loop's operations, callable from Python, and a few compiled loops over them for the tests of laws."""

from __future__ import annotations

from functools import cache

import numba
import numpy as np

from sparsezo.kernels import loop, protocol
from sparsezo.kernels.inputs.products import scatter
from sparsezo.kernels.jit import allocating_kernel as kernel
from sparsezo.kernels.lazy import settle_all
from sparsezo.kernels.random import _stream_key

_ONE = np.float32(1)
_NO_END = np.int64(2**62)  # no literal: for each of these the loop would be compiled once more


@kernel
def rows(inputs, x):
    return protocol.rows(inputs, x)


@kernel
def scores(inputs, x, W, S):
    protocol.scores(inputs, x, W, S)


@kernel
def draw(inputs, x, key, step, Z):
    protocol.draw(inputs, x, key, step, Z)


def spread(inputs, x, Z, V):
    """V = C u alone."""
    W = np.zeros((inputs.columns.max() + 1, Z.shape[1]), Z.dtype)
    scores_with(inputs, x, W, Z, np.zeros_like(V), V)


@kernel
def scores_with(inputs, x, W, Z, S, V):
    protocol.scores_with(inputs, x, W, Z, S, V)


@kernel
def see(inputs, x, Z, D):
    protocol.project(inputs, x, Z, D)


@kernel
def complete(inputs, x, key, step, Z, D, U, row):
    protocol.draw_complement(inputs, x, key, step, Z, D, U, row)


@kernel
def move(inputs, x, c, h, D, U, whole, W, q):
    protocol.move(inputs, x, c, h, D, U, whole, W, q)


@kernel
def awake(inputs, x, Q, Q_row):
    protocol.mark_settled(inputs, x, Q, Q_row)


@kernel
def decode(task, x, S, y):
    return protocol.decode(task, x, S, y)


@kernel
def sample(task, x, S, key, step, y):
    return protocol.sample(task, x, S, key, step, y)


@kernel
def supervise(gold, task, x, S, D):
    protocol.supervise(gold, task, x, S, D)


@kernel
def delta(gold, task, x, y):
    return protocol.delta(gold, task, x, y)


@kernel
def risk(gold, task, x, S, gamma):
    return protocol.risk(gold, task, x, S, gamma)


@kernel
def directions(inputs, x, keys, Z, D, U, row, out):
    """out[step] = u, by x's distinct columns."""
    M = inputs.col_start[x + 1] - inputs.col_start[x]
    for step in range(out.shape[0]):
        protocol.draw(inputs, x, keys[0], step, Z)
        protocol.draw_complement(inputs, x, keys[1], step, Z, D, U, row)
        scatter(inputs, x, inputs.slots, 0, _ONE, D, U)
        out[step] = U[:M]


def repeat(inputs, task, gold, law, *others):
    """Many short runs from W; sums of their moves and of the squares of these. False: a step was refused.

    With out of size 0, run r is the steps from step number r on; else it is a run with seed r, every row folded in at
    its end, and its weights go to out[r].
    """
    return _repeat_of(loop.way_of(law), law.criterion)(inputs, task, gold, law, *others)


@cache
def _repeat_of(way, criterion):
    run = loop._run_of(way, criterion)

    @numba.njit(nogil=True, error_model="numpy")
    def many(inputs, task, gold, law, N, steps, times, memory, room, W, total, squares, out):
        fine = True
        for r in range(times):
            memory.W[:] = W
            memory.Q_row[:] = 0
            memory.counts[:] = 0
            memory.sums[:] = 0
            if out.size > 0:
                for stream in range(law.keys.size):
                    law.keys[stream] = _stream_key(r, stream)
            else:
                memory.counts[loop.STEP] = memory.counts[loop.ASKED] = r
            fine &= run(inputs, task, gold, law, N, memory.counts[loop.STEP] + steps, _NO_END, memory, room)
            if memory.Q_row.size > 0:
                settle_all(
                    law.keys[3],
                    memory.counts[loop.SETTLEMENTS],
                    memory.sums[loop.Q_TOTAL],
                    memory.Q_row,
                    room.U,
                    memory.W,
                )
            if out.size > 0:
                out[r] = memory.W
            for i in range(W.shape[0]):
                for l in range(W.shape[1]):
                    d = np.float64(memory.W[i, l]) - np.float64(W[i, l])
                    total[i, l] += d
                    squares[i, l] += d * d
        return fine

    return many
