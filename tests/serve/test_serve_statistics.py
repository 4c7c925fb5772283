"""How good the model is, how often people err, what more answers would bring: literally, and in simulation."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
import pytest

from sparsezo.errors import UsageError
from sparsezo.serve.statistics import (
    ENOUGH_TWICE,
    SpanCounts,
    accuracy,
    alpha,
    clustered,
    error_rates,
    forecast,
    sequence,
    share,
    span_counts,
    span_shares,
)
from sparsezo.tasks.chunking import metric


def binomial(k, n, p):
    return math.comb(n, k) * p**k * (1 - p) ** (n - k)


@pytest.mark.parametrize(("k", "n"), [(0, 7), (3, 7), (7, 7), (1, 1), (171, 200)])
def test_an_interval_ends_where_the_data_would_be_too_rare(k, n):
    found = share(k, n)
    assert found.value == k / n
    below = sum(binomial(j, n, found.high) for j in range(k + 1))
    above = sum(binomial(j, n, found.low) for j in range(k, n + 1))
    assert found.low == 0 if k == 0 else above == pytest.approx(0.025, abs=1e-9)
    assert found.high == 1 if k == n else below == pytest.approx(0.025, abs=1e-9)


def test_of_nothing_nothing_is_known_and_more_than_all_is_refused():
    assert (share(0, 0).low, share(0, 0).high) == (0.0, 1.0)
    assert math.isnan(share(0, 0).value)
    with pytest.raises(UsageError, match="3 of 2"):
        share(3, 2)


def test_a_sequence_ends_where_the_mixture_is_twenty_times_as_likely():
    k, n = 13, 20
    found = sequence(k, n)
    log_beta = math.lgamma(k + 0.5) + math.lgamma(n - k + 0.5) - math.lgamma(n + 1) - 2 * math.lgamma(0.5)
    for p in (found.low, found.high):
        assert math.exp(log_beta) / (p**k * (1 - p) ** (n - k)) == pytest.approx(20, rel=1e-6)
    assert found.low < share(k, n).low < share(k, n).high < found.high
    assert sequence(0, 5).low == 0
    assert sequence(5, 5).high == 1


# Raters who err. x: the model agrees with people, as counted; the truth is what it would agree with had nobody erred.

ONE_RATE_EACH = (0.02, 0.05, 0.08, 0.1, 0.25)
RATERS = {
    "no errors": lambda hard, generator: np.zeros(len(hard)),
    "10% where hard, else 2%": lambda hard, generator: np.where(hard, 0.1, 0.02),
    "15% where hard, else 1%": lambda hard, generator: np.where(hard, 0.15, 0.01),
    "one rate for all": lambda hard, generator: np.full(len(hard), 0.1),
    "a rate each": lambda hard, generator: generator.choice(ONE_RATE_EACH, len(hard)),
}
HARD, RIGHT_HARD, RIGHT = (
    0.2,
    0.6,
    0.98,
)  # parts that the model is unsure of; how often it is right there, and elsewhere
LABELS = 3
accuracy_of = functools.cache(accuracy)


def answers(generator, n, rate):
    """Whether each of two people agrees with the model, on n parts, and whether the model is right."""
    hard = generator.random(n) < HARD
    right = generator.random(n) < np.where(hard, RIGHT_HARD, RIGHT)

    def rater():
        wrong = generator.random(n) < rate(hard, generator)
        return np.where(wrong, ~right & (generator.random(n) < 1 / (LABELS - 1)), right)

    return rater(), rater(), right


@pytest.mark.parametrize("raters", RATERS)
def test_the_accuracys_interval_holds_at_every_tenth_whoever_errs_where(raters):
    generator, runs, most = np.random.default_rng(5), 150, 200
    truth = HARD * RIGHT_HARD + (1 - HARD) * RIGHT
    held, plain = np.zeros(10), np.zeros(10)
    for _ in range(runs):
        one, two, _ = answers(generator, most, RATERS[raters])
        again = generator.random(most) < 0.5
        for tenth in range(10):
            n = most * (tenth + 1) // 10
            split = int((one != two)[:n][again[:n]].sum())
            found = accuracy_of(int(one[:n].sum()), n, twice=int(again[:n].sum()), split=split, labels=LABELS)
            held[tenth] += found.low <= truth <= found.high
            counted = accuracy_of(int(one[:n].sum()), n)
            plain[tenth] += counted.low <= truth <= counted.high
    assert (held >= 0.93 * runs).all()
    if raters in ("one rate for all", "a rate each"):
        assert plain[-1] < 0.5 * runs  # so the allowance is needed


def test_with_many_audits_the_correction_finds_the_accuracy_that_errors_hide():
    generator, n = np.random.default_rng(6), 400
    off, plain = [], []
    for _ in range(60):
        one, two, _ = answers(generator, n, lambda hard, _: np.full(len(hard), 0.03))
        found = accuracy(int(one.sum()), n, twice=n, split=int((one != two).sum()), labels=LABELS)
        off.append(found.value - (HARD * RIGHT_HARD + (1 - HARD) * RIGHT))
        plain.append(one.mean() - (HARD * RIGHT_HARD + (1 - HARD) * RIGHT))
    assert np.mean(plain) < -0.02
    assert abs(np.mean(off)) < 0.008


@pytest.mark.parametrize("always", [False, True])
def test_no_figure_is_one_that_the_counts_exclude(always):
    """120 of 124 is not 100.0%, whatever people's errors are."""
    for k, n, split in itertools.product((0, 30, 60, 110, 120, 123, 124), (124,), range(0, 61, 4)):
        counted = (sequence if always else share)(k, n)
        found = accuracy(k, n, twice=60, split=split, labels=3, always=always)
        assert counted.low == found.low <= found.value <= found.high
        assert found.value <= counted.high <= found.high
        assert (found.high == 1) == (k == n)
    assert accuracy(120, 124, twice=100, split=8, labels=3).value < 0.992


