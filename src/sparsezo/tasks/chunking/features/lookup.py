"""Attributes of tokens by their words' numbers: what ``AttributeIndex`` looks up where it has been fitted.

Each distinct word's values are coded once (``WordCodes``, kept from one batch of texts to the next); then, token by
token, a template's attribute is found in a table by the code of its one part, or in a hash table by those of several.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsezo.kernels.jit import standalone_kernel

Ints = NDArray[np.int64]
_KEPT = 2**16  # words of a column
_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio
_NONE = -1  # no attribute; and as a key, no entry


class WordCodes:
    """A row of codes for each word of a column: made when the word is first seen, forgotten with all others when they
    become too many. Threads may share it."""

    def __init__(self, width: int, coded: Callable[[list[str]], NDArray[np.int32]]) -> None:
        """``coded``: words -> words x width."""
        self._coded, self._lock = coded, threading.Lock()
        self._place: dict[str, int] = {}
        self._codes = np.zeros((0, width), np.int32)

    def of(self, words: Sequence[str]) -> NDArray[np.int32]:
        """words x width."""
        with self._lock:
            new = [word for word in dict.fromkeys(words) if word not in self._place]
            if new and len(self._place) + len(new) > _KEPT:
                self._place, self._codes = {}, self._codes[:0]
                new = list(dict.fromkeys(words))
            if new:
                self._codes = np.concatenate([self._codes, self._coded(new)])
                self._place.update(zip(new, range(len(self._place), len(self._codes)), strict=True))
            places = np.fromiter(map(self._place.__getitem__, words), np.int32, len(words))
            return self._codes[places]


class Tables:
    """Numbers by key, of several groups of templates."""

    def __init__(self, groups: Sequence[tuple[Ints, NDArray[np.int32], int | None]]) -> None:
        """(sorted keys, their numbers, how many keys there can be where a table of all is small enough) of each."""
        sizes = [_room(keys) if whole is None else whole for keys, _, whole in groups]
        self.start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.mask = np.array(
            [0 if whole is not None else size - 1 for size, (*_, whole) in zip(sizes, groups, strict=True)]
        )
        self.keys = np.full(self.start[-1], _NONE, np.int64)
        self.numbers = np.full(self.start[-1], _NONE, np.int32)
        for begin, mask, (keys, numbers, whole) in zip(self.start, self.mask, groups, strict=False):
            if whole is not None:
                self.numbers[begin + keys] = numbers
            else:
                _enter(keys, numbers, begin, mask, self.keys, self.numbers)


def _room(keys: Ints) -> int:
    """A power of 2, of which a third or more stays empty."""
    return 1 << max(3 * len(keys) // 2, 2).bit_length()


@standalone_kernel
def _enter(keys: Any, numbers: Any, begin: Any, mask: Any, table: Any, found: Any) -> None:
    for k in range(keys.size):
        place = np.int64((np.uint64(keys[k]) * _FACTOR) >> np.uint64(32)) & mask
        while table[begin + place] != _NONE:
            place = (place + 1) & mask
        table[begin + place], found[begin + place] = keys[k], numbers[k]


@standalone_kernel
def look_up(
    codes: Any,
    offsets: Any,
    stops: Any,
    parts: Any,
    reach: Any,
    start: Any,
    mask: Any,
    table: Any,
    found: Any,
    out: Any,
) -> None:
    """out[i, t] = the number of template t's attribute at token i, or -1.

    codes: tokens x sources. stops: where each template's parts end. parts: of each its source, row, whether that is
    absolute, and how many codes the source has.
    """
    for s in range(offsets.size - 1):
        first, beyond = offsets[s], offsets[s + 1]
        for i in range(first, beyond):
            p = 0
            for t in range(stops.size):
                key = np.int64(0)
                while p < stops[t]:
                    place = i + parts[p, 1]
                    if parts[p, 2] != 0:
                        place = first + parts[p, 1] - 1 if parts[p, 1] > 0 else beyond + parts[p, 1]
                    if place < first:
                        code = first - place
                    elif place >= beyond:
                        code = reach + place - beyond + 1
                    else:
                        code = np.int64(codes[place, parts[p, 0]])
                    key = key * parts[p, 3] + code
                    p += 1
                at = start[t] + key
                if mask[t] > 0:
                    place = np.int64((np.uint64(key) * _FACTOR) >> np.uint64(32)) & mask[t]
                    while table[start[t] + place] != _NONE and table[start[t] + place] != key:
                        place = (place + 1) & mask[t]
                    at = start[t] + place
                out[i, t] = found[at]


@standalone_kernel
def with_tags(columns: Any, starts: Any, first: Any, K: Any, out: Any) -> None:
    """out = the columns of each sentence, and behind them first, first + 1, ... first + K - 1."""
    n = 0
    for s in range(starts.size - 1):
        for e in range(starts[s], starts[s + 1]):
            out[n] = columns[e]
            n += 1
        for a in range(K):
            out[n] = first + a
            n += 1
