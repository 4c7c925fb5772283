"""Reranking in the registry."""

from __future__ import annotations

from sparsezo.tasks.kind import TaskKind
from sparsezo.tasks.rerank.options import RerankOptions, RerankPredicting, RerankReading

_SAMPLED = {
    "first-order": {"adagrad": 0.01, "constant": 1e-3},
    "pairwise": {"adagrad": 0.1, "constant": 0.01},
    "cross-entropy": {"adagrad": 0.1, "constant": 1e-3},
}


def defaults(rule: str, step: str, perturb: str | None) -> tuple[float, float]:
    """From a decoder's weights, which are near the best ones already: small steps. mu is the paper's largest."""
    mu = 0.01
    if rule == "pair":
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
    from sparsezo.tasks.rerank.importing import default_references

    return str(default_references(path))


KIND = TaskKind(
    name="rerank",
    title="Reranking of translations (SMT)",
    inputs="lists",
    metric="bleu",
    metric_name="BLEU",
    loss_name="1 - BLEU",
    files="sparsezo.tasks.rerank.files",
    train_options=RerankOptions,
    read_options=RerankReading,
    predict_options=RerankPredicting,
    defaults=defaults,
    grid=((1.0, 0.1, 0.01, 0.001, 1e-4, 1e-5), (0.01, 0.001, 1e-4, 1e-5, 1e-6)),  # the paper's, for lists of any kind
    asks=("pair",),
    making="sparsezo.tasks.rerank.making",
    metric_extra="rerank",
    hold_out=False,
    experiments={"smt": "paper.toml", "answers-rerank": "answers.toml"},
    paper="smt",
    home="sparsezo.tasks.rerank",
    companions=references_beside,
    beats_first_order="paper Sec. 5, SMT: 0.265 to 0.273 BLEU against 0.263",
    margin=0.002,  # 0.2 BLEU points
)
