"""Inputs of one row against the general sparse inputs (equal but for rounding) and against their laws."""

from __future__ import annotations

from types import SimpleNamespace

import kernel_calls
import numpy as np
import pytest
import twins
from scipy import stats
from scipy.sparse import csr_array

from sparsezo.errors import UsageError
from sparsezo.kernels import protocol
from sparsezo.kernels.inputs.rows import row_inputs
from sparsezo.kernels.inputs.sparse import sparse_inputs
from sparsezo.kernels.jit import allocating_kernel as kernel
from sparsezo.kernels.random import stream_key

N_COLS = 30
KEYS = [np.uint64(stream_key(3, stream)) for stream in range(4)]
NEAR = {"rtol": 2e-5, "atol": 2e-5}


def table(n, L, seed=0):
    return np.random.default_rng([seed, n, L]).normal(size=(n, L)).astype(np.float32)


@pytest.fixture(scope="module")
def both():
    """The same nine rows as RowInputs and as SparseInputs; one is empty, one has but zeros, columns are in no order."""
    rng = np.random.default_rng(1)
    sizes = [5, 1, 0, 12, 3, 4, 30, 8, 17]
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    columns = np.concatenate([rng.permutation(N_COLS)[:size] for size in sizes]).astype(np.int32)
    values = rng.normal(size=columns.size).astype(np.float32)
    values[indptr[4] : indptr[5]] = 0
    X = csr_array((values, columns, indptr.astype(np.int32)), shape=(len(sizes), N_COLS))
    general = sparse_inputs(np.arange(len(sizes) + 1), indptr.astype(np.int64), columns, values, N_COLS, 4)
    return SimpleNamespace(rows=row_inputs(X), sparse=general, X=X, N=len(sizes), most=max(sizes), sizes=sizes)


def pairs(call, both, *rooms):
    """call(inputs, x, *fresh rooms) for both kinds of inputs; yields x and the two lots of rooms."""
    for x in range(both.N):
        lots = []
        for inputs in (both.rows, both.sparse):
            lot = [room.copy() for room in rooms]
            returned = call(inputs, x, *lot)
            lots.append(lot if returned is None else [*lot, returned])
        yield x, *lots


def test_nothing_is_copied(both):
    assert np.shares_memory(both.rows.columns, both.X.indices)
    assert np.shares_memory(both.rows.values, both.X.data)
    assert both.rows.indptr.dtype == np.int64
    np.testing.assert_allclose(both.rows.norm, np.linalg.norm(both.X.toarray(), axis=1), rtol=1e-6)


@pytest.mark.parametrize(
    ("columns", "values"),
    [([0, 1, 0], [1, 1, 1]), ([0, 5], [1, 1]), ([0, -1], [1, 1]), ([0, 1], [1, np.nan])],
)
def test_wrong_rows_are_refused(columns, values):
    X = SimpleNamespace(
        indptr=np.array([0, 0, len(columns)]), indices=np.array(columns), data=np.array(values), shape=(2, 5)
    )
    with pytest.raises(UsageError, match="row 1 names a column twice"):
        row_inputs(X)


@pytest.mark.parametrize("L", [2, 4, 9])
def test_scores_are_those_of_sparse_inputs_to_the_bit(both, L):
    W = table(N_COLS, L)
    for x, (S,), (T,) in pairs(lambda inputs, x, S: kernel_calls.scores(inputs, x, W, S), both, table(1, L, 1)):
        np.testing.assert_array_equal(S, T)
        np.testing.assert_allclose(S[0], both.X.toarray()[x] @ W, **NEAR)
        assert kernel_calls.rows(both.rows, x) == 1


def test_expect_changes_nothing(both):
    W = table(N_COLS, 4)
    for x in range(both.N):
        kernel_calls.expect(both.rows, x, both.N - 1 - x, W)
    np.testing.assert_array_equal(W, table(N_COLS, 4))


@pytest.mark.parametrize("L", [3, 4])
def test_draw_spread_and_see(both, L):
    Z = np.full((both.most, L), np.nan, np.float32)
    for _, (a,), (b,) in pairs(lambda inputs, x, Z: kernel_calls.draw(inputs, x, KEYS[1], 5, Z), both, Z):
        np.testing.assert_array_equal(a, b)
        assert np.isnan(a[1:]).all()
    Z = table(both.most, L)
    out = np.full((1, L), np.nan, np.float32)
    for operation in (kernel_calls.spread, kernel_calls.see):
        for _, (a,), (b,) in pairs(lambda inputs, x, out, do=operation: do(inputs, x, Z, out), both, out):
            np.testing.assert_allclose(a, b, **NEAR)


def test_v_has_the_norm_of_the_row_as_its_spread(both):
    """V / ||x|| is standard normal, over all rows that have a norm; 5% of variance would be 9 standard errors."""
    Z, V, seen = np.zeros((both.most, 4), np.float32), np.zeros((1, 4), np.float32), []
    norms = np.linalg.norm(both.X.toarray().astype(float), axis=1)
    for step in range(3000):
        for x in np.flatnonzero(norms):
            kernel_calls.draw(both.rows, x, KEYS[1], step * both.N + x, Z)
            kernel_calls.spread(both.rows, x, Z, V)
            seen.append(V[0] / norms[x])
    seen = np.concatenate(seen).astype(float)
    assert abs((seen**2).mean() - 1) < 6 * np.sqrt(2 / seen.size)
    assert stats.kstest(seen, "norm").pvalue > 1e-7


