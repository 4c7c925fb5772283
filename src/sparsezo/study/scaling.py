"""What drives the cost of all, active and score: n, n_bar and r_bar (Sec. 3; docs/theory.md, remark 6), by experiment.

    scaling = measure_all(seeds=3)              # reports/scaling.py writes it up
    measure(Point(n=256, n_bar=32, r_bar=4), "score", seeds=3).passes

The objective has planted sparsity: F(w, x) = ||C_x (w - w*)||_1 / sqrt(r_bar), where C_x has r_bar orthonormal rows
over the n_bar weights active in x. It is Lipschitz with L0 = 1, has no derivative where a score is right, and reads
scores alone: r(x) = r_bar. w* is scaled to f(w_0) = 1, and a run ends where f(w) <= 1/2, f being F's mean over inputs.

Every weight matters, as in the paper's tasks: there are 4 n / r_bar inputs, that is four scores for each weight, and
each weight is active in equally many. R^2 = ||w_0 - w*||^2 is proportional to n / r_bar, too, and multiplies the cost
of every perturbation alike; so iterations are counted for each input, in passes. What is left is the second moment of
a step, E||s_mu||^2 = L0^2 (m + 2) as long as mu u crosses no kink: m = n for all, n_bar for active, r_bar for score.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sparsezo import __version__
from sparsezo.errors import SparsezoError
from sparsezo.kernels.codes import TWO_POINT
from sparsezo.kernels.coefficient import coefficient
from sparsezo.study.theory import mu_tilde

PERTURBS = ("all", "active", "score")
ACCURACY = 0.5  # f(w) / f(w_0) where a run ends
ALPHA = 0.05  # |f_mu - f| <= ALPHA: mu is mu_tilde at r_bar, which is enough for all three (remark 6)
RATES = 2.0 ** np.arange(-1, -11.5, -0.5)  # h: the best of these at each point
SCORES_PER_WEIGHT = 4  # in all inputs together
_GROWTH = 1.04  # f is looked at when the iterations have grown by this factor
_BLOCK = 256  # steps whose normals are drawn at once
_PROBLEM, _INPUTS, _STEP, _OWED, _READ = range(5)  # streams of random numbers
_COEFFICIENT: Callable[..., NDArray[np.float64]] = getattr(
    coefficient, "py_func", coefficient
)  # the same formula, on arrays


@dataclass(frozen=True)
class Point:
    n: int
    n_bar: int
    r_bar: int

    @property
    def inputs(self) -> int:
        return SCORES_PER_WEIGHT * self.n // self.r_bar

    def dimension(self, perturb: str) -> int:
        """m, that of the direction in which a step moves."""
        return {"all": self.n, "active": self.n_bar, "score": self.r_bar}[perturb]


@dataclass(frozen=True)
class Panel:
    name: str  # in the table
    title: str
    fixed: str
    grows: str  # the field of Point along the x axis
    axis: str
    points: tuple[Point, ...]

    @property
    def sizes(self) -> list[float]:
        return [float(getattr(point, self.grows)) for point in self.points]

    @property
    def expected(self) -> tuple[float, ...]:
        """Theory's exponents: of m + 2, fitted at these points."""
        return tuple(exponent(self.sizes, [point.dimension(name) + 2 for point in self.points]) for name in PERTURBS)


@dataclass(frozen=True, eq=False)
class Measured:
    point: Point
    perturb: str
    iterations: NDArray[np.float64]  # to ACCURACY at h, one a seed
    h: float
    edge: bool  # h is the first or the last of RATES

    @property
    def passes(self) -> NDArray[np.float64]:
        return self.iterations / self.point.inputs


