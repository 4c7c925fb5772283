"""The model of a session: a function of the answers in the log that were not taken back, in the log's order.

    lessons = Lessons(learner, log, W0, folder)         # newest good snapshot, and what came after it
    lessons.apply(rows)                                 # rows that are on disk now

An answer that is taken back: the newest snapshot before it, and the later answers again. So the weights are, at any
time and after any stop, those of a replay from nothing, bit for bit. Snapshots are two in memory and some on disk; one
that is damaged, of another log or another version of this package, or has an answer that was taken back since, is
passed over.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsezo import __version__
from sparsezo.errors import SparsezoError, UsageError
from sparsezo.kernels import loop
from sparsezo.learner import Learner
from sparsezo.questions import Question
from sparsezo.serve.folder import SNAPSHOT
from sparsezo.serve.log import ANSWER, RETRACTION, EventRow, Log, Row
from sparsezo.storage.container import read_container, write_container

IN_MEMORY, ON_DISK = 256, 512  # lessons between two snapshots
SECONDS = 30.0  # at least, between two on disk: they are large
_KEPT_IN_MEMORY, _KEPT_ON_DISK = 2, 3
_COUNTS = (loop.ANSWERS, loop.UPDATES)  # of a learner's counts, those that answers move


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The model after the lessons up to event ``seq``."""

    seq: int
    count: int
    arrays: Mapping[str, NDArray[Any]]


def teach(learner: Learner, event: EventRow, question: Question) -> None:
    """One answer of the log."""
    if event.answer is None or event.e0 is None or event.e1 is None:
        raise UsageError(f"event {event.seq} of the log is an answer without an answer")
    answer = json.loads(event.answer) if event.taught is None else event.taught
    learner.learn_from(question, answer, kind=event.kind, error=(event.e0, event.e1))


