"""Weights in a mapped file, in large pages where the system can have the file in such.

    W = mapped_weights("/dev/shm/weights.f32", rows, labels)        # zeros, where there is no such file yet
    Learner(problem, settings, W, copy=False)                       # learns in the file itself

The rows of an input lie on as many pages of a large table, and finding a page costs more than reading a row; with pages
of 2 MB instead of 4 KB there are 512 times fewer to find. Linux (6.1 on) can be asked to have a file in memory (tmpfs:
/dev/shm) in such pages, once the memory is there (MADV_COLLAPSE), whatever the system has as its usual way. A file on a
disk stays in pages of 4 KB.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sparsezo import validation
from sparsezo.errors import DataError

_LARGE = 2 << 20
_AT_A_TIME = 64 << 20  # bytes: while a page is made large, its memory is taken twice
_POPULATE_READ, _COLLAPSE = 22, 25  # Linux's numbers, which Python's mmap does not name
_SHARED_AT = 0x01 | 0x10  # MAP_SHARED, MAP_FIXED
_NO_RESERVE = 0x4000  # MAP_NORESERVE: the table may be larger than memory


def mapped_weights(path: str | os.PathLike[str], rows: int, labels: int) -> NDArray[np.float32]:
    """The file's rows x labels numbers, float32 in this machine's byte order; what is written there is in the file.

    All of a file in memory is read at once, so that it can be in large pages (``in_large_pages`` says how much is).
    """
    validation.at_least("rows", rows, 1)
    validation.at_least("labels", labels, 1)
    size = 4 * rows * labels
    with open(_made(Path(path), size), "r+b") as file:
        place = _aligned(file.fileno(), size) if sys.platform == "linux" else mmap.mmap(file.fileno(), size)
    return np.frombuffer(place, np.float32).reshape(rows, labels)


def in_large_pages(W: NDArray[np.float32]) -> int:
    """Bytes of the mapping that W begins in; 0 also where the system does not say."""
    begins, total = False, 0
    with contextlib.suppress(FileNotFoundError), open("/proc/self/smaps") as lines:
        for line in lines:
            name, *rest = line.split()
            if not name.endswith(":"):
                first, last = (int(address, 16) for address in name.split("-"))
                begins = first <= W.ctypes.data < last
            elif begins and name in ("AnonHugePages:", "ShmemPmdMapped:", "FilePmdMapped:"):
                total += 1024 * int(rest[0])
    return total


def _made(path: Path, size: int) -> Path:
    """A new file has no block on a disk yet, nor memory: whoever reads it finds zeros."""
    with contextlib.suppress(FileExistsError), open(path, "xb") as file:
        file.truncate(size)
    if (found := path.stat().st_size) != size:
        raise DataError(
            str(path), f"has {found:,} bytes, where this table of weights has {size:,}; is it another model's?"
        )
    return path


def _aligned(descriptor: int, size: int) -> memoryview:
    """The file at an address where a large page may begin: in the place of memory that nobody uses.

    Python's mapping of that memory ends with the last who looks at it, and takes the file's with it.
    """
    room = mmap.mmap(-1, size + _LARGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE)
    address = np.frombuffer(room, np.uint8).ctypes.data
    begin = -address % _LARGE
    libc = ctypes.CDLL(None, use_errno=True)
    number, place = ctypes.c_int, ctypes.c_void_p
    libc.mmap.restype, libc.mmap.argtypes = place, [place, ctypes.c_size_t, number, number, number, ctypes.c_long]
    read_write = mmap.PROT_READ | mmap.PROT_WRITE
    if libc.mmap(address + begin, size, read_write, _SHARED_AT, descriptor, 0) != address + begin:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    with contextlib.suppress(OSError):  # an older Linux, a file on a disk, no memory: its pages are what they were
        for start in (0, *range(_LARGE, size, _AT_A_TIME)):  # one to try
            length = min(_AT_A_TIME if start else _LARGE, size - start)
            if length >= _LARGE:
                room.madvise(_POPULATE_READ, begin + start, length)
                room.madvise(_COLLAPSE, begin + start, length // _LARGE * _LARGE)
    return memoryview(room)[begin : begin + size]
