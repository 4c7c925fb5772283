"""Vectors beside tf-idf: what the columns are, who gets them by default, and that a model has all it needs."""

from __future__ import annotations

import math
import sys
from collections import Counter

import numpy as np
import pytest

from sparsezo import extras, notes
from sparsezo.errors import DataError, UsageError
from sparsezo.learner import Learner, predict
from sparsezo.model import Model, load_model
from sparsezo.settings import Settings
from sparsezo.tasks.loading import Files
from sparsezo.tasks.registry import kind
from sparsezo.tasks.text import vectors as vectors_module
from sparsezo.tasks.text.documents import read_documents
from sparsezo.tasks.text.task import TextClassification
from sparsezo.tasks.text.vectors import RARE, SCALE, WithVectors
from sparsezo.tasks.text.word_vectors import read_vectors
from sparsezo.warm_start import joined

TABLE = "orbit 1 0 0.5\nmoon 0.75 0.25 0.5\nlaw -1 0.5 0.5\ncourt -0.75 -0.5 0.5\nthe 0.125 0.125 0.5\n"
TRAIN = "sci\tThe orbit of the moon\ntalk\tThe law, the court!\nsci\tmoon moon xx\ntalk\tzz yy\nsci\torbit\n"
TEST = "sci\ta moon and the LAW\ntalk\tnothing known\ntalk\tcourt unseen\n"


@pytest.fixture
def files(tmp_path):
    for name, text in (("v.txt", TABLE), ("train.tsv", TRAIN), ("test.tsv", TEST)):
        (tmp_path / name).write_text(text)
    raw = "".join(line.split("\t")[1] + "\n" for line in TRAIN.splitlines())
    (tmp_path / "raw.txt").write_text(raw)
    return tmp_path


def fitted(files, **options):
    return TextClassification.fit(read_documents(files / "train.tsv"), vectors=str(files / "v.txt"), **options)


def by_hand(files, documents):
    """The columns of vectors, in plain Python: weighted means, less the training documents' mean, of one length."""
    table = {line.split()[0]: [float(x) for x in line.split()[1:]] for line in TABLE.splitlines()}

    def words(text):
        cut = "".join(c if c.isalnum() else " " for c in text.lower()).split()
        return [word for word in cut if word in table]

    train = [words(text) for text in read_documents(files / "train.tsv").texts]
    total = Counter(word for text in train for word in text)
    weight = {word: RARE / (RARE + total[word] / sum(total.values())) for word in table}

    def mean(text):
        whole = sum(weight[word] for word in text)
        return [sum(weight[word] * table[word][k] for word in text) / whole for k in range(3)]

    means = [mean(text) for text in train if text]
    centre = [sum(each[k] for each in means) / len(means) for k in range(3)]
    rows = []
    for text in map(words, documents.texts):
        rest = [a - b for a, b in zip(mean(text), centre, strict=True)] if text else [0.0] * 3
        length = math.hypot(*rest)
        rows.append([SCALE * each / length if length else 0.0 for each in rest])
    return rows


@pytest.mark.parametrize("hash_bits", [None, 10])
def test_the_columns(files, hash_bits):
    task, train = fitted(files, hash_bits=hash_bits)
    plain, without = TextClassification.fit(read_documents(files / "train.tsv"), hash_bits=hash_bits)
    test = read_documents(files / "test.tsv")
    for found, same, documents in (
        (train, without, train.documents),
        (task.seen(test), plain.seen(test), test),
    ):
        matrix = found.matrix.toarray()
        np.testing.assert_array_equal(matrix[:, :-3], same.matrix.toarray())
        np.testing.assert_allclose(matrix[:, -3:], by_hand(files, documents), rtol=1e-3, atol=1e-4)
    assert task.n_features == plain.n_features + 3
    assert task.hash_bits == hash_bits
    assert train.matrix.dtype == np.float32
    entries = train.matrix.indptr[4] - train.matrix.indptr[3]
    assert entries == without.matrix.indptr[4] - without.matrix.indptr[3]  # no word with a vector, and no zeros kept


def test_a_document_is_the_same_alone_and_among_others(files):
    task, _ = TextClassification.fit(read_documents(files / "train.tsv"), vectors="wordllama")
    test = read_documents(files / "test.tsv")
    all_of_them = task.seen(test).matrix
    for i in range(len(test)):
        assert (task.seen(test.take([i])).matrix != all_of_them[[i]]).nnz == 0


