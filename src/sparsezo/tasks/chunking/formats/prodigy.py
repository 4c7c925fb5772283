"""Prodigy's JSON lines: text, tokens, spans and an answer.

``accept``: the spans are right. ``reject``: its one span is wrong; of several nobody can say which. ``ignore``:
passed over. No answer: a task that is still to be answered, whose spans are suggestions. Unless the line says
otherwise (``"missing": false``, which is written for documents of which all is known), what no span covers is
missing: in Prodigy people also say of single spans whether they are right.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import IO, Any

from sparsezo.errors import DataError, shown
from sparsezo.tasks.chunking.documents import Document, Span
from sparsezo.tasks.chunking.formats.json_objects import (
    as_object,
    id_of,
    json_line,
    json_objects,
    marked_object,
    text_field,
)
from sparsezo.tasks.chunking.formats.pieces import Pieces, pieces, words_among
from sparsezo.tasks.chunking.formats.places import Marked, check_tokens, placed
from sparsezo.tasks.chunking.formats.remarks import Remarks

ACCEPT, REJECT, IGNORE = "accept", "reject", "ignore"
_TAKEN = ("text", "tokens", "spans", "answer", "missing")


def read_prodigy(path: str | os.PathLike[str], stream: IO[bytes], remarks: Remarks) -> Iterator[Document]:
    last: Document | None = None
    for where, found in json_objects(path, stream):
        answer = found.get("answer")
        if answer not in (None, ACCEPT, REJECT, IGNORE):
            raise DataError(where, f"the answer is '{shown(answer)}'; it is accept, reject or ignore")
        if answer == IGNORE:
            remarks.count("ignored document", "passed over")
            continue
        document = _document(found, where, remarks)
        if answer == REJECT and last is not None and (last.text, last.id) == (document.text, document.id):
            last = replace(last, rejected=last.rejected + document.rejected)  # more about the document before
            continue
        if last is not None:
            yield last
        if document.missing:
            remarks.count(
                "document",
                'of Prodigy: what no span covers is taken as unknown ("missing": false in a line says otherwise)',
            )
        last = document
    if last is not None:
        yield last


def _document(found: dict[str, Any], where: str, remarks: Remarks) -> Document:
    text, answer = text_field(found, where), found.get("answer")
    tokens, spans = _objects(found, "tokens", where), _objects(found, "spans", where) or []
    marked_tokens = [Marked(each.get("start"), each.get("end"), "token", own=each.get("text")) for each in tokens or []]
    marked = [_by_tokens(each, tokens, where) for each in spans]
    all_of_it = placed([*marked, *marked_tokens], text, where, remarks)
    own = all_of_it[: len(marked)]
    places = None if tokens is None else tuple((each.start, each.end) for each in all_of_it[len(marked) :])
    check_tokens(places, None, text, where)
    rest = {key: value for key, value in found.items() if key not in _TAKEN}
    missing = found.get("missing")
    if answer == REJECT and len(own) > 1:
        remarks.count(
            "rejected document", "with several spans: nobody can say which are wrong, so nothing is learned of it"
        )
    return Document(
        text,
        id_of(rest),
        {ACCEPT: own, REJECT: ()}.get(answer or ""),
        own if answer is None else (),
        own if answer == REJECT and len(own) == 1 else (),
        answer is not None and missing is not False,
        None if places is None else words_among(text, places),
        meta=rest,
    )


def _objects(found: dict[str, Any], name: str, where: str) -> list[dict[str, Any]] | None:
    objects = found.get(name)
    if objects is None:
        return None
    if not isinstance(objects, list) or not all(isinstance(each, dict) for each in objects):
        raise DataError(where, f"'{name}' is '{shown(objects, repr)}'; expected a list of objects")
    return objects


def _by_tokens(span: dict[str, Any], tokens: list[dict[str, Any]] | None, where: str) -> Marked:
    """A span by its offsets or, where it has none, by its first and last token."""
    if "start" not in span and tokens is not None:
        first, last = span.get("token_start"), span.get("token_end")  # the last token, not the one behind it
        if type(first) is type(last) is int and 0 <= first <= last < len(tokens):
            span = {**span, "start": tokens[first].get("start"), "end": tokens[last].get("end")}
    return marked_object(span, where)


def write_prodigy(documents: Iterable[tuple[str, Document]], stream: IO[bytes], remarks: Remarks) -> None:
    """(where, document) each. A rejected span is a line of its own, behind the document's."""
    for where, document in documents:
        if document.spans is not None:
            remarks.count("suggested span", "left out: Prodigy has one list of spans", len(document.suggested))
            stream.write(json_line(_line(document, document.spans, ACCEPT, where)))
        elif not document.rejected:
            stream.write(json_line(_line(document, document.suggested, None, where)))
        else:
            remarks.count("suggested span", "left out: Prodigy has one list of spans", len(document.suggested))
        for span in document.rejected:
            stream.write(json_line(_line(document, (span,), REJECT, where)))


def _line(document: Document, spans: tuple[Span, ...], answer: str | None, where: str) -> dict[str, Any]:
    found: dict[str, Any] = {"text": document.text}
    if document.id is not None:
        found["id"] = document.id
    made = None if document.tokens is None else pieces(document.text, document.tokens, spans)
    if made is not None:
        found["tokens"] = [
            {"text": document.text[start:end], "start": start, "end": end, "id": i, "ws": space}
            for i, ((start, end), space) in enumerate(zip(made.places, made.spaces, strict=True))
        ]
    found["spans"] = [_span(span, made) for span in spans]
    if answer is not None:
        found["answer"] = answer
    if answer == ACCEPT and not document.missing:
        found["missing"] = False
    return {**found, **{key: value for key, value in document.meta.items() if key not in found and key not in _TAKEN}}


def _span(span: Span, made: Pieces | None) -> dict[str, Any]:
    found = as_object(span)
    if made is None:
        return found
    first, stop = made.covered(span)
    return {**found, "token_start": first, "token_end": stop - 1}
