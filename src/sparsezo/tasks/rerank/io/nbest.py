"""n-best lists as decoders write them, read list by list: the input of reranking (paper Sec. 5, SMT).

One candidate a line, ``id ||| hypothesis ||| features ||| score``, plain, .gz or .xz; what follows the features is not
read. Features come in three spellings, and one that a line does not name is 0 there:

    A=1 B=2                     cdec, Joshua            columns A, B
    LM0= -3 TM0= 1 2            Moses, new              columns LM0, TM0_1, TM0_2
    d: 0 -1.2 lm: -3            Moses, old              columns d_1, d_2, lm

Moses' marks of which source words a phrase is of, ``the cat |0-1| sat |2-2|``, are left out unless they are to be kept.

    for nbest in read_nbest("train.nbest.xz"):
        print(nbest.id, nbest.hypotheses[0], dict(zip(nbest.names, nbest.features[0])))
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

import numpy as np
from numpy.typing import NDArray

from sparsezo import messages
from sparsezo.errors import DataError, quoted
from sparsezo.messages import counted
from sparsezo.storage import limits
from sparsezo.storage.files import READ_ERRORS, open_bytes, refuse_line

_FORM = "a line reads: id ||| hypothesis ||| features ||| score"
_LARGEST = float(np.finfo(np.float32).max)
_MOST_DIGITS = 18  # of an id: what an int64 holds
_MARK = re.compile(r"(?<!\S)\|[0-9]+-[0-9]+(?:,[^|=]*=[^|]*)?\|(?!\S)")  # the enriched one has scores in it


@dataclass(frozen=True, eq=False)
class NBestList:
    """The candidates of one sentence, in the file's order."""

    id: int
    line: int  # of its first candidate in the file
    names: tuple[str, ...]  # of the features seen so far; later lists may have more
    hypotheses: list[str]
    features: NDArray[np.float32]  # [candidates, names]
    segmented: bool = False  # whether marks of segmentation were left out

    def __len__(self) -> int:
        return len(self.hypotheses)


@dataclass
class Segmentation:
    """Whether marks of segmentation stay in the hypotheses, and in how many lists some were left out."""

    keep: bool = False
    lists: int = 0
    line: int = 0  # where the first such list begins

    def count(self, nbest: NBestList) -> None:
        if nbest.segmented:
            self.lists += 1
            self.line = self.line or nbest.line

    def say(self, path: str | os.PathLike[str]) -> None:
        if self.lists:
            messages.say(
                f"{path}:{self.line}: Moses' marks of segmentation, |0-1|, are left out of the hypotheses, here and in "
                f"{counted(self.lists, 'list')} in all; `keep_segmentation` keeps them"
            )


def read_nbest(
    path: str | os.PathLike[str], *, keep_segmentation: bool = False, stream: IO[bytes] | None = None
) -> Iterator[NBestList]:
    """The file's lists one by one; ids ascend and may skip numbers. Memory holds one list.

    ``stream``: the open file, where somebody has opened it already; ``path`` then only names it.
    """
    reader, number = _Reader(str(path), keep_segmentation), 0
    with open_bytes(path) if stream is None else contextlib.nullcontext(stream) as source:
        try:
            for number, raw in enumerate(iter(functools.partial(source.readline, limits.LINE + 1), b""), start=1):
                if number == 1:
                    raw = raw.removeprefix(b"\xef\xbb\xbf")
                if len(raw) > limits.LINE:
                    refuse_line(path, number)
                    raw += source.readline()
                if raw[-1:] != b"\n":
                    what = "the last line has no line end: the file is cut off; copy it anew"
                    raise DataError(f"{path}:{number}", what)
                fields = raw.decode("utf-8").split("|||")
                # the same id may be spaced otherwise
                if reader.lines and fields[0] != reader.head and fields[0].strip() != reader.head.strip():
                    yield reader.finish()
                reader.add(number, fields, len(raw))
        except UnicodeDecodeError as error:
            raise DataError(f"{path}:{number}", f"is not UTF-8 text ({error.reason}); convert it first") from None
        except READ_ERRORS as error:
            raise DataError(f"{path}:{number + 1}", f"cannot be read on ({error}); is the file cut off?") from None
    if not number:
        raise DataError(str(path), f"is empty; {_FORM}")
    yield reader.finish()


