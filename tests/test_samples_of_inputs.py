"""Several perturbations of an input in a run: which steps look at what, how losses are counted, what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sparsezo import learner as learner_module
from sparsezo.errors import UsageError
from sparsezo.kernels import batching
from sparsezo.learner import Learner
from sparsezo.optimizer import Optimizer
from sparsezo.settings import Settings
from sparsezo.tasks.chunking.generate import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.loading import Data
from sparsezo.training import Training

K = 4
PLAIN = Settings("two-point", "score", 0.04, 0.1, seed=4)
SAMPLED = replace(PLAIN, samples=K)


@pytest.fixture(scope="module")
def data():
    task, train = Chunking.fit(chunking_corpus(40, seed=1), only="NP")
    return task, Data(train, task.seen(chunking_corpus(20, seed=2)))


@pytest.fixture(scope="module")
def chunking(data):
    task, parts = data
    return task.problem(parts.train, risk=True), task.gold(parts.train)


def after(chunking, settings, *steps, W=None):
    learner = Learner(chunking[0], settings, W)
    for each in steps:
        learner.run(chunking[1], each)
    return learner


@pytest.mark.parametrize("perturb", ["active", "score"])
@pytest.mark.parametrize("criterion", ["map", "annealed"])
def test_an_antithetic_pair_of_two_point_is_a_step_of_symmetric(chunking, perturb, criterion):
    """-h (F(w + mu u) - F(w)) / mu and its opposite's, halved, are -h (F(w + mu u) - F(w - mu u)) / (2 mu)."""
    rng, moved = np.random.default_rng(1), 0
    for seed in range(30):
        W = rng.normal(0, 0.1, (chunking[0].n_features, chunking[0].n_labels)).astype(np.float32)
        both = Settings("symmetric", perturb, 0.05, 0.3, criterion=criterion, seed=seed)
        pair = replace(both, rule="two-point", samples=2, antithetic=True)
        one, other = after(chunking, both, 1, W=W), after(chunking, pair, 2, W=W)
        np.testing.assert_allclose(other.state.W, one.state.W, rtol=0, atol=1e-6)
        moved += bool((one.state.W != W).any())
    assert moved > 5


