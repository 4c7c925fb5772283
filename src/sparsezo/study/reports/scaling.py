"""The scaling experiment written up: a page, its words, the table behind it and the figure (paper Sec. 3).

run_scaling(Path("results/scaling"))        # report.html, scaling.md, scaling.csv, figures/scaling.svg and .png
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sparsezo.errors import UsageError, need
from sparsezo.storage.files import write_text
from sparsezo.study.reports.figures import (
    LEGEND,
    LINE_STYLES,
    Figure,
    Style,
    below,
    drawing_style,
    figure_folder,
    new_sheet,
    save,
    split,
)
from sparsezo.study.reports.render import render
from sparsezo.study.reports.results import Record
from sparsezo.study.reports.tables import PlainTable, csv_text
from sparsezo.study.scaling import PERTURBS, Panel, Scaling, measure_all

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CLOSE = 0.25  # between a measured exponent and theory's
_STYLES: dict[str, Style] = {  # shades of two-point's blue; markers for grey print
    "all": {"color": "#003B5C", "marker": "s"},
    "active": {"color": "#0072B2", "marker": "o"},
    "score": {"color": "#4FA8DC", "marker": "D"},
}


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
    need("report")
    figures = figure_folder(out)
    scaling = measure_all(quick, seeds, say)
    write_text(out / "scaling.csv", csv_text(_records(scaling)))
    figure, words, exponents = draw(scaling, figures), _paragraph(scaling), _exponents(scaling)
    lines = ["# What drives the cost", "", f"![{figure.title}](figures/{figure.name}.png)", "", figure.caption, ""]
    lines += [words, "", *exponents.markdown(), *(["", f"Made by `{command}`."] if command else [])]
    write_text(out / "scaling.md", "\n".join([*lines, "", f"`{scaling.signature}`", ""]))
    context = {"figure": figure, "words": words, "exponents": exponents, "command": command}
    write_text(out / "report.html", render("scaling.html.j2", title="sparsezo: what drives the cost", **context))
    return out / "report.html"


def _records(scaling: Scaling) -> Iterator[Record]:
    for panel in scaling.panels:
        for perturb in PERTURBS:
            for each in scaling.line(panel, perturb):
                record: Record = {"panel": panel.name, "perturb": perturb}
                record |= {name: getattr(each.point, name) for name in ("n", "n_bar", "r_bar", "inputs")}
                for name, costs in (("iterations", each.iterations), ("passes", each.passes)):
                    sd = float(costs.std(ddof=1)) if costs.size > 1 else None
                    record |= {name: float(costs.mean()), f"{name}_sd": sd}
                yield record | {"h": each.h, "seeds": scaling.seeds}


def _exponents(scaling: Scaling) -> PlainTable:
    rows = []
    for panel in scaling.panels:
        pairs = zip(scaling.exponents(panel), panel.expected, strict=True)
        figures = (f"{measured:.2f} ({expected:.2f})" for measured, expected in pairs)
        rows.append((f"{panel.title} at {panel.fixed}", *figures))
    return PlainTable(("exponent of passes (theory)", *PERTURBS), rows)


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


def draw(scaling: Scaling, folder: Path) -> Figure:
    with drawing_style():
        sheet, whole = new_sheet(2.5, 4, scaling.signature, left=0.62, right=0.12)
        (panels,) = split(sheet, whole, 1, len(scaling.panels), across=0.03)
        for axes, panel in zip(panels, scaling.panels, strict=True):
            _draw_panel(axes, scaling, panel)
            at = (axes.get_position().x0, below(sheet, axes))
            axes.legend(bbox_to_anchor=at, bbox_transform=sheet.transFigure, handlelength=3.6, **LEGEND)
        panels[0].set_ylabel("passes to half the loss")
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
    axes.plot(some, start * some / some[0], linestyle=":", color="#9a9a9a", label="slope 1", zorder=1)
    axes.set_title(panel.title, fontsize=10.5, loc="left")
    axes.set_xlabel(f"{panel.axis}   ({panel.fixed})")
    axes.set_xticks(sizes if len(sizes) < 6 else sizes[::2])
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
