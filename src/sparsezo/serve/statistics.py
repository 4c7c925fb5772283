"""What counts say: intervals of shares, how far annotators agree and how often each errs, what more answers bring.

share(171, 200)                             # Share(value=0.855, low=0.798, high=0.901)
accuracy(171, 200, twice=100, split=12, labels=3)       # with what two annotators' disagreement says of errors
sequence(171, 200)                          # wider, and right at every n at once: look as often as you like
span_shares([SpanCounts(3, 4, 3), SpanCounts(1, 1, 2)])     # precision, recall and F1 over whole sentences
alpha([["yes", "yes"], ["no", "yes", "no"]])            # Krippendorff's, of nominal values
error_rates(person, question, yes, chance, n_people)    # e0 and e1 of each, with intervals
forecast([100, 200, 400, 800], [0.70, 0.76, 0.80, 0.83], ahead=800)
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, special

from sparsezo.errors import UsageError

Numbers = NDArray[np.float64]
Spans = set[tuple[int, int, str]]  # (first, last + 1, type)

LEVEL = 0.95  # of all intervals
ENOUGH_TWICE = 30  # audited parts that two annotators answered, before a figure is corrected for their errors


class Share(NamedTuple):
    """A share of something, as estimated, and the interval that holds it with ``LEVEL``."""

    value: float
    low: float
    high: float

    def as_dict(self) -> dict[str, float | None]:
        """As JSON has it; a share of nothing has no value."""
        return {"value": None if math.isnan(self.value) else self.value, "low": self.low, "high": self.high}


def share(k: float, n: float, *, tail: float = (1 - LEVEL) / 2) -> Share:
    """The share of k in n with Clopper and Pearson's interval, which never holds less often than it says.

    k and n need not be whole: ``clustered`` asks for as many as a sample is worth. tail: the chance at most that the
    share lies below the interval, and that it lies above.
    """
    if not 0 <= k <= n:
        raise UsageError(f"{k} of {n} is no share")
    if n == 0:
        return Share(math.nan, 0.0, 1.0)
    low = 0.0 if k == 0 else float(special.betaincinv(k, n - k + 1, tail))
    high = 1.0 if k == n else float(special.betaincinv(k + 1, n - k, 1 - tail))
    return Share(k / n, low, high)


def sequence(k: int, n: int) -> Share:
    """The share of k in n with an interval that holds at every n at once, however often one looks: Robbins' mixture of
    Beta(1/2, 1/2)."""
    if n == 0:
        return share(k, n)
    mixture = float(special.betaln(k + 0.5, n - k + 0.5)) - math.log(math.pi)

    def against(p: float) -> float:
        """Above 0 where the data speak against p."""
        return mixture - float(special.xlogy(k, p) + special.xlog1py(n - k, -p)) + math.log(1 - LEVEL)

    low = 0.0 if k == 0 else float(optimize.brentq(against, 1e-300, k / n))
    high = 1.0 if k == n else float(optimize.brentq(against, k / n, 1 - 1e-16))
    return Share(k / n, low, high)


def clustered(k: ArrayLike, n: ArrayLike, *, tail: float = (1 - LEVEL) / 2) -> Share:
    """The share of sum(k) in sum(n), where the k_i of n_i come together (a sentence each) and sentences differ.

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
    worth *= min(1.0, (_student(max(total - 1, 1.0), tail) / _student(sentences - 1, tail)) ** 2)
    found = share(value * worth, worth, tail=tail)
    return Share(value, min(found.low, value), max(found.high, value))


def _student(degrees: float, tail: float = (1 - LEVEL) / 2) -> float:
    """Student's t of an interval with so much in each tail."""
    return float(special.stdtrit(degrees, 1 - tail))


