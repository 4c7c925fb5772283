"""The option ``hash_bits`` of chunking and text. Light to import: --help knows it. What it does is in ``hashing``."""

from __future__ import annotations

from typing import Any

from sparsezo.errors import UsageError, shown
from sparsezo.options import option

FEWEST, MOST = 10, 28


def hash_bits() -> Any:
    return option(
        None,
        f"Hash features into 2^B rows of weights instead of keeping a vocabulary; {FEWEST} to {MOST}.",
        shown="a row for each feature of train",
    )


def check_hash_bits(bits: object, min_count: int = 1) -> None:
    if bits is None:
        return
    if not isinstance(bits, int) or isinstance(bits, bool) or not FEWEST <= bits <= MOST:
        raise UsageError(f"`hash_bits` {shown(bits)}: must be a whole number from {FEWEST} to {MOST}")
    if min_count > 1:
        raise UsageError(
            f"`min_count` {min_count}: with `hash_bits` features have no names to count by; leave one of them out"
        )
