"""Sizes that can only be a mistake: a line of a gigabyte, a sentence of twenty thousand tokens, a billionth feature.

Each is refused where it is met, before memory is taken for it, and whoever means it can insist:

    limits.refuse(f"{path}:{line}", "20,000 tokens in one sentence: is a blank line missing?")
    with limits.insisting(): ...                    # --insist, or SPARSEZO_INSIST=1, which worker processes inherit
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from sparsezo.errors import DataError

VARIABLE = "SPARSEZO_INSIST"

LINE = 1 << 24  # bytes of one line
TOKENS = 10_000  # of one sentence
TAGS = 500  # different ones
LIST = 1 << 28  # bytes of one n-best list
ARRAYS = 1 << 31  # bytes of a model's, checkpoint's or store's arrays in memory, where its file is much smaller
PLAN = 1 << 18  # letters of an experiment's TOML file
RUNS = 10_000  # of an experiment
ITERATIONS = 10**10  # of one run: days of work
LOOKS = 100_000  # at the dev set in one run
SWELLING = 100  # times its file's size that a packed file's content may have before it looks like a trap


def insisted() -> bool:
    return os.environ.get(VARIABLE, "") not in ("", "0")


def refuse(where: str, what: str) -> None:
    """Stop here, unless the user insists."""
    if not insisted():
        raise DataError(where, f"{what}; if it is meant, add `insist`")


@contextlib.contextmanager
def insisting(on: bool = True) -> Iterator[None]:
    """No limit within; through the environment, so that worker processes know of it."""
    before = os.environ.get(VARIABLE)
    if on:
        os.environ[VARIABLE] = "1"
    try:
        yield
    finally:
        if on:
            del os.environ[VARIABLE]
            os.environ.update({} if before is None else {VARIABLE: before})
