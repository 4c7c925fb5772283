"""Text classification's own options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sparsezo.options import check_options, option
from sparsezo.tasks.hash_bits import check_hash_bits, hash_bits


def _format() -> Any:
    return option(None, "tsv, text (one a line), csv, jsonl, svmlight or lyrl.", shown="by ending and content")


def _text_column() -> Any:
    return option(None, "csv, jsonl: texts, by name or number.", shown="text, sentence, document, body or content")


def _label_column() -> Any:
    return option(None, "csv, jsonl: labels, by name or number.", shown="label, class, category, target or topic")


def _topics() -> Any:
    return option(None, "RCV1's topics qrels file, for lyrl.", file=True, shown="the one beside the documents")


@dataclass(frozen=True)
class TextOptions:
    """Of train and tune."""

    format: str | None = _format()
    text_column: str | None = _text_column()
    label_column: str | None = _label_column()
    topics: str | None = _topics()
    classes: str | None = option(
        None, "Train has no labels: learn these classes, parted by commas.", shown="train's", unlabelled=True
    )
    raw_tf: bool = option(False, "tf-idf with tf as it is, not 1 + log tf.")
    min_count: int = option(1, "Leave out words, or indices, of fewer documents.", least=1)
    hash_bits: int | None = hash_bits()
    vectors: str | None = option(
        None,
        "Words' vectors, as dense columns beside tf-idf: of the package wordllama, or of a file (word v1 v2 ...).",
        file=True,
        words=("wordllama", "auto", "none"),
        shown="none; auto in serve",
    )

    def __post_init__(self) -> None:
        check_options(self)
        check_hash_bits(self.hash_bits, self.min_count)


@dataclass(frozen=True)
class TextReading:
    """Of evaluate."""

    format: str | None = _format()
    text_column: str | None = _text_column()
    label_column: str | None = _label_column()
    topics: str | None = _topics()


@dataclass(frozen=True)
class TextPredicting:
    """Of predict."""

    format: str | None = _format()
    text_column: str | None = _text_column()
    topics: str | None = _topics()
    labels_only: bool = option(False, "Labels without the texts.")
