"""Readers of documents: every format, every mistake with its file and line; from pipes, too."""

from __future__ import annotations

import csv
import gzip
import json
import lzma
import os
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from sparsezo.errors import DataError, UsageError
from sparsezo.storage import files, limits
from sparsezo.tasks.tables import Columns
from sparsezo.tasks.text.io.documents import (
    class_numbers,
    classes_of,
    detect_format,
    read_documents,
    read_rcv1,
    read_topics,
)

TSV = "rec\tthe puck\nsci\ta cell\t in space\n"
TOKENS = ".I 2286\n.W\nrecov recov\nexcit\n\n.I 2287\n.W\nbank \n\n.I 2288\n.W\ngoal\n"
QRELS = "CCAT 2286 1\nC11 2286 1\nMCAT 2287 1\nCCAT 2287 1\nGCAT 2288 1\n"


def detected(content: str | bytes, name: str = "a", columns: Columns = Columns()) -> str:  # noqa: B008
    return detect_format(name, content.encode() if isinstance(content, str) else content, columns)


# Label TAB text


@pytest.mark.parametrize("ending", ["", ".gz", ".xz"])
def test_label_tab_text(put, ending):
    path = put("a.tsv" + ending, "\ufeff" + TSV)
    documents = read_documents(path)
    assert detected(TSV, path.name) == "tsv"
    assert (documents.labels, documents.texts) == (["rec", "sci"], ["the puck", "a cell\t in space"])
    assert (documents.kind, len(documents), documents.where(1)) == ("text", 2, f"{path}:2")


def test_several_files_keep_their_own_lines(put):
    paths = [put("a.tsv", TSV), put("b.tsv", "talk\tof the town\n")]
    documents = read_documents(paths)
    assert documents.labels == ["rec", "sci", "talk"]
    assert documents.where(2) == f"{paths[1]}:1"
    held_out = documents.take(slice(1, None))
    assert (held_out.texts, held_out.where(0)) == (["a cell\t in space", "of the town"], f"{paths[0]}:2")


BAD = [  # a file's name, what is in it, the line, what is said of it
    ("a.tsv", "rec\ta b\nno label here\n", ":2", "no TAB in 'no label here'; write label TAB text"),
    ("a.tsv", "no label here\n", ":1", "no TAB in 'no label here'; write label TAB text"),
    ("a.tsv", "rec\ta b\n\nsci\tc\n", ":2", "the line is blank; write label TAB text"),
    ("a.tsv", "\n \n", ":1", "the line is blank"),
    ("a.tsv", "rec\ta b\n \tc d\n", ":2", "the label before 'c d' is empty"),
    ("a.tsv", b"rec\ta b\nsci\t\xff\n", ":2", "is not UTF-8"),
    ("a.dat", ".I one\n.W\na\n", ":1", "'.I one' has no document id"),
    ("a.dat", f".I {'7' * 5000}\n.W\na\n", ":1", "'.I 7777777777777777777777777777777777777...' has no document id"),
    ("a.dat", ".I 2286\n.W\na\n\n.I 2288\n", ":5", "document 2288 has no .W; is the file cut off?"),
    ("a.dat", ".I 2286\na b\n", ":2", "'a b' stands before .W"),
    ("a.dat", ".I 2286\n.W\na\n.W\n", ":4", "a .W without its .I"),
    ("a.dat", ".I 9\n.W\na\n", "", "no document has exactly one of CCAT, ECAT, GCAT, MCAT"),
    ("a.csv", "a,b\nx,y\n", ":1", "no column is called text, sentence, document, body, content; there are a, b; name"),
    ("a.csv", "text,b\nx,y\n", ":1", "no column is called label, class, category, target, topic; there are text, b"),
    ("a.csv", "text,label,text\nx,y,z\n", ":1", "2 columns are called 'text'; name one by its number with `text_colum"),
    ("a.csv", "\n\ntext,label\nx,y\n\nx\n", ":6", "1 columns, but the header has 2"),
    ("a.csv", "text,label\nx,y,z\n", ":2", "3 columns, but the header has 2; quote a text that has a delimiter in it"),
    ("a.csv", 'text,label\n"a\nb",x\nx, \n', ":4", "the label is empty"),
    ("a.csv", 'text,label\n"a\nb",x\n"x,y\nz\n', ":4", "a quote is opened and not closed; write a quote in a quote"),
    ("a.csv", 'text,label\n"a" b,x\n', ":2", "the row is not CSV"),
    ("a.csv", "text,label\nx\0y,z\n", ":2", "a NUL character"),
    ("a.csv", b"text,label\nx,y\n\xff,y\n", ":3", "is not UTF-8 text"),
    ("a.csv", "text,label\rx,y\r", ":1", "the row is not CSV"),
    *(("a.csv", text, "", "is empty; a file of documents has at least one") for text in ("", "text,label\n", "\n")),
    *(
        ("a.jsonl", f'{{"text": "a", "label": "b"}}\n\n{line}\n', ":3", what)
        for line, what in [
            ("{", "'{' is not JSON"),
            ("[1]", "a list, not an object; write one object a line"),
            ("3", "a number, not an object"),
            ("null", "null, not an object"),
            ('{"text": "a"}', "has no 'label'; it has text"),
            ("{}", "has no 'text'; it has nothing"),
            ('{"text": null, "label": "a"}', "'text' is null; a document's text is a string"),
            ('{"text": "a", "label": {}}', "'label' is an object; a label is a string, a whole number, true or false"),
            ('{"text": "a", "label": 1.5}', "'label' is a number; a label is a string, a whole number"),
            ('{"text": "a", "label": " "}', "the label is empty"),
            ('{"text": "\\ud800", "label": "a"}', "half of a surrogate pair"),
            ('{"text": "a", "label": "\\udfff"}', "half of a surrogate pair"),
            ('{"text": "a", "label": ' + "7" * 5000 + "}", '\'{"text": "a", "label": 777'),
            ('{"text": ' + "[" * 100_000, '\'{"text": [[[['),
        ]
    ),
]


