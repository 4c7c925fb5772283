"""n-best lists as memory-mapped arrays, built once and found again by content: reranking at the paper's scale.

40,000 lists of 5,000 candidates do not fit in memory, and need not: the import streams list by list, and training
touches one list a step. A store is a folder named by the content of the n-best and reference files:

    features.f32      float32 [candidates, features]     statistics.i16   BLEU statistics [candidates, 10]
    losses.f64        Delta = 1 - sentence BLEU          offsets.npy      int64 [lists + 1], where lists begin
    hypotheses.txt    a line for each candidate          hypotheses.i64   where its lines begin, and the end
    references.1.txt  and further sets                   meta.json        names, sources with hashes, counts, sizes

It is written under another name and renamed whole when finished; an import that stops halfway leaves no store.

    store = import_nbest("train.nbest.xz")                      # references: train.ref
    rows = store.list(7)                                        # slice of candidates
    best = rows.start + np.argmax(store.features[rows] @ w)     # w in the order of store.names
    print(store.hypothesis(best), store.losses[best])
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import DataError, SparsezoError, UsageError
from sparsezo.storage.cache import cache_folder
from sparsezo.storage.files import numbered_lines, open_bytes
from sparsezo.tasks.rerank.metric import STATISTICS, list_statistics, loss_from_statistics
from sparsezo.tasks.rerank.nbest import NBestList, read_nbest

FORMAT = 1  # of the store; another one is built anew
_LONGEST = np.iinfo(np.int16).max  # tokens of a sentence that statistics.i16 can hold
_DEAD_AFTER = 3600.0  # seconds without a write until an unfinished import counts as abandoned

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


@dataclass(frozen=True, eq=False)
class NBestStore:
    """The lists of one n-best file with their losses. Arrays are read from disk as they are used."""

    folder: Path
    names: tuple[str, ...]  # of the features, as columns stand
    features: NDArray[np.float32]  # [candidates, features]
    statistics: NDArray[np.int16]  # [candidates, 10], columns: sparsezo.tasks.rerank.metric.STATISTICS
    losses: NDArray[np.float64]  # [candidates]
    offsets: NDArray[np.int64]  # [lists + 1]
    n_references: int  # for a sentence
    text: NDArray[np.uint8]  # all hypotheses, UTF-8, each with a line end
    text_offsets: NDArray[np.int64]  # [candidates + 1]

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> NBestStore:
        """A finished store; DataError where it is not one, or not whole."""
        folder = Path(folder)
        meta = _read_meta(folder)
        n, m = meta["candidates"], len(meta["names"])

        def mapped(name: str, dtype: Any, shape: tuple[int, ...]) -> Any:
            return np.memmap(folder / name, dtype, "r", shape=shape)

        return cls(
            folder=folder,
            names=tuple(meta["names"]),
            features=mapped("features.f32", "<f4", (n, m)),
            statistics=mapped("statistics.i16", "<i2", (n, len(STATISTICS))),
            losses=mapped("losses.f64", "<f8", (n,)),
            offsets=np.load(folder / "offsets.npy"),
            n_references=meta["n_references"],
            text=mapped("hypotheses.txt", np.uint8, (meta["sizes"]["hypotheses.txt"],)),
            text_offsets=mapped("hypotheses.i64", "<i8", (n + 1,)),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return NBestStore.open, (self.folder,)  # another process maps the files itself

    def __len__(self) -> int:
        """How many lists."""
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
        return self.text[self.text_offsets[j] : self.text_offsets[j + 1] - 1].tobytes().decode("utf-8")

    @cached_property
    def references(self) -> tuple[tuple[str, ...], ...]:
        """A tuple of lines for each set of references, as ``corpus_bleu`` takes them."""
        files = (self.folder / f"references.{k}.txt" for k in range(1, self.n_references + 1))
        return tuple(tuple(line for _, line in numbered_lines(file)) for file in files)

    def columns_of(self, names: Sequence[str]) -> NDArray[np.int64]:
        """Where each named feature stands in this store, -1 for those that it does not have (they are 0)."""
        place = {name: k for k, name in enumerate(self.names)}
        return np.array([place.get(name, -1) for name in names], np.int64)


def import_nbest(
    nbest_path: str | os.PathLike[str],
    reference_paths: Paths | None = None,
    store_dir: str | os.PathLike[str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> NBestStore:
    """The store of these files, built if it is not there yet.

    ``reference_paths``: one file or several, a line for each list; by default the n-best file's name with .ref for
    .nbest[.xz|.gz]. ``store_dir``: the folder that holds stores, by default sparsezo/nbest in the user's cache.
    ``progress(lists done, lists in all)`` is called after each list that is read.
    """
    nbest_path = Path(nbest_path)
    references = _reference_paths(nbest_path, reference_paths)
    hashes = [_content_hash(path) for path in (nbest_path, *references)]
    key = hashlib.blake2b("\n".join([f"format {FORMAT}", *hashes]).encode(), digest_size=20).hexdigest()
    root = Path(store_dir) if store_dir is not None else default_store_dir()
    with contextlib.suppress(DataError):  # not there, or not whole: build it
        return NBestStore.open(root / key)
    sets = read_references(references)
    sources = [
        {"path": str(path.absolute()), "bytes": path.stat().st_size, "blake2b": digest}
        for path, digest in zip((nbest_path, *references), hashes, strict=True)
    ]
    try:
        root.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(root)
        temporary = Path(tempfile.mkdtemp(prefix=f".{key[:12]}.", suffix=".tmp", dir=root))
        try:
            with _Writer(temporary) as writer:
                for nbest in _checked(nbest_path, references[0], len(sets[0])):
                    writer.add(nbest, f"{nbest_path}:{nbest.line}", [lines[nbest.id] for lines in sets])
                    if progress is not None:
                        progress(nbest.id + 1, len(sets[0]))
                writer.finish(str(nbest_path), sets, sources)
            _put_in_place(temporary, root / key)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    except OSError as error:
        reason = error.strerror or error
        raise SparsezoError(
            f"{root}: the n-best store cannot be written ({reason}); free some space or set XDG_CACHE_HOME elsewhere"
        ) from error
    return NBestStore.open(root / key)


def default_store_dir() -> Path:
    return cache_folder("nbest")


def default_references(nbest_path: str | os.PathLike[str]) -> Path:
    """NAME.ref for NAME.nbest, NAME.nbest.gz and NAME.nbest.xz."""
    path = Path(nbest_path)
    bare = path.name.removesuffix(".xz").removesuffix(".gz")
    if not bare.endswith(".nbest"):
        raise UsageError(f"{path}: does not end in .nbest[.gz|.xz], so its references are not known; name their file")
    return path.with_name(bare.removesuffix(".nbest") + ".ref")


def read_references(paths: Sequence[str | os.PathLike[str]]) -> list[list[str]]:
    """The lines of each reference file; as many in each."""
    sets = [[line for _, line in numbered_lines(path)] for path in paths]
    for path, lines in zip(paths, sets, strict=True):
        if not lines:
            raise DataError(str(path), "is empty; it needs a reference line for each list")
        if len(lines) != len(sets[0]):
            raise DataError(
                str(path), f"has {len(lines)} lines but {paths[0]} has {len(sets[0])}; give a line for each list"
            )
    return sets


def _reference_paths(nbest_path: Path, given: Paths | None) -> list[Path]:
    if given is None:
        return [default_references(nbest_path)]
    paths = [Path(given)] if isinstance(given, str | os.PathLike) else [Path(path) for path in given]
    if not paths:
        raise UsageError(f"{nbest_path}: no reference files are named; name at least one")
    return paths


def _checked(path: Path, reference_path: Path, n_lists: int) -> Iterator[NBestList]:
    """The file's lists, which must be 0, 1, ... to the last line of the references."""
    expected = 0
    for nbest in read_nbest(path):
        where = f"{path}:{nbest.line}"
        if nbest.id >= n_lists:
            raise DataError(where, f"list {nbest.id} has no reference: {reference_path} ends with line {n_lists}")
        if nbest.id > expected:
            raise DataError(
                where,
                f"list {expected} is missing before list {nbest.id}; line {expected + 1} of {reference_path} needs it",
            )
        expected += 1
        yield nbest
    if expected < n_lists:
        raise DataError(
            str(path), f"ends with list {expected - 1} but {reference_path} has {n_lists} lines; give a list for each"
        )


