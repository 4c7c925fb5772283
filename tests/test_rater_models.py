"""Raters: how they are written on the command line, and which errors they make (kernels: what is said in each step)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sparsezo.errors import UsageError
from sparsezo.kernels import codes
from sparsezo.query_learner import QueryLearner
from sparsezo.raters import Feedback, parse_feedback
from sparsezo.settings import Settings
from sparsezo.tasks.text.synthetic import generate_text
from sparsezo.tasks.text.task import TextClassification


@pytest.mark.parametrize("rule", ["label", "part"])
def test_an_error_is_never_the_right_answer_and_any_other_is_as_likely(rule):
    task, data = TextClassification.fit(generate_text(300, 1, vocabulary=500, words=20).documents())
    problem, gold = task.problem(data, asks=True), task.gold(data)
    settings = Settings.complete({"rule": rule, "ask": "random", "feedback": "flip:1", "seed": 5}, task.defaults)
    always = QueryLearner(problem, settings)
    always.run(gold, answers=600)
    right = QueryLearner(problem, replace(settings, feedback="exact"))
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


# How they are written


@pytest.mark.parametrize(
    ("text", "model", "noise", "bias", "levels"),
    [
        ("exact", "exact", 0.0, 0.0, 0),
        ("binary", "binary", 0.0, 0.0, 0),
        ("flip:0", "flip", 0.0, 0.0, 0),
        ("flip:0.25", "flip", 0.25, 0.0, 0),
        ("flip:1", "flip", 1.0, 0.0, 0),
        ("rating:2", "rating", 0.1, 0.1, 2),
        ("rating:5", "rating", 0.1, 0.1, 5),
        ("rating:5.0", "rating", 0.1, 0.1, 5),
        ("rating:7,0.2", "rating", 0.2, 0.1, 7),
        ("rating:3,0.3,0.5", "rating", 0.3, 0.5, 3),
        ("rating:3,0,0", "rating", 0.0, 0.0, 3),
        ("rating:1000", "rating", 0.1, 0.1, 1000),
    ],
)
def test_what_is_written_is_what_is_meant(text, model, noise, bias, levels):
    parsed = parse_feedback(text)
    assert (parsed.model, parsed.noise, parsed.bias, parsed.levels) == (model, noise, bias, levels)
    assert parsed == Feedback(model, noise, bias, levels)
    assert type(parsed.levels) is int


WRONG = "nice Exact exact:1 binary:0.5 flip flip: flip:1.5 flip:1.0001 flip:-0.1 flip:x flip:nan flip:0.1,0.2 rating"
WRONG += " rating:1 rating:0 rating:-3 rating:2.5 rating:inf rating:nan rating:5,-1 rating:5,0.1,-1 rating:5,inf"
WRONG += " rating:5,0.1,nan rating:5,0.1,0.1,0.1 rating:5, rating:1001 rating:1e300 rating:٥ rating:² exact:²"


@pytest.mark.parametrize("text", ["", ":", *WRONG.split()])
def test_what_is_refused_says_what_can_be_written(text):
    with pytest.raises(UsageError) as caught:
        parse_feedback(text)
    assert str(caught.value) == (
        f"`feedback` {text}: write exact, binary, flip:P with P from 0 to 1, or rating:K[,NOISE,BIAS] with K "
        "from 2 to 1000"
    )
