"""CoNLL-U, the files of Universal Dependencies: ten columns with tabs between them, of which one is the tag.

is_conllu(path, first_line)
name, kept = chosen("upos")                         # "UPOS", (1, 3): what is observed, and the tag behind it
rows(path, lines, kept)                             # of words: no comments, no ranges (1-2), no empty nodes (1.1)
filled(corpus.text, corpus.lines, predicted, name)  # the same file with the column replaced
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from sparsezo.errors import DataError, UsageError, quoted

NAMES = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
EMPTY = "_"
_ID, _FORM, _UPOS, _HEAD = 0, 1, 3, 6
_is_word = re.compile(r"[0-9]+", re.ASCII).fullmatch
_is_passed_over = re.compile(r"[0-9]+[-.][0-9]+", re.ASCII).fullmatch


def is_conllu(path: str | os.PathLike[str], first: str) -> bool:
    """By the name's ending, or by the first line that is neither blank nor a comment."""
    name = os.fspath(path).removesuffix(".gz").removesuffix(".xz")
    row = first.split("\t")
    looks = len(row) == len(NAMES) and (_is_word(row[_ID]) or _is_passed_over(row[_ID]))
    return Path(name).suffix == ".conllu" or bool(looks and (_is_word(row[_HEAD]) or row[_HEAD] == EMPTY))


def chosen(column: str | None) -> tuple[str, tuple[int, ...]]:
    """The name of the tag's column, and the columns to keep: FORM, UPOS where the tag is of the syntax, the tag.

    A lemma, a part of speech or a feature is for a tagger to find from the words; the others of these would tell it.
    """
    name = "UPOS" if column is None else column.upper()
    if name in map(str, range(1, len(NAMES) + 1)):
        name = NAMES[int(name) - 1]
    if name not in NAMES:
        raise UsageError(f"`column` {quoted(name)}: choose from {', '.join(NAMES)}, or 1 to {len(NAMES)}")
    tag = NAMES.index(name)
    if tag <= _FORM:
        raise UsageError(f"`column` {column}: tags are told from {name}; choose another column")
    return name, (_FORM, _UPOS, tag) if tag >= _HEAD else (_FORM, tag)


def rows(
    path: str | os.PathLike[str], lines: Iterable[tuple[int, str]], kept: Sequence[int]
) -> Iterator[tuple[int, list[str]]]:
    """Each word's line number and the cells that are kept; no cell for a blank line, which ends a sentence."""
    for number, line in lines:
        if not line.strip():
            yield number, []
        elif not line.startswith("#"):
            row = line.split("\t")
            if len(row) != len(NAMES):
                raise DataError(
                    f"{path}:{number}",
                    f"has {len(row)} columns with tabs between them; CoNLL-U has {len(NAMES)}",
                )
            if _is_word(row[_ID]):
                if "" in row:
                    raise DataError(f"{path}:{number}", f"{NAMES[row.index('')]} is empty; CoNLL-U has _ for that")
                yield number, [row[column] for column in kept]
            elif not _is_passed_over(row[_ID]):
                raise DataError(f"{path}:{number}", f"ID '{quoted(row[_ID])}' is none; give 1, 1-2 or 1.1")


def filled(text: Sequence[str], lines: Iterable[int], predicted: Sequence[str], name: str) -> Iterator[str]:
    """A file with one column of its words replaced; ``lines``: the words' line numbers."""
    tag = NAMES.index(name)
    tag_of = dict(zip(lines, predicted, strict=True))
    for number, line in enumerate(text, start=1):
        if number in tag_of:
            row = line.split("\t")
            row[tag] = tag_of[number]
            line = "\t".join(row)
        yield line + "\n"
