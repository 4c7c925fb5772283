"""Ask and tell: ``AskTell`` is what all learners share, ``Optimizer`` is Algorithm 1 (SZO-SP, paper Sec. 3) on it.

    optimizer = Optimizer(1_000_000)                  # or with Settings("two-point", "active", h=0.01, mu=0.01)
    proposal = optimizer.ask(active)                  # the numbers of the weights that the input at hand shows
    F_plus = F(proposal.candidate)                    # at w[active] + mu u: values of the active weights alone
    F_minus = F(proposal.incumbent)                   # at w[active] - mu u; two-point and comparison: w[active]
    optimizer.tell(proposal, (F_plus, F_minus))       # w[active] moves; RULES says what each rule wants to be told
    optimizer.weights()

``Learner`` and ``QueryLearner`` show outputs of a task's model instead of weights. A step costs what the active weights
cost, never n, under every perturbation. Three rules hold for all of them:

- A proposal is answered once. Answers may come late and in any order; one that was never asked for, was answered
  before, or belongs to another learner is refused, and nothing changes.
- Reading is an event. Under ``all`` sleeping weights are owed their share of every step, and ``weights`` pays it; what
  follows depends on it. Asks, tells and readings can be watched (``on_event``), and ``replay`` does them again.
- Threads may share one object: every call holds its lock.

Where the losses told have gone far above those of the first 100 steps, that is said once (``RunawayLoss``).
"""

from __future__ import annotations

import math
import operator
import secrets
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Generic, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from sparsezo import validation
from sparsezo.automatic import AutomaticStep
from sparsezo.errors import DamagedError, DataError, DivergedError, UsageError, shown
from sparsezo.kernels import codes, lazy, loop, random
from sparsezo.messages import say
from sparsezo.questions import Feedback, Info, Json, Proposal, Question, as_json, losses_of
from sparsezo.row_space import RowSpace
from sparsezo.rules import RULES
from sparsezo.settings import AUTO, Settings, rate_text
from sparsezo.storage.container import damage, pack, unpack
from sparsezo.validation import Array

_BLOCK = 1024  # rows that are settled with one call of the generator
_TINY = 1e-6  # a mu below that is more likely to be at fault than an h of at most 1
_WINDOW = 100  # losses whose mean is looked at
_FAR = 10  # times the start's
_EARLIER = {  # numbers of a state before there were TOKENS, LOOKED, CORRECTIONS and WHOLE; and SQUARES
    "counts": (9, loop.N_COUNTS),
    "sums": (4, loop.N_SUMS),
}
AUTOMATIC = ("symmetric", "comparison")  # rules whose h and mu are found by themselves
STATE = "the state"  # what it is called in messages
Event = Json  # {"event": "ask", "step", "x"}, and likewise tell, finish and read (_EVENTS)
Arrays = Mapping[str, Array]
Features = Callable[[object], ArrayLike | RowSpace]  # the active weights' numbers to C
P = TypeVar("P", Proposal, Question)  # what a learner asks


