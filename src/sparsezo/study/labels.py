"""Full labels, to compare answers with: whole inputs are labelled, few and then more, and learned from until the end.

    done = Labelling(prepared, settings, "least-confident", passes=30, looks=(500, 1000), every=10).go()
    done.model, done.result                         # of the last look; .curve has all
    start_weights(prepared, "labels:100", 30, seed) # a model of 100 labelled inputs, to start from

A decision is a number of an output: each token of a sentence, the class of a document. At a look of N decisions as many
inputs are labelled as fit: at random, or those whose best output the model finds least likely by the token (Lewis and
Gale 1994; Settles and Craven 2008; Shen et al. 2017), chosen anew after every few inputs by a learner that is told
each as it comes. What is looked at is learned from weights of 0.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from sparsezo import __version__
from sparsezo.errors import UsageError
from sparsezo.learner import Learner, confidence, predict
from sparsezo.model import Model
from sparsezo.query_learner import QueryLearner
from sparsezo.settings import Settings
from sparsezo.signals import DeferredSignals
from sparsezo.storage.container import read_container, write_container
from sparsezo.study.plan import EVERY, LEAST_CONFIDENT, parse_start
from sparsezo.study.prepared import PreparedTask
from sparsezo.study.records import COLUMNS, EFFORT
from sparsezo.tasks.base import AnyArray, Json, Scores
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.loading import Loaded
from sparsezo.training import Outcome, Progress

_OUTPUT_PASSES = 2  # over all inputs, with another model's outputs as labels
_MISTAKEN_PASSES = 3  # over half of the inputs, by a model whose errors people make, too
_GOLD = ("tags", "labels")  # what a gold calls its outputs


def start_weights(prepared: PreparedTask, start: str, passes: int, seed: int) -> AnyArray:
    """labels:N, of a supervised model; output:N, of what such a model, learned elsewhere, says of all of train."""
    how, count = parse_start(start)
    order = prepared.order(seed)
    if count > len(order):
        raise UsageError(f"start {start}: there are only {len(order):,} inputs")
    settings = Settings.complete({"rule": "supervised", "step": "adagrad", "seed": seed}, prepared.plain.defaults)
    learner = prepared.learned(order[:count], settings, passes)
    if how == "labels":
        return learner.weights()
    train = prepared.data.train
    problem, gold = prepared.task.problem(train), prepared.task.gold(train)
    name = next(name for name in _GOLD if name in gold._fields)
    said = predict(problem, learner.weights()).astype(getattr(gold, name).dtype)
    ours = Learner(problem, settings)
    ours.run(gold._replace(**{name: said}), _OUTPUT_PASSES * len(order))
    return ours.weights()


def mistaken(prepared: PreparedTask, share: float, seed: int) -> PreparedTask:
    """Chunking with a person who errs where it is hard: of this share of train's sentences they take for right what a
    model says that was learned from the labels of the other half."""
    task, data, order = prepared.task, prepared.data, prepared.order(seed)
    settings = Settings.complete({"rule": "supervised", "step": "adagrad", "seed": seed}, prepared.plain.defaults)
    problem, tags = task.problem(data.train), list(data.train.tags)
    for here, elsewhere in ((order[::2], order[1::2]), (order[1::2], order[::2])):
        W = prepared.learned(elsewhere, settings, _MISTAKEN_PASSES).weights()
        said = cast(Chunking, task).words(predict(problem, W), problem.output_start)
        for x in here[: round(share * here.size)].tolist():
            begin, end = problem.output_start[x : x + 2].tolist()
            tags[begin:end] = said[begin:end]
    return PreparedTask(Loaded(prepared.plain, replace(data, train=replace(data.train, tags=tags)), prepared.W))


class Labelling:
    """A run that looks like ``Training`` from outside: go, curve, finish. Stopped, it goes on from its last look."""

    def __init__(
        self,
        prepared: PreparedTask,
        settings: Settings,
        choose: str,
        passes: int,
        looks: Sequence[int],
        every: int = EVERY,
        *,
        test_looks: bool = False,
        checkpoint: Path | None = None,
    ) -> None:
        self.prepared, self.settings, self.choose, self.passes, self.every = prepared, settings, choose, passes, every
        self.looks, self.test_looks, self.checkpoint = tuple(looks), test_looks, checkpoint
        train = prepared.task.problem(prepared.data.train)
        self.cost = np.diff(train.output_start)  # decisions of each input
        self.queue = prepared.order(settings.seed)
        self.curve: list[tuple[float, ...]] = []  # records.COLUMNS
        self.W = np.zeros((train.n_features, train.n_labels), train.dtype)
        self.loss = math.nan
        self.steps, self.chosen, self.seconds = 0, 0, 0.0
        self.ranked = 0  # inputs in the queue that the chooser has put there, or has been told
        self._chooser: QueryLearner | None = None
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
        task, data = self.prepared.task, self.prepared.data.test
        test = None if data is None else task.scores(data, predict(task.problem(data, learn=False), self.W))
        result = self._result(test)
        return Outcome(Model(self.prepared.plain, self.W, self.settings.as_dict(), result), result, test)

    def _look(self, look: int, watch: Callable[[], None]) -> None:
        began = time.perf_counter()
        if self.choose == LEAST_CONFIDENT and self.curve:
            self._rank(look, watch)
        spent = np.cumsum(self.cost[self.queue])
        self.chosen = max(int(np.searchsorted(spent, look, side="right")), 1)
        learner = self.prepared.learned(self.queue[: self.chosen], self.settings, self.passes, watch)
        self.W, self.loss = learner.weights(), learner.average_loss
        self.steps += learner.step
        self.seconds += time.perf_counter() - began
        data = self.prepared.data
        dev = self.prepared.quality(data.dev, self.W)
        test = self.prepared.quality(data.test, self.W) if self.test_looks else math.nan
        decisions, tokens = min(look, int(spent[-1])), int(spent[self.chosen - 1])
        by_hand = int(self.prepared.marked[self.queue[: self.chosen]].sum())
        counts = {"tokens": tokens, "looked": tokens, "corrections": by_hand}
        effort = (counts.get(name, 0) for name in EFFORT)
        self.curve.append((self.steps, self.loss, dev, decisions, test, math.nan, *effort, math.nan, self.chosen))
        self._save()

    def _rank(self, look: int, watch: Callable[[], None]) -> None:
        """Put what is least sure next, ``every`` inputs at a time, until there are enough for the look."""
        problem = self.prepared.task.problem(self.prepared.data.train)
        if self._chooser is None:  # at first, or where a stopped run goes on
            self.ranked = max(self.ranked, self.chosen)
            self._tell(self.queue[: self.ranked])
        while self.ranked < self.queue.size and self.cost[self.queue[: self.ranked]].sum() <= look:
            waiting = self.queue[self.ranked :]
            sure = (confidence(problem, self._learner.weights()) / self.cost)[waiting]
            self.queue[self.ranked :] = waiting[np.argsort(sure, kind="stable")]
            self._tell(self.queue[self.ranked : self.ranked + self.every])
            self.ranked = min(self.ranked + self.every, self.queue.size)
            watch()

    @property
    def _learner(self) -> QueryLearner:
        """Who says what is least sure: told whole outputs, and from cold, as learners from answers are."""
        if self._chooser is None:
            prepared = self.prepared
            problem = prepared.task.problem(prepared.data.train, asks=True)
            rule = "review" if ("review", "token") in problem.questions else "label"
            settings = Settings.complete({"rule": rule, "seed": self.settings.seed}, prepared.plain.defaults)
            self._chooser = QueryLearner(problem, settings)
        return self._chooser

    def _tell(self, inputs: NDArray[np.int64]) -> None:
        learner, gold = self._learner, self.prepared.task.gold(self.prepared.data.train)
        for x in inputs.tolist():
            question = learner.ask(x)
            learner.tell(question, learner.known_answer(question, gold))

    def _progress(self) -> Progress:
        done = int(self.curve[-1][3]) if self.curve else 0
        dev = self.curve[-1][2] if self.curve else None
        speed = self.steps / max(self.seconds, 1e-9)
        return Progress(self.steps, self.steps, self.loss, dev, dev, self.steps, self.seconds, speed, done, done)

    def _result(self, test: Scores | None) -> Json:
        problem = self.prepared.task.problem(self.prepared.data.train)
        last = dict(zip(COLUMNS, self.curve[-1], strict=True))
        return {
            "task": self.prepared.task.name,
            **self.settings.as_dict(),
            "labels": self.choose,
            "passes": self.passes,
            "metric": self.prepared.task.metric,
            "iterations": self.steps,
            **{name: int(last[name]) for name in ("answers", *EFFORT, "inputs")},
            "n": problem.n_features * problem.n_labels,
            "average_loss": self.loss,
            "best_iteration": self.steps,
            "dev": None if math.isnan(last["dev"]) else last["dev"],
            "test": test.value if test else None,
            "seconds": self.seconds,
            "us_per_iteration": 1e6 * self.seconds / max(self.steps, 1),
            "version": __version__,
        }

    def _save(self) -> None:
        if self.checkpoint is not None:
            meta = {name: getattr(self, name) for name in ("steps", "chosen", "ranked", "seconds", "loss")}
            arrays = {"W": self.W, "queue": self.queue, "curve": np.array(self.curve)}
            write_container(self.checkpoint, "checkpoint", meta, arrays)

    def _resume(self, path: Path) -> None:
        """A folder is of one run alone, which its name says; so what is whole there is ours."""
        meta, arrays = read_container(path, "checkpoint")
        if arrays["curve"].shape[1] != len(COLUMNS):
            return  # of an earlier version, which counted less: from the start
        self.steps, self.chosen, self.ranked = meta["steps"], meta["chosen"], meta["ranked"]
        self.seconds = meta["seconds"]
        self.loss, self.W, self.queue = meta["loss"], arrays["W"], arrays["queue"]
        self.curve = [tuple(point) for point in arrays["curve"].tolist()]

    def finish(self) -> None:
        if self.checkpoint is not None:
            self.checkpoint.unlink(missing_ok=True)
