"""The calls of the API, each described once, by a function: its parameters are what the call takes, its docstring is
the documentation. OpenAPI's schema and the plain page of it are made from that.

    calls = api_calls(session)
    schema = openapi(calls)             # without Swagger's page, which is loaded from elsewhere
    operations(schema)                  # of each call its fields, in words
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic.json_schema import models_json_schema

from sparsezo import __version__
from sparsezo.serve.annotators import Person
from sparsezo.serve.exports import EXPORTS, File
from sparsezo.serve.options import MOST_NAME, MOST_NONCE, MOST_NOTE, MOST_SECONDS
from sparsezo.tasks.base import Json

if TYPE_CHECKING:
    from sparsezo.serve.session import Session

MOST_SPANS = 2000  # of an answer; a body has 64 kB
MOST_AHEAD = 10  # questions of one call; a session may give fewer
Id = Annotated[str, Field(min_length=1, max_length=80)]
Nonce = Annotated[str, Field(min_length=1, max_length=MOST_NONCE)]
Label = Annotated[str, Field(min_length=1, max_length=500)]
Token = Annotated[int, Field(ge=0, lt=1_000_000)]
Seconds = Annotated[float, Field(ge=0, le=MOST_SECONDS, allow_inf_nan=False)]
_STRICT = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True)
_REFUSALS = {
    401: "No token, or none that is valid",
    404: "No such question",
    408: "The request came too slowly",
    409: "Late, somebody else's, or answered already",
    413: "Larger than 64 kB",
    422: "Not as the schema has it, or no answer to this question",
    429: "Too many calls a second",
    503: "Paused, or nothing to ask at present; see Retry-After",
}
_SCHEMAS = "#/components/schemas/"


class MarkedSpan(BaseModel):
    """A span that a person has marked: its first and last token, as they stand in ``shown``, and its label."""

    model_config = _STRICT

    first: Token
    last: Token
    label: Label


class FixedSpan(BaseModel):
    """A span that stays as it is while the rest is decoded again; with the label null: nothing is there."""

    model_config = _STRICT

    first: Token
    last: Token
    label: Label | None


class Reviewed(BaseModel):
    """A sentence as a person leaves it: all its spans, and the places of the tokens that were set by hand."""

    model_config = _STRICT

    spans: Annotated[list[MarkedSpan], Field(max_length=MOST_SPANS)]
    corrected: Annotated[list[Token], Field(max_length=MOST_SPANS)]


class QuestionShown(BaseModel):
    id: str
    kind: Literal["part", "label", "span", "review", "pair", "best", "rate"]
    task: str
    input: int = 0
    text: str
    choices: list[str]
    labels: list[str]
    names: dict[str, str] = {}
    shown: Json
    order: list[int] = []
    grades: int = 5


class Refusal(BaseModel):
    """Of everything that is not done."""

    error: str
    reason: str


class Call(NamedTuple):
    """``do``: of the person, and by name what the call takes; in a thread. ``gives``: None where it is a file."""

    method: str
    path: str
    do: Callable[..., Json | File]
    takes: type[BaseModel] | None
    gives: type[BaseModel] | None


def api_calls(session: Session) -> list[Call]:
    calls: list[Call] = []

    def call(method: str, path: str, **gives: object) -> Callable[[Callable[..., Json | File]], None]:
        """``gives``: the type of each field of the reply."""

        def add(do: Callable[..., Json | File]) -> None:
            name = do.__name__.title().replace("_", "")
            hints = get_type_hints(do, include_extras=True)
            parameters = list(inspect.signature(do).parameters.values())[1:]
            taken = {e.name: (hints[e.name], ... if e.default is e.empty else e.default) for e in parameters}
            config = _STRICT if method == "POST" else ConfigDict()
            takes = create_model(name, __config__=config, **taken) if taken else None  # type: ignore[call-overload]
            given = {name: (each, ...) for name, each in gives.items()}
            made = create_model(f"{name}Reply", **given) if given else None  # type: ignore[call-overload]
            calls.append(Call(method, path, do, takes, made))

        return add

    @call("POST", "/api/ask", questions=list[QuestionShown])
    def ask(
        person: Person,
        n: Annotated[int, Field(ge=0, le=MOST_AHEAD)] = 1,
        holding: Annotated[tuple[Id, ...], Field(max_length=MOST_AHEAD)] = (),
        decide: bool = False,
    ) -> Json:
        """Questions for this person. Nobody else gets them until they are answered, skipped or left for too long.
        ``holding``: those that were fetched ahead; they come back too, or others where the model is sure by now.
        ``decide``: only sentences that two people have reviewed, and differently (``versions`` in ``shown``)."""
        return {"questions": session.ask(person, n, holding, decide=decide)}

    @call("POST", "/api/tell", id=str, saved=bool, answer=str | int | float | Json, answers=int, mine=int)
    def tell(
        person: Person,
        id: Id,
        answer: Label | Annotated[int, Field(ge=0, le=100)] | MarkedSpan | Reviewed,
        seconds: Seconds | None = None,
        nonce: Nonce | None = None,
        away: Seconds | None = None,
    ) -> Json:
        """An answer: a choice, a label, a grade, a span, or a reviewed sentence. The reply comes when it is on disk.
        The same again with the same ``nonce`` is applied once. ``away``: of ``seconds``, those in which the page was
        hidden or without focus."""
        return session.tell(person, id, answer, seconds, nonce, away)

    @call("POST", "/api/decode", spans=list[Json], unsure=list[int])
    def decode(person: Person, id: Id, fixed: Annotated[list[FixedSpan], Field(max_length=MOST_SPANS)]) -> Json:
        """Of a sentence that this person reviews: the best spans where what is fixed stays exactly as it is, and the
        tokens that the model is unsure of. Nothing changes by it."""
        return session.decode(person, id, fixed)

    @call("POST", "/api/skip", id=str, saved=bool)
    def skip(person: Person, id: Id, why: Literal["skip", "cannot-tell"] = "skip", nonce: Nonce | None = None) -> Json:
        """No answer: another time (skip), or nobody could say (cannot-tell)."""
        return session.skip(person, id, why, nonce)

    @call("POST", "/api/flag", id=str, saved=bool)
    def flag(person: Person, id: Id, note: Annotated[str, Field(max_length=MOST_NOTE)] = "") -> Json:
        """Something is wrong with this question; a note says what."""
        return session.flag(person, id, note)

    @call("POST", "/api/undo", question=QuestionShown)
    def undo(person: Person, id: Id | None = None) -> Json:
        """Take the last answer back, or a named question's; the question comes again, to be answered."""
        return {"question": session.undo(person, id)}

    @call("GET", "/api/me", session=str, person=int | str, name=str, program=bool)
    def me(person: Person) -> Json:
        """Which session this is and who you are: the same whatever link you came by."""
        return session.identity(person)

    @call("POST", "/api/me", session=str, person=int | str, name=str, program=bool)
    def be_program(person: Person, program: Literal[True]) -> Json:
        """You are a program, for good: audits are people's alone, and people are asked where the model doubts you."""
        session.mark_program(person.id)
        return session.identity(person)

    @call("GET", "/api/guidelines", text=str | None)
    def guidelines(person: Person) -> Json:
        """How to answer, in Markdown; null where nothing is said about it."""
        return {"text": session.guidelines}

    @call("GET", "/api/recent", recent=list[Json])
    def recent(person: Person, n: Annotated[int, Field(ge=1, le=200)] = 20) -> Json:
        """This person's last answers, the newest first."""
        return {"recent": session.recent(person, n)}

    figures = {"curve": list[list[float]], "metric": str, "dev": float | None, "alpha": float | None}
    about_model = {
        **figures,
        "audit": Json | None,
        "forecast": Json | None,
        "stop": Json | None,
        "adjudication": Json | None,
        "warning": str | None,
        "labels": list[str],
    }

    @call(
        "GET",
        "/api/status",
        answers=int,
        questions=int,
        mine=int | None,
        today=int,
        per_minute=float,
        paused=bool,
        **about_model,
    )
    def status(person: Person) -> Json:
        """How many answers there are, and how the model does."""
        return session.status(person)

    @call("GET", "/healthz", ok=bool)
    def healthz(person: None) -> Json:
        """Whether it runs."""
        return {"ok": True}

    @call("GET", "/api/admin/people", people=list[Json])
    def people(person: Person) -> Json:
        """Who answers, and how fast."""
        return {"people": session.people()}

    @call("POST", "/api/admin/people", id=int | str, name=str, token=str)
    def add_person(
        person: Person, name: Annotated[str, Field(min_length=1, max_length=MOST_NAME)], program: bool = False
    ) -> Json:
        """A new person (or a program), or a new link for one who is known: the old one is of no use then. The token is
        the part of a link after #."""
        return session.add_person(name, program=program)

    @call("GET", "/api/admin/flags", flags=list[Json])
    def flags(person: Person) -> Json:
        """What people found wrong with questions, the newest first; ``at``: seconds since 1970."""
        return {"flags": session.flagged()}

    @call("POST", "/api/admin/pause", paused=bool)
    def pause(person: Person, paused: bool) -> Json:
        """No more questions, or questions again."""
        session.pause(paused)
        return {"paused": paused}

    @call("GET", "/api/admin/export/{what}")
    def export(person: Person, what: Annotated[str, Field(json_schema_extra={"enum": list(EXPORTS)})]) -> File:
        """Everything so far, as a file."""
        return session.export(what)

    return calls


