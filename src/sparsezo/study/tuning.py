"""The search for h and mu on dev: the whole of a grid, or less work over it (paper Sec. 5, "tuning").

    with LocalEngine(out, load) as engine:
        tuned = tune(plan, engine, identity)            # every learner of the plan at once
    tuned["two-point score"].chosen                     # (h, mu)
    engine.run(tuned_runs(plan, identity, tuned))       # the paper's table

Successive halving tries all points for a sixteenth of the iterations, the better third of them (two at least) for a
quarter, and the better third of those to the end. Short trials like large steps, so the search then walks: the
neighbours of the best are tried to the end until none is better, and once more in a third of the steps of h. With
``full_grid`` all points are tried to the end instead; a learner that does not ``walk`` is halved, and no more. Where
the best lies on an edge of the grid, the grid grows by a decade on that side, twice at most. Points that are the same
up to scale (``Settings.scale_free``) are tried once. All this is with one seed; the best three are then tried with all
seeds of tuning, and their means decide. How far another set of tuning seeds could have led elsewhere is told by leaving
each of them out (``jackknife``). No run of the table has one of these seeds. Every trial is a run: a search that was
stopped goes on.

Who learns fastest is another question, with other answers: ``speed`` walks from the least area under the curve of dev's
loss as well, and gives what is best by it beside what is best at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import SparsezoError, UsageError
from sparsezo.messages import counted
from sparsezo.study.engines.base import Engine, Overview
from sparsezo.study.plan import FEW_SEEDS, Experiment, LearnerSpec, Point, grid_points, named
from sparsezo.study.runs import Run, run_of
from sparsezo.tasks.base import Json

RUNGS = (16, 4, 1)  # of halving: a rung tries points for iterations / rung
KEEP = 3  # one in so many goes on to the next rung
LEAST = 2  # but so many do, where there are so many
WIDEN = 2  # times a grid may grow
REFINE = 3  # steps in place of one, around the best
MOST_STEPS = 10  # in a decade, however fine a grid is
FINAL = 3  # points that are tried with all seeds


@dataclass(frozen=True)
class Trial:
    h: float
    mu: float | None
    iterations: int  # or answers, where runs end by these
    dev: float | None  # None where the trial failed: the scores were not finite
    average_loss: float | None = None
    seeds: int = 1  # that dev and the loss are means of
    gamma: float | None = None  # where it is searched for
    area: float | None = None  # under the curve of dev's loss
    by_seed: tuple[tuple[float, float], ...] = ()  # dev and area of each seed, where there are several

    @property
    def rank(self) -> tuple[float, float]:
        """Best first; where dev does not tell two apart, the loss on the way does."""
        return (
            math.inf if self.dev is None else -self.dev,
            math.inf if self.average_loss is None else self.average_loss,
        )

    @property
    def slowness(self) -> float:
        return math.inf if self.area is None else self.area

    @property
    def point(self) -> Point:
        return (self.h, self.mu) if self.gamma is None else (self.h, self.mu, self.gamma)

    def as_dict(self) -> Json:
        told = {**named(self.point), "dev": self.dev, "iterations": self.iterations, "seeds": self.seeds}
        return told if self.area is None else {**told, "area": self.area}


@dataclass(frozen=True)
class Tuned:
    """What the search found for a learner."""

    learner: str
    chosen: Point
    dev: float
    trials: tuple[Trial, ...]
    widened: int  # times the grid has grown
    note: str
    seeds: tuple[int, ...] = ()  # of the trials
    fastest: Point = ()  # by the area; empty where that was not asked for
    variances: Mapping[str, float] = field(default_factory=dict)  # phase -> what the choice of seeds adds (jackknife)

    def point(self, phase: str) -> Point:
        """What was found for a phase of plan.SEARCHED."""
        return self.fastest if phase == "speed" else self.chosen

    def as_dict(self) -> Json:
        return {
            "trials": [trial.as_dict() for trial in self.trials],
            "chosen": named(self.chosen),
            **({"fastest": named(self.fastest)} if self.fastest else {}),
            **({"variances": dict(self.variances)} if self.variances else {}),
            "dev": self.dev,
            "widened": self.widened,
            "note": self.note,
            "seeds": list(self.seeds),
        }


@dataclass
class _Search:
    """The search of one learner: its grid as it stands, and the trials so far."""

    spec: LearnerSpec
    length: int  # of a whole run
    h: list[float]  # ascending, like mu
    mu: list[float]
    gamma: list[float]
    scale_free: bool  # only h / mu^2 counts: the grid is a line
    speed: bool  # what is best by the area is wanted, too
    trials: dict[tuple[Point, int], Trial] = field(default_factory=dict)
    finals: list[Trial] = field(default_factory=list)
    rounds: int = 0  # times the grid has grown
    refined: bool = False
    notes: list[str] = field(default_factory=list)

    def points(self) -> list[Point]:
        """Of the grid, those with different laws; of equal ones, what was tried or comes first."""
        known = dict.fromkeys(point for point, _ in self.trials)
        every = [*known, *grid_points(self.h, self.mu, self.gamma)]
        return list({self._law(point): point for point in reversed(every)}.values())[::-1]

    def _law(self, point: Point) -> object:
        h, mu = point[:2]
        return round(math.log10(h) - 2 * math.log10(mu), 2) if self.scale_free and h and mu else point

    def better(self, points: list[Point], iterations: int) -> list[Point]:
        """Those that go on to the next rung."""
        order = sorted(points, key=lambda point: self.trials[point, iterations].rank)
        return order[: max(LEAST, math.ceil(len(points) / KEEP))]

    def done(self) -> list[Trial]:
        """All that came to the end, best first."""
        ended = [trial for (_, length), trial in self.trials.items() if length == self.length and trial.dev is not None]
        if not ended:
            raise SparsezoError(f"{self.spec.name}: no trial came to an end; widen the grid to smaller h")
        return sorted(ended, key=lambda trial: trial.rank)

    def wanted(self, full_grid: bool, say: Callable[[str], None]) -> list[Point]:
        """What is still to be tried to the end: the best one's neighbours, or all of a full grid."""
        best = self.done()[0].point
        if not (self.spec.walk or full_grid):
            return []
        self._widen(best, say)
        if full_grid:
            return self._untried(self.points())
        wanted = self._untried(self._neighbours(best))
        if not wanted and not self.refined:
            self._refine(cast(float, best[0]))
            wanted = self._untried(self._neighbours(best))
        if self.speed:
            fastest = self._untried(self._neighbours(self.fastest()[0].point))
            wanted += [point for point in fastest if point not in wanted]
        return wanted

    def fastest(self) -> list[Trial]:
        """All that came to the end, that with the least area first."""
        return sorted(self.done(), key=lambda trial: trial.slowness)

    def finalists(self) -> list[Point]:
        """To be tried with all seeds."""
        best = self.done()[:FINAL] + (self.fastest()[:FINAL] if self.speed else [])
        return list(dict.fromkeys(trial.point for trial in best))

    def _untried(self, points: list[Point]) -> list[Point]:
        """Of these; one that ran away in a shorter trial would run away again."""
        known = {each for (each, length), trial in self.trials.items() if length == self.length or trial.dev is None}
        return [each for each in points if each not in known]

    def _refine(self, h: float) -> None:
        """Smaller steps between this h and the next ones."""
        self.refined = True
        for other in _next_to(self.h, h):
            between = (h ** (1 - k / REFINE) * other ** (k / REFINE) for k in range(1, REFINE))
            self.h = sorted({*self.h, *(float(f"{each:.4g}") for each in between)})

    def _neighbours(self, point: Point) -> list[Point]:
        """The points next to this one: two on a line, up to four on a grid, six with gamma."""
        points = self.points()
        if self.scale_free:
            points.sort(key=lambda each: cast(float, self._law(each)))
            place = points.index(point)
            return [points[at] for at in (place - 1, place + 1) if 0 <= at < len(points)]
        return [
            (*point[:axis], each, *point[axis + 1 :])
            for axis, (values, at) in enumerate(zip((self.h, self.mu, self.gamma), point, strict=False))
            for each in (_next_to(values, at) if at is not None else [])
        ]

    def _edges(self, point: Point) -> list[tuple[str, bool]]:
        """The sides of the grid that the point lies on: the axis, and whether it is the upper end."""
        if self.scale_free:
            laws = sorted(cast(float, self._law(each)) for each in self.points())
            sides = [("h", law == laws[-1]) for law in (laws[0], laws[-1]) if law == self._law(point)]
            sides += [("mu", not up) for _, up in sides]
        else:
            axes = [(axis, getattr(self, axis), at) for axis, at in named(point).items()]
            sides = [(axis, False) for axis, values, at in axes if values and at == values[0]]
            sides += [(axis, True) for axis, values, at in axes if values and at == values[-1]]
        return [(axis, up) for axis, up in sides if len(getattr(self, axis)) > 1]

    def _widen(self, best: Point, say: Callable[[str], None]) -> None:
        """Let the grid grow where the best lies on its edge."""
        if self.rounds == WIDEN:
            return
        added = []
        for axis, up in self._edges(best):
            values: list[float] = getattr(self, axis)
            if more := _beyond(values, up):
                added.append(f"{axis} {more[-1]:g}")
                values[:] = sorted({*values, *more})
        if added:
            self.rounds += 1
            at = " and ".join(f"{name} {value:g}" for name, value in named(best).items() if value is not None)
            self.notes.append(f"the best lay on the edge, {at}: widened by a decade to {' and '.join(added)}")
            say(f"{self.spec.name}: {self.notes[-1]}")

    def result(self, seeds: tuple[int, ...]) -> Tuned:
        ended = self.finals or self.done()
        best, fastest = (min(ended, key=key) for key in (lambda trial: trial.rank, lambda trial: trial.slowness))
        if best.dev is None:
            raise SparsezoError(f"{self.spec.name}: none of the best ran to the end with all seeds; try smaller h")
        by_seed = np.array([trial.by_seed for trial in self.finals if trial.by_seed])
        variances = {"tuned": jackknife(-by_seed[..., 0])} if by_seed.size else {}
        if self.speed and by_seed.size:
            variances["speed"] = jackknife(by_seed[..., 1])
        every = [*self.finals, *self.trials.values()]
        trials = tuple(sorted(every, key=lambda trial: (-trial.iterations, -trial.seeds, *trial.rank)))
        failed = sum(trial.dev is None for trial in trials)
        notes = [*self.notes]
        notes += ["the best still lies on the edge"] if self._edges(best.point) else []
        notes += ["only h / mu^2 counts, and equal ones were tried once"] if self.scale_free else []
        notes += [f"{counted(failed, 'trial')} failed: scores not finite, h too large"] if failed else []
        found = (self.spec.name, best.point, best.dev, trials, self.rounds, "; ".join(notes), seeds)
        return Tuned(*found, fastest.point if self.speed else (), variances)


