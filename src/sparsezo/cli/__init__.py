"""The command line. What a user did wrong, or what failed, is one line on standard error and an exit code."""

from __future__ import annotations

import errno
import os
import re
import signal
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from types import FrameType
from typing import Any

from sparsezo.errors import SparsezoError  # nothing heavier: a signal that comes now would not be caught yet

INTERRUPTED, TERMINATED = 128 + signal.SIGINT, 128 + signal.SIGTERM
_OUTPUT = "standard output"
_STREAMS = (
    ("stdout", 1, os.O_RDONLY),
    ("stderr", 2, os.O_WRONLY),
)  # how the empty device stands in where one is closed


def main() -> None:
    """Exit codes: 0 done, 1 the work failed, 2 the call was wrong, 130 interrupted (143 by SIGTERM)."""
    global _terminated
    _terminated = False
    try:
        signal.signal(signal.SIGTERM, _terminate)
        _open_streams()
        code = _run()
    except KeyboardInterrupt:
        code = INTERRUPTED
    code = _flushed(code)
    sys.exit(TERMINATED if code == INTERRUPTED and _terminated else code)


def _run() -> int:
    try:
        from sparsezo import notes, progress
        from sparsezo.cli.app import make_app

        progress.show_with(_counting)
        notes.say_with(_note)
        make_app(_asked_for())(prog_name="sparsezo")
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except SparsezoError as error:
        return _failed(with_flags(str(error)), error.exit_code)
    except BrokenPipeError:  # the reader of our output has gone: nothing is left to say
        _send_nowhere(sys.stdout)
        return 1
    except MemoryError:
        return _failed("out of memory; use a higher --min-count, --order 1 or a smaller file")
    except OSError as error:
        place = error.filename or (_OUTPUT if error.errno in (errno.EBADF, errno.ENOSPC) else "")
        return _failed(f"{place}: {error.strerror or error}".removeprefix(": "))
    return 0


def _failed(message: str, code: int = 1) -> int:
    with suppress(OSError):
        sys.stderr.write(f"sparsezo: {message}\n")
    return code


def _open_streams() -> None:
    """Standard output and standard error may be closed, and a terminal may know no more than ASCII.

    A file that we open must not become one of the two. What is written to a closed standard output is an error, as it
    would be lost; remarks to a closed standard error are not wanted.
    """
    for name, descriptor, mode in _STREAMS:
        if getattr(sys, name) is None:
            with suppress(OSError):
                os.dup2(os.open(os.devnull, mode), descriptor)
            setattr(sys, name, os.fdopen(descriptor, "w", encoding="utf-8", closefd=False))
        stream = getattr(sys, name)
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _flushed(code: int) -> int:
    """What is still in a buffer is written now, while it can be said that it failed."""
    streams: list[Any] = [sys.stdout, getattr(sys.stdout, "wrapped", None), sys.__stdout__, sys.stderr, sys.__stderr__]
    for stream in streams:
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except OSError as error:
            if code == 0 and stream is not sys.stderr:
                code = 1
                if not isinstance(error, BrokenPipeError):
                    _failed(f"{_OUTPUT}: {error.strerror or error}")
            _send_nowhere(stream)
    return code


def _send_nowhere(stream: Any) -> None:
    """What is still to be written, and Python writes it at its end, complains no more."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _asked_for() -> list[str]:
    """The words of the call; a shell that completes a word may ask for anything."""
    from sparsezo.cli.app import GROUPS

    return [*GROUPS] if "_SPARSEZO_COMPLETE" in os.environ else sys.argv[1:]


def with_flags(message: str) -> str:
    """The library names settings, `min_count`; here they are flags, --min-count."""
    return re.sub(r"`([a-z][a-z0-9_]*)`", lambda found: "--" + found[1].replace("_", "-"), message)


def _counting(title: str, unit: str) -> AbstractContextManager[Callable[[int, int], None]]:
    from sparsezo.cli import show

    return show.counting(title, unit)


def _note(text: str) -> None:
    from sparsezo.cli import show

    show.note(text)


class Terminated(KeyboardInterrupt):
    """SIGTERM is taken as Ctrl-C is: the work is saved first."""


_terminated = False  # Typer makes 130 of every KeyboardInterrupt


def _terminate(_signal: int, _frame: FrameType | None) -> None:
    global _terminated
    _terminated = True
    raise Terminated
