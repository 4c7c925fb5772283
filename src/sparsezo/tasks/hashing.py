"""A feature's row of weights by a hash of its name: 2^bits rows, whatever there is to name.

    rows_of(["dog", "the"], bits=20)            # the same on every machine and in every run
    fold(hashes, values, codes)                 # names in several parts, without building them

hash(text) is BLAKE2b of its UTF-8 bytes with a digest of 8 bytes, read with the low byte first. A name in parts (a
template's text, and what each of its macros sees) has hash(first), and with every further part v it becomes
mix(hash ^ hash(v)), where mix is SplitMix64's finaliser (kernels.random). The row is the hash mod 2^bits. Features that
fall on one row share its weights; nothing tells them apart. Saved models rely on all of this: it never changes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from sparsezo.kernels.jit import standalone_kernel
from sparsezo.kernels.random import mix

_BYTES = 8


def hashes_of(texts: Collection[str]) -> NDArray[np.uint64]:
    """hash(text) of each."""
    digest = hashlib.blake2b
    joined = b"".join([digest(text.encode("utf-8", "surrogatepass"), digest_size=_BYTES).digest() for text in texts])
    return np.frombuffer(joined, "<u8").astype(np.uint64)


@standalone_kernel
def fold(hashes: NDArray[np.uint64], values: NDArray[np.uint64], codes: NDArray[np.int32]) -> None:
    """Every hash with one more part: its hash is values[code]."""
    for i in range(hashes.size):
        hashes[i] = mix(hashes[i] ^ values[codes[i]])


def rows(hashes: NDArray[np.uint64], bits: int) -> NDArray[np.int32]:
    return (hashes & np.uint64((1 << bits) - 1)).astype(np.int32)


def rows_of(texts: Collection[str], bits: int) -> NDArray[np.int32]:
    """The row of each."""
    return rows(hashes_of(texts), bits)