class Lessons:
    """Not safe by itself: the session's lock is held around every call but ``write`` and ``reserve``."""

    def __init__(
        self, learner: Learner, log: Log, W: NDArray[Any] | None, folder: Path, question: Callable[[int], Question]
    ) -> None:
        self.learner, self._log, self._W, self._folder, self._question = learner, log, W, folder, question
        self.count = self.seq = 0
        self._in_memory: list[Snapshot] = []
        self._rooms: list[Mapping[str, NDArray[Any]]] = []  # memory of snapshots that are not needed any more
        self._disk = threading.Lock()
        self._written = 0  # the count of the newest on disk
        self._written_at = time.monotonic()
        self._start_q = learner.state.q.copy()[:1, :1]  # every entry begins alike
        self._again(self._newest_on_disk(before=None))

    def apply(self, rows: Sequence[Row], is_audit: Callable[[int | None], bool]) -> None:
        """Rows that are the newest in the log. A retraction has a kind where what it takes back has taught."""
        events = [row for row in rows if isinstance(row, EventRow)]
        undone = [event.undoes for event in events if event.what == RETRACTION and event.kind and event.undoes]
        if undone:
            self._forget(min(undone))
            return
        for event in events:
            if event.what == ANSWER and not is_audit(event.question) and event.question is not None:
                self._teach(event, self._question(event.question))

    def _teach(self, event: EventRow, question: Question) -> None:
        teach(self.learner, event, question)
        self.count, self.seq = self.count + 1, event.seq
        if self.count % IN_MEMORY == 0:
            if len(self._in_memory) == _KEPT_IN_MEMORY:
                self._rooms.append(_room(self._in_memory.pop(0)))
            self._in_memory.append(self.snapshot())

    def _forget(self, seq: int) -> None:
        """As if that answer had never been; all others that the log has now count."""
        self._in_memory = [each for each in self._in_memory if each.seq < seq]
        self._again(self._in_memory[-1] if self._in_memory else self._newest_on_disk(before=seq))

    def _again(self, start: Snapshot | None) -> None:
        """From a snapshot, or from nothing, to the log's end."""
        state = self.learner.state
        if start is None:
            if self._W is None:
                self.learner.begin_again()
            else:
                state.W[...] = self._W.reshape(state.W.shape)
            state.q[...] = self._start_q if self._start_q.size else 0
            state.counts[list(_COUNTS)] = 0
            state.sums[loop.LOSS] = 0
        else:
            for name in ("W", "q"):
                getattr(state, name)[...] = start.arrays[name]
            state.counts[list(_COUNTS)] = start.arrays["counts"]
            state.sums[loop.LOSS] = start.arrays["loss"][0]
        self.count, self.seq = (start.count, start.seq) if start is not None else (0, 0)
        for event, question in self._log.lessons(after=self.seq):
            self._teach(event, question)

    # Snapshots

    def snapshot(self) -> Snapshot:
        state = self.learner.state
        room = self._rooms.pop() if self._rooms else self._new_room()
        for name, its in room.items():
            np.copyto(its, getattr(state, name))
        arrays = {"counts": state.counts[list(_COUNTS)], "loss": state.sums[[loop.LOSS]], **room}
        return Snapshot(self.seq, self.count, arrays)

    def reserve(self) -> None:
        """Memory for all snapshots that will be taken; new memory takes ten times as long as old, and people wait."""
        while len(self._rooms) + len(self._in_memory) <= _KEPT_IN_MEMORY:
            self._rooms.append(self._new_room())

    def _new_room(self) -> dict[str, NDArray[Any]]:
        room = {name: np.empty_like(getattr(self.learner.state, name)) for name in ("W", "q")}
        for each in room.values():
            each.fill(0)
        return room

    @property
    def due(self) -> bool:
        """Whether the disk should have a newer one."""
        new = self.count - self._written >= ON_DISK or self._written > self.count
        return new and time.monotonic() - self._written_at >= SECONDS

    @property
    def behind(self) -> bool:
        """Whether the disk has not the newest."""
        return self.count != self._written

    def write(self, taken: Snapshot) -> None:
        """Beside the log; without the session's lock, so that nobody waits for it."""
        with self._disk:
            self._folder.mkdir(exist_ok=True)
            meta = {"seq": taken.seq, "lessons": taken.count, "log": self._log.meta["id"]}
            write_container(self._folder / f"{taken.seq:010d}{SNAPSHOT}", "snapshot", meta, taken.arrays)
            self._written, self._written_at = taken.count, time.monotonic()
            self._rooms.append(_room(taken))
            for old in sorted(self._folder.glob(f"*{SNAPSHOT}"))[:-_KEPT_ON_DISK]:
                old.unlink(missing_ok=True)

    def _newest_on_disk(self, before: int | None) -> Snapshot | None:
        events = self._log.events()
        retractions = [
            (event.seq, event.undoes) for event in events if event.what == RETRACTION and event.kind and event.undoes
        ]
        last = events[-1].seq if events else 0
        for path in sorted(self._folder.glob(f"*{SNAPSHOT}"), reverse=True):
            with contextlib.suppress(SparsezoError, KeyError, TypeError, ValueError):
                found = self._read(path)
                stale = any(at > found.seq >= undone for at, undone in retractions)
                if not stale and found.seq <= last and (before is None or found.seq < before):
                    self._written = found.count
                    return found
        return None

    def _read(self, path: Path) -> Snapshot:
        meta, arrays = read_container(path, "snapshot")
        state = self.learner.state
        for name, mine in (("W", state.W), ("q", state.q)):
            its = arrays[name]
            if its.shape != mine.shape or its.dtype != mine.dtype or not np.isfinite(its).all():
                raise ValueError(f"{name} is of another model")
        if meta["log"] != self._log.meta["id"] or meta["sparsezo"] != __version__:
            raise ValueError("of another log, or version")
        if arrays["counts"].shape != (len(_COUNTS),) or arrays["loss"].shape != (1,):
            raise ValueError("of another layout")
        return Snapshot(int(meta["seq"]), int(meta["lessons"]), arrays)


def _room(snapshot: Snapshot) -> dict[str, NDArray[Any]]:
    return {name: snapshot.arrays[name] for name in ("W", "q")}
