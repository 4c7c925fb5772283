"""Sweeps: the same whatever the number of processes, nothing done twice, killed at any point, one failure alone."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import signal
import subprocess
import sys
from dataclasses import replace
from functools import partial
from multiprocessing import Pipe, resource_tracker
from pathlib import Path
from types import SimpleNamespace

import pytest

from sparsezo import notes
from sparsezo.cli.reproduce import run_reproduce
from sparsezo.engines import local as local_module
from sparsezo.engines import progress as progress_module
from sparsezo.engines.base import Failure, Overview
from sparsezo.engines.local import LocalEngine, _serve, _terminated, _Worker, cores, described
from sparsezo.engines.progress import Board
from sparsezo.errors import DivergedError, SparsezoError, UsageError
from sparsezo.experiments.plan import parse_experiment
from sparsezo.experiments.records import write_curve, write_record
from sparsezo.experiments.reproduce import load
from sparsezo.experiments.runs import Run, fixed_runs
from sparsezo.interrupts import processes_without_ctrl_c
from sparsezo.kernels import loop
from sparsezo.model import load_model
from sparsezo.settings import Settings
from sparsezo.storage.container import read_container
from sparsezo.storage.sealed import read_sealed
from sparsezo.tasks.chunking.generate import chunking_columns, generate_chunking
from sparsezo.tasks.loading import Files
from sparsezo.tasks.registry import kind
from sparsezo.training import Progress

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
step = "constant"
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
ITERATIONS = 4000
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
        load, kind("chunking"), Files((str(folder / "train.txt"),), "30", str(folder / "test.txt"), {"only": "NP"})
    )


def results(out: Path) -> dict[str, tuple[dict, bytes]]:
    """Records without their timings, and curves, by hash."""
    found = {}
    for path in sorted(out.glob("runs/*/run.json")):
        record = read_sealed(path)
        assert record["hash"] == path.parent.name
        record["result"] = {name: value for name, value in record["result"].items() if name not in TIMINGS}
        found[path.parent.name] = (record, (path.parent / "curve.csv").read_bytes())
    return found


def stamps(out: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in out.glob("runs/*/run.json")}


@pytest.fixture(scope="module")
def reference(loader, tmp_path_factory):
    out = tmp_path_factory.mktemp("reference")
    assert not LocalEngine(out, loader, processes=1).run(fixed_runs(plan_of(ITERATIONS), "data")).failures
    return results(out)


def test_every_learner_runs_with_every_seed_and_its_place_does_not_count():
    plan = plan_of(9)
    runs = fixed_runs(plan, "d")
    assert [(run.learner, run.settings.seed, run.paper) for run in runs] == [
        ("two-point all", 3, None),
        ("two-point all", 4, None),
        ("comparison score", 3, 0.5),
        ("comparison score", 4, 0.5),
        ("first-order", 3, None),
        ("first-order", 4, None),
    ]
    for run in runs:
        assert (run.experiment, run.task, run.phase, run.data) == ("small", "chunking", "fixed", "d")
        assert (run.iterations, run.evaluate_every, run.keep_model) == (9, plan.interval, True)
        assert (run.settings.h, run.settings.mu) == (0.01, None if run.learner == "first-order" else 0.1)
    first, second = PLAN.split("[[learner]]")[1:3]
    swapped = PLAN.replace(first, "FIRST").replace(second, first).replace("FIRST", second)
    hashes = [
        {(r.learner, r.settings.seed): r.hash for r in fixed_runs(plan_of(9, text), "d")} for text in (PLAN, swapped)
    ]
    assert list(hashes[0]) != list(hashes[1])
    assert hashes[0] == hashes[1]
    assert len(set(hashes[0].values())) == 6


def test_one_process_and_two_give_the_same_and_nothing_is_done_twice(loader, tmp_path):
    runs = fixed_runs(plan_of(2000), "data")
    one = LocalEngine(tmp_path / "one", loader, processes=1)
    overviews = []
    finished = one.run(runs, overviews.append)
    assert set(finished.records) == {run.hash for run in runs}
    assert (overviews[-1].done, overviews[-1].runs, overviews[-1].seconds_left) == (6, 6, 0)
    assert overviews[-1].steps_done == overviews[-1].steps == 12_000
    with LocalEngine(tmp_path / "two", loader, processes=2) as two:
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
    assert results(one.out)[runs[2].hash][1].startswith(b"iterations,average_loss,dev,answers\n0,0.0,0.")
    assert not list(tmp_path.glob("*/runs/*/checkpoint"))


# A sweep in a process of its own. Every process of it says so when it is in the middle of its second run, at a look at
# dev, and waits there until the gate opens.
SCRIPT = """
import fcntl, os, signal, sys
from functools import partial
from pathlib import Path
import typer
from sparsezo.cli.follow import stopping_cleanly
from sparsezo.engines.local import LocalEngine
from sparsezo.experiments.plan import read_experiment
from sparsezo.experiments.reproduce import load
from sparsezo.experiments.runs import fixed_runs
from sparsezo.tasks.loading import Files, Loaded
from sparsezo.tasks.registry import kind

