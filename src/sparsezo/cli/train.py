"""train: a task learned from simulated feedback, into a model."""

from __future__ import annotations

import inspect
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from sparsezo.cli.from_answers import from_answers_parameters
from sparsezo.cli.options import command, default_texts, given, insist_parameter, parameter, parameters
from sparsezo.interrupts import CHECKPOINT_SECONDS
from sparsezo.options import described, make_options
from sparsezo.scorers import ScorerError, ScorerOptions
from sparsezo.settings import SETTINGS, Settings, step_for_h
from sparsezo.tasks.registry import kinds
from sparsezo.tasks.streams import StreamOptions
from sparsezo.words import counted
from sparsezo.workers.options import WorkerOptions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sparsezo.model import Model
    from sparsezo.scorers import Scorer
    from sparsezo.tasks.base import Task
    from sparsezo.tasks.kind import TaskKind
    from sparsezo.training import Outcome, Training

LEARNER = "Learner"
ITERATIONS = "1M"
_INIT = "init"  # to start from: a model; for a task that has an option of this name, also what it means there


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


def data_parameters(kind: TaskKind, *, dev_required: bool, train_required: bool = True) -> list[inspect.Parameter]:
    """Of train and tune: where the data is."""
    several = "one or several." if kind.several_files else "one."
    hold_out = "; or N: the first N inputs of train" if kind.hold_out else ""
    dev = typer.Option("--dev", help=f"Dev file{hold_out}. The best model on dev is kept.", metavar="FILE|N")
    empty = inspect.Parameter.empty
    train = typer.Option("--train", help=f"Training file (plain, .gz or .xz), {several}", metavar="FILE")
    return [
        parameter("train", list[str], train, empty) if train_required else parameter("train", list[str] | None, train),
        parameter("dev", str, dev, empty) if dev_required else parameter("dev", str | None, dev),
    ]


def _require_train(values: Mapping[str, Any]) -> None:
    from sparsezo.errors import UsageError

    if not values["train"]:
        raise UsageError(
            "give `train`, a file to learn from, or `from_answers`, a session whose answers are learned from"
        )
    if values.get("passes") is not None:
        raise UsageError("`passes` is of `from_answers`; leave it out, or say how long to learn with `iterations`")


def json_parameter() -> inspect.Parameter:
    return parameter("json", bool, typer.Option("--json", help="End standard output with one JSON object."), False)


def iterations_parameter(help: str) -> inspect.Parameter:
    shown = f"{ITERATIONS}; no end with --answers"
    option = typer.Option("--iterations", help=help, rich_help_panel=LEARNER, metavar="N", show_default=shown)
    return parameter("iterations", str | None, option)


def answers_parameter(help: str) -> inspect.Parameter:
    option = typer.Option("--answers", help=help, rich_help_panel=LEARNER, metavar="N")
    return parameter("answers", str | None, option)


