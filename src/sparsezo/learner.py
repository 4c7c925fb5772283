"""The learner: ask for a proposal, tell it the feedback, and the weights move. Or ``run`` it on simulated feedback.

    learner = Learner(problem, Settings(rule="preference", perturb="score", h=0.001, mu=0.1))
    proposal = learner.ask()                            # two outputs for some input
    learner.tell(proposal, "candidate")                 # a person liked the first better
    learner.run(gold, steps=100_000)                    # the same, compiled, with gold as the judge

It is an ``Optimizer`` whose proposals are a model's outputs. ``tell`` never sees gold. A proposal can be answered at
any later time: its perturbation is a function of the run's seed, its step and its input. ``ask``/``tell`` and ``run``
give the same weights bit for bit (Algorithm 1, SZO-SP).
"""

from __future__ import annotations

import math
import operator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sparsezo import bounds
from sparsezo.divergence import not_finite
from sparsezo.errors import DivergedError, UsageError, shown
from sparsezo.kernels import loop, random
from sparsezo.optimizer import Asked, Optimizer, state_of, whole, workspace
from sparsezo.proposals import Proposal
from sparsezo.rules import RULES
from sparsezo.settings import Settings
from sparsezo.tasks.base import Problem

_MOST_STEPS = 2**62
_REHEARSED = 32  # steps


