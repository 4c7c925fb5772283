r"""CRFsuite's data: one token a line, its label and its attributes as they are, separated by tabs.

    B-NP	w[0]=An	pos[0]=DT	__BOS__
    I-NP	w[0]=A.P.	length:0.5

An attribute may have a value after a colon, 1 where there is none; ``\:`` and ``\\`` are a colon and a backslash that
belong to the name. A blank line stands between sentences.

    corpus = read_crfsuite("train.crfsuite")            # its attributes are numbered by a ListedIndex
"""

from __future__ import annotations

import itertools
import math
import re
from array import array
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import IO

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import DataError, quoted
from sparsezo.storage import limits
from sparsezo.storage.files import numbered_lines
from sparsezo.tasks.chunking.io.conll import AnyPath, Corpus, Listed

_number = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_field = re.compile(r"((?:[^\\:]|\\.?)*)(?::(.*))?", re.DOTALL)
_escaped = re.compile(r"\\([\\:])")
_LARGEST = 1e30  # value of an attribute; its square is near what float32 can hold
_tag = re.compile(r"O|[BIESLUM](-.+)?")
_FEWEST_LINES = 3  # that must look like it before a file is taken for CRFsuite's without being told


def looks_like_crfsuite(head: str) -> bool:
    """By a file's beginning: every line starts with a chunk tag and a tab, and does not end in one."""
    lines = [line for line in head.splitlines()[:200] if line.strip()]
    fields = [line.split("\t") for line in lines]
    if len(fields) < _FEWEST_LINES or not all(_tag.fullmatch(row[0]) and len(row) > 1 for row in fields):
        return False
    return not any(_tag.fullmatch(row[-1]) for row in fields)


def read_crfsuite(path: AnyPath, stream: IO[bytes] | None = None) -> Corpus:
    number: defaultdict[str, int] = defaultdict(itertools.count().__next__)
    ids, values = array("i"), array("f")
    counts, lines, stops = array("i"), array("i"), [0]
    tags: list[str] = []
    seen: dict[str, str] = {}
    for line_number, line in itertools.chain(numbered_lines(path, stream), [(0, "")]):
        fields = [field for field in line.split("\t") if field]
        if not line.strip():
            if len(tags) > stops[-1]:
                stops.append(len(tags))
            continue
        where = f"{path}:{line_number}"
        if len(tags) - stops[-1] == limits.TOKENS:
            limits.refuse(where, f"more than {limits.TOKENS:,} tokens in one sentence: is a blank line missing?")
        names, scales = _parsed(fields, where)
        tags.append(seen.setdefault(names[0], names[0]))
        ids.extend(map(number.__getitem__, names[1:]))
        values.extend(scales[1:])
        counts.append(len(names) - 1)
        lines.append(line_number)
    if not tags:
        raise DataError(str(path), "holds no token; expected a label and its attributes a line, separated by tabs")
    if not number:
        raise DataError(str(path), "lists no attribute; in CRFsuite's format a tab stands before each of them")
    starts = np.concatenate([[0], np.cumsum(np.frombuffer(counts, np.int32))]).astype(np.int64)
    listed = Listed(list(number), starts, np.array(ids, np.int32), np.array(values, np.float32))
    return Corpus(str(path), (), tags, np.array(stops, np.int64), np.array(lines, np.int32), listed)


def _parsed(fields: list[str], where: str) -> tuple[list[str], Sequence[float]]:
    if fields[0].startswith("@"):
        raise DataError(where, f"'{quoted(fields[0])}' is a declaration, and weights of sentences are not read here")
    if not any(":" in field or "\\" in field for field in fields):
        return fields, [1.0] * len(fields)
    label, value = _split(fields[0])
    if value is not None:
        raise DataError(where, f"label '{quoted(fields[0])}' has a colon in it; write \\: for it")
    names, values = [label], [1.0]
    for field in fields[1:]:
        name, value = _split(field)
        number = (float(value) if _number.fullmatch(value) else math.nan) if value else 1.0
        if not abs(number) < _LARGEST:
            what = f"'{quoted(field)}': '{quoted(str(value))}' is no value of an attribute"
            raise DataError(where, f"{what}; write \\: for a colon in its name")
        names.append(name)
        values.append(number)
    return names, values


def _split(field: str) -> tuple[str, str | None]:
    found = _field.fullmatch(field)
    name, value = (found[1], found[2]) if found else (field, None)
    return _escaped.sub(r"\1", name), value


def tagged_lines(predicted: Sequence[str], offsets: NDArray[np.int64]) -> Iterator[str]:
    """The labels as ``crfsuite tag`` writes them: one a line, a blank line after each sentence."""
    for start, stop in itertools.pairwise(offsets.tolist()):
        yield "".join(f"{tag}\n" for tag in predicted[start:stop]) + "\n"
