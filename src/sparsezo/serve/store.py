"""Where a session's rows are stored: an SQLite file to which they are only ever added (WAL, full sync).

    store = Store.create("np.serve/log.sqlite", {"task": "chunking"})
    store.add([question_row, event_row])                # one transaction, on disk when it returns
    for event in store.events(): ...                    # in the order in which they were applied
    writer = Writer(store, apply)                       # many callers, one transaction for all who wait
    writer.put([row]).result()                          # on disk, and applied

Each table has the fields of its row's class and a check sum; docs/serve.md tells them column by column. Rows cannot be
changed or deleted: triggers refuse it. What a session is at any moment is a function of these rows alone.

The newest rows are in ``log.sqlite-wal`` until SQLite moves them over. From the first row that is added until ``close``
the file's ``user_version`` says that such a file belongs to it, so a copy that was made without it is refused.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, fields
from pathlib import Path
from typing import ClassVar, TypeVar

import numpy as np

from sparsezo.errors import DamagedError, DataError, SparsezoError
from sparsezo.questions import Answer, Question
from sparsezo.storage.fingerprint import fingerprint
from sparsezo.tasks.base import Json

VERSION = 1
ANSWER, SKIP, CANNOT_TELL, FLAG = "answer", "skip", "cannot-tell", "flag"
RETRACTION, WITHDRAWAL, LEASE, PAUSE, RESUME, BELIEF = "retraction", "withdrawal", "lease", "pause", "resume", "belief"
PROGRAM = "program"  # the person is none: audits are not theirs from then on
MEND = "take a copy of it from before, or start another log"
_WAL = "-wal"
_ALONE, _WITH_WAL = 0, 1  # user_version: whether rows may be in the -wal file
_MARKING_SECONDS = 0.5  # that an opening waits for another process that marks the file
_CLOSING_MS = 5000  # that a close waits for another process that reads


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
    swapped: int = 0  # pair: 1 where the second output is shown first
    audit: int | None = None  # the place in the audit set
    twice: int = 0  # 1: to be asked of a second person, too
    again: int | None = None  # the question that this one repeats, of another person
    lessons: int = 0
    believed: float | None = None  # the model's probability of what is shown (pair: of the first); audits have none
    decides: str | None = None  # JSON, of a review that decides where two differ (``Adjudication.new``)

    table: ClassVar[str] = "questions"

    @classmethod
    def of(cls, question: Question, id: int = 0, at: float = 0.0, person: int = 0) -> QuestionRow:
        """The row of a question, without the fields from ``swapped`` on."""
        given = question.as_json()
        numbers, outputs = json.dumps(given["numbers"]), json.dumps(given["outputs"])
        asked = (question.step, question.x, question.kind, question.about, numbers, outputs, float(question.chance))
        return cls(id, at, person, *asked)

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
    away: float | None = None  # of ``seconds``, those in which the page was hidden or without focus

    table: ClassVar[str] = "events"

    def said(self) -> Answer:
        """The answer, as JSON has it; None where there is none."""
        found: Answer = json.loads(self.answer or "null")
        return found

    def to_learn(self) -> Answer:
        """The answer as the model learns from it: a grade without its annotator's own scale."""
        return self.said() if self.taught is None else self.taught


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
    number: int
    at: float
    answers: int
    metric: str
    value: float

    table: ClassVar[str] = "looks"


Row = QuestionRow | EventRow | PersonRow | TokenRow | AuditRow | LookRow
R = TypeVar("R", bound=Row)
_NAMES: dict[type[Row], str] = {  # in a message
    PersonRow: "person",
    TokenRow: "token",
    AuditRow: "audited part",
    QuestionRow: "question",
    EventRow: "event",
    LookRow: "look",
}
_LATER: dict[type[Row], tuple[str, str]] = {  # last columns, which older logs have not
    EventRow: ("away", "REAL"),
    QuestionRow: ("decides", "TEXT"),
}
_TYPES = {"int": "INTEGER", "float": "REAL", "str": "TEXT", "bytes": "BLOB"}


