"""How good the model is, without gold: by an audit set that is drawn first, asked blind and never learned from.

All audited parts so far are scored again with the present model, so n of them are n independent throws with its
agreement with people as the chance: an audited part is no matter of what was asked or learned. People err, too; how
often they do so there is known only of parts that two people were asked about.

    accuracy(171, 200)                          # Share(value=0.855, low=0.799, high=0.901): as counted
    accuracy(171, 200, twice=100, split=12, labels=3)       # of 100 asked twice, one of two agreed with the model in 12
    sequence(171, 200)                          # wider, and right at every n at once: look as often as you like
    span_shares([SpanCounts(3, 4, 3), SpanCounts(1, 1, 2)])     # precision, recall and F1 over whole sentences
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sparsezo.bisection import root
from sparsezo.errors import UsageError

LEVEL = 0.95  # of all intervals
ENOUGH_TWICE = 30  # audited parts that two people answered, before the figure is corrected for people's errors
_TERMS = 400  # of the continued fraction, at most
_TINY = 1e-300


@dataclass(frozen=True)
class Share:
    """A share of something, as estimated, and the interval that holds it with ``LEVEL``."""

    value: float
    low: float
    high: float

    def as_dict(self) -> dict[str, float | None]:
        """A share of nothing has no value."""
        return {"value": None if math.isnan(self.value) else self.value, "low": self.low, "high": self.high}


def share(k: float, n: float, level: float = LEVEL) -> Share:
    """Of k in n: Clopper and Pearson's interval, which never holds less often than it says.

    k and n need not be whole: ``clustered`` asks for so many as a sample is worth.
    """
    if not 0 <= k <= n:
        raise UsageError(f"{k} of {n} is no share")
    if n == 0:
        return Share(math.nan, 0.0, 1.0)
    tail = (1 - level) / 2
    low = 0.0 if k == 0 else root(lambda p: _beta(p, k, n - k + 1) - tail)
    high = 1.0 if k == n else root(lambda p: _beta(p, k + 1, n - k) - (1 - tail))
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


def clustered(k: ArrayLike, n: ArrayLike) -> Share:
    """Of sum(k) in sum(n), where the k_i of n_i come together (a sentence each), and one sentence is not like another.

    Korn and Graubard's interval: Clopper and Pearson's, of as many independent throws as have the variance of the ratio
    (by leaving out one sentence at a time), fewer where that variance is known from few sentences.
    """
    inside, of = (np.asarray(each, np.float64) for each in (k, n))
    inside, of = inside[of > 0], of[of > 0]
    sentences, total = len(of), float(of.sum())
    if sentences == 0:
        return share(0, 0)
    value = min(1.0, float(inside.sum()) / total)
    if sentences == 1:
        return Share(value, 0.0, 1.0)  # how much sentences differ cannot be seen in one
    without = (inside.sum() - inside) / (total - of)
    variance = float(np.square(without - value).sum()) * (sentences - 1) / sentences
    worth = min(total, value * (1 - value) / variance) if variance > 0 else total
    worth *= min(1.0, (_student(max(total - 1, 1.0)) / _student(sentences - 1)) ** 2)
    return _named(share(value * worth, worth), value)


def accuracy(
    agreed: int, asked: int, *, twice: int = 0, split: int = 0, labels: int = 2, always: bool = False
) -> Share:
    """Of the model, from ``agreed`` of ``asked`` audited parts where it says what a person said.

    twice: how many of them a second person answered; split: in how many of those one of the two agreed with the model
    and the other did not. labels: how many there are to name. always: intervals of ``sequence``.

    Let x be the chance that somebody agrees with the model on a part: near 1 or near 0 where people seldom err.
    E x is what is counted, and E x (1 - x) half of what is split, so people's errors move the agreement by about
    d = (1 - sqrt(1 - 2 split / twice)) / 2, wherever they err more or less. Errors where the model is right hide
    its merit, errors that repeat the model's own hide its faults. So the interval is from what is counted to that and
    all of d. The value is corrected as if people erred everywhere alike and named any other label as likely, and that
    only from ``ENOUGH_TWICE`` on; it never leaves the interval of what was counted.
    """
    interval = sequence if always else share
    found = interval(agreed, asked)
    if asked == 0 or twice == 0:
        return found
    between = interval(split, twice)
    moved, most_moved = _moved(between.value), _moved(between.high)
    # two sources of doubt, which add as squares (MOVER)
    high = found.value + moved + math.hypot(found.high - found.value, most_moved - moved)
    by_chance = moved / (labels - 1)
    value = found.value
    if twice >= ENOUGH_TWICE and moved + by_chance < 1:
        value = (found.value - by_chance) / (1 - moved - by_chance)
    value = min(max(value, found.low), found.high)
    return Share(value, found.low, max(found.high, min(high, _short_of_all(agreed, asked))))


def _moved(split: float) -> float:
    """e of 2 e (1 - e) = split."""
    return (1 - math.sqrt(max(0.0, 1 - 2 * split))) / 2


def _short_of_all(k: float, n: float) -> float:
    """Of what was not counted as the same one at least is the model's own fault."""
    return share(max(k, n - 1), n).high if n >= 1 else 1.0


