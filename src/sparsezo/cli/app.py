"""The commands (DESIGN 5). Each imports what it needs when it is called, so that --help answers at once."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Annotated

import typer

from sparsezo.cli.data import data_app
from sparsezo.cli.options import HELP, INSIST, Command, Group, option_of
from sparsezo.cli.predict import add_evaluate, add_predict
from sparsezo.cli.replay import add_replay
from sparsezo.cli.serve import serve_app
from sparsezo.cli.theory import add_theory
from sparsezo.cli.train import train_app
from sparsezo.cli.tune import tune_app
from sparsezo.engines.choice import LOCAL, WHERE
from sparsezo.storage import limits

Json = Annotated[bool, typer.Option("--json", help="End standard output with one JSON object.")]


GROUPS = ("train", "tune", "serve")  # whose commands, one a task, have some thirty options each


def make_app(whole: Collection[str] = GROUPS) -> typer.Typer:
    """All commands; made anew, so that tasks registered meanwhile are among them.

    ``whole``: the groups whose own commands are wanted. Making them all would cost a fifth of the time that --help has.
    """
    app = typer.Typer(
        help="Learn structured predictors from feedback on their outputs alone, by sparse zeroth-order optimisation.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        cls=Group,
        context_settings=HELP,
    )
    app.callback()(top)
    app.add_typer(train_app(whole="train" in whole), name="train")
    app.add_typer(tune_app(whole="tune" in whole), name="tune")
    app.command(cls=Command, context_settings=HELP)(reproduce)
    app.add_typer(serve_app(whole="serve" in whole), name="serve")
    add_replay(app)
    add_predict(app)
    add_evaluate(app)
    app.command(cls=Command, context_settings=HELP)(demo)
    app.command(cls=Command, context_settings=HELP)(bench)
    add_theory(app)
    app.add_typer(data_app, name="data")
    return app


def _version(show: bool) -> None:
    if show:
        from sparsezo import __version__

        typer.echo(f"sparsezo {__version__}")
        raise typer.Exit


def top(
    _version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")] = False,
) -> None:
    pass


def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME|FILE.toml", help="chunking, smt, text, all; answers, noise, scaling; or a file of your own."
        ),
    ],
    data: Annotated[
        str | None,
        typer.Option(envvar="SPARSEZO_DATA", help="Folder with the data; or 'generated': the built-in generators."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Folder of the results. (default: results/NAME)")
    ] = None,
    seeds: Annotated[
        str | None, typer.Option(help="How many, or which: 10, 0-9 or 3,8,4. (default: the experiment's)")
    ] = None,
    iterations: Annotated[str | None, typer.Option(help="4M, 300k, ... (default: the experiment's)")] = None,
    answers: Annotated[str | None, typer.Option(help="answers: 5k, ... (default: the experiment's)")] = None,
    phases: Annotated[
        str | None,
        typer.Option(
            help="fixed: the paper's figure; tuned: its table, h and mu searched on dev. "
            "(default: fixed,tuned; without a grid, fixed)"
        ),
    ] = None,
    full_grid: Annotated[
        bool, typer.Option("--full-grid", help="tuned: try every point of the grids to the end.")
    ] = False,
    processes: Annotated[int | None, option_of(WHERE["processes"])] = None,
    engine: Annotated[str | None, option_of(WHERE["engine"])] = None,
    ray_address: Annotated[str | None, option_of(WHERE["ray_address"])] = None,
    quick: Annotated[bool, typer.Option("--quick", help="scaling: a few seconds instead of a minute.")] = False,
    insist: Annotated[bool, INSIST] = False,
) -> None:
    """The paper's experiments and the report, with one command. Interrupted or killed, it goes on from there."""
    from sparsezo.cli.reproduce import run_reproduce

    with limits.insisting(insist):
        run_reproduce(
            name,
            data,
            seeds=seeds,
            iterations=iterations,
            answers=answers,
            phases=phases,
            full_grid=full_grid,
            processes=processes,
            engine=engine or LOCAL,
            ray_address=ray_address,
            out=output,
            quick=quick,
        )


def demo(
    seconds: Annotated[float, typer.Option(help="About how long the runs of the table may take together.")] = 30.0,
    report: Annotated[bool, typer.Option(help="End with a report on generated data for all three tasks.")] = True,
    output: Annotated[Path, typer.Option("-o", "--output", help="Where the report goes.")] = Path("demo-report"),
    as_json: Json = False,
) -> None:
    """A tour on generated data: every rule with every perturbation, ranked; then a report on all three tasks."""
    from sparsezo.cli.demo import run_demo

    run_demo(seconds, output if report else None, as_json=as_json)


def bench(
    what: Annotated[str, typer.Argument(metavar="WHAT", help="chunking, text, rerank or scaling.")],
    data: Annotated[
        Path | None,
        typer.Option(envvar="SPARSEZO_DATA", help="Folder with conll2000/ and smt/; without it, generated data."),
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Interleaved rounds; the best of each counts.")] = 5,
    steps: Annotated[int | None, typer.Option(min=1, help="scaling: steps of a round. (default: 32,768)")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="scaling: some seconds, on a little generated data.")] = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="scaling: folder of the tables as CSV and the figure.")
    ] = None,
    as_json: Json = False,
) -> None:
    """What a step costs, as a ratio to a yardstick in the same run: NumPy's normals, Vowpal Wabbit, features @ w.

    scaling: two workers beside one process, and what a model makes of it for up to 1,024.
    """
    from sparsezo.bench.clock import run_bench

    run_bench(what, data, rounds, as_json=as_json, steps=steps, quick=quick, out=output)
