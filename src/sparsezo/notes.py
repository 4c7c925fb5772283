"""What the library did that a person would want to know, and that is no error: one line each.

    say("train.nbest: marks of segmentation were left out of 40 lists")

Lines go to the package's log unless ``show_with`` has been given something that shows them: the command line does.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from sparsezo.errors import one_line

Handler = Callable[[str], None]


def _log(text: str) -> None:
    logging.getLogger("sparsezo").info(text)


_handler: Handler = _log


def show_with(handler: Handler) -> None:
    global _handler
    _handler = handler


def say(text: str) -> None:
    _handler(one_line(text))
