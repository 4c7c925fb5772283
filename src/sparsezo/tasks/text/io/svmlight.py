"""svmlight / LIBSVM files, RCV1's published vector format: ``label index:value ... # comment``, one document a line.

Indices stand in the rows as they stand in the file, counted from 1 or from 0; ``qid:N`` after the label is passed over.
A block of bytes at a time is parsed by one compiled pass straight into arrays.

    file = read_svmlight("train.dat.gz")        # scipy CSR float32, and a label of each row
    write_svmlight("copy.dat", file.vectors, file.labels)
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsezo import messages
from sparsezo.errors import DataError, UsageError, quoted
from sparsezo.kernels.jit import standalone_kernel
from sparsezo.storage.files import open_bytes, reading, whole_lines, write_packed
from sparsezo.tasks.base import AnyArray

MAX_INDEX = 10**18 - 1  # whatever 18 digits can say
TOO_LARGE = 2.0**128 - 2.0**103  # from here on float64 rounds to infinity in float32
_POWERS = 10.0 ** np.arange(23)  # exact in float64: one multiplication or division then rounds correctly
_ROWS = 4096  # documents that are written together
_NUMBER = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NOT_FINITE = re.compile(rb"[+-]?(?:nan|inf(?:inity)?)", re.IGNORECASE)
_BLANKS = re.compile(rb"[ \t\r]+")
_NO_LABEL = re.compile(rb"^(?=[ \t\r]*-?[0-9]+:)", re.MULTILINE)
_QUERY = re.compile(rb"^([ \t\r]*[^ \t\r\n#:,]+)[ \t\r]+qid:[0-9]+(?=[ \t\r\n#])", re.MULTILINE)


class SvmlightFile(NamedTuple):
    """What one file holds: ``lines[i]`` is the line of document i."""

    vectors: csr_array  # documents x indices, which rise within a row; int32 where they fit, else int64; no zeros
    labels: list[str]
    lines: NDArray[np.int64]


def read_svmlight(
    path: str | os.PathLike[str], stream: IO[bytes] | None = None, *, labelled: bool = True
) -> SvmlightFile:
    """Read one file, plain, .gz or .xz; blank lines and comment lines are passed over.

    ``stream``: the open file, where somebody has opened it already; ``path`` then only names it. Where nobody needs
    them (``labelled``), lines may have no labels.
    """
    indices: list[AnyArray] = []
    values: list[NDArray[np.float32]] = []
    sizes: list[NDArray[np.int64]] = []
    lines: list[NDArray[np.int64]] = []
    labels: list[str] = []
    names: dict[bytes, str] = {}
    before = with_query = 0  # lines of the blocks before this one; documents with a qid
    for block in _blocks(path, stream):
        if not labelled:  # the parser wants one
            block = _NO_LABEL.sub(b"0 ", block)
        documents, wrong, arrays = _parsed(block)
        if wrong >= 0 and b"qid:" in block:
            block, queries = _QUERY.subn(rb"\1", block)
            with_query += queries
            documents, wrong, arrays = _parsed(block)
        some_indices, some_values, ends, line_of, label_at = arrays
        if wrong >= 0:
            raise DataError(f"{path}:{before + wrong + 1}", _what_is_wrong(block.split(b"\n", wrong + 1)[wrong]))
        filled = int(ends[documents - 1]) if documents else 0
        narrow = np.int32 if some_indices[:filled].max(initial=0) < 2**31 else np.int64
        indices.append(some_indices[:filled].astype(narrow))
        values.append(some_values[:filled].copy())
        sizes.append(np.diff(ends[:documents], prepend=0))
        lines.append(line_of[:documents] + (before + 1))
        for document, (start, stop) in enumerate(label_at[:documents].tolist()):
            raw = block[start:stop]
            if raw not in names:
                try:
                    names[raw] = raw.decode("utf-8")
                except UnicodeDecodeError:
                    what = f"label '{quoted(raw)}' is not UTF-8 text; convert the file first"
                    raise DataError(f"{path}:{lines[-1][document]}", what) from None
            labels.append(names[raw])
        before += len(ends)
    if not labels:
        raise DataError(str(path), "is empty; an svmlight file has a line 'label index:value ...' for each document")
    if with_query:
        messages.say(f"{path}: qid: of {with_query:,} documents is passed over; each document is classified by itself")
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate(sizes))])
    joined = np.concatenate(indices)
    indices.clear()  # before the values are joined: the peak is one and a half times the result, not twice
    indptr = indptr.astype(joined.dtype if len(joined) < 2**31 else np.int64)
    shape = len(labels), int(joined.max(initial=0)) + 1
    return SvmlightFile(csr_array((np.concatenate(values), joined, indptr), shape), labels, np.concatenate(lines))


def _blocks(path: str | os.PathLike[str], stream: IO[bytes] | None) -> Iterator[bytes]:
    """The file in blocks of whole lines, every one ended."""
    line = 1
    with open_bytes(path) if stream is None else nullcontext(stream) as source:
        blocks = whole_lines(source, path)
        while True:
            with reading(path, line):
                block = next(blocks, None)
            if block is None:
                return
            block = block.removeprefix(b"\xef\xbb\xbf") if line == 1 else block
            line += block.count(b"\n")
            yield block if block.endswith(b"\n") else block + b"\n"


def _parsed(block: bytes) -> tuple[int, int, tuple[AnyArray, ...]]:
    """What ``parse_block`` gives for a block, and the arrays that it filled."""
    text = np.frombuffer(block, np.uint8)
    newlines, pairs = int(np.count_nonzero(text == 10)), int(np.count_nonzero(text == 58))
    of_pairs = np.empty(pairs, np.int64), np.empty(pairs, np.float32)
    of_lines = np.empty(newlines, np.int64), np.empty(newlines, np.int64), np.empty((newlines, 2), np.int64)
    return *parse_block(text, *of_pairs, *of_lines), (*of_pairs, *of_lines)


def _what_is_wrong(line: bytes) -> str:
    """With a line that the compiled pass does not take: the same grammar, written to be obvious."""
    label, *fields = _BLANKS.split(line.split(b"#", 1)[0].strip(b" \t\r\n"))
    if b":" in label:
        return f"no label before '{quoted(label)}'; begin each line with the document's label"
    if b"," in label:
        return f"'{quoted(label)}' is several labels; keep only documents with exactly one"
    seen: set[int] = set()
    for field in fields:
        left, colon, right = field.partition(b":")
        index, value = quoted(left), quoted(right)
        if re.fullmatch(rb"-[0-9]+", left) and colon:
            return f"index {index} in '{quoted(field)}' is below 0; number the features from 1"
        if not re.fullmatch(rb"[0-9]+", left) or not colon:
            return f"'{quoted(field)}' is not index:value; is the line cut off?"
        if len(left.lstrip(b"0")) > len(str(MAX_INDEX)):
            return f"index {index} is above {MAX_INDEX}; number the features from 1"
        if _NOT_FINITE.fullmatch(right):
            return f"value {value} of index {index} is not finite; remove it"
        if not _NUMBER.fullmatch(right):
            return f"value '{value}' of index {index} is not a number; is the line cut off?"
        if abs(float(right)) >= TOO_LARGE:
            return f"value {value} of index {index} is too large for float32; scale the features"
        number = int(left.lstrip(b"0") or b"0")
        if number in seen:
            return f"index {number} is there twice; each index may occur once in a line"
        seen.add(number)
    return "is not 'label index:value ...'"


def write_svmlight(path: str | os.PathLike[str], vectors: csr_array, labels: Sequence[str]) -> None:
    """Write documents so that reading gives the same float32 values; .gz and .xz by the name, whole or not at all."""
    if len(labels) != vectors.shape[0]:
        raise UsageError(f"{len(labels)} labels for {vectors.shape[0]} documents; give one label each")
    if not np.isfinite(vectors.data).all():
        raise UsageError("a value is not finite; svmlight files hold finite numbers only")
    for name in dict.fromkeys(labels):
        if not name or re.search(r"[\s:,#]", name):
            raise UsageError(f"label {name!r} cannot stand in an svmlight file; use no blanks and none of : , #")

    def lines() -> Iterator[str]:
        for start in range(0, len(labels), _ROWS):
            ends = vectors.indptr[start : start + _ROWS + 1].tolist()
            indices = vectors.indices[ends[0] : ends[-1]].astype(str)
            pairs = np.char.add(np.char.add(indices, ":"), vectors.data[ends[0] : ends[-1]].astype(str)).tolist()
            for label, (begin, end) in zip(labels[start:], itertools.pairwise(ends), strict=False):
                yield " ".join([label, *pairs[begin - ends[0] : end - ends[0]]]) + "\n"

    write_packed(Path(path), lines())


# The compiled pass


@standalone_kernel
def parse_block(
    text: NDArray[np.uint8],
    indices: NDArray[np.int64],
    values: NDArray[np.float32],
    ends: NDArray[np.int64],
    line_of: NDArray[np.int64],
    label_at: NDArray[np.int64],
) -> tuple[int, int]:
    """Parse lines that all end in a newline; gives the documents found, and the wrong line or -1.

    Fills for document i: the end of its pairs in ``indices`` and ``values``, its line, its label's bytes.
    """
    at, line, document, filled = 0, 0, 0, 0
    while at < len(text):
        while text[at] == 32 or text[at] == 9 or text[at] == 13:
            at += 1
        if text[at] != 10 and text[at] != 35:
            label_at[document, 0] = at
            while not _ends_field(text[at]):
                if text[at] == 58 or text[at] == 44:  # a colon makes it a pair, a comma several labels
                    return document, line
                at += 1
            label_at[document, 1] = at
            start, last, ordered, zeros = filled, -1, True, False
            while True:
                while text[at] == 32 or text[at] == 9 or text[at] == 13:
                    at += 1
                if text[at] == 10 or text[at] == 35:
                    break
                index, digits = 0, 0
                while 48 <= text[at] <= 57 and index <= MAX_INDEX // 10:
                    index = index * 10 + (text[at] - 48)
                    digits += 1
                    at += 1
                if digits == 0 or text[at] != 58:  # another digit: above MAX_INDEX
                    return document, line
                at, value, good = _parse_number(text, at + 1)
                if not good or not _ends_field(text[at]):
                    return document, line
                ordered = ordered and index > last
                last = index
                indices[filled] = index
                values[filled] = value
                zeros = zeros or values[filled] == 0
                filled += 1
            if zeros or not ordered:
                filled = _tidy_pairs(indices, values, start, filled, ordered)
                if filled < 0:
                    return document, line
            ends[document] = filled
            line_of[document] = line
            document += 1
        while text[at] != 10:
            at += 1
        at += 1
        line += 1
    return document, -1


@standalone_kernel
def _ends_field(c: int) -> bool:
    """A blank, a line's end, or the # of a comment."""
    return c == 32 or c == 9 or c == 13 or c == 10 or c == 35