@pytest.mark.parametrize(("name", "text", "line", "what"), BAD)
def test_bad_files(put, name, text, line, what):
    put("rcv1-v2.topics.qrels", QRELS)
    path = put(name, text)
    with pytest.raises(DataError) as caught:
        read_documents(path)
    assert str(caught.value).startswith(f"{path}{line}: {what}")
    assert "\n" not in str(caught.value)


def test_an_empty_file(put):
    for how in ({}, {"labelled": False}, {"format": "tsv"}):
        with pytest.raises(DataError, match=r"a.tsv: is empty; a file of documents has at least one"):
            read_documents(put("a.tsv", ""), **how)


def test_a_missing_file_and_a_cut_one(tmp_path):
    with pytest.raises(DataError, match=r"none.tsv: no such file"):
        read_documents(tmp_path / "none.tsv")
    for ending, pack in ((".gz", gzip.compress), (".xz", lzma.compress)):
        path = tmp_path / ("cut.dat" + ending)
        rng = np.random.default_rng(0)
        text = "".join(f"1 1:{value}\n" for value in rng.random(20_000)).encode()
        path.write_bytes(pack(text)[:-2000])
        with pytest.raises(DataError, match=r"cut.dat\.[gx]z:\d+: cannot be read on .*is the file cut off\?"):
            read_documents(path, "svmlight")


def test_text_without_labels_is_for_predict_only(put):
    path = put("a.txt", "the puck\n\na cell\n")
    assert detected("the puck\n\na cell\n", "a.txt") == "text"
    documents = read_documents(path, labelled=False)
    assert (documents.labels, documents.texts) == (None, ["the puck", "", "a cell"])
    with pytest.raises(DataError, match=r"a.txt:1: no TAB"):
        read_documents(path)
    with pytest.raises(UsageError, match=r"the format text has no labels"):
        read_documents(path, "text")
    with pytest.raises(DataError, match=r"a.txt: has no labels"):
        class_numbers(documents, ["rec"])
    tabbed = put("b.txt", "12 TAB\there\n")
    assert read_documents(tabbed, "text", labelled=False).texts == ["12 TAB\there"]
    assert read_documents(tabbed, labelled=False).labels == ["12 TAB"]


