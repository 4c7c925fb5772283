"""data list, get, path and make: the collections of the experiments, and generated data of any size.

sparsezo data get conll2000
sparsezo data make rerank -o lists/train.nbest.xz -n 1000 --seed 1
"""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path

import typer

from sparsezo.cli import show
from sparsezo.cli.values import whole_number
from sparsezo.datasets import COLLECTIONS, describe, fetch, find, not_found, places
from sparsezo.errors import SparsezoError, UsageError
from sparsezo.storage.files import bare_name
from sparsezo.tasks.registry import task_spec


def list_collections(data: Path | None, json: bool) -> None:
    found = {name: find(name, data) for name in COLLECTIONS}
    looked = list(map(str, places(data)))
    if json:
        rows = [
            {**asdict(one), "fetchable": bool(one.downloads), "path": str(found[name]) if found[name] else None}
            for name, one in COLLECTIONS.items()
        ]
        show.result({"collections": rows, "places": looked}, as_json=True)
        return
    for name, one in COLLECTIONS.items():
        show.line(f"{name} ({one.task}), {f'in {found[name]}' if found[name] else 'not here'}", style="bold")
        show.line(f"{describe(name)}\n")
    show.line(f"looked in {', '.join(looked)}")


def get(name: str) -> None:
    fetched = fetch(name, show.note)
    done = f"fetched {', '.join(fetched.downloaded)}" if fetched.downloaded else "is there and right, nothing to fetch"
    show.note(f"{name}: {done}")
    typer.echo(fetched.folder)


def path(name: str, data: Path | None) -> None:
    folder = find(name, data)
    if folder is None:
        raise not_found(name, data)
    typer.echo(folder)


def make(task: str, output: str, n: str | None, seed: int, format: str | None) -> None:
    show.note(f"wrote {', '.join(map(str, make_data(task, output, n, seed, format)))}")


def make_data(task: str, output: str, n: str | None, seed: int, format: str | None = None) -> list[Path]:
    """The files written. A file that the user did not name is never replaced, unless with the one it belongs to."""
    making = task_spec(task).synthetic()
    if format is not None and not making.FORMATS:
        raise UsageError(f"--format does not belong to task {task}")
    if format is not None and format not in making.FORMATS:
        raise UsageError(f"--format {format}: choose from {', '.join(making.FORMATS)}")
    size = making.SIZE if n is None else whole_number(n, "-n")
    target = Path(output)
    if target.is_dir() or output.endswith(("/", os.sep)):
        ending = ".dat" if format == "svmlight" else making.ENDING
        parts = (("train", size), ("dev", max(1, size // 4)), ("test", max(1, size // 2)))
        jobs = {target / f"{part}{ending}": (inputs, seed + k) for k, (part, inputs) in enumerate(parts)}
        weights = target / "weights."
        _refuse_existing([file for job in jobs for file in making.paths(job, weights)])
        target.mkdir(parents=True, exist_ok=True)
    else:
        weights = target.with_name(f"{bare_name(target).removesuffix(making.ENDING)}.weights.")
        if not target.resolve().parent.is_dir():
            raise SparsezoError(f"{output}: there is no folder {target.resolve().parent}; make it first")
        jobs = {target: (size, seed)}
        if not target.exists():
            _refuse_existing(making.paths(target, weights))
    for job, (inputs, job_seed) in jobs.items():
        making.write(job, weights, inputs, job_seed, format)
    return list(dict.fromkeys(file for job in jobs for file in making.paths(job, weights)))


def _refuse_existing(files: list[Path]) -> None:
    for file in files:
        if file.exists():
            raise UsageError(
                f"{file}: is there already and would be replaced; remove it, or name another place with -o"
            )
