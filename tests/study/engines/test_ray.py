"""Sweeps on a real Ray: the same results as on this machine's processes, whoever is killed on the way.

Ray is started once for all of them (``own_ray``). Where it is not installed they are skipped; in CI (SPARSEZO_RAY=must,
which .ci/run sets) they then fail.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
import time
from collections import Counter
from functools import partial
from pathlib import Path

import pytest
from sweeps import HANGS, ITERATIONS, LOOKS, Sweep, plan_text, results, small_runs, stamps, steps

from sparsezo.errors import SparsezoError
from sparsezo.study.engines import ray as ray_module
from sparsezo.study.engines.local import LocalEngine
from sparsezo.study.engines.ray import RayEngine
from sparsezo.study.plan import parse_experiment
from sparsezo.study.runs import fixed_runs
from sparsezo.tasks.loading import Files, Loaded
from sparsezo.tasks.registry import task_spec

SEEDS = (3, 4, 5, 6)


def runs():
    return small_runs(seeds=SEEDS)


@pytest.fixture(scope="module")
def with_ray(own_ray):
    for name in (__name__, "sweeps"):
        own_ray.ray.cloudpickle.register_pickle_by_value(sys.modules[name])
    return own_ray


@pytest.fixture(scope="module")
def reference(loader, tmp_path_factory):
    out = tmp_path_factory.mktemp("reference")
    assert not LocalEngine(out, loader, processes=1).run(runs()).failures
    return results(out)


# With the Ray of this process


def test_the_results_are_those_of_the_local_engine(with_ray, loader, reference, tmp_path):
    seen = []
    with RayEngine(tmp_path, loader) as engine:
        finished = engine.run(runs()[:5])
        assert (len(finished.records), finished.failures) == (5, ())
        before = stamps(tmp_path)
        actors = [worker.actor for worker in engine._workers]
        assert set(engine.run(runs(), seen.append).records) == set(reference)
        assert [worker.actor for worker in engine._workers] == actors  # who has the data keeps it
        assert len(actors) == 2
    assert before.items() <= stamps(tmp_path).items()
    assert results(tmp_path) == reference
    assert (seen[-1].runs, seen[-1].done, seen[-1].steps_done, seen[-1].seconds_left) == (12, 12, 7 * ITERATIONS, 0)
    assert with_ray.ray.is_initialized()  # it was there before the engine


class Watched:
    """A task that writes down every look at dev, and in the middle of some runs kills its own process, once."""

    def __init__(self, task, out: Path, victims: tuple[str, ...], *, always: bool = False) -> None:
        self._task, self._out, self._victims, self._always = task, out, victims, always
        self._looks = Counter()

    def __getattr__(self, name):
        if name == "_task":  # while it is unpacked
            raise AttributeError(name)
        return getattr(self._task, name)

    def quality(self, problem, gold, outputs):
        run = threading.current_thread().name
        with open(self._out / "looks", "a") as looks:
            looks.write(f"{run}\n")
        self._looks[run] += 1
        if self._looks[run] == LOOKS // 2 and run in self._victims and self._first(run):
            # What was saved after the look before the last has gone out with the last one's report.
            while not self._always and steps(self._out).get(run, 0) < (LOOKS // 2 - 3) * ITERATIONS // (LOOKS - 1):
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGKILL)
        return self._task.quality(problem, gold, outputs)

    def _first(self, run: str) -> bool:
        try:
            (self._out / f"killed-{run}").touch(exist_ok=self._always)
        except FileExistsError:
            return False
        return True


def watched(loader, out: Path, victims: tuple[str, ...], *, always: bool = False) -> Loaded:
    loaded = loader()
    return Loaded(Watched(loaded.task, out, victims, always=always), loaded.data, loaded.W)


def test_runs_whose_workers_are_killed_go_on_from_their_checkpoints(with_ray, loader, reference, tmp_path):
    victims = (runs()[1].hash, runs()[6].hash)
    said = []
    task = partial(watched, loader, tmp_path, victims)
    with RayEngine(tmp_path, task, 2, checkpoint_seconds=0.0, say=said.append) as engine:
        assert not engine.run(runs()).failures
    assert results(tmp_path) == reference
    assert sorted(path.name for path in tmp_path.glob("killed-*")) == sorted(f"killed-{run}" for run in victims)
    died = [line.split(": its worker died (")[0] for line in said if ": its worker died (" in line]
    assert sorted(died) == sorted(str(run) for run in runs() if run.hash in victims)
    looks = Counter((tmp_path / "looks").read_text().split())
    for run in reference:
        # A look that was not handed in is taken again, and no more.
        assert looks[run] - LOOKS in ((0, 1, 2) if run in victims else (0,))


@pytest.mark.torture  # half a minute: Ray notices each death late
def test_a_run_that_kills_its_workers_fails_and_the_others_do_not(with_ray, loader, tmp_path, monkeypatch):
    monkeypatch.setattr(ray_module, "RETRIES", 1)
    bad = runs()[0]
    task = partial(watched, loader, tmp_path, (bad.hash,), always=True)
    with RayEngine(tmp_path, task, 1) as engine:
        finished = engine.run([bad, runs()[8]])
    (failure,) = finished.failures
    assert (failure.run, failure.diverged) == (bad, False)
    assert failure.message.startswith("its worker died 2 times (")
    assert failure.message.endswith("); if memory is short, use fewer `processes`")
    assert list(finished.records) == [runs()[8].hash]


def test_failures_and_data_that_cannot_be_worked_with_are_told_as_they_are(with_ray, loader, tmp_path, monkeypatch):
    text = plan_text(seeds=SEEDS) + "h = 1e38\n"
    wild, tame = (fixed_runs(parse_experiment(text, ""), "data")[at] for at in (8, 0))
    with RayEngine(tmp_path / "a", loader, 1) as engine:
        finished = engine.run([wild, tame])
        assert [(failure.run, failure.diverged) for failure in finished.failures] == [(wild, True)]
        assert list(finished.records) == [tame.hash]
    nowhere = partial(task_spec("chunking").load, Files((str(tmp_path / "no.txt"),), "30"))
    with pytest.raises(SparsezoError, match=r"no\.txt: no such file"), RayEngine(tmp_path / "b", nowhere) as engine:
        engine.run(runs())
    monkeypatch.setattr(ray_module, "__version__", "0.0")
    with pytest.raises(
        SparsezoError, match=r"has sparsezo .*, and this is 0\.0; install the same version on all nodes"
    ):
        RayEngine(tmp_path / "c", loader).run(runs())


def descendants() -> list[int]:
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    found = [os.getpid()]
    for process in found:
        found += [child for child, parent in parents.items() if parent == process]
    return found


def listening(processes: list[int]) -> set[str]:
    """Addresses in the kernel's hexadecimal, of sockets that processes listen at."""
    sockets = set()
    for process in processes:
        for link in Path(f"/proc/{process}/fd").glob("*"):
            with contextlib.suppress(OSError):
                sockets.add(os.readlink(link))
    rows = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()]
    return {row[1].split(":")[0] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in sockets}


