"""Algorithm 1 (SZO-SP, paper Sec. 3) by ask and tell, for anyone's function of sparse weights.

    optimizer = Optimizer(1_000_000, Settings("two-point", "active", h=0.01, mu=0.01))
    proposal = optimizer.ask(active)                  # the numbers of the weights that the input at hand shows
    F_plus = F(proposal.candidate)                    # w[active] + mu u
    F_now = F(proposal.incumbent)                     # w[active]; symmetric: w[active] - mu u
    optimizer.tell(proposal, (F_plus, F_now))         # w[active] moves; RULES says what each rule wants to be told
    optimizer.weights()

A step costs what the active weights cost, never n, under every perturbation. ``Learner`` is the same object with
decoding: it shows outputs of a model instead of weights. Three rules hold for both:

- A proposal is answered once. Answers may come late and in any order; one that was never asked for, was answered
  before, or belongs to another optimizer is refused, and nothing changes.
- Reading is an event. Under ``all`` sleeping weights are owed their share of every step, and ``weights`` pays it; what
  follows depends on it. Readings that paid are counted in the state; asks, tells and readings can be watched
  (``on_event``), and ``replay`` does them again, bit for bit.
- Threads may share one object: every call holds its lock.

Where the losses told have gone far above those of the first 100 steps (ten times, in the mean of 100), that is said
once, with the setting at fault (``sparsezo.notes``); learning goes on.
"""

from __future__ import annotations

import math
import operator
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsezo import bounds
from sparsezo.divergence import RunawayLoss, endless_step, refuse_runaway
from sparsezo.errors import DataError, SparsezoError, UsageError, shown
from sparsezo.events import Event
from sparsezo.kernels import lazy, loop, random
from sparsezo.kernels.coefficient import coefficient
from sparsezo.kernels.inputs.one import OneInput
from sparsezo.options import make_options
from sparsezo.proposals import Feedback, Info, Proposal, as_json, losses_of
from sparsezo.questions import Question
from sparsezo.rules import RULES
from sparsezo.settings import Settings
from sparsezo.storage.container import damage, pack, unpack

_BLOCK = 1024  # rows that are settled with one call of the generator
_EMPTY = np.zeros((0, 0))
STATE = "the state"  # what it is called in messages
P = TypeVar("P", Proposal, Question)


class Asked(NamedTuple):
    """An open proposal, and the input it is about where only the caller had it."""

    proposal: Any  # a Proposal, or a Question
    inputs: Any = None


