"""bench scaling: what was measured and what the model says, as tables, CSV files and a figure."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.table import Table

from sparsezo.cli import show
from sparsezo.storage.files import working_folder, write_text

CLOSE = 0.15  # between two workers on the wall and the model, where two cores are free


def measured_into(folder: Path | None, measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What is wrong about the folder, or missing for the figure, is said before anything is measured."""
    if folder is None:
        return measure()
    from sparsezo.reports.figures.sheet import need_matplotlib
    from sparsezo.reports.figures.workers import workers_figure

    need_matplotlib()
    with working_folder(folder):
        fields = measure()
        write_text(folder / "costs.csv", _csv([{"what": name, "value": value} for name, value in _costs(fields)]))
        for name in ("points", "curves", "best", "sizes"):
            write_text(folder / f"{name}.csv", _csv(fields[name]))
        write_text(folder / "limits.csv", _csv([_flat(row) for row in fields["limits"]]))
        workers_figure(fields, folder)
    show.note(f"wrote {folder}: tables as CSV, and workers.svg and .png")
    return fields


def _csv(rows: Sequence[Mapping[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: f"{value:.6g}" if isinstance(value, float) else value for name, value in row.items()})
    return text.getvalue()


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    rest = {name: value for name, value in row.items() if name != "least_bandwidth"}
    return rest | {f"least_bandwidth_{batch}": value for batch, value in row["least_bandwidth"].items()}


def _costs(fields: Mapping[str, Any]) -> list[tuple[str, Any]]:
    about = [(name, fields[name]) for name in ("data", "settings", "learned", "n", "n_active", "cpus", "load")]
    links = [(f"{name} {what}", value) for name, link in fields["links"].items() for what, value in link.items()]
    return [*about, *fields["work"].items(), ("bound", fields["bound"]), ("hashing", fields["hashing"]), *links]


def table(fields: Mapping[str, Any]) -> Group:
    return Group(
        _costs_table(fields), _points_table(fields), _best_table(fields), _limits_table(fields), _sizes(fields)
    )


def _columns(out: Table, *names: str) -> Table:
    for name in names:
        out.add_column(name, justify="right")
    return out


def _costs_table(fields: Mapping[str, Any]) -> Table:
    work = fields["work"]
    out = Table(
        title=f"scaling: {fields['data']}; {fields['settings']}; after {fields['learned']:,} steps",
        caption=f"with batch {fields['large_batch']:,} no number of workers gains more than {fields['bound']:.1f}: "
        "all apply all moves",
    )
    out.add_column("what")
    _columns(out, "us")
    out.add_row("evaluate a step", f"{1e6 * work['evaluate']:.2f}")
    out.add_row("of that, once for all steps of an input in a batch", f"{1e6 * work['saved']:.2f}")
    out.add_row(f"apply a step that moves ({work['moves']:.1%} do)", f"{1e6 * work['apply']:.2f}")
    out.add_row("a turn, whatever the batch", f"{1e6 * work['turn']:.1f}")
    for name, link in fields["links"].items():
        out.add_row(f"a message ({name}): who sends it", f"{1e6 * link['message']:.1f}")
        out.add_row(f"a message ({name}): on its way", f"{1e6 * link['latency']:.1f}")
        out.add_row(f"a message ({name}): each 1,000 bytes", f"{1e9 / link['bandwidth']:.2f}")
    return out


def _points_table(fields: Mapping[str, Any]) -> Table:
    close = sum(abs(point["off"]) <= CLOSE for point in fields["points"])
    load = "" if fields["load"] is None else f"; the load was {fields['load']:.1f} on {fields['cpus']} cores"
    out = Table(
        title="two workers, thousands of steps a second",
        caption=f"the model is within {CLOSE:.0%} of the wall at {close} of {len(fields['points'])} points{load}",
    )
    names = ("one, batch 1", "one", "two", "times batch 1", "times one", "model", "off", "by CPU")
    out.add_column("on")
    _columns(out, "batch", *names)
    for point in fields["points"]:
        rates = [f"{point[name] / 1e3:.0f}" for name in ("plain_steps", "one_steps", "two_steps")]
        times = [f"{point[name]:.2f}" for name in ("times_plain", "times_one", "model")]
        cpu = "-" if point["cpu_times_one"] is None else f"{point['cpu_times_one']:.2f}"
        out.add_row(point["transport"], f"{point['batch']:,}", *rates, *times, f"{point['off']:+.0%}", cpu)
    return out


def _best_table(fields: Mapping[str, Any]) -> Table:
    out = Table(title="the best number of workers (times one process), by the model")
    batches = list(dict.fromkeys(row["batch"] for row in fields["best"]))
    out.add_column("link")
    _columns(out, *(f"batch {batch:,}" for batch in batches))
    found = {(row["link"], row["batch"]): f"{row['workers']:,} ({row['times_one']:.2f})" for row in fields["best"]}
    for link in dict.fromkeys(row["link"] for row in fields["best"]):
        out.add_row(link, *(found[link, batch] for batch in batches))
    return out


def _limits_table(fields: Mapping[str, Any]) -> Table:
    out = Table(title="where it stops paying, 10 Gb/s", caption="-: with none")
    batches = list(fields["limits"][0]["least_bandwidth"])
    heads = [f"least Mb/s, batch {int(batch):,}" for batch in batches]
    _columns(out, "workers", "least batch", "batch with half its time in messages", *heads)
    for row in fields["limits"]:
        sizes = ["-" if row[name] is None else f"{row[name]:,}" for name in ("least_batch", "balanced_batch")]
        widths = [row["least_bandwidth"][batch] for batch in batches]
        out.add_row(f"{row['workers']:,}", *sizes, *("-" if each is None else _rate(each) for each in widths))
    return out


def _rate(bandwidth: float) -> str:
    """In Mb/s."""
    return f"{8e-6 * bandwidth:,.0f}" if bandwidth > 1.25e7 else f"{8e-6 * bandwidth:.3g}"


def _sizes(fields: Mapping[str, Any]) -> Table:
    out = Table(
        title=f"what n adds: a run of 100M steps, batch {fields['large_batch']:,}, 10 Gb/s",
        caption="the last two: steps twice as slow, as they may be in a table that no cache holds; 1,024 workers",
    )
    names = ("GB a worker", "s to join", "checks", "best workers", "times one", "slow steps", "1,024")
    _columns(out, "n", *names)
    for row in fields["sizes"]:
        costs = [f"{row['bytes_a_worker'] / 1e9:.3g}", f"{row['joining']:.2g}", f"{row['checking']:.2%}"]
        times = [f"{row[name]:.2f}" for name in ("times_one", "times_one_slow", "times_one_1024")]
        out.add_row(f"{row['n'] / 1e6:,g}M", *costs, f"{row['workers']:,}", *times)
    return out
