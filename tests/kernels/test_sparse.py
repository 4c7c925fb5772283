"""Sparse inputs: gather, scatter, factors, the two parts of u, the move and ALL's folding, against dense NumPy."""

from __future__ import annotations

from types import SimpleNamespace

import kernel_calls
import numpy as np
import pytest
import twins
from scipy import stats

from sparsezo.kernels import lazy, random
from sparsezo.kernels.inputs import products, sparse

N_COLS = 30
KEYS = np.array([random.stream_key(11, stream) for stream in range(6)], np.uint64)


def build(matrices, with_values, n_labels, n_cols=N_COLS, **options):
    """SparseInputs from lists of rows, each row a list of (column, value)."""
    rows = [row for matrix in matrices for row in matrix]
    entries = [entry for row in rows for entry in row]
    values = np.array([v for _, v in entries], np.float32) if with_values else None
    return sparse.sparse_inputs(
        np.concatenate([[0], np.cumsum([len(m) for m in matrices])]).astype(np.int64),
        np.concatenate([[0], np.cumsum([len(r) for r in rows])]).astype(np.int64),
        np.array([c for c, _ in entries], np.int32),
        values,
        n_cols,
        n_labels,
        **options,
    )


def random_matrices(with_values):
    """Odd ones among them: repeated columns, equal rows, an empty row, dependent rows, more rows than columns."""
    rng = np.random.default_rng(3)

    def row(n):
        value = rng.normal(0, 1, n) if with_values else np.ones(n)
        return list(zip(rng.integers(0, N_COLS, n).tolist(), value.tolist(), strict=True))

    matrices = [[row(rng.integers(1, 9)) for _ in range(rng.integers(1, 8))] for _ in range(12)]
    a, b = row(5), row(4)
    matrices += [
        [a, b, a],  # equal rows
        [a, [], b],  # an empty row
        [[], a],
        [a, b, a + b, row(3)],  # row 2 = row 0 + row 1
        [a, a, a, b, b],
        [a + a, row(6), a],  # every column twice; parallel rows
        [[(2, 1.0), (5, 1.0)], [(2, 1.0)], [(5, 1.0)], [(2, 1.0), (2, 1.0), (5, 1.0)]],  # four rows, two columns
        [row(7)],
        [[(4, 1.0)]],
        [[]],
    ]
    return matrices


def case(with_values, L):
    inputs = build(random_matrices(with_values), with_values, L)
    R = int(np.diff(inputs.row_start).max())
    M = int(np.diff(inputs.col_start).max())

    def room(n):
        return np.full((n, L), np.nan, np.float32)  # scratch may hold anything

    return SimpleNamespace(inputs=inputs, N=len(inputs.row_start) - 1, L=L, R=R, M=M, room=room)


@pytest.fixture(scope="module", params=[(False, 9), (True, 4), (True, 3)], ids=["ones-9", "values-4", "values-3"])
def some(request):
    return case(*request.param)


def table(rows, L, seed=0):
    return np.random.default_rng(seed).standard_normal((rows, L)).astype(np.float32)


def each(some):
    """(x, R, C, the distinct columns) of every input."""
    for x in range(some.N):
        C = twins.dense(some.inputs, x, N_COLS)
        yield x, len(C), C, twins.active(some.inputs, x)


def unpack(inputs, x, R):
    """K (lower) and K^-T (upper) of input x."""
    first, last = inputs.chol_start[x : x + 2]
    K, upper = np.zeros((R, R)), np.zeros((R, R))
    K[np.tril_indices(R)] = inputs.chol[first:last]
    upper[np.triu_indices(R)] = inputs.inverse[first:last]
    return K, upper


def test_gather_is_c_times_w(some):
    W = table(N_COLS, some.L)
    for x, R, C, _ in each(some):
        S = some.room(some.R)
        kernel_calls.scores(some.inputs, x, W, S)
        np.testing.assert_allclose(S[:R], C @ W, rtol=1e-5, atol=1e-5)
        assert np.isnan(S[R:]).all()
        assert kernel_calls.rows(some.inputs, x) == R


def test_gather_is_the_plain_loop_bit_for_bit(some):
    W = table(N_COLS, some.L)
    inputs = some.inputs
    for x, R, _, _ in each(some):
        S = some.room(some.R)
        products.gather(inputs, x, inputs.columns, W, S)
        for i in range(R):
            first, last = inputs.row_ptr[inputs.row_start[x] + i : inputs.row_start[x] + i + 2]
            np.testing.assert_array_equal(S[i], twins.combine(W, inputs.columns, inputs.values, first, last, some.L))


