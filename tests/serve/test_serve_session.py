"""A session: questions, answers, undo, repeats, people; the model against a replay from the log."""

from __future__ import annotations

import pytest

from sparsezo.serve.errors import Refused
from sparsezo.serve.session import Session
from sparsezo.settings import Settings
from sparsezo.tasks.chunking.generate import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.registry import kind


@pytest.fixture(scope="module")
def chunks():
    return Chunking.fit(chunking_corpus(150, 1), only="NP")


def session_of(made, folder, given=None, **rest):
    task, data = made
    settings = Settings.complete({"seed": 3, "rule": "part", **(given or {})}, task.defaults)
    return Session(kind(task.name), task, data, settings, folder, **rest)


def someone(session, name="Ann"):
    return session.person(session.add_person(name)["token"])


def test_a_question_is_asked_and_answered_and_the_model_moves(chunks, tmp_path):
    with session_of(chunks, tmp_path / "s") as session:
        ann = someone(session)
        question = session.ask(ann)[0]
        assert question["kind"] == "part"
        assert question["choices"] == ["yes", "no"]
        assert question["labels"] == ["B-NP", "I-NP", "O"]
        assert question["text"].endswith("?")
        reply = session.tell(ann, question["id"], "no", seconds=1.5, nonce="a")
        assert reply == {"id": "q1", "saved": True, "answer": "no", "answers": 1, "mine": 1}
        assert session.learner.state.W.any()
        assert session.recent(ann)[0]["answer"] == "no"
        assert session.status(ann)["answers"] == 1
        session.undo(ann)
        assert not session.learner.state.W.any()
        with pytest.raises(Refused, match="taken back") as refused:
            session.tell(ann, question["id"], "no", nonce="a")
        assert refused.value.code == "late"
        assert session.ask(ann, holding=[question["id"]])[0]["id"] == "q1"
