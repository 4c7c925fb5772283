"""The training loop, once for all tasks, rules and perturbations (Algorithm 1, SZO-SP, and the first-order learner).

One step is ``propose`` (perturb, decode), feedback, ``coefficient``, ``apply`` (move the weights). ``run`` does many
with the feedback computed from gold; ``Learner.ask`` and ``Learner.tell`` call the same two halves one by one, so both
give the same weights bit for bit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsezo.kernels import protocol
from sparsezo.kernels.feedback import EXACT, flipped, perceived
from sparsezo.kernels.jit import inlined_kernel, kernel
from sparsezo.kernels.random import COMPLEMENT, FEEDBACK, FOLD, INPUTS, OUTPUT, PERTURBATION, below
from sparsezo.kernels.rules import BASELINE, FIRST_ORDER, SUPERVISED, SYMMETRIC, coefficient

ALL, ACTIVE, SCORE = range(3)
MAP, ANNEALED = range(2)

# places in Memory.counts and Memory.sums
ASKED, STEP, FOLDS, UPDATES = range(N_COUNTS := 4)
LOSS, SEEN, Q_TOTAL = range(N_SUMS := 3)


class Law(NamedTuple):
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
    keys: NDArray[np.uint64]  # one a stream


class Memory(NamedTuple):
    """What is carried from step to step, and nothing else."""

    W: NDArray[np.float32]  # n features x L
    q: NDArray[np.float32]  # Adagrad's sums, or empty
    Q_row: NDArray[np.float64]  # ALL: Q when each row was last touched, or empty
    counts: NDArray[np.int64]  # ASKED, STEP, FOLDS, UPDATES
    sums: NDArray[np.float64]  # LOSS (true), SEEN (as told), Q_TOTAL


class Room(NamedTuple):
    """Scratch, large enough for every input. Nothing in it outlives a step."""

    S: NDArray[np.float32]  # rows x L
    T: NDArray[np.float32]
    V: NDArray[np.float32]
    Z: NDArray[np.float32]  # the larger of rows and columns x L
    D: NDArray[np.float32]
    U: NDArray[np.float32]  # columns x L
    row: NDArray[np.float32]  # L
    y: NDArray[np.int32]  # the candidate output
    other: NDArray[np.int32]  # what it is compared with


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


@inlined_kernel
def look(inputs: Any, law: Any, x: Any, step: Any, memory: Any, room: Any) -> None:
    """S = C W, and for the zeroth-order rules Z and V = C u."""
    if law.perturbation == ALL and memory.Q_row.size > 0:
        memory.counts[FOLDS] = protocol.fold(
            inputs, x, law.keys[FOLD], memory.counts[FOLDS], memory.sums[Q_TOTAL], memory.Q_row, room.U, memory.W
        )
    if law.rule < FIRST_ORDER:
        protocol.draw(inputs, x, law.keys[PERTURBATION], step, room.Z)
        protocol.scores_with(inputs, x, memory.W, room.Z, room.S, room.V)
    else:
        protocol.scores(inputs, x, memory.W, room.S)


@inlined_kernel
def propose(inputs: Any, task: Any, law: Any, x: Any, step: Any, memory: Any, room: Any) -> Any:
    """The candidate output in room.y and its rival in room.other; returns the candidate's score."""
    look(inputs, law, x, step, memory, room)
    R = protocol.rows(inputs, x)
    if law.rule == SUPERVISED:
        return protocol.decode(task, x, room.S, room.y)
    if law.rule == FIRST_ORDER:
        return protocol.sample(task, x, room.S, law.keys[OUTPUT], step, room.y)
    if law.rule == SYMMETRIC:
        shift(room.S, room.V, -law.mu, R, room.T)
        protocol.decode(task, x, room.T, room.other)
    elif law.rule != BASELINE:
        protocol.decode(task, x, room.S, room.other)
    shift(room.S, room.V, law.mu, R, room.T)
    return protocol.decode(task, x, room.T, room.y)


@inlined_kernel
def apply(inputs: Any, law: Any, x: Any, step: Any, c: Any, memory: Any, room: Any) -> None:
    """W += c * direction, once room.Z (zeroth-order) or room.D (the others) holds the step's own."""
    whole = False
    if law.rule < FIRST_ORDER:
        if law.perturbation == SCORE:
            protocol.see(inputs, x, room.Z, room.D)
        else:
            protocol.complete(inputs, x, law.keys[COMPLEMENT], step, room.Z, room.D, room.U, room.row)
            whole = True
    protocol.move(inputs, x, c, law.h, room.D, room.U, whole, memory.W, memory.q)
    memory.counts[UPDATES] += 1
    if law.perturbation == ALL and memory.Q_row.size > 0:
        memory.sums[Q_TOTAL] += c * c
        protocol.awake(inputs, x, memory.sums[Q_TOTAL], memory.Q_row)


