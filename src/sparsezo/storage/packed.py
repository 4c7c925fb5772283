"""Data that many processes read, packed once for all of them: what describes it in a few bytes, and its arrays.

On one machine the arrays are in a file without a name, which all processes map: they read the same memory, the program
itself included. Nothing is to be tidied up, however a process ends: the file is gone with the last that has it open.
A mapping is private: an array may be written to, and only the writer's own copy of those pages changes.

    pickled, shelf = shelved(content)       # for a store that hands arrays out read-only, as Ray's does
    unshelved(pickled, shelf)               # the same content, its arrays where the store has them: nothing is copied

Arrays marked as read-only would be another type to Numba, and all kernels compiled anew. So those from a shelf have no
such mark; but all read the same memory, and nobody may write to it.
"""

from __future__ import annotations

import mmap
import os
import pickle
import tempfile
from collections.abc import Callable
from multiprocessing import reduction
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

Shelf = list[NDArray[np.uint8]]  # the bytes of each array
_ALIGNED = 64  # bytes: a cache line


class Packed(NamedTuple):
    """``content`` once more, where its arrays are at hand. For our own workers only, as it is pickled."""

    pickled: bytes
    arrays: list[Any]  # buffers; which arrays could not be written to is known from what was pickled

    def content(self) -> Any:
        return pickle.loads(self.pickled, buffers=self.arrays)


def packed(content: Any, dumps: Callable[..., bytes] = pickle.dumps) -> Packed:
    """Its arrays are not copied. ``dumps``: one that can do more than pickle's."""
    arrays: list[pickle.PickleBuffer] = []
    pickled = dumps(content, protocol=5, buffer_callback=arrays.append)
    return Packed(pickled, [array.raw() for array in arrays])


def shelved(content: Any, dumps: Callable[..., bytes] = pickle.dumps) -> tuple[bytes, Shelf]:
    pickled, arrays = packed(content, dumps)
    return pickled, [np.frombuffer(array, np.uint8) for array in arrays]


def unshelved(pickled: bytes, shelf: Shelf) -> Any:
    return Packed(pickled, [np.asarray(_Unmarked(array)) for array in shelf]).content()


class _Unmarked:
    """The memory of an array, and nothing said about writing; it lasts as long as what is made of it."""

    def __init__(self, array: NDArray[np.uint8]) -> None:
        self._array = array
        self.__array_interface__ = {**array.__array_interface__, "data": (array.ctypes.data, False)}


class Mapped:
    """In a file without a name. It goes to a process that is being started, as an argument, and nowhere else."""

    def __init__(self, content: Any) -> None:
        pickled, arrays = packed(content)
        self._pickled = pickled
        self._places: list[tuple[int, int]] = []  # begin, end
        self._file: Any = _nameless()
        try:
            for array in arrays:
                begin = -(-self._file.tell() // _ALIGNED) * _ALIGNED
                self._file.seek(begin)
                self._file.write(array)
                self._places.append((begin, begin + array.nbytes))
            self._file.write(b"\0")  # no empty file can be mapped
            self._file.flush()
        except BaseException:
            self._file.close()
            raise

    def content(self) -> Any:
        """Arrays keep the mapping, and that keeps the memory: the file may be closed."""
        whole = memoryview(mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_COPY))
        return Packed(self._pickled, [whole[begin:end] for begin, end in self._places]).content()

    def close(self) -> None:
        self._file.close()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_file": reduction.DupFd(self._file.fileno())}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _file=os.fdopen(state["_file"].detach(), "rb"))


class Copied:
    """Where an open file cannot be handed to a process that starts: it is sent all of it."""

    def __init__(self, content: Any) -> None:
        self._content = content

    def content(self) -> Any:
        return self._content

    def close(self) -> None:
        pass


def shared(content: Any) -> Mapped | Copied:
    return Mapped(content) if os.name == "posix" else Copied(content)


def _nameless() -> BinaryIO:
    """In memory, where the system has such files."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("sparsezo"), "w+b")
    return tempfile.TemporaryFile()
