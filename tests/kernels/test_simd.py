"""Sums of rows in vector registers: the same bits as the plain loop."""

from __future__ import annotations

import numpy as np
import pytest
import twins

from sparsezo.kernels.inputs import products, sparse
from sparsezo.kernels.jit import allocating_kernel as kernel


def inputs_of(row_start, row_ptr, values, dense=None, dense_start=None):
    """As much of sparse inputs as scattering reads. (A type of the tests' own would stay in the loop's cache.)"""
    given = {"row_start": row_start, "row_ptr": row_ptr, "values": values, "dense": dense, "dense_start": dense_start}
    return sparse.SparseInputs(**(dict.fromkeys(sparse.SparseInputs._fields) | given))


LANES = [1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17, 18, 21, 25, 33, 64]
RANGES = [(0, 0), (0, 1), (3, 3), (2, 9), (0, 40), (17, 40)]


@kernel
def four_ways(table, index, value, first, last, out):
    products.combine(table, None, None, first, last, out[0])
    products.combine(table, index, None, first, last, out[1])
    products.combine(table, None, value, first, last, out[2])
    products.combine(table, index, value, first, last, out[3])


def entries(lanes):
    rng = np.random.default_rng(lanes)
    table = rng.standard_normal((50, lanes)).astype(np.float32)
    table[7] = 1e30  # sums that round differently in another order
    table[8] = -1e30
    return table, rng.integers(0, 50, 40).astype(np.int32), rng.standard_normal(40).astype(np.float32)


@pytest.mark.parametrize("lanes", LANES)
def test_same_bits_as_the_plain_loop(lanes):
    table, index, value = entries(lanes)
    for first, last in RANGES:
        out = np.full((5, lanes), np.nan, np.float32)  # what stood there is not to be added to
        out[4] = 77
        four_ways(table, index, value, first, last, out)
        for got, (i, v) in zip(out, [(None, None), (index, None), (None, value), (index, value)], strict=False):
            np.testing.assert_array_equal(got, twins.combine(table, i, v, first, last, lanes))
        assert (out[4] == 77).all()  # and nothing past the last lane is written


def test_lanes_read_a_table_that_begins_elsewhere():
    table, _, value = entries(9)
    out = np.zeros(9, np.float32)
    products.combine(table[5:], None, value, 3, 20, out)  # as see() reads Z[i:]
    np.testing.assert_array_equal(out, twins.combine(table[5:], None, value, 3, 20, 9))


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("weighted", [False, True])
def test_scattering_is_the_plain_loop_entry_by_entry(lanes, weighted):
    """A column that comes twice in a row gets both, one after the other; columns that do not come are left alone."""
    table, index, value = entries(lanes)
    index[1:4] = index[0]
    rows, row_ptr, c = np.array([0, 2, 5]), np.array([0, 7, 7, 20, 31, 40]), np.float32(-0.3)
    inputs = inputs_of(rows, row_ptr, value if weighted else None, dense_start=np.zeros(3, int))
    D = np.random.default_rng(1).standard_normal((3, lanes)).astype(np.float32)
    expected = table.copy()
    for row in range(2, 5):  # of input 1
        for e in range(row_ptr[row], row_ptr[row + 1]):
            expected[index[e]] += (c * value[e] if weighted else c) * D[row - 2]
    products.scatter(inputs, 1, index, 0, c, D, table)
    np.testing.assert_array_equal(table, expected)


@pytest.mark.parametrize("lanes", LANES)
def test_scattering_dense_columns_is_the_plain_loop(lanes):
    """Rows 1 and 2 of three are of input 1, its columns from 20 on; what is elsewhere is left alone."""
    table = entries(lanes)[0]
    rng = np.random.default_rng(2)
    dense, D = (rng.standard_normal(shape).astype(np.float32) for shape in ((3, 6), (2, lanes)))
    nothing = np.zeros(5, int)
    inputs, c = inputs_of(np.array([0, 1, 4]), nothing, None, dense, np.array([0, 1, 3])), np.float32(-0.3)
    expected = table.copy()
    for i in range(2):
        for m in range(6):
            expected[20 + m] += (c * dense[1 + i, m]) * D[i]
    products.scatter(inputs, 1, nothing.astype(np.int32), 20, c, D, table)
    np.testing.assert_array_equal(table, expected)


@pytest.mark.parametrize("lanes", LANES)
def test_adagrad_is_its_formula_label_by_label(lanes):
    table, index, _ = entries(lanes)
    columns, c, h = np.unique(index)[:9].astype(np.int32), np.float32(0.3), np.float32(0.07)
    q = np.abs(table[::-1]).copy()
    U = np.random.default_rng(2).standard_normal((7, lanes)).astype(np.float32)
    w, squares = table.copy(), q.copy()
    for row, column in enumerate(columns[2:9]):
        g = U[row] * (c / h)
        squares[column] += g * g
        w[column] += h * g / np.sqrt(np.float32(1) + squares[column])
    products.adagrad_rows(c, h, U, columns, 2, 9, table, q)
    np.testing.assert_array_equal(q, squares)
    np.testing.assert_array_equal(table, w)


@pytest.mark.parametrize("lanes", LANES)
def test_rows_are_added_to_their_columns(lanes):
    table, index, _ = entries(lanes)
    columns, c = np.unique(index)[:9].astype(np.int32), np.float32(-0.3)
    U = np.random.default_rng(3).standard_normal((7, lanes)).astype(np.float32)
    expected = table.copy()
    expected[columns[2:9]] += c * U
    products.add_rows(c, U, columns, 2, 9, table)
    np.testing.assert_array_equal(table, expected)
