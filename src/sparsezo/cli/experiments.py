"""tune and reproduce, behind their command lines: plans are run, resumed and followed on the screen.

    run_reproduce("chunking", data="DIR", out=Path("results/chunking"))
    run_tune(TuneCall("chunking", Files(("train.txt",), dev="1000"), rule="two-point", perturb="score"))

A folder of results has: experiment.toml, runs/<hash>/{run.json, curve.csv, model.szo}, tuning.json, bounds.json.
"""

from __future__ import annotations

import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import typer
from rich.progress import BarColumn, Progress, TextColumn

from sparsezo.cli import Terminated, show
from sparsezo.cli.values import whole_number
from sparsezo.engines.local import Runner, fixed_runs
from sparsezo.engines.progress import Failure, Overview
from sparsezo.errors import SparsezoError, UsageError
from sparsezo.experiments.phases import RESULT_PHASES
from sparsezo.experiments.plan import BUILTIN, PAPER, DataSpec, Experiment, LearnerSpec, builtin, read_experiment
from sparsezo.experiments.runs import write_json
from sparsezo.experiments.sources import Source, generated, in_folder, present
from sparsezo.experiments.tuning import Tuned, tune, tuned_runs
from sparsezo.reports.report import write_report
from sparsezo.rules import RULES
from sparsezo.storage.cache import cache_folder
from sparsezo.storage.files import write_text
from sparsezo.tasks.loading import Files, Loaded, front

GENERATED = "generated"
_GRID_OF = {"chunking": "chunking", "rerank": "smt", "text": "text"}  # the experiment whose grid the paper has
_LOG_SECONDS = 10.0  # between lines where there is no terminal
_NO_DATA = (
    "reproduce needs data: 'sparsezo data get conll2000' fetches chunking's, 'sparsezo data list' says how to get the "
    "rest; name its folder with --data DIR or the environment variable SPARSEZO_DATA, or use --data generated for the "
    "built-in generators"
)


def load(task: str, files: Files) -> Loaded:
    """A task and its data; called in every process of a sweep."""
    loaded: Loaded = front(task).load(files)
    return loaded


# reproduce


def run_reproduce(
    name: str,
    data: str | None,
    *,
    seeds: int | None = None,
    iterations: str | None = None,
    phases: str = "fixed,tuned",
    full_grid: bool = False,
    processes: int | None = None,
    out: Path | None = None,
    at: Mapping[str, tuple[float, float]] | None = None,
    quick: bool = False,
) -> list[Path]:
    """Do all runs of an experiment, a built-in one or a file's, or of the paper's three, and write the report on them.

    ``at``: other fixed (h, mu) for the zeroth-order learners of the experiments that it names. Returns the folders.
    """
    if name == "scaling":
        return [_scaling(out or Path("results") / "scaling", seeds, quick=quick)]
    if quick:
        raise UsageError("--quick belongs to reproduce scaling; use fewer --iterations")
    wanted = _phases(phases)
    plans = [_overridden(plan, seeds, iterations) for plan in _plans(name)]
    plans = [_placed(plan, at[plan.name]) if at and plan.name in at else plan for plan in plans]
    if data == GENERATED:
        plans = [_without_paper(plan) for plan in plans]
    for plan in plans:
        if "fixed" not in wanted and not plan.has_grid:
            raise UsageError(f"{plan.name}: no learner has a grid, so there is nothing to tune; use --phases fixed")
    if data is None:  # what 'data get' has fetched
        data = str(cache_folder("data"))
        if not all(present(plan, data) for plan in plans):
            raise UsageError(_NO_DATA)
    root = out or Path("results")
    several = name == "all"
    folders = [root / plan.name if several or out is None else root for plan in plans]
    jobs = [(plan, folder, _source(plan, folder, data)) for plan, folder in zip(plans, folders, strict=True)]
    failures: list[Failure] = []
    for plan, folder, source in jobs:
        failures += _reproduce(plan, folder, source, wanted, full_grid=full_grid, processes=processes)
    for failure in failures:
        show.note(f"failed: {failure.run}: {failure.message}")
    try:
        page = write_report(folders, (root if several else folders[0]) / "report", command=_command())
        show.note(f"the report is {page}")
    except UsageError:
        if not failures:
            raise  # else nothing was finished, for the reasons above
    if failures:
        _fail(len(failures))
    return folders


