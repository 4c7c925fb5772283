"""Text classification from files larger than memory, a window of documents at a time (``tasks.streams``)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sparsezo.errors import DataError, UsageError
from sparsezo.options import make_options
from sparsezo.tasks.loading import Files
from sparsezo.tasks.streams import Stream, Streamed, check_streamed, nothing_left
from sparsezo.tasks.text.documents import Documents, document_parts, joined, read_documents
from sparsezo.tasks.text.hashed import HashedVectoriser
from sparsezo.tasks.text.options import TextOptions
from sparsezo.tasks.text.task import Prepared, TextClassification
from sparsezo.tasks.text.vectors import NONE

_READING = ("format", "text_column", "label_column")


def load_stream(files: Files, window: int) -> Streamed:
    options = make_options(TextOptions, files.options, "task text")
    check_streamed(files.train, options.hash_bits)
    if options.classes is not None:
        raise UsageError("`classes`: a `stream` learns from labels that are there; leave one of them out")
    if options.vectors not in (None, NONE):
        raise UsageError(f"`vectors` {options.vectors}: a `stream` has columns of words alone; leave one of them out")
    if any(Path(path).is_dir() for path in files.train):
        raise UsageError("`train` with RCV1's folder is no `stream`; name files, or leave `stream` out")
    held_out, name = files.held_out() or 0, ", ".join(files.train)
    how = {each: getattr(options, each) for each in _READING}

    def parts(size: int, skip: int = 0) -> Iterator[Documents]:
        return document_parts(files.train, size, skip=skip, **how)

    vectoriser = HashedVectoriser(options.hash_bits or 0, sublinear_tf=not options.raw_tf)
    content, sizes, classes = hashlib.blake2b(digest_size=16), [], set[str]()
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

    dev = _first(parts(held_out), held_out) if held_out else None
    if dev is None and files.dev is not None:
        dev = read_documents(files.dev, **_all(options))
    test = read_documents(files.test, **_all(options)) if files.test is not None else None
    stream = Stream(task, read, sizes, content.hexdigest(), name)
    return Streamed(stream, *(task.seen(each) if each is not None else None for each in (dev, test)))


def _all(options: TextOptions) -> dict[str, Any]:
    return {name: getattr(options, name) for name in (*_READING, "topics")}


def _first(parts: Iterator[Documents], n: int) -> Documents:
    """Of all files together; there are more."""
    taken: list[Documents] = []
    while left := n - sum(map(len, taken)):
        taken.append(next(parts).take(slice(0, left)))
    return joined(taken)
