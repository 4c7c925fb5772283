"""Files of named arrays with a JSON head: models, checkpoints and states.

An ordinary .npz (so ``numpy.load`` reads it) whose member ``meta`` is JSON text. Never pickled. The head holds its own
check sum and type, shape and check sum (BLAKE2) of every array; files of before that have the zip's sums alone. Reading
looks at sizes before it takes memory, checks every byte, and says in one line what is wrong with a file.

    write_container("model.szo", "model", {"task": "chunking"}, {"W": W})
    meta, arrays = read_container("model.szo", "model")
    with damage("model.szo"): W = like(arrays, "W", mine)        # what does not fit is a DamagedError
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from typing import IO

import numpy as np

from sparsezo import __version__
from sparsezo.errors import MEND, DamagedError, DataError, NotInstalledError, UsageError
from sparsezo.options import Json, Values
from sparsezo.storage import limits
from sparsezo.storage.files import Name, atomic_write, open_raw, reading
from sparsezo.storage.fingerprint import fingerprint
from sparsezo.validation import Array

VERSION = 1  # of the layout; raised when an older reader could not make sense of a newer file
_FORMAT = "sparsezo"
_HEAD, _ENDING = "meta", ".npy"
_ARRAYS, _SUM = "arrays", "sum"  # in the head: of each array [type, shape, check sum]; the check sum of the head itself
_TYPES = {f"{kind}{size}" for kind in "iu" for size in (1, 2, 4, 8)} | {"b1", "f2", "f4", "f8"}
_NPY = re.compile(  # what NumPy writes for arrays of plain numbers
    rb"\x93NUMPY\x01\x00..\{'descr': '([<>|])(\w\d+)', 'fortran_order': (True|False), "
    rb"'shape': \(((?:\d{1,18}, ?)*(?:\d{1,18})?)\), \} *\n",
    re.DOTALL,
)
_WRONG = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError)
_BEGINNING = b"PK\x03\x04"

Arrays = Mapping[str, Array]
Contents = tuple[Json, dict[str, Array]]  # the head and the arrays


def write_container(path: Name, kind: str, meta: Values, arrays: Arrays) -> None:
    with atomic_write(path) as stream:
        _write(stream, kind, meta, arrays)


def read_container(path: Name, kind: str) -> Contents:
    with open_raw(path) as stream, reading(path):
        return _read(stream, kind, str(path))


def is_container(path: Name) -> bool:
    """Whether a file begins as one; False where it cannot be read."""
    with contextlib.suppress(OSError), open(path, "rb") as stream:
        return stream.read(len(_BEGINNING)) == _BEGINNING
    return False


def pack(kind: str, meta: Values, arrays: Arrays) -> bytes:
    """The file's bytes, for whoever keeps them elsewhere."""
    stream = io.BytesIO()
    _write(stream, kind, meta, arrays)
    return stream.getvalue()


def unpack(raw: bytes, kind: str, where: str) -> Contents:
    """What ``pack`` packed; ``where`` is named in messages."""
    return _read(io.BytesIO(raw), kind, where)


@contextlib.contextmanager
def damage(where: Name, mend: str = MEND) -> Iterator[None]:
    """What goes wrong within is the file's fault: its content is not what we wrote."""
    try:
        yield
    except (DamagedError, NotInstalledError):
        raise
    except (UsageError, DataError, RecursionError, *_WRONG) as error:
        raise DamagedError(os.fspath(where), error, mend) from None


def like(arrays: Arrays, name: str, mine: Array) -> Array:
    """The array of this name, which must have the shape and type of ``mine``."""
    its = arrays[name]
    if its.shape != mine.shape or its.dtype != mine.dtype:
        raise ValueError(f"{name} is {its.dtype} of shape {its.shape}, not {mine.dtype} of {mine.shape}")
    return its


def _write(stream: IO[bytes], kind: str, meta: Values, arrays: Arrays) -> None:
    plain = {name: _plain(array) for name, array in arrays.items()}
    own = {"format": _FORMAT, "kind": kind, "format_version": VERSION, "sparsezo": __version__}
    head = json.loads(json.dumps({**own, **meta, _ARRAYS: {name: _fact(array) for name, array in plain.items()}}))
    head[_SUM] = _head_sum(head)
    text = np.frombuffer(json.dumps(head).encode(), np.uint8)
    np.savez(stream, allow_pickle=False, meta=text, **plain)


def _plain(array: Array) -> Array:
    """In C order with the low byte first."""
    return np.asarray(array, array.dtype.newbyteorder("<"), order="C")


