"""The search for h and mu on dev: the whole of a grid, or less work over it (paper Sec. 5, "tuning").

    with LocalEngine(out, load) as engine:
        tuned = tune(plan, engine, identity)            # every learner of the plan at once
    tuned["two-point score"].chosen                     # (h, mu)
    engine.run(tuned_runs(plan, identity, tuned))       # the paper's table: every seed at its learner's settings

Successive halving tries all points for a sixteenth of the iterations, the better third of them (two at least) for a
quarter, and the better third of those to the end. Short trials like large steps, so the search then walks: the
neighbours of the best are tried to the end until none is better, and once more in a third of the steps of h. With
``full_grid`` all points are tried to the end instead. Where the best lies on an edge of the grid, the grid grows by a
decade on that side, twice at most, and the result says so. Points that are the same up to scale
(``Settings.scale_free``) are tried once. All this is with one seed. A run's dev is a noisy figure, so the best three
are then tried with all seeds of tuning, and their means decide. These are tuning's own (``Experiment.search_seeds``):
the table's runs have others, so that no run is in the table that was chosen for its luck.

A learner's grid may have values of gamma, too, of the annealed criterion. A learner that does not ``walk`` is halved
over its grid, and no more.

Every trial is a run: a search that was stopped goes on, and what it has found out is not asked again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from sparsezo.engines.base import Engine, Finished, Overview
from sparsezo.errors import SparsezoError, UsageError
from sparsezo.experiments.learners import LearnerSpec, Point, grid_points, named
from sparsezo.experiments.plan import Experiment
from sparsezo.experiments.runs import Run
from sparsezo.words import counted

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

    @property
    def rank(self) -> tuple[float, float]:
        """Best first; where dev does not tell two apart, the loss on the way does."""
        return (
            math.inf if self.dev is None else -self.dev,
            math.inf if self.average_loss is None else self.average_loss,
        )

    @property
    def point(self) -> Point:
        return (self.h, self.mu) if self.gamma is None else (self.h, self.mu, self.gamma)

    def as_dict(self) -> dict[str, Any]:
        return {**named(self.point), "dev": self.dev, "iterations": self.iterations, "seeds": self.seeds}


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

    def as_dict(self) -> dict[str, Any]:
        return {
            "trials": [trial.as_dict() for trial in self.trials],
            "chosen": named(self.chosen),
            "dev": self.dev,
            "widened": self.widened,
            "note": self.note,
            "seeds": list(self.seeds),
        }


@dataclass
class _Search:
    """The search of one learner: its grid as it stands, and the trials so far."""

    spec: LearnerSpec
    h: list[float]  # ascending, like mu
    mu: list[float]
    gamma: list[float]
    scale_free: bool  # only h / mu^2 counts: the grid is a line
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

    def done(self, iterations: int) -> list[Trial]:
        """All that came to the end, best first."""
        ended = [trial for (_, length), trial in self.trials.items() if length == iterations and trial.dev is not None]
        if not ended:
            raise SparsezoError(f"{self.spec.name}: no trial came to an end; widen the grid to smaller h")
        return sorted(ended, key=lambda trial: trial.rank)

    def refine(self, h: float) -> None:
        """Smaller steps between this h and the next ones."""
        self.refined = True
        for other in _next_to(self.h, h):
            between = (h ** (1 - k / REFINE) * other ** (k / REFINE) for k in range(1, REFINE))
            self.h = sorted({*self.h, *(float(f"{each:.4g}") for each in between)})

    def neighbours(self, point: Point) -> list[Point]:
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

    def edges(self, point: Point) -> list[tuple[str, bool]]:
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


def _next_to(values: list[float], value: float) -> list[float]:
    place = values.index(value)
    return values[max(0, place - 1) : place] + values[place + 1 : place + 2]


def tune(
    plan: Experiment,
    engine: Engine,
    data: str,
    *,
    full_grid: bool = False,
    progress: Callable[[Overview], None] | None = None,
    say: Callable[[str], None] | None = None,
) -> dict[str, Tuned]:
    """Search for every learner of the plan that has a grid. ``data``: what the data is known by."""
    if not plan.data.has_dev:
        raise UsageError("tuning looks at dev: give `dev`, a file or a number of inputs to hold out")
    searches = [
        _Search(
            spec,
            sorted(set(spec.grid_h)),
            sorted(set(spec.grid_mu)),
            sorted(set(spec.grid_gamma)),
            plan.from_zero and spec.settings(0).scale_free,
        )
        for spec in plan.learners
        if spec.grid_h
    ]
    if not searches:
        raise UsageError(f"{plan.name}: no learner has a grid; give [grid] h and mu")
    plan.refuse_size(("tuned",))
    trials = _Trials(plan, engine, data, progress, say)
    _climb(trials, searches, _rungs(plan.length, full_grid))
    while wanted := [each for search in searches for each in _unknown(search, plan.length, full_grid, say)]:
        trials.hold(wanted, plan.length)
    if len(plan.search_seeds) > 1:
        trials.hold_finals(searches)
    return {search.spec.name: _result(search, plan) for search in searches}


def tuned_runs(plan: Experiment, data: str, tuned: dict[str, Tuned]) -> list[Run]:
    """Every learner with every seed at the settings that were found for it (the paper's table)."""
    return [
        _run(plan, data, spec, tuned[spec.name].chosen, seed, plan.length, "tuned")
        for spec in plan.learners
        if spec.name in tuned
        for seed in plan.seeds
    ]


def _rungs(iterations: int, full_grid: bool) -> list[int]:
    return [iterations] if full_grid else sorted({max(1, iterations // part) for part in RUNGS})


def _run(plan: Experiment, data: str, spec: LearnerSpec, point: Point, seed: int, length: int, phase: str) -> Run:
    return Run(
        experiment=plan.name,
        task=plan.task,
        learner=spec.name,
        phase=phase,
        settings=spec.settings(seed, *point),
        iterations=plan.iterations if plan.answers else length,
        answers=length if plan.answers else None,
        evaluate_every=min(plan.interval, length),
        data=data,
        paper=spec.paper,
        keep_model=phase == "tuned",  # trials have other seeds, and told what they had to tell
    )


@dataclass(frozen=True)
class _Trials:
    """Trials are held for all searches together, so that all cores have work."""

    plan: Experiment
    engine: Engine
    data: str
    progress: Callable[[Overview], None] | None
    say: Callable[[str], None] | None

    def hold(self, wanted: Sequence[tuple[_Search, Point]], iterations: int) -> None:
        """With the first seed of tuning."""
        seed = self.plan.search_seeds[0]
        runs = [self._run(search, point, seed, iterations) for search, point in wanted]
        records = self._records(runs)
        for (search, point), run in zip(wanted, runs, strict=True):
            result = records.get(run.hash, {}).get("result", {})
            search.trials[point, iterations] = _trial(point, iterations, result.get("dev"), result.get("average_loss"))

    def hold_finals(self, searches: Sequence[_Search]) -> None:
        """The best few with all seeds of tuning, to the end."""
        iterations, seeds = self.plan.length, self.plan.search_seeds
        finalists = [(search, trial) for search in searches for trial in search.done(iterations)[:FINAL]]
        runs = {
            (search.spec.name, trial): [self._run(search, trial.point, seed, iterations) for seed in seeds]
            for search, trial in finalists
        }
        records = self._records([run for each in runs.values() for run in each])
        for search, trial in finalists:
            results = [records[run.hash]["result"] for run in runs[search.spec.name, trial] if run.hash in records]
            whole = len(results) == len(seeds)  # not where one ran away
            dev, loss = (
                sum(result[key] for result in results) / len(seeds) if whole else None
                for key in ("dev", "average_loss")
            )
            search.finals.append(_trial(trial.point, iterations, dev, loss, len(seeds)))

    def _records(self, runs: list[Run]) -> dict[str, dict[str, Any]]:
        if self.say is not None:
            self.say(f"tuning: {counted(len(runs), 'trial')} of {runs[0].length:,} {self.plan.unit}")
        finished = self.engine.run(runs, self.progress)
        _check(finished)
        return finished.records

    def _run(self, search: _Search, point: Point, seed: int, iterations: int) -> Run:
        return _run(self.plan, self.data, search.spec, point, seed, iterations, "tune")


def _trial(point: Point, iterations: int, dev: float | None, loss: float | None, seeds: int = 1) -> Trial:
    h, mu, *gamma = point
    return Trial(cast(float, h), mu, iterations, dev, loss, seeds, *gamma)


def _check(finished: Finished) -> None:
    """A trial whose weights ran away has told what it had to tell; any other failure is no news about h and mu."""
    for failure in finished.failures:
        if not failure.diverged:
            raise SparsezoError(f"{failure.run}: {failure.message}; the same command goes on from there")


def _climb(trials: _Trials, searches: Sequence[_Search], rungs: Sequence[int]) -> None:
    points = {search.spec.name: search.points() for search in searches}
    for iterations in rungs:
        trials.hold([(search, point) for search in searches for point in points[search.spec.name]], iterations)
        for search in searches:
            points[search.spec.name] = search.better(points[search.spec.name], iterations)


def _unknown(
    search: _Search, iterations: int, full_grid: bool, say: Callable[[str], None] | None
) -> list[tuple[_Search, Point]]:
    """What is still to be tried to the end: the best one's neighbours, or all of a full grid."""
    best = search.done(iterations)[0].point
    if not (search.spec.walk or full_grid):
        return []
    _widen(search, best, say)
    if full_grid:
        return _untried(search, search.points(), iterations)
    wanted = _untried(search, search.neighbours(best), iterations)
    if not wanted and not search.refined:
        search.refine(cast(float, best[0]))
        wanted = _untried(search, search.neighbours(best), iterations)
    return wanted


def _untried(search: _Search, points: list[Point], iterations: int) -> list[tuple[_Search, Point]]:
    """Of these points; one that ran away in a shorter trial would run away again."""
    known = {each for (each, length), trial in search.trials.items() if length == iterations or trial.dev is None}
    return [(search, each) for each in points if each not in known]


def _widen(search: _Search, best: Point, say: Callable[[str], None] | None) -> None:
    """Let the grid grow where the best lies on its edge."""
    sides = search.edges(best)
    if not sides or search.rounds == WIDEN:
        return
    added = []
    for axis, up in sides:
        values: list[float] = getattr(search, axis)
        if more := _beyond(values, up):
            added.append(f"{axis} {more[-1]:g}")
            values[:] = sorted({*values, *more})
    if not added:
        return
    search.rounds += 1
    search.notes.append(f"the best lay on the edge, {_text(best)}: widened by a decade to {' and '.join(added)}")
    if say is not None:
        say(f"{search.spec.name}: {search.notes[-1]}")


def _text(point: Point) -> str:
    return " and ".join(f"{name} {value:g}" for name, value in named(point).items() if value is not None)


def _beyond(values: list[float], up: bool) -> list[float]:
    """A decade further, in the steps that the grid has; not beyond what a number can be."""
    edge, next_to_it = (values[-1], values[-2]) if up else (values[0], values[1])
    step = min(abs(math.log10(edge) - math.log10(next_to_it)), 1.0)
    count = max(1, min(MOST_STEPS, round(1 / step)))
    sign = 1 if up else -1
    more = [float(f"{edge * 10 ** (sign * k / count):.4g}") for k in range(1, count + 1)]
    return [value for value in more if 0 < value < math.inf]


def _result(search: _Search, plan: Experiment) -> Tuned:
    best = min(search.finals or search.done(plan.length), key=lambda trial: trial.rank)
    if best.dev is None:
        raise SparsezoError(f"{search.spec.name}: none of the best ran to the end with all seeds; try smaller h")
    every = [*search.finals, *search.trials.values()]
    trials = sorted(every, key=lambda trial: (-trial.iterations, -trial.seeds, *trial.rank))
    failed = sum(trial.dev is None for trial in trials)
    notes = [*search.notes]
    notes += ["the best still lies on the edge"] if search.edges(best.point) else []
    notes += ["only h / mu^2 counts, and equal ones were tried once"] if search.scale_free else []
    notes += [f"{counted(failed, 'trial')} failed: scores not finite, h too large"] if failed else []
    return Tuned(
        learner=search.spec.name,
        chosen=best.point,
        dev=best.dev,
        trials=tuple(trials),
        widened=search.rounds,
        note="; ".join(notes),
        seeds=plan.search_seeds,
    )
