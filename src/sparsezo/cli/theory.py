"""theory: what is proved for all, active and score, from numbers or from a data file's own dimensions.

sparsezo theory --n 2.8M --n-bar 3300 --r-bar 213 --epsilon 0.1
sparsezo theory --task chunking --data train.txt.gz --only NP --iterations 4M
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from rich.table import Table

from sparsezo.cli import show
from sparsezo.cli.options import given
from sparsezo.cli.values import N_BAR, R_BAR, N, whole_number
from sparsezo.errors import UsageError, need
from sparsezo.options import Values
from sparsezo.study.theory import (
    BoundedRow,
    Complexity,
    Dimension,
    bounded_rows,
    moment,
    moment_bound,
    n_bar_of,
    step_moments,
)
from sparsezo.tasks.loading import Files
from sparsezo.tasks.registry import names, task_spec

_BOUNDS, _SIZES = ("L0", "R", "alpha", "epsilon"), ("n", "n_bar", "r_bar")


@dataclass(frozen=True)
class Dimensions:
    """Of a data file: n, and what an input has of it."""

    task: str
    data: tuple[str, ...]
    inputs: int
    n: int
    n_bar: Dimension
    r_bar: Dimension
    moments: dict[str, float]  # E[r(x) (m(x) + 2)] of all, active and score

    def sizes(self, which: str) -> tuple[float, float, float]:
        """n, n_bar and r_bar, these two as ``Dimension`` has them; rounding does not break their order."""
        n_bar = min(getattr(self.n_bar, which), float(self.n))
        return self.n, n_bar, min(getattr(self.r_bar, which), n_bar)


def run_theory(values: Values) -> None:
    steps = whole_number(values["iterations"], "--iterations", math.inf)
    run = (values["mu"], steps - 1)
    bounds = {name: values[name] for name in _BOUNDS}
    options = given(values, values, but=(*_BOUNDS, *_SIZES, "mu", "iterations", "task", "data", "json"))
    dimensions: Dimensions | None = None
    if values["data"]:
        for name in _SIZES:
            if values[name] is not None:
                raise UsageError(f"`{name}` {values[name]}: --data has its own; leave out one of the two")
        if values["task"] is None:
            raise UsageError(f"--data needs --task {', '.join(names())}")
        Complexity(3.0, 2.0, 1.0, **bounds)  # what is wrong about these is said before a file is read
        bounded_rows(3.0, 2.0, 1.0, *run)
        need(task_spec(values["task"]).reading_extra)
        dimensions = measure(values["task"], tuple(values["data"]), options)
        # with the values for which the proof holds (docs/theory.md, remark 2); for any loss in [0, 1] means are enough
        case = Complexity(*dimensions.sizes("valid"), **bounds, moments=dimensions.moments)
        bounded = bounded_rows(*dimensions.sizes("mean"), *run)
    elif values["task"] is not None or options:
        name = "task" if values["task"] is not None else next(iter(options))
        raise UsageError(f"`{name}` goes with --data FILE, which is not given")
    else:
        sizes = {"n_bar": N_BAR, "r_bar": R_BAR} | given(values, ("n_bar", "r_bar"))
        case = Complexity(whole_number(values["n"] or N, "--n", math.inf), sizes["n_bar"], sizes["r_bar"], **bounds)
        bounded = bounded_rows(case.n, case.n_bar, case.r_bar, *run)
    rows = case.rows()
    moments = [  # Lemma 2's
        {"perturb": row.perturb, "p": p, "moment": moment(p, row.dimension), "bound": moment_bound(p, row.dimension)}
        for row in rows
        for p in (2, 4)
    ]
    if values["json"]:
        fields = {**asdict(case), "rows": [asdict(row) for row in rows], "moments": moments}
        fields["bounded"] = [asdict(row) for row in bounded]
        show.result(fields if dimensions is None else {**fields, "data": asdict(dimensions)}, as_json=True)
        return
    if dimensions is not None:
        _print_dimensions(dimensions)
    _print_case(case)
    show.line("\nLemma 2: E||u||^p and its bound (p + dimension)^(p/2)", style="bold")
    _print_table(["perturb", "p", "E||u||^p", "bound"], (map(_short, each.values()) for each in moments))
    _print_bounded(bounded, values["mu"], steps)


def measure(task: str, data: tuple[str, ...], options: Values) -> Dimensions:
    """Read the files as train does and count."""
    loaded = task_spec(task).load(Files(train=data, options=options))
    problem = loaded.task.problem(loaded.data.train)
    n, active, score = problem.n_features * problem.n_labels, problem.n_active, problem.n_score
    return Dimensions(task, data, len(problem), n, n_bar_of(active), n_bar_of(score), step_moments(n, active, score))


def _print_dimensions(one: Dimensions) -> None:
    show.line(f"{one.task}: {', '.join(one.data)}", style="bold")
    bars = {"n_bar": one.n_bar, "r_bar": one.r_bar}
    sizes = [("inputs", f"{one.inputs:,}", ""), ("n", f"{one.n:,}", "")]
    sizes += [(name, f"{bar.mean:,.1f}", f"{bar.valid:,.1f}") for name, bar in bars.items()]
    _print_table(("", "mean", "valid"), sizes)
    show.line("valid: (E(n(x) + 4)^2)^(1/2) - 4, with which the proof holds; used below\n")


def _print_case(case: Complexity) -> None:
    show.line(
        f"Corollary 1: L0 {case.L0:g}, R {case.R:g}, alpha {case.alpha:g}, epsilon {case.epsilon:g}", style="bold"
    )
    rows = []
    for row in case.rows():
        counts = map(_short, (row.N, row.N_two_point, row.N_symmetric))
        rows.append((row.perturb, _short(row.dimension), f"{row.mu_tilde:.3g}", f"{row.h_star:.3g}", *counts))
    _print_table(("perturb", "dimension", "mu~", "h*", "N(epsilon)", "N two-point", "N symmetric"), rows)
    show.line("N two-point, N symmetric: by sharper bounds of a step than Lemma 2's")


def _print_bounded(bounded: list[BoundedRow], mu: float, steps: int) -> None:
    show.line(f"\nAny loss in [0, 1], MAP's too: mu {mu:g}, {steps:,} iterations", style="bold")
    rows = []
    for row in bounded:
        figures = (f"{figure:.3g}" for figure in (row.rate, row.h, row.bound))
        rows.append((row.perturb, _short(row.m), *figures, f"{_short(row.says + 1)} iterations"))
    _print_table(("perturb", "m", "h / mu^2", "h", "bound", "says something from"), rows)
    show.line(
        "bound: of mu^2 times the average squared gradient norm; two-point and baseline. symmetric: twice the h, "
        "half the bound, from a quarter of the iterations\n"
    )
    show.line("These are worst-case bounds, not forecasts of a run: see docs/theory.md.")


def _print_table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    table = Table(*head, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    show.output.print(table)


def _short(value: float | str) -> str:
    """In full as long as it can be read."""
    if isinstance(value, str):
        return value
    return f"{value:.3e}" if value >= 1e9 else f"{round(value, 1):,}".removesuffix(".0")
