"""Clusters of words, learned from raw text: words with the same neighbours go together.

How often each other word stands one and two places left and right of a word, as positive pointwise mutual information
(with the counts of neighbours to the power of 0.75: Levy, Goldberg and Dagan 2015), is cut down to 60 dimensions by a
singular value decomposition, each word's vector to length 1, and k-means makes 1,000 clusters of them. Ward's method
joins their centres two by two; that tree gives the paths, so that learned clusters have the same form as Brown's.

    clusters = learned(corpus)              # 12 seconds for 260,000 words of Spanish news
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsezo import extras
from sparsezo.errors import DataError
from sparsezo.progress import Count, counting
from sparsezo.tasks.chunking.clusters import Clusters
from sparsezo.tasks.chunking.conll import Corpus

LEAST = 5  # times that a word must be there: what is known of a rarer one misleads more than it helps
_PLACES = (-2, -1, 1, 2)
_WORDS, _NEIGHBOURS = 50_000, 3000  # the most frequent ones
_DIMENSIONS, _CLUSTERS, _ROUNDS = 60, 1000, 25
_SMOOTHING = 0.75
_ROWS = 4096  # words whose distances are in memory at a time


def learned(corpus: Corpus, seed: int = 0) -> Clusters:
    """The clusters of the words that the corpus has LEAST times or more. The same for a seed, on one machine."""
    extras.need("clusters", only=("scipy",))
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


def _association(corpus: Corpus, words: list[str]) -> Any:
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


def _reduced(association: Any, dimensions: int, seed: int) -> NDArray[np.float64]:
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
    """Of each centre, its path in the tree of Ward's method."""
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
