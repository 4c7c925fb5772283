"""Text classification (the paper's appendix, multiclass classification of RCV1).

A document is one row of tf-idf values, an output is one of the classes, and its loss is 0 or 1.

    task, train = TextClassification.fit(read_documents("train.tsv"))   # classes, vocabulary and idf; with vectors
    test = task.seen(read_documents("test.tsv"))
    problem, gold = task.problem(train), task.gold(train)
    task.scores(test, predict(task.problem(test, learn=False), W))
    task, raw = TextClassification.fit(raw, classes="sci,talk")     # no labels: there is no gold, people are asked
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsezo.errors import DataError, UsageError
from sparsezo.kernels.inputs.rows import row_inputs
from sparsezo.learner import predict
from sparsezo.options import names_function
from sparsezo.questions import A_LOSS, WHICH, YES_NO
from sparsezo.tasks.base import AnyArray, Arrays, Json, Problem, Scores
from sparsezo.tasks.encoders import Encode, Encoder
from sparsezo.tasks.hash_bits import check_hash_bits
from sparsezo.tasks.text.features.tfidf import TOKEN_PATTERN, HashedVectoriser, TextVectoriser
from sparsezo.tasks.text.features.word_vectors import WithEncoder, WithVectors, Words, WordVectors, chosen
from sparsezo.tasks.text.io.documents import Documents, class_numbers, classes_of, named_classes
from sparsezo.tasks.text.kernels.task import ClassGold, class_task
from sparsezo.tasks.text.spec import TextOptions, defaults

_MOST_WEIGHTS = 2**31  # of a dense table of features x labels
Vectoriser = Words | WithVectors
_ADAGRAD_START = 0.01  # a document has length 1, so its words' values are small: with 1, steps would hardly shrink


@dataclass(frozen=True, eq=False)
class Prepared:
    """Documents with their vectors, so that these are made once."""

    documents: Documents
    matrix: csr_array  # documents x features, float32

    def __len__(self) -> int:
        return len(self.documents)

    def take(self, chosen: Sequence[int] | NDArray[np.int64]) -> Prepared:
        """The chosen documents, in that order."""
        return Prepared(self.documents.take(chosen), self.matrix[np.asarray(chosen, np.int64)])


@dataclass(frozen=True, eq=False)
class TextClassification:
    """Classes, and the vectoriser that was fitted on train."""

    classes: tuple[str, ...]
    vectoriser: Vectoriser

    name = "text"
    metric = "accuracy"
    defaults = staticmethod(defaults)

    @classmethod
    def fit(
        cls,
        train: Documents,
        *,
        sublinear_tf: bool = True,
        min_count: int = TextOptions.min_count,
        lowercase: bool = True,
        token_pattern: str = TOKEN_PATTERN,
        hash_bits: int | None = None,
        classes: str | Sequence[str] | None = None,
        vectors: str | WordVectors | Encode | None = None,
    ) -> tuple[TextClassification, Prepared]:
        """The task of training documents, and these with their vectors.

        ``classes``: those to learn, where the documents do not have them. ``vectors``: of words, as dense columns
        beside these: ``wordllama``, a file's name, ``auto`` (wordllama where it is installed) or ``none``; or of
        documents: a function of a list of texts that gives an array texts x d, or its name as "module:function".
        """
        classes = tuple(classes_of(train)) if classes is None else named_classes(classes)
        check_hash_bits(hash_bits, min_count)
        words = {"sublinear_tf": sublinear_tf, "lowercase": lowercase, "token_pattern": token_pattern}
        counted: Words = TextVectoriser(min_count=min_count, **words)
        if hash_bits is not None:
            counted = HashedVectoriser(hash_bits, **words)
        vectoriser: Vectoriser
        if callable(vectors) or (isinstance(vectors, str) and names_function(vectors)):
            vectoriser = WithEncoder(counted, Encoder(vectors))
        else:
            columns = vectors if isinstance(vectors, WordVectors) else chosen(vectors, train)
            vectoriser = counted if columns is None else WithVectors(counted, columns)
        task = cls(classes, vectoriser)
        prepared = Prepared(train, vectoriser.fit_transform(train))
        task.check_size()
        return task, prepared

    def check_size(self) -> None:
        weights = self.n_features * self.n_labels
        if weights > _MOST_WEIGHTS:
            rare = "leave out rare features with a higher `min_count`"
            fewer = rare if self.hash_bits is None else "take fewer `hash_bits`"
            raise UsageError(
                f"{self.n_features:,} features x {self.n_labels:,} classes are {weights:,} weights of at most "
                f"{_MOST_WEIGHTS:,}; {fewer}, or join rare classes"
            )

    @property
    def hash_bits(self) -> int | None:
        """Rows are hashes of words, of so many bits; None: each word has its own."""
        words = self.vectoriser.words if isinstance(self.vectoriser, WithVectors) else self.vectoriser
        return words.hash_bits if isinstance(words, HashedVectoriser) else None

    @property
    def n_features(self) -> int:
        return self.vectoriser.n_features

    @property
    def n_labels(self) -> int:
        return len(self.classes)

    def with_vectors(self, function: Encode) -> TextClassification:
        """The task with the function that its vectors are of, where a model does not name it."""
        if not isinstance(self.vectoriser, WithEncoder):
            raise UsageError("`vectors`: the model was trained without an encoder; leave them out")
        vectoriser = copy.copy(self.vectoriser)
        vectoriser.encoder = Encoder(function)
        return replace(self, vectoriser=vectoriser)

    def seen(self, documents: Documents) -> Prepared:
        """Documents with their vectors as the task sees them: words that train does not have are left out."""
        return Prepared(documents, self.vectoriser.transform(documents))

    def problem(
        self, data: Documents | Prepared, *, learn: bool = True, risk: bool = False, asks: bool = False
    ) -> Problem:
        """Learning and the annealed criterion need nothing more than decoding."""
        matrix = (data if isinstance(data, Prepared) else self.seen(data)).matrix
        inputs = row_inputs(matrix)
        words = np.diff(inputs.indptr)
        return Problem(
            inputs=inputs,
            task=class_task(self.n_labels),
            n_features=self.n_features,
            n_labels=self.n_labels,
            output_start=np.arange(len(data) + 1),
            n_active=words * self.n_labels,
            max_rows=1,
            max_columns=int(words.max(initial=0)),
            questions={
                ("part", "token"): YES_NO,
                ("label", "token"): {name: k for k, name in enumerate(self.classes)},
                ("pair", "token"): WHICH,
                ("rate", "token"): A_LOSS,
            },
            adagrad_start=_ADAGRAD_START,
        )

    def gold(self, data: Documents | Prepared) -> ClassGold:
        return ClassGold(class_numbers(_documents(data), self.classes))

    def quality(self, problem: Problem, gold: ClassGold, outputs: NDArray[np.int32]) -> float:
        return float(np.mean(outputs == gold.labels))

    def scores(self, data: Documents | Prepared, outputs: NDArray[np.int32]) -> Scores:
        documents = _documents(data)
        if documents.labels is None:
            raise DataError(", ".join(documents.paths), "has no labels to compare with; write label TAB text")
        words = self.words(outputs)
        result = score_classes(documents.labels, words)
        right = np.array([a == b for a, b in zip(documents.labels, words, strict=True)], np.int8)
        counts = np.stack((right, np.ones_like(right)), axis=1)
        return Scores(self.metric, result["accuracy"], {**result, "documents": len(documents)}, counts)

    def feature_names(self) -> list[str]:
        """Of each row of the weights: the word, or the index as it is written in svmlight files."""
        return self.vectoriser.vocabulary

    def label_names(self) -> list[str]:
        return list(self.classes)

    def words(self, outputs: NDArray[np.int32]) -> list[str]:
        """Class names of outputs."""
        return [self.classes[k] for k in outputs.tolist()]

    def label(self, W: AnyArray, texts: Sequence[str]) -> list[str]:
        """The class of each text."""
        n = len(texts)
        documents = Documents(("texts",), np.zeros(n, np.int32), np.arange(1, n + 1), None, list(texts))
        return self.words(predict(self.problem(documents, learn=False), W)) if n else []

    def export(self, path: Path, W: AnyArray) -> list[Path]:
        return []

    def to_arrays(self) -> tuple[Json, Arrays]:
        settings = {"classes": list(self.classes), "vectoriser": self.vectoriser.settings}
        return settings, self.vectoriser.to_arrays()

    @classmethod
    def from_arrays(cls, settings: Json, arrays: Arrays) -> TextClassification:
        """ValueError where these are not what ``to_arrays`` can have given."""
        classes = settings["classes"]
        if not isinstance(classes, list) or not all(isinstance(name, str) for name in classes):
            raise ValueError("classes are not a list of names")
        if len(set(classes)) != len(classes) or len(classes) < 2:
            raise ValueError(f"{len(classes)} classes, {len(set(classes))} of them different")
        how = dict(settings["vectoriser"])
        vectors = how.pop("vectors", None)
        words = (HashedVectoriser if "hash_bits" in how else TextVectoriser).from_arrays(arrays, how)
        if vectors is None:
            return cls(tuple(classes), words)
        kind = WithEncoder if "function" in vectors else WithVectors
        return cls(tuple(classes), kind.from_arrays(words, arrays, vectors))


def _documents(data: Documents | Prepared) -> Documents:
    return data.documents if isinstance(data, Prepared) else data


# Figures


def score_classes(gold: Sequence[str], predicted: Sequence[str]) -> Json:
    """Compare two lists of labels; ``classes`` has precision, recall, f1 and support of all labels of either."""
    classes, numbers = np.unique(np.array([*gold, *predicted]), return_inverse=True)
    of_gold, of_predicted = np.split(numbers, 2)
    support = np.bincount(of_gold, minlength=len(classes))
    said = np.bincount(of_predicted, minlength=len(classes))
    right = np.bincount(of_gold[of_gold == of_predicted], minlength=len(classes))
    f1 = _ratio(2 * right, said + support)
    columns = {"precision": _ratio(right, said), "recall": _ratio(right, support), "f1": f1, "support": support}
    rows = zip(*(values.tolist() for values in columns.values()), strict=True)
    by_class = {str(name): dict(zip(columns, row, strict=True)) for name, row in zip(classes, rows, strict=True)}
    return {"accuracy": int(right.sum()) / len(gold), "macro_f1": float(f1.mean()), "classes": by_class}


def _ratio(above: NDArray[np.int64], below: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.divide(above, below, out=np.zeros(len(above)), where=below > 0)