def test_wrong_calls(put):
    path = put("a.tsv", TSV)
    with pytest.raises(UsageError, match=r"'xml' is no format of documents; choose one of tsv, text, csv, jsonl, svm"):
        read_documents(path, "xml")
    with pytest.raises(UsageError, match=r"`text_column` and `label_column` are for csv and jsonl, not for tsv"):
        read_documents(path, "tsv", text_column="2")
    with pytest.raises(UsageError, match=r"no file of documents"):
        read_documents([])
    with pytest.raises(DataError, match=r"b.dat: holds vectors, but .*a.tsv text; give files of one format"):
        read_documents([path, put("b.dat", "1 1:0.5\n")])


def test_classes(put):
    train = read_documents(put("a.tsv", TSV + "rec\tgoal\n"))
    assert classes_of(train) == ["rec", "sci"]
    assert class_numbers(train, ["rec", "sci"]).tolist() == [0, 1, 0]
    test = read_documents(put("b.tsv", "rec\ta\ntalk\tb\n"))
    with pytest.raises(DataError, match=r"b.tsv:2: label 'talk' is none of the model's classes, which are rec, sci"):
        class_numbers(test, ["rec", "sci"])
    with pytest.raises(DataError, match=r"a.tsv: only the class 'rec' in the training documents"):
        classes_of(train.take([0, 2]))


# RCV1-v2's own files


def test_tokens_with_exactly_one_topic_are_kept(put):
    path = put("tokens.dat", TOKENS)
    put("rcv1-v2.topics.qrels.gz", QRELS)
    assert detected(TOKENS) == "lyrl"
    documents = read_documents(path)
    assert (documents.labels, documents.texts) == (["CCAT", "GCAT"], ["recov recov excit", "goal"])
    assert (documents.kind, documents.where(1)) == ("tokens", f"{path}:10")
    unlabelled = read_documents(path, labelled=False)
    assert (unlabelled.labels, unlabelled.texts) == (None, ["recov recov excit", "bank", "goal"])
    named = read_documents(path, topics=put("other.qrels", "ECAT 2287 1\nGCAT 2288 0\n"))
    assert named.labels == ["ECAT"]


def test_bad_topics(put):
    path = put("tokens.dat", TOKENS)
    with pytest.raises(
        DataError, match=r"tokens.dat: LYRL2004 tokens carry no labels; put rcv1-v2.topics.qrels beside"
    ):
        read_documents(path)
    with pytest.raises(DataError, match=r"a.qrels:2: 'CCAT 1' is not 'topic id 1'"):
        read_topics(put("a.qrels", "CCAT 1 1\nCCAT 1\n"))
    with pytest.raises(DataError, match=r"a.qrels:1: 'CCAT 7+\.\.\.' is not 'topic id 1'"):
        read_topics(put("a.qrels", f"CCAT {'7' * 5000} 1\n"))
    for line in ("CCAT 1 nan", "CCAT 1 -1", "CCAT \u0661 1"):  # an Arabic one is no id of RCV1's
        with pytest.raises(DataError, match=r"a.qrels:1: 'CCAT .+' is not 'topic id 1'"):
            read_topics(put("a.qrels", f"{line}\n"))
    with pytest.raises(DataError, match=r"b.qrels: names none of CCAT, ECAT, GCAT, MCAT"):
        read_topics(put("b.qrels", "C11 1 1\n\n"))


