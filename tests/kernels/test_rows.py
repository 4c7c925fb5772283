"""Inputs of one row: how they are made; their steps are compared with literal ones in test_steps."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_array

from sparsezo.errors import UsageError
from sparsezo.kernels.inputs.rows import row_inputs

N_COLS = 30


@pytest.fixture(scope="module")
def nine():
    """(nine rows as RowInputs, the same as a sparse matrix); one is empty, one has but zeros, columns in no order."""
    rng = np.random.default_rng(1)
    sizes = [5, 1, 0, 12, 3, 4, 30, 8, 17]
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    columns = np.concatenate([rng.permutation(N_COLS)[:size] for size in sizes]).astype(np.int32)
    values = rng.normal(size=columns.size).astype(np.float32)
    values[indptr[4] : indptr[5]] = 0
    X = csr_array((values, columns, indptr.astype(np.int32)), shape=(len(sizes), N_COLS))
    return row_inputs(X), X


def test_nothing_is_copied(nine):
    rows, X = nine
    assert np.shares_memory(rows.columns, X.indices)
    assert np.shares_memory(rows.values, X.data)
    assert rows.indptr.dtype == np.int64
    np.testing.assert_allclose(rows.norm, np.linalg.norm(X.toarray(), axis=1), rtol=1e-6)


@pytest.mark.parametrize(
    ("columns", "values"), [([0, 1, 0], [1, 1, 1]), ([0, 5], [1, 1]), ([0, -1], [1, 1]), ([0, 1], [1, np.nan])]
)
def test_wrong_rows_are_refused(columns, values):
    X = SimpleNamespace(
        indptr=np.array([0, 0, len(columns)]), indices=np.array(columns), data=np.array(values), shape=(2, 5)
    )
    with pytest.raises(UsageError, match="row 1 names a column twice"):
        row_inputs(X)
