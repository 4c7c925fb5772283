"""Raters that err: the plan with several feedback models, its report on results made for the purpose, and its runs."""

from __future__ import annotations

import csv
import json
import statistics
from dataclasses import replace

import numpy as np
import pytest

from sparsezo.cli.reproduce import run_reproduce
from sparsezo.errors import DataError
from sparsezo.experiments.plan import LearnerSpec, builtin, parse_experiment
from sparsezo.experiments.reproduce import _plans
from sparsezo.experiments.runs import Run, fixed_runs
from sparsezo.perturbations import PERTURBATIONS
from sparsezo.raters import parse_feedback
from sparsezo.reports.figures import noise as figure_noise
from sparsezo.reports.figures.noise import noise_figure
from sparsezo.reports.noise import noise_lines, noise_sentences
from sparsezo.reports.reading import read_experiment
from sparsezo.reports.report import summarise, write_report
from sparsezo.reports.tables import make_table, signature
from sparsezo.settings import Settings
from sparsezo.tasks.chunking import making

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


def write_results(out, plan, test=f1_of):
    """Runs as the runner leaves them, without doing any."""
    for spec in plan.learners:
        for seed in plan.seeds:
            folder = out / "runs" / f"{spec.name}-{seed}".replace(" ", "-")
            folder.mkdir(parents=True)
            result = {"metric": "f1", "average_loss": 0.2, "dev": 0.9, "test": test(spec, seed), "version": "0.1.0"}
            record = {"experiment": plan.name, "task": plan.task, "learner": spec.name, "phase": "fixed", "seed": seed}
            record |= {"settings": spec.settings(seed).as_dict(), "iterations": plan.iterations, "result": result}
            (folder / "run.json").write_text(json.dumps(record))
            curve = [f"{step},{0.5 - step / 1e7},{0.5 + step / 4e6}" for step in range(0, 1_000_001, 250_000)]
            (folder / "curve.csv").write_text("\n".join(["iterations,average_loss,dev", *curve, ""]))
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
        ('["exact", "flip:0.1"]', "[]", "learner 1.feedback: must be a feedback model, or a list of them"),
        ('["exact", "flip:0.1"]', "0.1", "learner 1.feedback is 0.1; give a feedback model, or a list of them"),
        ('"flip:0.1"]', '"flip:2"]', "learner 1: `feedback` flip:2: write exact, binary, flip:P"),
        ('"flip:0.1"]', '"exact"]', "learner 'preference score' is there twice"),
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


def test_the_experiment_has_every_rule_at_every_noise():
    plan, chunking = builtin("noise"), builtin("chunking")
    assert (plan.data, plan.task, plan.iterations, len(plan.seeds)) == (chunking.data, "chunking", 500_000, 3)
    assert len(plan.learners) == 96
    assert len({(spec.perturb, spec.h, spec.mu) for spec in plan.learners}) == 4
    flips = {"exact", "flip:0.05", "flip:0.1", "flip:0.2", "flip:0.3", "flip:0.4"}
    ratings = {"exact", "binary", "rating:5,0,0", "rating:5,0.1,0.1", "rating:5,0.3,0.1", "rating:5,0.5,0.1"}
    families: dict[tuple[str, str | None], set[str]] = {}
    for spec in plan.learners:
        families.setdefault((spec.rule, spec.perturb), set()).add(spec.feedback)
    assert families == {
        **{(rule, perturb): flips for rule in ("comparison", "preference") for perturb in PERTURBATIONS},
        **{(rule, perturb): ratings for rule in ("two-point", "symmetric", "baseline") for perturb in PERTURBATIONS},
        ("first-order", None): ratings,
    }


def test_all_stands_for_the_papers_three():
    assert [plan.name for plan in _plans("all")] == ["chunking", "text", "smt"]
    assert [plan.name for plan in _plans("noise")] == ["noise"]


def test_exact_feedback_is_known_by_what_it_was_known_by():
    """A plan that says nothing of raters has the runs that it had."""
    spec = LearnerSpec("two-point", "score", 0.01, 0.1)
    plan = replace(builtin("chunking"), learners=(spec,), seeds=(0,), iterations=1000)
    same = Run("chunking", "chunking", "two-point score", "fixed", Settings(h=0.01, mu=0.1), 1000, 10, "data")
    assert fixed_runs(plan, "data") == [same]
    flipped = replace(plan, learners=(replace(spec, rule="preference", feedback="flip:0.1"),))
    told_well = replace(plan, learners=(replace(spec, rule="preference"),))
    assert fixed_runs(flipped, "data")[0].hash != fixed_runs(told_well, "data")[0].hash


# The report


def test_lines_run_by_rising_noise(results):
    lines = {line.name: line for line in noise_lines(read_experiment(results))}
    assert len(lines) == 16
    preference, first_order = lines["preference score"], lines["first-order"]
    assert [point.written for point in preference.flips] == [
        *("exact", "flip:0.05", "flip:0.1", "flip:0.2", "flip:0.3", "flip:0.4")
    ]
    assert [point.feedback.noise for point in first_order.ratings] == [0.0, 0.1, 0.3, 0.5]
    assert not first_order.flips
    assert first_order.at("binary").test.mean == pytest.approx(0.85)


