"""bench scaling: one process beside two workers, and what a model (theory/workers.py) makes of their parts' costs.

    sparsezo bench scaling -o results/scaling-workers

One process with batch 1, one with the batch and two workers take turns; the best round of each counts. A transport is a
line in TRANSPORTS: an agency that gives the crew its workers.
"""

from __future__ import annotations

import importlib.util
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsezo.bench.chunking import bench_corpus
from sparsezo.bench.scaling_costs import cpu_seconds, measure_link, measure_work
from sparsezo.cli import show
from sparsezo.identity import known_by
from sparsezo.learner import Learner
from sparsezo.settings import Settings
from sparsezo.tasks.base import Problem
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.theory.workers import (
    MOST_WORKERS,
    Link,
    Table,
    Work,
    balanced_batch,
    best_workers,
    least_bandwidth,
    least_batch,
    run_seconds,
    speedup,
)
from sparsezo.workers.channel import Agency, Channel
from sparsezo.workers.crew import Crew

SETTINGS = Settings("two-point", "score", 0.001, 0.1)
BATCHES = (64, 1024, 16_384, 262_144)
LARGE_BATCH = 16_384  # of the bound, of whole runs, and of other bandwidths
WORKERS = tuple(2**k for k in range(MOST_WORKERS.bit_length()))
SIZES = (3_000_000, 30_000_000, 1_000_000_000)  # n
RUN = 100_000_000  # steps of a run whose beginning is counted, too
NETWORKS = {"10 Gb/s": 1.25e9, "1 Gb/s": 1.25e8, "100 Mb/s": 1.25e7}  # bytes a second
NETWORK_LATENCY = 50e-6  # seconds, within a data centre
STEPS = 32_768


def _local() -> Agency:
    from sparsezo.workers.local import LocalAgency

    return LocalAgency()


def _ray() -> Agency:
    from sparsezo.workers.ray import RayAgency

    return RayAgency(None, 2)


@dataclass(frozen=True)
class Transport:
    agency: Callable[[], Agency]  # for two workers; made anew for each batch
    needs: tuple[str, ...] = ()  # modules
    least_batch: int = 1  # that is worth measuring

    def missing(self) -> list[str]:
        return [name for name in self.needs if importlib.util.find_spec(name) is None]


TRANSPORTS = {"local": Transport(_local), "ray": Transport(_ray, ("ray",), 1024)}


@dataclass(frozen=True)
class Scale:
    """How much is measured."""

    sentences: int | None
    warm: int  # steps learned before
    steps: int  # timed in a round, or a batch if that is more
    batches: tuple[int, ...]
    rounds: int

    @classmethod
    def of(cls, rounds: int, steps: int | None, *, quick: bool) -> Scale:
        if quick:
            return cls(400, 20_000, steps or 4096, BATCHES[:2], min(rounds, 2))
        return cls(None, 500_000, steps or STEPS, BATCHES, rounds)


@dataclass(frozen=True)
class Setup:
    problem: Problem
    gold: Any
    W: NDArray[Any]
    scale: Scale

    def learner(self, batch: int) -> Learner:
        learner = Learner(self.problem, replace(SETTINGS, batch=batch), self.W)
        learner.run(self.gold, 0)  # compiles, the first time on a machine
        return learner


def measure(data: Path | None, rounds: int, steps: int | None = None, *, quick: bool = False) -> dict[str, Any]:
    scale = Scale.of(rounds, steps, quick=quick)
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    corpus, data_name = bench_corpus(data, scale.sentences)
    task, corpus = Chunking.fit(corpus, only="NP")
    problem, gold = task.problem(corpus), task.gold(corpus)
    show.note(f"learning for {scale.warm:,} steps")
    learner = Learner(problem, SETTINGS)
    learner.run(gold, scale.warm)
    setup = Setup(problem, gold, learner.weights(), scale)
    show.note("what a worker does")
    work = measure_work(problem, gold, SETTINGS, setup.W, 4 * scale.rounds)
    hashing = min(cpu_seconds(known_by, learner.state) for _ in range(scale.rounds)) / setup.W.size
    links: dict[str, Link] = {}
    points: list[dict[str, Any]] = []
    for name, transport in TRANSPORTS.items():
        if missing := transport.missing():
            show.note(f"not measured: workers on {name}, which need {' and '.join(missing)}")
            continue
        for batch in (batch for batch in scale.batches if batch >= transport.least_batch):
            show.note(f"2 workers ({name}), batch {batch:,}")
            point, link = _point(setup, transport.agency(), batch, work)
            links.setdefault(name, link)
            points.append({"transport": name, "batch": batch, "workers": 2, **point})
    table = Table(setup.W.size, setup.W.itemsize, hashing=hashing)
    _compare(points, work, links, table)
    shape = {"n": setup.W.size, "n_active": float(problem.n_active.mean()), "labels": problem.n_labels}
    machine = {"cpus": os.cpu_count(), "load": load, "settings": str(SETTINGS), "learned": scale.warm}
    return {
        "bench": "scaling",
        "data": data_name,
        **machine,
        **shape,
        "work": asdict(work),
        "large_batch": LARGE_BATCH,
        "bound": work.at(LARGE_BATCH).bound,
        "hashing": hashing,
        "links": {name: asdict(link) for name, link in links.items()},
        "points": points,
        **predictions(work, links["local"], table),
    }


# Measured


