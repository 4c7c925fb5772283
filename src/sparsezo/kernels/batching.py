"""The training loop in batches: steps first..last-1 are evaluated at the same weights, then applied in their order.

``evaluate`` makes the coefficients of some of a batch's steps and moves nothing; ``commit`` rebuilds the directions of
those that are not 0 from (seed, step, input) and moves the weights. Between the two, what others have evaluated can be
added to the ``Batch``: 16 bytes a step that moves (sparsezo.workers). ``run`` is both, by one process.

Batches end at multiples of ``params.batch``, and where a run ends. baseline compares a step's loss with the mean of the
losses before its batch and its own. Adagrad's sums are those of the moment a step is applied. Losses are added as whole
multiples of 2^-32, so that sums do not depend on who adds what first.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsezo.kernels import loop, protocol
from sparsezo.kernels.codes import EXACT
from sparsezo.kernels.coefficient import coefficient
from sparsezo.kernels.jit import inlined_kernel, kernel
from sparsezo.kernels.random import INPUTS, PERTURBATION, below

# Places in Batch.tally. ASKED_LAST: the last step with a question, FAILED: whose numbers are not finite; -1: none.
MOVES, LOSS, TOLD, MAP_LOSS, QUESTIONS, ASKED_LAST, FAILED = range(N_TALLY := 7)
_FINE = 2.0**32


class Batch(NamedTuple):
    """What has been evaluated of a batch: of all its steps the tally, of those that move what moves them."""

    tally: NDArray[np.int64]  # as named above
    at: NDArray[np.int32]  # steps x 2: the step, from the batch's first one on, and its input
    c: NDArray[np.float64]  # the coefficient of each


def room_for(batch: int) -> Batch:
    return Batch(np.zeros(N_TALLY, np.int64), np.zeros((batch, 2), np.int32), np.zeros(batch))


def runner(batch: int) -> Callable[..., Any]:
    """The compiled run for batches of so many steps; for 1 it is ``loop.run``."""
    return loop.run if batch == 1 else functools.partial(run, room_for(batch))


@inlined_kernel
def clear(batch: Any) -> None:
    for k in range(N_TALLY):
        batch.tally[k] = 0
    batch.tally[ASKED_LAST] = -1
    batch.tally[FAILED] = -1


@inlined_kernel
def batch_end(params: Any, stop: Any, state: Any) -> Any:
    """Where the batch that begins now ends, if ``stop`` steps are to be done in all."""
    first = state.counts[loop.ASKED]
    return min(first + stop - state.counts[loop.STEP], (first // params.batch + 1) * params.batch)


@inlined_kernel
def whole(loss: Any) -> Any:
    return np.int64(np.rint(loss * _FINE))


@kernel
def evaluate(
    inputs: Any,
    task: Any,
    gold: Any,
    params: Any,
    N: Any,
    first: Any,
    begin: Any,
    end: Any,
    state: Any,
    work: Any,
    batch: Any,
) -> Any:
    """Add steps begin..end-1 of the batch that begins at ``first``. False: the numbers of one are not finite."""
    key, tally = params.keys[INPUTS], batch.tally
    told_before, steps = state.sums[loop.TOLD], state.counts[loop.STEP] + 1
    for step in range(begin, end):
        x = below(key, step, N)
        protocol.prefetch(inputs, below(key, step + 1, N), below(key, step + 2, N), state.W)
        score, F_plus, F_incumbent, same, best = loop.observe(inputs, task, gold, params, x, step, state, work)
        if not np.isfinite(score + F_plus + F_incumbent):
            tally[FAILED] = step
            return False
        if loop.asks(params) and not same:
            tally[QUESTIONS] += 1
            tally[ASKED_LAST] = step
        tally[LOSS] += whole(F_plus)
        tally[MAP_LOSS] += whole(best)
        if params.feedback != EXACT:
            F_plus, F_incumbent = loop.told(params, step, F_plus, F_incumbent, same)
        tally[TOLD] += whole(F_plus)
        mean = loop.compared_mean(params, told_before + F_plus, steps)
        c = coefficient(params.rule, params.h, params.mu, F_plus, F_incumbent, mean)
        if c != 0:
            n = tally[MOVES]
            batch.at[n, 0], batch.at[n, 1], batch.c[n] = step - first, x, c
            tally[MOVES] = n + 1
    return True


@kernel
def is_sound(params: Any, N: Any, first: Any, last: Any, batch: Any) -> Any:
    """Whether it can be of this run's steps first..last-1: rising steps, each with the input that it looks at."""
    before = -1
    for k in range(batch.tally[MOVES]):
        after, c = batch.at[k, 0], batch.c[k]
        if not (before < after < last - first and np.isfinite(c)):
            return False
        if batch.at[k, 1] != below(params.keys[INPUTS], first + after, N):
            return False
        before = after
    return True


@kernel
def commit(inputs: Any, params: Any, first: Any, last: Any, state: Any, work: Any, batch: Any) -> None:
    """W += c * direction for all steps of the batch, in their order, and the counts and sums of all of them."""
    tally, counts, sums = batch.tally, state.counts, state.sums
    n = tally[MOVES]
    for k in range(n):
        x, step = batch.at[k, 1], first + batch.at[k, 0]
        protocol.prefetch_move(inputs, batch.at[min(k + 1, n - 1), 1], batch.at[min(k + 2, n - 1), 1], state.W)
        protocol.draw(inputs, x, params.keys[PERTURBATION], step, work.Z)
        loop.apply(inputs, params, x, step, batch.c[k], state, work)
    counts[loop.ASKED] += last - first
    counts[loop.STEP] += last - first
    counts[loop.QUESTIONS] += tally[QUESTIONS]
    counts[loop.ANSWERS] += tally[QUESTIONS]
    asked = tally[ASKED_LAST]
    counts[loop.PASSED] = last - 1 - asked if asked >= 0 else counts[loop.PASSED] + last - first
    sums[loop.LOSS] += tally[LOSS] / _FINE
    sums[loop.TOLD] += tally[TOLD] / _FINE
    sums[loop.MAP_LOSS] += tally[MAP_LOSS] / _FINE


@kernel
def run(
    batch: Any,
    inputs: Any,
    task: Any,
    gold: Any,
    params: Any,
    N: Any,
    stop: Any,
    answers: Any,
    state: Any,
    work: Any,
) -> Any:
    """Batches until so many steps are done, or at least so many answers given. As ``loop.run`` otherwise."""
    while state.counts[loop.STEP] < stop and state.counts[loop.ANSWERS] < answers:
        first, last = state.counts[loop.ASKED], batch_end(params, stop, state)
        clear(batch)
        if not evaluate(inputs, task, gold, params, N, first, first, last, state, work, batch):
            return False
        commit(inputs, params, first, last, state, work, batch)
    return True
