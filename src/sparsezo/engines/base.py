"""What an engine is: somewhere to do runs. Experiments know no more of it than this.

with LocalEngine(out, load, processes=2) as engine:
    finished = engine.run(runs, progress=print)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from sparsezo.experiments.runs import Run


@dataclass(frozen=True)
class Failure:
    run: Run
    message: str
    diverged: bool = False  # the scores were not finite: news about h, not about the machine


@dataclass(frozen=True)
class Finished:
    records: dict[str, dict[str, Any]]  # by the run's hash
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


class Engine(Protocol):
    out: Path  # the folder of results

    def run(self, runs: Sequence[Run], progress: Callable[[Overview], None] | None = None) -> Finished:
        """Do what is not done yet. Nothing finished is computed again."""

    def close(self, *, stop: bool = False) -> None:
        """Let go of what it holds; with ``stop`` also of runs at work, which write their checkpoints first."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
