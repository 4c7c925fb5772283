"""Documents for text classification (the paper's appendix, RCV1), in the formats people have.

=========  ====================================================================================================
tsv        ``label TAB text``, one document a line
text       one document a line, without labels: to predict, or to train with ``classes`` named
csv        a table with a header, parted by commas, semicolons or TABs; a column of texts and one of labels
jsonl      an object a line, with a text and a label
svmlight   ``label index:value ...``, RCV1's published vectors
lyrl       RCV1-v2's token files (``.I id``, ``.W``, lines of tokens), labelled by its topics qrels file
=========  ====================================================================================================

    train = read_documents(["a.tsv.gz", "b.tsv.gz"])        # the format is found by ending and content
    train = read_documents("train.csv", text_column="body", label_column="2")
    classes = classes_of(train)
    gold = class_numbers(read_documents("test.tsv"), classes)
    split = read_rcv1("RCV1/")                              # the paper's train, dev and test sets

A file is opened once, so pipes work; ``-`` is standard input. A document without words is a document.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from sparsezo import notes
from sparsezo.errors import DataError, UsageError, quoted
from sparsezo.storage.files import numbered_lines, open_bytes, open_sniffed
from sparsezo.tasks.text.lyrl import QRELS, TOPICS, lyrl_blocks, present, read_topics, topics_beside
from sparsezo.tasks.text.svmlight import Vectors, read_svmlight, with_labels
from sparsezo.tasks.text.tables import Columns, Document, csv_documents, ending, is_header, json_documents

FORMATS = ("tsv", "text", "csv", "jsonl", "svmlight", "lyrl")
STREAMED = ("tsv", "csv", "jsonl")
_SNIFF = 1 << 16

PathLike = str | os.PathLike[str]


@dataclass(frozen=True, eq=False)
class Documents:
    """Documents in file order, either as ``texts`` or as ``vectors``; ``labels`` is None where the files have none.

    ``tokenised`` texts are tokens parted by blanks, to be taken as they are.
    """

    paths: tuple[str, ...]
    file_of: NDArray[np.int32]
    lines: NDArray[np.int64]
    labels: list[str] | None
    texts: list[str] | None = None
    vectors: Vectors | None = None
    tokenised: bool = False

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def kind(self) -> str:
        """``text``, ``tokens`` or ``vectors``: what a vectoriser has to do with them."""
        if self.vectors is not None:
            return "vectors"
        return "tokens" if self.tokenised else "text"

    def where(self, i: int) -> str:
        """``path:line`` of document i, for messages."""
        return f"{self.paths[self.file_of[i]]}:{self.lines[i]}"

    def take(self, chosen: slice | Sequence[int] | NDArray[np.int64]) -> Documents:
        """The chosen documents: ``take(slice(0, 1000))`` is a dev set held out of train."""
        rows = np.arange(len(self))[chosen]
        return Documents(
            self.paths,
            self.file_of[rows],
            self.lines[rows],
            None if self.labels is None else [self.labels[i] for i in rows],
            None if self.texts is None else [self.texts[i] for i in rows],
            None if self.vectors is None else self.vectors.take(rows),
            self.tokenised,
        )


@dataclass(frozen=True, eq=False)
class Rcv1Split:
    """The paper's split of RCV1."""

    train: Documents
    dev: Documents
    test: Documents


def read_documents(
    paths: PathLike | Sequence[PathLike],
    format: str | None = None,
    *,
    labelled: bool = True,
    text_column: str | None = None,
    label_column: str | None = None,
    topics: PathLike | None = None,
    classes: Collection[str] | None = None,
) -> Documents:
    """Read one or several files as one set of documents, in the order given.

    ``labelled``: every document must have a label (train, dev, test). Without it, files that have no labels are read
    too. ``text_column`` and ``label_column`` are of csv (names, or numbers from 1) and jsonl (keys); default: the usual
    names. ``topics`` is the qrels file of lyrl tokens; default: ``rcv1-v2.topics.qrels`` beside the first of them.
    ``classes``: what stands before TABs is no label unless it is one of these.
    """
    files = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not files:
        raise UsageError("no file of documents is named; give at least one")
    if format is not None and format not in FORMATS:
        raise UsageError(f"'{format}' is no format of documents; choose one of {', '.join(FORMATS)}")
    if format == "text" and labelled:
        raise UsageError("the format text has no labels; training and evaluation need another of " + ", ".join(FORMATS))
    columns = Columns(text_column, label_column, labelled)
    if columns.named and format not in (None, "csv", "jsonl"):
        raise UsageError(f"`text_column` and `label_column` are for csv and jsonl, not for {format}; leave them out")
    parts: list[Documents] = []
    topic_of: dict[int, str] | None = None
    for path in files:
        with open_sniffed(path, _SNIFF) as (head, stream):
            found = format or detect_format(path, head, columns)
            if format is None and found == "tsv" and classes is not None and not _begin_with(classes, head):
                found = "text"
            if found == "svmlight":
                parts.append(_read_vectors(path, stream if labelled else with_labels(stream)))
            elif found == "lyrl":
                if topic_of is None and (labelled or topics is not None):
                    topic_of = read_topics(topics if topics is not None else topics_beside(path))
                parts.append(_read_lyrl(path, stream, topic_of))
            else:
                parts.append(_read_texts(path, stream, found, columns))
    return joined(parts)


