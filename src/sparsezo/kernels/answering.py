"""Learning from answers: look at inputs until one is worth a question, and climb its answer's likelihood (design 4).

``run`` does it with answers computed from gold; ``Learner.ask`` and ``Learner.tell`` call ``look`` and ``learn`` one by
one, so both give the same weights bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from sparsezo.kernels import protocol
from sparsezo.kernels.codes import (
    ABOUT_EITHER,
    ABOUT_TOKEN,
    AT_ONCE,
    AT_RANDOM,
    BEST,
    CANDIDATES,
    FLIP,
    LABEL,
    NO,
    NO_SPAN,
    NOT_SAID,
    PAIR,
    PART,
    RATE,
    REVIEW,
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
    StepParams,
    count_answer,
    count_question,
    differing,
    pass_over,
)
from sparsezo.kernels.random import CHOICE, FEEDBACK, INPUTS, MODE, OUTPUT, REHEARSAL, below, permuted, uniform
from sparsezo.kernels.raters import perceived

RANDOM_SHARE = 0.1  # of the questions, where the others are about what is unsure: what is wrong and sure is found too
PATIENCE = 4  # times all inputs are looked at before one is asked about at random: a model sure of all goes on
MOST_LOOKS = 150  # in a row, however sure the model is: nobody waits for a question longer than some milliseconds
LOOKED = 30  # inputs, of which the one with the most gain by the second is reviewed
WHOLE_FIRST = 150  # reviews, before any is about what is marked alone: until then that was no gain (docs/answers.md)
QUESTION = 4  # numbers of a question
_BLOCK = 256  # answers that are compared at once
_LEAST_LIKELY = 1e-3  # of a thumb down on what the model is sure of: no step is longer than a thousand of others


@inlined_kernel
def look(inputs: Any, task: Any, params: Any, N: Any, x: Any, step: Any, state: Any, work: Any) -> Any:
    """A question about x in work.q (a pair in work.y and work.incumbent) and its probability; 0: passed over."""
    protocol.scores(inputs, x, state.W, work.S)
    asked = state.counts[QUESTIONS]
    passed = state.counts[PASSED]
    mode = UNSURE if passed < MOST_LOOKS else AT_ONCE
    if params.ask == AT_RANDOM or uniform(params.keys[MODE], asked, 0) < RANDOM_SHARE or passed >= PATIENCE * N:
        mode = AT_RANDOM
    about, key = params.about, params.keys[CHOICE]
    if params.rule == REVIEW and about == ABOUT_EITHER and state.counts[ANSWERS] < WHOLE_FIRST:
        about = ABOUT_TOKEN
    args = (params.rule, about, mode, params.seconds, key, step, work.q, work.y, work.incumbent)
    chance = protocol.look(task, x, work.S, *args)
    if chance > 0 and params.rule == PAIR and differing(work.y, work.incumbent, protocol.outputs(task, x)) == 0:
        return 0.0  # nobody needs to be asked which of two equal outputs is better
    return np.float64(chance)


@kernel
def likelihood(inputs: Any, task: Any, params: Any, x: Any, answer: Any, state: Any, work: Any) -> Any:
    """Of an answer, under the present weights, and its logarithm's gradient in work.D; nothing is learned."""
    return likelihood_of(inputs, task, params, x, answer, params.e0, params.e1, state, work)


@inlined_kernel
def likelihood_of(
    inputs: Any, task: Any, params: Any, x: Any, answer: Any, e0: Any, e1: Any, state: Any, work: Any
) -> Any:
    """Likewise, of somebody who errs so often."""
    protocol.scores(inputs, x, state.W, work.S)
    args = (params.rule, params.about, work.q, work.y, work.incumbent, answer, e0, e1, work.D)
    return np.float64(protocol.evidence(task, x, work.S, *args))


@inlined_kernel
def learn(inputs: Any, task: Any, params: Any, x: Any, answer: Any, state: Any, work: Any) -> Any:
    """Climb: the question is in work.q, work.y, work.incumbent. Returns the answer's likelihood, or nan."""
    return learn_of(inputs, task, params, x, answer, params.e0, params.e1, state, work)


