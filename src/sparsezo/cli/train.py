"""train: a task learned from simulated feedback, into a model."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sparsezo import messages
from sparsezo.cli import show
from sparsezo.cli.options import given
from sparsezo.cli.values import ITERATIONS, seconds, whole_number
from sparsezo.errors import SparsezoError, UsageError, need
from sparsezo.model import Model, load_model
from sparsezo.options import Values, described, make_options
from sparsezo.scorers import ScorerError, ScorerOptions
from sparsezo.settings import SETTINGS, Settings, step_for_h
from sparsezo.signals import DeferredSignals
from sparsezo.storage.container import is_container
from sparsezo.storage.files import is_special, remove_left_over
from sparsezo.storage.locks import locked
from sparsezo.tasks.base import AnyArray, Task
from sparsezo.tasks.loading import Files
from sparsezo.tasks.spec import TaskSpec
from sparsezo.tasks.streams import StreamOptions
from sparsezo.training import HowToTrain, Outcome, StreamedTraining, Training, check_streamed, joined


def run_length(values: Values) -> tuple[int | None, int | None]:
    """(iterations, answers) as they were given."""
    answers, iterations = values["answers"], values["iterations"]
    if iterations is None and answers is None:
        iterations = ITERATIONS
    return (
        None if iterations is None else whole_number(iterations, "--iterations"),
        None if answers is None else whole_number(answers, "--answers"),
    )


def run_train(kind: TaskSpec, values: Values) -> None:
    """``values``: the command line, by the parameters' names. What is wrong with it is said before a file is read."""
    if values.get("log") is not None:
        from sparsezo.cli.log import run_from_log

        run_from_log(kind, values)
        return
    if values.get("from_answers") is not None:
        from sparsezo.cli.from_answers import run_from_answers

        run_from_answers(kind, values)
        return
    if not values["train"]:
        raise UsageError(
            "give `train`, a file to learn from, `from_answers`, a session whose answers are learned from, or `log`"
        )
    if values.get("passes") is not None:
        raise UsageError(
            "`passes` is of `from_answers` and `log`; leave it out, or say how long to learn with `iterations`"
        )
    learner, output, resume = given(values, SETTINGS), values["output"], values["resume"]
    settings = Settings.complete(learner, *kind.usual)
    stream = make_options(StreamOptions, given(values, described(StreamOptions)), "train")
    scorer = make_options(ScorerOptions, given(values, described(ScorerOptions)), "train").open()
    iterations, answers = run_length(values)
    every = values["evaluate_every"]
    how: HowToTrain = {
        "answers": answers,
        "evaluate_every": whole_number(every, "--evaluate-every") if every else None,
        "checkpoint_seconds": seconds(values["checkpoint_seconds"], "--checkpoint-seconds"),
        "resume": resume,
        "scorer": scorer,
    }
    need(kind.reading_extra, kind.metric_extra if values["dev"] or values["test"] else None)
    checkpoint = how["checkpoint"] = places(output, resume=resume, force=values["force"])
    if (remark := step_for_h(learner, *kind.usual)) is not None:
        messages.say(remark)
    with alone(output, checkpoint):
        training = _training(kind, values, stream, (settings, iterations), how)
        if resume:
            where = f"continuing at step {training.learner.step:,}"
            show.note(f"{where if training.learner.step else 'no checkpoint: starting'} ({checkpoint})")
        elif checkpoint is None:
            show.note("the output is no regular file: there are no checkpoints, and nothing is written beside it")
        _introduce(training)
        _train(training, output, as_json=values["json"])