def test_nothing_is_corrected_before_enough_was_asked_twice():
    few = accuracy(120, 124, twice=ENOUGH_TWICE - 1, split=3, labels=3)
    enough = accuracy(120, 124, twice=ENOUGH_TWICE, split=3, labels=3)
    assert few.value == 120 / 124 < enough.value
    assert few.high > accuracy(120, 124).high  # what is not known is in the interval all the same
    assert accuracy(120, 124) == share(120, 124)
    assert math.isnan(accuracy(0, 0, twice=0).value)


def test_more_that_is_split_means_more_errors_of_people():
    found = [accuracy(80, 100, twice=50, split=split, labels=3) for split in (0, 3, 6, 9)]
    assert found[0].value == 0.8
    assert [each.value for each in found] == sorted({each.value for each in found})
    assert [each.high for each in found] == sorted({each.high for each in found})


# Spans of whole sentences


def test_precision_recall_and_f1_are_of_what_was_counted():
    sentences = [SpanCounts(2, 3, 4), SpanCounts(1, 1, 1), SpanCounts(0, 2, 0)]
    found = span_shares(sentences)
    assert [found[name].value for name in ("precision", "recall", "f1")] == [3 / 6, 3 / 5, pytest.approx(6 / 11)]
    same = {(0, 2, "NP"), (4, 5, "NP")}
    assert span_counts(same, same | {(7, 8, "NP")}) == SpanCounts(2, 3, 2)
    assert span_counts(same, same, {(0, 2, "NP")}) == SpanCounts(2, 2, 2, 1, 1)


def test_spans_where_a_side_has_none():
    none = span_shares([SpanCounts(0, 0, 4), SpanCounts(0, 0, 3)])
    assert none["precision"].as_dict() == {"value": None, "low": 0.0, "high": 1.0}
    assert (none["recall"].value, none["f1"].value) == (0, 0)
    assert none["f1"].high < 1
    assert span_shares([SpanCounts(0, 0, 0)])["f1"].as_dict()["value"] is None
    assert span_shares([])["f1"].as_dict() == {"value": None, "low": 0.0, "high": 1.0}


