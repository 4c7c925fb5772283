"""Chunking's files: columns (CoNLL-U, CRFsuite's) in, the same with a predicted tag out; texts in, spans out.

Sentences without tags (``tags`` names them) are columns, or raw text (raw.py). Tags that are there all the same are not
looked at: nobody could say later that an answer had been seen. Column files larger than memory are read a window of
sentences at a time (``load_stream``).
"""

from __future__ import annotations

import io
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

import numpy as np

from sparsezo import messages
from sparsezo.errors import DataError, UsageError
from sparsezo.messages import counted, say
from sparsezo.options import make_options
from sparsezo.storage.files import STANDARD_INPUT, open_sniffed
from sparsezo.storage.fingerprint import hasher
from sparsezo.tasks.base import Json
from sparsezo.tasks.chunking.features.columns import chosen_columns
from sparsezo.tasks.chunking.features.templates import read_templates
from sparsezo.tasks.chunking.io import formats, raw
from sparsezo.tasks.chunking.io.conll import Corpus, conll_parts, filled, read_conll, write_conll
from sparsezo.tasks.chunking.io.crfsuite import looks_like_crfsuite, read_crfsuite, tagged_lines
from sparsezo.tasks.chunking.io.documents import Document, documents_from_columns
from sparsezo.tasks.chunking.options import AUTO, NO_CLUSTERS, PLAIN, ChunkingOptions, PredictOptions, ReadingOptions
from sparsezo.tasks.chunking.start import learned_labels
from sparsezo.tasks.chunking.tags import IOB2, OUTSIDE, check_against, is_chunk_tag, keep_only, named_tags, understood
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.loading import Data, Files, Loaded, cut, refuse_held_out
from sparsezo.tasks.streams import Stream, Streamed, check_streamed, nothing_left

if TYPE_CHECKING:
    from sparsezo.model import Model

_TASK = "task chunking"
from_arrays = Chunking.from_arrays


def load(files: Files) -> Loaded:
    options = make_options(ChunkingOptions, files.options, _TASK)
    if options.tags is not None:
        return _load_unlabelled(files, options)
    train, how = _read(files, options)
    scheme = IOB2
    if train.source is None:
        scheme, train = understood(train, options.scheme)  # as a whole, before dev is cut off
    dev = None
    path = files.train[0]
    if (n := files.held_out()) is not None:
        cut(n, len(train), "sentences", path)
        dev, train = train[:n], train[n:]
    elif files.dev is not None:
        dev = _read_held(files.dev, options, train.listed is not None, train.column, how)
    test = _read_held(files.test, options, train.listed is not None, train.column, how) if files.test else None
    task, train = Chunking.fit(train, scheme=scheme, **how, **fit_options(options, train))
    loaded = Loaded(task, Data(train, task.seen(dev) if dev else None, task.seen(test) if test else None))
    return _with_labels(loaded, options)


def fit_options(options: ChunkingOptions, train: Corpus, *, whole: bool = True) -> Json:
    """What ``fit`` takes. ``whole``: train is all of the data, not only its beginning."""
    templates = read_templates(options.template) if options.template else None
    named = (options.clusters, options.gazetteer, templates, options.features)
    return {
        "only": options.only,
        "order": options.order,
        "templates": templates,
        "columns": chosen_columns(train, *named, whole=whole),
        "features": options.features,
        "vectors": options.vectors,
        "min_count": options.min_count,
        "hash_bits": options.hash_bits,
    }


