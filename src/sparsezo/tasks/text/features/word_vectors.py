"""Static vectors of words (of the package wordllama, or of a file), and documents' means of them beside tf-idf; or
vectors of documents that anybody's encoder gives (encoders.py).

    words = wordllama()                             # 32,000 pieces x 256, from the installed package's two files
    words = read_vectors("glove.txt.gz", True, vocabulary)      # word v1 v2 ..., a line each
    WithVectors(TextVectoriser(), words).fit_transform(train)   # CSR: the words' columns, then 256 of vectors
    WithEncoder(TextVectoriser(), Encoder("my_encoder:encode")).fit_transform(train)

All that is needed to look texts up is saved with a model, so that it predicts the same with the package there or not;
of an encoder its name.

In a document's mean frequent words count less (Arora, Liang and Ma 2017: a word that is a share p of the training
documents has the weight a / (a + p)), the training documents' mean is subtracted, and what is left has the length
``SCALE``, where a document's tf-idf has 1: with ten answers vectors know more than words, with thousands words do
(docs/data.md has figures).
"""

from __future__ import annotations

import itertools
import json
import math
from array import array
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsezo import errors, messages
from sparsezo.errors import DataError, UsageError, need, quoted
from sparsezo.storage.files import STANDARD_INPUT, numbered_lines
from sparsezo.storage.fingerprint import hasher
from sparsezo.storage.texts import joined, parted
from sparsezo.tasks.base import Arrays, Json
from sparsezo.tasks.encoders import Encoder, centre_of, known_rows, to_length
from sparsezo.tasks.text.features.pieces import Pieces
from sparsezo.tasks.text.features.tfidf import Analyser, HashedVectoriser, TextVectoriser, word_counts
from sparsezo.tasks.text.io.documents import Documents

WORDLLAMA = "wordllama"
KEPT = 100_000  # words at the beginning of a file that a model keeps, beside those of its documents
MOST_COLUMNS = 4096
_WEIGHTS, _TENSOR = "weights/l2_supercat_256.safetensors", "embedding.weight"
_TOKENISER = "tokenizers/l2_supercat_tokenizer_config.json"
_LARGEST = 4  # a file's values are scaled so that the largest is below 2^4: float16 ends at 2^16


@dataclass(frozen=True, eq=False)
class WordVectors:
    """``table`` has a row a word; ``names`` are the words, or what cuts a text into pieces."""

    source: str  # for people
    table: NDArray[np.float16]  # words x columns
    names: Pieces | Sequence[str]

    @property
    def columns(self) -> int:
        return int(self.table.shape[1])

    @property
    def known_by(self) -> str:
        """The same for the same vectors of the same words."""
        digest = hasher(4)
        for _, array_ in sorted(self.to_arrays().items()):
            digest.update(np.ascontiguousarray(array_).data)
        return digest.hexdigest()

    def counts(self, texts: Sequence[str], analyser: Analyser) -> csr_array:
        """How often each text has each word, float32; a row's indices rise, and depend on its own text alone.

        ``analyser`` cuts a text into words; pieces have their own way.
        """
        words, found = word_counts(texts, self.names.words_of if isinstance(self.names, Pieces) else analyser)
        if isinstance(self.names, Pieces):
            of_words = self.names.of_words(words)
        else:
            number = {name: k for k, name in enumerate(self.names)}
            places = np.array([number[word] for word in words if word in number], np.int64)
            starts = np.cumsum([0, *(word in number for word in words)])
            of_words = csr_array((np.ones(len(places), np.float32), places, starts), (len(words), len(number)))
        counts = csr_array(found @ of_words)
        counts.sum_duplicates()
        return counts

    def to_arrays(self) -> Arrays:
        if isinstance(self.names, Pieces):
            return {"table": self.table, **self.names.to_arrays()}
        text, start = joined(self.names)
        return {"table": self.table, "words": text, "words_start": start}

    @classmethod
    def from_arrays(cls, arrays: Arrays, source: str) -> WordVectors:
        """ValueError where these are not what ``to_arrays`` can have given."""
        table = arrays["table"]
        if table.dtype != np.float16 or table.ndim != 2 or not table.shape[1] or not np.isfinite(table).all():
            raise ValueError(f"vectors of type {table.dtype} and shape {table.shape}, or not finite")
        names: Pieces | list[str]
        if "merges" in arrays:
            names = Pieces.from_arrays(arrays, len(table))
        else:
            names = parted(arrays["words"], arrays["words_start"])
            if len(names) != len(table) or len(set(names)) != len(names):
                raise ValueError(f"{len(names)} words, {len(set(names))} of them different, for {len(table)} vectors")
        return cls(source, table, names)


