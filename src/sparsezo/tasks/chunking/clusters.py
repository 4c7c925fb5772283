"""Clusters of words: which words are used alike, as a bit string for each word.

The strings are paths in a binary tree, as in Brown et al., "Class-Based n-gram Models of Natural Language" (1992):
words whose paths begin alike are alike, so a prefix is a coarser cluster (Ratinov and Roth 2009 use 4, 6 and 10 bits
for names). They come from a package, from a file, or from the raw text itself (cluster_learning.py).

    clusters = packaged("es")               # 0.5 million words; the package is the extra `clusters`
    clusters = read_clusters("paths.gz")    # bits TAB word [TAB count], what Brown's own program writes
    clusters.paths_of(["Bogotá", "xyzzy"])  # ['0110010011000000', '']: empty where the word is not known
"""

from __future__ import annotations

import gzip
import json
import os
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsezo import extras
from sparsezo.errors import DataError, quoted
from sparsezo.storage.files import numbered_lines
from sparsezo.storage.sorted_texts import LONGEST, SortedTexts
from sparsezo.storage.texts import joined, parted

PACKAGED = ("en", "de", "es")  # languages that the package has clusters of
PACKAGE = "spacy_lookups_data"
_is_path = re.compile("[01]{1,1000}").fullmatch


@dataclass(frozen=True, eq=False)
class Clusters:
    """Words, and the path of each word's cluster; made by ``of``, ``packaged``, ``read_clusters`` or ``learned``."""

    words: SortedTexts
    numbers: NDArray[np.uint16]  # of each word's path
    paths: tuple[str, ...]  # distinct

    @classmethod
    def of(cls, table: Mapping[str, str]) -> Clusters:
        """Of words and their paths, 65,536 different ones at most. What is longer than 255 bytes is no word."""
        paths = tuple(sorted({*table.values()}))
        number = {path: k for k, path in enumerate(paths)}
        raw = sorted((word.encode("utf-8", "surrogatepass"), number[path]) for word, path in table.items())
        raw = [(word, k) for word, k in raw if len(word) <= LONGEST]
        words = SortedTexts.of_bytes([word for word, _ in raw])
        return cls(words, np.array([k for _, k in raw], np.uint16), paths)

    def __len__(self) -> int:
        return len(self.words)

    def paths_of(self, words: Sequence[str]) -> list[str]:
        """Each word's path. One that is not known is looked for in lower case, and where it is in capitals with one
        capital, too; where that is not known either its path is empty."""
        found = dict.fromkeys(words, "")
        for word in found:
            for spelling in _spellings(word):
                if (place := self.words.places([spelling])[0]) >= 0:
                    found[word] = self.paths[self.numbers[place]]
                    break
        return [found[word] for word in words]

    def same_as(self, other: Clusters) -> bool:
        """Whether all words have the same paths."""
        own, its = self.to_arrays(), other.to_arrays()
        return all(np.array_equal(own[name], its[name]) for name in own)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        text, start = joined(self.paths)
        return {**self.words.to_arrays(), "numbers": self.numbers, "paths": text, "paths_start": start}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Clusters:
        """ValueError where these are not what ``to_arrays`` gave."""
        words, numbers = SortedTexts.from_arrays(arrays), arrays["numbers"]
        paths = tuple(parted(arrays["paths"], arrays["paths_start"]))
        if numbers.dtype != np.uint16 or numbers.shape != (len(words),) or numbers.max(initial=0) >= max(len(paths), 1):
            raise ValueError("clusters whose numbers do not fit the words")
        return cls(words, numbers, paths)


def _spellings(word: str) -> list[str]:
    """How a word may stand in a table, the best first."""
    word = unicodedata.normalize("NFC", word)
    return [word, word.lower(), *([word.title()] if word.isupper() and len(word) > 1 else [])]


def is_installed() -> bool:
    """Whether the package of ``packaged`` is there."""
    return find_spec(PACKAGE) is not None


def packaged(language: str) -> Clusters:
    """Those of spacy-lookups-data, made by Brown's algorithm on large amounts of text: en, de or es.

    Its number of a cluster has the path's first bit lowest; 0 is a word without a cluster. All paths are filled up with
    0 to one length, so that their prefixes of 4, 6 and 10 bits are there.
    """
    extras.need("clusters", only=(PACKAGE,))
    spec = find_spec(PACKAGE)
    folder = next(iter(spec.submodule_search_locations or ()), "") if spec else ""
    path = Path(folder) / "data" / f"{language}_lexeme_cluster.json.gz"
    try:
        with gzip.open(path, "rt", encoding="utf-8") as stream:
            numbers: dict[str, int] = json.load(stream)
    except (OSError, EOFError, ValueError) as error:
        raise DataError(str(path), f"cannot be read ({error}); install the package {PACKAGE} anew") from None
    width = max(number.bit_length() for number in numbers.values())
    paths = {number: f"{number:0{width}b}"[::-1] for number in {*numbers.values()}}
    return Clusters.of({word: paths[n] for word, n in numbers.items() if n and not any(map(str.isspace, word))})


def read_clusters(path: str | os.PathLike[str]) -> Clusters:
    """From a file, plain, .gz or .xz: a line ``bits TAB word`` for each word; what follows (a count) is not read."""
    table: dict[str, str] = {}
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        bits, _, word = line.partition("\t")
        word = unicodedata.normalize("NFC", word.partition("\t")[0])
        if not _is_path(bits) or not word:
            raise DataError(f"{path}:{number}", f"'{quoted(line)}' is not a path of 0 and 1, a TAB and a word")
        if table.setdefault(word, bits) != bits:
            raise DataError(f"{path}:{number}", f"'{quoted(word)}' is there twice, with different paths; keep one")
    if not table:
        raise DataError(str(path), "holds no word; expected lines such as 0110 TAB word")
    if len({*table.values()}) > 2**16:
        raise DataError(str(path), f"has more than {2**16:,} different paths; use fewer clusters")
    return Clusters.of(table)
