"""Settings: every combination works or is refused when it is made, and each setting reaches the loop."""

from __future__ import annotations

import math

import pytest

from sparsezo.errors import UsageError
from sparsezo.kernels import codes, loop
from sparsezo.settings import Settings, step_for_h
from sparsezo.tasks.registry import task_spec

RULE_NAMES = "two-point, symmetric, comparison, preference, baseline, first-order, pairwise, cross-entropy, "
RULE_NAMES += "supervised, part, label, span, review, pair, best, rate"
POSITIVE = "must be positive and finite"
FIRST_ORDER = {"rule": "first-order", "perturb": None, "mu": None}
SUPERVISED = {"rule": "supervised", "perturb": None, "mu": None}
PART, LABEL, PAIR, RATE = ({"rule": rule, "perturb": None, "mu": None} for rule in ("part", "label", "pair", "rate"))
ERROR = "write E below 0.5, or E0,E1 with a sum below 1, none below 0"
ASKING = "part, label, span, review, pair, best and rate"
ONE_ERROR = "only part and review have two kinds of error; give one number"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rule": "three-point"}, f"`rule` three-point: choose from {RULE_NAMES}"),
        ({"perturb": "some"}, "`perturb` some: choose from all, active, score"),
        ({"criterion": "mode"}, "`criterion` mode: choose from map, annealed"),
        ({"step": "adam"}, "`step` adam: choose from constant, adagrad"),
        ({"h": 0.0}, f"`h` 0.0: {POSITIVE}"),
        ({"h": math.nan}, f"`h` nan: {POSITIVE}"),
        ({"mu": 0.0}, f"`mu` 0.0: {POSITIVE}"),
        ({"gamma": 0.0}, f"`gamma` 0.0: {POSITIVE}"),
        ({"seed": -1}, "`seed` -1: must be a whole number from 0 to 2^63 - 1"),
        ({"seed": 2**63}, f"`seed` {2**63}: must be a whole number from 0 to 2^63 - 1"),
        ({"perturb": None}, "rule two-point perturbs the weights: give `perturb` and `mu`"),
        ({"mu": None}, "rule two-point perturbs the weights: give `perturb` and `mu`"),
        ({"rule": "first-order"}, "rule first-order perturbs nothing: leave out `perturb` and `mu`"),
        ({**FIRST_ORDER, "mu": 0.1}, "rule first-order perturbs nothing: leave out `perturb` and `mu`"),
        (
            {"perturb": "all", "step": "adagrad"},
            "`step` adagrad with `perturb` all would move every weight at every step; use active or score",
        ),
        ({"baseline": True}, "`baseline` belongs to rule first-order, not to two-point"),
        (
            {**FIRST_ORDER, "criterion": "annealed"},
            "rule first-order has a criterion of its own: leave out `criterion` annealed",
        ),
        ({"feedback": "flip:0.1"}, "`feedback` flip:0.1 is of comparisons; rule two-point asks for losses"),
        ({**SUPERVISED, "feedback": "binary"}, "`feedback` binary: rule supervised sees the correct output, no rater"),
        (
            {"feedback": "loud"},
            "`feedback` loud: write exact, binary, flip:P with P from 0 to 1, "
            "or rating:K[,NOISE,BIAS] with K from 2 to 1000",
        ),
        ({**PART, "perturb": "score"}, "rule part perturbs nothing: leave out `perturb` and `mu`"),
        ({"about": "chunk"}, f"`about` belongs to {ASKING}, not to rule two-point"),
        ({"ask": "random"}, f"`ask` belongs to {ASKING}, not to rule two-point"),
        (
            {"rule": "preference", "rater_error": "0.1"},
            f"`rater_error` belongs to {ASKING}, not to rule preference",
        ),
        ({**PART, "about": "word"}, "`about` word: choose from token, chunk"),
        ({**PART, "ask": "often"}, "`ask` often: choose from unsure, random"),
        ({**PAIR, "about": "chunk"}, "`about` chunk belongs to part and label; rule pair shows whole outputs"),
        ({**PART, "rehearse": -1}, "`rehearse` -1: must be a whole number, 0 or more"),
        ({**PART, "rehearse": 10**6}, "`rehearse` 1000000: must be at most 10,000"),
        *[
            ({**PART, "rater_error": e}, f"`rater_error` {e}: {ERROR}")
            for e in ("0.5", "-0.1", "nan", "", "1,2,3", "x")
        ],
        ({**PART, "rater_error": "0.6,0.4"}, f"`rater_error` 0.6,0.4: {ERROR}"),
        ({**LABEL, "rater_error": "0.1,0.2"}, f"`rater_error` 0.1,0.2: {ONE_ERROR}"),
        ({**RATE, "rater_error": "0.1"}, "`rater_error` 0.1: rule rate takes losses, which are not right or wrong"),
        ({**RATE, "feedback": "flip:0.1"}, "`feedback` flip:0.1 is of comparisons; rule rate asks for losses"),
        ({**PART, "feedback": "binary"}, "`feedback` binary is of losses; rule part takes yes or no"),
        ({**PAIR, "feedback": "rating:5"}, "`feedback` rating:5 is of losses; rule pair takes first, second or tie"),
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
        {"seed": 2**63 - 1},
        {"h": 1e-300, "mu": 1e300, "gamma": 1e-9},
        {**FIRST_ORDER, "feedback": "binary"},
        {**FIRST_ORDER, "feedback": "rating:5"},
        {"rule": "preference", "feedback": "flip:0.1"},
        {"rule": "symmetric", "criterion": "annealed", "gamma": 3.0},
        {"feedback": "binary", "criterion": "annealed"},
        {**PART, "about": "chunk", "ask": "random", "rater_error": "0.1,0.3", "rehearse": 10, "feedback": "flip:0.1"},
        {**LABEL, "about": "chunk", "rater_error": "0.2", "feedback": "flip:1"},
        {**PAIR, "rater_error": "0.49", "step": "adagrad"},
        {**RATE, "feedback": "rating:5", "rehearse": 1},
        {**RATE, "feedback": "binary"},
    ],
    ids=str,
)
def test_what_is_taken(change):
    """Beside what test_learner.py learns with."""
    settings = Settings(**change)
    assert {name: getattr(settings, name) for name in change} == change


