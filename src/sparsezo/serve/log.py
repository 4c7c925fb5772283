"""The log of a session: an SQLite file to which rows are only ever added (WAL, full sync).

    log = Log.create("np.serve/log.sqlite", {"task": "chunking"})
    log.add([question_row, event_row])                  # one transaction, on disk when it returns
    for event in log.events(): ...                      # in the order in which they were applied

Tables are in ``_TABLES``, told column by column in docs/serve.md. Questions and events cannot be changed or deleted:
triggers refuse it, and every row has a check sum. What a session is at any moment is a function of these rows alone.

The newest rows are in ``log.sqlite-wal`` until SQLite moves them over. From the first row that is added until ``close``
the log's ``user_version`` says that such a file belongs to it, so a copy that was made without it is refused.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from sparsezo.errors import DamagedError, DataError, SparsezoError
from sparsezo.questions import Question

VERSION = 1
ANSWER, SKIP, CANNOT_TELL, FLAG = "answer", "skip", "cannot-tell", "flag"
RETRACTION, WITHDRAWAL, LEASE, PAUSE, RESUME, BELIEF = "retraction", "withdrawal", "lease", "pause", "resume", "belief"
MEND = "take a copy of it from before, or start another log"
_WAL = "-wal"
_ALONE, _WITH_WAL = 0, 1  # user_version: whether rows may be in the -wal file
_CLOSING_MS = 5000  # that a close waits for another process that reads

_TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, admin INTEGER NOT NULL, at REAL NOT NULL,
    sum TEXT NOT NULL);
CREATE TABLE tokens (
    number INTEGER PRIMARY KEY, person INTEGER NOT NULL, hash BLOB, at REAL NOT NULL, sum TEXT NOT NULL);
CREATE TABLE audit (place INTEGER PRIMARY KEY, x INTEGER NOT NULL, numbers TEXT NOT NULL, outputs TEXT NOT NULL,
    sum TEXT NOT NULL);
CREATE TABLE questions (
    id INTEGER PRIMARY KEY, at REAL NOT NULL, person INTEGER NOT NULL, step INTEGER NOT NULL, x INTEGER NOT NULL,
    kind TEXT NOT NULL, about TEXT NOT NULL, numbers TEXT NOT NULL, outputs TEXT NOT NULL, chance REAL NOT NULL,
    swapped INTEGER NOT NULL, audit INTEGER, twice INTEGER NOT NULL, again INTEGER, lessons INTEGER NOT NULL,
    believed REAL, sum TEXT NOT NULL);
CREATE TABLE events (
    seq INTEGER PRIMARY KEY, at REAL NOT NULL, what TEXT NOT NULL, person INTEGER NOT NULL, question INTEGER,
    kind TEXT, answer TEXT, e0 REAL, e1 REAL, seconds REAL, nonce TEXT, note TEXT, undoes INTEGER,
    taught REAL, sum TEXT NOT NULL);
CREATE TABLE looks (number INTEGER PRIMARY KEY, at REAL NOT NULL, answers INTEGER NOT NULL, metric TEXT NOT NULL,
    value REAL NOT NULL, sum TEXT NOT NULL);
"""
_FOR_EVER = ("questions", "events", "looks", "audit", "tokens", "people", "meta")


@dataclass(frozen=True, slots=True)
class QuestionRow:
    """A question as it was asked; ``lessons``: how many answers the model had learned from then."""

    id: int
    at: float
    person: int  # the first who was asked
    step: int
    x: int
    kind: str
    about: str
    numbers: str  # JSON
    outputs: str  # JSON
    chance: float
    swapped: int  # pair: 1 where the second output is shown first
    audit: int | None  # the place in the audit set
    twice: int  # 1: to be asked of a second person, too
    again: int | None  # the question that this one repeats, of another person
    lessons: int
    believed: float | None  # the model's probability of what is shown (pair: of the first); audits have none

    table: ClassVar[str] = "questions"

    @classmethod
    def of(cls, question: Question, **own: Any) -> QuestionRow:
        given = question.as_json()
        return cls(
            step=question.step,
            x=question.x,
            kind=question.kind,
            about=question.about,
            numbers=json.dumps(given["numbers"]),
            outputs=json.dumps(given["outputs"]),
            chance=float(question.chance),
            **own,
        )

    def question(self) -> Question:
        """Without choices: the learner that it is told to knows them."""
        outputs = tuple(np.array(each, np.int32) for each in json.loads(self.outputs))
        numbers = tuple(json.loads(self.numbers))
        return Question("", self.step, self.x, self.kind, self.about, numbers, outputs, self.chance, (), ()).frozen()


