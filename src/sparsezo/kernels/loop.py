"""The training loop, once for all tasks, rules and perturbations (Algorithm 1, SZO-SP, and the first-order learner).

One step is ``propose`` (perturb, decode), feedback, ``coefficient``, ``apply`` (move the weights). ``run`` does many
with the feedback computed from gold; ``Learner.ask`` and ``Learner.tell`` call the same two halves one by one, so both
give the same weights bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from sparsezo.kernels import protocol
from sparsezo.kernels.codes import (
    ALL,
    ANNEALED,
    BASELINE,
    CROSS_ENTROPY,
    EXACT,
    PAIRWISE,
    REVIEW,
    SCORE,
    SUPERVISED,
)
from sparsezo.kernels.coefficient import LEAST_PROBABILITY, coefficient, compares, late_factor
from sparsezo.kernels.jit import OPTIONS, inlined_kernel, kernel
from sparsezo.kernels.own import OwnFunction, OwnType, call
from sparsezo.kernels.random import COMPLEMENT, DEBT, FEEDBACK, INPUTS, OPPOSITE, OUTPUT, PERTURBATION, input_at
from sparsezo.kernels.raters import perceived, told

# Places in State.counts and State.sums. QUESTIONS, ANSWERS: what a person is asked, and has answered. PASSED: steps
# since the last question. SILENT: steps whose loss nobody told, since there was nothing to ask. What a person's time
# goes to: TOKENS of the inputs that answered questions were about, LOOKED, parts of these that were to be looked at,
# CORRECTIONS made by hand, and WHOLE, the tokens of inputs that were reviewed as a whole.
ASKED, STEP, SETTLEMENTS, UPDATES, READINGS, QUESTIONS, ANSWERS, PASSED, SILENT = range(9)
TOKENS, LOOKED, CORRECTIONS, WHOLE = range(9, 13)
N_COUNTS = 13
LOSS, TOLD, Q_TOTAL, MAP_LOSS, SQUARES = range(5)
N_SUMS = 5

# What a step does, the way its loop is compiled for: a run compiles what its own rule needs, and nothing else.
# perturbs by score; by active or all; is supervised; draws an output; draws two (pairwise)
IN_SCORES, IN_WEIGHTS, CLIMBS, DRAWS, DRAWS_TWO = range(5)


class StepParams(NamedTuple):
    """The settings of a run, as numbers."""

    rule: int
    perturbation: int
    criterion: int
    control: int  # first-order: subtract the running mean loss
    h: float
    mu: float
    gamma: float
    feedback: int  # the model of the rater, and its numbers
    noise: float
    bias: float
    levels: int
    about: int  # rules that learn from answers: what a question is about, how it is chosen, what raters get wrong
    ask: int
    e0: float  # Pr(yes, though wrong); label and pair: Pr(another answer)
    e1: float  # Pr(no, though right)
    rehearse: int  # earlier answers gone over again after each new one
    keys: NDArray[np.uint64]  # one a stream
    points: NDArray[np.float64]  # where outputs are made, in multiples of mu u: rules.Rule.points
    first: float = 1.0  # of these, as numbers that the loop need not read from memory
    second: float = 0.0
    own: OwnFunction | None = None  # the coefficient of somebody's own rule
    shift: int = 0  # of a stream: inputs are looked at in turn (random.input_at)
    seconds: tuple[float, float, float, float] = (0.5, 0.12, 0.7, 2.5)  # a review's (settings.SECONDS)
    unit: float = 0.0  # h is automatic (sparsezo.steps): c of a usual step, over h; 0: h is given


class State(NamedTuple):
    """What is carried from step to step, and nothing else."""

    W: NDArray[np.float32]  # n features x L
    q: NDArray[np.float32]  # Adagrad's sums, or empty
    Q_row: NDArray[np.float64]  # ALL: Q when each row was last touched, or empty
    counts: NDArray[np.int64]  # as named above
    sums: NDArray[np.float64]  # LOSS (true), TOLD (as told), Q_TOTAL, MAP_LOSS (annealed: of the best output), SQUARES
    questions: NDArray[np.int32]  # answers x numbers: what was asked, where it is gone over again; or empty
    about: NDArray[np.int32]  # the input of each
    said: NDArray[np.float64]  # the answer to each
    errors: NDArray[np.float64]  # answers x 2: how often who gave it is believed to err


class Workspace(NamedTuple):
    """Scratch, large enough for every input. Nothing in it outlives a step."""

    S: NDArray[np.float32]  # rows x L
    T: NDArray[np.float32]
    V: NDArray[np.float32]
    Z: NDArray[np.float32]  # the larger of rows and columns x L
    D: NDArray[np.float32]
    U: NDArray[np.float32]  # columns x L
    row: NDArray[np.float32]  # L
    y: NDArray[np.int32]  # the candidate output
    incumbent: NDArray[np.int32]  # what it is compared with
    more: NDArray[np.int32]  # outputs at further points
    losses: NDArray[np.float64]  # at each point, for somebody's own rule
    q: NDArray[np.int32]  # a question


@inlined_kernel
def shift(S: Any, V: Any, mu: Any, R: Any, T: Any) -> None:
    """T = S + mu V: the scores at w + mu u."""
    factor = S.dtype.type(mu)
    if R == 1:
        for l in range(S.shape[1]):
            T[0, l] = S[0, l] + factor * V[0, l]
    else:  # as one long vector; making the flat views is worth it from two rows on
        s, v, t = S.reshape(-1), V.reshape(-1), T.reshape(-1)
        for j in range(R * S.shape[1]):
            t[j] = s[j] + factor * v[j]


def way_of(params: StepParams) -> int:
    """Which of the ways a step goes."""
    if params.rule == SUPERVISED:
        return CLIMBS
    if not params.points.size:
        return DRAWS_TWO if params.rule == PAIRWISE else DRAWS
    return IN_SCORES if params.perturbation == SCORE else IN_WEIGHTS


@inlined_kernel
def perturb(way: Any, inputs: Any, params: Any, x: Any, step: Any, state: Any, work: Any) -> None:
    """S = C W, and for the zeroth-order rules Z and V = C u."""
    if way == IN_WEIGHTS and params.perturbation == ALL and state.Q_row.size > 0:
        owed = (state.counts[SETTLEMENTS], state.sums[Q_TOTAL], state.Q_row)
        state.counts[SETTLEMENTS] = protocol.settle(inputs, x, params.keys[DEBT], *owed, work.U, state.W)
    if way <= IN_WEIGHTS:
        protocol.draw(inputs, x, params.keys[PERTURBATION], step, work.Z)
        protocol.scores_with(inputs, x, state.W, work.Z, work.S, work.V)
    else:
        protocol.scores(inputs, x, state.W, work.S)


@kernel
def sample_opposite(task: Any, params: Any, x: Any, step: Any, R: Any, work: Any) -> None:
    """work.incumbent ~ p_{-w}: pairwise's pairs are then in proportion to exp(s(y) - s(incumbent))."""
    for i in range(R):
        for l in range(work.S.shape[1]):
            work.T[i, l] = -work.S[i, l]
    protocol.sample(task, x, work.T, params.keys[OPPOSITE], step, work.incumbent)


