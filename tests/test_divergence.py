"""Weights that are not finite never count as success, and the message names the setting at fault."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from sparsezo import messages
from sparsezo.errors import DamagedError, DivergedError
from sparsezo.learner import Learner
from sparsezo.minimization import minimize
from sparsezo.model import load_model
from sparsezo.optimizer import Optimizer, RunawayLoss
from sparsezo.settings import Settings
from sparsezo.storage.container import write_container
from sparsezo.tasks.chunking.synthetic import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.loading import Data
from sparsezo.training import Training, tried_out
from sparsezo.validation import all_finite

SETTINGS = Settings(h=0.001, mu=0.1)
ANNEALED = replace(SETTINGS, criterion="annealed")
SUPERVISED = Settings("supervised", None, 0.01, None)


@pytest.fixture(scope="module")
def data():
    task, train = Chunking.fit(chunking_corpus(60, seed=1), only="NP")
    return task, Data(train)


@pytest.fixture(scope="module")
def task(data):
    return data[0]


@pytest.fixture(scope="module")
def parts(data):
    return data[1]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (replace(SETTINGS, h=1e308), r"^step \d+: the .* not finite; `h` 1e\+308 is probably too large, try a tenth"),
        (replace(SUPERVISED, h=1e38), r"^step \d+: the .* not finite; `h` 1e\+38 is probably too large, try a tenth"),
        (replace(SETTINGS, mu=1e-43), r"^step \d+: the .* not finite; `mu` 1e-43 is probably too small for `h` 0.001"),
        (replace(SETTINGS, mu=1e39), r"^step 0: the scores or the loss are not finite; `mu` 1e\+39 is probably too la"),
        (replace(ANNEALED, gamma=1e300), r"^step 0: the scores or the loss .* `gamma` 1e\+300 is probably too large"),
        (replace(ANNEALED, gamma=1e-300), r"^step 0: `gamma` 1e-300 is so small that no perturbation changes the expe"),
        (replace(SETTINGS, mu=1e-60), r"^`mu` 1e-60 is 0 as float32, which weights are: it changes no score; use a la"),
        (replace(SETTINGS, mu=1e-20), r"^step \d+: `mu` 1e-20 is so small beside weights of .* that it changes no out"),
        (replace(SETTINGS, mu=1e-9, rule="baseline"), r"^step \d+: `mu` 1e-09 is so small .* or a smaller `h` than 0"),
    ],
    ids=str,
)
def test_no_run_ends_well_and_the_setting_at_fault_is_named(task, parts, settings, message):
    """Without a dev set, which would look at the weights."""
    with pytest.raises(DivergedError, match=message):
        Training(task, parts, settings, 600).go()


@pytest.mark.parametrize("settings", [SETTINGS, ANNEALED, replace(SETTINGS, mu=1e-4, h=1e-9), SUPERVISED], ids=str)
def test_what_can_learn_is_left_alone(task, parts, settings):
    assert Training(task, parts, settings, 300).go().result["update_fraction"] > 0


def test_weights_that_are_large_beside_mu_but_still_hear_it_are_left_alone(task, parts):
    W = np.zeros((task.n_features, task.n_labels), np.float32)
    W[0] = 1e7  # one weight of a thousand cannot notice mu; the rest can
    assert Training(task, parts, SETTINGS, 300, W=W).go().result["update_fraction"] > 0


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_no_such_weights_are_given_saved_or_loaded(task, parts, tmp_path, value):
    run = Training(task, parts, SETTINGS, 100, checkpoint=tmp_path / "checkpoint")
    model = run.go().model
    run.learner.state.W[5, 1] = value
    for use in (run.learner.weights, run.learner.to_bytes, run._save):
        with pytest.raises(DivergedError, match=r"^step 100: the weights are not finite; `h` 0.001 is probably too l"):
            use()
    model.W[5, 1] = value
    with pytest.raises(DivergedError, match=r"the weights are not finite, so nothing was written; train with a small"):
        model.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())
    settings, arrays = task.to_arrays()
    meta = {"task": "chunking", "task_settings": settings, "settings": {}, "result": {}}
    own = {f"task.{name}": array for name, array in arrays.items()}
    write_container(tmp_path / "model", "model", meta, {"W": model.W, **own})
    with pytest.raises(DamagedError, match=r"model: is damaged \(weights that are not finite\)"):
        load_model(tmp_path / "model")


def test_the_best_weights_in_a_checkpoint_are_finite_too(task, parts, tmp_path):
    run = Training(task, parts, SETTINGS, 100, checkpoint=tmp_path / "checkpoint")
    run.best[3, 2] = np.nan
    with pytest.raises(DivergedError):
        run._save()
    assert not (tmp_path / "checkpoint").exists()


def test_all_finite():
    assert all_finite(np.zeros((0, 3)))
    assert all_finite(np.array([np.finfo(np.float32).max, -1], np.float32))
    for value in (np.nan, np.inf, -np.inf):
        for place in range(3):
            array = np.zeros(3)
            array[place] = value
            assert not all_finite(array)


def ask_and_tell(h, mu, rule="two-point"):
    wanted = np.linspace(-1, 1, 20)

    def F(w, x):
        loss = float(np.abs(w[x] - wanted[x]).sum())
        return loss if loss < 100 else 100.0  # finite, whatever w

    return minimize(F, lambda k: np.array([k % 20, (k + 7) % 20]), lambda x: x, 20, h=h, mu=mu, steps=400, rule=rule)


@pytest.mark.parametrize("rule", ["two-point", "comparison", "baseline"])
def test_minimize_ends_with_weights_or_an_error(rule):
    assert np.isfinite(ask_and_tell(0.01, 0.01, rule).w).all()
    large = r"^step \d+: (the weights are|it is) not finite; `h` 1e\+308 is probably too large"
    with pytest.raises(DivergedError, match=large), np.errstate(all="ignore"):
        ask_and_tell(1e308, 0.01, rule)
    small = r"^step \d+: mu 1e-30 is so small beside the weights that it changes nothing: nothing can be learned"
    with pytest.raises(DivergedError, match=small):
        ask_and_tell(1e-3, 1e-30, rule)


def test_minimize_says_so_where_the_weights_have_outgrown_mu():
    with pytest.raises(DivergedError, match=r"^step 100: mu 0.01 is so small beside the weights"):
        minimize(lambda w, x: 0.5, lambda k: [0], np.array, 1, h=0.1, mu=0.01, steps=300, w0=[1e20])
    assert minimize(lambda w, x: 0.5, lambda k: [0], np.array, 1, h=0.1, mu=0.01, steps=300).steps == 300  # flat


def test_steps_without_active_weights_are_no_sign_of_a_small_mu():
    result = minimize(lambda w, x: 0.0, lambda k: [], np.array, 3, h=0.1, mu=0.1, steps=300)
    assert result.steps == 300


def test_an_optimizer_gives_no_weights_that_are_not_finite():
    optimizer = Optimizer(3, Settings("two-point", "active", h=1e308, mu=0.1))
    with np.errstate(all="ignore"):
        optimizer.tell(optimizer.ask([0, 1]), (0.1, 0.0))
        with pytest.raises(DivergedError, match=r"^step 1: it is not finite; `h` 1e\+308"):
            optimizer.tell(optimizer.ask([0, 1]), (5.0, 0.0))
        for _ in range(9):
            optimizer.tell(optimizer.ask([0, 1]), (0.1, 0.0))
    with pytest.raises(DivergedError, match=r"^step \d+: the weights are not finite; `h` 1e\+308"):
        optimizer.weights()


def test_a_learner_rehearses_without_learning(task, parts):
    gold = task.gold(parts.train)
    learner, twin = (Learner(task.problem(parts.train), SETTINGS) for _ in range(2))
    for each in (learner, twin):
        each.run(gold, 50)
    heard, moves = tried_out(learner, gold)
    assert (heard, moves) == (pytest.approx(1.0, abs=0.01), True)
    for each in (learner, twin):
        each.run(gold, 50)
    np.testing.assert_array_equal(learner.weights(), twin.weights())


def test_adagrads_sums_that_overflow_are_no_success(task, parts):
    """A step of 1 / mu squared is infinite in float32: the weights would stand still, finite, for ever."""
    learner = Learner(task.problem(parts.train), Settings("two-point", "score", 0.05, 1e-30, "adagrad"))
    learner.run(task.gold(parts.train), 100)
    said = r"^step 100: Adagrad's sums of squares are not finite; `mu` 1e-30 is probably too small for `h` 0.05"
    with pytest.raises(DivergedError, match=said):
        learner.weights()


# A loss that has gone far above the start's


def remarks_on(rule, *told):
    """What is said where 100 steps are told each of these."""
    optimizer = Optimizer(3, Settings(rule, "active", h=1e-6, mu=0.1))
    with messages.gathered() as said:
        for feedback in told:
            for _ in range(100):
                optimizer.tell(optimizer.ask([0]), feedback)
    return said


def test_an_optimizer_says_once_that_the_loss_has_run_away():
    assert remarks_on("baseline", 1.0, 9.9, 0.1) == []
    (remark,) = remarks_on("baseline", 1.0, 9.9, 11.0, 500.0)
    assert remark == (
        "step 300: the loss has gone far above the start's, 11 in the mean of the last 100 against 1; "
        "`h` 1e-06 is probably too large, try a tenth of it"
    )
    (remark,) = remarks_on("two-point", (0.5, 0.5), (6.0, 5.9))
    assert "step 200:" in remark
    (remark,) = remarks_on("baseline", -1.0, 11.0)  # from a loss below 0
    assert remarks_on("baseline", -1.0, 9.0) == []


def test_a_start_that_is_0_in_the_mean_is_known_by_its_size():
    watch = RunawayLoss(SETTINGS)
    with messages.gathered() as said:
        for k in range(200):
            watch.note(k, 1.0 if k % 2 else -1.0)
        watch.note(300, 9.0 * 1000, 1000)
        assert said == []
        watch.note(400, 11.0 * 1000, 1000)
    assert len(said) == 1


def test_preferences_are_no_losses():
    optimizer = Optimizer(3, Settings("preference", "active", h=1e-6, mu=0.1))
    with messages.gathered() as said:
        for k in range(300):
            optimizer.tell(optimizer.ask([0]), "incumbent" if k == 3 or k >= 100 else "candidate")
    assert said == []


def test_train_says_that_the_loss_has_run_away(task, parts):
    """From weights that are good, with steps that are far too long."""
    good = Training(task, parts, replace(SUPERVISED, h=0.1, step="adagrad"), 3000).go().model.W
    with messages.gathered() as said:
        assert Training(task, parts, SETTINGS, 2000, W=good).go().result["average_loss"] < 0.05
        assert said == []
        Training(task, parts, replace(SETTINGS, h=1.0, mu=0.2), 2000, W=good).go()  # all right in the first 600 steps
    (remark,) = said
    assert "the loss has gone far above the start's" in remark
    assert "`h` 1 is probably too large" in remark


def test_a_run_that_goes_on_knows_its_start():
    """The first mean is given to it: its own first losses after the break are not the start's."""
    watch = RunawayLoss(SETTINGS, first=0.01)
    with messages.gathered() as said:
        watch.note(5000, 50.0, 100)
    assert len(said) == 1


