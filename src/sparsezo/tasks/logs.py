"""A log of what some system has shown and what people said of it: a line each, as JSON (docs/logged.md).

    {"text": "the match was lost", "label": "sport", "feedback": true, "propensity": 0.8}

``feedback`` is true or false (a thumb), a number from 0 to 1 (1 is best), or the output as it should have been;
``propensity`` is the probability with which the system has shown just this output, where that is known. What the input
and the output are called is the task's to say: its module of logs (``TaskSpec.log_module``) is a ``TaskLogs``. Where
outputs are texts, a log may be a table (.csv, .tsv), whose header has these names.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Protocol

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import DataError, quoted, shown, some
from sparsezo.messages import counted, say
from sparsezo.tasks.base import Json, Read, Task
from sparsezo.tasks.tables import PathLike, table_rows

Line = tuple[str, Json]  # where it stands (path:line), and what it says
FEEDBACK, PROPENSITY = "feedback", "propensity"
Part = tuple[tuple[int, int, int, int], bool]  # a question's numbers, and whether that part is right


@dataclass(frozen=True, eq=False)
class Logged:
    """A line of a log, in the numbers of a task. It is about inputs ``first`` to ``last`` (exclusive), most often one.

    ``shown`` and ``corrected`` have an output for each of these, or are None: nobody corrected it, or it is an output
    that the task's models cannot have."""

    where: str
    first: int
    last: int
    shown: tuple[NDArray[np.int32], ...] | None
    reward: float | None  # of the whole output, from 0 to 1; None: people spoke of parts alone
    thumb: bool  # the reward is a yes or no
    corrected: tuple[NDArray[np.int32], ...] | None
    propensity: float | None
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, eq=False)
class LoggedData:
    """What a task made of a log."""

    task: Task
    data: Read
    rows: list[Logged]


class TaskLogs(Protocol):
    """What a task's module of logs has."""

    FROM_FILE: bool  # lines are about inputs of a file, which is given beside the log
    TABLES: bool  # inputs and outputs are texts, so that a log may be a table

    def read(
        self, lines: Sequence[Line], path: str, task: Task | None, data: Read, options: Mapping[str, object]
    ) -> LoggedData:
        """The log's lines for a task; ``task`` None: for one that is made of the log itself, with these options.
        ``data``: the inputs, where FROM_FILE."""

    def as_shown(self, task: Task, output: NDArray[np.int32]) -> NDArray[np.int32]:
        """The output that people cannot tell from this one, and that stands for all of them in a log."""


_THUMBS = {"true": True, "yes": True, "up": True, "👍": True, "false": False, "no": False, "down": False, "👎": False}


def table_lines(path: PathLike, stream: IO[bytes]) -> Iterator[Line]:
    """The rows of a table with a header. Cells that are empty say nothing. In a column of feedback that has but 0 and
    1, these are thumbs; numbers may have a decimal comma."""
    rows = table_rows(path, stream)
    _, header = next(rows, (1, []))
    names = [name.lower() for name in header]
    if twice := next((name for name in names if name and names.count(name) > 1), None):
        raise DataError(os.fspath(path), f"several columns are called '{quoted(twice)}'; a log has one of each")
    found = [(f"{path}:{number}", dict(zip(names, row, strict=True))) for number, row in rows]
    thumbs = {_number(row.get(FEEDBACK, "")) for _, row in found} <= {0, 1, None}
    for where, cells in found:
        row: Json = {name: cell for name, cell in cells.items() if cell.strip()}
        for name in (FEEDBACK, PROPENSITY):
            if name in row and (number := _number(str(row[name]))) is not None:
                row[name] = bool(number) if thumbs and name == FEEDBACK else number
        said = str(row.get(FEEDBACK)).strip().lower().rstrip("\ufe0f")
        if said in _THUMBS:
            row[FEEDBACK] = _THUMBS[said]
        elif isinstance(row.get(FEEDBACK), str):
            what = "give true or false (yes or no, up or down, 1 or 0), or a number from 0 to 1"
            raise DataError(where, f"feedback {shown(row[FEEDBACK], repr)}: {what}")
        yield where, row


def _number(cell: str) -> float | None:
    try:
        return float(cell.replace(",", "."))
    except ValueError:
        return None


@dataclass(frozen=True)
class Said:
    """The feedback of a line."""

    reward: float | None
    thumb: bool
    corrected: Json | None


def said(where: str, row: Json, corrected: Sequence[str], required: bool = True) -> Said:
    """The feedback of a line, checked. ``corrected``: what an output as it should have been is called in this task;
    not ``required`` where people may have spoken of parts alone."""
    given = row.get(FEEDBACK)
    forms = f'true, false, a number from 0 to 1 (1 is best), or {{"{corrected[0]}": ...}}, the output as it should be'
    if given is None:
        if not required:
            return Said(None, False, None)
        raise DataError(where, f"has no '{FEEDBACK}'; give {forms}")
    if isinstance(given, bool):
        return Said(float(given), True, None)
    if isinstance(given, int | float) and 0 <= given <= 1:
        return Said(float(given), False, None)
    if isinstance(given, dict) and set(given) & set(corrected):
        return Said(None, True, given)
    raise DataError(where, f"feedback {shown(given, repr)}: give {forms}")


def propensity(where: str, row: Json) -> float | None:
    """The probability with which the output was shown; None where the line does not say."""
    given = row.get(PROPENSITY)
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int | float) or not (0 < given <= 1 and math.isfinite(given)):
        raise DataError(
            where, f"propensity {shown(given, repr)}: it is the probability of what was shown, above 0 and at most 1"
        )
    return float(given)


def label(where: str, row: Json, name: str) -> str:
    """A text of a line by its name, not empty; without white space around it, as names of classes are everywhere."""
    given = row.get(name)
    if not isinstance(given, str) or not given.strip():
        raise DataError(where, f"'{name}' is {shown(given, repr)}; give its name, a text")
    return given.strip()


def remark_unknown(path: str, lines: Sequence[Line], known: Sequence[str]) -> None:
    """Say which keys of a log are not looked at."""
    every = (FEEDBACK, PROPENSITY, *known)
    odd = dict.fromkeys(key for _, row in lines for key in row if key not in every)
    if odd:
        names = some((f"'{quoted(key)}'" for key in odd), 8)
        say(f"{path}: {counted(len(odd), 'key')} that no log of this task has, not read: {names}")
