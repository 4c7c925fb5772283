"""Chunking's files: columns in, the same with a predicted tag out; CoNLL-U with its column filled; CRFsuite's; raw text
and texts with spans in any of the formats of formats/, spans out."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from sparsezo.errors import DataError, UsageError
from sparsezo.options import make_options
from sparsezo.storage.files import STANDARD_INPUT, open_sniffed
from sparsezo.tasks.chunking.column_choice import chosen_columns
from sparsezo.tasks.chunking.conll import Corpus, read_conll, write_conll
from sparsezo.tasks.chunking.conllu import filled
from sparsezo.tasks.chunking.crfsuite import read_crfsuite, tagged_lines
from sparsezo.tasks.chunking.documents import Document, documents_from_columns
from sparsezo.tasks.chunking.formats import (
    COLUMNS,
    CRFSUITE,
    TABLE,
    TEXT,
    UNKNOWN,
    detect_format,
    write_documents,
)
from sparsezo.tasks.chunking.labels import learned_labels
from sparsezo.tasks.chunking.options import AUTO, NO_CLUSTERS, ChunkingOptions, PredictOptions, ReadingOptions
from sparsezo.tasks.chunking.raw import (
    corpus_of,
    is_table,
    language_of,
    read_raw,
    read_stream,
    require_spans,
    said_what_was_read,
    tagged_documents,
)
from sparsezo.tasks.chunking.tags import IOB2, understood
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.chunking.templates import read_templates
from sparsezo.tasks.chunking.unlabelled import SNIFFED, check_against, looks_like_prose, read_unlabelled
from sparsezo.tasks.loading import Data, Files, Loaded, cut, refuse_held_out

_TASK = "task chunking"
_TOKENS = (COLUMNS, CRFSUITE)  # formats that are of tokens; all others are of texts
from_arrays = Chunking.from_arrays

How = dict[str, Any]  # split and language of raw text, as ``corpus_of`` and ``Chunking.fit`` take them; empty: tokens


def load(files: Files) -> Loaded:
    options = make_options(ChunkingOptions, files.options, _TASK)
    if options.tags is not None:
        return _load_unlabelled(files, options)
    train, how = _read_train(files, options)
    scheme = IOB2
    if train.source is None:
        scheme, train = understood(train, options.scheme)  # as a whole, before dev is cut off
    dev = None
    path = files.train[0]
    if (n := files.held_out()) is not None:
        cut(n, len(train), "sentences", path)
        dev, train = train[:n], train[n:]
    elif files.dev is not None:
        dev = _read_held(files.dev, train, options, how)
    test = _read_held(files.test, train, options, how) if files.test else None
    task, train = Chunking.fit(train, scheme=scheme, **how, **fit_options(options, train))
    loaded = Loaded(task, Data(train, task.seen(dev) if dev else None, task.seen(test) if test else None))
    return _with_labels(loaded, options)


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


def _format_of(path: str, options: ChunkingOptions, head: bytes | None) -> str:
    """One of the formats of spans, or columns, crfsuite, text, table."""
    if options.format is not None:
        return options.format
    found = detect_format(path, head)
    return TEXT if found == UNKNOWN else found


def _read_train(files: Files, options: ChunkingOptions) -> tuple[Corpus, How]:
    """Labelled training data, and how its texts were split where it is of texts."""
    path = files.train[0] if files.train else files.one_train("chunking")
    if os.path.isdir(path):
        return _labelled_texts(files.train, options)
    with open_sniffed(path, SNIFFED) as (head, stream):
        format = _format_of(path, options, head)
        if format == TABLE:
            raise is_table(path)
        if format == TEXT:
            if looks_like_prose(head.decode("utf-8", "replace")):
                raise DataError(
                    path,
                    "looks like running text, without tags; to learn spans from it add `tags`, as in "
                    "PER,LOC,ORG, and somebody who answers (serve, or `scorer`)",
                )
            format = COLUMNS  # whose reader says what is wrong with it
        if format in _TOKENS:
            files.one_train("chunking")
            if format == CRFSUITE:
                refuse_templates(path, options)
                return read_crfsuite(path, stream), {}
            return read_conll(path, column=options.column, stream=stream), {}
    return _labelled_texts(files.train, options)


def _labelled_texts(paths: tuple[str, ...], options: ChunkingOptions) -> tuple[Corpus, How]:
    _refuse_column(paths[0], options.column)
    documents = list(read_raw(paths, options.format))
    require_spans(documents, paths[0], whole=True)
    labelled = [document for document in documents if document.spans is not None]
    how: How = {"split": options.split, "language": language_of(labelled)}
    return corpus_of(labelled, paths[0], labelled=True, cuts=True, **how), how


def _read_held(path: str, train: Corpus, options: ChunkingOptions, how: How) -> Corpus:
    """Labelled data to look at, like the training data."""
    if how:
        return _held_texts(path, how)
    return _read_tokens(path, train.listed is not None, options.column, train.column)


def _held_texts(path: str, how: How) -> Corpus:
    """Labelled texts; tokens are found as a prediction finds them, whatever the labels are."""
    documents = list(read_raw([path]))
    require_spans(documents, path, whole=True)
    return corpus_of((each for each in documents if each.spans is not None), path, labelled=True, **how)


def _load_unlabelled(files: Files, options: ChunkingOptions) -> Loaded:
    """Train has no tags that anybody looks at; dev and test are files that do."""
    path = files.train[0] if files.train else files.one_train("chunking")
    refuse_held_out(files, path)
    train, how = _read_unlabelled(files, options)
    if train.listed is not None:
        refuse_templates(path, options)
    task, train = Chunking.fit(train, scheme=options.scheme, tags=options.tags, **how, **fit_options(options, train))
    held = [task.seen(_labelled(task, each, options)) if each else None for each in (files.dev, files.test)]
    for part in held:
        if part is not None:
            check_against(task.tags, task.scheme, part)
    return _with_labels(Loaded(task, Data(train, *held)), options)


def _read_unlabelled(files: Files, options: ChunkingOptions) -> tuple[Corpus, How]:
    """Sentences without tags, and how they were split where they are of texts."""
    path = files.train[0]
    if not os.path.isdir(path):
        with open_sniffed(path, SNIFFED) as (head, stream):
            format = _format_of(path, options, head)
            if format in _TOKENS:
                files.one_train("chunking")
                return read_unlabelled(path, options, stream, format == CRFSUITE), {}
            if path == STANDARD_INPUT:  # which can be read only once
                return _raw(read_stream(path, format, head, stream), files, options)
    return _raw(read_raw(files.train, options.format), files, options)


def _raw(documents: Iterator[Document], files: Files, options: ChunkingOptions) -> tuple[Corpus, How]:
    _refuse_column(files.train[0], options.column)
    texts = list(documents)
    how: How = {"split": options.split, "language": language_of(texts)}
    corpus = corpus_of(texts, ", ".join(files.train), **how)
    said_what_was_read(corpus, options.split)
    return corpus, how


def _refuse_column(path: str, column: str | None) -> None:
    if column is not None:
        raise UsageError(f"{path}: text has no columns, so `column` has no place; leave it out")


def _with_labels(loaded: Loaded, options: ChunkingOptions) -> Loaded:
    """What somebody has labelled already is learned from first."""
    if options.init_labels is None:
        return loaded
    task: Any = loaded.task
    path = options.init_labels
    documents = list(read_raw([path]))
    require_spans(documents, path)
    return Loaded(task, loaded.data, learned_labels(task, documents, path))


def _labelled(task: Chunking, path: str, options: ChunkingOptions) -> Corpus:
    if task.split is not None and not os.path.isdir(path):
        with open_sniffed(path, SNIFFED) as (head, stream):
            if detect_format(path, head) == COLUMNS:
                return read_conll(path, n_columns=task.n_columns, column=options.column, stream=stream)
    if task.split is not None:
        return _held_texts(path, {"split": task.split, "language": task.language})
    if task.listed:
        return read_crfsuite(path)
    return read_conll(path, n_columns=task.n_columns, column=options.column, trained_column=task.column)


def refuse_templates(path: str, options: ChunkingOptions) -> None:
    """Where attributes are listed, options that say what templates see have no place."""
    clusters = options.clusters not in (AUTO, NO_CLUSTERS)
    of_templates = {"template": options.template, "features": options.features, "gazetteer": options.gazetteer}
    if name := next((name for name, given in [*of_templates.items(), ("clusters", clusters)] if given), ""):
        raise UsageError(f"{path}: lists its attributes (CRFsuite's format), so `{name}` has no place; leave it out")


def _read_tokens(path: str, listed: bool, column: str | None, trained_column: str | None) -> Corpus:
    """A file like the training file."""
    return read_crfsuite(path) if listed else read_conll(path, column=column, trained_column=trained_column)


def read(task: Chunking, path: str, options: Mapping[str, Any]) -> Corpus:
    column = make_options(ReadingOptions, options, _TASK).column
    if task.split is not None:
        return task.seen(_labelled(task, path, ChunkingOptions(column=column)))
    return task.seen(_read_tokens(path, task.listed, column, task.column))


def predict(model: Any, path: str, options: Mapping[str, Any]) -> Iterator[str]:
    """Columns with the predicted tag, CoNLL-U with its column filled, or CRFsuite's labels. Of texts: JSON lines."""
    how = make_options(PredictOptions, options, _TASK)
    if _writes_spans(model.task, path, how):
        text = io.StringIO()
        write_documents(_predicted(model, path, how), how.format or "jsonl", text)
        yield text.getvalue()
    else:
        yield from _predict_tokens(model, path, how.column)