class _Watched:
    """An agency, and whom it has hired."""

    def __init__(self, agency: Agency) -> None:
        self.share, self.close, self._hire = agency.share, agency.close, agency.hire
        self.newest: Channel | None = None

    def hire(self) -> Channel:
        self.newest = self._hire()
        return self.newest


def _point(setup: Setup, agency: Agency, batch: int, work: Work) -> tuple[dict[str, float | None], Link]:
    """Steps a second of one process with batch 1, one with the batch, and two workers."""
    steps = max(batch, setup.scale.steps // batch * batch)
    watched = _Watched(agency)
    plain, one, two = setup.learner(1), setup.learner(batch), setup.learner(batch)
    with Crew(two, setup.gold, workers=2, agency=watched) as crew:
        crew.gather()
        worker = watched.newest
        assert worker is not None, "two workers, of which this process is one"
        link = measure_link(worker, 0, work.evaluate, setup.scale.rounds)
        crew.run(steps)
        wall, cpu = np.empty((setup.scale.rounds, 3)), np.empty((setup.scale.rounds, 3))
        for k in range(setup.scale.rounds):
            wall[k, 0], cpu[k, 0] = _timed(plain.run, setup.gold, steps)
            wall[k, 1], cpu[k, 1] = _timed(one.run, setup.gold, steps)
            before = _cpu_of(worker)
            wall[k, 2], mine = _timed(crew.run, steps)
            cpu[k, 2] = max(_cpu_of(worker) - before, mine)  # nan where it cannot be known
    rates = dict(zip(("plain", "one", "two"), steps / wall.min(axis=0), strict=True))
    busier = cpu.min(axis=0)
    cpu_gain = float(busier[1] / busier[2]) if np.isfinite(busier[2]) else None
    times = {"times_one": rates["two"] / rates["one"], "times_plain": rates["two"] / rates["plain"]}
    return {**{f"{name}_steps": float(rate) for name, rate in rates.items()}, **times, "cpu_times_one": cpu_gain}, link


def _timed(work: Callable[..., Any], *args: Any) -> tuple[float, float]:
    """Seconds on the wall, and of this thread's CPU."""
    began = time.perf_counter()
    cpu = cpu_seconds(work, *args)
    return time.perf_counter() - began, cpu


def _cpu_of(channel: Channel) -> float:
    """Seconds of CPU that the process at the other end has had; nan where that cannot be known."""
    process = getattr(channel, "process", None)
    try:
        return int(Path(f"/proc/{process.pid}/schedstat").read_text().split()[0]) / 1e9 if process else np.nan
    except (OSError, ValueError):
        return np.nan


def _compare(points: list[dict[str, Any]], work: Work, links: dict[str, Link], table: Table) -> None:
    for point in points:
        batch, link = point["batch"], links[point["transport"]]
        point["model"] = speedup(work, link, batch, 2) / (1 + table.checking / work.at(batch).alone)
        point["off"] = point["times_one"] / point["model"] - 1


# Predicted


def predictions(work: Work, local: Link, table: Table) -> dict[str, Any]:
    links = {"this machine": local}
    for name, bandwidth in NETWORKS.items():
        links[name] = replace(local, latency=local.latency + NETWORK_LATENCY, bandwidth=min(bandwidth, local.bandwidth))
    curves = [
        {"link": name, "batch": batch, "workers": workers, "times_one": speedup(work, link, batch, workers)}
        for name, link in links.items()
        for batch in BATCHES
        for workers in WORKERS
        if workers <= batch
    ]
    best = [
        {"link": name, "batch": batch, "workers": workers, "times_one": speedup(work, link, batch, workers)}
        for name, link in links.items()
        for batch in BATCHES
        for workers in [best_workers(work, link, batch)]
    ]
    limits = [
        {
            "workers": workers,
            "least_batch": least_batch(work, links["10 Gb/s"], workers),
            "balanced_batch": balanced_batch(work, links["10 Gb/s"], workers),
            "least_bandwidth": {
                str(batch): least_bandwidth(work, links["10 Gb/s"], batch, workers) if workers <= batch else None
                for batch in BATCHES
            },
        }
        for workers in WORKERS[1:]
    ]
    return {
        "curves": curves,
        "best": best,
        "limits": limits,
        "sizes": [_size(work, links["10 Gb/s"], replace(table, n=n)) for n in SIZES],
    }


def _size(work: Work, link: Link, table: Table) -> dict[str, Any]:
    """A run from its beginning, everybody's snapshot included: steps as measured, and with steps twice as slow."""
    slow = replace(work, evaluate=2 * work.evaluate, apply=2 * work.apply, saved=2 * work.saved)

    def gain(work: Work, workers: int) -> float:
        alone, shared = (run_seconds(work, link, LARGE_BATCH, N, RUN, table) for N in (1, workers))
        return alone / shared

    best = max(WORKERS, key=lambda workers: gain(work, workers))
    return {
        "n": table.n,
        "bytes_a_worker": table.bytes,
        "joining": table.joining(link, 2),
        "checking": table.checking / work.at(LARGE_BATCH).alone,
        "workers": best,
        "times_one": gain(work, best),
        "times_one_slow": gain(slow, best),
        "times_one_1024": gain(work, MOST_WORKERS),
    }


def table(fields: dict[str, Any]) -> Any:
    from sparsezo.bench.scaling_tables import table

    return table(fields)
