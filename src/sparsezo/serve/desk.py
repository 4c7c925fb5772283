"""Which questions are out, with whom, and what became of them. In memory; made again from the log at a start.

A question is open (with somebody, until a time), answered, skipped, or withdrawn. An open one whose time is over goes
to the next who asks; whoever had it may still answer until somebody else has it.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Hashable
from dataclasses import dataclass, field

from sparsezo.questions import Question
from sparsezo.serve.log import (
    ANSWER,
    CANNOT_TELL,
    LEASE,
    RETRACTION,
    SKIP,
    WITHDRAWAL,
    EventRow,
    Log,
    QuestionRow,
)

OPEN, CLOSED, WITHDRAWN = "open", "closed", "withdrawn"
CLOSING = (ANSWER, SKIP, CANNOT_TELL)  # events after which a question is done with


@dataclass(slots=True)
class Entry:
    row: QuestionRow | None  # None once it is closed: the log has it
    id: int
    lessee: int
    until: float
    audit: bool
    part: Hashable  # what it is about
    state: str = OPEN
    closed_by: EventRow | None = None
    had: set[int] = field(default_factory=set)  # people who ever had it
    nonces: set[str] = field(default_factory=set)
    unsure: bool = False  # whether the model was unsure of it when it was asked


def content(row: QuestionRow) -> Hashable:
    """What makes two questions the same."""
    return row.kind, row.x, row.numbers, row.outputs


def part(row: QuestionRow) -> Hashable:
    """What two questions are about, whatever they show of it."""
    if row.outputs != "[]":
        return row.x, row.outputs
    first, _, last, _ = json.loads(row.numbers)
    return row.x, first, last


def _settled_by(row: QuestionRow, event: EventRow) -> range:
    """The tokens that an answer to span speaks of: its span, and what it was asked about up to there."""
    first, _, last, _ = json.loads(row.numbers)
    answer = json.loads(event.answer or "null")
    if isinstance(answer, dict):
        first, last = min(first, answer["first"]), answer["last"]
    return range(first, last + 1)


class Desk:
    def __init__(self, log: Log, until: float) -> None:
        self._log = log
        self.entries: dict[int, Entry] = {}
        self.open: dict[int, Entry] = {}
        self.history: dict[int, list[EventRow]] = defaultdict(list)  # by person: what closed a question, in order
        self.undone: set[int] = set()  # events that were taken back
        self.answered: Counter[Hashable] = Counter()  # contents with an answer
        self.certain: Counter[Hashable] = Counter()  # parts of which an answer says what they are
        self.settled: dict[int, Counter[int]] = defaultdict(Counter)  # by input: tokens of which an answer to span does
        self.seen: dict[int, set[Hashable]] = defaultdict(set)  # contents, by person
        self.second: list[int] = []  # questions answered once that are to be asked of another person
        self.audits: set[int] = set()  # places of the audit set that were asked
        self.answers_by: Counter[int] = Counter()  # by person
        self.answers = self.questions = self.last_event = 0
        for x, first, last, span in log.meta.get("settled", ()):  # by the answers that the session began with
            if span:
                self.settled[x].update(range(first, last + 1))
            else:
                self.certain[x, first, last] += 1
        for row in log.questions():
            self.add(row, until)
        for event in log.events():
            self.take(event, until)

    # Questions

    def add(self, row: QuestionRow, until: float, *, unsure: bool = False) -> Entry:
        audit = row.audit is not None
        entry = Entry(row, row.id, row.person, until, audit, part(row), had={row.person}, unsure=unsure)
        self.entries[row.id] = self.open[row.id] = entry
        self.questions = max(self.questions, row.id)
        self.seen[row.person].add(content(row))
        if row.audit is not None:
            self.audits.add(row.audit)
        if row.again in self.second:
            self.second.remove(row.again)
        return entry

    def row(self, number: int) -> QuestionRow:
        entry = self.entries[number]
        return entry.row if entry.row is not None else self._log.question(number)

    def question(self, number: int) -> Question:
        return self.row(number).question()

    def is_audit(self, number: int | None) -> bool:
        return number is not None and self.entries[number].audit

    def open_of(self, person: int) -> list[Entry]:
        return [entry for entry in self.open.values() if entry.lessee == person]

    def busy(self) -> set[Hashable]:
        """Parts that somebody is being asked about."""
        return {entry.part for entry in self.open.values()}

    # Events

    def take(self, event: EventRow, until: float) -> None:
        """One more event, in the order of the log."""
        self.last_event = event.seq
        if event.question is None:
            return
        entry = self.entries[event.question]
        if event.nonce:
            entry.nonces.add(event.nonce)
        if event.what in CLOSING:
            self._close(entry, event)
        elif event.what == RETRACTION:
            self._reopen(entry, event, until)
        elif event.what == WITHDRAWAL:
            entry.state = WITHDRAWN
            self.open.pop(entry.id, None)
        elif event.what == LEASE:
            entry.lessee, entry.until = event.person, until
            entry.had.add(event.person)
            self.seen[event.person].add(content(self.row(entry.id)))

    def _close(self, entry: Entry, event: EventRow) -> None:
        row = self.row(entry.id)
        entry.state, entry.closed_by = CLOSED, event
        self.open.pop(entry.id, None)
        self.history[event.person].append(event)
        if event.what == ANSWER:
            self._count(entry, row, event, 1)
            if row.twice:
                self.second.append(row.id)

    def release(self, number: int) -> None:
        """The log has the question, and nobody waits for it: memory need not."""
        entry = self.entries[number]
        if entry.state == CLOSED:
            entry.row = None

    def _count(self, entry: Entry, row: QuestionRow, event: EventRow, by: int) -> None:
        self.answers += by
        self.answers_by[event.person] += by
        self.answered[content(row)] += by
        if event.kind == "label" or (event.kind == "part" and event.answer == '"yes"'):
            self.certain[entry.part] += by
        if event.kind == "span":
            self.settled[row.x].update(dict.fromkeys(_settled_by(row, event), by))

    def is_settled(self, row: QuestionRow) -> bool:
        """Whether answers to span have said what all the tokens of a question about a span are."""
        first, _, last, _ = json.loads(row.numbers)
        known = self.settled.get(row.x)
        return known is not None and all(known[token] > 0 for token in range(first, last + 1))

    def _reopen(self, entry: Entry, event: EventRow, until: float) -> None:
        before, entry.row = entry.closed_by, self.row(entry.id)
        entry.state, entry.closed_by, entry.lessee, entry.until = OPEN, None, event.person, until
        self.open[entry.id] = entry
        self.undone.add(event.undoes or 0)
        if before is not None and before.what == ANSWER:
            self._count(entry, entry.row, before, -1)
            if entry.id in self.second:
                self.second.remove(entry.id)

    def last_of(self, person: int) -> EventRow | None:
        """What the person did last that was not taken back."""
        return next((event for event in reversed(self.history[person]) if event.seq not in self.undone), None)

    def audit_answers(self) -> list[EventRow]:
        """Those that count, in the log's order."""
        found = [event for events in self.history.values() for event in events if self.is_audit(event.question)]
        return sorted((e for e in found if e.what == ANSWER and e.seq not in self.undone), key=lambda e: e.seq)

    def times_since(self, person: int | None, since: float) -> list[float]:
        """When answers that count were given, by one person or by all."""
        theirs = [self.history[person]] if person is not None else list(self.history.values())
        return [
            event.at
            for events in theirs
            for event in itertools.takewhile(lambda e: e.at >= since, reversed(events))
            if event.what == ANSWER and event.seq not in self.undone
        ]