def run_length(values: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """(iterations, answers) as they were given."""
    from sparsezo.cli.values import whole_number

    answers = None if values["answers"] is None else whole_number(values["answers"], "--answers")
    iterations = values["iterations"]
    if iterations is None and answers is None:
        iterations = ITERATIONS
    return None if iterations is None else whole_number(iterations, "--iterations"), answers


def _parameters(kind: TaskKind) -> list[inspect.Parameter]:
    output = typer.Option("-o", "--output", help="Where the model goes.", metavar="FILE")
    test = typer.Option("--test", help="Test file, looked at once, by the best model.", metavar="FILE")
    every = typer.Option(
        "--evaluate-every",
        help="Steps (with --answers: answers) between looks at dev.",
        show_default="a hundredth of the run",
    )
    seconds = typer.Option("--checkpoint-seconds", help="Seconds between checkpoints.")
    resume = typer.Option("--resume", help="Go on from the checkpoint of a stopped run.")
    own = {name: each for name, each in kind.options.items() if name != _INIT}
    theirs = kind.options[_INIT].about.help if _INIT in kind.options else ""
    about = f"{theirs} Or a model that train wrote." if theirs else "A model that train wrote, to start from."
    init = typer.Option(
        "--init", help=f"{about} Its features are found again by name.", metavar="FILE", show_default="0"
    )
    force = typer.Option("--force", help="Replace the model that is there.")
    return [
        *data_parameters(kind, dev_required=False, train_required=not kind.asks),
        *(from_answers_parameters() if kind.asks else ()),
        parameter("output", Path, output, inspect.Parameter.empty),
        parameter("test", str | None, test),
        *parameters(SETTINGS, LEARNER, default_texts(kind)),
        iterations_parameter("How many steps at most: 4M, 300k, 1e6, ..."),
        answers_parameter("End when a person would have answered so many questions: 1k, 5000, ..."),
        *parameters(described(ScorerOptions), LEARNER),
        *parameters(own, f"Task {kind.name}"),
        *(parameters(described(StreamOptions), f"Task {kind.name}") if kind.streaming else ()),
        *parameters(described(WorkerOptions), "Where"),
        parameter(_INIT, str | None, init),
        parameter("evaluate_every", str | None, every),
        parameter("checkpoint_seconds", float, seconds, CHECKPOINT_SECONDS),
        parameter("resume", bool, resume, False),
        parameter("force", bool, force, False),
        insist_parameter(),
        json_parameter(),
    ]


def _body(kind: TaskKind) -> Any:
    def train(**values: Any) -> None:
        run_train(kind, values)

    return train


def run_train(kind: TaskKind, values: Mapping[str, Any]) -> None:
    """``values``: the command line, by the parameters' names."""
    from sparsezo import extras, notes
    from sparsezo.cli.values import seconds, whole_number

    if values.get("from_answers") is not None:
        from sparsezo.cli.from_answers import run_from_answers

        run_from_answers(kind, values)
        return
    _require_train(values)
    learner = given(values, SETTINGS)
    settings = Settings.complete(learner, *kind.usual)  # refused before any file is read
    workers = _workers(values)
    workers.check(settings)
    workers.reach()
    _stream(values)
    scorer = make_options(ScorerOptions, given(values, described(ScorerOptions)), "train").open()
    run_length(values)
    every = whole_number(values["evaluate_every"], "--evaluate-every") if values["evaluate_every"] else None
    seconds(values["checkpoint_seconds"], "--checkpoint-seconds")
    extras.need(kind.reading_extra, kind.metric_extra if values["dev"] or values["test"] else None)
    output: Path = values["output"]
    checkpoint = places(output, resume=values["resume"], force=values["force"])
    if (remark := step_for_h(learner, *kind.usual)) is not None:
        notes.say(remark)
    with alone(output, checkpoint):
        training = _training(kind, values, every, checkpoint, scorer)
        _introduce(training, checkpoint, resume=values["resume"])
        _train(training, output, values)


def _training(
    kind: TaskKind, values: Mapping[str, Any], every: int | None, checkpoint: Path | None, scorer: Scorer | None
) -> Training:
    """With everything that can be wrong about the files found out."""
    from sparsezo.tasks.loading import Files
    from sparsezo.training import Training

    iterations, answers = run_length(values)
    options = given(values, kind.options)
    model = _model_to_start_from(kind, values[_INIT])
    if model is not None:
        options.pop(_INIT, None)
    files = Files(tuple(values["train"]), values["dev"], values["test"], options)
    settings = Settings.complete(given(values, SETTINGS), *kind.usual)
    how = {
        "answers": answers,
        "evaluate_every": every,
        "checkpoint": checkpoint,
        "checkpoint_seconds": values["checkpoint_seconds"],
        "resume": values["resume"],
        "scorer": scorer,
    }
    if (stream := _stream(values)).stream:
        from sparsezo.streaming import StreamedTraining, check_settings

        check_settings(settings, scorer=scorer is not None, workers=_workers(values).workers)
        streamed = kind.stream(files, stream.inputs)
        W = None if model is None else _joined(model, streamed.stream.task, values[_INIT])
        return StreamedTraining(streamed, settings, iterations, W=W, **how)
    loaded = kind.load(files)
    W = loaded.W if model is None else _joined(model, loaded.task, values[_INIT])
    return Training(loaded.task, loaded.data, settings, iterations, W=W, workers=_workers(values), **how)


def _joined(model: Model, task: Task, name: str) -> NDArray[Any]:
    from sparsezo.cli import show
    from sparsezo.warm_start import joined

    start = joined(model, task)
    show.note(
        f"starting from {name}: {start.features:,} of {task.n_features:,} features and "
        f"{start.labels:,} of {task.n_labels:,} labels found again"
    )
    return start.W


def _stream(values: Mapping[str, Any]) -> StreamOptions:
    return make_options(StreamOptions, given(values, described(StreamOptions)), "train")


def _workers(values: Mapping[str, Any]) -> WorkerOptions:
    return make_options(WorkerOptions, given(values, described(WorkerOptions)), "train")


def _model_to_start_from(kind: TaskKind, path: str | None) -> Any:
    """None where there is none, or where the task itself knows how to read the file: a decoder's weights."""
    from sparsezo.model import load_model
    from sparsezo.storage.container import is_container

    if path is None or (_INIT in kind.options and not is_container(path)):
        return None
    return load_model(path, kind.name)


def _train(training: Training, output: Path, values: Mapping[str, Any]) -> None:
    from sparsezo.cli import Terminated, show

    task, settings = training.task, training.settings
    try:
        ends = (training.iterations, task.metric, training.answers)
        with show.training_progress(settings.rule, *ends) as progress:
            model = training.learn(progress)
    except KeyboardInterrupt as stop:
        where = f"stopped at step {training.learner.step:,}"
        again = "; the same command with --resume goes on from there" if training.checkpoint is not None else ""
        show.note(where + again)
        code = signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT
        raise typer.Exit(128 + code) from None
    except ScorerError as error:
        if training.checkpoint is not None:
            again = f"stopped at step {training.learner.step:,}, and the same command with --resume goes on from there"
            error.args = (f"{error}; {again}",)
        raise
    written = _save(training, model, output)
    outcome = _tested(training, model, output)
    show.note(f"wrote {', '.join(map(str, written))}")
    fields = dict(outcome.result)
    if outcome.test is not None and values["json"]:
        fields["test_report"] = outcome.test.report
    show.result(fields, as_json=values["json"], title=f"{task.name}: {settings}")


def _save(training: Training, model: Model, output: Path) -> list[Path]:
    """The files written. A signal waits for them; not for the reader of a pipe, who may never come."""
    from sparsezo.interrupts import DeferredSignals

    if training.checkpoint is None:
        model.save(output)
        return [output]
    with DeferredSignals():
        model.save(output)
        training.finish()
        return [output, *training.task.export(output, model.W)]


def _tested(training: Training, model: Model, output: Path) -> Outcome:
    """The model is safe: what fails now costs the test result alone."""
    from sparsezo.cli import show
    from sparsezo.errors import SparsezoError

    try:
        outcome = training.tested(model)
    except SparsezoError as error:
        error.args = (f"{error}; the model is saved, in {output}",)
        raise
    except BaseException:
        show.note(f"the model is saved, in {output}")
        raise
    if outcome.test is not None and training.checkpoint is not None:
        outcome.model.save(output)  # once more, with the result on the test set
    return outcome


def _introduce(training: Training, checkpoint: Path | None, *, resume: bool) -> None:
    """What is about to run."""
    from sparsezo.cli import show

    task, settings, problem = training.task, training.settings, training.problem
    if resume:
        where = f"continuing at step {training.learner.step:,}" if training.learner.step else "no checkpoint: starting"
        show.note(f"{where} ({checkpoint})")
    elif checkpoint is None:
        show.note("the output is no regular file: there are no checkpoints, and nothing is written beside it")
    show.note(
        f"{task.name}: {settings}; {_inputs(training)}, {problem.n_features * problem.n_labels:,} weights, "
        f"{problem.n_active.mean():,.0f} active and {problem.n_score.mean():,.0f} scores an input"
    )
    if settings.perturb == "all" and (problem.n_active == problem.n_features * problem.n_labels).all():
        show.note("every weight is active in every input: all and active are the same law here")
    show.note_compiling()


def _inputs(training: Training) -> str:
    stream = getattr(training, "stream", None)
    if stream is None:
        return f"{len(training.problem):,} inputs"
    return f"a stream of {len(stream):,} inputs in {counted(len(stream.sizes), 'window')} of {max(stream.sizes):,}"


def places(output: Path, *, resume: bool, force: bool) -> Path | None:
    """Where the checkpoint goes, None for a device or a pipe; what can be wrong about the output is said now."""
    from sparsezo.errors import SparsezoError, UsageError
    from sparsezo.storage.files import is_special

    parent = output.resolve().parent
    if output.is_dir():
        raise UsageError(f"-o {output}: is a folder; name a file in it")
    if is_special(output):
        if resume:
            raise UsageError(f"-o {output}: is no regular file and has no checkpoint to go on from; leave out --resume")
        if sys.stdout is not None and _is_standard_output(output):
            raise UsageError(f"-o {output}: is where the summary goes; name a file or a pipe")
        return None
    if not parent.is_dir():
        raise SparsezoError(f"{output}: there is no folder {parent}; make it first")
    checkpoint = output.with_name(output.name + ".checkpoint")
    if checkpoint.exists() and not (resume or force):
        raise UsageError(
            f"{checkpoint}: an unfinished run is there; add --resume to go on with it, or --force to start anew"
        )
    if output.exists() and not (resume or force):
        raise UsageError(f"{output}: is there already; add --force to replace it, or name another file with -o")
    return checkpoint


def _is_standard_output(output: Path) -> bool:
    """Not so for /dev/null, where both may go."""
    try:
        there, ours = os.stat(output), os.fstat(1)
    except OSError:
        return False
    return os.path.samestat(there, ours) and not os.path.samestat(there, os.stat(os.devnull))


@contextmanager
def alone(output: Path, checkpoint: Path | None) -> Iterator[None]:
    """The only process that writes there, which it can do; what killed ones have left behind is removed."""
    from sparsezo.storage.files import remove_left_over
    from sparsezo.storage.locks import locked

    if checkpoint is None:
        yield
        return
    with locked(output, "is training it"):
        for path in (output, checkpoint):
            remove_left_over(path)
        yield
