"""Tables with a header and JSON lines: columns found or named, every mistake with its file and line."""

from __future__ import annotations

import csv
import gzip
import io
import json
import lzma
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsezo import notes
from sparsezo.errors import DataError
from sparsezo.storage import limits
from sparsezo.tasks.text.documents import Documents, detect_format, read_documents
from sparsezo.tasks.text.tables import Columns

CSV = 'id,Label,text\n1,rec,"the puck, the goal"\n2,sci,"a ""cell""\nin\tspace"\n\n3, rec ,\n'
TEXTS, LABELS = ["the puck, the goal", 'a "cell" in space', ""], ["rec", "sci", "rec"]


def put(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    content = text.encode() if isinstance(text, str) else text
    packed = {".gz": gzip.compress, ".xz": lzma.compress}.get(path.suffix, bytes)
    path.write_bytes(packed(content))
    return path


def found(documents: Documents) -> tuple[list[str] | None, list[str] | None, list[int]]:
    return documents.labels, documents.texts, documents.lines.tolist()


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.CSV", "a.csv.xz"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_table(tmp_path: Path, name: str, end: str) -> None:
    path = put(tmp_path, name, "\ufeff" + CSV.replace("\n", end))
    documents = read_documents(path)
    assert found(documents) == (LABELS, TEXTS, [2, 3, 6])
    assert documents.where(2) == f"{path}:6"
    assert found(read_documents(path, labelled=False)) == (None, TEXTS, [2, 3, 6])


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_the_header_tells_what_parts_columns(tmp_path: Path, delimiter: str) -> None:
    text = f"topic{delimiter}body\nrec{delimiter}the puck\n"
    for name, options in [("a.csv", {}), ("a.txt", {"text_column": "body"}), ("a", {"label_column": "1"})]:
        assert found(read_documents(put(tmp_path, name, text), **options)) == (["rec"], ["the puck"], [2])


def test_columns_by_name_and_number(tmp_path: Path) -> None:
    path = put(tmp_path, "a.tsv", "title,\tkind\tText\tlabel\nt\tk\tx\tl\n")  # .tsv: by TABs, whatever commas say
    for text, label, expected in [
        ("title,", "kind", ("k", "t")),
        ("3", "1", ("t", "x")),
        (None, "2", ("k", "x")),
        ("kind", None, ("l", "k")),
    ]:
        documents = read_documents(path, text_column=text, label_column=label)
        assert (documents.labels, documents.texts) == ([expected[0]], [expected[1]])


@pytest.mark.parametrize("header", ["label\ttext", "Text\tid\tCATEGORY", "sentence,label", '"body";"class"'])
def test_a_first_line_that_names_both_columns_is_a_header(
    tmp_path: Path, header: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tsv with a header would else have a class called 'label'."""
    said: list[str] = []
    monkeypatch.setattr(notes, "_sayer", said.append)
    delimiter = next(c for c in "\t,;" if c in header)
    row = delimiter.join(["x"] * len(header.split(delimiter)))
    path = put(tmp_path, "a.tsv" if delimiter == "\t" else "a.txt", f"{header}\n{row}\n")
    assert (read_documents(path).labels, len(said)) == (["x"], 1)
    assert "its first line names columns, so it is read as csv; `format` tsv" in said[0]
    if delimiter == "\t":
        assert len(read_documents(path, "tsv")) == 2


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        (
            "a,b\nx,y\n",
            1,
            "no column is called text, sentence, document, body, content; there are a, b; name one with `text_column`",
        ),
        (
            "text,b\nx,y\n",
            1,
            "no column is called label, class, category, target, topic; there are text, b; name one with `label_",
        ),
        ("text,label,text\nx,y,z\n", 1, "2 columns are called 'text'; name one by its number with `text_column`"),
        ("\n\ntext,label\nx,y\n\nx\n", 6, "1 columns, but the header has 2"),
        ("text,label\nx,y,z\n", 2, "3 columns, but the header has 2; quote a text that has a delimiter in it"),
        ('text,label\n"a\nb",x\nx, \n', 4, "the label is empty"),
        ('text,label\n"a\nb",x\n"x,y\nz\n', 4, "a quote is opened and not closed; write a quote in a quoted field twi"),
        ('text,label\n"a" b,x\n', 2, "the row is not CSV"),
        ("text,label\nx\0y,z\n", 2, "a NUL character"),
        (b"text,label\nx,y\n\xff,y\n", 3, "is not UTF-8 text"),
        ("text,label\rx,y\r", 1, "the row is not CSV"),
    ],
)
def test_bad_tables(tmp_path: Path, text: str | bytes, line: int, what: str) -> None:
    path = put(tmp_path, "a.csv", text)
    with pytest.raises(DataError) as caught:
        read_documents(path)
    assert str(caught.value).startswith(f"{path}:{line}: {what}")


@pytest.mark.parametrize("text", ["", "text,label\n", "\n"])
def test_a_table_without_documents(tmp_path: Path, text: str) -> None:
    with pytest.raises(DataError, match=r"a.csv: is empty; a file of documents has at least one"):
        read_documents(put(tmp_path, "a.csv", text))


def test_columns_that_are_not_there(tmp_path: Path) -> None:
    path = put(tmp_path, "a.csv", "text,label\nx,y\n")
    for column in ("body", "3", "0", "²", "9" * 5000, "-1"):
        with pytest.raises(DataError, match=r"a.csv:1: no column is called '.*'; there are text, label; name one w"):
            read_documents(path, text_column=column)


def test_long_fields_and_quotes_that_swallow_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The csv module stops at 128 KB; the limit is put back, for it is all its users'."""
    before = csv.field_size_limit()
    long = "word " * 100_000
    assert read_documents(put(tmp_path, "a.csv", f"text,label\n{long},x\n")).texts == [long]
    monkeypatch.setattr(limits, "LINE", 1 << 20)
    path = put(tmp_path, "a.csv", 'text,label\na,x\n"' + "a,x\n" * 600_000)
    with pytest.raises(DataError, match=r"a.csv:3: a field of more than 1 MB: is a quote not closed\?"):
        read_documents(path)
    with limits.insisting(), pytest.raises(DataError, match=r"a.csv:3: a quote is opened and not closed"):
        read_documents(path)
    assert csv.field_size_limit() == before


CELL = st.text(st.sampled_from('ab"\n\t,; é'), max_size=8)


@settings(max_examples=100, deadline=None)
@given(rows=st.lists(st.tuples(CELL, CELL), min_size=1, max_size=5), dialect=st.sampled_from(["excel", "unix"]))
def test_what_csv_writes_is_read(tmp_path_factory: pytest.TempPathFactory, rows: list[Any], dialect: str) -> None:
    path = tmp_path_factory.getbasetemp() / "round.csv"
    out = io.StringIO()
    writer = csv.writer(out, dialect)
    writer.writerow(["text", "label"])
    begins = []
    for text, label in rows:
        begins.append(out.getvalue().count("\n") + 1)
        writer.writerow([text, f"{label}x"])
    path.write_bytes(out.getvalue().encode())
    labels = [f"{label}x".replace("\n", " ").replace("\t", " ").strip() for _, label in rows]
    texts = [text.replace("\n", " ").replace("\t", " ") for text, _ in rows]
    assert found(read_documents(path)) == (labels, texts, begins)


# JSON lines

JSONL = '{"id": 7, "Body": "the puck\\nand \\u00e9", "topic": "rec"}\n\n{"topic": 3, "Body": "", "x": [1]}\r\n'


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.txt", "a.json.xz"])
def test_json_lines(tmp_path: Path, name: str) -> None:
    path = put(tmp_path, name, "\ufeff" + JSONL)
    assert found(read_documents(path)) == (["rec", "3"], ["the puck and é", ""], [1, 3])
    assert found(read_documents(path, labelled=False)) == (None, ["the puck and é", ""], [1, 3])


def test_json_keys_and_labels(tmp_path: Path) -> None:
    values = ["rec", 3, -12, True, False, " sci "]
    lines = "".join(json.dumps({"2": f"t{k}", "y": value}) + "\n" for k, value in enumerate(values))
    path = put(tmp_path, "a.dat", lines)
    documents = read_documents(path, text_column="2", label_column="y")
    assert documents.labels == ["rec", "3", "-12", "true", "false", "sci"]
    assert documents.texts == [f"t{k}" for k in range(6)]


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("{", "'{' is not JSON"),
        ("[1]", "a list, not an object; write one object a line"),
        ("3", "a number, not an object"),
        ("null", "null, not an object"),
        ('{"text": "a"}', "has no 'label'; it has text"),
        ("{}", "has no 'text'; it has nothing"),
        ('{"text": 3, "label": "a"}', "'text' is a number; a document's text is a string"),
        ('{"text": null, "label": "a"}', "'text' is null; a document's text is a string"),
        ('{"text": ["a"], "label": "a"}', "'text' is a list; a document's text is a string"),
        ('{"text": "a", "label": {}}', "'label' is an object; a label is a string, a whole number, true or false"),
        ('{"text": "a", "label": 1.5}', "'label' is a number; a label is a string, a whole number"),
        ('{"text": "a", "label": null}', "'label' is null; a label is a string"),
        ('{"text": "a", "label": " "}', "the label is empty"),
        ('{"text": "\\ud800", "label": "a"}', "half of a surrogate pair"),
        ('{"text": "a", "label": "\\udfff"}', "half of a surrogate pair"),
        ('{"text": "a", "label": ' + "7" * 5000 + "}", '\'{"text": "a", "label": 777'),
        ('{"text": ' + "[" * 100_000, '\'{"text": [[[['),
    ],
)
def test_bad_json_lines(tmp_path: Path, line: str, what: str) -> None:
    path = put(tmp_path, "a.jsonl", f'{{"text": "a", "label": "b"}}\n\n{line}\n')
    with pytest.raises(DataError) as caught:
        read_documents(path)
    assert str(caught.value).startswith(f"{path}:3: {what}")


