"""One run on Ray's actors: the bits of one process, also when an actor is killed; on the real Ray of ``own_ray``."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest

from sparsezo import notes
from sparsezo.errors import SparsezoError, UsageError
from sparsezo.learner import Learner
from sparsezo.settings import Settings
from sparsezo.tasks.chunking.generate import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.loading import Data
from sparsezo.training import Training
from sparsezo.workers import ray as ray_workers
from sparsezo.workers.crew import Crew
from sparsezo.workers.options import WorkerOptions
from sparsezo.workers.ray import RayAgency

SETTINGS = Settings("two-point", "score", 0.01, 0.1, batch=16, seed=2)


@pytest.fixture(scope="module")
def data():
    task, train = Chunking.fit(chunking_corpus(40, seed=1), only="NP")
    return task, Data(train, task.seen(chunking_corpus(20, seed=2)))


@pytest.fixture(scope="module")
def chunking(data):
    task, parts = data
    return task.problem(parts.train), task.gold(parts.train)


def _die(_actor):
    os.kill(os.getpid(), signal.SIGKILL)


def test_actors_end_at_the_bits_of_one_process_and_a_killed_one_is_replaced(own_ray, chunking):
    problem, gold = chunking
    learner, alone, hired = Learner(problem, SETTINGS), Learner(problem, SETTINGS), []
    alone.run(gold, 963)

    class Noted(RayAgency):
        def hire(self):
            hired.append(super().hire())
            return hired[-1]

    with Crew(learner, gold, 2, Noted(None, 2)) as crew, notes.gathered() as remarks:
        crew.gather()
        assert crew.present == 2
        crew.run(320)
        own_ray.ray.cloudpickle.register_pickle_by_value(__import__(__name__))
        hired[0].actor.__ray_call__.remote(_die)
        crew.run(320)
        assert (crew.present, crew.lost) == (1, 1)
        crew.gather()
        assert crew.present == 2
        crew.run(323)
        crew.check()
    assert len(hired) == 2
    assert f"({hired[0].name}); another takes its place" in remarks[0]
    for name, mine, its in zip(learner.state._fields, learner.state, alone.state, strict=True):
        np.testing.assert_array_equal(mine, its, err_msg=name)
    assert own_ray.ray.is_initialized()  # it was there before


def test_a_training_run_on_ray_is_that_of_one_process(own_ray, data):
    whole = Training(*data, SETTINGS, 500, evaluate_every=100).go()
    shared = Training(*data, SETTINGS, 500, evaluate_every=100, workers=WorkerOptions(workers=3, engine="ray")).go()
    np.testing.assert_array_equal(shared.model.W, whole.model.W)
    for name, its in whole.model.curve.items():
        np.testing.assert_array_equal(shared.model.curve[name], its)


def test_more_workers_than_ray_has_cpus_are_refused(own_ray, chunking):
    said = "`workers` 4: Ray has a CPU for 2 of them, and the program itself is one more; give at most 3"
    with pytest.raises(UsageError, match=said):
        Crew(Learner(chunking[0], SETTINGS), chunking[1], 4, RayAgency(None, 4))


def test_an_actor_of_another_version_says_so(own_ray, chunking, monkeypatch):
    monkeypatch.setattr(ray_workers, "__version__", "0.0")
    with (
        Crew(Learner(chunking[0], SETTINGS), chunking[1], 2, RayAgency(None, 2)) as crew,
        pytest.raises(SparsezoError, match=r"and this is 0\.0; install the same version on all nodes"),
    ):
        crew.gather()
