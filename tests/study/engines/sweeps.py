"""What tests of engines share: a small plan and its data, what runs leave, and a sweep in a process of its own."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

from sparsezo.kernels import loop
from sparsezo.model import load_model
from sparsezo.storage.checksummed import read_checksummed
from sparsezo.storage.container import read_container
from sparsezo.study.plan import parse_experiment
from sparsezo.study.records import MODEL, RECORD
from sparsezo.study.runs import fixed_runs
from sparsezo.tasks.chunking.synthetic import chunking_columns, generate_chunking
from sparsezo.tasks.loading import Files
from sparsezo.tasks.registry import task_spec

PLAN = """
name = "small"
task = "chunking"
iterations = ITERATIONS
evaluate_every = EVERY
seeds = SEEDS
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
ITERATIONS, LOOKS = 4000, 11
HANGS = 300  # seconds after which a test that waits for processes gives up
_TIMINGS = {"seconds", "us_per_iteration"}


def plan_text(iterations: int = ITERATIONS, seeds: tuple[int, ...] = (3, 4)) -> str:
    every = max(1, iterations // (LOOKS - 1))
    return PLAN.replace("ITERATIONS", str(iterations)).replace("EVERY", str(every)).replace("SEEDS", str([*seeds]))


def small_runs(iterations: int = ITERATIONS, seeds: tuple[int, ...] = (3, 4)):
    return fixed_runs(parse_experiment(plan_text(iterations, seeds), "small.toml"), "data")


def write_data(folder: Path) -> Path:
    (folder / "train.txt").write_text(chunking_columns(generate_chunking(90, seed=1)))
    (folder / "test.txt").write_text(chunking_columns(generate_chunking(30, seed=2)))
    return folder


def loader_of(folder: Path):
    files = Files((str(folder / "train.txt"),), "30", str(folder / "test.txt"), {"only": "NP"})
    return partial(task_spec("chunking").load, files)


def results(out: Path) -> dict[str, tuple]:
    """All that runs leave behind, but for timings, by hash."""
    found = {}
    for path in sorted(out.glob("runs/*/run.json")):
        record = read_checksummed(path)
        assert record["hash"] == path.parent.name
        record["result"] = {name: value for name, value in record["result"].items() if name not in _TIMINGS}
        W = load_model(path.parent / MODEL).W.tobytes()  # its file knows how long it took
        others = {each.name: each.read_bytes() for each in path.parent.iterdir() if each.name not in (RECORD, MODEL)}
        found[path.parent.name] = (record, W, others)
    return found


def stamps(out: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in out.glob("runs/*/run.json")}


def steps(out: Path) -> dict[str, int]:
    """Where checkpoints of unfinished runs stand, by hash."""
    found = {}
    for path in out.glob("runs/*/checkpoint"):
        with contextlib.suppress(FileNotFoundError):
            if not path.with_name("run.json").exists():
                found[path.parent.name] = int(read_container(path, "checkpoint")[1]["counts"][loop.STEP])
    return found


# A sweep in a process of its own. Every worker of it waits in the middle of its second run, at a look at dev, until the
# gate opens.
SCRIPT = """
import fcntl, os, signal, sys
from functools import partial
from pathlib import Path
import typer
from sparsezo.cli.show import stopping_cleanly
from sparsezo.study.engines.local import LocalEngine
from sparsezo.study.engines.ray import RayEngine
from sparsezo.study.plan import read_experiment
from sparsezo.study.runs import fixed_runs
from sparsezo.tasks.loading import Files, Loaded
from sparsezo.tasks.registry import task_spec

class Gated:
    def __init__(self, task, out, at):
        self._task, self._out, self._at, self._looks = task, out, at, 0

    def __getattr__(self, name):
        if name == "_task":  # while it is unpacked
            raise AttributeError(name)
        return getattr(self._task, name)

    def quality(self, problem, gold, outputs):
        self._looks += 1
        if self._looks == self._at:
            (self._out / f"at-{os.getpid()}").touch()
            with open(self._out / "gate") as gate:
                fcntl.flock(gate, fcntl.LOCK_SH)
        return self._task.quality(problem, gold, outputs)

def gated(files, out, at):
    loaded = task_spec("chunking").load(files)
    return Loaded(Gated(loaded.task, out, at), loaded.data, loaded.W)

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # as in a terminal, however the tests were started
    (out, folder), (processes, at), address = map(Path, sys.argv[1:3]), map(int, sys.argv[3:5]), sys.argv[5]
    files = Files((str(folder / "train.txt"),), "30", str(folder / "test.txt"), {"only": "NP"})
    make = partial(RayEngine, address=address) if address else LocalEngine
    try:
        with stopping_cleanly(), make(out, partial(gated, files, out, at), processes, checkpoint_seconds=0.0) as engine:
            engine.run(fixed_runs(read_experiment(out / "plan.toml"), "data"))
    except typer.Exit as stop:
        sys.exit(stop.exit_code)
"""


class Sweep:
    """At a point where each of its workers has finished one run and is in the middle of another."""

    def __init__(self, out: Path, folder: Path, processes: int, plan: str, address: str = "", **more: str) -> None:
        out.mkdir()
        (out / "plan.toml").write_text(plan)
        (out / "sweep.py").write_text(SCRIPT)
        self.out, self.processes = out, processes
        at = LOOKS + LOOKS // 2 + 1 + (2 if processes > 1 else 0)  # compiling looks twice
        self.command = [sys.executable, str(out / "sweep.py"), str(out), str(folder), str(processes), str(at), address]
        self.environment = os.environ | more
        self.gate = (out / "gate").open("w")
        fcntl.flock(self.gate, fcntl.LOCK_EX)
        self.process = self.start()
        try:
            self._wait(until=time.monotonic() + HANGS, handed_in=bool(address))
        except BaseException:
            self.end()
            raise

    def start(self) -> subprocess.Popen:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(self.command, env=self.environment, start_new_session=True, **pipes)

    def _wait(self, until: float, *, handed_in: bool) -> None:
        """For all to come to the gate, and for their checkpoints where they have to be handed in."""
        while len(list(self.out.glob("at-*"))) < self.processes or (handed_in and not self._has_checkpoints()):
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < until, "nobody came to the gate"
            time.sleep(0.02)

    def _has_checkpoints(self) -> bool:
        found = steps(self.out).values()
        return len(found) == self.processes and all(step >= 0.3 * ITERATIONS for step in found)

    def open_gate(self) -> None:
        self.gate.close()

    def left(self) -> tuple[str, str]:
        """What was said until all of its processes had gone: the pipes end with the last of them."""
        return self.process.communicate(timeout=HANGS)

    def end(self) -> None:
        self.open_gate()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()
