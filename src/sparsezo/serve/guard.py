"""What stands before every request: the host's name, sizes, rates, tokens; and the headers of every response.

It is plain ASGI, and refuses before anything of a body is parsed: who has no token learns nothing but that.
A token is looked at here and nowhere else; it is never logged, nor handed on.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sparsezo.serve.session import Session

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGI = Callable[[Message, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]
Quick = Callable[[Any, bytes], Awaitable[tuple[int, dict[str, str], bytes]]]  # (person, body) -> reply

MOST_BYTES = 64 * 1024  # of a request's body
BODY_SECONDS = 10.0  # for all of it to come
CALLS_A_SECOND = 120.0  # for one person: 50 answers, each with its next question, and some looks at the status
BURST = 240.0  # calls that may come at once
_MOST_TOKEN = 200  # characters

LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})
API_SCHEMA, API_PAGE = "/api/openapi.json", "/api/docs"
OPEN_API = frozenset({API_SCHEMA, API_PAGE})  # without data, so without a token

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS: Headers = [
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
_NO_STORE = (b"cache-control", b"no-store")


class Buckets:
    """Calls that each person may still make: ``burst`` at first, and ``rate`` more a second."""

    def __init__(self, rate: float = CALLS_A_SECOND, burst: float = BURST) -> None:
        self.rate, self.burst = rate, burst
        self._left: dict[Any, tuple[float, float]] = {}  # person -> (calls, at that time)

    def take(self, person: Any, now: float) -> bool:
        left, then = self._left.get(person, (self.burst, now))
        left = min(self.burst, left + (now - then) * self.rate)
        taken = left >= 1
        self._left[person] = (left - 1 if taken else left, now)
        return taken


class Guard:
    """An ASGI app before another one. ``hosts``: names that a request may call us by; None: any."""

    def __init__(
        self,
        app: ASGI,
        session: Session,
        hosts: Iterable[str] | None = LOOPBACK,
        quick: Mapping[str, Quick] | None = None,
    ) -> None:
        self.app, self.session, self.quick = app, session, quick or {}
        self.hosts = None if hosts is None else frozenset(hosts)
        self.buckets = Buckets()
        self.body_seconds = BODY_SECONDS

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        send = _with_headers(send, scope["path"])
        refusal = self._refusal(scope)
        if refusal is not None:
            return await _refuse(send, *refusal)
        try:
            async with asyncio.timeout(self.body_seconds):
                body = await _body(receive)
        except TimeoutError:
            return await _refuse(send, 408, "too-slow", "the request's body did not come in time")
        if body is None:
            return await _refuse(send, 413, "too-large", f"a request may have {MOST_BYTES} bytes")
        quick = self.quick.get(scope["path"]) if scope["method"] == "POST" else None
        if quick is not None:
            return await _answer(send, *await quick(scope["state"]["person"], body))
        return await self.app(scope, _again(body, receive), send)

    def _refusal(self, scope: Message) -> tuple[int, str, str] | None:
        """(status, code, reason), or None; puts the person into the scope."""
        headers = dict(scope["headers"])
        if self.hosts is not None and _host(headers) not in self.hosts:
            return 421, "other-host", "this service is not called by that name; open the link as it was given"
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or len(length) > 12 or int(length) > MOST_BYTES:
            return 413, "too-large", f"a request may have {MOST_BYTES} bytes"
        path: str = scope["path"]
        if not path.startswith("/api/") or path in OPEN_API:
            return None
        token = _token(headers)
        person = self.session.person(token)
        if person is None and self.session.was_replaced(token):
            return 401, "link-replaced", "this link was replaced; ask for the new one"
        if person is None:
            return 401, "no-token", "this needs the token of a link that is still valid"
        if path.startswith("/api/admin/") and not person.admin:
            return 403, "not-admin", "this needs the link of an administrator"
        if not self.buckets.take(person.id, time.monotonic()):
            return 429, "too-many", f"no more than {CALLS_A_SECOND:g} calls a second; wait a moment"
        scope.setdefault("state", {})["person"] = person
        return None


def _host(headers: dict[bytes, bytes]) -> str:
    """Without its port."""
    name = headers.get(b"host", b"").decode("latin-1").lower()
    head, colon, port = name.rpartition(":")
    return head if colon and port.isdigit() else name


def _token(headers: dict[bytes, bytes]) -> str:
    scheme, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
    return token.strip() if scheme.lower() == "bearer" and len(token) <= _MOST_TOKEN else ""


async def _body(receive: Receive) -> bytes | None:
    """None where it is too large. A client that has gone gives what there is of it: the app notices by itself."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return bytes(body)
        body += message.get("body", b"")
        if len(body) > MOST_BYTES:
            return None
        if not message.get("more_body", False):
            return bytes(body)


def _again(body: bytes, receive: Receive) -> Receive:
    """The body once, then whatever else comes."""
    first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def received() -> Message:
        return first.pop() if first else await receive()

    return received


def _with_headers(send: Send, path: str) -> Send:
    more = _HEADERS if path.startswith("/static/") else [*_HEADERS, _NO_STORE]

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", []), *more]
        await send(message)

    return sent


async def _answer(send: Send, status: int, headers: Mapping[str, str], content: bytes) -> None:
    pairs: Headers = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": content})


async def _refuse(send: Send, status: int, code: str, reason: str) -> None:
    """One line of JSON. What is left of a body is not read: the connection ends where there may be some."""
    content = json.dumps({"error": code, "reason": reason}).encode()
    headers: Headers = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
    more = {401: (b"www-authenticate", b"Bearer"), 429: (b"retry-after", b"1")}
    headers += [more[status]] if status in more else []
    headers += [(b"connection", b"close")] if status in (408, 413) else []
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})
