"""Memory of chunking: bytes a token that a run holds, and at its peak, beside what does not grow with its tokens.

    python benchmarks/memory.py DATA [--times 24] [--only two-point]

CoNLL-2000 once and so many times over, each in a process of its own, up to the run's first thousand steps (a session's
first question). What the second takes more, over the tokens that it has more: libraries, compiled code, weights and the
table of attributes are the same in both. Linux alone tells. What is not compiled yet is compiled before.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from sparsezo import Settings, read_conll
from sparsezo.tasks.loading import Files
from sparsezo.tasks.registry import task_spec
from sparsezo.training import Training

RUNS: dict[str, Settings | None] = {
    "reading": None,
    "features": None,
    "first-order": Settings("first-order", None, 0.01, None),
    "first-order, Adagrad": Settings("first-order", None, 0.01, None, step="adagrad"),
    "two-point score": Settings("two-point", "score", 0.001, 0.1),
    "two-point score, Adagrad": Settings("two-point", "score", 0.01, 0.1, step="adagrad"),
    "two-point active": Settings("two-point", "active", 0.001, 0.1),
    "review (serve)": Settings("review", None, 0.1, None, step="adagrad"),
}


def held(name: str, path: Path, folder: Path) -> object:
    """What such a run holds, once it runs."""
    settings = RUNS[name]
    if name == "reading":
        return read_conll(path)
    loaded = task_spec("chunking").load(Files((str(path),), options={"only": "NP"}))
    if settings is None:
        return loaded
    if settings.rule == "review":
        from sparsezo.serve.session import Session

        session = Session(task_spec("chunking"), loaded.task, loaded.data.train, settings, folder / "session")
        session.warm_up()
        return session
    training = Training(loaded.task, loaded.data, settings, 1000, evaluate_every=1000)
    training.learn()
    return training


def measured(name: str, path: Path, folder: Path) -> tuple[int, int]:
    """Bytes that this process has, and has had at the most, with such a run in it."""
    kept = held(name, path, folder)
    status = Path("/proc/self/status").read_text()
    now, most = (1024 * int(re.findall(rf"{field}:\s+(\d+) kB", status)[0]) for field in ("VmRSS", "VmHWM"))
    del kept
    return now, most


def in_a_process(name: str, path: Path) -> tuple[int, int]:
    with tempfile.TemporaryDirectory() as folder:
        call = [sys.executable, __file__, "--run", name, str(path), folder]
        last = subprocess.run(call, check=True, capture_output=True, text=True).stdout.splitlines()[-1]
    now, most = json.loads(last)
    return now, most


def main() -> None:
    if sys.argv[1:2] == ["--run"]:
        name, path, folder = sys.argv[2:]
        print(json.dumps(measured(name, Path(path), Path(folder))))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--times", type=int, default=24)
    parser.add_argument("--only", default="", help="a run's name has this in it")
    args = parser.parse_args()
    with gzip.open(args.data / "conll2000/train.txt.gz", "rt") as file:
        text = file.read().rstrip("\n") + "\n\n"
    tokens = sum(map(bool, text.splitlines())) * (args.times - 1)
    with tempfile.TemporaryDirectory() as place:
        once, often = Path(place) / "once.txt", Path(place) / "often.txt"
        once.write_text(text)
        often.write_text(text * args.times)
        print(f"{args.times} times CoNLL-2000 beside once, {tokens:,} tokens more; bytes a token")
        for name in (each for each in RUNS if args.only in each):
            in_a_process(name, once)
            held_once, peak_once = in_a_process(name, once)
            held_often, peak_often = in_a_process(name, often)
            now, most = (held_often - held_once) / tokens, (peak_often - peak_once) / tokens
            print(f"{name:26} {now:6.0f} held {most:6.0f} at the peak", flush=True)


if __name__ == "__main__":
    main()
