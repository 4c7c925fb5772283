"""Documents with spans: text, and which parts of it somebody, or a model, calls what.

    madrid = Document("In Madrid.", id="7", spans=(Span(3, 9, "LOC"),), tokens=((0, 2), (3, 9), (9, 10)))
    tagged(madrid, "x.jsonl:1")                             # (['O', 'B-LOC', 'O'], 0)
    spans_of(madrid.tokens, ["O", "B-LOC", "O"])            # (Span(3, 9, 'LOC'),)

Offsets are code points of ``text``, ends exclusive, so that ``text[span.start:span.end]`` is what a span covers.
Files of documents are read and written in formats/.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from sparsezo.errors import DataError, UsageError, quoted
from sparsezo.tasks.chunking.io.conll import Corpus
from sparsezo.tasks.chunking.metric import chunks
from sparsezo.tasks.chunking.tags import OUTSIDE

Offsets = tuple[tuple[int, int], ...]  # (start, end) of each token


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a text and its label: code points, end exclusive."""

    start: int
    end: int
    label: str
    probability: float | None = None


@dataclass(frozen=True)
class Document:
    """A text, and what is known of it."""

    text: str
    id: str | None = None
    spans: tuple[Span, ...] | None = None  # labels that somebody gave; None: nobody said anything of it
    suggested: tuple[Span, ...] = ()  # a model's guesses, to be looked at
    rejected: tuple[Span, ...] = ()  # spans that somebody said are wrong
    missing: bool = False  # what no span covers is unknown, not outside
    tokens: Offsets | None = None  # where a file says, or somebody found, where tokens are
    sentences: tuple[int, ...] | None = None  # S + 1 token numbers: sentence s is tokens sentences[s]:sentences[s + 1]
    meta: Mapping[str, object] = field(default_factory=dict)  # all other fields of a file, written back

    def words(self) -> list[str]:
        return [self.text[start:end] for start, end in self.tokens or ()]


def without_overlap(spans: Sequence[Span]) -> tuple[tuple[Span, ...], int]:
    """(spans of which none overlaps another, in order; how many were left out): the longest are kept, the first of
    equals.

    The same span twice is one span.
    """
    ordered = sorted({(s.start, s.end, s.label): s for s in reversed(spans)}.values(), key=lambda s: (s.start, s.end))
    if all(a.end <= b.start for a, b in itertools.pairwise(ordered)):
        return tuple(ordered), 0
    kept: list[Span] = []  # by start, and so by end
    for span in sorted(ordered, key=lambda s: s.start - s.end):
        at = bisect_left(kept, span.end, key=lambda s: s.start)
        if at == 0 or kept[at - 1].end <= span.start:
            kept.insert(at, span)
    return tuple(kept), len(ordered) - len(kept)


def tagged(document: Document, where: str) -> tuple[list[str], int]:
    """(IOB2 tags of the document's tokens by its spans, how many spans were left out).

    Of spans that overlap the longest is kept. A span whose border is inside of a token, or that covers no token, is an
    error: tags cannot say it. ``where`` names the document in messages.
    """
    tokens = document.tokens
    if tokens is None:
        raise UsageError(f"{where}: has no tokens, which tags need; split the text into tokens first")
    kept, left_out = without_overlap(document.spans or ())
    tags = [OUTSIDE] * len(tokens)
    for span in kept:
        first = bisect_right(tokens, span.start, key=lambda token: token[1])
        stop = bisect_left(tokens, span.end, key=lambda token: token[0])
        inside = [token for token in tokens[first : first + 1] if token[0] < span.start] or [
            token for token in tokens[max(stop - 1, 0) : stop] if token[1] > span.end
        ]
        if inside or first == stop:
            words = (
                f"inside of the token '{quoted(document.text[slice(*inside[0])])}'" if inside else "with no token in it"
            )
            raise DataError(
                where,
                f"span {span.start} to {span.end}, '{quoted(document.text[span.start : span.end])}' "
                f"({quoted(span.label)}), begins or ends {words}; "
                "tags cannot say that: mend the span or the tokens, or write jsonl",
            )
        ending = f"-{span.label}" if span.label else ""
        tags[first:stop] = ["B" + ending, *["I" + ending] * (stop - first - 1)]
    return tags, left_out


def spans_of(tokens: Sequence[tuple[int, int]], tags: Sequence[str]) -> tuple[Span, ...]:
    """The spans that tags of tokens (start, end) say; tags of other schemes than IOB2 are read as conlleval does."""
    if len(tags) != len(tokens):
        raise UsageError(f"{len(tags)} tags for {len(tokens)} tokens; give one a token")
    found = chunks(tags, np.array([0, len(tags)], np.int64))
    return tuple(Span(tokens[first][0], tokens[stop - 1][1], label) for first, stop, label in found)


def pasted(words: Sequence[str]) -> tuple[str, Offsets]:
    """Words with single spaces between them, and where each of them stands."""
    tokens, at = [], 0
    for word in words:
        tokens.append((at, at + len(word)))
        at += len(word) + 1
    return " ".join(words), tuple(tokens)


def documents_from_columns(corpus: Corpus) -> Iterator[Document]:
    """A document for each sentence of a column file: the words of its first column, pasted with single spaces.

    Tags are those of chunks, in IOB2 (``tags.understood`` makes them so); a corpus without tags gives ``spans`` None.
    """
    if not corpus.columns:
        raise UsageError(
            f"{corpus.path}: has attributes, not words, so there is no text to be made of it; give columns"
        )
    ends = corpus.offsets.tolist()
    for start, stop in itertools.pairwise(ends):
        text, tokens = pasted(corpus.columns[0][start:stop])
        spans = None if corpus.tags is None else spans_of(tokens, corpus.tags[start:stop])
        yield Document(text, spans=spans, tokens=tokens, sentences=(0, len(tokens)))
