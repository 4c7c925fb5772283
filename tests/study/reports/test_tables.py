"""The table, its signature and the words on raters' noise, from results small enough to check on paper.

Seeds are not symmetric about their mean, timings differ by seed, and no figure is the same in both phases.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from reported import experiment_of, learner_of, run_of

from sparsezo.study.reports.noise import noise_lines, noise_phase, noise_sentences
from sparsezo.study.reports.results import LearnerRuns, Spread
from sparsezo.study.reports.tables import (
    about_text,
    count_text,
    iterations_until,
    make_speed_table,
    make_table,
    signature,
)

SEEDS = (3, 4, 8)
# By quantity: over seeds at the tuned settings, then at the fixed ones
FIGURES = {
    "test": ((0.80, 0.81, 0.88), (0.70, 0.71, 0.75)),
    "dev": ((0.90, 0.91, 0.98), (0.60, 0.61, 0.68)),
    "average_loss": ((0.20, 0.30, 0.10), (0.40, 0.30, 0.80)),
    "best_iteration": ((900, 100, 500), (200, 100, 150)),
    "us_per_iteration": ((12.5, 9.25, 30.0), (8.0, 5.125, 6.0)),
    "update_fraction": ((0.25, 0.5, 0.9), (0.125, 0.75, 0.25)),
}


def learner(name="two-point active", phases=("tuned", "fixed"), seeds=SEEDS, add=0.0, **how):
    """``add``: to every test result; ``result``: further figures, for all; ``settings``, ``feedback``, ``plain``."""
    rule, _, rest = name.partition(" ")
    perturb = how.get("perturb", rest or None)
    runs = {}
    for phase in phases:
        place = ("tuned", "fixed").index(phase)
        settings = {"h": (0.003, 0.01)[place], "mu": (0.1, 0.02)[place] if perturb else None} | how.get("settings", {})
        known = {"learner": name, "settings": settings, "iterations": how.get("iterations", (2000, 1000)[place])}
        known |= {"test_report": how.get("report", {}), "paper": how.get("paper")}
        known["versions"] = how.get("versions", {"sparsezo": "0.1.0"})
        results = [
            {key: values[place][i] + (add if key == "test" else 0) for key, values in FIGURES.items()}
            for i in range(len(seeds))
        ]
        runs[phase] = tuple(
            run_of(phase, seed, result | how.get("result", {}), **known)
            for seed, result in zip(seeds, results, strict=True)
        )
    return LearnerRuns(name, rule, perturb, how.get("plain", True), runs, how.get("feedback", "exact"))


def experiment(*learners, **fields):
    known = {"name": "chunking", "declared": {"data": {"train": ["corpus/train.gz"]}}}
    return experiment_of(*learners, **known | fields)


def paper_sized():
    return experiment(
        learner("two-point all", add=-0.25, paper=0.5625),
        learner("two-point active", paper=0.888),
        learner("first-order", add=0.0625, paper=0.908),
    )


# Rows


def test_a_row_is_of_the_tuned_settings():
    (row,) = make_table(experiment(learner(paper=0.888))).rows
    assert (row.group, row.learner, row.phase, row.feedback) == ("active", "two-point active", "tuned", "exact")
    assert (row.seeds, row.iterations, row.h, row.mu, row.paper) == (SEEDS, 2000, 0.003, 0.1, 0.888)
    for name in ("test", "dev", "average_loss", "best_iteration", "update_fraction"):
        assert getattr(row, name) == Spread(FIGURES[name][0])
    assert row.us == 9.25  # of the fastest seed: neither the first, nor the mean, nor the median
    assert row.length_ratio is None
    assert (row.zeroth_order, row.best, row.marks) == (True, True, "")
    assert row.difference == pytest.approx(0.83 - 0.888)  # here minus the paper's


def test_a_row_without_figures():
    nothing = dict.fromkeys(FIGURES)
    bare = learner("first-order", result=nothing, settings={"h": True, "mu": "x"})
    (row,) = make_table(experiment(bare)).rows
    spreads = [row.test, row.dev, row.average_loss, row.best_iteration, row.update_fraction]
    assert spreads == [None] * 5
    assert (row.us, row.h, row.mu, row.best, row.zeroth_order) == (None, None, None, False, False)
    table = make_table(experiment(bare))
    assert table.cells(row) == ("first-order", *["-"] * 6)
    assert table.columns == ("learner", "test F1", "h", "mu", "average loss", "best iteration", "µs a step")


def best_of(*learners, **fields):
    return [row.learner for row in make_table(experiment(*learners, **fields)).rows if row.best]


def test_the_best_row_is_that_of_the_highest_mean_and_zeroth_order():
    """The mean of the first is 0.83; the second has the higher median, the third the higher maximum."""
    first = learner("two-point active")
    second = learner("two-point all", result={"test": 0.825})
    third = learner("baseline all", add=0.06, seeds=(3,))  # 0.86
    assert best_of(second, first) == best_of(first, second) == ["two-point active"]
    assert best_of(first, third, second) == ["baseline all"]
    assert best_of(learner("first-order", add=0.1), first) == ["two-point active"]
    bounds = {"oracle": {"f1": 0.99}}
    assert best_of(first, bounds=bounds) == ["two-point active"]
    assert best_of(learner("first-order")) == []
    assert best_of(learner(result={"test": None})) == ["two-point active"]  # by dev, where nothing was tested
    assert best_of(learner(result={"test": None, "dev": None})) == []
    assert best_of(learner("two-point all"), learner("two-point active")) == ["two-point all"]  # of equals, the first


def test_marks_of_another_phase_and_of_a_single_seed():
    table = make_table(
        experiment(
            learner("two-point all"),
            learner("two-point active", phases=("fixed",)),
            learner("two-point score", seeds=(8,)),
            learner("first-order", phases=("fixed",), seeds=(8,)),
        )
    )
    assert table.phase == "tuned"
    assert [row.marks for row in table.rows] == ["", "†", "", "†"]
    assert [table.cells(row)[0] for row in table.rows] == [
        *("two-point all", "two-point active†", "two-point score", "first-order†")
    ]
    told = [table.cells(row)[1].partition(" ")[2] for row in table.rows]
    assert (told[0][0], told[1][0], told[2:]) == ("±", "±", ["(one run)", "(one run)"])
    assert table.notes[1:] == ("† No tuned result: the fixed settings.",)


@pytest.mark.parametrize(
    ("seeds", "told", "note"),
    [
        ((8,), " (one run)", "Figures are of one seed; a standard deviation takes three; "),
        ((8, 3), " (two runs)", "Figures are means over two seeds; a standard deviation takes three; "),
        ((8, 3, 4), " ± ", "Figures are means ± standard deviations over seeds; "),
    ],
)
def test_a_spread_is_shown_from_three_seeds_on(seeds, told, note):
    table = make_table(experiment(learner(seeds=seeds)))
    (row,) = table.rows
    assert told in table.cells(row)[1]
    assert ("±" in table.cells(row)[2]) == (len(seeds) == 3)
    assert table.notes[0].startswith(note)
    assert (table.records()[0]["test_sd"] is None) == (len(seeds) < 3)


# Text


def test_length_ratios_stand_beside_bleu():
    ratio = learner(report={"length_ratio": 1.0625})
    bare = learner("two-point all")
    table = make_table(experiment(ratio, bare, metric="bleu", task="rerank", name="smt"))
    assert table.columns[:4] == ("learner", "test BLEU", "length ratio", "dev BLEU")
    assert table.cells(table.rows[0])[2] == "1.062 ± 0.000"
    assert table.cells(table.rows[1])[2] == "-"


def test_bounds_are_rows_without_seeds():
    bounds = {"out-of-domain": {"bleu": 0.25, "length_ratio": 1.5}, "in-domain": {}, "oracle": {"bleu": 0.4}}
    with_paper = experiment(learner(paper=0.273), metric="bleu", task="rerank", bounds=bounds)
    rows = make_table(with_paper).rows[1:]
    assert [(row.learner, row.group, row.paper, row.seeds, row.marks) for row in rows] == [
        ("out-of-domain", "bounds", 0.257, (), ""),
        ("in-domain", "bounds", 0.284, (), ""),
        ("oracle", "bounds", None, (), ""),
    ]
    assert [row.test for row in rows] == [Spread((0.25,), exact=True), None, Spread((0.4,), exact=True)]
    assert [row.length_ratio for row in rows] == [Spread((1.5,), exact=True), None, None]
    assert [(row.phase, row.zeroth_order, row.best) for row in rows] == [(None, False, False)] * 3
    assert rows[0].difference == pytest.approx(-0.007)
    assert make_table(with_paper).groups[-1][0] == "bounds"
    alone = make_table(experiment(learner(), metric="bleu", bounds=bounds)).rows[1:]
    assert [row.paper for row in alone] == [None] * 3  # the paper's are of its data: beside its learners or not at all
    unknown = make_table(experiment(learner(), metric="", bounds=bounds)).rows[1]
    assert unknown.test == Spread((0.25,), exact=True)


def test_the_table_in_markdown():
    table = make_table(paper_sized())
    assert table.markdown() == "\n".join(
        [
            "## Noun-phrase chunking",
            "",
            "| learner | test F1 | dev F1 | paper | difference | h | mu | average loss | best iteration | µs a step |",
            "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
            "| *ALL* | | | | | | | | | |",
            "| two-point all | 0.5800 ± 0.0436 | 0.9300 ± 0.0436 | 0.562 | +0.0175 | 0.003 | 0.1 | 0.2000 ± 0.1000 "
            "| 500 | 9.25 |",
            "| *ACTIVE (paper: SPARSE)* | | | | | | | | | |",
            "| **two-point active** | **0.8300 ± 0.0436** | 0.9300 ± 0.0436 | 0.888 | -0.0580 | 0.003 | 0.1 "
            "| 0.2000 ± 0.1000 | 500 | 9.25 |",
            "| *first-order (paper: SFO)* | | | | | | | | | |",
            "| first-order | 0.8925 ± 0.0436 | 0.9300 ± 0.0436 | 0.908 | -0.0155 | 0.003 | - | 0.2000 ± 0.1000 "
            "| 500 | 9.25 |",
            "",
            "Figures are means ± standard deviations over seeds; test and dev are of the model that is best on dev; "
            "h and mu tuned on dev for each learner, with seeds that were not recorded and may be the table's own. "
            "Higher is better; the best zeroth-order result is in bold.  ",
            "Difference: here minus the paper's, which was measured on the paper's data; what it is here is below.  ",
            "`task:chunking|data:corpus/train.gz|learners:3|h:tuned|mu:tuned|seeds:3,4,8|iterations:2k|version:0.1.0`",
            "",
        ]
    )


def test_the_table_in_records_of_full_precision():
    table = make_table(paper_sized())
    records = table.records()
    assert [record["learner"] for record in records] == ["two-point all", "two-point active", "first-order"]
    assert [record["best_zeroth_order"] for record in records] == [0, 1, 0]
    third = math.sqrt(((0.03**2) + (0.02**2) + (0.05**2)) / 2)
    assert records[1] == {
        "experiment": "chunking",
        "task": "chunking",
        "metric": "F1",
        "group": "active",
        "learner": "two-point active",
        "feedback": "exact",
        "phase": "tuned",
        "seeds": "3 4 8",
        "iterations": 2000,
        "test_mean": pytest.approx(0.83),
        "test_sd": pytest.approx(third),
        "dev_mean": pytest.approx(0.93),
        "dev_sd": pytest.approx(third),
        "average_loss_mean": pytest.approx(0.2),
        "average_loss_sd": pytest.approx(0.1),
        "length_ratio_mean": None,
        "length_ratio_sd": None,
        "paper": 0.888,
        "difference": pytest.approx(-0.058),
        "h": 0.003,
        "mu": 0.1,
        "gamma": None,
        "map_average_loss": None,
        "best_iteration": 500,
        "update_fraction": pytest.approx(0.55),
        "us": 9.25,
        "best_zeroth_order": 1,
        "signature": table.signature,
    }
    bare = make_table(experiment(learner(result=dict.fromkeys(FIGURES)))).records()[0]
    assert [bare[name] for name in ("test_mean", "test_sd", "best_iteration", "update_fraction", "us")] == [None] * 5


# Notes


def notes(*learners, **fields):
    return make_table(experiment(*learners, **fields)).notes


def test_the_first_note_says_how_settings_were_found():
    (tuned,), (fixed,) = notes(learner()), notes(learner(phases=("fixed",)))
    assert (
        "; h and mu tuned on dev for each learner, with seeds that were not recorded and may be the table's own"
        in tuned
    )
    (other,) = notes(learner(), tuning={"a": {"seeds": [70, 71]}})
    assert "; h and mu tuned on dev for each learner, with seeds 70, 71, none of them the table's. Higher" in other
    (same,) = notes(learner(), tuning={"a": {"seeds": [3, 71]}})
    assert "with seeds 3, 71, of which 3 are the table's own. Higher" in same
    for seed, words in ((70, "not"), (3, "also")):
        (one,) = notes(learner(), tuning={"a": {"seeds": [seed]}})
        assert f"with seed {seed}, which is {words} one of the table's. Higher" in one
    assert "; the same fixed settings for all learners. Higher" in fixed


def test_grids_that_were_widened_are_named():
    tuning = {"a": {"widened": 1}, "b": {"widened": 0}, "c": {"widened": 2}, "d": {"widened": True}, "e": 5, "f": {}}
    text = "The best lay on an edge of the grid, which was then widened by a decade, for a, c (twice), d."
    assert notes(learner(), tuning=tuning)[1:] == (text,)
    assert len(notes(learner(phases=("fixed",)), tuning=tuning)) == 1
    assert len(notes(learner(), tuning={"b": {"widened": 0}})) == 1


def test_the_score_has_its_signature_in_a_note():
    reports = [{"signature": "nrefs:1"}, {"signature": "a:2"}, {"signature": ""}]
    learners = [learner(f"two-point {name}", report=report) for name, report in zip("abc", reports, strict=True)]
    assert notes(*learners)[1:] == ("Score: a:2; nrefs:1.",)


# The signature


def test_a_signature_at_fixed_settings_has_their_values():
    found = experiment(
        learner("two-point all", seeds=(10, 3), iterations=300_000, settings={"h": 0.5}),
        learner("two-point active", versions={"sparsezo": "0.0.9"}),
    )
    assert signature(found, "fixed") == (
        "task:chunking|data:corpus/train.gz|learners:2|h:0.01,0.5|mu:0.02|seeds:3,4,8,10|iterations:1k,300k|"
        "version:0.0.9,0.1.0"
    )
    assert signature(found, "tuned").split("|")[3:7] == ["h:tuned", "mu:tuned", "seeds:3,4,8,10", "iterations:2k,300k"]
    assert signature(found, "fixed", found.learners[1:]).split("|")[2:6] == [
        "learners:1",
        "h:0.01",
        "mu:0.02",
        "seeds:3,4,8",
    ]


def test_a_signature_takes_the_other_phase_of_those_that_lack_this_one():
    found = experiment(learner("two-point all", phases=("fixed",), seeds=(5,)), learner("baseline all"))
    assert "|seeds:3,4,5,8|iterations:1k,2k|" in signature(found, "tuned")
    found = experiment(learner("two-point all", phases=("tuned",), seeds=(5,)), learner("baseline all"))
    assert "|seeds:3,4,5,8|iterations:1k,2k|" in signature(found, "fixed")


def test_many_settings_are_a_range():
    def of(*rates):
        learners = [learner(f"two-point {h}", settings={"h": h, "mu": None}) for h in rates]
        return signature(experiment(*learners), "fixed").split("|")[3:5]

    assert of(0.5, 0.25, 0.125) == ["h:0.125,0.25,0.5", "mu:none"]
    assert of(0.5, 0.25, 2, 0.125) == ["h:0.125..2", "mu:none"]


def test_feedback_stands_in_a_signature_where_it_is_not_exact():
    flip = learner("preference score flip:0.1", perturb="score", feedback="flip:0.1")
    assert "feedback" not in signature(experiment(learner()), "fixed")
    assert signature(experiment(flip, learner()), "fixed").endswith("|version:0.1.0|feedback:exact;flip:0.1")
    assert signature(experiment(flip), "fixed").endswith("|feedback:flip:0.1")


# Numbers


@pytest.mark.parametrize(
    ("count", "text"),
    [
        *((4_000_000, "4M"), (1_000_000, "1M"), (2_550_000, "2.55M"), (2_555_000, "2555k"), (999_990, "999.99k")),
        *((300_000, "300k"), (1_000, "1k"), (1_230, "1.23k"), (1_234, "1,234"), (509_381, "509,381"), (950, "950")),
        (0, "0"),
    ],
)
def test_counts(count, text):
    assert count_text(count) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        *((3_813_333.3, "3.81M"), (1e6, "1.00M"), (999_400.0, "999k"), (120_400, "120k"), (1e4, "10k")),
        *((9_999.0, "9,999"), (950.4, "950")),
    ],
)
def test_means_of_counts(count, text):
    assert about_text(count) == text


# Raters' noise


def rated(name, *models, rule=None, **how):
    """A learner for each model, with (model, tests over seeds)."""
    found = []
    for model, tests in models:
        rule = rule or name.split()[0]
        runs = tuple(run_of("fixed", seed, {"test": test}) for seed, test in zip(SEEDS, tests, strict=False))
        full = name if model == "exact" else f"{name} {model}"
        perturb = how.get("perturb", name.split()[1] if " " in name else None)
        found.append(LearnerRuns(full, rule, perturb, model == "exact", {"fixed": runs}, model))
    return found


EXACT = ("exact", (0.90, 0.91, 0.98))


def test_lines_are_of_what_differs_in_feedback_alone_by_rising_noise():
    learners = [
        *rated("preference score", ("flip:0.3", (0.5,)), EXACT, ("flip:0.05", (0.8, 0.7))),
        *rated("preference all", EXACT),
        *rated(
            *(
                "two-point all",
                ("rating:5,0.3,0.1", (0.3,)),
                ("rating:5,0.1,0.2", (0.1,)),
                ("rating:7,0.1,0.1", (0.2,)),
            ),
            *(("rating:5,0.1,0.1", (0.4,)), ("binary", (0.6,))),
        ),
        *rated("baseline all", EXACT, ("from a later version", (0.1,))),
    ]
    first, second = noise_lines(experiment(*learners))
    assert (first.name, first.learner.rule) == ("preference score", "preference")
    assert [(point.written, point.test.values) for point in first.flips] == [
        ("exact", (0.90, 0.91, 0.98)),
        ("flip:0.05", (0.8, 0.7)),
        ("flip:0.3", (0.5,)),
    ]
    assert [point.feedback.noise for point in first.flips] == [0.0, 0.05, 0.3]
    assert (first.of("rating"), first.at("binary")) == ((), None)
    assert second.name == "two-point all"
    assert [point.written for point in second.of("rating")] == [
        *("rating:5,0.1,0.1", "rating:7,0.1,0.1", "rating:5,0.1,0.2", "rating:5,0.3,0.1")
    ]
    assert second.flips == ()
    assert second.at("exact") is None
    assert second.at("binary").test.values == (0.6,)


def test_flips_without_an_exact_one_stand_alone():
    (line,) = noise_lines(experiment(*rated("preference all", ("flip:0.2", (0.5,)), ("flip:0.1", (0.6,)))))
    assert [point.written for point in line.flips] == ["flip:0.1", "flip:0.2"]


def test_noise_is_compared_at_tuned_settings_where_all_are_tuned():
    pair = [
        learner("preference score", seeds=SEEDS),
        learner("preference score flip:0.1", perturb="score", feedback="flip:0.1"),
    ]
    both = experiment(*pair)
    assert noise_phase(both) == "tuned"
    assert {point.test.values for line in noise_lines(both) for point in line.points} == {(0.80, 0.81, 0.88)}
    one = experiment(pair[0], learner("preference score flip:0.1", ("fixed",), perturb="score", feedback="flip:0.1"))
    assert noise_phase(one) == "fixed"
    assert {point.test.values for line in noise_lines(one) for point in line.points} == {(0.70, 0.71, 0.75)}
    assert noise_phase(experiment()) == "fixed"


def test_what_noise_costs_in_words():
    learners = [
        *rated("preference all", EXACT, ("flip:0.2", (0.1, 0.1, 0.1)), ("flip:0.1", (0.5, 0.5, 0.59))),
        *rated("preference score", EXACT, ("flip:0.1", (0.90, 0.91, 0.95))),
        *rated("first-order", ("rating:5,0.1,0.1", (0.5,)), EXACT),
        *rated("baseline all", EXACT, ("flip:0.3", (0.5, 0.6))),  # not at 0.1
        *rated("two-point all", ("rating:5,0.1,0.1", (0.5,)), ("binary", (0.4,))),  # nothing exact beside it
        *rated("symmetric all", EXACT, ("rating:5,0.1,0.1", (0.2, 0.21, 0.22))),
        *rated("symmetric score", EXACT, ("rating:5,0.1,0", (0.95, 0.96, 1.03))),
    ]
    assert list(noise_sentences(experiment(*learners, metric="bleu"))) == [
        "In test BLEU, flip:0.1 costs preference 0.4000 with all (0.9300 to 0.5300) and "
        "0.0100 with score (0.9300 to 0.9200, within seed noise).",
        "In test BLEU, rating:5,0.1,0.1 costs first-order 0.4300 (0.9300 to 0.5000, one seed).",
        "In test BLEU, rating:5,0.1,0.1 costs symmetric 0.7200 with all (0.9300 to 0.2100); "
        "rating:5,0.1,0 costs symmetric -0.0500 with score (0.9300 to 0.9800).",  # the same for every seed
    ]


def test_with_a_loss_of_0_or_1_preference_is_said_to_be_two_point():
    both = (learner("two-point score"), learner("preference score"))
    text = "With a loss of 0 or 1 preference's step is two-point's"
    assert any(note.startswith(text) for note in notes(*both, task="text"))
    assert not any(note.startswith(text) for note in notes(*both))  # 1 - F1 is between 0 and 1
    apart = (learner("two-point all"), learner("preference score"))
    assert not any(note.startswith(text) for note in notes(*apart, task="text"))


# How fast


def with_losses(name, *curves, **settings):
    """Runs of phase speed, each with (iterations, loss of dev) pairs."""
    rule, _, perturb = name.partition(" ")
    runs = []
    for seed, points in enumerate(curves):
        at, losses = (np.array(each, float) for each in zip(*points, strict=True))
        area = float(np.trapezoid(losses, at) / at[-1])
        curve = {"iterations": at, "dev_loss": losses}
        runs.append(run_of("speed", seed, {"dev_loss_area": area}, curve, settings={"h": 0.1, "mu": 0.2, **settings}))
    return learner_of(*runs, name=name, rule=rule, perturb=perturb or None)


def test_iterations_until_a_loss_are_by_the_line_between_looks():
    item = with_losses(
        "two-point score", [(0, 1.0), (100, 0.5), (200, 0.1)], [(0, 0.4), (100, 0.6)], [(0, 1), (50, 0.9)]
    )
    assert iterations_until(item, "speed", 0.5) == [100.0, 0.0, None]
    assert iterations_until(item, "speed", 0.2) == [pytest.approx(175.0), None, None]


def test_the_table_of_speed_is_by_the_area_and_counts_losses():
    slow = with_losses("two-point active", *[[(0, 1.0), (1000, 0.4)]] * 3)
    fast = with_losses("first-order", *[[(0, 1.0), (1000, 0.1)]] * 3, mu=None)
    experiment = experiment_of(slow, fast, declared={"losses": [0.5, 0.2]})
    table = make_speed_table(experiment)
    assert table.head == ["learner", "mean loss over the run", "to 0.5", "to 0.2", "h", "mu"]
    assert table.rows == [
        ["first-order", "0.5500 ± 0.0000", "556 (556)", "889 (889)", "0.1", "-"],
        ["two-point active", "0.7000 ± 0.0000", "833 (1,667)", "-", "0.1", "0.2"],
    ]
    assert make_speed_table(experiment_of(learner_of(run_of("tuned", 0)))) is None