@dataclass(frozen=True)
class SpanCounts:
    """Of one sentence of which every token was named: spans that both have, that the model has, that people have.

    same, second: spans that a second person has, too, and all that they have; None where nobody was asked again.
    """

    correct: int
    predicted: int
    gold: int
    same: int | None = None
    second: int | None = None


def span_counts(
    theirs: set[tuple[int, int, str]],
    ours: set[tuple[int, int, str]],
    others: set[tuple[int, int, str]] | None = None,
) -> SpanCounts:
    """Of one sentence. (first, last + 1, type) of a person's spans, the model's, and a second person's."""
    again = (None, None) if others is None else (len(theirs & others), len(others))
    return SpanCounts(len(theirs & ours), len(ours), len(theirs), *again)


def span_shares(sentences: Sequence[SpanCounts]) -> dict[str, Share]:
    """Precision, recall and F1 of the model's spans, against what people said; sentences are the sample.

    The values are what was counted. Where sentences were named by two people, whose F1 to each other is R, one person's
    to the truth is about sqrt(R), and the model may be better than it looks by 1 - sqrt(R), which the upper ends allow
    for.
    """
    correct, predicted, gold = (
        np.array([getattr(each, name) for each in sentences], np.float64) for name in ("correct", "predicted", "gold")
    )
    found = {
        "precision": clustered(correct, predicted),
        "recall": clustered(correct, gold),
        "f1": clustered(correct, (predicted + gold) / 2),  # a wrong border is one miss of it, not two
    }
    pairs = [(each.same, (each.gold + each.second) / 2) for each in sentences if each.second is not None]
    of = {"precision": predicted, "recall": gold, "f1": (predicted + gold) / 2}
    if pairs:
        between = clustered(*zip(*pairs, strict=True))
        found = {name: _allowing(each, between, correct.sum(), of[name].sum()) for name, each in found.items()}
    return found


def _allowing(found: Share, between: Share, k: float, n: float) -> Share:
    """found, of k in n, with what two people's F1 to each other says of people's errors in its upper end."""
    if math.isnan(found.value) or math.isnan(between.value):
        return found
    moved, most_moved = 1 - math.sqrt(between.value), 1 - math.sqrt(between.low)
    high = found.value + moved + math.hypot(found.high - found.value, most_moved - moved)
    return Share(found.value, found.low, max(found.high, min(high, _short_of_all(k, n))))


def _named(found: Share, value: float) -> Share:
    return Share(value, min(found.low, value), max(found.high, value))


@functools.lru_cache(1024)
def _student(degrees: float) -> float:
    """t that Student's distribution passes, on either side, with 1 - LEVEL."""
    x = root(lambda x: _beta(x, degrees / 2, 0.5) - (1 - LEVEL))
    return math.sqrt(degrees * (1 - x) / x)


def _beta(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function: Pr(a Beta(a, b) variable is below x). By its continued fraction
    (Lentz's way of computing it), from the side where that converges fast."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta(1 - x, b, a)
    front = a * math.log(x) + b * math.log1p(-x) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) - math.log(a)
    c, d = 1.0, 1 / _apart(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, _TERMS):
        before = value
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d, c = 1 / _apart(1 + numerator * d), _apart(1 + numerator / c)
            value *= c * d
        if abs(value - before) <= 1e-15 * abs(value):
            break
    return math.exp(front) * value


def _apart(value: float) -> float:
    """From 0."""
    return value if abs(value) > _TINY else _TINY
