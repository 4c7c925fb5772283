"""tune: the search for h and mu on dev, and the command that trains with what was found."""

from __future__ import annotations

import shlex
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

from sparsezo.cli import show
from sparsezo.cli.app import SEARCHED, tune_options
from sparsezo.cli.options import Clicks, given
from sparsezo.cli.train import run_length
from sparsezo.cli.values import numbers
from sparsezo.errors import need
from sparsezo.options import Values
from sparsezo.rules import RULES
from sparsezo.settings import SETTINGS
from sparsezo.storage import limits
from sparsezo.storage.checksummed import write_checksummed
from sparsezo.storage.files import STANDARD_INPUT, atomic_write, open_bytes, reading, working_folder
from sparsezo.study.engines.base import ENGINE_OPTIONS, EngineOptions
from sparsezo.study.plan import DataSpec, Experiment, LearnerSpec, Point, grid_of, named, seed_range
from sparsezo.study.sources import Source
from sparsezo.study.tuning import Tuned, tune
from sparsezo.tasks.loading import Files
from sparsezo.tasks.spec import TaskSpec


def run_tune(kind: TaskSpec, values: Values) -> None:
    """``values``: the command line, by the parameters' names."""
    engines = EngineOptions(**given(values, ENGINE_OPTIONS))
    spec = learner_of(kind, values)
    iterations, answers = run_length(values)
    tried = seed_range(values["seeds"], values["seed"], "tune")
    need(*kind.extras)
    files = Files(tuple(values["train"]), values["dev"], None, given(values, tune_options(kind)))
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
    with show.stopping_cleanly(), working_folder(out):
        kept = kept_input(files, out)
        identity = Source(kind.name, kept.train, kept.dev, None, kept.options).identity
        with engines.open(out, partial(kind.load, kept), show.note) as engine:
            show.note_compiling()
            with show.following(f"tuning {spec.name}") as progress:
                tuned = tune(plan, engine, identity, full_grid=values["full_grid"], progress=progress, say=show.note)
        write_checksummed(out / "tuning.json", {name: found.as_dict() for name, found in tuned.items()})
    _show(kind, files, spec, tuned[spec.name], plan, as_json=values["json"])


def kept_input(files: Files, out: Path) -> Files:
    """Standard input in a file of the folder: every process of a search reads the data, and a pipe is read once."""
    kept = out / "standard-input"

    def place(value: Clicks) -> Clicks:
        if isinstance(value, list | tuple):
            return type(value)(map(place, value))
        return type(value)(kept) if value == STANDARD_INPUT else value

    options = {name: place(value) for name, value in files.options.items()}
    found = replace(files, train=place(files.train), dev=place(files.dev), options=options)
    if found != files:
        with open_bytes(STANDARD_INPUT) as source, reading(STANDARD_INPUT), atomic_write(kept) as target:
            shutil.copyfileobj(source, target)
    return found


def learner_of(kind: TaskSpec, values: Values) -> LearnerSpec:
    """With the task's own grid where none was given."""
    learner = given(values, SETTINGS, but=SEARCHED)
    rule = learner.get("rule", LearnerSpec.rule)
    perturbs = rule not in RULES or RULES[rule].zeroth_order
    texts = {name: values[f"grid_{name}"] for name in ("h", "mu", "gamma")}
    grid_h, grid_mu, grid_gamma = (
        () if text is None else numbers(text, f"--grid-{name}") for name, text in texts.items()
    )
    if not grid_h or (perturbs and not grid_mu):
        step = learner.get("step", "constant" if learner.get("perturb") in kind.constant_steps else kind.usual_step)
        own_h, own_mu = grid_of(kind.name, step)
        grid_h, grid_mu = grid_h or own_h, grid_mu or (own_mu if perturbs else ())

    def first(*_of: object) -> tuple[float, float]:
        return grid_h[0], grid_mu[0] if grid_mu else 1.0

    grids = {"grid_h": grid_h, "grid_mu": grid_mu, "grid_gamma": grid_gamma}
    return LearnerSpec.complete({**learner, **grids}, first, kind.usual_step, kind.constant_steps)


def _show(kind: TaskSpec, files: Files, spec: LearnerSpec, found: Tuned, plan: Experiment, *, as_json: bool) -> None:
    command = train_command(kind, files, spec, found, plan)
    if as_json:
        fields = {"task": kind.name, "learner": spec.name, **named(found.chosen), **found.as_dict(), "command": command}
        show.result(fields, as_json=True)
        return
    for trial in sorted(found.trials, key=lambda trial: (trial.iterations, *trial.rank)):
        dev = "failed" if trial.dev is None else f"dev {trial.dev:.4f}"
        seeds = f", {trial.seeds} seeds" if trial.seeds > 1 else ""
        show.note(f"{trial.iterations:>12,} {plan.unit}{seeds}  h {trial.h:<8g} {_but_h(trial.point)}{dev}")
    if found.note:
        show.note(found.note)
    show.line(f"{spec.name}: h {found.chosen[0]:g}  {_but_h(found.chosen)}dev {found.dev:.4f}")
    show.line(command)


def _but_h(point: Point) -> str:
    return "".join(f"{name} {value:<8g} " for name, value in named(point).items() if name != "h" and value is not None)


def train_command(kind: TaskSpec, files: Files, spec: LearnerSpec, found: Tuned, plan: Experiment) -> str:
    """What trains with the settings that were found."""
    chosen = spec.settings(plan.search_seeds[0], *found.chosen)
    given: list[tuple[str, object]] = [*(("--train", path) for path in files.train), ("--dev", files.dev)]
    for name, value in files.options.items():
        given += ((kind.options[name].flag, each) for each in (value if isinstance(value, list | tuple) else [value]))
    always = ("rule", "perturb", "h", "mu", "step", "seed")
    for name, each in SETTINGS.items():
        value = getattr(chosen, name)
        if value is not None and (name in always or value != each.default):
            given.append((each.flag, f"{value:g}" if isinstance(value, float) else value))
    given += [(f"--{plan.unit}", plan.length), ("-o", "model.szo")]
    words = (word for flag, value in given for word in ([flag] if value is True else [flag, str(value)]))
    return shlex.join(["sparsezo", "train", kind.name, *words])
