"""What a task is to the rest of the package: it turns data into arrays, and outputs into words and figures.

A task owns what a model needs to be used again (tag set, features, vocabulary) and nothing of the learner. Its
compiled half, chosen by the type of ``Problem.task``, is described in ``kernels.protocol``.
"""

from __future__ import annotations

import inspect
import threading
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sparsezo import validation
from sparsezo.errors import UsageError
from sparsezo.options import Json as Json
from sparsezo.questions import Questions

AnyArray = NDArray[Any]
Arrays = dict[str, AnyArray]  # what a file or a session keeps of something, by name
Read = Any  # whatever a task's own reader gives
Compiled = Any  # a NamedTuple that kernels.protocol knows
_MAKING = threading.Lock()  # what a problem's inputs lack is made once


@dataclass(frozen=True, eq=False)
class Problem:
    """Inputs as arrays, ready for the compiled loop; no gold in it, and nothing that is ever written. What only some
    learners read of the inputs is made when the first of them is."""

    inputs: Compiled
    task: Compiled
    n_features: int
    n_labels: int
    output_start: NDArray[np.int64]  # N + 1: where each input's output stands in a flat array of outputs
    n_active: NDArray[np.int64]  # n_bar(x) of each input, eq. (zero-norm)
    max_rows: int
    max_columns: int
    dtype: type[np.float32 | np.float64] = np.float32  # of the weights and scores
    questions: Questions = field(default_factory=dict)  # (rule, what it is about) -> the answers to choose from
    start: tuple[NDArray[np.int64], AnyArray] | None = None  # rows of W that rules which ask begin with, 0 elsewhere
    adagrad_start: float = 1.0  # under the root of Adagrad's step, where a rule learns from answers
    learn: bool = True  # False: to decode only
    risk: bool = True  # it has the annealed criterion's room

    def __post_init__(self) -> None:
        """Compiled code believes all of it, so it is looked at here."""
        validation.offsets("output_start", self.output_start)
        validation.at_least("n_features", self.n_features, 1)
        validation.at_least("n_labels", self.n_labels, 1)
        if self.start is not None:
            validation.below("the rows to start with", self.start[0], self.n_features)
            validation.array("the weights to start with", self.start[1], "f", (self.start[0].size, self.n_labels))
        for part in (self.inputs, self.task):
            if hasattr(part, "check"):
                part.check(self)

    def __len__(self) -> int:
        return self.output_start.size - 1

    def private(self, *, factors: bool = False, places: bool = False) -> tuple[Compiled, Compiled]:
        """(inputs, task) with scratch of their own: what one learner works with. ``factors``, ``places``: what it reads
        of inputs beside C, where they have a ``ready`` (``kernels.inputs.sparse``); scores need neither.

        The problem itself is only read, so it can serve any number of learners in any number of threads.
        """
        if hasattr(self.inputs, "ready"):
            with _MAKING:
                object.__setattr__(self, "inputs", self.inputs.ready(factors=factors, places=places))
        return _own_scratch(self.inputs), _own_scratch(self.task)

    @cached_property
    def n_score(self) -> NDArray[np.int64]:
        """r_bar(x) of each input: the dimension of what the scores see; 0 where nothing is learned."""
        if not self.learn:
            return np.zeros(len(self), np.int64)
        if not hasattr(self.inputs, "dimensions"):
            raise UsageError(f"{type(self.inputs).__name__} have no dimensions(), by which scores are counted")
        dimensions: NDArray[np.int64] = self.inputs.dimensions()
        return dimensions * self.n_labels

    @property
    def sizes(self) -> tuple[float, float]:
        """(mean |x|_1, mean |x|^2) of what a part of an output (a token, a document) reads."""
        if not hasattr(self.inputs, "sizes"):
            raise UsageError(f"{type(self.inputs).__name__} have no sizes(), by which `h` auto goes: give `h` a number")
        absolute, square = self.inputs.sizes()
        parts = max(int(self.output_start[-1]), 1)
        return absolute / parts, square / parts

    @property
    def max_outputs(self) -> int:
        return int(np.diff(self.output_start).max(initial=1))


def _own_scratch(part: Compiled) -> Compiled:
    if not hasattr(part, "scratch"):
        return part
    rooms = (None if array is None else np.zeros_like(array) for array in part.scratch)
    return part._replace(scratch=type(part.scratch)(*rooms))


@dataclass(frozen=True)
class Scores:
    """A test result: the figure that models are chosen by, and the rest of the report."""

    metric: str
    value: float
    report: Json
    counts: AnyArray | None = field(default=None, compare=False, repr=False)  # of each input (tasks/counts.py)


class Task(Protocol):
    """A task with its data set's features."""

    @property
    def name(self) -> str: ...

    @property
    def metric(self) -> str: ...

    @property
    def n_features(self) -> int: ...

    @property
    def n_labels(self) -> int: ...

    def problem(self, data: Read, *, learn: bool = True, risk: bool = False, asks: bool = False) -> Problem:
        """Arrays of the inputs: to learn from or to decode only.

        ``risk`` asks for the annealed criterion's room, ``asks`` for what rules that learn from answers want; a task
        that has no expected loss, or no questions, need not know the word.
        """

    def gold(self, data: Read) -> Compiled:
        """The correct outputs as the NamedTuple that protocol.delta knows; only feedback looks at it."""

    def quality(self, problem: Problem, gold: Compiled, outputs: NDArray[np.int32]) -> float:
        """The figure that ``scores`` leads with, quickly: it is asked for many times in a run."""

    def scores(self, data: Read, outputs: NDArray[np.int32]) -> Scores:
        """The whole report on the outputs of all of data's inputs, as they stand at Problem.output_start."""

    def export(self, path: Path, W: AnyArray) -> list[Path]:
        """Write the weights beside the model in whatever forms other programs of the field read."""

    def defaults(self, rule: str, step: str, perturb: str | None) -> tuple[float | str, float]:
        """(h, mu) that do well for some 1M iterations when nothing else is known."""

    def to_arrays(self) -> tuple[Json, Arrays]:
        """(settings as JSON, arrays): all that ``from_arrays`` needs."""


_LACKING = {  # parameters of Task.problem that a task need not have, and what it lacks then
    "risk": "has no expected loss: leave out `criterion` annealed",
    "asks": "asks no questions: choose a rule that learns from losses, such as two-point",
}


def problem_of(task: Task, data: Read, *, learn: bool = True, risk: bool = False, asks: bool = False) -> Problem:
    """``task.problem`` of these; UsageError where the task does not know what is called for."""
    more = {name: True for name, called_for in (("risk", risk), ("asks", asks)) if called_for}
    known = inspect.signature(task.problem).parameters
    refuse_lacking(task.name, **{name: True for name in more if name not in known})
    return task.problem(data, learn=learn, **more)


def refuse_lacking(task: str, **called_for: bool) -> None:
    """UsageError where ``risk`` or ``asks`` is called for, which this task has not."""
    for name, wanted in called_for.items():
        if wanted:
            raise UsageError(f"task {task} {_LACKING[name]}")
