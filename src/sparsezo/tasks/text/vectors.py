"""Documents' vectors as dense columns beside tf-idf: the mean of their words' vectors (``word_vectors``).

    vectoriser = WithVectors(TextVectoriser(), "wordllama")
    X = vectoriser.fit_transform(train)             # CSR: the words' columns, then 256 of vectors

Frequent words count less (Arora, Liang and Ma 2017: a word that is a share p of the training documents has the weight
a / (a + p)), the training documents' mean is subtracted, and what is left has the length ``SCALE``, where a document's
tf-idf has 1. With ten answers words that nobody was asked about have weights of 0, but vectors near those that somebody
was asked about are there; with thousands, words know better, and are the longer part (docs/data.md has figures).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsezo import extras, notes
from sparsezo.errors import DataError, UsageError
from sparsezo.tasks.text.documents import Documents
from sparsezo.tasks.text.hashed import HashedVectoriser
from sparsezo.tasks.text.tfidf import TextVectoriser
from sparsezo.tasks.text.word_vectors import WORDLLAMA, WordVectors, installed, read_vectors, wordllama

AUTO, NONE = "auto", "none"
SCALE = 0.4
RARE = 1e-3  # a, above
_MOST_BY_ITSELF = 500_000  # documents: with more, `auto` does not take 2 GB for their vectors unasked
_OWN = "vectors."  # what the arrays of vectors are called in a model

Words = TextVectoriser | HashedVectoriser


@dataclass(frozen=True, eq=False)
class DocumentVectors:
    """Words' vectors, and what the training documents say of how to take their mean."""

    words: WordVectors
    weights: NDArray[np.float32]  # of each word
    centre: NDArray[np.float32]  # of the training documents
    scale: float = SCALE

    @classmethod
    def fit(cls, words: WordVectors, counts: Any) -> DocumentVectors:
        """``counts``: documents x words, of the training documents."""
        total = np.bincount(counts.indices, counts.data, minlength=len(words.table))
        share = total / max(total.sum(), 1)
        made = cls(words, (RARE / (RARE + share)).astype(np.float32), np.zeros(words.columns, np.float32))
        means, known = made._means(counts)
        centre = means[known].mean(axis=0, dtype=np.float64) if known.any() else made.centre
        return replace(made, centre=centre.astype(np.float32))

    def of(self, counts: Any) -> NDArray[np.float32]:
        """Documents x columns; 0 for a document without a word that has a vector."""
        means, known = self._means(counts)
        means -= self.centre
        means[~known] = 0
        length = np.sqrt(np.square(means, dtype=np.float64).sum(axis=1))
        factor = np.divide(self.scale, length, out=np.zeros_like(length), where=length > 0)
        means *= factor.astype(np.float32)[:, None]
        return means

    def _means(self, counts: Any) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """(the weighted mean of each document's vectors, whether it has any)."""
        from scipy.sparse import csr_array

        used, places = np.unique(counts.indices, return_inverse=True)
        values = counts.data * self.weights[counts.indices]
        weighted = csr_array((values, places, counts.indptr), shape=(counts.shape[0], len(used)))
        total = weighted.sum(axis=1)
        known = total > 0
        sums: NDArray[np.float32] = weighted @ self.words.table[used].astype(np.float32)
        sums /= np.where(known, total, 1).astype(np.float32)[:, None]
        return sums, known


