"""Column files, one token a line and a blank line between sentences (the chunking data of the paper's Sec. 5).

The last column is the tag, the others are what is observed (word, part of speech, ...); ``column`` chooses another tag,
and what stands before it is observed. CoNLL-U, the files of Universal Dependencies, has ten columns with names and
tabs between them. A corpus keeps each column of all sentences as one list: attributes are built a column at a time.

    corpus = read_conll("train.txt.gz")
    corpus = read_conll("en-ud-train.conllu", column="XPOS")
    dev, train = corpus[:1000], corpus[1000:]
    words, pos = dev.columns
    start, stop = dev.offsets[7:9]                      # the tokens of dev's sentence 7
    write_conll("dev.out", dev, predicted)              # what conlleval reads
    filled(corpus.text, corpus.lines, predicted, "XPOS")    # CoNLL-U with the column replaced
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, overload

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import DataError, UsageError, quoted
from sparsezo.messages import counted
from sparsezo.storage import limits
from sparsezo.storage.files import ending, numbered_lines, packing
from sparsezo.tasks.base import Json

if TYPE_CHECKING:
    from sparsezo.tasks.chunking.io.documents import Document, Offsets

AnyPath = str | os.PathLike[str]
CONLLU_NAMES = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
_EMPTY = "_"
_Row = tuple[int, list[str]]  # a line's number and its cells; none of a blank line
_ID, _FORM, _UPOS, _HEAD = 0, 1, 3, 6
_is_word = re.compile(r"[0-9]+", re.ASCII).fullmatch
_is_passed_over = re.compile(r"[0-9]+[-.][0-9]+", re.ASCII).fullmatch


def is_conllu(path: AnyPath, first: str) -> bool:
    """By the name's ending, or by the first line that is neither blank nor a comment."""
    row = first.split("\t")
    looks = len(row) == len(CONLLU_NAMES) and (_is_word(row[_ID]) or _is_passed_over(row[_ID]))
    return ending(path) == ".conllu" or bool(looks and (_is_word(row[_HEAD]) or row[_HEAD] == _EMPTY))


def _chosen(column: str | None) -> tuple[str, tuple[int, ...]]:
    """The name of the tag's column, and the columns to keep: FORM, UPOS where the tag is of the syntax, the tag.

    A lemma, a part of speech or a feature is for a tagger to find from the words; the others of these would tell it.
    """
    name = "UPOS" if column is None else column.upper()
    if name in map(str, range(1, len(CONLLU_NAMES) + 1)):
        name = CONLLU_NAMES[int(name) - 1]
    if name not in CONLLU_NAMES:
        raise UsageError(f"`column` {quoted(name)}: choose from {', '.join(CONLLU_NAMES)}, or 1 to {len(CONLLU_NAMES)}")
    tag = CONLLU_NAMES.index(name)
    if tag <= _FORM:
        raise UsageError(f"`column` {column}: tags are told from {name}; choose another column")
    return name, (_FORM, _UPOS, tag) if tag >= _HEAD else (_FORM, tag)


def _conllu_rows(path: AnyPath, lines: Iterable[tuple[int, str]], kept: Sequence[int]) -> Iterator[_Row]:
    """Each word's line number and the cells that are kept."""
    for number, line in lines:
        if not line.strip():
            yield number, []
        elif not line.startswith("#"):
            row, where = line.split("\t"), f"{path}:{number}"
            if len(row) != len(CONLLU_NAMES):
                raise DataError(
                    where, f"has {len(row)} columns with tabs between them; CoNLL-U has {len(CONLLU_NAMES)}"
                )
            if _is_word(row[_ID]):
                if "" in row:
                    raise DataError(where, f"{CONLLU_NAMES[row.index('')]} is empty; CoNLL-U has _ for that")
                yield number, [row[column] for column in kept]
            elif not _is_passed_over(row[_ID]):
                raise DataError(where, f"ID '{quoted(row[_ID])}' is none; give 1, 1-2 or 1.1")


def filled(text: Sequence[str], lines: Iterable[int], predicted: Sequence[str], name: str) -> Iterator[str]:
    """A file with one column of its words replaced; ``lines``: the words' line numbers."""
    tag = CONLLU_NAMES.index(name)
    tag_of = dict(zip(lines, predicted, strict=True))
    for number, line in enumerate(text, start=1):
        if number in tag_of:
            row = line.split("\t")
            row[tag] = tag_of[number]
            line = "\t".join(row)
        yield line + "\n"


_DOCUMENT_START = "-DOCSTART-"
_NO_TOKEN = "holds no token; expected one token a line and a blank line between sentences"
# Not str.split(): that also splits at a no-break space, which may stand inside a token.
split_cells = re.compile(r"[^ \t]+").findall


