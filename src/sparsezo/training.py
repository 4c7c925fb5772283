"""One training run: learn, evaluate on dev at intervals, keep the best, survive being stopped (paper Sec. 5).

    run = Training(task, Data(train, dev, test), Settings(), iterations=4_000_000, checkpoint="model.szo.checkpoint")
    outcome = run.go(progress=print)
    outcome.model.save("model.szo")

The best model on dev is kept, the paper's online-to-batch selection. A run that was interrupted or killed goes on from
its checkpoint with ``resume=True`` and ends with the same weights, bit for bit.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsezo import __version__, bounds
from sparsezo.errors import UsageError
from sparsezo.interrupts import CHECKPOINT_SECONDS, DeferredSignals
from sparsezo.kernels import loop
from sparsezo.kernels.loop import State
from sparsezo.learner import Learner, predict
from sparsezo.model import Model
from sparsezo.rules import RULES
from sparsezo.settings import Settings
from sparsezo.storage.container import damage, like, read_container, write_container
from sparsezo.tasks.base import Problem, Scores, Task
from sparsezo.tasks.loading import Data

EVALUATIONS = 100  # of the dev set in a run
_SLICE_SECONDS = 0.1  # of compiled work between looks at the clock


def default_interval(iterations: int) -> int:
    """Steps between looks at dev, unless they are given."""
    return max(1, math.ceil(iterations / EVALUATIONS))


@dataclass(frozen=True)
class Progress:
    step: int
    iterations: int
    average_loss: float
    dev: float | None  # the latest
    best: float | None
    best_iteration: int
    seconds: float  # of learning, also before an interruption
    steps_per_second: float


@dataclass(frozen=True, eq=False)
class Outcome:
    model: Model
    result: dict[str, Any]
    test: Scores | None


class Training:
    def __init__(
        self,
        task: Task,
        data: Data,
        settings: Settings,
        iterations: int,
        *,
        evaluate_every: int | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_seconds: float = CHECKPOINT_SECONDS,
        resume: bool = False,
        W: NDArray[Any] | None = None,
    ) -> None:
        if iterations < 1:
            raise UsageError(f"`iterations` {iterations}: must be at least 1")
        if evaluate_every is not None and evaluate_every < 1:
            raise UsageError(f"`evaluate_every` {evaluate_every}: must be at least 1")
        self.task, self.data, self.settings, self.iterations = task, data, settings, iterations
        self.evaluate_every = evaluate_every or default_interval(iterations)
        self.checkpoint = Path(checkpoint) if checkpoint is not None else None
        self.checkpoint_seconds = checkpoint_seconds
        self.problem = task.problem(
            data.train, risk=settings.criterion == "annealed", asks=RULES[settings.rule].asks
        )
        self.gold = task.gold(data.train)
        self._dev = _Dev(task, data.dev) if data.dev is not None else None
        self.learner = Learner(self.problem, settings, W)
        self._start = self.learner.state.W.copy() if W is not None else None
        self.best = self.learner.state.W.copy()
        self.best_value: float | None = None
        self.best_iteration = 0
        self.curve: list[tuple[int, float, float]] = []  # iterations, average loss, dev (nan without a dev set)
        self.seconds = 0.0
        if resume:
            self._resume()

    # The run

    def go(self, progress: Callable[[Progress], None] | None = None) -> Outcome:
        """Learn to the end. On KeyboardInterrupt the checkpoint is written before it goes on its way."""
        self.learner.run(self.gold, 0)  # compiles, where that is still to do, before the clock starts
        try:
            with DeferredSignals() as signals:
                self._learn(progress, signals)
        except KeyboardInterrupt:
            if self.checkpoint is not None:
                self._save()
            raise
        return self._outcome()

    def _learn(self, progress: Callable[[Progress], None] | None, signals: DeferredSignals) -> None:
        if self.learner.step == 0 and not self.curve:
            self._evaluate()
        size, saved = 1000, time.perf_counter()
        while self.learner.step < self.iterations:
            began = time.perf_counter()
            due = (self.learner.step // self.evaluate_every + 1) * self.evaluate_every
            steps = min(size, due - self.learner.step, self.iterations - self.learner.step)
            self.learner.run(self.gold, steps)
            took = time.perf_counter() - began
            self.seconds += took
            size = max(1, min(2 * size, int(steps / max(took, 1e-9) * _SLICE_SECONDS)))
            if self.learner.step == due or self.learner.step == self.iterations:
                self._evaluate()
            if progress is not None:
                progress(self._progress(steps / max(took, 1e-9)))
            signals.deliver()
            if self.checkpoint is not None and time.perf_counter() - saved > self.checkpoint_seconds:
                self._save()
                saved = time.perf_counter()

    def _evaluate(self) -> None:
        """A point of the curve; where dev is better than ever, keep the weights. Without dev the latest are kept."""
        W = self.learner.weights()
        value = self._dev.value(W) if self._dev else math.nan
        if self._dev is None or self.best_value is None or value > self.best_value:
            self.best[:] = W
            self.best_value = value if self._dev else None
            self.best_iteration = self.learner.step
        self.curve.append((self.learner.step, self.learner.average_loss, value))

    def _progress(self, speed: float) -> Progress:
        dev = self.curve[-1][2] if self.curve and self._dev else None
        learner = self.learner
        return Progress(
            learner.step,
            self.iterations,
            learner.average_loss,
            dev,
            self.best_value,
            self.best_iteration,
            self.seconds,
            speed,
        )

    def _outcome(self) -> Outcome:
        test = None
        if self.data.test is not None:
            outputs = predict(self.task.problem(self.data.test, learn=False), self.best)
            test = self.task.scores(self.data.test, outputs)
        settings = self.settings
        result = {
            "task": self.task.name,
            **settings.as_dict(),
            "metric": self.task.metric,
            "iterations": self.iterations,
            "n": self.problem.n_features * self.problem.n_labels,
            "n_active": float(self.problem.n_active.mean()),
            "n_score": float(self.problem.n_score.mean()),
            "average_loss": self.learner.average_loss,
            "best_iteration": self.best_iteration,
            "dev": self.best_value,
            "test": test.value if test else None,
            "seconds": self.seconds,
            "us_per_iteration": 1e6 * self.seconds / self.iterations,
            "update_fraction": self.learner.updates / self.iterations,
            "version": __version__,
        }
        model = Model(self.task, self.best, settings.as_dict(), result, self._curve())
        return Outcome(model, result, test)

    def _curve(self) -> dict[str, NDArray[Any]]:
        points = np.array(self.curve, np.float64).reshape(-1, 3)
        return {"iterations": points[:, 0].astype(np.int64), "average_loss": points[:, 1], "dev": points[:, 2]}

    # Being stopped, and going on

    def _identity(self) -> dict[str, Any]:
        """What must be the same for a checkpoint to be continued."""
        digest = hashlib.blake2b(digest_size=16)
        for part in (*self.problem.inputs, *self.gold, *(() if self._dev is None else self._dev.gold), self._start):
            if isinstance(part, np.ndarray):
                digest.update(np.ascontiguousarray(part).view(np.uint8).data)
        return {
            "task": self.task.name,
            "settings": self.settings.as_dict(),
            "iterations": self.iterations,
            "evaluate_every": self.evaluate_every,
            "data": digest.hexdigest(),
        }

    def _save(self) -> None:
        if self.checkpoint is None:
            return
        meta = {
            "identity": self._identity(),
            "best_value": self.best_value,
            "best_iteration": self.best_iteration,
            "seconds": self.seconds,
        }
        arrays = {"best": self.best, **self.learner.state._asdict()}
        write_container(self.checkpoint, "checkpoint", meta, arrays | self._curve())

    def _resume(self) -> None:
        if self.checkpoint is None or not self.checkpoint.exists():
            return
        meta, arrays = read_container(self.checkpoint, "checkpoint")
        mine, its = self._identity(), meta.get("identity")
        different = [name for name in mine if not isinstance(its, dict) or mine[name] != its.get(name)]
        if different:
            raise UsageError(
                f"{self.checkpoint}: is of a run with other {', '.join(different)}; "
                "resume with the same command, or remove the file to start anew"
            )
        with damage(self.checkpoint):
            self._take_over(meta, arrays)

    def _take_over(self, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """What a checkpoint of this very run holds."""
        self.learner.make_room_for(arrays)
        state = self.learner.state
        kept = {name: like(arrays, name, getattr(state, name)) for name in State._fields}
        if kept["counts"][loop.STEP] > self.iterations:
            raise ValueError("more steps than the run has")
        for name, values in kept.items():
            getattr(state, name)[...] = values
        self.learner.check_state()
        self.best[...] = like(arrays, "best", self.best)
        best, iteration, seconds = meta["best_value"], meta["best_iteration"], meta["seconds"]
        if not isinstance(iteration, int) or not isinstance(seconds, float | int):
            raise ValueError("best_iteration or seconds is no number")
        self.best_value, self.best_iteration = None if best is None else float(best), iteration
        self.seconds = float(seconds)
        columns = [arrays[name] for name in ("iterations", "average_loss", "dev")]
        for column, kinds in zip(columns, ("iu", "f", "f"), strict=True):
            bounds.array("the curve", column, kinds, (None,))
        bounds.below("the curve", columns[0], self.iterations + 1)
        self.curve = list(zip(*(column.tolist() for column in columns), strict=True))

    def finish(self) -> None:
        """The model is saved: the checkpoint has served."""
        if self.checkpoint is not None:
            with contextlib.suppress(FileNotFoundError):
                self.checkpoint.unlink()


class _Dev:
    def __init__(self, task: Task, data: Any) -> None:
        self.task = task
        self.problem: Problem = task.problem(data, learn=False)
        self.gold = task.gold(data)

    def value(self, W: NDArray[Any]) -> float:
        return self.task.quality(self.problem, self.gold, predict(self.problem, W))
