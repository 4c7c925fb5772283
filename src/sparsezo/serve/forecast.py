"""What so many more answers would bring, from the learning curve so far.

    forecast([100, 200, 400, 800], [0.70, 0.76, 0.80, 0.83], ahead=800)     # Forecast(gain=0.02, low=..., high=...)

Learning curves fall off as a power of the number of answers: value(n) = a - b n^-c. For each c of a grid, a and b have
a least-squares fit to the later part of the curve, with its own uncertainty; the forecast is the mean over c by how
well each fits. No law holds for long, so the interval also has what forecasts of the same kind, made earlier on this
curve, were off by. Points of one curve share their audit set (or dev set), and so an offset; a gain is a difference, in
which that cancels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

_POWERS = np.geomspace(0.1, 2.0, 30)  # c
_LEAST_POINTS = 4
_FIRST = 20  # answers; what a curve does before is no law
_RECENT = 8  # points from an eighth of the answers on are fitted
_BEFORE = 12  # earlier forecasts that are looked at
_FLOOR = 1e-3  # of the points' own noise
# Student's t at 0.975, by degrees of freedom: three of the points' go into a, b and c
_STUDENT = ((1, 12.71), (2, 4.30), (3, 3.18), (4, 2.78), (5, 2.57), (7, 2.36), (10, 2.23), (20, 2.09), (50, 2.01))


@dataclass(frozen=True)
class Forecast:
    """gain: of so many more answers, with its interval; noise: whether it cannot be told from none."""

    answers: int
    value: float
    gain: float
    low: float
    high: float
    noise: bool


def forecast(answers: Sequence[float], values: Sequence[float], ahead: int, top: float = 1.0) -> Forecast | None:
    """None where there are too few points to say anything. top: the best value there is."""
    n, v = np.asarray(answers, float), np.asarray(values, float)
    used = (n >= _FIRST) & np.isfinite(v)
    n, v = n[used], v[used]
    now = _at(n, v, ahead / n.max()) if n.size else None
    if now is None:
        return None
    value, gain, deviation, wide = now
    room = max(0.0, top - value)
    gain = min(gain, room)
    off = wide * math.hypot(deviation, _off_before(n, v, ahead / n.max(), gain))
    low, high = gain - off, min(gain + off, room)
    return Forecast(int(ahead), value, gain, low, max(high, gain), low <= 0)


def _at(n: Numbers, v: Numbers, ratio: float) -> tuple[float, float, float, float] | None:
    """(value now, gain of ``ratio`` times as many answers more, its deviation, how wide an interval is in these)."""
    now = n.max()
    n, v = n[n >= now / _RECENT], v[n >= now / _RECENT]
    if len(np.unique(n)) < _LEAST_POINTS:
        return None
    fits = [_fitted(n, v, c, now, now * (1 + ratio)) for c in _POWERS]
    loss = np.array([fit[0] for fit in fits])
    degrees = len(n) - 3
    sigma2 = max(loss.min() / degrees, _FLOOR**2)
    weight = np.exp(-(loss - loss.min()) / (2 * sigma2))
    weight /= weight.sum()
    gains = np.clip([fit[1] for fit in fits], 0.0, None)
    spreads = np.array([fit[2] for fit in fits]) * sigma2
    gain = float(weight @ gains)
    deviation = math.sqrt(float(weight @ (spreads + (gains - gain) ** 2)))
    wide = next((t for most, t in _STUDENT if degrees <= most), 1.96)
    return float(weight @ [fit[3] for fit in fits]), gain, deviation, wide


def _off_before(n: Numbers, v: Numbers, ratio: float, gain: float) -> float:
    """What forecasts so far ahead, made earlier, were off by; the smaller the gain is now, the less that means."""
    off = []
    for then in sorted(set(n[n * (1 + ratio) <= n.max()].tolist()))[-_BEFORE:]:
        made = _at(n[n <= then], v[n <= then], ratio)
        if made is not None:
            before, after = np.interp(np.log([then, then * (1 + ratio)]), np.log(n), v)
            came = float(after - before)
            off.append((came - made[1]) * min(1.0, (gain + _FLOOR) / (made[1] + _FLOOR)))
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