def test_the_papers_split(put, tmp_path):
    def block(document: int) -> str:
        return f".I {document}\n.W\nw{document}\n\n"

    starts = {f"test_pt{part}": 1000 * (part + 1) for part in range(4)} | {"train": 9000}
    for name, start in starts.items():
        ending = {"test_pt1": ".gz", "test_pt3": ".xz"}.get(name, "")
        text = "".join(block(start + k) for k in range(40 if name == "test_pt3" else 3))
        put(f"lyrl2004_tokens_{name}.dat{ending}", text)
    topics = [("CCAT", 1000 * part + k) for part in range(1, 10) for k in range(40)] + [("ECAT", 4000), ("MCAT", 2001)]
    put("rcv1-v2.topics.qrels", "".join(f"{topic} {document} 1\n" for topic, document in topics))
    train, dev, test = read_rcv1(tmp_path)
    assert train.texts == ["w1000", "w1001", "w1002", "w2000", "w2002", "w3000", "w3001", "w3002"]
    assert dev.texts == ["w4008", "w4016", "w4024", "w4032"]  # 4000 has two topics
    assert test.texts == ["w9000", "w9001", "w9002"]
    assert train.where(3) == f"{tmp_path / 'lyrl2004_tokens_test_pt1.dat.gz'}:1"
    (tmp_path / "lyrl2004_tokens_train.dat").unlink()
    with pytest.raises(DataError, match=r"lyrl2004_tokens_train.dat: no such file, nor with .gz or .xz"):
        read_rcv1(tmp_path)


# Tables with a header

CSV = 'id,Label,text\n1,rec,"the puck, the goal"\n2,sci,"a ""cell""\nin\tspace"\n\n3, rec ,\n'
TEXTS, LABELS = ["the puck, the goal", 'a "cell" in space', ""], ["rec", "sci", "rec"]


def found(documents):
    return documents.labels, documents.texts, documents.lines.tolist()


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.CSV", "a.csv.xz"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_table(put, name, end):
    path = put(name, "\ufeff" + CSV.replace("\n", end))
    documents = read_documents(path)
    assert found(documents) == (LABELS, TEXTS, [2, 3, 6])
    assert documents.where(2) == f"{path}:6"
    assert found(read_documents(path, labelled=False)) == (None, TEXTS, [2, 3, 6])


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_the_header_tells_what_parts_columns(put, delimiter):
    text = f"topic{delimiter}body\nrec{delimiter}the puck\n"
    for name, options in [("a.csv", {}), ("a.txt", {"text_column": "body"}), ("a", {"label_column": "1"})]:
        assert found(read_documents(put(name, text), **options)) == (["rec"], ["the puck"], [2])


def test_columns_by_name_and_number(put):
    path = put("a.tsv", "title,\tkind\tText\tlabel\nt\tk\tx\tl\n")  # .tsv: by TABs, whatever commas say
    for text, label, expected in [
        ("title,", "kind", ("k", "t")),
        ("3", "1", ("t", "x")),
        (None, "2", ("k", "x")),
        ("kind", None, ("l", "k")),
    ]:
        documents = read_documents(path, text_column=text, label_column=label)
        assert (documents.labels, documents.texts) == ([expected[0]], [expected[1]])


@pytest.mark.parametrize("header", ["label\ttext", "Text\tid\tCATEGORY", "sentence,label", '"body";"class"'])
def test_a_first_line_that_names_both_columns_is_a_header(put, header, said):
    """A tsv with a header would else have a class called 'label'."""
    delimiter = next(c for c in "\t,;" if c in header)
    row = delimiter.join(["x"] * len(header.split(delimiter)))
    path = put("a.tsv" if delimiter == "\t" else "a.txt", f"{header}\n{row}\n")
    assert (read_documents(path).labels, len(said)) == (["x"], 1)
    assert "its first line names columns, so it is read as csv; `format` tsv" in said[0]
    if delimiter == "\t":
        assert len(read_documents(path, "tsv")) == 2


def test_columns_that_are_not_there(put):
    path = put("a.csv", "text,label\nx,y\n")
    for column in ("body", "3", "0", "²", "9" * 5000, "-1"):
        with pytest.raises(DataError, match=r"a.csv:1: no column is called '.*'; there are text, label; name one w"):
            read_documents(path, text_column=column)


def test_long_fields_and_quotes_that_swallow_a_file(put, monkeypatch):
    """The csv module stops at 128 KB; the limit is put back, for it is all its users'."""
    before = csv.field_size_limit()
    long = "word " * 100_000
    assert read_documents(put("a.csv", f"text,label\n{long},x\n")).texts == [long]
    monkeypatch.setattr(limits, "LINE", 1 << 20)
    path = put("a.csv", 'text,label\na,x\n"' + "a,x\n" * 600_000)
    with pytest.raises(DataError, match=r"a.csv:3: a field of more than 1 MB: is a quote not closed\?"):
        read_documents(path)
    with limits.insisting(), pytest.raises(DataError, match=r"a.csv:3: a quote is opened and not closed"):
        read_documents(path)
    assert csv.field_size_limit() == before


