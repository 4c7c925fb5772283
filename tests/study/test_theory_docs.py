"""What docs/theory.md says of real data is what docs/results/theory has, and that is made by benchmarks/theory.py."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
import theory as script
from step_moments import reach

from sparsezo.cli.data import make_data
from sparsezo.study.theory import bounded_h, bounded_rate, bounded_steps, smoothing_gap, step_moments
from sparsezo.tasks.loading import Files
from sparsezo.tasks.registry import task_spec

ROOT = Path(__file__).parents[2]
FOUND = ROOT / "docs" / "results" / "theory"
TEXT = " ".join((ROOT / "docs" / "theory.md").read_text("utf-8").split())


def rows_of(name):
    with open(FOUND / f"{name}.csv", encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def share(row, of="bounded"):
    return float(row["mean"]) / float(row[of])


def span(values):
    return f"{min(values):.0%} to {max(values):.0%}"


# E||s||^2


def chosen(rules, criterion, after=None):
    return [
        row
        for row in rows_of("moments")
        if row["rule"] in rules and row["criterion"] == criterion and after in (None, row["after"])
    ]


def test_the_page_says_how_long_steps_are():
    shares = [share(row) for row in chosen(("two-point", "symmetric", "baseline"), "map")]
    assert len(shares) == 18
    assert f"steps of {span(shares)} of what" in TEXT
    first, later = (span([share(row) for row in chosen(("preference",), "map", after)]) for after in ("0", "100000"))
    assert f"preference has {first} of it at first and {later} later" in TEXT
    pairs = zip(chosen(("symmetric",), "annealed"), chosen(("two-point",), "annealed"), strict=True)
    assert f"have {span([float(a['mean']) / float(b['mean']) for a, b in pairs])} of two-point's" in TEXT
    assert all(0.99 < share(row) < 1.01 for row in chosen(("preference",), "annealed"))
    for row in chosen(("two-point", "symmetric"), "annealed"):
        assert float(row["bounded"]) < float(row["lipschitz"])
    longer = []
    for after in ("0", "100000"):
        pairs = zip(*(chosen((rule,), "map", after) for rule in ("one-point", "baseline")), strict=True)
        longer.append([float(a["mean"]) / float(b["mean"]) for a, b in pairs])
    assert f"{min(longer[0]):.0f} to {max(longer[0]):.0f} times baseline's E‖s‖² at w = 0" in TEXT
    assert f"but {min(longer[1]):.1f} to {max(longer[1]):.1f} times after 100,000 steps" in TEXT


def test_measured_steps_are_below_their_bounds_and_go_as_the_dimension():
    rows = rows_of("moments")
    assert len(rows) == 2 * 2 * 6 * 3
    for row in rows:
        low = float(row["mean"]) - 3 * float(row["error"])
        assert low <= min(float(row["bounded"]), float(row["lipschitz"] or "inf"))
    for each in range(0, len(rows), 3):  # all, active, score of one rule
        shares = [share(row) for row in rows[each : each + 3]]
        assert max(shares) < 1.6 * min(shares)


# f_mu and f


def test_the_page_has_the_margins_that_were_measured():
    rows = rows_of("margins")
    assert {row["task"] for row in rows} == set(script.LEARNED)
    assert script.margins_table(rows) in (ROOT / "docs" / "theory.md").read_text("utf-8")
    for row in rows:
        found = {name: float(value) for name, value in row.items() if name != "task"}
        assert abs(found["gap"]) <= found["change"] + 1e-12
        assert found["change"] <= found["by_margins"] <= found["by_tail"]
        assert found["by_tail"] == pytest.approx(smoothing_gap(found["ratio"], found["C1"], 1.0, found["r"]))
        assert abs(found["a"] - 1) <= 2 * found["a_error"]  # a is 1 within two standard errors
    wider = dict.fromkeys(f"{float(row['a_of_10%']):.2f}" for row in rows)
    assert "10% give {}, {} and {}:".format(*wider) in TEXT
    gaps = [float(row["gap"]) for row in rows if row["ratio"] == row["used"]]
    assert f"f_mu is within {max(map(abs, gaps)):.3f} of f on all three" in TEXT


# h


def test_the_theorys_h_is_computed_from_what_stands_beside_it():
    """And the tuned one is the published table's: after a new table, run benchmarks/theory.py rates again."""
    rows = rows_of("rates")
    assert {row["task"] for row in rows} == {"chunking", "text"}
    for task in ("chunking", "text"):
        known = {(each["rule"], each["perturb"]): each for each in script.tuned(task)}
        of_task = [row for row in rows if row["task"] == task]
        assert set(known) == {(row["rule"], row["perturb"]) for row in of_task}
        for row in of_task:
            m, N, mu = float(row["m"]), int(row["iterations"]) - 1, float(row["mu"])
            assert float(row["h_theory"]) == pytest.approx(bounded_h(mu, m, N, row["rule"]))
            assert float(row["rate_theory"]) == pytest.approx(bounded_rate(m, N, row["rule"]))
            one = known[row["rule"], row["perturb"]]
            assert (float(row["h_tuned"]), mu) == (one["h"], one["mu"])
            assert float(row["tuned_over_theory"]) == pytest.approx(one["h"] / float(row["h_theory"]))


