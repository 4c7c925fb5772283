"""Full labels: which inputs are labelled at each look, what is learned from them, going on after a stop, starts."""

from __future__ import annotations

import numpy as np
import pytest

from sparsezo.errors import UsageError
from sparsezo.learner import Learner, confidence, predict
from sparsezo.query_learner import QueryLearner
from sparsezo.settings import Settings
from sparsezo.study import labels
from sparsezo.study.labels import Labelling, start_weights
from sparsezo.study.prepared import PreparedTask
from sparsezo.study.records import COLUMNS
from sparsezo.tasks.chunking.synthetic import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.loading import Data, Loaded
from sparsezo.tasks.text.io.documents import Documents
from sparsezo.tasks.text.task import TextClassification

SUPERVISED = Settings("supervised", None, 0.1, None, step="adagrad", seed=5)
LOOKS = (60, 150, 400)


@pytest.fixture(scope="module")
def part():
    task, train = Chunking.fit(chunking_corpus(80, seed=1), only="NP")
    data = Data(train, task.seen(chunking_corpus(20, seed=2)), task.seen(chunking_corpus(20, seed=3)))
    return PreparedTask(Loaded(task, data))


def lengths(part):
    return np.diff(part.data.train.offsets)


def learned(part, rows, passes):
    """From these sentences alone, written out."""
    some = part.data.train.take(rows)
    learner = Learner(part.plain.problem(some), SUPERVISED)  # ``task`` would keep what it makes of it
    learner.run(part.plain.gold(some), passes * len(rows))
    return learner.weights()


def test_at_random_as_many_whole_sentences_are_labelled_as_fit(part):
    run = Labelling(part, SUPERVISED, "random", 3, LOOKS, test_looks=True)
    outcome = run.go()
    order, cost = part.order(5), lengths(part)
    chosen = [next(n for n in range(len(order)) if cost[order[: n + 1]].sum() > look) for look in LOOKS]
    assert [point[-1] for point in run.curve] == chosen
    assert [point[3] for point in run.curve] == list(LOOKS)
    steps = np.cumsum([3 * n for n in chosen]).tolist()
    assert [point[0] for point in run.curve] == steps
    for point, n in zip(run.curve, chosen, strict=True):
        W = learned(part, order[:n], 3)
        for data, found in ((part.data.dev, point[2]), (part.data.test, point[4])):
            problem = part.task.problem(data, learn=False)
            assert found == part.task.quality(problem, part.task.gold(data), predict(problem, W))
    np.testing.assert_array_equal(outcome.model.W, learned(part, order[: chosen[-1]], 3))
    assert outcome.result["inputs"] == chosen[-1]
    assert outcome.result["test"] == pytest.approx(run.curve[-1][4])


def test_the_order_is_of_the_seed(part):
    assert part.order(5).tolist() == part.order(5).tolist() != part.order(6).tolist()
    assert sorted(part.order(6).tolist()) == list(range(80))


def test_the_least_sure_by_the_token_come_next_and_are_chosen_anew(part):
    run = Labelling(part, SUPERVISED, "least-confident", 3, LOOKS, every=2)
    run.go()
    n, last = (int(run.curve[k][-1]) for k in (0, -1))
    problem = part.task.problem(part.data.train, asks=True)
    learner = QueryLearner(problem, Settings.complete({"rule": "review", "seed": 5}, part.task.defaults))
    ranked, new = [], part.order(5)[:n].tolist()  # at first at random
    while len(ranked) < last:
        for x in new:
            question = learner.ask(x)
            learner.tell(question, learner.known_answer(question, part.task.gold(part.data.train)))
        ranked += new
        sure = confidence(problem, learner.weights()) / lengths(part)
        new = sorted(set(range(80)) - set(ranked), key=lambda x: sure[x])[:2]
    assert last - n > 4
    assert run.queue[:last].tolist() == ranked[:last]


