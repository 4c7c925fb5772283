"""A session: questions, answers, undo, repeats, leases, people, audits; the model against a replay from the log."""

from __future__ import annotations

import contextlib
import json
import random
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from sessions import RULES, Clock, answered, made, opened, row_of, same_as_replay, someone, weights

from sparsezo.errors import DataError, SparsezoError, UsageError
from sparsezo.learner import predict
from sparsezo.serve import online_model, quality
from sparsezo.serve.errors import Refused
from sparsezo.serve.minutes import AXIS, session_minutes, write_minutes
from sparsezo.serve.online_model import replay
from sparsezo.serve.session import Session
from sparsezo.serve.store import AuditRow, LookRow, QuestionRow
from sparsezo.settings import Settings
from sparsezo.tasks.chunking.synthetic import chunking_columns, generate_chunking
from sparsezo.tasks.registry import task_spec
from sparsezo.training import HeldOut


@pytest.fixture
def session(tmp_path):
    with opened(tmp_path / "s", clock=Clock()) as session:
        yield session


@pytest.fixture
def ann(session):
    return someone(session)


@pytest.fixture
def bob(session, ann):
    return someone(session, "Bob")


def refused(code, call, *args, **rest):
    with pytest.raises(Refused) as error:
        call(*args, **rest)
    assert error.value.code == code


def test_a_question_is_asked_and_answered_and_the_model_moves(session, ann):
    question = session.ask(ann)[0]
    assert (question["kind"], question["task"], question["choices"]) == ("part", "chunking", ["yes", "no"])
    assert question["labels"] == ["B-NP", "I-NP", "O"]
    assert question["text"].endswith("?")
    assert question["shown"]["words"][question["shown"]["first"]] in question["text"]
    reply = session.tell(ann, question["id"], "no", seconds=1.5, nonce="a")
    assert reply == {"id": "q1", "saved": True, "answer": "no", "answers": 1, "mine": 1}
    assert weights(session).any()
    assert session.status(ann)["today"] == session.status(ann)["mine"] == 1
    told = {"id": "q1", "question": question["text"], "answer": "no", "at": "2027-01-15T08:00:00Z"}
    assert session.recent(ann) == [{**told, "names": question["names"], "retracted": False}]
    assert question["names"]["B-NP"] == "first word of a noun phrase"


def test_the_same_answer_again_is_applied_once_and_gets_the_same_reply(session, ann):
    id = session.ask(ann)[0]["id"]
    first = session.tell(ann, id, "yes", nonce="a")
    W = weights(session)
    answered(session, ann, 1)
    W2 = weights(session)
    assert session.tell(ann, id, "yes", nonce="a") == first
    assert np.array_equal(W2, weights(session))
    assert not np.array_equal(W, W2)
    refused("already-answered", session.tell, ann, id, "no", nonce="b")
    assert session.status()["answers"] == 2


def test_a_repeat_after_a_restart_is_still_one(tmp_path):
    with opened(tmp_path / "s") as session:
        ann = someone(session)
        id = session.ask(ann)[0]["id"]
        session.tell(ann, id, "yes", nonce="a")
    with opened(tmp_path / "s") as session:
        again = session.tell(ann, id, "yes", nonce="a")
        assert again == {"id": id, "saved": True, "answer": "yes", "answers": 1, "mine": 1}
        assert session.status()["answers"] == 1


def test_after_a_restart_the_order_of_inputs_goes_on(tmp_path):
    with opened(tmp_path / "s", given={"ask": "random"}) as session:
        ann = someone(session)
        answered(session, ann, 5)
    with opened(tmp_path / "s", given={"ask": "random"}) as session:
        answered(session, ann, 5)
        rows = session.store.rows(QuestionRow)
    assert [row.step for row in rows] == sorted({row.step for row in rows})
    assert len({row.x for row in rows}) == 10  # each input comes again only after all others


def test_undo_gives_the_weights_of_before_any_number_of_steps_back(session, ann):
    before = [weights(session)]
    for _ in range(6):
        answered(session, ann, 1)
        before.append(weights(session))
    for k in range(5, -1, -1):
        question = session.undo(ann)
        assert np.array_equal(before[k], weights(session))
        assert question["id"] == f"q{k + 1}"
    refused("unknown-question", session.undo, ann)
    session.tell(ann, "q1", "yes")
    assert same_as_replay(session)


