"""The command line. What a user did wrong, or what failed, is one line on standard error and an exit code."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import FrameType


def main() -> None:
    """Exit codes: 0 done, 1 the work failed, 2 the call was wrong, 130 interrupted (143 by SIGTERM)."""
    from sparsezo import notes, progress
    from sparsezo.cli.app import make_app
    from sparsezo.errors import SparsezoError

    signal.signal(signal.SIGTERM, _terminate)
    progress.show_with(_counting)
    notes.say_with(_note)
    try:
        make_app(_asked_for())(prog_name="sparsezo")
    except SparsezoError as error:
        sys.stderr.write(f"sparsezo: {with_flags(str(error))}\n")
        sys.exit(error.exit_code)
    except BrokenPipeError:  # the reader of our output has gone: nothing is left to say
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except MemoryError:
        sys.stderr.write("sparsezo: out of memory; use a higher --min-count, --order 1 or a smaller file\n")
        sys.exit(1)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        sys.stderr.write(f"sparsezo: {place}{error.strerror or error}\n")
        sys.exit(1)


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


def _terminate(_signal: int, _frame: FrameType | None) -> None:
    raise Terminated
