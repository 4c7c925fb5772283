"""Scores of classes against scikit-learn's."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsezo.errors import UsageError
from sparsezo.tasks.text.metric import score_classes


def test_by_hand() -> None:
    scores = score_classes(["rec", "sci", "sci", "sci"], ["rec", "sci", "rec", "talk"])
    assert scores.accuracy == 0.5
    assert scores.classes == ("rec", "sci", "talk")
    assert scores.precision == (0.5, 1.0, 0.0)
    assert scores.recall == (1.0, pytest.approx(1 / 3), 0.0)
    assert scores.f1 == (pytest.approx(2 / 3), 0.5, 0.0)
    assert scores.support == (1, 3, 0)
    assert scores.macro_f1 == pytest.approx(7 / 18)
    shown = json.loads(json.dumps(scores.as_dict()))
    assert shown["classes"]["sci"] == {"precision": 1.0, "recall": pytest.approx(1 / 3), "f1": 0.5, "support": 3}


@settings(max_examples=100, deadline=None)
@given(pairs=st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("abcde")), min_size=1, max_size=40))
def test_against_scikit_learn(pairs: list[tuple[str, str]]) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    gold, predicted = map(list, zip(*pairs, strict=True))
    scores = score_classes(gold, predicted)
    precision, recall, f1, support = metrics.precision_recall_fscore_support(
        gold, predicted, labels=scores.classes, zero_division=0
    )
    assert scores.classes == tuple(sorted({*gold, *predicted}))
    assert scores.accuracy == pytest.approx(metrics.accuracy_score(gold, predicted))
    assert scores.macro_f1 == pytest.approx(metrics.f1_score(gold, predicted, average="macro", zero_division=0))
    np.testing.assert_allclose(scores.precision, precision)
    np.testing.assert_allclose(scores.recall, recall)
    np.testing.assert_allclose(scores.f1, f1)
    assert scores.support == tuple(support)


def test_numbers_for_labels() -> None:
    assert score_classes(np.array([0, 1, 1]), np.array([0, 1, 0])).classes == ("0", "1")


def test_wrong_calls() -> None:
    with pytest.raises(UsageError, match="2 gold labels, but 1 predicted"):
        score_classes(["a", "b"], ["a"])
    with pytest.raises(UsageError, match="no documents to score"):
        score_classes([], [])
