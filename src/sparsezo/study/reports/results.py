"""The results that a report is made of: the runs of one experiment by learner and phase, and figures over seeds.

learner = experiment.find("two-point", "active")
learner.spread("tuned", "test")                      # Spread: values over seeds, mean, standard deviation
learner.mean_curve("fixed", "average_loss")
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sparsezo.options import Values
from sparsezo.study.experiments import EXPERIMENTS, PaperOnTask, paper_on
from sparsezo.study.plan import SHOWN_PHASES, builtin
from sparsezo.tasks.base import AnyArray
from sparsezo.tasks.registry import names, task_spec, task_specs
from sparsezo.tasks.spec import TaskSpec

RULE_ORDER = (
    *("comparison", "preference", "baseline", "two-point", "symmetric"),
    *("first-order", "pairwise", "cross-entropy", "supervised"),
)
GROUPS = {
    "all": "ALL",
    "active": "ACTIVE (paper: SPARSE)",
    "score": "SCORE (not in the paper)",
    "first-order": "first-order (paper: SFO)",
    "pairwise": "pairwise (Sokolov et al. 2016)",
    "cross-entropy": "cross-entropy (Sokolov et al. 2016)",
    "supervised": "supervised (full information)",
}
SETTINGS = {  # what those of a phase are called
    "fixed": "fixed settings",
    "undivided": "fixed settings, steps not divided by mu",
    "tuned": "tuned settings",
    "speed": "settings tuned for speed",
}
BEST_FIRST = ("tuned", "fixed", "speed", "undivided")  # where a table looks for a learner's figures
FEWEST = 3  # seeds that make a spread; two points would only look like one

Fields = Values  # what a JSON or TOML file holds
Record = dict[str, float | str | None]  # a row of a CSV file
Curve = Mapping[str, NDArray[np.float64]]  # [points] for each of records.COLUMNS; nan where nothing is known


@dataclass(frozen=True)
class Spread:
    """A figure over the seeds of one learner. ``exact``: a bound that no seed changes."""

    values: tuple[float, ...]
    exact: bool = False
    seeds: tuple[int, ...] = field(default=(), compare=False)  # of the values; empty where they are not known

    @property
    def mean(self) -> float:
        return statistics.fmean(self.values)

    @property
    def sd(self) -> float | None:
        """Sample standard deviation, to be shown; None where there are too few seeds for one."""
        return statistics.stdev(self.values) if len(self.values) >= FEWEST else None


def curve_column(curve: Curve, name: str) -> NDArray[np.float64]:
    """A column of a curve; ``kept`` is test, of the weights best on dev up to each point, as train keeps them."""
    if name != "kept":
        return curve[name]
    dev = curve["dev"]
    if not np.isfinite(dev).all():
        return np.full(dev.size, np.nan)
    best = [int(np.argmax(dev[: k + 1])) for k in range(dev.size)]  # the first, as in training
    return np.asarray(curve["test"][best])


@dataclass(frozen=True, eq=False)
class MeanCurve:
    at: NDArray[np.int64]  # iterations, or answers
    mean: NDArray[np.float64]
    sd: NDArray[np.float64] | None  # None with too few seeds


@dataclass(frozen=True, eq=False)
class ReportedRun:
    learner: str
    phase: str
    seed: int
    settings: Fields
    iterations: int
    result: Fields
    test_report: Fields
    versions: Mapping[str, str]
    paper: float | None
    curve: Curve | None
    data: str = ""  # what the runner knows it by
    made: float = 0.0  # when run.json was written
    counts: NDArray[np.int64] | None = None  # [test inputs, k]: what test is made of (tasks/counts.py)

    def value(self, quantity: str) -> float | None:
        """A figure of the result (or of the test report), None where it is missing or not finite."""
        return finite(self.result.get(quantity, self.test_report.get(quantity)))

    @property
    def kind(self) -> tuple[object, ...]:
        """What the seeds of one learner must have in common."""
        return (self.iterations, self.data, *sorted((k, str(v)) for k, v in self.settings.items() if k != "seed"))


def finite(value: object) -> float | None:
    """What is a number, and finite."""
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if number else None  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class LearnerRuns:
    name: str
    rule: str
    perturb: str | None
    plain: bool  # as in the paper: constant step, MAP criterion, no baseline in first-order, exact feedback
    phases: Mapping[str, tuple[ReportedRun, ...]]  # by seed
    feedback: str = "exact"
    annealed: bool = False  # the expected loss is minimised, and ``average_loss`` is of it
    variances: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # phase -> of the choice of h and mu, df

    @property
    def base_name(self) -> str:
        """The name without the feedback model: what learners that differ in this alone have in common."""
        return self.name.removesuffix(f" {self.feedback}")

    @property
    def group(self) -> str:
        return self.perturb or self.rule

    @property
    def zeroth_order(self) -> bool:
        return self.perturb is not None

    @property
    def paper(self) -> float | None:
        return next((run.paper for runs in self.phases.values() for run in runs if run.paper is not None), None)

    def runs(self, phase: str) -> tuple[ReportedRun, ...]:
        return self.phases.get(phase, ())

    def spread(self, phase: str, quantity: str) -> Spread | None:
        found = {run.seed: value for run in self.runs(phase) if (value := run.value(quantity)) is not None}
        return Spread(tuple(found.values()), seeds=tuple(found)) if found else None

    def best(self, quantity: str = "test") -> tuple[str, Spread | None]:
        """The best phase, tuned where there is such a result, else fixed, or what else was run; and what the quantity
        is there."""
        spreads = {phase: self.spread(phase, quantity) for phase in BEST_FIRST}
        known = [phase for phase, spread in spreads.items() if spread] or [p for p in spreads if self.runs(p)]
        phase = known[0] if known else "fixed"
        return phase, spreads[phase]

    def mean_curve(self, phase: str, column: str, along: str = "iterations") -> MeanCurve | None:
        """Over the points that all seeds have; ``along`` answers, curves of different rules meet at these."""
        curves = [run.curve for run in self.runs(phase) if run.curve is not None]
        if not curves:
            return None
        places = [np.unique(curve[along], return_index=True) for curve in curves]  # the first of equals
        common = reduce(np.intersect1d, [at[np.isfinite(at)] for at, _ in places])
        rows = [first[np.isin(at, common)] for at, first in places]
        values = np.stack([curve_column(curve, column)[row] for curve, row in zip(curves, rows, strict=True)])
        finite = np.isfinite(values).all(axis=0)
        if not finite.any():
            return None
        values = values[:, finite]
        sd = values.std(axis=0, ddof=1) if len(curves) >= FEWEST else None
        return MeanCurve(common[finite].astype(np.int64), values.mean(axis=0), sd)


@dataclass(frozen=True, eq=False)
class ReportedExperiment:
    folder: Path
    name: str
    task: str
    metric: str
    runs: tuple[ReportedRun, ...]  # all of them, also the trials of tuning
    learners: tuple[LearnerRuns, ...]  # in the order of the table
    declared: Fields = field(default_factory=dict)  # experiment.toml
    declared_text: str = ""
    tuning: Fields = field(default_factory=dict)
    bounds: Fields = field(default_factory=dict)
    bound_counts: Mapping[str, AnyArray] = field(default_factory=dict)  # as a run's counts
    gaps: tuple[str, ...] = ()

    @property
    def own(self) -> bool:
        """Not one of the built-in experiments, which stand beside the paper's."""
        return "title" in self.declared or self.name not in (*EXPERIMENTS, self.task)

    @property
    def shorter(self) -> tuple[int, int] | None:
        """Its iterations and the paper's, where these are more: such runs say nothing about the paper's claims."""
        if self.own or self.name not in EXPERIMENTS or not self.runs:
            return None
        mine, papers = max(run.iterations for run in self.runs), builtin(self.name).iterations
        return (mine, papers) if mine < papers else None

    @property
    def title(self) -> str:
        if isinstance(title := self.declared.get("title"), str):
            return title
        whole = self.name in (self.task, self.paper.experiment)
        return self.task_title if whole else f"{self.task_title}: {self.name}"

    @property
    def about(self) -> TaskSpec | None:
        """The kind of task; None where this sparsezo does not know it."""
        return task_spec(self.task) if self.task in names() else None

    @property
    def task_title(self) -> str:
        return self.about.title if self.about else self.task

    @property
    def paper(self) -> PaperOnTask:
        """What the paper says of its task."""
        return paper_on(self.task)

    @property
    def _of_metric(self) -> TaskSpec | None:
        """A task that has this metric: the experiment's own, or else any."""
        own = [self.about] if self.about is not None else []
        return next((each for each in (*own, *task_specs()) if each.metric == self.metric), None)

    @property
    def metric_name(self) -> str:
        return self._of_metric.metric_name if self._of_metric else self.metric

    @property
    def loss_name(self) -> str:
        return self._of_metric.loss_name if self._of_metric else "loss"

    @property
    def data(self) -> str:
        """Short, and without the folders of the machine it was made on."""
        files = self.declared.get("data")
        train = files.get("train") if isinstance(files, Mapping) else files
        first = train[0] if isinstance(train, list) and train else train
        if self.declared.get("origin") == "generated":
            return "generated"
        if not isinstance(first, str) or not first:
            return "not named"
        return Path(first).name if Path(first).is_absolute() else first

    @property
    def least_active(self) -> float:
        """The least share of all weights that is active in an input, on average."""
        shares = [a / n for run in self.runs if (n := run.value("n")) and (a := run.value("n_active")) is not None]
        return min(shares, default=0.0)

    @property
    def dense(self) -> bool:
        """Every feature is active in every input, so ACTIVE is ALL in law."""
        return self.least_active > 0.999

    @property
    def tuned(self) -> dict[str, Fields]:
        """What is known of tuning, by learner."""
        return {name: entry for name, entry in self.tuning.items() if isinstance(entry, Mapping)}

    @property
    def tuning_seeds(self) -> set[int] | None:
        """Those that chose h and mu; None where that was not recorded (before 0.3)."""
        told = [entry.get("seeds") for entry in self.tuned.values()]
        known = bool(told) and all(isinstance(seeds, list) for seeds in told)
        return {seed for seeds in told for seed in seeds or ()} if known else None

    @property
    def noisy(self) -> bool:
        """Raters of several kinds answer."""
        return len({item.feedback for item in self.learners}) > 1

    @property
    def retuned(self) -> bool:
        """Raters of several kinds, for some of which h was tuned: these stand beside the fixed settings of all."""
        return self.noisy and len({bool(item.runs("tuned")) for item in self.learners}) > 1

    @property
    def drawn(self) -> tuple[LearnerRuns, ...]:
        """The learners of curves and of results side by side: of several feedback models the exact one, if there is.

        Built-in experiments show none of the annealed criterion beside others: its losses are of another kind.
        """
        exact = {item.base_name for item in self.learners if item.feedback == "exact"}
        chosen = [item for item in self.learners if item.feedback == "exact" or item.base_name not in exact]
        return tuple(item for item in chosen if self.own or not item.annealed) or tuple(chosen)

    def group_title(self, group: str) -> str:
        return "ACTIVE (here the same as ALL)" if group == "active" and self.dense else GROUPS.get(group, group)

    def find(self, rule: str, perturb: str | None) -> LearnerRuns | None:
        """The paper's kind of learner: constant step, MAP, exact feedback."""
        found = (item for item in self.learners if item.plain and (item.rule, item.perturb) == (rule, perturb))
        return next(found, None)

    def phases(self, quantity: str) -> list[str]:
        """Those in which some learner has it: fixed, as in the paper's figures, and tuned."""
        return [phase for phase in SHOWN_PHASES if any(item.spread(phase, quantity) for item in self.learners)]

    def bound(self, name: str, quantity: str) -> float | None:
        report = self.bounds.get(name)
        return finite(report.get(quantity)) if isinstance(report, Mapping) else None
