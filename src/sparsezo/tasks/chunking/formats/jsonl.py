"""JSON lines: ``{"id": "7", "text": "In Madrid.", "spans": [{"start": 3, "end": 9, "label": "LOC"}]}``.

All fields of a ``Document`` have their own names; ``tokens`` and ``sentences`` are written where that is asked for.
Other fields are kept. Read as well: spans under ``entities``, ``label`` or ``labels``, as objects or as ``[3, 9,
"LOC"]`` (doccano, spaCy's old training data).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import IO, Any

from sparsezo.errors import DataError, shown
from sparsezo.tasks.chunking.documents import Document, Offsets
from sparsezo.tasks.chunking.formats.json_objects import (
    as_object,
    id_of,
    json_line,
    json_objects,
    marked_object,
    text_field,
)
from sparsezo.tasks.chunking.formats.places import Marked, check_tokens, placed
from sparsezo.tasks.chunking.formats.remarks import Remarks

_COUSINS = ("entities", "label", "labels")
_FIELDS = ("id", "text", "spans", "suggested", "rejected", "missing", "tokens", "sentences")


def read_jsonl(path: str | os.PathLike[str], stream: IO[bytes], remarks: Remarks) -> Iterator[Document]:
    for where, found in json_objects(path, stream):
        if found.get("answer") in ("reject", "ignore"):  # labels that somebody refused would be taken for right
            raise DataError(
                where, f"has an answer, '{found['answer']}', as Prodigy's lines have; `format` prodigy reads it"
            )
        rest = dict(found)
        text = text_field(found, where)
        del rest["text"]
        spans = _taken_spans(rest, where)
        suggested, rejected = (_marked(rest.pop(name, None) or [], where) for name in ("suggested", "rejected"))
        missing = rest.pop("missing") if isinstance(rest.get("missing"), bool) else False
        tokens, sentences = _taken_tokens(rest)
        check_tokens(tokens, sentences, text, where)
        own = [] if spans is None else spans
        all_spans = placed([*own, *suggested, *rejected], text, where, remarks)
        yield Document(
            text,
            id_of(rest),
            None if spans is None else all_spans[: len(own)],
            all_spans[len(own) : len(own) + len(suggested)],
            all_spans[len(own) + len(suggested) :],
            missing,
            tokens,
            sentences,
            rest,
        )


def _taken_spans(rest: dict[str, Any], where: str) -> list[Marked] | None:
    """Spans, taken out of a document's fields; None where it has none."""
    if "spans" in rest:
        spans = rest.pop("spans")
        return None if spans is None else _marked(spans, where)
    for name in _COUSINS:
        found = rest.get(name)
        if isinstance(found, list) and all(map(_is_span, found)):
            return _marked(rest.pop(name), where)
    return None


def _is_span(found: Any) -> bool:
    if isinstance(found, dict):
        return "start" in found or "start_offset" in found
    return isinstance(found, list) and len(found) == 3 and type(found[0]) is type(found[1]) is int


def _marked(found: Any, where: str) -> list[Marked]:
    if not isinstance(found, list):
        raise DataError(where, f"spans are '{shown(found, repr)}'; expected a list of them")
    return [
        Marked(*each) if isinstance(each, list) and _is_span(each) else marked_object(each, where) for each in found
    ]


def _taken_tokens(rest: dict[str, Any]) -> tuple[Offsets | None, tuple[int, ...] | None]:
    """Tokens as pairs of offsets, and sentences; in another form they are other fields."""
    tokens = rest.get("tokens")
    if not (isinstance(tokens, list) and all(isinstance(each, list) and _are_numbers(each, 2) for each in tokens)):
        return None, None
    pairs = tuple((start, end) for start, end in rest.pop("tokens"))
    sentences = rest.get("sentences")
    if not (isinstance(sentences, list) and _are_numbers(sentences, len(sentences))):
        return pairs, None
    return pairs, tuple(rest.pop("sentences"))


def _are_numbers(found: list[Any], count: int) -> bool:
    return len(found) == count and all(type(each) is int for each in found)


def write_jsonl(documents: Iterable[tuple[str, Document]], stream: IO[bytes], tokens: bool = False) -> None:
    """(where, document) each; ``tokens``: write where they are, too."""
    for _, document in documents:
        found: dict[str, Any] = {} if document.id is None else {"id": document.id}
        found["text"] = document.text
        if document.spans is not None:
            found["spans"] = [as_object(span) for span in document.spans]
        for name, spans in (("suggested", document.suggested), ("rejected", document.rejected)):
            if spans:
                found[name] = [as_object(span) for span in spans]
        if document.missing:
            found["missing"] = True
        if tokens and document.tokens is not None:
            found["tokens"] = [list(token) for token in document.tokens]
            if document.sentences is not None:
                found["sentences"] = list(document.sentences)
        stream.write(json_line({**found, **{key: document.meta[key] for key in document.meta if key not in found}}))
