"""Learning that has gone wrong for good, and the setting at fault: h, mu or gamma.

refuse_not_finite(W, settings, "step 300: ")      # DivergedError where weights are infinite or no numbers
refuse_unheard(learner, gold, W)                  # ... where mu or gamma is too small to change anything
watch = RunawayLoss(settings)                     # says once when losses have gone far above the start's
watch.note(step, loss)                            # of each step, or watch.note(step, sum_of_losses, so_many)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sparsezo import notes
from sparsezo.bounds import all_finite
from sparsezo.errors import DivergedError
from sparsezo.rules import RULES

if TYPE_CHECKING:
    from sparsezo.learner import Learner
    from sparsezo.settings import Settings

_TINY = 1e-6  # a mu below that is more likely to be at fault than an h of at most 1
_HEARD = 0.01  # of the scores that a perturbation is to change: with fewer, only some new feature's weight does
_REHEARSED = 32  # steps
_NO_END = 2**62  # of answers
_WINDOW = 100  # losses whose mean is looked at
_FAR = 10  # times the start's
LEAST_START = 0.01  # where losses are of 0 to 1: 100 of them tell no smaller mean from 0
_FAINT = 1e-7  # gamma * mu: of a difference between expected losses, about


def refuse_not_finite(W: NDArray[Any], settings: Settings, where: str = "", what: str = "the weights") -> None:
    if not all_finite(W):
        raise DivergedError(f"{where}{what} are not finite; {_of_the_weights(settings)}")


def refuse_runaway(state: Any, settings: Settings, where: str) -> None:
    """Weights, or Adagrad's sums of squares: where those are infinite, no step moves a weight any more."""
    refuse_not_finite(state.W, settings, where)
    refuse_not_finite(state.q, settings, where, "Adagrad's sums of squares")


def not_finite(settings: Settings, step: int, S: NDArray[Any], T: NDArray[Any]) -> DivergedError:
    """What to say of a step whose score or loss is not finite: S = C w, T the scores at w + mu u."""
    if not all_finite(S):
        fault = _of_the_weights(settings)
    elif not all_finite(T):
        fault = f"`mu` {settings.mu:g} is probably too large, try a tenth of it"
    elif settings.criterion == "annealed" and settings.gamma > 1:
        fault = f"`gamma` {settings.gamma:g} is probably too large, try a tenth of it"
    else:
        fault = _of_the_weights(settings)
    return DivergedError(f"step {step}: the scores or the loss are not finite; {fault}")


def endless_step(settings: Settings, step: int) -> DivergedError:
    """What to say of losses that are finite and ask for a step that is not."""
    return DivergedError(f"step {step}: it is not finite; {_of_the_weights(settings)}")


def _of_the_weights(settings: Settings) -> str:
    """A step is as long as h / mu: either can make it too long."""
    if settings.mu is not None and settings.mu < _TINY and settings.h <= 1:
        return f"`mu` {settings.mu:g} is probably too small for `h` {settings.h:g}, try ten times it"
    return f"`h` {settings.h:g} is probably too large, try a tenth of it"


class RunawayLoss:
    """Watches the losses of a run, and says once where their mean has gone far above the start's: h is at fault.

    The means are of 100 losses, or of more where they come as sums. ``first``: the mean at the start, where a run goes
    on from elsewhere; else it is that of the first ones noted, by their size, as losses may be negative. ``least``: a
    smaller one is taken for this.
    """

    def __init__(self, settings: Settings, first: float | None = None, least: float = 0.0) -> None:
        self.settings, self.first, self.least, self.said = settings, first, least, False
        self._sum = self._size = 0.0
        self._count = 0

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
            notes.say(
                f"step {step:,}: the loss has gone far above the start's, {mean:.3g} in the mean of the last "
                f"{self._count:,} against {self.first:.3g}; {_of_the_weights(self.settings)}"
            )
        self._sum = self._size = 0.0
        self._count = 0


def refuse_unheard(learner: Learner, gold: Any, W: NDArray[Any]) -> None:
    """A mu that no score notices, or a gamma that no expected loss does: nothing can be learned any more."""
    settings, kind = learner.settings, W.dtype
    if not RULES[settings.rule].zeroth_order or settings.mu is None:
        return
    if settings.mu < float(np.finfo(kind).smallest_subnormal) / 2:
        raise DivergedError(f"`mu` {settings.mu:g} is 0 as {kind}, which weights are: it changes no score; {_LARGER}")
    largest = float(max(W.max(initial=0), -W.min(initial=0)))
    lost = settings.mu < float(np.finfo(kind).eps) * largest  # within the last bit of the largest weight
    faint = settings.criterion == "annealed" and settings.gamma * settings.mu < _FAINT
    if not (lost or faint):
        return
    heard, weights_move = rehearsed(learner, gold)
    if lost and (heard < _HEARD or not weights_move):
        raise DivergedError(
            f"step {learner.step}: `mu` {settings.mu:g} is so small beside weights of {largest:.2g} that it changes no "
            f"output: nothing can be learned; {_LARGER}, or a smaller `h` than {settings.h:g}"
        )
    if faint and not weights_move:
        raise DivergedError(
            f"step {learner.step}: `gamma` {settings.gamma:g} is so small that no perturbation changes the expected "
            "loss: nothing can be learned; use a larger one"
        )


def rehearsed(learner: Learner, gold: Any) -> tuple[float, bool]:
    """Some of the next steps, on a copy: the share of scores that mu u changes, and whether weights move."""
    from sparsezo.decoding import workspace_of
    from sparsezo.kernels import loop

    state = loop.State._make(part.copy() for part in learner.state)
    perturbed = changed = 0
    for _ in range(_REHEARSED):
        work = workspace_of(learner.problem)  # 0 but for the rows of this one step's input
        if not loop.run(*learner.parts(gold), state.counts[loop.STEP] + 1, _NO_END, state, work):
            raise learner.not_finite(int(state.counts[loop.ASKED]))
        perturbed += int(np.count_nonzero(work.V))
        changed += int(np.count_nonzero(work.S != work.T))
    return changed / max(perturbed, 1), bool(state.counts[loop.UPDATES] > learner.updates)


_LARGER = "use a larger `mu`"
