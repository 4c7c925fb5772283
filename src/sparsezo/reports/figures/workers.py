"""The speed-up of N workers by the model, with what two of them were measured at: against N, and against bandwidth.

workers_figure(fields, folder)                 # fields: of sparsezo.bench.scaling.measure
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sparsezo import __version__
from sparsezo.reports.figures.sheet import WIDTH, Figure, drawing_style, new_sheet, save
from sparsezo.theory.workers import Link, Work, speedup

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BATCH_STYLES: tuple[dict[str, Any], ...] = (  # shades of one blue, dashes for grey print, marks beside each other
    {"color": "#8FCBEE", "linestyle": ":", "marker": "v", "at": 0.86},
    {"color": "#4FA8DC", "linestyle": "-.", "marker": "D", "at": 0.95},
    {"color": "#0072B2", "linestyle": "--", "marker": "o", "at": 1.05},
    {"color": "#003B5C", "linestyle": "-", "marker": "s", "at": 1.16},
)
_WORKERS = {2: ("#E69F00", ":"), 8: ("#009E73", "-."), 64: ("#D55E00", "--"), 1024: ("#882255", "-")}
_BANDWIDTHS = np.logspace(6, 11, 101)  # bytes a second
_GAP = 0.55  # inches between panels


def workers_figure(fields: Mapping[str, Any], folder: Path) -> Figure:
    work, link = Work(**fields["work"]), Link(**fields["links"]["local"])
    mark = (
        f"{fields['data']}|{fields['settings']}|after {fields['learned']:,} steps|"
        f"evaluate {1e6 * work.evaluate:.2f} us (of that {1e6 * work.saved:.2f} us once an input), "
        f"apply {1e6 * work.apply:.2f} us, {work.moves:.1%} move|"
        f"message {1e6 * link.message:.1f} + {1e6 * link.latency:.1f} us, {link.bandwidth / 1e9:.2g} GB/s|"
        f"sparsezo {__version__}"
    )
    with drawing_style():
        sheet, whole = new_sheet(2.9, 6, mark, left=0.7, right=0.12)
        box, gap = whole.get_position(), _GAP / WIDTH
        whole.remove()
        width = (box.width - gap) / 2
        left = sheet.add_axes((box.x0, box.y0, width, box.height))
        right = sheet.add_axes((box.x0 + width + gap, box.y0, width, box.height))
        _by_workers(left, fields)
        _by_bandwidth(right, work, link, fields)
        for axes in (left, right):
            below = box.y0 - 0.5 / sheet.get_figheight()
            axes.legend(
                loc="upper left",
                bbox_to_anchor=(axes.get_position().x0, below),
                bbox_transform=sheet.transFigure,
                frameon=False,
                fontsize=8.5,
                handlelength=3.2,
                labelspacing=0.35,
                borderpad=0,
                borderaxespad=0,
            )
        svg = save(sheet, folder, "workers")
    caption = (
        "Steps a second of N workers, in those of one process with the same batch. Lines: the model, with costs "
        "measured on one machine; marks: two workers as measured (beside each other), filled on the wall, open by CPU. "
        "Left: messages by local pipes. Right: the same costs with other bandwidths. Below 1, one process is faster."
    )
    return Figure("workers", "Speed-up of N workers, measured and modelled", caption, mark, svg)


def _by_workers(axes: Axes, fields: Mapping[str, Any]) -> None:
    batches = list(dict.fromkeys(row["batch"] for row in fields["curves"]))
    for batch, style in zip(batches, _BATCH_STYLES, strict=True):
        rows = [row for row in fields["curves"] if row["link"] == "this machine" and row["batch"] == batch]
        line = {name: style[name] for name in ("color", "linestyle")}
        axes.plot(
            [r["workers"] for r in rows], [r["times_one"] for r in rows], label=f"batch {batch:,}", lw=1.8, **line
        )
        for point in (each for each in fields["points"] if (each["transport"], each["batch"]) == ("local", batch)):
            mark = {"linestyle": "", "marker": style["marker"], "color": style["color"], "markersize": 6, "zorder": 4}
            at = point["workers"] * style["at"]
            axes.plot(at, point["times_one"], markeredgecolor="white", markeredgewidth=0.6, **mark)
            if point["cpu_times_one"] is not None:
                axes.plot(at, point["cpu_times_one"], fillstyle="none", **mark)
    bound, large = fields["bound"], fields["large_batch"]
    axes.axhline(bound, color="#9a9a9a", linewidth=1, label=f"bound, batch {large:,}: {bound:.1f}")
    axes.plot([], [], "o", color="#555555", label="two workers: wall; open: CPU")
    axes.set_title("messages by pipes", fontsize=10.5, loc="left")
    axes.set_xscale("log", base=2)
    axes.set_xticks([1, 2, 4, 16, 64, 256, 1024], ["1", "2", "4", "16", "64", "256", "1,024"])
    axes.set_xlabel("workers N")
    axes.set_ylabel("times the steps of one process")
    _scale(axes, bound)


def _by_bandwidth(axes: Axes, work: Work, link: Link, fields: Mapping[str, Any]) -> None:
    batch = fields["large_batch"]
    for workers, (color, style) in _WORKERS.items():
        gains = [speedup(work, replace(link, bandwidth=float(each)), batch, workers) for each in _BANDWIDTHS]
        label = f"{workers:,} workers, batch {batch:,}"
        axes.plot(8e-6 * _BANDWIDTHS, gains, color=color, linestyle=style, lw=1.8, label=label)
    axes.axvline(8e-6 * link.bandwidth, color="#9a9a9a", linewidth=1, label="the pipes of this machine")
    axes.set_title("other bandwidths", fontsize=10.5, loc="left")
    axes.set_xscale("log")
    axes.set_xticks([1e1, 1e2, 1e3, 1e4, 1e5], ["10 M", "100 M", "1 G", "10 G", "100 G"])
    axes.set_xlabel("bandwidth, bits a second")
    _scale(axes, fields["bound"])


def _scale(axes: Axes, bound: float) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axes.axhline(1.0, color="#555555", linewidth=0.8)
    axes.set_yscale("log", base=2)
    axes.set_ylim(0.25, max(2.0 * bound, 4.0) if np.isfinite(bound) else 1024.0)
    axes.yaxis.set_major_locator(LogLocator(base=2))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
