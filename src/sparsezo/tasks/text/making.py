"""Generated documents as files."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sparsezo.storage.packing import share, write_packed
from sparsezo.tasks.text.generate import generate_text, generate_texts, write_svmlight

ENDING = ".tsv"
SIZE = 4000
FORMATS = ("tsv", "svmlight")
_PARTS = (4000, 1000, 2000)  # documents of an experiment's train, dev and test


def paths(target: Path, weights: Path) -> list[Path]:
    return [target]


def write(target: Path, weights: Path, n: int, seed: int, format: str | None) -> None:
    if format == "svmlight":
        some = generate_text(n, seed)
        write_svmlight(target, some.vectors, some.names())
    else:
        write_packed(target, (_tsv([pair]) for pair in generate_texts(n, seed)))


def write_source(source: Any) -> None:
    train, dev, test = _PARTS
    train += int(source.held_out or 0)
    documents = generate_texts(train + dev + test, seed=1)  # one seed: another would be another language
    share(source.train, list(itertools.islice(documents, train)), _tsv)
    for path, size in ((source.dev, dev), (source.test, test)):
        some = list(itertools.islice(documents, size))
        if path and path != source.held_out:
            write_packed(Path(path), [_tsv(some)])


def _tsv(pairs: Iterable[tuple[str, str]]) -> str:
    return "".join(f"{label}\t{text}\n" for label, text in pairs)