@standalone_kernel
def _tidy_pairs(indices: NDArray[np.int64], values: NDArray[np.float32], start: int, stop: int, ordered: bool) -> int:
    """Put one document's pairs in order and leave out its zeros; gives their new end, or -1 if an index comes twice."""
    if not ordered:
        order = np.argsort(indices[start:stop])
        indices[start:stop] = indices[start:stop][order]
        values[start:stop] = values[start:stop][order]
        for k in range(start + 1, stop):
            if indices[k] == indices[k - 1]:
                return -1
    kept = start
    for k in range(start, stop):  # a zero is a word that is not there
        if values[k] != 0:
            indices[kept] = indices[k]
            values[kept] = values[k]
            kept += 1
    return kept


@standalone_kernel
def _parse_number(text: NDArray[np.uint8], at: int) -> tuple[int, float, bool]:
    """A decimal number at ``at``: where it ends, its value, whether it is one and fits float32.

    Up to 15 digits and 22 places round as Python's float does; beyond, within 2 units in float64's last place.
    """
    negative = text[at] == 45
    if text[at] == 45 or text[at] == 43:
        at += 1
    mantissa, scale, digits = 0, 0, 0
    while 48 <= text[at] <= 57:
        if mantissa < 10**17:
            mantissa = mantissa * 10 + (text[at] - 48)
        else:
            scale += 1
        digits += 1
        at += 1
    if text[at] == 46:
        at += 1
        while 48 <= text[at] <= 57:
            if mantissa < 10**17:
                mantissa = mantissa * 10 + (text[at] - 48)
                scale -= 1
            digits += 1
            at += 1
    if digits == 0:
        return at, 0.0, False
    if text[at] == 101 or text[at] == 69:
        at += 1
        sign, exponent, digits = 1, 0, 0
        if text[at] == 45 or text[at] == 43:
            sign = -1 if text[at] == 45 else 1
            at += 1
        while 48 <= text[at] <= 57:
            exponent = min(exponent * 10 + (text[at] - 48), 10**15)
            digits += 1
            at += 1
        if digits == 0:
            return at, 0.0, False
        scale += sign * exponent
    value = float(mantissa)
    if mantissa == 0 or scale < -200:
        value = 0.0
    elif scale > 200:
        value = np.inf
    elif scale >= 0:
        value = value * _POWERS[scale] if scale <= 22 else value * 10.0**scale
    else:
        value = value / _POWERS[-scale] if scale >= -22 else value / 10.0 ** (-scale)
    return at, -value if negative else value, value < TOO_LARGE
