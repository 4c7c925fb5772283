"""doctor: what this installation has, what it lacks and for what, and what would go wrong here.

sparsezo doctor
sparsezo doctor --json
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import tempfile
from importlib import metadata
from pathlib import Path
from typing import TypedDict

import typer
from rich.table import Table

from sparsezo.cli import show
from sparsezo.datasets import COLLECTIONS, find, places
from sparsezo.errors import EXTRAS, package_of, pip_install

PURPOSES = {  # extra -> what cannot be done without it
    "text": "texts to classify, and scikit-learn's estimators",
    "clusters": "clusters of words for English, German and Spanish",
    "vectors": "vectors of words for texts",
    "rerank": "BLEU, for n-best lists",
    "report": "figures, and reports of reproduce and demo",
    "data": "data get",
    "ray": "sweeps and tagging on a Ray cluster",
    "spacy": "spaCy's own files",
    "torch": "sparsezo.torch, an optimiser for PyTorch",
    "datasets": "the files of Hugging Face's datasets",
    "serve": "serve, join: people's answers",
}
_ENOUGH = 1 << 30  # bytes: compiled code takes some 50 MB, imported lists more
_CODE = {".nbi", ".nbc"}  # Numba's files: an index, a compiled form


class Cpu(TypedDict):
    """What compiled code is made for."""

    name: str
    cores: int
    vector_bits: int


class Compiled(TypedDict):
    """What is compiled already."""

    folder: str
    functions: int
    bytes: int


def run_doctor(json: bool) -> None:
    """Exit code 1 where something is wrong; what is merely not installed is none of that."""
    libraries, cpu = _libraries(), processor()
    code, wrong = _compiled_code()
    extras = {name: _versions(modules) for name, modules in EXTRAS.items()}
    collections = {name: found and str(found) for name in COLLECTIONS for found in [find(name, None)]}
    fields = {
        "python": platform.python_version(),
        "libraries": libraries,
        "cpu": cpu,
        "compiled_code": code,
        "extras": extras,
        "collections": collections,
        "wrong": wrong,
    }
    if json:
        show.result(fields, as_json=True)
    else:
        versions = ", ".join(f"{name} {version}" for name, version in libraries.items())
        show.line(f"Python {fields['python']}, {versions}")
        show.line(f"CPU {cpu['name']}, {cpu['cores']} cores, vectors of {cpu['vector_bits']} bits")
        show.line(f"compiled code in {code['folder']}: {code['functions']:,} functions, {code['bytes'] / 1e6:,.0f} MB")
        show.output.print(_table(extras))
        for name, found in collections.items():
            show.line(f"data {name}: {found or 'not here'}")
        show.line(f"(data is looked for in {', '.join(map(str, places(None)))})")
        for each in wrong:
            show.line(f"wrong: {each}", style="bold")
        if not wrong:
            show.line("nothing is wrong")
    if wrong:
        raise typer.Exit(1)


def _libraries() -> dict[str, str | None]:
    """Versions of this package and of what all of its commands need."""
    needed = [each for each in metadata.requires("sparsezo") or () if "extra ==" not in each]
    return {name: _version(name) for name in ("sparsezo", *(re.split(r"[^\w.-]", each)[0] for each in needed))}


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _versions(modules: tuple[str, ...]) -> dict[str, str | None]:
    return {package: _version(package) for package in map(package_of, modules)}


def processor() -> Cpu:
    """The CPU that code is compiled for: this machine's, or NUMBA_CPU_NAME's."""
    import llvmlite.binding as llvm
    import numba

    from sparsezo.study.bench import vector_bits

    name = numba.config.CPU_NAME or llvm.get_host_cpu_name()
    return {"name": name, "cores": os.cpu_count() or 1, "vector_bits": vector_bits()}


def _compiled_code() -> tuple[Compiled, list[str]]:
    """Where compiled code is kept, how much there is, and whether a next start will find it."""
    from sparsezo.kernels.jit import CACHE

    files = [file for file in CACHE.parent.rglob("*") if file.suffix in _CODE]
    fields: Compiled = {
        "folder": str(CACHE),
        "functions": sum(file.suffix == ".nbi" for file in files),
        "bytes": sum(file.stat().st_size for file in files),
    }
    wrong = []
    if re.match(r"sparsezo-\w{8}$", CACHE.name) and CACHE.parent == Path(tempfile.gettempdir()):
        wrong.append(
            f"compiled code is kept in {CACHE} for one start only, since neither NUMBA_CACHE_DIR nor the cache of the "
            "user is a folder that this user alone can write to: every start compiles anew"
        )
    free = shutil.disk_usage(CACHE).free
    if free < _ENOUGH:
        wrong.append(f"{CACHE}: {free / 1e6:,.0f} MB are free; make room")
    return fields, wrong


def _table(extras: dict[str, dict[str, str | None]]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("for", "has", "lacks"):
        table.add_column(name)
    for name, packages in extras.items():
        there = ", ".join(f"{package} {version}" for package, version in packages.items() if version)
        table.add_row(PURPOSES[name], there or "-", "" if all(packages.values()) else pip_install(name))
    return table
