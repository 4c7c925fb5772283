"""Documents to sparse vectors: tf-idf fitted on train only (the paper's appendix), by scikit-learn's vectoriser.

Raw text is cut into words of two characters and more, tokens (LYRL2004) are taken as they are, and both are weighted
by (1 + ln tf) * idf and scaled to length 1. Vectors (svmlight) are used as they are; indices unseen in train are
dropped, as unseen words are. A document without words is a row without entries. What was fitted is saved as plain
arrays.

    vectoriser = TextVectoriser()
    X = vectoriser.fit_transform(train)                 # scipy CSR, float32: X.indptr, X.indices, X.data
    X_test = vectoriser.transform(test)
    same = TextVectoriser.from_arrays(vectoriser.to_arrays(), vectoriser.settings)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsezo import notes
from sparsezo.errors import DataError, NotInstalledError, UsageError
from sparsezo.tasks.text.documents import Documents
from sparsezo.tasks.text.indices import columns_of, kept_indices
from sparsezo.tasks.text.svmlight import Vectors

TOKEN_PATTERN = r"(?u)\b\w\w+\b"  # scikit-learn's own: words of two characters and more
_MOST_IDF = 100  # 1 + ln of a number of documents, which no disk could hold well before


class TextVectoriser:
    """Settings, and after ``fit_transform`` a vocabulary with its idf (words) or the indices kept (vectors).

    ``min_count``: a word or index is kept if at least so many training documents have it.
    """

    def __init__(
        self,
        *,
        sublinear_tf: bool = True,
        min_count: int = 1,
        lowercase: bool = True,
        token_pattern: str = TOKEN_PATTERN,
    ) -> None:
        if min_count < 1:
            raise UsageError(f"min_count is {min_count}; it must be at least 1")
        try:
            groups = re.compile(token_pattern).groups
        except (re.error, OverflowError, RecursionError) as error:
            raise UsageError(f"token_pattern '{token_pattern}' is not a regular expression ({error})") from None
        if groups > 1:
            raise UsageError(f"token_pattern '{token_pattern}' has {groups} groups; use at most one, or (?:...)")
        self.sublinear_tf = sublinear_tf
        self.min_count = min_count
        self.lowercase = lowercase
        self.token_pattern = token_pattern
        self.kind: str | None = None  # of the training documents: text, tokens or vectors
        self._tfidf: Any = None
        self._indices: NDArray[np.int64] | None = None  # vectors: the index of each column, rising
        self._seen: NDArray[np.bool_] | None = None  # of an older model: the columns that train had

    @property
    def settings(self) -> dict[str, str | int | bool | None]:
        """What the constructor was given, and the kind of the training documents; goes into JSON."""
        return {
            "sublinear_tf": self.sublinear_tf,
            "min_count": self.min_count,
            "lowercase": self.lowercase,
            "token_pattern": self.token_pattern,
            "kind": self.kind,
        }

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

    def fit_transform(self, documents: Documents) -> Any:
        """Learn from the training documents and give their vectors, CSR float32."""
        if len(documents) == 0:
            raise UsageError("no training documents; give at least one")
        where = ", ".join(documents.paths)
        if documents.vectors is not None:
            indices = kept_indices(documents.vectors.indices, self.min_count)
            if not len(indices):
                raise DataError(where, "no feature is left; lower `min_count` or check the file")
            if indices[0] == 0:
                notes.say(f"{where}: has an index 0, so features are counted from 0, not from 1")
            self.kind, self._tfidf, self._indices, self._seen = documents.kind, None, indices, None
            return self._csr(documents.vectors)
        tfidf = self._vectoriser(documents.kind)
        try:
            X = tfidf.fit_transform(documents.texts)
        except ValueError as error:
            # scikit-learn: "empty vocabulary" or "after pruning, no terms remain"
            raise DataError(where, f"no word is left ({error}); lower `min_count` or check the token pattern") from None
        self.kind, self._tfidf, self._indices, self._seen = documents.kind, tfidf, None, None
        return _int32(X)

    def transform(self, documents: Documents) -> Any:
        """Vectors of new documents; one that shares no word with train is a row without entries."""
        where = ", ".join(documents.paths)
        if (documents.vectors is not None) != (self._indices is not None):
            held = "vectors" if documents.vectors is not None else "text"
            wanted = "vectors (svmlight)" if self._indices is not None else "text"
            raise DataError(where, f"holds {held}, but the training documents were {wanted}")
        if documents.vectors is None or self._indices is None:
            return _int32(self._fitted().transform(documents.texts))
        if documents.vectors.indices.min(initial=1) == 0 and self._indices[0] != 0:
            notes.say(
                f"{where}: has an index 0, which the training documents do not have; are its features counted from 0, "
                "and theirs from 1?"
            )
        return self._csr(documents.vectors)

    def analyser(self, kind: str) -> Callable[[str], list[str]]:
        """What cuts a document of this kind into words."""
        words: Callable[[str], list[str]] = self._vectoriser(kind).build_analyzer()
        return words

    def to_arrays(self) -> dict[str, NDArray[Any]]:
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
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], settings: Mapping[str, Any]) -> TextVectoriser:
        """The vectoriser whose ``to_arrays()`` and ``settings`` these are; ValueError where they cannot be."""
        options = dict(settings)
        kind = options.pop("kind")
        wanted = {"sublinear_tf": bool, "min_count": int, "lowercase": bool, "token_pattern": str}
        if {name: type(value) for name, value in options.items()} != wanted:
            raise ValueError(f"settings of the vectoriser are {sorted(options)}")
        try:
            restored = cls(**options)
        except UsageError as error:
            raise ValueError(str(error)) from None
        restored.kind = kind
        if kind == "vectors":
            restored._restore_indices(arrays)
        elif kind in ("text", "tokens"):
            words, idf = _checked_words(arrays["vocabulary"], arrays["idf"])
            restored._tfidf = restored._vectoriser(kind, {word: column for column, word in enumerate(words)})
            restored._tfidf.idf_ = idf
        else:
            raise ValueError(f"documents of the kind {kind}")
        return restored

    def _restore_indices(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        if "indices" not in arrays:  # an older model: a column for every index from 1, whether train had it or not
            seen = arrays["seen"]
            if seen.ndim != 1 or seen.dtype != np.bool_:
                raise ValueError(f"seen is of type {seen.dtype} and shape {seen.shape}")
            self._seen, self._indices = seen, np.arange(1, len(seen) + 1)
            return
        indices = arrays["indices"]
        if indices.ndim != 1 or indices.dtype != np.int64 or (indices[:1] < 0).any() or (np.diff(indices) <= 0).any():
            raise ValueError("indices are not rising whole numbers from 0")
        self._indices = indices

    def _fitted(self) -> Any:
        if self._tfidf is None:
            raise UsageError("the vectoriser is not fitted; call fit_transform on the training documents first")
        return self._tfidf

    def _csr(self, vectors: Vectors) -> Any:
        """The vectors by column, without what train does not have."""
        try:
            from scipy.sparse import csr_array
        except ImportError:
            raise missing() from None
        indices = self._indices if self._indices is not None else np.zeros(0, np.int64)
        columns, values, indptr = columns_of(vectors.indices, indices), vectors.values, vectors.indptr
        known = columns >= 0
        if self._seen is not None:
            known[known] = self._seen[columns[known]]
        if not known.all():
            columns, values = columns[known], values[known]
            indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(known)])[indptr]
        indptr = indptr.astype(np.int32) if len(columns) < 2**31 else indptr
        return csr_array((values, columns, indptr), shape=(len(vectors), len(indices)))

    def _vectoriser(self, kind: str, vocabulary: dict[str, int] | None = None) -> Any:
        try:
            from sklearn.feature_extraction.text import TfidfVectorizer
        except ImportError:
            raise missing() from None
        words: dict[str, Any] = {"analyzer": str.split}
        if kind == "text":
            words = {"lowercase": self.lowercase, "token_pattern": self.token_pattern}
        return TfidfVectorizer(
            sublinear_tf=self.sublinear_tf,
            min_df=1 if vocabulary is not None else self.min_count,
            vocabulary=vocabulary,
            dtype=np.float32,
            **words,
        )


def missing() -> NotInstalledError:
    return NotInstalledError("text classification needs scikit-learn; install it with: pip install scipy scikit-learn")


def _checked_words(text: NDArray[Any], idf: NDArray[Any]) -> tuple[list[str], NDArray[Any]]:
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


def _int32(X: Any) -> Any:
    """What scikit-learn gives, as a csr_array with int32 indices."""
    from scipy.sparse import csr_array

    X = csr_array(X)
    if X.nnz < 2**31:
        X.indices, X.indptr = X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int32, copy=False)
    return X
