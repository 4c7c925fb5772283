"""Chunk tags: IOB1 and IOB2 are told apart, and made IOB2 (the outputs of the paper's chunking task, Sec. 5).

A chunk is a run of tokens of one type. Its tokens are tagged I-TYPE, except that in IOB2 the first is always
B-TYPE and in IOB1 only where it follows a chunk of its own type. Plain B and I are chunks of the type ''.

    scheme(corpus)                                # "IOB1" or "IOB2"
    corpus = keep_only(corpus, "NP")              # B-NP, I-NP, O: the paper's noun phrase chunking
    require_chunks(corpus)                        # before training
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import DataError, UsageError
from sparsezo.tasks.chunking.conll import Corpus

_UNDERSTOOD = "understood are B-TYPE, I-TYPE and O, or plain B, I and O"


@dataclass(frozen=True, eq=False)
class Iob:
    """Tags as arrays, one entry a token."""

    types: tuple[str, ...]  # in order of first occurrence
    type_of: NDArray[np.int64]  # index into types, -1 for O
    begin: NDArray[np.bool_]  # the tag says B
    previous: NDArray[np.int64]  # type_of of the token before in the same sentence, -1 where there is none

    @property
    def starts(self) -> NDArray[np.bool_]:
        """Where a chunk starts, in either scheme: at B, and at an I after O or after another type."""
        starts: NDArray[np.bool_] = (self.type_of >= 0) & (self.begin | (self.type_of != self.previous))
        return starts


def is_iob(tag: str) -> bool:
    return tag in ("O", "B", "I") or (tag[:2] in ("B-", "I-") and len(tag) > 2)


def iob(tags: Sequence[str], offsets: NDArray[np.int64]) -> Iob:
    """Take tags apart; sentence s is tags ``offsets[s]:offsets[s + 1]``."""
    distinct = dict.fromkeys(tags)
    for tag in distinct:
        if not is_iob(tag):
            raise UsageError(_not_iob(tag))
    types = {name: i for i, name in enumerate(dict.fromkeys(tag[2:] for tag in distinct if tag != "O"))}
    code_of = {tag: code for code, tag in enumerate(distinct)}
    codes = np.fromiter(map(code_of.__getitem__, tags), np.int64, len(tags))
    type_of = np.array([-1 if tag == "O" else types[tag[2:]] for tag in distinct], np.int64)[codes]
    begin = np.array([tag[0] == "B" for tag in distinct], np.bool_)[codes]
    previous = np.full(len(tags), -1, np.int64)
    previous[1:] = type_of[:-1]
    previous[offsets[offsets < len(tags)]] = -1  # no chunk crosses into a sentence
    return Iob(tuple(types), type_of, begin, previous)


def scheme(corpus: Corpus) -> Literal["IOB1", "IOB2"]:
    """Which of the two a corpus is tagged in; IOB2 for one without chunks. A mixture is refused."""
    return _scheme(corpus)[0]


def _scheme(corpus: Corpus) -> tuple[Literal["IOB1", "IOB2"], Iob]:
    tags = _tags(corpus)
    for tag in dict.fromkeys(tags):
        if not is_iob(tag):
            raise DataError(corpus.where(tags.index(tag)), _not_iob(tag))
    arrays = iob(tags, corpus.offsets)
    # Each holds tokens that only one scheme can explain. A sentence's first chunk is always in one of them.
    iob1 = np.flatnonzero(arrays.starts & ~arrays.begin)
    iob2 = np.flatnonzero(arrays.begin & (arrays.type_of != arrays.previous))
    if len(iob1) and len(iob2):
        odd, odd_name, other, other_name = int(iob1[0]), "IOB1", int(iob2[0]), "IOB2"
        if len(iob2) < len(iob1):
            odd, odd_name, other, other_name = other, other_name, odd, odd_name
        raise DataError(
            corpus.where(odd),
            f"tag '{tags[odd]}' starts a chunk as in {odd_name}, but '{tags[other]}' at {corpus.where(other)} "
            f"as in {other_name}; use one of the two throughout",
        )
    return ("IOB1" if len(iob1) else "IOB2"), arrays


def to_iob2(corpus: Corpus) -> Corpus:
    """The same chunks, tagged IOB2."""
    arrays = _scheme(corpus)[1]
    return _tagged(corpus, arrays, arrays.types)


def keep_only(corpus: Corpus, chunk_type: str, required: bool = True) -> Corpus:
    """Chunks of one type, tagged IOB2; all others become O.

    A corpus without that type is refused, since the type is then most likely misspelt. Test data may well
    lack it: ``required=False`` lets it pass.
    """
    arrays = _scheme(corpus)[1]
    if required and chunk_type not in arrays.types:
        require_chunks(corpus)
        exist = ", ".join(name or "'' (plain B and I)" for name in sorted(arrays.types))
        raise UsageError(f"{corpus.path}: no chunk of type '{chunk_type}'; the types in it are: {exist}")
    return _tagged(corpus, arrays, (chunk_type,))


def require_chunks(corpus: Corpus) -> None:
    """Refuse a corpus that has no chunk: nothing can be learned from it."""
    if all(tag == "O" for tag in _tags(corpus)):
        raise DataError(corpus.path, "has no chunk, every tag is O; is the last column the chunk tag?")


def _tagged(corpus: Corpus, arrays: Iob, kept: tuple[str, ...]) -> Corpus:
    """The chunks of the kept types in IOB2."""
    # A row a type, and a last row for O, which is where type -1 looks.
    names = [(f"I-{t}", f"B-{t}") if t else ("I", "B") for t in arrays.types]
    table = [pair if t in kept else ("O", "O") for t, pair in zip(arrays.types, names, strict=True)] + [("O", "O")]
    tags = np.array(table, dtype=object)[arrays.type_of, arrays.starts.astype(np.int64)]
    return replace(corpus, tags=tags.tolist())


def _tags(corpus: Corpus) -> list[str]:
    if corpus.tags is None:
        raise UsageError(f"{corpus.path}: has no tags; give a file whose last column is the chunk tag")
    return corpus.tags


def _not_iob(tag: str) -> str:
    return f"tag '{tag}' is not IOB1 or IOB2; {_UNDERSTOOD} (convert BIOES or BILOU first)"
