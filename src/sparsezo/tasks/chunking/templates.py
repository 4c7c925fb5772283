"""Feature templates in CRF++'s notation: which observations around a token make one attribute.

``%x[row,column]`` stands for a column (from 0) of the token ``row`` places further on. The default set is
CRF++'s own for CoNLL-2000: with it, chunking has the 2.8 million weights of DESIGN's Sec. 2.

    U02:%x[0,0]                    the word
    U05:%x[-1,0]/%x[0,0]           the word before and the word
    U99:                           a bias: one attribute that every token has

    templates = read_templates("my.template")           # or: default_templates()
    check_columns(templates, n_columns=2, data="train.txt")
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from sparsezo.errors import DataError
from sparsezo.storage.files import numbered_lines

DEFAULT_TEMPLATES = """\
# words in a window of two, and their bigrams
U00:%x[-2,0]
U01:%x[-1,0]
U02:%x[0,0]
U03:%x[1,0]
U04:%x[2,0]
U05:%x[-1,0]/%x[0,0]
U06:%x[0,0]/%x[1,0]

# parts of speech in a window of two, their bigrams and trigrams
U10:%x[-2,1]
U11:%x[-1,1]
U12:%x[0,1]
U13:%x[1,1]
U14:%x[2,1]
U15:%x[-2,1]/%x[-1,1]
U16:%x[-1,1]/%x[0,1]
U17:%x[0,1]/%x[1,1]
U18:%x[1,1]/%x[2,1]
U20:%x[-2,1]/%x[-1,1]/%x[0,1]
U21:%x[-1,1]/%x[0,1]/%x[1,1]
U22:%x[0,1]/%x[1,1]/%x[2,1]
"""

FURTHEST_ROW = 100
_macro = re.compile(r"%x\[(-?[0-9]+),([0-9]+)\]")
_EXAMPLE = "write it like U05:%x[-1,0]/%x[0,0]"


@dataclass(frozen=True)
class Template:
    """One template; ``str()`` gives its line back."""

    name: str  # U05
    text: str  # %x[-1,0]/%x[0,0]
    parts: tuple[tuple[int, int], ...]  # ((-1, 0), (0, 0)): row and column of each macro
    where: str = field(default="", compare=False, repr=False)  # file:line, for messages

    def __str__(self) -> str:
        return f"{self.name}:{self.text}"

    def fill(self, values: Sequence[str]) -> str:
        """The attribute's name, with one value for each part: U05:the/dog."""
        remaining = iter(values)
        return f"{self.name}:" + _macro.sub(lambda _: next(remaining), self.text)


def default_templates() -> tuple[Template, ...]:
    return parse_templates(DEFAULT_TEMPLATES.splitlines(), "default templates")


def read_templates(path: str | os.PathLike[str]) -> tuple[Template, ...]:
    return parse_templates((line for _, line in numbered_lines(path)), str(path))


def parse_templates(lines: Iterable[str], where: str) -> tuple[Template, ...]:
    """Templates from the lines of ``where``, which is what messages call the place."""
    templates: dict[str, Template] = {}
    for number, line in enumerate(lines, start=1):
        line = line.strip()
        # A bare B asks CRF++ for label bigrams. Here they are set by --order, so that files can stay as they are.
        if not line or line.startswith("#") or line == "B":
            continue
        template = _parse(line, f"{where}:{number}")
        if template.name in templates:
            first = templates[template.name].where
            raise DataError(template.where, f"template name '{template.name}' is taken by {first}; give it another")
        templates[template.name] = template
    if not templates:
        raise DataError(where, f"holds no template; {_EXAMPLE}")
    return tuple(templates.values())


def _parse(line: str, where: str) -> Template:
    name, colon, text = line.partition(":")
    if line.startswith("B"):
        raise DataError(
            where,
            f"'{line}' asks for label bigrams of its own; every template already goes with the label states "
            "that `order` sets, so name it U..., or leave it out",
        )
    if not colon or not re.fullmatch(r"U[^\s%]*", name):
        raise DataError(where, f"'{line}' is not a template; {_EXAMPLE}")
    rest = _macro.sub("", text)
    if "%" in rest or "[" in rest or "]" in rest:
        raise DataError(where, f"'{line}' has a malformed macro, which is %x[row,column] in whole numbers; {_EXAMPLE}")
    parts = tuple((int(row), int(column)) for row, column in _macro.findall(text))
    for row, _ in parts:
        if abs(row) > FURTHEST_ROW:
            raise DataError(where, f"'{line}' looks {abs(row)} tokens away; at most {FURTHEST_ROW} are possible")
    return Template(name, text, parts, where)


def check_columns(templates: Iterable[Template], n_columns: int, data: str) -> None:
    """Refuse a template that reads a column which the data does not have (the tag is not one of them)."""
    for template in templates:
        for row, column in template.parts:
            if column >= n_columns:
                raise DataError(
                    template.where or f"template {template.name}",
                    f"%x[{row},{column}] reads column {column}, but {data} has {n_columns} before the tag, "
                    "counted from 0; change the template or the data",
                )