class Gated:
    def __init__(self, task, gate):
        self._task, self._gate, self._looks = task, gate, 0

    def __getattr__(self, name):
        return getattr(self._task, name)

    def quality(self, problem, gold, outputs):
        self._looks += 1
        if self._looks == LOOKS:
            os.write(1, b"x")
            with open(self._gate) as gate:
                fcntl.flock(gate, fcntl.LOCK_SH)
        return self._task.quality(problem, gold, outputs)

def gated(files, gate):
    loaded = load(kind("chunking"), files)
    return Loaded(Gated(loaded.task, gate), loaded.data, loaded.W)

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # as in a terminal, however the tests were started
    out, folder, processes = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    files = Files((str(folder / "train.txt"),), "30", str(folder / "test.txt"), {"only": "NP"})
    loader = partial(gated, files, out / "gate")
    try:
        with stopping_cleanly(), LocalEngine(out, loader, processes, checkpoint_seconds=0.0) as engine:
            engine.run(fixed_runs(read_experiment(out / "plan.toml"), "data"))
    except typer.Exit as stop:
        sys.exit(stop.exit_code)
"""
HANGS = 300  # seconds after which a test that waits for processes gives up


class Sweep:
    """At a point where each of its processes has finished one run and is in the middle of another."""

    def __init__(self, out: Path, folder: Path, processes: int) -> None:
        out.mkdir()
        (out / "plan.toml").write_text(PLAN.replace("ITERATIONS", str(ITERATIONS)))
        looks = 101 + 51 + (2 if processes > 1 else 0)  # compiling looks twice
        (out / "sweep.py").write_text(SCRIPT.replace("LOOKS", str(looks)))
        self.gate = (out / "gate").open("w")
        fcntl.flock(self.gate, fcntl.LOCK_EX)
        command = [sys.executable, str(out / "sweep.py"), str(out), str(folder), str(processes)]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        try:
            for _ in range(processes):
                assert select.select([self.process.stdout], [], [], HANGS)[0], "nobody came to the gate"
                assert os.read(self.process.stdout.fileno(), 1) == b"x", self.process.communicate()[1]
        except BaseException:
            self.end()
            raise

    def open_gate(self) -> None:
        self.gate.close()

    def left(self) -> str:
        """What was said until all of its processes had gone: the pipe ends with the last of them."""
        return self.process.communicate(timeout=HANGS)[1]

    def end(self) -> None:
        self.open_gate()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()


@pytest.fixture
def sweep(folder, tmp_path):
    sweeps = []

    def start(out: Path, processes: int) -> Sweep:
        sweeps.append(Sweep(out, folder, processes))
        return sweeps[-1]

    yield start
    for each in sweeps:
        each.end()


def half_done(out: Path) -> list[int]:
    """The steps at which checkpoints of unfinished runs stand."""
    paths = [path for path in out.glob("runs/*/checkpoint") if not path.with_name("run.json").exists()]
    return [int(read_container(path, "checkpoint")[1]["counts"][loop.STEP]) for path in paths]


def goes_on(out: Path, loader, reference) -> None:
    """To the same end, with nothing that was finished done again."""
    before = stamps(out)
    assert not LocalEngine(out, loader, processes=1).run(fixed_runs(plan_of(ITERATIONS), "data")).failures
    assert before.items() <= stamps(out).items()
    assert results(out) == reference


def test_killed_it_goes_on_where_it_was(loader, sweep, reference, tmp_path):
    out = tmp_path / "killed"
    killed = sweep(out, 2)
    killed.process.kill()
    killed.process.wait()
    killed.open_gate()  # the others see that it is gone, save and leave
    killed.left()
    assert len(stamps(out)) == 2
    assert half_done(out) == [ITERATIONS // 2] * 2
    goes_on(out, loader, reference)


def test_all_killed_at_once_goes_on_from_the_checkpoints(loader, sweep, reference, tmp_path):
    out = tmp_path / "killed"
    killed = sweep(out, 2)
    os.killpg(killed.process.pid, signal.SIGKILL)
    killed.left()
    assert len(stamps(out)) == 2
    steps = half_done(out)
    assert len(steps) == 2
    assert all(ITERATIONS // 2 - ITERATIONS // 100 <= step < ITERATIONS // 2 for step in steps)  # the slice before
    goes_on(out, loader, reference)


@pytest.mark.parametrize("processes", [1, 2])
def test_ctrl_c_stops_all_in_one_line(loader, sweep, reference, tmp_path, processes):
    out = tmp_path / "stopped"
    stopped = sweep(out, processes)
    os.killpg(stopped.process.pid, signal.SIGINT)  # as a terminal does: to all of them
    stopped.open_gate()
    assert stopped.left() == "stopped; the same command goes on from there\n"
    assert stopped.process.returncode == 130
    steps = half_done(out)
    assert len(stamps(out)) + len(steps) == 2 * processes  # nothing was begun after it
    assert all(ITERATIONS // 2 <= step < ITERATIONS for step in steps)
    goes_on(out, loader, reference)


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
    with LocalEngine(tmp_path, loader, processes=2) as engine:
        victims = []

        def kill_one(_overview: object) -> None:
            if not victims:
                victims.append(engine._workers[0].process.pid)
                os.kill(victims[0], signal.SIGKILL)

        finished = engine.run(fixed_runs(plan_of(ITERATIONS), "data"), kill_one)
        message = "its process was ended by SIGKILL; if memory is short, use fewer `processes`"
        assert [(failure.message, failure.diverged) for failure in finished.failures] == [(message, False)]
        assert len(finished.records) == 5
        assert finished.failures[0].run.hash not in finished.records
        assert victims[0] not in [worker.process.pid for worker in engine._workers]
        assert len(engine._workers) == 2  # another took its place
        assert not engine.run(fixed_runs(plan_of(ITERATIONS), "data")).failures


def test_data_that_cannot_be_read_is_said_once(tmp_path):
    nowhere = partial(load, kind("chunking"), Files((str(tmp_path / "no.txt"),), "30"))
    with (
        pytest.raises(SparsezoError, match=r"no.txt: no such file"),
        LocalEngine(tmp_path, nowhere, processes=2) as engine,
    ):
        engine.run(fixed_runs(plan_of(100), "data"))


# In this process: what is done, in which order, and what is said of it


def run_of(learner: str = "x", iterations: int = 100, seed: int = 0, perturb: str = "score", **others) -> Run:
    settings = Settings(perturb=perturb, seed=seed)
    return Run("small", "chunking", learner, "fixed", settings, iterations, 10, "data", **others)


def now(run: Run, step: int, seconds: float = 1.0) -> Progress:
    return Progress(step, run.iterations, 0.5, None, None, 0, seconds, 1.0)


def leave(run: Run, out: Path) -> None:
    """A folder as of a finished run."""
    folder = run.folder(out)
    folder.mkdir(parents=True, exist_ok=True)
    write_curve(folder, [(0, 1.0, 0.5), (run.iterations, 0.5, 0.5)])
    names = ("experiment", "task", "learner", "phase", "iterations", "data", "hash")
    fields = {name: getattr(run, name) for name in names}
    write_record(folder, {**fields, "seed": run.settings.seed, "settings": {}, "result": {}})


@pytest.fixture
def executed(monkeypatch):
    """Runs that only leave a record; those of learner "bad" fail, and those of "wild" run away."""
    executed = []

    def execute(run, out, bench, progress=None, checkpoint_seconds=None):
        executed.append((run, bench, checkpoint_seconds))
        progress(now(run, run.iterations))
        if run.learner == "bad":
            raise SparsezoError(f"no good with seed {run.settings.seed}")
        if run.learner == "wild":
            raise DivergedError("away with it")
        leave(run, out)

    monkeypatch.setattr(local_module, "execute", execute)
    return executed


class Counted:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self):
        self.calls += 1
        return SimpleNamespace(task=None, data=None, W=None)


def test_the_dearest_come_first(executed, tmp_path):
    runs = [run_of("a", 100), run_of("b", 300), run_of("c", 100, perturb="all"), run_of("d", 300, perturb="all")]
    LocalEngine(tmp_path, Counted(), processes=1).run([*runs, run_of("e", 100, seed=2)])
    assert [run.learner for run, _, _ in executed] == ["d", "b", "c", "a", "e"]


def test_nothing_is_done_twice(executed, tmp_path):
    load = Counted()
    engine = LocalEngine(tmp_path, load, processes=1, checkpoint_seconds=12.5)
    first, second = run_of(seed=1), run_of(seed=2)
    assert load.calls == 0
    finished = engine.run([first, run_of("y", seed=1)])  # the same work under another name
    assert (list(finished.records), finished.failures) == ([first.hash], ())
    assert finished.records[first.hash]["hash"] == first.hash
    seen = []
    finished = engine.run([first, second], seen.append)
    assert set(finished.records) == {first.hash, second.hash}
    assert [(run.settings.seed, seconds) for run, _, seconds in executed] == [(1, 12.5), (2, 12.5)]
    assert (seen[-1].done, seen[-1].runs, seen[-1].steps) == (2, 2, 100)
    assert load.calls == 1
    assert executed[0][1] is executed[1][1]  # one bench for all
    assert engine.run([first, second]).records == finished.records
    assert len(executed) == 2


@pytest.mark.parametrize("name", ["run.json", "curve.csv"])
def test_what_was_damaged_is_done_again_and_said_once(executed, tmp_path, name):
    said = []
    engine = LocalEngine(tmp_path, Counted(), processes=1, say=said.append)
    runs = [run_of(seed=1), run_of(seed=2)]
    engine.run(runs)
    path = runs[0].folder(tmp_path) / name
    whole = path.read_bytes()
    for damage in (b"", whole.replace(b"0,1.0,0.5", b"0,1.0,0.6").replace(b'"x"', b'"y"')):
        path.write_bytes(damage)
        (path.parent / "checkpoint").write_text("no checkpoint")
        assert set(engine.run(runs).records) == {run.hash for run in runs}
        assert path.read_bytes() == whole
        assert [message.split(": ")[0] for message in said] == [str(path), f"{path.parent / 'checkpoint'}"]
        said.clear()
        engine._once.said.clear()
    assert [run.settings.seed for run, _, _ in executed] == [1, 2, 1, 1]


def test_failures_are_recorded_and_tried_again(executed, tmp_path):
    engine = LocalEngine(tmp_path, Counted(), processes=1)
    runs = [run_of("bad", seed=1), run_of(seed=2), run_of("wild", seed=3), run_of(seed=4)]
    for times in (1, 2):
        seen = []
        finished = engine.run(runs, seen.append)
        assert finished.failures == (
            Failure(runs[0], "no good with seed 1", diverged=False),
            Failure(runs[2], "away with it", diverged=True),
        )
        assert set(finished.records) == {runs[1].hash, runs[3].hash}
        assert (seen[-1].runs, seen[-1].done, seen[-1].failed) == (4, 4, 2)
        assert len(executed) == 2 + 2 * times  # what went well is not done again


def test_ctrl_c_while_results_are_written_waits_until_they_are(tmp_path, monkeypatch):
    def execute(run, out, bench, progress, checkpoint_seconds):
        signal.raise_signal(signal.SIGINT)
        leave(run, out)

    monkeypatch.setattr(local_module, "execute", execute)
    runs = [run_of(seed=1), run_of(seed=2)]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            LocalEngine(tmp_path, Counted(), processes=1).run(runs)
    finally:
        signal.signal(signal.SIGINT, before)
    assert [run.folder(tmp_path).exists() for run in runs] == [True, False]


def test_ctrl_c_during_a_report_stops_there(tmp_path, monkeypatch):
    reached = []

    def execute(run, out, bench, progress, checkpoint_seconds):
        progress(now(run, 10))
        reached.append(run)

    monkeypatch.setattr(local_module, "execute", execute)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            LocalEngine(tmp_path, Counted(), processes=1).run([run_of()], lambda _: signal.raise_signal(signal.SIGINT))
    finally:
        signal.signal(signal.SIGINT, before)
    assert not reached


def test_as_many_processes_as_there_are_cores(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: {1, 4, 6}, raising=False)
    assert cores() == LocalEngine(tmp_path, Counted()).processes == 3
    assert LocalEngine(tmp_path, Counted(), 5).processes == 5
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    assert cores() == 7
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert cores() == 1


def test_what_is_said_of_a_failure():
    assert described(UsageError("`h` 0: must be positive")) == "`h` 0: must be positive"
    assert described(MemoryError()) == "out of memory; use fewer `processes`"
    assert described(FileNotFoundError(2, "No such file or directory", "x.txt")) == "x.txt: No such file or directory"
    assert described(OSError("odd")) == "odd"
    with pytest.raises(ZeroDivisionError) as caught:
        json.loads("1", parse_int=lambda _: 1 / 0)
    line = caught.traceback[-1].lineno + 1
    assert described(caught.value) == f"ZeroDivisionError: division by zero (test_local.py:{line})"


# One process of a sweep, in this one


class Line:
    """The worker's end of a pipe: gives these runs, keeps what is sent."""

    def __init__(self, *runs, at_progress=lambda: None):
        self.runs, self.sent, self.at_progress = list(runs), [], at_progress

    def recv(self):
        if not self.runs:
            raise EOFError
        return self.runs.pop(0)

    def send(self, message):
        if message[0] == "progress":
            self.at_progress()
        self.sent.append(message)