def test_an_older_answer_is_changed_and_the_later_ones_count_as_before(session, ann):
    ids = answered(session, ann, 8, "yes")
    for _ in range(2):  # which takes it back once
        session.undo(ann, ids[2])
    assert sum(event.what == "retraction" for event in session.store.events()) == 1
    without = weights(session)
    session.tell(ann, ids[2], "no")
    assert not np.array_equal(without, weights(session))
    assert same_as_replay(session)
    recent = session.recent(ann)
    assert [each["id"] for each in recent] == [ids[2], *reversed(ids)]
    assert [each["id"] for each in recent if each["retracted"]] == [ids[2]]
    assert session.status()["answers"] == 8


def test_an_answer_that_was_taken_back_does_not_come_again_by_a_late_repeat(session, ann):
    id = session.ask(ann)[0]["id"]
    session.tell(ann, id, "yes", nonce="a")
    session.undo(ann)
    refused("late", session.tell, ann, id, "yes", nonce="a")
    assert not weights(session).any()
    assert session.tell(ann, id, "yes", nonce="b")["saved"]


def test_skips_teach_nothing_and_can_be_undone(session, ann):
    id = session.ask(ann)[0]["id"]
    assert session.skip(ann, id, "cannot-tell") == {"id": id, "saved": True}
    assert session.skip(ann, id, "cannot-tell") == {"id": id, "saved": True}
    refused("already-answered", session.tell, ann, id, "yes")
    assert session.status()["answers"] == 0
    assert session.undo(ann)["id"] == id
    session.tell(ann, id, "yes")


@pytest.mark.parametrize("answer", ["maybe", "", None, 1, True, ["yes"], "B-VP", 0.5])
def test_what_is_no_answer_is_refused_and_nothing_changes(session, answer, ann):
    id = session.ask(ann)[0]["id"]
    refused("bad-answer", session.tell, ann, id, answer)
    assert session.status()["answers"] == 0
    assert session.tell(ann, id, "B-NP")["saved"]


@pytest.mark.parametrize("id", ["q9", "q0", "17", "q-1", "q1 ", "", "q" + "9" * 30, None, "q１"])
def test_unknown_questions_are_refused(session, id, ann):
    session.ask(ann)
    refused("unknown-question", session.tell, ann, id, "yes")


def test_questions_are_leased_and_come_back_when_the_time_is_over(session, ann, bob):
    question = session.ask(ann)[0]
    refused("not-yours", session.tell, bob, question["id"], "yes")
    other = session.ask(bob)[0]
    session.clock.now += session.lease_seconds + 1
    assert session.tell(bob, other["id"], "yes")["saved"]  # late, but before anybody else has it
    back = session.ask(bob)[0]
    assert (back["id"], back["text"]) == (question["id"], question["text"])
    refused("late", session.tell, ann, question["id"], "yes")
    assert session.tell(bob, question["id"], "yes")["saved"]
    refused("late", session.tell, ann, question["id"], "yes")
    refused("not-yours", session.undo, ann, question["id"])


def test_a_returned_question_does_not_go_to_who_has_answered_the_same(tmp_path):
    with opened(tmp_path / "s", clock=Clock(), overlap=1.0) as session:
        ann, bob, cid = (someone(session, name) for name in ("Ann", "Bob", "Cid"))
        answered(session, ann, 1)
        again = session.ask(bob)[0]["id"]  # the same of a second person
        assert session.store.question(int(again[1:])).again == 1
        session.clock.now += session.lease_seconds + 1
        assert session.ask(ann)[0]["id"] != again
        assert session.ask(cid)[0]["id"] == again


def test_who_took_over_a_question_is_not_asked_it_as_the_second_person(tmp_path):
    with opened(tmp_path / "s", clock=Clock(), overlap=1.0) as session:
        ann, bob, cid = (someone(session, name) for name in ("Ann", "Bob", "Cid"))
        id = session.ask(ann)[0]["id"]
        session.clock.now += session.lease_seconds + 1
        assert session.ask(bob)[0]["id"] == id
        session.tell(bob, id, "yes")
        assert row_of(session, session.ask(bob)[0]).again is None
        assert row_of(session, session.ask(cid)[0]).again == 1


