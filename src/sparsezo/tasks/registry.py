"""The list of tasks: the built-in ones, those of installed packages, and those that a program registers.

    task_spec("chunking").load(files)
    register(SPEC)                      # one's own, from anywhere

A package adds a task with an entry point that names its ``TaskSpec``, in its pyproject.toml:

    [project.entry-points."sparsezo.tasks"]
    coins = "coins.spec:SPEC"           # the task's name = the module, and the object in it
"""

from __future__ import annotations

import functools
import importlib
from typing import TYPE_CHECKING

from sparsezo import messages
from sparsezo.errors import SparsezoError, UsageError
from sparsezo.tasks.spec import TaskSpec

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "sparsezo.tasks"  # of entry points
_BUILT_IN = ("chunking", "text", "rerank")  # tasks/NAME/spec.py has SPEC
_registered: dict[str, TaskSpec] = {}
_broken: dict[str, str] = {}  # tasks of packages that cannot be had, with the reason


@functools.cache
def _installed() -> dict[str, EntryPoint]:
    """The entry points of installed packages, by the task's name. Built-in tasks are not replaced."""
    from importlib.metadata import entry_points  # takes 20 ms

    return {each.name: each for each in entry_points(group=GROUP) if each.name not in _BUILT_IN}


def names() -> list[str]:
    """The names of all tasks, built-in ones first."""
    return [name for name in dict.fromkeys([*_BUILT_IN, *_installed(), *_registered]) if name not in _broken]


def task_spec(name: str) -> TaskSpec:
    """A task by its name; imported when first asked for."""
    if name not in _registered:
        if name in _BUILT_IN:
            _registered[name] = importlib.import_module(f"sparsezo.tasks.{name}.spec").SPEC
        elif name in _installed():
            _registered[name] = _loaded(_installed()[name])
        else:
            raise UsageError(f"task {name}: choose from {', '.join(names())}")
    return _registered[name]


def _loaded(entry: EntryPoint) -> TaskSpec:
    """The task of a package; whatever goes wrong in somebody else's code is told in one line."""
    if entry.name not in _broken:
        try:
            found = entry.load()
            if isinstance(found, TaskSpec) and found.name == entry.name:
                return found
            said = f"task '{found.name}'" if isinstance(found, TaskSpec) else f"{type(found).__name__}"
            _broken[entry.name] = f"is a {said}, not the TaskSpec of that name"
        except Exception as error:
            _broken[entry.name] = f"{type(error).__name__}: {error}"
    package = entry.dist.name if entry.dist is not None else "a package"
    raise SparsezoError(f"task {entry.name} of {package} cannot be used: {entry.value} {_broken[entry.name]}")


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
