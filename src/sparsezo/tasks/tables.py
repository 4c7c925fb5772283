"""Documents in tables with a header (CSV, TSV) and in JSON lines: (line, label, text) of each.

A quoted field of a table may go over several lines (RFC 4180); columns are parted by commas, semicolons or TABs,
whichever the header has most of, in ``.tsv`` by TABs. Where no column is named, the header's own names tell. Line ends
and TABs within a text become blanks, so that every document is a line, as everywhere else.
"""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import IO

from sparsezo.errors import DataError, quoted
from sparsezo.storage import limits
from sparsezo.storage.files import check_text, ending, numbered_lines

PathLike = str | os.PathLike[str]
Document = tuple[int, str | None, str]  # line, label, text

_NAMES = {  # of columns that are taken where none is named
    "text": ("text", "sentence", "document", "body", "content"),
    "label": ("label", "class", "category", "target", "topic"),
}
_DELIMITERS = "\t,;"
_TO_BLANKS = str.maketrans("\t\r\n", "   ")


@dataclass(frozen=True)
class Columns:
    """By name, or in a table by number from 1; None: by the usual names. Without ``labelled`` labels are left alone."""

    text: str | None = None
    label: str | None = None
    labelled: bool = True

    @property
    def named(self) -> bool:
        return self.text is not None or self.label is not None


def is_header(line: str) -> bool:
    """Whether a file's first line names both a column of texts and one of labels."""
    cells = {cell.strip(' "').lower() for cell in line.split(_delimiter(line))}
    return all(cells.intersection(names) for names in _NAMES.values())


def csv_documents(path: PathLike, stream: IO[bytes], columns: Columns) -> Iterator[Document]:
    rows = table_rows(path, stream)
    begin, header = next(rows, (1, []))
    if not header:
        return
    text = _column(header, "text", columns.text, f"{path}:{begin}")
    label = _column(header, "label", columns.label, f"{path}:{begin}") if columns.labelled else -1
    for number, row in rows:
        known = _label(row[label], f"{path}:{number}") if columns.labelled else None
        yield number, known, row[text].translate(_TO_BLANKS)


