"""What raters say of a loss: number by number against plain Python, and by hand where it can be done."""

from __future__ import annotations

import literal
import numpy as np
import pytest

from sparsezo.kernels import codes, random
from sparsezo.kernels import raters as feedback
from sparsezo.kernels.codes import BINARY, EXACT, FLIP, RATING


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
            said = feedback.perceived(model, law.noise, law.bias, law.levels, key, step, F, other)
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
    key = random.stream_key(3, random.FEEDBACK)
    assert {feedback.perceived(RATING, 0.0, 0.0, levels, key, k, F, 0) for k in range(20)} == {grade}


# ---- in law ----