# What reaches the loop


def test_every_setting_reaches_the_law():
    settings = Settings(
        "symmetric", "active", 0.25, 0.5, "adagrad", "annealed", gamma=3, seed=12, feedback="rating:7,0.2,0.3"
    )
    law = settings.step_params()
    learned, told = (codes.SYMMETRIC, codes.ACTIVE, codes.ANNEALED, 0, 0.25, 0.5, 3.0), (codes.RATING, 0.2, 0.3, 7)
    asked = (codes.ABOUT_TOKEN, codes.UNSURE, 0.0, 0.0, 0)
    assert law.points.tolist() == [1.0, -1.0]
    assert law._replace(keys=None, points=None) == loop.StepParams(*learned, *told, *asked, None, None, 1.0, -1.0)
    assert all(type(value) is float for value in (law.h, law.mu, law.gamma, law.noise, law.bias))
    assert all(type(value) is int for value in (law.rule, law.perturbation, law.criterion, law.control, law.levels))
    assert Settings(**settings.as_dict()) == settings
    told = {"exact": codes.EXACT, "binary": codes.BINARY, "rating:5": codes.RATING, "flip:0.1": codes.FLIP}
    for text, code in told.items():
        assert (
            Settings("comparison" if code == codes.FLIP else "baseline", feedback=text).step_params().feedback == code
        )


@pytest.mark.parametrize(("name", "value"), [("batch", 4), ("samples", 2), ("antithetic", True)])
def test_what_earlier_versions_had_is_refused_but_for_its_default(name, value):
    with pytest.raises(UsageError, match=rf"`{name}` is gone: it did not pay; docs/scaling.md says why"):
        Settings.complete({name: value})
    with pytest.raises(UsageError, match=f"`{name}` is gone"):
        Settings.from_dict({name: value}, "a session")
    old = {**Settings().as_dict(), "batch": 1, "samples": 1, "antithetic": False}
    assert Settings.from_dict(old, "a session") == Settings.complete(old) == Settings()