def _tables() -> str:
    """The SQL that makes all tables, to which rows can only be added."""
    made = ["CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"]
    for row in _NAMES:
        key, *columns = [
            f"{each.name} {_TYPES[each.type.split()[0]]}{'' if 'None' in each.type else ' NOT NULL'}"
            for each in fields(row)
        ]
        made.append(f"CREATE TABLE {row.table} ({key} PRIMARY KEY, {', '.join(columns)}, sum TEXT NOT NULL);")
    for table in ("meta", *(row.table for row in _NAMES)):
        for verb in ("update", "delete"):
            refused = "BEGIN SELECT RAISE(ABORT, 'the log is only added to'); END;"
            made.append(f"CREATE TRIGGER {table}_no_{verb} BEFORE {verb} ON {table} {refused}")
    return " ".join(made).replace("name TEXT NOT NULL", "name TEXT NOT NULL UNIQUE")


class Store:
    """One writer at a time (``add``); readers have a connection of their own and see what is committed."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise DataError(str(self.path), "there is no log; check the path")
        self._added = False
        with self._ours():
            self._check_wal()
            self._writer, self._reader, self._scanner = self._connect(), self._connect(), self._connect()
            for made, (name, sql) in _LATER.items():  # of a session that was made before there was such a column
                columns = [column for _, column, *_ in self._writer.execute(f"PRAGMA table_info({made.table})")]
                if columns and name not in columns:
                    self._writer.execute(f"ALTER TABLE {made.table} ADD COLUMN {name} {sql}")
            self._writing, self._reading, self._scanning = (threading.Lock() for _ in range(3))
            found = self._writer.execute("PRAGMA quick_check(1)").fetchone()[0]
            if found != "ok":
                raise DamagedError(str(self.path), found, MEND)
            self.meta: Json = {
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
        """Before SQLite opens it and makes an empty one.

        A process that begins with the log, or closes it, may be between the mark and the file: that is soon over.
        """
        until = time.monotonic() + _MARKING_SECONDS
        while not self._wal.exists() and _user_version(self.path) == _WITH_WAL:
            if time.monotonic() > until:
                raise DataError(
                    str(self.path),
                    f"was in use, and {self._wal.name}, which has its newest answers, is not beside it; copy that "
                    "file, too, or take a backup (serve --backup); if it is lost for good, make an empty file of that "
                    "name to go on without those answers",
                )
            time.sleep(_MARKING_SECONDS / 20)

    def _check_rows(self) -> None:
        """All of them: one that is left out by a damaged word would not be missed otherwise."""
        with self._ours():
            for made, name in _NAMES.items():
                for expected, row in enumerate(self.rows(made), 0 if made is AuditRow else 1):
                    if (number := getattr(row, fields(made)[0].name)) != expected:
                        raise ValueError(f"{name} {expected} is missing, though there is {number}")

    def last_event(self) -> int:
        with self._ours(), self._reading:
            return int(self._reader.execute("SELECT coalesce(max(seq), 0) FROM events").fetchone()[0])

    @classmethod
    def create(cls, path: str | os.PathLike[str], meta: Mapping[str, object], rows: Iterable[Row] = ()) -> Store:
        """A new log, whole or not there at all: made under another name first."""
        path = Path(path)
        new = path.with_name(f"{path.name}.new")
        for left in (new, *(new.with_name(new.name + end) for end in ("-wal", "-shm", "-journal"))):
            left.unlink(missing_ok=True)
        try:
            with contextlib.closing(sqlite3.connect(new, isolation_level=None)) as made:
                made.execute("PRAGMA synchronous = FULL")
                made.executescript(f"BEGIN; {_tables()}")
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
        except MemoryError:  # SQLite believes the sizes that a damaged page names
            raise DamagedError(str(self.path), "it asks for more memory than there is", MEND) from None

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

    def rows(self, made: type[R], where: str = "", *values: object) -> list[R]:
        """All rows of one kind, in order: ``store.rows(PersonRow)``."""
        names = [each.name for each in fields(made)]
        chosen = f"SELECT {', '.join(names)}, sum FROM {made.table} {where} ORDER BY {names[0]}"
        with self._ours(), self._reading:
            return [_checked(made, row) for row in self._reader.execute(chosen, values)]

    def question(self, number: int) -> QuestionRow:
        found = self.rows(QuestionRow, "WHERE id = ?", number)
        if not found:
            raise DamagedError(str(self.path), f"there is no question {number}", MEND)
        return found[0]

    def events(self, after: int = 0) -> list[EventRow]:
        """What people did after that event, in the order in which it was applied."""
        return self.rows(EventRow, "WHERE seq > ?", after)

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

    def answers_to_learn(self, after: int = 0, without: int | None = None) -> Iterator[tuple[EventRow, QuestionRow]]:
        """What the model learns from: all answers but audits, and those of one annotator."""
        for event, row in self.answers(after):
            if row.audit is None and event.person != without:
                yield event, row

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
        values.append(_row_sum(type(row), values))
        names = ", ".join([*(each.name for each, _ in given), "sum"])
        connection.execute(f"INSERT INTO {row.table} ({names}) VALUES ({', '.join('?' * len(values))})", values)


def _row_sum(made: type[R], values: Sequence[object]) -> str:
    """Without the column of ``_LATER`` where it says nothing: rows from before there was such a one have none."""
    return _sum(made.table, values[:-1] if made in _LATER and values[-1] is None else values)


def _sum(table: str, values: Iterable[object]) -> str:
    """Of a row, which SQLite itself does not check."""
    plain = [value.hex() if isinstance(value, bytes) else value for value in values]
    return fingerprint(json.dumps([table, *plain]), size=8)


def _checked(made: type[R], row: Sequence[object]) -> R:
    if _row_sum(made, row[:-1]) != row[-1]:
        raise ValueError(f"row {row[0]!r} of {made.table} has another check sum")
    return made(*row[:-1])  # type: ignore[arg-type]


class Writer:
    """Group commit: what has gathered goes to disk in one transaction, then to the model, and only then is it
    acknowledged.

    Rows are put under the session's lock, so the store has them in the order in which the session took them. A store
    that cannot be written, or a model that cannot be gone on with, ends it: everything waiting and to come gets the
    reason.
    """

    def __init__(self, store: Store, apply: Callable[[Sequence[Row]], None]) -> None:
        self._store, self._apply = store, apply
        self._waiting: list[tuple[Sequence[Row], Future[None]]] = []
        self._wake = threading.Condition()
        self._stopping = False
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="sparsezo log", daemon=True)
        self._thread.start()

    def put(self, rows: Sequence[Row]) -> Future[None]:
        """Done when these and all before them are on disk and applied."""
        done: Future[None] = Future()
        with self._wake:
            self.check()
            self._waiting.append((rows, done))
            self._wake.notify()
        return done

    def check(self) -> None:
        """Raises where nothing more can be written."""
        if self.failure is not None:
            raise SparsezoError(f"the session has ended: {self.failure}; start it again")
        if self._stopping:
            raise SparsezoError("the session has ended; start it again")

    def _work(self) -> None:
        while True:
            with self._wake:
                self._wake.wait_for(lambda: self._waiting or self._stopping)
                batch, self._waiting = self._waiting, []
                if not batch:
                    return
            rows = [row for each, _ in batch for row in each]
            try:
                self._store.add(rows)
                self._apply(rows)
            except BaseException as error:
                with self._wake:
                    self.failure = error
                    batch, self._waiting = batch + self._waiting, []
                for _, done in batch:
                    done.set_exception(SparsezoError(f"not saved: {error}"))
                return
            for _, done in batch:
                done.set_result(None)

    def stop(self) -> None:
        """When all that was put is written."""
        with self._wake:
            self._stopping = True
            self._wake.notify()
        self._thread.join()
