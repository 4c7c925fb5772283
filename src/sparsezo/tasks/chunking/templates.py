"""Feature templates in CRF++'s and Wapiti's notation: which observations around a token make one attribute.

``%x[row,column]`` stands for a column (from 0) of the token ``row`` places further on.

    U02:%x[0,0]                    the word
    U05:%x[-1,0]/%x[0,0]           the word before and the word
    U99:                           a bias: one attribute that every token has
    B01:%x[0,0]                    the word together with the tag before it
    u:kind=%x[0,cluster]           the word's cluster: a column that is made of the words (columns.py) has a name
    u:suf=%m[0,0,".?.?$"]          its last two characters; more macros are in patterns.py

    templates = read_templates("my.template")
    check_columns(templates, n_columns=2, data="train.txt")

The name before the colon is nothing but text in front: templates that differ only in their macros share the
attributes that come out alike (U:%x[-1,0] and U:%x[0,0] have one for a word, wherever it stands), and a template that
is there twice counts twice. A file that has something of Wapiti in it is read as Wapiti reads it, where # begins a
comment anywhere; in CRF++'s notation it does so only at the beginning of a line, and elsewhere is text.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sparsezo import notes
from sparsezo.errors import DataError, quoted
from sparsezo.storage.files import numbered_lines
from sparsezo.tasks.chunking.columns import NAMES, REMEDIES
from sparsezo.tasks.chunking.patterns import MACROS, WITH_PATTERN, values_of

FURTHEST_ROW = 100
_LAST_COLUMN = 9999
_macro = re.compile(
    rf"%(?P<macro>[{MACROS}])\[ *(?P<at>@?)(?P<row>[+-]?[0-9]+) *, *(?P<column>[0-9]+|[a-z]+) *"
    r'(?:, *"(?P<pattern>(?:[^"\\]|\\.)*)" *)?\]'
)
_without_percent = re.compile(rf"[{MACROS}]\[ *@?[+-]?[0-9]+ *,")
_of_wapiti = re.compile(rf"[ub*]|.*%[{MACROS.replace('x', '')}]\[")
_prose = re.compile(r"[A-Za-z]{2,}\s")
_EXAMPLE = "write it like U05:%x[-1,0]/%x[0,0]"


class Source(NamedTuple):
    """A column as a macro sees it."""

    column: int | str  # its number from 0, or the name of a derived one
    macro: str = "x"
    pattern: str = ""


class Part(NamedTuple):
    """One macro of a template."""

    row: int  # from the token; where absolute, from the sentence's first token (1, 2, ...) or last one (-1, -2, ...)
    source: Source
    absolute: bool = False

    def __str__(self) -> str:
        pattern = f',"{self.source.pattern}"' if self.source.macro in WITH_PATTERN else ""
        return f"%{self.source.macro}[{'@' * self.absolute}{self.row},{self.source.column}{pattern}]"


@dataclass(frozen=True)
class Template:
    """One template; ``str()`` gives its line back."""

    line: str  # U05:%x[-1,0]/%x[0,0]
    parts: tuple[Part, ...]
    where: str = field(default="", compare=False, repr=False)  # file:line, for messages

    def __str__(self) -> str:
        return self.line

    @property
    def kind(self) -> str:
        """u: goes with a tag; b: with a tag and the one before it; *: with both."""
        return self.line[0].lower()

    @property
    def text(self) -> str:
        """What templates that share attributes have in common: all but the macros."""
        return self.kind + _macro.sub("%", self.line[1:])

    def fill(self, values: Sequence[str]) -> str:
        """The attribute's name, with one value for each part: U05:the/dog."""
        remaining = iter(values)
        return _macro.sub(lambda _: next(remaining), self.line)


def read_templates(path: str | os.PathLike[str]) -> tuple[Template, ...]:
    templates = parse_templates((line for _, line in numbered_lines(path)), str(path))
    for template in templates:
        if " #" in template.line:
            what = "is part of its text, as CRF++ has it; put comments on lines of their own"
            notes.say(f"{template.where}: what follows # in a template {what}")
            break
    return templates


