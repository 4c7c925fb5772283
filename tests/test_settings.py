"""Settings: every combination works or is refused when it is made."""

from __future__ import annotations

import math

import pytest

from sparsezo.errors import UsageError
from sparsezo.settings import Settings


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rule": "three-point"}, "--rule three-point: choose from two-point, symmetric"),
        ({"perturb": "some"}, "--perturb some: choose from all, active, score"),
        ({"criterion": "mode"}, "--criterion mode: choose from map, annealed"),
        ({"step": "adam"}, "--step adam: choose from constant, adagrad"),
        ({"h": 0.0}, "--h 0.0: must be positive and finite"),
        ({"h": math.nan}, "--h nan: must be positive"),
        ({"mu": -1.0}, "--mu -1.0: must be positive"),
        ({"mu": math.inf}, "--mu inf: must be positive"),
        ({"gamma": 0.0}, "--gamma 0.0: must be positive"),
        ({"gamma": -2.0}, "--gamma -2.0: must be positive"),
        ({"seed": -1}, "--seed -1: must be a whole number"),
        ({"perturb": None}, "perturbs the weights: give --perturb"),
        ({"mu": None}, "perturbs the weights: give --perturb and --mu"),
        ({"rule": "first-order"}, "first-order perturbs nothing: leave out --perturb"),
        ({"rule": "supervised", "perturb": None}, "supervised perturbs nothing"),
        ({"perturb": "all", "step": "adagrad"}, "adagrad with --perturb all"),
        ({"baseline": True}, "--baseline belongs to rule first-order"),
        (
            {"rule": "first-order", "perturb": None, "mu": None, "criterion": "annealed"},
            "first-order has a criterion of its own",
        ),
    ],
)
def test_what_is_refused(change, message):
    with pytest.raises(UsageError) as caught:
        Settings(**change)
    assert message in str(caught.value)
    assert caught.value.exit_code == 2


def test_the_signature_says_what_differs_from_the_plain_run():
    assert str(Settings()) == "two-point, score, h 0.001, mu 0.1, seed 0"
    plain = Settings("first-order", None, 0.1, None, step="adagrad", baseline=True, seed=7)
    assert str(plain) == "first-order, h 0.1, adagrad, baseline, seed 7"
    assert "annealed gamma 2" in str(Settings(criterion="annealed", gamma=2.0))
