"""What a learner asks, and what it takes for an answer.

proposal.as_json()                              # and Proposal.from_json: for people who answer tomorrow
losses_of("preference", "candidate")            # (0.0, 1.0)
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import SparsezoError, UsageError, shown
from sparsezo.rules import RULES

Feedback = float | tuple[float, float] | list[float] | bool | str


@dataclass(frozen=True, eq=False)
class Proposal:
    """A question: which of two is better, or how good is the one? Goes to JSON and back."""

    owner: str  # the id of the optimizer or learner that asks
    step: int  # with x it rebuilds the perturbation
    x: Any  # what it is about: an input's number (Learner), or the numbers of the active weights (Optimizer)
    candidate: NDArray[Any]  # Learner: the output decoded at w + mu u, first-order rules: sampled; Optimizer: w + mu u
    incumbent: NDArray[Any] | None  # at w (symmetric: w - mu u; pairwise: -w); None where the rule compares nothing
    log_chance: float | None = None  # first-order rules: log of the probability with which the outputs were drawn

    def as_json(self) -> dict[str, Any]:
        lists = {name: None if part is None else part.tolist() for name, part in self._arrays().items()}
        drawn = {} if self.log_chance is None else {"log_chance": self.log_chance}
        return {"owner": self.owner, "step": self.step, "x": np.asarray(self.x).tolist(), **lists, **drawn}

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Proposal:
        try:
            x, candidate, incumbent = given["x"], given["candidate"], given["incumbent"]
            chance = given.get("log_chance")
            return cls(
                str(given["owner"]),
                operator.index(given["step"]),
                operator.index(x) if not isinstance(x, list) else _row(x).astype(np.int64, casting="safe"),
                _row(candidate),
                None if incumbent is None else _row(incumbent),
                None if chance is None else float(chance),
            )
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise UsageError(f"not a proposal: {error!r}") from None

    def frozen(self) -> Proposal:
        """Its arrays read-only: what was asked stays what was asked."""
        for part in (self.x, self.candidate, self.incumbent):
            if isinstance(part, np.ndarray):
                part.flags.writeable = False
        return self

    @property
    def outputs(self) -> tuple[NDArray[Any], ...]:
        """What is shown: the candidate and, where the rule compares, the incumbent."""
        return (self.candidate,) if self.incumbent is None else (self.candidate, self.incumbent)

    def _arrays(self) -> dict[str, NDArray[Any] | None]:
        return {"candidate": self.candidate, "incumbent": self.incumbent}

    def same(self, other: object) -> bool:
        """Whether both ask the same."""
        if not isinstance(other, Proposal):
            return False
        mine, its = (self.x, self.candidate, self.incumbent), (other.x, other.candidate, other.incumbent)
        return self.step == other.step and all(np.array_equal(a, b) for a, b in zip(mine, its, strict=True))


def _row(given: Any) -> NDArray[Any]:
    """Numbers from JSON."""
    row = np.array(given)
    if row.ndim != 1 or (row.size and row.dtype.kind not in "if"):
        raise ValueError(f"{shown(given)} is no row of numbers")
    return row if row.size else row.astype(np.int64)


@dataclass(frozen=True)
class Info:
    """What a step did, for logs; nothing of it is needed to go on."""

    step: int
    c: float
    average_loss: float


_PREFERRED = {"candidate": (0.0, 1.0), "incumbent": (1.0, 0.0), "tie": (0.0, 0.0)}


def losses_of(rule: str, feedback: object) -> tuple[float, float]:
    """(F_plus, F_incumbent) of an answer; a bare preference is the loss 0 of the better one and 1 of the other."""
    pair = RULES[rule].incumbent is not None
    losses: tuple[float, float] | None = None
    if isinstance(feedback, tuple | list):
        losses = _numbers(feedback) if pair and len(feedback) == 2 else None
    elif isinstance(feedback, str | bool | np.bool_):
        if RULES[rule].chooses:
            word = feedback if isinstance(feedback, str) else ("candidate" if feedback else "incumbent")
            losses = _PREFERRED.get(word)
    elif not pair:
        losses = _numbers((feedback, 0.0))
    if losses is None:
        raise UsageError(f"feedback {shown(feedback, repr)}: rule {rule} takes {RULES[rule].feedback}")
    if not all(math.isfinite(loss) for loss in losses):
        raise SparsezoError(f"feedback {shown(feedback, repr)}: a loss must be finite")
    return losses


def _numbers(pair: Iterable[Any]) -> tuple[float, float] | None:
    try:
        first, second = map(_number, pair)
    except (TypeError, ValueError, OverflowError):
        return None
    return first, second


def _number(given: Any) -> float:
    """A real number of anybody's, Python's or NumPy's; text and arrays are none, though float() would take them."""
    if isinstance(given, float):
        return given
    if not hasattr(given, "__float__") or getattr(given, "ndim", 0) != 0 or np.iscomplexobj(given):
        raise TypeError
    return float(given)


def as_json(feedback: Any) -> Any:
    """As JSON has it."""
    if isinstance(feedback, tuple | list):
        return [float(each) for each in feedback]
    if isinstance(feedback, bool | np.bool_):
        return bool(feedback)
    return str(feedback) if isinstance(feedback, str) else float(feedback)