def test_tokens_and_spans_marked_by_hand_are_counted(part):
    run = Labelling(part, SUPERVISED, "random", 3, LOOKS)
    result = run.go().result
    tags, offsets = np.array(part.data.train.tags), part.data.train.offsets
    spans = [int((tags[offsets[x] : offsets[x + 1]] == "B-NP").sum()) for x in range(80)]
    for point in run.curve:
        found = dict(zip(COLUMNS, point, strict=True))
        rows = part.order(5)[: int(found["inputs"])]
        assert found["tokens"] == found["looked"] == lengths(part)[rows].sum()
        assert found["corrections"] == sum(spans[x] for x in rows)
    assert {name: result[name] for name in ("tokens", "corrections", "inputs")}.items() <= found.items()


def test_when_everything_is_labelled_it_ends(part):
    total = int(lengths(part).sum())
    run = Labelling(part, SUPERVISED, "random", 1, (100, total + 5, total + 50))
    run.go()
    assert [(point[3], point[-1]) for point in run.curve][1:] == [(total, 80)]


def test_a_stopped_run_goes_on_from_its_last_look(part, tmp_path):
    whole = Labelling(part, SUPERVISED, "least-confident", 2, LOOKS)
    whole.go()
    checkpoint = tmp_path / "checkpoint"
    looked = []

    def stop(now):
        looked.append(now.answers)
        if now.answers >= LOOKS[1]:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Labelling(part, SUPERVISED, "least-confident", 2, LOOKS, checkpoint=checkpoint).go(stop)
    again = Labelling(part, SUPERVISED, "least-confident", 2, LOOKS, checkpoint=checkpoint)
    assert len(again.curve) == 2
    outcome = again.go()
    np.testing.assert_array_equal(outcome.model.W, whole.W)
    np.testing.assert_array_equal(again.curve, whole.curve)
    again.finish()
    assert not checkpoint.exists()


def test_a_start_from_labels_is_a_supervised_model_of_so_many(part):
    settings = Settings.complete({"rule": "supervised", "step": "adagrad", "seed": 5}, part.task.defaults)
    assert settings == SUPERVISED
    np.testing.assert_array_equal(start_weights(part, "labels:10", 4, 5), learned(part, part.order(5)[:10], 4))
    with pytest.raises(UsageError, match="only 80 inputs"):
        start_weights(part, "labels:81", 4, 5)


def test_a_start_from_output_learns_what_another_model_says_of_all(part):
    problem, gold = part.task.problem(part.data.train), part.task.gold(part.data.train)
    said = predict(problem, learned(part, part.order(5)[:10], 4))
    learner = Learner(problem, SUPERVISED)
    learner.run(gold._replace(tags=said.astype(np.int16)), labels._OUTPUT_PASSES * 80)
    np.testing.assert_array_equal(start_weights(part, "output:10", 4, 5), learner.weights())


def test_mistakes_are_those_of_a_model_of_the_other_half(part):
    other = labels.mistaken(part, 0.5, 5)
    order, offsets = part.order(5), part.data.train.offsets
    problem, right, said = part.task.problem(part.data.train), part.data.train.tags, other.data.train.tags
    passes = labels._MISTAKEN_PASSES
    wrong = set()
    for here, elsewhere in ((order[::2], order[1::2]), (order[1::2], order[::2])):
        tags = part.task.words(predict(problem, learned(part, elsewhere, passes)), offsets)
        for k, x in enumerate(here.tolist()):
            mine = slice(offsets[x], offsets[x + 1])
            assert said[mine] == (tags if k < 20 else right)[mine]
            wrong |= {x} if said[mine] != right[mine] else set()
    assert 0 < len(wrong) <= 40
    assert other.data.dev is part.data.dev


def test_a_document_is_one_decision():
    words = ["red green", "blue green", "red red", "blue sky"] * 6
    names = ["a", "b", "a", "b"] * 6
    numbers = np.arange(24)
    documents = Documents(("f",), np.zeros(24, np.int32), numbers, names, words)
    task, train = TextClassification.fit(documents, min_count=1)
    run = Labelling(
        PreparedTask(Loaded(task, Data(train, train))), Settings("supervised", None, 1.0, None), "random", 5, (4, 9)
    )
    run.go()
    assert [(point[3], point[-1]) for point in run.curve] == [(4, 4), (9, 9)]
    assert run.curve[-1][2] == 1.0
