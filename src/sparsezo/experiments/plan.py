"""Experiments as data: which task, data, learners, seeds and how long, in a TOML file (paper Sec. 5, appendix B).

    plan = builtin("chunking")                              # the paper's own: chunking, smt, text; and noise
    plan = read_experiment("mine.toml")                     # a key that is not known is an error
    plan.learners[0].name                                   # 'two-point all'
    plan.learners[0].settings(seed=0)                       # at the settings that are fixed for all learners
    Path("experiment.toml").write_text(plan.to_toml())      # read again, it is equal

A file has the keys of ``Experiment``, with the tables ``[data]``, ``[fixed]`` (h and mu of all learners), ``[grid]``
(where tuning looks) and one ``[[learner]]`` for each; a learner's own h, mu and grid come before the common ones.
``feedback`` of a learner is how its simulated rater answers (raters.py), exact unless given; a list of models,
``feedback = ["exact", "flip:0.1"]``, stands for as many learners that differ in this alone. Without any grid there is
no tuned phase.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sparsezo.errors import DataError, SparsezoError, UsageError
from sparsezo.rules import RULES
from sparsezo.settings import LEARNER_KEYS, SETTINGS, Settings
from sparsezo.storage.files import open_bytes
from sparsezo.tasks.kind import Grid
from sparsezo.tasks.registry import experiments, kind
from sparsezo.training import default_interval


@dataclass(frozen=True)
class LearnerSpec(Settings):
    """A learner: its settings with the h and mu of the figure, and the grid of the table. Its runs bring the seeds."""

    grid_h: tuple[float, ...] = ()
    grid_mu: tuple[float, ...] = ()  # empty where nothing is perturbed
    paper: float | None = None  # the paper's figure on test

    def __post_init__(self) -> None:
        super().__post_init__()
        for h, mu in self.grid():
            self.settings(0, h, mu)

    def settings(self, seed: int, h: float | None = None, mu: float | None = None) -> Settings:
        """At the fixed h and mu, or at others."""
        fixed = self.as_dict()
        other = {"seed": seed, "h": self.h if h is None else h, "mu": self.mu if mu is None else mu}
        return Settings(**(fixed | other))

    def grid(self) -> list[tuple[float, float | None]]:
        """All (h, mu) of the grid; mu is None where nothing is perturbed."""
        return [(h, mu) for h in self.grid_h for mu in (self.grid_mu or (None,))]


@dataclass(frozen=True)
class DataSpec:
    """Files by their paths in a data folder; ``dev`` may be a number: that many inputs at the start of train."""

    train: tuple[str, ...]
    dev: str | None = None
    test: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)  # of the task, as on train's command line


@dataclass(frozen=True)
class Experiment:
    name: str
    task: str
    data: DataSpec
    learners: tuple[LearnerSpec, ...]
    iterations: int
    seeds: tuple[int, ...] = (0, 1, 2)
    evaluate_every: int | None = None  # a hundredth of the run
    init: str | None = None  # rerank: the decoder's weights that all learners start from
    bounds: Mapping[str, str] = field(default_factory=dict)  # rerank: name -> weights that are evaluated as they are
    origin: str | None = None  # in a folder of runs: where their data came from, "generated" or "files"
    identity: str | None = None  # likewise: what that data is known by
    note: str | None = None

    @property
    def from_zero(self) -> bool:
        """Whether learning starts with all weights 0."""
        return self.init is None and "init" not in self.data.options

    def __post_init__(self) -> None:
        kind(self.task)  # known
        _require(bool(self.learners), "it has no [[learner]]; give at least one")
        _require(bool(self.data.train), "data has no train; name a file")
        _require(self.iterations >= 1, f"iterations {self.iterations}: must be at least 1")
        _require(bool(self.seeds) and len(set(self.seeds)) == len(self.seeds), "seeds: give at least one, each once")
        _require(self.evaluate_every is None or self.evaluate_every >= 1, "evaluate_every: must be at least 1")
        _require(all(isinstance(path, str) for path in self.bounds.values()), "bounds: give name = path")
        can_start = "init" in kind(self.task).options
        _require(can_start or not (self.init or self.bounds), f"init and bounds do not belong to task {self.task}")
        names = [learner.name for learner in self.learners]
        twice = next((name for k, name in enumerate(names) if name in names[:k]), None)
        _require(twice is None, f"learner '{twice}' is there twice; a learner is known by its name")

    @property
    def has_grid(self) -> bool:
        """Whether there is anything to tune."""
        return any(learner.grid_h for learner in self.learners)

    @property
    def interval(self) -> int:
        """Iterations between looks at dev."""
        return self.evaluate_every or default_interval(self.iterations)

    def clash(self, other: Experiment) -> str | None:
        """What keeps the runs of both from standing in one folder: the name of a field; None where nothing does."""
        names = ("name", "task", "identity", "iterations", "evaluate_every")
        different = next((name for name in names if getattr(self, name) != getattr(other, name)), None)
        mine = {learner.name: learner.settings(0) for learner in self.learners}
        learners = (spec for spec in other.learners if mine.get(spec.name, spec.settings(0)) != spec.settings(0))
        return different or next((f"learner '{spec.name}'" for spec in learners), None)

    def to_toml(self) -> str:
        top = {name: getattr(self, name) for name in _TOP}
        data = {"train": self.data.train, "dev": self.data.dev, "test": self.data.test}
        lines = [*_pairs(top), "", "[data]", *_pairs(data)]
        for title, table in (("data.options", self.data.options), ("bounds", self.bounds)):
            lines += ["", f"[{title}]", *_pairs(table)] if table else []
        for learner in self.learners:
            own = {name: getattr(learner, name) for name in (*LEARNER_KEYS, "paper")}
            grid = {"grid.h": learner.grid_h or None, "grid.mu": learner.grid_mu or None}
            lines += ["", "[[learner]]", *_pairs({**own, **grid}, bare=True)]
        return "\n".join(lines) + "\n"


_TOP = ("name", "task", "note", "origin", "identity", "iterations", "evaluate_every", "seeds", "init")
_NUMBER = (int, float)


def builtin(name: str) -> Experiment:
    """One of the paper's experiments, or of ours."""
    known = experiments()
    if name not in known:
        raise UsageError(f"experiment {name}: choose from {', '.join(known)}, or name a .toml file")
    return parse_experiment(known[name].experiment_text(name), f"{name}.toml")


