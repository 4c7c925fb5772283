"""Values as people type them: 4M, 300k, 1e6 steps; a dev set as a file or as a number of inputs."""

from __future__ import annotations

from sparsezo.errors import UsageError

_UNITS = {"k": 10**3, "m": 10**6, "g": 10**9}


def whole_number(text: str, option: str) -> int:
    """4M -> 4000000, 300k -> 300000, 1e6 -> 1000000.

    >>> whole_number("1.5M", "--iterations")
    1500000
    """
    number, unit = (text[:-1], _UNITS[text[-1].lower()]) if text[-1:].lower() in _UNITS else (text, 1)
    try:
        value = float(number.replace("_", "")) * unit
        if value == int(value) and value >= 1:
            return int(value)
    except (ValueError, OverflowError):
        pass
    raise UsageError(f"{option} {text}: must be a whole number of at least 1, such as 4M, 300k, 1e6 or 250000")
