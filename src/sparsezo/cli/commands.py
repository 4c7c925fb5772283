"""train, predict and evaluate, behind their command lines."""

from __future__ import annotations

import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from sparsezo.cli import Terminated, show
from sparsezo.cli.values import whole_number
from sparsezo.errors import SparsezoError, UsageError
from sparsezo.model import load_model
from sparsezo.rules import RULES
from sparsezo.settings import Settings
from sparsezo.storage.files import atomic_write
from sparsezo.tasks.base import Task
from sparsezo.tasks.loading import Files, Loaded, front
from sparsezo.training import Training


@dataclass(frozen=True)
class TrainCall:
    """The command line of train; None stands for "not given"."""

    task: str
    files: Files
    output: Path
    rule: str
    perturb: str | None
    criterion: str
    gamma: float
    h: float | None
    mu: float | None
    step: str
    baseline: bool
    feedback: str
    iterations: str
    seed: int
    evaluate_every: str | None
    checkpoint_seconds: float
    resume: bool
    as_json: bool

    def settings(self, task: Task | None) -> Settings:
        """With the task's own defaults; without a task just to be checked, before any file is read."""
        zeroth_order = self.rule not in RULES or RULES[self.rule].zeroth_order
        perturb = self.perturb or ("score" if zeroth_order else None)
        h, mu = task.defaults(self.rule, self.step, perturb) if task else (1.0, 1.0)
        return Settings(
            rule=self.rule,
            perturb=perturb,
            h=h if self.h is None else self.h,
            mu=self.mu if self.mu is not None else (mu if zeroth_order else None),
            step=self.step,
            criterion=self.criterion,
            gamma=self.gamma,
            baseline=self.baseline,
            seed=self.seed,
            feedback=self.feedback,
        )


def run_train(call: TrainCall) -> None:
    load = front(call.task).load
    call.settings(None)
    iterations = whole_number(call.iterations, "--iterations")
    every = whole_number(call.evaluate_every, "--evaluate-every") if call.evaluate_every else None
    checkpoint = _places(call)
    loaded: Loaded = load(call.files)
    task = loaded.task
    settings = call.settings(task)
    training = Training(
        task,
        loaded.data,
        settings,
        iterations,
        evaluate_every=every,
        checkpoint=checkpoint,
        checkpoint_seconds=call.checkpoint_seconds,
        resume=call.resume,
        W=loaded.W,
    )
    if call.resume:
        where = f"continuing at step {training.learner.step:,}" if training.learner.step else "no checkpoint: starting"
        show.note(f"{where} ({checkpoint})")
    show.note(
        f"{task.name}: {settings}; {len(training.problem):,} inputs, "
        f"{training.problem.n_features * training.problem.n_labels:,} weights, "
        f"{training.problem.n_active.mean():,.0f} active and {training.problem.n_score.mean():,.0f} scores an input"
    )
    if settings.perturb == "all" and (training.problem.n_active == training.problem.n_features * task.n_labels).all():
        show.note("every weight is active in every input: all and active are the same law here")
    show.note_compiling()
    try:
        with show.training_progress(settings.rule, iterations, task.metric) as progress:
            outcome = training.go(progress)
    except KeyboardInterrupt as stop:
        show.note(f"stopped at step {training.learner.step:,}; the same command with --resume goes on from there")
        code = signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT
        raise typer.Exit(128 + code) from None
    outcome.model.save(call.output)
    training.finish()
    written = [call.output, *task.export(call.output, outcome.model.W)]
    show.note(f"wrote {', '.join(map(str, written))}")
    fields = dict(outcome.result)
    if outcome.test is not None and call.as_json:
        fields["test_report"] = outcome.test.report
    show.result(fields, as_json=call.as_json, title=f"{task.name}: {settings}")


def _places(call: TrainCall) -> Path:
    """Where the checkpoint goes; everything that can be wrong about the output is said before the work."""
    parent = call.output.resolve().parent
    if not parent.is_dir():
        raise SparsezoError(f"{call.output}: there is no folder {parent}; make it first")
    if call.output.is_dir():
        raise UsageError(f"-o {call.output}: is a folder; name a file in it")
    checkpoint = call.output.with_name(call.output.name + ".checkpoint")
    if checkpoint.exists() and not call.resume:
        raise UsageError(
            f"{checkpoint}: an unfinished run is there; add --resume to go on with it, or remove the file to start anew"
        )
    return checkpoint


def run_predict(path: Path, source: str, output: Path | None, options: dict[str, Any]) -> None:
    model = load_model(path)
    lines = front(model.task.name).predict(model, source, options)
    if output is None:
        sys.stdout.writelines(lines)
        return
    with atomic_write(output) as stream:
        stream.writelines(line.encode() for line in lines)
    show.note(f"wrote {output}")


def run_evaluate(path: Path, test: str, options: dict[str, Any], *, as_json: bool) -> None:
    model = load_model(path)
    data = front(model.task.name).read(model.task, test, options)
    scores = model.task.scores(data, model.predict(data))
    fields = {"task": model.task.name, "metric": scores.metric, **scores.report, "model": str(path), "test": test}
    show.result(fields, as_json=as_json, title=f"{path} on {test}")