@pytest.fixture
def serve(loader, tmp_path):
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield lambda line, load=loader: _serve(line, load, tmp_path, 30.0)
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_process_does_one_run_after_the_other_until_it_is_sent_home(serve, tmp_path):
    first, bad, last = (replace(run, iterations=40) for run in fixed_runs(plan_of(40), "data")[:3])
    bad = replace(bad, settings=replace(bad.settings, h=1e38))
    line = Line(first, bad, last, None, "nobody takes this")
    serve(line)
    assert line.runs == ["nobody takes this"]
    assert line.sent[0] == ("ready", [])
    ends = [value for kind, value in line.sent if kind == "end"]
    assert (ends[0], ends[2], len(ends)) == (None, None, 3)
    message, diverged = ends[1]
    assert "not finite" in message
    assert diverged is True
    steps = [value.step for kind, value in line.sent if kind == "progress"]
    assert steps[:40] == list(range(1, 41))
    assert steps[-1] == 40
    assert set(stamps(tmp_path)) == {run.folder(tmp_path) / "run.json" for run in (first, last)}
    assert not bad.folder(tmp_path).exists()  # else a report would call it unfinished


def test_remarks_at_loading_are_heard_once(serve, loader, tmp_path, monkeypatch):
    """Each process loads the data and finds the same; the person hears of it once."""

    def remarking():
        notes.say("a tag was mended")
        return loader()

    line = Line(None)
    serve(line, remarking)
    assert line.sent == [("ready", ["a tag was mended"])]
    engine = LocalEngine(tmp_path, remarking, processes=3)
    worker = SimpleNamespace(ready=lambda: line.sent[0][1])
    monkeypatch.setattr(engine, "_new_worker", lambda: engine._workers.append(worker) or worker)
    with notes.gathered() as said:
        engine._hire(5)
    assert said == ["a tag was mended"]
    assert len(engine._workers) == 3


