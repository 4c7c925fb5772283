"""How messages travel between the one who leads and a worker: all that a transport has to bring.

``LocalChannel`` (local.py) is a process of this machine and a pipe to it. The leader asks its ``Hire`` for a channel,
and whoever stands at the other end calls ``replica.serve`` with his own end of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Gone(Exception):  # noqa: N818 - no error: it is expected, and mended
    """The other end is there no more."""


def nothing() -> None:
    pass


class Channel(Protocol):
    """Messages arrive whole and in their order, or the channel is ``Gone``."""

    @property
    def name(self) -> str:
        """Of the other end, for people."""

    def send(self, message: bytes | bytearray) -> None: ...

    def receive(self, pause: Callable[[], None] = nothing) -> bytes:
        """The next message. ``pause`` is called now and then while there is none, and may raise."""

    def waiting(self) -> bool:
        """Whether ``receive`` would return, or raise ``Gone``, at once."""

    def end(self) -> None:
        """Let go of the other end, which leaves when it notices; wait until it has left."""


Hire = Callable[[], Channel]  # a new worker, which may still be on its way
