"""Label Studio's tasks: ``{"data": {"text": ...}, "annotations": [{"result": [...]}], "predictions": [...]}``.

A list of tasks, or a task a line; also its short export (JSON_MIN). Annotations are what people said, and of several
the newest that was not cancelled counts; predictions are suggestions. Offsets are code points, as Label Studio writes
them since 2022; older exports have UTF-16 code units, which is told by the spans' own texts. Fields of ``data`` are a
document's other fields, and those of the task itself are kept under ``label_studio``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import IO, Any

from sparsezo.errors import DataError, quoted, shown
from sparsezo.tasks.chunking.documents import Document, Span
from sparsezo.tasks.chunking.formats.json_objects import id_of, json_line, json_objects, text_field
from sparsezo.tasks.chunking.formats.places import Marked, placed, without_blanks
from sparsezo.tasks.chunking.formats.remarks import Remarks

KEPT = "label_studio"  # the field of `meta` for what stands in a task beside its data
_OF_TASK = ("data", "annotations", "completions", "predictions")
_NUMBER = re.compile(r"0|[1-9][0-9]{0,17}")


def read_label_studio(path: str | os.PathLike[str], stream: IO[bytes], remarks: Remarks) -> Iterator[Document]:
    for where, task in json_objects(path, stream):
        yield _short(task, where, remarks) if "data" not in task else _task(task, where, remarks)


def _task(task: dict[str, Any], where: str, remarks: Remarks) -> Document:
    data = task["data"]
    if not isinstance(data, dict):
        raise DataError(where, f"'data' is '{shown(data, repr)}'; expected {{\"text\": ...}}")
    rest, field = dict(data), _text_field(data)
    text = text_field(rest, f"{where}, data", field)
    del rest[field]
    kept = {key: value for key, value in task.items() if key not in _OF_TASK}
    id = id_of(rest)
    id = id_of(kept) if id is None else id
    annotations = _results(task, "annotations" if "annotations" in task else "completions", where)
    predictions = _results(task, "predictions", where)
    spans = (
        None
        if annotations is None
        else placed(_marked(annotations, where, remarks), text, where, remarks, without_blanks)
    )
    suggested = placed(_marked(predictions or [], where, remarks), text, where, remarks, without_blanks)
    return Document(text, id, spans, suggested, meta={**rest, KEPT: kept} if kept else rest)


def _text_field(data: dict[str, Any]) -> str:
    """``text``, or the only field that is a string."""
    strings = [name for name, value in data.items() if isinstance(value, str) and name != "id"]
    return strings[0] if "text" not in data and len(strings) == 1 else "text"


def _results(task: dict[str, Any], name: str, where: str) -> list[Any] | None:
    """Of the newest annotation, or prediction, that was not cancelled; None where there is none."""
    found = task.get(name) or []
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise DataError(where, f"'{name}' is '{shown(found, repr)}'; expected a list of objects")
    valid = [each for each in found if not each.get("was_cancelled")]
    if not valid:
        return None
    dates = [str(each.get("updated_at") or each.get("created_at") or "") for each in valid]
    newest = max(range(len(valid)), key=lambda i: (dates[i], i))
    result = valid[newest].get("result")
    if not isinstance(result, list):
        raise DataError(where, f"a 'result' in '{name}' is '{shown(result, repr)}'; expected a list")
    return result


def _marked(results: list[Any], where: str, remarks: Remarks) -> list[Marked]:
    """Those that are labels of a text."""
    marked = []
    for each in results:
        if not isinstance(each, dict):
            raise DataError(where, f"a result is '{shown(each, repr)}'; expected an object")
        if each.get("type") != "labels":
            remarks.count("result", "that are no labels of a text passed over")
            continue
        marked += _value(each.get("value"), each.get("score"), where)
    return marked


def _value(value: Any, score: Any, where: str) -> list[Marked]:
    """One for each label."""
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


def _short(task: dict[str, Any], where: str, remarks: Remarks) -> Document:
    """JSON_MIN: the data's fields, and the labels under the name that the labelling interface gives them."""
    rest = dict(task)
    text = text_field(rest, where)
    del rest["text"]
    names = [name for name, value in rest.items() if _are_labels(value)]
    if len(names) > 1:
        raise DataError(
            where, f"labels under {' and '.join(map(quoted, names))}; export it as JSON, which says which is which"
        )
    spans = None
    if names:
        marked = [each for value in rest.pop(names[0]) for each in _value(value, value.get("score"), where)]
        spans = placed(marked, text, where, remarks, without_blanks)
    return Document(text, id_of(rest), spans, meta=rest)


def _are_labels(value: Any) -> bool:
    return (
        isinstance(value, list) and bool(value) and all(isinstance(each, dict) and "labels" in each for each in value)
    )


def write_label_studio(documents: Iterable[tuple[str, Document]], stream: IO[bytes], remarks: Remarks) -> None:
    """(where, document) each, as one list: what Label Studio imports."""
    between = b"[\n"
    for _, document in documents:
        remarks.count("rejected span", "left out: Label Studio has no place for them", len(document.rejected))
        remarks.count(
            "document", "of which not all is known: Label Studio takes the rest as outside", int(document.missing)
        )
        stream.write(between + json_line(_written(document)).rstrip(b"\n"))
        between = b",\n"
    stream.write(b"\n]\n" if between == b",\n" else b"[]\n")


def _written(document: Document) -> dict[str, Any]:
    kept = document.meta.get(KEPT)
    kept = dict(kept) if isinstance(kept, dict) else {}
    data: dict[str, Any] = {"text": document.text}
    task: dict[str, Any] = {}
    if document.id is not None:
        if _NUMBER.fullmatch(document.id) and "id" not in kept:
            task["id"] = int(document.id)
        else:
            data["id"] = document.id
    data |= {key: value for key, value in document.meta.items() if key not in data and (key != KEPT or not kept)}
    task["data"] = data
    if document.spans is not None:
        task["annotations"] = [{"result": _result(document, document.spans)}]
    if document.suggested:
        task["predictions"] = [_prediction(document)]
    return {**task, **{key: value for key, value in kept.items() if key not in task and key not in _OF_TASK}}


def _prediction(document: Document) -> dict[str, Any]:
    known = [span.probability for span in document.suggested if span.probability is not None]
    found: dict[str, Any] = {"model_version": "sparsezo"}
    if len(known) == len(document.suggested):
        found["score"] = min(known)  # as sure as of the least sure, which is what a person should see first
    return {**found, "result": _result(document, document.suggested)}


def _result(document: Document, spans: tuple[Span, ...]) -> list[dict[str, Any]]:
    return [
        {
            "id": f"span{number}",
            "from_name": "label",
            "to_name": "text",
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
