"""Dense inputs with few columns and many rows: n-best lists, S = C W with C candidates x features (design 1 and 2.1).

R > M here, so u itself is drawn, all M of it: Z holds u, and V = C u is computed beside S = C W in one pass over C.
A feature is active in a list where some candidate has it other than 0. V does not see the others: ACTIVE leaves their
weights alone, and ALL owes them their share (``lazy``). SCORE leaves out all that C does not see of u (also in lists
shorter than M). P u = C' D has many solutions D; the one taken is 0 but for rank(C) candidates whose rows C_B
span those of C, found once for each list: D_B = (C_B')^+ u.

    inputs = dense_inputs(features, offsets)            # float32 [candidates, M], in memory or memory-mapped
    scores(inputs, x, W, S)                             # W: M x 1, float64, like S

Sums are float64 in one fixed order (``simd.in_order``), so equal candidates have equal scores and ties stay ties.
Weights beyond the columns of C, if W has any, are not looked at, and nobody perturbs them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsezo import validation
from sparsezo.kernels import protocol
from sparsezo.kernels.adagrad import adagrad
from sparsezo.kernels.jit import allocating_kernel, kernel
from sparsezo.kernels.lazy import settle_columns
from sparsezo.kernels.protocol import implements
from sparsezo.kernels.random import fill_normals
from sparsezo.kernels.simd import LANES, PADDED, add_eights, dot_eights, dot_eights_twice, in_order, prefetch_element

TOLERANCE = 1e-5  # a row this near to the span of others, by the longest row with columns scaled to length 1, is in it
_AHEAD = 4  # cache lines of the next list that are asked for in advance; the rest follows by itself


class DenseScratch(NamedTuple):
    padded: NDArray[np.float64]  # two weight vectors as the inner loop wants them


class DenseInputs(NamedTuple):
    """N lists; list x has the rows offsets[x]:offsets[x+1] of features."""

    features: NDArray[np.float32]  # [candidates, M], never written
    offsets: NDArray[np.int64]  # N + 1
    ranks: NDArray[np.int64]  # rank(C) of each list
    basis: NDArray[np.int32]  # [N, M]: candidates whose rows span those of C, as many as its rank
    solve: NDArray[np.float64]  # [N, M, M]: (C_B')^+ in the first rows
    col_start: NDArray[np.int64]  # N + 1: list x has the active features cols[col_start[x]:col_start[x+1]]
    cols: NDArray[np.int32]  # ascending in each list. These five are empty where nothing is learned
    scale: NDArray[np.float64]  # of steps along C' D: 1 over each feature's spread within lists; or empty, for 1
    scratch: DenseScratch

    def check(self, problem: Any) -> None:
        """``dense_inputs`` has looked at the arrays; whether the problem has room for them."""
        M = self.features.shape[1]
        validation.offsets("offsets", self.offsets, n=len(problem), end=len(self.features))
        validation.at_least("n_features", problem.n_features, M)
        validation.at_least("max_rows", problem.max_rows, int(np.diff(self.offsets).max(initial=0)))
        validation.at_least("max_columns", problem.max_columns, M)

    def dimensions(self) -> NDArray[np.int64]:
        """rank(C) of every list."""
        return self.ranks

    def sizes(self) -> tuple[float, float]:
        """N times the features' spreads within lists, and their squares: what all candidates share changes nothing."""
        spread = spreads(self.features, self.offsets)
        x = spread * self.scale if self.scale.size else spread
        return (self.offsets.size - 1) * float(x.sum()), (self.offsets.size - 1) * float((x * x).sum())


# ---- S = C W: eight rows at a time ----

_LEAST, _MOST = LANES, PADDED  # columns that two vectors cover; the paper's lists have 14


@kernel
def _pad(W: Any, M: Any, w: Any) -> None:
    """w = W's first M numbers for ``dot_eights``: 0 to 7, then the last eight with 0 for those that came already."""
    for m in range(LANES):
        w[m] = W[m, 0]
        w[m + LANES] = 0
    for m in range(LANES, M):
        w[m + 2 * LANES - M] = W[m, 0]


@kernel
def _plain(features: Any, first: Any, last: Any, W: Any, S: Any) -> None:
    for j in range(first, last):
        f = features[j]
        s = 0.0
        for m in range(f.size):
            s += f[m] * W[m, 0]
        S[j - first, 0] = s


@kernel
def dots(features: Any, first: Any, last: Any, W: Any, w: Any, S: Any) -> None:
    """S = features[first:last] W. w: room for PADDED numbers."""
    M = features.shape[1]
    if M < _LEAST or M > _MOST:
        _plain(features, first, last, W, S)
        return
    _pad(W, M, w)
    n = (last - first) // LANES * LANES
    dot_eights(features, first, n, w, S)
    for j in range(n, last - first):
        S[j, 0] = in_order(features[first + j], w)


# ---- the operations ----


