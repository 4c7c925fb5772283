"""Accuracy (1 - mean loss of text classification), and precision, recall and F1 of each class.

A ratio without a denominator (a class never predicted, or never there) counts as 0.

    scores = score_classes(["rec", "sci", "sci"], ["rec", "sci", "rec"])
    scores.accuracy, scores.macro_f1, dict(zip(scores.classes, scores.f1))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import UsageError


@dataclass(frozen=True)
class ClassScores:
    """``precision[k]``, ``recall[k]``, ``f1[k]`` and ``support[k]`` (gold documents) belong to ``classes[k]``."""

    accuracy: float
    macro_f1: float
    classes: tuple[str, ...]
    precision: tuple[float, ...]
    recall: tuple[float, ...]
    f1: tuple[float, ...]
    support: tuple[int, ...]

    def as_dict(self) -> dict[str, Any]:
        """For JSON: accuracy, macro_f1, and the four figures of each class by its name."""
        rows = zip(self.classes, self.precision, self.recall, self.f1, self.support, strict=True)
        by_class = {name: {"precision": p, "recall": r, "f1": f, "support": n} for name, p, r, f, n in rows}
        return {"accuracy": self.accuracy, "macro_f1": self.macro_f1, "classes": by_class}


def score_classes(gold: Sequence[str] | NDArray[Any], predicted: Sequence[str] | NDArray[Any]) -> ClassScores:
    """Compare two lists of labels; the classes are all labels of either, sorted."""
    if len(gold) != len(predicted):
        raise UsageError(
            f"{len(gold)} gold labels, but {len(predicted)} predicted; there must be one for each document"
        )
    if len(gold) == 0:
        raise UsageError("no documents to score; give at least one")
    classes, numbers = np.unique(np.concatenate([np.asarray(gold), np.asarray(predicted)]), return_inverse=True)
    of_gold, of_predicted = np.split(numbers, 2)
    support = np.bincount(of_gold, minlength=len(classes))
    said = np.bincount(of_predicted, minlength=len(classes))
    right = np.bincount(of_gold[of_gold == of_predicted], minlength=len(classes))
    precision, recall, f1 = _ratio(right, said), _ratio(right, support), _ratio(2 * right, said + support)
    return ClassScores(
        accuracy=int(right.sum()) / len(gold),
        macro_f1=float(f1.mean()),
        classes=tuple(str(name) for name in classes),
        precision=tuple(precision.tolist()),
        recall=tuple(recall.tolist()),
        f1=tuple(f1.tolist()),
        support=tuple(support.tolist()),
    )


def _ratio(above: NDArray[np.int64], below: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.divide(above, below, out=np.zeros(len(above)), where=below > 0)
