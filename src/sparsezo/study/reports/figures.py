"""The figures of a report: curves against iterations, and test results by learner.

    with drawing_style():
        for figure in curve_figures(experiment, folder, "chunking"):       # writes .svg and .png
            figure.inline_svg()                                            # for one HTML page with several figures

Curves are the average cumulative loss (paper Figures 1 and 2), also against the number of losses asked for (two-point
takes two a step), the dev metric, and dev's loss at settings that were tuned for speed. Mean over seeds as a line,
standard errors filled, as far as a loss or metric can be (0 to 1). A panel for each perturbation; a colour and a marker
for each rule, for grey print and the colour-blind. matplotlib is imported when it is needed.
"""

from __future__ import annotations

import io
import math
import re
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsezo.errors import SparsezoError
from sparsezo.rules import PERTURBATIONS
from sparsezo.storage.files import atomic_write
from sparsezo.study.plan import SHOWN_PHASES
from sparsezo.study.reports.results import FEWEST, SETTINGS, LearnerRuns, ReportedExperiment, Spread
from sparsezo.study.reports.tables import count_text, losses_a_step, signature

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

Style = dict[str, Any]  # in matplotlib's words
Values = NDArray[np.float64]

# Okabe and Ito's colours, which stay apart for the colour-blind; the yellow is too light for lines
RULE_STYLES: dict[str, tuple[str, str]] = {
    "two-point": ("#0072B2", "o"),
    "baseline": ("#E69F00", "^"),
    "comparison": ("#009E73", "s"),
    "symmetric": ("#D55E00", "D"),
    "preference": ("#CC79A7", "v"),
    "first-order": ("#000000", "*"),
    "supervised": ("#7F7F7F", "P"),
    # rules that learn from what an answer says, whose pages do not show those above that have the same colour
    "part": ("#0072B2", "h"),
    "label": ("#009E73", "p"),
    "span": ("#56B4E9", "8"),
    "review": ("#AA3377", "s"),
    "pair": ("#D55E00", "d"),
    "best": ("#AA3377", "D"),
    "rate": ("#E69F00", "<"),
    "pairwise": ("#882255", ">"),
    "cross-entropy": ("#44AA99", "H"),
}
OTHER_RULE = ("#999933", "X")
LINE_STYLES: Style = {
    "all": "-",
    "active": (0, (5, 2)),
    "score": (0, (4, 1.2, 1, 1.2)),  # dash-dot
    "first-order": (0, (1, 1)),
    "supervised": (0, (1, 2.5)),
}
LEGEND: Style = {"loc": "upper left", "frameon": False, "fontsize": 8.5}  # its upper left corner is given
LEGEND |= {"labelspacing": 0.35, "borderpad": 0, "borderaxespad": 0}
_HANDLE = 16  # letters that a line in a legend is wide
_ROOM = 110  # letters that all of a legend's columns may be wide
_MORE_MARKERS = (">", "<", "p", "h", "d", "8")  # for a third variant of a rule, and more
WIDTH = 7.0  # inches
MOST_LETTERS = 34  # of a learner's name
_BETWEEN = 0.12  # inches, between panels
_FLAT = 0.1  # of the best one's way down: a learner that goes less is not drawn
_ROW = 0.175  # of a legend or a signature, inches
_RC: Any = {"font.family": "DejaVu Sans", "font.size": 9.5, "text.parse_math": False}
_RC |= {"axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True, "axes.grid": True}
_RC |= {"grid.color": "#e4e4e4", "grid.linewidth": 0.6}
_RC |= {"svg.fonttype": "path", "svg.hashsalt": "sparsezo"}  # looks the same anywhere; the same results, the same file


@dataclass(frozen=True)
class Figure:
    name: str  # of its files, without the ending
    title: str
    caption: str
    signature: str
    svg: str

    def inline_svg(self) -> str:
        """To stand in HTML beside others: no prolog, no addresses, its caption as label, and no id that another has."""
        svg = self.svg[self.svg.index("<svg") :]
        svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
        svg = re.sub(r'\s+xmlns(:\w+)?="[^"]*"', "", svg).replace("xlink:href", "href")
        prefix = f"{self.name}-"
        svg = re.sub(r'\bid="', f'id="{prefix}', svg)
        svg = svg.replace("url(#", f"url(#{prefix}").replace('href="#', f'href="#{prefix}')
        svg = re.sub(r'<svg\b(.*?)\s+width="[^"]*"', r'<svg\1 role="img"', svg, count=1, flags=re.DOTALL)
        svg = svg.replace(' height="', ' data-height="', 1)
        return svg.replace("<svg", f'<svg aria-label="{escape(self.caption)}"', 1)


def shortened(name: str, most: int = MOST_LETTERS) -> str:
    """Cut in the middle: names that are long differ at their ends, too."""
    end = (most - 1) * 2 // 3
    return name if len(name) <= most else f"{name[: most - 1 - end].rstrip()}…{name[-end:].lstrip()}"


def figure_folder(target: Path) -> Path:
    """Makes the folder of a report, and gives that of its figures."""
    try:
        (target / "figures").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SparsezoError(f"{target}: cannot be made ({error.strerror or error}); name another folder") from None
    return target / "figures"


@contextmanager
def drawing_style() -> Iterator[None]:
    import matplotlib

    with matplotlib.rc_context(_RC), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # a learner's name may hold any letter
        yield


def save(drawing: Drawing, folder: Path, name: str) -> str:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(drawing)
    svg, png = io.BytesIO(), io.BytesIO()
    drawing.savefig(svg, format="svg", metadata={"Date": None})
    drawing.savefig(png, format="png", dpi=150, metadata={"Software": None})
    for ending, stream in ((".svg", svg), (".png", png)):
        with atomic_write(folder / (name + ending)) as out:
            out.write(stream.getvalue())
    return svg.getvalue().decode("utf-8")


def new_sheet(
    plot_height: float, rows_below: int, mark: str, left: float = 0.75, right: float = 0.25
) -> tuple[Drawing, Axes]:
    """A figure with its signature at the foot and room for ``rows_below`` rows of legend above it."""
    from matplotlib.figure import Figure as Drawing

    spaced = mark.replace("|", " |\N{NO-BREAK SPACE}").replace(";", "; ")  # a bar stays with what follows
    lines = textwrap.wrap(spaced, 132)
    foot, legend, axis, top = 0.08 + 0.13 * len(lines), _ROW * rows_below + 0.1, 0.5, 0.35
    height = foot + legend + axis + plot_height + top
    drawing = Drawing(figsize=(WIDTH, height), facecolor="white")
    bottom = (foot + legend + axis) / height
    axes = drawing.add_axes((left / WIDTH, bottom, (WIDTH - left - right) / WIDTH, plot_height / height))
    drawing.text(0.1 / WIDTH, 0.05 / height, "\n".join(lines), fontsize=6.5, color="#555555", va="bottom")
    return drawing, axes


def split(drawing: Drawing, whole: Axes, rows: int, columns: int, across: float, down: float = 0.0) -> list[list[Axes]]:
    """Panels in the place of one, all with one y axis; what is between them is given as a share of the sheet."""
    box = whole.get_position()
    whole.remove()
    width, height = (box.width - (columns - 1) * across) / columns, (box.height - (rows - 1) * down) / rows
    place = {"left": box.x0, "right": box.x1, "bottom": box.y0, "top": box.y1}
    place |= {"wspace": across / width, "hspace": down / height}
    return [list(row) for row in drawing.subplots(rows, columns, sharey=True, squeeze=False, gridspec_kw=place)]


# Curves

Styling = Callable[[LearnerRuns, Sequence[LearnerRuns]], Style]
_ASKED = "losses asked for"


def curve_figures(experiment: ReportedExperiment, folder: Path, slug: str) -> Iterator[Figure]:
    """Loss, then dev, at fixed settings as in the paper's figures and at tuned ones, where there are such; and the loss
    of the best outputs at settings that were tuned for speed."""
    metric, loss = experiment.metric_name, f"average cumulative loss ({experiment.loss_name})"
    best, average = f"loss on dev ({experiment.loss_name})", "Average cumulative loss"
    for kind, column, label, title, along in (
        ("loss", "average_loss", loss, average, "iterations"),
        ("asked", "average_loss", loss, average, _ASKED),
        ("dev", "dev", f"dev {metric}", f"Dev {metric}", "iterations"),
        ("loss", "dev_loss", best, "Loss of the best outputs on dev", "iterations"),
        ("asked", "dev_loss", best, "Loss of the best outputs on dev", _ASKED),
    ):
        for phase in SHOWN_PHASES:
            if (phase == "speed") != (column == "dev_loss"):
                continue
            # how far a step is on the x axis; what has no place there is not shown
            known = [(item, 1 if along != _ASKED else losses_a_step(item.rule)) for item in experiment.drawn]
            there = {item: far for item, far in known if far and item.mean_curve(phase, column)}
            if there and (along != _ASKED or len(set(there.values())) > 1):
                shown, flat = (there, []) if column == "dev" else _without_flat(there, phase, column)
                name = f"{kind}-{slug}" if phase == "fixed" else f"{kind}-{phase}-{slug}"
                against = f"{title} against {'the ' if along == _ASKED else ''}{along}"
                mark = signature(experiment, phase, shown)
                drawing, caption = _curves(experiment, shown, phase, column, (label, along), mark)
                if flat:
                    caption += f" Not drawn, as they hardly learn: {', '.join(flat)}."
                yield Figure(name, against, f"{against}, {caption}", mark, save(drawing, folder, name))


def _without_flat(
    shown: Mapping[LearnerRuns, int], phase: str, column: str
) -> tuple[Mapping[LearnerRuns, int], list[str]]:
    """Those whose loss goes down; and the names of the others, which come less than a tenth as far down, from where the
    worst begins, as the best does."""
    ends = {item: _first_and_least(item, phase, column) for item in shown}
    top = max(first for first, _ in ends.values())
    best = top - min(least for _, least in ends.values())
    flat = [item for item, (_, least) in ends.items() if top - least < _FLAT * best]
    return {item: far for item, far in shown.items() if item not in flat}, [item.name for item in flat]


def _first_and_least(learner: LearnerRuns, phase: str, column: str) -> tuple[float, float]:
    """Of its mean curve of a loss, after the first step."""
    curve = learner.mean_curve(phase, column)
    assert curve is not None
    losses = curve.mean[1:] if curve.at.size > 1 and curve.at[0] == 0 else curve.mean
    return float(losses[0]), float(losses.min())


def by_perturbation(shown: Sequence[LearnerRuns]) -> dict[str, list[LearnerRuns]]:
    """A panel for each perturbation, by its title; what perturbs nothing is in all of them."""
    groups = [group for group in PERTURBATIONS if any(item.perturb == group for item in shown)]
    return {group.upper(): [item for item in shown if item.perturb in (group, None)] for group in groups} or {
        "": list(shown)
    }


def _curves(
    experiment: ReportedExperiment,
    places: Mapping[LearnerRuns, int],
    phase: str,
    column: str,
    labels: tuple[str, str],
    mark: str,
) -> tuple[Drawing, str]:
    shown, (label, along) = list(places), labels
    panels = by_perturbation(shown)
    drawing, whole = new_sheet(3.6 if len(panels) == 1 else 2.0 * len(panels), legend_rows(shown), mark)
    rows = [row[0] for row in split(drawing, whole, len(panels), 1, 0.0, _BETWEEN / drawing.get_figheight())]
    points = [
        max(_line(axes, learner, phase, column, places) for learner in members)
        for axes, members in zip(rows, panels.values(), strict=True)
    ]
    rows[0].set_title(f"{experiment.title}, {SETTINGS[phase]}", fontsize=10.5, loc="left")
    far = max(points) > 3
    for axes, title in zip(rows, panels, strict=True):
        axes.set_ylabel(label.replace(" (", "\n("), fontsize=9)
        axes.annotate(title, (0.99, 0.95), xycoords="axes fraction", ha="right", va="top", fontsize=9, weight="bold")
        if far:
            axes.set_xscale("log")
    low, high = min(axes.get_xlim()[0] for axes in rows), max(axes.get_xlim()[1] for axes in rows)
    for axes in rows:
        axes.set_xlim(low, high)
        if far:
            count_ticks(axes)
        axes.tick_params(labelbottom=axes is rows[-1])
    _limit(rows)
    rows[-1].set_xlabel(f"{along} (log scale)" if far else along)
    draw_legend(drawing, rows[-1], shown)
    words = spread_words(shown, phase, "standard errors filled")
    each = "a panel for each perturbation, " if len(panels) > 1 else ""
    caption = f"{SETTINGS[phase]}: {words}; {each}a colour and a marker for each rule."
    if along == _ASKED:
        caption += " A step of two-point, symmetric, comparison or preference asks about two outputs, others about one."
    if experiment.dense:
        caption += " Every feature is active in every input here, so ACTIVE is ALL."
    return drawing, caption + _exact_only(experiment)


def _exact_only(experiment: ReportedExperiment) -> str:
    return " Exact feedback only." if len(experiment.drawn) < len(experiment.learners) else ""


def _line(axes: Axes, learner: LearnerRuns, phase: str, column: str, places: Mapping[LearnerRuns, int]) -> int:
    """Draw a learner's mean curve; how many points it has."""
    curve = learner.mean_curve(phase, column)
    assert curve is not None
    shown = list(places)
    start = 1 if curve.at.size > 1 and curve.at[0] == 0 else 0  # before the first step: no place on a log axis
    x, mean = curve.at[start:] * places[learner], curve.mean[start:]
    style = line_style(learner, shown)
    axes.plot(x, mean, markevery=(0.015 * (shown.index(learner) + 1), 0.17), **style)
    if curve.sd is not None:
        error = curve.sd[start:] / math.sqrt(len(learner.runs(phase)))
        fill_band(axes, x, mean, error, style["color"], 0.25)
    return int(x.size)


def fill_band(axes: Axes, x: ArrayLike, mean: Values, half: Values, colour: str, alpha: float) -> None:
    low, high = within_range(mean - half), within_range(mean + half)
    axes.fill_between(x, low, high, color=colour, alpha=alpha, linewidth=0)


def spread_words(learners: Sequence[LearnerRuns], phase: str, spread: str) -> str:
    """For a caption: what is drawn of the seeds, with ``spread`` where there are enough of them."""
    seeds = max(len(learner.runs(phase)) for learner in learners)
    few = {1: "a single seed, so no spread", 2: "mean over two seeds, too few for a spread"}
    return f"mean over seeds, {spread}" if seeds >= FEWEST else few[seeds]


def within_range(values: Values) -> Values:
    """A band may not say that a loss or a metric could be below 0 or above 1."""
    return np.clip(values, 0.0, 1.0)


def _limit(panels: Sequence[Axes]) -> None:
    """The lines decide what is to be seen; one wide band must not flatten them all."""
    means = np.concatenate([np.asarray(line.get_ydata(), float) for axes in panels for line in axes.get_lines()])
    least, most = float(np.nanmin(means)), float(np.nanmax(means))
    room = 0.1 * (most - least) or 0.01
    for axes in panels:
        axes.set_ylim(max(0.0, least - room), min(1.0, most + room))


def count_ticks(axes: Axes) -> None:
    """Ticks of a logarithmic x axis as counts: 200, 5k, 1M."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axes.get_xlim()
    subs = (1.0, 2.0, 5.0) if high / low < 3000 else (1.0,)
    axes.xaxis.set_major_locator(LogLocator(subs=subs, numticks=20))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: count_text(value)))
    axes.xaxis.set_minor_formatter(NullFormatter())


def line_style(learner: LearnerRuns, shown: Sequence[LearnerRuns]) -> Style:
    """How ``learner`` is drawn among those of ``shown``, in matplotlib's words."""
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


# The legend below the panels: a name for each kind of learner, whatever it perturbs


def legend_names(shown: Sequence[LearnerRuns]) -> dict[str, LearnerRuns]:
    """By name without the perturbation, which a panel has: the learner whose style stands for it."""
    names: dict[str, LearnerRuns] = {}
    for item in shown:
        name = " ".join(word for word in item.name.split() if word != item.perturb) or item.name
        names.setdefault(shortened(name, _ROOM // 2 - _HANDLE), item)
    return names


def _columns(names: Iterable[str]) -> int:
    """As many as there is room for."""
    widest = _HANDLE + max(map(len, names))
    return max(1, min(4, _ROOM // widest))


def legend_rows(shown: Sequence[LearnerRuns]) -> int:
    names = legend_names(shown)
    return -(-len(names) // _columns(names))


def draw_legend(drawing: Drawing, axes: Axes, shown: Sequence[LearnerRuns], style: Styling = line_style) -> None:
    from matplotlib.lines import Line2D

    names = legend_names(shown)
    several = len(by_perturbation(shown)) > 1
    plain: Style = {"linestyle": "-"} if several else {}  # the panels tell perturbations apart
    handles = [Line2D([], [], **{**style(item, shown), **plain}) for item in names.values()]
    how: Style = LEGEND | {"handlelength": 3.6, "ncols": _columns(names), "columnspacing": 1.5}
    drawing.legend(handles, list(names), bbox_to_anchor=(0.1 / WIDTH, below(drawing, axes)), **how)


def below(drawing: Drawing, axes: Axes) -> float:
    """Where a legend below the axes begins, as a share of the sheet."""
    return float(axes.get_position().y0) - 0.47 / float(drawing.get_figheight())


# Test results


_SHOWN_BOUNDS = ("out-of-domain", "in-domain")


def results_figure(experiment: ReportedExperiment, folder: Path, slug: str) -> Figure | None:
    from matplotlib.lines import Line2D

    exact = [item for item in experiment.learners if item in experiment.drawn or item.annealed]
    found = [(item, *item.best()) for item in exact]
    tested = [(item, phase, test) for item, phase, test in found if test is not None]
    if not tested:
        return None
    shown = [item for item, _, _ in tested]
    phase, metric = "tuned" if any(phase == "tuned" for _, phase, _ in tested) else "fixed", experiment.metric_name
    mark = signature(experiment, phase, shown)
    places = [0.0]  # a row for each learner, with a gap between groups
    for before, item in pairwise(shown):
        places.append(places[-1] + (1.0 if before.group == item.group else 1.6))
    names = [shortened(item.name) for item in shown]
    left = 0.3 + 0.077 * max(map(len, names))
    drawing, axes = new_sheet(0.26 * (places[-1] + 2), 1, mark, left=left, right=0.75)
    ours = [value for _, _, test in tested for value in test.values]
    ours += [value for name in _SHOWN_BOUNDS if (value := experiment.bound(name, experiment.metric)) is not None]
    room = max(ours) - min(ours)
    papers = {item.name: item.paper for item in shown if item.paper is not None}
    far = [name for name, value in papers.items() if not min(ours) - room / 2 <= value <= max(ours) + room / 2]
    for y, (learner, _, test) in zip(places, tested, strict=True):
        _dots(axes, learner, test, y, paper=learner.name not in far)
    axes.set_yticks(places, names)
    axes.set_ylim(places[-1] + 1.1, -0.9)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel(f"test {metric}")
    axes.set_title(f"{experiment.title}, {phase} settings", fontsize=10.5, loc="left")
    _bounds(axes, experiment)
    dot: Style = {"linestyle": "", "color": "#444444", "marker": "o"}
    handles = [Line2D([], [], **dot, markersize=3, alpha=0.7, label="a seed")]
    handles.append(Line2D([], [], **dot, markersize=8, label="mean"))
    caption = f"Test {metric} by learner: small dots are seeds, the large mark is their mean."
    if len(papers) > len(far):
        handles.append(Line2D([], [], color="black", linestyle="", marker="|", markersize=12, label="paper"))
        caption += " | is the paper's figure."
    if far:
        caption += " The paper's figures, of its own data, lie too far off to be drawn: they are in the table."
    if any(item.annealed for item in shown):
        caption += " Open marks: the annealed criterion."
    at = (axes.get_position().x0, below(drawing, axes))
    drawing.legend(handles=handles, bbox_to_anchor=at, ncols=3, handlelength=1.2, **LEGEND)
    name, caption = f"test-{slug}", caption + _exact_only(experiment)
    return Figure(name, f"Test {metric} by learner", caption, mark, save(drawing, folder, name))


def _dots(axes: Axes, learner: LearnerRuns, test: Spread, y: float, *, paper: bool) -> None:
    colour, marker = RULE_STYLES.get(learner.rule, OTHER_RULE)
    under = [y + 0.36] * len(test.values)
    axes.plot(test.values, under, "o", color=colour, markersize=3, alpha=0.7, markeredgewidth=0)
    size = 11 if marker == "*" else 8
    face, edge = ("white", colour) if learner.annealed else (colour, "white")
    drawn: Style = {
        "markerfacecolor": face,
        "markeredgecolor": edge,
        "markeredgewidth": 1.4 if learner.annealed else 0.7,
    }
    axes.plot([test.mean], [y], marker, color=colour, markersize=size, **drawn)
    if paper and learner.paper is not None:
        axes.plot([learner.paper], [y], "|", color="black", markersize=13, markeredgewidth=1.6)
    axes.annotate(f"{test.mean:.4f}", (1.015, y), xycoords=("axes fraction", "data"), va="center", fontsize=8.5)


def _bounds(axes: Axes, experiment: ReportedExperiment) -> None:
    """Vertical lines; the oracle, far off, would squeeze all the rest and stays in the table."""
    style: Style = {"xycoords": ("data", "axes fraction"), "fontsize": 7.5, "color": "#555555"}
    for name, height, va in zip(_SHOWN_BOUNDS, (0.0, 1.0), ("bottom", "top"), strict=True):
        value = experiment.bound(name, experiment.metric)
        if value is not None:
            axes.axvline(value, color="#555555", linewidth=1, linestyle=(0, (2, 2)), zorder=0.5)
            right = value > sum(axes.get_xlim()) / 2
            axes.annotate(f" {name} ", (value, height), va=va, ha="right" if right else "left", **style)
