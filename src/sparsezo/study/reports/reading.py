"""Reading an experiment's folder back: experiment.toml, runs/*/run.json and curve.csv, tuning.json, bounds.json.

    experiment = read_experiment("out/chunking")
    experiment.gaps                          # what is missing, damaged or odd, in sentences

Nothing here stops at a missing piece: it is left out and named in ``gaps``. What would make a wrong table, such as runs
of two experiments in one folder, is an error.
"""

from __future__ import annotations

import contextlib
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import UnionType

from sparsezo.errors import DamagedError, DataError, UsageError, one_line
from sparsezo.messages import counted
from sparsezo.options import Json
from sparsezo.storage.checksummed import read_checksummed, read_whole, verified_toml
from sparsezo.storage.container import read_container
from sparsezo.study.plan import SHOWN_PHASES, spec_name
from sparsezo.study.records import COLUMNS, read_counts, read_curve, read_record
from sparsezo.study.reports.results import (
    GROUPS,
    RULE_ORDER,
    Fields,
    LearnerRuns,
    ReportedExperiment,
    ReportedRun,
    finite,
)
from sparsezo.study.reproduce import BOUND_COUNTS, PLAN_FILE
from sparsezo.study.toml import parse_toml
from sparsezo.tasks.base import AnyArray

_ANEW = "the command that made it writes it anew"


def read_experiment(folder: str | os.PathLike[str]) -> ReportedExperiment:
    folder = Path(folder)
    if not folder.is_dir():
        raise UsageError(f"{folder}: no such folder; name one that 'sparsezo reproduce' wrote")
    gaps: list[str] = []
    text, declared = _read_toml(folder, gaps)
    tuning = _read_json(folder, "tuning.json", gaps)
    bounds = _read_json(folder, "bounds.json", gaps)
    bound_counts = _read_bound_counts(folder, gaps)
    runs, names = _read_runs(folder, gaps)
    if len(names) > 1:
        listed = ", ".join(sorted(f"{name} ({task})" for name, task in names))
        raise DataError(str(folder), f"holds runs of several experiments, {listed}; give each a folder of its own")
    name, task = next(iter(names), (str(declared.get("name", folder.name)), str(declared.get("task", "unknown"))))
    metric = next((str(run.result["metric"]) for run in runs if run.result.get("metric")), "")
    learners = _learners(runs, tuning, gaps)
    found = ReportedExperiment(folder, name, task, metric, tuple(runs), learners, declared, text, tuning, bounds)
    found = replace(found, bound_counts=bound_counts)
    gaps += _missing(found)
    return replace(found, gaps=tuple(dict.fromkeys(map(one_line, gaps))))


def _told(error: DataError, folder: Path) -> str:
    """A gap: named from the folder on, which the reader knows."""
    return str(error).removeprefix(f"{folder}{os.sep}") + "."


def _read_toml(folder: Path, gaps: list[str]) -> tuple[str, Fields]:
    path = folder / PLAN_FILE
    try:
        text = read_whole(path, _ANEW)
        if text is not None:
            text = verified_toml(text, str(path), _ANEW)
            if declared := parse_toml(text, str(path)):
                return text, declared
            raise DamagedError(str(path), "it is empty", _ANEW)
        gaps.append(f"{path.name} is missing: data and planned seeds are not known.")
    except DataError as error:
        gaps.append(_told(error, folder))
    return "", {}


def _read_json(folder: Path, name: str, gaps: list[str]) -> Fields:
    try:
        value = read_checksummed(folder / name, _ANEW) or {}
        if name == "tuning.json" and not all(map(_is_tuning, value.values())):
            raise DamagedError(str(folder / name), "it is not what tuning writes", _ANEW)
    except DamagedError as error:
        gaps.append(_told(error, folder))
        return {}
    return value


def _read_bound_counts(folder: Path, gaps: list[str]) -> dict[str, AnyArray]:
    """[inputs, k] of each bound; none of experiments from before they were kept."""
    path = folder / BOUND_COUNTS
    try:
        return read_container(path, "counts")[1] if path.exists() else {}
    except DataError:
        gaps.append(_told(DamagedError(str(path), "it cannot be read", _ANEW), folder))
        return {}