@kernel
def learn_of(inputs: Any, task: Any, params: Any, x: Any, answer: Any, e0: Any, e1: Any, state: Any, work: Any) -> Any:
    """Likewise, from somebody who errs so often."""
    found = likelihood_of(inputs, task, params, x, answer, e0, e1, state, work)
    if found > 0:
        protocol.move(inputs, x, params.h, params.h, work.D, work.U, False, state.W, state.q)
        state.counts[UPDATES] += 1
    return found


@kernel
def learn_thumb(inputs: Any, task: Any, params: Any, x: Any, y: Any, up: Any, state: Any, work: Any) -> Any:
    """Climb the likelihood of a thumb on the whole output y, no part of work; returns that likelihood, or nan.

    Pr(up) = e0 + (1 - e0 - e1) p_w(y), so the gradient is a multiple of that of log p_w(y)."""
    protocol.scores(inputs, x, state.W, work.S)
    protocol.sample(task, x, work.S, params.keys[OUTPUT], 0, work.y)  # leaves what the next two look at
    P = np.exp(min(np.float64(protocol.log_probability(task, x, work.S, y)), 0.0))
    scale = 1 - params.e0 - params.e1
    if up:
        found = params.e0 + scale * P
        g = scale * P / found if found > 0 else 1.0  # P below the smallest number, and nobody errs
    else:
        found = params.e1 + scale * (1 - P)
        g = -scale * P / max(found, _LEAST_LIKELY)
    if g != 0 and np.isfinite(g):
        protocol.score_gradient(task, x, work.S, y, work.D)
        protocol.move(inputs, x, g * params.h, params.h, work.D, work.U, False, state.W, state.q)
        state.counts[UPDATES] += 1
    return found


def with_room(state: State, size: int, width: int) -> State:
    """The same state with memory for so many answers, to questions of so many numbers; not compiled."""
    questions = np.zeros((size, width), np.int32)
    about, said, errors = np.zeros(size, np.int32), np.zeros(size), np.zeros((size, 2))
    n = min(size, state.said.size)
    if n:
        questions[:n], about[:n] = state.questions[:n], state.about[:n]
        said[:n], errors[:n] = state.said[:n], state.errors[:n]
    return state._replace(questions=questions, about=about, said=said, errors=errors)


@kernel
def remember(task: Any, params: Any, x: Any, answer: Any, state: Any, work: Any) -> None:
    """Keep the question, its answer and what is believed of who gave it, to be gone over again."""
    at, n = state.counts[ANSWERS], protocol.outputs(task, x)
    if at >= state.said.size:
        return
    state.said[at], state.about[at] = answer, x
    state.errors[at, 0], state.errors[at, 1] = params.e0, params.e1
    for j in range(QUESTION):
        state.questions[at, j] = work.q[j]
    if params.rule == BEST:
        for j in range(CANDIDATES):
            state.questions[at, QUESTION + j] = work.y[j]
    elif state.questions.shape[1] > QUESTION:
        for j in range(n):
            state.questions[at, QUESTION + j] = work.y[j]
            state.questions[at, QUESTION + n + j] = work.incumbent[j]


@inlined_kernel
def recall(task: Any, rule: Any, at: Any, state: Any, work: Any) -> Any:
    """The question number ``at`` in work; returns its input."""
    x = np.int64(state.about[at])  # as all other inputs are: for int32 all that follows would be compiled once more
    n = protocol.outputs(task, x)
    for j in range(QUESTION):
        work.q[j] = state.questions[at, j]
    if rule == BEST:
        for j in range(CANDIDATES):
            work.y[j] = state.questions[at, QUESTION + j]
    elif state.questions.shape[1] > QUESTION:
        for j in range(n):
            work.y[j] = state.questions[at, QUESTION + j]
            work.incumbent[j] = state.questions[at, QUESTION + n + j]
    return x