# JSON lines

JSONL = '{"id": 7, "Body": "the puck\\nand \\u00e9", "topic": "rec"}\n\n{"topic": 3, "Body": "", "x": [1]}\r\n'


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.txt", "a.json.xz"])
def test_json_lines(put, name):
    path = put(name, "\ufeff" + JSONL)
    assert found(read_documents(path)) == (["rec", "3"], ["the puck and é", ""], [1, 3])
    assert found(read_documents(path, labelled=False)) == (None, ["the puck and é", ""], [1, 3])


def test_json_keys_and_labels(put):
    values = ["rec", 3, -12, True, False, " sci "]
    lines = "".join(json.dumps({"2": f"t{k}", "y": value}) + "\n" for k, value in enumerate(values))
    path = put("a.dat", lines)
    documents = read_documents(path, text_column="2", label_column="y")
    assert documents.labels == ["rec", "3", "-12", "true", "false", "sci"]
    assert documents.texts == [f"t{k}" for k in range(6)]


def test_json_columns_that_are_not_there(put):
    path = put("a.jsonl", '{"a": "x", "label": "y"}\n')
    with pytest.raises(DataError, match=r"a.jsonl:1: no column is called text, .*; there are a, label; name one with"):
        read_documents(path)
    with pytest.raises(DataError, match=r"a.jsonl:1: has no 'body'; it has a, label"):
        read_documents(path, text_column="body")
    with pytest.raises(DataError, match=r"a.json: is a JSON list; write its objects one a line"):
        read_documents(put("a.json", '[{"text": "x"}]'), labelled=False)


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
def test_formats_are_told_apart(head, name, columns, format):
    assert detect_format(name, head.encode(), columns) == format


# Pipes, which can be opened once and read once

N = 20_000
TEXT = {
    "tsv": "".join(f"c{k % 2}\tword{k}\n" for k in range(N)),
    "text": "".join(f"word{k}\n" for k in range(N)),
    "csv": "text,label\n" + "".join(f"word{k},c{k % 2}\n" for k in range(N)),
    "jsonl": "".join(f'{{"text": "word{k}", "label": "c{k % 2}"}}\n' for k in range(N)),
    "svmlight": "".join(f"c{k % 2} {k + 1}:0.5\n" for k in range(N)),
    "lyrl": "".join(f".I {k}\n.W\nword{k}\n\n" for k in range(N)),
}


def feed(path: str | int, content: bytes) -> threading.Thread:
    def write() -> None:
        with open(path, "wb") as stream:
            stream.write(content)

    thread = threading.Thread(target=write)
    thread.start()
    return thread


@pytest.mark.parametrize("format", [*TEXT])
def test_a_pipe_is_read_from_its_first_line_to_its_last(tmp_path, format):
    content = TEXT[format].encode()
    assert len(content) > 2 * 2**16
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    writer = feed(str(fifo), content)
    documents = read_documents(fifo, labelled=False)
    writer.join()
    assert len(documents) == N
    assert documents.lines.tolist() == [k * 4 + 1 if format == "lyrl" else k + 1 + (format == "csv") for k in range(N)]
    if documents.vectors is not None:
        assert documents.vectors.indices.tolist() == list(range(1, N + 1))
    else:
        assert documents.texts == [f"word{k}" for k in range(N)]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_standard_input(monkeypatch, pack):
    reading, writing = os.pipe()
    writer = feed(writing, pack(TEXT["tsv"].encode()))
    with open(reading, "rb") as stream:
        monkeypatch.setattr(files.sys, "stdin", SimpleNamespace(buffer=stream))
        documents = read_documents("-")
    writer.join()
    assert documents.labels == [f"c{k % 2}" for k in range(N)]
    assert documents.where(0) == "-:1"