@implements(protocol.rows, DenseInputs)
def _rows(inputs: Any, x: Any) -> Any:
    return inputs.offsets[x + 1] - inputs.offsets[x]


@implements(protocol.scores, DenseInputs)
def _scores(inputs: Any, x: Any, W: Any, S: Any) -> None:
    dots(inputs.features, inputs.offsets[x], inputs.offsets[x + 1], W, inputs.scratch.padded[0], S)


@implements(protocol.scores_with, DenseInputs)
def _scores_with(inputs: Any, x: Any, W: Any, Z: Any, S: Any, V: Any) -> None:
    features, first, last = inputs.features, inputs.offsets[x], inputs.offsets[x + 1]
    M = features.shape[1]
    if M < _LEAST or M > _MOST:
        _plain(features, first, last, W, S)
        _plain(features, first, last, Z, V)
        return
    w, u = inputs.scratch.padded[0], inputs.scratch.padded[1]
    _pad(W, M, w)
    _pad(Z, M, u)
    n = (last - first) // LANES * LANES
    dot_eights_twice(features, first, n, w, u, S, V)
    for j in range(n, last - first):
        S[j, 0] = in_order(features[first + j], w)
        V[j, 0] = in_order(features[first + j], u)


@implements(protocol.prefetch, DenseInputs)
def _prefetch(inputs: Any, soon: Any, later: Any, W: Any) -> None:
    M = inputs.features.shape[1]
    begin, end = inputs.offsets[soon] * M, inputs.offsets[soon + 1] * M
    for e in range(begin, min(end, begin + 16 * _AHEAD), 16):
        prefetch_element(inputs.features, e)


@implements(protocol.draw, DenseInputs)
def _draw(inputs: Any, x: Any, key: Any, step: Any, Z: Any) -> None:
    fill_normals(key, step, Z.reshape(-1)[: inputs.features.shape[1]])


@implements(protocol.project, DenseInputs)
def _project(inputs: Any, x: Any, Z: Any, D: Any) -> None:
    D[: protocol.rows(inputs, x)] = 0
    for i in range(inputs.ranks[x]):
        d = 0.0
        for m in range(inputs.features.shape[1]):
            d += inputs.solve[x, i, m] * Z[m, 0]
        D[inputs.basis[x, i], 0] = d


@implements(protocol.draw_complement, DenseInputs)
def _draw_complement(inputs: Any, x: Any, key: Any, step: Any, Z: Any, D: Any, U: Any, row: Any) -> None:
    """u is here already: U = u on the active features, and D would be 0; ``move`` does not look at it."""
    for m in range(inputs.features.shape[1]):
        U[m, 0] = 0
    for e in range(inputs.col_start[x], inputs.col_start[x + 1]):
        U[inputs.cols[e], 0] = Z[inputs.cols[e], 0]


@implements(protocol.move, DenseInputs)
def _move(inputs: Any, x: Any, c: Any, h: Any, D: Any, U: Any, whole: Any, W: Any, q: Any) -> None:
    """The direction is U where it is whole (``draw_complement`` left D at 0, unwritten), else C' D, summed up in U."""
    M = inputs.features.shape[1]
    if not whole:
        _combine(inputs.features, inputs.offsets[x], inputs.offsets[x + 1], D, U)
    scaled = not whole and inputs.scale.size > 0
    for m in range(M):
        before = W[m, 0]
        if scaled:
            U[m, 0] *= inputs.scale[m]
        if q.size == 0:
            W[m, 0] += c * U[m, 0]
        else:
            adagrad(c, h, U[m], W[m], q[m])
        if scaled:
            W[m, 0] = before + inputs.scale[m] * (W[m, 0] - before)


@kernel
def _combine(features: Any, first: Any, last: Any, D: Any, U: Any) -> None:
    """U[:M] = C' D."""
    M = features.shape[1]
    U[:M] = 0
    if _LEAST <= M <= _MOST:
        add_eights(features, first, last - first, D, U)
        return
    for j in range(first, last):
        d = D[j - first, 0]
        if d != 0:  # ``project`` leaves few
            f = features[j]
            for m in range(M):
                U[m, 0] += d * f[m]


@implements(protocol.settle, DenseInputs)
def _settle(inputs: Any, x: Any, key: Any, count: Any, Q: Any, Q_row: Any, U: Any, W: Any) -> Any:
    begin, end = inputs.col_start[x], inputs.col_start[x + 1]
    return settle_columns(inputs.cols, begin, end, key, count, Q, Q_row, U, W)


@implements(protocol.mark_settled, DenseInputs)
def _mark_settled(inputs: Any, x: Any, Q: Any, Q_row: Any) -> None:
    for e in range(inputs.col_start[x], inputs.col_start[x + 1]):
        Q_row[inputs.cols[e]] = Q
    Q_row[inputs.features.shape[1] :] = Q  # weights that no list can show


# ---- building ----