_TUNING = {"trials": list, "chosen": dict, "widened": int, "note": str, "seeds": list}
_TRIAL = dict.fromkeys(("h", "mu", "dev", "iterations", "seeds"), int | float)


def _is_tuning(entry: object) -> bool:
    """Of files without a sum: a learner's entry has the form that tuning gives it."""

    def fits(table: object, kinds: Mapping[str, type | UnionType]) -> bool:
        return isinstance(table, dict) and all(isinstance(table.get(k), kind | None) for k, kind in kinds.items())

    if not isinstance(entry, dict) or not fits(entry, _TUNING):
        return not isinstance(entry, dict)
    return all(fits(each, _TRIAL) for each in (entry.get("chosen") or {}, *(entry.get("trials") or ())))


def _read_runs(folder: Path, gaps: list[str]) -> tuple[list[ReportedRun], set[tuple[str, str]]]:
    runs, names, unfinished = [], set(), 0
    for path in sorted((folder / "runs").glob("*/")):
        try:
            if (record := read_record(path)) is None:
                unfinished += 1
            else:
                runs.append(_run(record, path, folder, gaps))
                names.add((record["experiment"], record["task"]))
        except DamagedError as error:
            gaps.append("Left out: " + _told(error, folder))
    if unfinished:
        gaps.append(f"{unfinished} run{'s are' if unfinished > 1 else ' is'} not finished.")
    return runs, names


def _run(record: Json, path: Path, folder: Path, gaps: list[str]) -> ReportedRun:
    curve, counts = None, None
    whose = f"{record['learner']}, {record['phase']}, seed {record['seed']}"
    try:
        curve = dict(zip(COLUMNS, read_curve(path, record), strict=True))
    except DamagedError as error:
        gaps.append(f"{whose}, has no curve: {_told(error, folder)}")
    try:
        counts = read_counts(path, record)
    except DamagedError as error:
        gaps.append(f"{whose}, has no counts by test input: {_told(error, folder)}")
    known = {name: record[name] for name in ("learner", "phase", "seed", "settings", "iterations", "result")}
    return ReportedRun(
        **known,
        test_report=record.get("test_report") or {},
        versions={str(k): str(v) for k, v in (record.get("versions") or {}).items()},
        paper=None if (paper := record.get("paper")) is None else float(paper),
        curve=curve,
        data=record.get("data", ""),
        made=(path / "run.json").stat().st_mtime,
        counts=counts,
    )


