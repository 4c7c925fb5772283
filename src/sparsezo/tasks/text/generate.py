"""Documents with RCV1's shape (the paper's appendix): Zipf vocabulary, about 75 words a document, 4 skewed classes.

A document draws a class by RCV1-like priors, a length, and its tokens: most from a background law over the whole
vocabulary (Zipf-Mandelbrot), the others from topic words, mostly of its own class, and some repeat another token of
the document. Some labels are then replaced by others. Values are (1 + ln tf) * idf with the law's own idf, scaled to
length 1.

Documents come in blocks of ``BLOCK``; a block is a pure function of (seed, settings, its number), so a longer
collection begins with the shorter one's whole blocks. Words and topics are the same for every seed: two seeds make a
train and a test set.

    some = generate_text(500_000, seed=1)
    some.vectors.indptr, some.vectors.indices, some.vectors.values, some.labels    # labels number some.classes
    write_svmlight("rcv1-like.dat", some.vectors, some.names())
    for label, text in generate_texts(100, seed=1): ...
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import UsageError
from sparsezo.tasks.text.documents import Documents
from sparsezo.tasks.text.svmlight import Vectors, write_svmlight

__all__ = ["BLOCK", "CLASSES", "PRIORS", "GeneratedText", "generate_text", "generate_texts", "write_svmlight"]

BLOCK = 4096
CLASSES = ("CCAT", "GCAT", "MCAT", "ECAT")
PRIORS = (0.47, 0.26, 0.20, 0.07)
_TOPIC = 0.35  # mean share of topic tokens; a document's own share is Beta with that mean
_STRAY = 0.2  # share of topic tokens that belong to a class drawn at random
_REPEAT = 0.3  # share of tokens that repeat one of the same document
_TOKENS_A_WORD = 1.40  # tokens for each distinct word, at the default settings
_LANGUAGE = 20  # seeds the words: one language for all seeds, so that two of them make a train and a test set
_CONSONANTS, _VOWELS = "bdfghjklmnprstvz", "aeiou"


@dataclass(frozen=True, eq=False)
class GeneratedText:
    """Documents as vectors; ``classes[labels[i]]`` is the label of document i, noise included."""

    vectors: Vectors
    labels: NDArray[np.int8]
    classes: tuple[str, ...]

    def names(self) -> list[str]:
        """Each document's label as a string."""
        return [self.classes[label] for label in self.labels]

    def documents(self) -> Documents:
        """As if they had been read from a file."""
        n = len(self.labels)
        lines = np.arange(1, n + 1)
        return Documents(("generated",), np.zeros(n, np.int32), lines, self.names(), vectors=self.vectors)


@dataclass(frozen=True, eq=False)
class _Law:
    """What all blocks share. Words are numbered by rank in ``background``."""

    seed: int
    tokens: float  # mean tokens of a document
    label_noise: float
    priors: NDArray[np.float64]
    background: NDArray[np.float64]  # distribution function over ranks
    topics: NDArray[np.int32]  # classes x topic words: their ranks
    topic_law: NDArray[np.float64]  # distribution function over a class's topic words
    idf: NDArray[np.float32]  # by rank
    number_of: NDArray[np.int32]  # by rank, from 0; its index in a file is one more


