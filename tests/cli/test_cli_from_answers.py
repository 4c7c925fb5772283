"""train --from-answers and serve --from-answers on the command line."""

from __future__ import annotations

import contextlib
import json

import numpy as np
import pytest

from sparsezo.model import load_model
from sparsezo.serve.folder import read
from sparsezo.serve.store import AuditRow, QuestionRow, Store

DEV = "The B-NP\ncat I-NP\nsat O\n\nHer B-NP\nhouse I-NP\nwas O\n\n" * 3


@pytest.fixture
def session(served, tmp_path):
    (tmp_path / "dev.txt").write_text(DEV)
    begin = ["chunking", "--inputs", "raw.txt", "--tags", "NP", "--rule", "span", "--audit", "0", "--person", "Ann"]
    code, _, err = served(*begin, answers=12)
    assert code == 0, err
    return served


def test_the_session_alone_is_enough(session, program, tmp_path):
    program("replay", "raw.serve", "-o", "r.szo")
    code, out, err = program(
        "train", "chunking", "--from-answers", "raw.serve", "--passes", "1", "-o", "m.szo", "--json"
    )
    assert code == 0, err
    assert "raw.serve: 12 answers about sentences, gone over 1 time" in err
    result = json.loads(out.splitlines()[-1])
    assert (result["answers"], result["passes"], result["from_answers"]) == (12, 1, "raw.serve")
    assert np.array_equal(load_model(tmp_path / "m.szo").W, load_model(tmp_path / "r.szo").W)


def test_reviews_alone_make_the_model_that_the_session_exports(served, program, tmp_path):
    code, _, err = served("chunking", "--inputs", "raw.txt", "--tags", "NP", "--audit", "0", answers=9)
    assert code == 0, err
    program("replay", "raw.serve", "-o", "r.szo")
    for given in ("raw.serve", "answers.jsonl"):
        code, _, err = program("train", "chunking", "--from-answers", given, "-o", "m.szo", "--force")
        assert code == 0, err
        if given == "raw.serve":  # the export has no other inputs, and so other features
            assert np.array_equal(load_model(tmp_path / "m.szo").W, load_model(tmp_path / "r.szo").W)
    code, _, err = served("chunking", "--from-answers", "raw.serve", "--log", "new.serve", answers=3)
    assert code == 0, err
    asked = {row.x: json.loads(row.outputs)[0] for row in served.asked}
    with contextlib.closing(Store(tmp_path / "new.serve" / "log.sqlite")) as store:
        left = dict(store.meta["reviewed"])
    assert len(left) == 9
    assert all(left.get(x) != output for x, output in asked.items())


def test_other_features_are_learned_with_dev_and_test(session, program, tmp_path):
    words = ["--from-answers", "raw.serve", "--features", "chunking", "--order", "1", "--dev", "dev.txt"]
    code, out, err = program("train", "chunking", *words, "--test", "dev.txt", "--h", "0.3", "-o", "m.szo", "--json")
    assert code == 0, err
    result = json.loads(out.splitlines()[-1])
    assert (result["passes"], result["h"]) == (5, 0.3)
    assert result["test"] == result["dev"] is not None
    assert 1 <= result["best_pass"] <= 5
    model = load_model(tmp_path / "m.szo")
    assert (model.task.order, model.task.tags, model.task.split) == (1, ("B-NP", "I-NP", "O"), "sentences")
    (tmp_path / "new.txt").write_text("The cat sat .\n")
    code, out, err = program("predict", "m.szo", "new.txt")
    assert code == 0, err
    assert json.loads(out.splitlines()[0])["text"].strip() == "The cat sat ."


def test_the_export_alone_and_with_other_inputs(session, program, tmp_path):
    code, _, err = program("train", "chunking", "--from-answers", "answers.jsonl", "-o", "m.szo")
    assert code == 0, err
    assert load_model(tmp_path / "m.szo").result["answers"] == 12
    lines = (tmp_path / "raw.txt").read_text().splitlines()[:3]
    (tmp_path / "other.txt").write_text("\n".join(["A new one .", *reversed(lines)]) + "\n")
    words = ["--from-answers", "answers.jsonl", "--train", "other.txt", "--force"]
    code, _, err = program("train", "chunking", *words, "-o", "m.szo")
    assert code == 0, err
    there = load_model(tmp_path / "m.szo").result["answers"]
    assert there == 12 or f"{12 - there} about inputs that are not there" in err
    assert "'new'" not in err


REFUSED = [
    (["--tags", "NP,VP"], "--tags NP,VP: the answers are about NP (VP new)"),
    (["--train", "raw.txt", "--tags", "VP"], "B-NP, I-NP are missing and B-VP, I-VP are new"),
    (["--iterations", "5"], "--iterations has no place with --from-answers"),
    (["--perturb", "score"], "--perturb has no place"),
    (["--ask", "random"], "--ask has no place"),
    (["--split", "lines"], "--split: the inputs are the session's own"),
    (["--column", "2"], "--column says how files are read"),
    (["--dev", "5"], "name a dev file"),
    (["--passes", "0"], "--passes 0: must be at least 1"),
    (["--rule", "supervised"], "--rule supervised learns from no answers"),
    (["--from-answers", "dev.txt"], "dev.txt:1: is no JSON"),
    (["--from-answers", "gone"], "gone"),
    (["-o", "dev.txt"], "dev.txt: is there already"),
]


