"""Text classification's files: documents with labels in, labels out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sparsezo.errors import UsageError
from sparsezo.options import make_options
from sparsezo.tasks.loading import Data, Files, Loaded, cut, refuse_held_out
from sparsezo.tasks.text.documents import Documents, read_documents, read_rcv1
from sparsezo.tasks.text.options import TextOptions, TextPredicting, TextReading
from sparsezo.tasks.text.task import Prepared, TextClassification
from sparsezo.tasks.text.unlabelled import named_classes, read_unlabelled
from sparsezo.tasks.text.vectors import NONE

_TASK = "task text"
_READING = ("format", "text_column", "label_column", "topics")  # options that say how documents are read
from_arrays = TextClassification.from_arrays


def load(files: Files) -> Loaded:
    options = make_options(TextOptions, files.options, _TASK)
    classes = named_classes(options.classes) if options.classes is not None else None
    train, dev, test = _documents(files, options, classes)
    tf = not options.raw_tf
    counting: dict[str, Any] = {"min_count": options.min_count, "sublinear_tf": tf, "hash_bits": options.hash_bits}
    vectors = options.vectors or NONE
    task, prepared = TextClassification.fit(train, classes=classes, vectors=vectors, **counting)
    return Loaded(task, Data(prepared, *(task.seen(part) if part is not None else None for part in (dev, test))))


def _documents(
    files: Files, options: TextOptions, classes: tuple[str, ...] | None
) -> tuple[Documents, Documents | None, Documents | None]:
    """``classes``: those that were named, since train has no labels."""
    if len(files.train) == 1 and Path(files.train[0]).is_dir():
        if files.dev or files.test:
            raise UsageError("`train` with RCV1's folder takes the paper's split; leave out `dev` and `test`")
        if classes is not None:
            raise UsageError("`classes`: the documents of RCV1's folder have their labels; leave it out, or name files")
        split = read_rcv1(files.train[0])
        return split.train, split.dev, split.test

    def reading(paths: str | tuple[str, ...]) -> Documents:
        return read_documents(paths, **_how(options))

    if classes is not None:
        refuse_held_out(files, ", ".join(files.train))
        train = read_unlabelled(files.train, classes, **_how(options))
        return train, reading(files.dev) if files.dev else None, reading(files.test) if files.test else None
    train, dev = reading(files.train), None
    if (n := files.held_out()) is not None:
        cut(n, len(train), "documents", ", ".join(files.train))
        dev, train = train.take(slice(0, n)), train.take(slice(n, None))
    elif files.dev is not None:
        dev = reading(files.dev)
    return train, dev, reading(files.test) if files.test else None


def _how(options: Any) -> dict[str, Any]:
    return {name: getattr(options, name) for name in _READING if hasattr(options, name)}


def read(task: TextClassification, path: str, options: Mapping[str, Any]) -> Prepared:
    reading = make_options(TextReading, options, _TASK)
    return task.seen(read_documents(path, **_how(reading)))


def predict(model: Any, path: str, options: Mapping[str, Any]) -> Iterator[str]:
    """``label TAB text``, or the label alone where there is no text or ``labels_only`` asks for it."""
    reading = make_options(TextPredicting, options, _TASK)
    task: TextClassification = model.task
    documents = read_documents(path, labelled=False, **_how(reading))
    labels = task.words(model.predict(task.seen(documents)))
    if documents.texts is None or reading.labels_only:
        yield from (f"{label}\n" for label in labels)
    else:
        yield from (f"{label}\t{text}\n" for label, text in zip(labels, documents.texts, strict=True))