def detect_format(path: PathLike, head: bytes, columns: Columns) -> str:
    """One of ``FORMATS``, by the name and the first bytes; a line with a TAB that is not svmlight makes it tsv."""
    lines = [line for line in head.removeprefix(b"\xef\xbb\xbf").split(b"\n") if line.strip()]
    if not head:
        raise DataError(str(path), "is empty; a file of documents has at least one")
    if ending(path) == ".jsonl" or (lines and re.match(rb'\s*\{\s*["}]', lines[0])):
        return "jsonl"
    if ending(path) == ".csv" or columns.named:
        return "csv"
    if ending(path) == ".json" and lines and lines[0].lstrip().startswith(b"["):
        raise DataError(str(path), "is a JSON list; write its objects one a line, as jq -c '.[]' does")
    if lines and is_header(lines[0].decode("utf-8", "replace")):
        notes.say(f"{path}: its first line names columns, so it is read as csv; `format` tsv if that is a document")
        return "csv"
    if lines and lines[0].startswith(b".I"):
        return "lyrl"
    if len(head) == _SNIFF and len(lines) > 1:
        del lines[-1]  # it may be cut
    if _looks_svmlight(lines[:20]):
        return "svmlight"
    return "tsv" if any(b"\t" in line for line in lines) else "text"


def _begin_with(classes: Collection[str], head: bytes) -> bool:
    """Whether every line is one of these, a TAB and a text."""
    whole, _, rest = head.rpartition(b"\n")
    lines = (whole or rest).decode("utf-8", "replace").splitlines()
    return all("\t" in line and line.partition("\t")[0].strip() in classes for line in lines if line.strip())


def _looks_svmlight(lines: list[bytes]) -> bool:
    """Most lines are a label, a pair and then at least half pairs; a file with mistakes gets svmlight's messages."""
    fields = [re.sub(rb"^(\s*\S+)\s+qid:[0-9]+", rb"\1", line.split(b"#", 1)[0]).split()[1:] for line in lines]
    looks = [_is_pair(some[0]) and 2 * sum(map(_is_pair, some)) >= len(some) for some in fields if some]
    return 2 * sum(looks) > len(looks)


def _is_pair(field: bytes) -> bool:
    index, colon, _ = field.partition(b":")
    return bool(colon) and index.removeprefix(b"-").isdigit()


def document_parts(
    paths: Sequence[PathLike],
    size: int,
    format: str | None = None,
    *,
    text_column: str | None = None,
    label_column: str | None = None,
    skip: int = 0,
) -> Iterator[Documents]:
    """Labelled texts, ``size`` at a time, without the first ``skip``; never all of them in memory."""
    columns = Columns(text_column, label_column, True)
    for path in paths:
        with open_sniffed(path, _SNIFF) as (head, stream):
            found = format or detect_format(path, head, columns)
            if found not in STREAMED:
                raise UsageError(f"{path}: a `stream` is read from {', '.join(STREAMED)}, and this is {found}")
            documents = _texts(path, stream, found, columns)
            passed = sum(1 for _ in itertools.islice(documents, skip))
            skip -= passed
            while part := list(itertools.islice(documents, size)):
                passed = 1
                yield _gathered(path, part)
            if not passed:
                raise DataError(str(path), "is empty; a file of documents has at least one")


def _read_texts(path: PathLike, stream: IO[bytes], format: str, columns: Columns) -> Documents:
    return _gathered(path, _texts(path, stream, format, columns))


def _texts(path: PathLike, stream: IO[bytes], format: str, columns: Columns) -> Iterator[Document]:
    if format == "csv":
        return csv_documents(path, stream, columns)
    if format == "jsonl":
        return json_documents(path, stream, columns)
    return _plain_documents(path, stream, columns.labelled or format == "tsv")


def _gathered(path: PathLike, documents: Iterable[Document]) -> Documents:
    labels: list[str] = []
    texts: list[str] = []
    lines: list[int] = []
    names: dict[str, str] = {}
    for number, label, text in documents:
        if label is not None:
            labels.append(names.setdefault(label, label))  # one string for all documents of a class
        texts.append(text)
        lines.append(number)
    if not texts:
        raise DataError(str(path), "is empty; a file of documents has at least one")
    return _documents(path, lines, labels or None, texts)