def test_an_answer_that_was_taken_back_is_not_asked_of_a_second_person(tmp_path):
    with opened(tmp_path / "s", clock=Clock(), overlap=1.0) as session:
        ann, bob = someone(session, "Ann"), someone(session, "Bob")
        answered(session, ann, 1)
        session.undo(ann)
        session.skip(ann, "q1")
        assert row_of(session, session.ask(bob)[0]).again is None
        session.undo(ann)
        session.tell(ann, "q1", "no")
        assert row_of(session, session.ask(bob)[0]).again == 1
        assert row_of(session, session.ask(bob)[0]).again is None  # once


@pytest.mark.parametrize(("answer", "comes"), [("yes", False), ("B-NP", False), ("no", True)])
def test_a_part_that_an_answer_has_named_is_not_asked_about_under_another_label(session, ann, answer, comes):
    """Until the answer is taken back."""
    id = session.ask(ann)[0]["id"]
    session.tell(ann, id, answer)
    first = session.store.question(1)
    begin, label, last, rest = json.loads(first.numbers)
    other = replace(first.question(), numbers=(begin, (label + 1) % 3, last, rest))
    assert asked_instead(session, ann, other) == comes
    if not comes:
        session.undo(ann, id)
        session.skip(ann, id)
        assert asked_instead(session, ann, other)


def asked_instead(session, person, question):
    """Whether this is asked where the learner would ask it next."""
    own = session.model.learner.ask
    left = [question]

    def ask():
        return replace(left.pop(), owner=session.model.learner.id) if left else own()

    let_go = session.model.learner.let_go
    session.model.learner.ask = ask
    session.model.learner.let_go = lambda asked: None if asked.numbers == question.numbers else let_go(asked)
    try:
        id = session.ask(person)[0]["id"]
    finally:
        del session.model.learner.ask, session.model.learner.let_go
    row = session.queue.row(int(id[1:]))
    session.skip(person, id)
    return (row.x, tuple(json.loads(row.numbers))) == (question.x, question.numbers)


@pytest.mark.parametrize("sure_of", ["yes", "no", None])
def test_a_question_fetched_ahead_is_replaced_once_its_answer_is_known(tmp_path, sure_of):
    with opened(tmp_path / "s", "text", {"rater_error": "0"}) as session:
        ann = someone(session)
        id = session.ask(ann)[0]["id"]
        label = json.loads(session.store.question(1).numbers)[1]
        session.model.learner.state.W[:, label] = {"yes": 100.0, "no": -100.0, None: 0.0}[sure_of]
        held = [question["id"] for question in session.ask(ann, 0, holding=[id])]
        assert (held == [id]) == (sure_of is None)
        assert [event.what for event in session.store.events()] == ([] if sure_of is None else ["withdrawal"])
        refused("not-yours", session.tell, someone(session, "Bob"), id, "no")
        assert session.tell(ann, id, "yes")["saved"]  # it was on the screen


def test_two_people_are_not_asked_about_the_same_part(tmp_path):
    with opened(tmp_path / "s", "text", max_ahead=90) as session:
        for name in ("Ann", "Bob", "Cid"):
            with contextlib.suppress(Refused):  # there are fewer documents than they could have
                session.ask(someone(session, name), 90)
        asked = [row.x for row in session.store.rows(QuestionRow)]
        assert len(set(asked)) == len(asked)
        assert len(asked) > 190


def test_what_is_held_comes_back_first_and_too_many_are_refused(session, ann):
    first, second = session.ask(ann, 2)
    three = session.ask(ann, 1, [second["id"], first["id"], "q99"])
    assert three[:2] == [second, first]
    assert len(three) == 3
    refused("too-many", session.ask, ann, 4)
    assert session.ask(ann, 1, [first["id"]]) == [first, second]  # a page that has lost it
    with pytest.raises(Refused):
        session.ask(ann, 0)


def test_paused_nobody_is_asked_but_answers_are_taken(session, ann):
    id = session.ask(ann)[0]["id"]
    session.pause(True)
    refused("paused", session.ask, ann)
    assert session.status()["paused"]
    assert session.tell(ann, id, "yes")["saved"]
    session.pause(False)
    assert session.ask(ann)