@kernel
def answer(inputs: Any, task: Any, law: Any, x: Any, step: Any, y: Any, c: Any, memory: Any, room: Any) -> None:
    """Move the weights for a proposal made earlier, which is rebuilt from its step, its input and its output y."""
    look(inputs, law, x, step, memory, room)
    if law.rule == FIRST_ORDER:
        protocol.sample(task, x, room.S, law.keys[OUTPUT], step, room.other)
        protocol.score_gradient(task, x, room.S, y, room.D)
    apply(inputs, law, x, step, c, memory, room)


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
def loss(gold: Any, task: Any, x: Any, y: Any) -> Any:
    """The loss of one output, for feedback that is simulated step by step."""
    return protocol.delta(gold, task, x, y)


@kernel
def annealed(inputs: Any, task: Any, gold: Any, law: Any, x: Any, step: Any, memory: Any, room: Any) -> Any:
    """(F_plus, F_other) under eq. (annealed)."""
    look(inputs, law, x, step, memory, room)
    R = protocol.rows(inputs, x)
    shift(room.S, room.V, law.mu, R, room.T)
    F_plus = protocol.risk(gold, task, x, room.T, law.gamma)
    if law.rule == BASELINE:
        return F_plus, 0.0
    if law.rule == SYMMETRIC:
        shift(room.S, room.V, -law.mu, R, room.T)
        return F_plus, protocol.risk(gold, task, x, room.T, law.gamma)
    return F_plus, protocol.risk(gold, task, x, room.S, law.gamma)


@inlined_kernel
def differing(y: Any, other: Any, n: Any) -> Any:
    count = 0
    for i in range(n):
        count += y[i] != other[i]
    return count


@inlined_kernel
def count_step(law: Any, loss: Any, F_plus: Any, memory: Any) -> Any:
    """Add a step, its true loss and what was told of it; returns the mean that the rule compares with."""
    memory.counts[STEP] += 1
    memory.sums[LOSS] += loss
    memory.sums[SEEN] += F_plus
    if law.rule == BASELINE or law.control:
        return memory.sums[SEEN] / memory.counts[STEP]
    return 0.0


@kernel
def run(inputs: Any, task: Any, gold: Any, law: Any, N: Any, stop: Any, memory: Any, room: Any) -> Any:
    """Steps until memory.counts[STEP] == stop. False: the scores or losses of the step reached are not finite."""
    while memory.counts[STEP] < stop:
        step = memory.counts[ASKED]
        x = below(law.keys[INPUTS], step, N)
        protocol.expect(inputs, below(law.keys[INPUTS], step + 1, N), below(law.keys[INPUTS], step + 2, N), memory.W)
        score, F_other, same = 0.0, 0.0, False
        if law.criterion == ANNEALED and law.rule < FIRST_ORDER:
            F_plus, F_other = annealed(inputs, task, gold, law, x, step, memory, room)
        else:
            score = np.float64(propose(inputs, task, law, x, step, memory, room))
            F_plus = protocol.delta(gold, task, x, room.y)
            if law.rule < BASELINE:
                same = differing(room.y, room.other, protocol.outputs(task, x)) == 0
                F_other = F_plus if same else protocol.delta(gold, task, x, room.other)
        if not np.isfinite(score + F_plus + F_other):
            return False
        memory.counts[ASKED] += 1
        loss = F_plus
        if law.feedback != EXACT and law.rule != SUPERVISED:
            key = law.keys[FEEDBACK]
            F_plus = perceived(law.feedback, law.noise, law.bias, law.levels, key, step, F_plus, 0)
            if same:  # shown the same output twice, a rater says the same
                F_other = F_plus
            else:
                F_other = perceived(law.feedback, law.noise, law.bias, law.levels, key, step, F_other, 1)
            if flipped(law.feedback, law.noise, key, step):
                F_plus, F_other = F_other, F_plus
        c = coefficient(law.rule, law.h, law.mu, F_plus, F_other, count_step(law, loss, F_plus, memory))
        if c != 0:
            if law.rule == FIRST_ORDER:
                protocol.score_gradient(task, x, room.S, room.y, room.D)
            elif law.rule == SUPERVISED:
                protocol.supervise(gold, task, x, room.S, room.D)
            apply(inputs, law, x, step, c, memory, room)
    return True
