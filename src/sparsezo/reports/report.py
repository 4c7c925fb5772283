"""The report on one or several experiments: tables beside the paper's, figures, claims checked in words, its making.

    write_report(["out/chunking", "out/smt"], "out/report")

writes ``report.html`` (one file that opens offline), ``table.md``, ``table.csv``, ``curves.csv``, ``verdicts.json`` and
``figures/`` with each figure as SVG and PNG. It reads what finished runs left in their folders and computes nothing
anew; what is missing is said in the report.
"""

from __future__ import annotations

import csv
import io
import math
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparsezo.errors import SparsezoError, UsageError
from sparsezo.reports.answers import of_answers
from sparsezo.reports.answers_page import answers_page
from sparsezo.reports.claiming import Claim
from sparsezo.reports.claims import check_claims
from sparsezo.reports.comparisons import FAILS, HOLDS, UNDECIDED
from sparsezo.reports.figures.draw import draw_figures
from sparsezo.reports.figures.sheet import Figure, need_matplotlib
from sparsezo.reports.noise import noise_sentences
from sparsezo.reports.page import report_page, report_title
from sparsezo.reports.published import VERDICTS
from sparsezo.reports.reading import read_experiment
from sparsezo.reports.render import need_jinja2
from sparsezo.reports.results import LearnerRuns, ReportedExperiment
from sparsezo.reports.tables import Table, make_table, spread_text
from sparsezo.storage.files import write_text
from sparsezo.storage.sealed import write_sealed
from sparsezo.words import counted

CURVE_COLUMNS = (
    "experiment",
    "task",
    "learner",
    "phase",
    "seed",
    "h",
    "mu",
    "iterations",
    "average_loss",
    "dev",
    "answers",
)


@dataclass(frozen=True, eq=False)
class Section:
    """All of the report on one experiment."""

    experiment: ReportedExperiment
    slug: str
    table: Table
    figures: tuple[Figure, ...]
    claims: tuple[Claim, ...]
    summary: tuple[str, ...]


def write_report(
    folders: Sequence[str | os.PathLike[str]], target: str | os.PathLike[str], command: str | None = None
) -> Path:
    """Write the report on the experiments in ``folders``; gives the path of its ``report.html``.

    ``command`` is what made the runs, to be shown as it is.
    """
    if not folders:
        raise UsageError("a report needs at least one folder of results")
    need_matplotlib()
    need_jinja2()
    experiments = [read_experiment(folder) for folder in folders]
    if not any(experiment.learners for experiment in experiments):
        listed = ", ".join(str(folder) for folder in folders)
        raise UsageError(f"{listed}: no finished runs to report on; let 'sparsezo reproduce' finish some first")
    target = Path(target)
    try:
        (target / "figures").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SparsezoError(f"{target}: cannot be made ({error.strerror or error}); name another folder") from None
    if all(map(of_answers, experiments)):
        return _write_answers(experiments, target, command)
    sections = _sections(experiments, target / "figures")
    write_text(target / "table.md", markdown(sections))
    write_text(target / "table.csv", _csv(record for section in sections for record in section.table.records()))
    write_text(target / "curves.csv", _csv(_curve_points(experiments), CURVE_COLUMNS))
    write_sealed(target / VERDICTS, verdicts(sections))
    write_text(target / "report.html", report_page(sections, command))
    return target / "report.html"


def _write_answers(experiments: Sequence[ReportedExperiment], target: Path, command: str | None) -> Path:
    slugs: list[str] = []
    for experiment in experiments:
        slugs.append(_slug(experiment.task if not experiment.own else experiment.name, set(slugs)))
    page, tables, records = answers_page(list(zip(slugs, experiments, strict=True)), target / "figures", command)
    write_text(target / "table.md", tables)
    write_text(target / "table.csv", _csv(records))
    write_text(target / "curves.csv", _csv(_curve_points(experiments), CURVE_COLUMNS))
    write_text(target / "report.html", page)
    return target / "report.html"


def _sections(experiments: Sequence[ReportedExperiment], figures: Path) -> list[Section]:
    sections: list[Section] = []
    for experiment in experiments:
        slug = _slug(experiment.name, {section.slug for section in sections})
        table, claims = make_table(experiment), check_claims(experiment)
        drawn = tuple(draw_figures(experiment, figures, slug))
        summary = tuple(summarise(experiment, table, claims))
        sections.append(Section(experiment, slug, table, drawn, claims, summary))
    return sections


def _slug(name: str, taken: set[str]) -> str:
    """A name for files and anchors, each once."""
    slug = base = re.sub(r"[^a-z0-9]+", "-", name.lower())[:60].strip("-") or "experiment"
    number = 2
    while slug in taken:
        slug, number = f"{base}-{number}", number + 1
    return slug


