"""How ``minimize`` walks where nobody gives h and mu: three ways of finding the length of a step by itself.

All are generators. They yield a ``Batch`` of points whose losses they want, are sent these, and never see F; whoever
drives them decides where the points are evaluated and when it is enough.

``line_searches``, for an F(w) without noise and with slopes: along one weight after the other in random order, or along
dense Gaussian directions, or, up to 2,000 weights, along quasi-Newton directions (L-BFGS of slopes along all weights,
each from one value, freed of the curvature that searches along the weight have shown): whichever has lowered F more
for an evaluation lately; and along the moves of the last rounds. A search has three values, a parabola's lowest point
where they curve upward, and takes the best it has seen.

``noisy_steps``, for an F(w) with noise: symmetric differences d = F(w + mu u) - F(w - mu u), u ~ N(0, I), and the step

    c = -d / (2 mu) / kappa * (1 - 2 s^2 / mean d^2)

kappa: the mean of (F(w + mu u) - 2 F(w) + F(w - mu u)) / mu^2, which a step in five pays for; s^2: the noise, from
repeated values; the last factor is the share of d^2 that is no noise, so that steps get shorter as noise is all that is
left. mu moves by 2% a step to where d stands ten times above the noise, and is at most the distance gone by a weight.

``ranked_steps``, for an F(w) without noise that is made of steps (counts of errors, 1 - F1), where slopes are 0 and
ties many: evolution by ranks alone (CMA-ES with a variance for each weight, Ros and Hansen 2008). Points that tie share
their weights, and steps get longer where a quarter of the points or more tie for the best.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsezo.kernels import random

Vector = NDArray[np.float64]

_START = 0.1  # the first step along a weight, times the weights' own size where they start elsewhere than at 0
_ROUND, _SWEEP = 200, 2_000  # dense searches, and those along weights, after which it is asked which serve better
_OTHER = 8  # a round in so many has the other directions
_LAST = 5  # moves of rounds that are searched along once more
_ROUND_OF_SLOPES, _PAIRS = 3, 20  # quasi-Newton searches of a round; moves and changes of slopes that they remember
_SHORTER = 4  # steps, each a sixteenth of the one before, until one of them lowers F
_NEAR = 0.03  # how far a slope looks, times how far a weight has gone
_SLOPES = 16  # slopes that are asked for at a time
_UPWARD = 1e-8  # the cosine between a move and the change of slopes: that and less is no curvature
_FARTHEST = 100.0  # times a search's own step that the parabola's lowest point may be away
_FLAT = 4.0  # a step that changed nothing is so many times longer the next time
_CURVED, _REPEATED = 5, 20  # a step in so many also asks for F(w); for F(w) again
_MEMORY = 0.02  # least weight of the newest value in means of curvature and noise, half of it for d^2
_ABOVE = 100.0  # mean d^2 over the noise's, which mu is moved to
_LONGEST = 3.0  # a step, in mu u
_PROBES, _TINY, _STEEP = 4, 1e-5, 0.03  # pairs of points so far apart; slopes beside differences: less, and F is steps
_WIDE = 5.0  # how wide points by ranks are drawn at first, times a first step
_LONGER = 0.2  # and by how much wider, in logarithms, where they tie


class Point(NamedTuple):
    """Weights to evaluate F at: ``values`` at the weights ``where`` (None: all), the others as the walk has them."""

    where: NDArray[np.int64] | None
    values: Vector


@dataclass(frozen=True)
class Batch:
    """Points whose losses are wanted, all of them independent of each other, and the walk's weights as they are."""

    points: list[Point]
    w: Vector
    nit: int


Walk = Generator[Batch, list[float], None]


def first_step(w: Vector) -> float:
    """How far to look at first, where nothing is known of F: a tenth, or of the weights' own size if they have one."""
    return _START * (float(np.sqrt(np.mean(w**2))) or 1.0)


def generator(seed: int) -> np.random.Generator:
    """The draws of a walk, by the run's seed."""
    return np.random.default_rng(int(random.stream_key(seed, random.PERTURBATION)))