class AtOnce:
    """A worker that has done what it is given as soon as it is asked."""

    def __init__(self, *_):
        self.connection, self._other = Pipe()
        self._other.send("done")
        self.run, self.dead, self.done, self.dismissed = None, False, 0, None

    def ready(self):
        return []

    def give(self, run, board):
        assert self.run is None
        self.run = run
        board.start(run)

    def listen(self, board):
        run, self.run = self.run, None
        self.done += 1
        board.end(run, ("it was only given", False))
        return False

    def dismiss(self, stop):
        self.dismissed = stop

    def gone(self):
        self.connection.close()
        self._other.close()


def test_no_process_is_started_that_would_be_idle_and_an_idle_one_waits_for_the_next_call(tmp_path, monkeypatch):
    monkeypatch.setattr(local_module, "_Worker", AtOnce)
    engine = LocalEngine(tmp_path, Counted(), processes=4)
    engine.run([run_of(seed=1), run_of(seed=2)])
    first = list(engine._workers)
    assert [worker.done for worker in first] == [1, 1]
    finished = engine.run([run_of(seed=3)])
    assert engine._workers == first
    assert [worker.done for worker in first] == [2, 1]
    assert len(finished.failures) == 1
    engine.run([run_of(seed=k) for k in range(4, 13)])
    assert len(engine._workers) == 4
    assert sum(worker.done for worker in engine._workers) == 12
    workers = list(engine._workers)
    engine.close()
    assert [worker.dismissed for worker in workers] == [False] * 4