# What a run's curve says at its end


def said_of(task, parts, settings, steps=10_000, **more):
    with messages.gathered() as said:
        run = Training(task, parts, settings, steps, **more)
        run.go()
    return said, run


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            replace(SETTINGS, h=1e-9),
            r"^nothing was learned: the mean loss was 0\.8.* `h` 1e-09 is probably too small for",
        ),
        (replace(SETTINGS, h=1e-6, step="adagrad"), r"`h` 1e-06 is probably too small for `mu` 0.1; try `h` auto, unl"),
        (
            replace(SETTINGS, h=100.0),
            r"^nothing was learned: .*`h` 100 is probably too large for `mu` 0.1; try `h` auto",
        ),
        (replace(SETTINGS, h=1e-9, rule="baseline"), r"^nothing was .*`h` 1e-09 is probably too small or too large"),
        (
            Settings("first-order", None, 1e-6, None),
            r"^nothing was learned: .*`h` 1e-06 is probably too small or too la",
        ),
        (
            replace(SETTINGS, h=1e4),
            r"^a plateau: no perturbation changed an output in the last 3,300 steps: `mu` 0.1 is small beside what the "
            r"weights have come to; use a larger `mu`, or a smaller `h` than 10000$",
        ),
    ],
    ids=str,
)
def test_a_run_that_learned_nothing_says_so_in_one_line(task, parts, settings, message):
    (remark,), _ = said_of(task, parts, settings)
    assert re.search(message, remark)


