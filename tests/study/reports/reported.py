"""What the tests of reports are made of: results in memory, results on disk, and a page taken apart."""

from __future__ import annotations

import json
import os
from html.parser import HTMLParser
from pathlib import Path

from sparsezo.storage.checksummed import checksummed_toml
from sparsezo.study.records import write_curve, write_record
from sparsezo.study.reports.results import LearnerRuns, ReportedExperiment, ReportedRun
from sparsezo.study.reproduce import PLAN_FILE
from sparsezo.study.runs import fixed_runs


def run_of(phase="fixed", seed=3, result=(), curve=None, **fields):
    known = {"learner": "x", "phase": phase, "seed": seed, "settings": {}, "iterations": 10, "result": dict(result)}
    return ReportedRun(**known | {"test_report": {}, "versions": {}, "paper": None, "curve": curve} | fields)


def learner_of(*runs, name="two-point active", rule="two-point", perturb="active", plain=True, feedback="exact"):
    phases = {}
    for run in runs:
        phases.setdefault(run.phase, []).append(run)
    kept = {phase: tuple(mine) for phase, mine in phases.items()}
    return LearnerRuns(name, rule, perturb, plain, kept, feedback)


def experiment_of(*learners, name="mine", task="chunking", metric="f1", **fields):
    runs = fields.pop("runs", tuple(run for item in learners for mine in item.phases.values() for run in mine))
    return ReportedExperiment(Path(), name, task, metric, runs, learners, **fields)


def write_results(out, plan, points, result):
    """What a finished experiment leaves at its fixed settings; ``points`` and ``result`` make them of a run."""
    out.mkdir(parents=True, exist_ok=True)
    (out / PLAN_FILE).write_text(checksummed_toml(plan.to_toml()), "utf-8")
    for run in fixed_runs(plan, "data"):
        folder = run.folder(out)
        folder.mkdir(parents=True)
        write_curve(folder, points(run))
        fields = {"experiment": run.experiment, "task": run.task, "learner": run.learner, "phase": run.phase}
        fields |= {"seed": run.settings.seed, "settings": run.settings.as_dict(), "iterations": run.iterations}
        write_record(folder, {**fields, "data": run.data, "result": result(run), "hash": run.hash})
    return out


CURVE = "iterations,average_loss,dev\n0,1.0,0.25\n100,0.5,0.5\n"


def write_run(out, name="two-point active", phase="fixed", seed=3, curve=CURVE, **changes):
    """A run as it was left before there were sums; ``changes`` to its record, settings and result in part.

    ``folder``: its name; ``made``: when.
    """
    rule, _, perturb = name.partition(" ")
    settings = {"rule": rule, "perturb": perturb or None, "h": changes.pop("h", 0.01), "mu": 0.2, "seed": seed}
    settings |= changes.pop("settings", {})
    result = {"metric": "f1", "test": 0.5} | changes.pop("result", {})
    made = changes.pop("made", None)
    folder = out / "runs" / changes.pop("folder", f"{len(list(out.glob('runs/*'))):03}")
    record = {"experiment": "mine", "task": "chunking", "learner": name, "phase": phase, "seed": seed}
    record |= {"settings": settings, "iterations": 1000, "result": result} | changes
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps(record))
    if made is not None:
        os.utime(folder / "run.json", (made, made))
    if curve is not None:
        (folder / "curve.csv").write_text(curve)
    return folder


class Page(HTMLParser):
    """A page in which every tag is closed in its place: its tags, attributes, texts and rows of tables."""

    VOID = ("meta", "br", "link", "img", "hr", "input")

    def __init__(self, page):
        super().__init__()
        self.tags, self.attributes, self.text, self.rows, self.open = [], [], [], [], []
        self.feed(page)
        self.close()
        assert not self.open

    def values(self, *names):
        return [value for name, value in self.attributes if name in names]

    @property
    def links(self):
        return self.values("src", "href", "xlink:href", "srcset", "data")

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append((dict(attrs).get("class", ""), []))
        if tag in ("td", "th"):
            self.rows[-1][1].append("")

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][1][-1] += data
