"""Damaged logs of events, proposals in JSON, and answers of odd types."""

from __future__ import annotations

import json

import numpy as np
import pytest
from mutations import Anything, cases, damaged_json, endure

from sparsezo.errors import DataError
from sparsezo.learner import Learner
from sparsezo.optimizer import Optimizer, replay
from sparsezo.questions import Proposal
from sparsezo.settings import Settings
from sparsezo.tasks.chunking.synthetic import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking

SETTINGS = Settings("preference", "active", h=0.1)


def parsed(data):
    """As whoever keeps a log would."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DataError("the log", str(error)) from None


@pytest.fixture(scope="module")
def problem():
    task, corpus = Chunking.fit(chunking_corpus(4, seed=5), min_count=2)
    return task.problem(corpus)


def log_of(optimizer, ask):
    log = []
    optimizer.on_event = log.append
    asked = [ask(k) for k in range(4)]
    for k, feedback in ((2, "candidate"), (0, [0.5, 0.25]), (3, True)):
        optimizer.tell(asked[k], feedback)
    optimizer.weights()
    return json.dumps(log).encode(), optimizer.weights()


@pytest.mark.parametrize("n", cases(70))
@pytest.mark.parametrize("learns", [False, True])
def test_damaged_logs(n, learns, problem):
    """Of optimizers and of learners."""

    def make():
        return Learner(problem, SETTINGS) if learns else Optimizer(9, SETTINGS)

    optimizer = make()
    raw, _ = log_of(optimizer, lambda k: optimizer.ask() if learns else optimizer.ask([k, k + 3]))

    def read(data):
        again = make()
        replay(again, parsed(data))
        return again.weights()

    endure(read, raw, damaged_json, n, reference=lambda data: Anything)


@pytest.mark.parametrize("n", cases(50))
@pytest.mark.parametrize("rule", ["two-point", "first-order"])
def test_damaged_proposals(n, rule, problem):
    """An answer to what was not asked changes nothing; to what was asked it does what it would have."""
    learner = Learner(problem, Settings(rule, *((None, 0.1, None) if rule == "first-order" else ("active", 0.1, 0.1))))
    proposal = learner.ask()
    before = learner.to_bytes()

    def read(data):
        again = Learner.from_bytes(before, problem)
        again.tell(Proposal.from_json(parsed(data)), 0.5 if proposal.incumbent is None else (0.5, 0.25))
        return again.weights()

    endure(read, json.dumps(proposal.as_json()).encode(), damaged_json, n)


@pytest.mark.parametrize("n", cases(50))
@pytest.mark.parametrize("rule", ["two-point", "preference", "baseline"])
def test_answers_of_odd_types(n, rule):
    """Whatever JSON may hold, it is an answer or is refused, and refused it leaves the question open."""
    settings = Settings(rule, "active", h=0.1)

    def read(data):
        optimizer = Optimizer(9, settings)
        proposal = optimizer.ask([1, 4])
        try:
            optimizer.tell(proposal, parsed(data)["feedback"] if b"feedback" in data else parsed(data))
        except Exception:
            assert optimizer.step == 0
            assert optimizer.open_proposals == [proposal]
            assert not optimizer.weights().any()
            raise
        assert np.isfinite(optimizer.weights()).all()

    good = 0.5 if rule == "baseline" else [0.5, 0.25]
    endure(read, json.dumps(good).encode(), damaged_json, n, reference=lambda data: Anything)
