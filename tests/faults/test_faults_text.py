"""Damaged documents: refused in one line, or read as a plain reader of the format reads them."""

from __future__ import annotations

import functools
import json
import re

import numpy as np
import pytest
from delivery import agree, agree_packed, delivered, plain_lines
from mutations import Anything, cases, damaged, damaged_json, endure

from sparsezo.tasks.tables import Columns
from sparsezo.tasks.text.features.word_vectors import read_tensor, read_vectors
from sparsezo.tasks.text.io.documents import detect_format, read_documents

TSV = (
    "Sport\tZürich  won 3:0,\u00a0again\r\n 99999999999999999999 \t日本語 text\twith a tab\n"
    "Sport\t\nx:y\tqid:3 1:2 # no comment 😀\n-1\t 1e400\u2028\n"
).encode()
TEXT = "Zürich  won 3:0\r\n\n日本語 text\twith a tab 12345678901234567890\n \u00a0 \n😀 the end".encode()
CSV = (
    'id,Text,label,"x ""y"""\r\n1,"Zürich, won 3:0 ""again""\nand again",Sport,\r\n\n'
    '99999999999999999999,日本語 ab"c, 1 ,"2,5"\n3,"",-1,\u00a0\n'
).encode()
HEADED_TSV = 'label\tn\tsentence\nSport\t1e400\t"Zürich\twon"\nx y \t\t日本語,; \'a\' ""\n\n"-1"\t0\t\n'.encode()
SEMICOLONS = 'class;body;rest\nSport;"a;b";1,5\n7;日本;"x,y\r\nz"\n'.encode()
JSONL = (
    '{"text": "Zürich \\u00fc\\ud83d\\ude00\\twon\\n3:0", "label": "Sport", "n": 12345678901234567890}\n\n'
    '{"label": -17, "n": [1.5e3, {"text": null}], "text": ""}\r\n{"text":"日本", "label":true}\n'
).encode()
SVMLIGHT = (
    "+1 1:0.5 3:-2.25e-3 17:1234567.890123 # Zürich\r\n\n-1 qid:7 900000000000:1 2:.5 40:0 \t 3:1e30\n# all\n"
    "Ünder\n  x 0:100000000000000000000 1:+3.14159265358979323846\n"
).encode()
LYRL = (
    ".I 2286\n.W\nrecov excit  econom zürich\n10,000 日本\n\n.I 2287\n.W\n\n.I 2288\n.W\nmexic a\u00a0b\r\n\n"
    ".I 123456789012345678\n.W\n .I 5 no document\n"
).encode()
QRELS = (
    b"CCAT 2286 1\nC15 2286 1\nGCAT 2287 1\nECAT 2288 1\nMCAT 2288 1\n\nMCAT  123456789012345678\t1\r\nECAT 2286 0\n"
)
TO_BLANKS = str.maketrans("\t\r\n", "   ")
USUAL = {
    "text": ("text", "sentence", "document", "body", "content"),
    "label": ("label", "class", "category", "target", "topic"),
}


def labelled(label, text, line):
    if not label.strip():
        raise ValueError("no label")
    return label.strip(), text, line


def whole(documents):
    if not documents:
        raise ValueError("no document")
    return documents


def plain_tsv(data):
    fields = [line.split("\t", 1) for line in plain_lines(data)]
    if not all(len(each) == 2 for each in fields):
        raise ValueError("no TAB")
    return whole([labelled(*each, n) for n, each in enumerate(fields, start=1)])


def plain_text(data):
    return whole([(None, line, n) for n, line in enumerate(plain_lines(data), start=1)])


def plain_csv(data, tabs=False):
    lines = plain_lines(data)
    if any("\0" in line for line in lines):
        raise ValueError("a NUL")
    while lines and (not lines[0] or lines[0].isspace()):
        lines[0:1] = []
    skipped = len(plain_lines(data)) - len(lines)
    by = "\t" if tabs or not lines else max("\t,;", key=lines[0].count)
    (_, header), *rows = whole(csv_rows("".join(line + "\n" for line in lines), by))
    text, label = (usual_place([cell.strip() for cell in header], what) for what in USUAL)
    if any(len(row) != len(header) for _, row in rows):
        raise ValueError("columns differ")
    return whole(
        [labelled(row[label].translate(TO_BLANKS), row[text].translate(TO_BLANKS), n + skipped) for n, row in rows]
    )


