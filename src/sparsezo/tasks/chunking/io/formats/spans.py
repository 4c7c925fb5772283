"""Spans and tokens as files have them: checked against the text, in code points, and in spaCy's form.

    remarks = Remarks("export.json")                    # what was left out or guessed, counted
    placed([Marked(3, 9, "LOC", own="Madrid")], "In Madrid.", "x.jsonl:1", remarks)     # (Span(3, 9, 'LOC'),)
    remarks.say()                                       # once, in the end: export.json: 2 spans left out: ...

JavaScript counts UTF-16 code units, two for a character beyond U+FFFF; tools written in it have put such offsets into
files (Label Studio before 2022). Where a document's spans do not fit as code points and all fit as code units, they are
taken for these, which is said.

spaCy's and Prodigy's tokens have every character of the text in one, or as the single space behind one:

    made = pieces("In  Madrid's", ((0, 2), (4, 12)), spans=[Span(4, 10, "LOC")])
    made.places         # [(0, 2), (3, 4), (4, 10), (10, 12)]: white space and cut at the span's border
    made.spaces         # [True, False, False, False]
"""

from __future__ import annotations

import itertools
import operator
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import IO, Any, NamedTuple

import numpy as np

from sparsezo import messages
from sparsezo.errors import DataError, quoted, shown
from sparsezo.messages import counted
from sparsezo.storage.files import check_text, named, reading
from sparsezo.tasks.chunking.io.conll import AnyPath
from sparsezo.tasks.chunking.io.documents import Document, Offsets, Span, tagged

Given = Iterable[tuple[str, Document]]  # what is written: where it stands, for messages, and the document


class Remarks:
    """What was left out or guessed of one file."""

    def __init__(self, path: AnyPath) -> None:
        self._path = named(path)
        self._counts: Counter[tuple[str, str]] = Counter()

    def count(self, noun: str, what: str, times: int = 1) -> None:
        self._counts[noun, what] += times

    def without(self, place: str, document: Document) -> None:
        """Suggested and rejected spans are left out, because ``place`` has no place for them."""
        for noun, spans in (("suggested span", document.suggested), ("rejected span", document.rejected)):
            self.count(noun, f"left out: {place} no place for them", len(spans))

    def say(self) -> None:
        for (noun, what), count in self._counts.items():
            if count:
                messages.say(f"{self._path}: {counted(count, noun)} {what}")


def read_text(path: AnyPath, stream: IO[bytes]) -> str:
    with reading(path):
        return decoded(stream.read(), path)


def decoded(data: bytes, path: AnyPath) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{path}:{line}", f"is not UTF-8 text (byte {error.start}); convert it, say with iconv -f latin1 -t utf8"
        ) from None


def as_tags(document: Document, where: str, remarks: Remarks) -> list[tuple[list[str], list[str]]]:
    """Words and IOB2 tags of each sentence; what tags cannot say of the document is counted in the remarks."""
    tags, left_out = tagged(document, where)
    words, cut, sentences = document.words(), 0, []
    for start, stop in itertools.pairwise(document.sentences or (0, len(words))):
        part = tags[start:stop]
        if part[:1] and part[0][0] == "I":
            part[0], cut = "B" + part[0][1:], cut + 1
        sentences.append((words[start:stop], part))
    remarks.count("span", "left out: of spans that overlap the longest is kept", left_out)
    remarks.count("span", "cut in two where a sentence ends", cut)
    remarks.without("tags have", document)
    remarks.count("document", "of which not all is known: what no span covers is O", int(document.missing))
    return sentences


_FAR = 1 << 40  # no offset is as large
_Given = Any  # what a file has, before ``placed`` looks at it


class Marked(NamedTuple):
    """A span as a file has it; ``own`` is its text, where the file has that, too."""

    start: _Given
    end: _Given
    label: _Given
    probability: _Given = None
    own: _Given = None


def exactly(text: str) -> str:
    return text


def in_one_line(text: str) -> str:
    """Line ends as blanks, as brat has them."""
    return re.sub(r"[\r\n]", " ", text)


def without_blanks(text: str) -> str:
    """Label Studio writes line ends as backslash and n, and may lose blanks."""
    return re.sub(r"\s|\\[rn]", "", text)