@dataclass(frozen=True, eq=False)
class Listed:
    """Attributes as a file lists them (crfsuite.py); token i has entries ``starts[i]:starts[i + 1]``."""

    names: list[str]  # distinct
    starts: NDArray[np.int64]  # tokens + 1
    ids: NDArray[np.int32]  # one an entry: which name
    values: NDArray[np.float32]  # one an entry

    def take(self, tokens: NDArray[np.int64]) -> Listed:
        counts = np.diff(self.starts)[tokens]
        starts = np.concatenate([[0], np.cumsum(counts)])
        entries = np.repeat(self.starts[tokens] - starts[:-1], counts) + np.arange(starts[-1])
        return Listed(self.names, starts, self.ids[entries], self.values[entries])


@dataclass(frozen=True, eq=False)
class Source:
    """The raw texts that a corpus's tokens stand in; offsets are characters (code points) of the document's text."""

    documents: list[Document]
    of_sentence: NDArray[np.int64]  # the document of each sentence
    starts: NDArray[np.int64]  # one a token
    ends: NDArray[np.int64]  # likewise, exclusive

    def take(self, sentences: NDArray[np.int64], tokens: NDArray[np.int64]) -> Source:
        """Some sentences; the documents stay whole."""
        return Source(self.documents, self.of_sentence[sentences], self.starts[tokens], self.ends[tokens])

    def document(self, sentence: int) -> Document:
        return self.documents[int(self.of_sentence[sentence])]

    def text(self, sentence: int, first: int, last: int) -> str:
        """What the tokens first to last (of the whole corpus) of a sentence cover."""
        return self.document(sentence).text[int(self.starts[first]) : int(self.ends[last])]

    def where(self, sentence: int, begin: int, end: int) -> Json:
        """The document's id, and the characters that the tokens begin to end (exclusive) of a sentence take in it."""
        document = self.document(sentence)
        name = document.id if document.id is not None else str(int(self.of_sentence[sentence]) + 1)
        return {"document": name, "start": int(self.starts[begin]), "end": int(self.ends[end - 1])}

    def gaps(self, sentence: int, begin: int, end: int) -> list[str]:
        """What stands behind each token of a sentence, up to the next; nothing behind the last."""
        text = self.document(sentence).text
        stops, starts = self.ends[begin:end].tolist(), self.starts[begin + 1 : end].tolist()
        return [text[a:b] for a, b in zip(stops, starts, strict=False)] + [""]


@dataclass(frozen=True, eq=False)
class Encoded:
    """Vectors of tokens as a task has made columns of them (features/token_vectors.py)."""

    rows: NDArray[np.float32]  # tokens x columns
    known_by: str  # what the task's way to make them is known by


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
    column: str | None = None  # the tag's, by number or by its name in CoNLL-U; None: the last
    text: list[str] | None = field(default=None, repr=False)  # all lines of CoNLL-U that is to be tagged
    source: Source | None = field(default=None, repr=False)  # where the tokens are of raw text
    encoded: Encoded | None = field(default=None, repr=False)  # where a task with `vectors` has seen it

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_tokens(self) -> int:
        return int(self.offsets[-1])

    def __iter__(self) -> Iterator[list[tuple[str, ...]]]:
        """Sentence by sentence: its tokens, each with its columns and, behind them, its tag if there are tags."""
        columns = self.columns if self.tags is None else (*self.columns, self.tags)
        for start, stop in itertools.pairwise(self.offsets.tolist()):
            yield list(zip(*(column[start:stop] for column in columns), strict=True))

    @overload
    def __getitem__(self, sentences: slice) -> Corpus: ...

    @overload
    def __getitem__(self, sentences: int) -> list[tuple[str, ...]]: ...

    def __getitem__(self, sentences: slice | int) -> Corpus | list[tuple[str, ...]]:
        """A run of sentences as a corpus of their own; or one sentence, as iterating gives it."""
        if not isinstance(sentences, slice):
            place = range(len(self))[sentences]  # counted from the end where negative; IndexError where there is none
            return next(iter(self.take([place])))
        start, stop, step = sentences.indices(len(self))
        if step != 1:
            raise UsageError(f"a corpus is cut into runs of sentences, not with step {step}; use step 1")
        return self.take(range(start, stop))

    def take(self, chosen: Sequence[int] | NDArray[np.int64]) -> Corpus:
        """The chosen sentences, in that order, as a corpus of their own."""
        sentences = np.asarray(chosen, np.int64)
        counts = np.diff(self.offsets)[sentences]
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        tokens = np.repeat(self.offsets[sentences] - offsets[:-1], counts) + np.arange(offsets[-1])
        places = tokens.tolist()
        return replace(
            self,
            columns=tuple([column[i] for i in places] for column in self.columns),
            tags=None if self.tags is None else [self.tags[i] for i in places],
            offsets=offsets,
            lines=self.lines[tokens] if len(self.lines) else self.lines,
            listed=None if self.listed is None else self.listed.take(tokens),
            text=None,
            source=None if self.source is None else self.source.take(sentences, tokens),
            encoded=None if self.encoded is None else replace(self.encoded, rows=self.encoded.rows[tokens]),
        )

    def placed(self, source: Source) -> Iterator[tuple[Offsets, tuple[int, ...]]]:
        """Of each of the source's documents its tokens, (start, end) each, and where its sentences begin among them."""
        firsts = np.searchsorted(source.of_sentence, np.arange(len(source.documents) + 1)).tolist()
        tokens = list(zip(source.starts.tolist(), source.ends.tolist(), strict=True))
        offsets = self.offsets.tolist()
        for first, stop in itertools.pairwise(firsts):
            begin, end = offsets[first], offsets[stop]
            yield tuple(tokens[begin:end]), tuple([offset - begin for offset in offsets[first : stop + 1]])

    def where(self, token: int) -> str:
        """``path:line`` of a token."""
        return f"{self.path}:{self.lines[token]}" if len(self.lines) else self.path


