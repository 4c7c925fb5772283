"""A session as a model of Label Studio's: its ML backend protocol, over raw text that is marked with labels.

    backend = LabelStudio(session)
    backend.setup(config)                       # its labelling interface: <Labels> over <Text>
    backend.predict(tasks, config)              # spans with their probabilities, and a score by which tasks are ranked
    backend.learn("ANNOTATION_CREATED", event)  # every sentence of the annotated text is a review
    Backend(session)                            # the same over HTTP, at /label-studio/TOKEN/

Who gives ``serve`` the address of a Label Studio needs none of this by hand: label_studio_client.py calls its API.

An annotation says of every token what it is, as a review does, and is kept and learned from as one: whoever annotated
is one of the session's people, and ``replay``, ``train --from-answers`` and exports know no difference. One that is
changed is taken back and said anew. Texts are those of the session's inputs; others are predicted, but not learned
from, and nor are those that the session has set aside to audit.

Label Studio asks for the tasks of the lowest score first (uncertainty sampling). The score is 1 / (1 + gain a second):
the gain is the sum over tokens of the probability that their best tag is wrong, and the seconds are those of a review.
"""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, cast
from xml.etree import ElementTree

import numpy as np
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from sparsezo import __version__, messages
from sparsezo.errors import DataError, SparsezoError, UsageError, quoted
from sparsezo.kernels.codes import STANDING
from sparsezo.questions import Question
from sparsezo.serve.errors import Refused
from sparsezo.serve.lease_queue import CLOSED
from sparsezo.serve.store import AuditRow
from sparsezo.tasks.base import AnyArray, Json
from sparsezo.tasks.chunking.io.conll import Corpus, Source
from sparsezo.tasks.chunking.io.documents import Document, Span
from sparsezo.tasks.chunking.io.formats.json_formats import label_studio_document, label_studio_result
from sparsezo.tasks.chunking.io.raw import tagged_documents
from sparsezo.tasks.chunking.tags import IOB2, OUTSIDE
from sparsezo.tasks.chunking.task import Chunking

if TYPE_CHECKING:
    from sparsezo.serve.annotators import Person
    from sparsezo.serve.session import Session

PREFIX = "/label-studio/"
NAME = "Label Studio"  # of the person whose link it has
TITLE = "sparsezo"  # of all predictions: a project ranks its tasks by those that are called as its model is
MOST_BYTES = 32 << 20  # of a request: it sends whole tasks, a hundred at a time
_NONCE = "label-studio"
_CREATED, _DELETED = ("ANNOTATION_CREATED", "ANNOTATION_UPDATED"), ("ANNOTATIONS_DELETED", "ANNOTATION_DELETED")
# of a review, as in docs/answers.md: to begin, to check a token, to correct one
_BEGIN_SECONDS, _CHECK_SECONDS, _CORRECT_SECONDS = 0.5, 0.12, 2.5


class Interface(NamedTuple):
    """What a labelling interface calls its labels and its text, and the field of a task that has the text."""

    from_name: str
    to_name: str
    field: str
    labels: tuple[str, ...]


def read_interface(config: object) -> Interface:
    """Of Label Studio's XML; UsageError where no labels are over a text."""
    try:
        root = ElementTree.fromstring(config if isinstance(config, str) else "")
    except ElementTree.ParseError as error:
        raise UsageError(f"the labelling interface is no XML ({error})") from None
    texts = {each.get("name"): each.get("value", "") for each in root.iter("Text")}
    for each in root.iter("Labels"):
        value = texts.get(each.get("toName"))
        if value is not None and value.startswith("$"):
            labels = tuple(label.get("value", "") for label in each.iter("Label"))
            return Interface(each.get("name", ""), each.get("toName", ""), value[1:], labels)
    raise UsageError('the labelling interface has no <Labels> over a <Text value="$...">')


