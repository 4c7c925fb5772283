"""Long work that is no learning, such as importing lists, tells here how far it is; whoever wants to shows it.

    with counting("importing train.nbest", "lists") as count:
        count(20, 300)                              # done, all

Nothing is shown unless ``show_with`` has been given something that shows: the command line does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

Count = Callable[[int, int], None]  # done, all
Shower = Callable[[str, str], AbstractContextManager[Count]]  # title, unit


@contextmanager
def _silently(title: str, unit: str) -> Iterator[Count]:
    yield lambda done, total: None


_shower: Shower = _silently


def show_with(shower: Shower) -> None:
    global _shower
    _shower = shower


def counting(title: str, unit: str) -> AbstractContextManager[Count]:
    return _shower(title, unit)
