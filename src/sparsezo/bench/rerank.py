"""bench rerank: a step on long n-best lists, beside one NumPy ``features @ w`` on the same lists."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from sparsezo.bench.clock import best_of, seconds
from sparsezo.cli import show
from sparsezo.kernels import random
from sparsezo.kernels.inputs.dense import dense_inputs
from sparsezo.learner import Learner
from sparsezo.settings import Settings
from sparsezo.tasks.base import Problem
from sparsezo.tasks.rerank.importing import import_nbest
from sparsezo.tasks.rerank.kernel import RankGold, rank_task

_STEPS = 240
_GENERATED = (60, 5000, 14)  # lists, candidates, features

LEARNERS = {
    "two-point active": Settings("two-point", "active", 1e-4, 1e-2),
    "two-point score": Settings("two-point", "score", 1e-4, 1e-2),
    "first-order": Settings("first-order", None, 1e-3, None),
}


def measure(data: Path | None, rounds: int) -> dict[str, Any]:
    problem, gold, name = _problem(data)
    key = random.stream_key(0, random.INPUTS)
    features, offsets = problem.inputs.features, problem.inputs.offsets
    lists = [features[offsets[x] : offsets[x + 1]] for x in range(len(problem))]
    seen = [lists[random.below(key, step, len(problem))] for step in range(_STEPS)]
    w = np.random.default_rng(0).standard_normal(features.shape[1]).astype(np.float32)

    def numpy_scores() -> None:
        for C in seen:
            C @ w

    work: dict[str, Callable[[], float]] = {"numpy": lambda: seconds(numpy_scores) / _STEPS}
    for title, settings in LEARNERS.items():
        learner = Learner(problem, settings)
        learner.run(gold, _STEPS)
        work[title] = lambda learner=learner: seconds(lambda: learner.run(gold, _STEPS)) / _STEPS  # type: ignore[misc]
    best = best_of(10 * rounds, work)
    rows = {
        title: {"us": 1e6 * took, "ratio": took / best["numpy"]} for title, took in best.items() if title != "numpy"
    }
    return {
        "bench": "rerank",
        "data": name,
        "candidates": float(np.diff(offsets).mean()),
        "features": features.shape[1],
        "numpy_us": 1e6 * best["numpy"],
        "learners": rows,
    }


def _problem(data: Path | None) -> tuple[Problem, RankGold, str]:
    path = data / "smt" / "train.5000best.nbest.xz" if data else None
    if path is not None and path.exists():
        store = import_nbest(path)
        features, offsets = store.features, store.offsets
        losses, statistics, name = np.asarray(store.losses), np.asarray(store.statistics), path.name
    else:
        n, size, M = _GENERATED
        generator = np.random.default_rng(1)
        features = generator.standard_normal((n * size, M), dtype=np.float32)
        offsets = np.arange(0, n * size + 1, size)
        losses, statistics = generator.random(n * size), np.zeros((n * size, 10), np.int16)
        name = f"{n} generated lists"
    return _as_problem(features, offsets), RankGold(offsets, losses, statistics), name


def _as_problem(features: NDArray[np.float32], offsets: NDArray[np.int64]) -> Problem:
    inputs, N = dense_inputs(features, offsets), offsets.size - 1
    return Problem(
        inputs=inputs,
        task=rank_task(offsets),
        n_features=features.shape[1],
        n_labels=1,
        output_start=np.arange(N + 1, dtype=np.int64),
        n_active=np.diff(inputs.col_start),
        n_score=inputs.ranks,
        max_rows=int(np.diff(offsets).max()),
        max_columns=features.shape[1],
        dtype=np.float64,
    )


def table(fields: dict[str, Any]) -> Table:
    show.note(f"{fields['data']}: {fields['candidates']:,.0f} candidates a list, {fields['features']} features")
    out = Table(caption=f"ratio: to NumPy's {fields['numpy_us']:.1f} us for one features @ w on the same lists")
    for column in ("learner", "us a step", "ratio"):
        out.add_column(column, justify="left" if column == "learner" else "right")
    for title, row in fields["learners"].items():
        out.add_row(title, f"{row['us']:.2f}", f"{row['ratio']:.3f}")
    return out
