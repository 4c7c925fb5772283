"""A session: one model, its annotators, and the questions between them. Thread-safe; there is no HTTP in it.

    session = Session(task_spec("chunking"), task, corpus, settings, "np.serve", audit=200)
    person = session.person(session.add_person("Ann")["token"])
    question = session.ask(person)[0]
    session.tell(person, question["id"], "yes", seconds=1.4, nonce="7f3a")

It puts together ``store`` (rows on disk), ``queue`` (who has which question), ``model`` (learns from answers),
``strategy`` (what is asked next), ``quality`` (how good the model and the annotators are) and the rest. What cannot be
done is ``Refused`` with a reason, and nothing has changed. An answer is acknowledged when it is on disk and the model
has learned from it. A folder that has a session is gone on with.
"""

from __future__ import annotations

import contextlib
import datetime
import itertools
import json
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence, Sized
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sparsezo import messages
from sparsezo.errors import UsageError
from sparsezo.kernels.jit import compile_beside
from sparsezo.learner import Decoder
from sparsezo.query_learner import QueryLearner
from sparsezo.questions import Answer, Question
from sparsezo.raters import checked_error
from sparsezo.serve import folder as folders
from sparsezo.serve import store as log
from sparsezo.serve.adjudication import DECIDED_ERROR, Adjudication
from sparsezo.serve.annotators import Annotators, Person
from sparsezo.serve.errors import Refused
from sparsezo.serve.exports import Exports, File
from sparsezo.serve.folder import Contents
from sparsezo.serve.lease_queue import OPEN, Entry, LeaseQueue
from sparsezo.serve.minutes import Minutes
from sparsezo.serve.online_model import OnlineModel, show_in_vain
from sparsezo.serve.options import LEASE_SECONDS, MAX_AHEAD, Until
from sparsezo.serve.presentation import Presentation, number_of, question_id
from sparsezo.serve.quality import AUDITED, FIRST_REVIEWS, Evaluator, Quality, drawn_audit_set
from sparsezo.serve.query_strategy import QueryStrategy, alternately
from sparsezo.serve.seconds import Seconds, spent_on
from sparsezo.serve.store import ANSWER, AuditRow, EventRow, LookRow, QuestionRow, Row, Writer
from sparsezo.settings import Settings
from sparsezo.storage.files import write_text
from sparsezo.storage.locks import locked
from sparsezo.tasks.base import AnyArray, Json, Task
from sparsezo.tasks.spec import TaskSpec
from sparsezo.training import HeldOut

GUIDELINES = "guidelines.md"
_REPLIES = 5000  # that are kept for those who did not hear them
_WINDOW, _LEAST = 600.0, 60.0  # seconds that answers a minute are counted over
Reply = tuple[Future[None], Json]  # done when what it says is on disk


