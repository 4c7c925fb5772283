"""A learner over HTTP: the names of Learner, one error type, answers that count once whatever is lost."""

from __future__ import annotations

import http.client

import pytest
from stand_in import TOKENS, StandIn

from sparsezo.errors import UsageError
from sparsezo.serve import client
from sparsezo.serve.client import RemoteError, RemoteLearner
from sparsezo.serve.errors import Refused


@pytest.fixture
def session(serving):
    return serving(StandIn())


@pytest.fixture
def learner(session):
    with RemoteLearner(session.url, TOKENS["ann"]) as learner:
        yield learner


def test_a_person_asks_and_tells(session, learner):
    question = learner.ask()
    assert question["text"] == "Does a noun phrase (NP) start at 'in'?"
    reply = learner.tell(question, "yes", seconds=1.5)
    assert (reply["saved"], reply["mine"]) == (True, 1)
    assert session.calls[-1][2:5] == ("q1", "yes", 1.5)
    assert learner.status()["mine"] == 1


def test_a_link_is_enough(session):
    with RemoteLearner(f"{session.url}/#{TOKENS['bob']}") as learner:
        learner.tell(learner.ask(), "no")
    assert session.told["q1"]["person"] == "bob"


def test_skips_flags_and_several_at_once(session, learner):
    first, second = learner.ask_many(2)
    learner.skip(first)
    learner.skip(second, "cannot-tell")
    learner.flag(second, "odd")
    assert session.skipped == [("q1", "skip"), ("q2", "cannot-tell")]
    assert session.flags == [("q2", "odd")]
    assert [each["id"] for each in learner.ask_many(1, holding=[second])] == ["q2", "q3"]


def test_undo_gives_the_question_again(session, learner):
    for _ in range(2):
        learner.tell(learner.ask(), "yes")
    assert learner.undo()["id"] == "q2"
    assert learner.undo("q1")["id"] == "q1"
    assert session.told == {}
    with pytest.raises(RemoteError, match="no answer of yours") as caught:
        learner.undo()
    assert (caught.value.status, caught.value.code) == (404, "unknown-question")


def test_what_is_refused_is_one_error_with_the_reason(session, learner):
    with pytest.raises(RemoteError, match="no answer to it") as caught:
        learner.tell(learner.ask(), "perhaps")
    assert (caught.value.status, caught.value.code) == (422, "bad-answer")
    with RemoteLearner(session.url, "wrong") as stranger, pytest.raises(RemoteError, match="token") as caught:
        stranger.ask()
    assert caught.value.status == 401


def test_a_pause_is_said_at_once(session, learner, monkeypatch):
    monkeypatch.setattr(client.time, "sleep", lambda seconds: pytest.fail("waits"))
    session.paused = True
    with pytest.raises(RemoteError) as caught:
        learner.ask()
    assert (caught.value.status, caught.value.code) == (503, "paused")


def test_a_passing_fault_is_tried_again_with_the_same_nonce(session, learner, monkeypatch):
    waited = []
    monkeypatch.setattr(client.time, "sleep", waited.append)
    question = learner.ask()
    answers = http.client.HTTPConnection.getresponse

    def lost(connection):  # it arrives, and the reply is lost
        monkeypatch.setattr(http.client.HTTPConnection, "getresponse", answers)
        answers(connection).read()
        raise ConnectionResetError

    monkeypatch.setattr(http.client.HTTPConnection, "getresponse", lost)
    assert learner.tell(question, "yes")["mine"] == 1
    told = [call for call in session.calls if call[0] == "tell"]
    assert len(told) == 2
    assert told[0] == told[1]
    assert len(told[0][-2]) == 16  # the nonce
    session.fail = Refused("a moment", "too-many")
    learner.ask()
    assert waited == [0.1, 0.1]


def test_nobody_there_is_one_line(monkeypatch):
    waited = []
    monkeypatch.setattr(client.time, "sleep", waited.append)
    refused = ConnectionRefusedError(111, "Connection refused")
    monkeypatch.setattr(http.client.HTTPConnection, "connect", lambda self: (_ for _ in ()).throw(refused))
    with pytest.raises(RemoteError, match=r"does not answer: .*refused") as caught:
        RemoteLearner("http://127.0.0.1:1", "t").ask()
    assert caught.value.status == 0
    assert waited == [0.1, 0.2, 0.4, 0.8]


@pytest.mark.parametrize(
    ("url", "token"), [("127.0.0.1:8000", "t"), ("ftp://x", "t"), ("http://x", None), ("http://x", "a\nb")]
)
def test_a_link_that_is_none_is_said_before_any_call(url, token):
    with pytest.raises(UsageError):
        RemoteLearner(url, token)
