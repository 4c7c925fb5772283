"""One training run: learn, evaluate on dev at intervals, keep the best, survive being stopped (paper Sec. 5).

    run = Training(task, Data(train, dev, test), Settings(), iterations=4_000_000, checkpoint="model.szo.checkpoint")
    outcome = run.go(progress=print)                # or run.learn(...), then run.tested(model)
    outcome.model.save("model.szo")

The best model on dev is kept, the paper's online-to-batch selection. A run that was interrupted or killed goes on from
its checkpoint with ``resume=True`` and ends with the same weights, bit for bit. ``StreamedTraining`` has one window of
inputs in memory at a time; ``joined`` gives the weights of another model to start from.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, TypedDict, Unpack

import numpy as np

from sparsezo import __version__, messages, validation
from sparsezo.diagnosis import LEAST_START, remark, runaway
from sparsezo.errors import AllReviewedError, DataError, DivergedError, UsageError, quoted, shown
from sparsezo.kernels import loop
from sparsezo.kernels.loop import State
from sparsezo.learner import NO_END, Learner, mean_loss, predict, workspace_of
from sparsezo.model import Model
from sparsezo.optimizer import Arrays, RunawayLoss, refuse_not_finite, with_all_counts
from sparsezo.query_learner import QueryLearner, make_learner
from sparsezo.rules import RULES
from sparsezo.scorers import Scorer, ScorerAnswers, ScorerError, check_rule, consult
from sparsezo.settings import Settings, rate_text
from sparsezo.signals import CHECKPOINT_SECONDS, DeferredSignals
from sparsezo.storage.container import damage, like, read_container, write_container
from sparsezo.storage.fingerprint import known_by
from sparsezo.tasks.base import Json, Problem, Scores, Task, problem_of
from sparsezo.tasks.loading import Data
from sparsezo.tasks.streams import Streamed
from sparsezo.validation import Array

_HEARD = 0.01  # of the scores that a perturbation is to change: with fewer, only some new feature's weight does
_TRIED = 32  # steps that show whether anything can be learned
_FAINT = 1e-7  # gamma * mu: of a difference between expected losses, about
_SLICE_SECONDS = 0.1  # of compiled work between looks at the clock


def default_interval(iterations: int) -> int:
    """Steps between looks at dev, unless they are given: a hundred looks in a run.

    >>> default_interval(4_000_000), default_interval(50)
    (40000, 1)
    """
    return max(1, math.ceil(iterations / 100))


class CurvePoint(NamedTuple):
    """A look at dev in a run; nan where something is not known. Its fields are the columns of a model's curve."""

    iterations: int
    average_loss: float
    dev: float
    answers: int
    test: float
    map_average_loss: float
    tokens: int = 0  # what a person's time goes to, beside answers (``AskTell.tokens``)
    looked: int = 0
    corrections: int = 0
    whole: int = 0
    dev_loss: float = math.nan  # the mean loss of the best outputs of dev at w, where it is asked for


_EFFORT = ("tokens", "looked", "corrections", "whole")  # which earlier versions did not count
_COUNTED = ("iterations", "answers", *_EFFORT)
_CURVE: dict[str, type[np.generic]] = {
    name: np.int64 if name in _COUNTED else np.float64 for name in CurvePoint._fields
}


class HeldOut:
    """A part of the data that is only looked at: dev, or test. Its arrays are made once."""

    def __init__(self, task: Task, data: object) -> None:
        self.task = task
        self.problem: Problem = task.problem(data, learn=False)
        self.gold = task.gold(data)

    def value(self, W: Array) -> float:
        """The figure that models are chosen by, of the weights W."""
        return self.task.quality(self.problem, self.gold, predict(self.problem, W))

    def value_and_loss(self, W: Array) -> tuple[float, float]:
        """That figure, and the mean of the loss that the task learns by."""
        outputs = predict(self.problem, W)
        return self.task.quality(self.problem, self.gold, outputs), mean_loss(self.problem, self.gold, outputs)


@dataclass(frozen=True)
class Progress:
    """How far a run is."""

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
    """What came out of a run: the best model on dev, what is reported of it, and its scores on test, if any."""

    model: Model
    result: Json
    test: Scores | None


