"""The laws again, with many more runs and so with finer eyes (make torture): a few minutes."""

from __future__ import annotations

import numpy as np
import pytest
import test_laws as laws
import twins

from sparsezo.kernels import codes

pytestmark = pytest.mark.torture

RUNS = 80_000


@pytest.fixture(scope="module")
def literal(tiny):
    return twins.LiteralChunking(tiny.inputs, tiny.gold, tiny.n_cols, tiny.kind, tiny.chunk_type, tiny.start)


@pytest.fixture(scope="module")
def way(tiny, literal):
    gradient = laws.expected_loss_gradient(tiny, literal)
    return -gradient / np.linalg.norm(gradient)


@pytest.fixture(scope="module")
def lazy_all(tiny):
    return laws.compiled_runs(tiny, laws.law(perturbation=codes.ALL), True, RUNS)


def test_lazy_all_has_the_law_of_literal_all(tiny, literal, lazy_all, way):
    laws.assert_same_law(lazy_all, laws.literal_runs(tiny, literal, True, RUNS), tiny.W, way)


def test_active_has_the_law_of_literal_active(tiny, literal, way):
    active = laws.compiled_runs(tiny, laws.law(perturbation=codes.ACTIVE), False, RUNS)
    laws.assert_same_law(active, laws.literal_runs(tiny, literal, False, RUNS), tiny.W, way)


@pytest.mark.parametrize("fault", [{"asleep": 1.02}, {"reach": 1.04}], ids=["asleep", "reach"])
def test_small_faults_would_show(tiny, literal, lazy_all, way, fault):
    """Sleeping weights that move 2% too far, and a candidate 4% too far away: this is how fine these eyes are."""
    wrong = laws.literal_runs(tiny, literal, True, RUNS, **fault)
    assert np.abs(laws.apart(lazy_all, wrong, tiny.W, way)).max() > 5


@pytest.mark.parametrize("gamma", [None, 0.7], ids=["map", "annealed"])
@pytest.mark.parametrize("rule", laws.ZEROTH)
def test_every_rule_has_the_mean_step_of_the_literal_algorithm(tiny, literal, rule, gamma):
    """Half a million steps each: entry by entry, and pooled along the step itself."""
    criterion = codes.MAP if gamma is None else codes.ANNEALED
    expected = laws.literal_mean_step(tiny, literal, 50, rule=rule, gamma=gamma)
    for perturbation in (codes.ACTIVE, codes.SCORE):
        settings = laws.law(laws.ZEROTH.index(rule), perturbation, criterion, gamma=gamma or 1.0)
        compiled = laws.mean_step(tiny, settings, 500_000)
        laws.assert_same_mean(compiled, expected)
        (found, error), (true, other) = laws.along(compiled, expected[0]), laws.along(expected, expected[0])
        assert abs(found - true) < 6 * np.hypot(error, other)
        assert true > 30 * np.hypot(error, other)
