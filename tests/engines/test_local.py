"""Sweeps: the same whatever the number of processes, nothing done twice, killed at any point, one failure alone."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from sparsezo.cli.experiments import load, run_reproduce

from sparsezo.engines.local import Runner, fixed_runs
from sparsezo.errors import SparsezoError, UsageError
from sparsezo.experiments.plan import parse_experiment
from sparsezo.experiments.runs import Run
from sparsezo.model import load_model
from sparsezo.settings import Settings
from sparsezo.tasks.chunking.generate import chunking_columns, generate_chunking
from sparsezo.tasks.loading import Files

PLAN = """
name = "small"
task = "chunking"
iterations = ITERATIONS
seeds = [3, 4]
[data]
train = "train.txt"
dev = 30
test = "test.txt"
options = { only = "NP" }
[fixed]
h = 0.01
mu = 0.1
[[learner]]
rule = "two-point"
perturb = "all"
[[learner]]
rule = "comparison"
perturb = "score"
paper = 0.5
[[learner]]
rule = "first-order"
"""
TIMINGS = {"seconds", "us_per_iteration"}


def plan_of(iterations: int, text: str = PLAN):
    return parse_experiment(text.replace("ITERATIONS", str(iterations)), "small.toml")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("sweep")
    (folder / "train.txt").write_text(chunking_columns(generate_chunking(90, seed=1)))
    (folder / "test.txt").write_text(chunking_columns(generate_chunking(30, seed=2)))
    return folder


@pytest.fixture(scope="module")
def loader(folder):
    return partial(
        load, "chunking", Files((str(folder / "train.txt"),), "30", str(folder / "test.txt"), {"only": "NP"})
    )


def results(out: Path) -> dict[str, tuple[dict, bytes]]:
    """Records without their timings, and curves, by hash."""
    found = {}
    for path in sorted(out.glob("runs/*/run.json")):
        record = json.loads(path.read_text())
        assert record["hash"] == path.parent.name
        record["result"] = {name: value for name, value in record["result"].items() if name not in TIMINGS}
        found[path.parent.name] = (record, (path.parent / "curve.csv").read_bytes())
    return found


def stamps(out: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in out.glob("runs/*/run.json")}


def half_done(out: Path) -> bool:
    return any(not path.with_name("run.json").exists() for path in out.glob("runs/*/checkpoint"))


@pytest.fixture(scope="module")
def long_reference(loader, tmp_path_factory):
    out = tmp_path_factory.mktemp("long")
    assert not Runner(out, loader, processes=1).run(fixed_runs(plan_of(20_000), "data")).failures
    return results(out)


def test_a_run_is_known_by_what_it_does(folder):
    run = Run("a", "chunking", "x", "fixed", Settings(), 100, 1, "data")
    assert run.hash == "875eb0c1ff661d4454d0"  # for ever: or finished work would be done again
    assert Run("b", "chunking", "y", "fixed", Settings(), 100, 1, "data", paper=1.0).hash == run.hash
    others = [
        Run("a", "chunking", "x", "fixed", Settings(seed=1), 100, 1, "data"),
        Run("a", "chunking", "x", "fixed", Settings(h=1.0), 100, 1, "data"),
        Run("a", "chunking", "x", "fixed", Settings(), 101, 1, "data"),
        Run("a", "chunking", "x", "fixed", Settings(), 100, 2, "data"),
        Run("a", "chunking", "x", "fixed", Settings(), 100, 1, "other"),
        Run("a", "chunking", "x", "tuned", Settings(), 100, 1, "data"),
    ]
    assert len({run.hash, *(other.hash for other in others)}) == 7
    first, second = PLAN.split("[[learner]]")[1:3]
    swapped = PLAN.replace(first, "FIRST").replace(second, first).replace("FIRST", second)
    hashes = [{r.learner: r.hash for r in fixed_runs(plan_of(9, text), "d")} for text in (PLAN, swapped)]
    assert list(hashes[0]) != list(hashes[1])
    assert hashes[0] == hashes[1]


def test_one_process_and_two_give_the_same_and_nothing_is_done_twice(loader, tmp_path):
    runs = fixed_runs(plan_of(2000), "data")
    one = Runner(tmp_path / "one", loader, processes=1)
    overviews = []
    finished = one.run(runs, overviews.append)
    assert set(finished.records) == {run.hash for run in runs}
    assert (overviews[-1].done, overviews[-1].runs, overviews[-1].seconds_left) == (6, 6, 0)
    assert overviews[-1].steps_done == overviews[-1].steps == 12_000
    with Runner(tmp_path / "two", loader, processes=2) as two:
        two.run(runs[:4])
        before = stamps(two.out)
        assert set(two.run(runs).records) == set(finished.records)
        assert before.items() <= stamps(two.out).items()
    assert results(tmp_path / "one") == results(tmp_path / "two")
    for run in runs:
        models = [load_model(run.folder(tmp_path / name) / "model.szo") for name in ("one", "two")]
        assert (models[0].W == models[1].W).all()
    record = results(one.out)[runs[2].hash][0]
    assert (record["learner"], record["phase"], record["seed"], record["paper"]) == (
        *("comparison score", "fixed", 3),
        0.5,
    )
    assert set(record["versions"]) == {"sparsezo", "numpy", "numba", "python"}
    assert record["test_report"]["f1"] == record["result"]["test"]
    assert results(one.out)[runs[2].hash][1].startswith(b"iterations,average_loss,dev\n0,0.0,0.")
    assert not list(tmp_path.glob("*/runs/*/checkpoint"))


SCRIPT = """
import sys
from functools import partial
from pathlib import Path
import typer
from sparsezo.cli.experiments import _stopping_cleanly, load
from sparsezo.tasks.loading import Files
from sparsezo.experiments.plan import read_experiment
from sparsezo.engines.local import Runner, fixed_runs
out, folder, processes = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
files = Files((str(folder / "train.txt"),), "30", str(folder / "test.txt"), {"only": "NP"})
try:
    loader = partial(load, "chunking", files)
    with _stopping_cleanly(), Runner(out, loader, processes, checkpoint_seconds=0.02) as runner:
        runner.run(fixed_runs(read_experiment(out / "plan.toml"), "data"))