def _fact(array: Array) -> list[object]:
    """Type, shape and check sum."""
    if array.dtype.hasobject:
        raise ValueError("objects would have to be pickled; give arrays of numbers")
    plain = _plain(array)
    return [plain.dtype.str, list(array.shape), fingerprint(plain.reshape(-1).view(np.uint8).data)]


def _head_sum(head: Values) -> str:
    """Of all but the sum itself; JSON that was read once is written alike ever after."""
    rest = {name: value for name, value in head.items() if name != _SUM}
    return fingerprint(json.dumps(rest).encode())


def _read(stream: IO[bytes], kind: str, where: str) -> Contents:
    if stream.read(len(_BEGINNING)) != _BEGINNING:
        raise _foreign(where, kind)
    size = stream.seek(0, os.SEEK_END)
    stream.seek(0)
    try:
        with zipfile.ZipFile(stream) as archive:
            members = _members(archive)
            if _HEAD not in members:
                raise _foreign(where, kind)
            total = sum(info.file_size for info in members.values())
            if total > limits.ARRAYS and total > limits.SWELLING * size:  # before memory is taken
                limits.refuse(where, f"holds {total / 1e9:.1f} GB in a file of {size / 1e6:.1f} MB")
            meta = json.loads(_array(archive, members.pop(_HEAD)).tobytes().decode())
            _check(where, meta, kind)
            facts, said = meta.pop(_ARRAYS, None), meta.pop(_SUM, None)  # None in files of before
            sealed = (facts, said) != (None, None)
            if sealed and (said != _head_sum({**meta, _ARRAYS: facts}) or not isinstance(facts, dict)):
                raise ValueError("the check sum of its head is wrong")
            arrays = {name: _array(archive, info) for name, info in members.items()}
        if sealed and (missing := sorted(facts.keys() ^ arrays.keys())):
            raise ValueError(f"{missing[0]} is missing or does not belong to it")
        for name, array in arrays.items():
            if sealed and facts[name] != _fact(array):
                raise ValueError(f"the check sum of {name} is wrong")
        return meta, arrays
    except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, RuntimeError, *_WRONG) as error:
        # RuntimeError: zipfile's, for something that it does not know; json's, for brackets without end
        raise DamagedError(where, error) from None
    except MemoryError:
        raise DataError(where, "holds more than this machine has memory for") from None


def _members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """By the names of their arrays."""
    members: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        name = info.filename.removesuffix(_ENDING)
        if name == info.filename or not name or name in members:
            raise ValueError(f"a member {info.filename!r}")
        if info.flag_bits & 1:
            raise ValueError(f"{name} is encrypted")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(f"{name} is packed in an unknown way")
        members[name] = info
    return members


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Array:
    """A member as an array; that it has as many bytes as its shape says is known before memory is taken."""
    with archive.open(info) as stream:
        start = stream.read(10)
        start += stream.read(int.from_bytes(start[8:], "little"))
        if (found := _NPY.fullmatch(start)) is None:
            raise ValueError(f"{info.filename} is no array of numbers")
        order, code, fortran = found[1].decode(), found[2].decode(), found[3] == b"True"
        shape = tuple(int(each) for each in found[4].split(b",") if each.strip())
        if code not in _TYPES:
            raise ValueError(f"{info.filename} is of type {code}")
        dtype = np.dtype(code if order == "|" else order + code)
        if math.prod(shape) * dtype.itemsize != info.file_size - len(start):
            raise ValueError(f"{info.filename} is not as long as its shape {shape} says")
        array = np.empty(shape[::-1] if fortran else shape, dtype)
        room = array.reshape(-1).view(np.uint8)
        at = 0
        while block := stream.read(1 << 20):
            room[at : at + len(block)] = np.frombuffer(block, np.uint8)
            at += len(block)
        if at != room.size:
            raise ValueError(f"{info.filename} is cut off")
    array = np.asarray(array.T, order="C") if fortran else array
    return array.astype(dtype.newbyteorder("="), copy=False)


def _foreign(where: str, kind: str) -> DataError:
    return DataError(where, f"is not a sparsezo {kind}; give a file that sparsezo train wrote")


def _check(where: str, meta: object, kind: str) -> None:
    if not isinstance(meta, dict) or meta.get("format") != _FORMAT:
        raise _foreign(where, kind)
    json.dumps(meta, ensure_ascii=False).encode()  # half a character, which JSON can escape, can be written nowhere
    if meta.get("kind") != kind:
        raise DataError(where, f"is a sparsezo {meta.get('kind')}, not a {kind}")
    if meta.get("format_version") != VERSION:
        raise DataError(
            where,
            f"has layout {meta.get('format_version')}, this sparsezo ({__version__}) reads {VERSION}; "
            f"it was written by sparsezo {meta.get('sparsezo')}",
        )
