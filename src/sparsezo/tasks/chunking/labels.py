"""What somebody has labelled already, learned from before anybody is asked: the weights to start from.

W = learned_labels(task, list(read_documents("export.jsonl")), "export.jsonl")

Tokens of which nothing is known (Prodigy's) are left open: what is climbed is the probability of what is known. Spans
that were rejected are answers "no".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sparsezo.learner import Learner
from sparsezo.notes import say
from sparsezo.questions import YES_NO, Question
from sparsezo.settings import Settings
from sparsezo.tasks.chunking.conll import Corpus
from sparsezo.tasks.chunking.documents import Document, Span
from sparsezo.tasks.chunking.raw import corpus_of
from sparsezo.words import counted

if TYPE_CHECKING:
    from sparsezo.tasks.chunking.task import Chunking

_PASSES = 10  # over the labelled sentences


def learned_labels(task: Chunking, documents: Sequence[Document], path: str) -> NDArray[Any]:
    """Features x labels, from labelled documents of words that the task's own data may or may not have."""
    labelled = [document for document in documents if document.spans is not None]
    how: dict[str, Any] = {"split": task.split or "spaces", "language": task.language}
    corpus = task.seen(corpus_of(labelled, path, labelled=True, cuts=True, **how))
    problem = task.problem(corpus, asks=True)
    start = Learner(problem, Settings.complete({"rule": "part"}, task.defaults)).weights()
    settings = Settings.complete({"rule": "supervised", "step": "adagrad"}, task.defaults)
    learner = Learner(problem, settings, start)
    learner.run(task.known(corpus), steps=_PASSES * len(corpus))
    W = learner.weights()
    rejected = list(_rejected(task, corpus))
    if rejected:
        of_parts = Learner(problem, Settings.complete({"rule": "part", "about": "chunk"}, task.defaults), W)
        for _ in range(_PASSES):
            for question in rejected:
                of_parts.learn_from(question, "no")
        W = of_parts.weights()
    spans = sum(len(document.spans or ()) for document in labelled)
    no = f" and {counted(len(rejected), 'rejected span')}" if rejected else ""
    say(f"{path}: starts from {counted(spans, 'labelled span')}{no} in {counted(len(corpus), 'sentence')}")
    return W


def _rejected(task: Chunking, corpus: Corpus) -> list[Question]:
    """A question about each rejected span of a type that is known, and that begins and ends with a token."""
    return [
        Question("", 0, x, "part", "chunk", numbers, (), 1.0, tuple(YES_NO), tuple(YES_NO.values()))
        for x, numbers in placed_spans(task, corpus, "rejected")
    ]


def placed_spans(task: Chunking, corpus: Corpus, which: str) -> list[tuple[int, tuple[int, ...]]]:
    """(sentence, a question's numbers) of the documents' ``suggested`` or ``rejected`` spans, where these begin and end
    with a token of one sentence and are of a type that the task has."""
    source = corpus.source
    if source is None:
        return []
    found: list[tuple[int, tuple[int, ...]]] = []
    number = {tag: k for k, tag in enumerate(task.tags)}
    firsts = np.searchsorted(source.of_sentence, np.arange(len(source.documents) + 1))
    for k, document in enumerate(source.documents):
        spans: Sequence[Span] = getattr(document, which)
        if not spans or firsts[k] == firsts[k + 1]:
            continue
        begin, end = int(corpus.offsets[firsts[k]]), int(corpus.offsets[firsts[k + 1]])
        starts = {place: begin + i for i, place in enumerate(source.starts[begin:end].tolist())}
        ends = {place: begin + i for i, place in enumerate(source.ends[begin:end].tolist())}
        for span in spans:
            first, last, tag = starts.get(span.start), ends.get(span.end), number.get(f"B-{span.label}")
            if first is None or last is None or tag is None or last < first:
                continue
            x = int(np.searchsorted(corpus.offsets, first, side="right")) - 1
            if last < corpus.offsets[x + 1]:
                at = int(corpus.offsets[x])
                found.append((x, (first - at, tag, last - at, 0)))
    return found
