"""Sparse inputs: gather, scatter, factors, the two parts of u, the move and ALL's folding, against dense NumPy."""

from __future__ import annotations

from types import SimpleNamespace

import kernel_calls
import numpy as np
import pytest
import twins

from sparsezo.errors import UsageError
from sparsezo.kernels import lazy, random
from sparsezo.kernels.inputs import products, sparse
from sparsezo.storage.fingerprint import known_by

N_COLS = 30
KEYS = np.array([random.stream_key(11, stream) for stream in range(6)], np.uint64)


ALL = {"factors": True, "places": True}


def build(matrices, with_values, n_labels, n_cols=N_COLS, wide=0, ready=ALL, **options):
    """SparseInputs from lists of rows, each row a list of (column, value).

    ``ready``: what is made beside C. ``wide``: the last columns are dense, of all rows of each other input and of all
    but one of the rest; rows of the same entries have the same numbers there.
    """
    rows = [row for matrix in matrices for row in matrix]
    if wide:
        tall = [max(len(matrix) - x % 2, 0) for x, matrix in enumerate(matrices)]
        of_row = {str(row): np.random.default_rng(k).normal(0, 1, wide) for k, row in enumerate(rows)}
        dense = [of_row[str(row)] for matrix, n in zip(matrices, tall, strict=True) for row in matrix[:n]]
        options["dense"] = np.array(dense, np.float32).reshape(-1, wide)
        options["dense_start"] = np.concatenate([[0], np.cumsum(tall)]).astype(np.int64)
    entries = [entry for row in rows for entry in row]
    values = np.array([v for _, v in entries], np.float32) if with_values else None
    made = sparse.sparse_inputs(
        np.concatenate([[0], np.cumsum([len(m) for m in matrices])]).astype(np.int64),
        np.concatenate([[0], np.cumsum([len(r) for r in rows])]).astype(np.int64),
        np.array([c for c, _ in entries], np.int32),
        values,
        n_cols,
        n_labels,
        **options,
    )
    return made.ready(**ready) if ready else made


def random_matrices(with_values, n_cols=N_COLS):
    """Odd ones among them: repeated columns, equal rows, an empty row, dependent rows, more rows than columns."""
    rng = np.random.default_rng(3)

    def row(n):
        value = rng.normal(0, 1, n) if with_values else np.ones(n)
        return list(zip(rng.integers(0, n_cols, n).tolist(), value.tolist(), strict=True))

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


def case(with_values, L, wide=0, **options):
    inputs = build(random_matrices(with_values, N_COLS - wide), with_values, L, wide=wide, **options)
    R = int(np.diff(inputs.row_start).max())
    M = int(np.diff(inputs.col_start).max())

    def room(n):
        return np.full((n, L), np.nan, np.float32)  # scratch may hold anything

    return SimpleNamespace(inputs=inputs, N=len(inputs.row_start) - 1, L=L, R=R, M=M, room=room)


CASES = {
    "ones-9": (False, 9),
    "values-4": (True, 4),
    "values-3": (True, 3),
    "dense-9": (False, 9, 4),
    "dense-3": (True, 3, 11),
}


@pytest.fixture(scope="module", params=CASES.values(), ids=list(CASES))
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


def test_gather_is_the_plain_loop_bit_for_bit(some):
    W = table(N_COLS, some.L)
    inputs = some.inputs
    for x, R, _, _ in each(some):
        S = some.room(some.R)
        products.gather(inputs, x, inputs.columns, inputs.dense_column, W, S)
        begin, end = inputs.dense_start[x : x + 2]
        for i in range(R):
            first, last = inputs.row_ptr[inputs.row_start[x] + i : inputs.row_start[x] + i + 2]
            expected = twins.combine(W, inputs.columns, inputs.values, first, last, some.L)
            if begin + i < end:
                row = inputs.dense[begin + i]
                expected += twins.combine(W[inputs.dense_column :], None, row, 0, len(row), some.L)
            np.testing.assert_array_equal(S[i], expected)


def test_dense_columns_are_the_array_that_was_given():
    """What they would take as entries is three times as much."""
    given = np.ones((5, 3), np.float32)
    rows = [[(0, 1.0)], [(1, 1.0)]]
    start = np.array([0, 2, 4, 5])
    inputs = build([rows, rows, rows], False, 2, n_cols=5, dense=given, dense_start=start)
    assert inputs.dense is given
    assert len(inputs.columns) == len(inputs.slots) == 6


