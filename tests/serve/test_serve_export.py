"""What a session has gathered, as files; its folder read again; the log, which is only added to."""

from __future__ import annotations

import csv
import io
import json
import shutil
import sqlite3
from dataclasses import replace

import numpy as np
import pytest
from sessions import answered, made, opened, someone, weights

from sparsezo.errors import DataError, SparsezoError, UsageError
from sparsezo.model import load_model
from sparsezo.questions import Question
from sparsezo.serve import folder as folders
from sparsezo.serve.log import EventRow, Log
from sparsezo.serve.replay import replay
from sparsezo.tasks.chunking import serving
from sparsezo.tasks.chunking.conll import read_conll


def exported(session, what):
    name, media_type, pieces = session.export(what)
    assert "/" in media_type
    return name, b"".join(pieces).decode()


def test_answers_are_a_line_each_with_task_worker_and_label(tmp_path):
    with opened(tmp_path / "s", overlap=1.0, max_ahead=1) as session:
        ann, bob = someone(session, "Ann, the first"), someone(session, "Bob")
        first = session.ask(ann)[0]
        session.tell(ann, first["id"], "yes", seconds=2.5)
        second = session.ask(bob)[0]
        session.tell(bob, second["id"], "O")
        taken_back = session.ask(ann)[0]
        session.tell(ann, taken_back["id"], "no")
        session.undo(ann)
        rows = [json.loads(line) for line in exported(session, "answers.jsonl")[1].splitlines()]
        assert [(row["task"], row["worker"], row["label"], row["kind"]) for row in rows] == [
            ("q1", "Ann, the first", "yes", "part"),
            ("q1", "Bob", "O", "label"),
        ]
        assert rows[0]["seconds"] == 2.5
        assert 0 < rows[0]["chance"] <= 1
        assert rows[0]["shown"]["label"] == first["shown"]["tag"]
        assert rows[0]["audit"] is False
        name, text = exported(session, "answers.csv")
        table = list(csv.DictReader(io.StringIO(text)))
        assert name == "answers.csv"
        assert [row["worker"] for row in table] == ["Ann, the first", "Bob"]
        assert list(table[0])[:3] == ["task", "worker", "label"]


def test_flags_are_listed_and_exported_with_their_questions_in_words(tmp_path):
    with opened(tmp_path / "s", max_ahead=2) as session:
        ann, bob = someone(session), someone(session, "Bob")
        assert session.flagged() == []
        first, second = session.ask(ann)[0], session.ask(bob)[0]
        session.flag(ann, first["id"], "torn “apart”")
        session.flag(bob, second["id"], "")
        session.skip(bob, second["id"])
        listed = session.flagged()
    with opened(tmp_path / "s") as session:
        assert session.flagged() == listed
        name, text = exported(session, "flags.jsonl")
    assert name == "flags.jsonl"
    rows = [json.loads(line) for line in text.splitlines()]
    assert rows == listed[::-1]
    assert [(row["worker"], row["question"], row["text"], row["note"]) for row in rows] == [
        ("Ann", first["id"], first["text"], "torn “apart”"),
        ("Bob", second["id"], second["text"], ""),
    ]
    assert rows[0]["input"] == " ".join(first["shown"]["words"])
    assert rows[0]["at"] <= rows[1]["at"]


def test_audits_are_marked(tmp_path):
    with opened(tmp_path / "s", audit=30, max_ahead=1) as session:
        ann = someone(session)
        answered(session, ann, 100)
        rows = [json.loads(line) for line in exported(session, "answers.jsonl")[1].splitlines()]
        assert sum(row["audit"] for row in rows) == len(session.audit_table()) > 0


@pytest.mark.parametrize("name", ["rerank", "text", "chunking"])
def test_pairs_have_what_was_chosen_and_what_was_not(tmp_path, name):
    n = len(made(name)[1])
    source = [f"source {k}" for k in range(n)] if name == "rerank" else None
    with opened(tmp_path / "s", name, {"rule": "pair"}, source=source) as session:
        ann = someone(session)
        wanted = []
        for k in range(6):
            question = session.ask(ann)[0]
            session.tell(ann, question["id"], ["first", "second", "tie"][k % 3])
            shown = question["shown"]
            texts = shown.get("hypotheses") or shown.get("classes") or [" ".join(each) for each in shown["outputs"]]
            if k % 3 < 2:
                wanted.append((texts[k % 3], texts[1 - k % 3]))
            if source:
                assert shown["source"].startswith("source ")
        rows = [json.loads(line) for line in exported(session, "pairs.jsonl")[1].splitlines()]
        assert [(row["chosen"], row["rejected"]) for row in rows] == wanted
        assert all(row["prompt"] for row in rows)


def test_the_corpus_tells_answers_from_guesses(tmp_path):
    with opened(tmp_path / "s") as session:
        ann = someone(session)
        certain = {}
        for k in range(30):
            question = session.ask(ann)[0]
            row = session.desk.row(int(question["id"][1:]))
            answer = ["yes", "no", "B-NP", "O", "I-NP"][k % 5]
            session.tell(ann, question["id"], answer)
            if answer != "no":
                tag = question["shown"]["tag"] if answer == "yes" else answer
                certain[row.x, question["shown"]["first"]] = tag
        (tmp_path / "corpus.conll").write_text(exported(session, "corpus")[1])
    corpus = read_conll(tmp_path / "corpus.conll")
    _, data = made("chunking")
    assert corpus.columns[: len(data.columns)] == data.columns
    assert corpus.tags.count("answered") == len(certain)
    for (x, place), tag in certain.items():
        at = int(data.offsets[x]) + place
        assert corpus.tags[at] == "answered"
        if (x, place - 1) not in certain and place > 0:  # two answers may contradict each other
            assert corpus.columns[-1][at] == tag