@dataclass(frozen=True, slots=True)
class EventRow:
    """What a person did. Answers: ``kind`` and ``answer`` (JSON) as they taught, with the errors believed then."""

    seq: int
    at: float
    what: str
    person: int
    question: int | None = None
    kind: str | None = None
    answer: str | None = None
    e0: float | None = None
    e1: float | None = None
    seconds: float | None = None
    nonce: str | None = None
    note: str | None = None
    undoes: int | None = None  # retraction: the event that is taken back
    taught: float | None = None  # rate: the loss that was learned from, the person's own scale taken out

    table: ClassVar[str] = "events"


@dataclass(frozen=True, slots=True)
class PersonRow:
    id: int
    name: str
    admin: int
    at: float

    table: ClassVar[str] = "people"


@dataclass(frozen=True, slots=True)
class TokenRow:
    """The newest of a person counts; None: nobody comes in by it."""

    number: int
    person: int
    hash: bytes | None
    at: float

    table: ClassVar[str] = "tokens"


@dataclass(frozen=True, slots=True)
class AuditRow:
    place: int
    x: int
    numbers: str
    outputs: str

    table: ClassVar[str] = "audit"


@dataclass(frozen=True, slots=True)
class LookRow:
    """How the model did after so many answers."""

    number: int
    at: float
    answers: int
    metric: str
    value: float

    table: ClassVar[str] = "looks"


Row = QuestionRow | EventRow | PersonRow | TokenRow | AuditRow | LookRow


