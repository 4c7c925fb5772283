"""Where an experiment's files come from: a folder with the real data, or the package's own generators.

    source = in_folder(plan, "DIR")              # or generated(plan, out / "data")
    source.train, source.dev, source.test, source.options   # as train's command line would name them
    source.identity                                         # a hash of their content

Generated files stand where the plan's paths say, so that the rest of the work does not know the difference. Runs are
known by content: a folder may move, and the same work is not done again.
"""

from __future__ import annotations

import gzip
import hashlib
import itertools
import json
import lzma
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sparsezo.errors import DataError, UsageError
from sparsezo.experiments.plan import Experiment
from sparsezo.storage.files import atomic_write
from sparsezo.tasks.chunking.generate import chunking_columns, generate_chunking
from sparsezo.tasks.rerank.generate import IN_DOMAIN, OUT_OF_DOMAIN, generate_nbest, weights_text
from sparsezo.tasks.rerank.store import default_references

_PATHS = ("template", "topics", "init", "train_ref", "dev_ref", "test_ref")  # options that name files
_PLACES = ("store",)  # options that name a place to write: no part of what the data is
_SIZES = {"chunking": (2000, 500, 1000), "text": (4000, 1000, 2000), "rerank": (300, 150, 300)}  # train, dev, test


@dataclass(frozen=True)
class Source:
    """Files as they are on this machine; ``dev`` may be a number of inputs to hold out."""

    task: str
    train: tuple[str, ...]
    dev: str | None = None
    test: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    bounds: Mapping[str, str] = field(default_factory=dict)

    @property
    def identity(self) -> str:
        """A hash of the files' content and of the options that say how they are read."""
        parts = [[role, _content(Path(path))] for role, path in self._files()]
        options = {name: self.options[name] for name in self.options if name not in (*_PATHS, *_PLACES)}
        known_by = {"task": self.task, "parts": parts, "options": options, "dev": self.held_out}
        return hashlib.blake2b(json.dumps(known_by, sort_keys=True).encode(), digest_size=16).hexdigest()

    @property
    def held_out(self) -> str | None:
        return self.dev if self.dev and self.dev.isdigit() and not Path(self.dev).exists() else None

    def _files(self) -> Iterator[tuple[str, str]]:
        dev = () if self.dev is None or self.held_out else (self.dev,)
        parts = {"train": self.train, "dev": dev, "test": (self.test,) if self.test else ()}
        for role, paths in parts.items():
            yield from ((role, path) for path in paths)
            if self.task == "rerank" and f"{role}_ref" not in self.options:
                yield from ((f"{role}_ref", str(default_references(path))) for path in paths)
        for name in _PATHS:
            yield from ((name, path) for path in _listed(self.options.get(name)))

    def missing(self) -> list[str]:
        named = [*(path for _, path in self._files()), *self.bounds.values()]
        return [path for path in named if not Path(path).exists()]


def in_folder(plan: Experiment, folder: str | os.PathLike[str]) -> Source:
    """The plan's files under ``folder``; says what to do where one is not there."""
    source = _placed(plan, Path(folder))
    if missing := source.missing():
        raise UsageError(
            f"{plan.name} needs {missing[0]}, which is not there; name the folder that has the data with --data DIR or "
            "SPARSEZO_DATA ('sparsezo data list' says how to get it), or use --data generated"
        )
    return source


def present(plan: Experiment, folder: str | os.PathLike[str]) -> bool:
    """Whether all the plan's files are under ``folder``."""
    return not _placed(plan, Path(folder)).missing()


def generated(plan: Experiment, folder: Path) -> Source:
    """The plan's files under ``folder``, written there by our own generators if they are not there yet."""
    source = _placed(plan, folder)
    if source.missing():
        for path in map(Path, source.train):
            path.parent.mkdir(parents=True, exist_ok=True)
        {"chunking": _write_chunking, "text": _write_text, "rerank": _write_rerank}[plan.task](source)
    return source