def accuracy(
    agreed: int, asked: int, twice: int = 0, split: int = 0, labels: int = 2, *, always: bool = False
) -> Share:
    """The model's accuracy, from ``agreed`` of ``asked`` audited parts where it says what an annotator said.

    twice: how many of them a second annotator answered; split: in how many of those one of the two agreed with the
    model and the other did not. labels: how many there are to name. always: intervals of ``sequence``.

    Let x be the chance that somebody agrees with the model on a part: near 1 or near 0 where annotators seldom err.
    E x is what is counted, and E x (1 - x) half of what is split, so their errors move the agreement by about
    d = (1 - sqrt(1 - 2 split / twice)) / 2, wherever they err more or less. Errors where the model is right hide
    its merit, errors that repeat the model's own hide its faults. So the interval is from what is counted to that and
    all of d. The value is corrected as if annotators erred everywhere alike and named any other label as likely, and
    that only from ``ENOUGH_TWICE`` on; it never leaves the interval of what was counted.
    """
    interval = sequence if always else share
    found = interval(agreed, asked)
    if asked == 0 or twice == 0:
        return found
    between = interval(split, twice)
    moved, most_moved = ((1 - math.sqrt(max(0.0, 1 - 2 * each))) / 2 for each in (between.value, between.high))
    value, by_chance = found.value, moved / (labels - 1)
    if twice >= ENOUGH_TWICE and moved + by_chance < 1:
        value = min(max((value - by_chance) / (1 - moved - by_chance), found.low), found.high)
    return Share(value, found.low, _upper_end(found, moved, most_moved, agreed, asked))


def _upper_end(found: Share, moved: float, most_moved: float, k: float, n: float) -> float:
    """Of an interval of k in n that annotators' errors have moved by so much: two sources of doubt add as squares
    (MOVER). Of what was not counted as the same one at least is the model's own fault."""
    high = found.value + moved + math.hypot(found.high - found.value, most_moved - moved)
    return max(found.high, min(high, share(max(k, n - 1), n).high if n >= 1 else 1.0))


class SpanCounts(NamedTuple):
    """Of one sentence of which every token was named: spans that both have, that the model has, that people have.

    same, second: spans that a second annotator has, too, and all that they have; None where nobody was asked again."""

    correct: int
    predicted: int
    gold: int
    same: int | None = None
    second: int | None = None


def span_counts(theirs: Spans, ours: Spans, others: Spans | None = None) -> SpanCounts:
    again = (None, None) if others is None else (len(theirs & others), len(others))
    return SpanCounts(len(theirs & ours), len(ours), len(theirs), *again)


def span_f1(sentences: Sequence[SpanCounts], tail: float = (1 - LEVEL) / 2) -> Share:
    """F1 of the model's spans; a wrong border is one miss, not two."""
    correct, both = (
        np.array(each, np.float64)
        for each in ([s.correct for s in sentences], [(s.predicted + s.gold) / 2 for s in sentences])
    )
    return clustered(correct, both, tail=tail)


def span_shares(sentences: Sequence[SpanCounts]) -> dict[str, Share]:
    """Precision, recall and F1 of the model's spans against what annotators said; sentences are the sample.

    The values are what was counted. Where sentences were named by two, whose F1 to each other is R, one annotator's
    to the truth is about sqrt(R), and the model may be better than it looks by 1 - sqrt(R), which the upper ends allow
    for.
    """
    correct, predicted, gold = (
        np.array([getattr(each, name) for each in sentences], np.float64) for name in ("correct", "predicted", "gold")
    )
    # a wrong border is one miss of F1, not two
    of = {"precision": predicted, "recall": gold, "f1": (predicted + gold) / 2}
    found = {name: clustered(correct, n) for name, n in of.items()}
    pairs = [(each.same, (each.gold + each.second) / 2) for each in sentences if each.second is not None]
    between = clustered(*zip(*pairs, strict=True)) if pairs else share(0, 0)
    if math.isnan(between.value):
        return found
    moved, most_moved = 1 - math.sqrt(between.value), 1 - math.sqrt(between.low)
    for name, each in found.items():
        if not math.isnan(each.value):
            high = _upper_end(each, moved, most_moved, correct.sum(), of[name].sum())
            found[name] = Share(each.value, each.low, high)
    return found