def _command() -> str:
    """What was typed, for the report."""
    return shlex.join(["sparsezo", *sys.argv[1:]])


def _scaling(folder: Path, seeds: int | None, *, quick: bool) -> Path:
    from sparsezo.reports.scaling import run_scaling

    folder.mkdir(parents=True, exist_ok=True)
    count = 3 if seeds is None else seeds
    path = run_scaling(folder, quick=quick, seeds=count, say=show.note, command=_command())
    show.note(f"the report is {path}")
    return folder


def _plans(name: str) -> list[Experiment]:
    if name == "all":
        return [builtin(each) for each in PAPER]
    if name.endswith(".toml") or "/" in name:
        return [read_experiment(name)]
    if name not in BUILTIN:
        raise UsageError(f"experiment {name}: choose from {', '.join(BUILTIN)}, all, or name a .toml file")
    return [builtin(name)]


def _phases(text: str) -> tuple[str, ...]:
    phases = tuple(part.strip() for part in text.split(",") if part.strip())
    for phase in phases:
        if phase not in RESULT_PHASES:
            raise UsageError(f"--phases {text}: choose from {', '.join(RESULT_PHASES)}, or both with a comma")
    if not phases:
        raise UsageError("--phases: name at least one of " + ", ".join(RESULT_PHASES))
    return phases


def _overridden(plan: Experiment, seeds: int | None, iterations: str | None) -> Experiment:
    if seeds is not None:
        if seeds < 1:
            raise UsageError(f"--seeds {seeds}: must be at least 1")
        plan = replace(plan, seeds=tuple(range(seeds)))
    if iterations is not None:
        plan = replace(plan, iterations=whole_number(iterations, "--iterations"), evaluate_every=None)
    return plan


def _placed(plan: Experiment, at: tuple[float, float]) -> Experiment:
    """With another h and mu for what perturbs."""
    h, mu = at
    return replace(plan, learners=tuple(replace(l, h=h, mu=mu) if l.perturb else l for l in plan.learners))


def _without_paper(plan: Experiment) -> Experiment:
    """The paper's figures say nothing about generated data."""
    return replace(plan, learners=tuple(replace(learner, paper=None) for learner in plan.learners))


def _source(plan: Experiment, folder: Path, data: str) -> Source:
    if data != GENERATED:
        return in_folder(plan, data)
    show.note(f"{plan.name}: on GENERATED data, in {folder / 'data'}")
    return generated(plan, folder / "data")


def _reproduce(
    plan: Experiment,
    out: Path,
    source: Source,
    phases: Sequence[str],
    *,
    full_grid: bool,
    processes: int | None,
) -> list[Failure]:
    """One experiment into its folder; returns what failed."""
    identity = source.identity
    is_generated = Path(source.train[0]).is_relative_to(out / "data")
    plan = replace(plan, origin=GENERATED if is_generated else "files", identity=identity)
    _claim(plan, out)
    files = Files(source.train, source.dev, source.test, dict(source.options))
    failures: list[Failure] = []
    with _stopping_cleanly(), Runner(out, partial(load, plan.task, files), processes) as runner:
        show.note_compiling()
        if plan.bounds:
            write_json(out / "bounds.json", bounds(load(plan.task, files), source))
        if "fixed" in phases:
            with _following(f"{plan.name}, fixed settings") as progress:
                failures += runner.run(fixed_runs(plan, identity), progress).failures
        if "tuned" in phases and not plan.has_grid:
            show.note(f"{plan.name}: no learner has a grid, so there is no tuned phase")
        elif "tuned" in phases:
            with _following(f"{plan.name}, tuning") as progress:
                tuned = tune(plan, runner, identity, full_grid=full_grid, progress=progress, say=show.note)
            write_json(out / "tuning.json", {name: found.as_dict() for name, found in tuned.items()})
            with _following(f"{plan.name}, tuned settings") as progress:
                failures += runner.run(tuned_runs(plan, identity, tuned), progress).failures
    show.note(f"{plan.name}: results are in {out}")
    return failures


