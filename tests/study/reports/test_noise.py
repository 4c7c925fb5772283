"""Raters that err: the plan with several feedback models, its report on results made for the purpose, and its runs."""

from __future__ import annotations

import csv
import statistics
from dataclasses import replace

import numpy as np
import pytest
from reported import write_run

from sparsezo.errors import DataError
from sparsezo.raters import parse_feedback
from sparsezo.study.plan import builtin, parse_experiment
from sparsezo.study.reports.noise import noise_figure, noise_lines, noise_sentences
from sparsezo.study.reports.reading import read_experiment
from sparsezo.study.reports.report import summarise, write_report
from sparsezo.study.reports.tables import make_table

pytest.importorskip("matplotlib")

SMALL = """
name = "small"
task = "chunking"
iterations = 300
seeds = 2
[data]
train = "train.txt"
dev = 20
test = "test.txt"
options = { only = "NP" }
[fixed]
h = 0.001
mu = 0.1
step = "constant"
[[learner]]
rule = "preference"
perturb = "score"
feedback = ["exact", "flip:0.1"]
[[learner]]
rule = "first-order"
feedback = "binary"
"""
LEVEL = {
    "comparison": 0.84,
    "preference": 0.83,
    "two-point": 0.91,
    "symmetric": 0.92,
    "baseline": 0.89,
    "first-order": 0.9,
}
SEED = (-0.001, 0.003, -0.002)  # mean 0, median -0.001
SD = statistics.stdev(SEED)


def parse(text):
    return parse_experiment(text, "small.toml")


def f1_of(spec, seed):
    """An F1 by formula: exact best, worse with noise; over seeds not symmetric about its mean."""
    feedback = parse_feedback(spec.feedback)
    loss = {"exact": 0.0, "binary": 0.05, "rating": 0.01 + 0.2 * feedback.noise, "flip": 0.9 * feedback.noise**2}
    return LEVEL[spec.rule] + 0.02 * (spec.perturb == "score") - loss[feedback.model] + SEED[seed]


POINTS = [f"{step},{0.5 - step / 1e7},{0.5 + step / 4e6}" for step in range(0, 1_000_001, 250_000)]
CURVE = "\n".join(["iterations,average_loss,dev", *POINTS, ""])


def write_results(out, plan, test=f1_of, phase="fixed", h=None):
    """Runs as the runner leaves them, without doing any; those of phase ``tuned`` are of learners with a grid."""
    for spec in plan.learners:
        for seed in plan.seeds if phase == "fixed" or spec.grid_h else ():
            result = {"average_loss": 0.2, "dev": 0.9, "test": test(spec, seed), "version": "0.1.0"}
            known = {"experiment": plan.name, "task": plan.task, "iterations": plan.iterations, "result": result}
            settings = spec.settings(seed, h).as_dict()
            write_run(out, spec.name, phase, seed, CURVE, settings=settings, **known)
    (out / "experiment.toml").write_text(plan.to_toml())
    return out


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """At its fixed settings alone."""
    plan = builtin("noise")
    learners = tuple(replace(spec, grid_h=(), grid_mu=()) for spec in plan.learners)
    return write_results(tmp_path_factory.mktemp("noise"), replace(plan, learners=learners))


# The plan


def test_a_list_of_models_stands_for_as_many_learners():
    plan = parse(SMALL)
    assert [spec.name for spec in plan.learners] == [
        "preference score",
        "preference score flip:0.1",
        "first-order binary",
    ]
    assert [spec.settings(0).feedback for spec in plan.learners] == ["exact", "flip:0.1", "binary"]
    assert not plan.has_grid
    assert parse(plan.to_toml()) == plan


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"flip:0.1"]', "0.1]", "learner 1.feedback: must be a feedback model, or a list of them"),
        ('["exact", "flip:0.1"]', "0.1", "learner 1.feedback is 0.1; give a feedback model, or a list of them"),
        ('"flip:0.1"]', '"flip:2"]', "learner 1: `feedback` flip:2: write exact, binary, flip:P"),
        (
            '"binary"',
            '"flip:0.1"',
            "learner 2: `feedback` flip:0.1 is of comparisons; rule first-order asks for losses",
        ),
    ],
)
def test_a_model_that_cannot_be_is_said_in_one_line(old, new, message):
    assert old in SMALL
    with pytest.raises(DataError, match=message) as caught:
        parse(SMALL.replace(old, new, 1))
    assert "\n" not in str(caught.value)


# The report


