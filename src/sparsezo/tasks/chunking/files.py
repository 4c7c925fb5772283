"""Chunking's files: columns in, the same with a predicted tag out; CoNLL-U with its column filled; CRFsuite's."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from typing import Any

from sparsezo.errors import UsageError
from sparsezo.options import make_options
from sparsezo.storage.files import open_sniffed
from sparsezo.tasks.chunking.column_choice import chosen_columns
from sparsezo.tasks.chunking.conll import Corpus, read_conll, write_conll
from sparsezo.tasks.chunking.conllu import filled
from sparsezo.tasks.chunking.crfsuite import looks_like_crfsuite, read_crfsuite, tagged_lines
from sparsezo.tasks.chunking.options import AUTO, NO_CLUSTERS, ChunkingOptions, ReadingOptions
from sparsezo.tasks.chunking.tags import understood
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.chunking.templates import read_templates
from sparsezo.tasks.chunking.unlabelled import (
    SNIFFED,
    check_against,
    looks_like_columns,
    read_lines,
    read_unlabelled,
)
from sparsezo.tasks.loading import Data, Files, Loaded, cut, refuse_held_out

_TASK = "task chunking"
from_arrays = Chunking.from_arrays


def load(files: Files) -> Loaded:
    options = make_options(ChunkingOptions, files.options, _TASK)
    path = files.one_train("chunking")
    if options.tags is not None:
        return _load_unlabelled(path, files, options)
    train, dev = _read_first(path, options), None
    scheme, train = understood(train, options.scheme)  # as a whole, before dev is cut off
    if (n := files.held_out()) is not None:
        cut(n, len(train), "sentences", path)
        dev, train = train[:n], train[n:]
    elif files.dev is not None:
        dev = _read(files.dev, train.listed is not None, options.column, train.column)
    test = _read(files.test, train.listed is not None, options.column, train.column) if files.test else None
    task, train = Chunking.fit(train, scheme=scheme, **fit_options(options, train))
    return Loaded(task, Data(train, task.seen(dev) if dev else None, task.seen(test) if test else None))


def fit_options(options: ChunkingOptions, train: Corpus, *, whole: bool = True) -> dict[str, Any]:
    """What ``fit`` takes. ``whole``: train is all of the data, not only its beginning."""
    templates = read_templates(options.template) if options.template else None
    named = (options.clusters, options.gazetteer, templates, options.features)
    return {
        "only": options.only,
        "order": options.order,
        "templates": templates,
        "columns": chosen_columns(train, *named, whole=whole),
        "features": options.features,
        "min_count": options.min_count,
        "hash_bits": options.hash_bits,
    }


def _load_unlabelled(path: str, files: Files, options: ChunkingOptions) -> Loaded:
    """Train has no tags that anybody looks at; dev and test are files that do."""
    refuse_held_out(files, path)
    train, lines = read_unlabelled(path, options)
    if train.listed is not None:
        _refuse_templates(path, options)
    task, train = Chunking.fit(
        train, scheme=options.scheme, tags=options.tags, lines=lines, **fit_options(options, train)
    )
    held = [task.seen(_labelled(task, each, options)) if each else None for each in (files.dev, files.test)]
    for part in held:
        if part is not None:
            check_against(task.tags, task.scheme, part)
    return Loaded(task, Data(train, *held))


def _labelled(task: Chunking, path: str, options: ChunkingOptions) -> Corpus:
    if task.listed:
        return read_crfsuite(path)
    return read_conll(path, n_columns=task.n_columns, column=options.column, trained_column=task.column)


def _read_first(path: str, options: ChunkingOptions) -> Corpus:
    """Training data, which says what the other files look like where no option does."""
    with open_sniffed(path, SNIFFED) as (head, stream):
        listed = options.format == "crfsuite"
        if options.format is None:
            lines, _, _ = head.decode("utf-8", "replace").rpartition("\n")
            listed = looks_like_crfsuite(lines)
        if listed:
            _refuse_templates(path, options)
        return read_crfsuite(path, stream) if listed else read_conll(path, column=options.column, stream=stream)


def _refuse_templates(path: str, options: ChunkingOptions) -> None:
    clusters = options.clusters not in (AUTO, NO_CLUSTERS)
    of_templates = {"template": options.template, "features": options.features, "gazetteer": options.gazetteer}
    if name := next((name for name, given in [*of_templates.items(), ("clusters", clusters)] if given), ""):
        raise UsageError(f"{path}: lists its attributes (CRFsuite's format), so `{name}` has no place; leave it out")


def _read(path: str, listed: bool, column: str | None, trained_column: str | None) -> Corpus:
    """A file like the training file."""
    return read_crfsuite(path) if listed else read_conll(path, column=column, trained_column=trained_column)


def read(task: Chunking, path: str, options: Mapping[str, Any]) -> Corpus:
    column = make_options(ReadingOptions, options, _TASK).column
    return task.seen(_read(path, task.listed, column, task.column))


def predict(model: Any, path: str, options: Mapping[str, Any]) -> Iterator[str]:
    column = make_options(ReadingOptions, options, _TASK).column
    task: Chunking = model.task
    if task.listed:
        listed = read_crfsuite(path)
        yield from tagged_lines(task.words(model.predict(listed), listed.offsets), listed.offsets)
        return
    corpus = _to_tag(task, path, column)
    predicted = task.words(model.predict(corpus), corpus.offsets)
    if corpus.text is not None:
        yield from filled(corpus.text, corpus.lines.tolist(), predicted, str(corpus.column))
        return
    text = io.StringIO()
    write_conll(text, corpus, predicted)
    yield text.getvalue()


def _to_tag(task: Chunking, path: str, column: str | None) -> Corpus:
    """A file like the training file, with its tags or without; running text where that was."""
    with open_sniffed(path, SNIFFED) as (head, stream):
        if task.lines and not _is_columns(head.decode("utf-8", "replace")):
            return read_lines(path, stream)
        return read_conll(path, False, task.n_columns, column, task.column, stream)


def _is_columns(head: str) -> bool:
    """Beside running text: words one a line, perhaps with a tag, and blank lines between sentences."""
    first = next(filter(str.strip, head.splitlines()), "")
    return looks_like_columns(head) and len(first.split()) <= 2 and "\n\n" in head.strip() + "\n"
