"""bench text: examples a second on documents of RCV1's shape, beside Vowpal Wabbit's ``--cbify 4`` on the same ones.

Vowpal Wabbit reads its own cache file, and runs with the threads it starts by itself; its start-up is taken off. Both
learn from bandit feedback from nothing, one example a step. Without it (pip install vowpalwabbit) only ours runs.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from sparsezo.bench.clock import best_of, seconds
from sparsezo.cli import show
from sparsezo.learner import Learner
from sparsezo.settings import Settings
from sparsezo.tasks.text.generate import GeneratedText, generate_text
from sparsezo.tasks.text.task import TextClassification

_DOCUMENTS = 200_000
_WABBIT = [sys.executable, "-m", "vowpalwabbit"]
_WABBIT_LEARNS = ["--cbify", "4", "-b", "20", "--cache_file"]

LEARNERS = {
    "two-point score": Settings("two-point", "score", 0.1, 1.0),
    "two-point active": Settings("two-point", "active", 0.1, 1.0),
    "symmetric score adagrad": Settings("symmetric", "score", 0.3, 1.0, step="adagrad"),
    "first-order": Settings("first-order", None, 1.0, None),
}


def measure(_data: Path | None, rounds: int) -> dict[str, Any]:
    show.note(f"generating {_DOCUMENTS:,} documents")
    generated = generate_text(_DOCUMENTS, seed=1)
    task, prepared = TextClassification.fit(generated.documents())
    problem, gold = task.problem(prepared), task.gold(prepared)
    learners: dict[str, Learner] = {}

    def one_pass(title: str) -> float:
        learner = learners[title] = Learner(problem, LEARNERS[title])  # from cold, as Vowpal Wabbit
        learner.run(gold, 0)
        return seconds(lambda: learner.run(gold, _DOCUMENTS))

    work: dict[str, Callable[[], float]] = {title: lambda title=title: one_pass(title) for title in LEARNERS}  # type: ignore[misc]
    with tempfile.TemporaryDirectory() as folder:
        if importlib.util.find_spec("vowpalwabbit"):
            show.note("writing Vowpal Wabbit's cache")
            cache = _wabbit_cache(generated, Path(folder))
            work["vw --cbify 4"] = lambda: seconds(lambda: _wabbit(cache, "--quiet"))
            work["vw start-up"] = lambda: seconds(lambda: subprocess.run([*_WABBIT, "--version"], capture_output=True))
        best = best_of(rounds, work)
        losses = {title: learner.average_loss for title, learner in learners.items()}
        if "vw --cbify 4" in work:
            best["vw --cbify 4"] -= best.pop("vw start-up")
            losses["vw --cbify 4"] = _wabbit_loss(cache)
    yardstick = best.get("vw --cbify 4")
    rows = {
        title: {
            "examples_per_second": _DOCUMENTS / took,
            "us": 1e6 * took / _DOCUMENTS,
            "times_vw": yardstick / took if yardstick else None,
            "average_loss": losses[title],
        }
        for title, took in best.items()
    }
    words = float(problem.n_active.mean() / problem.n_labels)
    return {"bench": "text", "documents": _DOCUMENTS, "words": words, "n": task.n_features * 4, "learners": rows}


def _wabbit_cache(generated: GeneratedText, folder: Path) -> Path:
    vectors, text, cache = generated.vectors, folder / "vw.txt", folder / "vw.cache"
    pairs = np.char.add(np.char.add(vectors.indices.astype(str), ":"), vectors.values.astype(str)).tolist()
    with open(text, "w") as stream:
        for label, begin, end in zip(generated.labels, vectors.indptr[:-1], vectors.indptr[1:], strict=True):
            stream.write(f"{label + 1} | {' '.join(pairs[begin:end])}\n")
    _wabbit(cache, "--quiet")
    return cache


def _wabbit(cache: Path, *options: str) -> str:
    text = str(cache.with_suffix(".txt"))
    command = [*_WABBIT, *_WABBIT_LEARNS, str(cache), "-d", text, *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout + done.stderr


def _wabbit_loss(cache: Path) -> float:
    found = re.search(r"average loss = ([\d.]+)", _wabbit(cache))
    return float(found.group(1)) if found else np.nan


def table(fields: dict[str, Any]) -> Table:
    out = Table(
        title=f"text: {fields['documents']:,} generated documents, {fields['words']:.0f} words, one pass from cold"
    )
    for column in ("learner", "examples/s", "us each", "times vw", "average loss"):
        out.add_column(column, justify="left" if column == "learner" else "right")
    for title, row in fields["learners"].items():
        times = f"{row['times_vw']:.2f}" if row["times_vw"] else "-"
        out.add_row(
            title, f"{row['examples_per_second']:,.0f}", f"{row['us']:.3f}", times, f"{row['average_loss']:.4f}"
        )
    return out
