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
from sessions import known, opened
from stand_in import StandIn, spans_of

from sparsezo.serve.server import Server
from sparsezo.serve.session import Session
from sparsezo.settings import Settings
from sparsezo.tasks.chunking.io.raw import corpus_of
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.registry import task_spec

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
    "best": {"kinds": "best,pair"},
    "rate": {"kinds": "rate"},
    "sure": {"sure": "q3"},
    "part": {"kinds": "chunk"},
    "span": {"kinds": "span"},
    "strangers": {},
    "reviewMouse": {"kinds": "review"},
    "reviewKeys": {"kinds": "review"},
    "reviewTouch": {"kinds": "review"},
    "reviewUndo": {"kinds": "review"},
    "reviewKept": {"kinds": "review"},
    "reviewDecode": {"kinds": "review"},
    "reviewTorn": {"kinds": "review"},
    "reviewMixed": {"kinds": "review,audit,tags,marked"},
    "reviewOther": {"kinds": "right-to-left,many"},
    "adjudicate": {"kinds": "decision"},
}
SHOTS = {"kinds": "pair,tagged"}  # and a session that is taught for the pictures
ERRORS = {"Ann": 0.03, "Bob": 0.08, "Eve": 0.2}  # of those who teach it


def lacking(what: str) -> None:
    if os.environ.get("SPARSEZO_BROWSER") == "must":
        pytest.fail(f"the browser test needs {what}", pytrace=False)
    pytest.skip(f"the browser test needs {what}; with SPARSEZO_BROWSER=must it is installed, or the test fails")


def run(*words: str, **options) -> subprocess.CompletedProcess:
    return subprocess.run(words, text=True, capture_output=True, timeout=600, check=False, **options)


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
        session.model.warm_up()  # a page waits for an answer to be saved, not for a compiler
        yield session


@pytest.fixture
def reviews(tmp_path):
    with opened(tmp_path / "reviews", given={"rule": "review"}) as session:
        session.model.warm_up()
        yield session


@pytest.fixture
def differing(tmp_path):
    """A session in which two people have reviewed one sentence, and differ."""
    with opened(tmp_path / "differing", given={"rule": "review"}, overlap=1.0) as session:
        session.model.warm_up()
        for name, last in (("Ann", 0), ("Bob", 1)):
            person = session.person(session.add_person(name)["token"])
            question = session.ask(person)[0]
            spans = spans_of([(0, last, question["labels"][0])])
            session.tell(person, question["id"], {"spans": spans, "corrected": [0, 1]})
        yield session


@contextlib.contextmanager
def taught(folder: Path) -> Iterator[Session]:
    """A session about made-up news in which three people, who err as they do, have given 45 answers."""
    news, held = made_news(900, 7), made_news(200, 8)
    raw = corpus_of([replace(each, spans=None) for each in news], "news.txt", language="en")
    task, inputs = Chunking.fit(raw, tags="PER,LOC,ORG", split="sentences", language="en")
    dev = corpus_of(held, "dev", labelled=True, language="en")
    spans = {each.id: each.spans for each in news}
    settings = Settings.complete({"rule": "span", "rater_error": "0.05"}, task.defaults)
    given = {"audit": 100, "audit_whole": 10, "overlap": 0.1, "dev": dev}
    with Session(task_spec("chunking"), task, inputs, settings, folder, **given) as session:
        people = {name: session.person(session.add_person(name)["token"]) for name in ERRORS}
        chance = random.Random(0)
        for _ in range(45):
            name = chance.choice(list(people))
            question = session.ask(people[name])[0]
            answer = known(question, spans[question["shown"]["where"]["document"]])
            if chance.random() < ERRORS[name]:
                others = task.tags if question["kind"] == "label" else ("yes", "O")
                answer = chance.choice([each for each in others if each != answer])
            session.tell(people[name], question["id"], answer, seconds=round(chance.uniform(0.8, 4), 1))
        session.estimate()
        yield session