def test_steps_of_an_input_look_at_it_one_after_the_other(chunking):
    learner, plain = Learner(chunking[0], SAMPLED), Learner(chunking[0], PLAIN)
    N = len(chunking[0])
    seen = [int(batching.input_of(learner._params, step, N)) for step in range(40)]
    assert seen == [int(batching.input_of(plain._params, step // K, N)) for step in range(40)]
    learner.run(chunking[1], 3 * K)
    assert learner.next_input() == seen[3 * K]


def test_inputs_of_one_batch_are_all_looked_at_from_its_start(chunking):
    """A batch of several inputs moves by the sum of what each would move the weights by."""
    W = after(chunking, SAMPLED, 40 * K).state.W.copy()
    settings = replace(SAMPLED, batch=3 * K)
    together = after(chunking, settings, 3 * K, W=W).state.W
    moves = []
    for k in range(3):
        alone = Learner(chunking[0], SAMPLED, W)
        alone.state.counts[:2] = k * K
        alone.run(chunking[1], K)
        moves.append(alone.state.W.astype(float) - W)
    assert sum(bool(move.any()) for move in moves) > 1
    np.testing.assert_allclose(together - W, sum(moves), atol=1e-6)


def test_a_run_that_is_cut_between_inputs_is_the_same(chunking):
    settings = replace(SAMPLED, antithetic=True)
    once, cut = after(chunking, settings, 30 * K + 3), after(chunking, settings, 10 * K, K, 19 * K + 3)
    for mine, its in zip(cut.state, once.state, strict=True):
        np.testing.assert_array_equal(mine, its)
    assert once.updates > 10
    said = f"^step {30 * K + 3}: a run that ended within the 4 `samples` of an input does not go on"
    with pytest.raises(UsageError, match=said):
        cut.run(chunking[1], K)


def test_a_long_run_cuts_no_batch(chunking, monkeypatch):
    """Compiled code is left now and then; that is between batches."""
    settings = replace(SAMPLED, batch=3 * K)
    whole = after(chunking, settings, 50 * K)
    monkeypatch.setattr(learner_module, "_SLICE", 5 * K + 1)
    for mine, its in zip(after(chunking, settings, 50 * K).state, whole.state, strict=True):
        np.testing.assert_array_equal(mine, its)


@pytest.mark.parametrize(
    ("rule", "of_an_input"),
    [("two-point", K + 1), ("comparison", K + 1), ("preference", K + 1), ("symmetric", 2 * K), ("baseline", K)],
)
def test_losses_are_counted_as_they_are_asked_for(data, rule, of_an_input):
    settings = replace(SAMPLED, rule=rule)
    assert settings.losses(0) == 0
    assert settings.losses(25 * K) == 25 * of_an_input
    assert replace(PLAIN, rule=rule).losses(100) == (100 if rule == "baseline" else 200)
    if rule == "two-point":
        assert settings.losses(25 * K + 1) == 25 * of_an_input + 2
    result = Training(*data, settings, 10 * K).go().result
    assert (result["losses"], result["iterations"]) == (10 * of_an_input, 10 * K)


def test_rules_that_perturb_nothing_count_no_losses(data):
    assert "losses" not in Training(*data, Settings("supervised", None, 0.1, None), 20).go().result


def test_a_batch_is_one_input_unless_it_is_given():
    assert SAMPLED.batch == K
    assert replace(PLAIN, samples=K, batch=5 * K).batch == 5 * K
    assert replace(SAMPLED, seed=5).batch == K


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"samples": 0}, "`samples` 0: must be a whole number, 1 or more"),
        ({"samples": 1_000_001}, "`samples` 1000001: must be at most 1,000,000"),
        ({"batch": 6}, "`batch` 6: must be a multiple of `samples`, 4: whole inputs"),
        ({"batch": 2}, "`batch` 2: must be a multiple of `samples`, 4: whole inputs"),
        ({"perturb": "all"}, "`samples` 4: with `perturb` all, sleeping weights are owed their share"),
        (
            {"rule": "first-order", "perturb": None, "mu": None},
            "`samples` 4: the direction of rule first-order depends",
        ),
        ({"rule": "part", "perturb": None, "mu": None}, "`samples` 4: the direction of rule part depends"),
        ({"samples": 3, "batch": 3, "antithetic": True}, "come in pairs: `samples` must be even, not 3"),
        ({"samples": 1, "antithetic": True}, "come in pairs: `samples` must be even, not 1"),
        ({"rule": "symmetric", "antithetic": True}, "`antithetic`: rule symmetric looks both ways"),
    ],
)
def test_samples_that_make_no_sense_are_refused(changes, words):
    with pytest.raises(UsageError, match=words):
        replace(SAMPLED, **changes)


def test_samples_are_of_runs_alone(chunking):
    with pytest.raises(UsageError, match=r"^`samples` 4: is of run\(\); leave it out: ask several before you tell"):
        Learner(chunking[0], SAMPLED).ask()
    with pytest.raises(UsageError, match=r"^`samples` 4: is of a Learner's run"):
        Optimizer(3, SAMPLED)


def test_samples_are_part_of_a_learners_name_and_record_unless_it_is_one():
    assert not {"batch", "samples", "antithetic"} & {*PLAIN.as_dict()}
    assert SAMPLED.name == "two-point score 4 samples"
    assert SAMPLED.as_dict() == PLAIN.as_dict() | {"batch": 4, "samples": 4}
    both = replace(SAMPLED, batch=8, antithetic=True)
    assert both.name == "two-point score batch 8 4 samples antithetic"
    assert both.as_dict() == PLAIN.as_dict() | {"batch": 8, "samples": 4, "antithetic": True}
    assert Settings(**both.as_dict()) == both