@pytest.mark.skipif(not Path("/proc/net/tcp6").exists(), reason="reads /proc")
def test_nothing_listens_to_others_and_nothing_is_sent_to_rays_makers(with_ray):
    processes = descendants()
    loopback = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
    addresses = listening(processes)
    assert addresses
    assert addresses <= loopback
    names = {Path(f"/proc/{process}/comm").read_text().strip(): process for process in processes}
    for name in ("raylet", "gcs_server"):  # others give their environment's place to their titles
        environment = Path(f"/proc/{names[name]}/environ").read_bytes().split(b"\0")
        assert b"RAY_USAGE_STATS_ENABLED=0" in environment


@pytest.mark.parametrize("address", ["ray://127.0.0.1:1", "auto", pytest.param("SILENT", marks=pytest.mark.torture)])
def test_an_address_where_no_ray_is_is_one_line(with_ray, program, folder, tmp_path, monkeypatch, address):
    (tmp_path / "plan.toml").write_text(plan_text())
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = address.replace("SILENT", f"ray://127.0.0.1:{silent.getsockname()[1]}")
        words = ["reproduce", tmp_path / "plan.toml", "--data", folder, "-o", tmp_path / "out", "--engine", "ray"]
        code, out, err = program(*words, "--ray-address", address)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"sparsezo: --ray-address {address}: cannot be reached (")
    assert not list(tmp_path.glob("out/runs/*"))


# In a process of its own, on the same Ray by its address


@pytest.fixture
def sweep(with_ray, folder, tmp_path):
    address = with_ray.ray.get_runtime_context().gcs_address
    environment = {"RAY_ADDRESS": address, "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
    started = Sweep(tmp_path / "out", folder, 2, plan_text(seeds=SEEDS), "auto", **environment)
    yield started
    started.end()


@pytest.mark.torture  # a cluster is started twice
def test_the_caller_may_be_killed_and_the_same_command_goes_on(sweep, reference):
    sweep.process.kill()
    sweep.process.wait()
    before = stamps(sweep.out)
    assert len(before) == 2
    assert len(steps(sweep.out)) == 2
    sweep.open_gate()
    sweep.left()
    again = sweep.start()
    assert again.communicate(timeout=HANGS) == ("", "")
    assert again.returncode == 0
    assert before.items() <= stamps(sweep.out).items()
    for name in ("at-*", "gate", "plan.toml", "sweep.py"):
        for path in sweep.out.glob(name):
            path.unlink()
    assert results(sweep.out) == reference


@pytest.mark.torture  # a cluster of its own
def test_ctrl_c_stops_in_one_line_and_another_engine_goes_on(sweep, loader, reference):
    os.killpg(sweep.process.pid, signal.SIGINT)
    sweep.open_gate()
    assert sweep.left() == ("", "stopped; the same command goes on from there\n")
    assert sweep.process.returncode == 130
    left = steps(sweep.out)
    assert len(stamps(sweep.out)) + len(left) == 4
    assert all(ITERATIONS // 2 <= step < ITERATIONS for step in left.values())
    before = stamps(sweep.out)
    assert not LocalEngine(sweep.out, loader, processes=1).run(runs()).failures
    assert before.items() <= stamps(sweep.out).items()
    assert results(sweep.out) == reference
