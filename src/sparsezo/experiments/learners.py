"""The learners of an experiment: settings, and what is of an experiment alone: a grid, labels, a start.

    spec.settings(seed=0)           # at the h and mu that are fixed for all learners
    all_learners(top, "text", common, grids)    # from the tables [[learner]] of a TOML file

Rule supervised may have ``labels``: whole inputs are labelled, few at first and then more (labels.py). A learner may
``start`` from a model that learned from labels before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sparsezo.errors import DataError, UsageError, quoted
from sparsezo.experiments.toml import Table
from sparsezo.rules import RULES
from sparsezo.settings import LEARNER_KEYS, SETTINGS, Settings, learner_name
from sparsezo.storage import limits
from sparsezo.tasks.loading import is_number
from sparsezo.tasks.registry import kind

Point = tuple[float | None, ...]  # of a grid: h, mu (None where nothing is perturbed) and, if searched for, gamma
CHOICES = ("random", "least-confident")  # which inputs are labelled next
STARTS = ("labels", "output")  # labels:N, a model of N labelled inputs; output:N, of what such a model says of all
PASSES = 30  # over the labelled inputs


@dataclass(frozen=True)
class LearnerSpec(Settings):
    """A learner: its settings with the h and mu of the figure, and the grid of the table. Its runs bring the seeds."""

    grid_h: tuple[float, ...] = ()
    grid_mu: tuple[float, ...] = ()  # empty where nothing is perturbed
    grid_gamma: tuple[float, ...] = ()  # of the annealed criterion; empty where gamma is not searched for
    fixed: bool = True  # False: no runs at the settings that are fixed for all
    walk: bool = True  # False: the search is halving over the grid, and no more
    paper: float | None = None  # the paper's figure on test
    labels: str | None = None  # of CHOICES: whole inputs are labelled; the learner is trained anew at every look
    passes: int = PASSES  # over what is labelled, of ``labels`` and ``start``
    start: str | None = None  # labels:N or output:N, of STARTS
    figure: str | None = None  # what its line is called in the main figure; None: it is in tables alone

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.labels is not None and self.rule != "supervised":
            raise UsageError(f"labels belong to rule supervised, not to {self.rule}")
        if self.labels not in (None, *CHOICES):
            raise UsageError(f"labels '{quoted(self.labels)}': choose from {', '.join(CHOICES)}")
        if self.passes < 1:
            raise UsageError(f"passes {self.passes}: must be at least 1")
        if self.start is not None:
            parse_start(self.start)
            if self.labels is not None:
                raise UsageError("a learner has labels, or a start, not both")
        if self.points > limits.RUNS:
            limits.refuse(self.name, f"a grid of {self.points:,} points, more than {limits.RUNS:,}")
        if self.grid_gamma and self.criterion != "annealed":
            raise UsageError("its grid has values of gamma, which is of `criterion` annealed")
        for point in self.grid():
            self.settings(0, *point)

    @property
    def name(self) -> str:
        """The settings' own, with labels and start."""
        return spec_name(asdict(self))

    def settings(
        self, seed: int, h: float | None = None, mu: float | None = None, gamma: float | None = None
    ) -> Settings:
        """At the fixed h, mu and gamma, or at others."""
        fixed = self.as_dict()
        other = {"seed": seed, "h": self.h if h is None else h, "mu": self.mu if mu is None else mu}
        return Settings(**(fixed | other | ({} if gamma is None else {"gamma": gamma})))

    @property
    def points(self) -> int:
        """Of the grid."""
        return len(self.grid_h) * max(1, len(self.grid_mu)) * max(1, len(self.grid_gamma))

    def grid(self) -> list[Point]:
        """All points of the grid; mu is None where nothing is perturbed."""
        return grid_points(self.grid_h, self.grid_mu, self.grid_gamma)


def grid_points(h: Sequence[float], mu: Sequence[float], gamma: Sequence[float]) -> list[Point]:
    pairs = [(each, other) for each in h for other in (mu or (None,))]
    return [(*pair, each) for pair in pairs for each in gamma] if gamma else [*pairs]


