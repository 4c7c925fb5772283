"""What raters say of a loss: number by number against plain Python, by hand where it can be done, and in law."""

from __future__ import annotations

import literal
import numpy as np
import pytest
from scipy import stats

from sparsezo.kernels import codes, random
from sparsezo.kernels import raters as feedback
from sparsezo.kernels.codes import BINARY, EXACT, FLIP, RATING
from sparsezo.kernels.raters import RATERS

DRAWS = 20_000
FINE = 1_000_001  # so many grades that none rounds


def key_of(seed):
    return random.stream_key(seed, random.FEEDBACK)


KEY = key_of(3)


def told(model, F, noise=0.0, bias=0.0, levels=FINE, other=0, draws=DRAWS, key=KEY):
    return np.array([feedback.perceived(model, noise, bias, levels, key, k, k, F, other) for k in range(draws)])


def flips(model, noise):
    return np.array([feedback.flipped(model, noise, KEY, k) for k in range(DRAWS)])


# ---- number by number ----


@pytest.mark.parametrize("model", [EXACT, FLIP, RATING, BINARY], ids=["exact", "flip", "rating", "binary"])
def test_what_is_told_equals_its_twin(model):
    rng = np.random.default_rng(model)
    tried = 0
    for _ in range(500):
        law = literal.some_law(rng, 0, codes.SCORE, model=model)
        step, F = int(rng.integers(10**6)), float(rng.choice([0.0, 0.2, 1 / 3, 0.5, 0.8, 1.0]))
        key = law.keys[random.FEEDBACK]
        for other in (0, 1):
            try:
                expected = literal.told(law, step, F, bool(other))
            except literal.UnclearError:
                continue
            said = feedback.perceived(model, law.noise, law.bias, law.levels, key, step, step, F, other)
            assert said == pytest.approx(expected, abs=1e-12)
            tried += 1
        assert feedback.flipped(model, law.noise, key, step) == literal.wrong_way_round(law, step)
    assert tried > 950


@pytest.mark.parametrize(
    ("F", "levels", "grade"),
    [
        (0.6, 5, 0.5),
        (0.63, 5, 0.75),
        (0.12, 5, 0.0),
        (0.13, 5, 0.25),
        (0.375, 5, 0.5),  # halfway: to the even one, the second
        (0.125, 5, 0.0),
        (0.49, 2, 0.0),
        (0.51, 2, 1.0),
        (0.4, 3, 0.5),
        (1.0, 4, 1.0),
    ],
)
def test_grades_without_noise_are_the_nearest(F, levels, grade):
    assert set(told(RATING, F, levels=levels, draws=20)) == {grade}


def test_grades_stay_between_0_and_1():
    grades = told(RATING, 0.9, noise=2.0, bias=1.0, levels=5)
    assert set(grades) == {0.0, 0.25, 0.5, 0.75, 1.0}


def test_the_exact_rater_and_one_who_only_compares_tell_the_loss():
    for model in (EXACT, FLIP):
        assert set(told(model, 0.37, noise=0.5, bias=0.5, levels=5, draws=50)) == {0.37}


# ---- in law ----


def test_a_rater_has_one_bias_for_candidate_and_rival_and_for_ever():
    first, second = (told(RATING, 0.5, bias=0.05, other=other) for other in (0, 1))
    np.testing.assert_array_equal(first, second)
    values, counts = np.unique(first, return_counts=True)
    assert len(values) == RATERS == 20
    assert stats.chisquare(counts).pvalue > 1e-7  # and all are asked equally often


def test_biases_are_normal_with_the_spread_asked_for():
    biases = np.concatenate([np.unique(told(RATING, 0.5, bias=0.05, draws=150, key=key_of(s))) for s in range(150)])
    standard = (biases - 0.5) / 0.05
    assert len(standard) > 2900
    assert abs(standard.mean()) < 6 / np.sqrt(len(standard))
    assert abs(standard.var() - 1) < 6 * np.sqrt(2 / len(standard))
    assert stats.kstest(standard, "norm").pvalue > 1e-7


def test_noise_is_normal_with_the_spread_asked_for_and_anew_for_candidate_and_rival():
    both = [(told(RATING, 0.5, noise=0.08, other=other) - 0.5) / 0.08 for other in (0, 1)]
    for standard in both:
        assert abs(standard.mean()) < 6 / np.sqrt(DRAWS)
        assert abs(standard.var() - 1) < 6 * np.sqrt(2 / DRAWS)
        assert stats.kstest(standard, "norm").pvalue > 1e-7
    assert abs((both[0] * both[1]).mean()) < 6 / np.sqrt(DRAWS)
    assert abs((both[0][1:] * both[0][:-1]).mean()) < 6 / np.sqrt(DRAWS)


def test_noise_and_bias_add_up():
    """Over seeds the answers of one step are normal with both variances."""
    said = np.array([feedback.perceived(RATING, 0.06, 0.08, FINE, key_of(s), 5, 5, 0.5, 0) for s in range(8000)])
    assert said.var() == pytest.approx(0.06**2 + 0.08**2, rel=6 * np.sqrt(2 / 8000))
    assert stats.kstest((said - 0.5) / 0.1, "norm").pvalue > 1e-7


@pytest.mark.parametrize("F", [0.0, 0.3, 0.8, 1.0])
def test_binary_is_right_on_average_and_independently_of_the_rival(F):
    first, second = (told(BINARY, F, other=other) for other in (0, 1))
    for answers in (first, second):
        assert set(answers) <= {0.0, 1.0}
        assert abs(answers.mean() - F) <= 5 * np.sqrt(F * (1 - F) / DRAWS)  # 5 standard errors
    assert abs(((first - F) * (second - F)).mean()) <= 5 * F * (1 - F) / np.sqrt(DRAWS)


def test_flips_are_as_frequent_as_asked_for():
    for noise in (0.0, 0.2, 1.0):
        assert abs(flips(FLIP, noise).mean() - noise) <= 5 * np.sqrt(noise * (1 - noise) / DRAWS)


@pytest.mark.parametrize("model", [EXACT, RATING, BINARY])
def test_only_flip_answers_the_wrong_way_round(model):
    assert not flips(model, 0.5).any()


def test_what_is_drawn_for_one_thing_is_not_drawn_for_another():
    """Who answers, how they are disposed, two thumbs and a flip: all uncorrelated."""
    ranks = [
        told(RATING, 0.5, bias=0.05),
        told(RATING, 0.5, noise=0.05),
        told(RATING, 0.5, noise=0.05, other=1),
        told(BINARY, 0.5),
        told(BINARY, 0.5, other=1),
        flips(FLIP, 0.5).astype(float),
    ]
    correlations = np.corrcoef(ranks) - np.eye(len(ranks))
    assert np.abs(correlations).max() < 6 / np.sqrt(DRAWS)