def generate_text(
    n_documents: int,
    seed: int,
    *,
    vocabulary: int = 228_000,
    words: float = 75,
    priors: Sequence[float] = PRIORS,
    label_noise: float = 0.03,
) -> GeneratedText:
    """Documents of about ``words`` distinct words; the classes are as many as ``priors`` (named as RCV1's if four)."""
    law = _law(seed, vocabulary, words, priors, label_noise)
    if n_documents < 1:
        raise UsageError(f"{n_documents} documents; ask for at least 1")
    room = int(n_documents * words * 1.1) + 100_000
    indices, values = np.empty(room, np.int32), np.empty(room, np.float32)
    sizes = np.empty(n_documents, np.int64)
    labels = np.empty(n_documents, np.int8)
    filled = 0
    for start in range(0, n_documents, BLOCK):
        stop = min(start + BLOCK, n_documents)
        some_labels, lengths, tokens = _draw_block(law, start // BLOCK)
        some_sizes, some_indices, some_values = _vectors_of(law, lengths, tokens)
        some_sizes = some_sizes[: stop - start]
        size = int(some_sizes.sum())
        if filled + size > len(indices):  # growing in place keeps the peak at one copy
            more = max(size, len(indices) // 8)
            indices.resize(len(indices) + more, refcheck=False)
            values.resize(len(values) + more, refcheck=False)
        indices[filled : filled + size] = some_indices[:size]
        values[filled : filled + size] = some_values[:size]
        sizes[start:stop] = some_sizes
        labels[start:stop] = some_labels[: stop - start]
        filled += size
    indices.resize(filled, refcheck=False)
    values.resize(filled, refcheck=False)
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    return GeneratedText(Vectors(indptr, indices, values), labels, _names(len(law.priors)))


def generate_texts(
    n_documents: int,
    seed: int,
    *,
    vocabulary: int = 8_000,
    words: float = 60,
    priors: Sequence[float] = PRIORS,
    label_noise: float = 0.03,
) -> Iterator[tuple[str, str]]:
    """(label, text) pairs of the same law, in made-up words; frequent words are short, as in any language."""
    law = _law(seed, vocabulary, words, priors, label_noise)
    names = _names(len(law.priors))
    spelled = [spell(rank) for rank in range(vocabulary)]
    for start in range(0, n_documents, BLOCK):
        labels, lengths, tokens = _draw_block(law, start // BLOCK)
        ends = np.cumsum(lengths)
        for i in range(min(BLOCK, n_documents - start)):
            yield names[labels[i]], " ".join(spelled[rank] for rank in tokens[ends[i] - lengths[i] : ends[i]])


def _names(classes: int) -> tuple[str, ...]:
    return CLASSES if classes == len(CLASSES) else tuple(f"C{k + 1}" for k in range(classes))


def spell(rank: int) -> str:
    """Syllables of two letters, at least one, in the order of length."""
    syllables, word = len(_CONSONANTS) * len(_VOWELS), ""
    rank += 1
    while rank:
        rank, syllable = divmod(rank - 1, syllables)
        word += _CONSONANTS[syllable // len(_VOWELS)] + _VOWELS[syllable % len(_VOWELS)]
    return word


def _law(seed: int, vocabulary: int, words: float, priors: Sequence[float], label_noise: float) -> _Law:
    weights = np.asarray(priors, np.float64)
    if not 2 <= len(weights) <= 100 or not np.isfinite(weights).all() or (weights <= 0).any():
        raise UsageError(f"priors {tuple(priors)}; give 2 to 100 positive numbers, one a class")
    if not 0 <= label_noise < 1:
        raise UsageError(f"label_noise is {label_noise}; it must be in [0, 1)")
    if vocabulary < 100 * len(weights):
        raise UsageError(
            f"a vocabulary of {vocabulary} words; {len(weights)} classes need at least {100 * len(weights)}"
        )
    if not 5 <= words <= vocabulary / 10:
        raise UsageError(f"{words} words a document; it must be between 5 and a tenth of the vocabulary")
    if seed < 0:
        raise UsageError(f"seed is {seed}; it must not be negative")
    weights /= weights.sum()
    rng = np.random.default_rng(_LANGUAGE)
    ranks = np.arange(vocabulary)
    chance = 1 / (ranks + 2.7) ** 1.05  # Zipf-Mandelbrot
    chance /= chance.sum()
    # Topic words: of middle frequency first, so that a class shows in many documents but in no single word.
    size = vocabulary // 20 // len(weights)
    pool = rng.permutation(np.arange(vocabulary // 2000, vocabulary // 2000 + 2 * size * len(weights)))
    topics = np.sort(pool[: size * len(weights)].reshape(len(weights), size), axis=1)
    topic_chance = 1 / (np.arange(size) + 20.0)
    topic_chance /= topic_chance.sum()
    overall = (1 - _TOPIC) * chance
    for k, share in enumerate((1 - _STRAY) * weights + _STRAY / len(weights)):
        overall[topics[k]] += _TOPIC * share * topic_chance
    tokens = words * _TOKENS_A_WORD
    fresh = (1 - _REPEAT) * tokens
    idf = 1 - np.log(-np.expm1(fresh * np.log1p(-overall)))  # 1 - ln P(a document has the word)
    return _Law(
        seed=seed,
        tokens=tokens,
        label_noise=label_noise,
        priors=weights,
        background=np.cumsum(chance),
        topics=topics.astype(np.int32),
        topic_law=np.cumsum(topic_chance),
        idf=idf.astype(np.float32),
        number_of=rng.permutation(vocabulary).astype(np.int32),
    )


def _draw_block(law: _Law, block: int) -> tuple[NDArray[np.int8], NDArray[np.int64], NDArray[np.int32]]:
    """Labels and lengths of ``BLOCK`` documents, and all their tokens (ranks) one after the other."""
    rng = np.random.default_rng([law.seed, 1, block])
    classes = len(law.priors)
    true = rng.choice(classes, size=BLOCK, p=law.priors)
    spread = 0.5  # lengths are log-normal
    lengths = np.exp(rng.normal(np.log(law.tokens) - spread**2 / 2, spread, BLOCK)).astype(np.int64) + 1
    shares = rng.beta(3, 3 / _TOPIC - 3, BLOCK)
    document = np.repeat(np.arange(BLOCK), lengths)
    total = len(document)
    tokens = _sample(law.background, rng.random(total))
    topical = np.flatnonzero(rng.random(total) < shares[document])
    topic = true[document[topical]]
    stray = rng.random(len(topical)) < _STRAY
    topic[stray] = rng.integers(classes, size=int(stray.sum()))
    tokens[topical] = law.topics[topic, _sample(law.topic_law, rng.random(len(topical)))]
    again = np.flatnonzero(rng.random(total) < _REPEAT)
    start = (np.cumsum(lengths) - lengths)[document[again]]
    tokens[again] = tokens[start + (rng.random(len(again)) * lengths[document[again]]).astype(np.int64)]
    wrong = rng.random(BLOCK) < law.label_noise
    labels = np.where(wrong, (true + rng.integers(1, classes, BLOCK)) % classes, true)
    return labels.astype(np.int8), lengths, tokens


def _sample(law: NDArray[np.float64], uniform: NDArray[np.float64]) -> NDArray[np.int32]:
    """Inverse distribution function."""
    return np.minimum(np.searchsorted(law, uniform, side="right"), len(law) - 1).astype(np.int32)


def _vectors_of(
    law: _Law, lengths: NDArray[np.int64], tokens: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
    """Sizes, indices and values of the documents' vectors."""
    document = np.repeat(np.arange(len(lengths)), lengths)
    vocabulary = len(law.number_of)
    keys = np.sort(document * vocabulary + law.number_of[tokens])
    first = np.flatnonzero(np.diff(keys, prepend=-1))
    count = np.diff(first, append=len(keys))
    document, column = np.divmod(keys[first], vocabulary)
    idf = np.empty_like(law.idf)
    idf[law.number_of] = law.idf
    value = (1 + np.log(count.astype(np.float32))) * idf[column]
    length = np.sqrt(np.bincount(document, weights=value * value, minlength=len(lengths))).astype(np.float32)
    return np.bincount(document, minlength=len(lengths)), (column + 1).astype(np.int32), value / length[document]
