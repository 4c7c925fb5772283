"""bench: what a step costs, beside a yardstick that runs in turns with it, so that a ratio means something."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sparsezo.cli import show
from sparsezo.errors import UsageError

BENCHES = ("chunking", "text", "rerank", "scaling")
SCALING = "scaling"


def run_bench(
    what: str,
    data: Path | None,
    rounds: int,
    *,
    as_json: bool,
    steps: int | None = None,
    quick: bool = False,
    out: Path | None = None,
) -> None:
    """``steps``, ``quick`` and ``out`` are for scaling alone."""
    if what not in BENCHES:
        raise UsageError(f"bench {what}: choose from {', '.join(BENCHES)}")
    if what != SCALING and (quick or steps is not None or out is not None):
        raise UsageError(f"bench {what}: --steps, --quick and -o belong to bench scaling; leave them out")
    module = importlib.import_module(f"sparsezo.bench.{what}")
    if what == SCALING:
        from sparsezo.bench.scaling_tables import measured_into

        fields: dict[str, Any] = measured_into(out, lambda: module.measure(data, rounds, steps, quick=quick))
    else:
        fields = module.measure(data, rounds)
    if as_json:
        show.result(fields, as_json=True)
    else:
        show.output.print(module.table(fields))


def seconds(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def best_of(rounds: int, work: Mapping[str, Callable[[], float]]) -> dict[str, float]:
    """The smallest time of each piece of work; all take turns, round after round."""
    best = dict.fromkeys(work, np.inf)
    for number in range(rounds):
        show.note(f"round {number + 1} of {rounds}")
        for name, timed in work.items():
            best[name] = min(best[name], timed())
    return best