@contextlib.contextmanager
def untaught(folder: Path) -> Iterator[Session]:
    """A new session about made-up news, by serve's own rule: what somebody sees who has just begun."""
    raw = corpus_of([replace(each, spans=None) for each in made_news(300, 11)], "news.txt", language="en")
    named = "PER=person,LOC=place,ORG=organisation"
    task, inputs = Chunking.fit(raw, tags=named, split="sentences", language="en")
    settings = Settings.complete({"rule": "review"}, task.defaults)
    with Session(task_spec("chunking"), task, inputs, settings, folder) as session:
        session.model.warm_up()
        yield session


class Managed:
    """A session that is served, stopped, and gone on with at the same address; a page asks for it over HTTP."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, 0
        self.start()

    def start(self, new_link: bool = False) -> dict:
        """The session, served; a new link of Ann's is made before anybody can ask by the old one."""
        self.session = opened(self.folder)
        link = self.session.add_person("Ann") if new_link else {}
        self.session.model.warm_up()
        self.server = Server(self.session, port=self.port)
        self.port = self.server.socket.getsockname()[1]
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self.server.socket]})
        self.thread.start()
        return link

    def start_with_a_new_link(self) -> dict:
        return self.start(new_link=True)

    def stop(self) -> dict:
        self.server.should_exit = True
        self.thread.join()
        self.server.socket.close()
        self.session.close()
        return {}

    def answers(self) -> dict:
        """Of each, as the log has them."""
        told = [event.person for event, _ in self.session.store.answers()]
        return {each.name: told.count(each.id) for each in self.session.annotators.people.values()}


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
    links = {name.lower(): made.session.annotators.link(name)["token"] for name in ("Ann", "Bob")}
    yield {"url": f"http://127.0.0.1:{manager.server_port}", **links}, made.server.url
    manager.shutdown()
    thread.join()
    manager.server_close()
    made.stop()


@pytest.fixture
def services(real, reviews, differing, tmp_path):
    """scenario -> (its session, its address)"""
    with contextlib.ExitStack() as stack:
        wanted, more = SITES, {"real": real, "realReview": reviews, "realAdjudicate": differing}
        if os.environ.get("SPARSEZO_SHOTS"):
            wanted = {
                **SITES,
                "shots": SHOTS,
                "reviewShots": {"kinds": "review"},
                "decisionShots": {"kinds": "decision"},
            }
            more["taught"] = stack.enter_context(taught(tmp_path / "taught"))
            more["untaught"] = stack.enter_context(untaught(tmp_path / "untaught"))
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


