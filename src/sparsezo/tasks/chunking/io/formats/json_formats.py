"""Documents as JSON: our own lines, Prodigy's, and Label Studio's tasks. Objects stand one a line, or as one list.

jsonl          ``{"id": "7", "text": "In Madrid.", "spans": [{"start": 3, "end": 9, "label": "LOC"}]}``. All fields of a
               ``Document`` have their own names; ``tokens`` and ``sentences`` are written where that is asked for.
               Other fields are kept. Read as well: spans under ``entities``, ``label`` or ``labels``, as objects or as
               ``[3, 9, "LOC"]`` (doccano, spaCy's old training data).
prodigy        text, tokens, spans and an answer. ``accept``: the spans are right. ``reject``: its one span is wrong.
               ``ignore``: passed over. No answer: the spans are suggestions. Unless the line has ``"missing": false``,
               what no span covers is missing: in Prodigy people also say of single spans whether they are right.
label-studio   ``{"data": {"text": ...}, "annotations": [{"result": [...]}], "predictions": [...]}``; also its short
               export (JSON_MIN). Of several annotations the newest that was not cancelled counts; predictions are
               suggestions. Fields of ``data`` are a document's other fields, and those of the task itself are kept
               under ``label_studio``.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import IO, TypeGuard, cast

from sparsezo.errors import DataError, quoted, shown
from sparsezo.storage.files import check_text, numbered_lines, reading, with_head
from sparsezo.tasks.base import Json
from sparsezo.tasks.chunking.io.conll import AnyPath
from sparsezo.tasks.chunking.io.documents import Document, Offsets, Span
from sparsezo.tasks.chunking.io.formats.spans import (
    Given,
    Marked,
    Remarks,
    check_tokens,
    pieces,
    placed,
    read_text,
    without_blanks,
    words_among,
)

_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_ESCAPED = {c: f"\\u{ord(c):04x}" for c in "\x85\u2028\u2029"}  # for readers that split lines at them
_LOOKED_AT = 1 << 12  # bytes in which a list begins


def json_objects(path: AnyPath, stream: IO[bytes]) -> Iterator[tuple[str, Json]]:
    """Each object and where it stands. Lines are read one by one, a list as a whole."""
    with reading(path, 1):
        head = stream.read(_LOOKED_AT)
    stream = with_head(head, stream)
    if head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"["):
        found = _parsed(read_text(path, stream).removeprefix("\ufeff"), str(path))
        rows = ((f"{path}: object {number}", each) for number, each in enumerate(cast(list[object], found), start=1))
    else:
        lines = ((f"{path}:{number}", line) for number, line in numbered_lines(path, stream) if line.strip())
        rows = ((where, _parsed(line, where)) for where, line in lines)
    for where, row in rows:
        if not isinstance(row, dict):
            raise DataError(where, f"'{shown(row, repr)}' is no object; expected {{\"text\": ..., ...}}")
        yield where, row


def _parsed(text: str, where: str) -> object:
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError) as error:  # also a number of too many digits, and brackets too deep
        raise DataError(
            where, f"'{quoted(text)}' is not JSON ({error}); expected one object a line, or one list of objects"
        ) from None
    if _HALF.search(text):
        check_text(json.dumps(found, ensure_ascii=False), where)
    return found


_encode = json.JSONEncoder(ensure_ascii=False).encode


def json_line(found: Json) -> bytes:
    """One line, UTF-8, and no character within that any reader could take for a line end."""
    try:
        text = _encode(found)
    except (TypeError, ValueError, RecursionError) as error:
        raise DataError("a document's `meta`", f"cannot be written as JSON ({error}); keep what JSON has") from None
    for character, escaped in () if text.isascii() else _ESCAPED.items():
        text = text.replace(character, escaped)
    try:
        return text.encode("utf-8") + b"\n"
    except UnicodeEncodeError:
        raise DataError("a document's `meta`", "half of a surrogate pair, which is no character") from None


def text_field(found: Json, where: str, name: str = "text") -> str:
    if name not in found:
        fields = ", ".join(f"'{quoted(key)}'" for key in list(found)[:20]) or "nothing"
        raise DataError(where, f"has no '{name}'; it has {fields}. Name the text '{name}'")
    if not isinstance(found[name], str):
        raise DataError(where, f"'{name}' is {shown(found[name], repr)}; a document's text is a string")
    return str(found[name])


def id_of(found: Json) -> str | None:
    """A document's id, taken out of its fields; what is neither a string nor a number stays where it is."""
    if isinstance(found.get("id"), str) or type(found.get("id")) is int:
        return str(found.pop("id"))
    if found.get("id", ...) is None:
        del found["id"]
    return None


