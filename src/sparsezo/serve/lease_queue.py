"""Which questions are leased to whom, and what became of them.

    queue = LeaseQueue(store, until)                    # in memory; made again from the store at a start
    queue.add(question_row, until)                      # leased to whom the row names
    queue.take(event_row, until)                        # an answer, a skip, a retraction, another's lease, ...

A question is open (with somebody, until a time), answered, skipped, or withdrawn. An open one whose time is over goes
to the next who asks; whoever had it may still answer until somebody else has it.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Hashable
from dataclasses import dataclass, field

from sparsezo.serve import store as log
from sparsezo.serve.store import ANSWER, EventRow, QuestionRow, Store

OPEN, CLOSED, WITHDRAWN = "open", "closed", "withdrawn"


@dataclass(slots=True)
class Entry:
    row: QuestionRow | None  # None once it is closed: the store has it
    id: int
    lessee: int
    until: float
    audit: bool
    part: Hashable
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
    if row.kind == "review":
        return row.x
    if row.outputs != "[]":
        return row.x, row.outputs
    first, _, last, _ = json.loads(row.numbers)
    return row.x, first, last


class LeaseQueue:
    """Not safe by itself: the session's lock is held. ``until``: when leases end that the store has."""

    def __init__(self, store: Store, until: float) -> None:
        self._store = store
        self.entries: dict[int, Entry] = {}
        self.open: dict[int, Entry] = {}
        self.history: dict[int, list[EventRow]] = defaultdict(list)  # by person: what closed a question, in order
        self.undone: set[int] = set()  # events that were taken back
        self.answered: Counter[Hashable] = Counter()  # contents with an answer
        self.certain: Counter[Hashable] = Counter()  # parts of which an answer says what they are
        self.settled: dict[int, Counter[int]] = defaultdict(Counter)  # by input: tokens of which an answer to span does
        self.reviewed: Counter[int] = Counter()  # by input: reviews of it
        self.asked: set[int] = set()  # inputs that a review was ever asked of
        self.left: dict[int, list[int]] = {}  # by input: what the answers that the session began with leave of it
        self.seen: dict[int, set[Hashable]] = defaultdict(set)  # contents, by person
        self.second: list[int] = []  # questions answered once that are to be asked of another person
        self.audits: set[int] = set()  # places of the audit set that were asked
        self.answers_by: Counter[int] = Counter()  # by person
        self.programs: set[int] = set()  # annotators that are no people
        self.repeated: set[int] = set()  # questions that somebody else was asked, too
        self.answers = self.questions = self.last_event = 0
        for x, first, last, span in store.meta.get("settled", ()):  # by the answers that the session began with
            if span:
                self.settled[x].update(range(first, last + 1))
            else:
                self.certain[x, first, last] += 1
        for x, output in store.meta.get("reviewed", ()):
            self.left[x] = output
        for row in store.rows(QuestionRow):
            self.add(row, until)
        for event in store.events():
            self.take(event, until)
        for number in self.entries:
            self.release(number)

    # Questions

    def add(self, row: QuestionRow, until: float, *, unsure: bool = False) -> Entry:
        """A question that is asked now. ``unsure``: whether the model is unsure of it."""
        audit = row.audit is not None
        entry = Entry(row, row.id, row.person, until, audit, part(row), had={row.person}, unsure=unsure)
        self.entries[row.id] = self.open[row.id] = entry
        self.questions = max(self.questions, row.id)
        self.seen[row.person].add(content(row))
        if row.kind == "review":
            self.asked.add(row.x)
        if row.audit is not None:
            self.audits.add(row.audit)
        if row.again is not None:
            self.repeated.add(row.again)
        if row.again in self.second:
            self.second.remove(row.again)
        return entry

    def row(self, number: int) -> QuestionRow:
        entry = self.entries[number]
        return entry.row if entry.row is not None else self._store.question(number)

    def open_of(self, person: int) -> list[Entry]:
        return [entry for entry in self.open.values() if entry.lessee == person]

    def busy(self) -> set[Hashable]:
        return {entry.part for entry in self.open.values()}

    # Events

    def take(self, event: EventRow, until: float) -> None:
        """One more event, in the order of the store."""
        self.last_event = event.seq
        if event.what == log.PROGRAM:
            self.programs.add(event.person)
        if event.question is None:
            return
        entry = self.entries[event.question]
        if event.nonce:
            entry.nonces.add(event.nonce)
        if event.what in (ANSWER, log.SKIP, log.CANNOT_TELL):
            self._close(entry, event)
        elif event.what == log.RETRACTION:
            self._reopen(entry, event, until)
        elif event.what == log.WITHDRAWAL:
            entry.state = WITHDRAWN
            self.open.pop(entry.id, None)
        elif event.what == log.LEASE:
            entry.lessee, entry.until = event.person, until
            entry.had.add(event.person)
            self.seen[event.person].add(content(self.row(entry.id)))

    def _close(self, entry: Entry, event: EventRow) -> None:
        entry.state, entry.closed_by = CLOSED, event
        self.open.pop(entry.id, None)
        self.history[event.person].append(event)
        if event.what == ANSWER:
            row = self.row(entry.id)
            self._count(entry, row, event, 1)
            if row.twice and row.id not in self.repeated:
                self.second.append(row.id)

    def release(self, number: int) -> None:
        """The store has the question, and nobody waits for it: memory need not."""
        entry = self.entries[number]
        if entry.state == CLOSED:
            entry.row = None

    def _count(self, entry: Entry, row: QuestionRow, event: EventRow, by: int) -> None:
        self.answers += by
        self.answers_by[event.person] += by
        self.answered[content(row)] += by
        if event.kind == "review":
            self.reviewed[row.x] += by
        if event.kind == "label" or (event.kind == "part" and event.answer == '"yes"'):
            self.certain[entry.part] += by
        if event.kind == "span":  # it speaks of its own tokens, and of what was asked about up to there
            first, _, last, _ = json.loads(row.numbers)
            said = event.said()
            if isinstance(said, dict):
                first, last = min(first, said["first"]), said["last"]
            self.settled[row.x].update(dict.fromkeys(range(first, last + 1), by))

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
        """Those to audit questions that count, in the store's order."""
        closed = [event for events in self.history.values() for event in events]
        return sorted(
            (e for e in closed if self._counts(e) and self.entries[e.question or 0].audit), key=lambda e: e.seq
        )

    def times_since(self, person: int | None, since: float) -> list[float]:
        """When answers that count were given, by one person or by all."""
        theirs = [self.history[person]] if person is not None else list(self.history.values())
        lately = (itertools.takewhile(lambda e: e.at >= since, reversed(events)) for events in theirs)
        return [event.at for event in itertools.chain.from_iterable(lately) if self._counts(event)]

    def _counts(self, event: EventRow) -> bool:
        return event.what == ANSWER and event.seq not in self.undone
