"""Chunking in the registry."""

from __future__ import annotations

from sparsezo.settings import AUTO, Rate
from sparsezo.tasks.chunking.options import ChunkingOptions, PredictOptions, ReadingOptions
from sparsezo.tasks.spec import TaskSpec

ASKS = ("part", "label", "span", "review", "pair", "rate")  # by the service
_AUTOMATIC = {  # where auto was measured to be as good as a tuned h, or better (docs/steps.md)
    ("score", "adagrad"): ("comparison", "preference", "baseline"),
    ("active", "constant"): ("two-point", "symmetric"),
}
_ANSWERS: dict[str, Rate] = {"span": AUTO, "review": 0.1, "rate": 0.5}
_SAMPLED = {"pairwise": {"adagrad": 0.02, "constant": 0.003}, "cross-entropy": {"adagrad": 0.03, "constant": 0.001}}


def defaults(rule: str, step: str, perturb: str | None) -> tuple[Rate, float]:
    """The more weights move, the smaller their steps (docs/results)."""
    if rule in ASKS:
        return _ANSWERS.get(rule, 0.2), 0.1
    if perturb is None:
        return _SAMPLED.get(rule, {"adagrad": 0.1, "constant": 0.01})[step], 0.1
    h: Rate = 0.05 if step == "adagrad" else {"all": 1e-4, "active": 3e-4}.get(perturb, 1e-3)
    return (AUTO if rule in _AUTOMATIC.get((perturb, step), ()) else h), 0.2 if step == "adagrad" else 0.1


SPEC = TaskSpec(
    name="chunking",
    title="Noun-phrase chunking",
    inputs="sentences",
    metric="f1",
    metric_name="F1",
    loss_name="1 - F1",
    io_module="sparsezo.tasks.chunking.io.files",
    serving_module="sparsezo.tasks.chunking.serving",
    log_module="sparsezo.tasks.chunking.logs",
    train_options=ChunkingOptions,
    read_options=ReadingOptions,
    predict_options=PredictOptions,
    defaults=defaults,
    usual_step="adagrad",
    constant_steps=("all", "active"),  # test F1 0.848 against 0.723 with Adagrad after 200k steps
    adagrad_grid=((0.3, 0.1, 0.03), (0.4, 0.2, 0.1)),
    asks=ASKS,
    several_files=True,
    synthetic_module="sparsezo.tasks.chunking.synthetic",
    streams=True,
    spans=True,
)