def test_a_pair_is_shown_in_random_order_and_its_answer_turned_back(tmp_path):
    with opened(tmp_path / "s", "rerank") as session:
        ann = someone(session)
        orders = set()
        for _ in range(12):
            question = session.ask(ann)[0]
            row = row_of(session, question)
            own = [session.contents.serving.output_text(*made("rerank"), row.x, y) for y in row.question().outputs]
            assert question["shown"]["hypotheses"] == [own[k] for k in question["order"]]
            orders.add(tuple(question["order"]))
            session.tell(ann, question["id"], "first")
            told = session.store.events()[-1]
            assert told.answer == ('"first"' if question["order"] == [0, 1] else '"second"')
            assert session.recent(ann, 1)[0]["answer"] == "first"
        assert orders == {(0, 1), (1, 0)}


def test_the_best_of_some_is_named_by_its_place_and_measured_by_pairs(tmp_path):
    with opened(tmp_path / "s", "rerank", {"rule": "best"}, audit=4) as session:
        ann, places, kinds = someone(session), set(), set()
        for _ in range(40):
            question = session.ask(ann)[0]
            row = row_of(session, question)
            kinds.add((row.kind, row.audit is not None))
            if row.kind == "best":
                n = len(question["shown"]["hypotheses"])
                assert question["choices"] == [str(k + 1) for k in range(n)]
                for bad in (str(n + 1), "0", "first", 1):
                    with pytest.raises(Refused, match="an answer is one of 1, 2"):
                        session.tell(ann, question["id"], bad)
                places.add(own := row.question().numbers[1])
                p = session.model.learner.probability(row.question(), str(own + 1))
                assert row.believed == pytest.approx(p)
            session.tell(ann, question["id"], question["choices"][-1] if row.kind == "best" else "first")
        assert kinds == {("best", False), ("pair", True)}
        assert len(places) > 1  # of the model's own
        assert session.quality.audit()["asked"] >= 1
        rows = [json.loads(line) for line in b"".join(session.export("pairs.jsonl")[2]).splitlines()]
        best = next(row for row in session.store.rows(QuestionRow) if row.kind == "best")
        texts = [session.contents.serving.output_text(*made("rerank"), best.x, y) for y in best.question().outputs]
        found = [row["rejected"] for row in rows if row["chosen"] == texts[-1]]
        assert all(each in found for each in texts[:-1])
        assert same_as_replay(session)


def test_a_grade_is_a_loss(tmp_path):
    with opened(tmp_path / "s", "text", {"rule": "rate"}) as session:
        ann = someone(session)
        for grade, loss in ((1, "1.0"), (4, "0.25"), (5, "0.0")):
            id = session.ask(ann)[0]["id"]
            session.tell(ann, id, grade)
            assert session.store.events()[-1].answer == loss
            assert session.recent(ann, 1)[0]["answer"] == grade
        id = session.ask(ann)[0]["id"]
        for wrong in (0, 6, 2.5, "3", True):
            refused("bad-answer", session.tell, ann, id, wrong)


def test_the_audit_set_is_never_learned_from(tmp_path):
    with opened(tmp_path / "s", audit=40, max_ahead=1, clock=Clock()) as session:
        ann = someone(session)
        audited = {row.x for row in session.store.rows(AuditRow)}
        assert len(session.store.rows(AuditRow)) == 40
        seen = 0
        for _ in range(200):
            question = session.ask(ann)[0]
            row = row_of(session, question)
            if row.audit is None:
                assert row.x not in audited
                session.tell(ann, question["id"], "yes")
                continue
            seen += 1
            assert question["kind"] == "label"
            assert "tag" not in question["shown"]  # asked blind
            before = weights(session)
            session.tell(ann, question["id"], "O")
            assert np.array_equal(before, weights(session))
        assert 3 <= seen <= 22  # one in twenty of 200
        session.evaluator.stop()
        session.clock.now += 10  # what was found a moment ago is shown again
        found = session.status()["audit"]
        table = session.quality.audit_table()
        assert (found["asked"], found["agreed"]) == (seen, sum(each["model"] == "O" for each in table))
        assert found["low"] <= found["accuracy"] <= found["high"]
        assert (found["always_low"], found["always_high"]) != (found["low"], found["high"])
        assert same_as_replay(session)


