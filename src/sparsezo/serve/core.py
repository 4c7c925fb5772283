"""What a session is made of and how it starts, stops and writes: folder, log, learner, people. See ``session``."""

from __future__ import annotations

import contextlib
import hmac
import json
import random
import secrets
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sparsezo.decoding import Decoder
from sparsezo.errors import SparsezoError, UsageError
from sparsezo.learner import Learner
from sparsezo.questions import Question
from sparsezo.raters import checked_error, parse_error
from sparsezo.rules import RULES
from sparsezo.serve import folder as folders
from sparsezo.serve import tokens
from sparsezo.serve.choosing import Chooser, alternately
from sparsezo.serve.desk import Desk, Entry
from sparsezo.serve.errors import Refused
from sparsezo.serve.folder import Contents
from sparsezo.serve.grades import Grades
from sparsezo.serve.lessons import Lessons, Snapshot
from sparsezo.serve.log import (
    BELIEF,
    FLAG,
    PAUSE,
    RESUME,
    RETRACTION,
    AuditRow,
    EventRow,
    Log,
    LookRow,
    PersonRow,
    Row,
    TokenRow,
)
from sparsezo.serve.options import LEASE_SECONDS, MAX_AHEAD
from sparsezo.serve.tokens import Person
from sparsezo.serve.watching import AUDITED, Watch
from sparsezo.serve.wording import number_of
from sparsezo.serve.writer import Writer
from sparsezo.settings import Settings
from sparsezo.storage.files import write_text
from sparsezo.storage.locks import locked
from sparsezo.tasks.kind import TaskKind

GUIDELINES = "guidelines.md"


