"""reproduce scaling: its objective is what it says, its batched steps are Algorithm 1's, its report says what it found.

Steps are compared one at a time from a shared state: over hundreds of steps rounding grows without bound.
"""

from __future__ import annotations

import csv
import itertools
import math

import numpy as np
import pytest

from sparsezo import __version__
from sparsezo.errors import SparsezoError, UsageError
from sparsezo.experiments import scaling, scaling_report
from sparsezo.experiments.scaling import PERTURBS, RATES, Measured, Objective, Panel, Point, exponent, measure
from sparsezo.experiments.scaling_report import run_scaling

SMALL = Point(n=16, n_bar=8, r_bar=2)
CLOSE = {"rtol": 1e-12, "atol": 1e-12}  # weights are of order 1


def loss(objective, seed, x, w):
    """F(w, x), from its formula."""
    errors = objective.C[seed, x] @ w[objective.A[seed, x]] - objective.target[seed, x, :, 0]
    return np.abs(errors).sum() / math.sqrt(objective.point.r_bar)


def generator(seed, stream, point=SMALL):
    """Streams: 0 draws the problem, 1 the inputs, 2 the perturbations, 3 and 4 what all owes and pays at a look."""
    return np.random.default_rng((seed, stream, point.n, point.n_bar, point.r_bar))


@pytest.fixture(autouse=True)
def no_endless_runs(monkeypatch):
    """Runs that never end are stopped; the longest test draws 3,700 times."""
    real, calls = scaling._Runs._normals, itertools.count()

    def counted(self, stream, shape):
        assert next(calls) < 20_000, "runs do not end"
        return real(self, stream, shape)

    monkeypatch.setattr(scaling._Runs, "_normals", counted)


# The objective


