"""Curves against iterations: average cumulative loss (paper Figures 1 and 2) and the dev metric.

    for figure in curve_figures(experiment, folder, "chunking"):           # none where there are no curves
        figure.caption

Mean over seeds as a line, two standard deviations filled, as far as a loss or metric can be (0 to 1); a line style for
each perturbation. The average loss also against the number of losses asked for: two-point takes two a step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sparsezo.reports.figures.sheet import (
    MOST_LETTERS,
    OTHER_RULE,
    RULE_STYLES,
    WIDTH,
    Figure,
    new_sheet,
    save,
    shortened,
)
from sparsezo.reports.results import LearnerRuns, ReportedExperiment
from sparsezo.reports.tables import count_text, signature
from sparsezo.rules import RULES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

LINE_STYLES: dict[str, Any] = {
    "all": "-",
    "active": (0, (5, 2)),
    "score": (0, (4, 1.2, 1, 1.2)),  # dash-dot
    "first-order": (0, (1, 1)),
    "supervised": (0, (1, 2.5)),
}
Style = Callable[[LearnerRuns, Sequence[LearnerRuns]], dict[str, Any]]
_HANDLE = 16  # letters that a line in a legend is wide
_ROOM = 120  # letters that all of a legend's columns may be wide
_MORE_MARKERS = (">", "<", "p", "h", "d", "8")  # for a third variant of a rule, and more
LEGEND_COLUMNS = {"all": "ALL", "active": "ACTIVE", "score": "SCORE"}


def curve_figures(experiment: ReportedExperiment, folder: Path, slug: str) -> Iterator[Figure]:
    """Loss, then dev; each at fixed settings, as in the paper's figures, and at tuned ones, where there are such."""
    metric = experiment.metric_name
    loss = f"average cumulative loss ({experiment.loss_name})"
    asked = "losses asked for"
    for kind, view in (
        ("loss", View("average_loss", loss, "Average cumulative loss against iterations")),
        ("asked", View("average_loss", loss, f"Average cumulative loss against the {asked}", asked)),
        ("dev", View("dev", f"dev {metric}", f"Dev {metric} against iterations")),
    ):
        for phase in experiment.phases(view.column):
            name = f"{kind}-{slug}" if phase == "fixed" else f"{kind}-{phase}-{slug}"
            figure = _curves(experiment, folder, name, view, phase)
            if figure is not None:
                yield figure


@dataclass(frozen=True)
class View:
    """One figure's axes."""

    column: str
    label: str
    title: str
    along: str = "iterations"

    def places(self, learner: LearnerRuns) -> int | None:
        """How far a step is on the x axis; None where the learner has no place there."""
        return 1 if self.along == "iterations" else losses_a_step(learner.rule)


def losses_a_step(rule: str) -> int | None:
    """How many losses, or outputs in a comparison, a step asks for; None where it asks for none."""
    known = RULES.get(rule)
    if known is None or known.asks or rule == "supervised":
        return None
    return 1 if known.incumbent is None else 2


def _curves(experiment: ReportedExperiment, folder: Path, name: str, view: View, phase: str) -> Figure | None:
    column, title = view.column, view.title
    shown = [item for item in experiment.drawn if item.mean_curve(phase, column) is not None and view.places(item)]
    if not shown or (view.along != "iterations" and len({view.places(item) for item in shown}) < 2):
        return None
    mark = signature(experiment, phase, shown)
    drawing, axes = new_sheet(3.6, legend_rows(shown), mark)
    seeds, several = 1, 0
    for index, learner in enumerate(shown):
        several = max(several, _line(axes, learner, phase, view, index, shown))
        seeds = max(seeds, len(learner.runs(phase)))
    axes.set_title(f"{experiment.title}, {phase} settings", fontsize=10.5, loc="left")
    axes.set_ylabel(view.label)
    axes.set_xlabel(view.along)
    _limit(axes)
    if several > 3:
        _log_axis(axes, view.along)
    draw_legend(drawing, axes, shown)
    few = {1: "a single seed, so no spread", 2: "mean over two seeds, too few for a spread"}
    spread = few.get(seeds, "mean over seeds, 2 standard deviations filled")
    caption = (
        f"{title}, {phase} settings: {spread}. ALL solid, ACTIVE dashed, SCORE dash-dotted; "
        "a colour and a marker for each rule."
    )
    if view.along != "iterations":
        caption += " A step of two-point, symmetric, comparison or preference asks about two outputs, others about one."
    if experiment.dense:
        caption += " Every feature is active in every input here, so ACTIVE is ALL."
    if len(experiment.drawn) < len(experiment.learners):
        caption += " Exact feedback only."
    return Figure(name, title, caption, mark, save(drawing, folder, name))