def test_what_does_not_go_together_is_one_line(session, program, tmp_path):
    for words, message in REFUSED:
        code, _, err = program("train", "chunking", "--from-answers", "raw.serve", "-o", "m.szo", *words)
        assert code in (1, 2), words
        assert message in err.splitlines()[-1], words
        assert not (tmp_path / "m.szo").exists()
    code, _, err = program("train", "text", "--from-answers", "raw.serve", "-o", "m.szo")
    assert (code, "has answers of task chunking, not of text" in err) == (2, True)
    code, _, err = program("train", "chunking", "-o", "m.szo")
    assert (code, "give --train" in err) == (2, True)
    code, _, err = program("train", "chunking", "--train", "dev.txt", "--passes", "2", "-o", "m.szo")
    assert (code, "--passes is of --from-answers" in err) == (2, True)


def log_of(folder):
    """(meta, the audit set, questions)"""
    with contextlib.closing(Store(folder / "log.sqlite")) as store:
        return store.meta, store.rows(AuditRow), store.rows(QuestionRow)


def test_a_new_session_begins_with_the_answers(session, program, tmp_path):
    words = ["chunking", "--from-answers", "raw.serve", "--order", "1", "--log", "new"]
    code, _, err = session(*words, answers=0)
    assert code == 0, err
    program("train", "chunking", "--from-answers", "raw.serve", "--order", "1", "-o", "m.szo")
    program("replay", "new", "-o", "n.szo")
    assert np.array_equal(load_model(tmp_path / "n.szo").W, load_model(tmp_path / "m.szo").W)
    assert read(tmp_path / "new").task.order == 1
    meta, old = log_of(tmp_path / "new")[0], log_of(tmp_path / "raw.serve")[0]
    where = {"path": "raw.serve", "session": old["id"], "answers": 12, "passes": 5}
    assert meta["from_answers"] == where
    code, _, err = session(*words, answers=3)  # the same command goes on, with another session's answers since or not
    assert code == 0, err
    assert "going on with new" in err
    code, _, err = session(*words, "--passes", "2")
    assert (code, "--passes 2 (it has 5)" in err) == (2, True)
    code, _, err = session("chunking", "--log", "raw.serve", "--from-answers", "new")
    assert (code, "--from-answers new (it began without)" in err) == (2, True)


def test_what_is_settled_is_not_asked_again(session, tmp_path):
    known = {(row.x, *row.numbers) for row in session.asked}
    spans = {(row.x, i) for row in session.asked for i in range(*_ends(row))}
    assert len(known) == 12
    session("chunking", "--from-answers", "raw.serve", "--log", "new", "--audit", "0", answers=40)
    assert len(session.asked) == 40
    for row in session.asked:
        assert not all((row.x, i) in spans for i in range(*_ends(row)))


def _ends(row):
    first, _, last, _ = json.loads(row.numbers)
    return first, last + 1


def test_the_audit_set_is_never_what_was_learned_from(served, program, tmp_path):
    served("chunking", "--inputs", "raw.txt", "--tags", "NP", "--audit", "10", answers=12)
    (tmp_path / "answers.jsonl").rename(tmp_path / "kept.jsonl")
    audits = log_of(tmp_path / "raw.serve")[1]
    assert served("chunking", "--from-answers", "raw.serve", "--log", "new", answers=0)[0] == 0
    meta, mine, _ = log_of(tmp_path / "new")
    assert mine == audits
    assert (meta["audit"], meta["audit_parts"]) == (10, 10)
    words = ["--from-answers", "kept.jsonl", "--inputs", "raw.txt", "--log", "third", "--audit", "15"]
    code, _, err = served("chunking", *words, answers=0)
    assert code == 0, err
    meta, mine, _ = log_of(tmp_path / "third")
    learned = {x for x, _ in meta["reviewed"]}
    assert learned
    assert meta["audit_parts"] == 15
    assert not {row.x for row in mine} & learned


def test_a_session_that_cannot_begin_so_is_one_line(session, tmp_path):
    for words, message in [
        (["--from-answers", "raw.serve"], "name the new session's folder with --log"),
        (["--from-answers", "answers.jsonl", "--log", "new"], "give --inputs"),
        (["--from-answers", "raw.serve", "--log", "new", "--tags", "VP"], "the answers are about NP"),
        (["--inputs", "raw.txt", "--tags", "NP", "--log", "new", "--passes", "3"], "--passes is of --from-answers"),
    ]:
        code, _, err = session("chunking", *words)
        assert code == 2, words
        assert message in err.splitlines()[-1]
        assert not (tmp_path / "new" / "log.sqlite").exists()
