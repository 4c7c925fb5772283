"""Which format a file has, by its name and its first bytes."""

from __future__ import annotations

import gzip
import json
import os

import pytest

from sparsezo.errors import DataError, UsageError
from sparsezo.tasks.chunking.io.documents import Document, Span
from sparsezo.tasks.chunking.io.formats import FORMATS, detect_format, read_documents, write_documents

LONG = "word " * 40_000  # more than is looked at
SAMPLES = [
    ("a.jsonl", '{"text": "a b", "x": 1}', "jsonl"),
    ("a", '{"id": 1, "label": [[0, 1, "X"]], "text": "a b"}', "jsonl"),
    ("a.json", '[{"text": "a b"}]', "jsonl"),
    ("a.jsonl", '{"nothing": 1}', "jsonl"),
    ("a.jsonl", '{"text": "' + LONG + '", "answer": "accept"}', "jsonl"),  # the rest is not seen
    ("a.jsonl", '{"answer": "accept", "text": "' + LONG + '"}', "prodigy"),
    ("a.jsonl", '{"text": "a b", "spans": [], "answer": "accept"}', "prodigy"),
    ("a.jsonl", '{"text": "a b", "_input_hash": 5}', "prodigy"),
    ("a.json", '[{"id": 1, "data": {"text": "a"}, "annotations": []}]', "label-studio"),
    ("a.json", '\n[\n {"data": {"text": "' + LONG + '"}, "predictions": []}]', "label-studio"),
    ("a.json", '[{"text": "a", "label": [{"start": 0, "end": 1, "labels": ["X"]}]}]', "label-studio"),
    ("a.jsonl", '{"tokens": ["a"], "ner_tags": ["O"]}', "datasets"),
    ("a.jsonl", '{"words": ["a"], "tags": [0]}', "datasets"),
    ("a.parquet", "PAR1", "datasets"),
    ("a", "PAR1", "datasets"),
    ("a.spacy", "", "spacy"),
    ("a.zip", "", "brat"),
    ("a.txt", "Ann saw [Bob].\nAnd then?\n", "text"),
    ("a.txt", "[Applause] Thank you.\n", "text"),
    ("a.txt", "{curly} words\n", "text"),
    ("a.txt", "", "text"),
    ("a.txt", "Angela Merkel\nBarack Obama\n", "text"),
    ("a.txt", "One paragraph here.\n\nAnother one is here, too.\n", "text"),
    ("a.txt", "In O\nMadrid B-LOC\n\n. O\n", "columns"),
    ("a.tsv", "In\tO\nMadrid\tB-LOC\n", "columns"),
    ("a.txt", "-DOCSTART- 7 O\n\nIn O\nMadrid B-LOC\n", "columns"),
    ("a.txt", "In\nMadrid\n\nThe\nend\n", "columns"),
    ("a.conllu", "1\tIn\tin\tADP\t_\t_\t0\t_\t_\t_\n", "columns"),
    ("a.txt", "B-NP\tw[0]=An\tpos[0]=DT\n" * 9, "crfsuite"),
    ("a.csv", "id,text\n1,some words\n", "table"),
    ("a.tsv", "id\ttext\n1\tsome words\n", "table"),
    ("a.txt", "\0\1\2", "unknown"),
]


@pytest.mark.parametrize(("name", "content", "wanted"), SAMPLES)
def test_formats_are_told(tmp_path, name, content, wanted):
    path = tmp_path / name
    path.write_text(content, "utf-8", newline="")
    assert detect_format(path) == wanted
    assert detect_format(str(path), content.encode()[: 1 << 16]) == wanted
    packed = tmp_path / (name + ".gz")
    packed.write_bytes(gzip.compress(content.encode()))
    assert detect_format(packed) == wanted


def test_bytes_that_are_no_text_are_unknown(tmp_path):
    (tmp_path / "a").write_bytes(b"caf\xe9 and more words in Latin-1")
    assert detect_format(tmp_path / "a") == "unknown"
    (tmp_path / "a").write_bytes("é".encode() * (1 << 15) + b" x" + "é".encode() * 9)
    assert detect_format(tmp_path / "a") == "text"
    (tmp_path / "a").write_bytes(b" " + "é".encode() * (1 << 16))  # cut within a character
    assert detect_format(tmp_path / "a") == "text"


def test_folders(tmp_path):
    assert detect_format(tmp_path) == "unknown"
    (tmp_path / "a.txt").write_text("x")
    assert detect_format(tmp_path) == "text"
    (tmp_path / "a.ann").write_text("")
    assert detect_format(tmp_path) == "brat"
    (tmp_path / "state.json").write_text("{}")
    assert detect_format(tmp_path) == "datasets"


def test_what_can_be_read_only_once_is_not_touched(tmp_path):
    assert detect_format("-") == "unknown"
    os.mkfifo(tmp_path / "pipe")
    assert detect_format(tmp_path / "pipe") == "unknown"
    with pytest.raises(DataError, match="no such file"):
        detect_format(tmp_path / "nowhere")


@pytest.mark.parametrize("format", FORMATS)
def test_what_is_written_is_told(tmp_path, format):
    document = Document("In Madrid", "7", (Span(3, 9, "LOC"),), tokens=((0, 2), (3, 9)))
    endings = {"spacy": ".spacy", "brat": ""}
    path = tmp_path / ("out" + endings.get(format, ".json"))
    write_documents([document], format, path)
    if format == "conll":
        path = path.rename(tmp_path / "out.txt")
    assert detect_format(path) == ("columns" if format == "conll" else format)
    assert next(read_documents(path)).spans == (Span(3, 9, "LOC"),)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.txt", "plain words.", "is plain text"),
        ("a.csv", "id,text\n", "is a table"),
        ("a.txt", "B-NP\tw[0]=An\tpos[0]=DT\n" * 9, "CRFsuite's attributes"),
        ("a", "\0", "has none of the formats jsonl, conll, brat"),
    ],
)
def test_what_has_no_spans_is_refused(tmp_path, name, content, words):
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=words):
        list(read_documents(tmp_path / name))


def test_unknown_names_of_formats(tmp_path):
    with pytest.raises(UsageError, match="`format` xml: of documents with spans choose one of jsonl, conll"):
        read_documents(tmp_path / "x", "xml")
    with pytest.raises(UsageError, match="`format` columns: choose one of jsonl, conll"):
        write_documents([], "columns", tmp_path / "x")
    (tmp_path / "folder").mkdir()
    with pytest.raises(DataError, match="is a folder"):
        list(read_documents(tmp_path / "folder", "jsonl"))


def test_an_open_stream(put):
    path = put("x", json.dumps({"text": "a"}))
    with open(path, "rb") as stream:
        assert [each.text for each in read_documents("-", stream=stream)] == ["a"]
        assert not stream.closed
