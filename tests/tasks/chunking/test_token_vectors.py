"""Vectors of tokens beside attributes: what the columns are, that they teach, and that a model finds them again."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

from sparsezo import Learner, Settings, load_model, messages
from sparsezo.errors import DamagedError, DataError, UsageError
from sparsezo.learner import predict
from sparsezo.model import Model
from sparsezo.query_learner import QueryLearner
from sparsezo.tasks.chunking.features.templates import parse_templates
from sparsezo.tasks.chunking.features.token_vectors import SCALE
from sparsezo.tasks.chunking.io.conll import Corpus, Listed
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.training import joined

D = 6
MODULE = """
import numpy as np

def encode(tokens):
    rows = [np.random.default_rng(sum(map(ord, token))).normal(1, 1, {columns}) for token in tokens]
    return np.array(rows) * [[token != "unknown"] for token in tokens]
"""


def encode(tokens):
    """A vector by the letters of a word, of numbers about 1; none for one word."""
    rows = [np.random.default_rng(sum(map(ord, token))).normal(1, 1, D) for token in tokens]
    return np.array(rows) * [[token != "unknown"] for token in tokens]


def by_meaning(tokens):
    """Nothing but whether it is a name, which its word alone does not say: words of the test are new."""
    rng = np.random.default_rng(0)
    two = rng.normal(0, 1, (2, D))
    return np.array([two[int(int(token) % 3 == 0)] + rng.normal(0, 0.2, D) for token in tokens])


def corpus_of(sentences, tags=None):
    cut = [sentence.split() for sentence in sentences]
    flat = None if tags is None else [tag for each in tags for tag in each.split()]
    words = [word for sentence in cut for word in sentence]
    return Corpus("f.txt", (words,), flat, np.cumsum([0, *map(len, cut)]))


def numbers(first, n_sentences, seed):
    """Sentences of numbers that never come again; those divisible by 3 are names."""
    rng = np.random.default_rng(seed)
    words, tags, lengths = [], [], rng.integers(2, 9, n_sentences)
    for n in lengths:
        some = rng.integers(0, 3, n) + 3 * np.arange(first, first + n)
        first += n
        words.append(" ".join(map(str, some)))
        tags.append(" ".join("B-X" if each % 3 == 0 else "O" for each in some))
    return corpus_of(words, tags)


TRAIN = corpus_of(["the dog saw unknown", "a cat", "the cat sat here"], ["B-X I-X O O", "B-X I-X", "B-X I-X O O"])
OTHER = corpus_of(["a dog unknown", "bird"])


@pytest.fixture(autouse=True)
def quiet():
    with messages.gathered():
        yield


@pytest.fixture
def named(tmp_path, monkeypatch):
    """A module in the working folder, with another name for each test."""
    name = f"encoder_{tmp_path.name}"
    monkeypatch.chdir(tmp_path)
    (tmp_path / f"{name}.py").write_text(MODULE.format(columns=D))
    yield f"{name}:encode"
    sys.modules.pop(name, None)


def by_hand(train, corpus):
    """The columns in plain Python: less the mean of the training tokens that have a vector, all of one length."""
    known = [row for token in train.columns[0] for row in encode([token]) if any(row)]
    centre = [sum(column) / len(known) for column in zip(*known, strict=True)]
    rows = []
    for token in corpus.columns[0]:
        row = encode([token])[0].tolist()
        rest = [a - b for a, b in zip(row, centre, strict=True)] if any(row) else [0.0] * D
        length = sum(each**2 for each in rest) ** 0.5
        rows.append([SCALE * each / length if length else 0.0 for each in rest])
    return rows


# The columns


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("hash_bits", [None, 10])
def test_the_columns(order, hash_bits):
    task, train = Chunking.fit(TRAIN, order=order, vectors=encode, hash_bits=hash_bits)
    plain, _ = Chunking.fit(TRAIN, order=order, hash_bits=hash_bits)
    assert task.n_features == plain.n_features + D
    for corpus in (train, OTHER):
        inputs, without = task.problem(corpus).inputs, plain.problem(corpus).inputs
        np.testing.assert_allclose(inputs.dense, by_hand(TRAIN, corpus), rtol=1e-5, atol=1e-6)
        assert inputs.dense_column == plain.n_features
        np.testing.assert_array_equal(inputs.columns, without.columns)
        np.testing.assert_array_equal(inputs.dense_start, corpus.offsets)
    if hash_bits is None:
        assert task.feature_names()[:-D] == plain.feature_names()
        assert len(set(task.feature_names())) == task.n_features


def test_a_function_its_name_and_arrays_are_the_same(named):
    whole = encode(TRAIN.columns[0])
    parts = [whole[a:b] for a, b in zip(TRAIN.offsets, TRAIN.offsets[1:], strict=False)]
    first = Chunking.fit(TRAIN, vectors=encode)[1].encoded.rows
    for given in (named, whole, whole.astype(np.float32), parts, [part.tolist() for part in parts]):
        task, train = Chunking.fit(TRAIN, vectors=given)
        np.testing.assert_allclose(train.encoded.rows, first, rtol=1e-5, atol=1e-6)
        assert task.problem(train).inputs.dense is train.encoded.rows  # nothing is copied


def test_nothing_is_encoded_twice():
    calls = []

    def counting(tokens):
        calls.append(tokens)
        return encode(tokens)

    task, train = Chunking.fit(TRAIN, vectors=counting)
    assert [" ".join(each) for each in calls] == ["the dog saw unknown", "a cat", "the cat sat here"]
    task.problem(train)
    some = train.take([2, 0])
    inputs = task.problem(some).inputs
    assert len(calls) == 3
    np.testing.assert_allclose(inputs.dense, by_hand(TRAIN, some), rtol=1e-5, atol=1e-6)
    seen = task.seen(OTHER)
    task.problem(seen, learn=False)
    task.problem(seen, learn=False)
    assert len(calls) == 5


def test_columns_that_another_task_made_are_made_anew():
    task, train = Chunking.fit(TRAIN, vectors=encode)
    other, _ = Chunking.fit(train[:2], vectors=encode)  # of another mean
    again = other.problem(train).inputs.dense
    np.testing.assert_allclose(again, by_hand(train[:2], train), rtol=1e-5, atol=1e-6)
    assert np.abs(again - task.problem(train).inputs.dense).max() > 0.1
    without, corpus = Chunking.fit(train)
    assert corpus.encoded is None
    assert without.problem(train).inputs.dense is None


# A twin: the same columns as attributes with values, which the data lists


def as_listed(task, corpus):
    """Attributes and vectors of a corpus, listed with their values."""
    rows, dense = task.index.rows(corpus), task.problem(corpus).inputs.dense
    names = [*task.index.names(), *task.vectors.names()]
    ptr, ids, values, starts = rows.row_ptr(), [], [], [0]
    for i in range(corpus.n_tokens):
        own = rows.columns[ptr[i] : ptr[i + 1]].tolist()
        ids += [*own, *range(len(task.index), len(task.index) + D)]
        values += [1.0] * len(own) + dense[i].tolist()
        starts.append(len(ids))
    listed = Listed(names, np.array(starts), np.array(ids, np.int32), np.array(values, np.float32))
    return Corpus("listed", (), corpus.tags, corpus.offsets, listed=listed)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(
    ("rule", "perturb", "step"),
    [("supervised", None, "adagrad"), ("preference", "score", "adagrad"), ("two-point", "score", "constant")],
)
def test_learning_is_as_with_attributes_that_have_values(order, rule, perturb, step):
    templates = parse_templates(["U0:%x[0,0]", "U1:%x[-1,0]"], "test")
    train = TRAIN.take([0, 1, 2, 0, 2, 1])
    task, corpus = Chunking.fit(train, order=order, templates=templates, vectors=encode)
    listed = as_listed(task, corpus)
    twin, listed = Chunking.fit(listed, order=order)
    given = {"rule": rule, "step": step, "h": 0.1, "seed": 3}
    given |= {} if perturb is None else {"perturb": perturb, "mu": 0.5}
    weights = []
    for each, data in ((task, corpus), (twin, listed)):
        learner = Learner(each.problem(data), Settings.complete(given, each.defaults))
        learner.run(each.gold(data), steps=40)
        weights.append(dict(zip(each.feature_names(), learner.weights(), strict=True)))
    assert weights[0].keys() == weights[1].keys()
    for name, row in weights[0].items():
        np.testing.assert_allclose(row, weights[1][name], rtol=1e-3, atol=1e-4, err_msg=name)
    assert max(np.abs(weights[0][name]).max() for name in task.vectors.names()) > 0.01


# What they teach


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("perturb", [None, "score", "active", "all"])
def test_vectors_teach_what_words_that_never_come_again_cannot(order, perturb):
    train, test = numbers(0, 60, 1), numbers(1000, 60, 2)
    given = {"rule": "supervised", "step": "adagrad"}
    if perturb is not None:
        given = {"rule": "two-point", "perturb": perturb, "mu": 0.3, "step": "constant", "h": 0.005}
    templates = parse_templates(["U0:%x[0,0]", "U1:"], "test")
    quality = []
    for vectors in (by_meaning, None):
        task, corpus = Chunking.fit(train, order=order, templates=templates, vectors=vectors)
        learner = Learner(task.problem(corpus), Settings.complete(given, task.defaults))
        learner.run(task.gold(corpus), steps=4000 if perturb else 600)
        held = task.problem(test, learn=False)
        quality.append(task.quality(held, task.gold(test), predict(held, learner.weights())))
    assert quality[0] > 0.95
    assert quality[1] < 0.6


def test_answers_teach_through_vectors():
    train, test = numbers(0, 80, 1), numbers(1000, 60, 2)
    task, corpus = Chunking.fit(train, vectors=by_meaning)
    learner = QueryLearner(task.problem(corpus, asks=True), Settings.complete({"rule": "review"}, task.defaults))
    learner.run(task.gold(corpus), answers=25)
    held = task.problem(test, learn=False)
    assert task.quality(held, task.gold(test), predict(held, learner.weights())) > 0.95


# A model in a file


def weights_for(task):
    return np.random.default_rng(3).normal(size=(task.n_features, task.n_labels)).astype(np.float32)


@pytest.mark.parametrize("order", [1, 2])
def test_a_model_finds_its_function_by_name(named, order, tmp_path):
    task, _ = Chunking.fit(TRAIN, order=order, vectors=named)
    model = Model(task, weights_for(task), {}, {})
    model.save(tmp_path / "m.szo")
    sys.modules.pop(named.partition(":")[0])
    again = load_model(tmp_path / "m.szo", "chunking")
    assert again.task.vectors.name == named
    np.testing.assert_array_equal(again.predict(OTHER), model.predict(OTHER))
    assert again.tag("a dog unknown") == model.tag("a dog unknown")
    assert len(again.tag("a dog unknown the cat saw a bird"))
    assert again.task.feature_names() == task.feature_names()


def test_a_function_of_a_module_is_saved_by_its_name(named):
    module, _, name = named.partition(":")
    Chunking.fit(TRAIN, vectors=named)  # imports it
    function = getattr(sys.modules[module], name)
    task, _ = Chunking.fit(TRAIN, vectors=function)
    assert task.vectors.name == named


def test_a_function_without_a_name_is_given_again(tmp_path):
    task, _ = Chunking.fit(TRAIN, vectors=lambda tokens: encode(tokens))
    model = Model(task, weights_for(task), {}, {})
    model.save(tmp_path / "m.szo")
    bare = load_model(tmp_path / "m.szo")
    with pytest.raises(UsageError, match=r"names no function that gives them; load it with load_model\(path, vectors="):
        bare.predict(OTHER)
    again = load_model(tmp_path / "m.szo", vectors=encode)
    np.testing.assert_array_equal(again.predict(OTHER), model.predict(OTHER))
    arrays = [encode(["a", "dog", "unknown"]), encode(["bird"])]
    np.testing.assert_array_equal(bare.predict(bare.task.seen(OTHER, vectors=arrays)), model.predict(OTHER))
    plain, _ = Chunking.fit(TRAIN)
    with pytest.raises(UsageError, match="was trained without any"):
        load_model(Model(plain, weights_for(plain), {}, {}).to_bytes(), vectors=encode)
    with pytest.raises(UsageError, match="was made without any"):
        plain.seen(OTHER, vectors=arrays)


def test_what_a_model_names_is_not_there_or_another(named, tmp_path):
    task, _ = Chunking.fit(TRAIN, vectors=named)
    Model(task, weights_for(task), {}, {}).save(tmp_path / "m.szo")
    module = named.partition(":")[0]
    source = tmp_path / f"{module}.py"
    for text, error, why in (
        (MODULE.format(columns=D + 1), DataError, f"gave {D + 1} columns, not {D}; is it another encoder"),
        (MODULE.replace("def encode", "def other"), UsageError, f"{module} has no function encode; install it"),
        ("import nothing_of_this_name\n", UsageError, "cannot be imported .ModuleNotFoundError"),
        (None, UsageError, f"`vectors` {named}: {module} cannot be imported"),
    ):
        sys.modules.pop(module, None)
        source.unlink()
        if text is not None:
            source.write_text(text + "\n" * len(why))  # another size: bytecode of the one before is stale
        with pytest.raises(error, match=why):
            load_model(tmp_path / "m.szo").predict(OTHER)


@pytest.mark.parametrize("name", ["subprocess:run", "os.path:join", "no function", 7])
def test_a_file_that_names_something_else_is_damaged(name, tmp_path, monkeypatch):
    task, _ = Chunking.fit(TRAIN, vectors=encode)
    monkeypatch.setattr(task.vectors.encoder, "name", name)
    Model(task, weights_for(task), {}, {}).save(tmp_path / "m.szo")
    with pytest.raises(DamagedError):
        load_model(tmp_path / "m.szo")


def test_a_model_to_start_from():
    task, _ = Chunking.fit(TRAIN, vectors=encode)
    model = Model(task, weights_for(task), {}, {})
    other, _ = Chunking.fit(TRAIN[:2], vectors=encode)
    np.testing.assert_array_equal(joined(model, other).W[-D:], model.W[-D:])
    wider, _ = Chunking.fit(TRAIN, vectors=lambda tokens: np.hstack([encode(tokens), encode(tokens)]))
    with pytest.raises(UsageError, match="has `vectors` of 6 columns, this task of 12"):
        joined(model, wider)


# What is refused


def wrong(change):
    def function(tokens):
        rows = encode(tokens)
        return change(rows) if "cat" in tokens and len(tokens) == 2 else rows

    return function


def nan_inside(rows):
    rows[1, 2] = np.nan
    return rows


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (nan_inside, "gave nan; numbers must be finite"),
        (lambda rows: rows * 1e300, "e.299; numbers must be finite, and fit float32"),
        (lambda rows: rows[:1], "gave 1 x 6 of float64; give numbers, 2 x the columns"),
        (lambda rows: rows[0], "gave 6 of float64"),
        (lambda rows: rows[:, :0], "gave 2 x 0"),
        (lambda rows: rows[:, :4], "gave 4 columns, not 6"),
        (lambda rows: [["a"], ["b"]], "gave 2 x 1 of <U1"),
        (lambda rows: 1 // 0, "raised ZeroDivisionError: .*, at"),
    ],
)
def test_what_a_function_must_not_give_names_the_sentence(change, why):
    with pytest.raises((DataError, UsageError), match=why) as caught:
        Chunking.fit(TRAIN, vectors=wrong(change))
    assert "f.txt, sentence 2 ('a cat')" in str(caught.value)


def test_arrays_that_do_not_fit():
    whole = encode(TRAIN.columns[0])
    with pytest.raises(DataError, match="gave 9 x 6 of float64; give numbers, 10 x the columns"):
        Chunking.fit(TRAIN, vectors=whole[:9])
    with pytest.raises(UsageError, match="2 arrays for 3 sentences"):
        Chunking.fit(TRAIN, vectors=[whole[:4], whole[4:]])
    with pytest.raises(DataError, match=r"sentence 2 \('a cat'\): `vectors` gave nan"):
        Chunking.fit(TRAIN, vectors=[whole[:4], whole[4:6] * np.nan, whole[6:]])
    with pytest.raises(DataError, match="0 for every token"):
        Chunking.fit(TRAIN, vectors=whole * 0)
    with pytest.raises(UsageError, match="name a function as module:function"):
        Chunking.fit(TRAIN, vectors="no_such_file.txt")


def test_a_sentence_without_tokens():
    corpus = Corpus("f.txt", TRAIN.columns, TRAIN.tags, np.array([0, 4, 4, 6, 10]))
    task, train = Chunking.fit(corpus, vectors=encode, order=2)
    np.testing.assert_allclose(train.encoded.rows, by_hand(TRAIN, TRAIN), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(task.problem(train, learn=False).inputs.dense_start, [0, 4, 4, 6, 10])
    given = [encode(corpus.columns[0][a:b]) for a, b in ((0, 4), (4, 6), (6, 10))]
    _, same = Chunking.fit(corpus, vectors=[given[0], [], *given[1:]], order=2)
    np.testing.assert_array_equal(same.encoded.rows, train.encoded.rows)


def test_attributes_that_are_listed_have_arrays_alone():
    listed = Listed(["a", "b"], np.arange(11), np.array([0, 1] * 5, np.int32), np.ones(10, np.float32))
    corpus = Corpus("listed", (), TRAIN.tags, TRAIN.offsets, listed=listed)
    with pytest.raises(UsageError, match="lists attributes and no words"):
        Chunking.fit(corpus, vectors=encode)
    task, train = Chunking.fit(corpus, vectors=encode(TRAIN.columns[0]))
    assert task.problem(train).inputs.dense.shape == (10, D)


@pytest.mark.parametrize("real", [False, True])
def test_the_example(real, named, tmp_path, monkeypatch, capsys):
    """Somebody's answers teach what words alone do not say; with the encoder that is made there, and with a name."""
    text = "def encode(tokens):\n    return [[t in %r, t[0] < 'm', 1] for t in tokens]\n"
    alive = ["dog", "cat", "horse", "cow", "sheep", "goat", "rabbit", "lion", "tiger"]
    (tmp_path / f"{named.partition(':')[0]}.py").write_text(text % alive)
    monkeypatch.setattr(sys, "argv", ["frozen_encoder.py", *([named] if real else [])])
    runpy.run_path(str(Path(__file__).parents[3] / "examples" / "frozen_encoder.py"))
    alone, with_vectors, saved = capsys.readouterr().out.splitlines()
    assert alone == "words alone:  []"
    assert with_vectors == "with vectors: ['tiger']"
    assert saved == "from a file:  [(9, 14, 'ANIMAL')]"
