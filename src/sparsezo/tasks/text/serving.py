"""What a session with people needs of text: documents kept beside the log, those to audit, the corpus so far."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sparsezo.questions import Question
from sparsezo.storage.texts import joined, parted
from sparsezo.tasks.keeping import identity_of, read_inputs, write_inputs
from sparsezo.tasks.text.documents import Documents
from sparsezo.tasks.text.task import Prepared
from sparsezo.tasks.text.vectors import WithVectors
from sparsezo.tasks.text.word_vectors import WORDLLAMA

if TYPE_CHECKING:
    from sparsezo.tasks.text.task import TextClassification

AUDIT = "label"  # the kind of question that an audit asks
_KIND = "documents"
ANSWERED, GUESS = "answered", "guess"
ENDING = "tsv"  # of the corpus


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
