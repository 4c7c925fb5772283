"""The report on one or several experiments: tables beside the paper's, figures, claims checked in words, its making.

    write_report(["out/chunking", "out/smt"], "out/report")

writes ``report.html`` (one file that opens offline), ``table.md``, ``table.csv``, ``curves.csv``, ``verdicts.json`` and
``figures/`` with each figure as SVG and PNG. It reads what finished runs left in their folders and computes nothing
anew; what is missing is said in the report.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path

from sparsezo.errors import UsageError, need
from sparsezo.messages import counted
from sparsezo.storage.checksummed import write_checksummed
from sparsezo.storage.files import write_text
from sparsezo.study.records import COLUMNS
from sparsezo.study.reports.answers import of_answers
from sparsezo.study.reports.answers_page import answers_page
from sparsezo.study.reports.claims import Claim, check_claims
from sparsezo.study.reports.comparisons import FAILS, HOLDS, UNDECIDED, Comparison
from sparsezo.study.reports.figures import Figure, curve_figures, drawing_style, figure_folder, results_figure
from sparsezo.study.reports.noise import noise_figure, noise_sentences
from sparsezo.study.reports.reading import read_experiment
from sparsezo.study.reports.render import making, render
from sparsezo.study.reports.results import Record, ReportedExperiment
from sparsezo.study.reports.tables import (
    NOTHING,
    SPEED_NOTE,
    PlainTable,
    Table,
    count_text,
    csv_text,
    make_speed_table,
    make_table,
    number_text,
    range_text,
    spread_text,
)

_POINT = COLUMNS[:4]  # those that every run has
_CURVES = ("experiment", "task", "learner", "phase", "seed", "h", "mu", *_POINT)


@dataclass(frozen=True, eq=False)
class Section:
    """All of the report on one experiment."""

    experiment: ReportedExperiment
    slug: str
    table: Table
    figures: Sequence[Figure]
    claims: Sequence[Claim]
    summary: Sequence[str]
    speed: PlainTable | None = None  # iterations to losses

    @property
    def all_paired(self) -> bool:
        evidence = [item for claim in self.claims for item in claim.evidence]
        return bool(evidence) and all(item.paired for item in evidence if not item.has_bound)

    @property
    def over_inputs(self) -> bool:
        """Runs have what test sets are drawn from."""
        return any(item.inputs is not None for claim in self.claims for item in claim.evidence)


def write_report(
    folders: Sequence[str | os.PathLike[str]], target: str | os.PathLike[str], command: str | None = None
) -> Path:
    """Write the report on the experiments in ``folders``; gives the path of its ``report.html``.

    ``command`` is what made the runs, to be shown as it is.
    """
    if not folders:
        raise UsageError("a report needs at least one folder of results")
    need("report")
    experiments = [read_experiment(folder) for folder in folders]
    if not any(experiment.learners for experiment in experiments):
        listed = ", ".join(str(folder) for folder in folders)
        raise UsageError(f"{listed}: no finished runs to report on; let 'sparsezo reproduce' finish some first")
    target = Path(target)
    figures = figure_folder(target)
    write_text(target / "curves.csv", csv_text(_curve_points(experiments), _CURVES))
    if all(map(of_answers, experiments)):
        slugs = _slugs([experiment.name if experiment.own else experiment.task for experiment in experiments])
        page, tables, records = answers_page(list(zip(slugs, experiments, strict=True)), figures, command)
    else:
        sections = make_sections(experiments, figures)
        page, tables = report_page(sections, command), markdown(sections)
        records = [record for section in sections for record in section.table.records()]
        write_checksummed(target / "verdicts.json", verdicts(sections))
    write_text(target / "table.md", tables)
    write_text(target / "table.csv", csv_text(records))
    write_text(target / "report.html", page)
    return target / "report.html"


def make_sections(experiments: Sequence[ReportedExperiment], figures: Path) -> list[Section]:
    """Each experiment's part of the report; its figures are drawn into the folder ``figures``."""
    sections = []
    for experiment, slug in zip(experiments, _slugs([each.name for each in experiments]), strict=True):
        table, claims = make_table(experiment), check_claims(experiment)
        drawn, summary = draw_figures(experiment, figures, slug), summarise(experiment, table, claims)
        sections.append(Section(experiment, slug, table, drawn, claims, list(summary), make_speed_table(experiment)))
    return sections


