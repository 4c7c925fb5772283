"""One of the equal copies of a run's state, and what the worker that has it does.

replica = Replica(learner, gold)
replica.begin(first, last)              # a batch
replica.evaluate(begin, end)            # a share of its turns 0..last-first-1; nothing moves
replica.commit(first, last)             # once all shares are there: W moves, in the order of steps
"""

from __future__ import annotations

import pickle
import time
from typing import Any

from sparsezo.errors import SparsezoError
from sparsezo.identity import known_by
from sparsezo.kernels import batching, loop
from sparsezo.learner import Learner
from sparsezo.tasks.base import Problem
from sparsezo.workers import messages
from sparsezo.workers.channel import Channel, Gone
from sparsezo.workers.messages import DIGEST, JOIN, SHARE, TURN, Head


class Replica:
    def __init__(self, learner: Learner, gold: Any, problem: Problem | None = None) -> None:
        """``problem``: the learner's own in another place of memory, where that is to be read."""
        self.learner = learner
        self.batch = batching.room_for(learner.settings.batch)
        self._parts = learner.parts(gold) if problem is None else (*problem.private(), *learner.parts(gold)[2:])
        self._inputs, _, _, self._params, self._N = self._parts
        self.begin(self.asked, self.asked)
        self.evaluate(0, 0)  # nothing; compiles, where that is still to do
        self.commit(self.asked, self.asked)

    @property
    def asked(self) -> int:
        return int(self.learner.state.counts[loop.ASKED])

    def clear(self) -> None:
        """Nothing is known of any batch."""
        self.batch.tally[:] = 0
        self.batch.tally[batching.ASKED_LAST] = self.batch.tally[batching.FAILED] = -1

    def begin(self, first: int, last: int) -> None:
        """A new batch, of which nothing is known but in whose turn each of its steps is evaluated."""
        self.clear()
        self._first = first
        batching.arrange(self._params, self._N, first, last, self.batch)

    def evaluate(self, begin: int, end: int) -> bool:
        """Add some turns of the batch. False: the numbers of one are not finite."""
        state, work = self.learner.state, self.learner.workspace
        return bool(batching.evaluate(*self._parts[:-1], self._first, begin, end, state, work, self.batch))

    def commit(self, first: int, last: int) -> None:
        learner = self.learner
        state, work = learner.state, learner.workspace
        if first != self.asked or not batching.in_order(self._params, self._N, first, last, self.batch):
            raise SparsezoError(f"step {self.asked}: a worker has sent what is of no step of this run")
        batching.commit(self._inputs, self._params, first, last, state, work, self.batch)

    def digest(self) -> bytes:
        """What the state is known by: equal states have equal ones."""
        return known_by(self.learner.state).encode()


def snapshot(replica: Replica) -> bytes:
    """All that somebody who has the data needs to have the same replica. For our own workers only: it is pickled."""
    learner = replica.learner
    return messages.plain(JOIN, pickle.dumps((learner.settings, tuple(learner.state)), protocol=5))


def restored(content: bytes, data: tuple[Problem, Any]) -> Replica:
    settings, state = pickle.loads(content)
    problem, gold = data
    learner = Learner(problem, settings)
    for name, its in zip(learner.state._fields, state, strict=True):
        getattr(learner.state, name)[...] = its
    return Replica(learner, gold)


def serve(channel: Channel, data: tuple[Problem, Any]) -> None:
    """What a worker does who has the problem and gold, until the other end is gone."""
    worker = Answering(data)
    try:
        channel.send(messages.plain(JOIN))
        while True:
            if (answer := worker.answer(channel.receive())) is not None:
                channel.send(answer)
    except Gone:
        return


class Answering:
    """What a worker says to each message, in their order."""

    def __init__(self, data: tuple[Problem, Any]) -> None:
        self.replica: Replica | None = None
        self._data = data

    def answer(self, message: bytes) -> bytes | bytearray | None:
        """None where there is nothing to say."""
        head = messages.head_of(message)
        if head.kind == JOIN:
            self.replica = restored(messages.content_of(message), self._data)
            return messages.plain(JOIN)
        if self.replica is None:
            raise SparsezoError("a worker was given work before it had a state")
        if head.kind == TURN:
            return _turn(self.replica, head, message)
        return messages.plain(DIGEST, self.replica.digest())


def _turn(replica: Replica, head: Head, message: bytes) -> bytearray | None:
    """Apply what all have evaluated, and evaluate the next share; None where there is none."""
    came = time.perf_counter_ns()
    if head.last > head.first:
        replica.clear()
        messages.add(message, replica.batch, head.last - head.first)
        replica.commit(head.first, head.last)
    if head.begin == head.end:
        return None
    replica.begin(head.last, head.until)
    began = time.perf_counter_ns()
    replica.evaluate(head.begin, head.end)
    spent = time.perf_counter_ns() - began
    return messages.pack(head._replace(kind=SHARE, spent=spent, before=began - came), replica.batch)
