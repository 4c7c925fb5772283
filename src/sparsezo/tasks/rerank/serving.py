"""What a session with people needs of reranking: lists kept beside the log, those to audit, the best ones so far."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sparsezo.questions import Question
from sparsezo.tasks.rerank.store import META, NBestStore

if TYPE_CHECKING:
    from sparsezo.tasks.rerank.task import Reranking

AUDIT = "pair"  # the kind of question that an audit asks: nobody can name the best of a thousand
_FOLDER = "inputs"
GUESS = "guess"
ENDING = "tsv"  # of the corpus
REFITTED: tuple[str, ...] = ()  # options of features: the decoder has made them


def keep(folder: Path, data: NBestStore) -> str:
    """A copy of the store, which others may remove from their cache; returns what it is known by."""
    target = folder / _FOLDER
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(data.folder, target, ignore=shutil.ignore_patterns(".*"))
    for file in target.iterdir():
        with open(file, "rb") as stream:
            os.fsync(stream.fileno())
    return identity(data)


def identity(data: NBestStore) -> str:
    """Its head has the check sums of all else."""
    return hashlib.blake2b((data.folder / META).read_bytes(), digest_size=16).hexdigest()


def kept(folder: Path, task: Reranking) -> NBestStore:
    return NBestStore.open(folder / _FOLDER)


def options_of(task: Reranking) -> dict[str, Any]:
    """Lists need nothing that a model knows."""
    return {}


def kept_options(task: Reranking) -> dict[str, Any]:
    """Options that a task of lists knows: none."""
    return {}


# Answers that are learned from again (serve/answers.py)


def answer_labels(task: Reranking) -> tuple[str, ...]:
    """None: an output is a candidate's number."""
    return ()


def words_of(data: NBestStore, x: int) -> tuple[str, ...]:
    """What a list is found again by in other data: its candidates, in their order."""
    begin, end = data.offsets[x : x + 2].tolist()
    return tuple(data.hypothesis(k) for k in range(begin, end))


def columns_of(data: NBestStore, x: int) -> Any:
    """Nothing: lists are too long for a line of answers."""
    return None


def about_task(task: Reranking) -> dict[str, Any]:
    """Lists need nothing that a task knows."""
    return {}


def labels_option(made: Mapping[str, Any]) -> dict[str, Any]:
    """None."""
    return {}


def audit_parts(
    task: Reranking, data: NBestStore, n: int, chance: random.Random
) -> list[tuple[int, list[int], list[Any]]]:
    """Lists, all as likely, none twice, and of each two candidates of different words."""
    found = []
    for x in chance.sample(range(len(data)), min(n, len(data))):
        begin, end = data.offsets[x : x + 2].tolist()
        different: dict[str, int] = {}
        for j in chance.sample(range(end - begin), end - begin):
            different.setdefault(data.hypothesis(begin + j), j)
            if len(different) == 2:
                found.append((x, [0, 0, 0, 0], [[j] for j in different.values()]))
                break
    return found


def annotated(
    task: Reranking, data: NBestStore, outputs: NDArray[np.int32], answers: Sequence[tuple[Question, str, Any]]
) -> Iterator[str]:
    """List's number TAB best candidate TAB ``guess``: of two that were compared neither need be the best."""
    for x, words in enumerate(task.words(data, outputs)):
        yield f"{x}\t{words}\t{GUESS}\n"


def prompt(data: NBestStore, x: int) -> str:
    """The lists do not say what was translated; a session's ``source`` does."""
    return ""


def output_text(task: Reranking, data: NBestStore, x: int, output: NDArray[np.int32]) -> str:
    return data.hypothesis(int(data.offsets[x]) + int(output[0]))
