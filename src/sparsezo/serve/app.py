"""A session over HTTP: the pages, and the API that they and other front ends use (docs/serve.md).

    app = create_app(session)                       # an ASGI app
    sparsezo.serve.server.serve(session, port=0)    # and a server for it

Everything that a session does may wait for a disk or for a model, so it is done in threads.
"""

from __future__ import annotations

import asyncio
import functools
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

from fastapi import FastAPI, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, Response, StreamingResponse
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException

from sparsezo import __version__
from sparsezo.errors import SparsezoError, UsageError
from sparsezo.serve import calls
from sparsezo.serve.assets import assets, page
from sparsezo.serve.errors import Refused
from sparsezo.serve.guard import API_PAGE, API_SCHEMA, LOOPBACK, Guard, Quick

if TYPE_CHECKING:
    from sparsezo.serve.session import Session

THREADS = 64  # calls of a session at a time: most wait for the same write to the disk, and share it
_STATUS = {"unknown-question": 404, "bad-answer": 422, "paused": 503, "nothing-to-ask": 503, "too-many": 429}
_RETRY_SECONDS = {"paused": 5, "nothing-to-ask": 5, "too-many": 1}
_REFUSALS: dict[int | str, dict[str, Any]] = {
    code: {"model": calls.Refusal, "description": words}
    for code, words in {
        401: "No token, or none that is valid",
        404: "No such question",
        408: "The request came too slowly",
        409: "Late, somebody else's, or answered already",
        413: "Larger than 64 kB",
        422: "Not as the schema has it, or no answer to this question",
        429: "Too many calls a second",
        503: "Paused, or nothing to ask at present; see Retry-After",
    }.items()
}
_ADMIN = {**_REFUSALS, 403: {"model": calls.Refusal, "description": "Not an administrator's token"}}
_FAILED = "the service could not do this; its log says why"
_log = logging.getLogger("sparsezo.serve")
T = TypeVar("T")


class Reply(Response):
    """JSON in ASCII: whatever is in the data, lone surrogates too, arrives."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return json.dumps(content, separators=(",", ":")).encode()


class Threads:
    """A session's calls, in threads of their own."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.pool = ThreadPoolExecutor(THREADS, "serve")

    async def do(self, call: Callable[..., T], *args: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self.pool, call, *args)


