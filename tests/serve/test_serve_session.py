"""A session: questions, answers, undo, repeats, leases, people, audits; the model against a replay from the log."""

from __future__ import annotations

import contextlib
import json
import random
import threading
from dataclasses import replace

import numpy as np
import pytest
from sessions import RULES, Clock, answered, made, opened, same_as_replay, someone, weights

from sparsezo.errors import SparsezoError, UsageError
from sparsezo.learner import predict
from sparsezo.serve import lessons, watching
from sparsezo.serve.errors import Refused
from sparsezo.serve.log import Log
from sparsezo.serve.replay import replay
from sparsezo.serve.session import Session
from sparsezo.settings import Settings
from sparsezo.tasks.chunking import metric
from sparsezo.tasks.registry import kind


@pytest.fixture
def session(tmp_path):
    with opened(tmp_path / "s", clock=Clock()) as session:
        yield session


def refused(code, call, *args, **rest):
    with pytest.raises(Refused) as error:
        call(*args, **rest)
    assert error.value.code == code


def test_a_question_is_asked_and_answered_and_the_model_moves(session):
    ann = someone(session)
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


def test_the_same_answer_again_is_applied_once_and_gets_the_same_reply(session):
    ann = someone(session)
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
        rows = session.log.questions()
    assert [row.step for row in rows] == sorted({row.step for row in rows})
    assert len({row.x for row in rows}) == 10  # each input comes again only after all others


def test_undo_gives_the_weights_of_before_any_number_of_steps_back(session):
    ann = someone(session)
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


def test_an_older_answer_is_changed_and_the_later_ones_count_as_before(session):
    ann = someone(session)
    ids = answered(session, ann, 8, "yes")
    session.undo(ann, ids[2])
    without = weights(session)
    session.tell(ann, ids[2], "no")
    assert not np.array_equal(without, weights(session))
    assert same_as_replay(session)
    recent = session.recent(ann)
    assert [each["id"] for each in recent] == [ids[2], *reversed(ids)]
    assert [each["id"] for each in recent if each["retracted"]] == [ids[2]]
    assert session.status()["answers"] == 8


def test_an_answer_that_was_taken_back_does_not_come_again_by_a_late_repeat(session):
    ann = someone(session)
    id = session.ask(ann)[0]["id"]
    session.tell(ann, id, "yes", nonce="a")
    session.undo(ann)
    refused("late", session.tell, ann, id, "yes", nonce="a")
    assert not weights(session).any()
    assert session.tell(ann, id, "yes", nonce="b")["saved"]


def test_undo_by_name_twice_takes_back_once(session):
    ann = someone(session)
    ids = answered(session, ann, 2)
    session.undo(ann, ids[0])
    session.undo(ann, ids[0])
    assert sum(event.what == "retraction" for event in session.log.events()) == 1


def test_skips_teach_nothing_and_can_be_undone(session):
    ann = someone(session)
    id = session.ask(ann)[0]["id"]
    assert session.skip(ann, id, "cannot-tell") == {"id": id, "saved": True}
    assert session.skip(ann, id, "cannot-tell") == {"id": id, "saved": True}
    refused("already-answered", session.tell, ann, id, "yes")
    assert session.status()["answers"] == 0
    assert session.undo(ann)["id"] == id
    session.tell(ann, id, "yes")
    refused("bad-answer", session.skip, ann, id, "bored")


@pytest.mark.parametrize("answer", ["maybe", "", None, 1, True, ["yes"], "B-VP", 0.5])
def test_what_is_no_answer_is_refused_and_nothing_changes(session, answer):
    ann = someone(session)
    id = session.ask(ann)[0]["id"]
    refused("bad-answer", session.tell, ann, id, answer)
    assert session.status()["answers"] == 0
    assert session.tell(ann, id, "B-NP")["saved"]


def test_seconds_and_nonces_are_looked_at(session):
    ann = someone(session)
    id = session.ask(ann)[0]["id"]
    for wrong in ({"seconds": -1.0}, {"seconds": float("nan")}, {"seconds": "1"}, {"nonce": "x" * 101}, {"nonce": 3}):
        refused("bad-answer", session.tell, ann, id, "yes", **wrong)