@inlined_kernel
def sampled_gradient(
    way: Any, task: Any, params: Any, x: Any, step: Any, R: Any, y: Any, other: Any, work: Any
) -> None:
    """work.D = the direction of a rule that samples its outputs, once ``sample`` was called with work.S.

    pairwise writes its opposite to work.incumbent once more, which is ``other`` in a run, but not in a late answer.
    """
    protocol.score_gradient(task, x, work.S, y, work.D)
    if params.rule == CROSS_ENTROPY:
        factor = work.D.dtype.type(1 / max(np.exp(protocol.log_probability(task, x, work.S, y)), LEAST_PROBABILITY))
        for i in range(R):
            for l in range(work.D.shape[1]):
                work.D[i, l] *= factor
    if way == DRAWS_TWO:
        sample_opposite(task, params, x, step, R, work)
        protocol.score_gradient(task, x, work.T, other, work.V)
        for i in range(R):
            for l in range(work.D.shape[1]):
                work.D[i, l] -= work.V[i, l]


@inlined_kernel
def propose(way: Any, inputs: Any, task: Any, params: Any, x: Any, step: Any, work: Any) -> Any:
    """The candidate output in work.y and its incumbent in work.incumbent, after ``perturb``; returns the candidate's
    score."""
    R = protocol.rows(inputs, x)
    if way == CLIMBS:
        return protocol.decode(task, x, work.S, work.y)
    if way == DRAWS_TWO:
        sample_opposite(task, params, x, step, R, work)
    if way >= DRAWS:
        return protocol.sample(task, x, work.S, params.keys[OUTPUT], step, work.y)
    if params.points.size > 1:
        if params.second == 0:
            protocol.decode(task, x, work.S, work.incumbent)
        else:
            shift(work.S, work.V, params.second * params.mu, R, work.T)
            protocol.decode(task, x, work.T, work.incumbent)
    shift(work.S, work.V, params.first * params.mu, R, work.T)
    return protocol.decode(task, x, work.T, work.y)