class Optimizer:
    """``state`` is what learning carries from step to step; with the open proposals it goes to bytes and back."""

    def __init__(self, n: int, settings: Settings, w0: ArrayLike | None = None) -> None:
        rule = RULES[settings.rule]
        if not rule.zeroth_order:
            raise UsageError(f"rule {settings.rule} needs a model's own distribution; use Learner on a task")
        if settings.criterion != "map":
            raise UsageError(f"criterion {settings.criterion} is about a model's outputs; use Learner on a task")
        settings.refuse_batch("is of a Learner's run(); ask several before you tell")
        self._begin(settings, whole("n", n, 1), 1, np.float64, w0)

    def _begin(self, settings: Settings, n: int, L: int, dtype: Any, W: Any, copy: bool = True) -> None:
        """n rows of L weights each, at 0, or at a copy of W or in W itself."""
        self.settings = settings
        self.id = secrets.token_hex(8)
        self.on_event: Callable[[Event], None] | None = None
        self._params = settings.step_params()
        self._lock = threading.RLock()
        self._open: dict[int, Asked] = {}
        self._work: loop.Workspace | None = None
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
        counts = self.state.counts
        known = counts[loop.ANSWERS] if RULES[self.settings.rule].asks else counts[loop.STEP] - counts[loop.SILENT]
        return float(self.state.sums[loop.LOSS]), int(known)

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
    def open_proposals(self) -> list[Any]:
        """Those that wait for their answer, oldest first."""
        with self._lock:
            return [asked.proposal for _, asked in sorted(self._open.items())]

    def weights(self) -> NDArray[Any]:
        """A copy of all weights, up to date: under ``all`` what sleeping ones are owed is paid first."""
        with self._lock:
            self._settle_all()
            refuse_runaway(self.state, self.settings, f"step {self.step}: ")
            return self._copy()

    def _copy(self) -> NDArray[Any]:
        return self.state.W[:, 0].copy()

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
            if self.on_event is not None:
                self.on_event({"event": "read"})

    # Ask and tell

    def ask(self, active: ArrayLike, C: ArrayLike | None = None) -> Proposal:
        """A candidate and an incumbent for the weights ``active``, distinct numbers from 0 to n - 1.

        C, rows x len(active): where the loss reads w through C w[active] alone; ``score`` wants it.
        """
        with self._lock:
            indices = bounds.distinct(active, self.state.W.shape[0])
            inputs = OneInput(indices, self._basis(indices, C))
            work = self._room(indices.size)
            step = int(self.state.counts[loop.ASKED])
            loop.perturb(inputs, self._params, 0, step, self.state, work)
            S, V = work.S[: indices.size, 0], work.V[: indices.size, 0]
            mu, incumbent = self._params.mu, RULES[self.settings.rule].incumbent
            before = {"w": S.copy(), "w - mu u": S - mu * V}.get(incumbent or "")
            return self._opened(Proposal(self.id, step, indices.view(), S + mu * V, before), inputs)

    def tell(self, proposal: Proposal, feedback: Feedback) -> Info:
        """Learn from the answer to a proposal. What an answer is depends on the rule (``RULES[...].feedback``):

        two-point, symmetric: the two losses (candidate, incumbent); baseline, first-order, cross-entropy: one;
        comparison, preference, pairwise: "candidate", "incumbent", "tie" (True, False: the first two), or two losses.
        """
        with self._lock:
            asked = self._asked(proposal)
            F_plus, F_incumbent = losses_of(self.settings.rule, feedback)
            params, state = self._params, self.state
            counts, sums = state.counts.copy(), state.sums.copy()
            mean = loop.count_step(params, F_plus, F_plus, state)
            state.counts[loop.ANSWERS] += 1
            c = float(coefficient(params.rule, params.h, params.mu, F_plus, F_incumbent, mean))
            if not math.isfinite(c + state.sums[loop.LOSS]):
                state.counts[:], state.sums[:] = counts, sums
                raise endless_step(self.settings, asked.proposal.step)
            del self._open[asked.proposal.step]
            if not isinstance(feedback, str | bool | np.bool_):  # a loss, and no preference alone
                self._watch.note(self.step, F_plus)
            if c != 0:
                c = self._move(asked, c)
            if self.on_event is not None:
                self.on_event({"event": "tell", "step": asked.proposal.step, "feedback": as_json(feedback)})
            return Info(asked.proposal.step, c, self.average_loss)

    def _opened(self, proposal: P, inputs: Any = None, *, own: bool = False) -> P:
        """``own``: the learner chose the input itself."""
        self.state.counts[loop.ASKED] += 1
        loop.count_question(self.state)
        self._open[proposal.step] = Asked(proposal.frozen(), inputs)
        if self.on_event is not None:
            event = {"event": "ask", "step": proposal.step, "x": np.asarray(proposal.x).tolist()}
            self.on_event({**event, "next": True} if own else event)
        return proposal

    def _asked(self, proposal: Proposal | Question) -> Asked:
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
        if asked.proposal is not proposal and not asked.proposal.same(proposal):
            raise UsageError(f"step {proposal.step}: this is not what was asked; tell the proposal as ask() gave it")
        return asked

    def _move(self, asked: Asked, c: float) -> float:
        """Move the weights for what was asked earlier; returns c as it was applied."""
        step, work = asked.proposal.step, self._room(asked.proposal.x.size)
        loop.move_again(asked.inputs, self._params, 0, step, c, self.state, work)
        return c

    def _basis(self, active: NDArray[np.int64], C: ArrayLike | None) -> NDArray[np.float64]:
        """Orthonormal columns that span the rows of C, for score; empty for the others, which take u as it is."""
        if self.settings.perturb != "score":
            return _EMPTY
        if C is None:
            raise UsageError("perturb score needs C, where the loss reads w through C w[active] alone")
        try:
            given = np.asarray(C)
        except (ValueError, TypeError):
            raise UsageError(f"C is no table of numbers; make it rows x {active.size}") from None
        if given.dtype.kind not in "fiub":
            raise UsageError(f"C is {given.dtype}; make it a table of numbers, rows x {active.size}")
        if given.ndim != 2 or given.shape[1] != active.size:
            raise UsageError(f"C has shape {given.shape}; make it rows x {active.size}, as active is long")
        rows = given.astype(np.float64)
        if not np.isfinite(rows).all():
            raise SparsezoError("C is not finite")
        try:
            _, sizes, directions = np.linalg.svd(rows, full_matrices=False)
        except np.linalg.LinAlgError:
            raise SparsezoError("C has no singular values; are its numbers far too large?") from None
        rank = int((sizes > max(rows.shape) * np.finfo(float).eps * sizes.max(initial=0)).sum())
        return np.ascontiguousarray(directions[:rank].T)

    def _room(self, size: int) -> loop.Workspace:
        """Scratch for so many active weights."""
        if self._work is None or self._work.S.shape[0] < size:
            self._work = workspace(size, size, 1, 1, np.float64)
        return self._work

    # To bytes and back

    def to_bytes(self) -> bytes:
        """All that is needed to go on bit for bit, open proposals included. Nothing in it is pickled."""
        with self._lock:
            refuse_runaway(self.state, self.settings, f"step {self.step}: ")
            meta = {
                "id": self.id,
                "settings": self.settings.as_dict(),
                "open": [asked.proposal.as_json() for asked in self._open.values()],
            }
            arrays = dict(self.state._asdict())
            for step, asked in self._open.items():
                if asked.inputs is not None:
                    arrays[f"basis.{step}"] = asked.inputs.basis
            return pack("state", meta, arrays)

    @classmethod
    def from_bytes(cls, raw: bytes) -> Self:
        meta, arrays, settings = state_of(raw)
        with damage(STATE):
            optimizer = cls(len(arrays["W"]), settings)
        optimizer._restore(meta, arrays)
        return optimizer

    def __copy__(self) -> Self:
        """One with weights of its own, at the same step; what is open at one is open at the other."""
        return type(self).from_bytes(self.to_bytes())

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.__copy__()

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickled as its bytes."""
        return type(self).from_bytes, (self.to_bytes(),)

    def make_room_for(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Before a state is taken over that may have grown."""

    def _restore(self, meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        self.make_room_for(arrays)
        for name, mine in self.state._asdict().items():
            its = arrays.get(name)
            if its is None or its.shape != mine.shape or its.dtype != mine.dtype:
                raise DataError(STATE, f"is of another problem or settings: {name} does not fit")
            mine[...] = its
        with damage(STATE):
            self.check_state()
            self.id = str(meta["id"])
            for given in meta["open"]:
                proposal: Any = (Question if "kind" in given else Proposal).from_json(given)
                self._open[proposal.step] = self._reopened(proposal, arrays.get(f"basis.{proposal.step}"))
            asked, told = self.state.counts[[loop.ASKED, loop.STEP]].tolist()
            if len(self._open) != asked - told or not all(0 <= step < asked for step in self._open):
                raise ValueError("its open proposals are not those that wait for an answer")

    def check_state(self) -> None:
        """Whether a state that was taken over can be one of this optimizer's."""
        check_state(self.state)

    def _reopened(self, proposal: Any, basis: NDArray[Any] | None) -> Asked:
        """As ``ask`` made it, from bytes."""
        active = bounds.distinct(proposal.x, self.state.W.shape[0])
        for values in (proposal.candidate, proposal.incumbent):
            if values is not None:
                bounds.array("a proposal's weights", values, "if", active.shape)
        bounds.array("a basis", basis, "f", (active.size, None) if self.settings.perturb == "score" else _EMPTY.shape)
        if basis is None or basis.shape[1] > active.size or not np.isfinite(basis).all():
            raise ValueError("a basis that spans nothing")
        return Asked(replace(proposal, x=active.view()).frozen(), OneInput(active, basis.astype(np.float64)))


def workspace(rows: int, columns: int, L: int, outputs: int, dtype: Any) -> loop.Workspace:
    """Scratch for inputs of at most so many rows, columns and outputs."""
    rows, columns, outputs = max(rows, 1), max(columns, 1), max(outputs, 1)

    def table(n: int) -> NDArray[Any]:
        return np.zeros((n, L), dtype)

    return loop.Workspace(
        S=table(rows),
        T=table(rows),
        V=table(rows),
        Z=table(max(rows, columns)),
        D=table(rows),
        U=table(columns),
        row=np.zeros(L, dtype),
        y=np.zeros(outputs, np.int32),
        incumbent=np.zeros(outputs, np.int32),
        q=np.zeros(4, np.int32),
    )


def state_of(raw: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]], Settings]:
    """(head, arrays, settings) of a state as ``to_bytes`` wrote it."""
    if not isinstance(raw, bytes | bytearray | memoryview):
        raise UsageError(f"a state is bytes, as to_bytes() gives them, not a {type(raw).__name__}")
    meta, arrays = unpack(bytes(raw), "state", STATE)
    with damage(STATE):
        settings = make_options(Settings, meta["settings"], STATE)
    return meta, arrays, settings


def check_state(state: loop.State) -> None:
    """Numbers that a run can come to."""
    for name in ("W", "q", "Q_row", "sums", "said"):
        bounds.finite(name, getattr(state, name))
    if (state.counts < 0).any() or (state.q <= -1).any():
        raise UsageError("counts or sums of squares below 0")
    if state.Q_row.size and not 0 <= state.Q_row.min() <= state.Q_row.max() <= state.sums[loop.Q_TOTAL]:
        raise UsageError("weights that are owed less than nothing")


def whole(name: str, value: object, least: int) -> int:
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = least - 1
    if number < least or isinstance(value, bool):
        raise UsageError(f"{name} {shown(value)}: must be a whole number, {least} or more")
    return number


def _start(W: Any, n: int, L: int, dtype: Any, copy: bool) -> NDArray[Any]:
    """The weights to start from: a copy, or themselves, which are then not read through."""
    name = "the weights to start from"
    start = bounds.weights(name, W, (n, L), dtype)
    if not copy:
        if not np.may_share_memory(start, W) or not start.flags.writeable:
            raise UsageError(f"{name} must be a {np.dtype(dtype)} array in C order that can be written, to learn in it")
        return start.view(np.ndarray)
    bounds.finite(name, start)
    return start.copy()