@pytest.mark.parametrize("id", ["q9", "q0", "17", "q-1", "q1 ", "", "q" + "9" * 30, None, "q１"])
def test_unknown_questions_are_refused(session, id):
    ann = someone(session)
    session.ask(ann)
    refused("unknown-question", session.tell, ann, id, "yes")


def test_questions_are_leased_and_come_back_when_the_time_is_over(session):
    ann, bob = someone(session, "Ann"), someone(session, "Bob")
    question = session.ask(ann)[0]
    refused("not-yours", session.tell, bob, question["id"], "yes")
    session.clock.now += session.lease_seconds + 1
    back = session.ask(bob)[0]
    assert back == question
    refused("late", session.tell, ann, question["id"], "yes")
    assert session.tell(bob, question["id"], "yes")["saved"]
    refused("late", session.tell, ann, question["id"], "yes")
    refused("not-yours", session.undo, ann, question["id"])


def test_who_took_over_a_lease_has_it_after_a_restart_too(tmp_path):
    clock = Clock()
    with opened(tmp_path / "s", clock=clock) as session:
        ann, bob = someone(session, "Ann"), someone(session, "Bob")
        id = session.ask(ann)[0]["id"]
        clock.now += session.lease_seconds + 1
        assert session.ask(bob)[0]["id"] == id
    with opened(tmp_path / "s", clock=clock) as session:
        refused("late", session.tell, ann, id, "yes")
        assert session.ask(ann)[0]["id"] != id
        assert session.flag(bob, id, "odd")["saved"]
        assert session.tell(bob, id, "yes")["saved"]
        assert [event.person for event, _ in session.log.answers()] == [bob.id]


def test_a_returned_question_does_not_go_to_who_has_answered_the_same(tmp_path):
    with opened(tmp_path / "s", clock=Clock(), overlap=1.0) as session:
        ann, bob, cid = (someone(session, name) for name in ("Ann", "Bob", "Cid"))
        answered(session, ann, 1)
        again = session.ask(bob)[0]["id"]  # the same of a second person
        assert session.log.question(int(again[1:])).again == 1
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
        assert session.log.question(int(session.ask(bob)[0]["id"][1:])).again is None
        assert session.log.question(int(session.ask(cid)[0]["id"][1:])).again == 1


def test_an_answer_that_was_taken_back_is_not_asked_of_a_second_person(tmp_path):
    with opened(tmp_path / "s", clock=Clock(), overlap=1.0) as session:
        ann, bob = someone(session, "Ann"), someone(session, "Bob")
        answered(session, ann, 1)
        session.undo(ann)
        session.skip(ann, "q1")
        assert session.log.question(int(session.ask(bob)[0]["id"][1:])).again is None
        session.undo(ann)
        session.tell(ann, "q1", "no")
        assert session.log.question(int(session.ask(bob)[0]["id"][1:])).again == 1
        assert session.log.question(int(session.ask(bob)[0]["id"][1:])).again is None  # once


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize(("answer", "comes"), [("yes", False), ("B-NP", False), ("no", True)])
def test_a_part_that_an_answer_has_named_is_not_asked_about_under_another_label(tmp_path, answer, comes, restart):
    """Until the answer is taken back."""
    folder = tmp_path / "s"
    with opened(folder) as session:
        ann = someone(session)
        id = session.ask(ann)[0]["id"]
        session.tell(ann, id, answer)
        first = session.log.question(1)
        if restart:
            session.close()
            session = opened(folder)
        with session:
            begin, label, last, rest = json.loads(first.numbers)
            other = replace(first.question(), numbers=(begin, (label + 1) % 3, last, rest))
            assert asked_instead(session, ann, other) == comes
            if not comes:
                session.undo(ann, id)
                session.skip(ann, id)
                assert asked_instead(session, ann, other)


