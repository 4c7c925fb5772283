"""Tables of pages are what docs/results has: of growth (docs/speed.md), of automatic steps (docs/steps.md), of constant
steps and Adagrad (docs/results/README.md), of hashed features (docs/scaling.md)."""

from __future__ import annotations

import csv
from pathlib import Path

import auto_h
import growth as script
import hashing
import numpy as np

from sparsezo.cli.data import make_data
from sparsezo.tasks.registry import task_spec

ROOT = Path(__file__).parents[2]


def test_the_page_on_steps_has_the_table():
    """And auto is the default where it says that it is as good on all data of a task, but for reranking."""
    path = ROOT / "docs" / "results" / "steps" / "auto.csv"
    found = auto_h.table(str(path))
    assert found in (ROOT / "docs" / "steps.md").read_text("utf-8")
    good: dict[tuple[str, ...], bool] = {}
    for line in found.splitlines()[2:]:
        task, *key = (cell.strip() for cell in line.split("|")[1:5])
        task = "chunking" if task == "names" else task
        good[task, *key] = good.get((task, *key), True) and line.endswith("| as good |")
    for (task, rule, perturb, step), is_good in good.items():
        h, _ = task_spec(task).defaults(rule, step, perturb)
        assert (h == "auto") == (is_good and task != "rerank"), (task, rule, perturb, step)


def test_the_results_have_the_table_of_both_steps():
    found = auto_h.table(str(ROOT / "docs" / "results" / "steps" / "which.csv"))
    assert found in (ROOT / "docs" / "results" / "README.md").read_text("utf-8")
    assert "auto is" not in found
    rows = [line.split("|")[1:5] for line in found.splitlines()[2:]]
    tasks = ("chunking", "text", "names", "rerank")
    assert [[cell.strip() for cell in row] for row in rows] == [
        [task, "two-point", "score", step] for task in tasks for step in ("constant", "adagrad")
    ]


def test_the_page_on_hashing_has_the_table():
    with open(ROOT / "docs" / "results" / "scaling" / "hashing.csv", encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [int(row["seed"]) for row in rows] == list(hashing.SEEDS) * len(hashing.BITS)
    assert hashing.table(rows) in (ROOT / "docs" / "scaling.md").read_text("utf-8")


def test_hashed_runs_are_told_from_exact_ones(tmp_path, monkeypatch):
    files = [str(tmp_path / name) for name in ("train.txt", "test.txt")]
    for file, seed in zip(files, (1, 2), strict=True):
        make_data("chunking", file, "30", seed=seed)
    monkeypatch.setattr(hashing, "BITS", (None, 10, 14))
    rows = hashing.measure(*files, seeds=(1, 2), steps=500)
    assert [row["bits"] for row in rows] == ["", "", 10, 10, 14, 14]
    assert [row["weights"] for row in rows[2::2]] == [2**10 * 9, 2**14 * 9]
    few, many = (row["apart"] for row in rows[2::2])
    assert few < 0.1 < 0.5 < many < 1
    assert all(0 < row["f1"] < 1 for row in rows)
    lines = hashing.table(rows).splitlines()
    assert "exact vocabulary" in lines[2]
    assert lines[2].endswith("| |")
    assert "± " in lines[3]


def test_the_page_on_speed_has_the_table():
    with open(ROOT / "docs" / "results" / "speed" / "growth.csv", encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert {row["axis"] for row in rows} == set(script.AXES)
    assert script.table(rows) in (ROOT / "docs" / "speed.md").read_text("utf-8")


def test_each_size_is_what_it_says():
    size = {"n": 9_000, "features": 4, "tokens": 6, "labels": 9, "corpus": 50}
    problem, gold = script.problem_of(size)
    assert (len(problem), problem.n_labels) == (50, 9)
    assert abs(problem.n_features * problem.n_labels - 9_000) <= 9
    columns = problem.inputs.columns.reshape(-1, 4)
    assert len(columns) == 300
    assert (np.diff(np.sort(columns, axis=1), axis=1) > 0).all()  # a token's features are distinct
    assert (np.diff(problem.inputs.row_start) == 6).all()
    assert set(gold.tags.tolist()) == {0, 1, 2}


def test_a_measurement_has_a_row_for_each_learner(tmp_path, monkeypatch):
    monkeypatch.setattr(script, "WARM", 10)
    monkeypatch.setattr(script, "ROUND", 1e-4)
    monkeypatch.setattr(script, "USUAL", {"n": 9_000, "features": 4, "tokens": 6, "labels": 9, "corpus": 50})
    rows = list(script.measure("labels", 4, 1))
    assert [row["learner"] for row in rows] == list(script.LEARNERS)
    assert all(row["us"] > 0 and row["sentences"] == 50 and row["n_score"] == 24 for row in rows)
    script.draw([{name: str(value) for name, value in row.items()} for row in rows], tmp_path)
    assert (tmp_path / "growth.png").stat().st_size > 1000