def read_conll(
    path: AnyPath,
    tagged: bool = True,
    n_columns: int | None = None,
    column: str | None = None,
    trained_column: str | None = None,
    stream: IO[bytes] | None = None,
) -> Corpus:
    """Read a column file, plain, .gz or .xz; CoNLL-U by its name or its content. ``stream``: the file, opened already.

    Tagged: the last of at least two columns is the tag. Not tagged: all columns are observed, unless
    ``n_columns`` says how many are; a file with one more has its tags after all. ``column``: the tag's, by its number
    from 1 or its name in CoNLL-U; ``trained_column``: that of the training file, which counts where this file is of the
    same kind. A sentence that is only a -DOCSTART- line is left out, however many columns that line has.
    """
    first, lines = _first_line(numbered_lines(path, stream))
    of_conllu = is_conllu(path, first)
    if trained_column is not None and of_conllu == (trained_column in CONLLU_NAMES):
        column = column or trained_column
    if of_conllu:
        return _read_conllu(path, lines, tagged, n_columns, column)
    number = None if column is None else _number(column)
    cells, numbers, stops, width = _gather(path, _sentences(path, _rows(lines)))
    tag = _tag_column(f"{path}:{numbers[0]}", width, tagged, n_columns, number)
    observed = tuple(cells[i::width] for i in range(width if tag is None else tag))
    return _corpus(path, observed, None if tag is None else cells[tag::width], stops, numbers, column)


def _read_conllu(
    path: AnyPath, lines: Iterator[tuple[int, str]], tagged: bool, n_columns: int | None, column: str | None
) -> Corpus:
    name, kept = _chosen(column)
    text = [] if tagged else list(lines)
    cells, numbers, stops, width = _gather(path, _sentences(path, _conllu_rows(path, text or lines, kept)))
    tags = cells[width - 1 :: width]
    untagged = all(tag == _EMPTY for tag in tags)
    if tagged and untagged:
        raise DataError(str(path), f"column {name} is {_EMPTY} throughout; choose another with `column`")
    if n_columns is not None and n_columns != width - 1:
        names = " and ".join(CONLLU_NAMES[i] for i in kept[:-1])
        raise DataError(str(path), f"has {names} before {name}; expected {counted(n_columns, 'column')} before the tag")
    columns = tuple(cells[i::width] for i in range(width - 1))
    corpus = _corpus(path, columns, None if untagged else tags, stops, numbers, name)
    return corpus if tagged else replace(corpus, text=[line for _, line in text])


def _corpus(
    path: AnyPath,
    observed: tuple[list[str], ...],
    tags: list[str] | None,
    stops: list[int],
    lines: list[int],
    column: str | None,
) -> Corpus:
    return Corpus(str(path), observed, tags, np.array(stops, np.int64), np.array(lines, np.int32), column=column)


def conll_parts(path: AnyPath, size: int, column: str | None = None, skip: int = 0) -> Iterator[Corpus]:
    """The sentences of a tagged file, ``size`` at a time, without the first ``skip``; never all of it in memory."""
    first, lines = _first_line(numbered_lines(path))
    if is_conllu(path, first):
        column, kept = _chosen(column)
        rows, number = _conllu_rows(path, lines, kept), None
    else:
        rows, number = _rows(lines), None if column is None else _number(column)
    width, sentences = 0, itertools.islice(_sentences(path, rows), skip, None)
    while part := list(itertools.islice(sentences, size)):
        cells, numbers, stops, width = _gather(path, part, width)
        tag = _tag_column(f"{path}:{numbers[0]}", width, True, None, number) or 0
        *observed, tags = (cells[i::width] for i in range(tag + 1))
        yield _corpus(path, tuple(observed), tags, stops, numbers, column)
    if not width and not skip:
        raise DataError(str(path), _NO_TOKEN)