def asked_instead(session, person, question):
    """Whether this is asked where the learner would ask it next."""
    own = session.learner.ask
    left = [question]

    def ask():
        return replace(left.pop(), owner=session.learner.id) if left else own()

    let_go = session.learner.let_go
    session.learner.ask = ask
    session.learner.let_go = lambda asked: None if asked.numbers == question.numbers else let_go(asked)
    try:
        id = session.ask(person)[0]["id"]
    finally:
        del session.learner.ask, session.learner.let_go
    row = session.desk.row(int(id[1:]))
    session.skip(person, id)
    return (row.x, tuple(json.loads(row.numbers))) == (question.x, question.numbers)


@pytest.mark.parametrize("sure_of", ["yes", "no", None])
def test_a_question_fetched_ahead_is_replaced_once_its_answer_is_known(tmp_path, sure_of):
    with opened(tmp_path / "s", "text", {"rater_error": "0"}) as session:
        ann = someone(session)
        id = session.ask(ann)[0]["id"]
        label = json.loads(session.log.question(1).numbers)[1]
        session.learner.state.W[:, label] = {"yes": 100.0, "no": -100.0, None: 0.0}[sure_of]
        held = [question["id"] for question in session.ask(ann, 0, holding=[id])]
        assert (held == [id]) == (sure_of is None)
        assert [event.what for event in session.log.events()] == ([] if sure_of is None else ["withdrawal"])


def test_who_is_late_but_first_is_heard(session):
    ann = someone(session)
    id = session.ask(ann)[0]["id"]
    session.clock.now += 10 * session.lease_seconds
    assert session.tell(ann, id, "yes")["saved"]


def test_two_people_are_not_asked_about_the_same_part(tmp_path):
    with opened(tmp_path / "s", "text", max_ahead=90) as session:
        for name in ("Ann", "Bob", "Cid"):
            with contextlib.suppress(Refused):  # there are fewer documents than they could have
                session.ask(someone(session, name), 90)
        asked = [row.x for row in session.log.questions()]
        assert len(set(asked)) == len(asked)
        assert len(asked) > 190


def test_what_is_held_comes_back_first_and_too_many_are_refused(session):
    ann = someone(session)
    first, second = session.ask(ann, 2)
    three = session.ask(ann, 1, [second["id"], first["id"], "q99"])
    assert three[:2] == [second, first]
    assert len(three) == 3
    refused("too-many", session.ask, ann, 4)
    assert session.ask(ann, 1, [first["id"]]) == [first, second]  # a page that has lost it
    with pytest.raises(Refused):
        session.ask(ann, 0)


def test_a_question_that_the_model_has_become_sure_of_is_replaced(session):
    ann, bob = someone(session, "Ann"), someone(session, "Bob")
    held = session.ask(ann)[0]
    row = session.desk.row(1)
    assert session.desk.entries[1].unsure
    label = held["shown"]["tag"]
    for _ in range(60):  # the same part, until it is known
        session.learner.learn_from(row.question(), label, kind="label")
    new = session.ask(ann, 0, [held["id"]])
    assert [each["id"] for each in new] == ["q2"]
    assert [event.what for event in session.log.events()] == ["withdrawal"]
    assert session.tell(ann, held["id"], "yes")["saved"]  # it was on the screen
    refused("not-yours", session.tell, bob, held["id"], "no")


def test_paused_nobody_is_asked_but_answers_are_taken(session):
    ann = someone(session)
    id = session.ask(ann)[0]["id"]
    session.pause(True)
    refused("paused", session.ask, ann)
    assert session.status()["paused"]
    assert session.tell(ann, id, "yes")["saved"]
    session.pause(False)
    assert session.ask(ann)


def test_only_the_newest_link_of_a_person_opens(session):
    old = session.add_person("Ann")
    assert session.person(old["token"]).name == "Ann"
    new = session.add_person("Ann")
    assert new["id"] == old["id"]
    assert session.person(old["token"]) is None
    assert session.person(new["token"]).name == "Ann"
    for wrong in ("", None, "x", new["token"][:-1], new["token"] + "x"):
        assert session.person(wrong) is None
    raw = b"".join(file.read_bytes() for file in session.folder.glob("log.sqlite*"))
    assert new["token"].encode() not in raw


