"""Data that is never in memory as a whole: windows of inputs, read one after the other, again for every pass.

The first reading finds the labels, counts the inputs, and meets whatever is wrong with the file before hours are spent
on learning from it. Features must be hashed: a vocabulary would grow with the file.
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sparsezo.errors import DataError, UsageError
from sparsezo.options import check_options, option
from sparsezo.storage.files import STANDARD_INPUT

if TYPE_CHECKING:
    from sparsezo.tasks.base import Read, Task

WINDOW = 10_000


@dataclass(frozen=True)
class StreamOptions:
    """Of train, for tasks whose data can be streamed."""

    stream: bool = option(
        False, "Train from a file larger than memory, a window of inputs at a time; with --hash-bits."
    )
    window: int | None = option(None, "Inputs in memory at a time, shuffled.", least=1, shown=f"{WINDOW:,}")

    def __post_init__(self) -> None:
        check_options(self)
        if self.window is not None and not self.stream:
            raise UsageError(f"`window` {self.window}: belongs to `stream`; add it, or leave `window` out")

    @property
    def inputs(self) -> int:
        return self.window or WINDOW


@dataclass(frozen=True, eq=False)
class Stream:
    task: Task
    read: Callable[[], Iterator[Read]]  # the data of one pass, window after window
    sizes: Sequence[int]  # inputs of each window
    known_by: str  # a hash of all that is read
    name: str  # of the file, for messages

    def __len__(self) -> int:
        return sum(self.sizes)


@dataclass(frozen=True, eq=False)
class Streamed:
    """What a task makes of files that are streamed."""

    stream: Stream
    dev: Read = None
    test: Read = None


def check_streamed(paths: Sequence[str], hash_bits: int | None) -> None:
    """What a stream asks of files and options, before any is read."""
    if hash_bits is None:
        raise UsageError("`stream` needs `hash_bits`: a vocabulary would have to be counted first, and held in memory")
    for path in paths:
        if path == STANDARD_INPUT:
            raise UsageError("`train` -: standard input can be read only once, and a `stream` is read in every pass")
        try:
            mode = Path(path).stat().st_mode
        except OSError:
            continue  # said by whoever opens it
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise UsageError(f"`train` {path}: is no regular file, and a `stream` is read in every pass")


def nothing_left(held_out: int, path: str) -> DataError:
    return DataError(path, f"has no more than the {held_out:,} inputs that are held out; hold out fewer")