@pytest.mark.parametrize("L", [3, 4])
def test_complete(both, L):
    rooms = (
        table(both.most, L, 2),
        np.zeros((1, L), np.float32),
        np.zeros((both.most, L), np.float32),
        np.zeros(L, "f4"),
    )
    for x, (_, D, U, _), (_, E, T, _) in pairs(
        lambda inputs, x, *rooms: kernel_calls.complete(inputs, x, KEYS[2], 7, *rooms), both, *rooms
    ):
        np.testing.assert_allclose(D, E, **NEAR)
        np.testing.assert_array_equal(U, T)
        # u = U + x' D gives back the V that Z stood for: x u = ||x|| Z
        row = both.X.toarray()[x]
        u = np.outer(row, D[0])
        begin, end = both.rows.indptr[x : x + 2]
        u[both.rows.columns[begin:end]] += U[: end - begin]
        np.testing.assert_allclose(row @ u, np.linalg.norm(row) * rooms[0][0], **NEAR)


@pytest.mark.parametrize("L", [3, 4])
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("with_q", [False, True])
def test_move(both, L, whole, with_q):
    c, h = -0.21, 0.05
    D, U, W = table(1, L, 4), table(both.most, L, 5), table(N_COLS, L)
    q = np.abs(table(N_COLS if with_q else 0, L, 6))
    for x, (_, moved, moved_q), (_, general, general_q) in pairs(
        lambda inputs, x, U, W, q: kernel_calls.move(inputs, x, c, h, D, U, whole, W, q), both, U, W, q
    ):
        np.testing.assert_allclose(moved, general, **NEAR)
        np.testing.assert_allclose(moved_q, general_q, **NEAR)
        cols = twins.active(both.sparse, x)
        expected, _ = twins.move(
            both.X.toarray()[[x]], cols, c, h, D, U[: len(cols)] if whole else None, W, q if with_q else None
        )
        np.testing.assert_allclose(moved, expected, **NEAR)


def test_fold_and_awake_are_those_of_sparse_inputs(both):
    L, Q = 4, 4.0
    rooms = np.linspace(0, Q, N_COLS), np.zeros((both.most, L), np.float32), table(N_COLS, L)
    for x, a, b in pairs(
        lambda inputs, x, Q_row, U, W: kernel_calls.fold(inputs, x, KEYS[3], 9, Q, Q_row, U, W), both, *rooms
    ):
        for mine, general in zip(a, b, strict=True):
            np.testing.assert_array_equal(mine, general)
        assert a[3] == (10 if both.sizes[x] else 9)  # the last is the number of folds
    for _, (a,), (b,) in pairs(lambda inputs, x, Q_row: kernel_calls.awake(inputs, x, 7.5, Q_row), both, rooms[0]):
        np.testing.assert_array_equal(a, b)


def test_fold_draws_nothing_where_nothing_is_owed(both):
    W = table(N_COLS, 4)
    assert kernel_calls.fold(both.rows, 0, KEYS[3], 9, 2.5, np.full(N_COLS, 2.5), np.zeros((30, 4), "f4"), W) == 9
    np.testing.assert_array_equal(W, table(N_COLS, 4))


@kernel
def directions(inputs, whole, keys, Z, D, U, row, W, q, out):
    """out[step] = u (whole) or E[u given V] of input 0, as ``move`` adds it to weights of zero."""
    for step in range(out.shape[0]):
        protocol.draw(inputs, 0, keys[0], step, Z)
        if whole:
            protocol.draw_complement(inputs, 0, keys[1], step, Z, D, U, row)
        else:
            protocol.project(inputs, 0, Z, D)
        W[:] = 0
        protocol.move(inputs, 0, 1.0, 1.0, D, U, whole, W, q)
        out[step] = W


@pytest.mark.parametrize("whole", [True, False])
def test_law_of_the_direction(whole):
    """active: covariance I. score: the projector x x' / ||x||^2. Every entry within 5 standard errors."""
    x, L, n = np.array([0.5, -2.0, 1.0]), 2, 100_000
    inputs = row_inputs(csr_array(x[None].astype(np.float32)))
    rooms = [np.zeros(shape, np.float32) for shape in ((3, L), (1, L), (3, L), (L,), (3, L), (0, L))]
    out = np.empty((n, 3, L), np.float32)
    directions(inputs, whole, np.array(KEYS[1:3]), *rooms, out)
    u = out.reshape(n, 3 * L).astype(float)
    law = np.eye(3 * L) if whole else np.kron(np.outer(x, x) / (x @ x), np.eye(L))
    variance = np.outer(np.diag(law), np.diag(law)) + law**2  # of a product of two normals
    assert (np.abs(u.mean(axis=0)) < 5 * np.sqrt(np.diag(law) / n)).all()
    assert (np.abs(u.T @ u / n - law) < 5 * np.sqrt(variance / n) + 1e-6).all()
