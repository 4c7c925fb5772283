"""data list, get, path and make: the collections of the experiments, and generated data of any size.

    sparsezo data get conll2000
    sparsezo data make rerank -o lists/train.nbest.xz -n 1000 --seed 1

What the commands need is imported when they are called, so that --help answers at once.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from sparsezo.cli.options import HELP, Command, Group

data_app = typer.Typer(
    help="Where the data is, how to get it, and generated data.",
    no_args_is_help=True,
    cls=Group,
    context_settings=HELP,
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="conll2000, rcv1, wmt07 or 20news.")]
DataFolder = Annotated[
    Path | None, typer.Option("--data", help="Look here first, then in SPARSEZO_DATA and in the cache.")
]


@data_app.command("list", cls=Command, context_settings=HELP)
def list_collections(
    data: DataFolder = None,
    as_json: Annotated[bool, typer.Option("--json", help="End standard output with one JSON object.")] = False,
) -> None:
    """The collections known: what they are, whether they are here, where to get them."""
    from dataclasses import asdict

    from sparsezo.cli import show
    from sparsezo.collections import COLLECTIONS, describe, find, places

    if as_json:
        found = {name: find(name, data) for name in COLLECTIONS}
        rows = [
            {**asdict(one), "fetchable": bool(one.downloads), "path": str(found[name]) if found[name] else None}
            for name, one in COLLECTIONS.items()
        ]
        show.result({"collections": rows, "places": list(map(str, places(data)))}, as_json=True)
        return
    for name, one in COLLECTIONS.items():
        folder = find(name, data)
        here = f"in {folder}" if folder else "not here"
        show.output.print(f"{name} ({one.task}), {here}", style="bold", markup=False, soft_wrap=True)
        show.output.print(f"{describe(name)}\n", markup=False, soft_wrap=True)
    show.output.print(f"looked in {', '.join(map(str, places(data)))}", markup=False, soft_wrap=True)


@data_app.command("get", cls=Command, context_settings=HELP)
def get(name: Name) -> None:
    """Fetch a collection from its public home into the user's cache, and print the folder."""
    from sparsezo.cli import show
    from sparsezo.collections import fetch

    fetched = fetch(name, show.note)
    done = f"fetched {', '.join(fetched.downloaded)}" if fetched.downloaded else "is there and right, nothing to fetch"
    show.note(f"{name}: {done}")
    typer.echo(fetched.folder)


@data_app.command("path", cls=Command, context_settings=HELP)
def path(name: Name, data: DataFolder = None) -> None:
    """Print the folder where a collection is."""
    from sparsezo.collections import find, not_found

    folder = find(name, data)
    if folder is None:
        raise not_found(name, data)
    typer.echo(folder)


@data_app.command("make", cls=Command, context_settings=HELP)
def make(
    task: Annotated[str, typer.Argument(metavar="TASK", help="chunking, text or rerank.")],
    output: Annotated[
        str,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE|DIR",
            help="A file, packed if it ends in .gz or .xz; rerank: NAME.nbest, and NAME.ref and weights beside it. "
            "A folder (there, or ending in /): train, dev and test, with n, n/4 and n/2 inputs of seeds S, S+1, S+2.",
        ),
    ],
    n: Annotated[
        str | None,
        typer.Option("-n", help="Inputs: 500, 20k, ...", show_default="2000 sentences, 4000 documents, 300 lists"),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Another seed, other data of the same law.")] = 0,
    format: Annotated[
        str | None, typer.Option(help="text: tsv (label TAB text) or svmlight (RCV1's shape).", show_default="tsv")
    ] = None,
) -> None:
    """Write generated data: CoNLL columns, documents, or n-best lists with references and weights."""
    from sparsezo.cli import show

    written = make_data(task, output, n, seed, format)
    show.note(f"wrote {', '.join(map(str, written))}")


def make_data(task: str, output: str, n: str | None, seed: int, format: str | None = None) -> list[Path]:
    """The files written. A file that the user did not name is never replaced, unless with the one it belongs to."""
    from sparsezo.cli.values import whole_number
    from sparsezo.errors import SparsezoError, UsageError
    from sparsezo.storage.packing import bare_name
    from sparsezo.tasks.registry import kind

    making = kind(task).make()
    if format is not None and not making.FORMATS:
        raise UsageError(f"--format does not belong to task {task}")
    if format is not None and format not in making.FORMATS:
        raise UsageError(f"--format {format}: choose from {', '.join(making.FORMATS)}")
    size = making.SIZE if n is None else whole_number(n, "-n")
    target = Path(output)
    if target.is_dir() or output.endswith(("/", os.sep)):
        ending = ".dat" if format == "svmlight" else making.ENDING
        parts = {"train": (size, seed), "dev": (max(1, size // 4), seed + 1), "test": (max(1, size // 2), seed + 2)}
        jobs = {target / f"{part}{ending}": of for part, of in parts.items()}
        weights = target / "weights."
        _refuse_existing([file for job in jobs for file in making.paths(job, weights)])
        target.mkdir(parents=True, exist_ok=True)
    else:
        weights = target.with_name(f"{bare_name(target).removesuffix(making.ENDING)}.weights.")
        files = making.paths(target, weights)
        if not target.resolve().parent.is_dir():
            raise SparsezoError(f"{output}: there is no folder {target.resolve().parent}; make it first")
        jobs = {target: (size, seed)}
        if not target.exists():
            _refuse_existing(files)
    written: dict[Path, None] = {}
    for job, (inputs, job_seed) in jobs.items():
        making.write(job, weights, inputs, job_seed, format)
        written |= dict.fromkeys(making.paths(job, weights))
    return list(written)


def _refuse_existing(files: Iterable[Path]) -> None:
    from sparsezo.errors import UsageError

    for file in files:
        if file.exists():
            raise UsageError(
                f"{file}: is there already and would be replaced; remove it, or name another place with -o"
            )
