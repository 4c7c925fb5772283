"""The parts of a session, each by itself: lease queue, online model, query strategy, presentation."""

from __future__ import annotations

import contextlib
import json
import random
from dataclasses import replace

import numpy as np
import pytest
from sessions import made

from sparsezo.query_learner import QueryLearner
from sparsezo.serve.errors import Refused
from sparsezo.serve.folder import Contents
from sparsezo.serve.lease_queue import LeaseQueue
from sparsezo.serve.online_model import OnlineModel
from sparsezo.serve.presentation import Presentation
from sparsezo.serve.query_strategy import QueryStrategy
from sparsezo.serve.store import ANSWER, LEASE, RETRACTION, SKIP, WITHDRAWAL, AuditRow, EventRow, QuestionRow, Store
from sparsezo.settings import Settings
from sparsezo.tasks.registry import task_spec


@pytest.fixture
def store(tmp_path):
    with contextlib.closing(Store.create(tmp_path / "log.sqlite", {"id": "made-up"})) as made:
        yield made


def question(number, person, x, **rest):
    return QuestionRow(number, 0.0, person, 0, x, "part", "token", f"[{x % 3}, 0, {x % 3}, 0]", "[]", 1.0, **rest)


@pytest.mark.parametrize("seed", range(5))
def test_a_queue_made_from_the_store_is_the_one_that_took_every_event(store, seed):
    """Whatever happens to questions, in whatever order; and an answer is counted once."""
    chance, queue, seq = random.Random(seed), LeaseQueue(store, 0.0), 0
    told = {}
    for number in range(1, 41):
        row = question(number, chance.randint(1, 3), number // 2, twice=chance.randint(0, 1))
        store.add([row])
        queue.add(row, 0.0)
        for _ in range(3):
            entry = queue.entries[chance.randint(1, number)]
            person = chance.randint(1, 3)
            done = entry.closed_by
            if done is not None:
                event = {"what": RETRACTION, "person": done.person, "kind": done.kind, "undoes": done.seq}
                told.pop(entry.id, None)
            else:
                what = chance.choice([ANSWER, ANSWER, SKIP, LEASE, WITHDRAWAL] if entry.state == "open" else [ANSWER])
                event = {"what": what, "person": person, "nonce": chance.choice([None, "a"])}
                if what == ANSWER:
                    event |= {"kind": "part", "answer": chance.choice(['"yes"', '"no"'])}
                    told[entry.id] = person
            seq += 1
            taken = EventRow(seq, float(seq), question=entry.id, **event)
            store.add([taken])
            queue.take(taken, 0.0)
    again = LeaseQueue(store, 0.0)
    for name in ("undone", "seen", "audits", "answers", "questions", "last_event", "second", "history"):
        assert getattr(again, name) == getattr(queue, name), name
    for name in ("answered", "certain", "answers_by"):
        assert +getattr(again, name) == +getattr(queue, name), name
    for number, entry in queue.entries.items():
        mine = again.entries[number]
        assert (mine.state, mine.lessee, mine.had, mine.nonces) == (entry.state, entry.lessee, entry.had, entry.nonces)
        assert queue.row(number) == again.row(number) == store.question(number)
    assert again.open.keys() == queue.open.keys()
    assert queue.answers == len(told)
    assert dict(+queue.answers_by) == {who: [*told.values()].count(who) for who in {*told.values()}}


@pytest.fixture(scope="module")
def problem():
    task, data = made("chunking")
    return task.problem(data, asks=True)


@pytest.fixture
def learner(problem):
    given = {"seed": 3, "rule": "part", "rehearse": 0}
    return QueryLearner(problem, Settings.complete(given, made("chunking")[0].defaults))


def test_a_model_learns_forgets_and_is_found_again(store, learner, problem, tmp_path):
    asked, rows, events = [], [], []
    for number in range(1, 13):
        asked.append(learner.ask())
        learner.let_go(asked[-1])
        rows.append(replace(QuestionRow.of(asked[-1], number), audit=5 if number == 3 else None))
        answer = json.dumps(["yes", "no", "O"][number % 3])
        kind = "label" if number % 3 == 2 else "part"
        events.append(EventRow(number, 0.0, ANSWER, 1, number, kind, answer, 0.1, 0.1))

    def taught(numbers):
        """By hand, from nothing."""
        other = QueryLearner(problem, learner.settings)
        for number in numbers:
            event = events[number - 1]
            other.learn_from(asked[number - 1], event.said(), kind=event.kind, error=(0.1, 0.1))
        return other.weights()

    model = OnlineModel(learner, store, tmp_path)
    for k in range(0, 12, 4):
        store.add([*rows[k : k + 4], *events[k : k + 4]])
        model.apply([*rows[k : k + 4], *events[k : k + 4]])
    numbers = [number for number in range(1, 13) if number != 3]  # an audit teaches nothing
    assert model.count == 11
    assert np.array_equal(model.weights()[1], taught(numbers))
    undone = EventRow(13, 0.0, RETRACTION, 1, 5, kind="part", undoes=5)
    store.add([undone])
    model.apply([undone])
    numbers.remove(5)
    assert np.array_equal(model.weights()[1], taught(numbers))
    model.close()
    assert len(list(tmp_path.glob("*.snapshot"))) == 1
    again = OnlineModel(QueryLearner(problem, learner.settings), store, tmp_path)
    assert np.array_equal(again.weights()[1], taught(numbers))
    assert again.count == 10
    again.close()


def test_a_strategy_asks_nothing_twice_and_of_the_audit_set_only_audits(store, learner):
    queue, chance = LeaseQueue(store, 0.0), random.Random(0)
    audit = [AuditRow(place, x, "[0, 0, 0, 0]", "[]") for place, x in enumerate(chance.sample(range(150), 30))]
    strategy = QueryStrategy(learner, queue, audit, "label", overlap=0.5, sensible=lambda asked: asked.x != 7)
    seen, kinds = {1: set(), 2: set()}, set()
    for k in range(200):
        person = 1 + k % 2
        row, _ = strategy.new(person, 0.0, 0)
        assert (row.x in {each.x for each in audit}) == (row.audit is not None) == (row.kind == "label")
        assert (row.x, row.numbers) not in seen[person]
        assert row.x != 7
        assert row.again is None or (row.x, row.numbers) in seen[3 - person]
        seen[person].add((row.x, row.numbers))
        kinds.add((row.audit is not None, row.again is not None))
        queue.add(row, 0.0)
        store.add([row])
        queue.take(EventRow(k + 1, 0.0, ANSWER, person, row.id, row.kind, '"no"'), 0.0)
    assert {(False, False), (False, True), (True, False)} <= kinds
    assert len(strategy.audits_left) < 30


def test_what_is_presented_is_understood(problem):
    contents = Contents(task_spec("chunking"), *made("chunking"), None)
    presentation = Presentation(contents, problem.questions, source=[f"line {x}" for x in range(150)])
    row = question(4, 1, 1)
    shown = presentation.question(row)
    assert (shown["id"], shown["shown"]["source"], shown["shown"]["first"]) == ("q4", "line 1", 1)
    for answer, kind in (("no", "part"), ("O", "label")):
        assert presentation.understood(row, answer) == (kind, answer)
    with pytest.raises(Refused, match="an answer is one of yes, no, B-NP, I-NP, O"):
        presentation.understood(row, "maybe")
    pair = QuestionRow(1, 0.0, 1, 0, 0, "pair", "token", "[0, 0, 0, 0]", "[]", 1.0, swapped=1)
    assert presentation.understood(pair, "first") == ("pair", "second")
    assert presentation.as_said(pair, EventRow(1, 0.0, "answer", 1, 1, "pair", '"second"')) == "first"
