"""The list of tasks: the only one.

kind("chunking").load(files)
register(KIND)                  # one's own, from anywhere
"""

from __future__ import annotations

import importlib

from sparsezo.errors import UsageError
from sparsezo.tasks.kind import TaskKind

_BUILT_IN = ("chunking", "text", "rerank")  # tasks/NAME/kind.py has KIND
_registered: dict[str, TaskKind] = {}


def names() -> list[str]:
    return [*dict.fromkeys([*_BUILT_IN, *_registered])]


def kind(name: str) -> TaskKind:
    """By its name; imported when first asked for."""
    if name not in _registered:
        if name not in _BUILT_IN:
            raise UsageError(f"task {name}: choose from {', '.join(names())}")
        _registered[name] = importlib.import_module(f"sparsezo.tasks.{name}.kind").KIND
    return _registered[name]


def kinds() -> list[TaskKind]:
    return [kind(name) for name in names()]


def register(new: TaskKind) -> TaskKind:
    """Make a task known to the commands, to models and to reports."""
    _registered[new.name] = new
    return new


def experiments() -> dict[str, TaskKind]:
    """Built-in experiments by name, the paper's first."""
    found = {each.paper: each for each in kinds() if each.paper is not None}
    return found | {name: each for each in kinds() for name in each.experiments if name not in found}
