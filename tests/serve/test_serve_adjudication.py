"""Two people review a sentence and differ: who is asked to decide, and what comes of it."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import sqlite3
from dataclasses import replace

import numpy as np
import pytest
from reviewers import opened, plain, reviewed, right_spans
from sessions import Clock, row_of, someone

from sparsezo.serve.adjudication import DECIDED_ERROR, Adjudication
from sparsezo.serve.answers import read_answers
from sparsezo.serve.errors import Refused
from sparsezo.serve.online_model import replay


def people(session, *names):
    return [someone(session, name) for name in names]


def spans_to(session, question):
    """A correction that nobody would make: one span over the first word, and nothing else."""
    label = session.presentation.reviewing.labels[0]
    return {
        "spans": [{"first": 0, "last": 0, "label": label}],
        "corrected": list(range(len(question["shown"]["words"]))),
    }


def differ(session, ann, bob):
    """Both review the same sentence, and differ; the questions that they were asked."""
    first = session.ask(ann)[0]
    session.tell(ann, first["id"], {"spans": plain(right_spans(session, first)), "corrected": [0]})
    second = session.ask(bob)[0]
    assert second["input"] == first["input"]
    session.tell(bob, second["id"], spans_to(session, second))
    return first, second


def is_decision(question):
    return "versions" in question["shown"]


def live(session):
    return session.model.weights()[1]


def same_as_replay(session):
    return np.array_equal(replay(session.folder, finish=False).W, live(session))


def lines(session):
    return [json.loads(line) for line in b"".join(session.export("answers.jsonl")[2]).splitlines()]


def in_corpus(session, x):
    """The spans of a sentence of which all is answered, as the corpus has them."""
    blocks = b"".join(session.export("corpus")[2]).decode().strip("\n").split("\n\n")
    block = [line.split() for line in blocks[x].splitlines()]
    assert {line[-1] for line in block} == {"answered"}
    chunks = session.contents.serving.chunks_in([line[-2] for line in block])
    return [{"first": a, "last": b - 1, "label": label} for a, b, label in chunks]


def counts(session):
    found = session.status()["adjudication"]
    return found["waiting"], found["decided"]


def test_a_third_person_decides_blind_and_the_model_learns_from_it(tmp_path):
    with opened(tmp_path / "log", overlap=1.0) as session:
        ann, bob, eve = people(session, "Ann", "Bob", "Eve")
        first, second = differ(session, ann, bob)
        assert counts(session) == (1, 0)
        assert not is_decision(session.ask(ann)[0])  # neither of the two
        assert not is_decision(session.ask(bob)[0])
        drawn = [session.adjudication.new(eve.id, number, 0.0, 0).decides for number in range(20)]
        assert len(set(drawn)) == 2  # either may come first
        question = session.ask(eve)[0]
        assert is_decision(question)
        assert question["choices"] == ["first", "second"]
        assert question["input"] == first["input"]
        versions = [plain(each) for each in question["shown"]["versions"]]
        gold, other = plain(right_spans(session, first)), spans_to(session, second)["spans"]
        assert versions in ([gold, other], [other, gold])
        alone = [span for span in [*gold, *other] if span not in gold or span not in other]
        words = {place for span in alone for place in range(span["first"], span["last"] + 1)}
        assert question["shown"]["unsure"] == sorted(words)
        assert not {"Ann", "Bob"} & set(json.dumps(question).replace('"', " ").split())
        right = ["first", "second"][versions.index(gold)]
        reply = session.tell(eve, question["id"], right, 3.0, "once")
        assert session.tell(eve, question["id"], right, 3.0, "once") == reply  # heard twice, counted once
        assert counts(session) == (0, 1)
        event, row = session.store.answers()[-1]
        assert (event.e0, event.e1, row.again) == (DECIDED_ERROR, DECIDED_ERROR, int(first["id"][1:]))
        assert plain(session.presentation.as_left(row, event)["spans"]) == gold
        assert session.recent(eve)[0]["answer"] == right
        assert session.seconds.about(eve.id)["points"] == []  # to compare is no review
        assert same_as_replay(session)
        session.estimate()
        assert session.quality.estimated.twice == 1
        assert eve.id not in session.quality.estimated.agreement  # who decides has seen both
        assert 0 <= session.status()["adjudication"]["agreement"] < 1


@pytest.mark.parametrize("said", ["first", "second", "own"])
def test_the_decision_stands_in_exports_and_in_what_is_learned_anew(tmp_path, said):
    with opened(tmp_path / "log", overlap=1.0) as session:
        ann, bob, eve = people(session, "Ann", "Bob", "Eve")
        first, _ = differ(session, ann, bob)
        question = session.ask(eve)[0]
        shown = question["shown"]
        wanted = [plain(each) for each in shown["versions"]]
        answer = said
        if said == "own":
            label = session.presentation.reviewing.labels[0]
            wanted = [{"first": 0, "last": len(shown["words"]) - 1, "label": label}]
            answer = {"spans": wanted, "corrected": list(range(len(shown["words"])))}
        else:
            wanted = wanted[said == "second"]
        session.tell(eve, question["id"], answer)
        rows = lines(session)
        assert [(each["worker"], each["adjudicates"], each["adjudicated_by"]) for each in rows] == [
            ("Ann", False, "Eve"),
            ("Bob", False, "Eve"),
            ("Eve", True, None),
        ]
        assert {each["task"] for each in rows} == {first["id"]}
        assert plain(rows[2]["label"]["spans"]) == wanted
        table = list(csv.DictReader(io.StringIO(b"".join(session.export("answers.csv")[2]).decode())))
        assert [each["adjudicated_by"] for each in table] == ["Eve", "Eve", ""]
        path = tmp_path / "answers.jsonl"
        path.write_bytes(b"".join(session.export("answers.jsonl")[2]))
        assert in_corpus(session, question["input"]) == wanted
    for where in (path, tmp_path / "log"):
        found = read_answers(where)
        assert [len(found.recorded), dict(found.left_out)] == [1, {"that a third person has decided between": 2}]


def test_killed_at_any_moment_it_goes_on_into_the_same_case_and_model(tmp_path):
    clock = Clock()
    with opened(tmp_path / "log", overlap=1.0, clock=clock) as session:
        ann, bob, eve = people(session, "Ann", "Bob", "Eve")
        differ(session, ann, bob)
        kept = session.store.path.parent

        def copied(name):  # as a kill leaves it: no snapshot, nothing closed
            to = tmp_path / name
            to.mkdir()
            for each in kept.iterdir():
                if each.is_file() and not each.name.endswith((".snapshot", "-shm")) and "lock" not in each.name:
                    (to / each.name).write_bytes(each.read_bytes())
            return to

        waiting = copied("waiting")
        question = session.ask(eve)[0]
        asked = copied("asked")
        session.tell(eve, question["id"], "second")
        decided, weights = copied("decided"), live(session)
        assert same_as_replay(session)
    for folder, expected in ((waiting, (1, 0)), (asked, (1, 0)), (decided, (0, 1))):
        with opened(folder, overlap=1.0, clock=clock) as session:
            assert counts(session) == expected
            assert same_as_replay(session)
            if folder != decided:
                again = session.ask(session.annotators.people[eve.id], decide=True)[0]
                assert again["shown"]["versions"] == question["shown"]["versions"]
                session.tell(session.annotators.people[eve.id], again["id"], "second")
            np.testing.assert_array_equal(live(session), weights)


def test_a_decision_and_what_it_decides_can_be_taken_back(tmp_path):
    with opened(tmp_path / "log", overlap=1.0) as session:
        ann, bob, eve = people(session, "Ann", "Bob", "Eve")
        _, second = differ(session, ann, bob)
        before = live(session)
        question = session.ask(eve)[0]
        session.tell(eve, question["id"], "first")
        assert session.undo(eve) == question  # theirs to decide again
        np.testing.assert_array_equal(live(session), before)
        assert counts(session) == (1, 0)
        assert [each["adjudicated_by"] for each in lines(session)] == [None, None]
        session.tell(eve, question["id"], "second")
        session.undo(bob, second["id"])
        assert same_as_replay(session)
        assert counts(session) == (0, 1)  # what was decided stays so
        session.tell(bob, second["id"], "right")
        assert [each["adjudicated_by"] for each in lines(session)] == ["Eve", None, "Eve"]
        assert in_corpus(session, question["input"]) == plain(question["shown"]["versions"][1])
        assert counts(session) == (0, 1)
        assert same_as_replay(session)


def gone_over(session):
    """(output, errors) of each review that is gone over again, in order."""
    state, start = session.model.learner.state, session.model.learner.problem.output_start
    n = session.model.count
    sizes = [int(start[x + 1] - start[x]) for x in state.about[:n]]
    outputs = [state.questions[at, 4 : 4 + size].tolist() for at, size in enumerate(sizes)]
    return list(zip(outputs, map(tuple, state.errors[:n].tolist()), strict=True))


@pytest.mark.parametrize("replaces", [True, False])
def test_a_decision_is_gone_over_in_place_of_the_two(tmp_path, monkeypatch, replaces):
    """What earlier versions have logged does not say that it replaces anything, and is learned from as it was then."""
    if not replaces:
        new = Adjudication.new

        def earlier(*args, **rest):
            if (row := new(*args, **rest)) is None:
                return None
            decides = json.loads(row.decides)
            return replace(row, decides=json.dumps({name: decides[name] for name in ("answers", "second")}))

        monkeypatch.setattr(Adjudication, "new", earlier)
    clock = Clock()
    with opened(tmp_path / "log", overlap=1.0, clock=clock) as session:
        ann, bob, eve = people(session, "Ann", "Bob", "Eve")
        differ(session, ann, bob)
        (one, _), (other, _) = two = gone_over(session)
        assert one != other
        reviewed(session, ann, 25)
        assert len(session.model._in_memory) == 1
        question = session.ask(eve)[0]
        session.tell(eve, question["id"], "first")
        row = row_of(session, question)
        left = (row.question().outputs[0].tolist(), (DECIDED_ERROR, DECIDED_ERROR))
        stand = [left] * 2 if replaces else two
        assert gone_over(session)[-1] == left
        assert gone_over(session)[:2] == stand
        reviewed(session, ann, 25)
        assert same_as_replay(session)
        np.testing.assert_array_equal(replay(session.folder).W, session.model.finished()[1])
        assert len(session.model._in_memory) == 2
        session.undo(ann)  # from a snapshot after the decision
        assert same_as_replay(session)
        assert gone_over(session)[:2] == stand
        session.undo(eve, question["id"])  # and from one before it, which has both answers
        assert gone_over(session)[:2] == two
        reviewed(session, ann, 3)
        assert same_as_replay(session)
        session.tell(eve, question["id"], "second")
        reviewed(session, ann, 3)
        weights = live(session)
        assert same_as_replay(session)
    with opened(tmp_path / "log", overlap=1.0, clock=clock) as session:  # from the snapshot of the end
        np.testing.assert_array_equal(live(session), weights)
        assert [each == gone_over(session)[-4] for each in gone_over(session)[:2]] == [replaces, replaces]
        reviewed(session, session.annotators.people[ann.id], 3)
        assert same_as_replay(session)


def test_an_answer_that_is_taken_back_before_anybody_is_asked_is_no_case(tmp_path):
    with opened(tmp_path / "log", overlap=1.0) as session:
        ann, bob = people(session, "Ann", "Bob")
        first, second = differ(session, ann, bob)
        session.undo(bob)
        assert counts(session) == (0, 0)
        session.tell(bob, second["id"], {"spans": plain(right_spans(session, first)), "corrected": [0]})
        assert counts(session) == (0, 0)  # they agree now


def test_who_is_asked_when_there_are_two_people_or_one_passes(tmp_path):
    clock = Clock()
    with opened(tmp_path / "log", overlap=1.0, clock=clock) as session:
        ann, bob = people(session, "Ann", "Bob")
        boss = someone(session, "admin", admin=True)
        robot = session.person(session.add_person("judge", program=True)["token"])
        differ(session, ann, bob)
        for each in (ann, bob, robot):
            with pytest.raises(Refused, match="nothing waits to be decided"):
                session.ask(each, decide=True)
        question = session.ask(boss, decide=True)[0]
        session.skip(boss, question["id"])
        assert counts(session) == (1, 0)
        assert not is_decision(session.ask(boss)[0])
        again = session.ask(boss, decide=True)[0]  # who has come to decide gets it again
        assert again["id"] != question["id"]
        assert is_decision(again)
        clock.now += 601  # left for too long
        eve = someone(session, "Eve")
        assert all(not is_decision(each) for each in session.ask(bob, 3))
        late = next(each for each in session.ask(eve, 3) if is_decision(each))
        assert late["id"] == again["id"]
        with pytest.raises(Refused, match="went to another person"):
            session.tell(boss, again["id"], "first")
        session.skip(eve, late["id"], "cannot-tell")  # nobody could: both answers stay
        assert counts(session) == (0, 0)
        assert [each["adjudicated_by"] for each in lines(session)] == [None, None]


def test_the_administrator_may_have_been_one_of_the_two(tmp_path):
    with opened(tmp_path / "log", overlap=1.0) as session:
        (ann,) = people(session, "Ann")
        boss = someone(session, "admin", admin=True)
        differ(session, ann, boss)
        assert not is_decision(session.ask(boss)[0])
        assert is_decision(session.ask(boss, decide=True)[0])


def test_what_a_program_says_makes_no_case(tmp_path):
    with opened(tmp_path / "log", overlap=1.0) as session:
        ann = someone(session)
        robot = session.person(session.add_person("judge", program=True)["token"])
        differ(session, robot, ann)
        assert counts(session) == (0, 0)


@pytest.mark.parametrize("answer", ["yes", "third", {"spans": []}])
def test_what_is_no_decision_is_refused(tmp_path, answer):
    with opened(tmp_path / "log", overlap=1.0) as session:
        ann, bob, eve = people(session, "Ann", "Bob", "Eve")
        differ(session, ann, bob)
        with pytest.raises(Refused, match="an answer is first or second, or the spans as they should be"):
            session.tell(eve, session.ask(eve)[0]["id"], answer)


@pytest.mark.parametrize("name", ["order 1", "plain"])
def test_other_tag_sets_and_reviews_of_what_is_marked(tmp_path, name):
    with opened(tmp_path / "log", name, {"review": "marked"}, overlap=1.0) as session:
        ann, bob, eve = people(session, "Ann", "Bob", "Eve")
        question, _ = reviewed(session, ann, 25)[-1]
        session.undo(ann)
        place = question["shown"]["about"][0]
        session.tell(ann, question["id"], "right")
        while (second := session.ask(bob)[0])["input"] != question["input"]:
            session.skip(bob, second["id"])
        labels = question["labels"]
        old = next((each["label"] for each in question["shown"]["spans"] if each["first"] == place), None)
        new = {"first": place, "last": place, "label": next(each for each in labels if each != old)}
        rest = [each for each in plain(question["shown"]["spans"]) if not each["first"] <= place <= each["last"]]
        said = {"spans": sorted([*rest, new], key=lambda each: each["first"]), "corrected": [place]}
        session.tell(bob, second["id"], said)
        decision = session.ask(eve)[0]
        assert is_decision(decision)
        assert place in decision["shown"]["unsure"]
        assert decision["shown"]["about"] == question["shown"]["about"]
        session.tell(eve, decision["id"], "second")
        assert same_as_replay(session)


def test_a_log_from_before_there_were_decisions_goes_on(tmp_path):
    with opened(tmp_path / "log", overlap=1.0) as session:
        differ(session, *people(session, "Ann", "Bob"))
    with contextlib.closing(sqlite3.connect(tmp_path / "log" / "log.sqlite", isolation_level=None)) as old:
        triggers = old.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        old.execute("DROP TRIGGER questions_no_update")
        old.execute("ALTER TABLE questions DROP COLUMN decides")
        old.execute(dict(triggers)["questions_no_update"])
    with opened(tmp_path / "log", overlap=1.0) as session:
        assert counts(session) == (1, 0)  # two that differed then are decided now
        eve = someone(session, "Eve")
        question = session.ask(eve)[0]
        session.tell(eve, question["id"], "first")
        assert row_of(session, question).decides is not None
        assert same_as_replay(session)
