"""Clusters of words: which words are used alike, as a bit string for each word.

The strings are paths in a binary tree, as in Brown et al., "Class-Based n-gram Models of Natural Language" (1992):
words whose paths begin alike are alike, so a prefix is a coarser cluster (Ratinov and Roth 2009 use 4, 6 and 10 bits
for names). They come from a package, from a file, or from the raw text itself (``learned``).

    clusters = packaged("es")               # 0.5 million words; the package is the extra `clusters`
    clusters = read_clusters("paths.gz")    # bits TAB word [TAB count], what Brown's own program writes
    clusters.paths_of(["Bogotá", "xyzzy"])  # ['0110010011000000', '']: empty where the word is not known
    clusters = learned(corpus)              # 12 seconds for 260,000 words of Spanish news

Learned: positive pointwise mutual information with the words up to two places away (Levy, Goldberg and Dagan 2015), cut
down to 60 dimensions; k-means makes 1,000 clusters, and Ward's method a tree of their centres, which gives the paths.
"""

from __future__ import annotations

import gzip
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import DataError, need, quoted
from sparsezo.messages import Count, counting
from sparsezo.storage.files import numbered_lines
from sparsezo.storage.texts import LONGEST, SortedTexts, joined, parted
from sparsezo.tasks.base import AnyArray, Arrays
from sparsezo.tasks.chunking.io.conll import AnyPath, Corpus

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

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

    def to_arrays(self) -> Arrays:
        text, start = joined(self.paths)
        return {**self.words.to_arrays(), "numbers": self.numbers, "paths": text, "paths_start": start}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, AnyArray]) -> Clusters:
        """ValueError where these are not what ``to_arrays`` gave."""
        words, numbers = SortedTexts.from_arrays(arrays), arrays["numbers"]
        paths = tuple(parted(arrays["paths"], arrays["paths_start"]))
        if numbers.dtype != np.uint16 or numbers.shape != (len(words),) or numbers.max(initial=0) >= max(len(paths), 1):
            raise ValueError("clusters whose numbers do not fit the words")
        return cls(words, numbers, paths)


def _spellings(word: str) -> list[str]:
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
    need("clusters")
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


def read_clusters(path: AnyPath) -> Clusters:
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


LEAST = 5  # times that a word must be there: what is known of a rarer one misleads more than it helps
_PLACES = (-2, -1, 1, 2)
_WORDS, _NEIGHBOURS = 50_000, 3000  # the most frequent ones
_DIMENSIONS, _CLUSTERS, _ROUNDS = 60, 1000, 25
_SMOOTHING = 0.75
_ROWS = 4096  # words whose distances are in memory at a time


def learned(corpus: Corpus, seed: int = 0) -> Clusters:
    """The clusters of the words that the corpus has LEAST times or more. The same for a seed, on one machine."""
    counts = Counter(corpus.columns[0])
    words = [word for word, n in counts.most_common(_WORDS) if n >= LEAST]
    if len(words) <= 2:
        raise DataError(
            corpus.path, f"`clusters` learned: too little text, hardly a word is there {LEAST} times; leave it out"
        )
    steps = _ROUNDS + 3
    with counting(f"clusters of {len(words):,} words", "steps") as count:
        association = _association(corpus, words)
        count(1, steps)
        vectors = _reduced(association, min(_DIMENSIONS, min(association.shape) - 1), seed)
        count(2, steps)
        of_word, centres = _k_means(vectors, min(_CLUSTERS, len(words)), count)
        paths = _tree_paths(centres)
        count(steps, steps)
    return Clusters.of({word: paths[k] for word, k in zip(words, of_word.tolist(), strict=True)})


def _association(corpus: Corpus, words: list[str]) -> csr_matrix:
    """(words, places x neighbours) sparse: positive pointwise mutual information."""
    from scipy import sparse

    text = corpus.columns[0]
    number = {word: k for k, word in enumerate(words)}
    ids = np.fromiter((number.get(word, -1) for word in text), np.int64, len(text))
    small = {word: word.lower() for word in dict.fromkeys(text)}
    usual = Counter(small[word] for word in text).most_common(_NEIGHBOURS)
    near = {word: k for k, (word, _) in enumerate(usual)}
    other, outside = len(near), len(near) + 1  # any other word; none, outside of the sentence
    neighbours = np.fromiter((near.get(small[word], other) for word in text), np.int64, len(text))
    sentence = np.repeat(np.arange(len(corpus)), np.diff(corpus.offsets))
    kept = np.flatnonzero(ids >= 0)
    blocks = []
    for step in _PLACES:
        at = kept + step
        inside = (at >= 0) & (at < len(text))
        at = np.where(inside, at, kept)
        seen = np.where(inside & (sentence[at] == sentence[kept]), neighbours[at], outside)
        ones = np.ones(len(kept))
        blocks.append(sparse.csr_matrix((ones, (ids[kept], seen)), shape=(len(words), outside + 1)))
    found = sparse.hstack(blocks).tocoo()
    of_word = np.bincount(found.row, found.data, len(words))
    of_neighbour = np.bincount(found.col, found.data, found.shape[1]) ** _SMOOTHING
    of_neighbour /= of_neighbour.sum()
    information = np.log(found.data / (of_word[found.row] * of_neighbour[found.col]))
    positive = information > 0
    entries = (information[positive], (found.row[positive], found.col[positive]))
    return sparse.csr_matrix(entries, shape=found.shape)


def _reduced(association: csr_matrix, dimensions: int, seed: int) -> NDArray[np.float64]:
    """A vector of length 1 for each word: the left singular vectors, times the square roots of their values."""
    from scipy.sparse.linalg import svds

    start = np.random.default_rng(seed).standard_normal(min(association.shape))
    left, values, _ = svds(association, k=dimensions, v0=start)
    vectors = left * np.sqrt(values)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    result: NDArray[np.float64] = vectors / np.maximum(lengths, 1e-12)
    return result


def _k_means(vectors: NDArray[np.float64], k: int, count: Count) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """(each vector's cluster, the centres). The most frequent words, which come first, are the centres at first."""
    from scipy import sparse

    centres = vectors[:k].copy()
    nearest = np.zeros(len(vectors), np.int64)
    for done in range(_ROUNDS):
        half = (centres**2).sum(axis=1) / 2
        for a in range(0, len(vectors), _ROWS):
            nearest[a : a + _ROWS] = (vectors[a : a + _ROWS] @ centres.T - half).argmax(axis=1)
        sizes = np.bincount(nearest, minlength=k)
        members = sparse.csr_matrix((np.ones(len(vectors)), (nearest, np.arange(len(vectors)))), (k, len(vectors)))
        means = (members @ vectors) / np.maximum(sizes, 1)[:, None]
        centres = np.where(sizes[:, None] > 0, means, centres)
        count(3 + done, _ROUNDS + 3)
    return nearest, centres


def _tree_paths(centres: NDArray[np.float64]) -> list[str]:
    from scipy.cluster.hierarchy import ward

    children = ward(centres)[:, :2].astype(np.int64).tolist()
    leaves = len(centres)
    paths = [""] * leaves
    todo = [(2 * leaves - 2, "")]
    while todo:
        node, path = todo.pop()
        if node < leaves:
            paths[node] = path
        else:
            todo += [(child, path + bit) for child, bit in zip(children[node - leaves], "01", strict=True)]
    return paths
