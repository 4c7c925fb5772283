"""Settings: every combination works or is refused when it is made, and each setting reaches the loop."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from sparsezo.errors import DataError, SparsezoError, UsageError
from sparsezo.kernels import codes, random
from sparsezo.perturbations import PERTURBATIONS
from sparsezo.rules import RULES
from sparsezo.settings import CRITERIA, STEPS, Settings

RULE_NAMES = "two-point, symmetric, comparison, preference, baseline, first-order, supervised"
POSITIVE = "must be positive and finite"
FIRST_ORDER = {"rule": "first-order", "perturb": None, "mu": None}
SUPERVISED = {"rule": "supervised", "perturb": None, "mu": None}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rule": "three-point"}, f"`rule` three-point: choose from {RULE_NAMES}"),
        ({"perturb": "some"}, "`perturb` some: choose from all, active, score"),
        ({"criterion": "mode"}, "`criterion` mode: choose from map, annealed"),
        ({"step": "adam"}, "`step` adam: choose from constant, adagrad"),
        ({"h": 0.0}, f"`h` 0.0: {POSITIVE}"),
        ({"h": -0.5}, f"`h` -0.5: {POSITIVE}"),
        ({"h": math.nan}, f"`h` nan: {POSITIVE}"),
        ({"h": math.inf}, f"`h` inf: {POSITIVE}"),
        ({"mu": 0.0}, f"`mu` 0.0: {POSITIVE}"),
        ({"mu": -1.0}, f"`mu` -1.0: {POSITIVE}"),
        ({"mu": math.inf}, f"`mu` inf: {POSITIVE}"),
        ({"gamma": 0.0}, f"`gamma` 0.0: {POSITIVE}"),
        ({"gamma": -2.0}, f"`gamma` -2.0: {POSITIVE}"),
        ({"gamma": math.nan}, f"`gamma` nan: {POSITIVE}"),
        ({"seed": -1}, "`seed` -1: must be a whole number from 0 to 2^63 - 1"),
        ({"seed": 2**63}, f"`seed` {2**63}: must be a whole number from 0 to 2^63 - 1"),
        ({"perturb": None}, "rule two-point perturbs the weights: give `perturb` and `mu`"),
        ({"mu": None}, "rule two-point perturbs the weights: give `perturb` and `mu`"),
        ({"rule": "baseline", "mu": None}, "rule baseline perturbs the weights: give `perturb` and `mu`"),
        ({"rule": "first-order"}, "rule first-order perturbs nothing: leave out `perturb` and `mu`"),
        ({**FIRST_ORDER, "mu": 0.1}, "rule first-order perturbs nothing: leave out `perturb` and `mu`"),
        ({**SUPERVISED, "perturb": "all"}, "rule supervised perturbs nothing: leave out `perturb` and `mu`"),
        (
            {"perturb": "all", "step": "adagrad"},
            "`step` adagrad with `perturb` all would move every weight at every step; use active or score",
        ),
        ({"baseline": True}, "`baseline` belongs to rule first-order, not to two-point"),
        ({**SUPERVISED, "baseline": True}, "`baseline` belongs to rule first-order, not to supervised"),
        (
            {**FIRST_ORDER, "criterion": "annealed"},
            "rule first-order has a criterion of its own: leave out `criterion` annealed",
        ),
        ({"feedback": "flip:0.1"}, "`feedback` flip:0.1 is of comparisons; rule two-point asks for losses"),
        (
            {**FIRST_ORDER, "feedback": "flip:0"},
            "`feedback` flip:0 is of comparisons; rule first-order asks for losses",
        ),
        (
            {**SUPERVISED, "feedback": "binary"},
            "`feedback` binary: rule supervised sees the correct output, no rater",
        ),
        (
            {**SUPERVISED, "feedback": "rating:5"},
            "`feedback` rating:5: rule supervised sees the correct output, no rater",
        ),
        (
            {"feedback": "loud"},
            "`feedback` loud: write exact, binary, flip:P with P from 0 to 1, "
            "or rating:K[,NOISE,BIAS] with K from 2 to 1000",
        ),
    ],
)
def test_what_is_refused(change, message):
    with pytest.raises(UsageError) as caught:
        Settings(**change)
    assert str(caught.value) == message
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 0},
        {"seed": 2**63 - 1},
        {"h": 1e-300, "mu": 1e300, "gamma": 1e-9},
        {"perturb": "all"},
        {"perturb": "active", "step": "adagrad"},
        {"perturb": "score", "step": "adagrad"},
        {**FIRST_ORDER, "step": "adagrad", "baseline": True},
        {**FIRST_ORDER, "feedback": "binary"},
        {**FIRST_ORDER, "feedback": "rating:5"},
        {**SUPERVISED, "step": "adagrad"},
        {"rule": "comparison", "feedback": "flip:0.1"},
        {"rule": "preference", "feedback": "flip:0.1"},
        {"rule": "baseline", "feedback": "rating:5"},
        {"rule": "symmetric", "criterion": "annealed", "gamma": 3.0},
        {"feedback": "binary", "criterion": "annealed"},
    ],
    ids=str,
)
def test_what_is_taken(change):
    settings = Settings(**change)
    assert {name: getattr(settings, name) for name in change} == change


def test_the_plain_settings():
    plain = {
        "rule": "two-point",
        "perturb": "score",
        "h": 0.001,
        "mu": 0.1,
        "step": "constant",
        "criterion": "map",
        "gamma": 1.0,
        "baseline": False,
        "seed": 0,
        "feedback": "exact",
    }
    assert Settings().as_dict() == plain
    with pytest.raises(FrozenInstanceError):
        Settings().h = 1.0


def test_as_dict_has_every_setting():
    chosen = {
        "rule": "preference",
        "perturb": "active",
        "h": 0.25,
        "mu": 0.5,
        "step": "adagrad",
        "criterion": "annealed",
        "gamma": 3.0,
        "baseline": False,
        "seed": 12,
        "feedback": "flip:0.125",
    }
    assert Settings(**chosen).as_dict() == chosen
    assert Settings(**chosen) == Settings(**Settings(**chosen).as_dict())


# What reaches the loop


def without_keys(law):
    return {name: value for name, value in law._asdict().items() if name != "keys"}


def test_every_setting_reaches_the_law():
    settings = Settings(
        "symmetric",
        "active",
        h=0.25,
        mu=0.5,
        step="adagrad",
        criterion="annealed",
        gamma=3,
        seed=12,
        feedback="rating:7,0.2,0.3",
    )
    law = settings.step_params()
    assert without_keys(law) == {
        "rule": codes.SYMMETRIC,
        "perturbation": codes.ACTIVE,
        "criterion": codes.ANNEALED,
        "control": 0,
        "h": 0.25,
        "mu": 0.5,
        "gamma": 3.0,
        "feedback": codes.RATING,
        "noise": 0.2,
        "bias": 0.3,
        "levels": 7,
    }
    assert all(type(value) is float for value in (law.h, law.mu, law.gamma, law.noise, law.bias))
    assert all(type(value) is int for value in (law.rule, law.perturbation, law.criterion, law.control, law.levels))


def test_the_law_of_a_learner_that_perturbs_nothing():
    law = Settings("first-order", None, 2, None, baseline=True, gamma=5.0).step_params()
    assert without_keys(law) == {
        "rule": codes.FIRST_ORDER,
        "perturbation": codes.SCORE,
        "criterion": codes.MAP,
        "control": 1,
        "h": 2.0,
        "mu": 0.0,
        "gamma": 5.0,
        "feedback": codes.EXACT,
        "noise": 0.0,
        "bias": 0.0,
        "levels": 0,
    }
    assert type(law.h) is type(law.mu) is float


@pytest.mark.parametrize(
    ("text", "code", "noise"), [("exact", codes.EXACT, 0), ("binary", codes.BINARY, 0), ("flip:0.25", 1, 0.25)]
)
def test_raters_reach_the_law(text, code, noise):
    law = Settings("comparison", feedback=text).step_params()
    assert (law.feedback, law.noise, law.bias, law.levels) == (code, noise, 0.0, 0)


def test_every_rule_perturbation_and_criterion_has_its_code():
    """Numbers that compiled code and saved runs share."""
    zeroth = ("two-point", "symmetric", "comparison", "preference", "baseline")
    assert [Settings(rule).step_params().rule for rule in zeroth] == [0, 1, 2, 3, 4]
    assert [Settings(rule, None, 1.0, None).step_params().rule for rule in ("first-order", "supervised")] == [5, 6]
    assert [Settings(perturb=perturb).step_params().perturbation for perturb in ("all", "active", "score")] == [0, 1, 2]
    assert [Settings(criterion=criterion).step_params().criterion for criterion in ("map", "annealed")] == [0, 1]
    assert CRITERIA == {"map": codes.MAP, "annealed": codes.ANNEALED}
    assert STEPS == ("constant", "adagrad")
    raters = (codes.EXACT, codes.FLIP, codes.RATING, codes.BINARY)
    assert len(set(raters)) == 4


def splitmix_key(seed, stream):
    """The key of a stream in plain integers."""
    gamma, mask = 0x9E3779B97F4A7C15, 2**64 - 1

    def mix(z):
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return z ^ (z >> 31)

    return mix((mix((seed + gamma) & mask) + (stream + 1) * gamma) & mask)


@pytest.mark.parametrize("seed", [0, 12, 2**63 - 1])
def test_each_stream_has_a_key_of_its_own_from_the_seed(seed):
    keys = Settings(seed=seed).step_params().keys
    assert keys.dtype == np.uint64
    assert keys.tolist() == [splitmix_key(seed, stream) for stream in range(6)]
    assert len(set(keys.tolist())) == 6
    assert not set(keys.tolist()) & set(Settings(seed=seed // 2 + 1).step_params().keys.tolist())
    streams = (random.INPUTS, random.PERTURBATION, random.COMPLEMENT, random.DEBT, random.OUTPUT, random.FEEDBACK)
    assert streams == (0, 1, 2, 3, 4, 5)


# What a run is said to be


def test_the_signature_says_what_differs_from_the_plain_run():
    assert str(Settings()) == "two-point, score, h 0.001, mu 0.1, seed 0"
    first_order = Settings("first-order", None, 0.1, None, step="adagrad", baseline=True, seed=7)
    assert str(first_order) == "first-order, h 0.1, adagrad, baseline, seed 7"
    everything = Settings("preference", "active", 1e-5, 2.0, "adagrad", "annealed", 2.5, False, 3, "flip:0.1")
    assert (
        str(everything) == "preference, active, h 1e-05, mu 2, adagrad, annealed gamma 2.5, feedback flip:0.1, seed 3"
    )
    assert str(Settings(gamma=2.0)) == str(Settings())  # map has no use for it


def test_only_plain_zeroth_order_runs_under_map_are_free_of_scale():
    assert Settings().scale_free
    assert all(Settings(rule).scale_free for rule in ("symmetric", "comparison", "preference", "baseline"))
    assert Settings(perturb="all").scale_free
    assert not Settings(criterion="annealed").scale_free
    assert not Settings(step="adagrad").scale_free
    assert not Settings("first-order", None, 0.1, None).scale_free
    assert not Settings("supervised", None, 0.1, None).scale_free


# Rules, perturbations, errors


def test_what_each_rule_compares_and_asks_for():
    said = {name: (rule.name, rule.zeroth_order, rule.incumbent, rule.feedback) for name, rule in RULES.items()}
    assert said == {
        "two-point": ("two-point", True, "w", "the losses of the two outputs"),
        "symmetric": ("symmetric", True, "w - mu u", "the losses of the two outputs"),
        "comparison": ("comparison", True, "w", "whether the candidate is better"),
        "preference": ("preference", True, "w", "which output is better"),
        "baseline": ("baseline", True, None, "the loss of the output"),
        "first-order": ("first-order", False, None, "the loss of the output"),
        "supervised": ("supervised", False, None, "the correct output"),
    }
    assert [rule.code for rule in RULES.values()] == [
        codes.TWO_POINT,
        codes.SYMMETRIC,
        codes.COMPARISON,
        codes.PREFERENCE,
        codes.BASELINE,
        codes.FIRST_ORDER,
        codes.SUPERVISED,
    ]


def test_perturbations_have_their_codes():
    found = {name: (perturbation.name, perturbation.code) for name, perturbation in PERTURBATIONS.items()}
    assert found == {"all": ("all", codes.ALL), "active": ("active", codes.ACTIVE), "score": ("score", codes.SCORE)}
    assert all(part.summary for part in (*PERTURBATIONS.values(), *RULES.values()))


def test_errors_carry_their_exit_code_and_place():
    assert (SparsezoError("x").exit_code, DataError("a:3", "is odd").exit_code, UsageError("x").exit_code) == (1, 1, 2)
    assert str(DataError("a:3", "is odd")) == "a:3: is odd"
    assert issubclass(DataError, SparsezoError)
    assert issubclass(UsageError, SparsezoError)
    assert not issubclass(UsageError, DataError)


def test_replacing_a_setting_checks_again():
    with pytest.raises(UsageError, match="`h` -1"):
        replace(Settings(), h=-1.0)
