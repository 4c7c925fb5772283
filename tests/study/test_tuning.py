"""The search for h and mu, decision by decision: what is tried, in which order and how long, and what is chosen."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from sparsezo.errors import SparsezoError, UsageError
from sparsezo.settings import Settings
from sparsezo.study.engines.base import Failure, Finished
from sparsezo.study.engines.local import LocalEngine
from sparsezo.study.plan import DataSpec, Experiment, LearnerSpec
from sparsezo.study.runs import Run, undivided_runs
from sparsezo.study.tuning import Trial, Tuned, fastest_runs, gamma_runs, jackknife, tune, tuned_runs
from sparsezo.tasks.chunking.synthetic import chunking_columns, generate_chunking
from sparsezo.tasks.loading import Files
from sparsezo.tasks.registry import task_spec

RAN_AWAY = "the weights ran away"  # in any words: the engine says that it diverged


def plan_of(*learners: LearnerSpec, iterations: int = 1600, dev: str | None = "40", seeds=(5,), **fields) -> Experiment:
    """``seeds``: of tuning; results have others."""
    fields = {"seeds": (70, 71), "tuning_seeds": seeds, **fields}
    return Experiment("test", "chunking", DataSpec(("train.txt",), dev), learners, iterations, **fields)


def line(*h: float) -> LearnerSpec:
    """A learner that has h alone."""
    return LearnerSpec("first-order", None, h[0], None, grid_h=h)


def grid(h, mu, criterion: str = "annealed") -> LearnerSpec:
    """Where h and mu both count; with criterion map only h / mu^2 does."""
    return LearnerSpec("two-point", "score", h[0], mu[0], criterion=criterion, grid_h=h, grid_mu=mu)


LINE, GRID, SCALE_FREE = "first-order", "two-point score annealed 1", "two-point score"


class Scripted:
    """An engine by formula: ``answer(h, mu, iterations, seed)`` is dev, (dev, average loss), or why the run failed."""

    def __init__(self, answer, out: Path = Path("nowhere")) -> None:
        self.answer, self.out = answer, out
        self.calls: list[list[Run]] = []
        self.progress: list[object] = []

    def run(self, runs, progress=None) -> Finished:
        self.calls.append(list(runs))
        assert len(self.calls) < 50, "the search does not come to an end"
        self.progress.append(progress)
        records, failures = {}, []
        for run in runs:
            said = self.answer(run.settings.h, run.settings.mu, run.iterations, run.settings.seed)
            if isinstance(said, str):
                failures.append(Failure(run, said, diverged=said is RAN_AWAY))
                continue
            dev, loss = said if isinstance(said, tuple) else (said, 0.5)
            records[run.hash] = {"result": {"dev": dev, "average_loss": loss}}
        return Finished(records, tuple(failures))

    @property
    def h(self) -> list[tuple[int, list[float]]]:
        """Of each call, how long its runs were and which h they had."""
        return [(runs[0].iterations, [run.settings.h for run in runs]) for runs in self.calls]

    @property
    def points(self) -> list[tuple[int, list[tuple[float, float | None]]]]:
        return [(runs[0].iterations, [(run.settings.h, run.settings.mu) for run in runs]) for runs in self.calls]

    def at(self, iterations: int) -> list[tuple[float, float | None]]:
        return [point for length, points in self.points for point in points if length == iterations]


def near(h0: float, mu0: float = 1.0, *, weight: float = 2.0):
    """Best at h0 and mu0, and the worse the further away; a step of mu counts ``weight`` times one of h."""
    return lambda h, mu, *_: 1 - 0.01 * (abs(math.log10(h / h0)) + weight * abs(math.log10((mu or mu0) / mu0)))


def ratio(law: float):
    """Only h / mu^2 counts; best where its logarithm is ``law``."""
    return lambda h, mu, *_: 1 - 0.01 * abs(math.log10(h / mu**2) - law)


# Halving, walking, refining


def with_gamma(h, gamma, **fields) -> LearnerSpec:
    grids = {"grid_h": h, "grid_mu": (0.1,), "grid_gamma": gamma}
    return LearnerSpec("two-point", "score", h[0], 0.1, criterion="annealed", **grids, **fields)


ANNEALED = "two-point score annealed"


class WithGamma(Scripted):
    """Asks ``answer(h, gamma)`` instead."""

    def __init__(self, answer) -> None:
        super().__init__(None)
        self.about = answer

    def run(self, runs, progress=None) -> Finished:
        self.calls.append(list(runs))
        said = {run.hash: {"dev": self.about(run.settings.h, run.settings.gamma), "average_loss": 0.5} for run in runs}
        return Finished({key: {"result": result} for key, result in said.items()}, ())


def best_at(h0, gamma0):
    return lambda h, gamma: 1 - 0.01 * (abs(math.log10(h / h0)) + abs(math.log10(gamma / gamma0)))


def test_gamma_is_searched_for_as_h_is():
    stub = WithGamma(best_at(0.01, 3.0))
    plan = plan_of(with_gamma((0.1, 0.01, 0.001), (10.0, 3.0, 1.0)))
    found = tune(plan, stub, "data")[ANNEALED]
    assert found.chosen == (0.01, 0.1, 3.0)
    assert len({(run.settings.h, run.settings.gamma) for run in stub.calls[0]}) == 9
    full = {(run.settings.h, run.settings.gamma) for runs in stub.calls for run in runs if run.iterations == 1600}
    assert {(0.01, 10.0), (0.01, 1.0), (0.1, 3.0), (0.001, 3.0)} <= full  # all neighbours
    assert (found.widened, found.note) == (0, "")
    assert found.as_dict()["chosen"] == {"h": 0.01, "mu": 0.1, "gamma": 3.0}
    assert {tuple(trial)[:3] for trial in (each.as_dict() for each in found.trials)} == {("h", "mu", "gamma")}
    assert [run.settings.gamma for run in tuned_runs(plan, "data", {ANNEALED: found})] == [3.0] * len(plan.seeds)


def test_a_learner_that_does_not_walk_is_halved_and_no_more():
    stub = WithGamma(best_at(0.01, 3.0))
    found = tune(plan_of(with_gamma((0.1, 0.01, 0.001), (10.0, 3.0, 1.0), walk=False)), stub, "data")[ANNEALED]
    assert [(len(runs), runs[0].iterations) for runs in stub.calls] == [(9, 100), (3, 400), (2, 1600)]
    assert found.chosen == (0.01, 0.1, 3.0)
    edge = WithGamma(best_at(1.0, 3.0))
    found = tune(plan_of(with_gamma((0.1, 0.01), (3.0, 1.0), walk=False)), edge, "data")[ANNEALED]
    assert (found.widened, found.note) == (0, "the best still lies on the edge")
    every = WithGamma(best_at(0.01, 3.0))
    tune(plan_of(with_gamma((0.1, 0.01, 0.001), (10.0, 3.0, 1.0), walk=False)), every, "data", full_grid=True)
    assert [len(runs) for runs in every.calls] == [9]


def test_halving_keeps_a_third_and_two_at_least_then_walks_and_refines():
    stub = Scripted(near(10**-2.2))
    found = tune(plan_of(line(1.0, 0.1, 1e-6, 0.01, 0.001, 1e-4, 1e-5)), stub, "data")[LINE]
    assert stub.h == [
        (100, [1e-6, 1e-5, 1e-4, 0.001, 0.01, 0.1, 1.0]),
        (400, [0.01, 0.001, 0.1]),  # a third of seven, rounded up
        (1600, [0.01, 0.001]),  # a third of three would be one
        (1600, [0.1]),  # the best one's other neighbour
        (1600, [0.004642, 0.02154]),  # thirds of a decade around the best
        (1600, [0.002154]),  # the next one's; nothing is refined again
    ]
    assert found.chosen == (0.004642, None)
    assert found.dev == pytest.approx(1 - 0.01 * (2.2 + math.log10(0.004642)) * -1)
    assert (found.widened, found.note) == (0, "")


def test_a_walk_on_a_grid_asks_all_four_neighbours():
    stub = Scripted(near(10**-2.1, 0.01))
    found = tune(plan_of(grid((0.1, 0.01, 0.001), (0.1, 0.001, 0.01))), stub, "data")[GRID]
    assert stub.points == [
        (100, [(h, mu) for h in (0.001, 0.01, 0.1) for mu in (0.001, 0.01, 0.1)]),
        (400, [(0.01, 0.01), (0.001, 0.01), (0.1, 0.01)]),
        (1600, [(0.01, 0.01), (0.001, 0.01)]),
        (1600, [(0.1, 0.01), (0.01, 0.001), (0.01, 0.1)]),
        (1600, [(0.004642, 0.01), (0.02154, 0.01)]),  # h in thirds; mu stays
    ]
    assert found.chosen == (0.01, 0.01)
    assert (found.widened, found.note) == (0, "")


@pytest.mark.parametrize(
    ("iterations", "lengths"),
    [(1600, [100, 400, 1600]), (1599, [99, 399, 1599]), (10, [1, 2, 10]), (3, [1, 3]), (1, [1])],
)
def test_a_rung_is_a_sixteenth_a_quarter_or_all_and_no_shorter_than_one(iterations, lengths):
    stub = Scripted(near(0.1))
    tune(plan_of(line(1.0, 0.1, 0.01), iterations=iterations), stub, "data")
    assert list(dict.fromkeys(length for length, _ in stub.h)) == lengths


def test_where_dev_does_not_tell_two_apart_the_loss_does():
    stub = Scripted(lambda h, *_: (0.5, abs(math.log10(h) + 2.2)))  # the least loss near 10^-2.2
    found = tune(plan_of(line(1.0, 0.1, 0.01, 0.001, 1e-4, 1e-5, 1e-6)), stub, "data")[LINE]
    assert stub.h[1:3] == [(400, [0.01, 0.001, 0.1]), (1600, [0.01, 0.001])]
    assert found.chosen == (0.004642, None)
    assert [trial.h for trial in found.trials][:5] == [0.004642, 0.01, 0.002154, 0.02154, 0.001]


def test_the_full_grid_tries_all_to_the_end_and_nothing_between():
    stub = Scripted(near(10**-2.3, 0.01))
    h, mu = (0.1, 0.01, 0.001), (0.1, 0.01, 0.001)
    found = tune(plan_of(grid(h, mu)), stub, "data", full_grid=True)[GRID]
    assert stub.points == [(1600, [(h, mu) for h in (0.001, 0.01, 0.1) for mu in (0.001, 0.01, 0.1)])]
    assert found.chosen == (0.01, 0.01)


# Runs


def test_what_a_trial_is_as_a_run():
    spec = LearnerSpec(
        *("two-point", "active", 0.7, 0.8, "adagrad", "annealed", 2.5),
        feedback="binary",
        grid_h=(0.1, 0.01),
        grid_mu=(0.3,),
        paper=0.875,
    )
    stub = Scripted(near(0.01, 0.3))
    tune(plan_of(spec, seeds=(8, 3), evaluate_every=300), stub, "identity")
    first, longer, longest = (next(r for c in stub.calls for r in c if r.iterations == n) for n in (100, 400, 1600))
    name = "two-point active adagrad annealed 2.5 binary"
    settings = Settings("two-point", "active", 0.01, 0.3, "adagrad", "annealed", 2.5, False, 8, "binary")
    assert first == Run("test", "chunking", name, "tune", settings, 100, 100, "identity", 0.875, keep_model=False)
    assert longer == replace(first, iterations=400, evaluate_every=300)
    assert longest == replace(first, iterations=1600, evaluate_every=300)


def test_the_tuned_runs_are_the_papers_table():
    first, second, third = line(1.0, 0.1, 0.01), LearnerSpec("supervised", None, 0.2, None), grid((0.1, 0.01), (0.3,))
    plan = plan_of(first, second, replace(third, paper=0.9), seeds=(3, 8, 4), evaluate_every=30)
    stub = Scripted(near(0.1, 0.3))
    tuned = tune(plan, stub, "identity")
    assert list(tuned) == [LINE, GRID]  # the one without a grid has nothing to tune
    tuned[GRID] = replace(tuned[GRID], chosen=(0.07, 0.05))
    runs = tuned_runs(plan, "identity", tuned)
    assert [(run.learner, run.settings.h, run.settings.mu, run.settings.seed) for run in runs] == [
        *((LINE, 0.1, None, seed) for seed in (70, 71)),
        *((GRID, 0.07, 0.05, seed) for seed in (70, 71)),
    ]
    settings = Settings("two-point", "score", 0.07, 0.05, criterion="annealed", seed=71)
    assert runs[-1] == Run("test", "chunking", GRID, "tuned", settings, 1600, 30, "identity", paper=0.9)


def test_learners_are_tried_together_each_on_its_own_grid():
    stub = Scripted(lambda h, mu, *_: near(0.01)(h, mu) if mu is None else near(0.1, 0.3)(h, mu))
    tuned = tune(plan_of(line(0.1, 0.01, 0.001), grid((1.0, 0.1), (0.3,))), stub, "data")
    one, two = [(h, None) for h in (0.001, 0.01, 0.1)], [(0.1, 0.3), (1.0, 0.3)]
    assert stub.points[0] == (100, one + two)
    assert stub.points[1] == (400, [(0.01, None), (0.001, None), (0.1, 0.3), (1.0, 0.3)])
    assert [run.learner for run in stub.calls[1]] == [LINE, LINE, GRID, GRID]
    assert stub.points[3] == (1600, [(0.1, None), (0.01, 0.3)])  # here a neighbour, there the grid has grown
    assert [(found.learner, found.chosen) for found in tuned.values()] == [(LINE, (0.01, None)), (GRID, (0.1, 0.3))]
    assert (tuned[LINE].widened, tuned[GRID].widened) == (0, 1)
    assert all(trial.mu is None for trial in tuned[LINE].trials)


def test_what_is_said_and_who_follows():
    said: list[str] = []
    stub = Scripted(near(0.01))
    progress = object()
    tune(plan_of(line(0.1, 0.01), iterations=16_000), stub, "data", progress=progress, say=said.append)
    assert said == [
        "tuning: 2 trials of 1,000 iterations",
        "tuning: 2 trials of 4,000 iterations",
        "tuning: 2 trials of 16,000 iterations",
        "first-order: the best lay on the edge, h 0.01: widened by a decade to h 0.001",
        "tuning: 1 trial of 16,000 iterations",
        "tuning: 2 trials of 16,000 iterations",
    ]
    assert stub.progress == [progress] * 5


# A grid that grows


@pytest.mark.parametrize(
    ("h", "best", "added"),
    [
        ((1.0, 0.1, 0.01), 0.008, [0.001]),
        ((0.01, 0.003162, 0.001), 0.0009, [0.0001, 0.0003162]),  # a decade, in the grid's steps
        ((0.3, 0.1, 0.03), 0.029, [0.003, 0.009487]),  # to four digits
        ((1.0, 0.1, 0.05), 1.2, [10.0]),  # the steps at that edge
        ((1.0, 0.1, 0.05), 0.049, [0.005, 0.01077, 0.02321]),
        ((1.0, 0.001), 0.0009, [0.0001]),  # a decade, however wide the steps
        ((1.23456, 0.123456), 0.12, [0.01235]),  # what is there already is not rounded
    ],
)
def test_a_grid_grows_by_a_decade_in_its_own_steps(h, best, added):
    stub = Scripted(near(best))
    found = tune(plan_of(line(*h)), stub, "data", full_grid=True)[LINE]
    assert stub.h == [(1600, sorted(h)), (1600, added)]
    assert found.widened == 1


@pytest.mark.parametrize(
    ("best", "note", "h", "mu"),
    [
        (
            (0.001, 0.1),
            "the best lay on the edge, h 0.01 and mu 0.01: widened by a decade to h 0.001 and mu 0.1; "
            "the best lay on the edge, h 0.001 and mu 0.1: widened by a decade to h 0.0001 and mu 1",
            {0.1, 0.01, 0.001, 1e-4},
            {0.001, 0.01, 0.1, 1.0},
        ),
        (
            (1.0, 1e-4),
            "the best lay on the edge, h 0.1 and mu 0.001: widened by a decade to mu 0.0001 and h 1; "
            "the best lay on the edge, h 1 and mu 0.0001: widened by a decade to mu 1e-05 and h 10",
            {0.01, 0.1, 1.0, 10.0},
            {0.01, 0.001, 1e-4, 1e-5},
        ),
    ],
)
def test_a_grid_grows_on_the_sides_where_the_best_lies(best, note, h, mu):
    stub = Scripted(near(*best))
    found = tune(plan_of(grid((0.1, 0.01), (0.01, 0.001))), stub, "data", full_grid=True)[GRID]
    assert (found.chosen, found.widened, found.note) == (best, 2, note)
    assert [len(runs) for runs in stub.calls] == [4, 5, 7]  # 2 x 2, 3 x 3, 4 x 4: all of it, and nothing twice
    assert set(stub.at(1600)) == {(each, other) for each in h for other in mu}


def test_an_axis_of_one_value_has_no_edge():
    found = tune(plan_of(grid((0.1, 0.01, 0.001), (0.3,))), Scripted(near(0.01, 5.0)), "data")[GRID]
    assert (found.chosen, found.widened, found.note) == ((0.01, 0.3), 0, "")
    found = tune(plan_of(grid((0.1,), (0.1, 0.01, 0.001))), Scripted(near(7.0, 0.004)), "data")[GRID]
    assert (found.chosen, found.widened, found.note) == ((0.1, 0.01), 0, "")
    found = tune(plan_of(grid((0.1,), (0.1, 0.01))), Scripted(near(7.0, 0.009)), "data")[GRID]
    assert found.note == "the best lay on the edge, h 0.1 and mu 0.01: widened by a decade to mu 0.001"


def test_it_grows_twice_at_most_and_says_where_the_best_still_lies():
    stub = Scripted(near(1e5))
    found = tune(plan_of(line(0.1, 0.01)), stub, "data")[LINE]
    assert stub.h == [
        *((length, [0.01, 0.1] if length == 100 else [0.1, 0.01]) for length in (100, 400, 1600)),
        (1600, [1.0]),
        (1600, [10.0]),
        (1600, [4.642]),  # between the edge and its only neighbour
    ]
    assert (found.chosen, found.widened) == ((10.0, None), 2)
    assert found.note == (
        "the best lay on the edge, h 0.1: widened by a decade to h 1; "
        "the best lay on the edge, h 1: widened by a decade to h 10; the best still lies on the edge"
    )


# Only h / mu^2 counts


def test_points_that_are_the_same_up_to_scale_are_tried_once():
    stub = Scripted(ratio(-1.2))
    spec = grid((0.001, 0.01, 0.1), (0.1, 1.0), criterion="map")
    found = tune(plan_of(spec), stub, "data")[SCALE_FREE]
    # (0.001, 0.1) and (0.1, 1) are one
    assert sorted(stub.at(100)) == [(0.001, 0.1), (0.001, 1.0), (0.01, 0.1), (0.01, 1.0), (0.1, 0.1)]
    assert found.note == "only h / mu^2 counts, and equal ones were tried once"
    full = Scripted(ratio(-1.2))
    assert tune(plan_of(spec), full, "data", full_grid=True)[SCALE_FREE].chosen == (0.001, 0.1)
    assert sorted(full.at(1600)) == sorted(stub.at(100))


def test_a_walk_on_a_line_asks_both_neighbours():
    stub = Scripted(ratio(0.2))
    found = tune(plan_of(grid((0.01, 0.1), (0.1, 1.0), criterion="map")), stub, "data")[SCALE_FREE]
    assert stub.points[1:] == [
        (400, [(0.01, 0.1), (0.1, 0.1)]),  # 0 and 1
        (1600, [(0.01, 0.1), (0.1, 0.1)]),
        (1600, [(0.1, 1.0)]),  # -1
        (1600, [(0.02154, 0.1)]),  # 0.33; there is nothing new on the other side
        (1600, [(0.04642, 0.1)]),  # 0.67
    ]
    assert found.chosen == (0.02154, 0.1)
    assert (found.widened, found.note) == (0, "only h / mu^2 counts, and equal ones were tried once")


@pytest.mark.parametrize(
    ("law", "at", "to", "chosen", "laws"),
    [
        (-3.4, "h 0.01 and mu 1", "h 0.001 and mu 10", -3, range(-5, 2)),  # smaller h, larger mu
        (2.4, "h 0.1 and mu 0.1", "h 1 and mu 0.01", 2, range(-2, 5)),  # larger h, smaller mu
    ],
)
def test_a_line_grows_on_both_axes(law, at, to, chosen, laws):
    stub = Scripted(ratio(law))
    spec = grid((0.01, 0.1), (0.1, 1.0), criterion="map")
    found = tune(plan_of(spec), stub, "data", full_grid=True)[SCALE_FREE]
    assert found.note == (
        f"the best lay on the edge, {at}: widened by a decade to {to}; "
        "only h / mu^2 counts, and equal ones were tried once"
    )
    assert found.widened == 1
    h, mu = found.chosen
    assert math.log10(h / mu**2) == pytest.approx(chosen)
    assert sorted(round(math.log10(h / mu**2), 6) for h, mu in stub.at(1600)) == [*laws]  # none twice


def test_a_line_with_one_mu_grows_along_h():
    found = tune(plan_of(grid((0.1, 0.01), (1.0,), criterion="map")), Scripted(ratio(-2.2)), "data")[SCALE_FREE]
    assert found.note.startswith("the best lay on the edge, h 0.01 and mu 1: widened by a decade to h 0.001; only")
    assert found.chosen == (0.004642, 1.0)


@pytest.mark.parametrize("start", [{"init": "weights"}, {"options": {"init": "weights"}}])
def test_weights_that_start_elsewhere_have_a_scale(start):
    plan = plan_of(grid((0.001, 0.01, 0.1), (0.1, 1.0), criterion="map"))
    data = DataSpec(("train.nbest",), "dev.nbest", options=start.get("options", {}))
    stub = Scripted(near(0.01, 1.0))
    found = tune(replace(plan, task="rerank", data=data, init=start.get("init")), stub, "data")[SCALE_FREE]
    assert "only h" not in found.note
    assert len(stub.at(100)) == 6


@pytest.mark.parametrize("other", [{"step": "adagrad"}, {"criterion": "annealed"}])
def test_other_laws_have_a_scale(other):
    spec = replace(grid((0.001, 0.01, 0.1), (0.1, 1.0), criterion="map"), **other)
    stub = Scripted(near(0.01, 1.0))
    tune(plan_of(spec), stub, "data")
    assert len(stub.at(100)) == 6


# All seeds


FIGURES = {  # by h, for seeds 3, 8 and 4
    0.1: (0.9, 0.1, 0.8),  # the best with the first seed and with the last, the best median, the best maximum
    0.01: (0.85, 0.6, 0.65),  # the best mean
    1.0: (0.8, 0.62, 0.62),  # the best minimum
    0.001: (0.7, 0.99, 0.99),  # better than all, but not among the best three of the first seed
    10.0: (0.6, 0.5, 0.5),
}


def by_seed(figures):
    return lambda h, mu, n, seed: figures[h][(3, 8, 4).index(seed)]


def test_the_means_over_all_seeds_decide():
    stub = Scripted(by_seed(FIGURES))
    found = tune(plan_of(line(*FIGURES), seeds=(3, 8, 4)), stub, "data", full_grid=True)[LINE]
    assert {run.settings.seed for run in stub.calls[0]} == {3}
    assert [(run.iterations, run.phase, run.settings.h, run.settings.seed) for run in stub.calls[1]] == [
        (1600, "tune", h, seed) for h in (0.1, 0.01, 1.0) for seed in (3, 8, 4)
    ]
    assert len(stub.calls) == 2
    assert found.chosen == (0.01, None)
    assert found.dev == pytest.approx(0.7)
    assert [(trial.h, trial.iterations, trial.seeds) for trial in found.trials] == [
        *((0.01, 1600, 3), (1.0, 1600, 3), (0.1, 1600, 3)),
        *((0.1, 1600, 1), (0.01, 1600, 1), (1.0, 1600, 1), (0.001, 1600, 1), (10.0, 1600, 1)),
    ]
    assert [trial.dev for trial in found.trials[:3]] == pytest.approx([0.7, 0.68, 0.6])
    assert found.trials[0].average_loss == pytest.approx(0.5)


def test_finals_are_held_for_all_learners_at_once():
    stub = Scripted(lambda h, mu, n, seed: near(0.1, 0.3)(h, mu) + (0.5 if (seed, h, mu) == (6, 0.01, 0.3) else 0))
    plan = plan_of(line(1.0, 0.1, 0.01), grid((1.0, 0.1, 0.01), (0.3,)), seeds=(5, 6))
    tuned = tune(plan, stub, "data", full_grid=True)
    assert [len(runs) for runs in stub.calls] == [6, 12]
    assert [run.learner for run in stub.calls[1]] == [LINE] * 6 + [GRID] * 6
    assert (tuned[LINE].chosen, tuned[GRID].chosen) == ((0.1, None), (0.01, 0.3))


def test_a_finalist_that_ran_away_with_one_seed_is_out():
    answer = by_seed({**FIGURES, 0.01: (0.85, RAN_AWAY, 1.0)})
    found = tune(plan_of(line(*FIGURES), seeds=(3, 8, 4)), Scripted(answer), "data", full_grid=True)[LINE]
    assert found.chosen == (1.0, None)
    assert found.dev == pytest.approx(0.68)
    assert found.trials[2] == Trial(0.01, None, 1600, None, None, 3)
    assert found.note == "1 trial failed: scores not finite, h too large"


# What learns fastest


def scripted_areas(dev, area):
    """An engine whose runs have a dev and an area by formulas of h and the seed."""

    class Areas(Scripted):
        def run(self, runs, progress=None) -> Finished:
            done = super().run(runs, progress)
            for run in runs:
                done.records[run.hash]["result"]["dev_loss_area"] = area(run.settings.h, run.settings.seed)
            return done

    return Areas(lambda h, mu, n, seed: dev(h, seed))


def log_distance(h0):
    return lambda h, *_: 0.1 * abs(math.log10(h / h0))


def test_what_learns_fastest_is_searched_for_beside_what_ends_best():
    """Dev is best at 0.01, the area least at 10: a walk goes to each of them."""
    stub = scripted_areas(lambda h, _: 1 - log_distance(0.01)(h), lambda h, _: log_distance(10.0)(h))
    h = tuple(10.0**k for k in range(2, -6, -1))
    found = tune(plan_of(line(*h)), stub, "data", speed=True)[LINE]
    assert (found.chosen, found.fastest) == ((0.01, None), (10.0, None))
    assert (found.point("tuned"), found.point("gamma"), found.point("speed")) == (found.chosen,) * 2 + (found.fastest,)
    told = found.as_dict()
    assert (told["chosen"], told["fastest"]) == ({"h": 0.01, "mu": None}, {"h": 10.0, "mu": None})
    assert min(told["trials"], key=lambda trial: trial["area"])["h"] == 10.0
    without = tune(plan_of(line(*h)), scripted_areas(lambda h, _: 0.5, log_distance(1.0)), "data")[LINE]
    assert without.fastest == ()
    assert "fastest" not in without.as_dict()


def test_the_fastest_of_several_seeds_is_so_in_the_mean():
    areas = {0.1: (0.1, 0.9), 0.01: (0.2, 0.3), 1.0: (0.3, 0.4)}
    stub = scripted_areas(lambda h, _: 0.5, lambda h, seed: areas.get(h, (2.0, 2.0))[(3, 8).index(seed)])
    found = tune(plan_of(line(*areas), seeds=(3, 8)), stub, "data", full_grid=True, speed=True)[LINE]
    assert found.fastest == (0.01, None)
    by = np.array([areas[h] for h in (0.1, 0.01, 1.0)])
    assert found.variances["speed"] == pytest.approx(jackknife(by))
    assert found.variances["tuned"] == 0.0
    assert found.as_dict()["variances"] == dict(found.variances)
    plan = replace(plan_of(line(*areas), seeds=(3, 8)), seeds=(70, 71))
    runs = fastest_runs(plan, "data", {LINE: found})
    assert [(run.phase, run.settings.h, run.settings.seed) for run in runs] == [
        ("speed", 0.01, 70),
        ("speed", 0.01, 71),
    ]


def test_the_jackknife_is_what_another_seed_would_have_changed():
    """Simulated: with two points alike in truth, the variance of what the means say of the chosen one."""
    rng, told, found = np.random.default_rng(2), [], []
    for _ in range(3000):
        values = np.array([[0.0], [0.05]]) + 0.1 * rng.normal(size=(2, 3))
        told.append(jackknife(values))
        found.append([0.0, 0.05][int(np.argmin(values.mean(axis=1)))])
    assert np.var(found) * 0.3 < np.mean(told) < np.var(found) * 10
    assert jackknife(np.array([[0.1], [0.2]])) == 0.0  # of one seed nothing is known
    assert jackknife(np.array([[0.0, 0, 0, 0, 1], [0.3] * 5])) == 0.0  # whoever is left out, the others agree


def test_gammas_differ_in_gamma_alone():
    spec = with_gamma((0.1, 0.01), (10.0, 1.0))
    found = Tuned(spec.name, (0.01, 0.1, 10.0), 0.9, (), 0, "")
    plan = replace(plan_of(spec, line(0.1), iterations=1600), seeds=(70, 71, 72, 73))
    runs = gamma_runs(plan, "data", {spec.name: found})
    assert {(run.phase, run.iterations, run.settings.h, run.settings.mu) for run in runs} == {("gamma", 100, 0.01, 0.1)}
    assert sorted((run.settings.seed, run.settings.gamma) for run in runs) == [
        (seed, gamma) for seed in (70, 71, 72) for gamma in (1.0, 10.0, 100.0)
    ]


def test_undivided_steps_are_h_times_mu():
    """And what perturbs nothing is as it was; Adagrad's steps are another matter."""
    plan = plan_of(
        LearnerSpec("two-point", "score", 0.01, 0.02),
        LearnerSpec("first-order", None, 0.03, None),
        LearnerSpec("symmetric", "score", 0.1, 0.1, step="adagrad"),
    )
    runs = undivided_runs(plan, "data")
    assert [(run.learner, run.settings.h, run.settings.mu) for run in runs[::2]] == [
        ("two-point score", pytest.approx(0.0002), 0.02),
        ("first-order", 0.03, None),
    ]
    assert {run.phase for run in runs} == {"undivided"}