def _claim(plan: Experiment, out: Path) -> None:
    """Put the plan into the folder; one that holds runs of another plan is left alone."""
    path = out / "experiment.toml"
    if path.exists() and (field := read_experiment(path).clash(plan)) is not None:
        raise UsageError(f"{out}: holds runs of another plan ({field} differs); name another folder with -o")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SparsezoError(f"{out}: cannot be made ({error.strerror}); name another folder with -o") from None
    write_text(path, plan.to_toml())


def bounds(loaded: Loaded, source: Source) -> dict[str, Any]:
    """Reranking: the test lists by weights as they are, and the best that any weights could reach."""
    from sparsezo.learner import predict
    from sparsezo.tasks.rerank.decoder_weights import read_weights

    task, test = loaded.task, loaded.data.test
    if test is None:
        raise UsageError("bounds are of the test lists; give data.test")
    problem, gold = task.problem(test, learn=False), task.gold(test)
    names: tuple[str, ...] = getattr(task, "names", ())
    found: dict[str, Any] = {}
    for bound, path in source.bounds.items():
        weights = read_weights(path)
        W = np.array([weights.get(name, 0.0) for name in names], problem.dtype).reshape(-1, 1)
        found[bound] = task.scores(test, predict(problem, W)).report
    lists = zip(gold.offsets[:-1], gold.offsets[1:], strict=True)
    oracle = np.array([np.argmin(gold.losses[begin:end]) for begin, end in lists], np.int32)
    return {**found, "oracle": task.scores(test, oracle).report}


# tune


@dataclass(frozen=True)
class TuneCall:
    """The command line of tune; None stands for "not given"."""

    task: str
    files: Files
    rule: str = "two-point"
    perturb: str | None = None
    criterion: str = "map"
    gamma: float = 1.0
    step: str = "constant"
    baseline: bool = False
    feedback: str = "exact"
    grid_h: str | None = None
    grid_mu: str | None = None
    iterations: str = "1M"
    seeds: tuple[int, ...] = (0,)
    full_grid: bool = False
    processes: int | None = None
    output: Path | None = None
    as_json: bool = False

    def learner(self) -> LearnerSpec:
        """With the paper's grid where none was given."""
        paper = builtin(_GRID_OF[self.task]).learners[0]
        perturbs = self.rule not in RULES or RULES[self.rule].zeroth_order
        grid_h = _numbers(self.grid_h, "--grid-h") or paper.grid_h
        grid_mu = _numbers(self.grid_mu, "--grid-mu") or (paper.grid_mu if perturbs else ())
        return LearnerSpec(
            rule=self.rule,
            perturb=self.perturb or ("score" if perturbs else None),
            h=grid_h[0],
            mu=grid_mu[0] if grid_mu else None,
            step=self.step,
            criterion=self.criterion,
            gamma=self.gamma,
            baseline=self.baseline,
            feedback=self.feedback,
            grid_h=grid_h,
            grid_mu=grid_mu,
        )


def run_tune(call: TuneCall) -> None:
    """Search for h and mu on dev; prints them and the command that trains with them."""
    front(call.task)
    files = call.files
    if files.dev is None:
        raise UsageError("tune looks at dev: give --dev, a file or a number of inputs to hold out")
    spec = call.learner()
    plan = Experiment(
        name=f"tune-{call.task}",
        task=call.task,
        data=DataSpec(files.train, files.dev, None, files.options),
        learners=(spec,),
        iterations=whole_number(call.iterations, "--iterations"),
        seeds=call.seeds,
    )
    identity = Source(call.task, files.train, files.dev, None, files.options).identity
    out = call.output or Path(f"tune-{call.task}")
    out.mkdir(parents=True, exist_ok=True)
    with _stopping_cleanly(), Runner(out, partial(load, call.task, files), call.processes) as runner:
        show.note_compiling()
        with _following(f"tuning {spec.name}") as progress:
            tuned = tune(plan, runner, identity, full_grid=call.full_grid, progress=progress, say=show.note)
    write_json(out / "tuning.json", {name: found.as_dict() for name, found in tuned.items()})
    _show_tuned(call, spec, tuned[spec.name], plan.iterations)


