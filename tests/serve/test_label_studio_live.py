"""The real Label Studio, on loopback: a project is connected, annotated, learned from and ranked.

It is started from LABEL_STUDIO, the path of its program (in a virtual environment of its own, say), or as it is found.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request

import pytest
from test_label_studio import CONFIG, TEXTS, opened, result_of

from sparsezo.serve.label_studio import NAME, PREFIX

pytestmark = pytest.mark.torture
PROGRAM = os.environ.get("LABEL_STUDIO") or shutil.which("label-studio")
TOKEN = "0123456789abcdef0123456789abcdef01234567"


def free_port():
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return made.getsockname()[1]


@pytest.fixture
def studio(tmp_path):
    """Calls of its API: studio("POST", "/api/projects/", {...})."""
    if PROGRAM is None:
        pytest.skip("label-studio is not installed; LABEL_STUDIO names its program")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    words = ["start", "--no-browser", "--internal-host", "127.0.0.1", "--port", str(port)]
    words += ["--username", "a@example.com", "--password", "secret123", "--user-token", TOKEN]
    words += ["--enable-legacy-api-token", "--data-dir", str(tmp_path / "studio")]
    own = {
        "COLLECT_ANALYTICS": "false",
        "LATEST_VERSION_CHECK": "false",
        "SENTRY_DSN": "",
        "ML_BLOCK_LOCAL_IP": "false",
        "SSRF_PROTECTION_ENABLED": "false",
    }
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | own
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
        yield call
    finally:
        child.terminate()
        child.wait(60)


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