def gone():
    raise BrokenPipeError


@pytest.mark.parametrize("why", [gone, partial(signal.raise_signal, signal.SIGTERM)], ids=["caller gone", "SIGTERM"])
def test_a_process_saves_its_run_before_it_leaves(serve, tmp_path, why):
    run, other = fixed_runs(plan_of(400), "data")[:2]
    line = Line(run, other, at_progress=why)
    serve(line)
    assert [message for message in line.sent if message[0] != "progress"] == [("ready", [])]
    (step,) = half_done(tmp_path)
    assert 0 < step < 400
    assert line.runs == [other]


def test_sigterm_is_taken_once():
    before = signal.signal(signal.SIGTERM, _terminated)
    try:
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN  # the checkpoint is being written
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_process_that_waits_for_work_leaves_quietly_at_sigterm(serve):
    came = []
    signal.signal(signal.SIGTERM, lambda number, _frame: came.append(number))

    class Terminated(Line):
        def recv(self):
            signal.raise_signal(signal.SIGTERM)
            return super().recv()

    line = Terminated("nobody takes this")
    serve(line)
    assert line.sent == [("ready", [])]
    assert line.runs == ["nobody takes this"]
    assert came == []


def raising(error: Exception):
    def load():
        raise error

    return load


def test_a_process_that_cannot_load_says_why_and_leaves(serve):
    usage = UsageError("chunking takes one `train` file, not 2")
    for error, told in ((usage, usage), (MemoryError(), "out of memory; use fewer `processes`")):
        line = Line("nobody takes this")
        serve(line, raising(error))
        assert line.sent == [("broken", told)]
        assert line.runs == ["nobody takes this"]


