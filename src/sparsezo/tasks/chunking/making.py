"""Generated sentences as files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sparsezo.storage.packing import share, write_packed
from sparsezo.tasks.chunking.generate import chunking_columns, generate_chunking

ENDING = ".txt"
SIZE = 2000
FORMATS: tuple[str, ...] = ()
_PARTS = (2000, 500, 1000)  # sentences of an experiment's train, dev and test


def paths(target: Path, weights: Path) -> list[Path]:
    return [target]


def write(target: Path, weights: Path, n: int, seed: int, format: str | None) -> None:
    write_packed(target, (chunking_columns([sentence]) for sentence in generate_chunking(n, seed)))


def write_source(source: Any) -> None:
    train, dev, test = _PARTS
    share(source.train, generate_chunking(train + int(source.held_out or 0), 1), chunking_columns)
    for path, size, seed in ((source.dev, dev, 2), (source.test, test, 3)):
        if path and path != source.held_out:
            write(Path(path), Path(), size, seed, None)
