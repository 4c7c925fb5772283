"""How the model does while people answer: now and then, in a thread of its own that nobody waits for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsezo.decoding import Decoder
from sparsezo.errors import SparsezoError
from sparsezo.serve.log import LookRow

AUDITED = "accuracy (audit)"  # what the curve is of where there is no dev
_SLICE = 64  # inputs decoded at a time
_FIRST, _GROWTH = 25, 1.1  # answers between looks: 25 at first, then a tenth more each time
_SHARE = 0.1  # of the time that looking may take, since it takes it from those who answer
_MOST_REST = 10.0  # seconds between looks: one may have waited for a compiler


class Watch:
    """``weights``: (answers, a copy of the weights) of the present model; ``keep``: puts a look into the log.

    ``estimate``: what else there is to find out, after a look at dev or without one: a value in [0, 1] that the curve
    has where there is no dev; None where nothing is known.
    """

    def __init__(
        self,
        task: Any,
        metric: str,
        dev: Any,
        looks: list[LookRow],
        weights: Callable[[], tuple[int, NDArray[Any]]],
        keep: Callable[[int, str, float], None],
        estimate: Callable[[], float | None],
    ) -> None:
        self._task, self._weights, self._keep, self._estimate = task, weights, keep, estimate
        self.metric = metric
        self._curve = [[look.answers, look.value] for look in looks if look.metric == self.metric]
        self._dev = dev
        self._wake, self._stopped = threading.Event(), threading.Event()
        self._looked = -1  # how many answers there were at the last look
        if dev is not None:
            self._decoder, self._gold = Decoder(task.problem(dev, learn=False)), task.gold(dev)
        self._thread = threading.Thread(target=self._work, name="sparsezo watching", daemon=True)
        self._thread.start()
        self._wake.set()

    def curve(self) -> list[list[Any]]:
        return list(self._curve)

    def newest(self) -> float | None:
        return self._curve[-1][1] if self._curve and self._dev is not None else None

    def answered(self, answers: int) -> None:
        """So many by now."""
        if self._due(answers):
            self._wake.set()

    def _due(self, answers: int) -> bool:
        last = self._looked
        return last < 0 or answers >= max(last + _FIRST, _GROWTH * last) or answers < last

    def _work(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            if self._stopped.is_set():
                return
            answers, W = self._weights()
            if not self._due(answers):
                continue
            began = time.monotonic()
            try:
                self._look_after(answers, W)
            except SparsezoError:
                return  # the session has ended
            self._stopped.wait(min(_MOST_REST, (time.monotonic() - began) * (1 - _SHARE) / _SHARE))

    def _look_after(self, answers: int, W: NDArray[Any]) -> None:
        value = self.look(W) if self._dev is not None else None
        estimated = self._estimate()
        self._looked = answers
        value = estimated if self.metric == AUDITED else value
        if value is not None and not self._stopped.is_set():
            self._curve = [*(each for each in self._curve if each[0] < answers), [answers, value]]
            self._keep(answers, self.metric, value)

    def look(self, W: NDArray[Any]) -> float | None:
        """None where the session ended meanwhile."""
        problem = self._decoder.problem
        out = np.empty(int(problem.output_start[-1]), np.int32)
        for first in range(0, len(problem), _SLICE):
            if self._stopped.is_set():
                return None
            self._decoder.decode(W, first, min(first + _SLICE, len(problem)), out)
        return float(self._task.quality(problem, self._gold, out))

    def stop(self) -> None:
        self._stopped.set()
        self._wake.set()
        self._thread.join()