def test_json_columns_that_are_not_there(tmp_path: Path) -> None:
    path = put(tmp_path, "a.jsonl", '{"a": "x", "label": "y"}\n')
    with pytest.raises(DataError, match=r"a.jsonl:1: no column is called text, .*; there are a, label; name one with"):
        read_documents(path)
    with pytest.raises(DataError, match=r"a.jsonl:1: has no 'body'; it has a, label"):
        read_documents(path, text_column="body")
    with pytest.raises(DataError, match=r"a.json: is a JSON list; write its objects one a line"):
        read_documents(put(tmp_path, "a.json", '[{"text": "x"}]'), labelled=False)


@pytest.mark.parametrize(
    ("head", "name", "columns", "format"),
    [
        ("{a} brace\tof words\n", "a.tsv", Columns(), "tsv"),
        ("a, b\n", "a.txt", Columns(), "text"),
        ("1 1:2\n", "a.csv", Columns(), "csv"),
        ("1 1:2\n", "a", Columns(label="1"), "csv"),
        ("{}\n", "a", Columns(text="t"), "jsonl"),
        ("x\n", "a.jsonl.gz", Columns(), "jsonl"),
        ("\n\n", "a.txt", Columns(), "text"),
    ],
)
def test_formats_are_told_apart(head: str, name: str, columns: Columns, format: str) -> None:
    assert detect_format(name, head.encode(), columns) == format
