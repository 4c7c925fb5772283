"""From the files on the command line to a task and its data, and from outputs to files again.

Each task has a front, a module beside this one with three functions:

    load(files) -> Loaded                          train, dev and test as --train, --dev and --test name them
    read(task, path, options) -> data              a file with correct outputs, for evaluate
    predict(model, path, options) -> lines         what predict writes
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from sparsezo.errors import UsageError
from sparsezo.tasks import TASKS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sparsezo.tasks.base import Task
    from sparsezo.training import Data


@dataclass(frozen=True)
class Files:
    """Where the data is, and how to read it. ``options`` has only what was given, by the option's name."""

    train: tuple[str, ...] = ()
    dev: str | None = None
    test: str | None = None
    options: dict[str, Any] = field(default_factory=dict)

    def held_out(self) -> int | None:
        """--dev N: the number of inputs at the start of train that are the dev set."""
        if self.dev is None or not self.dev.isdigit() or Path(self.dev).exists():
            return None
        if int(self.dev) == 0:
            raise UsageError("--dev 0: hold out at least one input, or leave --dev out")
        return int(self.dev)

    def one_train(self, task: str) -> str:
        if len(self.train) != 1:
            raise UsageError(f"{task} takes one --train file, not {len(self.train)}")
        return self.train[0]


@dataclass(frozen=True, eq=False)
class Loaded:
    task: Task
    data: Data
    W: NDArray[Any] | None = None  # to start from; 0 where it is None


def front(task: str) -> ModuleType:
    if task not in TASKS:
        raise UsageError(f"task {task}: choose from {', '.join(TASKS)}")
    return importlib.import_module(f"sparsezo.tasks.{task}.files")


def check_options(task: str, given: dict[str, Any], known: tuple[str, ...]) -> None:
    """An option of another task is a mistake, not something to pass over."""
    for name in given:
        if name not in known:
            raise UsageError(f"--{name.replace('_', '-')} does not belong to task {task}")


def cut(n: int, size: int, what: str, path: str) -> None:
    if n >= size:
        raise UsageError(f"--dev {n}: {path} has only {size:,} {what}; hold out fewer, or name a file")