class AskTell(ABC, Generic[P]):
    """What learners share: ``state``, which is all that learning carries from step to step, a lock, what is asked and
    not yet answered, events, and the way to bytes and back.

    ``settings``: the rule and its numbers; n rows of L weights of type ``dtype`` start at 0, or at a copy of W, or
    (``copy`` false) in W itself.
    """

    def __init__(
        self, settings: Settings, n: int, L: int, dtype: DTypeLike, W: ArrayLike | None, *, copy: bool = True
    ) -> None:
        self.settings = settings
        self.id = secrets.token_hex(8)
        self.on_event: Callable[[Event], None] | None = None
        self._params = settings.step_params()
        self._lock = threading.RLock()
        self._open: dict[int, P] = {}
        self._watch = RunawayLoss(settings)
        try:
            self.state = loop.State(
                W=np.zeros((n, L), dtype) if W is None else _start(W, n, L, dtype, copy),
                q=np.zeros((n if settings.step == "adagrad" else 0, L), dtype),
                Q_row=np.zeros(n if settings.perturb == "all" else 0),
                counts=np.zeros(loop.N_COUNTS, np.int64),
                sums=np.zeros(loop.N_SUMS),
                questions=np.zeros((0, 0), np.int32),
                about=np.zeros(0, np.int32),
                said=np.zeros(0),
                errors=np.zeros((0, 2)),
            )
        except (MemoryError, ValueError, OverflowError):
            raise UsageError(f"n {shown(n)}: this machine has no room for so many weights") from None

    # What it has done

    @property
    def step(self) -> int:
        """Steps that are done: asked and told."""
        return int(self.state.counts[loop.STEP])

    @property
    def updates(self) -> int:
        """Steps that moved the weights."""
        return int(self.state.counts[loop.UPDATES])

    @property
    def readings(self) -> int:
        """Readings of all weights that paid what sleeping ones were owed; 0 but under ``all``."""
        return int(self.state.counts[loop.READINGS])

    @property
    def average_loss(self) -> float:
        """The average cumulative loss of the candidates so far (paper Sec. 5); rules that ask: of what they showed."""
        total, known = self.told_losses
        return total / max(known, 1)

    @property
    def told_losses(self) -> tuple[float, int]:
        """(their sum, how many) of what ``average_loss`` is of."""
        return float(self.state.sums[loop.LOSS]), self.step - int(self.state.counts[loop.SILENT])

    @property
    def map_average_loss(self) -> float | None:
        """The same of the best outputs at w + mu u, as the paper defines it, where ``average_loss`` is of risks."""
        if self.settings.criterion == "map":
            return None
        return float(self.state.sums[loop.MAP_LOSS]) / max(self.step, 1)

    @property
    def questions(self) -> int:
        """What a person has been asked: where two outputs are equal, or nothing is worth a question, nothing."""
        return int(self.state.counts[loop.QUESTIONS])

    @property
    def answers(self) -> int:
        """How many of these have been answered."""
        return int(self.state.counts[loop.ANSWERS])

    @property
    def tokens(self) -> int:
        """Tokens (parts of an output) of the inputs that these were about, each as often as it was shown."""
        return int(self.state.counts[loop.TOKENS])

    @property
    def looked(self) -> int:
        """Parts that whoever answered was to look at: one of a single question, all or the marked ones of a review."""
        return int(self.state.counts[loop.LOOKED])

    @property
    def whole(self) -> int:
        """Of ``looked``, the tokens of inputs that were reviewed as a whole; a part that is marked takes longer."""
        return int(self.state.counts[loop.WHOLE])

    @property
    def corrections(self) -> int:
        """Corrections made by hand: spans set or removed in reviews, another span or type in the place of one shown."""
        return int(self.state.counts[loop.CORRECTIONS])

    @property
    def open_proposals(self) -> list[P]:
        """Those that wait for their answer, oldest first."""
        with self._lock:
            return [proposal for _, proposal in sorted(self._open.items())]

    def weights(self) -> Array:
        """A copy of all weights, up to date: under ``all`` what sleeping ones are owed is paid first."""
        with self._lock:
            self._settle_all()
            self._refuse_runaway()
            return self.state.W.copy()

    def _settle_all(self) -> None:
        state = self.state
        if not state.Q_row.size:
            return
        n, L = state.W.shape
        paid = lazy.settle_all(
            self._params.keys[random.DEBT],
            state.counts[loop.SETTLEMENTS],
            state.sums[loop.Q_TOTAL],
            state.Q_row,
            np.empty((min(n, _BLOCK), L), state.W.dtype),
            state.W,
        )
        if paid != state.counts[loop.SETTLEMENTS]:
            state.counts[loop.SETTLEMENTS] = paid
            state.counts[loop.READINGS] += 1
            self._tell_of({"event": "read"})

    # Ask and tell

    @abstractmethod
    def tell(self, proposal: P, feedback: Any) -> Info:
        """Learn from the answer to what ``ask`` gave; says what the step did."""

    def finish(self, passes: int = 1) -> None:
        """Go over all answers once more, where they are remembered (``QueryLearner``)."""
        raise UsageError(f"rule {self.settings.rule} remembers no answers to go over")

    @abstractmethod
    def ask_again(self, event: Event, features: Features | None) -> P:
        """Ask as an event says that it was asked."""

    def _opened(self, proposal: P, *, own: bool = False) -> P:
        """``own``: the learner chose the input itself."""
        self.state.counts[loop.ASKED] += 1
        loop.count_question(self.state)
        self._open[proposal.step] = proposal.frozen()
        if self.on_event is not None:
            event = {"event": "ask", "step": proposal.step, "x": np.asarray(proposal.x).tolist()}
            self._tell_of({**event, "next": True} if own else event)
        return proposal

    def _tell_of(self, event: Event) -> None:
        if self.on_event is not None:
            self.on_event(event)

    def _asked(self, proposal: P) -> P:
        """The open proposal as it was made; says why where there is none."""
        if not isinstance(proposal, Proposal | Question) or not isinstance(proposal.step, int):
            raise UsageError(f"tell() takes a proposal as ask() gave it, not {shown(proposal)}")
        if proposal.owner != self.id:
            raise UsageError(f"step {proposal.step}: this proposal is of another learner ({proposal.owner})")
        asked = self._open.get(proposal.step)
        if asked is None:
            never = not 0 <= proposal.step < self.state.counts[loop.ASKED]
            why = "was never asked" if never else "has been answered already; a proposal is answered once"
            raise UsageError(f"step {proposal.step}: {why}")
        if asked is not proposal and not asked.same(proposal):
            raise UsageError(f"step {proposal.step}: this is not what was asked; tell the proposal as ask() gave it")
        return asked

    def _learn_from_losses(self, proposal: P, feedback: Feedback, move: Callable[[P, float], float]) -> Info:
        """The step of a rule that is told losses: c by ``coefficient``, and ``move`` applies it and returns it."""
        with self._lock:
            asked, params, state = self._asked(proposal), self._params, self.state
            F_plus, F_incumbent, *further = losses_of(self.settings.rule, feedback)
            counts, sums = state.counts.copy(), state.sums.copy()
            mean = loop.count_step(params, F_plus, F_plus, state)
            state.counts[loop.ANSWERS] += 1
            if params.own is None:
                c = self._coefficient(asked, F_plus, F_incumbent, mean)
            else:
                losses = np.array([F_plus, F_incumbent, *further])[: params.points.size]
                h, mu = (params.h, params.mu) if params.unit == 0 else (1.0, 1.0)
                c = float(params.own(losses, h, mu, mean))
                c = c if params.unit == 0 else float(loop.automatic_coefficient(params, c, state))
            if not math.isfinite(c + state.sums[loop.LOSS] + state.sums[loop.SQUARES]):
                state.counts[:], state.sums[:] = counts, sums
                raise DivergedError(f"step {asked.step}: it is not finite; {fault_of_weights(self.settings)}")
            del self._open[asked.step]
            if not isinstance(feedback, str | bool | np.bool_):  # a loss, and no preference alone
                self._watch.note(self.step, F_plus)
            if c != 0:
                c = move(asked, c)
            if self.on_event is not None:
                self._tell_of({"event": "tell", "step": asked.step, "feedback": as_json(feedback)})
            return Info(asked.step, c, self.average_loss)

    def _coefficient(self, asked: P, F_plus: float, F_incumbent: float, mean: float) -> float:
        return float(loop.step_coefficient(self._params, F_plus, F_incumbent, mean, self.state))

    # To bytes and back

    def to_bytes(self) -> bytes:
        """All that is needed to go on bit for bit, open proposals included. Nothing in it is pickled."""
        with self._lock:
            self._refuse_runaway()
            waiting = [proposal.as_json() for proposal in self._open.values()]
            meta = {"id": self.id, "settings": self.settings.as_dict(), "open": waiting, **self._more_of_state()}
            return pack("state", meta, {**self.state._asdict(), **self._arrays_of_proposals()})

    def _refuse_runaway(self) -> None:
        """Where Adagrad's sums of squares are infinite, no step moves a weight any more."""
        for array, what in ((self.state.W, "the weights"), (self.state.q, "Adagrad's sums of squares")):
            refuse_not_finite(array, self.settings, f"step {self.step}: ", what)

    def _more_of_state(self) -> Json:
        """What a state has beside settings, arrays and open proposals."""
        return {}

    def _arrays_of_proposals(self) -> dict[str, Array]:
        """What open proposals need and do not hold."""
        return {}

    @abstractmethod
    def _from_own_bytes(self, raw: bytes) -> Self:
        """Another one, from bytes of this one."""

    def __copy__(self) -> Self:
        """One with weights of its own, at the same step; what is open at one is open at the other."""
        return self._from_own_bytes(self.to_bytes())

    def __deepcopy__(self, memo: object) -> Self:
        return self.__copy__()

    def make_room_for(self, arrays: Arrays) -> None:
        """Before a state is taken over that may have grown."""

    def _restore(self, meta: Json, arrays: Arrays) -> None:
        self.make_room_for(arrays)
        arrays = with_all_counts(arrays, self.state)
        for name, mine in self.state._asdict().items():
            its = arrays.get(name)
            if its is None and name == "errors":  # of an earlier version, in which all answers had the settings' own
                its = np.tile(np.array([self._params.e0, self._params.e1]), (len(mine), 1))
            if its is None or its.shape != mine.shape or its.dtype != mine.dtype:
                raise DataError(STATE, f"is of another problem or settings: {name} does not fit")
            mine[...] = its
        with damage(STATE):
            self.check_state()
            self.id = str(meta["id"])
            for given in meta["open"]:
                proposal = self._reopened(given, arrays)
                self._open[proposal.step] = proposal.frozen()
            asked, told = self.state.counts[[loop.ASKED, loop.STEP]].tolist()
            if len(self._open) != asked - told or not all(0 <= step < asked for step in self._open):
                raise ValueError("its open proposals are not those that wait for an answer")

    @abstractmethod
    def _reopened(self, given: Json, arrays: Arrays) -> P:
        """What ``ask`` made, from bytes."""

    def check_state(self) -> None:
        """Whether a state that was taken over is one that a run can come to."""
        state = self.state
        for name in ("W", "q", "Q_row", "sums", "said", "errors"):
            validation.finite(name, getattr(state, name))
        if (state.counts < 0).any() or (state.q <= -1).any():
            raise UsageError("counts or sums of squares below 0")
        if (state.counts > 2**62).any():
            raise UsageError("counts of more than any run can come to")
        if state.Q_row.size and not 0 <= state.Q_row.min() <= state.Q_row.max() <= state.sums[loop.Q_TOTAL]:
            raise UsageError("weights that are owed less than nothing")


