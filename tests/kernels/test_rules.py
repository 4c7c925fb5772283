"""The coefficient c of every rule, against DESIGN 2's table written out."""

from __future__ import annotations

import numpy as np
import pytest

from sparsezo.kernels import codes
from sparsezo.kernels import coefficient as rules

H, MU = 0.03, 0.2
LOSSES = [0.0, 0.2, 1 / 3, 0.5, 1.0]


def expected(rule, plus, other, mean):
    return {
        codes.TWO_POINT: -H * (plus - other) / MU,
        codes.SYMMETRIC: -H * (plus - other) / (2 * MU),
        codes.COMPARISON: H / MU if plus < other else 0.0,
        codes.PREFERENCE: H / MU * np.sign(other - plus),
        codes.BASELINE: -H * (plus - mean) / MU,
        codes.FIRST_ORDER: -H * (plus - mean),
        codes.SUPERVISED: H,
        codes.PAIRWISE: -H * max(plus - other, 0),
        codes.CROSS_ENTROPY: H * (1 - plus),
    }[rule]


@pytest.mark.parametrize("rule", [*range(7), codes.PAIRWISE, codes.CROSS_ENTROPY])
def test_coefficient(rule):
    for plus in LOSSES:
        for other in LOSSES:
            for mean in [0.0, 0.4]:
                c = rules.coefficient(rule, H, MU, plus, other, mean)
                assert c == pytest.approx(expected(rule, plus, other, mean), rel=1e-14, abs=1e-16)


@pytest.mark.parametrize("rule", [codes.TWO_POINT, codes.SYMMETRIC, codes.COMPARISON, codes.PREFERENCE, codes.PAIRWISE])
def test_equal_losses_move_nothing(rule):
    for loss in LOSSES:
        assert rules.coefficient(rule, H, MU, loss, loss, 0.7) == 0


def test_the_rules_have_numbers_of_their_own():
    names = ["TWO_POINT", "SYMMETRIC", "COMPARISON", "PREFERENCE", "BASELINE", "FIRST_ORDER", "SUPERVISED"]
    assert [getattr(codes, name) for name in names] == list(range(7))  # saved runs rely on them
    names = ["PART", "LABEL", "PAIR", "RATE", "PAIRWISE", "CROSS_ENTROPY"]
    assert [getattr(codes, name) for name in names] == list(range(7, 13))
