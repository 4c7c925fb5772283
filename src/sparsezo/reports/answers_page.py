"""The report on experiments with looks: figures against answers and minutes, tables, findings in words, its making.

    write_answers_report(experiments, target, command)      # as report.write_report, which calls it

writes ``report.html``, ``table.md``, ``table.csv`` (quality at every look) and ``figures/``.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sparsezo.reports.answers import (
    PHASE,
    Line,
    lines,
    main_column,
    minutes,
    needed_table,
    noise_table,
    of_weights,
    quality_table,
    section_title,
    spoken,
    thresholds,
)
from sparsezo.reports.figures.answers import answers_figure, minutes_figure, noise_curves_figure
from sparsezo.reports.figures.sheet import drawing_style
from sparsezo.reports.findings import findings
from sparsezo.reports.page import making
from sparsezo.reports.render import PlainTable, render
from sparsezo.reports.results import ReportedExperiment
from sparsezo.reports.tables import NOTHING, signature
from sparsezo.reports.wabbit import wabbit_part

TITLE = "How many answers does it take?"
_KINDS = {
    "read": "reading an input",
    "yes_no": "a yes or no",
    "label": "naming a label",
    "pair": "choosing between two",
    "rate": "a rating",
    "token": "one of the labels of an input that is labelled as a whole",
}


def answers_page(
    experiments: Sequence[tuple[str, ReportedExperiment]], figures: Path, command: str | None
) -> tuple[str, str, list[dict[str, Any]]]:
    """The page, its tables in Markdown, and quality at every look for programs."""
    with drawing_style():
        sections = [_section(slug, experiment, figures) for slug, experiment in experiments]
    page = render("answers.html.j2", title=TITLE, sections=sections, command=command)
    records = [record for _, experiment in experiments for record in _records(experiment)]
    return page, _markdown(sections), records


def _section(slug: str, experiment: ReportedExperiment, folder: Path) -> dict[str, Any]:
    shown = lines(experiment)
    column = main_column(experiment, shown)
    drawn = (answers_figure, minutes_figure, noise_curves_figure)
    first, time, noise = (draw(experiment, shown, column, folder, slug) for draw in drawn)
    rivals = wabbit_part(experiment, shown)
    return {
        "slug": slug,
        "title": section_title(experiment),
        "gaps": [*experiment.gaps, *rivals.gaps],
        "findings": [*findings(experiment), *rivals.findings],
        "column": spoken(column),
        "weights": of_weights(column),
        "metric": experiment.metric_name,
        "figure": first,
        "time_figure": time,
        "noise_figure": noise,
        "quality": quality_table(experiment, shown, column),
        "others": _others(experiment, shown, column),
        "needed": needed_table(experiment, shown, column, time=False) if thresholds(experiment) else None,
        "minutes": needed_table(experiment, shown, column, time=True) if time and thresholds(experiment) else None,
        "seconds": _seconds(experiment),
        "noise": noise_table(experiment, shown, column),
        "wabbit": rivals.table,
        "notes": list(_notes(experiment, shown)),
        "signature": signature(experiment, PHASE),
        "making": making(experiment),
    }


def _others(experiment: ReportedExperiment, shown: Sequence[Line], column: str) -> list[tuple[str, PlainTable]]:
    """What else is known: dev, and test of the weights that are not in the main table."""
    if column == "dev":
        return []
    other = "kept" if column == "test" else "test"
    metric = experiment.metric_name
    return [
        (f"Test {metric}, of the weights {of_weights(other)}", quality_table(experiment, shown, other)),
        (f"Dev {metric}, of the weights of the moment", quality_table(experiment, shown, "dev")),
    ]


def _seconds(experiment: ReportedExperiment) -> str:
    table = experiment.declared.get("seconds")
    if not isinstance(table, Mapping):
        return ""
    return ", ".join(f"{_KINDS[name]} {value:g} s" for name, value in table.items() if name in _KINDS)


def _notes(experiment: ReportedExperiment, shown: Sequence[Line]) -> Iterator[str]:
    inputs = experiment.about.inputs if experiment.about else "inputs"
    yield "All runs are at the settings in the plan, which are the task's defaults unless it says otherwise."
    if any(line.learner.rule == "label" for line in shown):
        yield (
            "label: single parts by unsureness with the right one named; for chunking that is the partial-label CRF of "
            "the active-learning literature."
        )
    if any(line.labels for line in shown):
        passes = sorted({str(line.declared.get("passes", NOTHING)) for line in shown if line.labels})
        yield (
            f"Whole {inputs}: as many as fit into so many decisions, learned from weights of 0 at every look with "
            f"Adagrad's steps, {', '.join(passes)} passes; least sure first: by the last model's probability of its "
            "best output, the first look's at random."
        )
    if any(line.start for line in shown):
        yield (
            "Warm starts: a supervised model of so many labelled inputs; or what such a model, somebody else's tool, "
            "says of all inputs, taken as labels. Their labels are not counted."
        )


# For programs, and for readers of Markdown


def _records(experiment: ReportedExperiment) -> Iterator[dict[str, Any]]:
    shown = lines(experiment)
    about = {"experiment": experiment.name, "task": experiment.task, "metric": experiment.metric}
    for line in shown:
        times = minutes(line, experiment)
        curve = line.curve("dev")
        for k, look in enumerate([] if curve is None else curve.at.tolist()):
            record: dict[str, Any] = {**about, "learner": line.learner.name, "title": line.title, "answers": look}
            for column in ("test", "dev", "average_loss"):
                spread = line.at(column, look)
                values = spread.values if spread else ()
                sd = statistics.stdev(values) if len(values) > 1 else None
                record |= {f"{column}_mean": spread.mean if spread else None, f"{column}_sd": sd}
            inputs = line.at("inputs", look)
            record |= {"inputs": inputs.mean if inputs else None}
            yield record | {
                "minutes": None if times is None else float(times[k]),
                "seeds": len(line.learner.runs(PHASE)),
            }
    yield from (about | record for record in wabbit_part(experiment, shown).records)


def _markdown(sections: Sequence[Mapping[str, Any]]) -> str:
    parts = [f"# {TITLE}", ""]
    for section in sections:
        parts += [f"## {section['title']}", "", *(f"- {sentence}" for sentence in section["findings"]), ""]
        quality = f"{section['column']} {section['metric']}"
        for heading, key in (
            (f"{quality} after so many answers, of the weights {section['weights']}", "quality"),
            (f"Answers needed ({quality})", "needed"),
            (f"Minutes needed ({quality}), by a model: {section['seconds']}", "minutes"),
            (f"Wrong answers ({quality})", "noise"),
            ("Vowpal Wabbit on the same documents, each once, a right or wrong for each", "wabbit"),
        ):
            if section[key] is not None:
                parts += [f"### {heading}", "", *_rows(section[key]), ""]
        parts += [*(f"{note}  " for note in section["notes"]), f"`{section['signature']}`", ""]
        if section["gaps"]:
            parts += ["Missing or odd:", "", *(f"- {gap}" for gap in section["gaps"]), ""]
    return "\n".join(parts)


def _rows(table: PlainTable) -> Iterator[str]:
    yield "| " + " | ".join(table.head) + " |"
    yield "|---" + "|--:" * (len(table.head) - 1) + "|"
    for row in table.rows:
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
