"""A trained model in a file: weights, features, settings and how it came to be.

Model(task, W, settings, result).save("model.szo")
model = load_model("model.szo", "chunking")         # refuses a damaged file, or a model of another task
tags = model.task.words(model.predict(corpus))
spans = model.tag("In Madrid.")                     # of a tagger that was trained on raw text
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sparsezo import bounds
from sparsezo.errors import DataError, DivergedError, UsageError
from sparsezo.learner import predict
from sparsezo.storage.container import Contents, damage, read_container, unpack, write_container
from sparsezo.storage.files import STANDARD_INPUT, open_bytes, reading
from sparsezo.tasks.base import Task
from sparsezo.tasks.registry import kind, names

if TYPE_CHECKING:
    from sparsezo.tasks.chunking.documents import Span

_TASK = "task."  # what the task's own arrays are called in the file


@dataclass(frozen=True, eq=False)
class Model:
    task: Task
    W: NDArray[Any]  # features x labels
    settings: dict[str, Any]  # of the learner
    result: dict[str, Any]  # what train reported
    curve: dict[str, NDArray[Any]] = field(default_factory=dict)  # iterations, average_loss, dev

    def save(self, path: str | os.PathLike[str]) -> None:
        if not bounds.all_finite(self.W):
            raise DivergedError(f"{path}: the weights are not finite, so nothing was written; train with a smaller `h`")
        task_settings, task_arrays = self.task.to_arrays()
        meta = {
            "task": self.task.name,
            "task_settings": task_settings,
            "settings": self.settings,
            "result": self.result,
        }
        arrays = {"W": self.W, **{f"curve.{name}": values for name, values in self.curve.items()}}
        arrays |= {_TASK + name: values for name, values in task_arrays.items()}
        write_container(path, "model", meta, arrays)

    def predict(self, data: Any) -> NDArray[np.int32]:
        """The best output of every input of data."""
        return predict(self.task.problem(data, learn=False), self.W)

    def tag(self, texts: str | Iterable[str], threshold: float = 0.0) -> Any:
        """The spans of a text, a tuple; or of each text of many, an iterator of tuples that reads as it goes.

        A span has start and end (characters of its text, end exclusive), label and probability; those less likely than
        ``threshold`` are left out.

            for text, spans in zip(texts, model.tag(texts)):
                for span in spans:
                    print(text[span.start:span.end], span.label, span.probability)
        """
        tagged = getattr(self.task, "tag", None)
        if tagged is None:
            raise UsageError(f"task {self.task.name} has no spans to tag texts with; use predict(data)")
        if isinstance(texts, str):
            found: tuple[Span, ...] = next(tagged(self.W, [texts], threshold))
            return found
        each: Iterator[tuple[Span, ...]] = tagged(self.W, texts, threshold)
        return each


def load_model(path: str | os.PathLike[str], task: str | None = None) -> Model:
    meta, arrays = _contents(path)
    name = meta.get("task")
    if task is not None and name != task:
        raise DataError(str(path), f"is a model of task {name}, not of {task}")
    if name not in names():
        raise UsageError(f"{path}: is a model of task {name}; this sparsezo knows {', '.join(names())}")
    with damage(path):
        for part in ("task_settings", "settings", "result"):
            if not isinstance(meta[part], dict):
                raise ValueError(f"{part} is no table")
        own = {key.removeprefix(_TASK): values for key, values in arrays.items() if key.startswith(_TASK)}
        loaded = kind(str(name)).from_arrays(meta["task_settings"], own)
        W = arrays["W"]
        if W.dtype.kind != "f":
            raise ValueError(f"weights of type {W.dtype}")
        if W.shape != (loaded.n_features, loaded.n_labels):
            raise ValueError(f"weights of shape {W.shape} for {loaded.n_features} features, {loaded.n_labels} labels")
        if not bounds.all_finite(W):
            raise ValueError("weights that are not finite")
        curve = {key.removeprefix("curve."): values for key, values in arrays.items() if key.startswith("curve.")}
        for key, values in curve.items():
            bounds.array(f"curve.{key}", values, "iuf", (None,))
        return Model(loaded, W, meta["settings"], meta["result"], curve)


def _contents(path: str | os.PathLike[str]) -> Contents:
    if os.fspath(path) != STANDARD_INPUT:
        return read_container(path, "model")
    with open_bytes(path) as stream, reading(path):
        return unpack(stream.read(), "model", STANDARD_INPUT)