def test_an_audit_set_that_leaves_too_little_is_refused(tmp_path):
    with pytest.raises(UsageError, match="`audit` 100000: 150 of 150 inputs would be set aside"):
        opened(tmp_path / "s", audit=100_000)
    with pytest.raises(UsageError, match=r"`audit` 5 and `audit_whole` 100: 10[0-5] of 150 inputs"):
        opened(tmp_path / "s", audit=5, audit_whole=100)
    with pytest.raises(UsageError, match="`audit_whole` 3: only chunks are counted in whole sentences"):
        opened(tmp_path / "t", "text", audit_whole=3)
    with opened(tmp_path / "s"):  # and nothing is left behind
        pass


def test_beliefs_about_people_are_logged_with_their_answers(session, ann, bob):
    session.believe(ann.id, 0.1, 0.2)
    answered(session, ann, 1, "yes")
    answered(session, ann, 1, "B-NP")
    answered(session, bob, 1, "yes")
    errors = [(event.kind, event.e0, event.e1) for event in session.store.events() if event.what == "answer"]
    assert errors == [("part", 0.1, 0.2), ("label", pytest.approx(0.15), pytest.approx(0.15)), ("part", 0.0, 0.0)]
    assert same_as_replay(session)


def test_replay_without_a_person_is_a_session_without_them(tmp_path):
    with opened(tmp_path / "s") as session:
        ann, bob = someone(session, "Ann"), someone(session, "Bob")
        for person in (ann, bob, ann):
            answered(session, person, 4)
        hers = [(row.question(), event) for event, row in session.store.answers() if event.person == ann.id]
    model = replay(tmp_path / "s", without="Bob")
    with opened(tmp_path / "other") as other:
        for question, event in hers:
            other.model.learner.learn_from(question, event.answer.strip('"'), kind=event.kind)
        assert np.array_equal(model.W, weights(other))
    assert model.result["answers"] == 8
    with pytest.raises(SparsezoError, match="nobody of the name"):
        replay(tmp_path / "s", without="Eve")


def test_a_snapshot_with_an_answer_that_was_taken_back_since_is_passed_over(tmp_path):
    with opened(tmp_path / "s") as session:
        ann = someone(session)
        answered(session, ann, 6)
    with opened(tmp_path / "s") as session:
        session.undo(ann, "q2")
        W = weights(session)
        shutil.copytree(tmp_path / "s", tmp_path / "killed")  # without a snapshot of the end
    assert len(list((tmp_path / "killed").glob("*.snapshot"))) == 1
    with opened(tmp_path / "killed") as session:
        assert np.array_equal(W, weights(session))


