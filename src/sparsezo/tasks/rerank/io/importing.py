"""n-best lists as memory-mapped arrays: imported once, and found again by content.

    store = import_nbest("train.nbest.xz")                      # references: train.ref
    rows = store.list(7)                                        # slice of candidates
    best = rows.start + np.argmax(store.features[rows] @ w)     # w in the order of store.names
    print(store.hypothesis(best), store.losses[best])

40,000 lists of 5,000 candidates do not fit in memory, and need not: training touches one list a step. A store is a
folder named by the content of the n-best and reference files; opening one compares the check sums of all of it:

    features.f32      float32 [candidates, features]     statistics.i16   BLEU statistics [candidates, 10]
    losses.f64        Delta = 1 - sentence BLEU          offsets.i64      [lists + 1], where lists begin
    hypotheses.txt    a line for each candidate          hypotheses.i64   where its lines begin, and the end
    references.1.txt  and further sets: lines of lists   meta.json        names, counts, sources; sums of all files

Lists take their references by id: list 7 the eighth line, whatever other lists there are. A store is written under
another name, by one process, and renamed whole when finished; an import that stops halfway leaves no store, and what is
left of one that was killed goes at the next start. A damaged store is built anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sparsezo import messages
from sparsezo.errors import DamagedError, DataError, SparsezoError, UsageError
from sparsezo.messages import counted
from sparsezo.storage import limits, locks
from sparsezo.storage.cache import cache_folder
from sparsezo.storage.files import named, numbered_lines, reading
from sparsezo.storage.sources import Source, new_sum
from sparsezo.tasks.base import Json
from sparsezo.tasks.rerank.io.nbest import NBestList, Segmentation, read_nbest
from sparsezo.tasks.rerank.metric import STATISTICS, list_statistics, loss_from_statistics

FORMAT = 2  # of the store; another one is built anew
META = "meta.json"
MEND = "remove the folder, and the lists are imported anew"
_HYPOTHESES = "hypotheses.txt"
_LONGEST = np.iinfo(np.int16).max  # tokens of a sentence that statistics.i16 can hold


def _layout(lists: int, candidates: int, features: int) -> dict[str, tuple[str, tuple[int, ...]]]:
    return {
        "features.f32": ("<f4", (candidates, features)),
        "statistics.i16": ("<i2", (candidates, len(STATISTICS))),
        "losses.f64": ("<f8", (candidates,)),
        "offsets.i64": ("<i8", (lists + 1,)),
        "hypotheses.i64": ("<i8", (candidates + 1,)),
    }


def _references(n: int) -> list[str]:
    return [f"references.{k}.txt" for k in range(1, n + 1)]


@dataclass(frozen=True, eq=False)
class NBestStore:
    """The lists of one n-best file with their losses. Arrays are read from disk as they are used."""

    folder: Path
    source: str  # the n-best file, for messages
    names: tuple[str, ...]  # of the features, as columns stand
    features: NDArray[np.float32]  # [candidates, features]
    statistics: NDArray[np.int16]  # [candidates, 10], columns: sparsezo.tasks.rerank.metric.STATISTICS
    losses: NDArray[np.float64]  # [candidates]
    offsets: NDArray[np.int64]  # [lists + 1]
    n_references: int  # for a sentence; 0: losses and statistics mean nothing
    reference_lines: int  # of a reference file: as many as there are lists, or more; 0 without
    segmentation: Segmentation  # marks that were left out
    text: NDArray[np.uint8]  # all hypotheses, UTF-8, each with a line end
    text_offsets: NDArray[np.int64]  # [candidates + 1]

    @classmethod
    def open(cls, folder: str | os.PathLike[str], source: str | None = None, *, check: bool = True) -> NBestStore:
        """A finished store; DataError where there is none, DamagedError where it is not as it was written.

        ``source``: the n-best file's name for messages, if not the one it had. ``check`` is for another process than
        the one that has just done so.
        """
        folder = Path(folder)
        meta = _read_meta(folder)
        _check_files(folder, meta["files"], sums=check)
        layout = _layout(meta["lists"], meta["candidates"], len(meta["names"]))
        maps = {name: np.memmap(folder / name, dtype, "r", shape=shape) for name, (dtype, shape) in layout.items()}
        return cls(
            folder=folder,
            source=source or meta["source"],
            names=tuple(meta["names"]),
            features=maps["features.f32"],
            statistics=maps["statistics.i16"],
            losses=maps["losses.f64"],
            offsets=np.array(maps["offsets.i64"], np.int64),
            n_references=meta["references"],
            reference_lines=meta["reference_lines"],
            segmentation=Segmentation(meta["segmentation_kept"], *meta["segmented"]),
            text=np.memmap(folder / _HYPOTHESES, np.uint8, "r"),
            text_offsets=maps["hypotheses.i64"],
        )

    def __reduce__(self) -> tuple[object, ...]:
        return partial(NBestStore.open, check=False), (self.folder, self.source)  # another process maps it itself

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_candidates(self) -> int:
        return len(self.losses)

    def list(self, i: int) -> slice:
        """The candidates of list ``i``, best model score first as the decoder wrote them."""
        if not 0 <= i < len(self):
            raise IndexError(f"list {i} of {len(self)}")
        return slice(int(self.offsets[i]), int(self.offsets[i + 1]))

    def hypothesis(self, j: int) -> str:
        """Candidate ``j``'s text."""
        if not 0 <= j < self.n_candidates:
            raise IndexError(f"candidate {j} of {self.n_candidates}")
        raw = self.text[self.text_offsets[j] : self.text_offsets[j + 1] - 1].tobytes()
        return raw.decode("utf-8")

    @cached_property
    def references(self) -> tuple[tuple[str, ...], ...]:
        """A tuple of lines, one for each list, for each set of references, as ``corpus_bleu`` takes them."""
        sets = []
        for file in (self.folder / name for name in _references(self.n_references)):
            with reading(file):
                raw = file.read_bytes()  # a first character that would be a byte order mark elsewhere stays
            sets.append(tuple(raw.decode("utf-8").split("\n")[:-1]))
        return tuple(sets)

    def require_references(self) -> None:
        """Refuse lists without references: their losses and statistics mean nothing."""
        if not self.n_references:
            what = "its lists have no references to compare with; name their file, or train with a `scorer`"
            raise DataError(self.source, what)

    def columns_of(self, names: Sequence[str]) -> NDArray[np.int64]:
        """Where each named feature stands in this store, -1 for those that it does not have (they are 0)."""
        place = {name: k for k, name in enumerate(self.names)}
        return np.array([place.get(name, -1) for name in names], np.int64)


