"""n-best lists as decoders write them, read list by list: the input of reranking (paper Sec. 5, SMT).

One candidate a line, ``id ||| hypothesis ||| features ||| score``, with or without spaces around ``|||``; plain, .gz
or .xz. What follows the features (score, alignments) is not read. Features come in three spellings:

    A=1 B=2                     cdec, Joshua            columns A, B
    LM0= -3 TM0= 1 2            Moses, new              columns LM0, TM0_1, TM0_2
    d: 0 -1.2 lm: -3            Moses, old              columns d_1, d_2, lm

A group of one value keeps its plain name; the values of a longer one are numbered from 1. The same rule reads and
writes ``[weight]`` of moses.ini (``decoder_weights.py``), so ``TM0= 0.2 0.3`` there is TM0_1 and TM0_2 here.
Columns stand in the order in which their names first appear; a feature that a line does not name is 0 there.

Moses marks, if told to (-report-segmentation, or -report-segmentation-enriched), which source words a phrase is of:
``the cat |0-1| sat |2-2|``. These are no words of the translation; they are left out unless they are to be kept.

    for nbest in read_nbest("train.nbest.xz"):
        print(nbest.id, nbest.hypotheses[0], dict(zip(nbest.names, nbest.features[0])))
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO

import numpy as np
from numpy.typing import NDArray

from sparsezo import notes
from sparsezo.errors import DataError, quoted
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
        """A line for the person, where there were any."""
        if self.lists:
            lists = f"{self.lists:,} list{'s' * (self.lists > 1)}"
            notes.say(
                f"{path}:{self.line}: Moses' marks of segmentation, |0-1|, are left out of the hypotheses, here and in "
                f"{lists} in all; `keep_segmentation` keeps them"
            )


def read_nbest(
    path: str | os.PathLike[str], *, keep_segmentation: bool = False, stream: IO[bytes] | None = None
) -> Iterator[NBestList]:
    """The file's lists one by one; ids ascend and may skip numbers. Memory holds one list.

    ``stream``: the open file, where somebody has opened it already; ``path`` then only names it.
    """
    reader = _Reader(str(path), keep_segmentation)
    number = 0
    with open_bytes(path) if stream is None else contextlib.nullcontext(stream) as source:
        try:
            for number, raw in enumerate(iter(functools.partial(source.readline, limits.LINE + 1), b""), start=1):
                if number == 1:
                    raw = raw.removeprefix(b"\xef\xbb\xbf")
                if len(raw) > limits.LINE:
                    refuse_line(path, number)
                    raw += source.readline()
                if raw[-1:] != b"\n":
                    raise DataError(
                        f"{path}:{number}", "the last line has no line end: the file is cut off; copy it anew"
                    )
                fields = raw.decode("utf-8").split("|||")
                if fields[0] != reader.head and reader.rows and not reader.goes_on(fields[0]):
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


@dataclass
class _Layout:
    """Lines that name the same features in the same order: their rows and values in the list being read."""

    columns: list[int]
    rows: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)


class _Reader:
    """The list being read, and what is known of the file so far."""

    def __init__(self, path: str, keep_segmentation: bool) -> None:
        self.path = path
        self.keep_segmentation = keep_segmentation
        self.columns: dict[str, int] = {}  # feature -> column
        self.sizes: dict[str, int] = {}  # group of a Moses line -> how many values it has
        self.layouts: dict[tuple[str, ...], _Layout] = {}  # of this list
        self.names: list[str] | None = None  # of the line before, and its layout
        self.layout = _Layout([])
        self.n_fields = 3
        self.head = ""  # the first field of the list's lines, as it stands in the file
        self.id = -1
        self.line = 0
        self.rows = 0
        self.size = 0  # bytes
        self.segmented = False
        self.hypotheses: list[str] = []

    def goes_on(self, head: str) -> bool:
        """Whether a line that begins so belongs to the list being read: the same id, spaced otherwise."""
        return head.strip() == self.head.strip()

    def add(self, number: int, fields: list[str], size: int) -> None:
        """Take in one line of ``size`` bytes, cut at ``|||``."""
        if len(fields) < self.n_fields:
            found = f"{len(fields)} field{'s' * (len(fields) > 1)}" if any(f.strip() for f in fields) else "nothing"
            before = f"the lines before have {self.n_fields}; is it cut off?" if number > 1 else _FORM
            raise DataError(f"{self.path}:{number}", f"has {found} between |||; {before}")
        if not self.rows:
            self._start(number, fields)
        if self.size <= limits.LIST < self.size + size:
            what = f"list {self.id} has more than {limits.LIST >> 20} MB: does its sentence's id begin each line?"
            limits.refuse(f"{self.path}:{number}", what)
        self.size += size
        text = fields[2]
        if "= " in text or ": " in text:
            names, values = self._groups(number, text)
        else:
            names, values = [], []
            try:
                for pair in text.split():
                    name, _, value = pair.rpartition("=")
                    names.append(name)
                    values.append(float(value))
            except ValueError:
                names, values = self._groups(number, text)
        if names != self.names:
            self.layout = self._layout(number, names, text)
            self.names = names
        self.layout.rows.append(self.rows)
        self.layout.values += values
        self.hypotheses.append(self._words(fields[1].strip()))
        self.rows += 1

    def _words(self, hypothesis: str) -> str:
        if self.keep_segmentation:
            return hypothesis
        words = without_marks(hypothesis)
        self.segmented |= words is not hypothesis
        return words

    def finish(self) -> NBestList:
        """The list as arrays; the reader is ready for the next one."""
        size = 4 * self.rows * len(self.columns)
        if size > limits.ARRAYS:
            found = f"{self.rows:,} candidates and {len(self.columns):,} features take {size / 2**30:.1f} GB"
            limits.refuse(f"{self.path}:{self.line}", f"{found}: reranking is for dense features, are these sparse?")
        features = np.zeros((self.rows, len(self.columns)), np.float32)
        for layout in self.layouts.values():
            values = np.array(layout.values).reshape(len(layout.rows), len(layout.columns))
            self._check(layout, values)
            features[np.ix_(layout.rows, layout.columns)] = values
        done = NBestList(self.id, self.line, tuple(self.columns), self.hypotheses, features, self.segmented)
        self.rows, self.size, self.segmented, self.hypotheses, self.layouts, self.names = 0, 0, False, [], {}, None
        return done

    def _start(self, number: int, fields: list[str]) -> None:
        text = fields[0].strip()
        where = f"{self.path}:{number}"
        if not text:
            raise DataError(where, f"a candidate without a list: its id is missing; {_FORM}")
        if not (text.isascii() and text.isdigit()):
            raise DataError(where, f"the id '{quoted(text)}' is not a whole number from 0; {_FORM}")
        if len(text) > _MOST_DIGITS:
            raise DataError(where, f"the id '{quoted(text)}' has {len(text):,} digits; ids are the sentences' numbers")
        if int(text) <= self.id:
            raise DataError(where, f"id {text} comes after id {self.id}; sort the candidates by id")
        if self.id < 0:
            self.n_fields = len(fields)
        self.head, self.id, self.line = fields[0], int(text), number

    def _layout(self, number: int, names: list[str], text: str) -> _Layout:
        key = tuple(names)
        layout = self.layouts.get(key)
        if layout is None:
            if "" in names:
                self._groups(number, text)  # a bare number has a message of its own
                raise DataError(f"{self.path}:{number}", "a feature has no name before its '='; write name=value")
            if len(set(names)) < len(names):
                seen: set[str] = set()
                twice = next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
                raise DataError(
                    f"{self.path}:{number}", f"feature '{quoted(twice)}' is named twice; name each feature once"
                )
            columns = [self.columns.setdefault(name, len(self.columns)) for name in names]
            layout = self.layouts[key] = _Layout(columns)
        return layout

    def _groups(self, number: int, text: str) -> tuple[list[str], list[float]]:
        """Features of any spelling, and the message where they have none."""
        where = f"{self.path}:{number}"
        groups: list[tuple[str, list[float]]] = []
        is_open = False  # whether the last group may take further values
        for token in text.split():
            if len(token) > 1 and token[-1] in "=:":
                _check_group(where, groups)
                groups.append((token[:-1], []))
                is_open = True
            elif "=" in token:
                _check_group(where, groups)
                name, _, value = token.rpartition("=")
                groups.append((name, [_number(where, name, value)]))
                is_open = False
            elif is_open:
                groups[-1][1].append(_number(where, groups[-1][0], token))
            else:
                raise DataError(
                    where, f"'{quoted(token)}' is no feature; write name=value (cdec), name= value or name: value"
                )
        _check_group(where, groups)
        names: list[str] = []
        values: list[float] = []
        for name, group in groups:
            if self.sizes.setdefault(name, len(group)) != len(group):
                before = self.sizes[name]
                raise DataError(
                    where, f"feature '{quoted(name)}' has {len(group)} values here but {before} before; is it cut off?"
                )
            names += group_names(name, len(group))
            values += group
        return names, values

    def _check(self, layout: _Layout, values: NDArray[np.float64]) -> None:
        bad = ~(np.abs(values) <= _LARGEST)  # NaN too
        if bad.any():
            row, k = (int(i) for i in np.argwhere(bad)[0])
            name = list(self.columns)[layout.columns[k]]
            where = f"{self.path}:{self.line + layout.rows[row]}"
            raise DataError(where, f"feature '{quoted(name)}' is {values[row, k]:g}; it must be a finite float32")


def group_names(name: str, size: int) -> list[str]:
    """Column names of a Moses group: its own name for one value, name_1, name_2, ... for several."""
    return [name] if size == 1 else [f"{name}_{k}" for k in range(1, size + 1)]


def _check_group(where: str, groups: list[tuple[str, list[float]]]) -> None:
    if groups and not groups[-1][1]:
        raise DataError(where, f"feature '{quoted(groups[-1][0])}' has no value; is the line cut off?")


def _number(where: str, name: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        what = f"feature '{quoted(name)}' has the value '{quoted(value)}', which is not a number"
        raise DataError(where, what) from None
