"""How messages travel between the one who leads and a worker: all that a transport has to bring.

An ``Agency`` is given the data once, and hires workers: ``LocalAgency`` (local.py) processes of this machine, each with
a pipe to it; ``RayAgency`` (ray.py) Ray's actors. The leader gets a channel to each, and who stands at the other end
calls ``replica.serve`` with his own end of it and the data.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol


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


class Agency(Protocol):
    """Whoever knows how to get workers."""

    def share(self, data: tuple[Any, Any]) -> tuple[Any, Any]:
        """(problem, gold) for all who will be hired, kept in one place; the same for the leader himself to read."""

    def hire(self) -> Channel:
        """A new worker, which may still be on its way."""

    def close(self) -> None:
        """Nobody else will be hired."""