@pytest.mark.parametrize(
    ("why", "change"),
    [
        ("dense_start must go from 0 to 4", {"dense_start": np.array([0, 2, 3])}),
        ("columns has 1; it must be from 0 to 0", {"n_cols": 4}),
        ("not finite|finite", {"dense": np.full((4, 3), np.nan, np.float32)}),
        ("rows is -1", {"dense": np.ones((6, 3), np.float32), "dense_start": np.array([0, 3, 6])}),
    ],
)
def test_dense_columns_that_do_not_fit_are_refused(why, change):
    rows = [[(0, 1.0)], [(1, 1.0)]]
    given = {"n_cols": 5, "dense": np.ones((4, 3), np.float32), "dense_start": np.array([0, 2, 4]), **change}
    with pytest.raises(UsageError, match=why):
        build([rows, rows], False, 2, **given)


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


@pytest.mark.parametrize("one", CASES.values(), ids=list(CASES))
def test_what_is_made_later_is_the_same(one, monkeypatch):
    """Beside C nothing is there at first; K alone, slots alone, all at once or in small pieces: the same bits."""
    whole, bare = case(*one).inputs, case(*one, ready={}).inputs
    made = ("slots", "cols", "chol", "inverse")
    assert [len(getattr(bare, name)) for name in made] == [0] * 4
    monkeypatch.setattr(sparse, "PIECE", 7)
    factors = bare.ready(factors=True, places=False)
    places = bare.ready(factors=False, places=True)
    assert [len(factors.slots), len(factors.cols), len(places.chol), len(places.inverse)] == [0] * 4
    for inputs in (factors.ready(**ALL), places.ready(**ALL), bare.ready(**ALL)):
        for name in made:
            np.testing.assert_array_equal(getattr(inputs, name), getattr(whole, name))
    np.testing.assert_array_equal(bare.dimensions(), whole.dimensions())
    assert known_by(bare) == known_by(factors) == known_by(whole)


def test_columns_of_few_inputs_in_a_large_table():
    """They are numbered anew, so that no list is as long as the table."""
    rows = [[(7, 1.0), (999_000, 1.0), (7, 1.0)], [(999_999, 1.0)]]
    few, large = (build([rows, rows], False, 3, n_cols=n) for n in (1_000_000, 10_000_000))
    assert few.cols.tolist() == large.cols.tolist() == [7, 999_000, 999_999] * 2
    assert few.slots.tolist() == large.slots.tolist() == [0, 1, 0, 2] * 2
    np.testing.assert_array_equal(few.chol, large.chol)


def test_factor_of_nearly_dependent_rows_keeps_them_apart():
    rows = [[(0, 1.0), (1, 1.0)], [(0, 1.0), (1, 1.001)], [(0, 1.0), (1, 1.0)]]
    inputs = build([rows], with_values=True, n_labels=1)
    K, _ = unpack(inputs, 0, 3)
    assert (np.diag(K) > 0).tolist() == [True, True, False]


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


@pytest.mark.torture
@pytest.mark.parametrize("wide", [0, 2])
def test_u_is_standard_normal(wide):
    """Mean 0 and covariance I, every entry within 6 standard errors: 102 of them at 2e-9. 4 rows of rank 3, L = 3.

    Likewise with dense columns, two more of them.
    """
    rows = [[(0, 1.0), (1, 1.0), (1, 1.0)], [(1, 1.0), (2, 1.0)], [(0, 1.0), (1, 1.0), (1, 1.0)], [(3, 1.0)]]
    n, M = 50_000, 4 + wide
    out = np.empty((n, M, 3), np.float32)
    room = [np.zeros(shape, np.float32) for shape in ((4, 3), (4, 3), (M, 3), (3,))]
    inputs = build([rows], with_values=False, n_labels=3, n_cols=M, wide=wide)
    kernel_calls.directions(inputs, 0, KEYS[1:3], *room, out)
    u = out.astype(float).reshape(n, 3 * M)
    assert np.abs(u.mean(axis=0)).max() < 6 / np.sqrt(n)
    error = np.sqrt((1 + np.eye(3 * M)) / n)  # Var(x y) = 1, Var(x^2) = 2
    assert (np.abs(u.T @ u / n - np.eye(3 * M)) < 6 * error).all()
    assert (np.abs((u**4).mean(axis=0) - 3) < 6 * np.sqrt(96 / n)).all()


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
