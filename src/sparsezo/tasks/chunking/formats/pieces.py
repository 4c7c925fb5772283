"""Tokens as spaCy has them: every character of the text is in one, or is the single space behind one.

made = pieces("In  Madrid's", ((0, 2), (4, 12)), spans=[Span(4, 10, "LOC")])
made.places         # [(0, 2), (3, 4), (4, 10), (10, 12)]: white space and cut at the span's border
made.spaces         # [True, False, False, False]
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from sparsezo.tasks.chunking.documents import Offsets, Span


@dataclass(frozen=True)
class Pieces:
    """Piece i is ``text[slice(*places[i])]``, followed by a space where ``spaces[i]``."""

    places: list[tuple[int, int]]
    spaces: list[bool]

    def covered(self, span: Span) -> tuple[int, int]:
        """The pieces of a span that these were made for: first, and the one behind the last."""
        return bisect_left(self.places, (span.start, span.start)), bisect_right(self.places, (span.end, -1))


def pieces(text: str, tokens: Sequence[tuple[int, int]], spans: Sequence[Span]) -> Pieces:
    """Tokens, what stands between them, and cuts where a span begins or ends within."""
    starts, ends = {span.start for span in spans}, {span.end for span in spans}
    borders = sorted(starts | ends)
    made = Pieces([], [])
    at = 0

    def add(start: int, end: int) -> None:
        inside = borders[bisect_right(borders, start) : bisect_left(borders, end)]
        for a, b in zip([start, *inside], [*inside, end], strict=True):
            made.places.append((a, b))
            made.spaces.append(False)

    for start, end in (*tokens, (len(text), len(text))):
        if at < start and made.places and text[at] == " " and at not in starts and at + 1 not in ends:
            made.spaces[-1] = True
            at += 1
        if at < start:
            add(at, start)
        if start < end:
            add(start, end)
        at = end
    return made


def words_among(text: str, places: Sequence[tuple[int, int]]) -> Offsets:
    """Those that are not white space alone."""
    return tuple(place for place in places if not text[slice(*place)].isspace())
