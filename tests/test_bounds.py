"""What may enter compiled code: every wrong array is refused before, in one line."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from sparsezo import validation
from sparsezo.errors import DivergedError, UsageError
from sparsezo.kernels import loop
from sparsezo.kernels.inputs.dense import dense_inputs
from sparsezo.kernels.inputs.rows import row_inputs
from sparsezo.kernels.inputs.sparse import sparse_inputs
from sparsezo.learner import Learner, predict
from sparsezo.settings import Settings
from sparsezo.tasks.base import Problem
from sparsezo.tasks.chunking.io.conll import Corpus
from sparsezo.tasks.chunking.synthetic import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.rerank.kernels.task import RankGold, rank_task
from sparsezo.tasks.text.kernels.task import ClassGold, class_task


@pytest.fixture(scope="module")
def chunking():
    task, corpus = Chunking.fit(chunking_corpus(12, seed=5), only="NP")
    return task, task.problem(corpus), task.gold(corpus)


@pytest.fixture(scope="module")
def task(chunking):
    return chunking[0]


@pytest.fixture(scope="module")
def problem(chunking):
    return chunking[1]


@pytest.fixture(scope="module")
def gold(chunking):
    return chunking[2]


def rows(N=4, n=6, labels=3):
    X = csr_array(np.eye(N, n, dtype=np.float32))
    return Problem(row_inputs(X), class_task(labels), n, labels, np.arange(N + 1), np.ones(N, int), 1, 1)


def lists(sizes=(3, 2), M=2):
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    inputs = dense_inputs(np.ones((offsets[-1], M), np.float32), offsets)
    N = len(sizes)
    sizes = {"max_rows": max(sizes), "max_columns": M, "dtype": np.float64}
    return Problem(inputs, rank_task(offsets), M, 1, np.arange(N + 1), np.ones(N, int), **sizes)


# Weights


def test_weights_are_read_as_they_are_however_they_lie_in_memory(problem):
    """Transposed, strided, of another type: the same outputs as of a plain copy."""
    W = np.random.default_rng(1).standard_normal((problem.n_features, problem.n_labels)).astype(np.float32)
    expected = predict(problem, W)
    strided = np.zeros((2 * len(W), problem.n_labels), np.float32)
    strided[::2] = W
    turned = np.ascontiguousarray(W.T).T
    for same in (np.asfortranarray(W), turned, strided[::2], W.astype(np.float64), W.astype(">f4"), W.tolist()):
        np.testing.assert_array_equal(predict(problem, same), expected)
        learner = Learner(problem, Settings(), same)
        np.testing.assert_array_equal(learner.weights(), W)
        assert learner.state.W.flags.c_contiguous
    learner.state.W[:] = 7  # a copy


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda W: W.T, "have shape (9, {n}); make it ({n}, 9)"),
        (lambda W: W[:-1], "have shape ({n_less}, 9); make it ({n}, 9)"),
        (lambda W: np.vstack([W, W]), "have shape ({n_more}, 9); make it ({n}, 9)"),
        (lambda W: W.reshape(-1), "have shape ({flat},); make it ({n}, 9)"),
        (lambda W: W[None], "have shape (1, {n}, 9); make it ({n}, 9)"),
        (lambda W: W.astype(complex), "are complex128, no table of real numbers; make it ({n}, 9)"),
        (lambda W: W.astype(str), "are <U32, no table of real numbers; make it ({n}, 9)"),
        (lambda W: W.astype(object), "are object, no table of real numbers; make it ({n}, 9)"),
        (lambda W: None, "are object, no table of real numbers; make it ({n}, 9)"),
        (lambda W: [[1], [1, 2]], "are no table of numbers; make it ({n}, 9)"),
    ],
)
def test_weights_that_do_not_fit_never_get_there(problem, change, message, monkeypatch):
    n = problem.n_features
    W = change(np.zeros((n, problem.n_labels), np.float32))
    monkeypatch.setattr(loop, "decode_all", None)
    said = message.format(n=n, n_less=n - 1, n_more=2 * n, flat=9 * n)
    with pytest.raises(UsageError) as caught:
        predict(problem, W)
    assert str(caught.value) == f"the weights {said}"
    if W is not None:
        with pytest.raises(UsageError) as caught:
            Learner(problem, Settings(), W)
        assert str(caught.value) == f"the weights to start from {said}"


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e39])
def test_weights_that_are_not_finite(problem, value):
    """Also those of features that no input has, and those that are too large for the type."""
    W = np.zeros((problem.n_features, problem.n_labels))
    W[-1, -1] = value
    with pytest.raises(DivergedError, match="not finite"):
        predict(problem, W)
    with pytest.raises(UsageError, match="must all be finite"):
        Learner(problem, Settings(), W)


# Gold


def test_gold_of_another_corpus_is_refused(task, problem, gold, monkeypatch):
    monkeypatch.setattr(loop, "run", None)
    learner = Learner(problem, Settings())
    for n, seed in ((3, 5), (12, 6), (40, 1)):
        other = task.gold(task.seen(chunking_corpus(n, seed=seed)))
        with pytest.raises(UsageError, match="this gold is of other inputs"):
            learner.run(other, 10)
    for wrong in (None, [1], "gold", np.zeros(3)):
        with pytest.raises(UsageError, match=r"gold is a \w+; give what task.gold\(data\) gives"):
            learner.run(wrong, 10)
    for other in (ClassGold(np.zeros(12, np.int32)), RankGold(gold.offsets, np.zeros(3), np.zeros((3, 10)))):
        with pytest.raises(UsageError, match="this gold is of other"):
            learner.run(other, 10)
    with pytest.raises(UsageError, match="must be an array of whole numbers"):
        learner.run(gold._replace(tags=gold.tags[:-1]), 10)


@pytest.mark.parametrize("tag", [-1, 5, 6, 1000])
def test_tags_of_gold_that_no_tag_has(problem, gold, tag):
    """3 and 4 are gold's own, "another type": supervised, which learns from the tags, cannot have these either."""
    tags = gold.tags.copy()
    tags[-1] = tag
    with pytest.raises(UsageError, match=f"the gold's tags has {tag}; it must be from 0 to 4"):
        Learner(problem, Settings()).run(gold._replace(tags=tags), 1)
    tags[-1] = 4
    Learner(problem, Settings()).run(gold._replace(tags=tags), 1)
    with pytest.raises(UsageError, match="the gold's tags has 4; it must be from 0 to 2"):
        Learner(problem, Settings("supervised", None, 0.1, None)).run(gold._replace(tags=tags), 1)


