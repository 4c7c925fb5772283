"""Damaged files of documents with spans: refused in one line, or read as a plain reader of the format reads them."""

from __future__ import annotations

import io
import itertools
import json
import re

import pytest
from delivery import agree, delivered, plain_lines
from mutations import Anything, cases, damaged, damaged_json, damaged_lines, damaged_text, endure, in_file

from sparsezo import messages
from sparsezo.tasks.chunking.io.documents import Document, Span
from sparsezo.tasks.chunking.io.formats import detect_format, read_documents, write_documents

TEXT = "😀 Ana  viu\r\nSão Paulo\u0301's\tmar."
TOKENS = ((0, 1), (2, 5), (7, 10), (12, 15), (16, 22), (22, 24), (25, 28), (28, 29))
WHOLE = Document(TEXT, "7", (Span(2, 5, "PER", 0.75), Span(12, 22, "LOC")), tokens=TOKENS, meta={"n": 17})
SECOND = Document("Ana", "8", (), suggested=(Span(0, 3, "PER", 0.5),))


def as_bytes(format, *documents):
    out = io.BytesIO()
    with messages.gathered():
        write_documents(documents, format, out, tokens=True)
    return out.getvalue()


def read(path, format):
    return [summary(each) for each in read_documents(path, format)]


def summary(document):
    return (
        document.text,
        document.id,
        *(None if spans is None else list(map(plain, spans)) for spans in (document.spans, document.suggested)),
        list(map(plain, document.rejected)),
        document.missing,
    )


def plain(span):
    return span.start, span.end, span.label, span.probability


# ---- what a plain reader does ----


def require(condition, why="not as it should be"):
    if not condition:
        raise ValueError(why)
    return condition


def objects(data):
    """JSON, a list or an object a line; with no half of a character in it."""
    text = data.decode("utf-8").removeprefix("\ufeff")
    try:
        if text.lstrip(" \t\n\r\v\f").startswith("["):
            found = json.loads(text)
        else:
            found = [json.loads(line) for line in plain_lines(data) if line and not line.isspace()]
        json.dumps(found, ensure_ascii=False).encode("utf-8")
    except RecursionError as error:
        raise ValueError("too deep") from error
    require(all(isinstance(each, dict) for each in found))
    return found


