"""From files to a task and its data: what the files modules of all tasks share."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeGuard

from sparsezo.errors import UsageError

if TYPE_CHECKING:
    from sparsezo.tasks.base import AnyArray, Read, Task


def is_number(text: str) -> bool:
    """A whole number in the digits 0 to 9."""
    return text.isascii() and text.isdigit()


def is_count(dev: str | None) -> TypeGuard[str]:
    """Whether ``dev`` is a number of inputs to hold out, and no file."""
    return dev is not None and is_number(dev) and len(dev) < 20 and not os.path.exists(dev)


@dataclass(frozen=True)
class Files:
    """Where the data is, and how to read it. ``options`` has only what was given, by the option's name."""

    train: tuple[str, ...] = ()
    dev: str | None = None
    test: str | None = None
    options: Mapping[str, object] = field(default_factory=dict)

    def held_out(self) -> int | None:
        """``dev`` N: the number of inputs at the start of train that are the dev set."""
        if not is_count(self.dev):
            return None
        n = int(self.dev)
        if n == 0:
            raise UsageError("`dev` 0: hold out at least one input, or leave `dev` out")
        return n

    def one_train(self, task: str) -> str:
        if len(self.train) != 1:
            raise UsageError(f"{task} takes one `train` file, not {len(self.train)}")
        return self.train[0]


@dataclass(frozen=True, eq=False)
class Data:
    """What a task's reader gave for each part; dev and test may be missing."""

    train: Read
    dev: Read = None
    test: Read = None


@dataclass(frozen=True, eq=False)
class Loaded:
    task: Task
    data: Data
    W: AnyArray | None = None  # to start from; 0 where it is None


def refuse_held_out(files: Files, path: str) -> None:
    """Where train has no labels, none of it can be a dev set."""
    if files.held_out() is not None:
        raise UsageError(
            f"`dev` {files.dev}: {path} has no labels to look at; name a file that has, or leave `dev` out"
        )


def cut(n: int, size: int, what: str, path: str) -> None:
    if n >= size:
        raise UsageError(f"`dev` {n}: {path} has only {size:,} {what}; hold out fewer, or name a file")
