"""What grows with n and n̄ on real text: iterations and seconds of two-point to a fixed loss, CoNLL-2000 noun phrases.

    python benchmarks/dimensions.py DATA -o docs/results/scaling    # dimensions.csv and dimensions.png

DATA is a folder with conll2000/train.txt.gz. A run that is in dimensions.csv is not made again. The loss is the mean
1 - F1 of the outputs at w, over the first 1,000 sentences, from which nothing is learned. mu is 0.1: from w = 0 only
h / mu² counts. h is a power of 2 times 1e-4: a walk from the best of the size before to neighbours that are no better,
by the mean iterations of seeds that no figure is of. The sizes:

rare     n at one n̄: every token has its 19 attributes. Of each template's, ranked by how often they occur, those whose
         ranks are alike modulo some number are made one; or those of words and of three parts of speech are split.
copies   n at one n̄: of rare's smallest n, each attribute is split into so many; a sentence has one of them, at random
repeats  n̄ at one n: a token has each attribute so many times, each with rows of its own, which others share
"""

from __future__ import annotations

import argparse
import csv
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from growth import short

from sparsezo import Learner, Settings
from sparsezo.kernels import protocol
from sparsezo.kernels.inputs.sparse import sparse_inputs
from sparsezo.kernels.jit import kernel
from sparsezo.kernels.loop import Q_TOTAL, SETTLEMENTS
from sparsezo.kernels.random import DEBT
from sparsezo.tasks.base import Problem
from sparsezo.tasks.loading import Files
from sparsezo.tasks.registry import task_spec

PERTURBS = ("all", "active", "score")
MU, UNIT = 0.1, 1e-4
HELD = 1_000  # sentences at the start of train
FIRST = {"all": 1e-4, "active": 8e-4, "score": 3.2e-3}  # where the search for h begins
SEARCHED, SEEDS = (1000, 1001), tuple(range(5))
LOOKS, GROWTH = 500, 1.05  # iterations before the first look, and their growth from one to the next
WORSE = 2.5  # a search's run ends at so many times the best h's iterations
MOST = 30_000_000
T_975 = {2: 4.303, 4: 2.776}  # Student's, by degrees of freedom
WHOLE, LARGE = (
    10**9,
    5_000,
)  # no attributes are made one; a template with so many attributes is one of words, or of three
FIELDS = ("axis", "value", "loss", "n", "n_bar", "r_bar", "kappa_all", "kappa_active", "kappa_score", "perturb", "h")
FIELDS += ("seed", "iterations", "us")


@dataclass(frozen=True)
class Size:
    rows: int = WHOLE  # of W, at most, before attributes are split
    copies: int = 1
    rare: bool = False  # only the attributes of large templates are split
    repeats: int = 1


@dataclass(frozen=True)
class Axis:
    title: str
    label: str
    grows: str  # the field along the axis
    loss: float  # where a run ends
    sizes: tuple[Size, ...]


LEAST = 1_111  # rows: n is 10^4
AXES = {
    "rare": Axis(
        "rare attributes kept apart",
        "n (n̄ = 2,900 to 3,300)",
        "n",
        0.3,
        (*(Size(round(LEAST * 10 ** (k / 2))) for k in range(5)), Size(), Size(copies=256, rare=True)),
    ),
    "copies": Axis("all attributes split", "n (n̄ = 2,900)", "n", 0.5, tuple(Size(LEAST, 2**k) for k in range(3))),
    "repeats": Axis(
        "attributes repeated", "n̄ (n = 10^6)", "n_bar", 0.3, tuple(Size(100 * LEAST, repeats=2**k) for k in range(3))
    ),
}


# The data at a size


