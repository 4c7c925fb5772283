"""Locks that die with their process: one writer of a model, a results folder or a store at a time.

    with locked("model.szo"): ...               # SparsezoError where another process is at it
    with temporary_folder(place, ".mine."): ... # a new folder; if this process is killed, it is left behind, unlocked
    remove_abandoned(place.glob(".mine.*"))     # those that were left behind

The lock is the kernel's (flock) on a file beside the thing, or in it if it is a folder, so a process that is killed
leaves none behind; its file, at most, which the next one takes over.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from sparsezo.errors import SparsezoError

fcntl: Any = None
with contextlib.suppress(ImportError):  # not on Windows
    import fcntl

FOLDER_LOCK = "lock"  # the file in a temporary folder that its maker holds
_PAUSE = 0.02  # seconds between two looks at a lock that is waited for


def take(descriptor: int) -> bool:
    """Lock an open file for this process; False where another has it."""
    return _taken(descriptor) is not False  # without locks it is better to go on than to refuse every user


def _taken(descriptor: int) -> bool | None:
    """None: there are no locks, on this system or on this file's disk."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


@contextlib.contextmanager
def locked(
    path: str | os.PathLike[str], doing: str = "is writing it", *, wait: bool = False, option: str = "-o"
) -> Iterator[None]:
    """Be the only process that works on ``path``; ``doing`` says what another one may be at, unless we wait for it.

    ``option``: the one by which a user names another place.
    """
    place = Path(os.path.realpath(path))
    file = place / ".lock" if place.is_dir() else place.with_name(f".{place.name}.lock")
    descriptor = _lock(file, str(path), doing, wait, option)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.unlink(file)  # while still locked: whoever opened it meanwhile sees that it is gone
        os.close(descriptor)


def _lock(file: Path, path: str, doing: str, wait: bool, option: str) -> int:
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
            raise SparsezoError(f"{path}: another process {doing}; wait for it, or name another place with {option}")
        if is_at(descriptor, file):
            return descriptor
        os.close(descriptor)  # the one before us removed it between our open and our lock


def is_at(descriptor: int, file: Path) -> bool:
    """Whether what is open is what stands there now."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(file))
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def temporary_folder(parent: Path, prefix: str, suffix: str = "") -> Iterator[Path]:
    """A new folder, locked while we live: what is not locked was left by the dead."""
    descriptor = None
    while descriptor is None:
        folder = Path(tempfile.mkdtemp(prefix=prefix, suffix=suffix, dir=parent))
        descriptor = _held(folder, without_locks=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def remove_abandoned(folders: Iterable[Path]) -> None:
    """Temporary folders of processes that were killed; where there are no locks, nobody can tell, and all stay."""
    for folder in folders:
        with contextlib.suppress(OSError):
            descriptor = None if folder.is_symlink() else _held(folder, without_locks=False)
            if descriptor is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(descriptor)


def _held(folder: Path, *, without_locks: bool) -> int | None:
    """A descriptor that holds the folder's lock; None where another process has it, or has just removed it.

    ``without_locks``: whether it counts as held where there are none.
    """
    file = folder / FOLDER_LOCK
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        return None
    taken = _taken(descriptor)
    if (without_locks if taken is None else taken) and is_at(descriptor, file):
        return descriptor
    os.close(descriptor)
    return None
