"""Weights of decoders, read to start a reranker from and written so that they go straight back.

Three forms, told apart by the file itself (a line in square brackets is moses.ini's):

    LanguageModel 0.39          cdec, Joshua: a name and a value on a line; '#' begins a comment line
    [weight]                    moses.ini: this section alone is read; '#' begins a comment
    LM0= 0.5
    TM0= 0.2 0.3                weights TM0_1 and TM0_2: named as in n-best lists (sparsezo.tasks.rerank.nbest)
    [weight-l]                  moses.ini before 2013: a section for each kind of model, a value on a line.
    0.5                         lm, as old Moses calls it in n-best lists; several values are lm_1, lm_2, ...

A group of one value keeps its plain name, the values of a longer one are numbered from 1; writing joins them again,
so name_1, name_2, ... up to the first gap become one line ``name= value value``, or one of the old sections where all
names are those of old Moses.

    weights = read_weights("weights.out-of-domain")             # {"LanguageModel": 0.39, ...}, in the file's order
    write_cdec_weights("weights", names, w)
    write_moses_weights("weights.ini", names, w)
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from sparsezo.errors import DataError, UsageError, quoted
from sparsezo.storage import limits
from sparsezo.storage.files import numbered_lines, write_text
from sparsezo.tasks.rerank.nbest import group_names

_SECTION = re.compile(r"\[.*\]$")
_MEMBER = re.compile(r"(.+)_([1-9][0-9]{0,8})$")
_OLD = {  # section -> label in n-best lists: the long and the short name of old Moses' options
    "weight-d": "d",  # distortion and, behind it, lexicalised reordering
    "weight-lr": "lr",
    "weight-l": "lm",
    "weight-t": "tm",
    "weight-w": "w",
    "weight-generation": "g",
    "weight-i": "I",
    "weight-lex": "lex",
    "weight-glm": "glm",
    "weight-dlm": "dlm",
    "weight-slm": "slm",
    "weight-u": "u",
    "weight-e": "e",
    "weight-wt": "wt",
    "weight-pp": "pp",
    "weight-pb": "pb",
    "weight-bl": "bl",
}
_SECTIONS = {label: section for section, label in _OLD.items()}

Group = tuple[list[int], str, list[str]]  # the lines of its values, its name, its values
Lines = list[tuple[int, str]]


def read_weights(path: str | os.PathLike[str]) -> dict[str, float]:
    """Feature -> weight in the file's order; plain, .gz or .xz."""
    lines = _lines(path)
    moses = any(_SECTION.match(_bare(line)) for _, line in lines)
    weights: dict[str, float] = {}
    for numbers, group, values in (_moses_groups if moses else _cdec_pairs)(path, lines):
        for number, name, value in zip(numbers, group_names(group, len(values)), values, strict=True):
            if name in weights:
                raise DataError(f"{path}:{number}", f"weight '{quoted(name)}' is given twice; keep one of them")
            weights[name] = _finite(f"{path}:{number}", name, value)
    if not weights:
        form = "no weight stands in its [weight] section" if moses else "has no weights"
        raise DataError(str(path), f"{form}; write 'Name value' lines (cdec) or a [weight] section (moses.ini)")
    return weights


def _lines(path: str | os.PathLike[str]) -> Lines:
    """Those with something on them."""
    lines, size = [], 0
    for number, line in numbered_lines(path):
        if size <= limits.LIST < size + len(line):
            limits.refuse(f"{path}:{number}", f"more than {limits.LIST >> 20} MB so far: is this a file of weights?")
        size += len(line) + 1
        if (text := line.strip()) and not text.startswith("#"):
            lines.append((number, text))
    return lines


def _bare(line: str) -> str:
    """A line of moses.ini without its comment."""
    return line.partition("#")[0].strip()


def write_cdec_weights(path: str | os.PathLike[str], names: Sequence[str], w: Sequence[float] | np.ndarray) -> None:
    """``Name value`` for each feature."""
    values = _checked(path, names, w)
    _write(path, (f"{name} {value!r}" for name, value in zip(names, values, strict=True)))


def write_moses_weights(path: str | os.PathLike[str], names: Sequence[str], w: Sequence[float] | np.ndarray) -> None:
    """A ``[weight]`` section as moses.ini has it, groups on one line; old sections for the names of old Moses."""
    value = dict(zip(names, _checked(path, names, w), strict=True))
    groups: list[tuple[str, list[str]]] = []
    sizes: dict[str, int] = {}
    for name in names:
        group, size = _group(name, value, sizes)
        if size == 1 or name == f"{group}_1":
            groups.append((group, [repr(value[member]) for member in group_names(group, size)]))
    if {group for group, _ in groups} <= _SECTIONS.keys() and len(dict(groups)) == len(groups):
        _write(path, (line for group, values in groups for line in (f"[{_SECTIONS[group]}]", *values, "")))
    else:
        _write(path, ["[weight]", *(f"{group}= {' '.join(values)}" for group, values in groups)])


def _group(name: str, known: dict[str, float], sizes: dict[str, int]) -> tuple[str, int]:
    """The Moses group that the feature belongs to and its size; the feature itself and 1 if it stands alone.

    ``sizes``: of the groups met so far.
    """
    match = _MEMBER.match(name)
    if match is None:
        return name, 1
    group = match[1]
    size = sizes.get(group, 0)
    while f"{group}_{size + 1}" in known:
        size += 1
    sizes[group] = size
    if size < 2 or int(match[2]) > size:  # X_1 alone, or X_4 after a gap
        return name, 1
    return group, size


def _moses_groups(path: str | os.PathLike[str], lines: Lines) -> Iterator[Group]:
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


def _cdec_pairs(path: str | os.PathLike[str], lines: Lines) -> Iterator[Group]:
    for number, line in lines:
        parts = line.split()
        if len(parts) != 2:
            raise DataError(f"{path}:{number}", f"'{quoted(line)}' is no weight; write a name and a value: Name value")
        yield [number], parts[0], parts[1:]


def _finite(where: str, name: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        what = f"weight '{quoted(name)}' has the value '{quoted(value)}', which is not a number"
        raise DataError(where, what) from None
    if not math.isfinite(number):
        raise DataError(where, f"weight '{quoted(name)}' is {quoted(value)}; it must be finite")
    return number


def _checked(path: str | os.PathLike[str], names: Sequence[str], w: Sequence[float] | np.ndarray) -> list[float]:
    values = [float(value) for value in w]
    if len(names) != len(values):
        raise UsageError(f"{path}: {len(names)} names but {len(values)} weights; give one weight for each name")
    if len(set(names)) < len(names):
        raise UsageError(f"{path}: a weight is named twice; names must differ")
    for name, value in zip(names, values, strict=True):
        if not math.isfinite(value):
            raise UsageError(f"{path}: weight '{name}' is {value}; it must be finite")
        if not name or len(name.split()) != 1 or name.split()[0] != name:
            raise UsageError(f"{path}: '{name}' cannot name a weight; names have no white space")
    return values


def _write(path: str | os.PathLike[str], lines: Iterable[str]) -> None:
    write_text(path, "".join(line + "\n" for line in lines))
