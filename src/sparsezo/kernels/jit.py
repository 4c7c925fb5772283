"""``@kernel``: compile with Numba, once per machine and per state of this package's sources.

Numba's own cache looks only at the file of the outermost function, so a change in one kernel would leave a stale
loop that calls it from another file. Here the loop's cache folder is named by the content of every file that is
compiled into the loop: this folder, and the folder ``kernels`` of each task. Any change there, and only that,
compiles it anew. What stands alone, such as a reader's parser (``@standalone_kernel``), has a cache by its own file and
those of the kernels that it names.
``NUMBA_CACHE_DIR`` moves both.

    @kernel
    def axpy(a, x, y): ...
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import hashlib
import importlib
import os
import shutil
import signal
import stat
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core import event
from numba.core.options import DefaultOptions

from sparsezo.errors import SparsezoError
from sparsezo.kernels import once
from sparsezo.kernels.once import as_a_whole, cached_as_a_whole
from sparsezo.signals import Unbroken
from sparsezo.storage.cache import cache_folder
from sparsezo.storage.locks import locked

F = TypeVar("F", bound=Callable[..., Any])
_HOW = (Path(__file__), Path(once.__file__))  # what says how kernels are compiled
_KEEP = 4  # caches of earlier states of the sources that are left in place


def _sources() -> list[Path]:
    """All that is compiled into the loop."""
    package = Path(__file__).parent.parent
    return sorted([*(package / "kernels").rglob("*.py"), *(package / "tasks").glob("*/kernels/*.py")])


def _fingerprint(sources: Iterable[Path], more: str = "") -> str:
    """Of the names and contents of these files, and of ``more``."""
    digest = hashlib.blake2b(digest_size=10)
    for source in sources:
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    digest.update(more.encode())
    return digest.hexdigest()


def _cache_folder(unit: str, sources: Iterable[Path], more: str = "") -> Path:
    """The first place that is safe: the user's own choice, the user's cache, the temporary folder; or one for once.

    Numba's index files are pickles: whoever can write there can make us run anything. So each folder is this user's,
    and nobody else may write to it or to what it stands in.
    """
    name = f"{unit}-{_fingerprint(sources, more)}"
    for place, ours in _places():
        with contextlib.suppress(OSError):
            place.mkdir(parents=True, exist_ok=True)
            base = _own_folder(Path(os.path.realpath(place)), ours)
            known = base is not None and (base / name).exists()
            folder = None if base is None else _own_folder(base, (name,))
            if folder is not None and os.access(folder, os.W_OK):
                if not known:
                    _prune(folder.parent, unit)
                return folder
            if base is None and str(place) == numba.config.CACHE_DIR:
                warnings.warn(f"NUMBA_CACHE_DIR: others can write to {place}; the cache is elsewhere", stacklevel=2)
    folder = Path(tempfile.mkdtemp(prefix="sparsezo-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _places() -> Iterator[tuple[Path, tuple[str, ...]]]:
    """Folders of others, and what of ours stands in each."""
    if numba.config.CACHE_DIR:
        yield Path(numba.config.CACHE_DIR), ("sparsezo", "jit")
    with contextlib.suppress(RuntimeError):
        cache = cache_folder("jit")
        yield cache.parent.parent, cache.parts[-2:]
    user = os.getuid() if hasattr(os, "getuid") else "user"
    yield Path(tempfile.gettempdir()), (f"sparsezo-{user}", "sparsezo", "jit")


def _own_folder(place: Path, names: Iterable[str]) -> Path | None:
    """place/names, made for this user alone where it is not there; None where it is not safe."""
    if not all(map(_safe, (place, *place.parents))):
        return None
    for name in names:
        place = place / name
        with contextlib.suppress(FileExistsError):
            place.mkdir(mode=0o700)
        if not _safe(place, strict=True):
            return None
    return place


def _safe(folder: Path, strict: bool = False) -> bool:
    """Whether nobody but this user (or root) can put a file there; no link. ``strict``: this user's own.

    In a folder like /tmp others may write, but not replace what is ours. A group that is this user's own is let pass
    where the user made the folder: many systems have such groups, with this user alone in them.
    """
    if not hasattr(os, "getuid"):
        return True
    found = os.lstat(folder)
    user, mode = os.getuid(), found.st_mode
    if not stat.S_ISDIR(mode) or found.st_uid not in ({user} if strict else {user, 0, os.lstat("/").st_uid}):
        return False
    if strict:
        return not mode & (stat.S_IWGRP | stat.S_IWOTH)
    shared = mode & stat.S_IWOTH or (mode & stat.S_IWGRP and found.st_gid not in (0, os.getgid()))
    return not shared or bool(mode & stat.S_ISVTX)


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
_ALLOCATING: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
OPTIONS = _ALLOCATING if PLAIN or not hasattr(DefaultOptions, "_nrt") else {**_ALLOCATING, "_nrt": False}


def include(source: Path) -> None:
    """A task from elsewhere has kernels in this file: the loop's cache is then by its content, too."""
    global CACHE
    if source in _included or source.is_relative_to(Path(__file__).parent.parent):
        return
    _included.append(source)
    CACHE = _cache_folder(_UNIT, [*_sources(), *sorted(_included)])  # in whatever order they were imported
    with _caching_in(CACHE):
        for dispatcher in _compiled:
            dispatcher.enable_caching()
            cached_as_a_whole(dispatcher)
            _save_alone(dispatcher, CACHE)


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
    """Likewise, for what is no part of the loop: an edit of its file, or of a kernel named there, compiles it anew."""
    source = Path(function.__code__.co_filename)
    return _compile(function, _ALLOCATING, _cache_folder(source.stem, [*_HOW, *_files_compiled_in(function)]))