def predict_spans(model: Any, path: str, options: Mapping[str, Any], target: Path | IO[bytes]) -> bool:
    """Write texts with spans, as they are read, where that is what ``predict`` is to give; False: it is not."""
    how = make_options(PredictOptions, options, _TASK)
    if not _writes_spans(model.task, path, how):
        return False
    format = how.format or "jsonl"
    if format == "brat" and not isinstance(target, Path):
        raise UsageError("`format` brat is a folder, or a .zip: name it with `output`")
    write_documents(_predicted(model, path, how), format, target)
    return True


def _writes_spans(task: Chunking, path: str, how: PredictOptions) -> bool:
    if how.format is not None:
        return True
    if task.split is None:
        if how.threshold:
            raise UsageError("`threshold` is of spans; say with `format` in which form they are to be written")
        return False
    return _input_format(path) not in _TOKENS


def _input_format(path: str) -> str:
    """Standard input is text, for who has a model of text."""
    found = detect_format(path)
    return TEXT if found == UNKNOWN else found


def _predicted(model: Any, path: str, how: PredictOptions) -> Iterator[Document]:
    """Its documents with the model's spans."""
    task: Chunking = model.task
    if task.listed or task.metric != "f1":
        raise UsageError(f"`format` {how.format}: the model's tags are no spans, or its inputs no words; leave it out")
    found = _input_format(path)
    if task.split is None and found == COLUMNS:
        corpus = read_conll(path, False, task.n_columns, how.column, task.column)
        tags = task.words(model.predict(corpus), corpus.offsets)
        documents = documents_from_columns(understood(replace(corpus, tags=tags, text=None), task.scheme)[1])
    else:
        given = read_raw([path], None if found != TEXT else TEXT)
        documents = tagged_documents(task, model.W, given, how.threshold)
    for document in documents:
        if how.format in ("label-studio", "prodigy"):  # what a model says are predictions, or tasks without an answer
            document = replace(document, spans=None, suggested=document.spans or ())
        yield document


def _predict_tokens(model: Any, path: str, column: str | None) -> Iterator[str]:
    task: Chunking = model.task
    if task.listed:
        listed = read_crfsuite(path)
        yield from tagged_lines(task.words(model.predict(listed), listed.offsets), listed.offsets)
        return
    corpus = read_conll(path, False, task.n_columns, column, task.column)
    predicted = task.words(model.predict(corpus), corpus.offsets)
    if corpus.text is not None:
        yield from filled(corpus.text, corpus.lines.tolist(), predicted, str(corpus.column))
        return
    text = io.StringIO()
    write_conll(text, corpus, predicted)
    yield text.getvalue()
