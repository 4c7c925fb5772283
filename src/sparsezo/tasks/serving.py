"""What a session in which people answer asks of a task: ``SERVING`` of its serving module, a ``TaskServing``.

    serving = task_spec("chunking").serving()
    serving.prompt(data, 3)                         # an input in words
    serving.annotated(task, data, outputs, answers) # the corpus so far

A task has to say what its inputs are as arrays, what people are shown of them, what an audit asks about, and how the
corpus so far is written. All else has a default, which says that the task has nothing of the kind.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import UsageError
from sparsezo.questions import Question
from sparsezo.storage.container import damage, read_container, write_container
from sparsezo.storage.fingerprint import known_by
from sparsezo.tasks.base import Arrays, Json, Problem

if TYPE_CHECKING:
    from sparsezo.questions import Proposal
    from sparsezo.tasks.chunking.io.documents import Document
    from sparsezo.tasks.chunking.reviewing import Reviewing

ANSWERED, GUESS = "answered", "guess"  # what stands beside a label of the corpus so far
FILE = "inputs.szo"  # in a session's folder

TaskT = TypeVar("TaskT")
DataT = TypeVar("DataT")
Part = tuple[int, list[int], list[list[int]]]  # an input's number, a question's numbers, its outputs
Answer = tuple[Question, str, Any]  # with the kind that it is an answer of, and what was answered


class TaskServing(ABC, Generic[TaskT, DataT]):
    """A task's part of a session: its inputs beside the log, what people are shown, and what their answers make."""

    KIND: ClassVar[str]  # of the file with the inputs
    AUDIT: ClassVar[str] = "label"  # the kind of question that an audit asks
    ENDING: ClassVar[str] = "tsv"  # of the corpus so far
    REFITTED: ClassVar[tuple[str, ...]] = ()  # options that make other features of the same inputs

    # Inputs, kept in the session's folder

    def to_arrays(self, data: DataT) -> tuple[Json, Arrays]:
        """(what goes into JSON, arrays) of the inputs, without anybody's labels; or ``keep`` and the two after it."""
        raise NotImplementedError

    def from_arrays(self, meta: Json, arrays: Arrays) -> DataT:
        """The inputs again, from what ``to_arrays`` gave."""
        raise NotImplementedError

    def keep(self, folder: Path, data: DataT) -> str:
        """Write the inputs into a session's folder; returns their ``identity``."""
        meta, arrays = self.to_arrays(data)
        write_container(folder / FILE, self.KIND, meta, arrays)
        return known_by(arrays)

    def identity(self, data: DataT) -> str:
        """What the same inputs are known by."""
        return known_by(self.to_arrays(data)[1])

    def kept(self, folder: Path, task: TaskT) -> DataT:
        """The inputs that ``keep`` wrote; what does not fit together within is damage to the file."""
        meta, arrays = read_container(folder / FILE, self.KIND)
        with damage(folder / FILE):
            return self.from_arrays(meta, arrays)

    # What people see

    @abstractmethod
    def shown(self, task: TaskT, data: DataT, question: Question | Proposal) -> Json:
        """What a page shows of a question, with the question itself in words (``question``); goes into JSON."""

    @abstractmethod
    def prompt(self, data: DataT, x: int) -> str:
        """An input in words, on one line."""

    @abstractmethod
    def output_text(self, task: TaskT, data: DataT, x: int, output: NDArray[np.int32]) -> str:
        """An output of input ``x`` in words, on one line."""

    def around(self, task: TaskT, output: NDArray[np.int32]) -> Json:
        """What the model makes of the rest of an input, to be shown beside a part that is asked about."""
        return {}

    def in_text(self, data: DataT, question: Question) -> Json:
        """What a question is about, in the words of the input."""
        return {}

    def choice_words(self, task: TaskT, choices: Sequence[str]) -> dict[str, str]:
        """What people call each of the answers that can be chosen."""
        return {name: name for name in choices}

    # Whole outputs that people review

    def reviewing(self, task: TaskT, problem: Problem) -> Reviewing:
        """Outputs as spans and back, and what a model suggests around what is fixed; where rule review is offered."""
        raise NotImplementedError(f"{type(self).__name__} has nothing to review")

    # What is asked

    def usual_rule(self, task: TaskT) -> str | None:
        """The rule of a session that names none; None: the first that the task offers."""
        return None

    def sensible(self, data: DataT, question: Question) -> bool:
        """Whether people should be bothered with a question."""
        return True

    def suggested(self, task: TaskT, data: DataT) -> list[tuple[int, list[int]]]:
        """(input, a question's numbers) of what the inputs came with: what is asked about first."""
        return []

    @abstractmethod
    def audit_parts(self, task: TaskT, data: DataT, n: int, chance: random.Random) -> list[Part]:
        """What an audit asks about: up to ``n`` parts, drawn with equal chances, none twice."""

    def has_chunks(self, task: TaskT) -> bool:
        """Whether outputs have chunks, which are counted in inputs that are audited whole."""
        return False

    def chunks_in(self, tags: Sequence[str]) -> list[tuple[int, int, str]]:
        """(first, last + 1, type) of the chunks that the labels of one input make."""
        return []

    def parts_of(self, data: DataT, inputs: Sequence[int]) -> list[Part]:
        """All parts of the inputs, as ``audit_parts`` has them."""
        return []

    def label_in(self, task: TaskT, question: Question, output: NDArray[np.int32]) -> str:
        """What an output says of the part in question, as people name it; where an audit asks for labels."""
        raise NotImplementedError(f"{type(self).__name__} has no labels to audit")

    # What answers make

    @abstractmethod
    def annotated(
        self, task: TaskT, data: DataT, outputs: NDArray[np.int32], answers: Sequence[Answer]
    ) -> Iterator[str]:
        """The corpus so far, as lines: what answers say, and the model's outputs elsewhere."""

    def annotated_documents(
        self,
        task: TaskT,
        data: DataT,
        outputs: NDArray[np.int32],
        chances: NDArray[np.float32],
        answers: Sequence[Answer],
        *,
        apart: bool = False,
    ) -> Iterator[Document]:
        """The corpus so far as texts with spans; ``apart``: the model's own are ``suggested``."""
        raise NotImplementedError(f"{type(self).__name__} has no spans")

    # Answers that are learned from again, in this task or in another of the same labels

    def options_of(self, task: TaskT) -> Json:
        """Options that make a task of the same labels from inputs without any."""
        return {}

    def kept_options(self, task: TaskT) -> Json:
        """Options of train as the task has them, also where they were chosen by default."""
        return {}

    def answer_labels(self, task: TaskT) -> tuple[str, ...]:
        """What the numbers of labels in questions stand for."""
        return ()

    def words_of(self, data: DataT, x: int) -> str | tuple[str, ...] | None:
        """What an input is found again by in other data; None: it cannot be."""
        return None

    def columns_of(self, data: DataT, x: int) -> object:
        """The input itself, for a line of JSON with an answer about it; None: it is not written there."""
        return None

    def from_columns(self, inputs: Sequence[tuple[str, object]], made: Json, path: str) -> DataT:
        """Inputs of (where, what ``columns_of`` gave); DataError where it did not."""
        raise UsageError(f"`from_answers` {path}: such answers are learned from the session's folder alone")

    def about_task(self, task: TaskT) -> Json:
        """What a task is made of beside its features; goes into JSON."""
        return {}

    def labels_option(self, made: Json) -> Json:
        """The options that name the same labels where other inputs are read; ``made``: by ``about_task``."""
        return {}

    def fitted(self, made: Json, data: DataT, options: Mapping[str, object]) -> tuple[TaskT, DataT]:
        """The task that ``about_task`` tells, with features as the options (of REFITTED) say."""
        raise NotImplementedError(f"{type(self).__name__} has no features to make anew")
