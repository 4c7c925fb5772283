"""The messages of a batch, played by events: what ``theory.workers`` has formulas for, with no formula.

    times = Times(apply=2e-3, shares=[9e-3, 8e-3, 9e-3], send=1e-4, take=5e-5, carry=[1e-5] * 3, latency=5e-5)
    simulate(times, batches=3)

Everybody is a script of what he does, as ``workers.crew`` and ``workers.replica`` have it; the clock goes from event to
event. A worker may have workers of its own (``tree``), to which it hands on what it is sent: then who is in the middle
sends to a few, not to all.
"""

from __future__ import annotations

import heapq
import itertools
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Busy:
    seconds: float


@dataclass(frozen=True)
class Post:
    """A message leaves for somebody's box; the sender goes on at once."""

    box: tuple[int, int]  # from whom, to whom
    latency: float


@dataclass(frozen=True)
class Wait:
    """Until there is a message."""

    box: tuple[int, int]


Script = Iterator[Busy | Post | Wait]


def play(scripts: Sequence[Script]) -> list[float]:
    """When each has come to its end."""
    order = itertools.count()  # of events at the same moment
    events = [(0.0, next(order), who) for who in range(len(scripts))]
    boxes: dict[tuple[int, int], deque[float]] = defaultdict(deque)
    waiting: dict[tuple[int, int], tuple[int, float]] = {}
    ended = [0.0] * len(scripts)
    while events:
        now, _, who = heapq.heappop(events)
        ended[who] = now
        done = next(scripts[who], None)
        if isinstance(done, Busy):
            heapq.heappush(events, (now + done.seconds, next(order), who))
        elif isinstance(done, Post):
            boxes[done.box].append(now + done.latency)
            heapq.heappush(events, (now, next(order), who))
            if done.box in waiting:
                other, since = waiting.pop(done.box)
                heapq.heappush(events, (max(since, boxes[done.box].popleft()), next(order), other))
        elif isinstance(done, Wait) and boxes[done.box]:
            heapq.heappush(events, (max(now, boxes[done.box].popleft()), next(order), who))
        elif isinstance(done, Wait):
            waiting[done.box] = (who, now)
    if waiting:
        raise RuntimeError(f"{len(waiting)} wait for ever")
    return ended


@dataclass(frozen=True)
class Times:
    """Seconds. What is a list has one for each worker, the program first."""

    apply: float  # all moves of a batch
    shares: Sequence[float]  # evaluating
    send: float  # a message with all moves, by who sends it
    take: float  # a message without its content, by who takes it in
    carry: Sequence[float]  # beside that, the content that a share has
    latency: float
    turn: float = 0.0


def simulate(times: Times, batches: int = 1, parents: Sequence[int] = ()) -> float:
    """Seconds until the program has taken in the last share of the last batch. ``parents``: of each but the program."""
    children: list[list[int]] = [[] for _ in times.shares]
    above = [-1, *(parents or [0] * (len(times.shares) - 1))]
    carry = list(times.carry)  # of the message that each sends: its own share and all below it
    for who in range(len(above) - 1, 0, -1):
        children[above[who]].insert(0, who)
        carry[above[who]] += carry[who]
    scripts = [_script(times, who, above[who], children[who], carry, batches) for who in range(len(above))]
    return play(scripts)[0]


def _script(times: Times, who: int, parent: int, children: list[int], carry: list[float], batches: int) -> Script:
    for _ in range(batches):
        if who:
            yield Wait((parent, who))
        for child in children:
            yield Busy(times.send)
            yield Post((who, child), times.latency)
        yield Busy(times.turn)
        yield Busy(times.apply)
        yield Busy(times.shares[who])
        for child in children:
            yield Wait((child, who))
            yield Busy(times.take + carry[child])
        if who:
            yield Post((who, parent), times.latency)


def tree(workers: int, fan: int) -> list[int]:
    """Parents, for everybody to send to so many."""
    return [(who - 1) // fan for who in range(1, workers)]
