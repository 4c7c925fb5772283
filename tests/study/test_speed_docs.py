"""What docs/speed.md says of growth is what docs/results/speed has, and that is made by benchmarks/growth.py."""

from __future__ import annotations

import csv
from pathlib import Path

import growth as script
import numpy as np

ROOT = Path(__file__).parents[2]


def test_the_page_has_the_table():
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
