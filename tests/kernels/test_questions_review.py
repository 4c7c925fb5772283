"""A review of a whole tag path, against enumeration: what it says, and how somebody who knows corrects it."""

from __future__ import annotations

import numpy as np
import pytest
import twins
from kernel_calls import supervise
from question_calls import KEY, evidence, look
from test_questions import TAG_SETS, made, seen

from sparsezo.kernels import codes, protocol
from sparsezo.kernels.codes import CORRECTED, NOT_SAID, STANDING
from sparsezo.kernels.jit import allocating_kernel as kernel
from sparsezo.tasks.chunking.kernels.task import ChunkGold, chunk_task

Q = np.zeros(4, np.int32)
both_orders = pytest.mark.parametrize("order", [1, 2])
all_tags = pytest.mark.parametrize("tags", TAG_SETS)


@kernel
def review(gold, task, x, S, overlooks, key, step, y, how):
    return protocol.review(gold, task, x, S, overlooks, key, step, y, how)


def learned(task, S, y, how, e0=0.0, e1=0.0):
    """(likelihood, its logarithm's gradient) of a review."""
    D = np.full(S.shape, np.nan, np.float32)
    y, how = np.array(y, np.int32), np.array(how, np.int32)
    return evidence(task, 0, S, codes.REVIEW, 0, Q, y, how, 0.0, e0, e1, D), D


def said_of(paths, y, how, K, e0, e1):
    """The probability of a review where each path is the right one."""
    chance = np.ones(len(paths))
    for i, (tag, kind) in enumerate(zip(y, how, strict=True)):
        if kind != NOT_SAID:
            e = e1 if kind == CORRECTED else e0
            chance *= np.where(paths[:, i] == tag, 1 - e, e / (K - 1))
    return chance


@both_orders
@all_tags
def test_what_a_review_says(tags, order):
    rng = np.random.default_rng(3)
    for R in (1, 2, 4):
        task, S, paths, p, phi = made(tags, order, R, seed=R)
        for e0, e1 in ((0.0, 0.0), (0.2, 0.05)):
            y, how = rng.integers(task.n_tags, size=R), rng.integers(3, size=R)
            right = p * said_of(paths, y, how, task.n_tags, e0, e1)
            got, D = learned(task, S, y, how, e0, e1)
            assert got == pytest.approx(right.sum(), rel=1e-4)
            expected = np.tensordot(right / right.sum(), phi, 1) - np.tensordot(p, phi, 1)
            np.testing.assert_allclose(D, expected, atol=2e-5)


@both_orders
@all_tags
def test_a_rater_of_the_assumed_errors_changes_nothing_in_the_mean(tags, order):
    task, S, paths, _, _ = made(tags, order, 3, seed=8)
    for how in ([STANDING] * 3, [STANDING, NOT_SAID, CORRECTED]):
        total, mean = 0.0, 0.0
        said = paths[paths[:, 1] == 0] if NOT_SAID in how else paths
        for y in said:
            got, D = learned(task, S, y, how, 0.2, 0.05)
            total, mean = total + got, mean + got * D.astype(float)
        assert total == pytest.approx(1, abs=1e-5)
        np.testing.assert_allclose(mean, 0, atol=1e-5)


@both_orders
@all_tags
@pytest.mark.parametrize(("R", "size"), [(1, 1), (7, 1.5), (3000, 40)])
def test_without_errors_it_is_full_supervision_however_long(tags, order, R, size):
    task, S, z = long(tags, order, R, size)
    expected = np.full(S.shape, np.nan, np.float32)
    supervise(ChunkGold(np.array([0, R]), z.astype(np.int16)), task, 0, S, expected)
    got, D = learned(task, S, z, [STANDING] * R)
    assert 0 < got <= 1
    np.testing.assert_allclose(D, expected, rtol=0, atol=1e-30)  # what cannot be has 1e-38, not 0


def long(tags, order, R, size):
    """(task, S, a path that has nothing to do with S)."""
    kind, chunk_type, chunks = TAG_SETS[tags]
    K = len(kind)
    kinds = np.array(kind, np.int8), np.array(chunk_type, np.int32)
    task = chunk_task(np.array([R]), *kinds, K - 1, order=order, chunks=chunks)
    rng = np.random.default_rng(R)
    shape = (R + K, K) if order == 1 else (R, K * K)
    return task, rng.normal(0, size, shape).astype(np.float32), rng.integers(K, size=R)


@both_orders
def test_a_long_review_with_errors_does_not_underflow(order):
    R, e = 800, 0.1
    task, S, z = long("two types", order, R, 20)
    K = task.n_tags
    got, D = learned(task, S, z, [STANDING] * R, e, e)
    P = (S.astype(float) if order == 2 else (S[:R, None, :] + S[None, R:, :]).reshape(R, K * K).astype(float)).copy()
    said = P + np.log(np.where(np.arange(K * K) % K == z[:, None], 1 - e, e / (K - 1)))
    expected = twins.pair_marginals(said, K) - twins.pair_marginals(P, K)
    DP = D if order == 2 else D[:R]
    if order == 1:
        expected = expected.reshape(R, K, K).sum(1)
    np.testing.assert_allclose(DP, expected, atol=2e-3)
    assert got > 0


# Somebody who knows