@kernel
def answered(
    inputs: Any, task: Any, params: Any, x: Any, answer: Any, looked: Any, corrections: Any, state: Any, work: Any
) -> Any:
    """All that follows from one answer. False: what was computed is not finite.

    looked, corrections: parts of x that whoever answered was to look at, and those that they set by hand.
    """
    remember(task, params, x, answer, state, work)
    given = state.counts[ANSWERS] + 1
    known = min(given, state.said.size)
    again = params.rehearse if known > 1 else 0
    if again > 0:
        prefetch_rehearsed(inputs, params, given, known, 0, state)
    if not np.isfinite(learn(inputs, task, params, x, answer, state, work)):
        return False
    count_answer(task, params, x, looked, corrections, state)
    for k in range(again):
        if k + 1 < again:
            prefetch_rehearsed(inputs, params, given, known, k + 1, state)
        if not learn_again(inputs, task, params, rehearsed(params, given, known, k), state, work):
            return False
    return True


@kernel
def rehearsed(params: Any, given: Any, known: Any, k: Any) -> Any:
    """Which of the answers known is gone over as number k after so many were given."""
    return below(params.keys[REHEARSAL], given * params.rehearse + k, known)


@kernel
def prefetch_rehearsed(inputs: Any, params: Any, given: Any, known: Any, k: Any, state: Any) -> None:
    """Ask memory for what number k is about, and for the input of the one after it."""
    soon = np.int64(state.about[rehearsed(params, given, known, k)])
    later = np.int64(state.about[rehearsed(params, given, known, k + 1)])
    protocol.prefetch(inputs, soon, later, state.W)


@kernel
def learn_again(inputs: Any, task: Any, params: Any, at: Any, state: Any, work: Any) -> Any:
    """From the answer number ``at``. False: what was computed is not finite."""
    x = recall(task, params.rule, at, state, work)
    e0, e1 = state.errors[at, 0], state.errors[at, 1]
    return bool(np.isfinite(learn_of(inputs, task, params, x, state.said[at], e0, e1, state, work)))


@kernel
def go_over_all(inputs: Any, task: Any, params: Any, turn: Any, state: Any, work: Any) -> Any:
    """Learn once more from each answer that is remembered, in the order of this turn. False: it is not finite."""
    known = min(state.counts[ANSWERS], state.said.size)
    for k in range(known):
        at = permuted(params.keys[REHEARSAL], turn * known + k, known)
        if not learn_again(inputs, task, params, at, state, work):
            return False
    return True


@kernel
def agrees(task: Any, x: Any, state: Any, work: Any) -> Any:
    """Whether x was reviewed, and the output in work.y is what the last review left."""
    at = last_about(state.about, min(state.counts[ANSWERS], state.said.size), x)
    if at < 0:
        return False
    return differing(work.y, state.questions[at, QUESTION:], protocol.outputs(task, x)) == 0


@kernel
def last_about(about: Any, known: Any, x: Any) -> Any:
    """The place of the last x in about[:known], or -1: block by block, so that the search becomes vector code."""
    x, first = np.int32(x), known
    while first > 0:
        last, first = first, max(first - _BLOCK, 0)
        block, found = about[first:last], np.int32(0)
        for k in range(block.size):
            found |= np.int32(block[k] == x)
        if found:
            for k in range(block.size - 1, -1, -1):
                if block[k] == x:
                    return first + k
    return -1


@kernel
def seek_review(inputs: Any, task: Any, params: Any, N: Any, x: Any, state: Any, work: Any) -> Any:
    """(input, 1) of the next review, which is in work: of the next LOOKED inputs the one with the most gain by the
    second. An input that was reviewed does not come again while the model agrees. -1 where the model agrees with all.
    """
    first = state.counts[ASKED]
    at_random = params.ask == AT_RANDOM or uniform(params.keys[MODE], state.counts[QUESTIONS], 0) < RANDOM_SHARE
    best, most = x, np.float64(0)
    for k in range(LOOKED if x < 0 else 0):
        if k > 0:
            pass_over(state)  # the one before
        key = params.keys[INPUTS]
        at = permuted(key, first + k, N)
        protocol.prefetch(inputs, permuted(key, first + k + 1, N), permuted(key, first + k + 2, N), state.W)
        gain = look(inputs, task, params, N, at, first, state, work)
        if np.isnan(gain):
            return at, gain
        if agrees(task, at, state, work):
            continue
        if gain > most or (best < 0 and gain >= most):
            best, most = at, gain
        if at_random and best >= 0:
            break
    if best >= 0:
        most = look(inputs, task, params, N, best, first, state, work)
    return best, most if np.isnan(most) else 1.0


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
        return perceived(params.feedback, params.noise, params.bias, params.levels, key, step, right, 0)
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
    if params.rule == BEST:
        return np.float64(protocol.delta(gold, task, x, work.y[work.q[1] :]))  # of the model's own best
    return np.float64(protocol.delta(gold, task, x, work.y))


