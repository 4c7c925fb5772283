"""Text classification's files: documents with labels in, labels out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from sparsezo.errors import DataError, UsageError
from sparsezo.options import make_options
from sparsezo.storage.fingerprint import hasher
from sparsezo.tasks.base import Json
from sparsezo.tasks.loading import Data, Files, Loaded, cut, refuse_held_out
from sparsezo.tasks.streams import Stream, Streamed, check_streamed, nothing_left
from sparsezo.tasks.text.features.tfidf import HashedVectoriser
from sparsezo.tasks.text.features.word_vectors import NONE
from sparsezo.tasks.text.io.documents import (
    Documents,
    document_parts,
    joined,
    named_classes,
    read_documents,
    read_rcv1,
    read_unlabelled,
)
from sparsezo.tasks.text.spec import TextOptions, TextPredicting, TextReading
from sparsezo.tasks.text.task import Prepared, TextClassification

if TYPE_CHECKING:
    from sparsezo.model import Model

_TASK = "task text"
_READING = ("format", "text_column", "label_column", "topics")  # options that say how documents are read
from_arrays = TextClassification.from_arrays


def load(files: Files) -> Loaded:
    options = make_options(TextOptions, files.options, _TASK)
    classes = named_classes(options.classes) if options.classes is not None else None
    train, dev, test = _documents(files, options, classes)
    task, prepared = fit(train, options, classes)
    return Loaded(task, Data(prepared, _seen(task, dev), _seen(task, test)))


def fit(train: Documents, options: TextOptions, classes: Sequence[str] | None) -> tuple[TextClassification, Prepared]:
    """The task of training documents with features as the options say, and these with their vectors."""
    return TextClassification.fit(
        train,
        classes=classes,
        min_count=options.min_count,
        sublinear_tf=not options.raw_tf,
        hash_bits=options.hash_bits,
        vectors=options.vectors or NONE,
    )


def _seen(task: TextClassification, documents: Documents | None) -> Prepared | None:
    return task.seen(documents) if documents is not None else None


def _documents(
    files: Files, options: TextOptions, classes: tuple[str, ...] | None
) -> tuple[Documents, Documents | None, Documents | None]:
    """``classes``: those that were named, since train has no labels."""
    if len(files.train) == 1 and Path(files.train[0]).is_dir():
        if files.dev or files.test:
            raise UsageError("`train` with RCV1's folder takes the paper's split; leave out `dev` and `test`")
        if classes is not None:
            raise UsageError("`classes`: the documents of RCV1's folder have their labels; leave it out, or name files")
        return read_rcv1(files.train[0])
    how, name, n = _how(options), ", ".join(files.train), files.held_out()
    if classes is not None:
        refuse_held_out(files, name)
        train = read_unlabelled(files.train, classes, **how)
    else:
        train = read_documents(files.train, **how)
    dev = read_documents(files.dev, **how) if files.dev and n is None else None
    if n is not None:
        cut(n, len(train), "documents", name)
        dev, train = train.take(slice(0, n)), train.take(slice(n, None))
    return train, dev, read_documents(files.test, **how) if files.test else None


def _how(options: TextReading | TextPredicting) -> Json:
    return {name: getattr(options, name) for name in _READING if hasattr(options, name)}


def load_stream(files: Files, window: int) -> Streamed:
    """As ``load``, from files larger than memory, a window of documents at a time."""
    options = make_options(TextOptions, files.options, _TASK)
    check_streamed(files.train, options.hash_bits)
    if options.classes is not None:
        raise UsageError("`classes`: a `stream` learns from labels that are there; leave one of them out")
    if options.vectors not in (None, NONE):
        raise UsageError(f"`vectors` {options.vectors}: a `stream` has columns of words alone; leave one of them out")
    if any(Path(path).is_dir() for path in files.train):
        raise UsageError("`train` with RCV1's folder is no `stream`; name files, or leave `stream` out")
    held_out, name, how = files.held_out() or 0, ", ".join(files.train), _how(options)

    def parts(size: int, skip: int = 0) -> Iterator[Documents]:
        return document_parts(files.train, size, options.format, options.text_column, options.label_column, skip)

    vectoriser = HashedVectoriser(options.hash_bits or 0, sublinear_tf=not options.raw_tf)
    content, sizes, classes = hasher(), [], set[str]()
    for part in parts(window, held_out):
        vectoriser.count(part)
        sizes.append(len(part))
        classes |= set(part.labels or [])
        for texts in (part.texts or [], part.labels or []):
            content.update("\n".join(texts).encode("utf-8", "surrogatepass") + b"\n\n")
    if not sizes:
        raise nothing_left(held_out, name)
    if len(classes) < 2:
        raise DataError(name, f"only the class '{min(classes)}' in the training documents; at least two are needed")
    task = TextClassification(tuple(sorted(classes)), vectoriser)
    task.check_size()

    def read() -> Iterator[Prepared]:
        return map(task.seen, parts(window, held_out))

    dev, taken = None, list[Documents]()
    if held_out:
        first = parts(held_out)  # of all files together; there are more
        while left := held_out - sum(map(len, taken)):
            taken.append(next(first).take(slice(0, left)))
        dev = joined(taken)
    elif files.dev is not None:
        dev = read_documents(files.dev, **how)
    test = read_documents(files.test, **how) if files.test is not None else None
    return Streamed(Stream(task, read, sizes, content.hexdigest(), name), _seen(task, dev), _seen(task, test))


def read(task: TextClassification, path: str, options: Mapping[str, object]) -> Prepared:
    reading = make_options(TextReading, options, _TASK)
    return task.seen(read_documents(path, **_how(reading)))


def predict(model: Model, path: str, options: Mapping[str, object]) -> Iterator[str]:
    """``label TAB text``, or the label alone where there is no text or ``labels_only`` asks for it."""
    reading = make_options(TextPredicting, options, _TASK)
    task = cast("TextClassification", model.task)
    documents = read_documents(path, labelled=False, **_how(reading))
    labels = task.words(model.predict(task.seen(documents)))
    if documents.texts is None or reading.labels_only:
        yield from (f"{label}\n" for label in labels)
    else:
        yield from (f"{label}\t{text}\n" for label, text in zip(labels, documents.texts, strict=True))