class Core:
    def __init__(
        self,
        kind: TaskKind,
        task: Any,
        data: Any,
        settings: Settings,
        log_path: str | Path,
        *,
        W: NDArray[Any] | None = None,
        dev: Any = None,
        audit: int = 0,
        audit_whole: int = 0,
        overlap: float = 0.0,
        lease_seconds: float = LEASE_SECONDS,
        max_ahead: int = MAX_AHEAD,
        source: Sequence[str] | None = None,
        about: Mapping[str, Any] | None = None,
        audit_set: Sequence[AuditRow] | None = None,
        answered: Collection[int] = (),
        clock: Callable[[], float] = time.time,
    ) -> None:
        """``audit_set``: of a new session, one that was drawn before; ``about`` then has the numbers that go with it.

        ``answered``: inputs that the weights to start from have learned from, which are not audited.
        """
        if RULES[settings.rule].asks:
            settings = replace(settings, rehearse=0)  # an answer taken back would cost all that was gone over since
        self.contents = Contents(kind, task, data, settings, W)
        self.folder = Path(log_path)
        self.source, self.clock = source, clock
        self.lease_seconds, self.max_ahead = lease_seconds, max_ahead
        self.lock = threading.RLock()
        _check(self.contents, overlap, source)
        problem = task.problem(data, asks=True)
        self.offered = problem.questions
        self.learner = Learner(problem, settings, W)  # what does not go together is refused before a log is made
        with contextlib.ExitStack() as held:
            self.log = self._opened(held, (audit, audit_whole, answered), audit_set, overlap, about or {})
            held.callback(self.log.close)
            self._start(dev)
            held.callback(self._stop)
            self._held = held.pop_all()

    def _opened(
        self,
        held: contextlib.ExitStack,
        audits: tuple[int, int, Collection[int]],
        audit_set: Sequence[AuditRow] | None,
        overlap: float,
        about: Mapping[str, Any],
    ) -> Log:
        contents = self.contents
        self.folder.mkdir(parents=True, exist_ok=True)
        held.enter_context(locked(self.folder, "is serving from it", option="`log`"))
        if not folders.is_log(self.folder):
            drawn, rows = _drawn_audits(contents, *audits) if audit_set is None else ({}, list(audit_set))
            meta = {**drawn, "overlap": overlap, "made": self.clock(), **about}
            return folders.make(self.folder, contents, meta, rows)
        log = folders.open_log(self.folder)
        if log.meta["known_by"] != folders.identity(contents):
            log.close()
            raise UsageError(
                f"{self.folder}: is the log of another task, other inputs, settings or another start; name another"
            )
        return log

    def _start(self, dev: Any) -> None:
        contents, log = self.contents, self.log
        until = self.clock() + self.lease_seconds
        self.desk = Desk(log, until)
        self.lessons = Lessons(self.learner, log, contents.W, self.folder, self.desk.question)
        for number in list(self.desk.entries):
            self.desk.release(number)
        own = (contents.serving.AUDIT, float(log.meta["overlap"]), self._suggested())
        audit = alternately(log.audit(), log.meta.get("audit_parts"))
        self.chooser = Chooser(self.learner, self.desk, audit, *own, self._sensible)
        self.chooser.go_on_from(max((row.step for row in log.questions()), default=-1) + 1)
        self.persons = {row.id: Person(row.id, row.name, bool(row.admin)) for row in log.people()}
        self._key = tokens.session_key(self.folder)
        self._guidelines: str | None = None
        if (self.folder / GUIDELINES).is_file():
            self._guidelines = (self.folder / GUIDELINES).read_text("utf-8", "replace")
        self._tokens: dict[int, TokenRow] = {}
        self._replaced: list[bytes] = []
        for row in log.tokens():
            self._take_token(row)
        self._replies: dict[int, tuple[Future[None], dict[str, Any]]] = {}
        self.beliefs: dict[int, tuple[float, float]] = {}
        self._flags: list[EventRow] = []
        self.grades = Grades()
        self.paused = self._writing = False
        for event in log.events():
            self._heed(event)
        self._looks = len(log.looks())
        self._background = ThreadPoolExecutor(1, "sparsezo snapshots")
        self._reserved: Future[None] | None = None  # with the first answer: who only looks takes no memory
        self._writer = Writer(log, self._apply)
        self.decoder = Decoder(self.learner.problem)
        named = contents.task.metric == contents.kind.metric
        metric = contents.kind.metric_name if named else contents.task.metric
        if dev is None and all(look.metric != metric for look in log.looks()):
            metric = AUDITED
        self.watch = Watch(contents.task, metric, dev, log.looks(), self._weights, self._look, self._estimate)

    def _suggested(self) -> list[tuple[int, list[int]]]:
        """What the inputs came with, to be asked about first."""
        contents = self.contents
        if contents.settings.rule != "span" or not hasattr(contents.serving, "suggested"):
            return []
        found: list[tuple[int, list[int]]] = contents.serving.suggested(contents.task, contents.data)
        return found

    def _sensible(self, question: Question) -> bool:
        serving = self.contents.serving
        return not hasattr(serving, "sensible") or bool(serving.sensible(self.contents.data, question))

    def warm_up(self) -> None:
        """Load what is compiled, or compile it, so that the first who asks or answers does not wait for it."""
        with self.lock:
            question = self.learner.ask()
            self.learner.unask(question)
            answer = next(iter(self.offered[question.kind, question.about] or {0.0: 0}))
            self.learner.probability(question, answer)
            self.decoder.one(self.learner.state.W, question.x)
            Learner(self.learner.problem, self.learner.settings).learn_from(question, answer)  # which nobody keeps

    # Leaving

    def _stop(self) -> None:
        self.watch.stop()
        self._writer.stop()
        self._background.shutdown()
        if self._writer.failure is None and self.lessons.behind:
            self.lessons.write(self.lessons.snapshot())

    def close(self) -> None:
        """When all that was told is written; the next start is from a snapshot."""
        self._held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # People

    def person(self, token: object) -> Person | None:
        hashes = {number: row.hash for number, row in self._tokens.items() if row.hash is not None}
        return tokens.found(token, self.persons, hashes)

    def was_replaced(self, token: object) -> bool:
        """Whether it was once the token of a person who has another one now."""
        return tokens.is_among(token, self._replaced)

    def identity(self, person: Person) -> dict[str, Any]:
        """Which session this is, and who asks: the same whatever link they came by."""
        return {"session": self.log.meta["id"], "person": person.id, "name": person.name}

    def link(self, name: str, *, admin: bool = False) -> dict[str, Any]:
        """A person's link as it is, a first one for somebody new: {id, name, token}. The token is None where it cannot
        be shown again: it was made with another key than the folder has now.
        """
        name = tokens.checked_name(name, admin=admin)
        with self.lock:
            known = self._named(name, admin)
            made = None if known is None else self._tokens.get(known.id)
        if known is None or made is None:
            return self.add_person(name, admin=admin)
        token = tokens.token_of(self._key, known.id, made.number)
        same = made.hash is not None and hmac.compare_digest(tokens.hash_of(token), made.hash)
        return {"id": known.id, "name": known.name, "token": token if same else None}

    def add_person(self, name: str, *, admin: bool = False) -> dict[str, Any]:
        """A new one, or a new link for one who is known: the old one is of no use then, and says so."""
        name = tokens.checked_name(name, admin=admin)
        with self.lock:
            known = self._named(name, admin)
            rows: list[Row] = []
            if known is None:
                known = Person(max(self.persons, default=0) + 1, name, admin)
                rows.append(PersonRow(known.id, name, int(admin), self.clock()))
            number = 1 + max((row.number for row in self._tokens.values()), default=0)
            token = tokens.token_of(self._key, known.id, number)
            made = TokenRow(number, known.id, tokens.hash_of(token), self.clock())
            done = self._writer.put([*rows, made])
            self.persons = {**self.persons, known.id: known}
            self._take_token(made)
        done.result()
        return {"id": known.id, "name": known.name, "token": token}

    def _named(self, name: str, admin: bool) -> Person | None:
        known = next((each for each in self.persons.values() if each.name == name), None)
        if known is not None and known.admin != admin:
            whose = "the administrator's" if known.admin else "that of a person who answers"
            raise UsageError(f"name {name!r}: is {whose}; take another name")
        return known

    def _take_token(self, row: TokenRow) -> None:
        """The newest of a person counts; of those before it is known that they were."""
        before = self._tokens.get(row.person)
        if before is not None and before.hash is not None:
            self._replaced = [*self._replaced, before.hash]
        self._tokens = {**self._tokens, row.person: row}

    @property
    def guidelines(self) -> str | None:
        """How to answer, in Markdown, as whoever runs the session says it; None where nothing is said."""
        return self._guidelines

    def set_guidelines(self, text: str) -> None:
        """For all who answer, from now on; kept in the session's folder."""
        write_text(self.folder / GUIDELINES, text)
        self._guidelines = text

    def believe(self, person: int, e0: float, e1: float) -> None:
        """How often a person errs, for the answers to come: (a yes that is wrong, a no that is wrong)."""
        error = checked_error("part", e0, e1)
        with self.lock:
            done = self._put(self._event(BELIEF, person, e0=error[0], e1=error[1]))
        done.result()

    def error_of(self, person: int, kind: str) -> tuple[float, float]:
        """What is believed of a person's answers of this kind; only yes and no have two rates."""
        e0, e1 = self.beliefs.get(person, parse_error(self.contents.settings.rater_error))
        if kind == "rate":
            return 0.0, 0.0
        return (e0, e1) if kind == "part" else ((e0 + e1) / 2, (e0 + e1) / 2)

    # Events

    def _entry(self, id: str) -> Entry:
        entry = self.desk.entries.get(number_of(id))
        if entry is None:
            raise Refused(f"there is no question {id}", "unknown-question")
        return entry

    def _event(self, what: str, person: int, question: int | None = None, **rest: Any) -> EventRow:
        return EventRow(self.desk.last_event + 1, self.clock(), what, person, question, **rest)

    def _put(self, event: EventRow) -> Future[None]:
        return self._writer.put([self._noted(event)])

    def _noted(self, event: EventRow) -> EventRow:
        """What follows from an event at once; the model follows when it is on disk."""
        self.desk.take(event, self.clock() + self.lease_seconds)
        self._heed(event)
        return event

    def _heed(self, event: EventRow) -> None:
        if event.what in (PAUSE, RESUME):
            self.paused = event.what == PAUSE
        elif event.what == FLAG:
            self._flags.append(event)
        elif event.kind == "rate":
            self._grade(event)
        elif event.what == BELIEF and event.e0 is not None and event.e1 is not None:
            self.beliefs[event.person] = event.e0, event.e1

    def _grade(self, event: EventRow) -> None:
        """A person's grades so far, those taken back left out."""
        said = event
        if event.what == RETRACTION:
            said = next(each for each in reversed(self.desk.history[event.person]) if each.seq == event.undoes)
        self.grades.add(event.person, float(json.loads(said.answer or "0")), 1 if said is event else -1)

    def _apply(self, rows: Sequence[Row]) -> None:
        """Rows that are on disk now: the model learns from them."""
        with self.lock:
            self.lessons.apply(rows, self.desk.is_audit)
            for row in rows:
                if isinstance(row, EventRow) and row.question is not None:
                    self.desk.release(row.question)
            if self._reserved is None:
                self._reserved = self._background.submit(self.lessons.reserve)
            if self.lessons.due and not self._writing:
                self._writing = True
                self._background.submit(self._write, self.lessons.snapshot())

            self.watch.answered(self.lessons.count)

    def _weights(self) -> tuple[int, NDArray[Any]]:
        room = np.empty_like(self.learner.state.W)
        room.fill(0)  # new memory is slow at first, and nobody should wait for that
        with self.lock:
            np.copyto(room, self.learner.state.W)
            return self.lessons.count, room

    def _look(self, answers: int, metric: str, value: float) -> None:
        with self.lock:
            self._looks += 1
            self._writer.put([LookRow(self._looks, self.clock(), answers, metric, value)])

    def _estimate(self) -> float | None:
        """What ``reports`` finds out between looks."""
        return None

    def _write(self, taken: Snapshot) -> None:
        """Behind everybody's back; where it fails, the next start has more to go over, and that is all."""
        with contextlib.suppress(SparsezoError):
            self.lessons.write(taken)
        self._writing = False