@kernel
def reviewed(inputs: Any, task: Any, gold: Any, params: Any, x: Any, step: Any, state: Any, work: Any) -> Any:
    """What somebody who knows, and overlooks some, makes of the output in work.y; returns the number of
    corrections."""
    protocol.scores(inputs, x, state.W, work.S)
    overlooks = params.noise if params.feedback == FLIP else 0.0
    key = params.keys[FEEDBACK]
    return np.int64(protocol.review(gold, task, x, work.S, overlooks, key, step, work.y, work.incumbent))


@kernel
def review_next(inputs: Any, task: Any, gold: Any, params: Any, N: Any, state: Any, work: Any) -> Any:
    """One review; False: the scores are not finite."""
    x, chance = seek_review(inputs, task, params, N, np.int64(-1), state, work)  # no literal, for the same reason
    if not np.isfinite(chance):
        return False
    step = state.counts[ASKED]
    pass_over(state)
    if x < 0:
        return True
    count_question(state)
    state.sums[LOSS] += 1.0 if protocol.delta(gold, task, x, work.y) > 0 else 0.0
    looked = 0
    for i in range(protocol.outputs(task, x)):
        looked += work.incumbent[i] != NOT_SAID
    corrections = reviewed(inputs, task, gold, params, x, step, state, work)
    answer = np.float64(YES if corrections == 0 else NO)
    return answered(inputs, task, params, x, answer, looked, corrections, state, work)


# Two loops, of reviews and of other questions: each is compiled without what the other needs (loop.py).


@cache
def _run_of(reviews: bool) -> Callable[..., bool]:
    @kernel
    def run(
        inputs: Any, task: Any, gold: Any, params: Any, N: Any, stop: Any, answers: Any, state: Any, work: Any
    ) -> Any:
        while state.counts[STEP] < stop and state.counts[ANSWERS] < answers:
            if reviews:
                if not review_next(inputs, task, gold, params, N, state, work):
                    return False
            else:
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
                corrections = 0
                if params.rule == SPAN and answer != NO_SPAN:  # another span, or another type
                    corrections = int(answer != span_code(work.q[0], work.q[2], work.q[1]))
                if not answered(inputs, task, params, x, answer, np.int64(1), corrections, state, work):
                    return False
        return True

    return run


@cache
def _seek_of(reviews: bool) -> Callable[..., tuple[int, float]]:
    @kernel
    def seek(inputs: Any, task: Any, params: Any, N: Any, x: Any, most: Any, state: Any, work: Any) -> Any:
        for _ in range((most + LOOKED - 1) // LOOKED if reviews else most):
            step = state.counts[ASKED]
            if reviews:
                at, chance = seek_review(inputs, task, params, N, x, state, work)
                if at >= 0:
                    return at, chance
            else:
                at = x
                if x < 0:
                    key = params.keys[INPUTS]
                    at = permuted(key, step, N)
                    protocol.prefetch(inputs, permuted(key, step + 1, N), permuted(key, step + 2, N), state.W)
                chance = look(inputs, task, params, N, at, step, state, work)
                if not chance <= 0:
                    return at, chance
            pass_over(state)
        return -1, 0.0

    return seek


def run(
    inputs: Any, task: Any, gold: Any, params: StepParams, N: int, stop: int, answers: int, state: State, work: Any
) -> bool:
    """Looks until so many are done, or so many answers given. False: the scores are not finite."""
    return _run_of(params.rule == REVIEW)(inputs, task, gold, params, N, stop, answers, state, work)


def seek(
    inputs: Any, task: Any, params: StepParams, N: int, x: int, most: int, state: State, work: Any
) -> tuple[int, float]:
    """(input, chance) of the next question, which is in work; -1 where none comes in so many looks.

    x: the input that it is about, or -1 for any, in the run's own order.
    """
    return _seek_of(params.rule == REVIEW)(inputs, task, params, N, x, most, state, work)
