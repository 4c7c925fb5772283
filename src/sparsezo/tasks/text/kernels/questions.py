"""Text's questions for the training loop: is it this class, which class is it, which of two, how good (design 4).

A question's second number is the class shown; a pair's classes are in y and other, a rating's in y.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsezo.kernels import protocol
from sparsezo.kernels.codes import AT_RANDOM, FIRST, LABEL, PAIR, PART, RATE, SECOND, TIE, UNSURE, YES
from sparsezo.kernels.jit import kernel
from sparsezo.kernels.protocol import implements
from sparsezo.kernels.random import uniform
from sparsezo.tasks.text.kernels.task import ClassGold, ClassTask, softmax

_F = np.float32
_TINY = 1e-7
_OF_UNSURE, _OF_ANY = 2, 4  # the class shown is drawn in proportion to p^power


@kernel
def _drawn(task: Any, power: Any, u: Any) -> Any:
    """(class, its probability): drawn in proportion to p^power."""
    L, p = task.n_classes, task.scratch.p
    total = 0.0
    for k in range(L):
        total += np.float64(p[k]) ** power
    rest, shown = u * total, 0
    while shown < L - 1 and rest >= np.float64(p[shown]) ** power:
        rest -= np.float64(p[shown]) ** power
        shown += 1
    return shown, np.float64(p[shown]) ** power / total


@implements(protocol.look, ClassTask)
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
    """With u = 1 - P(best class), a document is passed over but with probability (u / (1 - 1/L))^2."""
    top = softmax(task, S)
    if not np.isfinite(top):
        return np.float64(top)
    L, p = task.n_classes, task.scratch.p
    best, second = 0, -1
    for k in range(1, L):
        if p[k] > p[best]:
            best = k
    chance = 1.0
    if mode == UNSURE:
        unsure = (1 - np.float64(p[best])) / (1 - 1 / L)
        chance = unsure * unsure
        if uniform(key, step, 0) >= chance:
            return -chance
    shown = best
    if kind in (PART, RATE):  # now and then another than the best is right
        shown, drawn = _drawn(task, _OF_ANY if mode == AT_RANDOM else _OF_UNSURE, uniform(key, step, 1))
        chance *= drawn
    for k in range(L):
        if k != shown and (second < 0 or p[k] > p[second]):
            second = k
    q[0], q[1], q[2], q[3] = 0, shown, 0, 0
    y[0], other[0] = shown, second
    return chance


@kernel
def _step(task: Any, weight: Any, k: Any, D: Any) -> None:
    """D += weight (onehot(k) - p)."""
    for j in range(task.n_classes):
        D[0, j] -= _F(weight) * task.scratch.p[j]
    D[0, k] += _F(weight)


@kernel
def _others(task: Any, k: Any) -> Any:
    """1 - p[k], exactly."""
    total = 0.0
    for j in range(task.n_classes):
        if j != k:
            total += task.scratch.p[j]
    return total


@implements(protocol.evidence, ClassTask)
def _evidence(
    task: Any, x: Any, S: Any, kind: Any, about: Any, q: Any, y: Any, other: Any, answer: Any, e0: Any, e1: Any, D: Any
) -> Any:
    top = softmax(task, S)
    if not np.isfinite(top):
        return np.float64(top)
    D[0, :] = 0
    if kind == PAIR:
        return _of_pair(task, y[0], other[0], answer, e0, D)
    if kind == RATE:
        return _of_rating(task, y[0], answer, D)
    L = task.n_classes
    k = q[1] if kind == PART else int(answer)
    P = np.float64(task.scratch.p[k])
    if kind == PART and answer != YES:  # no: any of the others
        P = _others(task, k)
        likelihood = e1 + (1 - e0 - e1) * P
        if P > 0 and likelihood > 0:
            weight = (1 - e0 - e1) * P / likelihood
            for j in range(L):
                given = np.float64(task.scratch.p[j]) / P if j != k else 0.0
                D[0, j] = _F(weight * (given - task.scratch.p[j]))
        return likelihood
    base, scale = (e0 / (L - 1), 1 - e0 * L / (L - 1)) if kind == LABEL else (e0, 1 - e0 - e1)
    likelihood = base + scale * P
    if likelihood > 0:
        _step(task, scale * P / likelihood, k, D)
    return likelihood


@kernel
def _of_pair(task: Any, one: Any, two: Any, answer: Any, e: Any, D: Any) -> Any:
    """A tie: it is neither of the two. A rater who errs gives one of the other two answers."""
    p, base, scale = task.scratch.p, e / 2, 1 - 1.5 * e
    if answer != TIE:
        k = one if answer == FIRST else two
        likelihood = base + scale * np.float64(p[k])
        if likelihood > 0:
            _step(task, scale * np.float64(p[k]) / likelihood, k, D)
        return likelihood
    rest = 0.0
    for j in range(task.n_classes):
        if j != one and j != two:
            rest += p[j]
    rest = max(rest, _TINY)
    likelihood = base + scale * rest
    _step(task, -scale * np.float64(p[one]) / likelihood, one, D)
    _step(task, -scale * np.float64(p[two]) / likelihood, two, D)
    return likelihood


@kernel
def _of_rating(task: Any, k: Any, loss: Any, D: Any) -> Any:
    """(1 - loss) log(1 - rho) + loss log rho, rho = 1 - p(shown)."""
    rho = min(max(_others(task, k), _TINY), 1 - _TINY)
    _step(task, -(loss - rho) / rho, k, D)
    return np.exp((1 - loss) * np.log(1 - rho) + loss * np.log(rho))


@implements(protocol.options, ClassTask)
def _options(task: Any, x: Any, kind: Any, about: Any) -> Any:
    if kind == PART:
        return 2
    return 3 if kind == PAIR else task.n_classes


@implements(protocol.option, ClassTask)
def _option(task: Any, x: Any, kind: Any, about: Any, k: Any) -> Any:
    return k


@implements(protocol.truth, ClassGold)
def _truth(gold: Any, task: Any, x: Any, kind: Any, about: Any, q: Any, y: Any, other: Any) -> Any:
    right = gold.labels[x]
    if kind == PAIR:
        return FIRST if y[0] == right else (SECOND if other[0] == right else TIE)
    if kind == LABEL:
        return np.int64(right)
    return np.int64(q[1] == right)


@implements(protocol.review, ClassGold)
def _review(gold: Any, task: Any, x: Any, S: Any, overlooks: Any, key: Any, step: Any, y: Any, how: Any) -> Any:
    """An output of one number has no parts to correct."""
    return 0