class _Lines:
    """The state of ``line_searches``: w, its loss, and how far to look along each weight and along dense directions."""

    def __init__(self, w: Vector, F: float, seed: int) -> None:
        self.w, self.F, self.nit = w, F, 0
        self.rng = generator(seed)
        self.usual = first_step(w)  # along a weight that was not looked along before
        self.steps = np.zeros(w.size)  # along each weight; 0: the usual one
        self.dense = self.usual * math.sqrt(w.size)
        self.farthest = 1e6 * self.usual
        self.order: list[int] = []
        self.curved = np.zeros(w.size)  # curvature along each weight, as its last search showed it; 0: none above 0
        self.look = _NEAR * self.usual  # how far a slope looks
        self.pairs: list[tuple[Vector, Vector]] = []  # moves, and by how much the slopes changed
        self.seen: tuple[Vector, Vector] | None = None  # weights and their slopes, the last time

    def take(self, count: int) -> NDArray[np.int64]:
        """The next weights, each once a sweep, in random order."""
        if not self.order:
            self.order = self.rng.permutation(self.w.size).tolist()
        taken, self.order = self.order[:count], self.order[count:]
        return np.array(taken, np.int64)

    def search(
        self, where: NDArray[np.int64] | None, directions: Vector, steps: Vector
    ) -> Generator[Batch, list[float], Vector]:
        """Searches from w along ``directions``: one dense direction (``where`` None), or the weights ``where``, each
        by itself. Moves w; returns the steps to look along them with the next time."""
        count = steps.size
        here = self.w if where is None else self.w[where]

        def at(t: Vector) -> Point:
            return Point(where, here + t * directions)

        one = np.eye(count)
        tried = [at(sign * steps * one[i]) for i in range(count) for sign in (1, -1)]
        values = np.array((yield Batch(tried, self.w, self.nit)))
        plus, minus = values[::2], values[1::2]
        t = _lowest(self.F, plus, minus, steps)
        if where is not None:
            curve = (plus + minus - 2 * self.F) / steps**2
            self.curved[where] = np.where(np.isfinite(curve) & (curve > 0), curve, 0.0)
        if (t != 0).any():
            tried.append(at(t))
            values = np.append(values, (yield Batch(tried[-1:], self.w, self.nit)))
        best = int(np.argmin(values))
        moved = np.zeros(count)
        if values[best] < self.F:
            self.F = float(values[best])
            moved = (
                t if best == 2 * count else one[best // 2] * (steps[best // 2] if best % 2 == 0 else -steps[best // 2])
            )
            if where is None:
                self.w = tried[best].values
            else:
                self.w = self.w.copy()
                self.w[where] = tried[best].values
        self.nit += count
        flat = (plus == self.F) & (minus == self.F) & (moved == 0)
        gone = np.abs(np.where(moved != 0, moved, t if count > 1 else 0.0))
        return np.minimum(np.where(flat, steps * _FLAT, np.clip(gone, steps / _FLAT, steps * _FLAT)), self.farthest)

    def newton(self, ahead: int) -> Generator[Batch, list[float], None]:
        """A search along a quasi-Newton direction (L-BFGS, on curvatures along the weights), from all slopes."""
        g = np.empty(self.w.size)
        for begin in range(0, g.size, max(ahead, _SLOPES)):
            where = np.arange(begin, min(begin + max(ahead, _SLOPES), g.size))
            points = [Point(where[i : i + 1], self.w[where[i : i + 1]] + self.look) for i in range(where.size)]
            values = np.array((yield Batch(points, self.w, self.nit)))
            g[where] = (values - self.F) / self.look - 0.5 * self.look * self.curved[where]
        if not np.isfinite(g).all():
            return
        if self.seen is not None:
            s, y = self.w - self.seen[0], g - self.seen[1]
            if s @ y > _UPWARD * np.linalg.norm(s) * np.linalg.norm(y):
                self.pairs = [*self.pairs[-_PAIRS + 1 :], (s, y)]
        self.seen = self.w, g
        direction = -self._solved(g)
        if not direction @ g < 0:
            self.pairs, direction = [], -self._solved(g)
        before = self.w
        for shorter in range(_SHORTER):
            if self.w is before:
                yield from self.search(None, direction, np.array([_FLAT ** (-2 * shorter)]))
        gone = float(np.linalg.norm(self.w - before)) / math.sqrt(g.size)
        self.look = min(max(_NEAR * gone, self.look / _FLAT), self.look * _FLAT)

    def _solved(self, g: Vector) -> Vector:
        """L-BFGS's two loops: about the inverse of the curvature, times g."""
        known = self.curved > 0
        D = np.where(known, self.curved, self.curved[known].mean() if known.any() else 1.0)
        q, alphas = g.copy(), []
        for s, y in reversed(self.pairs):
            alphas.append((s @ q) / (s @ y))
            q -= alphas[-1] * y
        q /= D
        if self.pairs:
            s, y = self.pairs[-1]
            q *= (s @ y) / (y @ (y / D))
        for (s, y), alpha in zip(self.pairs, reversed(alphas), strict=True):
            q += (alpha - (y @ q) / (s @ y)) * s
        return q


def _lowest(F: float, plus: Vector, minus: Vector, steps: Vector) -> Vector:
    """Where a parabola through three values is lowest; four steps downhill where they do not curve upward."""
    with np.errstate(all="ignore"):
        curve = plus + minus - 2 * F
        lowest = -(plus - minus) * steps / (2 * curve)
        t = np.where(
            curve > 0, np.clip(lowest, -_FARTHEST * steps, _FARTHEST * steps), 4 * steps * np.sign(minus - plus)
        )
    return np.where(np.isfinite(t), t, 0.0)


def line_searches(w: Vector, F: float, seed: int, ahead: int) -> Walk:
    """A walk from w, whose loss is F, by searches along lines; ``ahead`` of them at a time along weights."""
    lines = _Lines(w, F, seed)
    served = {"weights": 1.0, "dense": 0.0}  # how much an evaluation lowered log F
    if w.size <= _SWEEP:
        served["newton"] = 0.5  # the second round
    moves: list[Vector] = []
    for number in range(2**62):
        best = max(served, key=lambda kind: served[kind])
        others = [kind for kind in served if kind != best]
        kind = others[number // _OTHER % len(others)] if number % _OTHER == _OTHER - 1 else best
        before, F_before, done = lines.w, lines.F, lines.nit
        if kind == "newton":
            for _ in range(_ROUND_OF_SLOPES):
                yield from lines.newton(ahead)
            cost = _ROUND_OF_SLOPES * (w.size + 3)
        else:
            while lines.nit - done < (min(_ROUND, w.size) if kind == "dense" else min(_SWEEP, w.size)):
                if kind == "weights":
                    where = lines.take(ahead)
                    steps = np.where(lines.steps[where] > 0, lines.steps[where], lines.usual)
                    new = yield from lines.search(where, np.ones(where.size), steps)
                    lines.steps[where] = new
                    lines.usual *= math.exp(0.1 * float(np.mean(np.log(new / lines.usual))))
                else:
                    u = lines.rng.standard_normal(w.size) / math.sqrt(w.size)
                    step = (yield from lines.search(None, u, np.array([lines.dense])))[0]
                    lines.dense *= math.exp(0.1 * math.log(step / lines.dense))
            cost = 3 * (lines.nit - done)
        served[kind] = _lowered(F_before, lines.F) / cost
        if kind != "newton" and (lines.w != before).any():
            moves = [*moves[-_LAST + 1 :], lines.w - before]
            for move in reversed(moves):
                yield from lines.search(None, move, np.array([0.5]))


def _lowered(before: float, after: float) -> float:
    """By how much in logarithms; relatively, where F is not positive."""
    if after > 0:
        return math.log(before) - math.log(after)
    return (before - after) / (max(abs(before), abs(after)) or 1.0)


class _Mean:
    """A mean in which the newest value has at least this weight."""

    def __init__(self, least: float) -> None:
        self.value, self.count, self.least = 0.0, 0, least

    def add(self, new: float) -> None:
        self.count += 1
        self.value += (new - self.value) * max(1 / self.count, self.least)


def noisy_steps(w: Vector, repeated: list[float], seed: int, ahead: int) -> Walk:
    """A walk from w, at which F has been ``repeated``, by symmetric differences; ``ahead`` of them at a time."""
    rng, start, n = generator(seed), w.copy(), w.size
    noise, curvature, squares = _Mean(_MEMORY), _Mean(_MEMORY), _Mean(_MEMORY / 2)
    mean = math.fsum(repeated) / len(repeated)
    for value in repeated:
        noise.add((value - mean) ** 2 * len(repeated) / (len(repeated) - 1))
    mu = cap = first_step(w)
    nit = 0
    while True:
        u = rng.standard_normal((ahead, n))
        points = [Point(None, w + sign * mu * u[i]) for i in range(ahead) for sign in (1, -1)]
        at_w = [nit + i for i in range(ahead) if (nit + i) % _CURVED == 0]  # steps that ask for F(w), too
        points += [Point(None, w)] * (len(at_w) + sum(k % _REPEATED == 0 for k in at_w))
        values = yield Batch(points, w, nit)
        more = iter(values[2 * ahead :])
        moved = np.zeros(n)
        for i in range(ahead):
            plus, minus = values[2 * i], values[2 * i + 1]
            if nit % _CURVED == 0:
                F = next(more)
                curvature.add((plus - 2 * F + minus) / mu**2)
                if nit % _REPEATED == 0:
                    noise.add((next(more) - F) ** 2 / 2)
            d = plus - minus
            squares.add(d * d)
            share = max(0.0, 1 - 2 * noise.value / squares.value) if squares.value > 0 else 0.0
            c = -d / (2 * mu) / curvature.value * share if curvature.value > 0 else -mu * float(np.sign(d))
            moved += min(max(c, -_LONGEST * mu), _LONGEST * mu) * u[i]
            nit += 1
            if squares.value < _ABOVE * 2 * noise.value:
                mu *= math.exp(_MEMORY)
            elif squares.value > 4 * _ABOVE * 2 * noise.value and mu > 1e-4 * cap:
                mu *= math.exp(-_MEMORY)
        w = w + moved
        cap = max(cap, float(np.linalg.norm(w - start)) / math.sqrt(n))
        mu = min(mu, cap)


def probes(w: Vector, seed: int) -> list[Point]:
    """Pairs of points whose losses say whether F is made of steps: two of a pair are next to each other."""
    u, v = generator(seed).standard_normal((2, _PROBES, w.size)) * first_step(w)
    return [Point(None, point) for i in range(_PROBES) for point in (w + u[i], w + u[i] + _TINY * v[i])]


def made_of_steps(losses: list[float]) -> bool:
    """Whether F differs from place to place, and next to a place not: the losses of ``probes``."""
    here, near = np.array(losses[::2]), np.array(losses[1::2])
    if not np.isfinite(losses).all():
        return False
    return float(np.median(np.abs(near - here))) <= _STEEP * _TINY * float(here.std())


def ranked_steps(w: Vector, seed: int) -> Walk:
    """A walk from w by the ranks of a population's losses; the mean of the population is looked at, too."""
    rng, n = generator(seed), w.size
    size = 2 * (4 + int(3 * math.log(n)))  # twice the usual: fewer generations, and better ones
    raw = math.log((size + 1) / 2) - np.log(np.arange(1, size + 1))
    good, bad = np.maximum(raw, 0.0), np.minimum(raw, 0.0)
    many, many_bad = (float(each.sum() ** 2 / (each**2).sum()) for each in (good, bad))
    good /= good.sum()
    c_path, c_length = (4 + many / n) / (n + 4 + 2 * many / n), (many + 2) / (n + many + 5)
    faster = 2 * (n + 2) / 3  # than with covariances
    c_one = min(0.5, faster / ((n + 1.3) ** 2 + many))
    c_many = min(1 - c_one, faster * (many - 2 + 1 / many) / ((n + 2) ** 2 + many))
    most_bad = min(1 + c_one / c_many, 1 + 2 * many_bad / (many_bad + 2), (1 - c_one - c_many) / c_many)
    signed = good - most_bad * bad / bad.sum()
    damped = 1 + 2 * max(0.0, math.sqrt((many - 1) / (n + 1)) - 1) + c_length
    usual = math.sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n * n))  # the mean length of n normals
    length, variance = _WIDE * first_step(w), np.ones(n)
    path, path_length = np.zeros(n), np.zeros(n)
    for nit in range(2**62):
        spread = np.sqrt(variance)
        z = rng.standard_normal((size, n))
        points = [Point(None, w + length * spread * each) for each in z]
        values = np.array((yield Batch([*points, Point(None, w)], w, nit))[:size])
        order = np.argsort(values, kind="stable")
        values, z = values[order], z[order]
        mine, both = _shared(values, good), _shared(values, signed)
        to = mine @ z
        w = w + length * spread * to
        path_length += -c_length * path_length + math.sqrt(c_length * (2 - c_length) * many) * to
        gone = float(np.linalg.norm(path_length))
        calm = gone / math.sqrt(1 - (1 - c_length) ** (2 * (nit + 1))) < (1.4 + 2 / (n + 1)) * usual
        path += -c_path * path + calm * math.sqrt(c_path * (2 - c_path) * many) * spread * to
        squares = z**2
        both = np.where(both < 0, both * n / squares.sum(1), both)
        kept = 1 - c_one - c_many * float(signed.sum()) + (not calm) * c_one * c_path * (2 - c_path)
        new = variance * (kept + c_many * (both @ squares)) + c_one * path**2
        variance = np.maximum(new, variance / _FLAT)
        longer = c_length / damped * (gone / usual - 1) + (_LONGER if values[0] == values[size // 4] else 0.0)
        length *= math.exp(min(1.0, longer))


def _shared(values: Vector, weights: Vector) -> Vector:
    """Weights by rank, the mean of these where losses, which ascend, are equal."""
    _, which, count = np.unique(values, return_inverse=True, return_counts=True)
    shared: Vector = (np.bincount(which, weights) / count)[which]
    return shared
