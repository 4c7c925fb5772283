"""Damaged files of documents with spans: refused in one line, or read as a plain reader of the format reads them."""

from __future__ import annotations

import io
import itertools
import json
import re

import pytest
from delivery import agree, agree_packed, delivered, plain_lines
from mutations import Anything, cases, damaged, damaged_json, damaged_text, draw, endure, in_file

from sparsezo import notes
from sparsezo.tasks.chunking.documents import Document, Span, tags_of
from sparsezo.tasks.chunking.formats import detect_format, read_documents, write_documents

TEXT = "😀 Ana  viu\r\nSão Paulo\u0301's\tmar."
TOKENS = ((0, 1), (2, 5), (7, 10), (12, 15), (16, 22), (22, 24), (25, 28), (28, 29))
WHOLE = Document(TEXT, "7", (Span(2, 5, "PER", 0.75), Span(12, 22, "LOC")), tokens=TOKENS, meta={"n": 17})
SECOND = Document("Ana", "8", (), suggested=(Span(0, 3, "PER", 0.5),))


def as_bytes(format, *documents):
    out = io.BytesIO()
    with notes.gathered():
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


def plain_prodigy(data):
    documents = []
    for found in objects(data):
        answer = found.get("answer")
        require(answer in (None, "accept", "reject", "ignore"))
        if answer == "ignore":
            continue
        text, tokens, spans = text_of(found), found.get("tokens") or [], found.get("spans") or []
        for some in (found.get("tokens"), found.get("spans")):
            require(some is None or (isinstance(some, list) and all(isinstance(each, dict) for each in some)))
        marked = []
        for span in spans:
            first, last = span.get("token_start"), span.get("token_end")
            inside = type(first) is type(last) is int and 0 <= first <= last < len(tokens)
            if "start" not in span and inside:
                span = {**span, "start": tokens[first].get("start"), "end": tokens[last].get("end")}
            marked.append(mark(span))
        placed = put(text, marked + [(t.get("start"), t.get("end"), "x", None, t.get("text")) for t in tokens])
        check_tokens({"tokens": [list(each[:2]) for each in placed[len(marked) :]]}, text)
        own, single = placed[: len(marked)], len(marked) == 1
        missing = answer is not None and found.get("missing") is not False
        rejected = own if answer == "reject" and single else []
        if answer == "reject" and documents and documents[-1][:2] == (text, id_of(found)):
            documents[-1] = (*documents[-1][:4], documents[-1][4] + rejected, documents[-1][5])
            continue
        labelled = {None: None, "accept": own, "reject": []}[answer]
        documents.append((text, id_of(found), labelled, own if answer is None else [], rejected, missing))
    return documents


def newest(task, name):
    found = task.get(name) or []
    require(isinstance(found, list) and all(isinstance(each, dict) for each in found))
    valid = [each for each in found if not each.get("was_cancelled")]
    if not valid:
        return None
    date = max(str(each.get("updated_at") or each.get("created_at") or "") for each in valid)
    last = [each for each in valid if str(each.get("updated_at") or each.get("created_at") or "") == date][-1]
    require(isinstance(last.get("result"), list) and all(isinstance(each, dict) for each in last["result"]))
    return [
        value for each in last["result"] if each.get("type") == "labels" for value in region(each.get("value"), each)
    ]


def region(value, scored):
    require(isinstance(value, dict) and isinstance(value.get("labels"), list) and value["labels"])
    own = value.get("text") if isinstance(value.get("text"), str) else None
    return [(value.get("start"), value.get("end"), label, scored.get("score"), own) for label in value["labels"]]


def plain_label_studio(data):
    documents = []
    for task in objects(data):
        form = lambda own: re.sub(r"\s|\\[rn]", "", own)  # noqa: E731
        if "data" not in task:
            text = text_of(task)
            lists = {name: value for name, value in task.items() if isinstance(value, list) and value}
            names = [
                n for n, value in lists.items() if all(isinstance(each, dict) and "labels" in each for each in value)
            ]
            require(len(names) < 2)
            spans = (
                put(text, [each for value in task[names[0]] for each in region(value, value)], form) if names else None
            )
            documents.append((text, id_of(task), spans, [], [], False))
            continue
        fields = task["data"]
        require(isinstance(fields, dict))
        strings = [value for name, value in fields.items() if isinstance(value, str) and name != "id"]
        text = strings[0] if "text" not in fields and len(strings) == 1 else text_of(fields)
        labelled = newest(task, "annotations" if "annotations" in task else "completions")
        spans = None if labelled is None else put(text, labelled, form)
        id = id_of(fields)
        id = id_of(task) if id is None else id
        documents.append((text, id, spans, put(text, newest(task, "predictions") or [], form), [], False))
    return documents


JSONL = as_bytes("jsonl", WHOLE, SECOND) + b'{"text": "a b", "label": [[0, 1, "X"], [2, 3, "Y"]], "id": 12345}\r\n\n'
PRODIGY = as_bytes("prodigy", WHOLE, SECOND, Document("Ana", "8", rejected=(Span(0, 3, "X"),)))
MINIMAL = [{"id": 1, "text": "😀 a b", "label": [{"start": 3, "end": 4, "text": "a", "labels": ["X"]}]}]
LABEL_STUDIO = json.dumps([*json.loads(as_bytes("label-studio", WHOLE, SECOND)), *MINIMAL]).encode()
ROWS = b'{"id": "a", "tokens": ["In", "New", "York"], "ner_tags": ["O", "B-LOC", "I-LOC"], "n": 5}'