class HowToTrain(TypedDict, total=False):
    """What a run may be told beside its data, settings and iterations."""

    answers: int | None
    evaluate_every: int | None
    evaluate_at: Sequence[int]
    test_looks: bool
    dev_losses: bool
    checkpoint: str | os.PathLike[str] | None
    checkpoint_seconds: float
    resume: bool
    W: Array | None
    scorer: Scorer | None


def best_of_passes(
    task: Task,
    learner: Learner | QueryLearner,
    about: Json,
    go: Callable[[Callable[[int], None]], None],
    dev: object = None,
    test: object = None,
) -> Model:
    """The model after passes over answers that are there already; with dev, the best of those after each pass.

    ``go(look)`` learns, and calls ``look(done)`` after each pass. ``about``: what the result says of the answers.
    """
    held = None if dev is None else HeldOut(task, dev)
    best: tuple[float, int, Array] | None = None

    def look(done: int) -> None:
        nonlocal best
        if held is not None:
            W = learner.weights()
            value = held.value(W)
            if best is None or value > best[0]:
                best = value, done, W.copy()

    began = time.perf_counter()
    go(look)
    W = learner.weights() if best is None else best[2]
    result = {
        "task": task.name,
        **learner.settings.as_dict(),
        "metric": task.metric,
        **about,
        "best_pass": None if best is None else best[1],
        "n": task.n_features * task.n_labels,
        "dev": None if best is None else best[0],
        "test": None,
        "seconds": time.perf_counter() - began,
        "version": __version__,
    }
    if test is not None:
        result["test"] = task.scores(test, predict(task.problem(test, learn=False), W)).value
    return Model(task, W, learner.settings.as_dict(), result)


