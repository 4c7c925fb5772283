"""How sure a model is of its best output: against all outputs, written out; and data that is taken apart."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from sparsezo.learner import confidence, predict
from sparsezo.tasks.chunking.io.conll import Corpus
from sparsezo.tasks.chunking.synthetic import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.text.synthetic import generate_text
from sparsezo.tasks.text.task import TextClassification


def log_probability(score, everything):
    top = max(everything)
    return score - top - np.log(sum(np.exp(each - top) for each in everything))


@pytest.mark.parametrize("order", [1, 2])
def test_a_sentence_against_all_tag_sequences(order):
    long = chunking_corpus(1, seed=4)
    cut = Corpus("f", tuple(column[:12] for column in long.columns), long.tags[:12], np.array([0, 1, 6, 12]))
    task, corpus = Chunking.fit(cut, only="NP", order=order)
    W = np.random.default_rng(0).normal(0, 1, (task.n_features, task.n_labels)).astype(np.float32)
    problem = task.problem(corpus)
    found, best = confidence(problem, W), predict(problem, W)
    K, start = len(task.tags), len(task.tags) - 1
    for s in range(len(corpus)):
        P = potentials(task, corpus, W, s)
        R = len(P)

        def score(y, P=P):
            return sum(P[i][y[i - 1] if i else start][y[i]] for i in range(len(P)))

        scores = {y: score(y) for y in itertools.product(range(K), repeat=R)}
        mine = tuple(best[problem.output_start[s] : problem.output_start[s + 1]].tolist())
        assert mine == max(scores, key=scores.get)
        assert found[s] == pytest.approx(log_probability(scores[mine], list(scores.values())), abs=1e-4)


def potentials(task, corpus, W, s):
    """[token][tag before][tag], by weights looked up one by one."""
    K = len(task.tags)
    rows = task.index.rows(corpus)
    row_ptr = rows.row_ptr()
    made = []
    for i in range(int(corpus.offsets[s]), int(corpus.offsets[s + 1])):
        entries = slice(int(row_ptr[i]), int(row_ptr[i + 1]))
        values = rows.values[entries] if rows.values is not None else np.ones(entries.stop - entries.start)
        S = sum(v * W[c].astype(float) for c, v in zip(rows.columns[entries], values, strict=True))
        if task.order == 2:
            made.append(S.reshape(K, K))
        else:
            bigram = W[len(task.index) : len(task.index) + K].astype(float)
            made.append(S[None, :] + bigram)
    return made


def test_a_document_against_its_softmax():
    task, data = TextClassification.fit(generate_text(30, seed=1).documents())
    W = np.random.default_rng(0).normal(0, 3, (task.n_features, task.n_labels)).astype(np.float32)
    S = data.matrix @ W
    expected = [log_probability(max(row), row.tolist()) for row in S.astype(float)]
    np.testing.assert_allclose(confidence(task.problem(data), W), expected, atol=1e-4)
