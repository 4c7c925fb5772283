"""Programs as annotators: what they are asked and may say, how they wait, and that audits stay people's."""

from __future__ import annotations

import http.server
import json
import runpy
import shlex
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from sessions import answered, opened, row_of, someone
from stand_in import TOKENS, StandIn

from sparsezo.cli import join as command
from sparsezo.cli.join import SKIPS, Told, answer_of, join, request_of
from sparsezo.errors import UsageError
from sparsezo.scorers import FunctionScorer, ScorerAnswers, ScorerError
from sparsezo.serve import client
from sparsezo.serve.client import RemoteError, RemoteLearner
from sparsezo.serve.errors import Refused
from sparsezo.serve.server import Server

EXAMPLE = Path(__file__).parents[2] / "examples" / "chat_judge.py"


def scorer_of(answers):
    """A scorer that says these, and is stopped by Ctrl-C then; ``asked`` has its questions."""
    left, asked = iter(answers), []

    def function(request):
        asked.append(request)
        try:
            said = next(left)
        except StopIteration:
            raise KeyboardInterrupt from None
        return said(request) if callable(said) else said

    made = FunctionScorer("of a test", function)
    made.asked = asked
    return made


def joined(remote, answers, seconds=0.0):
    """What became of the questions, and the questions."""
    told, scorer = Told(), scorer_of(answers)
    with pytest.raises(KeyboardInterrupt):
        join(remote, scorer, told, seconds)
    return told, scorer.asked


@pytest.fixture
def waits(monkeypatch):
    """Seconds that are waited for, without waiting; ``then``: what happens meanwhile, one after the other."""
    made = SimpleNamespace(seconds=[], then=[])

    def sleep(seconds):
        if seconds > 0:
            made.seconds.append(seconds)
        if made.then:
            made.then.pop(0)()

    monkeypatch.setattr(command, "time", SimpleNamespace(sleep=sleep, monotonic=time.monotonic))
    monkeypatch.setattr(client, "time", SimpleNamespace(sleep=lambda _: None))
    return made


# ---- at a real service ----


def test_a_program_answers_as_one_more_annotator(serving, tmp_path):
    with opened(tmp_path / "s") as session:
        serving(session)
        made = session.add_person("judge")
        with RemoteLearner(f"{session.url}/#{made['token']}") as remote:
            assert remote.be_program()["program"] is True
            told, asked = joined(remote, ["yes", "skip", '"no"', False, "cannot-tell", True])
        assert str(told) == "4 questions answered, 2 skipped"
        assert session.people()[0]["program"] is True
        events = [(e.what, e.kind, e.said()) for e in session.store.events() if e.question is not None]
        assert events == [
            ("answer", "part", "yes"),
            ("skip", None, None),
            ("answer", "part", "no"),
            ("answer", "part", "no"),
            ("cannot-tell", None, None),
            ("answer", "part", "yes"),
        ]
        assert session.model.count == 4
        assert len({(each["input"], each["first"], each["tag"]) for each in asked}) == 7


@pytest.mark.parametrize("name", ["chunking", "text", "rerank"])
def test_a_question_is_what_a_scorer_of_train_gets(serving, tmp_path, name):
    """But for its step, and what a page shows beside it."""
    with opened(tmp_path / "s", name) as session:
        serving(session)
        person = someone(session, "judge")
        question = session.ask(person)[0]
        row = row_of(session, question)
        given = session.contents
        offered = session.model.learner.problem.questions[row.kind, row.about]
        usual = ScorerAnswers(given.task, given.data, scorer_of([]), row.kind).request(row.question().offering(offered))
        request = request_of(question, row.step)
        if row.swapped:
            usual = {**usual, "hypotheses": usual["hypotheses"][::-1]}
        assert {key: request[key] for key in usual} == usual


def test_audits_are_peoples_alone(tmp_path):
    with opened(tmp_path / "s", audit=40, overlap=0.3) as session:
        ann, bob, judge = someone(session, "Ann"), someone(session, "Bob"), someone(session, "judge")
        session.mark_program(judge.id)
        answered(session, bob, 1)
        answered(session, ann, 150)  # half of the audited inputs wait for a second person
        waiting = [n for n in session.queue.second if session.queue.entries[n].audit]
        assert waiting
        answered(session, judge, 300)
        assert [n for n in session.queue.second if session.queue.entries[n].audit] == waiting
        theirs = [e for e in session.queue.history[judge.id] if session.queue.entries[e.question].audit]
        assert theirs == []
        assert {e.person for e in session.queue.audit_answers()} == {ann.id}
        assert session.queue.entries[session.strategy._for_second(bob.id, waiting).id].audit


