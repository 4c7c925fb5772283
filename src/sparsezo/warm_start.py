"""The weights of a model for another data set of the same task, joined by name: to start from.

    start = joined(load_model("old.szo", "chunking"), task)
    Training(task, data, settings, iterations, W=start.W)

What the model does not know starts at 0; what the new data does not have is left behind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import UsageError, quoted
from sparsezo.model import Model
from sparsezo.tasks.base import Task


@dataclass(frozen=True, eq=False)
class Start:
    W: NDArray[Any]  # features x labels of the new task
    features: int  # that the model knows
    labels: int


def joined(model: Model, task: Task) -> Start:
    """A task's ``feature_names`` and ``label_names`` say what the rows and columns of its weights are.

    Where names do not say all, a task's ``check_start`` refuses the model.
    """
    if (check := getattr(task, "check_start", None)) is not None:
        check(model.task)
    if (bits := getattr(task, "hash_bits", None)) is not None or getattr(model.task, "hash_bits", None) is not None:
        return _hashed(model, task, bits)
    rows = _found("features", *(_names(each, "feature_names") for each in (model.task, task)))
    columns = _found("labels", *(_names(each, "label_names") for each in (model.task, task)))
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
    pairs = [(place[name], number) for number, name in enumerate(new) if name in place]
    if not pairs:
        raise UsageError(
            f"the model to start from has none of the {what} of the data: it has {_some(old)}, they are {_some(new)}; "
            "was it made with other options, or from other data?"
        )
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def _some(names: Sequence[str]) -> str:
    return ", ".join(f"'{quoted(name)}'" for name in names[:3]) + (", ..." if len(names) > 3 else "")
