"""Offsets as a file has them, checked against the text, and those in UTF-16 code units made code points.

    placed([Marked(3, 9, "LOC", own="Madrid")], "In Madrid.", "x.jsonl:1", remarks)     # (Span(3, 9, 'LOC'),)

JavaScript counts UTF-16 code units, two for a character beyond U+FFFF; tools written in it have put such offsets into
files (Label Studio before 2022). Where a document's spans do not fit as code points and all fit as code units, they are
taken for these, which is said.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparsezo.errors import DataError, quoted, shown
from sparsezo.tasks.chunking.documents import Document, Offsets, Span
from sparsezo.tasks.chunking.formats.remarks import Remarks

_FAR = 1 << 40  # no offset is as large


@dataclass(frozen=True, slots=True)
class Marked:
    """A span as a file has it; ``own`` is its text, where the file has that, too."""

    start: Any
    end: Any
    label: Any
    probability: Any = None
    own: Any = None


def exactly(text: str) -> str:
    return text


def in_one_line(text: str) -> str:
    """Line ends as blanks, as brat has them."""
    return re.sub(r"[\r\n]", " ", text)


def without_blanks(text: str) -> str:
    """Label Studio writes line ends as backslash and n, and may lose blanks."""
    return re.sub(r"\s|\\[rn]", "", text)


def placed(
    marked: Sequence[Marked],
    text: str,
    where: str,
    remarks: Remarks,
    as_shown: Callable[[str], str] = exactly,
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
    check_probability(each.probability, where)
    if each.own is not None and not isinstance(each.own, str):
        raise DataError(where, f"a span's text is {shown(each.own, repr)}; it must be a string")


def check_probability(value: Any, where: str) -> None:
    if value is not None and not (type(value) in (int, float) and 0 <= value <= 1):
        raise DataError(where, f"a span's probability is {shown(value, repr)}; it must be from 0 to 1")


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


def check_text(text: str, where: str) -> None:
    """JSON and Python can spell halves of characters, which no file of text can hold."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise DataError(where, "half of a surrogate pair (\\ud800 to \\udfff), which is no character") from None


def check_tokens(tokens: Offsets | None, sentences: tuple[int, ...] | None, text: str, where: str) -> None:
    """Tokens in order, within the text, none empty, none over another; sentences from the first to the last of them."""
    behind = 0
    for start, end in tokens or ():
        if not behind <= start < end <= len(text):
            raise DataError(
                where,
                f"token {start} to {end}: tokens come one after the other, within {len(text):,} characters of text",
            )
        behind = end
    if sentences is not None:
        count = 0 if tokens is None else len(tokens)
        rising = all(a < b for a, b in itertools.pairwise(sentences))
        if not sentences or sentences[0] != 0 or sentences[-1] != count or not rising:
            raise DataError(
                where,
                f"sentences {shown(list(sentences))}: they are numbers of tokens, rising from 0 to {count}",
            )


def check_document(document: Document, where: str) -> None:
    """Before it is written: what is wrong now would be read by nobody."""
    strings = [document.text, *([document.id] if document.id is not None else [])]
    for span in (*(document.spans or ()), *document.suggested, *document.rejected):
        each = Marked(span.start, span.end, span.label, span.probability)
        _check_types(each, where)
        if not _fits(span.start, span.end, document.text, each, exactly):
            raise DataError(where, _misfit(each, document.text))
        strings.append(span.label)
    for string in strings:
        check_text(string, where)
    check_tokens(document.tokens, document.sentences, document.text, where)