def _learners(runs: Sequence[ReportedRun], tuning: Fields, gaps: list[str]) -> tuple[LearnerRuns, ...]:
    found: dict[str, dict[str, list[ReportedRun]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        if run.phase in SHOWN_PHASES:
            found[run.learner][run.phase].append(run)
    learners = []
    for name, phases in found.items():
        entry = tuning.get(name)
        chosen = entry.get("chosen") if isinstance(entry, dict) else None  # the h and mu that were found for it
        by_phase = {"tuned": chosen, "speed": entry.get("fastest") if isinstance(entry, dict) else None}
        kept = {phase: _of_one_kind(mine, by_phase.get(phase), gaps) for phase, mine in phases.items()}
        settings = next(iter(kept.values()))[0].settings
        rule, feedback = str(settings.get("rule", name)), str(settings.get("feedback", "exact"))
        perturb = None if settings.get("perturb") is None else str(settings["perturb"])
        annealed = settings.get("criterion") == "annealed"
        as_paper = (settings.get("step", "constant"), settings.get("criterion", "map")) == ("constant", "map")
        plain = as_paper and not settings.get("baseline") and feedback == "exact"
        variances = _variances(entry) if isinstance(entry, dict) else {}
        learners.append(LearnerRuns(name, rule, perturb, plain, kept, feedback, annealed, variances))
    return tuple(sorted(learners, key=_table_order))


def _variances(entry: Fields) -> dict[str, tuple[float, float]]:
    """What another choice of tuning's seeds would have changed, with its degrees of freedom."""
    told, seeds = entry.get("variances"), entry.get("seeds")
    if not isinstance(told, dict) or not isinstance(seeds, list) or len(seeds) < 2:
        return {}
    return {phase: (value, len(seeds) - 1) for phase, each in told.items() if (value := finite(each)) is not None}


def _table_order(learner: LearnerRuns) -> tuple[int, int, bool, str]:
    """By group and rule, those that are not known last."""
    group = [*GROUPS, learner.group].index(learner.group)
    return group, [*RULE_ORDER, learner.rule].index(learner.rule), not learner.plain, learner.name


def _of_one_kind(runs: Sequence[ReportedRun], chosen: Fields | None, gaps: list[str]) -> tuple[ReportedRun, ...]:
    """Runs that differ in their seed only; a mean over others would be of nothing. Leftovers are named."""
    kinds: dict[tuple[object, ...], dict[int, ReportedRun]] = defaultdict(dict)
    for run in sorted(runs, key=lambda run: run.made):
        kinds[run.kind][run.seed] = run

    def rank(kind: dict[int, ReportedRun]) -> tuple[bool, int, int, float]:
        run = next(iter(kind.values()))
        is_chosen = bool(chosen) and all(run.settings.get(name) == value for name, value in (chosen or {}).items())
        return is_chosen, run.iterations, len(kind), max(run.made for run in kind.values())

    best = max(kinds.values(), key=rank)
    if len(kinds) > 1:
        run = next(iter(best.values()))
        gaps.append(
            f"{run.learner}, {run.phase}: runs with {len(kinds)} different settings lie in the folder; only those with "
            f"h {run.settings.get('h')}, mu {run.settings.get('mu')}, {run.iterations:,} iterations are used."
        )
    return tuple(best[seed] for seed in sorted(best))


def _missing(experiment: ReportedExperiment) -> Iterable[str]:
    learners, runs, declared = experiment.learners, experiment.runs, experiment.declared
    have = {learner.name for learner in learners}
    for name in declared_learners(declared):
        if name not in have:
            yield f"{name}: no finished run."
    if learners and not any(learner.runs("tuned") for learner in learners) and _has_grid(declared):
        yield "There is no tuned phase: tables show the fixed settings."
    if learners and not any(learner.runs("fixed") for learner in learners):
        yield "There is no phase with fixed settings: curves show the tuned settings."
    planned = declared.get("seeds")
    seeds = len(planned) if isinstance(planned, list) else planned if isinstance(planned, int) else 0
    for learner in learners:
        for phase, mine in learner.phases.items():
            if len(mine) < seeds:
                yield f"{learner.name}, {phase}: {counted(len(mine), 'seed')} of {seeds}."
    tested = not isinstance(data := declared.get("data"), dict) or "test" in data or bool(data.get("split"))
    if learners and tested and not any(run.value("test") is not None for run in runs):
        yield "No run has a test result."
    for part in ("sparsezo", "numpy", "numba"):
        versions = sorted({run.versions[part] for run in runs if part in run.versions})
        if len(versions) > 1:
            yield f"The runs were made with several versions of {part}: {', '.join(versions)}."
    tuned, chosen = {run.seed for learner in learners for run in learner.runs("tuned")}, experiment.tuning_seeds
    if tuned and experiment.tuning and chosen is None:
        yield "Which seeds chose h and mu was not recorded: tuned results may be of the same ones, and so too good."
    elif chosen and (both := sorted(tuned & chosen)):
        yield f"Seeds {', '.join(map(str, both))} chose h and mu and are in tuned results, too, which may be too good."


def _has_grid(declared: Fields) -> bool:
    """Whether a tuned phase is to be expected; without the plan, one is."""
    if isinstance(phases := declared.get("phases"), list):
        return "tuned" in phases
    learners = declared_learners(declared).values()
    return not learners or bool(declared.get("grid")) or any("grid" in item for item in learners)


def declared_learners(declared: Fields) -> dict[str, Fields]:
    """What a plan says of each learner, by the name that its runs carry."""
    found: dict[str, Fields] = {}
    listed = declared.get("learner")
    for item in listed if isinstance(listed, list) else ():
        if not isinstance(item, dict):
            continue
        models = item.get("feedback", "exact")
        for model in models if isinstance(models, list) else [models]:
            mine = {**item, "feedback": model}
            with contextlib.suppress(TypeError, ValueError):  # not of a plan that was ever run
                found[spec_name({"perturb": None, **mine})] = mine
    return found
