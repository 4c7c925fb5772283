"""Who evaluates how much of a batch: so much that all are done at the same time. It changes no result.

pace = Pace()
pace.note(steps=2048, spent=8_000_000, before=1_000_000)
deal(4096, [pace.known, None])              # (begin, end) of each; None: as the others
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import accumulate, pairwise
from statistics import fmean, median_low
from typing import NamedTuple

_BATCHES = 5  # that are remembered
_MOST = 4.0  # times as fast, or as slow, as the others on average: more is not believed


class Known(NamedTuple):
    """Of a worker, in nanoseconds."""

    step: float  # to evaluate one
    before: float = 0.0  # from a batch's first message until it begins: the last batch is applied


class Pace:
    """How long a worker takes, by its last batches; one in which it was held up changes little."""

    def __init__(self) -> None:
        self._seen: deque[Known] = deque(maxlen=_BATCHES)

    def note(self, steps: int, spent: int, before: int) -> None:
        """Of one batch, in nanoseconds. What is known of somebody who had no share is forgotten."""
        if steps > 0 and spent > 0:
            self._seen.append(Known(spent / steps, before))
        else:
            self._seen.clear()

    @property
    def known(self) -> Known | None:
        return Known(*map(median_low, zip(*self._seen, strict=True))) if self._seen else None


def deal(turns: int, paces: Sequence[Known | None], samples: int = 1) -> list[tuple[int, int]]:
    """0..turns-1 in as many parts as there are paces, one after the other: (begin, end) of each.

    All ``samples`` of an input are in one part.
    """
    sizes = _sizes(turns, paces)
    inputs = -(-turns // samples)
    total = sum(sizes) or 1.0
    ends = (round(inputs * part / total) * samples for part in accumulate(sizes, initial=0.0))
    return list(pairwise(min(end, turns) for end in ends))


def _sizes(steps: int, paces: Sequence[Known | None]) -> list[float]:
    """With which all end at the same time t, before + size * step = t; but nobody has next to nothing."""
    known = [pace for pace in paces if pace is not None]
    if not known:
        return [1.0] * len(paces)
    usual = Known(*map(fmean, zip(*known, strict=True)))
    bounded = [
        Known(*(min(max(each, mean / _MOST), mean * _MOST) for each, mean in zip(pace or usual, usual, strict=True)))
        for pace in paces
    ]
    t = (steps + sum(each.before / each.step for each in bounded)) / sum(1 / each.step for each in bounded)
    least = steps / len(paces) / _MOST**2
    return [min(max((t - each.before) / each.step, least), steps) for each in bounded]