@pytest.mark.parametrize("name", ["", "  ", "x" * 81, "a\nb", 3])
def test_names_of_people_are_looked_at(session, name):
    with pytest.raises(UsageError, match="name"):
        session.add_person(name)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("chunking", {"rule": "part"}),
        ("chunking", {"rule": "label", "about": "chunk"}),
        ("chunking", {"rule": "pair"}),
        ("text", {"rule": "part"}),
        ("text", {"rule": "pair"}),
        ("text", {"rule": "rate"}),
        ("rerank", {"rule": "pair"}),
    ],
)
def test_every_kind_of_question_is_learned_from_and_replayed_bit_for_bit(tmp_path, name, given):
    with opened(tmp_path / "s", name, given) as session:
        ann = someone(session)
        ids = answered(session, ann, 12)
        session.undo(ann, ids[4])
        assert weights(session).any()
        assert same_as_replay(session)
        before = weights(session)
    with opened(tmp_path / "s", name, given) as session:
        assert np.array_equal(before, weights(session))
        answered(session, ann, 3)
        assert same_as_replay(session)


def test_a_pair_is_shown_in_random_order_and_its_answer_turned_back(tmp_path):
    with opened(tmp_path / "s", "rerank") as session:
        ann = someone(session)
        orders = set()
        for _ in range(12):
            question = session.ask(ann)[0]
            row = session.desk.row(int(question["id"][1:]))
            own = [session.contents.serving.output_text(*made("rerank"), row.x, y) for y in row.question().outputs]
            assert question["shown"]["hypotheses"] == [own[k] for k in question["order"]]
            orders.add(tuple(question["order"]))
            session.tell(ann, question["id"], "first")
            told = session.log.events()[-1]
            assert told.answer == ('"first"' if question["order"] == [0, 1] else '"second"')
            assert session.recent(ann, 1)[0]["answer"] == "first"
        assert orders == {(0, 1), (1, 0)}


def test_a_grade_is_a_loss(tmp_path):
    with opened(tmp_path / "s", "text", {"rule": "rate"}) as session:
        ann = someone(session)
        for grade, loss in ((1, "1.0"), (4, "0.25"), (5, "0.0")):
            id = session.ask(ann)[0]["id"]
            session.tell(ann, id, grade)
            assert session.log.events()[-1].answer == loss
            assert session.recent(ann, 1)[0]["answer"] == grade
        id = session.ask(ann)[0]["id"]
        for wrong in (0, 6, 2.5, "3", True):
            refused("bad-answer", session.tell, ann, id, wrong)


def test_the_audit_set_is_never_learned_from(tmp_path):
    with opened(tmp_path / "s", audit=40, max_ahead=1, clock=Clock()) as session:
        ann = someone(session)
        audited = {row.x for row in session.log.audit()}
        assert len(session.log.audit()) == 40
        seen = 0
        for _ in range(200):
            question = session.ask(ann)[0]
            row = session.desk.row(int(question["id"][1:]))
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
        session.watch.stop()
        session.clock.now += 10  # what was found a moment ago is shown again
        found = session.status()["audit"]
        table = session.audit_table()
        assert (found["asked"], found["agreed"]) == (seen, sum(each["model"] == "O" for each in table))
        assert found["low"] <= found["accuracy"] <= found["high"]
        assert (found["always_low"], found["always_high"]) != (found["low"], found["high"])
        assert same_as_replay(session)


