"""What an answer says of two translations, by Bradley and Terry: likelihoods, gradients, truths, choices."""

from __future__ import annotations

import numpy as np
import pytest
import twins
from question_calls import KEY, checked, evidence, look, options, output, truth

from sparsezo.kernels import codes
from sparsezo.tasks.rerank import questions_kernel
from sparsezo.tasks.rerank.kernel import RankGold, rank_task

assert questions_kernel  # it says how reranking is asked about

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
    gold, task = RankGold(np.array([0, 3]), losses, np.zeros((3, 10), np.int16)), rank_task(np.array([0, 3]))

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