def placed(
    marked: Sequence[Marked], text: str, where: str, remarks: Remarks, as_shown: Callable[[str], str] = exactly
) -> tuple[Span, ...]:
    """The spans of one document, checked; ``as_shown`` is how the tool shows a span's own text, where not as it is."""
    for each in marked:
        _check_types(each, where)
    ways: list[tuple[list[tuple[int, int]] | None, Callable[[str], str]]] = []
    own, units = [(each.start, each.end) for each in marked], None
    if text and max(text) > "\uffff":
        units = _from_code_units(own, text)
    for form in dict.fromkeys((exactly, as_shown)):
        ways += [(own, form), (units, form)]
    for places, form in ways:
        if places is not None and all(_fits(*at, text, each, form) for at, each in zip(places, marked, strict=True)):
            if places is units and units != own:
                remarks.count("document", "with offsets in UTF-16 code units, which were made code points")
            return tuple(
                Span(start, end, each.label, None if each.probability is None else float(each.probability))
                for (start, end), each in zip(places, marked, strict=True)
            )
    raise DataError(
        where, _misfit(next(each for each in marked if not _fits(each.start, each.end, text, each, as_shown)), text)
    )


def _check_types(each: Marked, where: str) -> None:
    for name, value in (("start", each.start), ("end", each.end)):
        if type(value) is not int:
            raise DataError(where, f"a span's {name} is {shown(value, repr)}; it must be a whole number of characters")
    if not isinstance(each.label, str):
        raise DataError(where, f"a span's label is {shown(each.label, repr)}; it must be a string")
    chance = each.probability
    if chance is not None and not (type(chance) in (int, float) and 0 <= chance <= 1):
        raise DataError(where, f"a span's probability is {shown(chance, repr)}; it must be from 0 to 1")
    if each.own is not None and not isinstance(each.own, str):
        raise DataError(where, f"a span's text is {shown(each.own, repr)}; it must be a string")


def _fits(start: int, end: int, text: str, each: Marked, form: Callable[[str], str]) -> bool:
    return 0 <= start < end <= len(text) and (each.own is None or form(text[start:end]) == form(each.own))


def _misfit(each: Marked, text: str) -> str:
    if not 0 <= each.start < each.end <= len(text):
        return (
            f"span {shown(each.start)} to {shown(each.end)} ({quoted(each.label)}) of a text of {len(text):,} "
            "characters; start and end count characters from 0, the end is the first behind the span"
        )
    return (
        f"span {each.start} to {each.end} ({quoted(each.label)}) is '{quoted(text[each.start : each.end])}' in the "
        f"text, and '{quoted(each.own)}' by its own words; are text and spans of the same version?"
    )


def _from_code_units(places: list[tuple[int, int]], text: str) -> list[tuple[int, int]] | None:
    """Offsets in UTF-16 code units as code points; None where one of them is no place between two characters."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    starts = np.concatenate([[0], np.cumsum(1 + (codes > 0xFFFF))])
    units = np.array([min(max(at, -1), _FAR) for place in places for at in place], np.int64)
    points = np.searchsorted(starts, units)
    if (points == len(starts)).any() or (starts[points] != units).any():
        return None
    found = points.tolist()
    return list(zip(found[::2], found[1::2], strict=True))


def check_tokens(tokens: Offsets | None, sentences: tuple[int, ...] | None, text: str, where: str) -> None:
    """Tokens in order, within the text, none empty, none over another; sentences from the first to the last of them."""
    behind = 0
    for start, end in () if tokens is None or _in_order(tokens, len(text)) else tokens:
        if not behind <= start < end <= len(text):
            raise DataError(
                where,
                f"token {start} to {end}: tokens come one after the other, within {len(text):,} characters of text",
            )
        behind = end
    if sentences is not None:
        count = 0 if tokens is None else len(tokens)
        rising = all(map(operator.lt, sentences, sentences[1:]))
        if not sentences or sentences[0] != 0 or sentences[-1] != count or not rising:
            raise DataError(
                where, f"sentences {shown(list(sentences))}: they are numbers of tokens, rising from 0 to {count}"
            )


def _in_order(tokens: Offsets, n: int) -> bool:
    """Whether all is as ``check_tokens`` wants it, which a collection's many tokens are asked without a loop."""
    if not tokens:
        return True
    starts, ends = zip(*tokens, strict=True)
    rising = all(map(operator.lt, starts, ends)) and all(map(operator.le, (0, *ends), starts))
    return rising and bool(ends[-1] <= n)


def check_document(document: Document, where: str) -> None:
    """Before it is written: what is wrong now would be read by nobody."""
    strings = [document.text, *([document.id] if document.id is not None else [])]
    length = len(document.text)
    for span in (*(document.spans or ()), *document.suggested, *document.rejected):
        start, end, chance = span.start, span.end, span.probability
        whole = type(start) is int and type(end) is int and 0 <= start < end <= length
        if not (whole and type(span.label) is str and type(chance) is float and 0 <= chance <= 1):
            each = Marked(start, end, span.label, chance)
            _check_types(each, where)
            if not _fits(start, end, document.text, each, exactly):
                raise DataError(where, _misfit(each, document.text))
        strings.append(span.label)
    for string in dict.fromkeys(strings):
        check_text(string, where)
    check_tokens(document.tokens, document.sentences, document.text, where)


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
