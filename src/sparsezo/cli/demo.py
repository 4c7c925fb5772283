"""demo: every rule with every perturbation on generated sentences, ranked by test F1; then a report on all tasks.

And bench: what a step of one task costs.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from rich.table import Table

from sparsezo.cli import show
from sparsezo.cli.reproduce import run_reproduce
from sparsezo.cli.values import seconds as of_seconds
from sparsezo.errors import UsageError, need
from sparsezo.options import gone
from sparsezo.rules import BUILT_IN, PERTURBATIONS
from sparsezo.settings import Settings, rate_text
from sparsezo.storage.files import working_folder
from sparsezo.study.experiments import EXPERIMENTS
from sparsezo.tasks.base import Json
from sparsezo.tasks.chunking.synthetic import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.loading import Data
from sparsezo.tasks.registry import task_spec
from sparsezo.training import Training

_SENTENCES = {"train": (2000, 1), "dev": (500, 2), "test": (1000, 3)}  # how many, seed
_REPORT_SETTINGS = {"chunking": (0.003, 0.1), "smt": (0.001, 0.1)}  # h and mu for runs this short
_LONGEST = 1e6  # seconds
_STEPS_PER_SECOND = 4_000  # of the whole demo's time, for each learner: what two cores of 2022 manage
_BENCHES = ("chunking", "text", "rerank", "limit")


def run_bench(what: str, data: Path | None, rounds: int, quick: bool, json: bool) -> None:
    """Measure the task ``what`` and print a table, or one JSON object."""
    if what == "scaling":
        raise gone("bench scaling")
    if what not in _BENCHES:
        raise UsageError(f"bench {what}: choose from {', '.join(_BENCHES)}")
    if quick:
        raise UsageError("--quick belongs to reproduce scaling; use fewer --rounds")
    from sparsezo.study import bench, limit

    measure, table = {**bench.BENCHES, "limit": (limit.measure_limit, limit.limit_table)}[what]
    fields = measure(data, rounds)
    if json:
        show.result(fields, as_json=True)
    else:
        show.output.print(table(fields))


def run_demo(seconds: float, report: bool, output: Path, json: bool) -> None:
    """``report``: whether one is written, in the folder ``output``."""
    if report:
        need("report", *(extra for task in EXPERIMENTS.values() for extra in task_spec(task).extras))
        with working_folder(output):  # it can be written: said now, not after the table
            pass
    page = None
    with _compiled_beside() if report else contextlib.nullcontext():
        results = _ranking(of_seconds(seconds, "--seconds"))
        if report:  # the three experiments of the paper in small
            small: Json = {"seeds": 2, "iterations": "50k", "phases": "fixed", "at": _REPORT_SETTINGS}
            run_reproduce("all", "generated", out=output, **small)
            page = (output / "report" / "report.html").resolve()
    iterations = results[0]["iterations"]
    if json:
        fields = {"data": "generated", "iterations": iterations, "learners": results}
        show.result({**fields, "report": str(page) if page else None}, as_json=True)
        return
    show.output.print(_table(results, iterations))
    show.line(
        "F1 on test, loss: average over the run, us: microseconds a step.\n"
        "Generated data: the order is what to look at, not the figures. supervised sees the correct tags; all others "
        "see only how good their outputs were."
    )
    if page is not None:
        show.line(f"The report on all three tasks, also on generated data: {page}")
    show.line("Next: sparsezo train chunking --help")


@contextlib.contextmanager
def _compiled_beside() -> Iterator[None]:
    """A second process compiles what the report's other tasks need while the table is made: a few steps of each run."""
    with tempfile.TemporaryDirectory() as folder:
        beside = subprocess.Popen(
            [sys.executable, "-c", _FEW_STEPS, folder],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # it ends with its workers
        )
        try:
            yield
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(beside.pid, signal.SIGKILL) if hasattr(os, "killpg") else beside.kill()
            beside.wait()


_FEW_STEPS = """
import pathlib, sys
from sparsezo.study.reproduce import reproduce
for name in ("text", "smt"):
    out = pathlib.Path(sys.argv[1]) / name
    reproduce(name, "generated", seeds=1, iterations=100, phases=["fixed"], out=out, processes=1)
"""


def _ranking(seconds: float) -> list[Json]:
    train, dev, test = (chunking_corpus(n, seed) for n, seed in _SENTENCES.values())
    task, train = Chunking.fit(train, only="NP")
    data = Data(train, task.seen(dev), task.seen(test))
    iterations = max(1000, int(min(seconds, _LONGEST) * _STEPS_PER_SECOND))
    learners = [
        (rule, perturb)
        for rule in BUILT_IN.values()
        for perturb in (PERTURBATIONS if rule.zeroth_order else [None])
        if not rule.asks  # these are measured by answers, not by steps
    ]
    show.note(
        f"{len(learners)} learners, {iterations:,} steps each, on GENERATED sentences ({len(train):,} to learn from); "
        "rules that perturb nothing once, the others with each perturbation"
    )
    show.note_compiling()
    results: list[Json] = []
    for number, (rule, perturb) in enumerate(learners, start=1):
        h, mu = task.defaults(rule.name, "constant", perturb)
        settings = Settings(rule.name, perturb, h, mu if perturb else None)
        run = Training(task, data, settings, iterations, evaluate_every=max(1, iterations // 20))
        with show.training_progress(f"{number}/{len(learners)} {settings}", iterations, task.metric) as progress:
            results.append(run.go(progress).result)
    return sorted(results, key=lambda result: -float(result["test"]))


def _table(results: list[Json], iterations: int) -> Table:
    table = Table(title=f"NP chunking, generated data, {iterations:,} steps, one seed, best on dev")
    for name in ("", "rule", "perturb", "F1", "loss", "us", "h", "mu"):
        table.add_column(name, justify="left" if name in ("rule", "perturb") else "right", no_wrap=True)
    for rank, result in enumerate(results, start=1):
        table.add_row(
            str(rank),
            result["rule"],
            result["perturb"] or "-",
            f"{result['test']:.4f}",
            f"{result['average_loss']:.4f}",
            f"{result['us_per_iteration']:.1f}",
            rate_text(result["h"]),
            f"{result['mu']:g}" if result["mu"] else "-",
        )
    return table
