"""Chains of tags against enumeration of all paths, and chunk counts against conlleval's rules."""

from __future__ import annotations

import kernel_calls
import numpy as np
import pytest
import twins
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sparsezo.kernels import random
from sparsezo.kernels.exponential import exp_or_zero
from sparsezo.tasks.chunking import chains as sequence
from sparsezo.tasks.chunking.kernel import ChunkGold, chunk_task

KEY = np.uint64(random.stream_key(2, random.OUTPUT))
SHAPES = [(1, 2), (1, 4), (2, 3), (3, 3), (4, 4), (5, 2), (5, 3), (5, 4)]  # R, K

# (kind, chunk type, start) of tag sets
BIO = ([1, 2, 0], [0, 0, -1], 2)
TWO_TYPES = ([0, 2, 1, 2, 1], [-1, 0, 0, 1, 1], 0)
TAG_SETS = {"B I O": BIO, "O I-1 B-1 I-2 B-2": TWO_TYPES}
ORDERS = [1, 2, "1 with bigram attributes"]


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


@pytest.mark.parametrize("K", [2, 3, 4, 5])
def test_viterbi_equals_its_twin_ties_and_all(K):
    rng = np.random.default_rng(K)
    for trial in range(150):
        R, start = int(rng.integers(1, 12)), int(rng.integers(K))
        P = potentials(rng, R, K, [1, 2, 30][trial % 3], whole=True)  # small whole numbers tie nearly always
        assert decoded(P, R, K, start) == twins.viterbi(P, R, K, start)
    zeros = np.zeros((6, K * K), np.float32)
    assert decoded(zeros, 6, K, K - 1) == ([K - 1] * 6, 0)  # O: where nothing was learned, nothing is tagged


@pytest.mark.parametrize("K", [2, 3, 4, 5])
def test_viterbi_finds_the_best_of_all_paths(K):
    rng = np.random.default_rng(10 + K)
    for _ in range(20):
        R, start = int(rng.integers(1, 6)), int(rng.integers(K))
        P = potentials(rng, R, K, 1)
        paths = twins.all_paths(R, K)
        scores = np.tensordot(twins.features(paths, K, start), P, 2)
        y, score = decoded(P, R, K, start)
        assert score == pytest.approx(scores.max(), rel=1e-6)
        assert scores[(paths == y).all(axis=1)] == pytest.approx(scores.max(), rel=1e-6)
        tied = potentials(rng, R, K, 1, whole=True)
        last_best = paths[::-1][np.tensordot(twins.features(paths[::-1], K, start), tied, 2).argmax()]
        assert decoded(tied, R, K, start)[0] == last_best.tolist()


@pytest.mark.parametrize(("R", "K"), SHAPES)
# float32: sums of up to 5 numbers of that size are good to `size` * 1e-6, and so then are the probabilities
@pytest.mark.parametrize(("size", "atol"), [(0, 1e-6), (1, 2e-6), (5, 1e-5), (30, 5e-5)])
def test_marginals(R, K, size, atol):
    rng = np.random.default_rng(R * 10 + K)
    for start in range(K):
        P = potentials(rng, R, K, size)
        np.testing.assert_allclose(marginals(P, R, K, start), enumerated_marginals(P, R, K, start), atol=atol)


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


def test_marginals_of_a_long_sentence():
    """Against a forward-backward pass in float64 logarithms."""
    R, K, start = 200, 3, 2
    P = potentials(np.random.default_rng(1), R, K, 3)
    pair = P.astype(float).reshape(R, K, K)
    forward, backward = np.zeros((R, K)), np.zeros((R, K))
    forward[0] = pair[0, start]
    for i in range(1, R):
        forward[i] = np.logaddexp.reduce(forward[i - 1][:, None] + pair[i], axis=0)
    for i in range(R - 2, -1, -1):
        backward[i] = np.logaddexp.reduce(pair[i + 1] + backward[i + 1], axis=1)
    total = np.logaddexp.reduce(forward[-1])
    found = marginals(P, R, K, start).reshape(R, K, K)
    for i in range(1, R):
        expected = np.exp(forward[i - 1][:, None] + pair[i] + backward[i] - total)
        # sums reach 600 in float32, where numbers are 6e-5 apart
        np.testing.assert_allclose(found[i], expected, atol=5e-4)
    np.testing.assert_allclose(found[0, start], np.exp(forward[0] + backward[0] - total), atol=5e-4)


