"""Classification for the training loop: the scores of the classes to one of them (the paper's appendix, multiclass).

Delta is 0 or 1, p_w(y given x) is the softmax of the scores, and the expected loss of eq. (annealed) is 1 - p(gold).

    task, gold = class_task(4), ClassGold(labels)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsezo import validation
from sparsezo.errors import UsageError
from sparsezo.kernels import protocol
from sparsezo.kernels.exponential import exp_nonpositive, exp_or_zero
from sparsezo.kernels.jit import kernel
from sparsezo.kernels.protocol import implements
from sparsezo.kernels.random import uniform


class ClassScratch(NamedTuple):
    p: NDArray[np.float32]  # p_w(. given x), left by ``sample`` for ``score_gradient``


class ClassTask(NamedTuple):
    n_classes: int
    scratch: ClassScratch

    def check(self, problem: Any) -> None:
        if problem.n_labels != self.n_classes or not (np.diff(problem.output_start) == 1).all():
            raise UsageError(f"n_labels is {problem.n_labels}, and an output is one of {self.n_classes} classes")

    def most(self, x: int) -> int:
        """An output of x is a number below this."""
        return self.n_classes


class ClassGold(NamedTuple):
    """The correct classes: only the feedback sees them."""

    labels: NDArray[np.int32]

    def check(self, problem: Any, supervised: bool) -> None:
        if not isinstance(problem.task, ClassTask) or self.labels.size != len(problem):
            raise UsageError("this gold is of other inputs; make it by task.gold of the problem's own data")
        validation.array("the gold's labels", self.labels, "iu", (len(problem),))
        validation.below("the gold's labels", self.labels, problem.n_labels)


def class_task(n_classes: int) -> ClassTask:
    return ClassTask(n_classes, ClassScratch(np.zeros(n_classes, np.float32)))


@kernel
def _best(S: Any, n: Any) -> Any:
    """(class, score) of the best; the first wins a tie, and NaN wins over all, so that it does not go unseen."""
    arg, top = 0, S[0, 0]
    for k in range(1, n):
        s = S[0, k]
        better = s > top or s != s
        arg = k if better else arg
        top = s if better else top
    return arg, top


@kernel
def softmax(task: Any, S: Any) -> Any:
    """task.scratch.p = softmax of S; returns the best score."""
    p = task.scratch.p
    _, top = _best(S, task.n_classes)
    total = np.float32(0)
    for k in range(task.n_classes):
        p[k] = exp_nonpositive(S[0, k] - top)
        total += p[k]
    for k in range(task.n_classes):
        p[k] /= total
    return top


@kernel
def _class_minus_p(task: Any, k: Any, D: Any) -> None:
    """D = onehot(k) - p."""
    for j in range(task.n_classes):
        D[0, j] = -task.scratch.p[j]
    D[0, k] += np.float32(1)


@implements(protocol.outputs, ClassTask)
def _outputs(task: Any, x: Any) -> Any:
    return 1


@implements(protocol.decode, ClassTask)
def _decode(task: Any, x: Any, S: Any, y: Any) -> Any:
    y[0], top = _best(S, task.n_classes)
    return top


@implements(protocol.sample, ClassTask)
def _sample(task: Any, x: Any, S: Any, key: Any, step: Any, y: Any) -> Any:
    top = softmax(task, S)
    rest = uniform(key, step, 0)
    k = 0
    while k < task.n_classes - 1 and rest >= task.scratch.p[k]:
        rest -= task.scratch.p[k]
        k += 1
    y[0] = k
    return top


@implements(protocol.confidence, ClassTask)
def _confidence(task: Any, x: Any, S: Any, y: Any) -> Any:
    top = softmax(task, S)
    y[0], _ = _best(S, task.n_classes)
    return np.log(np.float64(task.scratch.p[y[0]])) if np.isfinite(top) else np.float64(top)


@implements(protocol.score_gradient, ClassTask)
def _score_gradient(task: Any, x: Any, S: Any, y: Any, D: Any) -> None:
    _class_minus_p(task, y[0], D)


@implements(protocol.log_probability, ClassTask)
def _log_probability(task: Any, x: Any, S: Any, y: Any) -> Any:
    return np.log(np.float64(task.scratch.p[y[0]]))


@implements(protocol.supervise, ClassGold)
def _supervise(gold: Any, task: Any, x: Any, S: Any, D: Any) -> None:
    softmax(task, S)
    _class_minus_p(task, gold.labels[x], D)


@implements(protocol.delta, ClassGold)
def _delta(gold: Any, task: Any, x: Any, y: Any) -> Any:
    return 0.0 if y[0] == gold.labels[x] else 1.0


@implements(protocol.risk, ClassGold)
def _risk(gold: Any, task: Any, x: Any, S: Any, gamma: Any) -> Any:
    """1 - p_{w,gamma}(gold), in float64; summed over the other classes, so that it is exact near 0 too."""
    _, top = _best(S, task.n_classes)
    right, wrong = 0.0, 0.0
    for k in range(task.n_classes):
        weight = exp_or_zero(gamma * (np.float64(S[0, k]) - np.float64(top)))
        if k == gold.labels[x]:
            right += weight
        else:
            wrong += weight
    return wrong / (right + wrong)


@implements(protocol.risk_gradient, ClassGold)
def _risk_gradient(gold: Any, task: Any, x: Any, S: Any, gamma: Any, D: Any) -> Any:
    """D_k = gamma p(gold) (1{k is gold} - p_k)."""
    risk = protocol.risk(gold, task, x, S, gamma)
    _, top = _best(S, task.n_classes)
    total = 0.0
    for k in range(task.n_classes):
        total += exp_or_zero(gamma * (np.float64(S[0, k]) - np.float64(top)))
    slope = gamma * (1 - risk)
    for k in range(task.n_classes):
        D[0, k] = -slope * exp_or_zero(gamma * (np.float64(S[0, k]) - np.float64(top))) / total
    D[0, gold.labels[x]] = slope * risk
    return risk
