"""bench scaling: what the model of N workers is made from. Steps in seconds of CPU, messages in seconds on the wall.

What a worker does is timed on a replica, by itself; a message by sending it to a worker that has nothing to do with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsezo.bench.clock import seconds
from sparsezo.kernels import batching
from sparsezo.learner import Learner
from sparsezo.settings import Settings
from sparsezo.tasks.base import Problem
from sparsezo.theory.workers import Link, Work
from sparsezo.workers import messages
from sparsezo.workers.channel import Channel
from sparsezo.workers.messages import SHARE, TURN, Head
from sparsezo.workers.replica import Replica

_BATCH = 4096  # whose steps are timed
_SAMPLES = 8  # steps of an input, where what these share is looked at
_SHARE = 64  # steps of the shares whose spread is looked at
_SMALL, _LARGE = 64, 1 << 20  # bytes of a message's content
_BURST = 48  # messages, one after the other


def cpu_seconds(work: Callable[..., Any], *args: Any) -> float:
    began = time.thread_time()
    work(*args)
    return time.thread_time() - began


def measure_work(problem: Problem, gold: Any, settings: Settings, W: NDArray[Any], rounds: int) -> Work:
    """At the weights W, and a few batches on."""
    learner = Learner(problem, replace(settings, batch=_BATCH), W)
    replica = Replica(learner, gold)
    several = Replica(Learner(problem, replace(settings, batch=_BATCH, samples=_SAMPLES), W), gold)
    calls, evaluating, together, applying, moves = [], [], [], [], 0
    for _ in range(rounds):
        first = replica.asked
        last = first + _BATCH
        calls += [cpu_seconds(_nothing, replica, first) for _ in range(8)]
        replica.begin(first, last)
        evaluating.append(cpu_seconds(replica.evaluate, 0, _BATCH))
        fresh = _looks(replica)
        several.begin(0, _BATCH)
        together.append(cpu_seconds(several.evaluate, 0, _BATCH))
        moved = int(replica.batch.tally[batching.MOVES])
        applying.append(cpu_seconds(replica.commit, first, last) / max(moved, 1))
        moves += moved
    turn = min(calls)
    a_step, with_others = (max(min(times) - turn / 2, 0.0) / _BATCH for times in (evaluating, together))
    saved = max(a_step - with_others, 0.0) / max(fresh - _looks(several), 1 / _BATCH)
    return Work(
        evaluate=a_step + saved * (1 - fresh),
        apply=min(applying),
        moves=moves / (rounds * _BATCH),
        turn=turn,
        spread=_spread(replica, rounds),
        saved=saved,
        inputs=len(problem),
    )


def _looks(replica: Replica) -> float:
    """Of a batch's turns, those at an input that the turn before was not at."""
    inputs = replica.batch.turns[:, 1]
    return float(1 + np.count_nonzero(np.diff(inputs))) / len(inputs)


def _nothing(replica: Replica, first: int) -> None:
    """A worker's turn in a batch that has no steps, but for the channel."""
    replica.begin(first, first)
    replica.evaluate(0, 0)
    share = bytes(messages.pack(Head(SHARE), replica.batch))
    messages.add(share, replica.batch, 0)
    replica.commit(first, first)


def _spread(replica: Replica, rounds: int) -> float:
    """Standard deviation / mean of a step's evaluation, from the shortest time of each of some shares."""
    first = replica.asked
    begins = range(0, _BATCH, _SHARE)
    took = np.empty((max(rounds, 3), len(begins)))
    for row in took:
        for k, begin in enumerate(begins):
            replica.begin(first, first + _BATCH)
            row[k] = cpu_seconds(replica.evaluate, begin, begin + _SHARE)
    replica.clear()
    shares = took.min(axis=0)
    return float(shares.std(ddof=1) / shares.mean() * np.sqrt(_SHARE))


def measure_link(channel: Channel, step: int, evaluate: float, rounds: int) -> Link:
    """To a worker that is at the given step, and stays there: it is asked to evaluate one, and sent empty turns."""
    ask = messages.pack(Head(TURN, step, step, step + 1, 0, 1), batching.room_for(1))

    def there_and_back(content: int = 0, before: int = 0) -> float:
        turn = messages.plain(TURN, bytes(content))

        def work() -> None:
            for _ in range(before):
                channel.send(turn)
            channel.send(ask)
            channel.receive()

        return seconds(work)

    there_and_back()
    rows = [
        (there_and_back(), there_and_back(_SMALL, _BURST), there_and_back(_LARGE, _BURST // 4))
        for _ in range(4 * rounds)
    ]
    empty, small, large = np.min(rows, axis=0)
    message = max(small - empty, 1e-9) / _BURST
    byte = max((large - empty) / (_BURST // 4) - message, 1e-9) / (_LARGE - _SMALL)
    return Link(message=message, latency=max((empty - evaluate) / 2 - message, 0.0), bandwidth=1 / byte)