def grid_of(task: str) -> Grid:
    """Where tune looks for h and mu: the task's own grid, or that of the paper's experiment."""
    one = kind(task)
    if one.grid is not None:
        return one.grid
    if one.paper is None:
        raise UsageError(f"task {task} has no grid of its own; give values of h and mu")
    learner = builtin(one.paper).learners[0]
    return learner.grid_h, learner.grid_mu


def read_experiment(path: str | os.PathLike[str]) -> Experiment:
    with open_bytes(path) as stream:
        raw = stream.read()
    try:
        return parse_experiment(raw.decode("utf-8"), str(path))
    except UnicodeDecodeError as error:
        raise DataError(str(path), f"is not UTF-8 text ({error.reason})") from None


def parse_experiment(text: str, where: str) -> Experiment:
    """An experiment from TOML; ``where`` is named in messages."""
    try:
        top = _Table(tomllib.loads(text), where, "")
    except tomllib.TOMLDecodeError as error:
        raise DataError(where, f"is not TOML: {error}") from None
    data, fixed, grid = top.table("data"), top.table("fixed"), top.table("grid")
    common = {"h": fixed.number("h"), "mu": fixed.number("mu")}
    grids = {"h": grid.numbers("h"), "mu": grid.numbers("mu")}
    fields = {
        "name": top.text("name", required=True),
        "task": top.text("task", required=True),
        "data": DataSpec(_train(data), _dev(data), data.text("test"), data.table("options").all()),
        "learners": tuple(spec for table in top.tables("learner") for spec in _learners(table, common, grids)),
        "iterations": top.whole("iterations", required=True),
        "seeds": _seeds(top),
        "evaluate_every": top.whole("evaluate_every"),
        "init": top.text("init"),
        "bounds": top.table("bounds").all(),
        "origin": top.text("origin"),
        "identity": top.text("identity"),
        "note": top.text("note"),
    }
    for table in (top, data, fixed, grid):
        table.finish()
    try:
        return Experiment(**fields)
    except UsageError as error:
        raise DataError(where, str(error)) from None


def _learners(table: _Table, common: dict[str, Any], grids: dict[str, Any]) -> list[LearnerSpec]:
    """One for each of the table's feedback models."""
    rule = table.text("rule", required=True)
    perturbs = rule not in RULES or RULES[rule].zeroth_order
    grid = table.table("grid")
    given = {name: _setting(table, name) for name in LEARNER_KEYS if name not in ("rule", "feedback")}
    if given["h"] is None and common["h"] is None:
        raise DataError(table.where, f"{table.title}: it has no h, and there is none in [fixed]")
    grid_h, grid_mu = grid.numbers("h"), grid.numbers("mu")
    fixed = {"h": common["h"], "mu": common["mu"] if perturbs else None, "perturb": None}
    fields = {
        **fixed,
        **{name: value for name, value in given.items() if value is not None},
        "rule": rule,
        "grid_h": grid_h or grids["h"],
        "grid_mu": grid_mu or (grids["mu"] if perturbs else ()),
        "paper": table.number("paper"),
    }
    feedbacks = table.texts("feedback", "a feedback model, or a list of them", default=Settings.feedback)
    grid.finish()
    table.finish()
    try:
        return [LearnerSpec(**fields, feedback=feedback) for feedback in feedbacks]
    except UsageError as error:
        raise DataError(table.where, f"{table.title}: {error}") from None