def test_an_audit_that_was_open_is_not_a_programs_either(tmp_path):
    with opened(tmp_path / "s", audit=40, lease_seconds=0.0) as session:
        ann = someone(session, "Ann")
        while row_of(session, question := session.ask(ann)[0]).audit is None:
            session.tell(ann, question["id"], "yes")
        session.mark_program(ann.id)
        with pytest.raises(Refused, match="for people alone"):
            session.tell(ann, question["id"], question["choices"][0])
        for _ in range(5):  # neither as its own, nor as one whose lease is over
            each = session.ask(ann)[0]
            assert row_of(session, each).audit is None
            session.tell(ann, each["id"], "yes")


def test_one_person_and_a_program_are_not_two_people(tmp_path):
    with opened(tmp_path / "s", audit=40) as session:
        ann, judge = someone(session, "Ann"), someone(session, "judge")
        session.mark_program(judge.id)
        answered(session, judge, 5)
        answered(session, ann, 200)
        assert session.queue.audit_answers()
        assert session.queue.second == []


def said_by(session, person, n, answer):
    """n questions answered by what the model thinks of them; their numbers."""
    done = []
    for _ in range(n):
        question = session.ask(person)[0]
        row = row_of(session, question)
        session.tell(person, question["id"], answer(row))
        done.append(row.id)
    return done


def expected(row):
    return "yes" if row.believed > 0.5 else "no"


def unexpected(row):
    return "no" if row.believed > 0.5 else "yes"


def test_people_are_asked_first_where_a_program_and_the_model_disagree(tmp_path):
    def again(session, person, n):
        """The questions of which the next n of this person are repeats."""
        return [row_of(session, session.ask(person)[0]).again for _ in range(n)]

    with opened(tmp_path / "s", max_ahead=10) as session:
        ann, judge, other, bob = (someone(session, name) for name in ("Ann", "judge", "other judge", "Bob"))
        for each in (judge, other):
            session.mark_program(each.id)
        said_by(session, ann, 5, unexpected)  # a person's need not be looked at
        said_by(session, judge, 5, expected)
        doubted = said_by(session, judge, 4, unexpected)
        session.undo(judge)
        sure = {n: abs(session.queue.row(n).believed - 0.5) for n in doubted[:-1]}
        in_order = sorted(sure, key=sure.get, reverse=True)
        assert again(session, other, 3) == [None] * 3  # a person's, not another program's
        assert again(session, ann, 1) == in_order[:1]
        session.tell(ann, f"q{session.queue.open_of(ann.id)[0].id}", "yes")
        assert again(session, bob, 1) == in_order[1:2]  # one person is enough
    with opened(tmp_path / "s", max_ahead=10) as session:  # the store knows which were asked, and which wait
        ann = session.annotators.people[ann.id]
        assert {session.people()[k]["program"] for k in (1, 2)} == {True}
        assert again(session, ann, 2) == [in_order[2], None]


def test_a_label_that_the_model_would_not_give_is_doubted(tmp_path):
    with opened(tmp_path / "s", "text", {"rule": "label"}) as session:
        ann, judge = someone(session, "Ann"), someone(session, "judge")
        session.mark_program(judge.id)
        labels = session.ask(judge)[0]["choices"]
        row = session.queue.row(1)
        best = labels[row.question().numbers[1]]
        session.tell(judge, "q1", best)
        question = session.ask(judge)[0]
        best = labels[row_of(session, question).question().numbers[1]]
        session.tell(judge, question["id"], next(each for each in labels if each != best))
        assert row_of(session, session.ask(ann)[0]).again == 2


def test_agreement_is_of_questions_that_were_drawn(tmp_path):
    """Those that are asked again because a program was doubted would make it look worse than it is."""
    with opened(tmp_path / "s", overlap=0.0) as session:
        ann, judge = someone(session, "Ann"), someone(session, "judge")
        session.mark_program(judge.id)
        doubted = said_by(session, judge, 5, unexpected)
        for _ in doubted:
            question = session.ask(ann)[0]
            assert row_of(session, question).again in doubted
            session.tell(ann, question["id"], expected(row_of(session, question)))
        session.estimate()
        found = session.quality.estimated
        assert (found.twice, found.agreement, found.alpha) == (5, {}, None)


def test_a_question_asked_twice_is_not_asked_a_third_time_after_a_start(tmp_path):
    with opened(tmp_path / "s", overlap=1.0) as session:
        ann, bob, _ = (someone(session, name) for name in ("Ann", "Bob", "Eve"))
        answered(session, ann, 1)
        question = session.ask(bob)[0]
        assert row_of(session, question).again == 1
        session.tell(bob, question["id"], "yes")
    with opened(tmp_path / "s", overlap=1.0) as session:
        eve = session.annotators.people[3]
        assert row_of(session, session.ask(eve)[0]).again is None


