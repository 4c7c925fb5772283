"""Locks that die with their process: one writer of a model, a results folder or a store at a time.

    with locked("model.szo"): ...               # SparsezoError where another process is at it

The lock is the kernel's (flock) on a file beside the thing, or in it if it is a folder, so a process that is killed
leaves none behind; its file, at most, which the next one takes over.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sparsezo.errors import SparsezoError

fcntl: Any = None
with contextlib.suppress(ImportError):  # not on Windows
    import fcntl


_PAUSE = 0.02  # seconds between two looks at a lock that is waited for


def take(descriptor: int) -> bool:
    """Lock an open file for this process; False where another has it."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks: better to go on than to refuse every user of it
        return True
    return True


@contextlib.contextmanager
def locked(path: str | os.PathLike[str], doing: str = "is writing it", *, wait: bool = False) -> Iterator[None]:
    """Be the only process that works on ``path``; ``doing`` says what another one may be at, unless we wait for it."""
    place = Path(os.path.realpath(path))
    file = place / ".lock" if place.is_dir() else place.with_name(f".{place.name}.lock")
    descriptor = _lock(file, str(path), doing, wait)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.unlink(file)  # while still locked: whoever opened it meanwhile sees that it is gone
        os.close(descriptor)


def _lock(file: Path, path: str, doing: str, wait: bool) -> int:
    while True:
        try:
            descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise SparsezoError(f"{path}: cannot be written ({error.strerror or error}); name another place") from error
        if not take(descriptor):
            os.close(descriptor)
            if wait:
                time.sleep(_PAUSE)
                continue
            raise SparsezoError(f"{path}: another process {doing}; wait for it, or name another place with -o")
        try:
            if os.path.samestat(os.fstat(descriptor), os.stat(file)):
                return descriptor
        except FileNotFoundError:
            pass
        os.close(descriptor)  # the one before us removed it between our open and our lock