def _setting(table: _Table, name: str) -> Any:
    """By the setting's own type."""
    if SETTINGS[name].kind is bool:
        return table.take(name, (bool,), "true or false")
    return table.number(name) if SETTINGS[name].kind is float else table.text(name)


def _train(data: _Table) -> tuple[str, ...]:
    return data.texts("train", "a path, or a list of them")


def _dev(data: _Table) -> str | None:
    value = data.take("dev", (str, int), "a path, or a number of inputs")
    return None if value is None else str(value)


def _seeds(top: _Table) -> tuple[int, ...]:
    value = top.take("seeds", (int, list), "a number of seeds, or a list of them")
    if value is None:
        return (0, 1, 2)
    seeds = list(range(value)) if isinstance(value, int) else value
    if not all(isinstance(seed, int) and not isinstance(seed, bool) and seed >= 0 for seed in seeds):
        raise DataError(top.where, "seeds: must be whole numbers from 0")
    return tuple(seeds)


class _Table:
    """A TOML table whose keys are taken one by one; ``finish`` refuses what is left."""

    def __init__(self, values: dict[str, Any], where: str, title: str) -> None:
        self.values, self.where, self.title = dict(values), where, title
        self.known: list[str] = []

    def take(self, key: str, kinds: tuple[type, ...], what: str, *, required: bool = False) -> Any:
        self.known.append(key)
        value = self.values.pop(key, None)
        if value is None:
            if required:
                raise DataError(self.where, f"{self._at(key)} is missing; give {what}")
        elif not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise DataError(self.where, f"{self._at(key)} is {json.dumps(value, default=str)}; give {what}")
        return value

    def text(self, key: str, *, required: bool = False) -> Any:
        return self.take(key, (str,), "a string", required=required)

    def whole(self, key: str, *, required: bool = False) -> Any:
        return self.take(key, (int,), "a whole number", required=required)

    def number(self, key: str) -> float | None:
        value = self.take(key, _NUMBER, "a number")
        return None if value is None else float(value)

    def numbers(self, key: str) -> tuple[float, ...]:
        values = self.take(key, (list,), "a list of numbers") or []
        if not all(isinstance(value, _NUMBER) and not isinstance(value, bool) for value in values):
            raise DataError(self.where, f"{self._at(key)}: must be a list of numbers")
        return tuple(float(value) for value in values)

    def texts(self, key: str, what: str, default: str | None = None) -> tuple[str, ...]:
        values = self.take(key, (str, list), what)
        if values is None:
            return () if default is None else (default,)
        values = [values] if isinstance(values, str) else values
        if not values or not all(isinstance(value, str) for value in values):
            raise DataError(self.where, f"{self._at(key)}: must be {what}")
        return tuple(values)

    def table(self, key: str) -> _Table:
        return _Table(self.take(key, (dict,), "a table") or {}, self.where, self._at(key))

    def tables(self, key: str) -> list[_Table]:
        values = self.take(key, (list,), f"tables: [[{key}]]") or []
        if not all(isinstance(value, dict) for value in values):
            raise DataError(self.where, f"{key}: must be tables, [[{key}]]")
        return [_Table(value, self.where, f"{key} {k}") for k, value in enumerate(values, start=1)]

    def all(self) -> dict[str, Any]:
        return self.values

    def finish(self) -> None:
        for key in self.values:
            raise DataError(self.where, f"unknown key '{self._at(key)}'; known are {', '.join(self.known)}")

    def _at(self, key: str) -> str:
        return f"{self.title}.{key}" if self.title else key


def _pairs(values: Mapping[str, Any], *, bare: bool = False) -> list[str]:
    """``key = value`` lines; what is None is left out."""
    return [f"{key if bare else _key(key)} = {_toml(v)}" for key, v in values.items() if v is not None]


def _key(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() and key.isascii() else _toml(key)


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    raise SparsezoError(f"{value!r} cannot be written to TOML")


def _require(true: bool, message: str) -> None:
    if not true:
        raise UsageError(message)
