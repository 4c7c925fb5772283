"""The report on results made for the purpose: its files, a page that stands alone, what the figures show.

Seeds are not symmetric about their mean, timings differ by seed, and no figure is the same in both phases.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
import statistics
from pathlib import Path

import numpy as np
import pytest
import reported
from reported import Page

from sparsezo.errors import SparsezoError, UsageError
from sparsezo.storage.checksummed import read_checksummed
from sparsezo.study.reports import report
from sparsezo.study.reports import scaling as scaling_report
from sparsezo.study.reports.claims import check_claims
from sparsezo.study.reports.figures import Figure, line_style
from sparsezo.study.reports.reading import read_experiment
from sparsezo.study.reports.report import draw_figures, write_report
from sparsezo.study.reports.results import LearnerRuns
from sparsezo.study.reports.tables import csv_text, losses_a_step
from sparsezo.study.scaling import Measured, Panel, Point, Scaling

pytest.importorskip("matplotlib")

SEEDS = (3, 8, 4)
TEST = {  # tuned; 0.05 less at the fixed settings
    "two-point all": (0.84, 0.85, 0.80),
    "two-point active": (0.888, 0.890, 0.895),
    "first-order": (0.90, 0.91, 0.95),
}
PAPER = {"two-point all": 0.841, "two-point active": 0.888, "first-order": 0.908}
BY_SEED = {  # fixed, tuned
    3: {"us_per_iteration": (9.0, 14.0), "update_fraction": (0.1, 0.25), "seconds": (100.0, 10.0)},
    8: {"us_per_iteration": (7.5, 11.5), "update_fraction": (0.3, 0.5), "seconds": (50.0, 20.0)},
    4: {"us_per_iteration": (8.0, 30.0), "update_fraction": (0.8, 0.9), "seconds": (60.0, 60.0)},
}
SIZES = {3: (50.0, 20.0), 8: (60.0, 30.0), 4: (100.0, 70.0)}  # n_active, n_score
STEPS = (0, 100, 200, 400, 1000)


def settings_of(name, phase, seed):
    rule, _, perturb = name.partition(" ")
    h, mu = (0.01, 0.02) if phase == "fixed" else (0.003, 0.1)
    return {
        "rule": rule,
        "perturb": perturb or None,
        "h": h,
        "mu": mu if perturb else None,
        "step": "constant",
        "criterion": "map",
        "gamma": 1.0,
        "baseline": False,
        "seed": seed,
    }


def loss_at(step, phase, seed):
    return (1.0 if phase == "fixed" else 0.5) / (1 + step / 100) + 0.1 * (seed == 4) * step / 1000


def dev_at(step, phase, seed):
    return 0.5 + step / 4000 + (0.1 if phase == "tuned" else 0.0) + 0.06 * (seed == 8)


def write_run(out, name, phase, seed, test, **changes):
    rerank = changes.pop("task", "chunking") == "rerank"
    tidy = name.replace(" ", "-").replace("<", "").replace("/", "")
    folder, place = f"{tidy}-{phase}-{seed}", int(phase == "tuned")
    result = {"metric": "bleu" if rerank else "f1", "n": 12345, "dev": 0.9, "test": test, "version": "0.1.0"}
    result |= {"average_loss": loss_at(1000, phase, seed), "best_iteration": 900 + seed}
    result |= {key: values[place] for key, values in BY_SEED.get(seed, BY_SEED[3]).items()}
    result |= dict(zip(("n_active", "n_score"), SIZES.get(seed, SIZES[3]), strict=True))
    ratio = {"bleu": test, "length_ratio": 1.0 + seed / 10, "signature": "nrefs:1|tok:none"}
    known = {"experiment": "smt", "task": "rerank"} if rerank else {"experiment": "chunking", "task": "chunking"}
    known |= {"settings": settings_of(name, phase, seed), "test_report": ratio if rerank else None, "result": result}
    known["versions"] = {"sparsezo": "0.1.0", "numpy": "2.0", "numba": "0.61", "python": "3.11"}
    known |= {"folder": folder, "hash": folder, "paper": PAPER.get(name), "iterations": 4_000_000}
    lines = [f"{step},{loss_at(step, phase, seed)!r},{dev_at(step, phase, seed)!r}" for step in STEPS]
    curve = "\n".join(["iterations,average_loss,dev", *lines, ""])
    return reported.write_run(out, name, phase, seed, curve, **known | changes)


def toml(names, seeds="[3, 8, 4]", task="chunking"):
    text = f'name = "chunking"\ntask = "{task}"\nseeds = {seeds}\n[data]\ntrain = ["conll2000/train.txt.gz"]\n'
    for name in names:
        rule, _, perturb = name.partition(" ")
        text += f'[[learner]]\nrule = "{rule}"\n' + (f'perturb = "{perturb}"\n' if perturb else "")
    return text


@pytest.fixture
def out(tmp_path):
    folder = tmp_path / "out"
    for name, values in TEST.items():
        for phase in ("fixed", "tuned"):
            for seed, test in zip(SEEDS, values, strict=True):
                write_run(folder, name, phase, seed, test if phase == "tuned" else test - 0.05)
    (folder / "experiment.toml").write_text(toml(TEST))
    trial = {"h": 0.003, "mu": 0.1, "dev": 0.9, "iterations": 100, "seeds": 2}
    failed = {"h": 1.0, "mu": 0.1, "dev": None, "iterations": None}
    other = {"h": 0.003, "mu": 0.5, "dev": 0.95, "iterations": 2000}
    entry = {"trials": [failed, trial, other], "chosen": {"h": 0.003, "mu": 0.1}, "widened": 1, "note": "on the edge"}
    entry["seeds"] = [90, 91]
    plain = {"trials": [trial], "chosen": {"h": 0.003, "mu": 0.1}, "seeds": [90]}
    (folder / "tuning.json").write_text(json.dumps({"two-point active": entry, "first-order": plain, "odd": 5}))
    return folder


def parsed(path):
    return Page(path.read_text(encoding="utf-8"))


def check_page(path):
    """Its text; every id is there once, and nothing is fetched."""
    page, found = path.read_text(encoding="utf-8"), parsed(path)
    ids = found.values("id")
    assert len(ids) == len(set(ids))
    assert all(link.startswith("#") and link[1:] in ids for link in found.links)
    assert not {"script", "link", "img", "iframe"} & set(found.tags)
    assert not any(address in page for address in ("http://", "https://", "url(http", "@import"))
    return " ".join(" ".join(found.text).split())


def rows(path):
    with open(path, encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


# The files


def test_everything_is_written_and_the_page_stands_alone(out, tmp_path):
    target = tmp_path / "report"
    path = write_report([out], target, command="sparsezo reproduce chunking <here>")
    assert path == target / "report.html"
    written = sorted(str(file.relative_to(target)) for file in target.rglob("*") if file.is_file())
    kinds = ("asked", "asked-tuned", "dev", "dev-tuned", "loss", "loss-tuned", "test")
    names = [f"figures/{kind}-chunking.{ending}" for kind in kinds for ending in ("png", "svg")]
    assert written == sorted(["curves.csv", *names, "report.html", "table.csv", "table.md", "verdicts.json"])
    text = check_page(path)
    assert "sparsezo reproduce chunking <here>" in text
    assert (
        "task:chunking|data:conll2000/train.txt.gz|learners:3|h:tuned|mu:tuned|seeds:3,4,8|iterations:4M|version:0.1.0"
    ) in text
    assert "<pre>sparsezo reproduce chunking &lt;here&gt;</pre>" in path.read_text("utf-8")
    assert path.read_text("utf-8").count("<svg") == 7
    assert (target / "figures/loss-chunking.png").read_bytes().startswith(b"\x89PNG")
    assert (target / "figures/loss-chunking.svg").read_text("utf-8").startswith("<?xml")


@pytest.mark.usefixtures("undrawn")
def test_curves_are_all_there_in_long_form(out, tmp_path):
    trial = write_run(out, "two-point all", "tune", 8, 0.5)
    (trial / "curve.csv").write_text("iterations,average_loss,dev\n0,0.5,\n")
    (write_run(out, "two-point all", "tune", 9, 0.5) / "curve.csv").unlink()
    write_report([out], tmp_path / "report")
    curves = rows(tmp_path / "report" / "curves.csv")
    assert len(curves) == 3 * 2 * 3 * len(STEPS) + 1
    known = ("experiment", "task", "learner", "phase", "seed", "h", "mu")
    assert tuple(curves[0]) == (*known, "iterations", "average_loss", "dev", "answers")
    keys = [(row["learner"], row["phase"], int(row["seed"])) for row in curves]
    assert keys == sorted(keys)
    one = [row for row, key in zip(curves, keys, strict=True) if key == ("two-point active", "tuned", 4)]
    assert [int(row["iterations"]) for row in one] == list(STEPS)
    assert [float(row["average_loss"]) for row in one] == [loss_at(step, "tuned", 4) for step in STEPS]
    assert [float(row["dev"]) for row in one] == [dev_at(step, "tuned", 4) for step in STEPS]
    assert {(row["experiment"], row["task"], row["h"], row["mu"]) for row in one} == {
        ("chunking", "chunking", "0.003", "0.1")
    }
    (only,) = [row for row in curves if row["phase"] == "tune"]
    assert (only["dev"], only["average_loss"]) == ("", "0.5")
    assert {row["mu"] for row in curves if row["learner"] == "first-order"} == {""}


def test_the_same_results_make_the_same_files(tmp_path):
    out = tmp_path / "out"
    write_run(out, "two-point active", "fixed", 3, 0.8)
    for name in ("one", "two"):
        write_report([out], tmp_path / name)
    files = sorted((tmp_path / "one").rglob("*.*"))
    assert len(files) == 5 + 2 * 3
    for file in files:
        assert file.read_bytes() == (tmp_path / "two" / file.relative_to(tmp_path / "one")).read_bytes()


@pytest.mark.usefixtures("undrawn")
def test_several_experiments_in_one_report(out, tmp_path):
    smt = tmp_path / "smt"
    write_run(smt, "two-point active", "tuned", 3, 0.27, task="rerank")
    (tmp_path / "empty").mkdir()
    path = write_report([out, smt, out, tmp_path / "empty"], tmp_path / "report")
    text = check_page(path)
    assert "no zeroth-order learner has a result on test or dev" in text
    assert text.count("Noun-phrase chunking: two-point active has the best mean of 2") == 2
    assert "Reranking of translations (SMT): two-point active is the only zeroth-order learner" in text
    assert parsed(path).links == ["#chunking", "#smt", "#chunking-2", "#empty"]
    experiments = [row["experiment"] for row in rows(tmp_path / "report" / "table.csv")]
    assert experiments == [*["chunking"] * 3, "smt", *["chunking"] * 3]
    assert (tmp_path / "report" / "table.md").read_text("utf-8").count("## Noun-phrase chunking\n") == 2


def test_a_slug_is_a_name_for_files_and_each_is_another():
    names = ["Mine, größer!", "...", "a--b", "a b", "A-b"]
    assert report._slugs(names) == ["mine-gr-er", "experiment", "a-b", "a-b-2", "a-b-3"]


# Words


def summary_of(*folders):
    sections = report.make_sections([read_experiment(folder) for folder in folders], Path())
    return [list(section.summary) for section in sections]


@pytest.mark.usefixtures("undrawn")
def test_the_summary(out):
    (lines,) = summary_of(out)
    assert lines == [
        "Noun-phrase chunking: two-point active has the best mean of 2 zeroth-order learners, test F1 0.8910 ± 0.0036 "
        "(3 seeds, tuned settings).",
        "Beside the paper's figures, 2 of 3 learners are at or above them; the difference runs from -0.0110 "
        "(two-point all) to +0.0120 (first-order).",
        "For comparison: first-order reaches 0.9200 ± 0.0265.",
        "Of 10 claims checked, 1 holds, 1 does not, and 8 cannot be decided.",
    ]


@pytest.mark.usefixtures("undrawn")
def test_table_md_has_gaps_and_verdicts(out, tmp_path):
    page = write_report([out], tmp_path / "report")
    verdicts = read_checksummed(page.parent / "verdicts.json")  # the same for programs
    claims = check_claims(read_experiment(out))
    assert [(each["title"], each["verdict"]) for each in verdicts["claims"]] == [(c.title, c.verdict) for c in claims]
    text = (tmp_path / "report" / "table.md").read_text("utf-8")
    assert text.startswith("# Results beside the paper's\n\n## Noun-phrase chunking\n")
    assert "Missing or odd" not in text
    assert (
        "\nClaims:\n\n- **cannot be said**: ACTIVE learns faster than ALL, for every rule, by the paper's measure, "
        "fixed settings (paper Sec. 5, chunking; supplement, text classification): "
    ) in text
    (out / "runs" / "unfinished").mkdir()
    write_report([out], tmp_path / "report")
    text = (tmp_path / "report" / "table.md").read_text("utf-8")
    assert "\nMissing or odd:\n\n- 1 run is not finished.\n\nClaims:\n" in text


@pytest.mark.usefixtures("undrawn")
def test_what_is_missing_is_said(out, tmp_path):
    (out / "experiment.toml").write_text(toml([*TEST, "comparison all"], seeds="4"))
    (out / "runs" / "unfinished").mkdir()
    (out / "runs" / "two-point-active-tuned-8" / "run.json").write_text("{")
    (out / "runs" / "two-point-all-fixed-3" / "curve.csv").unlink()
    for seed in SEEDS:
        (out / "runs" / f"first-order-tuned-{seed}" / "run.json").unlink()
    (out / "tuning.json").write_text("[]")
    path = write_report([out], tmp_path / "report")
    text = check_page(path)
    for said in (
        "comparison all: no finished run.",
        "4 runs are not finished.",
        "two-point active, tuned: 2 seeds of 4.",
        "two-point all, fixed, seed 3, has no curve: runs/two-point-all-fixed-3/curve.csv: is damaged (it is missing)",
        "Left out: runs/two-point-active-tuned-8/run.json: is damaged (Expecting property name",
        "† No tuned result: the fixed settings.",
        "No trials of tuning are recorded.",
        "The command was not recorded.",
        "There is nothing to draw: no curves and no test results.",
    ):
        assert said in text
    table = {row["learner"]: row for row in rows(tmp_path / "report" / "table.csv")}
    assert table["first-order"]["phase"] == "fixed"
    assert table["two-point active"]["seeds"] == "3 4"


def test_a_single_seed_without_tuning_and_test(tmp_path):
    out = tmp_path / "out"
    write_run(out, "two-point active", "fixed", 3, None)
    text = check_page(write_report([out], tmp_path / "report"))
    assert "experiment.toml is missing" in text
    assert "There is no tuned phase" in text
    assert "No run has a test result." in text
    assert "a single seed, so no spread" in text
    row = rows(tmp_path / "report" / "table.csv")[0]
    assert (row["test_mean"], row["dev_sd"], row["dev_mean"]) == ("", "", "0.9")
    assert not (tmp_path / "report" / "figures" / "test-chunking.svg").exists()


# The page


@pytest.fixture
def page(out, tmp_path, undrawn):
    return parsed(write_report([out], tmp_path / "report", command="sparsezo reproduce chunking"))


def test_the_page_has_the_table_with_the_best_row_marked(page):
    learners = [(kind, cells) for kind, cells in page.rows if cells[0] in TEST and len(cells) == 10]
    assert [(kind, cells[0]) for kind, cells in learners] == [
        ("", "two-point all"),
        ("best", "two-point active"),
        ("", "first-order"),
    ]
    assert learners[1][1] == [
        *("two-point active", "0.8910 ± 0.0036", "0.9000 ± 0.0000", "0.888", "+0.0030", "0.003", "0.1"),
        *("0.0788 ± 0.0577", "905", "11.5"),
    ]
    assert [cells for kind, cells in page.rows if kind == "group"] == [
        ["ALL"],
        ["ACTIVE (paper: SPARSE)"],
        ["first-order (paper: SFO)"],
    ]


def test_the_page_has_settings_and_speed_of_every_learner(page):
    """µs of the fastest seed; the others are means over seeds."""
    found = {(cells[0], cells[1]): cells[2:] for _, cells in page.rows if len(cells) == 14}
    assert found["learner", "settings"] == [
        *("step", "criterion", "h", "mu", "seeds", "iterations", "update fraction"),
        *("µs a step", "n", "n active", "n score", "seconds"),
    ]
    assert list(found)[1:] == [(name, phase) for name in TEST for phase in ("fixed", "tuned")]
    assert found["two-point active", "fixed"] == [
        *("constant", "map", "0.01", "0.02", "3, 4, 8", "4M", "0.400 ± 0.361", "7.5", "12k", "70", "40", "70")
    ]
    assert found["two-point active", "tuned"] == [
        *("constant", "map", "0.003", "0.1", "3, 4, 8", "4M", "0.550 ± 0.328", "11.5", "12k", "70", "40", "30")
    ]
    assert found["first-order", "tuned"][3] == "-"


def test_the_page_has_the_trials_of_tuning_with_the_chosen_one_in_bold(page):
    trials = [(kind, cells) for kind, cells in page.rows if len(cells) == 8]
    assert trials == [
        ("", ["learner", "h", "mu", "dev", "iterations", "seeds", "", ""]),
        ("", ["two-point active", "1", "0.1", "-", "-", "-", "", ""]),
        ("chosen", ["two-point active", "0.003", "0.1", "0.9000", "100", "2", "chosen", "grid widened, on the edge"]),
        ("", ["two-point active", "0.003", "0.5", "0.9500", "2k", "-", "", ""]),
        ("chosen", ["first-order", "0.003", "0.1", "0.9000", "100", "2", "chosen", ""]),
    ]
    assert "4 trials of tuning" in page.text


def folded(path):
    """The page without the white space between its tags."""
    return re.sub(r"\s+", " ", re.sub(r">\s+<", "><", path.read_text("utf-8")))


def test_the_page_says_how_it_was_made(page, out):
    text = " ".join(" ".join(page.text).split())
    assert (
        "18 runs (9 fixed, 9 tuned), 15 min of learning summed over runs. Data: conll2000/train.txt.gz. "
        "Versions: sparsezo 0.1.0, python 3.11, numpy 2.0, numba 0.61."
    ) in text  # 3 * (210 + 90) seconds
    assert "sparsezo reproduce chunking" in page.text
    assert (out / "experiment.toml").read_text() in page.text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(119.4, "119 s"), (120.0, "2 min"), (7100.0, "118 min"), (7200.0, "2.0 h")],
)
@pytest.mark.usefixtures("undrawn")
def test_durations(tmp_path, seconds, text):
    folder = write_run(tmp_path / "out", "two-point active", "fixed", 3, 0.5, versions=None)
    record = json.loads((folder / "run.json").read_text())
    record["result"]["seconds"] = seconds
    (folder / "run.json").write_text(json.dumps(record))
    (tmp_path / "out" / "experiment.toml").write_text('note = "so <so>"\n')
    said = check_page(write_report([tmp_path / "out"], tmp_path / "report"))
    assert f"1 run (1 fixed), {text} of learning summed over runs." in said
    assert "Data: not named. Versions: not recorded." in said
    assert "Note: so <so>." in said


@pytest.mark.usefixtures("undrawn")
def test_claims_on_the_page_carry_their_verdicts(tmp_path):
    out = tmp_path / "out"
    for name, level in (("two-point all", 0.8), ("two-point active", 0.7), ("two-point score", 0.9)):
        for seed, noise in zip(SEEDS, (-0.001, -0.001, 0.002), strict=True):
            write_run(out, name, "tuned", seed, level + noise)
    path = write_report([out], tmp_path / "report")
    html = folded(path)
    assert (
        '<div class="claim bad"><p><strong>ACTIVE ends better on test than ALL, for every rule</strong>'
        '<span class="note">(paper Sec. 5, chunking; supplement, text classification)</span></p>'
        '<p><span class="verdict">does not hold</span>: the other way round for two-point active against two-point all;'
    ) in html
    assert '<div class="claim good"><p><strong>SCORE ends better on test than ACTIVE, for every rule' in html
    assert '<div class="claim"><p><strong>two-point &gt; baseline &gt; comparison on test' in html
    rows = [cells for _, cells in parsed(path).rows if len(cells) == 12]
    assert rows[0] == [
        *("better, says the claim", "mean ± sd", "than", "mean ± sd", "lead", "95% interval", "p"),
        *("could have been seen", "over test inputs", "settings", "", ""),
    ]
    figures = next(cells for cells in rows if cells[0] == "two-point active" and cells[-2] == "does not hold")
    assert figures[:6] == [
        *(
            "two-point active",
            "0.7000 ± 0.0017",
            "two-point all",
            "0.8000 ± 0.0017",
            "-0.1000",
            "-0.1000 to -0.1000 paired",
        )
    ]
    assert figures[7:] == ["-", "-", "tuned", "does not hold", ""]
    assert "These runs recorded no counts by test input" in html
    assert "<summary>1 comparison of test F1</summary>" in html


def test_names_cannot_break_the_page(tmp_path):
    out = tmp_path / "out"
    name = "two-point <script>alert(1)</script> $x|&\"' 名"
    for seed in (3, 8):
        write_run(out, name, "tuned", seed, 0.8, settings=settings_of("two-point active", "tuned", seed))
    (out / "experiment.toml").write_text("broken <b> = [")
    text = check_page(write_report([out], tmp_path / "report"))
    assert "<script>alert(1)</script>" in text
    assert rows(tmp_path / "report" / "table.csv")[0]["learner"] == name
    line = next(line for line in (tmp_path / "report" / "table.md").read_text("utf-8").splitlines() if "alert" in line)
    assert line.replace("\\|", "").count("|") == 9  # eight columns: the paper has no figure for it


def test_an_inline_figure_keeps_its_ids_to_itself():
    svg = (
        '<?xml version="1.0"?>\n<svg xmlns:xlink="http://x" xmlns="http://y" width="504pt" height="288pt">'
        '<metadata>\n<a id="m"/>\n</metadata><g id="p1"/><use xlink:href="#p1" clip-path="url(#c1)" height="3"/></svg>'
    )
    assert Figure("loss-x", "", "", "", svg).inline_svg() == (
        '<svg aria-label="" role="img" data-height="288pt"><g id="loss-x-p1"/>'
        '<use href="#loss-x-p1" clip-path="url(#loss-x-c1)" height="3"/></svg>'
    )


# What the figures show


def x_of(line):
    return np.asarray(line.get_xdata(), float).tolist()


def y_of(line):
    return np.asarray(line.get_ydata(), float)


def test_curves_are_means_over_seeds_with_their_standard_errors(out, drawings):
    draw_figures(read_experiment(out), Path(), "x")
    check_curves(drawings["loss-x"], "average cumulative loss\n(1 - F1)", loss_at, "fixed")
    check_curves(drawings["loss-tuned-x"], "average cumulative loss\n(1 - F1)", loss_at, "tuned")
    check_curves(drawings["dev-x"], "dev F1", dev_at, "fixed")
    check_curves(drawings["dev-tuned-x"], "dev F1", dev_at, "tuned")


def check_curves(drawing, label, value, phase):
    """A panel for ALL and one for ACTIVE, and first-order in both."""
    above, axes = drawing.axes
    steps = STEPS[1:]  # 0 has no place on a log axis
    values = np.array([[value(step, phase, seed) for step in steps] for seed in SEEDS])
    assert len(axes.lines) == len(axes.collections) == len(above.lines) == 2
    for line, band in zip([*above.lines, *axes.lines], [*above.collections, *axes.collections], strict=True):
        assert x_of(line) == list(steps)
        np.testing.assert_allclose(y_of(line), values.mean(axis=0))
        assert not np.allclose(values.mean(axis=0), np.median(values, axis=0))
        corners = band.get_paths()[0].vertices
        for i, step in enumerate(steps):
            edges = corners[corners[:, 0] == step][:, 1]
            middle, error = values[:, i].mean(), values[:, i].std(ddof=1) / np.sqrt(len(SEEDS))
            band_ends = np.clip([middle - error, middle + error], 0, 1)  # no loss and no metric is beyond
            np.testing.assert_allclose([edges.min(), edges.max()], band_ends)
    assert (axes.get_ylabel(), axes.get_xlabel(), axes.get_xscale()) == (label, "iterations (log scale)", "log")
    assert (above.get_ylim(), above.get_xlim()) == (axes.get_ylim(), axes.get_xlim())
    assert [panel.texts[0].get_text() for panel in drawing.axes] == ["ALL", "ACTIVE"]
    assert above.get_title(loc="left") == f"Noun-phrase chunking, {phase} settings"
    assert axes.xaxis.get_major_formatter()(300_000) == "300k"


def test_curves_against_losses_count_two_for_a_step_that_compares(out, drawings):
    """Supervised learning asks for none, and is not there."""
    shown = read_experiment(out)
    draw_figures(shown, Path(), "chunking")
    above, axes = drawings["asked-chunking"].axes
    names = [item.name for item in shown.learners]
    assert names == ["two-point all", "two-point active", "first-order"]
    assert [[x_of(line)[-1] for line in panel.lines] for panel in (above, axes)] == [[2 * STEPS[-1], STEPS[-1]]] * 2
    assert axes.get_xlabel() == "losses asked for (log scale)"
    rules = ("two-point", "symmetric", "comparison", "preference", "baseline", "first-order", "pairwise")
    assert [losses_a_step(rule) for rule in rules] == [2, 2, 2, 2, 1, 1, 2]
    assert [losses_a_step(rule) for rule in ("supervised", "part", "unheard of")] == [None] * 3


@pytest.mark.parametrize("phase", ["undivided", "speed"])
@pytest.mark.usefixtures("undrawn")
def test_a_phase_alone_is_a_report(tmp_path, phase):
    out = tmp_path / "out"
    for seed in SEEDS:
        write_run(out, "two-point active", phase, seed, 0.7)
    write_report([out], tmp_path / "report")
    (row,) = rows(tmp_path / "report" / "table.csv")
    assert (row["phase"], float(row["test_mean"])) == (phase, pytest.approx(0.7))
    assert "†" not in (tmp_path / "report" / "table.md").read_text("utf-8")


def test_what_hardly_learns_is_named_and_not_drawn(out, drawings):
    for seed in SEEDS:
        folder = write_run(out, "comparison all", "fixed", seed, 0.1)
        flat = "".join(f"{step},{0.9 - step / 1e5!r},0.1\n" for step in STEPS)
        (folder / "curve.csv").write_text("iterations,average_loss,dev\n" + flat)
    figures = {figure.name: figure for figure in draw_figures(read_experiment(out), Path(), "x")}
    assert "Not drawn, as they hardly learn: comparison all." in figures["loss-x"].caption
    assert "hardly" not in figures["dev-x"].caption
    assert [len(axes.lines) for axes in drawings["loss-x"].axes] == [2, 2]
    assert [len(axes.lines) for axes in drawings["dev-x"].axes] == [3, 2]


def test_what_has_learned_before_the_first_look_is_drawn(out, drawings):
    for seed in SEEDS:
        folder = write_run(out, "supervised", "fixed", seed, 0.1)
        early = "".join(f"{step},{0.01 if step else 1.0!r},0.9\n" for step in STEPS)
        (folder / "curve.csv").write_text("iterations,average_loss,dev\n" + early)
    figures = {figure.name: figure for figure in draw_figures(read_experiment(out), Path(), "x")}
    assert "hardly" not in figures["loss-x"].caption
    assert [len(axes.lines) for axes in drawings["loss-x"].axes] == [3, 3]


def test_seeds_that_chose_h_and_mu_are_named_where_results_are_of_them(out):
    assert not [gap for gap in read_experiment(out).gaps if "chose" in gap]
    found = json.loads((out / "tuning.json").read_text())
    found["first-order"]["seeds"] = [SEEDS[1], 90]
    (out / "tuning.json").write_text(json.dumps(found))
    text = f"Seeds {SEEDS[1]} chose h and mu and are in tuned results, too, which may be too good."
    assert text in read_experiment(out).gaps
    del found["first-order"]["seeds"]
    (out / "tuning.json").write_text(json.dumps(found))
    text = "Which seeds chose h and mu was not recorded: tuned results may be of the same ones, and so too good."
    assert text in read_experiment(out).gaps


def named(name, rule, perturb):
    return LearnerRuns(name, rule, perturb, True, {})


def test_styles_tell_rules_perturbations_and_variants_apart():
    shown = [named(f"two-point {perturb}", "two-point", perturb) for perturb in ("all", "active", "score")]
    shown += [named("first-order", "first-order", None), named("supervised", "supervised", None)]
    shown += [named("two-point all adagrad", "two-point", "all"), named("odd x", "odd", "x")]
    styles = [line_style(item, shown) for item in shown]
    dashes = ["-", (0, (5, 2)), (0, (4, 1.2, 1, 1.2)), (0, (1, 1)), (0, (1, 2.5)), "-", "-"]
    assert [style["linestyle"] for style in styles] == dashes
    blue = ("#0072B2", "o")
    assert [(style["color"], style["marker"]) for style in styles] == [
        *(blue, blue, blue, ("#000000", "*"), ("#7F7F7F", "P"), blue, ("#999933", "X"))
    ]
    assert [style["markerfacecolor"] for style in styles][4:] == ["#7F7F7F", "white", "#999933"]


def test_a_single_seed_of_few_points_has_no_band_and_no_log_axis(tmp_path, drawings):
    out = tmp_path / "out"
    folder = write_run(out, "two-point active", "fixed", 3, float("nan"))
    (folder / "curve.csv").write_text("iterations,average_loss,dev\n0,0.9,\n10,0.5,\n20,0.4,\n30,0.3,\n")
    record = (folder / "run.json").read_text()
    (folder / "run.json").write_text(record.replace('"n_active": 50.0', '"n_active": 12345'))
    (figure,) = draw_figures(read_experiment(out), Path(), "x")
    (axes,) = drawings["loss-x"].axes
    assert not axes.collections
    assert (axes.get_xscale(), axes.get_xlabel()) == ("linear", "iterations")
    assert (x_of(axes.lines[0]), y_of(axes.lines[0]).tolist()) == ([10, 20, 30], [0.5, 0.4, 0.3])
    assert "fixed settings: a single seed, so no spread;" in figure.caption
    assert figure.caption.endswith(" Every feature is active in every input here, so ACTIVE is ALL.")
    low, high = axes.get_ylim()
    assert (low, high) == (pytest.approx(0.28), pytest.approx(0.52))


def test_test_results_are_dots_of_seeds_a_mean_and_the_papers_figure(out, drawings):
    experiment = read_experiment(out)
    figure = draw_figures(experiment, Path(), "x")[-1]
    (axes,) = drawings["test-x"].axes
    assert len(axes.lines) == 9
    places = [0.0, 1.6, 3.2]
    for i, (name, values) in enumerate(TEST.items()):
        seeds, mean, paper = axes.lines[3 * i : 3 * i + 3]
        assert x_of(seeds) == [values[0], values[2], values[1]]  # by seed
        assert x_of(mean) == [pytest.approx(statistics.fmean(values))]
        assert (x_of(paper), paper.get_marker()) == ([PAPER[name]], "|")
        assert y_of(mean).tolist() == y_of(paper).tolist() == pytest.approx([places[i]])
    assert [text.get_text() for text in axes.texts] == ["0.8300", "0.8910", "0.9200"]
    assert [text.get_text() for text in axes.get_yticklabels()] == list(TEST)
    assert axes.get_xlabel() == "test F1"
    assert axes.get_title(loc="left") == "Noun-phrase chunking, tuned settings"
    (legend,) = drawings["test-x"].legends
    assert [text.get_text() for text in legend.get_texts()] == ["a seed", "mean", "paper"]
    assert figure.caption == (
        "Test F1 by learner: small dots are seeds, the large mark is their mean. | is the paper's figure."
    )
    assert figure.title == "Test F1 by learner"


# Mistakes


def test_nothing_to_report_on(tmp_path):
    for name in ("empty", "bare"):
        (tmp_path / name).mkdir()
    with pytest.raises(UsageError) as caught:
        write_report([tmp_path / "empty", tmp_path / "bare"], tmp_path / "report")
    assert str(caught.value) == (
        f"{tmp_path / 'empty'}, {tmp_path / 'bare'}: no finished runs to report on; "
        "let 'sparsezo reproduce' finish some first"
    )
    with pytest.raises(UsageError, match="no such folder"):
        write_report([tmp_path / "nowhere"], tmp_path / "report")
    with pytest.raises(UsageError, match="a report needs at least one folder of results"):
        write_report([], tmp_path / "report")
    assert not (tmp_path / "report").exists()


def test_a_folder_that_cannot_be_made(out, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SparsezoError) as caught:
        write_report([out], tmp_path / "file")
    assert str(caught.value) == f"{tmp_path / 'file'}: cannot be made (Not a directory); name another folder"


# The write-up of scaling

POINTS = (Point(8, 4, 2), Point(16, 4, 2))
PANELS = tuple(Panel(name, f"{name} grows", f"fixed {name}", "n", "n", POINTS) for name in "abc")
COSTS = {  # iterations over seeds, at n = 8 and at n = 16
    "all": ((40.0, 50.0, 90.0), (400.0, 410.0, 480.0)),
    "active": ((30.0, 31.0, 50.0), (70.0, 72.0, 80.0)),
    "score": ((20.0, 22.0, 27.0), (40.0, 45.0, 53.0)),
}


def scaled(seeds=3, edges=()):
    found = {
        (point, perturb): Measured(point, perturb, np.array(costs[i][:seeds]), 0.5 + i, (i, perturb) in edges)
        for perturb, costs in COSTS.items()
        for i, point in enumerate(POINTS)
    }
    return Scaling(False, seeds, PANELS, found)


@pytest.fixture
def written(monkeypatch, tmp_path, drawings):
    monkeypatch.setattr(scaling_report, "measure_all", lambda quick, seeds, say: scaled(seeds))
    path = scaling_report.run_scaling(tmp_path / "out", command="sparsezo <scaling>")
    assert path == tmp_path / "out" / "report.html"
    return path.parent


def test_scaling_csv_has_means_and_deviations_of_iterations_and_passes(written):
    table = rows(written / "scaling.csv")
    assert [(row["panel"], row["perturb"], row["n"]) for row in table] == [
        (panel, perturb, n) for panel in "abc" for perturb in ("all", "active", "score") for n in ("8", "16")
    ]
    row = table[1]
    inputs = POINTS[1].inputs
    costs = COSTS["all"][1]
    assert (row["n_bar"], row["r_bar"], row["inputs"], row["h"], row["seeds"]) == ("4", "2", str(inputs), "1.5", "3")
    assert float(row["iterations"]) == pytest.approx(430.0)  # the median is 410
    assert float(row["iterations_sd"]) == pytest.approx(statistics.stdev(costs))
    assert float(row["passes"]) == pytest.approx(430.0 / inputs)
    assert float(row["passes_sd"]) == pytest.approx(statistics.stdev(costs) / inputs)
    single = next(csv.DictReader(io.StringIO(csv_text(scaling_report._records(scaled(1))))))
    assert (single["iterations"], single["iterations_sd"], single["passes_sd"]) == ("40.0", "", "")


def slope(perturb):
    """Of passes, between two points twice as far apart."""
    first, second = (statistics.fmean(costs) for costs in COSTS[perturb])
    return round(math.log2(second / first) - 1, 2)


def test_scaling_in_words(written):
    text = (written / "scaling.md").read_text("utf-8")
    assert text.startswith("# What drives the cost\n\n![Cost against n, n̄ and r̄](figures/scaling.png)\n\n")
    all_, active, score = (slope(perturb) for perturb in COSTS)
    assert f"When n grows, all takes n^{all_:.2f} passes, active n^{active:.2f} and score n^{score:.2f}." in text
    expected = round(math.log2(18 / 10), 2)
    assert f"| a grows at fixed a | {all_:.2f} ({expected:.2f}) | {active:.2f} (0.00) | {score:.2f} (0.00) |" in text
    assert "| exponent of passes (theory) | all | active | score |\n|---|--:|--:|--:|\n" in text
    off = "; ".join(f"all where {name} grows ({all_:.2f} for {expected:.2f})" for name in "abc")
    assert f"Off by more than 0.25: {off}." in text
    assert "\nMade by `sparsezo <scaling>`.\n" in text
    assert "|seeds:0,1,2|version:" in text
    page = (written / "report.html").read_text("utf-8")
    assert "<pre>sparsezo &lt;scaling&gt;</pre>" in page
    assert "<title>sparsezo: what drives the cost</title>" in page
    assert "is an end of the grid" not in text


def test_points_at_an_end_of_the_grid_are_counted():
    edges = {(0, "all"), (1, "score")}
    assert scaling_report._paragraph(scaled(edges=edges)).endswith(" At 2 points the best h is an end of the grid.")


def test_exponents_near_theory_agree(monkeypatch):
    monkeypatch.setitem(COSTS, "all", ((40.0, 50.0, 90.0), (200.0, 210.0, 280.0)))
    assert "All nine agree with them within 0.25." in scaling_report._paragraph(scaled())