class Optimizer(AskTell[Proposal]):
    """Algorithm 1 for anyone's function of n sparse weights, which start at 0 or at w0.

    Without ``settings`` h and mu are found by themselves (``automatic``), for ``rule`` symmetric (two losses) or
    comparison (which of two is better) and ``perturb`` active or score; ``settings`` are of a zeroth-order rule, and
    its h and mu are as they say.

    >>> optimizer = Optimizer(5)
    >>> for _ in range(500):
    ...     proposal = optimizer.ask([1, 3])          # the input at hand shows the weights 1 and 3
    ...     F = [float(((values - [2, -1]) ** 2).sum()) for values in proposal.outputs]  # values of these two alone
    ...     info = optimizer.tell(proposal, F)
    >>> optimizer.weights().round(1).tolist()
    [0.0, 2.0, 0.0, -1.0, 0.0]
    """

    def __init__(
        self,
        n: int,
        settings: Settings | None = None,
        w0: ArrayLike | None = None,
        *,
        rule: str | None = None,
        perturb: str | None = None,
        seed: int = 0,
    ) -> None:
        automatic = settings is None
        if settings is None:
            if (rule or "symmetric") not in AUTOMATIC:
                raise UsageError(f"rule {shown(rule)} without settings: choose {', '.join(AUTOMATIC)}")
            if (perturb or "active") not in ("active", "score"):
                raise UsageError(f"perturb {shown(perturb)} without settings: choose active, score")
            settings = Settings(rule or "symmetric", perturb or "active", seed=whole("seed", seed, 0))
        elif rule is not None or perturb is not None or seed != 0:
            raise UsageError("settings have a rule, a perturbation and a seed: leave out `rule`, `perturb` and `seed`")
        if not RULES[settings.rule].zeroth_order:
            raise UsageError(f"rule {settings.rule} needs a model's own distribution; use Learner on a task")
        if settings.criterion != "map":
            raise UsageError(f"criterion {settings.criterion} is about a model's outputs; use Learner on a task")
        if settings.h == AUTO:
            raise UsageError("h auto is a task's: leave out settings, and h and mu are found by themselves")
        super().__init__(settings, whole("n", n, 1), 1, np.float64, w0)
        self._perturbed: dict[int, tuple[NDArray[np.int64], Array]] = {}  # open ones: active weights, u
        self._seen = np.zeros(self.state.W.shape[0], np.int32)  # scratch: whether an input names a weight twice
        self._automatic: AutomaticStep | None = None
        if automatic:
            W = self.state.W.reshape(-1)
            self._automatic = AutomaticStep(W, W.copy(), RULES[settings.rule].chooses)

    def weights(self) -> NDArray[np.float64]:
        """A copy of all n weights, up to date."""
        return super().weights()[:, 0]

    @property
    def mu(self) -> float:
        """The size of the perturbation as it is now; with settings: theirs."""
        return self._params.mu if self._automatic is None else self._automatic.mu

    def ask(self, active: ArrayLike | None = None, C: ArrayLike | RowSpace | None = None) -> Proposal:
        """A candidate and an incumbent for the weights ``active``, distinct numbers from 0 to n - 1; None: all n.

        Both are values of the active weights alone, in the order of ``active``, which is ``proposal.x``.
        C, rows x len(active), dense or sparse: where the loss reads w through C w[active] alone; ``score`` wants it.
        A ``RowSpace`` in its place is C factored before, and knows the active weights.
        """
        with self._lock:
            step, mu = int(self.state.counts[loop.ASKED]), self._params.mu
            space = self._space(active, C) if self.settings.perturb == "score" else None
            indices = self._numbers(active) if space is None else space.active
            self._settle(indices)
            u: Array = self._direction(step, indices, space)
            w: Array = self.state.W.reshape(-1)[indices]
            if self._automatic is not None:
                mu = self._automatic.length(step, indices, w, u.size if space is None else space.rank)
            points = (float(point) * mu for point in self._params.points)
            candidate, *others = (w if length == 0 else w + length * u for length in points)
            self._perturbed[step] = indices, u
            before = others[0] if others else None
            return self._opened(Proposal(self.id, step, indices.view(), candidate, before, others=tuple(others[1:])))

    def ask_many(self, actives: int | Iterable[ArrayLike]) -> list[Proposal]:
        """Proposals to be evaluated side by side, all from the weights as they are: so many about all weights, or one
        for each row of active weights."""
        rows = [None] * whole("actives", actives, 1) if isinstance(actives, int | np.integer) else actives
        with self._lock:
            return [self.ask(active) for active in rows]

    def ask_again(self, event: Event, features: Features | None) -> Proposal:
        C = None if features is None else features(event["x"])
        return self.ask(None if isinstance(C, RowSpace) else event["x"], C)

    def tell(self, proposal: Proposal, feedback: Feedback) -> Info:
        """Learn from the answer to a proposal. What an answer is depends on the rule (``RULES[...].feedback``):

        two-point, symmetric: the two losses (candidate, incumbent); baseline: the candidate's;
        comparison, preference: "candidate", "incumbent", "tie" (True, False: the first two), or two losses.
        """
        with self._lock:
            info = self._learn_from_losses(proposal, feedback, self._move)
            del self._perturbed[info.step]
            return info

    def tell_many(self, proposals: Iterable[Proposal], feedback: Iterable[Feedback]) -> list[Info]:
        """``tell`` for each of them, in their order."""
        return [self.tell(proposal, said) for proposal, said in zip(proposals, feedback, strict=True)]

    def tell_known(self, w: ArrayLike, loss: float) -> bool:
        """A point that was not asked, and its loss: where that is below the mean told so far, or nothing was told yet,
        the weights go there. Says whether they did."""
        with self._lock:
            if self.settings.perturb == "all":
                raise UsageError("perturb all owes weights what they slept through; start from a known point by w0")
            n, L = self.state.W.shape
            values = _start(w, n, L, np.float64, copy=True)
            goes = self.step == 0 or float(loss) < self.average_loss
            self._tell_of({"event": "known", "w": values[:, 0].tolist(), "loss": float(loss)})
            if goes:
                self.state.W[:] = values
                if self._automatic is not None:
                    self._automatic.put_elsewhere()
            return goes

    def _coefficient(self, asked: Proposal, F_plus: float, F_incumbent: float, mean: float) -> float:
        if self._automatic is None:
            return super()._coefficient(asked, F_plus, F_incumbent, mean)
        return self._automatic.coefficient(asked.step, self._perturbed[asked.step][0], F_plus, F_incumbent)

    def _move(self, asked: Proposal, c: float) -> float:
        """w[active] += c u, or Adagrad's step (design 2.4)."""
        (active, u), state, h = self._perturbed[asked.step], self.state, self._params.h
        self._settle(active)
        W: Array = state.W.reshape(-1)
        move: Array = np.multiply(u, c, out=u)  # nobody needs u any more
        if state.q.size:
            g, q = move / h, state.q.reshape(-1)
            q[active] += g * g
            move = h * g / np.sqrt(1 + q[active])
        w = W[active]
        if self._automatic is not None:
            self._automatic.moved(active, w, move)
        w += move
        W[active] = w
        state.counts[loop.UPDATES] += 1
        if state.Q_row.size:
            state.sums[loop.Q_TOTAL] += c * c
            state.Q_row[active] = state.sums[loop.Q_TOTAL]
        return c

    def _numbers(self, active: ArrayLike | None) -> NDArray[np.int64]:
        n = self.state.W.shape[0]
        return np.arange(n) if active is None else validation.distinct(active, n, self._seen)

    def _space(self, active: ArrayLike | None, C: ArrayLike | RowSpace | None) -> RowSpace:
        """C factored, and about weights that there are."""
        n = self.state.W.shape[0]
        if C is None:
            raise UsageError("perturb score needs C, where the loss reads w through C w[active] alone")
        if not isinstance(C, RowSpace):
            C = RowSpace(C, None if active is None else self._numbers(active))
        elif active is not None:
            raise UsageError("a RowSpace knows its active weights: leave out `active`")
        if C.width not in (None, n):
            raise UsageError(f"C has {C.width} columns, and there are {n} weights; say with `active` which they are")
        validation.below("active", C.active, n)
        return C

    def _settle(self, active: NDArray[np.int64]) -> None:
        """Pay these weights what they slept through, under ``all`` (design 2.2)."""
        state = self.state
        if state.Q_row.size:
            state.counts[loop.SETTLEMENTS] = lazy.settle_columns(
                active, 0, active.size, self._params.keys[random.DEBT], state.counts[loop.SETTLEMENTS],
                state.sums[loop.Q_TOTAL], state.Q_row, np.empty((active.size, 1)), state.W,
            )  # fmt: skip

    def _direction(self, step: int, active: NDArray[np.int64], space: RowSpace | None) -> NDArray[np.float64]:
        """u of a step: as many normals as weights are active; for score, as many as C has independent rows."""
        u = np.empty(active.size if space is None else space.rank)
        random.fill_normals(self._params.keys[random.PERTURBATION], step, u)
        return u if space is None else space.direction(u)

    def _arrays_of_proposals(self) -> dict[str, Array]:
        arrays: dict[str, Array] = {}
        if self.settings.perturb == "score":  # of the others u is drawn again
            arrays |= {f"u.{step}": u for step, (_, u) in self._perturbed.items()}
        if self._automatic is not None:
            arrays["start"] = self._automatic.start
        return arrays

    def _more_of_state(self) -> Json:
        return {} if self._automatic is None else {"automatic": self._automatic.as_json()}

    @classmethod
    def from_bytes(cls, raw: bytes) -> Self:
        """The optimizer that ``to_bytes`` made ``raw`` of; it goes on bit for bit."""
        meta, arrays, settings = state_of(raw)
        with damage(STATE):
            optimizer = cls(len(arrays["W"]), settings)
            if "automatic" in meta:
                start = validation.weights("the start", arrays["start"], optimizer.state.W.shape, np.float64)[:, 0]
                validation.finite("the start", start)
                optimizer._automatic = AutomaticStep(
                    optimizer.state.W.reshape(-1), start.copy(), RULES[settings.rule].chooses
                )
                optimizer._automatic.restore(meta["automatic"])
                if set(optimizer._automatic.open) != {proposal["step"] for proposal in meta["open"]}:
                    raise ValueError("a mu that belongs to no proposal")
        optimizer._restore(meta, arrays)
        return optimizer

    def _from_own_bytes(self, raw: bytes) -> Self:
        return self.from_bytes(raw)

    def __reduce_ex__(self, protocol: object) -> tuple[Callable[[bytes], Self], tuple[bytes]]:
        """Pickled as its bytes."""
        return type(self).from_bytes, (self.to_bytes(),)

    def _reopened(self, given: Json, arrays: Arrays) -> Proposal:
        proposal = Proposal.from_json(given)
        active = validation.distinct(proposal.x, self.state.W.shape[0])
        for values in proposal.outputs:
            validation.array("a proposal's weights", values, "if", active.shape)
        u = arrays.get(f"u.{proposal.step}") if self.settings.perturb == "score" else None
        if self.settings.perturb == "score":
            validation.array("u", u, "f", active.shape)
            validation.finite("u", np.asarray(u))
        self._perturbed[proposal.step] = active, self._direction(proposal.step, active, None) if u is None else u
        return replace(proposal, x=active.view())


