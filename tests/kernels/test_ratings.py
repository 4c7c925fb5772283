"""What a rating says of a tag path: the expected loss and its gradient, against enumeration and finite differences."""

from __future__ import annotations

import counting
import numpy as np
import pytest
import twins
from question_calls import KEY, evidence, look

from sparsezo.kernels import codes
from sparsezo.tasks.chunking import chains, questions_kernel
from sparsezo.tasks.chunking.expected_accuracy import expected_accuracy_gradient
from sparsezo.tasks.chunking.expected_f1 import LANES, expected_f1, expected_f1_gradient, node_table
from sparsezo.tasks.chunking.kernel import chunk_task

assert questions_kernel  # it says how chunking is asked about

# (kind, chunk type, chunks) as Chunking has them: B and I of each type, O last; and tags that are no chunks
TAG_SETS = {
    3: ([1, 2, 0], [0, 0, -1], True),
    5: ([1, 2, 1, 2, 0], [0, 0, 1, 1, -1], True),
    9: ([1, 2] * 4 + [0], [0, 0, 1, 1, 2, 2, 3, 3, -1], True),
    4: ([0, 0, 0, 0], [-1, -1, -1, -1], False),
}
LENGTHS = {3: (1, 2, 5), 5: (1, 2, 4), 9: (1, 3), 4: (1, 2, 4)}
SIZES = [(K, R, order) for K, each in LENGTHS.items() for R in each for order in (1, 2)]
Q = np.zeros(4, np.int32)


def made(K, order, R, seed, size=1.5):
    """(task, S, all paths, their probabilities, d score / dS of each)."""
    kind, chunk_type, chunks = TAG_SETS[K]
    kinds = np.array(kind, np.int8), np.array(chunk_type, np.int32)
    task = chunk_task(np.array([R]), *kinds, K - 1, order=order, chunks=chunks, rates=True)
    S = np.random.default_rng(seed).normal(0, size, (R + K, K) if order == 1 else (R, K * K)).astype(np.float32)
    paths = twins.all_paths(R, K)
    phi = twins.score_features(paths, K, K - 1, order)
    return task, S, paths, twins.softmax(np.tensordot(phi, S.astype(float), 2)), phi


def losses_of(K, y, paths):
    """Delta(y, y*) for every y* there is."""
    kind, chunk_type, chunks = TAG_SETS[K]
    if not chunks:
        return (paths != y).mean(axis=1)
    return np.array([twins.one_minus_f1(y, z, kind, chunk_type) for z in paths])


def shown_paths(K, paths, R, seed):
    """Some outputs, one without a chunk among them."""
    rng = np.random.default_rng(seed)
    return [np.full(R, K - 1, np.int32), *(paths[k].astype(np.int32) for k in rng.integers(len(paths), size=3))]


def rated(task, S, y, loss):
    D = np.full(S.shape, np.nan, np.float32)
    return evidence(task, 0, S, codes.RATE, 0, Q, y, Q, loss, 0.0, 0.0, D), D


@pytest.mark.parametrize(("K", "R", "order"), SIZES)
def test_a_rating_is_evidence_as_enumeration_says(K, R, order):
    task, S, paths, p, phi = made(K, order, R, seed=R)
    for y in shown_paths(K, paths, R, K):
        losses = losses_of(K, y, paths)
        rho = p @ losses
        slope = np.tensordot(p * (losses - rho), phi, 1)  # d rho / dS
        for loss in (0.0, 0.3, 1.0):
            got, D = rated(task, S, y, loss)
            assert got == pytest.approx((1 - rho) ** (1 - loss) * rho**loss, rel=1e-5)
            np.testing.assert_allclose(D, (loss - rho) / (rho * (1 - rho)) * slope, atol=2e-5)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("K", TAG_SETS)
def test_the_gradient_is_that_of_the_likelihood(K, order):
    """By finite differences of the likelihood in float64: nothing of what enumeration says of gradients is believed."""
    R, loss, eps = 3, 0.4, 1e-5
    task, S, paths, _, phi = made(K, order, R, seed=2)
    for y in shown_paths(K, paths, R, 1)[:2]:
        losses = losses_of(K, y, paths)

        def likelihood(S, losses=losses):
            rho = twins.softmax(np.tensordot(phi, S, 2)) @ losses
            return (1 - loss) * np.log(1 - rho) + loss * np.log(rho)

        D = rated(task, S, y, loss)[1]
        rng = np.random.default_rng(3)
        for _ in range(20):
            u = rng.normal(0, 1, S.shape)
            change = likelihood(S.astype(float) + eps * u) - likelihood(S.astype(float) - eps * u)
            assert (D * u).sum() == pytest.approx(change / (2 * eps), rel=1e-4, abs=3e-5)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("K", TAG_SETS)
def test_nothing_is_learned_in_the_mean_where_the_model_is_right(K, order):
    """E[D] = 0 for y* drawn from the model itself, each with the loss that y then has."""
    R = 3
    task, S, paths, p, _ = made(K, order, R, seed=7)
    for y in shown_paths(K, paths, R, 5):
        losses = losses_of(K, y, paths)
        total, moved = np.zeros(S.shape), 0.0
        for loss in np.unique(losses):
            D = rated(task, S, y, loss)[1]
            total += p[losses == loss].sum() * D
            moved = max(moved, np.abs(D).max())
        assert moved > 1e-2
        np.testing.assert_allclose(total, 0, atol=2e-5)


def test_a_model_that_is_sure_learns_by_finite_steps():
    """Where it expects a loss of 0 or of 1 to the last bit, in float32 an unexpected rating would be 0 / 0."""
    for K in (3, 4):
        task, S, _, _, _ = made(K, 2, 4, seed=1)
        S[:] = 0
        S[:, 0::K] = 40
        for y in (np.zeros(4, np.int32), np.full(4, K - 1, np.int32)):
            for loss in (0.0, 0.5, 1.0):
                likelihood, D = rated(task, S, y, loss)
                assert 1e-21 < likelihood <= 1
                assert np.abs(D).max() <= 1.001


