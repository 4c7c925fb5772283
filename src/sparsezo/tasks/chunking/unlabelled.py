"""Sentences without tags, and the tag set that ``tags`` names in their place.

    named_tags("PER,LOC", "iob2")                   # ('B-PER', 'I-PER', 'B-LOC', 'I-LOC', 'O')
    named_tags("NOUN,VERB,O", "plain")              # ('NOUN', 'VERB', 'O'): the last stands before a first token

A file is columns without a tag, one token a line and a blank line between sentences, or raw text (raw.py). Tags that
are there all the same are not looked at: nobody could say later that an answer had been seen.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import IO

from sparsezo.errors import UsageError, quoted
from sparsezo.notes import say
from sparsezo.storage import limits
from sparsezo.tasks.chunking.conll import Corpus, read_conll, split_cells
from sparsezo.tasks.chunking.crfsuite import read_crfsuite
from sparsezo.tasks.chunking.options import AUTO, PLAIN, ChunkingOptions
from sparsezo.tasks.chunking.tags import IOB2, OUTSIDE, is_chunk_tag
from sparsezo.words import counted

SNIFFED = 1 << 16  # bytes of a file that tell its format
_MOST_COLUMNS = 3  # of a file without a blank line: more on each line are rather sentences
_ALIKE = 0.9  # of the lines have as many cells: columns, and the others are mistakes
_MOST_NAMES = 5  # in a message


def named_tags(tags: str | Iterable[str], scheme: str) -> tuple[str, ...]:
    """The tag set that a person names: chunk types, or with the scheme plain the tags themselves."""
    names = [name for name, _ in _named(tags)]
    for name in names:
        if not name or re.search(r"\s", name):
            raise UsageError(
                f"`tags` {quoted(name) or 'with nothing between two commas'}: give names, as in PER,LOC,ORG"
            )
        if names.count(name) > 1:
            raise UsageError(f"`tags` {quoted(name)}: is named twice")
    if len(names) > limits.TAGS:
        limits.refuse("`tags`", f"{len(names):,} different tags")
    if scheme == PLAIN:
        if len(names) < 2:
            raise UsageError(f"`tags` {', '.join(names)}: of plain tags give two or more, parted by commas")
        return (*(name for name in names if name != OUTSIDE), *(name for name in names if name == OUTSIDE))
    if odd := [name for name in names if name == OUTSIDE or name[:2] in ("B-", "I-")]:
        raise UsageError(
            f"`tags` {quoted(odd[0])}: give the types of chunks alone, as in NP or PER,LOC,ORG; "
            "or tags as they are, with `scheme` plain"
        )
    return (*(f"{letter}-{name}" for name in names for letter in "BI"), OUTSIDE)


def named_words(tags: str | Iterable[str]) -> dict[str, str]:
    """What people call the types, where that is said: PER=person,LOC=place."""
    return {name: words for name, words in _named(tags) if words}


def _named(tags: str | Iterable[str]) -> list[tuple[str, str]]:
    """(name, what people call it or nothing) of each."""
    pairs = (each.partition("=") for each in (tags.split(",") if isinstance(tags, str) else tags))
    return [(name.strip(), words.strip()) for name, _, words in pairs]


def named_scheme(scheme: str) -> str:
    """Of outputs, where no tag of a file tells."""
    return IOB2 if scheme == AUTO else scheme


def read_unlabelled(path: str | os.PathLike[str], options: ChunkingOptions, stream: IO[bytes], listed: bool) -> Corpus:
    """Sentences without tags, of columns or of CRFsuite's attributes (``listed``); says what was understood."""
    if listed:
        say(f"{path}: CRFsuite's attributes; with `tags` given, the labels before them are not looked at")
        return replace(read_crfsuite(path, stream), tags=None)
    corpus = read_conll(path, tagged=False, column=options.column, stream=stream)
    return _without_tags(corpus, options)


def looks_like_columns(head: str) -> bool:
    """By a file's beginning: as many cells on each line, and few of them or blank lines between sentences."""
    lines = head.strip().splitlines()
    widths = [len(split_cells(line)) for line in lines if line.strip() and not line.startswith("-DOCSTART-")]
    if not widths:
        return True
    width, alike = Counter(widths).most_common(1)[0]
    parted = any(not line.strip() for line in lines)
    return alike >= _ALIKE * len(widths) and (parted or (width <= _MOST_COLUMNS and len(widths) > 1))


def looks_like_prose(head: str) -> bool:
    """By a file's beginning: most lines have several words, and none ends in a chunk tag."""
    rows = [split_cells(line) for line in head.splitlines() if line.strip()]
    several = sum(len(row) > _MOST_COLUMNS for row in rows)
    return several > len(rows) / 2 and not any(is_chunk_tag(row[-1]) for row in rows)


def _without_tags(corpus: Corpus, options: ChunkingOptions) -> Corpus:
    """Columns that are observed; a last one of tags is none of them."""
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


def check_against(tags: tuple[str, ...], scheme: str, corpus: Corpus) -> None:
    """Say which correct tags of a labelled file no output can have: they stay what they are, and count as missed."""
    kinds = {tag if scheme == PLAIN else tag[2:] for tag in tags}
    found = Counter(
        tag if scheme == PLAIN else tag[2:] for tag in corpus.tags or [] if scheme == PLAIN or tag != OUTSIDE
    )
    if odd := {name: n for name, n in found.items() if name not in kinds}:
        names = ", ".join(quoted(name or "''") for name in list(odd)[:_MOST_NAMES]) + ", ..." * (len(odd) > _MOST_NAMES)
        what = "" if scheme == PLAIN else " of type"
        mend = "" if scheme == PLAIN else "; `only` TYPE leaves all other types out"
        say(
            f"{corpus.path}: {counted(sum(odd.values()), 'tag')}{what} {names}, not among `tags`: "
            f"no output can have them, so they count as missed{mend}"
        )
