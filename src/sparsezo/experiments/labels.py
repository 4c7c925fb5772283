"""Full labels, to compare answers with: whole inputs are labelled, few and then more, and learned from until the end.

    done = Labelling(part, settings, "least-confident", passes=30, looks=(500, 1000)).go()
    done.model, done.result                     # of the last look; .curve has all
    start_weights(part, "labels:100", 30, seed) # a model of 100 labelled inputs, to start from

A decision is a number of an output: each token of a sentence, the class of a document. At a look of N decisions as many
inputs are labelled as fit: at random, or those whose best output the last model finds least likely (1 - p(y given x),
Lewis and Gale 1994; Settles and Craven 2008), the first look's at random. Weights start at 0 at every look, and take
``passes`` times as many supervised steps as there are inputs.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsezo import __version__
from sparsezo.decoding import confidence, predict
from sparsezo.errors import UsageError
from sparsezo.experiments.learners import parse_start
from sparsezo.interrupts import DeferredSignals
from sparsezo.learner import Learner
from sparsezo.model import Model
from sparsezo.settings import Settings
from sparsezo.storage.container import read_container, write_container
from sparsezo.tasks.base import Scores, Task
from sparsezo.tasks.loading import Data
from sparsezo.training import Outcome, Progress

_ORDER = 11  # the stream of random numbers that says which inputs come first
_OUTPUT_PASSES = 2  # over all inputs, with another model's outputs as labels
_SLICE = 20_000  # steps between two looks at whether to stop
_GOLD = ("tags", "labels")  # what a gold calls its outputs


@dataclass(frozen=True, eq=False)
class Part:
    """A task and its data: ``remembering`` keeps the arrays of all of it, ``task`` is for parts that come and go."""

    task: Task
    remembering: Task
    data: Data

    def order(self, seed: int) -> NDArray[np.int64]:
        """Inputs of train as they come, at random."""
        return np.random.default_rng((seed, _ORDER)).permutation(len(self.data.train))

    def learned(self, rows: NDArray[np.int64], settings: Settings, passes: int, watch: Callable[[], None]) -> Learner:
        """From labels of these inputs, from weights of 0."""
        some = self.data.train.take(rows)
        learner = Learner(self.task.problem(some), settings)
        steps, gold = passes * len(rows), self.task.gold(some)
        while learner.step < steps:
            learner.run(gold, min(_SLICE, steps - learner.step))
            watch()
        return learner

    def quality(self, data: Any, W: NDArray[Any]) -> float:
        """nan where there is no such data."""
        if data is None:
            return math.nan
        problem = self.remembering.problem(data, learn=False)
        return self.remembering.quality(problem, self.remembering.gold(data), predict(problem, W))


def start_weights(part: Part, start: str, passes: int, seed: int) -> NDArray[Any]:
    """labels:N, of a supervised model; output:N, of what such a model, learned elsewhere, says of all of train."""
    how, count = parse_start(start)
    order = part.order(seed)
    if count > len(order):
        raise UsageError(f"start {start}: there are only {len(order):,} inputs")
    settings = Settings.complete({"rule": "supervised", "step": "adagrad", "seed": seed}, part.task.defaults)
    learner = part.learned(order[:count], settings, passes, lambda: None)
    if how == "labels":
        return learner.weights()
    problem, gold = part.remembering.problem(part.data.train), part.remembering.gold(part.data.train)
    name = next(name for name in _GOLD if name in gold._fields)
    said = predict(problem, learner.weights()).astype(getattr(gold, name).dtype)
    ours = Learner(problem, settings)
    ours.run(gold._replace(**{name: said}), _OUTPUT_PASSES * len(order))
    return ours.weights()


class Labelling:
    """A run that looks like ``Training`` from outside: go, curve, finish. Stopped, it goes on from its last look."""

    def __init__(
        self,
        part: Part,
        settings: Settings,
        choose: str,
        passes: int,
        looks: Sequence[int],
        *,
        test_looks: bool = False,
        checkpoint: Path | None = None,
    ) -> None:
        self.part, self.settings, self.choose, self.passes = part, settings, choose, passes
        self.looks, self.test_looks, self.checkpoint = tuple(looks), test_looks, checkpoint
        train = part.remembering.problem(part.data.train)
        self.cost = np.diff(train.output_start)  # decisions of each input
        self.queue = part.order(settings.seed)
        self.curve: list[tuple[float, ...]] = []  # records.COLUMNS
        self.W = np.zeros((train.n_features, train.n_labels), train.dtype)
        self.loss = math.nan
        self.steps, self.chosen, self.seconds = 0, 0, 0.0
        if checkpoint is not None and checkpoint.exists():
            self._resume(checkpoint)

    def go(self, progress: Callable[[Progress], None] | None = None) -> Outcome:
        with DeferredSignals() as signals:

            def watch() -> None:
                if progress is not None:
                    progress(self._progress())
                signals.deliver()

            for look in self.looks[len(self.curve) :]:
                if self.curve and self.chosen == self.queue.size:
                    break  # everything is labelled
                self._look(look, watch)
                watch()
        test = self._scores()
        result = self._result(test)
        return Outcome(Model(self.part.task, self.W, self.settings.as_dict(), result), result, test)

    def _look(self, look: int, watch: Callable[[], None]) -> None:
        began = time.perf_counter()
        if self.choose == "least-confident" and self.curve:
            waiting = self.queue[self.chosen :]
            sure = confidence(self.part.remembering.problem(self.part.data.train), self.W)[waiting]
            self.queue[self.chosen :] = waiting[np.argsort(sure, kind="stable")]
        spent = np.cumsum(self.cost[self.queue])
        chosen = int(np.searchsorted(spent, look, side="right"))
        self.chosen = max(chosen, 1)
        learner = self.part.learned(self.queue[: self.chosen], self.settings, self.passes, watch)
        self.W, self.loss = learner.weights(), learner.average_loss
        self.steps += learner.step
        self.seconds += time.perf_counter() - began
        data = self.part.data
        dev = self.part.quality(data.dev, self.W)
        test = self.part.quality(data.test, self.W) if self.test_looks else math.nan
        decisions = min(look, int(spent[-1]))
        self.curve.append((self.steps, self.loss, dev, decisions, test, math.nan, self.chosen))
        self._save()

    def _progress(self) -> Progress:
        done = int(self.curve[-1][3]) if self.curve else 0
        dev = self.curve[-1][2] if self.curve else None
        speed = self.steps / max(self.seconds, 1e-9)
        return Progress(self.steps, self.steps, self.loss, dev, dev, self.steps, self.seconds, speed, done, done)

    def _scores(self) -> Scores | None:
        test = self.part.data.test
        if test is None:
            return None
        problem = self.part.remembering.problem(test, learn=False)
        return self.part.remembering.scores(test, predict(problem, self.W))

    def _result(self, test: Scores | None) -> dict[str, Any]:
        problem, last = self.part.remembering.problem(self.part.data.train), self.curve[-1]
        return {
            "task": self.part.task.name,
            **self.settings.as_dict(),
            "labels": self.choose,
            "passes": self.passes,
            "metric": self.part.task.metric,
            "iterations": self.steps,
            "answers": int(last[3]),
            "inputs": self.chosen,
            "n": problem.n_features * problem.n_labels,
            "average_loss": self.loss,
            "best_iteration": self.steps,
            "dev": None if math.isnan(last[2]) else last[2],
            "test": test.value if test else None,
            "seconds": self.seconds,
            "us_per_iteration": 1e6 * self.seconds / max(self.steps, 1),
            "version": __version__,
        }

    def _save(self) -> None:
        if self.checkpoint is not None:
            meta = {"steps": self.steps, "chosen": self.chosen, "seconds": self.seconds, "loss": self.loss}
            arrays = {"W": self.W, "queue": self.queue, "curve": np.array(self.curve)}
            write_container(self.checkpoint, "checkpoint", meta, arrays)

    def _resume(self, path: Path) -> None:
        """A folder is of one run alone, which its name says; so what is whole there is ours."""
        meta, arrays = read_container(path, "checkpoint")
        self.steps, self.chosen, self.seconds = meta["steps"], meta["chosen"], meta["seconds"]
        self.loss, self.W, self.queue = meta["loss"], arrays["W"], arrays["queue"]
        self.curve = [tuple(point) for point in arrays["curve"].tolist()]

    def finish(self) -> None:
        if self.checkpoint is not None:
            with contextlib.suppress(FileNotFoundError):
                self.checkpoint.unlink()