def put(text, marked, form=lambda own: own):
    """Spans (start, end, label, probability, own text): code points or, where these do not fit, UTF-16 code units."""
    for start, end, label, probability, own in marked:
        require(type(start) is type(end) is int and isinstance(label, str) and (own is None or isinstance(own, str)))
        require(probability is None or (type(probability) in (int, float) and 0 <= probability <= 1))
    units = text.encode("utf-16-le")
    for shape in (lambda own: own, form):
        for wide in (False, True):
            placed = []
            for start, end, label, probability, own in marked:
                if wide:
                    try:
                        require(0 <= start <= end <= len(units) // 2)
                        start, end = (len(units[: 2 * at].decode("utf-16-le")) for at in (start, end))
                    except ValueError:
                        break
                if not (0 <= start < end <= len(text) and (own is None or shape(text[start:end]) == shape(own))):
                    break
                placed.append((start, end, label, None if probability is None else float(probability)))
            else:
                return placed
    raise ValueError("spans do not fit")


def text_of(found):
    require(isinstance(found.get("text"), str))
    return found["text"]


def id_of(found):
    return str(found["id"]) if isinstance(found.get("id"), str) or type(found.get("id")) is int else None


def mark(each):
    if isinstance(each, list):
        require(len(each) == 3 and type(each[0]) is type(each[1]) is int)
        return (*each, None, None)
    require(isinstance(each, dict))
    own = each.get("text")
    return (
        each.get("start", each.get("start_offset")),
        each.get("end", each.get("end_offset")),
        each.get("label"),
        each.get("probability"),
        own if isinstance(own, str) else None,
    )


def is_span(each):
    if isinstance(each, dict):
        return "start" in each or "start_offset" in each
    return isinstance(each, list) and len(each) == 3 and type(each[0]) is type(each[1]) is int


def check_tokens(found, text):
    tokens, sentences = found.get("tokens"), found.get("sentences")
    pairs = isinstance(tokens, list) and all(
        isinstance(each, list) and len(each) == 2 and all(type(at) is int for at in each) for each in tokens
    )
    if pairs:
        ends = [0, *(at for each in tokens for at in each)]
        require(all(a <= b for a, b in itertools.pairwise(ends)) and ends[-1] <= len(text))
        require(all(a < b for a, b in tokens))
    if pairs and isinstance(sentences, list) and all(type(each) is int for each in sentences):
        require(sentences and sentences[0] == 0 and sentences[-1] == len(tokens))
        require(all(a < b for a, b in itertools.pairwise(sentences)))


def plain_jsonl(data):
    documents = []
    for found in objects(data):
        text = text_of(found)
        require(found.get("answer") not in ("reject", "ignore"))
        check_tokens(found, text)
        names = [name for name in ("entities", "label", "labels") if isinstance(found.get(name), list)]
        names = [name for name in names if all(map(is_span, found[name]))]
        spans = found["spans"] if "spans" in found else found[names[0]] if names else None
        lists = [spans or [] if spans is None else spans, found.get("suggested") or [], found.get("rejected") or []]
        require(all(isinstance(each, list) for each in lists))
        own, suggested, rejected = ([mark(each) for each in some] for some in lists)
        placed = put(text, own + suggested + rejected)
        a, b = len(own), len(own) + len(suggested)
        missing = found.get("missing") is True
        documents.append((text, id_of(found), None if spans is None else placed[:a], placed[a:b], placed[b:], missing))
    return documents


JSONL = as_bytes("jsonl", WHOLE, SECOND) + b'{"text": "a b", "label": [[0, 1, "X"], [2, 3, "Y"]], "id": 12345}\r\n\n'
PRODIGY = as_bytes("prodigy", WHOLE, SECOND, Document("Ana", "8", rejected=(Span(0, 3, "X"),)))
MINIMAL = [{"id": 1, "text": "😀 a b", "label": [{"start": 3, "end": 4, "text": "a", "labels": ["X"]}]}]
LABEL_STUDIO = json.dumps([*json.loads(as_bytes("label-studio", WHOLE, SECOND)), *MINIMAL]).encode()
ROWS = b'{"id": "a", "tokens": ["In", "New", "York"], "ner_tags": ["O", "B-LOC", "I-LOC"], "n": 5}'


@pytest.mark.parametrize("n", cases(130))
def test_damaged_json(n, tmp_path):
    agree(delivered(tmp_path / "x.json", lambda path: read(path, "jsonl")), JSONL, n, plain_jsonl, damaged_lines)


@pytest.mark.parametrize("n", cases(130))
@pytest.mark.parametrize("format", ["prodigy", "label-studio"])
def test_damaged_json_of_tools(n, format, tmp_path):
    sample, damage = {"prodigy": (PRODIGY, damaged_lines), "label-studio": (LABEL_STUDIO, damaged_json)}[format]
    reading = delivered(tmp_path / "x.json", lambda path: sound(path, format))
    endure(reading, sample, damage, n, reference=lambda data: Anything)


# ---- rows of tokens ----


@pytest.mark.parametrize("n", cases(100))
def test_damaged_rows(n, tmp_path):
    reading = delivered(tmp_path / "x.jsonl", lambda path: sound(path, "datasets"))
    endure(reading, ROWS, damaged_json, n, reference=lambda data: Anything)


# ---- brat ----

ANN = (
    "T1\tPER 2 5\tAna\nT2\tLOC 12 22\tSão Paulo\u0301\n#1\tAnnotatorNotes T1\t0.75\n\nR1\tNear Arg1:T1 Arg2:T2\r\n"
    "T3\tX 2 5;7 10\tAna viu\nT4\tY 7 15\tviu  São\n#2\tAnnotatorNotes T4\t1e-05\n"
).encode()


def plain_brat(data):
    marked, notes_of = [], {}
    form = lambda own: own.replace("\r", " ").replace("\n", " ")  # noqa: E731
    for line in data.decode("utf-8").removeprefix("\ufeff").split("\n"):
        line = line.rstrip("\r")
        span = re.fullmatch(r"(T\S*)\t(\S+) (-?[0-9]{1,15} [-0-9; ]*)(?:\t(.*))?", line, re.DOTALL | re.ASCII)
        note = re.fullmatch(r"#\S*\t\S+ (T\S+)\t([0-9](?:\.[0-9]+)?(?:[eE]-?[0-9]+)?)\s*", line, re.ASCII)
        if span and all(re.fullmatch("-?[0-9]{1,15} -?[0-9]{1,15}", part) for part in span[3].split(";")):
            parts = [tuple(map(int, part.split(" "))) for part in span[3].split(";")]
            own = span[4]
            if len(parts) > 1 and own is not None and all(0 <= a < b <= len(TEXT) for a, b in parts):
                own = None if form(" ".join(TEXT[a:b] for a, b in parts)) == form(own) else own
            marked.append((span[1], min(a for a, _ in parts), max(b for _, b in parts), span[2], own))
        elif note and float(note[2]) <= 1:
            notes_of[note[1]] = float(note[2])
        else:
            require(not line.strip() or line[0] in "*REAMN#")
    for _, *each, own in marked:
        put(TEXT, [(*each, None, own)], form)
    return [put(TEXT, [(start, end, label, notes_of.get(name), own) for name, start, end, label, own in marked], form)]


@pytest.mark.parametrize("n", cases(130))
def test_damaged_brat(n, tmp_path):
    (tmp_path / "x.txt").write_bytes(TEXT.encode())

    def reading(path):
        with messages.gathered():
            return [list(map(plain, each.spans)) for each in read_documents(path)]

    agree(in_file(tmp_path / "x.ann", reading), ANN, n, plain_brat)


# ---- what others' libraries read: nothing but one line, or documents that are sound ----


def sound(path, format):
    """Read, and written again: whatever came of the damage, its offsets fit."""
    with messages.gathered():
        documents = list(read_documents(path, format))
        write_documents(documents, "jsonl", io.BytesIO(), tokens=True)
    return [each.text for each in documents]


@pytest.mark.parametrize("n", cases(50))
@pytest.mark.parametrize(("format", "name"), [("spacy", "x.spacy"), ("brat", "x.zip"), ("datasets", "x.parquet")])
def test_damaged_files_of_libraries(n, format, name, tmp_path):
    path = tmp_path / name
    with messages.gathered():
        write_documents([WHOLE, *([SECOND] if format != "datasets" else [])], format, path)
    reading = in_file(path, lambda path: sound(path, format))
    checked = format == "spacy"  # its bytes have a check sum
    endure(reading, path.read_bytes(), damaged, n, reference=None if checked else lambda data: Anything)


@pytest.mark.parametrize("n", cases(50))
def test_damaged_arrow(n, tmp_path):
    import pyarrow as pa

    table = pa.table({"id": ["a"], "tokens": [["In", "York"]], "ner_tags": [["O", "B-LOC"]]})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    reading = in_file(tmp_path / "x.arrow", lambda path: sound(path, "datasets"))
    endure(reading, sink.getvalue(), damaged, n, reference=lambda data: Anything)


@pytest.mark.parametrize("n", cases(100))
@pytest.mark.parametrize("sample", [JSONL, PRODIGY, LABEL_STUDIO, ROWS, b"In O\nMadrid B-LOC\n\n. O\n"])
def test_damage_is_told_apart_or_not_but_never_an_accident(n, sample, tmp_path):
    """Whatever a file is taken for, it is read or refused."""

    def reading(path):
        assert detect_format(path) == detect_format(path, path.read_bytes()[: 1 << 16])
        return sound(path, None)

    endure(in_file(tmp_path / "x", reading), sample, damaged_text, n, reference=lambda data: Anything)