def figures(task, name):
    return [float(row[name]) for row in rows_of("rates") if row["task"] == task]


def test_the_page_says_how_far_the_theorys_h_is_from_the_tuned_one():
    said = [f"{min(ratios):,.0f} to {max(ratios):,.0f} times" for ratios in map(ratio_of, ("chunking", "text"))]
    assert f"{said[0]} smaller for chunking and {said[1]} for text" in TEXT
    ends = [
        f"{min(ends):.2f} to {max(ends):.2f}"
        for task in ("chunking", "text")
        for ends in (figures(task, "test_theory"), figures(task, "test_tuned"))
    ]
    assert f"ends at a test F1 of {ends[0]} (tuned: {ends[1]}), and at an accuracy of {ends[2]} ({ends[3]})" in TEXT
    exponents = []
    for task in ("chunking", "text"):
        rows = {(row["rule"], row["perturb"]): row for row in rows_of("rates") if row["task"] == task}
        for rule in ("two-point", "baseline"):
            ends = [rows[rule, perturb] for perturb in ("all", "score")]
            rates, sizes = ([float(row[name]) for row in ends] for name in ("rate_tuned", "m"))
            exponents.append(-np.log(rates[0] / rates[1]) / np.log(sizes[0] / sizes[1]))
    assert f"as m^-{min(exponents):.2f} to m^-{max(exponents):.2f}" in TEXT
    longer = [share(row) ** -0.5 for row in chosen(("two-point", "symmetric", "baseline"), "map")]
    assert f"h would be {min(longer):.1f} to {max(longer):.1f} times larger" in TEXT
    assert (FOUND / "rates.md").read_text("utf-8") == script.markdown(rows_of("rates"))


def ratio_of(task):
    return figures(task, "tuned_over_theory")


def test_the_page_says_from_when_on_the_theorem_says_something():
    m = {row["perturb"]: float(row["m"]) for row in rows_of("rates") if row["task"] == "chunking"}
    score, active, all_ = (bounded_steps(m[perturb]) + 1 for perturb in ("score", "active", "all"))
    assert f"{score:,} steps with score, {active:,} with active and {all_ // 1_000_000} million with all" in TEXT


