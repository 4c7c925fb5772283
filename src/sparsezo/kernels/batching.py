"""The training loop in batches: steps first..last-1 are evaluated at the same weights, then applied in their order.

``arrange`` sorts a batch's steps by their inputs, and ``evaluate`` makes the coefficients of some of them, in that
order, and moves nothing: what the steps of one input share, S = C W and the best output at w, is computed once.
``in_order`` puts what moves back into the order of steps, and ``commit`` rebuilds the directions from (seed, step,
input) and moves the weights. In between, what others have evaluated can be added to the ``Batch``: 16 bytes a step that
moves (sparsezo.workers). ``run`` is all of it, by one process.

``params.samples`` K steps in a row look at the same input, and each moves the weights by 1/K of what it would alone: W
moves by the mean of K directions.

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
from sparsezo.kernels.raters import told

# Places in Batch.tally. ASKED_LAST: the last step with a question, FAILED: whose numbers are not finite; -1: none.
MOVES, LOSS, TOLD, MAP_LOSS, QUESTIONS, ASKED_LAST, FAILED = range(N_TALLY := 7)
_FINE = 2.0**32
_BITS = 8
_DIGITS = 2**_BITS  # of an input's number, that are sorted by at a time
_FEW = 32  # steps that are sorted one by one


class Batch(NamedTuple):
    """What has been evaluated of a batch: of all its steps the tally, of those that move what moves them."""

    tally: NDArray[np.int64]  # as named above
    at: NDArray[np.int32]  # steps x 2: the step, from the batch's first one on, and its input
    c: NDArray[np.float64]  # the coefficient of each
    turns: NDArray[
        np.int32
    ]  # steps x 2: likewise, of all steps, by their inputs: the order in which they are evaluated
    spare: NDArray[np.int32]  # room to sort either
    spare_c: NDArray[np.float64]
    place: NDArray[np.int32]  # of each step among those that move, from 1 on; 0: it does not
    digits: NDArray[np.int64]  # how often each occurs


def room_for(batch: int) -> Batch:
    at, turns, spare = (np.zeros((batch, 2), np.int32) for _ in range(3))
    tally, count = np.zeros(N_TALLY, np.int64), np.zeros(_DIGITS, np.int64)
    return Batch(tally, at, np.zeros(batch), turns, spare, np.zeros(batch), np.zeros(batch, np.int32), count)


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


@kernel
def input_of(params: Any, step: Any, N: Any) -> Any:
    """The input that a step looks at."""
    return below(params.keys[INPUTS], step // params.samples, N)


@inlined_kernel
def whole(loss: Any) -> Any:
    return np.int64(np.rint(loss * _FINE))


@kernel
def arrange(params: Any, N: Any, first: Any, last: Any, batch: Any) -> None:
    """batch.turns = steps first..last-1 and their inputs, by input and, of one input, by step."""
    n, turns, spare, count = last - first, batch.turns, batch.spare, batch.digits
    for k in range(n):
        x = input_of(params, first + k, N)
        place = k
        if n <= _FEW:
            while place > 0 and turns[place - 1, 1] > x:
                turns[place, 0], turns[place, 1] = turns[place - 1, 0], turns[place - 1, 1]
                place -= 1
        turns[place, 0], turns[place, 1] = k, x
    shift = 0
    while n > _FEW and (N - 1) >> shift > 0:
        count[:] = 0
        for k in range(n):
            count[(turns[k, 1] >> shift) % _DIGITS] += 1
        total = 0
        for digit in range(_DIGITS):
            here = count[digit]
            count[digit] = total
            total += here
        for k in range(n):
            digit = (turns[k, 1] >> shift) % _DIGITS
            place = count[digit]
            spare[place, 0], spare[place, 1] = turns[k, 0], turns[k, 1]
            count[digit] = place + 1
        for k in range(n):
            turns[k, 0], turns[k, 1] = spare[k, 0], spare[k, 1]
        shift += _BITS


@inlined_kernel
def next_input(turns: Any, k: Any, end: Any) -> Any:
    """The first turn from k on, before end, that is of another input than k; end where there is none."""
    j = k
    while j < end and turns[j, 1] == turns[k, 1]:
        j += 1
    return j


@kernel
def evaluate(
    inputs: Any,
    task: Any,
    gold: Any,
    params: Any,
    first: Any,
    begin: Any,
    end: Any,
    state: Any,
    work: Any,
    batch: Any,
) -> Any:
    """Add turns begin..end-1 of the batch that begins at ``first``. False: the numbers of one are not finite."""
    tally, turns, samples = batch.tally, batch.turns, params.samples
    told_before, steps = state.sums[loop.TOLD], state.counts[loop.STEP] + 1
    F_w = 0.0
    for k in range(begin, end):
        step, x = first + turns[k, 0], turns[k, 1]
        again = k > begin and turns[k - 1, 1] == x
        if not again:
            soon = next_input(turns, k, end)
            later = next_input(turns, soon, end)
            if soon < end:
                protocol.prefetch(inputs, turns[soon, 1], turns[min(later, end - 1), 1], state.W)
        score, F_plus, F_incumbent, same, best = loop.observe(
            inputs, task, gold, params, x, step, again, F_w, state, work
        )
        if not np.isfinite(score + F_plus + F_incumbent):
            tally[FAILED] = k
            return False
        F_w = F_incumbent
        if loop.asks(params) and not same:
            tally[QUESTIONS] += 1
            tally[ASKED_LAST] = max(tally[ASKED_LAST], step)
        tally[LOSS] += whole(F_plus)
        tally[MAP_LOSS] += whole(best)
        if params.feedback != EXACT:
            F_plus, F_incumbent = told(params, step, F_plus, F_incumbent, same)
        tally[TOLD] += whole(F_plus)
        mean = loop.compared_mean(params, told_before + F_plus, steps)
        c = coefficient(params.rule, params.h, params.mu, F_plus, F_incumbent, mean) / samples
        if c != 0:
            n = tally[MOVES]
            batch.at[n, 0], batch.at[n, 1], batch.c[n] = step - first, x, c
            tally[MOVES] = n + 1
    return True


@kernel
def in_order(params: Any, N: Any, first: Any, last: Any, batch: Any) -> Any:
    """Put what moves into the order of steps. False: it cannot be of this run's steps first..last-1.

    Each of them moves once, and at the input that it looks at.
    """
    n, size, at, c, place = batch.tally[MOVES], last - first, batch.at, batch.c, batch.place
    place[:size] = 0
    for k in range(n):
        after = at[k, 0]
        if not (0 <= after < size and place[after] == 0 and np.isfinite(c[k])):
            return False
        if at[k, 1] != input_of(params, first + after, N):
            return False
        place[after] = k + 1
    k = 0
    for after in range(size):
        if place[after] > 0:
            batch.spare[k, 0], batch.spare[k, 1] = after, at[place[after] - 1, 1]
            batch.spare_c[k] = c[place[after] - 1]
            k += 1
    for k in range(n):
        at[k, 0], at[k, 1], c[k] = batch.spare[k, 0], batch.spare[k, 1], batch.spare_c[k]
    return True


@kernel
def commit(inputs: Any, params: Any, first: Any, last: Any, state: Any, work: Any, batch: Any) -> None:
    """W += c * direction for all steps of the batch, in their order, and the counts and sums of all of them."""
    tally, counts, sums = batch.tally, state.counts, state.sums
    n = tally[MOVES]
    for k in range(n):
        x, step = batch.at[k, 1], first + batch.at[k, 0]
        protocol.prefetch_move(inputs, batch.at[min(k + 1, n - 1), 1], batch.at[min(k + 2, n - 1), 1], state.W)
        drawn = loop.drawn_at(params, step)
        protocol.draw(inputs, x, params.keys[PERTURBATION], drawn, work.Z)
        loop.apply(inputs, params, x, drawn, batch.c[k] if drawn == step else -batch.c[k], state, work)
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
        arrange(params, N, first, last, batch)
        if not evaluate(inputs, task, gold, params, first, 0, last - first, state, work, batch):
            return False
        in_order(params, N, first, last, batch)
        commit(inputs, params, first, last, state, work, batch)
    return True
