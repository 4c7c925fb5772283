"""A real session behind the API; whatever the schema allows; clients that are slow, idle or large."""

from __future__ import annotations

import contextlib
import runpy
import socket
import sys
from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from sessions import opened
from stand_in import TOKENS, StandIn

from sparsezo.errors import UsageError
from sparsezo.serve import server
from sparsezo.serve.app import LOOPBACK, App, RateLimit
from sparsezo.serve.client import RemoteLearner
from sparsezo.serve.server import Server
from sparsezo.tasks.chunking.synthetic import chunking_columns, generate_chunking

EXAMPLE = Path(__file__).parents[2] / "examples" / "answer_from_gold.py"


@pytest.mark.parametrize("rule", ["part", "review"])
def test_the_example_person_teaches_over_http(serving, tmp_path, monkeypatch, capsys, rule):
    gold = tmp_path / "gold.txt"
    gold.write_text(chunking_columns(generate_chunking(150, 1)))
    with opened(tmp_path / "session", given={"rule": rule}, audit=20) as session:
        token = session.add_person("Ann")["token"]
        serving(session)
        monkeypatch.setattr(sys, "argv", ["x", f"{session.url}/#{token}", str(gold), "60"])
        runpy.run_path(str(EXAMPLE))
        status = session.status()
    assert status["answers"] == 60
    assert "'mine': 60" in capsys.readouterr().out


def test_a_pair_and_a_grade_go_over_http(serving, tmp_path):
    for name, rule, answer in (
        ("rerank", {}, "second"),
        ("text", {"rule": "rate"}, 4),
        ("text", {"rule": "label"}, None),
    ):
        with opened(tmp_path / f"{name}{answer}", name, rule) as session:
            serving(session)
            with RemoteLearner(session.url, session.add_person("Ann")["token"]) as learner:
                question = learner.ask()
                assert learner.tell(question, answer or question["choices"][0])["saved"]
                assert learner.recent()[0]["answer"] == (answer or question["choices"][0])
                assert learner.undo()["id"] == question["id"]


TRIED = settings(
    max_examples=10,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def test_nothing_that_the_schema_allows_or_forbids_breaks_the_service(tmp_path):
    with opened(tmp_path / "s", audit=10, overlap=0.5) as session:
        headers = {"Authorization": f"Bearer {session.add_person('Boss', admin=True)['token']}"}
        session.model.warm_up()  # a call waits ten seconds, and for no compiler
        for what in ("corpus", "spans-jsonl"):
            session.export(what)
        app = App(session, None)
        app.rate_limit = RateLimit(rate=1e9, burst=1e9)
        schema = schemathesis.openapi.from_asgi("/api/openapi.json", app)
        seen: set[tuple[str, int]] = set()

        def tried(case):
            if isinstance(case.body, dict) and isinstance(case.body.get("id"), str):
                case.body["id"] = f"q{len(case.body['id']) % 5}"  # some are questions that there are
            reply = case.call(headers=headers)
            session.pause(False)
            seen.add((case.path, reply.status_code))
            nothing = reply.status_code == 503 and case.body.get("decide") is True  # waits to be decided here
            assert nothing or reply.status_code < 500, reply.text
            if reply.status_code >= 400:
                assert set(reply.json()) == {"error", "reason"}

        operations = [found.ok() for found in schema.get_all_operations()]
        for operation in operations:
            for mode in schemathesis.GenerationMode:
                cases = operation.as_strategy(generation_mode=mode)
                with contextlib.suppress(Unsatisfiable):  # nothing that this call would forbid
                    TRIED(given(case=cases)(tried))()
    assert len(operations) == 17
    assert {("/api/ask", 200), ("/api/ask", 422), ("/api/skip", 200), ("/api/flag", 200), ("/api/tell", 422)} <= seen


# Sockets


def connected(session) -> socket.socket:
    made = socket.create_connection(("127.0.0.1", int(session.url.rpartition(":")[2])), timeout=20)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


def is_served(session) -> bool:
    with RemoteLearner(session.url, TOKENS["bob"]) as learner:
        return learner.status()["metric"] == "F1"


def test_a_head_that_does_not_come_is_not_waited_for(serving, monkeypatch):
    monkeypatch.setattr(server, "HEAD_SECONDS", 0.2)
    session = serving(StandIn())
    head = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    with connected(session) as silent, connected(session) as slow, connected(session) as second:
        slow.sendall(head)
        second.sendall(head + b"\r\n")
        assert second.recv(1000).startswith(b"HTTP/1.1 200")
        second.sendall(head)  # the next request, begun and left
        assert is_served(session)
        for each in (silent, slow, second):
            while each.recv(1000):
                pass  # until it is closed


def test_a_head_without_end_is_not_kept(serving):
    session = serving(StandIn())
    head = b"GET / HTTP/1.1\r\n" + (b"X-More: " + 8000 * b"x" + b"\r\n") * 5000
    with connected(session) as endless, pytest.raises(OSError, match=r"reset|pipe|abort"):
        endless.sendall(head)
    assert is_served(session)


def test_ten_megabytes_are_refused_and_others_served(serving):
    session = serving(StandIn())
    with connected(session) as large:
        length = 10_000_000
        head = f"POST /api/tell HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {length}\r\n\r\n"
        large.sendall(head.encode())
        assert large.recv(1000).startswith(b"HTTP/1.1 413")
    assert is_served(session)
    assert session.told == {}


def test_a_thousand_idle_connections_stop_nobody(serving):
    server._more_files()
    session = serving(StandIn())
    idle = [connected(session) for _ in range(1000)]
    try:
        assert is_served(session)
    finally:
        for each in idle:
            each.close()


def test_a_port_that_is_taken_is_said_in_one_line():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=f"`port` {port}: .*in use"):
            Server(StandIn(), "127.0.0.1", port)
    with pytest.raises(UsageError, match="`host` no-such-host"):
        Server(StandIn(), "no-such-host.invalid")


def test_only_on_this_machine_are_names_checked():
    for host, wanted in (("127.0.0.1", LOOPBACK), ("localhost", LOOPBACK), ("0.0.0.0", None)):
        made = Server(StandIn(), host)
        made.socket.close()
        assert made.config.app.hosts == wanted
