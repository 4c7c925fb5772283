"""demo: every rule with every perturbation on generated sentences, ranked by test F1."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from sparsezo.cli import show
from sparsezo.data.generate_chunking import chunking_corpus
from sparsezo.experiments.training import Data, Training
from sparsezo.perturbations import PERTURBATIONS
from sparsezo.rules import RULES
from sparsezo.settings import Settings
from sparsezo.tasks.chunking import Chunking

_SENTENCES = {"train": (2000, 1), "dev": (500, 2), "test": (1000, 3)}  # how many, seed
_STEPS_PER_SECOND = 4_000  # of the whole demo's time, for each learner: what two cores of 2022 manage


def run_demo(seconds: float, *, as_json: bool) -> None:
    train, dev, test = (chunking_corpus(n, seed) for n, seed in _SENTENCES.values())
    task, train = Chunking.fit(train, only="NP")
    data = Data(train, task.seen(dev), task.seen(test))
    iterations = max(1000, int(seconds * _STEPS_PER_SECOND))
    learners = [
        (rule, perturb) for rule in RULES.values() for perturb in (PERTURBATIONS if rule.zeroth_order else [None])
    ]
    show.note(
        f"{len(learners)} learners, {iterations:,} steps each, on GENERATED sentences ({len(train):,} to learn from); "
        "supervised and first-order once, the others with each perturbation"
    )
    show.note_compiling()
    results: list[dict[str, Any]] = []
    for number, (rule, perturb) in enumerate(learners, start=1):
        h, mu = task.defaults(rule.name, "constant")
        settings = Settings(rule.name, perturb, h, mu if perturb else None)
        run = Training(task, data, settings, iterations, evaluate_every=max(1, iterations // 20))
        with show.training_progress(f"{number}/{len(learners)} {settings}", iterations, task.metric) as progress:
            results.append(run.go(progress).result)
    results.sort(key=lambda result: -float(result["test"]))
    if as_json:
        show.result({"data": "generated", "iterations": iterations, "learners": results}, as_json=True)
        return
    show.output.print(_table(results, iterations))
    show.output.print(
        "F1 on test, loss: average over the run, us: microseconds a step.\n"
        "Generated data: the order is what to look at, not the figures. supervised sees the correct tags; all others "
        "see only how good their outputs were.\nNext: sparsezo train chunking --help",
        markup=False,
    )


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
