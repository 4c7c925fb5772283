"""predict and evaluate: every option arrives where it counts, and what comes out, word for word."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from options_given import flags

from sparsezo.model import Model
from sparsezo.storage.container import read_container, write_container
from sparsezo.tasks.base import Scores
from sparsezo.tasks.chunking.io.conll import read_conll
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.registry import task_spec
from sparsezo.tasks.rerank.task import Reranking
from sparsezo.tasks.text.io.documents import read_documents
from sparsezo.tasks.text.task import TextClassification

pytestmark = pytest.mark.usefixtures("plain")

# From the command line to the task


@pytest.fixture
def asked(monkeypatch):
    """A model of the text task that only writes down what it is asked to read."""
    seen = []

    class Task:
        name = "text"

        def scores(self, data, outputs):
            return Scores("accuracy", 0.5, {"accuracy": 0.5, "of": [data, outputs]})

    model = SimpleNamespace(task=Task(), predict=lambda data: f"labels of {data}")

    def load_model(path):
        seen.append(path)
        return model

    def predict(*args):
        seen.append(args[1:])
        return iter(["one\n", "two\n"])

    def read(*args):
        seen.append(args[1:])
        return "documents"

    monkeypatch.setattr("sparsezo.cli.predict.load_model", load_model)
    for task in ("chunking", "text", "rerank"):
        files = task_spec(task).io_module
        monkeypatch.setattr(f"{files}.predict", predict if task == "text" else None)
        monkeypatch.setattr(f"{files}.read", read if task == "text" else None)
    return seen


def test_every_option_of_predict_arrives(program, asked, commands, tmp_path):
    assert program("predict", "m", "in") == (0, "one\ntwo\n", "")
    words = ["--format", "lyrl", "--text-column", "t", "--topics", "q", "--labels-only", "--nbest", "--column", "2"]
    words += ["--keep-segmentation", "--threshold", "0.5", "-o", tmp_path / "out"]
    assert program("predict", "m", "in", *words) == (0, "", f"wrote {tmp_path / 'out'}\n")
    assert (tmp_path / "out").read_text() == "one\ntwo\n"
    options = {"format": "lyrl", "text_column": "t", "topics": "q", "labels_only": True, "nbest": True, "column": "2"}
    options |= {"keep_segmentation": True, "threshold": 0.5}
    assert asked == [Path("m"), ("in", {}), Path("m"), ("in", options)]
    assert flags(commands["predict"]) - set(map(str, words)) == {
        "--output",
        "--insist",
        "--engine",
        "--ray-address",
        "--processes",
    }


def test_every_option_of_evaluate_arrives(program, asked, commands):
    code, out, _ = program("evaluate", "m", "gold")
    assert (code, out.splitlines()[0].rstrip()) == (0, "m on gold")
    words = ["--format", "lyrl", "--text-column", "t", "--label-column", "2", "--topics", "q", "--column", "UPOS"]
    words += ["--ref", "r1", "--ref", "r2", "--store", "s", "--keep-segmentation", "--json"]
    code, out, _ = program("evaluate", "m", "gold", *words)
    assert code == 0
    assert json.loads(out)["of"] == ["documents", "labels of documents"]
    options = {"format": "lyrl", "text_column": "t", "label_column": "2", "topics": "q"}
    options |= {"ref": ["r1", "r2"], "store": "s", "column": "UPOS", "keep_segmentation": True}
    assert asked == [Path("m"), ("gold", {}), Path("m"), ("gold", options)]
    assert flags(commands["evaluate"]) - set(words) == {"--insist", "--log"}  # test_cli_logged


# Chunks


@pytest.fixture
def chunker(sentences, tmp_path) -> tuple[Path, Chunking]:
    """A model whose every tag is O."""
    task, _ = Chunking.fit(read_conll(sentences / "train"))
    return tmp_path / "chunker", task


def saved(path: Path, task, W: np.ndarray) -> Path:
    Model(task, W, {}, {}).save(path)
    return path


def outside(task: Chunking) -> np.ndarray:
    """Weights that like only tag O."""
    W = np.zeros((task.n_features, task.n_labels), np.float32)
    O = task.tags.index("O")
    W[:, [k for k in range(task.n_labels) if k % len(task.tags) != O]] = -1
    return W


def test_scores_that_are_not_finite_are_refused(program, chunker, sentences, tmp_path):
    path, task = chunker
    saved(path, task, np.full((task.n_features, task.n_labels), np.finfo(np.float32).max))
    said = "sparsezo: the model's weights give scores that are not finite; train it again with a smaller h\n"
    assert program("predict", path, sentences / "test") == (1, "", said)
    assert program("predict", path, sentences / "test", "-o", tmp_path / "out") == (1, "", said)
    assert program("evaluate", path, sentences / "test") == (1, "", said)
    assert not (tmp_path / "out").exists()


def test_predict_writes_to_a_file_or_to_standard_output(program, chunker, tmp_path):
    path, task = chunker
    saved(path, task, outside(task))
    (tmp_path / "in").write_text("Ünder DT B-NP\ntrees NNS I-NP\n\nyes UH O\n")
    expected = "Ünder DT B-NP O\ntrees NNS I-NP O\n\nyes UH O O\n\n"
    code, out, err = program("predict", path, tmp_path / "in")
    assert (code, out.rstrip("\n"), err) == (0, expected.rstrip("\n"), "")
    assert program("predict", path, tmp_path / "in", "-o", tmp_path / "out") == (0, "", f"wrote {tmp_path / 'out'}\n")
    assert (tmp_path / "out").read_bytes().decode() == out


def test_evaluate_says_what_was_evaluated_on_what(program, chunker, tmp_path):
    path, task = chunker
    saved(path, task, outside(task))
    gold = tmp_path / "gold"
    gold.write_text("the DT B-NP\ntrees NNS I-NP\n\nyes UH O\n")
    code, out, _ = program("evaluate", path, gold, "--json")
    assert code == 0
    assert json.loads(out) == {
        "task": "chunking",
        "metric": "f1",
        "f1": 0.0,
        "precision": 0.0,
        "recall": 0.0,
        "accuracy": pytest.approx(1 / 3),
        "chunks": {"gold": 1, "predicted": 0, "correct": 0},
        "sentences": 2,
        "tokens": 3,
        "model": str(path),
        "test": str(gold),
    }
    code, out, _ = program("evaluate", path, gold)
    assert code == 0
    assert out.splitlines()[0].rstrip() == f"{path} on {gold}"
    assert ["chunks", "gold", "1"] in [line.split() for line in out.splitlines()]


def test_options_of_other_tasks_are_refused(program, chunker, tmp_path):
    path, task = chunker
    saved(path, task, outside(task))
    reranker = saved(tmp_path / "reranker", Reranking(("LM", "TM"), (0.0, 0.0)), np.array([[1.0], [0.0]]))
    documents = tmp_path / "documents"
    documents.write_text("A\tone two\nB\tthree\n")
    classes, _ = TextClassification.fit(read_documents(str(documents)))
    classifier = saved(tmp_path / "classifier", classes, np.zeros((3, 2), np.float32))
    for words, option, name in [
        (["predict", path, "in", "--nbest"], "nbest", "chunking"),
        (["predict", path, "in", "--labels-only"], "labels-only", "chunking"),
        (["evaluate", path, "in", "--format", "tsv"], "format", "chunking"),
        (["predict", reranker, "in", "--format", "tsv"], "format", "rerank"),
        (["evaluate", reranker, "in", "--topics", "q"], "topics", "rerank"),
        (["predict", classifier, "in", "--nbest"], "nbest", "text"),
        (["evaluate", classifier, "in", "--ref", "r"], "ref", "text"),
    ]:
        assert program(*words) == (2, "", f"sparsezo: --{option} does not belong to task {name}\n")


# Lists


def test_a_reranker_evaluates_and_predicts(program, lists):
    model = saved(lists / "m", Reranking(("LM", "TM"), (0.0, 0.0)), np.array([[-1.0], [0.125]]))
    # LM: 1.5, -2 | 0, 1; by -LM + TM / 8 the second candidate is the first list's best, the first one the second's
    assert program("predict", model, lists / "x.nbest") == (0, "a small house\nwe go home now\n", "")
    code, out, _ = program("predict", model, lists / "x.nbest", "--nbest")
    assert code == 0
    assert out.splitlines() == [
        "0 ||| a small house ||| LM=-2.0 TM=0.5 Extra=3.0 ||| 2.0625",
        "0 ||| the small house ||| LM=1.5 TM=0.25 ||| -1.46875",
        "1 ||| we go home now ||| TM=2.0 ||| 0.25",
        "1 ||| go we home ||| LM=1.0 TM=-1.0 ||| -1.125",
    ]
    code, out, err = program("evaluate", model, lists / "x.nbest", "--store", lists / "store", "--json")
    assert code == 0, err
    assert json.loads(out)["sentence_bleu"] == pytest.approx(1)
    assert list((lists / "store").iterdir())
    (lists / "other").write_text("nothing of this\nkind was said\n")
    code, out, _ = program("evaluate", model, lists / "x.nbest", "--ref", lists / "other", "--json")
    assert code == 0
    assert json.loads(out)["bleu"] < 0.1


# Documents


@pytest.fixture
def documents(tmp_path) -> str:
    (tmp_path / "documents").write_text("A\tred red red blue\nB\tblue green\nA\tred\n")
    return str(tmp_path / "documents")


@pytest.fixture
def classifier(documents, tmp_path) -> Path:
    """red is A, everything else B."""
    task, _ = TextClassification.fit(read_documents(documents))
    W = np.zeros((task.n_features, 2), np.float32)
    for word, class_ in [("red", 0), ("blue", 1), ("green", 1)]:
        (tmp_path / "one").write_text(f"A\t{word}\n")
        column = task.seen(read_documents(str(tmp_path / "one"))).matrix.indices[0]
        W[column, class_] = 1
    return saved(tmp_path / "classifier", task, W)


def test_a_classifier_predicts_and_evaluates(program, classifier, documents, tmp_path):
    assert program("predict", classifier, documents) == (0, "A\tred red red blue\nB\tblue green\nA\tred\n", "")
    assert program("predict", classifier, documents, "--labels-only") == (0, "A\nB\nA\n", "")
    assert program("predict", classifier, documents, "--format", "tsv")[0] == 0
    assert program("predict", classifier, documents, "--format", "svmlight")[0] == 1
    assert program("evaluate", classifier, documents, "--format", "svmlight")[0] == 1
    (tmp_path / "gold").write_text("A\tred\nA\tblue\nB\tgreen\nB\tgreen blue\n")
    code, out, _ = program("evaluate", classifier, tmp_path / "gold", "--format", "tsv", "--json")
    assert code == 0
    assert json.loads(out)["accuracy"] == 0.75


def test_texts_need_no_labels_and_no_words_to_be_predicted(program, classifier, tmp_path):
    (tmp_path / "some").write_text("red\n\nblue green\n")
    code, out, _ = program("predict", classifier, tmp_path / "some")
    first, second, third = out.splitlines()
    assert (code, first, second[1:], third) == (0, "A\tred", "\t", "B\tblue green")


def test_tables_and_json_lines_are_predicted_line_by_line(program, classifier, tmp_path):
    """A document is a line of the output, whatever line ends and TABs its text has; labels are not asked for."""
    (tmp_path / "some.csv").write_text('text,label\n"red\nblue\tred",\nblue,?\n,\n')
    (tmp_path / "some.jsonl").write_text('{"text": "red\\nblue\\tred"}\n{"text": "blue"}\n{"text": ""}\n')
    for name in ("some.csv", "some.jsonl"):
        assert program("predict", classifier, tmp_path / name) == (0, "A\tred blue red\nB\tblue\nA\t\n", "")
        assert program("predict", classifier, tmp_path / name, "--labels-only") == (0, "A\nB\nA\n", "")
    (tmp_path / "gold.csv").write_text("what;body\nA;red\nA;blue\n")
    code, out, _ = program("evaluate", classifier, tmp_path / "gold.csv", "--label-column", "what", "--json")
    assert (code, json.loads(out)["accuracy"]) == (0, 0.5)
    code, out, err = program("evaluate", classifier, tmp_path / "gold.csv")
    names = "label, class, category, target, topic; there are what, body; name one with --label-column"
    assert (code, out, err) == (1, "", f"sparsezo: {tmp_path / 'gold.csv'}:1: no column is called {names}\n")


def test_a_damaged_vocabulary_is_one_line(program, classifier, documents):
    meta, arrays = read_container(classifier, "model")
    arrays["task.idf"][0] = np.nan
    write_container(classifier, "model", meta, arrays)
    code, out, err = program("predict", classifier, documents)
    assert (code, out) == (1, "")
    assert err.startswith(f"sparsezo: {classifier}: is damaged (idf values are not all positive and finite)")


# Raw text for a model that was trained on columns

ROWS = "Ana NP B-PER\nlives VB O\nin IN O\nRome NP B-LOC\n\nRome NP B-LOC\nis VB O\nold JJ O\n\n"


@pytest.mark.parametrize("features", ["words", "chunking"])
def test_raw_text_for_a_model_of_columns(features, tmp_path, program):
    """Words alone: spans. A model that reads parts of speech says what raw text lacks, not that columns are torn."""
    train, texts, model = tmp_path / "train.txt", tmp_path / "texts.txt", tmp_path / "m.szo"
    train.write_text(ROWS * 5)
    texts.write_text("Ana lives in Rome\n\nRome is old\n\nAna is in Rome , and Rome is old\n")
    learn = ("--features", features, "--rule", "supervised", "--iterations", 200)
    assert program("train", "chunking", "--train", train, *learn, "-o", model)[0] == 0
    code, out, err = program("predict", model, texts)
    if features == "chunking":
        assert (code, out) == (2, "")
        assert "parts of speech" in err
        assert "--features" in err
        return
    assert code == 0
    found = [json.loads(line) for line in out.splitlines()]
    places = [[each["text"][span["start"] : span["end"]] for span in each["spans"]] for each in found]
    assert [place for each in places for place in each] == ["Ana", "Rome", "Rome", "Ana", "Rome", "Rome"]
