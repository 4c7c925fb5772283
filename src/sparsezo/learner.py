"""The learner: ask for a proposal, tell it the feedback, and the weights move. Or ``run`` it on simulated feedback.

    learner = Learner(problem, Settings(rule="preference", perturb="score", h=0.001, mu=0.1))
    proposal = learner.ask()                            # two outputs for some input
    learner.tell(proposal, "candidate")                 # a person liked the first better
    learner.run(gold, steps=100_000)                    # the same, compiled, with gold as the judge

``tell`` never sees gold. A proposal can be answered at any later time: its perturbation is a function of the run's
seed, its step and its input. ``ask``/``tell`` and ``run`` give the same weights bit for bit (Algorithm 1, SZO-SP).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import SparsezoError, UsageError
from sparsezo.kernels import coefficient as rules
from sparsezo.kernels import lazy, loop, random
from sparsezo.rules import RULES
from sparsezo.settings import Settings
from sparsezo.tasks.base import Problem

_BLOCK = 1024  # rows that are settled with one call of the generator


@dataclass(frozen=True, eq=False)
class Proposal:
    """Step and input rebuild the perturbation; the outputs are what feedback is asked on."""

    step: int
    x: int
    candidate: NDArray[np.int32]  # decoded at w + mu u; first-order: sampled
    incumbent: NDArray[np.int32] | None  # decoded at w (symmetric: w - mu u); None where the rule compares nothing


@dataclass(frozen=True)
class Info:
    """What a step did, for logs; nothing of it is needed to go on."""

    step: int
    c: float
    average_loss: float


class Learner:
    """One learner on one problem. ``state`` is all that has to be saved to go on bit for bit."""

    def __init__(self, problem: Problem, settings: Settings, W: NDArray[Any] | None = None) -> None:
        self.problem = problem
        self.settings = settings
        self._params = settings.step_params()
        self.workspace = _workspace(problem)
        n, L, dtype = problem.n_features, problem.n_labels, problem.dtype
        lazy = settings.perturb == "all"
        self.state = loop.State(
            W=np.zeros((n, L), dtype) if W is None else np.array(W, dtype).reshape(n, L),
            q=np.zeros((n if settings.step == "adagrad" else 0, L), dtype),
            Q_row=np.zeros(n if lazy else 0),
            counts=np.zeros(loop.N_COUNTS, np.int64),
            sums=np.zeros(loop.N_SUMS),
        )

    # What it has done

    @property
    def step(self) -> int:
        return int(self.state.counts[loop.STEP])

    @property
    def updates(self) -> int:
        """Steps that moved the weights."""
        return int(self.state.counts[loop.UPDATES])

    @property
    def average_loss(self) -> float:
        """The average cumulative loss of the candidates so far (paper Sec. 5)."""
        return float(self.state.sums[loop.LOSS]) / max(self.step, 1)

    def weights(self) -> NDArray[Any]:
        """All of W, features x labels, up to date: what ALL owes to sleeping rows is paid first. Not a copy."""
        state = self.state
        if state.Q_row.size:
            n, L = state.W.shape
            U = np.empty((min(n, _BLOCK), L), state.W.dtype)
            state.counts[loop.SETTLEMENTS] = lazy.settle_all(
                self._params.keys[random.DEBT],
                state.counts[loop.SETTLEMENTS],
                state.sums[loop.Q_TOTAL],
                state.Q_row,
                U,
                state.W,
            )
        return state.W

    # Learning

    def run(self, gold: Any, steps: int) -> None:
        """``steps`` steps on inputs drawn at random, with feedback computed from gold."""
        args = (self.problem.inputs, self.problem.task, gold, self._params, len(self.problem))
        if not loop.run(*args, self.step + steps, self.state, self.workspace):
            raise self._not_finite(int(self.state.counts[loop.ASKED]))

    def next_input(self) -> int:
        """The input that ``run`` would look at next."""
        step = self.state.counts[loop.ASKED]
        return int(random.below(self._params.keys[random.INPUTS], step, len(self.problem)))

    def ask(self, x: int | None = None) -> Proposal:
        """A proposal for input x, or for the one that is next in the run's own order."""
        if self._params.rule == rules.SUPERVISED:
            raise UsageError("rule supervised asks for no feedback; use run() with gold")
        if self._params.criterion != loop.MAP:
            raise UsageError("the annealed criterion needs the losses of all outputs; ask() goes with criterion map")
        if x is None:
            x = self.next_input()
        if not 0 <= x < len(self.problem):
            raise UsageError(f"there is no input {x}; inputs are 0 to {len(self.problem) - 1}")
        step = int(self.state.counts[loop.ASKED])
        score = loop.propose(self.problem.inputs, self.problem.task, self._params, x, step, self.state, self.workspace)
        if not math.isfinite(score):
            raise self._not_finite(step)
        self.state.counts[loop.ASKED] += 1
        n = int(self.problem.output_start[x + 1] - self.problem.output_start[x])
        incumbent = RULES[self.settings.rule].incumbent
        return Proposal(
            step, x, self.workspace.y[:n].copy(), self.workspace.incumbent[:n].copy() if incumbent else None
        )

    def tell(self, proposal: Proposal, feedback: float | tuple[float, float] | bool | str) -> Info:
        """Learn from the answer to a proposal. What an answer is depends on the rule (``RULES[...].feedback``):

        two-point, symmetric: the two losses (candidate, incumbent); baseline, first-order: the candidate's loss;
        comparison, preference: "candidate", "incumbent" or "tie" (True and False for the first two), or two losses.
        """
        F_plus, F_incumbent = _losses(self.settings.rule, feedback)
        mean = loop.count_step(self._params, F_plus, F_plus, self.state)
        c = float(rules.coefficient(self._params.rule, self._params.h, self._params.mu, F_plus, F_incumbent, mean))
        if c != 0:
            x, y = proposal.x, self.workspace.y
            y[: proposal.candidate.size] = proposal.candidate
            args = (self.problem.inputs, self.problem.task, self._params, x, proposal.step, y, c)
            loop.answer(*args, self.state, self.workspace)
        return Info(proposal.step, c, self.average_loss)

    def _not_finite(self, step: int) -> SparsezoError:
        return SparsezoError(
            f"step {step}: the scores or the loss are not finite; h {self.settings.h:g} is probably too large, "
            "try a tenth of it"
        )


