"""The one who leads: deals out each batch, gathers the shares, and sends all of them to all.

    with Crew(learner, gold, workers=2) as crew:        # this process is one of them
        crew.run(steps=100_000)                         # as learner.run(gold, steps=100_000), bit for bit

A worker that dies changes nothing: its share is evaluated here, and another one is hired. It is sent a snapshot of the
state when it has started, what has been applied since when it has read that, and takes its share from then on. Steps do
not wait for it.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from sparsezo import notes
from sparsezo.errors import SparsezoError, UsageError, shown
from sparsezo.kernels import batching, loop
from sparsezo.learner import NO_END, Learner
from sparsezo.optimizer import whole
from sparsezo.workers import messages
from sparsezo.workers.channel import Agency, Channel, Gone, nothing
from sparsezo.workers.messages import DIGEST, JOIN, TURN, Head
from sparsezo.workers.replica import Replica, snapshot
from sparsezo.workers.shares import Pace, deal

_CHECKED_STEPS = 200_000  # between comparisons of all replicas, or more where hashing them costs more than a hundredth
_CHECKED_WEIGHTS = 8  # weights that are hashed in about a hundredth of a step
_MOST_LOST = 10  # workers in all, from which on no new ones are hired


class _Member:
    """A worker: on its way, reading the snapshot, or at work."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.log: list[bytes] | None = None  # turns since the snapshot, while it is read
        self.present = False
        self.pace = Pace()


