"""Documents to sparse vectors: tf-idf fitted on train only (the paper's appendix), by scikit-learn's vectoriser.

Raw text is cut into words of two characters and more, tokens (LYRL2004) are taken as they are, and both are weighted
by (1 + ln tf) * idf and scaled to length 1. Vectors (svmlight) are used as they are; features unseen in train are
dropped, as unseen words are. What was fitted is saved as plain arrays.

    vectoriser = TextVectoriser()
    X = vectoriser.fit_transform(train)                 # scipy CSR, float32: X.indptr, X.indices, X.data
    X_test = vectoriser.transform(test)
    same = TextVectoriser.from_arrays(vectoriser.to_arrays(), vectoriser.settings)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import DataError, NotInstalledError, UsageError
from sparsezo.tasks.text.documents import Documents
from sparsezo.tasks.text.svmlight import Vectors

TOKEN_PATTERN = r"(?u)\b\w\w+\b"  # scikit-learn's own: words of two characters and more


class TextVectoriser:
    """Settings, and after ``fit_transform`` a vocabulary with its idf (words) or the features seen (vectors).

    ``min_count``: a word is kept if at least so many training documents have it.
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
        except re.error as error:
            raise UsageError(f"token_pattern '{token_pattern}' is not a regular expression ({error})") from None
        if groups > 1:
            raise UsageError(f"token_pattern '{token_pattern}' has {groups} groups; use at most one, or (?:...)")
        self.sublinear_tf = sublinear_tf
        self.min_count = min_count
        self.lowercase = lowercase
        self.token_pattern = token_pattern
        self.kind: str | None = None  # of the training documents: text, tokens or vectors
        self._tfidf: Any = None
        self._seen: NDArray[np.bool_] | None = None  # vectors: the features that train has

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
        if self._seen is not None:
            return len(self._seen)
        return len(self._fitted().vocabulary_)

    @property
    def vocabulary(self) -> list[str] | None:
        """The words by column; None for vectors."""
        return None if self._seen is not None else list(self._fitted().get_feature_names_out())

    def fit_transform(self, documents: Documents) -> Any:
        """Learn from the training documents and give their vectors, CSR float32; a document needs a word."""
        if len(documents) == 0:
            raise UsageError("no training documents; give at least one")
        if documents.vectors is not None:
            seen = np.zeros(documents.vectors.n_features, bool)
            seen[documents.vectors.indices] = True
            _refuse_empty(documents, np.diff(documents.vectors.indptr) == 0)
            self.kind, self._tfidf, self._seen = documents.kind, None, seen
            return _csr(documents.vectors, len(seen))
        tfidf = self._vectoriser(documents.kind)
        try:
            X = tfidf.fit_transform(documents.texts)
        except ValueError as error:
            # scikit-learn: "empty vocabulary" or "after pruning, no terms remain"
            where = ", ".join(documents.paths)
            raise DataError(where, f"no word is left ({error}); lower min_count or check the token pattern") from None
        empty = np.diff(X.indptr) == 0
        if empty.any() and self.min_count > 1:  # a document of rare words is not an empty one
            analyse = tfidf.build_analyzer()
            empty[empty] = [not analyse(documents.texts[i]) for i in np.flatnonzero(empty)]  # type: ignore[index]
        _refuse_empty(documents, empty)
        self.kind, self._tfidf, self._seen = documents.kind, tfidf, None
        return _int32(X)

    def transform(self, documents: Documents) -> Any:
        """Vectors of new documents; one that shares no word with train is a row of zeros."""
        if (documents.vectors is not None) != (self._seen is not None):
            held = "vectors" if documents.vectors is not None else "text"
            wanted = "vectors (svmlight)" if self._seen is not None else "text"
            raise DataError(", ".join(documents.paths), f"holds {held}, but the training documents were {wanted}")
        if documents.vectors is not None and self._seen is not None:
            return _csr(_only(documents.vectors, self._seen), len(self._seen))
        return _int32(self._fitted().transform(documents.texts))

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """What was fitted, as arrays: ``vocabulary`` (UTF-8, a word a line) and ``idf``, or ``seen``."""
        if self._seen is not None:
            return {"seen": self._seen.copy()}
        words = self.vocabulary or []
        if any("\n" in word for word in words):
            raise UsageError("a word has a line end in it, so the vocabulary cannot be saved; change token_pattern")
        text = "\n".join(words).encode("utf-8")
        return {"vocabulary": np.frombuffer(text, np.uint8).copy(), "idf": np.array(self._fitted().idf_)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], settings: Mapping[str, Any]) -> TextVectoriser:
        """The vectoriser whose ``to_arrays()`` and ``settings`` these are."""
        options = dict(settings)
        kind = options.pop("kind")
        restored = cls(**options)
        restored.kind = kind
        if kind == "vectors":
            restored._seen = np.array(arrays["seen"], bool)
            return restored
        words = arrays["vocabulary"].tobytes().decode("utf-8").split("\n")
        if len(words) != len(arrays["idf"]):
            raise UsageError(f"{len(words)} words, but {len(arrays['idf'])} idf values; the saved model is damaged")
        restored._tfidf = restored._vectoriser(kind, vocabulary={word: column for column, word in enumerate(words)})
        restored._tfidf.idf_ = np.array(arrays["idf"])
        return restored

    def _fitted(self) -> Any:
        if self._tfidf is None:
            raise UsageError("the vectoriser is not fitted; call fit_transform on the training documents first")
        return self._tfidf

    def _vectoriser(self, kind: str, vocabulary: dict[str, int] | None = None) -> Any:
        try:
            from sklearn.feature_extraction.text import TfidfVectorizer
        except ImportError:
            raise _missing() from None
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


def _missing() -> NotInstalledError:
    return NotInstalledError("text classification needs scikit-learn; install it with: pip install 'sparsezo[text]'")


def _refuse_empty(documents: Documents, empty: NDArray[np.bool_]) -> None:
    if empty.any():
        where = documents.where(int(np.argmax(empty)))
        raise DataError(where, "an empty document: no words are found in it; remove it from the training documents")


def _only(vectors: Vectors, seen: NDArray[np.bool_]) -> Vectors:
    """The vectors without the features that train does not have."""
    kept = vectors.indices < len(seen)
    kept[kept] = seen[vectors.indices[kept]]
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(kept)])
    return Vectors(before[vectors.indptr], vectors.indices[kept], vectors.values[kept])


def _csr(vectors: Vectors, n_features: int) -> Any:
    try:
        from scipy.sparse import csr_array
    except ImportError:
        raise _missing() from None
    indptr = vectors.indptr.astype(np.int32) if len(vectors.indices) < 2**31 else vectors.indptr
    return csr_array((vectors.values, vectors.indices, indptr), shape=(len(vectors), n_features))


def _int32(X: Any) -> Any:
    """What scikit-learn gives, as a csr_array with int32 indices."""
    from scipy.sparse import csr_array

    X = csr_array(X)
    if X.nnz < 2**31:
        X.indices, X.indptr = X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int32, copy=False)
    return X