def parse_templates(lines: Iterable[str], where: str) -> tuple[Template, ...]:
    """Templates from the lines of ``where``, which is what messages call the place.

    A B without macros asks for the weights of tag bigrams. `order` has them anyway, so that it changes nothing.
    """
    numbered = [(number, line.strip()) for number, line in enumerate(lines, start=1)]
    numbered = [(number, line) for number, line in numbered if line and not line.startswith("#")]
    if any(_of_wapiti.match(line) for _, line in numbered):
        numbered = [(number, line.partition("#")[0].rstrip()) for number, line in numbered]
    templates = [_parse(line, f"{where}:{number}") for number, line in numbered]
    templates = [template for template in templates if template.parts or template.kind != "b"]
    if not templates:
        raise DataError(where, f"holds no template; {_EXAMPLE}")
    return tuple(templates)


def _parse(line: str, where: str) -> Template:
    parts = tuple(_part(found, line, where) for found in _macro.finditer(line))
    rest = _macro.sub("", line)
    if "%" in rest or _without_percent.search(rest):
        raise DataError(
            where,
            f"'{quoted(line)}' has a malformed macro, which is %x[row,column] in whole numbers, or "
            f'%m[row,column,"pattern"]; {_EXAMPLE}',
        )
    if line[0] not in "UBub*" or (not parts and _prose.match(line)):
        raise DataError(where, f"'{quoted(line)}' is not a template; {_EXAMPLE}")
    return Template(line, parts, where)


def _part(found: re.Match[str], line: str, where: str) -> Part:
    macro, pattern, absolute = found["macro"], found["pattern"], bool(found["at"])
    row, column = _whole(found["row"], FURTHEST_ROW), _column(found["column"], line, where)
    if row is None:
        raise DataError(where, f"'{quoted(line)}' looks more than {FURTHEST_ROW} tokens away; at most that is possible")
    if absolute and row == 0:
        raise DataError(where, f"'{quoted(line)}': @1 is a sentence's first token and @-1 its last; there is no @0")
    if (pattern is not None) != (macro in WITH_PATTERN):
        form = f'%{macro}[row,column,"pattern"]' if macro in WITH_PATTERN else f"%{macro}[row,column]"
        raise DataError(where, f"'{quoted(line)}': the macro %{macro} is written {form}")
    try:
        values_of(macro, pattern or "")
    except ValueError as error:
        raise DataError(where, f"'{quoted(line)}': pattern \"{quoted(pattern)}\": {error}") from None
    return Part(row, Source(column, macro, pattern or ""), absolute)


def _column(text: str, line: str, where: str) -> int | str:
    """A column's number, or its name."""
    if not text[0].isdecimal():
        if text not in NAMES:
            known = f"they have numbers from 0, and those that are made the names {' and '.join(NAMES)}"
            raise DataError(where, f"'{quoted(line)}': there is no column '{quoted(text)}'; {known}")
        return text
    if (column := _whole(text, _LAST_COLUMN)) is None:
        raise DataError(where, f"'{quoted(line)}' reads a column that no file has; they are counted from 0")
    return column


def _whole(digits: str, most: int) -> int | None:
    """The number, or None where it is further from 0 than ``most``; it may have any number of digits."""
    magnitude = digits.lstrip("+-").lstrip("0")
    if len(magnitude) > len(str(most)) or int(magnitude or "0") > most:
        return None
    return -int(magnitude or "0") if digits[0] == "-" else int(magnitude or "0")


def check_columns(templates: Iterable[Template], n_columns: int, data: str, names: Collection[str] = ()) -> None:
    """Refuse a template that reads a column which the data does not have (the tag is not one of them).

    ``names``: the derived columns that there are.
    """
    for template in templates:
        for part in template.parts:
            if has_column(part, n_columns, names):
                continue
            where = template.where or f"template {quoted(template.line)}"
            column = part.source.column
            if isinstance(column, str):
                raise DataError(where, f"{part} reads the column '{column}', which is not made; {REMEDIES[column]}")
            raise DataError(
                where,
                f"{part} reads column {column}, but {data} has {n_columns} before the tag, "
                "counted from 0; change the template or the data",
            )


def has_column(part: Part, n_columns: int, names: Collection[str]) -> bool:
    """Whether what a macro reads is among so many columns and these derived ones."""
    column = part.source.column
    return column in names if isinstance(column, str) else column < n_columns