# Numbers at the ends of what there is


@pytest.mark.parametrize("values", [(1e308, 1e-308), (5e-324, 1e308), (0.1, 0.1, 0.1), (1.0, 1.0000000000000002)])
@pytest.mark.parametrize("best", [1e-308, 0.1, 1e308])
def test_a_grid_may_hold_any_numbers(values, best):
    def answer(h, mu, n, seed):
        return -abs(math.log10(h) - math.log10(best)), 0.5

    for spec in (line(*values), grid(values, values), grid(values, values, "map")):
        (found,) = tune(plan_of(spec, iterations=16), Scripted(answer), "data").values()
        assert 0 < found.chosen[0] < math.inf


# What fails


def test_a_trial_that_ran_away_counts_as_the_worst_and_is_not_tried_longer():
    """h of 1 runs away in short trials already, 0.1 only after 1,000 steps."""
    stub = Scripted(lambda h, mu, n, seed: RAN_AWAY if h == 1.0 or (h == 0.1 and n > 1000) else near(0.02)(h, mu))
    found = tune(plan_of(line(10.0, 1.0, 0.1, 0.01, 0.001)), stub, "data")[LINE]
    assert stub.h == [
        (100, [0.001, 0.01, 0.1, 1.0, 10.0]),
        (400, [0.01, 0.1]),
        (1600, [0.01, 0.1]),
        (1600, [0.001]),
        (1600, [0.004642, 0.02154]),
        (1600, [0.04642]),
    ]
    assert found.chosen == (0.02154, None)
    assert found.note == "2 trials failed: scores not finite, h too large"
    assert [(trial.h, trial.iterations, trial.dev) for trial in found.trials if trial.dev is None] == [
        (0.1, 1600, None),
        (1.0, 100, None),
    ]
    assert found.trials[-1] == Trial(1.0, None, 100, None, None, 1)


