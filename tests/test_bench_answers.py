"""The bench of questions and answers, on a few generated sentences; how long they take is not tested here."""

from __future__ import annotations

import numpy as np
import pytest

from sparsezo.bench import answers
from sparsezo.learner import Learner
from sparsezo.settings import Settings
from sparsezo.tasks.chunking.generate import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking


@pytest.mark.parametrize("rule", ["part", "rate"])
def test_it_asks_and_tells_as_the_run_does(monkeypatch, rule):
    monkeypatch.setattr(answers, "_STAGES", (0, 40))
    monkeypatch.setattr(answers, "_QUESTIONS", 10)
    task, corpus = Chunking.fit(chunking_corpus(60, 1), only="NP")
    problem, gold = task.problem(corpus, asks=True), task.gold(corpus)
    settings = Settings(rule, None, 0.2, None, step="adagrad")
    found = answers.measure(problem, gold, settings, 2)
    assert list(found["stages"]) == ["0", "40"]
    for stage in found["stages"].values():
        assert 0 <= stage["ms"] <= stage["ms_worst"]
        assert stage["looks"] >= 1
    assert answers.table(found).row_count == 2
    by_hand, compiled = Learner(problem, settings), Learner(problem, settings)
    answers._timed(by_hand, gold, 20)
    compiled.run(gold, answers=20)
    np.testing.assert_array_equal(by_hand.weights(), compiled.weights())
