"""Column files, one token a line and a blank line between sentences (the chunking data of the paper's Sec. 5).

The last column is the tag, the others are what is observed (word, part of speech, ...). A corpus keeps each
column of all sentences as one list, because the attributes are built a column at a time (attributes.py).

    corpus = read_conll("train.txt.gz")
    dev, train = corpus[:1000], corpus[1000:]
    words, pos = dev.columns
    start, stop = dev.offsets[7:9]                      # the tokens of dev's sentence 7
    write_conll("dev.out", dev, predicted)              # what conlleval reads
"""

from __future__ import annotations

import gzip
import itertools
import lzma
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import DataError, UsageError
from sparsezo.storage.files import atomic_write, numbered_lines

_DOCUMENT_START = "-DOCSTART-"
# Not str.split(): that also splits at a no-break space, which may stand inside a token.
_split = re.compile(r"[^ \t]+").findall


@dataclass(frozen=True, eq=False)
class Listed:
    """Attributes as a file lists them (crfsuite.py); token i has entries ``starts[i]:starts[i + 1]``."""

    names: list[str]  # distinct
    starts: NDArray[np.int64]  # tokens + 1
    ids: NDArray[np.int32]  # one an entry: which name
    values: NDArray[np.float32]  # one an entry

    def part(self, tokens: slice) -> Listed:
        starts = self.starts[tokens.start : tokens.stop + 1]
        entries = slice(int(starts[0]), int(starts[-1]))
        return Listed(self.names, starts - starts[0], self.ids[entries], self.values[entries])


@dataclass(frozen=True, eq=False)
class Corpus:
    """Sentences, one after the other; sentence s is tokens ``offsets[s]:offsets[s + 1]``."""

    path: str
    columns: tuple[list[str], ...]  # what is observed: one list a column, one string a token
    tags: list[str] | None  # one a token; None where the file has none
    offsets: NDArray[np.int64]  # (sentences + 1,), from 0
    lines: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32), repr=False)
    """Each token's line in the file, for messages; empty for a corpus that was not read from one."""
    listed: Listed | None = field(default=None, repr=False)
    """Where the file lists attributes there are no columns for templates to read."""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_tokens(self) -> int:
        return int(self.offsets[-1])

    def __getitem__(self, sentences: slice) -> Corpus:
        start, stop, step = sentences.indices(len(self))
        if step != 1:
            raise UsageError(f"a corpus is cut into runs of sentences, not with step {step}; use step 1")
        return self.part(start, stop)

    def part(self, start: int, stop: int) -> Corpus:
        """Sentences start to stop (exclusive) as a corpus of their own; bounds past the end are cut to it."""
        start = min(max(start, 0), len(self))
        stop = min(max(stop, start), len(self))
        offsets = self.offsets[start : stop + 1]
        tokens = slice(int(offsets[0]), int(offsets[-1]))
        return Corpus(
            path=self.path,
            columns=tuple(column[tokens] for column in self.columns),
            tags=None if self.tags is None else self.tags[tokens],
            offsets=offsets - offsets[0],
            lines=self.lines[tokens],
            listed=None if self.listed is None else self.listed.part(tokens),
        )

    def where(self, token: int) -> str:
        """``path:line`` of a token."""
        return f"{self.path}:{self.lines[token]}" if len(self.lines) else self.path


