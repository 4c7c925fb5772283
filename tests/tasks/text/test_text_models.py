"""A text task's names, its documents without words, and what a saved one may claim."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sparsezo.errors import UsageError
from sparsezo.learner import Learner, predict
from sparsezo.perturbations import PERTURBATIONS
from sparsezo.rules import RULES
from sparsezo.settings import Settings
from sparsezo.tasks.text.documents import read_documents
from sparsezo.tasks.text.generate import generate_text, generate_texts
from sparsezo.tasks.text.task import TextClassification

COMBINATIONS = [
    Settings(rule, perturb, h=0.1, mu=1.0 if perturb else None, step=step)
    for rule in RULES
    if rule != "span"  # which a text has none of
    for perturb in (PERTURBATIONS if RULES[rule].zeroth_order else [None])
    for step in ("constant", "adagrad")
    if (perturb, step) != ("all", "adagrad")
]


def fitted(tmp_path):
    path = tmp_path / "some.tsv"
    path.write_text("a\tone two two two\nb\ttwo three\na\tone One four\n")
    return TextClassification.fit(read_documents(path))


def test_names_of_rows_and_columns(tmp_path):
    """One each, all different: what weights are joined by."""
    task, _ = fitted(tmp_path)
    assert (task.feature_names(), task.label_names()) == (["four", "one", "three", "two"], ["a", "b"])
    documents = generate_text(50, seed=2, vocabulary=3000, words=30).documents()
    task, train = TextClassification.fit(documents)
    names = task.feature_names()
    assert len(names) == len(set(names)) == task.n_features
    assert [names[k] for k in train.matrix.indices] == list(map(str, documents.vectors.indices))
    assert TextClassification.from_arrays(*task.to_arrays()).feature_names() == names


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
        learner = Learner(problem, replace(chosen, rehearse=0) if RULES[chosen.rule].asks else chosen)
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


def test_only_documents_without_words_to_predict(tmp_path):
    task, _ = fitted(tmp_path)
    (tmp_path / "none.txt").write_text("\n\n?\n")
    problem = task.problem(read_documents(tmp_path / "none.txt", labelled=False), learn=False)
    assert task.words(predict(problem, np.ones((4, 2), np.float32))) == ["a", "a", "a"]


# What a file may claim


@pytest.mark.parametrize(
    ("settings_changed", "arrays_changed", "why"),
    [
        ({}, {"idf": np.array([1, np.nan, 1, 1])}, "idf values are not all positive and finite"),
        ({}, {"idf": np.array([1, np.inf, 1, 1])}, "idf values are not all positive and finite"),
        ({}, {"idf": np.array([1, 0.0, 1, 1])}, "idf values are not all positive and finite"),
        ({}, {"idf": np.array([1, 1, 1, 1])}, "idf values are not all positive and finite"),
        ({}, {"idf": np.ones(4, complex)}, "idf values are not all positive and finite"),
        ({}, {"idf": np.array([1, 3e38, 1, 1])}, "an idf value of 3e\\+38; 100 is more than any collection gives"),
        ({}, {"idf": np.ones(3)}, "4 words, but idf values of shape"),
        ({}, {"idf": np.ones((4, 1))}, "4 words, but idf values of shape"),
        ({}, {"vocabulary": np.frombuffer(b"a\nb\na\nc", np.uint8)}, "a word is there twice"),
        ({}, {"vocabulary": np.frombuffer(b"a\nb\n\xff\nc", np.uint8)}, "utf-8"),
        ({"classes": ["a", "a"]}, {}, "2 classes, 1 of them different"),
        ({"classes": ["a"]}, {}, "1 classes"),
        ({"classes": ["a", 3]}, {}, "not a list of names"),
        ({"classes": "ab"}, {}, "not a list of names"),
        ({"kind": "images"}, {}, "documents of the kind images"),
        ({"min_count": 0}, {}, "min_count is 0"),
        ({"min_count": "1"}, {}, "settings of the vectoriser"),
        ({"lowercase": 1}, {}, "settings of the vectoriser"),
        ({"token_pattern": "("}, {}, "not a regular expression"),
        ({"more": 1}, {}, "settings of the vectoriser"),
        ({"kind": "vectors"}, {"indices": np.array([1.0, 2.0])}, "not rising whole numbers"),
        ({"kind": "vectors"}, {"indices": np.array([3, 2])}, "not rising whole numbers"),
        ({"kind": "vectors"}, {"indices": np.array([3, 3])}, "not rising whole numbers"),
        ({"kind": "vectors"}, {"indices": np.array([-1, 3])}, "not rising whole numbers"),
        ({"kind": "vectors"}, {"indices": np.array([[1, 3]])}, "not rising whole numbers"),
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
