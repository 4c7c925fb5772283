"""JSON of ours, doccano's, Prodigy's and Label Studio's, as these tools write it."""

from __future__ import annotations

import io
import json

import pytest

from sparsezo import messages
from sparsezo.errors import DataError
from sparsezo.tasks.chunking.io.documents import Document, Span
from sparsezo.tasks.chunking.io.formats import read_documents, write_documents

LOC = (Span(3, 9, "LOC"),)


@pytest.fixture
def read(tmp_path):
    """Objects as lines (several arguments) or as a list (one list): (documents, remarks)."""

    def reading(*objects, format=None):
        path = tmp_path / "x.json"
        as_list = len(objects) == 1 and isinstance(objects[0], list)
        path.write_text(json.dumps(objects[0]) if as_list else "\n".join(map(json.dumps, objects)), "utf-8")
        with messages.gathered() as remarks:
            documents = list(read_documents(path, format))
        return documents, [remark.removeprefix(f"{path}: ") for remark in remarks]

    return reading


def written(format, *documents, **options):
    out = io.BytesIO()
    write_documents(documents, format, out, **options)
    return [json.loads(line) for line in out.getvalue().splitlines()]


# ---- jsonl ----


@pytest.mark.parametrize(
    "labels",
    [
        {"spans": [{"start": 3, "end": 9, "label": "LOC"}]},
        {"spans": [{"start": 3, "end": 9, "label": "LOC", "text": "Madrid"}]},
        {"spans": [[3, 9, "LOC"]]},
        {"entities": [[3, 9, "LOC"]]},
        {"entities": [{"id": 4, "start_offset": 3, "end_offset": 9, "label": "LOC"}]},  # doccano, with relations
        {"label": [[3, 9, "LOC"]]},  # doccano
        {"labels": [[3, 9, "LOC"]]},
    ],
)
def test_spans_under_many_names(read, labels):
    documents, remarks = read({"text": "In Madrid.", "n": 1.5, **labels, "id": 12})
    assert documents == [Document("In Madrid.", "12", LOC, meta={"n": 1.5})]
    assert remarks == []


def test_no_spans_and_none_are_different(read):
    documents, _ = read(
        {"text": "a"}, {"text": "a", "spans": None}, {"text": "a", "spans": []}, {"text": "a", "label": []}
    )
    assert [each.spans for each in documents] == [None, None, (), ()]
    assert read({"text": "a", "label": "sport", "labels": ["x"], "entities": 5, "id": [1]})[0][0] == Document(
        "a", meta={"label": "sport", "labels": ["x"], "entities": 5, "id": [1]}
    )


def test_all_of_a_document_in_one_line(read):
    suggested, rejected = (Span(0, 2, "X", 0.25),), (Span(9, 10, "Y"),)
    tokens, sentences = ((0, 2), (3, 9)), (0, 1, 2)
    whole = Document("In Madrid.", "7", LOC, suggested, rejected, True, tokens, sentences, {"n": [None]})
    (line,) = written("jsonl", whole, tokens=True)
    assert line == {
        "id": "7",
        "text": "In Madrid.",
        "spans": [{"start": 3, "end": 9, "label": "LOC"}],
        "suggested": [{"start": 0, "end": 2, "label": "X", "probability": 0.25}],
        "rejected": [{"start": 9, "end": 10, "label": "Y"}],
        "missing": True,
        "tokens": [[0, 2], [3, 9]],
        "sentences": [0, 1, 2],
        "n": [None],
    }
    assert read(line)[0] == [whole]
    assert "tokens" not in written("jsonl", whole)[0]
    assert written("jsonl", Document("a"))[0] == {"text": "a"}


