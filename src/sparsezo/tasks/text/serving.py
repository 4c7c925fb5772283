"""What a session with people needs of text: documents kept beside the log, those to audit, the corpus so far."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import DataError, UsageError
from sparsezo.options import make_options
from sparsezo.questions import Question
from sparsezo.storage.texts import joined, parted
from sparsezo.tasks.keeping import identity_of, read_inputs, write_inputs
from sparsezo.tasks.text.documents import Documents
from sparsezo.tasks.text.options import TextOptions
from sparsezo.tasks.text.task import Prepared
from sparsezo.tasks.text.vectors import NONE, WithVectors
from sparsezo.tasks.text.word_vectors import WORDLLAMA

if TYPE_CHECKING:
    from sparsezo.tasks.text.task import TextClassification

AUDIT = "label"  # the kind of question that an audit asks
_KIND = "documents"
ANSWERED, GUESS = "answered", "guess"
ENDING = "tsv"  # of the corpus
REFITTED = ("raw_tf", "min_count", "hash_bits", "vectors")  # options of features


def to_arrays(data: Prepared) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The documents with their vectors, without their labels: nobody who answers is helped by these."""
    documents, matrix = data.documents, data.matrix
    arrays: dict[str, NDArray[Any]] = {
        "file_of": documents.file_of,
        "lines": documents.lines,
        "indptr": matrix.indptr,
        "indices": matrix.indices,
        "values": matrix.data,
    }
    if documents.texts is not None:
        arrays["texts"], arrays["texts_start"] = joined(documents.texts)
    return {"paths": list(documents.paths), "shape": list(matrix.shape), "tokenised": documents.tokenised}, arrays


def keep(folder: Path, data: Prepared) -> str:
    return write_inputs(folder, _KIND, to_arrays(data))


def identity(data: Prepared) -> str:
    return identity_of(to_arrays(data))


def kept(folder: Path, task: TextClassification) -> Prepared:
    from scipy.sparse import csr_array

    with read_inputs(folder, _KIND) as (meta, arrays):
        texts = parted(arrays["texts"], arrays["texts_start"]) if "texts" in arrays else None
        documents = Documents(
            tuple(meta["paths"]), arrays["file_of"], arrays["lines"], None, texts, tokenised=meta["tokenised"]
        )
        matrix = csr_array((arrays["values"], arrays["indices"], arrays["indptr"]), shape=tuple(meta["shape"]))
        return Prepared(documents, matrix)


def options_of(task: TextClassification) -> dict[str, Any]:
    """That make a task of the same classes from inputs without any."""
    options = {"classes": ",".join(task.classes)}
    if isinstance(task.vectoriser, WithVectors) and task.vectoriser.vectors.words.source.startswith(WORDLLAMA):
        options["vectors"] = WORDLLAMA
    return options


def kept_options(task: TextClassification) -> dict[str, Any]:
    """Options of train as the task has them, also where they were chosen by default."""
    return {"classes": ",".join(task.classes), "hash_bits": task.hash_bits}


# Answers that are learned from again (serve/answers.py)


def answer_labels(task: TextClassification) -> tuple[str, ...]:
    """What the numbers of labels in questions stand for."""
    return task.classes


def words_of(data: Prepared, x: int) -> str | None:
    """What a document is found again by in other data; None of vectors."""
    texts = data.documents.texts
    return None if texts is None else " ".join(texts[x].split())


def columns_of(data: Prepared, x: int) -> str | None:
    """The text as it is."""
    texts = data.documents.texts
    return None if texts is None else texts[x]


def from_columns(inputs: Sequence[tuple[str, Any]], made: Mapping[str, Any], path: str) -> Prepared:
    """Documents of (where, what ``columns_of`` gave), without vectors; DataError where there is no text."""
    for where, text in inputs:
        if not isinstance(text, str):
            raise DataError(where, "has no text (`columns`); give the session's folder instead")
    n = len(inputs)
    texts = [text for _, text in inputs]
    places = np.zeros(n, np.int32), np.arange(1, n + 1)
    return Prepared(Documents((path,), *places, None, texts, tokenised=bool(made.get("tokenised"))), None)


def about_task(task: TextClassification) -> dict[str, Any]:
    """What a task is made of beside its features; goes into JSON."""
    return {"classes": list(task.classes), "tokenised": task.vectoriser.kind == "tokens"}


def labels_option(made: Mapping[str, Any]) -> dict[str, Any]:
    """The option that names the same classes where other inputs are read."""
    return {"classes": ",".join(made["classes"])}


def fitted(made: Mapping[str, Any], data: Prepared, options: Mapping[str, Any]) -> tuple[TextClassification, Prepared]:
    """The task of documents that ``about_task`` tells, with features as the options (of REFITTED) say."""
    from sparsezo.tasks.text.task import TextClassification

    if data.documents.texts is None:
        raise UsageError(
            f"the session's documents are vectors, of which no other features are made; leave out {_flags(options)}"
        )
    classes = made.get("classes")
    if not isinstance(classes, list) or not all(isinstance(each, str) for each in classes):
        raise DataError(", ".join(data.documents.paths), "does not say what its classes are; export it again")
    chosen = make_options(TextOptions, options, "task text")
    how: dict[str, Any] = {"min_count": chosen.min_count, "hash_bits": chosen.hash_bits}
    vectors = chosen.vectors or NONE
    return TextClassification.fit(
        data.documents, classes=classes, sublinear_tf=not chosen.raw_tf, vectors=vectors, **how
    )


def _flags(options: Mapping[str, Any]) -> str:
    return ", ".join(f"`{name}`" for name in options)


def audit_parts(
    task: TextClassification, data: Prepared, n: int, chance: random.Random
) -> list[tuple[int, list[int], list[Any]]]:
    """Documents, all as likely, none twice: (its number, a question's numbers, no outputs)."""
    return [(x, [0, 0, 0, 0], []) for x in chance.sample(range(len(data)), min(n, len(data)))]


def label_in(task: TextClassification, question: Question, output: NDArray[np.int32]) -> str:
    return task.classes[int(output[0])]


def annotated(
    task: TextClassification, data: Prepared, outputs: NDArray[np.int32], answers: Sequence[tuple[Question, str, Any]]
) -> Iterator[str]:
    """Class TAB text TAB ``answered`` or ``guess``."""
    certain: dict[int, str] = {}
    for question, kind, answer in answers:
        if kind == "label":
            certain[question.x] = answer
        elif kind == "part" and answer == "yes":
            certain[question.x] = task.classes[question.numbers[1]]
        elif kind == "pair" and answer != "tie":
            certain[question.x] = task.classes[int(question.outputs[answer == "second"][0])]
    for x, k in enumerate(outputs.tolist()):
        yield f"{certain.get(x, task.classes[k])}\t{prompt(data, x)}\t{ANSWERED if x in certain else GUESS}\n"


def prompt(data: Prepared, x: int) -> str:
    """On one line, as TSV has it."""
    texts = data.documents.texts
    return data.documents.where(x) if texts is None else " ".join(texts[x].split())


def output_text(task: TextClassification, data: Prepared, x: int, output: NDArray[np.int32]) -> str:
    return task.classes[int(output[0])]