def predict(problem: Problem, W: NDArray[Any]) -> NDArray[np.int32]:
    """The best output of every input, one after the other, as Problem.output_start says."""
    work = _workspace(problem)
    out = np.empty(int(problem.output_start[-1]), np.int32)
    args = (W, work.S, work.y, 0, len(problem), problem.output_start, out)
    if not loop.decode_all(problem.inputs, problem.task, *args):
        raise SparsezoError("the model's weights give scores that are not finite; train it again with a smaller h")
    return out


def _workspace(problem: Problem) -> loop.Workspace:
    rows, columns, L = max(problem.max_rows, 1), max(problem.max_columns, 1), problem.n_labels

    def table(n: int) -> NDArray[Any]:
        return np.zeros((n, L), problem.dtype)

    outputs = max(problem.max_outputs, 1)
    return loop.Workspace(
        S=table(rows),
        T=table(rows),
        V=table(rows),
        Z=table(max(rows, columns)),
        D=table(rows),
        U=table(columns),
        row=np.zeros(L, problem.dtype),
        y=np.zeros(outputs, np.int32),
        incumbent=np.zeros(outputs, np.int32),
    )


_PREFERRED = {"candidate": (0.0, 1.0), "incumbent": (1.0, 0.0), "tie": (0.0, 0.0)}


def _losses(rule: str, feedback: float | tuple[float, float] | bool | str) -> tuple[float, float]:
    """(F_plus, F_incumbent) of an answer; a bare preference is the loss 0 of the better one and 1 of the other."""
    pair = rule in ("two-point", "symmetric", "comparison", "preference")
    losses: tuple[float, float] | None = None
    if isinstance(feedback, tuple):
        losses = (float(feedback[0]), float(feedback[1])) if pair and len(feedback) == 2 else None
    elif isinstance(feedback, str | bool | np.bool_):
        if rule in ("comparison", "preference"):
            word = feedback if isinstance(feedback, str) else ("candidate" if feedback else "incumbent")
            losses = _PREFERRED.get(word)
    elif not pair:
        losses = (float(feedback), 0.0)
    if losses is None:
        raise UsageError(f"feedback {feedback!r}: rule {rule} takes {RULES[rule].feedback}")
    if not all(math.isfinite(loss) for loss in losses):
        raise SparsezoError(f"feedback {feedback!r}: a loss must be finite")
    return losses
