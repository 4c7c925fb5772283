"""Quality against answers, and against a person's minutes: a line for each learner, with its name at its end.

    answers_figure(experiment, lines(experiment), "test", folder, "chunking")

Mean over seeds as a line, a standard deviation to each side filled. Where quality comes near 1 its axis is that of the
error on a log scale, labelled with the quality itself: from 0.90 to 0.95 is as far as from 0.80 to 0.90.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sparsezo.reports.answers import PHASE, Line, minutes, noise_rows, of_weights, section_title, spoken
from sparsezo.reports.figures.curves import within_range
from sparsezo.reports.figures.sheet import OTHER_RULE, RULE_STYLES, WIDTH, Figure, new_sheet, save
from sparsezo.reports.results import MeanCurve, ReportedExperiment
from sparsezo.reports.tables import count_text, signature

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HEIGHT = 3.7  # inches of a plot
_NAMES = 2.35  # inches for the names at the ends of lines
_NAME = 0.165  # inches between two of them
_ERROR_SCALE = 0.75  # where the best reaches this, the axis is of the error
_TICKS = (0.0, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.92, 0.94, 0.96, 0.98, 0.99)
_DASHED: Any = (0, (4, 1.6))
_DOTTED: Any = (0, (1.2, 1.4))


@dataclass(frozen=True, eq=False)
class _Drawn:
    name: str
    curve: MeanCurve
    x: NDArray[Any]
    colour: str
    style: Any
    width: float
    learner: Any


def answers_figure(
    experiment: ReportedExperiment, shown: Sequence[Line], column: str, folder: Path, slug: str
) -> Figure | None:
    drawn = [each for line in shown if line.label and (each := _drawn(line, line.label, column))]
    title = f"{experiment.metric_name} against answers"
    words = "Each answer is one decision, as is each part of an input that is labelled as a whole."
    return _figure(experiment, drawn, column, folder, f"answers-{slug}", title, "answers (log scale)", words)


def minutes_figure(
    experiment: ReportedExperiment, shown: Sequence[Line], column: str, folder: Path, slug: str
) -> Figure | None:
    found = [(line, minutes(line, experiment)) for line in shown if line.label]
    drawn = [each for line, x in found if x is not None and (each := _drawn(line, str(line.label), column, x))]
    title = f"{experiment.metric_name} against a person's time"
    words = "Minutes are by the model of seconds below, not measured."
    return _figure(experiment, drawn, column, folder, f"minutes-{slug}", title, "minutes (log scale)", words)


def noise_curves_figure(
    experiment: ReportedExperiment, shown: Sequence[Line], column: str, folder: Path, slug: str
) -> Figure | None:
    """Right answers, and wrong ones that are known of or not, of the first rule that has them."""
    noisy = list(noise_rows(shown))
    drawn = []
    for rule, wrong, known, unknown in noisy:
        if rule != noisy[0][0]:
            continue
        colour = "#D55E00" if wrong > noisy[0][1] else "#E69F00"
        for line, style, word in ((known, "-", "known"), (unknown, _DOTTED, "not known")):
            each = _drawn(line, f"{wrong:.0%} wrong, e {word}", column) if line else None
            drawn += [_restyled(each, colour, style)] if each else []
    exact = next((line for line in shown if noisy and line.plain and line.learner.rule == noisy[0][0]), None)
    if exact is None or not drawn:
        return None
    first = _drawn(exact, f"{exact.title}, none wrong", column)
    drawn = [*([first] if first else []), *drawn]
    title = f"{experiment.metric_name} where answers are wrong"
    words = "e: the share of wrong answers; where it is not known the learner believes them all."
    return _figure(experiment, drawn, column, folder, f"wrong-{slug}", title, "answers (log scale)", words)


def _drawn(line: Line, name: str, column: str, x: NDArray[Any] | None = None) -> _Drawn | None:
    curve = line.curve(column)
    if curve is None:
        return None
    colour, _ = RULE_STYLES.get(line.learner.rule, OTHER_RULE)
    style = _DASHED if line.labels == "least-confident" or line.learner.perturb else "-"
    width = 2.6 if line.learner.rule == "part" else 1.9
    return _Drawn(name, curve, np.asarray(curve.at if x is None else x, float), colour, style, width, line.learner)


def _restyled(each: _Drawn, colour: str, style: Any) -> _Drawn:
    return _Drawn(each.name, each.curve, each.x, colour, style, 1.8, each.learner)


def _figure(
    experiment: ReportedExperiment,
    drawn: Sequence[_Drawn],
    column: str,
    folder: Path,
    name: str,
    title: str,
    along: str,
    words: str,
) -> Figure | None:
    if not drawn:
        return None
    mark = signature(experiment, PHASE, [each.learner for each in drawn])
    sheet, axes = new_sheet(_HEIGHT, 0, mark, right=_NAMES)
    axes.set_xscale("log")
    for each in drawn:
        _line(axes, each)
    _limits(axes, drawn)
    _names(axes, drawn)
    axes.set_title(section_title(experiment), fontsize=10.5, loc="left")
    axes.set_ylabel(f"{spoken(column)} {experiment.metric_name}")
    axes.set_xlabel(along)
    seeds = max(len(each.learner.runs(PHASE)) for each in drawn)
    few = {1: "a single seed, so no spread", 2: "mean over two seeds, too few for a spread"}
    spread = few.get(seeds, "mean over seeds, a standard deviation to each side filled")
    scale = " Its axis is that of the error, on a log scale." if axes.get_yscale() == "function" else ""
    caption = f"{spoken(column).capitalize()} {title}, of the weights {of_weights(column)}: {spread}. {words}{scale}"
    return Figure(name, title, caption, mark, save(sheet, folder, name))


def _line(axes: Axes, each: _Drawn) -> None:
    seen = each.x > 0  # 0 has no place on a log axis
    x, mean = each.x[seen], each.curve.mean[seen]
    style = {"color": each.colour, "linestyle": each.style, "linewidth": each.width}
    axes.plot(x, mean, solid_capstyle="round", **style)
    axes.plot(x[-1:], mean[-1:], "o", color=each.colour, markersize=4)
    if each.curve.sd is not None:
        sd = each.curve.sd[seen]
        axes.fill_between(
            x, within_range(mean - sd), within_range(mean + sd), color=each.colour, alpha=0.15, linewidth=0
        )


def _limits(axes: Axes, drawn: Sequence[_Drawn]) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    values = np.concatenate([each.curve.mean[each.x > 0] for each in drawn])
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
    places = np.concatenate([each.x[each.x > 0] for each in drawn])
    axes.set_xlim(places.min() / 1.06, places.max() * 1.06)
    subs = (1.0, 2.0, 5.0) if places.max() / places.min() < 3000 else (1.0,)
    axes.xaxis.set_major_locator(LogLocator(subs=subs, numticks=20))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: count_text(value)))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _error(quality: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(-np.log10(np.maximum(1 - np.asarray(quality, float), 1e-4)))


def _quality(place: NDArray[Any]) -> NDArray[Any]:
    return 1 - 10.0 ** -np.asarray(place, float)


def _names(axes: Axes, drawn: Sequence[_Drawn]) -> None:
    """Beside the ends of the lines, moved apart where these are close."""
    sheet = axes.get_figure()
    assert sheet is not None
    height = axes.get_position().height * sheet.get_figheight()  # type: ignore[union-attr]
    right = axes.get_xlim()[1]
    ends = axes.transData.transform([(right, each.curve.mean[-1]) for each in drawn])
    wanted = axes.transAxes.inverted().transform(ends)[:, 1]
    order = np.argsort(-wanted)
    for place, k in zip(_apart(wanted[order], _NAME / height), order, strict=True):
        each = drawn[k]
        end = (each.x[-1], each.curve.mean[-1])
        axes.annotate(
            each.name,
            end,
            xytext=(1 + 0.16 / (WIDTH - _NAMES), place),
            textcoords="axes fraction",
            va="center",
            fontsize=8.5,
            color=each.colour,
            fontweight="bold" if each.width > 2 else "normal",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": each.colour, "linewidth": 0.6, "alpha": 0.6, "relpos": (0, 0.5)},
        )


def _apart(wanted: NDArray[np.float64], gap: float) -> list[float]:
    """Places from the top down, at least ``gap`` apart, as near as can be to where they are wanted, none outside."""
    blocks: list[list[float]] = []  # neighbours that touch: each name's place, moved up to the block's first
    for k, place in enumerate(wanted.tolist()):
        blocks.append([place + k * gap])
        while len(blocks) > 1 and _mean(blocks[-1]) > _mean(blocks[-2]):
            blocks[-2:] = [blocks[-2] + blocks[-1]]
    firsts = [_mean(block) for block in blocks for _ in block]
    high, low = 1.0, (len(firsts) - 1) * gap  # of the first name: all others are below it, inside
    return [max(min(first, high), low) - k * gap for k, first in enumerate(firsts)]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
