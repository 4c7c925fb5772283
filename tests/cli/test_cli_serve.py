"""serve and replay on the command line: from files to a session, links, going on, and what is refused."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import numpy as np
import pytest

from sparsezo.model import load_model
from sparsezo.storage.locks import locked
from sparsezo.tasks.registry import task_spec


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
    nothing = load_model(tmp_path / "n.szo")
    assert nothing.result["answers"] == 0
    assert not (nothing.W == model.W).all()
    assert list(nothing.tag(["The old man saw San Sebastián ."])) == [()]  # as it starts: nothing is tagged


def test_a_session_is_gone_on_with_and_keeps_its_people_and_links(served):
    _, first, _ = served("chunking", "--inputs", "raw.txt", "--tags", "NP")
    assert list(first) == ["person-1", "admin"]
    code, links, err = served("chunking", "--log", "raw.serve")
    assert code == 0
    assert links == first
    assert "6 answers" in err
    _, links, _ = served("chunking", "--inputs", "raw.txt", "--person", "person-1")
    assert links == first
    _, more, _ = served("chunking", "--log", "raw.serve", "--people", "3")
    assert list(more) == ["person-1", "person-2", "person-3", "admin"]
    assert {name: more[name] for name in first} == first


def test_a_new_link_is_made_when_asked_for(served, tmp_path):
    _, first, _ = served("chunking", "--inputs", "raw.txt", "--tags", "NP", "--person", "Ann", "--person", "Bob")
    code, links, _ = served("chunking", "--log", "raw.serve", "--new-link", "Ann")
    assert code == 0
    assert {name for name in links if links[name] != first[name]} == {"Ann"}
    _, again, _ = served("chunking", "--log", "raw.serve", "--new-link", "admin")
    assert {name for name in again if again[name] != links[name]} == {"admin"}
    code, _, err = served("chunking", "--log", "raw.serve", "--new-link", "Eve")
    assert code == 2
    assert "--new-link Eve" in err.splitlines()[-1]
    (tmp_path / "raw.serve" / "links.key").unlink()
    _, links, err = served("chunking", "--log", "raw.serve")
    assert list(links) == ["admin"]
    assert "the links of Ann, Bob are as they were, but cannot be shown again" in err
    assert "--new-link NAME" in err


def test_a_model_is_started_from(served, program, tmp_path):
    served("chunking", "--inputs", "raw.txt", "--tags", "NP", answers=10)
    program("replay", "raw.serve", "-o", "m.szo")
    code, _, _ = served("chunking", "--inputs", "raw.txt", "--model", "m.szo", "--log", "warm", answers=0)
    assert code == 0
    program("replay", "warm", "-o", "w.szo")
    assert np.array_equal(load_model(tmp_path / "m.szo").W, load_model(tmp_path / "w.szo").W)


@pytest.mark.parametrize("name", ["text", "rerank"])
def test_the_other_tasks(served, program, tmp_path, name):
    if name == "text":
        (tmp_path / "raw.txt").write_text("the cat sat\nrates rose again\n" * 30)
        words = ["text", "--inputs", "raw.txt", "--classes", "pets,money"]
    else:
        task_spec("rerank").synthetic().write(tmp_path / "raw.nbest", tmp_path / "weights", 40, 1, None)
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
    code, _, err = served("chunking", "--inputs", "raw.txt", "--tags", "NP")
    assert code == 0, err
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


BEGIN = ["chunking", "--inputs", "raw.txt", "--tags", "NP"]
REFUSED = [
    (["chunking"], "--inputs"),
    (["chunking", "--log", "nowhere"], "no session to go on with"),
    (["chunking", "--inputs", "gone.txt", "--tags", "NP"], "gone.txt"),
    ([*BEGIN, "--overlap", "2"], "--overlap 2"),
    ([*BEGIN, "--audit", "-1"], "--audit"),
    ([*BEGIN, "--audit", "5000"], "--audit 5000"),
    ([*BEGIN, "--port", "70000"], "--port 70000"),
    ([*BEGIN, "--people", "2", "--person", "A"], "--person and --people"),
    ([*BEGIN, "--rule", "rate"], "rate"),
    ([*BEGIN, "--rule", "supervised"], "supervised"),
    ([*BEGIN, "--source", "raw.txt", "--person", "a\nb"], "name"),
    ([*BEGIN, "--person", " Admin"], "whoever runs the session"),
    (["text", "--inputs", "raw.txt", "--classes", "a,b", "--source", "one.txt"], "--source has 1 lines"),
]


@pytest.mark.parametrize(("words", "message"), REFUSED)
def test_what_is_wrong_is_one_line(served, tmp_path, words, message):
    (tmp_path / "one.txt").write_text("one\n")
    code, _, err = served(*words)
    assert code in (1, 2)
    assert message in err.splitlines()[-1]
    assert not (tmp_path / "raw.serve" / "log.sqlite").exists()


def test_what_a_session_was_made_with_stays(served, program, tmp_path):
    served("chunking", "--inputs", "raw.txt", "--tags", "NP")
    assert "use serve chunking" in served("text", "--log", "raw.serve")[2]
    assert "name a dev file" in served("chunking", "--log", "raw.serve", "--dev", "5")[2]
    (tmp_path / "raw.txt").write_text("More .\n")
    assert "other inputs" in served("chunking", "--inputs", "raw.txt", "--tags", "NP")[2]
    code, _, err = program("replay", "raw.serve", "-o", "m.szo", "--without", "Eve")
    assert code == 1
    assert "nobody of the name 'Eve'" in err


OTHERWISE = [
    (["--h", "0.7", "--audit", "7"], ["--h 0.7 (it has 0.1)", "--audit 7 (it has"]),
    (["--tags", "PER,LOC"], ["--tags PER,LOC (it has NP)"]),
    (["--features", "ner"], ["--features ner (it was made without)"]),
    (["--order", "1", "--hash-bits", "12"], ["--order 1 (it has 2)", "--hash-bits 12 (it was made without)"]),
    (["--split", "spaces", "--overlap", "0.5"], ["--split spaces (it has sentences)", "--overlap 0.5 (it has 0.0)"]),
    (["--clusters", "none", "--min-count", "3"], ["--clusters none (it has auto)", "--min-count 3 (it has 1)"]),
    (["--model", "other.szo"], ["--model other.szo (it began without)"]),
    (
        ["--inputs", "other.txt", "--tags", "A"],
        ["--inputs other.txt (it is about other inputs", "--tags A (it has NP)"],
    ),
    (["--inputs", "raw.txt", "--inputs", "other.txt"], ["it is about other inputs: 1 file, not 2"]),
    (["--inputs", "-"], ["cannot be compared"]),
    (["--rule", "label", "--seed", "5", "--ask", "random"], ["--rule label", "--seed 5 (it has 0)", "--ask random"]),
]


def test_going_on_otherwise_is_refused_with_each_difference(served, tmp_path):
    (tmp_path / "other.txt").write_text("More .\n")
    (tmp_path / "other.szo").write_text("a model")
    served("chunking", "--inputs", "raw.txt", "--tags", "NP")
    before = (tmp_path / "raw.serve" / "log.sqlite").read_bytes()
    for words, named in OTHERWISE:
        code, links, err = served("chunking", "--log", "raw.serve", *words)
        assert (code, links) == (2, {})
        last = err.splitlines()[-1]
        assert all(each in last for each in named), last
        assert "Leave out what differs" in last
        assert "--from-answers raw.serve takes the answers along" in last
        assert (tmp_path / "raw.serve" / "log.sqlite").read_bytes() == before


def test_the_same_command_goes_on(served, tmp_path):
    (tmp_path / "template").write_text("U0:%x[0,0]\n")
    (tmp_path / "dev.txt").write_text("The B-PER\ncat I-PER\nsat O\n\n" * 4)
    words = ["chunking", "--inputs", "raw.txt", "--tags", "PER=person,LOC", "--template", "template"]
    words += ["--min-count", "2", "--dev", "dev.txt"]
    assert served(*words)[0] == 0
    code, _, err = served(*words)
    assert code == 0, err
    turned = [{"PER=person,LOC": "LOC,PER=person"}.get(word, word) for word in words]  # the same types
    assert served(*turned, "--order", "2")[0] == 0  # which it has by default, with 5 tags
    assert served(*turned, "--order", "1")[0] == 2
    (tmp_path / "template").write_text("U0:%x[1,0]\n")
    assert "--template template (it began with another)" in served(*words)[2]


def test_text_that_goes_on_otherwise(served, tmp_path):
    (tmp_path / "raw.txt").write_text("the cat sat\nrates rose again\n" * 30)
    served("text", "--inputs", "raw.txt", "--classes", "pets,money", "--vectors", "none")
    assert served("text", "--log", "raw.serve", "--classes", "money,pets", "--vectors", "none")[0] == 0
    code, _, err = served("text", "--log", "raw.serve", "--classes", "pets,sport", "--raw-tf")
    assert code == 2
    assert "--classes pets,sport (it has pets,money)" in err
    assert "--raw-tf True (it has False)" in err


def test_a_session_of_a_folder_knows_its_files(served, tmp_path):
    (tmp_path / "texts").mkdir()
    (tmp_path / "raw.txt").rename(tmp_path / "texts" / "a.txt")
    words = ["chunking", "--inputs", "texts", "--tags", "NP"]
    code, _, err = served(*words)
    assert code == 0, err
    assert served(*words)[0] == 0
    (tmp_path / "texts" / "a.txt").write_text("More .\n")
    assert "--inputs texts (it is about other inputs" in served(*words)[2]


def test_a_table_and_running_text_are_noticed(served, program, tmp_path):
    (tmp_path / "t.csv").write_text('id,text\n1,"The cat sat"\n2,"A dog saw it"\n')
    for words in (["serve", "chunking", "--inputs", "t.csv"], ["train", "chunking", "--train", "t.csv", "-o", "m"]):
        code, _, err = program(*words)
        assert code == 1
        assert "t.csv: is a table of texts, without tags; to learn spans from it add --tags" in err
    for words in (["serve", "chunking", "--inputs", "raw.txt"], ["train", "chunking", "--train", "raw.txt", "-o", "m"]):
        code, _, err = program(*words)
        assert code == 1
        assert "raw.txt: looks like running text, without tags; to learn spans from it add --tags" in err
    assert sorted(each.name for each in tmp_path.iterdir()) == ["raw.txt", "t.csv"]


def test_what_is_not_installed_is_named_in_one_line(served, monkeypatch):
    monkeypatch.setitem(sys.modules, "starlette", None)
    code, _, err = served("chunking", "--inputs", "raw.txt", "--tags", "NP")
    assert code == 2
    assert "needs starlette; install with: pip install starlette" in err.splitlines()[-1]


def test_replay_of_what_is_no_session_is_one_line(program, tmp_path):
    code, _, err = program("replay", tmp_path, "-o", tmp_path / "m.szo")
    assert code == 1
    assert "is no folder of a session" in err
    assert len(err.splitlines()) == 1


def test_the_port_is_tried_before_a_folder_is_made(program, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "raw.txt").write_text("The cat sat .\n")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        code, _, err = program("serve", "chunking", "--inputs", "raw.txt", "--tags", "NP", "--port", port)
    assert code == 2
    assert f"--port {port}" in err.splitlines()[-1]
    assert not (tmp_path / "raw.serve").exists()


def test_guidelines_are_kept_with_the_session(served, tmp_path):
    (tmp_path / "how.md").write_text("# How\n\nMark “names”.\n", "utf-8")
    begin = ["chunking", "--inputs", "raw.txt", "--tags", "NP"]
    code, _, err = served(*begin, "--guidelines", "gone.md")
    assert (code, "gone.md" in err.splitlines()[-1]) == (1, True)
    assert not (tmp_path / "raw.serve").exists()
    assert served(*begin, "--guidelines", "how.md", answers=0)[0] == 0
    (tmp_path / "how.md").unlink()
    seen = []
    served("chunking", "--log", "raw.serve", answers=0, look=lambda session: seen.append(session.guidelines))
    assert seen == ["# How\n\nMark “names”.\n"]
    (tmp_path / "long.md").write_text("x " * 200_000)
    code, _, err = served("chunking", "--log", "raw.serve", "--guidelines", "long.md")
    assert (code, "long.md" in err.splitlines()[-1]) == (1, True)


def test_a_program_has_a_link_of_its_own_and_stays_one(served):
    words = ["chunking", "--inputs", "raw.txt", "--tags", "NP", "--person", "Ann", "--program", "judge"]
    code, links, _ = served(*words)
    assert code == 0
    assert list(links) == ["Ann", "judge", "admin"]
    found = []
    _, again, _ = served("chunking", "--log", "raw.serve", look=lambda session: found.extend(session.people()))
    assert again == links
    assert {each["name"]: each["program"] for each in found} == {"Ann": False, "judge": True, "admin": False}
    code, _, err = served("chunking", "--log", "raw.serve", "--person", "x", "--program", "x")
    assert code == 2
    assert "--program x: --person names the same" in err


def test_label_studio_has_a_link_of_its_own(served, program, monkeypatch):
    from sparsezo.serve import server

    served("chunking", "--inputs", "raw.txt", "--tags", "NP")
    given = {}

    def serve(session, host, port, ready, **more):
        ready(f"http://{host}:{port}")
        given.update(more)

    monkeypatch.setattr(server, "serve", serve)
    code, out, _ = program("serve", "chunking", "--log", "raw.serve", "--label-studio", "link")
    assert (code, given) == (0, {"label_studio": True})
    name, link = out.splitlines()[-1].split("\t")
    assert name == "Label Studio"
    assert link.startswith("http://127.0.0.1:8765/label-studio/")
    words = ("serve", "chunking", "--log", "raw.serve", "--label-studio", "link")
    assert program(*words)[1].splitlines()[-1].endswith(link)


def test_a_label_studio_is_connected_or_refused_in_one_line(served, program, monkeypatch, tmp_path):
    from studio_stand_in import LEGACY, stand_in

    monkeypatch.delenv("LABEL_STUDIO_API_KEY", raising=False)
    (tmp_path / "news.txt").write_text("".join(f"On day {k} Ana met Eva in Madrid.\n" for k in range(12)))
    words = ("serve", "chunking", "--inputs", "news.txt", "--tags", "PER,LOC", "--no-open", "--label-studio")
    for address, why in (
        ("8080", "--label-studio 8080: give its address, such as http://127.0.0.1:8080, or link"),
        ("http://127.0.0.1:8080", "--label-studio-token: give a token of your account in Label Studio"),
    ):
        code, out, err = program(*words, address)
        assert (code, out, err.startswith(f"sparsezo: {why}")) == (2, "", True)
    assert not (tmp_path / "news.serve").exists()
    with stand_in() as (studio, url):
        code, _, err = program(*words, url, "--label-studio-token", "wrong")
        assert (code, err.splitlines()[-1].split(";")[0]) == (1, f"sparsezo: Label Studio at {url} refuses the token")
        monkeypatch.setenv("LABEL_STUDIO_API_KEY", LEGACY)
        code, links, _ = served("chunking", "--log", "news.serve", "--label-studio", url, answers=0)
        assert (code, links["Label Studio"]) == (0, f"{url}/projects/1")
        assert (studio.projects[1]["title"], len(studio.tasks), len(studio.scores(1))) == (
            "news",
            11,
            10,
        )  # one is set aside


def test_an_aim_that_is_none_is_refused_before_anything_is_read(served):
    code, _, err = served("chunking", "--inputs", "nowhere.txt", "--tags", "NP", "--until", "f1>0.8")
    assert code == 2
    assert err == "sparsezo: --until f1>0.8: give f1>=0.85 or accuracy>=0.9, with a share between 0 and 1\n"
