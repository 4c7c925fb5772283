"""From n-best lists and references to a store, built if it is not there yet.

    store = import_nbest("train.nbest.xz")                      # references: train.ref
    store = import_nbest("-", "dev.ref", keep_segmentation=True)

Lists take their references by id: list 7 the eighth line, whatever other lists there are. A store is written under
another name, by one process, and renamed whole when finished; an import that stops halfway leaves no store, and what is
left of one that was killed goes at the next start. A damaged store is built anew.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from sparsezo import notes
from sparsezo.errors import DataError, SparsezoError, UsageError
from sparsezo.storage import limits, locks
from sparsezo.storage.cache import cache_folder
from sparsezo.storage.files import named, numbered_lines
from sparsezo.storage.sources import Source, new_sum
from sparsezo.tasks.rerank.nbest import NBestList, Segmentation, read_nbest
from sparsezo.tasks.rerank.store import FORMAT, MEND, NBestStore
from sparsezo.tasks.rerank.writing import StoreWriter

_UNFINISHED = ".tmp"  # how the name of a folder ends that is being written
_MOST_REFERENCE = 1 << 20  # characters of one line

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
Progress = Callable[[int, int], None]


def import_nbest(
    nbest_path: str | os.PathLike[str],
    reference_paths: Paths | None = None,
    store_dir: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    *,
    keep_segmentation: bool = False,
    references_required: bool = True,
) -> NBestStore:
    """The store of these files, built if it is not there yet. Each may be a pipe; ``-`` is standard input.

    ``reference_paths``: one file or several, line i for list i; by default the n-best file's name with .ref for
    .nbest[.xz|.gz]. ``store_dir``: the folder that holds stores, by default sparsezo/nbest in the user's cache.
    ``progress(done, in all)`` is called after each list that is read. ``keep_segmentation``: Moses' marks stay.
    Without ``references_required`` lists are taken without references where none are named and no .ref is there.
    """
    paths = [nbest_path, *_reference_paths(nbest_path, reference_paths, references_required)]
    root = Path(store_dir) if store_dir is not None else default_store_dir()
    with _writing(root), contextlib.ExitStack() as stack:
        sources = [stack.enter_context(Source(path, root)) for path in paths]
        folder = root / _key(sources, keep_segmentation)
        locks.remove_abandoned(root.glob(f".*{_UNFINISHED}"))
        name = named(nbest_path)
        store = _found(folder, name)
        if store is None:
            _build(sources, folder, Segmentation(keep_segmentation), progress)
            store = NBestStore.open(folder, name)
    store.segmentation.say(store.source)
    if len(store) < store.reference_lines:
        found = f"{len(store):,} list{'s' * (len(store) > 1)}"
        notes.say(f"{store.source}: {found} for {store.reference_lines:,} references; they are taken by id")
    return store


@contextlib.contextmanager
def _writing(root: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise SparsezoError(
            f"{root}: the n-best store cannot be written ({reason}); free some space or set XDG_CACHE_HOME elsewhere"
        ) from error


def _key(sources: Sequence[Source], keep_segmentation: bool) -> str:
    """All that decides what is in a store."""
    marks = ["segmentation kept"] if keep_segmentation else []
    digest = new_sum()
    digest.update("\n".join([f"format {FORMAT}", *marks, *(source.sum for source in sources)]).encode())
    return str(digest.hexdigest())


def _found(folder: Path, source: str) -> NBestStore | None:
    if not folder.exists():
        return None
    try:
        return NBestStore.open(folder, source)
    except DataError as error:
        notes.say(f"{str(error).removesuffix(MEND)}it is built anew from {source}")
        return None


def _build(sources: Sequence[Source], folder: Path, segmentation: Segmentation, progress: Progress | None) -> None:
    nbest, *references = sources
    sets = read_references(references)
    lines = len(sets[0]) if sets else None
    known_by = [
        {"path": os.path.abspath(source.path), "bytes": source.bytes, "blake2b": source.sum} for source in sources
    ]
    folder.parent.mkdir(parents=True, exist_ok=True)
    with locks.temporary_folder(folder.parent, f".{folder.name[:12]}.", _UNFINISHED) as temporary:
        with StoreWriter(temporary, str(nbest.path), nbest.bytes, segmentation) as writer:
            for found in _checked(nbest, segmentation.keep, references, lines):
                writer.add(found, [each[found.id] for each in sets])
                if progress is not None:
                    progress(found.id + 1, lines or found.id + 1)
            writer.finish(sets, known_by)
        _put_in_place(temporary, folder)


def default_store_dir() -> Path:
    return cache_folder("nbest")


def default_references(nbest_path: str | os.PathLike[str]) -> Path:
    """NAME.ref for NAME.nbest, NAME.nbest.gz and NAME.nbest.xz."""
    path = Path(nbest_path)
    bare = path.name.removesuffix(".xz").removesuffix(".gz")
    if not bare.endswith(".nbest"):
        raise UsageError(
            f"{named(nbest_path)}: does not end in .nbest[.gz|.xz], so its references are not known; name their file"
        )
    return path.with_name(bare.removesuffix(".nbest") + ".ref")


def read_references(sources: Sequence[Source]) -> list[list[str]]:
    """The lines of each reference file; as many in each."""
    sets = [_lines(source) for source in sources]
    for source, lines in zip(sources, sets, strict=True):
        if not lines:
            raise DataError(str(source.path), "is empty; it needs a reference line for each list")
        if len(lines) != len(sets[0]):
            what = f"has {len(lines)} lines but {sources[0].path} has {len(sets[0])}; give a line for each list"
            raise DataError(str(source.path), what)
    return sets


def _lines(source: Source) -> list[str]:
    lines, size = [], 0
    with source.reading() as stream:
        for number, line in numbered_lines(source.path, stream):
            where = f"{source.path}:{number}"
            if len(line) > _MOST_REFERENCE:
                limits.refuse(where, f"a reference of {len(line):,} characters: is this a text, a sentence a line?")
            if size <= limits.ARRAYS < size + len(line):
                limits.refuse(where, f"more than {limits.ARRAYS >> 30} GB of references so far: is it the right file?")
            size += len(line)
            lines.append(line)
    return lines


def _reference_paths(
    nbest_path: str | os.PathLike[str], given: Paths | None, required: bool
) -> list[str | os.PathLike[str]]:
    if given is None:
        beside = default_references(nbest_path)
        if required or beside.exists():
            return [beside]
        notes.say(f"{nbest_path}: {beside} is not there, so these are lists without references")
        return []
    paths = [given] if isinstance(given, str | os.PathLike) else list(given)
    if not paths:
        raise UsageError(f"{nbest_path}: no reference files are named; name at least one")
    return paths


def _checked(
    source: Source, keep_segmentation: bool, references: Sequence[Source], n: int | None
) -> Iterator[NBestList]:
    """The file's lists, each of which must have its line in the references, where there are any."""
    with source.reading() as stream:
        for nbest in read_nbest(source.path, keep_segmentation=keep_segmentation, stream=stream):
            if n is not None and nbest.id >= n:
                what = (
                    f"list {nbest.id} has no reference: {references[0].path} ends with line {n}, that of list {n - 1}"
                )
                raise DataError(f"{source.path}:{nbest.line}", what)
            yield nbest


def _put_in_place(temporary: Path, folder: Path) -> None:
    turn = folder.with_name(f"{folder.name}.turn")  # not the folder's own lock, which goes with it
    with locks.locked(turn, wait=True):  # of several that were at it the first one's stays
        with contextlib.suppress(DataError):
            NBestStore.open(folder)
            return
        if folder.exists():
            shutil.rmtree(folder)
        os.rename(temporary, folder)
        (folder / locks.FOLDER_LOCK).unlink(missing_ok=True)
