"""Reranking's question for the training loop: which of two candidates is better (DESIGN 3a), by Bradley and Terry."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsezo.kernels import protocol
from sparsezo.kernels.codes import AT_RANDOM, FIRST, SECOND, TIE
from sparsezo.kernels.jit import kernel
from sparsezo.kernels.protocol import implements
from sparsezo.kernels.random import uniform
from sparsezo.tasks.rerank.kernel import RankGold, RankTask, argmax, softmax

_FLATNESS = 0.3  # the other candidate is drawn from p to this power: not only from the best few


@implements(protocol.look, RankTask)
def _look(
    task: Any, x: Any, S: Any, kind: Any, about: Any, mode: Any, key: Any, step: Any, q: Any, y: Any, other: Any
) -> Any:
    R = task.offsets[x + 1] - task.offsets[x]
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
def _sigma(d: Any) -> Any:
    return 1 / (1 + np.exp(-d)) if d >= 0 else np.exp(d) / (1 + np.exp(d))


@implements(protocol.evidence, RankTask)
def _evidence(
    task: Any, x: Any, S: Any, kind: Any, about: Any, q: Any, y: Any, other: Any, answer: Any, e0: Any, e1: Any, D: Any
) -> Any:
    """Pr(first) = (1 - 1.5 e) sigma(s1 - s2) + e / 2, as a rater who errs gives one of the other two answers.

    A tie is half of each answer: Davidson's model of ties, where they are rare.
    """
    for j in range(task.offsets[x + 1] - task.offsets[x]):
        D[j, 0] = 0
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
    return 3


@implements(protocol.option, RankTask)
def _option(task: Any, x: Any, kind: Any, about: Any, k: Any) -> Any:
    return k


@implements(protocol.truth, RankGold)
def _truth(gold: Any, task: Any, x: Any, kind: Any, about: Any, q: Any, y: Any, other: Any) -> Any:
    first, second = protocol.delta(gold, task, x, y), protocol.delta(gold, task, x, other)
    return FIRST if first < second else (SECOND if second < first else TIE)
