"""Training from a stream: one window of inputs in memory at a time, each input once in a pass.

    streamed = kind("chunking").stream(Files(("train.txt.gz",), options={"hash_bits": 20}), window=10_000)
    run = StreamedTraining(streamed, Settings(), iterations=4_000_000, checkpoint="model.szo.checkpoint")
    outcome = run.go()

A step is about one input, and which one is a function of the seed and the step: pass step // N, and in it the window
that the step falls into, whose inputs are looked at in an order of its own (``random.permuted``). So a run that was
stopped goes on bit for bit: the step says where to read on, and the file is read up to there once more. Weights, dev,
checkpoints and the best model are as in ``Training``. In memory are the weights, dev and test, and two windows while
the next is made.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsezo.decoding import workspace_of
from sparsezo.errors import DataError, UsageError
from sparsezo.learner import Learner
from sparsezo.rules import RULES
from sparsezo.settings import Settings
from sparsezo.tasks.base import Problem
from sparsezo.tasks.loading import Data
from sparsezo.tasks.streams import Streamed
from sparsezo.training import Training


def check_settings(settings: Settings, *, scorer: bool = False, workers: int = 1) -> None:
    """What goes with a stream."""
    if RULES[settings.rule].asks:
        raise UsageError(f"rule {settings.rule}: questions are about inputs that stay; leave `stream` out")
    if scorer:
        raise UsageError("`scorer`: is asked about inputs that stay; leave `stream` out")
    if settings.batch > 1 or workers > 1:
        raise UsageError("`batch` and `workers` share inputs that all of them hold; leave them or `stream` out")


class StreamLearner(Learner):
    """A learner whose inputs change."""

    def look_at(self, problem: Problem, begins: int) -> None:
        """Go on with these inputs: from step ``begins`` on each of them is looked at once."""
        with self._lock:
            self.problem = problem
            self._inputs, self._task = problem.private()
            self.workspace = workspace_of(problem)
            self._params = self._params._replace(shift=len(problem) - begins % len(problem))


class StreamedTraining(Training):
    learner: StreamLearner

    def __init__(self, streamed: Streamed, settings: Settings, iterations: int | None = None, **more: Any) -> None:
        """``more``: as ``Training`` has it."""
        check_settings(settings, scorer=more.get("scorer") is not None, workers=more.get("workers", 1))
        self.stream = streamed.stream
        self._ends = np.cumsum(self.stream.sizes)  # of each window, in a pass
        self._held = 0  # the window in memory, counted through all passes
        self._reading: Iterator[Any] = self.stream.read()
        data = Data(next(self._reading), streamed.dev, streamed.test)
        super().__init__(self.stream.task, data, settings, iterations, **more)
        self.learner.look_at(self.problem, 0)

    def _learner(self, W: NDArray[Any] | None) -> StreamLearner:
        return StreamLearner(self.problem, self.settings, W)

    def _train_known_by(self) -> str:
        """The cut into windows decides the order."""
        return f"{self.stream.known_by} in windows of {max(self.stream.sizes)}"

    def _advance(self, steps: int, answers: int | None) -> None:
        stop = self.learner.step + steps
        while self.learner.step < stop and (answers is None or self.learner.answers < answers):
            end = self._hold(self.learner.step)
            self.learner.run(self.gold, min(stop, end) - self.learner.step, answers)

    def _hold(self, step: int) -> int:
        """The window that a step is about; returns the step at which it ends."""
        turn, within = divmod(step, len(self.stream))
        place = int(np.searchsorted(self._ends, within, side="right"))
        end = turn * len(self.stream) + int(self._ends[place])
        number = turn * len(self._ends) + place
        if number != self._held:
            if place == 0 or number != self._held + 1:
                self._reading = itertools.islice(self.stream.read(), place, None)
            data = next(self._reading, None)
            if data is None or len(data) != self.stream.sizes[place]:
                raise DataError(self.stream.name, "changed while it was read; begin again when it is written")
            self.data = replace(self.data, train=data)
            self.problem = self.task.problem(data, risk=self.settings.criterion == "annealed")
            self.gold = self.task.gold(data)
            self.learner.look_at(self.problem, end - len(data))
            self._held = number
        return end
