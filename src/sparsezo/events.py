"""What an optimizer or learner did, as a log of events (``on_event``), and doing it again.

    {"event": "ask", "step", "x"}, {"event": "tell", "step", "feedback"}, {"event": "read"}

"next": true in an ask says that the learner chose the input itself.

optimizer.on_event = lambda event: log.write(json.dumps(event) + "\\n")
replay(Optimizer(n, settings), map(json.loads, log))            # the weights end the same
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from sparsezo.errors import DamagedError, UsageError, shown

if TYPE_CHECKING:
    from sparsezo.optimizer import Optimizer

Event = dict[str, Any]


def replay(optimizer: Optimizer, events: Iterable[Event], features: Callable[[Any], ArrayLike] | None = None) -> None:
    """Do again what ``on_event`` told of: asks, tells and readings in their order. The weights end the same.

    ``features``, for an Optimizer with score: the active weights' numbers to C, which no event holds.
    """
    if not isinstance(events, Iterable):
        raise UsageError(f"a log is a list of events, not a {type(events).__name__}")
    asked: dict[int, Any] = {}
    for number, event in enumerate(events, start=1):
        kind, step = _event(number, event)
        if kind == "ask":
            x = event["x"]
            given = (x,) if features is None else (x, features(x))
            proposal: Any = optimizer.ask(*(() if event.get("next") else given))
            if proposal.step != step:
                raise UsageError(f"step {step} of the log would be step {proposal.step} here: not its start")
            asked[proposal.step] = proposal
        elif kind == "tell":
            if step not in asked:
                raise UsageError(f"step {step}: the log answers what it never asked")
            optimizer.tell(asked.pop(step), event["feedback"])
        else:
            optimizer.weights()


_EVENTS = {"ask": {"step", "x"}, "tell": {"step", "feedback"}, "read": set()}  # and what each has


def _event(number: int, event: Any) -> tuple[str, int]:
    """(what it is, its step, -1 where it has none)."""
    where = f"event {number} of the log"
    if not isinstance(event, Mapping):
        raise DamagedError(where, f"it is {shown(event, repr)}")
    kind, step = event.get("event"), event.get("step", -1)
    if not isinstance(kind, str) or kind not in _EVENTS:
        raise DamagedError(where, f"it is {shown(kind, repr)}, and a log has ask, tell and read")
    if missing := _EVENTS[kind] - event.keys():
        raise DamagedError(where, f"it has no {', '.join(sorted(missing))}")
    if not isinstance(step, int) or isinstance(step, bool):
        raise DamagedError(where, f"its step is {shown(step, repr)}")
    return kind, step