class WithVectors:
    """A vectoriser of words with the columns of vectors after its own; what it has and does otherwise is the same.

    ``vectors``: ``wordllama`` or a file's name, read when ``fit_transform`` is called.
    """

    def __init__(self, words: Words, vectors: str | WordVectors) -> None:
        self.words = words
        self._given = vectors
        self._vectors: DocumentVectors | None = None

    @property
    def vectors(self) -> DocumentVectors:
        if self._vectors is None:
            raise UsageError("the vectoriser is not fitted; call fit_transform on the training documents first")
        return self._vectors

    @property
    def kind(self) -> str | None:
        return self.words.kind

    @property
    def settings(self) -> dict[str, Any]:
        """Goes into JSON."""
        own = {"source": self.vectors.words.source, "scale": self.vectors.scale}
        return {**self.words.settings, "vectors": own}

    @property
    def n_features(self) -> int:
        return self.words.n_features + self.vectors.words.columns

    @property
    def vocabulary(self) -> list[str]:
        """Columns of vectors are called by what the vectors are known by: others are other features."""
        known = self.vectors.words.known_by
        return [*self.words.vocabulary, *(f"vectors {known} {k}" for k in range(self.vectors.words.columns))]

    def fit_transform(self, documents: Documents) -> Any:
        if documents.vectors is not None:
            where = ", ".join(documents.paths)
            raise DataError(where, "has indices and no words to find `vectors` of; leave `vectors` out, or give texts")
        X = self.words.fit_transform(documents)
        words = self._given if isinstance(self._given, WordVectors) else self._read(self._given, documents)
        counts = words.counts(documents.texts or [], self._analyser(documents))
        self._vectors = DocumentVectors.fit(words, counts)
        empty = int((np.diff(counts.indptr) == 0).sum())
        if empty == len(documents):
            raise DataError(
                ", ".join(documents.paths), f"no word has a vector in {words.source}; is it of this language?"
            )
        some = f"; {empty:,} documents have no word with a vector" if empty else ""
        notes.say(
            f"`vectors`: {words.columns} columns of {words.source} beside tf-idf, "
            f"{words.megabytes:.1f} MB in the model{some}"
        )
        return beside(X, self._vectors.of(counts))

    def _read(self, given: str, documents: Documents) -> WordVectors:
        if given == WORDLLAMA:
            return wordllama()
        if isinstance(self.words, TextVectoriser):
            wanted = set(self.words.vocabulary)
        else:
            wanted = set(itertools.chain.from_iterable(map(self._analyser(documents), documents.texts or [])))
        return read_vectors(given, self.words.lowercase and documents.kind == "text", wanted)

    def transform(self, documents: Documents) -> Any:
        X = self.words.transform(documents)
        counts = self.vectors.words.counts(documents.texts or [], self._analyser(documents))
        return beside(X, self.vectors.of(counts))

    def _analyser(self, documents: Documents) -> Callable[[str], list[str]]:
        return self.words.analyser(documents.kind)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        vectors = self.vectors
        own = {**vectors.words.to_arrays(), "weights": vectors.weights, "centre": vectors.centre}
        return self.words.to_arrays() | {_OWN + name: each for name, each in own.items()}

    @classmethod
    def from_arrays(cls, words: Words, arrays: Mapping[str, NDArray[Any]], about: Any) -> WithVectors:
        """``about``: what ``settings`` has of vectors; ValueError where these cannot be."""
        own = {name.removeprefix(_OWN): each for name, each in arrays.items() if name.startswith(_OWN)}
        scale = about["scale"]
        if not isinstance(about["source"], str) or not isinstance(scale, float) or not 0 < scale < 1e6:
            raise ValueError(f"vectors of {about['source']} and of length {scale}")
        vectors = WordVectors.from_arrays(own, about["source"])
        for name, n in (("weights", len(vectors.table)), ("centre", vectors.columns)):
            found = own[name]
            if found.dtype != np.float32 or found.shape != (n,) or not np.isfinite(found).all():
                raise ValueError(f"{name} of vectors are of type {found.dtype} and shape {found.shape}, or not finite")
        if (own["weights"] <= 0).any():
            raise ValueError("weights of vectors are not all above 0")
        restored = cls(words, vectors)
        restored._vectors = DocumentVectors(vectors, own["weights"], own["centre"], scale)
        return restored


def beside(X: Any, dense: NDArray[np.float32]) -> Any:
    """CSR rows with dense columns after their own; a dense row of zeros has no entries."""
    from scipy.sparse import csr_array

    n, columns = dense.shape
    there = dense.any(axis=1)
    sizes = np.diff(X.indptr).astype(np.int64)
    indptr = np.zeros(n + 1, np.int64)
    np.cumsum(sizes + there * columns, out=indptr[1:])
    indices, values = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], np.float32)
    place = np.arange(len(X.indices)) + np.repeat(indptr[:-1] - X.indptr[:-1], sizes)
    behind = np.ones(len(indices), np.bool_)  # where the dense entries go
    behind[place] = False
    indices[place], values[place] = X.indices, X.data
    indices[behind] = np.tile(X.shape[1] + np.arange(columns, dtype=np.int32), int(there.sum()))
    values[behind] = dense[there].reshape(-1)
    indptr = indptr.astype(np.int32) if indptr[-1] < 2**31 else indptr
    return csr_array((values, indices, indptr), shape=(n, X.shape[1] + columns))


def chosen(vectors: str | None, documents: Documents) -> str | None:
    """``wordllama``, a file's name, or None for none: what ``auto`` comes to is said in a line."""
    if vectors is None or vectors == NONE:
        return None
    if vectors != AUTO:
        return vectors
    if documents.kind != "text":
        return None
    if len(documents) > _MOST_BY_ITSELF:
        notes.say(
            f"`vectors`: left out with more than {_MOST_BY_ITSELF:,} documents, for the memory that they would take; "
            f"`vectors` {WORDLLAMA} takes them all the same"
        )
        return None
    if not installed():
        notes.say(
            "`vectors`: none, as wordllama is not installed; with it 100 answers teach about what 300 do without: "
            f"{extras.pip_install('vectors')}"
        )
        return None
    return WORDLLAMA
