"""svmlight / LIBSVM files, RCV1's published vector format: ``label index:value ... # comment``, one document a line.

Indices stand in ``Vectors`` as they stand in the file, counted from 1 or from 0; ``indices.py`` makes columns of them.
``qid:N`` after the label, as rankers' files have it, is passed over. A block of bytes at a time is parsed by one
compiled pass straight into arrays, so memory is that of the result. ``parse_line`` is the same grammar written to be
obvious: it is what the compiled pass is tested against, and it says what is wrong with the line that stopped it.

    file = read_svmlight("train.dat.gz")
    file.vectors.indptr, file.vectors.indices, file.vectors.values, file.labels
    write_svmlight("copy.dat", file.vectors, file.labels)
"""

from __future__ import annotations

import gzip
import io
import lzma
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from sparsezo import notes
from sparsezo.errors import DataError, UsageError, quoted
from sparsezo.storage import limits
from sparsezo.storage.files import atomic_write, open_bytes, reading, refuse_line
from sparsezo.tasks.text.svmlight_kernel import MAX_INDEX, TOO_LARGE, parse_block, print_rows

_BLOCK = 1 << 22
_NUMBER = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NOT_FINITE = re.compile(rb"[+-]?(?:nan|inf(?:inity)?)", re.IGNORECASE)
_BLANKS = re.compile(rb"[ \t\r]+")
_QUERY = re.compile(rb"qid:[0-9]+")
_NO_LABEL = re.compile(rb"^(?=[ \t\r]*-?[0-9]+:)", re.MULTILINE)


@dataclass(frozen=True, eq=False)
class Vectors:
    """Sparse rows: row i is ``indices[indptr[i]:indptr[i + 1]]``, rising, with ``values`` that are not 0."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.integer[Any]]  # int32 where they fit, else int64
    values: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def take(self, rows: NDArray[np.int64]) -> Vectors:
        """The given rows, in the given order."""
        sizes = np.diff(self.indptr)[rows]
        indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        at = np.arange(indptr[-1]) + np.repeat(self.indptr[rows] - indptr[:-1], sizes)
        return Vectors(indptr, self.indices[at], self.values[at])


@dataclass(frozen=True, eq=False)
class SvmlightFile:
    """What one file holds: ``lines[i]`` is the line of document i."""

    vectors: Vectors
    labels: list[str]
    lines: NDArray[np.int64]


def read_svmlight(path: str | os.PathLike[str], stream: IO[bytes] | None = None) -> SvmlightFile:
    """Read one file, plain, .gz or .xz; blank lines and comment lines are passed over.

    ``stream``: the open file, where somebody has opened it already; ``path`` then only names it.
    """
    indices: list[NDArray[np.integer[Any]]] = []
    values: list[NDArray[np.float32]] = []
    sizes: list[NDArray[np.int64]] = []
    lines: list[NDArray[np.int64]] = []
    labels: list[str] = []
    names: dict[bytes, str] = {}
    before = with_query = 0  # lines of the blocks before this one; documents with a qid
    for block in _whole_lines(path, stream):
        text = np.frombuffer(block, np.uint8)
        newlines = int(np.count_nonzero(text == 10))
        pairs = int(np.count_nonzero(text == 58))
        some_indices, some_values = np.empty(pairs, np.int64), np.empty(pairs, np.float32)
        ends, line_of = np.empty(newlines, np.int64), np.empty(newlines, np.int64)
        label_at = np.empty((newlines, 2), np.int64)
        documents, queries, wrong = parse_block(text, some_indices, some_values, ends, line_of, label_at)
        if wrong >= 0:
            raise DataError(f"{path}:{before + wrong + 1}", _complaint(block.split(b"\n", wrong + 1)[wrong]))
        filled = int(ends[documents - 1]) if documents else 0
        indices.append(_narrow(some_indices[:filled]))
        values.append(some_values[:filled].copy())
        sizes.append(np.diff(ends[:documents], prepend=0))
        lines.append(line_of[:documents] + (before + 1))
        for document, (start, stop) in enumerate(label_at[:documents].tolist()):
            raw = block[start:stop]
            if raw not in names:
                names[raw] = _decoded(raw, f"{path}:{lines[-1][document]}")
            labels.append(names[raw])
        before += newlines
        with_query += queries
    if not labels:
        raise DataError(str(path), "is empty; an svmlight file has a line 'label index:value ...' for each document")
    if with_query:
        notes.say(f"{path}: qid: of {with_query:,} documents is passed over; each document is classified by itself")
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate(sizes))])
    joined = np.concatenate(indices)
    indices.clear()  # before the values are joined: the peak is one and a half times the result, not twice
    return SvmlightFile(Vectors(indptr, joined, np.concatenate(values)), labels, np.concatenate(lines))


class _WithLabels(io.RawIOBase):
    """Lines that begin with a pair get a label before it, for the parser; others stay as they are."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._inside, self._first = stream, False, True

    def read(self, size: int = -1) -> bytes:
        """Whole lines, so often more than ``size``, unless they are too long."""
        data = self._stream.read(size) + self._stream.readline(_BLOCK)
        if self._first:
            data, self._first = data.removeprefix(b"\xef\xbb\xbf"), False
        begun = data.find(b"\n") + 1 or len(data) if self._inside else 0  # the rest of a line
        self._inside = bool(data) and not data.endswith(b"\n")
        return data[:begun] + _NO_LABEL.sub(b"0 ", data[begun:])


def with_labels(stream: IO[bytes]) -> IO[bytes]:
    """A file of which nobody needs the labels, so that lines may have none."""
    return cast(IO[bytes], _WithLabels(stream))


