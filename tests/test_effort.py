"""What a person's time goes to: tokens shown, parts looked at, corrections; against a literal count of each answer."""

from __future__ import annotations

import json

import numpy as np
import pytest

from sparsezo.kernels import loop
from sparsezo.kernels.codes import CORRECTED, NOT_SAID, STANDING
from sparsezo.learner import Learner
from sparsezo.optimizer import replay
from sparsezo.query_learner import QueryLearner
from sparsezo.questions import Effort, Question, answer_code, effort_of
from sparsezo.settings import Settings
from sparsezo.storage.container import pack, read_container, unpack, write_container
from sparsezo.tasks.chunking.synthetic import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.loading import Data
from sparsezo.training import Training

N = 30
CASES = [
    {"rule": "part"},
    {"rule": "label", "about": "chunk"},
    {"rule": "span"},
    {"rule": "pair"},
    {"rule": "review"},
    {"rule": "review", "review": "marked"},
    {"rule": "review", "review": "auto", "feedback": "flip:0.2"},
]


@pytest.fixture(scope="module")
def fitted():
    """(task, data, problem, gold)"""
    task, data = Chunking.fit(chunking_corpus(80, 1), order=1)
    return task, data, task.problem(data, asks=True), task.gold(data)


def settings_of(task, **given):
    return Settings.complete({"seed": 3, **given}, task.defaults)


def effort(learner):
    return learner.tokens, learner.looked, learner.corrections, learner.whole


def literal(question, answer, length):
    """(tokens, parts looked at, corrections, tokens of a whole review) of one answer of somebody who knows."""
    if question.kind == "review":
        looked = sum(each != NOT_SAID for each in question.outputs[1].tolist())
        return length, looked, answer["corrections"], length if looked == length else 0
    first, tag, last, _ = question.numbers
    shown = {"first": first, "last": last, "label": dict(zip(question.codes, question.choices, strict=True)).get(tag)}
    return length, 1, int(question.kind == "span" and answer not in ("O", shown)), 0


@pytest.mark.parametrize("given", CASES, ids=lambda given: "-".join(given.values()))
def test_a_run_counts_what_asking_and_telling_does_and_a_log_replays_it(fitted, given):
    task, data, problem, gold = fitted
    compiled = QueryLearner(problem, settings_of(task, **given))
    compiled.run(gold, answers=N)
    learner, log, expected = QueryLearner(problem, settings_of(task, **given)), [], np.zeros(4, int)
    learner.on_event = log.append
    for _ in range(N):
        question = learner.ask()
        answer = learner.known_answer(question, gold)
        expected += literal(question, answer, int(data.offsets[question.x + 1] - data.offsets[question.x]))
        learner.tell(question, answer)
        assert effort(learner) == tuple(expected)
    assert effort(compiled) == tuple(expected)
    assert expected[0] > N
    assert (expected[2] > 0) == (given["rule"] in ("span", "review"))
    again = QueryLearner(problem, settings_of(task, **given))
    replay(again, json.loads(json.dumps(log)))
    assert effort(again) == effort(learner)


def test_a_single_loss_or_preference_counts_too(fitted):
    _, data, problem, gold = fitted
    settings = Settings("preference", "score", h=0.01, mu=0.1, seed=1)
    compiled, learner = Learner(problem, settings), Learner(problem, settings)
    compiled.run(gold, answers=N)
    tokens = 0
    for _ in range(N):
        proposal = learner.ask()
        losses = [float(loop.loss(gold, problem.task, proposal.x, each.copy())) for each in proposal.outputs]
        tokens += int(data.offsets[proposal.x + 1] - data.offsets[proposal.x])
        learner.tell(proposal, tuple(losses))
    assert effort(compiled) == effort(learner) == (tokens, N, 0, 0)


TAGS = ("B-NP", "I-NP", "O")


def review(suggested, how=None, tags=TAGS):
    outputs = np.array(suggested, np.int32), np.array(how or [STANDING] * len(suggested), np.int32)
    return Question("me", 0, 0, "review", "token", (0, 0, 0, 0), outputs, 1.0, tags, tuple(range(len(tags))))


@pytest.mark.parametrize(
    ("suggested", "answer", "looked", "corrections"),
    [
        ([0, 1, 2], "right", 3, 0),
        ([2, 2, 2, 2], [0, 1, 0, 1], 4, 2),  # two spans
        ([0, 1, 0, 1], [2, 2, 2, 2], 4, 1),  # a run that is in no span
        ([2, 2, 2], {"output": [0, 1, 2], "corrected": [0]}, 3, 1),  # the model has mended the second
        ([0, 1, 1], {"output": [2, 0, 2], "corrected": [0, 2], "corrections": 1}, 3, 1),  # one span was removed
    ],
)
def test_corrections_of_a_review(suggested, answer, looked, corrections):
    question = review(suggested)
    assert effort_of(question, answer, answer_code(question, answer)) == Effort(looked, corrections)


def test_each_plain_tag_is_a_correction_and_what_is_not_marked_is_not_looked_at():
    question = review([0, 0, 1], [NOT_SAID, STANDING, STANDING], ("DT", "NN"))
    assert effort_of(question, [1, 1, 1], 0.0) == Effort(2, 2)
    assert CORRECTED not in question.outputs[1]


def test_files_of_earlier_versions_have_counted_nothing(fitted, tmp_path):
    task, data, problem, gold = fitted
    settings = settings_of(task, rule="part")
    learner = QueryLearner(problem, settings)
    learner.run(gold, answers=20)
    meta, arrays = unpack(learner.to_bytes(), "state", "a state")
    again = QueryLearner.from_bytes(pack("state", meta, {**arrays, "counts": arrays["counts"][:9]}), problem)
    assert (again.answers, effort(again)) == (20, (0, 0, 0, 0))
    np.testing.assert_array_equal(again.state.W, learner.state.W)

    def training(**more):
        return Training(task, Data(data, data), settings, answers=20, evaluate_every=5, **more)

    path = tmp_path / "checkpoint"
    run = training(checkpoint=path)
    run.learner.run(gold, answers=10)
    run._evaluate()
    run._save()
    meta, arrays = read_container(path, "checkpoint")
    kept = {name: each for name, each in arrays.items() if name not in ("tokens", "looked", "corrections", "whole")}
    write_container(path, "checkpoint", meta, {**kept, "counts": arrays["counts"][:9]})
    later, whole = training(checkpoint=path, resume=True), training().go()
    assert (later.learner.answers, later.curve[0].answers, later.curve[0].tokens) == (10, 10, 0)
    assert later.go().result["looked"] == 10
    assert whole.result["looked"] == 20
    assert whole.model.curve["tokens"][-1] == whole.result["tokens"] > 20