def test_sentences_that_differ_widen_the_interval_and_one_says_nothing():
    alike = clustered([5] * 10, [10] * 10)
    assert (alike.low, alike.high) != (0, 1)
    apart = clustered([0, 10] * 5, [10] * 10)
    assert apart.value == alike.value
    assert apart.high - apart.low > 2 * (alike.high - alike.low)
    one = clustered([9], [10])
    assert (one.value, one.low, one.high) == (0.9, 0, 1)
    fewer = clustered([5] * 3, [10] * 3)
    assert fewer.low < share(15, 30).low  # how much three differ is hardly known
    independent = clustered([1] * 60 + [0] * 40, [1] * 100)
    assert (independent.low, independent.high) == pytest.approx((share(60, 100).low, share(60, 100).high), abs=2e-3)


def test_an_upper_end_allows_for_errors_that_two_people_show():
    plain = span_shares([SpanCounts(8, 10, 10)] * 12)
    same = span_shares([SpanCounts(8, 10, 10, 10, 10)] * 12)
    apart = span_shares([SpanCounts(8, 10, 10, 7, 10)] * 12)
    for name in ("precision", "recall", "f1"):
        assert plain[name].value == same[name].value == apart[name].value
        assert plain[name].low == same[name].low == apart[name].low
        assert plain[name].high < same[name].high < apart[name].high < 1


TAGS = np.array(["B-X", "I-X", "O"])


def sentence(generator, rate, kind):
    """(against the truth, against people) of a sentence with a length and a difficulty of its own; the model
    errs where it is hard, and cuts spans short."""
    length = int(generator.integers(5, 40))
    gold = ["O"]
    for at in generator.random(length):
        gold.append(("B-X" if at < 0.25 else "O") if gold[-1] == "O" else ("I-X" if at < 0.45 else "O"))
    right = np.searchsorted(TAGS, gold[1:])
    hard = generator.random(length) < generator.beta(0.8, 3.5)

    def noisy(error):
        other = (right + generator.integers(1, 3, length)) % 3
        return np.where(generator.random(length) < error, other, right)

    def spans(tags):
        return set(metric.chunks(TAGS[tags].tolist(), np.array([0, length])))

    model = noisy(np.where(hard, 0.35, 0.005))
    ends = (right == 1) & (np.append(right[1:], 2) != 1) & (generator.random(length) < 0.1)
    model[ends] = 2
    # whoever has a rate of their own has it for the whole sentence
    people = [
        np.full(length, rate(hard, generator)[0]) if kind == "a rate each" else rate(hard, generator) for _ in "12"
    ]
    one, two = (spans(noisy(each)) for each in people)
    return span_counts(spans(right), spans(model)), span_counts(one, spans(model), two)


