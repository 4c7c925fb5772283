"""Documents for text classification (the paper's appendix, RCV1), in the formats people have.

tsv        ``label TAB text``, one document a line
text       one document a line, without labels: to predict, or to train with ``classes`` named
csv        a table with a header, parted by commas, semicolons or TABs; a column of texts and one of labels
jsonl      an object a line, with a text and a label
svmlight   ``label index:value ...``, RCV1's published vectors
lyrl       RCV1-v2's token files (``.I id``, ``.W``, lines of tokens), labelled by its topics qrels file

    train = read_documents(["a.tsv.gz", "b.tsv.gz"])        # the format is found by ending and content
    train, dev, test = read_rcv1("RCV1/")                   # the paper's split

A file is opened once, so pipes work; ``-`` is standard input. A document without words is a document.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from sparsezo import messages
from sparsezo.errors import DataError, UsageError, quoted, some
from sparsezo.messages import counted
from sparsezo.storage.files import ending, numbered_lines, open_sniffed
from sparsezo.tasks.tables import Columns, Document, PathLike, csv_documents, is_header, json_documents
from sparsezo.tasks.text.io.svmlight import read_svmlight

TOPICS = ("CCAT", "ECAT", "GCAT", "MCAT")  # RCV1-v2 (Lewis et al. 2004)
QRELS = "rcv1-v2.topics.qrels"  # lines ``CCAT 2286 1``: document 2286 has the topic CCAT
FORMATS = ("tsv", "text", "csv", "jsonl", "svmlight", "lyrl")
STREAMED = ("tsv", "csv", "jsonl")
_SNIFF = 1 << 16
_EMPTY = "is empty; a file of documents has at least one"


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
    vectors: csr_array | None = None  # documents x indices as they are written
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
            None if self.vectors is None else self.vectors[rows],
            self.tokenised,
        )


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
            if found == "lyrl" and topic_of is None and (labelled or topics is not None):
                topic_of = read_topics(topics if topics is not None else _topics_beside(path))
            if found == "svmlight":
                file = read_svmlight(path, stream, labelled=labelled)
                zeros = np.zeros(len(file.lines), np.int32)
                parts.append(Documents((str(path),), zeros, file.lines, file.labels, vectors=file.vectors))
            else:
                parts.append(_gathered(path, _texts(path, stream, found, columns, topic_of), tokenised=found == "lyrl"))
    return joined(parts)


def detect_format(path: PathLike, head: bytes, columns: Columns) -> str:
    """One of ``FORMATS``, by the name and the first bytes; a line with a TAB that is not svmlight makes it tsv."""
    lines = [line for line in head.removeprefix(b"\xef\xbb\xbf").split(b"\n") if line.strip()]
    if not head:
        raise DataError(str(path), _EMPTY)
    if ending(path) == ".jsonl" or (lines and re.match(rb'\s*\{\s*["}]', lines[0])):
        return "jsonl"
    if ending(path) == ".csv" or columns.named:
        return "csv"
    if ending(path) == ".json" and lines and lines[0].lstrip().startswith(b"["):
        raise DataError(str(path), "is a JSON list; write its objects one a line, as jq -c '.[]' does")
    if lines and is_header(lines[0].decode("utf-8", "replace")):
        messages.say(f"{path}: its first line names columns, so it is read as csv; `format` tsv if that is a document")
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
                raise DataError(str(path), _EMPTY)


def _texts(
    path: PathLike, stream: IO[bytes], format: str, columns: Columns, topic_of: dict[int, str] | None = None
) -> Iterator[Document]:
    if format == "csv":
        return csv_documents(path, stream, columns)
    if format == "jsonl":
        return json_documents(path, stream, columns)
    if format == "lyrl":
        return _lyrl_documents(path, topic_of, stream)
    return _plain_documents(path, stream, columns.labelled or format == "tsv")


def _gathered(path: PathLike, documents: Iterable[Document], tokenised: bool = False) -> Documents:
    labels: list[str] = []
    texts: list[str] = []
    lines: list[int] = []
    names: dict[str, str] = {}
    for number, label, text in documents:
        if label is not None:
            labels.append(names.setdefault(label, label))  # one string for all documents of a class
        texts.append(text)
        lines.append(number)
    if not texts and tokenised:
        what = f"no document has exactly one of {', '.join(TOPICS)}, or there is none"
        raise DataError(str(path), f"{what}; are these LYRL2004 tokens and their qrels file?")
    if not texts:
        raise DataError(str(path), _EMPTY)
    file_of = np.zeros(len(texts), np.int32)
    return Documents((str(path),), file_of, np.array(lines, np.int64), labels or None, texts, tokenised=tokenised)


def _plain_documents(path: PathLike, stream: IO[bytes], labelled: bool) -> Iterator[tuple[int, str | None, str]]:
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


def read_rcv1(folder: PathLike) -> tuple[Documents, Documents, Documents]:
    """The paper's train, dev and test sets: test_pt0 to test_pt2, every 8th of test_pt3, and train.dat.

    "Every 8th" counts the documents kept (exactly one of the four topics): the 8th, the 16th and so on.
    """
    folder = Path(folder)
    names = [f"lyrl2004_tokens_test_pt{part}.dat" for part in range(4)] + ["lyrl2004_tokens_train.dat"]
    files = [_present(folder, name) for name in names]
    topic_of = read_topics(_present(folder, QRELS))
    parts = [_gathered(path, _lyrl_documents(path, topic_of), tokenised=True) for path in files]
    return joined(parts[:3]), parts[3].take(slice(7, None, 8)), parts[4]


# RCV1-v2's own files


def read_topics(path: PathLike) -> dict[int, str]:
    """Topic by document id, for documents with exactly one of ``TOPICS``; lines are ``CCAT 2286 1``."""
    topics: dict[int, set[str]] = {}
    for number, line in numbered_lines(path):
        fields = line.split()
        if not fields:
            continue
        if len(fields) != 3 or not _is_id(fields[1]) or fields[2] not in ("0", "1"):
            what = f"'{quoted(line)}' is not 'topic id 1'; is this RCV1-v2's topics qrels file?"
            raise DataError(f"{path}:{number}", what)
        if fields[0] in TOPICS and fields[2] != "0":
            topics.setdefault(int(fields[1]), set()).add(fields[0])
    if not topics:
        raise DataError(str(path), f"names none of {', '.join(TOPICS)}; is this RCV1-v2's topics qrels file?")
    return {document: min(some) for document, some in topics.items() if len(some) == 1}


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 18


def _lyrl_documents(
    path: PathLike, topic_of: dict[int, str] | None, stream: IO[bytes] | None = None
) -> Iterator[Document]:
    """(line of .I, topic, tokens) of each document that has one; without ``topic_of`` of all, and no topics."""
    start, document = 0, 0
    tokens: list[str] | None = None  # None until the document's .W
    for number, line in itertools.chain(numbered_lines(path, stream), [(0, ".I")]):  # the last ends a document, too
        where = f"{path}:{number}"
        if line.startswith(".I"):
            if start and tokens is None:
                raise DataError(f"{path}:{start}", f"document {document} has no .W; is the file cut off?")
            if start and (topic_of is None or document in topic_of):
                yield start, topic_of[document] if topic_of is not None else None, " ".join(tokens or [])
            if number and not _is_id(name := line[2:].strip()):
                raise DataError(where, f"'{quoted(line)}' has no document id; write .I and a whole number")
            start, document, tokens = number, int(name) if number else 0, None
        elif line.rstrip() == ".W":
            if not start or tokens is not None:
                raise DataError(where, "a .W without its .I; each document is .I id, .W, tokens")
            tokens = []
        elif line and not line.isspace():
            if tokens is None:
                raise DataError(where, f"'{quoted(line)}' stands before .W; each document is .I id, .W, tokens")
            tokens.append(line.strip())


def _topics_beside(path: PathLike) -> Path:
    try:
        return _present(Path(path).parent, QRELS)
    except DataError:
        raise DataError(
            str(path), f"LYRL2004 tokens carry no labels; put {QRELS} beside it or name the qrels file"
        ) from None


def _present(folder: Path, name: str) -> Path:
    for packed in ("", ".gz", ".xz"):
        if (folder / (name + packed)).exists():
            return folder / (name + packed)
    raise DataError(str(folder / name), "no such file, nor with .gz or .xz; RCV1-v2's distribution has it (LYRL2004)")


# Sets of documents


def joined(parts: Sequence[Documents]) -> Documents:
    first = parts[0]
    if len(parts) == 1:
        return first
    for part in parts[1:]:
        if part.kind != first.kind or (part.labels is None) != (first.labels is None):
            one, other = (each.kind + ("" if each.labels is not None else " without labels") for each in (part, first))
            what = f"holds {one}, but {first.paths[0]} {other}; give files of one format"
            raise DataError(part.paths[0], what)
    vectors = None
    if first.vectors is not None:
        held = [part.vectors for part in parts if part.vectors is not None]
        width = max(some.shape[1] for some in held)
        vectors = vstack([csr_array((some.data, some.indices, some.indptr), (some.shape[0], width)) for some in held])
    return Documents(
        tuple(path for part in parts for path in part.paths),
        np.repeat(np.arange(len(parts), dtype=np.int32), [len(part) for part in parts]),
        np.concatenate([part.lines for part in parts]),
        None if first.labels is None else [label for part in parts for label in part.labels or []],
        None if first.texts is None else [text for part in parts for text in part.texts or []],
        vectors,
        first.tokenised,
    )


def classes_of(documents: Documents) -> list[str]:
    """The classes of a training set, sorted; fewer than two cannot be learned."""
    classes = sorted(set(documents.labels or []))
    if len(classes) < 2:
        held = f"only the class '{classes[0]}'" if classes else "no labels"
        what = f"{held} in the training documents; at least two classes are needed"
        raise DataError(", ".join(documents.paths), what)
    return classes


def class_numbers(documents: Documents, classes: Iterable[str]) -> NDArray[np.int32]:
    """Each document's place in ``classes``; a label unseen in train is an error at its line."""
    number_of = {name: number for number, name in enumerate(classes)}
    if documents.labels is None:
        what = "has no labels; write label TAB text, one document a line, or train with a `scorer`"
        raise DataError(", ".join(documents.paths), what)
    numbers = np.array([number_of.get(label, -1) for label in documents.labels], np.int32)
    for i in np.flatnonzero(numbers < 0)[:1].tolist():
        what = f"label '{quoted(documents.labels[i])}' is none of the model's classes, which are {some(number_of, 20)}"
        raise DataError(documents.where(i), what)
    return numbers


