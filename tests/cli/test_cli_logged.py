"""train --log and evaluate --log on the command line."""

from __future__ import annotations

import gzip
import json
import lzma

import pytest

from sparsezo.model import load_model

WORDS = {"sport": "ball goal match", "law": "court judge trial"}


def texts(n: int, propensity: float | None = 0.5) -> str:
    made = []
    for k in range(n):
        right, shown = (list(WORDS)[(k // j) % 2] for j in (1, 2))
        row = {"text": " ".join(WORDS[right].split()[k % 3 :][:2]), "label": shown, "feedback": right == shown}
        made.append(json.dumps(row | ({} if propensity is None else {"propensity": propensity})) + "\n")
    return "".join(made)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def thumbs(tmp_path):
    (tmp_path / "thumbs.jsonl").write_text(texts(40))
    return tmp_path / "thumbs.jsonl"


def test_a_log_alone_is_enough(program, thumbs, tmp_path):
    (tmp_path / "test.tsv").write_text("sport\tgoal match\nlaw\tjudge trial\n")
    train = ("train", "text", "--log", "thumbs.jsonl", "--test", "test.tsv", "--json")
    code, out, err = program(*train, "-o", "m.szo")
    assert code == 0, err
    assert "thumbs.jsonl: 40 lines, reward 0.500 in the mean, propensities of 40; rule part, gone over 1 time" in err
    result = json.loads(out.splitlines()[-1])
    assert (result["rule"], result["rows"], result["learned_from"], result["test"]) == ("part", 40, 40, 1.0)
    assert program(*train, "-o", "again.szo")[0] == 0
    assert (load_model(tmp_path / "m.szo").W == load_model(tmp_path / "again.szo").W).all()

    (tmp_path / "later.jsonl").write_text(texts(38))
    code, out, err = program("evaluate", "m.szo", "--log", "later.jsonl", "--json")
    assert code == 0, err
    report = json.loads(out)
    assert report["snips"][0] == 1.0
    assert report["matches"] == pytest.approx(0.5, abs=0.03)
    assert "warning: the weights say as much as" in err
    code, out, err = program("evaluate", "m.szo", "--log", "later.jsonl")
    assert code == 0, err
    assert "1.0000 (" in out
    code, out, err = program("evaluate", "m.szo", "--log", "thumbs.jsonl", "--json")
    assert "this very log" in json.loads(out)["warnings"][0]


def test_without_propensities_bounds_are_all_that_is_said(program, thumbs, tmp_path):
    (tmp_path / "bare.jsonl").write_text(texts(40, None))
    program("train", "text", "--log", "thumbs.jsonl", "-o", "m.szo")
    code, out, err = program("evaluate", "m.szo", "--log", "bare.jsonl", "--json")
    assert code == 0, err
    report = json.loads(out)
    assert report["bounds"] == [0.5, 1.0]
    assert "snips" not in report
    assert "warning: a deterministic log" in err
    code, _, err = program("train", "text", "--log", "bare.jsonl", "--rule", "first-order", "-o", "f.szo")
    assert code == 0, err
    assert "a deterministic log" in err


@pytest.mark.parametrize("way", ["gz", "xz", "-"])
def test_a_log_may_be_packed_or_come_by_standard_input(program, thumbs, tmp_path, monkeypatch, way):
    given, name = thumbs.read_bytes(), "thumbs.jsonl"
    if way == "-":
        import io
        import sys

        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
        name = "-"
    else:
        name = f"packed.jsonl.{way}"
        (tmp_path / name).write_bytes({"gz": gzip, "xz": lzma}[way].compress(given))
    code, _, err = program("train", "text", "--log", name, "--passes", "1", "-o", "m.szo")
    assert code == 0, err
    assert "40 lines" in err


def test_a_log_of_lists(program, lists, tmp_path):
    rows = [{"list": 0, "shown": 1, "feedback": True}, {"list": 1, "shown": 0, "feedback": 0.75}] * 20
    log = tmp_path / "l.jsonl"
    log.write_text("".join(json.dumps({**row, "propensity": 0.5}) + "\n" for row in rows))
    code, out, err = program("train", "rerank", "--log", "l.jsonl", "--train", "x.nbest", "-o", "m.szo", "--json")
    assert code == 0, err
    assert json.loads(out.splitlines()[-1])["rule"] == "first-order"
    code, out, err = program("evaluate", "m.szo", "x.nbest", "--log", "l.jsonl", "--json")
    assert code == 0, err
    assert json.loads(out)["rows"] == 40
    better = [{"list": 0, "shown": 0, "feedback": {"shown": 1}}] * 4
    log.write_text("".join(json.dumps(row) + "\n" for row in better))
    code, out, err = program("train", "rerank", "--log", "l.jsonl", "--train", "x.nbest", "-o", "p.szo", "--json")
    assert code == 0, err
    assert json.loads(out.splitlines()[-1])["rule"] == "pair"
    model = load_model(tmp_path / "p.szo")
    features = {"LM": (1.5, -2), "TM": (0.25, 0.5), "Extra": (0, 3)}
    scores = [sum(model.W[model.task.names.index(name), 0] * v[k] for name, v in features.items()) for k in (0, 1)]
    assert scores[1] > scores[0]
    for wrong, message in [('{"list": 2, "shown": 0, "feedback": true}', "'list' is 2; give a number from 0 to 1")]:
        log.write_text(wrong)
        code, _, err = program("train", "rerank", "--log", "l.jsonl", "--train", "x.nbest", "-o", "q.szo")
        assert code == 1
        assert f"l.jsonl:1: {message}" in err
    code, _, err = program("train", "rerank", "--log", "l.jsonl", "-o", "q.szo")
    assert code == 2
    assert "by number; give their file, too, with --train" in err


def test_a_model_may_be_started_from(program, thumbs, tmp_path):
    program("train", "text", "--log", "thumbs.jsonl", "-o", "m.szo")
    given = ("train", "text", "--log", "thumbs.jsonl", "--rule", "first-order", "--h", "1e-9")
    code, _, err = program(*given, "--init", "m.szo", "-o", "n.szo")
    assert code == 0, err
    before, after = (load_model(tmp_path / name).W for name in ("m.szo", "n.szo"))
    assert after == pytest.approx(before, abs=1e-6)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--train", "x.tsv"], "--log has its inputs in it; leave out --train"),
        (["--rule", "two-point"], "--rule two-point learns from no log; use label, part, pair, rate, first-order"),
        (["--iterations", "5"], "--iterations has no place with --log"),
        (["--resume"], "--resume has no place with --log"),
        (["--from-answers", "x.serve"], "--log and --from-answers: give one of them"),
        (["--passes", "0"], "--passes 0: must be at least 1"),
        (["--dev", "10"], "--dev 10: the inputs have no labels to look at; name a dev file"),
        (["--rule", "rate", "--rater-error", "0.1"], "rule rate takes losses"),
    ],
)
def test_what_does_not_go_with_a_log_is_refused(program, thumbs, words, message):
    code, _, err = program("train", "text", "--log", "thumbs.jsonl", "-o", "m.szo", *words)
    assert code == 2
    assert message in err


def test_a_sessions_folder_is_no_file_of_feedback(program, tmp_path):
    (tmp_path / "x.serve").mkdir()
    (tmp_path / "x.serve" / "log.sqlite").write_bytes(b"")
    code, _, err = program("train", "text", "--log", "x.serve", "-o", "m.szo")
    assert code == 2
    assert "--log x.serve: is a session's folder; learn from its answers with --from-answers" in err


def test_evaluate_wants_a_file_or_a_log(program, thumbs, tmp_path):
    program("train", "text", "--log", "thumbs.jsonl", "-o", "m.szo")
    code, _, err = program("evaluate", "m.szo")
    assert code == 2
    assert "give a file with the correct outputs, or --log" in err
    code, _, err = program("evaluate", "m.szo", "x.tsv", "--log", "thumbs.jsonl")
    assert code == 2
    assert "x.tsv: --log has its inputs in it; leave this out" in err
    (tmp_path / "torn.jsonl").write_text(texts(3) + '{"text": "goal", "la')
    code, _, err = program("evaluate", "m.szo", "--log", "torn.jsonl")
    assert code == 1
    assert "torn.jsonl:4: " in err