def test_gold_of_classes_and_of_lists():
    learner = Learner(rows(), Settings())
    learner.run(ClassGold(np.array([0, 1, 2, 0], np.int32)), 5)
    for labels in ([0, 1, 2], [0, 1, 2, 3], [0, 1, 2, -1]):
        with pytest.raises(UsageError):
            learner.run(ClassGold(np.array(labels, np.int32)), 5)
    problem = lists()
    offsets, losses, statistics = np.array([0, 3, 5]), np.linspace(0, 1, 5), np.zeros((5, 10), np.int16)
    losses.flags.writeable = statistics.flags.writeable = False  # as a store has them, and the loop is compiled
    learner = Learner(problem, Settings())
    learner.run(RankGold(offsets, losses, statistics), 5)
    for gold in (
        RankGold(np.array([0, 2, 5]), losses, statistics),
        RankGold(offsets, losses[:4], statistics),
        RankGold(offsets, np.array([0, 1, np.nan, 1, 1]), statistics),
    ):
        with pytest.raises(UsageError):
            learner.run(gold, 5)


def test_gold_is_checked_once(problem, gold, monkeypatch):
    learner = Learner(problem, Settings())
    learner.run(gold, 1)
    monkeypatch.setattr(type(gold), "check", None)
    learner.run(gold, 1)


@pytest.mark.parametrize("steps", [-1, 1.5, "10", True])
def test_steps_that_are_no_number(chunking, steps):
    with pytest.raises(UsageError, match="must be a whole number, 0 or more"):
        Learner(chunking[1], Settings()).run(chunking[2], steps)


def test_quality_looks_at_its_outputs(task, problem, gold):
    outputs = predict(problem, np.zeros((problem.n_features, problem.n_labels)))
    assert 0 <= task.quality(problem, gold, outputs) <= 1
    for wrong in (outputs[:-1], outputs + 3, outputs - 3, outputs.astype(float)):
        with pytest.raises(UsageError):
            task.quality(problem, gold, wrong)


# Problems


