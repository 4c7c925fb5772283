"""An encoder on the command line: from raw text by serve and replay to predict, from labelled files by train."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from sparsezo.model import load_model
from sparsezo.serve.online_model import replay

ENCODER = """
import numpy as np

def encode(tokens):
    return np.array([np.random.default_rng(sum(map(ord, token))).normal(0, 1, {columns}) for token in tokens])
"""


@pytest.fixture
def encoder(tmp_path, monkeypatch):
    """A module in the working folder, with another name for each test."""
    name = f"encoder_{tmp_path.name}"
    monkeypatch.chdir(tmp_path)
    (tmp_path / f"{name}.py").write_text(ENCODER.format(columns=5))
    yield f"{name}:encode"
    sys.modules.pop(name, None)


def test_from_raw_text_to_spans(served, program, encoder, tmp_path):
    begin = ["chunking", "--inputs", "raw.txt", "--tags", "NP", "--audit", "0", "--clusters", "none"]
    code, _, err = served(*begin, "--vectors", encoder, answers=6)
    assert code == 0, err
    assert f"--vectors of {encoder}: 5 columns" in err
    served("chunking", "--log", "raw.serve", answers=4)  # it goes on
    code, out, err = program("replay", "raw.serve", "-o", "m.szo")
    assert (code, out) == (0, ""), err
    model = load_model(tmp_path / "m.szo")
    assert model.result["answers"] == 10
    assert model.task.vectors.name == encoder
    assert np.abs(model.W[-5:]).max() > 0  # what the vectors' columns have learned
    (tmp_path / "more.txt").write_text("A red dog saw the house. Her cat was small.\n")
    code, out, err = program("predict", "m.szo", "more.txt")
    assert code == 0, err
    spans = json.loads(out)["spans"]
    found = [(span["start"], span["end"], span["label"]) for span in spans]
    assert found == [(span.start, span.end, span.label) for span in model.tag((tmp_path / "more.txt").read_text())]
    code, _, err = served(*begin[:-2], "--model", "m.szo", "--clusters", "none", "--log", "warm", answers=0)
    assert code == 0, err
    assert np.array_equal(replay(tmp_path / "warm").W[-5:], model.W[-5:])
    code, _, err = served(*begin, "--vectors", "other:encode", "--log", "raw.serve")
    assert code == 2
    assert f"--vectors other:encode (it has {encoder[:20]}" in err


def test_a_session_is_replayed_to_the_bit_without_its_encoder(served, program, encoder, tmp_path):
    """The vectors are in its folder; a model of it wants the function, with as many columns."""
    served("chunking", "--inputs", "raw.txt", "--tags", "NP", "--vectors", encoder, answers=5)
    before = replay(tmp_path / "raw.serve").W
    module = encoder.partition(":")[0]
    del sys.modules[module]
    (tmp_path / f"{module}.py").unlink()
    assert np.array_equal(replay(tmp_path / "raw.serve").W, before)
    code, _, err = program("replay", "raw.serve", "-o", "m.szo")
    assert code == 0, err
    (tmp_path / "more.txt").write_text("A dog.\n")
    code, _, err = program("predict", "m.szo", "more.txt")
    assert code == 2
    assert f"--vectors {encoder}: {module} cannot be imported" in err
    (tmp_path / f"{module}.py").write_text(ENCODER.format(columns=7))
    code, _, err = program("predict", "m.szo", "more.txt")
    assert code != 0
    assert "gave 7 columns, not 5" in err


def test_answers_are_learned_from_again_with_vectors(served, program, encoder, tmp_path):
    served("chunking", "--inputs", "raw.txt", "--tags", "NP", "--audit", "0", answers=8)
    for given in ("raw.serve", "answers.jsonl"):
        words = ["--from-answers", given, "--vectors", encoder, "-o", "m.szo", "--force"]
        code, _, err = program("train", "chunking", *words)
        assert code == 0, err
        assert np.abs(load_model(tmp_path / "m.szo").W[-5:]).max() > 0


def test_train_predict_and_evaluate(sentences, program, encoder, tmp_path, last_json):
    train, dev, test = (str(sentences / name) for name in ("train", "dev", "test"))
    words = ["--train", train, "--dev", dev, "--test", test, "--rule", "supervised", "--iterations", "300"]
    code, out, err = program("train", "chunking", *words, "--vectors", encoder, "-o", "m.szo", "--json")
    assert code == 0, err
    result = last_json(out)
    code, out, err = program("evaluate", "m.szo", test, "--json")
    assert code == 0, err
    assert last_json(out)["f1"] == pytest.approx(
        result["test"]["f1"] if isinstance(result["test"], dict) else result["test"]
    )
    code, out, _ = program("predict", "m.szo", test)
    assert code == 0
    assert len(out.splitlines()) == len((sentences / "test").read_text().splitlines())


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (
            ["--vectors", "nowhere_to_be_found:encode"],
            "--vectors nowhere_to_be_found:encode: nowhere_to_be_found cannot",
        ),
        (["--vectors", "subprocess:run"], "--vectors subprocess:run: a module of Python's own has no encoder"),
        (["--vectors", "glove.txt"], "--vectors glove.txt: name a function as module:function"),
        (["--vectors", "a:b", "--stream", "--hash-bits", "12"], "--vectors a:b: a --stream has attributes alone"),
    ],
)
def test_what_is_refused(sentences, program, tmp_path, words, why):
    code, _, err = program("train", "chunking", "--train", str(sentences / "train"), *words, "-o", str(tmp_path / "m"))
    assert code == 2
    assert why in err.splitlines()[-1]