class Crew:
    def __init__(self, learner: Learner, gold: Any, workers: int, agency: Agency | None = None) -> None:
        if learner.settings.batch == 1:
            raise UsageError("`workers` share the steps of a `batch`, which has 1; give a larger one, such as 1024")
        from sparsezo.workers.local import LocalAgency

        learner.run(gold, 0)  # what is wrong with gold is said now
        self.learner, self.workers = learner, workers
        self.pause: Callable[[], None] = nothing  # called while a worker is waited for; may raise
        self.lost = 0
        self.sent = 0  # bytes, to each of the workers
        self._agency = agency or LocalAgency()
        problem, gold = self._agency.share((learner.problem, gold))
        try:
            self._replica = Replica(learner, gold, problem)  # compiled by now, so that workers need not
        except BaseException:
            self._agency.close()
            raise
        self._members: list[_Member] = []
        self._pace, self._sent_at = Pace(), 0  # of this process
        self._checked = learner.step
        self._in_step = True  # all are where this process is, and nothing is on its way

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        try:
            if kind is None and self._in_step:
                self.check()
        finally:
            self.close()

    def close(self) -> None:
        try:
            self._dismiss()
        finally:
            self._agency.close()

    def _dismiss(self) -> None:
        members, self._members = self._members, []
        for member in members:
            member.channel.end()

    @property
    def present(self) -> int:
        """Workers that take a share now, this process included."""
        return 1 + len(self._at_work)

    @property
    def _at_work(self) -> list[_Member]:
        return [member for member in self._members if member.present]

    # Who takes part

    def gather(self) -> None:
        """Hire whoever is missing, and wait until all are at work."""
        self._fill()
        while self._coming:
            self._welcome(self._coming[0], self.pause)
            self._fill()

    @property
    def _coming(self) -> list[_Member]:
        return [member for member in self._members if not member.present]

    def _fill(self) -> None:
        """Hire whoever is missing."""
        while 1 + len(self._members) < self.workers and self.lost < _MOST_LOST:
            self._members.append(_Member(self._agency.hire()))

    def _welcome_all(self) -> None:
        """Who has come further, without waiting for anybody."""
        self._fill()
        for member in self._coming:
            if member.channel.waiting():
                self._welcome(member, nothing)

    def _welcome(self, member: _Member, pause: Callable[[], None]) -> None:
        """One word from a worker on its way: it has started, or has read the snapshot."""
        try:
            if messages.head_of(member.channel.receive(pause)).kind != JOIN:
                raise SparsezoError(f"{member.channel.name}: no worker of this version of sparsezo")
            if member.log is None:
                member.channel.send(snapshot(self._replica))
                member.log = []
                return
            for turn in member.log:
                member.channel.send(turn)
            member.log, member.present = None, True
        except Gone:
            self._lose(member)

    def _lose(self, member: _Member) -> None:
        self._members.remove(member)
        self.lost += 1
        rest = "another takes its place" if self.lost < _MOST_LOST else f"after {self.lost} no more are started"
        notes.say(f"step {self._replica.asked}: a worker is gone ({member.channel.name}); {rest}")
        member.channel.end()

    # Learning

    def run(self, steps: int | None = None, answers: int | None = None) -> None:
        """As ``Learner.run``; the workers that are there share it."""
        learner, replica = self.learner, self._replica
        if steps is None and answers is None:
            raise UsageError("give `steps`, `answers` or both")
        if answers is not None and not learner.asks_people:
            raise UsageError(f"`answers` {shown(answers)}: {learner.nobody}; give `steps` alone")
        learner.settings.check_start(learner.step)
        stop = min(learner.step + whole("steps", NO_END if steps is None else steps, 0), NO_END)
        end = NO_END if answers is None else whole("answers", answers, 0)
        if not self._in_step:  # a run was stopped in the middle of a batch: those who were there are not trusted
            self._dismiss()
        self._welcome_all()
        self._in_step = False
        first = last = replica.asked
        replica.clear()
        while True:
            counts = learner.state.counts
            done = int(counts[loop.STEP]) + last - first
            given = int(counts[loop.ANSWERS] + replica.batch.tally[batching.QUESTIONS])
            going = done < stop and given < end
            size = learner.settings.batch
            next_last = min(last + stop - done, (last // size + 1) * size) if going else last
            own, theirs = self._send(Head(TURN, first, last, next_last))
            replica.commit(first, last)
            if not going:
                break
            first, last = last, next_last
            self._gather_shares(first, last, own, theirs)
        self._in_step = True
        if answers is not None and given < end:
            learner.refuse_silence()
        if learner.step - self._checked >= max(_CHECKED_STEPS, learner.state.W.size // _CHECKED_WEIGHTS):
            self.check()

    def _send(self, head: Head) -> tuple[tuple[int, int], list[tuple[_Member, tuple[int, int]]]]:
        """All of a batch to all, with some turns of the next for each: (those of this process, who else has which)."""
        members = self._at_work
        paces = [self._pace.known, *(member.pace.known for member in members)]
        own, *others = deal(head.until - head.last, paces, self.learner.settings.samples)
        message = messages.pack(head, self._replica.batch)
        for member in self._members:
            if member.log is not None and head.last > head.first:
                member.log.append(bytes(message))
        theirs = []
        for member, (begin, end) in zip(members, others, strict=True):
            messages.address(message, head._replace(begin=begin, end=end))
            with contextlib.suppress(Gone):  # its share is waited for in vain, and then evaluated here
                member.channel.send(message)
            if begin < end:
                theirs.append((member, (begin, end)))
            elif head.until > head.last:
                member.pace.note(0, 0, 0)
        self.sent += len(message)
        self._sent_at = time.perf_counter_ns()
        return own, theirs

    def _gather_shares(
        self, first: int, last: int, own: tuple[int, int], theirs: list[tuple[_Member, tuple[int, int]]]
    ) -> None:
        replica = self._replica
        replica.begin(first, last)
        began = time.perf_counter_ns()
        fine = replica.evaluate(*own)
        self._pace.note(own[1] - own[0], time.perf_counter_ns() - began, began - self._sent_at)
        for member, (begin, end) in theirs:
            if not fine:
                break
            try:
                share = member.channel.receive(self.pause)
                messages.add(share, replica.batch, end - begin)
                its = messages.head_of(share)
                member.pace.note(end - begin, its.spent, its.before)
                if (failed := int(replica.batch.tally[batching.FAILED])) >= 0:
                    fine = replica.evaluate(failed, failed + 1)  # as it failed there, for what it leaves
            except Gone:
                self._lose(member)
                fine = replica.evaluate(begin, end)
        if not fine:
            raise self.learner.not_finite()

    # Whether all is well

    def check(self) -> None:
        """Compare all replicas. They are equal, unless a machine computes wrongly or another way."""
        self._checked = self.learner.step
        mine = self._replica.digest()
        members = self._at_work
        for member in members:
            try:
                member.channel.send(messages.plain(DIGEST))
                its = messages.content_of(member.channel.receive(self.pause))
            except Gone:
                self._lose(member)
                continue
            if its != mine:
                raise SparsezoError(
                    f"step {self.learner.step}: the weights of a worker ({member.channel.name}) are not those of the "
                    "others; do the workers run on one kind of CPU? The run is of no use from some step before this"
                )
