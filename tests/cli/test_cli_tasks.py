"""Tagging, text classification and reranking on the command line, end to end, and what their files can have wrong."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import pytest

from sparsezo.tasks.chunking.synthetic import chunking_columns, generate_chunking
from sparsezo.tasks.rerank.io.decoder_weights import read_weights
from sparsezo.tasks.text.synthetic import generate_texts


@pytest.fixture(scope="module")
def texts(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("text")
    for name, n, seed in [("train", 3000, 1), ("test", 400, 2)]:
        (folder / name).write_text("".join(f"{label}\t{text}\n" for label, text in generate_texts(n, seed)))
    return folder


def test_text_end_to_end(program, texts, tmp_path, last_json):
    model = tmp_path / "m"
    data = ["--train", texts / "train", "--dev", 100, "--test", texts / "test"]
    code, out, err = program("train", "text", *data, "--iterations", "300k", "-o", model, "--json")
    assert code == 0, err
    trained = last_json(out)
    assert trained["metric"] == "accuracy"
    assert trained["test"] > 0.6
    assert trained["n_score"] == 4
    code, out, _ = program("evaluate", model, texts / "test", "--json")
    assert code == 0
    assert last_json(out)["accuracy"] == trained["test"]
    assert set(last_json(out)["classes"]) == {"CCAT", "ECAT", "GCAT", "MCAT"}
    code, out, _ = program("predict", model, texts / "test")
    assert code == 0
    given = [line.split("\t") for line in (texts / "test").read_text().splitlines()]
    predicted = [line.split("\t") for line in out.splitlines()]
    assert [text for _, text in predicted] == [text for _, text in given]
    right = np.mean([p[0] == g[0] for p, g in zip(predicted, given, strict=True)])
    assert right == pytest.approx(trained["test"])
    code, out, _ = program("predict", model, texts / "test", "--labels-only")
    assert out.splitlines() == [label for label, _ in predicted]


def test_a_tagger_end_to_end(program, tmp_path, last_json):
    """Parts of speech of generated sentences, in CoNLL-U: what is predicted stands in the file's own column."""
    for name, n, seed in [("train", 150, 1), ("test", 30, 2)]:
        text = ""
        for sentence in generate_chunking(n, seed):
            rows = [line.split()[:2] for line in chunking_columns([sentence]).splitlines() if line]
            text += "# a sentence\n1-2\t" + "\t".join("_" * 9) + "\n"
            text += "".join(f"{k}\t{word}\t_\t{pos}" + "\t_" * 6 + "\n" for k, (word, pos) in enumerate(rows, 1)) + "\n"
        (tmp_path / f"{name}.conllu").write_text(text)
    train, test, model = tmp_path / "train.conllu", tmp_path / "test.conllu", tmp_path / "m"
    data = ["--train", train, "--dev", 20, "--test", test, "--column", "UPOS"]
    learner = ["--rule", "supervised", "--h", 0.05, "--iterations", "3k"]
    code, out, err = program("train", "chunking", *data, *learner, "-o", model, "--json")
    assert code == 0, err
    assert f"{train}: tags such as " in err
    assert " tags: --order 1, weights for tags and tag bigrams, is the default for so many\n" in err
    trained = last_json(out)
    assert (trained["metric"], trained["test"]) == ("accuracy", trained["test_report"]["accuracy"])
    assert trained["test"] > 0.7
    code, out, _ = program("evaluate", model, test, "--json")
    assert (code, last_json(out)["metric"], last_json(out)["accuracy"]) == (0, "accuracy", trained["test"])
    code, out, err = program("predict", model, test)
    assert (code, err) == (0, "")
    given, predicted = test.read_text().split("\n"), out.split("\n")
    right = []
    for before, after in zip(given, predicted, strict=True):
        if before[:1].isdigit() and not before.startswith("1-2"):
            old, new = before.split("\t"), after.split("\t")
            right.append(old.pop(3) == new.pop(3))
            assert old == new
        else:
            assert before == after
    assert np.mean(right) == pytest.approx(trained["test"])


