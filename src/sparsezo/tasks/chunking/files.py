"""Chunking's files: column files in, the same with a predicted tag out; CoNLL-U with its column filled."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from typing import Any

from sparsezo.options import make_options
from sparsezo.tasks.chunking.conll import Corpus, read_conll, write_conll
from sparsezo.tasks.chunking.conllu import filled
from sparsezo.tasks.chunking.options import ChunkingOptions, ReadingOptions
from sparsezo.tasks.chunking.tags import understood
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.chunking.templates import read_templates
from sparsezo.tasks.loading import Data, Files, Loaded, cut

_TASK = "task chunking"
from_arrays = Chunking.from_arrays


def load(files: Files) -> Loaded:
    options = make_options(ChunkingOptions, files.options, _TASK)
    path = files.one_train("chunking")
    train, dev = read_conll(path, column=options.column), None
    scheme, train = understood(train, options.scheme)  # as a whole, before dev is cut off
    if (n := files.held_out()) is not None:
        cut(n, len(train), "sentences", path)
        dev, train = train[:n], train[n:]
    elif files.dev is not None:
        dev = read_conll(files.dev, column=options.column, trained_column=train.column)
    test = read_conll(files.test, column=options.column, trained_column=train.column) if files.test else None
    templates = read_templates(options.template) if options.template else None
    task, train = Chunking.fit(
        train,
        only=options.only,
        order=options.order,
        templates=templates,
        min_count=options.min_count,
        scheme=scheme,
    )
    return Loaded(task, Data(train, task.seen(dev) if dev else None, task.seen(test) if test else None))


def read(task: Chunking, path: str, options: Mapping[str, Any]) -> Corpus:
    column = make_options(ReadingOptions, options, _TASK).column
    return task.seen(read_conll(path, column=column, trained_column=task.column))


def predict(model: Any, path: str, options: Mapping[str, Any]) -> Iterator[str]:
    column = make_options(ReadingOptions, options, _TASK).column
    task: Chunking = model.task
    corpus = read_conll(path, tagged=False, n_columns=task.n_columns, column=column, trained_column=task.column)
    predicted = task.words(model.predict(corpus), corpus.offsets)
    if corpus.text is not None:
        yield from filled(corpus.text, corpus.lines.tolist(), predicted, str(corpus.column))
        return
    text = io.StringIO()
    write_conll(text, corpus, predicted)
    yield text.getvalue()
