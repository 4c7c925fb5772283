"""n-best lists as memory-mapped arrays, built once and found again by content: reranking at the paper's scale.

40,000 lists of 5,000 candidates do not fit in memory, and need not: the import (``importing``) streams list by list,
and training touches one list a step. A store is a folder named by the content of the n-best and reference files:

    features.f32      float32 [candidates, features]     statistics.i16   BLEU statistics [candidates, 10]
    losses.f64        Delta = 1 - sentence BLEU          offsets.i64      [lists + 1], where lists begin
    hypotheses.txt    a line for each candidate          hypotheses.i64   where its lines begin, and the end
    references.1.txt  and further sets: lines of lists   meta.json        names, counts, sources; sums of all files

Opening one reads all of it once: every file must have its check sum, and what the compiled loop takes for granted
must hold.

    store = import_nbest("train.nbest.xz")                      # references: train.ref
    rows = store.list(7)                                        # slice of candidates
    best = rows.start + np.argmax(store.features[rows] @ w)     # w in the order of store.names
    print(store.hypothesis(best), store.losses[best])
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import DamagedError, DataError
from sparsezo.storage.files import reading
from sparsezo.storage.sources import new_sum
from sparsezo.tasks.rerank.metric import STATISTICS
from sparsezo.tasks.rerank.nbest import Segmentation

FORMAT = 2  # of the store; another one is built anew
META = "meta.json"
_MOST_META = 1 << 28  # bytes
_MOST = 1 << 48  # of anything that is counted
_BLOCK = 1 << 20  # candidates that are looked at together
MEND = "remove the folder, and the lists are imported anew"


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
        maps = {
            name: np.memmap(folder / name, dtype, "r", shape=shape)
            for name, (dtype, shape) in layout(meta["lists"], meta["candidates"], len(meta["names"])).items()
        }
        text = np.memmap(folder / "hypotheses.txt", np.uint8, "r", shape=(meta["files"]["hypotheses.txt"][0],))
        offsets = np.array(maps["offsets.i64"], np.int64)
        _check_arrays(folder, maps, offsets, text.size, whole=check)
        return cls(
            folder=folder,
            source=source or meta["source"],
            names=tuple(meta["names"]),
            features=maps["features.f32"],
            statistics=maps["statistics.i16"],
            losses=maps["losses.f64"],
            offsets=offsets,
            n_references=meta["references"],
            reference_lines=meta["reference_lines"],
            segmentation=Segmentation(meta["segmentation_kept"], *meta["segmented"]),
            text=text,
            text_offsets=maps["hypotheses.i64"],
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _mapped_elsewhere, (self.folder, self.source)  # another process maps the files itself

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
        raw = self.text[self.text_offsets[j] : self.text_offsets[j + 1] - 1].tobytes()
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise DamagedError(str(self.folder / "hypotheses.txt"), error.reason, MEND) from None

    @cached_property
    def references(self) -> tuple[tuple[str, ...], ...]:
        """A tuple of lines, one for each list, for each set of references, as ``corpus_bleu`` takes them."""
        files = [self.folder / f"references.{k}.txt" for k in range(1, self.n_references + 1)]
        sets = tuple(map(_lines, files))
        for file, lines in zip(files, sets, strict=True):
            if len(lines) != len(self):
                raise DamagedError(str(file), f"{len(lines)} lines for {len(self)} lists", MEND)
        return sets

    def require_references(self) -> None:
        """Losses and statistics mean nothing without."""
        if not self.n_references:
            raise DataError(
                self.source,
                "its lists have no references to compare with; name their file, or train with a `scorer`",
            )

    def columns_of(self, names: Sequence[str]) -> NDArray[np.int64]:
        """Where each named feature stands in this store, -1 for those that it does not have (they are 0)."""
        place = {name: k for k, name in enumerate(self.names)}
        return np.array([place.get(name, -1) for name in names], np.int64)


def _lines(file: Path) -> tuple[str, ...]:
    """As they were written: what would be a byte order mark elsewhere is a reference's first character here."""
    with reading(file):
        raw = file.read_bytes()
    try:
        return tuple(raw.decode("utf-8").split("\n")[:-1])
    except UnicodeDecodeError as error:
        raise DamagedError(str(file), error.reason, MEND) from None


def _mapped_elsewhere(folder: Path, source: str) -> NBestStore:
    return NBestStore.open(folder, source, check=False)


