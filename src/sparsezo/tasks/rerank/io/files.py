"""Reranking's files: a decoder's lists in, the reranked lists out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, cast

from sparsezo import messages
from sparsezo.errors import UsageError
from sparsezo.options import make_options
from sparsezo.storage.files import named
from sparsezo.tasks.loading import Data, Files, Loaded
from sparsezo.tasks.rerank.io.decoder_weights import read_weights
from sparsezo.tasks.rerank.io.importing import NBestStore, import_nbest
from sparsezo.tasks.rerank.io.nbest import Segmentation, read_nbest
from sparsezo.tasks.rerank.spec import RerankOptions, RerankPredicting, RerankReading
from sparsezo.tasks.rerank.task import Reranking

if TYPE_CHECKING:
    from sparsezo.model import Model

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
    path: str, references: tuple[str, ...] | None, options: RerankOptions | RerankReading, required: bool = True
) -> NBestStore:
    with messages.counting(f"importing {named(path)}", "lists") as count:
        return import_nbest(
            path,
            references or None,
            options.store,
            count,
            keep_segmentation=options.keep_segmentation,
            references_required=required,
        )


def read(task: Reranking, path: str, options: Mapping[str, object]) -> NBestStore:
    reading = make_options(RerankReading, options, _TASK)
    return _store(path, reading.ref, reading)


def predict(model: Model, path: str, options: Mapping[str, object]) -> Iterator[str]:
    """The best hypothesis of each list; with ``nbest`` all of them, best first, as cdec writes lists."""
    given = make_options(RerankPredicting, options, _TASK)
    task = cast("Reranking", model.task)
    marks = Segmentation(given.keep_segmentation)
    for nbest in task.known(named(path), read_nbest(path, keep_segmentation=marks.keep)):
        marks.count(nbest)
        if given.nbest:
            yield from (f"{line}\n" for line in task.reranked(nbest, model.W))
        else:
            yield f"{nbest.hypotheses[task.order(nbest, model.W)[0][0]]}\n"
    marks.say(named(path))
