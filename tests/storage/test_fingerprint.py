"""What is different has another hash, and what is the same has the same one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from sparsezo.storage.fingerprint import known_by


class Part(NamedTuple):
    rows: np.ndarray
    start: int = 0
    scratch: np.ndarray = np.zeros(2)


ROWS = np.arange(6, dtype=np.int32)
BASE = (Part(ROWS), {"order": 2, "only": None}, 1)


@pytest.mark.parametrize(
    "other",
    [
        (Part(ROWS + 1), *BASE[1:]),
        (Part(ROWS.astype(np.int64)), *BASE[1:]),
        (Part(ROWS.reshape(2, 3)), *BASE[1:]),
        (Part(ROWS, 1), *BASE[1:]),
        (BASE[0], {"order": 1, "only": None}, 1),
        (BASE[0], {"order": 2, "only": "NP"}, 1),
        (BASE[0], {"order": 2}, 1),
        (*BASE[:2], 2),
        (*BASE[:2], None),
        BASE[:2],
        (np.concatenate([ROWS, ROWS]),),
    ],
)
def test_what_is_different_is_known(other):
    assert known_by(*other) != known_by(*BASE)


def test_what_is_the_same_is_the_same():
    same = (Part(np.ascontiguousarray(ROWS.reshape(2, 3).T.reshape(-1).copy()[[0, 2, 4, 1, 3, 5]])), *BASE[1:])
    assert known_by(*same) == known_by(*BASE)
    assert known_by(Part(ROWS, np.int64(0), np.ones(7)), *BASE[1:]) == known_by(*BASE)  # room to work in does not count
    assert known_by(ROWS[::-1]) == known_by(ROWS[::-1].copy())


def test_two_arrays_are_not_one():
    assert known_by(ROWS[:2], ROWS[2:]) != known_by(ROWS[:3], ROWS[3:])
