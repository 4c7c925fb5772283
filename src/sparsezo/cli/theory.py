"""theory: what is proved for all, active and score, from numbers or from a data file's own dimensions.

    sparsezo theory --n 2.8M --n-bar 3300 --r-bar 213 --epsilon 0.1
    sparsezo theory --task chunking --data train.txt.gz --only NP --iterations 4M

What the command needs is imported when it is called, so that --help answers at once.
"""

from __future__ import annotations

import inspect
import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import typer

from sparsezo.cli.options import command, given, insist_parameter, parameter, parameters
from sparsezo.cli.train import json_parameter
from sparsezo.tasks.registry import kinds, names

if TYPE_CHECKING:
    from sparsezo.theory import BoundedRow, Complexity, Dimension

_N, _N_BAR, _R_BAR = "2.8M", 3300.0, 213.0  # CoNLL-2000's noun phrases, about
_ITERATIONS = "4M"  # the paper's run on them
_DATA = "A data file's own n, n_bar and r_bar"
_OF_OTHER_PARTS = ("dev_ref", "test_ref", "init")  # options about anything but the training file


def add_theory(app: typer.Typer) -> None:
    about = "What the theory asks for: h, mu and iterations of all, active and score, for Lipschitz losses and for any."
    command(
        app,
        "theory",
        run_theory,
        [*_numbers(), *_data(), *_reading().values(), insist_parameter(), json_parameter()],
        about,
    )


def _numbers() -> list[inspect.Parameter]:
    def number(name: str, flag: str, help: str, default: float) -> inspect.Parameter:
        return parameter(name, float, typer.Option(flag, help=help), default)

    n = typer.Option("--n", help="All weights, such as 2.8M.", show_default=_N)
    n_bar = typer.Option("--n-bar", help="Active weights of an input.", show_default=f"{_N_BAR:g}")
    r_bar = typer.Option("--r-bar", help="Scores of an input.", show_default=f"{_R_BAR:g}")
    return [
        parameter("n", str | None, n),
        parameter("n_bar", float | None, n_bar),
        parameter("r_bar", float | None, r_bar),
        number("L0", "--L0", "Lipschitz constant of F(., x).", 1.0),
        number("R", "--R", "Distance of the start from a minimiser.", 1.0),
        number("alpha", "--alpha", "How far f_mu may be from f.", 0.1),
        number("epsilon", "--epsilon", "Average squared gradient norm to reach.", 0.1),
        number("mu", "--mu", "Any loss in [0, 1]: size of the perturbation.", 0.1),
        parameter("iterations", str, typer.Option("--iterations", help="Any loss in [0, 1]: of the run."), _ITERATIONS),
    ]


def _data() -> list[inspect.Parameter]:
    task = typer.Option("--task", help=f"{', '.join(names())}; with --data.", rich_help_panel=_DATA)
    data = typer.Option("--data", help="A training file; text: one or several.", rich_help_panel=_DATA, metavar="FILE")
    return [parameter("task", str | None, task), parameter("data", list[str] | None, data)]


def _reading() -> dict[str, inspect.Parameter]:
    """How a training file is read: the options of all tasks that are about it, each once."""
    found: dict[str, inspect.Parameter] = {}
    for kind in kinds():
        about_train = {name: each for name, each in kind.options.items() if name not in _OF_OTHER_PARTS}
        for each in parameters(about_train, f"How it is read: task {kind.name}"):
            found.setdefault(each.name, each)
    return found


def run_theory(**values: Any) -> None:
    from sparsezo import extras
    from sparsezo.cli import show
    from sparsezo.cli.values import whole_number
    from sparsezo.errors import UsageError
    from sparsezo.tasks.registry import kind
    from sparsezo.theory import Complexity, bounded_rows

    steps = whole_number(values["iterations"], "--iterations", math.inf)
    run = (values["mu"], steps - 1)
    bounds = [values[name] for name in ("L0", "R", "alpha", "epsilon")]
    options = given(values, _reading())
    dimensions: Dimensions | None = None
    if values["data"]:
        for name in ("n", "n_bar", "r_bar"):
            if values[name] is not None:
                raise UsageError(f"`{name}` {values[name]}: --data has its own; leave out one of the two")
        if values["task"] is None:
            raise UsageError(f"--data needs --task {', '.join(names())}")
        Complexity(3.0, 2.0, 1.0, *bounds)  # what is wrong about these is said before a file is read
        bounded_rows(3.0, 2.0, 1.0, *run)
        extras.need(kind(values["task"]).reading_extra)
        dimensions = measure(values["task"], tuple(values["data"]), options)
        case = dimensions.complexity(*bounds)
        bounded = bounded_rows(*dimensions.means, *run)
    elif values["task"] is not None or options:
        name = "task" if values["task"] is not None else next(iter(options))
        raise UsageError(f"`{name}` goes with --data FILE, which is not given")
    else:
        sizes = {"n_bar": _N_BAR, "r_bar": _R_BAR} | given(values, {"n_bar": None, "r_bar": None})
        case = Complexity(whole_number(values["n"] or _N, "--n", math.inf), sizes["n_bar"], sizes["r_bar"], *bounds)
        bounded = bounded_rows(case.n, case.n_bar, case.r_bar, *run)
    fields = as_fields(case, dimensions, bounded)  # all of it, before anything is shown
    if values["json"]:
        show.result(fields, as_json=True)
    else:
        _print(case, dimensions, fields["moments"])
        _print_bounded(bounded, values["mu"], steps)


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

    @property
    def means(self) -> tuple[float, float, float]:
        """Of n, n(x) and r(x): for any loss in [0, 1] they are enough."""
        n_bar = min(self.n_bar.mean, float(self.n))
        return self.n, n_bar, min(self.r_bar.mean, n_bar)

    def complexity(self, L0: float, R: float, alpha: float, epsilon: float) -> Complexity:
        """With the values for which the proof holds (docs/theory.md, remark 2); rounding does not break their order."""
        from sparsezo.theory import Complexity

        n_bar = min(self.n_bar.valid, float(self.n))
        return Complexity(self.n, n_bar, min(self.r_bar.valid, n_bar), L0, R, alpha, epsilon, self.moments)


