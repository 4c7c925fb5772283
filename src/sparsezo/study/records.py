"""What a finished run leaves in its folder, written and read back: run.json, curve.csv, test.counts, under sums.

    write_record(folder, fields, [(0, 1.0, 0.5), ...])
    record = read_record(folder)                        # None: no finished run; DamagedError: not as it was written
    read_curve(folder, record)                          # an array for each of COLUMNS
    read_counts(folder, record)                         # what test is made of, by input; None where not recorded

``run.json`` is written last and whole, so where it is the run is finished. It has the sum of ``curve.csv`` and its own.
Results from before there were sums are read by their form alone.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import DamagedError, DataError
from sparsezo.storage.checksummed import read_checksummed, read_whole, write_checksummed
from sparsezo.storage.container import read_container, write_container
from sparsezo.storage.files import write_text
from sparsezo.storage.fingerprint import fingerprint
from sparsezo.study.plan import PHASES
from sparsezo.tasks.base import AnyArray, Json

RECORD, CURVE, MODEL, COUNTS = "run.json", "curve.csv", "model.szo", "test.counts"
AGAIN = "the command that made it does the run again"
# map_average_loss: of the annealed criterion; tokens to whole: what a person's time goes to beside answers; inputs:
# that were labelled as a whole; dev_loss: of the best outputs at w
EFFORT = ("tokens", "looked", "corrections", "whole")
COLUMNS = ("iterations", "average_loss", "dev", "answers", "test", "map_average_loss", *EFFORT, "dev_loss", "inputs")
Point = Sequence[float]  # at least the first three of COLUMNS; nan where not known
_COUNTS = ("iterations", "answers", *EFFORT, "inputs")
_ALWAYS = 4  # columns that every curve has

_WANTED: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("experiment", "task", "learner", "phase"), (str,)),
    **dict.fromkeys(("seed", "iterations"), (int,)),
    **dict.fromkeys(("settings", "result"), (dict,)),
}
_ALLOWED: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("test_report", "versions"), (dict, type(None))),
    "paper": (int, float, type(None)),
    **dict.fromkeys(("data", "hash"), (str,)),
    "files": (dict,),
}


def write_curve(folder: Path, curve: Sequence[Point]) -> None:
    """Figures as they are, to the last bit; empty where nothing is known, such as dev without a dev set."""
    points = [(*point, *[math.nan] * (len(COLUMNS) - len(point))) for point in curve]
    known = [k for k in range(len(COLUMNS)) if k < _ALWAYS or not all(math.isnan(point[k]) for point in points)]
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(COLUMNS[k] for k in known)
    for point in points:
        cells = [(point[k], COLUMNS[k] in _COUNTS) for k in known]
        rows.writerow("" if math.isnan(value) else int(value) if whole else value for value, whole in cells)
    write_text(folder / CURVE, text.getvalue())


def write_counts(folder: Path, counts: AnyArray) -> None:
    """In as few bytes as they need."""
    small = counts.astype(np.min_scalar_type(int(counts.max(initial=0))))
    write_container(folder / COUNTS, "counts", {}, {"counts": small})


def read_counts(folder: Path, record: Json) -> NDArray[np.int64] | None:
    """[inputs, k], as ``tasks.counts`` has them; None of runs from before they were recorded, or without a test."""
    path, wanted = folder / COUNTS, record.get("files", {}).get(COUNTS)
    if wanted is None:
        return None
    try:
        whole = fingerprint(path.read_bytes()) == wanted
        counts = read_container(path, "counts")[1]["counts"] if whole else None
    except (OSError, DataError, KeyError):
        raise DamagedError(str(path), "it cannot be read", AGAIN) from None
    if counts is None:
        raise DamagedError(str(path), "it does not have the sum that it was written with", AGAIN)
    if counts.ndim != 2 or counts.dtype.kind not in "iu":
        raise DamagedError(str(path), "it is not what a run has", AGAIN)
    return counts.astype(np.int64)


def write_record(folder: Path, fields: Json) -> Json:
    """The curve is there already, and the counts where there are such; returns the record."""
    there = [name for name in (CURVE, COUNTS) if name == CURVE or (folder / name).exists()]
    record = {**fields, "files": {name: fingerprint((folder / name).read_bytes()) for name in there}}
    write_checksummed(folder / RECORD, record)
    return record


def read_record(folder: Path) -> Json | None:
    path = folder / RECORD
    record = read_checksummed(path, AGAIN)
    if record is not None:
        _check(record, path)
    return record


def _check(record: Json, path: Path) -> None:
    """Every field is of its kind: whoever reads on need not look again."""
    for name, kinds in (_WANTED | _ALLOWED).items():
        if name not in record:
            if name in _WANTED:
                raise DamagedError(str(path), f"it has no {name}", AGAIN)
        elif not isinstance(record[name], kinds) or isinstance(record[name], bool):
            raise DamagedError(str(path), f"its {name} is not what a run has", AGAIN)
    plain = (str, int, float, bool, type(None))
    if record.get("hash", path.parent.name) != path.parent.name:
        raise DamagedError(str(path), "it is of another run", AGAIN)
    for what, fits in (
        ("phase", record["phase"] in PHASES),
        ("seed", record["seed"] >= 0),
        ("iterations", record["iterations"] >= 1),
        ("settings", all(isinstance(value, plain) for value in record["settings"].values())),
        ("paper", math.isfinite(record.get("paper") or 0.0)),
    ):
        if not fits:
            raise DamagedError(str(path), f"its {what} is not what a run has", AGAIN)


def read_curve(folder: Path, record: Json) -> tuple[AnyArray, ...]:
    """An array for each of COLUMNS. Where nothing is known there is nan: of answers before 0.2.0, of test mostly."""
    path = folder / CURVE
    text = read_whole(path, AGAIN)
    if text is None:
        raise DamagedError(str(path), "it is missing", AGAIN)
    wanted = record.get("files", {}).get(CURVE)
    if wanted is not None and wanted != fingerprint(text.encode("utf-8")):
        raise DamagedError(str(path), "it does not have the sum that it was written with", AGAIN)
    try:
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
        if not text.endswith("\n") or any(None in row.values() for row in rows):
            raise ValueError("it is cut off")
        steps = np.array([int(row["iterations"]) for row in rows], np.int64)
        must = [np.array([float(row[name] or "nan") for row in rows]) for name in COLUMNS[1:3]]
        may = [np.array([float(row.get(name) or "nan") for row in rows]) for name in COLUMNS[3:]]
    except KeyError as error:
        raise DamagedError(str(path), f"it has no column {error}", AGAIN) from None
    except (csv.Error, OverflowError, TypeError, ValueError) as error:
        raise DamagedError(str(path), error, AGAIN) from None
    if steps.size == 0 or steps[0] < 0 or (np.diff(steps) <= 0).any():
        raise DamagedError(str(path), "its iterations do not rise", AGAIN)
    return steps, *must, *may
