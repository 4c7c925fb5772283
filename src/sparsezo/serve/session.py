"""A session: one learner, its people, and the questions between them. Thread-safe; there is no HTTP in it.

    session = Session(kind("chunking"), task, corpus, settings, "np.serve", audit=200)
    person = session.person(token)
    question = session.ask(person)[0]
    session.tell(person, question["id"], "yes", seconds=1.4, nonce="7f3a")

All arguments and results are plain values. What cannot be done is ``Refused`` with a reason, and nothing has changed.
An answer is acknowledged when it is on disk and the model has learned from it. A folder that has a log is gone on with.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from typing import Any

from sparsezo.serve.desk import OPEN, Entry
from sparsezo.serve.errors import Refused
from sparsezo.serve.export import Exports
from sparsezo.serve.log import (
    ANSWER,
    CANNOT_TELL,
    FLAG,
    LEASE,
    PAUSE,
    RESUME,
    RETRACTION,
    SKIP,
    WITHDRAWAL,
    EventRow,
    Row,
)
from sparsezo.serve.reports import Reports
from sparsezo.serve.tokens import Person
from sparsezo.serve.wording import as_said, number_of, question_id, understood, worded

_MOST_NONCE, _MOST_NOTE, _MOST_SECONDS = 100, 2000, 86400.0
_REPLIES = 5000  # that are kept for those who did not hear them


class Session(Reports, Exports):
    # Asking

    def ask(self, person: Person, n: int = 1, holding: Sequence[str] = ()) -> list[dict[str, Any]]:
        """What the page holds and should go on holding, and n more."""
        with self.lock:
            self._writer.check()
            if self.paused:
                raise Refused("the session is paused; your answers are saved", "paused")
            if type(n) is not int or not 0 <= n <= self.max_ahead:
                raise Refused(f"at most {self.max_ahead} questions at a time", "too-many")
            now = self.clock()
            rows: list[Row] = []
            kept: list[Entry] = []
            for entry in self._held_by(person, holding):
                if entry.unsure and entry.row is not None and self.chooser.sure(entry.row):
                    rows.append(self._noted(self._event(WITHDRAWAL, person.id, entry.id)))
                    n += 1
                else:
                    entry.until = now + self.lease_seconds
                    kept.append(entry)
            try:
                self._fetch(person, n, kept, rows, now)
            except Refused:
                if not kept and not rows:
                    raise
            finally:  # what was noted goes to the log whatever happens
                done = self._writer.put(rows) if rows else None
            questions = [self._worded(entry) for entry in kept]
        if done is not None:
            done.result()
        if not questions:
            raise Refused("there is nothing to ask just now", "nothing-to-ask")
        return questions

    def _held_by(self, person: Person, holding: Sequence[str]) -> Iterator[Entry]:
        for id in dict.fromkeys(holding[: 10 * self.max_ahead]):
            entry = self.desk.entries.get(number_of(id))
            if entry is not None and entry.state == OPEN and entry.lessee == person.id:
                yield entry

    def _fetch(self, person: Person, n: int, kept: list[Entry], rows: list[Row], now: float) -> None:
        """n more to ``kept``; what the log should have of it to ``rows``."""
        until = now + self.lease_seconds
        for _ in range(n):
            held = {entry.id for entry in kept}
            mine = self.desk.open_of(person.id)
            entry = self.chooser.returned(person.id, now, held)
            if entry is None and len(mine) >= self.max_ahead:  # a page that was loaded anew has lost them
                entry = next((each for each in mine if each.id not in held), None)
                if entry is None:
                    raise Refused(f"answer the {len(mine)} questions that you have first", "too-many")
            if entry is None:
                row, unsure = self.chooser.new(person.id, now, self.lessons.count)
                rows.append(row)
                entry = self.desk.add(row, until, unsure=unsure)
            elif entry.lessee != person.id:
                rows.append(self._noted(self._event(LEASE, person.id, entry.id)))
            entry.until = until
            kept.append(entry)

    def _worded(self, entry: Entry) -> dict[str, Any]:
        row, contents = self.desk.row(entry.id), self.contents
        made = worded(contents, self.offered, row, self.source)
        if row.kind in ("part", "span") and hasattr(contents.serving, "around"):
            output = self.decoder.one(self.learner.state.W, row.x)
            made["shown"] |= contents.serving.around(contents.task, output)
        return made

    # Answers

    def tell(
        self, person: Person, id: str, answer: Any, seconds: float | None = None, nonce: str | None = None
    ) -> dict[str, Any]:
        """Returns once it is on disk. The same again gets the same reply, and is applied once."""
        seconds, nonce = _checked(seconds, nonce)
        with self.lock:
            self._writer.check()
            entry = self._entry(id)
            row = self.desk.row(entry.id)
            kind, said = understood(row, self.offered, answer)
            self._check_ends(row.x, said)
            text = json.dumps(said)
            repeat = self._repeat(entry, person, (ANSWER, kind, text), nonce)
            if repeat is None:
                e0, e1 = self.error_of(person.id, kind)
                given = {"kind": kind, "answer": text, "e0": e0, "e1": e1, "seconds": seconds, "nonce": nonce}
                if kind == "rate":
                    given["taught"] = self.grades.standard(person.id, said)
                done = self._put(self._event(ANSWER, person.id, entry.id, **given))
                mine = self.desk.answers_by[person.id]
                reply = {"id": id, "saved": True, "answer": answer, "answers": self.desk.answers, "mine": mine}
                repeat = self._remember(entry, done, reply)
        repeat[0].result()
        return repeat[1]

    def _check_ends(self, x: int, said: Any) -> None:
        """A span that a person marked ends within its sentence."""
        begin, end = self.learner.problem.output_start[x : x + 2].tolist()
        if isinstance(said, dict) and said["last"] >= end - begin:
            raise Refused(f"a span ends at token {end - begin - 1} at the latest, not at {said['last']}", "bad-answer")

    def skip(self, person: Person, id: str, why: str = SKIP, nonce: str | None = None) -> dict[str, Any]:
        """``why``: skip, or cannot-tell."""
        _, nonce = _checked(None, nonce)
        if why not in (SKIP, CANNOT_TELL):
            raise Refused(f"skipped why? {SKIP} or {CANNOT_TELL}", "bad-answer")
        with self.lock:
            self._writer.check()
            entry = self._entry(id)
            repeat = self._repeat(entry, person, (why, None, None), nonce)
            if repeat is None:
                done = self._put(self._event(why, person.id, entry.id, nonce=nonce))
                repeat = self._remember(entry, done, {"id": id, "saved": True})
        repeat[0].result()
        return repeat[1]

    def flag(self, person: Person, id: str, note: str) -> dict[str, Any]:
        """A remark on a question, which stays as it is."""
        if not isinstance(note, str) or len(note) > _MOST_NOTE:
            raise Refused(f"a note has at most {_MOST_NOTE} characters", "bad-answer")
        with self.lock:
            entry = self._entry(id)
            if person.id not in entry.had:
                raise Refused("this question was not asked of you", "not-yours")
            done = self._put(self._event(FLAG, person.id, entry.id, note=note))
        done.result()
        return {"id": id, "saved": True}

    def undo(self, person: Person, id: str | None = None) -> dict[str, Any]:
        """Take back the person's last answer (or skip), or a named one, which is theirs to answer again."""
        with self.lock:
            self._writer.check()
            if id is None:
                event = self.desk.last_of(person.id)
                if event is None or event.question is None:
                    raise Refused("there is no answer to take back", "unknown-question")
                entry = self.desk.entries[event.question]
            else:
                entry = self._entry(id)
                event = entry.closed_by
            if event is not None and event.person != person.id:
                raise Refused("this answer is another person's", "not-yours")
            if event is None and (entry.lessee != person.id or entry.state != OPEN):
                raise Refused("this question has no answer of yours", "not-yours")
            done = None
            if event is not None:  # else it was taken back already
                taught = event.kind if event.what == ANSWER and not entry.audit else None
                done = self._put(self._event(RETRACTION, person.id, entry.id, kind=taught, undoes=event.seq))
                self._replies.pop(entry.id, None)
            question = self._worded(entry)
        if done is not None:
            done.result()
        return question

    def _repeat(
        self, entry: Entry, person: Person, what: tuple[str, Any, Any], nonce: str | None
    ) -> tuple[Future[None], dict[str, Any]] | None:
        """The reply where this has been said before, None where it is new; refused where it cannot be said."""
        before = entry.closed_by
        if before is not None and before.person == person.id:
            if (before.what, before.kind, before.answer) == what:
                return self._replies.get(entry.id) or self._reply_again(entry, before)
            raise Refused("you have answered this already; take the answer back to change it", "already-answered")
        if before is not None or (entry.state == OPEN and entry.lessee != person.id):
            late = person.id in entry.had
            why = "it went to another person when your time was over" if late else "this question is another person's"
            raise Refused(why, "late" if late else "not-yours")
        if person.id != entry.lessee:
            raise Refused("this question is another person's", "not-yours")
        if nonce is not None and nonce in entry.nonces:
            raise Refused("this answer was taken back since", "late")
        return None

    def _remember(self, entry: Entry, done: Future[None], reply: dict[str, Any]) -> tuple[Future[None], dict[str, Any]]:
        self._replies[entry.id] = done, reply
        if len(self._replies) > _REPLIES:
            del self._replies[next(iter(self._replies))]
        return done, reply

    def _reply_again(self, entry: Entry, before: EventRow) -> tuple[Future[None], dict[str, Any]]:
        """After a start the replies of before are gone; the answer is in the log."""
        done: Future[None] = Future()
        done.set_result(None)
        reply: dict[str, Any] = {"id": question_id(entry.id), "saved": True}
        if before.answer is not None:
            said = as_said(self.desk.row(entry.id), json.loads(before.answer))
            mine = self.desk.answers_by[before.person]
            reply |= {"answer": said, "answers": self.desk.answers, "mine": mine}
        return done, reply

    def pause(self, paused: bool) -> None:
        """No questions while it lasts; answers are still taken."""
        with self.lock:
            done = self._put(self._event(PAUSE if paused else RESUME, 0))
        done.result()


def _checked(seconds: object, nonce: object) -> tuple[float | None, str | None]:
    if seconds is not None and (isinstance(seconds, bool) or not isinstance(seconds, int | float)):
        raise Refused("seconds are a number", "bad-answer")
    if seconds is not None and not (math.isfinite(seconds) and seconds >= 0):
        raise Refused("seconds are a number from 0", "bad-answer")
    if nonce is not None and not (isinstance(nonce, str) and 0 < len(nonce) <= _MOST_NONCE):
        raise Refused(f"a nonce is a text of at most {_MOST_NONCE} characters", "bad-answer")
    return (None if seconds is None else min(float(seconds), _MOST_SECONDS)), nonce