def _read_meta(folder: Path) -> Json:
    path = folder / META
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise DataError(str(folder), f"is no finished n-best store; {MEND}") from None
    except OSError as error:
        raise DataError(str(path), f"cannot be read ({error.strerror or error})") from None
    try:
        meta: Json = json.loads(raw)
        if not isinstance(meta, dict) or meta.pop("sum", None) != _sum_of(meta):
            raise ValueError("the check sum is another")
    except (ValueError, RecursionError) as error:
        raise DamagedError(str(path), error, MEND) from None
    if meta["format"] != FORMAT:
        raise DataError(str(folder), f"is an n-best store of format {meta['format']}, not {FORMAT}; {MEND}")
    return meta


def _sum_of(head: Json) -> str:
    digest = new_sum()
    digest.update(json.dumps(head).encode())
    return str(digest.hexdigest())


def _check_files(folder: Path, files: Mapping[str, tuple[int, str]], *, sums: bool) -> None:
    def check(name: str) -> None:
        size, expected = files[name]
        try:
            with open(folder / name, "rb") as stream:
                found = os.fstat(stream.fileno()).st_size
                if found != size:
                    raise DamagedError(str(folder / name), f"{found} bytes, not {size}", MEND)
                if sums and hashlib.file_digest(stream, new_sum).hexdigest() != expected:
                    raise DamagedError(str(folder / name), "the check sum is another", MEND)
        except OSError as error:
            raise DamagedError(str(folder / name), error.strerror or error, MEND) from None

    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:  # hashing leaves the interpreter alone
        list(pool.map(check, sorted(files, key=lambda name: -files[name][0])))


# Writing


class _File:
    """A file being written, with the sum of what was meant to be written."""

    def __init__(self, path: Path) -> None:
        self.stream = open(path, "wb", buffering=1 << 20)  # noqa: SIM115
        self.size, self.sum = 0, new_sum()

    def write(self, data: bytes) -> None:
        self.stream.write(data)
        self.sum.update(data)
        self.size += len(data)


