"""What a worker is sent is all it needs, also where the inputs are mapped from a file and the weights are float64."""

from __future__ import annotations

import numpy as np

from sparsezo.identity import known_by
from sparsezo.learner import Learner
from sparsezo.settings import Settings
from sparsezo.storage.packed import Mapped
from sparsezo.tasks.registry import kind
from sparsezo.tasks.rerank.importing import import_nbest
from sparsezo.tasks.rerank.task import Reranking
from sparsezo.workers import messages
from sparsezo.workers.replica import Replica, restored, snapshot

B = 8


def rerank(folder):
    kind("rerank").make().write(folder / "train.nbest", folder / "weights", 12, 1, None)
    store = import_nbest(folder / "train.nbest", store_dir=folder / "stores")
    task = Reranking.fit(store)
    return task.problem(store), task.gold(store)


def test_a_replica_that_is_restored_goes_on_as_its_model(tmp_path):
    problem, gold = rerank(tmp_path)
    settings = Settings("two-point", "score", 0.1, 1.0, batch=B)
    learner, alone = Learner(problem, settings), Learner(problem, settings)
    alone.run(gold, 12 * B)
    learner.run(gold, 4 * B)
    first = Replica(learner, gold)
    mapped = Mapped((problem, gold))
    second = restored(messages.content_of(snapshot(first)), mapped.content())
    mapped.close()
    assert known_by(second.learner.problem.inputs, second.learner.problem.task) == known_by(
        problem.inputs, problem.task
    )
    for begin in range(4 * B, 12 * B, B):
        for replica in (first, second):
            replica.begin(begin, begin + B)
            assert replica.evaluate(0, B)
            replica.commit(begin, begin + B)
    assert first.digest() == second.digest()
    np.testing.assert_array_equal(second.learner.state.W, alone.state.W)
    assert alone.updates > 4
