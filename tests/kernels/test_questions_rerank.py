"""What an answer says of two translations, by Bradley and Terry: likelihoods, gradients, truths, choices."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import twins
from literal import rank_gold
from question_calls import KEY, checked, evidence, look, options, output, truth

from sparsezo.kernels import codes
from sparsezo.tasks.rerank.kernels import questions
from sparsezo.tasks.rerank.kernels.task import rank_task

assert questions  # it says how reranking is asked about

Q = np.zeros(4, np.int32)
R = 9


def made(seed=0, size=1.0):
    task = rank_task(np.array([0, R]))
    return task, np.random.default_rng(seed).normal(0, size, (R, 1))


def sigma(d):
    return 1 / (1 + np.exp(-d))


@pytest.mark.parametrize("e", [0.0, 0.1, 0.4])
def test_which_is_better(e):
    """A rater who errs gives one of the other two answers, as one who names a label does."""
    task, S = made()
    for one, two in [(0, 1), (8, 3)]:

        def first(S, one=one, two=two):
            return (1 - 1.5 * e) * sigma(S[one, 0] - S[two, 0]) + e / 2

        def second(S, one=one, two=two):
            return (1 - 1.5 * e) * sigma(S[two, 0] - S[one, 0]) + e / 2

        found = [
            checked(task, S, codes.PAIR, Q, one, two, codes.FIRST, e, e, first),
            checked(task, S, codes.PAIR, Q, one, two, codes.SECOND, e, e, second),
        ]
        assert sum(p for p, _ in found) == pytest.approx(1 - e / 2)  # the rest: a tie, said in error
        assert sum(p * D for p, D in found) == pytest.approx(np.zeros((R, 1)), abs=1e-9)
        checked(task, S, codes.PAIR, Q, one, two, codes.TIE, e, e, lambda S: np.sqrt(first(S) * second(S)))
    assert options(task, 0, codes.PAIR, 0) == 3


def test_far_apart_and_not_finite():
    task, S = made()
    S[0], S[1], D = 900.0, -900.0, np.zeros((R, 1))
    evidence(task, 0, S, codes.PAIR, 0, Q, output(0), output(1), codes.SECOND, 0.0, 0.0, D)
    assert np.isfinite(D).all()
    S[1] = np.nan
    assert np.isnan(evidence(task, 0, S, codes.PAIR, 0, Q, output(0), output(1), codes.SECOND, 0.0, 0.0, D))


def test_truth():
    losses = np.array([0.5, 0.2, 0.5])
    gold, task = rank_gold(np.array([0, 3]), losses), rank_task(np.array([0, 3]))

    def said(one, two):
        return truth(gold, task, 0, codes.PAIR, 0, Q, output(one), output(two))

    assert [said(1, 0), said(0, 1), said(0, 2)] == [codes.FIRST, codes.SECOND, codes.TIE]


@pytest.mark.parametrize("mode", [codes.UNSURE, codes.AT_RANDOM, codes.AT_ONCE])
def test_the_best_against_one_drawn_flatly(mode):
    task, S = made(1, 3.0)
    p = np.full(R, 1 / R) if mode == codes.AT_RANDOM else twins.softmax(0.3 * S[:, 0])
    n, counts, y, other = 20_000, np.zeros(R), output(0), output(0)
    for step in range(n):
        chance = look(task, 0, S, codes.PAIR, 0, mode, KEY, step, Q.copy(), y, other)
        assert chance == pytest.approx(p[other[0]], rel=1e-9)
        counts[other[0]] += 1
    assert y[0] == S[:, 0].argmax()
    assert (np.abs(counts / n - p) < 5 * np.sqrt(p / n)).all()


# The best of some


def some(*places):
    return np.array([*places, *[0] * (codes.CANDIDATES - len(places))], np.int32)


@pytest.mark.parametrize("e", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("shown", [[4, 0, 7, 2, 8], [1, 0], [2, 1, 0]])
def test_which_is_the_best(e, shown):
    n = len(shown)
    size = R if n == codes.CANDIDATES else n
    task = rank_task(np.array([0, size]))
    S = np.random.default_rng(n).normal(0, 1, (size, 1))

    def chance(S, k):
        return e / (n - 1) + (1 - e * n / (n - 1)) * twins.softmax(S[shown, 0])[k]

    total, mean = 0.0, np.zeros((size, 1))
    for k in range(n):
        D = np.full((size, 1), np.nan)
        got = evidence(task, 0, S, codes.BEST, 0, Q, some(*shown), output(0), float(k), e, e, D)
        assert got == pytest.approx(chance(S, k), rel=1e-9)
        for j in range(size):
            up, down = S.copy(), S.copy()
            up[j] += 1e-5
            down[j] -= 1e-5
            slope = (np.log(chance(up, k)) - np.log(chance(down, k))) / 2e-5
            assert D[j, 0] == pytest.approx(slope, rel=1e-4, abs=1e-8)
        total, mean = total + got, mean + got * D
    assert total == pytest.approx(1)
    np.testing.assert_allclose(mean, 0, atol=1e-12)  # for a rater of the assumed errors
    assert options(task, 0, codes.BEST, 0) == n


def test_the_best_of_some_far_apart_and_not_finite():
    task, S = made()
    S[3], S[5], D = 900.0, -900.0, np.zeros((R, 1))
    got = evidence(task, 0, S, codes.BEST, 0, Q, some(3, 5, 0, 1, 2), output(0), 1.0, 0.0, 0.0, D)
    assert got > 0
    np.testing.assert_allclose([D[3, 0], D[5, 0]], [-1, 1])
    S[5] = np.nan
    assert np.isnan(evidence(task, 0, S, codes.BEST, 0, Q, some(3, 5, 0, 1, 2), output(0), 1.0, 0.0, 0.0, D))


def drawn_without_putting_back(weights, n):
    """set -> the probability that these n are drawn, by all orders."""
    found = {}
    for order in itertools.permutations(range(len(weights)), n):
        chance, left = 1.0, 1.0
        for j in order:
            chance, left = chance * weights[j] / left, left - weights[j]
        found[frozenset(order)] = found.get(frozenset(order), 0.0) + chance
    return found


@pytest.mark.parametrize("mode", [codes.UNSURE, codes.AT_RANDOM])
@pytest.mark.parametrize("size", [7, 3])
def test_the_best_among_others_that_are_drawn_flatly(mode, size):
    task = rank_task(np.array([0, size]))
    S = np.random.default_rng(size).normal(0, 3, (size, 1))
    own, n = int(S[:, 0].argmax()), min(size, codes.CANDIDATES)
    p = np.full(size, 1 / size) if mode == codes.AT_RANDOM else twins.softmax(0.3 * S[:, 0])
    others = [j for j in range(size) if j != own]
    expected = drawn_without_putting_back(p[others] / p[others].sum(), n - 1)
    steps, counts, places, q, y = 20_000, {}, np.zeros(n), Q.copy(), some()
    for step in range(steps):
        chance = look(task, 0, S, codes.BEST, 0, mode, KEY, step, q, y, output(0))
        assert y[q[1]] == own
        shown = frozenset(others.index(j) for j in y[:n].tolist() if j != own)
        assert len(shown) == n - 1
        assert not y[n:].any()
        assert chance == pytest.approx(expected[shown], rel=1e-9)
        counts[shown] = counts.get(shown, 0) + 1
        places[q[1]] += 1
    for shown, chance in expected.items():
        assert abs(counts.get(shown, 0) / steps - chance) < 5 * np.sqrt(chance / steps)
    assert (np.abs(places / steps - 1 / n) < 5 * np.sqrt(1 / n / steps)).all()


def test_one_candidate_is_not_asked_about_and_somebody_who_knows_picks_the_first_of_the_best():
    task, S = rank_task(np.array([0, 1])), np.zeros((1, 1))
    assert look(task, 0, S, codes.BEST, 0, codes.UNSURE, KEY, 0, Q.copy(), some(), output(0)) == 0
    losses = np.array([0.5, 0.2, 0.5, 0.2, 0.9, 0.0])
    gold, task = rank_gold(np.array([0, 6]), losses), rank_task(np.array([0, 6]))
    assert truth(gold, task, 0, codes.BEST, 0, Q, some(0, 3, 4, 1, 2), output(0)) == 1
