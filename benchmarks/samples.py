"""What several perturbations of an input are worth at an equal number of losses asked for (docs/scaling.md).

    python benchmarks/samples.py DATA -o docs/results/samples       # about 4 minutes of one core

Two-point score on CoNLL-2000 NP with the mean of K = 1, 4 and 16 directions an input, plain and antithetic. K
directions of an input take K + 1 losses, so fewer inputs are looked at; their mean varies less, so h may be larger.
Beside them stands symmetric with one direction an input, which takes two losses as well, one to either side. Each is
run at several h, and the best on dev is drawn. DATA is a folder with conll2000/ as `sparsezo reproduce`
wants it (SPARSEZO_DATA where it is not given).
"""

from __future__ import annotations

import argparse
import csv
import io
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sparsezo.settings import Settings
from sparsezo.storage.files import write_text

RESULTS = Path(__file__).parent.parent / "docs" / "results"
MU = 0.1
H = 0.001  # of one direction
TIMES = (0.5, 1, 2, 4, 8)  # h of K directions: K times H times one of these
LOOKS = 20  # at dev, in a run
COLOURS = {1: "#333333", 4: "#0072B2", 16: "#D55E00"}


class Way(NamedTuple):
    """How an input is looked at."""

    samples: int
    antithetic: bool = False
    rule: str = "two-point"

    @property
    def dashed(self) -> bool:
        """It looks both ways."""
        return self.antithetic or self.rule == "symmetric"

    @property
    def name(self) -> str:
        if self.rule != "two-point":
            return self.rule
        return f"K = {self.samples}{', antithetic' if self.antithetic else ''}"


WAYS = (Way(1), Way(1, rule="symmetric"), Way(4), Way(4, True), Way(16), Way(16, True))


def load(folder: Path) -> Any:
    """Train, dev and test as `sparsezo reproduce chunking` reads them."""
    from sparsezo.experiments.plan import builtin
    from sparsezo.experiments.sources import in_folder
    from sparsezo.tasks.loading import Files
    from sparsezo.tasks.registry import kind

    source = in_folder(builtin("chunking"), folder)
    return kind("chunking").load(Files(source.train, source.dev, source.test, source.options))


