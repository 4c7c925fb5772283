"""How far each input's output is from another loss, and what smoothing does to f there (docs/theory.md, "About f").

    margin = margins(problem, gold, W)      # of each input: no change of weights that is shorter changes its loss
    tail = tail_of(margin / norm, 0.01)     # Pr(margin <= t ||w||) <= (C t)^a for every t
    for each in smoothed(learner, gold, ratios, draws=20): ...      # |f_mu - f|, simulated

The margin is the least of (s(y) - s(y')) / ||phi(y) - phi(y')||, y the best output: over the outputs y' with another
loss where these can be listed (text, rerank), over all outputs for chunking, where it may be smaller than need be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsezo.errors import UsageError
from sparsezo.kernels import protocol
from sparsezo.kernels.inputs.dense import DenseInputs
from sparsezo.kernels.inputs.rows import RowInputs
from sparsezo.kernels.inputs.sparse import SparseInputs
from sparsezo.kernels.jit import allocating_kernel, kernel
from sparsezo.kernels.loop import shift
from sparsezo.kernels.random import PERTURBATION
from sparsezo.learner import Learner, workspace_of
from sparsezo.tasks.base import Problem

Floats = NDArray[np.float64]


def margins(problem: Problem, gold: Any, W: NDArray[Any]) -> Floats:
    """Of each input; infinite where no weights at all give another loss."""
    inputs, w = problem.inputs, np.asarray(W, np.float64)
    if isinstance(inputs, RowInputs):
        return _of_classes(inputs, gold.labels, w)
    if isinstance(inputs, DenseInputs):
        return _of_lists(inputs, gold.losses, w[: inputs.features.shape[1], 0])
    if isinstance(inputs, SparseInputs) and inputs.dense is None and getattr(problem.task, "order", 0) == 2:
        return _of_chains(inputs, problem.task, w)
    raise UsageError("margins: of text, rerank, and chunking of order 2 without vectors")


def _of_classes(inputs: RowInputs, labels: NDArray[np.int32], W: Floats) -> Floats:
    """Of two classes the features differ by x in one column and by -x in another: sqrt(2) ||x||."""
    X = csr_array((inputs.values.astype(np.float64), inputs.columns, inputs.indptr), (len(labels), len(W)))
    S, every = X @ W, np.arange(len(labels))
    best = S.argmax(1)
    right = best == labels
    rivals = right[:, None] | (np.arange(S.shape[1]) == labels[:, None])  # of a wrong class only the right one
    rivals[every, best] = False
    gaps = np.where(rivals, S[every, best][:, None] - S, np.inf).min(1)
    length = np.sqrt(2 * X.power(2).sum(1))
    return np.divide(gaps, length, out=np.full(len(gaps), np.inf), where=length > 0)


def _of_lists(inputs: DenseInputs, losses: Floats, w: Floats) -> Floats:
    found = np.full(inputs.offsets.size - 1, np.inf)
    for x, (begin, end) in enumerate(zip(inputs.offsets[:-1], inputs.offsets[1:], strict=True)):
        C, loss = inputs.features[begin:end].astype(np.float64), losses[begin:end]
        s = C @ w
        best = s.argmax()
        length = np.linalg.norm(C - C[best], axis=1)
        rivals = (loss != loss[best]) & (length > 0)  # what has the same features never changes places
        if rivals.any():
            found[x] = ((s[best] - s[rivals]) / length[rivals]).min()
    return found


def _of_chains(inputs: SparseInputs, task: Any, W: Floats) -> Floats:
    ones = np.ones(inputs.columns.size) if inputs.values is None else inputs.values.astype(np.float64)
    C = csr_array((ones, inputs.columns, inputs.row_ptr), (inputs.row_ptr.size - 1, len(W)))
    P, found = C @ W, np.full(inputs.row_start.size - 1, np.inf)
    for x, (begin, end) in enumerate(zip(inputs.row_start[:-1], inputs.row_start[1:], strict=True)):
        if end > begin:
            own = C[begin:end]
            found[x] = _of_chain(P[begin:end], (own @ own.T).toarray(), task.n_tags, task.start)
    return found


@allocating_kernel
def _of_chain(P: Any, G: Any, K: Any, start: Any) -> Any:
    """The least (s(y) - s(y')) / ||phi(y) - phi(y')|| over all paths y' but the best path y. G = C C'.

    Of a y' that leaves y twice and comes back between, both the scores' and the features' differences are sums of
    those of the two parts, so its ratio is not below the smaller of theirs. It is thus enough to look at runs: tokens
    in a row, all of another tag than y's. A run is not gone on with where no end of it can come below the least so far.
    """
    R = len(P)
    y, own = np.empty(R, np.int64), np.empty(R, np.int64)  # the best path and its pairs of tags
    rest = np.zeros((R, K))  # the best score of all tokens after i, given the tag at i
    for i in range(R - 2, -1, -1):
        for a in range(K):
            rest[i, a] = (P[i + 1, a * K : a * K + K] + rest[i + 1]).max()
    before = start
    for i in range(R):
        y[i] = (P[i, before * K : before * K + K] + rest[i]).argmax()
        own[i] = before * K + y[i]
        before = y[i]
    other, tag = np.empty(R, np.int64), np.empty(R, np.int64)
    gap, square = np.zeros(R + 1), np.zeros(R + 1)  # of the run's tokens before each: s(y) - s(y') and the distance^2
    least = np.inf
    for longest in (1, R):  # runs of one token first; what they leave bounds what is looked at of longer ones
        if longest > 1:
            # What tokens after i can give at most where y' is not y at i: y' gains there and, by the triangle
            # inequality, least times the distance. No run is worth going on with that this does not lift above 0
            for i in range(R - 2, -1, -1):
                reach = least * np.sqrt(2 * G[i + 1, i + 1]) - P[i + 1, own[i + 1]]
                for a in range(K):
                    rest[i, a] = P[i + 1, a * K + y[i + 1]] + reach
                    for b in range(K):
                        if b != y[i + 1]:
                            rest[i, a] = max(rest[i, a], P[i + 1, a * K + b] + reach + rest[i + 1, b])
            rest[R - 1] = 0
        for i in range(R):
            j = i
            tag[i] = -1
            gap[i], square[i] = 0, 0
            while j >= i:
                tag[j] += 1
                if tag[j] == y[j]:
                    tag[j] += 1
                if tag[j] >= K:
                    j -= 1
                    continue
                other[j] = (own[j] // K if j == i else tag[j - 1]) * K + tag[j]
                gap[j + 1] = gap[j] + P[j, own[j]] - P[j, other[j]]
                square[j + 1] = square[j] + _longer(G, own, other, i, j)
                whole, distance = gap[j + 1], square[j + 1]
                if j + 1 < R:  # back to y
                    other[j + 1] = tag[j] * K + y[j + 1]
                    whole += P[j + 1, own[j + 1]] - P[j + 1, other[j + 1]]
                    distance += _longer(G, own, other, i, j + 1)
                if distance > 0:
                    least = min(least, max(whole, 0.0) / np.sqrt(distance))
                more = j + 1 < R and j + 1 - i < longest
                if more and least * np.sqrt(max(square[j + 1], 0.0)) + rest[j, tag[j]] > gap[j + 1]:
                    j += 1
                    tag[j] = -1
    return least


@kernel
def _longer(G: Any, own: Any, other: Any, i: Any, j: Any) -> Any:
    """By how much token j adds to ||phi(y) - phi(y')||^2 of the tokens from i on."""
    a, b = own[j], other[j]
    if a == b:
        return 0.0
    total = 2 * G[j, j]
    for k in range(i, j):
        c, d = own[k], other[k]
        if c != d:
            total += 2 * G[j, k] * ((a == c) - (a == d) - (b == c) + (b == d))
    return total


# Pr(margin <= t ||w||) <= (C t)^a


@dataclass(frozen=True)
class Tail:
    a: float
    error: float  # standard error of a
    C: float  # with this a the condition holds for every t on these inputs
    C1: float  # likewise with a = 1
    used: int  # the smallest margins that a was estimated from


def tail_of(relative: Floats, share: float) -> Tail:
    """a by Hill's estimator, from the smallest ``share`` of the margins over ||w||; then the least C that will do.

    An f that is a mean over these very inputs has no other margins than these, so that C is exact for it.
    """
    ordered = np.sort(relative)
    k = int(share * ordered.size)
    if k < 2 or not (ordered[0] > 0 and ordered[0] < ordered[k] < np.inf):
        raise UsageError("tail_of: give more margins; the smallest must be above 0 and not all alike")
    a = float(1 / np.log(ordered[k] / ordered[:k]).mean())
    places = np.arange(1, ordered.size + 1) / ordered.size  # Pr(margin <= t) at t = the margin; of equal ones the last
    C, C1 = (float((places ** (1 / power) / ordered).max()) for power in (a, 1.0))
    return Tail(a, a / float(np.sqrt(k)), C, C1, k)


# |f_mu - f|


@dataclass(frozen=True)
class Smoothed:
    ratio: float  # mu / ||w||
    gap: float  # f_mu - f
    error: float  # standard error of it
    change: float  # Pr(the loss at w + mu u is not that at w)


def smoothed(learner: Learner, gold: Any, ratios: Sequence[float], draws: int) -> list[Smoothed]:
    """At the learner's weights; each of ``draws`` passes perturbs every input once, the same way for each mu."""
    problem, W = learner.problem, learner.weights()
    mus = np.asarray(ratios, np.float64) * np.linalg.norm(W.astype(np.float64))
    F, changed = np.empty((mus.size + 1, draws)), np.empty((mus.size + 1, draws))
    parts, key = problem.private(factors=True, places=True), learner.settings.step_params().keys[PERTURBATION]
    _smooth(*parts, gold, key, len(problem), W, workspace_of(problem), np.append(0.0, mus), F, changed)
    rows = []
    for ratio, losses, changes in zip(ratios, F[1:], changed[1:], strict=True):
        gaps = losses - F[0]
        error = float(gaps.std(ddof=1) / np.sqrt(draws))
        rows.append(Smoothed(ratio, float(gaps.mean()), error, float(changes.mean())))
    return rows


@kernel
def _smooth(
    inputs: Any, task: Any, gold: Any, key: Any, N: Any, W: Any, work: Any, mus: Any, F: Any, changed: Any
) -> None:
    """F[m, k] = the mean loss at w + mus[m] u in pass k, changed the share of inputs whose loss is not the first's."""
    F[:] = 0
    changed[:] = 0
    for k in range(F.shape[1]):
        for x in range(N):
            R = protocol.rows(inputs, x)
            protocol.draw(inputs, x, key, k * N + x, work.Z)
            protocol.scores_with(inputs, x, W, work.Z, work.S, work.V)
            first = 0.0
            for m in range(mus.size):
                shift(work.S, work.V, mus[m], R, work.T)
                protocol.decode(task, x, work.T, work.y)
                loss = protocol.delta(gold, task, x, work.y)
                if m == 0:
                    first = loss
                F[m, k] += loss / N
                if loss != first:
                    changed[m, k] += 1 / N
