"""A step with 1e9 weights in a mapped file beside the same step with 3M weights in memory.

    python benchmarks/mapped.py [--weights 1e9] [--steps 20000] [--rounds 7] [--data DIR] [--folder DIR]

Chunking's problem (CoNLL-2000 where --data or SPARSEZO_DATA has it, else generated sentences), two-point score, map.
The table in the file has rows x 9 float32; its rows are drawn at random, so that a feature lies on a page of its own:

    features    every feature of the data has one row, as hashing without collisions gives it: the same steps, and at
                the end the same weights, bit for bit, as in memory
    uniform     every input has rows of its own: no two share any, which no data is like; the worst there can be

Rounds of all tables alternate. Reported are microseconds a step, page faults a step (those answered from memory, and
those that went to the file), and the ratio to memory: of a first round on a file that nobody has touched (cold), and,
once all pages are in memory, the median of the others (warm). The file is removed at the end.
"""

from __future__ import annotations

import argparse
import mmap
import os
import resource
import statistics
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsezo import Learner, Settings
from sparsezo.bench.chunking import _corpus
from sparsezo.tasks.base import Problem
from sparsezo.tasks.chunking.task import Chunking

SETTINGS = Settings("two-point", "score", 0.001, 0.1, seed=1)
LEARNED = 300_000  # steps before anything is timed: the first ones move more often


@dataclass
class Round:
    us: float  # a step
    minor: float  # faults a step
    major: float


class Table:
    """A problem and a learner on it, timed."""

    def __init__(self, name: str, problem: Problem, W: NDArray[Any]) -> None:
        self.name, self.problem = name, problem
        self.learner = Learner(problem, SETTINGS, W, copy=False)
        self.cold: Round | None = None
        self.warm: list[Round] = []

    def run(self, gold: Any, steps: int) -> Round:
        before, began = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
        self.learner.run(gold, steps)
        took, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF)
        faults = (after.ru_minflt - before.ru_minflt, after.ru_majflt - before.ru_majflt)
        return Round(1e6 * took / steps, faults[0] / steps, faults[1] / steps)


def mapped(folder: Path, name: str, rows: int, labels: int) -> tuple[Path, np.memmap[Any, Any]]:
    """A file of zeros with no block on the disk yet; pages are read one by one, not with their neighbours."""
    path = folder / name
    with open(path, "wb") as stream:
        stream.truncate(4 * rows * labels)
    W = np.memmap(path, np.float32, "r+", shape=(rows, labels))
    W._mmap.madvise(mmap.MADV_RANDOM)  # type: ignore[attr-defined]
    return path, W


def elsewhere(problem: Problem, columns: NDArray[np.int32], cols: NDArray[np.int32], rows: int) -> Problem:
    """The same problem with its features at other rows of a larger table."""
    return replace(problem, inputs=problem.inputs._replace(columns=columns, cols=cols), n_features=rows)


def of_features(problem: Problem, rows: int, generator: np.random.Generator) -> tuple[Problem, NDArray[np.int32]]:
    place = generator.choice(rows, problem.n_features, replace=False, shuffle=True).astype(np.int32)
    return elsewhere(problem, place[problem.inputs.columns], place[problem.inputs.cols], rows), place


def uniform(problem: Problem, rows: int, generator: np.random.Generator) -> Problem:
    inputs = problem.inputs
    cols = generator.integers(0, rows, inputs.cols.size, dtype=np.int32)  # some 1 in 10,000 inputs has a row twice
    entries = inputs.row_ptr[inputs.row_start]
    of_input = np.repeat(np.arange(len(problem)), np.diff(entries))
    return elsewhere(problem, cols[inputs.col_start[of_input] + inputs.slots], cols, rows)


def warm_up(W: NDArray[Any]) -> float:
    """Every page into memory; seconds."""
    began = time.perf_counter()
    flat = W.reshape(-1)
    for start in range(0, flat.size, 1 << 24):
        flat[start : start + (1 << 24) : 1024].sum()
    return time.perf_counter() - began


def measure(args: argparse.Namespace, folder: Path) -> list[Table]:
    generator = np.random.default_rng(0)
    corpus, name = _corpus(args.data)
    task, corpus = Chunking.fit(corpus, only="NP")
    problem, gold = task.problem(corpus), task.gold(corpus)
    rows = int(args.weights) // problem.n_labels
    print(f"{name}: {len(problem):,} inputs, {problem.n_active.mean():,.0f} active weights in an input")
    spread, place = of_features(problem, rows, generator)
    tables = [Table("memory", problem, np.zeros((problem.n_features, problem.n_labels), np.float32))]
    tables[0].learner.run(gold, LEARNED)
    start = tables[0].learner.state
    for kind, its in (("features", spread), ("uniform", uniform(problem, rows, generator))):
        path, W = mapped(folder, kind, rows, problem.n_labels)
        table = Table(kind, its, W)
        if kind == "features":  # from the same weights, so that the steps are the same
            W[place] = start.W
            for mine, other in ((table.learner.state.counts, start.counts), (table.learner.state.sums, start.sums)):
                mine[:] = other
        else:
            table.learner.run(gold, LEARNED)
        forget(path, W)
        table.cold = table.run(gold, args.steps)
        print(f"{kind}: all pages read in {warm_up(W):.1f} s")
        tables.append(table)
    tables[0].cold = tables[0].run(gold, args.steps)
    for _ in range(args.rounds):
        for table in tables:
            table.warm.append(table.run(gold, args.steps))
    same = np.array_equal(tables[1].learner.state.W[place], tables[0].learner.state.W)
    print(f"features and memory have the same weights: {'yes' if same else 'NO'}")
    return tables


def forget(path: Path, W: np.memmap[Any, Any]) -> None:
    """What the system keeps of the file in memory, as far as it can be asked to."""
    W.flush()
    W._mmap.madvise(mmap.MADV_DONTNEED)  # type: ignore[attr-defined]
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


def report(tables: list[Table]) -> None:
    base = statistics.median(each.us for each in tables[0].warm)
    print(
        f"{'table':10} {'weights':>13} {'':6} {'us a step':>10} {'ratio':>6} "
        f"{'from memory':>12} {'from file':>10}  faults"
    )
    for table in tables:
        weights = table.problem.n_features * table.problem.n_labels
        warm = Round(*(statistics.median(getattr(each, f) for each in table.warm) for f in ("us", "minor", "major")))
        for word, each in (("cold", table.cold), ("warm", warm)):
            if each is not None:
                row = f"{table.name:10} {weights:13,} {word:6} {each.us:10.2f} {each.us / base:6.2f}"
                print(f"{row} {each.minor:12.3f} {each.major:10.3f}  a step")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weights", type=float, default=1e9)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--data", type=Path, default=os.environ.get("SPARSEZO_DATA"))
    parser.add_argument("--folder", type=Path, help="where the file goes; default: the system's temporary folder")
    args = parser.parse_args()
    args.data = Path(args.data) if args.data else None
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        report(measure(args, Path(folder)))


if __name__ == "__main__":
    main()
