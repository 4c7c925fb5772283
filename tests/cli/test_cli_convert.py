"""convert: spans survive the way into every format and back."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from sparsezo.cli.app import make_app
from sparsezo.errors import UsageError
from sparsezo.tasks.chunking.io.formats import FORMATS, read_documents

pytestmark = pytest.mark.usefixtures("plain")
DOCUMENTS = [
    {
        "id": "a",
        "text": "In Madrid wohnt Ana Botín. Sie mag  es.",
        "spans": [{"start": 3, "end": 9, "label": "LOC"}, {"start": 16, "end": 25, "label": "PER"}],
    },
    {"id": "b", "text": "Nichts hier 😀 bei Bosch-Werk.", "spans": [{"start": 18, "end": 23, "label": "ORG"}]},
]
ENDINGS = {"spacy": "x.spacy", "datasets": "x.parquet", "brat": "x.zip", "label-studio": "x.json", "conll": "x.conll"}


def convert(*words: str) -> None:
    make_app()(["convert", *words], standalone_mode=False)


@pytest.fixture
def given(tmp_path) -> Path:
    path = tmp_path / "given.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in DOCUMENTS), "utf-8")
    return path


def spans(path: Path) -> list[tuple[str, str]]:
    return [(each.text[s.start : s.end], s.label) for each in read_documents(path) for s in each.spans or ()]


@pytest.mark.parametrize("there", FORMATS)
@pytest.mark.parametrize("back", FORMATS)
def test_spans_survive_there_and_back(given, tmp_path, there, back):
    wanted = [("Madrid", "LOC"), ("Ana Botín", "PER"), ("Bosch", "ORG")]
    first, second, last = (
        tmp_path / f"1{ENDINGS.get(there, '')}",
        tmp_path / f"2{ENDINGS.get(back, '')}",
        tmp_path / "3.jsonl",
    )
    convert(str(given), str(first), "--to", there)
    convert(str(first), str(second), "--to", back)
    convert(str(second), str(last))
    assert spans(first) == spans(second) == spans(last) == wanted
    if not {there, back} & {"conll", "datasets"}:  # which have tokens alone
        assert [each.text for each in read_documents(last)] == [each["text"] for each in DOCUMENTS]


@pytest.mark.parametrize(("format", "name"), ENDINGS.items())
def test_the_ending_names_the_format(given, tmp_path, format, name):
    convert(str(given), str(tmp_path / name))
    assert spans(tmp_path / name) == [("Madrid", "LOC"), ("Ana Botín", "PER"), ("Bosch", "ORG")]
    assert next(read_documents(tmp_path / name, format)).spans


def test_raw_text_and_standard_streams(tmp_path, monkeypatch):
    raw = io.BytesIO("Ana wohnt in Łódź.\nBo auch.\n".encode())
    out = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=raw, isatty=lambda: False, closed=False))
    monkeypatch.setattr(sys, "stdout", out)
    convert("-", "-", "--to", "conll", "--from", "text")
    assert "Łódź O\n. O\n" in out.buffer.getvalue().decode()


def test_what_it_is_not_told_it_asks_for(given, tmp_path):
    with pytest.raises(UsageError, match=r"x.what: which format is it to have.* `to`: jsonl, conll, brat"):
        convert(str(given), str(tmp_path / "x.what"))
    for name in ("from", "to"):
        with pytest.raises(UsageError, match=f"`{name}` odd: choose from jsonl, conll, brat"):
            convert(str(given), str(tmp_path / "x.jsonl"), f"--{name}", "odd")
    assert not list(tmp_path.glob("x.*"))
