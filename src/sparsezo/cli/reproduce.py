"""reproduce, behind its command line: the runs, then the report on them."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from sparsezo import extras
from sparsezo.cli import show
from sparsezo.cli.follow import following, stopping_cleanly
from sparsezo.cli.values import seed_list, whole_number
from sparsezo.engines.choice import LOCAL, Where
from sparsezo.errors import SparsezoError, UsageError
from sparsezo.experiments.reproduce import SEVERAL, Watch, reproduce
from sparsezo.reports.report import write_report
from sparsezo.storage.files import working_folder
from sparsezo.words import counted


def run_reproduce(
    name: str,
    data: str | None = None,
    *,
    seeds: str | int | None = None,
    iterations: str | None = None,
    answers: str | None = None,
    phases: str | None = None,
    full_grid: bool = False,
    processes: int | None = None,
    engine: str = LOCAL,
    ray_address: str | None = None,
    out: Path | None = None,
    quick: bool = False,
    at: Mapping[str, tuple[float, float]] | None = None,
) -> list[Path]:
    """The folders of results, each with what the report is made of."""
    extras.need("report")
    Where(engine, ray_address, processes)  # what is wrong with it is said before anything else
    chosen = seed_list(seeds) if isinstance(seeds, str) else seeds
    if name == "scaling":
        if engine != LOCAL:
            raise UsageError(f"`engine` {engine}: reproduce scaling measures this machine; leave it out")
        return [_scaling(out or Path("results") / "scaling", chosen, quick=quick)]
    if quick:
        raise UsageError("--quick belongs to reproduce scaling; use fewer --iterations")
    with stopping_cleanly():
        done = reproduce(
            name,
            data,
            out=out,
            seeds=chosen,
            iterations=whole_number(iterations, "--iterations") if iterations is not None else None,
            answers=whole_number(answers, "--answers") if answers is not None else None,
            phases=None if phases is None else [part.strip() for part in phases.split(",") if part.strip()],
            full_grid=full_grid,
            processes=processes,
            engine=engine,
            ray_address=ray_address,
            at=at,
            watch=Watch(show.note, following, show.note_compiling),
        )
    for failure in done.failures:
        show.note(f"failed: {failure.run}: {failure.message}")
    try:
        page = write_report(done.folders, _report_folder(name, out, done.folders), command=_command())
        show.note(f"the report is {page}")
    except UsageError:
        if not done.failures:
            raise  # else nothing was finished, for the reasons above
    if done.failures:
        _fail(len(done.failures))
    return done.folders


def _report_folder(name: str, out: Path | None, folders: list[Path]) -> Path:
    """Of one experiment in its own folder; of several beside theirs."""
    if name not in SEVERAL:
        return folders[0] / "report"
    root = out or (Path("results") if name == "all" else Path("results") / name)
    return root / "report"


def _command() -> str:
    """What was typed, for the report."""
    return shlex.join(["sparsezo", *sys.argv[1:]])


def _scaling(folder: Path, seeds: int | tuple[int, ...] | None, *, quick: bool) -> Path:
    from sparsezo.reports.scaling import run_scaling

    if isinstance(seeds, tuple):
        raise UsageError("--seeds: reproduce scaling takes how many, such as 3")
    count = 3 if seeds is None else seeds
    with stopping_cleanly(), working_folder(folder):
        path = run_scaling(folder, quick=quick, seeds=count, say=show.note, command=_command())
    show.note(f"the report is {path}")
    return folder


def _fail(count: int) -> NoReturn:
    raise SparsezoError(
        f"{counted(count, 'run')} failed, for the reasons above; the same command tries them again, and only them"
    )
