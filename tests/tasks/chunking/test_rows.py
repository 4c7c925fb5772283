"""The rows of C in order 1, against the page that says where each of them stands."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from sparsezo.tasks.chunking.rows import Rows, order_1


def rows_of(*rows: list[tuple[int, float]]) -> Rows:
    entries = [entry for row in rows for entry in row]
    values = np.array([value for _, value in entries], np.float32)
    columns = np.array([column for column, _ in entries], np.int32)
    return Rows(columns, np.array([*map(len, rows)], np.int64), None if (values == 1).all() else values)


def dense(rows: Rows, n_columns: int) -> np.ndarray:
    """C itself; a column that a row has twice counts twice."""
    C = np.zeros((len(rows.lengths), n_columns))
    owner = np.repeat(np.arange(len(rows.lengths)), rows.lengths)
    np.add.at(C, (owner, rows.columns), 1.0 if rows.values is None else rows.values)
    return C


def literal(tokens, bigrams, offsets, n_attributes, n_bigrams, K, start):
    """The docstring's page, row by row."""
    n_columns = n_attributes + K + K * n_bigrams
    C, starts = [], [0]
    for begin, end in pairwise(offsets):
        for i in range(begin, end):
            C.append(np.r_[tokens[i], np.zeros(n_columns - n_attributes)])
        C += [np.eye(n_columns)[n_attributes + a] for a in range(K)]
        for a in range(K if bigrams is not None else 0):
            for i in range(begin, end):
                row = np.zeros(n_columns)
                for j in range(n_bigrams):
                    row[n_attributes + K + j * K + a] = bigrams[i][j] * (i > begin or a == start)
                C.append(row)
        starts.append(len(C))
    return np.array(C), starts


@pytest.mark.parametrize("with_bigrams", [False, True])
@pytest.mark.parametrize("value", [1.0, 0.5])
def test_order_1(with_bigrams, value):
    offsets = np.array([0, 2, 3, 6])
    tokens = rows_of([(0, 1), (2, value)], [(1, 1)], [], [(0, 1), (0, 1)], [(2, 1)], [(1, value)])
    bigrams = rows_of([(0, 1)], [(1, 1), (1, 1)], [(0, 1), (1, 1)], [], [(0, 1)], [(1, 1)]) if with_bigrams else None
    for K, start in ((3, 2), (2, 0)):
        rows, row_start = order_1(tokens, bigrams, offsets, 3, K, start)
        n_bigrams = 2 if with_bigrams else 0
        by_token = dense(bigrams, 2) if with_bigrams else None
        C, starts = literal(dense(tokens, 3), by_token, offsets, 3, n_bigrams, K, start)
        np.testing.assert_array_equal(dense(rows, C.shape[1]), C)
        assert row_start.tolist() == starts
        assert rows.row_ptr()[-1] == len(rows.columns)
        assert (rows.columns.dtype, rows.values is None) == (np.int32, value == 1)


def test_rows_in_another_order():
    rows = rows_of([(0, 1), (2, 0.5)], [], [(1, 3)])
    again = rows.take(np.array([2, 0, 1]))
    assert again.columns.tolist() == [1, 0, 2]
    assert again.lengths.tolist() == [1, 2, 0]
    assert again.values.tolist() == [3, 1, 0.5]