def without_marks(hypothesis: str) -> str:
    """The translation's own words, where Moses has marked its phrases."""
    words = _MARK.sub("", hypothesis) if "|" in hypothesis else hypothesis
    return hypothesis if words == hypothesis else " ".join(words.split())


class _Reader:
    """The list being read, and what is known of the file so far."""

    def __init__(self, path: str, keep_segmentation: bool) -> None:
        self.path, self.keep_segmentation = path, keep_segmentation
        self.columns: dict[str, int] = {}  # feature -> column
        self.sizes: dict[str, int] = {}  # group of a Moses line -> how many values it has
        self.names: list[str] = []  # of the line before, in cdec's spelling
        self.n_fields = 3
        self.head = ""  # the first field of the list's lines, as it stands in the file
        self.id, self.line = -1, 0  # of the list, and where it begins
        self.lines: list[tuple[str, str]] = []  # hypotheses and features
        self.size = 0  # bytes

    def add(self, number: int, fields: list[str], size: int) -> None:
        """Take in one line of ``size`` bytes, cut at ``|||``."""
        where = f"{self.path}:{number}"
        if len(fields) < self.n_fields:
            found = counted(len(fields), "field") if any(each.strip() for each in fields) else "nothing"
            before = f"the lines before have {self.n_fields}; is it cut off?" if number > 1 else _FORM
            raise DataError(where, f"has {found} between |||; {before}")
        if not self.lines:
            text = fields[0].strip()
            if not text:
                raise DataError(where, f"a candidate without a list: its id is missing; {_FORM}")
            if not (text.isascii() and text.isdigit()):
                raise DataError(where, f"the id '{quoted(text)}' is not a whole number from 0; {_FORM}")
            if len(text) > _MOST_DIGITS:
                what = f"the id '{quoted(text)}' has {len(text):,} digits; ids are the sentences' numbers"
                raise DataError(where, what)
            if int(text) <= self.id:
                raise DataError(where, f"id {text} comes after id {self.id}; sort the candidates by id")
            if self.id < 0:
                self.n_fields = len(fields)
            self.head, self.id, self.line, self.size = fields[0], int(text), number, 0
        if self.size <= limits.LIST < self.size + size:
            what = f"list {self.id} has more than {limits.LIST >> 20} MB: does its sentence's id begin each line?"
            limits.refuse(where, what)
        self.size += size
        self.lines.append((fields[1], fields[2]))

    def finish(self) -> NBestList:
        """The list as arrays; the reader is ready for the next one."""
        layouts: dict[tuple[str, ...], tuple[list[int], list[float]]] = {}  # features of a line -> rows, their values
        hypotheses, segmented = [], False
        for row, (text, written) in enumerate(self.lines):
            where = f"{self.path}:{self.line + row}"
            names, values = self._features(where, written)
            if (key := tuple(names)) not in layouts:
                self._check_names(where, names, written)
                layouts[key] = [], []
            layouts[key][0].append(row)
            layouts[key][1].extend(values)
            hypothesis = text.strip()
            words = hypothesis if self.keep_segmentation else without_marks(hypothesis)
            segmented |= words is not hypothesis
            hypotheses.append(words)
        size = 4 * len(self.lines) * len(self.columns)
        if size > limits.ARRAYS:
            found = f"{len(self.lines):,} candidates and {len(self.columns):,} features take {size / 2**30:.1f} GB"
            limits.refuse(f"{self.path}:{self.line}", f"{found}: reranking is for dense features, are these sparse?")
        features = np.zeros((len(self.lines), len(self.columns)), np.float32)
        for key, (rows, read) in layouts.items():
            table = np.array(read).reshape(len(rows), len(key))
            bad = ~(np.abs(table) <= _LARGEST)  # NaN too
            if bad.any():
                row, k = (int(i) for i in np.argwhere(bad)[0])
                what = f"feature '{quoted(key[k])}' is {table[row, k]:g}; it must be a finite float32"
                raise DataError(f"{self.path}:{self.line + rows[row]}", what)
            features[np.ix_(rows, [self.columns[name] for name in key])] = table
        self.lines = []
        return NBestList(self.id, self.line, tuple(self.columns), hypotheses, features, segmented)

    def _features(self, where: str, text: str) -> tuple[list[str], list[float]]:
        """The quick way for cdec's spelling, which is also what says whether it is that."""
        if "= " in text or ": " in text:
            return self._groups(where, text)
        pairs = [pair.rpartition("=") for pair in text.split()]
        names, written = [name for name, _, _ in pairs], [value for _, _, value in pairs]
        try:
            values = list(map(float, written))
        except ValueError:
            return self._groups(where, text)
        if not _is_decimal("".join(written)):
            return self._groups(where, text)
        if names != self.names:
            for name in names:
                self._check_size(where, name, 1)
            self.names = names
        return names, values

    def _groups(self, where: str, text: str) -> tuple[list[str], list[float]]:
        """Features of any spelling, and the message where they have none."""
        groups: list[tuple[str, list[float]]] = []
        is_open = False  # whether the last group may take further values
        for token in text.split():
            if len(token) > 1 and token[-1] in "=:":
                groups.append((token[:-1], []))
                is_open = True
            elif "=" in token:
                name, _, value = token.rpartition("=")
                groups.append((name, [decimal(where, f"feature '{quoted(name)}'", value)]))
                is_open = False
            elif is_open:
                groups[-1][1].append(decimal(where, f"feature '{quoted(groups[-1][0])}'", token))
            else:
                what = f"'{quoted(token)}' is no feature; write name=value (cdec), name= value or name: value"
                raise DataError(where, what)
        names: list[str] = []
        values: list[float] = []
        for name, group in groups:
            if not group:
                raise DataError(where, f"feature '{quoted(name)}' has no value; is the line cut off?")
            self._check_size(where, name, len(group))
            names += group_names(name, len(group))
            values += group
        return names, values

    def _check_size(self, where: str, name: str, size: int) -> None:
        """A group has as many values wherever it stands, or its columns would change their names."""
        if (before := self.sizes.setdefault(name, size)) != size:
            found = f"{counted(size, 'value')} here but {before} before"
            raise DataError(where, f"feature '{quoted(name)}' has {found}; is it cut off?")

    def _check_names(self, where: str, names: list[str], text: str) -> None:
        if "" in names:
            self._groups(where, text)  # a bare number has a message of its own
            raise DataError(where, "a feature has no name before its '='; write name=value")
        if len(set(names)) < len(names):
            twice = Counter(names).most_common(1)[0][0]
            raise DataError(where, f"feature '{quoted(twice)}' is named twice; name each feature once")
        for name in names:
            self.columns.setdefault(name, len(self.columns))


def group_names(name: str, size: int) -> list[str]:
    """Column names of a Moses group: its own name for one value, name_1, name_2, ... for several."""
    return [name] if size == 1 else [f"{name}_{k}" for k in range(1, size + 1)]


def decimal(where: str, what: str, text: str) -> float:
    """A number as decoders write it; DataError for anything else, also what Python alone takes for one (1_000)."""
    with contextlib.suppress(ValueError):
        if _is_decimal(text):
            return float(text)
    raise DataError(where, f"{what} has the value '{quoted(text)}', which is not a number")


def _is_decimal(text: str) -> bool:
    return text.isascii() and "_" not in text
