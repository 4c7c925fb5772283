"""A large collection predicted file by file: by processes of this machine, or on Ray Data by any number of nodes.

    parts = find_parts(["news/*.txt", "more/"], Path("tagged"))         # each with the file that it becomes
    failed = predict_parts(Predictor("model.szo", options), parts, EngineOptions(engine="ray"))

An output is written to a temporary name and renamed, so one that is there is whole: after a run that was stopped or
killed, the same call does only what is left, and what has changed since. A worker that dies costs the files that it was
at, which another does again. All nodes must see the files; the model is sent to them.
"""

from __future__ import annotations

import functools
import glob
import logging
import os
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import IO

from sparsezo import __version__, messages
from sparsezo.errors import DataError, SparsezoError, UsageError, need
from sparsezo.model import Model, Tagger
from sparsezo.options import Values
from sparsezo.signals import processes_without_ctrl_c
from sparsezo.storage.files import STANDARD_INPUT, atomic_write, bare_name
from sparsezo.study.engines.base import RAY, EngineOptions
from sparsezo.study.engines.local import cores, described
from sparsezo.study.engines.ray import connect, last_words, other_version
from sparsezo.tasks.registry import task_spec

ENDING = ".pred"  # of outputs
RETRIES = 3  # processes that may die of a part
_BLOCKS = 1000  # of files that Ray hands out at a time: so many at most


@dataclass(frozen=True)
class Part:
    """A file of the collection and the file that its outputs go to."""

    input: str
    output: str

    @property
    def done(self) -> bool:
        """Whether the output is there, and not older than the input."""
        try:
            return os.stat(self.output).st_mtime_ns >= os.stat(self.input).st_mtime_ns
        except OSError:
            return False


def find_parts(inputs: Iterable[str], out: Path) -> list[Part]:
    """The files that are named: files, patterns such as ``news/*.txt``, and all files of folders, hidden ones left out.

    An output is named after its file, without .gz or .xz and with ``ENDING``; below a folder it keeps its place there.
    """
    outputs: dict[Path, str] = {}
    for name in inputs:
        if name == STANDARD_INPUT:
            raise UsageError("standard input (-) is one input; give files, or leave out `engine` and `processes`")
        for path, place in _files(name):
            output = out / place.with_name(bare_name(place) + ENDING)
            if outputs.setdefault(output, str(path)) != str(path):
                raise UsageError(f"{outputs[output]} and {path} would both become {output}; name them in two calls")
    return [Part(path, str(output)) for output, path in outputs.items()]


def _files(name: str) -> Iterator[tuple[Path, Path]]:
    """(path, place below the folder of results)."""
    if os.path.isdir(name):
        below = sorted(path for path in Path(name).rglob("*") if path.is_file())
        found = [(path, path.relative_to(name)) for path in below]
        found = [(path, place) for path, place in found if not any(part.startswith(".") for part in place.parts)]
    else:
        paths = [name] if os.path.exists(name) else sorted(filter(os.path.isfile, glob.glob(name, recursive=True)))
        found = [(Path(path), Path(Path(path).name)) for path in paths]
    if not found:
        raise DataError(name, "no such file, or no file in it; check the path")
    yield from found


def predict_file(model: Model, path: str, options: Values, target: Path | IO[bytes]) -> None:
    """Write a model's outputs for a file of inputs, in the task's own form."""
    spec = task_spec(model.task.name)
    if spec.predict_spans(model, path, options, target):
        return
    lines = (line.encode() for line in spec.predict(model, path, options))
    if isinstance(target, Path):
        with atomic_write(target) as stream:
            stream.writelines(lines)
    else:
        target.writelines(lines)


class Predictor:
    """Predicts parts; pickled with the path of its model, or with the model's bytes, which each process loads once."""

    def __init__(self, model: Model | str | os.PathLike[str], options: Values) -> None:
        self.tagger, self.options = Tagger(model), dict(options)

    def __call__(self, part: Part) -> str | None:
        """None, or why it failed."""
        if part.done:
            return None
        try:
            with messages.gathered():  # a remark for each of thousands of files is none
                os.makedirs(os.path.dirname(part.output) or ".", exist_ok=True)
                predict_file(self.tagger.model, part.input, self.options, Path(part.output))
        except Exception as error:
            return described(error)
        return None