def _read(files: Files, options: ChunkingOptions) -> tuple[Corpus, Json]:
    """Training data, its tags unless ``tags`` is given; and how its texts were split, nothing where it is tokens."""
    unlabelled = options.tags is not None
    path = files.train[0] if files.train else files.one_train("chunking")
    if not os.path.isdir(path):
        with open_sniffed(path, formats.SNIFFED) as (head, stream):
            format = options.format or formats.detect_format(path, head)
            format = formats.TEXT if format == formats.UNKNOWN else format
            if format in (formats.TEXT, formats.TABLE) and not unlabelled:
                if format == formats.TABLE or formats.looks_like_prose(head.decode("utf-8", "replace")):
                    what = "is a table of texts" if format == formats.TABLE else "looks like running text"
                    raise DataError(
                        path,
                        f"{what}, without tags; to learn spans from it add `tags`, as in PER,LOC,ORG, and somebody "
                        "who answers (serve, or `scorer`)",
                    )
                format = formats.COLUMNS  # whose reader says what is wrong with it
            if format in (formats.COLUMNS, formats.CRFSUITE):
                files.one_train("chunking")
                if format == formats.CRFSUITE:
                    refuse_templates(path, options)
                if unlabelled:
                    return _read_unlabelled(path, options, stream, format == formats.CRFSUITE), {}
                if format == formats.CRFSUITE:
                    return read_crfsuite(path, stream), {}
                return read_conll(path, column=options.column, stream=stream), {}
            if unlabelled and path == STANDARD_INPUT:  # which can be read only once
                return _split(list(formats.read_documents(path, format, stream, texts=True)), files.train, options)
    return _split(list(raw.read_raw(files.train, options.format)), files.train, options)


def _split(documents: list[Document], paths: tuple[str, ...], options: ChunkingOptions) -> tuple[Corpus, Json]:
    if options.column is not None:
        raise UsageError(f"{paths[0]}: text has no columns, so `column` has no place; leave it out")
    if options.tags is None:
        raw.require_spans(documents, paths[0], whole=True)
        labelled = [document for document in documents if document.spans is not None]
        how: Json = {"split": options.split, "language": raw.language_of(labelled)}
        return raw.corpus_of(labelled, paths[0], labelled=True, cuts=True, **how), how
    how = {"split": options.split, "language": raw.language_of(documents)}
    corpus = raw.corpus_of(documents, ", ".join(paths), **how)
    raw.said_what_was_read(corpus, options.split)
    return corpus, how


def _read_held(path: str, options: ChunkingOptions, listed: bool, trained_column: str | None, how: Json) -> Corpus:
    """Labelled data to look at, like the training data; tokens of texts are found as a prediction finds them."""
    if how:
        documents = list(raw.read_raw([path]))
        raw.require_spans(documents, path, whole=True)
        return raw.corpus_of((each for each in documents if each.spans is not None), path, labelled=True, **how)
    return read_crfsuite(path) if listed else read_conll(path, column=options.column, trained_column=trained_column)


def _load_unlabelled(files: Files, options: ChunkingOptions) -> Loaded:
    """Train has no tags that anybody looks at; dev and test are files that do."""
    refuse_held_out(files, files.train[0] if files.train else files.one_train("chunking"))
    train, how = _read(files, options)
    task, train = Chunking.fit(train, scheme=options.scheme, tags=options.tags, **how, **fit_options(options, train))
    held = [task.seen(_labelled(task, each, options)) if each else None for each in (files.dev, files.test)]
    for part in held:
        if part is not None:
            check_against(task.tags, task.scheme, part)
    return _with_labels(Loaded(task, Data(train, *held)), options)


def _with_labels(loaded: Loaded, options: ChunkingOptions) -> Loaded:
    if options.init_labels is None:
        return loaded
    documents = list(raw.read_raw([options.init_labels]))
    raw.require_spans(documents, options.init_labels)
    W = learned_labels(cast(Chunking, loaded.task), documents, options.init_labels)
    return replace(loaded, W=W)


def _labelled(task: Chunking, path: str, options: ChunkingOptions) -> Corpus:
    if task.split is not None and not os.path.isdir(path):
        with open_sniffed(path, formats.SNIFFED) as (head, stream):
            if formats.detect_format(path, head) == formats.COLUMNS:
                return read_conll(path, n_columns=task.n_columns, column=options.column, stream=stream)
    how = {} if task.split is None else {"split": task.split, "language": task.language}
    if how or task.listed:
        return _read_held(path, options, task.listed, None, how)
    return read_conll(path, n_columns=task.n_columns, column=options.column, trained_column=task.column)


def refuse_templates(path: str, options: ChunkingOptions) -> None:
    """Where attributes are listed, options that say what templates see have no place."""
    clusters = options.clusters not in (AUTO, NO_CLUSTERS)
    of_templates = {"template": options.template, "features": options.features, "gazetteer": options.gazetteer}
    of_words = {**of_templates, "clusters": clusters, "vectors": options.vectors}
    if name := next((name for name, given in of_words.items() if given), ""):
        raise UsageError(f"{path}: lists its attributes (CRFsuite's format), so `{name}` has no place; leave it out")


