"""What a session finds out about its people and its model, while they answer."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sessions import Clock, opened, same_as_replay, someone

from sparsezo.serve.quality import LEAST_TWICE, Estimated, Grades, audited, estimated
from sparsezo.serve.query_strategy import alternately
from sparsezo.serve.statistics import ENOUGH_TWICE, ErrorRates, Share, SpanCounts, span_shares
from sparsezo.serve.store import BELIEF, AuditRow, EventRow, QuestionRow

SURELY = Share(0.1, 0.1, 0.1)


def question(number, believed=0.7, again=None, kind="part"):
    asked = (number, 0.0, 1, 0, 0, kind, "token", "[0, 0, 0, 0]", "[]", 1.0, 0, None)
    return QuestionRow(*asked, int(again is None), again, 0, believed)


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
        assert found.rates[person].e0.value == pytest.approx(error, abs=0.08)
        assert beliefs[person] == pytest.approx((error, error), abs=0.08)
    assert found.beliefs(beliefs) == {}  # nothing new
    assert set(found.beliefs({**beliefs, 1: (0.4, 0.4)})) == {1}
    few = estimated(crowd(errors, LEAST_TWICE))
    assert not few.known
    assert few.beliefs({}) == {}
    assert not estimated(crowd(errors[:2], 2000)).known  # two who differ do not say who errs


def audit_row(place, answer, model, person=1, kind="label"):
    return {"place": place, "answer": answer, "model": model, "person": person, "kind": kind}


def test_what_was_counted_comes_with_what_the_commonest_answer_would_have_had():
    rows = [audit_row(k, "O" if k < 101 else "B-NP", "O" if k < 101 or k >= 120 else "B-NP") for k in range(124)]
    found = audited(rows, 3)
    assert (found["asked"], found["agreed"], found["majority"]) == (124, 120, {"label": "O", "agreed": 101})
    assert found["accuracy"] == 120 / 124
    assert (found["corrected"], found["twice"]["asked"]) == (False, 0)
    assert found["low"] < 120 / 124 < found["high"] < 1
    pairs = audited([audit_row(k, "first", "first", kind="pair") for k in range(5)], 2)
    assert (pairs["agreed"], pairs["majority"]) == (5, None)  # which one is shown first says nothing
    nothing = audited([], 3)
    assert (nothing["asked"], nothing["accuracy"], nothing["majority"]) == (0, None, None)


def test_a_second_answer_says_how_people_err_and_is_no_more_evidence_of_the_model():
    once = [audit_row(k, "O", "O" if k < 80 else "B-NP") for k in range(100)]
    again = [audit_row(k, "O" if k >= 4 else "B-NP", "O", person=2) for k in range(ENOUGH_TWICE)]
    found, plain = audited(once + again, 3), audited(once, 3)
    assert found["twice"] == {"asked": 30, "same": 26, "split": 4, "enough": ENOUGH_TWICE}
    assert (found["asked"], found["agreed"]) == (plain["asked"], plain["agreed"]) == (100, 80)
    assert found["corrected"]
    assert plain["accuracy"] < found["accuracy"] <= plain["high"] < found["high"]
    few = audited(once + again[:-1], 3)
    assert not few["corrected"]
    assert few["accuracy"] == 0.8
    # two who say the same against the model are no doubt about people
    both = audited([*once, *(audit_row(k, "O", "B-NP", person=2) for k in range(80, 100))], 3)
    assert (both["twice"]["same"], both["twice"]["split"]) == (20, 0)


def test_audits_are_asked_of_a_second_person_and_never_learned_from(tmp_path, monkeypatch):
    monkeypatch.setattr("sparsezo.serve.quality.secrets.randbits", lambda _: 11)  # what is audited is drawn by it
    with opened(tmp_path / "s", audit=30, audit_whole=2, max_ahead=1, clock=Clock()) as session:
        people = [someone(session, name) for name in ("Ann", "Bob")]
        k = 0
        while session.strategy.audits_left or session.queue.second:
            person = people[k % 2]
            k += 1
            asked = session.ask(person)[0]
            session.tell(person, asked["id"], "O" if asked["kind"] == "label" else "no")
        by_place = {}
        for row in session.quality.audit_table():
            by_place.setdefault(row["place"], []).append(row)
        assert len(by_place) == len(session.store.rows(AuditRow))
        twice = [each for each in by_place.values() if len(each) == 2]
        assert all(one["person"] != other["person"] for one, other in twice)
        assert 0.2 * len(by_place) < len(twice) < 0.8 * len(by_place)
        inputs = {each[0]["x"] for each in twice}
        later = [each for each in by_place.values() if each[0]["x"] in inputs and len(each) == 1]
        assert len(later) <= 2  # an input is asked twice as a whole, but for what was asked before Bob came
        taught = {row.x for _, row in session.store.answers_to_learn()}
        assert taught
        assert not taught & {row.x for row in session.store.rows(AuditRow)}
        session.clock.now += 10
        found = session.status()["audit"]
        parts = [each for place, each in by_place.items() if place < 30]
        assert (found["asked"], found["twice"]["asked"]) == (30, sum(len(each) == 2 for each in parts))
        assert found["twice"]["same"] == found["twice"]["asked"]
        assert found["majority"] == {"label": "O", "agreed": 30, "name": "none of these"}
        assert found["spans"]["sentences"] == 2
        assert same_as_replay(session)


def test_sentences_that_two_people_named_widen_the_intervals_of_spans(tmp_path, monkeypatch):
    monkeypatch.setattr("sparsezo.serve.quality.secrets.randbits", lambda _: 11)
    monkeypatch.setattr("sparsezo.serve.query_strategy.AUDIT_TWICE", 1.0)
    with opened(tmp_path / "s", audit_whole=4, max_ahead=1, clock=Clock()) as session:
        people = [someone(session, name) for name in ("Ann", "Bob")]
        for person in people:
            session.ask(person)  # both are there before the first audit
        k = 0
        while (
            session.strategy.audits_left
            or session.queue.second
            or any(each.audit for each in session.queue.open.values())
        ):
            person = people[k % 2]
            k += 1
            asked = session.ask(person)[0]
            if k == 20:  # a sentence of which something is open does not count
                session.clock.now += 10
                assert (session.status()["audit"]["spans"] or {"sentences": 0})["sentences"] < 4
            named = "B-NP" if person is people[0] or asked["shown"]["first"] % 2 else "O"  # Bob has every other one
            session.tell(person, asked["id"], named if asked["kind"] == "label" else "yes")
        session.clock.now += 10
        found = session.status()["audit"]["spans"]
        lengths, sentences = np.diff(session.contents.data.offsets), session.store.meta["audit_inputs"]
        parts = sorted((row.x, json.loads(row.numbers)[0]) for row in session.store.rows(AuditRow))
        assert parts == [(x, i) for x in sentences for i in range(lengths[x])]  # every token, once
        said = {}
        for row in session.quality.audit_table():
            said.setdefault(row["x"], {}).setdefault(row["first"], []).append(row)
        counts = []
        for tokens in said.values():
            rows = [tokens[i] for i in range(len(tokens))]
            assert all(len(each) == 2 for each in rows)
            spans = session.contents.serving.chunks_in
            one, two, model = (
                set(spans([pick(each) for each in rows]))
                for pick in (lambda e: e[0]["answer"], lambda e: e[1]["answer"], lambda e: e[0]["model"])
            )
            counts.append(SpanCounts(len(one & model), len(model), len(one), len(one & two), len(two)))
        assert found["sentences"] == found["twice"] == 4
        assert found["gold"] == sum(each.gold for each in counts)
        assert found["f1"] == span_shares(counts)["f1"].as_dict()
        alone = span_shares([SpanCounts(each.correct, each.predicted, each.gold) for each in counts])["f1"]
        assert found["f1"]["high"] > alone.high + 0.02
        json.dumps(found, allow_nan=False)
        session.undo(person)
        session.clock.now += 10
        assert session.status()["audit"]["spans"]["twice"] == 3


def test_one_person_alone_is_asked_no_audit_again_and_single_parts_and_sentences_come_alternately(tmp_path):
    with opened(tmp_path / "s", audit=5, audit_whole=1, max_ahead=1, clock=Clock()) as session:
        ann = someone(session)
        while session.strategy.audits_left:
            asked = session.ask(ann)[0]
            session.tell(ann, asked["id"], asked["choices"][-1])
        assert session.queue.second == []
        places = [row["place"] for row in session.quality.audit_table()]
        assert [place >= 5 for place in places[:6]] == [False, True] * 3
        assert alternately(session.store.rows(AuditRow), None) == session.store.rows(AuditRow)


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
    rates = {person: ErrorRates(SURELY, SURELY) for person in (1, 2)}
    rates[3] = ErrorRates(Share(e0, 0.0, 1.0), Share(e1, 0.0, 1.0))
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
        session.estimate()
        events = [event for event in session.store.events() if event.what == BELIEF]
        assert {event.person for event in events} == {person.id for person in people}
        about = {each["name"]: each for each in session.people()}
        assert about["Eve"]["e1"] > about["Ann"]["e1"]
        assert about["Eve"]["e1_interval"][0] < about["Eve"]["e1"] < about["Eve"]["e1_interval"][1]
        assert about["Eve"]["agreement"] < 1
        asked = session.ask(people[2])[0]
        session.tell(people[2], asked["id"], asked["choices"][0])
        told = [event for event in session.store.events() if event.what == "answer"][-1]
        assert told.e1 > 0.05
        assert same_as_replay(session)


# Grades of people who grade differently, on one scale


def test_a_harsh_and_a_mild_person_come_to_mean_the_same():
    generator, grades = np.random.default_rng(0), Grades()
    true = generator.uniform(0.2, 0.8, 2000)
    harsh, mild = 0.5 + 0.5 * true, 0.5 * true
    for a, b in zip(harsh.tolist(), mild.tolist(), strict=True):
        grades.add(1, a)
        grades.add(2, b)
    for k in range(20):
        assert grades.standard(1, harsh[k]) == pytest.approx(grades.standard(2, mild[k]), abs=0.02)
    assert grades.standard(1, 1.0) > grades.standard(1, 0.5)


def test_one_person_alone_few_answers_and_strangers_are_left_as_they_are():
    grades = Grades()
    for _ in range(50):
        grades.add(1, 0.25)
    assert grades.standard(1, 0.25) == 0.25  # nobody to compare with
    few = Grades()
    few.add(1, 0.0)
    few.add(2, 1.0)
    assert few.standard(2, 1.0) == 1.0
    for k in range(60):
        grades.add(2, 0.5 + 0.5 * (k % 2))
    assert grades.standard(3, 0.4) == pytest.approx(0.4)  # as everybody's


def test_a_session_learns_from_grades_on_one_scale_and_replays_them(tmp_path):
    with opened(tmp_path / "s", "text", {"rule": "rate"}, clock=Clock()) as session:
        ann, bob = someone(session), someone(session, "Bob")
        for k in range(40):
            for person, grade in ((ann, 4 + k % 2), (bob, 1 + k % 2)):
                session.tell(person, session.ask(person)[0]["id"], grade)
        last = {event.person: event for event in session.store.events() if event.what == "answer"}
        assert last[ann.id].answer == "0.0"
        assert last[bob.id].answer == "0.75"
        assert last[ann.id].taught > 0.1  # a 5 from somebody who gives little else
        assert abs(last[bob.id].taught - last[ann.id].taught) < 0.3  # where the grades are 0.75 apart
        assert session.recent(bob)[0]["answer"] == 2  # as it was given
        before = session.quality.grades.standard(ann.id, 0.5)
        session.tell(ann, session.ask(ann)[0]["id"], 1)
        assert session.quality.grades.standard(ann.id, 0.5) != before
        session.undo(ann)
        assert session.quality.grades.standard(ann.id, 0.5) == pytest.approx(before)
        assert same_as_replay(session)
        told = session.quality.grades.standard(bob.id, 0.5)
    with opened(tmp_path / "s", "text", {"rule": "rate"}, clock=Clock()) as session:
        assert session.quality.grades.standard(bob.id, 0.5) == pytest.approx(told)