# ---- waiting ----


def test_it_waits_while_there_is_nothing_to_ask(serving, waits):
    session = serving(StandIn())
    session.paused = True
    waits.then = [lambda: None, lambda: setattr(session, "paused", False)]
    with RemoteLearner(session.url, TOKENS["ann"]) as remote:
        told, _ = joined(remote, ["yes"])
    assert waits.seconds[:2] == [5.0, 5.0]  # as Retry-After says
    assert told.answered == 1


def test_it_goes_on_after_a_restart_of_the_service(serving, waits):
    session = StandIn()
    server = Server(session)
    port = int(server.url.rpartition(":")[2])
    thread = threading.Thread(target=server.run, kwargs={"sockets": [server.socket]})
    thread.start()

    def stop(request):
        server.should_exit = True
        thread.join()
        server.socket.close()
        return "no"

    waits.then = [lambda: None, lambda: None, lambda: serving(session, port=port)]  # the first is between two questions
    with RemoteLearner(server.url, TOKENS["ann"]) as remote:
        told, _ = joined(remote, ["yes", stop, "yes"])
    assert told.answered == 3
    assert [each["answer"] for each in session.told.values()] == ["yes", "no", "yes"]
    assert waits.seconds == [1.0, 2.0]


def test_a_rate_is_kept(serving, waits):
    session = serving(StandIn())
    with RemoteLearner(session.url, TOKENS["ann"]) as remote:
        joined(remote, ["yes"] * 3, seconds=20.0)
    assert len(waits.seconds) == 3
    assert all(10 < each <= 20 for each in waits.seconds)


def test_an_answer_that_comes_too_late_is_passed_over(serving):
    session = serving(StandIn())

    def late(request):
        session.fail = Refused("it went to another person when your time was over", "late")
        return "yes"

    with RemoteLearner(session.url, TOKENS["ann"]) as remote:
        told, _ = joined(remote, [late, "no"])
    assert str(told) == "1 question answered, 0 skipped, 1 too late"


def test_what_is_no_answer_stops_it_in_one_line(serving):
    session = serving(StandIn())
    why = "scorer 'of a test': said 'perhaps'; 'perhaps' is no answer to it"
    with RemoteLearner(session.url, TOKENS["ann"]) as remote, pytest.raises(ScorerError, match=why):
        join(remote, scorer_of(["perhaps"]), Told())
    with RemoteLearner(session.url, "wrong") as remote, pytest.raises(RemoteError, match="valid"):
        join(remote, scorer_of([]), Told())


# ---- answers ----


def test_answers_are_what_the_service_takes():
    part = {"kind": "part", "choices": ["yes", "no"]}
    rate = {"kind": "rate", "choices": [], "grades": 5}
    assert [answer_of(part, each) for each in (True, "false", "yes", "B-NP")] == ["yes", "no", "yes", "B-NP"]
    assert answer_of({"kind": "label", "choices": ["1", "2"]}, "1") == "1"  # a choice is no number
    span = {"first": 0, "last": 1, "label": "NP"}
    assert answer_of({"kind": "span", "choices": ["NP", "O"]}, json.dumps(span)) == span
    assert [answer_of(rate, each) for each in (0, 0.26, "1.0", [0.9])] == [5, 4, 1, 1]
    with pytest.raises(UsageError, match="said 2, and a loss"):
        answer_of(rate, 2)
    assert [answer_of(rate, each) for each in SKIPS] == list(SKIPS)


def test_reviews_are_tags_to_a_scorer_and_spans_to_the_service():
    spans = [{"first": 1, "last": 2, "label": "LOC", "p": 0.7}]
    shown = {"words": ["In", "San", "Juan", "Ana"], "spans": spans, "unsure": [3], "about": None, "plain": False}
    question = {"kind": "review", "task": "chunking", "input": 4, "text": "Is all of this right?", "shown": shown}
    question |= {"choices": ["right"], "labels": ["LOC", "PER"]}
    request = request_of(question, 0)
    assert request["tags"] == ["O", "B-LOC", "I-LOC", "O"]
    assert request["marked"] == [0, 1, 2, 3]
    assert request["choices"] == ["B-LOC", "I-LOC", "B-PER", "I-PER", "O"]
    assert [answer_of(question, each) for each in ("right", True, request["tags"])] == ["right"] * 3
    said = {
        "spans": [{"first": 1, "last": 2, "label": "LOC"}, {"first": 3, "last": 3, "label": "PER"}],
        "corrected": [3],
    }
    assert answer_of(question, '["O", "B-LOC", "I-LOC", "B-PER"]') == said
    assert answer_of(question, ["O", "B-LOC", "I-LOC", "I-PER"]) == said  # of another type: it begins
    assert answer_of(question, "skip") == "skip"
    with pytest.raises(UsageError, match="said 2 tags, and the sentence has 4 words"):
        answer_of(question, ["O", "O"])
    plain = {"words": ["a", "b"], "spans": [], "about": [1], "plain": True}
    plain["spans"] = [{"first": i, "last": i, "label": label} for i, label in enumerate("XO")]
    assert request_of({**question, "shown": plain, "labels": ["X", "O"]}, 0)["tags"] == ["X", "O"]
    found = answer_of({**question, "shown": plain}, ["O", "O"])
    assert found == {"spans": [{"first": i, "last": i, "label": "O"} for i in (0, 1)], "corrected": [0]}