def read(task: Chunking, path: str, options: Mapping[str, object]) -> Corpus:
    how = ChunkingOptions(column=make_options(ReadingOptions, options, _TASK).column)
    if task.split is not None:
        return task.seen(_labelled(task, path, how))
    return task.seen(_read_held(path, how, task.listed, task.column, {}))


def predict(model: Model, path: str, options: Mapping[str, object]) -> Iterator[str]:
    """Columns with the predicted tag, CoNLL-U with its column filled, or CRFsuite's labels. Of texts: JSON lines."""
    how = make_options(PredictOptions, options, _TASK)
    if _writes_spans(cast(Chunking, model.task), path, how):
        text = io.StringIO()
        formats.write_documents(_predicted(model, path, how), how.format or "jsonl", text)
        yield text.getvalue()
    else:
        yield from _predict_tokens(model, path, how.column)


def predict_spans(model: Model, path: str, options: Mapping[str, object], target: Path | IO[bytes]) -> bool:
    """Write texts with spans, as they are read, where that is what ``predict`` is to give; False: it is not."""
    how = make_options(PredictOptions, options, _TASK)
    if not _writes_spans(cast(Chunking, model.task), path, how):
        return False
    format = how.format or "jsonl"
    if format == "brat" and not isinstance(target, Path):
        raise UsageError("`format` brat is a folder, or a .zip: name it with `output`")
    formats.write_documents(_predicted(model, path, how), format, target)
    return True


def _writes_spans(task: Chunking, path: str, how: PredictOptions) -> bool:
    if how.format is not None:
        return True
    if task.split is None:
        if not task.listed and formats.is_prose(path):
            return True
        if how.threshold:
            raise UsageError("`threshold` is of spans; say with `format` in which form they are to be written")
        return False
    return formats.detect_format(path) not in (formats.COLUMNS, formats.CRFSUITE)


def _predicted(model: Model, path: str, how: PredictOptions) -> Iterator[Document]:
    task = cast(Chunking, model.task)
    if task.listed or task.metric != "f1":
        raise UsageError(f"`format` {how.format}: the model's tags are no spans, or its inputs no words; leave it out")
    found = formats.detect_format(path)
    if task.split is None and found == formats.COLUMNS:
        corpus = read_conll(path, False, task.n_columns, how.column, task.column)
        tags = task.words(model.predict(corpus), corpus.offsets)
        documents = documents_from_columns(understood(replace(corpus, tags=tags, text=None), task.scheme)[1])
    else:
        is_text = found in (formats.TEXT, formats.UNKNOWN)  # as is standard input
        given = raw.read_raw([path], formats.TEXT if is_text else None)
        tokens = how.format not in (None, "jsonl")  # JSON lines have spans alone
        documents = raw.tagged_documents(task, model.W, given, how.threshold, tokens=tokens)
    for document in documents:
        if how.format in ("label-studio", "prodigy"):  # what a model says are predictions, or tasks without an answer
            document = replace(document, spans=None, suggested=document.spans or ())
        yield document


def _predict_tokens(model: Model, path: str, column: str | None) -> Iterator[str]:
    task = cast(Chunking, model.task)
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


def _read_unlabelled(path: str, options: ChunkingOptions, stream: IO[bytes], listed: bool) -> Corpus:
    """Sentences without tags, of columns or of CRFsuite's attributes (``listed``); says what was understood.

    A last column of tags is none that is observed.
    """
    if listed:
        say(f"{path}: CRFsuite's attributes; with `tags` given, the labels before them are not looked at")
        return replace(read_crfsuite(path, stream), tags=None)
    corpus = read_conll(path, tagged=False, column=options.column, stream=stream)
    left_out = ""
    if corpus.tags is not None:
        left_out = f"; with `tags` given, column {corpus.column} is not looked at"
    elif corpus.column is None and len(corpus.columns) > 1 and _are_tags(corpus.columns[-1], options):
        corpus = replace(corpus, columns=corpus.columns[:-1])
        left_out = "; the last one's tags are not looked at, with `tags` given (`column` says otherwise)"
    observed = counted(len(corpus.columns), "column")
    say(f"{corpus.path}: read as columns, {counted(len(corpus), 'sentence')}, {observed} observed{left_out}")
    return replace(corpus, tags=None, text=None)