@inlined_kernel
def apply(way: Any, inputs: Any, params: Any, x: Any, step: Any, c: Any, state: Any, work: Any) -> None:
    """W += c * direction, once work.Z (zeroth-order) or work.D (the others) holds the step's own."""
    if way == IN_SCORES:
        protocol.project(inputs, x, work.Z, work.D)
    if way == IN_WEIGHTS:
        protocol.draw_complement(inputs, x, params.keys[COMPLEMENT], step, work.Z, work.D, work.U, work.row)
    protocol.move(inputs, x, c, params.h, work.D, work.U, way == IN_WEIGHTS, state.W, state.q)
    state.counts[UPDATES] += 1
    if way == IN_WEIGHTS and params.perturbation == ALL and state.Q_row.size > 0:
        state.sums[Q_TOTAL] += c * c
        protocol.mark_settled(inputs, x, state.sums[Q_TOTAL], state.Q_row)


@kernel
def log_chance(inputs: Any, task: Any, params: Any, x: Any, step: Any, y: Any, other: Any, work: Any) -> Any:
    """log of the probability with which a first-order rule draws y, pairwise: y and other, at the scores work.S.

    y and other are no part of work. ``sample`` was called with work.S last when this returns.
    """
    chance = 0.0
    if params.rule == PAIRWISE:
        sample_opposite(task, params, x, step, protocol.rows(inputs, x), work)
        chance += protocol.log_probability(task, x, work.T, other)
    protocol.sample(task, x, work.S, params.keys[OUTPUT], step, work.y)
    return chance + protocol.log_probability(task, x, work.S, y)


@kernel
def decode_all(inputs: Any, task: Any, W: Any, S: Any, y: Any, first: Any, last: Any, start: Any, out: Any) -> Any:
    """out[start[x]:start[x + 1]] = the best output of x, for x in first..last-1."""
    for x in range(first, last):
        protocol.scores(inputs, x, W, S)
        if not np.isfinite(np.float64(protocol.decode(task, x, S, y))):
            return False
        for i in range(protocol.outputs(task, x)):
            out[start[x] + i] = y[i]
    return True


@kernel
def mean_loss(gold: Any, task: Any, start: Any, outputs: Any) -> Any:
    """Of the outputs of all inputs, as they stand at ``start``."""
    N, total = start.size - 1, 0.0
    for x in range(N):
        total += protocol.delta(gold, task, x, outputs[start[x] : start[x + 1]])
    return total / N


@kernel
def confidences(inputs: Any, task: Any, W: Any, S: Any, y: Any, N: Any, out: Any) -> Any:
    """out[x] = log p_w(the best output of x)."""
    for x in range(N):
        protocol.scores(inputs, x, W, S)
        out[x] = protocol.confidence(task, x, S, y)
        if not np.isfinite(out[x]):
            return False
    return True


@kernel
def log_chances(
    inputs: Any, task: Any, key: Any, W: Any, S: Any, y: Any, x_of: Any, start: Any, given: Any, out: Any
) -> Any:
    """out[r] = log p_w(given[start[r]:start[r + 1]]), an output of input x_of[r] that is there already."""
    for r in range(x_of.size):
        x = x_of[r]
        protocol.scores(inputs, x, W, S)
        protocol.sample(task, x, S, key, 0, y)  # leaves what log_probability looks at
        out[r] = protocol.log_probability(task, x, S, given[start[r] : start[r + 1]])
        if np.isnan(out[r]):
            return False
    return True


