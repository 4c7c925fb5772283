"""One input of anybody's: the weights that it shows, and through which directions of theirs the loss sees them.

For ``Optimizer``, where the loss is a black box and no scores are computed: S is the active weights themselves and V
is u, drawn directly, as where R > M (design 2.1). Under score the loss reads w through C w alone, and u is projected
onto the rows of C (design 2.3): P u = Q Q' u, with Q the orthonormal columns of ``basis``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsezo.kernels import protocol
from sparsezo.kernels.adagrad import adagrad
from sparsezo.kernels.jit import kernel
from sparsezo.kernels.lazy import settle_columns
from sparsezo.kernels.protocol import implements
from sparsezo.kernels.random import fill_normals


class OneInput(NamedTuple):
    active: NDArray[np.int64]  # M: distinct numbers of weights
    basis: NDArray[np.float64]  # M x rank of C; 0 x 0 where u is taken as it is


@kernel
def _seen(inputs: Any, Z: Any, out: Any) -> None:
    """out = u, or its projection where the input has a basis."""
    M, Q = inputs.active.size, inputs.basis
    if Q.shape[0] == 0:
        for m in range(M):
            out[m, 0] = Z[m, 0]
        return
    out[:M] = 0
    for k in range(Q.shape[1]):
        length = 0.0
        for m in range(M):
            length += Q[m, k] * Z[m, 0]
        for m in range(M):
            out[m, 0] += length * Q[m, k]


@implements(protocol.rows, OneInput)
def _rows(inputs: Any, x: Any) -> Any:
    return inputs.active.size


@implements(protocol.scores, OneInput)
def _scores(inputs: Any, x: Any, W: Any, S: Any) -> None:
    for m in range(inputs.active.size):
        S[m, 0] = W[inputs.active[m], 0]


@implements(protocol.draw, OneInput)
def _draw(inputs: Any, x: Any, key: Any, step: Any, Z: Any) -> None:
    fill_normals(key, step, Z.reshape(-1)[: inputs.active.size])


@implements(protocol.scores_with, OneInput)
def _scores_with(inputs: Any, x: Any, W: Any, Z: Any, S: Any, V: Any) -> None:
    protocol.scores(inputs, x, W, S)
    _seen(inputs, Z, V)


@implements(protocol.project, OneInput)
def _project(inputs: Any, x: Any, Z: Any, D: Any) -> None:
    _seen(inputs, Z, D)


@implements(protocol.draw_complement, OneInput)
def _draw_complement(inputs: Any, x: Any, key: Any, step: Any, Z: Any, D: Any, U: Any, row: Any) -> None:
    """u is here already."""
    for m in range(inputs.active.size):
        U[m, 0] = Z[m, 0]


@implements(protocol.move, OneInput)
def _move(inputs: Any, x: Any, c: Any, h: Any, D: Any, U: Any, whole: Any, W: Any, q: Any) -> None:
    direction = U if whole else D
    for m in range(inputs.active.size):
        a = inputs.active[m]
        if q.size == 0:
            W[a, 0] += c * direction[m, 0]
        else:
            adagrad(c, h, direction[m], W[a], q[a])


@implements(protocol.settle, OneInput)
def _settle(inputs: Any, x: Any, key: Any, count: Any, Q: Any, Q_row: Any, U: Any, W: Any) -> Any:
    return settle_columns(inputs.active, 0, inputs.active.size, key, count, Q, Q_row, U, W)


@implements(protocol.mark_settled, OneInput)
def _mark_settled(inputs: Any, x: Any, Q: Any, Q_row: Any) -> None:
    for m in range(inputs.active.size):
        Q_row[inputs.active[m]] = Q
