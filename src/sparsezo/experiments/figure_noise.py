"""The test metric against the raters' noise: wrong comparisons in one panel, noisy ratings in another.

    noise_figure(experiment, folder, "noise")              # None where all raters are of one kind

Mean over seeds, two standard deviations as bars; a colour and a marker for each rule, a line style for each
perturbation, and open marks for ACTIVE. Beside the ratings stand exact losses on the left and thumbs (binary) on the
right, which have no such noise, nor a line.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparsezo.experiments.figure_curves import draw_legend, legend_rows, line_style
from sparsezo.experiments.figure_sheet import WIDTH, Figure, new_sheet, save
from sparsezo.experiments.report_noise import NoiseLine, Point, noise_lines, noise_phase
from sparsezo.experiments.report_results import Experiment, LearnerRuns
from sparsezo.experiments.report_tables import signature

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

_DODGE = 0.011  # of the axis, between lines: so that bars at one place can be told apart
_BESIDE = 0.26  # of the axis, from the ratings to exact and to binary
_GAP = 0.3  # inches between panels


def noise_figure(experiment: Experiment, folder: Path, slug: str) -> Figure | None:
    lines = noise_lines(experiment)
    flips = [line for line in lines if line.of("flip")]
    ratings = [line for line in lines if line.ratings or line.at("binary")]
    panels = [(draw, mine) for draw, mine in ((_flip_panel, flips), (_rating_panel, ratings)) if mine]
    if not panels:
        return None
    phase, metric = noise_phase(experiment), experiment.metric_name
    shown = [line.learner for line in lines if line in flips or line in ratings]
    members = [item for item in experiment.learners if item.base_name in {learner.name for learner in shown}]
    mark = signature(experiment, phase, members)
    drawing, first = new_sheet(3.4, legend_rows(shown), mark)
    for axes, (draw, mine) in zip(_split(drawing, first, len(panels)), panels, strict=True):
        draw(axes, mine, shown)
    first.set_ylabel(f"test {metric}")
    first.set_title(f"{experiment.title}, {phase} settings", fontsize=10.5, loc="left")
    draw_legend(drawing, first, shown, _style)
    title, name = f"Test {metric} against the raters' noise", f"noise-{slug}"
    several = any(point.test.sd is not None for line in lines for point in line.points)
    spread = "bars are 2 standard deviations" if several else "a single seed, so no spread"
    caption = f"{title}, {phase} settings: mean over seeds, {spread}. {_words(flips, ratings)}"
    return Figure(name, title, caption, mark, save(drawing, folder, name))


def _split(drawing: Drawing, first: Axes, count: int) -> list[Axes]:
    """Room for ``count`` panels in the place of one, all with its y axis."""
    box, gap = first.get_position(), _GAP / WIDTH
    width = (box.width - (count - 1) * gap) / count
    first.set_position((box.x0, box.y0, width, box.height))
    others = []
    for place in range(1, count):
        left = box.x0 + place * (width + gap)
        others.append(drawing.add_axes((left, box.y0, width, box.height), sharey=first))
        others[-1].tick_params(labelleft=False)
    return [first, *others]


def _flip_panel(axes: Axes, lines: Sequence[NoiseLine], shown: Sequence[LearnerRuns]) -> None:
    places = sorted({point.feedback.noise for line in lines for point in line.flips})
    span = places[-1] - places[0] or 1.0
    for line, shift in zip(lines, _shifts(len(lines), span), strict=True):
        xs = [point.feedback.noise + shift for point in line.flips]
        _bars(axes, line, line.flips, xs, shown)
    axes.set_xticks(places, [f"{place:g}" for place in places])
    axes.set_xlim(places[0] - 0.05 * span, places[-1] + 0.05 * span)
    axes.grid(axis="x", visible=False)
    axes.set_xlabel("comparisons: probability of a wrong answer")


def _rating_panel(axes: Axes, lines: Sequence[NoiseLine], shown: Sequence[LearnerRuns]) -> None:
    places = sorted({point.feedback.noise for point in _ratings(lines)})
    low, high = (places[0], places[-1]) if places else (0.0, 0.0)
    span = high - low or 1.0
    beside = {"exact": low - _BESIDE * span, "binary": high + _BESIDE * span}
    for line, shift in zip(lines, _shifts(len(lines), span * (1 + 2 * _BESIDE)), strict=True):
        _bars(axes, line, line.ratings, [point.feedback.noise + shift for point in line.ratings], shown)
        for model, place in beside.items():
            if point := line.at(model):
                _bars(axes, line, (point,), [place + shift], shown)
    ticks = {beside["exact"]: "exact", **{place: f"{place:g}" for place in places}, beside["binary"]: "binary"}
    axes.set_xticks(list(ticks), list(ticks.values()))
    for place in (low - _BESIDE * span / 2, high + _BESIDE * span / 2) if places else ():
        axes.axvline(place, color="#b0b0b0", linewidth=0.8, zorder=0.5)
    axes.set_xlim(beside["exact"] - _BESIDE * span / 2, beside["binary"] + _BESIDE * span / 2)
    axes.grid(axis="x", visible=False)
    levels = _listed({point.feedback.levels for point in _ratings(lines)})
    axes.set_xlabel(f"ratings in {levels} grades: sd of their noise" if levels else "losses")


def _shifts(count: int, span: float) -> list[float]:
    return [(place - (count - 1) / 2) * _DODGE * span for place in range(count)]


def _bars(
    axes: Axes, line: NoiseLine, points: Sequence[Point], xs: Sequence[float], shown: Sequence[LearnerRuns]
) -> None:
    if not points:
        return
    style = _style(line.learner, shown)
    means = [point.test.mean for point in points]
    spread = [2 * point.test.sd if point.test.sd is not None else float("nan") for point in points]  # nan: no bar
    axes.errorbar(xs, means, yerr=spread, elinewidth=1.1, capsize=2, **style | {"linewidth": 1.4, "markersize": 5})


def _style(learner: LearnerRuns, shown: Sequence[LearnerRuns]) -> dict[str, Any]:
    """Marks without a line must tell the perturbations apart, too."""
    return line_style(learner, shown) | ({"markerfacecolor": "white"} if learner.perturb == "active" else {})


def _ratings(lines: Sequence[NoiseLine]) -> list[Point]:
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
    return " ".join([*parts, "ACTIVE dashed with open marks, SCORE dash-dotted; a colour and a marker for each rule."])
