"""Reading and writing files of documents, whatever their format."""

from __future__ import annotations

import contextlib
import gzip
import io
import lzma
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any, cast

from sparsezo.errors import DataError, UsageError, quoted
from sparsezo.storage.files import atomic_write, open_sniffed, reading, with_head
from sparsezo.tasks.chunking.documents import Document
from sparsezo.tasks.chunking.formats.brat import read_brat, write_brat
from sparsezo.tasks.chunking.formats.columns import read_columns, write_columns
from sparsezo.tasks.chunking.formats.detecting import (
    COLUMNS,
    CRFSUITE,
    SNIFFED,
    TABLE,
    TEXT,
    UNKNOWN,
    detect_format,
    ending,
)
from sparsezo.tasks.chunking.formats.docbin import read_docbin, write_docbin
from sparsezo.tasks.chunking.formats.hugging_face import read_datasets, write_json_rows, write_parquet
from sparsezo.tasks.chunking.formats.jsonl import read_jsonl, write_jsonl
from sparsezo.tasks.chunking.formats.label_studio import read_label_studio, write_label_studio
from sparsezo.tasks.chunking.formats.places import check_document
from sparsezo.tasks.chunking.formats.prodigy import read_prodigy, write_prodigy
from sparsezo.tasks.chunking.formats.remarks import Remarks

FORMATS = ("jsonl", "conll", "brat", "spacy", "prodigy", "label-studio", "datasets")

_READERS: dict[str, Callable[[str | os.PathLike[str], IO[bytes], Remarks], Iterator[Document]]] = {
    "jsonl": read_jsonl,
    "conll": read_columns,
    COLUMNS: read_columns,
    "brat": read_brat,
    "spacy": read_docbin,
    "prodigy": read_prodigy,
    "label-studio": read_label_studio,
    "datasets": read_datasets,
}
_REFUSED = {
    TEXT: "is plain text, without spans; say with `format` which it is",
    TABLE: "is a table; of tables only texts can be taken: write its column of texts as JSON lines, or one text a line",
    CRFSUITE: "has CRFsuite's attributes and no words, so there is no text to be made of it",
    UNKNOWN: f"has none of the formats {', '.join(FORMATS)}; say with `format` which it is",
}


def read_documents(
    path: str | os.PathLike[str], format: str | None = None, stream: IO[bytes] | None = None
) -> Iterator[Document]:
    """The documents of a file or folder, one after the other, as they are read.

    ``format``: one of ``FORMATS``; by default found by name and content. ``stream``: the open file, where somebody
    has opened it already; ``path`` then only names it. ``-`` is standard input. What was left out or guessed is said
    when all is read.
    """
    if format is not None and format not in _READERS:
        raise UsageError(f"`format` {quoted(format)}: of documents with spans choose one of {', '.join(FORMATS)}")
    return _reading(path, format, stream)


def _reading(path: str | os.PathLike[str], format: str | None, stream: IO[bytes] | None) -> Iterator[Document]:
    remarks = Remarks(path)
    with contextlib.ExitStack() as stack:
        if stream is None and (os.path.isdir(path) or _is_beside(path, format)):
            found = format or detect_format(path)
            if found not in ("brat", "datasets"):
                raise DataError(str(path), "is a folder; of folders brat and datasets can be read: name a file in it")
            reader: Any = read_brat if found == "brat" else read_datasets
            yield from reader(path, None, remarks)
        else:
            if stream is None:
                head, stream = stack.enter_context(open_sniffed(path, SNIFFED))
            else:
                with reading(path):
                    head = stream.read(SNIFFED)
                stream = with_head(head, cast(IO[bytes], _Lent(stream)))
            found = format or detect_format(path, head)
            if found in _REFUSED:
                raise DataError(str(path), _REFUSED[found])
            yield from _READERS[found](path, stream, remarks)
    remarks.say()


class _Lent(io.RawIOBase):
    """A stream that somebody else opened, and closes."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        found = self._stream.read(len(buffer))
        buffer[: len(found)] = found
        return len(found)


def _is_beside(path: str | os.PathLike[str], format: str | None) -> bool:
    """One document of brat: the other of NAME.txt and NAME.ann stands beside it."""
    return Path(path).suffix == ".ann" or (format == "brat" and Path(path).suffix == ".txt")


def write_documents(
    documents: Iterable[Document],
    format: str,
    target: str | os.PathLike[str] | IO[bytes] | IO[str],
    *,
    tokens: bool = False,
) -> None:
    """Write documents in one of ``FORMATS``, as they come.

    ``target``: a path (.gz and .xz are packed; brat: a folder, or a .zip; datasets: JSON lines, or .parquet), or a
    stream of bytes or text. A file is whole or not there at all. ``tokens``: jsonl has them, too. What a format
    cannot keep is said.
    """
    if format not in FORMATS:
        raise UsageError(f"`format` {quoted(format)}: choose one of {', '.join(FORMATS)}")
    on_disk = isinstance(target, str | os.PathLike)
    remarks = Remarks(target if on_disk else format)  # type: ignore[arg-type]
    checked = _checked(documents)
    if format == "brat":
        write_brat(checked, target if on_disk else _bytes_of(target, format), remarks)
    else:
        parquet = format == "datasets" and on_disk and ending(target) == ".parquet"  # type: ignore[arg-type]
        writers: dict[str, Callable[[Iterable[tuple[str, Document]], IO[bytes], Remarks], None]] = {
            "jsonl": lambda documents, stream, _: write_jsonl(documents, stream, tokens),
            "conll": write_columns,
            "spacy": write_docbin,
            "prodigy": write_prodigy,
            "label-studio": write_label_studio,
            "datasets": write_parquet if parquet else write_json_rows,
        }
        with _opened(target) if on_disk else contextlib.nullcontext(_bytes_of(target, format)) as stream:
            writers[format](checked, stream, remarks)
    remarks.say()


def _checked(documents: Iterable[Document]) -> Iterator[tuple[str, Document]]:
    """Each with its name for messages."""
    for number, document in enumerate(documents, start=1):
        where = f"document {number}" + ("" if document.id is None else f" ('{quoted(document.id)}')")
        check_document(document, where)
        yield where, document


@contextlib.contextmanager
def _opened(path: Any) -> Iterator[IO[bytes]]:
    with atomic_write(path) as stream:
        if Path(path).suffix == ".gz":  # no name and no time of day in it: the same documents give the same file
            with gzip.GzipFile("", "wb", fileobj=stream, mtime=0) as packed:
                yield cast(IO[bytes], packed)
        elif Path(path).suffix == ".xz":
            with lzma.open(stream, "wb") as packed_xz:
                yield packed_xz
        else:
            yield stream


class _Encoded(io.RawIOBase):
    """A stream of text as one of bytes; what is written to it is whole lines."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._stream.write(bytes(data).decode("utf-8"))
        return len(data)


def _bytes_of(target: Any, format: str) -> Any:
    if not isinstance(target, io.TextIOBase):
        return target
    if hasattr(target, "buffer"):
        target.flush()
        return target.buffer
    if format in ("brat", "spacy"):
        raise UsageError(f"{format} is no text: give a path, or a stream of bytes")
    return _Encoded(cast(IO[str], target))