def own_kernel(function: F) -> tuple[F, str]:
    """Likewise, for a function of a user's (``kernels.own``), with what its content is known by.

    Numbers and texts that it names are part of that: they may come from files that have no compiled code in them.
    """
    named = ((name, function.__globals__.get(name)) for name in sorted(function.__code__.co_names))
    constants = repr([(name, value) for name, value in named if isinstance(value, int | float | str | tuple)])
    sources = [*_HOW, *_files_compiled_in(function)]
    unit = f"own-{Path(function.__code__.co_filename).stem}"
    compiled = _compile(function, _ALLOCATING, _cache_folder(unit, sources, constants))
    return compiled, _fingerprint(sources, constants)


def _files_compiled_in(function: Callable[..., Any]) -> list[Path]:
    """The function's own file, and those of all kernels that it names, or that these name."""
    found: set[Path] = set()
    waiting: list[Any] = [function]
    while waiting:
        each = waiting.pop()
        source = Path(each.__code__.co_filename)
        if source not in found:
            found.add(source)
            waiting += [value.py_func for value in each.__globals__.values() if hasattr(value, "py_func")]
    return sorted(found)


def import_all() -> None:
    """Import all of this package that may be compiled into the loop."""
    package = Path(__file__).parent.parent
    for source in _sources():
        importlib.import_module(".".join([package.name, *source.relative_to(package).with_suffix("").parts]))


class _Introduction(event.Listener):  # type: ignore[misc]
    """Before the first kernel is compiled, import all that may be compiled into the loop.

    Numba reads a function's index of compiled forms when it meets a call of it. If other tasks are in there, it imports
    them, in the middle of typing the caller, and what they implement of the protocol changes under its hands ("cannot
    unify"). So it was while another process compiled another task, or after somebody had stopped one that did.
    """

    done = False

    def on_start(self, compilation: event.Event) -> None:
        if self.done or not any(compilation.data["dispatcher"] is each for each in _compiled):
            return
        self.done = True
        import_all()

    def on_end(self, _compilation: event.Event) -> None:
        """Only the beginning matters."""


class _Unbroken(event.Listener):  # type: ignore[misc]
    """Ctrl-C waits while a function is compiled, or read from the cache: LLVM calls back, and would swallow it."""

    def __init__(self) -> None:
        self._signals = Unbroken()

    def on_start(self, _locked: event.Event) -> None:
        self._signals.begin()

    def on_end(self, _locked: event.Event) -> None:
        self._signals.end()


class _Uncollected(event.Listener):  # type: ignore[misc]
    """No garbage collection while a function is compiled: it would go through all that Numba makes, again and again."""

    def __init__(self) -> None:
        self._lock, self._within, self._collects = threading.Lock(), 0, False

    def on_start(self, _locked: event.Event) -> None:
        with self._lock:
            if self._within == 0:
                self._collects = gc.isenabled()
                gc.disable()
            self._within += 1

    def on_end(self, _locked: event.Event) -> None:
        with self._lock:
            self._within -= 1
            if self._within == 0 and self._collects:
                gc.enable()


event.register("numba:compile", _Introduction())
event.register("numba:compiler_lock", _Unbroken())
event.register("numba:compiler_lock", _Uncollected())


def _compile(function: F, options: dict[str, Any], folder: Path | None = None) -> F:
    with _caching_in(folder or CACHE):
        compiled: F = numba.njit(cache=True, **options)(function)
    if not PLAIN:
        as_a_whole(compiled)
    _save_alone(compiled, folder or CACHE)
    if folder is None:
        _compiled.append(compiled)
    return compiled


def compile_beside(work: Callable[[], object]) -> Callable[[], None]:
    """A second process compiles what ``work`` needs, and leaves it in the cache; what comes back waits for it.

    It is a copy of this one, so that nothing has to be made again. Where there can be none (other threads are running,
    a single core, a system that is no Linux), or where it fails, ``work`` is compiled by whoever needs it.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    if not sys.platform.startswith("linux") or PLAIN or cores < 2 or threading.active_count() > 1:
        return lambda: None
    child = os.fork()
    if child == 0:
        try:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(null, 2)
            work()
        finally:
            os._exit(0)

    def stop() -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        wait()

    def wait() -> None:
        atexit.unregister(stop)
        with contextlib.suppress(ChildProcessError):  # it was waited for
            os.waitpid(child, 0)

    atexit.register(stop)  # if nobody waits
    return wait


def _save_alone(dispatcher: Any, folder: Path) -> None:
    """One process at a time saves what it has compiled.

    Numba numbers the files of a function's compiled forms; two processes that save at once could give one number to
    two forms, and whoever reads it later would run the wrong one, without a word.
    """
    cache = getattr(dispatcher, "_cache", None)  # private to Numba; without it all works as it does there
    save = getattr(cache, "save_overload", None)
    if cache is None or save is None:
        return

    def alone(*form: Any) -> None:
        with contextlib.ExitStack() as held:
            with contextlib.suppress(SparsezoError):  # nothing can be written there: Numba says so, or passes it over
                held.enter_context(locked(folder, wait=True))
            save(*form)

    cache.save_overload = alone
