"""Workers as processes of this machine, each with a pipe of its own: one that is killed cannot block the others.

All read the same memory of the data (storage/packed.py).
"""

from __future__ import annotations

import select
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from sparsezo.interrupts import processes_without_ctrl_c
from sparsezo.storage.packed import Copied, Mapped, shared
from sparsezo.workers.channel import Channel, Gone, nothing

_PAUSE = 0.2  # seconds between looks at whether the user wants to stop


class PipeEnd:
    """One end of a pipe. Used by both sides."""

    def __init__(self, connection: Connection, name: str) -> None:
        self._connection, self.name = connection, name
        self._arrives: Callable[[float], object] = connection.poll  # within so many seconds
        if hasattr(select, "poll"):  # the connection's own makes a new one for each message
            poll = select.poll()
            poll.register(connection.fileno(), select.POLLIN)
            self._arrives = lambda seconds: poll.poll(1000 * seconds)

    def send(self, message: bytes | bytearray) -> None:
        try:
            self._connection.send_bytes(message)
        except OSError:
            raise Gone from None

    def receive(self, pause: Callable[[], None] = nothing) -> bytes:
        try:
            while pause is not nothing and not self._arrives(_PAUSE):
                pause()
            return self._connection.recv_bytes()
        except (EOFError, OSError):
            raise Gone from None

    def waiting(self) -> bool:
        try:
            return bool(self._arrives(0))
        except OSError:
            return True

    def end(self) -> None:
        self._connection.close()


class LocalChannel(PipeEnd):
    """A new process, and the pipe to it."""

    def __init__(self, data: Mapped | Copied) -> None:
        context = get_context("spawn")
        connection, theirs = context.Pipe()
        self.process: BaseProcess = context.Process(target=_serve, args=(theirs, data), daemon=True)
        with processes_without_ctrl_c():  # it is for this process alone, which then lets go of the others
            self.process.start()
        theirs.close()
        super().__init__(connection, f"process {self.process.pid}")

    def end(self) -> None:
        super().end()
        self.process.kill()  # it has nothing to save
        self.process.join()
        self.process.close()


class LocalAgency:
    def __init__(self) -> None:
        self._data: Mapped | Copied | None = None

    def share(self, data: tuple[Any, Any]) -> tuple[Any, Any]:
        self._data = shared(data)
        content: tuple[Any, Any] = self._data.content()
        return content

    def hire(self) -> Channel:
        assert self._data is not None, "share() comes first"
        return LocalChannel(self._data)

    def close(self) -> None:
        if self._data is not None:
            self._data.close()


def _serve(connection: Connection, data: Mapped | Copied) -> None:
    from sparsezo.workers.replica import serve

    content = data.content()
    data.close()
    serve(PipeEnd(connection, "the leader"), content)