@kernel
def span_chances(
    inputs: Any, task: Any, W: Any, S: Any, y: Any, N: Any, start: Any, fixed: Any, out: Any, chances: Any
) -> Any:
    """out = the best outputs of all inputs, chances = how likely each span of them is, where it begins; both flat, as
    is fixed, what stands of each output; or that is empty."""
    for x in range(N):
        protocol.scores(inputs, x, W, S)
        here, found = fixed[start[x] : start[x + 1]], chances[start[x] : start[x + 1]]
        if not np.isfinite(np.float64(protocol.span_chances(task, x, S, here, y, found))):
            return False
        for i in range(protocol.outputs(task, x)):
            out[start[x] + i] = y[i]
    return True


@kernel
def loss(gold: Any, task: Any, x: Any, y: Any) -> Any:
    """The loss of one output, for feedback that is simulated step by step."""
    return protocol.delta(gold, task, x, y)


@kernel
def annealed(inputs: Any, task: Any, gold: Any, params: Any, x: Any, work: Any) -> Any:
    """(F_plus, F_incumbent) under eq. (annealed), after ``perturb``; and the loss of the best output at w + mu u, as
    under eq. (map)."""
    R = protocol.rows(inputs, x)
    shift(work.S, work.V, params.first * params.mu, R, work.T)
    F_plus = protocol.risk(gold, task, x, work.T, params.gamma)
    protocol.decode(task, x, work.T, work.y)
    best = protocol.delta(gold, task, x, work.y)
    if params.points.size == 1:
        return F_plus, 0.0, best
    if params.second == 0:
        return F_plus, protocol.risk(gold, task, x, work.S, params.gamma), best
    shift(work.S, work.V, params.second * params.mu, R, work.T)
    return F_plus, protocol.risk(gold, task, x, work.T, params.gamma), best


@inlined_kernel
def differing(y: Any, incumbent: Any, n: Any) -> Any:
    count = 0
    for i in range(n):
        count += y[i] != incumbent[i]
    return count


@kernel
def decode_further(inputs: Any, task: Any, params: Any, x: Any, work: Any) -> None:
    """work.more = the outputs at the rule's points from the third on, once ``propose`` has made the first two."""
    R = protocol.rows(inputs, x)
    for k in range(2, params.points.size):
        shift(work.S, work.V, params.points[k] * params.mu, R, work.T)
        protocol.decode(task, x, work.T, work.more[k - 2])


def further_losses(own: Any, inputs: Any, task: Any, gold: Any, params: Any, x: Any, work: Any) -> Any:
    """work.losses from the third on, and their sum: somebody's own rule may ask about more outputs than two."""
    total, R = 0.0, protocol.rows(inputs, x)
    if params.criterion != ANNEALED:
        decode_further(inputs, task, params, x, work)
    for k in range(2, params.points.size):
        if params.criterion == ANNEALED:
            shift(work.S, work.V, params.points[k] * params.mu, R, work.T)
            work.losses[k] = protocol.risk(gold, task, x, work.T, params.gamma)
        else:
            work.losses[k] = protocol.delta(gold, task, x, work.more[k - 2])
        total += work.losses[k]
    return total


def coefficient_of(
    own: Any, task: Any, params: Any, x: Any, step: Any, F_plus: Any, F_incumbent: Any, mean: Any, state: Any, work: Any
) -> Any:
    """c, by somebody's own rule or by ``coefficient``; of the losses as told."""
    work.losses[0], work.losses[1] = F_plus, F_incumbent
    if params.feedback != EXACT:
        tell_further(task, params, x, step, work)
    losses = work.losses[: params.points.size]
    if params.unit == 0:
        return np.float64(call(own, losses, params.h, params.mu, mean))
    return automatic_coefficient(params, np.float64(call(own, losses, 1.0, 1.0, mean)), state)


# Which of the two it is, is known when the loop is compiled: that of a built-in rule has nothing of the other in it.


@overload(further_losses, strict=False, jit_options=OPTIONS)
def _further_losses(own: Any, *_rest: Any) -> Callable[..., Any]:
    if isinstance(own, OwnType):
        return further_losses
    return lambda own, inputs, task, gold, params, x, work: 0.0


@overload(coefficient_of, strict=False, jit_options=OPTIONS)
def _coefficient_of(own: Any, *_rest: Any) -> Callable[..., Any]:
    if isinstance(own, OwnType):
        return coefficient_of
    return lambda own, task, params, x, step, F_plus, F_incumbent, mean, state, work: step_coefficient(
        params, F_plus, F_incumbent, mean, state
    )