@pytest.mark.parametrize("hash_bits", [None, 10])
@pytest.mark.parametrize("source", ["wordllama", "v.txt"])
def test_a_model_needs_nothing_else(files, source, hash_bits, monkeypatch):
    """Neither the file nor the package, nor what the package itself needs."""
    given = source if source == "wordllama" else str(files / source)
    task, _ = TextClassification.fit(read_documents(files / "train.tsv"), vectors=given, hash_bits=hash_bits)
    W = np.random.default_rng(3).normal(size=(task.n_features, task.n_labels)).astype(np.float32)
    Model(task, W, {}, {}).save(files / "m.szo")
    test = read_documents(files / "test.tsv")
    before = task.seen(test).matrix
    (files / "v.txt").unlink()
    for name in ("wordllama", "tokenizers", "safetensors"):
        monkeypatch.setitem(sys.modules, name, None)
    again = load_model(files / "m.szo", "text")
    after = again.task.seen(test).matrix
    assert (after != before).nnz == 0
    assert after.shape == before.shape
    np.testing.assert_array_equal(again.predict(test), predict(task.problem(test, learn=False), W))
    if hash_bits is None:
        assert again.task.feature_names() == task.feature_names()


def test_names_of_columns(files):
    task, _ = fitted(files)
    names = task.feature_names()
    assert len(set(names)) == len(names) == task.n_features
    (files / "v.txt").write_text(TABLE.replace("0.75", "0.5"))
    other, _ = fitted(files)
    assert other.feature_names()[:-3] == names[:-3]
    assert not set(other.feature_names()[-3:]) & set(names[-3:])  # other vectors are other features


def test_to_start_from_a_model(files):
    task, _ = fitted(files)
    W = np.arange(task.n_features * 2, dtype=np.float32).reshape(-1, 2)
    plain, _ = TextClassification.fit(read_documents(files / "train.tsv"))
    start = joined(Model(task, W, {}, {}), plain)
    np.testing.assert_array_equal(start.W, W[:-3])
    np.testing.assert_array_equal(joined(Model(plain, start.W, {}, {}), task).W[-3:], 0)
    np.testing.assert_array_equal(joined(Model(task, W, {}, {}), task).W, W)


def test_vectors_that_are_read_already(files):
    given = read_vectors(str(files / "v.txt"), True, ())
    _, train = TextClassification.fit(read_documents(files / "train.tsv"), vectors=given)
    _, expected = fitted(files)
    assert (train.matrix != expected.matrix).nnz == 0


# Who gets them


def loaded(files, train="train.tsv", **options):
    with notes.gathered() as said:
        found = kind("text").load(Files((str(files / train),), None, None, options))
    return found, [each for each in said if "vectors" in each]


def with_vectors(found):
    return isinstance(found.task.vectoriser, WithVectors)


def test_labelled_documents_have_none_by_default(files):
    found, said = loaded(files)
    assert (with_vectors(found), said) == (False, [])
    assert with_vectors(loaded(files, vectors="auto")[0])
    assert with_vectors(loaded(files, vectors=str(files / "v.txt"))[0])


def test_documents_that_people_are_asked_about_have_them(files):
    assert kind("text").serve_defaults == {"vectors": "auto"}
    found, said = loaded(files, "raw.txt", classes="sci,talk", vectors="auto")
    assert with_vectors(found)
    assert len(said) == 1
    assert "256 columns of wordllama 0." in said[0]
    assert "17.3 MB in the model" in said[0]
    found, said = loaded(files, "raw.txt", classes="sci,talk")
    assert (with_vectors(found), said) == (False, [])


def test_where_it_is_not_installed(files, monkeypatch):
    monkeypatch.setattr(vectors_module, "installed", lambda: False)
    found, said = loaded(files, "raw.txt", classes="sci,talk", vectors="auto")
    assert not with_vectors(found)
    assert len(said) == 1
    assert "pip install wordllama" in said[0]
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match="pip install wordllama"):
        loaded(files, vectors="wordllama")


