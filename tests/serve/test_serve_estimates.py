"""What a session finds out about its people and its model, while they answer."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from sessions import Clock, opened, same_as_replay, someone

from sparsezo.serve.audit import Share
from sparsezo.serve.estimates import LEAST_TWICE, Estimated, audited, estimated, forecast_of
from sparsezo.serve.log import BELIEF, EventRow, QuestionRow
from sparsezo.serve.people import ErrorRates

SURELY = Share(0.1, 0.1, 0.1)


def question(number, believed=0.7, again=None, kind="part"):
    return QuestionRow(number, 0.0, 1, 0, 0, kind, "token", "[0, 0, 0, 0]", "[]", 1.0, 0, None, 0, again, 0, believed)


def answer(seq, person, row, said, kind="part"):
    return EventRow(seq, 0.0, "answer", person, row.id, kind, f'"{said}"'), row


def test_answers_to_a_question_and_to_its_repetition_are_of_one_question():
    first, second = question(1), question(2, again=1)
    found = estimated([answer(1, 7, first, "yes"), answer(2, 8, second, "no"), answer(3, 9, question(3), "yes")])
    assert found.twice == 1
    assert found.agreement == {7: 0.0, 8: 0.0}
    assert found.rates == {}  # one question is not enough to say who errs
    assert found.alpha is not None


def test_a_label_named_instead_says_that_what_is_shown_is_wrong_and_ties_say_nothing():
    rows = [question(1), question(2, again=1)]
    found = estimated([answer(1, 7, rows[0], "B-NP", kind="label"), answer(2, 8, rows[1], "no")])
    assert found.agreement == {7: 1.0, 8: 1.0}
    pairs = [question(1, kind="pair"), question(2, again=1, kind="pair")]
    assert (
        estimated([answer(1, 7, pairs[0], "tie", kind="pair"), answer(2, 8, pairs[1], "first", kind="pair")]).twice == 0
    )


def crowd(errors, questions, seed=0, twice=0.3):
    """People who err at these rates; the model is right about its chances."""
    generator, seq, said = np.random.default_rng(seed), 0, []
    for number in range(1, questions + 1):
        believed = float(generator.uniform(0.3, 0.98))
        right = generator.random() < believed
        people = generator.permutation(len(errors))[: 2 if generator.random() < twice else 1]
        for k, person in enumerate(people.tolist()):
            yes = right != (generator.random() < errors[person])
            seq += 1
            row = question(number if k == 0 else 100_000 + number, believed, None if k == 0 else number)
            said.append(answer(seq, person, row, "yes" if yes else "no"))
    return said


def test_who_errs_is_found_and_believed_once_there_is_enough_to_say_so():
    errors = (0.02, 0.1, 0.3)
    found = estimated(crowd(errors, 2000))
    assert found.known
    beliefs = found.beliefs({})
    for person, error in enumerate(errors):
        assert found.rates[person].error.value == pytest.approx(error, abs=0.05)
        assert beliefs[person] == pytest.approx((error, error), abs=0.08)
    assert found.beliefs(beliefs) == {}  # nothing new
    assert set(found.beliefs({**beliefs, 1: (0.4, 0.4)})) == {1}
    few = estimated(crowd(errors, LEAST_TWICE))
    assert not few.known
    assert few.beliefs({}) == {}
    assert not estimated(crowd(errors[:2], 2000)).known  # two who differ do not say who errs


def test_the_audits_error_is_that_of_those_who_answered_it():
    rates = {k: ErrorRates(100, SURELY, SURELY, Share(e, e, e)) for k, e in enumerate((0.0, 0.1, 0.4))}
    found = Estimated(rates, twice=LEAST_TWICE)
    assert found.error(Counter({1: 3, 2: 1})).value == pytest.approx((0.3 + 0.4) / 4)
    assert found.error(Counter({1: 3, 5: 1})) is None
    unsure = {k: ErrorRates(100, SURELY, SURELY, Share(0.1, 0.04, 0.18)) for k in range(4)}
    together = Estimated(unsure, twice=LEAST_TWICE).error(Counter(range(4)))  # it evens out
    assert (together.low, together.high) == (pytest.approx(0.1 - 0.06 / 2), pytest.approx(0.1 + 0.08 / 2))
    assert Estimated(rates, twice=LEAST_TWICE - 1).error(Counter({1: 3})) is None


def test_an_audit_is_corrected_by_what_is_known_or_else_by_what_is_believed():
    rows = [{"answer": "O", "model": "O" if k < 80 else "B-NP", "person": 1} for k in range(100)]
    plain = audited(rows, 3, Estimated(), 0.0)
    assert (plain["asked"], plain["right"], plain["accuracy"], plain["error"]) == (100, 80, 0.8, None)
    believed = audited(rows, 3, Estimated(), 0.1)
    assert believed["accuracy"] > 0.85
    assert believed["error"] == {"value": 0.1, "low": 0.0, "high": pytest.approx(0.3)}  # which nobody knows yet
    rates = {k: ErrorRates(100, SURELY, SURELY, Share(0.2, 0.15, 0.25)) for k in range(3)}
    known = audited(rows, 3, Estimated(rates, twice=LEAST_TWICE), 0.1)
    assert known["error"] == {"value": 0.2, "low": 0.15, "high": 0.25}
    assert known["accuracy"] > believed["accuracy"]
    assert audited([], 3, Estimated(), 0.0)["accuracy"] is None


def test_a_forecast_is_of_the_value_then():
    curve = [[n, 0.9 - 0.8 * n**-0.5] for n in range(50, 801, 50)]
    found = forecast_of(curve, 800)
    assert found["value"] == pytest.approx(0.9 - 0.8 * 1600**-0.5, abs=2e-3)
    assert found["low"] <= found["value"] <= found["high"]
    assert not found["within_noise"]
    assert forecast_of(curve[:2], 800) is None


@pytest.mark.parametrize(
    ("e0", "e1", "believed"),
    [
        (0.1, 0.1, None),  # as it was
        (0.1, 0.3, (0.1, 0.3)),
        (0.3, 0.1, (0.3, 0.1)),
        (0.105, 0.105, None),  # not worth an event
        (0.1, 0.9, (0.1, 0.45)),
        (0.0, 0.1, (0.005, 0.1)),
    ],
)
def test_a_change_of_either_rate_is_believed(e0, e1, believed):
    rates = {person: ErrorRates(9, SURELY, SURELY, SURELY) for person in (1, 2)}
    rates[3] = ErrorRates(9, Share(e0, 0.0, 1.0), Share(e1, 0.0, 1.0), SURELY)
    found = Estimated(rates, twice=LEAST_TWICE)
    assert found.beliefs(dict.fromkeys((1, 2, 3), (0.1, 0.1))) == ({} if believed is None else {3: believed})


def test_beliefs_reach_learning_by_events_so_a_replay_gives_the_same_model(tmp_path):
    generator = np.random.default_rng(0)
    with opened(tmp_path / "s", overlap=0.5, audit=10, clock=Clock()) as session:
        people = [someone(session, name) for name in ("Ann", "Bob", "Eve")]
        for k in range(240):
            person = people[k % 3]
            asked = session.ask(person)[0]
            right = asked["choices"][0] if asked["kind"] == "part" else asked["choices"][-1]
            wrong = asked["choices"][1]
            session.tell(person, asked["id"], wrong if person is people[2] and generator.random() < 0.5 else right)
        session._estimate()
        events = [event for event in session.log.events() if event.what == BELIEF]
        assert {event.person for event in events} == {person.id for person in people}
        about = {each["name"]: each for each in session.people()}
        assert about["Eve"]["e1"] > about["Ann"]["e1"]
        assert about["Eve"]["e1_interval"][0] < about["Eve"]["e1"] < about["Eve"]["e1_interval"][1]
        assert about["Eve"]["agreement"] < 1
        asked = session.ask(people[2])[0]
        session.tell(people[2], asked["id"], asked["choices"][0])
        told = [event for event in session.log.events() if event.what == "answer"][-1]
        assert told.e1 > 0.05
        assert same_as_replay(session)