def jackknife(values: NDArray[np.float64]) -> float:
    """[points, seeds], less is better: the variance that the choice of a point by the mean over seeds adds.

    Each seed is left out, the point chosen by the others, and its mean over all seeds taken (Efron 1982).

    >>> jackknife(np.array([[0.1, 0.1, 0.1], [0.2, 0.2, 0.2]]))                    # whoever chooses chooses the first
    0.0
    >>> round(jackknife(np.array([[0.1, 0.1, 0.4], [0.2, 0.2, 0.1]])), 6)          # without the third seed, the other
    0.000494
    """
    seeds = values.shape[1]
    if seeds < 2:
        return 0.0
    means = values.mean(axis=1)
    others = (values.sum(axis=1, keepdims=True) - values) / (seeds - 1)
    chosen = means[np.argmin(others, axis=0)]
    return float((seeds - 1) / seeds * np.sum((chosen - chosen.mean()) ** 2))


def _next_to(values: list[float], value: float) -> list[float]:
    place = values.index(value)
    return values[max(0, place - 1) : place] + values[place + 1 : place + 2]


def _beyond(values: list[float], up: bool) -> list[float]:
    """A decade further, in the steps that the grid has; not beyond what a number can be."""
    edge, next_to_it = (values[-1], values[-2]) if up else (values[0], values[1])
    step = min(abs(math.log10(edge) - math.log10(next_to_it)), 1.0)
    count = max(1, min(MOST_STEPS, round(1 / step)))
    sign = 1 if up else -1
    more = [float(f"{edge * 10 ** (sign * k / count):.4g}") for k in range(1, count + 1)]
    return [value for value in more if 0 < value < math.inf]


