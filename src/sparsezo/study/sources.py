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

from sparsezo.errors import DataError, UsageError
from sparsezo.options import Values, names_function
from sparsezo.storage.fingerprint import fingerprint
from sparsezo.study.plan import Experiment
from sparsezo.tasks.base import Json
from sparsezo.tasks.loading import is_count, is_number
from sparsezo.tasks.registry import task_spec


@dataclass(frozen=True)
class Source:
    """Files as they are on this machine; ``dev`` may be a number of inputs to hold out."""

    task: str
    train: tuple[str, ...]
    dev: str | None = None
    test: str | None = None
    options: Values = field(default_factory=dict)
    bounds: Mapping[str, str] = field(default_factory=dict)

    @property
    def identity(self) -> str:
        """A hash of the files' content and of the options that say how they are read."""
        about = {name: each.about for name, each in task_spec(self.task).options.items()}
        places = [name for name in about if about[name].file or about[name].place]
        files = _file_options(self.task, self.options)
        plain = {
            k: v
            for k, v in self.options.items()
            if k not in places or (about[k].file and k not in files and v is not None)
        }
        parts = [[role, _content(Path(path))] for role, path in self._files()]
        known_by = {"task": self.task, "parts": parts, "options": plain, "dev": self.held_out}
        return fingerprint(json.dumps(known_by, sort_keys=True))

    @property
    def held_out(self) -> str | None:
        return self.dev if is_count(self.dev) else None

    def _files(self) -> Iterator[tuple[str, str]]:
        """(role, path) of each file that is read."""
        dev = () if self.dev is None or self.held_out else (self.dev,)
        beside = task_spec(self.task).companions
        for role, paths in {"train": self.train, "dev": dev, "test": (self.test,) if self.test else ()}.items():
            yield from ((role, path) for path in paths)
            if beside is not None and f"{role}_ref" not in self.options:
                yield from ((f"{role}_ref", beside(path)) for path in paths)
        for name, value in _file_options(self.task, self.options).items():
            yield from ((name, path) for path in ([value] if isinstance(value, str) else value))

    def named(self) -> list[str]:
        """All paths, of what is read and of the bounds."""
        return [*(path for _, path in self._files()), *self.bounds.values()]

    def missing(self) -> list[str]:
        return [path for path in self.named() if not os.path.exists(path)]


def _file_options(task: str, options: Values) -> Json:
    """Of the options that were given those that name files, not those with a word, or a function, that names none."""
    known = task_spec(task).options
    given = {name: (each.about, options[name]) for name, each in known.items() if options.get(name) is not None}
    return {
        name: value
        for name, (about, value) in given.items()
        if about.file and value not in about.words and not (isinstance(value, str) and names_function(value))
    }


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
    if not source.missing():
        return source
    inside = os.path.realpath(folder)  # what is generated stands in the folder of results and nowhere else
    for path in source.named():
        if not Path(os.path.realpath(path)).is_relative_to(inside):
            raise UsageError(f"{path} is outside of {folder}, where data is generated; use `data` DIR, or another path")
    for path in source.train:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
    for name in _file_options(plan.task, source.options):
        if name != "init":  # weights to start from can be generated
            raise UsageError(f"{name} names a file, and there is no generator for it; use `data` DIR")
    task_spec(plan.task).synthetic().write_source(source)
    return source


def _placed(plan: Experiment, folder: Path) -> Source:
    data = plan.data

    def place(path: str) -> str:
        return str(folder / path)

    options = dict(data.options)
    for name, value in _file_options(plan.task, options).items():
        options[name] = [*map(place, value)] if isinstance(value, list) else place(value)
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


def _content(path: Path) -> str:
    """Of a file, or of all files in a folder."""
    digests = []
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    for file in files:
        try:
            with open(file, "rb") as stream:
                digests.append(hashlib.file_digest(stream, "blake2b").digest())
        except FileNotFoundError:
            raise DataError(str(file), "no such file; check the path") from None
        except OSError as error:
            raise DataError(str(file), f"cannot be read ({error.strerror or error})") from None
    return fingerprint(b"".join(digests))
