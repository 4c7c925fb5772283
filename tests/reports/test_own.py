"""Reports of one's own experiment: its own title, no empty claims, spreads from three seeds on, damage named."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from sparsezo.cli.reproduce import run_reproduce
from sparsezo.experiments.plan import parse_experiment
from sparsezo.experiments.records import write_curve, write_record
from sparsezo.experiments.reproduce import PLAN_FILE
from sparsezo.experiments.runs import fixed_runs
from sparsezo.reports import report
from sparsezo.reports.figures.curves import _fitting, _legend_groups, _widths, curve_figures
from sparsezo.reports.figures.sheet import shortened
from sparsezo.reports.reading import read_experiment
from sparsezo.reports.report import write_report
from sparsezo.storage.sealed import read_sealed, seal_toml, write_sealed

pytest.importorskip("matplotlib")

PLAN = """
name = "mine"
title = "What a $mood$ costs <b>"
task = "chunking"
iterations = 100
seeds = SEEDS
[data]
train = "train.txt"
dev = 10
[fixed]
step = "constant"
[[learner]]
rule = "two-point"
perturb = "active"
[[learner]]
rule = "comparison"
feedback = "flip:0.1"
"""


def write_results(out: Path, text: str, test: bool = True) -> Path:
    """What a finished experiment leaves, with figures of our own."""
    plan = parse_experiment(text, "plan")
    out.mkdir(parents=True)
    (out / PLAN_FILE).write_text(seal_toml(plan.to_toml()), "utf-8")
    for run in fixed_runs(plan, "data"):
        folder = run.folder(out)
        folder.mkdir(parents=True)
        seed, more = run.settings.seed, 0.1 * (run.settings.rule == "two-point")
        write_curve(folder, [(0, float("nan"), 0.1), *((n, 1 - n / 200, 0.5 + n / 1000) for n in (10, 50, 100))])
        result = {"metric": "f1", "dev": 0.5 + more + seed / 100, "test": 0.4 + more + seed / 100 if test else None}
        fields = {"experiment": run.experiment, "task": run.task, "learner": run.learner, "phase": run.phase}
        fields |= {"seed": seed, "settings": run.settings.as_dict(), "iterations": 100, "data": run.data}
        write_record(folder, {**fields, "result": {**result, "average_loss": 0.5}, "hash": run.hash})
    return out


@pytest.fixture
def undrawn(monkeypatch):
    monkeypatch.setattr(report, "draw_figures", lambda experiment, folder, slug: [])


def page_of(out: Path, **options) -> str:
    return write_report([write_results(out / "r", **options)], out / "report").read_text("utf-8")


@pytest.mark.usefixtures("undrawn")
def test_the_title_is_its_own(tmp_path):
    page = page_of(tmp_path, text=PLAN.replace("SEEDS", "3"))
    assert "<title>What a $mood$ costs &lt;b&gt;</title>" in page
    assert re.findall(r"<h[12]>(.*?)</h[12]>", page) == ["What a $mood$ costs &lt;b&gt;", "Summary", "Results"]
    assert "Noun-phrase chunking, learned from feedback on outputs" in page
    assert "beside the paper" not in page
    assert (tmp_path / "report/table.md").read_text("utf-8").startswith("# What a $mood$ costs <b>\n\n## What a $mood$")


@pytest.mark.usefixtures("undrawn")
def test_claims_without_anything_to_compare_are_not_listed(tmp_path):
    page = page_of(tmp_path, text=PLAN.replace("SEEDS", "3"))
    assert "claim" not in page.replace(".claim", "")
    assert "laims" not in (tmp_path / "report/table.md").read_text("utf-8")
    more = PLAN.replace("SEEDS", "3") + '[[learner]]\nrule = "two-point"\nperturb = "all"\n'
    out = write_results(tmp_path / "more", more)
    page = write_report([out], tmp_path / "report").read_text("utf-8")
    assert re.findall(r'<div class="claim.*?>\n<p><strong>(.*?)</strong>', page) == [
        "ACTIVE learns faster than ALL, for every rule",
        "ACTIVE ends better on test than ALL, for every rule",
    ]
    assert "Of 2 claims checked, " in page
    assert "there is nothing to compare" not in page


@pytest.mark.usefixtures("undrawn")
def test_the_papers_own_lists_all_its_claims(tmp_path):
    text = PLAN.replace("SEEDS", "3").replace('"mine"', '"chunking"').replace('title = "What a $mood$ costs <b>"\n', "")
    page = page_of(tmp_path, text=text)
    assert "<title>sparsezo: results beside the paper&#39;s</title>" in page
    assert page.count('<div class="claim') == 9
    assert "there is nothing to compare" in page


@pytest.mark.parametrize(
    ("seeds", "cell", "words"),
    [
        ("1", "<td>0.5000 (one run)</td>", "fixed settings: a single seed, so no spread. "),
        ("2", "<td>0.5050 (two runs)</td>", "fixed settings: mean over two seeds, too few for a spread. "),
        ("3", "<td>0.5100 ± 0.0100</td>", "fixed settings: mean over seeds, 2 standard deviations filled. "),
    ],
)
def test_bands_from_three_seeds_on(tmp_path, seeds, cell, words, monkeypatch):
    from matplotlib.axes import Axes

    bands = []
    monkeypatch.setattr(Axes, "fill_between", lambda *_, **__: bands.append(1))
    page = page_of(tmp_path, text=PLAN.replace("SEEDS", seeds))
    assert cell in page
    assert words in page
    assert bool(bands) == (seeds == "3")
    table = page[page.index("<table>") : page.index("</table>")]
    assert ("±" in table) == (seeds == "3")


@pytest.mark.usefixtures("undrawn")
def test_without_a_test_file_dev_decides(tmp_path):
    page = page_of(tmp_path, text=PLAN.replace("SEEDS", "3"), test=False)
    assert (
        "two-point active has the best mean of 2 zeroth-order learners, dev F1 0.6100 ± 0.0100 (3 seeds, fixed" in page
    )
    assert "<h3>Dev results</h3>" in page
    assert "test F1" not in page
    assert "Missing or odd" not in page


def test_a_learner_without_an_exact_twin_is_drawn(tmp_path):
    """Although another has exact feedback."""
    experiment = read_experiment(write_results(tmp_path / "r", PLAN.replace("SEEDS", "1")))
    assert [item.name for item in experiment.drawn] == ["two-point active", "comparison score flip:0.1"]
    text = PLAN.replace("SEEDS", "1").replace('"flip:0.1"', '["exact", "flip:0.1"]')
    experiment = read_experiment(write_results(tmp_path / "twin", text))
    assert [item.name for item in experiment.drawn] == ["two-point active", "comparison score"]


@pytest.mark.usefixtures("undrawn")
def test_what_is_not_known_is_an_empty_cell_of_the_curves(tmp_path):
    page_of(tmp_path, text=PLAN.replace("SEEDS", "1"))
    with open(tmp_path / "report/curves.csv", encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row["iterations"] == "0"]
    assert [(row["average_loss"], row["dev"]) for row in rows] == [("", "0.1")] * 2


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("name", ["run.json", "curve.csv", "experiment.toml", "tuning.json", "bounds.json"])
def test_one_flipped_bit_is_named(tmp_path, name):
    """In whichever place: not one of them goes by in silence, and none stops the report."""
    out = write_results(tmp_path / "r", PLAN.replace("SEEDS", "3"))
    for each in ("tuning.json", "bounds.json"):
        write_sealed(out / each, {"two-point active": {"chosen": {"h": 0.1, "mu": 0.2}, "note": "x"}})
    path = next(iter(sorted(out.glob(f"runs/*/{name}"))), out / name)
    whole = path.read_bytes()
    for place in range(0, len(whole), 7):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        experiment = read_experiment(out)
        named = any(path.name in gap for gap in experiment.gaps)
        assert named, place


def test_names_are_cut_in_the_middle():
    """Where they are long they differ at their ends."""
    assert shortened("two-point score") == "two-point score"
    names = [f"two-point score adagrad annealed 0.125 rating:5,{k},0.1" for k in (0.1, 0.3)]
    cut = [shortened(name, 30) for name in names]
    assert all(len(name) <= 30 for name in cut)
    assert cut[0] != cut[1]
    assert cut[0].startswith("two-point…")


def test_the_columns_of_a_legend_have_their_room(tmp_path):
    long = 'feedback = "rating:5,0.333333,0.111111"\n'
    learners = "".join(
        f'[[learner]]\nrule = "symmetric"\nperturb = "{perturb}"\n{long}' for perturb in ("all", "active", "score")
    )
    experiment = read_experiment(write_results(tmp_path / "r", PLAN.replace("SEEDS", "1") + learners))
    groups = _legend_groups(experiment.drawn)
    assert sum(_widths(groups, 34)) > 120 >= sum(_widths(groups, _fitting(groups)))
    assert list(curve_figures(experiment, tmp_path, "x"))


def test_a_damaged_run_is_done_again_and_only_it(tmp_path, monkeypatch, capsys):
    """From the command line: named in the report, done again by the same command, and nobody would know."""
    from sparsezo.tasks.chunking import making

    monkeypatch.setattr(making, "_PARTS", (40, 20, 20))
    plan, out = tmp_path / "mine.toml", tmp_path / "out"
    plan.write_text(PLAN.replace("SEEDS", "3"))
    run_reproduce(str(plan), "generated", processes=1, out=out)
    records = sorted(out.glob("runs/*/run.json"))
    stamps = {path: path.stat().st_mtime_ns for path in records}
    wholes = {path: read_sealed(path) for path in records}
    records[0].write_bytes(records[0].read_bytes().replace(b'"dev": 0', b'"dev": 1'))
    (records[1].parent / "curve.csv").write_bytes(b"")
    (out / PLAN_FILE).write_text((out / PLAN_FILE).read_text("utf-8").replace("100", "1000"), "utf-8")
    gaps = read_experiment(out).gaps
    assert len([gap for gap in gaps if "is damaged" in gap]) == 3
    capsys.readouterr()
    run_reproduce(str(plan), "generated", processes=1, out=out)
    said = capsys.readouterr().err
    for path in (records[0], records[1].parent / "curve.csv"):
        assert f"{path}: is damaged (" in said
    assert f"{out / PLAN_FILE}: is damaged (it does not have the sum that it was written with); it is written" in said
    assert read_experiment(out).gaps == ()
    assert [path for path in records if path.stat().st_mtime_ns != stamps[path]] == records[:2]
    for path in records:
        again = read_sealed(path)
        assert {k: v for k, v in again.items() if k != "result"} == {
            k: v for k, v in wholes[path].items() if k != "result"
        }
        assert again["result"]["dev"] == wholes[path]["result"]["dev"]
