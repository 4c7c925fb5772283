"""A part of the data that is only looked at: dev, or test.

Held(task, dev).value(W)                            # the figure that models are chosen by
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from sparsezo.decoding import predict
from sparsezo.tasks.base import Problem, Task


class Held:
    """With its arrays, which are made once."""

    def __init__(self, task: Task, data: Any) -> None:
        self.task = task
        self.problem: Problem = task.problem(data, learn=False)
        self.gold = task.gold(data)

    def value(self, W: NDArray[Any]) -> float:
        return self.task.quality(self.problem, self.gold, predict(self.problem, W))
