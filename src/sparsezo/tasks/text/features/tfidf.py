"""Documents to sparse vectors: tf-idf fitted on train only (the paper's appendix), by scikit-learn's vectoriser.

Raw text is cut into words of two characters and more, tokens (LYRL2004) are taken as they are, and both are weighted
by (1 + ln tf) * idf and scaled to length 1. Vectors (svmlight) are used as they are; indices unseen in train are
dropped, as unseen words are. What was fitted is saved as plain arrays.

    vectoriser = TextVectoriser()                       # or HashedVectoriser(hash_bits=20): no vocabulary
    X = vectoriser.fit_transform(train)                 # scipy CSR, float32
    X_test = vectoriser.transform(test)
"""

from __future__ import annotations

import itertools
import re
from array import array
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsezo import errors, messages
from sparsezo.errors import DataError, UsageError
from sparsezo.tasks import hashing
from sparsezo.tasks.base import AnyArray, Arrays, Json
from sparsezo.tasks.hash_bits import check_hash_bits
from sparsezo.tasks.text.io.documents import Documents

if TYPE_CHECKING:
    from sklearn.feature_extraction.text import TfidfVectorizer

TOKEN_PATTERN = r"(?u)\b\w\w+\b"  # scikit-learn's own: words of two characters and more
_MOST_IDF = 100  # 1 + ln of a number of documents, which no disk could hold well before
_SMALL = 1 << 22  # a table of so many indices is worth it for any number of entries

Analyser = Callable[[str], list[str]]

Indices = NDArray[np.int32] | NDArray[np.int64]


class _Vectoriser:
    """How documents are cut into words and counted, and what kind of documents train had."""

    _own: ClassVar[dict[str, type]] = {}  # further options of a kind of vectoriser

    def __init__(
        self, *, sublinear_tf: bool = True, lowercase: bool = True, token_pattern: str = TOKEN_PATTERN
    ) -> None:
        try:
            groups = re.compile(token_pattern).groups
        except (re.error, OverflowError, RecursionError) as error:
            raise UsageError(f"token_pattern '{token_pattern}' is not a regular expression ({error})") from None
        if groups > 1:
            raise UsageError(f"token_pattern '{token_pattern}' has {groups} groups; use at most one, or (?:...)")
        self.sublinear_tf = sublinear_tf
        self.lowercase = lowercase
        self.token_pattern = token_pattern
        self.kind: str | None = None  # of the training documents: text, tokens or vectors

    @property
    def settings(self) -> dict[str, str | int | bool | None]:
        """What the constructor was given, and the kind of the training documents; goes into JSON."""
        own = ("sublinear_tf", "lowercase", "token_pattern", *self._own, "kind")
        return {name: getattr(self, name) for name in own}

    @classmethod
    def _of_settings(cls, settings: Json) -> Self:
        options = dict(settings)
        kind = options.pop("kind")
        wanted = {"sublinear_tf": bool, "lowercase": bool, "token_pattern": str, **cls._own}
        if {name: type(value) for name, value in options.items()} != wanted:
            raise ValueError(f"settings of the vectoriser are {sorted(options)}")
        if kind not in ("text", "tokens", "vectors"):
            raise ValueError(f"documents of the kind {kind}")
        try:
            made = cls(**options)
        except UsageError as error:
            raise ValueError(str(error)) from None
        made.kind = kind
        return made

    def analyser(self, kind: str) -> Analyser:
        """What cuts a document of this kind into words."""
        words: Analyser = self._tfidf_of(kind).build_analyzer()
        return words

    def _tfidf_of(self, kind: str, **how: object) -> TfidfVectorizer:
        errors.need("text")
        from sklearn.feature_extraction.text import TfidfVectorizer

        words: dict[str, object] = {"analyzer": str.split}
        if kind == "text":
            words = {"lowercase": self.lowercase, "token_pattern": self.token_pattern}
        return TfidfVectorizer(sublinear_tf=self.sublinear_tf, dtype=np.float32, **words, **how)

    def _check_kind(self, documents: Documents) -> None:
        if (documents.kind == "vectors") != (self.kind == "vectors"):
            held, wanted = ("vectors", "text") if documents.kind == "vectors" else ("text", "vectors (svmlight)")
            what = f"holds {held}, but the training documents were {wanted}"
            raise DataError(", ".join(documents.paths), what)


