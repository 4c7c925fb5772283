"""Vectors beside tf-idf: what the columns are, who gets them by default, and that a model has all it needs."""

from __future__ import annotations

import math
import sys
from collections import Counter

import numpy as np
import pytest

from sparsezo import messages
from sparsezo.errors import DataError, UsageError
from sparsezo.learner import predict
from sparsezo.model import Model, load_model
from sparsezo.tasks.loading import Files
from sparsezo.tasks.registry import task_spec
from sparsezo.tasks.text.features import word_vectors as vectors_module
from sparsezo.tasks.text.features.word_vectors import RARE, SCALE, WithVectors
from sparsezo.tasks.text.io.documents import read_documents
from sparsezo.tasks.text.task import TextClassification

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


# Who gets them


def loaded(files, train="train.tsv", **options):
    with messages.gathered() as said:
        found = task_spec("text").load(Files((str(files / train),), None, None, options))
    return found, [each for each in said if "vectors" in each]


def with_vectors(found):
    return isinstance(found.task.vectoriser, WithVectors)


def test_labelled_documents_have_none_by_default(files):
    found, said = loaded(files)
    assert (with_vectors(found), said) == (False, [])
    assert with_vectors(loaded(files, vectors="auto")[0])
    assert with_vectors(loaded(files, vectors=str(files / "v.txt"))[0])


def test_documents_that_people_are_asked_about_have_them(files):
    assert (task_spec("text").serve_defaults, task_spec("text").asks[0]) == ({"vectors": "auto"}, "label")
    found, said = loaded(files, "raw.txt", classes="sci,talk", vectors="auto")
    assert with_vectors(found)
    assert len(said) == 1
    assert "256 columns of wordllama 0." in said[0]
    assert "17.5 MB in the model" in said[0]
    found, said = loaded(files, "raw.txt", classes="sci,talk")
    assert (with_vectors(found), said) == (False, [])


def test_where_it_is_not_installed(files, monkeypatch):
    monkeypatch.setattr(vectors_module, "find_spec", lambda name: None)
    found, said = loaded(files, "raw.txt", classes="sci,talk", vectors="auto")
    assert not with_vectors(found)
    assert len(said) == 1
    assert "pip install wordllama" in said[0]
    monkeypatch.setattr("sparsezo.errors.find_spec", lambda name: None if name == "wordllama" else name)
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
        task_spec("text").stream(Files((str(files / "train.tsv"),), None, None, options), 2)
    task_spec("text").stream(Files((str(files / "train.tsv"),), None, None, options | {"vectors": "none"}), 2)


# What a saved one may claim


def test_arrays_that_cannot_be(files):
    task, _ = fitted(files)
    about, arrays = task.to_arrays()
    TextClassification.from_arrays(about, arrays)
    weights, centre = arrays["vectors.weights"], arrays["vectors.centre"]
    for wrong in (
        {"vectors.weights": weights[:-1]},
        {"vectors.weights": weights * 0},
        {"vectors.weights": weights + np.float32(1e30)},
        {"vectors.weights": weights.astype(np.float64)},
        {"vectors.centre": centre * np.float32(np.nan)},
        {"vectors.centre": centre[:-1]},
        {"vectors.centre": centre + np.float32(3e38)},
        {"vectors.table": arrays["vectors.table"][:, :-1]},
    ):
        with pytest.raises(ValueError):
            TextClassification.from_arrays(about, {**arrays, **wrong})
    for wrong_about in ({"scale": 0.0}, {"scale": "1"}, {"source": 3}):
        how = {**about["vectoriser"], "vectors": {**about["vectoriser"]["vectors"], **wrong_about}}
        with pytest.raises(ValueError):
            TextClassification.from_arrays({**about, "vectoriser": how}, arrays)


# What they are for


# Of documents, by anybody's encoder


def encode(texts):
    """Lengths of texts and numbers of letters: three columns; none for one text."""
    return [[len(text), text.count("o"), 1] if text != "zz yy" else [0, 0, 0] for text in texts]


def encoded_by_hand(train, texts):
    known = [row for row in encode(train) if any(row)]
    centre = [sum(column) / len(known) for column in zip(*known, strict=True)]
    rows = []
    for row in encode(texts):
        rest = [a - b for a, b in zip(row, centre, strict=True)] if any(row) else [0.0] * 3
        length = math.hypot(*rest)
        rows.append([SCALE * each / length if length else 0.0 for each in rest])
    return rows


