"""Many texts as arrays of numbers, for containers.

    parted(*joined(["a", "", "über"]))      # the texts again
    texts = SortedTexts.of(["Bogotá", "Bogart", "bog"])
    texts.places(["bog", "boat"])           # [2, -1]: by place in the order of their UTF-8 bytes

Sorted texts are front-coded, each without the beginning that it shares with the one before it. A million words are
loaded in no time, since nothing is taken apart before it is looked for: every 16th is whole, so that a binary search
over these and at most 15 steps from there find a text.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sparsezo.validation import Array

_BLOCK = 16
LONGEST = 255  # bytes of a text


def joined(texts: Sequence[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """(UTF-8, one after the other; where each begins, and the end)."""
    raw = [text.encode("utf-8") for text in texts]
    start = np.zeros(len(raw) + 1, np.int64)
    np.cumsum(np.array([len(each) for each in raw], np.int64), out=start[1:])
    return np.frombuffer(b"".join(raw), np.uint8), start


def parted(text: Array, start: Array) -> list[str]:
    """ValueError where these are not what ``joined`` gave."""
    ends = start.tolist()
    if start.ndim != 1 or not ends or ends[0] != 0 or ends[-1] != text.size or (np.diff(start) < 0).any():
        raise ValueError("texts that do not begin where they should")
    raw = text.tobytes()
    return [raw[a:b].decode("utf-8") for a, b in pairwise(ends)]


@dataclass(frozen=True, eq=False)
class SortedTexts:
    """Made by ``of`` or ``from_arrays``."""

    shared: NDArray[np.uint8]  # of each text: so many bytes are those of the text before it; 0 at every 16th
    lengths: NDArray[np.uint8]  # bytes of the rest
    rest: NDArray[np.uint8]  # all of these, one after the other

    @classmethod
    def of(cls, texts: Iterable[str]) -> SortedTexts:
        """Of any texts, each at most LONGEST bytes; one that is there twice counts once."""
        return cls.of_bytes(sorted({_bytes(text) for text in texts}))

    @classmethod
    def of_bytes(cls, raw: Sequence[bytes]) -> SortedTexts:
        """Of texts in UTF-8, which must be in order, each once."""
        if max(map(len, raw), default=0) > LONGEST:
            raise ValueError(f"a text of more than {LONGEST} bytes")
        shared = [_alike(before, text) if i % _BLOCK else 0 for i, (before, text) in enumerate(pairwise([b"", *raw]))]
        rest = [text[n:] for text, n in zip(raw, shared, strict=True)]
        lengths = np.array([len(text) for text in rest], np.uint8)
        return cls(np.array(shared, np.uint8), lengths, np.frombuffer(b"".join(rest), np.uint8))

    def __len__(self) -> int:
        return len(self.lengths)

    def places(self, texts: Iterable[str]) -> list[int]:
        """Where each text stands in the order of all; -1 where it is none of them."""
        return [self._place(_bytes(text)) for text in texts]

    def _place(self, text: bytes) -> int:
        shared, rest, stops, heads = self._parts
        first = (bisect_right(heads, text) - 1) * _BLOCK
        found = b""
        for i in range(max(first, 0), min(first + _BLOCK, len(self.lengths))):
            found = found[: shared[i]] + rest[stops[i] : stops[i + 1]]
            if found >= text:
                return i if found == text else -1
        return -1

    @cached_property
    def _parts(self) -> tuple[bytes, bytes, list[int], list[bytes]]:
        """Of all texts: what they share, the rest, where each begins in it, and every 16th of them."""
        rest, stops = self.rest.tobytes(), [0, *np.cumsum(self.lengths, dtype=np.int64).tolist()]
        heads = [rest[stops[i] : stops[i + 1]] for i in range(0, len(self.lengths), _BLOCK)]
        return self.shared.tobytes(), rest, stops, heads

    def to_arrays(self) -> dict[str, Array]:
        return {"shared": self.shared, "lengths": self.lengths, "rest": self.rest}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> SortedTexts:
        """ValueError where these are not what ``to_arrays`` gave."""
        shared, lengths, rest = (arrays[name] for name in ("shared", "lengths", "rest"))
        if any(array.dtype != np.uint8 or array.ndim != 1 for array in (shared, lengths, rest)):
            raise ValueError("sorted texts of another type")
        if len(shared) != len(lengths) or int(lengths.sum(dtype=np.int64)) != len(rest) or shared[::_BLOCK].any():
            raise ValueError("sorted texts that do not begin where they should")
        return cls(shared, lengths, rest)


def _alike(one: bytes, other: bytes) -> int:
    """How many bytes at the beginning are the same."""
    different = (n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return next(different, min(len(one), len(other)))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
