"""Sessions in which people review, for tests: sentences of which the right spans are known, and who knows them."""

from __future__ import annotations

import functools

from sparsezo.serve.client import review
from sparsezo.serve.session import Session
from sparsezo.settings import Settings
from sparsezo.tasks.chunking.synthetic import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.registry import task_spec

__all__ = ["FITTED", "made", "opened", "plain", "review", "reviewed", "right_spans"]
FITTED = {
    "order 2": {"only": "NP"},
    "order 1": {"order": 1},
    "plain": {"scheme": "plain"},
}


@functools.cache
def made(name="order 2", n=150):
    """(task, sentences)"""
    return Chunking.fit(chunking_corpus(n, 1), **FITTED[name])


def opened(folder, name="order 2", given=None, *, data=None, n=150, **rest):
    task, corpus = made(name, n)
    settings = Settings.complete({"seed": 3, "rule": "review", "rater_error": "0.01", **(given or {})}, task.defaults)
    return Session(task_spec("chunking"), task, corpus if data is None else data, settings, folder, **rest)


def right_spans(session, question):
    """Of a question about a synthetic sentence."""
    row = session.queue.row(int(question["id"][1:]))
    task, corpus = session.contents.task, session.contents.data
    a, b = corpus.offsets[row.x : row.x + 2].tolist()
    gold, reviewing = task.gold(corpus).tags[a:b], session.presentation.reviewing
    tags = [task.tags[k] for k in gold.tolist()]
    if question["shown"]["plain"]:
        return reviewing.spans(gold)
    found = []
    for first, end, label in session.contents.serving.chunks_in(tags):
        found.append({"first": first, "last": end - 1, "label": label})
    return found


def plain(spans):
    return [{name: span[name] for name in ("first", "last", "label")} for span in spans]


def reviewed(session, person, n, overlooks=0):
    """n reviews asked and answered by somebody who knows; ``overlooks`` 2: but takes every second sentence for right.

    Returns the questions with what was said."""
    done = []
    for k in range(n):
        question = session.ask(person)[0]
        if question["kind"] != "review":  # of an audit
            session.tell(person, question["id"], question["choices"][0])
            continue
        decode = functools.partial(session.decode, person, question["id"])
        looks = not overlooks or (len(session.queue.history[person.id]) + k) % overlooks
        said = review(question, right_spans(session, question), decode) if looks else "right"
        session.tell(person, question["id"], said)
        done.append((question, said))
    return done
