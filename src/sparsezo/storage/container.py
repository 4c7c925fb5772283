"""Files of named arrays with a JSON head: models and checkpoints.

An ordinary .npz (so ``numpy.load`` reads it, and every part carries a check sum) whose member ``meta`` is JSON text.
Never pickled. Reading checks the kind and every byte, and says in one line what is wrong with a file.

    write_container("model.szo", "model", {"task": "chunking"}, {"W": W})
    meta, arrays = read_container("model.szo", "model")
"""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsezo import __version__
from sparsezo.errors import DataError
from sparsezo.storage.files import atomic_write

VERSION = 1  # of the layout; raised when an older reader could not make sense of a newer file
_FORMAT = "sparsezo"


def write_container(
    path: str | os.PathLike[str], kind: str, meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> None:
    head = {"format": _FORMAT, "kind": kind, "format_version": VERSION, "sparsezo": __version__, **meta}
    text = np.frombuffer(json.dumps(head).encode(), np.uint8)
    with atomic_write(path) as stream:
        np.savez(stream, allow_pickle=False, meta=text, **arrays)


def read_container(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    try:
        with open(path, "rb") as stream:
            if stream.read(4) != b"PK\x03\x04":
                raise _foreign(path, kind)
            stream.seek(0)
            with np.load(stream, allow_pickle=False) as members:
                if "meta" not in members.files:
                    raise _foreign(path, kind)
                meta = json.loads(members["meta"].tobytes().decode())
                _check(path, meta, kind)
                arrays = {name: members[name] for name in members.files if name != "meta"}
    except FileNotFoundError:
        raise DataError(str(path), "no such file; check the path") from None
    except IsADirectoryError:
        raise DataError(str(path), f"is a folder; name the {kind} file in it") from None
    except (zipfile.BadZipFile, zlib.error, ValueError, KeyError, EOFError, NotImplementedError) as error:
        raise DataError(str(path), f"is damaged ({error}); make it anew or copy it again") from None
    except OSError as error:
        raise DataError(str(path), f"cannot be read ({error.strerror or error})") from None
    return meta, arrays


def _foreign(path: str | os.PathLike[str], kind: str) -> DataError:
    return DataError(str(path), f"is not a sparsezo {kind}; give a file that sparsezo train wrote")


def _check(path: str | os.PathLike[str], meta: Any, kind: str) -> None:
    if not isinstance(meta, dict) or meta.get("format") != _FORMAT:
        raise _foreign(path, kind)
    if meta.get("kind") != kind:
        raise DataError(str(path), f"is a sparsezo {meta.get('kind')}, not a {kind}")
    if meta.get("format_version") != VERSION:
        raise DataError(
            str(path),
            f"has layout {meta.get('format_version')}, this sparsezo ({__version__}) reads {VERSION}; "
            f"it was written by sparsezo {meta.get('sparsezo')}",
        )
