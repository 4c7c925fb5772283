"""Damaged results: whatever has happened to a file, the report is made, and the file is named in it."""

from __future__ import annotations

import contextlib
import json
import math
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mutations import Anything, cases, damaged, damaged_json, damaged_text, endure, same

from sparsezo.errors import DamagedError
from sparsezo.storage.checksummed import checksummed_toml, write_checksummed
from sparsezo.study.plan import parse_experiment
from sparsezo.study.records import write_curve, write_record
from sparsezo.study.reports import report
from sparsezo.study.reports.reading import read_experiment
from sparsezo.study.reports.report import report_page, write_report
from sparsezo.study.reports.tables import make_table
from sparsezo.study.runs import find, fixed_runs

PLAN = parse_experiment(
    """
name = "mine"
title = "a title"
task = "rerank"
iterations = 100
seeds = 3
init = "w"
data = { train = "t.nbest", dev = "d.nbest", test = "e.nbest" }
bounds = { out-of-domain = "w", in-domain = "v" }
grid = { h = [0.1], mu = [0.2] }
[[learner]]
rule = "two-point"
perturb = "all"
[[learner]]
rule = "two-point"
perturb = "active"
feedback = ["exact", "binary"]
""",
    "plan",
)
TUNING = {
    "two-point all": {
        "trials": [{"h": 0.1, "mu": 0.2, "dev": 0.5, "iterations": 100, "seeds": 1}],
        "chosen": {"h": 0.1, "mu": 0.2},
        "dev": 0.5,
        "widened": 2,
        "note": "a note",
    }
}
BOUNDS = {"out-of-domain": {"bleu": 0.25, "length_ratio": 1.0}, "in-domain": {"bleu": 0.3}, "oracle": {"bleu": 0.5}}
FILES = ("run.json", "curve.csv", "experiment.toml", "tuning.json", "bounds.json")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A folder of results as reproduce leaves it."""
    out = tmp_path_factory.mktemp("whole") / "out"
    out.mkdir()
    (out / "experiment.toml").write_text(checksummed_toml(PLAN.to_toml()))
    write_checksummed(out / "tuning.json", TUNING)
    write_checksummed(out / "bounds.json", BOUNDS)
    for run in fixed_runs(PLAN, "data"):
        folder, seed = run.folder(out), run.settings.seed
        folder.mkdir(parents=True)
        write_curve(folder, [(0, math.nan, 0.1), *((n, 1 - n / 200 + seed / 99, 0.5) for n in (10, 50, 90, 100))])
        result = {"metric": "bleu", "dev": 0.5, "test": 0.25 + seed / 99, "average_loss": 0.5, "seconds": 1.5}
        result |= {"n": 7, "n_active": 7.0, "best_iteration": 50, "us_per_iteration": 12.5, "update_fraction": 0.5}
        fields = {"experiment": "mine", "task": "rerank", "learner": run.learner, "phase": "fixed", "seed": seed}
        fields |= {"settings": run.settings.as_dict(), "iterations": 100, "result": result, "hash": run.hash}
        fields |= {"test_report": {"bleu": 0.25, "length_ratio": 0.9, "signature": "x"}, "paper": 0.3, "data": "data"}
        write_record(folder, {**fields, "versions": {"sparsezo": "0.1", "numpy": "2.0"}})
    return out


@pytest.fixture
def out(whole, tmp_path):
    return Path(shutil.copytree(whole, tmp_path / "out"))


def place_of(out: Path, name: str) -> Path:
    return next(iter(sorted(out.glob(f"runs/*/{name}"))), out / name)


def without_sums(out: Path) -> None:
    """As it was before there were sums."""
    for path in out.rglob("*.json"):
        value = json.loads(path.read_text())
        for name in ("sealed", "sum", "files"):
            value.pop(name, None)
        path.write_text(json.dumps(value))
    (out / "experiment.toml").write_text(PLAN.to_toml())


def looked_at(out: Path, path: Path) -> Callable[[bytes], Any]:
    """The results, with DamagedError where the file is named among the gaps; the run itself counts as not done then."""

    def look(data: bytes) -> Any:
        path.write_bytes(data)
        experiment = read_experiment(out)
        assert all(gap.isprintable() for gap in experiment.gaps)
        name = str(path.relative_to(out))
        named = any(name in gap for gap in experiment.gaps)
        for run in fixed_runs(PLAN, "data"):
            if run.folder(out) == path.parent:
                assert (find(run, out) is None) == named
        if named:
            raise DamagedError(name, "it is named")
        return make_table(experiment).records(), experiment.tuning, experiment.bounds, experiment.declared

    return look


def reported_on(out: Path, path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    """All of a report but its figures."""
    monkeypatch.setattr(report, "draw_figures", lambda experiment, folder, slug: [])
    look = looked_at(out, path)

    def read(data: bytes) -> None:
        with contextlib.suppress(DamagedError):
            look(data)
        experiment = read_experiment(out)
        sections = report.make_sections([experiment], out / "figures")
        page, table = report_page(sections, "a command"), report.markdown(sections)
        list(report._curve_points([experiment]))
        page.encode(), table.encode()
        assert all(gap in table for gap in experiment.gaps)

    return read


def content(data: bytes, name: str) -> Any:
    """What a file says, by a plain reader; ValueError where it cannot be read."""
    if name.endswith(".json"):
        value = json.loads(data.decode())
        return {key: value[key] for key in value if key not in ("sealed", "sum")} if type(value) is dict else None
    if name.endswith(".toml"):
        return tomllib.loads(data.decode())
    return data


@pytest.mark.parametrize(
    ("damage", "name"),
    [(each, name) for name in FILES for each in (damaged, damaged_text, damaged_json)[: 2 + name.endswith(".json")]],
)
@pytest.mark.parametrize("n", cases(30))
def test_damage_is_named(n, damage, name, out):
    """Or there was none: what the file says is what it said."""
    path = place_of(out, name)
    original = path.read_bytes()
    look = looked_at(out, path)
    plain, said = look(original), content(original, name)

    def reference(data: bytes) -> Any:
        if name in ("tuning.json", "bounds.json") and b"sum" not in data and b"seal" not in data:
            return Anything  # another file, from before there were sums
        if not same(content(data, name), said):
            raise ValueError("it says something else")
        return plain

    endure(look, original, damage, n, reference)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("n", cases(10))
def test_without_sums_a_report_is_made_all_the_same(n, name, out, monkeypatch):
    without_sums(out)
    path = place_of(out, name)
    damage = damaged_json if name.endswith(".json") else damaged_text
    endure(reported_on(out, path, monkeypatch), path.read_bytes(), damage, n, lambda data: Anything)


@pytest.mark.torture
@pytest.mark.parametrize("name", ["run.json", "curve.csv"])
def test_without_sums_figures_are_drawn_of_whatever_there_is(name, out):
    pytest.importorskip("matplotlib")
    without_sums(out)
    for extra in sorted(out.glob("runs/*"))[6:]:
        shutil.rmtree(extra)
    path = place_of(out, name)

    def look(data: bytes) -> None:
        path.write_bytes(data)
        write_report([out], out / "report")

    damage = damaged_json if name.endswith(".json") else damaged_text
    endure(look, path.read_bytes(), damage, 100, lambda data: Anything)
