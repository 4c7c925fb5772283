"""demo and bench: every option arrives, and what people and scripts get."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from sparsezo import messages
from sparsezo.cli import demo, show
from sparsezo.settings import Settings


def last_json(out: str) -> dict[str, object]:
    return json.loads(out.splitlines()[-1])


def test_every_option_of_demo_and_bench_arrives(program, monkeypatch):
    seen = []
    monkeypatch.setattr(demo, "run_demo", lambda **given: seen.append(tuple(given.values())))
    monkeypatch.setattr(demo, "run_bench", lambda **given: seen.append(tuple(given.values())))
    monkeypatch.delenv("SPARSEZO_DATA", raising=False)
    for words in (
        ["demo"],
        ["demo", "--seconds", "2.5", "--no-report", "--json"],
        ["demo", "-o", "there"],
        ["bench", "text"],
        ["bench", "rerank", "--data", "D", "--rounds", "7", "--json"],
    ):
        assert program(*words) == (0, "", "")
    monkeypatch.setenv("SPARSEZO_DATA", "E")
    assert program("bench", "chunking") == (0, "", "")
    assert seen == [
        (30.0, True, Path("demo-report"), False),
        (2.5, False, Path("demo-report"), True),
        (30.0, True, Path("there"), False),
        ("text", None, 5, False, False),
        ("rerank", Path("D"), 7, False, True),
        ("chunking", Path("E"), 5, False, False),
    ]


@pytest.fixture
def quick(monkeypatch):
    """A demo whose trainings only say what they are; the later ones are the better ones."""
    asked = []

    class Quick:
        def __init__(self, task, data, settings, iterations, *, evaluate_every):
            asked.append(
                (settings, iterations, evaluate_every, [len(each) for each in (data.train, data.dev, data.test)])
            )
            self.result = settings.as_dict() | {
                "test": len(asked) / 100,
                "average_loss": 0.25,
                "us_per_iteration": 12.34,
                "iterations": iterations,
            }

        def go(self, progress):
            return SimpleNamespace(result=self.result)

    monkeypatch.setattr(demo, "Training", Quick)
    monkeypatch.setattr(demo, "_SENTENCES", {"train": (20, 1), "dev": (6, 2), "test": (8, 3)})
    monkeypatch.setattr(demo, "_FEW_STEPS", "")
    monkeypatch.setattr(show, "note_compiling", lambda: None)
    monkeypatch.setattr(show, "output", Console(highlight=False, force_terminal=False, width=120))
    return asked


def test_demo_runs_every_rule_with_every_perturbation(program, quick):
    code, out, err = program("demo", "--seconds", "2.5", "--no-report", "--json")
    assert code == 0
    assert "19 learners, 10,000 steps each, on GENERATED sentences (20 to learn from)" in err
    fields = last_json(out)
    assert {name: fields[name] for name in ("data", "iterations", "report")} == {
        "data": "generated",
        "iterations": 10_000,
        "report": None,
    }
    zeroth_order = ("two-point", "symmetric", "comparison", "preference", "baseline")
    h = {"all": 1e-4, "active": 3e-4, "score": 1e-3}
    expected = [Settings(rule, perturb, h[perturb], 0.1) for rule in zeroth_order for perturb in h]
    automatic = [each.perturb == "active" and each.rule in ("two-point", "symmetric") for each in expected]
    expected = [replace(each, h="auto") if auto else each for each, auto in zip(expected, automatic, strict=True)]
    sampled = {"first-order": 0.01, "pairwise": 0.003, "cross-entropy": 0.001, "supervised": 0.01}
    expected += [Settings(rule, None, h, None) for rule, h in sampled.items()]
    assert [settings for settings, *_ in quick] == expected
    assert {tuple(map(str, rest)) for _, *rest in quick} == {("10000", "500", "[20, 6, 8]")}
    shown = [(each["rule"], each["perturb"]) for each in fields["learners"]]
    assert shown == [(each.rule, each.perturb) for each in reversed(expected)]
    assert program("demo", "--seconds", "0.1", "--no-report")[0] == 0
    assert quick[-1][1:3] == (1000, 50)


def test_demo_for_people_is_a_table_and_a_report(program, quick, monkeypatch, tmp_path):
    seen = []
    monkeypatch.setattr(demo, "run_reproduce", lambda *args, **keywords: seen.append((args, keywords)))
    code, out, _ = program("demo", "-o", tmp_path)
    assert code == 0
    assert "NP chunking, generated data, 120,000 steps, one seed, best on dev" in out
    rows = [line.replace("│", " ").split() for line in out.splitlines() if line.startswith("│")]
    assert rows[0] == ["1", "supervised", "-", "0.1900", "0.2500", "12.3", "0.01", "-"]
    assert rows[4] == ["5", "baseline", "score", "0.1500", "0.2500", "12.3", "0.001", "0.1"]
    assert f"also on generated data: {tmp_path.resolve() / 'report' / 'report.html'}" in out
    settings = {"chunking": (0.003, 0.1), "smt": (0.001, 0.1)}
    small = {"seeds": 2, "iterations": "50k", "phases": "fixed", "out": tmp_path, "at": settings}
    assert seen == [(("all", "generated"), small)]


def _has_ended(pid: str) -> bool:
    """Or will in a moment, if whoever has to wait for it was ended as well."""
    for _ in range(1000):
        try:
            os.kill(int(pid), 0)
        except ProcessLookupError:
            return True
        time.sleep(0.01)
    return subprocess.run(["ps", "-o", "stat=", "-p", pid], capture_output=True, text=True).stdout.startswith("Z")


def test_what_compiles_beside_the_demo_ends_with_it(monkeypatch, tmp_path):
    """With processes of its own."""
    said = tmp_path / "said"
    monkeypatch.setattr(
        demo,
        "_FEW_STEPS",
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(100)'])\n"
        f"open({str(said)!r} + '.new', 'w').write(f'{{os.getpid()}} {{child.pid}} {{sys.argv[1]}}')\n"
        f"os.replace({str(said)!r} + '.new', {str(said)!r})\n"
        "time.sleep(100)\n",
    )
    with demo._compiled_beside():
        while not said.exists():
            time.sleep(0.01)
    *processes, folder = said.read_text().split()
    assert all(map(_has_ended, processes))
    assert not Path(folder).exists()


@pytest.mark.torture
def test_what_the_report_needs_is_compiled_beside_the_demo(monkeypatch, tmp_path):
    """The few steps do not fail, though nobody hears of it."""
    done = subprocess.run([sys.executable, "-c", demo._FEW_STEPS, tmp_path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"text", "smt"}


def test_a_bench_measures_and_shows(program, monkeypatch):
    from sparsezo.study import bench

    fields = {
        "bench": "rerank",
        "vector_bits": 256,
        "data": "60 generated lists",
        "candidates": 5000.0,
        "features": 14,
        "numpy_us": 20.0,
        "learners": {"two-point active": {"us": 12.345, "ratio": 0.61725}},
    }
    seen = []
    table = bench.BENCHES["rerank"][1]
    monkeypatch.setitem(bench.BENCHES, "rerank", (lambda *args: seen.append(args) or fields, table))
    monkeypatch.setattr(show, "output", Console(highlight=False, force_terminal=False, width=120))
    monkeypatch.delenv("SPARSEZO_DATA", raising=False)
    code, out, _ = program("bench", "rerank", "--rounds", "3", "--json")
    assert (code, last_json(out)) == (0, fields)
    code, out, err = program("bench", "rerank", "--data", "D")
    assert code == 0
    assert err == "60 generated lists: 5,000 candidates a list, 14 features\n"
    assert ["two-point", "active", "12.35", "0.617"] in [line.replace("│", " ").split() for line in out.splitlines()]
    assert "to NumPy's 20.0 us" in out
    assert "256 bits" in out
    assert seen == [(None, 3), (Path("D"), 5)]


def test_the_best_of_all_rounds_counts_and_all_take_turns():
    from sparsezo.study.bench import best_of

    order, times = [], {"a": [3.0, 1.0, 2.0], "b": [5.0, 6.0, 4.0]}

    def timed(name):
        order.append(name)
        return times[name].pop(0)

    with messages.gathered() as said:
        assert best_of(3, {"a": lambda: timed("a"), "b": lambda: timed("b")}) == {"a": 1.0, "b": 4.0}
    assert order == ["a", "b"] * 3
    assert said == [f"round {number} of 3" for number in (1, 2, 3)]
