"""Text classification on the command line: documents with labels in, labels out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from sparsezo.errors import UsageError
from sparsezo.model import Model
from sparsezo.tasks.loading import Files, Loaded, check_options, cut
from sparsezo.tasks.text.documents import Documents, read_documents, read_rcv1
from sparsezo.tasks.text.task import Prepared, TextClassification
from sparsezo.training import Data

_READING = ("format", "topics")


def load(files: Files) -> Loaded:
    check_options("text", files.options, (*_READING, "min_count", "raw_tf"))
    train, dev, test = _documents(files)
    task, prepared = TextClassification.fit(
        train,
        min_count=files.options.get("min_count", 1),
        sublinear_tf=not files.options.get("raw_tf", False),
    )
    return Loaded(task, Data(prepared, *(task.seen(part) if part is not None else None for part in (dev, test))))


def _documents(files: Files) -> tuple[Documents, Documents | None, Documents | None]:
    if len(files.train) == 1 and Path(files.train[0]).is_dir():
        if files.dev or files.test:
            raise UsageError("--train with RCV1's folder takes the paper's split; leave out --dev and --test")
        split = read_rcv1(files.train[0])
        return split.train, split.dev, split.test
    reading = {name: files.options[name] for name in _READING if name in files.options}
    train, dev = read_documents(files.train, **reading), None
    if (n := files.held_out()) is not None:
        cut(n, len(train), "documents", ", ".join(files.train))
        dev, train = train.take(slice(0, n)), train.take(slice(n, None))
    elif files.dev is not None:
        dev = read_documents(files.dev, **reading)
    return train, dev, read_documents(files.test, **reading) if files.test else None


def read(task: TextClassification, path: str, options: dict[str, Any]) -> Prepared:
    check_options("text", options, _READING)
    return task.seen(read_documents(path, **options))


def predict(model: Model, path: str, options: dict[str, Any]) -> Iterator[str]:
    """``label TAB text``, or the label alone where there is no text or --labels-only asks for it."""
    check_options("text", options, (*_READING, "labels_only"))
    task = cast(TextClassification, model.task)
    reading = {name: options[name] for name in _READING if name in options}
    documents = read_documents(path, labelled=False, allow_empty=True, **reading)
    labels = task.words(model.predict(task.seen(documents)))
    if documents.texts is None or options.get("labels_only"):
        yield from (f"{label}\n" for label in labels)
    else:
        yield from (f"{label}\t{text}\n" for label, text in zip(labels, documents.texts, strict=True))
