"""n-gram statistics of a whole n-best list, straight from UTF-8 bytes: DESIGN 1, the loss of reranking.

A candidate's n-gram counts only if it stands in a reference, so the references alone are indexed: their tokens in one
hash table, their n-grams as a trie in another (an n-gram is its (n-1)-gram prefix and a token), with a link from each
n-gram to its (n-1)-gram suffix (Aho and Corasick 1975). A candidate is then read once, byte by byte, keeping the
longest n-gram that ends at the token; its links give the shorter ones.

    out = np.empty((n, 10), np.int32)
    list_statistics(text, offsets, references, reference_offsets, out)    # text[offsets[j]:offsets[j + 1]]: candidate j
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsezo.kernels.jit import standalone_kernel

ORDER = 4
PREFIX, TOKEN, SUFFIX, DEPTH, CLIP, COUNT = range(6)  # columns of the n-gram table; CLIP: the most one reference has
_ROOT = 0  # the empty n-gram; tokens and n-grams count from 1, so 0 is also a free slot


@standalone_kernel
def wide_space(text: NDArray[np.uint8], i: int, end: int) -> int:
    """Bytes of the non-ASCII white space at ``i``, 0 where there is none. White space is what ``str.split`` says."""
    b = text[i]
    if b == 0xC2 and i + 1 < end:  # U+0085, U+00A0
        return 2 if text[i + 1] == 0x85 or text[i + 1] == 0xA0 else 0
    if i + 2 >= end:
        return 0
    second = text[i + 1]
    third = text[i + 2]
    if b == 0xE2 and second == 0x80:  # U+2000 to U+200A, U+2028, U+2029, U+202F
        return 3 if third <= 0x8A or third == 0xA8 or third == 0xA9 or third == 0xAF else 0
    if b == 0xE2 and second == 0x81:  # U+205F
        return 3 if third == 0x9F else 0
    if b == 0xE1 and second == 0x9A:  # U+1680
        return 3 if third == 0x80 else 0
    if b == 0xE3 and second == 0x80:  # U+3000
        return 3 if third == 0x80 else 0
    return 0


@standalone_kernel
def next_token(text: NDArray[np.uint8], i: int, end: int) -> Any:
    """(start, stop, hash) of the first token at or after ``i``; start == stop where none is left."""
    while i < end:
        b = text[i]
        if b == 32 or 9 <= b <= 13 or 28 <= b <= 31:
            i += 1
        elif b >= 0xC2 and wide_space(text, i, end) > 0:
            i += wide_space(text, i, end)
        else:
            break
    start = i
    h = np.int64(0)
    while i < end:
        b = text[i]
        if b <= 32 and (b == 32 or 9 <= b <= 13 or 28 <= b <= 31):
            break
        if b >= 0xC2 and wide_space(text, i, end) > 0:
            break
        h = (h * np.int64(1000003)) ^ np.int64(b)
        i += 1
    return start, i, h ^ (h >> np.int64(17))


@standalone_kernel
def token_slot(
    text: NDArray[np.uint8],
    start: int,
    stop: int,
    h: int,
    slots: NDArray[np.int32],
    references: NDArray[np.uint8],
    spans: NDArray[np.int64],
) -> int:
    """Where the token stands in the table of reference tokens, or the free slot where it would."""
    mask = slots.size - 1
    slot = h & mask
    while slots[slot] != 0:
        first = spans[slots[slot], 0]
        if spans[slots[slot], 1] - first == stop - start:
            k = 0
            while k < stop - start and text[start + k] == references[first + k]:
                k += 1
            if k == stop - start:
                return slot
        slot = (slot + 1) & mask
    return slot


@standalone_kernel
def gram_slot(prefix: Any, token: Any, slots: NDArray[np.int32], grams: NDArray[np.int32]) -> Any:
    """Where the n-gram (prefix, token) stands in the trie's table, or the free slot where it would."""
    mask = slots.size - 1
    key = np.int64(prefix) * np.int64(2654435761) + np.int64(token) * np.int64(40503)
    slot = (key ^ (key >> np.int64(15))) & mask
    while slots[slot] != 0 and (grams[slots[slot], PREFIX] != prefix or grams[slots[slot], TOKEN] != token):
        slot = (slot + 1) & mask
    return slot


@standalone_kernel
def empty_tables(n_bytes: int, n_references: int) -> Any:
    """Tables of zeros with room for all that ``n_references`` references of ``n_bytes`` in all can have."""
    most = n_bytes // 2 + 2 + n_references  # more tokens than the references can have
    size = 16
    while size < 2 * most:
        size *= 2
    token_slots = np.zeros(size, np.int32)
    spans = np.zeros((most, 2), np.int64)  # token -> its bytes in references
    gram_slots = np.zeros(ORDER * size, np.int32)
    grams = np.zeros((ORDER * most, 6), np.int32)
    lengths = np.zeros(n_references, np.int64)
    return token_slots, spans, gram_slots, grams, lengths


