"""The report on answers, from results made for the purpose: where curves cross, minutes, tables, findings, the page."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest
import reported

from sparsezo.storage.checksummed import checksummed_toml, write_checksummed
from sparsezo.study.plan import parse_experiment
from sparsezo.study.records import COLUMNS
from sparsezo.study.reports.answers import (
    Needed,
    after_table,
    findings,
    lines,
    main_column,
    minutes_table,
    needed,
    quality_table,
    shown_looks,
    stated,
    times_faster,
)
from sparsezo.study.reports.answers_page import _apart, in_words
from sparsezo.study.reports.reading import read_experiment
from sparsezo.study.reports.report import write_report
from sparsezo.study.reports.results import MeanCurve, curve_column
from sparsezo.study.reproduce import PLAN_FILE
from sparsezo.study.wabbit import FILE

pytest.importorskip("matplotlib")

LOOKS = (500, 1000, 5000)
PLAN = """
name = "answers-TASK"
task = "TASK"
looks = [500, 1000, 5000]
test_looks = true
thresholds = [0.80, 0.90]
seeds = [0, 1, 2]
[data]
train = "train.txt"
dev = 10
test = "test.txt"
[seconds]
read = 5.0
yes_no = 1.0
pair = 4.0
token = 2.0
[[learner]]
rule = "part"
figure = "part: yes or no"
[[learner]]
rule = "preference"
figure = "the paper's way"
[[learner]]
rule = "supervised"
labels = "random"
step = "adagrad"
figure = "whole inputs"
[[learner]]
rule = "part"
ask = "random"
[[learner]]
rule = "part"
feedback = ["flip:0.1"]
[[learner]]
rule = "part"
feedback = "flip:0.1"
rater_error = "0.1"
[[learner]]
rule = "part"
start = "labels:100"
"""
RIVALS = '[rivals]\nsquare = "--squarecb"\n'
CURVES = {  # test at 0 and at the looks
    "part": (0.1, 0.70, 0.85, 0.95),
    "preference score": (0.1, 0.20, 0.30, 0.78),
    "supervised labelled random": (math.nan, 0.60, 0.70, 0.90),
    "part asked at random": (0.1, 0.60, 0.75, 0.90),
    "part flip:0.1": (0.1, 0.50, 0.70, 0.86),
    "part flip:0.1 error 0.1": (0.1, 0.55, 0.75, 0.93),
    "part from labels:100": (0.75, 0.80, 0.90, 0.96),
}
INPUTS = (20, 50, 250)


def write_results(out: Path, task: str = "chunking", more: str = "", turned: str = "") -> Path:
    """A finished experiment; a seed is 0.01 better than the one before (worse, for ``turned``), dev 0.02 than test."""

    def tests(run):
        name, seed = run.learner.replace(" adagrad", ""), run.settings.seed
        return [value + 0.01 * (1 - seed if name == turned else seed - 1) for value in CURVES[name]]

    def point(run, k, n, value):
        known = {"iterations": 2 * n + 1, "average_loss": 0.5, "dev": value + 0.02, "answers": n, "test": value}
        if run.labels:
            known |= {"tokens": n - 5, "looked": n - 5, "corrections": 2 * INPUTS[k - 1], "inputs": INPUTS[k - 1]}
        else:
            known |= {"tokens": 20 * n, "looked": n, "corrections": n // 10}
        return tuple(known.get(name, math.nan) for name in COLUMNS)

    def points(run):
        values = enumerate(zip((0, *LOOKS), tests(run), strict=True))
        return [point(run, k, n, value) for k, (n, value) in values if not math.isnan(value)]

    def result(run):
        last = {"dev": tests(run)[-1] + 0.02, "test": tests(run)[-1], "average_loss": 0.04}
        return {"metric": {"chunking": "f1", "text": "accuracy"}[task], **last}

    plan = parse_experiment(PLAN.replace("TASK", task).replace("[seconds]", more + "[seconds]"), "plan")
    return reported.write_results(out, plan, points, result)


@pytest.fixture(scope="module")
def experiment(tmp_path_factory):
    return read_experiment(write_results(tmp_path_factory.mktemp("r") / "answers"))


@pytest.fixture(scope="module")
def shown(experiment):
    return {line.title: line for line in lines(experiment)}


def curve(at, mean):
    return MeanCurve(np.array(at), np.array(mean, float), None)


def test_lines_stand_in_the_plans_order_under_names_for_people(experiment, shown):
    assert list(shown) == [
        "part",
        "preference score",
        "whole sentences labelled, at random",
        "part asked at random",
        "part flip:0.1, not known",
        "part flip:0.1, believed 0.1",
        "part from 100 labelled sentences",
    ]
    assert main_column(experiment, list(shown.values())) == "test"
    assert experiment.gaps == ()


def test_a_line_has_its_values_by_seed_at_a_look(shown):
    assert shown["part"].at("test", 1000).values == pytest.approx((0.84, 0.85, 0.86))
    assert shown["part"].at("dev", 1000).mean == pytest.approx(0.87)
    assert shown["part"].at("test", 999) is None
    mean = shown["preference score"].curve("test")
    assert mean.at.tolist() == [0, *LOOKS]
    np.testing.assert_allclose(mean.mean, CURVES["preference score"])
    np.testing.assert_allclose(mean.sd, 0.01)


def test_a_threshold_is_reached_between_looks_on_the_log_axis():
    found = needed(curve([100, 1000, 10_000], [0.5, 0.7, 0.9]), 0.8)
    assert found.at == pytest.approx(math.sqrt(1000 * 10_000))
    assert str(found) == "3,200"


@pytest.mark.parametrize(
    ("at", "mean", "said"),
    [
        ((0, 100, 200), (0.1, 0.9, 0.95), "at most 100"),  # at the first look already
        ((100, 200), (0.9, 0.95), "at most 100"),
        ((0, 100), (0.85, 0.9), "0"),  # before the first answer
        ((100, 5000), (0.1, 0.79), "more than 5,000"),
        ((100, 200, 300, 400), (0.1, 0.8, 0.7, 0.9), "200"),  # the first time counts
    ],
)
def test_where_a_threshold_is_reached_in_words(at, mean, said):
    assert str(needed(curve(at, mean), 0.8)) == said


def test_minutes_are_by_the_plans_seconds(experiment, shown):
    clock = stated(experiment)["stated"]
    np.testing.assert_allclose(shown["part"].minutes(clock), np.array([0, *LOOKS]) * 6 / 60)
    np.testing.assert_allclose(shown["preference score"].minutes(clock), np.array([0, *LOOKS]) * 9 / 60)
    labels = shown["whole sentences labelled, at random"]
    expected = (5 * np.array(INPUTS) + 2 * np.array(LOOKS)) / 60
    np.testing.assert_allclose(labels.minutes(clock), expected)


CLOCK = {"part": {"answers": 1.0, "tokens": 0.5, "corrections": 10.0}, "whole": {"inputs": 6.0, "corrections": 3.0}}


def test_minutes_are_linear_in_what_a_curve_counts(shown):
    n = np.array([0, *LOOKS])
    np.testing.assert_allclose(shown["part"].minutes(CLOCK), (n + 0.5 * 20 * n + 10 * (n // 10)) / 60)
    np.testing.assert_allclose(shown["whole sentences labelled, at random"].minutes(CLOCK), 12 * np.array(INPUTS) / 60)
    assert shown["preference score"].minutes(CLOCK) is None  # the table does not say
    assert shown["part"].minutes({"part": {"inputs": 1.0}}) is None  # the curve does not


def test_quality_after_minutes_is_between_looks_and_by_seed(shown):
    part, clock = shown["part"], {"part": {"answers": 60.0}}  # an answer a minute
    assert part.after("test", clock, 1000).values == pytest.approx((0.84, 0.85, 0.86))
    assert part.after("test", clock, math.sqrt(500 * 1000)).mean == pytest.approx((0.70 + 0.85) / 2)
    assert part.after("test", clock, 499) is None  # nobody looked before
    assert part.after("test", clock, 5001) is None
    assert part.after("test", {}, 1000) is None


def test_how_many_times_faster_as_far_as_is_known():
    assert times_faster(Needed(50, 100), Needed(120, 200)) == "2.4"
    assert times_faster(Needed(50, 100), Needed(None, 200)) == "> 4"
    assert times_faster(Needed(50, 100), Needed(None, 40)) is None
    assert times_faster(Needed(None, 100), Needed(120, 200)) is None
    assert times_faster(Needed(50, 100, bound=True), Needed(120, 200)) is None
    assert times_faster(Needed(50, 100), Needed(120, 200, bound=True)) is None


def test_tables_by_the_clock_have_the_rival_beside_them(tmp_path, monkeypatch):
    monkeypatch.setitem(CURVES, "supervised labelled least-confident", (math.nan, 0.75, 0.85, 0.95))
    monkeypatch.setattr(__name__ + ".PLAN", PLAN.replace('labels = "random"', 'labels = "least-confident"'))
    experiment = read_experiment(write_results(tmp_path / "r"))
    shown, clock = lines(experiment), stated(experiment)["stated"]
    rows = {row[0]: row[1:] for row in minutes_table(experiment, shown, "test", clock).rows}
    assert rows["whole sentences labelled, least sure first"] == ("26", "84")
    assert rows["part"][0] == "79 (0.33)"
    assert "part answered at random" not in rows
    experiment.declared["after"] = [100.0]
    table = after_table(experiment, shown, "test", clock)
    assert table.head == ("minutes", "100")
    assert {row[0]: row[1] for row in table.rows}["part"] == "0.850 ± 0.010"
    assert "whole sentences labelled, least sure first 84; part 220." in "\n".join(findings(experiment))


def test_a_table_of_seconds_in_words():
    assert in_words(CLOCK) == (
        "a yes or no 1 s each time, 0.5 s a token and 10 s a correction; labelling an input from nothing 6 s an input "
        "and 3 s a span marked"
    )


def test_the_table_has_round_looks_and_the_last(experiment, shown):
    experiment.declared["looks"] = [500, 700, 1000, 1500, 5000, 6001]
    try:
        assert shown_looks(experiment) == [500, 1000, 5000, 6001]
    finally:
        experiment.declared["looks"] = list(LOOKS)
    table = quality_table(experiment, list(shown.values()), "test")
    assert table.head == ("learner", "500", "1k", "5k")
    assert table.rows[0] == ("part", "0.700 ± 0.010", "0.850 ± 0.010", "0.950 ± 0.010")


def test_findings_are_made_from_the_figures(experiment):
    told = "\n".join(findings(experiment))
    assert "After 1,000 decisions part is ahead, test F1 0.850 ± 0.010; next is whole sentences" in told
    assert (
        "1,000 answers reach 0.850, which takes 3,300; 5,000 answers reach 0.950, which takes more than 5,000" in told
    )
    assert "preference score has 0.780 ± 0.010 after 5,000 answers; part needs 720 for as much" in told
    assert "part asked at random, against part: -0.100 at 1,000; -0.050 at 5,000." in told
    assert "10% of the answers wrong: where that is known, -0.100 at 1,000" in told
    assert "it begins at 0.750 ± 0.010, where a cold start is after 630 answers" in told
    assert "F1 0.9 takes, in minutes: whole sentences labelled, at random 190; part 220." in told


def test_a_difference_within_seed_noise_is_called_so(tmp_path, monkeypatch):
    monkeypatch.setitem(CURVES, "part asked at random", tuple(value + 0.001 for value in CURVES["part"]))
    told = "\n".join(findings(read_experiment(write_results(tmp_path / "r", turned="part asked at random"))))
    assert "part asked at random, against part: +0.001 (within seed noise) at 1,000" in told


def test_the_page_its_tables_and_figures(tmp_path):
    page = write_report([write_results(tmp_path / "r")], tmp_path / "report", "sparsezo x").read_text("utf-8")
    for text in (
        "How many minutes does it take?",
        "a yes or no 6 s each time; choosing between two 9 s each time; labelling an input from nothing 5 s an input",
        "no measurement",
        "more than 5,000",
        "Of the weights of the moment, not chosen on dev",
        "sparsezo x",
    ):
        assert text in page
    assert "Vowpal" not in page
    names = sorted(path.name for path in (tmp_path / "report/figures").iterdir())
    assert names == [f"{kind}-chunking.{end}" for kind in ("minutes", "wrong") for end in ("png", "svg")]
    records = list(csv.DictReader((tmp_path / "report/table.csv").read_text().splitlines()))
    mine = next(row for row in records if (row["learner"], row["answers"]) == ("part adagrad", "1000"))
    assert (float(mine["test_mean"]), float(mine["minutes"])) == (pytest.approx(0.85), pytest.approx(100))
    assert "| part | 790 | 2,200 |" in (tmp_path / "report/table.md").read_text()


def test_the_weights_that_train_keeps(experiment, shown):
    run = shown["part"].learner.runs("fixed")[0]
    swinging = {**run.curve, "dev": np.array([0.1, 0.5, 0.3, 0.5]), "test": np.array([0.9, 0.6, 0.7, 0.8])}
    assert curve_column(swinging, "kept").tolist() == [0.9, 0.6, 0.6, 0.6]  # of two equals the first
    swinging["dev"][1] = math.nan
    assert np.isnan(curve_column(swinging, "kept")).all()
    experiment.declared["keep_best"] = True
    try:
        assert main_column(experiment, list(shown.values())) == "kept"
        assert findings(experiment)[0].startswith("After 1,000 decisions part is ahead, test F1 0.850")
    finally:
        del experiment.declared["keep_best"]


def test_other_seconds_make_another_page_of_the_same_runs(tmp_path):
    out = write_results(tmp_path / "r")
    write_report([out], tmp_path / "report")
    before = (tmp_path / "report/table.md").read_text()
    plan = parse_experiment(PLAN.replace("TASK", "chunking").replace("yes_no = 1.0", "yes_no = 7.0"), "plan")
    (out / PLAN_FILE).write_text(checksummed_toml(plan.to_toml()), "utf-8")
    write_report([out], tmp_path / "report")
    after = (tmp_path / "report/table.md").read_text()
    assert "a yes or no 12 s" in after
    assert "F1 0.9 takes, in minutes: whole sentences labelled, at random 190; part 220." in before
    assert "F1 0.9 takes, in minutes: whole sentences labelled, at random 190; part 450." in after


def test_without_vowpal_wabbit_the_page_says_so(tmp_path):
    page = write_report([write_results(tmp_path / "r", "text", RIVALS)], tmp_path / "report").read_text("utf-8")
    assert "There is nothing of Vowpal Wabbit" in page


def write_rivals(out, looks, documents, rates):
    runs = [{"seed": seed, "average_loss": [0.9, 0.8, 0.99 + seed / 100], "test": 0.7} for seed in range(3)]
    bags = [{"seed": seed, "average_loss": [1.0, 1.0, 1.01], "test": None} for seed in range(3)]
    found = {"known_by": "x", "version": "9.9", "looks": looks, "documents": documents, "rates": rates}
    write_checksummed(out / FILE, {**found, "rivals": {"bag": bags, "square": runs}})


def test_vowpal_wabbits_best_stands_beside_ours(tmp_path):
    out = write_results(tmp_path / "r", "text", RIVALS)
    write_rivals(out, list(LOOKS), LOOKS[-1], {"square": 0.25, "bag": 3.0})
    write_report([out], tmp_path / "report")
    text = (tmp_path / "report/table.md").read_text()
    cells = "0.9000 ± 0.0000 | 0.8000 ± 0.0000 | 1.0000 ± 0.0100 | 0.7000 ± 0.0000 |"
    assert f"| Vowpal Wabbit 9.9: square, -l 0.25 | {cells}" in text
    assert "| Vowpal Wabbit 9.9: bag, -l 3 | 1.0000 ± 0.0000 | 1.0000 ± 0.0000 | 1.0100 ± 0.0000 | - |" in text
    assert "| sparsezo: part asked at random | 0.5000" in text
    assert f"- In one pass over {LOOKS[-1]:,} documents, each shown once" in text
    assert "of 2 ways of Vowpal Wabbit, each with its best learning rate in other orders of them, the best" in text
    assert "the best on these (square, -l 0.25) has 1.0000 ± 0.0100: 0.50 times." in text
    with open(tmp_path / "report/table.csv", encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row["title"].startswith("Vowpal Wabbit: ")]
    assert [row["answers"] for row in rows] == [str(look) for look in LOOKS] * 2
    assert [bool(row["test_mean"]) for row in rows[:3]] == [False, False, True]  # known in the end alone
    assert [float(row["average_loss_mean"]) for row in rows[:3]] == pytest.approx([0.9, 0.8, 1.0])
    assert {(row["task"], row["experiment"]) for row in rows} == {("text", rows[0]["experiment"])}


def test_less_than_a_pass_is_not_called_one(tmp_path):
    out = write_results(tmp_path / "r", "text", RIVALS)
    write_rivals(out, list(LOOKS), LOOKS[-1] + 1, {})
    write_report([out], tmp_path / "report")
    text = (tmp_path / "report/table.md").read_text()
    assert f"- Over the first {LOOKS[-1]:,} documents, each shown once" in text
    assert "of 2 ways of Vowpal Wabbit, the best on these (square) has" in text


def test_names_at_the_ends_of_lines_keep_apart_and_inside():
    assert _apart(np.array([0.9, 0.5]), 0.1) == pytest.approx([0.9, 0.5])
    assert _apart(np.array([0.8, 0.8, 0.8]), 0.1) == pytest.approx([0.9, 0.8, 0.7])  # to both sides
    assert _apart(np.array([0.81, 0.8, 0.3]), 0.1) == pytest.approx([0.855, 0.755, 0.3])
    assert _apart(np.array([1.0, 0.99, 0.98]), 0.1) == pytest.approx([1.0, 0.9, 0.8])
    assert _apart(np.array([0.05, 0.04, 0.03]), 0.1) == pytest.approx([0.2, 0.1, 0.0])
