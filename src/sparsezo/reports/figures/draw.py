"""The figures of a report: those of curves, test results by learner, and test results against the raters' noise.

for figure in draw_figures(experiment, folder, "chunking"):        # writes .svg and .png
    figure.inline_svg()                                            # for one HTML page with several figures
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparsezo.reports.figures.curves import curve_figures
from sparsezo.reports.figures.noise import noise_figure
from sparsezo.reports.figures.sheet import OTHER_RULE, RULE_STYLES, Figure, drawing_style, new_sheet, save, shortened
from sparsezo.reports.results import LearnerRuns, ReportedExperiment
from sparsezo.reports.tables import signature

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing


def draw_figures(experiment: ReportedExperiment, folder: Path, slug: str) -> list[Figure]:
    """Those that there are results for, each as SVG and PNG in ``folder``."""
    with drawing_style():
        noise, test = noise_figure(experiment, folder, slug), _test_figure(experiment, folder, slug)
        figures = [noise, *curve_figures(experiment, folder, slug), test]
    return [figure for figure in figures if figure is not None]


def _test_figure(experiment: ReportedExperiment, folder: Path, slug: str) -> Figure | None:
    shown = [item for item in experiment.drawn if (phase := item.best_phase()) and item.spread(phase, "test")]
    if not shown:
        return None
    phase = "tuned" if any(item.best_phase() == "tuned" for item in shown) else "fixed"
    mark = signature(experiment, phase, shown)
    places = _places(shown)
    names = [shortened(item.name) for item in shown]
    left = 0.3 + 0.077 * max(map(len, names))
    drawing, axes = new_sheet(0.26 * (places[-1] + 2), 1, mark, left=left, right=0.75)
    for y, learner in zip(places, shown, strict=True):
        _dots(axes, learner, y)
    axes.set_yticks(places, names)
    axes.set_ylim(places[-1] + 1.1, -0.9)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel(f"test {experiment.metric_name}")
    axes.set_title(f"{experiment.title}, {phase} settings", fontsize=10.5, loc="left")
    _bounds(axes, experiment)
    _test_legend(drawing, axes, shown)
    metric = experiment.metric_name
    caption = f"Test {metric} by learner: small dots are seeds, the large mark is their mean."
    if any(item.paper is not None for item in shown):
        caption += " | is the paper's figure."
    if len(experiment.drawn) < len(experiment.learners):
        caption += " Exact feedback only."
    name = f"test-{slug}"
    return Figure(name, f"Test {metric} by learner", caption, mark, save(drawing, folder, name))


def _places(shown: Sequence[LearnerRuns]) -> list[float]:
    """A row for each learner, with a gap between groups."""
    places, y = [], 0.0
    for before, item in zip([None, *shown], shown, strict=False):
        y += 0.0 if before is None else 1.0 if before.group == item.group else 1.6
        places.append(y)
    return places


def _dots(axes: Axes, learner: LearnerRuns, y: float) -> None:
    phase = learner.best_phase()
    test = learner.spread(phase, "test") if phase else None
    if test is None:
        return
    colour, marker = RULE_STYLES.get(learner.rule, OTHER_RULE)
    below = [y + 0.36] * len(test.values)
    axes.plot(test.values, below, "o", color=colour, markersize=3, alpha=0.7, markeredgewidth=0)
    size = 11 if marker == "*" else 8
    axes.plot([test.mean], [y], marker, color=colour, markersize=size, markeredgecolor="white", markeredgewidth=0.7)
    if learner.paper is not None:
        axes.plot([learner.paper], [y], "|", color="black", markersize=13, markeredgewidth=1.6)
    axes.annotate(f"{test.mean:.4f}", (1.015, y), xycoords=("axes fraction", "data"), va="center", fontsize=8.5)


def _bounds(axes: Axes, experiment: ReportedExperiment) -> None:
    """Vertical lines; the oracle, far off, would squeeze all the rest and stays in the table."""
    style: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "fontsize": 7.5, "color": "#555555"}
    for name, height, va in (("out-of-domain", 0.0, "bottom"), ("in-domain", 1.0, "top")):
        value = experiment.bound(name, experiment.metric)
        if value is not None:
            axes.axvline(value, color="#555555", linewidth=1, linestyle=(0, (2, 2)), zorder=0.5)
            right = value > sum(axes.get_xlim()) / 2
            axes.annotate(f" {name} ", (value, height), va=va, ha="right" if right else "left", **style)


def _test_legend(drawing: Drawing, axes: Axes, shown: Sequence[LearnerRuns]) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color="#444444", linestyle="", marker="o", markersize=3, alpha=0.7, label="a seed"),
        Line2D([], [], color="#444444", linestyle="", marker="o", markersize=8, label="mean"),
    ]
    if any(item.paper is not None for item in shown):
        handles.append(Line2D([], [], color="black", linestyle="", marker="|", markersize=12, label="paper"))
    top = axes.get_position().y0 - 0.47 / drawing.get_figheight()
    drawing.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(axes.get_position().x0, top),
        ncols=3,
        frameon=False,
        fontsize=8.5,
        borderpad=0,
        borderaxespad=0,
        handlelength=1.2,
    )
