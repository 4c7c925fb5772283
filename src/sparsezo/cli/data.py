"""data list, get, path and make: the collections of the experiments, and generated data of any size.

    sparsezo data get conll2000
    sparsezo data make rerank -o lists/train.nbest.xz -n 1000 --seed 1

What the commands need is imported when they are called, so that --help answers at once.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Annotated, cast

import typer

data_app = typer.Typer(help="Where the data is, how to get it, and generated data.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="conll2000, rcv1, wmt07 or 20news.")]
DataFolder = Annotated[
    Path | None, typer.Option("--data", help="Look here first, then in SPARSEZO_DATA and in the cache.")
]


@data_app.command("list")
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


@data_app.command("get")
def get(name: Name) -> None:
    """Fetch a collection from its public home into the user's cache, and print the folder."""
    from sparsezo.cli import show
    from sparsezo.collections import fetch

    fetched = fetch(name, show.note)
    done = f"fetched {', '.join(fetched.downloaded)}" if fetched.downloaded else "is there and right, nothing to fetch"
    show.note(f"{name}: {done}")
    typer.echo(fetched.folder)


@data_app.command("path")
def path(name: Name, data: DataFolder = None) -> None:
    """Print the folder where a collection is."""
    from sparsezo.collections import find, not_found

    folder = find(name, data)
    if folder is None:
        raise not_found(name, data)
    typer.echo(folder)


@data_app.command("make")
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


_ENDINGS = {"chunking": ".txt", "text": ".tsv", "rerank": ".nbest"}
_SIZES = {"chunking": "2000", "text": "4000", "rerank": "300"}
_PACKED = (".gz", ".xz")


def make_data(task: str, output: str, n: str | None, seed: int, format: str | None = None) -> list[Path]:
    """The files written. A file that the user did not name is never replaced, unless with the one it belongs to."""
    from sparsezo.cli.values import whole_number
    from sparsezo.errors import SparsezoError, UsageError

    if task not in _SIZES:
        raise UsageError(f"task {task}: choose from {', '.join(_SIZES)}")
    if format is not None and task != "text":
        raise UsageError(f"--format does not belong to task {task}")
    if format not in (None, "tsv", "svmlight"):
        raise UsageError(f"--format {format}: choose from tsv, svmlight")
    size = whole_number(_SIZES[task] if n is None else n, "-n")
    target = Path(output)
    if target.is_dir() or output.endswith(("/", os.sep)):
        ending = ".dat" if format == "svmlight" else _ENDINGS[task]
        parts = {"train": (size, seed), "dev": (max(1, size // 4), seed + 1), "test": (max(1, size // 2), seed + 2)}
        jobs = {target / f"{part}{ending}": of for part, of in parts.items()}
        weights = "weights."
        _refuse_existing([file for job in jobs for file in _files(task, job, target / weights)])
        target.mkdir(parents=True, exist_ok=True)
    else:
        if task == "rerank" and not _bare(target).endswith(".nbest"):
            raise UsageError(f"-o {output}: name it NAME.nbest, .nbest.gz or .nbest.xz, or a folder with a / behind it")
        if not target.resolve().parent.is_dir():
            raise SparsezoError(f"{output}: there is no folder {target.resolve().parent}; make it first")
        jobs = {target: (size, seed)}
        weights = f"{_bare(target).removesuffix('.nbest')}.weights."
        if not target.exists():
            _refuse_existing(_files(task, target, target.parent / weights))
    written: dict[Path, None] = {}
    for job, (inputs, job_seed) in jobs.items():
        written |= dict.fromkeys(_write(task, job, job.parent / weights, inputs, job_seed, format))
    return list(written)


def _bare(path: Path) -> str:
    return path.stem if path.suffix in _PACKED else path.name


def _files(task: str, target: Path, weights: Path) -> list[Path]:
    """All files that are written for ``target``; ``weights`` is how the names of weights begin."""
    if task != "rerank":
        return [target]
    reference = target.with_name(_bare(target).removesuffix(".nbest") + ".ref")
    return [target, reference, *(weights.with_name(weights.name + domain) for domain in ("out-of-domain", "in-domain"))]


def _refuse_existing(files: Iterable[Path]) -> None:
    from sparsezo.errors import UsageError

    for file in files:
        if file.exists():
            raise UsageError(
                f"{file}: is there already and would be replaced; remove it, or name another place with -o"
            )


def _write(task: str, target: Path, weights: Path, n: int, seed: int, format: str | None) -> list[Path]:
    files = _files(task, target, weights)
    if task == "chunking":
        from sparsezo.tasks.chunking.generate import chunking_columns, generate_chunking

        _lines(target, (chunking_columns([sentence]) for sentence in generate_chunking(n, seed)))
    elif task == "rerank":
        from sparsezo.tasks.rerank.generate import IN_DOMAIN, OUT_OF_DOMAIN, generate_nbest, weights_text

        lists = generate_nbest(n, seed)
        texts = (lists.nbest(), lists.ref(), weights_text(OUT_OF_DOMAIN), weights_text(IN_DOMAIN))
        for file, text in zip(files, texts, strict=True):
            _lines(file, [text])
    elif format == "svmlight":
        from sparsezo.tasks.text.generate import generate_text, write_svmlight

        some = generate_text(n, seed)
        write_svmlight(target, some.vectors, some.names())
    else:
        from sparsezo.tasks.text.generate import generate_texts

        _lines(target, (f"{label}\t{text}\n" for label, text in generate_texts(n, seed)))
    return files


def _lines(path: Path, texts: Iterable[str]) -> None:
    with _packing(path) as stream:
        stream.writelines(text.encode() for text in texts)


@contextmanager
def _packing(path: Path) -> Iterator[IO[bytes]]:
    """Packed by the name's ending, the same bytes every time; whole or not there."""
    import gzip
    import lzma

    from sparsezo.storage.files import atomic_write

    with atomic_write(path) as out:
        if path.suffix == ".gz":
            with gzip.GzipFile(fileobj=out, mode="wb", mtime=0, filename="") as packed:
                yield cast(IO[bytes], packed)
        elif path.suffix == ".xz":
            with lzma.LZMAFile(out, "wb", preset=1) as squeezed:
                yield squeezed
        else:
            yield out
