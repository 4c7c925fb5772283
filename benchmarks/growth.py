"""How the cost of a step grows: with all weights n, active weights, tokens, labels, and the size of the corpus.

    python benchmarks/growth.py -o docs/results/speed       # growth.csv and growth.png

Sequence labelling of order 2 with random inputs: each token has so many distinct features of value 1, drawn by Zipf's
law from all rows of W, as the attributes of real text are. One size changes, the others stay as they are for
CoNLL-2000. Gold tags are drawn at random as well, so that the models learn nothing and nearly every step moves weights:
a trained model's steps cost less. Microseconds of one core, the best of several rounds.
"""

from __future__ import annotations

import argparse
import csv
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sparsezo import Learner, Settings
from sparsezo.kernels.inputs.sparse import sparse_inputs
from sparsezo.tasks.base import Problem
from sparsezo.tasks.chunking.kernels.task import ChunkGold, chunk_task

USUAL = {"n": 2_800_000, "features": 16, "tokens": 24, "labels": 9, "corpus": 8_000}  # n: weights; corpus: sentences
AXES: dict[str, tuple[int, ...]] = {
    "n": (10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000),
    "features": (2, 4, 8, 16, 32, 64),
    "tokens": (6, 12, 24, 48, 96, 192, 384, 1_024, 4_096),
    "labels": (4, 9, 16, 25, 36, 49, 64),  # squares: of order 2
    "corpus": (100, 1_000, 10_000, 100_000, 1_000_000),
}
SHOWN = {  # in the table
    "n": (10_000, 1_000_000, 100_000_000, 1_000_000_000),
    "features": (2, 16, 64),
    "tokens": (6, 24, 96, 384, 1_024, 4_096),
    "labels": (4, 9, 25, 64),
    "corpus": (100, 10_000, 1_000_000),
}
TITLES = {
    "n": "all weights n",
    "features": "features of a token",
    "tokens": "tokens of a sentence",
    "labels": "labels L (pairs of tags)",
    "corpus": "sentences of the corpus",
}
LEARNERS = {
    "first-order": Settings("first-order", None, 0.01, None),
    "two-point score": Settings("two-point", "score", 0.001, 0.1),
    "two-point active": Settings("two-point", "active", 0.001, 0.1),
    "two-point all": Settings("two-point", "all", 0.001, 0.1),
    "two-point score, Adagrad": Settings("two-point", "score", 0.05, 0.2, step="adagrad"),
}
ROUND = 0.1  # seconds of a round
WARM, LONGEST = 50_000, 60.0  # steps before, and seconds that they may take
MOST_ENTRIES = 30_000_000  # where sentences are long there are fewer


