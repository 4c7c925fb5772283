"""Experiments as data: the paper's own are there, a file is read as it is meant or refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sparsezo.errors import DataError, UsageError
from sparsezo.experiments.plan import BUILTIN, PAPER, builtin, parse_experiment, read_experiment

SMALL = """
name = "small"
task = "chunking"
iterations = 1000
seeds = 2
[data]
train = "train.txt"
dev = 10
options = { only = "NP" }
[fixed]
h = 0.01
mu = 0.1
[grid]
h = [0.1, 0.01]
mu = [0.1]
[[learner]]
rule = "two-point"
perturb = "score"
paper = 0.5
[[learner]]
rule = "first-order"
h = 0.5
baseline = true
grid.h = [1, 2]
"""


def parse(text: str):
    return parse_experiment(text, "small.toml")


def test_a_file_is_read_as_it_is_meant():
    plan = parse(SMALL)
    assert plan.seeds == (0, 1)
    assert plan.interval == 10
    assert (plan.data.train, plan.data.dev, plan.data.test, plan.data.options) == (
        *(("train.txt",), "10", None),
        {"only": "NP"},
    )
    first, second = plan.learners
    assert first.name == "two-point score"
    assert (first.h, first.mu, first.paper) == (0.01, 0.1, 0.5)
    assert first.grid() == [(0.1, 0.1), (0.01, 0.1)]
    assert second.name == "first-order with baseline"
    assert (second.h, second.mu, second.paper) == (0.5, None, None)
    assert second.grid() == [(1.0, None), (2.0, None)]
    settings = first.settings(7, 0.3, 0.4)
    assert (settings.seed, settings.h, settings.mu) == (7, 0.3, 0.4)


@pytest.mark.parametrize("name", BUILTIN)
def test_the_papers_experiments_round_trip(name, tmp_path):
    plan = replace(builtin(name), origin="generated", identity="ab")
    path = tmp_path / "experiment.toml"
    path.write_text(plan.to_toml())
    assert read_experiment(path) == plan
    assert len(plan.seeds) == 3


def test_text_of_any_kind_round_trips():
    plan = replace(parse(SMALL), note='a "quoted"\nline \\ \x7f é', evaluate_every=3)
    assert parse(plan.to_toml()) == plan


def test_the_papers_figures():
    chunking, smt, text = (builtin(name) for name in PAPER)
    assert {spec.name: spec.paper for spec in chunking.learners if spec.paper} == {
        "comparison all": 0.810,
        "baseline all": 0.819,
        "two-point all": 0.841,
        "comparison active": 0.842,
        "baseline active": 0.869,
        "two-point active": 0.888,
        "first-order": 0.908,
    }
    assert len(chunking.learners) == 16
    assert {(spec.h, spec.mu) for spec in chunking.learners if spec.mu} == {(0.01, 0.01)}
    assert {(spec.h, spec.mu) for spec in smt.learners if spec.mu} == {(0.001, 0.001)}
    assert not any(spec.perturb == "all" for spec in smt.learners)
    assert (len(smt.learners), len(smt.learners[0].grid()), list(smt.bounds)) == (8, 30, ["out-of-domain", "in-domain"])
    assert len(text.learners) == 11


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("seeds = 2", "seed = 2", "small.toml: unknown key 'seed'; known are .*seeds"),
        ("dev = 10", "develop = 10", "small.toml: unknown key 'data.develop'; known are train, dev, test, options"),
        ("paper = 0.5", "papers = 0.5", "unknown key 'learner 1.papers'; known are .*paper"),
        ("mu = [0.1]", "nu = [0.1]", "unknown key 'grid.nu'; known are h, mu"),
        ("grid.h = [1, 2]", "grid.k = [1]", "unknown key 'learner 2.grid.k'"),
        ("iterations = 1000", "iterations = '1M'", 'iterations is "1M"; give a whole number'),
        ("iterations = 1000", "", "iterations is missing; give a whole number"),
        ("iterations = 1000", "iterations = 0", "iterations 0: must be at least 1"),
        ("h = 0.01", "h = true", "fixed.h is true; give a number"),
        ("h = [0.1, 0.01]", "h = [0.1, 'x']", "grid.h: must be a list of numbers"),
        ("h = 0.01", "", "learner 1: it has no h"),
        ('task = "chunking"', 'task = "parsing"', "task parsing: choose from chunking, text, rerank"),
        ('"two-point"', '"three-point"', "learner 1: --rule three-point: choose from"),
        ("baseline = true", 'perturb = "all"', "learner 2: rule first-order perturbs nothing"),
        ("seeds = 2", "seeds = [1, 1]", "seeds: give at least one, each once"),
        ("seeds = 2", "seeds = [-1]", "seeds: must be whole numbers from 0"),
        ("seeds = 2", "init = 'w'", "init and bounds belong to task rerank"),
        ('train = "train.txt"', "train = 3", "data.train is 3; give a path"),
        ("[data]", "[data", "is not TOML"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(old, new, message):
    assert old in SMALL
    with pytest.raises(DataError, match=message) as caught:
        parse(SMALL.replace(old, new, 1))
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("small.toml: ")


def test_two_learners_of_one_name_are_refused():
    with pytest.raises(DataError, match="learner 'two-point score' is there twice"):
        parse(SMALL + '[[learner]]\nrule = "two-point"\nperturb = "score"\nh = 0.5\n')


def test_no_such_experiment():
    with pytest.raises(
        UsageError, match=r"experiment parsing: choose from chunking, smt, text, noise, or name a .toml file"
    ):
        builtin("parsing")
    with pytest.raises(DataError, match="no such file"):
        read_experiment("nowhere.toml")


def test_plans_that_cannot_share_a_folder():
    plan = parse(SMALL)
    assert plan.clash(plan) is None
    assert plan.clash(replace(plan, seeds=(0, 1, 2), learners=plan.learners[:1])) is None
    assert plan.clash(replace(plan, iterations=5)) == "iterations"
    assert plan.clash(parse(SMALL.replace("h = 0.5", "h = 0.6"))) == "learner 'first-order with baseline'"
