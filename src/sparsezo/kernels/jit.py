"""``@kernel``: compile with Numba, once per machine and per state of this package's sources.

Numba's own cache looks only at the file of the outermost function, so a change in one kernel would leave a stale
loop that calls it from another file. Here the loop's cache folder is named by the content of every file that is
compiled into the loop: this folder, and of each task what ``_sources`` names. Any change there, and only that,
compiles it anew. What stands alone, such as a reader's parser (``@standalone_kernel``), has a cache by its own file.
``NUMBA_CACHE_DIR`` moves both.

    @kernel
    def axpy(a, x, y): ...
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core.options import DefaultOptions

from sparsezo.storage.cache import cache_folder

F = TypeVar("F", bound=Callable[..., Any])
_KEEP = 4  # caches of earlier states of the sources that are left in place


def _sources() -> list[Path]:
    """All that is compiled into the loop."""
    package = Path(__file__).parent.parent
    kernels, tasks = package / "kernels", package / "tasks"
    compiled = ("kernel", "questions_kernel", "chains", "events", "expected_f1")
    return sorted([*kernels.rglob("*.py"), *(file for name in compiled for file in tasks.glob(f"*/{name}.py"))])


def _fingerprint(sources: Iterable[Path]) -> str:
    digest = hashlib.blake2b(digest_size=10)
    for source in sources:
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()


def _cache_folder(unit: str, sources: Iterable[Path]) -> Path:
    """The first place that can be written: the user's own choice, the user's cache, the temporary folder."""
    bases = [Path(numba.config.CACHE_DIR) / "sparsezo" / "jit"] if numba.config.CACHE_DIR else []
    with contextlib.suppress(RuntimeError):
        bases.append(cache_folder("jit"))
    user = os.getuid() if hasattr(os, "getuid") else "user"
    bases.append(Path(tempfile.gettempdir()) / f"sparsezo-{user}" / "sparsezo" / "jit")
    name = f"{unit}-{_fingerprint(sources)}"
    for base in bases:
        folder = base / name
        with contextlib.suppress(OSError):
            if not folder.is_dir():
                folder.mkdir(parents=True, exist_ok=True)
                _prune(base, unit)
            if os.access(folder, os.W_OK):
                return folder
    raise OSError(
        f"no folder for compiled code can be written, tried {', '.join(map(str, bases))}; set NUMBA_CACHE_DIR"
    )


def _prune(base: Path, unit: str) -> None:
    by_age = sorted(base.glob(f"{unit}-*"), key=lambda folder: folder.stat().st_mtime, reverse=True)
    for stale in by_age[1 + _KEEP :]:
        shutil.rmtree(stale, ignore_errors=True)


_included: list[Path] = []  # files outside the package whose kernels are compiled into the loop
_compiled: list[Any] = []  # all that is cached with the loop
PLAIN = os.environ.get("SPARSEZO_PLAIN_KERNELS", "") not in ("", "0")  # leave Numba's private corners alone
_UNIT = "plain" if PLAIN else "loop"
CACHE = _cache_folder(_UNIT, _sources())


# No fastmath: a run is the same bit for bit, however it is inlined. No reference counting either (_nrt): a third of a
# short step went to counting the views of arrays that live through the whole run. A kernel that allocates after all is
# refused when it is compiled.
# _nrt is private to Numba; without it all works, more slowly.
_ALLOCATING: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
OPTIONS = _ALLOCATING if PLAIN or not hasattr(DefaultOptions, "_nrt") else {**_ALLOCATING, "_nrt": False}


def include(source: Path) -> None:
    """A task from elsewhere has kernels in this file: the loop's cache is then by its content, too."""
    global CACHE
    if source in _included or source.is_relative_to(Path(__file__).parent.parent):
        return
    _included.append(source)
    CACHE = _cache_folder(_UNIT, [*_sources(), *_included])
    with _caching_in(CACHE):
        for dispatcher in _compiled:
            dispatcher.enable_caching()


@contextlib.contextmanager
def _caching_in(folder: Path) -> Iterator[None]:
    saved = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(folder)  # read by Numba at decoration only
    try:
        yield
    finally:
        numba.config.CACHE_DIR = saved


def kernel(function: F) -> F:
    """Compile ``function`` when first called; it must allocate nothing."""
    return _compile(function, OPTIONS)


def inlined_kernel(function: F) -> F:
    """Likewise, and copied into its callers: handing over a dozen arrays costs as much as a short step's arithmetic."""
    return _compile(function, {**OPTIONS, "inline": "always"})


def allocating_kernel(function: F) -> F:
    """Likewise, for preparing data: it may make new arrays."""
    return _compile(function, _ALLOCATING)


def standalone_kernel(function: F) -> F:
    """Likewise, for what calls nothing outside its own file: an edit there compiles that file anew, and no more."""
    source = Path(function.__code__.co_filename)
    folder = _cache_folder(source.stem, [Path(__file__), source])
    return _compile(function, _ALLOCATING, folder)


def _compile(function: F, options: dict[str, Any], folder: Path | None = None) -> F:
    with _caching_in(folder or CACHE):
        compiled: F = numba.njit(cache=True, **options)(function)
    if folder is None:
        _compiled.append(compiled)
    return compiled