# Annotators


def alpha(units: Iterable[Sequence[Hashable]]) -> float | None:
    """Krippendorff's alpha of nominal values. 1: all agree; 0: as by chance.

    None where nothing was asked twice, or only one value was ever said.
    """
    pairs: dict[tuple[Hashable, Hashable], float] = Counter()  # type: ignore[assignment]
    for values in units:
        if len(values) < 2:
            continue
        counts = Counter(values)
        for a, n_a in counts.items():
            for b, n_b in counts.items():
                pairs[a, b] += (n_a * (n_b - (a == b))) / (len(values) - 1)
    margin: dict[Hashable, float] = Counter()  # type: ignore[assignment]
    for (a, _), n in pairs.items():
        margin[a] += n
    expected = sum(margin[a] * margin[b] for a in margin for b in margin if a != b)
    if expected == 0:
        return None
    observed = sum(n for (a, b), n in pairs.items() if a != b)
    return float(1 - (sum(pairs.values()) - 1) * observed / expected)


class ErrorRates(NamedTuple):
    """One annotator's. e0: yes, though wrong; e1: no, though right."""

    e0: Share
    e1: Share


_WORST = 0.5  # nobody is taken to say the contrary on purpose: a rate is half of sigma(its parameter)
_USUAL, _SPREAD = -1.4, 1.2  # of that parameter, before anything is known: a rate of 0.1, from 0.01 to 0.36
_TIED = 0.7  # of the difference of an annotator's two parameters: who errs one way errs the other
_LOOSE = 1.0  # spread of the calibration's two parameters about "as the model says"
_EDGE = 1e-4  # of a chance that the model gives


def error_rates(
    person: NDArray[np.int64], question: NDArray[np.int64], yes: NDArray[np.bool_], chance: Numbers, n_people: int
) -> list[ErrorRates]:
    """How often each annotator errs, from questions that more than one was asked.

    person, question, yes: one entry an answer. chance: one a question, of a yes, as the model had it before.

    Nobody knows the right answers. Dawid and Skene's way out is to take them as hidden: each annotator errs at rates of
    their own, and the answers to one question are independent given the right one. The model is one more rater: its
    chance of a yes, before the answer came, is where the right answer starts from, once that is calibrated. What comes
    out is most likely under a weak belief that people err in one of ten, with intervals from the curvature there.
    """
    n, logit = n_people, special.logit(np.clip(chance, _EDGE, 1 - _EDGE))
    usual = np.array([_USUAL] * (2 * n) + [0.0, 1.0])  # e0 of all, e1 of all, the calibration's shift and slope
    # what was believed before, as a precision: each parameter's own, and that an annotator's two are alike
    before = np.diag([1 / _SPREAD**2] * (2 * n) + [1 / _LOOSE**2] * 2)
    for a, b in ((k, n + k) for k in range(n)):
        before[[a, b], [a, b]] += 1 / _TIED**2
        before[[a, b], [b, a]] -= 1 / _TIED**2

    def fitted(at: Numbers) -> tuple[float, Numbers, Numbers, Numbers]:
        """(log likelihood, each answer's slopes in its e0 and its e1, each question's in the shift)"""
        rates = _WORST * special.expit(at[:-2])
        inner = rates * (1 - rates / _WORST)  # d rate / d parameter
        e0, e1 = rates[:n][person], rates[n:][person]
        said_yes, said_no = (
            np.bincount(question, np.log(each), minlength=len(logit))
            for each in (np.where(yes, 1 - e1, e1), np.where(yes, e0, 1 - e0))
        )
        start = at[-2] + at[-1] * logit
        right = special.expit(start + said_yes - said_no)
        value = np.logaddexp(special.log_expit(start) + said_yes, special.log_expit(-start) + said_no).sum()
        for_e0 = (1 - right[question]) * np.where(yes, 1 / e0, -1 / (1 - e0)) * inner[:n][person]
        for_e1 = right[question] * np.where(yes, -1 / (1 - e1), 1 / e1) * inner[n:][person]
        return float(value), for_e0, for_e1, right - special.expit(start)

    def loss(at: Numbers) -> tuple[float, Numbers]:
        value, for_e0, for_e1, shift = fitted(at)
        slopes = [np.bincount(person, each, minlength=n) for each in (for_e0, for_e1)]
        off = at - usual
        gradient = np.concatenate([*slopes, [shift.sum(), shift @ logit]]) - before @ off
        return off @ before @ off / 2 - value, -gradient

    at: Numbers = optimize.minimize(loss, usual, jac=True, method="BFGS").x
    _, for_e0, for_e1, shift = fitted(at)
    slopes = np.zeros((len(logit), len(at)))
    np.add.at(slopes, (question, person), for_e0)
    np.add.at(slopes, (question, n + person), for_e1)
    slopes[:, -2], slopes[:, -1] = shift, shift * logit
    # that of the slopes' squares is what the curvature is in the mean (Berndt, Hall, Hall and Hausman)
    covariance = np.linalg.inv(slopes.T @ slopes + before)
    wide = 1.96 * np.sqrt(np.diag(covariance))
    rates = [Share(*(float(_WORST * special.expit(at[k] + by * wide[k])) for by in (0, -1, 1))) for k in range(2 * n)]
    return [ErrorRates(rates[j], rates[n + j]) for j in range(n)]


