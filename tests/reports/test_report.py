"""The report on results made for the purpose: figures of the table, a page that stands alone, and what is missing."""

from __future__ import annotations

import builtins
import csv
import json
import statistics
from html.parser import HTMLParser

import pytest

from sparsezo.errors import DataError, UsageError
from sparsezo.reports.reading import read_experiment
from sparsezo.reports.report import write_report
from sparsezo.reports.tables import about_text, count_text, make_table, signature

pytest.importorskip("matplotlib")

VOID = {"meta", "br", "link", "img", "hr", "input"}
TEST = {
    "two-point all": (0.84, 0.85, 0.83),
    "two-point active": (0.888, 0.89, 0.892),
    "first-order": (0.90, 0.91, 0.92),
}
PAPER = {"two-point all": 0.841, "two-point active": 0.888, "first-order": 0.908}


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


def write_run(out, name, phase, seed, test, **changes):
    rerank = changes.pop("task", "chunking") == "rerank"
    folder = out / "runs" / f"{name.replace(' ', '-').replace('<', '').replace('/', '')}-{phase}-{seed}"
    folder.mkdir(parents=True)
    result = {"metric": "bleu" if rerank else "f1", "n": 1000, "n_active": 50.0, "n_score": 20.0, "seconds": 12.0}
    result |= {"average_loss": 0.2 + seed / 100, "best_iteration": 900, "dev": 0.9, "test": test}
    result |= {"us_per_iteration": 12.0, "update_fraction": 0.25, "version": "0.1.0"}
    record = {
        "experiment": "smt" if rerank else "chunking",
        "task": "rerank" if rerank else "chunking",
        "learner": name,
        "phase": phase,
        "seed": seed,
        "settings": settings_of(name, phase, seed),
        "iterations": 1000,
        "result": result,
        "test_report": {"bleu": test, "length_ratio": 1.0 + seed / 10, "signature": "nrefs:1|tok:none"}
        if rerank
        else None,
        "versions": {"sparsezo": "0.1.0", "numpy": "2.0", "numba": "0.61", "python": "3.11"},
        "hash": folder.name,
        "paper": PAPER.get(name),
    }
    (folder / "run.json").write_text(json.dumps(record | changes))
    lines = [f"{step},{1 / (1 + step / 100) + seed / 100},{0.5 + step / 4000}" for step in range(0, 1001, 100)]
    (folder / "curve.csv").write_text("\n".join(["iterations,average_loss,dev", *lines, ""]))
    return folder


def toml(names, seeds="[0, 1, 2]", task="chunking"):
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
            for seed, test in enumerate(values):
                write_run(folder, name, phase, seed, test if phase == "tuned" else test - 0.05)
    (folder / "experiment.toml").write_text(toml(TEST))
    trial = {"h": 0.003, "mu": 0.1, "dev": 0.9, "iterations": 100}
    failed = {"h": 1.0, "mu": 0.1, "dev": None, "iterations": 100}
    entry = {"trials": [trial, failed], "chosen": {"h": 0.003, "mu": 0.1}, "widened": True, "note": "on the edge"}
    (folder / "tuning.json").write_text(json.dumps({"two-point active": entry}))
    return folder


