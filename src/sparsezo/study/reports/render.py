"""Pages from the templates of this folder: style and figures stand in them, nothing is fetched, all else is escaped.

    render("scaling.html.j2", title=title, figure=figure, words=words, exponents=table, command=command)
    making(experiment)                      # what the end of every page says: runs, versions, settings, trials

Jinja2 is imported when it is needed.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from sparsezo.messages import counted
from sparsezo.study.plan import PHASES, SHOWN_PHASES
from sparsezo.study.reports.results import Fields, LearnerRuns, ReportedExperiment
from sparsezo.study.reports.tables import (
    NOTHING,
    PlainTable,
    about_text,
    count_text,
    number_text,
    spread_text,
    time_text,
)

if TYPE_CHECKING:
    from jinja2 import Environment

PACKAGE = "sparsezo.study.reports"


def render(template: str, **context: object) -> str:
    """The page that ``template`` makes of plain data."""
    return _environment().get_template(template).render(context)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    how: Fields = {"trim_blocks": True, "lstrip_blocks": True, "keep_trailing_newline": True}
    environment = Environment(loader=PackageLoader(PACKAGE), autoescape=True, undefined=StrictUndefined, **how)
    # All that goes into a page as it is: our stylesheet, and figures as they were drawn
    environment.globals["style"] = Markup(files(PACKAGE).joinpath("templates", "style.css").read_text("utf-8"))
    environment.filters["inline_svg"] = lambda figure: Markup(figure.inline_svg())
    return environment


def making(experiment: ReportedExperiment) -> dict[str, object]:
    """For the template's macro of this name: its runs, data, versions, settings, trials of tuning and plan."""
    runs = experiment.runs
    versions = {
        part: ", ".join(sorted({run.versions[part] for run in runs if part in run.versions}))
        for part in ("sparsezo", "python", "numpy", "numba")
    }
    seconds = sum(run.value("seconds") or 0.0 for run in runs)
    minutes = f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
    return {
        "runs": counted(len(runs), "run"),
        "phases": ", ".join(f"{n} {phase}" for phase in PHASES if (n := sum(run.phase == phase for run in runs))),
        "duration": f"{seconds:.0f} s" if seconds < 120 else minutes,
        "data": experiment.data,
        "versions": ", ".join(f"{part} {told}" for part, told in versions.items() if told) or "not recorded",
        "note": experiment.declared.get("note"),
        "settings": _settings(experiment),
        "tuning": _tuning(experiment) if experiment.tuning else None,
        "declared": experiment.declared_text,
    }


def _settings(experiment: ReportedExperiment) -> PlainTable:
    head = ["learner", "settings", "step", "criterion", "h", "mu", "seeds", "iterations", "update fraction"]
    head += ["µs a step", "n", "n active", "n score", "seconds"]
    found = [(item, phase) for item in experiment.learners for phase in SHOWN_PHASES if item.runs(phase)]
    return PlainTable(head, [_settings_row(*each) for each in found], words=(1, 2, 3, 6))


def _settings_row(learner: LearnerRuns, phase: str) -> tuple[str, ...]:
    runs = learner.runs(phase)
    told = [_text(runs[0].settings.get(name)) for name in ("step", "criterion", "h", "mu")]
    seeds = ", ".join(str(run.seed) for run in runs)
    fraction, times, n = (learner.spread(phase, name) for name in ("update_fraction", "us_per_iteration", "n"))
    speed, size = time_text(min(times.values)) if times else NOTHING, about_text(n.mean) if n else NOTHING
    others = [learner.spread(phase, name) for name in ("n_active", "n_score", "seconds")]
    means = [f"{spread.mean:,.4g}" if spread else NOTHING for spread in others]
    done = (seeds, count_text(runs[0].iterations), spread_text(fraction, 3))
    return (learner.name, phase, *told, *done, speed, size, *means)


def _tuning(experiment: ReportedExperiment) -> PlainTable:
    """The trials of each learner, the chosen one in bold, the first of these with what is to be said of it."""
    rows: list[tuple[str, ...]] = []
    bold = set()
    for name, entry in experiment.tuned.items():
        chosen = entry.get("chosen") or {}
        notes = ("grid widened" if entry.get("widened") else "", entry.get("note"))
        note = ", ".join(str(part) for part in notes if part)
        for trial in entry.get("trials") or ():
            told = [_text(trial.get("h")), _text(trial.get("mu")), number_text(trial.get("dev"), ".4f")]
            told += [count_text(trial["iterations"]) if trial.get("iterations") else NOTHING, _text(trial.get("seeds"))]
            if (trial.get("h"), trial.get("mu")) == (chosen.get("h"), chosen.get("mu")):
                bold.add(len(rows))
                rows.append((name, *told, "chosen", note))
                note = ""
            else:
                rows.append((name, *told, "", ""))
    head = ("learner", "h", "mu", "dev", "iterations", "seeds", "", "")
    return PlainTable(head, rows, words=(6, 7), chosen=frozenset(bold))


def _text(value: object) -> str:
    return number_text(value) if value is None or isinstance(value, float) else str(value)
