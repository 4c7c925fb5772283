"""Reviews by ask and tell: what is asked, what an answer may be, and that a compiled run is the same."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest

from sparsezo.errors import UsageError
from sparsezo.kernels import answering, codes, protocol, random
from sparsezo.kernels.codes import NOT_SAID, STANDING
from sparsezo.kernels.jit import allocating_kernel as kernel
from sparsezo.optimizer import replay
from sparsezo.query_learner import QueryLearner
from sparsezo.questions import Question
from sparsezo.rules import RULES
from sparsezo.settings import Settings
from sparsezo.tasks.chunking.synthetic import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.loading import Data
from sparsezo.training import Training

N = 25


@pytest.fixture(scope="module")
def problems():
    """name -> (problem, gold)"""
    fitted = {
        "order 2": Chunking.fit(chunking_corpus(120, 1), only="NP"),
        "order 1": Chunking.fit(chunking_corpus(60, 2), order=1),
        "plain": Chunking.fit(chunking_corpus(60, 3), scheme="plain"),
    }
    return {name: (task.problem(data, asks=True), task.gold(data)) for name, (task, data) in fitted.items()}


def settings(**given):
    return Settings(**{"rule": "review", "perturb": None, "h": 0.1, "mu": None, "step": "adagrad", "seed": 3, **given})


def by_hand(learner, gold, n):
    for _ in range(n):
        question = learner.ask()
        learner.tell(question, learner.known_answer(question, gold))
    return learner


def assert_same(one, other):
    for name in ("W", "q", "counts"):
        np.testing.assert_array_equal(getattr(one.state, name), getattr(other.state, name))


CASES = [
    ("order 2", {}),
    ("order 2", {"review": "marked"}),
    ("order 1", {"review": "auto", "seconds": "slow"}),
    ("order 1", {"rehearse": 0}),
    ("plain", {}),
    ("order 1", {"rater_error": "0.1,0.02", "feedback": "flip:0.1"}),
]


@pytest.mark.parametrize(("name", "given"), CASES)
def test_ask_and_tell_give_what_run_gives(problems, name, given):
    problem, gold = problems[name]
    compiled = QueryLearner(problem, settings(**given))
    compiled.run(gold, answers=N)
    assert compiled.answers == compiled.questions == N
    assert compiled.updates > N / 2
    assert_same(compiled, by_hand(QueryLearner(problem, settings(**given)), gold, N))
    pieces = QueryLearner(problem, settings(**given))
    while pieces.answers < N:
        pieces.run(gold, 7, N)
    assert_same(compiled, pieces)


def test_a_learner_goes_on_from_its_bytes(problems):
    problem, gold = problems["order 1"]
    learner = by_hand(QueryLearner(problem, settings()), gold, 9)
    asked = learner.ask()
    again = QueryLearner.from_bytes(learner.to_bytes(), problem)
    question = Question.from_json(asked.as_json())
    assert again.tell(question, "right").average_loss == learner.tell(asked, "right").average_loss
    assert_same(by_hand(learner, gold, 5), by_hand(again, gold, 5))


def test_what_was_asked_can_be_taken_back(problems):
    problem, gold = problems["order 2"]
    learner = by_hand(QueryLearner(problem, settings()), gold, 3)
    before = learner.to_bytes()
    question = learner.ask()
    learner.unask(question)
    assert learner.to_bytes() == before
    assert learner.ask().same(question)


def test_what_was_reviewed_comes_again_only_where_the_model_disagrees(problems):
    problem, gold = problems["order 2"]
    learner = QueryLearner(problem, settings(rehearse=30))
    seen = {}
    for _ in range(100):
        question = learner.ask()
        if question.x in seen:
            assert seen[question.x] != question.outputs[0].tolist()
        seen[question.x] = learner.known_answer(question, gold)["output"]
        learner.tell(question, learner.known_answer(question, gold))
    assert len(seen) > 50


@pytest.mark.parametrize("known", [0, 1, 255, 256, 257, 511, 512, 513, 1000])
def test_the_last_answer_about_an_input_is_found(known):
    """Also at the ends of the blocks that are compared at once; what stands behind the known ones does not count."""
    about = np.random.default_rng(known).integers(0, 300, 1200).astype(np.int32)
    for x in range(-1, 301):
        expected = max((at for at in range(known) if about[at] == x), default=-1)
        assert answering.last_about(about, known, x) == expected


def test_the_first_reviews_are_whole_whatever_is_worth_more_by_the_second():
    task, corpus = Chunking.fit(chunking_corpus(800, 1), order=1)
    problem, gold = task.problem(corpus, asks=True), task.gold(corpus)
    every, either = (QueryLearner(problem, settings(review=review)) for review in ("all", "auto"))
    for learner in (every, either):
        learner.run(gold, answers=answering.WHOLE_FIRST)
    assert_same(every, either)
    assert either.looked == either.whole
    asked = by_hand(copy.copy(either), gold, 50)
    either.run(gold, answers=answering.WHOLE_FIRST + 50)
    assert either.looked > either.whole
    assert_same(asked, either)


@kernel
def gain_of(inputs, task, params, x, state, work):
    protocol.scores(inputs, x, state.W, work.S)
    args = (params.rule, params.about, codes.UNSURE, params.seconds, np.uint64(0), 0)
    return protocol.look(task, x, work.S, *args, work.q, work.y, work.incumbent)


def test_of_a_sentence_that_is_asked_about_which_is_worth_more_by_the_second(problems):
    problem, gold = problems["order 1"]
    learner = by_hand(QueryLearner(problem, settings()), gold, 40)
    args, chosen = (learner._inputs, learner._task), []
    for x in range(len(problem)):
        found = {}
        for review in ("all", "marked", "auto"):
            params = settings(review=review, seconds="0.5,0.3,0.4,2.5").step_params()
            gain = gain_of(*args, params, x, learner.state, learner.workspace)
            n = int(problem.output_start[x + 1] - problem.output_start[x])
            found[review] = gain, learner.workspace.incumbent[:n].tolist()
        best = max(found["all"], found["marked"], key=lambda each: each[0])
        assert found["auto"][0] == best[0]
        assert found["auto"][1] == best[1] or found["all"][0] == found["marked"][0]
        chosen.append(best is found["marked"])
    assert 0 < sum(chosen) < len(chosen)


def test_the_gain_by_the_second_of_a_table(problems):
    problem, gold = problems["order 2"]
    learner = by_hand(QueryLearner(problem, settings()), gold, 5)
    each, token, part, correction = table = (0.25, 0.5, 3.0, 1.5)
    args = learner._inputs, learner._task
    for x in range(20):
        params = settings(seconds="1,0,0,0").step_params()  # the gain itself
        whole = gain_of(*args, params, x, learner.state, learner.workspace)
        of_marked = gain_of(*args, params._replace(about=codes.ABOUT_MARKED), x, learner.state, learner.workspace)
        n = int(problem.output_start[x + 1] - problem.output_start[x])
        marked = int((learner.workspace.incumbent[:n] == STANDING).sum())
        params = params._replace(seconds=table)
        got = gain_of(*args, params, x, learner.state, learner.workspace)
        assert got == pytest.approx(whole / (each + token * n + correction * whole))
        got = gain_of(*args, params._replace(about=codes.ABOUT_MARKED), x, learner.state, learner.workspace)
        cost = part * marked if marked < n else token * n
        assert got == pytest.approx(of_marked / (each + cost + correction * of_marked))


def test_who_is_asked_decides_what_is_asked_and_not_what_is_learned(problems):
    problem, gold = problems["order 2"]
    differ = 0
    for seed in range(8):
        learner, other = (by_hand(QueryLearner(problem, settings(seed=seed)), gold, 3) for _ in range(2))
        other.set_seconds((0.01, 3.0, 3.0, 0.0))  # who reads slowly and corrects at once
        question, another = learner.ask(), other.ask()
        differ += question.x != another.x
        other.unask(another)
        other.set_seconds([0.5, 0.12, 0.7, 2.5])
        again = other.ask()
        assert again.same(question)
        other.set_seconds((0.01, 3.0, 3.0, 0.0))
        other.tell(again, "right")
        learner.tell(question, "right")
        assert_same(learner, other)
    assert differ > 0
    for wrong in ((1, 2, 3), (0, 0, 0, 1), (1, 1, 1, -1), "fast", (np.inf, 1, 1, 1)):
        with pytest.raises(UsageError, match="`seconds`"):
            learner.set_seconds(wrong)


# Going over answers again


def test_a_finish_goes_over_every_answer_and_is_replayed(problems):
    problem, gold = problems["order 1"]
    learner, log = QueryLearner(problem, settings(rehearse=2)), []
    learner.on_event = log.append
    asked = []
    for _ in range(12):
        question = learner.ask()
        asked.append((question, learner.known_answer(question, gold)))
        learner.tell(*asked[-1])
    literal = copy.copy(learner)
    learner.finish(2)
    assert log[-1] == {"event": "finish", "passes": 2}
    key = learner._params.keys[random.REHEARSAL]
    order = [int(random.permuted(key, k, 12)) for k in range(24)]
    assert sorted(order[:12]) == sorted(order[12:]) == list(range(12))
    assert order[:12] != order[12:]
    for at in order:
        literal.learn_from(*asked[at], again=True)
    assert_same(learner, literal)
    assert learner.answers == 12
    by_hand(learner, gold, 3)
    again = QueryLearner(problem, settings(rehearse=2))
    replay(again, json.loads(json.dumps(log)))
    assert_same(learner, again)


def test_after_each_answer_these_earlier_ones_are_gone_over(problems):
    """Three of all that are known, the new one among them, by the stream of rehearsals; none after the first answer."""
    problem, gold = problems["order 2"]
    learner, literal = QueryLearner(problem, settings(rehearse=3)), QueryLearner(problem, settings(rehearse=0))
    key = learner._params.keys[random.REHEARSAL]
    for given in range(1, 13):
        question = learner.ask()
        said = learner.known_answer(question, gold)
        learner.tell(question, said)
        literal.learn_from(question, said)
        for k in range(3 if given > 1 else 0):
            at = int(random.below(key, given * 3 + k, given))
            args = (literal._inputs, literal._task, literal._params, at, literal.state, literal.workspace)
            assert answering.learn_again(*args)
        np.testing.assert_array_equal(learner.state.W, literal.state.W)


def test_what_cannot_be_gone_over(problems):
    problem, gold = problems["order 1"]
    with pytest.raises(UsageError, match="no answers are remembered"):
        QueryLearner(problem, settings(rule="part", rehearse=0)).finish(1)
    learner = QueryLearner(problem, settings(rehearse=0))
    with pytest.raises(UsageError, match="`passes`"):
        learner.finish(-1)
    question = learner.ask()
    learner.tell(question, learner.known_answer(question, gold))
    parts = QueryLearner(problem, settings(rule="label"))
    single = parts.ask()
    learner.learn_from(single, parts.known_answer(single, gold))
    with pytest.raises(UsageError, match="of several kinds"):
        learner.finish(1)
    again = QueryLearner.from_bytes(learner.to_bytes(), problem)
    with pytest.raises(UsageError, match="of several kinds"):
        again.finish(1)
    for _ in range(5):
        assert again.ask().same(learner.ask())


def test_two_kinds_of_error_are_believed_of_a_review(problems):
    problem, gold = problems["order 2"]
    learner = QueryLearner(problem, settings(rehearse=0))
    question = learner.ask()
    answer = learner.known_answer(question, gold)
    other = QueryLearner(problem, settings(rehearse=0, rater_error="0.2,0.05"))
    same = other.ask()
    other.tell(same, answer)
    learner.learn_from(question, answer, error=(0.2, 0.05))
    np.testing.assert_array_equal(learner.state.W, other.state.W)


def test_a_run_ends_with_a_finish_unless_it_is_looked_at_in_between(problems):
    task, data = Chunking.fit(chunking_corpus(60, 2), order=1)
    gold = task.gold(data)
    by_answers = Training(task, Data(data), settings(), answers=15).go().model.W
    by_looks = Training(task, Data(data), settings(), evaluate_at=(5, 15)).go().model.W
    learner = QueryLearner(task.problem(data, asks=True), settings())
    learner.run(gold, answers=15)
    np.testing.assert_array_equal(by_looks, learner.weights())
    learner.finish(RULES["review"].finish)
    np.testing.assert_array_equal(by_answers, learner.weights())


def test_of_inputs_never_reviewed_the_best_is_asked(problems):
    problem, _ = problems["order 1"]
    asked = 0
    for seed in range(20):
        learner = QueryLearner(problem, settings(seed=seed))
        learner.state.W[...] = np.random.default_rng(seed).normal(0, 0.3, learner.state.W.shape)
        pool = [int(random.permuted(learner._params.keys[random.INPUTS], k, len(problem))) for k in range(30)]
        args = learner._inputs, learner._task, learner._params
        gains = {x: gain_of(*args, x, learner.state, learner.workspace) for x in pool}
        best = max(gains, key=gains.__getitem__)
        x = learner.ask().x
        assert x in (best, pool[0])
        asked += x == best
    assert asked >= 14


@pytest.mark.parametrize(
    "wrong", ["wrong", [0], None, 3.5, {"output": [0]}, [9] * 4, {"output": "right", "corrected": [99]}]
)
def test_an_answer_that_is_none_is_refused_and_nothing_changes(problems, wrong):
    problem, _ = problems["order 2"]
    learner = QueryLearner(problem, settings())
    question = learner.ask()
    if wrong == [9] * 4:
        wrong = [9] * question.outputs[0].size
    before = learner.to_bytes()
    with pytest.raises(UsageError, match="a review takes right, or its"):
        learner.tell(question, wrong)
    assert learner.to_bytes() == before


def test_what_is_not_marked_is_not_spoken_about(problems):
    problem, gold = problems["order 1"]
    learner = by_hand(QueryLearner(problem, settings(review="marked", ask="unsure")), gold, 30)
    marks = [learner.ask().outputs[1] for _ in range(10)]
    assert any(NOT_SAID in row for row in marks)
    assert all(STANDING in row for row in marks)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"rule": "part", "review": "marked"}, "`review` marked belongs to rule review"),
        ({"rule": "part", "seconds": "slow"}, "`seconds` slow belongs to rule review"),
        ({"seconds": "1,2"}, "`seconds` 1,2: give ours, literature, slow, or four numbers"),
        ({"review": "some"}, "`review`"),
        ({"about": "chunk"}, "`about` chunk belongs to part and label"),
    ],
)
def test_settings_that_do_not_go_together(given, said):
    with pytest.raises(UsageError, match=said):
        settings(**given)


def test_reviews_teach(problems):
    problem, gold = problems["order 2"]
    learner = QueryLearner(problem, settings())
    learner.run(gold, answers=60)
    assert learner.average_loss > 0.2, "it was wrong at first"
    said = {row: learner.ask() for row in range(15)}
    right = [learner.known_answer(question, gold)["corrected"] == [] for question in said.values()]
    assert sum(right) > 10
