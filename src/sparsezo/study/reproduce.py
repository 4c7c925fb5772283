"""An experiment from its plan to its report: the fixed settings of the figure, tuning, the tuned settings, the page.

    done = reproduce("chunking", data="DIR", out=Path("results/chunking"))
    done = reproduce(read_experiment("mine.toml"), data="DIR", seeds=2, watch=Watch(say=print))
    done.folders, done.failures

Interrupted or killed, the same call goes on. A folder of results has: experiment.toml,
runs/<hash>/{run.json, curve.csv, model.szo}, tuning.json, bounds.json.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from sparsezo.errors import DamagedError, DataError, SparsezoError, UsageError, need
from sparsezo.storage.cache import cache_folder
from sparsezo.storage.checksummed import checksummed_toml, read_whole, verified_toml, write_checksummed
from sparsezo.storage.container import write_container
from sparsezo.storage.files import STANDARD_INPUT, working_folder, write_text
from sparsezo.study.engines.base import EngineOptions, Failure, Overview
from sparsezo.study.experiments import EXPERIMENTS, papers_own
from sparsezo.study.plan import (
    RESULT_PHASES,
    SEARCHED,
    Experiment,
    builtin,
    parse_experiment,
    read_experiment,
    seed_range,
)
from sparsezo.study.runs import Run, fixed_runs, undivided_runs
from sparsezo.study.sources import Source, generated, in_folder, on_data, present
from sparsezo.study.tuning import fastest_runs, gamma_runs, tune, tuned_runs
from sparsezo.study.wabbit import write_wabbit
from sparsezo.tasks.base import Arrays, Json
from sparsezo.tasks.loading import Files, Loaded
from sparsezo.tasks.registry import task_spec

GENERATED = "generated"
SEVERAL = ("all", "answers")  # names that stand for several experiments: the paper's, and one of answers for each task
PLAN_FILE, BOUND_COUNTS = "experiment.toml", "bounds.counts"
_ANEW = "it is written anew"
_NO_DATA = (
    "reproduce needs data: 'sparsezo data get conll2000' fetches chunking's, 'sparsezo data list' says how to get the "
    "rest; name its folder with `data` DIR or the environment variable SPARSEZO_DATA, or use `data` generated for the "
    "built-in generators"
)

Follow = Callable[[str], AbstractContextManager[Callable[[Overview], None] | None]]


@dataclass(frozen=True)
class Watch:
    """How a person follows the work: remarks, and the progress of a sweep under a title."""

    say: Callable[[str], None] = lambda text: None
    follow: Follow = lambda title: nullcontext()
    before_work: Callable[[], None] = lambda: None  # called before a sweep starts


@dataclass(frozen=True)
class Reproduced:
    folders: list[Path]
    failures: list[Failure] = field(default_factory=list)


@dataclass(frozen=True)
class Overrides(EngineOptions):
    """What may be other than the plan has it, and who does the work: the keywords of ``reproduce``."""

    seeds: int | Sequence[int] | None = None  # so many, or these
    iterations: int | None = None
    answers: int | None = None  # of an experiment that is about them, fewer (or more) than its plan has
    phases: Sequence[str] | None = None  # fixed, tuned or both
    full_grid: bool = False  # tuned: try every point of the grids to the end
    at: Mapping[str, tuple[float, float]] | None = None  # by experiment: (h, mu) for the learners that perturb

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.phases is None:
            return
        known = ", ".join(RESULT_PHASES)
        if not self.phases:
            raise UsageError(f"`phases`: name at least one of {known}")
        if not set(self.phases) <= set(RESULT_PHASES):
            raise UsageError(f"`phases` {','.join(self.phases)}: choose from {known}, or several with commas")

    def of(self, plan: Experiment) -> Experiment:
        """The plan as it is to be run."""
        if isinstance(self.seeds, int):
            if self.seeds < 1:
                raise UsageError(f"`seeds` {self.seeds}: must be at least 1")
            plan = replace(plan, seeds=seed_range(self.seeds, where=plan.name))
        elif self.seeds is not None:
            plan = replace(plan, seeds=tuple(self.seeds))
        if self.iterations is not None:
            plan = replace(plan, iterations=self.iterations, evaluate_every=None)
        if self.answers is not None:
            if plan.answers is None:
                raise UsageError(f"`answers` {self.answers}: {plan.name} counts iterations; use `iterations`")
            plan = plan.shortened(self.answers)
        if self.at and plan.name in self.at:
            h, mu = self.at[plan.name]
            plan = replace(plan, learners=tuple(replace(l, h=h, mu=mu) if l.perturb else l for l in plan.learners))
        return plan


def reproduce(
    what: str | Experiment,
    data: str | None = None,
    *,
    out: Path | None = None,
    watch: Watch | None = None,
    **overrides: Any,
) -> Reproduced:
    """Do the experiment's runs: a built-in one by name, "all" of the paper's, "answers", a TOML file, or a plan.

    ``data``: a folder, or "generated". ``out``: where results go, results/NAME by default. ``overrides``: the fields of
    ``Overrides``: seeds, iterations, answers, phases, full_grid, at, engine, ray_address, processes.
    """
    watch, options = watch or Watch(), Overrides(**overrides)
    plans = [options.of(plan) for plan in _plans(what)]
    if data == GENERATED:  # the paper's figures say nothing about it
        plans = [replace(plan, learners=tuple(replace(l, paper=None) for l in plan.learners)) for plan in plans]
    plans = [_checked(plan, plan.phases_of(options.phases)) for plan in plans]
    if data is None:
        data = _folder_of_data(what, plans)
    plans = [on_data(plan, None if data == GENERATED else data) for plan in plans]
    root = out or Path("results")
    apart = what in SEVERAL or out is None
    folders = [root / plan.name if apart else root for plan in plans]
    need(*(extra for plan in plans for extra in task_spec(plan.task).extras))
    failures: list[Failure] = []
    with ExitStack() as alone:
        for folder in folders:
            alone.enter_context(working_folder(folder))
        jobs = [(plan, folder, _source(plan, folder, data, watch)) for plan, folder in zip(plans, folders, strict=True)]
        for job in jobs:
            failures += _reproduce(*job, options, watch)
    return Reproduced(folders, failures)


def _plans(what: str | Experiment) -> list[Experiment]:
    if isinstance(what, Experiment):
        return [what]
    if what == "all":
        return [builtin(name) for name in papers_own()]
    if what in SEVERAL:
        return [builtin(name) for name in EXPERIMENTS if name.startswith(f"{what}-")]
    if _is_file(what):
        return [read_experiment(what)]
    refuse_unknown(what)
    return [builtin(what)]


def refuse_unknown(what: str) -> None:
    """What is neither an experiment that is built in, nor a file."""
    if what not in EXPERIMENTS and what not in SEVERAL and not _is_file(what):
        raise UsageError(f"experiment {what}: choose from {', '.join((*EXPERIMENTS, *SEVERAL))}, or name a .toml file")


def _is_file(what: str) -> bool:
    return what == STANDARD_INPUT or what.endswith(".toml") or "/" in what


def _folder_of_data(what: str | Experiment, plans: Sequence[Experiment]) -> str:
    """Where nobody has named one: a file's own folder, if the data is there, or what 'data get' has fetched."""
    folders = [str(cache_folder("data"))]
    if isinstance(what, str) and _is_file(what):
        folders.insert(0, str(Path(what).parent))
    for folder in folders:
        if all(present(plan, folder) for plan in plans):
            return folder
    if len(folders) > 1:
        in_folder(plans[0], folders[0])  # says what is not there
    raise UsageError(_NO_DATA)


