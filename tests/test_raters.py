"""Raters that are not exact: what they say in law, and that learners live with it."""

from __future__ import annotations

import numpy as np
import pytest

from sparsezo.errors import UsageError
from sparsezo.kernels import loop, random
from sparsezo.kernels import raters as codes
from sparsezo.learner import Learner, predict
from sparsezo.raters import Feedback, parse_feedback
from sparsezo.settings import Settings
from sparsezo.tasks.chunking.generate import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking

KEY = random.stream_key(3, random.FEEDBACK)
DRAWS = 20_000


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


def told(model, noise, bias, levels, F, other=0):
    return np.array([codes.perceived(model, noise, bias, levels, KEY, k, F, other) for k in range(DRAWS)])


def test_binary_is_right_on_average():
    for F in (0.0, 0.3, 1.0):
        answers = told(codes.BINARY, 0.0, 0.0, 0, F)
        assert set(answers) <= {0.0, 1.0}
        assert abs(answers.mean() - F) <= 5 * np.sqrt(F * (1 - F) / DRAWS)  # 5 standard errors


def test_flips_are_as_frequent_as_asked_for():
    flips = np.array([codes.flipped(codes.FLIP, 0.2, KEY, k) for k in range(DRAWS)])
    assert abs(flips.mean() - 0.2) < 5 * np.sqrt(0.2 * 0.8 / DRAWS)
    assert not any(codes.flipped(codes.EXACT, 0.2, KEY, k) for k in range(100))


def test_ratings_are_grades_with_the_raters_bias():
    grades = told(codes.RATING, 0.05, 0.1, 5, 0.5)
    assert set(grades) <= {0.0, 0.25, 0.5, 0.75, 1.0}
    assert len(set(grades)) > 1
    exact = told(codes.RATING, 0.0, 0.0, 5, 0.6)
    assert set(exact) == {0.5}
    # without noise of the moment a rater always says the same, and candidate and rival are seen by the same one
    fine = told(codes.RATING, 0.0, 0.1, 100_001, 0.5)
    assert len(set(fine)) == codes.RATERS
    np.testing.assert_array_equal(fine, told(codes.RATING, 0.0, 0.1, 100_001, 0.5, other=1))


@pytest.fixture(scope="module")
def chunking():
    task, corpus = Chunking.fit(chunking_corpus(60, seed=5), only="NP")
    return task, task.problem(corpus), task.gold(corpus)


def run(chunking, steps=10_000, **settings):
    task, problem, gold = chunking
    learner = Learner(problem, Settings(**{"perturb": "score", "h": 0.01, "mu": 0.1} | settings))
    learner.run(gold, steps)
    return learner, task.quality(problem, gold, predict(problem, learner.weights()))


def test_noise_hurts_but_does_not_stop_learning(chunking):
    exact = run(chunking, rule="preference")[1]
    some = run(chunking, rule="preference", feedback="flip:0.15")[1]
    none = run(chunking, rule="preference", feedback="flip:0.5")[1]  # the answers say nothing
    assert exact > some > none + 0.2


@pytest.mark.parametrize(("feedback", "h"), [("rating:5", 0.01), ("binary", 0.002)])
@pytest.mark.parametrize("rule", ["two-point", "symmetric", "baseline", "comparison"])
def test_other_raters_teach_too(chunking, rule, feedback, h):
    start = run(chunking, steps=0)[1]
    assert run(chunking, rule=rule, feedback=feedback, h=h, steps=60_000)[1] > start + 0.3


def test_the_average_loss_is_the_true_one(chunking):
    """Steps with c = 0 leave the weights alone, so with a tiny h both runs show the same outputs."""
    exact, rated = (run(chunking, h=1e-12, steps=500, feedback=f)[0] for f in ("exact", "rating:5"))
    assert exact.average_loss == pytest.approx(rated.average_loss, abs=1e-6)
    assert rated.state.sums[loop.TOLD] != pytest.approx(rated.state.sums[loop.LOSS], abs=1e-3)


def test_flip_zero_is_exact_bit_for_bit(chunking):
    exact, flip = (run(chunking, rule="comparison", steps=2000, feedback=f)[0] for f in ("exact", "flip:0"))
    np.testing.assert_array_equal(exact.weights(), flip.weights())