def test_relative_is_the_tag_before_given_the_tag_here():
    rng = np.random.default_rng(4)
    for R, K in SHAPES:
        P = potentials(rng, R, K, 2)
        E = relative(P, R, K, 0)
        joint = enumerated_marginals(P, R, K, 0).reshape(R, K, K)
        for i in range(1, R):
            np.testing.assert_allclose(E[i].reshape(K, K), joint[i] / joint[i].sum(axis=0), atol=5e-6)
        np.testing.assert_allclose(E[R, :K], joint[R - 1].sum(axis=0), atol=5e-6)


@pytest.mark.parametrize(("R", "K"), [(1, 3), (4, 3), (3, 4)])
def test_sampled_paths_have_their_probabilities(R, K):
    P = potentials(np.random.default_rng(R), R, K, 1)
    counts = np.zeros(K**R, np.int64)
    kernel_calls.path_counts(relative(P, R, K, 1), R, K, KEY, np.zeros(R, np.int32), counts)
    _, p = twins.path_probabilities(P, R, K, 1)
    often = p * counts.sum() >= 10
    observed = np.append(counts[often], counts[~often].sum())
    expected = np.append(p[often], p[~often].sum()) * counts.sum()
    seen = expected > 0
    assert stats.chisquare(observed[seen], expected[seen]).pvalue > 1e-7


def test_sampling_reads_one_word_a_token():
    R, K = 5, 3
    E = relative(potentials(np.random.default_rng(9), R, K, 1), R, K, 2)
    first, second = np.zeros(R, np.int32), np.zeros(R, np.int32)
    for step in range(50):
        sequence.sample_path(E, R, K, KEY, step, first)
        sequence.sample_path(E, R, K, KEY, step, second)
        assert (first == second).all()
        tag, u = 0, twins.uniform(int(KEY), step, R - 1)
        while tag < K - 1 and u >= E[R, : tag + 1].astype(float).sum():
            tag += 1
        assert first[R - 1] == tag


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


# ---- the task: gradients and losses in S ----


def chunk_problem(tag_set, order, lengths, seed, size=1.0, whole=False):
    """(task, gold, S of each input)."""
    kind, chunk_type, start = tag_set
    K = len(kind)
    rng = np.random.default_rng(seed + ORDERS.index(order))
    tokens = np.array(lengths, np.int64)
    kinds = np.array(kind, np.int8), np.array(chunk_type, np.int32)
    attributes = order not in (1, 2)
    task = chunk_task(tokens, *kinds, start, order=2 if order == 2 else 1, risk=True, bigram_attributes=attributes)
    offsets = np.concatenate([[0], np.cumsum(tokens)])
    gold = ChunkGold(offsets, rng.integers(0, K, offsets[-1]).astype(np.int16))
    scores = []
    for R in lengths:
        S = rng.normal(0, size, (R, K * K) if order == 2 else (R + K + attributes * K * R, K))
        scores.append((np.rint(S) if whole else S).astype(np.float32))
    return task, gold, scores


def enumerate_scores(task, x, S):
    """(paths, d score / dS of each, score of each)."""
    paths = twins.all_paths(int(task.tokens[x]), task.n_tags)
    phi = twins.score_features(paths, task.n_tags, task.start, task.order, task.bigram_attributes)
    return paths, phi, np.tensordot(phi, S.astype(float), 2)


