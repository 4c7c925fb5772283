"""What the API takes and gives, as models: bounded, strict, nothing extra. OpenAPI's schemas come from here."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Id = Annotated[str, Field(min_length=1, max_length=80)]
Nonce = Annotated[str, Field(min_length=1, max_length=80)]
SPANS = tuple(f"spans-{name}" for name in ("jsonl", "conll", "brat", "spacy", "prodigy", "label-studio", "datasets"))
EXPORTS = ("answers.jsonl", "answers.csv", "pairs.jsonl", "flags.jsonl", "corpus", *SPANS, "model")
MOST_AHEAD = 10  # questions of one call; a session may give fewer


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True)


class Ask(Strict):
    """``holding``: questions that were fetched ahead. They come back too, or others where the model is sure by now."""

    n: Annotated[int, Field(ge=0, le=MOST_AHEAD)] = 1
    holding: Annotated[list[Id], Field(max_length=MOST_AHEAD)] = []


class MarkedSpan(Strict):
    """A span that a person has marked: its first and last token, as they stand in ``shown``, and its label."""

    first: Annotated[int, Field(ge=0, lt=1_000_000)]
    last: Annotated[int, Field(ge=0, lt=1_000_000)]
    label: Annotated[str, Field(min_length=1, max_length=500)]


class Tell(Strict):
    """``answer``: a choice, a label, a grade or a span. The same again with the same ``nonce`` is applied once."""

    id: Id
    answer: Annotated[str, Field(min_length=1, max_length=500)] | Annotated[int, Field(ge=0, le=100)] | MarkedSpan
    seconds: Annotated[float, Field(ge=0, le=86400, allow_inf_nan=False)] | None = None
    nonce: Nonce | None = None


class Skip(Strict):
    """``nonce``: as in tell."""

    id: Id
    why: Literal["skip", "cannot-tell"] = "skip"
    nonce: Nonce | None = None


class Flag(Strict):
    id: Id
    note: Annotated[str, Field(max_length=2000)] = ""


class Undo(Strict):
    """The last answer, or a named question's."""

    id: Id | None = None


class NewPerson(Strict):
    name: Annotated[str, Field(min_length=1, max_length=100)]


class Pause(Strict):
    paused: bool


class Refusal(BaseModel):
    """Of everything that is not done."""

    error: str
    reason: str


class QuestionShown(BaseModel):
    id: str
    kind: Literal["part", "label", "span", "pair", "rate"]
    task: str
    text: str
    choices: list[str]
    labels: list[str]
    names: dict[str, str] = {}
    shown: dict[str, Any]
    order: list[int] = []
    grades: int = 5


class Questions(BaseModel):
    questions: list[QuestionShown]


class OneQuestion(BaseModel):
    question: QuestionShown


class Saved(BaseModel):
    """It is on disk."""

    id: str
    saved: bool


class Told(Saved):
    answer: str | int | float | dict[str, Any]
    answers: int
    mine: int


class Me(BaseModel):
    session: str
    person: int | str
    name: str


class Guidelines(BaseModel):
    text: str | None


class Recent(BaseModel):
    recent: list[dict[str, Any]]


class Status(BaseModel):
    model_config = ConfigDict(extra="allow")

    answers: int
    questions: int
    mine: int | None
    today: int
    per_minute: float
    paused: bool
    curve: list[list[float]]
    metric: str
    dev: float | None
    audit: dict[str, Any] | None
    forecast: dict[str, Any] | None
    labels: list[str]


class Flags(BaseModel):
    """The newest first; ``at``: seconds since 1970."""

    flags: list[dict[str, Any]]


class People(BaseModel):
    people: list[dict[str, Any]]


class Added(BaseModel):
    """The token is the part of a link after #."""

    id: int | str
    name: str
    token: str


class Paused(BaseModel):
    paused: bool
