"""One run of an experiment and its folder: what it is known by, what it leaves behind, and doing it.

    run = Run("chunking", "chunking", "two-point score", "fixed", Settings(seed=1), 4_000_000, 40_000, data=identity)
    record = execute(run, out, Bench(load()))       # OUT/runs/<hash>/run.json, curve.csv, model.szo, test.counts
    find(run, out)                                  # the record of a finished run, or None

A run is known by the hash of its settings, its data and its length, never by its place in a list (records.py has what
its files are). A run that was stopped goes on from its checkpoint. What is damaged counts as not done, and is said.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

from sparsezo import __version__
from sparsezo.errors import DamagedError, DataError, DivergedError
from sparsezo.experiments.labels import Labelling, Part, start_weights
from sparsezo.experiments.phases import PHASES
from sparsezo.experiments.plan import Experiment
from sparsezo.experiments.records import (
    COUNTS,
    CURVE,
    MODEL,
    read_counts,
    read_curve,
    read_record,
    write_counts,
    write_curve,
    write_record,
)
from sparsezo.interrupts import CHECKPOINT_SECONDS
from sparsezo.settings import Settings
from sparsezo.storage.container import read_container
from sparsezo.tasks.base import Problem, Task
from sparsezo.tasks.loading import Data, Loaded
from sparsezo.training import Progress, Training

CHECKPOINT = "checkpoint"


@dataclass(frozen=True)
class Run:
    experiment: str
    task: str
    learner: str  # its name
    phase: str  # one of PHASES
    settings: Settings  # with the seed
    iterations: int
    evaluate_every: int
    data: str  # what the data is known by: a hash of its content
    paper: float | None = None
    keep_model: bool = True
    answers: int | None = None  # that end it; iterations are then a bound
    looks: tuple[int, ...] = ()  # numbers of answers; as in the plan, like what follows
    test_looks: bool = False
    labels: str | None = None
    start: str | None = None
    passes: int | None = None  # of labels and start

    @property
    def length(self) -> int:
        """In answers where these end it, else in iterations."""
        return self.answers or self.iterations

    @property
    def hash(self) -> str:
        known_by = {
            "task": self.task,
            "settings": self.settings.as_dict(),
            "iterations": self.iterations,
            "evaluate_every": self.evaluate_every,
            "data": self.data,
            "phase": self.phase,
            **self._by_answers,
        }
        text = json.dumps(known_by, sort_keys=True, separators=(",", ":"))
        return hashlib.blake2b(text.encode(), digest_size=10).hexdigest()

    @property
    def _by_answers(self) -> dict[str, Any]:
        """What only runs that answers end have, where it says anything."""
        named = {name: getattr(self, name) for name in ("answers", "test_looks", "labels", "start", "passes")}
        looks = {"looks": list(self.looks)} if self.looks else {}
        return {name: value for name, value in named.items() if value} | looks

    def folder(self, out: Path) -> Path:
        return out / "runs" / self.hash

    def __str__(self) -> str:
        mu = f", mu {self.settings.mu:g}" if self.settings.mu else ""
        return f"{self.learner}, {self.phase}, h {self.settings.h:g}{mu}, seed {self.settings.seed}"


def fixed_runs(plan: Experiment, data: str) -> list[Run]:
    """Every learner with every seed at the settings that are fixed for all (the paper's figure)."""
    return [
        Run(
            plan.name,
            plan.task,
            spec.name,
            "fixed",
            spec.settings(seed),
            plan.iterations,
            plan.interval,
            data,
            spec.paper,
            answers=plan.answers,
            looks=plan.looks,
            test_looks=plan.test_looks,
            labels=spec.labels,
            start=spec.start,
            passes=spec.passes if spec.labels or spec.start else None,
        )
        for spec in plan.learners
        if spec.fixed
        for seed in plan.seeds
    ]


Say = Callable[[str], None]


def find(run: Run, out: Path, say: Say = lambda text: None) -> dict[str, Any] | None:
    """The record of a finished run. The same work done in another phase is taken over, not done again."""
    record = _read(run, out, say)
    if record is not None:
        return record
    for phase in PHASES:
        twin = replace(run, phase=phase)
        if phase != run.phase and (record := _read(twin, out, say)) is not None:
            files = [
                CURVE,
                *([MODEL] if run.keep_model else []),
                *([COUNTS] if COUNTS in record.get("files", {}) else []),
            ]
            if all((twin.folder(out) / name).exists() for name in files):
                return _take_over(run, out, twin, record, files)
    return None


def _read(run: Run, out: Path, say: Say) -> dict[str, Any] | None:
    """None also for what is damaged, which is said."""
    folder = run.folder(out)
    try:
        record = read_record(folder)
        if record is not None:
            read_curve(folder, record)
            read_counts(folder, record)
    except DamagedError as error:
        say(str(error))
        return None
    return record


def drop_damaged_checkpoint(run: Run, out: Path, say: Say) -> None:
    """A run that cannot go on starts anew."""
    path = run.folder(out) / CHECKPOINT
    if not path.exists():
        return
    try:
        read_container(path, "checkpoint")
    except DataError as error:
        say(f"{error}; its run starts anew")
        path.unlink(missing_ok=True)


def _take_over(run: Run, out: Path, twin: Run, record: dict[str, Any], files: list[str]) -> dict[str, Any]:
    folder = run.folder(out)
    folder.mkdir(parents=True, exist_ok=True)
    for name in files:
        with contextlib.suppress(FileNotFoundError):
            (folder / name).unlink()
        try:
            os.link(twin.folder(out) / name, folder / name)
        except OSError:  # a file system without links
            shutil.copyfile(twin.folder(out) / name, folder / name)
    return _write_record(run, folder, record["result"], record.get("test_report"), record.get("versions") or {})


class Bench:
    """A task and its data with everything made once that runs share: the arrays of its parts."""

    def __init__(self, loaded: Loaded) -> None:
        self.plain = loaded.task  # for data that comes and goes
        self.task = cast(Task, _Remembering(loaded.task))
        self.data, self.W = loaded.data, loaded.W

    def compile(self) -> None:
        """One step of the dearest kind, so that whatever has to be compiled is compiled."""
        data = Data(self.data.train, self.data.dev)
        Training(self.task, data, Settings("two-point", "all", 1e-6, 1e-6), 1, W=self.W).go()


class _Remembering:
    """A task that remembers the arrays it has made of data; they are only read."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._problems: dict[tuple[int, bool, bool, bool], Problem] = {}
        self._gold: dict[int, Any] = {}

    def problem(self, data: Any, *, learn: bool = True, risk: bool = False, asks: bool = False) -> Problem:
        key = (id(data), learn, risk, asks)
        if key not in self._problems:
            more = {"asks": True} if asks else {}  # a task that asks no questions need not know the word
            self._problems[key] = self._task.problem(data, learn=learn, risk=risk, **more)
        return self._problems[key]

    def gold(self, data: Any) -> Any:
        if id(data) not in self._gold:
            self._gold[id(data)] = self._task.gold(data)
        return self._gold[id(data)]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._task, name)


def execute(
    run: Run,
    out: Path,
    bench: Bench,
    progress: Callable[[Progress], None] | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> dict[str, Any]:
    """Do a run to its end, from its checkpoint where there is one; returns its record.

    A run whose weights run away leaves nothing behind: there is nothing to go on from.
    """
    folder = run.folder(out)
    folder.mkdir(parents=True, exist_ok=True)
    training: Training | Labelling
    if run.labels is not None:
        where = Part(bench.plain, bench.task, bench.data)
        options = (run.settings, run.labels, run.passes or 1, run.looks)
        training = Labelling(where, *options, test_looks=run.test_looks, checkpoint=folder / CHECKPOINT)
    else:
        training = _training(run, folder, bench, checkpoint_seconds)
    try:
        outcome = training.go(progress)
    except DivergedError:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    write_curve(folder, training.curve)
    if run.keep_model:
        outcome.model.save(folder / MODEL)
        if outcome.test is not None and outcome.test.counts is not None:
            write_counts(folder, outcome.test.counts)
    record = _write_record(run, folder, outcome.result, outcome.test.report if outcome.test else None, _versions())
    training.finish()
    return record


def _training(run: Run, folder: Path, bench: Bench, checkpoint_seconds: float) -> Training:
    W = bench.W
    if run.start is not None:
        W = start_weights(Part(bench.plain, bench.task, bench.data), run.start, run.passes or 1, run.settings.seed)
    return Training(
        bench.task,
        bench.data,
        run.settings,
        run.iterations,
        answers=run.answers,
        evaluate_every=None if run.looks else run.evaluate_every,
        evaluate_at=run.looks,
        test_looks=run.test_looks,
        checkpoint=folder / CHECKPOINT,
        checkpoint_seconds=checkpoint_seconds,
        resume=True,
        W=W,
    )


def _write_record(
    run: Run, folder: Path, result: dict[str, Any], test_report: dict[str, Any] | None, versions: dict[str, str]
) -> dict[str, Any]:
    fields = {
        "experiment": run.experiment,
        "task": run.task,
        "learner": run.learner,
        "phase": run.phase,
        "seed": run.settings.seed,
        "settings": run.settings.as_dict(),
        "iterations": run.iterations,
        **run._by_answers,
        "evaluate_every": run.evaluate_every,
        "data": run.data,
        "result": result,
        "test_report": test_report,
        "versions": versions,
        "hash": run.hash,
        "paper": run.paper,
    }
    return write_record(folder, fields)


def _versions() -> dict[str, str]:
    libraries = {name: version(name) for name in ("numpy", "numba")}
    return {"sparsezo": __version__, **libraries, "python": platform.python_version()}