def _check(contents: Contents, overlap: float, source: Sequence[str] | None) -> None:
    settings, n = contents.settings, len(contents.data)
    if not RULES[settings.rule].asks:
        raise UsageError(f"rule {settings.rule} asks no questions of people; use {', '.join(contents.kind.asks)}")
    if not 0 <= overlap <= 1:
        raise UsageError(f"`overlap` {overlap}: give a share from 0 to 1")
    if source is not None and len(source) != n:
        raise UsageError(f"`source` has {len(source):,} lines for {n:,} {contents.kind.inputs}; give one for each")


Part = tuple[int, list[int], list[Any]]  # of the audit set: input, a question's numbers, outputs


def _drawn_audits(
    contents: Contents, audit: int, whole: int, answered: Collection[int]
) -> tuple[dict[str, Any], list[AuditRow]]:
    """(what the log says of them, the audit set)"""
    seed = secrets.randbits(32)
    chance = random.Random(seed)
    parts = _drawn_parts(contents, audit, answered, chance)
    inputs, more = _whole(contents, whole, parts, answered, chance)
    _check_audit({x for x, _, _ in parts} | {*inputs}, len(contents.data), audit, whole)
    rows = [
        AuditRow(place, x, json.dumps(numbers), json.dumps(outputs))
        for place, (x, numbers, outputs) in enumerate([*parts, *more])
    ]
    meta = {"audit": audit, "audit_whole": whole, "audit_parts": len(parts), "audit_inputs": inputs}
    return {**meta, "audit_seed": seed}, rows