def _line(axes: Axes, learner: LearnerRuns, phase: str, view: View, index: int, shown: Sequence[LearnerRuns]) -> int:
    curve = learner.mean_curve(phase, view.column)
    if curve is None:
        return 0
    start = 1 if curve.at.size > 1 and curve.at[0] == 0 else 0  # before the first step: no place on a log axis
    x, mean = curve.at[start:] * (view.places(learner) or 1), curve.mean[start:]
    style = line_style(learner, shown)
    axes.plot(x, mean, markevery=(0.015 * (index + 1), 0.17), **style)
    if curve.sd is not None:
        low, high = within_range(mean - 2 * curve.sd[start:]), within_range(mean + 2 * curve.sd[start:])
        axes.fill_between(x, low, high, color=style["color"], alpha=0.16, linewidth=0)
    return int(x.size)


def within_range(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """A band may not say that a loss or a metric could be below 0 or above 1."""
    return np.clip(values, 0.0, 1.0)


def _limit(axes: Axes) -> None:
    """The lines decide what is to be seen; one wide band must not flatten them all."""
    means = np.concatenate([np.asarray(line.get_ydata(), float) for line in axes.get_lines()])
    least, most = float(np.nanmin(means)), float(np.nanmax(means))
    room = 0.15 * (most - least) or 0.01
    low, high = axes.get_ylim()
    axes.set_ylim(max(low, least - room), min(high, most + room))


def _log_axis(axes: Axes, along: str) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_xscale("log")
    low, high = axes.get_xlim()
    subs = (1.0, 2.0, 5.0) if high / low < 3000 else (1.0,)
    axes.xaxis.set_major_locator(LogLocator(subs=subs, numticks=20))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: count_text(value)))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel(f"{along} (log scale)")


def line_style(learner: LearnerRuns, shown: Sequence[LearnerRuns]) -> dict[str, Any]:
    colour, marker = RULE_STYLES.get(learner.rule, OTHER_RULE)
    alike = [item for item in shown if (item.rule, item.perturb) == (learner.rule, learner.perturb)]
    place = alike.index(learner)
    variant = place > 0  # such as another step
    marker = marker if place < 2 else _MORE_MARKERS[place % len(_MORE_MARKERS)]
    return {
        "color": colour,
        "linestyle": LINE_STYLES.get(learner.group, "-"),
        "linewidth": 1.2 if variant else 1.9,
        "marker": marker,
        "markersize": 5.5 if marker != "*" else 8,
        "markerfacecolor": "white" if variant else colour,
        "markeredgewidth": 0.9,
    }


def _legend_groups(shown: Sequence[LearnerRuns]) -> list[tuple[str, list[LearnerRuns]]]:
    columns: dict[str, list[LearnerRuns]] = {}
    for item in shown:
        columns.setdefault(LEGEND_COLUMNS.get(item.group, "other"), []).append(item)
    return list(columns.items())


def legend_rows(shown: Sequence[LearnerRuns]) -> int:
    return 1 + max(len(members) for _, members in _legend_groups(shown))


def draw_legend(drawing: Drawing, axes: Axes, shown: Sequence[LearnerRuns], style: Style = line_style) -> None:
    """Below the plot, a column for each perturbation."""
    from matplotlib.lines import Line2D

    groups = _legend_groups(shown)
    most = _fitting(groups)
    wide = _widths(groups, most)
    step = (1 - 0.2 / WIDTH) / max(sum(wide), 2 * max(wide))  # columns by the length of their names
    left = 0.1 / WIDTH
    top = axes.get_position().y0 - 0.47 / drawing.get_figheight()
    for room, (title, members) in zip(wide, groups, strict=True):
        handles = [Line2D([], [], **style(item, shown)) for item in members]
        labels = [_short(item, most) for item in members]
        drawing.legend(
            handles,
            labels,
            title=title,
            loc="upper left",
            bbox_to_anchor=(left, top),
            frameon=False,
            alignment="left",
            fontsize=8.5,
            title_fontproperties={"weight": "bold", "size": 8.5},
            handlelength=3.6,
            labelspacing=0.35,
            borderpad=0,
            borderaxespad=0,
        )
        left += room * step


Groups = Sequence[tuple[str, Sequence[LearnerRuns]]]


def _widths(groups: Groups, most: int) -> list[int]:
    """Of the legend's columns, in letters."""
    return [max(_HANDLE + len(_short(item, most)) for item in members) for _, members in groups]


def _fitting(groups: Groups) -> int:
    """As many letters of a name as leave each column its room."""
    return next((n for n in range(MOST_LETTERS, 12, -1) if sum(_widths(groups, n)) <= _ROOM), 12)


def _short(learner: LearnerRuns, most: int = MOST_LETTERS) -> str:
    """The name without the perturbation, which heads the column."""
    words = [word for word in learner.name.split() if word != learner.perturb]
    return shortened(" ".join(words) or learner.name, most)
