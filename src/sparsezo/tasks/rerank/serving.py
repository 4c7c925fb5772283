"""What a session with people needs of reranking: lists kept beside the log, those to audit, the best ones so far."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import UsageError
from sparsezo.questions import Question
from sparsezo.storage.fingerprint import fingerprint
from sparsezo.tasks.base import Json
from sparsezo.tasks.rerank.io.importing import META, NBestStore
from sparsezo.tasks.rerank.task import Reranking
from sparsezo.tasks.serving import GUESS, Answer, Part, TaskServing

if TYPE_CHECKING:
    from sparsezo.questions import Proposal

_FOLDER = "inputs"


class RerankServing(TaskServing[Reranking, NBestStore]):
    """Lists: questions are about two of a list's candidates."""

    AUDIT = "pair"  # nobody can name the best of a thousand

    def keep(self, folder: Path, data: NBestStore) -> str:
        """A copy of the store, which others may remove from their cache; returns what it is known by."""
        target = folder / _FOLDER
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(data.folder, target, ignore=shutil.ignore_patterns(".*"))
        for file in target.iterdir():
            with open(file, "rb") as stream:
                os.fsync(stream.fileno())
        return self.identity(data)

    def identity(self, data: NBestStore) -> str:
        """Its head has the check sums of all else."""
        return fingerprint((data.folder / META).read_bytes())

    def kept(self, folder: Path, task: Reranking) -> NBestStore:
        return NBestStore.open(folder / _FOLDER)

    def words_of(self, data: NBestStore, x: int) -> tuple[str, ...]:
        """What a list is found again by in other data: its candidates, in their order."""
        rows = data.list(x)
        return tuple(data.hypothesis(k) for k in range(rows.start, rows.stop))

    def audit_parts(self, task: Reranking, data: NBestStore, n: int, chance: random.Random) -> list[Part]:
        """Lists, all as likely, none twice, and of each two candidates of different words."""
        found = []
        for x in chance.sample(range(len(data)), min(n, len(data))):
            rows = data.list(x)
            different: dict[str, int] = {}
            for j in chance.sample(range(rows.stop - rows.start), rows.stop - rows.start):
                different.setdefault(data.hypothesis(rows.start + j), j)
                if len(different) == 2:
                    found.append((x, [0, 0, 0, 0], [[j] for j in different.values()]))
                    break
        return found

    def annotated(
        self, task: Reranking, data: NBestStore, outputs: NDArray[np.int32], answers: Sequence[Answer]
    ) -> Iterator[str]:
        """List's number TAB best candidate TAB ``guess``: of two that were compared neither need be the best."""
        for x, words in enumerate(task.words(data, outputs)):
            yield f"{x}\t{words}\t{GUESS}\n"

    def prompt(self, data: NBestStore, x: int) -> str:
        """The lists do not say what was translated; a session's ``source`` does."""
        return ""

    def output_text(self, task: Reranking, data: NBestStore, x: int, output: NDArray[np.int32]) -> str:
        return data.hypothesis(int(data.offsets[x]) + int(output[0]))

    def shown(self, task: Reranking, data: NBestStore, question: Question | Proposal) -> Json:
        hypotheses = [self.output_text(task, data, question.x, output) for output in question.outputs]
        text = "Which translation is better, the first or the second?"
        if len(hypotheses) > 2:
            text = "Which of these translations is the best?"
        if len(hypotheses) == 1:
            text = "How bad is this translation, from 0 to 1?"
        return {"hypotheses": hypotheses, "question": text}

    def from_columns(self, inputs: Sequence[tuple[str, object]], made: Json, path: str) -> NBestStore:
        raise UsageError(f"`from_answers` {path}: answers about lists are learned from the session's folder alone")


SERVING = RerankServing()
