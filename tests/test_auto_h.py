"""``h = "auto"`` for tasks: the step is what docs/steps.md says, knows no scale, and goes wherever a number goes."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from sparsezo import messages
from sparsezo.errors import UsageError
from sparsezo.kernels import loop
from sparsezo.kernels.inputs.dense import dense_inputs
from sparsezo.kernels.inputs.rows import row_inputs
from sparsezo.learner import Learner
from sparsezo.optimizer import Optimizer, replay
from sparsezo.query_learner import make_learner
from sparsezo.settings import Settings
from sparsezo.signals import DeferredSignals
from sparsezo.storage.container import pack, unpack
from sparsezo.study.plan import parse_experiment
from sparsezo.tasks.chunking.synthetic import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.loading import Data
from sparsezo.tasks.registry import task_spec
from sparsezo.training import Training

STEPS = 120
ZEROTH = ("two-point", "symmetric", "comparison", "preference", "baseline")
FIRST = ("first-order", "pairwise", "cross-entropy")


@pytest.fixture(scope="module")
def data():
    task, train = Chunking.fit(chunking_corpus(60, seed=1), only="NP")
    return task, train


@pytest.fixture(scope="module")
def parts(data):
    task, train = data
    return task.problem(train), task.gold(train)


def auto(rule="two-point", perturb="score", step="constant", mu=0.1, **more):
    if rule in ZEROTH:
        return Settings(rule, perturb, "auto", mu, step, **more)
    return Settings(rule, None, "auto", None, step, **more)


def told(learner, gold, proposal, scale=1.0):
    """The losses of what is shown, as gold has them."""
    found = [scale * float(loop.loss(gold, learner._task, proposal.x, y.copy())) for y in proposal.outputs]
    return found[0] if len(found) == 1 else tuple(found)


def by_hand(problem, gold, settings, steps, scale=1.0):
    """Ask and tell as often as ``run`` does so many steps; the learner, and (feedback, c) of each."""
    learner, seen = Learner(problem, settings), []
    while learner.step < steps:
        proposal = learner.ask()
        if learner.step >= steps:  # the last ones showed two outputs that are the same
            learner.unask(proposal)
            break
        feedback = told(learner, gold, proposal, scale)
        seen.append((feedback, learner.tell(proposal, feedback).c))
    return learner, seen


@pytest.mark.parametrize("step", ["constant", "adagrad"])
@pytest.mark.parametrize("rule", [*ZEROTH, *FIRST])
def test_ask_and_tell_give_the_weights_of_the_run(parts, rule, step):
    problem, gold = parts
    learner, _ = by_hand(problem, gold, auto(rule, step=step), STEPS)
    run = Learner(problem, auto(rule, step=step))
    run.run(gold, learner.step)
    assert run.updates > 5
    np.testing.assert_array_equal(learner.weights(), run.weights())
    assert learner.state.sums[loop.SQUARES] == run.state.sums[loop.SQUARES]


def difference(rule, feedback, losses):
    """d of docs/steps.md, up to its sign and a constant, by what was told and the first losses so far."""
    if rule in ("comparison", "preference"):
        better = (feedback[0] < feedback[1]) - (feedback[0] > feedback[1])
        return float(max(better, 0) if rule == "comparison" else better)
    if rule == "baseline":
        return -(feedback - sum(losses) / len(losses))
    return -(feedback[0] - feedback[1])


@pytest.mark.parametrize("perturb", ["score", "active", "all"])
@pytest.mark.parametrize("rule", ZEROTH)
def test_a_step_has_the_length_k_mu_in_the_mean(parts, rule, perturb):
    """c of every step by a literal loop over what was told."""
    problem, gold = parts
    _, seen = by_hand(problem, gold, auto(rule, perturb), STEPS)
    dims = {"score": problem.n_score.mean(), "active": problem.n_active.mean(), "all": problem.n_features * 9.0}
    losses, moves = [], []
    for feedback, c in seen:
        losses.append(feedback if rule == "baseline" else feedback[0])
        d = difference(rule, feedback, losses)
        if d == 0:
            assert c == 0
            continue
        moves.append(d)
        rms = math.sqrt(sum(each**2 for each in moves) / len(moves))
        k = 1.2 if rule == "comparison" else 0.6
        assert c == pytest.approx(k * 0.1 * d / rms / math.sqrt(dims[perturb]), rel=1e-9)
    assert len(moves) > 5


@pytest.mark.parametrize("step", ["constant", "adagrad"])
def test_no_scale_of_the_losses_changes_anything(parts, step):
    problem, gold = parts
    learners = [by_hand(problem, gold, auto(step=step), STEPS, scale)[0] for scale in (1.0, 1024.0, 0.3)]
    first, exact, near = (learner.weights() for learner in learners)
    np.testing.assert_array_equal(first, exact)
    np.testing.assert_allclose(first, near, rtol=1e-4, atol=1e-6)
    assert np.abs(first).max() > 0


@pytest.mark.parametrize("step", ["constant", "adagrad"])
@pytest.mark.parametrize("rule", ZEROTH)
def test_from_weights_of_0_mu_is_a_unit_of_measurement(parts, rule, step):
    problem, gold = parts
    one, two = (Learner(problem, auto(rule, step=step, mu=mu)) for mu in (0.1, 0.2))
    for learner in (one, two):
        learner.run(gold, 500)
    assert one.average_loss == two.average_loss
    np.testing.assert_array_equal(2 * one.weights(), two.weights())


def test_a_late_answer_is_measured_by_the_differences_told_until_it_came(parts):
    problem, _ = parts
    learner = Learner(problem, auto("preference"))
    early, late = learner.ask(), learner.ask()
    unit = 0.06 / math.sqrt(problem.n_score.mean())
    assert learner.tell(late, "candidate").c == pytest.approx(unit)
    assert learner.tell(early, "incumbent").c == pytest.approx(-unit)
    learner = Learner(problem, auto())
    early, late = learner.ask(), learner.ask()
    assert learner.tell(late, (0.0, 0.4)).c == pytest.approx(unit)
    assert learner.tell(early, (0.3, 0.0)).c == pytest.approx(-unit * 0.3 / math.sqrt((0.3**2 + 0.4**2) / 2))


@pytest.mark.parametrize("step", ["constant", "adagrad"])
@pytest.mark.parametrize("rule", ["two-point", "baseline", "first-order"])
def test_it_goes_on_from_bytes_bit_for_bit(parts, rule, step):
    problem, gold = parts
    straight, first = (Learner(problem, auto(rule, step=step)) for _ in range(2))
    straight.run(gold, 300)
    first.run(gold, 140)
    second = Learner.from_bytes(first.to_bytes(), problem)
    second.run(gold, 160)
    np.testing.assert_array_equal(second.weights(), straight.weights())


def test_a_log_is_replayed(parts):
    problem, gold = parts
    events = []
    learner = Learner(problem, auto("preference", "active"))
    learner.on_event = lambda event: events.append(json.loads(json.dumps(event)))
    for _ in range(30):
        proposal = learner.ask()
        learner.tell(proposal, told(learner, gold, proposal))
    again = Learner(problem, auto("preference", "active"))
    replay(again, events)
    np.testing.assert_array_equal(again.weights(), learner.weights())


def test_a_state_of_an_earlier_version_is_read(parts):
    """It had no sum of squared differences."""
    problem, gold = parts
    settings = Settings("two-point", "score", 0.001, 0.1)
    learner, straight = (Learner(problem, settings) for _ in range(2))
    learner.run(gold, 100)
    straight.run(gold, 200)
    meta, arrays = unpack(learner.to_bytes(), "state", "it")
    meta = {name: meta[name] for name in ("id", "settings", "open")}
    old = pack("state", meta, {**arrays, "sums": arrays["sums"][:4]})
    again = Learner.from_bytes(old, problem)
    again.run(gold, 100)
    np.testing.assert_array_equal(again.weights(), straight.weights())


def test_a_run_that_was_stopped_goes_on_bit_for_bit(data, tmp_path, monkeypatch):
    task, train = data
    how = {"evaluate_every": 100, "checkpoint": tmp_path / "run"}
    straight = Training(task, Data(train), auto(step="adagrad"), 600).go().model.W
    stopped = Training(task, Data(train), auto(step="adagrad"), 600, **how)

    def stop(progress):
        if progress.step >= 300:
            raise KeyboardInterrupt

    monkeypatch.setattr(DeferredSignals, "deliver", lambda self: None)
    with pytest.raises(KeyboardInterrupt):
        stopped.learn(stop)
    assert 300 <= stopped.learner.step < 600
    again = Training(task, Data(train), auto(step="adagrad"), 600, resume=True, **how)
    assert again.learner.step == stopped.learner.step
    np.testing.assert_array_equal(again.go().model.W, straight)


# Rules that perturb nothing: by the size of the inputs


@pytest.mark.parametrize("rule", [*FIRST, "supervised", "part", "span", "review"])
def test_h_is_by_the_size_of_the_inputs(data, rule):
    task, train = data
    problem = task.problem(train, asks=True)
    entries = problem.inputs.columns.size  # of value 1
    size = entries / int(train.offsets[-1])
    assert problem.sizes == pytest.approx((size, size))
    K = {"first-order": 2.0, "pairwise": 0.5, "cross-entropy": 0.5, "supervised": 2.0}
    K = K.get(rule, 3.0 if rule in ("span", "review") else 8.0)
    values = np.full(entries, -2, np.float32)
    larger = replace(problem, inputs=problem.inputs._replace(values=values))
    one, two = (make_learner(each, auto(rule, step="adagrad"))._params.h for each in (problem, larger))
    assert (one, two) == pytest.approx((K / size, K / size / 2))
    if rule in ("part", "span", "review"):
        with pytest.raises(
            UsageError, match=r"^`h` auto of rule \w+ is for Adagrad's steps: leave out `step`, or give"
        ):
            auto(rule)
    else:
        one, two = (make_learner(each, auto(rule))._params.h for each in (problem, larger))
        assert two == pytest.approx(one / 4)


def test_what_all_candidates_of_a_list_share_has_no_size():
    rng = np.random.default_rng(3)
    features, offsets = rng.normal(0, 2, (200, 5)).astype(np.float32), np.array([0, 80, 200])
    absolute, square = dense_inputs(features, offsets).sizes()
    moved = features + np.repeat([[10.0], [-30.0]], [80, 120], axis=0).astype(np.float32)
    assert dense_inputs(moved, offsets).sizes() == pytest.approx((absolute, square), rel=1e-3)
    assert (absolute / 2, square / 2) == pytest.approx((5 * 2, 5 * 4), rel=0.1)
    absolute, square = dense_inputs(features, offsets, scaled=True).sizes()
    assert (absolute / 2, square / 2) == pytest.approx((5, 5))


def test_a_document_has_the_size_of_its_words():
    rows = row_inputs(csr_array(np.array([[0.5, 0, -0.5], [0, 2, 0]], np.float32)))
    assert rows.sizes() == pytest.approx((3.0, 4.5))


def test_inputs_that_have_no_size_need_a_number(parts):
    class Sizeless(tuple):
        pass

    problem = replace(parts[0], inputs=Sizeless())
    with pytest.raises(UsageError, match=r"^Sizeless have no sizes\(\), by which `h` auto goes: give `h` a number"):
        Learner(problem, auto("first-order"))


# Where it can be given


def test_it_is_a_setting_like_a_number():
    settings = auto(seed=3)
    assert str(settings) == "two-point, score, h auto, mu 0.1, seed 3"
    assert Settings.from_dict(settings.as_dict(), "it") == settings
    for wrong in ("fast", "Auto", "0.1"):
        with pytest.raises(UsageError, match=rf"^`h` {wrong}: must be positive and finite, or auto$"):
            Settings(h=wrong)
    for wrong in (-1.0, True, None, ["auto"]):
        with pytest.raises(UsageError, match=r"^`h` .*: must be positive and finite$"):
            Settings(h=wrong)
    with pytest.raises(UsageError, match=r"^`h` 'fast': give a number or auto"):
        Settings.from_dict({"h": "fast"}, "it")


def test_mu_and_step_are_the_tasks_own():
    usual = task_spec("chunking").usual
    made = Settings.complete({"h": "auto"}, *usual)
    assert (made.h, made.mu, made.step) == ("auto", 0.2, "adagrad")
    made = Settings.complete({"h": "auto", "perturb": "active"}, *usual)
    assert (made.h, made.mu, made.step) == ("auto", 0.1, "constant")


def test_it_is_the_default_where_it_was_measured_to_be_as_good():
    """docs/steps.md; elsewhere the default is a number."""
    for rule in ZEROTH:
        made = Settings.complete({"rule": rule}, *task_spec("text").usual)
        assert (made.h, made.mu, made.step) == ("auto", 1.0, "adagrad")
        assert Settings.complete({"rule": rule, "perturb": "active"}, *task_spec("text").usual).h == "auto"
        made = Settings.complete({"rule": rule}, *task_spec("chunking").usual)
        assert (made.h, made.mu) == (0.05 if rule in ("two-point", "symmetric") else "auto", 0.2)
        made = Settings.complete({"rule": rule, "perturb": "active"}, *task_spec("chunking").usual)
        assert (made.h, made.mu, made.step) == ("auto" if rule in ("two-point", "symmetric") else 3e-4, 0.1, "constant")
    for task, rules in (("text", ("pair", "rate")), ("chunking", ("span",))):
        spec = task_spec(task)
        assert tuple(rule for rule in spec.asks if spec.defaults(rule, "adagrad", None)[0] == "auto") == rules


def test_a_small_number_is_for_constant_steps_where_auto_is_the_default():
    """Adagrad's own h would be 0.4 mu, and a tenth of that is small."""
    made = [Settings.complete({"h": h}, *task_spec("text").usual) for h in (0.039, 0.041)]
    assert [(each.h, each.step) for each in made] == [(0.039, "constant"), (0.041, "adagrad")]


def test_experiments_take_it():
    text = """
    name = "mine"
    task = "chunking"
    iterations = 1000
    [data]
    train = "a.txt"
    test = "b.txt"
    [[learner]]
    rule = "two-point"
    h = {}
    """
    (learner,) = parse_experiment(text.format('"auto"'), "mine.toml").learners
    assert learner.settings(0).h == "auto"
    assert "h auto" in str(learner.settings(0))
    with pytest.raises(Exception, match="`h` fast: must be positive and finite, or auto"):
        parse_experiment(text.format('"fast"'), "mine.toml")
    with pytest.raises(Exception, match="h is true; give a number, or auto"):
        parse_experiment(text.format("true"), "mine.toml")


def test_plain_functions_have_an_automatic_step_of_their_own():
    with pytest.raises(UsageError, match=r"^h auto is a task's: leave out settings"):
        Optimizer(3, Settings(h="auto", perturb="active"))


def test_it_learns(data):
    """From 2,000 comparisons on generated sentences, without a number for anything."""
    task, train = data
    with messages.gathered() as said:
        outcome = Training(task, Data(train, train), auto("preference", step="adagrad"), 20_000).go()
    assert outcome.result["dev"] > 0.9
    assert said == []
