"""Experiments as data: which task, data, learners, seeds and how long, in a TOML file (paper Sec. 5, appendix B).

    plan = builtin("chunking")                              # the paper's own: chunking, smt, text; and noise
    plan = read_experiment("mine.toml")                     # a key that is not known is an error
    plan.learners[0].name                                   # 'two-point all'
    plan.learners[0].settings(seed=0)                       # at the settings that are fixed for all learners
    Path("experiment.toml").write_text(plan.to_toml())      # read again, it is equal

A file needs a task, data and learners; docs/experiments.md has all keys. A learner's own h, mu and grid come before the
common ones ([fixed], [grid]), and these before the task's defaults, which are those of ``train`` and ``tune``.
``feedback`` may be a list, ``feedback = ["exact", "flip:0.1"]``, and stands for as many learners then.
With ``looks`` an experiment is one of answers: all runs are looked at after the same numbers of them (reports/answers).
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import PurePath
from typing import Any

from sparsezo.errors import DataError, UsageError, quoted
from sparsezo.experiments.dataspec import DataSpec, data_keys, data_of
from sparsezo.experiments.learners import LearnerSpec, all_learners
from sparsezo.experiments.phases import RESULT_PHASES
from sparsezo.experiments.toml import Table, pairs, parse_toml
from sparsezo.options import make_options
from sparsezo.settings import LEARNER_KEYS
from sparsezo.storage import limits
from sparsezo.storage.files import STANDARD_INPUT, open_bytes, reading
from sparsezo.tasks.kind import Grid
from sparsezo.tasks.registry import experiments, kind
from sparsezo.training import default_interval

_LONGEST_NAME = 80
FIRST_TUNING_SEED = 1000  # far from what people count from 0
FEW_SEEDS = 3  # of tuning


@dataclass(frozen=True)
class Experiment:
    name: str
    task: str
    data: DataSpec
    learners: tuple[LearnerSpec, ...]
    iterations: int = 1_000_000  # as train has it
    seeds: tuple[int, ...] = (0, 1, 2)
    tuning_seeds: tuple[int, ...] | None = None  # of the search for h and mu, none of seeds; None: see search_seeds
    evaluate_every: int | None = None  # a hundredth of the run
    init: str | None = None  # rerank: the decoder's weights that all learners start from
    bounds: Mapping[str, str] = field(default_factory=dict)  # rerank: name -> weights that are evaluated as they are
    origin: str | None = None  # in a folder of runs: where their data came from, "generated" or "files"
    identity: str | None = None  # likewise: what that data is known by
    note: str | None = None
    title: str | None = None  # of the report; None in built-in ones, which have the task's
    phases: tuple[str, ...] | None = None  # fixed, and tuned where there is a grid
    answers: int | None = None  # runs end by these, as with train's --answers; iterations are then a bound
    looks: tuple[int, ...] = ()  # numbers of answers at which dev is looked at; the last ends a run
    test_looks: bool = False  # likewise at test, with the weights of the moment
    keep_best: bool = False  # the report is on the weights best on dev up to each look, as train keeps them
    thresholds: tuple[float, ...] = ()  # of quality: the report says how many answers each takes
    seconds: Mapping[str, float] = field(default_factory=dict)  # a model of a person's time: SECONDS -> seconds
    rivals: Mapping[str, str] = field(default_factory=dict)  # text: name -> Vowpal Wabbit's options (wabbit.py)
    rival_rates: tuple[float, ...] = ()  # learning rates, of which each rival gets the best; none: its own default

    @property
    def from_zero(self) -> bool:
        """Whether learning starts with all weights 0."""
        return self.init is None and "init" not in self.data.options

    def __post_init__(self) -> None:
        about = kind(self.task)  # known
        _check_name(self.name)
        _require(self.title is None or _is_printable(self.title), "title: must be one line of text")
        _require(bool(self.learners), "it has no [[learner]]; give at least one")
        self.data.check()
        _require(self.iterations >= 1, f"iterations {self.iterations}: must be at least 1")
        _require(self.answers is None or self.answers >= 1, f"answers {self.answers}: must be at least 1")
        self._check_looks()
        self._check_seeds()
        _require(self.evaluate_every is None or self.evaluate_every >= 1, "evaluate_every: must be at least 1")
        _require(all(isinstance(path, str) for path in self.bounds.values()), "bounds: give name = path")
        _require("init" in about.options or not (self.init or self.bounds), _no_start(self.task))
        _require(self.phases is None or bool(self.phases), "phases: name at least one of " + ", ".join(RESULT_PHASES))
        for phase in self.phases or ():
            _require(phase in RESULT_PHASES, f"phases '{quoted(phase)}': choose from {', '.join(RESULT_PHASES)}")
        make_options(about.train_options, self.data.options, f"task {self.task}")
        names = set[str]()
        for name in (learner.name for learner in self.learners):
            _require(name not in names, f"learner '{name}' is there twice; a learner is known by its name")
            names.add(name)

    def with_data(self, data: DataSpec) -> Experiment:
        """On one of its data sets, and nothing more about the other."""
        return replace(self, data=replace(data, instead=None), note=self.note if data is self.data else None)

    def _check_seeds(self) -> None:
        for name, seeds in (("seeds", self.seeds), ("tuning_seeds", self.search_seeds)):
            _require(bool(seeds) and len(set(seeds)) == len(seeds), f"{name}: give at least one, each once")
        both = sorted({*self.seeds} & {*self.search_seeds})
        _require(
            not both,
            f"tuning_seeds: {both[0] if both else ''} is one of seeds; results must not be of seeds that "
            "chose h and mu, so give others",
        )

    @property
    def search_seeds(self) -> tuple[int, ...]:
        """Those that choose h and mu: where none are given, up to three that no result is of."""
        if self.tuning_seeds is not None:
            return self.tuning_seeds
        return seed_range(min(len(self.seeds), FEW_SEEDS), max([FIRST_TUNING_SEED, *(seed + 1 for seed in self.seeds)]))

    def _check_looks(self) -> None:
        looks, offered = self.looks, kind(self.task).asks
        if not looks:
            of_looks = ("test_looks", "keep_best", "thresholds", "seconds", "rivals", "rival_rates")
            lonely = next((name for name in of_looks if getattr(self, name)), None)
            _require(lonely is None, f"{lonely} goes with looks; give both")
            lonely = next((each.name for each in self.learners if each.labels or each.start), None)
            _require(lonely is None, f"learner '{lonely}': labels and start go with looks; give both")
            return
        rising = all(a < b for a, b in pairwise((0, *looks)))
        _require(rising, "looks: must be whole numbers from 1, each larger than the one before")
        _require(self.answers == looks[-1], f"answers {self.answers}: the last of looks, {looks[-1]}, ends a run")
        _require(self.test_looks or not self.keep_best, "keep_best goes with test_looks; give both")
        _require(self.evaluate_every is None, "give looks or evaluate_every, not both")
        _require(all(math.isfinite(value) for value in self.thresholds), "thresholds: must be numbers")
        for name, value in self.seconds.items():
            _require(name in SECONDS, f"seconds.{quoted(name)}: known are {', '.join(SECONDS)}")
            number = isinstance(value, int | float) and not isinstance(value, bool)
            _require(number and 0 <= value < math.inf, f"seconds.{name}: must be a number of seconds")
        _require(all(isinstance(each, str) for each in self.rivals.values()), "rivals: give name = options")
        _require(not self.rivals or self.task == "text", f"rivals do not belong to task {self.task}")
        rates = all(0 < rate < math.inf for rate in self.rival_rates)
        _require(rates, "rival_rates: must be numbers above 0")
        _require(bool(self.rivals) or not self.rival_rates, "rival_rates goes with rivals; give both")
        for each in self.learners:
            whole = each.labels is not None or each.start is not None
            _require(not whole or "label" in offered, f"task {self.task} has no labels to give for '{each.name}'")
            _require(each.rule != "supervised" or whole, f"learner '{each.name}' asks nobody; give it labels")

    @property
    def has_grid(self) -> bool:
        """Whether there is anything to tune."""
        return any(learner.grid_h for learner in self.learners)

    def phases_of(self, asked: Sequence[str] | None = None) -> tuple[str, ...]:
        """Those that were asked for, or else the plan's own: fixed, and tuned where it has a grid."""
        if asked is not None:
            return tuple(asked)
        return self.phases or (RESULT_PHASES if self.has_grid else ("fixed",))

    def to_tune(self) -> Experiment:
        """With something to tune: where no learner has a grid, all have the one that ``tune`` has."""
        if self.has_grid:
            return self
        return replace(self, learners=tuple(_with_grid(each, *grid_of(self.task, each.step)) for each in self.learners))

    def refuse_size(self, phases: Sequence[str]) -> None:
        """What can only be a mistake, before any work is done."""
        runs = sum(each.fixed for each in self.learners) * len(self.seeds) if "fixed" in phases else 0
        if "tuned" in phases:  # every point once, the best with every seed of tuning, what is chosen with every seed
            more = 3 * len(self.search_seeds) + len(self.seeds)
            runs += sum(each.points + more for each in self.learners if each.points)
        looks = len(self.looks) or -(-self.length // self.interval)
        for count, most, what in (
            (runs, limits.RUNS, "runs"),
            (self.iterations, limits.ITERATIONS, "iterations in one run"),
            (looks, limits.LOOKS, "looks at dev in one run"),
        ):
            if count > most:
                limits.refuse(self.name, f"{count:,} {what}, more than {most:,}")

    @property
    def length(self) -> int:
        """Of a run, in answers or iterations."""
        return self.answers or self.iterations

    def shortened(self, answers: int) -> Experiment:
        """Ended by so many answers, and looked at up to there."""
        _require(answers >= 1, f"`answers` {answers}: must be at least 1")
        looks = (*(look for look in self.looks if look < answers), answers) if self.looks else ()
        return replace(self, answers=answers, looks=looks)

    @property
    def unit(self) -> str:
        return "answers" if self.answers else "iterations"

    @property
    def interval(self) -> int:
        """Between looks at dev, in the same unit."""
        return self.evaluate_every or default_interval(self.length)

    def clash(self, other: Experiment) -> str | None:
        """What keeps the runs of both from standing in one folder: the name of a field; None where nothing does."""
        names = ("name", "task", "identity", "iterations", "answers", "evaluate_every", "looks", "test_looks")
        different = next((name for name in names if getattr(self, name) != getattr(other, name)), None)
        mine = {learner.name: (learner.settings(0), learner.passes) for learner in self.learners}
        theirs = {learner.name: (learner.settings(0), learner.passes) for learner in other.learners}
        learners = (spec for spec in other.learners if mine.get(spec.name, theirs[spec.name]) != theirs[spec.name])
        return different or next((f"learner '{spec.name}'" for spec in learners), None)

    def to_toml(self) -> str:
        top = {name: getattr(self, name) for name in _TOP} | {name: getattr(self, name) or None for name in _OF_LOOKS}
        lines = [*pairs(top), "", "[data]", *pairs(data_keys(self.data))]
        tables = {"data.options": self.data.options, "bounds": self.bounds}
        if self.data.instead is not None:
            tables["data.instead"] = data_keys(self.data.instead)
        for title, table in (tables | {"seconds": self.seconds, "rivals": self.rivals}).items():
            lines += ["", f"[{title}]", *pairs(table)] if table else []
        for learner in self.learners:
            own = {name: learner.as_dict().get(name) for name in LEARNER_KEYS}
            own |= {name: getattr(learner, name) for name in ("paper", "labels", "start", "figure")}
            own["passes"] = learner.passes if learner.labels or learner.start else None
            own |= {name: None if getattr(learner, name) else False for name in ("fixed", "walk")}
            grid = {f"grid.{name}": getattr(learner, f"grid_{name}") or None for name in ("h", "mu", "gamma")}
            lines += ["", "[[learner]]", *pairs({**own, **grid}, bare=True)]
        return "\n".join(lines) + "\n"


_TOP = (
    "name",
    "title",
    "task",
    "note",
    "origin",
    "identity",
    "phases",
    "iterations",
    "answers",
    "evaluate_every",
    "seeds",
    "tuning_seeds",
    "init",
)
_OF_LOOKS = ("looks", "test_looks", "keep_best", "thresholds", "rival_rates")
SECONDS = ("read", "yes_no", "label", "pair", "rate", "token")  # an input; an answer of each kind; a label of many


def builtin(name: str) -> Experiment:
    """A built-in one: of the paper's, or past it."""
    known = experiments()
    if name not in known:
        raise UsageError(f"experiment {name}: choose from {', '.join(known)}, or name a .toml file")
    return parse_experiment(known[name].experiment_text(name), f"{name}.toml")


def grid_of(task: str, step: str) -> Grid:
    """Where tune looks for h and mu: the task's own grid, or that of the paper's experiment."""
    one = kind(task)
    if step == "adagrad" and one.adagrad_grid is not None:
        return one.adagrad_grid
    if one.grid is not None:
        return one.grid
    if one.paper is None:
        raise UsageError(f"task {task} has no grid of its own; give values of h and mu")
    learner = builtin(one.paper).learners[0]
    return learner.grid_h, learner.grid_mu


def _with_grid(learner: LearnerSpec, grid_h: tuple[float, ...], grid_mu: tuple[float, ...]) -> LearnerSpec:
    return replace(learner, grid_h=grid_h, grid_mu=grid_mu if learner.perturb else ())


def seed_range(count: int, first: int = 0, where: str = "seeds") -> tuple[int, ...]:
    """So many seeds, counted from ``first``."""
    if count > limits.RUNS:
        limits.refuse(where, f"{count:,} seeds, more than {limits.RUNS:,}")
    return tuple(range(first, first + count))


def read_experiment(path: str | os.PathLike[str]) -> Experiment:
    """One's own: it is called like its file, and titled like it is called, unless it says so itself."""
    with open_bytes(path) as stream, reading(path):
        raw = stream.read(4 * limits.PLAN + 1)
    if len(raw) > 4 * limits.PLAN:
        limits.refuse(str(path), f"an experiment of more than {limits.PLAN >> 10} kB: is this the right file?")
    try:
        plan = parse_experiment(raw.decode("utf-8-sig"), str(path), _name_of(path))
    except UnicodeDecodeError as error:
        raise DataError(str(path), f"is not UTF-8 text ({error.reason})") from None
    return plan if plan.title is not None else replace(plan, title=plan.name)


def _name_of(path: str | os.PathLike[str]) -> str:
    """mine for some/where/mine.toml."""
    name = PurePath(path).name
    for ending in (".gz", ".xz", ".toml"):
        name = name.removesuffix(ending)
    return "experiment" if os.fspath(path) == STANDARD_INPUT else name


def parse_experiment(text: str, where: str, name: str | None = None) -> Experiment:
    """An experiment from TOML; ``where`` is named in messages, ``name`` is for a text that has none."""
    top = Table(parse_toml(text, where), where)
    data, fixed, grid = top.table("data"), top.table("fixed"), top.table("grid")
    common = {"h": fixed.number("h"), "mu": fixed.number("mu"), "step": fixed.text("step")}
    grids = {"h": grid.numbers("h"), "mu": grid.numbers("mu")}
    task = top.text("task", required=True)
    try:
        kind(task)
        looks = top.wholes("looks")
        answers = _either(top.whole("answers"), looks[-1] if looks else None)
        fields = {
            "name": _either(top.text("name", required=name is None), name),
            "task": task,
            "data": data_of(data),
            "learners": all_learners(top, task, common, grids),
            "iterations": _either(top.whole("iterations"), limits.ITERATIONS if answers else Experiment.iterations),
            "answers": answers,
            "looks": looks,
            "test_looks": bool(top.take("test_looks", (bool,), "true or false")),
            "keep_best": bool(top.take("keep_best", (bool,), "true or false")),
            "thresholds": top.numbers("thresholds"),
            "seconds": top.table("seconds").all(),
            "rivals": top.table("rivals").all(),
            "rival_rates": top.numbers("rival_rates"),
            "seeds": _either(_seeds(top, "seeds"), Experiment.seeds),
            "tuning_seeds": _seeds(top, "tuning_seeds", FIRST_TUNING_SEED),
            "evaluate_every": top.whole("evaluate_every"),
            "init": top.text("init"),
            "bounds": top.table("bounds").all(),
            "origin": top.text("origin"),
            "identity": top.text("identity"),
            "note": top.text("note"),
            "title": top.text("title"),
            "phases": top.texts("phases", "a phase, or a list of them") or None,
        }
        for table in (top, data, fixed, grid):
            table.finish()
        return Experiment(**fields)
    except UsageError as error:
        raise DataError(where, str(error)) from None


def _seeds(top: Table, name: str, first: int = 0) -> tuple[int, ...] | None:
    value = top.take(name, (int, list), "a number of seeds, or a list of them")
    if value is None:
        return None
    if isinstance(value, int):
        return seed_range(value, first, where=top.where)
    if not all(isinstance(seed, int) and not isinstance(seed, bool) and seed >= 0 for seed in value):
        raise DataError(top.where, f"{name}: must be whole numbers from 0")
    return tuple(value)


def _either(value: Any, default: Any) -> Any:
    return default if value is None else value


def _check_name(name: str) -> None:
    """It becomes the name of a folder, in the folder of results and nowhere else."""
    fits = _is_printable(name) and not name.startswith(".") and not set(name) & set("/\\")
    _require(
        fits and len(name) <= _LONGEST_NAME and name == name.strip(),
        f"name '{quoted(name)}': must do as the name of a folder: up to {_LONGEST_NAME} letters, none of them / or \\, "
        "and no dot at its beginning",
    )


def _is_printable(text: str) -> bool:
    return bool(text.strip()) and text.isprintable()


def _no_start(task: str) -> str:
    return f"init and bounds do not belong to task {task}"


def _require(true: bool, message: str) -> None:
    if not true:
        raise UsageError(message)