@allocating_kernel
def spanning_rows(features: Any, offsets: Any, basis: Any, ranks: Any, active: Any) -> None:
    """For each list, candidates whose rows span all of its rows, by Gram and Schmidt with the farthest row next.

    Columns are scaled to length 1 first, so that a feature of small numbers is not lost beside one of large numbers.
    active[x, m]: whether some candidate of the list has feature m.
    """
    M = features.shape[1]
    most = 0
    for x in range(ranks.size):
        most = max(most, offsets[x + 1] - offsets[x])
    S = np.empty((most, 1))
    left = np.empty(most)  # squared distances from the span so far
    Q = np.empty((M, M))  # orthonormal rows that span it
    direction, scale, padded = np.empty((M, 1)), np.empty(M), np.empty(PADDED)
    for x in range(ranks.size):
        first, R = offsets[x], offsets[x + 1] - offsets[x]
        scale[:] = 0
        for j in range(R):
            for m in range(M):
                scale[m] += np.float64(features[first + j, m]) ** 2
        for m in range(M):
            active[x, m] = scale[m] > 0
            scale[m] = 1 / np.sqrt(scale[m]) if scale[m] > 0 else 0.0
        for j in range(R):
            left[j] = 0
            for m in range(M):
                left[j] += (features[first + j, m] * scale[m]) ** 2
        least = TOLERANCE**2 * left[:R].max()
        k = 0
        while k < min(R, M):
            far = np.argmax(left[:R])
            if left[far] <= least:
                break
            basis[x, k] = far
            q = Q[k]
            for m in range(M):
                q[m] = features[first + far, m] * scale[m]
            for _ in range(2):  # twice is enough (Kahan, Parlett)
                for i in range(k):
                    q -= (q * Q[i]).sum() * Q[i]
            q /= np.sqrt((q * q).sum())
            for m in range(M):
                direction[m, 0] = q[m] * scale[m]
            dots(features, first, first + R, direction, padded, S)
            for i in range(R):
                left[i] -= S[i, 0] * S[i, 0]
            left[far] = 0
            k += 1
        ranks[x] = k


def spreads(features: NDArray[np.float32], offsets: NDArray[np.int64]) -> NDArray[np.float64]:
    """The standard deviation of each feature within its list, over all lists; 1 for one that never varies."""
    sizes = np.diff(offsets)
    starts = offsets[:-1][sizes > 0]
    total = np.zeros(features.shape[1])
    for begin in range(0, starts.size, 256):  # some lists at a time: memory for all of them twice would be much
        some = starts[begin : begin + 256]
        last = starts[begin + 256] if begin + 256 < starts.size else offsets[-1]
        values, count = features[some[0] : last].astype(np.float64), np.diff(np.append(some, last))
        mean = np.add.reduceat(values, some - some[0]) / count[:, None]
        total += ((values - np.repeat(mean, count, axis=0)) ** 2).sum(axis=0)
    spread = np.sqrt(total / max(features.shape[0], 1))
    return np.where(spread > 0, spread, 1.0)


def dense_inputs(
    features: NDArray[np.float32], offsets: NDArray[np.int64], learn: bool = True, scaled: bool = False
) -> DenseInputs:
    """Inputs from their rows, which are not copied. What only a learner needs is left out where ``learn`` is false.

    ``scaled``: steps along C' D as if every feature had spread 1 within lists.
    """
    features, offsets = read_only(features), np.ascontiguousarray(offsets, np.int64)
    validation.array("features", features, "f", (None, None))
    validation.offsets("offsets", offsets, end=len(features))
    validation.finite("features", features)
    N, M = offsets.size - 1 if learn else 0, features.shape[1]
    ranks, basis, solve = np.zeros(N, np.int64), np.zeros((N, M), np.int32), np.zeros((N, M, M))
    active = np.zeros((N, M), np.bool_)
    if learn:
        spanning_rows(features, offsets, basis, ranks, active)
    col_start = np.concatenate([[0], np.cumsum(active.sum(axis=1))]).astype(np.int64)
    cols = np.nonzero(active)[1].astype(np.int32)
    for r in np.unique(ranks[ranks > 0]):
        lists = np.flatnonzero(ranks == r)
        C_B = features[offsets[lists, None] + basis[lists, :r]].astype(np.float64)
        Q, T = np.linalg.qr(np.swapaxes(C_B, 1, 2))
        solve[lists, :r] = np.linalg.solve(T, np.swapaxes(Q, 1, 2))  # C_B' = Q T, so C_B' T^-1 Q' u = Q Q' u = P u
    scale = 1 / spreads(features, offsets) if learn and scaled else np.zeros(0)
    scratch = DenseScratch(np.zeros((2, PADDED)))
    return DenseInputs(features, offsets, ranks, basis, solve, col_start, cols, scale, scratch)


def read_only(array: NDArray[np.float32]) -> NDArray[np.float32]:
    """A plain view that Numba types alike, whether the numbers lie in memory or in a file mapped for reading."""
    view = np.ascontiguousarray(array, np.float32).view(np.ndarray)
    view.flags.writeable = False
    return view