class Ended:
    """A process that has ended, or that hangs."""

    def __init__(self, exitcode=None, hangs=False):
        self.exitcode, self.hangs, self.did = exitcode, hangs, []

    def join(self, seconds=None):
        self.did.append(("join", seconds))

    def is_alive(self):
        return self.hangs

    def kill(self):
        self.did.append("kill")

    def close(self):
        self.did.append("close")


def worker_of(process=None, ready=True):
    """The caller's side, and the worker's end of its pipe."""
    worker = object.__new__(_Worker)
    worker.connection, theirs = Pipe()
    worker.run, worker.dead, worker._ready, worker.process = None, False, ready, process or Ended()
    return worker, theirs


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, "ended with code 0"),
        (3, "ended with code 3"),
        (-signal.SIGTERM, "was ended by SIGTERM"),
        (-signal.SIGKILL, "was ended by SIGKILL; if memory is short, use fewer `processes`"),
    ],
)
def test_how_a_process_ended_is_said(code, words, tmp_path):
    worker, theirs = worker_of(Ended(code), ready=False)
    theirs.close()
    with pytest.raises(SparsezoError) as caught:
        worker.ready()
    assert str(caught.value) == f"a process {words} while it loaded the data"
    worker, theirs = worker_of(Ended(code))
    theirs.close()
    run, other = run_of(seed=1), run_of(seed=2)
    board = Board(tmp_path, [run, other], 0, 1, None)
    worker.give(run, board)
    assert worker.listen(board) is False
    assert (worker.run, worker.dead) == (None, True)
    assert board.failures == [Failure(run, f"its process {words}", diverged=False)]


