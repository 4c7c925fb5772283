"""How good the model is, how often people err, what more answers would bring: literally, and in simulation."""

from __future__ import annotations

import itertools
import math
from dataclasses import astuple, replace

import numpy as np
import pytest

from sparsezo.errors import UsageError
from sparsezo.serve.audit import ChunkAudit, Share, accuracy, chunk_audit, sequence, share
from sparsezo.serve.forecast import forecast
from sparsezo.serve.people import alpha, error_rates
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


def test_an_interval_holds_at_least_as_often_as_it_says():
    for n, p in itertools.product((5, 40), (0.02, 0.3, 0.9)):
        held = sum(binomial(k, n, p) for k in range(n + 1) if share(k, n).low <= p <= share(k, n).high)
        assert held >= 0.95


def test_of_nothing_nothing_is_known_and_more_than_all_is_refused():
    assert (share(0, 0).low, share(0, 0).high) == (0.0, 1.0)
    assert math.isnan(share(0, 0).value)
    with pytest.raises(UsageError, match="3 of 2"):
        share(3, 2)


def test_a_sequence_holds_at_every_look_at_once_where_single_intervals_do_not():
    generator, p, n, runs = np.random.default_rng(1), 0.8, 200, 300
    one = {(k, m): share(k, m) for m in range(10, n + 1, 10) for k in range(int(0.4 * m), m + 1)}
    all_ = {(k, m): sequence(k, m) for k, m in one}
    missed = {"one": 0, "all": 0}
    for _ in range(runs):
        k = np.cumsum(generator.random(n) < p)
        looks = [(int(k[m - 1]), m) for m in range(10, n + 1, 10)]
        missed["one"] += any(not one[at].low <= p <= one[at].high for at in looks)
        missed["all"] += any(not all_[at].low <= p <= all_[at].high for at in looks)
    assert missed["all"] <= 0.05 * runs
    assert missed["one"] > 0.1 * runs  # which is why there is a sequence


def test_a_sequence_ends_where_the_mixture_is_twenty_times_as_likely():
    k, n = 13, 20
    found = sequence(k, n)
    log_beta = math.lgamma(k + 0.5) + math.lgamma(n - k + 0.5) - math.lgamma(n + 1) - 2 * math.lgamma(0.5)
    for p in (found.low, found.high):
        assert math.exp(log_beta) / (p**k * (1 - p) ** (n - k)) == pytest.approx(20, rel=1e-6)
    assert found.low < share(k, n).low < share(k, n).high < found.high
    assert sequence(0, 5).low == 0
    assert sequence(5, 5).high == 1


def test_precision_recall_and_f1_of_chunks():
    found = ChunkAudit(correct=30, predicted=40, gold=50, true_correct=30, true_gold=50).shares()
    assert found["precision"] == share(30, 40)
    assert found["recall"] == share(30, 50)
    assert found["f1"].value == pytest.approx(60 / 90)
    both = share(30, 60)  # of the 60 chunks that either has
    assert found["f1"].low == pytest.approx(2 * both.low / (1 + both.low))
    assert found["f1"].low < found["f1"].value < found["f1"].high


def test_chunks_where_a_side_has_none():
    none = ChunkAudit(0, 0, 7, 0, 7).shares()
    assert none["precision"].as_dict() == {"value": None, "low": 0.0, "high": 1.0}
    assert (none["recall"].value, none["f1"].value) == (0, 0)
    assert ChunkAudit(0, 0, 0, 0, 0).shares()["f1"].as_dict()["value"] is None


def test_chunks_are_corrected_for_raters_who_err():
    """Sentences of 20 tokens, a model that is right about most, raters who name another tag now and then."""
    generator, error, tags = np.random.default_rng(3), 0.1, np.array(["B-NP", "I-NP", "O"])

    def sentence():
        gold = ["O"]
        for _ in range(20):
            gold.append(str(generator.choice(tags[[0, 2]] if gold[-1] == "O" else tags)))
        return gold[1:]

    def noisy(right, rate):
        return [str(generator.choice(tags[tags != tag])) if generator.random() < rate else tag for tag in right]

    def chunks(given):
        return set(metric.chunks(given, np.array([0, len(given)])))

    counts, true = [], np.zeros(3)
    for _ in range(1500):
        gold = sentence()
        model, said = noisy(gold, 0.05), noisy(gold, error)
        ours, theirs = chunks(model), chunks(said)
        counts.append(chunk_audit(theirs, ours, "".join(tag[0] for tag in said), [error] * 20, 3))
        true += [len(ours & chunks(gold)), len(ours), len(chunks(gold))]
    found = ChunkAudit(*(sum(each) for each in zip(*map(astuple, counts), strict=True)))
    plain = replace(found, true_correct=found.correct, true_gold=found.gold).shares()
    correct, predicted, gold = true
    for name, right in (("precision", correct / predicted), ("recall", correct / gold)):
        assert found.shares()[name].value == pytest.approx(right, abs=0.03)
        assert plain[name].value < right - 0.1
    assert found.shares()["f1"].value == pytest.approx(2 * correct / (predicted + gold), abs=0.03)


