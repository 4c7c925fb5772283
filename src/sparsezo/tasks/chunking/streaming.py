"""Chunking from files larger than memory: column files, a window of sentences at a time (``tasks.streams``)."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sparsezo import notes
from sparsezo.errors import UsageError
from sparsezo.options import make_options
from sparsezo.storage.files import open_sniffed
from sparsezo.tasks.chunking.conll import Corpus, conll_parts, read_conll
from sparsezo.tasks.chunking.crfsuite import looks_like_crfsuite
from sparsezo.tasks.chunking.files import fit_options
from sparsezo.tasks.chunking.options import PLAIN, ChunkingOptions
from sparsezo.tasks.chunking.tags import OUTSIDE, keep_only, understood
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.chunking.unlabelled import SNIFFED
from sparsezo.tasks.loading import Files
from sparsezo.tasks.streams import Stream, Streamed, check_streamed, nothing_left


def load_stream(files: Files, window: int) -> Streamed:
    options = make_options(ChunkingOptions, files.options, "task chunking")
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
            with notes.gathered():  # said in the first reading
                data = task.seen(part)
            yield data

    dev = next(conll_parts(path, held_out, options.column)) if held_out else None
    if dev is None and files.dev is not None:
        dev = _held(task, files.dev, options)
    test = _held(task, files.test, options) if files.test is not None else None
    stream = Stream(task, read, found.sizes, found.content.hexdigest(), path)
    return Streamed(stream, task.seen(dev) if dev else None, task.seen(test) if test else None)


def _held(task: Chunking, path: str, options: ChunkingOptions) -> Corpus:
    return read_conll(path, column=options.column, trained_column=task.column)


def _check_format(path: str, options: ChunkingOptions) -> None:
    if options.tags is not None:
        raise UsageError("`tags`: a `stream` learns from tags that are there; leave one of them out")
    if options.format in (None, "columns"):
        with open_sniffed(path, SNIFFED) as (head, _):
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
    content: Any = field(default_factory=lambda: hashlib.blake2b(digest_size=16))
    example: Corpus | None = None
    remarked: bool = False

    def add(self, part: Corpus, only: str | None) -> None:
        for column in (*part.columns, part.tags or []):
            self.content.update("\n".join(column).encode("utf-8", "surrogatepass") + b"\n\n")
        self.content.update(part.offsets.tobytes())
        with notes.gathered() as remarks:
            self.scheme, seen = understood(part, self.scheme)
            if only is not None and self.scheme != PLAIN:
                seen = keep_only(seen, only, required=False)
        if remarks and not self.remarked:  # once: every window may have its own
            self.remarked = True
            for remark in remarks:
                notes.say(remark)
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