def csv_rows(text, by):
    """RFC 4180: a field that begins with a quote goes to the next single quote, any other to the delimiter."""
    field = re.compile(rf'"((?:[^"]|"")*+)"|((?!")[^{by}\r\n]*+)')
    rows, at, row, begin = [], 0, [], 0
    while at < len(text):
        found = field.match(text, at)
        if not found or text[found.end()] not in (by, "\n"):
            raise ValueError("no field of a table")
        row.append(found[2] if found[1] is None else found[1].replace('""', '"'))
        at = found.end() + 1
        if text[at - 1] == "\n":
            if row != [""] or found[1] is not None:
                rows.append((text.count("\n", 0, begin) + 1, row))
            row, begin = [], at
    return rows


def usual_place(header, what):
    for name in USUAL[what]:
        places = [k for k, cell in enumerate(header) if cell.lower() == name]
        if places:
            (place,) = places  # two of a name: ValueError
            return place
    raise ValueError(f"no column of {what}")


def plain_json(data):
    documents, keys = [], None
    for number, line in enumerate(plain_lines(data), start=1):
        if line and not line.isspace():
            try:
                found = json.loads(line)
            except RecursionError:
                raise ValueError("nested too deep") from None
            if not isinstance(found, dict):
                raise ValueError("no object")
            names = list(found)
            keys = keys or [names[usual_place(names, what)] for what in USUAL]
            if not all(key in found for key in keys):
                raise ValueError("a key is missing")
            text, label = (found[key] for key in keys)
            label = {True: "true", False: "false"}[label] if isinstance(label, bool) else label
            if not isinstance(text, str) or not isinstance(label, str | int):
                raise ValueError("no string")
            (text + str(label)).encode("utf-8")  # ValueError for half of a character
            documents.append(labelled(str(label).translate(TO_BLANKS), text.translate(TO_BLANKS), number))
    return whole(documents)


def plain_svmlight(data):
    documents = []
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        label, *pairs = re.findall(rb"[^ \t\r]+", line.split(b"#")[0]) or [b""]
        if pairs and re.fullmatch(rb"qid:[0-9]+", pairs[0]):
            pairs = pairs[1:]
        if re.search(rb"[:,]", label):
            raise ValueError("no label")
        if label:
            vector = [pair_of(pair) for pair in pairs]
            if len(dict(vector)) < len(vector):
                raise ValueError("an index comes twice")
            documents.append((label.decode("utf-8"), sorted(pair for pair in vector if pair[1] != 0), number))
    return whole(documents)


def plain_unlabelled(data):
    """Labels may be missing, and nobody looks at them."""
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    found = plain_svmlight(
        b"\n".join(b"0 " + line if re.match(rb"[ \t\r]*-?[0-9]+:", line) else line for line in lines)
    )
    return [(None, vector, number) for _, vector, number in found]


def pair_of(pair):
    found = re.fullmatch(rb"0*([0-9]{1,18}):([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)", pair)
    if not found:
        raise ValueError("no pair")
    with np.errstate(over="ignore"):
        value = float(np.float32(float(found[2])))
    if np.isinf(value):
        raise ValueError("too large")
    return int(found[1]), value


def plain_lyrl(data, topic_of):
    documents, document = [], None
    for number, line in enumerate(plain_lines(data), start=1):
        if line.startswith(".I"):
            document = [id_of(line[2:].strip()), None, number]
            documents.append(document)
        elif line.rstrip() == ".W":
            if document is None or document[1] is not None:
                raise ValueError("a .W too many")
            document[1] = []
        elif line.strip():
            if document is None or document[1] is None:
                raise ValueError("tokens before .W")
            document[1].append(line.strip())
    if any(tokens is None for _, tokens, _ in documents):
        raise ValueError("no .W")
    return whole([(topic_of[name], " ".join(tokens), n) for name, tokens, n in documents if name in topic_of])


