"""Logs of shown translations: {"list": number of the list, "shown": number of the candidate, "feedback": ...}, both
from 0 as they stand in the n-best file; corrected: {"shown": the number of one that is better}."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import DataError, UsageError, shown
from sparsezo.options import Json
from sparsezo.tasks.base import Read, Task
from sparsezo.tasks.logs import Line, Logged, LoggedData, propensity, remark_unknown, said
from sparsezo.tasks.rerank.io.importing import NBestStore

FROM_FILE = True
TABLES = False
_LIST, _SHOWN = "list", "shown"


def read(lines: Sequence[Line], path: str, task: Task | None, data: Read, options: Mapping[str, object]) -> LoggedData:
    """Lines of a log about ``data``, the lists."""
    if task is None:
        raise UsageError(f"{path}: is about lists, which are in an n-best file; give it, too")
    lists = cast(NBestStore, data)
    remark_unknown(path, lines, (_LIST, _SHOWN))
    sizes, rows = np.diff(lists.offsets).tolist(), []
    for where, row in lines:
        x = _number(where, row, _LIST, len(sizes))
        feedback, output = said(where, row, (_SHOWN,)), _output(where, row, sizes[x])
        right = None if feedback.corrected is None else _output(where, feedback.corrected, sizes[x])
        reward = float(right[0] == output[0]) if right is not None else feedback.reward
        corrected = None if right is None else (right,)
        rows.append(Logged(where, x, x + 1, (output,), reward, feedback.thumb, corrected, propensity(where, row)))
    return LoggedData(task, data, rows)


def as_shown(task: Task, output: NDArray[np.int32]) -> NDArray[np.int32]:
    """Each output is shown in its own way."""
    return output


def _output(where: str, row: Json, size: int) -> NDArray[np.int32]:
    return np.array([_number(where, row, _SHOWN, size)], np.int32)


def _number(where: str, row: Json, name: str, size: int) -> int:
    given = row.get(name)
    if type(given) is not int or not 0 <= given < size:
        raise DataError(where, f"'{name}' is {shown(given, repr)}; give a number from 0 to {size - 1}")
    return given