class TextVectoriser(_Vectoriser):
    """Settings, and after ``fit_transform`` a vocabulary with its idf (words) or the indices kept (vectors).

    ``min_count``: a word or index is kept if at least so many training documents have it.
    """

    _own: ClassVar[dict[str, type]] = {"min_count": int}

    def __init__(self, *, min_count: int = 1, **words: Any) -> None:
        if min_count < 1:
            raise UsageError(f"min_count is {min_count}; it must be at least 1")
        super().__init__(**words)
        self.min_count = min_count
        self._tfidf: TfidfVectorizer | None = None
        self._indices: NDArray[np.int64] | None = None  # vectors: the index of each column, rising
        self._seen: NDArray[np.bool_] | None = None  # of an older model: the columns that train had

    @property
    def n_features(self) -> int:
        """The columns of what ``transform`` gives."""
        return len(self._fitted().vocabulary_) if self._indices is None else len(self._indices)

    @property
    def vocabulary(self) -> list[str]:
        """The words by column; of vectors the indices, as they are written."""
        if self._indices is not None:
            return list(map(str, self._indices.tolist()))
        return list(self._fitted().get_feature_names_out())

    def fit_transform(self, documents: Documents) -> csr_array:
        """Learn from the training documents and give their vectors, CSR float32."""
        if len(documents) == 0:
            raise UsageError("no training documents; give at least one")
        where = ", ".join(documents.paths)
        if documents.vectors is not None:
            indices = kept_indices(documents.vectors.indices, self.min_count)
            if not len(indices):
                raise DataError(where, "no feature is left; lower `min_count` or check the file")
            if indices[0] == 0:
                messages.say(f"{where}: has an index 0, so features are counted from 0, not from 1")
            self.kind, self._tfidf, self._indices, self._seen = documents.kind, None, indices, None
            return self._csr(documents.vectors)
        tfidf = self._tfidf_of(documents.kind, min_df=self.min_count)
        try:
            X = tfidf.fit_transform(documents.texts)
        except ValueError as error:
            # scikit-learn: "empty vocabulary" or "after pruning, no terms remain"
            raise DataError(where, f"no word is left ({error}); lower `min_count` or check the token pattern") from None
        self.kind, self._tfidf, self._indices, self._seen = documents.kind, tfidf, None, None
        return _int32(X)

    def transform(self, documents: Documents) -> csr_array:
        """Vectors of new documents; one that shares no word with train is a row without entries."""
        self._check_kind(documents)
        if documents.vectors is None or self._indices is None:
            return _int32(self._fitted().transform(documents.texts))
        if documents.vectors.indices.min(initial=1) == 0 and self._indices[0] != 0:
            messages.say(
                f"{', '.join(documents.paths)}: has an index 0, which the training documents do not have; are its "
                "features counted from 0, and theirs from 1?"
            )
        return self._csr(documents.vectors)

    def to_arrays(self) -> Arrays:
        """What was fitted, as arrays: ``vocabulary`` (UTF-8, a word a line) and ``idf``, or ``indices``."""
        if self._seen is not None:
            return {"seen": self._seen.copy()}
        if self._indices is not None:
            return {"indices": self._indices.copy()}
        words = self.vocabulary
        if any("\n" in word for word in words):
            raise UsageError("a word has a line end in it, so the vocabulary cannot be saved; change token_pattern")
        text = "\n".join(words).encode("utf-8")
        return {"vocabulary": np.frombuffer(text, np.uint8).copy(), "idf": np.array(self._fitted().idf_)}

    @classmethod
    def from_arrays(cls, arrays: Arrays, settings: Json) -> TextVectoriser:
        """The vectoriser whose ``to_arrays()`` and ``settings`` these are; ValueError where they cannot be."""
        restored = cls._of_settings(settings)
        if restored.kind != "vectors":
            words, idf = _checked_words(arrays["vocabulary"], arrays["idf"])
            vocabulary = {word: column for column, word in enumerate(words)}
            restored._tfidf = restored._tfidf_of(str(restored.kind), vocabulary=vocabulary)
            restored._tfidf.idf_ = idf
        elif "indices" in arrays:
            indices = arrays["indices"]
            rising = indices.ndim == 1 and indices.dtype == np.int64 and (np.diff(indices, prepend=-1) > 0).all()
            if not rising:
                raise ValueError("indices are not rising whole numbers from 0")
            restored._indices = indices
        else:  # an older model: a column for every index from 1, whether train had it or not
            seen = arrays["seen"]
            if seen.ndim != 1 or seen.dtype != np.bool_:
                raise ValueError(f"seen is of type {seen.dtype} and shape {seen.shape}")
            restored._seen, restored._indices = seen, np.arange(1, len(seen) + 1)
        return restored

    def _fitted(self) -> TfidfVectorizer:
        if self._tfidf is None:
            raise UsageError("the vectoriser is not fitted; call fit_transform on the training documents first")
        return self._tfidf

    def _csr(self, vectors: csr_array) -> csr_array:
        """The vectors by column, without what train does not have."""
        indices = self._indices if self._indices is not None else np.zeros(0, np.int64)
        columns, values, indptr = columns_of(vectors.indices, indices), vectors.data, vectors.indptr
        known = columns >= 0
        if self._seen is not None:
            known[known] = self._seen[columns[known]]
        if not known.all():
            columns, values = columns[known], values[known]
            indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(known)])[indptr]
        return _int32(csr_array((values, columns, indptr), shape=(vectors.shape[0], len(indices))))


