"""Small sessions of each task, for tests: generated inputs, a clock that is set by hand."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

import numpy as np

from sparsezo.serve.online_model import replay
from sparsezo.serve.session import Session
from sparsezo.settings import Settings
from sparsezo.tasks.chunking.synthetic import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.registry import task_spec
from sparsezo.tasks.rerank.io.importing import import_nbest
from sparsezo.tasks.rerank.task import Reranking
from sparsezo.tasks.text.synthetic import generate_text
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
    task_spec("rerank").synthetic().write(lists, folder / "weights", 40, 1, None)
    store = import_nbest(lists, store_dir=folder / "stores")
    return Reranking.fit(store), store


def opened(folder, name="chunking", given=None, **rest):
    task, data = made(name)
    settings = Settings.complete({"seed": 3, "rule": RULES[name], **(given or {})}, task.defaults)
    return Session(task_spec(name), task, data, settings, folder, **rest)


def someone(session, name="Ann", *, admin=False):
    return session.person(session.add_person(name, admin=admin)["token"])


def answered(session, person, n, answer=None):
    """n questions asked and answered, in all ways that there are or by ``answer``, which may look at it; their ids."""
    done = []
    for k in range(n):
        question = session.ask(person)[0]
        choices = [*question["choices"], *question["labels"]] or [1, 2, 3, 4, 5]
        said = answer(question) if callable(answer) else answer or choices[k % len(choices)]
        session.tell(person, question["id"], said)
        done.append(question["id"])
    return done


def row_of(session, question):
    """A question's row, by what a page has of it."""
    return session.queue.row(int(question["id"][1:]))


def weights(session):
    return session.model.weights()[1]


def same_as_replay(session):
    """The model now, bit for bit what the folder alone gives."""
    W = replay(session.folder).W
    assert W.dtype == weights(session).dtype
    return np.array_equal(W.view(np.uint8), weights(session).view(np.uint8))


def known(question, spans):
    """What somebody says to a question about raw text who knows its spans: they stand in the whole document."""
    shown = question["shown"]
    places, at = [], shown["where"]["start"]
    for word, gap in zip(shown["words"], shown["gaps"], strict=True):
        places.append((at, at + len(word)))
        at += len(word) + len(gap)
    begin, end = places[shown["first"]][0], places[shown["last"]][1]
    found = next((span for span in spans if span.start < end and span.end > begin), None)
    if found is None:
        return "O"
    if question["kind"] == "label":
        return ("B-" if begin <= found.start < end else "I-") + found.label
    inside = [k for k, (a, b) in enumerate(places) if a < found.end and b > found.start]
    if (inside[0], inside[-1]) == (shown["first"], shown["last"]):
        return "yes" if shown["tag"][2:] == found.label else found.label
    return {"first": inside[0], "last": inside[-1], "label": found.label}