def panels(quick: bool = False) -> tuple[Panel, ...]:
    n, most, factor = (64, 128, 4) if quick else (256, 512, 2)
    widths = _powers(4, n, factor)
    growing_n = tuple(Point(each, 32, 4) for each in _powers(32, most, 2))
    growing_both = tuple(Point(n, each, each // 4) for each in widths)
    growing_n_bar = tuple(Point(n, each, 4) for each in widths)
    return (
        Panel("n", "n grows", "n̄ = 32, r̄ = 4", "n", "n", growing_n),
        Panel("n_bar and r_bar", "n̄ and r̄ grow", f"n = {n}, r̄ = n̄ / 4", "n_bar", "n̄", growing_both),
        Panel("n_bar", "n̄ grows", f"n = {n}, r̄ = 4", "n_bar", "n̄", growing_n_bar),
    )


def _powers(first: int, last: int, factor: int) -> list[int]:
    return [first * factor**j for j in range(1 + round(math.log(last / first, factor)))]


# The objective, of all seeds at once: the first axis of every array is the seed


class Objective:
    """S seeds, each with its own inputs and its own w*."""

    def __init__(self, point: Point, seeds: int) -> None:
        drawn = [_draw(point, _generator(seed, point, _PROBLEM)) for seed in range(seeds)]
        self.point = point
        self.seeds = np.arange(seeds)
        self.A = np.stack([active for active, _, _ in drawn])  # S x inputs x n_bar: the active weights
        self.C = np.stack([C for _, C, _ in drawn])  # S x inputs x r_bar x n_bar
        w_star = np.stack([w for _, _, w in drawn])[:, :, None]  # S x n x 1
        full = np.zeros((seeds, point.inputs, point.r_bar, point.n))
        np.put_along_axis(full, np.broadcast_to(self.A[:, :, None], self.C.shape), self.C, axis=3)
        some = math.gcd(point.inputs * point.r_bar, 16)  # small products run faster than those that wake threads
        self.rows = full.reshape(seeds, -1, some, point.n)  # all C below each other
        scale = self._mean_loss(self._scores(w_star))[:, :, None]  # S x 1 x 1
        self.targets = self._scores(w_star / scale)  # S x inputs * r_bar x 1
        self.target = self.targets.reshape(seeds, point.inputs, point.r_bar, 1)

    def F(self, scores: NDArray[np.float64], target: NDArray[np.float64]) -> NDArray[np.float64]:
        """S x r_bar x H scores of one input a seed to S x 1 x H losses."""
        loss: NDArray[np.float64] = np.abs(scores - target).sum(1, keepdims=True) / math.sqrt(self.point.r_bar)
        return loss

    def f(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """S x n x H weights to the S x H means of F over the inputs."""
        return self._mean_loss(self._scores(w) - self.targets)

    def _scores(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        scores: NDArray[np.float64] = self.rows @ w[:, None]
        return scores.reshape(len(w), -1, w.shape[2])

    def _mean_loss(self, errors: NDArray[np.float64]) -> NDArray[np.float64]:
        loss: NDArray[np.float64] = np.abs(errors).mean(1) * math.sqrt(self.point.r_bar)
        return loss


def _draw(point: Point, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    rounds = point.inputs * point.n_bar // point.n  # in each every weight is active once
    A = np.concatenate([rng.permutation(point.n).reshape(-1, point.n_bar) for _ in range(rounds)])
    Q, _ = np.linalg.qr(rng.standard_normal((point.inputs, point.n_bar, point.r_bar)))
    return A, np.ascontiguousarray(Q.transpose(0, 2, 1)), rng.standard_normal(point.n)


def _generator(seed: int, point: Point, stream: int) -> np.random.Generator:
    return np.random.default_rng((seed, stream, point.n, point.n_bar, point.r_bar))


# Algorithm 1, of all seeds and all h at once


class _Runs:
    """w is S x n x H. The runs of one seed see the same inputs and the same u, whatever their h and perturbation."""

    def __init__(self, objective: Objective, perturb: str) -> None:
        point, self.objective, self.perturb = objective.point, objective, perturb
        S = objective.seeds.size
        self.mu = mu_tilde(ALPHA, point.r_bar, 1.0)
        self.w = np.zeros((S, point.n, RATES.size))
        self.Q = np.zeros((S, 1, RATES.size))  # all: sum of c^2
        self.paid = np.zeros_like(self.w) if perturb == "all" else np.zeros(0)  # Q at the weight's last visit
        self.k = 0
        self._draw = {
            stream: [_generator(seed, point, stream) for seed in range(S)] for stream in (_INPUTS, _STEP, _OWED, _READ)
        }

    def advance(self, k: int) -> None:
        """Steps until ``k`` are done."""
        point, lazy = self.objective.point, self.perturb == "all"
        while self.k < k:
            block = min(_BLOCK, k - self.k)
            x = np.stack([rng.integers(point.inputs, size=block) for rng in self._draw[_INPUTS]])  # S x block
            U = self._normals(_STEP, (block, point.n_bar, 1))  # S x block x n_bar x 1
            owed = self._normals(_OWED, (block, point.n_bar, 1)) if lazy else U
            for j in range(block):
                self._step(x[:, j], U[:, j], owed[:, j])
            self.k += block

    def _step(self, x: NDArray[np.int64], u: NDArray[np.float64], owed: NDArray[np.float64]) -> None:
        objective, lazy = self.objective, self.perturb == "all"
        seeds = objective.seeds
        C, target = objective.C[seeds, x], objective.target[seeds, x]
        at = (seeds[:, None], objective.A[seeds, x])
        w = self.w[at]  # S x n_bar x H
        if lazy:
            w += np.sqrt(self.Q - self.paid[at]) * owed  # ~ N(0, sum of c^2 while it slept): design 2.2
        scores, V = C @ w, C @ u
        c = _COEFFICIENT(
            TWO_POINT, RATES, self.mu, objective.F(scores + self.mu * V, target), objective.F(scores, target), 0.0
        )
        if self.perturb == "score":
            u = C.transpose(0, 2, 1) @ V  # P u, for the rows of C are orthonormal
        self.w[at] = w + c * u
        if lazy:
            self.Q = self.Q + c * c
            self.paid[at] = self.Q

    def f(self) -> NDArray[np.float64]:
        if self.perturb == "all":
            self.w += np.sqrt(self.Q - self.paid) * self._normals(_READ, (self.objective.point.n, 1))
            self.paid[:] = self.Q
        return self.objective.f(self.w)

    def _normals(self, stream: int, shape: tuple[int, ...]) -> NDArray[np.float64]:
        return np.stack([rng.standard_normal(shape) for rng in self._draw[stream]])


def measure(point: Point, perturb: str, seeds: int = 3, objective: Objective | None = None) -> Measured:
    """Iterations to ACCURACY at the h of RATES with the fewest, on average over the seeds 0, 1, ..."""
    runs = _Runs(objective or Objective(point, seeds), perturb)
    iterations = np.full((seeds, RATES.size), np.inf)
    most = 10 * point.inputs * (point.n + 10)
    while runs.k < most:
        runs.advance(max(point.inputs // 4, runs.k + 1, int(runs.k * _GROWTH)))
        iterations[np.isinf(iterations) & (runs.f() <= ACCURACY)] = runs.k
        mean = iterations.mean(0)
        at_least = np.minimum(iterations, runs.k + 1).mean(0)  # what the mean of an h still running can come to
        best = int(mean.argmin())
        if mean[best] <= at_least[np.isinf(mean)].min(initial=np.inf):
            return Measured(point, perturb, iterations[:, best], float(RATES[best]), best in (0, RATES.size - 1))
    raise SparsezoError(f"{perturb} at {point}: f(w) did not fall to {ACCURACY} in {most} iterations at any h")


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """b of the least-squares fit log cost = a + b log size, to two decimals."""
    return round(float(np.polyfit(np.log(sizes), np.log(costs), 1)[0]), 2) + 0.0  # no -0.0


# The experiment


@dataclass(frozen=True, eq=False)
class Scaling:
    quick: bool
    seeds: int
    panels: tuple[Panel, ...]
    found: dict[tuple[Point, str], Measured]

    def line(self, panel: Panel, perturb: str) -> list[Measured]:
        return [self.found[point, perturb] for point in panel.points]

    def exponents(self, panel: Panel, of: str = "passes") -> tuple[float, ...]:
        lines = [[getattr(each, of).mean() for each in self.line(panel, perturb)] for perturb in PERTURBS]
        return tuple(exponent(panel.sizes, costs) for costs in lines)

    @property
    def signature(self) -> str:
        fields = {
            "experiment": "scaling-quick" if self.quick else "scaling",
            "rule": "two-point",
            "accuracy": f"{ACCURACY:g}",
            "h": f"best of {RATES.size} in {RATES[-1]:.1g}..{RATES[0]:g}",
            "mu": f"{ALPHA:g}/sqrt(r_bar)",
            "seeds": ",".join(map(str, range(self.seeds))),
            "version": __version__,
        }
        return "|".join(f"{name}:{value}" for name, value in fields.items())


def measure_all(quick: bool = False, seeds: int = 3, say: Callable[[str], object] = lambda line: None) -> Scaling:
    """Each point once, whatever the number of panels it is in."""
    found: dict[tuple[Point, str], Measured] = {}
    shown = panels(quick)
    points = list(dict.fromkeys(point for panel in shown for point in panel.points))
    for done, point in enumerate(points, 1):
        objective = Objective(point, seeds)
        for perturb in reversed(PERTURBS):
            alike = [found[point, known] for known in PERTURBS if (point, known) in found]
            same = next((each for each in alike if point.dimension(each.perturb) == point.dimension(perturb)), None)
            again = replace(same, perturb=perturb) if same else measure(point, perturb, seeds, objective)
            found[point, perturb] = again  # with the same dimension it is the same run, number by number
        passes = ", ".join(f"{perturb} {found[point, perturb].passes.mean():.3g}" for perturb in PERTURBS)
        where = f"n {point.n}, n_bar {point.n_bar}, r_bar {point.r_bar}"
        say(f"scaling: {done} of {len(points)}: {where}: passes {passes}")
    return Scaling(quick, seeds, shown, found)