class HashedVectoriser(_Vectoriser):
    """Settings, and of words the number of documents that have one of each row.

    Words that fall on one row count as one: their tf add up, and idf is by row, so that there is one number a row to
    keep. Vectors (svmlight) have their indices hashed, as they are written, and their values added up.
    """

    _own: ClassVar[dict[str, type]] = {"hash_bits": int}

    def __init__(self, hash_bits: int, **words: Any) -> None:
        check_hash_bits(hash_bits)
        super().__init__(**words)
        self.hash_bits = hash_bits
        self._documents = 0
        self._with_row = np.zeros(0, np.int64)  # documents that have a word of the row

    @property
    def settings(self) -> dict[str, str | int | bool | None]:
        return {**super().settings, "documents": self._documents}

    @property
    def n_features(self) -> int:
        return 1 << self.hash_bits

    @property
    def vocabulary(self) -> list[str]:
        raise UsageError("with `hash_bits` features have no names")

    def fit_transform(self, documents: Documents) -> csr_array:
        """Learn from the training documents and give their vectors, CSR float32."""
        if len(documents) == 0:
            raise UsageError("no training documents; give at least one")
        return self._weighted(self.count(documents))

    def count(self, documents: Documents) -> csr_array:
        """Learn from some of the training documents; returns how often they have words of each row."""
        if self.kind is None:
            self.kind = documents.kind
            self._with_row = np.zeros(0 if self.kind == "vectors" else self.n_features, np.int64)
        X = self._rows(documents)
        self._documents += len(documents)
        if self.kind != "vectors":
            np.add.at(self._with_row, X.indices, 1)
        return X

    def transform(self, documents: Documents) -> csr_array:
        """Vectors of new documents."""
        self._check_kind(documents)
        return self._weighted(self._rows(documents))

    def _rows(self, documents: Documents) -> csr_array:
        """Documents x rows: how often a document has words of a row; of vectors the sum of their values."""
        if documents.vectors is None:
            names, counts = word_counts(documents.texts or [], self.analyser(documents.kind))
            indptr, places, data = counts.indptr, counts.indices, counts.data
        else:
            indptr, data = documents.vectors.indptr, documents.vectors.data.copy()
            found, places = np.unique(documents.vectors.indices, return_inverse=True)
            names = list(map(str, found.tolist()))
        columns = hashing.rows_of(names, self.hash_bits)[places] if names else np.zeros(0, np.int32)
        X = csr_array((data, columns, indptr), shape=(len(documents), self.n_features))
        X.sum_duplicates()
        return _int32(X)

    def _weighted(self, X: csr_array) -> csr_array:
        if self.kind == "vectors":
            return X
        if self.sublinear_tf:
            X.data = 1 + np.log(X.data)
        idf = np.log((1 + self._documents) / (1 + self._with_row[X.indices])) + 1  # as scikit-learn smooths it
        X.data *= idf.astype(np.float32)
        sizes = np.diff(X.indptr)
        of_row = np.repeat(np.arange(len(sizes)), sizes)
        length = np.sqrt(np.bincount(of_row, np.square(X.data, dtype=np.float64), minlength=len(sizes)))
        X.data /= length[of_row].astype(np.float32)
        return X

    def to_arrays(self) -> Arrays:
        return {"documents_with_row": self._with_row.copy()}

    @classmethod
    def from_arrays(cls, arrays: Arrays, settings: Json) -> HashedVectoriser:
        """The one whose ``to_arrays()`` and ``settings`` these are; ValueError where they cannot be."""
        options = dict(settings)
        documents = options.pop("documents")
        restored = cls._of_settings(options)
        counts = arrays["documents_with_row"]
        size = 0 if restored.kind == "vectors" else restored.n_features
        if not isinstance(documents, int) or counts.dtype != np.int64 or counts.shape != (size,):
            raise ValueError("documents_with_row does not count documents")
        if (counts < 0).any() or (counts > documents).any():
            raise ValueError("documents_with_row does not count documents")
        restored._documents, restored._with_row = documents, counts
        return restored