class Session:
    """One learner, and people who teach it.

    W: weights to start from. dev: labelled inputs to watch the model by. audit, audit_whole: parts and whole sentences
    set aside to measure it by; ``answered``: inputs that W has learned from, which are not audited; ``audit_set``: one
    that was drawn before, of which ``about`` then has the numbers. overlap: the share of questions that a second person
    is asked, too. lease_seconds: how long a question is one person's, who may have ``max_ahead``. source: what is shown
    beside each input. until: what is enough; questions pause by themselves then. about: what else the store should say
    of the session. compile_ahead: with the help of a second process, for ``warm_up``.
    """

    def __init__(
        self,
        kind: TaskSpec,
        task: Task,
        data: Sized,
        settings: Settings,
        log_path: str | Path,
        *,
        W: AnyArray | None = None,
        dev: Sized | None = None,
        audit: int = 0,
        audit_whole: int = 0,
        overlap: float = 0.0,
        lease_seconds: float = LEASE_SECONDS,
        max_ahead: int = MAX_AHEAD,
        source: Sequence[str] | None = None,
        about: Mapping[str, object] | None = None,
        audit_set: Sequence[AuditRow] | None = None,
        answered: Collection[int] = (),
        until: Until | None = None,
        clock: Callable[[], float] = time.time,
        compile_ahead: bool = False,
    ) -> None:
        self.folder, self.clock = Path(log_path), clock
        self.lease_seconds, self.max_ahead = lease_seconds, max_ahead
        self.lock = threading.RLock()
        if settings.rule not in kind.asks:
            raise UsageError(f"rule {settings.rule} asks no questions of people; use {', '.join(kind.asks)}")
        if source is not None and len(source) != len(data):
            raise UsageError(f"`source` has {len(source):,} lines for {len(data):,} {kind.inputs}; give one for each")
        if settings.rule != "review":  # what is gone over again is of one kind; a part may be answered by a label
            settings = replace(settings, rehearse=0)
        self.contents = contents = Contents(kind, task, data, settings, W)
        problem = task.problem(data, asks=True)
        learner = QueryLearner(problem, settings, W)  # what does not go together is refused before a folder is made
        self._reviewing = contents.serving.reviewing(task, problem) if settings.rule == "review" else None
        self._shown: Callable[[], None] = lambda: None  # waits until what is shown beside a question is compiled
        if compile_ahead:
            decoder = Decoder(problem)
            self._shown = compile_beside(lambda: show_in_vain(learner, decoder))
        self.presentation = Presentation(contents, problem.questions, source, self._reviewing)
        self.paused = False
        self.seconds, self.minutes = Seconds(), Minutes()
        self.why_paused: str | None = None
        self._reached: set[str] = set()  # aims that questions have paused for
        self._replies: dict[int, Reply] = {}
        with contextlib.ExitStack() as held:
            self.folder.mkdir(parents=True, exist_ok=True)
            held.enter_context(locked(self.folder, "is serving from it", option="`log`"))
            if folders.is_session(self.folder):
                self.store = folders.open_store(self.folder)
            else:
                drawn: Json = {}
                if audit_set is None:
                    drawn, audit_set = drawn_audit_set(contents, audit, audit_whole, answered)
                meta = {**drawn, "overlap": overlap, "made": clock(), **(about or {})}
                self.store = folders.make(self.folder, contents, meta, audit_set)
            held.callback(self.store.close)
            if self.store.meta["known_by"] != folders.identity(contents):
                why = "is the log of another task, other inputs, settings or another start; name another"
                raise UsageError(f"{self.folder}: {why}")
            if until is not None and not self.store.meta.get("audit_whole" if until.metric == "f1" else "audit"):
                option = "audit_whole" if until.metric == "f1" else "audit"
                raise UsageError(f"`until` {until}: nothing is set aside to measure that by; it takes `{option}` N")
            self._put_together(learner, dev, until)
            held.callback(self._stop)
            self._held = held.pop_all()

    def warm_up(self) -> Question:
        """What a first question needs is compiled; comes back with one that nobody is asked."""
        return self.model.ask_in_vain(self._shown)

    def _put_together(self, learner: QueryLearner, dev: Sized | None, until: Until | None) -> None:
        contents, store, serving = self.contents, self.store, self.contents.serving
        self.queue = LeaseQueue(store, self.clock() + self.lease_seconds)
        own = (contents.W, self.queue.row, self.lock, self._reviewing)
        self.model = OnlineModel(learner, store, self.folder, *own)
        self.model.ask_from(max((row.step for row in store.rows(QuestionRow)), default=-1) + 1)
        spans = contents.settings.rule in ("span", "review")
        self.strategy = QueryStrategy(
            learner,
            self.queue,
            alternately(store.rows(AuditRow), store.meta.get("audit_parts")),
            serving.AUDIT,
            float(store.meta["overlap"]),
            serving.suggested(contents.task, contents.data) if spans else (),
            lambda question: bool(serving.sensible(contents.data, question)),
            self._around if self._reviewing is not None else None,
        )
        self.quality = Quality(contents, store, self.queue, self.model, self.presentation, self.clock)
        self.quality.stopping.until = until
        seed = contents.settings.seed
        self.adjudication = Adjudication(self.queue, self.presentation, store.rows(QuestionRow), seed)
        self.exports = Exports(contents, store, self.model, self.presentation)
        guidelines = self.folder / GUIDELINES
        self.guidelines = guidelines.read_text("utf-8", "replace") if guidelines.is_file() else None
        for event in store.events():
            self._follow(event)
        looks = store.rows(LookRow)
        self._looks = len(looks)
        self._writer = Writer(store, self._apply)
        self.annotators = Annotators(store, self.folder, self._writer.put, self.clock, self.lock)
        named = contents.task.metric == contents.kind.metric
        metric = contents.kind.metric_name if named else contents.task.metric
        if dev is None and all(look.metric != metric for look in looks):
            metric = AUDITED
        held_out = None if dev is None else HeldOut(contents.task, dev)
        weights = self.model.weights if dev is None else self.model.finished
        first = {} if self._reviewing is None else {"first": FIRST_REVIEWS}
        self.evaluator = Evaluator(
            metric, held_out, looks, weights, self._look, self.estimate, self.minutes.at, **first
        )

    def _around(self, x: int, spans: Sequence[list[int]]) -> NDArray[np.int32]:
        """The best output of an input with spans (a question's numbers) in it; of two that overlap, the first."""
        given: list[Json] = []
        taken: set[int] = set()
        for first, label, last, _ in spans:
            if taken.isdisjoint(range(first, last + 1)):
                taken.update(range(first, last + 1))
                given.append({"first": first, "last": last, "label": self.presentation.reviewing.label(label)})
        fixed = self.presentation.reviewing.fixed(given, self.presentation.reviewing.length(x))
        return self.model.suggestion(x, fixed=fixed).output

    def _stop(self) -> None:
        self.evaluator.stop()
        self._writer.stop()
        self.model.close(keep=self._writer.failure is None)

    def close(self) -> None:
        """When all that was told is written; the next start is from a snapshot."""
        self._held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # People

    def person(self, token: object) -> Person | None:
        return self.annotators.by_token(token)

    def was_replaced(self, token: object) -> bool:
        return self.annotators.was_replaced(token)

    def add_person(self, name: str, *, admin: bool = False, program: bool = False) -> Json:
        """A new person, or a new link for one who is known, whose old one is of no use then: {id, name, token}."""
        made = self.annotators.add(name, admin=admin)
        if program:
            self.mark_program(made["id"])
        return made

    def mark_program(self, person: int) -> None:
        """This annotator is a program, from now on: it is asked no audits, and people look at what it says."""
        if person not in self.queue.programs:
            self._do(log.PROGRAM, person)

    def identity(self, person: Person) -> Json:
        """Which session this is, and who asks: the same whatever link they came by."""
        program = person.id in self.queue.programs
        return {"session": self.store.meta["id"], "person": person.id, "name": person.name, "program": program}

    def people(self) -> list[Json]:
        """Who answers, how fast and how well, for the admin page."""
        with self.lock:
            return [self._about(person) for person in self.annotators.people.values()]

    def _about(self, person: Person) -> Json:
        today, per_minute = self._speed(person.id)
        made = self.annotators.link_made(person.id)
        return {
            "id": person.id,
            "name": person.name,
            "admin": person.admin,
            "program": person.id in self.queue.programs,
            "answers": self.queue.answers_by[person.id],
            "today": today,
            "per_minute": per_minute,
            "open": len(self.queue.open_of(person.id)),
            "link_made": None if made is None else _iso(made),
            **self.quality.about(person.id),
            **({} if self._reviewing is None else {"seconds": self.seconds.about(person.id)}),
        }

    def believe(self, person: int, e0: float, e1: float) -> None:
        """How often a person errs, for the answers to come: (a yes that is wrong, a no that is wrong)."""
        error = checked_error("part", e0, e1)
        self._do(log.BELIEF, person, e0=error[0], e1=error[1])

    def set_guidelines(self, text: str) -> None:
        """How to answer, in Markdown, for all who do, from now on; kept in the session's folder."""
        write_text(self.folder / GUIDELINES, text)
        self.guidelines = text

    def pause(self, paused: bool, why: str | None = None) -> None:
        """No questions while it lasts; answers are still taken."""
        self._do(log.PAUSE if paused else log.RESUME, 0, note=why)

    # Events

    def _entry(self, id: str) -> Entry:
        entry = self.queue.entries.get(number_of(id))
        if entry is None:
            raise Refused(f"there is no question {id}", "unknown-question")
        return entry

    def _noted(self, what: str, person: int, question: int | None = None, **rest: object) -> EventRow:
        """A new event, and what follows from it at once; the model follows when it is on disk."""
        event = EventRow(self.queue.last_event + 1, self.clock(), what, person, question, **rest)  # type: ignore[arg-type]
        self.queue.take(event, self.clock() + self.lease_seconds)
        self._follow(event)
        return event

    def _do(self, what: str, person: int, question: int | None = None, **rest: object) -> None:
        with self.lock:
            done = self._writer.put([self._noted(what, person, question, **rest)])
        done.result()

    def _follow(self, event: EventRow) -> None:
        if event.what in (log.PAUSE, log.RESUME):
            self.paused, self.why_paused = event.what == log.PAUSE, event.note
            if event.note:
                self._reached.add(event.note.partition(" ")[0])
        self.quality.take(event)
        self.strategy.take(event)
        self.minutes.take(event)
        self.adjudication.take(event)
        if event.what == ANSWER and event.kind == "review" and event.question is not None and event.seconds:
            row = self.queue.row(event.question)
            if row.decides is not None:  # to compare takes other seconds
                return
            question = row.question().offering(self.presentation.offered["review", row.about])
            self.seconds.take(event, spent_on(question, event.said()))

    def _apply(self, rows: Sequence[Row]) -> None:
        """Rows that are on disk now: the model learns from them."""
        with self.lock:
            self.model.apply(rows)
            for row in rows:
                if isinstance(row, EventRow) and row.question is not None:
                    self.queue.release(row.question)
            self.evaluator.answered(self.model.count)

    # Asking

    def ask(self, person: Person, n: int = 1, holding: Sequence[str] = (), *, decide: bool = False) -> list[Json]:
        """What the page holds and should go on holding, and n more. ``decide``: only where two people differ; the
        administrator may then have been one of them."""
        with self.lock:
            self._writer.check()
            if self.paused:
                why = f": {self.why_paused}" if self.why_paused else ""
                raise Refused(f"the session is paused{why}; your answers are saved", "paused")
            if n > self.max_ahead:
                raise Refused(f"at most {self.max_ahead} questions at a time", "too-many")
            now = self.clock()
            rows: list[Row] = []
            kept: list[Entry] = []
            for id in dict.fromkeys(holding):
                entry = self.queue.entries.get(number_of(id))
                if entry is None or entry.state != OPEN or entry.lessee != person.id:
                    continue
                if entry.unsure and entry.row is not None and self.strategy.sure(entry.row.question()):
                    rows.append(self._noted(log.WITHDRAWAL, person.id, entry.id))
                    n += 1
                else:
                    entry.until = now + self.lease_seconds
                    kept.append(entry)
            try:
                self._fetch(person, n, kept, rows, now, decide)
            except Refused:
                if not kept and not rows:
                    raise
            finally:  # what was noted goes to the store whatever happens
                done = self._writer.put(rows) if rows else None
            questions = [self._presented(entry) for entry in kept]
        if done is not None:
            done.result()
        if not questions:
            raise Refused("there is nothing to ask just now", "nothing-to-ask")
        return questions

    def _fetch(self, person: Person, n: int, kept: list[Entry], rows: list[Row], now: float, decide: bool) -> None:
        """n more to ``kept``; what the store should have of it to ``rows``."""
        until = now + self.lease_seconds
        for _ in range(n):
            held = {entry.id for entry in kept}
            mine = [each for each in self.queue.open_of(person.id) if self._may_answer(person, each)]
            anybody = decide and person.admin
            if decide:
                mine = [each for each in mine if each.row is not None and each.row.decides is not None]
            entry = None if decide else self.strategy.returned(person.id, now, held)
            if entry is None and len(mine) < self.max_ahead:
                entry = self.adjudication.returned(person.id, now, held, anybody=anybody)
            if entry is None and len(mine) >= self.max_ahead:  # a page that was loaded anew has lost them
                entry = next((each for each in mine if each.id not in held), None)
                if entry is None:
                    raise Refused(f"answer the {len(mine)} questions that you have first", "too-many")
            if entry is None:
                number, count = self.queue.questions + 1, self.model.count
                row = self.adjudication.new(person.id, number, now, count, anybody=anybody)
                unsure = False
                if row is None and decide:
                    lost = next((each for each in mine if each.id not in held), None)
                    if lost is None:
                        raise Refused("nothing waits to be decided", "nothing-to-ask")
                    kept.append(lost)
                    continue
                if row is None and self._reviewing is not None:  # which is worth most for a second of this person
                    self.model.learner.set_seconds(self.seconds.of(person.id))
                if row is None:
                    row, unsure = self.strategy.new(person.id, now, self.model.count)
                rows.append(row)
                entry = self.queue.add(row, until, unsure=unsure)
                self.adjudication.asked(row)
            elif entry.lessee != person.id:
                rows.append(self._noted(log.LEASE, person.id, entry.id))
            entry.until = until
            kept.append(entry)

    def _may_answer(self, person: Person, entry: Entry) -> bool:
        """Audits are people's alone."""
        return not (entry.audit and person.id in self.queue.programs)

    def _presented(self, entry: Entry) -> Json:
        row, contents = self.queue.row(entry.id), self.contents
        if row.kind == "review" and row.decides is None:
            suggestion = self.model.suggestion(row.x, output=row.question().outputs[0])
            return self.presentation.question(row, suggestion)
        made = self.presentation.question(row)
        if row.kind in ("part", "span"):
            made["shown"] |= contents.serving.around(contents.task, self.model.output(row.x))
        return made

    def decode(self, person: Person, id: str, fixed: object) -> Json:
        """The best spans of a sentence that the person reviews, with what is fixed in it; nothing changes."""
        with self.lock:
            entry = self._entry(id)
            row = self.queue.row(entry.id)
            self._check_held(entry, person)
            if row.kind != "review":
                raise Refused("this question is not about a whole sentence", "bad-answer")
            reviewing = self.presentation.reviewing
            try:
                known = reviewing.fixed(fixed, reviewing.length(row.x))
            except UsageError as error:
                raise Refused(str(error), "bad-answer") from None
            entry.unsure = False  # somebody has begun to correct it: it stays theirs, however sure the model becomes
            found = self.model.suggestion(row.x, fixed=known)
            return {"spans": reviewing.spans(found.output, found.chances), "unsure": found.unsure}

    # Answers

    def tell(
        self,
        person: Person,
        id: str,
        answer: object,
        seconds: float | None = None,
        nonce: str | None = None,
        away: float | None = None,
    ) -> Json:
        """Returns once it is on disk. The same again gets the same reply, and is applied once.

        ``away``: of ``seconds``, those in which the person saw something else."""
        with self.lock:
            self._writer.check()
            entry = self._entry(id)
            if not self._may_answer(person, entry):
                raise Refused("this question is for people alone", "not-yours")
            row = self.queue.row(entry.id)
            kind, said = self.presentation.understood(row, answer)
            begin, end = self.model.learner.problem.output_start[row.x : row.x + 2].tolist()
            if kind == "span" and isinstance(said, dict) and said["last"] >= end - begin:
                raise Refused(
                    f"a span ends at token {end - begin - 1} at the latest, not at {said['last']}", "bad-answer"
                )
            text = json.dumps(said)
            reply = self._repeat(entry, person, (ANSWER, kind, text), nonce)
            if reply is None:
                e0, e1 = self.quality.error_of(person.id, kind)
                if row.decides is not None:
                    e0 = e1 = DECIDED_ERROR
                taught = self.quality.grades.standard(person.id, float(text)) if kind == "rate" else None
                given = {"kind": kind, "answer": text, "e0": e0, "e1": e1, "taught": taught}
                event = self._noted(ANSWER, person.id, entry.id, seconds=seconds, nonce=nonce, away=away, **given)
                mine = self.queue.answers_by[person.id]
                told = {"id": id, "saved": True, "answer": answer, "answers": self.queue.answers, "mine": mine}
                reply = self._remember(entry, event, told)
        reply[0].result()
        return reply[1]

    def record(
        self, person: Person, question: Question, answer: Answer, seconds: float | None = None, nonce: str | None = None
    ) -> int:
        """A review that was made elsewhere, the question and its answer at once; returns the question's number."""
        with self.lock:
            self._writer.check()
            row = QuestionRow.of(question, self.queue.questions + 1, self.clock(), person.id)
            self.queue.add(replace(row, lessons=self.model.count), self.clock() + self.lease_seconds)
            done = self._writer.put([self.queue.row(row.id), self._recorded(person, row.id, answer, seconds, nonce)])
        done.result()
        return row.id

    def _recorded(
        self, person: Person, question: int, answer: Answer, seconds: float | None, nonce: str | None
    ) -> EventRow:
        e0, e1 = self.quality.error_of(person.id, "review")
        given = {"kind": "review", "answer": json.dumps(answer), "e0": e0, "e1": e1}
        return self._noted(ANSWER, person.id, question, seconds=seconds, nonce=nonce, **given)

    def replace_answer(
        self, person: Person, question: int, answer: Answer, seconds: float | None = None, nonce: str | None = None
    ) -> None:
        """A recorded review that is another now: the earlier answer is taken back. The same again changes nothing."""
        with self.lock:
            self._writer.check()
            before = self.queue.entries[question].closed_by
            if before is not None and before.said() == answer:
                return
            rows = self._taken_back(question)
            done = self._writer.put([*rows, self._recorded(person, question, answer, seconds, nonce)])
        done.result()

    def withdraw(self, question: int) -> None:
        """A recorded review of which nothing is left."""
        with self.lock:
            self._writer.check()
            rows = self._taken_back(question)
            done = self._writer.put([*rows, self._noted(log.WITHDRAWAL, rows[0].person if rows else 0, question)])
        done.result()

    def _taken_back(self, question: int) -> list[EventRow]:
        before = self.queue.entries[question].closed_by
        if before is None:
            return []
        return [self._noted(log.RETRACTION, before.person, question, kind=before.kind, undoes=before.seq)]

    def skip(self, person: Person, id: str, why: str = log.SKIP, nonce: str | None = None) -> Json:
        """``why``: skip, or cannot-tell."""
        with self.lock:
            self._writer.check()
            entry = self._entry(id)
            reply = self._repeat(entry, person, (why, None, None), nonce)
            if reply is None:
                event = self._noted(why, person.id, entry.id, nonce=nonce)
                reply = self._remember(entry, event, {"id": id, "saved": True})
        reply[0].result()
        return reply[1]

    def flag(self, person: Person, id: str, note: str) -> Json:
        """A remark on a question, which stays as it is: here an answer to it is learned from all the same."""
        with self.lock:
            entry = self._entry(id)
            if person.id not in entry.had:
                raise Refused("this question was not asked of you", "not-yours")
        self._do(log.FLAG, person.id, entry.id, note=note)
        return {"id": id, "saved": True}

    def undo(self, person: Person, id: str | None = None) -> Json:
        """Take back the person's last answer (or skip), or a named one, which is theirs to answer again."""
        with self.lock:
            self._writer.check()
            if id is None:
                event = self.queue.last_of(person.id)
                if event is None or event.question is None:
                    raise Refused("there is no answer to take back", "unknown-question")
                entry = self.queue.entries[event.question]
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
                taken_back = self._noted(log.RETRACTION, person.id, entry.id, kind=taught, undoes=event.seq)
                done = self._writer.put([taken_back])
                self._replies.pop(entry.id, None)
            question = self._presented(entry)
        if done is not None:
            done.result()
        return question

    def _repeat(
        self, entry: Entry, person: Person, what: tuple[str, str | None, str | None], nonce: str | None
    ) -> Reply | None:
        """The reply where this has been said before, None where it is new; refused where it cannot be said."""
        before = entry.closed_by
        if before is not None and (before.person, before.what, before.kind, before.answer) == (person.id, *what):
            return self._replies.get(entry.id) or self._reply_again(entry, before)
        self._check_held(entry, person)
        if nonce is not None and nonce in entry.nonces:
            raise Refused("this answer was taken back since", "late")
        return None

    def _check_held(self, entry: Entry, person: Person) -> None:
        """Refused where a question is not this person's to answer."""
        before = entry.closed_by
        if before is not None and before.person == person.id:
            raise Refused("you have answered this already; take the answer back to change it", "already-answered")
        if before is not None or (entry.state == OPEN and entry.lessee != person.id):
            late = person.id in entry.had
            why = "it went to another person when your time was over" if late else "this question is another person's"
            raise Refused(why, "late" if late else "not-yours")
        if person.id != entry.lessee:
            raise Refused("this question is another person's", "not-yours")

    def _remember(self, entry: Entry, event: EventRow, reply: Json) -> Reply:
        """Writes the event; the reply is kept for those who do not hear it."""
        self._replies[entry.id] = made = self._writer.put([event]), reply
        if len(self._replies) > _REPLIES:
            del self._replies[next(iter(self._replies))]
        return made

    def _reply_again(self, entry: Entry, before: EventRow) -> Reply:
        """After a start the replies of before are gone; the answer is in the store."""
        done: Future[None] = Future()
        done.set_result(None)
        reply: Json = {"id": question_id(entry.id), "saved": True}
        if before.answer is not None:
            said = self.presentation.as_said(self.queue.row(entry.id), before)
            reply |= {"answer": said, "answers": self.queue.answers, "mine": self.queue.answers_by[before.person]}
        return done, reply

    # What it tells of itself

    def recent(self, person: Person, n: int = 20) -> list[Json]:
        """The person's last answers, newest first, those taken back included."""
        with self.lock:
            events = (event for event in reversed(self.queue.history[person.id]) if event.what == ANSWER)
            return [self._told(event) for event in itertools.islice(events, max(0, n))]

    def _told(self, event: EventRow) -> Json:
        row = self.queue.row(event.question or 0)
        shown, contents = self.presentation.question(row), self.contents
        reviewed = row.kind == "review"  # the question is always the same: the sentence says which it was
        return {
            "id": shown["id"],
            "question": contents.serving.prompt(contents.data, row.x) if reviewed else shown["text"],
            "names": shown["names"],
            "answer": self.presentation.as_said(row, event),
            "at": _iso(event.at),
            "retracted": event.seq in self.queue.undone,
        }

    def status(self, person: Person | None = None) -> Json:
        """How many answers there are, one person's or all, and how the model does."""
        audit = self.quality.audit()
        curve = self.evaluator.curve
        with self.lock:
            today, per_minute = self._speed(None if person is None else person.id)
            return {
                "answers": self.queue.answers,
                "questions": len(self.queue.entries),
                "mine": self.queue.answers_by[person.id] if person is not None else None,
                "today": today,
                "per_minute": per_minute,
                "paused": self.paused,
                "curve": curve,
                "metric": self.evaluator.metric,
                "dev": self.evaluator.newest(),
                "audit": audit,
                "forecast": self.quality.forecast(curve),
                "stop": self.quality.stop(curve, self.evaluator.metric),
                "alpha": self.quality.estimated.alpha,
                "adjudication": self._adjudicated(),
                "warning": self.quality.warning,
                "labels": list(self.presentation.offered.get(("label", self.contents.settings.about), ())),
            }

    def _adjudicated(self) -> Json | None:
        """Cases that wait and are decided, and how far two people's spans agree before that; None: there are none."""
        if self._reviewing is None or not self.store.meta["overlap"]:
            return None
        return {**self.adjudication.counts(), "agreement": self.quality.estimated.of_spans}

    def _speed(self, person: int | None) -> tuple[int, float]:
        """(answers since midnight, answers a minute lately)."""
        now = self.clock()
        midnight = datetime.datetime.fromtimestamp(now).replace(hour=0, minute=0, second=0, microsecond=0).timestamp()
        times = self.queue.times_since(person, min(midnight, now - _WINDOW))
        lately = [at for at in times if at >= now - _WINDOW]
        spread = max(_LEAST, now - min(lately, default=now))
        return sum(at >= midnight for at in times), round(60 * len(lately) / spread, 1)

    def flagged(self) -> list[Json]:
        """Who found what wrong with which question, and when: the newest first."""
        return self.exports.flags()[::-1]

    def export(self, what: str) -> File:
        """One of ``exports.EXPORTS``, as it is now: (its file name, its media type, its content in pieces)."""
        return self.exports.export(what)

    def estimate(self) -> float | None:
        """Find out anew who errs how often, and believe it; the model's agreement with the audit, where it is known."""
        found = self.quality.estimate(self.believe)
        for metric, low in self.quality.look():
            self._look(self.queue.answers, metric, low)
        self._pause_where_enough()
        return found

    def _pause_where_enough(self) -> None:
        """Once for an aim: who has questions go on after that wants more."""
        stopping = self.quality.stopping
        if (why := stopping.reached()) is not None and str(stopping.until) not in self._reached:
            self.pause(True, why)
            messages.say(f"{why}; no more questions are asked")

    def _look(self, answers: int, metric: str, value: float) -> float:
        with self.lock:
            self._looks += 1
            look = LookRow(self._looks, self.clock(), answers, metric, value)
            self._writer.put([look])
        return look.at


def _iso(at: float) -> str:
    return datetime.datetime.fromtimestamp(at, datetime.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