def test_more_documents_than_auto_takes(files, monkeypatch):
    monkeypatch.setattr(vectors_module, "_MOST_BY_ITSELF", 4)
    found, said = loaded(files, "raw.txt", classes="sci,talk", vectors="auto")
    assert not with_vectors(found)
    assert "more than 4 documents" in said[0]
    assert with_vectors(loaded(files, "raw.txt", classes="sci,talk", vectors="wordllama")[0])


def test_documents_without_words_in_them(files):
    (files / "x.svm").write_text("a 1:1 2:1\nb 2:1\n")
    assert not with_vectors(loaded(files, "x.svm", vectors="auto")[0])
    with pytest.raises(DataError, match="has indices and no words"):
        loaded(files, "x.svm", vectors="wordllama")


def test_vectors_of_other_words(files):
    (files / "v.txt").write_text("nein 1 2\nja 2 1\n")
    with pytest.raises(DataError, match=r"train.tsv: no word has a vector in v\.txt"):
        fitted(files)


def test_a_stream_has_none(files):
    options = {"hash_bits": 10, "vectors": "wordllama"}
    with pytest.raises(UsageError, match=r"`vectors` wordllama: a `stream` has columns of words alone"):
        kind("text").stream(Files((str(files / "train.tsv"),), None, None, options), 2)
    kind("text").stream(Files((str(files / "train.tsv"),), None, None, options | {"vectors": "none"}), 2)


def test_serve_asks_for_classes_and_has_vectors_by_default(program):
    code, out, _ = program("serve", "text", "--help")
    shown = " ".join(out.split())
    assert code == 0
    assert kind("text").asks[0] == "label"
    assert "wordllama|auto|none|FILE" in shown
    assert kind("text").serve_defaults == {"vectors": "auto"}


def test_not_fitted():
    from sparsezo.tasks.text.tfidf import TextVectoriser

    with pytest.raises(UsageError, match="not fitted"):
        _ = WithVectors(TextVectoriser(), "wordllama").n_features


# What a saved one may claim


def test_arrays_that_cannot_be(files):
    task, _ = fitted(files)
    about, arrays = task.to_arrays()
    TextClassification.from_arrays(about, arrays)
    weights, centre = arrays["vectors.weights"], arrays["vectors.centre"]
    for wrong in (
        {"vectors.weights": weights[:-1]},
        {"vectors.weights": weights * 0},
        {"vectors.weights": weights.astype(np.float64)},
        {"vectors.centre": centre * np.float32(np.nan)},
        {"vectors.centre": centre[:-1]},
        {"vectors.table": arrays["vectors.table"][:, :-1]},
    ):
        with pytest.raises(ValueError):
            TextClassification.from_arrays(about, {**arrays, **wrong})
    for wrong_about in ({"scale": 0.0}, {"scale": "1"}, {"source": 3}):
        how = {**about["vectoriser"], "vectors": {**about["vectoriser"]["vectors"], **wrong_about}}
        with pytest.raises(ValueError):
            TextClassification.from_arrays({**about, "vectoriser": how}, arrays)


# What they are for


@pytest.mark.data
def test_newsgroups_from_few_answers(real_data):
    """As serve asks and learns, three seeds: at least 0.80, 0.85 and 0.885, and nothing to pay for it later."""
    folder = real_data / "text"
    train, test = (read_documents(folder / f"20news4.{part}.tsv.gz") for part in ("train", "test"))
    found = {}
    for vectors in ("none", "wordllama"):
        task, data = TextClassification.fit(train, vectors=vectors)
        unseen = task.problem(task.seen(test), learn=False)
        gold, right = task.gold(data), task.gold(test).labels
        runs = []
        for seed in (1, 2, 3):
            values = {"rule": "label", "rater_error": "0.05", "rehearse": 0, "seed": seed}
            learner = Learner(task.problem(data, asks=True), Settings.complete(values, task.defaults, "adagrad"))
            runs.append([])
            for answers in (100, 300, 1000, 3000, 10_000):
                learner.run(gold, answers=answers)
                runs[-1].append(np.mean(predict(unseen, learner.weights()) == right))
        found[vectors] = np.mean(runs, axis=0)
    assert (found["wordllama"][:3] > [0.785, 0.85, 0.895]).all(), found
    assert (found["wordllama"][:3] > found["none"][:3] + np.array([0.04, 0.015, 0.002])).all(), found
    assert (found["wordllama"][3:] > found["none"][3:] - 0.005).all(), found
