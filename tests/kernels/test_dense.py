"""Dense inputs: scores, the part of u that a list sees, and the move, against NumPy; short and singular lists too."""

from __future__ import annotations

from types import SimpleNamespace

import kernel_calls
import numba
import numpy as np
import pytest

from sparsezo.kernels.inputs.dense import dense_inputs

SIZES = [1, 2, 5, 7, 8, 9, 13, 16, 23, 40, 101]


def matrices(M):
    """Lists of all lengths, and odd ones: equal candidates, columns of zeros, dependent and badly scaled columns."""
    rng = np.random.default_rng(M)
    lists = [rng.standard_normal((R, M)) for R in SIZES]
    equal = np.tile(rng.standard_normal((3, M)), (9, 1))
    sparse = rng.standard_normal((30, M)) * (np.arange(M) % 3 > 0)
    dependent = rng.standard_normal((30, M))
    dependent[:, 1] = 2 * dependent[:, 0]
    scaled = rng.standard_normal((50, M)) * 10.0 ** np.linspace(-3, 3, M)
    lists += [equal, sparse, dependent, scaled, np.zeros((4, M))]
    return [np.asarray(C, np.float32) for C in lists]


@pytest.fixture(scope="module", params=[14, 8, 16, 3, 21])
def some(request):
    """14: the paper's; 8 to 16 go eight rows at a time, fewer and more columns one by one."""
    M = request.param
    C = matrices(M)
    offsets = np.concatenate([[0], np.cumsum([len(c) for c in C])]).astype(np.int64)
    most = int(np.diff(offsets).max())

    def room(n=most):
        return np.full((max(n, M), 1), np.nan)  # scratch may hold anything

    inputs = dense_inputs(np.concatenate(C), offsets)
    return SimpleNamespace(inputs=inputs, M=M, C=[c.astype(float) for c in C], N=len(C), room=room)


def active(C):
    return (C != 0).any(axis=0)


def column(M, seed=0):
    return np.random.default_rng(seed).standard_normal((M, 1))


def projector(C):
    """P, onto the row space of C; from its singular values, with columns as they are."""
    return np.linalg.pinv(C, rcond=1e-9) @ C


def test_scores_are_c_times_w(some):
    W = column(some.M)
    for x, C in enumerate(some.C):
        S = some.room()
        kernel_calls.scores(some.inputs, x, W, S)
        np.testing.assert_allclose(S[: len(C)], C @ W, rtol=1e-12, atol=1e-12 * np.abs(C).max(initial=1))
        assert np.isnan(S[len(C) :]).all()
        assert kernel_calls.rows(some.inputs, x) == len(C)


def test_one_pass_gives_the_same_bits_as_two(some):
    W, u = column(some.M), column(some.M, 1)
    for x, C in enumerate(some.C):
        S, V, alone, spread = (some.room() for _ in range(4))
        kernel_calls.scores_with(some.inputs, x, W, u, S, V)
        kernel_calls.scores(some.inputs, x, W, alone)
        kernel_calls.scores(some.inputs, x, u, spread)
        np.testing.assert_array_equal(S, alone)
        np.testing.assert_array_equal(V, spread)
        np.testing.assert_allclose(V[: len(C)], C @ u, rtol=1e-12, atol=1e-12 * np.abs(C).max(initial=1))


def test_equal_candidates_have_equal_scores(some):
    """27 candidates, the first three again and again: those of the last, broken eight too."""
    x = len(SIZES)
    S, V = some.room(), some.room()
    kernel_calls.scores_with(some.inputs, x, column(some.M), column(some.M, 1), S, V)
    for values in (S, V):
        np.testing.assert_array_equal(values[:27].reshape(9, 3), np.tile(values[:3].T, (9, 1)))