def test_the_report_has_the_figure_and_the_sentences(results, tmp_path):
    page = write_report([results], tmp_path, command="sparsezo reproduce noise").read_text("utf-8")
    names = sorted(path.name for path in (tmp_path / "figures").iterdir())
    assert names == [
        f"{kind}-noise.{ending}" for kind in ("asked", "dev", "loss", "noise", "test") for ending in ("png", "svg")
    ]
    assert page.count("<svg") == 5
    assert "flip:0.1 costs comparison 0.0090 with all" in page
    assert page.count("Exact feedback only.") >= 3
    assert "For comparison: first-order reaches 0.9000 ± 0.0026." in page
    assert "There is no tuned phase" not in page
    assert "Missing or odd" not in page
    with open(tmp_path / "table.csv", encoding="utf-8", newline="") as stream:
        table = {row["learner"]: row for row in csv.DictReader(stream)}
    assert len(table) == 96
    assert table["preference score flip:0.1"]["feedback"] == "flip:0.1"
    assert table["two-point score"]["feedback"] == "exact"


def bars_of(axes):
    """Of each line: its colour, and x, mean and half a bar of each point."""
    found = []
    for container in axes.containers:
        line, _, (bars,) = container.lines
        x, y = (np.asarray(values, float) for values in line.get_data())
        halves = [float(np.ptp(segment[:, 1])) / 2 for segment in bars.get_segments() if segment.size]
        found.append((line.get_color(), x, y, halves))
    return found


def test_the_figure_shows_test_results_against_noise(results, tmp_path, drawings):
    experiment = read_experiment(results)
    figure = noise_figure(experiment, tmp_path, "noise")
    drawing = drawings["noise-noise"]
    assert len(drawing.axes) == 6  # all, active, score; comparisons beside ratings
    assert [axes.get_ylabel() for axes in drawing.axes[::2]] == [*("ALL: test F1", "ACTIVE: test F1", "SCORE: test F1")]
    assert drawing.axes[0].get_title(loc="left") == f"{experiment.title}, fixed settings"
    for row, perturb in enumerate(("all", "active", "score")):
        flips = bars_of(drawing.axes[2 * row])
        assert len(flips) == 2
        more = 0.02 * (perturb == "score")
        for (colour, x, y, halves), rule in zip(flips, ("comparison", "preference"), strict=True):
            noises = np.array([0, 0.05, 0.1, 0.2, 0.3, 0.4])
            np.testing.assert_allclose(y, LEVEL[rule] + more - 0.9 * noises**2)
            assert np.abs(x - noises).max() < 0.01  # a little aside, so that bars can be told apart
            assert halves == pytest.approx([2 * SD] * 6)
            assert colour == {"comparison": "#009E73", "preference": "#CC79A7"}[rule]
    ratings = bars_of(drawing.axes[5])
    rules = ("baseline", "two-point", "symmetric", "first-order")
    assert len(ratings) == 3 * len(rules)  # ratings, exact, binary of each; first-order in every row
    for i, rule in enumerate(rules):
        level = LEVEL[rule] + 0.02 * (rule != "first-order")
        line, exact, binary = ratings[3 * i : 3 * i + 3]
        np.testing.assert_allclose(line[2], level - 0.01 - 0.2 * np.array([0, 0.1, 0.3, 0.5]))
        np.testing.assert_allclose(exact[2], [level])
        np.testing.assert_allclose(binary[2], [level - 0.05])
        assert exact[1][0] < line[1].min()
        assert binary[1][0] > line[1].max()
    assert len({x.tobytes() for _, x, _, _ in ratings[::3]}) == len(rules)
    bottom = drawing.axes[4], drawing.axes[5]
    assert [axes.get_xlabel() for axes in bottom] == [
        "comparisons: probability of a wrong answer",
        "ratings in 5 grades: sd of their noise",
    ]
    assert [text.get_text() for text in bottom[0].get_xticklabels()] == ["0", "0.05", "0.1", "0.2", "0.3", "0.4"]
    assert [text.get_text() for text in bottom[1].get_xticklabels()] == ["exact", "0", "0.1", "0.3", "0.5", "binary"]
    assert figure.title == "Test F1 against the raters' noise"
    assert figure.caption == (
        "Test F1 against the raters' noise, fixed settings: mean over seeds, bars are 2 standard deviations. "
        "Comparisons are answered wrongly with the probability below; at 0 they are exact. Ratings are of raters whose "
        "biases have standard deviation 0, 0.1. Exact: the loss itself; binary: a thumb up or down. ALL solid, ACTIVE "
        "dashed with open marks, SCORE dash-dotted; a colour and a marker for each rule."
    )


