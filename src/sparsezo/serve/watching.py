"""How the model does while people answer: dev now and then, in a thread of its own that nobody waits for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsezo.decoding import Decoder
from sparsezo.errors import SparsezoError
from sparsezo.serve.log import LookRow

_SLICE = 64  # inputs decoded at a time
_FIRST, _GROWTH = 25, 1.1  # answers between looks: 25 at first, then a tenth more each time


class Watch:
    """``weights``: (answers, a copy of the weights) of the present model; ``keep``: puts a look into the log."""

    def __init__(
        self,
        task: Any,
        metric: str,
        dev: Any,
        looks: list[LookRow],
        weights: Callable[[], tuple[int, NDArray[Any]]],
        keep: Callable[[int, str, float], None],
    ) -> None:
        self._task, self._weights, self._keep = task, weights, keep
        self.metric = metric
        self._curve = [[look.answers, look.value] for look in looks if look.metric == self.metric]
        self._dev = dev
        self._wake, self._stopping = threading.Event(), False
        self._thread: threading.Thread | None = None
        if dev is not None:
            self._decoder, self._gold = Decoder(task.problem(dev, learn=False)), task.gold(dev)
            self._thread = threading.Thread(target=self._work, name="sparsezo dev", daemon=True)
            self._thread.start()
            self._wake.set()

    def curve(self) -> list[list[Any]]:
        return list(self._curve)

    def newest(self) -> float | None:
        return self._curve[-1][1] if self._curve and self._dev is not None else None

    def answered(self, answers: int) -> None:
        """So many by now."""
        if self._thread is not None and self._due(answers):
            self._wake.set()

    def _due(self, answers: int) -> bool:
        if not self._curve:
            return True
        last = self._curve[-1][0]
        return answers >= max(last + _FIRST, _GROWTH * last) or answers < last

    def _work(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            if self._stopping:
                return
            answers, W = self._weights()
            if not self._due(answers):
                continue
            value = self.look(W)
            if value is None:
                return
            self._curve = [*(each for each in self._curve if each[0] < answers), [answers, value]]
            try:
                self._keep(answers, self.metric, value)
            except SparsezoError:
                return  # the session has ended

    def look(self, W: NDArray[Any]) -> float | None:
        """None where the session ended meanwhile."""
        problem = self._decoder.problem
        out = np.empty(int(problem.output_start[-1]), np.int32)
        for first in range(0, len(problem), _SLICE):
            if self._stopping:
                return None
            self._decoder.decode(W, first, min(first + _SLICE, len(problem)), out)
        return float(self._task.quality(problem, self._gold, out))

    def stop(self) -> None:
        self._stopping = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
