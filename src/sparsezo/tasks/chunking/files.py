"""Chunking on the command line: CoNLL column files in, the same with a predicted tag out."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any, cast

from sparsezo.model import Model
from sparsezo.tasks.chunking.conll import Corpus, read_conll, write_conll
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.chunking.templates import read_templates
from sparsezo.tasks.loading import Files, Loaded, check_options, cut
from sparsezo.training import Data


def load(files: Files) -> Loaded:
    check_options("chunking", files.options, ("only", "order", "template", "min_count"))
    path = files.one_train("chunking")
    train, dev = read_conll(path), None
    if (n := files.held_out()) is not None:
        cut(n, len(train), "sentences", path)
        dev, train = train[:n], train[n:]
    elif files.dev is not None:
        dev = read_conll(files.dev)
    test = read_conll(files.test) if files.test else None
    options = dict(files.options)
    template = options.pop("template", None)
    task, train = Chunking.fit(train, templates=read_templates(template) if template else None, **options)
    return Loaded(task, Data(train, task.seen(dev) if dev else None, task.seen(test) if test else None))


def read(task: Chunking, path: str, options: dict[str, Any]) -> Corpus:
    check_options("chunking", options, ())
    return task.seen(read_conll(path))


def predict(model: Model, path: str, options: dict[str, Any]) -> Iterator[str]:
    check_options("chunking", options, ())
    task = cast(Chunking, model.task)
    corpus = read_conll(path, tagged=False, n_columns=task.n_columns)
    text = io.StringIO()
    write_conll(text, corpus, task.words(model.predict(corpus), corpus.offsets))
    yield text.getvalue()