def _narrow(indices: NDArray[np.int64]) -> NDArray[np.integer[Any]]:
    """A copy, of half the size where that is enough."""
    return indices.astype(np.int32 if indices.max(initial=0) < 2**31 else np.int64)


def parse_line(line: bytes) -> tuple[bytes, list[tuple[int, float]]] | None:
    """Label and (index, value) pairs, or None where no document is; ValueError says what is wrong."""
    content = line.split(b"#", 1)[0].strip(b" \t\r\n")
    if not content:
        return None
    label, *fields = _BLANKS.split(content)
    if fields and _QUERY.fullmatch(fields[0]):
        del fields[0]
    if b":" in label:
        raise ValueError(f"no label before '{quoted(label)}'; begin each line with the document's label")
    if b"," in label:
        raise ValueError(f"'{quoted(label)}' is several labels; keep only documents with exactly one")
    seen: dict[int, float] = {}
    for field in fields:
        index, value = _parse_pair(field)
        if index in seen:
            raise ValueError(f"index {index} is there twice; each index may occur once in a line")
        seen[index] = value
    return label, [(index, value) for index, value in sorted(seen.items()) if np.float32(value) != 0]


def _parse_pair(field: bytes) -> tuple[int, float]:
    left, colon, right = field.partition(b":")
    if re.fullmatch(rb"-[0-9]+", left) and colon:
        raise ValueError(f"index {quoted(left)} in '{quoted(field)}' is below 0; number the features from 1")
    if not re.fullmatch(rb"[0-9]+", left) or not colon:
        raise ValueError(f"'{quoted(field)}' is not index:value; is the line cut off?")
    if len(left.lstrip(b"0")) > len(str(MAX_INDEX)):
        raise ValueError(f"index {quoted(left)} is above {MAX_INDEX}; number the features from 1")
    if _NOT_FINITE.fullmatch(right):
        raise ValueError(f"value {quoted(right)} of index {quoted(left)} is not finite; remove it")
    if not _NUMBER.fullmatch(right):
        raise ValueError(f"value '{quoted(right)}' of index {quoted(left)} is not a number; is the line cut off?")
    value = float(right)
    if abs(value) >= TOO_LARGE:
        raise ValueError(f"value {quoted(right)} of index {quoted(left)} is too large for float32; scale the features")
    return int(left.lstrip(b"0") or b"0"), value


def _complaint(line: bytes) -> str:
    try:
        parse_line(line)
    except ValueError as error:
        return str(error)
    return "is not 'label index:value ...'"


def _decoded(raw: bytes, where: str) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise DataError(where, f"label '{quoted(raw)}' is not UTF-8 text; convert the file first") from None


def _whole_lines(path: str | os.PathLike[str], stream: IO[bytes] | None = None) -> Iterator[bytes]:
    """The file in blocks of whole lines, every one ended."""
    number = 1
    with open_bytes(path) if stream is None else nullcontext(stream) as source:
        with reading(path, number):
            carry = [source.read(3).removeprefix(b"\xef\xbb\xbf")]  # the beginning of a line
        while True:
            with reading(path, number):
                chunk = source.read(_BLOCK)
            if not chunk:
                break
            cut = chunk.rfind(b"\n") + 1
            carry.append(chunk[:cut] if cut else chunk)
            if not cut and sum(map(len, carry)) > limits.LINE:
                refuse_line(path, number)
            if cut:
                block, carry = b"".join(carry), [chunk[cut:]]
                number += block.count(b"\n")
                yield block
    if any(carry):
        yield b"".join([*carry, b"\n"])


def write_svmlight(
    target: str | os.PathLike[str] | IO[bytes] | gzip.GzipFile,
    vectors: Vectors,
    labels: Sequence[str],
    *,
    rows: int = 4096,
) -> None:
    """Write documents so that reading gives the same float32 values; .gz and .xz by the name, whole or not at all."""
    if len(labels) != len(vectors):
        raise UsageError(f"{len(labels)} labels for {len(vectors)} documents; give one label each")
    if not np.isfinite(vectors.values).all():
        raise UsageError("a value is not finite; svmlight files hold finite numbers only")
    if isinstance(target, str | os.PathLike):
        with atomic_write(target) as out:
            suffix = Path(target).suffix
            if suffix == ".gz":
                with gzip.GzipFile(fileobj=out, mode="wb", mtime=0, filename="", compresslevel=4) as packed:
                    write_svmlight(packed, vectors, labels, rows=rows)
            elif suffix == ".xz":
                with lzma.LZMAFile(out, "wb", preset=1) as packed:
                    write_svmlight(packed, vectors, labels, rows=rows)
            else:
                write_svmlight(out, vectors, labels, rows=rows)
        return
    names = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    for name in names:
        if not name or re.search(r"[\s:,#]", name):
            raise UsageError(f"label {name!r} cannot stand in an svmlight file; use no blanks and none of : , #")
    encoded = [name.encode("utf-8") for name in names]
    name_bytes = np.frombuffer(b"".join(encoded), np.uint8)
    name_ends = np.cumsum([0, *map(len, encoded)])
    for start in range(0, len(vectors), rows):
        stop = min(start + rows, len(vectors))
        label_of = np.array([names[label] for label in labels[start:stop]], np.int64)
        indptr = vectors.indptr[start : stop + 1]
        indices = vectors.indices[indptr[0] : indptr[-1]].astype(np.int64, copy=False)
        values = vectors.values[indptr[0] : indptr[-1]]
        text = np.empty(len(indices) * 56 + int((np.diff(name_ends)[label_of] + 1).sum()), np.uint8)
        size = print_rows(indptr - indptr[0], indices, values, label_of, name_bytes, name_ends, text)
        target.write(text[:size].tobytes())