class Checker(HTMLParser):
    """Every tag is closed in its place, every id is there once, nothing is fetched."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.links, self.text = [], [], [], []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value)
            if name in ("src", "href", "xlink:href", "srcset", "data"):
                self.links.append(value)
        assert tag not in ("script", "link", "img", "iframe")

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def check_page(path):
    page = path.read_text(encoding="utf-8")
    checker = Checker()
    checker.feed(page)
    checker.close()
    assert not checker.open
    assert len(checker.ids) == len(set(checker.ids))
    assert all(link.startswith("#") and link[1:] in checker.ids for link in checker.links)
    assert "http://" not in page
    assert "https://" not in page
    assert "url(http" not in page
    assert "@import" not in page
    return " ".join(" ".join(checker.text).split())


def rows(path):
    with open(path, encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_everything_is_written_and_the_page_stands_alone(out, tmp_path):
    target = tmp_path / "report"
    path = write_report([out], target, command="sparsezo reproduce chunking <here>")
    assert path == target / "report.html"
    written = sorted(str(file.relative_to(target)) for file in target.rglob("*") if file.is_file())
    kinds = ("dev", "dev-tuned", "loss", "loss-tuned", "test")
    figures = [f"figures/{kind}-chunking.{ending}" for kind in kinds for ending in ("png", "svg")]
    assert written == sorted(["curves.csv", *figures, "report.html", "table.csv", "table.md"])
    text = check_page(path)
    assert "two-point active is the best of 2 zeroth-order learners, test F1 0.8900 ± 0.0020" in text
    assert "sparsezo reproduce chunking <here>" in text
    assert "grid widened, on the edge" in text
    assert "widened by a decade, for two-point active." in text
    assert path.read_text("utf-8").count("<svg") == 5
    assert (target / "figures/loss-chunking.png").read_bytes().startswith(b"\x89PNG")


def test_figures_of_the_table_are_exact(out, tmp_path):
    write_report([out], tmp_path / "report")
    table = {row["learner"]: row for row in rows(tmp_path / "report" / "table.csv")}
    assert list(table) == ["two-point all", "two-point active", "first-order"]
    for name, values in TEST.items():
        row = table[name]
        assert float(row["test_mean"]) == pytest.approx(statistics.fmean(values), abs=1e-12)
        assert float(row["test_sd"]) == pytest.approx(statistics.stdev(values), abs=1e-12)
        assert float(row["difference"]) == pytest.approx(statistics.fmean(values) - PAPER[name], abs=1e-12)
        assert float(row["average_loss_mean"]) == pytest.approx(0.21)
        assert (row["phase"], row["seeds"], row["h"]) == ("tuned", "0 1 2", "0.003")
    assert [row["best_zeroth_order"] for row in table.values()] == ["0", "1", "0"]
    markdown = (tmp_path / "report" / "table.md").read_text("utf-8")
    assert (
        "| **two-point active** | **0.8900 ± 0.0020** | 0.9000 ± 0.0000 | 0.888 | +0.0020 | 0.003 | 0.1 |" in markdown
    )
    assert "ACTIVE (paper: SPARSE)" in markdown


def test_curves_are_all_there_in_long_form(out, tmp_path):
    write_report([out], tmp_path / "report")
    curves = rows(tmp_path / "report" / "curves.csv")
    assert len(curves) == 3 * 2 * 3 * 11
    one = [row for row in curves if (row["learner"], row["phase"], row["seed"]) == ("first-order", "fixed", "1")]
    assert [int(row["iterations"]) for row in one] == list(range(0, 1001, 100))
    assert float(one[1]["average_loss"]) == pytest.approx(0.51)


def test_the_same_results_make_the_same_files(out, tmp_path):
    for name in ("one", "two"):
        write_report([out], tmp_path / name)
    for file in (tmp_path / "one").rglob("*.*"):
        assert file.read_bytes() == (tmp_path / "two" / file.relative_to(tmp_path / "one")).read_bytes()


def test_signatures_tell_results_apart(out):
    experiment = read_experiment(out)
    assert signature(experiment, "tuned") == (
        "task:chunking|data:conll2000/train.txt.gz|learners:3|h:tuned|mu:tuned|seeds:0,1,2|iterations:1k|version:0.1.0"
    )
    assert "|h:0.01|mu:0.02|" in signature(experiment, "fixed")
    text = (out / "experiment.toml").read_text()
    (out / "experiment.toml").write_text('origin = "generated"\n' + text)
    assert "|data:generated|" in signature(read_experiment(out), "tuned")


def test_smt_has_length_ratios_and_bounds(tmp_path):
    out = tmp_path / "smt"
    for seed, bleu in enumerate((0.27, 0.272, 0.274)):
        write_run(out, "two-point active", "tuned", seed, bleu, task="rerank")
    bounds = {
        "out-of-domain": {"bleu": 0.25, "length_ratio": 1.01},
        "in-domain": {"bleu": 0.29},
        "oracle": {"bleu": 0.4},
    }
    (out / "bounds.json").write_text(json.dumps(bounds))
    write_report([out], tmp_path / "report")
    table = {row["learner"]: row for row in rows(tmp_path / "report" / "table.csv")}
    assert float(table["two-point active"]["length_ratio_mean"]) == pytest.approx(1.1)
    assert table["out-of-domain"]["test_mean"] == "0.25"
    assert float(table["in-domain"]["difference"]) == pytest.approx(0.006)
    assert table["oracle"]["paper"] == ""
    text = check_page(tmp_path / "report" / "report.html")
    assert "length ratio" in text
    assert "nrefs:1|tok:none" in text
    assert "55% of the way to the in-domain model" in text


def test_several_experiments_in_one_report(out, tmp_path):
    smt = tmp_path / "smt"
    write_run(smt, "two-point active", "tuned", 0, 0.27, task="rerank")
    path = write_report([out, smt, out], tmp_path / "report")
    text = check_page(path)
    assert "Noun-phrase chunking" in text
    assert "Reranking of translations" in text
    assert (tmp_path / "report" / "figures" / "loss-chunking-2.svg").exists()


def test_what_is_missing_is_said(out, tmp_path):
    (out / "experiment.toml").write_text(toml([*TEST, "comparison all"], seeds="4"))
    (out / "runs" / "unfinished").mkdir()
    (out / "runs" / "two-point-active-tuned-1" / "run.json").write_text("{")
    (out / "runs" / "two-point-all-fixed-0" / "curve.csv").unlink()
    for seed in range(3):
        (out / "runs" / f"first-order-tuned-{seed}" / "run.json").unlink()
    (out / "tuning.json").write_text("[]")
    path = write_report([out], tmp_path / "report")
    text = check_page(path)
    for said in (
        "comparison all: no finished run.",
        "4 runs are not finished.",
        "two-point active, tuned: 2 seeds of 4.",
        "runs/two-point-all-fixed-0/curve.csv is missing",
        "two-point-active-tuned-1",
        "† No tuned result: the fixed settings.",
        "No trials of tuning are recorded.",
        "The command was not recorded.",
    ):
        assert said in text
    table = {row["learner"]: row for row in rows(tmp_path / "report" / "table.csv")}
    assert table["first-order"]["phase"] == "fixed"
    assert table["two-point active"]["seeds"] == "0 2"


def test_a_single_seed_without_tuning_and_test(tmp_path):
    out = tmp_path / "out"
    write_run(out, "two-point active", "fixed", 0, None)
    text = check_page(write_report([out], tmp_path / "report"))
    assert "experiment.toml is missing" in text
    assert "There is no tuned phase" in text
    assert "No run has a test result." in text
    assert "no zeroth-order learner has a test result" in text
    assert "a single seed, so no spread" in text
    row = rows(tmp_path / "report" / "table.csv")[0]
    assert (row["test_mean"], row["dev_sd"], row["dev_mean"]) == ("", "", "0.9")
    assert not (tmp_path / "report" / "figures" / "test-chunking.svg").exists()


def test_not_finite_and_no_dev(tmp_path):
    out = tmp_path / "out"
    for seed in range(2):
        folder = write_run(out, "two-point active", "fixed", seed, float("nan"))
        (folder / "curve.csv").write_text("iterations,average_loss,dev\n0,0.0,\n10,0.5,\n20,0.4,\n")
    check_page(write_report([out], tmp_path / "report"))
    assert (tmp_path / "report" / "figures" / "loss-chunking.svg").exists()
    assert not (tmp_path / "report" / "figures" / "dev-chunking.svg").exists()


def test_names_cannot_break_the_page(tmp_path):
    out = tmp_path / "out"
    name = "two-point <script>alert(1)</script> $x|&\"' 名"
    for seed in range(2):
        write_run(out, name, "tuned", seed, 0.8, settings=settings_of("two-point active", "tuned", seed))
    (out / "experiment.toml").write_text("broken <b> = [")
    text = check_page(write_report([out], tmp_path / "report"))
    assert "<script>alert(1)</script>" in text
    assert rows(tmp_path / "report" / "table.csv")[0]["learner"] == name
    line = next(line for line in (tmp_path / "report" / "table.md").read_text("utf-8").splitlines() if "alert" in line)
    assert line.replace("\\|", "").count("|") == 9  # eight columns: the paper has no figure for it


def test_runs_of_other_settings_are_not_averaged_in(out):
    old = settings_of("two-point active", "tuned", 7) | {"h": 1.0}
    write_run(out, "two-point active", "tuned", 7, 0.1, settings=old)
    experiment = read_experiment(out)
    row = next(row for row in make_table(experiment).rows if row.learner == "two-point active")
    assert row.seeds == (0, 1, 2)
    assert row.h == 0.003
    assert any("2 different settings" in gap for gap in experiment.gaps)


def test_two_experiments_in_one_folder_are_refused(out, tmp_path):
    write_run(out, "two-point score", "tuned", 0, 0.27, task="rerank")
    with pytest.raises(DataError, match=r"several experiments, chunking .chunking., smt .rerank."):
        write_report([out], tmp_path / "report")


def test_nothing_to_report_on(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="no finished runs"):
        write_report([tmp_path / "empty"], tmp_path / "report")
    with pytest.raises(UsageError, match="no such folder"):
        write_report([tmp_path / "nowhere"], tmp_path / "report")
    with pytest.raises(UsageError, match="at least one folder"):
        write_report([], tmp_path / "report")
    assert not (tmp_path / "report").exists()


def test_without_matplotlib_it_says_what_to_install(out, tmp_path, monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.partition(".")[0] == "matplotlib":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UsageError, match=r"figures need matplotlib; install it with: pip install 'sparsezo\[report\]'"):
        write_report([out], tmp_path / "report")
    assert not (tmp_path / "report").exists()


@pytest.mark.parametrize(("count", "text"), [(4_000_000, "4M"), (300_000, "300k"), (509_381, "509,381"), (950, "950")])
def test_counts(count, text):
    assert count_text(count) == text


def test_about():
    assert [about_text(count) for count in (3_813_333.3, 120_400, 950.4)] == ["3.81M", "120k", "950"]