def looks(settings: Settings, losses: int) -> list[int]:
    """Steps at which about equal parts of the losses have been asked for: whole inputs."""
    an_input = settings.losses(settings.samples)
    return [settings.samples * (losses * part // (LOOKS * an_input)) for part in range(1, LOOKS + 1)]


def run(loaded: Any, held: Mapping[str, Any], settings: Settings, losses: int) -> list[dict[str, Any]]:
    """A row for each look; test is looked at once, at the end."""
    from sparsezo.decoding import predict
    from sparsezo.learner import Learner

    problem, gold = held["train"]
    learner = Learner(problem, settings)
    rows = []
    for steps in looks(settings, losses):
        learner.run(gold, steps - learner.step)
        W = learner.weights()
        found: dict[str, float | str] = {"dev": "", "test": ""}
        for part in ("dev", "test"):
            if part == "dev" or steps == looks(settings, losses)[-1]:
                other, its_gold = held[part]
                found[part] = round(float(loaded.task.quality(other, its_gold, predict(other, W))), 5)
        rows.append(
            {
                "rule": settings.rule,
                "samples": settings.samples,
                "antithetic": int(settings.antithetic),
                "h": settings.h,
                "seed": settings.seed,
                "losses": settings.losses(steps),
                "inputs": steps // settings.samples,
                "average_loss": round(learner.average_loss, 5),
                **found,
            }
        )
    return rows


def measure(loaded: Any, losses: int, seeds: int, say: Callable[[str], None] = print) -> list[dict[str, Any]]:
    held: dict[str, Any] = {}
    for part in ("train", "dev", "test"):
        data = getattr(loaded.data, part)
        held[part] = loaded.task.problem(data, learn=part == "train"), loaded.task.gold(data)
    plans = [
        Settings(way.rule, "score", H * way.samples * times, MU, seed=seed, samples=way.samples, antithetic=way[1])
        for way in WAYS
        for times in TIMES
        for seed in range(seeds)
    ]
    rows: list[dict[str, Any]] = []
    began = time.perf_counter()
    for done, settings in enumerate(plans, 1):
        rows += run(loaded, held, settings, losses)
        left = (time.perf_counter() - began) / done * (len(plans) - done)
        say(f"{done} of {len(plans)}: {settings}: dev {rows[-1]['dev']:.4f}; about {left:.0f} s left")
    return rows


# What was found


def mean(values: Iterable[Any]) -> float:
    numbers = [float(value) for value in values]
    return sum(numbers) / len(numbers)


def of_way(rows: Sequence[Mapping[str, Any]], way: Way) -> list[Mapping[str, Any]]:
    return [row for row in rows if (int(row["samples"]), bool(int(row["antithetic"])), row["rule"]) == way]


def curve(rows: Sequence[Mapping[str, Any]], h: float) -> dict[int, list[float]]:
    """losses -> dev F1 of each seed, at one h of a way's rows."""
    points: dict[int, list[float]] = {}
    for row in rows:
        if float(row["h"]) == h:
            points.setdefault(int(row["losses"]), []).append(float(row["dev"]))
    return points


def best_h(rows: Sequence[Mapping[str, Any]]) -> float:
    """With the best dev F1 at the end, the mean of all seeds."""
    return max({float(row["h"]) for row in rows}, key=lambda h: mean(list(curve(rows, h).values())[-1]))


def markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """Dev F1 at the end by h, and of the best h the test F1."""
    heads = [f"h {times:g} K / 1000" for times in TIMES]
    lines = [f"| | inputs | {' | '.join(heads)} | test, best h |", "|---" * (len(heads) + 3) + "|"]
    for way in WAYS:
        mine = of_way(rows, way)
        ends = [row for row in mine if row["test"] != ""]
        best = best_h(mine)
        cells = []
        for h in sorted({float(row["h"]) for row in mine}):
            text = f"{mean(row['dev'] for row in ends if float(row['h']) == h):.3f}"
            cells.append(f"**{text}**" if h == best else text)
        tests = [float(row["test"]) for row in ends if float(row["h"]) == best]
        last = f"{mean(tests):.3f} ({min(tests):.3f} to {max(tests):.3f})"
        lines.append(f"| {way.name} | {int(ends[0]['inputs']):,} | {' | '.join(cells)} | {last} |")
    return "\n".join([*lines, ""])


def draw(rows: Sequence[Mapping[str, Any]], folder: Path) -> None:
    """Left: dev F1 against losses at each way's best h. Right: dev F1 at the end against h."""
    from matplotlib.figure import Figure

    from sparsezo.reports.figures.sheet import drawing_style, save

    with drawing_style():
        figure = Figure(figsize=(7.0, 3.9), layout="constrained", facecolor="white")
        left, right = figure.subplots(1, 2, width_ratios=(1.35, 1), sharey=False)
        for way in WAYS:
            mine = of_way(rows, way)
            style: dict[str, Any] = {"color": COLOURS[way.samples], "linestyle": "--" if way.dashed else "-"}
            points = curve(mine, best := best_h(mine))
            label = f"{way.name}, h {best:g}"
            left.plot([n / 1000 for n in points], [mean(f1) for f1 in points.values()], label=label, **style)
            if not way.dashed:
                low, high = zip(*((min(f1), max(f1)) for f1 in points.values()), strict=True)
                left.fill_between([n / 1000 for n in points], low, high, color=COLOURS[way.samples], alpha=0.12, lw=0)
            ends = {h: list(curve(mine, h).values())[-1] for h in sorted({float(row["h"]) for row in mine})}
            marker = "s" if way.dashed else "o"
            face = "white" if way.dashed else COLOURS[way.samples]
            right.plot(list(ends), [mean(f1) for f1 in ends.values()], marker, markerfacecolor=face, **style)
        left.set(xlabel="losses asked for, thousands", ylabel="F1 on dev", ylim=(0.8, None))
        left.set_title("each at its best h; shaded: all seeds (full lines)", fontsize=9.5, loc="left")
        right.set(xlabel="h", xscale="log")
        right.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        right.set_title(f"at the end: {max(int(row['losses']) for row in rows):,} losses", fontsize=9.5, loc="left")
        figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
        figure.suptitle(
            f"The mean of K directions an input: CoNLL-2000 NP, two-point score, mu {MU:g}",
            fontsize=10.5,
            x=0.01,
            ha="left",
        )
        save(figure, folder, "samples")


def read(path: Path) -> list[dict[str, str]]:
    with open(path, encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?", default=os.environ.get("SPARSEZO_DATA"))
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "samples")
    parser.add_argument("--losses", type=int, default=400_000, help="asked for in a run (default: 400000)")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--draw", action="store_true", help="draw what samples.csv has, and run nothing")
    args = parser.parse_args()
    if args.data is None and not args.draw:
        parser.error("give the folder with the data, or set SPARSEZO_DATA")
    args.output.mkdir(parents=True, exist_ok=True)
    place = args.output / "samples.csv"
    if not args.draw:
        rows = measure(load(Path(args.data)), args.losses, args.seeds)
        out = io.StringIO()
        writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        write_text(place, out.getvalue())
    known = read(place)
    draw(known, args.output)
    print(markdown(known))


if __name__ == "__main__":
    main()