def marked_object(found: object, where: str) -> Marked:
    """A span that is an object: start, end, label, and perhaps a probability and its own text."""
    if not isinstance(found, dict):
        raise DataError(where, f'a span is \'{shown(found, repr)}\'; expected {{"start": 3, "end": 9, "label": ...}}')
    start, end = found.get("start", found.get("start_offset")), found.get("end", found.get("end_offset"))
    own = found.get("text")
    return Marked(start, end, found.get("label"), found.get("probability"), own if isinstance(own, str) else None)


def as_object(span: Span) -> Json:
    if span.probability is None:
        return {"start": span.start, "end": span.end, "label": span.label}
    return {"start": span.start, "end": span.end, "label": span.label, "probability": span.probability}


_COUSINS = ("entities", "label", "labels")


def read_jsonl(path: AnyPath, stream: IO[bytes], remarks: Remarks) -> Iterator[Document]:
    for where, found in json_objects(path, stream):
        if found.get("answer") in ("reject", "ignore"):  # labels that somebody refused would be taken for right
            raise DataError(
                where, f"has an answer, '{found['answer']}', as Prodigy's lines have; `format` prodigy reads it"
            )
        rest = dict(found)
        text = text_field(found, where)
        del rest["text"]
        spans = _taken_spans(rest, where)
        suggested, rejected = (_marked_list(rest.pop(name, None) or [], where) for name in ("suggested", "rejected"))
        missing = rest.pop("missing") if isinstance(rest.get("missing"), bool) else False
        tokens, sentences = _taken_tokens(rest)
        check_tokens(tokens, sentences, text, where)
        lists = [spans or [], suggested, rejected]
        checked = iter(placed(list(itertools.chain(*lists)), text, where, remarks))
        own, guesses, refused = (tuple(itertools.islice(checked, len(each))) for each in lists)
        known = None if spans is None else own
        yield Document(text, id_of(rest), known, guesses, refused, missing, tokens, sentences, rest)


def _taken_spans(rest: Json, where: str) -> list[Marked] | None:
    """Spans, taken out of a document's fields; None where it has none."""
    if "spans" in rest:
        spans = rest.pop("spans")
        return None if spans is None else _marked_list(spans, where)
    for name in _COUSINS:
        found = rest.get(name)
        if isinstance(found, list) and all(map(_is_span, found)):
            return _marked_list(rest.pop(name), where)
    return None


def _is_span(found: object) -> bool:
    if isinstance(found, dict):
        return "start" in found or "start_offset" in found
    return isinstance(found, list) and len(found) == 3 and type(found[0]) is type(found[1]) is int


def _marked_list(found: object, where: str) -> list[Marked]:
    if not isinstance(found, list):
        raise DataError(where, f"spans are '{shown(found, repr)}'; expected a list of them")
    return [
        Marked(*each) if isinstance(each, list) and _is_span(each) else marked_object(each, where) for each in found
    ]


def _taken_tokens(rest: Json) -> tuple[Offsets | None, tuple[int, ...] | None]:
    """Tokens as pairs of offsets, and sentences; in another form they are other fields."""
    tokens = rest.get("tokens")
    if not (isinstance(tokens, list) and all(_are_numbers(each) and len(each) == 2 for each in tokens)):
        return None, None
    pairs = tuple((start, end) for start, end in rest.pop("tokens"))
    return pairs, tuple(rest.pop("sentences")) if _are_numbers(rest.get("sentences")) else None


def _are_numbers(found: object) -> TypeGuard[list[int]]:
    return isinstance(found, list) and all(type(each) is int for each in found)


def write_jsonl(documents: Given, stream: IO[bytes], remarks: Remarks, tokens: bool = False) -> None:
    for _, document in documents:
        found: Json = {} if document.id is None else {"id": document.id}
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


ACCEPT, REJECT, IGNORE = "accept", "reject", "ignore"
_OF_PRODIGY = ("text", "tokens", "spans", "answer", "missing")


def read_prodigy(path: AnyPath, stream: IO[bytes], remarks: Remarks) -> Iterator[Document]:
    last: Document | None = None
    for where, found in json_objects(path, stream):
        answer = found.get("answer")
        if answer not in (None, ACCEPT, REJECT, IGNORE):
            raise DataError(where, f"the answer is '{shown(answer)}'; it is accept, reject or ignore")
        if answer == IGNORE:
            remarks.count("ignored document", "passed over")
            continue
        document = _of_prodigy(found, where, remarks)
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


