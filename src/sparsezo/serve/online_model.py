"""The model of a session: a function of the answers in the store that were not taken back, in the store's order.

    model = OnlineModel(learner, store, folder, W0)     # newest good snapshot, and what came after it
    model.apply(rows)                                   # rows that are on disk now
    answers, W = model.weights()                        # a copy
    answers, W = model.finished()                       # as they are exported
    replay("np.serve")                                  # from the folder alone: the same bits

Reviews are gone over again while people read the next: some after each new one, drawn by the number of answers so far
(``Settings.rehearse``), and all of them some times more before a model is exported. Both are functions of the answers
as well. Where an answer is taken back, the newest snapshot before it and the later answers again make the weights. So
these are at any time those of a replay from nothing, bit for bit. A snapshot that is damaged, of another session or
version of this package, or has an answer that was taken back since, is passed over.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sparsezo import __version__
from sparsezo.errors import DamagedError, SparsezoError, UsageError, quoted
from sparsezo.kernels import loop
from sparsezo.learner import Decoder
from sparsezo.model import Model
from sparsezo.query_learner import QueryLearner
from sparsezo.questions import Answer, Question
from sparsezo.serve.folder import SNAPSHOT, Contents, open_store, read
from sparsezo.serve.store import ANSWER, MEND, RETRACTION, EventRow, PersonRow, QuestionRow, Row, Store
from sparsezo.storage.container import like, read_container, write_container
from sparsezo.tasks.base import AnyArray, Arrays

if TYPE_CHECKING:
    from sparsezo.tasks.chunking.reviewing import Reviewing, Suggestion

IN_MEMORY, ON_DISK = 256, 512  # answers between two snapshots
FINISH = 5  # times that all reviews are gone over before a model leaves the session
SECONDS = 30.0  # at least, between two on disk: they are large
_KEPT_IN_MEMORY, _KEPT_ON_DISK = 2, 3
_LEAST_APART = 8
# Of a learner's counts, those that answers move
_COUNTS = (loop.ANSWERS, loop.UPDATES, loop.TOKENS, loop.LOOKED, loop.CORRECTIONS, loop.WHOLE)


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The model after ``count`` answers, up to event ``seq``."""

    seq: int
    count: int
    arrays: Arrays


class Lessons:
    """The answers of a log, one after the other, for a learner.

    Where a third person has decided between two reviews, the decision takes their places among those that are gone over
    again: what the two have taught until then stays taught, and nothing more of them is learned.
    """

    def __init__(self, learner: QueryLearner) -> None:
        self._learner = learner
        self._places: dict[int, list[int]] = defaultdict(list)  # of the reviews that one decision may be about
        self._decided = -1  # the place of the last decision that took others' places

    def learn(self, event: EventRow, row: QuestionRow) -> None:
        if event.answer is None or event.e0 is None or event.e1 is None:
            raise UsageError(f"event {event.seq} of the log is an answer without an answer")
        question, error, places = row.question(), (event.e0, event.e1), self._replaced(row)
        self._learner.learn_from(question, event.to_learn(), kind=event.kind, error=error, instead_of=places)

    def remember(self, event: EventRow, row: QuestionRow) -> None:
        """One that the weights have learned from already."""
        error = event.e0 or 0.0, event.e1 or 0.0
        self._learner.remember(row.question(), event.to_learn(), error=error, instead_of=self._replaced(row))

    def _replaced(self, row: QuestionRow) -> list[int]:
        """The places of the answers that this one, the next, replaces."""
        place = self._learner.answers
        if row.decides is None:
            if row.kind == "review" and (row.twice or row.again):
                self._places[row.again or row.id].append(place)
            return []
        if row.again is None or not json.loads(row.decides).get("replaces"):
            return []
        self._decided = place
        return self._places[row.again]

    def back_to(self, count: int) -> bool:
        """Only the first ``count`` answers were given; False: a later decision stands in the places of some of them."""
        for case, places in self._places.items():
            self._places[case] = [each for each in places if each < count]
        return self._decided < count


