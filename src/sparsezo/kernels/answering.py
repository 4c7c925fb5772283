"""Learning from answers: look at inputs until one is worth a question, and climb its answer's likelihood (DESIGN 3a).

``run`` does it with answers computed from gold; ``Learner.ask`` and ``Learner.tell`` call ``look`` and ``learn`` one by
one, so both give the same weights bit for bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsezo.kernels import protocol
from sparsezo.kernels.codes import (
    AT_ONCE,
    AT_RANDOM,
    FLIP,
    LABEL,
    NO_SPAN,
    PAIR,
    PART,
    RATE,
    SPAN,
    SPAN_BASE,
    UNSURE,
    YES,
)
from sparsezo.kernels.jit import inlined_kernel, kernel
from sparsezo.kernels.loop import (
    ANSWERS,
    ASKED,
    LOSS,
    PASSED,
    QUESTIONS,
    STEP,
    UPDATES,
    State,
    count_question,
    differing,
    pass_over,
)
from sparsezo.kernels.random import CHOICE, FEEDBACK, INPUTS, MODE, REHEARSAL, below, permuted, uniform
from sparsezo.kernels.raters import perceived

RANDOM_SHARE = 0.1  # of the questions, where the others are about what is unsure: what is wrong and sure is found too
PATIENCE = 4  # times all inputs are looked at before one is asked about at random: a model sure of all goes on
MOST_LOOKS = 150  # in a row, however sure the model is: nobody waits for a question longer than some milliseconds
QUESTION = 4  # numbers of a question


@inlined_kernel
def look(inputs: Any, task: Any, params: Any, N: Any, x: Any, step: Any, state: Any, work: Any) -> Any:
    """A question about x in work.q (a pair in work.y and work.incumbent) and its probability; 0: passed over."""
    protocol.scores(inputs, x, state.W, work.S)
    asked = state.counts[QUESTIONS]
    passed = state.counts[PASSED]
    mode = UNSURE if passed < MOST_LOOKS else AT_ONCE
    if params.ask == AT_RANDOM or uniform(params.keys[MODE], asked, 0) < RANDOM_SHARE or passed >= PATIENCE * N:
        mode = AT_RANDOM
    key = params.keys[CHOICE]
    args = (params.rule, params.about, mode, key, step, work.q, work.y, work.incumbent)
    chance = protocol.look(task, x, work.S, *args)
    if chance > 0 and params.rule == PAIR and differing(work.y, work.incumbent, protocol.outputs(task, x)) == 0:
        return 0.0  # nobody needs to be asked which of two equal outputs is better
    return np.float64(chance)


@kernel
def likelihood(inputs: Any, task: Any, params: Any, x: Any, answer: Any, state: Any, work: Any) -> Any:
    """Of an answer, under the present weights, and its logarithm's gradient in work.D; nothing is learned."""
    protocol.scores(inputs, x, state.W, work.S)
    args = (params.rule, params.about, work.q, work.y, work.incumbent, answer, params.e0, params.e1, work.D)
    return np.float64(protocol.evidence(task, x, work.S, *args))


@inlined_kernel
def learn(inputs: Any, task: Any, params: Any, x: Any, answer: Any, state: Any, work: Any) -> Any:
    """Climb: the question is in work.q, work.y, work.incumbent. Returns the answer's likelihood, or nan."""
    found = likelihood(inputs, task, params, x, answer, state, work)
    if found > 0:
        protocol.move(inputs, x, params.h, params.h, work.D, work.U, False, state.W, state.q)
        state.counts[UPDATES] += 1
    return found


def with_room(state: State, size: int, width: int) -> State:
    """The same state with memory for so many answers, to questions of so many numbers; not compiled."""
    questions = np.zeros((size, width), np.int32)
    about, said = np.zeros(size, np.int32), np.zeros(size)
    n = min(size, state.said.size)
    if n:
        questions[:n], about[:n], said[:n] = state.questions[:n], state.about[:n], state.said[:n]
    return state._replace(questions=questions, about=about, said=said)


@inlined_kernel
def remember(task: Any, x: Any, answer: Any, state: Any, work: Any) -> None:
    """Keep the question and its answer, to be gone over again."""
    at, n = state.counts[ANSWERS], protocol.outputs(task, x)
    if at >= state.said.size:
        return
    state.said[at], state.about[at] = answer, x
    for j in range(QUESTION):
        state.questions[at, j] = work.q[j]
    if state.questions.shape[1] > QUESTION:
        for j in range(n):
            state.questions[at, QUESTION + j] = work.y[j]
            state.questions[at, QUESTION + n + j] = work.incumbent[j]


@inlined_kernel
def recall(task: Any, at: Any, state: Any, work: Any) -> Any:
    """The question number ``at`` in work; returns its input."""
    x = state.about[at]
    n = protocol.outputs(task, x)
    for j in range(QUESTION):
        work.q[j] = state.questions[at, j]
    if state.questions.shape[1] > QUESTION:
        for j in range(n):
            work.y[j] = state.questions[at, QUESTION + j]
            work.incumbent[j] = state.questions[at, QUESTION + n + j]
    return x