def damaged_lines(data, case):
    """One of the lines as damaged JSON, or any text."""
    rng = draw("lines", case)
    if rng.random() < 0.4:
        return damaged_text(data, case)
    lines = [line for line in data.split(b"\n") if line.strip()]
    at = rng.randrange(len(lines))
    lines[at] = damaged_json(lines[at], case).replace(b"\n", b" ")
    return b"\n".join(lines)


@pytest.mark.parametrize("n", cases(400))
@pytest.mark.parametrize(
    ("format", "sample", "damage", "reader"),
    [
        ("jsonl", JSONL, damaged_lines, plain_jsonl),
        ("prodigy", PRODIGY, damaged_lines, plain_prodigy),
        ("label-studio", LABEL_STUDIO, damaged_json, plain_label_studio),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_damaged_json(n, format, sample, damage, reader, tmp_path):
    agree(delivered(tmp_path / "x.json", lambda path: read(path, format)), sample, n, reader, damage)


@pytest.mark.parametrize("n", cases(100))
def test_damaged_packed_lines(n, tmp_path):
    agree_packed(tmp_path / "x.jsonl.gz", lambda path: read(path, "jsonl"), JSONL, n, plain_jsonl)


# ---- rows of tokens ----


def plain_rows(data):
    rows = []
    for row in objects(data):
        words = row.get("tokens", row.get("words") if "tokens" not in row else None)
        require(isinstance(words, list) and all(isinstance(each, str) for each in words))
        name = next((name for name in ("ner_tags", "tags", "labels", "ner") if name in row), None)
        tags = row.get(name)
        if tags is not None:
            require(isinstance(tags, list) and len(tags) == len(words))
            tags = [tag for tag, word in zip(tags, words, strict=True) if word]
            for tag in tags:
                require(tag is None or (type(tag) is int and tag == -100) or isinstance(tag, str))
            tags = [tag if isinstance(tag, str) else "O" for tag in tags]
            require(all(re.fullmatch(r"O|[BIESLUM](-.+)?", tag, re.DOTALL) for tag in tags))
            tags = [
                "O" if tag == "O" else ("B" if starts(tags, i) else "I") + tag[1:] for i, tag in enumerate(tags)
            ]  # fmt: skip
        rows.append(([word for word in words if word], tags))
    return rows


def starts(tags, i):
    before = tags[i - 1] if i else "O"
    return tags[i][0] in "BSU" or before == "O" or before[0] in "ESLU" or before[2:] != tags[i][2:]


def read_rows(path):
    return [(each.words(), None if each.spans is None else tags_of(each)) for each in read_documents(path, "datasets")]


@pytest.mark.parametrize("n", cases(300))
def test_damaged_rows(n, tmp_path):
    agree(delivered(tmp_path / "x.jsonl", read_rows), ROWS, n, plain_rows, damaged_json)


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


@pytest.mark.parametrize("n", cases(400))
def test_damaged_brat(n, tmp_path):
    (tmp_path / "x.txt").write_bytes(TEXT.encode())

    def reading(path):
        with notes.gathered():
            return [list(map(plain, each.spans)) for each in read_documents(path)]

    agree(in_file(tmp_path / "x.ann", reading), ANN, n, plain_brat)


# ---- what others' libraries read: nothing but one line, or documents that are sound ----


def sound(path, format):
    """Read, and written again: whatever came of the damage, its offsets fit."""
    with notes.gathered():
        documents = list(read_documents(path, format))
        write_documents(documents, "jsonl", io.BytesIO(), tokens=True)
    return [each.text for each in documents]


@pytest.mark.parametrize("n", cases(150))
@pytest.mark.parametrize(("format", "name"), [("spacy", "x.spacy"), ("brat", "x.zip"), ("datasets", "x.parquet")])
def test_damaged_files_of_libraries(n, format, name, tmp_path):
    path = tmp_path / name
    with notes.gathered():
        write_documents([WHOLE, *([SECOND] if format != "datasets" else [])], format, path)
    reading = in_file(path, lambda path: sound(path, format))
    checked = format == "spacy"  # its bytes have a check sum
    endure(reading, path.read_bytes(), damaged, n, reference=None if checked else lambda data: Anything)


@pytest.mark.parametrize("n", cases(150))
def test_damaged_arrow(n, tmp_path):
    import pyarrow as pa

    table = pa.table({"id": ["a"], "tokens": [["In", "York"]], "ner_tags": [["O", "B-LOC"]]})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    reading = in_file(tmp_path / "x.arrow", lambda path: sound(path, "datasets"))
    endure(reading, sink.getvalue(), damaged, n, reference=lambda data: Anything)


@pytest.mark.parametrize("n", cases(300))
@pytest.mark.parametrize("sample", [JSONL, PRODIGY, LABEL_STUDIO, ROWS, b"In O\nMadrid B-LOC\n\n. O\n"])
def test_damage_is_told_apart_or_not_but_never_an_accident(n, sample, tmp_path):
    """Whatever a file is taken for, it is read or refused."""

    def reading(path):
        assert detect_format(path) == detect_format(path, path.read_bytes()[: 1 << 16])
        return sound(path, None)

    endure(in_file(tmp_path / "x", reading), sample, damaged_text, n, reference=lambda data: Anything)