def chain_of(P, R, K, start):
    E = np.full((R + 1, K * K), np.nan, np.float32)
    chains.relative(P, R, K, start, np.zeros((R, K), np.float32), E)
    return E


def f1_and_gradient(P, R, K, z, kind, chunk_type, table):
    def room(*shape):
        return np.full(shape, np.nan, np.float32)

    E, D = chain_of(P, R, K, K - 1), np.zeros((R, K * K), np.float32)
    edges = np.full(R, 7, np.int8)
    rooms = (room(R, 3, K, LANES), room(3, K, LANES), room(3, K, LANES), room(2, K))
    value = expected_f1_gradient(E, R, K, K - 1, z, kind, chunk_type, *table, edges, *rooms, D)
    assert value == pytest.approx(expected_f1(E, R, K, z, kind, chunk_type, *table, edges, *rooms[1:3]), abs=1e-6)
    return value, D


@pytest.mark.parametrize("K", [3, 5, 9])
@pytest.mark.parametrize("R", [30, 200])
def test_long_sentences_have_the_gradient_that_counting_has(K, R):
    """Along random directions; counting chunks in the state knows nothing of nodes or of a pass backward."""
    kind, chunk_type = np.array(TAG_SETS[K][0], np.int8), np.array(TAG_SETS[K][1], np.int32)
    table = node_table(R)
    rng = np.random.default_rng(K)
    P = rng.normal(0, 2, (R, K * K)).astype(np.float32)
    some = min(R, 30)  # chunks of z; counting takes the square of the tokens
    z = np.where(np.arange(R) < some, rng.integers(0, K, R), K - 1).astype(np.int16)
    _, D = f1_and_gradient(P, R, K, z, kind, chunk_type, table)
    if R == 30:

        def counted(P):
            M = _chain64(P, R, K)
            A, B = np.zeros((K, R + 2, R + 2, 2)), np.zeros((K, R + 2, R + 2, 2))
            return 1 - counting.expected_f1_loss(M, R, K, K - 1, z, kind, chunk_type, A, B)

        for _ in range(4):
            u, eps = rng.normal(0, 1, P.shape), 1e-4
            change = counted(P + eps * u) - counted(P - eps * u)
            assert (D * u).sum() == pytest.approx(change / (2 * eps), rel=1e-3, abs=2e-5)
    # a score that is added to all pairs of a token changes nothing
    np.testing.assert_allclose(D.sum(axis=1), 0, atol=2e-6)
    assert np.abs(D).max() > 1e-3


def _chain64(P, R, K):
    """The pair marginals of the chain with scores P, in float64, the obvious way."""
    W = np.exp(P - P.max(axis=1, keepdims=True)).reshape(R, K, K)
    alpha, beta = [W[0, K - 1]], [np.ones(K)]
    for i in range(1, R):
        alpha.append(alpha[-1] @ W[i])
        alpha[-1] /= alpha[-1].sum()
    for i in range(R - 1, 0, -1):
        beta.append(W[i] @ beta[-1])
        beta[-1] /= beta[-1].sum()
    beta.reverse()
    M = np.zeros((R, K, K))
    M[0, K - 1] = alpha[0] * beta[0]
    for i in range(1, R):
        M[i] = alpha[i - 1][:, None] * W[i] * beta[i]
    return (M / M.sum(axis=(1, 2), keepdims=True)).reshape(R, K * K)


def test_the_expected_accuracy_of_a_long_sentence_and_its_gradient():
    R, K = 300, 4
    rng = np.random.default_rng(0)
    P, z = rng.normal(0, 2, (R, K * K)).astype(np.float32), rng.integers(0, K, R).astype(np.int32)

    def accuracy(P):
        M = _chain64(P, R, K).reshape(R, K, K).sum(axis=1)
        return M[np.arange(R), z].mean()

    room = [np.full(shape, np.nan, np.float32) for shape in ((R, K), (3, K, LANES), (3, K, LANES), (2, K))]
    D = np.zeros((R, K * K), np.float32)
    value = expected_accuracy_gradient(chain_of(P, R, K, K - 1), R, K, K - 1, z, *room, D)
    assert value == pytest.approx(accuracy(P.astype(float)), abs=1e-6)
    for _ in range(4):
        u, eps = rng.normal(0, 1, P.shape), 1e-5
        change = accuracy(P + eps * u) - accuracy(P - eps * u)
        assert (D * u).sum() == pytest.approx(change / (2 * eps), rel=1e-3, abs=1e-5)


@pytest.mark.parametrize("K", [3, 4])
def test_the_best_output_is_shown_as_often_as_the_tagger_is_unsure(K):
    R, n = 4, 3000
    task, S, paths, p, _ = made(K, 2, R, **{3: {"seed": 11, "size": 4.0}, 4: {"seed": 13, "size": 8.0}}[K])
    y, other, q = np.zeros(R, np.int32), np.zeros(R, np.int32), np.zeros(4, np.int32)
    assert look(task, 0, S, codes.RATE, 0, codes.AT_RANDOM, KEY, 0, q, y, other) == 1
    assert (y == paths[p.argmax()]).all()
    chances = [look(task, 0, S, codes.RATE, 0, codes.UNSURE, KEY, step, q, y, other) for step in range(n)]
    (chance,) = {each for each in chances if each > 0}
    assert 0.02 < chance < 0.98
    assert np.mean([each > 0 for each in chances]) == pytest.approx(chance, abs=5 * np.sqrt(chance * (1 - chance) / n))
