"""reproduce scaling: its objective is what it says, its batched runs are Algorithm 1, its exponents are theory's."""

from __future__ import annotations

import csv
import math

import numpy as np
import pytest

from sparsezo.errors import SparsezoError, UsageError
from sparsezo.experiments import scaling
from sparsezo.experiments.scaling import PERTURBS, RATES, Objective, Panel, Point, exponent, measure
from sparsezo.reports.scaling import run_scaling

SMALL = Point(n=16, n_bar=8, r_bar=2)


def loss(objective, seed, x, w):
    """F(w, x), from its formula."""
    errors = objective.C[seed, x] @ w[objective.A[seed, x]] - objective.target[seed, x, :, 0]
    return np.abs(errors).sum() / math.sqrt(objective.point.r_bar)


# The objective


@pytest.mark.parametrize("point", [SMALL, Point(8, 8, 2), Point(16, 4, 4), Point(16, 4, 1)])
def test_the_objective_is_as_described(point):
    objective = Objective(point, seeds=2)
    assert objective.A.shape == (2, point.inputs, point.n_bar)
    for seed in range(2):
        assert np.ptp(np.bincount(objective.A[seed].ravel(), minlength=point.n)) == 0  # all equally often active
        assert all(np.unique(active).size == point.n_bar for active in objective.A[seed])
        G = objective.C[seed] @ objective.C[seed].transpose(0, 2, 1)
        np.testing.assert_allclose(G, np.broadcast_to(np.eye(point.r_bar), G.shape), atol=1e-12)
    np.testing.assert_allclose(objective.f(np.zeros((2, point.n, 1))), 1.0)
    assert (objective.A[0] != objective.A[1]).any()


def test_f_is_the_mean_of_F():
    objective = Objective(SMALL, seeds=2)
    w = np.random.default_rng(0).standard_normal((2, SMALL.n, 3))
    for seed in range(2):
        for column in range(3):
            losses = [loss(objective, seed, x, w[seed, :, column]) for x in range(SMALL.inputs)]
            assert objective.f(w)[seed, column] == pytest.approx(np.mean(losses))


def test_F_is_lipschitz_with_constant_one():
    objective, rng = Objective(SMALL, seeds=1), np.random.default_rng(1)
    ratios = []
    for _ in range(2_000):
        w, move = rng.standard_normal((2, SMALL.n))
        x = rng.integers(SMALL.inputs)
        gradient = np.zeros(SMALL.n)  # the steepest way, by finite differences, and a random one
        for i in objective.A[0, x]:
            gradient[i] = loss(objective, 0, x, w + 1e-6 * np.eye(SMALL.n)[i]) - loss(objective, 0, x, w)
        for direction in (move, gradient):
            change = loss(objective, 0, x, w + 1e-3 * direction / np.linalg.norm(direction)) - loss(objective, 0, x, w)
            ratios.append(abs(change) / 1e-3)
    assert 0.99 < max(ratios) < 1 + 1e-6


# The runs


def literal(objective, perturb, h, seed, steps):
    """Algorithm 1 for one seed and one h, with the same random numbers, and f after it."""
    point = objective.point
    draw = {j: scaling._generator(seed, point, j) for j in (scaling._INPUTS, scaling._STEP, scaling._OWED)}
    mu = scaling.ALPHA / math.sqrt(point.r_bar)
    w, owed = np.zeros(point.n), np.zeros(point.n)  # owed: the variance of what a weight has coming
    for x in draw[scaling._INPUTS].integers(point.inputs, size=steps):
        active = objective.A[seed, x]
        u = np.zeros(point.n)
        u[active] = draw[scaling._STEP].standard_normal(point.n_bar)
        if perturb == "score":
            C = objective.C[seed, x]
            u[active] = C.T @ (C @ u[active])
        if perturb == "all":
            w[active] += np.sqrt(owed[active]) * draw[scaling._OWED].standard_normal(point.n_bar)
        c = -h * (loss(objective, seed, x, w + mu * u) - loss(objective, seed, x, w)) / mu
        w += c * u
        if perturb == "all":
            owed += c * c
            owed[active] = 0
    if perturb == "all":
        w += np.sqrt(owed) * scaling._generator(seed, point, scaling._READ).standard_normal(point.n)
    return w


@pytest.mark.parametrize("perturb", PERTURBS)
def test_the_batched_runs_are_algorithm_1(perturb):
    objective, steps = Objective(SMALL, seeds=2), 300  # more than a block of draws
    runs = scaling._Runs(objective, perturb)
    runs.advance(7)
    runs.advance(steps)
    f = runs.f()
    for seed in range(2):
        for column in (4, 12):
            w = literal(objective, perturb, RATES[column], seed, steps)
            np.testing.assert_allclose(runs.w[seed, :, column], w, rtol=1e-7, atol=1e-9)
            mean = np.mean([loss(objective, seed, x, w) for x in range(SMALL.inputs)])
            assert f[seed, column] == pytest.approx(mean)


