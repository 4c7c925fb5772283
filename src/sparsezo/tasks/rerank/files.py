"""N-best reranking on the command line: a decoder's lists in, its weights and the reranked lists out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from sparsezo.cli import show
from sparsezo.errors import UsageError
from sparsezo.model import Model
from sparsezo.tasks.loading import Files, Loaded, check_options
from sparsezo.tasks.rerank.decoder_weights import read_weights
from sparsezo.tasks.rerank.nbest import read_nbest
from sparsezo.tasks.rerank.store import NBestStore, import_nbest
from sparsezo.tasks.rerank.task import Reranking
from sparsezo.training import Data


def load(files: Files) -> Loaded:
    check_options("rerank", files.options, ("train_ref", "dev_ref", "test_ref", "init", "store"))
    options = files.options
    if files.held_out() is not None:
        raise UsageError(f"--dev {files.dev}: rerank takes an n-best file as its dev set")
    init = read_weights(options["init"]) if "init" in options else None
    train = _store(files.one_train("rerank"), options.get("train_ref"), options)
    dev = _store(files.dev, options.get("dev_ref"), options) if files.dev else None
    test = _store(files.test, options.get("test_ref"), options) if files.test else None
    task = Reranking.fit(train, init)
    return Loaded(task, Data(train, dev, test), task.initial_weights())


def _store(path: str, references: list[str] | None, options: dict[str, Any]) -> NBestStore:
    with show.counting(f"importing {path}", "lists") as progress:
        return import_nbest(path, references or None, options.get("store"), progress)


def read(task: Reranking, path: str, options: dict[str, Any]) -> NBestStore:
    check_options("rerank", options, ("ref", "store"))
    return _store(path, options.get("ref"), options)


def predict(model: Model, path: str, options: dict[str, Any]) -> Iterator[str]:
    """The best hypothesis of each list; with --nbest all of them, best first, as cdec writes lists."""
    check_options("rerank", options, ("nbest",))
    task = cast(Reranking, model.task)
    for nbest in read_nbest(path):
        if options.get("nbest"):
            yield from (f"{line}\n" for line in task.reranked(nbest, model.W))
        else:
            yield f"{nbest.hypotheses[task.order(nbest, model.W)[0][0]]}\n"