def openapi(calls: Sequence[Call]) -> Json:
    """The schema of an API with these calls."""
    models: list[type[BaseModel]] = [Refusal]
    models += [model for call in calls for model in (call.takes, call.gives) if model is not None]
    _, defined = models_json_schema([(model, "validation") for model in models], ref_template=_SCHEMAS + "{model}")
    paths: Json = {}
    for call in calls:
        paths.setdefault(call.path, {})[call.method.lower()] = _operation(call)
    bearer = {"type": "http", "scheme": "bearer", "description": "The part of a person's link after #"}
    about = {"title": "sparsezo serve", "summary": "Questions to people, and their answers.", "version": __version__}
    components = {"schemas": defined["$defs"], "securitySchemes": {"token": bearer}}
    return {"openapi": "3.1.0", "info": about, "paths": paths, "components": components}


def _operation(call: Call) -> Json:
    name = call.do.__name__
    made: Json = {"summary": name.replace("_", " ").capitalize(), "operationId": name}
    made["description"] = inspect.getdoc(call.do)
    made["responses"] = {"200": {"description": "Successful Response", **_content(call.gives)}}
    if call.path.startswith("/api/"):
        made["security"] = [{"token": []}]
        admin = {403: "Not an administrator's token"} if call.path.startswith("/api/admin/") else {}
        refusals = sorted({**_REFUSALS, **admin}.items())
        made["responses"] |= {str(code): {"description": words, **_content(Refusal)} for code, words in refusals}
    if call.takes is not None and call.method == "POST":
        made["requestBody"] = {**_content(call.takes), "required": True}
    elif call.takes is not None:
        schema = call.takes.model_json_schema()
        made["parameters"] = [
            {
                "name": key,
                "in": "path" if f"{{{key}}}" in call.path else "query",
                "required": key in schema.get("required", ()),
                "schema": each,
            }
            for key, each in schema["properties"].items()
        ]
    return made