def test_mapped_and_in_memory_are_one_type(some, tmp_path):
    inputs = some.inputs
    inputs.features.tofile(tmp_path / "f")
    mapped = np.memmap(tmp_path / "f", "<f4", "r", shape=inputs.features.shape)
    again = dense_inputs(mapped, inputs.offsets)
    assert numba.typeof(again) == numba.typeof(inputs)
    assert np.shares_memory(again.features, mapped)
    assert numba.typeof(dense_inputs(mapped, inputs.offsets, learn=False)) == numba.typeof(inputs)
    W, a, b = column(some.M), some.room(), some.room()
    kernel_calls.scores(again, 3, W, a)
    kernel_calls.scores(inputs, 3, W, b)
    np.testing.assert_array_equal(a, b)


def test_seen_part_of_u_is_its_projection(some):
    for x, C in enumerate(some.C):
        Z, D = some.room(), some.room()
        Z[: some.M] = column(some.M, x)
        kernel_calls.see(some.inputs, x, Z, D)
        seen = C.T @ D[: len(C)]
        np.testing.assert_allclose(seen, projector(C) @ Z[: some.M], atol=1e-6)
        np.testing.assert_array_equal(Z[: some.M], column(some.M, x))


def test_few_candidates_span_a_list(some):
    for x, C in enumerate(some.C):
        rows = some.inputs.basis[x, : some.inputs.ranks[x]]
        assert len(set(rows.tolist())) == len(rows)
        np.testing.assert_allclose(projector(C[rows]), projector(C), atol=1e-6)
        assert np.linalg.matrix_rank(C[rows]) == len(rows)


def test_a_feature_of_small_numbers_is_seen():
    """Its scale is not taken for rounding: a full list sees all of u, whatever its features' units are."""
    C = (np.random.default_rng(1).standard_normal((60, 9)) * 10.0 ** np.linspace(-6, 3, 9)).astype(np.float32)
    inputs = dense_inputs(C, np.array([0, 60]))
    assert inputs.ranks.tolist() == [9]
    u, D = column(9), np.zeros((60, 1))
    kernel_calls.see(inputs, 0, u, D)
    np.testing.assert_allclose(C.T.astype(float) @ D, u, atol=1e-6)


def test_a_feature_is_active_where_some_candidate_has_it(some):
    for x, C in enumerate(some.C):
        begin, end = some.inputs.col_start[x : x + 2]
        assert some.inputs.cols[begin:end].tolist() == np.flatnonzero(active(C)).tolist()
    assert some.inputs.cols.size < some.N * some.M  # there are lists without some of them


def test_a_feature_of_the_smallest_numbers_is_active():
    C = np.zeros((9, 3), np.float32)
    C[4, 1] = -np.float32(1e-45)
    assert dense_inputs(C, np.array([0, 9])).cols.tolist() == [1]


def test_weights_that_no_list_can_show_are_owed_nothing(some):
    Q_row = np.zeros(some.M + 2)
    kernel_calls.awake(some.inputs, 9, 4.0, Q_row)
    assert Q_row[some.M :].tolist() == [4.0, 4.0]


def test_weights_beyond_the_columns_are_left_alone(some):
    W = np.concatenate([column(some.M), [[np.nan], [7.0]]])
    S, U = some.room(), column(some.M, 2)
    kernel_calls.scores(some.inputs, 9, W, S)
    np.testing.assert_allclose(S[:40], some.C[9] @ W[: some.M], rtol=1e-11, atol=1e-11)
    before = W.copy()
    kernel_calls.move(some.inputs, 9, 0.5, 0.1, some.room(), U, True, W, np.zeros((0, 1)))
    np.testing.assert_array_equal(W[some.M :], before[some.M :])
    assert (W[: some.M] != before[: some.M]).all()


def test_a_step_adds_candidates_up_one_by_one(some):
    """The same bits as the plain loop; candidates without a share are left out, and other lists' rows."""
    for x, C in enumerate(some.C):
        D, U, W = some.room(), some.room(), column(some.M)
        D[: len(C)] = column(len(C), x)
        D[: len(C)][np.arange(len(C)) % 5 == 2] = 0
        direction = np.zeros((some.M, 1))
        for j in range(len(C)):
            direction[:, 0] += D[j, 0] * C[j]
        expected = W + 0.3 * direction
        kernel_calls.move(some.inputs, x, 0.3, 0.1, D, U, False, W, np.zeros((0, 1)))
        np.testing.assert_array_equal(W, expected)