def _training(
    kind: TaskSpec, values: Values, stream: StreamOptions, learner: tuple[Settings, int | None], how: HowToTrain
) -> Training:
    """With everything that can be wrong about the files found out; ``learner``: settings and iterations."""
    options, init = given(values, kind.options), values["init"]
    model = None
    if init is not None and (is_container(init) or "init" not in kind.options):
        model = load_model(init, kind.name)  # else the task itself knows how to read the file: a decoder's weights
        options.pop("init", None)
    files = Files(tuple(values["train"]), values["dev"], values["test"], options)
    if stream.stream:
        check_streamed(learner[0], scorer=how["scorer"] is not None)
        streamed = kind.stream(files, stream.inputs)
        if model is not None:
            how["W"] = _joined(model, streamed.stream.task, init)
        return StreamedTraining(streamed, *learner, **how)
    loaded = kind.load(files)
    how["W"] = loaded.W if model is None else _joined(model, loaded.task, init)
    return Training(loaded.task, loaded.data, *learner, **how)


def _joined(model: Model, task: Task, name: str) -> AnyArray:
    start = joined(model, task)
    show.note(
        f"starting from {name}: {start.features:,} of {task.n_features:,} features and "
        f"{start.labels:,} of {task.n_labels:,} labels found again"
    )
    return start.W


def _introduce(training: Training) -> None:
    """What is about to run."""
    task, settings, problem = training.task, training.settings, training.problem
    inputs = f"{len(problem):,} inputs"
    if isinstance(training, StreamedTraining):
        sizes = training.stream.sizes
        windows = messages.counted(len(sizes), "window")
        inputs = f"a stream of {len(training.stream):,} inputs in {windows} of {max(sizes):,}"
    weights = problem.n_features * problem.n_labels
    show.note(
        f"{task.name}: {settings}; {inputs}, {weights:,} weights, "
        f"{problem.n_active.mean():,.0f} active and {problem.n_score.mean():,.0f} scores an input"
    )
    if settings.perturb == "all" and (problem.n_active == weights).all():
        show.note("every weight is active in every input: all and active are the same law here")
    show.note_compiling()


def _train(training: Training, output: Path, *, as_json: bool) -> None:
    task, settings = training.task, training.settings
    ends = (training.iterations, task.metric, training.answers)
    try:
        with show.training_progress(settings.rule, *ends) as progress:
            model = training.learn(progress)
    except KeyboardInterrupt as stop:
        again = "; the same command with --resume goes on from there" if training.checkpoint is not None else ""
        show.note(f"stopped at step {training.learner.step:,}{again}")
        raise show.stopped(stop) from None
    except ScorerError as error:
        if training.checkpoint is not None:
            again = f"stopped at step {training.learner.step:,}, and the same command with --resume goes on from there"
            error.args = (f"{error}; {again}",)
        raise
    written = [output]
    if training.checkpoint is None:
        model.save(output)
    else:
        with DeferredSignals():  # a signal waits for the files; not for the reader of a pipe, who may never come
            model.save(output)
            training.finish()
            written += training.task.export(output, model.W)
    outcome = _tested(training, model, output)
    show.note(f"wrote {', '.join(map(str, written))}")
    fields = dict(outcome.result)
    if outcome.test is not None and as_json:
        fields["test_report"] = outcome.test.report
    show.result(fields, as_json=as_json, title=f"{task.name}: {settings}")


def _tested(training: Training, model: Model, output: Path) -> Outcome:
    """The model is safe: what fails now costs the test result alone."""
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


def places(output: Path, *, resume: bool, force: bool) -> Path | None:
    """Where the checkpoint goes, None for a device or a pipe; what can be wrong about the output is said now."""
    if output.is_dir():
        raise UsageError(f"-o {output}: is a folder; name a file in it")
    if is_special(output):
        if resume:
            raise UsageError(f"-o {output}: is no regular file and has no checkpoint to go on from; leave out --resume")
        if sys.stdout is not None and _is_standard_output(output):
            raise UsageError(f"-o {output}: is where the summary goes; name a file or a pipe")
        return None
    parent = output.resolve().parent
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
    if checkpoint is None:
        yield
        return
    with locked(output, "is training it"):
        for path in (output, checkpoint):
            remove_left_over(path)
        yield
