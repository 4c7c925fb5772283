"""Estimates of what a model would get, by a log: against enumeration, and their coverage."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from sparsezo.errors import UsageError
from sparsezo.off_policy import (
    doubly_robust,
    effective_size,
    ips,
    misfit,
    predicted_rewards,
    snips,
    standard_error,
)

SHOWN = np.array([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3]])  # the logging system: inputs x outputs
GOOD = np.array([[0.9, 0.2, 0.4], [0.3, 0.5, 0.8]])  # the probability of a thumb up
CHOSEN = np.array([1, 2])  # by the model that is evaluated
TRUTH = GOOD[np.arange(2), CHOSEN].mean()


def events():
    """(probability, weight, reward, x, y) of all lines that there may be."""
    for x, y, r in itertools.product(range(2), range(3), (0, 1)):
        chance = 0.5 * SHOWN[x, y] * (GOOD[x, y] if r else 1 - GOOD[x, y])
        yield chance, (y == CHOSEN[x]) / SHOWN[x, y], float(r), x, y


def test_inverse_propensities_are_unbiased_by_enumeration():
    predictions = np.array([[0.3, 0.9, 0.1], [0.7, 0.2, 0.6]])  # any at all
    mean = robust = weight = 0.0
    for one, other in itertools.product(list(events()), repeat=2):  # logs of two lines
        chance, (w, r) = one[0] * other[0], (np.array([a, b]) for a, b in ((one[1], other[1]), (one[2], other[2])))
        of_shown = np.array([predictions[each[3], each[4]] for each in (one, other)])
        of_chosen = np.array([predictions[each[3], CHOSEN[each[3]]] for each in (one, other)])
        mean += chance * ips(w, r).value
        robust += chance * doubly_robust(w, r, of_shown, of_chosen).value
        weight += chance * w.mean()
    assert mean == pytest.approx(TRUTH, abs=1e-12)
    assert robust == pytest.approx(TRUTH, abs=1e-12)
    assert weight == pytest.approx(1, abs=1e-12)


def test_wrong_propensities_bias_them_and_the_mean_weight_shows_it():
    wrong = SHOWN**0.5
    mean = sum(chance * (y == CHOSEN[x]) / wrong[x, y] * r for chance, _, r, x, y in events())
    weight = sum(chance * (y == CHOSEN[x]) / wrong[x, y] for chance, _, _, x, y in events())
    assert abs(mean - TRUTH) > 0.05
    assert abs(weight - 1) > 0.2


def drawn(n: int, chance: np.random.Generator):
    x = chance.integers(2, size=n)
    y = np.array([chance.choice(3, p=SHOWN[k]) for k in x])
    r = (chance.random(n) < GOOD[x, y]).astype(float)
    return (y == CHOSEN[x]) / SHOWN[x, y], r, x, y


def test_self_normalised_estimates_are_means_of_rewards():
    w, r, *_ = drawn(200, np.random.default_rng(0))
    found = snips(w, r)
    assert snips(7 * w, r) == pytest.approx(found)
    assert snips(w, 0.5 * r + 0.25).value == pytest.approx(0.5 * found.value + 0.25)
    assert ips(w, 0.5 * r + 0.25).value != pytest.approx(0.5 * ips(w, r).value + 0.25, abs=1e-3)
    assert snips(w, np.ones(200)).value == 1.0
    assert 0 <= found.low < found.value < found.high <= 1
    alike = snips(w, np.ones(200))
    assert alike.low < 0.99  # though all rewards seen are 1
    assert np.isnan(snips(np.zeros(3), np.ones(3)).value)
    assert snips(np.zeros(3), np.ones(3))[1:] == (0.0, 1.0)
    assert snips(np.ones(400), np.arange(400) % 2.0).low == pytest.approx(0.5 - 1.96 * 0.5 / 20, abs=1e-3)


def test_the_interval_of_a_ratio_is_that_of_its_linearisation():
    """A few heavy lines are good, many light ones bad: the number of lines in effect alone would not know."""
    w, r = np.repeat([10.0, 1.0], [100, 9000]), np.repeat([1.0, 0.0], [100, 9000])
    half = 1.96 * np.sqrt((w**2 * (r - 0.1) ** 2).sum()) / w.sum()
    found = snips(w, r)
    assert found.value == pytest.approx(0.1)
    assert found.high - found.low == pytest.approx(2 * half, rel=0.01)
    assert half > 2 * 1.96 * np.sqrt(0.09 / effective_size(w))


def test_intervals_have_the_truth_in_them():
    chance, times = np.random.default_rng(1), 400
    found = dict.fromkeys(("ips", "snips", "doubly_robust"), 0)
    for _ in range(times):
        w, r, x, y = drawn(150, chance)
        known = GOOD + 0.1
        made = {
            "ips": ips(w, r),
            "snips": snips(w, r),
            "doubly_robust": doubly_robust(w, r, *predicted_rewards(r, known[x, y], known[x, CHOSEN[x]])),
        }
        for name, each in made.items():
            found[name] += each.low <= TRUTH <= each.high
    error = (0.95 * 0.05 / times) ** 0.5
    for name, count in found.items():
        assert count / times == pytest.approx(0.95, abs=4 * error), name


def test_predictions_make_doubly_robust_estimates_scatter_less():
    w, r, x, y = drawn(2000, np.random.default_rng(2))
    assert _width(doubly_robust(w, r, *predicted_rewards(r, GOOD[x, y], GOOD[x, CHOSEN[x]]))) < 0.9 * _width(ips(w, r))


def _width(estimate) -> float:
    return estimate.high - estimate.low


def test_no_prediction_has_seen_its_own_reward():
    chance = np.random.default_rng(3)
    r, known = chance.random(11), chance.random(11)
    before = predicted_rewards(r, known, known)[0]
    for k in range(11):
        changed = r.copy()
        changed[k] = 1 - r[k]
        assert predicted_rewards(changed, known, known)[0][k] == before[k]
    assert np.isfinite(predicted_rewards(r[:1], known[:1], known[:1])).all()


def test_effective_size_and_misfit():
    assert effective_size(np.ones(7)) == pytest.approx(7)
    assert effective_size(np.array([1e6, 1.0, 1.0])) == pytest.approx(1, abs=1e-5)
    assert effective_size(np.zeros(3)) == 0.0
    weights = np.array([0.0, 2.0] * 50)
    assert misfit(weights) == 0.0
    assert misfit(1.5 * weights) == pytest.approx(0.5 / standard_error(1.5 * weights))
    assert misfit(np.ones(1)) == 0.0


@pytest.mark.parametrize(
    ("weights", "rewards"),
    [([], []), ([1.0], [1.0, 0.0]), ([np.nan], [1.0]), ([1.0], [np.inf]), ([-1.0], [1.0])],
)
def test_what_is_no_weight_is_refused(weights, rewards):
    for estimate in (ips, snips):
        with pytest.raises(UsageError):
            estimate(np.array(weights), np.array(rewards))