def test_sentences_audited_whole_say_how_good_spans_are(tmp_path):
    """People name every token's tag (always B-NP here), and chunks are counted when a sentence is whole."""
    with opened(tmp_path / "s", audit=2, audit_whole=3, max_ahead=1, clock=Clock()) as session:
        ann, meta = someone(session), session.log.meta
        _, data = made("chunking")
        lengths = np.diff(data.offsets)
        sentences = meta["audit_inputs"]
        rows = session.log.audit()
        parts = {(row.x, json.loads(row.numbers)[0]) for row in rows}
        assert meta["audit_parts"] == 2
        assert len(sentences) == 3
        assert parts >= {(x, i) for x in sentences for i in range(lengths[x])}
        assert len(parts) == len(rows)  # nothing is asked twice
        while session.chooser._left:
            question = session.ask(ann)[0]
            audit = session.desk.row(int(question["id"][1:])).audit is not None
            assert audit or question["shown"]["words"] not in [words_of(data, x) for x in sentences]
            session.tell(ann, question["id"], "B-NP" if audit else "yes")
        session.clock.now += 10
        found = session.status()["audit"]
        assert found["asked"] == 2  # the accuracy is of the parts drawn one by one
        output = predict(session.learner.problem, session.learner.state.W)
        said = [(int(data.offsets[x]) + i, int(data.offsets[x]) + i + 1) for x in sentences for i in range(lengths[x])]
        tags = [made("chunking")[0].tags[k] for k in output]
        chunks = {each[:2] for each in metric.chunks(tags, data.offsets)}
        mine = {each for each in chunks if np.searchsorted(data.offsets, each[0], "right") - 1 in sentences}
        both = len(mine & {*said})
        assert found["spans"]["sentences"] == 3
        counted = tuple(found["spans"][name] for name in ("correct", "predicted", "gold", "twice"))
        assert counted == (both, len(mine), len(said), 0)
        assert found["spans"]["precision"]["value"] == (both / len(mine) if mine else None)
        assert found["spans"]["recall"]["value"] == both / len(said)
        assert found["spans"]["f1"]["value"] == pytest.approx(2 * both / (len(mine) + len(said)))
        json.dumps(found, allow_nan=False)
        session.undo(ann)  # a sentence of which something is open does not count
        session.clock.now += 10
        assert session.status()["audit"]["spans"]["sentences"] == 2
        assert same_as_replay(session)


def words_of(data, x):
    return data.columns[0][data.offsets[x] : data.offsets[x + 1]]


def test_only_chunks_are_audited_whole(tmp_path):
    with pytest.raises(UsageError, match="`audit_whole` 3: only chunks are counted in whole sentences"):
        opened(tmp_path / "s", "text", audit_whole=3)


def test_an_audit_answer_can_be_taken_back(tmp_path):
    with opened(tmp_path / "s", audit=40, max_ahead=1, clock=Clock()) as session:
        ann = someone(session)
        while not session.audit_table():
            answered(session, ann, 1)
        before = weights(session)
        session.undo(ann)
        assert session.audit_table() == []
        assert np.array_equal(before, weights(session))


def test_an_audit_set_that_leaves_too_little_is_refused(tmp_path):
    with pytest.raises(UsageError, match="`audit` 100000: 150 of 150 inputs would be set aside"):
        opened(tmp_path / "s", audit=100_000)
    with pytest.raises(UsageError, match=r"`audit` 5 and `audit_whole` 100: 10[0-5] of 150 inputs"):
        opened(tmp_path / "s", audit=5, audit_whole=100)
    with opened(tmp_path / "s"):  # and nothing is left behind
        pass


def test_some_questions_are_asked_of_a_second_person_never_of_the_same(tmp_path):
    with opened(tmp_path / "s", overlap=0.5, max_ahead=1) as session:
        ann, bob = someone(session, "Ann"), someone(session, "Bob")
        answered(session, ann, 20, "yes")
        twice = {row.id for row in session.log.questions() if row.twice}
        assert 4 <= len(twice) <= 16
        answered(session, bob, len(twice), "no")
        rows = session.log.questions()
        again = {row.again: row for row in rows if row.person == bob.id}
        assert again.keys() == twice
        for number, row in again.items():
            assert (row.x, row.numbers) == (session.desk.row(number).x, session.desk.row(number).numbers)
        assert session.desk.second == []
        assert same_as_replay(session)


def test_beliefs_about_people_are_logged_with_their_answers(session):
    ann, bob = someone(session, "Ann"), someone(session, "Bob")
    session.believe(ann.id, 0.1, 0.2)
    answered(session, ann, 1, "yes")
    answered(session, ann, 1, "B-NP")
    answered(session, bob, 1, "yes")
    errors = [(event.kind, event.e0, event.e1) for event in session.log.events() if event.what == "answer"]
    assert errors == [("part", 0.1, 0.2), ("label", pytest.approx(0.15), pytest.approx(0.15)), ("part", 0.0, 0.0)]
    assert same_as_replay(session)


