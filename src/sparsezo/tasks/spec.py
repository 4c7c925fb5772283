"""What the rest of the package knows of a task: its words, its options, and the modules with its parts.

Light to import, so that --help knows the options of every task. A part is a module, named here in full and imported
when it is first used:

    io_module           reads and writes files: ``TaskIO``
    serving_module      what a session with people asks of the task: ``SERVING``, a ``TaskServing``
    log_module          reads logs of what was shown and what people said of it: ``TaskLogs``; None where it has none
    synthetic_module    makes data: ``Synthetic``; None where there is no generator
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import IO, TYPE_CHECKING, Protocol, cast

from sparsezo.errors import SparsezoError, UsageError
from sparsezo.options import Described, described

if TYPE_CHECKING:
    from sparsezo.model import Model
    from sparsezo.questions import Proposal, Question
    from sparsezo.settings import Defaults
    from sparsezo.tasks.base import Arrays, Json, Read, Task
    from sparsezo.tasks.loading import Files, Loaded
    from sparsezo.tasks.logs import TaskLogs
    from sparsezo.tasks.serving import TaskServing
    from sparsezo.tasks.streams import Streamed

Grid = tuple[tuple[float, ...], tuple[float, ...]]  # values of h, values of mu


class TaskIO(Protocol):
    """What the module that reads and writes a task's files has, as ``TaskSpec`` says of its methods of these names.

    Options are those that were given, by name. ``load_stream`` is needed only where ``TaskSpec.streams``,
    ``predict_spans`` only where ``TaskSpec.spans``.
    """

    def load(self, files: Files) -> Loaded: ...
    def read(self, task: Task, path: str, options: Mapping[str, object]) -> Read: ...
    def predict(self, model: Model, path: str, options: Mapping[str, object]) -> Iterator[str]: ...
    def from_arrays(self, settings: Json, arrays: Arrays) -> Task: ...
    def load_stream(self, files: Files, window: int) -> Streamed: ...
    def predict_spans(
        self, model: Model, path: str, options: Mapping[str, object], target: Path | IO[bytes]
    ) -> bool: ...


class ExperimentFiles(Protocol):
    """The files that an experiment names."""

    @property
    def train(self) -> tuple[str, ...]: ...
    @property
    def dev(self) -> str | None: ...
    @property
    def test(self) -> str | None: ...
    @property
    def held_out(self) -> str | None: ...
    @property
    def options(self) -> Mapping[str, object]: ...
    @property
    def bounds(self) -> Mapping[str, str]: ...


class Synthetic(Protocol):
    """What a module that makes data has."""

    ENDING: str  # of a file
    SIZE: int  # inputs, unless told otherwise
    FORMATS: tuple[str, ...]  # the first is the default; empty where there is but one

    def paths(self, target: Path, weights: Path) -> list[Path]:
        """All files that are written for ``target``; ``weights`` is how the names of weights begin."""

    def write(self, target: Path, weights: Path, n: int, seed: int, format: str | None) -> None:
        """Write ``n`` inputs that follow from the seed alone."""

    def write_source(self, source: ExperimentFiles) -> None:
        """Write the files that an experiment names."""


@dataclass(frozen=True)
class TaskSpec:
    name: str
    title: str  # of a report
    inputs: str  # what its inputs are called: sentences
    metric: str  # in results, higher is better
    metric_name: str  # for people
    loss_name: str
    io_module: str | TaskIO
    train_options: type  # of train and tune
    read_options: type  # of evaluate
    predict_options: type
    defaults: Defaults  # (rule, step, perturb) -> (h, mu)
    usual_step: str = "constant"  # where nothing else is said
    constant_steps: tuple[str, ...] = ("all",)  # perturbations that go with constant steps all the same
    serve_defaults: Mapping[str, str] = field(default_factory=dict)  # of its options, where people answer
    asks: tuple[str, ...] = ()  # rules that learn from answers which it offers, as its problems do
    serving_module: str | None = None  # where there are questions to ask
    log_module: str | None = None
    synthetic_module: str | None = None
    streams: bool = False  # its io reads files larger than memory
    spans: bool = False  # ... and writes texts with spans
    reading_extra: str | None = None  # of errors.EXTRAS: without it no data can be read
    metric_extra: str | None = None  # ... no output be valued
    grid: Grid | None = None  # where tune looks; None: where the paper's experiment on the task does
    adagrad_grid: Grid | None = None  # likewise, with Adagrad's steps
    several_files: bool = False  # --train may be given more than once
    hold_out: bool = True  # --dev N
    companions: Callable[[str], str] | None = None  # a data file -> a file that is read beside it by default

    @property
    def usual(self) -> tuple[Defaults, str, tuple[str, ...]]:
        """What ``Settings.complete`` makes a learner's settings of, beside those that were given."""
        return self.defaults, self.usual_step, self.constant_steps

    @property
    def extras(self) -> tuple[str | None, str | None]:
        """What all of the work with the task may need."""
        return self.reading_extra, self.metric_extra

    def io(self) -> TaskIO:
        """The module, or other object, that reads and writes its files."""
        found = self.io_module
        return cast("TaskIO", importlib.import_module(found)) if isinstance(found, str) else found

    def load(self, files: Files) -> Loaded:
        """The task and its data, of training files."""
        return self.io().load(files)

    def stream(self, files: Files, window: int) -> Streamed:
        """As ``load``, of files larger than memory: train in windows of so many inputs."""
        if not self.streams:
            raise UsageError(f"task {self.name} has no `stream`; leave it out")
        return self.io().load_stream(files, window)

    def read(self, task: Task, path: str, options: Mapping[str, object]) -> Read:
        """Data to evaluate a task on."""
        return self.io().read(task, path, options)

    def predict(self, model: Model, path: str, options: Mapping[str, object]) -> Iterator[str]:
        """A file's inputs with the model's outputs, as text."""
        return self.io().predict(model, path, options)

    def predict_spans(self, model: Model, path: str, options: Mapping[str, object], target: Path | IO[bytes]) -> bool:
        """Write texts with spans, where these are what the options ask for; False: ``predict`` gives lines."""
        return self.spans and self.io().predict_spans(model, path, options, target)

    def from_arrays(self, settings: Json, arrays: Arrays) -> Task:
        """A task from what its ``to_arrays`` gave."""
        return self.io().from_arrays(settings, arrays)

    def serving(self) -> TaskServing[Task, Read]:
        """The task's part of a session in which people answer."""
        if self.serving_module is None:
            raise SparsezoError(f"task {self.name} asks no questions, so there is nothing to serve")
        found: TaskServing[Task, Read] = importlib.import_module(self.serving_module).SERVING
        return found

    def shown(self, task: Task, data: Read, question: Question | Proposal) -> Json:
        """What a person is shown of a ``Question`` or a ``Proposal`` about one of data's inputs, in words."""
        if self.serving_module is None:
            raise UsageError(f"task {self.name} asks no questions")
        return self.serving().shown(task, data, question)

    def logs(self) -> TaskLogs:
        """The module that reads its logs."""
        if self.log_module is None:
            raise UsageError(f"task {self.name} has no `log`; leave it out")
        return cast("TaskLogs", importlib.import_module(self.log_module))

    def synthetic(self) -> Synthetic:
        """The module that makes data."""
        if self.synthetic_module is None:
            raise UsageError(f"task {self.name} has no generator; give files")
        return cast("Synthetic", importlib.import_module(self.synthetic_module))

    @property
    def options(self) -> dict[str, Described]:
        """Of train and tune, by name."""
        return described(self.train_options)

    def __reduce__(self) -> tuple[object, ...]:
        """In another process a kind that was registered here is registered there, too."""
        return _arrived, ({each.name: getattr(self, each.name) for each in fields(self)},)


def _arrived(values: Json) -> TaskSpec:
    from sparsezo.tasks.registry import register

    return register(TaskSpec(**values))
