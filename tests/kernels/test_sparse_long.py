"""Inputs that are too long to factor: the same laws from u itself, with its seen part found by conjugate gradients."""

from __future__ import annotations

import kernel_calls
import numpy as np
import pytest
import twins
from test_sparse import CASES, KEYS, build, case, each, random_matrices, table


@pytest.fixture(scope="module", params=CASES.values(), ids=list(CASES))
def some(request):
    return case(*request.param, factor_up_to=0)


def test_nothing_is_factored(some):
    assert not len(some.inputs.chol)
    assert not len(some.inputs.inverse)
    assert not np.diff(some.inputs.chol_start).any()
    assert [a.shape for a in some.inputs.scratch] == [(some.L,)] + [(some.M, some.L)] * 2 + [(some.R, some.L)] * 2


def test_only_inputs_beyond_the_limit_go_without(some):
    mixed = build(random_matrices(False), False, some.L, factor_up_to=3)
    whole = build(random_matrices(False), False, some.L)
    R = np.diff(mixed.row_start)
    assert (np.diff(mixed.chol_start) == np.where(R > 3, 0, R * (R + 1) // 2)).all()
    for x in np.flatnonzero(R <= 3):
        here, there = (slice(*inputs.chol_start[x : x + 2]) for inputs in (mixed, whole))
        np.testing.assert_array_equal(mixed.chol[here], whole.chol[there])
        np.testing.assert_array_equal(mixed.inverse[here], whole.inverse[there])
    long = R > 3
    assert mixed.scratch.slope.shape == (R[long].max(), some.L)
    assert mixed.scratch.residual.shape == (np.diff(mixed.col_start)[long].max(), some.L)
    exact, most = whole.dimensions(), mixed.dimensions()
    np.testing.assert_array_equal(most[~long], exact[~long])
    np.testing.assert_array_equal(most[long], np.minimum(R, np.diff(mixed.col_start))[long])


def test_a_perturbed_input_that_is_long_has_its_slots():
    """Conjugate gradients read them, whatever the rule."""
    with_slots = build(random_matrices(False), False, 3, ready={"factors": True, "places": False}, factor_up_to=3)
    assert len(with_slots.slots) == len(with_slots.columns)
    assert len(build(random_matrices(False), False, 3, ready={"factors": True, "places": False}).slots) == 0
    assert len(build(random_matrices(False), False, 3, ready={}, factor_up_to=3).slots) == 0


def test_draw_is_u_itself(some):
    for x, _, _, cols in each(some):
        Z = some.room(some.M)
        kernel_calls.draw(some.inputs, x, KEYS[1], 5, Z)
        twin = twins.normals(int(KEYS[1]), 5, len(cols) * some.L).reshape(len(cols), some.L)
        np.testing.assert_allclose(Z[: len(cols)], twin, rtol=0, atol=3e-6)
        assert np.isnan(Z[len(cols) :]).all()


def test_spread_is_c_times_u(some):
    for x, R, C, cols in each(some):
        u, V = table(some.M, some.L, 2), some.room(some.R)
        kernel_calls.spread(some.inputs, x, u, V)
        np.testing.assert_allclose(V[:R], C[:, cols] @ u[: len(cols)], rtol=1e-5, atol=1e-5)
        assert np.isnan(V[R:]).all()


def test_projection_is_the_part_that_the_scores_see(some):
    for x, R, C, cols in each(some):
        u, D = table(some.M, some.L, 2), some.room(some.R)
        kernel_calls.see(some.inputs, x, u, D)
        A = C[:, cols]
        P = np.linalg.pinv(A, rcond=1e-9) @ A if len(cols) else np.zeros((0, 0))
        np.testing.assert_allclose(A.T @ D[:R], P @ u[: len(cols)], rtol=1e-4, atol=1e-4)
        assert np.isnan(D[R:]).all()


def test_the_whole_of_u_is_u(some):
    for x, R, _, cols in each(some):
        u, D, U = table(some.M, some.L, 2), some.room(some.R), some.room(some.M)
        kernel_calls.complete(some.inputs, x, KEYS[2], 7, u, D, U, some.room(1)[0])
        np.testing.assert_array_equal(U[: len(cols)], u[: len(cols)])
        assert not D[:R].any()


def test_a_thousand_rows_many_of_them_alike():
    """Words repeat: some columns are in nearly all rows, some in one. Against a dense projection, in float64."""
    rng = np.random.default_rng(4)
    rows = [[(int(c), 1.0) for c in (rng.integers(5), 5 + rng.zipf(1.3) % 400, 405 + i % 590)] for i in range(1000)]
    inputs = build([rows], False, 3, n_cols=1000)
    assert not len(inputs.chol)  # beyond the limit as it is
    cols = twins.active(inputs, 0)
    A = twins.dense(inputs, 0, 1000)[:, cols]
    u, D = table(len(cols), 3, 1), np.zeros((1000, 3), np.float32)
    kernel_calls.see(inputs, 0, u, D)
    np.testing.assert_allclose(A.T @ D, np.linalg.pinv(A, rcond=1e-9) @ (A @ u), atol=2e-4)
