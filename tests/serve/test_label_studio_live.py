"""The real Label Studio, on loopback: a project is made or connected, annotated, learned from and ranked.

It is started from LABEL_STUDIO, the path of its program (in a virtual environment of its own, say), or as it is found.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import pytest
from test_label_studio import CONFIG, TEXTS, opened, result_of

from sparsezo.serve.label_studio import NAME, PREFIX, LabelStudio
from sparsezo.serve.label_studio_client import Client, Sync

pytestmark = pytest.mark.torture
PROGRAM = os.environ.get("LABEL_STUDIO") or shutil.which("label-studio")
TOKEN = "0123456789abcdef0123456789abcdef01234567"


def free_port():
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return made.getsockname()[1]


AS_IT_COMES = {"COLLECT_ANALYTICS": "false", "LATEST_VERSION_CHECK": "false", "SENTRY_DSN": ""}
CALLS_US = {**AS_IT_COMES, "ML_BLOCK_LOCAL_IP": "false", "SSRF_PROTECTION_ENABLED": "false"}


@pytest.fixture
def studio(tmp_path, request):
    """Calls of its API: studio("POST", "/api/projects/", {...})."""
    if PROGRAM is None:
        pytest.skip("label-studio is not installed; LABEL_STUDIO names its program")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    words = ["start", "--no-browser", "--internal-host", "127.0.0.1", "--port", str(port)]
    words += ["--username", "a@example.com", "--password", "secret123", "--user-token", TOKEN]
    words += ["--enable-legacy-api-token", "--data-dir", str(tmp_path / "studio")]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | request.param
    with open(tmp_path / "studio.txt", "wb") as log:
        child = subprocess.Popen([PROGRAM, *words], stdout=log, stderr=log, env=env, cwd=tmp_path)

    def call(method, path, given=None):
        headers = {"Authorization": f"Token {TOKEN}", "Content-Type": "application/json"}
        body = None if given is None else json.dumps(given).encode()
        with urllib.request.urlopen(urllib.request.Request(url + path, body, headers, method=method)) as reply:
            return json.loads(reply.read() or b"null")

    try:
        end = time.monotonic() + 900
        while True:
            try:
                call("GET", "/api/projects/")
                break
            except (urllib.error.URLError, ConnectionError):
                assert time.monotonic() < end
                assert child.poll() is None, (tmp_path / "studio.txt").read_text()[-2000:]
                time.sleep(1)
        call.url = url
        yield call
    finally:
        child.terminate()
        child.wait(60)


@pytest.mark.parametrize("studio", [CALLS_US], indirect=True)
def test_from_an_annotation_to_the_next_prediction(studio, serving, tmp_path):
    with opened(tmp_path / "s") as session:
        serving(session, label_studio=True)
        about = {"title": "News", "label_config": CONFIG, "sampling": "Uncertainty sampling"}
        project = studio("POST", "/api/projects/", about)
        studio("POST", f"/api/projects/{project['id']}/import", [{"data": {"article": text}} for text in TEXTS])
        link = f"{session.url}{PREFIX}{session.annotators.link(NAME)['token']}"
        backend = studio("POST", "/api/ml/", {"project": project["id"], "url": link, "title": "sparsezo"})
        assert backend["state"] == "CO", backend
        listed = studio("GET", f"/api/tasks?project={project['id']}&page_size=100&fields=all")["tasks"]
        tasks = {each["data"]["article"]: each["id"] for each in listed}
        for k in range(15):
            began, count = time.monotonic(), session.model.count
            annotation = {"result": result_of(TEXTS[k]), "lead_time": 9.5}
            studio("POST", f"/api/tasks/{tasks[TEXTS[k]]}/annotations/", annotation)
            while session.model.count < count + 2:
                assert time.monotonic() < began + 60
                time.sleep(0.005)
        assert session.model.count == 30
        chosen = {"selectedItems": {"all": True, "excluded": []}, "ordering": []}
        studio("POST", f"/api/dm/actions?id=retrieve_tasks_predictions&project={project['id']}", chosen)
        found = studio("GET", f"/api/predictions/?project={project['id']}")
        latest = {each["task"]: each for each in found}
        marked = [(each["value"]["text"], each["value"]["labels"][0]) for each in latest[tasks[TEXTS[30]]]["result"]]
        assert marked == [("Ana", "PER"), ("José García", "PER"), ("San Sebastián", "LOC")]
        scores = {task: each["score"] for task, each in latest.items() if task not in {tasks[t] for t in TEXTS[:15]}}
        following = studio("GET", f"/api/projects/{project['id']}/next")
        assert following["id"] == min(scores, key=scores.get)


class Watched(Client):
    """Says when the project has another version of predictions, by which its next task is chosen."""

    def __init__(self, *args):
        super().__init__(*args)
        self.ranked, self.at = threading.Semaphore(0), 0.0

    def call(self, method, path, body=None):
        found = super().call(method, path, body)
        if method == "PATCH" and "model_version" in body:
            self.at = time.monotonic()
            self.ranked.release()
        return found


@pytest.mark.parametrize("studio", [AS_IT_COMES], indirect=True)
def test_from_an_annotation_to_the_queue_that_is_ranked_anew(studio, tmp_path):
    personal = studio("POST", "/api/token/", {})["token"]  # what 1.23 wants unless legacy tokens are enabled
    client = Watched(studio.url, personal)
    with opened(tmp_path / "news.serve") as session, Sync(LabelStudio(session), client) as sync:
        project = studio("GET", "/api/projects/?title=news")["results"][0]["id"]
        assert sync.url == f"{studio.url}/projects/{project}"
        assert client.ranked.acquire(timeout=60)
        tasks = {each["id"]: each["data"]["text"] for each in all_tasks(studio, project)}
        assert sorted(tasks.values()) == sorted(TEXTS)
        took, own, asked = [], [], []
        for k in range(15):
            following = studio("GET", f"/api/projects/{project}/next")
            version = studio("GET", f"/api/projects/{project}/")["model_version"]
            queue = studio("GET", f"/api/predictions/?project={project}")
            scores = {each["task"]: each["score"] for each in queue if each["model_version"] == version}
            assert len(scores) == 10
            assert scores[following["id"]] == min(scores.values())
            asked.append(following["id"])
            began = time.monotonic()
            made = annotate(studio, following["id"], tasks[following["id"]])
            own.append(time.monotonic() - began)
            assert client.ranked.acquire(timeout=60)
            took.append(client.at - began)
            assert session.model.count == 2 * (k + 1)
        median = statistics.median(took)
        said = f"annotation to ranked queue: median {median:.2f} s, {min(took):.2f} to {max(took):.2f} s"
        said += f", of which Label Studio takes {statistics.median(own):.2f} s to accept it"
        sys.stderr.write(f"\n{said}; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")  # pytest -s shows it
        assert len(set(asked)) == 15
        assert median < max(1, 8 * statistics.median(own))  # on a busy machine it is slow by itself
        studio("DELETE", f"/api/annotations/{made['id']}/")
        assert client.ranked.acquire(timeout=60)
        assert session.model.count == 28
    annotate(studio, asked[-1], tasks[asked[-1]])  # while we are away
    with opened(tmp_path / "news.serve") as session, Sync(LabelStudio(session), Client(studio.url, TOKEN)):
        assert session.model.count == 30
        assert len(all_tasks(studio, project)) == len(TEXTS)


def all_tasks(studio, project):
    return studio("GET", f"/api/tasks?project={project}&page_size=100&fields=all")["tasks"]


def annotate(studio, task, text):
    result = [{**each, "from_name": "label", "to_name": "text"} for each in result_of(text)]
    return studio("POST", f"/api/tasks/{task}/annotations/", {"result": result, "lead_time": 9.5})