def draw_figures(experiment: ReportedExperiment, folder: Path, slug: str) -> list[Figure]:
    """Those that there are results for, each as SVG and PNG in ``folder``: noise, curves, test results."""
    with drawing_style():
        noise, test = noise_figure(experiment, folder, slug), results_figure(experiment, folder, slug)
        figures = [noise, *curve_figures(experiment, folder, slug), test]
    return [figure for figure in figures if figure is not None]


def _slugs(names: Sequence[str]) -> list[str]:
    """Names for files and anchors, each once."""
    slugs: list[str] = []
    for name in names:
        base = re.sub(r"[^a-z0-9]+", "-", name.lower())[:60].strip("-") or "experiment"
        numbered = (f"{base}-{number}" for number in count(2))
        slugs.append(next(slug for slug in chain([base], numbered) if slug not in slugs))
    return slugs


def summarise(experiment: ReportedExperiment, table: Table, claims: Sequence[Claim]) -> Iterator[str]:
    """The main figures in a few sentences."""
    if experiment.shorter:
        yield (
            f"These runs have {count_text(experiment.shorter[0])} iterations where the paper's have "
            f"{count_text(experiment.shorter[1])}: nothing here is a verdict on its claims."
        )
    best = next((row for row in table.rows if row.best), None)
    whose = "" if experiment.own else f"{experiment.title}: "
    if best is None:
        yield f"{whose}no zeroth-order learner has a result on test or dev."
    else:
        learners = len({row.learner for row in table.rows if row.zeroth_order})  # some have rows for several settings
        rank = f"has the best mean of {learners} zeroth-order learners"
        rank = rank if learners > 1 else "is the only zeroth-order learner"
        figure = f"{table.ranked_by} {table.metric} {spread_text(getattr(best, table.ranked_by))}"
        yield f"{whose}{best.learner} {rank}, {figure} ({counted(len(best.seeds), 'seed')}, {best.phase} settings)."
    yield from noise_sentences(experiment)
    rows = [(row.difference, row.learner) for row in table.rows if row.difference is not None and row.seeds]
    if rows:
        low, high = (pick(rows, key=lambda row: row[0]) for pick in (min, max))
        above = sum(difference >= 0 for difference, _ in rows)
        is_at = "learner is" if len(rows) == 1 else "learners are"
        yield (
            f"Beside the paper's figures, {above} of {len(rows)} {is_at} at or above them; the difference runs from "
            f"{low[0]:+.4f} ({low[1]}) to {high[0]:+.4f} ({high[1]})."
        )
    others = []
    for learner in experiment.drawn:
        phase, test = learner.best()
        if test is not None and not learner.zeroth_order:
            at = f" ({phase} settings)" if experiment.retuned else ""
            others.append(f"{learner.name} reaches {spread_text(test)}{at}")
    if others:
        yield f"For comparison: {'; '.join(others)}."
    if claims:
        hold, fail, open_ = (sum(claim.verdict == verdict for claim in claims) for verdict in (HOLDS, FAILS, UNDECIDED))
        holds, does = "holds" if hold == 1 else "hold", "does" if fail == 1 else "do"
        checked = counted(len(claims), "claim")
        yield f"Of {checked} checked, {hold} {holds}, {fail} {does} not, and {open_} cannot be decided."