class StoreWriter:
    """Appends lists to the files of a store, until ``finish``."""

    def __init__(self, folder: Path, where: str, source_bytes: int, segmentation: Segmentation) -> None:
        self.folder, self.where, self.source_bytes = folder, where, source_bytes
        self.segmentation = segmentation
        self.files: dict[str, _File] = {}
        self.offsets = [0]
        self.ids: list[int] = []
        self.widths: list[tuple[int, int]] = []  # (rows, features) written, in order: new features widen later rows
        self.names: tuple[str, ...] = ()

    def __enter__(self) -> StoreWriter:
        self._write("hypotheses.i64", np.zeros(1, "<i8").tobytes())
        self._write(_HYPOTHESES, b"")
        return self

    def __exit__(self, *_: object) -> None:
        for file in self.files.values():
            with contextlib.suppress(OSError):  # after an error: the folder goes anyway
                file.stream.close()

    def add(self, nbest: NBestList, references: Sequence[str]) -> None:
        """Without references the statistics are 0, and nobody may read them: ``NBestStore.require_references``."""
        where = f"{self.where}:{nbest.line}"
        rows, columns = self.offsets[-1] + len(nbest), len(nbest.names)
        size = 4 * rows * columns
        if size > limits.ARRAYS and size > limits.SWELLING * self.source_bytes:
            # features are dense here: names that keep coming can only be sparse ones
            what = f"{rows:,} candidates and {columns:,} features so far take {size / 2**30:.1f} GB"
            limits.refuse(where, f"{what}: reranking is for dense features, are these sparse?")
        empty = np.zeros((len(nbest), len(STATISTICS)), np.int32)
        statistics = list_statistics(nbest.hypotheses, references) if references else empty
        if (longest := int(statistics.max())) > _LONGEST:
            what = f"list {nbest.id} has a sentence of {longest} tokens; at most {_LONGEST} are supported"
            raise DataError(where, what)
        texts = [f"{hypothesis}\n".encode() for hypothesis in nbest.hypotheses]
        ends = self.files[_HYPOTHESES].size + np.cumsum([len(text) for text in texts])
        self._write("features.f32", nbest.features.astype("<f4", copy=False).tobytes())
        self._write("statistics.i16", statistics.astype("<i2").tobytes())
        self._write("losses.f64", loss_from_statistics(statistics).astype("<f8", copy=False).tobytes())
        self._write("hypotheses.i64", ends.astype("<i8", copy=False).tobytes())
        self._write(_HYPOTHESES, b"".join(texts))
        self.offsets.append(rows)
        self.ids.append(nbest.id)
        self.names = nbest.names
        self.widths.append((len(nbest), columns))
        self.segmentation.count(nbest)

    def finish(self, sets: Sequence[Sequence[str]], sources: list[Json]) -> None:
        """Give all rows all columns, write what is left, and see to it that it is on the disk."""
        if not self.names:
            raise DataError(self.where, "names no feature on any line; a reranker needs some")
        if self.widths[0][1] < len(self.names):
            self._widen()
        self._write("offsets.i64", np.array(self.offsets, "<i8").tobytes())
        for name, lines in zip(_references(len(sets)), sets, strict=True):
            self._write(name, "".join(f"{lines[i]}\n" for i in self.ids).encode())
        for file in self.files.values():
            file.stream.flush()
            os.fsync(file.stream.fileno())
            file.stream.close()
        meta = {
            "names": self.names,
            "lists": len(self.ids),
            "candidates": self.offsets[-1],
            "references": len(sets),
            "reference_lines": len(sets[0]) if sets else 0,
            "segmentation_kept": self.segmentation.keep,
            "segmented": [self.segmentation.lists, self.segmentation.line],
            "source": self.where,
            "sources": sources,
            "files": {name: [file.size, file.sum.hexdigest()] for name, file in sorted(self.files.items())},
        }
        write_meta(self.folder, meta)

    def _write(self, name: str, data: bytes) -> None:
        if name not in self.files:
            self.files[name] = _File(self.folder / name)
        self.files[name].write(data)

    def _widen(self) -> None:
        narrow = self.folder / "features.narrow"
        self.files.pop("features.f32").stream.close()
        os.rename(self.folder / "features.f32", narrow)
        with open(narrow, "rb") as source:
            for rows, width in self.widths:
                values = np.frombuffer(source.read(4 * rows * width), "<f4").reshape(rows, width)
                self._write("features.f32", np.pad(values, ((0, 0), (0, len(self.names) - width))).tobytes())
        narrow.unlink()


def write_meta(folder: Path, meta: Json) -> None:
    """The head of a store, with a sum of its own."""
    head = {"format": FORMAT, **meta}
    (folder / META).write_text(json.dumps({**head, "sum": _sum_of(head)}, indent=1) + "\n", encoding="utf-8")


