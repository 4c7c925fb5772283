"""What ``sparsezo.torch`` does to weights on a CPU, compiled: normals added where they stand, and numbers of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsezo.kernels.jit import standalone_kernel
from sparsezo.kernels.random import GAMMA, mix, normal_pair, place

_SPREAD = np.int64(0x9E3779B1)


@standalone_kernel
def add_normals(key: Any, scale: Any, w: Any) -> None:
    """w += scale u, u ~ N(0, I) by the key: word j is about w[j] and w[half + j]."""
    half = w.size // 2
    start = place(key, 0)
    lower, upper = w[:half], w[half : 2 * half]
    for j in range(half):
        x, y = normal_pair(mix(start + np.uint64(j) * GAMMA))
        lower[j] += scale * x
        upper[j] += scale * y
    if w.size % 2:
        w[w.size - 1] += scale * normal_pair(mix(start + np.uint64(half) * GAMMA))[0]


@standalone_kernel
def distinct(indices: Any, slots: Any, rows: Any, count: Any, places: Any) -> Any:
    """places[i]: where indices[i] stands in rows[:count], to which new ones are appended; the count after that.

    slots: a hash table, a power of 2 long, larger than the count will be; -1 where it is empty.
    """
    mask = slots.size - 1
    for i in range(indices.size):
        row = np.int64(indices[i])
        slot = (row * _SPREAD >> 8) & mask
        while slots[slot] >= 0 and rows[slots[slot]] != row:
            slot = (slot + 1) & mask
        if slots[slot] < 0:
            slots[slot] = count
            rows[count] = row
            count += 1
        places[i] = slots[slot]
    return count
