"""``BanditClassifier``: a linear classifier that learns from labels, and from what people say of the classes shown.

    classifier = BanditClassifier()
    classifier.partial_fit(X[:1], feedback=[True], shown=["spam"], classes=["ham", "spam"])
    said = classifier.predict(batch)
    classifier.partial_fit(batch, feedback=rewards, shown=said)     # right or wrong of each, or a number in [0, 1]

"Wrong" is taken as evidence for all other classes under the model's own probabilities (docs/answers.md, part): what is
climbed is r log p(shown) + (1 - r) log(1 - p(shown)), which needs no propensities, and answers may come late.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, hstack
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from sparsezo.kernels.inputs.rows import row_inputs
from sparsezo.learner import Learner
from sparsezo.query_learner import QueryLearner
from sparsezo.questions import A_LOSS, YES_NO, Question
from sparsezo.settings import Settings
from sparsezo.steps import from_size
from sparsezo.tasks.base import AnyArray, Problem
from sparsezo.tasks.text.kernels.task import ClassGold, class_task

_CONFIG = {"accept_sparse": "csr", "dtype": (np.float64, np.float32)}
Given = Any  # as scikit-learn takes it, which checks it: array-like or sparse


class BanditClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Softmax of linear scores, by Adagrad, from labels (``fit``) or from feedback (``partial_fit``).

    passes: how often ``fit`` goes over the rows. h: the step, or "auto", 8 / the mean of |x|_1 over the first batch,
    which makes the scale of X without meaning. fit_intercept: a column of ones beside X. rater_error: how often whoever
    says right or wrong is believed to err.

    >>> X, y = [[0.0, 1.0], [1.0, 0.0]], ["a", "b"]
    >>> classifier = BanditClassifier().partial_fit(X, feedback=[1, 0], shown=["a", "a"], classes=["a", "b"])
    >>> classifier.predict(X).tolist()
    ['a', 'b']
    """

    def __init__(
        self,
        *,
        passes: int = 20,
        h: float | str = "auto",
        fit_intercept: bool = True,
        rater_error: float = 0.0,
        random_state: Given = 0,
    ) -> None:
        self.passes = passes
        self.h = h
        self.fit_intercept = fit_intercept
        self.rater_error = rater_error
        self.random_state = random_state

    def __sklearn_tags__(self) -> Given:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # Learning

    def fit(self, X: Given, y: Given) -> Self:
        """Learn from rows and their classes, from nothing."""
        X, y = validate_data(self, X, y, **_CONFIG)
        check_classification_targets(y)
        if not (isinstance(self.passes, int | np.integer) and self.passes > 0):
            raise ValueError(f"passes {self.passes!r}: must be a whole number above 0")
        self._begin(X, np.unique(y))
        self._learn_labels(X, y, int(self.passes))
        return self

    def partial_fit(
        self,
        X: Given,  # scikit-learn checks it: array-like or sparse
        y: Given = None,
        feedback: Given = None,
        classes: ArrayLike | None = None,
        shown: ArrayLike | None = None,
    ) -> Self:
        """Go over these rows once, from where the model stands: with their classes ``y``, or with ``feedback``.

        feedback: of each row, whether the class ``shown`` was right (True, False), or a reward from 0 to 1. shown:
        by default what ``predict`` says now. classes: all there are, needed in the first call.
        """
        first = not hasattr(self, "coef_")
        if (y is None) == (feedback is None):
            raise ValueError("give y, the right classes, or feedback on those that were shown; one of the two")
        if y is not None:
            X, y = validate_data(self, X, y, reset=first, **_CONFIG)
            check_classification_targets(y)
        else:
            X = validate_data(self, X, reset=first, **_CONFIG)
        if first:
            if classes is None:
                raise ValueError("classes must be given in the first call of partial_fit")
            self._begin(X, np.unique(np.asarray(classes)))
        elif classes is not None and not np.array_equal(np.unique(np.asarray(classes)), self.classes_):
            raise ValueError(f"classes {classes!r} are not those of the first call: {self.classes_!r}")
        if y is not None:
            self._learn_labels(X, y, 1)
        else:
            self._learn_feedback(X, feedback, self.predict(X) if shown is None else shown)
        return self

    def _begin(self, X: Given, classes: AnyArray) -> None:
        if len(classes) < 2:
            raise ValueError(f"a classifier has two classes or more; there is one class, {classes.tolist()}")
        self.classes_ = classes
        rows = self._rows(X)
        sizes = np.abs(rows.data)
        norm = float(sizes.sum()) / max(rows.shape[0], 1)
        if isinstance(self.h, str):
            if self.h != "auto":
                raise ValueError(f"h {self.h!r}: give a number above 0, or 'auto'")
            self.h_ = from_size(norm)
        else:
            self.h_ = float(self.h)
        self._table = np.zeros((rows.shape[1], len(classes)), np.float32)
        # under Adagrad's root stands 1 + q: q begins where that is the square of a usual value
        start = float(np.square(sizes, dtype=np.float64).mean()) if sizes.size else 1.0
        self._squares = np.full_like(self._table, start - 1)
        self.t_ = 0
        self._seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self.coef_: AnyArray = self._table  # see _done

    def _learn_labels(self, X: Given, y: AnyArray, passes: int) -> None:
        labels = self._places(y, "y")
        problem = self._problem(X)
        settings = Settings("supervised", None, h=self.h_, mu=None, step="adagrad", seed=self._seed)
        learner = Learner(problem, settings, self._table, copy=False)
        learner.state = learner.state._replace(q=self._squares)
        learner.look_in_turn(self.t_)
        learner.run(ClassGold(labels), steps=passes * len(problem))
        self._done(passes * len(problem))

    def _learn_feedback(self, X: Given, feedback: ArrayLike, shown: ArrayLike) -> None:
        rewards = np.asarray(feedback, float).reshape(-1)
        said = self._places(np.asarray(shown), "shown")
        if not len(rewards) == len(said) == X.shape[0]:
            raise ValueError(f"{X.shape[0]} rows, feedback on {len(rewards)}, and {len(said)} classes shown")
        if not ((rewards >= 0) & (rewards <= 1)).all():
            raise ValueError("feedback is right or wrong, or a reward from 0 to 1")
        error = float(self.rater_error)
        settings = Settings(
            "part", None, h=self.h_, mu=None, step="adagrad", seed=self._seed, rehearse=0, rater_error=str(error)
        )
        problem = self._problem(X)
        learner = QueryLearner(problem, settings, self._table, copy=False)
        learner.state = learner.state._replace(q=self._squares)
        for x, (reward, k) in enumerate(zip(rewards.tolist(), said.tolist(), strict=True)):
            numbers, output = (0, k, 0, 0), np.array([k], np.int32)
            if reward in (0.0, 1.0):
                question = Question("", 0, x, "part", "token", numbers, (), 1.0, (), ())
                learner.learn_from(question, "yes" if reward else "no")
            else:
                question = Question("", 0, x, "rate", "token", numbers, (output,), 1.0, (), ())
                learner.learn_from(question, 1 - reward)
        self._done(len(problem))

    def _done(self, steps: int) -> None:
        """coef_ and intercept_ as scikit-learn has them: one row for two classes."""
        self.t_ += steps
        table = self._table.astype(np.float64).T
        if len(self.classes_) == 2:
            table = table[1:] - table[:1]
        n = self.n_features_in_
        self.coef_ = table[:, :n]
        self.intercept_ = table[:, n] if self.fit_intercept else np.zeros(len(table))

    def _places(self, y: ArrayLike, what: str) -> NDArray[np.int32]:
        """The number of each class."""
        given: AnyArray = column_or_1d(y)
        places: NDArray[np.int64] = np.searchsorted(self.classes_, given).clip(max=len(self.classes_) - 1)
        unknown = self.classes_[places] != given
        if unknown.any():
            raise ValueError(f"{what}: {given[unknown][0]!r} is none of the classes {self.classes_!r}")
        return np.asarray(places, np.int32)

    def _rows(self, X: Given) -> csr_array:
        rows = csr_array(X, dtype=np.float32)
        if self.fit_intercept:
            rows = csr_array(hstack([rows, np.ones((rows.shape[0], 1), np.float32)], format="csr"))
        rows.sum_duplicates()
        return rows

    def _problem(self, X: Given) -> Problem:
        inputs, L = row_inputs(self._rows(X)), len(self.classes_)
        words = np.diff(inputs.indptr)
        return Problem(
            inputs=inputs,
            task=class_task(L),
            n_features=len(self._table),
            n_labels=L,
            output_start=np.arange(X.shape[0] + 1),
            n_active=words * L,
            max_rows=1,
            max_columns=int(words.max(initial=0)),
            questions={("part", "token"): YES_NO, ("rate", "token"): A_LOSS},
        )

    # What the model says

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Scores, rows x classes; of two classes that of the second over the first."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, **_CONFIG)
        scores = np.asarray(X @ self.coef_.T) + self.intercept_
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Probabilities, rows x classes."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            scores = np.stack((np.zeros_like(scores), scores), axis=1)
        made = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(made / made.sum(axis=1, keepdims=True))

    def predict_log_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Their logarithms."""
        return np.log(np.maximum(self.predict_proba(X), 1e-300))

    def predict(self, X: ArrayLike) -> AnyArray:
        """The most probable class of each row."""
        scores = self.decision_function(X)
        best = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[best])
