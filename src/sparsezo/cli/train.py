"""train: a task learned from simulated feedback, into a model."""

from __future__ import annotations

import inspect
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from sparsezo.cli.options import command, default_texts, given, parameter, parameters
from sparsezo.interrupts import CHECKPOINT_SECONDS
from sparsezo.settings import SETTINGS, Settings
from sparsezo.tasks.registry import kinds

if TYPE_CHECKING:
    from sparsezo.tasks.kind import TaskKind
    from sparsezo.training import Training

LEARNER = "Learner"


def train_app(*, whole: bool = True) -> typer.Typer:
    from sparsezo.cli.options import HELP, Group

    app = typer.Typer(
        help="Learn from simulated feedback: gold is looked at only to compute losses of outputs.",
        no_args_is_help=True,
        cls=Group,
        context_settings=HELP,
    )
    for kind in kinds() if whole else ():
        command(app, kind.name, _body(kind), _parameters(kind), f"Learn {kind.title.lower()} from simulated feedback.")
    return app


def data_parameters(kind: TaskKind, *, dev_required: bool) -> list[inspect.Parameter]:
    """Of train and tune: where the data is."""
    several = "one or several." if kind.several_files else "one."
    hold_out = "; or N: the first N inputs of train" if kind.hold_out else ""
    dev = typer.Option("--dev", help=f"Dev file{hold_out}. The best model on dev is kept.", metavar="FILE|N")
    empty = inspect.Parameter.empty
    train = typer.Option("--train", help=f"Training file (plain, .gz or .xz), {several}", metavar="FILE")
    return [
        parameter("train", list[str], train, empty),
        parameter("dev", str, dev, empty) if dev_required else parameter("dev", str | None, dev),
    ]


def json_parameter() -> inspect.Parameter:
    return parameter("json", bool, typer.Option("--json", help="End standard output with one JSON object."), False)


def iterations_parameter(help: str) -> inspect.Parameter:
    option = typer.Option("--iterations", help=help, rich_help_panel=LEARNER, metavar="N")
    return parameter("iterations", str, option, "1M")


def _parameters(kind: TaskKind) -> list[inspect.Parameter]:
    output = typer.Option("-o", "--output", help="Where the model goes.", metavar="FILE")
    test = typer.Option("--test", help="Test file, looked at once, by the best model.", metavar="FILE")
    every = typer.Option("--evaluate-every", help="Steps between looks at dev.", show_default="a hundredth of the run")
    seconds = typer.Option("--checkpoint-seconds", help="Seconds between checkpoints.")
    resume = typer.Option("--resume", help="Go on from the checkpoint of a stopped run.")
    force = typer.Option("--force", help="Replace the model that is there.")
    return [
        *data_parameters(kind, dev_required=False),
        parameter("output", Path, output, inspect.Parameter.empty),
        parameter("test", str | None, test),
        *parameters(SETTINGS, LEARNER, default_texts(kind)),
        iterations_parameter("How many steps: 4M, 300k, 1e6, ..."),
        *parameters(kind.options, f"Task {kind.name}"),
        parameter("evaluate_every", str | None, every),
        parameter("checkpoint_seconds", float, seconds, CHECKPOINT_SECONDS),
        parameter("resume", bool, resume, False),
        parameter("force", bool, force, False),
        json_parameter(),
    ]


def _body(kind: TaskKind) -> Any:
    def train(**values: Any) -> None:
        run_train(kind, values)

    return train


def run_train(kind: TaskKind, values: Mapping[str, Any]) -> None:
    """``values``: the command line, by the parameters' names."""
    from sparsezo.cli import Terminated, show
    from sparsezo.cli.values import whole_number
    from sparsezo.tasks.loading import Files
    from sparsezo.training import Training

    learner = given(values, SETTINGS)
    Settings.complete(learner, kind.defaults)  # refused before any file is read
    iterations = whole_number(values["iterations"], "--iterations")
    every = whole_number(values["evaluate_every"], "--evaluate-every") if values["evaluate_every"] else None
    output: Path = values["output"]
    checkpoint = _places(output, resume=values["resume"], force=values["force"])
    loaded = kind.load(Files(tuple(values["train"]), values["dev"], values["test"], given(values, kind.options)))
    task, settings = loaded.task, Settings.complete(learner, kind.defaults)
    training = Training(
        task,
        loaded.data,
        settings,
        iterations,
        evaluate_every=every,
        checkpoint=checkpoint,
        checkpoint_seconds=values["checkpoint_seconds"],
        resume=values["resume"],
        W=loaded.W,
    )
    _introduce(training, checkpoint, resume=values["resume"])
    try:
        with show.training_progress(settings.rule, iterations, task.metric) as progress:
            outcome = training.go(progress)
    except KeyboardInterrupt as stop:
        show.note(f"stopped at step {training.learner.step:,}; the same command with --resume goes on from there")
        code = signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT
        raise typer.Exit(128 + code) from None
    outcome.model.save(output)
    training.finish()
    written = [output, *task.export(output, outcome.model.W)]
    show.note(f"wrote {', '.join(map(str, written))}")
    fields = dict(outcome.result)
    if outcome.test is not None and values["json"]:
        fields["test_report"] = outcome.test.report
    show.result(fields, as_json=values["json"], title=f"{task.name}: {settings}")


def _introduce(training: Training, checkpoint: Path, *, resume: bool) -> None:
    """What is about to run."""
    from sparsezo.cli import show

    task, settings, problem = training.task, training.settings, training.problem
    if resume:
        where = f"continuing at step {training.learner.step:,}" if training.learner.step else "no checkpoint: starting"
        show.note(f"{where} ({checkpoint})")
    show.note(
        f"{task.name}: {settings}; {len(problem):,} inputs, {problem.n_features * problem.n_labels:,} weights, "
        f"{problem.n_active.mean():,.0f} active and {problem.n_score.mean():,.0f} scores an input"
    )
    if settings.perturb == "all" and (problem.n_active == problem.n_features * problem.n_labels).all():
        show.note("every weight is active in every input: all and active are the same law here")
    show.note_compiling()


def _places(output: Path, *, resume: bool, force: bool) -> Path:
    """Where the checkpoint goes; everything that can be wrong about the output is said before the work."""
    from sparsezo.errors import SparsezoError, UsageError

    parent = output.resolve().parent
    if not parent.is_dir():
        raise SparsezoError(f"{output}: there is no folder {parent}; make it first")
    if output.is_dir():
        raise UsageError(f"-o {output}: is a folder; name a file in it")
    checkpoint = output.with_name(output.name + ".checkpoint")
    if checkpoint.exists() and not (resume or force):
        raise UsageError(
            f"{checkpoint}: an unfinished run is there; add --resume to go on with it, or --force to start anew"
        )
    if output.exists() and not (resume or force):
        raise UsageError(f"{output}: is there already; add --force to replace it, or name another file with -o")
    return checkpoint
