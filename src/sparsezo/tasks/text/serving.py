"""What a session with people needs of text: documents kept beside the log, those to audit, the corpus so far."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsezo.errors import DataError, UsageError
from sparsezo.options import make_options
from sparsezo.questions import Proposal, Question
from sparsezo.storage.texts import joined, parted
from sparsezo.tasks.base import Arrays, Json
from sparsezo.tasks.serving import ANSWERED, GUESS, Answer, Part, TaskServing
from sparsezo.tasks.text.features.word_vectors import WORDLLAMA, WithEncoder, WithVectors
from sparsezo.tasks.text.io.documents import Documents
from sparsezo.tasks.text.io.files import fit
from sparsezo.tasks.text.spec import TextOptions
from sparsezo.tasks.text.task import Prepared, TextClassification


class TextServing(TaskServing[TextClassification, Prepared]):
    """Documents: questions are about a document's class."""

    KIND = "documents"
    REFITTED = ("raw_tf", "min_count", "hash_bits", "vectors")

    def to_arrays(self, data: Prepared) -> tuple[Json, Arrays]:
        """The documents with their vectors, without their labels: nobody who answers is helped by these."""
        documents, matrix = data.documents, data.matrix
        arrays: Arrays = {
            "file_of": documents.file_of,
            "lines": documents.lines,
            "indptr": matrix.indptr,
            "indices": matrix.indices,
            "values": matrix.data,
        }
        if documents.texts is not None:
            arrays["texts"], arrays["texts_start"] = joined(documents.texts)
        return {"paths": list(documents.paths), "shape": list(matrix.shape), "tokenised": documents.tokenised}, arrays

    def from_arrays(self, meta: Json, arrays: Arrays) -> Prepared:
        texts = parted(arrays["texts"], arrays["texts_start"]) if "texts" in arrays else None
        documents = Documents(
            tuple(meta["paths"]), arrays["file_of"], arrays["lines"], None, texts, tokenised=meta["tokenised"]
        )
        matrix = csr_array((arrays["values"], arrays["indices"], arrays["indptr"]), shape=tuple(meta["shape"]))
        return Prepared(documents, matrix)

    def options_of(self, task: TextClassification) -> Json:
        options = {"classes": ",".join(task.classes)}
        vectoriser = task.vectoriser
        if isinstance(vectoriser, WithEncoder):
            options |= {} if vectoriser.function is None else {"vectors": vectoriser.function}
        elif isinstance(vectoriser, WithVectors) and vectoriser.vectors.source.startswith(WORDLLAMA):
            options["vectors"] = WORDLLAMA
        return options

    def kept_options(self, task: TextClassification) -> Json:
        return {"classes": ",".join(task.classes), "hash_bits": task.hash_bits}

    def answer_labels(self, task: TextClassification) -> tuple[str, ...]:
        return task.classes

    def words_of(self, data: Prepared, x: int) -> str | None:
        return None if data.documents.texts is None else self.prompt(data, x)

    def columns_of(self, data: Prepared, x: int) -> str | None:
        texts = data.documents.texts
        return None if texts is None else texts[x]

    def from_columns(self, inputs: Sequence[tuple[str, object]], made: Json, path: str) -> Prepared:
        n, texts = len(inputs), list[str]()
        for where, text in inputs:
            if not isinstance(text, str):
                raise DataError(where, "has no text (`columns`); give the session's folder instead")
            texts.append(text)
        places = np.zeros(n, np.int32), np.arange(1, n + 1)
        return Prepared(Documents((path,), *places, None, texts, tokenised=bool(made.get("tokenised"))), None)

    def about_task(self, task: TextClassification) -> Json:
        return {"classes": list(task.classes), "tokenised": task.vectoriser.kind == "tokens"}

    def labels_option(self, made: Json) -> Json:
        return {"classes": ",".join(made["classes"])}

    def fitted(self, made: Json, data: Prepared, options: Mapping[str, object]) -> tuple[TextClassification, Prepared]:
        if data.documents.texts is None:
            given = ", ".join(f"`{name}`" for name in options)
            what = "the session's documents are vectors, of which no other features are made"
            raise UsageError(f"{what}; leave out {given}")
        classes = made.get("classes")
        if not isinstance(classes, list) or not all(isinstance(each, str) for each in classes):
            raise DataError(", ".join(data.documents.paths), "does not say what its classes are; export it again")
        return fit(data.documents, make_options(TextOptions, options, "task text"), classes)

    def audit_parts(self, task: TextClassification, data: Prepared, n: int, chance: random.Random) -> list[Part]:
        return [(x, [0, 0, 0, 0], []) for x in chance.sample(range(len(data)), min(n, len(data)))]

    def label_in(self, task: TextClassification, question: Question, output: NDArray[np.int32]) -> str:
        return task.classes[int(output[0])]

    def annotated(
        self, task: TextClassification, data: Prepared, outputs: NDArray[np.int32], answers: Sequence[Answer]
    ) -> Iterator[str]:
        """Class TAB text TAB ``answered`` or ``guess``."""
        certain: dict[int, str] = {}
        for question, kind, answer in answers:
            if kind == "label":
                certain[question.x] = answer
            elif kind == "part" and answer == "yes":
                certain[question.x] = task.classes[question.numbers[1]]
            elif kind == "pair" and answer != "tie":
                chosen = question.outputs[1 if answer == "second" else 0]
                certain[question.x] = task.classes[int(chosen[0])]
        for x, k in enumerate(outputs.tolist()):
            yield f"{certain.get(x, task.classes[k])}\t{self.prompt(data, x)}\t{ANSWERED if x in certain else GUESS}\n"

    def shown(self, task: TextClassification, data: Documents | Prepared, question: Question | Proposal) -> Json:
        """document (as vectors: where it stands), question; part: class; of outputs: classes."""
        documents = data.documents if isinstance(data, Prepared) else data
        document = documents.where(question.x) if documents.texts is None else documents.texts[question.x]
        names = [task.classes[int(output[0])] for output in question.outputs]
        if isinstance(question, Proposal) or names:
            text = f"Is this about {names[0]}? Give 0 for right, 1 for wrong, or a number between."
            if len(names) > 1:
                text = f"Is this rather about {names[0]} (first) or about {names[1]} (second)? Neither is a tie."
            return {"document": document, "classes": names, "question": text}
        if question.kind == "label":
            return {"document": document, "question": f"What is this about: {', '.join(question.choices)}?"}
        name = task.classes[question.numbers[1]]
        return {"document": document, "class": name, "question": f"Is this about {name}?"}

    def prompt(self, data: Prepared, x: int) -> str:
        texts = data.documents.texts
        return data.documents.where(x) if texts is None else " ".join(texts[x].split())

    def output_text(self, task: TextClassification, data: Prepared, x: int, output: NDArray[np.int32]) -> str:
        return task.classes[int(output[0])]


SERVING = TextServing()