def test_what_a_process_reports_reaches_the_board(tmp_path):
    worker, theirs = worker_of(ready=False)
    seen, run = [], run_of()
    board = Board(tmp_path, [run], 0, 1, seen.append)
    theirs.send(("ready", []))
    worker.give(run, board)
    assert theirs.recv() == run
    theirs.send(("progress", now(run, 25)))
    theirs.send(("end", ("it broke", True)))
    assert worker.listen(board) is True
    assert (seen[-1].steps_done, worker.run) == (25, run)
    assert worker.listen(board) is False
    assert (worker.run, worker.dead) == (None, False)
    assert board.failures == [Failure(run, "it broke", diverged=True)]


@pytest.mark.parametrize(("told", "kind"), [(UsageError("a"), UsageError), ("a", SparsezoError)])
def test_why_data_could_not_be_loaded_keeps_its_kind(told, kind):
    worker, theirs = worker_of(ready=False)
    theirs.send(("broken", told))
    with pytest.raises(SparsezoError, match=r"^a$") as caught:
        worker.ready()
    assert type(caught.value) is kind


def test_processes_are_sent_home_or_left_to_see_that_nobody_listens(tmp_path):
    worker, theirs = worker_of()
    worker.dismiss(stop=False)
    assert theirs.recv() is None
    worker.gone()
    assert worker.process.did == [("join", 60.0), "close"]
    worker, theirs = worker_of()
    worker.dismiss(stop=True)
    with pytest.raises(EOFError):
        theirs.recv()
    assert worker.process.did == []  # no signal: it saves its run first
    loading, _ = worker_of(ready=False)
    loading.dismiss(stop=True)
    assert loading.process.did == ["kill"]
    hanging, _ = worker_of(Ended(hangs=True))
    hanging.gone()
    assert hanging.process.did == [("join", 60.0), "kill", ("join", None), "close"]


@pytest.mark.parametrize("stop", [False, True])
def test_leaving_an_engine_dismisses_all_before_it_waits_for_any(tmp_path, stop):
    did = []

    class Watched:
        def __init__(self, name):
            self.name = name

        def dismiss(self, stop):
            did.append(("dismiss", self.name, stop))

        def gone(self):
            did.append(("gone", self.name))

    with contextlib.suppress(ZeroDivisionError), LocalEngine(tmp_path, Counted(), 2) as engine:
        engine._workers = [Watched(1), Watched(2)]
        if stop:
            raise ZeroDivisionError
    assert did == [("dismiss", 1, stop), ("dismiss", 2, stop), ("gone", 1), ("gone", 2)]
    assert engine._workers == []


def test_ctrl_c_is_held_back_while_a_process_starts():
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    try:
        with processes_without_ctrl_c():
            assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before | {signal.SIGUSR1, signal.SIGINT}
        assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before | {signal.SIGUSR1}
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def test_the_resource_tracker_starts_before_ctrl_c_is_held_back(monkeypatch):
    """Otherwise it starts with the first process, and when it has, it lets Ctrl-C through."""
    held = []

    def start():
        held.append(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ()))

    monkeypatch.setattr(resource_tracker, "ensure_running", start)
    with processes_without_ctrl_c():
        assert held == [False]
    assert held == [False]


