"""How much faster a run is on N workers (docs/scaling.md, "Scaling, measured and modelled").

    work = Work(evaluate=4.3e-6, apply=6.1e-6, moves=0.12)              # measured: sparsezo bench scaling
    link = Link(message=20e-6, latency=50e-6, bandwidth=1.25e9)
    speedup(work, link, batch=4096, workers=16)

A star, the program in its middle and one of the N. A batch is: the program sends all moves of the last one, N - 1
times, one after the other; everybody applies them all, and evaluates a share; the program takes in the N - 1 shares, in
their order, when it has evaluated its own. So with A = p B apply and E = (B / N) evaluate (less what steps of one input
share, ``Work.at``),

    seconds = turn + A + E + (N - 1) (out + in),    out = message + (120 + 16 p B) / bandwidth, and in with p B / N

where it takes longer to send than messages are on their way; ``batch_seconds`` has the other cases. The same is played
by events in ``schedule.simulate``, which shares nothing with this file.

>>> work, link = Work(evaluate=4e-6, apply=6e-6, moves=0.125), Link(message=1e-5, latency=0.0, bandwidth=1e9)
>>> [round(speedup(work, link, 4096, workers), 2) for workers in (1, 2, 16, 1024)]
[1.0, 1.72, 4.29, 0.6]
>>> best_workers(work, link, 4096)
24
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import NormalDist

from sparsezo.bisection import root, root_above_0
from sparsezo.errors import UsageError, shown

MOST_WORKERS = 1024
_FASTEST = 1e15  # bytes a second, in the place of no limit
_LARGEST = 2**40  # steps of a batch, in the place of no limit


@dataclass(frozen=True)
class Work:
    """What a worker does, in seconds."""

    evaluate: float  # a step
    apply: float  # a step that moves
    moves: float  # share of the steps that do
    turn: float = 0.0  # a batch, however small: the calls and messages to pack
    spread: float = 0.0  # of a step's evaluation: standard deviation / mean
    saved: float = 0.0  # of evaluating: what a batch computes once for all of its steps that look at one input
    inputs: float = math.inf  # of which each step looks at one, drawn anew

    def at(self, batch: int) -> Work:
        """With the mean time that a step takes in such a batch: some look at inputs that others look at."""
        if math.isinf(self.inputs):
            return self
        seen = 1.0 if self.inputs <= 1 else -self.inputs * math.expm1(batch * math.log1p(-1 / self.inputs))
        return replace(self, evaluate=self.evaluate - self.saved * (1 - seen / batch), saved=0.0, inputs=math.inf)

    @property
    def alone(self) -> float:
        """A step of one process, with the same batch."""
        return self.evaluate + self.moves * self.apply

    @property
    def bound(self) -> float:
        """The speed-up that no number of workers exceeds: evaluating is shared, applying is not."""
        return self.alone / (self.moves * self.apply) if self.moves * self.apply else math.inf


@dataclass(frozen=True)
class Link:
    """The program's own: one message at a time, in or out."""

    message: float  # seconds, of any message
    latency: float  # seconds on the way, in which nobody is busy
    bandwidth: float  # bytes a second
    head: int = 120  # bytes of any message
    step: int = 16  # bytes of a step that moves

    def seconds(self, steps: float) -> float:
        """A message of so many steps that move."""
        return self.message + (self.head + self.step * steps) / self.bandwidth


def largest_of(count: int) -> float:
    """The mean of the largest of so many standard normals (Blom's approximation; exactly 0 for one)."""
    return NormalDist().inv_cdf((count - 0.375) / (count + 0.25)) if count > 1 else 0.0


def longest_share(work: Work, batch: int, workers: int) -> float:
    """Seconds of the last to have evaluated its share: steps take unequal times."""
    steps = math.ceil(batch / workers)
    return work.evaluate * (steps + largest_of(workers) * work.spread * math.sqrt(steps))