def _checked(plan: Experiment, phases: Sequence[str]) -> Experiment:
    """What would only be found out after hours; with something to tune, where that is to be done."""
    if "tuned" in phases:
        plan = plan.to_tune()
        if not plan.data.has_dev:
            raise UsageError(f"{plan.name}: tuning looks at dev, and data has none; give it, or use `phases` fixed")
    plan.refuse_size(phases)
    return plan


def _source(plan: Experiment, folder: Path, data: str, watch: Watch) -> Source:
    if data != GENERATED:
        return in_folder(plan, data)
    watch.say(f"{plan.name}: on GENERATED data, in {folder / 'data'}")
    return generated(plan, folder / "data")


def _reproduce(plan: Experiment, out: Path, source: Source, options: Overrides, watch: Watch) -> list[Failure]:
    """One experiment into its folder; returns what failed."""
    identity = source.identity
    is_generated = Path(source.train[0]).is_relative_to(out / "data")
    plan = replace(plan, origin=GENERATED if is_generated else "files", identity=identity)
    _claim(plan, out, watch)
    files = Files(source.train, source.dev, source.test, dict(source.options))
    load_it = partial(task_spec(plan.task).load, files)  # called in every process of a sweep
    failures: list[Failure] = []
    phases = plan.phases_of(options.phases)
    with options.open(out, load_it, watch.say) as engine:
        watch.before_work()
        if plan.bounds:
            reports, counts = bounds(load_it(), source)
            write_checksummed(out / "bounds.json", reports)
            write_container(out / BOUND_COUNTS, "counts", {}, counts)

        def do(title: str, runs: list[Run]) -> None:
            with watch.follow(f"{plan.name}, {title}") as progress:
                failures.extend(engine.run(runs, progress).failures)

        if "fixed" in phases:
            do("fixed settings", fixed_runs(plan, identity))
        if "undivided" in phases:
            do("fixed settings, steps not divided by mu", undivided_runs(plan, identity))
        if set(SEARCHED) & set(phases):
            look = partial(tune, full_grid=options.full_grid, speed="speed" in phases, say=watch.say)
            with watch.follow(f"{plan.name}, tuning") as progress:
                tuned = look(plan, engine, identity, progress=progress)
            write_checksummed(out / "tuning.json", {name: found.as_dict() for name, found in tuned.items()})
            if "tuned" in phases:
                do("tuned settings", tuned_runs(plan, identity, tuned))
            if "speed" in phases:
                do("settings tuned for speed", fastest_runs(plan, identity, tuned))
            if "gamma" in phases:
                do("several gammas", gamma_runs(plan, identity, tuned))
    if plan.rivals:
        write_wabbit(plan, load_it, out, identity, watch.say)
    watch.say(f"{plan.name}: results are in {out}")
    return failures