def test_what_noise_costs_is_said_for_every_rule(results):
    sentences = list(noise_sentences(read_experiment(results)))
    assert len(sentences) == 6
    assert (
        "In test F1, flip:0.1 costs comparison 0.0090 with all (0.8400 to 0.8310) and "
        "0.0090 with active (0.8400 to 0.8310) and 0.0090 with score (0.8600 to 0.8510)."
    ) in sentences
    assert "In test F1, rating:5,0.1,0.1 costs first-order 0.0300 (0.9000 to 0.8700)." in sentences


def test_a_cost_within_seed_noise_is_called_so(tmp_path):
    plan = parse(SMALL)
    write_results(tmp_path, plan, lambda spec, seed: 0.8 + 0.01 * (seed if spec.feedback == "exact" else 1 - seed))
    (sentence,) = noise_sentences(read_experiment(tmp_path))
    assert sentence.endswith("flip:0.1 costs preference 0.0000 with score (0.8050 to 0.8050, within seed noise).")


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


@pytest.fixture
def drawn(monkeypatch):
    """Figures as drawn and before they are saved, to look at what they show."""
    seen = []
    monkeypatch.setattr(figure_noise, "save", lambda drawing, folder, name: seen.append(drawing) or "<svg/>")
    return seen


def bars_of(axes):
    """Of each line: its colour, and x, mean and half a bar of each point."""
    found = []
    for container in axes.containers:
        line, _, (bars,) = container.lines
        x, y = (np.asarray(values, float) for values in line.get_data())
        halves = [float(np.ptp(segment[:, 1])) / 2 for segment in bars.get_segments() if segment.size]
        found.append((line.get_color(), x, y, halves))
    return found


def test_the_figure_shows_test_results_against_noise(results, tmp_path, drawn):
    experiment = read_experiment(results)
    figure = noise_figure(experiment, tmp_path, "noise")
    (drawing,) = drawn
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
    assert [axes.get_xlabel() for axes in drawing.axes[:4]] == [""] * 4
    assert [text.get_text() for text in bottom[0].get_xticklabels()] == ["0", "0.05", "0.1", "0.2", "0.3", "0.4"]
    assert [text.get_text() for text in bottom[1].get_xticklabels()] == ["exact", "0", "0.1", "0.3", "0.5", "binary"]
    legends = {legend.get_title().get_text(): legend for legend in drawing.legends}
    assert list(legends) == ["ALL", "ACTIVE", "SCORE", "other"]
    assert [text.get_text() for text in legends["ALL"].get_texts()] == [
        *("comparison", "preference", "baseline", "two-point", "symmetric")
    ]
    assert [text.get_text() for text in legends["other"].get_texts()] == ["first-order"]
    open_marks = [legend.legend_handles[0].get_markerfacecolor() == "white" for legend in legends.values()]
    assert open_marks == [False, True, False, False]
    assert figure.title == "Test F1 against the raters' noise"
    assert figure.caption == (
        "Test F1 against the raters' noise, fixed settings: mean over seeds, bars are 2 standard deviations. "
        "Comparisons are answered wrongly with the probability below; at 0 they are exact. Ratings are of raters whose "
        "biases have standard deviation 0, 0.1. Exact: the loss itself; binary: a thumb up or down. ALL solid, ACTIVE "
        "dashed with open marks, SCORE dash-dotted; a colour and a marker for each rule."
    )


def test_signatures_name_the_models(results, tmp_path, drawn):
    experiment = read_experiment(results)
    figure = noise_figure(experiment, tmp_path, "noise")
    assert "|learners:96|h:0.0001..0.01|mu:0.1|seeds:0,1,2|iterations:500k|" in figure.signature
    assert "|feedback:binary;exact;flip:0.05;" in figure.signature
    assert "feedback" not in signature(experiment, "fixed", experiment.drawn)
    assert len(experiment.drawn) == 16


def test_claims_are_of_exact_feedback(results):
    experiment = read_experiment(results)
    assert experiment.find("two-point", "score").name == "two-point score"
    assert all(item.plain == (item.feedback == "exact") for item in experiment.learners)


def test_one_panel_where_there_is_one_kind_of_noise(tmp_path, drawn):
    plan = parse(SMALL.replace("seeds = 2", "seeds = 3"))
    experiment = read_experiment(write_results(tmp_path / "out", plan))
    assert [line.name for line in noise_lines(experiment)] == ["preference score"]
    figure = noise_figure(experiment, tmp_path, "small")
    assert "thumb" not in figure.caption
    assert "raters whose" not in figure.caption
    ((axes,),) = (drawing.axes for drawing in drawn)
    assert axes.get_ylabel() == "test F1"
    ((_, x, y, halves),) = bars_of(axes)
    np.testing.assert_allclose(x, [0, 0.1])
    np.testing.assert_allclose(y, [0.85, 0.841])
    assert halves == pytest.approx([2 * statistics.stdev(SEED[:3])] * 2)
    assert "|learners:2|" in figure.signature  # first-order has no other feedback to stand beside