def test_perturbations_of_one_dimension_are_one():
    """So the experiment measures them once."""
    everything_active, as_many_scores = Point(16, 16, 4), Point(16, 4, 4)
    for point, left, right in ((everything_active, "all", "active"), (as_many_scores, "active", "score")):
        assert point.dimension(left) == point.dimension(right)
        first, second = (measure(point, perturb, seeds=2) for perturb in (left, right))
        assert (first.iterations == second.iterations).all()
        assert first.h == second.h


def test_measure_takes_the_best_h():
    found = measure(SMALL, "active", seeds=3)
    runs = scaling._Runs(Objective(SMALL, seeds=3), "active")
    for k in range(1, int(found.iterations.max()) + 1):
        runs.advance(k)
    best = int(np.flatnonzero(found.h == RATES)[0])
    last = int(np.argmax(found.iterations))
    assert runs.f()[last, best] <= scaling.ACCURACY
    assert not found.edge
    np.testing.assert_allclose(found.passes, found.iterations / SMALL.inputs)


def test_what_cannot_be_reached_is_said(monkeypatch):
    monkeypatch.setattr(scaling, "ACCURACY", -1.0)
    with pytest.raises(SparsezoError, match=r"score at .*did not fall to -1"):
        measure(Point(4, 4, 4), "score", seeds=1)


# The report


def test_exponent():
    assert exponent([1, 2, 4, 8], [3, 12, 48, 192]) == 2
    assert str(exponent([1, 2, 4], [5, 5, 4.999])) == "0.0"


def test_panels_grow_one_thing_each():
    for quick in (False, True):
        n, both, n_bar = scaling.panels(quick)
        assert {(point.n_bar, point.r_bar) for point in n.points} == {(32, 4)}
        assert {(point.n, point.n_bar // point.r_bar) for point in both.points} == {(both.points[0].n, 4)}
        assert {(point.n, point.r_bar) for point in n_bar.points} == {(n_bar.points[0].n, 4)}
        for panel in (n, both, n_bar):
            assert all(point.r_bar <= point.n_bar <= point.n for point in panel.points)


def test_quick_shows_what_theory_says(tmp_path):
    lines = []
    path = run_scaling(tmp_path / "out", quick=True, seeds=3, say=lines.append, command="sparsezo reproduce <scaling>")
    assert path == tmp_path / "out" / "report.html"
    page = path.read_text(encoding="utf-8")
    assert "<pre>sparsezo reproduce &lt;scaling&gt;</pre>" in page
    assert "All nine agree" in page
    assert page.count("<svg") == 1
    text = (tmp_path / "out" / "scaling.md").read_text(encoding="utf-8")
    assert "All nine agree" in text
    assert "seeds:0,1,2|version:" in text
    assert len(lines) == 8
    assert (tmp_path / "out" / "figures" / "scaling.png").read_bytes().startswith(b"\x89PNG")
    svg = (tmp_path / "out" / "figures" / "scaling.svg").read_text(encoding="utf-8")
    assert svg.startswith("<?xml")
    with open(tmp_path / "out" / "scaling.csv", newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 27
    for row in rows:
        assert float(row["passes"]) == pytest.approx(float(row["iterations"]) / int(row["inputs"]))
        assert float(row["iterations_sd"]) >= 0


def test_the_same_call_writes_the_same_files(tmp_path, monkeypatch):
    points = (Point(8, 4, 2), Point(16, 4, 2))
    tiny = tuple(Panel(name, name, "", "n", "n", points) for name in "abc")
    monkeypatch.setattr(scaling, "panels", lambda quick: tiny)
    for name in ("first", "second"):
        run_scaling(tmp_path / name, seeds=1)
    for file in ("report.html", "scaling.csv", "scaling.md", "figures/scaling.svg", "figures/scaling.png"):
        assert (tmp_path / "first" / file).read_bytes() == (tmp_path / "second" / file).read_bytes()
    assert "a single seed" in (tmp_path / "first" / "scaling.md").read_text(encoding="utf-8")


def test_wrong_calls(tmp_path):
    with pytest.raises(UsageError, match="--seeds 0: must be at least 1"):
        run_scaling(tmp_path, seeds=0)
    (tmp_path / "file").write_text("")
    with pytest.raises(SparsezoError, match="cannot be made"):
        run_scaling(tmp_path / "file")
