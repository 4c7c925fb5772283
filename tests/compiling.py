"""Compile the training loops that tests share, before the tests begin: python tests/compiling.py text rerank."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from sparsezo.learner import Learner
from sparsezo.settings import Settings


def compile_for(name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        task, data = _chunking() if name == "chunking" else _text() if name == "text" else _rerank(Path(folder))
        problem, gold = task.problem(data), task.gold(data)
        for settings in (Settings(), Settings(batch=2)):
            Learner(problem, settings).run(gold, 2)
        if name != "rerank":  # nobody is asked about parts of a list
            Learner(problem, Settings("part", None, 0.2, None, step="adagrad")).run(gold, 2)


def _chunking():
    from sparsezo.tasks.chunking.generate import chunking_corpus
    from sparsezo.tasks.chunking.task import Chunking

    return Chunking.fit(chunking_corpus(10, 1))


def _text():
    from sparsezo.tasks.text.generate import generate_text
    from sparsezo.tasks.text.task import TextClassification

    return TextClassification.fit(generate_text(60, 3).documents())


def _rerank(folder: Path):
    from sparsezo.tasks.registry import kind
    from sparsezo.tasks.rerank.importing import import_nbest
    from sparsezo.tasks.rerank.task import Reranking

    kind("rerank").make().write(folder / "train.nbest", folder / "weights", 12, 1, None)
    store = import_nbest(folder / "train.nbest", store_dir=folder / "stores")
    return Reranking.fit(store), store


if __name__ == "__main__":
    for name in sys.argv[1:]:
        compile_for(name)
