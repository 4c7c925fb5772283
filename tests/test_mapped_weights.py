"""Weights in the caller's own array, which may be a mapped file: learned in place, and the same as in a copy."""

from __future__ import annotations

import numpy as np
import pytest

from sparsezo.errors import UsageError
from sparsezo.learner import Learner
from sparsezo.settings import Settings
from sparsezo.tasks.chunking.generate import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking

SETTINGS = Settings("two-point", "score", 0.01, 0.1, seed=1)


@pytest.fixture(scope="module")
def problem():
    task, corpus = Chunking.fit(chunking_corpus(30, seed=1), only="NP", hash_bits=10)
    return task.problem(corpus), task.gold(corpus)


def test_a_mapped_file_holds_the_weights_of_a_run_in_memory(problem, tmp_path) -> None:
    problem, gold = problem
    shape = (problem.n_features, problem.n_labels)
    W = np.memmap(tmp_path / "W", np.float32, "w+", shape=shape)
    mapped, plain = Learner(problem, SETTINGS, W, copy=False), Learner(problem, SETTINGS)
    for learner in (mapped, plain):
        learner.run(gold, 300)
    W.flush()
    assert plain.state.W.any()
    assert np.array_equal(np.fromfile(tmp_path / "W", np.float32).reshape(shape), plain.state.W)


def test_a_copy_leaves_the_array_alone(problem) -> None:
    problem, gold = problem
    W = np.zeros((problem.n_features, problem.n_labels), np.float32)
    Learner(problem, SETTINGS, W).run(gold, 300)
    assert not W.any()


def test_an_array_that_cannot_be_learned_in_is_refused(problem) -> None:
    problem, _ = problem
    shape = (problem.n_features, problem.n_labels)
    locked = np.zeros(shape, np.float32)
    locked.flags.writeable = False
    for W in (np.zeros(shape), np.zeros(shape[::-1], np.float32).T, locked):
        with pytest.raises(UsageError, match="a float32 array in C order that can be written"):
            Learner(problem, SETTINGS, W, copy=False)