def layout(lists: int, candidates: int, features: int) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Type and shape of each array's file."""
    return {
        "features.f32": ("<f4", (candidates, features)),
        "statistics.i16": ("<i2", (candidates, len(STATISTICS))),
        "losses.f64": ("<f8", (candidates,)),
        "offsets.i64": ("<i8", (lists + 1,)),
        "hypotheses.i64": ("<i8", (candidates + 1,)),
    }


def write_meta(folder: Path, meta: Mapping[str, Any]) -> None:
    """The head of a store, with a sum of its own."""
    head = {"format": FORMAT, **meta}
    (folder / META).write_text(json.dumps({**head, "sum": _sum_of(head)}, indent=1) + "\n", encoding="utf-8")


def _sum_of(head: Mapping[str, Any]) -> str:
    digest = new_sum()
    digest.update(json.dumps(head).encode())
    return str(digest.hexdigest())


def _read_meta(folder: Path) -> dict[str, Any]:
    path = folder / META
    try:
        if path.stat().st_size > _MOST_META:
            raise DamagedError(str(path), "too large", MEND)
        raw = path.read_bytes()
    except FileNotFoundError:
        raise DataError(str(folder), f"is no finished n-best store; {MEND}") from None
    except OSError as error:
        raise DataError(str(path), f"cannot be read ({error.strerror or error})") from None
    try:
        meta = json.loads(raw)
        if not isinstance(meta, dict) or meta.pop("sum", None) != _sum_of(meta):
            raise ValueError("the check sum is another")
    except (ValueError, RecursionError) as error:
        raise DamagedError(str(path), error, MEND) from None
    if meta.get("format") != FORMAT:
        raise DataError(str(folder), f"is an n-best store of format {meta.get('format')}, not {FORMAT}; {MEND}")
    try:
        _check_meta(meta)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DamagedError(str(path), error, MEND) from None
    return meta


def _check_meta(meta: dict[str, Any]) -> None:
    """Types, and that the sizes are those of the shapes."""
    counts = [meta[name] for name in ("lists", "candidates", "references", "reference_lines")]
    least = 1 if meta["references"] or meta["reference_lines"] else 0  # with references, or without
    at_least_one = (*counts[:2], *(size for size, _ in meta["files"].values()))
    for count, fewest in (*((each, 1) for each in at_least_one), *((each, least) for each in counts[2:])):
        if type(count) is not int or not fewest <= count < _MOST:
            raise ValueError(f"a count of {count}")
    names = meta["names"]
    if not isinstance(names, list) or not names or not all(isinstance(name, str) and name for name in names):
        raise TypeError("names are not words")
    if len(set(names)) < len(names):
        raise ValueError("a feature is named twice")
    marks = meta["segmented"]
    if type(meta["segmentation_kept"]) is not bool or [type(count) for count in marks] != [int, int]:
        raise TypeError("marks of segmentation are not counted")
    if not isinstance(meta["source"], str):
        raise TypeError("the source has no name")
    lists, candidates, references, _ = counts
    sizes = {
        name: np.dtype(dtype).itemsize * int(np.prod(shape, dtype=object))
        for name, (dtype, shape) in layout(lists, candidates, len(names)).items()
    }
    if references > len(meta["files"]) or meta["files"].keys() != {
        *sizes,
        "hypotheses.txt",
        *(f"references.{k}.txt" for k in range(1, references + 1)),
    }:
        raise ValueError("it does not name the files that a store has")
    for name, size in sizes.items():
        if meta["files"][name][0] != size:
            raise ValueError(f"{name} has {meta['files'][name][0]} bytes, not {size}")


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


def _check_arrays(
    folder: Path, maps: Mapping[str, Any], offsets: NDArray[np.int64], text_size: int, *, whole: bool
) -> None:
    """What the loop takes for granted; ``whole``: also of every number in it."""
    n = len(maps["losses.f64"])
    for name, values, end in (("offsets.i64", offsets, n), ("hypotheses.i64", maps["hypotheses.i64"], text_size)):
        if values[0] != 0 or values[-1] != end or not (np.diff(values) > 0).all():
            raise DamagedError(str(folder / name), "its numbers do not rise from the beginning to the end", MEND)
    for begin in range(0, n, _BLOCK) if whole else ():
        losses = maps["losses.f64"][begin : begin + _BLOCK]
        if not ((losses >= 0) & (losses <= 1)).all():
            raise DamagedError(str(folder / "losses.f64"), "a loss is not within 0 and 1", MEND)
        if not np.isfinite(maps["features.f32"][begin : begin + _BLOCK]).all():
            raise DamagedError(str(folder / "features.f32"), "a feature is not finite", MEND)
