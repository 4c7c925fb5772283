"""Reranking's files: a decoder's lists in, the reranked lists out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sparsezo import progress
from sparsezo.errors import UsageError
from sparsezo.options import make_options
from sparsezo.storage.files import named
from sparsezo.tasks.loading import Data, Files, Loaded
from sparsezo.tasks.rerank.decoder_weights import read_weights
from sparsezo.tasks.rerank.importing import import_nbest
from sparsezo.tasks.rerank.nbest import Segmentation, read_nbest
from sparsezo.tasks.rerank.options import RerankOptions, RerankPredicting, RerankReading
from sparsezo.tasks.rerank.store import NBestStore
from sparsezo.tasks.rerank.task import Reranking

_TASK = "task rerank"
from_arrays = Reranking.from_arrays


def load(files: Files) -> Loaded:
    options = make_options(RerankOptions, files.options, _TASK)
    if files.held_out() is not None:
        raise UsageError(f"`dev` {files.dev}: rerank takes an n-best file as its dev set")
    init = read_weights(options.init) if options.init is not None else None
    train = _store(files.one_train("rerank"), options.train_ref, options, required=False)
    dev = _store(files.dev, options.dev_ref, options) if files.dev else None
    test = _store(files.test, options.test_ref, options) if files.test else None
    task = Reranking.fit(train, init)
    return Loaded(task, Data(train, dev, test), task.initial_weights())


def _store(
    path: str,
    references: tuple[str, ...] | None,
    options: RerankOptions | RerankReading,
    *,
    required: bool = True,
) -> NBestStore:
    """``required``: lists without references are refused."""
    with progress.counting(f"importing {named(path)}", "lists") as count:
        marks = options.keep_segmentation
        return import_nbest(
            path, references or None, options.store, count, keep_segmentation=marks, references_required=required
        )


def read(task: Reranking, path: str, options: Mapping[str, Any]) -> NBestStore:
    reading = make_options(RerankReading, options, _TASK)
    return _store(path, reading.ref, reading)


def predict(model: Any, path: str, options: Mapping[str, Any]) -> Iterator[str]:
    """The best hypothesis of each list; with ``nbest`` all of them, best first, as cdec writes lists."""
    given = make_options(RerankPredicting, options, _TASK)
    task: Reranking = model.task
    marks = Segmentation(given.keep_segmentation)
    for nbest in task.known(named(path), read_nbest(path, keep_segmentation=marks.keep)):
        marks.count(nbest)
        if given.nbest:
            yield from (f"{line}\n" for line in task.reranked(nbest, model.W))
        else:
            yield f"{nbest.hypotheses[task.order(nbest, model.W)[0][0]]}\n"
    marks.say(named(path))
