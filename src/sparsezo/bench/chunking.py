"""bench chunking: microseconds a step, beside what merely drawing the active weights' normals costs NumPy.

Each learner has learned for a while before, since a step that moves
no weight is cheaper and a trained learner has more of them; the first steps, from cold, are timed too.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Group
from rich.table import Table

from sparsezo.bench import answers
from sparsezo.bench.clock import best_of, seconds
from sparsezo.cli import show
from sparsezo.kernels import loop, random
from sparsezo.learner import Learner
from sparsezo.settings import Settings
from sparsezo.tasks.base import Problem
from sparsezo.tasks.chunking.conll import Corpus, read_conll
from sparsezo.tasks.chunking.generate import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking

_COLD, _WARM, _TIMED = 20_000, 500_000, 20_000  # steps
_LITERAL = 5  # steps of literal ALL a round
_GENERATED = 4_000  # sentences, where there is no real data

LEARNERS = {
    "two-point active": Settings("two-point", "active", 0.001, 0.1),
    "two-point score": Settings("two-point", "score", 0.001, 0.1),
    "two-point score annealed": Settings("two-point", "score", 0.001, 0.1, criterion="annealed"),
    "first-order": Settings("first-order", None, 0.01, None),
    "two-point all": Settings("two-point", "all", 0.001, 0.1),
    "comparison active": Settings("comparison", "active", 0.001, 0.1),
    "symmetric score adagrad": Settings("symmetric", "score", 0.05, 0.2, step="adagrad"),
    "supervised": Settings("supervised", None, 0.01, None),
}

ASKING = Settings("part", None, 0.2, None, step="adagrad")


def measure(data: Path | None, rounds: int) -> dict[str, Any]:
    corpus, name = bench_corpus(data)
    task, corpus = Chunking.fit(corpus, only="NP")
    problem, gold = task.problem(corpus, risk=True), task.gold(corpus)
    learners: dict[str, Learner] = {}
    cold: dict[str, float] = {}
    for title, settings in LEARNERS.items():
        show.note(f"{title}: learning for {_WARM:,} steps")
        learner = learners[title] = Learner(problem, settings)
        learner.run(gold, 0)  # compiles, the first time on a machine
        cold[title] = seconds(lambda learner=learner: learner.run(gold, _COLD)) / _COLD  # type: ignore[misc]
        learner.run(gold, _WARM)
    literal = _LiteralAll(problem, gold)
    work: dict[str, Callable[[], float]] = {"numpy": _numpy_draws(problem)}
    for title, learner in learners.items():
        work[title] = lambda learner=learner: seconds(lambda: learner.run(gold, _TIMED)) / _TIMED  # type: ignore[misc]
    work["two-point all, literal"] = lambda: seconds(lambda: literal.run(_LITERAL)) / _LITERAL
    before = {title: learner.updates for title, learner in learners.items()}
    best = best_of(rounds, work)
    moved = {title: (learner.updates - before[title]) / (rounds * _TIMED) for title, learner in learners.items()}
    rows = {
        title: {
            "us": 1e6 * best[title],
            "ratio": best[title] / best["numpy"],
            "us_cold": 1e6 * cold[title] if title in cold else None,
            "update_fraction": moved.get(title),
        }
        for title in work
        if title != "numpy"
    }
    return {
        "bench": "chunking",
        "data": name,
        "n": problem.n_features * problem.n_labels,
        "n_active": float(problem.n_active.mean()),
        "n_score": float(problem.n_score.mean()),
        "numpy_us": 1e6 * best["numpy"],
        "learners": rows,
        "answers": answers.measure(task.problem(corpus, asks=True), gold, ASKING, rounds),
    }


def bench_corpus(data: Path | None, sentences: int | None = None) -> tuple[Corpus, str]:
    """The real one where it is, or so many generated ``sentences``: what it is, too."""
    if sentences is None and data is not None and (data / "conll2000" / "train.txt.gz").exists():
        return read_conll(data / "conll2000" / "train.txt.gz")[1000:], "CoNLL-2000, the paper's training split"
    count = sentences or _GENERATED
    return chunking_corpus(count, seed=1), f"generated, {count:,} sentences"


def _numpy_draws(problem: Problem, draws: int = 2000) -> Callable[[], float]:
    """Seconds that NumPy takes to draw n_bar(x) float32 normals, over the inputs of the first steps of seed 0."""
    generator = np.random.default_rng(0)
    key = random.stream_key(0, random.INPUTS)
    sizes = [int(problem.n_active[random.below(key, step, len(problem))]) for step in range(draws)]

    def draw() -> None:
        for size in sizes:
            generator.standard_normal(size, dtype=np.float32)

    return lambda: seconds(draw) / draws


class _LiteralAll:
    """The paper's ALL word for word: u has all n weights, and every weight moves."""

    def __init__(self, problem: Problem, gold: Any) -> None:
        self.learner = Learner(problem, Settings("two-point", "active", 0.001, 0.1))
        self.problem, self.gold = problem, gold
        self.generator = np.random.default_rng(0)
        self.W: NDArray[np.float32] = self.learner.state.W

    def run(self, steps: int) -> None:
        h, mu = 0.001, 0.1
        for _ in range(steps):
            x = self.learner.next_input()
            u = self.generator.standard_normal(self.W.shape, dtype=np.float32)
            losses = []
            for W in (self.W, self.W + np.float32(mu) * u):
                out = np.empty(int(self.problem.output_start[-1]), np.int32)
                args = (W, self.learner.workspace.S, self.learner.workspace.y, x, x + 1, self.problem.output_start, out)
                loop.decode_all(self.problem.inputs, self.problem.task, *args)
                begin, end = self.problem.output_start[x : x + 2]
                losses.append(loop.loss(self.gold, self.problem.task, x, out[begin:end]))
            self.W += np.float32(-h * (losses[1] - losses[0]) / mu) * u
            self.learner.state.counts[loop.ASKED] += 1


def table(fields: dict[str, Any]) -> Group:
    out = Table(
        title=f"{fields['bench']}: {fields['data']}; n {fields['n']:,}, active {fields['n_active']:,.0f}, "
        f"scores {fields['n_score']:,.0f}",
        caption=f"ratio: to the {fields['numpy_us']:.1f} us that NumPy takes to draw an input's active normals",
    )
    for column in ("learner", "us a step", "ratio", "us from cold", "steps that move"):
        out.add_column(column, justify="left" if column == "learner" else "right")
    for title, row in fields["learners"].items():
        cold = f"{row['us_cold']:.2f}" if row["us_cold"] is not None else "-"
        moved = f"{row['update_fraction']:.1%}" if row["update_fraction"] is not None else "-"
        out.add_row(title, f"{row['us']:,.2f}", f"{row['ratio']:,.3f}", cold, moved)
    return Group(out, answers.table(fields["answers"]))