def span_over(path, i, tags):
    """(first, last) of the span over token i in a path as it is shown."""
    kind, _, chunks = TAG_SETS[tags]
    first = last = i
    if chunks and kind[path[i]]:
        while kind[path[first]] == 2:
            first -= 1
        while last + 1 < len(path) and kind[path[last + 1]] == 2:
            last += 1
    return range(first, last + 1)


def corrected(paths, scores, y, gold, looks, tags):
    """(path, what was set by hand, corrections): the first wrong span is set right, the rest decoded, and so on."""
    kind, _, chunks = TAG_SETS[tags]
    allowed, by_hand = np.ones(len(paths), bool), np.zeros(len(y), bool)
    count = 0
    while True:
        shown = seen(y, tags)
        wrong = [i for i in range(len(y)) if looks[i] and not by_hand[i] and shown[i] != gold[i]]
        if not wrong:
            return y, by_hand, count
        i, count = wrong[0], count + 1
        removed = chunks and kind[gold[i]] == 0
        places = [j for j in span_over(shown if removed else gold, i, tags) if not removed or gold[j] == gold[i]]
        for j in places:
            by_hand[j] = True
            allowed &= paths[:, j] == gold[j]
        behind = places[-1] + 1
        if chunks and not removed and behind < len(y) and not by_hand[behind]:
            allowed &= paths[:, behind] != gold[places[0]] + 1
        y = paths[allowed][np.argmax(scores[allowed])]


@both_orders
@all_tags
def test_somebody_who_knows_sets_it_right(tags, order):
    rng = np.random.default_rng(1)
    for seed in range(12):
        R = 4
        task, S, paths, p, _ = made(tags, order, R, seed)
        y, how = np.full(R, -1, np.int32), np.full(R, -1, np.int32)
        assert look(task, 0, S, codes.REVIEW, 0, codes.UNSURE, KEY, 0, Q, y, how) > 0
        assert y.tolist() == seen(paths[np.argmax(p)], tags)
        assert (how == STANDING).all()
        z = paths[rng.integers(len(paths))]
        gold = ChunkGold(np.array([0, R]), z.astype(np.int16))
        looks = np.ones(R, bool) if seed % 2 else rng.random(R) < 0.7
        how[~looks] = NOT_SAID
        expected, by_hand, corrections = corrected(paths, p, y.copy(), seen(z, tags), looks, tags)
        got = review(gold, task, 0, S, 0.0, KEY, seed, y, how)
        assert y.tolist() == seen(expected, tags)
        np.testing.assert_array_equal(how, np.where(by_hand, CORRECTED, np.where(looks, STANDING, NOT_SAID)))
        assert got == corrections
        if looks.all():
            assert y.tolist() == seen(z, tags)


@both_orders
def test_what_is_overlooked_stands_and_what_nobody_can_say_is_not_said(order):
    R, n = 4, 400
    task, S, paths, p, _ = made("two types", order, R, seed=2)
    best = paths[np.argmax(p)]
    z = np.where(best == 4, 0, 4)  # all of it is wrong
    left = 0
    for step in range(n):
        y, how = best.astype(np.int32), np.full(R, STANDING, np.int32)
        review(ChunkGold(np.array([0, R]), z.astype(np.int16)), task, 0, S, 0.25, KEY, step, y, how)
        left += how[0] == STANDING
        assert y[0] == (seen(best, "two types")[0] if how[0] == STANDING else z[0])
    assert abs(left / n - 0.25) < 5 * np.sqrt(0.25 * 0.75 / n)
    y, how = best.astype(np.int32), np.full(R, STANDING, np.int32)
    other = np.array([5, 6, 4, 4], np.int16)  # a type that no output has
    kinds = np.array([1, 2, 1, 2, 0, 1, 2], np.int8), np.array([0, 0, 1, 1, -1, 2, 2], np.int32)
    task = chunk_task(np.array([R]), *kinds, 4, order=order, n_tags=5)
    review(ChunkGold(np.array([0, R]), other), task, 0, S, 0.0, KEY, 0, y, how)
    assert how[0] == how[1] == NOT_SAID
    assert seen(y, "two types")[2:] == [4, 4]


def test_a_review_of_what_is_marked_is_about_what_is_unsure():
    task, S, _, _, _ = made("two types", 2, 4, seed=3, size=4)
    y, how = np.zeros(4, np.int32), np.zeros(4, np.int32)
    gain = look(task, 0, S, codes.REVIEW, codes.ABOUT_MARKED, codes.UNSURE, KEY, 0, Q, y, how)
    paths = twins.all_paths(4, 5)
    p = twins.softmax(np.tensordot(twins.score_features(paths, 5, 4, 2), S.astype(float), 2))
    shown = np.array([seen(path, "two types") for path in paths])
    unsure = 1 - np.array([max(p[shown[:, i] == l].sum() for l in range(5)) for i in range(4)])
    np.testing.assert_array_equal(how, np.where(unsure >= 0.05, STANDING, NOT_SAID))
    assert 0 < (how == STANDING).sum() < 4, "the case shows something"
    total = unsure[how == STANDING].sum()
    assert gain == pytest.approx(total / (0.5 + 0.7 * (how == STANDING).sum() + 2.5 * total), rel=1e-4)