def show_in_vain(learner: QueryLearner, decoder: Decoder) -> None:
    """What is shown beside a question is compiled."""
    question = learner.any_question()
    learner.probability(question, _some_answer(learner, question))
    decoder.one(learner.state.W, question.x)


def _some_answer(learner: QueryLearner, question: Question) -> Answer:
    if question.kind == "review":
        return "right"
    return next(iter(learner.problem.questions[question.kind, question.about]), 0.0)


class OnlineModel:
    """A learner that follows a store. ``W``: the weights to start from. ``row``: a question by its number, where there
    is a quicker way than the store's. ``lock`` is held while the weights change, and by whoever reads them in place.
    ``reviewing``: where whole outputs are reviewed.
    """

    def __init__(
        self,
        learner: QueryLearner,
        store: Store,
        folder: Path,
        W: AnyArray | None = None,
        row: Callable[[int], QuestionRow] | None = None,
        lock: threading.RLock | None = None,
        reviewing: Reviewing | None = None,
    ) -> None:
        self._reviewing = reviewing
        self._finished: tuple[tuple[int, int], AnyArray] | None = None  # after so many answers, up to that event
        # an answer that is taken back costs all since the snapshot before it, with what was gone over again
        self._every = max(_LEAST_APART, IN_MEMORY // (1 + (learner.settings.rehearse or 0)))
        self.learner, self.lock, self._row = learner, lock or threading.RLock(), row or store.question
        self._store, self._folder, self._W = store, folder, W
        self.count = self.seq = 0  # answers learned from, the event of the last of them
        self._in_memory: list[Snapshot] = []
        self._disk = threading.Lock()
        self._written = 0  # the count of the newest on disk
        self._written_at = time.monotonic()
        self._start_q = learner.state.q.copy()[:1, :1]  # every entry begins alike
        self._background = ThreadPoolExecutor(1, "sparsezo snapshots")
        self._writing: Future[None] | None = None
        self._decoder = Decoder(learner.problem)
        self._lessons = Lessons(learner)
        self._restart(self._newest_on_disk())

    def weights(self) -> tuple[int, AnyArray]:
        """(answers learned from, a copy of the weights)"""
        with self.lock:
            return self.count, self.learner.state.W.copy()

    def finished(self) -> tuple[int, AnyArray]:
        """(answers learned from, the weights as they leave the session): reviews are gone over some times more, on a
        copy, so that nobody waits; ``replay`` does the same."""
        with self.lock:
            learner, known = self.learner, (self.count, self.seq)
            if learner.settings.rule != "review":
                return self.weights()
            if self._finished is not None and self._finished[0] == known:
                return self.count, self._finished[1]
            copy = QueryLearner(learner.problem, learner.settings, learner.state.W)
            copy.state = learner.state._replace(**{name: each.copy() for name, each in learner.state._asdict().items()})
        copy.finish(FINISH)
        self._finished = known, copy.weights()
        return known[0], self._finished[1]

    def output(self, x: int) -> NDArray[np.int32]:
        with self.lock:
            return self._decoder.one(self.learner.state.W, x)

    def suggestion(
        self, x: int, *, output: NDArray[np.int32] | None = None, fixed: NDArray[np.int16] | None = None
    ) -> Suggestion:
        """As ``Reviewing.suggested`` has it, by the present weights."""
        if self._reviewing is None:
            raise UsageError("this session has no reviews")
        with self.lock:
            return self._reviewing.suggested(self.learner.state.W, x, output=output, fixed=fixed)

    def warm_up(self) -> None:
        """Load what is compiled, or compile it, so that the first who asks or answers does not wait for it."""
        self.learn_in_vain(self.ask_in_vain(lambda: None))

    def ask_in_vain(self, wait: Callable[[], None]) -> Question:
        """What a question needs is compiled: one that nobody is asked. ``wait``: until another process has compiled
        what is shown beside it."""
        with self.lock:
            question = self.learner.ask()
            self.learner.unask(question)
            if self._reviewing is not None:
                self.suggestion(question.x)
            wait()
            show_in_vain(self.learner, self._decoder)
            return question

    def learn_in_vain(self, question: Question) -> None:
        """What an answer needs is compiled: a learner of its own learns from one, and nobody waits for its lock."""
        learner = QueryLearner(self.learner.problem, self.learner.settings)
        learner.learn_from(question, _some_answer(learner, question))

    def ask_from(self, step: int) -> None:
        """After a start: the learner's own order of inputs goes on where it was."""
        counts = self.learner.state.counts
        counts[loop.ASKED] = counts[loop.STEP] = max(int(counts[loop.ASKED]), step)

    # Answers

    def apply(self, rows: Sequence[Row]) -> None:
        """Learn from rows that are the newest in the store."""
        events = [row for row in rows if isinstance(row, EventRow)]
        with self.lock:
            # a retraction has a kind where what it takes back has taught
            undone = [event.undoes for event in events if event.what == RETRACTION and event.kind and event.undoes]
            if undone:  # as if that answer had never been; all others that the store has now count
                self._in_memory = [each for each in self._in_memory if each.seq < min(undone)]
                self._restart(self._in_memory[-1] if self._in_memory else self._newest_on_disk(before=min(undone)))
            for event in () if undone else events:
                if event.what == ANSWER and event.question is not None:
                    row = self._row(event.question)
                    if row.audit is None:
                        self._learn(event, row)
            new = self.count - self._written >= ON_DISK or self._written > self.count
            waited = time.monotonic() - self._written_at >= SECONDS
            if new and waited and (self._writing is None or self._writing.done()):
                self._writing = self._background.submit(self._try_to_write, self._snapshot())

    def _learn(self, event: EventRow, row: QuestionRow) -> None:
        self._lessons.learn(event, row)
        self.count, self.seq = self.count + 1, event.seq
        if self.count % self._every == 0:
            self._in_memory = [*self._in_memory[1 - _KEPT_IN_MEMORY :], self._snapshot()]

    def _restart(self, start: Snapshot | None) -> None:
        """From a snapshot, or from nothing, to the store's end."""
        state = self.learner.state
        if start is None:
            self._lessons = Lessons(self.learner)
            if self._W is None:
                self.learner.begin_again()
            else:
                state.W[...] = self._W.reshape(state.W.shape)
            state.q[...] = self._start_q if self._start_q.size else 0
            state.counts[list(_COUNTS)] = 0
            state.sums[loop.LOSS] = 0
        else:
            known = self._lessons.back_to(start.count) and self.count >= start.count
            if not known and self.learner.settings.rule == "review":
                self._remember(start.seq)
                state = self.learner.state
            state.W[...], state.q[...] = start.arrays["W"], start.arrays["q"]
            state.counts[list(_COUNTS)] = start.arrays["counts"]
            state.sums[loop.LOSS] = start.arrays["loss"][0]
        self.count, self.seq = (start.count, start.seq) if start is not None else (0, 0)
        for event, row in self._store.answers_to_learn(after=self.seq):
            self._learn(event, row)

    def _remember(self, seq: int) -> None:
        """The answers up to that event, which the weights of a snapshot have learned from: they are not in it."""
        self.learner.state.counts[loop.ANSWERS] = 0
        self._lessons = Lessons(self.learner)
        for event, row in self._store.answers_to_learn():
            if event.seq > seq:
                break
            self._lessons.remember(event, row)

    # Snapshots

    def _arrays(self) -> Arrays:
        """What the model is at present, in place."""
        state = self.learner.state
        return {"counts": state.counts[list(_COUNTS)], "loss": state.sums[[loop.LOSS]], "W": state.W, "q": state.q}

    def _snapshot(self) -> Snapshot:
        return Snapshot(self.seq, self.count, {name: each.copy() for name, each in self._arrays().items()})

    def close(self, *, keep: bool = True) -> None:
        """The next start is from a snapshot of now, where ``keep`` says so."""
        self._background.shutdown()
        if keep and self.count != self._written:
            self.save()

    def save(self) -> None:
        """A snapshot beside the store, now."""
        with self.lock:
            taken = self._snapshot()
        self._write(taken)

    def _try_to_write(self, taken: Snapshot) -> None:
        """Behind everybody's back; where it fails, the next start has more to go over, and that is all."""
        with contextlib.suppress(SparsezoError):
            self._write(taken)

    def _write(self, taken: Snapshot) -> None:
        with self._disk:  # and without the lock, so that nobody waits for it
            self._folder.mkdir(exist_ok=True)
            meta = {"seq": taken.seq, "lessons": taken.count, "log": self._store.meta["id"]}
            write_container(self._folder / f"{taken.seq:010d}{SNAPSHOT}", "snapshot", meta, taken.arrays)
            self._written, self._written_at = taken.count, time.monotonic()
            for old in sorted(self._folder.glob(f"*{SNAPSHOT}"))[:-_KEPT_ON_DISK]:
                old.unlink(missing_ok=True)

    def _newest_on_disk(self, before: float = math.inf) -> Snapshot | None:
        events = self._store.events()
        retractions = [(e.seq, e.undoes) for e in events if e.what == RETRACTION and e.kind and e.undoes]
        last = events[-1].seq if events else 0
        for path in sorted(self._folder.glob(f"*{SNAPSHOT}"), reverse=True):
            with contextlib.suppress(SparsezoError, KeyError, TypeError, ValueError):
                found = self._read(path)
                stale = any(at > found.seq >= undone for at, undone in retractions)
                if not stale and found.seq <= last and found.seq < before:
                    self._written = found.count
                    return found
        return None

    def _read(self, path: Path) -> Snapshot:
        meta, arrays = read_container(path, "snapshot")
        mine = self._arrays()
        if not all(np.isfinite(like(arrays, name, mine[name])).all() for name in mine):
            raise ValueError("not a model's numbers")
        if meta["log"] != self._store.meta["id"] or meta["sparsezo"] != __version__:
            raise ValueError("of another log, or version")
        return Snapshot(int(meta["seq"]), int(meta["lessons"]), arrays)


# From the folder alone


def replay(folder: str | os.PathLike[str], without: str | None = None, *, finish: bool = True) -> Model:
    """The model of a session from its folder alone, bit for bit the one that the session exports.

    ``without``: the name of an annotator whose answers are left out; what they made others be asked is not. ``finish``
    False: as it is asked by, before all reviews are gone over again.
    """
    contents = read(Path(folder))
    with contextlib.closing(open_store(Path(folder))) as store:
        people = store.rows(PersonRow)
        left_out = next((person.id for person in people if person.name == without), None)
        if without is not None and left_out is None:
            some = ", ".join(quoted(person.name) for person in people[:8]) or "nobody"
            raise SparsezoError(f"{store.path}: nobody of the name '{quoted(without)}' has answered; there are {some}")
        learner = QueryLearner(contents.task.problem(contents.data, asks=True), contents.settings, contents.W)
        lessons = Lessons(learner)
        for event, row in store.answers_to_learn(without=left_out):
            try:
                lessons.learn(event, row)
            except UsageError as error:
                raise DamagedError(str(store.path), f"event {event.seq}: {error}", MEND) from None
        if finish and contents.settings.rule == "review":
            learner.finish(FINISH)
        return model_of(contents, learner.weights(), learner.answers)


def model_of(contents: Contents, W: AnyArray, answers: int) -> Model:
    """Weights after so many answers, as a file has them."""
    result = {"task": contents.kind.name, "rule": contents.settings.rule, "answers": answers, "sparsezo": __version__}
    return Model(contents.task, W, contents.settings.as_dict(), result)
