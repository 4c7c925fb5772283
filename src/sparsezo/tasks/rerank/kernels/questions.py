"""Reranking's questions for the training loop: which of two candidates is better (design 4), by Bradley and Terry; and
which is the best of some, by Plackett and Luce.

The best of some: y has these, in the order in which they are shown, and the question's second number is the place of
the one that the model finds best.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsezo.kernels import protocol
from sparsezo.kernels.codes import AT_RANDOM, BEST, CANDIDATES, FIRST, SECOND, TIE
from sparsezo.kernels.jit import kernel
from sparsezo.kernels.protocol import implements
from sparsezo.kernels.random import uniform
from sparsezo.tasks.rerank.kernels.task import RankGold, RankTask, argmax, softmax

_FLATNESS = 0.3  # the other candidates are drawn from p to this power: not only from the best few
_LEAST = 1e-12  # of such a probability, so that there are always enough to draw from


@implements(protocol.look, RankTask)
def _look(
    task: Any,
    x: Any,
    S: Any,
    kind: Any,
    about: Any,
    mode: Any,
    seconds: Any,
    key: Any,
    step: Any,
    q: Any,
    y: Any,
    other: Any,
) -> Any:
    R = task.offsets[x + 1] - task.offsets[x]
    if kind == BEST:
        return _look_at_some(task, S, R, mode, key, step, q, y)
    y[0], top = argmax(S, R, task.scratch.value, task.scratch.place)
    if mode == AT_RANDOM:
        other[0] = min(int(uniform(key, step, 1) * R), R - 1)
        chance = 1.0 / R
    else:
        total = softmax(task, S, R, _FLATNESS)
        if not np.isfinite(total):
            return total
        left = uniform(key, step, 1)
        j = 0
        while j < R - 1 and left >= task.scratch.p[j]:
            left -= task.scratch.p[j]
            j += 1
        other[0], chance = j, task.scratch.p[j]
    q[0], q[1], q[2], q[3] = 0, 0, 0, 0
    return chance if np.isfinite(top) else np.nan


@kernel
def _look_at_some(task: Any, S: Any, R: Any, mode: Any, key: Any, step: Any, q: Any, y: Any) -> Any:
    """The best candidate, at any place, and others that are drawn without putting back; the chance of just these."""
    n = min(R, CANDIDATES)
    own, top = argmax(S, R, task.scratch.value, task.scratch.place)
    if not np.isfinite(top):
        return np.nan
    p, weights = task.scratch.p, task.scratch.value
    if mode == AT_RANDOM:
        for j in range(R):
            p[j] = 1.0 / R
    elif not np.isfinite(softmax(task, S, R, _FLATNESS)):
        return np.nan
    left = 0.0
    for j in range(R):
        p[j] = max(p[j], _LEAST) if j != own else 0.0
        left += p[j]
    place = min(int(uniform(key, step, 0) * n), n - 1)
    q[0], q[1], q[2], q[3] = 0, place, 0, 0
    whole, drawn = left, 0
    for k in range(CANDIDATES):
        y[k] = own if k == place else 0
        if k == place or k >= n:
            continue
        rest = uniform(key, step, 1 + k) * left
        chosen = -1
        for j in range(R):
            if p[j] > 0:
                chosen = j
                rest -= p[j]
                if rest < 0:
                    break
        y[k], weights[drawn] = chosen, p[chosen]
        left -= p[chosen]
        p[chosen] = 0
        drawn += 1
    return _chance_of_all(weights, drawn, whole) if n > 1 else 0.0


@kernel
def _chance_of_all(weights: Any, n: Any, whole: Any) -> Any:
    """The probability that n drawn without putting back are these, in any order; ``whole``: the sum of all weights."""
    total = 0.0
    for code in range(n**n):
        chance, left, used, rest = 1.0, whole, 0, code
        for _ in range(n):
            j = rest % n
            rest //= n
            if used & (1 << j):
                chance = 0.0
            used |= 1 << j
            chance *= weights[j] / max(left, weights[j])
            left -= weights[j]
        total += chance
    return min(total, 1.0)


@kernel
def _of_best(task: Any, S: Any, R: Any, y: Any, chosen: Any, e: Any, D: Any) -> Any:
    """Plackett and Luce: the softmax of those shown. A rater who errs picks any other of them."""
    n = min(R, CANDIDATES)
    top, total = -np.inf, 0.0
    for k in range(n):
        top = max(top, np.float64(S[y[k], 0]))
    for k in range(n):
        total += np.exp(S[y[k], 0] - top)
    if not np.isfinite(total):
        return np.nan
    p = np.exp(S[y[chosen], 0] - top) / total
    scale = 1 - e * n / (n - 1)
    likelihood = e / (n - 1) + scale * p
    weight = scale * p / likelihood if likelihood > 0 else 1.0
    for k in range(n):
        D[y[k], 0] -= weight * np.exp(S[y[k], 0] - top) / total
    D[y[chosen], 0] += weight
    return max(likelihood, 1e-300)


@kernel
def _sigma(d: Any) -> Any:
    return 1 / (1 + np.exp(-d)) if d >= 0 else np.exp(d) / (1 + np.exp(d))


@implements(protocol.evidence, RankTask)
def _evidence(
    task: Any, x: Any, S: Any, kind: Any, about: Any, q: Any, y: Any, other: Any, answer: Any, e0: Any, e1: Any, D: Any
) -> Any:
    """Pr(first) = (1 - 1.5 e) sigma(s1 - s2) + e / 2, as a rater who errs gives one of the other two answers.

    A tie is half of each answer: Davidson's model of ties, where they are rare.
    """
    R = task.offsets[x + 1] - task.offsets[x]
    for j in range(R):
        D[j, 0] = 0
    if kind == BEST:
        return _of_best(task, S, R, y, int(answer), e0, D)
    d = np.float64(S[y[0], 0]) - np.float64(S[other[0], 0])
    if not np.isfinite(d):
        return np.nan
    up, down = _sigma(d), _sigma(-d)
    scale = 1 - 1.5 * e0
    slope = scale * up * down
    first, second = scale * up + e0 / 2, scale * down + e0 / 2
    if answer == FIRST:
        step, likelihood = slope / max(first, 1e-300), first
    elif answer == SECOND:
        step, likelihood = -slope / max(second, 1e-300), second
    else:
        step = 0.5 * slope / max(first, 1e-300) - 0.5 * slope / max(second, 1e-300)
        likelihood = np.sqrt(first * second)
    D[y[0], 0] += step
    D[other[0], 0] -= step
    return likelihood


@implements(protocol.options, RankTask)
def _options(task: Any, x: Any, kind: Any, about: Any) -> Any:
    return 3 if kind != BEST else min(task.offsets[x + 1] - task.offsets[x], CANDIDATES)


@implements(protocol.option, RankTask)
def _option(task: Any, x: Any, kind: Any, about: Any, k: Any) -> Any:
    return k


@implements(protocol.truth, RankGold)
def _truth(gold: Any, task: Any, x: Any, kind: Any, about: Any, q: Any, y: Any, other: Any) -> Any:
    if kind == BEST:  # the first of equals
        best = 0
        for k in range(1, min(task.offsets[x + 1] - task.offsets[x], CANDIDATES)):
            if gold.losses[gold.offsets[x] + y[k]] < gold.losses[gold.offsets[x] + y[best]]:
                best = k
        return best
    first, second = protocol.delta(gold, task, x, y), protocol.delta(gold, task, x, other)
    return FIRST if first < second else (SECOND if second < first else TIE)


@implements(protocol.review, RankGold)
def _review(gold: Any, task: Any, x: Any, S: Any, overlooks: Any, key: Any, step: Any, y: Any, how: Any) -> Any:
    """An output of one number has no parts to correct."""
    return 0
