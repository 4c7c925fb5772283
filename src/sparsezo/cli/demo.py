"""demo: every rule with every perturbation on generated sentences, ranked by test F1; then a report on all tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.table import Table

from sparsezo import extras
from sparsezo.cli import show
from sparsezo.cli.values import seconds as of_seconds
from sparsezo.perturbations import PERTURBATIONS
from sparsezo.rules import RULES
from sparsezo.settings import Settings
from sparsezo.storage.files import working_folder
from sparsezo.tasks.chunking.generate import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.loading import Data
from sparsezo.tasks.registry import experiments
from sparsezo.training import Training

_SENTENCES = {"train": (2000, 1), "dev": (500, 2), "test": (1000, 3)}  # how many, seed
_REPORT_STEPS = "50k"
_REPORT_SETTINGS = {"chunking": (0.003, 0.1), "smt": (0.001, 0.1)}  # h and mu for runs this short
_LONGEST = 1e6  # seconds
_STEPS_PER_SECOND = 4_000  # of the whole demo's time, for each learner: what two cores of 2022 manage


def run_demo(seconds: float, report: Path | None, *, as_json: bool) -> None:
    if report is not None:
        extras.need("report", *(extra for each in experiments().values() for extra in each.extras))
        with working_folder(report):  # it can be written: said now, not after the table
            pass
    results = _ranking(of_seconds(seconds, "--seconds"))
    iterations = int(results[0]["iterations"])
    if report is not None:
        page = _report(report)
    if as_json:
        fields = {"data": "generated", "iterations": iterations, "learners": results}
        show.result({**fields, "report": str(page) if report else None}, as_json=True)
        return
    show.output.print(_table(results, iterations))
    show.output.print(
        "F1 on test, loss: average over the run, us: microseconds a step.\n"
        "Generated data: the order is what to look at, not the figures. supervised sees the correct tags; all others "
        "see only how good their outputs were.",
        markup=False,
    )
    if report is not None:
        show.output.print(
            f"The report on all three tasks, also on generated data: {page}", markup=False, soft_wrap=True
        )
    show.output.print("Next: sparsezo train chunking --help", markup=False)


def _report(folder: Path) -> Path:
    """The three experiments of the paper in small, on generated data."""
    from sparsezo.cli.reproduce import run_reproduce

    run_reproduce(
        "all", "generated", seeds=2, iterations=_REPORT_STEPS, phases="fixed", out=folder, at=_REPORT_SETTINGS
    )
    return (folder / "report" / "report.html").resolve()


def _ranking(seconds: float) -> list[dict[str, Any]]:
    train, dev, test = (chunking_corpus(n, seed) for n, seed in _SENTENCES.values())
    task, train = Chunking.fit(train, only="NP")
    data = Data(train, task.seen(dev), task.seen(test))
    iterations = max(1000, int(min(seconds, _LONGEST) * _STEPS_PER_SECOND))
    learners = [
        (rule, perturb)
        for rule in RULES.values()
        for perturb in (PERTURBATIONS if rule.zeroth_order else [None])
        if not rule.asks  # these are measured by answers, not by steps
    ]
    show.note(
        f"{len(learners)} learners, {iterations:,} steps each, on GENERATED sentences ({len(train):,} to learn from); "
        "rules that perturb nothing once, the others with each perturbation"
    )
    show.note_compiling()
    results: list[dict[str, Any]] = []
    for number, (rule, perturb) in enumerate(learners, start=1):
        h, mu = task.defaults(rule.name, "constant", perturb)
        settings = Settings(rule.name, perturb, h, mu if perturb else None)
        run = Training(task, data, settings, iterations, evaluate_every=max(1, iterations // 20))
        with show.training_progress(f"{number}/{len(learners)} {settings}", iterations, task.metric) as progress:
            results.append(run.go(progress).result)
    return sorted(results, key=lambda result: -float(result["test"]))


def _table(results: list[dict[str, Any]], iterations: int) -> Table:
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
            f"{result['h']:g}",
            f"{result['mu']:g}" if result["mu"] else "-",
        )
    return table