def test_a_guess_that_contradicts_an_answer_gives_way(tmp_path):
    task, data = made("chunking")
    question = Question("", 0, 0, "part", "token", (2, 0, 2, 0), (), 1.0, (), ())
    outside = np.full(data.n_tokens, task.tags.index("O"), np.int32)
    lines = list(serving.annotated(task, data, outside, [(question, "label", "I-NP")]))
    rows = [line.split() for line in lines[: int(data.offsets[1])]]
    assert [row[-2:] for row in rows[:4]] == [
        ["O", "guess"],
        ["B-NP", "guess"],  # so that the chunk goes on
        ["I-NP", "answered"],
        ["O", "guess"],
    ]
    about_chunk = replace(question, about="chunk", numbers=(1, 0, 3, 0))
    lines = list(serving.annotated(task, data, outside, [(about_chunk, "part", "yes")]))
    marks = [line.split()[-2:] for line in lines[:5]]
    assert marks[1:4] == [["B-NP", "answered"], ["I-NP", "answered"], ["I-NP", "answered"]]
    assert marks[4][1] == "guess"
    assert list(serving.annotated(task, data, outside, [(question, "part", "no")]))[2].split()[-1] == "guess"


def test_the_corpus_of_documents_is_class_text_and_mark(tmp_path):
    with opened(tmp_path / "s", "text") as session:
        ann = someone(session)
        question = session.ask(ann)[0]
        session.tell(ann, question["id"], "yes")
        x = session.desk.row(1).x
        lines = exported(session, "corpus")[1].splitlines()
        assert len(lines) == len(made("text")[1])
        assert lines[x].split("\t")[::2] == [question["shown"]["class"], "answered"]
        assert sum(line.endswith("\tanswered") for line in lines) == 1


def test_the_corpus_of_lists_is_the_best_of_each(tmp_path):
    with opened(tmp_path / "s", "rerank") as session:
        lines = exported(session, "corpus")[1].splitlines()
        assert len(lines) == len(made("rerank")[1])
        assert all(line.endswith("\tguess") for line in lines)


@pytest.mark.parametrize("name", ["chunking", "text", "rerank"])
def test_the_model_is_that_of_a_replay_file_by_file(tmp_path, name):
    with opened(tmp_path / "s", name) as session:
        ann = someone(session)
        answered(session, ann, 5)
        _, _, pieces = session.export("model")
        (tmp_path / "model.szo").write_bytes(b"".join(pieces))
        W = weights(session)
    shutil.move(tmp_path / "s", tmp_path / "moved")
    replay(tmp_path / "moved").save(tmp_path / "again.szo")
    assert np.array_equal(load_model(tmp_path / "model.szo", name).W, W)
    assert (tmp_path / "again.szo").read_bytes() == (tmp_path / "model.szo").read_bytes()


def test_an_unknown_export_is_refused(tmp_path):
    with opened(tmp_path / "s") as session, pytest.raises(UsageError, match=r"answers\.csv"):
        session.export("../etc")


def test_no_label_of_the_inputs_is_kept(tmp_path):
    _, data = made("chunking")
    assert data.tags is not None
    with opened(tmp_path / "s"):
        pass
    assert folders.read(tmp_path / "s").data.tags is None


def test_the_log_refuses_to_be_changed(tmp_path):
    with opened(tmp_path / "s") as session:
        ann = someone(session)
        answered(session, ann, 1)
    with sqlite3.connect(tmp_path / "s" / "log.sqlite") as log:
        for table in ("events", "questions", "people", "tokens", "meta"):
            column = {"events": "person", "questions": "person", "people": "name", "tokens": "person"}.get(table, "key")
            for change in (f"UPDATE {table} SET {column} = 7", f"DELETE FROM {table}"):
                with pytest.raises(sqlite3.IntegrityError, match="only added to"):
                    log.execute(change)
    log.close()


def test_a_row_that_cannot_be_added_leaves_none_of_its_group(tmp_path):
    with opened(tmp_path / "s") as session:
        log = session.log
        good = EventRow(1, 0.0, "pause", 0)
        with pytest.raises(SparsezoError):
            log.add([good, EventRow(1, 0.0, "pause", 0)])
        assert log.events() == []


@pytest.mark.parametrize("damage", ["empty", "text", "cut", "version", "gone"])
def test_a_log_that_is_none_is_said_so_in_one_line(tmp_path, damage):
    with opened(tmp_path / "s"):
        pass
    path = tmp_path / "s" / "log.sqlite"
    raw = path.read_bytes()
    if damage == "version":
        with sqlite3.connect(path) as log:
            log.execute("DROP TRIGGER meta_no_update")
            log.execute("UPDATE meta SET value = '9' WHERE key = 'version'")
        log.close()
    elif damage == "gone":
        path.unlink()
    else:
        path.write_bytes({"empty": b"", "text": b"hello\n" * 1000, "cut": raw[: len(raw) // 2]}[damage])
    with pytest.raises((DataError, SparsezoError)) as error:
        replay(tmp_path / "s")
    assert "\n" not in str(error.value)
    if damage != "gone":
        with pytest.raises(SparsezoError):
            Log(path)
