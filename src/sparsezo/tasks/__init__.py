"""Tasks: what the scores S = C W mean. Each is imported when it is used."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from sparsezo.errors import UsageError
from sparsezo.tasks.base import Task

TASKS = {
    "chunking": ("sparsezo.tasks.chunking.task", "Chunking"),
    "text": ("sparsezo.tasks.text.task", "TextClassification"),
    "rerank": ("sparsezo.tasks.rerank.task", "Reranking"),
}


def load_task(name: str, settings: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Task:
    """A task from what its ``to_arrays`` gave."""
    if name not in TASKS:
        raise UsageError(f"task {name}: this version of sparsezo knows {', '.join(TASKS)}")
    module, cls = TASKS[name]
    task: Task = getattr(importlib.import_module(module), cls).from_arrays(settings, arrays)
    return task