def test_lines_are_lines_for_everybody():
    out = io.StringIO()
    write_documents([Document("a\u2028b\x85c\u2029d\né😀", "1")], "jsonl", out)
    assert len(out.getvalue().splitlines()) == 1
    assert "é😀" in out.getvalue()
    assert json.loads(out.getvalue())["text"] == "a\u2028b\x85c\u2029d\né😀"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ({"txt": "a", "n": 1}, "x.json:2: has no 'text'; it has 'txt', 'n'"),
        ({"text": 5}, "x.json:2: 'text' is 5; a document's text is a string"),
        (
            {"text": "In Madrid.", "spans": [[3, 11, "LOC"]]},
            r"x.json:2: span 3 to 11 \(LOC\) of a text of 10 characters",
        ),
        ({"text": "In Madrid.", "spans": [[3, 3, "LOC"]]}, "span 3 to 3"),
        ({"text": "In Madrid.", "spans": [[-1, 3, "LOC"]]}, "span -1 to 3"),
        ({"text": "a", "spans": [{"start": 0, "end": 1}]}, "a span's label is None"),
        ({"text": "a", "spans": [{"start": "0", "end": 1, "label": "X"}]}, "a span's start is '0'"),
        ({"text": "a", "spans": [{"start": True, "end": 1, "label": "X"}]}, "a span's start is True"),
        ({"text": "a", "spans": [{"start": 0, "end": 1, "label": "X", "probability": 1.5}]}, "probability is 1.5"),
        ({"text": "a", "spans": 7}, "spans are '7'; expected a list"),
        ({"text": "a", "spans": ["x"]}, "a span is ''x''"),
        (
            {"text": "In Madrid.", "spans": [{"start": 2, "end": 8, "label": "LOC", "text": "Madrid"}]},
            r"span 2 to 8 \(LOC\) is ' Madri' in the text, and 'Madrid' by its own words",
        ),
        ({"text": "ab", "tokens": [[0, 1], [0, 2]]}, "token 0 to 2: tokens come one after the other"),
        ({"text": "ab", "tokens": [[0, 2]], "sentences": [0, 2]}, r"sentences \[0, 2\]: .*rising from 0 to 1"),
        ({"text": "a\ud800"}, "half of a surrogate pair"),
        ({"text": "a", "n": ["\udc00"]}, "half of a surrogate pair"),
        ({"text": "a", "spans": [[0, 1, "X"]], "answer": "reject"}, "`format` prodigy reads it"),
        ([], "is no object"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(read, line, words):
    with pytest.raises(DataError, match=words):
        read({"text": "a"}, line, format="jsonl")


def test_no_json(tmp_path):
    (tmp_path / "x.jsonl").write_text('{"text": "a"}\n{"text": "b"\n')
    with pytest.raises(DataError, match=r"x.jsonl:2: .* is not JSON"):
        list(read_documents(tmp_path / "x.jsonl"))


def test_offsets_in_code_units_are_understood(read):
    """JavaScript counts an emoji as two."""
    line = {"text": "😀 In Madrid", "spans": [{"start": 6, "end": 12, "label": "LOC", "text": "Madrid"}, [0, 2, "E"]]}
    documents, remarks = read(line)
    assert documents[0].spans == (Span(5, 11, "LOC"), Span(0, 1, "E"))
    assert remarks == ["1 document with offsets in UTF-16 code units, which were made code points"]
    assert read({"text": "😀 In Madrid", "spans": [[6, 12, "LOC"]]})[0][0].spans == (
        Span(5, 11, "LOC"),
    )  # past the end
    documents, remarks = read({"text": "😀 In Madrid", "spans": [[5, 11, "LOC"]]})
    assert (documents[0].spans, remarks) == ((Span(5, 11, "LOC"),), [])
    with pytest.raises(DataError, match="span 1 to 12"):  # within the emoji
        read({"text": "😀 In Madrid", "spans": [[1, 12, "LOC"]]})


# ---- Prodigy ----

TOKENS = [
    {"text": "In", "start": 0, "end": 2, "id": 0, "ws": True},
    {"text": "New", "start": 3, "end": 6, "id": 1, "ws": True},
    {"text": "York", "start": 7, "end": 11, "id": 2, "ws": False},
    {"text": "\n", "start": 11, "end": 12, "id": 3, "ws": False},
]
TASK = {
    "text": "In New York\n",
    "meta": {"source": "news"},
    "_input_hash": -5,
    "_view_id": "ner_manual",
    "tokens": TOKENS,
    "spans": [{"start": 3, "end": 11, "token_start": 1, "token_end": 2, "label": "LOC"}],
    "answer": "accept",
}
YORK = (Span(3, 11, "LOC"),)


def test_prodigy_answers(read):
    documents, remarks = read(
        TASK, {**TASK, "text": TASK["text"], "answer": "ignore"}, {**TASK, "id": 2, "answer": "reject"}
    )
    accepted, rejected = documents
    assert accepted == Document(
        "In New York\n",
        spans=YORK,
        missing=True,  # what no span covers: nobody said
        tokens=((0, 2), (3, 6), (7, 11)),
        meta={"meta": {"source": "news"}, "_input_hash": -5, "_view_id": "ner_manual"},
    )
    assert (rejected.spans, rejected.rejected, rejected.missing) == ((), YORK, True)
    assert remarks[0].startswith("2 documents of Prodigy: what no span covers is taken as unknown")
    assert remarks[1] == "1 ignored document passed over"


def test_a_task_of_prodigy_without_an_answer_has_suggestions(read):
    task = {key: value for key, value in TASK.items() if key != "answer"}
    documents, remarks = read(task)
    assert (documents[0].spans, documents[0].suggested, documents[0].missing) == (None, YORK, False)
    assert remarks == []


def test_prodigy_spans_by_tokens(read):
    """The last token is the span's own."""
    span = {"token_start": 1, "token_end": 2, "label": "LOC"}
    assert read({**TASK, "spans": [span]})[0][0].spans == YORK
    with pytest.raises(DataError, match="a span's start is None"):
        read({**TASK, "spans": [{**span, "token_end": 4}]})


def test_a_rejected_whole_says_nothing_of_its_spans(read):
    spans = [*TASK["spans"], {"start": 0, "end": 2, "label": "X"}]
    documents, remarks = read({**TASK, "spans": spans, "answer": "reject"})
    assert (documents[0].spans, documents[0].rejected, documents[0].missing) == ((), (), True)
    assert any("with several spans: nobody can say which are wrong" in remark for remark in remarks)


def test_prodigy_is_written_as_prodigy_does():
    document = Document(
        "In New York\n", spans=YORK, tokens=((0, 2), (3, 6), (7, 11)), meta={"meta": {"source": "news"}}
    )
    (line,) = written("prodigy", document)
    assert line["tokens"] == TOKENS
    assert line["spans"] == [{"start": 3, "end": 11, "label": "LOC", "token_start": 1, "token_end": 2}]
    assert (line["answer"], line["meta"], line["missing"]) == ("accept", {"source": "news"}, False)


def test_tokens_are_cut_where_a_span_ends_within():
    document = Document("Madrid's", spans=(Span(0, 6, "LOC"),), tokens=((0, 8),))
    (line,) = written("prodigy", document)
    assert [each["text"] for each in line["tokens"]] == ["Madrid", "'s"]
    assert line["spans"][0]["token_end"] == 0


def test_rejected_spans_come_back_to_their_document(read):
    document = Document("a b c", "7", (Span(0, 1, "X"),), rejected=(Span(2, 3, "X"), Span(4, 5, "X")))
    lines = written("prodigy", document, document)
    assert [line["answer"] for line in lines] == ["accept", "reject", "reject"] * 2
    assert read(*lines)[0] == [document, document]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"answer": "maybe"}, "x.json:1: the answer is 'maybe'"),
        ({"tokens": "x"}, "'tokens' is ''x''; expected a list of objects"),
        ({"spans": [3]}, "'spans' is .* expected a list of objects"),
        ({"tokens": [{**TOKENS[0], "text": "on"}]}, "is 'In' in the text, and 'on' by its own words"),
        ({"tokens": [TOKENS[1], TOKENS[0]]}, "token 0 to 2: tokens come one after the other"),
    ],
)
def test_what_is_wrong_in_prodigys_lines(read, change, words):
    with pytest.raises(DataError, match=words):
        read({**TASK, **change}, format="prodigy")


