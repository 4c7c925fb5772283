"""What a person should know of work that goes on all the same: a column passed over, a file read in another way.

    say("a.dat: qid: is passed over")

It goes to the log "sparsezo" unless ``show_with`` has been given something that shows: the command line does.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from sparsezo.errors import one_line

_handler: Callable[[str], None] = logging.getLogger("sparsezo").info


def show_with(handler: Callable[[str], None]) -> None:
    global _handler
    _handler = handler


def say(text: str) -> None:
    """One line; what comes from data is made harmless here, as in errors."""
    _handler(one_line(text))
