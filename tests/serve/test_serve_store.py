"""The store, which is only added to; and group commit: what is acknowledged is written and applied."""

from __future__ import annotations

import contextlib
import sqlite3
import threading

import pytest

from sparsezo.errors import DamagedError, SparsezoError
from sparsezo.serve.store import AuditRow, EventRow, LookRow, PersonRow, QuestionRow, Store, TokenRow, Writer

SECONDS = 30  # after which somebody who waits is taken to wait for ever


class Held:
    """A log whose first transaction takes until it is let go, and then fails or not."""

    def __init__(self, failure: BaseException | None = None) -> None:
        self.failure = failure
        self.begun, self.go = threading.Event(), threading.Event()
        self.added: list[LookRow] = []

    def add(self, rows) -> None:
        self.begun.set()
        assert self.go.wait(SECONDS)
        if self.failure is not None:
            raise self.failure
        self.added += rows


def row(number):
    return LookRow(number, 0.0, 0, "f1", 0.5)


def test_what_waits_is_written_in_one_transaction_and_applied_before_it_is_acknowledged():
    log, applied = Held(), []
    writer = Writer(log, applied.append)
    first = writer.put([row(1)])
    assert log.begun.wait(SECONDS)
    others = [writer.put([row(2)]), writer.put([row(3), row(4)])]
    assert not first.done()
    log.go.set()
    for done in (first, *others):
        done.result(SECONDS)
    assert log.added == [row(1), row(2), row(3), row(4)]
    assert applied == [[row(1)], [row(2), row(3), row(4)]]
    writer.stop()
    with pytest.raises(SparsezoError, match="the session has ended; start it again"):
        writer.put([row(5)])


@pytest.mark.parametrize("where", ["log", "model"])
def test_when_the_log_or_the_model_fails_whoever_is_queued_is_told(where):
    failure = SparsezoError("the disk is full")
    log = Held(failure if where == "log" else None)

    def apply(rows):
        raise failure

    writer = Writer(log, apply)
    first = writer.put([row(1)])
    assert log.begun.wait(SECONDS)
    queued = [writer.put([row(number)]) for number in (2, 3)]  # while the first is being written
    log.go.set()
    for done in (first, *queued):
        with pytest.raises(SparsezoError, match=r"^not saved: the disk is full$"):
            done.result(SECONDS)
    assert log.added == ([] if where == "log" else [row(1)])
    with pytest.raises(SparsezoError, match="the session has ended: the disk is full; start it again"):
        writer.put([row(4)])
    writer.stop()  # which has nothing to wait for


# The file


def a_few(n=4):
    """Rows of every kind, as a session adds them."""
    audit = [AuditRow(k, k, "[0, 0, 0, 0]", "[]") for k in range(n)]
    people = [PersonRow(k, f"P{k}", 0, 0.0) for k in range(1, n + 1)]
    tokens = [TokenRow(k, k, b"hash", 0.0) for k in range(1, n + 1)]
    rows = [QuestionRow(k, 0.0, k, 0, k, "part", "token", "[0, 0, 0, 0]", "[]", 1.0) for k in range(1, n + 1)]
    events = [EventRow(k, 0.0, "answer", k, k, "part", '"yes"', 0.0, 0.0) for k in range(1, n + 1)]
    return [*audit, *people, *tokens, *rows, *events, *(row(k) for k in range(1, n + 1))]


@pytest.fixture
def path(tmp_path):
    with contextlib.closing(Store.create(tmp_path / "log.sqlite", {"id": "made-up"}, a_few())):
        return tmp_path / "log.sqlite"


def test_rows_are_read_as_they_were_added(path):
    with contextlib.closing(Store(path)) as store:
        kinds = (AuditRow, PersonRow, TokenRow, QuestionRow, EventRow, LookRow)
        assert [each for kind in kinds for each in store.rows(kind)] == a_few()
        taken_back = EventRow(5, 1.0, "retraction", 2, 2, "part", undoes=2)
        store.add([taken_back])
        assert store.events(after=3) == [a_few()[-5], taken_back]
        assert [event.seq for event, _ in store.answers()] == [1, 3, 4]
        assert [event.seq for event, _ in store.answers_to_learn(without=3)] == [1, 4]
        assert store.last_event() == 5


def test_what_is_written_is_synced_before_it_is_acknowledged(path):
    with contextlib.closing(Store(path)) as store:
        assert store._writer.execute("PRAGMA synchronous").fetchone() == (2,)
        assert store._writer.execute("PRAGMA journal_mode").fetchone() == ("wal",)


@pytest.mark.parametrize("table", ["events", "questions", "people", "tokens", "audit", "looks", "meta"])
def test_it_refuses_to_be_changed(path, table):
    with contextlib.closing(sqlite3.connect(path)) as log:
        column = [each[1] for each in log.execute(f"PRAGMA table_info({table})")][1]
        for change in (f"UPDATE {table} SET {column} = 7", f"DELETE FROM {table}"):
            with pytest.raises(sqlite3.IntegrityError, match="only added to"):
                log.execute(change)


def test_a_row_that_cannot_be_added_leaves_none_of_its_group(path):
    with contextlib.closing(Store(path)) as store:
        with pytest.raises(SparsezoError):
            store.add([EventRow(5, 0.0, "pause", 0), EventRow(5, 0.0, "pause", 0)])
        assert store.last_event() == 4


@pytest.mark.parametrize(
    ("table", "number", "message"),
    [
        ("events", "seq", "event 3 is missing, though there is 4"),
        ("questions", "id", "question 3 is missing, though there is 4"),
        ("people", "id", "person 3 is missing, though there is 4"),
        ("tokens", "number", "token 3 is missing, though there is 4"),
        ("looks", "number", "look 3 is missing, though there is 4"),
        ("audit", "place", "audited part 2 is missing, though there is 3"),
    ],
)
def test_a_gap_or_a_changed_row_is_refused(path, table, number, message):
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as log:
        for verb in ("delete", "update"):
            log.execute(f"DROP TRIGGER {table}_no_{verb}")
        log.execute(f"DELETE FROM {table} WHERE {number} = {message.split(' is ')[0].split()[-1]}")
        with pytest.raises(DamagedError, match=message):
            Store(path)
        log.execute(f"UPDATE {table} SET sum = 'x' WHERE {number} = 1")
        with pytest.raises(DamagedError, match=f"row 1 of {table} has another check sum"):
            Store(path)


@pytest.mark.parametrize("damage", ["empty", "text", "cut", "version", "gone"])
def test_a_log_that_is_none_is_said_so_in_one_line(path, damage):
    raw = path.read_bytes()
    if damage == "version":
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as log:
            log.execute("DROP TRIGGER meta_no_update")
            log.execute("UPDATE meta SET value = '9' WHERE key = 'version'")
    elif damage == "gone":
        path.unlink()
    else:
        path.write_bytes({"empty": b"", "text": b"hello\n" * 1000, "cut": raw[: len(raw) // 2]}[damage])
    with pytest.raises(SparsezoError) as error:
        Store(path)
    assert "\n" not in str(error.value)


def test_a_log_whose_damage_asks_sqlite_for_endless_memory_is_damaged(tmp_path, monkeypatch):
    path = tmp_path / "log.sqlite"
    Store.create(path, {"id": "made-up"}).close()

    def no_memory(self):
        raise MemoryError

    monkeypatch.setattr(Store, "_connect", no_memory)
    with pytest.raises(DamagedError, match="it asks for more memory than there is"):
        Store(path)