@pytest.mark.data
def test_the_sizes_are_those_of_the_data(real_data):
    for task in ("chunking", "text"):
        loaded = script.load(task, real_data)
        problem = loaded.task.problem(loaded.data.train)
        n = problem.n_features * problem.n_labels
        means = {"all": n, "active": problem.n_active.mean(), "score": problem.n_score.mean()}
        for row in rows_of("rates"):
            if row["task"] == task:
                assert float(row["m"]) == pytest.approx(means[row["perturb"]])
        if task == "chunking":
            products = {name: means["score"] * (m + 2) for name, m in means.items()}
            above = {
                name: moment / products[name] - 1
                for name, moment in step_moments(n, problem.n_active, problem.n_score).items()
            }
            assert above["all"] == pytest.approx(0)
            assert f"is {above['active']:.0%} above the product of the means for `active`" in TEXT
            assert f"and {above['score']:.0%} for `score`" in TEXT
            assert f"(D is {reach(problem).mean():.0f} on average)" in TEXT


# The script, on generated data


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """What the script loads, of generated files."""
    folder, loaded = tmp_path_factory.mktemp("theory-data"), {}
    for task in script.TASKS:
        names = [str(folder / f"{task}-{part}{'.tsv' if task == 'text' else '.txt'}") for part in ("train", "test")]
        for seed, name in enumerate(names):
            make_data(task, name, "60", seed)
        loaded[task] = task_spec(task).load(Files((names[0],), "10", names[1]))
    return loaded


def test_moments_are_written_and_drawn(small, tmp_path):
    rows = script.moments(small["chunking"], draws=200, trained=300, h=0.001, mu=0.1)
    assert [row["after"] for row in rows] == [0] * 36 + [300] * 36
    before, after = rows[:36], rows[36:]
    assert any(a["mean"] != b["mean"] for a, b in zip(before, after, strict=True))
    script.draw(rows, tmp_path, "steps")
    assert (tmp_path / "moments.png").stat().st_size > 10_000
    script.table(rows, tmp_path / "moments.csv")
    with open(tmp_path / "moments.csv", encoding="utf-8", newline="") as stream:
        again = list(csv.DictReader(stream))
    assert [float(row["mean"]) for row in again] == [row["mean"] for row in rows]


@pytest.mark.parametrize("task", ["chunking", "text"])
def test_margins_are_measured(small, task, tmp_path):
    rows = script.smoothing(task, small[task], h=0.001, mu=0.1, steps=2000, passes=3, share=0.2)
    assert len(rows) == len(script.RATIOS) + 1
    assert [row["ratio"] for row in rows] == sorted(row["ratio"] for row in rows)
    for row in rows:
        assert abs(row["gap"]) <= row["change"] + 1e-12
        assert row["by_margins"] <= row["by_tail"] + 1e-9
    assert rows[-1]["change"] > 0.1
    script.draw_margins([{**row, "task": name} for name in script.LEARNED for row in rows], tmp_path)
    assert (tmp_path / "margins.png").stat().st_size > 10_000
    assert script.margins_table([{**row, "task": name} for name in script.LEARNED for row in rows]).count("\n") == 4


@pytest.mark.parametrize("task", ["chunking", "text"])
def test_rates_are_run_with_the_theorys_h(small, task):
    one = {"rule": "two-point", "perturb": "score", "iterations": 2000, "h": 0.001, "mu": 0.1, "test_mean": 0.9}
    loaded, said = small[task], []
    (row,) = script.rates(task, loaded, [one], say=said.append)
    m = float(np.mean(loaded.task.problem(loaded.data.train).n_score))
    assert row["h_theory"] == bounded_h(0.1, m, 1999)
    assert row["m"] == m
    assert 0 <= row["test_theory"] <= 1
    assert said == [row]
    known = {name: str(value) for name, value in row.items()} | {"test_theory": "7"}  # as it comes from the file
    (kept,) = script.rates(task, loaded, [one | {"h": 0.5}], [known], say=said.append)
    assert (kept["test_theory"], kept["h_tuned"], len(said)) == (7, 0.5, 1)
    (new,) = script.rates(task, loaded, [one | {"mu": 0.2}], [known], say=said.append)
    assert (new["test_theory"] <= 1, len(said)) == (True, 2)