def test_thumbs_alone_and_a_single_seed(tmp_path, drawn):
    text = SMALL.replace("preference", "two-point").replace('["exact", "flip:0.1"]', '["exact", "binary"]')
    plan = parse(text.replace("seeds = 2", "seeds = 1"))
    figure = noise_figure(read_experiment(write_results(tmp_path / "out", plan)), tmp_path, "small")
    assert "mean over seeds, too few seeds for a spread. Exact: the loss itself; binary" in figure.caption
    ((axes,),) = (drawing.axes for drawing in drawn)
    assert axes.get_xlabel() == "losses"
    exact, binary = bars_of(axes)
    assert (exact[2], binary[2]) == (pytest.approx([0.929]), pytest.approx([0.879]))
    assert exact[1][0] < binary[1][0]
    assert exact[3] == binary[3] == []  # no spread, no bar


def test_raters_of_one_kind_make_no_such_figure(tmp_path):
    plan = parse(SMALL.replace('["exact", "flip:0.1"]', '"exact"').replace('"binary"', '"exact"'))
    experiment = read_experiment(write_results(tmp_path / "out", plan))
    assert noise_figure(experiment, tmp_path, "small") is None
    assert not list(noise_sentences(experiment))
    assert experiment.drawn == experiment.learners


# The runs


def test_without_a_grid_there_is_no_tuned_phase(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(making, "_PARTS", (40, 20, 20))
    path, out = tmp_path / "small.toml", tmp_path / "out"
    path.write_text(SMALL)
    run_reproduce(str(path), "generated", processes=1, out=out)
    assert "tun" not in capsys.readouterr().err
    assert len(list(out.glob("runs/*/run.json"))) == 6
    assert (out / "report" / "figures" / "noise-small.svg").exists()


# h tuned for some raters


RETUNED = SMALL.replace('feedback = ["exact", "flip:0.1"]', 'feedback = ["exact", "flip:0.1", "flip:0.2"]').replace(
    '[[learner]]\nrule = "first-order"',
    'grid = { h = [0.01, 0.001], mu = [0.1], feedback = ["exact", "flip:0.2"] }\n[[learner]]\nrule = "first-order"',
)


def write_retuned(out, text=RETUNED):
    """At one h noise costs 0.2; with h tuned for each rater 0.05."""
    plan = parse(text)
    levels = {"exact": 0.9, "flip:0.1": 0.8, "flip:0.2": 0.7, "binary": 0.5}
    levels |= {"rating:5,0.1,0.1": 0.8, "rating:5,0.3,0.1": 0.7}
    write_results(out, plan, lambda spec, seed: levels[spec.feedback] + 0.001 * seed)
    for spec in plan.learners:
        for seed in plan.seeds if spec.grid_h else ():
            folder = out / "runs" / f"{spec.name}-{seed}".replace(" ", "-")
            record = json.loads((folder / "run.json").read_text())
            record["phase"], record["settings"] = "tuned", {**record["settings"], "h": 0.005}
            record["result"]["test"] = (0.91 if spec.feedback == "exact" else 0.86) + 0.001 * seed
            tuned = out / "runs" / f"{folder.name}-tuned"
            tuned.mkdir()
            (tuned / "run.json").write_text(json.dumps(record))
            (tuned / "curve.csv").write_text((folder / "curve.csv").read_text())
    return out


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


def test_the_figure_has_crosses_where_h_was_tuned(retuned, drawn):
    figure = noise_figure(read_experiment(retuned), retuned, "x")
    assert figure.caption.endswith(
        "Crosses on thin dotted lines: h tuned on dev, for exact answers and for this noise."
    )
    ((axes,),) = [drawing.axes for drawing in drawn]
    assert axes.get_title(loc="left").endswith("fixed settings (crosses: h tuned)")
    (crosses,) = [line for line in axes.lines if line.get_marker() == "x"]
    assert [round(y, 4) for y in crosses.get_ydata()] == [0.9105, 0.8605]  # of tuned exact answers, and of flip:0.2
    assert crosses.get_xdata()[1] - crosses.get_xdata()[0] == pytest.approx(0.2)


def test_crosses_stand_among_the_ratings_and_leave_the_axis_as_it_is(tmp_path, drawn):
    text = RETUNED.replace("flip:0.1", "rating:5,0.1,0.1").replace("flip:0.2", "rating:5,0.3,0.1")
    out = write_retuned(tmp_path / "out", text.replace('rule = "preference"', 'rule = "two-point"'))
    assert noise_figure(read_experiment(out), out, "x") is not None
    ((axes,),) = [drawing.axes for drawing in drawn]
    (crosses,) = [line for line in axes.lines if line.get_marker() == "x"]
    ticks = dict(zip((label.get_text() for label in axes.get_xticklabels()), axes.get_xticks(), strict=True))
    assert list(ticks) == ["exact", "0.1", "0.3", "binary"]
    assert crosses.get_xdata() == pytest.approx([ticks["exact"], ticks["0.3"]])
