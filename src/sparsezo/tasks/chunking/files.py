"""Chunking's files: CoNLL column files in, the same with a predicted tag out."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from typing import Any

from sparsezo.options import make_options
from sparsezo.tasks.chunking.conll import Corpus, read_conll, write_conll
from sparsezo.tasks.chunking.options import ChunkingOptions, NoOptions
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.chunking.templates import read_templates
from sparsezo.tasks.loading import Data, Files, Loaded, cut

_TASK = "task chunking"
from_arrays = Chunking.from_arrays


def load(files: Files) -> Loaded:
    options = make_options(ChunkingOptions, files.options, _TASK)
    path = files.one_train("chunking")
    train, dev = read_conll(path), None
    if (n := files.held_out()) is not None:
        cut(n, len(train), "sentences", path)
        dev, train = train[:n], train[n:]
    elif files.dev is not None:
        dev = read_conll(files.dev)
    test = read_conll(files.test) if files.test else None
    templates = read_templates(options.template) if options.template else None
    task, train = Chunking.fit(
        train, only=options.only, order=options.order, templates=templates, min_count=options.min_count
    )
    return Loaded(task, Data(train, task.seen(dev) if dev else None, task.seen(test) if test else None))


def read(task: Chunking, path: str, options: Mapping[str, Any]) -> Corpus:
    make_options(NoOptions, options, _TASK)
    return task.seen(read_conll(path))


def predict(model: Any, path: str, options: Mapping[str, Any]) -> Iterator[str]:
    make_options(NoOptions, options, _TASK)
    task: Chunking = model.task
    corpus = read_conll(path, tagged=False, n_columns=task.n_columns)
    text = io.StringIO()
    write_conll(text, corpus, task.words(model.predict(corpus), corpus.offsets))
    yield text.getvalue()