@pytest.mark.parametrize("wrong", [None, "version", "damage"])
def test_a_snapshot_that_is_damaged_or_of_another_version_is_passed_over(tmp_path, monkeypatch, wrong):
    with opened(tmp_path / "s") as session:
        answered(session, someone(session), 6)
        W = weights(session)
    taught, learn = [], online_model.Lessons.learn
    monkeypatch.setattr(online_model.Lessons, "learn", lambda *args: taught.append(1) or learn(*args))
    if wrong == "version":
        monkeypatch.setattr(online_model, "__version__", "0.0.1")
    elif wrong == "damage":
        snapshot = next((tmp_path / "s").glob("*.snapshot"))
        raw = bytearray(snapshot.read_bytes())
        raw[len(raw) // 2] ^= 0xFF
        snapshot.write_bytes(bytes(raw))
    with opened(tmp_path / "s") as session:
        assert len(taught) == (0 if wrong is None else 6)
        assert np.array_equal(W, weights(session))


def test_a_flag_is_kept_with_its_note_and_only_of_ones_own_question(session, ann, bob):
    id = session.ask(ann)[0]["id"]
    assert session.flag(ann, id, "two chunks?") == {"id": id, "saved": True}
    refused("not-yours", session.flag, bob, id, "mine")
    assert [(event.what, event.note) for event in session.store.events()] == [("flag", "two chunks?")]
    assert session.tell(ann, id, "yes")["saved"]


def test_other_inputs_or_settings_are_another_session(tmp_path):
    with opened(tmp_path / "s"):
        pass
    task, data = made("chunking")
    settings = Settings.complete({"seed": 3, "rule": "part"}, task.defaults)
    for other, changed in ((data[1:], settings), (data, replace(settings, h=0.5))):
        with pytest.raises(UsageError, match="another start"):
            Session(task_spec("chunking"), task, other, changed, tmp_path / "s")


def test_dev_is_looked_at_and_the_curve_survives(tmp_path):
    task, data = made("chunking")
    with opened(tmp_path / "s", dev=data) as session:
        ann = someone(session)
        answered(session, ann, 30)
        while not session.evaluator.curve:
            threading.Event().wait(0.01)
        session.evaluator.stop()
        curve = session.status()["curve"]
        answers, W = session.model.weights()
        if curve[-1][0] == answers:
            outputs = predict(task.problem(data, learn=False), W)
            assert curve[-1][1] == pytest.approx(task.scores(data, outputs).value)
        assert session.status()["metric"] == "F1"
    with opened(tmp_path / "s") as session:
        assert session.status()["curve"] == curve


def test_the_curve_and_the_figure_are_over_the_minutes_that_people_spent(tmp_path):
    clock = Clock()
    began = clock.now
    with opened(tmp_path / "s", dev=made("chunking")[1], clock=clock) as session:
        people = [someone(session), someone(session, "Bob")]
        for k in range(60):
            question = session.ask(people[k % 2])[0]
            clock.now += 10
            # 6 s each; an absence is no work, and nobody reads for an hour
            session.tell(people[k % 2], question["id"], "yes", seconds=3600 if k == 7 else 9, away=3)
        while not session.evaluator.curve or session.evaluator.curve[-1][0] < 50:
            threading.Event().wait(0.01)
        session.evaluator.stop()
        curve = session.status()["curve"]
        looks = [look for look in session.store.rows(LookRow) if look.metric == "F1"]
        until = [round((look.at - began) / 10) for look in looks]  # so many answers had been given
        assert [each[2] for each in curve] == pytest.approx([(n - (n > 7)) / 10 for n in until])
        assert curve[-1][2] > 4
    with opened(tmp_path / "s") as session:
        assert session.status()["curve"] == curve
    looks = session_minutes(tmp_path / "s")
    assert [(look.answers, look.value, look.minutes) for look in looks] == [tuple(each) for each in curve]
    write_minutes(looks, tmp_path / "minutes.svg")
    assert AXIS in (tmp_path / "minutes.svg").read_text("utf-8").replace("\n", " ")
    rows = (tmp_path / "minutes.csv").read_text("utf-8").splitlines()
    assert rows[0] == "minutes,answers,metric,value"
    assert rows[-1].startswith(f"{curve[-1][2]:.4f},{curve[-1][0]},F1,")
    with pytest.raises(UsageError, match=r"a figure ends in .png, .svg, .pdf"):
        write_minutes(looks, tmp_path / "minutes.doc")


@pytest.mark.parametrize("rule", ["part", "review"])
def test_the_figure_on_other_data_learns_from_the_log_anew(tmp_path, rule):
    task = made("chunking")[0]
    with opened(tmp_path / "s", given={"rule": rule}) as session:
        ann = someone(session)
        for _ in range(12):
            session.tell(ann, session.ask(ann)[0]["id"], "right" if rule == "review" else "yes", seconds=30)
        W = session.model.finished()[1]
    (tmp_path / "dev.txt").write_text(chunking_columns(generate_chunking(30, 9)))
    looks = session_minutes(tmp_path / "s", str(tmp_path / "dev.txt"))
    assert [look.answers for look in looks] == [0, 1, 2, 3, 4, 5, 6, 8, 10, 12]
    assert [look.minutes for look in looks] == [each / 2 for each in (0, 1, 2, 3, 4, 5, 6, 8, 10, 12)]
    dev = task_spec("chunking").read(task, str(tmp_path / "dev.txt"), {})
    assert looks[-1].value == HeldOut(task, dev).value(W)


def test_without_seconds_or_looks_there_is_no_figure(tmp_path):
    with opened(tmp_path / "s") as session:
        answered(session, someone(session), 3)
    with pytest.raises(DataError, match="no answer says how many seconds it took"):
        session_minutes(tmp_path / "s")
    with opened(tmp_path / "t") as session:
        ann = someone(session)
        session.tell(ann, session.ask(ann)[0]["id"], "yes", seconds=2)
    with pytest.raises(DataError, match="nothing has been measured yet; give labelled data with `dev`"):
        session_minutes(tmp_path / "t")


def test_a_log_is_of_one_task_and_one_process(tmp_path):
    with opened(tmp_path / "s"), pytest.raises(SparsezoError, match="another process is serving"):
        opened(tmp_path / "s")
    with pytest.raises(UsageError, match="another task"):
        opened(tmp_path / "s", "text")


def often(monkeypatch, in_memory, on_disk):
    """Snapshots after so few answers."""
    for name, value in (("IN_MEMORY", in_memory), ("ON_DISK", on_disk), ("SECONDS", 0.0)):
        monkeypatch.setattr(online_model, name, value)


@pytest.mark.parametrize("seed", range(4))
def test_whatever_people_do_in_whatever_order_each_answer_counts_once(tmp_path, monkeypatch, seed):
    """Against a dict of answers, and the model against a replay from nothing."""
    often(monkeypatch, 3, 8)
    chance = random.Random(seed)
    told: dict[str, tuple[int, str]] = {}
    clock = Clock()
    folder = tmp_path / "s"
    session = opened(folder, overlap=0.2, audit=10, lease_seconds=50.0, clock=clock)
    people = [someone(session, f"P{k}") for k in range(3)]
    known: list[str] = []
    for _ in range(150):
        person, act = chance.choice(people), chance.random()
        clock.now += chance.choice([0, 1, 30])
        id = chance.choice([*known, *known[-3:] * 5, "q1"])
        if chance.random() < 0.8 and int(id[1:]) in session.queue.entries:
            person = next(each for each in people if each.id == session.queue.entries[int(id[1:])].lessee)
        try:
            if act < 0.35:
                known.extend(each["id"] for each in session.ask(person, chance.randint(1, 2)))
            elif act < 0.75:
                answer = chance.choice(["yes", "no", "O", "B-NP"])
                reply = session.tell(person, id, answer, nonce=chance.choice([None, "a", "b"]))
                assert told.get(id) in (None, (person.id, answer))
                told[id] = (person.id, answer)
                assert reply["saved"]
            elif act < 0.85:
                mine = session.undo(person, chance.choice([None, id]))["id"]
                if mine in told:
                    assert told.pop(mine)[0] == person.id
            elif act < 0.93:
                session.skip(person, id)
                assert id not in told
            else:
                session.close()
                session = opened(folder, overlap=0.2, audit=10, lease_seconds=50.0, clock=clock)
        except Refused:
            pass
        kept = {f"q{event.question}": event.person for event, _ in session.store.answers()}
        assert kept == {id: who for id, (who, _) in told.items()}
        assert session.queue.answers == len(told)
    assert len(told) > 10
    assert same_as_replay(session)
    session.close()


def test_many_threads_at_once_lose_nothing_and_double_nothing(tmp_path):
    with opened(tmp_path / "s", overlap=0.1) as session:
        people = [someone(session, f"P{k}") for k in range(8)]
        replies: list[dict] = []

        def work(person):
            for _ in range(15):
                question = session.ask(person)[0]
                for _ in range(2):  # each is sent twice
                    replies.append(session.tell(person, question["id"], "yes", nonce=question["id"]))

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, people))
        assert len(replies) == 240
        events = [event for event in session.store.events() if event.what == "answer"]
        assert len(events) == len({event.question for event in events}) == session.queue.answers == 120
        assert same_as_replay(session)


def test_a_look_that_took_long_is_not_the_last_for_long(monkeypatch):
    """Looking takes a share of the time, and one that waited for a compiler must not count for an hour."""
    monkeypatch.setattr(quality, "_SHARE", 1e-9)
    monkeypatch.setattr(quality, "_MOST_REST", 0.01)
    looked, again = [], threading.Event()

    def estimate():
        looked.append(len(looked))
        if len(looked) == 2:
            again.set()

    answers = [0]
    kept = lambda *_: pytest.fail("kept")  # noqa: E731
    looking = quality.Evaluator("F1", None, [], lambda: (answers[0], None), kept, estimate, float)
    while not again.wait(0.001):
        answers[0] += 30
        looking.answered(answers[0])
    looking.stop()


@pytest.mark.parametrize("name", RULES)
def test_warming_up_leaves_no_trace(tmp_path, name):
    with opened(tmp_path / "s", name) as session:
        before = session.model.learner.to_bytes()
        session.model.warm_up()
        assert session.model.learner.to_bytes() == before
        assert session.store.events() == session.store.rows(QuestionRow) == []
