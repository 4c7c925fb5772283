"""Learning from a question that is known by its content alone: the same bits as ask and tell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sparsezo.errors import UsageError
from sparsezo.query_learner import QueryLearner
from sparsezo.questions import Question
from sparsezo.settings import Settings


def learner_of(made, **given):
    task, data = made
    return QueryLearner(
        task.problem(data, asks=True), Settings.complete({"seed": 3, "rehearse": 0, **given}, task.defaults)
    )


CASES = [
    ("chunking", "part", "token", "0.1,0.2"),
    ("chunking", "part", "chunk", "0"),
    ("chunking", "label", "token", "0.1"),
    ("chunking", "pair", "token", "0.1"),
    ("text", "part", "token", "0"),
    ("text", "label", "token", "0.2"),
    ("text", "rate", "token", "0"),
]


@pytest.mark.parametrize(("name", "rule", "about", "error"), CASES)
def test_it_moves_the_same_bits_as_tell(small_tasks, name, rule, about, error):
    asker = learner_of(small_tasks[name], rule=rule, about=about, rater_error=error)
    other = learner_of(small_tasks[name], rule=rule, about=about)
    e0, e1 = (float(each) for each in (error.split(",") * 2)[:2])
    for k in range(30):
        question = asker.ask()
        answer = question.choices[k % len(question.choices)] if question.choices else (k % 5) / 4
        asker.tell(question, answer)
        other.learn_from(Question.from_json(question.as_json()), answer, error=(e0, e1))
        assert np.array_equal(asker.state.W, other.state.W)
        assert np.array_equal(asker.state.q, other.state.q)
    assert asker.state.W.any()
    assert asker.answers == other.answers == 30
    assert asker.average_loss == other.average_loss


def test_a_part_may_be_answered_as_a_label_by_a_learner_of_parts(small_tasks):
    parts, labels = learner_of(small_tasks["chunking"], rule="part"), learner_of(small_tasks["chunking"], rule="label")
    question = labels.ask()
    labels.tell(question, "I-NP")
    parts.learn_from(replace(question, kind="part"), "I-NP", kind="label")
    assert np.array_equal(parts.state.W, labels.state.W)
    assert parts.state.W.any()


def test_what_was_let_go_is_not_open_and_can_still_be_learned_from(small_tasks):
    learner = learner_of(small_tasks["chunking"], rule="part")
    question = learner.ask()
    learner.let_go(question)
    assert learner.open_proposals == []
    with pytest.raises(UsageError, match="answered already"):
        learner.tell(question, "yes")
    learner.learn_from(question, "yes")
    assert QueryLearner.from_bytes(learner.to_bytes(), learner.problem).answers == 1


def test_the_probability_of_an_answer_is_what_learning_raises(small_tasks):
    learner = learner_of(small_tasks["chunking"], rule="part")
    question = learner.ask()
    before = {answer: learner.probability(question, answer) for answer in ("yes", "no")}
    assert sum(before.values()) == pytest.approx(1)
    labels = [learner.probability(question, tag, kind="label") for tag in small_tasks["chunking"][0].tags]
    assert sum(labels) == pytest.approx(1)
    W = learner.state.W.copy()
    learner.learn_from(question, "no")
    assert learner.probability(question, "no") > before["no"]
    assert not np.array_equal(W, learner.state.W)


WRONG = [
    ({"x": 10**6}, {}, "no input"),
    ({"numbers": (0, 0, 500, 0)}, {}, "not a question of these inputs"),
    ({"numbers": (0, 99, 0, 0)}, {}, "not a question of these inputs"),
    ({"numbers": (0, 0)}, {}, "not a question of these inputs"),
    ({"about": "page"}, {}, "no such"),
    ({}, {"kind": "sort"}, "no such"),
    ({}, {"kind": "rate"}, "not a question of these inputs"),
    ({}, {"kind": "pair"}, "not a question of these inputs"),
    ({}, {"error": (0.6, 0.5)}, "sum below 1"),
    ({}, {"error": (-0.1, 0.5)}, "none below 0"),
    ({}, {"kind": "label", "error": (0.1, 0.2)}, "the same number twice"),
    ({}, {"answer": "perhaps"}, "answer"),
]


@pytest.mark.parametrize(("changed", "given", "message"), WRONG)
def test_what_is_no_question_of_this_learner_is_refused_and_nothing_moves(small_tasks, changed, given, message):
    learner = learner_of(small_tasks["chunking"], rule="part")
    question = replace(learner.ask(), **changed)
    with pytest.raises(UsageError, match=message):
        learner.learn_from(question, given.pop("answer", "yes"), **given)
    assert not learner.state.W.any()
    assert learner.answers == 0


def test_rehearsal_knows_answers_of_one_kind_only(small_tasks):
    learner = learner_of(small_tasks["chunking"], rule="part", rehearse=3)
    question = learner.ask()
    learner.learn_from(question, "yes")
    with pytest.raises(UsageError, match="rehearse"):
        learner.learn_from(question, "O", kind="label")
