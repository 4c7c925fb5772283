"""Weights of decoders, read to start a reranker from and written so that they go straight back.

Two forms, told apart by the file itself (a line in square brackets is moses.ini's):

    LanguageModel 0.39          cdec, Joshua: a name and a value on a line; '#' begins a comment line
    [weight]                    moses.ini: this section alone is read
    LM0= 0.5
    TM0= 0.2 0.3                weights TM0_1 and TM0_2: named as in n-best lists (sparsezo.tasks.rerank.nbest)

A group of one value keeps its plain name, the values of a longer one are numbered from 1; writing joins them again,
so name_1, name_2, ... up to the first gap become one line ``name= value value``.

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

from sparsezo.errors import DataError, UsageError
from sparsezo.storage.files import numbered_lines, write_text
from sparsezo.tasks.rerank.nbest import group_names

_SECTION = re.compile(r"\[.*\]$")
_MEMBER = re.compile(r"(.+)_([1-9][0-9]*)$")


def read_weights(path: str | os.PathLike[str]) -> dict[str, float]:
    """Feature -> weight in the file's order; plain, .gz or .xz."""
    lines = [(number, line.strip()) for number, line in numbered_lines(path)]
    lines = [(number, line) for number, line in lines if line and not line.startswith("#")]
    moses = any(_SECTION.match(line) for _, line in lines)
    weights: dict[str, float] = {}
    for number, names, values in (_moses_groups if moses else _cdec_pairs)(path, lines):
        for name, value in zip(names, values, strict=True):
            if name in weights:
                raise DataError(f"{path}:{number}", f"weight '{name}' is given twice; keep one of them")
            weights[name] = _finite(f"{path}:{number}", name, value)
    if not weights:
        form = "no weight stands in its [weight] section" if moses else "has no weights"
        raise DataError(str(path), f"{form}; write 'Name value' lines (cdec) or a [weight] section (moses.ini)")
    return weights


def write_cdec_weights(path: str | os.PathLike[str], names: Sequence[str], w: Sequence[float] | np.ndarray) -> None:
    """``Name value`` for each feature."""
    values = _checked(path, names, w)
    _write(path, (f"{name} {value!r}" for name, value in zip(names, values, strict=True)))


def write_moses_weights(path: str | os.PathLike[str], names: Sequence[str], w: Sequence[float] | np.ndarray) -> None:
    """A ``[weight]`` section as moses.ini has it, groups on one line."""
    value = dict(zip(names, _checked(path, names, w), strict=True))
    groups = {name: _group(name, value) for name in names}
    lines = ["[weight]"]
    for name in names:
        group, size = groups[name]
        if size == 1:
            lines.append(f"{name}= {value[name]!r}")
        elif name == f"{group}_1":
            lines.append(f"{group}= " + " ".join(repr(value[member]) for member in group_names(group, size)))
    _write(path, lines)


def _group(name: str, known: dict[str, float]) -> tuple[str, int]:
    """The Moses group that the feature belongs to and its size; the feature itself and 1 if it stands alone."""
    match = _MEMBER.match(name)
    if match is None:
        return name, 1
    group, size = match[1], 0
    while f"{group}_{size + 1}" in known:
        size += 1
    if size < 2 or int(match[2]) > size:  # X_1 alone, or X_4 after a gap
        return name, 1
    return group, size


def _moses_groups(
    path: str | os.PathLike[str], lines: Iterable[tuple[int, str]]
) -> Iterator[tuple[int, list[str], list[str]]]:
    section = ""
    for number, line in lines:
        if _SECTION.match(line):
            section = line[1:-1].strip()
        elif section == "weight":
            name, equals, rest = line.partition("=")
            values = rest.split()
            if not equals or not name.strip() or len(name.split()) > 1 or not values:
                raise DataError(f"{path}:{number}", f"'{line}' is no weight; write Name= value [value ...]")
            yield number, group_names(name.strip(), len(values)), values


def _cdec_pairs(
    path: str | os.PathLike[str], lines: Iterable[tuple[int, str]]
) -> Iterator[tuple[int, list[str], list[str]]]:
    for number, line in lines:
        parts = line.split()
        if len(parts) != 2:
            raise DataError(f"{path}:{number}", f"'{line}' is no weight; write a name and a value: Name value")
        yield number, parts[:1], parts[1:]


def _finite(where: str, name: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        raise DataError(where, f"weight '{name}' has the value '{value}', which is not a number") from None
    if not math.isfinite(number):
        raise DataError(where, f"weight '{name}' is {value}; it must be finite")
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
