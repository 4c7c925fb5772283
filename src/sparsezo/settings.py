"""The settings of a learner, checked when they are made: a combination works or is refused here, with the reason.

>>> Settings(rule="two-point", perturb="score", h=0.001, mu=0.1)
Settings(rule='two-point', perturb='score', h=0.001, mu=0.1, ...)
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from sparsezo.errors import UsageError
from sparsezo.kernels import loop, random
from sparsezo.perturbations import PERTURBATIONS
from sparsezo.raters import parse_feedback
from sparsezo.rules import RULES

CRITERIA = {"map": loop.MAP, "annealed": loop.ANNEALED}
STEPS = ("constant", "adagrad")


@dataclass(frozen=True)
class Settings:
    rule: str = "two-point"
    perturb: str | None = "score"  # None for first-order and supervised, which perturb nothing
    h: float = 0.001
    mu: float | None = 0.1  # None likewise
    step: str = "constant"
    criterion: str = "map"
    gamma: float = 1.0
    baseline: bool = False  # first-order: subtract the mean loss so far
    seed: int = 0
    feedback: str = "exact"  # how the simulated rater answers (feedback.py)

    def __post_init__(self) -> None:
        _one_of("rule", self.rule, RULES)
        _one_of("criterion", self.criterion, CRITERIA)
        _one_of("step", self.step, STEPS)
        _positive("h", self.h)
        _positive("gamma", self.gamma)
        if not 0 <= self.seed < 2**63:
            raise UsageError(f"--seed {self.seed}: must be a whole number from 0 to 2^63 - 1")
        rule = RULES[self.rule]
        if rule.zeroth_order:
            if self.perturb is None or self.mu is None:
                raise UsageError(f"rule {self.rule} perturbs the weights: give --perturb and --mu")
            _one_of("perturb", self.perturb, PERTURBATIONS)
            _positive("mu", self.mu)
        elif self.perturb is not None or self.mu is not None:
            raise UsageError(f"rule {self.rule} perturbs nothing: leave out --perturb and --mu")
        elif self.criterion != "map":
            raise UsageError(f"rule {self.rule} has a criterion of its own: leave out --criterion {self.criterion}")
        if self.step == "adagrad" and self.perturb == "all":
            raise UsageError(
                "--step adagrad with --perturb all would move every weight at every step; use active or score"
            )
        model = parse_feedback(self.feedback).model
        if model == "flip" and self.rule not in ("comparison", "preference"):
            raise UsageError(f"--feedback {self.feedback} is of comparisons; rule {self.rule} asks for losses")
        if model != "exact" and self.rule == "supervised":
            raise UsageError(f"--feedback {self.feedback}: rule supervised sees the correct output, no rater")
        if self.baseline and self.rule != "first-order":
            raise UsageError(f"--baseline belongs to rule first-order, not to {self.rule}")

    @property
    def scale_free(self) -> bool:
        """Only h / mu^2 counts, for weights that start at 0 (docs/theory.md, "Scale")."""
        return RULES[self.rule].zeroth_order and self.criterion == "map" and self.step == "constant"

    def step_params(self) -> loop.StepParams:
        rater = parse_feedback(self.feedback)
        return loop.StepParams(
            rule=RULES[self.rule].code,
            perturbation=PERTURBATIONS[self.perturb].code if self.perturb else loop.SCORE,
            criterion=CRITERIA[self.criterion],
            control=int(self.baseline),
            h=float(self.h),
            mu=float(self.mu or 0.0),
            gamma=float(self.gamma),
            feedback=rater.code,
            noise=float(rater.noise),
            bias=float(rater.bias),
            levels=rater.levels,
            keys=np.array([random.stream_key(self.seed, stream) for stream in random.STREAMS], np.uint64),
        )

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        """The signature that tables, plots and saved models carry."""
        parts = [self.rule, self.perturb, f"h {self.h:g}", f"mu {self.mu:g}" if self.mu else None]
        parts += [self.step if self.step != "constant" else None, "baseline" if self.baseline else None]
        parts += [f"annealed gamma {self.gamma:g}" if self.criterion == "annealed" else None]
        parts += [f"feedback {self.feedback}" if self.feedback != "exact" else None, f"seed {self.seed}"]
        return ", ".join(part for part in parts if part)


def _one_of(name: str, value: object, choices: Collection[str]) -> None:
    if value not in choices:
        raise UsageError(f"--{name} {value}: choose from {', '.join(choices)}")


def _positive(name: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise UsageError(f"--{name} {value}: must be positive and finite")