# Documents without labels, and the classes that ``classes`` names in their place


def named_classes(classes: str | Iterable[str]) -> tuple[str, ...]:
    """The names in "sci,talk"; UsageError where there are fewer than two, or one is no name."""
    names = [name.strip() for name in (classes.split(",") if isinstance(classes, str) else classes)]
    for name in names:
        if not name or not name.isprintable():
            what = quoted(name) or "with nothing between two commas"
            raise UsageError(f"`classes` {what}: give names, as in sci,talk")
        if names.count(name) > 1:
            raise UsageError(f"`classes` {quoted(name)}: is named twice")
    if len(names) < 2:
        raise UsageError(f"`classes` {', '.join(names)}: give two or more, parted by commas")
    return tuple(names)


def read_unlabelled(paths: PathLike | Sequence[PathLike], classes: Sequence[str], **how: str | None) -> Documents:
    """Documents without labels; says what was understood. ``how`` is of ``read_documents``.

    Labels that are there all the same are not looked at: nobody could say later that an answer had been seen.
    """
    documents = read_documents(paths, labelled=False, classes=classes, **how)
    left_out = "; labels are not looked at, with `classes` given" if documents.labels is not None else ""
    found = {"vectors": "vectors", "tokens": "tokens of RCV1", "text": "texts"}[documents.kind]
    messages.say(
        f"{', '.join(documents.paths)}: {counted(len(documents), 'document')} without labels, {found}{left_out}"
    )
    return replace(documents, labels=None)
