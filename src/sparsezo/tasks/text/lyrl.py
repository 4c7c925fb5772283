"""RCV1-v2's own files (Lewis et al. 2004, LYRL2004): stemmed tokens by document, and the topics of each document.

A token file is a run of blocks, ``.I 2286``, ``.W``, lines of tokens and a blank line; a line ``CCAT 2286 1`` of the
topics qrels file says that document 2286 has the topic CCAT. ``sparsezo.tasks.text.documents`` makes documents of them.

    topic_of = read_topics("rcv1-v2.topics.qrels.gz")           # {2286: "CCAT", ...}, those with exactly one
    for line, document, tokens in lyrl_blocks("lyrl2004_tokens_train.dat"): ...
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from sparsezo.errors import DataError, quoted
from sparsezo.storage.files import numbered_lines

TOPICS = ("CCAT", "ECAT", "GCAT", "MCAT")
QRELS = "rcv1-v2.topics.qrels"


def read_topics(path: str | os.PathLike[str]) -> dict[int, str]:
    """Topic by document id, for documents with exactly one of ``TOPICS``; lines are ``CCAT 2286 1``."""
    masks: dict[int, int] = {}
    number = 0
    for number, line in numbered_lines(path):
        fields = line.split()
        if not fields:
            continue
        if len(fields) != 3 or not _is_id(fields[1]):
            raise DataError(
                f"{path}:{number}", f"'{quoted(line)}' is not 'topic id 1'; is this RCV1-v2's topics qrels file?"
            )
        if fields[0] in TOPICS and fields[2] != "0":
            document = int(fields[1])
            masks[document] = masks.get(document, 0) | 1 << TOPICS.index(fields[0])
    if not masks:
        raise DataError(str(path), f"names none of {', '.join(TOPICS)}; is this RCV1-v2's topics qrels file?")
    single = {1 << k: topic for k, topic in enumerate(TOPICS)}
    return {document: single[mask] for document, mask in masks.items() if mask in single}


def _is_id(text: str) -> bool:
    return text.isdecimal() and len(text) <= 18


def lyrl_blocks(path: str | os.PathLike[str], stream: IO[bytes] | None = None) -> Iterator[tuple[int, int, str]]:
    """(line of .I, id, tokens) of each document; ``stream``: the open file, where somebody has opened it already."""
    start, document = 0, 0
    tokens: list[str] | None = None  # None until the document's .W
    for number, line in numbered_lines(path, stream):
        if line.startswith(".I"):
            if start:
                yield start, document, _text(path, start, document, tokens)
            name = line[2:].strip()
            if not _is_id(name):
                raise DataError(f"{path}:{number}", f"'{quoted(line)}' has no document id; write .I and a whole number")
            start, document, tokens = number, int(name), None
        elif line.rstrip() == ".W":
            if not start or tokens is not None:
                raise DataError(f"{path}:{number}", "a .W without its .I; each document is .I id, .W, tokens")
            tokens = []
        elif line and not line.isspace():
            if tokens is None:
                raise DataError(
                    f"{path}:{number}", f"'{quoted(line)}' stands before .W; each document is .I id, .W, tokens"
                )
            tokens.append(line.strip())
    if start:
        yield start, document, _text(path, start, document, tokens)


def _text(path: str | os.PathLike[str], start: int, document: int, tokens: list[str] | None) -> str:
    if tokens is None:
        raise DataError(f"{path}:{start}", f"document {document} has no .W; is the file cut off?")
    return " ".join(tokens)


def topics_beside(path: str | os.PathLike[str]) -> Path:
    """The qrels file in the folder of a token file."""
    try:
        return present(Path(path).parent, QRELS)
    except DataError:
        raise DataError(
            str(path), f"LYRL2004 tokens carry no labels; put {QRELS} beside it or name the qrels file"
        ) from None


def present(folder: Path, name: str) -> Path:
    """The file of that name, plain or packed."""
    for ending in ("", ".gz", ".xz"):
        if (folder / (name + ending)).exists():
            return folder / (name + ending)
    raise DataError(str(folder / name), "no such file, nor with .gz or .xz; RCV1-v2's distribution has it (LYRL2004)")
