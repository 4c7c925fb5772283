"""A task of somebody's own for the training loop: scores to an output, and its loss, by functions that were given.

Nothing else is known of it. So it has no distribution over outputs, which first-order rules and the annealed criterion
need, and asks no questions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsezo import validation
from sparsezo.errors import UsageError
from sparsezo.kernels import protocol
from sparsezo.kernels.own import OwnFunction, call
from sparsezo.kernels.protocol import implements


class OwnScores(NamedTuple):
    """Where each input's rows and its output begin, and the decoder: (S, y), which fills y."""

    row_start: NDArray[np.int64]  # N + 1
    output_start: NDArray[np.int64]  # N + 1
    decode: OwnFunction

    def check(self, problem: Any) -> None:
        validation.offsets("row_start", self.row_start, n=len(problem))
        if not np.array_equal(self.output_start, problem.output_start):
            raise UsageError("outputs of another length than the problem's")


class OwnGold(NamedTuple):
    """What the loss is told of each input, and the loss: (gold, y) -> a number."""

    start: NDArray[np.int64]  # N + 1
    numbers: NDArray[np.float64]
    loss: OwnFunction

    def check(self, problem: Any, supervised: bool) -> None:
        if not isinstance(problem.task, OwnScores) or self.start.size != len(problem) + 1:
            raise UsageError("this gold is of other inputs; make it by task.gold of the problem's own data")
        validation.offsets("the gold's start", self.start, n=len(problem), end=self.numbers.size)


@implements(protocol.outputs, OwnScores)
def _outputs(task: Any, x: Any) -> Any:
    return task.output_start[x + 1] - task.output_start[x]


@implements(protocol.decode, OwnScores)
def _decode(task: Any, x: Any, S: Any, y: Any) -> Any:
    """Returns the sum of the scores: not finite where one of them is not."""
    R = task.row_start[x + 1] - task.row_start[x]
    call(task.decode, S[:R], y[: task.output_start[x + 1] - task.output_start[x]])
    total = S[0, 0]
    for i in range(R):
        for l in range(S.shape[1]):
            total += S[i, l]
    return total


@implements(protocol.delta, OwnGold)
def _delta(gold: Any, task: Any, x: Any, y: Any) -> Any:
    n = task.output_start[x + 1] - task.output_start[x]
    return np.float64(call(gold.loss, gold.numbers[gold.start[x] : gold.start[x + 1]], y[:n]))
