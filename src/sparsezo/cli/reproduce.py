"""reproduce, behind its command line: the runs, then the report on them."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path

from sparsezo.cli import show
from sparsezo.cli.options import Clicks
from sparsezo.cli.values import seed_list, whole_number
from sparsezo.errors import SparsezoError, UsageError, need
from sparsezo.messages import counted
from sparsezo.storage.files import working_folder
from sparsezo.study.engines.base import ENGINE_OPTIONS, LOCAL, EngineOptions
from sparsezo.study.reports.report import write_report
from sparsezo.study.reproduce import SEVERAL, Watch, refuse_unknown, reproduce

_TYPED: dict[str, Callable[[str], object]] = {
    "seeds": seed_list,
    "iterations": lambda text: whole_number(text, "--iterations"),
    "answers": lambda text: whole_number(text, "--answers"),
    "phases": lambda text: [part.strip() for part in text.split(",") if part.strip()],
}


def run_reproduce(
    name: str, data: str | None = None, *, out: Path | None = None, quick: bool = False, **given: Clicks
) -> list[Path]:
    """The folders of results, each with what the report is made of; ``given``: ``Overrides``, as they were typed."""
    if name != "scaling":
        refuse_unknown(name)
    need("report")
    given["engine"] = given.get("engine") or LOCAL
    EngineOptions(**{key: given[key] for key in given if key in ENGINE_OPTIONS})  # what is wrong with it is said first
    chosen = {
        key: _TYPED[key](value) if isinstance(value, str) and key in _TYPED else value for key, value in given.items()
    }
    command = shlex.join(["sparsezo", *sys.argv[1:]])  # for the report
    if name == "scaling":
        if given["engine"] != LOCAL:
            raise UsageError(f"`engine` {given['engine']}: reproduce scaling measures this machine; leave it out")
        return [_scaling(out or Path("results") / "scaling", chosen.get("seeds"), quick, command)]
    if quick:
        raise UsageError("--quick belongs to reproduce scaling; use fewer --iterations")
    with show.stopping_cleanly():
        done = reproduce(name, data, out=out, watch=Watch(show.note, show.following, show.note_compiling), **chosen)
    for failure in done.failures:
        show.note(f"failed: {failure.run}: {failure.message}")
    report = done.folders[0] / "report"
    if name in SEVERAL:  # beside the folders of its experiments
        report = (out or (Path("results") if name == "all" else Path("results") / name)) / "report"
    try:
        show.note(f"the report is {write_report(done.folders, report, command=command)}")
    except UsageError:
        if not done.failures:
            raise  # else nothing was finished, for the reasons above
    if done.failures:
        failed = counted(len(done.failures), "run")
        raise SparsezoError(f"{failed} failed, for the reasons above; the same command tries them again, and only them")
    return done.folders


def _scaling(folder: Path, seeds: object, quick: bool, command: str) -> Path:
    from sparsezo.study.reports.scaling import run_scaling

    if isinstance(seeds, tuple):
        raise UsageError("--seeds: reproduce scaling takes how many, such as 3")
    count = seeds if isinstance(seeds, int) else 3
    with show.stopping_cleanly(), working_folder(folder):
        path = run_scaling(folder, quick=quick, seeds=count, say=show.note, command=command)
    show.note(f"the report is {path}")
    return folder
