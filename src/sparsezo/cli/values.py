"""Values as people type them, 4M, 300k or 1e6 steps, and defaults that help texts show."""

from __future__ import annotations

import math

from sparsezo.errors import UsageError, quoted
from sparsezo.storage import limits

_UNITS = {"k": 10**3, "m": 10**6, "g": 10**9}
ITERATIONS = "1M"  # of train and tune
N, N_BAR, R_BAR = "2.8M", 3300.0, 213.0  # of theory: CoNLL-2000's noun phrases, about


def whole_number(text: str, option: str, most: float = 1e15) -> int:
    """4M -> 4000000, 300k -> 300000, 1e6 -> 1000000.

    >>> whole_number("1.5M", "--iterations")
    1500000
    """
    number, unit = (text[:-1], _UNITS[text[-1].lower()]) if text[-1:].lower() in _UNITS else (text, 1)
    value = _number(number.replace("_", "")) * unit
    if math.isfinite(value) and value > most:
        raise UsageError(f"{option} {quoted(text)}: must be at most {most:g}")
    if math.isfinite(value) and value >= 1 and value.is_integer():
        return int(value)
    raise UsageError(f"{option} {quoted(text)}: must be a whole number of at least 1, such as 4M, 300k, 1e6 or 250000")


def numbers(text: str, option: str) -> tuple[float, ...]:
    """1e-2,1e-3 -> (0.01, 0.001)."""
    found = tuple(_number(part) for part in text.split(","))
    if not all(map(math.isfinite, found)):
        raise UsageError(f"{option} {quoted(text)}: give numbers with commas between them, such as 0.01,0.001")
    return found


def seed_list(text: str, option: str = "--seeds") -> int | tuple[int, ...]:
    """10 -> ten of them, from 0; 3-5 -> (3, 4, 5); 3,8,4 -> (3, 8, 4).

    >>> seed_list("0-3")
    (0, 1, 2, 3)
    """
    parts = [part.strip().split("-") for part in text.split(",")]
    whole = all(each.strip().isdecimal() and each.isascii() and len(each) < 19 for ends in parts for each in ends)
    if not whole or any(len(ends) > 2 for ends in parts):
        raise UsageError(f"{option} {quoted(text)}: give how many, or which: 10, 0-9 or 3,8,4")
    if len(parts) == 1 and len(parts[0]) == 1:
        return int(parts[0][0])
    found: list[int] = []
    for first, last in ((int(ends[0]), int(ends[-1])) for ends in parts):
        if last < first or last - first >= limits.RUNS:
            raise UsageError(f"{option} {quoted(text)}: {first}-{last} must rise, by less than {limits.RUNS:,}")
        found += range(first, last + 1)
    return tuple(found)


def seconds(value: float, option: str) -> float:
    if not (math.isfinite(value) and value >= 0):
        raise UsageError(f"{option} {value:g}: must be a number of seconds, 0 or more")
    return value


def _number(text: str) -> float:
    """In the digits of this sentence, 0 to 9; nan where it is none."""
    try:
        return float(text) if text.isascii() else math.nan
    except ValueError:
        return math.nan
