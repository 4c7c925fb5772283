"""Documents in tables with a header (CSV, TSV) and in JSON lines: (line, label, text) of each.

    with open_sniffed("train.csv.gz", 1 << 16) as (head, stream):
        for line, label, text in csv_documents("train.csv.gz", stream, Columns(text="body", label="2")): ...

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
from pathlib import Path
from typing import IO, Any, NoReturn

from sparsezo.errors import DataError, quoted
from sparsezo.storage import limits
from sparsezo.storage.files import numbered_lines

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


def ending(path: PathLike) -> str:
    """Of a file's name, whether it is packed or not."""
    name = Path(path)
    return (name.with_suffix("") if name.suffix in (".gz", ".xz") else name).suffix.lower()


def is_header(line: str) -> bool:
    """Whether a file's first line names both a column of texts and one of labels."""
    cells = {cell.strip(' "').lower() for cell in line.split(_delimiter(line))}
    return all(cells.intersection(names) for names in _NAMES.values())


def csv_documents(path: PathLike, stream: IO[bytes], columns: Columns) -> Iterator[Document]:
    table = _Table(path, stream)
    header: list[str] = []
    text = label = 0
    for number, row in table:
        if not header:
            header = [cell.strip() for cell in row]
            text = _column(header, "text", columns.text, f"{path}:{number}")
            label = _column(header, "label", columns.label, f"{path}:{number}") if columns.labelled else -1
            continue
        where = f"{path}:{number}"
        if len(row) != len(header):
            raise DataError(
                where, f"{len(row)} columns, but the header has {len(header)}; quote a text that has a delimiter in it"
            )
        yield number, _label(row[label], where) if columns.labelled else None, row[text].translate(_TO_BLANKS)


class _Table:
    """Rows that are not blank, each with the line where it begins."""

    def __init__(self, path: PathLike, stream: IO[bytes]) -> None:
        self._path, self._line = path, 0
        self._lines = numbered_lines(path, stream)

    def __iter__(self) -> Iterator[tuple[int, list[str]]]:
        lines = self._ended()
        first = next((line for line in lines if not line.isspace()), "")
        delimiter = "\t" if ending(self._path) in (".tsv", ".tab") else _delimiter(first)
        rows = csv.reader(chain([first], lines), delimiter=delimiter, strict=True)
        begin = self._line
        while True:
            try:
                with _field_limit():
                    row = next(rows)
            except StopIteration:
                return
            except csv.Error as error:
                self._refuse(begin, str(error))
            else:
                if row:
                    yield begin, row
                begin = self._line + 1

    def _ended(self) -> Iterator[str]:
        for number, line in self._lines:
            self._line = number
            if "\0" in line:
                raise DataError(f"{self._path}:{number}", "a NUL character; is this a text file in UTF-8?")
            yield line + "\n"

    def _refuse(self, begin: int, error: str) -> NoReturn:
        where = f"{self._path}:{begin}"
        if "field limit" in error:
            limits.refuse(where, f"a field of more than {limits.LINE >> 20} MB: is a quote not closed?")
        what = "a quote is opened and not closed" if "end of data" in error else f"the row is not CSV ({error})"
        raise DataError(where, f'{what}; write a quote in a quoted field twice, ""')


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
    """The place of the column of texts or of labels."""
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
    text = label = ""
    for number, line in numbered_lines(path, stream):
        if not line or line.isspace():
            continue
        where = f"{path}:{number}"
        found = _object(line, where)
        if not text:
            text = _key(found, "text", columns.text, where)
            label = _key(found, "label", columns.label, where) if columns.labelled else ""
        words = _value(found, text, where)
        if not isinstance(words, str):
            raise DataError(where, f"'{quoted(text)}' is {_kind(words)}; a document's text is a string")
        yield number, _json_label(found, label, where) if columns.labelled else None, _sound(words, where)


def _object(line: str, where: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:  # also a number of too many digits, and brackets too deep
        raise DataError(where, f"'{quoted(line)}' is not JSON ({error}); write one object a line") from None
    if not isinstance(found, dict):
        raise DataError(where, f'{_kind(found)}, not an object; write one object a line, {{"text": ..., ...}}')
    return found


def _key(found: dict[str, Any], what: str, given: str | None, where: str) -> str:
    keys = list(found)
    return given if given is not None else keys[_column(keys, what, None, where)]


def _value(found: dict[str, Any], key: str, where: str) -> Any:
    if key not in found:
        raise DataError(
            where, f"has no '{quoted(key)}'; it has {', '.join(map(quoted, list(found)[:20])) or 'nothing'}"
        )
    return found[key]


def _json_label(found: dict[str, Any], key: str, where: str) -> str:
    value = _value(found, key, where)
    if isinstance(value, bool):
        value = "true" if value else "false"
    if not isinstance(value, str | int):
        raise DataError(where, f"'{quoted(key)}' is {_kind(value)}; a label is a string, a whole number, true or false")
    return _label(_sound(str(value), where), where)


def _sound(text: str, where: str) -> str:
    """JSON can spell halves of characters, which no file can hold."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise DataError(where, "half of a surrogate pair (\\ud800 to \\udfff), which is no character") from None
    return text.translate(_TO_BLANKS)


def _kind(value: Any) -> str:
    kinds = {str: "a string", int: "a number", float: "a number", bool: "true or false", list: "a list"}
    return "null" if value is None else kinds.get(type(value), "an object")


def _label(raw: str, where: str) -> str:
    label = raw.translate(_TO_BLANKS).strip()
    if not label:
        raise DataError(where, "the label is empty; give every document one")
    return label
