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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sparsezo.errors import DamagedError, DataError, UsageError, one_line
from sparsezo.experiments.learners import spec_name
from sparsezo.experiments.phases import RESULT_PHASES
from sparsezo.experiments.records import read_counts, read_curve, read_record
from sparsezo.experiments.reproduce import PLAN_FILE
from sparsezo.experiments.toml import parse_toml
from sparsezo.reports.results import GROUPS, RULE_ORDER, Curve, LearnerRuns, ReportedExperiment, ReportedRun
from sparsezo.storage.sealed import read_sealed, read_whole, unseal_toml
from sparsezo.words import counted

_ANEW = "the command that made it writes it anew"


def read_experiment(folder: str | os.PathLike[str]) -> ReportedExperiment:
    folder = Path(folder)
    if not folder.is_dir():
        raise UsageError(f"{folder}: no such folder; name one that 'sparsezo reproduce' wrote")
    gaps: list[str] = []
    text, declared = _read_toml(folder, gaps)
    tuning = _read_json(folder, "tuning.json", gaps, _check_tuning)
    bounds = _read_json(folder, "bounds.json", gaps)
    runs, names = _read_runs(folder, gaps)
    if len(names) > 1:
        listed = ", ".join(sorted(f"{name} ({task})" for name, task in names))
        raise DataError(str(folder), f"holds runs of several experiments, {listed}; give each a folder of its own")
    name, task = next(iter(names), (str(declared.get("name", folder.name)), str(declared.get("task", "unknown"))))
    metric = next((str(run.result["metric"]) for run in runs if run.result.get("metric")), "")
    learners = _learners(runs, tuning, gaps)
    gaps += _missing(learners, runs, declared)
    found = ReportedExperiment(folder, name, task, metric, tuple(runs), learners, declared, text, tuning, bounds)
    gaps += _chosen_by(found)
    return replace(found, gaps=tuple(dict.fromkeys(map(one_line, gaps))))


def _chosen_by(experiment: ReportedExperiment) -> Iterable[str]:
    """Results of seeds that chose h and mu are better than they should be."""
    seeds = {run.seed for learner in experiment.learners for run in learner.runs("tuned")}
    chosen = experiment.tuning_seeds
    if seeds and experiment.tuning and chosen is None:
        yield "Which seeds chose h and mu was not recorded: tuned results may be of the same ones, and so too good."
    elif chosen and (both := sorted(seeds & chosen)):
        yield f"Seeds {', '.join(map(str, both))} chose h and mu and are in tuned results, too, which may be too good."


def _told(error: DataError, folder: Path) -> str:
    """A gap: named from the folder on, which the reader knows."""
    return str(error).removeprefix(f"{folder}{os.sep}") + "."


def _read_toml(folder: Path, gaps: list[str]) -> tuple[str, dict[str, Any]]:
    path = folder / PLAN_FILE
    try:
        text = read_whole(path, _ANEW)
        if text is not None:
            text = unseal_toml(text, str(path), _ANEW)
            if declared := parse_toml(text, str(path)):
                return text, declared
            raise DamagedError(str(path), "it is empty", _ANEW)
        gaps.append(f"{path.name} is missing: data and planned seeds are not known.")
    except DataError as error:
        gaps.append(_told(error, folder))
    return "", {}


def _read_json(
    folder: Path, name: str, gaps: list[str], check: Callable[[dict[str, Any]], bool] = lambda value: True
) -> dict[str, Any]:
    try:
        value = read_sealed(folder / name, _ANEW) or {}
        if not check(value):
            raise DamagedError(str(folder / name), "it is not what tuning writes", _ANEW)
    except DamagedError as error:
        gaps.append(_told(error, folder))
        return {}
    return value


def _check_tuning(value: Mapping[str, Any]) -> bool:
    """Of files without a sum: entries are of the form that tuning gives them."""
    number, nothing = (int, float), type(None)

    def fits(table: Any, kinds: Mapping[str, Any]) -> bool:
        return isinstance(table, dict) and all(isinstance(table.get(key), kind) for key, kind in kinds.items())

    about = {"trials": (list, nothing), "chosen": (dict, nothing), "widened": (int, nothing), "note": (str, nothing)}
    about["seeds"] = (list, nothing)
    trial = dict.fromkeys(("h", "mu", "dev", "iterations", "seeds"), (*number, nothing))
    point = dict.fromkeys(("h", "mu"), (*number, nothing))
    return all(
        fits(entry, about)
        and fits(entry.get("chosen") or {}, point)
        and all(fits(each, trial) for each in entry.get("trials") or ())
        for entry in value.values()
        if isinstance(entry, dict)
    )


def _read_runs(folder: Path, gaps: list[str]) -> tuple[list[ReportedRun], set[tuple[str, str]]]:
    runs, names, unfinished = [], set(), 0
    for path in sorted((folder / "runs").glob("*/")):
        try:
            record = read_record(path)
        except DamagedError as error:
            gaps.append("Left out: " + _told(error, folder))
            continue
        if record is None:
            unfinished += 1
            continue
        runs.append(_run(record, path, folder, gaps))
        names.add((record["experiment"], record["task"]))
    if unfinished:
        gaps.append(f"{unfinished} run{'s are' if unfinished > 1 else ' is'} not finished.")
    return runs, names