def predict_parts(
    predictor: Predictor,
    parts: Sequence[Part],
    where: EngineOptions,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[str]:
    """Do what is not done yet; returns why parts failed, which the others do not wait for."""
    todo = [part for part in parts if not part.done]
    processes = where.processes or cores()
    if where.engine == RAY:
        results = _on_ray(predictor, todo, where)
    elif min(processes, len(todo)) > 1:
        results = _by_processes(predictor, todo, processes)
    else:
        results = map(predictor, todo)
    failures = []
    progress(len(parts) - len(todo), len(parts))
    for number, why in enumerate(results, start=1):
        progress(len(parts) - len(todo) + number, len(parts))
        if why is not None:
            failures.append(why)
    return failures


def _by_processes(predictor: Predictor, parts: list[Part], processes: int) -> Iterator[str | None]:
    """A thread for each process, so that it is known what a process was at when it died."""
    local = threading.local()
    pools: list[ProcessPoolExecutor] = []

    def predict(part: Part) -> str | None:
        for _ in range(RETRIES):
            if not hasattr(local, "pool"):
                local.pool = ProcessPoolExecutor(1, get_context("spawn"), initializer=_begin, initargs=(predictor,))
                pools.append(local.pool)
            try:
                why: str | None = local.pool.submit(_predict, part).result()
                return why
            except BrokenProcessPool:
                del local.pool
        return f"{part.input}: its process was killed {RETRIES} times; if memory is short, use fewer `processes`"

    with ThreadPoolExecutor(min(processes, len(parts))) as threads:
        try:
            with processes_without_ctrl_c():  # it is for this thread alone
                futures = [threads.submit(predict, part) for part in parts]
            for future in as_completed(futures):
                yield future.result()
        finally:
            with processes_without_ctrl_c():  # a second one waits until all have ended
                threads.shutdown(cancel_futures=True)
                for pool in pools:
                    pool.shutdown()


_predictor: Predictor  # of a process of the pool


def _begin(predictor: Predictor) -> None:
    global _predictor
    _predictor = predictor
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A pool's processes would wait for work for ever where the caller was killed."""
    if (parent := parent_process()) is not None:
        parent.join()
        os._exit(1)


def _predict(part: Part) -> str | None:
    return _predictor(part)


def _on_ray(predictor: Predictor, parts: list[Part], where: EngineOptions) -> Iterator[str | None]:
    need("ray", "datasets")  # Ray Data's blocks are Arrow's
    if not parts:
        return
    connection = connect(where.ray_address, where.processes or cores())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Ray Data warns of its own settings
            import ray.data

            logging.getLogger("ray.data").setLevel(logging.ERROR)
            ray.data.DataContext.get_current().enable_progress_bars = False
            workers = min(where.processes or connection.cpus, len(parts))
            rows = ray.data.from_items([asdict(part) for part in parts], override_num_blocks=min(len(parts), _BLOCKS))
            done = rows.map(
                _predict_row,
                fn_args=(ray.put(predictor), __version__),
                num_cpus=1,
                compute=ray.data.TaskPoolStrategy(size=workers),
            )
            for row in done.iter_rows():
                yield row["why"] or None
    except connection.ray.exceptions.RayError as error:
        raise SparsezoError(f"Ray gave up ({last_words(error)}); the same command goes on from there") from None
    finally:
        connection.close()


def _predict_row(row: dict[str, str], predictor: object, version: str) -> dict[str, str]:
    """What a process of Ray's does with a part; ``predictor``: where it is in Ray's store."""
    return {**row, "why": _fetched(predictor, version)(Part(row["input"], row["output"])) or ""}


@functools.lru_cache(maxsize=1)
def _fetched(predictor: object, version: str) -> Predictor:
    """Once in a process, and with it the model."""
    import ray

    if (why := other_version(version)) is not None:
        raise SparsezoError(why)
    found: Predictor = ray.get(predictor)
    return found
