"""What a reranker does not take: lists of another decoder, models that were made up, weights that are not finite.

And how it names its weights, and says which are missing.
"""

from __future__ import annotations

import numpy as np
import pytest
from small_lists import write

from sparsezo import notes
from sparsezo.errors import DivergedError, SparsezoError, UsageError
from sparsezo.tasks.rerank.importing import import_nbest
from sparsezo.tasks.rerank.nbest import NBestList
from sparsezo.tasks.rerank.task import Reranking

NAMES = (*(f"F{k}" for k in range(9)), "Late")


@pytest.fixture
def task():
    return Reranking(NAMES, (-1.0, 0.5, *[0.0] * 7, 0.25))


def nbest(i, names):
    return NBestList(i, i + 1, tuple(names), ["x"], np.ones((1, len(names)), np.float32))


def test_lists_are_held_back_until_one_has_a_known_feature(task):
    lists = [nbest(0, []), nbest(1, ["X"]), nbest(2, ["X", "F3"]), nbest(3, ["X", "F3"])]
    assert [each.id for each in task.known("here", lists)] == [0, 1, 2, 3]
    read = iter(nbest(i, ["X"]) for i in range(5000))
    with pytest.raises(SparsezoError, match=r"^here: its lists have X, none of"):
        next(task.known("here", read))
    assert 1000 <= next(read).id < 2000  # not all of a long file is kept in memory
    with pytest.raises(SparsezoError, match=r"^here: its lists have no features, none of"):
        next(task.known("here", [nbest(0, [])]))


CRAFTED = [
    ({"names": ["A", "A"]}, np.zeros(2)),
    ({"names": ["A", 1]}, np.zeros(2)),
    ({"names": "AB"}, np.zeros(2)),
    ({"names": []}, np.zeros(0)),
    ({"names": ["A", "B"]}, np.zeros(3)),
    ({"names": ["A", "B"]}, np.zeros((2, 1))),
    ({"names": ["A", "B"]}, np.array([0, np.nan])),
    ({"names": ["A", "B"]}, np.zeros(2, complex)),
    ({"names": ["A", "B"]}, np.array(["0", "1"])),
    ({}, np.zeros(2)),
]


@pytest.mark.parametrize(("settings", "init"), CRAFTED)
def test_a_model_that_was_made_up(settings, init):
    with pytest.raises((ValueError, TypeError, KeyError)):
        Reranking.from_arrays(settings, {"init": init})


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e308])
def test_an_order_by_scores_that_are_not_finite_is_refused(task, bad):
    """Also where the list at hand does not have the feature, unless only its scores would overflow."""
    W = task.initial_weights()
    W[9] = bad
    with pytest.raises(DivergedError, match="scores that are not finite"):
        task.order(NBestList(0, 1, ("F0", "Late"), ["x"], np.array([[1, 1e10]], np.float32)), W)
    if bad != 1e308:
        with pytest.raises(DivergedError, match="scores that are not finite"):
            task.order(nbest(0, ["F0"]), W)
    with pytest.raises(UsageError, match="3 weights for 10 features; give one for each"):
        task.order(nbest(0, ["F0"]), np.zeros(3))


def test_features_without_an_initial_weight_are_named(tmp_path, monkeypatch):
    pairs = " ".join(f"{name}=1" for name in NAMES)
    store = import_nbest(write(tmp_path, [[("x", pairs)]], ["x"]), store_dir=tmp_path / "s")
    said = []
    monkeypatch.setattr(notes, "_sayer", said.append)
    Reranking.fit(store, dict.fromkeys(NAMES[:9], 1.0))
    Reranking.fit(store, {"F1": 1.0})
    Reranking.fit(store, dict.fromkeys(NAMES, 1.0))
    Reranking.fit(store)
    assert said == [
        f"{store.source}: Late has no initial weight and starts at 0",
        f"{store.source}: F0, F2, F3, ... have no initial weight and start at 0",
    ]


def test_names_of_rows_and_columns(task):
    assert task.feature_names() == NAMES
    assert len(set(task.feature_names())) == task.n_features
    assert len(task.label_names()) == task.n_labels == 1