def _drawn_parts(contents: Contents, n: int, answered: Collection[int], chance: random.Random) -> list[Part]:
    """Of inputs that no answer was about: more are drawn until there are enough, or no more."""
    wanted = n
    while True:
        drawn: list[Part] = contents.serving.audit_parts(contents.task, contents.data, wanted, chance)
        if not answered:
            return drawn
        left = [part for part in drawn if part[0] not in answered]
        if len(left) >= n or len(drawn) < wanted:
            return left[:n]
        wanted *= 2


def _whole(
    contents: Contents, n: int, parts: Sequence[Part], answered: Collection[int], chance: random.Random
) -> tuple[list[int], list[Part]]:
    """(inputs drawn to be audited whole, those of their parts that are not to be asked about anyway)"""
    if n == 0:
        return [], []
    if not contents.has_chunks:
        raise UsageError(f"`audit_whole` {n}: only chunks are counted in whole sentences; leave it out")
    there: Any = range(len(contents.data))
    if answered:
        there = [x for x in there if x not in answered]
    inputs = sorted(chance.sample(there, min(n, len(there))))
    known = {(x, *numbers) for x, numbers, _ in parts}
    found: list[Part] = contents.serving.parts_of(contents.data, inputs)
    return inputs, [part for part in found if (part[0], *part[1]) not in known]


def _check_audit(inputs: set[int], n: int, audit: int, whole: int) -> None:
    if audit < 0 or len(inputs) > n // 2:
        named = f"`audit` {audit}" + (f" and `audit_whole` {whole}" if whole else "")
        raise UsageError(
            f"{named}: {len(inputs):,} of {n:,} inputs would be set aside; half must be left to learn from"
        )