def test_expand_and_contract():
    rng = np.random.default_rng(0)
    R, K = 4, 3
    S = rng.standard_normal((R + K, K)).astype(np.float32)
    P, DP = np.zeros((R, K * K), np.float32), rng.standard_normal((R, K * K)).astype(np.float32)
    sequence.expand(S, R, K, False, P)
    np.testing.assert_array_equal(P.reshape(R, K, K), S[:R, None, :] + S[None, R:, :])
    D = np.full((R + K + 2, K), 9, np.float32)
    sequence.contract(DP, R, K, False, D)
    by_pair = DP.reshape(R, K, K)
    np.testing.assert_allclose(D[:R], by_pair.sum(axis=1), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(D[R : R + K], by_pair.sum(axis=0), rtol=1e-5, atol=1e-6)
    assert (D[R + K :] == 9).all()
    # contract is expand's transpose: <P(S), DP> = <S, D>
    assert np.sum(P * DP) == pytest.approx(np.sum(S * D[: R + K]), rel=1e-4)


def test_expand_and_contract_with_attributes_of_bigrams():
    rng = np.random.default_rng(1)
    R, K = 4, 3
    S = rng.standard_normal((R + K + R * K, K)).astype(np.float32)
    P, DP = np.zeros((R, K * K), np.float32), rng.standard_normal((R, K * K)).astype(np.float32)
    sequence.expand(S, R, K, True, P)
    own = S[R + K :].reshape(K, R, K).transpose(1, 0, 2)  # a, i, b -> i, a, b
    np.testing.assert_allclose(P.reshape(R, K, K), S[:R, None, :] + S[None, R : R + K, :] + own, atol=1e-6)
    D = np.full((R + K + R * K + 2, K), 9, np.float32)
    sequence.contract(DP, R, K, True, D)
    np.testing.assert_array_equal(D[R + K : -2].reshape(K, R, K), DP.reshape(R, K, K).transpose(1, 0, 2))
    assert (D[-2:] == 9).all()
    assert np.sum(P * DP) == pytest.approx(np.sum(S * D[:-2]), rel=1e-4)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("tags", TAG_SETS)
def test_score_gradient_and_supervise(tags, order):
    task, gold, scores = chunk_problem(TAG_SETS[tags], order, [1, 2, 4, 3], seed=1, size=1.5)
    for x, S in enumerate(scores):
        paths, phi, total = enumerate_scores(task, x, S)
        mean = np.tensordot(twins.softmax(total), phi, 1)
        y, D = np.zeros(5, np.int32), np.full(S.shape, np.nan, np.float32)
        for step in range(5):
            assert np.isfinite(kernel_calls.sample(task, x, S, KEY, step, y))
            kernel_calls.score_gradient(task, x, S, y, D)
            drawn = phi[(paths == y[: task.tokens[x]]).all(axis=1)][0]
            np.testing.assert_allclose(D, drawn - mean, atol=5e-6)
        z = gold.tags[gold.offsets[x] : gold.offsets[x + 1]]
        kernel_calls.supervise(gold, task, x, S, D)
        np.testing.assert_allclose(D, phi[(paths == z).all(axis=1)][0] - mean, atol=5e-6)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("tags", TAG_SETS)
def test_decode_and_delta(tags, order):
    task, gold, scores = chunk_problem(TAG_SETS[tags], order, [1, 2, 3, 4, 5] * 4, seed=7)
    for x, S in enumerate(scores):
        paths, _, total = enumerate_scores(task, x, S)
        y = np.zeros(5, np.int32)
        score = kernel_calls.decode(task, x, S, y)
        assert score == pytest.approx(total.max(), rel=1e-5)
        best = paths[total.argmax()]
        np.testing.assert_array_equal(y[: task.tokens[x]], best)
        z = gold.tags[gold.offsets[x] : gold.offsets[x + 1]]
        expected = twins.one_minus_f1(best, z, task.kind, task.chunk_type)
        assert kernel_calls.delta(gold, task, x, y) == pytest.approx(expected, abs=1e-12)


# ---- chunk counts and expected loss ----

tag_sequences = st.integers(1, 3).flatmap(
    lambda n_types: st.lists(
        st.tuples(st.integers(0, 2 * n_types), st.integers(0, 2 * n_types)), min_size=1, max_size=15
    ).map(lambda pairs: (n_types, pairs))
)


@given(tag_sequences)
@settings(max_examples=400, deadline=None, derandomize=True)
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


def test_one_minus_f1_at_its_ends():
    assert sequence.one_minus_f1(0, 0, 0) == 0
    assert sequence.one_minus_f1(0, 3, 0) == 1
    assert sequence.one_minus_f1(3, 0, 0) == 1
    assert sequence.one_minus_f1(3, 3, 3) == 0
    assert sequence.one_minus_f1(1, 3, 1) == 0.5


def enumerated_losses(gold, task, x, paths):
    z = gold.tags[gold.offsets[x] : gold.offsets[x + 1]]
    return np.array([twins.one_minus_f1(y, z, task.kind, task.chunk_type) for y in paths])


@pytest.mark.parametrize("gamma", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("tags", TAG_SETS)
def test_risk_is_the_expected_loss(tags, order, gamma):
    task, gold, scores = chunk_problem(
        TAG_SETS[tags], order, [5, 1, 2, 3, 4, 3, 2, 4], seed=int(gamma * 10) + ORDERS.index(order) + 1
    )
    for x, S in enumerate(scores):
        paths, _, total = enumerate_scores(task, x, S)
        expected = twins.softmax(gamma * total) @ enumerated_losses(gold, task, x, paths)
        # float32 scores times gamma 5: exponents up to 60, good to 5e-6
        assert kernel_calls.risk(gold, task, x, S, gamma) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("start", [0, 1])
def test_risk_of_a_start_tag_that_is_not_o(start):
    """Before the first token there is no chunk that an I could go on with, whatever tag stands for the start."""
    task, gold, scores = chunk_problem((BIO[0], BIO[1], start), 2, [1, 2, 3, 4] * 3, seed=start)
    for x, S in enumerate(scores):
        paths, _, total = enumerate_scores(task, x, S)
        expected = twins.softmax(total) @ enumerated_losses(gold, task, x, paths)
        assert kernel_calls.risk(gold, task, x, S, 1.0) == pytest.approx(expected, abs=1e-5)


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
        paths, _, total = enumerate_scores(task, x, S)
        losses = (paths != gold.tags[gold.offsets[x] : gold.offsets[x + 1]]).mean(axis=1)
        for path, loss in zip(paths[:50].astype(np.int32), losses, strict=False):
            assert kernel_calls.delta(gold, task, x, path) == pytest.approx(loss, abs=1e-12)
        expected = twins.softmax(gamma * total) @ losses
        assert kernel_calls.risk(gold, task, x, S, gamma) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("tags", TAG_SETS)
def test_risk_at_large_gamma_is_the_loss_of_the_best_path(tags, order):
    task, gold, scores = chunk_problem(TAG_SETS[tags], order, [1, 2, 3, 4] * 10, seed=1, size=4, whole=True)
    unique = 0
    for x, S in enumerate(scores):
        paths, _, total = enumerate_scores(task, x, S)
        risk = kernel_calls.risk(gold, task, x, S, 1e4)
        assert 0 <= risk <= 1 + 1e-6
        if (total == total.max()).sum() == 1:
            unique += 1
            y = np.zeros(4, np.int32)
            kernel_calls.decode(task, x, S, y)
            assert y[: task.tokens[x]].tolist() == paths[total.argmax()].tolist()
            assert risk == pytest.approx(kernel_calls.delta(gold, task, x, y), abs=1e-5)
    assert unique > 20
