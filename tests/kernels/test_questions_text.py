"""What an answer says of a document's class, against the softmax itself: likelihoods, gradients, truths, choices."""

from __future__ import annotations

import numpy as np
import pytest
import twins
from question_calls import KEY, checked, evidence, look, options, output, truth

from sparsezo.kernels import codes
from sparsezo.tasks.text.kernels import questions
from sparsezo.tasks.text.kernels.task import ClassGold, class_task

assert questions  # it says how text is asked about

CLASSES = (2, 3, 5)
ERRORS = [(0.0, 0.0), (0.1, 0.1), (0.05, 0.3)]


def scores(L, seed=0, size=1.5):
    return np.random.default_rng(seed).normal(0, size, (1, L)).astype(np.float32)


def shown(k):
    return np.array([0, k, 0, 0], np.int32)


@pytest.mark.parametrize(("e0", "e1"), ERRORS)
@pytest.mark.parametrize("L", CLASSES)
def test_part(L, e0, e1):
    S, task = scores(L), class_task(L)
    for k in range(L):

        def yes(S, k=k):
            return e0 + (1 - e0 - e1) * twins.softmax(S[0])[k]

        found = [
            checked(task, S, codes.PART, shown(k), 0, 0, codes.YES, e0, e1, yes),
            checked(task, S, codes.PART, shown(k), 0, 0, codes.NO, e0, e1, lambda S: 1 - yes(S)),
        ]
        assert sum(p * D for p, D in found) == pytest.approx(np.zeros((1, L)), abs=1e-5)  # E[D] = 0
    assert options(task, 0, codes.PART, 0) == 2


@pytest.mark.parametrize("e", [0.0, 0.2])
@pytest.mark.parametrize("L", CLASSES)
def test_label(L, e):
    S, task = scores(L, 1), class_task(L)
    found = [
        checked(
            task, S, codes.LABEL, shown(0), 0, 0, k, e, e,
            lambda S, k=k: e / (L - 1) + (1 - e * L / (L - 1)) * twins.softmax(S[0])[k],
        )
        for k in range(L)
    ]  # fmt: skip
    assert sum(p for p, _ in found) == pytest.approx(1, abs=1e-5)
    assert sum(p * D for p, D in found) == pytest.approx(np.zeros((1, L)), abs=1e-5)
    assert options(task, 0, codes.LABEL, 0) == L


@pytest.mark.parametrize("e", [0.0, 0.2])
@pytest.mark.parametrize("L", CLASSES[1:])
def test_pair(L, e):
    S, task = scores(L, 2), class_task(L)
    for one, two in [(0, 1), (2, 0)]:
        others = [k for k in range(L) if k not in (one, two)]
        found = [
            checked(
                task, S, codes.PAIR, shown(one), one, two, answer, e, e,
                lambda S, right=right: (1 - 1.5 * e) * twins.softmax(S[0])[right].sum() + e / 2,
            )
            for answer, right in [(codes.FIRST, [one]), (codes.SECOND, [two]), (codes.TIE, others)]
        ]  # fmt: skip
        assert sum(p for p, _ in found) == pytest.approx(1, abs=1e-5)
        assert sum(p * D for p, D in found) == pytest.approx(np.zeros((1, L)), abs=1e-5)
    assert options(task, 0, codes.PAIR, 0) == 3


@pytest.mark.parametrize("L", CLASSES)
def test_rating(L):
    """Its mean is 0 when a thumb is down with the probability that the model itself expects."""
    S, task = scores(L, 3), class_task(L)
    for k in range(L):
        found = {}
        for loss in (0.0, 0.3, 1.0):

            def likelihood(S, k=k, loss=loss):
                rho = 1 - twins.softmax(S[0])[k]
                return (1 - rho) ** (1 - loss) * rho**loss

            found[loss] = checked(task, S, codes.RATE, shown(k), k, 0, loss, 0.0, 0.0, likelihood)[1]
        rho = 1 - twins.softmax(S[0].astype(float))[k]
        assert (1 - rho) * found[0.0] + rho * found[1.0] == pytest.approx(np.zeros((1, L)), abs=1e-4)


def test_sure_of_the_wrong_class_it_still_learns():
    S, task, D = np.array([[40.0, 0.0, 0.0]], np.float32), class_task(3), np.zeros((1, 3), np.float32)
    assert 0 <= evidence(task, 0, S, codes.PART, 0, shown(0), output(0), output(1), codes.NO, 0.0, 0.0, D) < 1e-10
    assert np.isfinite(D).all()
    assert D[0] == pytest.approx([-1, 0.5, 0.5], abs=1e-4)
    S[0, 0] = np.nan
    assert np.isnan(evidence(task, 0, S, codes.PART, 0, shown(0), output(0), output(1), codes.NO, 0.0, 0.0, D))


def test_truth():
    gold, task = ClassGold(np.array([2], np.int32)), class_task(4)

    def said(kind, q, y, other):
        return truth(gold, task, 0, kind, 0, shown(q), output(y), output(other))

    assert [said(codes.PART, k, 0, 0) for k in range(4)] == [codes.NO, codes.NO, codes.YES, codes.NO]
    assert said(codes.LABEL, 0, 0, 0) == 2
    assert [said(codes.PAIR, 0, *pair) for pair in [(2, 1), (1, 2), (1, 3)]] == [codes.FIRST, codes.SECOND, codes.TIE]


@pytest.mark.parametrize("mode", [codes.UNSURE, codes.AT_RANDOM, codes.AT_ONCE])
def test_an_input_is_asked_about_as_often_as_it_is_unsure(mode):
    L, n = 3, 20_000
    S, task, q = scores(L, 4, 1.0), class_task(L), np.zeros(4, np.int32)
    p = twins.softmax(S[0].astype(float))
    counts, chances = np.zeros(L), np.zeros(L)
    for step in range(n):
        chance = look(task, 0, S, codes.PART, 0, mode, KEY, step, q, output(0), output(0))
        if chance > 0:
            counts[q[1]] += 1
            chances[q[1]] = chance
    asked = ((1 - p.max()) / (1 - 1 / L)) ** 2 if mode == codes.UNSURE else 1.0
    shown = p ** (4 if mode == codes.AT_RANDOM else 2)
    assert chances == pytest.approx(asked * shown / shown.sum(), rel=1e-4)
    assert (np.abs(counts / n - chances) < 5 * np.sqrt(chances / n)).all()


def test_a_pair_is_the_best_two():
    task, q, y, other = class_task(4), np.zeros(4, np.int32), output(0), output(0)
    S = np.array([[0.0, 2.0, 1.0, -1.0]], np.float32)
    assert look(task, 0, S, codes.PAIR, 0, codes.AT_RANDOM, KEY, 0, q, y, other) == 1
    assert (y[0], other[0]) == (1, 2)
