"""A Label Studio for tests, on loopback: of its API what the client calls, and its choice of the next task."""

from __future__ import annotations

import contextlib
import json
import threading
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

LEGACY, PERSONAL = "legacy0123", "header.personal.signature"


class StandIn:
    """``away``: it answers 502, as a proxy does before a Label Studio that was stopped; ``tokens``: those it knows."""

    def __init__(self):
        self.projects, self.tasks, self.predictions, self.calls = {}, {}, [], []
        self.tokens, self.away, self.access = {f"Token {LEGACY}"}, False, 0
        self.changed = threading.Condition()
        self._annotations = 0

    def _now(self):
        return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")

    def annotate(self, task, result, **rest):
        self._annotations += 1
        made = {"id": self._annotations, "result": result, "completed_by": 7, "was_cancelled": False, "lead_time": 9.0}
        row = self.tasks[task]
        row["annotations"].append({**made, "updated_at": self._now(), **rest})
        row |= {"is_labeled": True, "updated_at": self._now()}
        return self._annotations

    def delete(self, task, annotation):
        row = self.tasks[task]
        row["annotations"] = [each for each in row["annotations"] if each["id"] != annotation]
        row |= {"is_labeled": bool(row["annotations"]), "updated_at": self._now()}

    def scores(self, project):
        """By task, of those that the next task is chosen from."""
        version = self.projects[project]["model_version"]
        found = {each["task"]: each["score"] for each in self.predictions if each["model_version"] == version}
        return {task: score for task, score in found.items() if not self.tasks[task]["is_labeled"]}

    def next(self, project):
        scores = self.scores(project)
        return min(scores, key=scores.get)

    def ranked(self, project):
        return self.projects[project]["model_version"]

    def answer(self, method, url, body, authorization):
        """(status, what it replies)"""
        with self.changed:
            self.calls.append((method, urlsplit(url).path))
            found = self._answer(method, urlsplit(url), body, authorization)
            self.changed.notify_all()
        return found

    def _answer(self, method, parts, body, authorization):
        if self.away:
            return 502, "<html>Bad Gateway</html>"
        if parts.path == "/api/token/refresh/":
            if body != {"refresh": PERSONAL}:
                return 401, {"detail": "Token is invalid"}
            self.access += 1
            self.tokens = {f"Bearer access{self.access}"}  # the one before is too old now
            return 200, {"access": f"access{self.access}"}
        if authorization not in self.tokens:
            return 401, {"detail": "Invalid token."}
        return self._done(method, parts.path.split("/")[2:], body, parse_qs(parts.query))

    def _done(self, method, path, body, query):
        if path[0] == "tasks":
            return 200, self._listed(query)
        if path == ["projects", ""]:
            if method == "POST":
                number = len(self.projects) + 1
                made = {"id": number, "sampling": "Sequential sampling", "model_version": "", **body}
                self.projects[number] = made
                return 201, made
            wanted = query["title"][0]
            return 200, {"results": [each for each in self.projects.values() if wanted in each["title"]]}
        if int(path[1]) not in self.projects:
            return 404, {"detail": "No Project matches the given query."}
        project, what = self.projects[int(path[1])], "/".join(path[2:])
        if (method, what) == ("PATCH", ""):
            version = body.get("model_version")
            if version is not None and version not in {each["model_version"] for each in self.predictions}:
                return 400, {"validation_errors": {"model_version": ["Model version doesn't exist"]}}
            project |= body
        elif what == "import":
            for each in body:
                number = len(self.tasks) + 1
                made = {"id": number, "project": project["id"], "annotations": [], "is_labeled": False, "overlap": 1}
                self.tasks[number] = {**made, **each, "updated_at": self._now()}
        elif what == "import/predictions":
            self.predictions += body
        elif what == "model-versions/" and method == "GET":
            return 200, {each["model_version"]: 1 for each in self.predictions}
        elif what == "model-versions/":
            self.predictions = [each for each in self.predictions if each["model_version"] != body["model_version"]]
        return 200, project

    def _listed(self, query):
        wanted = json.loads(query["query"][0])
        rows = [each for each in self.tasks.values() if str(each["project"]) == query["project"][0]]
        for item in wanted.get("filters", {}).get("items", ()):
            rows = [each for each in rows if each["updated_at"] >= item["value"]]
        rows.sort(key=lambda each: each["updated_at"])
        page, size = int(query["page"][0]), int(query["page_size"][0])
        return {"total": len(rows), "tasks": rows[(page - 1) * size : page * size]}


class _Handler(BaseHTTPRequestHandler):
    def _answer(self):
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        given = json.loads(body) if body else None
        status, found = self.server.studio.answer(self.command, self.path, given, self.headers.get("authorization"))
        said = (found if isinstance(found, str) else json.dumps(found)).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(said)

    do_GET = do_POST = do_PATCH = do_DELETE = _answer  # noqa: N815

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def stand_in():
    """(the Label Studio, its address)"""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.studio = StandIn()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.studio, f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
