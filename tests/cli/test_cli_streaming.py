"""train --stream and --hash-bits from the command line: a model like any other, and refusals in one line."""

from __future__ import annotations

import json
import shlex

import pytest

from sparsezo.model import load_model
from sparsezo.tasks.chunking.synthetic import chunking_columns, generate_chunking

pytestmark = pytest.mark.usefixtures("plain")

LEARN = shlex.split(
    "--rule two-point --step constant --h 0.01 --mu 0.1 --seed 2 --hash-bits 11 --only NP --iterations 150"
)


@pytest.fixture
def train(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text(chunking_columns(generate_chunking(70, seed=1)))
    return path


def test_a_streamed_model_is_evaluated_and_predicts(program, train, tmp_path):
    model = tmp_path / "m.szo"
    words = ["train", "chunking", "--train", train, "--dev", "10", "-o", model, *LEARN]
    code, out, err = program(*words, "--stream", "--window", "25", "--json")
    assert code == 0
    assert "a stream of 60 inputs in 3 windows of 25, 18,432 weights" in err
    assert json.loads(out.splitlines()[-1])["iterations"] == 150
    assert load_model(model).task.hash_bits == 11
    assert program("evaluate", model, train)[0] == 0
    code, out, _ = program("predict", model, train)
    assert code == 0
    assert out.count("\n\n") == 70


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--stream"], "--stream needs --hash-bits: a vocabulary would have to be counted first, and held in memory"),
        (["--window", "5"], "--window 5: belongs to --stream; add it, or leave --window out"),
        (["--hash-bits", "40"], "--hash-bits 40: must be a whole number from 10 to 28"),
        (["--stream", "--hash-bits", "12", "--rule", "part"], "rule part: questions are about inputs that stay; "),
    ],
)
def test_what_does_not_go_together_is_refused_in_one_line(program, train, tmp_path, more, message):
    code, out, err = program("train", "chunking", "--train", train, "-o", tmp_path / "m", *more)
    assert (code, out) == (2, "")
    assert err.startswith(f"sparsezo: {message}")
    assert err.count("\n") == 1


def test_standard_input_is_no_stream(program, tmp_path):
    code, _, err = program("train", "text", "--train", "-", "-o", tmp_path / "m", "--stream", "--hash-bits", "12")
    assert code == 2
    assert "standard input can be read only once" in err


def test_reranking_has_neither(program, tmp_path):
    for flag in (["--hash-bits", "12"], ["--stream"]):
        code, _, err = program("train", "rerank", "--train", "x", "-o", tmp_path / "m", *flag)
        assert code == 2
        assert flag[0] in err
