"""Raters that are not exact: how they are written, and that learners hear what they say (tests/kernels: their laws)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sparsezo.errors import UsageError
from sparsezo.kernels import codes, loop, random
from sparsezo.kernels import raters as kernel_raters
from sparsezo.learner import Learner
from sparsezo.raters import Feedback, parse_feedback
from sparsezo.settings import Settings
from sparsezo.tasks.chunking.generate import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.text.generate import generate_text
from sparsezo.tasks.text.task import TextClassification


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("exact", Feedback()),
        ("binary", Feedback("binary")),
        ("flip:0.1", Feedback("flip", 0.1)),
        ("rating:5", Feedback("rating", 0.1, 0.1, 5)),
        ("rating:7,0.2", Feedback("rating", 0.2, 0.1, 7)),
        ("rating:3,0,0.5", Feedback("rating", 0.0, 0.5, 3)),
    ],
)
def test_how_models_are_written(text, model):
    assert parse_feedback(text) == model


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nice",
        "flip",
        "flip:1.5",
        "flip:-0.1",
        "flip:x",
        "flip:nan",
        "rating:1",
        "rating:2.5",
        "rating:5,-1",
        "exact:1",
    ],
)
def test_what_is_refused(text):
    with pytest.raises(UsageError, match="write exact, binary, flip:P"):
        parse_feedback(text)


def test_combinations_that_make_no_sense():
    with pytest.raises(UsageError, match="rule two-point asks for losses"):
        Settings(feedback="flip:0.1")
    with pytest.raises(UsageError, match="sees the correct output"):
        Settings("supervised", None, 0.01, None, feedback="binary")
    assert "feedback flip:0.1" in str(Settings("comparison", feedback="flip:0.1"))


@pytest.fixture(scope="module")
def chunking():
    task, corpus = Chunking.fit(chunking_corpus(60, seed=5), only="NP")
    return task, task.problem(corpus), task.gold(corpus)


def learner(chunking, steps, rule="two-point", h=1e-12, **settings):
    """With so small an h the weights stay where they began, so all such runs show the same outputs."""
    _, problem, gold = chunking
    W = np.random.default_rng(1).normal(0, 0.3, (problem.n_features, problem.n_labels))
    learner = Learner(problem, Settings(rule, "score", h, 0.5, **settings), W)
    learner.run(gold, steps)
    return learner


SEED = 8
RATERS = {
    "rating:5,0.2,0.3": (codes.RATING, 0.2, 0.3, 5),
    "rating:7": (codes.RATING, 0.1, 0.1, 7),
    "binary": (codes.BINARY, 0.0, 0.0, 0),
}


@pytest.mark.parametrize("text", RATERS)
def test_a_learner_is_told_what_its_rater_says_of_the_true_loss(chunking, text):
    """Step by step: which rater, with which numbers, from the run's own seed."""
    _, _, gold = chunking
    rated = learner(chunking, 0, rule="baseline", feedback=text, seed=SEED)
    key = random.stream_key(SEED, random.FEEDBACK)
    apart = 0
    for step in range(150):
        before = rated.state.sums.copy()
        rated.run(gold, 1)
        loss, said = (rated.state.sums[i] - before[i] for i in (loop.LOSS, loop.TOLD))
        expected = kernel_raters.perceived(*RATERS[text], key, step, step, loss, 0)
        assert said == pytest.approx(expected, abs=1e-9)
        apart += abs(said - loss) > 1e-6
    assert apart > 20


def test_the_average_loss_is_the_true_one(chunking):
    exact, rated = (learner(chunking, 500, feedback=f) for f in ("exact", "rating:5"))
    assert exact.average_loss == pytest.approx(rated.average_loss, abs=1e-6)
    assert rated.state.sums[loop.TOLD] != pytest.approx(rated.state.sums[loop.LOSS], abs=1e-3)


def test_answers_are_flipped_as_often_as_asked_for(chunking):
    """comparison moves where the candidate is better, or where it is worse and the answer wrong."""
    right, wrong = (learner(chunking, 1500, rule="comparison", feedback=f).updates for f in ("flip:0", "flip:1"))
    assert right == learner(chunking, 1500, rule="comparison").updates
    either = learner(chunking, 1500, rule="preference", feedback="flip:0.3").updates
    assert right + wrong == either
    assert right != wrong
    some = learner(chunking, 1500, rule="comparison", feedback="flip:0.3").updates
    # each of the better ones is kept with 0.7, each of the worse ones with 0.3: 6 standard deviations
    assert abs(some - 0.7 * right - 0.3 * wrong) < 6 * np.sqrt(0.21 * either)


@pytest.mark.parametrize("rule", ["label", "part"])
def test_an_error_is_never_the_right_answer_and_any_other_is_as_likely(rule):
    task, data = TextClassification.fit(generate_text(300, 1, vocabulary=500, words=20).documents())
    problem, gold = task.problem(data, asks=True), task.gold(data)
    settings = Settings.complete({"rule": rule, "ask": "random", "feedback": "flip:1", "seed": 5}, task.defaults)
    always = Learner(problem, settings)
    always.run(gold, answers=600)
    right = Learner(problem, replace(settings, feedback="exact"))
    right.run(gold, answers=300)
    K = problem.n_labels
    said, about = always.state.said[:600].astype(int), always.state.about[:600]
    if rule == "part":
        shown = always.state.questions[:600, 1]
        assert np.array_equal(said == codes.YES, shown != gold.labels[about])
        assert set(said.tolist()) == set(right.state.said[:300].astype(int).tolist())
        return
    assert np.array_equal(right.state.said[:300], gold.labels[right.state.about[:300]])
    assert not (said == gold.labels[about]).any()
    for label in range(K):
        wrong = np.bincount(said[gold.labels[about] == label], minlength=K)
        n = wrong.sum()
        assert n > 20
        others = np.delete(wrong, label)
        # binomial, each with 1 / (K - 1): 5 standard deviations
        assert (abs(others - n / (K - 1)) < 5 * np.sqrt(n / (K - 1))).all()


def test_flip_zero_is_exact_bit_for_bit(chunking):
    exact, flip = (learner(chunking, 2000, rule="comparison", h=0.01, feedback=f) for f in ("exact", "flip:0"))
    np.testing.assert_array_equal(exact.weights(), flip.weights())
    assert exact.updates > 100
