"""E||s||^2 of a step on a data set, for zeroth-order rules, one-point and all perturbations, beside what bounds it.

    learner = Learner(task.problem(data, risk=True), settings)      # at whatever weights it has reached
    for each in measure(learner, task.gold(data), draws=20_000): ...

W += - h s. ``one-point`` is baseline's raw form, - h F(w + mu u) / mu: it shows what the control variate, the mean of
the losses, is worth. One draw serves all rules and perturbations: they see the same V = C u, and given V the mean of
||u||^2 is ||P u||^2 + m(x) - r(x), with m(x) = r(x) for score (docs/theory.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import UsageError
from sparsezo.kernels import protocol
from sparsezo.kernels.codes import BASELINE, SYMMETRIC
from sparsezo.kernels.coefficient import coefficient
from sparsezo.kernels.inputs.rows import RowInputs
from sparsezo.kernels.inputs.sparse import SparseInputs
from sparsezo.kernels.jit import kernel
from sparsezo.kernels.loop import shift
from sparsezo.kernels.random import INPUTS, PERTURBATION, below
from sparsezo.learner import Learner, workspace_of
from sparsezo.rules import RULES
from sparsezo.study.theory import annealed_L0, bounded_moment, step_moment, symmetric_moment
from sparsezo.tasks.base import Problem

CRITERIA = ("map", "annealed")
ZEROTH_ORDER = tuple(name for name, rule in RULES.items() if rule.zeroth_order)
RAW = "one-point"  # no rule of the package: baseline without its mean
MEASURED = (*ZEROTH_ORDER, RAW)
_LIPSCHITZ = {"two-point": step_moment, "symmetric": symmetric_moment}


@dataclass(frozen=True)
class Moment:
    criterion: str
    rule: str
    perturb: str
    mean: float  # E||s||^2
    error: float  # standard error of it
    bounded: float  # its bound as losses lie in [0, 1]
    lipschitz: float | None  # its bound as the annealed criterion is Lipschitz, for two-point and symmetric


def measure(learner: Learner, gold: Any, draws: int) -> list[Moment]:
    """At the learner's weights, by the draws that its next steps would make; baseline's mean is that of these draws."""
    problem, settings = learner.problem, learner.settings
    if settings.mu is None or not problem.risk:
        raise UsageError("measure: give a learner that perturbs weights, of a problem made with risk=True")
    L0 = annealed_L0(settings.gamma, 1.0) * reach(problem)
    F, seen, x = np.empty((len(CRITERIA), draws, 3)), np.empty(draws), np.empty(draws, np.int64)
    parts, room, params = problem.private(factors=True), workspace_of(problem), settings.step_params()
    _draw(*parts, gold, params, len(problem), learner.step, learner.weights(), room, F, seen, x)
    n = problem.n_features * problem.n_labels
    sizes = {"all": np.full(len(problem), n), "active": problem.n_active, "score": problem.n_score}
    found = []
    for criterion, losses in zip(CRITERIA, F, strict=True):
        for rule in MEASURED:
            squared = np.empty(draws)
            code, mean = (BASELINE, 0.0) if rule == RAW else (RULES[rule].code, losses[:, 0].mean())
            _squared_coefficients(code, settings.mu, losses, mean, squared)
            for perturb, m in sizes.items():
                lengths = squared * (seen + (m - problem.n_score)[x])
                short = bounded_moment(m.mean(), settings.mu, "symmetric" if rule == "symmetric" else "two-point")
                lipschitz = None
                if criterion == "annealed" and rule in _LIPSCHITZ:
                    lipschitz = _LIPSCHITZ[rule](m, problem.n_score, L0)
                error = float(lengths.std(ddof=1) / np.sqrt(draws))
                found.append(Moment(criterion, rule, perturb, float(lengths.mean()), error, short, lipschitz))
    return found


def reach(problem: Problem) -> NDArray[np.float64]:
    """D of each input, the largest distance of two outputs' features: (2 1'CC'1)^(1/2).

    It is that of two outputs with nothing in common and one label each; features are not negative.
    """
    if not isinstance(problem.inputs, SparseInputs | RowInputs):
        raise UsageError("reach: of tasks that give each row of scores one label, as chunking and text")
    total = np.empty(len(problem))
    W = np.zeros((problem.n_features, problem.n_labels), problem.dtype)
    _sums(problem.private()[0], workspace_of(problem), W, W[:0], total)
    return np.sqrt(2 * total)


@kernel
def _draw(
    inputs: Any, task: Any, gold: Any, params: Any, N: Any, first: Any, W: Any, work: Any, F: Any, seen: Any, at: Any
) -> None:
    """F[criterion, draw] = the losses at w + mu u, at w and at w - mu u; seen = ||P u||^2 = V'D, where C'D = P u."""
    for k in range(seen.size):
        step = first + k
        x = at[k] = below(params.keys[INPUTS], step, N)
        R = protocol.rows(inputs, x)
        protocol.draw(inputs, x, params.keys[PERTURBATION], step, work.Z)
        protocol.scores_with(inputs, x, W, work.Z, work.S, work.V)
        for j in range(3):
            shift(work.S, work.V, params.mu * (1 - j), R, work.T)
            protocol.decode(task, x, work.T, work.y)
            F[0, k, j] = protocol.delta(gold, task, x, work.y)
            F[1, k, j] = protocol.risk(gold, task, x, work.T, params.gamma)
        protocol.project(inputs, x, work.Z, work.D)
        seen[k] = 0.0
        for i in range(R):
            for l in range(work.D.shape[1]):
                seen[k] += np.float64(work.V[i, l]) * np.float64(work.D[i, l])


@kernel
def _squared_coefficients(rule: Any, mu: Any, F: Any, mean: Any, out: Any) -> None:
    """(c / h)^2 of each draw."""
    other = 2 if rule == SYMMETRIC else 1
    for k in range(out.size):
        out[k] = coefficient(rule, 1.0, mu, F[k, 0], F[k, other], mean) ** 2


@kernel
def _sums(inputs: Any, work: Any, W: Any, none: Any, out: Any) -> None:
    """out[x] = 1'CC'1: W = C'1 in one label's column, and the sum of C W. W is 0 before and after."""
    for x in range(out.size):
        R = protocol.rows(inputs, x)
        for i in range(R):
            for l in range(work.D.shape[1]):
                work.D[i, l] = l == 0
        protocol.move(inputs, x, 1.0, 1.0, work.D, work.U, False, W, none)
        protocol.scores(inputs, x, W, work.S)
        out[x] = 0.0
        for i in range(R):
            out[x] += np.float64(work.S[i, 0])
        protocol.move(inputs, x, -1.0, 1.0, work.D, work.U, False, W, none)
