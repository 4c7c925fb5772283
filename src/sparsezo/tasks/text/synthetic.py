"""Documents with RCV1's shape (the paper's appendix): Zipf vocabulary, about 75 words a document, 4 skewed classes.

A document draws a class, a length, and its tokens: most from a background law over the whole vocabulary
(Zipf-Mandelbrot), the others from topic words, mostly of its own class, and some repeat another token of the document.
Some labels are then replaced by others. Values are (1 + ln tf) * idf with the law's own idf, scaled to length 1.
Documents come in blocks of ``BLOCK``, each a pure function of (seed, settings, its number). Words and topics are the
same for every seed: two seeds make a train and a test set.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, vstack

from sparsezo.errors import UsageError
from sparsezo.storage.files import share, write_packed
from sparsezo.tasks.spec import ExperimentFiles
from sparsezo.tasks.text.io.documents import Documents
from sparsezo.tasks.text.io.svmlight import write_svmlight

ENDING = ".tsv"
SIZE = 4000
FORMATS = ("tsv", "svmlight")
BLOCK = 4096
CLASSES = ("CCAT", "GCAT", "MCAT", "ECAT")
PRIORS = np.array([0.47, 0.26, 0.20, 0.07])
_PARTS = (4000, 1000, 2000)  # documents of an experiment's train, dev and test
_TOPIC = 0.35  # mean share of topic tokens; a document's own share is Beta with that mean
_STRAY = 0.2  # share of topic tokens that belong to a class drawn at random
_REPEAT = 0.3  # share of tokens that repeat one of the same document
_TOKENS_A_WORD = 1.40  # tokens for each distinct word, at the default settings
_LANGUAGE = 20  # seeds the words: one language for all seeds, so that two of them make a train and a test set
_CONSONANTS, _VOWELS = "bdfghjklmnprstvz", "aeiou"


@dataclass(frozen=True, eq=False)
class GeneratedText:
    """Documents as vectors; ``CLASSES[labels[i]]`` is the label of document i, noise included."""

    vectors: csr_array
    labels: NDArray[np.int8]

    def names(self) -> list[str]:
        return [CLASSES[label] for label in self.labels]

    def documents(self) -> Documents:
        n = len(self.labels)
        lines = np.arange(1, n + 1)
        return Documents(("generated",), np.zeros(n, np.int32), lines, self.names(), vectors=self.vectors)


@dataclass(frozen=True, eq=False)
class _Law:
    """What all blocks share. Words are numbered by rank in ``background``."""

    seed: int
    tokens: float  # mean tokens of a document
    label_noise: float
    background: NDArray[np.float64]  # distribution function over ranks
    topics: NDArray[np.int32]  # classes x topic words: their ranks
    topic_law: NDArray[np.float64]  # distribution function over a class's topic words
    idf: NDArray[np.float32]  # by rank
    number_of: NDArray[np.int32]  # by rank, from 0; its index in a file is one more


def generate_text(
    n_documents: int, seed: int, *, vocabulary: int = 228_000, words: float = 75, label_noise: float = 0.03
) -> GeneratedText:
    """Documents of about ``words`` distinct words, as vectors; the vocabulary has ten times as many, 400 at least."""
    law = _law(seed, vocabulary, words, label_noise)
    if n_documents < 1:
        raise UsageError(f"{n_documents} documents; ask for at least 1")
    blocks = [_block_of_vectors(law, k, n_documents - k * BLOCK) for k in range(-(-n_documents // BLOCK))]
    labels, vectors = zip(*blocks, strict=True)
    return GeneratedText(vstack(vectors), np.concatenate(labels))


def generate_texts(n_documents: int, seed: int) -> Iterator[tuple[str, str]]:
    """(label, text) pairs of the same law, in made-up words; frequent words are short, as in any language."""
    law = _law(seed, vocabulary=8_000, words=60, label_noise=0.03)
    spelled = [spell(rank) for rank in range(8_000)]
    for start in range(0, n_documents, BLOCK):
        labels, lengths, tokens = _draw_block(law, start // BLOCK)
        ends = np.cumsum(lengths)
        for i in range(min(BLOCK, n_documents - start)):
            yield CLASSES[labels[i]], " ".join(spelled[rank] for rank in tokens[ends[i] - lengths[i] : ends[i]])


def spell(rank: int) -> str:
    """Syllables of two letters, at least one, in the order of length."""
    syllables, word = len(_CONSONANTS) * len(_VOWELS), ""
    rank += 1
    while rank:
        rank, syllable = divmod(rank - 1, syllables)
        word += _CONSONANTS[syllable // len(_VOWELS)] + _VOWELS[syllable % len(_VOWELS)]
    return word


def _law(seed: int, vocabulary: int, words: float, label_noise: float) -> _Law:
    if seed < 0:
        raise UsageError(f"seed is {seed}; it must not be negative")
    rng = np.random.default_rng(_LANGUAGE)
    chance = 1 / (np.arange(vocabulary) + 2.7) ** 1.05  # Zipf-Mandelbrot
    chance /= chance.sum()
    # Topic words: of middle frequency first, so that a class shows in many documents but in no single word.
    size = vocabulary // 20 // len(CLASSES)
    pool = rng.permutation(np.arange(vocabulary // 2000, vocabulary // 2000 + 2 * size * len(CLASSES)))
    topics = np.sort(pool[: size * len(CLASSES)].reshape(len(CLASSES), size), axis=1)
    topic_chance = 1 / (np.arange(size) + 20.0)
    topic_chance /= topic_chance.sum()
    overall = (1 - _TOPIC) * chance
    for k, share_of_class in enumerate((1 - _STRAY) * PRIORS + _STRAY / len(CLASSES)):
        overall[topics[k]] += _TOPIC * share_of_class * topic_chance
    tokens = words * _TOKENS_A_WORD
    fresh = (1 - _REPEAT) * tokens
    idf = 1 - np.log(-np.expm1(fresh * np.log1p(-overall)))  # 1 - ln P(a document has the word)
    return _Law(
        seed=seed,
        tokens=tokens,
        label_noise=label_noise,
        background=np.cumsum(chance),
        topics=topics.astype(np.int32),
        topic_law=np.cumsum(topic_chance),
        idf=idf.astype(np.float32),
        number_of=rng.permutation(vocabulary).astype(np.int32),
    )


def _draw_block(law: _Law, block: int) -> tuple[NDArray[np.int8], NDArray[np.int64], NDArray[np.int32]]:
    """Labels and lengths of ``BLOCK`` documents, and all their tokens (ranks) one after the other."""
    rng = np.random.default_rng([law.seed, 1, block])
    true = rng.choice(len(CLASSES), size=BLOCK, p=PRIORS)
    spread = 0.5  # lengths are log-normal
    lengths = np.exp(rng.normal(np.log(law.tokens) - spread**2 / 2, spread, BLOCK)).astype(np.int64) + 1
    shares = rng.beta(3, 3 / _TOPIC - 3, BLOCK)
    document = np.repeat(np.arange(BLOCK), lengths)
    total = len(document)
    tokens = _sample(law.background, rng.random(total))
    topical = np.flatnonzero(rng.random(total) < shares[document])
    topic = true[document[topical]]
    stray = rng.random(len(topical)) < _STRAY
    topic[stray] = rng.integers(len(CLASSES), size=int(stray.sum()))
    tokens[topical] = law.topics[topic, _sample(law.topic_law, rng.random(len(topical)))]
    again = np.flatnonzero(rng.random(total) < _REPEAT)
    start = (np.cumsum(lengths) - lengths)[document[again]]
    tokens[again] = tokens[start + (rng.random(len(again)) * lengths[document[again]]).astype(np.int64)]
    wrong = rng.random(BLOCK) < law.label_noise
    labels = np.where(wrong, (true + rng.integers(1, len(CLASSES), BLOCK)) % len(CLASSES), true)
    return labels.astype(np.int8), lengths, tokens


def _sample(law: NDArray[np.float64], uniform: NDArray[np.float64]) -> NDArray[np.int32]:
    return np.minimum(np.searchsorted(law, uniform, side="right"), len(law) - 1).astype(np.int32)


def _block_of_vectors(law: _Law, block: int, most: int) -> tuple[NDArray[np.int8], csr_array]:
    """Labels and vectors of a block's documents, at most so many of them."""
    labels, lengths, tokens = _draw_block(law, block)
    document, index_of = np.repeat(np.arange(BLOCK, dtype=np.int32), lengths), law.number_of + 1
    ones = np.ones(len(tokens), np.float32)
    X = coo_array((ones, (document, index_of[tokens])), shape=(BLOCK, len(law.idf) + 1)).tocsr()
    X.sort_indices()
    idf = np.zeros(len(law.idf) + 1, np.float32)
    idf[index_of] = law.idf
    X.data = (1 + np.log(X.data)) * idf[X.indices]
    document = np.repeat(np.arange(BLOCK), np.diff(X.indptr))
    length = np.sqrt(np.bincount(document, weights=X.data * X.data, minlength=BLOCK)).astype(np.float32)
    X.data /= length[document]
    return labels[:most], X[:most]


# Files


def paths(target: Path, weights: Path) -> list[Path]:
    return [target]


def write(target: Path, weights: Path, n: int, seed: int, format: str | None) -> None:
    if format == "svmlight":
        some = generate_text(n, seed)
        write_svmlight(target, some.vectors, some.names())
    else:
        write_packed(target, (_tsv([pair]) for pair in generate_texts(n, seed)))


def write_source(source: ExperimentFiles) -> None:
    train, dev, test = _PARTS
    train += int(source.held_out or 0)
    documents = generate_texts(train + dev + test, seed=1)  # one seed: another would be another language
    share(source.train, list(itertools.islice(documents, train)), _tsv)
    for path, size in ((source.dev, dev), (source.test, test)):
        some = list(itertools.islice(documents, size))
        if path and path != source.held_out:
            write_packed(Path(path), [_tsv(some)])


def _tsv(pairs: Iterable[tuple[str, str]]) -> str:
    return "".join(f"{label}\t{text}\n" for label, text in pairs)
