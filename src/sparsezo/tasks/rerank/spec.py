"""Reranking in the registry, with its own options."""

from __future__ import annotations

from dataclasses import dataclass

from sparsezo.options import option
from sparsezo.tasks.spec import TaskSpec

_KEEP_SEGMENTATION = option(False, "Moses' marks |0-1| stay in the hypotheses, as words.")
_STORE = option(None, "Where imported lists are kept.", place=True, shown="the user's cache")
_TRAIN_REF, _DEV_REF, _TEST_REF, _REF = (
    option(None, f"References of the {part} lists, one file or several.", file=True, shown=".ref for .nbest")
    for part in ("training", "dev", "test", "test")
)


@dataclass(frozen=True)
class RerankOptions:
    """Of train and tune."""

    init: str | None = option(None, "A decoder's weights to start from (cdec, moses.ini).", file=True, shown="0")
    train_ref: tuple[str, ...] | None = _TRAIN_REF
    dev_ref: tuple[str, ...] | None = _DEV_REF
    test_ref: tuple[str, ...] | None = _TEST_REF
    store: str | None = _STORE
    keep_segmentation: bool = _KEEP_SEGMENTATION


@dataclass(frozen=True)
class RerankReading:
    """Of evaluate."""

    ref: tuple[str, ...] | None = _REF
    store: str | None = _STORE
    keep_segmentation: bool = _KEEP_SEGMENTATION


@dataclass(frozen=True)
class RerankPredicting:
    """Of predict."""

    nbest: bool = option(False, "The whole lists, reranked, not only the best.")
    keep_segmentation: bool = _KEEP_SEGMENTATION


_SAMPLED = {
    "first-order": {"adagrad": 0.01, "constant": 1e-3},
    "pairwise": {"adagrad": 0.1, "constant": 0.01},
    "cross-entropy": {"adagrad": 0.1, "constant": 1e-3},
}


def defaults(rule: str, step: str, perturb: str | None) -> tuple[float, float]:
    """From a decoder's weights, which are near the best ones already: small steps. mu is the paper's largest."""
    mu = 0.01
    if rule in ("pair", "best"):
        return 0.1, mu
    if rule == "supervised":
        return 0.01, mu
    if rule in _SAMPLED:
        return _SAMPLED[rule][step], mu
    if step == "adagrad":
        return 0.1, mu
    return (1e-4 if rule in ("two-point", "symmetric") else 1e-5), mu


def references_beside(path: str) -> str:
    """train.nbest.xz -> train.ref"""
    from sparsezo.tasks.rerank.io.importing import default_references

    return str(default_references(path))


SPEC = TaskSpec(
    name="rerank",
    title="Reranking of translations (SMT)",
    inputs="lists",
    metric="bleu",
    metric_name="BLEU",
    loss_name="1 - BLEU",
    io_module="sparsezo.tasks.rerank.io.files",
    serving_module="sparsezo.tasks.rerank.serving",
    log_module="sparsezo.tasks.rerank.logs",
    train_options=RerankOptions,
    read_options=RerankReading,
    predict_options=RerankPredicting,
    defaults=defaults,
    grid=((1.0, 0.1, 0.01, 0.001, 1e-4, 1e-5), (0.01, 0.001, 1e-4, 1e-5, 1e-6)),  # the paper's, for lists of any kind
    asks=("pair", "best"),
    synthetic_module="sparsezo.tasks.rerank.synthetic",
    metric_extra="rerank",
    hold_out=False,
    companions=references_beside,
)
