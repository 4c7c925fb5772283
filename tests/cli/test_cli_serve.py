"""serve and replay on the command line: from files to a session, links, going on, and what is refused."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from sparsezo.model import load_model
from sparsezo.serve import server
from sparsezo.storage.locks import locked
from sparsezo.tasks.registry import kind

RAW = "The cat sat on the mat .\nA dog saw the red house .\nHer house was small .\nThe dog ate a fish .\n" * 10


@pytest.fixture
def served(monkeypatch, program, tmp_path):
    """Run serve with somebody who answers so many questions; (code, links, standard error)."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "raw.txt").write_text(RAW)

    def run(*words, answers=3, ends=None):
        def serve(session, host, port, ready):
            ready(f"http://{host}:{port}")
            person = next(each for each in session.persons.values() if not each.admin)
            for _ in range(answers):
                question = session.ask(person)[0]
                session.tell(person, question["id"], (question["choices"] or [3])[0])
            if ends is not None:
                raise ends

        monkeypatch.setattr(server, "serve", serve)
        code, out, err = program("serve", *words)
        links = dict(line.split("\t") for line in out.splitlines())
        return code, links, err

    return run


def test_from_raw_text_to_a_model(served, program, tmp_path):
    code, links, err = served("chunking", "--inputs", "raw.txt", "--tags", "NP", "--person", "Ann", "--person", "Bob")
    assert code == 0
    assert list(links) == ["Ann", "Bob", "admin"]
    assert links["Ann"].startswith("http://127.0.0.1:8765/#")
    assert links["admin"].startswith("http://127.0.0.1:8765/admin#")
    assert "raw.serve" in err
    token = links["Ann"].partition("#")[2]
    assert token not in err
    code, out, err = program("replay", "raw.serve", "-o", "m.szo")
    assert (code, out) == (0, "")
    model = load_model(tmp_path / "m.szo", "chunking")
    assert model.result["answers"] == 3
    assert model.task.tags == ("B-NP", "I-NP", "O")
    code, _, _ = program("replay", "raw.serve", "-o", "n.szo", "--without", "Ann")
    assert code == 0
    assert not load_model(tmp_path / "n.szo").W.any()


def test_a_session_is_gone_on_with_and_keeps_its_people_and_links(served):
    _, first, _ = served("chunking", "--inputs", "raw.txt", "--tags", "NP")
    code, links, err = served("chunking", "--log", "raw.serve")
    assert code == 0
    assert list(links) == ["admin"]
    assert "person-1 are as they were" in err
    assert "6 answers" in err
    code, links, _ = served("chunking", "--inputs", "raw.txt", "--person", "person-1")
    assert list(links) == ["person-1", "admin"]
    assert links["person-1"] != first["person-1"]
    _, links, _ = served("chunking", "--log", "raw.serve", "--people", "3")
    assert list(links) == ["person-2", "person-3", "admin"]


def test_a_model_is_started_from(served, program, tmp_path):
    served("chunking", "--inputs", "raw.txt", "--tags", "NP", answers=10)
    program("replay", "raw.serve", "-o", "m.szo")
    code, _, _ = served("chunking", "--inputs", "raw.txt", "--model", "m.szo", "--log", "warm", answers=0)
    assert code == 0
    program("replay", "warm", "-o", "w.szo")
    assert np.array_equal(load_model(tmp_path / "m.szo").W, load_model(tmp_path / "w.szo").W)


def test_dev_is_watched(served, monkeypatch, tmp_path):
    rows = "The B-NP\ncat I-NP\nsat O\n\n" * 4
    (tmp_path / "dev.txt").write_text(rows)
    code, _, _ = served("chunking", "--inputs", "raw.txt", "--tags", "NP", "--dev", "dev.txt")
    assert code == 0
    code, _, _ = served("chunking", "--log", "raw.serve", "--dev", "dev.txt")
    assert code == 0


@pytest.mark.parametrize("name", ["text", "rerank"])
def test_the_other_tasks(served, program, tmp_path, name):
    if name == "text":
        (tmp_path / "raw.txt").write_text("the cat sat\nrates rose again\n" * 30)
        words = ["text", "--inputs", "raw.txt", "--classes", "pets,money"]
    else:
        kind("rerank").make().write(tmp_path / "raw.nbest", tmp_path / "weights", 40, 1, None)
        (tmp_path / "raw.ref").unlink()
        (tmp_path / "raw.src").write_text("".join(f"source {k}\n" for k in range(40)))
        words = ["rerank", "--inputs", "raw.nbest", "--source", "raw.src", "--store", "stores"]
    code, links, err = served(*words)
    assert code == 0, err
    assert "person-1" in links
    code, _, err = served(name, "--log", "raw.serve")
    assert code == 0, err
    assert "6 answers" in err
    assert program("replay", "raw.serve", "-o", "m.szo")[0] == 0


