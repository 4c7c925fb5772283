"""How far steps are from what the machine needs, on a few made-up sentences; how long they take is not tested here."""

from __future__ import annotations

import pytest

from sparsezo.settings import Settings
from sparsezo.study import bench, limit
from sparsezo.tasks.chunking.synthetic import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking


@pytest.fixture(scope="module")
def problem():
    task, corpus = Chunking.fit(chunking_corpus(60, 1), only="NP")
    return task.problem(corpus)


def touched(problem, *settings, moved=0.5, **more):
    return limit._touched(problem, Settings(*settings, **more), moved)


def test_what_a_step_touches_is_counted_from_the_inputs(problem):
    L, N, inputs = 9, 60, problem.inputs
    columns = [set(inputs.columns[slice(*inputs.row_ptr[inputs.row_start[x : x + 2]])]) for x in range(N)]
    rows, tokens, entries = sum(map(len, columns)) / N, int(problem.output_start[-1]) / N, inputs.columns.size / N
    factor = 4 * sum(R * (R + 1) // 2 for R in problem.output_start[1:] - problem.output_start[:-1]) / N
    score = touched(problem, "two-point", "score", 0.1, 0.1)
    assert score["rows_read"] == pytest.approx(rows)
    assert score["rows_moved"] == pytest.approx(rows / 2)
    assert score["normals"] == pytest.approx(tokens * L)
    assert score["bytes"] == pytest.approx(4 * entries + 1.5 * factor)
    active = touched(problem, "two-point", "active", 0.1, 0.1)
    assert active["normals"] == pytest.approx(tokens * L + rows * L / 2)
    assert active["bytes"] == pytest.approx(6 * entries + 1.5 * factor)
    everything = touched(problem, "two-point", "all", 0.1, 0.1)
    assert everything["normals"] == pytest.approx(active["normals"] + rows * L)  # what sleeping weights are owed
    assert everything["rows_moved"] == pytest.approx(1.5 * rows)
    adagrad = touched(problem, "two-point", "score", 0.1, 0.1, step="adagrad")
    assert adagrad["rows_moved"] == pytest.approx(rows)  # W's and those of its sums
    first = touched(problem, "first-order", None, 0.1, None)
    assert first == pytest.approx({"rows_read": rows, "rows_moved": rows / 2, "bytes": 4 * entries, "normals": 0})


def test_a_row_multiplies_what_is_touched_by_what_it_costs():
    best = {"rows read": 2e-9, "rows moved": 3e-9, "bytes": 1e-10, "normals": 1e-9}
    row = limit._row(best, 4e-6, rows_read=100, rows_moved=200, bytes=1000, normals=100)
    parts = {"us_rows_read": 0.2, "us_rows_moved": 0.6, "us_bytes": 0.1, "us_normals": 0.1}
    assert row == pytest.approx({"us": 4, "least": 1, "times": 4, **parts})


def test_it_measures_and_shows(monkeypatch):
    monkeypatch.setattr(bench, "_SENTENCES", 60)
    for name, number in (("_WARM", 50), ("_TIMED", 50), ("_ANSWERS", 5), ("_STREAM", 2**12), ("_NORMALS", 64)):
        monkeypatch.setattr(limit, name, number)
    monkeypatch.setattr(limit, "_LEARNERS", {"two-point score": bench.CHUNKING["two-point score"]})
    fields = limit.measure_limit(None, 1)
    assert list(fields["learners"]) == ["two-point score", "part, an answer"]
    for row in fields["learners"].values():
        assert row["us"] > 0
        assert row["times"] == pytest.approx(row["us"] / row["least"])
    assert limit.limit_table(fields).row_count == 2
