"""A collection of raw text tagged file by file: tokens a second with 1 and 2 CPUs, by processes and on Ray, and with a
worker that is killed on the way. The texts are CoNLL-2000's words, joined and repeated; outputs are compared.

    python benchmarks/large.py DATA [--megabytes 8] [--files 16]
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import sys
import tempfile
import time
from pathlib import Path

from sparsezo import Chunking, Learner, Model, Settings, read_conll
from sparsezo.study.engines.base import EngineOptions
from sparsezo.study.engines.ray import connect
from sparsezo.study.engines.tagging import Part, Predictor, find_parts, predict_parts
from sparsezo.tasks.chunking.io.documents import documents_from_columns
from sparsezo.tasks.chunking.io.raw import corpus_of


class Killed(Predictor):
    """Whose first process to come to a part ends there, without a word."""

    def __call__(self, part: Part) -> str | None:
        mark = Path(part.output).parent / "killed"
        if part.input.endswith("7.txt") and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__call__(part)


def collection(data: Path, folder: Path, megabytes: float, files: int) -> int:
    """Write the files and m.szo; the number of tokens."""
    labelled = [each for each in documents_from_columns(read_conll(data / "conll2000/train.txt.gz")) if each.text]
    read = corpus_of(labelled[:2000], "train", labelled=True, cuts=True)
    task, corpus = Chunking.fit(read, only="NP", split="lines")
    learner = Learner(task.problem(corpus), Settings.complete({"rule": "supervised", "step": "adagrad"}, task.defaults))
    learner.run(task.gold(corpus), len(corpus))
    Model(task, learner.weights(), {}, {}).save(folder / "m.szo")
    lines = [each.text for each in labelled]
    size = sum(len(line) + 1 for line in lines)
    times = max(1, round(megabytes * 1e6 / size))
    everything = lines * times
    (folder / "in").mkdir()
    for k in range(files):
        (folder / f"in/{k:02}.txt").write_text("\n".join(everything[k::files]) + "\n")
    return times * sum(len(line.split()) for line in lines)


def cpu_seconds() -> float:
    """Of this process and of those that it has waited for."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--megabytes", type=float, default=8.0)
    parser.add_argument("--files", type=int, default=16)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tokens = collection(args.data, folder, args.megabytes, args.files)
        print(f"{tokens:,} tokens in {args.files} files")
        first: dict[str, bytes] = {}
        ways: list[tuple[str, type[Predictor], EngineOptions]] = [
            ("1 process", Predictor, EngineOptions(processes=1)),
            ("2 processes", Predictor, EngineOptions(processes=2)),
            ("2 processes, one killed", Killed, EngineOptions(processes=2)),
            ("Ray, 1 CPU", Predictor, EngineOptions("ray", processes=1)),
            ("Ray, 2 CPUs", Predictor, EngineOptions("ray", processes=2)),
            ("Ray, 2 CPUs, one killed", Killed, EngineOptions("ray", processes=2)),
        ]
        for number, (title, kind, where) in enumerate(ways):
            out = folder / f"out{number}"
            parts = find_parts([str(folder / "in")], out)
            connection = connect(None, where.processes or 1) if where.engine == "ray" else None
            if connection is not None:  # started before the clock; its workers know of this file's class
                connection.ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
            began, cpu = time.perf_counter(), cpu_seconds()
            failures = predict_parts(kind(folder / "m.szo", {}), parts, where)
            whole, cpu = time.perf_counter() - began, cpu_seconds() - cpu
            if connection is not None:
                connection.close()
            found = {path.name: path.read_bytes() for path in out.glob("*.pred")}
            first = first or found
            if failures or found != first:
                raise SystemExit(f"{title}: {failures or 'other outputs'}")
            of_cpu = f"; {cpu:.1f} CPU seconds" if connection is None else ""  # Ray's processes are not this one's
            print(f"{title:26} {tokens / whole:10,.0f} tokens a second; {whole:.1f} s with loading{of_cpu}", flush=True)


if __name__ == "__main__":
    main()