def _run(record: dict[str, Any], path: Path, folder: Path, gaps: list[str]) -> ReportedRun:
    paper, curve, counts = record.get("paper"), None, None
    whose = f"{record['learner']}, {record['phase']}, seed {record['seed']}"
    try:
        curve = Curve(*read_curve(path, record))
    except DamagedError as error:
        gaps.append(f"{whose}, has no curve: {_told(error, folder)}")
    try:
        counts = read_counts(path, record)
    except DamagedError as error:
        gaps.append(f"{whose}, has no counts by test input: {_told(error, folder)}")
    return ReportedRun(
        record["learner"],
        record["phase"],
        record["seed"],
        record["settings"],
        record["iterations"],
        record["result"],
        record.get("test_report") or {},
        {str(k): str(v) for k, v in (record.get("versions") or {}).items()},
        float(paper) if paper is not None else None,
        curve,
        record.get("data", ""),
        (path / "run.json").stat().st_mtime,
        counts,
    )


def _learners(runs: Sequence[ReportedRun], tuning: Mapping[str, Any], gaps: list[str]) -> tuple[LearnerRuns, ...]:
    found: dict[str, dict[str, list[ReportedRun]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        if run.phase in RESULT_PHASES:
            found[run.learner][run.phase].append(run)
    learners = []
    for name, phases in found.items():
        chosen = _chosen(tuning, name)
        kept = {phase: _of_one_kind(mine, chosen if phase == "tuned" else None, gaps) for phase, mine in phases.items()}
        settings = next(iter(kept.values()))[0].settings
        rule, feedback = str(settings.get("rule", name)), str(settings.get("feedback", "exact"))
        perturb = settings.get("perturb")
        named = None if perturb is None else str(perturb)
        annealed = settings.get("criterion") == "annealed"
        learners.append(LearnerRuns(name, rule, named, _plain(settings), kept, feedback, annealed))
    return tuple(sorted(learners, key=_table_order))


def _chosen(tuning: Mapping[str, Any], learner: str) -> Mapping[str, Any] | None:
    """The h and mu that were found for it."""
    entry = tuning.get(learner)
    chosen = entry.get("chosen") if isinstance(entry, dict) else None
    return chosen if isinstance(chosen, dict) else None


def _plain(settings: Mapping[str, Any]) -> bool:
    other = settings.get("step", "constant") != "constant" or settings.get("criterion", "map") != "map"
    return not other and not settings.get("baseline") and settings.get("feedback", "exact") == "exact"


def _table_order(learner: LearnerRuns) -> tuple[int, int, bool, str]:
    return _place(learner.group, tuple(GROUPS)), _place(learner.rule, RULE_ORDER), not learner.plain, learner.name


def _place(name: str, names: Sequence[str]) -> int:
    return names.index(name) if name in names else len(names)


def _of_one_kind(
    runs: Sequence[ReportedRun], chosen: Mapping[str, Any] | None, gaps: list[str]
) -> tuple[ReportedRun, ...]:
    """Runs that differ in their seed only; a mean over others would be of nothing. Leftovers are named."""
    kinds: dict[tuple[Any, ...], dict[int, ReportedRun]] = defaultdict(dict)
    for run in sorted(runs, key=lambda run: run.made):
        kinds[run.kind][run.seed] = run

    def rank(kind: dict[int, ReportedRun]) -> tuple[bool, int, int, float]:
        run = next(iter(kind.values()))
        is_chosen = bool(chosen) and all(run.settings.get(k) == v for k, v in (chosen or {}).items())
        return is_chosen, run.iterations, len(kind), max(run.made for run in kind.values())

    best = max(kinds.values(), key=rank)
    if len(kinds) > 1:
        run = next(iter(best.values()))
        gaps.append(
            f"{run.learner}, {run.phase}: runs with {len(kinds)} different settings lie in the folder; only those with "
            f"h {run.settings.get('h')}, mu {run.settings.get('mu')}, {run.iterations:,} iterations are used."
        )
    return tuple(best[seed] for seed in sorted(best))


def _missing(
    learners: Sequence[LearnerRuns], runs: Sequence[ReportedRun], declared: Mapping[str, Any]
) -> Iterable[str]:
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


def _has_grid(declared: Mapping[str, Any]) -> bool:
    """Whether a tuned phase is to be expected; without the plan, one is."""
    if isinstance(phases := declared.get("phases"), list):
        return "tuned" in phases
    learners = _declared_learners(declared)
    return not learners or bool(declared.get("grid")) or any("grid" in item for item in learners)


def _declared_learners(declared: Mapping[str, Any]) -> list[dict[str, Any]]:
    listed = declared.get("learner")
    return [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []


def declared_learners(declared: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What a plan says of each learner, by the name that its runs carry."""
    found = {}
    for item in _declared_learners(declared):
        models = item.get("feedback", "exact")
        for model in models if isinstance(models, list) else [models]:
            mine = {**item, "feedback": model}
            with contextlib.suppress(TypeError, ValueError):  # not of a plan that was ever run
                found[spec_name({"perturb": None, **mine})] = mine
    return found
