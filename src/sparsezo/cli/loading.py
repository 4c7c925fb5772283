"""From the files on the command line to a task and its data."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparsezo.errors import UsageError

if TYPE_CHECKING:
    from sparsezo.experiments.training import Data
    from sparsezo.tasks.base import Task


@dataclass(frozen=True)
class Files:
    """Where the data is, and how to read it. Options of other tasks than the one at hand stay at their defaults."""

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


def load(task: str, files: Files) -> tuple[Task, Data]:
    """Read, and fit the features on what is left of train without dev."""
    return _LOADERS[task](files)


def _cut(data: Any, n: int, what: str, path: str) -> tuple[Any, Any]:
    if n >= len(data):
        raise UsageError(f"--dev {n}: {path} has only {len(data)} {what}; hold out fewer, or name a file")
    return data[:n], data[n:]


def _chunking(files: Files) -> tuple[Task, Data]:
    from sparsezo.data.conll import read_conll
    from sparsezo.data.templates import read_templates
    from sparsezo.experiments.training import Data
    from sparsezo.tasks.chunking import Chunking

    if len(files.train) != 1:
        raise UsageError("chunking takes one --train file")
    train, dev = read_conll(files.train[0]), None
    if (n := files.held_out()) is not None:
        dev, train = _cut(train, n, "sentences", files.train[0])
    elif files.dev is not None:
        dev = read_conll(files.dev)
    test = read_conll(files.test) if files.test else None
    options = dict(files.options)
    template = options.pop("template", None)
    task, train = Chunking.fit(train, templates=read_templates(template) if template else None, **options)
    return task, Data(train, task.seen(dev) if dev else None, task.seen(test) if test else None)


_LOADERS = {"chunking": _chunking}