def read_conll(
    path: str | os.PathLike[str], tagged: bool = True, n_columns: int | None = None, stream: IO[bytes] | None = None
) -> Corpus:
    """Read a column file, plain, .gz or .xz; ``stream``: the open file, where somebody has opened it already.

    Tagged: the last of at least two columns is the tag. Not tagged: all columns are observed, unless
    ``n_columns`` says how many are; a file with one more has its tags after all. A sentence that is only
    a -DOCSTART- line is left out, however many columns that line has.
    """
    cells: list[str] = []  # row by row
    lines: list[int] = []
    stops = [0]
    width, width_line = 0, 0
    seen: dict[str, str] = {}
    intern = seen.setdefault  # words repeat: one string object for all of a word's tokens
    for last_line, sentence in _sentences(path, stream):
        first_line = last_line - len(sentence) + 1
        if not width:
            width, width_line = len(sentence[0]), first_line
        if set(map(len, sentence)) != {width}:
            number, row = next((i, row) for i, row in enumerate(sentence, start=first_line) if len(row) != width)
            raise DataError(
                f"{path}:{number}",
                f"has {_columns(len(row))} where line {width_line} has {width}; "
                "every token needs the same columns, separated by spaces or tabs",
            )
        flat = list(itertools.chain.from_iterable(sentence))
        cells.extend(map(intern, flat, flat))
        lines.extend(range(first_line, last_line + 1))
        stops.append(len(lines))
    if not lines:
        raise DataError(str(path), "holds no token; expected one token a line and a blank line between sentences")
    has_tags = _has_tags(f"{path}:{width_line}", width, tagged, n_columns)
    columns = tuple(cells[i::width] for i in range(width))
    return Corpus(
        path=str(path),
        columns=columns[:-1] if has_tags else columns,
        tags=columns[-1] if has_tags else None,
        offsets=np.array(stops, np.int64),
        lines=np.array(lines, np.int32),
    )


def _sentences(path: str | os.PathLike[str], stream: IO[bytes] | None = None) -> Iterator[tuple[int, list[list[str]]]]:
    """Each sentence's last line number and its rows."""
    sentence: list[list[str]] = []
    last_line = 0
    for number, line in itertools.chain(numbered_lines(path, stream), [(0, "")]):
        row = line.split(" ")
        if "" in row or "\t" in line:  # the slower way, for what is not separated by single spaces
            row = _split(line)
        if row:
            sentence.append(row)
            last_line = number
        elif sentence:
            if len(sentence) > 1 or sentence[0][0] != _DOCUMENT_START:
                yield last_line, sentence
            sentence = []


def _columns(count: int) -> str:
    return f"{count} column{'s' * (count != 1)}"


def _has_tags(where: str, width: int, tagged: bool, n_columns: int | None) -> bool:
    """Whether the last column is the tag; an error where the file does not fit what was asked for."""
    if tagged and width < 2:
        raise DataError(where, "has 1 column where at least 2 are needed; the last one must be the tag")
    if n_columns is None:
        return tagged
    if tagged and width != n_columns + 1:
        raise DataError(where, f"has {_columns(width)}; expected {n_columns + 1}, {n_columns} and the tag")
    if width not in (n_columns, n_columns + 1):
        raise DataError(where, f"has {_columns(width)}; expected {n_columns}, or {n_columns + 1} with the tag last")
    return width == n_columns + 1


def write_conll(target: str | os.PathLike[str] | IO[str], corpus: Corpus, predicted: list[str]) -> None:
    """Write columns, tag if there is one, predicted tag; to a text stream, or to a file (.gz and .xz compressed)."""
    if len(predicted) != corpus.n_tokens:
        raise UsageError(
            f"{corpus.path}: {len(predicted)} predicted tags for {corpus.n_tokens} tokens; give one a token"
        )
    columns = [*corpus.columns, predicted] if corpus.tags is None else [*corpus.columns, corpus.tags, predicted]
    rows = [" ".join(row) for row in zip(*columns, strict=True)]
    bounds = itertools.pairwise(corpus.offsets.tolist())
    text = "".join("\n".join(rows[start:stop]) + "\n\n" for start, stop in bounds)
    if not isinstance(target, str | os.PathLike):
        target.write(text)
        return
    data = text.encode("utf-8")
    if Path(target).suffix == ".gz":
        data = gzip.compress(data, mtime=0)  # no time of day in it: the same tags give the same file
    elif Path(target).suffix == ".xz":
        data = lzma.compress(data)
    with atomic_write(target) as stream:
        stream.write(data)