def test_what_is_asked_reaches_the_law():
    law = Settings(**PART, about="chunk", ask="random", rater_error="0.1,0.3", rehearse=10).step_params()
    assert (law.rule, law.about, law.ask) == (codes.PART, codes.ABOUT_CHUNK, codes.AT_RANDOM)
    assert (law.e0, law.e1, law.rehearse) == (0.1, 0.3, 10)
    review = Settings(**{**PART, "rule": "review"}, review="auto", seconds="1,0.25,2,3")
    assert (review.step_params().about, review.step_params().seconds) == (codes.ABOUT_EITHER, (1.0, 0.25, 2.0, 3.0))
    assert (review.as_dict()["review"], review.as_dict()["seconds"]) == ("auto", "1,0.25,2,3")
    law = Settings(**LABEL, rater_error="0.2").step_params()
    assert (law.rule, law.about, law.ask, law.e0, law.e1) == (codes.LABEL, codes.ABOUT_TOKEN, codes.UNSURE, 0.2, 0.2)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"bogus": 1}, "`bogus` is no setting of a learner; there are rule, perturb, h, mu, step"),
        ({3: 1}, "`3` is no setting of a learner"),
        ({"rule": "first-order", "step": "adagzad"}, "`step` adagzad: choose from constant, adagrad"),
        ({"rule": ["part"]}, "`rule` ['part']: choose from"),
        ({"step": {}}, "`step` {}: choose from"),
        ({"perturb": ["all"]}, "`perturb` ['all']: choose from"),
        ({"criterion": ["map"]}, "`criterion` ['map']: choose from"),
    ],
)
@pytest.mark.parametrize("task", ["chunking", "text", "rerank", None])
def test_what_is_no_setting_is_refused_before_defaults_are_looked_up(given, message, task):
    with pytest.raises(UsageError) as caught:
        Settings.complete(given, task_spec(task).defaults if task else None)
    assert str(caught.value).startswith(message)


def test_rules_that_ask_take_adagrad_unless_told_otherwise():
    def defaults(rule, step, perturb):
        return (2.0 if step == "adagrad" else 1.0), 0.1

    settings = Settings.complete({"rule": "part"}, defaults)
    assert (settings.step, settings.h, settings.mu, settings.perturb) == ("adagrad", 2.0, None, None)
    assert Settings.complete({"rule": "part", "step": "constant"}, defaults).h == 1.0
    assert Settings.complete({"rule": "first-order"}, defaults).step == "constant"
    assert str(settings) == "part, h 2, adagrad, seed 0"
    assert set(settings.as_dict()) - set(Settings().as_dict()) == {"about", "ask", "rater_error", "rehearse"}
    everything = Settings(**PART, about="chunk", ask="random", rater_error="0.1", rehearse=5)
    assert everything.name == "part about a chunk asked at random error 0.1 rehearsing 5"


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


def test_runs_that_are_not_free_of_scale():
    """Of the others test_learner.py shows that they are, by doubling their weights."""
    assert not Settings(criterion="annealed").scale_free
    assert not Settings("first-order", None, 0.1, None).scale_free
    assert not Settings("supervised", None, 0.1, None).scale_free


# Which step an h is for


@pytest.mark.parametrize(
    ("task", "given", "step", "remark"),
    [
        ("chunking", {}, "adagrad", ""),
        ("chunking", {"h": 0.001}, "constant", "`h` 0.001 is for constant steps (usually 0.001), and these are taken;"),
        ("chunking", {"h": 0.0049}, "constant", "with `step` adagrad it is usually 0.05"),
        ("chunking", {"h": 0.0051}, "adagrad", ""),
        ("chunking", {"h": 0.001, "step": "adagrad"}, "adagrad", ""),
        ("chunking", {"h": 0.001, "step": "constant"}, "constant", ""),
        ("chunking", {"rule": "first-order", "h": 0.005}, "constant", "(usually 0.01), and these are taken"),
        ("chunking", {"perturb": "active"}, "constant", ""),
        ("chunking", {"perturb": "active", "h": 0.001}, "constant", ""),
        ("chunking", {"perturb": "active", "step": "adagrad"}, "adagrad", ""),
        ("chunking", {"perturb": "all", "h": 0.001}, "constant", ""),
        (
            "chunking",
            {"rule": "part", "h": 0.001},
            "adagrad",
            "`h` 0.001 is small for Adagrad's steps, which rule part h",
        ),
        ("chunking", {"rule": "part", "h": 0.1}, "adagrad", ""),
        ("text", {"perturb": "active"}, "adagrad", ""),
        ("text", {"h": 0.01}, "constant", "with `step` adagrad it is usually auto"),
        ("rerank", {"h": 1e-5}, "constant", ""),
    ],
)
def test_an_h_gets_the_step_that_it_is_for(task, given, step, remark):
    settings = Settings.complete(given, *task_spec(task).usual)
    assert settings.step == step
    said = step_for_h(given, *task_spec(task).usual)
    assert (remark in said) if remark else said is None
    assert settings.h == given.get("h", settings.h)
    usual = task_spec(task).defaults(settings.rule, step, settings.perturb)
    assert settings.mu == (None if settings.perturb is None else usual[1])
