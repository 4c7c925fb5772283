"""A trained model in a file: weights, features, settings and how it came to be.

Model(task, W, settings, result).save("model.szo")
model = load_model("model.szo", "chunking")         # refuses a damaged file, or a model of another task
tags = model.task.words(model.predict(corpus))
spans = model.tag("In Madrid.")                     # of a tagger that was trained on raw text
dataset.map(Tagger("model.szo"), batched=True)      # batches of texts, in any number of processes
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from sparsezo import validation
from sparsezo.errors import DataError, DivergedError, UsageError
from sparsezo.learner import predict
from sparsezo.storage.container import Contents, damage, pack, read_container, unpack, write_container
from sparsezo.storage.files import STANDARD_INPUT, open_bytes, reading
from sparsezo.tasks.base import Json, Task
from sparsezo.tasks.encoders import Encode
from sparsezo.tasks.registry import names, task_spec
from sparsezo.validation import Array

if TYPE_CHECKING:
    from sparsezo.tasks.chunking.io.documents import Span

_TASK, _CURVE = "task.", "curve."  # how the names of such arrays begin in the file


@dataclass(frozen=True, eq=False)
class Model:
    """A trained model: ``predict(data)`` gives outputs, ``tag(texts)`` spans of raw text, ``save(path)`` a file."""

    task: Task
    W: Array  # features x labels
    settings: Json  # of the learner
    result: Json  # what train reported
    curve: dict[str, Array] = field(default_factory=dict)  # iterations, average_loss, dev

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file; nothing is written where its weights are not finite."""
        write_container(path, "model", *self._contents(str(path)))

    def to_bytes(self) -> bytes:
        """What ``save`` writes, for whoever keeps it elsewhere; ``load_model`` takes it, too."""
        return pack("model", *self._contents("the model"))

    def _contents(self, where: str) -> Contents:
        if not validation.all_finite(self.W):
            raise DivergedError(
                f"{where}: the weights are not finite, so nothing was written; train with a smaller `h`"
            )
        task_settings, task_arrays = self.task.to_arrays()
        own = {"task": self.task.name, "task_settings": task_settings}
        meta = {**own, "settings": self.settings, "result": self.result}
        arrays = {"W": self.W, **{_CURVE + name: values for name, values in self.curve.items()}}
        arrays |= {_TASK + name: values for name, values in task_arrays.items()}
        return meta, arrays

    def predict(self, data: object) -> NDArray[np.int32]:
        """The best output of every input of data."""
        return predict(self.task.problem(data, learn=False), self.W)

    def tag(self, texts: str | Iterable[str], threshold: float = 0.0, fixed: Iterable[Any] | None = None) -> Any:
        """The spans of a text, a tuple; or of each text of many, an iterator of tuples that reads as it goes.

        A span has start and end (characters of its text, end exclusive), label and probability; those less likely than
        ``threshold`` are left out. ``fixed``: spans that somebody has set (of many texts, those of each). They stay,
        and the rest is decoded anew around them, so that a correction mends its neighbours. A span with the label O
        says that nothing is there.

            model.tag("In San Sebastian.", fixed=[(3, 16, "LOC")])
            for text, spans in zip(texts, model.tag(texts)):
                for span in spans:
                    print(text[span.start:span.end], span.label, span.probability)
        """
        tagged: Callable[..., Iterator[tuple[Span, ...]]] | None = getattr(self.task, "tag", None)
        if tagged is None:
            raise UsageError(f"task {self.task.name} has no spans to tag texts with; use predict(data)")
        if isinstance(texts, str):
            return next(tagged(self.W, [texts], threshold, None if fixed is None else [fixed]))
        return tagged(self.W, texts, threshold, fixed)

    def tagger(self, threshold: float = 0.0, column: str = "text") -> Tagger:
        """This model as a function of batches that can be sent to other processes: a ``Tagger`` that carries it."""
        return Tagger(self, threshold, column)