@kernel
def tell_further(task: Any, params: Any, x: Any, step: Any, work: Any) -> None:
    """work.losses from the third on as a rater that is not exact tells them; of an output seen before, the same."""
    rater = (params.feedback, params.noise, params.bias, params.levels)
    n = protocol.outputs(task, x)
    for k in range(2, params.points.size):
        y, seen = work.more[k - 2], -1
        for j in range(k):
            other = work.y if j == 0 else (work.incumbent if j == 1 else work.more[j - 2])
            if seen < 0 and params.criterion != ANNEALED and differing(y, other, n) == 0:
                seen = j
        work.losses[k] = (
            work.losses[seen] if seen >= 0 else perceived(*rater, params.keys[FEEDBACK], step, work.losses[k], k)
        )


@inlined_kernel
def count_step(params: Any, loss: Any, F_plus: Any, state: Any) -> Any:
    """Add a step, its true loss and what was told of it; returns the mean that the rule compares with."""
    state.counts[STEP] += 1
    state.sums[LOSS] += loss
    state.sums[TOLD] += F_plus
    if params.rule == BASELINE or params.control:
        return state.sums[TOLD] / state.counts[STEP]
    return 0.0


@kernel
def step_coefficient(params: Any, F_plus: Any, F_incumbent: Any, mean: Any, state: Any) -> Any:
    """c of a step, by ``coefficient``."""
    if params.unit == 0:
        return coefficient(params.rule, params.h, params.mu, F_plus, F_incumbent, mean)
    return automatic_coefficient(params, coefficient(params.rule, 1.0, 1.0, F_plus, F_incumbent, mean), state)


@kernel
def automatic_coefficient(params: Any, d: Any, state: Any) -> Any:
    """c where h is automatic: the rule's difference d, measured in its own root mean square over the steps that moved
    the weights, this one included: c = h unit d / rms(d), which no scale of the losses changes."""
    if d * d == 0:
        return 0.0
    state.sums[SQUARES] += d * d
    return params.h * params.unit * d * np.sqrt((state.counts[UPDATES] + 1) / state.sums[SQUARES])


@inlined_kernel
def count_question(state: Any) -> None:
    state.counts[QUESTIONS] += 1
    state.counts[PASSED] = 0


@inlined_kernel
def count_answer(task: Any, params: Any, x: Any, looked: Any, corrections: Any, state: Any) -> None:
    tokens = protocol.outputs(task, x)
    state.counts[ANSWERS] += 1
    state.counts[TOKENS] += tokens
    state.counts[LOOKED] += looked
    state.counts[CORRECTIONS] += corrections
    if params.rule == REVIEW and looked == tokens:
        state.counts[WHOLE] += tokens


@inlined_kernel
def pass_over(state: Any) -> None:
    """A step without a question."""
    state.counts[ASKED] += 1
    state.counts[STEP] += 1
    state.counts[PASSED] += 1


# The loops of each way. What is known when one is compiled is left out: Numba prunes branches on constants.