def test_one_panel_where_there_is_one_kind_of_noise(tmp_path, drawings):
    plan = parse(SMALL.replace("seeds = 2", "seeds = 3"))
    experiment = read_experiment(write_results(tmp_path / "out", plan))
    assert [line.name for line in noise_lines(experiment)] == ["preference score"]
    figure = noise_figure(experiment, tmp_path, "small")
    assert "thumb" not in figure.caption
    assert "raters whose" not in figure.caption
    (axes,) = drawings["noise-small"].axes
    assert axes.get_ylabel() == "test F1"
    ((_, x, y, halves),) = bars_of(axes)
    np.testing.assert_allclose(x, [0, 0.1])
    np.testing.assert_allclose(y, [0.85, 0.841])
    assert halves == pytest.approx([2 * statistics.stdev(SEED[:3])] * 2)
    assert "|learners:2|" in figure.signature  # first-order has no other feedback to stand beside


def test_raters_of_one_kind_make_no_such_figure(tmp_path):
    plan = parse(SMALL.replace('["exact", "flip:0.1"]', '"exact"').replace('"binary"', '"exact"'))
    experiment = read_experiment(write_results(tmp_path / "out", plan))
    assert noise_figure(experiment, tmp_path, "small") is None
    assert not list(noise_sentences(experiment))
    assert experiment.drawn == experiment.learners


# The runs


# h tuned for some raters


RETUNED = SMALL.replace('feedback = ["exact", "flip:0.1"]', 'feedback = ["exact", "flip:0.1", "flip:0.2"]').replace(
    '[[learner]]\nrule = "first-order"',
    'grid = { h = [0.01, 0.001], mu = [0.1], feedback = ["exact", "flip:0.2"] }\n[[learner]]\nrule = "first-order"',
)


def write_retuned(out):
    """At one h noise costs 0.2; with h tuned for each rater 0.05."""
    plan = parse(RETUNED)
    levels = {"exact": 0.9, "flip:0.1": 0.8, "flip:0.2": 0.7, "binary": 0.5}
    write_results(out, plan, lambda spec, seed: levels[spec.feedback] + 0.001 * seed)
    best = {"exact": 0.91, "flip:0.2": 0.86}
    return write_results(out, plan, lambda spec, seed: best[spec.feedback] + 0.001 * seed, "tuned", h=0.005)


@pytest.fixture
def retuned(tmp_path):
    return write_retuned(tmp_path / "out")


def test_what_noise_costs_is_told_with_one_h_and_with_h_tuned_for_it(retuned):
    found = read_experiment(retuned)
    assert found.retuned
    wanted = "At one h, and with h tuned for each rater, flip:0.2 costs preference 0.2000 and 0.0500 with score."
    assert list(noise_sentences(found))[-1] == wanted
    assert [[point.written for point in line.points] for line in noise_lines(found)] == [
        ["exact", "flip:0.1", "flip:0.2"]
    ]
    assert [[point.written for point in line.points] for line in noise_lines(found, "tuned")] == [["exact", "flip:0.2"]]


def test_a_table_has_tuned_rows_beside_all_at_the_fixed_settings(retuned):
    table = make_table(read_experiment(retuned))
    assert table.phase == "fixed"
    assert [(row.learner, row.phase, row.h, row.marks) for row in table.rows] == [
        ("preference score", "fixed", 0.001, ""),
        ("preference score flip:0.1", "fixed", 0.001, ""),
        ("preference score flip:0.2", "fixed", 0.001, ""),
        ("first-order binary", "fixed", 0.001, ""),
        ("preference score", "tuned", 0.005, ""),
        ("preference score flip:0.2", "tuned", 0.005, ""),
    ]
    assert [title for title, _ in table.groups][-1] == "h tuned on dev for this rater"


def test_the_summary_counts_a_learner_once_and_says_at_which_settings(retuned):
    found = read_experiment(retuned)
    first, *rest = summarise(found, make_table(found), ())
    assert "preference score has the best mean of 3 zeroth-order learners" in first
    assert first.endswith("(2 seeds, tuned settings).")
    assert rest[-1] == "For comparison: first-order binary reaches 0.5005 (fixed settings)."


def test_the_figure_has_crosses_where_h_was_tuned(retuned, drawings):
    figure = noise_figure(read_experiment(retuned), retuned, "x")
    assert figure.caption.endswith(
        "Crosses on thin dotted lines: h tuned on dev, for exact answers and for this noise."
    )
    (axes,) = drawings["noise-x"].axes
    assert axes.get_title(loc="left").endswith("fixed settings (crosses: h tuned)")
    (crosses,) = [line for line in axes.lines if line.get_marker() == "x"]
    assert [round(y, 4) for y in crosses.get_ydata()] == [0.9105, 0.8605]  # of tuned exact answers, and of flip:0.2
    assert crosses.get_xdata()[1] - crosses.get_xdata()[0] == pytest.approx(0.2)