def workspace(rows: int, columns: int, L: int, outputs: int, dtype: DTypeLike) -> loop.Workspace:
    """Scratch for inputs of at most so many rows, columns and outputs."""
    rows, columns, outputs = max(rows, 1), max(columns, 1), max(outputs, codes.CANDIDATES)
    sizes = {"S": rows, "T": rows, "V": rows, "Z": max(rows, columns), "D": rows, "U": columns}
    return loop.Workspace(
        **{name: np.zeros((n, L), dtype) for name, n in sizes.items()},
        row=np.zeros(L, dtype),
        y=np.zeros(outputs, np.int32),
        incumbent=np.zeros(outputs, np.int32),
        more=np.zeros((codes.MOST_POINTS - 2, outputs), np.int32),
        losses=np.zeros(codes.MOST_POINTS),
        q=np.zeros(4, np.int32),
    )


def with_all_counts(arrays: Arrays, mine: loop.State) -> Arrays:
    """A state of an earlier version, which counted less: what it did not count is 0, and no input was looked at."""
    more = {} if "unsure" in arrays else {"unsure": np.ones_like(mine.unsure)}
    for name, (earlier, now) in _EARLIER.items():
        its = arrays.get(name)
        if its is not None and its.ndim == 1 and earlier <= its.size < now:
            more[name] = np.append(its, np.zeros(now - its.size, its.dtype))
    return {**arrays, **more}


