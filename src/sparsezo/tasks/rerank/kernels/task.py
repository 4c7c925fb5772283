"""Reranking for the training loop: scores of candidates to the best one, its loss, its gradient (paper Sec. 5, SMT).

An output is one number, the candidate's place in its list; p_w(j given x) is the softmax of the list's scores.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsezo import validation
from sparsezo.errors import UsageError
from sparsezo.kernels import protocol
from sparsezo.kernels.exponential import exp_or_zero
from sparsezo.kernels.jit import kernel
from sparsezo.kernels.protocol import implements
from sparsezo.kernels.random import uniform
from sparsezo.kernels.simd import LANES, lane_leaders


class RankScratch(NamedTuple):
    p: NDArray[np.float64]  # the probabilities of the longest list
    value: NDArray[np.float64]  # for argmax
    place: NDArray[np.int64]


class RankTask(NamedTuple):
    """Where the lists begin."""

    offsets: NDArray[np.int64]  # N + 1
    scratch: RankScratch

    def check(self, problem: Any) -> None:
        if problem.n_labels != 1 or not (np.diff(problem.output_start) == 1).all():
            raise UsageError(f"n_labels is {problem.n_labels}, and an output is one place in a list")
        validation.offsets("offsets", self.offsets, n=len(problem))
        most = int(np.diff(self.offsets).max(initial=0))
        validation.at_least("max_rows", problem.max_rows, most)
        validation.at_least("the scratch", self.scratch.p.size, most)

    def most(self, x: int) -> int:
        """An output of x is a number below this."""
        return int(self.offsets[x + 1] - self.offsets[x])


class RankGold(NamedTuple):
    """Delta of every candidate, and the BLEU statistics that it comes from: only the feedback sees them."""

    offsets: NDArray[np.int64]  # N + 1
    losses: NDArray[np.float64]  # [candidates]
    statistics: NDArray[np.int16]  # [candidates, 10]

    def check(self, problem: Any, supervised: bool) -> None:
        validation.array("the gold's offsets", self.offsets, "iu", (None,))
        if not isinstance(problem.task, RankTask) or not np.array_equal(self.offsets, problem.task.offsets):
            raise UsageError("this gold is of other lists; make it by task.gold of the problem's own data")
        validation.array("the gold's losses", self.losses, "f", (int(self.offsets[-1]),))
        validation.finite("the gold's losses", self.losses)


@implements(protocol.outputs, RankTask)
def _outputs(task: Any, x: Any) -> Any:
    return 1


@implements(protocol.decode, RankTask)
def _decode(task: Any, x: Any, S: Any, y: Any) -> Any:
    best, score = argmax(S, task.offsets[x + 1] - task.offsets[x], task.scratch.value, task.scratch.place)
    y[0] = best
    return score


@implements(protocol.sample, RankTask)
def _sample(task: Any, x: Any, S: Any, key: Any, step: Any, y: Any) -> Any:
    R = task.offsets[x + 1] - task.offsets[x]
    total = softmax(task, S, R, 1.0)
    left = uniform(key, step, 0)
    y[0] = R - 1
    for j in range(R):
        left -= task.scratch.p[j]
        if left < 0:
            y[0] = j
            break
    while y[0] > 0 and task.scratch.p[y[0]] == 0:  # rounding used up the sum behind the last candidate that can be
        y[0] -= 1
    return total  # not finite where the scores are not


@implements(protocol.score_gradient, RankTask)
def _score_gradient(task: Any, x: Any, S: Any, y: Any, D: Any) -> None:
    for j in range(task.offsets[x + 1] - task.offsets[x]):  # D = onehot(y) - p, as ``sample`` left it
        D[j, 0] = -task.scratch.p[j]
    D[y[0], 0] += 1.0


@implements(protocol.log_probability, RankTask)
def _log_probability(task: Any, x: Any, S: Any, y: Any) -> Any:
    return np.log(task.scratch.p[y[0]])


@implements(protocol.supervise, RankGold)
def _supervise(gold: Any, task: Any, x: Any, S: Any, D: Any) -> None:
    """Minimum risk: several candidates may be right, so there is no gold whose likelihood to climb."""
    protocol.risk_gradient(gold, task, x, S, 1.0, D)


@implements(protocol.delta, RankGold)
def _delta(gold: Any, task: Any, x: Any, y: Any) -> Any:
    return gold.losses[gold.offsets[x] + y[0]]


@implements(protocol.risk, RankGold)
def _risk(gold: Any, task: Any, x: Any, S: Any, gamma: Any) -> Any:
    """E[Delta]; leaves the candidates' exponentials in the scratch."""
    losses = gold.losses[gold.offsets[x] : gold.offsets[x + 1]]
    exponentials(task, S, losses.size, gamma)
    return weighted(task.scratch.p, losses, losses.size) / total(task.scratch.p, losses.size)