def wordllama() -> WordVectors:
    """The package's own vectors and tokeniser; NotInstalledError where it is not there."""
    need("vectors")
    found = find_spec(WORDLLAMA)
    folder = Path(next(iter((found.submodule_search_locations if found else None) or ["."])))
    try:
        source = f"{WORDLLAMA} {metadata.version(WORDLLAMA)}"
    except metadata.PackageNotFoundError:
        source = WORDLLAMA
    path = folder / _TOKENISER
    try:
        pieces = Pieces.of_json(path.read_bytes(), str(path))
        path = folder / _WEIGHTS
        table = read_tensor(path.read_bytes(), _TENSOR, str(path))
    except OSError as error:
        why = f"cannot be read ({error.strerror or error}): {source} has its vectors elsewhere"
        raise DataError(str(path), f"{why}; install wordllama 0.4, or leave `vectors` {WORDLLAMA} out") from None
    if table.ndim != 2 or len(table) != len(pieces):
        raise DataError(str(path), f"vectors of shape {table.shape} for {len(pieces):,} pieces")
    return WordVectors(source, table, pieces)


def read_tensor(raw: bytes, name: str, where: str) -> NDArray[np.float16]:
    """A float16 array out of a safetensors file: 8 bytes that say how long a head in JSON is, the head, the values."""
    try:
        size = int.from_bytes(raw[:8], "little")
        about = json.loads(raw[8 : 8 + size])[name]
        begin, end = about["data_offsets"]
        shape = tuple(map(int, about["shape"]))
        if about["dtype"] != "F16" or min(shape, default=0) < 0 or not 0 <= begin <= end <= len(raw) - 8 - size:
            raise ValueError(f"{name} is {about['dtype']} of shape {shape} at {begin} to {end}")
        table = np.frombuffer(raw[8 + size + begin : 8 + size + end], "<f2").reshape(shape)
        if not np.isfinite(table).all():
            raise ValueError(f"{name} is not finite")
        return table.astype(np.float16)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise DataError(where, f"is no safetensors file with vectors ({error})") from None


def read_vectors(path: str, lowercase: bool, wanted: Collection[str]) -> WordVectors:
    """Of a text file with lines ``word v1 v2 ...``, with or without word2vec's first line (how many words and columns).

    The first ``KEPT`` words are kept, and those that are ``wanted``; others are passed over. ``lowercase``: documents
    are read in lower case, so a word of the file stands for its lower case where that has no line of its own. Of a word
    that is there twice the first line counts.
    """
    columns, row_of, exact = 0, dict[str, int](), set[str]()
    values, seen = array("f"), 0
    for number, line in numbered_lines(path):
        fields = line.split()
        if not fields:
            continue
        if not columns:
            if number == 1 and len(fields) == 2 and all(each.isascii() and each.isdigit() for each in fields):
                continue
            columns = len(fields) - 1
            if not 0 < columns <= MOST_COLUMNS:
                what = f"'{quoted(line)}' is no word with 1 to {MOST_COLUMNS:,} numbers"
                raise DataError(f"{path}:{number}", f"{what}; write word v1 v2 ..., parted by blanks, a word a line")
        if len(fields) <= columns:
            raise DataError(f"{path}:{number}", f"{len(fields) - 1} numbers after the word, not {columns} as above")
        written = " ".join(fields[:-columns])
        word = written.lower() if lowercase else written
        seen += 1
        if (seen > KEPT and word not in wanted) or word in exact or (word in row_of and word != written):
            continue
        row = _numbers(fields[-columns:], f"{path}:{number}")
        if word == written:
            exact.add(word)
        if word in row_of:
            values[row_of[word] * columns : (row_of[word] + 1) * columns] = row
        else:
            row_of[word] = len(row_of)
            values.extend(row)
    if not row_of:
        raise DataError(path, "has no vectors; write word v1 v2 ..., parted by blanks, a word a line")
    table = np.frombuffer(values, np.float32).reshape(-1, columns)
    scaled = np.ldexp(table, _LARGEST - math.frexp(float(np.abs(table).max()))[1])  # documents' have length 1 anyway
    name = "standard input" if path == STANDARD_INPUT else Path(path).name
    return WordVectors(name, scaled.astype(np.float16), list(row_of))


def _numbers(fields: Sequence[str], where: str) -> array[float]:
    """As float32; DataError where one is no number, or not finite."""
    row = array("f")
    for field in fields:
        try:
            row.append(float(field))
        except ValueError:
            row.append(math.nan)
        if not math.isfinite(row[-1]):
            what = f"'{quoted(field)}' is no number, or too large a one for float32; write word v1 v2 ..."
            raise DataError(where, what)
    return row


# Columns beside tf-idf