def test_replay_without_a_person_is_a_session_without_them(tmp_path):
    with opened(tmp_path / "s") as session:
        ann, bob = someone(session, "Ann"), someone(session, "Bob")
        for person in (ann, bob, ann):
            answered(session, person, 4)
        hers = [(row.question(), event) for event, row in session.log.answers() if event.person == ann.id]
    model = replay(tmp_path / "s", without="Bob")
    with opened(tmp_path / "other") as other:
        for question, event in hers:
            other.learner.learn_from(question, event.answer.strip('"'), kind=event.kind)
        assert np.array_equal(model.W, weights(other))
    assert model.result["answers"] == 8
    with pytest.raises(SparsezoError, match="nobody of the name"):
        replay(tmp_path / "s", without="Eve")


def killed(session):
    """As if: no snapshot is written when it is closed."""
    session._writer.stop()
    session._writer.failure = RuntimeError()


def test_a_snapshot_with_an_answer_that_was_taken_back_since_is_passed_over(tmp_path):
    with opened(tmp_path / "s") as session:
        ann = someone(session)
        answered(session, ann, 6)
    with opened(tmp_path / "s") as session:
        session.undo(ann, "q2")
        W = weights(session)
        killed(session)
    assert list((tmp_path / "s").glob("*.snapshot"))
    with opened(tmp_path / "s") as session:
        assert np.array_equal(W, weights(session))


@pytest.mark.parametrize("version", [None, "0.0.1"])
def test_a_snapshot_of_another_version_is_passed_over(tmp_path, monkeypatch, version):
    with opened(tmp_path / "s") as session:
        answered(session, someone(session), 6)
        W = weights(session)
    taught, teach = [], lessons.teach
    monkeypatch.setattr(lessons, "teach", lambda *args: taught.append(1) or teach(*args))
    if version is not None:
        monkeypatch.setattr(lessons, "__version__", version)
    with opened(tmp_path / "s") as session:
        assert len(taught) == (0 if version is None else 6)
        assert np.array_equal(W, weights(session))