def state_of(raw: bytes) -> tuple[Json, Arrays, Settings]:
    """(head, arrays, settings) of a state as ``to_bytes`` wrote it."""
    if not isinstance(raw, bytes | bytearray | memoryview):
        raise UsageError(f"a state is bytes, as to_bytes() gives them, not a {type(raw).__name__}")
    meta, arrays = unpack(bytes(raw), "state", STATE)
    with damage(STATE):
        settings = Settings.from_dict(meta["settings"], STATE)
    return meta, arrays, settings


def whole(name: str, value: object, least: int) -> int:
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = least - 1
    if number < least or isinstance(value, bool):
        raise UsageError(f"{name} {shown(value)}: must be a whole number, {least} or more")
    return number


def _start(W: ArrayLike, n: int, L: int, dtype: DTypeLike, copy: bool) -> Array:
    """The weights to start from: a copy, or themselves, which are then not read through."""
    name = "the weights to start from"
    start = validation.weights(name, W, (n, L), dtype)
    if not copy:
        if not np.may_share_memory(start, W) or not start.flags.writeable:
            raise UsageError(f"{name} must be a {np.dtype(dtype)} array in C order that can be written, to learn in it")
        return start.view(np.ndarray)
    validation.finite(name, start)
    return start.copy()


# Doing it again


