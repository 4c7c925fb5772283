"""``own_task``: a task in the registry from three functions, two of them compiled (docs/tasks.md).

SPEC = own_task("clicks", read, decode, loss, metric="clicks on top")
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, NoReturn

from sparsezo.errors import DataError, SparsezoError, UsageError, shown
from sparsezo.storage.files import numbered_lines
from sparsezo.tasks.loading import Data, Files, Loaded, cut
from sparsezo.tasks.spec import TaskSpec

if TYPE_CHECKING:
    from sparsezo.model import Model
    from sparsezo.tasks.base import Arrays, Json, Task
    from sparsezo.tasks.streams import Streamed


@dataclass(frozen=True)
class Input:
    """An input: a row of features for each position, candidate or document, and what is known of the right output."""

    rows: Sequence[Mapping[str, float]]  # features by name, each with its value
    gold: Sequence[float] | None = None  # what ``loss`` is told; None where nobody knows
    about: object = None  # whatever ``write`` shows of it


Read = Callable[[Iterator[str]], Iterable[Input]]
Write = Callable[[Input, list[int]], str]


def as_json_line(given: Input, output: list[int]) -> str:
    """An output where nobody has said how to write it."""
    return json.dumps({"output": output})


@dataclass(frozen=True)
class OwnFiles:
    """Reads and writes the files of somebody's own task (``TaskIO``), and knows its functions."""

    name: str
    reader: Read
    decode: Callable[..., object]
    loss: Callable[..., float]
    writer: Write
    labels: tuple[str, ...]
    outputs: int | None
    metric: str

    def inputs(self, path: str) -> list[Input]:
        """All inputs of a file; what goes wrong in ``reader`` is told with the line it was at."""
        at = 0

        def lines() -> Iterator[str]:
            nonlocal at
            for number, line in numbered_lines(path):
                at = number
                yield line

        try:
            found = list(self.reader(lines()))
        except (SparsezoError, OSError):
            raise
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(place.filename).name}:{place.lineno}"
            raise DataError(f"{path}:{at}", f"{type(error).__name__}: {error} ({where})") from None
        if not found:
            raise DataError(path, "has no inputs")
        for each in found:
            if not isinstance(each, Input) or not len(each.rows):
                raise DataError(path, f"task {self.name} reads {shown(each, repr)}; give Inputs with at least one row")
        return found

    def load(self, files: Files) -> Loaded:
        from sparsezo.tasks.own.task import OwnTask

        path, held_out = files.one_train(self.name), files.held_out()
        train = self.inputs(path)
        dev = self.inputs(files.dev) if files.dev is not None and held_out is None else None
        if held_out is not None:
            cut(held_out, len(train), "inputs", path)
            dev, train = train[:held_out], train[held_out:]
        test = self.inputs(files.test) if files.test is not None else None
        return Loaded(OwnTask.fit(self, train), Data(train, dev, test))

    def read(self, task: Task, path: str, options: Mapping[str, object]) -> list[Input]:
        return self.inputs(path)

    def predict(self, model: Model, path: str, options: Mapping[str, object]) -> Iterator[str]:
        """A line for each input, by ``writer``."""
        found = self.inputs(path)
        outputs, start = model.predict(found), model.task.problem(found, learn=False).output_start
        for x, each in enumerate(found):
            yield self.writer(each, outputs[start[x] : start[x + 1]].tolist()) + "\n"

    def from_arrays(self, settings: Json, arrays: Arrays) -> Task:
        from sparsezo.tasks.own.task import OwnTask

        return OwnTask.from_arrays(self, settings, arrays)

    def load_stream(self, files: Files, window: int) -> Streamed:
        return self._not_offered("`stream`")

    def predict_spans(self, model: Model, path: str, options: Mapping[str, object], target: Path | IO[bytes]) -> bool:
        return self._not_offered("spans")

    def _not_offered(self, what: str) -> NoReturn:
        raise UsageError(f"task {self.name} has no {what}")


@dataclass(frozen=True)
class NoOptions:
    """A task of three functions has no options of its own."""


def _usual(h: float, mu: float, rule: str, step: str, perturb: str | None) -> tuple[float, float]:
    return h, mu


def own_task(
    name: str,
    read: Read,
    decode: Callable[..., object],
    loss: Callable[..., float],
    *,
    labels: Sequence[str] = ("score",),
    outputs: int | None = None,
    write: Write = as_json_line,
    metric: str = "reward",
    title: str | None = None,
    h: float = 0.1,
    mu: float = 1.0,
) -> TaskSpec:
    """A task for the commands, models and reports, as an entry point of the group ``sparsezo.tasks`` names it.

    ``read(lines)`` gives an ``Input`` for each input of a file's lines. ``decode(S, y)`` fills y, whole numbers, with
    the best output for the scores S (rows x labels); ``loss(gold, y)`` is its loss, from 0 to 1, by what the input's
    gold says. These two are compiled. y has ``outputs`` numbers, or one a row. ``write(input, output)`` gives a line
    of predict. The metric is 1 - the mean loss. ``h``, ``mu``: those of Adagrad's steps where none are given.
    """
    for what, function in (("read", read), ("decode", decode), ("loss", loss), ("write", write)):
        if not callable(function):
            raise UsageError(f"task {name}: {what} is a {type(function).__name__}; give a function")
    if not labels or (outputs is not None and outputs < 1):
        raise UsageError(f"task {name}: give one label or more, and outputs of one number or more")
    files = OwnFiles(name, read, decode, loss, write, tuple(labels), outputs, metric)
    return TaskSpec(
        name=name,
        title=title or name,
        inputs="inputs",
        metric=metric,
        metric_name=metric,
        loss_name="loss",
        io_module=files,
        train_options=NoOptions,
        read_options=NoOptions,
        predict_options=NoOptions,
        defaults=partial(_usual, h, mu),
        usual_step="adagrad",
        grid=((1.0, 0.1, 0.01, 0.001), (1.0,)),
        adagrad_grid=((1.0, 0.3, 0.1, 0.03), (1.0, 0.3)),
    )
