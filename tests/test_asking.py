"""Learning from answers: ask and tell against run, what counts as an answer, memory, refusals, what is learned."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from sparsezo.errors import DamagedError, SparsezoError, UsageError
from sparsezo.kernels import answering
from sparsezo.learner import predict
from sparsezo.optimizer import replay
from sparsezo.query_learner import QueryLearner, make_learner
from sparsezo.questions import Proposal, Question
from sparsezo.rules import RULES
from sparsezo.settings import Settings
from sparsezo.tasks.chunking.synthetic import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.loading import Data
from sparsezo.tasks.registry import task_spec
from sparsezo.training import Training

N = 120  # answers
OFFERED = {
    "chunking": [
        {"rule": "part"},
        {"rule": "part", "about": "chunk"},
        {"rule": "label"},
        {"rule": "pair"},
        {"rule": "rate"},
    ],
    "order 1": [{"rule": "part"}, {"rule": "label", "about": "chunk"}, {"rule": "pair"}, {"rule": "rate"}],
    "text": [{"rule": "part"}, {"rule": "label"}, {"rule": "pair"}, {"rule": "rate"}],
    "rerank": [{"rule": "pair"}, {"rule": "best"}],
}
CASES = [(task, given) for task, each in OFFERED.items() for given in each]
NAMES = ["-".join([task, *given.values()]) for task, given in CASES]


@pytest.fixture(scope="module")
def tasks(small_tasks):
    """name -> (task, data, problem, gold)"""
    made = {**small_tasks, "order 1": Chunking.fit(chunking_corpus(60, 2), order=1)}
    return {name: (task, data, task.problem(data, asks=True), task.gold(data)) for name, (task, data) in made.items()}


def settings_of(task, given):
    return Settings.complete({"seed": 3, **given}, task.defaults)


def by_hand(learner, gold, n):
    for _ in range(n):
        question = learner.ask()
        learner.tell(question, learner.known_answer(question, gold))
    return learner


def assert_same(one, other):
    for name in ("W", "q", "counts"):
        np.testing.assert_array_equal(getattr(one.state, name), getattr(other.state, name))


@pytest.mark.parametrize("rehearse", [0, 2])
@pytest.mark.parametrize(("name", "given"), CASES, ids=NAMES)
def test_ask_and_tell_give_what_run_gives_bit_for_bit(tasks, name, given, rehearse):
    task, _, problem, gold = tasks[name]
    settings = settings_of(task, {**given, "rehearse": rehearse})
    compiled = make_learner(problem, settings)
    compiled.run(gold, answers=N)
    assert compiled.answers == compiled.questions == N <= compiled.step
    assert compiled.updates > 0
    assert_same(compiled, by_hand(make_learner(problem, settings), gold, N))
    pieces = make_learner(problem, settings)
    while pieces.answers < N:
        pieces.run(gold, 7, N)
    assert_same(compiled, pieces)


def test_memory_grows(tasks, monkeypatch):
    monkeypatch.setattr("sparsezo.query_learner._LEAST_MEMORY", 3)
    task, _, problem, gold = tasks["chunking"]
    settings = settings_of(task, {"rule": "pair", "rehearse": 1})
    compiled, hand = make_learner(problem, settings), make_learner(problem, settings)
    compiled.run(gold, answers=100)
    assert compiled.state.said.size == 100
    assert compiled.state.questions.shape == (100, 4 + 2 * problem.max_outputs)
    assert_same(compiled, by_hand(hand, gold, 100))
    assert hand.state.said.size >= 100
    np.testing.assert_array_equal(hand.state.said[:100], compiled.state.said)
    np.testing.assert_array_equal(hand.state.questions[:100], compiled.state.questions)


@pytest.mark.parametrize(("name", "given"), CASES, ids=NAMES)
def test_to_bytes_and_back_with_open_questions(tasks, name, given):
    task, _, problem, gold = tasks[name]
    learner = by_hand(make_learner(problem, settings_of(task, {**given, "rehearse": 1})), gold, 20)
    questions = [learner.ask(), learner.ask(0)]
    again = QueryLearner.from_bytes(learner.to_bytes(), problem)
    for question in reversed(questions):
        answer = learner.known_answer(question, gold)
        mine, its = learner.tell(question, answer), again.tell(Question.from_json(question.as_json()), answer)
        assert mine == its
    assert_same(by_hand(learner, gold, 20), by_hand(again, gold, 20))


@pytest.mark.parametrize(("name", "given"), CASES, ids=NAMES)
def test_a_log_is_replayed_bit_for_bit(tasks, name, given):
    task, _, problem, gold = tasks[name]
    settings = settings_of(task, given)
    learner, log = make_learner(problem, settings), []
    learner.on_event = log.append
    by_hand(learner, gold, 10)
    first, named = learner.ask(), learner.ask(3)
    learner.tell(named, learner.known_answer(named, gold))
    learner.tell(first, learner.known_answer(first, gold))
    again = make_learner(problem, settings)
    replay(again, json.loads(json.dumps(log)))
    assert_same(learner, again)


# ---- what a question is ----


def test_choices_and_what_is_known_of_a_question(tasks):
    def asked(name, **given):
        task, _, problem, _ = tasks[name]
        return make_learner(problem, settings_of(task, given)).ask(2)

    part = asked("chunking", rule="part")
    assert part.choices == ("yes", "no")
    assert part.outputs == ()
    assert 0 < part.chance <= 1
    assert (part.x, part.kind, part.about) == (2, "part", "token")
    assert asked("chunking", rule="label").choices == ("B-NP", "I-NP", "O")
    assert asked("chunking", rule="label", about="chunk").choices == ("NP", "O")
    pair = asked("chunking", rule="pair")
    assert pair.choices == ("first", "second", "tie")
    assert not np.array_equal(*pair.outputs)
    assert asked("text", rule="rate").choices == ()
    assert asked("text", rule="label").choices == tasks["text"][0].classes


@pytest.mark.parametrize("ask", ["unsure", "random"])
def test_every_input_can_be_asked_about(tasks, ask):
    for name, given in CASES:
        task, _, problem, _ = tasks[name]
        learner = make_learner(problem, settings_of(task, {**given, "ask": ask}))
        assert [learner.ask(x).x for x in range(len(problem))] == list(range(len(problem)))
        assert learner.questions == len(problem)


def test_an_input_comes_again_only_after_all_others(tasks):
    task, _, problem, _ = tasks["text"]
    learner = make_learner(problem, settings_of(task, {"rule": "part", "ask": "random"}))
    n = len(problem)
    seen = [learner.ask().x for _ in range(2 * n)]
    assert sorted(seen[:n]) == sorted(seen[n:]) == list(range(n))


BAD = {
    "part": ["maybe", "Yes", "", 1, 0, 1.0, None, float("nan"), "first", ["yes"], np.array([True])],
    "label": ["X", "b-np", True, -1, 3, 10**5000, 0.0, 1.5, None, float("nan"), b"O", ["O"], np.array(["O"])],
    "pair": ["third", True, 0, 1, None, float("nan"), "candidate", (0, 1)],
    "rate": ["0.5", True, None, float("nan"), np.float32("nan"), float("inf"), -0.01, 1.01, 10**5000, 1j, [0.5]],
}
GOOD = {
    "part": ["yes", "no", True, False, np.bool_(True)],
    "label": ["B-NP", "O", 0, 2, np.int64(1)],
    "pair": ["first", "second", "tie"],
    "rate": [0, 1, 0.25, np.float32(0.5)],
}


@pytest.mark.parametrize("rule", BAD)
def test_a_bad_answer_is_refused_with_the_reason_and_changes_nothing(tasks, rule):
    task, _, problem, _ = tasks["text" if rule == "rate" else "chunking"]
    learner, other = (make_learner(problem, settings_of(task, {"rule": rule, "rehearse": 1})) for _ in range(2))
    question = learner.ask()
    before = learner.to_bytes()
    for answer in BAD[rule]:
        with pytest.raises(UsageError, match=f"a question of kind {rule} takes"):
            learner.tell(question, answer)
    changed = replace(question, numbers=(*question.numbers[:3], 1))
    proposal = Proposal(learner.id, question.step, question.x, np.zeros(3, np.int32), None)
    for wrong, why in [
        (other.ask(), "another learner"),
        (proposal, "not what was asked"),
        (replace(question, step=-1), "was never asked"),
        (replace(question, step=17), "was never asked"),
        (changed, "not what was asked"),
        ("yes", "as ask"),
    ]:
        with pytest.raises(UsageError, match=why):
            learner.tell(wrong, GOOD[rule][0])
    assert learner.to_bytes() == before
    learner.tell(question, GOOD[rule][0])
    before = learner.to_bytes()
    with pytest.raises(UsageError, match="answered already"):
        learner.tell(question, GOOD[rule][0])
    assert learner.to_bytes() == before
    for answer in GOOD[rule]:
        learner.tell(learner.ask(), answer)


NO_LOSSES = ["maybe", "first", None, float("nan"), float("inf"), 1j, {}, [0.5, 1.0, 0.0], [], ("a", "b"), b"1"]


@pytest.mark.parametrize("rule", [rule for rule in RULES if not RULES[rule].asks and rule != "supervised"])
def test_bad_feedback_to_a_proposal_is_refused_with_the_reason_and_changes_nothing(tasks, rule):
    task, _, problem, _ = tasks["chunking"]
    settings = Settings.complete({"rule": rule}, task.defaults)
    learner, other = make_learner(problem, settings), make_learner(problem, settings)
    pair = RULES[rule].incumbent is not None
    of_its_own = (
        [0.5, np.array([0.5, 0.5, 0.5]), np.array([[0.5, 0.5]]), [0.5]]
        if pair
        else [[0.5], [0.5, 0.5], True, "candidate"]
    )
    proposal = learner.ask()
    before = learner.to_bytes()
    for feedback in [*NO_LOSSES, *of_its_own, (0.5, float("nan")) if pair else np.float64("nan")]:
        with pytest.raises(SparsezoError, match=r"feedback .*: (rule .* takes|a loss must be finite)"):
            learner.tell(proposal, feedback)
    good = (0.5, 0.25) if pair else 0.5
    asking = tasks["chunking"][2], settings_of(task, {"rule": "part"})
    changed = replace(proposal, candidate=(proposal.candidate + 1) % 3)
    for wrong, why in [
        (other.ask(), "another learner"),
        (make_learner(*asking).ask(), "another learner"),
        (replace(make_learner(*asking).ask(), owner=learner.id, step=proposal.step), "not what was asked"),
        (replace(proposal, step=10**6), "was never asked"),
        (changed, "not what was asked"),
        (3, "as ask"),
    ]:
        with pytest.raises(UsageError, match=why):
            learner.tell(wrong, good)
    assert learner.to_bytes() == before
    learner.tell(proposal, good)
    before = learner.to_bytes()
    with pytest.raises(UsageError, match="answered already"):
        learner.tell(proposal, good)
    assert learner.to_bytes() == before


def test_questions_that_are_none(tasks):
    task, _, problem, _ = tasks["chunking"]
    good = make_learner(problem, settings_of(task, {"rule": "pair"})).ask().as_json()
    assert Question.from_json(json.loads(json.dumps(good))).as_json() == good
    for name, value in [
        ("kind", "song"), ("kind", "two-point"), ("step", "x"), ("chance", 0), ("chance", "often"), ("outputs", [[-1]]),
        ("outputs", 3), ("numbers", [0.5]), ("codes", ["a"]), ("x", None),
    ]:  # fmt: skip
        with pytest.raises(UsageError, match="not a question"):
            Question.from_json({**good, name: value})
    with pytest.raises(UsageError, match="not a question"):
        Question.from_json({})


def test_a_state_with_questions_about_what_is_not_there_is_refused(tasks):
    task, _, problem, gold = tasks["chunking"]
    learner = by_hand(make_learner(problem, settings_of(task, {"rule": "part", "rehearse": 1})), gold, 5)
    for name, at, value in [
        ("about", 2, 10**6),
        ("questions", (1, 0), 10**6),
        ("questions", (1, 1), 3),
        ("said", 0, -1),
    ]:
        array = getattr(learner.state, name)
        kept = array[at]
        array[at] = value
        with pytest.raises((DamagedError, SparsezoError)):
            QueryLearner.from_bytes(learner.to_bytes(), problem)
        array[at] = kept
    QueryLearner.from_bytes(learner.to_bytes(), problem)


# ---- what a task offers ----


def test_what_a_task_does_not_offer_is_refused(tasks):
    for name in ("chunking", "text", "rerank"):
        task, _, problem, _ = tasks[name]
        offered = {rule for rule, _ in problem.questions}
        assert offered == set(task_spec(name).asks)
        assert ("review" in offered) == (name == "chunking")
        for rule in ("part", "label", "pair", "rate"):
            if rule not in offered:
                with pytest.raises(UsageError, match=f"rule {rule} is not offered"):
                    make_learner(problem, settings_of(task, {"rule": rule}))
    task, _, problem, _ = tasks["text"]
    with pytest.raises(UsageError, match="`about` chunk: there are no chunks here"):
        make_learner(problem, settings_of(task, {"rule": "part", "about": "chunk"}))
    with pytest.raises(UsageError, match="it asks no questions"):
        make_learner(replace(tasks["text"][2], questions={}), settings_of(task, {"rule": "part"}))


def test_adagrad_starts_where_the_task_says(tasks):
    task, _, problem, _ = tasks["text"]
    assert make_learner(problem, settings_of(task, {"rule": "part"})).state.q == pytest.approx(0.01 - 1)
    assert (make_learner(problem, settings_of(task, {"rule": "first-order", "step": "adagrad"})).state.q == 0).all()
    task, _, problem, _ = tasks["rerank"]
    assert problem.inputs.scale.size == task.n_features
    assert tasks["rerank"][0].problem(tasks["rerank"][1]).inputs.scale.size == 0


# ---- counting ----


def test_who_asks_nobody_counts_no_answers(tasks):
    """Those of all other rules are counted in test_learner.py."""
    task, corpus, problem, gold = tasks["chunking"]
    supervised = make_learner(problem, Settings("supervised", None, 0.1, None))
    with pytest.raises(UsageError, match="rule supervised asks nobody"):
        supervised.run(gold, answers=5)
    supervised.run(gold, 50)
    assert (supervised.answers, supervised.questions) == (0, 0)
    with pytest.raises(UsageError, match="annealed criterion asks nobody"):
        make_learner(task.problem(corpus, risk=True), Settings(criterion="annealed")).run(gold, answers=5)
    with pytest.raises(UsageError, match="give `steps`"):
        supervised.run(gold)


def test_a_learner_that_finds_nothing_to_ask_says_so(tasks, monkeypatch):
    monkeypatch.setattr("sparsezo.learner._SILENCE", 10)
    _, _, problem, gold = tasks["chunking"]
    W = np.ones((problem.n_features, problem.n_labels), np.float32)
    W[:, 0] = 1000
    learner = make_learner(problem, Settings("preference", "score", 0.001, 1e-3), W)
    with pytest.raises(SparsezoError, match="found nothing to ask"):
        learner.ask()
    with pytest.raises(UsageError, match=r"input 3: .* ask about another"):
        learner.ask(3)
    with pytest.raises(SparsezoError, match="found nothing to ask"):
        learner.run(gold, 10**4, answers=learner.answers + 1)
    learner.run(gold, 100)  # steps can be done all the same


def test_nobody_waits_for_more_than_so_many_looks(tasks):
    """However sure the model is, short of certainty."""
    task, _, problem, _ = tasks["chunking"]
    W = np.zeros((problem.n_features, problem.n_labels), np.float32)
    W[:, 0] = 0.4
    learner = make_learner(problem, settings_of(task, {"rule": "part"}), W)
    steps = [learner.ask().step for _ in range(30)]
    gaps = np.diff([-1, *steps])
    assert answering.MOST_LOOKS < gaps.max() <= answering.MOST_LOOKS + 1
    assert gaps.min() < answering.MOST_LOOKS


def test_a_model_that_is_sure_of_all_asks_at_random(tasks):
    task, _, problem, _ = tasks["chunking"]
    W = np.zeros((problem.n_features, problem.n_labels), np.float32)
    W[:, 0] = 1000
    learner = make_learner(problem, settings_of(task, {"rule": "part"}), W)
    for _ in range(5):
        learner.ask()
    assert 5 <= learner.step + 5 <= 5 * (4 * len(problem) + 2)


# ---- learning ----


def test_few_answers_teach_much():
    task, corpus = Chunking.fit(chunking_corpus(1000, 1), only="NP")
    problem, gold = task.problem(corpus), task.gold(corpus)
    dev = task.seen(chunking_corpus(300, 2))
    dev_problem, dev_gold = task.problem(dev, learn=False), task.gold(dev)
    found = {}
    for rule in ("part", "preference"):
        learner = make_learner(problem, Settings.complete({"rule": rule}, task.defaults))
        learner.run(gold, answers=1000)
        found[rule] = task.quality(dev_problem, dev_gold, predict(dev_problem, learner.weights()))
    assert found["part"] > 0.9
    assert found["part"] > found["preference"] + 0.1


def test_looks_at_given_numbers_of_answers(tasks, tmp_path):
    """Of every rule that asks people, at the same numbers; with test, of the weights of the moment."""
    task, corpus, *_ = tasks["chunking"]
    data = Data(corpus, task.seen(chunking_corpus(30, 9)), task.seen(chunking_corpus(30, 10)))
    looks = (7, 20, 50)
    test = task.problem(data.test, learn=False)
    for rule in ("part", "preference", "first-order"):
        settings = settings_of(task, {"rule": rule})
        curve = Training(task, data, settings, evaluate_at=looks, test_looks=True).go().model.curve
        assert curve["answers"].tolist() == [0, *looks]
        learner = make_learner(task.problem(corpus, asks=rule == "part"), settings)
        for k, look in enumerate(curve["answers"].tolist()):
            learner.run(task.gold(corpus), answers=look)
            expected = task.quality(test, task.gold(data.test), predict(test, learner.weights()))
            assert curve["test"][k] == expected, (rule, look)

    def stop(now):
        if now.answers >= 20:
            raise KeyboardInterrupt

    checkpoint = tmp_path / "checkpoint"
    options = {"evaluate_at": looks, "checkpoint": checkpoint}
    settings = settings_of(task, {"rule": "part"})
    with pytest.raises(KeyboardInterrupt):
        Training(task, data, settings, **options).go(stop)
    again = Training(task, data, settings, **options, resume=True).go()
    assert again.model.curve["answers"].tolist() == [0, *looks]
    assert np.isnan(again.model.curve["test"]).all()  # nobody asked for it
    with pytest.raises(UsageError, match="`evaluate_every` or `evaluate_at`"):
        Training(task, data, settings, evaluate_at=looks, evaluate_every=3)
    with pytest.raises(UsageError, match="rising numbers"):
        Training(task, data, settings, evaluate_at=(5, 5))


def test_training_by_answers(tasks, tmp_path):
    task, corpus, *_ = tasks["chunking"]
    data = Data(corpus, task.seen(chunking_corpus(30, 9)), None)
    settings = settings_of(task, {"rule": "part", "rehearse": 2})
    whole = Training(task, data, settings, answers=300).go()
    assert whole.result["answers"] == whole.result["questions"] == 300
    assert whole.result["iterations"] >= 300
    assert whole.model.curve["answers"].tolist() == list(range(0, 301, 3))
    assert (np.diff(whole.model.curve["iterations"]) > 0).all()

    def stop(now):
        if now.answers >= 140:
            raise KeyboardInterrupt

    checkpoint = tmp_path / "checkpoint"
    with pytest.raises(KeyboardInterrupt):
        Training(task, data, settings, answers=300, checkpoint=checkpoint).go(stop)
    resumed = Training(task, data, settings, answers=300, checkpoint=checkpoint, resume=True)
    assert 140 <= resumed.learner.answers < 300
    outcome = resumed.go()
    np.testing.assert_array_equal(outcome.model.W, whole.model.W)
    np.testing.assert_array_equal(outcome.model.curve["answers"], whole.model.curve["answers"])
    with pytest.raises(UsageError, match="answers"):
        Training(task, data, settings, answers=301, checkpoint=checkpoint, resume=True)


def test_answers_and_iterations_whichever_ends_first(tasks):
    task, corpus, *_ = tasks["chunking"]
    data = Data(corpus, None, None)
    settings = Settings("preference", "score", 0.3, 0.1)
    assert Training(task, data, settings, 50, answers=1000).go().result["iterations"] == 50
    result = Training(task, data, settings, 10**6, answers=200).go().result
    assert result["answers"] == 200 < result["iterations"]
    with pytest.raises(UsageError, match="supervised asks nobody"):
        Training(task, data, Settings("supervised", None, 0.1, None), answers=50)
    with pytest.raises(UsageError, match="give `iterations`"):
        Training(task, data, settings)
    with pytest.raises(UsageError, match="`answers` 0"):
        Training(task, data, settings, answers=0)


@pytest.mark.parametrize(
    ("task", "given"), [*CASES, ("chunking", {"rule": "span"}), ("chunking", {"rule": "review"})], ids=str
)
def test_a_question_that_is_made_up_can_be_answered_and_leaves_no_trace(tasks, task, given):
    _, _, problem, gold = tasks[task]
    learner = make_learner(problem, settings_of(task_spec("chunking" if task == "order 1" else task), given))
    by_hand(learner, gold, 3)
    before = learner.to_bytes()
    question = learner.any_question()
    answer = "right" if question.kind == "review" else next(iter(question.choices), 0.0)
    assert question.kind == given["rule"]
    assert question.x == 0
    assert learner.probability(question, answer) >= 0
    assert learner.to_bytes() == before
