"""Text classification in the registry."""

from __future__ import annotations

from sparsezo.tasks.kind import TaskKind
from sparsezo.tasks.text.options import TextOptions, TextPredicting, TextReading

ASKS = ("label", "part", "pair", "rate")  # naming a class says most: it is what people are asked for by default


def defaults(rule: str, step: str, perturb: str | None) -> tuple[float, float]:
    """The more weights move, the smaller their steps (docs/results)."""
    if rule in ASKS:
        return {"label": 0.6, "part": 1.0}.get(rule, 0.3), 1.0
    if perturb is None:
        return (0.3 if rule == "pairwise" else 1.0), 1.0
    return (0.3 if step == "adagrad" else {"all": 1e-3, "active": 0.01}.get(perturb, 0.1)), 1.0


KIND = TaskKind(
    name="text",
    title="Text classification",
    inputs="documents",
    metric="accuracy",
    metric_name="accuracy",
    loss_name="error",
    files="sparsezo.tasks.text.files",
    train_options=TextOptions,
    read_options=TextReading,
    predict_options=TextPredicting,
    defaults=defaults,
    usual_step="adagrad",
    adagrad_grid=((1.0, 0.3, 0.1), (2.0, 1.0, 0.5)),
    asks=ASKS,
    serve_defaults={"vectors": "auto"},
    making="sparsezo.tasks.text.making",
    streaming="sparsezo.tasks.text.streaming",
    reading_extra="text",
    several_files=True,
    experiments={"text": "paper.toml", "answers-text": "answers.toml"},
    paper="text",
    home="sparsezo.tasks.text",
    speed_against_first_order=True,
    zero_one_loss=True,
)
