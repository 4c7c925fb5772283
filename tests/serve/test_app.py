"""The API and what stands before it: tokens, sizes, rates, headers, hosts; nothing from data becomes HTML."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from importlib.resources import files
from typing import get_args

import httpx
import pytest
from stand_in import IMAGE, SCRIPT, TOKENS, StandIn

from sparsezo.errors import SparsezoError, UsageError
from sparsezo.serve.app import LOOPBACK, App, RateLimit
from sparsezo.serve.errors import Code, Refused

JSON = {"Content-Type": "application/json"}
CALLS = [
    ("POST", "/api/ask", {"n": 1}),
    ("POST", "/api/tell", {"id": "q1", "answer": "yes"}),
    ("POST", "/api/skip", {"id": "q1"}),
    ("POST", "/api/flag", {"id": "q1", "note": "n"}),
    ("POST", "/api/undo", {}),
    ("GET", "/api/me", None),
    ("GET", "/api/guidelines", None),
    ("GET", "/api/recent", None),
    ("GET", "/api/status", None),
]
ADMIN = [
    ("GET", "/api/admin/people", None),
    ("POST", "/api/admin/people", {"name": "Eve"}),
    ("GET", "/api/admin/flags", None),
    ("POST", "/api/admin/pause", {"paused": True}),
    ("GET", "/api/admin/export/answers.csv", None),
]


class Caller:
    """Calls of an app in this process, without a network."""

    def __init__(self, app: App, who: str | None = "ann") -> None:
        self.app, self.who = app, who

    def __call__(self, method: str, path: str, body=None, *, who="", raw=None, headers=None) -> httpx.Response:
        token = TOKENS.get(who or self.who)
        given = {"Authorization": f"Bearer {token}"} if token else {}
        content = raw if raw is not None else None if body is None else json.dumps(body)

        async def call() -> httpx.Response:
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
                return await client.request(method, path, content=content, headers={**given, **JSON, **(headers or {})})

        return asyncio.run(call())


@pytest.fixture(scope="module")
def app() -> App:
    return App(StandIn())  # once: it takes a tenth of a second


@pytest.fixture
def session(app) -> StandIn:
    """As new, for each test."""
    app.session.__init__()
    app.rate_limit = RateLimit()
    app.hosts = LOOPBACK
    return app.session


@pytest.fixture
def call(app, session) -> Caller:
    return Caller(app)


@pytest.fixture
def stranger(app, session) -> Caller:
    return Caller(app, None)


def test_questions_are_answered(call, session):
    [question] = call("POST", "/api/ask", {}).json()["questions"]
    assert (question["id"], question["choices"]) == ("q1", ["yes", "no"])
    reply = call("POST", "/api/tell", {"id": "q1", "answer": "no", "seconds": 2, "nonce": "a"}).json()
    assert (reply["saved"], reply["answer"]) == (True, "no")
    assert session.calls[-1][2:] == ("q1", "no", 2, "a", None)
    assert call("GET", "/api/recent?n=1").json()["recent"][0]["answer"] == "no"
    assert call("POST", "/api/undo", {"id": "q1"}).json()["question"]["id"] == "q1"
    assert call("POST", "/api/skip", {"id": "q1", "why": "cannot-tell"}).json()["saved"]
    assert session.skipped == [("q1", "cannot-tell")]
    assert call("POST", "/api/flag", {"id": "q1", "note": "odd"}).json()["saved"]
    assert call("GET", "/api/status").json()["metric"] == "F1"


@pytest.mark.parametrize("who", ["nobody", "wrong"])
@pytest.mark.parametrize(("method", "path", "body"), [*CALLS, *ADMIN])
def test_without_a_valid_token_there_is_no_data(stranger, session, method, path, body, who):
    headers = {"Authorization": "Bearer wrong"} if who == "wrong" else {}
    for raw in (None, "{", b"\xff"):
        reply = stranger(method, path, body, headers=headers, raw=raw)
        assert reply.status_code == 401
        assert reply.headers["www-authenticate"] == "Bearer"
        assert set(reply.json()) == {"error", "reason"}
    assert session.calls == []


@pytest.mark.parametrize("given", ["token-of-ann", "Basic token-of-ann", "Bearer", "Bearer token-of-ann x", "Bearer é"])
def test_a_token_comes_as_it_should_or_not_at_all(stranger, given):
    assert stranger("GET", "/api/status", headers={"Authorization": given.encode()}).status_code == 401


@pytest.mark.parametrize(("method", "path", "body"), ADMIN)
def test_administration_is_for_administrators(call, session, method, path, body):
    reply = call(method, path, body)
    assert (reply.status_code, reply.json()["error"]) == (403, "not-admin")
    assert session.calls == []
    assert call(method, path, body, who="boss").status_code == 200


def test_an_export_is_a_file(call):
    reply = call("GET", "/api/admin/export/answers.csv", who="boss")
    assert reply.text == "one\ntwo\n"
    assert reply.headers["content-disposition"] == 'attachment; filename="answers.csv"'
    assert call("GET", "/api/admin/export/passwords", who="boss").status_code == 404


BAD = [
    ("/api/tell", '{"id": "q1"}'),
    ("/api/tell", '{"id": "q1", "answer": "yes", "more": 1}'),
    ("/api/tell", '{"id": 1, "answer": "yes"}'),
    ("/api/tell", '{"id": "q1", "answer": null}'),
    ("/api/tell", '{"id": "q1", "answer": true}'),
    ("/api/tell", '{"id": "q1", "answer": 2.5}'),
    ("/api/tell", '{"id": "q1", "answer": "yes", "seconds": NaN}'),
    ("/api/tell", '{"id": "q1", "answer": "yes", "seconds": -1}'),
    ("/api/tell", '{"id": "q1", "answer": "\\ud800"}'),
    ("/api/tell", '{"id": "q1", "answer": "' + 501 * "y" + '"}'),
    ("/api/tell", '{"id": "q1", "answer": ' + 5000 * "9" + "}"),
    ("/api/ask", '{"n": 1000}'),
    ("/api/ask", '{"n": "1"}'),
    ("/api/ask", '{"holding": "q1"}'),
    ("/api/ask", "[]"),
    ("/api/ask", "{"),
    ("/api/ask", 20_000 * "["),
    ("/api/ask", "\xff\xfe"),
    ("/api/skip", '{"id": "q1", "why": "tired"}'),
    ("/api/flag", '{"id": "q1", "note": "' + 2001 * "x" + '"}'),
]


@pytest.mark.parametrize(("path", "raw"), BAD, ids=range(len(BAD)))
def test_what_is_not_as_the_schema_has_it_is_refused(call, session, path, raw):
    call("POST", "/api/ask", {})
    before = len(session.calls)
    reply = call("POST", path, raw=raw)
    assert reply.status_code in (400, 422)
    assert set(reply.json()) == {"error", "reason"}
    assert len(session.calls) == before


@pytest.mark.parametrize("code", get_args(Code))
def test_a_refusal_has_its_status_and_says_why(call, session, code):
    session.fail = Refused("because of that", code)
    reply = call("POST", "/api/ask", {})
    wanted = {"unknown-question": 404, "bad-answer": 422, "paused": 503, "nothing-to-ask": 503, "too-many": 429}
    assert reply.status_code == wanted.get(code, 409)
    assert reply.json() == {"error": code, "reason": "because of that"}
    assert ("retry-after" in reply.headers) == (reply.status_code in (503, 429))


def test_a_wrong_name_is_the_callers_fault_and_a_full_disk_ours(call, session, caplog):
    session.fail = UsageError("name '': give some")
    reply = call("POST", "/api/admin/people", {"name": " "}, who="boss")
    assert (reply.status_code, reply.json()["reason"]) == (422, "name '': give some")
    for error in (SparsezoError("/secret/path: no space left"), ZeroDivisionError("/secret/path")):
        session.fail = error
        with caplog.at_level(logging.CRITICAL):
            reply = call("POST", "/api/ask", {})
        assert (reply.status_code, reply.json()["error"]) == (500, "failed")
        assert "secret" not in reply.text


def test_a_large_body_is_refused_unread(call, session):
    large = b'{"id": "q1", "answer": "' + b"y" * 10_000_000 + b'"}'
    reply = call("POST", "/api/tell", raw=large)
    assert (reply.status_code, reply.json()["error"]) == (413, "too-large")
    assert reply.headers["connection"] == "close"

    async def pieces():  # without a length
        for _ in range(100):
            yield b" " * 1000

    assert call("POST", "/api/tell", raw=pieces()).status_code == 413
    assert call("POST", "/api/tell", raw=b" " * 70_000, headers={"Content-Length": "-1"}).status_code == 413
    assert session.calls == []


def test_a_body_that_does_not_come_is_not_waited_for(app, session, monkeypatch):
    monkeypatch.setattr(app, "body_seconds", 0.01)

    async def never():
        await asyncio.sleep(60)

    async def slowly() -> list[dict]:
        headers = [(b"host", b"127.0.0.1"), (b"authorization", f"Bearer {TOKENS['ann']}".encode())]
        sent: list[dict] = []

        async def send(message):
            sent.append(message)

        scope = {"type": "http", "method": "POST", "path": "/api/ask", "headers": headers, "query_string": b""}
        await app(scope, never, send)
        return sent

    assert asyncio.run(slowly())[0]["status"] == 408


def test_a_person_may_make_so_many_calls_and_others_as_many(call, session):
    call.app.rate_limit = RateLimit(rate=0, burst=3)
    assert [call("GET", "/api/status").status_code for _ in range(5)] == [200, 200, 200, 429, 429]
    assert call("GET", "/api/status", who="bob").status_code == 200
    assert len(session.calls) == 4


def test_calls_come_back_with_time():
    buckets = RateLimit(rate=2, burst=3)
    assert [buckets.take("ann", 10.0) for _ in range(4)] == [True, True, True, False]
    assert [buckets.take("ann", 11.0) for _ in range(3)] == [True, True, False]
    assert [buckets.take("ann", 1000.0) for _ in range(4)] == [True, True, True, False]


def test_fifty_answers_a_second_are_within_the_rate():
    buckets = RateLimit()
    assert all(buckets.take("ann", k / 100) for k in range(100_000))  # each with its next question


@pytest.mark.parametrize("path", ["/", "/admin", "/api/docs", "/api/openapi.json", "/healthz", "/api/status", "/none"])
def test_every_response_has_the_headers(call, path):
    for reply in (call("GET", path), call("GET", path, headers={"Host": "evil.example"}), call("DELETE", path)):
        policy = reply.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'")
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["referrer-policy"] == "no-referrer"
        assert reply.headers["cache-control"] == "no-store"
        assert "set-cookie" not in reply.headers
        assert "access-control-allow-origin" not in reply.headers


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost", "LOCALHOST:1", "[::1]:8000"])
def test_on_this_machine_we_are_called_by_our_names(call, host):
    assert call("GET", "/api/status", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example:8000", "", "127.0.0.1:8000:evil", "127.0.0.1:evil"]
)
def test_another_name_is_refused_before_anything_else(call, session, host):
    for path in ("/", "/api/status"):
        assert call("GET", path, headers={"Host": host}).status_code == 421
    assert session.calls == []
    call.app.hosts = None
    assert call("GET", "/api/status", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("path", ["/", "/admin", "/api/docs"])
def test_a_page_loads_from_here_alone_and_has_nothing_inline(call, path):
    reply = call("GET", path, who="nobody")
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    assert not re.search(r"<[^>]*\s(on\w+|style)\s*=|<style|<script[^>]*>\s*[^<\s]", reply.text)
    loads = re.findall(r'\s(?:src|href)="([^"]*)"', reply.text)
    assert loads
    for each in loads:
        assert each.startswith("/")
        assert not each.startswith("//")
        assert call("GET", each, who="nobody").status_code == 200


def test_files_of_the_page_are_those_and_no_others(call):
    for name in [each.name for each in files("sparsezo.serve").joinpath("static").iterdir()]:
        reply = call("GET", f"/static/{name}")
        assert reply.status_code == 200
        assert call("GET", f"/static/{name}", headers={"If-None-Match": reply.headers["etag"]}).status_code == 304
        for other in re.findall(r'from "\./(.*?)"', reply.text):
            assert call("GET", f"/static/{other}").headers["content-type"] == "text/javascript; charset=utf-8"
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|https?://(?!www\.w3\.org)", reply.text
        )
    for name in ("../app.py", "..%2fapp.py", "%2e%2e/app.py", "nothing.js", "/etc/passwd"):
        assert call("GET", f"/static/{name}").status_code == 404


def test_what_looks_like_html_stays_data(call, session):
    session.kinds = ["label"]
    [question] = call("POST", "/api/ask", {}).json()["questions"]
    assert SCRIPT in question["shown"]["document"]
    assert IMAGE in question["shown"]["document"]
    made = call("POST", "/api/admin/people", {"name": SCRIPT}, who="boss")
    assert made.json()["name"] == SCRIPT
    for reply in (
        made,
        call("GET", "/api/admin/people", who="boss"),
        call("POST", "/api/tell", {"id": SCRIPT, "answer": IMAGE}),
    ):
        assert reply.headers["content-type"] == "application/json"


def test_text_that_no_encoding_has_arrives(session, call):
    call("POST", "/api/ask", {})
    session.questions["q1"]["text"] = "a lone \ud800 surrogate"
    reply = call("POST", "/api/ask", {"n": 0, "holding": ["q1"]})
    assert json.loads(reply.content)["questions"][0]["text"] == "a lone \ud800 surrogate"


def test_tokens_are_in_no_log_and_no_reply(call, session, caplog):
    with caplog.at_level(logging.DEBUG):
        session.fail = SparsezoError("failed")
        for method, path, body in [*CALLS, *ADMIN, ("GET", "/nothing", None)]:
            reply = call(method, path, body)
            assert TOKENS["ann"] not in reply.text + str(reply.headers)
    assert TOKENS["ann"] not in caplog.text


def test_the_schema_and_its_page_need_no_token_and_name_every_call(call):
    schema = call("GET", "/api/openapi.json", who="nobody").json()
    page = call("GET", "/api/docs", who="nobody").text
    for method, path, _ in [*CALLS, *ADMIN]:
        path = path.replace("answers.csv", "{what}")
        assert method.lower() in schema["paths"][path]
        assert schema["paths"][path][method.lower()]["security"] == [{"token": []}]
        assert f"{method} {path}" in page


def test_an_unknown_address_or_method_is_refused_in_the_same_words(call):
    assert call("GET", "/nothing").json()["error"] == "not-found"
    reply = call("DELETE", "/api/tell")
    assert (reply.status_code, reply.json()["error"], reply.headers["allow"]) == (405, "no-such-method", "POST")
