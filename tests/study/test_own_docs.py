"""docs/experiments.md: its examples run as they stand, and no key is left out."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from sparsezo.cli.reproduce import run_reproduce
from sparsezo.settings import LEARNER_KEYS
from sparsezo.study.plan import DataSpec, Experiment, parse_experiment
from sparsezo.study.reports.reading import read_experiment
from sparsezo.tasks.chunking import synthetic

TEXT = (Path(__file__).parents[2] / "docs" / "experiments.md").read_text("utf-8")
EXAMPLES = re.findall(r"^```toml\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("number", range(2))
def test_examples_run(number, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(synthetic, "_PARTS", (800, 20, 20))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(EXAMPLES[number], "utf-8")
    (folder,) = run_reproduce("mine.toml", "generated", iterations="64", seeds=2, processes=1)
    assert folder == Path("results") / ("mine", "feedback")[number]
    experiment = read_experiment(folder)
    assert experiment.title == ("mine", "What does a rater's mood cost?")[number]
    assert [item.name for item in experiment.learners] == [
        ["comparison active", "two-point score adagrad"],
        ["comparison score", "comparison score flip:0.1", "two-point score adagrad", "two-point score annealed"],
    ][number]
    assert {phase for item in experiment.learners for phase in item.phases} == {"fixed", *["tuned"] * number}
    assert experiment.gaps == ()
    assert (folder / "report/report.html").exists()


def test_the_example_with_answers_runs_and_is_reported(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(synthetic, "_PARTS", (800, 20, 20))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(EXAMPLES[2], "utf-8")
    (folder,) = run_reproduce("mine.toml", "generated", answers="600", seeds=1, processes=1)
    experiment = read_experiment(folder)
    assert experiment.declared["looks"] == [500, 600]
    assert len(experiment.learners) == 4
    assert experiment.gaps == ()
    assert "How many minutes does it take?" in (folder / "report/report.html").read_text("utf-8")


def test_there_are_three_examples():
    assert len(EXAMPLES) == 3
    assert set(re.findall(r"^(\w+)", EXAMPLES[0], re.MULTILINE)) == {"task", "train", "dev", "rule", "perturb"}


def test_every_key_is_described():
    tops = [each.name for each in fields(Experiment) if each.name not in ("data", "learners")]
    keys = [*tops, *(each.name for each in fields(DataSpec)), *LEARNER_KEYS, "paper", "grid", "fixed", "walk"]
    keys += ["labels", "passes", "start", "figure"]
    for key in keys:
        assert re.search(rf"^# .*\b{key}\b|^\[?{key}\b|`\[?{key}\b", TEXT, re.MULTILINE), key


def test_defaults_are_as_they_are_described():
    plan = parse_experiment(EXAMPLES[0], "", "x")
    assert "default: 1,000,000" in TEXT
    assert (plan.iterations, len(plan.seeds)) == (1_000_000, 3)