def replay(optimizer: AskTell[P], events: Iterable[Event], features: Features | None = None) -> None:
    """Do again what ``on_event`` told of: asks, tells and readings in their order. The weights end the same.

        optimizer.on_event = lambda event: log.write(json.dumps(event) + "\\n")
        replay(Optimizer(n, settings), map(json.loads, log))

    ``features``, for an Optimizer with score: the active weights' numbers to C, which no event holds.
    """
    if not isinstance(events, Iterable):
        raise UsageError(f"a log is a list of events, not a {type(events).__name__}")
    asked: dict[int, P] = {}
    for number, event in enumerate(events, start=1):
        kind, step = _event(number, event)
        if kind == "ask":
            proposal = optimizer.ask_again(event, features)
            if proposal.step != step:
                raise UsageError(f"step {step} of the log would be step {proposal.step} here: not its start")
            asked[proposal.step] = proposal
        elif kind == "tell":
            if step not in asked:
                raise UsageError(f"step {step}: the log answers what it never asked")
            optimizer.tell(asked.pop(step), event["feedback"])
        elif kind == "finish":
            optimizer.finish(event["passes"])
        elif kind == "known" and isinstance(optimizer, Optimizer):
            optimizer.tell_known(event["w"], event["loss"])
        else:
            optimizer.weights()