def plain_topics(data):
    topics = {}
    for fields in map(str.split, plain_lines(data)):
        if fields and (len(fields) != 3 or fields[2] not in ("0", "1")):
            raise ValueError("no line of qrels")
        if fields and id_of(fields[1]) and fields[0] in ("CCAT", "ECAT", "GCAT", "MCAT") and fields[2] == "1":
            topics.setdefault(id_of(fields[1]), set()).add(fields[0])
    return {document: min(some) for document, some in topics.items() if len(some) == 1}


def id_of(text):
    if not re.fullmatch("[0-9]{1,18}", text):
        raise ValueError("no id")
    return int(text)


def reader(**how):
    def read(path):
        found = read_documents(path, **how)
        if found.vectors is None:
            texts = found.texts
        else:
            rows = found.vectors
            pairs = list(zip(rows.indices.tolist(), rows.data.tolist(), strict=True))
            texts = [pairs[a:b] for a, b in zip(rows.indptr[:-1].tolist(), rows.indptr[1:].tolist(), strict=True)]
        labels = found.labels or [None] * len(found)
        return list(zip(labels, texts, found.lines.tolist(), strict=True))

    return read


FORMATS = {  # name: sample, plain reader, how it is read
    "x.tsv": (TSV, plain_tsv, {"format": "tsv"}),
    "x.txt": (TEXT, plain_text, {"format": "text", "labelled": False}),
    "x.csv": (CSV, plain_csv, {"format": "csv"}),
    "semicolons.csv": (SEMICOLONS, plain_csv, {"format": "csv"}),
    "headed": (HEADED_TSV, plain_csv, {"format": "csv"}),
    "headed.tsv": (HEADED_TSV, functools.partial(plain_csv, tabs=True), {"format": "csv"}),  # its name says tabs
    "x.jsonl": (JSONL, plain_json, {"format": "jsonl"}),
    "x.svm": (SVMLIGHT, plain_svmlight, {"format": "svmlight"}),
}


@pytest.mark.parametrize("n", cases(100))
@pytest.mark.parametrize("name", FORMATS)
def test_damaged_documents(n, name, tmp_path):
    sample, plain, how = FORMATS[name]
    agree(delivered(tmp_path / name, reader(**how), standard_input=name != "headed.tsv"), sample, n, plain)


@pytest.mark.parametrize("n", cases(100))
def test_damaged_vectors_without_labels(n, tmp_path):
    bare = b"\n".join(re.sub(rb"^\S+ (?=[0-9]+:)", b"", line) for line in SVMLIGHT.split(b"\n"))
    assert bare != SVMLIGHT

    def read(path):
        found = reader(format="svmlight", labelled=False)(path)
        return [(None, *each[1:]) for each in found]

    agree(delivered(tmp_path / "x.svm", read), bare, n, plain_unlabelled)


@pytest.mark.parametrize("n", cases(30))
@pytest.mark.parametrize("ending", [".gz", ".xz"])
@pytest.mark.parametrize("name", ["x.tsv", "x.svm"])
def test_damaged_packed_documents(n, name, ending, tmp_path):
    sample, plain, how = FORMATS[name]
    agree_packed(tmp_path / (name + ending), reader(**how), sample, n, plain)


@pytest.mark.parametrize("n", cases(30))
def test_json_that_is_still_json(n, tmp_path):
    """A value of another type, a key that is not there."""
    line = JSONL.splitlines()[0]
    agree(delivered(tmp_path / "x.jsonl", reader(format="jsonl")), line, n, plain_json, damaged_json)


