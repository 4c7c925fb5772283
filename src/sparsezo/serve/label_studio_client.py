"""A Label Studio that is served: its project is made, and its queue is ranked by what teaches most in a second.

    address, project = read_address("http://127.0.0.1:8080/projects/7")
    with Sync(LabelStudio(session), Client(address, token), project) as sync:      # and from now on, in a thread
        print(sync.url)

Everything goes through Label Studio's own API, so that it needs no settings, and need not be able to call us. A round:

1. Which tasks have changed? (``updated_at``, by its own clock.) Annotations in them are learned from, those that are
   gone are taken back. So nothing is lost that was annotated while one of the two was away.
2. Where the model has changed, the texts that nobody has annotated are scored, and the best ``QUEUE`` of them get
   predictions of a new version, which becomes the project's. *Uncertainty sampling* takes the next task from those
   with predictions of the project's version, the lowest score first (with several annotators: any of these), so two
   calls rank the queue anew, however many tasks there are. Older versions stay for an hour: who has a task open when
   its prediction is deleted cannot submit the annotation.
"""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Self, cast
from urllib.parse import quote, urlencode, urlsplit
from xml.sax.saxutils import quoteattr

from sparsezo import messages
from sparsezo.errors import DataError, SparsezoError, UsageError, quoted
from sparsezo.messages import counted
from sparsezo.serve.label_studio import NAME, TITLE, Interface, LabelStudio
from sparsezo.serve.options import LABEL_STUDIO_TOKEN
from sparsezo.tasks.base import Json

QUEUE = 10  # tasks that are ranked
POOL = 500  # texts that are scored for it: those that were best, and others drawn at random
BUSY_SECONDS, IDLE_SECONDS = 0.2, 1.0  # between rounds; idle: nobody has annotated for a while
_WHILE = 300.0  # seconds
_AWAY_SECONDS = 2.0  # between tries
_SETTLED = 5.0  # seconds after which a change that was begun earlier is done, too
_KEPT = 3600.0  # seconds that a version of predictions stays; as long, Label Studio keeps a task for one person
_TIMEOUT = 30.0
_PAGE = 200  # tasks of a call
_SAMPLING = "Uncertainty sampling"
_TITLE_LENGTH = (3, 50)
_CONNECTIONS = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}
_REFUSED = (401, 403)