# Importing

_UNFINISHED = ".tmp"  # how the name of a folder ends that is being written

PathLike = str | os.PathLike[str]
Progress = Callable[[int, int], None]


def import_nbest(
    nbest_path: PathLike,
    reference_paths: PathLike | Sequence[PathLike] | None = None,
    store_dir: PathLike | None = None,
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
    root = Path(store_dir) if store_dir is not None else cache_folder("nbest")
    name = named(nbest_path)
    try:
        with contextlib.ExitStack() as stack:
            sources = [stack.enter_context(Source(path, root)) for path in paths]
            folder = root / _key(sources, keep_segmentation)
            locks.remove_abandoned(root.glob(f".*{_UNFINISHED}"))
            store = _found(folder, name)
            if store is None:
                _build(sources, folder, Segmentation(keep_segmentation), progress)
                store = NBestStore.open(folder, name)
    except OSError as error:
        what = f"{root}: the n-best store cannot be written ({error.strerror or error})"
        raise SparsezoError(f"{what}; free some space or set XDG_CACHE_HOME elsewhere") from error
    store.segmentation.say(store.source)
    if len(store) < store.reference_lines:
        lists = counted(len(store), "list")
        messages.say(f"{store.source}: {lists} for {store.reference_lines:,} references; they are taken by id")
    return store


def default_references(nbest_path: PathLike) -> Path:
    """NAME.ref for NAME.nbest, NAME.nbest.gz and NAME.nbest.xz."""
    path = Path(nbest_path)
    bare = path.name.removesuffix(".xz").removesuffix(".gz")
    if not bare.endswith(".nbest"):
        raise UsageError(
            f"{named(nbest_path)}: does not end in .nbest[.gz|.xz], so its references are not known; name their file"
        )
    return path.with_name(bare.removesuffix(".nbest") + ".ref")


def _reference_paths(
    nbest_path: PathLike, given: PathLike | Sequence[PathLike] | None, required: bool
) -> Sequence[PathLike]:
    if given is None:
        beside = default_references(nbest_path)
        if required or beside.exists():
            return [beside]
        messages.say(f"{nbest_path}: {beside} is not there, so these are lists without references")
        return []
    if not isinstance(given, str | os.PathLike) and not given:
        raise UsageError(f"{nbest_path}: no reference files are named; name at least one")
    return [given] if isinstance(given, str | os.PathLike) else given


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
        messages.say(f"{str(error).removesuffix(MEND)}it is built anew from {source}")
        return None


def _build(sources: Sequence[Source], folder: Path, segmentation: Segmentation, progress: Progress | None) -> None:
    source, *references = sources
    sets = _read_references(references)
    lines = len(sets[0]) if sets else None
    known_by = [{"path": os.path.abspath(each.path), "bytes": each.bytes, "blake2b": each.sum} for each in sources]
    folder.parent.mkdir(parents=True, exist_ok=True)
    with locks.temporary_folder(folder.parent, f".{folder.name[:12]}.", _UNFINISHED) as temporary:
        with (
            StoreWriter(temporary, str(source.path), source.bytes, segmentation) as writer,
            source.reading() as stream,
        ):
            for nbest in read_nbest(source.path, keep_segmentation=segmentation.keep, stream=stream):
                if lines is not None and nbest.id >= lines:
                    ends = f"{references[0].path} ends with line {lines}, that of list {lines - 1}"
                    raise DataError(f"{source.path}:{nbest.line}", f"list {nbest.id} has no reference: {ends}")
                writer.add(nbest, [each[nbest.id] for each in sets])
                if progress is not None:
                    progress(nbest.id + 1, lines or nbest.id + 1)
            writer.finish(sets, known_by)
        _put_in_place(temporary, folder)


def _read_references(sources: Sequence[Source]) -> list[list[str]]:
    """The lines of each reference file; as many in each."""
    sets: list[list[str]] = []
    for source in sources:
        with source.reading() as stream:
            lines = [line for _, line in numbered_lines(source.path, stream)]
        if not lines:
            raise DataError(str(source.path), "is empty; it needs a reference line for each list")
        if sets and len(lines) != len(sets[0]):
            what = f"has {len(lines)} lines but {sources[0].path} has {len(sets[0])}; give a line for each list"
            raise DataError(str(source.path), what)
        sets.append(lines)
    return sets


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