@pytest.fixture
def named(files, monkeypatch):
    """A module in the working folder, with another name for each test."""
    name = f"encoder_{files.name}"
    monkeypatch.chdir(files)
    row = "[len(text), text.count('o'), 1] if text != 'zz yy' else [0] * 3"
    (files / f"{name}.py").write_text(f"def encode(texts):\n    return [{row} for text in texts]\n")
    yield f"{name}:encode"
    sys.modules.pop(name, None)


@pytest.mark.parametrize("hash_bits", [None, 10])
def test_an_encoder_of_documents(files, hash_bits):
    train, test = read_documents(files / "train.tsv"), read_documents(files / "test.tsv")
    plain, without = TextClassification.fit(train, hash_bits=hash_bits)
    task, prepared = TextClassification.fit(train, vectors=encode, hash_bits=hash_bits)
    for found, same, documents in ((prepared, without, train), (task.seen(test), plain.seen(test), test)):
        matrix = found.matrix.toarray()
        np.testing.assert_array_equal(matrix[:, :-3], same.matrix.toarray())
        np.testing.assert_allclose(matrix[:, -3:], encoded_by_hand(train.texts, documents.texts), rtol=1e-5, atol=1e-6)
    assert task.n_features == plain.n_features + 3


def test_an_encoder_gets_some_documents_at_a_time(files):
    sizes = []

    def counting(texts):
        sizes.append(len(texts))
        return encode(texts)

    (files / "train.tsv").write_text(TRAIN * 30)
    documents = read_documents(files / "train.tsv")
    _, prepared = TextClassification.fit(documents, vectors=counting)
    assert sizes == [64, 64, 22]
    dense = prepared.matrix.toarray()[:, -3:]
    np.testing.assert_allclose(dense, encoded_by_hand(documents.texts, documents.texts), rtol=1e-5, atol=1e-6)


def test_a_model_finds_its_encoder_by_name(files, named):
    task, _ = TextClassification.fit(read_documents(files / "train.tsv"), vectors=named)
    W = np.random.default_rng(3).normal(size=(task.n_features, task.n_labels)).astype(np.float32)
    model = Model(task, W, {}, {})
    again = load_model(model.to_bytes(), "text")
    test = read_documents(files / "test.tsv")
    assert (again.task.seen(test).matrix != task.seen(test).matrix).nnz == 0
    np.testing.assert_array_equal(again.predict(test), model.predict(test))
    assert again.task.feature_names() == task.feature_names()
    assert task_spec("text").serving().options_of(again.task)["vectors"] == named
    (files / f"{named.partition(':')[0]}.py").write_text("def encode(texts):\n    return [[1, 2]] * len(texts)\n")
    del sys.modules[named.partition(":")[0]]
    with pytest.raises(DataError, match="gave 2 columns, not 3"):
        load_model(model.to_bytes()).predict(test)


def test_an_encoder_without_a_name_is_given_again(files):
    task, _ = TextClassification.fit(read_documents(files / "train.tsv"), vectors=lambda texts: encode(texts))
    W = np.random.default_rng(3).normal(size=(task.n_features, task.n_labels)).astype(np.float32)
    saved, test = Model(task, W, {}, {}).to_bytes(), read_documents(files / "test.tsv")
    with pytest.raises(UsageError, match="names no function that gives its `vectors`; load it with load_model"):
        load_model(saved).predict(test)
    again = load_model(saved, vectors=encode)
    assert (again.task.seen(test).matrix != task.seen(test).matrix).nnz == 0
    words, _ = fitted(files)
    of_words = Model(words, np.zeros((words.n_features, 2), np.float32), {}, {}).to_bytes()
    with pytest.raises(UsageError, match="was trained without an encoder"):
        load_model(of_words, vectors=encode)


def test_an_encoder_by_the_option(files, named):
    found, said = loaded(files, vectors=named)
    assert found.task.vectoriser.function == named
    assert f"3 columns of {named} beside tf-idf, 0.0 MB in the model; 1 documents have no" in said[0]
    with pytest.raises(DataError, match=r"train.tsv, document 1: `vectors` .* gave nan"):
        TextClassification.fit(read_documents(files / "train.tsv"), vectors=lambda texts: [[math.nan]] * len(texts))
