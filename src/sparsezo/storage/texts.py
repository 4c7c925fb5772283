"""Many texts as two arrays of numbers, for containers.

>>> parted(*joined(["a", "", "über"]))
['a', '', 'über']
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def joined(texts: Sequence[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """(UTF-8, one after the other; where each begins, and the end)."""
    raw = [text.encode("utf-8") for text in texts]
    start = np.zeros(len(raw) + 1, np.int64)
    np.cumsum(np.array([len(each) for each in raw], np.int64), out=start[1:])
    return np.frombuffer(b"".join(raw), np.uint8), start


def parted(text: NDArray[Any], start: NDArray[Any]) -> list[str]:
    """ValueError where these are not what ``joined`` gave."""
    ends = start.tolist()
    if start.ndim != 1 or not ends or ends[0] != 0 or ends[-1] != text.size or (np.diff(start) < 0).any():
        raise ValueError("texts that do not begin where they should")
    raw = text.tobytes()
    return [raw[a:b].decode("utf-8") for a, b in itertools.pairwise(ends)]