def word_counts(texts: Sequence[str], analyse: Analyser) -> tuple[list[str], csr_array]:
    """(all different words, texts x words: how often each text has each, float32)."""
    number: defaultdict[str, int] = defaultdict(itertools.count().__next__)
    places, starts = array("i"), [0]
    for text in texts:
        places.extend(map(number.__getitem__, analyse(text)))
        starts.append(len(places))
    ones = np.ones(len(places), np.float32)
    counts = csr_array((ones, np.frombuffer(places, np.int32), starts), shape=(len(texts), len(number)))
    counts.sum_duplicates()
    return list(number), counts


def kept_indices(indices: Indices, min_count: int = 1) -> NDArray[np.int64]:
    """The distinct indices that occur at least ``min_count`` times, sorted: feature k is the index at k.

    An index is a name and nothing more, so a file that counts from 0 is read as well as one that counts from 1.
    """
    if int(indices.max(initial=-1)) < max(_SMALL, len(indices)):
        return np.flatnonzero(np.bincount(indices) >= max(min_count, 1))
    found, counts = np.unique(indices, return_counts=True)
    return found[counts >= min_count].astype(np.int64)


def columns_of(indices: Indices, features: NDArray[np.int64]) -> NDArray[np.int32]:
    """The place of each index in ``features``, which are sorted; -1 where it is not there."""
    top = int(features.max(initial=-1))
    if top < max(_SMALL, len(indices)):
        table = np.full(top + 2, -1, np.int32)  # the last for all that is above
        table[features] = np.arange(len(features), dtype=np.int32)
        return table[np.minimum(indices, top + 1)]
    place = np.minimum(np.searchsorted(features, indices), len(features) - 1)
    return np.where(features[place] == indices, place, -1).astype(np.int32)


def _checked_words(text: AnyArray, idf: AnyArray) -> tuple[list[str], AnyArray]:
    """The words of a saved vocabulary and their idf, which go together."""
    words = text.tobytes().decode("utf-8").split("\n")
    if idf.shape != (len(words),):
        raise ValueError(f"{len(words)} words, but idf values of shape {idf.shape}")
    if len(set(words)) != len(words):
        raise ValueError("a word is there twice")
    if idf.dtype.kind != "f" or not (np.isfinite(idf) & (idf > 0)).all():
        raise ValueError("idf values are not all positive and finite")
    if idf.max(initial=0) > _MOST_IDF:
        raise ValueError(f"an idf value of {idf.max():g}; {_MOST_IDF} is more than any collection gives")
    return words, idf.astype(idf.dtype.newbyteorder("="))


def _int32(X: csr_array) -> csr_array:
    """Rows as a csr_array with int32 indices, where they fit."""
    X = csr_array(X)
    if X.nnz < 2**31:
        X.indices, X.indptr = X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int32, copy=False)
    return X
