"""Files of named arrays with a JSON head: models and checkpoints.

An ordinary .npz (so ``numpy.load`` reads it, and every part carries a check sum) whose member ``meta`` is JSON text.
Never pickled. Reading checks the kind and every byte, and says in one line what is wrong with a file.

    write_container("model.szo", "model", {"task": "chunking"}, {"W": W})
    meta, arrays = read_container("model.szo", "model")
"""

from __future__ import annotations

import io
import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from sparsezo import __version__
from sparsezo.errors import DataError
from sparsezo.storage.files import atomic_write

VERSION = 1  # of the layout; raised when an older reader could not make sense of a newer file
_FORMAT = "sparsezo"
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


def _write(stream: Any, kind: str, meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    head = {"format": _FORMAT, "kind": kind, "format_version": VERSION, "sparsezo": __version__, **meta}
    text = np.frombuffer(json.dumps(head).encode(), np.uint8)
    np.savez(stream, allow_pickle=False, meta=text, **arrays)


def _read(stream: BinaryIO, kind: str, where: str) -> Contents:
    try:
        if stream.read(len(_BEGINNING)) != _BEGINNING:
            raise _foreign(where, kind)
        stream.seek(0)
        with np.load(stream, allow_pickle=False) as members:
            if "meta" not in members.files:
                raise _foreign(where, kind)
            meta = json.loads(members["meta"].tobytes().decode())
            _check(where, meta, kind)
            return meta, {name: members[name] for name in members.files if name != "meta"}
    except (zipfile.BadZipFile, zlib.error, ValueError, KeyError, EOFError, NotImplementedError) as error:
        raise DataError(where, f"is damaged ({error}); make it anew or copy it again") from None


def _foreign(where: str, kind: str) -> DataError:
    return DataError(where, f"is not a sparsezo {kind}; give a file that sparsezo train wrote")


def _check(where: str, meta: Any, kind: str) -> None:
    if not isinstance(meta, dict) or meta.get("format") != _FORMAT:
        raise _foreign(where, kind)
    if meta.get("kind") != kind:
        raise DataError(where, f"is a sparsezo {meta.get('kind')}, not a {kind}")
    if meta.get("format_version") != VERSION:
        raise DataError(
            where,
            f"has layout {meta.get('format_version')}, this sparsezo ({__version__}) reads {VERSION}; "
            f"it was written by sparsezo {meta.get('sparsezo')}",
        )
