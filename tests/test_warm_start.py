"""A model's weights for other data: features and labels found again by name."""

from __future__ import annotations

import numpy as np
import pytest

from sparsezo.errors import UsageError
from sparsezo.learner import predict
from sparsezo.model import Model
from sparsezo.tasks.chunking.synthetic import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.training import joined


class Named:
    """A task that has nothing but names."""

    name = "named"

    def __init__(self, features, labels):
        self.features, self.labels = features, labels
        self.n_features, self.n_labels = len(features), len(labels)

    def feature_names(self):
        return self.features

    def label_names(self):
        return self.labels


def test_weights_go_where_their_names_are():
    old, new = Named(["a", "b", "c"], ["x", "y"]), Named(["c", "new", "a"], ["y", "z", "x"])
    W = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    start = joined(Model(old, W, {}, {}), new)
    np.testing.assert_array_equal(start.W, [[6, 0, 5], [0, 0, 0], [2, 0, 1]])
    assert (start.features, start.labels, start.W.dtype) == (2, 2, np.float32)


@pytest.mark.parametrize(
    ("features", "labels", "what"),
    [
        (["other"], ["x"], "features of the data: it has 'a', 'b', 'c', ..., they are 'other'"),
        (["a"], ["q"], "labels of the data: it has 'x', 'y', they are 'q'"),
    ],
)
def test_a_model_that_knows_nothing_of_the_data_is_refused(features, labels, what):
    model = Model(Named(["a", "b", "c", "d"], ["x", "y"]), np.zeros((4, 2)), {}, {})
    with pytest.raises(UsageError) as caught:
        joined(model, Named(features, labels))
    assert str(caught.value) == (
        f"the model to start from has none of the {what}; was it made with other options, or from other data?"
    )


def test_a_task_without_names_is_refused():
    class Nameless:
        name = "mine"

    with pytest.raises(UsageError, match=r"^task mine has no feature_names: it cannot start from a model$"):
        joined(Model(Nameless(), np.zeros((1, 1)), {}, {}), Nameless())


@pytest.mark.parametrize("order", [1, 2])
def test_a_chunker_has_a_name_for_every_weight(order):
    task, _ = Chunking.fit(chunking_corpus(30, seed=1), order=order)
    features, labels = task.feature_names(), task.label_names()
    assert (len(features), len(labels)) == (task.n_features, task.n_labels)
    assert (len(set(features)), len(set(labels))) == (task.n_features, task.n_labels)
    assert features[: len(task.index)] == task.index.names()
    if order == 1:
        assert features[len(task.index) :] == [f"after {tag}" for tag in task.tags]
        assert labels == list(task.tags)
    else:
        K = len(task.tags)
        assert labels[1 * K + 2] == f"{task.tags[1]} {task.tags[2]}"


@pytest.mark.parametrize("order", [1, 2])
def test_a_chunker_tags_the_same_with_weights_that_have_moved_house(order):
    """Its own data and more: other numbers for features and tags, the same outputs."""
    corpus = chunking_corpus(40, seed=1)
    small, train = Chunking.fit(corpus[:20], order=order)
    large, _ = Chunking.fit(corpus, order=order)
    assert small.index.names() != large.index.names()[: len(small.index)]
    W = np.random.default_rng(3).standard_normal((small.n_features, small.n_labels)).astype(np.float32)
    start = joined(Model(small, W, {}, {}), large)
    assert (start.features, start.labels) == (small.n_features, small.n_labels)
    outputs = [predict(task.problem(train, learn=False), w) for task, w in ((small, W), (large, start.W))]
    assert small.words(outputs[0], train.offsets) == large.words(outputs[1], train.offsets)
    assert len(set(outputs[0].tolist())) > 2
