"""A session over HTTP: the pages, and the API that they and other front ends use (docs/serve.md).

    app = App(session)                              # an ASGI app
    sparsezo.serve.server.serve(session, port=0)    # and a server for it

Before anything of a body is parsed come the host's name, sizes, tokens and rates: who has no token learns nothing but
that. A token is looked at here and nowhere else; it is never logged, nor handed on. What a session does may wait for a
disk or for a model, so it is done in threads.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import json
import logging
import time
from collections.abc import Hashable, Iterable
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from pydantic import ValidationError
from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from sparsezo.errors import SparsezoError, UsageError
from sparsezo.serve.api import Call, api_calls, openapi, operations
from sparsezo.serve.errors import Refused
from sparsezo.serve.exports import EXPORTS
from sparsezo.serve.label_studio import PREFIX
from sparsezo.tasks.base import Json

if TYPE_CHECKING:
    from sparsezo.serve.annotators import Person
    from sparsezo.serve.label_studio import Backend
    from sparsezo.serve.session import Session

PACKAGE = "sparsezo.serve"
THREADS = 64  # calls of a session at a time: most wait for the same write to the disk, and share it
MOST_BYTES = 64 * 1024  # of a request's body
BODY_SECONDS = 10.0  # for all of it to come
CALLS_A_SECOND = 120.0  # for one person: 50 answers, each with its next question, and some looks at the status
BURST = 240.0  # calls that may come at once
LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})
_MOST_TOKEN = 200  # characters
_WITHOUT_TOKEN = ("/api/openapi.json", "/api/docs")  # there is no data in them
_STATUS = {"unknown-question": 404, "bad-answer": 422, "paused": 503, "nothing-to-ask": 503, "too-many": 429}
_RETRY_SECONDS = {"paused": 5, "nothing-to-ask": 5, "too-many": 1}
_TYPES = {"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8", "svg": "image/svg+xml"}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = [
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
_WITH = {  # headers of a refusal; what is left of a body is not read: the connection ends where there may be some
    401: {"www-authenticate": "Bearer"},
    408: {"connection": "close"},
    413: {"connection": "close"},
    429: {"retry-after": "1"},
}
_log = logging.getLogger("sparsezo.serve")


class Reply(Response):
    """JSON in ASCII: whatever is in the data, lone surrogates too, arrives."""

    media_type = "application/json"

    def render(self, content: object) -> bytes:
        return json.dumps(content, separators=(",", ":")).encode()


class RateLimit:
    """Calls that each person may still make: ``burst`` at first, and ``rate`` more a second."""

    def __init__(self, rate: float = CALLS_A_SECOND, burst: float = BURST) -> None:
        self.rate, self.burst = rate, burst
        self._left: dict[Hashable, tuple[float, float]] = {}  # person -> (calls, at that time)

    def take(self, person: Hashable, now: float) -> bool:
        """Whether the person may make a call now, which is counted then."""
        left, then = self._left.get(person, (self.burst, now))
        left = min(self.burst, left + (now - then) * self.rate)
        taken = left >= 1
        self._left[person] = (left - 1 if taken else left, now)
        return taken


class App:
    """An ASGI app. ``hosts``: names that the service may be called by, against DNS rebinding; None: any.
    ``label_studio``: what answers Label Studio, which has a token in its address."""

    def __init__(
        self, session: Session, hosts: Iterable[str] | None = LOOPBACK, label_studio: Backend | None = None
    ) -> None:
        self._label_studio = label_studio
        self.session, self.hosts = session, None if hosts is None else frozenset(hosts)
        self.rate_limit, self.body_seconds = RateLimit(), BODY_SECONDS
        self._pool = ThreadPoolExecutor(THREADS, "serve")
        calls = api_calls(session)
        self._calls: dict[str, dict[str, Call]] = {}
        for call in calls:
            self._calls.setdefault(call.path, {})[call.method] = call
        self._schema = functools.cache(lambda: openapi(calls))  # when it is asked for
        self._pages = {"/": page("page.html.j2"), "/admin": page("admin.html.j2")}
        self._pages["/adjudicate"] = self._pages["/"]  # which asks only where two people differ then
        self._assets = {  # all read once: no file is named by a request
            f"/static/{file.name}": (file.read_bytes(), _TYPES[ending])
            for file in files(PACKAGE).joinpath("static").iterdir()
            if (ending := file.name.rpartition(".")[2]) in _TYPES
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)
        if self._label_studio is not None and self._is_called_so(headers) and scope["path"].startswith(PREFIX):
            await self._label_studio(scope, receive, send)
            return
        found = self._let_in(scope["path"], headers)
        answer = found if isinstance(found, Reply) else await self._response(scope, headers, receive, found)
        answer.raw_headers += _HEADERS
        if not scope["path"].startswith("/static/"):
            answer.raw_headers.append((b"cache-control", b"no-store"))
        await answer(scope, receive, send)

    def _is_called_so(self, headers: Headers) -> bool:
        return self.hosts is None or _without_port(headers.get("host", "").lower()) in self.hosts

    def _let_in(self, path: str, headers: Headers) -> Person | Reply | None:
        """Who calls, None where it may be anybody; or why not."""
        if not self._is_called_so(headers):
            return _no(421, "other-host", "this service is not called by that name; open the link as it was given")
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()) or len(length) > 12 or int(length) > MOST_BYTES:
            return _no(413, "too-large", f"a request may have {MOST_BYTES} bytes")
        if not path.startswith("/api/") or path in _WITHOUT_TOKEN:
            return None
        scheme, _, token = headers.get("authorization", "").partition(" ")
        token = token.strip() if scheme.lower() == "bearer" and len(token) <= _MOST_TOKEN else ""
        person = self.session.person(token)
        if person is None and self.session.was_replaced(token):
            return _no(401, "link-replaced", "this link was replaced; ask for the new one")
        if person is None:
            return _no(401, "no-token", "this needs the token of a link that is still valid")
        if path.startswith("/api/admin/") and not person.admin:
            return _no(403, "not-admin", "this needs the link of an administrator")
        if not self.rate_limit.take(person.id, time.monotonic()):
            return _no(429, "too-many", f"no more than {CALLS_A_SECOND:g} calls a second; wait a moment")
        return person

    async def _response(self, scope: Scope, headers: Headers, receive: Receive, person: Person | None) -> Response:
        path, method = scope["path"], "GET" if scope["method"] == "HEAD" else scope["method"]
        try:
            async with asyncio.timeout(self.body_seconds):
                body = await _body(receive)
        except TimeoutError:
            return _no(408, "too-slow", "the request's body did not come in time")
        if len(body) > MOST_BYTES:
            return _no(413, "too-large", f"a request may have {MOST_BYTES} bytes")
        taken: dict[str, str] = {}
        if (methods := self._calls.get(path)) is None:
            above, _, what = path.rpartition("/")
            methods, taken = self._calls.get(f"{above}/{{what}}"), {"what": what}
        if methods is None:
            return self._page(path, method, headers)
        if method not in methods:
            return _no(405, "no-such-method", "Method Not Allowed", {"allow": ", ".join(methods)})
        if taken and what not in EXPORTS:
            return _no(404, "not-found", f"there is no such export; there are {', '.join(EXPORTS)}")
        if method == "GET":
            taken |= parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        return await self._done(methods[method], person, body if method == "POST" else taken)

    async def _done(self, call: Call, person: Person | None, given: bytes | dict[str, str]) -> Response:
        try:
            taken = {}
            if call.takes is not None and isinstance(given, bytes):
                taken = call.takes.model_validate_json(given).model_dump()
            elif call.takes is not None:
                taken = call.takes.model_validate(given).model_dump()
            do = functools.partial(call.do, person, **taken)
            found = await asyncio.get_running_loop().run_in_executor(self._pool, do)
        except Exception as error:
            return _refusal(error)
        if not isinstance(found, tuple):
            return Reply(found)
        name, media_type, pieces = found
        return StreamingResponse(pieces, 200, {"content-disposition": f'attachment; filename="{name}"'}, media_type)

    def _page(self, path: str, method: str, headers: Headers) -> Response:
        if path not in (*self._pages, *self._assets, *_WITHOUT_TOKEN):
            return _no(404, "not-found", "Not Found")
        if method != "GET":
            return _no(405, "no-such-method", "Method Not Allowed", {"allow": "GET, HEAD"})
        if path in self._assets:
            content, media_type = self._assets[path]
            kept = {"etag": f'"{hashlib.sha256(content).hexdigest()[:32]}"', "cache-control": "no-cache"}
            if headers.get("if-none-match") == kept["etag"]:
                return Response(status_code=304, headers=kept)
            return Response(content, media_type=media_type, headers=kept)
        if path in self._pages:
            return HTMLResponse(self._pages[path])
        schema = self._schema()
        if path.endswith(".json"):
            return Reply(schema)
        return HTMLResponse(page("api.html.j2", schema=schema, operations=operations(schema)))


def _refusal(error: Exception) -> Reply:
    if isinstance(error, ValidationError):
        first = error.errors(include_context=False, include_url=False)[0]
        where = ".".join(str(each) for each in first["loc"])
        return _no(422, "bad-request", f"{where}: {first['msg']}" if where else first["msg"])
    if isinstance(error, Refused):
        wait = _RETRY_SECONDS.get(error.code)
        headers = None if wait is None else {"retry-after": str(wait)}
        return _no(_STATUS.get(error.code, 409), error.code, error.reason, headers)
    if isinstance(error, UsageError):
        return _no(422, "bad-request", str(error))
    _log.error("%s", error, exc_info=None if isinstance(error, SparsezoError) else error)
    return _no(500, "failed", "the service could not do this; its log says why")


def _no(status: int, code: str, reason: str, headers: dict[str, str] | None = None) -> Reply:
    """Whatever is not done says so in the same two words: error and reason."""
    return Reply({"error": code, "reason": reason}, status, headers or _WITH.get(status))


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host


async def _body(receive: Receive) -> bytes:
    """Or a little more than is allowed. A client that has gone gives what there is."""
    body = bytearray()
    more = True
    while more and len(body) <= MOST_BYTES:
        message = await receive()
        body += message.get("body", b"")
        more = message["type"] == "http.request" and message.get("more_body", False)
    return bytes(body)


def page(template: str, **context: Json | Iterable[Json]) -> str:
    """A page of templates/; whatever is put into it is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader(PACKAGE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template(template).render(context)
