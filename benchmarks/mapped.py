"""A step with 1e9 weights in a mapped file beside the same step with 3M weights in memory.

    python benchmarks/mapped.py [--weights 1e9] [--steps 20000] [--rounds 5] [--uniform] [--data DIR]
                                [--memory DIR] [--folder DIR]

Chunking's problem (CoNLL-2000 where --data or SPARSEZO_DATA has it, else generated sentences), two-point score, map.
A table has rows x 9 float32; the features' rows are drawn at random, as hashing without collisions gives them:

    memory      3M weights as training has them, frequent features first
    hashed      the same at random places of a table of that size
    large       1e9 weights in a mapped file in memory (--memory, tmpfs), in pages of 2 MB where the system can
    file        1e9 weights in a mapped file on a disk (--folder), in pages of 4 KB
    uniform     (--uniform) likewise, and every input has rows of its own, which no data is like: the worst there can be

All but the last do the same steps and end with the same weights, bit for bit.
Rounds of all tables alternate. Reported are, a step: page faults, those answered from memory (minor: a page that is
there but not mapped, or mapped clean and now written) and those that went to the file (major); the program's own time
(user) with its ratio to memory; the system's (sys), which is what page-ins cost beside waiting; and the wall's. User
and system time hardly depend on what else the machine does. First a round on a file that is not in memory (cold); then,
all pages read and once written, the medians of the others (warm). Files are removed at the end. It takes 9 GB.
"""

from __future__ import annotations

import argparse
import ctypes
import mmap
import os
import resource
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsezo import Learner, Settings, mapped_weights
from sparsezo.storage.mapped_weights import in_large_pages
from sparsezo.study.bench import bench_corpus
from sparsezo.tasks.base import Problem
from sparsezo.tasks.chunking.task import Chunking

SETTINGS = Settings("two-point", "score", 0.001, 0.1, seed=1)
LEARNED = 300_000  # steps before anything is timed: the first ones move more often


class Round(NamedTuple):
    """Of one step: microseconds and page faults."""

    user: float
    system: float
    wall: float
    minor: float
    major: float


class Table:
    """A problem and a learner on it, timed."""

    def __init__(self, name: str, problem: Problem, W: NDArray[Any]) -> None:
        self.name, self.problem = name, problem
        self.learner = Learner(problem, SETTINGS, W, copy=False)
        self.cold: Round | None = None
        self.rounds: list[Round] = []

    def run(self, gold: Any, steps: int) -> Round:
        before, began = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
        self.learner.run(gold, steps)
        wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF)
        seconds = (after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime, wall)
        faults = (after.ru_minflt - before.ru_minflt, after.ru_majflt - before.ru_majflt)
        return Round(*(1e6 * each / steps for each in seconds), *(each / steps for each in faults))

    @property
    def warm(self) -> Round:
        return Round(*map(statistics.median, zip(*self.rounds, strict=True)))


def mapped(path: Path, rows: int, labels: int) -> NDArray[Any]:
    """A file of zeros with no block on the disk yet; pages are read one by one, not with their neighbours."""
    W = mapped_weights(path, rows, labels)
    _advise(W, mmap.MADV_RANDOM)
    return W


