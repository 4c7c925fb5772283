"""What a test metric is made of, input by input, so that a report can draw test sets anew (paired bootstrap).

    scores.counts                               # of a task's Scores: int [inputs, k]
    METRICS["f1"](scores.counts.sum(axis=0))    # the metric of all of them, or of any choice of them

    f1          correct, predicted and gold chunks          accuracy    right, all
    bleu        the ten statistics of BLEU (rerank.metric.STATISTICS)

A task whose metric is no function of sums, or that does not say, leaves ``counts`` out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from sparsezo.tasks.base import AnyArray

Sums = AnyArray  # [..., k]
_ORDER = 4  # of BLEU


def f1(sums: Sums) -> NDArray[np.float64]:
    correct, predicted, gold = np.moveaxis(np.asarray(sums, np.float64), -1, 0)
    return np.asarray(2 * correct / np.maximum(predicted + gold, 1))


def accuracy(sums: Sums) -> NDArray[np.float64]:
    right, every = np.moveaxis(np.asarray(sums, np.float64), -1, 0)
    return np.asarray(right / np.maximum(every, 1))


def bleu(sums: Sums) -> NDArray[np.float64]:
    """sacrebleu's corpus BLEU, with its default for an order without a correct n-gram (``exp``)."""
    stats = np.asarray(sums, np.float64)
    length, reference, correct, total = stats[..., 0], stats[..., 1], stats[..., 2:6], stats[..., 6:]
    log, halves = np.zeros(stats.shape[:-1]), np.ones(stats.shape[:-1])
    for n in range(_ORDER):
        none = correct[..., n] == 0
        halves = np.where(none, 2 * halves, halves)
        log = log + np.log(np.where(none, 1 / halves, correct[..., n]) / np.maximum(total[..., n], 1))
    brevity = np.minimum(1 - reference / np.maximum(length, 1), 0.0)
    scored = correct.any(axis=-1) & (total > 0).all(axis=-1)
    return np.asarray(np.where(scored, np.exp(brevity + log / _ORDER), 0.0))


METRICS: Mapping[str, Callable[[Sums], NDArray[np.float64]]] = {"f1": f1, "accuracy": accuracy, "bleu": bleu}