def problem_of(size: Mapping[str, int], seed: int = 0) -> tuple[Problem, ChunkGold]:
    """Random inputs of these sizes, and gold tags drawn at random."""
    rng = np.random.default_rng(seed)
    tokens, L, M = size["tokens"], size["labels"], size["features"]
    K, rows_of_W = math.isqrt(L), max(size["n"] // L, 4 * M)
    N = size["corpus"]
    if tokens > USUAL["tokens"]:
        N = min(N, MOST_ENTRIES // (tokens * M))
    count = N * tokens
    # one feature from each of M equal parts of the rows, so that a token's are distinct; within it by Zipf's law
    part = rows_of_W // M
    columns = np.empty((count, M), np.int32)
    for m in range(M):
        columns[:, m] = m * part + np.exp(rng.random(count) * math.log(part)).astype(np.int64) - 1
    start = np.arange(N + 1, dtype=np.int64) * tokens
    row_ptr = np.arange(count + 1, dtype=np.int64) * M
    inputs = sparse_inputs(start, row_ptr, columns.reshape(-1), None, rows_of_W, L)
    kind, chunk_type = np.zeros(K, np.int8), np.zeros(K, np.int32)
    problem = Problem(
        inputs=inputs,
        task=chunk_task(np.diff(start), kind, chunk_type, K - 1, 2, chunks=False),
        n_features=rows_of_W,
        n_labels=L,
        output_start=start,
        n_active=np.diff(inputs.col_start) * L,
        max_rows=tokens,
        max_columns=int(np.diff(inputs.col_start).max()),
    )
    return problem, ChunkGold(start, rng.integers(0, K, count).astype(np.int16))


def measure(axis: str, value: int, rounds: int) -> Iterator[dict[str, Any]]:
    """A row for each learner, at one value of one axis."""
    size = {**USUAL, axis: value}
    problem, gold = problem_of(size)
    for name, settings in LEARNERS.items():  # one after the other: the largest W is a sixth of this memory
        learner = Learner(problem, settings)
        learner.run(gold, 2)
        began = time.perf_counter()
        while learner.step < WARM and time.perf_counter() - began < LONGEST:  # the pages of W come with their first use
            learner.run(gold, 10)
        began = time.thread_time()
        learner.run(gold, 10)
        steps = max(3, min(20_000, int(10 * ROUND / (time.thread_time() - began))))
        updates, step, best = learner.updates, learner.step, np.inf
        for _ in range(rounds):
            began = time.thread_time()
            learner.run(gold, steps)
            best = min(best, (time.thread_time() - began) / steps)
        yield {
            "axis": axis,
            "value": value,
            "learner": name,
            "us": round(1e6 * best, 3),
            "moved": round((learner.updates - updates) / (learner.step - step), 3),
            "n_active": round(float(problem.n_active.mean()), 1),
            "n_score": round(float(problem.n_score.mean()), 1),
            "sentences": len(problem),
        }
        del learner


def short(value: int) -> str:
    """10k, 1M, 1G."""
    for size, name in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if value >= size:
            return f"{value / size:.3g}{name}"
    return str(value)


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Microseconds a step at some values of each axis, for docs/speed.md."""
    lines = [f"| | {' | '.join(LEARNERS)} |", "|---" * (1 + len(LEARNERS)) + "|"]
    for axis, values in SHOWN.items():
        for value in values:
            found = [float(row["us"]) for row in rows if row["axis"] == axis and int(row["value"]) == value]
            lines.append(f"| {TITLES[axis]}: {value:,} | {' | '.join(f'{us:,.{int(us < 99)}f}' for us in found)} |")
    return "\n".join(lines)


def draw(rows: Sequence[Mapping[str, Any]], folder: Path) -> None:
    """A panel for each axis: microseconds a step."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, NullLocator

    from sparsezo.study.reports.figures import drawing_style, save

    styles = dict(zip(LEARNERS, ("v:", "o-", "s--", "^-.", "D-"), strict=True))
    with drawing_style():
        figure = Figure(figsize=(7.0, 8.0), layout="constrained", facecolor="white")
        panels = figure.subplots(3, 2).reshape(-1)
        for panel, axis in zip(panels, dict.fromkeys(row["axis"] for row in rows), strict=False):
            for name, style in styles.items():
                line = [row for row in rows if row["axis"] == axis and row["learner"] == name]
                panel.plot(
                    [float(row["value"]) for row in line],
                    [float(row["us"]) for row in line],
                    style,
                    markersize=3.5,
                    label=name,
                )
            panel.set_xscale("log")
            panel.set_yscale("log")
            values = [value for value in AXES[axis] if any(row["value"] == str(value) for row in rows)]
            panel.set_xticks(values[:: len(values) // 6 or 1], map(short, values[:: len(values) // 6 or 1]))
            panel.xaxis.set_minor_locator(NullLocator())
            low, high = (each(float(row["us"]) for row in rows if row["axis"] == axis) for each in (min, max))
            ticks = [t for t in (0.5 * 2**k for k in range(16)) if low / 1.5 < t < high * 1.5]
            panel.set_yticks(ticks[:: len(ticks) // 6 or 1])
            panel.yaxis.set_major_formatter(FuncFormatter(lambda us, _: f"{us:,g}"))
            panel.yaxis.set_minor_locator(NullLocator())
            panel.set_xlabel(TITLES[axis])
            panel.set_ylabel("us a step")
        figure.delaxes(panels[-1])
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
        save(figure, folder, "growth")
    (folder / "growth.svg").unlink()  # pages show the other


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=Path("docs/results/speed"))
    parser.add_argument("--axes", default=",".join(AXES), help=f"of {', '.join(AXES)}; others stay as they are")
    parser.add_argument("--most", type=float, default=math.inf, help="leave out larger values of an axis")
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    path = args.output / "growth.csv"
    old = list(csv.DictReader(path.open(encoding="utf-8"))) if path.exists() else []
    rows: list[Mapping[str, Any]] = []
    for axis in AXES:
        if axis not in args.axes.split(","):
            rows += [row for row in old if row["axis"] == axis]
            continue
        for value in AXES[axis]:
            if value <= args.most:
                found = list(measure(axis, value, args.rounds))
                rows += found
                print(axis, f"{value:,}", *(f"{row['learner']} {row['us']:.2f}" for row in found), sep="  ", flush=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    draw([{name: str(value) for name, value in row.items()} for row in rows], args.output)
    print(table(rows))


if __name__ == "__main__":
    main()
