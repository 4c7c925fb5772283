"""A run: best model on dev, curve, and going on after being stopped, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from sparsezo.errors import UsageError
from sparsezo.learner import predict
from sparsezo.settings import Settings
from sparsezo.tasks.chunking.generate import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.training import Data, Training

SETTINGS = [
    Settings("two-point", "score", 0.01, 0.1),
    Settings("two-point", "all", 0.003, 0.1),
    Settings("baseline", "active", 0.01, 0.1, step="adagrad"),
    Settings("first-order", None, 0.05, None, baseline=True),
]


@pytest.fixture(scope="module")
def data():
    task, train = Chunking.fit(chunking_corpus(60, seed=1), only="NP")
    return task, Data(train, task.seen(chunking_corpus(40, seed=2)), task.seen(chunking_corpus(40, seed=3)))


class Stop:
    """Interrupt a run at its n-th look at the clock, as Ctrl-C would."""

    def __init__(self, after: int) -> None:
        self.left = after

    def __call__(self, _progress: object) -> None:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_stopped_and_resumed_is_the_same_run_bit_for_bit(data, settings, tmp_path):
    task, parts = data
    whole = Training(task, parts, settings, 6000, evaluate_every=700).go()
    checkpoint = tmp_path / "run.checkpoint"
    for stops in (3, 2):
        run = Training(task, parts, settings, 6000, evaluate_every=700, checkpoint=checkpoint, resume=True)
        with pytest.raises(KeyboardInterrupt):
            run.go(Stop(stops))
        assert 0 < run.learner.step < 6000
    last = Training(task, parts, settings, 6000, evaluate_every=700, checkpoint=checkpoint, resume=True)
    assert last.learner.step == run.learner.step
    resumed = last.go()
    np.testing.assert_array_equal(whole.model.W, resumed.model.W)
    for name, values in whole.model.curve.items():
        np.testing.assert_array_equal(values, resumed.model.curve[name])
    timings = {"seconds", "us_per_iteration"}
    assert {k: v for k, v in whole.result.items() if k not in timings} == {
        k: v for k, v in resumed.result.items() if k not in timings
    }
    last.finish()
    assert not checkpoint.exists()


def test_the_best_on_dev_is_kept(data):
    task, parts = data
    run = Training(task, parts, Settings("two-point", "score", 0.05, 0.5), 4000, evaluate_every=100)
    outcome = run.go()
    dev = outcome.model.curve["dev"]
    assert outcome.result["dev"] == dev.max()
    assert outcome.result["best_iteration"] == outcome.model.curve["iterations"][dev.argmax()]
    assert task.scores(parts.dev, outcome.model.predict(parts.dev)).value == dev.max()
    assert outcome.test is not None
    assert outcome.result["test"] == task.scores(parts.test, outcome.model.predict(parts.test)).value


def test_without_dev_the_last_weights_are_kept(data):
    task, parts = data
    outcome = Training(task, Data(parts.train), Settings(h=0.01), 1000).go()
    assert outcome.result["dev"] is None
    assert outcome.result["test"] is None
    assert outcome.result["best_iteration"] == 1000


def test_quick_quality_is_the_reported_one(data):
    task, parts = data
    problem, gold = task.problem(parts.dev, learn=False), task.gold(parts.dev)
    generator = np.random.default_rng(0)
    for scale in (0.01, 1.0):
        W = (scale * generator.standard_normal((task.n_features, task.n_labels))).astype(np.float32)
        outputs = predict(problem, W)
        assert task.quality(problem, gold, outputs) == task.scores(parts.dev, outputs).value


def test_a_checkpoint_of_another_run_is_refused(data, tmp_path):
    task, parts = data
    checkpoint = tmp_path / "run.checkpoint"
    run = Training(task, parts, Settings(h=0.01), 6000, checkpoint=checkpoint)
    with pytest.raises(KeyboardInterrupt):
        run.go(Stop(2))
    with pytest.raises(UsageError, match="of a run with other settings; resume with the same command"):
        Training(task, parts, Settings(h=0.02), 6000, checkpoint=checkpoint, resume=True)
    with pytest.raises(UsageError, match="other iterations, evaluate_every;"):
        Training(task, parts, Settings(h=0.01), 5000, checkpoint=checkpoint, resume=True)
    with pytest.raises(UsageError, match="other data;"):
        Training(task, Data(parts.train[:50]), Settings(h=0.01), 6000, checkpoint=checkpoint, resume=True)


def test_what_train_reports(data):
    task, parts = data
    result = Training(task, parts, Settings(h=0.01), 1000).go().result
    assert {
        *("task", "rule", "perturb", "criterion", "h", "mu", "seed", "iterations", "n", "n_active", "n_score"),
        *("average_loss", "best_iteration", "dev", "test", "seconds", "us_per_iteration", "update_fraction"),
    } <= set(result)
    assert result["n"] == task.n_features * 9
    assert 0 < result["n_score"] < result["n_active"] < result["n"]
    assert 0 < result["update_fraction"] <= 1
