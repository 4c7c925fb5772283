"""Reading an experiment's folder back: experiment.toml, runs/*/run.json and curve.csv, tuning.json, bounds.json.

    experiment = read_experiment("out/chunking")
    experiment.gaps                          # what is missing or odd, in sentences

Nothing here stops at a missing piece: it is left out and named in ``gaps``. What would make a wrong table, such as runs
of two experiments in one folder, is an error.
"""

from __future__ import annotations

import csv
import json
import os
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sparsezo.errors import DataError, UsageError
from sparsezo.experiments.phases import RESULT_PHASES
from sparsezo.reports.results import GROUPS, RULE_ORDER, Curve, LearnerRuns, ReportedExperiment, ReportedRun
from sparsezo.settings import learner_name


def read_experiment(folder: str | os.PathLike[str]) -> ReportedExperiment:
    folder = Path(folder)
    if not folder.is_dir():
        raise UsageError(f"{folder}: no such folder; name one that 'sparsezo reproduce' wrote")
    gaps: list[str] = []
    text, declared = _read_toml(folder / "experiment.toml", gaps)
    tuning = _read_json(folder / "tuning.json", gaps)
    bounds = _read_json(folder / "bounds.json", gaps)
    runs, names = _read_runs(folder, gaps)
    if len(names) > 1:
        listed = ", ".join(sorted(f"{name} ({task})" for name, task in names))
        raise DataError(str(folder), f"holds runs of several experiments, {listed}; give each a folder of its own")
    name, task = next(iter(names), (str(declared.get("name", folder.name)), str(declared.get("task", "unknown"))))
    metric = next((str(run.result["metric"]) for run in runs if run.result.get("metric")), "")
    learners = _learners(runs, tuning, gaps)
    gaps += _missing(learners, runs, declared)
    return ReportedExperiment(
        folder, name, task, metric, tuple(runs), learners, declared, text, tuning, bounds, tuple(dict.fromkeys(gaps))
    )


def _read_toml(path: Path, gaps: list[str]) -> tuple[str, dict[str, Any]]:
    try:
        text = path.read_text(encoding="utf-8")
        return text, tomllib.loads(text)
    except FileNotFoundError:
        gaps.append(f"{path.name} is missing: data and planned seeds are not known.")
    except (OSError, ValueError) as error:
        gaps.append(f"{path.name} cannot be read ({error}).")
    return "", {}


def _read_json(path: Path, gaps: list[str]) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        gaps.append(f"{path.name} cannot be read ({error}).")
        return {}
    return value if isinstance(value, dict) else {}


def _read_runs(folder: Path, gaps: list[str]) -> tuple[list[ReportedRun], set[tuple[str, str]]]:
    runs, names, unfinished = [], set(), 0
    for path in sorted((folder / "runs").glob("*/")):
        if not (path / "run.json").exists():
            unfinished += 1
            continue
        fields = _read_json(path / "run.json", gaps)
        try:
            runs.append(_run(fields, path, gaps))
            names.add((str(fields["experiment"]), str(fields["task"])))
        except (KeyError, TypeError, ValueError) as error:
            gaps.append(f"runs/{path.name}/run.json is not a run ({type(error).__name__}: {error}); left out.")
    if unfinished:
        gaps.append(f"{unfinished} run{'s are' if unfinished > 1 else ' is'} not finished.")
    return runs, names


def _run(fields: Mapping[str, Any], path: Path, gaps: list[str]) -> ReportedRun:
    paper = fields.get("paper")
    return ReportedRun(
        str(fields["learner"]),
        str(fields["phase"]),
        int(fields["seed"]),
        dict(fields["settings"]),
        int(fields["iterations"]),
        dict(fields["result"]),
        dict(fields.get("test_report") or {}),
        {str(k): str(v) for k, v in (fields.get("versions") or {}).items()},
        float(paper) if paper is not None else None,
        _read_curve(path / "curve.csv", gaps),
        str(fields.get("data", "")),
        (path / "run.json").stat().st_mtime,
    )


def _read_curve(path: Path, gaps: list[str]) -> Curve | None:
    try:
        with open(path, encoding="utf-8", newline="") as stream:
            rows = list(csv.DictReader(stream))
        columns = [
            np.array([float(row[name] or "nan") for row in rows]) for name in ("iterations", "average_loss", "dev")
        ]
    except (OSError, KeyError, TypeError, ValueError):
        gaps.append(f"runs/{path.parent.name}/curve.csv is missing or cannot be read: the run has no curve.")
        return None
    return Curve(columns[0].astype(np.int64), columns[1], columns[2])


def _learners(runs: Sequence[ReportedRun], tuning: Mapping[str, Any], gaps: list[str]) -> tuple[LearnerRuns, ...]:
    found: dict[str, dict[str, list[ReportedRun]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        if run.phase in RESULT_PHASES:
            found[run.learner][run.phase].append(run)
    learners = []
    for name, phases in found.items():
        chosen = tuning.get(name, {}).get("chosen") if isinstance(tuning.get(name), dict) else None
        kept = {phase: _of_one_kind(mine, chosen if phase == "tuned" else None, gaps) for phase, mine in phases.items()}
        settings = next(iter(kept.values()))[0].settings
        rule, feedback = str(settings.get("rule", name)), str(settings.get("feedback", "exact"))
        learners.append(LearnerRuns(name, rule, settings.get("perturb"), _plain(settings), kept, feedback))
    return tuple(sorted(learners, key=_table_order))


def _plain(settings: Mapping[str, Any]) -> bool:
    ours = settings.get("step", "constant") != "constant" or settings.get("criterion", "map") != "map"
    return not ours and not settings.get("baseline") and settings.get("feedback", "exact") == "exact"


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
    for name in _declared_names(declared):
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
            if len(mine) < max(seeds, 2):
                yield f"{learner.name}, {phase}: {len(mine)} seed{'s' if len(mine) > 1 else ''}" + (
                    f" of {seeds}." if seeds > len(mine) else ", so no standard deviation."
                )
    if learners and not any(run.value("test") is not None for run in runs):
        yield "No run has a test result."
    for part in ("sparsezo", "numpy", "numba"):
        versions = sorted({run.versions[part] for run in runs if part in run.versions})
        if len(versions) > 1:
            yield f"The runs were made with several versions of {part}: {', '.join(versions)}."


def _has_grid(declared: Mapping[str, Any]) -> bool:
    """Whether a tuned phase is to be expected; without the plan, one is."""
    learners = declared.get("learner") or ()
    return not learners or bool(declared.get("grid")) or any("grid" in item for item in learners)


def _declared_names(declared: Mapping[str, Any]) -> list[str]:
    """The names that the learners' runs carry."""
    names = []
    for item in declared.get("learner") or ():
        models = item.get("feedback", "exact")
        for model in models if isinstance(models, list) else [models]:
            names.append(learner_name({"perturb": None, **item, "feedback": model}))
    return names