def _content_hash(path: Path) -> str:
    """Of the bytes as they lie on disk, compressed or not."""
    with open_bytes(path):  # its messages for what cannot be opened
        pass
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=20)).hexdigest()


def _read_meta(folder: Path) -> dict[str, Any]:
    try:
        meta: dict[str, Any] = json.loads((folder / "meta.json").read_bytes())
        if meta.get("format") != FORMAT:
            raise DataError(
                str(folder), f"is an n-best store of format {meta.get('format')}, not {FORMAT}; import anew"
            )
        for name, size in meta["sizes"].items():
            found = (folder / name).stat().st_size
            if found != size:
                raise DataError(str(folder / name), f"has {found} bytes, not {size}; remove the folder and import anew")
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise DataError(str(folder), f"is no finished n-best store ({error}); import the lists anew") from None
    return meta


def _put_in_place(temporary: Path, folder: Path) -> None:
    with contextlib.suppress(DataError):
        NBestStore.open(folder)
        return  # another process was quicker with the same content
    if folder.exists():
        shutil.rmtree(folder)
    os.rename(temporary, folder)


def _remove_abandoned(root: Path) -> None:
    """Unfinished imports of processes that were killed."""
    for folder in root.glob(".*.tmp"):
        with contextlib.suppress(OSError):
            latest = max(path.stat().st_mtime for path in (folder, *folder.iterdir()))
            if time.time() - latest > _DEAD_AFTER:
                shutil.rmtree(folder, ignore_errors=True)


