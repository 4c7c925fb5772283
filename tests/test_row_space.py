"""RowSpace and score against their definitions: the law of the direction, and what a step is in the mean."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse

from sparsezo import Optimizer, RowSpace, Settings, minimize, row_space
from sparsezo.errors import SparsezoError, UsageError

RNG = np.random.default_rng(5)
DENSE = RNG.standard_normal((3, 6))
SINGULAR = np.array([[1.0, 2, 0, 0], [0, 0, 0, 0], [2, 4, 0, 0], [0, 1e-9, 3e-9, 0]])  # rank 2, rows of all sizes
DEPENDENT = np.array([[1.0, 0], [0, 1], [0.3, -0.7], [0.2, 0.9], [-0.6, 0.1]]) @ DENSE[:2]  # rank 2, but for rounding
TALL = RNG.standard_normal((9, 2)) @ RNG.standard_normal((2, 4))  # rank 2


def assert_mean_is(samples, expected):
    error = samples.std(0, ddof=1) / math.sqrt(len(samples))
    assert (np.abs(samples.mean(0) - expected) <= 4.5 * error + 1e-12).all(), (samples.mean(0), expected, error)


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array, scipy.sparse.coo_matrix])
@pytest.mark.parametrize(("C", "rank"), [(DENSE, 3), (SINGULAR, 2), (DEPENDENT, 2), (TALL, 2), (np.zeros((2, 3)), 0)])
def test_directions_have_the_law_of_the_part_of_u_that_c_shows(C, rank, kind):
    """N(0, P), P the projector onto the rows of C: direction(z) = A z with A A' = P and A' A = I."""
    scaled = C / np.where(C.any(1), np.abs(C).max(1), 1)[:, None]
    space = RowSpace(kind(C), np.arange(C.shape[1]))
    assert space.rank == rank == np.linalg.matrix_rank(scaled, 1e-9)
    A = np.array([space.direction(z) for z in np.eye(rank)]).reshape(rank, C.shape[1]).T
    np.testing.assert_allclose(A @ A.T, np.linalg.pinv(scaled, rcond=1e-10) @ scaled, atol=1e-9)
    np.testing.assert_allclose(A.T @ A, np.eye(rank), atol=1e-9)


def steps(perturb, F, seeds, C, sparse=False):
    """The first step from w = 0, for many seeds."""
    made = RowSpace(scipy.sparse.csr_array(C) if sparse else C, np.arange(C.shape[1]))
    moves = []
    for seed in range(seeds):
        optimizer = Optimizer(C.shape[1], Settings("symmetric", perturb, h=1.0, mu=0.7, seed=seed))
        proposal = optimizer.ask(C=made) if perturb == "score" else optimizer.ask()
        optimizer.tell(proposal, [F(C @ values) for values in proposal.outputs])
        moves.append(optimizer.weights())
    return np.array(moves)


@pytest.mark.parametrize("sparse", [False, True])
def test_the_mean_step_is_that_of_active(sparse):
    """Of a loss with corners, which no gradient describes: c depends on C u alone (Rao-Blackwell, design 2.3)."""
    F = lambda S: float(np.abs(S - [1.0, -2.0, 0.5]).sum())  # noqa: E731
    score, active = steps("score", F, 1_500, DENSE, sparse), steps("active", F, 1_500, DENSE)
    error = np.sqrt((score.var(0) + active.var(0)) / 1_500)
    assert (np.abs(score.mean(0) - active.mean(0)) <= 4.5 * error).all()
    assert (np.abs(score.mean(0)) > 5 * score.std(0) / math.sqrt(1_500)).any()


@pytest.mark.parametrize(("perturb", "dim"), [("score", 3), ("active", 6)])
def test_the_second_moment_goes_with_the_rank(perturb, dim):
    """F = a'S: g = a'C u, and E||g u||^2 = (dim + 2) ||C'a||^2, dim the rank of C in the place of all weights."""
    a = np.array([1.0, -0.5, 2.0])
    squares = (steps(perturb, lambda S: float(a @ S), 1_500, DENSE) ** 2).sum(1)
    assert_mean_is(squares, (dim + 2) * float(((a @ DENSE) ** 2).sum()))


def test_what_is_factored_once_is_not_factored_again(monkeypatch):
    C, active = DENSE, np.array([9, 1, 4, 30, 7, 2])
    fresh, kept = (Optimizer(40, Settings("two-point", "score", h=0.1, mu=0.2)) for _ in range(2))
    space = RowSpace(C, active)
    raw = [fresh.ask(active, C) for _ in range(3)]
    monkeypatch.setattr(row_space, "_factor", lambda G: pytest.fail("factored again"))
    for proposal in raw:
        again = kept.ask(C=space)
        np.testing.assert_array_equal(again.candidate, proposal.candidate)
        np.testing.assert_array_equal(again.x, active)


def test_a_sparse_table_of_all_weights_names_its_active_ones():
    C = scipy.sparse.csr_array(([1.0, 2.0, 1.0], ([0, 0, 1], [3, 8, 5])), shape=(2, 10))
    optimizer = Optimizer(10, Settings("two-point", "score"))
    proposal = optimizer.ask(C=C)
    assert proposal.x.tolist() == [3, 5, 8]
    assert proposal.candidate[2] == pytest.approx(2 * proposal.candidate[0])  # as the columns of row 0 are
    for wrong, why in ((C[:, :9], "C has 9 columns, and there are 10 weights"), (DENSE, "C has 6 columns")):
        with pytest.raises(UsageError, match=why):
            optimizer.ask(C=wrong)
    with pytest.raises(UsageError, match="active has 11; it must be from 0 to 9"):
        optimizer.ask(C=RowSpace(np.ones((1, 2)), [1, 11]))
    with pytest.raises(UsageError, match="a RowSpace knows its active weights"):
        optimizer.ask([1, 2], RowSpace(np.ones((1, 2)), [1, 2]))
    with pytest.raises(SparsezoError, match="C is not finite"):
        RowSpace(C * np.inf)


def test_minimize_takes_features_and_finds_lengths_by_itself():
    """1 - F1 of batches of 12 rows, a loss made of steps, by a linear model of 300 weights."""
    rng = np.random.default_rng(0)
    X = scipy.sparse.random_array((400, 300), density=0.05, rng=rng, format="csr", data_sampler=rng.standard_normal)
    y = X @ rng.standard_normal(300) > 0.5

    def F(w, rows):
        said = X[rows] @ w > 0
        return 1 - 2 * float((said & y[rows]).sum()) / max(float(said.sum() + y[rows].sum()), 1.0)

    def learned(**given):
        sample = lambda k: np.random.default_rng(k).choice(400, 12, replace=False)  # noqa: E731
        return 1 - F(minimize(F, 300, 4_000, sample=sample, **given).x, np.arange(400))

    by_scores = learned(features=lambda rows: X[rows])
    assert by_scores > 0.8
    assert by_scores > learned(active=lambda rows: np.unique(X[rows].indices)) + 0.02
    assert learned(features=lambda rows: RowSpace(X[rows])) == by_scores
