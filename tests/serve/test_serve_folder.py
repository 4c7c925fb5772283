"""A session's folder: copies that lack something are refused, with what to do; a backup is whole."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import threading

import numpy as np
import pytest
from sessions import answered, opened, same_as_replay, someone, weights

from sparsezo.errors import DataError, SparsezoError, UsageError
from sparsezo.serve import folder as folders
from sparsezo.serve import online_model, store
from sparsezo.serve.online_model import replay
from sparsezo.serve.store import Store

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
        session.model.save()
        yield session


def test_a_copy_without_the_wal_file_is_refused_and_with_it_is_whole(running, tmp_path):
    without = copied(running.folder, tmp_path / "without", snapshots=False)
    for read in (replay, begun):
        with pytest.raises(DataError, match=r"log\.sqlite-wal, which has its newest answers, is not beside it; copy"):
            read(without)
    whole = copied(running.folder, tmp_path / "whole", names=(*LISTED, "log.sqlite-wal"))
    assert np.array_equal(replay(whole).W, weights(running))
    assert np.array_equal(replay(whole).W, weights(running))  # also once it was opened and closed


@pytest.mark.parametrize("moved", [True, False], ids=["closing", "opening"])
def test_a_log_that_another_process_is_just_opening_or_closing_is_not_refused(running, tmp_path, monkeypatch, moved):
    """Between the file's mark and the -wal file it looks like a copy that lacks something."""
    name = "log.sqlite-wal"
    whole = copied(running.folder, tmp_path / "whole", names=(*LISTED, name))
    os.rename(whole / name, tmp_path / name)

    def meanwhile(_seconds):
        os.rename(tmp_path / name, whole / name)
        if moved:
            with contextlib.closing(sqlite3.connect(whole / "log.sqlite")) as other:
                other.execute("PRAGMA user_version = 0")
        assert (whole / name).exists() != moved

    monkeypatch.setattr(store.time, "sleep", meanwhile)
    assert np.array_equal(replay(whole).W, weights(running))


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
        monkeypatch.setattr(online_model, "__version__", version)  # which cannot go on from it, but can count
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
        assert session.model.count == 0


def test_after_every_stop_the_log_is_one_file(running):
    wal = running.store.path.with_name("log.sqlite-wal")
    other = Store(running.store.path)  # a reader that is still there: SQLite would leave the WAL to it
    running.close()
    assert not wal.exists() or wal.stat().st_size == 0
    assert other.last_event() == 10
    other.close()
    assert replay(running.folder).result["answers"] == 10


def test_a_backup_of_a_running_session_is_whole_and_goes_on(running, tmp_path):
    ann = running.annotators.people[1]
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
    mine = running.store.events()
    with opened(copy) as session:
        assert session.store.events() == mine[:events]
        assert same_as_replay(session)
        answered(session, session.annotators.people[1], 2)


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
    with pytest.raises(DataError, match="there is no log; check the path"):
        folders.backup(tmp_path / "there", tmp_path / "copy")
    with pytest.raises(SparsezoError, match="cannot be written"):
        folders.backup(running.folder, tmp_path / "there" / "file" / "copy")
    assert not (tmp_path / "copy").exists()