@standalone_kernel
def index_references(
    references: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    token_slots: NDArray[np.int32],
    spans: NDArray[np.int64],
    gram_slots: NDArray[np.int32],
    grams: NDArray[np.int32],
    lengths: NDArray[np.int64],
) -> None:
    """Fill the tables, which come from ``empty_tables``, with the references' tokens and n-grams."""
    n_tokens = 0
    n_grams = 0
    last = np.empty(ORDER + 1, np.int64)  # last[n]: the n-gram that ends at the token before
    seen = np.empty(grams.shape[0], np.int32)
    for r in range(offsets.size - 1):
        last[:] = _ROOT
        n_seen = 0
        start, stop, h = next_token(references, offsets[r], offsets[r + 1])
        while start < stop:
            slot = token_slot(references, start, stop, h, token_slots, references, spans)
            if token_slots[slot] == 0:
                n_tokens += 1
                token_slots[slot] = n_tokens
                spans[n_tokens, 0] = start
                spans[n_tokens, 1] = stop
            token = token_slots[slot]
            prefix = np.int64(_ROOT)
            suffix = np.int64(_ROOT)
            for n in range(1, min(ORDER, lengths[r] + 1) + 1):
                slot = gram_slot(prefix, token, gram_slots, grams)
                if gram_slots[slot] == 0:
                    n_grams += 1
                    gram_slots[slot] = n_grams
                    grams[n_grams, PREFIX] = prefix
                    grams[n_grams, TOKEN] = token
                    grams[n_grams, SUFFIX] = suffix
                    grams[n_grams, DEPTH] = n
                g = gram_slots[slot]
                if grams[g, COUNT] == 0:
                    seen[n_seen] = g
                    n_seen += 1
                grams[g, COUNT] += 1
                prefix = last[n]
                suffix = last[n] = np.int64(g)
            lengths[r] += 1
            start, stop, h = next_token(references, stop, offsets[r + 1])
        for k in range(n_seen):
            g = seen[k]
            grams[g, CLIP] = max(grams[g, CLIP], grams[g, COUNT])
            grams[g, COUNT] = 0


@standalone_kernel
def closest_length(lengths: NDArray[np.int64], length: int) -> Any:
    """The reference length closest to ``length``; of two equally close the shorter one, as in sacrebleu."""
    closest = lengths[0]
    for r in range(1, lengths.size):
        nearer = abs(lengths[r] - length) - abs(closest - length)
        if nearer < 0 or (nearer == 0 and lengths[r] < closest):
            closest = lengths[r]
    return closest


@standalone_kernel
def list_statistics(
    text: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    references: NDArray[np.uint8],
    reference_offsets: NDArray[np.int64],
    out: NDArray[np.int32],
) -> None:
    """``out[j]`` = hypothesis length, closest reference length, correct 1- to 4-grams, all 1- to 4-grams.

    Correct counts are clipped at the most any one reference has (Papineni et al. 2002).
    """
    token_slots, spans, gram_slots, grams, lengths = empty_tables(references.size, reference_offsets.size - 1)
    index_references(references, reference_offsets, token_slots, spans, gram_slots, grams, lengths)

    seen = np.empty(grams.shape[0], np.int32)  # n-grams whose count is not 0
    for j in range(offsets.size - 1):
        end = offsets[j + 1]
        out[j] = 0
        length = 0
        n_seen = 0
        state = np.int64(_ROOT)  # the longest n-gram of the references that ends at the token before
        start, stop, h = next_token(text, offsets[j], end)
        while start < stop:
            token = token_slots[token_slot(text, start, stop, h, token_slots, references, spans)]
            if token == 0:
                state = np.int64(_ROOT)
            else:
                if grams[state, DEPTH] == ORDER:
                    state = np.int64(grams[state, SUFFIX])
                g = gram_slots[gram_slot(state, token, gram_slots, grams)]
                while g == 0:  # ends at the root at the latest: the token itself stands in a reference
                    state = np.int64(grams[state, SUFFIX])
                    g = gram_slots[gram_slot(state, token, gram_slots, grams)]
                state = np.int64(g)
                while g != _ROOT:
                    if grams[g, COUNT] == 0:
                        seen[n_seen] = g
                        n_seen += 1
                    grams[g, COUNT] += 1
                    if grams[g, COUNT] <= grams[g, CLIP]:
                        out[j, 1 + grams[g, DEPTH]] += 1
                    g = grams[g, SUFFIX]
            length += 1
            start, stop, h = next_token(text, stop, end)
        for k in range(n_seen):
            grams[seen[k], COUNT] = 0
        out[j, 0] = length
        out[j, 1] = closest_length(lengths, length)
        for n in range(1, ORDER + 1):
            out[j, 1 + ORDER + n] = max(length - n + 1, 0)
