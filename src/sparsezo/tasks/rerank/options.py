"""Reranking's own options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sparsezo.options import option

_BESIDE = ".ref for .nbest"


def _references(part: str) -> Any:
    return option(None, f"References of the {part} lists, one file or several.", file=True, shown=_BESIDE)


def _store() -> Any:
    return option(None, "Where imported lists are kept.", place=True, shown="the user's cache")


def _keep_segmentation() -> Any:
    return option(False, "Moses' marks |0-1| stay in the hypotheses, as words.")


@dataclass(frozen=True)
class RerankOptions:
    """Of train and tune."""

    init: str | None = option(None, "A decoder's weights to start from (cdec, moses.ini).", file=True, shown="0")
    train_ref: tuple[str, ...] | None = _references("training")
    dev_ref: tuple[str, ...] | None = _references("dev")
    test_ref: tuple[str, ...] | None = _references("test")
    store: str | None = _store()
    keep_segmentation: bool = _keep_segmentation()


@dataclass(frozen=True)
class RerankReading:
    """Of evaluate."""

    ref: tuple[str, ...] | None = _references("test")
    store: str | None = _store()
    keep_segmentation: bool = _keep_segmentation()


@dataclass(frozen=True)
class RerankPredicting:
    """Of predict."""

    nbest: bool = option(False, "The whole lists, reranked, not only the best.")
    keep_segmentation: bool = _keep_segmentation()
