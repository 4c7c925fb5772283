"""The pages in a real browser: Debian's Chromium, driven by Playwright's core; axe-core looks for barriers.

Both come by npm into pytest's cache, once. In CI (SPARSEZO_BROWSER=must, which .ci/run sets) what is missing is
installed, and a missing browser fails; elsewhere the test is skipped with a line saying what it needs.

    SPARSEZO_SHOTS=docs/images pytest tests/serve/browser       # the pictures of the docs anew
"""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import random
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1]))

from news import made_news
from sessions import opened
from stand_in import StandIn

from sparsezo.serve.server import Server
from sparsezo.serve.session import Session
from sparsezo.settings import Settings
from sparsezo.tasks.chunking.raw import corpus_of
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.registry import kind

PACKAGES = {"playwright-core": "1.65.0", "axe-core": "4.14.0"}
DEBIAN = {"chromium": "chromium", "node": "nodejs", "npm": "npm"}  # program -> its package
GUIDELINES = (
    """# Names

Mark **whole** names, see [the list](https://example.org/list).
Not titles.

## What counts
- people <img src=x onerror=alert(1)>
- places,
  also __rivers__

3. third
4. 2 * 3 ** 4
"""
    + 60 * "\nMore of it.\n"
)
SITES = {  # scenario of run.mjs -> its service
    "torn": {},
    "refused": {},
    "admin": {},
    "narrow": {"kinds": "chunk,pair,tagged,rate,label"},
    "keys": {},
    "undo": {},
    "mouse": {},
    "help": {},
    "flags": {},
    "guidelines": {"guidelines": GUIDELINES},
    "settings": {},
    "labels": {"kinds": "label"},
    "pair": {"kinds": "pair,tagged"},
    "rate": {"kinds": "rate"},
    "sure": {"sure": "q3"},
    "part": {"kinds": "chunk"},
    "span": {"kinds": "span"},
    "strangers": {},
}
SHOTS = {"kinds": "pair,tagged"}  # and a session that is taught for the pictures
ERRORS = {"Ann": 0.03, "Bob": 0.08, "Eve": 0.2}  # of those who teach it


def lacking(what: str) -> None:
    if os.environ.get("SPARSEZO_BROWSER") == "must":
        pytest.fail(f"the browser test needs {what}", pytrace=False)
    pytest.skip(f"the browser test needs {what}; with SPARSEZO_BROWSER=must it is installed, or the test fails")


def run(*words: str, **options) -> subprocess.CompletedProcess:
    return subprocess.run(words, text=True, capture_output=True, timeout=300, check=False, **options)


