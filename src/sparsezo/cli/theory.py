"""theory: Corollary 1 for all, active and score, from numbers or from a data file's own dimensions.

    sparsezo theory --n 2.8M --n-bar 3300 --r-bar 213 --epsilon 0.1
    sparsezo theory --task chunking --data train.txt.gz --only NP

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
    from sparsezo.theory import Complexity, Dimension

_N, _N_BAR, _R_BAR = "2.8M", 3300.0, 213.0  # CoNLL-2000's noun phrases, about
_DATA = "A data file's own n, n_bar and r_bar"
_OF_OTHER_PARTS = ("dev_ref", "test_ref", "init")  # options about anything but the training file


def add_theory(app: typer.Typer) -> None:
    about = "What the theory asks for: mu~, h* and N(epsilon) of Corollary 1 for all, active and score."
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
    from sparsezo.theory import Complexity

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
        extras.need(kind(values["task"]).reading_extra)
        dimensions = measure(values["task"], tuple(values["data"]), options)
        case = dimensions.complexity(*bounds)
    elif values["task"] is not None or options:
        name = "task" if values["task"] is not None else next(iter(options))
        raise UsageError(f"`{name}` goes with --data FILE, which is not given")
    else:
        sizes = {"n_bar": _N_BAR, "r_bar": _R_BAR} | given(values, {"n_bar": None, "r_bar": None})
        case = Complexity(whole_number(values["n"] or _N, "--n", math.inf), sizes["n_bar"], sizes["r_bar"], *bounds)
    if values["json"]:
        show.result(as_fields(case, dimensions), as_json=True)
    else:
        _print(case, dimensions)


@dataclass(frozen=True)
class Dimensions:
    """Of a data file: n, and what an input has of it."""

    task: str
    data: tuple[str, ...]
    inputs: int
    n: int
    n_bar: Dimension
    r_bar: Dimension

    def complexity(self, L0: float, R: float, alpha: float, epsilon: float) -> Complexity:
        """With the values for which the proof holds (docs/theory.md, remark 2); rounding does not break their order."""
        from sparsezo.theory import Complexity

        n_bar = min(self.n_bar.valid, float(self.n))
        return Complexity(self.n, n_bar, min(self.r_bar.valid, n_bar), L0, R, alpha, epsilon)


def measure(task: str, data: tuple[str, ...], options: dict[str, Any]) -> Dimensions:
    """Read the files as train does and count."""
    from sparsezo.tasks.loading import Files
    from sparsezo.tasks.registry import kind
    from sparsezo.theory import n_bar_of

    loaded = kind(task).load(Files(train=data, options=options))
    problem = loaded.task.problem(loaded.data.train)
    return Dimensions(
        task=task,
        data=data,
        inputs=len(problem),
        n=problem.n_features * problem.n_labels,
        n_bar=n_bar_of(problem.n_active),
        r_bar=n_bar_of(problem.n_score),
    )


def as_fields(case: Complexity, dimensions: Dimensions | None) -> dict[str, Any]:
    from sparsezo.theory import moment, moment_bound

    rows = case.rows()
    moments = [
        {"perturb": row.perturb, "p": p, "moment": moment(p, row.dimension), "bound": moment_bound(p, row.dimension)}
        for row in rows
        for p in (2, 4)
    ]
    fields = {**asdict(case), "rows": [asdict(row) for row in rows], "moments": moments}
    return fields if dimensions is None else {**fields, "data": asdict(dimensions)}


def _print(case: Complexity, dimensions: Dimensions | None) -> None:
    from rich.table import Table

    from sparsezo.cli import show

    fields = as_fields(case, dimensions)
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
    table = Table("perturb", "dimension", "mu~", "h*", "N(epsilon)", box=None, pad_edge=False)
    for row in case.rows():
        table.add_row(row.perturb, _short(row.dimension), f"{row.mu_tilde:.3g}", f"{row.h_star:.3g}", _short(row.N))
    show.output.print(table)
    show.output.print("\nLemma 2: E||u||^p and its bound (p + dimension)^(p/2)", style="bold")
    table = Table("perturb", "p", "E||u||^p", "bound", box=None, pad_edge=False)
    for row in fields["moments"]:
        table.add_row(row["perturb"], str(row["p"]), _short(row["moment"]), _short(row["bound"]))
    show.output.print(table)
    show.output.print("\nThese are worst-case bounds, not forecasts of a run: see docs/theory.md.")


def _short(value: float) -> str:
    """In full as long as it can be read."""
    return f"{value:.3e}" if value >= 1e9 else f"{round(value, 1):,}".removesuffix(".0")
