"""Where an experiment's files come from: a folder with the real data, or the package's own generators.

    source = in_folder(plan, "DIR")              # or generated(plan, out / "data")
    source.train, source.dev, source.test, source.options   # as train's command line would name them
    source.identity                                         # a hash of their content

Generated files stand where the plan's paths say, so that the rest of the work does not know the difference. Runs are
known by content: a folder may move, and the same work is not done again.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sparsezo.errors import DataError, UsageError
from sparsezo.experiments.plan import Experiment
from sparsezo.tasks.loading import is_count, is_number
from sparsezo.tasks.registry import kind


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
        elsewhere = (*self._named(file=True), *self._named(place=True))
        options = {name: self.options[name] for name in self.options if name not in elsewhere or self._is_word(name)}
        known_by = {"task": self.task, "parts": parts, "options": options, "dev": self.held_out}
        return hashlib.blake2b(json.dumps(known_by, sort_keys=True).encode(), digest_size=16).hexdigest()

    @property
    def held_out(self) -> str | None:
        return self.dev if is_count(self.dev) else None

    def _files(self) -> Iterator[tuple[str, str]]:
        dev = () if self.dev is None or self.held_out else (self.dev,)
        parts = {"train": self.train, "dev": dev, "test": (self.test,) if self.test else ()}
        for role, paths in parts.items():
            yield from ((role, path) for path in paths)
            beside = kind(self.task).companions
            if beside is not None and f"{role}_ref" not in self.options:
                yield from ((f"{role}_ref", beside(path)) for path in paths)
        for name in self._named(file=True):
            if not self._is_word(name):
                yield from ((name, path) for path in _listed(self.options.get(name)))

    def _is_word(self, name: str) -> bool:
        """Whether an option that may name a file has one of its words that name none."""
        known = kind(self.task).options
        return name in known and self.options.get(name) in known[name].about.words

    def _named(self, **wanted: bool) -> list[str]:
        """The task's options that name files, or places."""
        return [
            name
            for name, each in kind(self.task).options.items()
            if all(getattr(each.about, key) == value for key, value in wanted.items())
        ]

    def missing(self) -> list[str]:
        named = [*(path for _, path in self._files()), *self.bounds.values()]
        return [path for path in named if not os.path.exists(path)]


def on_data(plan: Experiment, folder: str | os.PathLike[str] | None) -> Experiment:
    """The plan on the data that ``folder`` has: that which comes first, where it is there. None: generated data."""
    other = plan.data.instead
    if other is not None and folder is not None and not _placed(plan.with_data(other), Path(folder)).missing():
        return plan.with_data(other)
    return plan.with_data(plan.data)


def in_folder(plan: Experiment, folder: str | os.PathLike[str]) -> Source:
    """The plan's files under ``folder``; says what to do where one is not there."""
    source = _placed(plan, Path(folder))
    if missing := source.missing():
        raise UsageError(
            f"{plan.name} needs {missing[0]}, which is not there; name the folder that has the data with `data` DIR or "
            "SPARSEZO_DATA ('sparsezo data list' says how to get it), or use `data` generated"
        )
    return source


def present(plan: Experiment, folder: str | os.PathLike[str]) -> bool:
    """Whether all the plan's files are under ``folder``."""
    return not _placed(on_data(plan, folder), Path(folder)).missing()


def generated(plan: Experiment, folder: Path) -> Source:
    """The plan's files under ``folder``, written there by our own generators if they are not there yet."""
    source = _placed(plan, folder)
    if source.missing():
        _refuse_outside(source, folder)
        for path in map(Path, source.train):
            path.parent.mkdir(parents=True, exist_ok=True)
        _refuse_files(source)
        kind(plan.task).make().write_source(source)
    return source


def _placed(plan: Experiment, folder: Path) -> Source:
    data = plan.data

    def place(path: str) -> str:
        return str(folder / path)

    known = kind(plan.task).options
    options: dict[str, Any] = {
        name: ([place(v) for v in value] if isinstance(value, list) else place(value))
        if name in known and known[name].about.file and value not in known[name].about.words
        else value
        for name, value in data.options.items()
    }
    if plan.init is not None:
        options["init"] = place(plan.init)
    return Source(
        task=plan.task,
        train=tuple(map(place, data.train)),
        dev=data.dev if data.dev is None or is_number(data.dev) else place(data.dev),
        test=place(data.test) if data.test else None,
        options=options,
        bounds={name: place(path) for name, path in plan.bounds.items()},
    )


def _refuse_outside(source: Source, folder: Path) -> None:
    """What is generated stands in the folder of results and nowhere else."""
    inside = os.path.realpath(folder)
    for path in (*(path for _, path in source._files()), *source.bounds.values()):
        if not Path(os.path.realpath(path)).is_relative_to(inside):
            raise UsageError(f"{path} is outside of {folder}, where data is generated; use `data` DIR, or another path")


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


def _refuse_files(source: Source) -> None:
    """Weights to start from can be generated; other files that options name cannot."""
    known = kind(source.task).options
    for name, value in source.options.items():
        if name in known and known[name].about.file and name != "init" and value not in known[name].about.words:
            raise UsageError(f"{name} names a file, and there is no generator for it; use `data` DIR")
