"""A kind of task, as the rest of the package sees it: its words, its options, and where its parts are.

Light to import, so that --help knows the options of every task: the parts are modules, named here and imported when
they are used.

    files    load(files), read(task, path, options), predict(model, path, options), from_arrays(settings, arrays)
    making   generated data: ``Making``; None where there is no generator
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from importlib import resources
from pathlib import Path
from types import ModuleType
from typing import IO, Any, Protocol

from sparsezo.errors import UsageError
from sparsezo.options import Described, described

Grid = tuple[tuple[float, ...], tuple[float, ...]]  # values of h, values of mu


class Making(Protocol):
    """What a module that makes data has."""

    ENDING: str  # of a file
    SIZE: int  # inputs, unless told otherwise
    FORMATS: tuple[str, ...]  # the first is the default; empty where there is but one

    def paths(self, target: Path, weights: Path) -> list[Path]:
        """All files that are written for ``target``; ``weights`` is how the names of weights begin."""

    def write(self, target: Path, weights: Path, n: int, seed: int, format: str | None) -> None: ...

    def write_source(self, source: Any) -> None:
        """The files that an experiment names."""


@dataclass(frozen=True)
class TaskKind:
    name: str
    title: str  # of a report
    inputs: str  # what its inputs are called: sentences
    metric: str  # in results, higher is better
    metric_name: str  # for people
    loss_name: str
    files: str  # the module that reads and writes
    train_options: type  # of train and tune
    read_options: type  # of evaluate
    predict_options: type
    defaults: Callable[[str, str, str | None], tuple[float, float]]  # (rule, step, perturb) -> (h, mu)
    usual_step: str = "constant"  # where nothing else is said
    constant_steps: tuple[str, ...] = ("all",)  # perturbations that go with constant steps all the same
    serve_defaults: Mapping[str, Any] = field(default_factory=dict)  # of its options, where people answer
    asks: tuple[str, ...] = ()  # rules that learn from answers which it offers, as its problems do
    making: str | None = None
    streaming: str | None = None  # the module that reads files larger than memory; None: there is none
    reading_extra: str | None = None  # of extras.EXTRAS: without it no data can be read
    metric_extra: str | None = None  # ... no output be valued
    grid: Grid | None = None  # where tune looks; None: where the task's experiment does
    adagrad_grid: Grid | None = None  # likewise, with Adagrad's steps
    several_files: bool = False  # --train may be given more than once
    hold_out: bool = True  # --dev N
    experiments: Mapping[str, str] = field(default_factory=dict)  # built in: name -> TOML file beside this module
    paper: str | None = None  # the experiment that is the paper's own
    home: str | None = None  # the package with those files
    companions: Callable[[str], str] | None = None  # a data file -> a file that is read beside it by default
    beats_first_order: str | None = None  # what the paper says of zeroth-order against SFO, where it says it wins
    speed_against_first_order: bool = False  # the paper compares with SFO in speed, not on test
    close_to_first_order: bool = False  # the paper has its two-point SPARSE near SFO
    margin: float = 0.01  # of metric and loss: learners that differ by less are as good as each other
    zero_one_loss: bool = False  # an output is right or wrong, so preference is two-point in law

    @property
    def usual(self) -> tuple[Callable[[str, str, str | None], tuple[float, float]], str, tuple[str, ...]]:
        """What ``Settings.complete`` makes a learner's settings of, beside those that were given."""
        return self.defaults, self.usual_step, self.constant_steps

    @property
    def extras(self) -> tuple[str | None, str | None]:
        """What all of the work with the task may need."""
        return self.reading_extra, self.metric_extra

    def load(self, files: Any) -> Any:
        return self._files().load(files)

    def stream(self, files: Any, window: int) -> Any:
        """A ``Streamed``: train in windows of so many inputs."""
        if self.streaming is None:
            raise UsageError(f"task {self.name} has no `stream`; leave it out")
        return importlib.import_module(self.streaming).load_stream(files, window)

    def read(self, task: Any, path: str, options: Mapping[str, Any]) -> Any:
        return self._files().read(task, path, options)

    def predict(self, model: Any, path: str, options: Mapping[str, Any]) -> Iterator[str]:
        lines: Iterator[str] = self._files().predict(model, path, options)
        return lines

    def predict_spans(self, model: Any, path: str, options: Mapping[str, Any], target: Path | IO[bytes]) -> bool:
        """Write texts with spans, where these are what the options ask for; False: ``predict`` gives lines."""
        files = self._files()
        return hasattr(files, "predict_spans") and bool(files.predict_spans(model, path, options, target))

    def from_arrays(self, settings: Mapping[str, Any], arrays: Mapping[str, Any]) -> Any:
        return self._files().from_arrays(settings, arrays)

    def shown(self, task: Any, data: Any, question: Any) -> dict[str, Any]:
        """What a person is shown of a ``Question`` or a ``Proposal`` about one of data's inputs, in words."""
        if not self.asks:
            raise UsageError(f"task {self.name} asks no questions")
        shown: dict[str, Any] = importlib.import_module(f"{self.home}.show").shown(task, data, question)
        return shown

    def _files(self) -> ModuleType:
        return importlib.import_module(self.files)

    def make(self) -> Making:
        """The module that generates data."""
        if self.making is None:
            raise UsageError(f"task {self.name} has no generator; give files")
        module: Any = importlib.import_module(self.making)
        return module  # type: ignore[no-any-return]

    def experiment_text(self, name: str) -> str:
        """The TOML of a built-in experiment."""
        return resources.files(str(self.home)).joinpath(self.experiments[name]).read_text("utf-8")

    @property
    def options(self) -> dict[str, Described]:
        """Of train and tune, by name."""
        return described(self.train_options)

    def __reduce__(self) -> tuple[Any, ...]:
        """In another process a kind that was registered here is registered there, too."""
        return _arrived, (tuple(getattr(self, each.name) for each in fields(self)),)


def _arrived(values: tuple[Any, ...]) -> TaskKind:
    from sparsezo.tasks.registry import register

    return register(TaskKind(*values))