@cache
def _run_of(way: int, criterion: int) -> Callable[..., bool]:
    @kernel
    def run(
        inputs: Any, task: Any, gold: Any, params: Any, N: Any, stop: Any, answers: Any, state: Any, work: Any
    ) -> Any:
        while state.counts[STEP] < stop and state.counts[ANSWERS] < answers:
            step = state.counts[ASKED]
            at = (params.keys[INPUTS], params.shift)
            x = input_at(*at, step, N)
            protocol.prefetch(inputs, input_at(*at, step + 1, N), input_at(*at, step + 2, N), state.W)
            score, F_incumbent, same, best = 0.0, 0.0, False, 0.0
            perturb(way, inputs, params, x, step, state, work)
            if criterion == ANNEALED and way <= IN_WEIGHTS:
                F_plus, F_incumbent, best = annealed(inputs, task, gold, params, x, work)
            else:
                score = np.float64(propose(way, inputs, task, params, x, step, work))
                F_plus = protocol.delta(gold, task, x, work.y)
                if compares(params):
                    same = differing(work.y, work.incumbent, protocol.outputs(task, x)) == 0
                    F_incumbent = F_plus if same else protocol.delta(gold, task, x, work.incumbent)
                if criterion == ANNEALED and way == CLIMBS:  # minimum risk
                    best, F_plus = F_plus, protocol.risk_gradient(gold, task, x, work.S, params.gamma, work.D)
            further = further_losses(params.own, inputs, task, gold, params, x, work)
            if not np.isfinite(score + F_plus + F_incumbent + further):
                return False
            state.counts[ASKED] += 1
            state.counts[PASSED] += 1
            asks = way != CLIMBS and criterion != ANNEALED  # nobody could be, for gold itself or expected losses
            if asks and not (same and params.points.size <= 2):
                count_question(state)
                count_answer(task, params, x, 1, 0, state)
            loss = F_plus
            state.sums[MAP_LOSS] += best
            if way != CLIMBS and params.feedback != EXACT:
                F_plus, F_incumbent = told(params, step, F_plus, F_incumbent, same)
            mean = count_step(params, loss, F_plus, state)
            c = coefficient_of(params.own, task, params, x, step, F_plus, F_incumbent, mean, state, work)
            if c != 0:
                if way == CLIMBS and criterion != ANNEALED:
                    protocol.supervise(gold, task, x, work.S, work.D)
                if way >= DRAWS:
                    R = protocol.rows(inputs, x)
                    sampled_gradient(way, task, params, x, step, R, work.y, work.incumbent, work)
                apply(way, inputs, params, x, step, c, state, work)
        return True

    return run


@cache
def _seek_of(way: int) -> Callable[..., tuple[int, float]]:
    @kernel
    def seek(inputs: Any, task: Any, params: Any, N: Any, x: Any, most: Any, state: Any, work: Any) -> Any:
        for _ in range(most):
            step = state.counts[ASKED]
            at = x if x >= 0 else input_at(params.keys[INPUTS], params.shift, step, N)
            perturb(way, inputs, params, at, step, state, work)
            score = np.float64(propose(way, inputs, task, params, at, step, work))
            compared = compares(params)
            alike = compared and differing(work.y, work.incumbent, protocol.outputs(task, at)) == 0
            if not (alike and params.points.size <= 2 and np.isfinite(score)):
                return at, score
            pass_over(state)
            state.counts[SILENT] += 1
        return -1, 0.0

    return seek


@cache
def _answer_of(way: int) -> Callable[..., float]:
    @kernel
    def answer(
        inputs: Any,
        task: Any,
        params: Any,
        x: Any,
        step: Any,
        y: Any,
        other: Any,
        then: Any,
        c: Any,
        state: Any,
        work: Any,
    ) -> Any:
        perturb(way, inputs, params, x, step, state, work)
        if way >= DRAWS:
            c *= late_factor(log_chance(inputs, task, params, x, step, y, other, work), then)
            sampled_gradient(way, task, params, x, step, protocol.rows(inputs, x), y, other, work)
        apply(way, inputs, params, x, step, c, state, work)
        return c

    return answer


def run(
    inputs: Any, task: Any, gold: Any, params: StepParams, N: int, stop: int, answers: int, state: State, work: Any
) -> bool:
    """Steps until so many are done, or so many answers given: only where two outputs differ does anybody need asking.

    False: the scores or losses of the step reached are not finite.
    """
    return _run_of(way_of(params), params.criterion)(inputs, task, gold, params, N, stop, answers, state, work)


def seek(
    inputs: Any, task: Any, params: StepParams, N: int, x: int, most: int, state: State, work: Any
) -> tuple[int, float]:
    """(input, score) of the next proposal with two outputs that differ; -1 where none comes in so many steps.

    x: the input that it is about, or -1 for any, in the run's own order. A step with two equal outputs is done at that.
    """
    return _seek_of(way_of(params))(inputs, task, params, N, x, most, state, work)


def answer(
    inputs: Any,
    task: Any,
    params: StepParams,
    x: int,
    step: int,
    y: Any,
    other: Any,
    then: float,
    c: float,
    state: State,
    work: Any,
) -> float:
    """Move the weights for outputs y and other, no part of work; what was drawn is drawn again, by step and input.

    then: their ``log_chance`` when they were drawn; 0 for other rules. Returns c as it was applied.
    """
    return _answer_of(way_of(params))(inputs, task, params, x, step, y, other, then, c, state, work)