class Log:
    """One writer at a time (``add``); readers have a connection of their own and see what is committed."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise DataError(str(self.path), "there is no log; check the path")
        self._added = False
        with self._ours():
            self._check_wal()
            self._writer, self._reader, self._scanner = self._connect(), self._connect(), self._connect()
            self._writing, self._reading, self._scanning = (threading.Lock() for _ in range(3))
            found = self._writer.execute("PRAGMA quick_check(1)").fetchone()[0]
            if found != "ok":
                raise DamagedError(str(self.path), found, MEND)
            self.meta: dict[str, Any] = {
                key: json.loads(value) for key, value in self._reader.execute("SELECT key, value FROM meta")
            }
            known = self.meta.pop("sum", None)
            if self.meta.get("version") == VERSION and known != _sum("meta", sorted(self.meta.items())):
                raise ValueError("meta has another check sum")
        if self.meta.get("version") != VERSION:
            raise DataError(str(self.path), f"is a log of version {self.meta.get('version')}, not {VERSION}")

        self._check_rows()

    @property
    def _wal(self) -> Path:
        return self.path.with_name(self.path.name + _WAL)

    def _check_wal(self) -> None:
        """Before SQLite opens it and makes an empty one."""
        if self._wal.exists() or _user_version(self.path) != _WITH_WAL:
            return
        raise DataError(
            str(self.path),
            f"was in use, and {self._wal.name}, which has its newest answers, is not beside it; copy that file, too, "
            "or take a backup (serve --backup); if it is lost for good, make an empty file of that name to go on "
            "without those answers",
        )

    def _check_rows(self) -> None:
        """All of them: one that is left out by a damaged word would not be missed otherwise."""
        with self._ours():
            numbered = [
                ("question", 1, [row.id for row in self.questions()]),
                ("event", 1, [row.seq for row in self.events()]),
                ("person", 1, [row.id for row in self.people()]),
                ("token", 1, [row.number for row in self.tokens()]),
                ("audited part", 0, [row.place for row in self.audit()]),
                ("look", 1, [row.number for row in self.looks()]),
            ]
            for name, first, numbers in numbered:
                for expected, number in enumerate(numbers, first):
                    if number != expected:
                        raise ValueError(f"{name} {expected} is missing, though there is {number}")

    def last_event(self) -> int:
        """The number of the newest event, 0 where there is none."""
        with self._ours(), self._reading:
            return int(self._reader.execute("SELECT coalesce(max(seq), 0) FROM events").fetchone()[0])

    @classmethod
    def create(cls, path: str | os.PathLike[str], meta: Mapping[str, Any], rows: Iterable[Row] = ()) -> Log:
        """A new log, whole or not there at all: made under another name first."""
        path = Path(path)
        new = path.with_name(f"{path.name}.new")
        for left in (new, *(new.with_name(new.name + end) for end in ("-wal", "-shm", "-journal"))):
            left.unlink(missing_ok=True)
        try:
            with contextlib.closing(sqlite3.connect(new, isolation_level=None)) as made:
                made.execute("PRAGMA synchronous = FULL")
                made.executescript(f"BEGIN; {_TABLES} {_triggers()}")
                whole = {"version": VERSION, **json.loads(json.dumps(meta))}
                whole["sum"] = _sum("meta", sorted(whole.items()))
                made.executemany("INSERT INTO meta VALUES (?, ?)", [(k, json.dumps(v)) for k, v in whole.items()])
                _insert(made, rows)
                made.execute("COMMIT")
            os.replace(new, path)
        except (sqlite3.Error, OSError) as error:
            raise SparsezoError(f"{path}: cannot be written ({error}); name another place with --log") from None
        return cls(path)

    def _connect(self) -> sqlite3.Connection:
        made = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=30)
        made.execute("PRAGMA journal_mode = WAL")
        made.execute("PRAGMA synchronous = FULL")  # a commit is on disk when it returns
        return made

    @contextlib.contextmanager
    def _ours(self) -> Iterator[None]:
        """What goes wrong with the file itself, in one line."""
        try:
            yield
        except sqlite3.OperationalError as error:
            if str(error).startswith("no such"):
                raise DamagedError(str(self.path), error, MEND) from None
            raise SparsezoError(f"{self.path}: cannot be used ({error}); is there room on the disk?") from None
        except (sqlite3.DatabaseError, ValueError, TypeError) as error:
            raise DamagedError(str(self.path), error, MEND) from None

    def add(self, rows: Iterable[Row]) -> None:
        """All of them in one transaction, or none."""
        with self._ours(), self._writing:
            if not self._added:
                self._mark(_WITH_WAL)
                self._added = True
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                _insert(self._writer, rows)
                self._writer.execute("COMMIT")
            except BaseException:
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                raise

    def _rows(self, made: Any, where: str = "", *values: Any) -> list[Any]:
        names = ", ".join(each.name for each in fields(made))
        first = fields(made)[0].name
        with self._ours(), self._reading:
            found = self._reader.execute(f"SELECT {names}, sum FROM {made.table} {where} ORDER BY {first}", values)
            return [_checked(made, row) for row in found]

    def questions(self) -> list[QuestionRow]:
        return self._rows(QuestionRow)

    def question(self, number: int) -> QuestionRow:
        found: list[QuestionRow] = self._rows(QuestionRow, "WHERE id = ?", number)
        if not found:
            raise DamagedError(str(self.path), f"there is no question {number}", MEND)
        return found[0]

    def events(self, after: int = 0) -> list[EventRow]:
        return self._rows(EventRow, "WHERE seq > ?", after)

    def people(self) -> list[PersonRow]:
        return self._rows(PersonRow)

    def tokens(self) -> list[TokenRow]:
        return self._rows(TokenRow)

    def audit(self) -> list[AuditRow]:
        return self._rows(AuditRow)

    def looks(self) -> list[LookRow]:
        return self._rows(LookRow)

    def answers(self, after: int = 0) -> list[tuple[EventRow, QuestionRow]]:
        """After that event, those that were not taken back, each with its question."""
        names = ", ".join([*(f"e.{each.name}" for each in fields(EventRow)), "e.sum"])
        theirs = ", ".join([*(f"q.{each.name}" for each in fields(QuestionRow)), "q.sum"])
        split = len(fields(EventRow)) + 1
        with self._ours(), self._scanning:  # it may take long, and others read one row at a time meanwhile
            rows = self._scanner.execute(
                f"SELECT {names}, {theirs} FROM events e JOIN questions q ON q.id = e.question WHERE e.what = ? "
                "AND e.seq > ? AND e.seq NOT IN (SELECT undoes FROM events WHERE what = ?) ORDER BY e.seq",
                (ANSWER, after, RETRACTION),
            )
            return [(_checked(EventRow, row[:split]), _checked(QuestionRow, row[split:])) for row in rows]

    def lessons(self, after: int = 0, without: Iterable[int] = ()) -> Iterator[tuple[EventRow, Question]]:
        """What the model learns from: all answers but audits, and those of some people."""
        left_out = set(without)
        for event, row in self.answers(after):
            if row.audit is None and event.person not in left_out:
                yield event, row.question()

    def backup(self, path: str | os.PathLike[str]) -> None:
        """A copy, as of now, that needs no ``-wal`` file; others may write meanwhile."""
        with self._ours(), self._scanning, contextlib.closing(sqlite3.connect(path, isolation_level=None)) as copy:
            self._scanner.backup(copy)
            copy.execute("PRAGMA synchronous = FULL")
            copy.execute(f"PRAGMA user_version = {_ALONE}")

    def _mark(self, version: int) -> None:
        """Into the file itself, past the WAL; where another process reads just now, it waits a little."""
        self._writer.execute(f"PRAGMA user_version = {version}")
        self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """All that was added is in the file itself then, unless another process has it open, too."""
        for each in (self._reader, self._scanner):
            each.close()
        with contextlib.suppress(sqlite3.Error):  # what is in the -wal file is on disk, and the next start finds it
            self._writer.execute(f"PRAGMA busy_timeout = {_CLOSING_MS}")
            if self._added:
                self._mark(_ALONE)
        self._writer.close()
        if not self._wal.exists():  # whoever closes last moves the rows over
            with contextlib.suppress(sqlite3.Error):
                if _user_version(self.path) == _WITH_WAL:
                    with contextlib.closing(sqlite3.connect(self.path, isolation_level=None)) as made:
                        made.execute(f"PRAGMA user_version = {_ALONE}")


def _user_version(path: Path) -> int:
    """As the file itself has it, whatever is in the WAL.

    By SQLite: to open and close the file by hand would drop the locks that this process has on it.
    """
    where = f"{path.resolve().as_uri()}?immutable=1"
    with contextlib.closing(sqlite3.connect(where, uri=True, isolation_level=None)) as made:
        return int(made.execute("PRAGMA user_version").fetchone()[0])


def _insert(connection: sqlite3.Connection, rows: Iterable[Row]) -> None:
    for row in rows:
        given = [(each, getattr(row, each.name)) for each in fields(row)]
        values = [float(value) if "float" in each.type and value is not None else value for each, value in given]
        values.append(_sum(row.table, values))
        connection.execute(f"INSERT INTO {row.table} VALUES ({', '.join('?' * len(values))})", values)


def _sum(table: str, values: Iterable[Any]) -> str:
    """Of a row, which SQLite itself does not check."""
    plain = [value.hex() if isinstance(value, bytes) else value for value in values]
    return hashlib.blake2b(json.dumps([table, *plain]).encode(), digest_size=8).hexdigest()


def _checked(made: Any, row: tuple[Any, ...]) -> Any:
    if _sum(made.table, row[:-1]) != row[-1]:
        raise ValueError(f"row {row[0]!r} of {made.table} has another check sum")
    return made(*row[:-1])


def _triggers() -> str:
    return "\n".join(
        f"CREATE TRIGGER {table}_no_{verb} BEFORE {verb} ON {table} "
        f"BEGIN SELECT RAISE(ABORT, 'the log is only added to'); END;"
        for table in _FOR_EVER
        for verb in ("update", "delete")
    )
