"""What a metric is made of, input by input: its sums are the metric, of all inputs and of any choice of them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from sparsezo.tasks.chunking.metric import counts_by_sentence, score_chunks, tokens_by_sentence
from sparsezo.tasks.chunking.synthetic import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.metrics import METRICS
from sparsezo.tasks.rerank.metric import corpus_bleu_from_statistics, list_statistics

RNG = np.random.default_rng(7)


def test_counts_of_sentences_are_those_of_the_sentence_alone():
    offsets = np.array([0, 4, 5, 9, 12])
    tags = ("B-NP", "I-NP", "O", "B-VP")
    gold = [tags[k] for k in RNG.integers(0, 4, 12)]
    said = [tags[k] if RNG.random() < 0.5 else tag for tag, k in zip(gold, RNG.integers(0, 4, 12), strict=True)]
    counts, tokens = counts_by_sentence(gold, said, offsets), tokens_by_sentence(gold, said, offsets)
    for s, (begin, end) in enumerate(pairwise(offsets.tolist())):
        alone = score_chunks(gold[begin:end], said[begin:end], np.array([0, end - begin]))
        assert counts[s].tolist() == [alone.correct, alone.predicted, alone.gold]
        assert tokens[s].tolist() == [alone.correct_tokens, alone.tokens]
    assert counts.sum() > 0


def test_a_tasks_counts_are_its_metric():
    task, corpus = Chunking.fit(chunking_corpus(40, seed=3), only="NP")
    outputs = RNG.integers(0, 3, corpus.n_tokens).astype(np.int32)
    scores = task.scores(corpus, outputs)
    assert scores.counts.shape == (len(corpus), 3)
    assert METRICS[scores.metric](scores.counts.sum(axis=0)) == pytest.approx(scores.value)


def test_f1_and_accuracy_of_nothing_are_0():
    assert METRICS["f1"](np.zeros((2, 3))).tolist() == [0, 0]
    assert METRICS["accuracy"](np.zeros(2)) == 0
    assert METRICS["accuracy"](np.array([[3, 4], [1, 2]])).tolist() == [0.75, 0.5]


@pytest.mark.parametrize("words", [1, 3, 4, 9, 40])
def test_bleu_of_sums_is_sacrebleus(words):
    """Also where an order has no correct n-gram, or none at all."""
    vocabulary = [f"w{k}" for k in range(words)]
    for _ in range(20):
        sentences = [RNG.choice(vocabulary, RNG.integers(1, 12)).tolist() for _ in range(6)]
        others = [RNG.choice(vocabulary, RNG.integers(1, 12)).tolist() for _ in range(6)]
        rows = [list_statistics([" ".join(a)], [" ".join(b)])[0] for a, b in zip(sentences, others, strict=True)]
        for chosen in (slice(None), slice(0, 1), [1, 1, 4]):
            some = np.array(rows)[chosen]
            theirs = corpus_bleu_from_statistics(some)
            assert METRICS["bleu"](some.sum(axis=0)) == pytest.approx(theirs, abs=1e-9)
    assert METRICS["bleu"](np.zeros((3, 2, 10))).shape == (3, 2)