def _gather(
    path: AnyPath, sentences: Iterable[tuple[list[int], list[list[str]]]], width: int = 0
) -> tuple[list[str], list[int], list[int], int]:
    """All cells row by row, the line of each row, where sentences stop, and how many cells a row has: ``width``."""
    cells: list[str] = []
    lines: list[int] = []
    stops = [0]
    seen: dict[str, str] = {}
    intern = seen.setdefault  # words repeat: one string object for all of a word's tokens
    for numbers, sentence in sentences:
        width = width or len(sentence[0])
        if set(map(len, sentence)) != {width}:
            place, row = next((i, row) for i, row in enumerate(sentence) if len(row) != width)
            known = lines or numbers[:place]
            before = f"line {known[0]}" if known else "what stands before"
            raise DataError(
                f"{path}:{numbers[place]}",
                f"has {counted(len(row), 'column')} where {before} has {width}; "
                "every token needs the same columns, separated by spaces or tabs",
            )
        flat = list(itertools.chain.from_iterable(sentence))
        cells.extend(map(intern, flat, flat))
        lines.extend(numbers)
        stops.append(len(lines))
    if not lines:
        raise DataError(str(path), _NO_TOKEN)
    return cells, lines, stops, width


def _first_line(lines: Iterator[tuple[int, str]]) -> tuple[str, Iterator[tuple[int, str]]]:
    """The first line that is neither blank nor looks like a comment, and all lines."""
    head: list[tuple[int, str]] = []
    for number, line in lines:
        head.append((number, line))
        if line.strip() and not line.startswith("#"):
            return line, itertools.chain(head, lines)
    return "", iter(head)


def _rows(lines: Iterable[tuple[int, str]]) -> Iterator[_Row]:
    for number, line in lines:
        row = line.split(" ")
        if "" in row or "\t" in line:  # the slower way, for what is not separated by single spaces
            row = split_cells(line)
        yield number, row


def _sentences(path: AnyPath, rows: Iterable[_Row]) -> Iterator[tuple[list[int], list[list[str]]]]:
    numbers: list[int] = []
    sentence: list[list[str]] = []
    end: _Row = (0, [])
    for number, row in itertools.chain(rows, [end]):
        if row:
            numbers.append(number)
            sentence.append(row)
            if len(sentence) == limits.TOKENS + 1:
                limits.refuse(
                    f"{path}:{numbers[0]}",
                    f"more than {limits.TOKENS:,} tokens in one sentence: is a blank line missing?",
                )
        elif sentence:
            if len(sentence) > 1 or sentence[0][0] != _DOCUMENT_START:
                yield numbers, sentence
            numbers, sentence = [], []


def _number(column: str) -> int:
    """Of a column file, from 2: something must stand before the tag."""
    if column.upper() in CONLLU_NAMES:
        raise UsageError(f"`column` {column}: columns have names in CoNLL-U only; give its number, from 2")
    if not (column.isascii() and column.isdecimal() and len(column) < 6 and int(column) >= 2):
        raise UsageError(f"`column` {quoted(column)}: give a number from 2; the columns before the tag are observed")
    return int(column)


def _tag_column(where: str, width: int, tagged: bool, n_columns: int | None, number: int | None) -> int | None:
    """The tag's column, from 0, or None where there is no tag; an error where the file does not fit what was asked."""
    if number is not None:
        if n_columns is not None and number != n_columns + 1:
            raise DataError(where, f"`column` {number}: the model has {counted(n_columns, 'column')} before the tag")
        if width < number - (not tagged):
            raise DataError(where, f"has {counted(width, 'column')}, and `column` {number} is the tag's")
        return number - 1 if width >= number else None
    if tagged and width < 2:
        raise DataError(where, "has 1 column where at least 2 are needed; the last one must be the tag")
    if n_columns is None:
        return width - 1 if tagged else None
    if tagged and width != n_columns + 1:
        raise DataError(where, f"has {counted(width, 'column')}; expected {n_columns + 1}, {n_columns} and the tag")
    if width not in (n_columns, n_columns + 1):
        raise DataError(
            where, f"has {counted(width, 'column')}; expected {n_columns}, or {n_columns + 1} with the tag last"
        )
    return n_columns if width == n_columns + 1 else None


def write_conll(target: AnyPath | IO[str], corpus: Corpus, predicted: list[str]) -> None:
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
    with packing(Path(target)) as stream:
        stream.write(text.encode("utf-8"))
