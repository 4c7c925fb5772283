"""Numbers with their nouns: ``counted(1, "run")`` is "1 run", ``counted(2000, "run")`` "2,000 runs"."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
