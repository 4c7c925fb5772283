"""Grades of people who grade differently, on one scale."""

from __future__ import annotations

import numpy as np
import pytest
from sessions import Clock, opened, same_as_replay, someone

from sparsezo.serve.grades import Grades


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


def test_an_answer_taken_back_leaves_no_trace():
    grades, other = Grades(), Grades()
    for k in range(40):
        for each in (grades, other):
            each.add(k % 2, (k % 5) / 4)
    grades.add(0, 1.0)
    grades.add(0, 1.0, by=-1)
    assert grades.standard(0, 0.5) == other.standard(0, 0.5)


def test_a_session_learns_from_grades_on_one_scale_and_replays_them(tmp_path):
    with opened(tmp_path / "s", "text", {"rule": "rate"}, clock=Clock()) as session:
        ann, bob = someone(session), someone(session, "Bob")
        for k in range(40):
            for person, grade in ((ann, 4 + k % 2), (bob, 1 + k % 2)):
                session.tell(person, session.ask(person)[0]["id"], grade)
        last = {event.person: event for event in session.log.events() if event.what == "answer"}
        assert last[ann.id].answer == "0.0"
        assert last[bob.id].answer == "0.75"
        assert last[ann.id].taught > 0.1  # a 5 from somebody who gives little else
        assert abs(last[bob.id].taught - last[ann.id].taught) < 0.3  # where the grades are 0.75 apart
        assert session.recent(bob)[0]["answer"] == 2  # as it was given
        before = session.grades.standard(ann.id, 0.5)
        session.tell(ann, session.ask(ann)[0]["id"], 1)
        assert session.grades.standard(ann.id, 0.5) != before
        session.undo(ann)
        assert session.grades.standard(ann.id, 0.5) == pytest.approx(before)
        assert same_as_replay(session)
        told = session.grades.standard(bob.id, 0.5)
    with opened(tmp_path / "s", "text", {"rule": "rate"}, clock=Clock()) as session:
        assert session.grades.standard(bob.id, 0.5) == pytest.approx(told)