@pytest.mark.timeout(900)  # on a machine that does other things, too
def test_the_pages_do_what_they_should(programs, modules, services, real, reviews, differing, managed):
    shots = os.environ.get("SPARSEZO_SHOTS")
    given = {
        "modules": str(modules),
        "chromium": programs["chromium"],
        "sites": {name: url for name, (_, url) in services.items()} | {"restarted": managed[1]},
        "managed": managed[0],
        "token": real.add_person("Ann")["token"],
        "reviewer": reviews.add_person("Ann")["token"],
        "decider": differing.add_person("admin", admin=True)["token"],
        **{name: links(services[name][0]) for name in ("taught", "untaught") if name in services},
        "shots": str(Path(shots).resolve()) if shots else None,
    }
    done = run(programs["node"], str(Path(__file__).with_name("run.mjs")), json.dumps(given))
    results = [json.loads(line) for line in done.stdout.splitlines()]
    failed = [f"{each['name']}: {each['error']}" for each in results if each["error"]]
    assert not failed, "\n\n".join(failed)
    assert {each["name"] for each in results} == {*services, "restarted"}, done.stderr[-2000:]
    took = next(each["key_to_next_ms"] for each in results if each["name"] == "reviewKeys")
    sys.stdout.write(f"{took} ms from Enter to the next sentence (median of 20)\n")
    for name, expected in EXPECTED.items():
        found = got(services[name][0])
        assert {key: found[key] for key in expected} == expected, name
    assert any("q3" in call[3] for call in services["sure"][0].calls if call[0] == "ask")
    assert all(0 < call[4] < 60 for call in services["keys"][0].calls if call[0] == "tell")  # seconds
    first, *others = [call[4:7:2] for call in services["reviewMixed"][0].calls if call[0] == "tell"]
    assert 0.1 <= first[1] < first[0]  # seconds, and of these away
    assert [away for _, away in others] == [0.0, 0.0, 0.0]
    assert all(call[4] for call in services["adjudicate"][0].calls if call[0] == "ask")  # only where two differ
    assert not any(call[0] == "decode" for call in services["adjudicate"][0].calls)  # the rest stays as it was left
    once, again = [call for call in services["torn"][0].calls if call[0] == "tell"][:2]
    assert once == again  # what was torn is sent again as it was
    said = [each["answer"] for each in real.recent(real.annotators.people[1]) if not each["retracted"]]
    assert sorted(said) == ["I-NP", "no", "no", "no", "yes"]
    assert differing.status()["adjudication"] | {"agreement": None} == {"waiting": 0, "decided": 1, "agreement": None}
    assert [each["answer"] for each in differing.recent(differing.annotators.people[3]) if not each["retracted"]] == [
        "second"
    ]
    right, corrected = [
        each["answer"] for each in reviews.recent(reviews.annotators.people[1]) if not each["retracted"]
    ]
    assert right == "right"
    assert {"first": 0, "last": 1, "label": "NP"} in corrected["spans"]
    assert corrected["corrected"][:2] == [0, 1]


def reviewed(corrected: list[int], *spans: tuple[int, int, str]) -> dict:
    return {"spans": spans_of(list(spans)), "corrected": corrected}


# What the services got: scenario by scenario

REVIEWED = [  # of the stand-in's sentences, put right
    reviewed([3, 4], (3, 4, "LOC"), (6, 7, "PER"), (10, 10, "LOC")),
    reviewed([3, 4], (0, 1, "ORG"), (3, 4, "ORG"), (6, 7, "PER")),
    reviewed([1, 6, 7, 8], (2, 3, "PER"), (6, 6, "LOC"), (8, 8, "LOC")),
    reviewed([3], (0, 1, "ORG"), (3, 3, "ORG"), (8, 8, "LOC")),
    "right",
]
TAGGED = [(0, 0, "PRON"), (1, 1, "VERB"), (2, 2, "PART"), (3, 3, "VERB"), (4, 4, "PRON")]

