"""Writing files that are packed by their name's ending: the same bytes every time, whole or not there."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from sparsezo.storage.files import atomic_write

PACKED = (".gz", ".xz")


def bare_name(path: Path) -> str:
    """The name without the packing: train.nbest for train.nbest.xz."""
    return path.stem if path.suffix in PACKED else path.name


def write_packed(path: Path, texts: Iterable[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with _packing(path) as stream:
        stream.writelines(text.encode() for text in texts)


def share(paths: tuple[str, ...], items: list[Any], text: Callable[[list[Any]], str]) -> None:
    """The items in equal parts over the files."""
    for k, path in enumerate(paths):
        write_packed(Path(path), [text(items[k * len(items) // len(paths) : (k + 1) * len(items) // len(paths)])])


@contextmanager
def _packing(path: Path) -> Iterator[IO[bytes]]:
    with atomic_write(path) as out:
        if path.suffix == ".gz":
            with gzip.GzipFile(fileobj=out, mode="wb", mtime=0, filename="") as packed:
                yield cast(IO[bytes], packed)
        elif path.suffix == ".xz":
            with lzma.LZMAFile(out, "wb", preset=1) as squeezed:
                yield squeezed
        else:
            yield out
