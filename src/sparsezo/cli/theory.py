"""theory: Corollary 1 for all, active and score, from numbers or from a data file's own dimensions.

    sparsezo theory --n 2.8M --n-bar 3300 --r-bar 213 --epsilon 0.1
    sparsezo theory --task chunking --data train.txt.gz --only NP

What the command needs is imported when it is called, so that --help answers at once.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from sparsezo.theory import Complexity, Dimension

_N, _N_BAR, _R_BAR = "2.8M", 3300.0, 213.0  # CoNLL-2000's noun phrases, about
_DATA, _TASK = "A data file's own n, n_bar and r_bar", "How it is read, as in train"


def theory(
    n: Annotated[str | None, typer.Option("--n", help="All weights, such as 2.8M.", show_default=_N)] = None,
    n_bar: Annotated[float | None, typer.Option(help="Active weights of an input.", show_default=f"{_N_BAR:g}")] = None,
    r_bar: Annotated[float | None, typer.Option(help="Scores of an input.", show_default=f"{_R_BAR:g}")] = None,
    L0: Annotated[float, typer.Option("--L0", help="Lipschitz constant of F(., x).")] = 1.0,
    R: Annotated[float, typer.Option("--R", help="Distance of the start from a minimiser.")] = 1.0,
    alpha: Annotated[float, typer.Option(help="How far f_mu may be from f.")] = 0.1,
    epsilon: Annotated[float, typer.Option(help="Average squared gradient norm to reach.")] = 0.1,
    task: Annotated[
        str | None, typer.Option(help="chunking, text or rerank; with --data.", rich_help_panel=_DATA)
    ] = None,
    data: Annotated[
        list[str] | None, typer.Option(help="A training file; text: one or several.", rich_help_panel=_DATA)
    ] = None,
    only: Annotated[str | None, typer.Option(help="chunking: one chunk type.", rich_help_panel=_TASK)] = None,
    order: Annotated[int | None, typer.Option(help="chunking: 2 or 1.", rich_help_panel=_TASK)] = None,
    template: Annotated[str | None, typer.Option(help="chunking: CRF++ templates.", rich_help_panel=_TASK)] = None,
    min_count: Annotated[
        int | None, typer.Option(help="chunking, text: leave out rarer features.", rich_help_panel=_TASK)
    ] = None,
    format: Annotated[str | None, typer.Option(help="text: tsv, svmlight or lyrl.", rich_help_panel=_TASK)] = None,
    topics: Annotated[str | None, typer.Option(help="text: RCV1's topics qrels.", rich_help_panel=_TASK)] = None,
    raw_tf: Annotated[bool, typer.Option("--raw-tf", help="text: tf as it is.", rich_help_panel=_TASK)] = False,
    ref: Annotated[list[str] | None, typer.Option(help="rerank: references.", rich_help_panel=_TASK)] = None,
    store: Annotated[
        str | None, typer.Option(help="rerank: where imported lists are kept.", rich_help_panel=_TASK)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="End standard output with one JSON object.")] = False,
) -> None:
    """What the theory asks for: mu~, h* and N(epsilon) of Corollary 1 for all, active and score."""
    from sparsezo.cli import show
    from sparsezo.cli.values import whole_number
    from sparsezo.errors import UsageError
    from sparsezo.theory import Complexity

    options = {
        "only": only, "order": order, "template": template, "min_count": min_count, "format": format,
        "topics": topics, "raw_tf": raw_tf or None, "train_ref": ref or None, "store": store,
    }  # fmt: skip
    given = {name: value for name, value in options.items() if value is not None}
    dimensions: Dimensions | None = None
    if data:
        for name, value in (("n", n), ("n-bar", n_bar), ("r-bar", r_bar)):
            if value is not None:
                raise UsageError(f"--{name} {value}: --data has its own; leave out one of the two")
        if task is None:
            raise UsageError("--data needs --task chunking, text or rerank")
        Complexity(3.0, 2.0, 1.0, L0, R, alpha, epsilon)  # what is wrong about these is said before a file is read
        dimensions = measure(task, tuple(data), given)
        case = dimensions.complexity(L0, R, alpha, epsilon)
    elif task is not None or given:
        name = "task" if task is not None else next(iter(given)).removeprefix("train_").replace("_", "-")
        raise UsageError(f"--{name} goes with --data FILE, which is not given")
    else:
        case = Complexity(
            n=whole_number(_N if n is None else n, "--n"),
            n_bar=_N_BAR if n_bar is None else n_bar,
            r_bar=_R_BAR if r_bar is None else r_bar,
            L0=L0,
            R=R,
            alpha=alpha,
            epsilon=epsilon,
        )
    if as_json:
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
