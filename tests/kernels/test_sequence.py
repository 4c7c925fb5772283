"""Chains of tags against enumeration of all paths, chunk counts against conlleval's rules (test_steps.py: steps)."""

from __future__ import annotations

import kernel_calls
import numpy as np
import pytest
import twins
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsezo.kernels.exponential import exp_or_zero
from sparsezo.tasks.chunking.kernels import chains as sequence
from sparsezo.tasks.chunking.kernels.task import ChunkGold, chunk_task

SHAPES = [(1, 2), (1, 4), (2, 3), (3, 3), (4, 4), (5, 2), (5, 3), (5, 4)]  # R, K


def potentials(rng, R, K, size, whole=False):
    P = rng.uniform(-size, size, (R, K * K))
    return (np.rint(P) if whole else P).astype(np.float32)


def decoded(P, R, K, start):
    y = np.full(R, -1, np.int32)
    room = np.full((R, K), np.nan, np.float32), np.zeros((R, K), np.int16)
    score = sequence.viterbi(P, R, K, start, *room, y)
    return y.tolist(), score


def relative(P, R, K, start):
    E = np.full((R + 1, K * K), np.nan, np.float32)
    sequence.relative(P, R, K, start, np.full((R, K), np.nan, np.float32), E)
    return E


def marginals(P, R, K, start):
    D = np.zeros((R, K * K), np.float32)
    sequence.subtract_marginals(relative(P, R, K, start), R, K, start, np.full((2, K), np.nan, np.float32), D)
    return -D


def enumerated_marginals(P, R, K, start):
    paths, p = twins.path_probabilities(P, R, K, start)
    return np.tensordot(p, twins.features(paths, K, start), 1)


@pytest.mark.parametrize("K", [2, 3, 4, 5, 7, 8, 9, 16, 19])
def test_viterbi_equals_its_twin_ties_and_all(K):
    rng = np.random.default_rng(K)
    for trial in range(150):
        R, start = int(rng.integers(1, 12)), int(rng.integers(K))
        P = potentials(rng, R, K, [1, 2, 30][trial % 3], whole=True)  # small whole numbers tie nearly always
        assert decoded(P, R, K, start) == twins.viterbi(P, R, K, start)
    zeros = np.zeros((6, K * K), np.float32)
    assert decoded(zeros, 6, K, K - 1) == ([K - 1] * 6, 0)  # O: where nothing was learned, nothing is tagged


@pytest.mark.parametrize("K", [2, 3, 4, 5, 7, 8, 9, 16, 19])
def test_the_tag_before_given_the_tag_here_by_forward_sums(K):
    rng = np.random.default_rng(K)
    R, start = 6, int(rng.integers(K))
    P = potentials(rng, R, K, 3)
    alpha = np.exp(P[0].astype(float).reshape(K, K)[start])
    E = relative(P, R, K, start)
    for i in range(1, R):
        joint = alpha[:, None] * np.exp(P[i].astype(float).reshape(K, K))
        alpha = joint.sum(0)
        np.testing.assert_allclose(E[i].reshape(K, K), joint / alpha, atol=2e-6)
    np.testing.assert_allclose(E[R, :K], alpha / alpha.sum(), atol=2e-6)


@pytest.mark.parametrize("K", [2, 3, 4, 5, 7, 8, 9, 16, 19])
@pytest.mark.parametrize("with_attributes", [False, True])
def test_scores_of_pairs_are_those_of_tags_and_of_bigrams(K, with_attributes):
    R, rng = 4, np.random.default_rng(K)
    S = rng.standard_normal((R + K + K * R, K)).astype(np.float32)
    P = np.full((R, K * K), np.nan, np.float32)
    sequence.expand(S, R, K, with_attributes, P)
    expected = S[:R, None] + S[R : R + K]
    if with_attributes:
        expected = expected + S[R + K :].reshape(K, R, K).transpose(1, 0, 2)
    np.testing.assert_array_equal(P.reshape(R, K, K), expected)


@pytest.mark.parametrize(("R", "K"), SHAPES)
# float32: sums of up to 5 numbers of that size are good to `size` * 1e-6, and so then are the probabilities
@pytest.mark.parametrize(("size", "atol"), [(0, 1e-6), (1, 2e-6), (5, 1e-5), (30, 5e-5)])
def test_marginals(R, K, size, atol):
    rng = np.random.default_rng(R * 10 + K)
    for start in range(K):
        P = potentials(rng, R, K, size)
        np.testing.assert_allclose(marginals(P, R, K, start), enumerated_marginals(P, R, K, start), atol=atol)


@pytest.mark.parametrize("K", [2, 3, 4, 5, 7, 8, 9, 16, 19])
def test_marginals_are_summed_in_one_order(K):
    """Bit for bit, however many sums go side by side: over the tags b of a token, one after the other."""
    rng, R, start, weight = np.random.default_rng(K), 5, K // 2, np.float32(-0.7)
    E = rng.random((R + 1, K * K)).astype(np.float32)
    D = rng.standard_normal((R, K * K)).astype(np.float32)
    expected, p = D.copy(), E[R, :K]
    for i in range(R - 1, 0, -1):
        both = p * E[i].reshape(K, K)
        expected[i] += weight * both.ravel()
        p = np.zeros(K, np.float32)
        for b in range(K):
            p += both[:, b]
    expected[0, start * K : start * K + K] += weight * p
    sequence.add_marginals(E, R, K, start, np.full((2, K), np.nan, np.float32), weight, D)
    np.testing.assert_array_equal(D, expected)