def test_a_process_starts_with_ctrl_c_held_back_and_leaves_with_its_caller(tmp_path, monkeypatch):
    started, load = [], Counted()

    class Context:
        Pipe = staticmethod(Pipe)

        def Process(self, *, target, args, daemon):
            def start():
                masked = signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())
                started.append((target, args[1:], daemon, masked))
                args[0].send("a word")

            return SimpleNamespace(start=start)

    methods = []
    monkeypatch.setattr(local_module, "get_context", lambda method: methods.append(method) or Context())
    worker = _Worker(load, tmp_path, 12.5)
    assert methods == ["spawn"]
    assert started == [(_serve, (load, tmp_path, 12.5), True, True)]
    assert worker.connection.recv() == "a word"
    assert worker.connection.poll(0)  # at its end: the other one is the process's alone
    assert (worker.run, worker.dead) == (None, False)


# How far it is


def test_the_board_in_figures(tmp_path, monkeypatch):
    clock = SimpleNamespace(now=1000.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(progress_module, "time", clock)
    a, b, c = run_of("x", 1000, seed=1), run_of("x", 1000, seed=2), run_of("y", 500, seed=3)
    seen = []
    board = Board(tmp_path, [a, b, c], found=3, processes=2, progress=seen.append)
    board.start(a)
    clock.now = 1001.0
    board.start(c)
    board.update(c, now(c, 0, 0.0))
    assert seen.pop() == Overview(6, 3, 0, 2500, 0, None, ((str(a), 0.0), (str(c), 0.0)))
    clock.now = 1004.0
    board.update(a, now(a, 100, 2.0))
    # x takes 1/50 s a step, y perhaps as long: 18 + 20 + 10 s on two processes; 2 s of 4 s on each were learning
    assert seen.pop() == Overview(6, 3, 0, 2500, 100, pytest.approx(24 * 8 / 2), ((str(a), 0.1), (str(c), 0.0)))
    clock.now = 1009.0
    board.follow(c)(now(c, 250, 12.5))
    # y 1/20 s: 18 + 20 + 12.5 s; 14.5 s of 18 s
    left = pytest.approx(50.5 / 2 * 18 / 14.5)
    assert seen.pop() == Overview(6, 3, 0, 2500, 350, left, ((str(a), 0.1), (str(c), 0.5)))
    board.end(a, None)
    # 20 + 12.5 s, but one of them takes 20 s
    assert seen.pop() == Overview(6, 4, 0, 2500, 1250, pytest.approx(20 * 18 / 14.5), ((str(c), 0.5),))
    board.end(c, ("it broke", True))
    assert seen.pop() == Overview(6, 5, 1, 2500, 1500, pytest.approx(20 * 18 / 14.5), ())
    assert board.failures == [Failure(c, "it broke", diverged=True)]
    b.folder(tmp_path).mkdir(parents=True)
    (b.folder(tmp_path) / "checkpoint").touch()
    board.start(b)
    board.update(b, now(b, 500, 30.0))  # 30 s, but most of it long ago
    assert seen.pop().seconds_left == pytest.approx(500 * 30 / 500 * 18 / 14.5)
    clock.now = 1010.0
    board.update(b, now(b, 600, 48.0))
    assert seen.pop().seconds_left == pytest.approx(400 * 48 / 600)  # 18 + 14.5 s of learning in 20 s: no waiting
    board.end(b, None)
    assert seen.pop() == Overview(6, 6, 1, 2500, 2500, 0.0, ())
    assert not seen


def test_time_left_when_all_that_is_known_is_where_a_run_goes_on(tmp_path, monkeypatch):
    clock = SimpleNamespace(now=1000.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(progress_module, "time", clock)
    run, seen = run_of("x", 1000, seed=1), []
    board = Board(tmp_path, [run], found=0, processes=2, progress=seen.append)
    run.folder(tmp_path).mkdir(parents=True)
    (run.folder(tmp_path) / "checkpoint").touch()
    board.start(run)
    clock.now = 1003.0  # it was read
    board.update(run, now(run, 600, 12.0))
    assert seen.pop().seconds_left == pytest.approx(400 * 12 / 600)


def test_a_board_that_nobody_looks_at(tmp_path):
    run = run_of()
    board = Board(tmp_path, [run], 0, 1, None)
    board.start(run)
    board.update(run, now(run, 10))
    board.end(run, ("it broke", False))
    assert board.failures == [Failure(run, "it broke", diverged=False)]
