"""Chunking's files: CoNLL columns in, the same with a predicted tag out; CRFsuite's attributes in, labels out."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from typing import Any

from sparsezo.errors import UsageError
from sparsezo.options import make_options
from sparsezo.storage.files import open_sniffed
from sparsezo.tasks.chunking.conll import Corpus, read_conll, write_conll
from sparsezo.tasks.chunking.crfsuite import looks_like_crfsuite, read_crfsuite, tagged_lines
from sparsezo.tasks.chunking.options import ChunkingOptions, NoOptions
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.chunking.templates import read_templates
from sparsezo.tasks.loading import Data, Files, Loaded, cut

_TASK = "task chunking"
_SNIFFED = 1 << 16  # bytes of a file that tell its format
from_arrays = Chunking.from_arrays


def load(files: Files) -> Loaded:
    options = make_options(ChunkingOptions, files.options, _TASK)
    path = files.one_train("chunking")
    train, dev = _read_first(path, options), None
    if (n := files.held_out()) is not None:
        cut(n, len(train), "sentences", path)
        dev, train = train[:n], train[n:]
    elif files.dev is not None:
        dev = _read(files.dev, train.listed is not None)
    test = _read(files.test, train.listed is not None) if files.test else None
    task, train = Chunking.fit(
        train,
        only=options.only,
        order=options.order,
        templates=read_templates(options.template) if options.template else None,
        features=options.features,
        min_count=options.min_count,
    )
    return Loaded(task, Data(train, task.seen(dev) if dev else None, task.seen(test) if test else None))


def _read_first(path: str, options: ChunkingOptions) -> Corpus:
    """Training data, which says what the other files look like where no option does."""
    with open_sniffed(path, _SNIFFED) as (head, stream):
        listed = options.format == "crfsuite"
        if options.format is None:
            lines, _, _ = head.decode("utf-8", "replace").rpartition("\n")
            listed = looks_like_crfsuite(lines)
        if listed and (options.template is not None or options.features is not None):
            name = "template" if options.template is not None else "features"
            raise UsageError(
                f"{path}: lists its attributes (CRFsuite's format), so `{name}` has no place; leave it out"
            )
        return read_crfsuite(path, stream) if listed else read_conll(path, stream=stream)


def _read(path: str, listed: bool) -> Corpus:
    return read_crfsuite(path) if listed else read_conll(path)


def read(task: Chunking, path: str, options: Mapping[str, Any]) -> Corpus:
    make_options(NoOptions, options, _TASK)
    return task.seen(_read(path, task.listed))


def predict(model: Any, path: str, options: Mapping[str, Any]) -> Iterator[str]:
    make_options(NoOptions, options, _TASK)
    task: Chunking = model.task
    if task.listed:
        listed = read_crfsuite(path)
        yield from tagged_lines(task.words(model.predict(listed), listed.offsets), listed.offsets)
        return
    corpus = read_conll(path, tagged=False, n_columns=task.n_columns)
    text = io.StringIO()
    write_conll(text, corpus, task.words(model.predict(corpus), corpus.offsets))
    yield text.getvalue()
