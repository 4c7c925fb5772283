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
from sparsezo.settings import CRITERIA, STEPS, Settings, step_for_h
from sparsezo.tasks.registry import kind

RULE_NAMES = "two-point, symmetric, comparison, preference, baseline, first-order, pairwise, cross-entropy, "
RULE_NAMES += "supervised, part, label, span, pair, rate"
POSITIVE = "must be positive and finite"
FIRST_ORDER = {"rule": "first-order", "perturb": None, "mu": None}
SUPERVISED = {"rule": "supervised", "perturb": None, "mu": None}
PART, LABEL, PAIR, RATE = ({"rule": rule, "perturb": None, "mu": None} for rule in ("part", "label", "pair", "rate"))
ERROR = "write E below 0.5, or E0,E1 with a sum below 1, none below 0"
ONE_ERROR = "only part has yes and no to err in; give one number"


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
        ({**PART, "perturb": "score"}, "rule part perturbs nothing: leave out `perturb` and `mu`"),
        (
            {**PAIR, "criterion": "annealed"},
            "rule pair has a criterion of its own: leave out `criterion` annealed",
        ),
        ({"about": "chunk"}, "`about` belongs to part, label, span, pair and rate, not to rule two-point"),
        ({"ask": "random"}, "`ask` belongs to part, label, span, pair and rate, not to rule two-point"),
        (
            {**SUPERVISED, "rehearse": 1},
            "`rehearse` belongs to part, label, span, pair and rate, not to rule supervised",
        ),
        (
            {"rule": "preference", "rater_error": "0.1"},
            "`rater_error` belongs to part, label, span, pair and rate, not to rule preference",
        ),
        ({**PART, "about": "word"}, "`about` word: choose from token, chunk"),
        ({**PART, "ask": "often"}, "`ask` often: choose from unsure, random"),
        ({**PAIR, "about": "chunk"}, "`about` chunk belongs to part and label; rule pair shows whole outputs"),
        ({**RATE, "about": "chunk"}, "`about` chunk belongs to part and label; rule rate shows whole outputs"),
        ({**PART, "rehearse": -1}, "`rehearse` -1: must be a whole number, 0 or more"),
        ({**PART, "rehearse": 10**6}, "`rehearse` 1000000: must be at most 10,000"),
        *[
            ({**PART, "rater_error": e}, f"`rater_error` {e}: {ERROR}")
            for e in ("0.5", "-0.1", "nan", "", "1,2,3", "x")
        ],
        ({**PART, "rater_error": "0.6,0.4"}, f"`rater_error` 0.6,0.4: {ERROR}"),
        ({**LABEL, "rater_error": "0.1,0.2"}, f"`rater_error` 0.1,0.2: {ONE_ERROR}"),
        ({**PAIR, "rater_error": "0,0.2"}, f"`rater_error` 0,0.2: {ONE_ERROR}"),
        (
            {**RATE, "rater_error": "0.1"},
            "`rater_error` 0.1: rule rate takes losses, which are not right or wrong",
        ),
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
        {**PART, "about": "chunk", "ask": "random", "rater_error": "0.1,0.3", "rehearse": 10, "feedback": "flip:0.1"},
        {**LABEL, "about": "chunk", "rater_error": "0.2", "feedback": "flip:1"},
        {**PAIR, "rater_error": "0.49", "step": "adagrad"},
        {**RATE, "feedback": "rating:5", "rehearse": 1},
        {**RATE, "feedback": "binary"},
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


NO_QUESTIONS = {"about": codes.ABOUT_TOKEN, "ask": codes.UNSURE, "e0": 0.0, "e1": 0.0, "rehearse": 0, "batch": 1}
NO_QUESTIONS |= {"samples": 1, "antithetic": 0, "shift": 0}


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
        **NO_QUESTIONS,
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
        **NO_QUESTIONS,
    }
    assert type(law.h) is type(law.mu) is float


def test_a_batch_reaches_the_law():
    assert Settings(batch=64).step_params().batch == 64
    law = Settings(batch=64, samples=16, antithetic=True).step_params()
    assert (law.batch, law.samples, law.antithetic) == (64, 16, 1)
    assert type(law.antithetic) is int


def test_what_is_asked_reaches_the_law():
    law = Settings(**PART, about="chunk", ask="random", rater_error="0.1,0.3", rehearse=10).step_params()
    assert (law.rule, law.about, law.ask) == (codes.PART, codes.ABOUT_CHUNK, codes.AT_RANDOM)
    assert (law.e0, law.e1, law.rehearse) == (0.1, 0.3, 10)
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
        Settings.complete(given, kind(task).defaults if task else None)
    assert str(caught.value).startswith(message)


def test_without_a_tasks_defaults_they_are_the_plain_ones():
    assert Settings.complete({}) == Settings()


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
    assert keys.tolist() == [splitmix_key(seed, stream) for stream in range(10)]
    assert len(set(keys.tolist())) == 10
    assert not set(keys.tolist()) & set(Settings(seed=seed // 2 + 1).step_params().keys.tolist())
    streams = (random.INPUTS, random.PERTURBATION, random.COMPLEMENT, random.DEBT, random.OUTPUT, random.FEEDBACK)
    assert streams == (0, 1, 2, 3, 4, 5)
    assert (random.CHOICE, random.MODE, random.REHEARSAL, random.OPPOSITE) == (6, 7, 8, 9)


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
        "pairwise": ("pairwise", False, "-w", "which output is better, or the losses of the two outputs"),
        "cross-entropy": ("cross-entropy", False, None, "the loss of the output"),
        "supervised": ("supervised", False, None, "the correct output"),
        "part": ("part", False, None, "yes or no"),
        "label": ("label", False, None, "the name of the right label"),
        "span": ("span", False, None, "the span that is there"),
        "pair": ("pair", False, None, "first, second or tie"),
        "rate": ("rate", False, None, "a loss from 0 to 1"),
    }
    assert [rule.code for rule in RULES.values()] == [
        codes.TWO_POINT,
        codes.SYMMETRIC,
        codes.COMPARISON,
        codes.PREFERENCE,
        codes.BASELINE,
        codes.FIRST_ORDER,
        codes.PAIRWISE,
        codes.CROSS_ENTROPY,
        codes.SUPERVISED,
        codes.PART,
        codes.LABEL,
        codes.SPAN,
        codes.PAIR,
        codes.RATE,
    ]
    assert [rule.name for rule in RULES.values() if rule.asks] == ["part", "label", "span", "pair", "rate"]
    assert [rule.name for rule in RULES.values() if rule.chooses] == ["comparison", "preference", "pairwise"]


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
        ("text", {"h": 0.01}, "constant", "with `step` adagrad it is usually 0.3"),
        ("rerank", {"h": 1e-5}, "constant", ""),
    ],
)
def test_an_h_gets_the_step_that_it_is_for(task, given, step, remark):
    settings = Settings.complete(given, *kind(task).usual)
    assert settings.step == step
    said = step_for_h(given, *kind(task).usual)
    assert (remark in said) if remark else said is None
    assert settings.h == given.get("h", settings.h)
    usual = kind(task).defaults(settings.rule, step, settings.perturb)
    assert settings.mu == (None if settings.perturb is None else usual[1])