def tune(
    plan: Experiment,
    engine: Engine,
    data: str,
    *,
    full_grid: bool = False,
    speed: bool = False,
    progress: Callable[[Overview], None] | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> dict[str, Tuned]:
    """Search for every learner of the plan that has a grid. ``data``: what the data is known by."""
    if not plan.data.has_dev:
        raise UsageError("tuning looks at dev: give `dev`, a file or a number of inputs to hold out")
    searches = [
        _Search(
            spec,
            plan.length,
            sorted(set(spec.grid_h)),
            sorted(set(spec.grid_mu)),
            sorted(set(spec.grid_gamma)),
            plan.from_zero and spec.settings(0).scale_free,
            speed and spec.criterion == "map",  # the annealed criterion's claims are of other kinds
        )
        for spec in plan.learners
        if spec.grid_h
    ]
    if not searches:
        raise UsageError(f"{plan.name}: no learner has a grid; give [grid] h and mu")
    plan.refuse_size(("tuned",))
    first = plan.search_seeds[:1]

    def hold(wanted: Sequence[tuple[_Search, Point]], iterations: int, seeds: Sequence[int]) -> list[Trial]:
        """A trial of each point, with these seeds; for all searches together, so that all cores have work."""
        runs = [
            [run_of(plan, data, each.spec, each.spec.settings(seed, *point), iterations, "tune") for seed in seeds]
            for each, point in wanted
        ]
        say(f"tuning: {counted(len(runs) * len(seeds), 'trial')} of {iterations:,} {plan.unit}")
        finished = engine.run([run for each in runs for run in each], progress)
        for failure in finished.failures:
            # one whose weights ran away has told what it had to tell; any other failure is no news about h and mu
            if not failure.diverged:
                raise SparsezoError(f"{failure.run}: {failure.message}; the same command goes on from there")
        trials = []
        for (search, point), mine in zip(wanted, runs, strict=True):
            results = [finished.records[run.hash]["result"] for run in mine if run.hash in finished.records]
            whole = len(results) == len(seeds)
            dev, loss, area = (
                sum(result[key] for result in results) / len(seeds) if whole and key in results[0] else None
                for key in ("dev", "average_loss", "dev_loss_area")
            )
            by_seed = tuple((result["dev"], result.get("dev_loss_area", math.nan)) for result in results)
            h, mu, *gamma = point
            told = Trial(cast(float, h), mu, iterations, dev, loss, len(seeds), next(iter(gamma), None))
            trials.append(replace(told, area=area, by_seed=by_seed if whole and len(seeds) > 1 else ()))
            if seeds == first:
                search.trials[point, iterations] = trials[-1]
        return trials

    points = [search.points() for search in searches]
    for iterations in sorted({max(1, plan.length // part) for part in ((1,) if full_grid else RUNGS)}):
        pairs = list(zip(searches, points, strict=True))
        hold([(search, point) for search, mine in pairs for point in mine], iterations, first)
        points = [search.better(mine, iterations) for search, mine in pairs]
    while wanted := [(search, point) for search in searches for point in search.wanted(full_grid, say)]:
        hold(wanted, plan.length, first)
    if len(plan.search_seeds) > 1:
        finalists = [(search, point) for search in searches for point in search.finalists()]
        for (search, _), trial in zip(finalists, hold(finalists, plan.length, plan.search_seeds), strict=True):
            search.finals.append(trial)
    return {search.spec.name: search.result(plan.search_seeds) for search in searches}


def tuned_runs(plan: Experiment, data: str, tuned: dict[str, Tuned]) -> list[Run]:
    """Every learner with every seed at the settings that were found for it (the paper's table)."""
    return _runs_at(plan, data, tuned, "tuned")


def fastest_runs(plan: Experiment, data: str, tuned: dict[str, Tuned]) -> list[Run]:
    """Likewise, at what was found by the area under the curve."""
    return _runs_at(plan, data, tuned, "speed")


def _runs_at(plan: Experiment, data: str, tuned: dict[str, Tuned], phase: str) -> list[Run]:
    return [
        run_of(plan, data, spec, spec.settings(seed, *point), plan.length, phase)
        for spec in plan.learners
        if spec.name in tuned and (point := tuned[spec.name].point(phase))
        for seed in plan.seeds
    ]


def gamma_runs(plan: Experiment, data: str, tuned: dict[str, Tuned]) -> list[Run]:
    """Where gamma was searched for: short runs at the h and mu that were found, from its least value to ten times its
    greatest. They differ in gamma alone."""
    runs = []
    for spec in plan.learners:
        if spec.name in tuned and spec.grid_gamma:
            h, mu = tuned[spec.name].chosen[:2]
            low, high = min(spec.grid_gamma), max(spec.grid_gamma) * 10
            decades = 10.0 ** np.arange(round(math.log10(high / low)) + 1)
            points = [(h, mu, float(f"{low * decade:.4g}")) for decade in decades]
            length = max(1, plan.length // RUNGS[0])
            for seed in plan.seeds[:FEW_SEEDS]:
                runs += [run_of(plan, data, spec, spec.settings(seed, *at), length, "gamma") for at in points]
    return runs