# ---- Label Studio ----


def region(start, end, text, *labels, **more):
    value = {"start": start, "end": end, "text": text, "labels": list(labels)}
    return {"id": "x", "from_name": "label", "to_name": "text", "type": "labels", "value": value, **more}


def annotation(*results, **more):
    return {"id": 1, "completed_by": 1, "result": list(results), "was_cancelled": False, **more}


def test_label_studio_export(read):
    task = {
        "id": 17,
        "annotations": [
            annotation(region(0, 2, "In", "X"), created_at="2024-05-01T10:00:00Z", updated_at="2024-05-03T10:00:00Z"),
            annotation(
                region(3, 9, "Madrid", "LOC"), created_at="2024-05-02T10:00:00Z", updated_at="2024-05-04T10:00:00Z"
            ),
            annotation(created_at="2024-05-09T10:00:00Z", was_cancelled=True),
        ],
        "predictions": [{"model_version": "m", "score": 0.5, "result": [region(3, 9, "Madrid", "ORG", score=0.5)]}],
        "data": {"text": "In Madrid.", "url": "u"},
        "project": 3,
    }
    documents, remarks = read([task])
    assert documents == [
        Document(
            "In Madrid.", "17", LOC, (Span(3, 9, "ORG", 0.5),), meta={"url": "u", "label_studio": {"project": 3}}
        )
    ]  # fmt: skip
    assert remarks == []
    assert read(task)[0] == documents  # a task a line
    cancelled = {**task, "annotations": task["annotations"][2:]}
    assert read([cancelled])[0][0].spans is None
    assert read([{**task, "annotations": [annotation()]}])[0][0].spans == ()


def test_label_studio_short_export(read):
    task = {
        "id": 3,
        "text": "In Madrid.",
        "label": [{"start": 3, "end": 9, "text": "Madrid", "labels": ["LOC", "CITY"]}],
    }
    documents, _ = read([{**task, "annotator": 1}])
    assert documents == [Document("In Madrid.", "3", (*LOC, Span(3, 9, "CITY")), meta={"annotator": 1})]


