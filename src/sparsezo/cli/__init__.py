"""The command line. What a user did wrong, or what failed, is one line on standard error and an exit code."""

from __future__ import annotations

import errno
import gc
import os
import re
import signal
import sys
from contextlib import suppress
from types import FrameType, ModuleType
from typing import TextIO

from sparsezo.errors import SparsezoError  # nothing heavier: a signal that comes now would not be caught yet

INTERRUPTED, TERMINATED = 128 + signal.SIGINT, 128 + signal.SIGTERM
_OUTPUT = "standard output"


def main() -> None:
    """Exit codes: 0 done, 1 the work failed, 2 the call was wrong, 130 interrupted (143 by SIGTERM)."""
    global _terminated
    _terminated = False
    gc.set_threshold(50_000, 10, 10)  # a collection's spans are many objects and no cycles: a tenth of the time
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
        from sparsezo import messages
        from sparsezo.cli.app import GROUPS, make_app

        messages.show_with(lambda title, unit: _show().counting(title, unit))
        messages.say_with(lambda text: _show().note(text))
        # a shell that completes a word may ask for anything
        make_app(GROUPS if "_SPARSEZO_COMPLETE" in os.environ else sys.argv[1:])(prog_name="sparsezo")
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
    for name, descriptor, mode in (("stdout", 1, os.O_RDONLY), ("stderr", 2, os.O_WRONLY)):
        if getattr(sys, name) is None:
            with suppress(OSError):
                os.dup2(os.open(os.devnull, mode), descriptor)
            setattr(sys, name, os.fdopen(descriptor, "w", encoding="utf-8", closefd=False))
        stream = getattr(sys, name)
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _flushed(code: int) -> int:
    """What is still in a buffer is written now, while it can be said that it failed."""
    wrapped = getattr(sys.stdout, "wrapped", None)
    for stream in filter(None, (sys.stdout, wrapped, sys.__stdout__, sys.stderr, sys.__stderr__)):
        try:
            if not stream.closed:
                stream.flush()
        except OSError as error:
            if code == 0 and stream is not sys.stderr:
                code = 1
                if not isinstance(error, BrokenPipeError):
                    _failed(f"{_OUTPUT}: {error.strerror or error}")
            _send_nowhere(stream)
    return code


def _send_nowhere(stream: TextIO) -> None:
    """What is still to be written, and Python writes it at its end, complains no more."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def with_flags(message: str) -> str:
    """The library names settings, `min_count`; here they are flags, --min-count."""
    return re.sub(r"`([a-z][a-z0-9_]*)`", lambda found: "--" + found[1].replace("_", "-"), message)


def _show() -> ModuleType:
    from sparsezo.cli import show

    return show


class Terminated(KeyboardInterrupt):
    """SIGTERM is taken as Ctrl-C is: the work is saved first."""


_terminated = False  # Typer makes 130 of every KeyboardInterrupt


def _terminate(_signal: int, _frame: FrameType | None) -> None:
    global _terminated
    _terminated = True
    raise Terminated