def test_a_problem_to_decode_only_is_not_learned_from(task):
    """Its factors are not there, and compiled code would read past the end of nothing."""
    corpus = task.seen(chunking_corpus(3, seed=5))
    for problem in (task.problem(corpus, learn=False), replace(lists(), learn=False)):
        with pytest.raises(UsageError, match="was made to decode only"):
            Learner(problem, Settings())
    with pytest.raises(UsageError, match=r"needs task.problem\(data, risk=True\)"):
        Learner(task.problem(corpus), Settings(criterion="annealed"))
    nothing = task.problem(corpus[0:0])
    assert predict(nothing, np.zeros((task.n_features, task.n_labels))).size == 0
    with pytest.raises(UsageError, match="no inputs to learn from"):
        Learner(nothing, Settings())


@pytest.mark.parametrize(
    "change",
    [
        {"n_features": 2},
        {"n_features": 0},
        {"n_labels": 4},
        {"max_rows": 1},
        {"max_columns": 1},
        {"output_start": np.array([0, 5])},
        {"output_start": np.zeros(0, np.int64)},
        {"output_start": np.array([0.0, 1.0])},
    ],
    ids=str,
)
def test_a_problem_whose_numbers_do_not_fit(chunking, change):
    with pytest.raises(UsageError):
        replace(chunking[1], **change)


def test_inputs_whose_arrays_do_not_fit():
    start, ptr, columns = np.array([0, 1, 2]), np.array([0, 2, 3]), np.array([0, 5, 2], np.int32)
    sparse_inputs(start, ptr, columns, None, 6, 2)
    values = np.ones(3, np.float32)
    for wrong in (
        (start, ptr, columns, None, 5),
        (start, ptr, columns - 1, None, 6),
        (np.array([0, 1, 3]), ptr, columns, None, 6),
        (np.array([0, 2, 1]), ptr, columns, None, 6),
        (start, np.array([0, 3, 2]), columns, None, 6),
        (start, np.array([0, 2, 4]), columns, None, 6),
        (start, np.array([1, 2, 3]), columns, None, 6),
        (start, ptr, columns.astype(float), None, 6),
        (start, ptr, columns, values[:2], 6),
        (start, ptr, columns, values * np.nan, 6),
    ):
        with pytest.raises(UsageError):
            sparse_inputs(*wrong, 2)
    features = np.ones((5, 2), np.float32)
    for wrong in ((features, [0, 3]), (features, [0, 6]), (features, [0, 4, 3, 5]), (features[0], [0, 2])):
        with pytest.raises(UsageError):
            dense_inputs(wrong[0], np.array(wrong[1]))
    with pytest.raises(UsageError, match="must all be finite"):
        dense_inputs(np.full((2, 2), np.inf, np.float32), np.array([0, 2]))
    X = csr_array(np.eye(3, dtype=np.float32))
    X.indptr = np.array([0, 1, 2, 4], np.int32)
    with pytest.raises(UsageError):
        row_inputs(X)


def test_a_corpus_made_by_hand(task):
    """Sentences that end behind the last token."""
    good = chunking_corpus(3, seed=5)
    bad = Corpus("by hand", good.columns, good.tags, np.array([0, 5, 2, good.n_tokens]))
    with pytest.raises(UsageError):
        task.problem(bad, learn=False)


def test_messages_name_what_is_wrong():
    for call, message in (
        (lambda: validation.below("columns", np.array([1, 7]), 5), "columns has 7; it must be from 0 to 4"),
        (lambda: validation.below("columns", np.array([-2, 7]), 5), "columns has -2; it must be from 0 to 4"),
        (lambda: validation.offsets("rows", np.array([0, 2, 1])), "rows must go from 0 to the end and never fall"),
        (lambda: validation.offsets("rows", np.array([0, 2]), end=3), "rows must go from 0 to 3 and never fall"),
        (lambda: validation.at_least("max_rows", 3, 4), "max_rows is 3, and 4 is needed"),
        (
            lambda: validation.array("tags", np.zeros((2, 2)), "iu", (4,)),
            "tags is float64 of shape (2, 2); it must be an array of whole numbers, 4, in C order",
        ),
        (
            lambda: validation.array("tags", [1], "f", (None, 2)),
            "tags is a list; it must be an array of numbers, any x 2, in C order",
        ),
    ):
        with pytest.raises(UsageError) as caught:
            call()
        assert str(caught.value) == message
