"""A program that is kept running: a line to its standard input, a line from its standard output, all pipes watched.

    process = Process(["python", "metric.py"], seconds=60)
    process.start()
    process.exchange(b'{"rule": "part", ...}\n', pause)         # b'yes'
    process.end()                                               # with everything that it has started

One loop waits for all three pipes at once, so that no full pipe can stop both sides. Standard error is kept to its last
lines, which are quoted when the program fails.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import IO, Any

from sparsezo.errors import quoted

_MOST_REPLY = 1 << 20  # bytes of one line
_MOST_WORDS = 1 << 13  # bytes of standard error that are kept
_BLOCK = 1 << 16
_PAUSE = 0.1  # seconds between looks at whether the user wants to stop
_GRACE = 2.0  # seconds that a program has to end by itself, once its input is closed, and again once it is told to


class ProcessError(Exception):
    """What the program did wrong, in words that follow its name."""


class Process:
    def __init__(self, words: Sequence[str], seconds: float) -> None:
        self._words, self._seconds = words, seconds
        self._child: subprocess.Popen[bytes] | None = None
        self._pipes: selectors.BaseSelector  # while it runs
        self._said, self._complained = bytearray(), bytearray()
        self._last = b""  # the last whole line
        self._answers = 0

    def find(self) -> None:
        if shutil.which(self._words[0]) is None:
            raise ProcessError(f"cannot be started: there is no program {quoted(self._words[0])}")

    def start(self) -> None:
        pipes: Any = subprocess.PIPE
        try:  # in a group of its own: Ctrl-C is for us, who save first
            child = subprocess.Popen(self._words, stdin=pipes, stdout=pipes, stderr=pipes, start_new_session=True)
        except (OSError, ValueError) as error:
            raise ProcessError(f"cannot be started ({getattr(error, 'strerror', None) or error})") from None
        self._child, self._pipes = child, selectors.DefaultSelector()
        self._said, self._complained, self._last, self._answers = bytearray(), bytearray(), b"", 0
        for stream in (child.stdin, child.stdout, child.stderr):
            os.set_blocking(_number(stream), False)
        self._pipes.register(_number(child.stdout), selectors.EVENT_READ)
        self._pipes.register(_number(child.stderr), selectors.EVENT_READ)

    # One question

    def exchange(self, line: bytes, pause: Callable[[], None]) -> bytes:
        """The line that answers ``line``. ``pause`` is called now and then, and may raise."""
        self._refuse_early_words()
        left, end = memoryview(line), time.monotonic() + self._seconds
        while (at := self._said.find(b"\n")) < 0:
            if len(self._said) > _MOST_REPLY:
                raise ProcessError(f"said '{quoted(bytes(self._said))}', a line of more than {_MOST_REPLY >> 20} MB")
            left = self._written(left)
            wait = min(_PAUSE, end - time.monotonic())
            if wait <= 0:
                raise ProcessError(f"no answer within {self._seconds:g} s{self._last_words()}")
            self._read(wait, until_writable=bool(left))
            pause()
        reply = bytes(self._said[:at]).strip()
        del self._said[: at + 1]
        if not reply:
            raise ProcessError(f"answered with an empty line{self._last_words()}")
        self._last = reply
        self._answers += 1
        return reply

    def _refuse_early_words(self) -> None:
        """What it says before it is asked would be taken for the answer."""
        while self._read(0.0):
            pass
        if self._said:
            raise ProcessError(
                f"said '{quoted(bytes(self._said))}' without being asked; it has one line for each question"
            )

    def _written(self, left: memoryview) -> memoryview:
        """What is still to be written."""
        child = self._running()
        try:
            return left[os.write(_number(child.stdin), left) :] if left else left
        except BlockingIOError:
            return left
        except BrokenPipeError:
            raise self._gone("closed its input") from None

    def _read(self, wait: float, *, until_writable: bool = False) -> bool:
        """Whether anything came. ``until_writable``: also wait for room in its input."""
        child = self._running()
        if until_writable:
            self._pipes.register(_number(child.stdin), selectors.EVENT_WRITE)
        try:
            ready = [key.fd for key, _ in self._pipes.select(wait)]
        finally:
            if until_writable:
                self._pipes.unregister(_number(child.stdin))
        if _number(child.stderr) in ready:
            self._hear_complaints(child)
        if _number(child.stdout) in ready:
            data = os.read(_number(child.stdout), _BLOCK)
            if not data:
                raise self._gone("closed its output")
            self._said += data
        return bool(ready)

    def _hear_complaints(self, child: subprocess.Popen[bytes]) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                data = os.read(_number(child.stderr), _BLOCK)
                if not data:
                    with contextlib.suppress(KeyError):
                        self._pipes.unregister(_number(child.stderr))
                    return
                self._complained += data
                del self._complained[:-_MOST_WORDS]

    # Its end

    def _gone(self, what: str) -> ProcessError:
        """Why nothing more can come: it has ended, or has closed a pipe and goes on."""
        child = self._running()
        ended = _ends(child, _GRACE)
        self._hear_complaints(child)
        what = ended or what
        return ProcessError(f"{what} after {self._answers:,} answer{'s' * (self._answers != 1)}{self._last_words()}")

    def _last_words(self) -> str:
        """The last line that it wrote, on standard error if there is any."""
        for name, text in (("error", bytes(self._complained)), ("line", bytes(self._said) or self._last)):
            if lines := [line for line in text.splitlines() if line.strip()]:
                return f"; its last {name}: '{quoted_line(lines[-1])}'"
        return "; it has said nothing"

    def _running(self) -> subprocess.Popen[bytes]:
        if self._child is None:
            raise ProcessError("is not running")
        return self._child

    def end(self) -> None:
        """Its input is closed; what has not ended by itself, in its whole process group, is ended. No zombie stays."""
        child, self._child = self._child, None
        if child is None:
            return
        self._pipes.close()
        _close(child.stdin)
        _close(child.stdout)  # where it may be stuck in a line of megabytes
        _ends(child, _GRACE)
        _tell(child.pid, signal.SIGTERM)
        _ends(child, _GRACE)
        _tell(child.pid, signal.SIGKILL)
        child.wait()
        _close(child.stderr)


def quoted_line(line: bytes) -> str:
    """More of a line than of other data: an exception's own words."""
    text = line.decode("utf-8", "replace").strip()
    return text if len(text) <= 200 else text[:200] + "..."


def _number(stream: IO[bytes] | None) -> int:
    assert stream is not None  # all three are pipes
    return stream.fileno()


def _close(stream: IO[bytes] | None) -> None:
    if stream is not None:
        with contextlib.suppress(OSError):
            stream.close()


def _ends(child: subprocess.Popen[bytes], seconds: float) -> str | None:
    """How it has ended, if it has within so many seconds. It is not reaped: its number, the group's, stays its own."""
    end = time.monotonic() + seconds
    while True:
        try:
            found = os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:  # where a process ignores SIGCHLD, the system reaps its children
            return "ended"
        if found is not None:
            by_itself = found.si_code == os.CLD_EXITED
            return f"ended with exit code {found.si_status}" if by_itself else f"was ended by signal {found.si_status}"
        if time.monotonic() >= end:
            return None
        time.sleep(0.005)


def _tell(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