class Training:
    """A run of ``iterations`` steps at most, or until so many ``answers`` are given, whichever comes first.

    Dev is looked at every ``evaluate_every`` steps (or answers, where these end the run), a hundred times in a run
    unless given, or after the numbers of answers in ``evaluate_at``; ``test_looks``: test too; ``dev_losses``: also by
    the loss that is learned by, whose area under the curve the result then has. ``checkpoint``: a file
    that is written every ``checkpoint_seconds`` and, with ``resume``, gone on from. ``W``: the weights to start from.
    ``scorer``: whose answers are learned from, in the place of the correct outputs.
    """

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
        dev_losses: bool = False,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_seconds: float = CHECKPOINT_SECONDS,
        resume: bool = False,
        W: Array | None = None,
        scorer: Scorer | None = None,
    ) -> None:
        for name, value in (("iterations", iterations), ("answers", answers), ("evaluate_every", evaluate_every)):
            if value is not None and value < 1:
                raise UsageError(f"`{name}` {value}: must be at least 1")
        if evaluate_at and evaluate_every is not None:
            raise UsageError("give `evaluate_every` or `evaluate_at`, not both")
        if any(b <= a for a, b in itertools.pairwise((0, *evaluate_at))):
            raise UsageError(f"`evaluate_at` {shown(list(evaluate_at))}: must be rising numbers of answers, from 1")
        answers = answers or (evaluate_at[-1] if evaluate_at else None)
        if iterations is None and answers is None:
            raise UsageError("give `iterations`, `answers` or both")
        # a scorer alone reads train's own words once there are arrays of them
        self.task, self.data, self.settings = task, data if scorer is not None else replace(data, train=None), settings
        self.iterations, self.answers, self.scorer = iterations or NO_END, answers, scorer
        self.evaluate_every = evaluate_every or default_interval(answers or self.iterations)  # in answers, or steps
        self.evaluate_at, self.test_looks, self.dev_losses = tuple(evaluate_at), test_looks, dev_losses
        self.checkpoint = Path(checkpoint) if checkpoint is not None else None
        self.checkpoint_seconds = checkpoint_seconds
        annealed, asks = settings.criterion == "annealed", RULES[settings.rule].asks
        self.problem = problem_of(task, data.train, risk=annealed, asks=asks)
        if scorer is not None:
            check_rule(settings.rule, settings.criterion, settings.feedback)
        self.gold = task.gold(data.train) if scorer is None else None
        self._dev = HeldOut(task, data.dev) if data.dev is not None else None
        self._test = HeldOut(task, data.test) if data.test is not None else None  # what is wrong with it is said now
        self.learner = self._learner(W)
        if answers is not None and not self.learner.asks_people:
            raise UsageError(f"`answers` {answers}: {self.learner.nobody}; give `iterations` alone")
        self._start = known_by(self.learner.state.W) if W is not None else None
        self.best = self.learner.state.W.copy()
        self.best_value: float | None = None
        self.best_iteration, self.seconds = 0, 0.0
        self.curve: list[CurvePoint] = []
        self._exhausted = False  # nothing is left to ask
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
        advance, size = self._advance, 1000
        if self.scorer is None:
            self.learner.run(self.gold, 0)  # compiles, where that is still to do, before the clock starts
        with DeferredSignals() as signals, contextlib.ExitStack() as stack:
            try:
                if self.scorer is not None and not self._finished:
                    scorer = stack.enter_context(self.scorer)
                    answers = ScorerAnswers(self.task, self.data.train, scorer, self.settings.rule)
                    answers.pause = signals.deliver  # heard while an answer is waited for: the question is taken back
                    advance, size = functools.partial(consult, self.learner, answers), 1
                self._learn(progress, signals, advance, size)
            except (KeyboardInterrupt, ScorerError):
                self._save()
                raise
            except DivergedError as error:
                if self._dev is None or self.best_iteration == 0:
                    raise
                messages.say(f"{error}; the best model on dev, of step {self.best_iteration:,}, is kept")
                return self._model()
        if (said := remark(self.settings, self.curve, self.scorer is not None)) is not None:
            messages.say(said)
        return self._model()

    def _learner(self, W: Array | None) -> Learner | QueryLearner:
        return make_learner(self.problem, self.settings, W)

    def _advance(self, steps: int, answers: int | None) -> None:
        self.learner.run(self.gold, steps, answers)

    def _learn(
        self,
        progress: Callable[[Progress], None] | None,
        signals: DeferredSignals,
        advance: Callable[[int, int | None], None],
        size: int,
    ) -> None:
        """``advance(steps, answers)`` learns; ``size`` steps at first between looks at the clock."""
        if self.learner.step == 0 and not self.curve:
            self._evaluate()
        saved = time.perf_counter()
        # a run that goes on has the mean of its first steps in its curve; a scorer's losses are watched by the learner
        first = next((point.average_loss for point in self.curve if point.iterations > 0), None)
        watch = RunawayLoss(self.settings, first, LEAST_START)
        total, known = self.learner.told_losses
        while not self._finished:
            began, before = time.perf_counter(), self.learner.step
            due = self._due
            if self.answers is None:
                advance(min(size, due - before, self.iterations - before), None)
            else:
                self._ask(advance, min(size, self.iterations - before), min(due, self.answers))
            took, steps = time.perf_counter() - began, self.learner.step - before
            self.seconds += took
            was, (total, known) = (total, known), self.learner.told_losses
            if self.scorer is None:
                watch.note(self.learner.step, total - was[0], known - was[1])
            size = max(1, min(2 * size, int(steps / max(took, 1e-9) * _SLICE_SECONDS)))
            if self._done >= due or self._finished:
                self._go_over_answers()
                self._evaluate()
            if progress is not None:
                progress(self._progress(steps / max(took, 1e-9)))
            signals.deliver()
            if self.checkpoint is not None and time.perf_counter() - saved > self.checkpoint_seconds:
                self._save()
                saved = time.perf_counter()

    def _ask(self, advance: Callable[[int, int | None], None], steps: int, answers: int) -> None:
        """Learn from answers, as far as there are any to give."""
        try:
            advance(steps, answers)
        except AllReviewedError:
            if self.evaluate_at:  # a run that others are compared with look by look must have them all
                raise
            self._exhausted = True
            given = f"{self.learner.answers:,} answers of {self.answers:,}"
            messages.say(f"ended after {given}: every input is reviewed, and the model agrees with all reviews")

    @property
    def _done(self) -> int:
        return self.learner.step if self.answers is None else self.learner.answers

    @property
    def _due(self) -> int:
        if self.evaluate_at:
            return next((look for look in self.evaluate_at if look > self._done), NO_END)
        return (self._done // self.evaluate_every + 1) * self.evaluate_every

    @property
    def _finished(self) -> bool:
        return self._exhausted or self.learner.step >= self.iterations or self._done >= (self.answers or NO_END)

    def _go_over_answers(self) -> None:
        """At the end, where the rule gains by it. Not where runs are compared look by look: these are as they came."""
        passes = RULES[self.settings.rule].finish
        if passes and self._finished and not self.evaluate_at:
            self.learner.finish(passes)

    def _evaluate(self) -> None:
        """A point of the curve; where dev is better than ever, keep the weights. Without dev the latest are kept whose
        loss has not run away."""
        W = self.learner.weights()
        if self.gold is not None:
            refuse_unheard(self.learner, self.gold, W)
        value, loss = math.nan, math.nan
        if self._dev:
            value, loss = self._dev.value_and_loss(W) if self.dev_losses else (self._dev.value(W), math.nan)
        test = self._test.value(W) if self._test and self.test_looks else math.nan
        learner, of_best = self.learner, self.learner.map_average_loss
        best = math.nan if of_best is None else of_best
        effort = {name: getattr(learner, name) for name in _EFFORT}
        so_far = (learner.step, learner.average_loss, value, learner.answers, test, best)
        self.curve.append(CurvePoint(*so_far, **effort, dev_loss=loss))
        if self._dev:
            better = self.best_value is None or value > self.best_value
        else:
            better = not runaway(self.settings, self.curve, self.scorer is not None)
        if better:
            self.best[:] = W
            self.best_value = value if self._dev else None
            self.best_iteration = learner.step

    def _progress(self, speed: float) -> Progress:
        learner, dev = self.learner, self.curve[-1].dev if self.curve and self._dev else None
        done = (learner.step, self.iterations, learner.average_loss, dev, self.best_value, self.best_iteration)
        return Progress(*done, self.seconds, speed, learner.answers, self.answers)

    def tested(self, model: Model) -> Outcome:
        """With the result on the test set, where there is one."""
        if self._test is None:
            return Outcome(model, model.result, None)
        test = self.task.scores(self.data.test, predict(self._test.problem, model.W))
        result = {**model.result, "test": test.value}
        return Outcome(replace(model, result=result), result, test)

    def _model(self) -> Model:
        settings, rule = self.settings, RULES[self.settings.rule]
        result: Json = {
            "task": self.task.name,
            **settings.as_dict(),
            "metric": self.task.metric,
            "iterations": self.learner.step,
            "questions": self.learner.questions,
            "answers": self.learner.answers,
            **{name: getattr(self.learner, name) for name in _EFFORT},
            **({"losses": self.learner.step * rule.losses} if rule.zeroth_order else {}),
            "n": self.problem.n_features * self.problem.n_labels,
            "n_active": float(self.problem.n_active.mean()),
            "n_score": float(self.problem.n_score.mean()),
            "average_loss": self.learner.average_loss,
            **({} if (of_best := self.learner.map_average_loss) is None else {"map_average_loss": of_best}),
            "best_iteration": self.best_iteration,
            "dev": self.best_value,
            **({"dev_loss_area": self._area()} if self.dev_losses and self._dev else {}),
            "test": None,
            "seconds": self.seconds,
            "us_per_iteration": 1e6 * self.seconds / self.learner.step,
            "update_fraction": self.learner.updates / self.learner.step,
            "version": __version__,
            **({"scorer": self.scorer.text} if self.scorer is not None else {}),
        }
        return Model(self.task, self.best, settings.as_dict(), result, self._curve())

    def _area(self) -> float:
        """Under the curve of dev's loss, over the length of the run: the mean loss on the way."""
        at, losses = (np.array([getattr(point, name) for point in self.curve]) for name in ("iterations", "dev_loss"))
        return float(np.trapezoid(losses, at) / at[-1])

    def _curve(self) -> dict[str, Array]:
        points = np.array(self.curve, np.float64).reshape(-1, len(_CURVE))
        return {name: points[:, k].astype(kind) for k, (name, kind) in enumerate(_CURVE.items())}

    # Being stopped, and going on

    @functools.cached_property
    def _identity(self) -> Json:
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
            **({"dev_losses": True} if self.dev_losses else {}),
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
            uncounted = {name: np.zeros(arrays["iterations"].shape, np.int64) for name in _EFFORT}
            uncounted["dev_loss"] = np.full(arrays["iterations"].shape, np.nan)
            arrays = {**uncounted, **with_all_counts(arrays)}
            self.learner.make_room_for(arrays)
            self._check(meta, arrays)
            for name in State._fields:
                getattr(self.learner.state, name)[...] = arrays[name]
            self.learner.check_state()
        self.best[...] = arrays["best"]
        self.best_value, self.best_iteration = meta["best_value"], meta["best_iteration"]
        self.seconds = meta["seconds"]
        columns = (arrays[name].tolist() for name in _CURVE)
        self.curve = [CurvePoint(*point) for point in zip(*columns, strict=True)]

    def _check_identity(self, its: object) -> None:
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

    def _check(self, meta: Json, arrays: Arrays) -> None:
        """What a checkpoint of this very run holds fits it; NumPy would make much else fit without a word."""
        like(arrays, "best", self.best)
        state = State(*(like(arrays, name, mine) for name, mine in self.learner.state._asdict().items()))
        if not 0 <= state.counts[loop.STEP] <= self.iterations:
            raise ValueError("more steps than the run has")
        if not validation.all_finite(arrays["best"]):
            raise ValueError("best is not finite")
        points = arrays["iterations"].size
        for name, kind in _CURVE.items():
            validation.array(name, arrays[name], np.dtype(kind).kind, (points,))
        for name in ("iterations", "answers"):  # a step has one answer at the most
            validation.below(name, arrays[name], self.iterations + 1)
        for name in _EFFORT:  # exact in the float64 of a curve
            validation.below(name, arrays[name], 1 << 53)
        for name, fits in (("best_value", float | None), ("best_iteration", int), ("seconds", float)):
            if not isinstance(meta[name], fits):
                raise ValueError(f"{name} is {shown(meta[name], repr)}")

    def finish(self) -> None:
        """The model is saved: the checkpoint has served."""
        if self.checkpoint is not None:
            self.checkpoint.unlink(missing_ok=True)


# Streams


def check_streamed(settings: Settings, *, scorer: bool = False) -> None:
    """UsageError where a run of these settings cannot be of a stream."""
    if RULES[settings.rule].asks:
        raise UsageError(f"rule {settings.rule}: questions are about inputs that stay; leave `stream` out")
    if scorer:
        raise UsageError("`scorer`: is asked about inputs that stay; leave `stream` out")


class StreamLearner(Learner):
    """A learner whose inputs change.

    A step is about one input, and which one is a function of the seed and the step: pass step // N, and in it the
    window that the step falls into, whose inputs are looked at in an order of its own (``random.permuted``).
    """

    def look_at(self, problem: Problem, begins: int) -> None:
        """Go on with these inputs: from step ``begins`` on each of them is looked at once."""
        with self._lock:
            self._look_at(problem)
            self._params = self._params._replace(shift=len(problem) - begins % len(problem))


class StreamedTraining(Training):
    """``Training`` from a stream. In memory are the weights, dev and test, and two windows while the next is made.

    A run that was stopped goes on bit for bit: the step says where to read on, and the file is read up to there once
    more. ``more``: as ``Training`` has it.
    """

    learner: StreamLearner

    def __init__(
        self, streamed: Streamed, settings: Settings, iterations: int | None = None, **more: Unpack[HowToTrain]
    ) -> None:
        check_streamed(settings, scorer=more.get("scorer") is not None)
        self.stream = streamed.stream
        self._ends = np.cumsum(self.stream.sizes)  # of each window, in a pass
        self._held = 0  # the window in memory, counted through all passes
        self._reading = self.stream.read()
        data = Data(next(self._reading), streamed.dev, streamed.test)
        super().__init__(self.stream.task, data, settings, iterations, **more)
        self.learner.look_at(self.problem, 0)

    def _learner(self, W: Array | None) -> StreamLearner:
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
            self.problem = self.task.problem(data, risk=self.settings.criterion == "annealed")
            self.gold = self.task.gold(data)
            self.learner.look_at(self.problem, end - len(data))
            self._held = number
        return end


# Starting from a model


class Start(NamedTuple):
    """Weights to start from, and how much of them a model knew."""

    W: Array  # features x labels of the new task
    features: int  # that the model knows
    labels: int


def joined(model: Model, task: Task) -> Start:
    """The weights of ``model`` for ``task``, made for other data, joined by the names of features and labels.

    What the model does not know starts at 0; what the new data does not have is left behind. A task's ``feature_names``
    and ``label_names`` say what the rows and columns of its weights are; where these do not say all, its
    ``check_start`` refuses the model.
    """
    if (check := getattr(task, "check_start", None)) is not None:
        check(model.task)
    if (bits := getattr(task, "hash_bits", None)) is not None or getattr(model.task, "hash_bits", None) is not None:
        return _hashed(model, task, bits)
    rows, columns = (
        _found(what, *(_names(each, names) for each in (model.task, task)))
        for what, names in (("features", "feature_names"), ("labels", "label_names"))
    )
    W = np.zeros((task.n_features, task.n_labels), model.W.dtype)
    W[np.ix_(rows[1], columns[1])] = model.W[np.ix_(rows[0], columns[0])]
    return Start(W, len(rows[0]), len(columns[0]))


def _hashed(model: Model, task: Task, bits: int | None) -> Start:
    """A feature's row is the same in both, whatever its name."""
    its = getattr(model.task, "hash_bits", None)
    if its != bits:
        had = "no `hash_bits`" if its is None else f"`hash_bits` {its}"
        raise UsageError(f"the model to start from has {had}; train with the same, where rows mean the same")
    if (labels := _names(task, "label_names")) != _names(model.task, "label_names") or (
        model.W.shape != (task.n_features, task.n_labels)
    ):
        raise UsageError(
            f"the model to start from has other labels than {_some(labels)}, or other templates: with `hash_bits` its "
            "weights can only be taken as they are"
        )
    return Start(model.W, task.n_features, task.n_labels)


def _names(task: Task, which: str) -> Sequence[str]:
    """One for each row, or column, of a task's weights."""
    names: Callable[[], Sequence[str]] | None = getattr(task, which, None)
    if names is None:
        raise UsageError(f"task {task.name} has no {which}: it cannot start from a model")
    return names()


def _found(what: str, old: Sequence[str], new: Sequence[str]) -> tuple[list[int], list[int]]:
    """Where the names that both have stand in each."""
    place = {name: number for number, name in enumerate(old)}
    found = [number for number, name in enumerate(new) if name in place]
    if not found:
        raise UsageError(
            f"the model to start from has none of the {what} of the data: it has {_some(old)}, they are {_some(new)}; "
            "was it made with other options, or from other data?"
        )
    return [place[new[number]] for number in found], found


def _some(names: Sequence[str]) -> str:
    return ", ".join(f"'{quoted(name)}'" for name in names[:3]) + (", ..." if len(names) > 3 else "")


# Settings with which nothing can be learned


def refuse_unheard(learner: Learner | QueryLearner, gold: object, W: Array) -> None:
    """A mu that no score notices, or a gamma that no expected loss does: nothing can be learned any more."""
    settings, kind = learner.settings, W.dtype
    if not RULES[settings.rule].zeroth_order or settings.mu is None:
        return
    if settings.mu < float(np.finfo(kind).smallest_subnormal) / 2:
        raise DivergedError(
            f"`mu` {settings.mu:g} is 0 as {kind}, which weights are: it changes no score; use a larger `mu`"
        )
    largest = float(max(W.max(initial=0), -W.min(initial=0)))
    lost = settings.mu < float(np.finfo(kind).eps) * largest  # within the last bit of the largest weight
    faint = settings.criterion == "annealed" and settings.gamma * settings.mu < _FAINT
    if not (lost or faint):
        return
    heard, weights_move = tried_out(learner, gold)
    if lost and (heard < _HEARD or not weights_move):
        raise DivergedError(
            f"step {learner.step}: `mu` {settings.mu:g} is so small beside weights of {largest:.2g} that it changes no "
            f"output: nothing can be learned; use a larger `mu`, or a smaller `h` than {rate_text(settings.h)}"
        )
    if faint and not weights_move:
        raise DivergedError(
            f"step {learner.step}: `gamma` {settings.gamma:g} is so small that no perturbation changes the expected "
            "loss: nothing can be learned; use a larger one"
        )


def tried_out(learner: Learner | QueryLearner, gold: object) -> tuple[float, bool]:
    """Some of the next steps, on a copy: the share of scores that mu u changes, and whether weights move."""
    state = loop.State._make(part.copy() for part in learner.state)
    perturbed = changed = 0
    for _ in range(_TRIED):
        work = workspace_of(learner.problem)  # 0 but for the rows of this one step's input
        if not loop.run(*learner.parts(gold), state.counts[loop.STEP] + 1, NO_END, state, work):
            raise learner.not_finite(int(state.counts[loop.ASKED]))
        perturbed += int(np.count_nonzero(work.V))
        changed += int(np.count_nonzero(work.S != work.T))
    return changed / max(perturbed, 1), bool(state.counts[loop.UPDATES] > learner.updates)
