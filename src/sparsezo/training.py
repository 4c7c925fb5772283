"""One training run: learn, evaluate on dev at intervals, keep the best, survive being stopped (paper Sec. 5).

    run = Training(task, Data(train, dev, test), Settings(), iterations=4_000_000, checkpoint="model.szo.checkpoint")
    outcome = run.go(progress=print)                # or run.learn(...), then run.tested(model)
    outcome.model.save("model.szo")
    Training(task, data, settings, answers=5000)    # ends when a person would have answered so many questions
    Training(task, data, settings, 1000, scorer=open_scorer("python metric.py"))        # whose train needs no labels
    Training(task, data, settings, evaluate_at=(500, 1000, 5000))   # likewise, looking at dev after so many answers

The best model on dev is kept, the paper's online-to-batch selection. A run that was interrupted or killed goes on from
its checkpoint with ``resume=True`` and ends with the same weights, bit for bit.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsezo import __version__, bounds
from sparsezo.consulting import Answers, check_rule, consult
from sparsezo.divergence import LEAST_START, RunawayLoss, refuse_not_finite, refuse_unheard
from sparsezo.errors import UsageError, shown
from sparsezo.held import Held
from sparsezo.identity import known_by
from sparsezo.interrupts import CHECKPOINT_SECONDS, DeferredSignals
from sparsezo.kernels import loop
from sparsezo.kernels.loop import State
from sparsezo.learner import NO_END, Learner, predict
from sparsezo.model import Model
from sparsezo.rules import RULES
from sparsezo.scorers import Scorer, ScorerError
from sparsezo.settings import Settings
from sparsezo.storage.container import damage, like, read_container, write_container
from sparsezo.tasks.base import Scores, Task
from sparsezo.tasks.loading import Data
from sparsezo.workers.options import WorkerOptions

EVALUATIONS = 100  # of the dev set in a run
_CURVE: dict[str, Any] = {
    "iterations": np.int64,
    "average_loss": np.float64,
    "dev": np.float64,
    "answers": np.int64,
    "test": np.float64,
    "map_average_loss": np.float64,
}
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
    answers: int = 0
    most_answers: int | None = None  # where the run ends by these


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
        iterations: int | None = None,
        *,
        answers: int | None = None,
        evaluate_every: int | None = None,
        evaluate_at: Sequence[int] = (),
        test_looks: bool = False,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_seconds: float = CHECKPOINT_SECONDS,
        resume: bool = False,
        W: NDArray[Any] | None = None,
        scorer: Scorer | None = None,
        workers: int | WorkerOptions = 1,
    ) -> None:
        for name, value in (("iterations", iterations), ("answers", answers), ("evaluate_every", evaluate_every)):
            if value is not None and value < 1:
                raise UsageError(f"`{name}` {value}: must be at least 1")
        if evaluate_at and evaluate_every is not None:
            raise UsageError("give `evaluate_every` or `evaluate_at`, not both")
        if any(b <= a for a, b in pairwise((0, *evaluate_at))):
            raise UsageError(f"`evaluate_at` {shown(list(evaluate_at))}: must be rising numbers of answers, from 1")
        answers = answers or (evaluate_at[-1] if evaluate_at else None)
        if iterations is None and answers is None:
            raise UsageError("give `iterations`, `answers` or both")
        self.task, self.data, self.settings = task, data, settings
        self.iterations, self.answers = iterations or NO_END, answers  # at most; the first that is reached ends the run
        self.evaluate_every = evaluate_every or default_interval(answers or self.iterations)  # in answers, or steps
        self.evaluate_at = tuple(evaluate_at)  # numbers of answers, where these say when to look
        self.test_looks = test_looks  # at test, too, with the weights of the moment
        self.checkpoint = Path(checkpoint) if checkpoint is not None else None
        self.checkpoint_seconds = checkpoint_seconds
        more = {"asks": True} if RULES[settings.rule].asks else {}
        self.problem = task.problem(data.train, risk=settings.criterion == "annealed", **more)
        self.scorer = scorer  # whose answers are learned from, in gold's place
        self.workers = workers if isinstance(workers, WorkerOptions) else WorkerOptions(workers=workers)
        self.workers.check(settings)
        if scorer is not None:
            check_rule(settings.rule, settings.criterion, settings.feedback)
            settings.refuse_batch("a scorer is asked about one step at a time")
        self.gold = task.gold(data.train) if scorer is None else None
        self._dev = Held(task, data.dev) if data.dev is not None else None
        self._test = Held(task, data.test) if data.test is not None else None  # what is wrong with it is said now
        self.learner = self._learner(W)
        if answers is not None and not self.learner.asks_people:
            raise UsageError(f"`answers` {answers}: {self.learner.nobody}; give `iterations` alone")
        self._start = known_by(self.learner.state.W) if W is not None else None
        self.best = self.learner.state.W.copy()
        self.best_value: float | None = None
        self.best_iteration = 0
        self.curve: list[tuple[int, float, float, int, float, float]] = []  # as in _CURVE; nan where not known
        self.seconds = 0.0
        if resume:
            self._resume()

    # The run

    def go(self, progress: Callable[[Progress], None] | None = None) -> Outcome:
        """Learn to the end and look at the test set. What has been learned is in the checkpoint if that fails."""
        model = self.learn(progress)
        try:
            return self.tested(model)
        except BaseException:
            self._save()
            raise

    def learn(self, progress: Callable[[Progress], None] | None = None) -> Model:
        """Learn to the end. On KeyboardInterrupt, or where a scorer fails, the checkpoint is written first."""
        advance: Callable[[int, int | None], None] = self._advance
        size = 1000
        if self.scorer is None:
            self.learner.run(self.gold, 0)  # compiles, where that is still to do, before the clock starts
        with DeferredSignals() as signals, contextlib.ExitStack() as stack:
            try:
                if self.scorer is not None and not self._finished:
                    advance, size = self._from_scorer(stack.enter_context(self.scorer), signals), 1
                elif self.workers.workers > 1 and not self._finished:
                    crew = stack.enter_context(self.workers.crew(self.learner, self.gold))
                    crew.pause, advance = signals.deliver, crew.run
                    crew.gather()
                self._learn(progress, signals, advance, size)
            except (KeyboardInterrupt, ScorerError):
                self._save()
                raise
        return self._model()

    def _learner(self, W: NDArray[Any] | None) -> Learner:
        return Learner(self.problem, self.settings, W)

    def _advance(self, steps: int, answers: int | None) -> None:
        self.learner.run(self.gold, steps, answers)

    def _from_scorer(self, scorer: Scorer, signals: DeferredSignals) -> Callable[[int, int | None], None]:
        """A signal is heard while an answer is waited for: the question is then taken back."""
        answers = Answers(self.task, self.data.train, scorer, self.settings.rule)
        answers.pause = signals.deliver
        return functools.partial(consult, self.learner, answers)

    def _learn(
        self,
        progress: Callable[[Progress], None] | None,
        signals: DeferredSignals,
        advance: Callable[[int, int | None], None],
        size: int,
    ) -> None:
        """``advance(steps, answers)`` learns; ``size`` steps at first between looks at the clock: whole batches."""
        if self.learner.step == 0 and not self.curve:
            self._evaluate()
        saved = time.perf_counter()
        # a run that goes on has the mean of its first steps in its curve; a scorer's losses are watched by the learner
        watch = RunawayLoss(self.settings, next((each[1] for each in self.curve if each[0] > 0), None), LEAST_START)
        total, known = self.learner.told_losses
        while not self._finished:
            began, before = time.perf_counter(), self.learner.step
            due = self._due
            if self.answers is None:
                advance(self._whole_batches(min(size, due - before)), None)
            else:
                advance(self._whole_batches(size), min(due, self.answers))
            took, steps = time.perf_counter() - began, self.learner.step - before
            self.seconds += took
            was, (total, known) = (total, known), self.learner.told_losses
            if self.scorer is None:
                watch.note(self.learner.step, total - was[0], known - was[1])
            size = max(1, min(2 * size, int(steps / max(took, 1e-9) * _SLICE_SECONDS)))
            if self._done >= due or self._finished:
                self._evaluate()
            if progress is not None:
                progress(self._progress(steps / max(took, 1e-9)))
            signals.deliver()
            if self.checkpoint is not None and time.perf_counter() - saved > self.checkpoint_seconds:
                self._save()
                saved = time.perf_counter()

    def _whole_batches(self, steps: int) -> int:
        """So many steps or a few more, to where a batch or the run ends: a run is the same wherever it is cut."""
        batch, done = self.settings.batch, self.learner.step
        return min(-(-(done + steps) // batch) * batch, self.iterations) - done

    @property
    def _done(self) -> int:
        """Of what looks at dev are counted by."""
        return self.learner.step if self.answers is None else self.learner.answers

    @property
    def _due(self) -> int:
        """When dev is looked at next."""
        if self.evaluate_at:
            return next((look for look in self.evaluate_at if look > self._done), NO_END)
        return (self._done // self.evaluate_every + 1) * self.evaluate_every

    @property
    def _finished(self) -> bool:
        return self.learner.step >= self.iterations or self._done >= (self.answers or NO_END)

    def _evaluate(self) -> None:
        """A point of the curve; where dev is better than ever, keep the weights. Without dev the latest are kept."""
        W = self.learner.weights()
        if self.gold is not None:
            refuse_unheard(self.learner, self.gold, W)
        value = self._dev.value(W) if self._dev else math.nan
        if self._dev is None or self.best_value is None or value > self.best_value:
            self.best[:] = W
            self.best_value = value if self._dev else None
            self.best_iteration = self.learner.step
        test = self._test.value(W) if self._test and self.test_looks else math.nan
        of_best = self.learner.map_average_loss
        best = math.nan if of_best is None else of_best
        self.curve.append((self.learner.step, self.learner.average_loss, value, self.learner.answers, test, best))

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
            learner.answers,
            self.answers,
        )

    def tested(self, model: Model) -> Outcome:
        """With the result on the test set, where there is one."""
        if self._test is None:
            return Outcome(model, model.result, None)
        test = self.task.scores(self.data.test, predict(self._test.problem, model.W))
        result = {**model.result, "test": test.value}
        return Outcome(replace(model, result=result), result, test)

    def _model(self) -> Model:
        settings = self.settings
        result = {
            "task": self.task.name,
            **settings.as_dict(),
            "metric": self.task.metric,
            "iterations": self.learner.step,
            "questions": self.learner.questions,
            "answers": self.learner.answers,
            **({"losses": settings.losses(self.learner.step)} if RULES[settings.rule].zeroth_order else {}),
            "n": self.problem.n_features * self.problem.n_labels,
            "n_active": float(self.problem.n_active.mean()),
            "n_score": float(self.problem.n_score.mean()),
            "average_loss": self.learner.average_loss,
            **({} if (of_best := self.learner.map_average_loss) is None else {"map_average_loss": of_best}),
            "best_iteration": self.best_iteration,
            "dev": self.best_value,
            "test": None,
            "seconds": self.seconds,
            "us_per_iteration": 1e6 * self.seconds / self.learner.step,
            "update_fraction": self.learner.updates / self.learner.step,
            "version": __version__,
            **({"scorer": self.scorer.text} if self.scorer is not None else {}),
        }
        return Model(self.task, self.best, settings.as_dict(), result, self._curve())

    def _curve(self) -> dict[str, NDArray[Any]]:
        points = np.array(self.curve, np.float64).reshape(-1, len(_CURVE))
        return {name: points[:, k].astype(kind) for k, (name, kind) in enumerate(_CURVE.items())}

    # Being stopped, and going on

    @functools.cached_property
    def _identity(self) -> dict[str, Any]:
        """What must be the same for a checkpoint to be continued: all that decides what comes out."""
        dev = self._dev
        return {
            "task": self.task.name,
            "settings": self.settings.as_dict(),
            "iterations": self.iterations,
            "answers": self.answers,
            "evaluate_every": self.evaluate_every,
            "evaluate_at": list(self.evaluate_at),
            "test_looks": self.test_looks,
            "features": known_by(*self.task.to_arrays()),
            "train": self._train_known_by(),
            "dev": dev and known_by(dev.problem.inputs, dev.problem.task, dev.gold),
            "initial weights": self._start,
            "scorer": self.scorer.text if self.scorer is not None else None,
        }

    def _train_known_by(self) -> str:
        return known_by(self.problem.inputs, self.problem.task, self.gold)

    def _save(self) -> None:
        if self.checkpoint is None:
            return
        arrays = {"best": self.best, **self.learner.state._asdict()}
        for array in arrays.values():
            refuse_not_finite(array, self.settings, f"step {self.learner.step}: ")
        meta = {
            "identity": self._identity,
            "best_value": self.best_value,
            "best_iteration": self.best_iteration,
            "seconds": self.seconds,
        }
        write_container(self.checkpoint, "checkpoint", meta, arrays | self._curve())

    def _resume(self) -> None:
        if self.checkpoint is None or not self.checkpoint.exists():
            return
        meta, arrays = read_container(self.checkpoint, "checkpoint")
        self._check_identity(meta.get("identity"))
        with damage(self.checkpoint, "remove it to start anew"):
            self.learner.make_room_for(arrays)
            self._check(meta, arrays)
            for name in State._fields:
                getattr(self.learner.state, name)[...] = arrays[name]
            self.learner.check_state()
        self.best[...] = arrays["best"]
        self.best_value, self.best_iteration = meta["best_value"], meta["best_iteration"]
        self.seconds = meta["seconds"]
        columns = (arrays[name].tolist() for name in _CURVE)
        self.curve = list(zip(*columns, strict=True))

    def _check_identity(self, its: Any) -> None:
        mine = self._identity
        if not isinstance(its, dict) or set(its) != set(mine):
            raise UsageError(
                f"{self.checkpoint}: was written by another version of sparsezo, which noted other things about its "
                "run; go on with that version, or remove the file to start anew"
            )
        if different := [name for name in mine if mine[name] != its[name]]:
            raise UsageError(
                f"{self.checkpoint}: is of a run with other {', '.join(different)}; "
                "resume with the same command, or remove the file to start anew"
            )

    def _check(self, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """What a checkpoint of this very run holds fits it; NumPy would make much else fit without a word."""
        like(arrays, "best", self.best)
        state = State(*(like(arrays, name, mine) for name, mine in self.learner.state._asdict().items()))
        if not 0 <= state.counts[loop.STEP] <= self.iterations:
            raise ValueError("more steps than the run has")
        if not bounds.all_finite(arrays["best"]):
            raise ValueError("best is not finite")
        points = arrays["iterations"].size
        for name, kind in _CURVE.items():
            bounds.array(name, arrays[name], np.dtype(kind).kind, (points,))
        bounds.below("iterations", arrays["iterations"], self.iterations + 1)
        for name, kind in (("best_value", float | None), ("best_iteration", int), ("seconds", float)):
            if not isinstance(meta[name], kind):
                raise ValueError(f"{name} is {shown(meta[name], repr)}")

    def finish(self) -> None:
        """The model is saved: the checkpoint has served."""
        if self.checkpoint is not None:
            with contextlib.suppress(FileNotFoundError):
                self.checkpoint.unlink()