def computing_seconds(work: Work, batch: int, workers: int) -> float:
    """A batch, were messages free."""
    work = work.at(batch)
    return work.turn * (workers > 1) + work.moves * batch * work.apply + longest_share(work, batch, workers)


def batch_seconds(work: Work, link: Link, batch: int, workers: int) -> float:
    _check(batch, workers)
    computing = computing_seconds(work, batch, workers)
    if workers == 1:
        return computing
    others, way = workers - 1, 2 * link.latency
    out, into = link.seconds(work.moves * batch), link.seconds(work.moves * batch / workers)
    busy = others * (out + into)  # the program is never waiting
    first = out + way + others * into  # it waits for the first share, and finds all others there
    last = others * out + way + into  # it waits for the last
    return computing + max(busy, first, last)


def _check(batch: int, workers: int) -> None:
    if not 1 <= workers <= batch:
        raise UsageError(f"`workers` {shown(workers)}: at least 1, and at most the `batch`, which has {shown(batch)}")


def speedup(work: Work, link: Link, batch: int, workers: int) -> float:
    """Times the steps a second of one process with the same batch."""
    return batch * work.at(batch).alone / batch_seconds(work, link, batch, workers)


def best_workers(work: Work, link: Link, batch: int, most: int = MOST_WORKERS) -> int:
    return max(range(1, min(most, batch) + 1), key=lambda workers: speedup(work, link, batch, workers))


# Where it stops paying


def least_batch(work: Work, link: Link, workers: int) -> int | None:
    """The smallest batch with which so many workers are faster than one; None: no batch is large enough."""
    return _smallest(workers, lambda batch: speedup(work, link, batch, workers) > 1)


def balanced_batch(work: Work, link: Link, workers: int) -> int | None:
    """The batch below which messages take more of the time than all else; None: they do with any."""

    def balanced(batch: int) -> bool:
        return batch_seconds(work, link, batch, workers) <= 2 * computing_seconds(work, batch, workers)

    return _smallest(workers, balanced)


def _smallest(least: int, holds: Callable[[int], bool]) -> int | None:
    """From which number on it holds: once it does, it goes on to."""
    if not holds(_LARGEST):
        return None
    if holds(least):
        return least
    return math.ceil(root(lambda batch: 1.0 if holds(math.ceil(batch)) else -1.0, least, _LARGEST))


def least_bandwidth(work: Work, link: Link, batch: int, workers: int) -> float | None:
    """Bytes a second below which so many workers are slower than one; None: they are with any."""

    def gain(bandwidth: float) -> float:
        return speedup(work, replace(link, bandwidth=bandwidth), batch, workers) - 1

    return root_above_0(gain) if gain(_FASTEST) > 0 else None


# What grows with n: not a step, whose weights are the active ones, but what all weights take part in


@dataclass(frozen=True)
class Table:
    """The weights of a replica, and what every worker has beside them."""

    n: int
    weight: int = 4  # bytes; 8 with Adagrad, 16 in float64
    data: int = 0  # bytes of inputs and gold
    hashing: float = 0.0  # seconds a weight
    checked: int = 200_000  # steps between two comparisons of all replicas,
    checked_weights: int = 8  # or n divided by this, if it is more

    @property
    def bytes(self) -> int:
        return self.n * self.weight + self.data

    def joining(self, link: Link, workers: int) -> float:
        """Seconds until all others have been sent a snapshot."""
        return (workers - 1) * (link.message + self.bytes / link.bandwidth)

    @property
    def checking(self) -> float:
        """Seconds a step, on the mean, that comparing replicas takes: it stays below some share of a step for any n."""
        return self.n * self.hashing / max(self.checked, self.n / self.checked_weights)


def run_seconds(work: Work, link: Link, batch: int, workers: int, steps: int, table: Table) -> float:
    """A whole run: everybody's snapshot, the steps, and the comparisons of replicas."""
    learning = steps / batch * batch_seconds(work, link, batch, workers)
    return learning if workers == 1 else learning + table.joining(link, workers) + steps * table.checking