def markdown(sections: Sequence[Section]) -> str:
    """table.md: the tables, what is missing, and the verdicts on the claims."""
    parts = [f"# {report_title([section.experiment for section in sections])}", ""]
    for section in sections:
        parts.append(section.table.markdown())
        if section.speed is not None:
            parts += ["### How fast", "", *section.speed.markdown(), "", SPEED_NOTE, ""]
        if section.experiment.gaps:
            parts += ["Missing or odd:", "", *(f"- {gap}" for gap in section.experiment.gaps), ""]
        if section.claims:
            parts += ["Claims:", ""]
            parts += [f"- **{each.verdict}**: {each.title} ({each.source}): {each.words}." for each in section.claims]
            parts.append("")
    return "\n".join(parts)


def verdicts(sections: Sequence[Section]) -> dict[str, object]:
    """verdicts.json: what was found, for whoever writes about it (benchmarks/findings.py)."""
    fields = ("title", "source", "verdict", "words")
    return {
        "experiments": [section.experiment.name for section in sections],
        "signatures": [section.table.signature for section in sections],
        "summary": [sentence for section in sections for sentence in section.summary],
        "claims": [{name: getattr(claim, name) for name in fields} for section in sections for claim in section.claims],
    }


def _curve_points(experiments: Iterable[ReportedExperiment]) -> Iterator[Record]:
    """All curves in long form, also those of tuning."""
    for experiment in experiments:
        for run in sorted(experiment.runs, key=lambda run: (run.learner, run.phase, run.seed)):
            start: Record = {"experiment": experiment.name, "task": experiment.task, "learner": run.learner}
            start |= {"phase": run.phase, "seed": run.seed, "h": run.settings.get("h"), "mu": run.settings.get("mu")}
            columns = [] if run.curve is None else [run.curve[name].tolist() for name in _POINT]
            for point in zip(*columns, strict=True):
                step, loss, dev, answers = ("" if math.isnan(value) else value for value in point)
                cells = (step, loss, dev, answers if answers == "" else int(answers))
                yield start | dict(zip(_POINT, cells, strict=True))


# The page


def report_title(experiments: Sequence[ReportedExperiment]) -> str:
    """The paper's experiments stand beside the paper; one's own have their own."""
    if all(experiment.own for experiment in experiments):
        return ", ".join(experiment.title for experiment in experiments)
    return "Results beside the paper's"


def report_page(sections: Sequence[Section], command: str | None = None) -> str:
    """The report as one HTML page."""
    experiments = [section.experiment for section in sections]
    own = all(experiment.own for experiment in experiments)
    title = report_title(experiments) if own else "sparsezo: results beside the paper's"
    functions = {"evidence_table": evidence_table, "making": making, "speed_note": SPEED_NOTE}
    return render("report.html.j2", title=title, own=own, sections=sections, command=command, **functions)


def evidence_table(claim: Claim) -> PlainTable:
    """The comparisons that a claim's verdict rests on."""
    equal = any(item.equal_within is not None for item in claim.evidence)
    better, than = ("as good, says the claim", "as") if equal else ("better, says the claim", "than")
    figures = ("lead", "95% interval", "p", "could have been seen", "over test inputs")
    head = (better, "mean ± sd", than, "mean ± sd", *figures, "settings", "", "")
    return PlainTable(head, [_evidence(item) for item in claim.evidence], words=(2, 10, 11))


def _evidence(item: Comparison) -> tuple[str, ...]:
    digits = item.quantity.digits
    return (
        item.left,
        spread_text(item.left_values, digits),
        item.right,
        spread_text(item.right_values, digits),
        f"{item.lead:+.{digits}f}",
        "one seed" if item.interval is None else range_text(item.interval, digits) + (" paired" if item.paired else ""),
        number_text(item.p_shown, ".2g"),
        number_text(item.detectable, f".{digits}f"),
        NOTHING if item.inputs is None else range_text(item.inputs, digits),
        item.phase,
        item.verdict,
        item.aside,
    )