_EVENTS = {  # and what each has
    "ask": {"step", "x"},
    "tell": {"step", "feedback"},
    "finish": {"passes"},
    "read": set[str](),
    "known": {"w", "loss"},
}


def _event(number: int, event: object) -> tuple[str, int]:
    """(what it is, its step, -1 where it has none)."""
    given = event if isinstance(event, Mapping) else {}
    kind, step = given.get("event"), given.get("step", -1)
    if not isinstance(kind, str) or kind not in _EVENTS:
        wrong = kind if isinstance(event, Mapping) else event
        why = f"it is {shown(wrong, repr)}, and a log has {', '.join(_EVENTS)}"
    elif missing := _EVENTS[kind] - given.keys():
        why = f"it has no {', '.join(sorted(missing))}"
    elif not isinstance(step, int) or isinstance(step, bool):
        why = f"its step is {shown(step, repr)}"
    else:
        return kind, step
    raise DamagedError(f"event {number} of the log", why)


# Learning that has gone wrong for good, and the setting at fault


def refuse_not_finite(W: Array, settings: Settings, where: str = "", what: str = "the weights") -> None:
    """DivergedError, with the setting at fault, where weights are infinite or no numbers."""
    if not validation.all_finite(W):
        raise DivergedError(f"{where}{what} are not finite; {fault_of_weights(settings)}")