class Corpus:
    """Sentences, and the rank of each attribute in its template: 0 is the most frequent in training, -1 not in it."""

    def __init__(self, task: Any, train: Any, held: Any) -> None:
        self.parts = [(task.problem(each), task.gold(each)) for each in (train, held)]
        self.tokens = train.n_tokens
        ids = np.concatenate([task.index.transform(each) for each in (train, held)])
        of_template = [np.unique(each[each >= 0]) for each in ids[: self.tokens].T]  # numbers go by falling frequency
        self.counts = [each.size for each in of_template]
        ranks_of = [np.searchsorted(*each) for each in zip(of_template, ids.T, strict=True)]
        self.rank = np.where(ids >= 0, np.stack(ranks_of, axis=1), -1)
        lengths = np.concatenate([np.diff(problem.output_start) for problem, _ in self.parts])
        self.sentence = np.repeat(np.arange(lengths.size), lengths)

    def columns(self, size: Size) -> tuple[np.ndarray, int]:
        """tokens x attributes, the rows of W that each reads (-1: none, as in no training sentence); and how many."""
        rng, made, first = np.random.default_rng(0), [], 0
        most = _most(self.counts, size.rows // size.repeats)
        for repeat in range(size.repeats):
            for rank, count in zip(self.rank.T, self.counts, strict=True):
                kept = min(count, most)
                other = rng.permutation(count)[rank] if repeat else rank  # other attributes share a row each time
                row = other % kept
                if size.copies > 1 and (count > LARGE or not size.rare):
                    _, known = np.unique(self.sentence * kept + row, return_inverse=True)
                    row = row * size.copies + rng.integers(size.copies, size=known.max() + 1)[known]
                made.append(np.where(rank < 0, -1, first + row))
                first += kept * size.copies
        columns = np.stack(made, axis=1)
        seen = np.unique(columns[: self.tokens])
        places = np.minimum(np.searchsorted(seen, columns), seen.size - 1)
        return np.where((columns >= 0) & (seen[places] == columns), places, -1), seen.size

    def at(self, size: Size) -> list[tuple[Problem, Any]]:
        """(problem, gold) of training and of what is held out."""
        columns, rows = self.columns(size)
        found = []
        for (problem, gold), part in zip(self.parts, np.split(columns, [self.tokens]), strict=True):
            known, L = part >= 0, problem.n_labels
            ends = np.concatenate([[0], np.cumsum(known.sum(axis=1))]).astype(np.int64)
            inputs = sparse_inputs(problem.output_start, ends, part[known].astype(np.int32), None, rows, L)
            sizes = np.diff(inputs.col_start)
            new = {"inputs": inputs, "n_features": rows, "max_columns": int(sizes.max()), "n_active": sizes * L}
            found.append((replace(problem, **new), gold))
        return found


def _most(counts: Sequence[int], rows: int) -> int:
    """Of a template's attributes, for all templates to have no more than so many rows."""
    low, high = 1, max(counts)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if sum(min(each, middle) for each in counts) <= rows else (low, middle - 1)
    return low


def kappas(problem: Problem, pairs: int = 2_000) -> dict[str, float]:
    """E||P_y d||² over pairs of inputs, d being the direction at x: all (that is r̄), active, score (docs/theory.md)."""
    rng, inputs = np.random.default_rng(0), problem.inputs
    total = np.zeros(2)

    def basis(x: int) -> tuple[np.ndarray, np.ndarray]:
        """An orthonormal basis of the rows of C, and its columns."""
        ends = inputs.row_ptr[inputs.row_start[x] : inputs.row_start[x + 1] + 1]
        cols, places = np.unique(inputs.columns[ends[0] : ends[-1]], return_inverse=True)
        C = np.zeros((ends.size - 1, cols.size))
        np.add.at(C, (np.repeat(np.arange(len(C)), np.diff(ends)), places), 1.0)
        values, vectors = np.linalg.eigh(C @ C.T)
        kept = values > 1e-9 * values[-1]
        return (vectors[:, kept].T @ C) / np.sqrt(values[kept])[:, None], cols

    for x, y in rng.integers(len(problem), size=(pairs, 2)):
        (P, at), (Q, of) = basis(x), basis(y)
        _, i, j = np.intersect1d(at, of, return_indices=True)
        total += (Q[:, j] ** 2).sum(), ((P[:, i] @ Q[:, j].T) ** 2).sum()
    L, (active, score) = problem.n_labels, total / pairs
    r_bar = np.mean([len(basis(x)[0]) for x in range(len(problem))])
    return {"kappa_all": float(L * r_bar), "kappa_active": float(L * active), "kappa_score": float(L * score)}


# A run


@kernel
def mean_loss(inputs: Any, task: Any, gold: Any, key: Any, N: Any, state: Any, work: Any) -> Any:
    """Of the outputs at w. Under all the rows that are read are paid first, and no others."""
    total = 0.0
    for x in range(N):
        if state.Q_row.size > 0:
            owed = (state.counts[SETTLEMENTS], state.sums[Q_TOTAL], state.Q_row)
            state.counts[SETTLEMENTS] = protocol.settle(inputs, x, key, *owed, work.U, state.W)
        protocol.scores(inputs, x, state.W, work.S)
        protocol.decode(task, x, work.S, work.y)
        total += protocol.delta(gold, task, x, work.y)
    return total / N


def run(parts: Sequence[tuple[Problem, Any]], perturb: str, h: float, seed: int, loss: float, most: float) -> Any:
    """(iterations to the loss, microseconds of an iteration); nan iterations where it is not reached in ``most``.

    Between the two looks where it is passed, iterations are interpolated.
    """
    (problem, gold), (held, held_gold) = parts
    settings = Settings("two-point", perturb, h, MU, seed=seed)
    learner, watcher = Learner(problem, settings), Learner(held, settings)  # the second one only reads
    inputs, task, right, params, N = watcher.parts(held_gold)
    spent, before, k = 0.0, (0.0, 1.0), LOOKS
    learner.run(gold, 1)
    while True:
        began = time.thread_time()
        learner.run(gold, k - learner.step)
        spent += time.thread_time() - began
        now = mean_loss(inputs, task, right, params.keys[DEBT], N, learner.state, watcher.workspace)
        if now <= loss:
            share = (before[1] - loss) / (before[1] - now)
            return before[0] + share * (k - before[0]), 1e6 * spent / (k - 1)
        if k >= most:
            return math.nan, 1e6 * spent / (k - 1)
        before, k = (k, now), math.ceil(k * GROWTH)


class Runs:
    """Those that were made, by (axis, value, perturb, h, seed), in a file that grows with them."""

    def __init__(self, path: Path) -> None:
        self.path, self.rows = path, read(path) if path.exists() else []
        self.known = {self._key(row): float(row["iterations"]) for row in self.rows}

    @staticmethod
    def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
        return row["axis"], int(row["value"]), row["perturb"], float(row["h"]), int(row["seed"])

    def get(self, parts: Any, about: Mapping[str, Any], perturb: str, h: float, seed: int, most: float) -> float:
        row = {**about, "perturb": perturb, "h": h, "seed": seed}
        if self._key(row) not in self.known:
            iterations, us = run(parts, perturb, h, seed, about["loss"], most)
            row |= {"iterations": round(iterations, 1), "us": round(us, 3)}
            self.known[self._key(row)] = iterations
            self.rows.append(row)
            with open(self.path, "a", encoding="utf-8", newline="") as stream:
                writer = csv.DictWriter(stream, FIELDS, lineterminator="\n")
                if stream.tell() == 0:
                    writer.writeheader()
                writer.writerow(row)
        return self.known[self._key(row)]

    def best_h(self, parts: Any, about: Mapping[str, Any], perturb: str, start: float) -> float:
        """Of powers of 2 times UNIT, the one with the fewest iterations in the mean; a walk from ``start``."""
        power, cost = round(math.log2(start / UNIT)), {}
        best, seen = power, [power, power + 1, power - 1]
        while seen:
            tried = seen.pop(0)
            limit = min(MOST, WORSE * cost[best]) if cost else MOST
            h, total = UNIT * 2.0**tried, 0.0
            for seed in SEARCHED:  # nan from the first that is too long
                total += math.nan if math.isnan(total) else self.get(parts, about, perturb, h, seed, limit)
            cost[tried] = math.inf if math.isnan(total) else total / len(SEARCHED)
            if cost[tried] < cost[best]:
                best = tried
            if not seen:
                seen = [each for each in (best + 1, best - 1) if each not in cost]
        if math.isinf(cost[best]):
            raise SystemExit(f"{about['axis']} {about['value']}, {perturb}: not reached at any h near {start}")
        return UNIT * 2.0**best


def measure(corpus: Corpus, runs: Runs, axes: Iterable[str] = tuple(AXES)) -> None:
    for name in axes:
        start = dict(FIRST)
        for value, size in enumerate(AXES[name].sizes):
            parts = corpus.at(size)
            problem = parts[0][0]
            about = {"axis": name, "value": value, "loss": AXES[name].loss}
            about |= {"n": problem.n_features * problem.n_labels, "n_bar": round(float(problem.n_active.mean()), 1)}
            shared = {each: round(kappa, 3) for each, kappa in kappas(problem).items()}
            about |= {"r_bar": round(shared["kappa_all"], 2), **shared}
            for perturb in reversed(PERTURBS):
                h = start[perturb] = runs.best_h(parts, about, perturb, start[perturb])
                found = [runs.get(parts, about, perturb, h, seed, MOST) for seed in SEEDS]
                print(*about.values(), perturb, f"h {h:g}", f"{np.mean(found):,.0f}", sep="  ", flush=True)


# What was found


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """b of the least-squares fit log cost = a + b log size."""
    return float(np.polyfit(np.log(sizes), np.log(costs), 1)[0])


@dataclass(frozen=True, eq=False)
class Line:
    """An axis and a perturbation: a row for each size."""

    name: str
    perturb: str
    sizes: np.ndarray
    iterations: np.ndarray  # sizes x seeds
    us: np.ndarray
    about: list[Mapping[str, str]]

    @property
    def predicted(self) -> dict[str, float]:
        """Exponents: of kappa R^4 (R² grows as the copies do), of the dimension m, and of Theorem 1's m (m + 4)²."""
        copies = np.array([float(AXES[self.name].sizes[int(row["value"])].copies) for row in self.about])
        kappa = np.array([float(row[f"kappa_{self.perturb}"]) for row in self.about])
        key = {"all": "n", "active": "n_bar", "score": "r_bar"}[self.perturb]
        m = np.array([float(row[key]) for row in self.about])
        R4 = copies**2 if self.name == "copies" else np.ones(copies.size)
        costs = {"kappa": kappa * R4, "m": m, "theorem": m * (m + 4) ** 2}
        return {name: exponent(self.sizes, cost) for name, cost in costs.items()}

    def measured(self, of: str) -> tuple[float, float]:
        """The exponent, the mean of those of each seed, and half of its 95% interval over seeds."""
        costs = self.iterations * self.us if of == "seconds" else self.iterations
        found = [exponent(self.sizes, each) for each in costs.T]
        half = T_975[len(found) - 1] * np.std(found, ddof=1) / math.sqrt(len(found))
        return float(np.mean(found)), float(half)


def lines(rows: Sequence[Mapping[str, str]]) -> list[Line]:
    """Of the figures, not of the search; h is that of the rows with the seeds that the search had not."""
    found = []
    for name, axis in AXES.items():
        for perturb in PERTURBS:
            of = [row for row in rows if (row["axis"], row["perturb"]) == (name, perturb) and int(row["seed"]) in SEEDS]
            of.sort(key=lambda row: (int(row["value"]), int(row["seed"])))
            shape = (len({row["value"] for row in of}), len(SEEDS))
            iterations, us = (np.array([float(row[key]) for row in of]).reshape(shape) for key in ("iterations", "us"))
            about = of[:: len(SEEDS)]
            sizes = np.array([float(row[axis.grows]) for row in about])
            found.append(Line(name, perturb, sizes, iterations, us, about))
    return found


def table(rows: Sequence[Mapping[str, str]]) -> str:
    """For docs/theory.md."""
    head = "| grows | by | iterations | exponent | κ R⁴ | m | Theorem 1 | exponent of seconds |"
    shown = [head, f"|---|---|{'--:|' * 6}"]
    for line in lines(rows):
        axis, means = AXES[line.name], line.iterations.mean(axis=1)
        mean, half = line.measured("iterations")
        cells = [axis.title, line.perturb, f"{means[0]:,.0f} to {means[-1]:,.0f}", f"{mean:.2f} ± {half:.2f}"]
        cells += [f"{line.predicted[key]:.2f}" for key in ("kappa", "m", "theorem")]
        cells.append("{:.2f} ± {:.2f}".format(*line.measured("seconds")))
        shown.append(f"| {' | '.join(cells)} |".replace("-0.00", "0.00").replace("-", "−").replace("|−−", "|--"))
    return "\n".join(shown)


def draw(rows: Sequence[Mapping[str, str]], folder: Path) -> None:
    """Iterations: a panel an axis, one below the other, so that a phone shows them; dotted: as kappa R^4 grows."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.ticker import FuncFormatter, NullLocator

    from sparsezo.study.reports.figures import LINE_STYLES, drawing_style, save

    styles = {"all": ("#111111", "s"), "active": ("#0072B2", "o"), "score": ("#D55E00", "D")}
    with drawing_style():
        figure = Figure(figsize=(4.2, 7.6), layout="constrained", facecolor="white")
        panels = dict(zip(AXES, figure.subplots(len(AXES), 1), strict=True))
        for line in lines(rows):
            panel, (colour, marker) = panels[line.name], styles[line.perturb]
            means, style = line.iterations.mean(axis=1), LINE_STYLES[line.perturb]
            panel.plot(line.sizes, means, color=colour, marker=marker, linestyle=style, label=line.perturb)
            low, high = line.iterations.min(axis=1), line.iterations.max(axis=1)
            panel.vlines(line.sizes, low, high, color=colour, linewidth=1)
            growth = (line.sizes / line.sizes[0]) ** line.predicted["kappa"]
            middle = math.exp(np.log(means / growth).mean())
            panel.plot(line.sizes, middle * growth, color="#999999", linestyle=":", linewidth=1.5, zorder=1)
        for name, panel in panels.items():
            axis = AXES[name]
            panel.set(xscale="log", yscale="log", xlabel=axis.label, ylabel=f"iterations to loss {axis.loss:g}")
            panel.set_title(axis.title, fontsize=10.5, loc="left")
            sizes = next(line.sizes for line in lines(rows) if line.name == name)
            shown = sizes[:: 2 if len(sizes) > 4 else 1]
            panel.set_xticks(shown, [short(round(float(f"{size:.2g}"))) for size in shown])
            panel.xaxis.set_minor_locator(NullLocator())
            panel.yaxis.set_major_formatter(FuncFormatter(lambda count, _: short(round(count))))
        handles = panels["rare"].get_legend_handles_labels()[0]
        handles.append(Line2D([], [], color="#999999", linestyle=":", label="as κ R⁴ grows"))
        figure.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False, handlelength=3.4)
        save(figure, folder, "dimensions")
    (folder / "dimensions.svg").unlink()  # pages show the other


def read(path: Path) -> list[dict[str, Any]]:
    with open(path, encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("-o", "--output", type=Path, default=Path("docs/results/scaling"))
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    source = Files((str(args.data / "conll2000" / "train.txt.gz"),), str(HELD), None, {"only": "NP"})
    loaded = task_spec("chunking").load(source)
    runs = Runs(args.output / "dimensions.csv")
    measure(Corpus(loaded.task, loaded.data.train, loaded.data.dev), runs)
    rows = read(runs.path)
    draw(rows, args.output)
    print(table(rows))


if __name__ == "__main__":
    main()
