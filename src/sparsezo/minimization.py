"""``minimize(F, w0)``: the weights at which anyone's function is low, with no step size to choose.

>>> wanted = np.linspace(-1, 1, 100)
>>> result = minimize(lambda w: float(((w - wanted) ** 2).sum()), np.zeros(100), budget=2_000)
>>> bool(result.fun < 1e-6), result.nfev <= 2_000
(True, True)

How it walks depends on what F is, which ten values at w0 and eight around it tell where nobody says: line searches
where F has no noise, evolution by ranks where it is made of steps as well, steps by differences and curvature where it
has noise (``directions``), distance-over-gradients steps where F is of inputs,
F(w, x), one in five where it compares (``automatic``), and Algorithm 1 where ``h`` and ``mu`` are given.
``scipy_method`` is the same for ``scipy.optimize.minimize``.
"""

from __future__ import annotations

import inspect
import itertools
import math
import pickle
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import Bounds, OptimizeResult
from scipy.sparse import issparse

from sparsezo import algorithm, validation
from sparsezo.directions import (
    Point,
    Vector,
    Walk,
    line_searches,
    made_of_steps,
    noisy_steps,
    probes,
    ranked_steps,
)
from sparsezo.errors import SparsezoError, UsageError, shown
from sparsezo.optimizer import Optimizer, whole
from sparsezo.questions import Proposal
from sparsezo.row_space import RowSpace
from sparsezo.rules import RULES
from sparsezo.settings import Settings

_REPEATED = 10  # values at w0 that say whether F is noisy
_AHEAD = 16  # steps asked at a time where there are workers
_WINDOW = 100  # values whose mean is looked at
_NOISY_WINDOW = 25  # of values at w, which a step in five has
_LOOKED = 5
_FAR = 10.0  # times the start's: it diverges
_DEEP = 1e20  # below 0, times the start's: F has no lower bound
_UNCHANGED = 1_000  # values that are all the same: a plateau
_SPEAKS = 5.0  # seconds between two lines of progress

Weights = Any  # an array of any shape, or a dict of arrays
Given = Any  # what a caller hands over or a function gives; looked at where it is used
Function = Callable[..., Given]


@overload
def minimize(
    F: Function,
    w0: Weights,
    budget: int = ...,
    seed: int = ...,
    *,
    sample: Function | Iterable[Given] | None = ...,
    active: Function | None = ...,
    features: Function | None = ...,
    rule: str | None = ...,
    h: float | None = ...,
    mu: float | None = ...,
    step: str = ...,
    noisy: bool | None = ...,
    seconds: float = ...,
    target: float = ...,
    stall: int | None = ...,
    callback: Callable[[OptimizeResult], object] | None = ...,
    progress: bool | None = ...,
    workers: Given = ...,
    ahead: int | None = ...,
    known: Iterable[tuple[Weights, float]] = ...,
    bounds: Given = ...,
) -> OptimizeResult: ...


@overload
def minimize(
    F: Function, sample: Given, active: Function, n: int, *, steps: int, **given: Given
) -> algorithm.Result: ...


def minimize(F: Function, *args: Given, **given: Given) -> OptimizeResult | algorithm.Result:
    """Weights at which F is low. ``minimize(F, w0, budget=40_000, seed=0)`` needs nothing else.

    F(w) returns a number, the same for the same w or with noise. F(w, x) is of inputs, and its mean over these is what
    is low in the end: ``sample(k)`` gives the input of step k, or is an iterable of inputs (without it x is k), and
    ``active(x)`` the numbers of the weights that F reads for x (without it all; for a SciPy sparse row its columns).
    ``features(x)``, where F reads w through C w alone: C, dense or sparse, with a column for each weight (or for each
    one that ``active`` names), or its ``RowSpace``; then u is drawn in the space of the scores (perturb score).
    F(w1, w2), with ``rule`` comparison, says whether w1 is better: True, False, or None for a tie.

    w0: an array of any shape, a dict of arrays (F gets the same), or how many weights there are, which start at 0.
    budget: evaluations of F; ``seconds``, ``target`` (a loss that is low enough) and ``stall`` (evaluations without
    progress) end a run before. ``callback(result)`` sees the result so far now and then, and True ends the run.
    h, mu: for Algorithm 1 as it stands, with ``rule`` and ``step``; without them lengths are found by themselves.
    workers: a number of processes, or a pool (its ``map``, a joblib ``Parallel``, any function like ``map``); ``ahead``
    steps are asked at a time then, 16 if not given, and the result is the same for any workers with the same ``ahead``.
    known: pairs (w, F(w)) known before; the best of them is the start. ``progress``: lines on stderr, by default where
    that is a terminal.

    Returns a ``scipy.optimize.OptimizeResult``: x (as w0), fun, nfev, nit, success, message, and curve, rows of
    (evaluations, loss). A run that diverged, stood on a plateau or learned nothing has success False, says so in the
    message and in a warning, and still returns the best w seen.

    ``minimize(F, sample, active, n, h=, mu=, steps=)`` is Algorithm 1 step by step (``algorithm.run_steps``).
    """
    if "steps" in given:
        return algorithm.run_steps(F, *args, **given)
    return _minimize(F, *args, **given)