def not_finite(settings: Settings, step: int, S: Array, T: Array) -> DivergedError:
    """What to say of a step whose score or loss is not finite: S = C w, T the scores at w + mu u."""
    fault = fault_of_weights(settings)
    if validation.all_finite(S) and not validation.all_finite(T):
        fault = f"`mu` {settings.mu:g} is probably too large, try a tenth of it"
    elif validation.all_finite(S) and settings.criterion == "annealed" and settings.gamma > 1:
        fault = f"`gamma` {settings.gamma:g} is probably too large, try a tenth of it"
    return DivergedError(f"step {step}: the scores or the loss are not finite; {fault}")


def fault_of_weights(settings: Settings) -> str:
    """A step is as long as h / mu: either can make it too long."""
    h = rate_text(settings.h)
    if settings.mu is not None and settings.mu < _TINY and (isinstance(settings.h, str) or settings.h <= 1):
        return f"`mu` {settings.mu:g} is probably too small for `h` {h}, try ten times it"
    if isinstance(settings.h, str):
        return f"`h` {h} is too large here, give a number"
    return f"`h` {h} is probably too large, try a tenth of it"


class RunawayLoss:
    """Watches the losses of a run, and says once where the mean of 100 is ten times the start's: h is at fault.

    ``first``: the mean at the start, where a run goes on from elsewhere; else it is that of the first ones noted, by
    their size, as losses may be negative. ``least``: a smaller one is taken for this.
    """

    def __init__(self, settings: Settings, first: float | None = None, least: float = 0.0) -> None:
        self.settings, self.first, self.least, self.said = settings, first, least, False
        self._sum, self._size, self._count = 0.0, 0.0, 0

    def note(self, step: int, total: float, count: int = 1) -> None:
        """``count`` more losses, ``total`` in sum, after ``step`` steps."""
        if self.said:
            return
        self._sum, self._size, self._count = self._sum + total, self._size + abs(total), self._count + count
        if self._count < _WINDOW:
            return
        mean, size = self._sum / self._count, self._size / self._count
        if self.first is None:
            self.first = size
        elif mean > _FAR * max(self.first, self.least) > 0:
            self.said = True
            say(
                f"step {step:,}: the loss has gone far above the start's, {mean:.3g} in the mean of the last "
                f"{self._count:,} against {self.first:.3g}; {fault_of_weights(self.settings)}"
            )
        self._sum, self._size, self._count = 0.0, 0.0, 0