def _placed(plan: Experiment, folder: Path) -> Source:
    data = plan.data

    def place(path: str) -> str:
        return str(folder / path)

    options: dict[str, Any] = {
        name: ([place(v) for v in value] if isinstance(value, list) else place(value)) if name in _PATHS else value
        for name, value in data.options.items()
    }
    if plan.init is not None:
        options["init"] = place(plan.init)
    return Source(
        task=plan.task,
        train=tuple(map(place, data.train)),
        dev=data.dev if data.dev is None or data.dev.isdigit() else place(data.dev),
        test=place(data.test) if data.test else None,
        options=options,
        bounds={name: place(path) for name, path in plan.bounds.items()},
    )


def _listed(value: Any) -> list[str]:
    return [] if value is None else [value] if isinstance(value, str) else list(value)


def _content(path: Path) -> str:
    """Of a file, or of all files in a folder."""
    digest = hashlib.blake2b(digest_size=16)
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    for file in files:
        try:
            with open(file, "rb") as stream:
                digest.update(hashlib.file_digest(stream, "blake2b").digest())
        except FileNotFoundError:
            raise DataError(str(file), "no such file; check the path") from None
        except OSError as error:
            raise DataError(str(file), f"cannot be read ({error.strerror or error})") from None
    return digest.hexdigest()


def _write_chunking(source: Source) -> None:
    _require_plain(source)
    train, dev, test = _SIZES["chunking"]
    _share(source.train, generate_chunking(train + int(source.held_out or 0), 1), chunking_columns)
    for path, size, seed in ((source.dev, dev, 2), (source.test, test, 3)):
        if path and path != source.held_out:
            _write(path, chunking_columns(generate_chunking(size, seed)))


def _write_text(source: Source) -> None:
    from sparsezo.tasks.text.generate import generate_texts

    _require_plain(source)
    train, dev, test = _SIZES["text"]
    train += int(source.held_out or 0)
    documents = generate_texts(train + dev + test, seed=1)  # one seed: another would be another language

    def tsv(pairs: list[tuple[str, str]]) -> str:
        return "".join(f"{label}\t{text}\n" for label, text in pairs)

    _share(source.train, list(itertools.islice(documents, train)), tsv)
    for path, size in ((source.dev, dev), (source.test, test)):
        some = list(itertools.islice(documents, size))
        if path and path != source.held_out:
            _write(path, tsv(some))


def _write_rerank(source: Source) -> None:
    _require_plain(source, "init")
    for path, size, seed in zip((source.train[0], source.dev, source.test), _SIZES["rerank"], (1, 2, 3), strict=True):
        if path:
            lists = generate_nbest(size, seed)
            _write(path, lists.nbest())
            _write(str(default_references(path)), lists.ref())
    weights = {name: OUT_OF_DOMAIN if "out" in name else IN_DOMAIN for name in source.bounds}
    for name, path in source.bounds.items():
        _write(path, weights_text(weights[name]))
    if "init" in source.options:
        _write(source.options["init"], weights_text(OUT_OF_DOMAIN))


def _require_plain(source: Source, *known: str) -> None:
    for name in source.options:
        if name in _PATHS and name not in known:
            raise UsageError(f"{name} names a file, and there is no generator for it; use --data DIR")


def _share(paths: tuple[str, ...], items: list[Any], text: Callable[[list[Any]], str]) -> None:
    """The items in equal parts over the files."""
    for k, path in enumerate(paths):
        _write(path, text(items[k * len(items) // len(paths) : (k + 1) * len(items) // len(paths)]))


def _write(path: str, text: str) -> None:
    raw = text.encode()
    if path.endswith(".gz"):
        raw = gzip.compress(raw, mtime=0)
    elif path.endswith(".xz"):
        raw = lzma.compress(raw, preset=0)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as stream:
        stream.write(raw)