@dataclass
class _Space:
    """How w looks to F: an array of a shape, or a dict of them; inside it is one row."""

    shapes: dict[str, tuple[int, ...]] | tuple[int, ...]
    lower: Vector | None = None
    upper: Vector | None = None

    @classmethod
    def of(cls, w0: Weights) -> tuple[_Space, Vector]:
        if isinstance(w0, Mapping):
            parts = {str(name): _numbers(f"w0[{name!r}]", part) for name, part in w0.items()}
            if not parts:
                raise UsageError("w0 is empty; give it a weight")
            return cls({name: part.shape for name, part in parts.items()}), np.concatenate(
                [part.ravel() for part in parts.values()]
            )
        if isinstance(w0, int) and not isinstance(w0, bool):
            return cls((whole("w0", w0, 1),)), np.zeros(w0)
        w = _numbers("w0", w0)
        if not w.size:
            raise UsageError("w0 is empty; give it a weight")
        return cls(w.shape), w.ravel().copy()

    def shown(self, w: Vector) -> Weights:
        """w as F gets it: read-only, within the bounds."""
        if self.lower is not None:
            w = np.clip(w, self.lower, self.upper)
        w = w.view()
        w.flags.writeable = False
        return self.shaped(w)

    def shaped(self, w: Vector) -> Weights:
        if isinstance(self.shapes, tuple):
            return w.reshape(self.shapes)
        ends = np.cumsum([math.prod(shape) for shape in self.shapes.values()])[:-1]
        return {
            name: part.reshape(shape)
            for (name, shape), part in zip(self.shapes.items(), np.split(w, ends), strict=True)
        }


def _numbers(name: str, given: object) -> Vector:
    try:
        array = np.asarray(given)
    except (ValueError, TypeError):
        raise UsageError(f"{name} is no array of numbers") from None
    if array.dtype.kind not in "fiub":
        raise UsageError(f"{name} is {array.dtype}; give it real numbers")
    array = array.astype(np.float64)
    validation.finite(name, array)
    return array


@dataclass(frozen=True)
class _Call:
    """One evaluation, wherever it is done; F and the space go with it to another process."""

    F: Function
    space: _Space

    def __call__(self, task: tuple[tuple[Vector, ...], tuple[object, ...]]) -> object:
        points, x = task
        return self.F(*(self.space.shown(point) for point in points), *x)


class _Ended(Exception):  # noqa: N818
    """Ends a run: whether that is a success, and the message."""

    def __init__(self, success: bool, message: str) -> None:
        super().__init__(message)
        self.success, self.message = success, message