@pytest.mark.parametrize("point", [SMALL, Point(8, 8, 2), Point(16, 4, 4), Point(16, 4, 1)])
def test_the_objective_is_as_described(point):
    objective = Objective(point, seeds=2)
    inputs = {SMALL: 32, Point(8, 8, 2): 16, Point(16, 4, 4): 16, Point(16, 4, 1): 64}[point]  # 4 n / r_bar
    assert point.inputs == inputs
    assert objective.A.shape == (2, inputs, point.n_bar)
    for seed in range(2):
        assert (np.bincount(objective.A[seed].ravel()) == inputs * point.n_bar // point.n).all()  # equally often active
        assert all(np.unique(active).size == point.n_bar for active in objective.A[seed])
        G = objective.C[seed] @ objective.C[seed].transpose(0, 2, 1)
        np.testing.assert_allclose(G, np.broadcast_to(np.eye(point.r_bar), G.shape), atol=1e-12)
    np.testing.assert_allclose(objective.f(np.zeros((2, point.n, 1))), 1.0, rtol=1e-12)
    assert (objective.A[0] != objective.A[1]).any()
    assert (objective.C[0] != objective.C[1]).any()


def test_the_problem_is_drawn_weight_by_weight_as_its_seed_says():
    """Sets of active weights, then C, then a normal w*, scaled so that f(0) = 1."""
    objective = Objective(SMALL, seeds=2)
    for seed in range(2):
        rng = generator(seed, 0)
        rounds = SMALL.inputs * SMALL.n_bar // SMALL.n
        A = np.concatenate([rng.permutation(16).reshape(2, 8) for _ in range(rounds)])
        np.testing.assert_array_equal(objective.A[seed], A)
        normals = rng.standard_normal((SMALL.inputs, 8, 2))
        w_star = rng.standard_normal(16)
        targets = np.array([C @ w_star[active] for C, active in zip(objective.C[seed], A, strict=True)])
        for C, G in zip(objective.C[seed], normals, strict=True):  # the rows span what was drawn
            np.testing.assert_allclose(C.T @ (C @ G), G, **CLOSE)
        scale = np.mean(np.abs(targets).sum(1)) / math.sqrt(2)
        np.testing.assert_allclose(objective.target[seed, :, :, 0], targets / scale, **CLOSE)
        assert objective.f(np.stack([w_star / scale] * 2)[:, :, None])[seed, 0] == pytest.approx(0, abs=1e-12)


def test_f_is_the_mean_of_F():
    objective = Objective(SMALL, seeds=2)
    w = np.random.default_rng(0).standard_normal((2, SMALL.n, 3))
    for seed in range(2):
        for column in range(3):
            losses = [loss(objective, seed, x, w[seed, :, column]) for x in range(SMALL.inputs)]
            assert objective.f(w)[seed, column] == pytest.approx(np.mean(losses), rel=1e-12)


def test_F_is_lipschitz_with_constant_one():
    objective, rng = Objective(SMALL, seeds=1), np.random.default_rng(1)
    ratios = []
    for _ in range(300):
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


class Literal:
    """Algorithm 1 for one seed and one h, a step at a time."""

    def __init__(self, objective, perturb, h, seed, w, debt):
        self.objective, self.perturb, self.h, self.seed = objective, perturb, h, seed
        self.mu = 0.05 / math.sqrt(objective.point.r_bar)
        self.w, self.debt = w.copy(), debt.copy()  # debt: the variance of what a weight has coming

    def step(self, x, normals, owed):
        objective, n, seed = self.objective, self.objective.point.n, self.seed
        active, C = objective.A[seed, x], objective.C[seed, x]
        u = np.zeros(n)
        u[active] = C.T @ (C @ normals) if self.perturb == "score" else normals
        if self.perturb == "all":  # what these weights would have moved by while they slept
            self.w[active] += np.sqrt(self.debt[active]) * owed
        c = -self.h * (self.loss(x, self.w + self.mu * u) - self.loss(x, self.w)) / self.mu
        self.w += c * u
        self.debt += c * c
        self.debt[active] = 0

    def loss(self, x, w):
        return loss(self.objective, self.seed, x, w)


def near_the_kinks(runs):
    """A state in which mu u crosses kinks, so that mu matters, and in which every weight of all is owed something."""
    objective, rng = runs.objective, np.random.default_rng(5)
    S, n, H = runs.w.shape
    for seed in range(S):
        rows, target = objective.rows[seed].reshape(-1, n), objective.targets[seed, :, 0]
        w_star = np.linalg.lstsq(rows, target, rcond=None)[0]
        runs.w[seed] = w_star[:, None] + 0.03 * rng.standard_normal((n, H))
    if runs.perturb == "all":
        runs.Q[:] = rng.uniform(0.02, 0.03, runs.Q.shape)
        runs.paid[:] = runs.Q - rng.uniform(1e-5, 1e-4, runs.paid.shape)


def debts(runs):
    return runs.Q - runs.paid if runs.perturb == "all" else np.zeros_like(runs.w)


@pytest.mark.parametrize("perturb", PERTURBS)
def test_a_batched_step_is_a_step_of_algorithm_1(perturb):
    objective, steps = Objective(SMALL, seeds=2), 12
    runs = scaling._Runs(objective, perturb)
    near_the_kinks(runs)
    draw = [{stream: generator(seed, stream) for stream in (1, 2, 3)} for seed in range(2)]
    for k in range(1, steps + 1):
        w, debt = runs.w.copy(), debts(runs).copy()
        runs.advance(k)
        for seed in range(2):
            x = draw[seed][1].integers(SMALL.inputs)
            normals, owed = (draw[seed][stream].standard_normal(SMALL.n_bar) for stream in (2, 3))
            for column, h in enumerate(RATES):
                one = Literal(objective, perturb, h, seed, w[seed, :, column], debt[seed, :, column])
                one.step(x, normals, owed)
                np.testing.assert_allclose(runs.w[seed, :, column], one.w, **CLOSE)
                if perturb == "all":
                    np.testing.assert_allclose(debts(runs)[seed, :, column], one.debt, **CLOSE)


def test_the_steps_compared_cross_kinks():
    """Away from kinks c does not depend on mu, and a wrong mu would go unnoticed."""
    objective = Objective(SMALL, seeds=2)
    runs = scaling._Runs(objective, "active")
    near_the_kinks(runs)
    w, mu, x, crossed = runs.w[0, :, 0], runs.mu, 3, 0
    assert mu == pytest.approx(0.05 / math.sqrt(2), rel=1e-14)
    for u in np.random.default_rng(6).standard_normal((20, SMALL.n)):
        secants = [(loss(objective, 0, x, w + m * u) - loss(objective, 0, x, w)) / m for m in (mu, 1.025 * mu)]
        crossed += not math.isclose(*secants, rel_tol=1e-3)
    assert crossed >= 5


def test_a_look_at_f_pays_what_all_owes():
    objective = Objective(SMALL, seeds=2)
    runs = scaling._Runs(objective, "all")
    near_the_kinks(runs)
    read = [generator(seed, 4) for seed in range(2)]
    for _ in range(2):
        w, debt = runs.w.copy(), debts(runs).copy()
        f = runs.f()
        for seed in range(2):
            paid = w[seed] + np.sqrt(debt[seed]) * read[seed].standard_normal((SMALL.n, 1))
            np.testing.assert_allclose(runs.w[seed], paid, **CLOSE)
            for column in (0, 7, 20):
                mean = np.mean([loss(objective, seed, x, paid[:, column]) for x in range(SMALL.inputs)])
                assert f[seed, column] == pytest.approx(mean, rel=1e-12)
        assert (debts(runs) == 0).all()
        runs.paid -= 1e-4  # some more owed, for the second look


@pytest.mark.parametrize("perturb", ["active", "score"])
def test_a_look_at_f_changes_nothing_where_nothing_is_owed(perturb):
    objective = Objective(SMALL, seeds=2)
    runs = scaling._Runs(objective, perturb)
    near_the_kinks(runs)
    w = runs.w.copy()
    np.testing.assert_array_equal(runs.f(), objective.f(w))
    np.testing.assert_array_equal(runs.w, w)


def test_runs_start_at_zero_owing_nothing():
    runs = scaling._Runs(Objective(SMALL, seeds=2), "all")
    assert runs.w.shape == (2, 16, 21)
    assert not runs.w.any()
    assert not runs.Q.any()
    assert not runs.paid.any()
    np.testing.assert_allclose(runs.f(), 1, rtol=1e-12)


@pytest.mark.parametrize("perturb", PERTURBS)
def test_random_numbers_do_not_depend_on_how_steps_are_grouped(perturb, monkeypatch):
    runs = scaling._Runs(Objective(SMALL, seeds=2), perturb)
    seen = []
    monkeypatch.setattr(runs, "_step", lambda x, u, owed: seen.append((x.copy(), u.copy(), owed.copy())))
    runs.advance(7)
    runs.advance(7)  # nothing to do
    runs.advance(300)  # more than a block of draws
    assert runs.k == len(seen) == 300
    for seed in range(2):
        inputs = generator(seed, 1).integers(SMALL.inputs, size=300)
        assert [int(x[seed]) for x, _, _ in seen] == inputs.tolist()
        for part, stream in ((1, 2), (2, 3 if perturb == "all" else 2)):
            normals = generator(seed, stream).standard_normal((300, SMALL.n_bar))
            np.testing.assert_array_equal([step[part][seed, :, 0] for step in seen], normals)


@pytest.mark.parametrize(
    ("point", "left", "right"), [(Point(16, 16, 4), "all", "active"), (Point(16, 4, 4), "active", "score")]
)
def test_perturbations_of_one_dimension_are_one(point, left, right):
    """So the experiment measures them once. Step by step: where all weights are active, all owes nothing."""
    assert point.dimension(left) == point.dimension(right)
    objective = Objective(point, seeds=2)
    one, other = (scaling._Runs(objective, perturb) for perturb in (left, right))
    for k in range(1, 13):
        one.advance(k)
        other.advance(k)
        assert (one.w != 0).any()
        np.testing.assert_allclose(one.w, other.w, **CLOSE)
        np.testing.assert_allclose(one.f(), other.f(), rtol=1e-12)
        other.w[:] = one.w


# How long a run takes


def scripted(monkeypatch, crossings):
    """Runs whose f falls to 1/2 at the given iterations, S x H, and rises again; what was asked of them."""
    crossings = np.array(crossings, float)
    asked = []

    class Runs:
        def __init__(self, objective, perturb):
            asked.append((objective, perturb))
            self.k = 0

        def advance(self, k):
            assert k > self.k
            self.k = k
            asked.append(k)

        def f(self):
            return np.where((crossings <= self.k) & (self.k < 3 * crossings), 0.5, 0.9)

    monkeypatch.setattr(scaling, "_Runs", Runs)
    monkeypatch.setattr(scaling, "RATES", np.array([0.5, 0.25, 0.125, 0.0625]))
    return asked


def looks(point):
    """The iterations at which f is looked at: a quarter of a pass first, then 4% more each time."""
    k = 0
    while True:
        k = max(point.inputs // 4, k + 1, int(k * 1.04))
        yield k


def first_look(point, k):
    return next(look for look in looks(point) if look >= k)


def test_measure_takes_the_h_with_the_fewest_iterations_on_average(monkeypatch):
    # On average the third is best: 46, 50, 44, 70. The second has the least worst seed, the first the best one.
    asked = scripted(monkeypatch, [[10, 50, 30, 70], [82, 50, 58, 70]])
    found = measure(SMALL, "active", seeds=2, objective="given")
    assert asked[0] == ("given", "active")
    assert (found.h, found.edge, found.point, found.perturb) == (0.125, False, SMALL, "active")
    assert found.iterations.tolist() == [first_look(SMALL, 30), first_look(SMALL, 58)]
    assert found.passes.tolist() == [30 / 32, 58 / 32]
    asked_for = asked[1:]
    assert asked_for == [k for k, _ in zip(looks(SMALL), asked_for, strict=False)]
    assert asked_for[0] == 8
    assert asked_for[-1] == first_look(SMALL, 79)  # until the first h, at 10, cannot come below 44 any more


@pytest.mark.parametrize(
    ("crossings", "h", "edge"),
    [([40, 40, 60, 60], 0.5, True), ([60, 40, 40, 60], 0.25, False), ([80, 70, 60, 50], 0.0625, True)],
)
def test_ties_go_to_the_larger_h_and_an_end_of_the_grid_is_told(monkeypatch, crossings, h, edge):
    scripted(monkeypatch, [crossings])
    found = measure(SMALL, "score", seeds=1, objective="given")
    assert (found.h, found.edge) == (h, edge)
    assert found.iterations.tolist() == [first_look(SMALL, min(crossings))]


def test_measuring_stops_as_soon_as_no_other_h_can_be_better(monkeypatch):
    """20 on average; the first h has 10 and, at 29 without the other seed, can come to (10 + 30) / 2 at best."""
    asked = scripted(monkeypatch, [[10, 20, 45, 45], [44, 20, 45, 45]])
    assert measure(SMALL, "active", seeds=2, objective="given").iterations.tolist() == [20, 20]
    assert asked[-1] == 29


def test_all_rates_may_get_there_at_the_same_look(monkeypatch):
    scripted(monkeypatch, [[5, 4, 6, 3]])
    found = measure(SMALL, "active", seeds=1, objective="given")
    assert (found.iterations.tolist(), found.h) == ([8], 0.5)


def test_an_h_that_never_gets_there_does_not_keep_the_others_waiting(monkeypatch):
    asked = scripted(monkeypatch, [[np.inf, 40, 90, np.inf], [9, 60, 90, np.inf]])
    found = measure(SMALL, "all", seeds=2, objective="given")
    assert found.iterations.tolist() == [first_look(SMALL, 40), first_look(SMALL, 60)]
    assert asked[-1] < 110  # (9 + 91) / 2 is already no better than (40 + 60) / 2


def test_measure_makes_the_objective_itself(monkeypatch):
    asked = scripted(monkeypatch, [[5, 9, 9, 9]] * 3)
    measure(SMALL, "score", seeds=3)
    objective, _ = asked[0]
    assert isinstance(objective, Objective)
    assert (objective.point, objective.seeds.tolist()) == (SMALL, [0, 1, 2])
    measure(SMALL, "score")
    assert [each[0].seeds.size for each in asked if isinstance(each, tuple)] == [3, 3]  # three by default


def test_what_cannot_be_reached_is_said(monkeypatch):
    asked = scripted(monkeypatch, [[np.inf] * 4])
    with pytest.raises(SparsezoError) as caught:
        measure(Point(4, 4, 4), "score", seeds=1, objective="given")
    assert str(caught.value) == (
        "score at Point(n=4, n_bar=4, r_bar=4): f(w) did not fall to 0.5 in 560 iterations at any h"
    )
    assert asked[-2] < 560 <= asked[-1]  # 10 x 4 inputs x (n + 10)


def test_a_real_run_gets_where_measure_says(monkeypatch):
    """The runs, the looks and the best h together, with two rates to keep it short."""
    monkeypatch.setattr(scaling, "RATES", np.array([0.0625, 0.03125]))
    found = measure(SMALL, "active", seeds=2)
    objective, best = Objective(SMALL, seeds=2), int(np.flatnonzero(found.h == scaling.RATES)[0])
    runs, reached = scaling._Runs(objective, "active"), np.full(2, np.inf)
    for k in looks(SMALL):
        runs.advance(k)
        reached[np.isinf(reached) & (runs.f()[:, best] <= 0.5)] = k
        if np.isfinite(reached).all():
            break
    assert found.iterations.tolist() == reached.tolist()


# The experiment


def test_exponent():
    assert exponent([1, 2, 4, 8], [3, 12, 48, 192]) == 2
    assert exponent([1, 2, 4, 8], [8, 4, 2, 1]) == -1
    assert exponent([10, 100], [1, 2]) == 0.3  # log10 2 = 0.301, to two decimals
    assert str(exponent([1, 2, 4], [5, 5, 4.999])) == "0.0"


def test_panels_grow_one_thing_each():
    full, quick = ([panel.points for panel in scaling.panels(quick)] for quick in (False, True))
    assert full == [panel.points for panel in scaling.panels()]
    assert full[0] == tuple(Point(n, 32, 4) for n in (32, 64, 128, 256, 512))
    assert full[1] == tuple(Point(256, n_bar, n_bar // 4) for n_bar in (4, 8, 16, 32, 64, 128, 256))
    assert full[2] == tuple(Point(256, n_bar, 4) for n_bar in (4, 8, 16, 32, 64, 128, 256))
    assert quick[0] == tuple(Point(n, 32, 4) for n in (32, 64, 128))
    assert quick[1] == (Point(64, 4, 1), Point(64, 16, 4), Point(64, 64, 16))
    assert quick[2] == (Point(64, 4, 4), Point(64, 16, 4), Point(64, 64, 4))
    for quick, n in ((False, 256), (True, 64)):
        shown = [(each.name, each.title, each.fixed, each.grows, each.axis) for each in scaling.panels(quick)]
        assert shown == [
            ("n", "n grows", "n̄ = 32, r̄ = 4", "n", "n"),
            ("n_bar and r_bar", "n̄ and r̄ grow", f"n = {n}, r̄ = n̄ / 4", "n_bar", "n̄"),
            ("n_bar", "n̄ grows", f"n = {n}, r̄ = 4", "n_bar", "n̄"),
        ]


def test_theory_expects_the_dimension_and_two():
    by_n, by_both, by_n_bar = scaling.panels(quick=True)
    assert by_n.sizes == [32, 64, 128]
    assert by_n.expected == (exponent([32, 64, 128], [34, 66, 130]), 0, 0)
    assert by_both.expected == (0, exponent([4, 16, 64], [6, 18, 66]), exponent([4, 16, 64], [3, 6, 18]))
    assert by_n_bar.expected == (0, exponent([4, 16, 64], [6, 18, 66]), 0)


def test_the_rates_are_half_powers_of_two():
    np.testing.assert_allclose(RATES, [2 ** (-1 - j / 2) for j in range(21)], rtol=1e-15)


@pytest.fixture
def told(monkeypatch):
    """measure without the work: iterations from a formula, three seeds apart; and the calls made."""
    calls = []

    class Planned:
        def __init__(self, point, seeds):
            self.point, self.seeds = point, np.arange(seeds)

    def made_up(point, perturb, seeds, objective):
        calls.append((point, perturb))
        assert (objective.point, objective.seeds.size) == (point, seeds)
        mean = point.inputs * (point.dimension(perturb) + 2.0)
        return Measured(point, perturb, mean * np.array([0.5, 0.7, 1.8])[:seeds], 0.25, perturb == "all")

    monkeypatch.setattr(scaling, "Objective", Planned)
    monkeypatch.setattr(scaling, "measure", made_up)
    return calls


def test_each_point_and_dimension_is_measured_once(told):
    lines = []
    found = scaling.measure_all(quick=True, seeds=3, say=lines.append)
    assert told == [
        *((Point(32, 32, 4), each) for each in ("score", "active")),  # all is active
        *((point, each) for point in (Point(64, 32, 4), Point(128, 32, 4)) for each in ("score", "active", "all")),
        *((point, each) for point in (Point(64, 4, 1), Point(64, 16, 4)) for each in ("score", "active", "all")),
        *((Point(64, 64, 16), each) for each in ("score", "active")),
        *((Point(64, 4, 4), each) for each in ("score", "all")),  # active is score
        *((Point(64, 64, 4), each) for each in ("score", "active")),
    ]
    assert len(lines) == 8
    assert lines[0] == "scaling: 1 of 8: n 32, n_bar 32, r_bar 4: passes all 34, active 34, score 6"
    assert lines[2] == "scaling: 3 of 8: n 128, n_bar 32, r_bar 4: passes all 130, active 34, score 6"
    same = found.found[Point(64, 4, 4), "active"]
    assert (same.perturb, same.passes.mean()) == ("active", pytest.approx(6))
    assert (found.quick, found.seeds) == (True, 3)
    for panel in found.panels:
        assert found.exponents(panel) == panel.expected
        assert [each.perturb for each in found.line(panel, "all")] == ["all"] * len(panel.points)
    by_n = found.panels[0]  # there are n inputs here: one exponent more
    assert found.exponents(by_n, "iterations")[1:] == (1, 1)
    assert found.exponents(by_n, "iterations")[0] == exponent([32, 64, 128], [32 * 34, 64 * 66, 128 * 130])


def test_it_runs_with_three_seeds_and_in_full_by_default(told):
    found = scaling.measure_all()
    assert (found.quick, found.seeds, len(found.panels[0].points)) == (False, 3, 5)
    assert found.signature == (
        "experiment:scaling|rule:two-point|accuracy:0.5|h:best of 21 in 0.0005..0.5|mu:0.05/sqrt(r_bar)|"
        f"seeds:0,1,2|version:{__version__}"
    )
    assert scaling.measure_all(quick=True, seeds=1).signature.startswith("experiment:scaling-quick|")


# The report


def test_the_table_has_means_and_standard_deviations_over_seeds(told):
    rows = list(csv.DictReader(scaling_report._table(scaling.measure_all(quick=True)).splitlines()))
    assert len(rows) == 27
    assert [(row["panel"], row["perturb"]) for row in rows[::3]] == [
        (panel, perturb) for panel in ("n", "n_bar and r_bar", "n_bar") for perturb in PERTURBS
    ]
    row = rows[2]  # n = 128, all: 128 inputs, 128 + 2 passes of which the seeds took 0.5, 0.7 and 1.8
    sizes = [float(row[name]) for name in ("n", "n_bar", "r_bar", "inputs", "h", "seeds")]
    assert sizes == [128, 32, 4, 128, 0.25, 3]
    sd = math.sqrt((0.5**2 + 0.3**2 + 0.8**2) / 2)
    costs = [float(row[name]) for name in ("passes", "passes_sd", "iterations", "iterations_sd")]
    assert costs == pytest.approx([130, 130 * sd, 128 * 130, 128 * 130 * sd], rel=1e-12)
    row = rows[24]  # the third panel, n_bar = 4: 64 inputs of 4 scores
    assert (row["perturb"], row["inputs"], float(row["iterations"])) == ("score", "64", pytest.approx(64 * 6))


def test_one_seed_has_no_standard_deviation(told):
    rows = csv.DictReader(scaling_report._table(scaling.measure_all(quick=True, seeds=1)).splitlines())
    assert all(row["iterations_sd"] == row["passes_sd"] == "" and row["passes"] for row in rows)


def test_the_words_tell_the_exponents(told):
    text = scaling_report._paragraph(scaling.measure_all(quick=True))
    assert "all takes n^0.97 passes, active n^0.00 and score n^0.00" in text
    assert "When n̄ grows and n and r̄ do not, all takes n̄^0.00, active n̄^0.86 and score n̄^0.00." in text
    assert "When r̄ grows with n̄, they take n̄^0.00, n̄^0.86 and n̄^0.65." in text
    assert "iterations themselves grow with n as n^1.97, n^1.00 and n^1.00." in text
    assert "At 5 points the best h is an end of the grid." in text  # all, where it is measured by itself
    head, rows = scaling_report._exponents(scaling.measure_all(quick=True))
    assert head == ("exponent of passes (theory)", "all", "active", "score")
    assert rows[1] == ("n̄ and r̄ grow at n = 64, r̄ = n̄ / 4", "0.00 (0.00)", "0.86 (0.86)", "0.65 (0.65)")


def test_an_exponent_off_by_more_than_a_quarter_is_told(told, monkeypatch):
    honest = scaling.measure

    def verdict(extra):
        def steeper(point, perturb, seeds, objective):
            each = honest(point, perturb, seeds, objective)
            more = (point.n / 64) ** extra if (perturb, point.n_bar) == ("score", 32) else 1.0
            return Measured(point, perturb, each.iterations * more, each.h, each.edge)

        monkeypatch.setattr(scaling, "measure", steeper)
        return scaling_report._verdict(scaling.measure_all(quick=True))

    assert verdict(0.24) == verdict(-0.24) == "All nine agree with them within 0.25."
    assert verdict(0.27) == "Off by more than 0.25: score where n grows (0.27 for 0.00)."
    assert verdict(-0.27) == "Off by more than 0.25: score where n grows (-0.27 for 0.00)."


def test_the_experiment_shows_what_theory_says():
    """Exponents are found to 0.1 or so: off by at most 0.18 with nine other seeds, three at a time."""
    found = scaling.measure_all(quick=True, seeds=3)
    for panel in found.panels:
        np.testing.assert_allclose(found.exponents(panel), panel.expected, rtol=0, atol=0.35)


def test_the_report_is_written(told, tmp_path):
    lines = []
    path = run_scaling(tmp_path / "out", quick=True, seeds=3, say=lines.append, command="sparsezo reproduce <scaling>")
    assert path == tmp_path / "out" / "report.html"
    page = path.read_text(encoding="utf-8")
    assert "<pre>sparsezo reproduce &lt;scaling&gt;</pre>" in page
    assert "All nine agree" in page
    assert page.count("<svg") == 1
    text = (tmp_path / "out" / "scaling.md").read_text(encoding="utf-8")
    assert "All nine agree" in text
    assert "bars from the least to the most" in text
    assert "Made by `sparsezo reproduce <scaling>`." in text
    assert "seeds:0,1,2|version:" in text
    assert len(lines) == 8
    with open(tmp_path / "out" / "scaling.csv", newline="", encoding="utf-8") as stream:
        assert len(list(csv.DictReader(stream))) == 27
    assert (tmp_path / "out" / "figures" / "scaling.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "out" / "figures" / "scaling.svg").read_text(encoding="utf-8").startswith("<?xml")


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
