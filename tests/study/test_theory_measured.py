"""E||s||^2 as benchmarks/step_moments.py has it, against the weights that steps really move."""

from __future__ import annotations

import math

import numpy as np
import pytest
from step_moments import CRITERIA, MEASURED, RAW, ZEROTH_ORDER, measure, reach

from sparsezo.kernels import loop
from sparsezo.learner import Learner
from sparsezo.settings import Settings
from sparsezo.study.theory import annealed_L0, bounded_moment, step_moment, symmetric_moment
from sparsezo.tasks.chunking.synthetic import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking

H, MU, GAMMA = 0.01, 0.5, 2.0


@pytest.fixture(scope="module")
def small():
    task, corpus = Chunking.fit(chunking_corpus(6, seed=3))
    return task.problem(corpus, risk=True), task.gold(corpus)


@pytest.fixture(scope="module")
def W(small):
    return np.random.default_rng(0).normal(size=(small[0].n_features, small[0].n_labels)).astype(np.float32) * 0.2


def learner_at(problem, W, **settings):
    learner = Learner(problem, Settings(h=H, mu=MU, gamma=GAMMA, **settings))
    learner.state.W[:] = W
    return learner


@pytest.fixture(scope="module")
def measured(small, W):
    return measure(learner_at(small[0], W), small[1], 20_000)


def test_there_is_one_for_each_criterion_rule_and_perturbation(measured):
    named = [(each.criterion, each.rule, each.perturb) for each in measured]
    assert len(set(named)) == len(named) == len(CRITERIA) * len(MEASURED) * 3
    assert set(ZEROTH_ORDER) == {"two-point", "symmetric", "comparison", "preference", "baseline"}


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("perturb", ["all", "active", "score"])
@pytest.mark.parametrize("rule", ["two-point", "symmetric", "comparison", "preference", "baseline", RAW])
def test_it_is_what_steps_move(small, W, measured, criterion, perturb, rule):
    """Step after step from the same weights, ||W - before||^2 / h^2."""
    problem, gold = small
    taken = "baseline" if rule == RAW else rule
    learner = learner_at(problem, W, rule=taken, perturb=perturb, criterion=criterion, seed=7)
    if rule == RAW:
        learner.state.counts[loop.STEP] = 2**40  # after so many losses of 0 their mean is 0
    moved = np.empty(700)
    for k in range(moved.size):
        learner.state.W[:] = W
        learner.run(gold, steps=1)
        moved[k] = ((learner.weights() - W) ** 2).sum(dtype=float) / H**2
    (one,) = (each for each in measured if (each.criterion, each.rule, each.perturb) == (criterion, rule, perturb))
    error = math.hypot(one.error, moved.std(ddof=1) / math.sqrt(moved.size))
    assert abs(moved.mean() - one.mean) <= 4.5 * error
    assert one.mean > 10 * one.error


def test_the_bounds_are_those_of_the_formulas_and_hold(small, measured):
    problem, _ = small
    n = problem.n_features * problem.n_labels
    sizes = {"all": np.full(len(problem), n), "active": problem.n_active, "score": problem.n_score}
    L0 = annealed_L0(GAMMA, 1.0) * reach(problem)
    for each in measured:
        m, symmetric = sizes[each.perturb], each.rule == "symmetric"
        assert each.bounded == bounded_moment(m.mean(), MU, "symmetric" if symmetric else "two-point")
        assert each.mean - 3 * each.error <= each.bounded
        if each.criterion == "map" or each.rule not in ("two-point", "symmetric"):
            assert each.lipschitz is None
            continue
        assert each.lipschitz == (symmetric_moment if symmetric else step_moment)(m, problem.n_score, L0)
        assert each.mean + 3 * each.error <= each.lipschitz


def test_the_reach_of_an_input_is_the_largest_distance_of_two_outputs_features(small):
    problem, _ = small
    inputs, rng, L = problem.inputs, np.random.default_rng(1), problem.n_labels
    for x, D in enumerate(reach(problem)):
        rows = range(inputs.row_start[x], inputs.row_start[x + 1])
        C = np.zeros((len(rows), problem.n_features))
        for i, row in enumerate(rows):
            C[i, inputs.columns[inputs.row_ptr[row] : inputs.row_ptr[row + 1]]] = 1

        def distance(first, second, C=C):
            return np.linalg.norm(C.T @ (np.eye(L)[first] - np.eye(L)[second]))

        assert distance(np.zeros(len(rows), int), np.ones(len(rows), int)) == pytest.approx(D, rel=1e-5)
        for _ in range(10):
            assert distance(*rng.integers(L, size=(2, len(rows)))) <= D
