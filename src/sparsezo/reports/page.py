"""The report as one HTML page: what stands in it, gathered for its template, report.html.j2.

report_page(sections, command="sparsezo reproduce all")     # str
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sparsezo.experiments.phases import PHASES, RESULT_PHASES
from sparsezo.reports.claiming import Claim
from sparsezo.reports.comparisons import FAILS, HOLDS, Comparison
from sparsezo.reports.render import PlainTable, render
from sparsezo.reports.results import LearnerRuns, ReportedExperiment
from sparsezo.reports.tables import NOTHING, about_text, count_text, spread_text, time_text
from sparsezo.words import counted

if TYPE_CHECKING:
    from sparsezo.reports.report import Section


def report_title(experiments: Sequence[ReportedExperiment]) -> str:
    """The paper's experiments stand beside the paper; one's own have their own."""
    if all(experiment.own for experiment in experiments):
        return ", ".join(experiment.title for experiment in experiments)
    return "Results beside the paper's"


def report_page(sections: Sequence[Section], command: str | None = None) -> str:
    experiments = [section.experiment for section in sections]
    own = all(experiment.own for experiment in experiments)
    return render(
        "report.html.j2",
        title=report_title(experiments) if own else "sparsezo: results beside the paper's",
        own=own,
        sections=[_section(section) for section in sections],
        command=command,
    )


def _section(section: Section) -> dict[str, Any]:
    return {
        "slug": section.slug,
        "title": section.experiment.title,
        "task": section.experiment.about.title if section.experiment.about else section.experiment.task,
        "results": f"{section.table.ranked_by.capitalize()} results",
        "summary": " ".join(section.summary),
        "gaps": section.experiment.gaps,
        "table": section.table,
        "figures": section.figures,
        "claims": [_claim(claim) for claim in section.claims],
        "statistics": _statistics(section.claims),
        "making": making(section.experiment),
    }


def _claim(claim: Claim) -> dict[str, Any]:
    rows = [_evidence(item) for item in claim.evidence]
    equal = any(item.equal_within is not None for item in claim.evidence)
    sides = ("as good, says the claim", "as") if equal else ("better, says the claim", "than")
    figures = ("lead", "95% interval", "p", "could have been seen", "over test inputs")
    head = (sides[0], "mean ± sd", sides[1], "mean ± sd", *figures, "settings", "", "")
    return {
        "kind": {HOLDS: "good", FAILS: "bad"}.get(claim.verdict),
        "title": claim.title,
        "source": claim.source,
        "verdict": claim.verdict,
        "words": claim.words,
        "quantity": claim.evidence[0].quantity.name if claim.evidence else "",
        "evidence": PlainTable(head, rows, words=(2, 10, 11)),
    }


def _evidence(item: Comparison) -> tuple[str, ...]:
    digits = item.quantity.digits
    p = item.p_value if item.p_adjusted is None else item.p_adjusted
    return (
        item.left,
        item.figure(item.left_values),
        item.right,
        item.figure(item.right_values),
        f"{item.lead:+.{digits}f}",
        "one seed" if item.margin is None else f"± {item.margin:.{digits}f}{' paired' if item.paired else ''}",
        NOTHING if p is None else f"{p:.2g}",
        NOTHING if item.detectable is None else f"{item.detectable:.{digits}f}",
        NOTHING if item.inputs is None else f"{item.inputs[0]:+.{digits}f} to {item.inputs[1]:+.{digits}f}",
        item.phase,
        item.verdict,
        item.aside,
    )


def _statistics(claims: Sequence[Claim]) -> str:
    """What a verdict rests on."""
    evidence = [item for claim in claims for item in claim.evidence]
    how = (
        "seed by seed"
        if evidence and all(item.paired for item in evidence if not item.has_bound)
        else ("seed by seed where both learners have the same seeds, else Welch's")
    )
    text = (
        f"A comparison counts where the difference of means over seeds ({how}) is significant at 5%; with several in "
        "one claim, after Holm's correction for their number (column p). The 95% intervals are of single comparisons. "
        "Where nothing can be said stands the gap that four of five such experiments would have shown. Equal up to a "
        "margin: two one-sided tests at 5%. "
    )
    if any(item.inputs is not None for item in evidence):
        return text + (
            "Over test inputs: the 95% interval of the same difference over 1,000 test sets drawn from this one "
            "(paired bootstrap); it is no part of the verdict."
        )
    return text + "These runs recorded no counts by test input, so there is no interval over test sets."


# How it was made


def making(experiment: ReportedExperiment) -> dict[str, Any]:
    runs = experiment.runs
    versions = {
        part: ", ".join(sorted({run.versions[part] for run in runs if part in run.versions}))
        for part in ("sparsezo", "python", "numpy", "numba")
    }
    return {
        "runs": counted(len(runs), "run"),
        "phases": ", ".join(f"{n} {phase}" for phase in PHASES if (n := sum(run.phase == phase for run in runs))),
        "duration": _duration(sum(run.value("seconds") or 0.0 for run in runs)),
        "data": experiment.data,
        "versions": ", ".join(f"{part} {told}" for part, told in versions.items() if told) or "not recorded",
        "note": experiment.declared.get("note"),
        "settings": _settings(experiment),
        "tuning": _tuning(experiment.tuning) if experiment.tuning else None,
        "declared": experiment.declared_text,
    }


def _settings(experiment: ReportedExperiment) -> PlainTable:
    head = ["learner", "settings", "step", "criterion", "h", "mu", "seeds", "iterations", "update fraction"]
    head += ["µs a step", "n", "n active", "n score", "seconds"]
    rows = [
        _settings_row(learner, phase)
        for learner in experiment.learners
        for phase in RESULT_PHASES
        if learner.runs(phase)
    ]
    return PlainTable(head, rows, words=(1, 2, 3, 6))


def _settings_row(learner: LearnerRuns, phase: str) -> tuple[str, ...]:
    runs = learner.runs(phase)
    told = [_text(runs[0].settings.get(name)) for name in ("step", "criterion", "h", "mu")]
    means = {name: learner.spread(phase, name) for name in ("us_per_iteration", "n", "n_active", "n_score", "seconds")}
    figures = [NOTHING if spread is None else f"{spread.mean:,.4g}" for spread in means.values()]
    if times := means["us_per_iteration"]:
        figures[0] = time_text(min(times.values))
    if n := means["n"]:
        figures[1] = about_text(n.mean)
    seeds = ", ".join(str(run.seed) for run in runs)
    fraction = spread_text(learner.spread(phase, "update_fraction"), 3)
    return (learner.name, phase, *told, seeds, count_text(runs[0].iterations), fraction, *figures)


def _tuning(tuning: Mapping[str, Any]) -> PlainTable:
    """The trials of each learner, the chosen one in bold."""
    rows: list[tuple[str, ...]] = []
    bold = set()
    for name, entry in tuning.items():
        if not isinstance(entry, Mapping):
            continue
        chosen = entry.get("chosen") or {}
        note = ", ".join(
            str(part) for part in ("grid widened" if entry.get("widened") else "", entry.get("note")) if part
        )
        for trial in entry.get("trials") or ():
            is_chosen = (trial.get("h"), trial.get("mu")) == (chosen.get("h"), chosen.get("mu"))
            if is_chosen:
                bold.add(len(rows))
            dev = trial.get("dev")
            told = [_text(trial.get("h")), _text(trial.get("mu")), NOTHING if dev is None else f"{dev:.4f}"]
            told += [count_text(trial["iterations"]) if trial.get("iterations") else NOTHING]
            told += [_text(trial.get("seeds"))]
            rows.append((str(name), *told, "chosen" if is_chosen else "", note if is_chosen else ""))
            note = "" if is_chosen else note
    head = ("learner", "h", "mu", "dev", "iterations", "seeds", "", "")
    return PlainTable(head, rows, words=(6, 7), chosen=frozenset(bold))


def _text(value: object) -> str:
    if value is None:
        return NOTHING
    return f"{value:g}" if isinstance(value, float) else str(value)


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
