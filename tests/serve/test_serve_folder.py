"""A session's folder: copies that lack something are refused, with what to do; a backup is whole."""

from __future__ import annotations

import shutil
import sqlite3
import threading

import numpy as np
import pytest
from sessions import answered, opened, same_as_replay, someone, weights

from sparsezo.errors import DamagedError, DataError, SparsezoError, UsageError
from sparsezo.serve import folder as folders
from sparsezo.serve import lessons
from sparsezo.serve.log import Log
from sparsezo.serve.replay import replay

LISTED = ("log.sqlite", "task.szo", "inputs.szo")  # what one takes for the session


def begun(folder):
    with opened(folder):
        pass


def copied(folder, to, *, names=LISTED, snapshots=True):
    """By hand, of some of its files."""
    to.mkdir()
    for name in names:
        shutil.copy(folder / name, to / name)
    for path in folder.glob("*.snapshot") if snapshots else ():
        shutil.copy(path, to / path.name)
    return to


@pytest.fixture
def running(tmp_path):
    """A session whose answers are in the -wal file, with a snapshot of them."""
    with opened(tmp_path / "s") as session:
        ann = someone(session)
        answered(session, ann, 10)
        with session.lock:
            session.lessons.write(session.lessons.snapshot())
        yield session


def test_a_copy_without_the_wal_file_is_refused_and_with_it_is_whole(running, tmp_path):
    without = copied(running.folder, tmp_path / "without", snapshots=False)
    for read in (replay, begun):
        with pytest.raises(DataError, match=r"log\.sqlite-wal, which has its newest answers, is not beside it; copy"):
            read(without)
    whole = copied(running.folder, tmp_path / "whole", names=(*LISTED, "log.sqlite-wal"))
    assert np.array_equal(replay(whole).W, weights(running))
    assert np.array_equal(replay(whole).W, weights(running))  # also once it was opened and closed


def test_what_is_lost_for_good_can_be_gone_on_without(running, tmp_path):
    without = copied(running.folder, tmp_path / "without", snapshots=False)
    (without / "log.sqlite-wal").touch()
    with opened(without) as session:
        assert session.status()["answers"] < 10
        assert same_as_replay(session)
    replay(without)


@pytest.mark.parametrize("version", [None, "0.0.1"])
def test_a_snapshot_ahead_of_its_log_is_refused_and_of_another_log_is_not(running, tmp_path, monkeypatch, version):
    """Here the -wal file is there, and cut."""
    if version is not None:
        monkeypatch.setattr(lessons, "__version__", version)  # which cannot go on from it, but can count
    cut = copied(running.folder, tmp_path / "cut")
    (cut / "log.sqlite-wal").touch()
    for read in (replay, begun):
        with pytest.raises(DataError, match=r"ends at event 0, but 0+10\.snapshot has learned from event 10: answers"):
            read(cut)
    for path in cut.glob("*.snapshot"):
        path.unlink()
    with opened(cut) as session:
        assert session.status()["answers"] == 0
    with opened(tmp_path / "other"):
        pass
    shutil.copy(next(running.folder.glob("*.snapshot")), tmp_path / "other")
    with opened(tmp_path / "other") as session:
        assert session.lessons.count == 0


@pytest.mark.parametrize(
    ("table", "number", "message"),
    [
        ("events", "seq", "event 3 is missing, though there is 4"),
        ("questions", "id", "question 3 is missing, though there is 4"),
        ("people", "id", "person 3 is missing, though there is 4"),
        ("tokens", "number", "token 3 is missing, though there is 4"),
        ("audit", "place", "audited part 3 is missing, though there is 4"),
    ],
)
def test_a_gap_in_the_log_is_refused(tmp_path, table, number, message):
    with opened(tmp_path / "s", audit=5) as session:
        for name in ("Ann", "Bob", "Cid", "Dan"):
            answered(session, someone(session, name), 2)
    path = tmp_path / "s" / "log.sqlite"
    made = sqlite3.connect(path)
    made.execute(f"DROP TRIGGER {table}_no_delete")
    made.execute(f"DELETE FROM {table} WHERE {number} = 3")
    made.commit()
    made.close()
    with pytest.raises(DamagedError, match=message):
        Log(path)


def test_after_every_stop_the_log_is_one_file(running):
    wal = running.log.path.with_name("log.sqlite-wal")
    other = Log(running.log.path)  # a reader that is still there: SQLite would leave the WAL to it
    running.close()
    assert not wal.exists() or wal.stat().st_size == 0
    assert other.last_event() == 10
    other.close()
    assert replay(running.folder).result["answers"] == 10


def test_a_backup_of_a_running_session_is_whole_and_goes_on(running, tmp_path):
    ann = running.persons[1]
    stop = threading.Event()

    def work():
        while not stop.is_set() and running.status()["answers"] < 80:
            answered(running, ann, 1)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        events = folders.backup(running.folder, tmp_path / "deep" / "copy")
    finally:
        stop.set()
        thread.join()
    assert events >= 10
    copy = tmp_path / "deep" / "copy"
    names = {*LISTED, "links.key", *(path.name for path in copy.glob("*.snapshot"))}
    assert {path.name for path in copy.iterdir()} == names
    assert (copy / "links.key").stat().st_mode & 0o077 == 0  # links stay secret, and the same
    assert list(copy.glob("*.snapshot"))
    assert [path.name for path in copy.parent.iterdir()] == ["copy"]
    mine = running.log.events()
    with opened(copy) as session:
        assert session.log.events() == mine[:events]
        assert same_as_replay(session)
        answered(session, session.persons[1], 2)


def test_a_backup_of_a_session_that_was_killed_has_what_is_in_the_wal(running, tmp_path):
    names = (*LISTED, "log.sqlite-wal")
    dead = copied(running.folder, tmp_path / "dead", names=names)
    assert folders.backup(dead, tmp_path / "copy") == 10
    assert np.array_equal(replay(tmp_path / "copy").W, weights(running))


def test_a_backup_goes_to_a_new_folder_and_comes_of_a_session(running, tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").touch()
    with pytest.raises(UsageError, match=r"`backup` .*there: is there already; name a new folder"):
        folders.backup(running.folder, tmp_path / "there")
    with pytest.raises(DataError, match="is no folder of a session"):
        folders.backup(tmp_path / "there", tmp_path / "copy")
    with pytest.raises(SparsezoError, match="cannot be written"):
        folders.backup(running.folder, tmp_path / "there" / "file" / "copy")
    assert not (tmp_path / "copy").exists()