@kernel
def answered(inputs: Any, task: Any, params: Any, x: Any, answer: Any, state: Any, work: Any) -> Any:
    """All that follows from one answer. False: what was computed is not finite."""
    remember(task, x, answer, state, work)
    if not np.isfinite(learn(inputs, task, params, x, answer, state, work)):
        return False
    state.counts[ANSWERS] += 1
    known = min(state.counts[ANSWERS], state.said.size)
    for k in range(params.rehearse if known > 1 else 0):
        at = below(params.keys[REHEARSAL], state.counts[ANSWERS] * params.rehearse + k, known)
        again = recall(task, at, state, work)
        if not np.isfinite(learn(inputs, task, params, again, state.said[at], state, work)):
            return False
    return True


@kernel
def seek(inputs: Any, task: Any, params: Any, N: Any, x: Any, most: Any, state: Any, work: Any) -> Any:
    """(input, chance) of the next question, which is in work; -1 where none comes in so many looks.

    x: the input that it is about, or -1 for any, in the run's own order.
    """
    for _ in range(most):
        step = state.counts[ASKED]
        at = x if x >= 0 else permuted(params.keys[INPUTS], step, N)
        chance = look(inputs, task, params, N, at, step, state, work)
        if not chance <= 0:
            return at, chance
        pass_over(state)
    return -1, 0.0


@kernel
def truth(gold: Any, task: Any, params: Any, x: Any, work: Any) -> Any:
    """What somebody who knows says to the question in work."""
    if params.rule == RATE:
        return np.float64(protocol.delta(gold, task, x, work.y))
    return np.float64(protocol.truth(gold, task, x, params.rule, params.about, work.q, work.y, work.incumbent))


@inlined_kernel
def span_code(first: Any, last: Any, tag: Any) -> Any:
    """The number of an answer to span."""
    return np.float64(1 + (first * SPAN_BASE + last) * SPAN_BASE + tag)


@inlined_kernel
def said(task: Any, params: Any, x: Any, step: Any, right: Any, q: Any) -> Any:
    """The answer of a rater who errs: another one, any of them as likely; to span, one of those at hand."""
    key = params.keys[FEEDBACK]
    if params.rule == RATE:
        return perceived(params.feedback, params.noise, params.bias, params.levels, key, step, step, right, 0)
    noise = params.noise
    if params.rule == SPAN:  # one at hand is the right one by chance, so that of those at hand `noise` are wrong
        n = protocol.options(task, x, params.rule, params.about)
        noise *= n / (n - 1)
    if params.feedback != FLIP or uniform(key, step, 5) >= noise:
        return right
    args = (task, x, params.rule, params.about)
    if params.rule == SPAN:  # the types with the ends shown, and none: right may be none of these
        n = protocol.options(*args)
        k = int(uniform(key, step, 6) * n)
        return np.float64(NO_SPAN) if k == n - 1 else span_code(q[0], q[2], 2 * k)
    k = int(uniform(key, step, 6) * (protocol.options(*args) - 1))
    other = np.float64(protocol.option(*args, k))
    return other if other < right else np.float64(protocol.option(*args, k + 1))


@inlined_kernel
def true_loss(gold: Any, task: Any, params: Any, x: Any, right: Any, work: Any) -> Any:
    """Of what was shown, in [0, 1]."""
    if params.rule == PART:
        return 0.0 if right == YES else 1.0
    if params.rule == LABEL:
        return 0.0 if right == work.q[1] else 1.0
    if params.rule == SPAN:
        return 0.0 if right == span_code(work.q[0], work.q[2], work.q[1]) else 1.0
    return np.float64(protocol.delta(gold, task, x, work.y))


@kernel
def run(inputs: Any, task: Any, gold: Any, params: Any, N: Any, stop: Any, answers: Any, state: Any, work: Any) -> Any:
    """Looks until so many are done, or so many answers given. False: the scores are not finite."""
    while state.counts[STEP] < stop and state.counts[ANSWERS] < answers:
        step = state.counts[ASKED]
        key = params.keys[INPUTS]
        x = permuted(key, step, N)
        protocol.prefetch(inputs, permuted(key, step + 1, N), permuted(key, step + 2, N), state.W)
        chance = look(inputs, task, params, N, x, step, state, work)
        if not np.isfinite(chance):
            return False
        pass_over(state)
        if chance <= 0:
            continue
        count_question(state)
        right = truth(gold, task, params, x, work)
        state.sums[LOSS] += true_loss(gold, task, params, x, right, work)
        answer = said(task, params, x, step, right, work.q)
        if not answered(inputs, task, params, x, answer, state, work):
            return False
    return True
