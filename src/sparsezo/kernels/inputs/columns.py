"""Columns of few inputs in a large table: numbered anew, so that nobody makes a list as long as the table."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_SPARSE = 4  # times as many columns as entries, from where on sorting them costs less than such a list


def in_use(columns: NDArray[np.int32], n_columns: int) -> tuple[NDArray[np.int32] | None, NDArray[np.int32]]:
    """(the columns that occur, or None for all of them; each entry's place among these).

    Columns that are not there are left as they are, for whoever refuses them.
    """
    if n_columns <= _SPARSE * columns.size:
        return None, columns
    found, places = np.unique(columns, return_inverse=True)
    if found.size and not 0 <= found[0] <= found[-1] < n_columns:
        return None, columns
    return found, places.astype(np.int32)
