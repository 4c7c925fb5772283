"""The scaling experiment written up: a page, its words, the table behind it and the figure (paper Sec. 3).

run_scaling(Path("results/scaling"))        # report.html, scaling.md, scaling.csv, figures/scaling.svg and .png
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import SparsezoError, UsageError
from sparsezo.experiments.scaling import PERTURBS, Panel, Scaling, measure_all
from sparsezo.reports.figures.curves import LINE_STYLES
from sparsezo.reports.figures.sheet import Figure, drawing_style, need_matplotlib, new_sheet, save
from sparsezo.reports.render import PlainTable, need_jinja2, render
from sparsezo.storage.files import write_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CLOSE = 0.25  # between a measured exponent and theory's
_TITLE = "What drives the cost"


def run_scaling(
    out: Path,
    quick: bool = False,
    seeds: int = 3,
    say: Callable[[str], object] = lambda line: None,
    command: str | None = None,
) -> Path:
    """Measure, and write it all into ``out``; returns the path of report.html."""
    if seeds < 1:
        raise UsageError(f"`seeds` {seeds}: must be at least 1")
    need_matplotlib()
    need_jinja2()
    try:
        (out / "figures").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SparsezoError(f"{out}: cannot be made ({error.strerror}); name another folder with -o") from None
    scaling = measure_all(quick, seeds, say)
    write_text(out / "scaling.csv", _table(scaling))
    figure = draw(scaling, out / "figures")
    write_text(out / "scaling.md", _words(scaling, figure, command))
    write_text(out / "report.html", _page(scaling, figure, command))
    return out / "report.html"


def _sd(values: NDArray[np.float64]) -> float | None:
    return float(values.std(ddof=1)) if values.size > 1 else None


_COSTS = ("iterations", "iterations_sd", "passes", "passes_sd")


def _table(scaling: Scaling) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["panel", "perturb", "n", "n_bar", "r_bar", "inputs", *_COSTS, "h", "seeds"])
    for panel in scaling.panels:
        for perturb in PERTURBS:
            for each in scaling.line(panel, perturb):
                point = each.point
                sizes = [point.n, point.n_bar, point.r_bar, point.inputs]
                costs = [v for costs in (each.iterations, each.passes) for v in (float(costs.mean()), _sd(costs))]
                writer.writerow([panel.name, perturb, *sizes, *costs, each.h, scaling.seeds])
    return text.getvalue()


def _words(scaling: Scaling, figure: Figure, command: str | None) -> str:
    lines = [f"# {_TITLE}", "", f"![{figure.title}](figures/{figure.name}.svg)", "", figure.caption, ""]
    lines += [_paragraph(scaling), ""]
    head, rows = _exponents(scaling)
    lines += ["| " + " | ".join(head) + " |", "|---|--:|--:|--:|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    lines += ["", f"Made by `{command}`."] if command else []
    return "\n".join([*lines, "", f"`{scaling.signature}`", ""])


def _page(scaling: Scaling, figure: Figure, command: str | None) -> str:
    title = f"sparsezo: {_TITLE[0].lower()}{_TITLE[1:]}"
    table, words = PlainTable(*_exponents(scaling)), _paragraph(scaling)
    return render("scaling.html.j2", title=title, figure=figure, words=words, exponents=table, command=command)


def _exponents(scaling: Scaling) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    rows = []
    for panel in scaling.panels:
        pairs = zip(scaling.exponents(panel), panel.expected, strict=True)
        figures = (f"{measured:.2f} ({expected:.2f})" for measured, expected in pairs)
        rows.append((f"{panel.title} at {panel.fixed}", *figures))
    return ("exponent of passes (theory)", *PERTURBS), rows


def _paragraph(scaling: Scaling) -> str:
    by_n, by_both, by_n_bar = (scaling.exponents(panel) for panel in scaling.panels)
    raw = scaling.exponents(scaling.panels[0], "iterations")
    text = (
        "Cost is counted in passes: iterations until f(w) is half of f(0), for each input, at the best constant h for "
        f"each point. When n grows, all takes n^{by_n[0]:.2f} passes, active n^{by_n[1]:.2f} and score "
        f"n^{by_n[2]:.2f}. When n̄ grows and n and r̄ do not, all takes n̄^{by_n_bar[0]:.2f}, active "
        f"n̄^{by_n_bar[1]:.2f} and score n̄^{by_n_bar[2]:.2f}. When r̄ grows with n̄, they take n̄^{by_both[0]:.2f}, "
        f"n̄^{by_both[1]:.2f} and n̄^{by_both[2]:.2f}. Theory: the second moment of a step is L0² (m + 2) where mu u "
        "crosses no kink, with m = n for all, n̄ for active and r̄ for score. So cost goes as n for all and as n̄ for "
        "active; for score it is flat in both and goes as r̄. (The further factor r̄ of the bound in docs/theory.md, "
        "remark 6, is for steps at a kink.) The table has theory's exponents in brackets, those of m + 2 at the sizes "
        f"measured. {_verdict(scaling)} The number of inputs that determine n weights is proportional to n / r̄, and so "
        "is R², for every perturbation. That is why passes are counted: iterations themselves grow with n as "
        f"n^{raw[0]:.2f}, n^{raw[1]:.2f} and n^{raw[2]:.2f}."
    )
    edges = sum(each.edge for each in scaling.found.values())
    return text + (f" At {edges} points the best h is an end of the grid." if edges else "")


def _verdict(scaling: Scaling) -> str:
    off = [
        f"{perturb} where {panel.title} ({measured:.2f} for {expected:.2f})"
        for panel in scaling.panels
        for perturb, measured, expected in zip(PERTURBS, scaling.exponents(panel), panel.expected, strict=True)
        if abs(measured - expected) > _CLOSE
    ]
    return f"Off by more than {_CLOSE:g}: {'; '.join(off)}." if off else f"All nine agree with them within {_CLOSE:g}."


# The figure

_STYLES: dict[str, dict[str, Any]] = {  # shades of two-point's blue; markers for grey print
    "all": {"color": "#003B5C", "marker": "s"},
    "active": {"color": "#0072B2", "marker": "o"},
    "score": {"color": "#4FA8DC", "marker": "D"},
}
_REFERENCE = "#9a9a9a"


def draw(scaling: Scaling, folder: Path) -> Figure:
    with drawing_style():
        sheet, whole = new_sheet(2.5, 4, scaling.signature, left=0.62, right=0.12)
        box = whole.get_position()
        whole.remove()
        width = (box.width - 2 * 0.03) / 3
        first: Axes | None = None
        for j, panel in enumerate(scaling.panels):
            axes = sheet.add_axes((box.x0 + j * (width + 0.03), box.y0, width, box.height), sharey=first)
            _draw_panel(axes, scaling, panel)
            top = box.y0 - 0.47 / sheet.get_figheight()
            axes.legend(
                loc="upper left",
                bbox_to_anchor=(box.x0 + j * (width + 0.03), top),
                bbox_transform=sheet.transFigure,
                frameon=False,
                fontsize=8.5,
                handlelength=3.6,
                labelspacing=0.35,
                borderpad=0,
                borderaxespad=0,
            )
            if first is None:
                axes.set_ylabel("passes to half the loss")
            else:
                axes.tick_params(labelleft=False)
            first = first or axes
        svg = save(sheet, folder, "scaling")
    spread = "bars from the least to the most" if scaling.seeds > 1 else "a single seed, so no spread"
    caption = (
        f"Passes over the inputs until f(w) is half of f(0), at the best h: mean over seeds, {spread}. ALL solid, "
        "ACTIVE dashed, SCORE dash-dotted, with the slopes fitted on the log-log scale; dotted: slope 1."
    )
    return Figure("scaling", "Cost against n, n̄ and r̄", caption, scaling.signature, svg)


def _draw_panel(axes: Axes, scaling: Scaling, panel: Panel) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    sizes = np.array(panel.sizes)
    axes.set_xscale("log")
    axes.set_yscale("log")
    for perturb, slope in zip(PERTURBS, scaling.exponents(panel), strict=True):
        line = scaling.line(panel, perturb)
        style = {**_STYLES[perturb], "linestyle": LINE_STYLES[perturb], "linewidth": 1.9, "markersize": 5}
        means = [each.passes.mean() for each in line]
        axes.plot(sizes, means, label=f"{perturb.upper()}, slope {slope:.2f}".replace("-", "−"), **style)
        low, high = ([pick(each.passes) for each in line] for pick in (np.min, np.max))
        axes.vlines(sizes, low, high, color=style["color"], linewidth=1)
    steepest = PERTURBS[int(np.argmax(panel.expected))]
    start = 1.8 * scaling.line(panel, steepest)[0].passes.mean()
    some = sizes[: 1 + len(sizes) // 2]
    axes.plot(some, start * some / some[0], linestyle=":", color=_REFERENCE, label="slope 1", zorder=1)
    axes.set_title(panel.title, fontsize=10.5, loc="left")
    axes.set_xlabel(f"{panel.axis}   ({panel.fixed})")
    axes.set_xticks(sizes if len(sizes) < 6 else sizes[::2])
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
