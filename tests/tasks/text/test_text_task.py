"""Text classification from documents to figures, on generated data; and on 20 Newsgroups where it is at hand."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from types import SimpleNamespace

import hypothesis
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from sparsezo.errors import DataError, UsageError
from sparsezo.learner import Learner, predict
from sparsezo.query_learner import make_learner
from sparsezo.rules import PERTURBATIONS, RULES
from sparsezo.settings import Settings
from sparsezo.study.experiments import paper_on
from sparsezo.tasks.text import task as module
from sparsezo.tasks.text.io.documents import Documents, read_documents
from sparsezo.tasks.text.synthetic import generate_text, generate_texts
from sparsezo.tasks.text.task import TextClassification, score_classes


def settings(rule, perturb=None, step="constant", **others):
    mu = 1.0 if RULES[rule].zeroth_order else None
    return Settings(rule=rule, perturb=perturb, h=0.1, mu=mu, step=step, **others)


COMBINATIONS = [
    settings(rule, perturb, step)
    for rule in RULES
    if rule not in ("span", "review", "best")  # a text has no parts, and one class
    for perturb in (PERTURBATIONS if RULES[rule].zeroth_order else [None])
    for step in ("constant", "adagrad")
    if (perturb, step) != ("all", "adagrad")
]
COMBINATIONS.append(settings("first-order", baseline=True))


@pytest.fixture(scope="module")
def some():
    """800 training documents and 400 others, of 30 words."""
    documents = generate_text(1200, seed=2, vocabulary=3000, words=30, label_noise=0).documents()
    task, train = TextClassification.fit(documents.take(slice(0, 800)))
    test = task.seen(documents.take(slice(800, None)))
    return SimpleNamespace(
        task=task, train=train, test=test, problem=task.problem(train), gold=task.gold(train), documents=documents
    )


def accuracy(some, W):
    outputs = predict(some.task.problem(some.test, learn=False), W)
    return some.task.scores(some.test, outputs).value


def majority(some):
    labels = some.test.documents.labels
    return max(labels.count(name) for name in set(labels)) / len(labels)


def test_problem(some):
    problem, matrix = some.problem, some.train.matrix
    assert len(problem) == len(some.train) == 800
    assert (problem.n_features, problem.n_labels) == (matrix.shape[1], 4)
    np.testing.assert_array_equal(problem.n_active, 4 * np.diff(matrix.indptr))
    np.testing.assert_array_equal(problem.n_score, 4)
    assert problem.max_outputs == problem.max_rows == 1
    assert problem.max_columns == np.diff(matrix.indptr).max()


def test_vectors_reach_the_loop_without_a_copy(some):
    """Of their values; columns are new, for only the indices that train has get one."""
    assert np.shares_memory(some.problem.inputs.values, some.train.documents.vectors.data)
    assert np.shares_memory(some.problem.inputs.columns, some.train.matrix.indices)
    assert some.task.n_features == len(np.unique(some.train.documents.vectors.indices))


def test_documents_and_prepared_are_the_same_problem(some):
    one, other = some.task.problem(some.test), some.task.problem(some.test.documents)
    for a, b in zip(one.inputs, other.inputs, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(some.task.gold(some.test).labels, some.task.gold(some.test.documents).labels)


# "all" needs more steps than a test has time for: one weight in thirty is active
@pytest.mark.parametrize("chosen", [c for c in COMBINATIONS if c.perturb != "all"], ids=str)
def test_learns(some, chosen):
    learner = make_learner(some.problem, chosen)
    learner.run(some.gold, 60_000)
    assert accuracy(some, learner.weights()) > majority(some) + 0.1


@pytest.mark.parametrize("rule", ["two-point", "symmetric", "baseline"])
def test_learns_under_the_annealed_criterion(some, rule):
    problem = some.task.problem(some.train, risk=True)
    learner = Learner(problem, settings(rule, "score", criterion="annealed", gamma=2.0))
    learner.run(some.gold, 40_000)
    assert accuracy(some, learner.weights()) > majority(some) + 0.1


def test_scores_lead_with_what_quality_gives(some):
    gold = some.task.gold(some.test)
    outputs = gold.labels.copy()
    outputs[:40] = (outputs[:40] + 1) % 4
    scores = some.task.scores(some.test, outputs)
    assert (scores.metric, scores.value) == ("accuracy", 0.9)
    assert some.task.quality(some.task.problem(some.test), gold, outputs) == 0.9
    assert scores.report["accuracy"] == 0.9
    assert scores.report["documents"] == 400
    assert set(scores.report["classes"]) == set(some.task.classes)
    assert some.task.words(gold.labels) == some.test.documents.labels


@hypothesis.settings(max_examples=100, deadline=None)
@given(pairs=st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("abcde")), min_size=1, max_size=40))
def test_scores_are_scikit_learns(pairs):
    gold, predicted = map(list, zip(*pairs, strict=True))
    scores = json.loads(json.dumps(score_classes(gold, predicted)))
    names = list(scores["classes"])
    assert names == sorted({*gold, *predicted})
    theirs = metrics.precision_recall_fscore_support(gold, predicted, labels=names, zero_division=0)
    for what, values in zip(("precision", "recall", "f1", "support"), theirs, strict=True):
        np.testing.assert_allclose([scores["classes"][name][what] for name in names], values)
    assert scores["accuracy"] == pytest.approx(metrics.accuracy_score(gold, predicted))
    assert scores["macro_f1"] == pytest.approx(metrics.f1_score(gold, predicted, average="macro", zero_division=0))


def restored(task):
    """The task after a trip through JSON and a .npz file without pickle."""
    told, arrays = task.to_arrays()
    file = io.BytesIO()
    np.savez(file, **arrays)
    file.seek(0)
    with np.load(file, allow_pickle=False) as stored:
        return TextClassification.from_arrays(json.loads(json.dumps(told)), dict(stored))


def same_problem(task, other, documents):
    one, two = task.problem(documents, learn=False), other.problem(documents, learn=False)
    assert (one.n_features, one.n_labels) == (two.n_features, two.n_labels)
    for a, b in zip(one.inputs, two.inputs, strict=True):
        np.testing.assert_array_equal(a, b)


def test_saved_and_restored(some):
    other = restored(some.task)
    assert other.classes == some.task.classes
    same_problem(some.task, other, some.test.documents)


def test_documents_without_labels_cannot_be_scored(some):
    test = some.test.documents
    bare = Documents(test.paths, test.file_of, test.lines, None, vectors=test.vectors)
    for ask in (some.task.gold, lambda data: some.task.scores(data, np.zeros(400, np.int32))):
        with pytest.raises(DataError, match="no labels"):
            ask(bare)


@pytest.mark.parametrize("perturb", ["all", "active", "score"])
def test_preference_is_two_point_bit_for_bit(some, perturb):
    """With a loss of 0 or 1 two rules are one, as reports say where both stand (docs/deviations.md)."""
    weights = []
    for rule in ("two-point", "preference"):
        learner = Learner(some.problem, Settings(rule, perturb, 0.1, 1.0, seed=4))
        learner.run(some.gold, 400)
        weights.append(learner.weights())
    assert np.abs(weights[0]).max() > 0
    assert (weights[0] == weights[1]).all()
    assert paper_on("text").zero_one_loss


# Options that reach the features


TEXTS = "a\tone two two two\nb\ttwo three\na\tone One four\n"


def fitted(tmp_path, **options):
    path = tmp_path / "some.tsv"
    path.write_text(TEXTS)
    return TextClassification.fit(read_documents(path), **options)


def test_names_of_rows_and_columns(tmp_path, some):
    """One each, all different: what weights are joined by."""
    task, _ = fitted(tmp_path)
    assert (task.feature_names(), task.label_names()) == (["four", "one", "three", "two"], ["a", "b"])
    task, train = some.task, some.train
    names = task.feature_names()
    assert len(names) == len(set(names)) == task.n_features
    assert [names[k] for k in train.matrix.indices] == list(map(str, train.documents.vectors.indices))
    assert TextClassification.from_arrays(*task.to_arrays()).feature_names() == names


def test_too_many_weights_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_MOST_WEIGHTS", 8)
    assert fitted(tmp_path)[0].n_features == 4  # x 2 classes
    monkeypatch.setattr(module, "_MOST_WEIGHTS", 7)
    with pytest.raises(UsageError) as caught:
        fitted(tmp_path)
    assert str(caught.value) == (
        "4 features x 2 classes are 8 weights of at most 7; leave out rare features with a higher `min_count`, "
        "or join rare classes"
    )


# Documents without words


def test_documents_without_words_are_inputs_like_any_other(tmp_path):
    """Every rule and perturbation learns with them; their scores are all 0, so the first class is their output."""
    path = tmp_path / "some.tsv"
    some = "".join(f"{label}\t{text}\n" for label, text in generate_texts(40, seed=1))
    path.write_text(some + "CCAT\t\nMCAT\t!\n" * 9)
    task, train = TextClassification.fit(read_documents(path))
    problem, gold = task.problem(train), task.gold(train)
    assert problem.n_score.tolist() == [task.n_labels] * 40 + [0] * 18
    for chosen in COMBINATIONS:
        learner = make_learner(problem, replace(chosen, rehearse=0) if RULES[chosen.rule].asks else chosen)
        learner.run(gold, 500)
        W = learner.weights()
        assert np.isfinite(W).all(), chosen
        assert task.words(predict(problem, W))[40:] == [task.classes[0]] * 18, chosen
        if RULES[chosen.rule].incumbent is not None and RULES[chosen.rule].zeroth_order:
            with pytest.raises(UsageError, match="input 41: the model has one output for it"):
                learner.ask(41)
        elif chosen.rule != "supervised":
            before = W.copy()
            asked = learner.ask(41)
            learner.tell(
                asked, {"part": "yes", "label": "CCAT", "pair": "first", "pairwise": "incumbent"}.get(chosen.rule, 1.0)
            )
            if chosen.perturb != "all":
                np.testing.assert_array_equal(learner.weights(), before)


# What a file may claim


@pytest.mark.parametrize(
    ("settings_changed", "arrays_changed", "why"),
    [
        ({}, {"idf": np.array([1, np.nan, 1, 1])}, "idf values are not all positive and finite"),
        ({}, {"idf": np.array([1, 0.0, 1, 1])}, "idf values are not all positive and finite"),
        ({}, {"idf": np.ones(4, complex)}, "idf values are not all positive and finite"),
        ({}, {"idf": np.array([1, 3e38, 1, 1])}, "an idf value of 3e\\+38; 100 is more than any collection gives"),
        ({}, {"idf": np.ones(3)}, "4 words, but idf values of shape"),
        ({}, {"vocabulary": np.frombuffer(b"a\nb\na\nc", np.uint8)}, "a word is there twice"),
        ({}, {"vocabulary": np.frombuffer(b"a\nb\n\xff\nc", np.uint8)}, "utf-8"),
        ({"classes": ["a", "a"]}, {}, "2 classes, 1 of them different"),
        ({"classes": ["a", 3]}, {}, "not a list of names"),
        ({"kind": "images"}, {}, "documents of the kind images"),
        ({"min_count": 0}, {}, "min_count is 0"),
        ({"lowercase": 1}, {}, "settings of the vectoriser"),
        ({"token_pattern": "("}, {}, "not a regular expression"),
        ({"more": 1}, {}, "settings of the vectoriser"),
        ({"kind": "vectors"}, {"indices": np.array([1.0, 2.0])}, "not rising whole numbers"),
        ({"kind": "vectors"}, {"indices": np.array([3, 3])}, "not rising whole numbers"),
        ({"kind": "vectors"}, {"indices": np.array([-1, 3])}, "not rising whole numbers"),
        ({"kind": "vectors"}, {"seen": np.array([1, 0])}, "seen is of type int64"),
        ({"kind": "vectors"}, {"seen": np.array([[True]])}, "seen is of type bool and shape"),
    ],
)
def test_what_cannot_have_been_saved_is_a_value_error(tmp_path, settings_changed, arrays_changed, why):
    """``load_model`` makes one line of it."""
    told, arrays = fitted(tmp_path)[0].to_arrays()
    if "classes" in settings_changed:
        told = {**told, **settings_changed}
    else:
        told = {**told, "vectoriser": {**told["vectoriser"], **settings_changed}}
    with pytest.raises(ValueError, match=why):
        TextClassification.from_arrays(told, {**arrays, **arrays_changed})