def test_label_studios_text_may_have_another_name(read):
    data = {"article": "In Madrid.", "n": 5}
    documents, _ = read([{"data": data, "annotations": [annotation(region(3, 9, "Madrid", "LOC"))]}])
    assert documents == [Document("In Madrid.", None, LOC, meta={"n": 5})]
    with pytest.raises(DataError, match="data: has no 'text'; it has 'a', 'b'"):
        read([{"data": {"a": "x", "b": "y"}, "annotations": []}])


def test_label_studios_old_and_new_offsets(read):
    """Before 2022 in UTF-16 code units, since then in code points: the spans' own texts tell."""
    text = "👋🏽 Hola, soy Roberto Jr"
    for start, end in ((15, 22), (13, 20)):
        task = {"data": {"text": text}, "annotations": [annotation(region(start, end, "Roberto", "PER"))]}
        documents, remarks = read([task])
        (span,) = documents[0].spans
        assert text[span.start : span.end] == "Roberto"
        assert bool(remarks) == (start == 15)
    assert written_offsets(text) == (13, 20)


def written_offsets(text):
    out = io.BytesIO()
    write_documents([Document(text, spans=(Span(13, 20, "PER"),))], "label-studio", out)
    value = json.loads(out.getvalue())[0]["annotations"][0]["result"][0]["value"]
    assert value["text"] == "Roberto"
    return value["start"], value["end"]


def test_label_studio_shows_line_ends_in_its_own_way(read):
    task = {"data": {"text": "New\r\nYork"}, "annotations": [annotation(region(0, 9, "New\\nYork", "LOC"))]}
    assert read([task])[0][0].spans == (Span(0, 9, "LOC"),)
    with pytest.raises(DataError, match="object 1: span 0 to 8"):
        read([{**task, "annotations": [annotation(region(0, 8, "New\\nYork", "LOC"))]}])


def test_what_else_label_studio_has_is_counted(read):
    choice = {"type": "choices", "value": {"choices": ["x"]}}
    documents, remarks = read([{"data": {"text": "In Madrid."}, "annotations": [annotation(choice, choice)]}])
    assert documents[0].spans == ()
    assert remarks == ["2 results that are no labels of a text passed over"]


def test_label_studio_is_written_to_be_imported():
    out = io.StringIO()
    documents = [
        Document("In Madrid.", "17", LOC, (Span(3, 9, "LOC", 0.5), Span(0, 2, "X", 0.25)), meta={"url": "u"}),
        Document("In Madrid.", "a/17"),
        Document("x", "017"),
    ]
    write_documents(documents, "label-studio", out)
    first, second, third = json.loads(out.getvalue())
    assert (first["id"], first["data"]) == (17, {"text": "In Madrid.", "url": "u"})
    assert first["annotations"][0]["result"][0] == {
        "id": "span1",
        "from_name": "label",
        "to_name": "text",
        "type": "labels",
        "value": {"start": 3, "end": 9, "text": "Madrid", "labels": ["LOC"]},
    }
    (prediction,) = first["predictions"]
    assert (prediction["model_version"], prediction["score"]) == ("sparsezo", 0.25)
    assert [each["score"] for each in prediction["result"]] == [0.5, 0.25]
    assert second == {"data": {"text": "In Madrid.", "id": "a/17"}}
    assert third["data"]["id"] == "017"
    out = io.StringIO()
    write_documents([], "label-studio", out)
    assert json.loads(out.getvalue()) == []


@pytest.mark.parametrize(
    ("task", "words"),
    [
        ({"data": 5}, "object 1: 'data' is '5'"),
        ({"data": {"text": "a"}, "annotations": 5}, "'annotations' is '5'"),
        ({"data": {"text": "a"}, "annotations": [{"result": 5}]}, "a 'result' in 'annotations' is '5'"),
        ({"data": {"text": "a"}, "annotations": [{"result": [5]}]}, "a result is '5'"),
        ({"data": {"text": "a"}, "annotations": [{"result": [{"type": "labels"}]}]}, "a span is 'None'"),
        ({"data": {"text": "a"}, "annotations": [annotation(region(0, 1, "a"))]}, r"a span's labels are '\[\]'"),
        ({"data": {"text": "a"}, "annotations": [annotation(region("/p[1]", 1, "a", "X"))]}, "a span's start is '/p"),
        (
            {
                "text": "ab",
                "one": [{"start": 0, "end": 1, "labels": ["X"]}],
                "two": [{"start": 0, "end": 1, "labels": ["X"]}],
            },
            "labels under one and two",
        ),
    ],
)
def test_what_is_wrong_in_label_studios_tasks(read, task, words):
    with pytest.raises(DataError, match=words):
        read([task], format="label-studio")