class LabelStudio:
    """A session about spans in raw text, as Label Studio sees it. Safe to share between threads."""

    def __init__(self, session: Session) -> None:
        task, data = session.contents.task, session.contents.data
        raw = isinstance(data, Corpus) and data.source is not None
        if not isinstance(task, Chunking) or task.scheme != IOB2 or not raw:
            raise UsageError("`label_studio`: its labels are spans of raw text; give such `inputs` and `tags`")
        self._session, self._task, self._data = session, task, cast(Corpus, data)
        self._source = cast(Source, self._data.source)
        self.types = tuple(tag[2:] for tag in self._task.tags if tag.startswith("B-"))
        self._sentences: dict[str, list[int]] = defaultdict(list)  # by text
        for x, k in enumerate(self._source.of_sentence.tolist()):
            self._sentences[self._source.documents[k].text].append(x)
        self._audited = {row.x for row in session.store.rows(AuditRow)}
        self._said: dict[str, dict[int, int]] = defaultdict(dict)  # by annotation: the question of each sentence
        for event in session.store.events():
            known = event.question is not None and session.queue.entries[event.question].state == CLOSED
            if known and event.nonce and event.nonce.startswith(_NONCE):
                self._said[event.nonce][session.queue.row(event.question or 0).x] = event.question or 0
        self._lock = threading.Lock()  # one annotation after the other
        self._reviewing = session.contents.serving.reviewing(task, session.model.learner.problem)
        self._ranking = threading.Lock()
        self._once = messages.Once(messages.say)

    @property
    def version(self) -> str:
        """Another one after every annotation, so that tasks are predicted anew when they are opened."""
        return f"sparsezo {__version__}, {self._session.model.count} answers"

    @property
    def session(self) -> Session:
        return self._session

    def texts(self) -> list[str]:
        """Those that something can be learned from: not all of it is set aside to audit."""
        return [text for text, sentences in self._sentences.items() if not self._audited.issuperset(sentences)]

    # Protocol

    def setup(self, config: object) -> Json:
        self.interface(config)
        return {"model_version": self.version}

    def interface(self, config: object) -> Interface:
        """What a labelling interface has of ours; UsageError where its labels are others."""
        found = read_interface(config)
        if unknown := [label for label in found.labels if label not in self.types]:
            raise UsageError(f"the label {quoted(unknown[0])} is not among `tags`: {', '.join(self.types)}")
        return found

    def predict(self, tasks: object, config: object) -> Json:
        """A prediction for each task, in their order."""
        interface = self.interface(config)
        if not isinstance(tasks, list) or not all(isinstance(each, dict) for each in tasks):
            raise UsageError("`tasks` are a list of objects")
        texts = [_text(each, interface.field) for each in tasks]
        return {"results": self.predictions(texts, interface), "model_version": self.version}

    def predictions(self, texts: Sequence[str], interface: Interface) -> list[Json]:
        """Spans of each text, as the interface calls them, and its score."""
        W, documents = self._session.model.weights()[1], [Document(text) for text in texts]
        found = tagged_documents(self._task, W, documents, tokens=False)
        return [
            {
                "result": label_studio_result(document, document.spans or (), interface.from_name, interface.to_name),
                "score": score,
                "model_version": TITLE,
            }
            for document, score in zip(found, self.scores(texts), strict=True)
        ]

    def learn(self, action: object, event: Mapping[str, object]) -> Json:
        """What an event of a webhook says; ``learned``: the sentences that it is about."""
        annotations = event.get("annotations") if action in _DELETED else [event.get("annotation")]
        if action not in (*_CREATED, *_DELETED) or not isinstance(annotations, list):
            return {"learned": 0}
        learned = 0
        with self._lock:
            for each in annotations:
                if not isinstance(each, dict) or "id" not in each:
                    raise UsageError("an `annotation` is an object with an id")
                nonce = f"{_NONCE} {each['id']}"
                if action in _DELETED or each.get("was_cancelled"):
                    self._forget(nonce)
                else:
                    learned += self._annotated(nonce, each, event.get("task"), event.get("project"))
        return {"learned": learned, "model_version": self.version}

    # Annotations

    def _annotated(self, nonce: str, annotation: Json, task: object, project: object) -> int:
        config = project.get("label_config") if isinstance(project, dict) else None
        interface = self.interface(config)
        data = {"text": _text(task, interface.field)}
        result = [each for each in annotation.get("result") or () if each.get("from_name") == interface.from_name]
        document = label_studio_document({"data": data, "annotations": [{"result": result}]}, "an annotation")
        sentences = self._sentences.get(document.text)
        if sentences is None:
            self._once("Label Studio has texts that are not among the inputs; nothing is learned from these")
            return 0
        person = self._person(annotation.get("completed_by"))
        seconds = annotation.get("lead_time")
        each_took = seconds / len(sentences) if isinstance(seconds, int | float) and seconds > 0 else None
        taught = [x for x in sentences if x not in self._audited]
        for x in taught:
            self._review(person, x, self._tags(x, document.spans or ()), each_took, nonce)
        return len(taught)

    def _person(self, completed_by: object) -> Person:
        """One of the session's people for each of Label Studio's."""
        if isinstance(completed_by, dict):
            completed_by = completed_by.get("email") or completed_by.get("id")
        name = NAME if completed_by is None else f"{NAME} {completed_by}"
        people = self._session.annotators
        id = people.link(name)["id"]
        return people.people[id]

    def _tags(self, x: int, spans: Sequence[Span]) -> list[int]:
        """The tags of a sentence with these spans; a token of which any part is marked is in the span."""
        begin, end = self._data.offsets[x : x + 2].tolist()
        number, outside = {tag: k for k, tag in enumerate(self._task.tags)}, self._task.tags.index(OUTSIDE)
        starts, ends = self._source.starts[begin:end].tolist(), self._source.ends[begin:end].tolist()
        tags = [outside] * (end - begin)
        for span in spans:
            inside = [i for i, (a, b) in enumerate(zip(starts, ends, strict=True)) if a < span.end and b > span.start]
            for i in inside:
                tags[i] = number[f"{'B' if i == inside[0] else 'I'}-{span.label}"]
        return tags

    def _review(self, person: Person, x: int, tags: list[int], seconds: float | None, nonce: str) -> None:
        session, known = self._session, self._said[nonce].get(x)
        suggested = session.queue.row(known).question().outputs[0] if known else session.model.output(x)
        corrected = [i for i, (one, other) in enumerate(zip(suggested.tolist(), tags, strict=True)) if one != other]
        names = [self._task.tags[k] for k in tags]
        answer: str | Json = {"output": names, "corrected": corrected} if corrected else "right"
        if known:
            session.replace_answer(person, known, answer, seconds, nonce)
            return
        made = {"kind": "review", "about": "token", "x": x, "numbers": [0] * 4, "owner": "", "step": 0, "chance": 1.0}
        shown = [suggested.tolist(), [STANDING] * len(tags)]
        question = Question.from_json({**made, "outputs": shown, "choices": [], "codes": []})
        self._said[nonce][x] = session.record(person, question, answer, seconds, nonce)

    def _forget(self, nonce: str) -> None:
        for number in self._said.pop(nonce, {}).values():
            self._session.withdraw(number)

    # Ranking

    def scores(self, texts: Sequence[str]) -> list[float | None]:
        """The lower, the more the annotation of a text teaches in a second; None: it is not among the inputs."""
        W = self._session.model.weights()[1]
        with self._ranking:
            return [self._score(W, text) for text in texts]

    def _score(self, W: AnyArray, text: str) -> float | None:
        if (sentences := self._sentences.get(text)) is None:
            return None
        sure = np.concatenate([self._reviewing.suggested(W, x).sure for x in sentences])
        gain = float((1 - sure).sum())
        seconds = _BEGIN_SECONDS + _CHECK_SECONDS * len(sure) + _CORRECT_SECONDS * gain
        return round(1 / (1 + gain / seconds), 6)


