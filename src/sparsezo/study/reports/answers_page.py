"""The report on experiments with looks: figures against minutes, tables, findings in words, its making.

    page, markdown, records = answers_page([("chunking", experiment)], Path("out/figures"), command)

The page is HTML, the tables are in Markdown too, and the records have the quality at every look, for programs.

The first figure has a panel for each experiment. Figures have a line for each learner, mean over seeds, with a standard
deviation to each side filled. Where quality comes near 1 its axis is that of the error on a log scale, labelled with
the quality itself: from 0.90 to 0.95 is as far as from 0.80 to 0.90.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import DamagedError
from sparsezo.study.plan import COSTS, LEAST_CONFIDENT, Clock
from sparsezo.study.reports import answers
from sparsezo.study.reports.answers import PHASE, Line, of_weights, section_title, spoken, stated, thresholds
from sparsezo.study.reports.figures import (
    LEGEND,
    OTHER_RULE,
    RULE_STYLES,
    WIDTH,
    Figure,
    Style,
    count_ticks,
    drawing_style,
    fill_band,
    new_sheet,
    save,
    spread_words,
)
from sparsezo.study.reports.render import making, render
from sparsezo.study.reports.results import Fields, LearnerRuns, MeanCurve, Record, ReportedExperiment, Spread
from sparsezo.study.reports.tables import NOTHING, PlainTable, signature, spread_text
from sparsezo.study.wabbit import read_wabbit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TITLE = "How many minutes does it take?"
_FORMS = {
    "part": "a yes or no",
    "label": "naming a label",
    "span": "a span",
    "review": "reviewing an output",
    "marked": "reviewing what is marked",
    "pair": "choosing between two",
    "best": "picking the best of five",
    "rate": "a rating",
    "two-point": "two ratings",
    "whole": "labelling an input from nothing",
}
_COSTS = dict(zip(COSTS, ("each time", "an input", "a token", "a token looked at", "a correction"), strict=True))
_WHOLE = {"answers": "a label", "corrections": "a span marked"}  # of inputs that are labelled as a whole
_LAST = 3  # looks that the table beside Vowpal Wabbit shows


def answers_page(
    experiments: Sequence[tuple[str, ReportedExperiment]], figures: Path, command: str | None
) -> tuple[str, str, list[Record]]:
    """Of experiments with their names in files: the page, its tables in Markdown, and the records."""
    with drawing_style():
        panels = panels_figure([experiment for _, experiment in experiments], figures)
        sections = [_section(slug, experiment, figures) for slug, experiment in experiments]
    page = render("answers.html.j2", title=TITLE, panels=panels, sections=sections, command=command)
    records = [record for _, experiment in experiments for record in _records(experiment)]
    return page, _markdown(sections), records


def _section(slug: str, experiment: ReportedExperiment, folder: Path) -> Fields:
    shown = answers.lines(experiment)
    column, metric = answers.main_column(experiment, shown), experiment.metric_name
    time, noise = answers_figures(experiment, shown, column, folder, slug)
    rivals = wabbit_part(experiment, shown)
    known = bool(thresholds(experiment))
    others = []  # what else is known: dev, and test of the weights that are not in the main table
    if column != "dev":
        other = "kept" if column == "test" else "test"
        heading = f"Test {metric}, of the weights {of_weights(other)}"
        others.append((heading, answers.quality_table(experiment, shown, other)))
        heading = f"Dev {metric}, of the weights of the moment"
        others.append((heading, answers.quality_table(experiment, shown, "dev")))
    return {
        "slug": slug,
        "title": section_title(experiment),
        "gaps": [*experiment.gaps, *rivals.gaps],
        "findings": [*answers.findings(experiment), *rivals.findings],
        "column": spoken(column),
        "weights": of_weights(column),
        "metric": metric,
        "time_figure": time,
        "noise_figure": noise,
        "quality": answers.quality_table(experiment, shown, column),
        "others": others,
        "needed": answers.needed_table(experiment, shown, column) if known else None,
        "clocks": [_by_clock(experiment, shown, column, *each) for each in stated(experiment).items()],
        "rival": rival.title if (rival := answers.rival_of(shown)) else None,
        "noise": answers.noise_table(experiment, shown, column),
        "wabbit": rivals.table,
        "notes": list(_notes(experiment, shown)),
        "signature": signature(experiment, PHASE),
        "making": making(experiment),
    }


def _by_clock(experiment: ReportedExperiment, shown: Sequence[Line], column: str, name: str, clock: Clock) -> Fields:
    """What there is by one table of seconds."""
    return {
        "name": name,
        "seconds": in_words(clock),
        "after": answers.after_table(experiment, shown, column, clock),
        "minutes": answers.minutes_table(experiment, shown, column, clock) if thresholds(experiment) else None,
    }


def in_words(clock: Clock) -> str:
    """A table of seconds, read out: "reviewing an output 0.5 s each time and 0.12 s a token; ..."."""
    told = []
    for form, costs in clock.items():
        words = _COSTS | (_WHOLE if form == "whole" else {})
        parts = [f"{value:g} s {words[cost]}" for cost, value in costs.items() if value]
        listed = " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
        told += [f"{_FORMS[form]} {listed}"] if parts and form in _FORMS else []
    return "; ".join(told)


def _notes(experiment: ReportedExperiment, shown: Sequence[Line]) -> Iterator[str]:
    inputs = answers.inputs_of(experiment)
    yield "All runs are at the settings in the plan, which are the task's defaults unless it says otherwise."
    if any(line.learner.rule == "label" for line in shown):
        yield (
            "label: single parts by unsureness with the right one named; for chunking that is the partial-label CRF of "
            "the active-learning literature."
        )
    if any(line.labels for line in shown):
        passes = sorted({str(line.declared.get("passes", NOTHING)) for line in shown if line.labels})
        every = sorted({str(line.declared["every"]) for line in shown if "every" in line.declared})
        yield (
            f"Whole {inputs}: as many as fit into so many decisions, learned from weights of 0 at every look with "
            f"Adagrad's steps, {', '.join(passes)} passes; least sure first: by the log-probability of the best output "
            f"by the token, chosen anew after every {' or '.join(every) or NOTHING} {inputs} by a "
            "learner that is told each as it comes; the first look's at random."
        )
    if any(line.answered_at_random for line in shown):
        yield "Answered at random: the answers say nothing; what the best weights on dev gain there, choosing gives."
    if any(line.declared.get("mistakes") for line in shown):
        yield (
            f"Mistakes where it is hard: of so many {inputs} the person takes for right what a model says that was "
            "learned from the labels of the other half."
        )
    if any(line.start for line in shown):
        yield (
            "Warm starts: a supervised model of so many labelled inputs; or what such a model, somebody else's tool, "
            "says of all inputs, taken as labels. Their labels are not counted."
        )


# For programs, and for readers of Markdown


def _records(experiment: ReportedExperiment) -> Iterator[Record]:
    shown = answers.lines(experiment)
    about: Record = {"experiment": experiment.name, "task": experiment.task, "metric": experiment.metric}
    for line in shown:
        curve = line.curve("dev")
        times = {name: line.minutes(clock) for name, clock in stated(experiment).items()}
        for k, look in enumerate([] if curve is None else curve.at.tolist()):
            record: Record = {**about, "learner": line.learner.name, "title": line.title, "answers": look}
            for column in ("test", "dev", "average_loss"):
                spread = line.at(column, look)
                sd = statistics.stdev(spread.values) if spread and len(spread.values) > 1 else None
                record |= {f"{column}_mean": spread.mean if spread else None, f"{column}_sd": sd}
            for column in COSTS[1:]:
                count = line.at(column, look)
                record[column] = count.mean if count else None
            for number, (name, found) in enumerate(times.items()):
                record["minutes" if number == 0 else f"minutes_{name}"] = None if found is None else float(found[k])
            yield record | {"seeds": len(line.learner.runs(PHASE))}
    yield from (about | record for record in wabbit_part(experiment, shown).records)


def _markdown(sections: Sequence[Fields]) -> str:
    parts = [f"# {TITLE}", ""]
    for section in sections:
        parts += [f"## {section['title']}", "", *(f"- {sentence}" for sentence in section["findings"]), ""]
        quality = f"{section['column']} {section['metric']}"
        for clock in section["clocks"]:
            parts += [
                f"### By the table {clock['name']}, a stated model of a person's time",
                "",
                f"{clock['seconds']}.",
                "",
            ]
            for heading, key in (("after so many minutes", "after"), ("minutes needed", "minutes")):
                if clock[key] is not None:
                    parts += [f"{quality}, {heading}{_in_brackets(section) if key == 'minutes' else ''}:", ""]
                    parts += [*clock[key].markdown(), ""]
        for heading, key in (
            (f"{quality} after so many answers, of the weights {section['weights']}", "quality"),
            (f"Answers needed ({quality})", "needed"),
            (f"Wrong answers ({quality})", "noise"),
            ("Vowpal Wabbit on the same documents, each once, a right or wrong for each", "wabbit"),
        ):
            if section[key] is not None:
                parts += [f"### {heading}", "", *section[key].markdown(), ""]
        parts += [*(f"{note}  " for note in section["notes"]), f"`{section['signature']}`", ""]
        if section["gaps"]:
            parts += ["Missing or odd:", "", *(f"- {gap}" for gap in section["gaps"]), ""]
    return "\n".join(parts)


def _in_brackets(section: Fields) -> str:
    return f" (in brackets: how many times as long {section['rival']} takes)" if section["rival"] else ""


# Our learner beside Vowpal Wabbit on the same documents: average loss on the way, accuracy on test in the end


@dataclass(frozen=True)
class WabbitPart:
    table: PlainTable | None = None
    findings: list[str] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)


_Row = tuple[str, list[Spread | None], Spread | None]  # a name, losses at every look, test


def wabbit_part(experiment: ReportedExperiment, shown: Sequence[Line]) -> WabbitPart:
    """What stands in the report of Vowpal Wabbit: nothing but a gap that says why, where it was not run."""
    if not experiment.declared.get("rivals"):
        return WabbitPart()
    nothing = "There is nothing of Vowpal Wabbit: it was not installed (pip install vowpalwabbit), or failed."
    try:
        found = read_wabbit(experiment.folder)
    except DamagedError as error:
        found, nothing = None, f"{error}."
    if found is None:
        return WabbitPart(gaps=[nothing])
    looks, rates = found["looks"], found["rates"]
    theirs: list[_Row] = []
    for name, runs in found["rivals"].items():
        losses = [Spread(tuple(run["average_loss"][k] for run in runs)) for k in range(len(looks))]
        test = Spread(tuple(run["test"] for run in runs)) if runs[0]["test"] is not None else None
        theirs.append((f"{name}, -l {rates[name]:g}" if name in rates else name, [*losses], test))
    theirs.sort(key=lambda row: row[1][-1].mean if row[1][-1] else 1.0)
    # ours that pass no document over and hear a right or wrong of each; part first
    cold = [line for line in shown if line.start is None and line.wrong == 0]
    comparable = [line for line in cold if line.learner.rule == "part" and line.variant == {"ask": "random"}]
    comparable += [line for line in cold if line.learner.rule == "first-order"]
    ours: list[_Row] = [
        (line.title, [line.at("average_loss", look) for look in looks], line.at("test", looks[-1]))
        for line in comparable
    ]
    head = ("learner", *(f"average loss at {look:,}" for look in looks[-_LAST:]), "test accuracy at the end")
    cells = [
        (f"{whose}: {name}", *map(spread_text, losses[-_LAST:]), spread_text(test))
        for whose, rows in (("sparsezo", ours), (f"Vowpal Wabbit {found['version']}", theirs))
        for name, losses, test in rows
    ]
    records: list[Record] = [
        {
            "learner": f"vowpalwabbit {name}",
            "title": f"Vowpal Wabbit: {name}",
            "answers": look,
            **_mean_and_sd("test", test if k == len(looks) - 1 else None),  # known at the last look alone
            **_mean_and_sd("average_loss", losses[k]),
            "seeds": len(loss.values) if (loss := losses[k]) else None,
        }
        for name, losses, test in theirs
        for k, look in enumerate(looks)
    ]
    told = _wabbit_findings(ours, theirs, looks[-1], found["documents"], bool(rates))
    return WabbitPart(PlainTable(head, cells), told, records=records)


def _mean_and_sd(name: str, spread: Spread | None) -> Record:
    return {f"{name}_mean": spread.mean if spread else None, f"{name}_sd": spread.sd if spread else None}


def _wabbit_findings(ours: Sequence[_Row], theirs: Sequence[_Row], last: int, documents: int, tuned: bool) -> list[str]:
    mine, best = (rows[0][1][-1] if rows else None for rows in (ours, theirs))
    if mine is None or best is None or not best.mean:
        return []
    which = f"In one pass over {documents:,} documents" if last == documents else f"Over the first {last:,} documents"
    how = ", each with its best learning rate in other orders of them" if tuned else ""
    return [
        f"{which}, each shown once, a right or wrong for each and none passed over, {ours[0][0]} has an average loss "
        f"of {spread_text(mine)}; of {len(theirs)} ways of Vowpal Wabbit{how}, the best on these ({theirs[0][0]}) "
        f"has {spread_text(best)}: {mine.mean / best.mean:.2f} times."
    ]


# Figures

LineStyle = str | tuple[float, tuple[float, ...]]
_HEIGHT = 3.7  # inches of a plot
_NAMES = 2.35  # inches for the names at the ends of lines
_NAME = 0.165  # inches between two of them
_ERROR_SCALE = 0.75  # where the best reaches this, the axis is of the error
_TICKS = (0.0, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.92, 0.94, 0.96, 0.98, 0.99)
_PANEL = 2.3  # inches of a row of panels
_AXIS = "minutes by the table {}, simulated person (log scale)"
_MODELLED = "Minutes are by the stated table of seconds {}, for a simulated person: nobody's time was measured."
_DECISION = "Each answer is one decision, as is each part of an input that is"
_DASHED: LineStyle = (0, (4, 1.6))
_DOTTED: LineStyle = (0, (1.2, 1.4))


@dataclass(frozen=True, eq=False)
class _Drawn:
    name: str
    curve: MeanCurve
    x: NDArray[np.float64]
    colour: str
    style: LineStyle
    width: float
    learner: LearnerRuns


def answers_figures(
    experiment: ReportedExperiment, shown: Sequence[Line], column: str, folder: Path, slug: str
) -> list[Figure | None]:
    """Against minutes (where no table of seconds says these, answers), and where answers are wrong; None where there is
    nothing to draw."""
    asked, metric = "answers (log scale)", experiment.metric_name
    main, table = main_lines(experiment, shown, column)
    timed = ("against answers", asked, f"{_DECISION} labelled as a whole.")
    if table is not None:
        timed = ("against minutes", _AXIS.format(table), _MODELLED.format(table))
    believed = "e: the share of wrong answers; where it is not known the learner believes them all."
    found: list[Figure | None] = []
    for kind, each, against, along, words in (
        ("minutes" if table else "answers", main, *timed),
        ("wrong", _where_wrong(shown, column), "where answers are wrong", asked, believed),
    ):
        drawn, name, title = [line for line in each if line is not None], f"{kind}-{slug}", f"{metric} {against}"
        if not drawn:
            found.append(None)
            continue
        learners = [line.learner for line in drawn]
        mark = signature(experiment, PHASE, learners)
        sheet, axes = new_sheet(_HEIGHT, 0, mark, right=_NAMES)
        axes.set_xscale("log")
        for line in drawn:
            _line(axes, line)
        _limits(axes, drawn)
        _names(axes, drawn)
        axes.set_title(section_title(experiment), fontsize=10.5, loc="left")
        axes.set_ylabel(f"{spoken(column)} {metric}" + _scale_words(axes))
        axes.set_xlabel(along)
        spread = spread_words(learners, PHASE, "a standard deviation to each side filled")
        what = f"{spoken(column).capitalize()} {title}, of the weights {of_weights(column)}"
        caption = f"{what}: {spread}. {words}"
        found.append(Figure(name, title, caption, mark, save(sheet, folder, name)))
    return found


def main_lines(
    experiment: ReportedExperiment, shown: Sequence[Line], column: str
) -> tuple[list[_Drawn | None], str | None]:
    """Those of the figure against minutes by the first table of seconds, and its name; against answers, and None."""
    labelled = [line for line in shown if line.label]
    for name, clock in stated(experiment).items():
        times = [(line, line.minutes(clock)) for line in labelled]
        return [_drawn(line, str(line.label), column, x) for line, x in times if x is not None], name
    return [_drawn(line, str(line.label), column) for line in labelled], None


def panels_figure(experiments: Sequence[ReportedExperiment], folder: Path) -> Figure | None:
    """Quality against minutes, a panel for each experiment that has a table of seconds; None where fewer than two."""
    found = []
    for experiment in experiments:
        shown = answers.lines(experiment)
        column = answers.main_column(experiment, shown)
        main, table = main_lines(experiment, shown, column)
        drawn = [line for line in main if line is not None]
        if table is not None and drawn:
            found.append((experiment, spoken(column), table, drawn))
    if len(found) < 2:
        return None
    rows = -(-len(found) // 2)
    names = {line.name: line for *_, drawn in found for line in drawn}
    runs = [run for *_, drawn in found for line in drawn for run in line.learner.runs(PHASE)]
    seeds, versions = sorted({run.seed for run in runs}), sorted({run.versions.get("sparsezo", "?") for run in runs})
    tables = ",".join(dict.fromkeys(table for *_, table, _ in found))
    mark = f"minutes by the table:{tables}|seeds:{','.join(map(str, seeds))}|version:{','.join(versions)}"
    sheet, whole = new_sheet(rows * _PANEL, -(-len(names) // 2) + 1, mark)
    box = whole.get_position()
    whole.remove()
    place = {"left": box.x0, "right": box.x1, "bottom": box.y0, "top": box.y1, "wspace": 0.24, "hspace": 0.42}
    panels = sheet.subplots(rows, 2, squeeze=False, gridspec_kw=place).ravel()
    for axes, (experiment, data, table, drawn) in zip(panels, found, strict=False):
        axes.set_xscale("log")
        for line in drawn:
            _line(axes, line)
        _limits(axes, drawn)
        axes.set_title(section_title(experiment), fontsize=9.5, loc="left")
        axes.set_ylabel(f"{data} {experiment.metric_name}" + _scale_words(axes), fontsize=8)
        axes.tick_params(labelsize=7.5)
        axes.set_xlabel(_AXIS.format(table), fontsize=7)
    for axes in panels[len(found) :]:
        axes.remove()
    from matplotlib.lines import Line2D

    styles: list[Style] = [{"color": o.colour, "linestyle": o.style, "linewidth": o.width} for o in names.values()]
    handles = [Line2D([], [], **style) for style in styles]
    bottom = box.y0 - 0.55 / sheet.get_figheight()
    sheet.legend(handles, list(names), ncols=2, **(LEGEND | {"bbox_to_anchor": (box.x0, bottom)}))
    learners = [line.learner for *_, drawn in found for line in drawn]
    spread = spread_words(learners, PHASE, "a standard deviation to each side filled")
    caption = f"Quality against minutes, one panel for each experiment: {spread}. {_MODELLED.format(tables)}"
    return Figure("minutes", "Quality against minutes", caption, mark, save(sheet, folder, "minutes"))


def _where_wrong(shown: Sequence[Line], column: str) -> list[_Drawn | None]:
    """Right answers, and wrong ones that are known of or not, of the first rule that has them."""
    noisy = list(answers.noise_rows(shown))
    exact = next((line for line in shown if noisy and line.plain and line.learner.rule == noisy[0][0]), None)
    found = []
    for rule, wrong, known, unknown in noisy:
        colour = "#D55E00" if wrong > noisy[0][1] else "#E69F00"
        for line, style, word in ((known, "-", "known"), (unknown, _DOTTED, "not known")):
            each = _drawn(line, f"{wrong:.0%} wrong, e {word}", column) if line and rule == noisy[0][0] else None
            found += [replace(each, colour=colour, style=style, width=1.8)] if each else []
    return [_drawn(exact, f"{exact.title}, none wrong", column), *found] if exact and found else []


def _drawn(line: Line, name: str, column: str, x: NDArray[np.float64] | None = None) -> _Drawn | None:
    curve = line.curve(column)
    places = np.zeros(1) if curve is None else np.asarray(curve.at if x is None else x, float)
    if curve is None or places[-1] < 1:
        return None
    colour, _ = RULE_STYLES.get(line.learner.rule, OTHER_RULE)
    style = _DASHED if line.labels == LEAST_CONFIDENT or line.learner.perturb or line.variant else "-"
    style = _DOTTED if line.declared.get("review") == "auto" else style
    width = 2.6 if line.learner.rule == "review" else 1.9
    return _Drawn(name, curve, places, colour, style, width, line.learner)


def _line(axes: Axes, each: _Drawn) -> None:
    seen = each.x >= 1  # 0 has no place on a log axis
    x, mean = each.x[seen], each.curve.mean[seen]
    style: Style = {"color": each.colour, "linestyle": each.style, "linewidth": each.width}
    axes.plot(x, mean, solid_capstyle="round", **style)
    axes.plot(x[-1:], mean[-1:], "o", color=each.colour, markersize=4)
    if each.curve.sd is not None:
        fill_band(axes, x, mean, each.curve.sd[seen], each.colour, 0.15)


def _limits(axes: Axes, drawn: Sequence[_Drawn]) -> None:
    from matplotlib.ticker import NullFormatter

    values = np.concatenate([each.curve.mean[each.x >= 1] for each in drawn])
    low, high = float(values.min()), float(values.max())
    if high >= _ERROR_SCALE:
        axes.set_yscale("function", functions=(_error, _quality))
        bottom, top = _error(np.array([low, high]))
        room = 0.05 * (top - bottom) or 0.01
        axes.set_ylim(*_quality(np.array([bottom - room, top + room])).tolist())
        ticks = [tick for tick in _TICKS if axes.get_ylim()[0] <= tick <= axes.get_ylim()[1]]
        axes.set_yticks(ticks, [f"{tick:.2f}" for tick in ticks])
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        room = 0.06 * (high - low) or 0.001
        axes.set_ylim(low - room, high + room)
    places = np.concatenate([each.x[each.x >= 1] for each in drawn])
    axes.set_xlim(places.min() / 1.06, places.max() * 1.06)
    count_ticks(axes)


def _scale_words(axes: Axes) -> str:
    """For its label: what its places are by, where that is not the quality itself."""
    return " (by log of the error)" if axes.get_yscale() == "function" else ""


def _error(quality: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(-np.log10(np.maximum(1 - np.asarray(quality, float), 1e-4)))


def _quality(place: NDArray[np.float64]) -> NDArray[np.float64]:
    return 1 - 10.0 ** -np.asarray(place, float)


def _names(axes: Axes, drawn: Sequence[_Drawn]) -> None:
    """Beside the ends of the lines, moved apart where these are close."""
    right = axes.get_xlim()[1]
    ends = axes.transData.transform([(right, each.curve.mean[-1]) for each in drawn])
    wanted = axes.transAxes.inverted().transform(ends)[:, 1]
    order = np.argsort(-wanted)
    at = 1 + 0.16 / (WIDTH - _NAMES)
    for place, k in zip(_apart(wanted[order], _NAME / _HEIGHT), order, strict=True):
        each = drawn[k]
        arrow = {"arrowstyle": "-", "color": each.colour, "linewidth": 0.6, "alpha": 0.6, "relpos": (0, 0.5)}
        words: Style = {"color": each.colour, "fontsize": 8.5, "fontweight": "bold" if each.width > 2 else "normal"}
        words |= {"textcoords": "axes fraction", "va": "center", "annotation_clip": False, "arrowprops": arrow}
        axes.annotate(each.name, (each.x[-1], each.curve.mean[-1]), xytext=(at, place), **words)


def _apart(wanted: NDArray[np.float64], gap: float) -> list[float]:
    """Places from the top down, at least ``gap`` apart, as near as can be to where they are wanted, none outside."""
    from scipy.optimize import isotonic_regression

    firsts = isotonic_regression(wanted + gap * np.arange(wanted.size), increasing=False).x  # each moved to the first
    high, low = 1.0, (wanted.size - 1) * gap  # of the first name: all others are below it, inside
    return [max(min(float(first), high), low) - k * gap for k, first in enumerate(firsts)]