def load_model(
    path: str | os.PathLike[str] | bytes, task: str | None = None, *, vectors: Encode | None = None
) -> Model:
    """The model in a file, on standard input (``-``), or in the bytes that ``Model.to_bytes`` gave; DataError where it
    is of another task than ``task``, and DamagedError where it is not as it was written.

    ``vectors``: the encoder that it was trained with, where that has no name by which it is found (a lambda).
    """
    meta, arrays = _contents(path)
    path = "the model" if isinstance(path, bytes) else path
    name = meta.get("task")
    if task is not None and name != task:
        raise DataError(str(path), f"is a model of task {name}, not of {task}")
    if name not in names():
        raise UsageError(f"{path}: is a model of task {name}; this sparsezo knows {', '.join(names())}")
    with damage(path):
        for part in ("task_settings", "settings", "result"):
            if not isinstance(meta[part], dict):
                raise ValueError(f"{part} is no table")
        own, curve = (
            {key.removeprefix(begin): values for key, values in arrays.items() if key.startswith(begin)}
            for begin in (_TASK, _CURVE)
        )
        loaded = task_spec(str(name)).from_arrays(meta["task_settings"], own)
        W = arrays["W"]
        if W.dtype.kind != "f":
            raise ValueError(f"weights of type {W.dtype}")
        if W.shape != (loaded.n_features, loaded.n_labels):
            raise ValueError(f"weights of shape {W.shape} for {loaded.n_features} features, {loaded.n_labels} labels")
        if not validation.all_finite(W):
            raise ValueError("weights that are not finite")
        for key, values in curve.items():
            validation.array(f"curve.{key}", values, "iuf", (None,))
    if vectors is not None:
        loaded = _with_vectors(loaded, vectors)
    return Model(loaded, W, meta["settings"], meta["result"], curve)


def _with_vectors(task: Task, function: Encode) -> Task:
    given: Callable[[Encode], Task] | None = getattr(task, "with_vectors", None)
    if given is None:
        raise UsageError(f"`vectors`: task {task.name} has none; leave them out")
    return given(function)


def _contents(path: str | os.PathLike[str] | bytes) -> Contents:
    if isinstance(path, bytes):
        return unpack(path, "model", "the model")
    if os.fspath(path) != STANDARD_INPUT:
        return read_container(path, "model")
    with open_bytes(path) as stream, reading(path):
        return unpack(stream.read(), "model", STANDARD_INPUT)


class Frame(Protocol):
    """A pandas DataFrame, as far as a ``Tagger`` looks at it."""

    def __getitem__(self, column: str) -> Iterable[str]: ...

    def assign(self, **columns: object) -> Self: ...


Batch = TypeVar("Batch", bound=Frame | Mapping[str, Any])


class Tagger:
    """A model as a function of batches of texts, to be sent to other processes and machines.

        dataset.map(Tagger("model.szo"), batched=True)                      # Hugging Face's datasets
        ray.data.read_text("news/").map_batches(load_model("model.szo").tagger())
        frame.mapInPandas(Tagger("model.szo").frames, schema)               # Spark
        pool.map(Tagger("model.szo"), batches)

    A batch is a dict of columns or a pandas DataFrame, one column of it the texts. It comes back with a column more:
    of a model of spans ``spans``, for each text a list of {"start", "end", "label", "probability"} as ``Model.tag``
    gives them; of a classifier ``label``. ``threshold``: spans that are less likely are left out.

    It is pickled as the path of its model (the bytes of the model, where it was made of a ``Model``), and each process
    loads that once, with its first batch.
    """

    def __init__(self, model: Model | str | os.PathLike[str], threshold: float = 0.0, column: str = "text") -> None:
        self.source = model.to_bytes() if isinstance(model, Model) else os.path.abspath(model)
        self.threshold, self.column = threshold, column

    @property
    def model(self) -> Model:
        """The model, loaded when it is first asked for."""
        return _loaded(self.source, 0 if isinstance(self.source, bytes) else os.stat(self.source).st_mtime_ns)

    def __call__(self, batch: Batch) -> Batch:
        """The batch with the column ``spans`` or ``label``."""
        texts = list(batch[self.column])
        for text in texts:
            if not isinstance(text, str):
                raise UsageError(f"column {self.column}: a value of type {type(text).__name__}, where texts are meant")
        model = self.model
        if hasattr(model.task, "tag"):
            found = [[asdict(span) for span in spans] for spans in model.tag(texts, self.threshold)]
            return _with_column(batch, "spans", found)
        if hasattr(model.task, "label"):
            return _with_column(batch, "label", model.task.label(model.W, texts))
        raise UsageError(f"task {model.task.name} is not offered for batches of texts; use predict(data)")

    def frames(self, frames: Iterable[Frame]) -> Iterator[Frame]:
        """Frames in, the same frames with the new column out, one by one: what Spark's ``mapInPandas`` calls."""
        return map(self, frames)


def _with_column(batch: Batch, name: str, values: Sequence[object]) -> Batch:
    more: object = {**batch, name: values} if isinstance(batch, Mapping) else batch.assign(**{name: values})
    return cast(Batch, more)


@functools.lru_cache(maxsize=1)
def _loaded(source: str | bytes, written: int) -> Model:
    """``written``: when, so that a file that is replaced is loaded anew."""
    return load_model(source)