@pytest.mark.torture  # six seconds; test_cli_tune has the parts
def test_what_tune_prints_trains(program, texts, tmp_path, last_json):
    data = ["--train", texts / "train", "--dev", 100]
    learner = ["--rule", "comparison", "--perturb", "score", "--feedback", "flip:0.1", "--iterations", "16k"]
    search = ["--grid-h", "1,0.1", "--grid-mu", "1,0.1", "--seed", 3, "--seeds", 2, "-o", tmp_path / "trials"]
    code, out, err = program("tune", "text", *data, *learner, *search, "--json")
    assert code == 0, err
    found = last_json(out)
    assert len([trial for trial in found["trials"] if trial["seeds"] == 2]) == 3
    assert {trial["iterations"] for trial in found["trials"]} == {1000, 4000, 16000}
    words = shlex.split(found["command"])
    assert words[:3] == ["sparsezo", "train", "text"]
    assert words[words.index("--feedback") + 1] == "flip:0.1"
    words[-1] = str(tmp_path / "m")
    code, out, err = program(*words[1:], "--json")
    assert code == 0, err
    trial = next(each for each in found["trials"] if each["seeds"] == 1 and each["h"] == found["h"])
    assert last_json(out)["dev"] == trial["dev"]  # the same run
    code, out, err = program("tune", "text", *data, *learner, *search)
    assert code == 0
    assert out.splitlines()[-1] == found["command"]
    assert "2 seeds" in err


def test_a_label_that_train_does_not_have(program, texts, tmp_path):
    (tmp_path / "test").write_text("CCAT\tsome words\nSPORT\tother words\n")
    words = ["--train", texts / "train", "--test", tmp_path / "test", "--iterations", "10", "-o", tmp_path / "m"]
    code, _, err = program("train", "text", *words, "--dev", tmp_path / "test")
    assert code == 1
    assert "test:2: " in err
    assert "SPORT" in err


FEATURES = ("LM", "TM", "Length")


@pytest.fixture(scope="module")
def nbest(tmp_path_factory) -> Path:
    """Lists in which LM tells the better candidates, and starting weights that say the opposite."""
    folder = tmp_path_factory.mktemp("nbest")
    generator = np.random.default_rng(0)
    words = [f"w{i}" for i in range(40)]
    for name, n in [("train", 40), ("dev", 15), ("test", 15)]:
        references, lines = [], []
        for i in range(n):
            reference = generator.choice(words, 8)
            references.append(" ".join(reference))
            for _ in range(12):
                wrong = generator.random(8) < generator.random()
                hypothesis = np.where(wrong, generator.choice(words, 8), reference)
                lm = 4 - wrong.sum() + generator.normal(0, 0.3)
                noise = generator.normal(size=2)
                pairs = f"LM={lm:.4f} TM={noise[0]:.4f} Length={noise[1]:.4f}"
                lines.append(f"{i} ||| {' '.join(hypothesis)} ||| {pairs} ||| 0.0")
        (folder / f"{name}.nbest").write_text("\n".join(lines) + "\n")
        (folder / f"{name}.ref").write_text("\n".join(references) + "\n")
    (folder / "weights").write_text("LM -0.5\nTM 0.1\nLength 0.1\n")
    return folder


def test_rerank_end_to_end(program, nbest, tmp_path, last_json):
    store = ["--store", tmp_path / "store"]
    data = ["--train", nbest / "train.nbest", "--dev", nbest / "dev.nbest", "--test", nbest / "test.nbest"]
    learner = ["--init", nbest / "weights", "--h", "0.01", "--mu", "0.1", "--iterations", "20k"]
    model = tmp_path / "m"
    code, out, err = program("train", "rerank", *data, *learner, *store, "-o", model, "--json")
    assert code == 0, err
    trained = last_json(out)
    assert trained["metric"] == "bleu"
    assert "length_ratio" in trained["test_report"]
    assert "tok:none" in trained["test_report"]["signature"]
    weights = read_weights(tmp_path / "m.weights")
    assert set(weights) == set(FEATURES)
    assert weights["LM"] > 0
    assert read_weights(tmp_path / "m.ini") == weights

    code, out, _ = program("evaluate", model, nbest / "test.nbest", *store, "--json")
    assert code == 0
    assert last_json(out)["bleu"] == trained["test"]
    (tmp_path / "plain.nbest").write_bytes((nbest / "test.nbest").read_bytes())  # no references beside it
    code, best, _ = program("predict", model, tmp_path / "plain.nbest")
    assert code == 0
    assert len(best.splitlines()) == 15
    code, out, _ = program("predict", model, tmp_path / "plain.nbest", "--nbest")
    assert len(out.splitlines()) == 15 * 12
    firsts = {line.split(" ||| ")[0]: line.split(" ||| ")[1] for line in reversed(out.splitlines())}
    assert [firsts[str(i)] for i in range(15)] == best.splitlines()
