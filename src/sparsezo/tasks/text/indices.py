"""Indices of vectors to columns of weights: those that train has get one each, in order, however large they are.

    features = kept_indices(train.indices, min_count=2)     # sorted; feature k is the index features[k]
    columns_of(test.indices, features)                      # their columns; -1 where train does not have the index

An index is a name and nothing more, so a file that counts from 0 is read as well as one that counts from 1. Time and
memory are by the number of entries: where indices are small a table is counted and looked up in, else they are sorted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.integer[Any]]

_PIECE = 1 << 22  # entries at a time: what is in between stays small beside the result
_SMALL = 1 << 22  # a table up to here is worth it for any number of entries


def kept_indices(indices: Indices, min_count: int = 1) -> NDArray[np.int64]:
    """The distinct indices that occur at least ``min_count`` times, sorted."""
    top = int(indices.max(initial=-1))
    if _fits_table(top, indices):
        count = np.zeros(top + 1, np.int64)
        for piece in _pieces(indices):
            np.add.at(count, piece, 1)
        return np.flatnonzero(count >= min_count)
    found, counts = np.zeros(0, np.int64), np.zeros(0, np.int64)
    for piece in _pieces(indices):
        some, some_counts = np.unique(piece, return_counts=True)
        found, place = np.unique(np.concatenate([found, some]), return_inverse=True)
        both = np.zeros(len(found), np.int64)
        np.add.at(both, place, np.concatenate([counts, some_counts]))
        counts = both
    return found[counts >= min_count]


def columns_of(indices: Indices, features: NDArray[np.int64]) -> NDArray[np.int32]:
    """The place of each index in ``features``, which are sorted; -1 where it is not there."""
    columns = np.empty(len(indices), np.int32)
    top = int(features.max(initial=-1))
    table = None
    if _fits_table(top, indices):
        table = np.full(top + 2, -1, np.int32)  # the last for all that is above
        table[features] = np.arange(len(features), dtype=np.int32)
    for start in range(0, len(indices), _PIECE):
        piece = indices[start : start + _PIECE]
        if table is not None:
            columns[start : start + _PIECE] = table[np.minimum(piece, top + 1)]
        else:
            place = np.searchsorted(features, piece)
            there = features[np.minimum(place, len(features) - 1)] == piece
            columns[start : start + _PIECE] = np.where(there, place, -1)
    return columns


def _fits_table(top: int, indices: Indices) -> bool:
    return top < max(_SMALL, len(indices))


def _pieces(indices: Indices) -> Iterator[Indices]:
    return (indices[start : start + _PIECE] for start in range(0, len(indices), _PIECE))