AUTO, NONE = "auto", "none"
SCALE = 0.4
RARE = 1e-3  # a, above
_MOST_BY_ITSELF = 500_000  # documents: with more, `auto` does not take 2 GB for their vectors unasked
_OWN = "vectors."  # what the arrays of vectors are called in a model
_BATCH = 64  # documents that an encoder gets at once

Words = TextVectoriser | HashedVectoriser


class WithVectors:
    """A vectoriser of words with the columns of vectors after its own; what it has and does otherwise is the same.

    ``vectors``: ``wordllama`` or a file's name, read when ``fit_transform`` is called.
    """

    def __init__(self, words: Words, vectors: str | WordVectors) -> None:
        self.words = words
        self._given = vectors
        self.vectors: WordVectors  # from fit_transform on
        self._weights = np.zeros(0, np.float32)  # of each word that has a vector
        self._centre = np.zeros(0, np.float32)  # of the training documents
        self._scale = SCALE

    @property
    def kind(self) -> str | None:
        return self.words.kind

    @property
    def settings(self) -> Json:
        return {**self.words.settings, "vectors": {**self._about(), "scale": self._scale}}

    def _about(self) -> Json:
        return {"source": self.vectors.source}

    @property
    def columns(self) -> int:
        return len(self._centre)

    @property
    def n_features(self) -> int:
        return self.words.n_features + self.columns

    @property
    def known_by(self) -> str:
        return self.vectors.known_by

    @property
    def vocabulary(self) -> list[str]:
        """Columns of vectors are called by what the vectors are known by: others are other features."""
        known = self.known_by
        return [*self.words.vocabulary, *(f"vectors {known} {k}" for k in range(self.columns))]

    def fit_transform(self, documents: Documents) -> csr_array:
        """Learn from the training documents and give their vectors, CSR float32."""
        where = ", ".join(documents.paths)
        if documents.vectors is not None:
            what = "has indices and no words to find `vectors` of; leave `vectors` out, or give texts"
            raise DataError(where, what)
        X = self.words.fit_transform(documents)
        rows, known, source = self._learn(documents)
        if not known.any():
            raise DataError(where, f"no word has a vector in {source}; is it of this language?")
        self._centre = centre_of(rows, known)
        empty = int((~known).sum())
        some = f"; {empty:,} documents have no word with a vector" if empty else ""
        megabytes = sum(each.nbytes for each in self._own_arrays().values()) / 1e6
        messages.say(
            f"`vectors`: {self.columns} columns of {source} beside tf-idf, {megabytes:.1f} MB in the model{some}"
        )
        to_length(rows, self._centre, known, self._scale)
        return _beside(X, rows)

    def _learn(self, documents: Documents) -> tuple[NDArray[np.float32], NDArray[np.bool_], str]:
        """(a row for each training document, whether it has one, what they are of)."""
        given = self._given
        self.vectors = vectors = given if isinstance(given, WordVectors) else self._read(given, documents)
        counts = vectors.counts(documents.texts or [], self.words.analyser(documents.kind))
        total = np.bincount(counts.indices, counts.data, minlength=len(vectors.table))
        share = total / max(total.sum(), 1)
        self._weights = (RARE / (RARE + share)).astype(np.float32)
        return *self._means(counts), vectors.source

    def _read(self, given: str, documents: Documents) -> WordVectors:
        if given == WORDLLAMA:
            return wordllama()
        if isinstance(self.words, TextVectoriser):
            wanted = set(self.words.vocabulary)
        else:
            analyse = self.words.analyser(documents.kind)
            wanted = set(itertools.chain.from_iterable(map(analyse, documents.texts or [])))
        return read_vectors(given, self.words.lowercase and documents.kind == "text", wanted)

    def transform(self, documents: Documents) -> csr_array:
        """Vectors of new documents."""
        X = self.words.transform(documents)
        rows, known = self._rows(documents)
        to_length(rows, self._centre, known, self._scale)
        return _beside(X, rows)

    def _rows(self, documents: Documents) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """(a row for each document, whether it has one)."""
        return self._means(self.vectors.counts(documents.texts or [], self.words.analyser(documents.kind)))

    def _means(self, counts: csr_array) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """(the weighted mean of each document's vectors, whether it has any)."""
        used, places = np.unique(counts.indices, return_inverse=True)
        values = counts.data * self._weights[counts.indices]
        weighted = csr_array((values, places, counts.indptr), shape=(counts.shape[0], len(used)))
        total = weighted.sum(axis=1)
        known = total > 0
        sums: NDArray[np.float32] = weighted @ self.vectors.table[used].astype(np.float32)
        sums /= np.where(known, total, 1).astype(np.float32)[:, None]
        return sums, known

    def to_arrays(self) -> Arrays:
        return self.words.to_arrays() | {_OWN + name: each for name, each in self._own_arrays().items()}

    def _own_arrays(self) -> Arrays:
        return {**self.vectors.to_arrays(), "weights": self._weights, "centre": self._centre}

    @classmethod
    def from_arrays(cls, words: Words, arrays: Arrays, about: Json) -> WithVectors:
        """``about``: what ``settings`` has of vectors; ValueError where these cannot be."""
        own = {name.removeprefix(_OWN): each for name, each in arrays.items() if name.startswith(_OWN)}
        scale, centre = about["scale"], own["centre"]
        if not isinstance(scale, float) or not 0 < scale < 1e6:
            raise ValueError(f"vectors of length {scale}")
        if centre.dtype != np.float32 or centre.ndim != 1 or not len(centre) or not np.isfinite(centre).all():
            raise ValueError(f"centre of vectors is of type {centre.dtype} and shape {centre.shape}, or not finite")
        restored = cls._restored(words, own, about)
        restored._scale, restored._centre = scale, centre
        return restored

    @classmethod
    def _restored(cls, words: Words, own: Arrays, about: Json) -> WithVectors:
        if not isinstance(about["source"], str):
            raise ValueError(f"vectors of {about['source']}")
        vectors = WordVectors.from_arrays(own, about["source"])
        if own["centre"].shape != (vectors.columns,):
            raise ValueError(f"centre of vectors has {len(own['centre'])} columns, the vectors {vectors.columns}")
        weights = own["weights"]
        if weights.dtype != np.float32 or weights.shape != (len(vectors.table),) or not np.isfinite(weights).all():
            raise ValueError(f"weights of vectors are of type {weights.dtype} and shape {weights.shape}, or not finite")
        if (weights < RARE / 2).any() or (weights > 1).any():
            raise ValueError(f"weights of vectors are not all from {RARE / 2:g} to 1")
        if (np.abs(own["centre"]) > np.finfo(np.float16).max).any():  # a mean of vectors, which are float16
            raise ValueError("the centre of vectors is further out than any of them")
        restored = cls(words, vectors)
        restored.vectors, restored._weights = vectors, weights
        return restored


