"""Algorithm 1 (SZO-SP, paper Sec. 3) as one call with h and mu given: ``minimize(F, sample, active, n, ...)``.

>>> wanted = np.linspace(-1, 1, 100)  # the weights to find; an input x shows F three of them
>>> F = lambda w, x: np.abs(w[x] - wanted[x]).sum()
>>> sample = lambda k: np.random.default_rng(k).choice(100, 3, replace=False)
>>> result = run_steps(F, sample, active=lambda x: x, n=100, h=0.01, mu=0.01, steps=5_000)
>>> bool(np.abs(result.w - wanted).mean() < 0.03)
True

A step costs what the n_bar(x) active weights cost, never n, under every perturbation (``rules.PERTURBATIONS``). For
score, F reads w through C w[active(x)] alone, and ``features(x)`` gives C. The numbers drawn in step k are a function
of (seed, k): ``run_steps(..., state=result.state)`` goes on bit for bit.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from numbers import Real
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsezo.errors import DivergedError, SparsezoError, UsageError, shown
from sparsezo.optimizer import Optimizer, whole
from sparsezo.questions import Proposal
from sparsezo.settings import Settings
from sparsezo.validation import Array

Vector = NDArray[np.float64]
X = TypeVar("X")  # an input

_TINY = 1e-10  # a mu below that is at fault where F never changes; above, F may be flat
_MOST_UNHEARD = 100  # steps with perturbations that change no weight


@dataclass(frozen=True, eq=False)
class Step(Generic[X]):
    """What a step did, for the callback."""

    k: int
    x: X
    F_plus: float  # F(w + mu u, x)
    c: float  # w moved by c u
    average_loss: float
    _optimizer: Optimizer = field(repr=False)

    def weights(self) -> Vector:
        """w after the step. O(n), and under ``all`` an event of the run: ask now and then, not at every step."""
        return self._optimizer.weights()


@dataclass(frozen=True, eq=False)
class Result:
    """What ``run_steps`` found, and how it came there."""

    w: Vector
    average_loss: float  # of F(w_k + mu u_k, x_k) over all steps: the average cumulative loss (paper Sec. 5)
    history: Vector  # F(w_k + mu u_k, x_k) of this call's steps
    c: Vector  # likewise; 0 where the weights did not move
    optimizer: Optimizer = field(repr=False)

    @property
    def state(self) -> bytes:
        """To go on from, now or in another process."""
        return self.optimizer.to_bytes()

    @property
    def steps(self) -> int:
        """All that have been done, those before ``state`` was handed over included."""
        return self.optimizer.step


def run_steps(
    F: Callable[[Vector, X], float],
    sample: Callable[[int], X] | Iterable[X],
    active: Callable[[X], ArrayLike],
    n: int,
    *,
    h: float,
    mu: float,
    steps: int,
    rule: str = "two-point",
    perturb: str = "active",
    step: str = "constant",
    features: Callable[[X], ArrayLike] | None = None,
    seed: int = 0,
    w0: ArrayLike | None = None,
    state: bytes | None = None,
    callback: Callable[[Step[X]], bool | None] | None = None,
) -> Result:
    """Minimise the mean of F(w, x) over inputs x by ``steps`` steps w += c u (``RULES`` has the rules for c).

    F(w, x) gets all of w, read-only and valid during the call, and may read it at ``active(x)`` alone: distinct
    indices. ``sample(k)`` is the input of step k; or an iterable of inputs, and where it ends the run ends.
    ``features(x)``, for score: C, rows x len(active(x)). A callback that returns True ends the run.
    """
    h, mu = _number("h", h), _number("mu", mu)
    settings = Settings(rule=rule, perturb=perturb, h=h, mu=mu, step=step, seed=whole("seed", seed, 0))
    optimizer = _optimizer(n, settings, w0, state)
    if perturb == "score" and features is None:
        raise UsageError("perturb score needs features(x): C, where F reads w through C w[active(x)] alone")
    w: Array = optimizer.state.W[:, 0]
    seen = w.view()
    seen.flags.writeable = False

    def value_at(values: Vector, proposal: Proposal, x: X) -> float:
        """F with the proposal's weights set so."""
        kept = w[proposal.x].copy()
        w[proposal.x] = values
        try:
            return _value(F(seen, x), proposal.step)
        finally:
            w[proposal.x] = kept

    history, moves, unheard = [], [], 0  # steps, one after the other, that could tell nothing
    for x in _inputs(sample, optimizer.step, whole("steps", steps, 1)):
        k = optimizer.step
        with _in_step(k):
            proposal = optimizer.ask(active(x), features(x) if perturb == "score" and features is not None else None)
        changed = bool((proposal.candidate != w[proposal.x]).any())
        F_plus, *further = (value_at(values, proposal, x) for values in proposal.outputs)
        info = optimizer.tell(proposal, [F_plus, *further] if further else F_plus)
        heard = changed and (mu >= _TINY or info.c != 0)
        unheard = 0 if heard else unheard + (proposal.x.size > 0)
        if unheard > _MOST_UNHEARD:
            raise DivergedError(
                f"step {k}: mu {mu:g} is so small beside the weights that it changes nothing: nothing can be learned; "
                f"use a larger mu, or a smaller h than {h:g}"
            )
        history.append(F_plus)
        moves.append(info.c)
        if callback is not None and callback(Step(k, x, F_plus, info.c, info.average_loss, optimizer)):
            break
    return Result(optimizer.weights(), optimizer.average_loss, np.array(history), np.array(moves), optimizer)


@contextmanager
def _in_step(k: int) -> Iterator[None]:
    """Puts the step in front of what is wrong with the caller's functions."""
    try:
        yield
    except UsageError as error:
        raise UsageError(f"step {k}: {error}") from None
    except SparsezoError as error:
        raise SparsezoError(f"step {k}: {error}") from None


def _optimizer(n: int, settings: Settings, w0: ArrayLike | None, state: bytes | None) -> Optimizer:
    if state is None:
        return Optimizer(n, settings, w0)  # the paper's w_0 = 0
    if w0 is not None:
        raise UsageError("w0 and state: give one of them, for a state has its own weights")
    optimizer = Optimizer.from_bytes(state)
    if optimizer.settings != settings or optimizer.state.W.shape[0] != n:
        raise UsageError(f"state: is of a run with {optimizer.settings}; start from its weights by w0=result.w")
    return optimizer


def _inputs(sample: Callable[[int], X] | Iterable[X], k: int, steps: int) -> Iterator[X]:
    if callable(sample):
        yield from (sample(j) for j in range(k, k + steps))
    elif not isinstance(sample, Iterable):
        raise UsageError(f"sample is a {type(sample).__name__}; give a function of the step, or inputs one by one")
    else:
        yield from itertools.islice(sample, steps)


def _value(value: object, k: int) -> float:
    if isinstance(value, np.generic | np.ndarray) and value.ndim == 0:
        value = value.item()
    if not isinstance(value, Real):
        raise UsageError(f"step {k}: F must return a number, not {type(value).__name__}")
    number = _float(value)
    if not math.isfinite(number):
        raise SparsezoError(f"step {k}: F is {number}, not finite; if h is too large, try a tenth of it")
    return number


def _number(name: str, value: object) -> float:
    if not isinstance(value, Real):
        raise UsageError(f"{name} {shown(value)}: must be positive and finite")
    return _float(value)


def _float(value: Real) -> float:
    """Infinite where a number of Python's own is larger than any float."""
    try:
        return float(value)
    except OverflowError:
        return math.inf