@pytest.mark.parametrize(("R", "K"), SHAPES)
@pytest.mark.parametrize("size", [500, 10_000])
def test_marginals_of_extreme_potentials(R, K, size):
    rng = np.random.default_rng(R * 10 + K)
    for trial in range(6):
        P = potentials(rng, R, K, size, whole=True)  # whole numbers add up exactly in float32
        if trial % 2:
            P = (np.sign(P) * size).astype(np.float32)  # many ties among the extremes
        found = marginals(P, R, K, trial % K)
        assert np.isfinite(found).all()
        np.testing.assert_allclose(found, enumerated_marginals(P, R, K, trial % K), atol=3e-6)


def test_exp_nonpositive():
    x = np.concatenate([np.linspace(-80, 0, 100_001), -np.logspace(-30, 1, 1000)]).astype(np.float32)
    e = np.array([sequence.exp_nonpositive(v) for v in x], float)
    error = np.abs(e / np.exp(x.astype(float)) - 1)
    assert error[x >= -2].max() < 2e-7
    # further out x / ln 2 is rounded once to float32, and its constant too: up to 7e-8 of |x| more
    assert (error < 3e-7 + 7e-8 * np.abs(x)).all()
    assert sequence.exp_nonpositive(np.float32(0)) == 1
    for far in [-87.0, -88.0, -1e4, -3e38, -np.inf]:
        assert 0 <= sequence.exp_nonpositive(np.float32(far)) < 1.7e-38


def test_exp_or_zero():
    x = np.concatenate([np.linspace(-708, 0, 100_001), -np.logspace(-300, 2, 1000)])
    e = np.array([exp_or_zero(v) for v in x])
    assert (np.abs(e - np.exp(x)) <= 2 * np.spacing(np.exp(x))).all()
    assert exp_or_zero(0.0) == 1
    assert [exp_or_zero(far) for far in (-708.001, -1e9, -np.inf)] == [0, 0, 0]
    assert np.isnan(exp_or_zero(np.nan))


# ---- chunk counts and expected loss ----

tag_sequences = st.integers(1, 3).flatmap(
    lambda n_types: st.lists(
        st.tuples(st.integers(0, 2 * n_types), st.integers(0, 2 * n_types)), min_size=1, max_size=15
    ).map(lambda pairs: (n_types, pairs))
)


@given(tag_sequences)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_chunk_counts_as_conlleval(case):
    n_types, pairs = case
    kind = np.array([0] + [1, 2] * n_types, np.int8)
    chunk_type = np.array([-1, *np.repeat(range(n_types), 2)], np.int32)
    y = np.array([a for a, _ in pairs], np.int32)
    z = np.array([b for _, b in pairs], np.int16)
    in_y, in_z = twins.chunks(y, kind, chunk_type), twins.chunks(z, kind, chunk_type)
    counts = sequence.chunk_counts(y, z, len(y), kind, chunk_type)
    assert counts == (len(in_y), len(in_z), len(in_y & in_z))
    assert sequence.one_minus_f1(*counts) == pytest.approx(twins.one_minus_f1(y, z, kind, chunk_type), abs=1e-15)


@pytest.mark.parametrize("gamma", [0.1, 5.0])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(("K", "start"), [(2, 1), (3, 0), (4, 3)])
def test_plain_tags_have_the_share_of_wrong_ones_as_their_loss(K, start, order, gamma):
    """Kinds and types of chunks say nothing then, and a tag that only gold has (K) is never found."""
    kind = np.array([0, 1, 2, 2, 1, 2][: K + 2], np.int8)
    tokens = np.array([5, 1, 2, 3, 4], np.int64)
    task = chunk_task(tokens, kind, kind.astype(np.int32), start, order, risk=True, n_tags=K, chunks=False)
    rng = np.random.default_rng(K + order)
    gold = ChunkGold(np.concatenate([[0], np.cumsum(tokens)]), rng.integers(0, K + 1, tokens.sum()).astype(np.int16))
    assert K in gold.tags
    for x, R in enumerate(tokens):
        S = rng.normal(0, 1.5, (R + K, K) if order == 1 else (R, K * K)).astype(np.float32)
        paths = twins.all_paths(int(R), K)
        total = np.tensordot(twins.score_features(paths, K, start, order), S.astype(float), 2)
        losses = (paths != gold.tags[gold.offsets[x] : gold.offsets[x + 1]]).mean(axis=1)
        for path, loss in zip(paths[:50].astype(np.int32), losses, strict=False):
            assert kernel_calls.delta(gold, task, x, path) == pytest.approx(loss, abs=1e-12)
        expected = twins.softmax(gamma * total) @ losses
        assert kernel_calls.risk(gold, task, x, S, gamma) == pytest.approx(expected, abs=1e-5)
