"""Small sessions of each task, for tests: generated inputs, a clock that is set by hand."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

import numpy as np

from sparsezo.serve.replay import replay
from sparsezo.serve.session import Session
from sparsezo.settings import Settings
from sparsezo.tasks.chunking.generate import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.registry import kind
from sparsezo.tasks.rerank.importing import import_nbest
from sparsezo.tasks.rerank.task import Reranking
from sparsezo.tasks.text.generate import generate_text
from sparsezo.tasks.text.task import TextClassification

RULES = {"chunking": "part", "text": "part", "rerank": "pair"}


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@functools.cache
def made(name):
    """(task, data)"""
    if name == "chunking":
        return Chunking.fit(chunking_corpus(150, 1), only="NP")
    if name == "text":
        return TextClassification.fit(generate_text(200, 1, vocabulary=1000, words=20).documents())
    folder = Path(tempfile.mkdtemp())
    lists = folder / "train.nbest"
    kind("rerank").make().write(lists, folder / "weights", 40, 1, None)
    store = import_nbest(lists, store_dir=folder / "stores")
    return Reranking.fit(store), store


def opened(folder, name="chunking", given=None, **rest):
    task, data = made(name)
    settings = Settings.complete({"seed": 3, "rule": RULES[name], **(given or {})}, task.defaults)
    return Session(kind(name), task, data, settings, folder, **rest)


def someone(session, name="Ann", *, admin=False):
    return session.person(session.add_person(name, admin=admin)["token"])


def answered(session, person, n, answer=None):
    """n questions asked and answered, in all ways that there are; their ids."""
    done = []
    for k in range(n):
        question = session.ask(person)[0]
        choices = [*question["choices"], *question["labels"]] or [1, 2, 3, 4, 5]
        session.tell(person, question["id"], answer or choices[k % len(choices)])
        done.append(question["id"])
    return done


def weights(session):
    with session.lock:
        return session.learner.state.W.copy()


def same_as_replay(session):
    """The model now, bit for bit what the folder alone gives."""
    W = replay(session.folder).W
    assert W.dtype == weights(session).dtype
    return np.array_equal(W.view(np.uint8), weights(session).view(np.uint8))
