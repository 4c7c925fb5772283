"""The test metric against the raters' noise: wrong comparisons in one column, noisy ratings in another.

    noise_figure(experiment, folder, "noise")              # None where all raters are of one kind

A row for each perturbation; what perturbs nothing stands in every row. Mean over seeds, two standard deviations as
bars; a colour and a marker for each rule, a line style for each perturbation, and open marks for ACTIVE. Beside the
ratings stand exact losses on the left and thumbs (binary) on the right, which have no such noise, nor a line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sparsezo.perturbations import PERTURBATIONS
from sparsezo.reports.figures.curves import draw_legend, legend_rows, line_style, within_range
from sparsezo.reports.figures.sheet import WIDTH, Figure, new_sheet, save
from sparsezo.reports.noise import NoiseLine, NoisePoint, noise_lines, noise_phase
from sparsezo.reports.results import LearnerRuns, ReportedExperiment
from sparsezo.reports.tables import signature

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

_DODGE = 0.011  # of the axis, between lines: so that bars at one place can be told apart
_BESIDE = 0.26  # of the axis, from the ratings to exact and to binary
_GAP = 0.3  # inches between panels
_ROW = 2.1  # inches for a row of several


def noise_figure(experiment: ReportedExperiment, folder: Path, slug: str) -> Figure | None:
    lines = noise_lines(experiment)
    flips = [line for line in lines if line.of("flip")]
    ratings = [line for line in lines if line.ratings or line.at("binary")]
    columns = [(draw, mine) for draw, mine in ((_flip_panel, flips), (_rating_panel, ratings)) if mine]
    if not columns:
        return None
    phase, metric = noise_phase(experiment), experiment.metric_name
    shown = [line.learner for line in lines if line in flips or line in ratings]
    members = [item for item in experiment.learners if item.base_name in {learner.name for learner in shown}]
    mark = signature(experiment, phase, members)
    perturbed = {learner.perturb for learner in shown}
    rows: list[str | None] = [perturb for perturb in PERTURBATIONS if perturb in perturbed] or [None]
    drawing, whole = new_sheet(3.4 if len(rows) == 1 else _ROW * len(rows), legend_rows(shown), mark)
    panels = _split(drawing, whole, len(rows), len(columns))
    tuned = noise_lines(experiment, "tuned") if experiment.retuned else []
    for perturb, row in zip(rows, panels, strict=True):
        for axes, (draw, mine) in zip(row, columns, strict=True):
            here = [line for line in mine if line.learner.perturb in (perturb, None)]
            beside = {line.name: line for line in tuned if draw is _rating_panel or line.of("flip")}
            draw(axes, [Drawn(line, beside.get(line.name)) for line in here], mine, shown)
            if row is not panels[-1]:
                axes.tick_params(labelbottom=False)
                axes.set_xlabel("")
        row[0].set_ylabel(f"{perturb.upper()}: test {metric}" if perturb and len(rows) > 1 else f"test {metric}")
    crossed = " (crosses: h tuned)" if tuned else ""
    panels[0][0].set_title(f"{experiment.title}, {phase} settings{crossed}", fontsize=10.5, loc="left")
    draw_legend(drawing, panels[-1][0], shown, _style)
    title, name = f"Test {metric} against the raters' noise", f"noise-{slug}"
    several = any(point.test.sd is not None for line in lines for point in line.points)
    spread = "bars are 2 standard deviations" if several else "too few seeds for a spread"
    caption = f"{title}, {phase} settings: mean over seeds, {spread}. {_words(flips, ratings)}"
    if tuned:
        caption += " Crosses on thin dotted lines: h tuned on dev, for exact answers and for this noise."
    return Figure(name, title, caption, mark, save(drawing, folder, name))


@dataclass(frozen=True, eq=False)
class Drawn:
    line: NoiseLine
    tuned: NoiseLine | None  # the same with h tuned, where it was


def _split(drawing: Drawing, whole: Axes, rows: int, columns: int) -> list[list[Axes]]:
    """Room for panels in the place of one, all with one y axis."""
    box, gap = whole.get_position(), _GAP / WIDTH
    whole.remove()
    width = (box.width - (columns - 1) * gap) / columns
    height = (box.height - (rows - 1) * gap / 2) / rows
    panels: list[list[Axes]] = []
    for row in range(rows):
        bottom = box.y0 + (rows - 1 - row) * (height + gap / 2)
        panels.append([])
        for column in range(columns):
            first = panels[0][0] if panels[0] else None
            axes = drawing.add_axes((box.x0 + column * (width + gap), bottom, width, height), sharey=first)
            axes.tick_params(labelleft=column == 0)
            panels[row].append(axes)
    return panels


def _flip_panel(axes: Axes, lines: Sequence[Drawn], every: Sequence[NoiseLine], shown: Sequence[LearnerRuns]) -> None:
    """``every``: all lines of the column, which share its x axis."""
    places = sorted({point.feedback.noise for line in every for point in line.flips})
    span = places[-1] - places[0] or 1.0
    for both, shift in zip(lines, _shifts(len(lines), span), strict=True):
        xs = [point.feedback.noise + shift for point in both.line.flips]
        _bars(axes, both.line, both.line.flips, xs, shown)
        if both.tuned is not None:
            points = both.tuned.flips
            _crosses(axes, both.line, points, [point.feedback.noise + shift for point in points], shown)
    axes.set_xticks(places, [f"{place:g}" for place in places])
    axes.set_xlim(places[0] - 0.05 * span, places[-1] + 0.05 * span)
    axes.grid(axis="x", visible=False)
    axes.set_xlabel("comparisons: probability of a wrong answer")


def _rating_panel(axes: Axes, lines: Sequence[Drawn], every: Sequence[NoiseLine], shown: Sequence[LearnerRuns]) -> None:
    places = sorted({point.feedback.noise for point in _ratings(every)})
    low, high = (places[0], places[-1]) if places else (0.0, 0.0)
    span = high - low or 1.0
    beside = {"exact": low - _BESIDE * span, "binary": high + _BESIDE * span}
    for both, shift in zip(lines, _shifts(len(lines), span * (1 + 2 * _BESIDE)), strict=True):
        line = both.line
        _bars(axes, line, line.ratings, [point.feedback.noise + shift for point in line.ratings], shown)
        for model, place in beside.items():
            if point := line.at(model):
                _bars(axes, line, (point,), [place + shift], shown)
        if both.tuned is not None:
            points = both.tuned.points
            xs = [beside.get(point.feedback.model, point.feedback.noise) + shift for point in points]
            _crosses(axes, line, points, xs, shown)
    ticks = {beside["exact"]: "exact", **{place: f"{place:g}" for place in places}, beside["binary"]: "binary"}
    axes.set_xticks(list(ticks), list(ticks.values()))
    for place in (low - _BESIDE * span / 2, high + _BESIDE * span / 2) if places else ():
        axes.axvline(place, color="#b0b0b0", linewidth=0.8, zorder=0.5)
    axes.set_xlim(beside["exact"] - _BESIDE * span / 2, beside["binary"] + _BESIDE * span / 2)
    axes.grid(axis="x", visible=False)
    levels = _listed({point.feedback.levels for point in _ratings(every)})
    axes.set_xlabel(f"ratings in {levels} grades: sd of their noise" if levels else "losses")


def _shifts(count: int, span: float) -> list[float]:
    return [(place - (count - 1) / 2) * _DODGE * span for place in range(count)]


def _bars(
    axes: Axes, line: NoiseLine, points: Sequence[NoisePoint], xs: Sequence[float], shown: Sequence[LearnerRuns]
) -> None:
    if not points:
        return
    style = _style(line.learner, shown)
    means = np.array([point.test.mean for point in points])
    spread = np.array([[2 * (point.test.sd if point.test.sd is not None else float("nan")) for point in points]] * 2)
    spread[0] = means - within_range(means - spread[0])  # down and up, nan: no bar
    spread[1] = within_range(means + spread[1]) - means
    axes.errorbar(xs, means, yerr=spread, elinewidth=1.1, capsize=2, **style | {"linewidth": 1.4, "markersize": 5})


def _crosses(
    axes: Axes, line: NoiseLine, points: Sequence[NoisePoint], xs: Sequence[float], shown: Sequence[LearnerRuns]
) -> None:
    colour = _style(line.learner, shown)["color"]
    means = [point.test.mean for point in points]
    axes.plot(xs, means, "x", color=colour, linestyle=(0, (1, 2)), linewidth=0.8, markersize=6, markeredgewidth=1.4)


def _style(learner: LearnerRuns, shown: Sequence[LearnerRuns]) -> dict[str, Any]:
    """Marks without a line must tell the perturbations apart, too."""
    return line_style(learner, shown) | ({"markerfacecolor": "white"} if learner.perturb == "active" else {})


def _ratings(lines: Sequence[NoiseLine]) -> list[NoisePoint]:
    return [point for line in lines for point in line.ratings]


def _listed(values: set[int] | set[float]) -> str:
    return ", ".join(f"{value:g}" for value in sorted(values))


def _words(flips: Sequence[NoiseLine], ratings: Sequence[NoiseLine]) -> str:
    parts = ["Comparisons are answered wrongly with the probability below; at 0 they are exact."] if flips else []
    if points := _ratings(ratings):
        bias = _listed({point.feedback.bias for point in points})
        parts.append(f"Ratings are of raters whose biases have standard deviation {bias}.")
    if ratings:
        parts.append("Exact: the loss itself; binary: a thumb up or down.")
    return " ".join(
        [*parts, "ALL solid, ACTIVE dashed with open marks, SCORE dash-dotted; a colour and a marker for each rule."]
    )
