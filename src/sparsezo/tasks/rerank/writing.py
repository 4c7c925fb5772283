"""Writing a store of n-best lists, list by list; see ``store`` for what is in it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sparsezo.errors import DataError
from sparsezo.storage import limits
from sparsezo.storage.sources import new_sum
from sparsezo.tasks.rerank.metric import STATISTICS, list_statistics, loss_from_statistics
from sparsezo.tasks.rerank.nbest import NBestList, Segmentation
from sparsezo.tasks.rerank.store import write_meta

_LONGEST = np.iinfo(np.int16).max  # tokens of a sentence that statistics.i16 can hold
_FEATURES = "features.f32"


class _File:
    """A file being written, with the sum of what was meant to be written."""

    def __init__(self, path: Path) -> None:
        self.stream = open(path, "wb", buffering=1 << 20)  # noqa: SIM115
        self.size, self.sum = 0, new_sum()

    def write(self, data: bytes) -> None:
        self.stream.write(data)
        self.sum.update(data)
        self.size += len(data)

    def close(self) -> None:
        self.stream.flush()
        os.fsync(self.stream.fileno())
        self.stream.close()


class StoreWriter:
    """Appends lists to the files of a store."""

    def __init__(self, folder: Path, where: str, source_bytes: int, segmentation: Segmentation) -> None:
        self.folder, self.where, self.source_bytes = folder, where, source_bytes
        self.segmentation = segmentation
        self.files: dict[str, _File] = {}
        self.offsets = [0]
        self.ids: list[int] = []
        self.widths: list[tuple[int, int]] = []  # (rows, features) written, in order: new features widen later rows
        self.names: tuple[str, ...] = ()

    def __enter__(self) -> StoreWriter:
        for name in (_FEATURES, "statistics.i16", "losses.f64", "hypotheses.txt", "hypotheses.i64"):
            self.files[name] = _File(self.folder / name)
        self.files["hypotheses.i64"].write(np.zeros(1, "<i8").tobytes())
        return self

    def __exit__(self, *_: object) -> None:
        for file in self.files.values():
            with contextlib.suppress(OSError):  # after an error: the folder goes anyway
                file.stream.close()

    def add(self, nbest: NBestList, references: Sequence[str]) -> None:
        """Without references the statistics are 0, and nobody may read them: ``NBestStore.require_references``."""
        where = f"{self.where}:{nbest.line}"
        self._check_size(where, nbest)
        text = ("\n".join(nbest.hypotheses) + "\n").encode("utf-8")
        statistics = list_statistics(text, references) if references else np.zeros((len(nbest), len(STATISTICS)), "<i2")
        longest = int(statistics.max())
        if longest > _LONGEST:
            raise DataError(
                where, f"list {nbest.id} has a sentence of {longest} tokens; at most {_LONGEST} are supported"
            )
        ends = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n")) + (1 + self.files["hypotheses.txt"].size)
        for name, data in (
            (_FEATURES, nbest.features.astype("<f4", copy=False)),
            ("statistics.i16", statistics.astype("<i2")),
            ("losses.f64", loss_from_statistics(statistics).astype("<f8", copy=False)),
            ("hypotheses.i64", ends.astype("<i8", copy=False)),
        ):
            self.files[name].write(data.tobytes())
        self.files["hypotheses.txt"].write(text)
        self.offsets.append(self.offsets[-1] + len(nbest))
        self.ids.append(nbest.id)
        self.names = nbest.names
        self.widths.append((len(nbest), len(nbest.names)))
        self.segmentation.count(nbest)

    def _check_size(self, where: str, nbest: NBestList) -> None:
        """Features are dense here: names that keep coming can only be sparse ones."""
        rows, columns = self.offsets[-1] + len(nbest), len(nbest.names)
        size = 4 * rows * columns
        if size > limits.ARRAYS and size > limits.SWELLING * self.source_bytes:
            what = f"{rows:,} candidates and {columns:,} features so far take {size / 2**30:.1f} GB"
            limits.refuse(where, f"{what}: reranking is for dense features, are these sparse?")

    def finish(self, sets: Sequence[Sequence[str]], sources: list[dict[str, Any]]) -> None:
        """Give all rows all columns, write what is left, and see to it that it is on the disk."""
        if not self.names:
            raise DataError(self.where, "names no feature on any line; a reranker needs some")
        if self.widths[0][1] < len(self.names):
            self._widen()
        self._write("offsets.i64", [np.array(self.offsets, "<i8").tobytes()])
        for k, lines in enumerate(sets, start=1):
            self._write(f"references.{k}.txt", (f"{lines[i]}\n".encode() for i in self.ids))
        for file in self.files.values():
            file.close()
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

    def _write(self, name: str, parts: Iterable[bytes]) -> None:
        self.files[name] = file = _File(self.folder / name)
        for part in parts:
            file.write(part)

    def _widen(self) -> None:
        narrow = self.folder / "features.narrow"
        self.files[_FEATURES].stream.close()
        os.rename(self.folder / _FEATURES, narrow)
        self.files[_FEATURES] = out = _File(self.folder / _FEATURES)
        with open(narrow, "rb") as source:
            for rows, width in self.widths:
                values = np.frombuffer(source.read(4 * rows * width), "<f4").reshape(rows, width)
                wide = np.zeros((rows, len(self.names)), "<f4")
                wide[:, :width] = values
                out.write(wide.tobytes())
        narrow.unlink()