@pytest.mark.parametrize("n", cases(20))
@pytest.mark.parametrize("name", [name for name, (_, _, how) in FORMATS.items() if "labelled" not in how])
def test_damaged_documents_of_a_format_to_be_found(n, name, tmp_path):
    """Whatever it is taken for, it is read as that."""
    plain_of = {how["format"]: plain for name, (_, plain, how) in FORMATS.items() if name != "headed.tsv"}

    def plain(data):
        found = detect_format("x", data, Columns()) if data else "text"
        if found in ("text", "lyrl"):
            raise ValueError("has no labels")
        return plain_of[found](data)

    agree(delivered(tmp_path / "x", reader()), FORMATS[name][0], n, plain)


@pytest.mark.parametrize("n", cases(100))
def test_damaged_lyrl(n, tmp_path):
    (tmp_path / "topics").write_bytes(QRELS)
    read = reader(format="lyrl", topics=tmp_path / "topics")
    topics = plain_topics(QRELS)
    assert len(topics) == 3
    agree(delivered(tmp_path / "x.dat", read), LYRL, n, functools.partial(plain_lyrl, topic_of=topics))


@pytest.mark.parametrize("n", cases(100))
def test_damaged_topics(n, tmp_path):
    (tmp_path / "x.dat").write_bytes(LYRL)
    read = lambda path: reader(format="lyrl", topics=path)(tmp_path / "x.dat")  # noqa: E731
    plain = lambda data: plain_lyrl(LYRL, plain_topics(data))  # noqa: E731
    agree(delivered(tmp_path / "topics", read), QRELS, n, plain)


# Vectors of words

VECTORS = (
    "4 3\nthe 0.25 -1.5e-2 3\nZürich 1 2.5 1e30\r\nnew york\t0 0 -0.125 \n\n"
    "日本 12345678901234567890 .5 +1\nthe 1 1 1\n1e5 7 8 9\n"
).encode()


def plain_vectors(data):
    """(words, numbers): of a word that is there twice the first."""
    found, columns = {}, None
    for number, line in enumerate(plain_lines(data), 1):
        fields = line.split()
        if not fields or (number == 1 and len(fields) == 2 and all(re.fullmatch("[0-9]+", each) for each in fields)):
            continue
        columns = len(fields) - 1 if columns is None else columns
        if not columns or len(fields) <= columns:
            raise ValueError("too few")
        word = " ".join(fields[:-columns])
        if word in found:
            continue
        row = np.array([float(each) for each in fields[-columns:]])
        if not (np.abs(row) < 2.0**128 - 2.0**103).all():
            raise ValueError("not finite")
        found[word] = row.astype(np.float32)
    if not found:
        raise ValueError("no vector")
    return list(found), [[float(each) for each in row] for row in _halved(np.array(list(found.values())))]


def _halved(table):
    """The largest between 2^3 and 2^4, as float16."""
    largest = np.abs(table.astype(np.float64)).max()
    scale = 2.0 ** (4 - np.frexp(largest)[1]) if largest else 1.0
    return (table.astype(np.float64) * scale).astype(np.float32).astype(np.float16)


def vectors_of(path):
    words = read_vectors(str(path), False, ())
    return list(words.names), words.table.astype(float).tolist()


@pytest.mark.parametrize("n", cases(100))
def test_damaged_vectors_of_words(n, tmp_path):
    agree(delivered(tmp_path / "v.txt", vectors_of), VECTORS, n, plain_vectors)


@pytest.mark.parametrize("n", cases(20))
@pytest.mark.parametrize("ending", [".gz", ".xz"])
def test_damaged_packed_vectors_of_words(n, ending, tmp_path):
    agree_packed(tmp_path / ("v.txt" + ending), vectors_of, VECTORS, n, plain_vectors)


@pytest.mark.parametrize("n", cases(70))
def test_damaged_tensors(n):
    """One line, or finite numbers of some shape."""
    head = json.dumps({"w": {"dtype": "F16", "shape": [2, 3], "data_offsets": [0, 12]}}).encode()
    raw = len(head).to_bytes(8, "little") + head + np.arange(6, dtype="<f2").tobytes()
    endure(
        lambda data: float(read_tensor(data, "w", "x").sum(dtype=np.float64)),
        raw,
        damaged,
        n,
        reference=lambda data: Anything,
    )
