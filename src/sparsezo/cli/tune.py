"""tune: the search for h and mu on dev, and the command that trains with what was found."""

from __future__ import annotations

import inspect
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from sparsezo.cli.options import HELP, Group, command, given, insist_parameter, parameter, parameters
from sparsezo.cli.train import (
    LEARNER,
    answers_parameter,
    data_parameters,
    iterations_parameter,
    json_parameter,
    run_length,
)
from sparsezo.engines.choice import WHERE, Where
from sparsezo.settings import SETTINGS
from sparsezo.tasks.registry import kinds

if TYPE_CHECKING:
    from sparsezo.experiments.learners import LearnerSpec, Point
    from sparsezo.experiments.tuning import Tuned
    from sparsezo.tasks.kind import TaskKind
    from sparsezo.tasks.loading import Files

_SEARCHED = ("h", "mu", "seed")  # settings that are not tune's to be given
_GRIDS = {"grid_h": "--grid-h", "grid_mu": "--grid-mu", "grid_gamma": "--grid-gamma"}
_OF_TEST = ("test_ref",)  # task options about a part that tune does not look at


def tune_app(*, whole: bool = True) -> typer.Typer:
    app = typer.Typer(
        help="Search for h and mu on dev; prints them and the command that trains with them. Stopped, it goes on.",
        no_args_is_help=True,
        cls=Group,
        context_settings=HELP,
    )
    for kind in kinds() if whole else ():
        command(app, kind.name, _body(kind), _parameters(kind), f"Search for h and mu: {kind.title.lower()}.")
    return app


def _task_options(kind: TaskKind) -> dict[str, Any]:
    """A search needs labels: its trials are many, and nobody would answer them all."""
    options = kind.options.items()
    return {name: each for name, each in options if name not in _OF_TEST and not each.about.unlabelled}


def _parameters(kind: TaskKind) -> list[inspect.Parameter]:
    learner = {name: each for name, each in SETTINGS.items() if name not in _SEARCHED}
    usual = "the task's own"
    grid_h = typer.Option("--grid-h", help="Values of h, such as 0.01,0.001.", show_default=usual)
    grid_mu = typer.Option("--grid-mu", help="Values of mu, such as 0.1,0.01.", show_default=usual)
    gamma = "annealed criterion: values of gamma, such as 1,10. (default: --gamma alone)"
    grid_gamma = typer.Option("--grid-gamma", help=gamma, show_default=False)
    full = typer.Option("--full-grid", help="Try every point to the end; without it, a search.")
    seed = typer.Option("--seed", help="Of the trials.", rich_help_panel=LEARNER)
    seeds = typer.Option(
        "--seeds", min=1, help="More than 1: the best three are tried with so many.", rich_help_panel=LEARNER
    )
    output = typer.Option("-o", "--output", help="Folder of the trials.", show_default=f"tune-{kind.name}")
    return [
        *data_parameters(kind, dev_required=True),
        *parameters(learner, LEARNER),
        iterations_parameter("Of the run that is tuned for: 4M, 300k, ..."),
        answers_parameter("Of the run that is tuned for, where answers end it."),
        parameter("seed", int, seed, 0),
        parameter("seeds", int, seeds, 1),
        parameter("grid_h", str | None, grid_h),
        parameter("grid_mu", str | None, grid_mu),
        parameter("grid_gamma", str | None, grid_gamma),
        parameter("full_grid", bool, full, False),
        *parameters(_task_options(kind), f"Task {kind.name}"),
        *parameters(WHERE, "Where"),
        parameter("output", Path | None, output),
        insist_parameter(),
        json_parameter(),
    ]


def _body(kind: TaskKind) -> Any:
    def tune(**values: Any) -> None:
        run_tune(kind, values)

    return tune


def run_tune(kind: TaskKind, values: Mapping[str, Any]) -> None:
    """``values``: the command line, by the parameters' names."""
    from functools import partial

    from sparsezo import extras
    from sparsezo.cli import show
    from sparsezo.cli.follow import following, stopping_cleanly
    from sparsezo.experiments.dataspec import DataSpec
    from sparsezo.experiments.plan import Experiment, seed_range
    from sparsezo.experiments.reproduce import load
    from sparsezo.experiments.sources import Source
    from sparsezo.experiments.tuning import tune
    from sparsezo.storage import limits
    from sparsezo.storage.files import working_folder
    from sparsezo.storage.sealed import write_sealed
    from sparsezo.tasks.loading import Files

    where = Where(**given(values, WHERE))
    spec = learner_of(kind, values)
    iterations, answers = run_length(values)
    tried = seed_range(values["seeds"], values["seed"], "tune")
    extras.need(*kind.extras)
    files = Files(tuple(values["train"]), values["dev"], None, given(values, _task_options(kind)))
    plan = Experiment(
        name=f"tune-{kind.name}",
        task=kind.name,
        data=DataSpec(files.train, files.dev, None, files.options),
        learners=(spec,),
        iterations=limits.ITERATIONS if iterations is None else iterations,
        answers=answers,
        tuning_seeds=tried,
        seeds=(tried[-1] + 1,),  # of no run: a search is all there is
    )
    out = values["output"] or Path(f"tune-{kind.name}")
    with stopping_cleanly(), working_folder(out):
        kept = kept_input(files, out)
        identity = Source(kind.name, kept.train, kept.dev, None, kept.options).identity
        with where.open(out, partial(load, kind, kept), show.note) as engine:
            show.note_compiling()
            with following(f"tuning {spec.name}") as progress:
                tuned = tune(plan, engine, identity, full_grid=values["full_grid"], progress=progress, say=show.note)
        write_sealed(out / "tuning.json", {name: found.as_dict() for name, found in tuned.items()})
    _show(kind, files, spec, tuned[spec.name], plan, as_json=values["json"])