@pytest.mark.parametrize("raters", RATERS)
def test_f1s_interval_holds_at_every_tenth_whoever_errs_where(raters):
    generator, runs, most = np.random.default_rng(7), 60, 20
    pool = [sentence(generator, RATERS[raters], raters) for _ in range(500)]
    correct, predicted, gold = (
        sum(getattr(each, name) for each, _ in pool) for name in ("correct", "predicted", "gold")
    )
    truth, held = 2 * correct / (predicted + gold), np.zeros(10)
    for _ in range(runs):
        drawn = generator.integers(0, len(pool), most)
        seen = [
            pool[i][1] if k % 2 else pool[i][1]._replace(same=None, second=None) for k, i in enumerate(drawn.tolist())
        ]
        for tenth in range(10):
            found = span_shares(seen[: most * (tenth + 1) // 10])["f1"]
            held[tenth] += found.low <= truth <= found.high
    assert (held >= 0.93 * runs - 2 * np.sqrt(0.93 * 0.07 * runs)).all()  # 93 of 100, as far as so many runs can tell


# People


def test_alpha_of_the_textbook():
    """Krippendorff's example of nominal data with four observers, some of whom are silent."""
    observers = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
        [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
    ]
    units = [[value for value in unit if value is not None] for unit in zip(*observers, strict=True)]
    assert alpha(units) == pytest.approx(0.743, abs=5e-4)


def test_alpha_is_1_where_all_agree_and_nothing_where_nothing_can_be_said():
    assert alpha([["a", "a"], ["b", "b", "b"]]) == 1
    assert alpha([["a"], ["b"]]) is None
    assert alpha([["a", "a"], ["a", "a"]]) is None
    assert alpha([["a", "b"], ["b", "a"]]) < 0


E0, E1 = np.array([0.02, 0.05, 0.1, 0.08, 0.25]), np.array([0.05, 0.02, 0.1, 0.2, 0.25])


def crowd(generator, questions, overlap=0.1, sharpness=0.7):
    """(person, question, yes, chance, right answers); with a sharpness below 1 the model is surer than it should be."""
    chance = generator.beta(2, 1, questions)
    right = generator.random(questions) < 1 / (1 + np.exp(-sharpness * np.log(chance / (1 - chance))))
    person, question, yes = [], [], []
    for i in range(questions):
        for j in generator.permutation(5)[: 2 if generator.random() < overlap else 1]:
            person.append(j)
            question.append(i)
            yes.append(generator.random() < (1 - E1[j] if right[i] else E0[j]))
    return np.array(person), np.array(question), np.array(yes), chance, right


def test_error_rates_are_found_from_a_tenth_asked_twice_and_a_model_that_is_too_sure():
    off = []
    for seed in range(4):
        person, question, yes, chance, _ = crowd(np.random.default_rng(seed), 6000)
        found = error_rates(person, question, yes, chance, 5)
        off += [(each.e0.value - E0[j], each.e1.value - E1[j]) for j, each in enumerate(found)]
    assert np.sqrt(np.mean(np.square(off))) <= 0.04


def test_intervals_of_error_rates_hold_most_of_the_time():
    held, count = 0, 0
    for seed in range(10):
        person, question, yes, chance, _ = crowd(np.random.default_rng(100 + seed), 1500, overlap=0.4)
        for j, each in enumerate(error_rates(person, question, yes, chance, 5)):
            held += int(each.e0.low <= E0[j] <= each.e0.high) + int(each.e1.low <= E1[j] <= each.e1.high)
            count += 2
    assert held >= 0.85 * count


def test_of_somebody_who_said_nothing_the_usual_is_believed_without_certainty():
    person, question, yes, chance, _ = crowd(np.random.default_rng(0), 500)
    nobody = error_rates(person, question, yes, chance, 6)[5]
    assert 0 < nobody.e0.value < 0.3
    assert nobody.e0.high - nobody.e0.low > 0.25
    assert len(error_rates(np.array([], int), np.array([], int), np.array([], bool), np.array([]), 2)) == 2


# Forecasts

CURVE = np.geomspace(50, 1600, 25).round()


def power_law(n):
    return 0.95 - 0.9 * n**-0.4


def test_a_curve_that_follows_the_law_is_forecast():
    found = forecast(CURVE, power_law(CURVE), ahead=1600)
    assert found["value"] == pytest.approx(power_law(3200), abs=1e-3)
    assert found["gain"] == pytest.approx(power_law(3200) - power_law(1600), abs=1e-3)
    assert not found["within_noise"]


def test_a_forecasts_interval_holds():
    generator, truth = np.random.default_rng(3), power_law(3200) - power_law(1600)
    found = [forecast(CURVE, power_law(CURVE) + generator.normal(0, 0.006, 25), 1600) for _ in range(40)]
    assert sum(each["low"] <= truth + each["value"] - each["gain"] <= each["high"] for each in found) >= 36


def test_a_flat_noisy_curve_promises_nothing_that_can_be_told_from_noise():
    values = 0.9 + np.random.default_rng(4).normal(0, 0.01, 25)
    found = forecast(CURVE, values, 1000)
    assert found["within_noise"]
    assert found["gain"] < 0.02


def test_a_law_that_broke_before_is_trusted_less():
    """Steep, then suddenly flat: what earlier forecasts were off by widens the interval."""
    smooth = forecast(CURVE, power_law(CURVE), 800)
    broken = forecast(CURVE, np.minimum(power_law(CURVE), power_law(900)), 800)
    assert broken["within_noise"]
    assert broken["value"] - broken["low"] > 3 * (smooth["value"] - smooth["low"])


def test_no_forecast_goes_beyond_the_best_there_is_nor_comes_from_three_points():
    steep = forecast(CURVE, np.linspace(0.5, 0.99, 25), 10_000_000)
    assert steep["high"] <= 1 + 1e-9
    assert forecast([100, 200, 400], [0.5, 0.6, 0.7], 100) is None
    assert forecast([1, 2, 4, 8, 16], [0.5, 0.6, 0.7, 0.8, 0.9], 100) is None
