"""Workers as Ray's actors, on this machine or on a cluster's nodes: a message is a call, its answer the result.

    with Crew(learner, gold, 3, RayAgency("auto", 3)) as crew: ...      # this process is one of the three

The data is put into Ray's object store once, where all actors of a node read it (storage/packed.py). An actor that
dies, or whose node does, is gone like a process that was killed (crew.py).
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any

from sparsezo import __version__, notes
from sparsezo.engines.ray_connection import Connection, connect, other_version
from sparsezo.errors import SparsezoError, UsageError
from sparsezo.storage.packed import Shelf, shelved, unshelved
from sparsezo.workers import messages
from sparsezo.workers.channel import Channel, Gone, nothing
from sparsezo.workers.replica import Answering

_PAUSE = 0.2  # seconds between looks at whether the user wants to stop
_PATIENCE = 30.0  # seconds without a word from a new worker after which that is said


class RayReplica:
    """An actor. Nothing here needs Ray to be installed."""

    def __init__(self) -> None:
        self._worker: Answering | None = None

    def start(self, version: str, data: tuple[bytes, Shelf]) -> bytes | str:
        """A first word, or why there is none."""
        if (why := other_version(version)) is not None:
            return why
        self._worker = Answering(unshelved(*data))
        return messages.plain(messages.JOIN)

    def take(self, message: bytes) -> bytes | None:
        assert self._worker is not None, "start() comes first"
        answer = self._worker.answer(message)
        return None if answer is None else bytes(answer)


class RayChannel:
    """A new actor. All that it answers is asked for in order, and what it has nothing to say to is passed over."""

    def __init__(self, ray: Any, data: Any) -> None:
        self._ray = ray
        self.actor = ray.remote(RayReplica).options(num_cpus=1, max_restarts=0, max_task_retries=0).remote()
        self.name = f"Ray actor {self.actor._actor_id.hex()[:12]}"
        self._asked: deque[Any] = deque([self.actor.start.remote(__version__, data)])
        self._heard: bytes | None = None  # the next message, where it is here
        self._silent_since: float | None = time.monotonic()  # None: it has said something

    def send(self, message: bytes | bytearray) -> None:
        try:
            self._asked.append(self.actor.take.remote(bytes(message)))
        except (self._ray.exceptions.RayError, ConnectionError):
            raise Gone from None

    def receive(self, pause: Callable[[], None] = nothing) -> bytes:
        while not self._listen(_PAUSE):
            pause()
            if self._silent_since is not None and time.monotonic() - self._silent_since > _PATIENCE:
                notes.say("a new worker does not answer; Ray's cluster may have no CPU free: see 'ray status'")
                self._silent_since = None
        message, self._heard = self._heard, None
        assert message is not None
        return message

    def waiting(self) -> bool:
        try:
            return self._listen(0)
        except Gone:
            return True

    def _listen(self, seconds: float) -> bool:
        """Whether there is a message, within so many seconds."""
        while self._heard is None:
            if not self._asked:
                return False
            try:
                ready, _ = self._ray.wait([self._asked[0]], timeout=seconds)
                if not ready:
                    return False
                said = self._ray.get(self._asked[0])
            except (self._ray.exceptions.RayError, ConnectionError):
                raise Gone from None
            if isinstance(said, str):
                raise SparsezoError(said)
            self._asked.popleft()
            self._heard, self._silent_since = said, None
        return True

    def end(self) -> None:
        try:
            self._ray.kill(self.actor)
        except (self._ray.exceptions.RayError, ConnectionError):
            return


class RayAgency:
    """``address``: of a cluster; None for a Ray of one's own, which has a CPU for each worker but this process."""

    def __init__(self, address: str | None, workers: int) -> None:
        self._address, self._workers = address, workers
        self._connection: Connection | None = None
        self._data: Any = None  # its place in the object store

    def share(self, data: tuple[Any, Any]) -> tuple[Any, Any]:
        self._connection = connect(self._address, max(self._workers - 1, 1))
        try:
            if self._workers - 1 > (cpus := self._connection.cpus):
                raise UsageError(
                    f"`workers` {self._workers}: Ray has a CPU for {cpus} of them, and the program itself is one more; "
                    f"give at most {cpus + 1}"
                )
            self._data = self._connection.ray.put(shelved(data))
        except BaseException:
            self.close()
            raise
        return data

    def hire(self) -> Channel:
        assert self._connection is not None, "share() comes first"
        return RayChannel(self._connection.ray, self._data)

    def close(self) -> None:
        connection, self._connection = self._connection, None
        self._data = None
        if connection is not None:
            connection.close()
