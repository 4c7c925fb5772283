"""The search for h and mu: halving, growing grids, what it says; and that its trials are runs."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from sparsezo.cli.experiments import load

from sparsezo.engines.local import Finished, Runner
from sparsezo.engines.progress import Failure
from sparsezo.errors import SparsezoError, UsageError
from sparsezo.experiments.plan import DataSpec, Experiment, LearnerSpec
from sparsezo.experiments.tuning import tune, tuned_runs
from sparsezo.tasks.chunking.generate import chunking_columns, generate_chunking
from sparsezo.tasks.loading import Files

H, MU = (1.0, 0.1, 0.01, 0.001), (0.1, 0.01, 0.001)


def plan_of(*learners: LearnerSpec, iterations: int = 1600, dev: str | None = "40", seeds=(5,)) -> Experiment:
    return Experiment("test", "chunking", DataSpec(("train.txt",), dev), learners, iterations, seeds=seeds)


def learner(rule: str = "two-point", perturb: str | None = "score", h=H, mu=MU, criterion="map") -> LearnerSpec:
    return LearnerSpec(rule, perturb, h[0], mu[0] if mu else None, grid_h=h, grid_mu=mu, criterion=criterion)


annealed = partial(learner, criterion="annealed")  # where h and mu both count
ANNEALED = "two-point score annealed 1"


class Stub:
    """A runner whose runs have a dev figure by formula; ``at`` is the best (h, mu)."""

    def __init__(self, at: tuple[float, float], broken=lambda settings: None) -> None:
        self.out = Path("nowhere")
        self.at, self.broken = at, broken
        self.asked: list[tuple[float, float | None, int]] = []

    def dev(self, settings) -> float:
        mu = settings.mu if settings.mu else self.at[1]
        return 1 - 0.01 * (math.log10(settings.h / self.at[0]) ** 2 + math.log10(mu / self.at[1]) ** 2)

    def run(self, runs, progress=None) -> Finished:
        self.asked += [(run.settings.h, run.settings.mu, run.iterations) for run in runs]
        assert all(run.phase == "tune" for run in runs)
        failures = tuple(Failure(run, message) for run in runs if (message := self.broken(run.settings)))
        failed = {failure.run.hash for failure in failures}
        results = {run.hash: {"dev": self.dev(run.settings), "average_loss": 0.5} for run in runs}
        return Finished({key: {"result": value} for key, value in results.items() if key not in failed}, failures)


def test_halving_tries_all_shortly_and_few_to_the_end():
    stub = Stub(at=(0.1, 0.01))
    found = tune(plan_of(annealed()), stub, "data")[ANNEALED]
    assert found.chosen == (0.1, 0.01)
    assert not found.widened
    assert found.note == ""
    counts = {length: sum(each[2] == length for each in stub.asked) for length in (100, 400, 1600)}
    assert counts == {100: 12, 400: 4, 1600: 7}  # two to the end, the best one's other three neighbours, two in between
    best = found.trials[0].as_dict()
    assert best == {"h": 0.1, "mu": 0.01, "dev": 1.0, "iterations": 1600, "seeds": 1}
    assert len(found.trials) == 23


def test_the_full_grid_tries_all_to_the_end():
    stub = Stub(at=(0.1, 0.01))
    assert tune(plan_of(annealed()), stub, "data", full_grid=True)[ANNEALED].chosen == (0.1, 0.01)
    assert [each[2] for each in stub.asked] == [1600] * 12


def test_a_full_grid_that_grows_is_tried_in_full():
    stub = Stub(at=(0.01, 0.001))
    tune(plan_of(annealed(h=(0.1, 0.01), mu=(0.1, 0.001))), stub, "data", full_grid=True)
    assert len(stub.asked) == len(set(stub.asked)) == 3 * 3
    assert {each[2] for each in stub.asked} == {1600}


class Patient(Stub):
    """Short trials like large steps: the best h falls as trials become longer, from 1 at 100 to 0.001 at 1600."""

    def run(self, runs, progress=None) -> Finished:
        self.length = runs[0].iterations
        return super().run(runs, progress)

    def dev(self, settings) -> float:
        return 1 - 0.01 * abs(math.log10(settings.h * (self.length / 100) ** 2.5))


def test_the_search_walks_on_from_what_halving_found():
    plan = plan_of(learner("first-order", None, h=(1.0, 0.1, 0.01, 0.001, 1e-4), mu=()))
    stub = Patient(at=(0.0, 0.0))
    found = tune(plan, stub, "data")["first-order"]
    assert found.chosen == (0.001, None)
    assert [h for h, _, length in stub.asked if length == 1600][:5] == [0.1, 1.0, 0.01, 0.001, 1e-4]
    assert not found.widened


def test_a_grid_grows_where_the_best_lies_on_its_edge():
    said: list[str] = []
    plan = plan_of(annealed(h=(0.01, 0.003162, 0.001), mu=(0.1, 0.01)))
    found = tune(plan, Stub(at=(0.0003, 1.0)), "data", say=said.append)[ANNEALED]
    assert found.chosen == (0.0003162, 1.0)  # 0.0003 is nearer to it than to 0.000215
    assert found.widened
    assert "the best lay on the edge, h 0.001 and mu 0.1: widened by a decade to h 0.0001 and mu 1" in found.note
    assert any(f"{ANNEALED}: the best lay on the edge" in line for line in said)
    assert {trial.h for trial in found.trials} >= {0.01, 0.003162, 0.001, 0.0003162, 0.0001}


def test_it_grows_twice_at_most_and_says_so():
    plan = plan_of(annealed(h=(0.1, 0.01), mu=(1.0, 0.1, 0.01)))
    found = tune(plan, Stub(at=(1e5, 0.1)), "data")[ANNEALED]
    assert found.chosen == (10.0, 0.1)
    assert "the best still lies on the edge" in found.note


class ScaleFree(Stub):
    """Dev depends on h / mu^2 alone, best at 0.003."""

    def dev(self, settings) -> float:
        return 1 - 0.01 * abs(math.log10(settings.h / settings.mu**2 / 0.003))


def test_points_that_are_the_same_up_to_scale_are_tried_once():
    stub = ScaleFree(at=(0.0, 0.0))
    found = tune(plan_of(learner(h=(1.0, 0.1, 0.01, 0.001, 1e-4), mu=(1.0, 0.1, 0.01))), stub, "data")
    assert "only h / mu^2 counts" in found["two-point score"].note
    h, mu = found["two-point score"].chosen
    assert h / mu**2 == pytest.approx(0.002154, rel=1e-3)  # between 0.001 and 0.01, in thirds
    short = [round(math.log10(h / mu**2)) for h, mu, length in stub.asked if length == 100]
    assert sorted(short) == [-4, -3, -2, -1, 0, 1, 2, 3, 4]


def test_a_scale_free_grid_grows_on_both_axes():
    stub = ScaleFree(at=(0.0, 0.0))
    found = tune(plan_of(learner(h=(0.01, 0.003162, 0.001), mu=(0.1, 0.01))), stub, "data")["two-point score"]
    h, mu = found.chosen
    assert h / mu**2 == pytest.approx(0.003162, rel=1e-3)
    assert "the best lay on the edge, h 0.001 and mu 0.1: widened by a decade to h 0.0001 and mu 1" in found.note
    assert "still" not in found.note
    laws = [(round(math.log10(h / mu**2), 2), length) for h, mu, length in stub.asked]
    assert len(laws) == len(set(laws))


def test_weights_that_start_elsewhere_have_a_scale():
    stub = ScaleFree(at=(0.0, 0.0))
    plan = replace(plan_of(learner(h=(0.1, 0.01, 0.001), mu=(1.0, 0.1))), task="rerank", init="weights.txt")
    assert "only h" not in tune(plan, stub, "data")["two-point score"].note
    assert sum(length == 100 for _, _, length in stub.asked) == 6


class Noisy(Stub):
    """With seed 5 alone 0.01 looks best; 0.1 is, on average."""

    def dev(self, settings) -> float:
        luck = 0.02 if (settings.seed, settings.h) == (5, 0.01) else 0.0
        return super().dev(settings) + luck


def test_the_means_over_all_seeds_decide():
    stub = Noisy(at=(0.1, 0.01))
    plan = plan_of(learner("first-order", None, mu=()), seeds=(5, 6, 7))
    found = tune(plan, stub, "data")["first-order"]
    assert found.chosen == (0.1, None)
    assert found.dev == pytest.approx(1.0)
    assert [trial.seeds for trial in found.trials[:4]] == [3, 3, 3, 1]
    assert found.trials[3].h == 0.01
    assert tune(plan_of(learner("first-order", None, mu=())), stub, "data")["first-order"].chosen == (0.01, None)


def test_a_finalist_that_ran_away_with_another_seed_is_not_chosen():
    def broken(settings) -> str | None:
        return "step 3: the scores are not finite" if (settings.seed, settings.h) == (6, 0.1) else None

    found = tune(plan_of(learner("first-order", None, mu=()), seeds=(5, 6)), Stub((0.1, 0.01), broken), "data")
    assert found["first-order"].chosen[0] != 0.1
    assert found["first-order"].dev is not None


def test_a_learner_without_mu_and_many_learners_at_once():
    stub = Stub(at=(0.1, 0.01))
    tuned = tune(plan_of(annealed(), learner("first-order", None, mu=())), stub, "data")
    assert list(tuned) == [ANNEALED, "first-order"]
    assert tuned["first-order"].chosen == (0.1, None)
    assert tuned["first-order"].as_dict()["chosen"] == {"h": 0.1, "mu": None}


def test_a_trial_that_ran_away_counts_as_the_worst():
    def broken(settings) -> str | None:
        return "step 3: the scores are not finite" if settings.h == 1.0 else None

    found = tune(plan_of(annealed()), Stub((0.1, 0.01), broken), "data")[ANNEALED]
    assert found.chosen == (0.1, 0.01)
    assert found.trials[-1].dev is None
    assert "3 trials failed: scores not finite, h too large" in found.note


def test_any_other_failure_ends_the_search():
    with pytest.raises(SparsezoError, match="disk full; the same command goes on"):
        tune(plan_of(learner()), Stub((0.1, 0.01), lambda settings: "disk full"), "data")


def test_what_a_search_needs():
    with pytest.raises(UsageError, match="give --dev"):
        tune(plan_of(learner(), dev=None), Stub((0.1, 0.1)), "data")
    with pytest.raises(UsageError, match="no learner has a grid"):
        tune(plan_of(LearnerSpec("two-point", "score", 0.1, 0.1)), Stub((0.1, 0.1)), "data")


@pytest.fixture(scope="module")
def loader(tmp_path_factory):
    path = tmp_path_factory.mktemp("tuning") / "train.txt"
    path.write_text(chunking_columns(generate_chunking(100, seed=1)))
    return partial(load, "chunking", Files((str(path),), "40", None, {"only": "NP"}))


def test_the_search_finds_what_the_full_grid_finds_and_its_trials_are_runs(loader, tmp_path):
    learners = (learner("first-order", None, h=(100.0, 0.1, 1e-4), mu=()), learner(h=(10.0, 0.01, 1e-5), mu=(0.3,)))
    plan = plan_of(*learners, seeds=(5, 6))
    runner = Runner(tmp_path / "halving", loader, processes=1)
    halved = tune(plan, runner, "data")
    full = tune(plan, Runner(tmp_path / "full", loader, processes=1), "data", full_grid=True)
    for name, found in halved.items():
        assert found.dev >= full[name].dev
        assert (*full[name].chosen, 1600, 1) in {
            (each.h, each.mu, each.iterations, each.seeds) for each in found.trials
        }
    stamps = {path: path.stat().st_mtime_ns for path in tmp_path.glob("halving/runs/*/run.json")}
    assert tune(plan, runner, "data") == halved  # nothing is asked again
    assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("halving/runs/*/run.json")} == stamps
    assert len(list(tmp_path.glob("halving/runs/*/model.szo"))) == 4  # of the chosen trials, with both seeds
    runs = tuned_runs(plan, "data", halved)
    assert [(run.phase, run.settings.seed) for run in runs] == [("tuned", 5), ("tuned", 6)] * 2
    runner.run(runs)
    for run in runs:
        assert (run.folder(runner.out) / "model.szo").exists()
    links = [(run.folder(runner.out) / "curve.csv").stat().st_nlink for run in runs]
    assert links == [2, 2, 2, 2]  # done already, as trials