def _claim(plan: Experiment, out: Path, watch: Watch) -> None:
    """Put the plan into the folder; one that holds runs of another plan is left alone."""
    path = out / PLAN_FILE
    before = _claimed(path, watch)
    if before is not None and (field := before.clash(plan)) is not None:
        raise UsageError(f"{out}: holds runs of another plan ({field} differs); name another folder with -o")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SparsezoError(f"{out}: cannot be made ({error.strerror}); name another folder with -o") from None
    write_text(path, checksummed_toml(plan.to_toml()))


def _claimed(path: Path, watch: Watch) -> Experiment | None:
    """The plan whose runs the folder holds. Runs are known by what they are, so a damaged plan is written anew."""
    try:
        text = read_whole(path, _ANEW)
        return None if text is None else parse_experiment(verified_toml(text, str(path), _ANEW), str(path))
    except DamagedError as error:
        watch.say(str(error))
    except DataError as error:
        if not (path.parent / "runs").is_dir():
            raise  # somebody's own file
        watch.say(f"{error}; {_ANEW}")
    return None


def bounds(loaded: Loaded, source: Source) -> tuple[Json, Arrays]:
    """Reranking: the test lists by weights as they are, and the best that any weights could reach; and what each is
    made of, list by list."""
    from sparsezo.learner import predict
    from sparsezo.tasks.rerank.io.decoder_weights import read_weights

    task, test = loaded.task, loaded.data.test
    if test is None:
        raise UsageError("bounds are of the test lists; give data.test")
    problem, gold = task.problem(test, learn=False), task.gold(test)
    names: tuple[str, ...] = getattr(task, "names", ())
    found: Json = {}
    counts: Arrays = {}
    for bound, path in source.bounds.items():
        weights = read_weights(path)
        W = np.array([weights.get(name, 0.0) for name in names], problem.dtype).reshape(-1, 1)
        scores = task.scores(test, predict(problem, W))
        found[bound] = scores.report
        counts |= {} if scores.counts is None else {bound: scores.counts}
    lists = zip(gold.offsets[:-1], gold.offsets[1:], strict=True)
    oracle = np.array([np.argmin(gold.losses[begin:end]) for begin, end in lists], np.int32)
    return {**found, "oracle": task.scores(test, oracle).report}, counts
