"""Reports of one's own experiment: its own title, no empty claims, spreads from three seeds on, damage named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import reported

from sparsezo.cli.reproduce import run_reproduce
from sparsezo.storage.checksummed import read_checksummed
from sparsezo.study.plan import parse_experiment
from sparsezo.study.reports.figures import curve_figures, legend_names
from sparsezo.study.reports.reading import read_experiment
from sparsezo.study.reports.report import write_report
from sparsezo.study.reproduce import PLAN_FILE

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

    def result(run):
        more = 0.1 * (run.settings.rule == "two-point") + run.settings.seed / 100
        return {"metric": "f1", "dev": 0.5 + more, "test": 0.4 + more if test else None, "average_loss": 0.5}

    points = [(0, float("nan"), 0.1), *((n, 1 - n / 200, 0.5 + n / 1000) for n in (10, 50, 100))]
    return reported.write_results(out, parse_experiment(text, "plan"), lambda run: points, result)


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
        "ACTIVE learns faster than ALL, for every rule, by the paper&#39;s measure, fixed settings",
        "ACTIVE ends better on test than ALL, for every rule",
    ]
    assert "Of 2 claims checked, " in page
    assert "there is nothing to compare" not in page


@pytest.mark.usefixtures("undrawn")
def test_the_papers_own_lists_all_its_claims(tmp_path):
    text = PLAN.replace("SEEDS", "3").replace('"mine"', '"chunking"').replace('title = "What a $mood$ costs <b>"\n', "")
    page = page_of(tmp_path, text=text)
    assert "<title>sparsezo: results beside the paper&#39;s</title>" in page
    assert page.count('<div class="claim') == 0
    assert "iterations where the paper&#39;s have 4M: nothing here is a verdict on its claims." in page
    page = page_of(tmp_path / "whole", text=re.sub("iterations = [0-9_]+", "iterations = 4_000_000", text))
    assert page.count('<div class="claim') == 10
    assert "there is nothing to compare" in page


@pytest.mark.usefixtures("undrawn")
def test_without_a_test_file_dev_decides(tmp_path):
    page = page_of(tmp_path, text=PLAN.replace("SEEDS", "3"), test=False)
    assert (
        "two-point active has the best mean of 2 zeroth-order learners, dev F1 0.6100 ± 0.0100 (3 seeds, fixed" in page
    )
    assert "<h3>Dev results</h3>" in page
    assert "test F1" not in page
    assert "Missing or odd" not in page


def test_a_legend_has_each_kind_once_and_room_for_its_whole_name(tmp_path):
    long = 'feedback = "rating:5,0.333333,0.111111"\n'
    learners = "".join(
        f'[[learner]]\nrule = "symmetric"\nperturb = "{perturb}"\n{long}' for perturb in ("all", "active", "score")
    )
    experiment = read_experiment(write_results(tmp_path / "r", PLAN.replace("SEEDS", "1") + learners))
    names = legend_names(experiment.drawn)
    assert "symmetric rating:5,0.333333,0.111111" in names
    assert len(names) < len(experiment.drawn)
    assert not any("…" in name for name in names)
    assert all(16 + len(name) <= 55 for name in names)  # letters, with a line before each name; two fit
    assert list(curve_figures(experiment, tmp_path, "x"))


def test_a_damaged_run_is_done_again_and_only_it(tmp_path, monkeypatch, capsys):
    """From the command line: named in the report, done again by the same command, and nobody would know."""
    from sparsezo.tasks.chunking import synthetic

    monkeypatch.setattr(synthetic, "_PARTS", (40, 20, 20))
    plan, out = tmp_path / "mine.toml", tmp_path / "out"
    plan.write_text(PLAN.replace("SEEDS", "3"))
    run_reproduce(str(plan), "generated", processes=1, out=out)
    records = sorted(out.glob("runs/*/run.json"))
    stamps = {path: path.stat().st_mtime_ns for path in records}
    wholes = {path: read_checksummed(path) for path in records}
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
        again = read_checksummed(path)
        assert {k: v for k, v in again.items() if k != "result"} == {
            k: v for k, v in wholes[path].items() if k != "result"
        }
        assert again["result"]["dev"] == wholes[path]["result"]["dev"]