@implements(protocol.risk_gradient, RankGold)
def _risk_gradient(gold: Any, task: Any, x: Any, S: Any, gamma: Any, D: Any) -> Any:
    """D_j = -gamma p_j (Delta_j - E[Delta])."""
    mean = protocol.risk(gold, task, x, S, gamma)
    losses = gold.losses[gold.offsets[x] : gold.offsets[x + 1]]
    scale = -gamma / total(task.scratch.p, losses.size)
    for j in range(losses.size):
        D[j, 0] = scale * task.scratch.p[j] * (losses[j] - mean)
    return mean


@kernel
def softmax(task: Any, S: Any, R: Any, gamma: Any) -> Any:
    """p[:R] = exp(gamma S) / sum; returns the sum with the largest term at 1, NaN where S is not finite."""
    p = task.scratch.p
    exponentials(task, S, R, gamma)
    whole = total(p, R)
    for j in range(R):
        p[j] /= whole
    return whole


@kernel
def exponentials(task: Any, S: Any, R: Any, gamma: Any) -> None:
    """p[:R] = exp(gamma S), the largest 1; NaN where S is not finite."""
    p = task.scratch.p
    top = argmax(S, R, task.scratch.value, task.scratch.place)[1]
    for j in range(R):
        p[j] = exp_or_zero(gamma * (S[j, 0] - top))


@kernel
def total(p: Any, R: Any) -> Any:
    """The sum of p[:R], in four sums side by side: one after the other each addition waits for the one before."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    n = R // 4 * 4
    for j in range(0, n, 4):
        a += p[j]
        b += p[j + 1]
        c += p[j + 2]
        d += p[j + 3]
    for j in range(n, R):
        a += p[j]
    return (a + b) + (c + d)


@kernel
def weighted(p: Any, losses: Any, R: Any) -> Any:
    """The sum of p[:R] * losses[:R], likewise."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    n = R // 4 * 4
    for j in range(0, n, 4):
        a += p[j] * losses[j]
        b += p[j + 1] * losses[j + 1]
        c += p[j + 2] * losses[j + 2]
        d += p[j + 3] * losses[j + 3]
    for j in range(n, R):
        a += p[j] * losses[j]
    return (a + b) + (c + d)


@kernel
def argmax(S: Any, R: Any, value: Any, place: Any) -> Any:
    """(place, value) of the largest of S[:R]; the first of equals. value, place: room for a number a lane.

    Weights that are not finite show: a feature times such a weight is never a finite number, so no score is, and the
    value is infinite.
    """
    n = R // LANES * LANES
    lane_leaders(S, n, value, place)
    best, top = 0, -np.inf
    for l in range(LANES):
        if value[l] > top or (value[l] == top and place[l] < best):
            best, top = place[l], value[l]
    for j in range(n, R):
        if S[j, 0] > top:
            best, top = j, S[j, 0]
    return best, top


def rank_task(offsets: NDArray[np.int64]) -> RankTask:
    p = np.zeros(max(int(np.diff(offsets).max(initial=0)), 1))
    return RankTask(offsets, RankScratch(p, np.zeros(LANES), np.zeros(LANES, np.int64)))
