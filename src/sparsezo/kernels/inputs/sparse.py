"""Sparse inputs: gather S = C W, perturb in score space, scatter W += c C' D (design 1 and 2).

Nearly all of it is one operation, ``combine``: a weighted sum of rows of a table. C W, K Z and K^-T Z are of that form.

G has R^2 numbers and its factor costs R^3, which is nothing for a sentence and too much for a document. So an input of
more than ``FACTORED_ROWS`` rows is not factored: u itself is drawn on its active weights, V = C u, and the part of u
that the scores see, C' D, is found by conjugate gradients. The laws are the same, at a cost that is linear in R.

Rows may have dense columns, too (vectors of tokens), kept as the array that they come as: as entries they would take
three times its memory.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsezo import validation
from sparsezo.kernels import protocol
from sparsezo.kernels.inputs.columns import in_use
from sparsezo.kernels.inputs.products import (
    adagrad_rows,
    add_rows,
    combine,
    dense_dot,
    gather,
    lower_triangle,
    scatter,
    upper_triangle,
    weight,
)
from sparsezo.kernels.inputs.projection import SparseScratch, project_onto_rows
from sparsezo.kernels.jit import allocating_kernel, kernel
from sparsezo.kernels.lazy import settle_columns
from sparsezo.kernels.protocol import implements
from sparsezo.kernels.random import fill_normals
from sparsezo.kernels.simd import prefetch_element

FACTORED_ROWS = 512  # about where drawing u costs less than multiplying by K
PIECE = 2**20  # entries whose slots are held at a time, where K alone needs them
_ONE, _ZERO = np.float32(1), np.float32(0)
_FIRST = np.int64(0)  # slot; no literal, for which the products would be compiled once more


class SparseInputs(NamedTuple):
    """N inputs; input x has rows row_start[x]:row_start[x+1] and distinct columns col_start[x]:col_start[x+1].

    An entry of C knows its column (a feature's number) and its slot (that column's place among x's distinct ones).
    values None means that all are 1. dense None means that there are no dense columns; otherwise input x's rows
    from its first on have dense[dense_start[x]:dense_start[x+1]], the columns dense_column and those after it, which
    are its first slots. G = C C' = K K' once per input: ``chol`` holds K by rows (row i: columns 0..i),
    ``inverse`` holds K^-T by rows (row i: columns i..R-1). A long input has neither.

    Slots, cols, chol and inverse are empty until a learner is there that reads them (``ready``).
    """

    row_start: NDArray[np.int64]  # N + 1
    row_ptr: NDArray[np.int64]  # rows + 1
    columns: NDArray[np.int32]  # one an entry
    slots: NDArray[np.int32]  # one an entry
    values: NDArray[np.float32] | None  # one an entry
    col_start: NDArray[np.int64]  # N + 1
    cols: NDArray[np.int32]  # the distinct columns of each input
    chol_start: NDArray[np.int64]  # N + 1
    chol: NDArray[np.float32]
    inverse: NDArray[np.float32]
    dense: NDArray[np.float32] | None  # rows x d
    dense_start: NDArray[np.int64]  # N + 1; all 0 without dense columns
    dense_column: int
    scratch: SparseScratch

    def check(self, problem: Any) -> None:
        """``sparse_inputs`` has looked at the arrays; whether the problem has room for them."""
        validation.offsets("row_start", self.row_start, n=len(problem))
        validation.below("columns", self.columns, problem.n_features)
        if self.dense is not None:
            validation.at_least("n_features", problem.n_features, self.dense_column + self.dense.shape[1])
        validation.at_least("max_rows", problem.max_rows, int(np.diff(self.row_start).max(initial=0)))
        validation.at_least("max_columns", problem.max_columns, int(np.diff(self.col_start).max(initial=0)))

    def parts(self) -> dict[str, Any]:
        """What it is known by: C, of which all else is made."""
        names = ("row_start", "row_ptr", "columns", "values")
        dense = () if self.dense is None else ("dense", "dense_start", "dense_column")
        return {name: getattr(self, name) for name in (*names, *dense)}

    def ready(self, *, factors: bool, places: bool) -> SparseInputs:
        """With what a learner's steps read beside C. ``factors``: K and K^-T, for rules that perturb. ``places``: slots
        and distinct columns, for steps that are not along C' D alone: of active and all, and Adagrad's."""
        made = self
        if factors and self.chol.size < self.chol_start[-1]:
            chol, inverse = (np.empty(int(self.chol_start[-1]), np.float32) for _ in range(2))
            _factor(self, chol, inverse, None)
            made = made._replace(chol=chol, inverse=inverse)
        if (places or (factors and self.scratch.residual is not None)) and self.cols.size < self.col_start[-1]:
            slots, cols = _distinct_columns(self)
            made = made._replace(slots=slots, cols=cols)
        return made

    def dimensions(self) -> NDArray[np.int64]:
        """rank(C) of every input; where K would be too large to tell, the most that it can be."""
        most: NDArray[np.int64] = np.minimum(np.diff(self.row_start), np.diff(self.col_start))
        if self.chol.size < self.chol_start[-1]:
            _factor(self, None, None, most)
        else:
            _pivots(self.row_start, self.chol_start, self.chol, most)
        return most

    def sizes(self) -> tuple[float, float]:
        """(sum of |x|, sum of x^2) over all entries and dense columns."""
        entries = (np.ones(0) if self.values is None else self.values, np.ones(0) if self.dense is None else self.dense)
        ones = float(self.columns.size) if self.values is None else 0.0
        absolute, square = (sum(float(f(x).sum(dtype=np.float64)) for x in entries) for f in (np.abs, np.square))
        return ones + absolute, ones + square


@kernel
def _is_factored(inputs: Any, x: Any) -> Any:
    return inputs.chol_start[x + 1] > inputs.chol_start[x]


@implements(protocol.rows, SparseInputs)
def _rows(inputs: Any, x: Any) -> Any:
    return inputs.row_start[x + 1] - inputs.row_start[x]


@implements(protocol.scores, SparseInputs)
def _scores(inputs: Any, x: Any, W: Any, S: Any) -> None:
    gather(inputs, x, inputs.columns, inputs.dense_column, W, S)


@implements(protocol.prefetch, SparseInputs)
def _prefetch(inputs: Any, soon: Any, later: Any, W: Any) -> None:
    """C and K of ``later``, and (as its C is here by now) the weights of ``soon``: 64 bytes, 16 numbers, at a time."""
    L = W.shape[1]
    for e in range(inputs.row_ptr[inputs.row_start[soon]], inputs.row_ptr[inputs.row_start[soon + 1]]):
        prefetch_element(W, np.int64(inputs.columns[e]) * L)
        prefetch_element(W, np.int64(inputs.columns[e]) * L + L - 1)
    for e in range(inputs.row_ptr[inputs.row_start[later]], inputs.row_ptr[inputs.row_start[later + 1]], 16):
        prefetch_element(inputs.columns, e)
    if inputs.chol.size > 0:
        for j in range(inputs.chol_start[later], inputs.chol_start[later + 1], 16):
            prefetch_element(inputs.chol, j)


@implements(protocol.draw, SparseInputs)
def _draw(inputs: Any, x: Any, key: Any, step: Any, Z: Any) -> None:
    """Z of K Z, one a row of C; or u itself, one a column."""
    normals = protocol.rows(inputs, x) if _is_factored(inputs, x) else inputs.col_start[x + 1] - inputs.col_start[x]
    fill_normals(key, step, Z.reshape(-1)[: normals * Z.shape[1]])


@implements(protocol.scores_with, SparseInputs)
def _scores_with(inputs: Any, x: Any, W: Any, Z: Any, S: Any, V: Any) -> None:
    protocol.scores(inputs, x, W, S)
    if not _is_factored(inputs, x):
        gather(inputs, x, inputs.slots, _FIRST, Z, V)  # V = C u
        return
    lower_triangle(inputs.chol, inputs.chol_start[x], protocol.rows(inputs, x), Z, V)  # V = K Z


@implements(protocol.project, SparseInputs)
def _project(inputs: Any, x: Any, Z: Any, D: Any) -> None:
    if not _is_factored(inputs, x):
        project_onto_rows(inputs.scratch.residual, inputs, x, Z, D)
        return
    upper_triangle(inputs.inverse, inputs.chol_start[x], protocol.rows(inputs, x), Z, D)  # D = K^-T Z


@kernel
def _prefetch_places(inputs: Any, x: Any) -> None:
    """The entries' slots and the distinct columns: only a step that moves the weights needs them."""
    for e in range(inputs.row_ptr[inputs.row_start[x]], inputs.row_ptr[inputs.row_start[x + 1]], 16):
        prefetch_element(inputs.slots, e)
    for m in range(inputs.col_start[x], inputs.col_start[x + 1], 16):
        prefetch_element(inputs.cols, m)


@implements(protocol.draw_complement, SparseInputs)
def _draw_complement(inputs: Any, x: Any, key: Any, step: Any, Z: Any, D: Any, U: Any, row: Any) -> None:
    """u = U0 + C' G^-1 (V - C U0) = U0 + C' K^-T (Z - K^-1 C U0); U0 is left in U, Z is overwritten."""
    L = Z.shape[1]
    if not _is_factored(inputs, x):  # nothing is left to draw
        for m in range(inputs.col_start[x + 1] - inputs.col_start[x]):
            for l in range(L):
                U[m, l] = Z[m, l]
        D[: protocol.rows(inputs, x)] = 0
        return
    _prefetch_places(inputs, x)
    for j in range(inputs.chol_start[x], inputs.chol_start[x + 1], 16):
        prefetch_element(inputs.inverse, j)
    fill_normals(key, step, U.reshape(-1)[: (inputs.col_start[x + 1] - inputs.col_start[x]) * L])
    gather(inputs, x, inputs.slots, _FIRST, U, D)
    first = inputs.chol_start[x]
    for i in range(protocol.rows(inputs, x)):
        pivot = inputs.chol[first + i]
        d, z = D[i], Z[i]
        combine(D, None, inputs.chol, first, first + i, row)  # D[i] = (K^-1 C U0)[i], from those above it
        # a zero pivot: this row follows from earlier ones, and the solves pass it over (design 2.1)
        scale = _ONE / pivot if pivot != 0 else _ZERO
        for l in range(L):
            d[l] = (d[l] - row[l]) * scale
            z[l] -= d[l]
        first += i + 1
    protocol.project(inputs, x, Z, D)


@kernel
def _prefetch_sums(inputs: Any, x: Any, q: Any) -> None:
    """What a step of Adagrad touches beside W, which was asked for in advance. q's rows by the entries' columns, which
    are near already: the distinct columns themselves are not, and come meanwhile.
    """
    L = q.shape[1]
    _prefetch_places(inputs, x)
    for e in range(inputs.row_ptr[inputs.row_start[x]], inputs.row_ptr[inputs.row_start[x + 1]]):
        prefetch_element(q, np.int64(inputs.columns[e]) * L)
        prefetch_element(q, np.int64(inputs.columns[e]) * L + L - 1)


@implements(protocol.move, SparseInputs)
def _move(inputs: Any, x: Any, c: Any, h: Any, D: Any, U: Any, whole: Any, W: Any, q: Any) -> None:
    c, h = W.dtype.type(c), W.dtype.type(h)
    begin, end = inputs.col_start[x], inputs.col_start[x + 1]
    if q.size == 0:
        if whole:
            add_rows(c, U, inputs.cols, begin, end, W)
        scatter(inputs, x, inputs.columns, inputs.dense_column, c, D, W)
        return
    _prefetch_sums(inputs, x, q)
    if not whole:
        U[: end - begin] = 0
    scatter(
        inputs, x, inputs.slots, _FIRST, _ONE, D, U
    )  # Adagrad squares the whole direction of a weight, so sum it first
    adagrad_rows(c, h, U, inputs.cols, begin, end, W, q)


@implements(protocol.settle, SparseInputs)
def _settle(inputs: Any, x: Any, key: Any, count: Any, Q: Any, Q_row: Any, U: Any, W: Any) -> Any:
    begin, end = inputs.col_start[x], inputs.col_start[x + 1]
    return settle_columns(inputs.cols, begin, end, key, count, Q, Q_row, U, W)


@implements(protocol.mark_settled, SparseInputs)
def _mark_settled(inputs: Any, x: Any, Q: Any, Q_row: Any) -> None:
    for m in range(inputs.col_start[x], inputs.col_start[x + 1]):
        Q_row[inputs.cols[m]] = Q


@allocating_kernel
def factor(
    row_start: Any,
    row_ptr: Any,
    slots: Any,
    values: Any,
    dense: Any,
    dense_start: Any,
    col_start: Any,
    chol_start: Any,
    chol: Any,
    inverse: Any,
) -> None:
    """K and, where there is room for it, K^-T of every input that has room for them, G = C C' = K K', packed as
    SparseInputs says; in float64."""
    N = row_start.size - 1
    most, widest = 0, 0
    for x in range(N):
        if chol_start[x + 1] == chol_start[x]:
            continue
        most = max(most, row_start[x + 1] - row_start[x])
        widest = max(widest, col_start[x + 1] - col_start[x])
    G, T = np.zeros((most, most)), np.zeros((most, most))
    whole = np.zeros(widest)  # one row of C's entries, by slot
    for x in range(N):
        if chol_start[x + 1] == chol_start[x]:
            continue
        start = row_start[x]
        R = row_start[x + 1] - start
        for i in range(R):
            for e in range(row_ptr[start + i], row_ptr[start + i + 1]):
                whole[slots[e]] += weight(values, e)
            for j in range(i, R):
                dot = dense_dot(dense, dense_start[x], dense_start[x + 1], i, j)
                for e in range(row_ptr[start + j], row_ptr[start + j + 1]):
                    dot += weight(values, e) * whole[slots[e]]
                G[j, i] = dot
            for e in range(row_ptr[start + i], row_ptr[start + i + 1]):
                whole[slots[e]] = 0
        _cholesky(G, R)
        first = chol_start[x]
        for i in range(R):
            for j in range(i + 1):
                chol[first] = G[i, j]
                first += 1
        if inverse.size == 0:
            continue
        _invert(G, R, T)
        first = chol_start[x]
        for i in range(R):
            for j in range(i, R):
                inverse[first] = T[j, i]
                first += 1


@kernel
def _cholesky(G: Any, R: Any) -> None:
    """K over G, lower triangle. A pivot that is zero but for rounding gets a zero column; no jitter, so no bias."""
    for j in range(R):
        pivot = G[j, j]
        tiny = 1e-10 * pivot
        for k in range(j):
            pivot -= G[j, k] * G[j, k]
        root = np.sqrt(pivot) if pivot > tiny else 0.0
        G[j, j] = root
        for i in range(j + 1, R):
            rest = G[i, j]
            for k in range(j):
                rest -= G[i, k] * G[j, k]
            G[i, j] = rest / root if root > 0 else 0.0


@kernel
def _invert(K: Any, R: Any, T: Any) -> None:
    """T = K^-1, lower triangle; rows and columns of zero pivots are zero."""
    for j in range(R):
        for i in range(j, R):
            if K[i, i] == 0 or K[j, j] == 0:
                T[i, j] = 0
                continue
            rest = 1.0 if i == j else 0.0
            for k in range(j, i):
                rest -= K[i, k] * T[k, j]
            T[i, j] = rest / K[i, i]


@kernel
def distinct(row_start: Any, row_ptr: Any, columns: Any, slot: Any, col_start: Any, slots: Any, cols: Any) -> None:
    """Count the distinct columns of each input into col_start, and where there is room for them fill slots and cols, in
    order of first use. slot: -1 for each column, now and when this returns."""
    n = 0
    for x in range(row_start.size - 1):
        begin = n
        first, last = row_ptr[row_start[x]], row_ptr[row_start[x + 1]]
        for e in range(first, last):
            col = columns[e]
            if slot[col] < 0:
                slot[col] = n - begin
                if cols.size > 0:
                    cols[n] = col
                n += 1
            if slots.size > 0:
                slots[e] = slot[col]
        for e in range(first, last):
            slot[columns[e]] = -1
        col_start[x + 1] = n


@kernel
def _pivots(row_start: Any, chol_start: Any, chol: Any, ranks: Any) -> None:
    """ranks[x] = the pivots of K that are not zero, where there is a K."""
    for x in range(ranks.size):
        place = chol_start[x]
        if place == chol_start[x + 1]:
            continue
        ranks[x] = 0
        for i in range(row_start[x + 1] - row_start[x]):
            ranks[x] += chol[place + i] != 0
            place += i + 1


_NO_SLOTS, _NO_FACTOR = np.zeros(0, np.int32), np.zeros(0, np.float32)


def _factor(
    inputs: SparseInputs,
    chol: NDArray[np.float32] | None,
    inverse: NDArray[np.float32] | None,
    ranks: NDArray[np.int64] | None,
) -> None:
    """Fill K and K^-T of all inputs, or their ranks, piece by piece."""
    names, columns = in_use(inputs.columns, inputs.dense_column)
    slot = np.full(inputs.dense_column if names is None else names.size, -1, np.int32)
    entry = inputs.row_ptr[inputs.row_start]  # where each input's entries begin
    N, a = len(entry) - 1, 0
    while a < N:
        b = max(a + 1, int(np.searchsorted(entry, entry[a] + PIECE, side="right")) - 1)
        rows, entries = (slice(int(at[a]), int(at[b])) for at in (inputs.row_start, entry))
        row_start, chol_start = (at[a : b + 1] - at[a] for at in (inputs.row_start, inputs.chol_start))
        row_ptr = inputs.row_ptr[rows.start : rows.stop + 1] - inputs.row_ptr[rows.start]
        slots, col_start = np.empty(entries.stop - entries.start, np.int32), np.zeros(b - a + 1, np.int64)
        distinct(row_start, row_ptr, columns[entries], slot, col_start, slots, _NO_SLOTS)
        values = None if inputs.values is None else inputs.values[entries]
        of_dense = (inputs.dense, inputs.dense_start[a : b + 1])
        place = slice(int(inputs.chol_start[a]), int(inputs.chol_start[b]))
        K = np.empty(place.stop - place.start, np.float32) if chol is None else chol[place]
        rest = _NO_FACTOR if inverse is None else inverse[place]
        factor(row_start, row_ptr, slots, values, *of_dense, col_start, chol_start, K, rest)
        if ranks is not None:
            _pivots(row_start, chol_start, K, ranks[a:b])
        a = b


def _distinct_columns(inputs: SparseInputs) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """(slots, cols), the dense columns before those of each input."""
    names, columns = in_use(inputs.columns, inputs.dense_column)
    slot = np.full(inputs.dense_column if names is None else names.size, -1, np.int32)
    N, d = len(inputs.row_start) - 1, 0 if inputs.dense is None else inputs.dense.shape[1]
    slots, cols = np.empty(columns.size, np.int32), np.empty(int(inputs.col_start[-1]) - N * d, np.int32)
    distinct(inputs.row_start, inputs.row_ptr, columns, slot, np.zeros(N + 1, np.int64), slots, cols)
    cols = cols if names is None else names[cols]
    if d == 0:
        return slots, cols
    made = np.empty(int(inputs.col_start[-1]), np.int32)
    own = np.diff(inputs.col_start) - d
    made[np.arange(len(cols)) + d * (1 + np.repeat(np.arange(N), own))] = cols
    made[inputs.col_start[:-1, None] + np.arange(d)] = inputs.dense_column + np.arange(d, dtype=np.int32)
    slots += np.int32(d)
    return slots, made


def sparse_inputs(
    row_start: NDArray[np.int64],
    row_ptr: NDArray[np.int64],
    columns: NDArray[np.int32],
    values: NDArray[np.float32] | None,
    n_cols: int,
    n_labels: int,
    learn: bool = True,
    factor_up_to: int = FACTORED_ROWS,
    dense: NDArray[np.float32] | None = None,
    dense_start: NDArray[np.int64] | None = None,
) -> SparseInputs:
    """Inputs from their rows. Where ``learn`` is false they are only decoded, and nothing is known but C.

    ``factor_up_to``: inputs with more rows are learned from without K. ``dense``: the last columns of the n_cols, of
    the first rows of each input, where ``dense_start`` says; it is not copied where it is as it should be.
    """
    validation.offsets("row_start", row_start, end=row_ptr.size - 1)
    validation.offsets("row_ptr", row_ptr, end=columns.size)
    validation.array("columns", columns, "iu", (None,))
    if values is not None:
        validation.array("values", values, "f", (columns.size,))
        validation.finite("values", values)
    R = np.diff(row_start)
    if dense is None or dense_start is None:
        dense, dense_start = None, np.zeros(len(row_start), np.int64)
    else:
        dense = np.require(dense, np.float32, ("C", "W"))
        validation.array("dense", dense, "f", (None, None))
        validation.finite("dense", dense)
        validation.offsets("dense_start", dense_start, n=len(R), end=len(dense))
        validation.at_least("rows", int((R - np.diff(dense_start)).min(initial=0)), 0)
    d = 0 if dense is None else dense.shape[1]
    validation.below("columns", columns, n_cols - d)
    long = factor_up_to < R
    chol_start = np.concatenate([[0], np.cumsum(np.where(long, 0, R * (R + 1) // 2))]).astype(np.int64)
    col_start = np.zeros(len(row_start), np.int64)
    rows = wide = 0
    if learn:
        names, numbers = in_use(columns, n_cols)
        slot = np.full(n_cols if names is None else names.size, -1, np.int32)
        distinct(row_start, row_ptr, numbers, slot, col_start, _NO_SLOTS, _NO_SLOTS)
        col_start += d * np.arange(len(row_start))
        rows, wide = int(R[long].max(initial=0)), int(np.diff(col_start)[long].max(initial=0))
    sizes = ((wide, n_labels), (wide, n_labels), (rows, n_labels), (rows, n_labels))
    room = (np.zeros(size, np.float32) if rows else None for size in sizes)
    scratch = SparseScratch(np.zeros(n_labels, np.float32), *room)
    return SparseInputs(
        row_start=row_start,
        row_ptr=row_ptr,
        columns=columns,
        slots=_NO_SLOTS,
        values=values,
        col_start=col_start,
        cols=_NO_SLOTS,
        chol_start=chol_start,
        chol=_NO_FACTOR,
        inverse=_NO_FACTOR,
        dense=dense,
        dense_start=dense_start,
        dense_column=n_cols - d,
        scratch=scratch,
    )