def measure(task: str, data: tuple[str, ...], options: dict[str, Any]) -> Dimensions:
    """Read the files as train does and count."""
    from sparsezo.tasks.loading import Files
    from sparsezo.tasks.registry import kind
    from sparsezo.theory import n_bar_of, step_moments

    loaded = kind(task).load(Files(train=data, options=options))
    problem = loaded.task.problem(loaded.data.train)
    n = problem.n_features * problem.n_labels
    return Dimensions(
        task=task,
        data=data,
        inputs=len(problem),
        n=n,
        n_bar=n_bar_of(problem.n_active),
        r_bar=n_bar_of(problem.n_score),
        moments=step_moments(n, problem.n_active, problem.n_score),
    )


def as_fields(case: Complexity, dimensions: Dimensions | None, bounded: list[BoundedRow]) -> dict[str, Any]:
    """``moments`` are Lemma 2's; E[r(x) (m(x) + 2)] stands with the data's own sizes."""
    from sparsezo.theory import moment, moment_bound

    rows = case.rows()
    moments = [
        {"perturb": row.perturb, "p": p, "moment": moment(p, row.dimension), "bound": moment_bound(p, row.dimension)}
        for row in rows
        for p in (2, 4)
    ]
    fields = {**asdict(case), "rows": [asdict(row) for row in rows], "moments": moments}
    fields["bounded"] = [asdict(row) for row in bounded]
    return fields if dimensions is None else {**fields, "data": asdict(dimensions)}


def _print(case: Complexity, dimensions: Dimensions | None, moments: list[dict[str, Any]]) -> None:
    from rich.table import Table

    from sparsezo.cli import show

    if dimensions is not None:
        one = dimensions
        show.output.print(f"{one.task}: {', '.join(one.data)}", style="bold", markup=False, soft_wrap=True)
        sizes = Table("", "mean", "valid", box=None, pad_edge=False)
        sizes.add_row("inputs", f"{one.inputs:,}", "")
        sizes.add_row("n", f"{one.n:,}", "")
        for name, dimension in (("n_bar", one.n_bar), ("r_bar", one.r_bar)):
            sizes.add_row(name, f"{dimension.mean:,.1f}", f"{dimension.valid:,.1f}")
        show.output.print(sizes)
        show.output.print("valid: (E(n(x) + 4)^2)^(1/2) - 4, with which the proof holds; used below\n", soft_wrap=True)
    title = f"Corollary 1: L0 {case.L0:g}, R {case.R:g}, alpha {case.alpha:g}, epsilon {case.epsilon:g}"
    show.output.print(title, style="bold")
    head = ("perturb", "dimension", "mu~", "h*", "N(epsilon)", "N two-point", "N symmetric")
    table = Table(*head, box=None, pad_edge=False)
    for row in case.rows():
        counts = [_short(N) for N in (row.N, row.N_two_point, row.N_symmetric)]
        table.add_row(row.perturb, _short(row.dimension), f"{row.mu_tilde:.3g}", f"{row.h_star:.3g}", *counts)
    show.output.print(table)
    show.output.print("N two-point, N symmetric: by sharper bounds of a step than Lemma 2's", soft_wrap=True)
    show.output.print("\nLemma 2: E||u||^p and its bound (p + dimension)^(p/2)", style="bold")
    table = Table("perturb", "p", "E||u||^p", "bound", box=None, pad_edge=False)
    for each in moments:
        table.add_row(each["perturb"], str(each["p"]), _short(each["moment"]), _short(each["bound"]))
    show.output.print(table)


def _print_bounded(rows: list[BoundedRow], mu: float, steps: int) -> None:
    from rich.table import Table

    from sparsezo.cli import show

    title = f"\nAny loss in [0, 1], MAP's too: mu {mu:g}, {steps:,} iterations"
    show.output.print(title, style="bold")
    table = Table("perturb", "m", "h / mu^2", "h", "bound", "says something from", box=None, pad_edge=False)
    for row in rows:
        figures = (f"{figure:.3g}" for figure in (row.rate, row.h, row.bound))
        table.add_row(row.perturb, _short(row.m), *figures, f"{_short(row.says + 1)} iterations")
    show.output.print(table)
    about = "bound: of mu^2 times the average squared gradient norm; two-point and baseline. symmetric: twice the h, "
    show.output.print(f"{about}half the bound, from a quarter of the iterations", soft_wrap=True)
    show.output.print("\nThese are worst-case bounds, not forecasts of a run: see docs/theory.md.")


def _short(value: float) -> str:
    """In full as long as it can be read."""
    return f"{value:.3e}" if value >= 1e9 else f"{round(value, 1):,}".removesuffix(".0")