def _are_tags(column: list[str], options: ChunkingOptions) -> bool:
    found = {*column}
    if options.scheme == PLAIN:
        return found <= {*named_tags(options.tags or "", PLAIN)}
    return found != {OUTSIDE} and all(map(is_chunk_tag, found))


def load_stream(files: Files, window: int) -> Streamed:
    options = make_options(ChunkingOptions, files.options, _TASK)
    path = files.one_train("chunking")
    check_streamed([path], options.hash_bits)
    _check_format(path, options)
    held_out = files.held_out() or 0
    found = _Found(options.scheme)
    for part in conll_parts(path, window, options.column, held_out):
        found.add(part, options.only)
    if found.example is None:
        raise nothing_left(held_out, path)
    how = fit_options(options, found.example, whole=False)
    task, _ = Chunking.fit(found.every_tag(), scheme=found.scheme, **how)

    def read() -> Iterator[Corpus]:
        for part in conll_parts(path, window, options.column, held_out):
            with messages.gathered():  # said in the first reading
                data = task.seen(part)
            yield data

    dev = next(conll_parts(path, held_out, options.column)) if held_out else None
    if dev is None and files.dev is not None:
        dev = _read_held(files.dev, options, False, task.column, {})
    test = _read_held(files.test, options, False, task.column, {}) if files.test is not None else None
    stream = Stream(task, read, found.sizes, found.content.hexdigest(), path)
    return Streamed(stream, task.seen(dev) if dev else None, task.seen(test) if test else None)


def _check_format(path: str, options: ChunkingOptions) -> None:
    if options.tags is not None:
        raise UsageError("`tags`: a `stream` learns from tags that are there; leave one of them out")
    if options.vectors is not None:
        raise UsageError(f"`vectors` {options.vectors}: a `stream` has attributes alone; leave one of them out")
    if options.format in (None, "columns"):
        with open_sniffed(path, formats.SNIFFED) as (head, _):
            listed = looks_like_crfsuite(head.decode("utf-8", "replace").rpartition("\n")[0])
        if not listed or options.format == "columns":
            return
    raise UsageError(f"{path}: a `stream` is read from column files, not from {options.format or 'crfsuite'}")


@dataclass
class _Found:
    """What the first reading finds."""

    scheme: str  # as it was given; by the first window's tags where that is left open
    sizes: list[int] = field(default_factory=list)
    tags: set[str] = field(default_factory=set)
    at_ends: Counter[str] = field(default_factory=Counter)
    content: blake2b = field(default_factory=hasher)
    example: Corpus | None = None
    remarked: bool = False

    def add(self, part: Corpus, only: str | None) -> None:
        for column in (*part.columns, part.tags or []):
            self.content.update("\n".join(column).encode("utf-8", "surrogatepass") + b"\n\n")
        self.content.update(part.offsets.tobytes())
        with messages.gathered() as remarks:
            self.scheme, seen = understood(part, self.scheme)
            if only is not None and self.scheme != PLAIN:
                seen = keep_only(seen, only, required=False)
        if remarks and not self.remarked:  # once: every window may have its own
            self.remarked = True
            for remark in remarks:
                messages.say(remark)
        tags = seen.tags or []
        self.tags |= set(tags)
        self.at_ends.update(tags[stop - 1] for stop in seen.offsets[1:].tolist())
        self.sizes.append(len(part))
        self.example = self.example or part

    def every_tag(self) -> Corpus:
        """A sentence with each tag once: all that ``fit`` looks at, where no vocabulary is kept."""
        example = self.example
        if example is None:
            raise ValueError("no window was added")
        if self.scheme == PLAIN:  # the last stands before a first token
            last = min(self.at_ends, key=lambda tag: (-self.at_ends[tag], tag))
        else:
            last = OUTSIDE
        tags = [*sorted(self.tags - {last}, key=lambda tag: (tag[2:], tag)), last]
        columns = tuple([each[0]] * len(tags) for each in example.columns)
        return Corpus(example.path, columns, tags, np.array([0, len(tags)]), column=example.column)
