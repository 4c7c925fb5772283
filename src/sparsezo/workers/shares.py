"""Who evaluates how much of a batch: so much that all are done at the same time. It changes no result.

pace = Pace()
pace.note(steps=2048, nanoseconds=8_000_000)
deal(first, last, [pace.value, None])       # (begin, end) of each; None: as the others
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import accumulate, pairwise
from statistics import fmean, median_low

_BATCHES = 5  # that are remembered
_MOST = 4.0  # times as fast, or as slow, as the others on average: more is not believed


class Pace:
    """How long a worker takes for a step, by its last batches; one in which it was held up changes little."""

    def __init__(self) -> None:
        self._seen: deque[float] = deque(maxlen=_BATCHES)

    def note(self, steps: int, nanoseconds: int) -> None:
        """Of one batch. What is known of somebody who had no share is forgotten."""
        if steps > 0 and nanoseconds > 0:
            self._seen.append(nanoseconds / steps)
        else:
            self._seen.clear()

    @property
    def value(self) -> float | None:
        """Nanoseconds; None where it is not known."""
        return median_low(self._seen) if self._seen else None


def deal(first: int, last: int, paces: Sequence[float | None], samples: int = 1) -> list[tuple[int, int]]:
    """first..last-1 in as many parts as there are paces, one after the other: (begin, end) of each.

    All ``samples`` of an input are in one part.
    """
    known = [pace for pace in paces if pace is not None]
    usual = fmean(known) if known else 1.0
    speeds = [usual / min(max(pace or usual, usual / _MOST), usual * _MOST) for pace in paces]
    inputs = -(-(last - first) // samples)
    ends = (first + round(inputs * part / sum(speeds)) * samples for part in accumulate(speeds, initial=0.0))
    return list(pairwise(min(end, last) for end in ends))
