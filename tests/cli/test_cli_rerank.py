"""Reranking on the command line: lists as the field has them, from files and pipes, and what is said about them."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from sparsezo.errors import DivergedError
from sparsezo.model import Model
from sparsezo.tasks.rerank.io import files
from sparsezo.tasks.rerank.task import Reranking

pytestmark = pytest.mark.usefixtures("plain")
MOSES = """\
4 ||| the cat |0-1| sat down |2-3| ||| d: 0 -1 lm: -3 w: -4 ||| 0
4 ||| a | cat |0-1| ||| d: 0 -1 lm: -5 w: -4 ||| 0
6 ||| the end |0-1| ||| d: 0 -1 lm: -5 w: -2 ||| 0
6 ||| an end |0-1| of it |2-3| ||| d: 0 -1 lm: -2 w: -2 ||| 0
"""
SAID = ":1: Moses' marks of segmentation, |0-1|, are left out of the hypotheses, here and in 2 lists in all; "


@pytest.fixture
def lists(tmp_path: Path) -> Path:
    (tmp_path / "x.nbest").write_text(MOSES)
    (tmp_path / "x.ref").write_text("no\n" * 4 + "the cat sat down\nno\nan end of it\nno\n")
    return tmp_path / "x.nbest"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    task = Reranking(("lm", "w"), (0.0, 0.0))
    Model(task, np.array([[1.0], [0.0]]), {}, {}).save(tmp_path / "m")
    return tmp_path / "m"


def test_marks_are_neither_printed_nor_counted(program, lists, model):
    """One line says so; whoever wants them keeps them."""
    note = f"{lists}{SAID}--keep-segmentation keeps them\n"
    assert program("predict", model, lists) == (0, "the cat sat down\nan end of it\n", note)
    kept = "the cat |0-1| sat down |2-3|\nan end |0-1| of it |2-3|\n"
    assert program("predict", model, lists, "--keep-segmentation") == (0, kept, "")
    code, out, err = program("evaluate", model, lists, "--json")
    assert (code, json.loads(out)["bleu"]) == (0, pytest.approx(1))
    assert err == f"{note}{lists}: 2 lists for 8 references; they are taken by id\n"
    code, out, _ = program("evaluate", model, lists, "--keep-segmentation", "--json")
    assert json.loads(out)["bleu"] < 0.7


def test_lists_of_another_decoder_are_refused_alike(program, lists, model, tmp_path):
    (tmp_path / "x.nbest").write_text("0 ||| a ||| LM0= 1 ||| 0\n1 ||| b ||| TM0= 1 2 ||| 0\n")
    message = f"sparsezo: {lists}: its lists have LM0, TM0_1, TM0_2, none of the model's features, lm, w\n"
    assert program("predict", model, lists) == (1, "", message)
    assert program("predict", model, lists, "--nbest", "-o", tmp_path / "out") == (1, "", message)
    assert not (tmp_path / "out").exists()
    assert program("evaluate", model, lists)[::2] == (
        1,
        f"{lists}: 2 lists for 8 references; they are taken by id\n{message}",
    )


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e308])
def test_weights_that_are_not_finite_predict_nothing(lists, bad):
    """1e308: finite, but not the scores."""
    model = SimpleNamespace(task=Reranking(("lm", "w"), (0.0, 0.0)), W=np.array([[bad], [0.0]]))
    with pytest.raises(DivergedError, match="weights give scores that are not finite; train it again") as caught:
        list(files.predict(model, str(lists), {}))
    assert caught.value.exit_code == 1


def test_everything_from_a_pipe(program, lists, model, monkeypatch, tmp_path):
    """Standard input is a file in every command; the lists are longer than any buffer."""
    pair = "{0} ||| the end ||| lm: -5 w: -2 ||| 0\n{0} ||| an end of it ||| lm: -2 w: -4 ||| 0\n"
    long = "".join(pair.format(i) for i in range(2000))
    (tmp_path / "long.nbest").write_text(long)
    (tmp_path / "long.ref").write_text("an end of it\n" * 2000)

    def with_input(*words: object) -> tuple[int, str, str]:
        with open(tmp_path / "long.nbest") as stdin:
            monkeypatch.setattr("sys.stdin", stdin)
            return program(*words)

    assert with_input("predict", model, "-") == (0, "an end of it\n" * 2000, "")
    ref = ["--ref", tmp_path / "long.ref"]
    code, out, err = with_input("evaluate", model, "-", *ref, "--json")
    assert (code, err, json.loads(out)["bleu"], json.loads(out)["sentences"]) == (0, "", pytest.approx(1), 2000)
    code, out, err = with_input("evaluate", model, "-")
    assert (code, out) == (2, "")
    assert err.startswith("sparsezo: standard input: does not end in .nbest")
    assert len(list((tmp_path / "cache" / "sparsezo" / "nbest").iterdir())) == 1


def test_training_starts_from_an_old_moses_ini(program, lists, tmp_path):
    (tmp_path / "moses.ini").write_text("[weight-d]\n0.3\n0.2\n[weight-l]\n0.5\n[weight-w]\n-1\n[weight-t]\n1\n2\n")
    words = ["--train", lists, "--init", tmp_path / "moses.ini", "--iterations", 10, "-o", tmp_path / "m"]
    code, _, err = program("train", "rerank", *words, "--json")
    assert code == 0, err
    text = (tmp_path / "m.ini").read_text()
    assert [line for line in text.splitlines() if line.startswith("[")] == [
        "[weight-d]",
        "[weight-l]",
        "[weight-w]",
        "[weight-t]",
    ]
    assert text.endswith("[weight-t]\n1.0\n2.0\n\n")