NOTHING = {"answers": {}, "skipped": [], "flags": []}
EXPECTED = {
    "keys": {
        "answers": {"q1": "yes", "q2": "no", "q3": "yes", "q4": "no", "q5": "I-NP", "q9": "yes"},
        "skipped": [("q6", "skip"), ("q7", "skip"), ("q8", "cannot-tell")],
    },
    "undo": {
        "retracted": ["q3", "q2", "q4", "q1"],
        "answers": {"q1": "O", "q2": "no", "q3": "no", "q4": "no"},
    },
    "mouse": {
        "answers": {"q1": "yes", "q2": "yes", "q3": "O", "q5": "yes"},
        "skipped": [("q4", "skip"), ("q5", "cannot-tell")],
        "flags": [("q6", "<b>odd</b>")],
        "retracted": ["q5", "q2"],
    },
    "flags": {
        "flags": [("q1", "two words <b>"), ("q2", "")],
        "skipped": [("q1", "skip"), ("q2", "skip")],
        "answers": {},
    },
    "settings": {"said": ["yes", "no"], "skipped": []},
    "labels": {"answers": {"q1": "topic 07", "q2": "topic 19", "q3": "topic 12"}},
    "pair": {"answers": {"q1": "first", "q2": "second", "q3": "tie", "q4": "second"}},
    "best": {"answers": {"q1": "3", "q2": "first", "q3": "4"}},
    "rate": {"said": [1, 5, 4, 2]},
    "torn": {"answers": {"q1": "yes", "q2": "no", "q3": "yes"}, "tells": ["q1", "q1", "q2", "q3"]},  # q1 again
    "refused": {"answers": {"q2": "no", "q3": "no"}},
    "sure": {"answered": ["q1", "q2"]},
    "part": {"answers": {"q1": "PER", "q2": "yes", "q3": "O"}},
    "span": {
        "answers": {
            "q1": "yes",
            "q2": {"first": 3, "last": 4, "label": "LOC"},
            "q3": {"first": 2, "last": 4, "label": "PER"},
            "q4": "O",
            "q5": "no",
            "q6": {"first": 2, "last": 3, "label": "LOC"},
            "q7": "PER",
        }
    },
    "reviewMouse": {"answers": {f"q{k + 1}": REVIEWED[k % 5] for k in range(20)}},
    "reviewKeys": {"answers": {f"q{k + 1}": REVIEWED[k % 5] for k in range(20)}, "skipped": []},
    "reviewTouch": {"answers": {f"q{k + 1}": REVIEWED[k % 5] for k in range(10)}},
    "reviewUndo": {
        "answers": {"q1": reviewed([3], (3, 3, "PER"), (6, 7, "PER"), (10, 10, "LOC")), "q2": REVIEWED[1]},
        "retracted": ["q1", "q1", "q3"],
    },
    "reviewKept": {
        "answers": {"q1": REVIEWED[0], "q5": "right"},
        "skipped": [("q4", "skip")],
    },
    "reviewDecode": {
        "answers": {
            "q1": "right",
            "q2": REVIEWED[1],
            "q3": reviewed([1, 6, 7, 8], (2, 3, "PER"), (6, 6, "LOC")),
            "q4": REVIEWED[3],
        },
    },
    "reviewTorn": {
        "answers": {"q1": REVIEWED[0], "q2": reviewed([3, 4], (0, 1, "ORG"), (3, 4, "ORG"), (6, 7, "ORG"))},
    },
    "reviewOther": {
        "answers": {
            "q1": reviewed([3], (0, 1, "PER"), (3, 3, "LOC")),
            "q2": reviewed([0, 1], (0, 0, "topic 12"), (1, 1, "topic 01")),
        }
    },
    "reviewMixed": {
        "answers": {
            "q1": REVIEWED[0],
            "q2": "LOC",
            "q3": reviewed([1], *TAGGED),
            "q4": reviewed([3], (0, 1, "NAME"), (3, 3, "NAME"), (8, 8, "NAME")),
        }
    },
    "adjudicate": {
        "answers": {
            "q1": "second",
            "q2": reviewed([6, 7], (0, 1, "ORG"), (3, 4, "ORG"), (6, 7, "LOC")),
            "q3": "first",
            "q4": "second",
            "q5": reviewed([3], (3, 3, "ORG"), (6, 7, "PER"), (10, 10, "LOC")),
            "q9": "first",
            "q10": reviewed([6, 7], (0, 1, "ORG"), (3, 4, "ORG")),
        },
        "retracted": ["q4"],
        "skipped": [],
    },
    "help": NOTHING,
    "guidelines": NOTHING,
    "strangers": NOTHING,
}


def got(session: StandIn) -> dict:
    answers = {id: told["answer"] for id, told in session.told.items()}
    tells = [call for call in session.calls if call[0] == "tell"]
    return {
        "answers": answers,
        "answered": list(answers),
        "said": list(answers.values()),
        "tells": [call[2] for call in tells],
        **{name: getattr(session, name) for name in ("skipped", "flags", "retracted")},
    }