def test_a_damaged_snapshot_is_passed_over(tmp_path):
    with opened(tmp_path / "s") as session:
        ann = someone(session)
        answered(session, ann, 6)
        W = weights(session)
    snapshot = next((tmp_path / "s").glob("*.snapshot"))
    raw = bytearray(snapshot.read_bytes())
    raw[len(raw) // 2] ^= 0xFF
    snapshot.write_bytes(bytes(raw))
    with opened(tmp_path / "s") as session:
        assert np.array_equal(W, weights(session))
        assert same_as_replay(session)


def test_a_flag_is_kept_with_its_note_and_only_of_ones_own_question(session):
    ann, bob = someone(session, "Ann"), someone(session, "Bob")
    id = session.ask(ann)[0]["id"]
    assert session.flag(ann, id, "two chunks?") == {"id": id, "saved": True}
    refused("not-yours", session.flag, bob, id, "mine")
    refused("bad-answer", session.flag, ann, id, "x" * 2001)
    assert [(event.what, event.note) for event in session.log.events()] == [("flag", "two chunks?")]
    assert session.tell(ann, id, "yes")["saved"]


def test_what_is_written_is_synced_before_it_is_acknowledged(session):
    assert session.log._writer.execute("PRAGMA synchronous").fetchone() == (2,)
    assert session.log._writer.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_other_inputs_or_settings_are_another_session(tmp_path):
    with opened(tmp_path / "s"):
        pass
    task, data = made("chunking")
    settings = Settings.complete({"seed": 3, "rule": "part"}, task.defaults)
    for other, changed in ((data[1:], settings), (data, replace(settings, h=0.5))):
        with pytest.raises(UsageError, match="another start"):
            Session(kind("chunking"), task, other, changed, tmp_path / "s")


def test_dev_is_looked_at_and_the_curve_survives(tmp_path):
    task, data = made("chunking")
    with opened(tmp_path / "s", dev=data) as session:
        ann = someone(session)
        answered(session, ann, 30)
        while not session.watch.curve():
            threading.Event().wait(0.01)
        session.watch.stop()
        curve = session.status()["curve"]
        answers, W = session._weights()
        if curve[-1][0] == answers:
            outputs = predict(task.problem(data, learn=False), W)
            assert curve[-1][1] == pytest.approx(task.scores(data, outputs).value)
        assert session.status()["metric"] == "F1"
    with opened(tmp_path / "s") as session:
        assert session.status()["curve"] == curve


def test_a_log_is_of_one_task_and_one_process(tmp_path):
    with opened(tmp_path / "s"), pytest.raises(SparsezoError, match="another process is serving"):
        opened(tmp_path / "s")
    with pytest.raises(UsageError, match="another task"):
        opened(tmp_path / "s", "text")


def test_a_log_that_cannot_be_written_acknowledges_nothing(session, monkeypatch):
    ann = someone(session)
    id = session.ask(ann)[0]["id"]

    def full(_rows):
        raise SparsezoError("no room")

    monkeypatch.setattr(session.log, "add", full)
    with pytest.raises(SparsezoError, match="not saved"):
        session.tell(ann, id, "yes")
    with pytest.raises(SparsezoError, match="has ended"):
        session.tell(ann, id, "yes")
    assert not weights(session).any()
    assert [event.what for event in Log(session.log.path).events()] == []


@pytest.mark.parametrize("seed", range(6))
def test_whatever_people_do_in_whatever_order_each_answer_counts_once(tmp_path, monkeypatch, seed):
    """Against a dict of answers, and the model against a replay from nothing."""
    monkeypatch.setattr(lessons, "IN_MEMORY", 3)
    monkeypatch.setattr(lessons, "ON_DISK", 8)
    monkeypatch.setattr(lessons, "SECONDS", 0.0)
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
        if chance.random() < 0.8 and int(id[1:]) in session.desk.entries:
            person = next(each for each in people if each.id == session.desk.entries[int(id[1:])].lessee)
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
        kept = {f"q{event.question}": event.person for event, _ in session.log.answers()}
        assert kept == {id: who for id, (who, _) in told.items()}
        assert session.desk.answers == len(told)
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

        threads = [threading.Thread(target=work, args=(person,)) for person in people]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert len(replies) == 240
        events = [event for event in session.log.events() if event.what == "answer"]
        assert len(events) == len({event.question for event in events}) == session.desk.answers == 120
        assert same_as_replay(session)


def test_a_snapshot_is_not_written_over_while_it_is_needed(tmp_path, monkeypatch):
    """Their memory is used again and again: in memory, for the disk, and after answers were taken back."""
    monkeypatch.setattr(lessons, "IN_MEMORY", 5)
    monkeypatch.setattr(lessons, "ON_DISK", 7)
    monkeypatch.setattr(lessons, "SECONDS", 0.0)
    with opened(tmp_path / "s") as session:
        ann, chance, done = someone(session), random.Random(1), []
        for more in (6, 6, 4, 3, 5, 7, 2, 9):
            done += answered(session, ann, more)
            session._background.submit(lambda: None).result()
            question = session.undo(ann, done.pop(-chance.randint(2, 6)))
            assert same_as_replay(session)
            session.tell(ann, question["id"], "yes")
            done.append(question["id"])


def test_a_look_that_took_long_is_not_the_last_for_long(tmp_path, monkeypatch):
    """Looking takes a share of the time, and one that waited for a compiler must not count for an hour."""
    monkeypatch.setattr(watching, "_SHARE", 1e-9)
    monkeypatch.setattr(watching, "_MOST_REST", 0.01)
    looked, again = [], threading.Event()

    def estimate():
        looked.append(len(looked))
        if len(looked) == 2:
            again.set()

    with opened(tmp_path / "s") as session:
        monkeypatch.setattr(session.watch, "_estimate", estimate)
        ann = someone(session)
        answered(session, ann, 1)
        while len(looked) < 1:
            answered(session, ann, 30)
        answered(session, ann, 60)
        assert again.wait(30)


@pytest.mark.parametrize("name", RULES)
def test_warming_up_leaves_no_trace(tmp_path, name):
    with opened(tmp_path / "s", name) as session:
        before = session.learner.to_bytes()
        session.warm_up()
        assert session.learner.to_bytes() == before
        assert session.log.events() == session.log.questions() == []
