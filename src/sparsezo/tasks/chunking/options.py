"""Chunking's own options."""

from __future__ import annotations

from dataclasses import dataclass

from sparsezo.options import check_options, option


@dataclass(frozen=True)
class ChunkingOptions:
    """Of train and tune."""

    only: str | None = option(None, "Keep one chunk type, such as NP.")
    order: int = option(2, "2: weights for tag bigrams (the paper); 1: for tags, plus bigrams.", choices=(1, 2))
    template: str | None = option(None, "Feature templates in CRF++'s notation.", file=True, shown="built in")
    min_count: int = option(1, "Leave out features seen less often.", least=1)

    def __post_init__(self) -> None:
        check_options(self)


@dataclass(frozen=True)
class NoOptions:
    """predict and evaluate need none."""
