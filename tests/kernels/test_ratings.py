"""What a rating says of a tag path: the expected loss and its gradient, against enumeration and finite differences."""

from __future__ import annotations

import counting
import numpy as np
import pytest
import twins
from question_calls import KEY, evidence, look
from test_questions import FOUR_TYPES, TAG_SETS, Q, chain_of, made

from sparsezo.kernels import codes
from sparsezo.tasks.chunking.kernels.expected_accuracy import expected_accuracy_gradient
from sparsezo.tasks.chunking.kernels.expected_f1 import LANES, expected_f1, expected_f1_gradient, node_table

LENGTHS = {"B I O": (1, 2, 5), "two types": (1, 2, 4), "four types": (1, 3), "plain": (1, 2, 4)}
SIZES = [(tags, R, order) for tags, each in LENGTHS.items() for R in each for order in (1, 2)]
SETS = {**TAG_SETS, "four types": FOUR_TYPES}


def losses_of(tags, y, paths):
    """Delta(y, y*) for every y* there is."""
    kind, chunk_type, chunks = SETS[tags]
    if not chunks:
        return (paths != y).mean(axis=1)
    return np.array([twins.one_minus_f1(y, z, kind, chunk_type) for z in paths])


def shown_paths(K, paths, R):
    """Some outputs, one without a chunk among them."""
    rng = np.random.default_rng(K)
    return [np.full(R, K - 1, np.int32), *(paths[k].astype(np.int32) for k in rng.integers(len(paths), size=3))]


def rated(task, S, y, loss):
    D = np.full(S.shape, np.nan, np.float32)
    return evidence(task, 0, S, codes.RATE, 0, Q, y, Q, loss, 0.0, 0.0, D), D


@pytest.mark.parametrize(("tags", "R", "order"), SIZES)
def test_a_rating_is_evidence_as_enumeration_says(tags, R, order):
    task, S, paths, p, phi = made(tags, order, R, seed=R)
    for y in shown_paths(task.n_tags, paths, R):
        losses = losses_of(tags, y, paths)
        rho = p @ losses
        slope = np.tensordot(p * (losses - rho), phi, 1)  # d rho / dS
        for loss in (0.0, 0.3, 1.0):
            got, D = rated(task, S, y, loss)
            assert got == pytest.approx((1 - rho) ** (1 - loss) * rho**loss, rel=1e-5)
            np.testing.assert_allclose(D, (loss - rho) / (rho * (1 - rho)) * slope, atol=2e-5)


def test_a_model_that_is_sure_learns_by_finite_steps():
    """Where it expects a loss of 0 or of 1 to the last bit, in float32 an unexpected rating would be 0 / 0."""
    for tags in ("B I O", "plain"):
        task, S, _, _, _ = made(tags, 2, 4, seed=1)
        K = task.n_tags
        S[:] = 0
        S[:, 0::K] = 40
        for y in (np.zeros(4, np.int32), np.full(4, K - 1, np.int32)):
            for loss in (0.0, 0.5, 1.0):
                likelihood, D = rated(task, S, y, loss)
                assert 1e-21 < likelihood <= 1
                assert np.abs(D).max() <= 1.001


def f1_and_gradient(P, R, K, z, kind, chunk_type, table):
    def room(*shape):
        return np.full(shape, np.nan, np.float32)

    E, D = chain_of(P, R, K, K - 1), np.zeros((R, K * K), np.float32)
    edges = np.full(R, 7, np.int8)
    rooms = (room(R, 3, K, LANES), room(3, K, LANES), room(3, K, LANES), room(2, K))
    value = expected_f1_gradient(E, R, K, K - 1, z, kind, chunk_type, *table, edges, *rooms, D)
    assert value == pytest.approx(expected_f1(E, R, K, z, kind, chunk_type, *table, edges, *rooms[1:3]), abs=1e-6)
    return value, D


@pytest.mark.parametrize("tags", ["B I O", "two types", "four types"])
@pytest.mark.parametrize("R", [30, 200])
def test_long_sentences_have_the_gradient_that_counting_has(tags, R):
    """Along random directions; counting chunks in the state knows nothing of nodes or of a pass backward."""
    kind, chunk_type = np.array(SETS[tags][0], np.int8), np.array(SETS[tags][1], np.int32)
    K = len(kind)
    table = node_table(R)
    rng = np.random.default_rng(K)
    P = rng.normal(0, 2, (R, K * K)).astype(np.float32)
    some = min(R, 30)  # chunks of z; counting takes the square of the tokens
    z = np.where(np.arange(R) < some, rng.integers(0, K, R), K - 1).astype(np.int16)
    _, D = f1_and_gradient(P, R, K, z, kind, chunk_type, table)
    if R == 30:

        def counted(P):
            M = twins.pair_marginals(P, K)
            A, B = np.zeros((K, R + 2, R + 2, 2)), np.zeros((K, R + 2, R + 2, 2))
            return 1 - counting.expected_f1_loss(M, R, K, K - 1, z, kind, chunk_type, A, B)

        for _ in range(4):
            u, eps = rng.normal(0, 1, P.shape), 1e-4
            change = counted(P + eps * u) - counted(P - eps * u)
            assert (D * u).sum() == pytest.approx(change / (2 * eps), rel=1e-3, abs=2e-5)
    # a score that is added to all pairs of a token changes nothing
    np.testing.assert_allclose(D.sum(axis=1), 0, atol=2e-6)
    assert np.abs(D).max() > 1e-3


def test_the_expected_accuracy_of_a_long_sentence_and_its_gradient():
    R, K = 300, 4
    rng = np.random.default_rng(0)
    P, z = rng.normal(0, 2, (R, K * K)).astype(np.float32), rng.integers(0, K, R).astype(np.int32)

    def accuracy(P):
        M = twins.pair_marginals(P, K).reshape(R, K, K).sum(axis=1)
        return M[np.arange(R), z].mean()

    room = [np.full(shape, np.nan, np.float32) for shape in ((R, K), (3, K, LANES), (3, K, LANES), (2, K))]
    D = np.zeros((R, K * K), np.float32)
    value = expected_accuracy_gradient(chain_of(P, R, K, K - 1), R, K, K - 1, z, *room, D)
    assert value == pytest.approx(accuracy(P.astype(float)), abs=1e-6)
    for _ in range(4):
        u, eps = rng.normal(0, 1, P.shape), 1e-5
        change = accuracy(P + eps * u) - accuracy(P - eps * u)
        assert (D * u).sum() == pytest.approx(change / (2 * eps), rel=1e-3, abs=1e-5)


@pytest.mark.parametrize(("tags", "seed", "size"), [("B I O", 11, 4.0), ("plain", 13, 8.0)])
def test_the_best_output_is_shown_as_often_as_the_tagger_is_unsure(tags, seed, size):
    R, n = 4, 3000
    task, S, paths, p, _ = made(tags, 2, R, seed, size)
    y, other, q = np.zeros(R, np.int32), np.zeros(R, np.int32), np.zeros(4, np.int32)
    assert look(task, 0, S, codes.RATE, 0, codes.AT_RANDOM, KEY, 0, q, y, other) == 1
    assert (y == paths[p.argmax()]).all()
    chances = [look(task, 0, S, codes.RATE, 0, codes.UNSURE, KEY, step, q, y, other) for step in range(n)]
    (chance,) = {each for each in chances if each > 0}
    assert 0.02 < chance < 0.98
    assert np.mean([each > 0 for each in chances]) == pytest.approx(chance, abs=5 * np.sqrt(chance * (1 - chance) / n))
