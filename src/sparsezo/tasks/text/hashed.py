"""Documents to sparse vectors whose columns are hashes of words (``hash_bits``), in the place of a vocabulary.

    vectoriser = HashedVectoriser(bits=20)
    X = vectoriser.fit_transform(train)         # as TextVectoriser does: (1 + ln tf) * idf, of length 1
    vectoriser.count(some); vectoriser.count(more)      # the same in pieces: how many documents have a word of each row

Words that fall on one row count as one: their tf add up, and idf is by row, so that there is one number a row to keep.
Vectors (svmlight) have their indices hashed, as they are written, and their values added up.
"""

from __future__ import annotations

import itertools
from array import array
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import DataError, UsageError
from sparsezo.tasks import hashing
from sparsezo.tasks.hash_bits import check_hash_bits
from sparsezo.tasks.text.documents import Documents
from sparsezo.tasks.text.svmlight import Vectors
from sparsezo.tasks.text.tfidf import TOKEN_PATTERN, TextVectoriser, missing


class HashedVectoriser:
    """Settings, and of words the number of documents that have one of each row."""

    def __init__(
        self, bits: int, *, sublinear_tf: bool = True, lowercase: bool = True, token_pattern: str = TOKEN_PATTERN
    ) -> None:
        check_hash_bits(bits)
        self.bits = bits
        self._words = TextVectoriser(sublinear_tf=sublinear_tf, lowercase=lowercase, token_pattern=token_pattern)
        self.kind: str | None = None  # of the training documents: text, tokens or vectors
        self._documents = 0
        self._with_row = np.zeros(0, np.int64)  # documents that have a word of the row

    @property
    def settings(self) -> dict[str, str | int | bool | None]:
        """Goes into JSON."""
        own = {name: value for name, value in self._words.settings.items() if name not in ("min_count", "kind")}
        return {**own, "kind": self.kind, "hash_bits": self.bits, "documents": self._documents}

    @property
    def n_features(self) -> int:
        return 1 << self.bits

    @property
    def vocabulary(self) -> list[str]:
        raise UsageError("with `hash_bits` features have no names")

    @property
    def lowercase(self) -> bool:
        return self._words.lowercase

    def analyser(self, kind: str) -> Callable[[str], list[str]]:
        """What cuts a document of this kind into words."""
        return self._words.analyser(kind)

    def fit_transform(self, documents: Documents) -> Any:
        """Learn from the training documents and give their vectors, CSR float32."""
        if len(documents) == 0:
            raise UsageError("no training documents; give at least one")
        return self._weighted(self._counted(documents))

    def count(self, documents: Documents) -> None:
        """Learn from some of the training documents."""
        self._counted(documents)

    def transform(self, documents: Documents) -> Any:
        """Vectors of new documents."""
        if (documents.kind == "vectors") != (self.kind == "vectors"):
            held, wanted = ("vectors" if kind == "vectors" else "text" for kind in (documents.kind, self.kind))
            where = ", ".join(documents.paths)
            raise DataError(where, f"holds {held}, but the training documents were {wanted}")
        return self._weighted(self._rows(documents))

    def _counted(self, documents: Documents) -> Any:
        if self.kind is None:
            self.kind = documents.kind
            self._with_row = np.zeros(0 if self.kind == "vectors" else self.n_features, np.int64)
        X = self._rows(documents)
        self._documents += len(documents)
        if self.kind != "vectors":
            np.add.at(self._with_row, X.indices, 1)
        return X

    def _rows(self, documents: Documents) -> Any:
        """Documents x rows: how often a document has words of a row; of vectors the sum of their values."""
        try:
            from scipy.sparse import csr_array
        except ImportError:
            raise missing() from None
        names, indptr, places, data = (
            _words_of(documents, self._words.analyser(documents.kind))
            if documents.vectors is None
            else _indices_of(documents.vectors)
        )
        columns = hashing.rows_of(names, self.bits)[places] if len(names) else np.zeros(0, np.int32)
        X = csr_array((data.copy(), columns, indptr), shape=(len(documents), self.n_features))
        X.sum_duplicates()
        X.indices, X.indptr = X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int32, copy=False)
        return X

    def _weighted(self, X: Any) -> Any:
        if self.kind == "vectors":
            return X
        if self._words.sublinear_tf:
            X.data = 1 + np.log(X.data)
        idf = np.log((1 + self._documents) / (1 + self._with_row[X.indices])) + 1  # as scikit-learn smooths it
        X.data *= idf.astype(np.float32)
        sizes = np.diff(X.indptr)
        of_row = np.repeat(np.arange(len(sizes)), sizes)
        length = np.sqrt(np.bincount(of_row, np.square(X.data, dtype=np.float64), minlength=len(sizes)))
        X.data /= length[of_row].astype(np.float32)
        return X

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        return {"documents_with_row": self._with_row.copy()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], settings: Mapping[str, Any]) -> HashedVectoriser:
        """The one whose ``to_arrays()`` and ``settings`` these are; ValueError where they cannot be."""
        options = dict(settings)
        bits, kind, documents = (options.pop(name) for name in ("hash_bits", "kind", "documents"))
        wanted = {"sublinear_tf": bool, "lowercase": bool, "token_pattern": str}
        if {name: type(value) for name, value in options.items()} != wanted:
            raise ValueError(f"settings of the vectoriser are {sorted(options)}")
        if kind not in ("text", "tokens", "vectors") or not isinstance(documents, int):
            raise ValueError(f"{documents} documents of the kind {kind}")
        try:
            restored = cls(bits, **options)
        except UsageError as error:
            raise ValueError(str(error)) from None
        counts = arrays["documents_with_row"]
        size = 0 if kind == "vectors" else restored.n_features
        if counts.dtype != np.int64 or counts.shape != (size,) or (counts < 0).any() or (counts > documents).any():
            raise ValueError("documents_with_row does not count documents")
        restored.kind, restored._documents, restored._with_row = kind, documents, counts
        return restored


# (distinct names, where each document begins, which name each entry has, its value)
_Entries = tuple[list[str], NDArray[Any], NDArray[Any], NDArray[Any]]


def _words_of(documents: Documents, analyse: Callable[[str], list[str]]) -> _Entries:
    """An entry for each word wherever it stands."""
    number: defaultdict[str, int] = defaultdict(itertools.count().__next__)
    places, starts = array("i"), [0]
    for text in documents.texts or ():
        places.extend(map(number.__getitem__, analyse(text)))
        starts.append(len(places))
    return list(number), np.array(starts, np.int64), np.array(places, np.int32), np.ones(len(places), np.float32)


def _indices_of(vectors: Vectors) -> _Entries:
    found, places = np.unique(vectors.indices, return_inverse=True)
    return list(map(str, found.tolist())), vectors.indptr, places, vectors.values
