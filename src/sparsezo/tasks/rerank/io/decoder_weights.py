"""Weights of decoders, read to start a reranker from and written so that they go straight back.

LanguageModel 0.39          cdec, Joshua: a name and a value on a line; '#' begins a comment line
[weight]                    moses.ini: this section alone is read; '#' begins a comment
TM0= 0.2 0.3                weights TM0_1 and TM0_2: named as in n-best lists (``nbest``)
[weight-l]                  moses.ini before 2013: a section for each kind of model, a value on a line
0.5                         lm, as old Moses calls it in n-best lists; several values are lm_1, lm_2, ...

weights = read_weights("weights.out-of-domain")             # {"LanguageModel": 0.39, ...}, in the file's order
write_cdec_weights("weights", names, w)
write_moses_weights("weights.ini", names, w)
"""

from __future__ import annotations

import functools
import itertools
import math
import os
import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import DataError, UsageError, quoted
from sparsezo.storage.files import numbered_lines, write_text
from sparsezo.tasks.rerank.io.nbest import decimal, group_names

_SECTION = re.compile(r"\[.*\]$")
_MEMBER = re.compile(r"(.+)_([1-9][0-9]{0,8})$")
_SAME = ("d", "lr", "w", "lex", "glm", "dlm", "slm", "u", "e", "wt", "pp", "pb", "bl")
_OLD = {  # section -> label in n-best lists: the long and the short name of old Moses' options
    "weight-l": "lm",
    "weight-t": "tm",
    "weight-generation": "g",
    "weight-i": "I",
    **{f"weight-{name}": name for name in _SAME},
}
_SECTIONS = {label: section for section, label in _OLD.items()}

PathLike = str | os.PathLike[str]
Weights = Sequence[float] | NDArray[np.float64]
Group = tuple[list[int], str, list[str]]  # the lines of its values, its name, its values
Lines = Iterable[tuple[int, str]]


def read_weights(path: PathLike) -> dict[str, float]:
    """Feature -> weight in the file's order; plain, .gz or .xz."""
    lines = ((number, text) for number, line in numbered_lines(path) if (text := line.strip()) and text[0] != "#")
    first = list(itertools.islice(lines, 1))
    moses = any(_SECTION.match(_bare(line)) for _, line in first)
    weights: dict[str, float] = {}
    for numbers, group, values in (_moses_groups if moses else _cdec_pairs)(path, itertools.chain(first, lines)):
        for number, name, value in zip(numbers, group_names(group, len(values)), values, strict=True):
            if name in weights:
                raise DataError(f"{path}:{number}", f"weight '{quoted(name)}' is given twice; keep one of them")
            weights[name] = decimal(f"{path}:{number}", f"weight '{quoted(name)}'", value)
            if not math.isfinite(weights[name]):
                raise DataError(f"{path}:{number}", f"weight '{quoted(name)}' is {quoted(value)}; it must be finite")
    if not weights:
        form = "no weight stands in its [weight] section" if moses else "has no weights"
        raise DataError(str(path), f"{form}; write 'Name value' lines (cdec) or a [weight] section (moses.ini)")
    return weights


def _bare(line: str) -> str:
    """A line of moses.ini without its comment."""
    return line.partition("#")[0].strip()


def write_cdec_weights(path: PathLike, names: Sequence[str], w: Weights) -> None:
    """``Name value`` for each feature."""
    values = _checked(path, names, w)
    write_text(path, "".join(f"{name} {value!r}\n" for name, value in zip(names, values, strict=True)))


def write_moses_weights(path: PathLike, names: Sequence[str], w: Weights) -> None:
    """A ``[weight]`` section as moses.ini has it, groups on one line; old sections for the names of old Moses."""
    value = dict(zip(names, _checked(path, names, w), strict=True))
    groups: list[tuple[str, list[str]]] = []

    @functools.cache
    def size(group: str) -> int:
        return next(k for k in itertools.count() if f"{group}_{k + 1}" not in value)

    for name in names:
        match = _MEMBER.match(name)
        if match is None or not max(2, int(match[2])) <= size(match[1]):  # X, X_1 alone, or X_4 after a gap
            groups.append((name, [repr(value[name])]))
        elif match[2] == "1":
            groups.append((match[1], [repr(value[member]) for member in group_names(match[1], size(match[1]))]))
    if {group for group, _ in groups} <= _SECTIONS.keys() and len(dict(groups)) == len(groups):
        lines = [line for group, values in groups for line in (f"[{_SECTIONS[group]}]", *values, "")]
    else:
        lines = ["[weight]", *(f"{group}= {' '.join(values)}" for group, values in groups)]
    write_text(path, "".join(f"{line}\n" for line in lines))


def _moses_groups(path: PathLike, lines: Lines) -> Iterator[Group]:
    section = ""
    new = 0  # the line of the new form's section
    old: dict[str, tuple[list[int], list[str]]] = {}  # label -> lines and values: a section may come in pieces
    for number, line in ((number, _bare(line)) for number, line in lines):
        if _SECTION.match(line):
            section = line[1:-1].strip()
            new = number if section == "weight" else new
            if section.startswith("weight-") and section not in _OLD:
                what = f"section [{quoted(section)}] is not known, so its weights would be lost; take it out"
                raise DataError(f"{path}:{number}", what)
        elif section == "weight":
            name, equals, rest = line.partition("=")
            values = rest.split()
            if not equals or not name.strip() or len(name.split()) > 1 or not values:
                raise DataError(f"{path}:{number}", f"'{quoted(line)}' is no weight; write Name= value [value ...]")
            yield [number] * len(values), name.strip(), values
        elif section in _OLD:
            where, found = old.setdefault(_OLD[section], ([], []))
            where += [number] * len(line.split())
            found += line.split()
        if new and old:
            raise DataError(f"{path}:{number}", "has weights of both forms, [weight] and [weight-...]; keep one")
    yield from ((where, label, found) for label, (where, found) in old.items())


def _cdec_pairs(path: PathLike, lines: Lines) -> Iterator[Group]:
    for number, line in lines:
        parts = line.split()
        if len(parts) != 2:
            raise DataError(f"{path}:{number}", f"'{quoted(line)}' is no weight; write a name and a value: Name value")
        yield [number], parts[0], parts[1:]


def _checked(path: PathLike, names: Sequence[str], w: Weights) -> list[float]:
    values = [float(value) for value in w]
    for name, value in zip(names, values, strict=True):
        if not math.isfinite(value):
            raise UsageError(f"{path}: weight '{name}' is {value}; it must be finite")
    return values