except typer.Exit as stop:
    sys.exit(stop.exit_code)
"""


@contextlib.contextmanager
def sweep(out: Path, folder: Path, processes: int):
    """A sweep in a process of its own, at a point where something is finished and something half done."""
    out.mkdir()
    (out / "plan.toml").write_text(PLAN.replace("ITERATIONS", "20000"))
    command = [sys.executable, "-c", SCRIPT, str(out), str(folder), str(processes)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        deadline = time.monotonic() + 120
        while not (stamps(out) and half_done(out)):
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < deadline
            time.sleep(0.002)
        yield process
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def test_killed_it_goes_on_where_it_was(loader, folder, long_reference, tmp_path):
    out = tmp_path / "killed"
    with sweep(out, folder, 2) as process:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        time.sleep(1.5)  # its processes see that it is gone, save and leave
        before = stamps(out)
        assert 0 < len(before) < 6
    assert not Runner(out, loader, processes=1).run(fixed_runs(plan_of(20_000), "data")).failures
    assert before.items() <= stamps(out).items()
    assert results(out) == long_reference


@pytest.mark.parametrize("processes", [1, 2])
def test_ctrl_c_stops_all_in_one_line(loader, folder, long_reference, tmp_path, processes):
    out = tmp_path / "stopped"
    with sweep(out, folder, processes) as process:
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
        _, errors = process.communicate(timeout=30)
        assert process.returncode == 130
        assert errors == "stopped; the same command goes on from there\n"
        before = stamps(out)
    assert not Runner(out, loader, processes=1).run(fixed_runs(plan_of(20_000), "data")).failures
    assert before.items() <= stamps(out).items()
    assert results(out) == long_reference


def test_a_run_that_fails_does_not_lose_the_others(folder, tmp_path, capsys):
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN.replace("ITERATIONS", "500") + "h = 1e38\n")  # first-order
    out = tmp_path / "out"
    with pytest.raises(SparsezoError, match="2 runs failed, for the reasons above") as caught:
        run_reproduce(str(plan), str(folder), phases="fixed", processes=1, out=out)
    assert caught.value.exit_code == 1
    assert capsys.readouterr().err.count("failed: first-order, fixed, h 1e+38, seed") == 2
    assert len(stamps(out)) == 4
    assert (out / "report" / "report.html").exists()
    plan.write_text(PLAN.replace("ITERATIONS", "600"))
    with pytest.raises(UsageError, match=r"holds runs of another plan \(iterations differs\); name another folder"):
        run_reproduce(str(plan), str(folder), phases="fixed", processes=1, out=out)


def test_where_all_runs_fail_the_reasons_are_said(folder, tmp_path, capsys):
    plan = tmp_path / "plan.toml"
    head = PLAN.replace("ITERATIONS", "500").split("[[learner]]")[0]
    plan.write_text(head + '[[learner]]\nrule = "first-order"\nh = 1e38\n')
    with pytest.raises(SparsezoError, match="2 runs failed, for the reasons above") as caught:
        run_reproduce(str(plan), str(folder), phases="fixed", processes=1, out=tmp_path / "out")
    assert caught.value.exit_code == 1
    assert capsys.readouterr().err.count("failed: first-order, fixed, h 1e+38, seed") == 2


def test_a_process_that_is_killed_loses_only_its_run(loader, tmp_path):
    with Runner(tmp_path, loader, processes=2) as runner:
        victims = []

        def kill_one(_overview: object) -> None:
            if not victims:
                victims.append(runner._workers[0].process.pid)
                os.kill(victims[0], signal.SIGKILL)

        finished = runner.run(fixed_runs(plan_of(20_000), "data"), kill_one)
        assert len(finished.failures) == 1
        assert "was ended by SIGKILL; if memory is short, use fewer --processes" in finished.failures[0].message
        assert len(finished.records) == 5
        assert not runner.run(fixed_runs(plan_of(20_000), "data")).failures


def test_data_that_cannot_be_read_is_said_once(tmp_path):
    nowhere = partial(load, "chunking", Files((str(tmp_path / "no.txt"),), "30"))
    with pytest.raises(SparsezoError, match=r"no.txt: no such file"), Runner(tmp_path, nowhere, processes=2) as runner:
        runner.run(fixed_runs(plan_of(100), "data"))
