"""Algorithm 1 (SZO-SP, paper Sec. 3) for any Python function of sparse weights; no task and no data are needed.

>>> wanted = np.linspace(-1, 1, 100)  # the weights to find; an input x shows F three of them
>>> F = lambda w, x: np.abs(w[x] - wanted[x]).sum()
>>> sample = lambda k: np.random.default_rng(k).choice(100, 3, replace=False)
>>> result = minimize(F, sample, active=lambda x: x, n=100, h=0.01, mu=0.01, steps=5_000)
>>> bool(np.abs(result.w - wanted).mean() < 0.03)
True

A step costs what the n_bar(x) active weights cost, never n, under every perturbation:

active  u ~ N(0, I) on ``active(x)``, 0 elsewhere (eq. sparse-gaussian).
all     u ~ N(0, I) on all n weights. F cannot see u on the sleeping ones, so they are owed N(0, sum of c^2) and get it
        when they wake or are read: exact in law (DESIGN 2.2).
score   u's projection on the rows of C, where F reads w through C w[active(x)] alone: the same mean step, less variance
        (DESIGN 2.3). ``features(x)`` gives C.

The numbers drawn in step k are a function of (seed, k): ``minimize(..., state=result.state)`` goes on bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsezo.errors import SparsezoError, UsageError
from sparsezo.kernels.coefficient import coefficient
from sparsezo.perturbations import PERTURBATIONS
from sparsezo.rules import RULES

Vector = NDArray[np.float64]

_STEP, _READ = 0, 1  # streams: a step's draws; what a reading of all of w pays to sleeping weights


@dataclass(eq=False)
class State:
    """What is carried from step to step. Under ``all`` w lacks what sleeping weights are owed; ``weights`` has it."""

    w: Vector  # n
    paid: Vector  # n under all, else empty: Q when the weight was last up to date
    Q: float = 0.0  # sum of c^2
    k: int = 0  # steps done
    loss: float = 0.0  # sum of F(w + mu u, x)

    def weights(self, seed: int) -> Vector:
        """All of w, up to date: O(n). A copy; the run itself goes on unpaid, so reading does not change it."""
        w = self.w.copy()
        if self.paid.size:
            w += np.sqrt(self.Q - self.paid) * _generator(seed, self.k, _READ).standard_normal(w.size)  # ~ N(0, owed)
        return w

    def copy(self) -> State:
        return replace(self, w=self.w.copy(), paid=self.paid.copy())


@dataclass(frozen=True, eq=False)
class Info:
    """What a step did, for the callback."""

    k: int
    x: Any
    F_plus: float  # F(w + mu u, x)
    c: float  # w moved by c u
    average_loss: float
    _weights: Callable[[], Vector] = field(repr=False)

    def weights(self) -> Vector:
        """w after the step. O(n): ask now and then, not at every step."""
        return self._weights()


@dataclass(frozen=True, eq=False)
class Result:
    w: Vector
    average_loss: float  # of F(w_k + mu u_k, x_k) over all steps: the average cumulative loss (paper Sec. 5)
    history: Vector  # F(w_k + mu u_k, x_k) of this call's steps
    c: Vector  # likewise; 0 where the weights did not move
    state: State = field(repr=False)  # to go on from

    @property
    def steps(self) -> int:
        """All that have been done, those before ``state`` was handed over included."""
        return self.state.k


def minimize(
    F: Callable[[Vector, Any], float],
    sample: Callable[[int], Any] | Iterable[Any],
    active: Callable[[Any], ArrayLike],
    n: int,
    *,
    h: float,
    mu: float,
    steps: int,
    rule: str = "two-point",
    perturb: str = "active",
    features: Callable[[Any], ArrayLike] | None = None,
    seed: int = 0,
    w0: ArrayLike | None = None,
    state: State | None = None,
    callback: Callable[[Info], bool | None] | None = None,
) -> Result:
    """Minimise the mean of F(w, x) over inputs x by ``steps`` steps w += c u (``RULES`` has the rules for c).

    F(w, x) gets all of w, read-only and valid during the call, and may read it at ``active(x)`` alone: distinct
    indices. ``sample(k)`` is the input of step k; or an iterable of inputs, and where it ends the run ends.
    ``features(x)``, for score: C, rows x len(active(x)). A callback that returns True ends the run.
    """
    _check(n, h, mu, steps, rule, perturb, features, seed)
    now = _start(n, perturb, w0, state)
    code = RULES[rule].code
    rival = RULES[rule].incumbent
    w = now.w
    seen = w.view()
    seen.flags.writeable = False
    F_of = _checked(F)
    history, moves = [], []
    for x in _inputs(sample, now.k, steps):
        k = now.k
        a = _indices(active(x), n, k)
        draw = _generator(seed, k, _STEP)
        if perturb == "all":
            w[a] += np.sqrt(now.Q - now.paid[a]) * draw.standard_normal(a.size)  # ~ N(0, owed)
            now.paid[a] = now.Q
        u = draw.standard_normal(a.size)
        if perturb == "score" and features is not None:
            u = _project(u, features(x), k)
        w_a = w[a]
        w[a] = w_a + mu * u
        F_plus = F_of(seen, x, k)
        F_incumbent = 0.0
        if rival is not None:
            w[a] = w_a if rival == "w" else w_a - mu * u
            F_incumbent = F_of(seen, x, k)
        now.k += 1
        now.loss += F_plus
        c = float(coefficient(code, float(h), float(mu), F_plus, F_incumbent, now.loss / now.k))
        w[a] = w_a + c * u  # Algorithm 1: w_{k+1} = w_k - h s_mu(w_k)
        if perturb == "all":
            now.Q += c * c
            now.paid[a] = now.Q
        history.append(F_plus)
        moves.append(c)
        if callback is not None and callback(Info(k, x, F_plus, c, now.loss / now.k, lambda: now.weights(seed))):
            break
    return Result(now.weights(seed), now.loss / max(now.k, 1), np.array(history), np.array(moves), now)


def _generator(seed: int, k: int, stream: int) -> np.random.Generator:
    return np.random.default_rng((seed, k, stream))


def _project(u: Vector, features: ArrayLike, k: int) -> Vector:
    """P u = E[u given C u], P the projector onto the row space of C."""
    C = np.asarray(features, np.float64)  # R x M
    if C.ndim != 2 or C.shape[1] != u.size:
        raise UsageError(f"step {k}: features(x) has shape {C.shape}; make it rows x {u.size}, as active(x) is long")
    if not np.isfinite(C).all():
        raise SparsezoError(f"step {k}: features(x) is not finite")
    projected: Vector = np.linalg.pinv(C) @ (C @ u)
    return projected


# What the caller's functions gave


def _inputs(sample: Callable[[int], Any] | Iterable[Any], k: int, steps: int) -> Iterator[Any]:
    if callable(sample):
        yield from (sample(j) for j in range(k, k + steps))
    else:
        for _, x in zip(range(steps), sample, strict=False):
            yield x


def _indices(given: ArrayLike, n: int, k: int) -> NDArray[np.int64]:
    a = np.asarray(given)
    if a.ndim != 1 or (a.size and a.dtype.kind not in "iu"):
        raise UsageError(f"step {k}: active(x) must be one row of whole numbers, not {a.dtype} of shape {a.shape}")
    a = a.astype(np.int64)
    if a.size:
        ordered = np.sort(a)
        if ordered[0] < 0 or ordered[-1] >= n:
            wrong = ordered[0] if ordered[0] < 0 else ordered[-1]
            raise UsageError(f"step {k}: active(x) has {wrong}; the {n} weights are 0 to {n - 1}")
        if (ordered[1:] == ordered[:-1]).any():
            raise UsageError(f"step {k}: active(x) names a weight twice; np.unique makes them distinct")
    return a


def _checked(F: Callable[[Vector, Any], float]) -> Callable[[Vector, Any, int], float]:
    def value_of(w: Vector, x: Any, k: int) -> float:
        value: object = F(w, x)
        if isinstance(value, np.generic | np.ndarray) and value.ndim == 0:
            value = value.item()
        if not isinstance(value, Real):
            raise UsageError(f"step {k}: F must return a number, not {type(value).__name__}")
        if not math.isfinite(value):
            raise SparsezoError(f"step {k}: F is {float(value)}, not finite; if h is too large, try a tenth of it")
        return float(value)

    return value_of


# What the caller set


def _check(
    n: object,
    h: object,
    mu: object,
    steps: object,
    rule: str,
    perturb: str,
    features: Callable[[Any], ArrayLike] | None,
    seed: object,
) -> None:
    for name, whole, least in (("n", n, 1), ("steps", steps, 1), ("seed", seed, 0)):
        if not isinstance(whole, Integral) or int(whole) < least:
            raise UsageError(f"{name} {whole}: must be a whole number, {least} or more")
    for name, value in (("h", h), ("mu", mu)):
        if not (isinstance(value, Real) and 0 < float(value) < math.inf):
            raise UsageError(f"{name} {value}: must be positive and finite")
    rules = [known for known in RULES if RULES[known].zeroth_order]
    for name, word, choices in (("rule", rule, rules), ("perturb", perturb, list(PERTURBATIONS))):
        if word not in choices:
            raise UsageError(f"{name} {word}: choose from {', '.join(choices)}")
    if perturb == "score" and features is None:
        raise UsageError("perturb score needs features(x): C, where F reads w through C w[active(x)] alone")


def _start(n: int, perturb: str, w0: ArrayLike | None, state: State | None) -> State:
    if state is None:
        w = np.zeros(n) if w0 is None else np.array(w0, np.float64)  # the paper's w_0 = 0
        state = State(w, np.zeros(n if perturb == "all" else 0))
    elif w0 is not None:
        raise UsageError("w0 and state: give one of them, for a state has its own weights")
    elif bool(state.paid.size) != (perturb == "all"):
        raise UsageError(f"state: not of a run with perturb {perturb}; start from its weights by w0=result.w")
    else:
        state = state.copy()
    if state.w.shape != (n,):
        raise UsageError(f"w0: must be {n} weights in one row, not an array of shape {state.w.shape}")
    if not np.isfinite(state.w).all():
        raise UsageError("w0: every weight must be finite")
    return state
