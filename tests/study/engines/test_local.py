"""Sweeps: the same whatever the number of processes, nothing done twice, killed at any point, one failure alone."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import replace
from functools import partial
from multiprocessing import Pipe, resource_tracker
from pathlib import Path
from types import SimpleNamespace

import pytest
from sweeps import ITERATIONS, LOOKS, Sweep, plan_text, results, small_runs, stamps, steps

from sparsezo import messages
from sparsezo.cli.reproduce import run_reproduce
from sparsezo.errors import DivergedError, SparsezoError, UsageError
from sparsezo.settings import Settings
from sparsezo.signals import processes_without_ctrl_c
from sparsezo.study.engines import base as base_module
from sparsezo.study.engines import local as local_module
from sparsezo.study.engines.base import Failure, Overview, SweepProgress
from sparsezo.study.engines.local import LocalEngine, _serve, _terminated, _Worker, described
from sparsezo.study.records import write_curve, write_record
from sparsezo.study.runs import Run
from sparsezo.tasks.loading import Files
from sparsezo.tasks.registry import task_spec
from sparsezo.training import Progress


@pytest.fixture(scope="module")
def reference(loader, tmp_path_factory):
    out = tmp_path_factory.mktemp("reference")
    assert not LocalEngine(out, loader, processes=1).run(small_runs()).failures
    return results(out)


def test_one_process_and_two_give_the_same_and_nothing_is_done_twice(loader, tmp_path):
    runs = small_runs(2000)
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
    record = results(one.out)[runs[2].hash][0]
    assert (record["learner"], record["phase"], record["seed"], record["paper"]) == (
        *("comparison score", "fixed", 3),
        0.5,
    )
    assert set(record["versions"]) == {"sparsezo", "numpy", "numba", "python"}
    assert record["test_report"]["f1"] == record["result"]["test"]
    curve = results(one.out)[runs[2].hash][2]["curve.csv"]
    assert curve.startswith(b"iterations,average_loss,dev,answers,tokens,looked,corrections,whole,dev_loss\n0,0.0,0.")
    assert not list(tmp_path.glob("*/runs/*/checkpoint"))


@pytest.fixture
def sweep(folder, tmp_path):
    sweeps = []

    def start(out: Path, processes: int) -> Sweep:
        sweeps.append(Sweep(out, folder, processes, plan_text()))
        return sweeps[-1]

    yield start
    for each in sweeps:
        each.end()


def goes_on(out: Path, loader, reference) -> None:
    """To the same end, with nothing that was finished done again."""
    before = stamps(out)
    assert not LocalEngine(out, loader, processes=1).run(small_runs()).failures
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
    assert [*steps(out).values()] == [ITERATIONS // 2] * 2
    goes_on(out, loader, reference)


def test_all_killed_at_once_goes_on_from_the_checkpoints(loader, sweep, reference, tmp_path):
    out = tmp_path / "killed"
    killed = sweep(out, 2)
    os.killpg(killed.process.pid, signal.SIGKILL)
    killed.left()
    assert len(stamps(out)) == 2
    left, slice_before = steps(out).values(), ITERATIONS // 2 - ITERATIONS // (LOOKS - 1)
    assert len(left) == 2
    assert all(slice_before <= step < ITERATIONS // 2 for step in left)
    goes_on(out, loader, reference)


@pytest.mark.parametrize("processes", [1, 2])
def test_ctrl_c_stops_all_in_one_line(loader, sweep, reference, tmp_path, processes):
    out = tmp_path / "stopped"
    stopped = sweep(out, processes)
    os.killpg(stopped.process.pid, signal.SIGINT)  # as a terminal does: to all of them
    stopped.open_gate()
    assert stopped.left() == ("", "stopped; the same command goes on from there\n")
    assert stopped.process.returncode == 130
    left = steps(out).values()
    assert len(stamps(out)) + len(left) == 2 * processes  # nothing was begun after it
    assert all(ITERATIONS // 2 <= step < ITERATIONS for step in left)
    goes_on(out, loader, reference)


def test_a_run_that_fails_does_not_lose_the_others(folder, tmp_path, capsys):
    plan = tmp_path / "plan.toml"
    plan.write_text(plan_text(500) + "h = 1e38\n")  # first-order
    out = tmp_path / "out"
    with pytest.raises(SparsezoError, match="2 runs failed, for the reasons above") as caught:
        run_reproduce(str(plan), str(folder), phases="fixed", processes=1, out=out)
    assert caught.value.exit_code == 1
    assert capsys.readouterr().err.count("failed: first-order, fixed, h 1e+38, seed") == 2
    assert len(stamps(out)) == 4
    assert (out / "report" / "report.html").exists()
    plan.write_text(plan_text(600))
    with pytest.raises(UsageError, match=r"holds runs of another plan \(iterations differs\); name another folder"):
        run_reproduce(str(plan), str(folder), phases="fixed", processes=1, out=out)


def test_a_process_that_is_killed_loses_only_its_run(loader, tmp_path):
    with LocalEngine(tmp_path, loader, processes=2) as engine:
        victims = []

        def kill_one(_overview: object) -> None:
            if not victims:
                victims.append(engine._workers[0].process.pid)
                os.kill(victims[0], signal.SIGKILL)

        finished = engine.run(small_runs(), kill_one)
        message = "its process was ended by SIGKILL; if memory is short, use fewer `processes`"
        assert [(failure.message, failure.diverged) for failure in finished.failures] == [(message, False)]
        assert len(finished.records) == 5
        assert finished.failures[0].run.hash not in finished.records
        assert victims[0] not in [worker.process.pid for worker in engine._workers]
        assert len(engine._workers) == 2  # another took its place
        assert not engine.run(small_runs()).failures


def test_data_that_cannot_be_read_is_said_once(tmp_path):
    nowhere = partial(task_spec("chunking").load, Files((str(tmp_path / "no.txt"),), "30"))
    with (
        pytest.raises(SparsezoError, match=r"no.txt: no such file"),
        LocalEngine(tmp_path, nowhere, processes=2) as engine,
    ):
        engine.run(small_runs(100))


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

    def execute(run, out, prepared, progress=None, checkpoint_seconds=None):
        executed.append((run, prepared, checkpoint_seconds))
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
    def execute(run, out, prepared, progress, checkpoint_seconds):
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
    first, bad, last = (replace(run, iterations=40) for run in small_runs(40)[:3])
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
    reached = [value.step for kind, value in line.sent if kind == "progress"]
    assert reached[:10] == list(range(4, 41, 4))
    assert reached[-1] == 40
    assert set(stamps(tmp_path)) == {run.folder(tmp_path) / "run.json" for run in (first, last)}
    assert not bad.folder(tmp_path).exists()  # else a report would call it unfinished


def test_remarks_at_loading_are_heard_once(serve, loader, tmp_path, monkeypatch):
    """Each process loads the data and finds the same; the person hears of it once."""

    def remarking():
        messages.say("a tag was mended")
        return loader()

    line = Line(None)
    serve(line, remarking)
    assert line.sent == [("ready", ["a tag was mended"])]
    engine = LocalEngine(tmp_path, remarking, processes=3)
    worker = SimpleNamespace(ready=lambda: line.sent[0][1])
    monkeypatch.setattr(engine, "_new_worker", lambda: engine._workers.append(worker) or worker)
    with messages.gathered() as said:
        engine._start_workers(5)
    assert said == ["a tag was mended"]
    assert len(engine._workers) == 3


def gone():
    raise BrokenPipeError


@pytest.mark.parametrize("why", [gone, partial(signal.raise_signal, signal.SIGTERM)], ids=["caller gone", "SIGTERM"])
def test_a_process_saves_its_run_before_it_leaves(serve, tmp_path, why):
    run, other = small_runs(400)[:2]
    line = Line(run, other, at_progress=why)
    serve(line)
    assert [message for message in line.sent if message[0] != "progress"] == [("ready", [])]
    (step,) = steps(tmp_path).values()
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
    sweep = SweepProgress(tmp_path, [run, other], 0, 1, None)
    worker.give(run, sweep)
    assert worker.listen(sweep) is False
    assert (worker.run, worker.dead) == (None, True)
    assert sweep.failures == [Failure(run, f"its process {words}", diverged=False)]


def test_processes_are_sent_home_or_left_to_see_that_nobody_listens(tmp_path):
    worker, theirs = worker_of()
    worker.end(stop=False)
    assert theirs.recv() is None
    worker.join()
    assert worker.process.did == [("join", 60.0), "close"]
    worker, theirs = worker_of()
    worker.end(stop=True)
    with pytest.raises(EOFError):
        theirs.recv()
    assert worker.process.did == []  # no signal: it saves its run first
    loading, _ = worker_of(ready=False)
    loading.end(stop=True)
    assert loading.process.did == ["kill"]
    hanging, _ = worker_of(Ended(hangs=True))
    hanging.join()
    assert hanging.process.did == [("join", 60.0), "kill", ("join", None), "close"]


def test_the_resource_tracker_starts_before_ctrl_c_is_held_back(monkeypatch):
    """Otherwise it starts with the first process, and when it has, it lets Ctrl-C through."""
    held = []

    def start():
        held.append(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ()))

    monkeypatch.setattr(resource_tracker, "ensure_running", start)
    with processes_without_ctrl_c():
        assert held == [False]
    assert held == [False]


# How far it is


def test_how_far_a_sweep_is_in_figures(tmp_path, monkeypatch):
    clock = SimpleNamespace(now=1000.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(base_module, "time", clock)
    a, b, c = run_of("x", 1000, seed=1), run_of("x", 1000, seed=2), run_of("y", 500, seed=3)
    seen = []
    sweep = SweepProgress(tmp_path, [a, b, c], found=3, processes=2, progress=seen.append)
    sweep.start(a)
    clock.now = 1001.0
    sweep.start(c)
    sweep.update(c, now(c, 0, 0.0))
    assert seen.pop() == Overview(6, 3, 0, 2500, 0, None, ((str(a), 0.0), (str(c), 0.0)))
    clock.now = 1004.0
    sweep.update(a, now(a, 100, 2.0))
    # x takes 1/50 s a step, y perhaps as long: 18 + 20 + 10 s on two processes; 2 s of 4 s on each were learning
    assert seen.pop() == Overview(6, 3, 0, 2500, 100, pytest.approx(24 * 8 / 2), ((str(a), 0.1), (str(c), 0.0)))
    clock.now = 1009.0
    sweep.update(c, now(c, 250, 12.5))
    # y 1/20 s: 18 + 20 + 12.5 s; 14.5 s of 18 s
    left = pytest.approx(50.5 / 2 * 18 / 14.5)
    assert seen.pop() == Overview(6, 3, 0, 2500, 350, left, ((str(a), 0.1), (str(c), 0.5)))
    sweep.end(a, None)
    # 20 + 12.5 s, but one of them takes 20 s
    assert seen.pop() == Overview(6, 4, 0, 2500, 1250, pytest.approx(20 * 18 / 14.5), ((str(c), 0.5),))
    sweep.end(c, ("it broke", True))
    assert seen.pop() == Overview(6, 5, 1, 2500, 1500, pytest.approx(20 * 18 / 14.5), ())
    assert sweep.failures == [Failure(c, "it broke", diverged=True)]
    b.folder(tmp_path).mkdir(parents=True)
    (b.folder(tmp_path) / "checkpoint").touch()
    sweep.start(b)
    sweep.update(b, now(b, 500, 30.0))  # 30 s, but most of it long ago
    assert seen.pop().seconds_left == pytest.approx(500 * 30 / 500 * 18 / 14.5)
    clock.now = 1010.0
    sweep.update(b, now(b, 600, 48.0))
    assert seen.pop().seconds_left == pytest.approx(400 * 48 / 600)  # 18 + 14.5 s of learning in 20 s: no waiting
    sweep.end(b, None)
    assert seen.pop() == Overview(6, 6, 1, 2500, 2500, 0.0, ())
    assert not seen


def test_where_all_runs_fail_the_reasons_are_said(folder, tmp_path, capsys):
    plan = tmp_path / "plan.toml"
    head = plan_text(500).split("[[learner]]")[0]
    plan.write_text(head + '[[learner]]\nrule = "first-order"\nh = 1e38\n')
    with pytest.raises(SparsezoError, match="2 runs failed, for the reasons above") as caught:
        run_reproduce(str(plan), str(folder), phases="fixed", processes=1, out=tmp_path / "out")
    assert caught.value.exit_code == 1
    assert capsys.readouterr().err.count("failed: first-order, fixed, h 1e+38, seed") == 2


def test_time_left_when_all_that_is_known_is_where_a_run_goes_on(tmp_path, monkeypatch):
    clock = SimpleNamespace(now=1000.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(base_module, "time", clock)
    run, seen = run_of("x", 1000, seed=1), []
    sweep = SweepProgress(tmp_path, [run], found=0, processes=2, progress=seen.append)
    run.folder(tmp_path).mkdir(parents=True)
    (run.folder(tmp_path) / "checkpoint").touch()
    sweep.start(run)
    clock.now = 1003.0  # it was read
    sweep.update(run, now(run, 600, 12.0))
    assert seen.pop().seconds_left == pytest.approx(400 * 12 / 600)
