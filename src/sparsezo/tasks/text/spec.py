"""Text classification in the registry, with its own options."""

from __future__ import annotations

from dataclasses import dataclass

from sparsezo.options import check_options, option
from sparsezo.settings import AUTO, Rate
from sparsezo.tasks.hash_bits import check_hash_bits, hash_bits
from sparsezo.tasks.spec import TaskSpec

_FORMAT = option(None, "tsv, text (one a line), csv, jsonl, svmlight or lyrl.", shown="by ending and content")
_TEXT_COLUMN = option(None, "csv, jsonl: texts, by name or number.", shown="text, sentence, document, body or content")
_TOPICS = option(None, "RCV1's topics qrels file, for lyrl.", file=True, shown="the one beside the documents")


@dataclass(frozen=True)
class TextReading:
    """Of evaluate."""

    format: str | None = _FORMAT
    text_column: str | None = _TEXT_COLUMN
    label_column: str | None = option(
        None, "csv, jsonl: labels, by name or number.", shown="label, class, category, target or topic"
    )
    topics: str | None = _TOPICS


@dataclass(frozen=True)
class TextOptions(TextReading):
    """Of train and tune."""

    classes: str | None = option(
        None, "Train has no labels: learn these classes, parted by commas.", shown="train's", unlabelled=True
    )
    raw_tf: bool = option(False, "tf-idf with tf as it is, not 1 + log tf.")
    min_count: int = option(1, "Leave out words, or indices, of fewer documents.", least=1)
    hash_bits: int | None = hash_bits()
    vectors: str | None = option(
        None,
        "Dense columns beside tf-idf: words' vectors of the package wordllama or of a file (word v1 v2 ...), or an "
        "encoder's of documents, module:function.",
        file=True,
        words=("wordllama", "auto", "none"),
        shown="none; auto in serve",
    )

    def __post_init__(self) -> None:
        check_options(self)
        check_hash_bits(self.hash_bits, self.min_count)


@dataclass(frozen=True)
class TextPredicting:
    """Of predict."""

    format: str | None = _FORMAT
    text_column: str | None = _TEXT_COLUMN
    topics: str | None = _TOPICS
    labels_only: bool = option(False, "Labels without the texts.")


ASKS = ("label", "part", "pair", "rate")  # naming a class says most: it is what people are asked for by default


def defaults(rule: str, step: str, perturb: str | None) -> tuple[Rate, float]:
    """The more weights move, the smaller their steps (docs/results); auto where it was measured to be as good as a
    tuned h, after 100k steps and after 1M (docs/steps.md)."""
    if rule in ASKS:
        return {"label": 0.6, "part": 1.0}.get(rule, AUTO), 1.0
    if perturb is None:
        return (0.3 if rule == "pairwise" else 1.0), 1.0
    if step == "adagrad":
        return (AUTO if perturb in ("score", "active") else 0.3), 1.0
    return {"all": 1e-3, "active": 0.01}.get(perturb, 0.1), 1.0


SPEC = TaskSpec(
    name="text",
    title="Text classification",
    inputs="documents",
    metric="accuracy",
    metric_name="accuracy",
    loss_name="error",
    io_module="sparsezo.tasks.text.io.files",
    serving_module="sparsezo.tasks.text.serving",
    log_module="sparsezo.tasks.text.logs",
    train_options=TextOptions,
    read_options=TextReading,
    predict_options=TextPredicting,
    defaults=defaults,
    usual_step="adagrad",
    adagrad_grid=((1.0, 0.3, 0.1), (2.0, 1.0, 0.5)),
    asks=ASKS,
    serve_defaults={"vectors": "auto"},
    synthetic_module="sparsezo.tasks.text.synthetic",
    streams=True,
    reading_extra="text",
    several_files=True,
)