@dataclass
class _Run:
    """What a run has seen, and when it ends."""

    call: _Call
    w: Vector
    budget: int
    mapper: Callable[[Function, list[Given]], Iterable[object]]
    exact: bool = False
    seconds: float = math.inf
    target: float = -math.inf
    stall: int = 2**62
    callback: Callable[[OptimizeResult], object] | None = None
    progress: bool = False
    fault: str = ""  # what to change where it diverges
    flat: str = ""  # and where nothing changes

    nfev: int = 0
    nit: int = 0
    best: float = math.inf  # exact: the least value; else the least mean of a window
    best_w: Vector = field(default_factory=lambda: np.zeros(0))
    better_at: int = 0
    curve: list[tuple[int, float]] = field(default_factory=list)
    start: float = math.nan  # F(w0), where it was evaluated: exact, or the mean of some values
    first: tuple[float, float] | None = None  # mean and standard error of the first window
    last: tuple[float, float] = (math.nan, 0.0)
    start_w: Vector = field(default_factory=lambda: np.zeros(0))
    diverged: bool = False
    improved: bool = False  # a comparison was won
    steps: bool = False  # exact, and F is made of steps
    ends: list[Vector] = field(default_factory=list)  # its first window, and its last
    window: list[float] = field(default_factory=list)
    values: set[float] = field(default_factory=set)  # two of them at most: whether any value differs
    started: float = field(default_factory=time.monotonic)
    spoke: float = field(default_factory=time.monotonic)

    def evaluate(self, points: Sequence[tuple[Vector, ...]], x: Sequence[tuple[object, ...]]) -> list[Given]:
        """F at each; ends the run where the budget has no room for all of them."""
        if self.nfev + len(points) > self.budget:
            raise _Ended(True, f"the budget of {self.budget:,} evaluations is used up")
        if time.monotonic() - self.started > self.seconds:
            raise _Ended(True, f"{self.seconds:g} seconds are over")
        self.nfev += len(points)
        return list(self.mapper(self.call, list(zip(points, x, strict=True))))

    def see(self, w: Vector, values: Sequence[float], at_w: Sequence[float], points: Sequence[Vector] = ()) -> None:
        """Values of F near w, those at w itself, and where each of the former is, if F is exact; the best is kept, and
        a run that goes wrong is ended."""
        self.w = w
        for number, value in enumerate(values):
            if len(self.values) < 2:
                self.values.add(value)
            if self.exact and value < self.best:
                self.best, self.best_w, self.better_at = value, points[number].copy(), self.nfev
            if not self.exact and not math.isfinite(value):
                raise _Ended(False, f"F is {value} after {self.nfev:,} evaluations: it diverges; {self.fault}")
        if not self.start_w.size and at_w:
            self.start_w = w.copy()
            self.start = at_w[0] if math.isnan(self.start) else self.start
        self.window += at_w
        if len(self.values) == 1 and self.nfev >= min(_UNCHANGED, max(self.budget // 2, 4 * _REPEATED)):
            raise _Ended(False, f"a plateau: no perturbation changed F in {self.nfev:,} evaluations; {self.flat}")
        if self.best <= self.target:
            raise _Ended(True, f"F is {self.best:g}, at most the target of {self.target:g}")
        if self.exact and self.best < -_DEEP * max(1.0, abs(self.start)):
            raise _Ended(
                False,
                f"F is {self.best:.3g} after {self.nfev:,} evaluations and falls on: it seems to have no lower bound; "
                "`bounds` keep the weights in a range",
            )
        if len(self.window) >= (_WINDOW if self.exact else _NOISY_WINDOW):
            self.look()
        if self.nfev - self.better_at > self.stall:
            raise _Ended(True, f"no progress in {self.stall:,} evaluations")

    def compare(self, w: Vector, better: bool | None) -> None:
        """Whether the candidate was better; ties alone are a plateau, and no yes at all teaches nothing."""
        self.w = w
        if better is not None:
            self.values.update((0.0, 1.0))
        elif not self.values and self.nfev >= min(_UNCHANGED, max(self.budget // 2, 4 * _REPEATED)):
            raise _Ended(False, f"a plateau: {self.nfev:,} comparisons were ties; {self.flat}")
        if better:
            self.better_at, self.improved = self.nfev, True
        if self.nfev - self.better_at > self.stall:
            raise _Ended(True, f"no progress in {self.stall:,} evaluations")
        self.window.append(0.0 if better else 1.0)
        if len(self.window) >= _WINDOW:
            self.curve.append((self.nfev, float(np.mean(self.window))))
            self.window = []
            self.report()

    def look(self) -> None:
        """At the end of a window of values: the curve, divergence, the best mean; callback and progress."""
        window, self.window = np.array(self.window), []
        self.ends = [*self.ends[:1], window] if self.steps else []
        if not self.exact:
            mean, error = float(window.mean()), float(window.std() / math.sqrt(window.size))
            self.last = mean, error
            self.first = self.first or self.last
            if mean < self.best:
                self.best, self.best_w, self.better_at = mean, self.w.copy(), self.nfev
            if mean - self.first[0] > _FAR * max(abs(self.first[0]), 10 * self.first[1]) > 0:
                raise _Ended(
                    False,
                    f"it diverges: F is {mean:.3g} in the mean after {self.nfev:,} evaluations, "
                    f"{self.first[0]:.3g} at the start; {self.fault}",
                )
        self.curve.append((self.nfev, self.best if self.exact else self.last[0]))
        self.report()

    def report(self) -> None:
        """To the callback and to stderr."""
        if self.callback is not None and self.callback(self.result(True, "it goes on")):
            raise _Ended(True, "the callback ended it")
        now = time.monotonic()
        if self.progress and now - self.spoke > _SPEAKS:
            self.spoke = now
            print(f"{self.nfev:,} of {self.budget:,} evaluations, F {self.curve[-1][1]:.6g}", file=sys.stderr)  # noqa: T201

    def final(self) -> tuple[Vector, float]:
        """The best weights seen: where F is noisy the last ones, unless an earlier window was clearly better."""
        if self.exact or self.first is None:
            return (self.best_w, self.best) if self.best_w.size else (self.w, self.last[0])
        mean, error = self.last
        if self.diverged and not self.best < self.start:
            return self.start_w, self.start
        if not math.isfinite(mean) or mean > self.best + 4 * error:
            return self.best_w, self.best
        return self.w, mean

    def result(self, success: bool, message: str) -> OptimizeResult:
        """As SciPy has it."""
        w, fun = self.final()
        space = self.call.space
        if space.lower is not None:
            w = np.clip(w, space.lower, space.upper)
        return OptimizeResult(
            x=space.shaped(w.copy()),
            fun=fun,
            nfev=self.nfev,
            nit=self.nit,
            success=success,
            status=0 if success else 1,
            message=message,
            curve=np.array(self.curve).reshape(-1, 2),
        )


def _minimize(
    F: Function,
    w0: Weights,
    budget: int = 40_000,
    seed: int = 0,
    *,
    sample: Function | Iterable[Given] | None = None,
    active: Function | None = None,
    features: Function | None = None,
    rule: str | None = None,
    h: float | None = None,
    mu: float | None = None,
    step: str = "constant",
    noisy: bool | None = None,
    seconds: float = math.inf,
    target: float = -math.inf,
    stall: int | None = None,
    callback: Callable[[OptimizeResult], object] | None = None,
    progress: bool | None = None,
    workers: Given = None,
    ahead: int | None = None,
    known: Iterable[tuple[Weights, float]] = (),
    bounds: Given = None,
) -> OptimizeResult:
    if not callable(F):
        raise UsageError(f"F is a {type(F).__name__}; give a function of the weights")
    space, w = _Space.of(w0)
    _set_bounds(space, bounds, w.size)
    for point, _ in sorted(known, key=lambda each: -float(each[1])):  # the best one last
        its, w = _Space.of(point)
        if its.shapes != space.shapes:
            raise UsageError("known: a point that is not as w0 is")
    budget, seed = whole("budget", budget, 2), whole("seed", seed, 0)
    ahead = whole("ahead", ahead, 1) if ahead is not None else _AHEAD if workers is not None else 1
    if (h is None) != (mu is None):
        raise UsageError("h and mu: give both, or neither, and they are found by themselves")
    if rule is not None and (rule not in RULES or not RULES[rule].zeroth_order):
        raise UsageError(f"rule {shown(rule)}: choose {', '.join(name for name, r in RULES.items() if r.zeroth_order)}")
    chooses = rule is not None and RULES[rule].chooses
    arguments = _arguments(F)
    compares = chooses and sample is None and active is None and features is None and arguments == 2
    of_inputs = any(each is not None for each in (sample, active, features)) or (arguments == 2 and not compares)
    perturb = "active" if features is None else "score"
    given_lengths = "a smaller h" if h is not None else "give h and mu, or scale the weights to about 1"
    flat = (
        f"mu {mu:g} may be too small beside the weights: try a hundred times it"
        if mu is not None
        else "start elsewhere"
    )
    with ExitStack() as stack:
        call = _Call(F, space)
        run = _Run(
            call, w, budget, _mapper(workers, stack, call), seconds=seconds, target=target,
            stall=2**62 if stall is None else whole("stall", stall, 1), callback=callback,
            progress=sys.stderr.isatty() if progress is None else progress, fault=given_lengths, flat=flat,
        )  # fmt: skip
        try:
            if of_inputs or compares or rule is not None or h is not None:
                settings = None
                if h is not None and mu is not None:
                    settings = Settings(rule or "symmetric", perturb, h=float(h), mu=float(mu), step=step, seed=seed)
                optimizer = Optimizer(w.size, settings, w) if settings else Optimizer(
                    w.size, None, w, rule="comparison" if chooses else "symmetric", perturb=perturb, seed=seed
                )  # fmt: skip

                def ask(*x: Given) -> Proposal:
                    C = features(*x) if features is not None else None
                    if isinstance(C, RowSpace) or (C is not None and active is None):
                        return optimizer.ask(C=C)
                    return optimizer.ask(_active(active, x[0], w.size) if x else None, C)

                _by_proposals(run, optimizer, ask, _inputs(sample) if of_inputs else None, ahead, compares)
            else:
                _by_walk(run, w, seed, ahead, noisy)
            ended = _Ended(True, "the inputs have come to their end")
        except _Ended as stop:
            ended = stop
    return _result(run, ended, compares)


def _result(run: _Run, ended: _Ended, compares: bool) -> OptimizeResult:
    """The result, and a warning where nothing was learned."""
    success, message = ended.success, ended.message
    run.diverged = not success and "it diverges" in message
    if len(run.window) >= _NOISY_WINDOW // 2 and not run.exact and success:
        window = np.array(run.window)
        run.last = float(window.mean()), float(window.std() / math.sqrt(window.size))
        run.first = run.first or run.last
    fun = run.final()[1]
    if compares and success and not run.improved:
        success, message = False, f"learned nothing: no candidate was ever better; {run.flat}; {message}"
    elif not compares and success and len(run.curve) > 2 and ended.message[:3] != "F i":
        start, error = run.first if run.first is not None else (run.curve[0][1], 0.0)
        start = run.start if run.exact else start
        if run.exact and not fun < start:
            success, message = False, f"learned nothing: no point is below F(w0), {start:g}; {message}"
        elif len(run.ends) == 2 and not _lower(run.ends[1], run.ends[0]):
            why = f"F at the last {_WINDOW} points is not lower than at the first; start elsewhere"
            success, message = False, f"learned nothing: {why}; {message}"
        elif not run.exact and not math.isnan(fun) and not fun < start - 2 * math.hypot(error, run.last[1]):
            remedy = run.flat if run.fault == "a smaller h" else "F may be too noisy for this budget, or w0 the best"
            success, message = False, f"learned nothing: F is {fun:.4g} and was {start:.4g}; {remedy}; {message}"
    if not compares:
        run.curve.append((run.nfev, fun))
    if not success:
        warnings.warn(f"minimize: {message}", RuntimeWarning, stacklevel=4)
    return run.result(success, message)


def _lower(these: Vector, those: Vector) -> bool:
    """Whether one of these is likely to be below one of those: 2.4 standard errors above one half for 100 each."""
    pairs = these[:, None] - those
    return float((pairs < 0).mean() + 0.5 * (pairs == 0).mean()) > 0.6


def _by_walk(run: _Run, w: Vector, seed: int, ahead: int, noisy: bool | None) -> None:
    """F(w): line searches, or steps for noise, by what values at w0 say."""
    count = 1 if noisy is False else min(_REPEATED, run.budget)
    repeated = [_loss(value, 0) for value in run.evaluate([(w,)] * count, [()] * count)]
    run.exact = len(set(repeated)) == 1 if noisy is None else not noisy
    if not math.isfinite(repeated[0]):
        raise SparsezoError(f"F(w0) is {repeated[0]}; start where F is finite")
    run.see(w, repeated[:1] if run.exact else repeated, repeated, [w])
    run.start = repeated[0] if run.exact else math.fsum(repeated) / len(repeated)
    walk: Walk
    if not run.exact:
        walk = noisy_steps(w, repeated, seed, ahead)
    else:
        around = probes(w, seed)
        points = [point.values for point in around]
        losses = [_loss(value, 0) for value in run.evaluate([(each,) for each in points], [()] * len(points))]
        run.see(w, losses, losses, points)
        run.steps = made_of_steps(losses)
        walk = ranked_steps(w, seed) if run.steps else line_searches(w, repeated[0], seed, ahead)
    batch = next(walk)
    while True:
        points = [_at(batch.w, point) for point in batch.points]
        values = [_loss(value, batch.nit) for value in run.evaluate([(each,) for each in points], [()] * len(points))]
        run.nit = batch.nit
        at_w = values if run.exact else [value for value, point in zip(values, points, strict=True) if point is batch.w]
        run.see(batch.w, values, at_w, points)
        batch = walk.send([value if math.isfinite(value) else math.inf for value in values])


def _at(w: Vector, point: Point) -> Vector:
    if point.where is None:
        return point.values
    here = w.copy()
    here[point.where] = point.values
    return here


def _by_proposals(
    run: _Run, optimizer: Optimizer, ask: Function, inputs: Iterator[Given] | None, ahead: int, compares: bool
) -> None:
    """F(w, x), comparisons, and given h and mu: ask and tell, ``ahead`` proposals at a time; ``ask`` takes x."""
    where, serial = RULES[optimizer.settings.rule].points, run.mapper is _serial
    each, here = len(where), where.index(0) if 0 in where else -1
    symmetric = optimizer.settings.rule == "symmetric"
    W: Given = optimizer.state.W[:, 0]
    while True:
        asked: list[Proposal] = []
        tasks: list[tuple[Vector, ...]] = []
        x_of: list[tuple[Given, ...]] = []
        xs: list[tuple[Given, ...]]
        xs = [()] * ahead if inputs is None else [(x,) for x in itertools.islice(inputs, ahead)]
        for x in xs:
            proposal: Proposal = ask(*x)
            asked.append(proposal)
            points = [np.array(values) if values.size == W.size else values for values in proposal.outputs]
            if compares:
                tasks.append(tuple(_placed(W, proposal.x, values) for values in points))
                x_of.append(())
            elif not serial or ahead > 1:
                tasks += [(_placed(W, proposal.x, values),) for values in points]
                x_of += [x] * len(points)
        if not asked:
            return
        if tasks:
            told = run.evaluate(tasks, x_of)
        else:  # one at a time: the weights themselves, for a moment
            told = _in_place(run, W, asked[0], xs[0])
        for k, proposal in enumerate(asked):
            run.nit += 1
            if compares:
                answer = _which(told[k], proposal.step)
                optimizer.tell(proposal, "tie" if answer is None else "candidate" if answer else "incumbent")
                run.compare(W, answer)
            else:
                losses = [_loss(value, proposal.step) for value in told[each * k : each * (k + 1)]]
                at_w = [losses[here]]  # two-point and comparison: F(w) itself; baseline has nothing better
                if symmetric:
                    due = proposal.step % _LOOKED == 0
                    at_w = [_loss(run.evaluate([(W.copy(),)], [xs[k]])[0], proposal.step)] if due else []
                run.see(W, losses, at_w)
                optimizer.tell(proposal, losses if each > 1 else losses[0])


def _in_place(run: _Run, W: Vector, proposal: Given, x: tuple[object, ...]) -> list[object]:
    kept, told = W[proposal.x].copy(), []
    try:
        for values in proposal.outputs:
            W[proposal.x] = values
            told += run.evaluate([(W,)], [x])
    finally:
        W[proposal.x] = kept
    return told


def _placed(W: Vector, where: NDArray[np.int64], values: Vector) -> Vector:
    w = W.copy()
    w[where] = values
    return w


def _active(active: Function | None, x: Given, n: int) -> ArrayLike | None:
    if active is not None:
        return active(x)  # type: ignore[no-any-return]
    if issparse(x):
        if x.shape[-1] != n:
            raise UsageError(
                f"x has {x.shape[-1]} columns, and there are {n} weights; say with `active` which it reads"
            )
        return np.unique(x.tocoo().coords[-1])
    return None


def _inputs(sample: Function | Iterable[Given] | None) -> Iterator[Given]:
    if sample is None:
        return itertools.count()
    if callable(sample):
        return (sample(k) for k in itertools.count())
    if issparse(sample):
        table = sample.tocsr()  # type: ignore[attr-defined]
        return (table[k % table.shape[0]] for k in itertools.count())
    if not isinstance(sample, Iterable):
        raise UsageError(f"sample is a {type(sample).__name__}; give a function of the step, or inputs one by one")
    return iter(sample)


def _arguments(F: Function) -> int:
    """How many F must be given; 1 where nobody can tell."""
    try:
        given = inspect.signature(F).parameters.values()
    except (TypeError, ValueError):
        return 1
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(each.kind in plain and each.default is inspect.Parameter.empty for each in given) or 1


def _loss(value: Given, k: int) -> float:
    if np.ndim(value) == 0 and isinstance(value, np.ndarray):
        value = value.item()
    if isinstance(value, str | bytes) or not hasattr(value, "__float__") or np.ndim(value) or np.iscomplexobj(value):
        raise UsageError(f"step {k}: F must return a number, not {type(value).__name__}")
    return float(value)


def _which(value: Given, k: int) -> bool | None:
    if value is None or isinstance(value, bool | np.bool_):
        return None if value is None else bool(value)
    raise UsageError(
        f"step {k}: F(w1, w2) must say whether w1 is better: True, False, or None; not {shown(value, repr)}"
    )


def _serial(call: Function, tasks: list[Given]) -> Iterable[object]:
    return map(call, tasks)


def _mapper(workers: Given, stack: ExitStack, call: _Call) -> Callable[[Function, list[Given]], Iterable[object]]:
    """A map over whatever was given; processes of our own end with the run."""
    if workers is None or workers == 1:
        return _serial
    if isinstance(workers, int) and not isinstance(workers, bool):
        try:
            pickle.dumps(call)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise UsageError(
                f"workers {workers}: F cannot go to other processes ({error}); define it at the top of a module, "
                "or give a joblib Parallel"
            ) from None
        pool = stack.enter_context(ProcessPoolExecutor(whole("workers", workers, 1)))
        return lambda call, tasks: pool.map(call, tasks)
    if hasattr(workers, "map"):  # an executor, a pool of multiprocessing's or of Ray's
        return lambda call, tasks: workers.map(call, tasks)
    if type(workers).__module__.partition(".")[0] == "joblib":
        return lambda call, tasks: workers((call, (task,), {}) for task in tasks)
    if callable(workers):
        return lambda call, tasks: workers(call, tasks)
    raise UsageError(f"workers is a {type(workers).__name__}; give a number, a pool, or a function like map")


def _set_bounds(space: _Space, bounds: Given, n: int) -> None:
    """F gets weights that are clipped to the bounds, and so is the result."""
    if bounds is None:
        return
    if isinstance(bounds, Bounds):
        lower, upper = bounds.lb, bounds.ub
    else:
        try:
            pairs = [(-math.inf if a is None else float(a), math.inf if b is None else float(b)) for a, b in bounds]
        except (TypeError, ValueError):
            pairs = []
        if len(pairs) not in (1, n):
            raise UsageError(f"bounds: give (lower, upper) for each of {n:,} weights, or one pair in a list for all")
        lower, upper = zip(*pairs, strict=True)
    space.lower, space.upper = (np.broadcast_to(np.asarray(each, np.float64), n) for each in (lower, upper))
    if (space.lower > space.upper).any():
        raise UsageError("bounds: a lower one is above its upper one")


def scipy_method(
    fun: Function,
    x0: ArrayLike,
    args: tuple[Given, ...] = (),
    callback: Function | None = None,
    bounds: Given = None,
    constraints: Given = (),
    tol: float | None = None,
    maxfev: int | None = None,
    maxiter: int | None = None,
    disp: bool = False,
    **options: Given,
) -> OptimizeResult:
    """``scipy.optimize.minimize(fun, x0, method=sparsezo.scipy_method, options={"budget": 40_000, "seed": 0})``.

    Options are ``minimize``'s, and ``maxfev`` is another name for the budget. Weights are clipped to ``bounds``.
    Constraints are refused; gradients are not used.
    """
    for name in ("jac", "hess", "hessp"):
        options.pop(name, None)
    if np.size(constraints):
        raise UsageError("sparsezo.scipy_method takes no constraints; add what they cost to fun")
    if maxiter is not None:
        raise UsageError("sparsezo.scipy_method counts evaluations, not iterations; give `maxfev`")
    if maxfev is not None:
        options["budget"] = maxfev
    if tol is not None:
        raise UsageError("sparsezo.scipy_method has no tol; give `target` or `stall` among the options")
    return _minimize(
        lambda w: fun(np.array(w), *args),
        x0,
        bounds=bounds,
        callback=_scipy_callback(callback),
        progress=disp,
        **options,
    )


def _scipy_callback(callback: Function | None) -> Callable[[OptimizeResult], object] | None:
    """SciPy's callbacks take the weights, or by its name the result so far; StopIteration ends the run, too."""
    if callback is None:
        return None
    by_name = set(inspect.signature(callback).parameters) == {"intermediate_result"}

    def called(result: OptimizeResult) -> object:
        try:
            return callback(intermediate_result=result) if by_name else callback(result.x)
        except StopIteration:
            return True

    return called