class Learner(Optimizer):
    """One learner on one problem, which it only reads: a problem serves any number of learners and threads."""

    def __init__(self, problem: Problem, settings: Settings, W: NDArray[Any] | None = None) -> None:
        if not problem.learn:
            raise UsageError("this problem was made to decode only; make it by task.problem(data)")
        if settings.criterion == "annealed" and not problem.risk:
            raise UsageError("the annealed criterion needs task.problem(data, risk=True)")
        if not len(problem):
            raise UsageError("the problem has no inputs to learn from")
        self._begin(settings, problem.n_features, problem.n_labels, problem.dtype, W)
        self.problem = problem
        self._inputs, self._task = problem.private()
        self.workspace = _workspace(problem)
        self._gold: Any = object()  # the one that was checked

    def _copy(self) -> NDArray[Any]:
        """Features x labels."""
        return self.state.W.copy()

    # Learning

    def run(self, gold: Any, steps: int) -> None:
        """``steps`` steps on inputs drawn at random, with feedback computed from gold."""
        with self._lock:
            if gold is not self._gold:
                self._check(gold)
            steps = min(whole("steps", steps, 0), _MOST_STEPS - self.step)
            args = (self._inputs, self._task, gold, self._params, len(self.problem))
            if not loop.run(*args, self.step + steps, self.state, self.workspace):
                raise self._not_finite(int(self.state.counts[loop.ASKED]))

    def _check(self, gold: Any) -> None:
        """Compiled code believes that gold is of this problem's inputs."""
        if not isinstance(gold, tuple):
            raise UsageError(f"gold is a {type(gold).__name__}; give what task.gold(data) gives")
        if hasattr(gold, "check"):
            gold.check(self.problem, self.settings.rule == "supervised")
        self._gold = gold

    def next_input(self) -> int:
        """The input that ``run`` would look at next."""
        step = self.state.counts[loop.ASKED]
        return int(random.below(self._params.keys[random.INPUTS], step, len(self.problem)))

    def ask(self, x: int | None = None) -> Proposal:  # type: ignore[override]
        """A proposal for input x, or for the one that is next in the run's own order."""
        if self.settings.rule == "supervised":
            raise UsageError("rule supervised asks for no feedback; use run() with gold")
        if self.settings.criterion != "map":
            raise UsageError("the annealed criterion needs the losses of all outputs; ask() goes with criterion map")
        with self._lock:
            x = self.next_input() if x is None else self._input(x)
            step = int(self.state.counts[loop.ASKED])
            work = self.workspace
            score = loop.propose(self._inputs, self._task, self._params, x, step, self.state, work)
            if not math.isfinite(score):
                raise self._not_finite(step)
            n = int(self.problem.output_start[x + 1] - self.problem.output_start[x])
            incumbent = work.incumbent[:n].copy() if RULES[self.settings.rule].incumbent else None
            return self._opened(Proposal(self.id, step, x, work.y[:n].copy(), incumbent))

    def _input(self, x: object) -> int:
        try:
            number = operator.index(x)  # type: ignore[arg-type]
        except TypeError:
            number = -1
        if not 0 <= number < len(self.problem):
            raise UsageError(f"there is no input {shown(x)}; inputs are 0 to {len(self.problem) - 1}")
        return number

    def _move(self, asked: Asked, c: float) -> None:
        proposal, work = asked.proposal, self.workspace
        work.y[: proposal.candidate.size] = proposal.candidate
        args = (self._inputs, self._task, self._params, proposal.x, proposal.step, work.y, c)
        loop.answer(*args, self.state, work)

    def rehearse(self, gold: Any) -> tuple[float, bool]:
        """Some of the next steps, on a copy: the share of scores that mu u changes, and whether weights move."""
        with self._lock:
            state = loop.State._make(part.copy() for part in self.state)
            args = (self._inputs, self._task, gold, self._params, len(self.problem))
            perturbed = changed = 0
            for _ in range(_REHEARSED):
                work = _workspace(self.problem)  # 0 but for the rows of this one step's input
                if not loop.run(*args, state.counts[loop.STEP] + 1, state, work):
                    raise self._not_finite(int(state.counts[loop.ASKED]))
                perturbed += int(np.count_nonzero(work.V))
                changed += int(np.count_nonzero(work.S != work.T))
            return changed / max(perturbed, 1), bool(state.counts[loop.UPDATES] > self.updates)

    def _not_finite(self, step: int) -> DivergedError:
        return not_finite(self.settings, step, self.workspace.S, self.workspace.T)

    @classmethod
    def from_bytes(cls, raw: bytes, problem: Problem | None = None) -> Self:
        if problem is None:
            raise UsageError("a learner's state needs its problem: Learner.from_bytes(raw, problem)")
        meta, arrays, settings = state_of(raw)
        learner = cls(problem, settings)
        learner._restore(meta, arrays)
        return learner

    def _reopened(self, proposal: Proposal, basis: NDArray[Any] | None) -> Asked:
        """As ``ask`` made it, from bytes."""
        x = self._input(proposal.x)
        n = int(self.problem.output_start[x + 1] - self.problem.output_start[x])

        def output(given: NDArray[Any]) -> NDArray[np.int32]:
            bounds.array("an output", given, "iu", (n,))
            bounds.below("an output", given, self._task.most(x) if hasattr(self._task, "most") else 2**31)
            return given.astype(np.int32)

        incumbent = None if proposal.incumbent is None else output(proposal.incumbent)
        return Asked(Proposal(proposal.owner, proposal.step, x, output(proposal.candidate), incumbent).frozen())


def predict(problem: Problem, W: NDArray[Any]) -> NDArray[np.int32]:
    """The best output of every input, one after the other, as Problem.output_start says."""
    W = bounds.weights("the weights", W, (problem.n_features, problem.n_labels), problem.dtype)
    if not bounds.all_finite(W):
        raise _not_finite()
    inputs, task = problem.private()
    work = _workspace(problem)
    out = np.empty(int(problem.output_start[-1]), np.int32)
    if not loop.decode_all(inputs, task, W, work.S, work.y, 0, len(problem), problem.output_start, out):
        raise _not_finite()
    return out


def _not_finite() -> DivergedError:
    return DivergedError("the model's weights give scores that are not finite; train it again with a smaller h")


def _workspace(problem: Problem) -> loop.Workspace:
    return workspace(problem.max_rows, problem.max_columns, problem.n_labels, problem.max_outputs, problem.dtype)
