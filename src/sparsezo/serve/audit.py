"""How good the model is, without gold: by an audit set that is drawn first, asked blind and never learned from.

All audited parts so far are scored again with the present model, so n of them are n independent throws with its
accuracy as the chance: an audited part is no matter of what was asked or learned.

    accuracy(171, 200)                                  # Share(value=0.855, low=0.799, high=0.901)
    accuracy(171, 200, error=Share(0.1, 0.07, 0.14), labels=3)      # raters err, so the model is better than it looks
    sequence(171, 200)                                  # wider, and right at every n at once: look as often as you like
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sparsezo.bisection import root
from sparsezo.errors import UsageError

LEVEL = 0.95  # of all intervals
_MOST_LOST = 0.9  # of what answers could tell: beyond it raters say nothing


@dataclass(frozen=True)
class Share:
    """A share of something, as estimated, and the interval that holds it with ``LEVEL``."""

    value: float
    low: float
    high: float

    def as_dict(self) -> dict[str, float | None]:
        """A share of nothing has no value."""
        return {"value": None if math.isnan(self.value) else self.value, "low": self.low, "high": self.high}


def share(k: int, n: int, level: float = LEVEL) -> Share:
    """Of k in n: Clopper and Pearson's interval, which never holds less often than it says."""
    if not 0 <= k <= n:
        raise UsageError(f"{k} of {n} is no share")
    if n == 0:
        return Share(math.nan, 0.0, 1.0)
    tail = (1 - level) / 2
    so_many, more = _at_least(k, n), _at_least(k + 1, n)
    low = 0.0 if k == 0 else root(lambda p: so_many(p) - tail)
    high = 1.0 if k == n else root(lambda p: tail - (1 - more(p)))
    return Share(k / n, low, high)


def sequence(k: int, n: int, level: float = LEVEL) -> Share:
    """An interval that holds at every n at once (Robbins' mixture of Beta(1/2, 1/2)), however often one looks."""
    if n == 0:
        return share(k, n)
    start = math.lgamma(k + 0.5) + math.lgamma(n - k + 0.5) - math.lgamma(n + 1) - math.log(math.pi)
    most = -math.log(1 - level)

    def beyond(p: float) -> float:
        """Above 0 where the data speak against p."""
        fit = (k * math.log(p) if k else 0.0) + ((n - k) * math.log1p(-p) if k < n else 0.0)
        return start - fit - most

    value = k / n
    low = 0.0 if k == 0 else root(lambda p: -beyond(p), 0.0, value)
    high = 1.0 if k == n else root(beyond, value, 1.0)
    return Share(value, low, high)


@dataclass(frozen=True)
class ChunkAudit:
    """Of sentences of which raters have named every tag: chunks, counted as they stand and as they would stand
    had nobody erred."""

    correct: int  # that raters and the model both have
    predicted: int
    gold: int  # that raters have
    true_correct: float
    true_gold: float

    def shares(self) -> dict[str, Share]:
        """Precision, recall and F1 of what would stand. Of all chunks that either side has, the share J that both have
        is a share like any other, and F1 = 2 J / (1 + J) grows with it, so J's interval is F1's."""
        both = share(self.correct, self.predicted + self.gold - self.correct)
        f1 = Share(*(2 * each / (1 + each) for each in (both.value, both.low, both.high)))
        kept = self.true_correct / self.correct if self.correct else 1.0
        gold = self.gold / self.true_gold if self.true_gold > 0 else 1.0
        total = (self.predicted + self.gold) / max(self.predicted + self.true_gold, 1e-9)
        return {
            "precision": _times(share(self.correct, self.predicted), kept),
            "recall": _times(share(self.correct, self.gold), kept * gold),
            "f1": _times(f1, kept * total),
        }


def chunk_audit(
    theirs: set[tuple[int, int, str]], ours: set[tuple[int, int, str]], said: str, errors: Sequence[float], labels: int
) -> ChunkAudit:
    """Of one sentence. theirs, ours: (first, last + 1, type) of the raters' chunks and the model's; said: B, I or O of
    each token, as raters have it; errors: how often whoever named that tag errs.

    A chunk that raters have, too, stands for 1 over the chance that they have it if it is right (Horvitz and Thompson):
    its tags are right (B or I will do where none goes before), and the one after it does not go on with it. The number
    of chunks is that of B, each named rightly or by error.
    """
    wrong = [min(each, _MOST_LOST) for each in errors]
    weight = 0.0
    for first, last, _ in theirs & ours:
        alone = first == 0 or said[first - 1] == "O"
        chance = math.prod(1 - each for each in wrong[first:last])
        chance *= (1 - wrong[first] + alone * wrong[first] / (labels - 1)) / (1 - wrong[first])
        chance *= 1 - wrong[last] / (labels - 1) if last < len(said) else 1.0
        weight += 1 / chance
    gold = sum(_corrected(float(tag == "B"), error, labels) for tag, error in zip(said, errors, strict=True))
    return ChunkAudit(len(theirs & ours), len(ours), len(theirs), weight, gold)


def _times(found: Share, factor: float) -> Share:
    values = (found.value, found.low, found.high)
    return Share(*(each if math.isnan(each) else min(1.0, each * factor) for each in values))


def accuracy(right: int, n: int, *, error: Share | None = None, labels: int = 2, always: bool = False) -> Share:
    """Of the model, from ``right`` of n audited parts where it says what the rater says.

    error: how often raters name another label than the right one, any other as likely. They then agree with the model
    by a (1 - e) + (1 - a) e / (labels - 1), a the accuracy, where their errors are not the model's own.
    always: the interval of ``sequence``.
    """
    found = (sequence if always else share)(right, n)
    if error is None or n == 0:
        return found
    corrected = _clip(_corrected(found.value, error.value, labels))
    by_luck = (_corrected(found.low, error.value, labels), _corrected(found.high, error.value, labels))
    by_error = (_corrected(found.value, error.low, labels), _corrected(found.value, error.high, labels))
    # two sources of doubt, which add as squares (MOVER)
    middle = _corrected(found.value, error.value, labels)
    low = middle - math.hypot(middle - by_luck[0], max(0.0, middle - min(by_error)))
    high = middle + math.hypot(by_luck[1] - middle, max(0.0, max(by_error) - middle))
    return Share(corrected, _clip(low), _clip(high))


def _corrected(agreed: float, error: float, labels: int) -> float:
    by_chance = error / (labels - 1)
    kept = max(1 - error - by_chance, 1 - _MOST_LOST)
    return (agreed - by_chance) / kept


def _clip(value: float) -> float:
    return min(1.0, max(0.0, value))


def _at_least(k: int, n: int) -> Callable[[float], float]:
    """p -> Pr(k or more of n), each with chance p."""
    at = np.arange(k, n + 1)
    factorial = np.concatenate([[0.0], np.log(np.arange(1, n + 1)).cumsum()])
    ways = factorial[n] - factorial[at] - factorial[n - at]
    return lambda p: float(np.exp(ways + at * math.log(p) + (n - at) * math.log1p(-p)).sum())
