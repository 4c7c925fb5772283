"""What the library says to a person while it works, which is no error: remarks, and how far long work is.

    say("train.txt: 2 tags were mended; the first is at train.txt:7")
    with counting("importing train.nbest", "lists") as count:
        count(20, 300)                              # done, all

Remarks go to the log of the package as warnings, unless ``say_with`` has been given another way. How far work is, is
shown where ``show_with`` has been given something that shows.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from sparsezo.errors import one_line

Sayer = Callable[[str], None]
Count = Callable[[int, int], None]  # done, all
Shower = Callable[[str, str], AbstractContextManager[Count]]  # title, unit

_sayer: Sayer = logging.getLogger("sparsezo").warning


def say_with(sayer: Sayer) -> Sayer:
    """Where remarks go from now on; returns where they went before."""
    global _sayer
    before, _sayer = _sayer, sayer
    return before


def say(text: str) -> None:
    """Make a remark, in one line."""
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
    """All that is said within, and goes nowhere else.

    >>> with gathered() as remarks:
    ...     say("2 tags were mended")
    >>> remarks
    ['2 tags were mended']
    """
    remarks: list[str] = []
    before = say_with(remarks.append)
    try:
        yield remarks
    finally:
        say_with(before)


@contextlib.contextmanager
def _silently(title: str, unit: str) -> Iterator[Count]:
    yield lambda done, total: None


_shower: Shower = _silently


def show_with(shower: Shower) -> None:
    """What shows, from now on, how far long work is."""
    global _shower
    _shower = shower


def counting(title: str, unit: str) -> AbstractContextManager[Count]:
    """Gives ``count(done, all)``, to be called now and then by long work."""
    return _shower(title, unit)


def counted(count: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "run"), counted(2000, "run")
    ('1 run', '2,000 runs')
    """
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
