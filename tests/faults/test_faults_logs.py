"""Damaged logs of shown outputs: refused in one line, or read as a plain reader reads them."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest
from delivery import delivered, plain_lines
from mutations import Anything, cases, damaged_lines, damaged_text, endure

from sparsezo import messages
from sparsezo.logged import evaluate_log, learn_log, read_log
from sparsezo.tasks.registry import task_spec

TEXTS = (
    '{"text": "Zürich won 3:0", "label": "sport", "feedback": true, "propensity": 0.25}\n\n'
    '{"text": "the judge", "label": "law", "feedback": 0.5, "user": 7}\r\n'
    '{"text": "the trial 日本", "label": "sport", "feedback": {"label": "law"}, "propensity": 1}\n'
).encode()
SENTENCES = (
    b'{"tokens": ["In", "San", "Juan"], "tags": ["O", "B-LOC", "I-LOC"], "feedback": true, "propensity": 0.5}\n'
    b'{"tokens": ["Ana", "sang"], "spans": [{"first": 0, "last": 0, "label": "PER", "feedback": false}]}\n'
    b'{"tokens": ["Oh"], "tags": ["O"], "feedback": {"tags": ["B-PER"]}}\n'
)
TABLE_HEAD = "text,label,feedback,propensity"
TABLE = (
    f'{TABLE_HEAD}\n"Zürich, ""won""\n3:0",sport,TRUE,0.25\r\n\nthe judge, law ,👎,\nthe trial 日本,sport,up,"0,5"\n'
    "the ball,sport,no,1\n"
).encode()
SPANS = (
    '{"text": "In Madrid. 😀", "spans": [{"start": 3, "end": 9, "label": "LOC"}], "feedback": true}\n'
    '{"text": "Ana sang.", "spans": [], "feedback": {"spans": [{"start": 0, "end": 3, "label": "PER"}]}}\n'
).encode()


def plain(data: bytes):
    """(text, label, reward, propensity) of each line, by the words of docs/logged.md."""
    text = data.decode("utf-8")
    if text.lstrip("\ufeff \t\r\n").startswith("["):
        return Anything  # one list of objects is read, too
    found = []
    for line in plain_lines(data):
        if not line.strip():
            continue
        row = json.loads(line)
        said, chance = row["feedback"], row.get("propensity")
        if isinstance(said, dict):
            said = float(_text(said["label"]) == _text(row["label"]))
        if not isinstance(row["text"], str) or not isinstance(said, int | float) or not 0 <= said <= 1:
            raise ValueError(line)
        if chance is not None and (isinstance(chance, bool) or not 0 < chance <= 1):
            raise ValueError(line)
        found.append((row["text"], _text(row["label"]), float(said), None if chance is None else float(chance)))
    return found


def _text(given: object) -> str:
    if not isinstance(given, str) or not given.strip():
        raise ValueError("no label")
    return given.strip()


def reference(data: bytes):
    try:
        return plain(data)
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(str(error)) from None


@pytest.mark.parametrize("n", cases(120))
@pytest.mark.parametrize("damage", [damaged_text, damaged_lines])
def test_damaged_logs_of_texts(n, damage, tmp_path):
    def read(path):
        with messages.gathered():
            log = read_log(path, "text", options={"hash_bits": 10})
        classes, texts = log.task.classes, log.data.documents.texts
        return [(texts[r.first], classes[r.shown[0][0]], r.reward, r.propensity) for r in log.rows]

    endure(delivered(tmp_path / "x.jsonl", read), TEXTS, damage, n, reference=reference)


@pytest.mark.parametrize("n", cases(60))
def test_damaged_tables(n, tmp_path):
    def read(path):
        with messages.gathered():
            log = read_log(path, "text", options={"hash_bits": 10})
        classes, texts = log.task.classes, log.data.documents.texts
        return [(texts[r.first], classes[r.shown[0][0]], r.reward, r.propensity) for r in log.rows]

    def plain_table(data):
        table = "".join(line + "\n" for line in plain_lines(data)).lstrip("\n")
        head = table.lstrip().partition("\n")[0].split(",")
        if [name.strip(" ") for name in head] != TABLE_HEAD.split(","):
            return Anything  # other columns, parted by something else
        (_, *rows) = (row for row in csv.reader(io.StringIO(table, newline="\n"), strict=True) if row)
        thumbs = {"true": 1.0, "👎": 0.0, "up": 1.0, "no": 0.0}
        found = []
        for text, label, said, chance in rows:
            try:
                reward = float(said.replace(",", "."))
            except ValueError:
                if said.strip().lower() not in thumbs:
                    return Anything  # it may be another of the words
                reward = thumbs[said.strip().lower()]
            p = float(chance.replace(",", ".")) if chance.strip() else None
            if not text.strip() or not 0 <= reward <= 1 or not (p is None or 0 < p <= 1):
                raise ValueError(text)
            found.append((text, _text(label), reward, p))
        return found

    endure(delivered(tmp_path / "x.csv", read), TABLE, damaged_text, n, reference=plain_table)


@pytest.mark.parametrize("n", cases(60))
@pytest.mark.parametrize("sample", [SENTENCES, SPANS])
def test_damaged_logs_of_sentences(n, sample, tmp_path):
    """Whatever is read can be learned from and evaluated by."""

    def read(path):
        with messages.gathered():
            log = read_log(path, "chunking")
            model = learn_log(log, passes=1)
            if any(row.reward is not None for row in log.rows):
                assert np.isfinite(evaluate_log(model, log)["matches"])
        assert {row.first for row in log.rows} == {*range(len(log.data))}
        return task_spec("chunking").name

    endure(delivered(tmp_path / "x.jsonl", read), sample, damaged_lines, n, reference=lambda data: Anything)
