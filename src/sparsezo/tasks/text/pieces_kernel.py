"""Characters to the pieces of a byte-pair encoding; ``sparsezo.tasks.text.pieces`` has the vocabulary.

found = merge_pieces(characters, starts, of_character, of_byte, keys, results, ranks, pieces, ends)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsezo.kernels.jit import standalone_kernel

_PLACE = 40  # bits of a heap's entry for the place of the pair; the rank stands above them


@standalone_kernel
def _pair(keys: Any, left: Any, right: Any) -> Any:
    """Where left and right stand among the sorted pairs that may be merged; -1: they may not."""
    key = (np.int64(left) << 32) | np.int64(right)
    low, high = 0, keys.size
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low if low < keys.size and keys[low] == key else -1


@standalone_kernel
def _push(heap: Any, size: Any, entry: Any) -> None:
    at = size
    while at > 0 and heap[(at - 1) >> 1] > entry:
        heap[at] = heap[(at - 1) >> 1]
        at = (at - 1) >> 1
    heap[at] = entry


@standalone_kernel
def _pop(heap: Any, size: Any) -> Any:
    """The least entry, of a heap of so many; the rest are one fewer."""
    least, last = heap[0], heap[size - 1]
    at, n = 0, size - 1
    while 2 * at + 1 < n:
        child = 2 * at + 1
        if child + 1 < n and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= last:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = last
    return least


@standalone_kernel
def _spell(c: Any, of_byte: Any, pieces: Any, at: Any) -> Any:
    """The bytes of a character in UTF-8 as pieces from ``at`` on; returns where they end."""
    if c < 0x80:
        pieces[at] = of_byte[c]
        return at + 1
    if c < 0x800:
        pieces[at] = of_byte[0xC0 | (c >> 6)]
        pieces[at + 1] = of_byte[0x80 | (c & 63)]
        return at + 2
    if c < 0x10000:
        pieces[at] = of_byte[0xE0 | (c >> 12)]
        pieces[at + 1] = of_byte[0x80 | ((c >> 6) & 63)]
        pieces[at + 2] = of_byte[0x80 | (c & 63)]
        return at + 3
    pieces[at] = of_byte[0xF0 | (c >> 18)]
    pieces[at + 1] = of_byte[0x80 | ((c >> 12) & 63)]
    pieces[at + 2] = of_byte[0x80 | ((c >> 6) & 63)]
    pieces[at + 3] = of_byte[0x80 | (c & 63)]
    return at + 4


@standalone_kernel
def merge_pieces(
    characters: Any,
    starts: Any,
    of_character: Any,
    of_byte: Any,
    keys: Any,
    results: Any,
    ranks: Any,
    pieces: Any,
    ends: Any,
) -> Any:
    """Texts (code points, one text after the other) to pieces; returns how many there are in all.

    A character without a piece of its own is spelled in bytes. Then of all neighbours that may be merged those of the
    least rank are, the leftmost first, until there are none. ``pieces`` has room for four times the characters.
    """
    filled = 0
    longest = 0
    for k in range(ends.size):
        longest = max(longest, starts[k + 1] - starts[k])
    left = np.empty(4 * longest + 1, np.int64)
    right = np.empty(4 * longest + 1, np.int64)
    heap = np.empty(12 * longest + 3, np.int64)
    for k in range(ends.size):
        begin = filled
        for i in range(starts[k], starts[k + 1]):
            c = characters[i]
            if of_character[c] >= 0:
                pieces[filled] = of_character[c]
                filled += 1
            else:
                filled = _spell(c, of_byte, pieces, filled)
        n = filled - begin
        size = 0
        for i in range(n):
            left[i], right[i] = i - 1, i + 1
            if i + 1 < n:
                pair = _pair(keys, pieces[begin + i], pieces[begin + i + 1])
                if pair >= 0:
                    _push(heap, size, (np.int64(ranks[pair]) << _PLACE) | i)
                    size += 1
        while size > 0:
            entry = _pop(heap, size)
            size -= 1
            i = entry & ((np.int64(1) << _PLACE) - 1)
            if pieces[begin + i] < 0 or right[i] >= n:
                continue
            j = right[i]
            pair = _pair(keys, pieces[begin + i], pieces[begin + j])
            if pair < 0 or ranks[pair] != entry >> _PLACE:
                continue  # one of the two has been merged since
            pieces[begin + i] = results[pair]
            pieces[begin + j] = -1
            right[i] = right[j]
            if right[i] < n:
                left[right[i]] = i
                pair = _pair(keys, pieces[begin + i], pieces[begin + right[i]])
                if pair >= 0:
                    _push(heap, size, (np.int64(ranks[pair]) << _PLACE) | i)
                    size += 1
            if left[i] >= 0:
                pair = _pair(keys, pieces[begin + left[i]], pieces[begin + i])
                if pair >= 0:
                    _push(heap, size, (np.int64(ranks[pair]) << _PLACE) | left[i])
                    size += 1
        filled = begin
        for i in range(n):
            if pieces[begin + i] >= 0:
                pieces[filled] = pieces[begin + i]
                filled += 1
        ends[k] = filled
    return filled