def test_a_neighbour_that_ran_away_in_a_short_trial_is_not_tried_again():
    stub = Scripted(lambda h, mu, *_: RAN_AWAY if h == 1.0 else near(0.1)(h, mu))
    found = tune(plan_of(line(10.0, 1.0, 0.1, 0.01, 0.001)), stub, "data")[LINE]
    assert found.chosen == (0.1, None)
    assert 1.0 not in [h for h, _ in stub.at(1600)]


def test_where_every_trial_ran_away_it_says_so():
    with pytest.raises(SparsezoError) as caught:
        tune(plan_of(line(1.0, 0.1)), Scripted(lambda *_: RAN_AWAY), "data")
    assert str(caught.value) == "first-order: no trial came to an end; widen the grid to smaller h"


def test_any_other_failure_ends_the_search():
    def answer(h, mu, n, seed):
        return {0.01: RAN_AWAY, 0.1: "the disk is not finite"}.get(h, 0.5)

    with pytest.raises(SparsezoError) as caught:
        tune(plan_of(line(1.0, 0.1, 0.01)), Scripted(answer), "data")
    message = "first-order, tune, h 0.1, seed 5: the disk is not finite; the same command goes on from there"
    assert str(caught.value) == message


def test_what_a_search_needs():
    with pytest.raises(UsageError) as caught:
        tune(plan_of(line(0.1), dev=None), Scripted(near(0.1)), "data")
    assert str(caught.value) == "tuning looks at dev: give `dev`, a file or a number of inputs to hold out"
    with pytest.raises(UsageError) as caught:
        tune(plan_of(LearnerSpec("two-point", "score", 0.1, 0.1)), Scripted(near(0.1)), "data")
    assert str(caught.value) == "test: no learner has a grid; give [grid] h and mu"


# With a true engine


def test_trials_are_runs_that_are_kept_and_nothing_is_asked_again(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text(chunking_columns(generate_chunking(60, seed=1)))
    loader = partial(task_spec("chunking").load, Files((str(path),), "20", None, {"only": "NP"}))
    plan = plan_of(line(1.0, 0.1), iterations=64, seeds=(8, 3))
    out = tmp_path / "out"
    found = tune(plan, LocalEngine(out, loader, processes=1), "data")

    def nothing_to_load():
        raise AssertionError("there was something left to do")

    again = LocalEngine(out, nothing_to_load, processes=1)
    assert tune(plan, again, "data") == found
    assert not list(out.glob("runs/*/model.szo"))
    assert [run.settings.seed for run in tuned_runs(plan, "data", found)] == [70, 71]