class _Writer:
    """Appends lists to the files of a store."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.streams: dict[str, IO[bytes]] = {}
        self.offsets = [0]
        self.text_end = 0
        self.widths: list[tuple[int, int]] = []  # (rows, features) written, in order: new features widen later rows
        self.names: tuple[str, ...] = ()

    def __enter__(self) -> _Writer:
        names = ("features.f32", "statistics.i16", "losses.f64", "hypotheses.txt", "hypotheses.i64")
        self.streams = {name: open(self.folder / name, "wb", buffering=1 << 20) for name in names}  # noqa: SIM115
        self.streams["hypotheses.i64"].write(np.zeros(1, "<i8").tobytes())
        return self

    def __exit__(self, *_: object) -> None:
        for stream in self.streams.values():
            with contextlib.suppress(OSError):  # after an error: the folder goes anyway
                stream.close()

    def add(self, nbest: NBestList, where: str, references: Sequence[str]) -> None:
        text = ("\n".join(nbest.hypotheses) + "\n").encode("utf-8")
        statistics = list_statistics(text, references)
        longest = int(statistics.max())
        if longest > _LONGEST:
            raise DataError(
                where, f"list {nbest.id} has a sentence of {longest} tokens; at most {_LONGEST} are supported"
            )
        ends = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n")) + (1 + self.text_end)
        for name, data in (
            ("features.f32", nbest.features.astype("<f4", copy=False)),
            ("statistics.i16", statistics.astype("<i2")),
            ("losses.f64", loss_from_statistics(statistics).astype("<f8", copy=False)),
            ("hypotheses.i64", ends.astype("<i8", copy=False)),
        ):
            self.streams[name].write(data.tobytes())
        self.streams["hypotheses.txt"].write(text)
        self.text_end += len(text)
        self.offsets.append(self.offsets[-1] + len(nbest))
        self.names = nbest.names
        self.widths.append((len(nbest), len(nbest.names)))

    def finish(self, path: str, sets: list[list[str]], sources: list[dict[str, Any]]) -> None:
        """Give all rows all columns, write what is left, and see to it that it is on the disk."""
        if not self.names:
            raise DataError(path, "names no feature on any line; a reranker needs some")
        for stream in self.streams.values():
            stream.close()
        if self.widths[0][1] < len(self.names):
            self._widen()
        np.save(self.folder / "offsets.npy", np.array(self.offsets, np.int64))
        for k, lines in enumerate(sets, start=1):
            (self.folder / f"references.{k}.txt").write_bytes("".join(line + "\n" for line in lines).encode("utf-8"))
        meta = {
            "format": FORMAT,
            "names": self.names,
            "lists": len(self.offsets) - 1,
            "candidates": self.offsets[-1],
            "n_references": len(sets),
            "sources": sources,
            "sizes": {file.name: file.stat().st_size for file in sorted(self.folder.iterdir())},
        }
        (self.folder / "meta.json").write_text(json.dumps(meta, indent=1) + "\n", encoding="utf-8")
        for file in self.folder.iterdir():
            with open(file, "rb") as written:
                os.fsync(written.fileno())

    def _widen(self) -> None:
        narrow = self.folder / "features.narrow"
        os.rename(self.folder / "features.f32", narrow)
        with open(narrow, "rb") as source, open(self.folder / "features.f32", "wb") as out:
            for rows, width in self.widths:
                values = np.frombuffer(source.read(4 * rows * width), "<f4").reshape(rows, width)
                wide = np.zeros((rows, len(self.names)), "<f4")
                wide[:, :width] = values
                out.write(wide.tobytes())
        narrow.unlink()