def summarise(experiment: ReportedExperiment, table: Table, claims: Sequence[Claim]) -> Iterator[str]:
    """The main figures in a few sentences."""
    best = next((row for row in table.rows if row.best), None)
    whose = "" if experiment.own else f"{experiment.title}: "
    if best is None:
        yield f"{whose}no zeroth-order learner has a result on test or dev."
    else:
        seeds = f"{counted(len(best.seeds), 'seed')}, {best.phase} settings"
        count = len({row.learner for row in table.rows if row.zeroth_order})  # some have rows for several settings
        rank = (
            f"has the best mean of {count} zeroth-order learners" if count > 1 else "is the only zeroth-order learner"
        )
        figure = spread_text(getattr(best, table.ranked_by))
        yield f"{whose}{best.learner} {rank}, {table.ranked_by} {table.metric} {figure} ({seeds})."
    yield from noise_sentences(experiment)
    yield from _beside_the_paper(table)
    others = [
        f"{learner.name} reaches {text}"
        for learner in _yardsticks(experiment)
        if (text := _test_text(learner, experiment.retuned)) is not None
    ]
    if others:
        yield f"For comparison: {'; '.join(others)}."
    if claims:
        yield _verdicts(claims)


def _verdicts(claims: Sequence[Claim]) -> str:
    hold, fail, open_ = (sum(claim.verdict == verdict for claim in claims) for verdict in (HOLDS, FAILS, UNDECIDED))
    holds, does = "holds" if hold == 1 else "hold", "does" if fail == 1 else "do"
    checked = counted(len(claims), "claim")
    return f"Of {checked} checked, {hold} {holds}, {fail} {does} not, and {open_} cannot be decided."


def _beside_the_paper(table: Table) -> Iterator[str]:
    rows = [row for row in table.rows if row.difference is not None and row.seeds]
    if rows:
        low = min(rows, key=lambda row: row.difference or 0.0)
        high = max(rows, key=lambda row: row.difference or 0.0)
        above = sum((row.difference or 0.0) >= 0 for row in rows)
        learners = "learner is" if len(rows) == 1 else "learners are"
        yield (
            f"Beside the paper's figures, {above} of {len(rows)} {learners} at or above them; the difference runs from "
            f"{low.difference:+.4f} ({low.learner}) to {high.difference:+.4f} ({high.learner})."
        )


def _yardsticks(experiment: ReportedExperiment) -> Iterable[LearnerRuns]:
    return (learner for learner in experiment.drawn if not learner.zeroth_order)


def _test_text(learner: LearnerRuns, with_phase: bool) -> str | None:
    phase = learner.best_phase()
    test = learner.spread(phase, "test") if phase else None
    if not test:
        return None
    return f"{spread_text(test)} ({phase} settings)" if with_phase else spread_text(test)


def markdown(sections: Sequence[Section]) -> str:
    """table.md: the tables, what is missing, and the verdicts on the claims."""
    parts = [f"# {report_title([section.experiment for section in sections])}", ""]
    for section in sections:
        parts.append(section.table.markdown())
        if section.experiment.gaps:
            parts += ["Missing or odd:", "", *(f"- {gap}" for gap in section.experiment.gaps), ""]
        if section.claims:
            parts += ["Claims:", "", *(_claim_line(claim) for claim in section.claims), ""]
    return "\n".join(parts)


def verdicts(sections: Sequence[Section]) -> dict[str, Any]:
    """verdicts.json: what was found, for whoever writes about it (published.py)."""
    fields = ("title", "source", "verdict", "words")
    return {
        "experiments": [section.experiment.name for section in sections],
        "signatures": [section.table.signature for section in sections],
        "summary": [sentence for section in sections for sentence in section.summary],
        "claims": [{name: getattr(claim, name) for name in fields} for section in sections for claim in section.claims],
    }


def _claim_line(claim: Claim) -> str:
    return f"- **{claim.verdict}**: {claim.title} ({claim.source}): {claim.words}."


def _curve_points(experiments: Iterable[ReportedExperiment]) -> Iterator[dict[str, Any]]:
    """All curves in long form, also those of tuning."""
    for experiment in experiments:
        for run in sorted(experiment.runs, key=lambda run: (run.learner, run.phase, run.seed)):
            if run.curve is None:
                continue
            settings = {"h": run.settings.get("h"), "mu": run.settings.get("mu")}
            start: dict[str, Any] = {"experiment": experiment.name, "task": experiment.task, "learner": run.learner}
            start |= {"phase": run.phase, "seed": run.seed, **settings}
            columns = (run.curve.iterations.tolist(), run.curve.average_loss.tolist(), run.curve.dev.tolist())
            answers = [math.nan] * len(columns[0]) if run.curve.answers is None else run.curve.answers.tolist()
            for step, loss, dev, told in zip(*columns, answers, strict=True):
                point = {"iterations": step, "average_loss": _known(loss), "dev": _known(dev)}
                yield start | point | {"answers": "" if math.isnan(told) else int(told)}


def _known(value: float) -> float | str:
    return "" if math.isnan(value) else value


def _csv(records: Iterable[dict[str, Any]], columns: Sequence[str] | None = None) -> str:
    rows = list(records)
    stream = io.StringIO()
    writer = csv.DictWriter(stream, columns or list(rows[0] if rows else {}), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()
