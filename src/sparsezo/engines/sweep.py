"""What every engine does around its own work: find what is done already, order the rest, hand back the records.

finished = sweep(runs, out, say, board_of, work)        # work(todo, board) does what is left
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sparsezo.engines.base import Finished
from sparsezo.engines.progress import Board
from sparsezo.experiments.runs import Run, drop_damaged_checkpoint, find


def sweep(
    runs: Sequence[Run],
    out: Path,
    say: Callable[[str], None],
    board_of: Callable[[list[Run], int], Board],
    work: Callable[[list[Run], Board], None],
) -> Finished:
    """Nothing finished is computed again, unless it was damaged since. ``board_of``: runs to do, and how many are."""
    records: dict[str, dict[str, Any]] = {}
    todo: list[Run] = []
    for run in {run.hash: run for run in runs}.values():
        record = find(run, out, say)
        if record is None:
            drop_damaged_checkpoint(run, out, say)
            todo.append(run)
        else:
            records[run.hash] = record
    # The dearest first, so that no core is left alone with one at the end.
    todo.sort(key=lambda run: (-run.length, run.settings.perturb != "all"))
    board = board_of(todo, len(records))
    if todo:
        work(todo, board)
    for run in todo:
        if (record := find(run, out)) is not None:
            records[run.hash] = record
    return Finished(records, tuple(board.failures))