# ---- the command ----

JUDGE = """
left = ["yes", "skip", "no"]


def judge(request):
    if not left:
        raise KeyboardInterrupt
    return left.pop()
"""


def test_the_command_says_who_it_is_and_how_many_it_answered(serving, program, tmp_path, monkeypatch):
    session = serving(StandIn())
    (tmp_path / "judge.py").write_text(JUDGE)
    monkeypatch.chdir(tmp_path)
    link = f"{session.url}/#{TOKENS['bob']}"
    code, out, err = program("join", link, "--scorer", "judge:judge")
    assert (code, out) == (130, "")
    assert err.splitlines() == ["Bob answers by judge:judge; Ctrl-C stops", "stopped: 2 questions answered, 1 skipped"]
    assert session.programs == {"bob"}
    code, _, err = program("join", link, "--scorer", "judge:judge", "--rate", "0")
    assert (code, err) == (2, "sparsezo: --rate 0: give more than 0 answers a minute\n")
    code, _, err = program("join", "somewhere", "--scorer", "judge:judge")
    assert code == 2
    assert "give a link such as" in err


# ---- a chat endpoint ----


class Chat(http.server.BaseHTTPRequestHandler):
    """Says what ``replies`` has; None: that it has too much to do."""

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, self.headers["Authorization"], asked))
        said = self.server.replies.pop(0)
        body = json.dumps({"choices": [{"message": {"role": "assistant", "content": said}}]}).encode()
        self.send_response(429 if said is None else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def chat():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Chat) as server:
        server.asked, server.replies = [], []
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_chat_endpoint_judges(serving, chat, program, monkeypatch):
    """By the command, as its first lines show it; the endpoint ends it by a refusal."""
    session = serving(StandIn("part,span,label,rate,part,part"))
    monkeypatch.setenv("CHAT_API_KEY", "k")
    chat.replies = ["Yes.", "LOC", "I do not know.", "**no**"]
    url = f"http://127.0.0.1:{chat.server_port}"
    words = [sys.executable, str(EXAMPLE), url, "--model", "m"]
    chat.replies.append({"no": "text"})  # which ends the program
    code, _, err = program("join", f"{session.url}/#{TOKENS['ann']}", "--scorer", shlex.join(words))
    assert code == 1
    assert "stopped: 3 questions answered, 2 skipped" in err
    assert "after 5 answers; its last error: " in err
    assert [each["answer"] for each in session.told.values()] == ["yes", "LOC", "no"]
    assert [each for each, _ in session.skipped] == ["q3", "q4"]
    path, key, asked = chat.asked[1]
    assert (path, key, asked["model"]) == ("/v1/chat/completions", "Bearer k", "m")
    assert asked["messages"][1]["content"] == (
        "The mayor of [[San]]  Sebastián, Ana Botín, left.\n\n"
        "Is 'San' a place (LOC)?\nChoices: yes, PER (person), LOC (place), O (none of these), skip"
    )


def test_a_busy_endpoint_is_asked_again(chat, monkeypatch):
    chat.replies = [None, None, "second"]
    judge = runpy.run_path(str(EXAMPLE))
    waited = []
    monkeypatch.setattr(judge["time"], "sleep", waited.append)
    question = {
        "rule": "pair",
        "hypotheses": ["a", "b"],
        "source": "c",
        "question": "Which?",
        "choices": ["first", "second"],
    }
    assert judge["judged"](question, f"http://127.0.0.1:{chat.server_port}/", "m", 5.0) == "second"
    assert len(waited) == 2
    assert chat.asked[0][2]["messages"][1]["content"].startswith("c\n(1) a\n(2) b\n")
    assert judge["marked"]({"rule": "review", "words": ["In", "Rom"], "tags": ["O", "B-LOC"]}) == "In [Rom](B-LOC) "
