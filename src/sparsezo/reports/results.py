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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsezo.experiments.phases import RESULT_PHASES
from sparsezo.tasks.kind import TaskKind
from sparsezo.tasks.registry import experiments, kind, kinds, names

_SAMPLED = ("first-order", "pairwise", "cross-entropy")
RULE_ORDER = ("comparison", "preference", "baseline", "two-point", "symmetric", *_SAMPLED, "supervised")
GROUPS = {
    "all": "ALL",
    "active": "ACTIVE (paper: SPARSE)",
    "score": "SCORE (not in the paper)",
    "first-order": "first-order (paper: SFO)",
    "pairwise": "pairwise (Sokolov et al. 2016)",
    "cross-entropy": "cross-entropy (Sokolov et al. 2016)",
    "supervised": "supervised (full information)",
}


FEWEST = 3  # seeds that make a spread; two points would only look like one


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

    @property
    def variance(self) -> float | None:
        """For tests, which know how little two seeds say; None where there is one seed only."""
        return statistics.variance(self.values) if len(self.values) > 1 else None


@dataclass(frozen=True, eq=False)
class Curve:
    iterations: NDArray[np.int64]  # [points]
    average_loss: NDArray[np.float64]  # [points], nan where not known; so dev
    dev: NDArray[np.float64]
    answers: NDArray[np.float64] | None = None
    test: NDArray[np.float64] | None = None
    map_average_loss: NDArray[np.float64] | None = None
    inputs: NDArray[np.float64] | None = None

    @property
    def kept(self) -> NDArray[np.float64] | None:
        """Test, of the weights that are best on dev up to each point: those that train keeps."""
        if self.test is None or not np.isfinite(self.dev).all():
            return None
        best = [int(np.argmax(self.dev[: k + 1])) for k in range(self.dev.size)]  # the first, as in training
        return np.asarray(self.test[best])


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
    settings: Mapping[str, Any]
    iterations: int
    result: Mapping[str, Any]
    test_report: Mapping[str, Any]
    versions: Mapping[str, str]
    paper: float | None
    curve: Curve | None
    data: str = ""  # what the runner knows it by
    made: float = 0.0  # when run.json was written
    counts: NDArray[np.int64] | None = None  # [test inputs, k]: what test is made of (tasks/counts.py)

    def value(self, quantity: str) -> float | None:
        """A figure of the result (or of the test report), None where it is missing or not finite."""
        value = self.result.get(quantity, self.test_report.get(quantity))
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            return None
        return float(value)

    @property
    def kind(self) -> tuple[Any, ...]:
        """What the seeds of one learner must have in common."""
        return (self.iterations, self.data, *sorted((k, str(v)) for k, v in self.settings.items() if k != "seed"))


@dataclass(frozen=True, eq=False)
class LearnerRuns:
    name: str
    rule: str
    perturb: str | None
    plain: bool  # as in the paper: constant step, MAP criterion, no baseline in first-order, exact feedback
    phases: Mapping[str, tuple[ReportedRun, ...]]  # by seed
    feedback: str = "exact"
    annealed: bool = False  # the expected loss is minimised, and ``average_loss`` is of it

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
        found = [(run.seed, value) for run in self.runs(phase) if (value := run.value(quantity)) is not None]
        return Spread(tuple(v for _, v in found), seeds=tuple(seed for seed, _ in found)) if found else None

    def best_phase(self, quantity: str = "test") -> str | None:
        """Tuned where there is such a result, else fixed."""
        phases = [phase for phase in ("tuned", "fixed") if self.spread(phase, quantity)]
        return phases[0] if phases else next((phase for phase in ("tuned", "fixed") if self.runs(phase)), None)

    def mean_curve(self, phase: str, column: str, along: str = "iterations") -> MeanCurve | None:
        """Over the points that all seeds have; ``along`` answers, curves of different rules meet at these."""
        curves = [run.curve for run in self.runs(phase) if run.curve is not None]
        if not curves or any(getattr(curve, name) is None for curve in curves for name in (column, along)):
            return None
        places = [np.unique(getattr(curve, along), return_index=True) for curve in curves]  # the first of equals
        common = reduce(np.intersect1d, [at[np.isfinite(at)] for at, _ in places])
        rows = [first[np.isin(at, common)] for at, first in places]
        values = np.stack([getattr(curve, column)[row] for curve, row in zip(curves, rows, strict=True)])
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
    declared: Mapping[str, Any] = field(default_factory=dict)  # experiment.toml
    declared_text: str = ""
    tuning: Mapping[str, Any] = field(default_factory=dict)
    bounds: Mapping[str, Any] = field(default_factory=dict)
    gaps: tuple[str, ...] = ()

    @property
    def own(self) -> bool:
        """Not one of the built-in experiments, which stand beside the paper's."""
        return "title" in self.declared or self.name not in (*experiments(), self.task)

    @property
    def title(self) -> str:
        if isinstance(title := self.declared.get("title"), str):
            return title
        about = self.about
        if about is None:
            return self.task if self.name == self.task else f"{self.task}: {self.name}"
        return about.title if self.name in (self.task, about.paper) else f"{about.title}: {self.name}"

    @property
    def about(self) -> TaskKind | None:
        """The kind of task; None where this sparsezo does not know it."""
        return kind(self.task) if self.task in names() else None

    @property
    def metric_name(self) -> str:
        named = self._metric_of()
        return named.metric_name if named is not None else self.metric

    @property
    def loss_name(self) -> str:
        named = self._metric_of()
        return named.loss_name if named is not None else "loss"

    def _metric_of(self) -> TaskKind | None:
        """A task that has this metric: the experiment's own, or else any."""
        own = [self.about] if self.about is not None else []
        return next((each for each in (*own, *kinds()) if each.metric == self.metric), None)

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
    def dense(self) -> bool:
        """Every feature is active in every input, so ACTIVE is ALL in law."""
        return self._least_active > 0.999

    @property
    def mostly_active(self) -> bool:
        """Most features are active in most inputs: nothing that the paper says of sparse perturbations is about it."""
        return self._least_active > 0.5

    @property
    def _least_active(self) -> float:
        """The least share of all weights that is active in an input, on average."""
        shares = [a / n for run in self.runs if (n := run.value("n")) and (a := run.value("n_active")) is not None]
        return min(shares, default=0.0)

    @property
    def tuning_seeds(self) -> set[int] | None:
        """Those that chose h and mu; None where that was not recorded (before 0.3)."""
        entries = [entry.get("seeds") for entry in self.tuning.values() if isinstance(entry, Mapping)]
        told = [entry for entry in entries if isinstance(entry, list)]
        if not entries or len(told) < len(entries):
            return None
        return {seed for entry in told for seed in entry}

    @property
    def noisy(self) -> bool:
        """Raters of several kinds answer."""
        return len({item.feedback for item in self.learners}) > 1

    @property
    def retuned(self) -> bool:
        """Raters of several kinds, for some of which h was tuned: these stand beside the fixed settings of all."""
        tuned = [bool(item.runs("tuned")) for item in self.learners]
        return self.noisy and any(tuned) and not all(tuned)

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
        return [phase for phase in RESULT_PHASES if any(item.spread(phase, quantity) for item in self.learners)]

    def bound(self, name: str, quantity: str) -> float | None:
        report = self.bounds.get(name)
        value = report.get(quantity) if isinstance(report, Mapping) else None
        return float(value) if isinstance(value, int | float) and math.isfinite(value) else None
