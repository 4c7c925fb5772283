"""Remarks of the library that are no errors: what it did that a person would want to know, in one line.

    say("train.txt: 2 tags were mended; the first is at train.txt:7")

They go to the log of the package as warnings, unless ``say_with`` has been given another way: the command line shows
them, and a process of a sweep hands those of its loading to whoever started it.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator

from sparsezo.errors import one_line

Sayer = Callable[[str], None]

_sayer: Sayer = logging.getLogger("sparsezo").warning


def say_with(sayer: Sayer) -> Sayer:
    """Where remarks go from now on; returns where they went before."""
    global _sayer
    before, _sayer = _sayer, sayer
    return before


def say(text: str) -> None:
    _sayer(one_line(text))


class Once:
    """A way to say things, each of them one time."""

    def __init__(self, sayer: Sayer) -> None:
        self.sayer = sayer
        self.said: set[str] = set()

    def __call__(self, text: str) -> None:
        if text not in self.said:
            self.said.add(text)
            self.sayer(text)


@contextlib.contextmanager
def gathered() -> Iterator[list[str]]:
    """All that is said within."""
    remarks: list[str] = []
    before = say_with(remarks.append)
    try:
        yield remarks
    finally:
        say_with(before)
