"""Group commit: what has gathered goes to disk in one transaction, then to the model, and only then is it acknowledged.

    writer = Writer(log, apply)
    writer.put([row]).result()          # on disk, and applied

Rows are put under the session's lock, so the log has them in the order in which the session took them. A log that
cannot be written, or a model that cannot be gone on with, ends it: everything waiting and to come gets the reason.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from sparsezo.errors import SparsezoError
from sparsezo.serve.log import Log, Row


class Writer:
    def __init__(self, log: Log, apply: Callable[[Sequence[Row]], None]) -> None:
        self._log, self._apply = log, apply
        self._waiting: list[tuple[Sequence[Row], Future[None]]] = []
        self._wake = threading.Condition()
        self._stopping = False
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="sparsezo log", daemon=True)
        self._thread.start()

    def put(self, rows: Sequence[Row]) -> Future[None]:
        """Done when these and all before them are on disk and applied."""
        done: Future[None] = Future()
        with self._wake:
            self.check()
            self._waiting.append((rows, done))
            self._wake.notify()
        return done

    def check(self) -> None:
        """Raises where nothing more can be written."""
        if self.failure is not None:
            raise SparsezoError(f"the session has ended: {self.failure}; start it again")
        if self._stopping:
            raise SparsezoError("the session has ended; start it again")

    def _work(self) -> None:
        while True:
            with self._wake:
                self._wake.wait_for(lambda: self._waiting or self._stopping)
                batch, self._waiting = self._waiting, []
                if not batch:
                    return
            rows = [row for each, _ in batch for row in each]
            try:
                self._log.add(rows)
                self._apply(rows)
            except BaseException as error:
                self._fail(error, batch)
                return
            for _, done in batch:
                done.set_result(None)

    def _fail(self, error: BaseException, batch: list[tuple[Sequence[Row], Future[None]]]) -> None:
        with self._wake:
            self.failure = error
            batch, self._waiting = batch + self._waiting, []
        for _, done in batch:
            done.set_exception(SparsezoError(f"not saved: {error}"))

    def stop(self) -> None:
        """When all that was put is written."""
        with self._wake:
            self._stopping = True
            self._wake.notify()
        self._thread.join()
