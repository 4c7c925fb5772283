"""convert: every format to every other and back, formats by name, pipes, and what is refused."""

from __future__ import annotations

import io
import itertools
import sys

import pytest

from sparsezo.cli.convert import run_convert
from sparsezo.tasks.chunking.io.documents import Document, Span
from sparsezo.tasks.chunking.io.formats import ENDINGS, FORMATS, read_documents, write_documents

TEXTS = ["In Madrid , Ana Pérez spoke .", "Nobody came .", "😀 Eva left Łódź ."]  # as columns would paste them
SPANS = [((3, 9, "LOC"), (12, 21, "PER")), (), ((2, 5, "PER"), (11, 15, "LOC"))]
NAMES = [*(f"x{ending}" for ending in ENDINGS.values()), "folder/", "x.parquet", "x.jsonl.gz", "x.conll.xz"]


def said(path):
    """By text; brat's files come in the order of their names."""
    found = {each.text: tuple((s.start, s.end, s.label) for s in each.spans) for each in read_documents(path)}
    return [(text, found[text]) for text in TEXTS if text in found]


@pytest.fixture
def start(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    documents = [
        Document(text, str(k), tuple(Span(*span) for span in spans))
        for k, (text, spans) in enumerate(zip(TEXTS, SPANS, strict=True), start=1)
    ]
    write_documents(documents, "jsonl", "start.jsonl")
    return "start.jsonl"


def test_from_every_format_to_every_other_and_back(start, tmp_path):
    for first, second in itertools.permutations(FORMATS, 2):
        one, two, back = (f"{first}-{second}-{k}{ENDINGS[each]}" for k, each in enumerate((first, second, first)))
        for source, target in ((start, one), (one, two), (two, back)):
            run_convert(source, target, None, None)
        assert said(back) == list(zip(TEXTS, SPANS, strict=True)), (first, second)


@pytest.mark.parametrize("name", NAMES)
def test_the_name_tells_the_format(name, start):
    run_convert(start, name, None, None)
    assert said(name) == list(zip(TEXTS, SPANS, strict=True))


def test_through_pipes(start, program, monkeypatch):
    code, out, err = program("convert", start, "-", "--to", "label-studio")
    assert (code, err) == (0, "")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(out.encode())))
    code, out, err = program("convert", "-", "x.spacy")
    assert (code, out, err) == (0, "", "wrote x.spacy: 3 documents, spacy\n")
    assert said("x.spacy") == list(zip(TEXTS, SPANS, strict=True))


def test_raw_text_becomes_tasks_to_import(tmp_path, program, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "raw.txt").write_text("Ana came.\nEva left.\nNobody else.\n")
    assert program("convert", "raw.txt", "tasks.json")[0] == 0
    assert [(each.text, each.spans) for each in read_documents("tasks.json")] == [
        ("Ana came.", None),
        ("Eva left.", None),
        ("Nobody else.", None),
    ]


def test_what_the_target_cannot_say_is_said(tmp_path, program, monkeypatch):
    monkeypatch.chdir(tmp_path)
    spans = (Span(0, 9, "PER"), Span(0, 3, "PER"))
    write_documents([Document("Ana Pérez", "1", spans, (Span(4, 9, "PER"),))], "jsonl", "x.jsonl")
    code, _, err = program("convert", "x.jsonl", "x.conll")
    assert code == 0
    assert err.splitlines() == [
        "x.conll: 1 span left out: of spans that overlap the longest is kept",
        "x.conll: 1 suggested span left out: tags have no place for them",
        "wrote x.conll: 1 document, conll",
    ]


def test_what_is_refused_is_one_line(start, program, tmp_path):
    formats = "jsonl, conll, brat, spacy, prodigy, label-studio, datasets"
    for words, code, err in (
        ((start, "-"), 2, f"standard output: the name does not tell its format; choose --to from {formats}"),
        ((start, "x.foo"), 2, f"x.foo: the name does not tell its format; choose --to from {formats}"),
        ((start, "-", "--to", "foo"), 2, f"--to foo: choose from {formats}"),
        ((start, "x.spacy", "--from", "foo"), 2, f"--from foo: choose from {formats}"),
        (("nowhere.json", "x.spacy"), 1, "nowhere.json: no such file; check the path"),
        (
            (start, "none/x.spacy"),
            1,
            "none/x.spacy: cannot be written (No such file or directory); make its folder first or name another place",
        ),
    ):
        assert program("convert", *words) == (code, "", f"sparsezo: {err}\n")
    assert [each.name for each in tmp_path.iterdir()] == [start]