def _plain_documents(path: PathLike, stream: IO[bytes], labelled: bool) -> Iterator[tuple[int, str | None, str]]:
    """Lines of ``label TAB text``, or of text alone."""
    for number, line in numbered_lines(path, stream):
        if not labelled:
            yield number, None, line
            continue
        label, tab, text = line.partition("\t")
        label = label.strip()
        if not tab:
            what = f"no TAB in '{quoted(line)}'" if label else "the line is blank"
            raise DataError(f"{path}:{number}", f"{what}; write label TAB text, one document a line")
        if not label:
            raise DataError(f"{path}:{number}", f"the label before '{quoted(text)}' is empty; write label TAB text")
        yield number, label, text


def _documents(
    path: PathLike, lines: Sequence[int], labels: list[str] | None, texts: list[str], tokenised: bool = False
) -> Documents:
    file_of = np.zeros(len(texts), np.int32)
    return Documents((str(path),), file_of, np.array(lines, np.int64), labels, texts, tokenised=tokenised)


def _read_vectors(path: PathLike, stream: IO[bytes]) -> Documents:
    file = read_svmlight(path, stream)
    return Documents((str(path),), np.zeros(len(file.lines), np.int32), file.lines, file.labels, vectors=file.vectors)


def _read_lyrl(path: PathLike, stream: IO[bytes], topic_of: dict[int, str] | None) -> Documents:
    """With topics, the documents that have one; without, all of them and no labels."""
    labels: list[str] = []
    texts: list[str] = []
    lines: list[int] = []
    for number, document, text in lyrl_blocks(path, stream):
        if topic_of is not None:
            if document not in topic_of:
                continue
            labels.append(topic_of[document])
        texts.append(text)
        lines.append(number)
    if not texts:
        what = "no document has exactly one of " + ", ".join(TOPICS) if topic_of is not None else "is empty"
        raise DataError(str(path), f"{what}; are these LYRL2004 tokens and their qrels file?")
    return _documents(path, lines, labels if topic_of is not None else None, texts, tokenised=True)


def read_rcv1(folder: PathLike) -> Rcv1Split:
    """The paper's split: train = test_pt0 to test_pt2, dev = every 8th of test_pt3, test = train.dat.

    "Every 8th" counts the documents kept (exactly one of the four topics): the 8th, the 16th and so on.
    """
    folder = Path(folder)
    names = [f"lyrl2004_tokens_test_pt{part}.dat" for part in range(4)] + ["lyrl2004_tokens_train.dat"]
    files = [present(folder, name) for name in names]
    topic_of = read_topics(present(folder, QRELS))
    parts = []
    for path in files:
        with open_bytes(path) as stream:
            parts.append(_read_lyrl(path, stream, topic_of))
    return Rcv1Split(joined(parts[:3]), parts[3].take(slice(7, None, 8)), parts[4])


def joined(parts: Sequence[Documents]) -> Documents:
    first = parts[0]
    if len(parts) == 1:
        return first
    for part in parts[1:]:
        if part.kind != first.kind or (part.labels is None) != (first.labels is None):
            raise DataError(
                part.paths[0],
                f"holds {_described(part)}, but {first.paths[0]} {_described(first)}; give files of one format",
            )
    vectors = None
    if first.vectors is not None:
        held = [part.vectors for part in parts if part.vectors is not None]
        sizes = np.concatenate([np.diff(some.indptr) for some in held])
        vectors = Vectors(
            np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]),
            np.concatenate([some.indices for some in held]),
            np.concatenate([some.values for some in held]),
        )
    return Documents(
        tuple(path for part in parts for path in part.paths),
        np.repeat(np.arange(len(parts), dtype=np.int32), [len(part) for part in parts]),
        np.concatenate([part.lines for part in parts]),
        None if first.labels is None else [label for part in parts for label in part.labels or []],
        None if first.texts is None else [text for part in parts for text in part.texts or []],
        vectors,
        first.tokenised,
    )


def _described(part: Documents) -> str:
    return part.kind + (" without labels" if part.labels is None else "")


def classes_of(documents: Documents) -> list[str]:
    """The classes of a training set, sorted; fewer than two cannot be learned."""
    classes = sorted(set(documents.labels or []))
    if len(classes) < 2:
        held = f"only the class '{classes[0]}'" if classes else "no labels"
        raise DataError(
            ", ".join(documents.paths), f"{held} in the training documents; at least two classes are needed"
        )
    return classes


def class_numbers(documents: Documents, classes: Iterable[str]) -> NDArray[np.int32]:
    """Each document's place in ``classes``; a label unseen in train is an error at its line."""
    number_of = {name: number for number, name in enumerate(classes)}
    if documents.labels is None:
        what = "has no labels; write label TAB text, one document a line, or train with a `scorer`"
        raise DataError(", ".join(documents.paths), what)
    try:
        return np.array([number_of[label] for label in documents.labels], np.int32)
    except KeyError:
        i = next(i for i, label in enumerate(documents.labels) if label not in number_of)
        known = ", ".join(map(quoted, list(number_of)[:20])) + (", ..." if len(number_of) > 20 else "")
        raise DataError(
            documents.where(i),
            f"label '{quoted(documents.labels[i])}' is none of the model's classes, which are {known}",
        ) from None
