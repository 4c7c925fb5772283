"""bench limit: how far a learner's step is from what this machine needs for the memory and the normals it must touch.

    print(limit_table(measure_limit(folder_of_data, rounds=5)))

Measured here: summing the rows of W that an input names, moving them, reading memory from end to end, and drawing
normals, each by the fastest kernel there is for it, inputs coming in a run's own random order. A step must at least sum
its input's distinct rows, read the input's own numbers (C, and K or its inverse where they are needed) and draw its
normals; a step that moves the weights moves these rows, too, by Adagrad those of W and of its sums. Arithmetic on what
is there already (products with K, decoding, the losses) is taken to be free.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from sparsezo import messages
from sparsezo.kernels import random
from sparsezo.kernels.inputs.products import combine, scatter_row
from sparsezo.kernels.jit import standalone_kernel
from sparsezo.learner import Learner
from sparsezo.query_learner import QueryLearner
from sparsezo.settings import Settings
from sparsezo.study import bench
from sparsezo.tasks.base import Json, Problem
from sparsezo.tasks.chunking.task import Chunking

_WARM, _TIMED, _ANSWERS = 200_000, 20_000, 2_000  # steps, steps a round, answers
_STREAM = 2**25  # float32 numbers that are read from end to end: more than any cache holds
_NORMALS = 2**12
_LEARNERS = {
    name: bench.CHUNKING[name]
    for name in ("two-point active", "two-point score", "first-order", "two-point all", "symmetric score adagrad")
}


@standalone_kernel
def _sum_rows(cols: Any, col_start: Any, order: Any, W: Any, out: Any) -> None:
    for x in order:
        combine(W, cols, None, col_start[x], col_start[x + 1], out)


@standalone_kernel
def _move_rows(cols: Any, col_start: Any, order: Any, D: Any, W: Any) -> None:
    for x in order:
        scatter_row(np.float32(1), D, cols, None, col_start[x], col_start[x + 1], W)


@standalone_kernel
def _read(numbers: Any) -> Any:
    total = np.uint32(0)
    for number in numbers:
        total ^= number
    return total


@standalone_kernel
def _draw(key: Any, times: Any, out: Any) -> None:
    for step in range(times):
        random.fill_normals(key, step, out)


def measure_limit(data: Path | None, rounds: int) -> Json:
    corpus, name = bench.bench_corpus(data)
    task, corpus = Chunking.fit(corpus, only="NP")
    problem, gold = task.problem(corpus), task.gold(corpus)
    learners: dict[str, Learner] = {}
    for title, settings in _LEARNERS.items():
        messages.say(f"{title}: learning for {_WARM:,} steps")
        learners[title] = Learner(problem, settings)
        learners[title].run(gold, _WARM)
    asking = QueryLearner(task.problem(corpus, asks=True), bench.ASKING)
    asking.run(gold, answers=_ANSWERS)
    work: bench.Work = {title: bench.a_step(learner, gold, _TIMED) for title, learner in learners.items()}
    work |= _machine(problem, next(iter(learners.values())).state.W)
    before = {title: learner.updates for title, learner in learners.items()}
    best = bench.best_of(rounds, work)
    moved = {title: (one.updates - before[title]) / (rounds * _TIMED) for title, one in learners.items()}
    rows: Json = {
        title: _row(best, best[title], **_touched(problem, settings, moved[title]))
        for title, settings in _LEARNERS.items()
    }
    rows["part, an answer"] = _an_answer(asking, problem, gold, best)
    return {
        "bench": "limit",
        "data": name,
        "vector_bits": bench.vector_bits(),
        "ns_row_read": 1e9 * best["rows read"],
        "ns_row_moved": 1e9 * best["rows moved"],
        "gigabytes_per_second": 1e-9 / best["bytes"],
        "ns_normal": 1e9 * best["normals"],
        "learners": rows,
    }


def _machine(problem: Problem, W: NDArray[np.float32]) -> bench.Work:
    """Seconds for one row read, one row moved, one byte, one normal."""
    inputs = problem.private(places=True)[0]
    order = np.random.default_rng(0).integers(0, len(problem), 4_000)
    rows = int(np.diff(inputs.col_start)[order].sum())
    own, D, out = W.copy(), np.zeros((1, W.shape[1]), np.float32), np.zeros(W.shape[1], np.float32)
    stream, normals = np.zeros(_STREAM, np.uint32), np.zeros(_NORMALS, np.float32)
    key = random.stream_key(0, random.PERTURBATION)
    each: dict[str, tuple[Callable[[], object], float]] = {
        "rows read": (lambda: _sum_rows(inputs.cols, inputs.col_start, order, own, out), rows),
        "rows moved": (lambda: _move_rows(inputs.cols, inputs.col_start, order, D, own), rows),
        "bytes": (lambda: _read(stream), stream.nbytes),
        "normals": (lambda: _draw(key, 500, normals), 500 * normals.size),
    }
    for kernel, _ in each.values():
        kernel()  # compiles
    return {name: partial(_seconds_each, kernel, n) for name, (kernel, n) in each.items()}


def _seconds_each(kernel: Callable[[], object], n: float) -> float:
    return bench.seconds(kernel) / n


def _touched(problem: Problem, settings: Settings, moved: float) -> dict[str, float]:
    """What a step touches at least: rows of W read and moved, bytes of the input, normals. ``moved``: of its steps."""
    inputs, L = problem.inputs, problem.n_labels
    rows, entries = float(np.diff(inputs.col_start).mean()), inputs.columns.size / len(problem)
    factor = 4 * int(inputs.chol_start[-1]) / len(problem)
    draws, whole = settings.perturb is not None, settings.perturb in ("active", "all")
    n_active, n_score = float(problem.n_active.mean()), float(np.diff(inputs.row_start).mean()) * L
    size = 4 * entries + draws * factor + moved * (draws * factor + 4 * entries * (whole or settings.step == "adagrad"))
    normals = draws * n_score + moved * whole * n_active + (settings.perturb == "all") * n_active
    tables = 2 if settings.step == "adagrad" else 1
    return {
        "rows_read": rows,
        "rows_moved": rows * (moved * tables + (settings.perturb == "all")),
        "bytes": size,
        "normals": normals,
    }


def _an_answer(learner: QueryLearner, problem: Problem, gold: object, best: dict[str, float]) -> Json:
    """An answer: the inputs looked at for its question, and the one that it is about and earlier ones, learned from."""
    step = learner.step
    took = bench.seconds(lambda: learner.run(gold, answers=2 * _ANSWERS)) / _ANSWERS
    looks = (learner.step - step) / _ANSWERS
    again = 1 + (learner.settings.rehearse or 0)
    one = _touched(problem, Settings("supervised", None, 0.1, None, step="adagrad"), 1.0)
    reads = looks + again
    return _row(
        best,
        took,
        rows_read=reads * one["rows_read"],
        rows_moved=again * one["rows_moved"],
        bytes=reads * one["bytes"],
        normals=0.0,
    )


def _row(best: dict[str, float], took: float, **touched: float) -> Json:
    names = {"rows_read": "rows read", "rows_moved": "rows moved", "bytes": "bytes", "normals": "normals"}
    parts = {key: 1e6 * best[names[key]] * number for key, number in touched.items()}
    least = sum(parts.values())
    return {
        "us": 1e6 * took,
        "least": least,
        "times": 1e6 * took / least,
        **{f"us_{key}": us for key, us in parts.items()},
    }


def limit_table(fields: Json) -> Table:
    read, moved = fields["ns_row_read"], fields["ns_row_moved"]
    caption = (
        f"here, vectors of {fields['vector_bits']} bits: {read:.2f} ns to read a row of W in the order of a run, "
        f"{moved:.2f} ns to move one, {fields['gigabytes_per_second']:.1f} GB/s from end to end, "
        f"{fields['ns_normal']:.2f} ns a normal"
    )
    columns = {
        "us a step": ("us", ",.2f"),
        "at least": ("least", ",.2f"),
        "times that": ("times", ".2f"),
        "rows read": ("us_rows_read", ".2f"),
        "rows moved": ("us_rows_moved", ".2f"),
        "input": ("us_bytes", ".2f"),
        "normals": ("us_normals", ".2f"),
    }
    return bench.table("learner", fields["learners"], columns, f"limit: {fields['data']}", caption)
