"""The bench of questions and answers, on a few generated sentences; how long they take is not tested here."""

from __future__ import annotations

import numpy as np
import pytest

from sparsezo.query_learner import QueryLearner
from sparsezo.settings import Settings
from sparsezo.study import bench
from sparsezo.tasks.chunking.synthetic import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking


@pytest.mark.parametrize("rule", ["part", "rate"])
def test_it_asks_and_tells_as_the_run_does(monkeypatch, rule):
    monkeypatch.setattr(bench, "_STAGES", (0, 40))
    monkeypatch.setattr(bench, "_QUESTIONS", 10)
    task, corpus = Chunking.fit(chunking_corpus(60, 1), only="NP")
    problem, gold = task.problem(corpus, asks=True), task.gold(corpus)
    settings = Settings(rule, None, 0.2, None, step="adagrad")
    found = bench.measure_answers(problem, gold, settings, 2)
    assert list(found["stages"]) == ["0", "40"]
    for stage in found["stages"].values():
        assert 0 <= stage["ms"] <= stage["ms_worst"]
        assert stage["looks"] >= 1
    assert bench.answers_table(found).row_count == 2
    by_hand, compiled = QueryLearner(problem, settings), QueryLearner(problem, settings)
    bench._timed(by_hand, gold, 20)
    compiled.run(gold, answers=20)
    np.testing.assert_array_equal(by_hand.weights(), compiled.weights())
