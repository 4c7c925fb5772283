"""The loop of rules pairwise and cross-entropy (Sokolov et al. 2016; docs/theory.md), which sample what they show.

The same halves as in ``loop.py``: ``propose``, feedback, ``coefficient``, ``climb``. It is a loop of its own: two
rules more in that one would make every step of every rule longer, by up to a half.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsezo.kernels import protocol
from sparsezo.kernels.codes import CROSS_ENTROPY, EXACT, PAIRWISE
from sparsezo.kernels.coefficient import LEAST_PROBABILITY, coefficient
from sparsezo.kernels.jit import inlined_kernel, kernel
from sparsezo.kernels.loop import (
    ANSWERS,
    ASKED,
    PASSED,
    SILENT,
    STEP,
    UPDATES,
    count_question,
    count_step,
    differing,
    pass_over,
    told,
)
from sparsezo.kernels.random import INPUTS, OPPOSITE, OUTPUT, below


@kernel
def sample_opposite(task: Any, params: Any, x: Any, step: Any, R: Any, work: Any) -> None:
    """work.incumbent ~ p_{-w}: pairwise's pairs are then in proportion to exp(s(y) - s(incumbent))."""
    for i in range(R):
        for l in range(work.S.shape[1]):
            work.T[i, l] = -work.S[i, l]
    protocol.sample(task, x, work.T, params.keys[OPPOSITE], step, work.incumbent)


@kernel
def direction(task: Any, params: Any, x: Any, step: Any, R: Any, y: Any, other: Any, work: Any) -> None:
    """work.D = the direction of a rule that samples its outputs, once ``sample`` was called with work.S.

    pairwise writes its opposite to work.incumbent once more, which is ``other`` in a run, but not in a late answer.
    """
    protocol.score_gradient(task, x, work.S, y, work.D)
    if params.rule == CROSS_ENTROPY:
        factor = work.D.dtype.type(1 / max(protocol.probability(task, x, work.S, y), LEAST_PROBABILITY))
        for i in range(R):
            for l in range(work.D.shape[1]):
                work.D[i, l] *= factor
    elif params.rule == PAIRWISE:
        sample_opposite(task, params, x, step, R, work)
        protocol.score_gradient(task, x, work.T, other, work.V)
        for i in range(R):
            for l in range(work.D.shape[1]):
                work.D[i, l] -= work.V[i, l]


@inlined_kernel
def propose(inputs: Any, task: Any, params: Any, x: Any, step: Any, state: Any, work: Any) -> Any:
    """The candidate output in work.y, pairwise's other one in work.incumbent; returns the candidate's score."""
    protocol.scores(inputs, x, state.W, work.S)
    if params.rule == PAIRWISE:
        sample_opposite(task, params, x, step, protocol.rows(inputs, x), work)
    return protocol.sample(task, x, work.S, params.keys[OUTPUT], step, work.y)


@inlined_kernel
def alike(task: Any, params: Any, x: Any, work: Any) -> Any:
    """Whether there are two outputs, and nobody needs to be asked which is better."""
    return params.rule == PAIRWISE and differing(work.y, work.incumbent, protocol.outputs(task, x)) == 0


@inlined_kernel
def climb(
    inputs: Any, task: Any, params: Any, x: Any, step: Any, y: Any, other: Any, c: Any, state: Any, work: Any
) -> None:
    """W += c * direction, once ``propose`` was called."""
    direction(task, params, x, step, protocol.rows(inputs, x), y, other, work)
    protocol.move(inputs, x, c, params.h, work.D, work.U, False, state.W, state.q)
    state.counts[UPDATES] += 1


@kernel
def answer(
    inputs: Any, task: Any, params: Any, x: Any, step: Any, y: Any, other: Any, c: Any, state: Any, work: Any
) -> None:
    """Move the weights for outputs that were shown earlier, no part of work, at the weights of now."""
    propose(inputs, task, params, x, step, state, work)
    climb(inputs, task, params, x, step, y, other, c, state, work)


@kernel
def seek(inputs: Any, task: Any, params: Any, N: Any, x: Any, most: Any, state: Any, work: Any) -> Any:
    """As ``loop.seek``: (input, score) of the next proposal; -1 where none comes in so many steps."""
    for _ in range(most):
        step = state.counts[ASKED]
        at = x if x >= 0 else below(params.keys[INPUTS], step, N)
        score = np.float64(propose(inputs, task, params, at, step, state, work))
        if not (np.isfinite(score) and alike(task, params, at, work)):
            return at, score
        pass_over(state)
        state.counts[SILENT] += 1
    return -1, 0.0


@kernel
def run(inputs: Any, task: Any, gold: Any, params: Any, N: Any, stop: Any, answers: Any, state: Any, work: Any) -> Any:
    """As ``loop.run``: steps until so many are done, or so many answers given. False: something is not finite."""
    while state.counts[STEP] < stop and state.counts[ANSWERS] < answers:
        step = state.counts[ASKED]
        key = params.keys[INPUTS]
        x = below(key, step, N)
        protocol.prefetch(inputs, below(key, step + 1, N), below(key, step + 2, N), state.W)
        score = np.float64(propose(inputs, task, params, x, step, state, work))
        F_plus, F_incumbent, same = protocol.delta(gold, task, x, work.y), 0.0, alike(task, params, x, work)
        if params.rule == PAIRWISE:
            F_incumbent = F_plus if same else protocol.delta(gold, task, x, work.incumbent)
        if not np.isfinite(score + F_plus + F_incumbent):
            return False
        state.counts[ASKED] += 1
        state.counts[PASSED] += 1
        if not same:
            count_question(state)
            state.counts[ANSWERS] += 1
        loss = F_plus
        if params.feedback != EXACT:
            F_plus, F_incumbent = told(params, step, F_plus, F_incumbent, same)
        c = coefficient(params.rule, params.h, params.mu, F_plus, F_incumbent, count_step(params, loss, F_plus, state))
        if c != 0:
            climb(inputs, task, params, x, step, work.y, work.incumbent, c, state, work)
    return True
