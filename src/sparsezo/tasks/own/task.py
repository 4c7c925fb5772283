"""The task that ``own_task`` makes: names of features to columns of C, inputs to arrays, losses to a metric."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numba import float32, float64, int32
from numpy.typing import NDArray

from sparsezo import validation
from sparsezo.errors import UsageError
from sparsezo.kernels.inputs.sparse import sparse_inputs
from sparsezo.kernels.own import OwnFunction
from sparsezo.learner import mean_loss
from sparsezo.storage.texts import joined, parted
from sparsezo.tasks.base import AnyArray, Arrays, Json, Problem, Scores, refuse_lacking
from sparsezo.tasks.own.kernels.task import OwnGold, OwnScores
from sparsezo.tasks.own.spec import Input, OwnFiles


@dataclass(frozen=True, eq=False)
class OwnTask:
    """The features of the training inputs, by name, and the functions of the task."""

    own: OwnFiles
    features: tuple[str, ...]

    @classmethod
    def fit(cls, own: OwnFiles, train: Sequence[Input]) -> OwnTask:
        """The task of training inputs: a column for each of their features, in the order in which they come."""
        names = dict.fromkeys(name for each in train for row in each.rows for name in row)
        if not names:
            raise UsageError(f"task {own.name}: no input has a feature; `read` must give rows with some")
        if strange := next((name for name in names if not isinstance(name, str)), None):
            raise UsageError(f"task {own.name}: feature {strange!r} is no text")
        return cls(own, tuple(names))

    @property
    def name(self) -> str:
        return self.own.name

    @property
    def metric(self) -> str:
        return self.own.metric

    @property
    def n_features(self) -> int:
        return len(self.features)

    @property
    def n_labels(self) -> int:
        return len(self.own.labels)

    @cached_property
    def _columns(self) -> dict[str, int]:
        return {name: column for column, name in enumerate(self.features)}

    @cached_property
    def _decode(self) -> OwnFunction:
        own = OwnFunction(self.own.decode, f"task {self.name}: decode")
        return own.compiled(float32[:, ::1], int32[::1], number=False)

    @cached_property
    def _loss(self) -> OwnFunction:
        return OwnFunction(self.own.loss, f"task {self.name}: loss").compiled(float64[::1], int32[::1])

    def problem(self, data: Sequence[Input], *, learn: bool = True, risk: bool = False, asks: bool = False) -> Problem:
        """Features that train does not have count as 0."""
        refuse_lacking(self.name, risk=risk, asks=asks)
        rows = [row for each in data for row in each.rows]
        known = [[(self._columns[name], value) for name, value in row.items() if name in self._columns] for row in rows]
        columns = np.array([column for row in known for column, _ in row], np.int32)
        values = np.array([value for row in known for _, value in row], np.float32)
        if not validation.all_finite(values):
            raise UsageError(f"task {self.name}: a feature's value is not finite")
        row_start, row_ptr = _starts(len(each.rows) for each in data), _starts(map(len, known))
        inputs = sparse_inputs(row_start, row_ptr, columns, values, self.n_features, self.n_labels, learn)
        per_input = self.own.outputs
        output_start = row_start if per_input is None else np.arange(len(data) + 1, dtype=np.int64) * per_input
        n = np.diff(inputs.col_start)
        return Problem(
            inputs=inputs,
            task=OwnScores(row_start, output_start, self._decode),
            n_features=self.n_features,
            n_labels=self.n_labels,
            output_start=output_start,
            n_active=n * self.n_labels,
            max_rows=int(np.diff(row_start).max(initial=0)),
            max_columns=int(n.max(initial=0)),
            learn=learn,
            risk=False,
        )

    def gold(self, data: Sequence[Input]) -> OwnGold:
        missing = next((x for x, each in enumerate(data) if each.gold is None), None)
        if missing is not None:
            raise UsageError(f"task {self.name}: input {missing} has no gold, and losses are computed from it")
        start = _starts(len(each.gold or ()) for each in data)
        numbers = np.array([number for each in data for number in each.gold or ()], np.float64)
        return OwnGold(start, numbers, self._loss)

    def quality(self, problem: Problem, gold: OwnGold, outputs: NDArray[np.int32]) -> float:
        return 1 - mean_loss(problem, gold, outputs)

    def scores(self, data: Sequence[Input], outputs: NDArray[np.int32]) -> Scores:
        value = self.quality(self.problem(data, learn=False), self.gold(data), outputs)
        return Scores(self.metric, value, {self.metric: value, "inputs": len(data)})

    def export(self, path: Path, W: AnyArray) -> list[Path]:
        return []

    def defaults(self, rule: str, step: str, perturb: str | None) -> tuple[float | str, float]:
        from sparsezo.tasks.registry import task_spec

        return task_spec(self.name).defaults(rule, step, perturb)

    def feature_names(self) -> tuple[str, ...]:
        return self.features

    def label_names(self) -> tuple[str, ...]:
        return self.own.labels

    def to_arrays(self) -> tuple[Json, Arrays]:
        text, start = joined(self.features)
        return {"labels": list(self.own.labels)}, {"features": text, "starts": start}

    @classmethod
    def from_arrays(cls, own: OwnFiles, settings: Json, arrays: Arrays) -> OwnTask:
        """ValueError where these are not what ``to_arrays`` gave; UsageError where the task has other labels by now."""
        features = parted(arrays["features"], arrays["starts"])
        if len(set(features)) < len(features) or not features:
            raise ValueError("features without names of their own")
        if settings["labels"] != list(own.labels):
            raise UsageError(f"task {own.name} has other labels than the model, {', '.join(settings['labels'])}")
        return cls(own, tuple(features))


def _starts(lengths: Iterable[int]) -> NDArray[np.int64]:
    """0, and where each of so many ends."""
    return np.cumsum([0, *lengths], dtype=np.int64)