def _of_prodigy(found: Json, where: str, remarks: Remarks) -> Document:
    text, answer = text_field(found, where), found.get("answer")
    tokens, spans = _objects(found, "tokens", where), _objects(found, "spans", where) or []
    marked_tokens = [Marked(each.get("start"), each.get("end"), "token", own=each.get("text")) for each in tokens or []]
    marked = [_by_tokens(each, tokens, where) for each in spans]
    all_of_it = placed([*marked, *marked_tokens], text, where, remarks)
    own = all_of_it[: len(marked)]
    places = None if tokens is None else tuple((each.start, each.end) for each in all_of_it[len(marked) :])
    check_tokens(places, None, text, where)
    rest = {key: value for key, value in found.items() if key not in _OF_PRODIGY}
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


def _objects(found: Json, name: str, where: str) -> list[Json] | None:
    objects = found.get(name)
    if objects is not None and not (isinstance(objects, list) and all(isinstance(each, dict) for each in objects)):
        raise DataError(where, f"'{name}' is '{shown(objects, repr)}'; expected a list of objects")
    return objects


def _by_tokens(span: Json, tokens: list[Json] | None, where: str) -> Marked:
    """A span by its offsets or, where it has none, by its first and last token."""
    if "start" not in span and tokens is not None:
        first, last = span.get("token_start"), span.get("token_end")  # the last token, not the one behind it
        if type(first) is type(last) is int and 0 <= first <= last < len(tokens):
            span = {**span, "start": tokens[first].get("start"), "end": tokens[last].get("end")}
    return marked_object(span, where)


def write_prodigy(documents: Given, stream: IO[bytes], remarks: Remarks) -> None:
    """A rejected span is a line of its own, behind the document's."""
    for _, document in documents:
        if document.spans is None and not document.rejected:
            stream.write(json_line(_prodigy_line(document, document.suggested, None)))
            continue
        remarks.count("suggested span", "left out: Prodigy has one list of spans", len(document.suggested))
        if document.spans is not None:
            stream.write(json_line(_prodigy_line(document, document.spans, ACCEPT)))
        for span in document.rejected:
            stream.write(json_line(_prodigy_line(document, (span,), REJECT)))


def _prodigy_line(document: Document, spans: tuple[Span, ...], answer: str | None) -> Json:
    found: Json = {"text": document.text}
    if document.id is not None:
        found["id"] = document.id
    made = None if document.tokens is None else pieces(document.text, document.tokens, spans)
    if made is not None:
        found["tokens"] = [
            {"text": document.text[start:end], "start": start, "end": end, "id": i, "ws": space}
            for i, ((start, end), space) in enumerate(zip(made.places, made.spaces, strict=True))
        ]
    found["spans"] = [as_object(span) for span in spans]
    for each, span in zip(found["spans"], spans, strict=True):
        if made is not None:
            first, stop = made.covered(span)
            each |= {"token_start": first, "token_end": stop - 1}
    if answer is not None:
        found["answer"] = answer
    if answer == ACCEPT and not document.missing:
        found["missing"] = False
    return {**found, **{key: document.meta[key] for key in document.meta if key not in (*found, *_OF_PRODIGY)}}


KEPT = "label_studio"  # the field of `meta` for what stands in a task beside its data
_OF_TASK = ("data", "annotations", "completions", "predictions")
_NUMBER = re.compile(r"0|[1-9][0-9]{0,17}")


def read_label_studio(path: AnyPath, stream: IO[bytes], remarks: Remarks) -> Iterator[Document]:
    for where, task in json_objects(path, stream):
        yield _of_short_task(task, where, remarks) if "data" not in task else _of_task(task, where, remarks)


def _of_task(task: Json, where: str, remarks: Remarks) -> Document:
    data = task["data"]
    if not isinstance(data, dict):
        raise DataError(where, f"'data' is '{shown(data, repr)}'; expected {{\"text\": ...}}")
    strings = [name for name, value in data.items() if isinstance(value, str) and name != "id"]
    field = strings[0] if "text" not in data and len(strings) == 1 else "text"
    rest = dict(data)
    text = text_field(rest, f"{where}, data", field)
    del rest[field]
    kept = {key: value for key, value in task.items() if key not in _OF_TASK}
    id = id_of(rest)
    id = id_of(kept) if id is None else id
    annotations = _results(task, "annotations" if "annotations" in task else "completions", where)
    predictions = _results(task, "predictions", where)
    spans, suggested = (
        placed(_marked_results(each or [], where, remarks), text, where, remarks, without_blanks)
        for each in (annotations, predictions)
    )
    meta = {**rest, KEPT: kept} if kept else rest
    return Document(text, id, None if annotations is None else spans, suggested, meta=meta)


def _results(task: Json, name: str, where: str) -> list[object] | None:
    """Of the newest annotation, or prediction, that was not cancelled; None where there is none."""
    found = _objects(task, name, where) if task.get(name) else None
    valid = [each for each in found or () if not each.get("was_cancelled")]
    if not valid:
        return None
    dates = [str(each.get("updated_at") or each.get("created_at") or "") for each in valid]
    newest = max(range(len(valid)), key=lambda i: (dates[i], i))
    result = valid[newest].get("result")
    if not isinstance(result, list):
        raise DataError(where, f"a 'result' in '{name}' is '{shown(result, repr)}'; expected a list")
    return result