def test_scatter_adds_c_times_ct_d(some):
    W, D, c = table(N_COLS, some.L), table(some.R, some.L, 1), np.float32(-0.37)
    for x, R, C, _ in each(some):
        moved = W.copy()
        products.scatter(some.inputs, x, some.inputs.columns, c, D, moved)
        np.testing.assert_allclose(moved, W + float(c) * C.T @ D[:R], rtol=1e-5, atol=1e-5)


def test_expect_changes_nothing(some):
    W = table(N_COLS, some.L)
    before = [a.copy() for a in (W, some.inputs.columns, some.inputs.chol)]
    for x in range(some.N):
        kernel_calls.expect(some.inputs, x, some.N - 1 - x, W)
    for a, b in zip(before, (W, some.inputs.columns, some.inputs.chol), strict=True):
        np.testing.assert_array_equal(a, b)


def test_distinct_columns(some):
    inputs = some.inputs
    for x, _, _, cols in each(some):
        assert inputs.cols[inputs.col_start[x] : inputs.col_start[x + 1]].tolist() == cols
        for e in range(inputs.row_ptr[inputs.row_start[x]], inputs.row_ptr[inputs.row_start[x + 1]]):
            assert cols[inputs.slots[e]] == inputs.columns[e]


def test_factor(some):
    for x, R, C, _ in each(some):
        K, upper = unpack(some.inputs, x, R)
        np.testing.assert_allclose(K @ K.T, C @ C.T, rtol=1e-5, atol=1e-5)
        pivots = np.diag(K) > 0
        assert pivots.sum() == (np.linalg.matrix_rank(C) if C.any() else 0)
        assert not K[:, ~pivots].any()
        assert not upper[:, ~pivots].any()
        assert not upper[~pivots].any()
        # on the independent rows it is the inverse; K^-T K' = I (entries up to the condition of G)
        np.testing.assert_allclose(
            (upper @ K.T)[np.ix_(pivots, pivots)], np.eye(pivots.sum()), atol=1e-5 * max(1, np.abs(upper).max())
        )


def test_factor_of_nearly_dependent_rows_keeps_them_apart():
    rows = [[(0, 1.0), (1, 1.0)], [(0, 1.0), (1, 1.001)], [(0, 1.0), (1, 1.0)]]
    inputs = build([rows], with_values=True, n_labels=1)
    K, _ = unpack(inputs, 0, 3)
    assert (np.diag(K) > 0).tolist() == [True, True, False]


def test_draw_fills_what_the_input_needs(some):
    for x, R, _, _ in each(some):
        Z = some.room(some.R)
        kernel_calls.draw(some.inputs, x, KEYS[1], 5, Z)
        twin = twins.normals(int(KEYS[1]), 5, R * some.L).reshape(R, some.L)
        np.testing.assert_allclose(Z[:R], twin, rtol=0, atol=3e-6)
        assert np.isnan(Z[R:]).all()


def test_spread_is_k_times_z(some):
    Z = table(some.R, some.L, 2)
    for x, R, _, _ in each(some):
        V = some.room(some.R)
        kernel_calls.spread(some.inputs, x, Z, V)
        np.testing.assert_allclose(V[:R], unpack(some.inputs, x, R)[0] @ Z[:R], rtol=1e-5, atol=1e-5)


def test_scores_with_is_scores_and_spread(some):
    W, Z = table(N_COLS, some.L), table(some.R, some.L, 2)
    for x in range(some.N):
        S, V, both_S, both_V = (some.room(some.R) for _ in range(4))
        kernel_calls.scores(some.inputs, x, W, S)
        kernel_calls.spread(some.inputs, x, Z, V)
        kernel_calls.scores_with(some.inputs, x, W, Z, both_S, both_V)
        np.testing.assert_array_equal(both_S, S)
        np.testing.assert_array_equal(both_V, V)


def test_see_is_the_expectation_given_v(some):
    Z = table(some.R, some.L, 2)
    for x, R, C, _ in each(some):
        V, D = some.room(some.R), some.room(some.R)
        kernel_calls.spread(some.inputs, x, Z, V)
        kernel_calls.see(some.inputs, x, Z, D)
        # C' G^+ V = C^+ V: the least u that gives these V
        np.testing.assert_allclose(C.T @ D[:R], np.linalg.pinv(C, rcond=1e-9) @ V[:R], rtol=1e-4, atol=1e-4)