def named(point: Point) -> dict[str, float | None]:
    """h and mu by name, and gamma where it is searched for."""
    return dict(zip(("h", "mu", "gamma"), point, strict=False))


def spec_name(values: Mapping[str, Any]) -> str:
    """What a learner with these keys is called, wherever they come from; a gamma that is searched for is not named."""
    labels, start, grid = values.get("labels"), values.get("start"), values.get("grid")
    more = [f"labelled {labels}" if labels else "", f"from {start}" if start else ""]
    searched = values.get("grid_gamma") or (isinstance(grid, Mapping) and grid.get("gamma"))
    return " ".join([learner_name(values, gamma=not searched), *filter(None, more)])


def parse_start(text: str) -> tuple[str, int]:
    """(labels or output, number of labelled inputs)."""
    how, _, count = text.partition(":")
    if how not in STARTS or not (is_number(count) and len(count) < 10 and int(count)):
        raise UsageError(f"start '{quoted(text)}': give labels:N or output:N, such as labels:100")
    return how, int(count)


def all_learners(top: Table, task: str, common: dict[str, Any], grids: dict[str, Any]) -> tuple[LearnerSpec, ...]:
    return tuple(spec for table in top.tables("learner") for spec in _learners(table, task, common, grids))


def _learners(table: Table, task: str, common: dict[str, Any], grids: dict[str, Any]) -> list[LearnerSpec]:
    """One for each of the table's feedback models."""
    named = table.text("rule")
    rule = Settings.rule if named is None else named
    perturbs = rule not in RULES or RULES[rule].zeroth_order
    grid = table.table("grid")
    own = {name: _setting(table, name) for name in LEARNER_KEYS if name not in ("rule", "feedback")}
    grid_h, grid_mu = grid.numbers("h") or grids["h"], grid.numbers("mu") or (grids["mu"] if perturbs else ())
    bare = {name: table.take(name, (bool,), "true or false") for name in ("fixed", "walk")}
    tuned_for = grid.texts("feedback", "a feedback model, or a list of them")
    given = {
        "h": common["h"],
        "mu": common["mu"] if perturbs else None,
        "step": common["step"],
        **{name: value for name, value in own.items() if value is not None},
    }
    fields = {
        **{name: value for name, value in given.items() if value is not None},
        "rule": rule,
        "grid_h": grid_h,
        "grid_mu": grid_mu,
        "grid_gamma": grid.numbers("gamma"),
        **{name: value for name, value in bare.items() if value is not None},
        "paper": table.number("paper"),
        "labels": table.text("labels"),
        "start": table.text("start"),
        "figure": table.text("figure"),
    }
    if (passes := table.whole("passes")) is not None:
        fields["passes"] = passes
    feedbacks = table.texts("feedback", "a feedback model, or a list of them", default=Settings.feedback)
    grid.finish()
    table.finish()
    try:
        if grid_mu and not grid_h:
            raise UsageError("its grid has values of mu and none of h; give both")
        if strange := next((each for each in tuned_for if each not in feedbacks), None):
            raise UsageError(f"grid.feedback '{quoted(strange)}': must be one of the learner's own")
        usual = kind(task).usual
        plain: dict[str, Any] = {**fields, "grid_h": (), "grid_mu": (), "grid_gamma": ()}
        return [
            LearnerSpec.complete((fields if each in (tuned_for or feedbacks) else plain) | {"feedback": each}, *usual)
            for each in feedbacks
        ]
    except UsageError as error:
        raise DataError(table.where, f"{table.title}: {error}") from None


def _setting(table: Table, name: str) -> Any:
    """By the setting's own type."""
    if SETTINGS[name].kind is bool:
        return table.take(name, (bool,), "true or false")
    if SETTINGS[name].kind is int:
        return table.whole(name)
    return table.number(name) if SETTINGS[name].kind is float else table.text(name)
