"""Killed with -9 at any moment: what was acknowledged is there, once, and the model is that of a replay."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from sessions import opened, same_as_replay, weights

from sparsezo.serve import online_model

PEOPLE = 6
_OURS = Path(__file__).parent


def crowd(folder: str) -> None:
    """People who answer, take back and answer again without end; a line for each thing acknowledged."""
    online_model.ON_DISK = 40  # so that kills hit snapshots, too
    online_model.IN_MEMORY, online_model.SECONDS = 25, 0.0
    session = opened(folder, overlap=0.2, audit=10)
    people = [session.person(session.add_person(f"P{k}")["token"]) for k in range(PEOPLE)]

    def say(what: str, question: str, person: int) -> None:
        os.write(1, f"{what} {question[1:]} {person}\n".encode())

    def work(person, chance):
        while True:
            question = session.ask(person)[0]
            say("answer", session.tell(person, question["id"], chance.choice(["yes", "no", "O"]))["id"], person.id)
            if chance.random() < 0.15:
                say("retraction", session.undo(person)["id"], person.id)

    def guarded(*args):
        with contextlib.suppress(Exception):  # nothing is left to ask: the others go on until the kill
            work(*args)

    threads = [
        threading.Thread(target=guarded, args=(person, random.Random(f"{folder} {k}")), daemon=True)
        for k, person in enumerate(people)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os._exit(0)  # nobody has a question left: ended as by a kill, so that whoever listens does not wait for ever


def killed_after(folder, lines: int) -> list[str]:
    """What such a crowd was told before it was killed."""
    code = f"import sys; sys.path.insert(0, {str(_OURS)!r}); import test_serve_crash as t; t.crowd({str(folder)!r})"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        heard = [process.stdout.readline() for _ in range(lines)]
        process.send_signal(signal.SIGKILL)
        rest = process.stdout.read().splitlines(keepends=True)
    return [line.strip() for line in heard + rest if line.endswith("\n")]


def check(folder, heard: list[str]) -> None:
    with opened(folder) as session:
        events = session.store.events()
        for what in ("answer", "retraction"):
            logged = [f"{what} {event.question} {event.person}" for event in events if event.what == what]
            acknowledged = [line for line in heard if line.startswith(what)]
            assert all(logged.count(line) >= acknowledged.count(line) for line in set(acknowledged))
        standing = [event.question for event, _ in session.store.answers()]
        assert len(standing) == len(set(standing)) == session.queue.answers
        assert same_as_replay(session)
        W = weights(session)
        copy = folder.with_name("copy")  # the same files again, without the snapshot of an orderly end
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(folder, copy)
    with opened(copy) as session:
        assert np.array_equal(W, weights(session))


def kills(folder, seed: int, times: int) -> None:
    chance, heard = random.Random(seed), []
    for _ in range(times):
        heard += killed_after(folder, chance.choice([1, 5, 30, 60, 90]))
        check(folder, heard)
    assert heard


def test_killed_twice_a_session_goes_on_as_if_it_had_not_been(tmp_path):
    kills(tmp_path / "s", 2, 2)


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(5))
def test_killed_ten_times(tmp_path, seed):
    kills(tmp_path / "s", seed, 10)


@pytest.mark.parametrize("seed", range(3))
def test_whatever_remains_of_the_write_ahead_log_is_a_whole_session(tmp_path, seed):
    """As after a power failure: the last bytes never reached the disk."""
    folder = tmp_path / "s"
    with opened(folder, max_ahead=1) as session:
        ann = session.person(session.add_person("Ann")["token"])
        for _ in range(12):
            session.tell(ann, session.ask(ann)[0]["id"], "yes")
        wal = session.store.path.with_name("log.sqlite-wal").read_bytes()
        log = session.store.path.read_bytes()
    chance = random.Random(seed)
    for snapshot in folder.glob("*.snapshot"):
        snapshot.unlink()
    session.store.path.write_bytes(log)
    session.store.path.with_name("log.sqlite-wal").write_bytes(wal[: chance.randrange(len(wal))])
    with opened(folder) as session:
        assert session.queue.answers <= 12
        assert session.model.count == session.queue.answers
        assert same_as_replay(session)