def _content(model: type[BaseModel] | None) -> Json:
    return {} if model is None else {"content": {"application/json": {"schema": {"$ref": _SCHEMAS + model.__name__}}}}


def operations(schema: Json) -> Iterator[Json]:
    """What the plain page lists of each call."""

    def fields(content: Json) -> list[Json]:
        if "content" not in content:
            return []
        ref = content["content"]["application/json"]["schema"]["$ref"]
        model = schema["components"]["schemas"][ref.removeprefix(_SCHEMAS)]
        return [
            {"name": key, "type": _words(each), "needed": key in model.get("required", ())}
            for key, each in model["properties"].items()
        ]

    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            takes, gives = fields(operation.get("requestBody", {})), fields(operation["responses"]["200"])
            words = operation["description"]
            yield {"method": method.upper(), "path": path, "words": words, "takes": takes, "gives": gives}


def _words(each: Json) -> str:
    """The type of a field, in a word or two."""
    if "anyOf" in each:
        return " or ".join(dict.fromkeys(_words(one) for one in each["anyOf"]))
    if "enum" in each:
        return " or ".join(map(str, each["enum"]))
    if "$ref" in each:
        return str(each["$ref"]).removeprefix(_SCHEMAS)
    if each.get("type") == "array":
        return f"list of {_words(each.get('items', {}))}"
    return str(each.get("type", "anything"))