def _show_tuned(call: TuneCall, spec: LearnerSpec, found: Tuned, iterations: int) -> None:
    command = _train_command(call, spec, found, iterations)
    h, mu = found.chosen
    if call.as_json:
        fields = {"task": call.task, "learner": spec.name, "h": h, "mu": mu, **found.as_dict(), "command": command}
        show.result(fields, as_json=True)
        return
    for trial in sorted(found.trials, key=lambda trial: (trial.iterations, *trial.rank)):
        dev = "failed" if trial.dev is None else f"dev {trial.dev:.4f}"
        seeds = f", {trial.seeds} seeds" if trial.seeds > 1 else ""
        show.note(f"{trial.iterations:>12,} iterations{seeds}  h {trial.h:<8g} {_mu_text(trial.mu)}{dev}")
    if found.note:
        show.note(found.note)
    show.output.print(f"{spec.name}: h {h:g}  {_mu_text(mu)}dev {found.dev:.4f}", markup=False, soft_wrap=True)
    show.output.print(command, markup=False, soft_wrap=True)


def _mu_text(mu: float | None) -> str:
    return "" if mu is None else f"mu {mu:<8g} "


def _train_command(call: TuneCall, spec: LearnerSpec, found: Tuned, iterations: int) -> str:
    """What trains with the settings that were found."""
    h, mu = found.chosen
    given: list[tuple[str, Any]] = [*(("train", path) for path in call.files.train), ("dev", call.files.dev)]
    for name, value in call.files.options.items():
        given += [(name, each) for each in (value if isinstance(value, list) else [value])]
    given += [
        ("rule", spec.rule),
        ("perturb", spec.perturb),
        ("h", f"{h:g}"),
        ("mu", None if mu is None else f"{mu:g}"),
    ]
    given += [("step", spec.step)] if spec.step != "constant" else []
    given += [("criterion", "annealed"), ("gamma", f"{spec.gamma:g}")] if spec.criterion == "annealed" else []
    given += [("baseline", True)] if spec.baseline else []
    given += [("feedback", spec.feedback)] if spec.feedback != "exact" else []
    given += [("iterations", iterations), ("seed", call.seeds[0])]
    words = ["sparsezo", "train", call.task]
    for name, value in given:
        if value is not None:
            words += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
    return shlex.join([*words, "-o", "model.szo"])


def _numbers(text: str | None, option: str) -> tuple[float, ...]:
    """1e-2,1e-3 -> (0.01, 0.001)."""
    if text is None:
        return ()
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise UsageError(f"{option} {text}: give numbers with commas between them, such as 0.01,0.001") from None


# What a person sees


@contextmanager
def _stopping_cleanly() -> Iterator[None]:
    """Ctrl-C, or SIGTERM, ends in one line."""
    try:
        yield
    except KeyboardInterrupt as stop:
        show.note("stopped; the same command goes on from there")
        code = signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT
        raise typer.Exit(128 + code) from None


def _fail(count: int) -> NoReturn:
    runs = "1 run" if count == 1 else f"{count} runs"
    raise SparsezoError(f"{runs} failed, for the reasons above; the same command tries them again, and only them")


@contextmanager
def _following(title: str) -> Iterator[Callable[[Overview], None]]:
    """Gives a function to call with the overview: a live line on a terminal, a line now and then elsewhere."""
    if not show.errors.is_terminal:
        yield _log_lines(title)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[text]}"))
    with Progress(*columns, console=show.errors, transient=True) as bar:
        line = bar.add_task(title, total=None, text="loading")

        def update(now: Overview) -> None:
            bar.update(line, total=max(now.steps, 1), completed=now.steps_done, text=_text(now))

        yield update


def _log_lines(title: str) -> Callable[[Overview], None]:
    last = time.monotonic()

    def update(now: Overview) -> None:
        nonlocal last
        if time.monotonic() - last >= _LOG_SECONDS:
            last = time.monotonic()
            show.note(f"{title}: {_text(now)}")

    return update


def _text(now: Overview) -> str:
    parts = [f"{now.done} of {now.runs} runs"]
    parts += [f"{now.failed} failed"] if now.failed else []
    parts += [f"{100 * now.steps_done / max(now.steps, 1):.0f}% of {now.steps / 1e6:,.3g}M steps"]
    parts += [f"{_duration(now.seconds_left)} left"] if now.seconds_left is not None else []
    return ", ".join(parts)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"