def test_complete_gives_a_u_with_these_v(some):
    for x, R, C, cols in each(some):
        for step in range(5):
            Z, V, D, U = (some.room(n) for n in (some.R, some.R, some.R, some.M))
            Z[:R] = table(R, some.L, step)
            kernel_calls.spread(some.inputs, x, Z, V)
            kernel_calls.complete(some.inputs, x, KEYS[2], step, Z, D, U, some.room(1)[0])
            u = C.T @ D[:R]
            u[cols] += U[: len(cols)]
            np.testing.assert_allclose(C @ u, V[:R], rtol=1e-4, atol=1e-4)
            # and beside the part that C sees it is U0's: u - P u = U0 - P U0
            U0 = np.zeros((N_COLS, some.L))
            U0[cols] = twins.normals(int(KEYS[2]), step, len(cols) * some.L).reshape(-1, some.L)
            P = np.linalg.pinv(C, rcond=1e-9) @ C
            np.testing.assert_allclose(u - P @ u, U0 - P @ U0, atol=1e-4)


SMALL = [[(0, 1.0), (1, 1.0), (1, 1.0)], [(1, 1.0), (2, 1.0)], [(0, 1.0), (1, 1.0), (1, 1.0)], [(3, 1.0)]]  # rank 3


@pytest.fixture(scope="module")
def small():
    """One input of 4 rows, the third as the first, and 4 columns; L = 3."""
    inputs = build([SMALL], with_values=False, n_labels=3, n_cols=4)
    n = 200_000

    def directions(whole, given):
        out = np.empty((n, 4, 3), np.float32)
        room = [np.zeros(shape, np.float32) for shape in ((4, 3), (4, 3), (4, 3), (3,))]
        given = np.zeros((0, 3), np.float32) if given is None else given
        kernel_calls.directions(inputs, 0, whole, KEYS[1:3], given, *room, out)
        return out.astype(float)

    return SimpleNamespace(inputs=inputs, C=twins.dense(inputs, 0, 4), n=n, directions=directions)


def test_u_is_standard_normal(small):
    """Mean 0 and covariance I, every entry within 6 standard errors: 102 of them at 2e-9."""
    u = small.directions(True, None).reshape(small.n, 12)
    assert np.abs(u.mean(axis=0)).max() < 6 / np.sqrt(small.n)
    covariance = u.T @ u / small.n
    error = np.sqrt((1 + np.eye(12)) / small.n)  # Var(x y) = 1, Var(x^2) = 2
    assert (np.abs(covariance - np.eye(12)) < 6 * error).all()
    fourth = (u**4).mean(axis=0)
    assert (np.abs(fourth - 3) < 6 * np.sqrt(96 / small.n)).all()


def test_v_has_the_covariance_g(small):
    """V' G^+ V is chi-square with rank(C) = 3 degrees of freedom a label; 5% too much would be 15 standard errors."""
    n, G_inverse = 20_000, np.linalg.pinv(small.C @ small.C.T)
    Z, V = np.zeros((4, 3), np.float32), np.zeros((4, 3), np.float32)
    lengths = np.empty((n, 3))
    for step in range(n):
        kernel_calls.draw(small.inputs, 0, KEYS[1], step, Z)
        kernel_calls.spread(small.inputs, 0, Z, V)
        lengths[step] = ((G_inverse @ V) * V).sum(axis=0)
    assert abs(lengths.mean() / 3 - 1) < 6 * np.sqrt(2 / (3 * lengths.size))
    assert stats.kstest(lengths.ravel(), "chi2", args=(3,)).pvalue > 1e-7


def test_seen_part_of_u_is_its_projection(small):
    """E[u given V] ~ N(0, P) column by column, within 6 standard errors."""
    u = small.directions(False, None).reshape(small.n, 12)
    P = np.kron(np.linalg.pinv(small.C) @ small.C, np.eye(3))
    variance = np.outer(np.diag(P), np.diag(P)) + P**2  # of a product of two normals
    assert (np.abs(u.T @ u / small.n - P) < 6 * np.sqrt(variance / small.n) + 1e-6).all()


def test_u_given_z(small):
    """Given Z: mean C' G^+ V and covariance I - P, within 6 standard errors."""
    Z = table(4, 3, 8)
    V = np.zeros((4, 3), np.float32)
    kernel_calls.spread(small.inputs, 0, Z, V)
    pinv = np.linalg.pinv(small.C)
    u = small.directions(True, Z) - pinv @ V
    rest = np.kron(np.eye(4) - pinv @ small.C, np.eye(3))
    u = u.reshape(small.n, 12)
    assert (np.abs(u.mean(axis=0)) < 6 * np.sqrt(np.diag(rest) / small.n) + 1e-5).all()
    variance = np.outer(np.diag(rest), np.diag(rest)) + rest**2
    assert (np.abs(u.T @ u / small.n - rest) < 6 * np.sqrt(variance / small.n) + 1e-5).all()


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("with_q", [False, True])
def test_move(some, whole, with_q):
    c, h = -0.21, 0.05
    W = table(N_COLS, some.L)
    q = np.abs(table(N_COLS, some.L, 4)) if with_q else np.zeros((0, some.L), np.float32)
    D = table(some.R, some.L, 5)
    for x, R, C, cols in each(some):
        U = table(some.M, some.L, 6)
        expected, expected_q = twins.move(
            C, cols, c, h, D[:R].astype(float), U[: len(cols)] if whole else None, W, q if with_q else None
        )
        moved, moved_q = W.copy(), q.copy()
        kernel_calls.move(some.inputs, x, c, h, D, U, whole, moved, moved_q)
        np.testing.assert_allclose(moved, expected, rtol=1e-5, atol=2e-5)
        if with_q:
            np.testing.assert_allclose(moved_q, expected_q, rtol=1e-4, atol=1e-5)
        asleep = np.setdiff1d(np.arange(N_COLS), cols)
        np.testing.assert_array_equal(moved[asleep], W[asleep])


