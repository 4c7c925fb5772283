"""Chunk F1 as conlleval counts it: the measure of the paper's chunking task (Sec. 5). Of plain tags, accuracy.

A predicted chunk is correct when gold has one with the same first token, last token and type. Chunks never
cross a sentence; an I- after O or after another type starts one, whatever the scheme says (tags.py).

    scores = score_chunks(gold.tags, predicted, gold.offsets)
    scores.f1, scores.precision, scores.recall, scores.accuracy
    scores.per_type["NP"].f1
    score_tags(gold.tags, predicted).accuracy
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import UsageError
from sparsezo.tasks.base import Json
from sparsezo.tasks.chunking.tags import chunks_of


@dataclass(frozen=True)
class ChunkCounts:
    """Counts of chunks, and the ratios made of them; a ratio to nothing is 0, as in conlleval."""

    correct: int
    predicted: int
    gold: int

    @property
    def precision(self) -> float:
        return self.correct / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        return self.correct / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        return 2 * self.correct / (self.predicted + self.gold) if self.correct else 0.0

    def as_dict(self) -> Json:
        return {"f1": self.f1, "precision": self.precision, "recall": self.recall, "gold": self.gold}


@dataclass(frozen=True)
class ChunkScores(ChunkCounts):
    """All types together, each type for itself, and how many tokens have the right tag."""

    correct_tokens: int
    tokens: int
    per_type: Mapping[str, ChunkCounts] = field(hash=False)

    @property
    def accuracy(self) -> float:
        return self.correct_tokens / self.tokens if self.tokens else 0.0


def chunks(tags: Sequence[str], offsets: NDArray[np.int64]) -> list[tuple[int, int, str]]:
    """(first token, last token + 1, type) of each chunk, in order."""
    arrays = chunks_of(tags, offsets)
    firsts = np.flatnonzero(arrays.starts)
    types = [arrays.types[t] for t in arrays.type_of[firsts].tolist()]
    return list(zip(firsts.tolist(), (np.flatnonzero(arrays.ends) + 1).tolist(), types, strict=True))


def score_chunks(gold: Sequence[str], predicted: Sequence[str], offsets: NDArray[np.int64]) -> ChunkScores:
    """Compare predicted tags with gold tags; sentence s is tags ``offsets[s]:offsets[s + 1]`` of both."""
    if not len(gold) == len(predicted) == offsets[-1]:
        raise UsageError(
            f"{len(gold)} gold tags, {len(predicted)} predicted tags, {offsets[-1]} tokens; give one of each a token"
        )
    wanted, guessed = chunks(gold, offsets), chunks(predicted, offsets)
    both = set(wanted).intersection(guessed)
    correct, said, right = (Counter(kind for _, _, kind in found) for found in (both, guessed, wanted))
    return _scores(correct, said, right, gold, predicted)


def counts_by_sentence(gold: Sequence[str], predicted: Sequence[str], offsets: NDArray[np.int64]) -> NDArray[np.int32]:
    """Correct, predicted and gold chunks of each sentence: [sentences, 3]."""
    wanted, guessed = chunks(gold, offsets), chunks(predicted, offsets)
    counts = np.zeros((offsets.size - 1, 3), np.int32)
    for column, found in enumerate((set(wanted).intersection(guessed), guessed, wanted)):
        firsts = np.array([first for first, _, _ in found], np.int64)
        np.add.at(counts[:, column], np.searchsorted(offsets, firsts, side="right") - 1, 1)
    return counts


def tokens_by_sentence(gold: Sequence[str], predicted: Sequence[str], offsets: NDArray[np.int64]) -> NDArray[np.int32]:
    """Tokens with the right tag, and all of them, of each sentence: [sentences, 2]."""
    right = np.concatenate(([0], np.cumsum(np.array(list(map(str.__eq__, gold, predicted)), np.int64))))
    return np.stack((np.diff(right[offsets]), np.diff(offsets)), axis=1).astype(np.int32)


def score_tags(gold: Sequence[str], predicted: Sequence[str]) -> ChunkScores:
    """Compare tags that are no chunks: each token counts for itself, and as one of its tag's."""
    correct = Counter(a for a, b in zip(gold, predicted, strict=True) if a == b)
    return _scores(correct, Counter(predicted), Counter(gold), gold, predicted)


def _scores(
    correct: Counter[str], guessed: Counter[str], wanted: Counter[str], gold: Sequence[str], predicted: Sequence[str]
) -> ChunkScores:
    return ChunkScores(
        correct=correct.total(),
        predicted=guessed.total(),
        gold=wanted.total(),
        correct_tokens=sum(map(str.__eq__, gold, predicted)),
        tokens=len(gold),
        per_type={
            kind: ChunkCounts(correct[kind], guessed[kind], wanted[kind]) for kind in sorted({*guessed, *wanted})
        },
    )
