"""One run of an experiment and its folder: what it is known by, what it leaves behind, and doing it.

    run = Run("chunking", "chunking", "two-point score", "fixed", Settings(seed=1), 4_000_000, 40_000, data=identity)
    record = execute(run, out, PreparedTask(load()))    # OUT/runs/<hash>/run.json, curve.csv, model.szo, test.counts
    find(run, out)                                      # the record of a finished run, or None

A run is known by the hash of its settings, its data and its length, never by its place in a list (records.py has what
its files are). A run that was stopped goes on from its checkpoint. What is damaged counts as not done, and is said.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

from sparsezo import __version__
from sparsezo.errors import DamagedError, DataError, DivergedError
from sparsezo.settings import AUTO, Settings, rate_text
from sparsezo.signals import CHECKPOINT_SECONDS
from sparsezo.storage.container import read_container
from sparsezo.storage.fingerprint import fingerprint
from sparsezo.study.labels import Labelling, mistaken, start_weights
from sparsezo.study.plan import LEAST_CONFIDENT, PHASES, Experiment, LearnerSpec
from sparsezo.study.prepared import PreparedTask
from sparsezo.study.records import (
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
from sparsezo.tasks.base import Json
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
    every: int | None = None  # of labels that are chosen
    mistakes: float = 0.0

    @property
    def length(self) -> int:
        """In answers where these end it, else in iterations."""
        return self.answers or self.iterations

    @property
    def hash(self) -> str:
        known_by = self._fields("task", "iterations", "evaluate_every", "data", "phase") | self._by_answers
        known_by["settings"] = self.settings.as_dict()
        return fingerprint(json.dumps(known_by, sort_keys=True, separators=(",", ":")), size=10)

    def _fields(self, *names: str) -> Json:
        return {name: getattr(self, name) for name in names}

    @property
    def _by_answers(self) -> Json:
        """What only runs that answers end have, where it says anything."""
        timed = ("answers", "test_looks", "labels", "start", "passes", "every", "mistakes")
        named = self._fields(*timed) | {"looks": list(self.looks)}
        return {name: value for name, value in named.items() if value}

    def folder(self, out: Path) -> Path:
        return out / "runs" / self.hash

    def __str__(self) -> str:
        mu = f", mu {self.settings.mu:g}" if self.settings.mu else ""
        return f"{self.learner}, {self.phase}, h {rate_text(self.settings.h)}{mu}, seed {self.settings.seed}"


def run_of(plan: Experiment, data: str, spec: LearnerSpec, settings: Settings, length: int, phase: str) -> Run:
    """A run of a plan's learner, so long in the plan's unit."""
    return Run(
        experiment=plan.name,
        task=plan.task,
        learner=spec.name,
        phase=phase,
        settings=settings,
        iterations=plan.iterations if plan.answers else length,
        answers=length if plan.answers else None,
        evaluate_every=min(plan.interval, length),
        data=data,
        paper=spec.paper,
        keep_model=phase not in ("tune", "gamma"),  # these told what they had to tell
    )


def undivided_runs(plan: Experiment, data: str) -> list[Run]:
    """The fixed settings, read as those of steps that are not divided by mu, as the paper may mean it: h mu.

    Not of Adagrad's steps, whose length is another matter.
    """
    return [
        run_of(plan, data, spec, spec.settings(seed, h=h), plan.length, "undivided")
        for spec in plan.learners
        if spec.fixed and spec.step == "constant" and spec.h != AUTO
        for h in [float(spec.h) * spec.mu if spec.perturb and spec.mu else None]
        for seed in plan.seeds
    ]


def fixed_runs(plan: Experiment, data: str) -> list[Run]:
    """Every learner with every seed at the settings that are fixed for all (the paper's figure)."""
    return [
        replace(
            run_of(own, data, spec, spec.settings(seed), own.length, "fixed"),
            evaluate_every=own.interval,
            looks=own.looks,
            test_looks=own.test_looks,
            labels=spec.labels,
            start=spec.start,
            passes=spec.passes if spec.labels or spec.start else None,
            every=spec.every if spec.labels == LEAST_CONFIDENT else None,
            mistakes=spec.mistakes,
        )
        for spec in plan.learners
        if spec.fixed
        for own in [plan if spec.answers is None else plan.shortened(min(spec.answers, plan.length))]
        for seed in plan.seeds
    ]


Say = Callable[[str], None]


def find(run: Run, out: Path, say: Say = lambda text: None) -> Json | None:
    """The record of a finished run. The same work done in another phase is taken over, not done again."""
    record = _read(run, out, say)
    if record is not None:
        return record
    for phase in PHASES:
        twin = replace(run, phase=phase)
        if phase != run.phase and (record := _read(twin, out, say)) is not None:
            files = [CURVE, *([MODEL] if run.keep_model else []), *record.get("files", {}).keys() & {COUNTS}]
            if all((twin.folder(out) / name).exists() for name in files):
                return _take_over(run, out, twin, record, files)
    return None


def _read(run: Run, out: Path, say: Say) -> Json | None:
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


def _take_over(run: Run, out: Path, twin: Run, record: Json, files: list[str]) -> Json:
    folder = run.folder(out)
    folder.mkdir(parents=True, exist_ok=True)
    for name in files:
        (folder / name).unlink(missing_ok=True)
        try:
            os.link(twin.folder(out) / name, folder / name)
        except OSError:  # a file system without links
            shutil.copyfile(twin.folder(out) / name, folder / name)
    return _write_record(run, folder, record["result"], record.get("test_report"), record.get("versions") or {})


def execute(
    run: Run,
    out: Path,
    prepared: PreparedTask,
    progress: Callable[[Progress], None] | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> Json:
    """Do a run to its end, from its checkpoint where there is one; returns its record.

    A run whose weights run away leaves nothing behind: there is nothing to go on from.
    """
    folder = run.folder(out)
    folder.mkdir(parents=True, exist_ok=True)
    training: Training | Labelling
    if run.mistakes:
        prepared = mistaken(prepared, run.mistakes, run.settings.seed)
    if run.labels is not None:
        options = (run.settings, run.labels, run.passes or 1, run.looks, run.every or 1)
        training = Labelling(prepared, *options, test_looks=run.test_looks, checkpoint=folder / CHECKPOINT)
    else:
        W = prepared.W
        if run.start is not None:
            W = start_weights(prepared, run.start, run.passes or 1, run.settings.seed)
        training = Training(
            prepared.task,
            prepared.data,
            run.settings,
            run.iterations,
            answers=run.answers,
            evaluate_every=None if run.looks else run.evaluate_every,
            evaluate_at=run.looks,
            test_looks=run.test_looks,
            dev_losses=not run.looks,
            checkpoint=folder / CHECKPOINT,
            checkpoint_seconds=checkpoint_seconds,
            resume=True,
            W=W,
        )
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
    versions = {"sparsezo": __version__, **{name: version(name) for name in ("numpy", "numba")}}
    versions["python"] = platform.python_version()
    record = _write_record(run, folder, outcome.result, outcome.test.report if outcome.test else None, versions)
    training.finish()
    return record


def _write_record(run: Run, folder: Path, result: Json, test_report: Json | None, versions: dict[str, str]) -> Json:
    fields = run._fields("experiment", "task", "learner", "phase")
    fields |= {"seed": run.settings.seed, "settings": run.settings.as_dict(), "iterations": run.iterations}
    fields |= run._by_answers | run._fields("evaluate_every", "data")
    fields |= {"result": result, "test_report": test_report, "versions": versions}
    return write_record(folder, fields | run._fields("hash", "paper"))
