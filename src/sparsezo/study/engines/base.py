"""Where a sweep's runs are done: what an engine is, the options that choose one, and how far a sweep is.

    with EngineOptions(engine="ray", ray_address="auto").open(out, load, say=print) as engine:
        finished = engine.run(runs, progress=print)
    finished.records, finished.failures

Experiments know no more of an engine than ``Engine``. What every engine does around its own work is ``sweep``: find
what is done already, order the rest, hand back the records.
"""

from __future__ import annotations

import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

from sparsezo.errors import UsageError, need, shown
from sparsezo.options import check_options, described, option

if TYPE_CHECKING:
    from sparsezo.study.runs import Run
    from sparsezo.tasks.base import Json
    from sparsezo.tasks.loading import Loaded
    from sparsezo.training import Progress

LOCAL, RAY = "local", "ray"

Load = Callable[[], "Loaded"]  # a task and its data
Why = tuple[str, bool]  # why a run failed, and whether its weights ran away


@dataclass(frozen=True)
class EngineOptions:
    """Which engine, as ``reproduce`` and ``tune`` are told. What it needs is asked for here, before any work."""

    engine: str = option(LOCAL, "Who does the work: processes of this machine, or Ray.", choices=(LOCAL, RAY))
    ray_address: str | None = option(
        None, "Of a Ray cluster: auto or ray://HOST:PORT.", shown="a Ray of its own, on this machine"
    )
    processes: int | None = option(None, "How many runs at once.", least=1, shown="one for each core")

    def __post_init__(self) -> None:
        check_options(self)
        if self.engine == RAY:
            need("ray")
        elif self.ray_address is not None:
            raise UsageError("`ray_address` goes with `engine` ray")
        if self.ray_address is not None and not re.fullmatch(r"auto|ray://.+:[0-9]{1,5}", self.ray_address):
            raise UsageError(f"`ray_address` {shown(self.ray_address)}: give auto or ray://HOST:PORT")

    def open(self, out: Path, load: Load, say: Callable[[str], None]) -> Engine:
        """An engine whose runs go into folders under ``out``, on the task and data that ``load`` gives."""
        if self.engine == RAY:
            from sparsezo.study.engines.ray import RayEngine

            return RayEngine(out, load, self.processes, address=self.ray_address, say=say)
        from sparsezo.study.engines.local import LocalEngine

        return LocalEngine(out, load, self.processes, say=say)


ENGINE_OPTIONS = described(EngineOptions)


@dataclass(frozen=True)
class Failure:
    run: Run
    message: str
    diverged: bool = False  # the scores were not finite: news about h, not about the machine


@dataclass(frozen=True)
class Finished:
    records: dict[str, Json]  # by the run's hash
    failures: tuple[Failure, ...]


@dataclass(frozen=True)
class Overview:
    """How far a sweep is."""

    runs: int
    done: int  # of them, failed ones included
    failed: int
    steps: int
    steps_done: int
    seconds_left: float | None  # None while nothing is known
    now: tuple[tuple[str, float], ...]  # runs that are under way, and how far each is


class Engine(ABC):
    out: Path  # the folder of results

    @abstractmethod
    def run(self, runs: Sequence[Run], progress: Callable[[Overview], None] | None = None) -> Finished:
        """Do what is not done yet. Nothing finished is computed again, unless it was damaged since."""

    @abstractmethod
    def close(self, *, stop: bool = False) -> None:
        """Let go of what it holds; with ``stop`` also of runs at work, which write their checkpoints first."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close(stop=kind is not None)


@dataclass
class SweepProgress:
    """Which runs are under way, what failed, and how long the rest will take; ``progress`` gets an ``Overview``."""

    out: Path
    todo: list[Run]
    found: int  # runs that were finished before
    processes: int
    progress: Callable[[Overview], None] | None
    failures: list[Failure] = field(default_factory=list)
    step: dict[str, int] = field(default_factory=dict)  # by hash: of runs that were started
    under_way: dict[str, Run] = field(default_factory=dict)
    ended: int = 0
    pace: dict[str, float] = field(default_factory=dict)  # seconds a step, by learner
    learned: dict[str, list[float]] = field(default_factory=dict)  # by hash: seconds of learning before this call, now
    began: float = 0.0

    def start(self, run: Run) -> None:
        self.began = self.began or time.monotonic()
        self.under_way[run.hash] = run
        self.step[run.hash] = 0
        if not (run.folder(self.out) / "checkpoint").exists():
            self.learned[run.hash] = [0.0, 0.0]

    def update(self, run: Run, progress: Progress) -> None:
        """As the run's training reports it."""
        done = progress.step if run.answers is None else progress.answers
        self.step[run.hash] = done
        self.learned.setdefault(run.hash, [progress.seconds, 0.0])[1] = progress.seconds
        if done:
            self.pace[run.learner] = progress.seconds / done
        self._tell()

    def end(self, run: Run, why: Why | None) -> None:
        """The run is done, or has failed for a reason."""
        self.under_way.pop(run.hash)
        self.step[run.hash] = run.length
        self.ended += 1
        if why is not None:
            self.failures.append(Failure(run, *why))
        self._tell()

    def give_back(self, run: Run) -> None:
        """It is not under way any more, and not at its end: whoever did it is gone."""
        self.under_way.pop(run.hash)

    def _tell(self) -> None:
        if self.progress is not None:
            self.progress(
                Overview(
                    runs=self.found + len(self.todo),
                    done=self.found + self.ended,
                    failed=len(self.failures),
                    steps=sum(run.length for run in self.todo),
                    steps_done=sum(self.step.values()),
                    seconds_left=self._seconds_left(),
                    now=tuple((str(run), self.step[key] / run.length) for key, run in self.under_way.items()),
                )
            )

    def _seconds_left(self) -> float | None:
        """By each learner's own pace, or the mean of those known, and by the share of time that is not learning."""
        if not self.pace:
            return None
        usual = sum(self.pace.values()) / len(self.pace)
        costs = [(run.length - self.step.get(run.hash, 0)) * self.pace.get(run.learner, usual) for run in self.todo]
        learned = sum(now - before for before, now in self.learned.values() if now)
        spent = (time.monotonic() - self.began) * min(self.processes, len(self.step))
        beside = max(1.0, spent / learned) if learned > 0 else 1.0  # 0: a run goes on, and has only said where it is
        return max(sum(costs) / self.processes, max(costs)) * beside


def sweep(
    runs: Sequence[Run],
    out: Path,
    processes: int,
    progress: Callable[[Overview], None] | None,
    work: Callable[[SweepProgress], None],
    say: Callable[[str], None],
) -> Finished:
    """Have ``work`` do what is not done yet; what was damaged since, which is said, is done again."""
    from sparsezo.study.runs import drop_damaged_checkpoint, find

    records: dict[str, Json] = {}
    todo: list[Run] = []
    for run in {run.hash: run for run in runs}.values():
        record = find(run, out, say)
        if record is None:
            drop_damaged_checkpoint(run, out, say)
            todo.append(run)
        else:
            records[run.hash] = record
    # The dearest first, so that no core is left alone with one at the end.
    todo.sort(key=lambda run: (-run.length, run.settings.perturb != "all"))
    so_far = SweepProgress(out, todo, len(records), min(processes, max(len(todo), 1)), progress)
    if todo:
        work(so_far)
    for run in todo:
        if (record := find(run, out)) is not None:
            records[run.hash] = record
    return Finished(records, tuple(so_far.failures))