def kept_input(files: Files, out: Path) -> Files:
    """Standard input in a file of the folder: every process of a search reads the data, and a pipe is read once."""
    from sparsezo.storage.files import STANDARD_INPUT, atomic_write, open_bytes, reading

    kept = out / "standard-input"

    def place(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return type(value)(map(place, value))
        return str(kept) if value == STANDARD_INPUT else value

    found = replace(files, train=place(files.train), dev=place(files.dev))
    found = replace(found, options={name: place(value) for name, value in files.options.items()})
    if found != files:
        with open_bytes(STANDARD_INPUT) as source, reading(STANDARD_INPUT), atomic_write(kept) as target:
            shutil.copyfileobj(source, target)
    return found


def learner_of(kind: TaskKind, values: Mapping[str, Any]) -> LearnerSpec:
    """With the task's own grid where none was given."""
    from sparsezo.cli.values import numbers
    from sparsezo.experiments.learners import LearnerSpec
    from sparsezo.experiments.plan import grid_of
    from sparsezo.rules import RULES

    learner = given(values, {name: None for name in SETTINGS if name not in _SEARCHED})
    rule = learner.get("rule", LearnerSpec.rule)
    perturbs = rule not in RULES or RULES[rule].zeroth_order
    grid_h, grid_mu, grid_gamma = (
        numbers(values[name], flag) if values[name] is not None else () for name, flag in _GRIDS.items()
    )
    if not grid_h or (perturbs and not grid_mu):
        step = learner.get("step", "constant" if learner.get("perturb") in kind.constant_steps else kind.usual_step)
        own_h, own_mu = grid_of(kind.name, step)
        grid_h, grid_mu = grid_h or own_h, grid_mu or (own_mu if perturbs else ())

    def first(*_of: object) -> tuple[float, float]:
        return grid_h[0], grid_mu[0] if grid_mu else 1.0

    grids = {"grid_h": grid_h, "grid_mu": grid_mu, "grid_gamma": grid_gamma}
    return LearnerSpec.complete({**learner, **grids}, first, kind.usual_step, kind.constant_steps)


def _show(kind: TaskKind, files: Any, spec: LearnerSpec, found: Tuned, plan: Any, *, as_json: bool) -> None:
    from sparsezo.cli import show
    from sparsezo.experiments.learners import named

    command = train_command(kind, files, spec, found, plan)
    if as_json:
        chosen = named(found.chosen)
        fields = {"task": kind.name, "learner": spec.name, **chosen, **found.as_dict(), "command": command}
        show.result(fields, as_json=True)
        return
    for trial in sorted(found.trials, key=lambda trial: (trial.iterations, *trial.rank)):
        dev = "failed" if trial.dev is None else f"dev {trial.dev:.4f}"
        seeds = f", {trial.seeds} seeds" if trial.seeds > 1 else ""
        show.note(f"{trial.iterations:>12,} {plan.unit}{seeds}  h {trial.h:<8g} {_but_h(trial.point)}{dev}")
    if found.note:
        show.note(found.note)
    show.output.print(
        f"{spec.name}: h {found.chosen[0]:g}  {_but_h(found.chosen)}dev {found.dev:.4f}", markup=False, soft_wrap=True
    )
    show.output.print(command, markup=False, soft_wrap=True)


def _but_h(point: Point) -> str:
    from sparsezo.experiments.learners import named

    return "".join(f"{name} {value:<8g} " for name, value in named(point).items() if name != "h" and value is not None)


def train_command(kind: TaskKind, files: Any, spec: LearnerSpec, found: Tuned, plan: Any) -> str:
    """What trains with the settings that were found."""
    chosen = spec.settings(plan.search_seeds[0], *found.chosen)
    words = ["sparsezo", "train", kind.name]
    for path in files.train:
        words += ["--train", path]
    words += ["--dev", str(files.dev)]
    for name, value in files.options.items():
        for each in value if isinstance(value, list | tuple) else [value]:
            words += _words(kind.options[name].flag, each)
    always = ("rule", "perturb", "h", "mu", "step", "seed")
    for name, each in SETTINGS.items():
        value = getattr(chosen, name)
        if value is not None and (name in always or value != each.default):
            words += _words(each.flag, f"{value:g}" if isinstance(value, float) else value)
    return shlex.join([*words, f"--{plan.unit}", str(plan.length), "-o", "model.szo"])


def _words(flag: str, value: Any) -> list[str]:
    return [flag] if value is True else [flag, str(value)]