@pytest.mark.parametrize(("labels", "error"), [(2, 0.1), (3, 0.25), (9, 0.02)])
def test_the_correction_undoes_what_raters_errors_do_to_agreement(labels, error):
    right = 0.87
    agreed = right * (1 - error) + (1 - right) * error / (labels - 1)
    n = 10_000_000
    found = accuracy(round(agreed * n / 1000), n // 1000, error=Share(error, error, error), labels=labels)
    assert found.value == pytest.approx(right, abs=1e-3)


def test_doubt_about_the_error_rate_widens_the_interval_on_its_own_side():
    sure = accuracy(160, 200, error=Share(0.1, 0.1, 0.1), labels=3)
    perhaps_more = accuracy(160, 200, error=Share(0.1, 0.1, 0.2), labels=3)
    perhaps_less = accuracy(160, 200, error=Share(0.1, 0.02, 0.1), labels=3)
    assert perhaps_more.low == pytest.approx(sure.low)
    assert perhaps_more.high > sure.high + 0.01
    assert perhaps_less.high == pytest.approx(sure.high)
    assert perhaps_less.low < sure.low - 0.01


def test_a_corrected_accuracy_stays_between_0_and_1():
    top = accuracy(200, 200, error=Share(0.1, 0.05, 0.2), labels=3)
    bottom = accuracy(0, 200, error=Share(0.1, 0.05, 0.2), labels=3)
    assert (top.value, top.high) == (1.0, 1.0)
    assert (bottom.value, bottom.low) == (0.0, 0.0)


def test_a_corrected_interval_holds_in_simulated_audits():
    generator, n, labels, people = np.random.default_rng(5), 200, 3, (0.02, 0.1, 0.2)
    for right in (0.75, 0.95):
        held = 0
        for _ in range(200):
            rater = generator.integers(0, 3, n)
            wrong = generator.random(n) < np.array(people)[rater]
            model_right = generator.random(n) < right
            agrees = np.where(wrong, ~model_right & (generator.random(n) < 1 / (labels - 1)), model_right)
            e = sum(people) / 3
            found = accuracy(int(agrees.sum()), n, error=Share(e, e - 0.02, e + 0.02), labels=labels)
            held += found.low <= right <= found.high
        assert held >= 186


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
        assert [each.answers for each in found] == np.bincount(person).tolist()
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
    assert nobody.answers == 0
    assert 0 < nobody.e0.value < 0.3
    assert nobody.e0.high - nobody.e0.low > 0.25
    assert len(error_rates(np.array([], int), np.array([], int), np.array([], bool), np.array([]), 2)) == 2


# Forecasts

CURVE = np.geomspace(50, 1600, 25).round()


def power_law(n):
    return 0.95 - 0.9 * n**-0.4


def test_a_curve_that_follows_the_law_is_forecast():
    found = forecast(CURVE, power_law(CURVE), ahead=1600)
    assert found.value == pytest.approx(power_law(1600), abs=1e-3)
    assert found.gain == pytest.approx(power_law(3200) - power_law(1600), abs=1e-3)
    assert not found.noise


def test_a_forecasts_interval_holds():
    generator, truth = np.random.default_rng(3), power_law(3200) - power_law(1600)
    found = [forecast(CURVE, power_law(CURVE) + generator.normal(0, 0.006, 25), 1600) for _ in range(40)]
    assert sum(each.low <= truth <= each.high for each in found) >= 36


def test_a_flat_noisy_curve_promises_nothing_that_can_be_told_from_noise():
    values = 0.9 + np.random.default_rng(4).normal(0, 0.01, 25)
    found = forecast(CURVE, values, 1000)
    assert found.noise
    assert found.gain < 0.02


def test_a_law_that_broke_before_is_trusted_less():
    """Steep, then suddenly flat: what earlier forecasts were off by widens the interval."""
    smooth = forecast(CURVE, power_law(CURVE), 800)
    broken = forecast(CURVE, np.minimum(power_law(CURVE), power_law(900)), 800)
    assert broken.noise
    assert broken.gain - broken.low > 3 * (smooth.gain - smooth.low)


def test_no_forecast_goes_beyond_the_best_there_is_nor_comes_from_three_points():
    steep = forecast(CURVE, np.linspace(0.5, 0.99, 25), 10_000_000)
    assert steep.value + steep.high <= 1 + 1e-9
    assert forecast([100, 200, 400], [0.5, 0.6, 0.7], 100) is None
    assert forecast([1, 2, 4, 8, 16], [0.5, 0.6, 0.7, 0.8, 0.9], 100) is None
