"""Estimators for scikit-learn: sequences of labels, and classes learned from feedback (docs/sklearn.md).

    from sparsezo.sklearn import BanditClassifier, SequenceLabeller

    labeller = SequenceLabeller().fit(X, y)         # lists of tokens, or of sklearn-crfsuite's dicts
    labeller.partial_fit([sentence], [tags])        # None where a tag is not known
    classifier = BanditClassifier().partial_fit(X, feedback=right, shown=said, classes=["ham", "spam"])

Needs scikit-learn; nothing else of the package imports this one.
"""

from __future__ import annotations

from sparsezo.errors import need

need("text")

from sparsezo.sklearn.bandit import BanditClassifier  # noqa: E402
from sparsezo.sklearn.sequences import SequenceLabeller  # noqa: E402

__all__ = ["BanditClassifier", "SequenceLabeller"]
