"""The list of tasks: the built-in ones, those of installed packages, and those that a program registers.

    task_spec("chunking").load(files)
    register(SPEC)                      # one's own, from anywhere

A package adds a task with an entry point that names its ``TaskSpec``, in its pyproject.toml:

    [project.entry-points."sparsezo.tasks"]
    coins = "coins.spec:SPEC"           # the task's name = the module, and the object in it
"""

from __future__ import annotations

import importlib

from sparsezo import messages
from sparsezo.entry_points import EntryPoints
from sparsezo.errors import SparsezoError, UsageError
from sparsezo.tasks.spec import TaskSpec

_BUILT_IN = ("chunking", "text", "rerank")  # tasks/NAME/spec.py has SPEC
_installed = EntryPoints("sparsezo.tasks", "task", TaskSpec, _BUILT_IN)
_registered: dict[str, TaskSpec] = {}


def names() -> list[str]:
    """The names of all tasks, built-in ones first."""
    return list(dict.fromkeys([*_BUILT_IN, *_installed.names(), *_registered]))


def task_spec(name: str) -> TaskSpec:
    """A task by its name; imported when first asked for."""
    if name not in _registered:
        if name in _BUILT_IN:
            _registered[name] = importlib.import_module(f"sparsezo.tasks.{name}.spec").SPEC
        elif name in _installed:
            _registered[name] = _installed.load(name)
        else:
            raise UsageError(f"task {name}: choose from {', '.join(names())}")
    return _registered[name]


def task_specs() -> list[TaskSpec]:
    """All tasks. One of a package that cannot be had is named in a remark, once, and left out."""
    found = []
    for name in names():
        try:
            found.append(task_spec(name))
        except SparsezoError as error:
            messages.say(str(error))
    return found


def register(new: TaskSpec) -> TaskSpec:
    """Make a task known to the commands, to models and to reports."""
    _registered[new.name] = new
    return new