def _advise(W: NDArray[Any], advice: int) -> None:
    whole = -(-W.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    if ctypes.CDLL(None).madvise(ctypes.c_void_p(W.ctypes.data), ctypes.c_size_t(whole), advice) != 0:
        raise OSError("madvise")


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
    """Every page into memory and mapped for writing; seconds."""
    began = time.perf_counter()
    flat = W.reshape(-1)
    for start in range(0, flat.size, 1 << 24):
        flat[start : start + (1 << 24) : 1024] += 0
    return time.perf_counter() - began


def measure(args: argparse.Namespace, folder: Path, in_memory: Path) -> list[Table]:
    generator = np.random.default_rng(0)
    corpus, name = bench_corpus(args.data)
    task, corpus = Chunking.fit(corpus, only="NP")
    problem, gold = task.problem(corpus), task.gold(corpus)
    problem.private(factors=True, places=True)  # all that any learner reads: it is moved below
    rows, labels = int(args.weights) // problem.n_labels, problem.n_labels
    print(f"{name}: {len(problem):,} inputs, {problem.n_active.mean():,.0f} active weights in an input")
    memory = Table("memory", problem, np.zeros((problem.n_features, labels), np.float32))
    memory.learner.run(gold, LEARNED)
    mixed, where = of_features(problem, problem.n_features, generator)
    spread, place = of_features(problem, rows, generator)
    path = folder / "features"
    W, in_tmpfs = mapped(path, rows, labels), mapped_weights(in_memory / "features", rows, labels)
    print(f"large: {in_large_pages(in_tmpfs) / in_tmpfs.nbytes:.0%} of the file in memory is in large pages")
    hashed = Table("hashed", mixed, np.zeros((problem.n_features, labels), np.float32))
    large = Table("large", spread, in_tmpfs)
    file = Table("file", spread, W)
    for table, its in ((hashed, where), (large, place), (file, place)):  # from here on all do the same steps
        table.learner.state.W[its] = memory.learner.state.W
        _as_far(table, memory)
    forget(path, W)
    for table in (file, memory, hashed, large):
        first = table.run(gold, args.steps)
        table.cold = first if table is file else None
    print(f"file: all pages read and written in {warm_up(W):.1f} s")
    tables = [memory, hashed, large, file]
    if args.uniform:
        tables.append(_uniform(problem, gold, rows, folder, args.steps, generator))
    for _ in range(args.rounds):
        for table in tables:
            table.rounds.append(table.run(gold, args.steps))
    same = all(np.array_equal(each[place], memory.learner.state.W) for each in (W, in_tmpfs))
    print(f"all files have memory's weights: {'yes' if same else 'NO'}")
    return tables


def _uniform(problem: Problem, gold: Any, rows: int, folder: Path, steps: int, generator: np.random.Generator) -> Table:
    path = folder / "uniform"
    W = mapped(path, rows, problem.n_labels)
    table = Table("uniform", uniform(problem, rows, generator), W)
    forget(path, W)
    table.cold = table.run(gold, steps)
    print(f"uniform: all pages read and written in {warm_up(W):.1f} s")
    return table


def _as_far(table: Table, other: Table) -> None:
    """At the same step, so that both do the same from here on."""
    table.learner.state.counts[:], table.learner.state.sums[:] = other.learner.state.counts, other.learner.state.sums


def forget(path: Path, W: NDArray[Any]) -> None:
    """What the system keeps of the file in memory, as far as it can be asked to."""
    _advise(W, mmap.MADV_DONTNEED)
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


def report(tables: list[Table]) -> None:
    base = tables[0].warm.user
    print("a step:                        user us  ratio  sys us  wall us  minor faults  major faults")
    for table in tables:
        weights = table.problem.n_features * table.problem.n_labels
        for word, each in (("cold", table.cold), ("warm", table.warm)):
            if each is not None:
                times = f"{each.user:8.2f} {each.user / base:6.2f} {each.system:7.2f} {each.wall:8.2f}"
                print(f"{table.name:9} {weights:14,} {word} {times} {each.minor:13.3f} {each.major:13.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weights", type=float, default=1e9)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--uniform", action="store_true")
    parser.add_argument("--data", type=Path, default=os.environ.get("SPARSEZO_DATA"))
    parser.add_argument("--memory", type=Path, default="/dev/shm", help="a folder whose files are in memory")
    parser.add_argument("--folder", type=Path, help="where the other file goes; default: the system's temporary folder")
    args = parser.parse_args()
    args.data = Path(args.data) if args.data else None
    with tempfile.TemporaryDirectory(dir=args.folder) as folder, tempfile.TemporaryDirectory(dir=args.memory) as memory:
        report(measure(args, Path(folder), Path(memory)))


if __name__ == "__main__":
    main()