def test_fold_gives_what_is_owed(some):
    Q = 4.0
    W = table(N_COLS, some.L)
    for x, _, _, cols in each(some):
        Q_row = np.linspace(0, Q, N_COLS)  # the last is owed nothing
        owed = Q - Q_row
        folded, after, U = W.copy(), Q_row.copy(), some.room(some.M)
        count = kernel_calls.fold(some.inputs, x, KEYS[3], 9, Q, after, U, folded)
        expected = W.astype(float)
        drawn = twins.normals(int(KEYS[3]), 9, len(cols) * some.L).reshape(-1, some.L)
        expected[cols] += np.sqrt(owed[cols])[:, None] * drawn
        np.testing.assert_allclose(folded, expected, rtol=1e-5, atol=1e-5)
        assert count == (10 if owed[cols].any() else 9)
        Q_row[cols] = Q
        np.testing.assert_array_equal(after, Q_row)


def test_fold_draws_nothing_where_nothing_is_owed(some):
    W = table(N_COLS, some.L)
    for x in range(some.N):
        folded, Q_row, U = W.copy(), np.full(N_COLS, 2.5), some.room(some.M)
        assert kernel_calls.fold(some.inputs, x, KEYS[3], 9, 2.5, Q_row, U, folded) == 9
        np.testing.assert_array_equal(folded, W)
        assert np.isnan(U).all()


def test_fold_variance_over_many_folds():
    """Variance Q - Q_row in every row the input has, 0 in the others; within 6 standard errors."""
    inputs = build([SMALL], with_values=False, n_labels=3, n_cols=6)
    n, Q, owed = 4000, 3.0, np.array([3.0, 0.0, 1.0, 0.25, 3.0, 3.0])
    folds = np.zeros((n, 6, 9), np.float32)
    U = np.zeros((4, 9), np.float32)
    for count in range(n):
        kernel_calls.fold(inputs, 0, KEYS[3], count, Q, Q - owed, U, folds[count])
    expected = owed * [1, 1, 1, 1, 0, 0]
    # mean square of n * 9 normals of variance v: v (1 +- 6 sqrt(2 / 9 n))
    np.testing.assert_allclose(
        (folds.astype(float) ** 2).mean(axis=(0, 2)), expected, rtol=6 * np.sqrt(2 / (9 * n)), atol=0
    )
    assert (np.abs(folds.mean(axis=(0, 2))) <= 6 * np.sqrt(expected / (9 * n))).all()


@pytest.mark.parametrize("block", [4, 7, N_COLS, 64])
def test_fold_all(block):
    L, Q = 9, 4.0
    W, Q_row = table(N_COLS, L), np.linspace(0, Q, N_COLS)
    folded, after = W.copy(), Q_row.copy()
    count = lazy.settle_all(KEYS[3], 20, Q, after, np.zeros((block, L), np.float32), folded)
    begins = range(0, N_COLS, block)
    drawn = [twins.normals(int(KEYS[3]), 20 + i, min(block, N_COLS - b) * L) for i, b in enumerate(begins)]
    expected = W + np.sqrt(Q - Q_row)[:, None] * np.concatenate(drawn).reshape(N_COLS, L)
    np.testing.assert_allclose(folded, expected, rtol=1e-5, atol=1e-5)
    assert count == 20 + len(begins)
    assert (after == Q).all()
    again = folded.copy()
    lazy.settle_all(KEYS[3], count, Q, after, np.zeros((block, L), np.float32), again)
    np.testing.assert_array_equal(again, folded)


def test_awake(some):
    for x, _, _, cols in each(some):
        Q_row = np.zeros(N_COLS)
        kernel_calls.awake(some.inputs, x, 7.5, Q_row)
        np.testing.assert_array_equal(Q_row, np.where(np.isin(np.arange(N_COLS), cols), 7.5, 0))
