"""From f_mu to f: benchmarks/margins.py against enumeration and simulation, and the bound by a margin condition.

Seeds are fixed. A simulated mean may be off by 4.5 of its standard errors.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from margins import margins, smoothed, tail_of
from scipy.stats import chi, norm

from sparsezo.errors import UsageError
from sparsezo.kernels.inputs.dense import dense_inputs
from sparsezo.learner import Learner
from sparsezo.settings import Settings
from sparsezo.study.theory import moment, smoothing_gap, smoothing_ratio
from sparsezo.tasks.base import Problem
from sparsezo.tasks.chunking.io.conll import Corpus
from sparsezo.tasks.chunking.synthetic import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.rerank.kernels.task import RankGold, rank_task
from sparsezo.tasks.text.synthetic import generate_text
from sparsezo.tasks.text.task import TextClassification


@pytest.fixture(scope="module")
def text():
    task, data = TextClassification.fit(generate_text(40, seed=1, vocabulary=500, words=20).documents())
    problem, gold = task.problem(data), task.gold(data)
    return problem, gold, normals(problem, 1)


@pytest.fixture(scope="module")
def lists():
    """Candidates with few losses, some alike in features."""
    rng = np.random.default_rng(2)
    offsets, losses = np.arange(0, 121, 6), rng.choice([0.2, 0.5, 0.9], 120)
    features = rng.normal(size=(120, 9)).astype(np.float32)
    features[1::6] = features[::6]
    losses[6:12] = 0.5
    inputs = dense_inputs(features, offsets, True)
    N = len(offsets) - 1
    problem = Problem(
        inputs=inputs,
        task=rank_task(offsets),
        n_features=9,
        n_labels=1,
        output_start=np.arange(N + 1, dtype=np.int64),
        n_active=np.full(N, 9),
        max_rows=6,
        max_columns=9,
        dtype=np.float64,
        learn=True,
    )
    return problem, RankGold(offsets, losses, np.zeros((120, 10), np.int16)), normals(problem, 3)


@pytest.fixture(scope="module")
def chunks():
    """The first words of sentences, so few that all paths can be gone over; of some the first again and again."""
    task, corpus = Chunking.fit(chunking_corpus(12, seed=3))
    lengths, starts = np.arange(12) % 6 + 1, corpus.offsets[:-1]
    chosen = np.concatenate([np.arange(begin, begin + n) for begin, n in zip(starts, lengths, strict=True)])
    chosen = np.concatenate([chosen, np.repeat(starts, 6)])
    lengths = np.append(lengths, np.full(12, 6))
    columns = tuple([column[j] for j in chosen] for column in corpus.columns)
    corpus = Corpus("cut", columns, [corpus.tags[j] for j in chosen], np.append(0, np.cumsum(lengths)))
    problem, gold = task.problem(corpus), task.gold(corpus)
    return problem, gold, normals(problem, 4)


def normals(problem, seed):
    return np.random.default_rng(seed).normal(size=(problem.n_features, problem.n_labels)).astype(problem.dtype)


# The margin of an input


def test_of_a_document_it_is_the_distance_to_another_loss(text):
    problem, gold, W = text
    inputs, found, right = problem.inputs, margins(*text), set()
    for x, label in enumerate(gold.labels):
        place = slice(inputs.indptr[x], inputs.indptr[x + 1])
        v = np.zeros(problem.n_features)
        v[inputs.columns[place]] = inputs.values[place]
        s = v @ W
        best = s.argmax()
        rivals = [k for k in range(len(s)) if (k == label) != (best == label)]
        ratios = [(s[best] - s[k]) / (math.sqrt(2) * np.linalg.norm(v)) for k in rivals]
        assert found[x] == pytest.approx(min(ratios), rel=1e-5)
        right.add(bool(best == label))
    assert right == {True, False}


def test_of_a_list_too_and_there_may_be_none(lists):
    problem, gold, W = lists
    found, C = margins(*lists), problem.inputs.features.astype(float)
    for x in range(len(problem)):
        rows = range(6 * x, 6 * x + 6)
        best = max(rows, key=lambda j: C[j] @ W[:, 0])
        ratios = [
            (C[best] - C[j]) @ W[:, 0] / np.linalg.norm(C[best] - C[j])
            for j in rows
            if gold.losses[j] != gold.losses[best] and (C[j] != C[best]).any()
        ]
        assert found[x] == pytest.approx(min(ratios, default=math.inf), rel=1e-6)
    assert np.isinf(found).tolist() == [x == 1 for x in range(len(problem))]


def test_of_a_sentence_it_is_the_least_over_all_paths(chunks):
    """Of many weights: the nearest path may differ in one tag or in a run of them, whose tokens share features."""
    problem, gold, W = chunks
    inputs, task = problem.inputs, problem.task
    K = task.n_tags
    assert len(problem) == 24
    rng = np.random.default_rng(9)
    weights = [W, *(rng.normal(size=W.shape) * 0.1 + rng.normal(size=W.shape[1]) for _ in range(8))]
    found = np.array([margins(problem, gold, each) for each in weights])
    for x in range(len(problem)):
        rows = range(inputs.row_start[x], inputs.row_start[x + 1])
        C = np.zeros((len(rows), problem.n_features))
        for i, row in enumerate(rows):
            C[i, inputs.columns[inputs.row_ptr[row] : inputs.row_ptr[row + 1]]] = 1
        seen = C.any(0)

        def features(path, C=C[:, seen]):
            pairs = np.array([task.start, *path[:-1]]) * K + np.array(path)
            return (C.T @ np.eye(K * K)[pairs]).ravel()

        every = np.array([features(path) for path in itertools.product(range(K), repeat=len(rows))])
        for each, margin in zip(weights, found[:, x], strict=True):
            s = every @ each[seen].ravel().astype(float)
            best = s.argmax()
            others = np.arange(len(s)) != best
            ratios = (s[best] - s[others]) / np.linalg.norm(every[others] - every[best], axis=1)
            assert margin == pytest.approx(ratios.min(), rel=1e-6)


@pytest.mark.parametrize("task", ["text", "lists", "chunks"])
def test_no_shorter_change_of_weights_changes_a_loss(task, request):
    """And so |f_mu - f| <= Pr(the loss changes) <= E_x Pr(mu ||P u|| >= margin(x)), whatever mu is."""
    problem, gold, W = request.getfixturevalue(task)
    learner = Learner(problem, Settings(h=0.1, mu=0.1))
    learner.state.W[:] = W
    found, length = margins(problem, gold, W), np.linalg.norm(W.astype(float))
    ratios = [1e-6, 0.03, 0.1, 0.3, 1.0]
    for each in smoothed(learner, gold, ratios, draws=60):
        bound = chi.sf(found / (each.ratio * length), problem.n_score).mean()
        assert abs(each.gap) <= each.change + 1e-12
        assert each.change <= bound + 3 * math.sqrt(bound / (60 * len(problem))) + 1e-12
        if each.ratio == 1e-6:
            assert each.change == 0
        if each.ratio == 1:
            assert each.change > 0.2


def test_the_smoothed_loss_is_the_mean_over_perturbed_weights(text):
    """The literal mean over u of all weights."""
    problem, gold, W = text
    learner = Learner(problem, Settings(h=0.1, mu=0.1))
    learner.state.W[:] = W
    (one,) = smoothed(learner, gold, [0.01], draws=300)
    X = np.zeros((len(problem), problem.n_features))
    for x in range(len(problem)):
        place = slice(problem.inputs.indptr[x], problem.inputs.indptr[x + 1])
        X[x, problem.inputs.columns[place]] = problem.inputs.values[place]
    mu, rng = 0.01 * np.linalg.norm(W.astype(float)), np.random.default_rng(5)
    wrong = (X @ W).argmax(1) != gold.labels
    again = np.array([(X @ (W + mu * rng.normal(size=W.shape))).argmax(1) != gold.labels for _ in range(3000)])
    gaps, changes = (again * 1.0 - wrong).mean(1), (again != wrong).mean(1)
    assert abs(one.gap - gaps.mean()) <= 4.5 * math.hypot(one.error, gaps.std() / math.sqrt(len(gaps)))
    assert abs(one.change - changes.mean()) <= 4.5 * changes.std() * math.sqrt(1 / 300 + 1 / 3000)
    assert one.change > 0.03


def test_what_has_no_margins_is_said():
    corpus = chunking_corpus(3, seed=0)
    task, corpus = Chunking.fit(corpus, order=1)
    problem = task.problem(corpus)
    with pytest.raises(UsageError, match="chunking of order 2"):
        margins(problem, task.gold(corpus), normals(problem, 0))


# C and a


@pytest.mark.parametrize("a", [0.5, 1.0, 2.5])
def test_the_estimates_find_the_truth(a):
    """Margins with Pr(margin <= t) = (C t)^a up to 1 / C."""
    drawn = np.random.default_rng(6).random(40_000) ** (1 / a) / 7.0
    tail = tail_of(drawn, share=0.05)
    assert tail.used == 2000
    assert tail.error == pytest.approx(a / math.sqrt(2000), rel=0.1)
    assert abs(tail.a - a) <= 4.5 * tail.error
    assert 1 / drawn.max() <= tail.C
    for t in np.quantile(drawn, [0.0001, 0.01, 0.5, 1]):
        assert (drawn <= t).mean() <= (tail.C * t) ** tail.a * (1 + 1e-9)
    slack = (tail.C * np.sort(drawn)) ** tail.a / (np.arange(1, drawn.size + 1) / drawn.size)
    assert slack.min() == pytest.approx(1)  # no smaller C would do


def test_estimates_need_margins():
    for bad in ([1.0] * 100, [0.0, *np.arange(1, 100)], [1.0, 2.0], [np.inf] * 50):
        with pytest.raises(UsageError, match="give more margins"):
            tail_of(np.array(bad), 0.01)


# The bound of |f_mu - f|


def test_the_bound_is_a_moment_of_the_perturbations_length():
    for a, r in [(0.5, 3), (1.0, 1), (2.0, 40)]:
        assert smoothing_gap(0.01, 2.0, a, r) == pytest.approx((0.01 * 2.0) ** a * moment(a, r))
        assert smoothing_gap(0.01, 2.0, a, r) <= (0.01 * 2.0 * math.sqrt(r)) ** a * (1 + 1e-12)  # Jensen
    assert smoothing_gap(0.01, 2.0, 4.0, 3) > (0.01 * 2.0 * math.sqrt(3)) ** 4  # not above a = 2
    assert smoothing_gap(1e9, 1.0, 3.0, 10.0) == 1
    for a in (0.7, 3.0):
        assert smoothing_gap(smoothing_ratio(0.1, 5.0, a, 9.0), 5.0, a, 9.0) == pytest.approx(0.1)
    with pytest.raises(UsageError, match="give less than 1"):
        smoothing_ratio(1.0, 1.0, 1.0, 1.0)


@pytest.mark.parametrize("a", [0.6, 1.7])
def test_it_is_attained_where_every_way_out_is_as_short(a):
    """A loss that changes at distance margin(x) in every direction, margins of the law (C t)^a: the bound is met."""
    rng, C, r, ratio = np.random.default_rng(7), 3.0, 5, 0.02
    margin, u = rng.random(200_000) ** (1 / a) / C, rng.normal(size=(200_000, r))
    changed = (ratio * np.linalg.norm(u, axis=1) >= margin).astype(float)
    mean, error = changed.mean(), changed.std() / math.sqrt(changed.size)
    assert abs(mean - smoothing_gap(ratio, C, a, r)) <= 4.5 * error


def test_a_half_space_shows_what_the_dimension_costs():
    """Its change is one normal variable's, whatever r is: the bound is r^(a/2) times too large."""
    margin, ratio = np.random.default_rng(8).random(1_000_000) / 3.0, 0.002
    change = norm.sf(margin / ratio).mean()
    assert change == pytest.approx(3.0 * ratio / math.sqrt(2 * math.pi), rel=0.05)
    assert smoothing_gap(ratio, 3.0, 1.0, 400) / change == pytest.approx(20 * math.sqrt(2 * math.pi), rel=0.1)