def test_a_backup_is_a_session(served, program, tmp_path):
    served("chunking", "--inputs", "raw.txt", "--tags", "NP")
    code, out, err = program("serve", "chunking", "--log", "raw.serve", "--backup", "copy")
    assert (code, out) == (0, "")
    assert "copied raw.serve to copy: 3 events" in err
    code, _, err = served("chunking", "--log", "copy")
    assert code == 0
    assert "stopped: 6 answers in copy" in err
    code, _, err = program("serve", "chunking", "--log", "raw.serve", "--backup", "copy")
    assert code == 2
    assert "--backup copy: is there already; name a new folder" in err
    code, _, err = program("serve", "chunking", "--inputs", "other.txt", "--backup", "copy2")
    assert code == 2
    assert "there is no session to back up" in err


def test_a_session_that_is_served_already_is_refused_with_the_option_of_serve(served):
    served("chunking", "--inputs", "raw.txt", "--tags", "NP")
    with locked(Path("raw.serve")):
        code, _, err = served("chunking", "--log", "raw.serve")
    assert code == 1
    assert err.splitlines()[-1].endswith(
        "another process is serving from it; wait for it, or name another place with --log"
    )


def test_replay_replaces_no_model_unasked(served, program, tmp_path):
    served("chunking", "--inputs", "raw.txt", "--tags", "NP")
    (tmp_path / "m.szo").write_text("mine")
    code, _, err = program("replay", "raw.serve", "-o", "m.szo")
    assert code == 2
    assert "m.szo: is there already; add --force to replace it, or name another file with -o" in err
    assert (tmp_path / "m.szo").read_text() == "mine"
    code, _, err = program("replay", "raw.serve", "-o", "m.szo", "--force")
    assert code == 0, err
    assert load_model(tmp_path / "m.szo").result["answers"] == 3
    assert program("replay", "raw.serve", "-o", "/dev/null")[0] == 0


def test_interrupted_it_is_saved(served, program):
    code, _, err = served("chunking", "--inputs", "raw.txt", "--tags", "NP", ends=KeyboardInterrupt())
    assert code == 130
    assert "stopped: 3 answers in raw.serve" in err


REFUSED = [
    (["chunking"], "--inputs"),
    (["chunking", "--log", "nowhere"], "no session to go on with"),
    (["chunking", "--inputs", "gone.txt", "--tags", "NP"], "gone.txt"),
    (["chunking", "--inputs", "raw.txt", "--tags", "NP", "--overlap", "2"], "--overlap 2"),
    (["chunking", "--inputs", "raw.txt", "--tags", "NP", "--audit", "-1"], "--audit"),
    (["chunking", "--inputs", "raw.txt", "--tags", "NP", "--audit", "5000"], "--audit 5000"),
    (["chunking", "--inputs", "raw.txt", "--tags", "NP", "--port", "70000"], "--port 70000"),
    (["chunking", "--inputs", "raw.txt", "--tags", "NP", "--people", "2", "--person", "A"], "--person and --people"),
    (["chunking", "--inputs", "raw.txt", "--tags", "NP", "--rule", "rate"], "rate"),
    (["chunking", "--inputs", "raw.txt", "--tags", "NP", "--rule", "supervised"], "supervised"),
    (["chunking", "--inputs", "raw.txt", "--tags", "NP", "--source", "raw.txt", "--person", "a\nb"], "name"),
    (["text", "--inputs", "raw.txt", "--classes", "a,b", "--source", "one.txt"], "--source has 1 lines"),
]


@pytest.mark.parametrize(("words", "message"), REFUSED)
def test_what_is_wrong_is_one_line(served, tmp_path, words, message):
    (tmp_path / "one.txt").write_text("one\n")
    code, _, err = served(*words)
    assert code in (1, 2)
    assert message in err.splitlines()[-1]
    assert not (tmp_path / "raw.serve" / "log.sqlite").exists() or message == "name"


def test_what_a_session_was_made_with_stays(served, program, tmp_path):
    served("chunking", "--inputs", "raw.txt", "--tags", "NP")
    assert "--h 0.7" in served("chunking", "--log", "raw.serve", "--h", "0.7")[2]
    assert "--audit 7: the session" in served("chunking", "--log", "raw.serve", "--audit", "7")[2]
    assert "use serve chunking" in served("text", "--log", "raw.serve")[2]
    assert "name a dev file" in served("chunking", "--log", "raw.serve", "--dev", "5")[2]
    (tmp_path / "raw.txt").write_text(RAW + "More .\n")
    assert "other inputs" in served("chunking", "--inputs", "raw.txt", "--tags", "NP")[2]
    code, _, err = program("replay", "raw.serve", "-o", "m.szo", "--without", "Eve")
    assert code == 1
    assert "nobody of the name 'Eve'" in err


def test_what_is_not_installed_is_named_in_one_line(served, monkeypatch):
    monkeypatch.setitem(sys.modules, "fastapi", None)
    code, _, err = served("chunking", "--inputs", "raw.txt", "--tags", "NP")
    assert code == 2
    assert "needs fastapi; install with: pip install fastapi" in err.splitlines()[-1]


def test_replay_of_what_is_no_session_is_one_line(program, tmp_path):
    code, _, err = program("replay", tmp_path, "-o", tmp_path / "m.szo")
    assert code == 1
    assert "is no folder of a session" in err
    assert len(err.splitlines()) == 1
