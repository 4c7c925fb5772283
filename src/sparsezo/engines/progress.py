"""How far a sweep is: which runs are under way, what failed, and how long the rest will take.

board = Board(out, todo, found=3, processes=2, progress=print)
board.start(run)
board.update(run, progress)         # as its training reports it; print gets an Overview
board.end(run, None)                # or why it failed
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from sparsezo.engines.base import Failure, Overview
from sparsezo.experiments.runs import Run
from sparsezo.training import Progress

Why = tuple[str, bool]  # why a run failed, and whether its weights ran away


@dataclass
class Board:
    """Who is where, and how long the rest will take."""

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

    def follow(self, run: Run) -> Callable[[Progress], None]:
        return lambda progress: self.update(run, progress)

    def update(self, run: Run, progress: Progress) -> None:
        done = progress.step if run.answers is None else progress.answers
        self.step[run.hash] = done
        self.learned.setdefault(run.hash, [progress.seconds, 0.0])[1] = progress.seconds
        if done:
            self.pace[run.learner] = progress.seconds / done
        self._tell()

    def end(self, run: Run, why: Why | None) -> None:
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
        if self.progress is None:
            return
        total = sum(run.length for run in self.todo)
        now = tuple((str(run), self.step[key] / run.length) for key, run in self.under_way.items())
        self.progress(
            Overview(
                runs=self.found + len(self.todo),
                done=self.found + self.ended,
                failed=len(self.failures),
                steps=total,
                steps_done=sum(self.step.values()),
                seconds_left=self._seconds_left(),
                now=now,
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
