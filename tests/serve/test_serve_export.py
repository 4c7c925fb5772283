"""What a session has gathered, as files; its folder read again; the log, which is only added to."""

from __future__ import annotations

import csv
import io
import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from sessions import answered, made, opened, row_of, someone, weights

from sparsezo.model import load_model
from sparsezo.questions import Question
from sparsezo.serve import folder as folders
from sparsezo.serve.online_model import replay
from sparsezo.tasks.chunking.io.conll import read_conll
from sparsezo.tasks.chunking.serving import SERVING


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
            row = row_of(session, question)
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
    lines = list(SERVING.annotated(task, data, outside, [(question, "label", "I-NP")]))
    rows = [line.split() for line in lines[: int(data.offsets[1])]]
    assert [row[-2:] for row in rows[:4]] == [
        ["O", "guess"],
        ["B-NP", "guess"],  # so that the chunk goes on
        ["I-NP", "answered"],
        ["O", "guess"],
    ]
    about_chunk = replace(question, about="chunk", numbers=(1, 0, 3, 0))
    lines = list(SERVING.annotated(task, data, outside, [(about_chunk, "part", "yes")]))
    marks = [line.split()[-2:] for line in lines[:5]]
    assert marks[1:4] == [["B-NP", "answered"], ["I-NP", "answered"], ["I-NP", "answered"]]
    assert marks[4][1] == "guess"
    assert list(SERVING.annotated(task, data, outside, [(question, "part", "no")]))[2].split()[-1] == "guess"


def test_the_corpus_of_documents_is_class_text_and_mark(tmp_path):
    with opened(tmp_path / "s", "text") as session:
        ann = someone(session)
        question = session.ask(ann)[0]
        session.tell(ann, question["id"], "yes")
        x = session.queue.row(1).x
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


def test_no_label_of_the_inputs_is_kept(tmp_path):
    _, data = made("chunking")
    assert data.tags is not None
    with opened(tmp_path / "s"):
        pass
    assert folders.read(tmp_path / "s").data.tags is None