def _text(task: object, field: str) -> str:
    data = task.get("data") if isinstance(task, dict) else None
    text = data.get(field) if isinstance(data, dict) else None
    if not isinstance(text, str):
        raise UsageError(f"a task has no text in its field {quoted(field)}")
    return text


class Backend:
    """An ASGI app: the protocol at ``PREFIX`` + a token + health, setup, predict and webhook."""

    def __init__(self, session: Session) -> None:
        self._session, self._backend = session, LabelStudio(session)
        routes = {
            "health": ("GET", lambda given: {"status": "UP", "model_class": "sparsezo"}),
            "setup": ("POST", lambda given: self._backend.setup(given.get("schema"))),
            "predict": ("POST", lambda given: self._backend.predict(given.get("tasks"), given.get("label_config"))),
            "webhook": ("POST", lambda given: self._backend.learn(given.get("action"), given)),
        }
        self._app = Starlette(
            routes=[
                Route(f"{PREFIX}{{token}}/{name}", self._endpoint(do), methods=[method])
                for name, (method, do) in routes.items()
            ]
        )

    def _endpoint(self, do: Callable[[Json], Json]) -> Callable[[Request], Awaitable[Response]]:
        async def answered(request: Request) -> Response:
            person = self._session.person(request.path_params["token"])
            if person is None or person.name != NAME:
                return JSONResponse({"error": "this needs the address that serve prints for Label Studio"}, 401)
            if int(request.headers.get("content-length", "0")) > MOST_BYTES:
                return JSONResponse({"error": f"a request may have {MOST_BYTES >> 20} MB"}, 413)
            try:
                given = json.loads(await request.body() or b"{}")
                if not isinstance(given, dict):
                    raise ValueError
                return JSONResponse(await run_in_threadpool(do, given))
            except ValueError:
                return JSONResponse({"error": "a request is a JSON object"}, 400)
            except (UsageError, DataError, Refused) as error:
                return JSONResponse({"error": str(error)}, 422)
            except SparsezoError as error:
                return JSONResponse({"error": str(error)}, 500)

        return answered

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)
