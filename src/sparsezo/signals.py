"""Being stopped only where it does no harm.

    with DeferredSignals() as signals:
        while work():
            signals.deliver()                   # KeyboardInterrupt, if there was a Ctrl-C since

The first signal counts; those that come while it waits, and while the work is saved, change nothing.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

CHECKPOINT_SECONDS = 30.0  # between two checkpoints of a run


_Handler = Callable[[int, FrameType | None], object] | int | None


class DeferredSignals:
    """Holds SIGINT and SIGTERM back until ``deliver`` is called, where the work's state is whole.

    ``exceptions``: only what would be an exception; what ends the process at once, or is ignored, still does or is.
    """

    def __init__(self, *, exceptions: bool = False) -> None:
        self._exceptions = exceptions
        self._before: dict[int, _Handler] = {}
        self._caught: int | None = None

    def __enter__(self) -> DeferredSignals:
        if threading.current_thread() is threading.main_thread():  # others have no signals
            for number in (signal.SIGINT, signal.SIGTERM):
                if not self._exceptions or callable(signal.getsignal(number)):
                    self._before[number] = signal.signal(number, self._catch)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if kind is None:
            self.deliver()

    def _catch(self, number: int, _frame: FrameType | None) -> None:
        if self._caught is None:
            self._caught = number

    def deliver(self) -> None:
        """Do now what a signal that came would have done."""
        if self._caught is None:
            return
        number, self._caught = self._caught, None
        handler = self._before[number]
        if callable(handler):
            handler(number, None)
        elif handler == signal.SIG_DFL:
            raise KeyboardInterrupt


class Unbroken:
    """Signals wait while this thread is within: between the first ``begin`` and the ``end`` of any that began.

    That is for code which calls back from C (compiling), where an exception is printed and lost, and whoever sent the
    signal waits for ever. The end of an inner one is as good a place as the outermost's, and comes earlier.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._signals = DeferredSignals()

    def begin(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        if self._depth == 0:
            self._signals = DeferredSignals(exceptions=True)
            self._signals.__enter__()
        self._depth += 1

    def end(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        self._depth -= 1
        if self._depth == 0:
            self._signals.__exit__(None)
        else:
            self._signals.deliver()


@contextlib.contextmanager
def processes_without_ctrl_c() -> Iterator[None]:
    """A process of multiprocessing's that starts in here never sees Ctrl-C; the caller sees it afterwards."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # it starts with the first process otherwise, and lets Ctrl-C through when it has
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