def create_app(session: Session, hosts: Iterable[str] | None = LOOPBACK) -> Guard:
    """``hosts``: names that the service may be called by, against DNS rebinding; None: any."""
    threads = Threads(session)
    app = FastAPI(
        title="sparsezo serve",
        version=__version__,
        summary="Questions to people, and their answers.",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    made = _calls(threads)
    for path, call in made.items():  # first, since routes are tried in order
        _documented(app, path, call)
    _looking(app, threads)
    _pages(app)
    _administration(app, threads)
    _refusals(app)
    _documentation(app)
    return Guard(app, session, hosts, {path: _quick(call) for path, call in made.items()})


class Call(NamedTuple):
    """One of the calls that a page makes all the time. ``do``: of the person and the call; its words are the API's."""

    takes: type[BaseModel]
    gives: type[BaseModel]
    do: Callable[[Any, Any], Awaitable[dict[str, Any]]]


def _calls(threads: Threads) -> dict[str, Call]:
    session, do = threads.session, threads.do

    async def ask(person: Any, call: calls.Ask) -> dict[str, Any]:
        """Questions for this person. Nobody else gets them until they are answered, skipped or left for too long."""
        return {"questions": await do(session.ask, person, call.n, tuple(call.holding))}

    async def tell(person: Any, call: calls.Tell) -> dict[str, Any]:
        """An answer. The reply comes when it is on disk."""
        said = call.answer.model_dump() if isinstance(call.answer, calls.MarkedSpan) else call.answer
        return await do(session.tell, person, call.id, said, call.seconds, call.nonce)

    async def skip(person: Any, call: calls.Skip) -> dict[str, Any]:
        """No answer: another time (skip), or nobody could say (cannot-tell)."""
        return await do(session.skip, person, call.id, call.why, call.nonce)

    async def flag(person: Any, call: calls.Flag) -> dict[str, Any]:
        """Something is wrong with this question; a note says what."""
        return await do(session.flag, person, call.id, call.note)

    async def undo(person: Any, call: calls.Undo) -> dict[str, Any]:
        """Take an answer back; its question comes again, to be answered."""
        return {"question": await do(session.undo, person, call.id)}

    return {
        "/api/ask": Call(calls.Ask, calls.Questions, ask),
        "/api/tell": Call(calls.Tell, calls.Told, tell),
        "/api/skip": Call(calls.Skip, calls.Saved, skip),
        "/api/flag": Call(calls.Flag, calls.Saved, flag),
        "/api/undo": Call(calls.Undo, calls.OneQuestion, undo),
    }


def _quick(call: Call) -> Quick:
    """Past FastAPI's routes, which cost several times what a session does."""

    async def answer(person: Any, body: bytes) -> tuple[int, dict[str, str], bytes]:
        try:
            found = Reply(await call.do(person, call.takes.model_validate_json(body)))
        except ValidationError as error:
            found = invalid(error.errors(include_context=False, include_url=False))
        except Refused as error:
            found = refusal(error)
        except Exception as error:
            found = failure(error)
        return found.status_code, dict(found.headers), bytes(found.body)

    return answer


def _documented(app: FastAPI, path: str, made: Call) -> None:
    """In the schema, and other methods are refused as everywhere; what comes here by POST, ``Guard`` has answered."""

    async def endpoint(call: Any, request: Request) -> Reply:
        return Reply(await made.do(request.state.person, call))

    endpoint.__annotations__["call"] = made.takes
    endpoint.__name__, endpoint.__doc__ = made.do.__name__, made.do.__doc__
    app.post(path, responses={**_REFUSALS, 200: {"model": made.gives}})(endpoint)


def invalid(errors: Sequence[Any]) -> Reply:
    first = errors[0]
    where = ".".join(str(each) for each in first["loc"])
    return Reply({"error": "bad-request", "reason": f"{where}: {first['msg']}" if where else first["msg"]}, 422)


def refusal(error: Refused) -> Reply:
    wait = _RETRY_SECONDS.get(error.code)
    headers = None if wait is None else {"retry-after": str(wait)}
    return Reply({"error": error.code, "reason": error.reason}, _STATUS.get(error.code, 409), headers)


def failure(error: Exception) -> Reply:
    if isinstance(error, UsageError):
        return Reply({"error": "bad-request", "reason": str(error)}, 422)
    _log.error("%s", error, exc_info=None if isinstance(error, SparsezoError) else error)
    return Reply({"error": "failed", "reason": _FAILED}, 500)


def _pages(app: FastAPI) -> None:
    pages = {"/": page("page.html.j2"), "/admin": page("admin.html.j2")}
    for path, content in pages.items():
        app.add_api_route(path, _constant(content), methods=["GET"], include_in_schema=False)

    @app.get("/healthz")
    async def healthz() -> dict[str, bool]:
        """Whether it runs."""
        return {"ok": True}

    @app.get("/static/{name}", include_in_schema=False)
    async def static(name: str, request: Request) -> Response:
        asset = assets().get(name)
        if asset is None:
            raise HTTPException(404)
        headers = {"etag": asset.etag, "cache-control": "no-cache"}
        if request.headers.get("if-none-match") == asset.etag:
            return Response(status_code=304, headers=headers)
        return Response(asset.content, media_type=asset.media_type, headers=headers)


def _constant(content: str) -> Callable[[], Any]:
    async def shown() -> HTMLResponse:
        return HTMLResponse(content)

    return shown


def _looking(app: FastAPI, threads: Threads) -> None:
    session, do = threads.session, threads.do

    @app.get("/api/me", responses={**_REFUSALS, 200: {"model": calls.Me}})
    async def me(request: Request) -> Reply:
        """Which session this is and who you are: the same whatever link you came by."""
        return Reply(await do(session.identity, request.state.person))

    @app.get("/api/guidelines", responses={**_REFUSALS, 200: {"model": calls.Guidelines}})
    async def guidelines(request: Request) -> Reply:
        """How to answer, in Markdown; null where nothing is said about it."""
        return Reply({"text": session.guidelines})

    @app.get("/api/recent", responses={**_REFUSALS, 200: {"model": calls.Recent}})
    async def recent(request: Request, n: Annotated[int, Query(ge=1, le=200)] = 20) -> Reply:
        """This person's last answers, the newest first."""
        return Reply({"recent": await do(session.recent, request.state.person, n)})

    @app.get("/api/status", responses={**_REFUSALS, 200: {"model": calls.Status}})
    async def status(request: Request) -> Reply:
        """How many answers there are, and how the model does."""
        return Reply(await do(session.status, request.state.person))


def _administration(app: FastAPI, threads: Threads) -> None:
    session, do = threads.session, threads.do

    @app.get("/api/admin/people", responses={**_ADMIN, 200: {"model": calls.People}})
    async def people() -> Reply:
        """Who answers, and how fast."""
        return Reply({"people": await do(session.people)})

    @app.post("/api/admin/people", responses={**_ADMIN, 200: {"model": calls.Added}})
    async def add_person(call: calls.NewPerson) -> Reply:
        """A new person, or a new link for one who is known: the old one is of no use then."""
        return Reply(await do(session.add_person, call.name))

    @app.get("/api/admin/flags", responses={**_ADMIN, 200: {"model": calls.Flags}})
    async def flags() -> Reply:
        """What people found wrong with questions."""
        return Reply({"flags": await do(session.flagged)})

    @app.post("/api/admin/pause", responses={**_ADMIN, 200: {"model": calls.Paused}})
    async def pause(call: calls.Pause) -> Reply:
        """No more questions, or questions again."""
        await do(session.pause, call.paused)
        return Reply({"paused": call.paused})

    @app.get("/api/admin/export/{what}", response_class=Response, responses=_ADMIN)
    async def export(what: Annotated[str, Path(json_schema_extra={"enum": list(calls.EXPORTS)})]) -> Response:
        """Everything so far, as a file."""
        if what not in calls.EXPORTS:
            raise HTTPException(404, f"there is no such export; there are {', '.join(calls.EXPORTS)}")
        name, media_type, pieces = await do(session.export, what)
        return StreamingResponse(
            pieces, media_type=media_type, headers={"content-disposition": f'attachment; filename="{name}"'}
        )


def _refusals(app: FastAPI) -> None:
    """Whatever is not done says so in the same two words: error and reason."""

    def no(status: int, code: str, reason: str, headers: dict[str, str] | None = None) -> Reply:
        return Reply({"error": code, "reason": reason}, status, headers)

    @app.exception_handler(Refused)
    async def refused(_: Request, error: Refused) -> Reply:
        return refusal(error)

    @app.exception_handler(RequestValidationError)
    async def unlike(_: Request, error: RequestValidationError) -> Reply:
        return invalid(error.errors())

    @app.exception_handler(HTTPException)
    async def other(_: Request, error: HTTPException) -> Reply:
        code = {404: "not-found", 405: "no-such-method"}.get(error.status_code, "bad-request")
        return no(error.status_code, code, str(error.detail), dict(error.headers or {}))

    @app.exception_handler(SparsezoError)
    async def failed(_: Request, error: SparsezoError) -> Reply:
        return failure(error)

    @app.exception_handler(Exception)
    async def broken(_: Request, error: Exception) -> Reply:
        return no(500, "failed", _FAILED)  # and the server's log gets the traceback


def _documentation(app: FastAPI) -> None:
    """Without Swagger's page, which is loaded from elsewhere: the schema, and a plain page of it, when asked for."""

    @functools.cache
    def schema() -> dict[str, Any]:
        made = app.openapi()
        bearer = {"type": "http", "scheme": "bearer", "description": "The part of a person's link after #"}
        made["components"]["securitySchemes"] = {"token": bearer}
        for path, methods in made["paths"].items():
            for operation in methods.values():
                if path.startswith("/api/"):
                    operation["security"] = [{"token": []}]
        return made

    @app.get(API_SCHEMA, include_in_schema=False)
    async def as_json() -> Reply:
        return Reply(schema())

    @app.get(API_PAGE, include_in_schema=False)
    async def as_page() -> HTMLResponse:
        return HTMLResponse(page("api.html.j2", schema=schema(), operations=_operations(schema())))


def _operations(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """What the plain page lists of each call."""
    models = schema["components"]["schemas"]

    def fields(name: str) -> list[dict[str, Any]]:
        model = models[name]
        needed = model.get("required", [])
        return [
            {"name": key, "type": _words(each), "needed": key in needed}
            for key, each in model.get("properties", {}).items()
        ]

    def named(content: dict[str, Any]) -> str | None:
        found = content.get("content", {}).get("application/json", {}).get("schema", {}).get("$ref")
        return None if found is None else found.rpartition("/")[2]

    listed = []
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            takes = named(operation.get("requestBody", {}))
            gives = named(operation["responses"].get("200", {}))
            listed.append(
                {
                    "method": method.upper(),
                    "path": path,
                    "words": operation.get("description", ""),
                    "note": models[takes].get("description", "") if takes else "",
                    "takes": fields(takes) if takes else [],
                    "gives": fields(gives) if gives else [],
                }
            )
    return listed


def _words(each: dict[str, Any]) -> str:
    """The type of a field, in a word or two."""
    if "anyOf" in each:
        return " or ".join(dict.fromkeys(_words(one) for one in each["anyOf"]))
    if "enum" in each:
        return " or ".join(map(str, each["enum"]))
    if "$ref" in each:
        return str(each["$ref"]).rpartition("/")[2]
    if each.get("type") == "array":
        return f"list of {_words(each.get('items', {}))}"
    return str(each.get("type", "anything"))