class WithEncoder(WithVectors):
    """The same with vectors of whole documents, as an encoder gives them.

    ``encoder``: None where a model does not name its function, which whoever loads it gives.
    """

    def __init__(self, words: Words, encoder: Encoder | None) -> None:
        super().__init__(words, "")
        self.encoder = encoder

    @property
    def function(self) -> str | None:
        """The encoder's name, where it has one that other processes find it by."""
        return None if self.encoder is None else self.encoder.name

    @property
    def known_by(self) -> str:
        return self.function or ""

    def _about(self) -> Json:
        return {"function": self.function}

    def _learn(self, documents: Documents) -> tuple[NDArray[np.float32], NDArray[np.bool_], str]:
        return *self._rows(documents), str(self.encoder)

    def _rows(self, documents: Documents) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        if self.encoder is None:
            raise UsageError(
                "the model names no function that gives its `vectors`; load it with load_model(path, vectors=f)"
            )
        texts, columns = documents.texts or [], self.columns or None
        parts = []
        with messages.counting("encoding", "documents") as count:
            for begin in range(0, len(texts), _BATCH):
                some = texts[begin : begin + _BATCH]
                parts.append(self.encoder(some, columns, f"{', '.join(documents.paths)}, document {begin + 1}"))
                columns = parts[-1].shape[1]
                count(begin + len(some), len(texts))
        rows = np.concatenate(parts) if parts else np.zeros((0, columns or 1), np.float32)
        return rows, known_rows(rows)

    def _own_arrays(self) -> Arrays:
        return {"centre": self._centre}

    @classmethod
    def _restored(cls, words: Words, own: Arrays, about: Json) -> WithVectors:
        name = about["function"]
        if name is not None and not isinstance(name, str):
            raise ValueError(f"vectors of a function {name!r}")
        try:
            return cls(words, None if name is None else Encoder(name))
        except UsageError as error:
            raise ValueError(str(error)) from None


def _beside(X: csr_array, dense: NDArray[np.float32]) -> csr_array:
    """CSR rows with dense columns after their own, in place (hstack takes three times the memory).

    A dense row of zeros has no entries.
    """
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
        messages.say(
            f"`vectors`: left out with more than {_MOST_BY_ITSELF:,} documents, for the memory that they would take; "
            f"`vectors` {WORDLLAMA} takes them all the same"
        )
        return None
    if find_spec(WORDLLAMA) is None:
        messages.say(
            "`vectors`: none, as wordllama is not installed; with it 100 answers teach about what 300 do without: "
            f"{errors.pip_install('vectors')}"
        )
        return None
    return WORDLLAMA
