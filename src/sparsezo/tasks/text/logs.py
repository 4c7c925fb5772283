"""Logs of shown classes: {"text": ..., "label": the class shown, "feedback": ...}; corrected: {"label": ...}."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import DataError, UsageError, quoted, some
from sparsezo.options import make_options
from sparsezo.tasks.base import Read, Task
from sparsezo.tasks.logs import Line, Logged, LoggedData, label, propensity, remark_unknown, said
from sparsezo.tasks.text.io.documents import Documents, named_classes
from sparsezo.tasks.text.io.files import fit
from sparsezo.tasks.text.spec import TextOptions
from sparsezo.tasks.text.task import TextClassification

FROM_FILE = False
TABLES = True
_TEXT, _LABEL = "text", "label"


def read(lines: Sequence[Line], path: str, task: Task | None, data: Read, options: Mapping[str, object]) -> LoggedData:
    """The documents of a log; a task that is made of it has the classes that it names, or those of ``classes``."""
    remark_unknown(path, lines, (_TEXT, _LABEL))
    texts, found = [], []
    for where, row in lines:
        if not isinstance(row.get(_TEXT), str):
            raise DataError(where, f"has no '{_TEXT}', the document that was shown")
        texts.append(str(row[_TEXT]))
        feedback = said(where, row, (_LABEL,))
        right = None if feedback.corrected is None else label(where, feedback.corrected, _LABEL)
        found.append((where, label(where, row, _LABEL), right, feedback, propensity(where, row)))
    n = len(texts)
    documents = Documents((path,), np.zeros(n, np.int32), np.arange(1, n + 1), None, texts)
    if task is None:
        made = make_options(TextOptions, options, "a log of task text")
        named = None if made.classes is None else named_classes(made.classes)
        there = {name for _, shown, right, _, _ in found for name in (shown, right) if name is not None}
        if named is not None and (odd := sorted(there - {*named})):
            raise UsageError(f"`classes` {made.classes}: the log also has {some(odd)}; name all of them")
        if named is None and len(there) < 2:
            only = quoted(next(iter(there)))
            raise DataError(path, f"every class in it is '{only}'; name those that there are with `classes`")
        task, seen = fit(documents, made, named or tuple(sorted(there)))
    else:
        seen = cast("TextClassification", task).seen(documents)
    numbers = {name: k for k, name in enumerate(cast("TextClassification", task).classes)}

    def output(name: str | None) -> tuple[NDArray[np.int32], ...] | None:
        return None if name is None or name not in numbers else (np.array([numbers[name]], np.int32),)

    rows = []
    for x, (where, shown, right, feedback, chance) in enumerate(found):
        reward = float(right == shown) if right is not None else feedback.reward
        rows.append(Logged(where, x, x + 1, output(shown), reward, feedback.thumb, output(right), chance))
    return LoggedData(task, seen, rows)


def as_shown(task: Task, output: NDArray[np.int32]) -> NDArray[np.int32]:
    """Each output is shown in its own way."""
    return output
