"""``SequenceLabeller``: a linear-chain CRF with scikit-learn's and sklearn-crfsuite's names, that can go on learning.

    labeller = SequenceLabeller().fit(X, y)                     # X: lists of tokens, of (word, pos, ...), or of dicts
    labeller.predict(X_test)
    labeller.predict(X_test, known=[[None, "B-LOC", None], ...])    # these stay, the rest is decoded around them
    labeller.partial_fit([sentence], [["O", None, "B-LOC"]])    # None: nobody has said what it is

Labels are kept as they are given: the model knows nothing of chunks. All attributes, those of dicts and those that
templates make of tokens, are known by their names, so that later batches may bring new ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from sparsezo.errors import UsageError, shown
from sparsezo.learner import Learner, predict, span_chances
from sparsezo.settings import Settings
from sparsezo.tasks.base import AnyArray, Problem
from sparsezo.tasks.chunking.features.attributes import AttributeIndex, ListedIndex, Rows
from sparsezo.tasks.chunking.features.columns import NONE, Columns, chosen_columns
from sparsezo.tasks.chunking.features.templates import Template, built_in, usual_features
from sparsezo.tasks.chunking.io.conll import Corpus, Listed
from sparsezo.tasks.chunking.kernels.task import MISSING, ChunkGold
from sparsezo.tasks.chunking.marginals import marginals
from sparsezo.tasks.chunking.metric import score_chunks
from sparsezo.tasks.chunking.options import AUTO, PLAIN
from sparsezo.tasks.chunking.task import Chunking

Label = Hashable
Labels = Sequence[Label | None]
Token = str | tuple[str, ...] | Mapping[str, object] | Iterable[str]
Sentence = Sequence[Token]
_FEW = 5  # labels up to which every attribute has a weight for each pair of labels
_MORE = 1.25  # rows of W when it has to grow, so that not every new attribute moves all of it

T = TypeVar("T")


class SequenceLabeller(BaseEstimator):  # type: ignore[misc]
    """A conditional random field over sequences of labels.

    A sentence is a list of tokens: texts, tuples of texts (a word and what else is known of it; all of them as long),
    or, as for sklearn-crfsuite, dicts or lists of attributes, which are then all that the model sees. In a dict a text
    is an attribute ``key:text``, a number or a bool the value of ``key``, a list one attribute for each of its texts,
    and a dict in it is the same with ``key:`` before its names.

    passes: how often ``fit`` goes over the sentences. h: the step of Adagrad. order: 2, every attribute has a weight
    for each pair of labels; 1, for each label; None: 2 up to 5 labels. min_count: rarer attributes are left out by
    ``fit``. features, clusters: of tokens, as `sparsezo train chunking` has them (docs/features.md); None: by the data.

    >>> labeller = SequenceLabeller().fit([["the", "cat"], ["a", "dog"]], [["D", "N"], ["D", "N"]])
    >>> labeller.predict([["the", "dog"]])
    [['D', 'N']]
    """

    def __init__(
        self,
        *,
        passes: int = 15,
        h: float = 0.1,
        order: int | None = None,
        min_count: int = 1,
        features: str | None = None,
        clusters: str = AUTO,
        random_state: int = 0,
    ) -> None:
        self.passes = passes
        self.h = h
        self.order = order
        self.min_count = min_count
        self.features = features
        self.clusters = clusters
        self.random_state = random_state

    # Learning

    def fit(self, X: Sequence[Sentence], y: Sequence[Labels]) -> Self:
        """Learn from sentences and the labels of their tokens; None for a label that is not known."""
        if not (isinstance(self.passes, int) and self.passes > 0):
            raise UsageError(f"`passes` {shown(self.passes)}: must be a whole number above 0")
        self._begin(X, y, None)
        self._learn(X, y, self.passes)
        return self

    def partial_fit(self, X: Sequence[Sentence], y: Sequence[Labels], classes: Iterable[Label] | None = None) -> Self:
        """Go over these sentences once, from where the model stands. New attributes and new labels are taken in.

        ``classes``: labels that may come later. Before anything was learned, two labels or more must be known.
        """
        if hasattr(self, "_weights"):
            self._grow(X, y, classes)
        else:
            self._begin(X, y, classes)
        self._learn(X, y, 1)
        return self

    def _begin(self, X: Sequence[Sentence], y: Sequence[Labels], classes: Iterable[Label] | None) -> None:
        kept, y = _paired(X, y)
        given = [label for labels in y for label in labels if label is not None]
        labels = _sorted({*given, *(classes or ())})
        if len(labels) < 2:
            raise UsageError("a model has two labels or more: give sentences with others, or `classes`")
        ends = Counter(each[-1] for each in y if each[-1] is not None)
        start = min(ends, key=lambda label: (-ends[label], str(label))) if ends else labels[-1]
        self.classes_ = labels
        self._tags = [label for label in labels if label != start] + [start]  # what stands before the first token
        order = self.order or (2 if len(labels) <= _FEW else 1)
        self._view = _View.of(kept, self.features, self.clusters, order)
        listed = self._view.listed(kept)
        names = listed.names
        if self.min_count > 1:
            counts = np.bincount(listed.ids, minlength=len(names)) if names else np.zeros(0, np.int64)
            names = [name for name, count in zip(names, counts.tolist(), strict=True) if count >= self.min_count]
        self._index = _GrowingIndex({name: k for k, name in enumerate(names)}, False, max(len(names), 1))
        self._task = self._made(order)
        shape = (self._task.n_features, self._task.n_labels)
        self._weights, self._squares = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
        self._steps = 0
        self._seed = int(check_random_state(self.random_state).randint(2**31 - 1))

    def _made(self, order: int) -> Chunking:
        """Its tags are places among ``_tags``: a label may be anything."""
        tags = tuple(map(str, range(len(self._tags))))
        return Chunking(tags, order, None, 0, self._index, PLAIN)

    def _grow(self, X: Sequence[Sentence], y: Sequence[Labels], classes: Iterable[Label] | None) -> None:
        kept, y = _paired(X, y)
        numbers = self._index.numbers
        for name in self._view.listed(kept).names:
            numbers.setdefault(name, len(numbers))
        labels = {label for each in y for label in each if label is not None}.union(classes or ())
        new = _sorted(labels.difference(self.classes_))
        rows, more = self._index.room, len(numbers) > self._index.room
        if not new and not more:
            return
        if more:
            self._index = replace(self._index, room=int(_MORE * len(numbers)))
        old = len(self._tags)
        self.classes_ = [*self.classes_, *new]
        self._tags = [*self._tags[:-1], *new, self._tags[-1]]  # what stands before the first token stays the last
        self._task = self._made(self._task.order)
        place = np.array([*range(old - 1), len(self._tags) - 1])
        self._weights = _enlarged(self._weights, self._task, rows, place)
        self._squares = _enlarged(self._squares, self._task, rows, place)

    def _learn(self, X: Sequence[Sentence], y: Sequence[Labels], passes: int) -> None:
        kept, y = _paired(X, y)
        if not kept:
            return
        problem = self._problem(kept, learn=True)
        number = self._numbers()
        tags = [MISSING if label is None else number[label] for labels in y for label in labels]
        settings = Settings("supervised", None, h=self.h, mu=None, step="adagrad", seed=self._seed)
        learner = Learner(problem, settings, self._weights, copy=False)
        learner.state = learner.state._replace(q=self._squares)
        learner.look_in_turn(self._steps)
        learner.run(ChunkGold(problem.output_start, np.array(tags, np.int16)), steps=passes * len(problem))
        self._steps += passes * len(problem)

    # What the model says

    def predict(self, X: Sequence[Sentence], known: Sequence[Labels] | None = None) -> list[list[Label]]:
        """The best labels of each sentence; ``known``: labels that stay, None for those to be found."""
        fixed = self._fixed(X, known)
        problem = self._problem([sentence for sentence in X if len(sentence)])
        if fixed is None:
            found = predict(problem, self._weights)
        else:
            found, _ = span_chances(problem, self._weights, fixed)
        return _cut([self._tags[k] for k in found.tolist()], X)

    def predict_single(self, sentence: Sentence, known: Labels | None = None) -> list[Label]:
        """``predict`` of one sentence."""
        return self.predict([sentence], None if known is None else [known])[0]

    def predict_marginals(
        self, X: Sequence[Sentence], known: Sequence[Labels] | None = None
    ) -> list[list[dict[Label, float]]]:
        """For each token how likely each label is; ``known``: given these."""
        fixed = self._fixed(X, known)
        problem = self._problem([sentence for sentence in X if len(sentence)])
        rows = marginals(problem, self._weights, fixed).tolist()
        return _cut([dict(zip(self._tags, row, strict=True)) for row in rows], X)

    def predict_marginals_single(self, sentence: Sentence, known: Labels | None = None) -> list[dict[Label, float]]:
        """``predict_marginals`` of one sentence."""
        return self.predict_marginals([sentence], None if known is None else [known])[0]

    def score(self, X: Sequence[Sentence], y: Sequence[Labels]) -> float:
        """The share of tokens whose label is right, of those that have one."""
        pairs = self._compared(X, y)
        return sum(a == b for a, b in pairs) / max(len(pairs), 1)

    def chunk_f1(self, X: Sequence[Sentence], y: Sequence[Labels]) -> float:
        """F1 of chunks (B-X, I-X, O), as conlleval counts them; also ``scoring=SequenceLabeller.chunk_f1``."""
        _, y = _paired(X, y)
        offsets = np.concatenate([[0], np.cumsum([len(labels) for labels in y])]).astype(np.int64)
        gold, found = zip(*self._compared(X, y), strict=True)
        if len(gold) != offsets[-1]:
            raise UsageError("chunk_f1 needs the labels of all tokens")
        return score_chunks([str(label) for label in gold], [str(label) for label in found], offsets).f1

    @property
    def attributes_(self) -> list[str]:
        """The names of all attributes that were learned."""
        check_is_fitted(self, "_weights")
        return list(self._index.numbers)

    @property
    def state_features_(self) -> dict[tuple[str, Label], float]:
        """The weight of each attribute for each label (``order`` 1), where it is not 0."""
        return self._named(list(enumerate(self.attributes_)))

    @property
    def transition_features_(self) -> dict[tuple[Label, Label], float]:
        """The weight of each label after each other (``order`` 1); before the first token stands the last of ``_tags``,
        the label that most sentences end with."""
        check_is_fitted(self, "_weights")
        return self._named([(self._index.room + k, label) for k, label in enumerate(self._tags)])

    def _named(self, rows: list[tuple[int, T]]) -> dict[tuple[T, Label], float]:
        if self._task.order != 1:
            raise UsageError("weights are of attributes and pairs of labels; `order` 1 has some of attributes alone")
        found = ((name, self._weights[row].tolist()) for row, name in rows)
        return {(name, label): w for name, values in found for label, w in zip(self._tags, values, strict=True) if w}

    def _compared(self, X: Sequence[Sentence], y: Sequence[Labels]) -> list[tuple[Label, Label]]:
        kept, y = _paired(X, y)
        found = self.predict(kept)
        both = (pair for labels, own in zip(y, found, strict=True) for pair in zip(labels, own, strict=True))
        return [(label, own) for label, own in both if label is not None]

    def _numbers(self) -> dict[Label, int]:
        return {label: k for k, label in enumerate(self._tags)}

    def _fixed(self, X: Sequence[Sentence], known: Sequence[Labels] | None) -> NDArray[np.int16] | None:
        check_is_fitted(self, "_weights")
        if known is None:
            return None
        _, known = _paired(X, known, "known")
        number = self._numbers()
        for label in {label for labels in known for label in labels if label is not None}:
            if label not in number:
                raise UsageError(f"`known`: {shown(label, repr)} is no label that was learned; see classes_")
        return np.array([-1 if label is None else number[label] for labels in known for label in labels], np.int16)

    def _problem(self, kept: Sequence[Sentence], *, learn: bool = False) -> Problem:
        listed = self._view.listed(kept)
        offsets = np.concatenate([[0], np.cumsum([len(sentence) for sentence in kept])]).astype(np.int64)
        corpus = Corpus("the sentences", (), None, offsets, listed=listed)
        return self._task.problem(corpus, learn=learn, asks=learn)  # asks: without the factors of perturbations


@dataclass(frozen=True, eq=False)
class _GrowingIndex(ListedIndex):
    """Attributes by their names, to which more may come; ``room`` rows of W are kept for them."""

    room: int = 0

    def __len__(self) -> int:
        return self.room

    def rows(self, corpus: Corpus) -> Rows:
        listed = corpus.listed
        if listed is None:
            raise UsageError("sentences without attributes")
        numbers = np.fromiter((self.numbers.get(name, -1) for name in listed.names), np.int32, len(listed.names))
        ids = numbers[listed.ids]
        known = ids >= 0
        before = np.concatenate([[0], np.cumsum(known)])
        values = listed.values[known]
        return Rows(ids[known], np.diff(before[listed.starts]), values if (values != 1).any() else None)


def _enlarged(W: AnyArray, task: Chunking, rows: int, place: NDArray[np.int64]) -> AnyArray:
    """W with the rows and labels of the task; place[k]: where label k of before stands now."""
    K, old = len(task.tags), len(place)
    made = np.zeros((task.n_features, task.n_labels), W.dtype)
    if task.order == 2:
        made.reshape(-1, K, K)[:rows, place[:, None], place] = W.reshape(-1, old, old)
    else:
        made[:rows, place] = W[:rows]
        made[len(task.index) + place[:, None], place] = W[rows:]
    return made


# Sentences as lists of attributes


@dataclass(frozen=True, eq=False)
class _View:
    """How sentences are seen: their own attributes, or those that templates make of ``width`` columns."""

    width: int  # 0: dicts, or lists of attributes
    templates: tuple[Template, ...] = ()
    columns: Columns = NONE

    @classmethod
    def of(cls, X: Sequence[Sentence], features: str | None, clusters: str, order: int) -> Self:
        first = next((token for sentence in X for token in sentence), None)
        if first is None:
            raise UsageError("there is no token to learn from")
        if not isinstance(first, str | tuple):
            return cls(0)
        width = 1 if isinstance(first, str) else len(first)
        plain = cls(width)._corpus(X)
        columns = chosen_columns(plain, clusters, None, None, features)
        templates = built_in(features or usual_features(width), width, columns.names, order)
        return cls(width, tuple(each for each in templates if order == 2 or each.kind in "u*"), columns)

    def listed(self, X: Sequence[Sentence]) -> Listed:
        """The attributes of all tokens."""
        if self.width:
            corpus = self._corpus(X)
            if not corpus.n_tokens:
                return Listed([], np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))
            index = AttributeIndex.fit(corpus, self.templates, 1, self.columns)
            rows = index.rows(corpus)
            return Listed(index.names(), rows.row_ptr(), rows.columns, np.ones(len(rows.columns), np.float32))
        number: dict[str, int] = {}
        ids: list[int] = []
        values: list[float] = []
        starts = [0]
        for sentence in X:
            for token in sentence:
                if isinstance(token, str | tuple):
                    raise UsageError(f"a token {shown(token, repr)} among dicts of attributes; give one kind of tokens")
                _add(token, "", number, ids, values)
                starts.append(len(ids))
        return Listed(list(number), np.array(starts, np.int64), np.array(ids, np.int32), np.array(values, np.float32))

    def _corpus(self, X: Sequence[Sentence]) -> Corpus:
        rows: list[tuple[str, ...]] = []
        for token in (token for sentence in X for token in sentence):
            row = (token,) if isinstance(token, str) else token
            if not isinstance(row, tuple) or len(row) != self.width or not all(isinstance(each, str) for each in row):
                what = "a text" if self.width == 1 else f"{self.width} texts"
                raise UsageError(f"a token {shown(row, repr)}: the first one was {what}; give all tokens so")
            rows.append(row)
        columns = tuple([row[k] for row in rows] for k in range(self.width))
        offsets = np.concatenate([[0], np.cumsum([len(sentence) for sentence in X])]).astype(np.int64)
        return Corpus("the sentences", columns, None, offsets)


def _add(
    given: Mapping[str, object] | Iterable[object],
    prefix: str,
    number: dict[str, int],
    ids: list[int],
    values: list[float],
) -> None:
    """The attributes of a token, by python-crfsuite's meaning of strings, numbers, lists and dicts."""

    def one(name: str, value: float) -> None:
        if value == 0:  # it says nothing
            return
        ids.append(number.setdefault(name, len(number)))
        values.append(value)

    if not isinstance(given, Mapping):
        for name in given:
            one(f"{prefix}{name}", 1.0)
        return
    for key, value in given.items():
        if isinstance(value, str):
            one(f"{prefix}{key}:{value}", 1.0)
        elif isinstance(value, bool | Real | np.bool_):
            if not abs(float(value)) < 1e30:
                raise UsageError(f"attribute {shown(key)}: {shown(value)} is no value; give a number")
            one(f"{prefix}{key}", float(value))
        elif isinstance(value, Mapping | list | tuple | set | frozenset):
            _add(value, f"{prefix}{key}:", number, ids, values)
        else:
            what = f"of type {type(value).__name__}"
            raise UsageError(f"attribute {shown(key)}: a value {what}; give a text, a number, a bool, a list or a dict")


# Sentences and labels side by side


def _paired(X: Sequence[Sentence], y: Sequence[Labels], what: str = "y") -> tuple[list[Sentence], list[Labels]]:
    """Both without empty sentences, checked to be as long."""
    if len(X) != len(y):
        raise UsageError(f"{len(X)} sentences, and `{what}` has {len(y)}")
    for k, (sentence, labels) in enumerate(zip(X, y, strict=True)):
        if isinstance(sentence, str) or isinstance(labels, str):
            raise UsageError(f"sentence {k} is a text; give a list of tokens, and a list of labels")
        if len(sentence) != len(labels):
            raise UsageError(f"sentence {k} has {len(sentence)} tokens, and `{what}` has {len(labels)} labels for it")
    return [each for each in X if len(each)], [each for each in y if len(each)]


def _cut(flat: list[T], X: Sequence[Sentence]) -> list[list[T]]:
    found, at = [], 0
    for sentence in X:
        found.append(flat[at : at + len(sentence)])
        at += len(sentence)
    return found


def _sorted(labels: set[Label]) -> list[Label]:
    return sorted(
        labels, key=lambda label: (str(type(label)), label if isinstance(label, int | float) else 0, str(label))
    )
