"""Compile the loops that most tests share before the tests begin: python tests/compiling.py LOCKS JOB...

A job is a task and one of its loops (steps, answers), or what learns from one answer (told), which is half of a loop
of answers. LOCKS is a file that several processes share: what two of them need, one compiles.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import zlib
from pathlib import Path
from typing import Any

JOBS = (  # of two processes, half of the work each
    ("chunking:steps", "chunking:answers"),
    ("text:steps", "text:answers", "rerank:steps", "chunking:told", "rerank:answers"),
)


def compile_once(locks: Path) -> None:
    """From now on, what two processes need at once is compiled by one; the other waits, and reads it from the cache.

    A lock for each compiled form, held while those that it calls are compiled: no form calls itself by way of others,
    so that nobody waits for ever.
    """
    import fcntl

    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.dispatcher import Dispatcher

    compile_form = Dispatcher.compile
    file = os.open(locks, os.O_RDWR | os.O_CREAT)

    def compile_alone(dispatcher: Any, signature: Any) -> Any:
        function = dispatcher.py_func
        place = zlib.crc32(f"{function.__module__}.{function.__qualname__} {signature}".encode())
        with global_compiler_lock, contextlib.ExitStack() as held:
            with contextlib.suppress(OSError):
                fcntl.lockf(file, fcntl.LOCK_EX, 1, place)
                held.callback(fcntl.lockf, file, fcntl.LOCK_UN, 1, place)
            return compile_form(dispatcher, signature)

    Dispatcher.compile = compile_alone


def compile_job(name: str, what: str) -> None:
    from sparsezo.query_learner import QueryLearner, make_learner
    from sparsezo.questions import Question
    from sparsezo.settings import Settings

    with tempfile.TemporaryDirectory() as folder:
        task, data = _chunking() if name == "chunking" else _text() if name == "text" else _rerank(Path(folder))
        problem, gold = task.problem(data, asks=what != "steps"), task.gold(data)
        rule = "pair" if name == "rerank" else "part"  # nobody is asked about parts of a list
        asking = Settings(rule, None, 0.2, None, step="adagrad")
        if what == "told":
            question = Question("", 0, 0, "part", "token", (0, 0, 0, 0), (), 1.0, (), ())
            QueryLearner(problem, asking).learn_from(question, "yes")
        else:
            make_learner(problem, Settings() if what == "steps" else asking).run(gold, 2)


def _chunking():
    from sparsezo.tasks.chunking.synthetic import chunking_corpus
    from sparsezo.tasks.chunking.task import Chunking

    return Chunking.fit(chunking_corpus(10, 1))


def _text():
    from sparsezo.tasks.text.synthetic import generate_text
    from sparsezo.tasks.text.task import TextClassification

    return TextClassification.fit(generate_text(60, 3).documents())


def _rerank(folder: Path):
    from sparsezo.tasks.registry import task_spec
    from sparsezo.tasks.rerank.io.importing import import_nbest
    from sparsezo.tasks.rerank.task import Reranking

    task_spec("rerank").synthetic().write(folder / "train.nbest", folder / "weights", 12, 1, None)
    store = import_nbest(folder / "train.nbest", store_dir=folder / "stores")
    return Reranking.fit(store), store


if __name__ == "__main__":
    compile_once(Path(sys.argv[1]))
    for job in sys.argv[2:]:
        compile_job(*job.split(":"))
