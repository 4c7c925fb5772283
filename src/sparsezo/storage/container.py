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
import hashlib
import io
import json
import math
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from sparsezo import __version__
from sparsezo.errors import MEND, DamagedError, DataError, NotInstalledError, UsageError
from sparsezo.storage import limits
from sparsezo.storage.files import atomic_write

VERSION = 1  # of the layout; raised when an older reader could not make sense of a newer file
_FORMAT = "sparsezo"
_HEAD, _ENDING = "meta", ".npy"
_ARRAYS, _SUM = "arrays", "sum"  # in the head: of each array [type, shape, check sum]; the check sum of the head itself
_ENCRYPTED = 1  # a flag of a zip's member
_BLOCK = 1 << 20
_TYPES = {f"{kind}{size}" for kind in "iu" for size in (1, 2, 4, 8)} | {"b1", "f2", "f4", "f8"}
_NPY = re.compile(  # what NumPy writes for arrays of plain numbers
    rb"\x93NUMPY\x01\x00..\{'descr': '([<>|])(\w\d+)', 'fortran_order': (True|False), "
    rb"'shape': \(((?:\d{1,18}, ?)*(?:\d{1,18})?)\), \} *\n",
    re.DOTALL,
)
_WRONG = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError)
_BEGINNING = b"PK\x03\x04"


Contents = tuple[dict[str, Any], dict[str, NDArray[Any]]]  # the head and the arrays


def write_container(
    path: str | os.PathLike[str], kind: str, meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> None:
    with atomic_write(path) as stream:
        _write(stream, kind, meta, arrays)


def read_container(path: str | os.PathLike[str], kind: str) -> Contents:
    try:
        with open(path, "rb") as stream:
            return _read(stream, kind, str(path))
    except FileNotFoundError:
        raise DataError(str(path), "no such file; check the path") from None
    except IsADirectoryError:
        raise DataError(str(path), f"is a folder; name the {kind} file in it") from None
    except OSError as error:
        raise DataError(str(path), f"cannot be read ({error.strerror or error})") from None


def is_container(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins as one; False where it cannot be read."""
    try:
        with open(path, "rb") as stream:
            return stream.read(len(_BEGINNING)) == _BEGINNING
    except OSError:
        return False


def pack(kind: str, meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """The file's bytes, for whoever keeps them elsewhere."""
    stream = io.BytesIO()
    _write(stream, kind, meta, arrays)
    return stream.getvalue()


def unpack(raw: bytes, kind: str, where: str) -> Contents:
    """What ``pack`` packed; ``where`` is named in messages."""
    return _read(io.BytesIO(raw), kind, where)


# ---- for those who read what is inside ----


@contextlib.contextmanager
def damage(where: str | os.PathLike[str], mend: str = MEND) -> Iterator[None]:
    """What goes wrong within is the file's fault: its content is not what we wrote."""
    try:
        yield
    except (DamagedError, NotInstalledError):
        raise
    except (UsageError, DataError, RecursionError, *_WRONG) as error:
        raise DamagedError(os.fspath(where), error, mend) from None


def like(arrays: Mapping[str, NDArray[Any]], name: str, mine: NDArray[Any]) -> NDArray[Any]:
    """The array of this name, which must have the shape and type of ``mine``."""
    its = arrays[name]
    if its.shape != mine.shape or its.dtype != mine.dtype:
        raise ValueError(f"{name} is {its.dtype} of shape {its.shape}, not {mine.dtype} of {mine.shape}")
    return its


# ---- writing ----


def _write(stream: Any, kind: str, meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    plain = {name: np.asarray(array, array.dtype.newbyteorder("<"), order="C") for name, array in arrays.items()}
    own = {"format": _FORMAT, "kind": kind, "format_version": VERSION, "sparsezo": __version__}
    facts = {name: _fact(array) for name, array in plain.items()}
    head = json.loads(json.dumps({**own, **meta, _ARRAYS: facts}))
    head[_SUM] = _head_sum(head)
    text = np.frombuffer(json.dumps(head).encode(), np.uint8)
    np.savez(stream, allow_pickle=False, meta=text, **plain)


def _fact(array: NDArray[Any]) -> list[Any]:
    """Type, shape and check sum, of the bytes in C order with the low byte first."""
    if array.dtype.hasobject:
        raise ValueError("objects would have to be pickled; give arrays of numbers")
    dtype = array.dtype.newbyteorder("<")
    content = np.asarray(array, dtype, order="C").reshape(-1).view(np.uint8)
    return [dtype.str, list(array.shape), _digest(content.data)]


def _digest(content: Any) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _head_sum(head: Mapping[str, Any]) -> str:
    """Of all but the sum itself; JSON that was read once is written alike ever after."""
    rest = {name: value for name, value in head.items() if name != _SUM}
    return _digest(json.dumps(rest).encode())


# ---- reading ----


def _read(stream: BinaryIO, kind: str, where: str) -> Contents:
    if stream.read(len(_BEGINNING)) != _BEGINNING:
        raise _foreign(where, kind)
    size = stream.seek(0, os.SEEK_END)
    stream.seek(0)
    try:
        with zipfile.ZipFile(stream) as archive:
            members = _members(archive)
            if _HEAD not in members:
                raise _foreign(where, kind)
            _check_size(where, sum(info.file_size for info in members.values()), size)
            meta = json.loads(_array(archive, members.pop(_HEAD)).tobytes().decode())
            _check(where, meta, kind)
            facts = _facts(meta)
            arrays = {name: _array(archive, info) for name, info in members.items()}
        if facts is not None:
            _check_arrays(facts, arrays)
        return meta, arrays
    except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, *_WRONG) as error:
        raise DamagedError(where, error) from None
    except RuntimeError as error:  # zipfile: something that it does not know; json: brackets without end
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
        if info.flag_bits & _ENCRYPTED:
            raise ValueError(f"{name} is encrypted")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(f"{name} is packed in an unknown way")
        members[name] = info
    return members


def _check_size(where: str, total: int, size: int) -> None:
    """Before memory is taken."""
    if total > limits.ARRAYS and total > limits.SWELLING * size:
        limits.refuse(where, f"holds {total / 1e9:.1f} GB in a file of {size / 1e6:.1f} MB")


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> NDArray[Any]:
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
        while block := stream.read(_BLOCK):
            room[at : at + len(block)] = np.frombuffer(block, np.uint8)
            at += len(block)
        if at != room.size:
            raise ValueError(f"{info.filename} is cut off")
    array = np.asarray(array.T, order="C") if fortran else array
    return array.astype(dtype.newbyteorder("="), copy=False)


def _facts(meta: dict[str, Any]) -> dict[str, Any] | None:
    """What the head says of the arrays, taken out of it; None in files of before."""
    facts, said = meta.pop(_ARRAYS, None), meta.pop(_SUM, None)
    if facts is None and said is None:
        return None
    if said != _head_sum({**meta, _ARRAYS: facts}) or not isinstance(facts, dict):
        raise ValueError("the check sum of its head is wrong")
    return facts


def _check_arrays(facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    if missing := sorted(facts.keys() ^ arrays.keys()):
        raise ValueError(f"{missing[0]} is missing or does not belong to it")
    for name, array in arrays.items():
        if facts[name] != _fact(array):
            raise ValueError(f"the check sum of {name} is wrong")


def _foreign(where: str, kind: str) -> DataError:
    return DataError(where, f"is not a sparsezo {kind}; give a file that sparsezo train wrote")


def _check(where: str, meta: Any, kind: str) -> None:
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