@pytest.fixture(scope="module")
def programs() -> dict[str, str]:
    """Where they are."""
    missing = [name for name in DEBIAN if shutil.which(name) is None]
    if missing and os.environ.get("SPARSEZO_BROWSER") == "must" and os.geteuid() == 0 and shutil.which("apt-get"):
        packages = [DEBIAN[name] for name in missing]
        run("apt-get", "update", "-qq")
        run("apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages)
        missing = [name for name in DEBIAN if shutil.which(name) is None]
    if missing:
        lacking(" and ".join(missing))
    return {name: str(shutil.which(name)) for name in DEBIAN}


@pytest.fixture(scope="module")
def modules(programs, request) -> Path:
    """A folder with the packages in its node_modules."""
    names = [f"{name}@{version}" for name, version in PACKAGES.items()]
    folder = request.config.cache.mkdir("browser-" + "-".join(PACKAGES.values()))
    if not all((folder / "node_modules" / name / "package.json").exists() for name in PACKAGES):
        quiet = ("--no-save", "--no-audit", "--no-fund", "--ignore-scripts")
        done = run(programs["npm"], "install", *quiet, "--prefix", str(folder), *names, cwd=folder)
        if done.returncode:
            lacking(f"{' and '.join(names)} by npm, which says: {done.stderr.strip()[-300:]}")
    return folder


@pytest.fixture
def real(tmp_path):
    with opened(tmp_path / "session") as session:
        session.warm_up()  # a page waits for an answer to be saved, not for a compiler
        yield session


def truth(question: dict, spans: tuple) -> object:
    """By somebody who knows the spans of the document."""
    shown = question["shown"]
    places, at = [], shown["where"]["start"]
    for word, gap in zip(shown["words"], shown["gaps"], strict=True):
        places.append((at, at + len(word)))
        at += len(word) + len(gap)
    begin, end = places[shown["first"]][0], places[shown["last"]][1]
    found = next((span for span in spans if span.start < end and span.end > begin), None)
    if question["kind"] == "label":
        return "O" if found is None else ("B-" if begin <= found.start < end else "I-") + found.label
    if found is None:
        return "O"
    inside = [k for k, (a, b) in enumerate(places) if a < found.end and b > found.start]
    if (inside[0], inside[-1]) == (shown["first"], shown["last"]):
        return "yes" if shown["tag"][2:] == found.label else found.label
    return {"first": inside[0], "last": inside[-1], "label": found.label}


@contextlib.contextmanager
def taught(folder: Path) -> Iterator[Session]:
    """A session about made-up news in which three people, who err as they do, have given 60 answers."""
    news, held = made_news(900, 7), made_news(200, 8)
    raw = corpus_of([replace(each, spans=None) for each in news], "news.txt", language="en")
    task, inputs = Chunking.fit(raw, tags="PER,LOC,ORG", split="sentences", language="en")
    dev = corpus_of(held, "dev", labelled=True, language="en")
    spans = {each.id: each.spans for each in news}
    settings = Settings.complete({"rule": "span", "rater_error": "0.05"}, task.defaults)
    given = {"audit": 100, "audit_whole": 10, "overlap": 0.1, "dev": dev}
    with Session(kind("chunking"), task, inputs, settings, folder, **given) as session:
        people = {name: session.person(session.add_person(name)["token"]) for name in ERRORS}
        chance = random.Random(0)
        for _ in range(60):
            name = chance.choice(list(people))
            question = session.ask(people[name])[0]
            answer = truth(question, spans[question["shown"]["where"]["document"]])
            if chance.random() < ERRORS[name]:
                others = task.tags if question["kind"] == "label" else ("yes", "O")
                answer = chance.choice([each for each in others if each != answer])
            session.tell(people[name], question["id"], answer, seconds=round(chance.uniform(0.8, 4), 1))
        session._estimate()
        yield session


class Managed:
    """A session that is served, stopped, and gone on with at the same address; a page asks for it over HTTP."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, 0
        self.start()

    def start(self) -> dict:
        self.session = opened(self.folder)
        self.session.warm_up()
        self.server = Server(self.session, port=self.port)
        self.port = self.server.socket.getsockname()[1]
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self.server.socket]})
        self.thread.start()
        return {}

    def start_with_a_new_link(self) -> dict:
        self.start()
        return self.session.add_person("Ann")

    def stop(self) -> dict:
        self.server.should_exit = True
        self.thread.join()
        self.server.socket.close()
        self.session.close()
        return {}

    def answers(self) -> dict:
        """Of each, as the log has them."""
        told = [event.person for event, _ in self.session.log.answers()]
        return {each.name: told.count(each.id) for each in self.session.persons.values()}


@pytest.fixture
def managed(tmp_path):
    """(what a page is given of it, the address of the session)"""
    made = Managed(tmp_path / "managed")

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = json.dumps(getattr(made, self.path[1:].replace("-", "_"))()).encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    manager = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=manager.serve_forever)
    thread.start()
    links = {name.lower(): made.session.link(name)["token"] for name in ("Ann", "Bob")}
    yield {"url": f"http://127.0.0.1:{manager.server_port}", **links}, made.server.url
    manager.shutdown()
    thread.join()
    manager.server_close()
    made.stop()


@pytest.fixture
def services(real, tmp_path):
    """scenario -> (its session, its address)"""
    with contextlib.ExitStack() as stack:
        wanted, more = SITES, {"real": real}
        if os.environ.get("SPARSEZO_SHOTS"):
            wanted = {**SITES, "shots": SHOTS}
            more["taught"] = stack.enter_context(taught(tmp_path / "taught"))
        yield from serving({name: StandIn(**options) for name, options in wanted.items()} | more)


def serving(sessions):
    servers = {name: Server(session) for name, session in sessions.items()}
    threads = [threading.Thread(target=each.run, kwargs={"sockets": [each.socket]}) for each in servers.values()]
    for thread in threads:
        thread.start()
    yield {name: (sessions[name], servers[name].url) for name in sessions}
    for server in servers.values():
        server.should_exit = True
    for thread, server in zip(threads, servers.values(), strict=True):
        thread.join()
        server.socket.close()


def links(session: Session) -> dict[str, str]:
    return {
        "person": session.add_person("Ann")["token"],
        "admin": session.add_person("admin", admin=True)["token"],
    }


def test_the_pages_do_what_they_should(programs, modules, services, real, managed):
    shots = os.environ.get("SPARSEZO_SHOTS")
    given = {
        "modules": str(modules),
        "chromium": programs["chromium"],
        "sites": {name: url for name, (_, url) in services.items()} | {"restarted": managed[1]},
        "managed": managed[0],
        "token": real.add_person("Ann")["token"],
        "taught": links(services["taught"][0]) if "taught" in services else None,
        "shots": str(Path(shots).resolve()) if shots else None,
    }
    done = run(programs["node"], str(Path(__file__).with_name("run.mjs")), json.dumps(given))
    results = [json.loads(line) for line in done.stdout.splitlines()]
    failed = [f"{each['name']}: {each['error']}" for each in results if each["error"]]
    assert not failed, "\n\n".join(failed)
    assert {each["name"] for each in results} == {*services, "restarted"}, done.stderr[-2000:]
    for name, check in CHECKS.items():
        check(services[name][0])
    said = [each["answer"] for each in real.recent(real.persons[1]) if not each["retracted"]]
    assert sorted(said) == ["I-NP", "no", "no", "no", "yes"]


# What the services got: scenario by scenario


def answers(session: StandIn) -> dict[str, object]:
    return {id: told["answer"] for id, told in session.told.items()}


def keys(session: StandIn) -> None:
    assert answers(session) == {"q1": "yes", "q2": "no", "q3": "yes", "q4": "no", "q5": "I-NP", "q9": "yes"}
    assert session.skipped == [("q6", "skip"), ("q7", "skip"), ("q8", "cannot-tell")]
    seconds = [call[4] for call in session.calls if call[0] == "tell"]
    assert all(0 < each < 60 for each in seconds)


def undo(session: StandIn) -> None:
    assert session.retracted == ["q3", "q2", "q4", "q1"]
    assert answers(session) == {"q1": "O", "q2": "no", "q3": "no", "q4": "no"}


def mouse(session: StandIn) -> None:
    assert answers(session) == {"q1": "yes", "q2": "yes", "q3": "O", "q5": "yes"}
    assert session.skipped == [("q4", "skip"), ("q5", "cannot-tell")]
    assert session.flags == [("q6", "<b>odd</b>")]
    assert session.retracted == ["q5", "q2"]


def flags(session: StandIn) -> None:
    assert session.flags == [("q1", "two words <b>"), ("q2", "")]
    assert session.skipped == [("q1", "skip"), ("q2", "skip")]
    assert session.told == {}


def settings(session: StandIn) -> None:
    assert list(answers(session).values()) == ["yes", "no"]
    assert session.skipped == []


def labels(session: StandIn) -> None:
    assert answers(session) == {"q1": "topic 07", "q2": "topic 19", "q3": "topic 12"}


def pair(session: StandIn) -> None:
    assert answers(session) == {"q1": "first", "q2": "second", "q3": "tie", "q4": "second"}


def rate(session: StandIn) -> None:
    assert list(answers(session).values()) == [1, 5, 4, 2]


def torn(session: StandIn) -> None:
    assert answers(session) == {"q1": "yes", "q2": "no", "q3": "yes"}
    tells = [call[2:] for call in session.calls if call[0] == "tell"]
    assert [each[0] for each in tells] == ["q1", "q1", "q2", "q3"]  # q1 again, as it was
    assert tells[0] == tells[1]


def refused(session: StandIn) -> None:
    assert answers(session) == {"q2": "no", "q3": "no"}


def sure(session: StandIn) -> None:
    assert list(answers(session)) == ["q1", "q2"]
    assert any("q3" in call[3] for call in session.calls if call[0] == "ask")


def untouched(session: StandIn) -> None:
    assert (session.told, session.skipped, session.flags) == ({}, [], [])


def part(session: StandIn) -> None:
    assert answers(session) == {"q1": "PER", "q2": "yes", "q3": "O"}


def span(session: StandIn) -> None:
    assert answers(session) == {
        "q1": "yes",
        "q2": {"first": 3, "last": 4, "label": "LOC"},
        "q3": {"first": 2, "last": 4, "label": "PER"},
        "q4": "O",
        "q5": "no",
        "q6": {"first": 2, "last": 3, "label": "LOC"},
        "q7": "PER",
    }


CHECKS = {
    "span": span,
    "keys": keys,
    "undo": undo,
    "mouse": mouse,
    "help": untouched,
    "flags": flags,
    "guidelines": untouched,
    "settings": settings,
    "labels": labels,
    "pair": pair,
    "rate": rate,
    "torn": torn,
    "refused": refused,
    "sure": sure,
    "part": part,
    "strangers": untouched,
}
