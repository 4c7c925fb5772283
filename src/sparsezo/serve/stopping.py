"""When to stop: how good the model is at least, and what more minutes would bring.

    stopping = Stopping(store.rows(LookRow), until=Until.parse("f1>=0.85"))
    stopping.look(answers, audit, sentences)    # at most one bound for each metric, to be kept with the looks
    stopping.reached()                          # why no more questions are needed; None while they are
    stopping.status(forecast, "F1")             # the sentence and its numbers

A bound that holds 95 times in 100 at one moment does not do so over many: who looks until it is high enough has as many
chances of being misled as looks. So the looks are counted and the 5% are spent on them: half on the first ten, a
quarter on the next ten, and so on, each look of ten alike. Whatever the model is at each look, and however the looks
depend on each other, with 95% no bound of all of them is above what its model had (Bonferroni). Looks are when the
answers have grown by a quarter, which no answer to an audit decides, and there are some ten in ten times the answers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

from sparsezo.serve import statistics
from sparsezo.serve.options import Until
from sparsezo.serve.statistics import LEVEL, SpanCounts
from sparsezo.serve.store import LookRow
from sparsezo.tasks.base import Json

GROWTH = 1.25  # of the answers, between two looks
_TOGETHER = 10  # looks that share a half of what is left
_NAMES = {"f1": "F1", "accuracy": "accuracy"}
_LEAST = {"f1": 5, "accuracy": 20}  # sentences or parts audited before the first look
AT_LEAST = " at least"  # ends the metric of a look that is a bound
_KEPT = {metric: name + AT_LEAST for metric, name in _NAMES.items()}  # the metric of a look, as the store has it
MINUTES = 30
_LATELY = 200  # answers by which it is known how many come in a minute
_BREAK = 60.0  # seconds without an answer; what is longer is no work


def tail_of(look: int) -> float:
    """Of the 5% the part that a look spends, the first being 0; all of them together spend no more than 5%.

    >>> round(tail_of(0), 6), sum(tail_of(look) for look in range(1000)) <= 0.05
    (0.0025, True)
    """
    return float((1 - LEVEL) / _TOGETHER * 0.5 ** (1 + look // _TOGETHER))


class Stopping:
    """Looks so far, by metric, of which the store has each as a row. Not for several threads at once."""

    def __init__(self, looks: Iterable[LookRow], until: Until | None = None) -> None:
        self.until = until
        self._looks: dict[str, list[tuple[int, float]]] = {metric: [] for metric in _NAMES}  # (answers, bound)
        for row in looks:
            for metric, kept in _KEPT.items():
                if row.metric == kept:
                    self._looks[metric].append((row.answers, row.value))

    def look(self, answers: int, audit: Json | None, sentences: Sequence[SpanCounts]) -> list[tuple[str, float]]:
        """Look at the audit, where that is due: (the look's metric in the store, the bound) of each metric."""
        made = []
        agreed, asked = (audit["agreed"], audit["asked"]) if audit else (0, 0)
        for metric, of in (("f1", len(sentences)), ("accuracy", asked)):
            before = self._looks[metric]
            if of < _LEAST[metric] or (before and answers < before[-1][0] * GROWTH):
                continue
            tail = tail_of(len(before))
            found = (
                statistics.span_f1(sentences, tail) if metric == "f1" else statistics.share(agreed, asked, tail=tail)
            )
            before.append((answers, found.low))
            made.append((_KEPT[metric], found.low))
        return made

    def bound(self, metric: str) -> float | None:
        """How good the model was at least at the last look."""
        return self._looks[metric][-1][1] if self._looks[metric] else None

    def reached(self) -> str | None:
        """Why no more is needed, where the last look says so."""
        if self.until is None or (low := self.bound(self.until.metric)) is None or low < self.until.target:
            return None
        return f"{self.until} is reached: {at_least(self.until.metric, low, 3)}"

    def status(self, forecast: Json | None, metric: str) -> Json | None:
        """The sentence and its numbers; None where nothing is known. ``forecast``: of ``metric``, in ``MINUTES``."""
        known = [each for each in _NAMES if self.bound(each) is not None]
        of = self.until.metric if self.until is not None else known[0] if known else None
        low = None if of is None else self.bound(of)
        said = [] if of is None or low is None else [at_least(of, low)]
        found: Json = {"metric": of, "low": low, "looks": len(self._looks[of]) if of else 0}
        found |= {"until": None if self.until is None else str(self.until), "reached": self.reached() is not None}
        if forecast is not None:
            now = forecast["value"] - forecast["gain"]
            ends = [forecast["low"] - now, forecast["high"] - now]
            found |= {"minutes": MINUTES, "of": metric, "gain": forecast["gain"], "gain_low": ends[0]}
            found |= {"gain_high": ends[1], "answers": forecast["answers"]}
            what = "" if of is not None and metric == _NAMES[of] else f" of {metric}"
            interval = " to ".join(f"{max(0.0, end):.2f}" for end in ends)
            said.append(f"{MINUTES} more minutes bring about {forecast['gain']:.2f} ({interval}){what}")
        return {"text": "; ".join(said), **found} if said else None


def at_least(metric: str, low: float, digits: int = 2) -> str:
    """In words; the figure is not rounded up."""
    return f"{_NAMES[metric]} at least {math.floor(low * 10**digits) / 10**digits:.{digits}f} with {LEVEL:.0%}"


def pace(times: Sequence[float]) -> float | None:
    """Answers a minute, lately and while people answered, of when they did, in order; None where there are too few."""
    lately = times[-_LATELY:]
    seconds = sum(min(after - before, _BREAK) for before, after in itertools.pairwise(lately))
    return 60 * (len(lately) - 1) / seconds if seconds > 0 else None
