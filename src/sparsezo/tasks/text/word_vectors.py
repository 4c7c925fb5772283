"""Static vectors of words, or of pieces of words, and what brings them: the package wordllama, or a file.

    words = wordllama()                             # 32,000 pieces x 256, from the installed package's files
    words = read_vectors("glove.txt.gz", True, vocabulary)      # word v1 v2 ..., a line each
    words.counts(texts, analyser)                   # scipy CSR, texts x vectors

Nothing is downloaded, and nothing of the package is imported: its two files are read. All that is needed to look texts
up is saved with a model, so that it predicts the same wherever it is, with the package there or not.
"""

from __future__ import annotations

import hashlib
import json
import math
from array import array
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsezo import extras
from sparsezo.errors import DataError, quoted
from sparsezo.storage.files import STANDARD_INPUT, numbered_lines
from sparsezo.storage.texts import joined, parted
from sparsezo.tasks.text.pieces import Pieces

WORDLLAMA = "wordllama"
KEPT = 100_000  # words at the beginning of a file that a model keeps, beside those of its documents
MOST_COLUMNS = 4096
_WEIGHTS, _TENSOR = "weights/l2_supercat_256.safetensors", "embedding.weight"
_TOKENISER = "tokenizers/l2_supercat_tokenizer_config.json"
_LARGEST = 4  # a file's values are scaled so that the largest is below 2^4: float16 ends at 2^16

Analyser = Callable[[str], list[str]]


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
        digest = hashlib.blake2b(digest_size=4)
        for _, array_ in sorted(self.to_arrays().items()):
            digest.update(np.ascontiguousarray(array_).data)
        return digest.hexdigest()

    @property
    def megabytes(self) -> float:
        """That they take in a model."""
        return sum(each.nbytes for each in self.to_arrays().values()) / 1e6

    def counts(self, texts: Sequence[str], analyser: Analyser) -> Any:
        """How often each text has each word, float32; a row's indices rise, and depend on its own text alone.

        ``analyser`` cuts a text into words; pieces have their own way.
        """
        from scipy.sparse import csr_array

        if isinstance(self.names, Pieces):
            return self.names.counts(texts)
        number = {name: k for k, name in enumerate(self.names)}
        places, starts = array("i"), [0]
        for text in texts:
            places.extend(number[word] for word in analyser(text) if word in number)
            starts.append(len(places))
        ones = np.ones(len(places), np.float32)
        found = csr_array((ones, np.frombuffer(places, np.int32), starts), shape=(len(texts), len(self.table)))
        found.sum_duplicates()
        return found

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        if isinstance(self.names, Pieces):
            return {"table": self.table, **self.names.to_arrays()}
        text, start = joined(self.names)
        return {"table": self.table, "words": text, "words_start": start}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], source: str) -> WordVectors:
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


def installed() -> bool:
    """Whether wordllama is there."""
    return find_spec(WORDLLAMA) is not None


def wordllama() -> WordVectors:
    """The package's own vectors and tokeniser; NotInstalledError where it is not there."""
    extras.need("vectors")
    found = find_spec(WORDLLAMA)
    folder = Path(next(iter((found.submodule_search_locations if found else None) or ["."])))
    try:
        source = f"{WORDLLAMA} {metadata.version(WORDLLAMA)}"
    except metadata.PackageNotFoundError:
        source = WORDLLAMA
    raw = _content(folder / _TOKENISER, source)
    pieces = Pieces.of_json(raw, str(folder / _TOKENISER))
    table = read_tensor(_content(folder / _WEIGHTS, source), _TENSOR, str(folder / _WEIGHTS))
    if table.ndim != 2 or len(table) != len(pieces):
        raise DataError(str(folder / _WEIGHTS), f"vectors of shape {table.shape} for {len(pieces):,} pieces")
    return WordVectors(source, table, pieces)


def _content(path: Path, source: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        why = f"cannot be read ({error.strerror or error}): {source} has its vectors elsewhere"
        raise DataError(str(path), f"{why}; install wordllama 0.4, or leave `vectors` {WORDLLAMA} out") from None


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
    try:
        row = array("f", map(float, fields))
    except ValueError:
        row = array("f")
    if len(row) != len(fields) or not all(map(math.isfinite, row)):
        wrong = next(each for each in fields if not _is_number(each))
        raise DataError(where, f"'{quoted(wrong)}' is no number, or too large a one for float32; write word v1 v2 ...")
    return row


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(array("f", [float(text)])[0])
    except ValueError:
        return False