@pytest.mark.parametrize("settings", [SETTINGS, replace(SETTINGS, h="auto"), replace(SETTINGS, h=1.0)], ids=str)
def test_a_run_that_learned_something_says_nothing(task, parts, settings):
    said, run = said_of(task, parts, settings)
    assert said == []
    assert run.best_iteration == 10_000  # without dev: the latest


def test_nothing_is_said_of_a_curve_that_shows_nothing(task, parts):
    for steps, more in ((1000, {}), (10_000, {"evaluate_every": 1000})):
        said, _ = said_of(task, parts, replace(SETTINGS, h=1e-9), steps, **more)
        assert said == []


def test_a_run_that_diverges_keeps_its_best_model_on_dev(task, parts):
    """By a step of 1e38, which the scores do not survive."""
    with messages.gathered() as said:
        run = Training(task, replace(parts, dev=parts.train), SETTINGS, 2000, evaluate_every=100)

        def break_it(progress):
            if progress.step == 1000:
                run.learner.state.W[:] *= np.float32(1e38)

        with np.errstate(all="ignore"):
            model = run.learn(break_it)
    (remark,) = said
    assert re.search(r"^step \d+: the .* not finite; .*; the best model on dev, of step [1-9][\d,]*, is kept$", remark)
    assert 0 < run.best_iteration <= 1000 <= model.result["iterations"] < 2000
    assert model.result["dev"] == max(point.dev for point in run.curve) > run.curve[0].dev


def test_without_dev_a_model_whose_loss_has_run_away_is_not_kept(task, parts):
    good = Training(task, parts, replace(SUPERVISED, h=0.1, step="adagrad"), 3000).go().model.W
    said, run = said_of(task, parts, replace(SETTINGS, h=1.0, mu=0.2), 2000, W=good)
    assert any("the loss has gone far above the start's" in remark for remark in said)
    means = np.diff([point.iterations * point.average_loss for point in run.curve]) / 20
    kept = run.best_iteration // 20
    assert 0 < kept < 100
    assert means[kept - 1] <= 10 * max(means[0], 0.01)  # the last look of which this is true
    assert (means[kept:] > 10 * max(means[0], 0.01)).all()