def column_of_texts(path: PathLike, header: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """The column that holds the texts: by its usual names, else the one that has by far the most words in ``rows``."""
    usual = [k for name in _NAMES["text"] for k, cell in enumerate(header) if cell.lower() == name]
    if usual:
        return usual[0]
    words = [sum(len(row[k].split()) for row in rows) for k in range(len(header))]
    order = sorted(range(len(header)), key=lambda k: -words[k])
    if len(order) == 1 or words[order[0]] >= 2 * words[order[1]] > 0 or (words[order[0]] and not words[order[1]]):
        return order[0]
    raise DataError(
        str(path),
        f"which column has the texts? there are {', '.join(map(quoted, header[:20]))}; call one of them 'text'",
    )


def table_rows(path: PathLike, stream: IO[bytes]) -> Iterator[tuple[int, list[str]]]:
    """The header, then the rows that are not blank, as many cells each; with the line where each begins."""
    header: list[str] = []
    for number, row in _rows(path, stream):
        if not header:
            header = row = [cell.strip() for cell in row]
        elif len(row) != len(header):
            what = f"{len(row)} columns, but the header has {len(header)}; quote a text that has a delimiter in it"
            raise DataError(f"{path}:{number}", what)
        yield number, row


def _rows(path: PathLike, stream: IO[bytes]) -> Iterator[tuple[int, list[str]]]:
    """Rows that are not blank, each with the line where it begins."""
    read = 0  # lines

    def ended() -> Iterator[str]:
        nonlocal read
        for read, line in numbered_lines(path, stream):
            if "\0" in line:
                raise DataError(f"{path}:{read}", "a NUL character; is this a text file in UTF-8?")
            yield line + "\n"

    lines = ended()
    first = next((line for line in lines if not line.isspace()), "")
    delimiter = "\t" if ending(path) in (".tsv", ".tab") else _delimiter(first)
    rows = csv.reader(chain([first], lines), delimiter=delimiter, strict=True)
    begin = read
    while True:
        try:
            with _field_limit():
                row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            if "field limit" in str(error):
                limits.refuse(f"{path}:{begin}", f"a field of more than {limits.LINE >> 20} MB: is a quote not closed?")
            unclosed = "end of data" in str(error)
            what = "a quote is opened and not closed" if unclosed else f"the row is not CSV ({error})"
            raise DataError(f"{path}:{begin}", f'{what}; write a quote in a quoted field twice, ""') from None
        if row:
            yield begin, row
        begin = read + 1


@contextmanager
def _field_limit() -> Iterator[None]:
    """A document may be longer than the csv module thinks; the limit is all its users', so it is put back."""
    before = csv.field_size_limit(min(sys.maxsize, 2**31 - 1) if limits.insisted() else limits.LINE)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _delimiter(header: str) -> str:
    return max(_DELIMITERS, key=header.count)


def _column(header: Sequence[str], what: str, given: str | None, where: str) -> int:
    found: list[int] = []
    if given is not None:
        found = [k for k, name in enumerate(header) if name == given]
        if not found and given.isascii() and given.isdigit() and 1 <= int(given[:9]) <= len(header):
            found = [int(given) - 1]
    else:
        for usual in _NAMES[what]:
            found = found or [k for k, name in enumerate(header) if name.lower() == usual]
    if len(found) == 1:
        return found[0]
    if found:
        problem = f"{len(found)} columns are called '{quoted(header[found[0]])}'; name one by its number"
    else:
        wanted = f"'{quoted(given)}'" if given is not None else ", ".join(_NAMES[what])
        problem = f"no column is called {wanted}; there are {', '.join(map(quoted, header[:20]))}; name one"
    raise DataError(where, f"{problem} with `{what}_column`")


def json_documents(path: PathLike, stream: IO[bytes], columns: Columns) -> Iterator[Document]:
    """(line, label, text) of each object; the first one tells which keys are meant."""
    text = label = ""
    for number, line in numbered_lines(path, stream):
        if not line or line.isspace():
            continue
        where = f"{path}:{number}"
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:  # also a number of too many digits, and brackets too deep
            raise DataError(where, f"'{quoted(line)}' is not JSON ({error}); write one object a line") from None
        if not isinstance(found, dict):
            raise DataError(where, f'{_kind(found)}, not an object; write one object a line, {{"text": ..., ...}}')
        keys = list(found)
        if not text:
            text = columns.text if columns.text is not None else keys[_column(keys, "text", None, where)]
            if columns.labelled:
                label = columns.label if columns.label is not None else keys[_column(keys, "label", None, where)]
        for key in (text, label) if columns.labelled else (text,):
            if key not in found:
                has = ", ".join(map(quoted, keys[:20])) or "nothing"
                raise DataError(where, f"has no '{quoted(key)}'; it has {has}")
        if not isinstance(found[text], str):
            raise DataError(where, f"'{quoted(text)}' is {_kind(found[text])}; a document's text is a string")
        name = None
        if columns.labelled:
            value = {True: "true", False: "false"}[found[label]] if isinstance(found[label], bool) else found[label]
            if not isinstance(value, str | int):
                what = f"'{quoted(label)}' is {_kind(value)}; a label is a string, a whole number, true or false"
                raise DataError(where, what)
            check_text(str(value), where)
            name = _label(str(value), where)
        check_text(found[text], where)
        yield number, name, found[text].translate(_TO_BLANKS)


def _kind(value: object) -> str:
    kinds = {str: "a string", int: "a number", float: "a number", bool: "true or false", list: "a list"}
    return "null" if value is None else kinds.get(type(value), "an object")


def _label(raw: str, where: str) -> str:
    label = raw.translate(_TO_BLANKS).strip()
    if not label:
        raise DataError(where, "the label is empty; give every document one")
    return label