class StudioError(SparsezoError):
    """``status`` as in HTTP; 0: nobody answered."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def read_address(url: str) -> tuple[str, int | None]:
    """(where a Label Studio is, the number of the project that its address in a browser may name)

    >>> read_address("http://127.0.0.1:8080/projects/7/data?tab=3")
    ('http://127.0.0.1:8080', 7)
    """
    parts = urlsplit(url)
    try:
        known = parts.scheme in _CONNECTIONS and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        known = False
    if not known:
        raise UsageError(f"`label_studio` {quoted(url)}: give its address, such as http://127.0.0.1:8080, or link")
    before, named, behind = parts.path.partition("/projects/")
    number = behind.split("/")[0]
    if named and not (number.isascii() and number.isdigit()):
        raise UsageError(f"`label_studio` {quoted(url)}: a project's address ends in its number, as in /projects/7")
    return f"{parts.scheme}://{parts.netloc}{before.rstrip('/')}", int(number) if named else None


class Client:
    """Calls of a Label Studio's API. ``token``: a legacy token, or a personal access token, which is exchanged for one
    that is valid for some minutes, again whenever it has to be. For one thread at a time."""

    def __init__(self, address: str, token: str) -> None:
        if not token or not (token.isascii() and token.isprintable()):
            raise UsageError(
                "`label_studio_token`: give a token of your account in Label Studio (its Account & Settings), best in "
                f"the environment variable {LABEL_STUDIO_TOKEN}"
            )
        self.address = address
        self._token, self._personal = token, token.count(".") == 2
        self._access: str | None = None

    def call(self, method: str, path: str, body: object = None) -> object:
        """What it replies; a StudioError says in one line why not."""
        if self._personal and self._access is None:
            self._refresh()
        header = f"Bearer {self._access}" if self._personal else f"Token {self._token}"
        try:
            return self._once(method, path, body, header)
        except StudioError as error:
            if not self._personal or error.status != 401:
                raise
        self._refresh()
        return self._once(method, path, body, f"Bearer {self._access}")

    def _refresh(self) -> None:
        found = self._once("POST", "/api/token/refresh/", {"refresh": self._token}, None)
        self._access = str(_object(found).get("access"))

    def _once(self, method: str, path: str, body: object, authorization: str | None) -> object:
        parts = urlsplit(self.address)
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if authorization is not None:
            headers["Authorization"] = authorization
        connection = _CONNECTIONS[parts.scheme](cast(str, parts.hostname), parts.port, timeout=_TIMEOUT)
        try:
            content = None if body is None else json.dumps(body)
            connection.request(method, parts.path + path, content, headers)
            reply = connection.getresponse()
            said = reply.read()
        except (OSError, http.client.HTTPException) as error:
            why = str(error) or type(error).__name__
            raise StudioError(0, f"{NAME} at {self.address} does not answer ({why})") from None
        finally:
            connection.close()
        if reply.status in _REFUSED:
            raise StudioError(
                reply.status,
                f"{NAME} at {self.address} refuses the token; make one in its Account & Settings, and give it in the "
                f"environment variable {LABEL_STUDIO_TOKEN}",
            )
        try:
            found: object = json.loads(said) if said else None
        except ValueError:
            raise StudioError(
                reply.status, f"{self.address} answers with status {reply.status} and no JSON: is this {NAME}?"
            ) from None
        if reply.status >= 300:
            detail = _object(found)
            why = json.dumps(detail.get("validation_errors") or detail.get("detail") or detail)
            raise StudioError(
                reply.status, f"{NAME} at {self.address}: {method} {path.partition('?')[0]} failed: {quoted(why)}"
            )
        return found


class Sync:
    """A project of a Label Studio, and a session; ``project``: its number, by default one with the session's name."""

    def __init__(self, studio: LabelStudio, client: Client, project: int | None = None) -> None:
        self._studio, self._client, self._number = studio, client, project
        self._project: Json | None = None
        self._interface: Interface | None = None
        texts = studio.texts()
        self._known, self._missing = frozenset(texts), dict.fromkeys(texts)  # these the project does not have yet
        self._changes: list[tuple[float, str]] = []  # when it was looked, and the newest change that was known then
        self._tasks: dict[int, str] = {}  # text of each task that somebody should annotate
        self._seen: dict[int, dict[int, str]] = {}  # by task: when each of its annotations was last changed
        self._best: list[int] = []  # tasks of the queue
        self._versions: dict[str, float] = {}  # of predictions, and when they may be deleted
        self._last_version = 0
        self._ranked: object = None  # the model that the queue is ranked by
        self._random = random.Random(0)
        self._busy_until = 0.0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """Where people annotate; as long as nobody answers there, where it should be."""
        return self._client.address + ("" if self._number is None else f"/projects/{self._number}")

    def __enter__(self) -> Self:
        """What is wrong for good is raised now; one that does not answer yet is waited for."""
        try:
            self.step()
        except StudioError as error:
            if error.status != 0 and error.status < 500:
                raise
            messages.say(f"{error}; it is tried again")
        self._thread = threading.Thread(target=self._run, name="Label Studio")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        failed = self._project is None
        wait = _AWAY_SECONDS if failed else BUSY_SECONDS
        while not self._stop.wait(wait):
            try:
                self.step()
            except Exception as error:  # also where it replies what nobody has thought of
                if not failed:
                    messages.say(f"{error}; it is tried again, and what is annotated meanwhile is learned from then")
                failed, wait = True, _AWAY_SECONDS
                continue
            if failed:
                messages.say(f"{NAME} at {self.url} answers")
            failed, wait = False, BUSY_SECONDS if time.monotonic() < self._busy_until else IDLE_SECONDS

    def step(self) -> None:
        """One round."""
        if self._project is None:
            self._connect()
        if self._take_changes():
            self._busy_until = time.monotonic() + _WHILE
        if self._missing:
            self._import()
            self._take_changes()
        model = self._studio.session.model
        now = (model.count, model.seq, self._waiting_in_queue())
        if now != self._ranked:
            self._rank()
            self._ranked = (*now[:2], self._waiting_in_queue())
        else:
            self._delete_a_version()

    # The project

    def _connect(self) -> None:
        project = self._found() if self._number is None else self._get(self._number)
        if project is None:
            wanted = {"title": self._title(), "label_config": self._config()}
            project = _object(self._client.call("POST", "/api/projects/", wanted))
        self._number = int(project["id"])
        self._interface = self._studio.interface(project.get("label_config"))
        if project.get("sampling") != _SAMPLING or not project.get("show_collab_predictions"):
            self._patch({"sampling": _SAMPLING, "show_collab_predictions": True})
        versions = _object(self._client.call("GET", f"{self._path}model-versions/"))
        ours = {name: name.removeprefix(f"{TITLE} ") for name in versions}
        ours = {name: number for name, number in ours.items() if number.isascii() and number.isdigit()}
        self._versions = dict.fromkeys(ours, time.monotonic() + _KEPT)
        self._last_version = max(map(int, ours.values()), default=0)
        self._project = project

    def _found(self) -> Json | None:
        """The project with our title, if there is one."""
        title = self._title()
        found = _object(self._client.call("GET", "/api/projects/?" + urlencode({"title": title, "page_size": 100})))
        return next((each for each in found.get("results") or () if each.get("title") == title), None)

    def _get(self, number: int) -> Json:
        try:
            return _object(self._client.call("GET", f"/api/projects/{number}/"))
        except StudioError as error:
            if error.status != 404:
                raise
            raise StudioError(404, f"{NAME} at {self._client.address} has no project {number}") from None

    def _title(self) -> str:
        least, most = _TITLE_LENGTH
        name = self._studio.session.folder.resolve().name.removesuffix(".serve")
        return (name if len(name) >= least else f"{name} {TITLE}")[:most].strip()

    def _config(self) -> str:
        labels = "".join(f"<Label value={quoteattr(each)}/>" for each in self._studio.types)
        return f'<View><Labels name="label" toName="text">{labels}</Labels><Text name="text" value="$text"/></View>'

    @property
    def _path(self) -> str:
        return f"/api/projects/{self._number}/"

    def _patch(self, what: Json) -> None:
        self._client.call("PATCH", self._path, what)

    # Tasks and their annotations

    def _import(self) -> None:
        missing, field = list(self._missing), cast(Interface, self._interface).field
        for begin in range(0, len(missing), _PAGE):
            some = missing[begin : begin + _PAGE]
            self._client.call("POST", f"{self._path}import", [{"data": {field: text}} for text in some])
            for text in some:
                del self._missing[text]
        messages.say(f"{NAME}: {counted(len(missing), 'text')} imported into {self.url}")

    def _take_changes(self) -> int:
        """How many annotations were learned from, or taken back."""
        looked, changed = time.monotonic(), 0
        newest = self._changes[-1][1] if self._changes else ""
        for task in self._changed_tasks(looked):
            changed += self._take(task)
            newest = max(newest, str(task["updated_at"]))
        if newest:
            self._changes.append((looked, newest))
        return changed

    def _changed_tasks(self, now: float) -> Iterator[Json]:
        """From the newest change on that was known some seconds ago: what was begun earlier may be done later."""
        while len(self._changes) > 1 and self._changes[1][0] <= now - _SETTLED:
            del self._changes[0]
        query: Json = {"ordering": ["tasks:updated_at"]}
        if self._changes and self._changes[0][0] <= now - _SETTLED:
            only = {"filter": "filter:tasks:updated_at", "operator": "greater_or_equal", "type": "Datetime"}
            query["filters"] = {"conjunction": "and", "items": [{**only, "value": self._changes[0][1]}]}
        page = 1
        while True:
            about = {"project": self._number, "page": page, "page_size": _PAGE, "fields": "all"}
            found = _object(self._client.call("GET", f"/api/tasks?{urlencode(about)}&query={quote(json.dumps(query))}"))
            yield from found.get("tasks") or ()
            if page * _PAGE >= int(found.get("total") or 0):
                return
            page += 1

    def _take(self, task: Json) -> int:
        number, text = int(task["id"]), task["data"].get(cast(Interface, self._interface).field)
        annotations = {int(each["id"]): each for each in task.get("annotations") or ()}
        seen = self._seen.setdefault(number, {})
        changed = 0
        for gone in [id for id in seen if id not in annotations]:
            self._studio.learn("ANNOTATIONS_DELETED", {"annotations": [{"id": gone}]})
            del seen[gone]
            changed += 1
        for id, each in annotations.items():
            if seen.get(id) != (at := str(each.get("updated_at"))):
                self._learn(task, each)
                seen[id] = at
                changed += 1
        self._missing.pop(text, None)
        if task.get("is_labeled") or len(annotations) >= int(task.get("overlap") or 1) or text not in self._known:
            self._tasks.pop(number, None)
        else:
            self._tasks[number] = text
        return changed

    def _learn(self, task: Json, annotation: Json) -> None:
        event = {"annotation": annotation, "task": task, "project": self._project}
        try:
            self._studio.learn("ANNOTATION_CREATED", event)
        except (UsageError, DataError) as error:
            messages.say(f"{NAME}: annotation {annotation['id']} of task {task['id']} is not learned from: {error}")

    # The queue

    def _waiting_in_queue(self) -> int:
        return sum(task in self._tasks for task in self._best)

    def _rank(self) -> None:
        """New predictions for the best tasks, and for them alone, are all that the next task is chosen by."""
        interface = cast(Interface, self._interface)
        pool = self._pool()
        scores = self._studio.scores([self._tasks[task] for task in pool])
        ordered = sorted(
            zip(pool, scores, strict=True), key=lambda each: (1.0 if each[1] is None else each[1], each[0])
        )
        best = [task for task, _ in ordered[:QUEUE]]
        if not best:
            self._best = []
            return
        self._last_version += 1
        name = f"{TITLE} {self._last_version}"
        predictions = self._studio.predictions([self._tasks[task] for task in best], interface)
        rows = [{**each, "task": task, "model_version": name} for task, each in zip(best, predictions, strict=True)]
        self._client.call("POST", f"{self._path}import/predictions", rows)
        self._patch({"model_version": name})
        self._versions[name], self._best = time.monotonic() + _KEPT, best

    def _delete_a_version(self) -> None:
        """One that nobody should have open any more, if there is one; the last is the project's."""
        now = time.monotonic()
        for name in [name for name, until in list(self._versions.items())[:-1] if until <= now][:1]:
            self._client.call("DELETE", f"{self._path}model-versions/", {"model_version": name})
            del self._versions[name]

    def _pool(self) -> list[int]:
        if len(self._tasks) <= POOL:
            return list(self._tasks)
        kept = [task for task in self._best if task in self._tasks]
        return list(dict.fromkeys([*kept, *self._random.sample(list(self._tasks), POOL - len(kept))]))


def _object(found: object) -> Json:
    return dict(found) if isinstance(found, Mapping) else {}
