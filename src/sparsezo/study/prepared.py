"""A task and its data with everything made once that runs share: the arrays of its parts."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import cast

import numpy as np
from numpy.typing import NDArray

from sparsezo.learner import Learner, predict
from sparsezo.settings import Settings
from sparsezo.tasks.base import AnyArray, Problem, Read, Task, problem_of
from sparsezo.tasks.loading import Data, Loaded
from sparsezo.training import Training

_ORDER = 11  # the stream of random numbers that says which inputs come first
_SLICE = 20_000  # steps between two looks at whether to stop


class PreparedTask:
    """What ``load`` gave: ``task`` keeps the arrays it has made of data, ``plain`` is for data that comes and goes.

    prepared = PreparedTask(loaded)
    prepared.compile()
    Training(prepared.task, prepared.data, settings, 1000, W=prepared.W).go()
    """

    def __init__(self, loaded: Loaded) -> None:
        self.plain = loaded.task
        self.task = cast(Task, _KeepsArrays(loaded.task))
        self.data, self.W = loaded.data, loaded.W

    def compile(self) -> None:
        """One step of the dearest kind, so that whatever has to be compiled is compiled."""
        data = Data(self.data.train, self.data.dev)
        Training(self.task, data, Settings("two-point", "all", 1e-6, 1e-6), 1, W=self.W).go()

    def order(self, seed: int) -> NDArray[np.int64]:
        """The inputs of train as they come, at random."""
        return np.random.default_rng((seed, _ORDER)).permutation(len(self.data.train))

    @functools.cached_property
    def marked(self) -> NDArray[np.int64]:
        """What somebody marks by hand who labels an input of train from nothing: its chunks, or each of its outputs."""
        train = self.data.train
        problem = self.task.problem(train)
        if self.task.metric != "f1":
            return np.diff(problem.output_start)
        nothing = np.zeros((problem.n_features, problem.n_labels), problem.dtype)
        counts = self.task.scores(train, predict(problem, nothing)).counts
        return np.asarray(counts, np.int64)[:, -1]  # correct, predicted, gold

    def learned(
        self,
        rows: NDArray[np.int64],
        settings: Settings,
        passes: int,
        watch: Callable[[], None] = lambda: None,
    ) -> Learner:
        """A learner that has seen the labels of these inputs so often, from weights of 0."""
        some = self.data.train.take(rows)
        learner = Learner(self.plain.problem(some), settings)
        steps, gold = passes * len(rows), self.plain.gold(some)
        while learner.step < steps:
            learner.run(gold, min(_SLICE, steps - learner.step))
            watch()
        return learner

    def quality(self, data: Read, W: AnyArray) -> float:
        """The task's metric on data that is only looked at; nan where there is none."""
        if data is None:
            return math.nan
        problem = self.task.problem(data, learn=False)
        return self.task.quality(problem, self.task.gold(data), predict(problem, W))


class _KeepsArrays:
    """A task that keeps the arrays it has made of data; they are only read."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._problems: dict[tuple[int, bool, bool, bool], Problem] = {}
        self._gold: dict[int, object] = {}

    def problem(self, data: object, *, learn: bool = True, risk: bool = False, asks: bool = False) -> Problem:
        key = (id(data), learn, risk, asks)
        if key not in self._problems:
            self._problems[key] = problem_of(self._task, data, learn=learn, risk=risk, asks=asks)
        return self._problems[key]

    def gold(self, data: object) -> object:
        if id(data) not in self._gold:
            self._gold[id(data)] = self._task.gold(data)
        return self._gold[id(data)]

    def __getattr__(self, name: str) -> object:
        return getattr(self._task, name)