class ReviewCounts(NamedTuple):
    """Of sentences that two annotators reviewed, of one of the two. Parts are runs of tokens that were changed.

    theirs: parts that the other one changed; both: of these, the ones that this one changed, too; differ: of these,
    the ones of which the two say different things."""

    theirs: int = 0
    both: int = 0
    differ: int = 0


_OVERLOOKED, _MISTAKEN, _SEEN_BEFORE = 0.1, 0.02, 5.0  # believed before anything is known, and how many parts that is


def overlooked(counts: ReviewCounts) -> Share:
    """The share of what is wrong that an annotator leaves standing: capture and recapture.

    What the other one found and set right is a sample of what is wrong, and how much of it this one has found, too, is
    seen. Errors that nobody finds are taken to be as those that somebody finds.
    """
    missed = counts.theirs - counts.both
    a = missed + _OVERLOOKED * _SEEN_BEFORE
    b = counts.both + (1 - _OVERLOOKED) * _SEEN_BEFORE
    low, high = (float(special.betaincinv(a, b, p)) for p in ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    return Share(a / (a + b), low, high)


def review_rates(counts: ReviewCounts, changed: float) -> ErrorRates:
    """How often a tag is wrong that an annotator left standing (e0), and one that they set by hand (e1).

    ``changed``: the share of all tokens that they changed. With o the share that they overlook, changed / (1 - o) of
    the tokens were wrong. Where both changed a part and differ, one of them has erred.
    """
    missed = overlooked(counts)
    left = [changed * o / (1 - o) / max(1 - changed, 0.05) for o in (min(each, 0.9) for each in missed)]
    a = counts.differ / 2 + _MISTAKEN * _SEEN_BEFORE
    b = counts.both - counts.differ / 2 + (1 - _MISTAKEN) * _SEEN_BEFORE
    wrong = [a / (a + b), *(float(special.betaincinv(a, b, p)) for p in ((1 - LEVEL) / 2, (1 + LEVEL) / 2))]
    return ErrorRates(Share(*(min(each, 1.0) for each in left)), Share(*wrong))


# Forecasts

_POWERS = np.geomspace(0.1, 2.0, 30)  # c
_LEAST_POINTS = 4
_FIRST = 20  # answers; what a curve does before is no law
_RECENT = 8  # points from an eighth of the answers on are fitted
_BEFORE = 12  # earlier forecasts that are looked at
_FLOOR = 1e-3  # of the points' own noise


def forecast(answers: Sequence[float], values: Sequence[float], ahead: int) -> dict[str, float] | None:
    """What ``ahead`` more answers would bring, from the learning curve so far; None where there are too few points.

    Returns the value then with its interval (low, high), the gain, and whether that is within the noise.

    Learning curves fall off as a power of the number of answers: value(n) = a - b n^-c. For each c of a grid, a and b
    have a least-squares fit to the later part of the curve, with its own uncertainty; the forecast is the mean over c
    by how well each fits. No law holds for long, so the interval also has what forecasts of the same kind, made earlier
    on this curve, were off by. Points of one curve share their audit set (or dev set), and so an offset; a gain is a
    difference, in which that cancels.
    """
    n, v = np.asarray(answers, float), np.asarray(values, float)
    used = (n >= _FIRST) & np.isfinite(v)
    n, v = n[used], v[used]
    now = _extrapolated(n, v, ahead / n.max()) if n.size else None
    if now is None:
        return None
    value, gain, deviation, wide = now
    room = max(0.0, 1.0 - value)
    gain = min(gain, room)
    off = wide * math.hypot(deviation, _off_before(n, v, ahead / n.max(), gain))
    low, high = gain - off, max(min(gain + off, room), gain)
    then = {"value": value + gain, "gain": gain, "low": value + low, "high": value + high}
    return {"answers": int(ahead), **then, "within_noise": low <= 0}


def _extrapolated(n: Numbers, v: Numbers, ratio: float) -> tuple[float, float, float, float] | None:
    """(value now, gain of ``ratio`` times as many answers more, its deviation, how wide an interval is in these)."""
    now = n.max()
    n, v = n[n >= now / _RECENT], v[n >= now / _RECENT]
    if len(np.unique(n)) < _LEAST_POINTS:
        return None
    fits = [_fitted(n, v, c, now, now * (1 + ratio)) for c in _POWERS]
    loss = np.array([fit[0] for fit in fits])
    degrees = len(n) - 3  # three of the points' go into a, b and c
    sigma2 = max(loss.min() / degrees, _FLOOR**2)
    weight = np.exp(-(loss - loss.min()) / (2 * sigma2))
    weight /= weight.sum()
    gains = np.clip([fit[1] for fit in fits], 0.0, None)
    spreads = np.array([fit[2] for fit in fits]) * sigma2
    gain = float(weight @ gains)
    deviation = math.sqrt(float(weight @ (spreads + (gains - gain) ** 2)))
    return float(weight @ [fit[3] for fit in fits]), gain, deviation, _student(degrees)


def _off_before(n: Numbers, v: Numbers, ratio: float, gain: float) -> float:
    """What forecasts so far ahead, made earlier, were off by; the smaller the gain is now, the less that means."""
    off = []
    for then in sorted(set(n[n * (1 + ratio) <= n.max()].tolist()))[-_BEFORE:]:
        made = _extrapolated(n[n <= then], v[n <= then], ratio)
        if made is not None:
            before, after = np.interp(np.log([then, then * (1 + ratio)]), np.log(n), v)
            off.append((float(after - before) - made[1]) * min(1.0, (gain + _FLOOR) / (made[1] + _FLOOR)))
    return math.sqrt(sum(each * each for each in off) / len(off)) if off else 0.0


def _fitted(n: Numbers, v: Numbers, c: float, now: float, then: float) -> tuple[float, float, float, float]:
    """(sum of squares, gain, the gain's variance in units of the noise's, value now) of the fit with one power."""
    X = np.stack([np.ones_like(n), -(n**-c)], axis=1)
    inverse = np.linalg.pinv(X.T @ X)
    fit = inverse @ X.T @ v
    fit[1] = max(fit[1], 0.0)
    loss = float(((v - X @ fit) ** 2).sum())
    step = np.array([0.0, now**-c - then**-c])
    return loss, float(step @ fit), float(step @ inverse @ step), float(fit[0] - fit[1] * now**-c)