def _marked_results(results: list[object], where: str, remarks: Remarks) -> list[Marked]:
    marked = []
    for each in results:
        if not isinstance(each, dict):
            raise DataError(where, f"a result is '{shown(each, repr)}'; expected an object")
        if each.get("type") != "labels":
            remarks.count("result", "that are no labels of a text passed over")
            continue
        marked += _marked_value(each.get("value"), each.get("score"), where)
    return marked


def _marked_value(value: object, score: object, where: str) -> list[Marked]:
    if not isinstance(value, dict):
        raise DataError(
            where, f'a span is \'{shown(value, repr)}\'; expected {{"start": 3, "end": 9, "labels": [...]}}'
        )
    labels = value.get("labels")
    if not isinstance(labels, list) or not labels:
        raise DataError(where, f"a span's labels are '{shown(labels, repr)}'; expected a list of them")
    own = value.get("text")
    return [
        Marked(value.get("start"), value.get("end"), label, score, own if isinstance(own, str) else None)
        for label in labels
    ]


def label_studio_document(task: Json, where: str) -> Document:
    """One task as a document; ``where``: for messages."""
    return _of_task(task, where, Remarks(where))


def _of_short_task(task: Json, where: str, remarks: Remarks) -> Document:
    """JSON_MIN: the data's fields, and the labels under the name that the labelling interface gives them."""
    rest = dict(task)
    text = text_field(rest, where)
    del rest["text"]
    names = [name for name, value in rest.items() if are_labels(value)]
    if len(names) > 1:
        raise DataError(
            where, f"labels under {' and '.join(map(quoted, names))}; export it as JSON, which says which is which"
        )
    spans = None
    if names:
        marked = [each for value in rest.pop(names[0]) for each in _marked_value(value, value.get("score"), where)]
        spans = placed(marked, text, where, remarks, without_blanks)
    return Document(text, id_of(rest), spans, meta=rest)


def are_labels(value: object) -> bool:
    """Whether this is how JSON_MIN has labels: a list of objects with ``labels``."""
    return isinstance(value, list) and value != [] and all(isinstance(x, dict) and "labels" in x for x in value)


def write_label_studio(documents: Given, stream: IO[bytes], remarks: Remarks) -> None:
    """As one list: what Label Studio imports."""
    between = b"[\n"
    for _, document in documents:
        remarks.count("rejected span", "left out: Label Studio has no place for them", len(document.rejected))
        remarks.count(
            "document", "of which not all is known: Label Studio takes the rest as outside", int(document.missing)
        )
        stream.write(between + json_line(_label_studio_task(document)).rstrip(b"\n"))
        between = b",\n"
    stream.write(b"\n]\n" if between == b",\n" else b"[]\n")


def _label_studio_task(document: Document) -> Json:
    kept = document.meta.get(KEPT)
    kept = dict(kept) if isinstance(kept, dict) else {}
    data: Json = {"text": document.text}
    task: Json = {}
    if document.id is not None:
        if _NUMBER.fullmatch(document.id) and "id" not in kept:
            task["id"] = int(document.id)
        else:
            data["id"] = document.id
    data |= {key: value for key, value in document.meta.items() if key not in data and (key != KEPT or not kept)}
    task["data"] = data
    if document.spans is not None:
        task["annotations"] = [{"result": label_studio_result(document, document.spans)}]
    if document.suggested:
        prediction: Json = {"model_version": "sparsezo"}
        known = [span.probability for span in document.suggested if span.probability is not None]
        if len(known) == len(document.suggested):
            prediction["score"] = min(known)  # as sure as of the least sure, which is what a person should see first
        task["predictions"] = [{**prediction, "result": label_studio_result(document, document.suggested)}]
    return {**task, **{key: value for key, value in kept.items() if key not in task and key not in _OF_TASK}}


def label_studio_result(
    document: Document, spans: tuple[Span, ...], from_name: str = "label", to_name: str = "text"
) -> list[Json]:
    """Spans as a task has them, under the names that the labelling interface has for its labels and its text."""
    return [
        {
            "id": f"span{number}",
            "from_name": from_name,
            "to_name": to_name,
            "type": "labels",
            "value": {
                "start": span.start,
                "end": span.end,
                "text": document.text[span.start : span.end],
                "labels": [span.label],
            },
            **({} if span.probability is None else {"score": span.probability}),
        }
        for number, span in enumerate(spans, start=1)
    ]
