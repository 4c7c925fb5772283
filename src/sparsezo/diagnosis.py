"""What a run's curve says of its settings: whether it stands on a plateau, or has learned nothing, and what to change.

A run that learns is left alone: ``remark`` is None. All is computed from the looks of a run (``training.CurvePoint``),
so a run that was stopped and gone on with hears the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sparsezo.rules import RULES
from sparsezo.settings import AUTO, Settings, rate_text

if TYPE_CHECKING:
    from sparsezo.training import CurvePoint

_LEAST_LOOKS = 12  # so that the last third of them shows how far a loss strays by chance
_LEAST_STEPS = 100  # between two looks
_SURE = 3.0  # standard deviations
_FINE = 0.2  # of the first loss: where chance alone is more than that, nothing can be said
_MANY = 0.5  # of the perturbations that change an output: they are long beside what the weights have come to
_FAR = 10.0  # times the loss at the start
LEAST_START = 0.01  # of a mean loss from 0 to 1: 100 of them tell no smaller one from 0


def losses(curve: Sequence[CurvePoint], scorer: bool = False) -> NDArray[np.float64]:
    """The mean loss between each two looks; a ``scorer`` tells of none where there was nothing to ask.

    >>> from sparsezo.training import CurvePoint
    >>> nothing = (float("nan"),) * 2
    >>> losses([CurvePoint(0, 0.0, 0.5, 0, *nothing), CurvePoint(10, 0.5, 0.5, 0, *nothing),
    ...         CurvePoint(20, 0.4, 0.5, 0, *nothing)]).round(2).tolist()
    [0.5, 0.3]
    """
    known = np.array([point.answers if scorer else point.iterations for point in curve], np.float64)
    totals = known * np.array([point.average_loss for point in curve])
    return np.asarray(np.diff(totals) / np.maximum(np.diff(known), 1))


def runaway(settings: Settings, curve: Sequence[CurvePoint], scorer: bool = False) -> bool:
    """Whether the loss before the last look was far above the start's."""
    if RULES[settings.rule].asks:  # what these show is chosen, and says little of the rest
        return False
    found = losses(curve, scorer)
    return found.size > 1 and bool(found[-1] > _FAR * max(found[0], LEAST_START))


def remark(settings: Settings, curve: Sequence[CurvePoint], scorer: bool = False) -> str | None:
    """What to say at the end of a run, in one line; None where there is nothing to say, or nothing can be known."""
    rule = RULES[settings.rule]
    if rule.asks or settings.rule == "supervised" or len(curve) < _LEAST_LOOKS:
        return None
    if curve[-1].iterations < _LEAST_STEPS * (len(curve) - 1):
        return None
    third = curve[-1 - len(curve) // 3 :]
    steps, answers = (getattr(third[-1], name) - getattr(third[0], name) for name in ("iterations", "answers"))
    compared = rule.incumbent is not None and settings.criterion == "map"
    if compared and rule.zeroth_order and answers == 0:
        smaller = "" if settings.h == AUTO else f", or a smaller `h` than {rate_text(settings.h)}"
        return (
            f"a plateau: no perturbation changed an output in the last {steps:,} steps: `mu` {settings.mu:g} is small "
            f"beside what the weights have come to; use a larger `mu`{smaller}"
        )
    found = losses(curve, scorer)
    last = found[-(len(third) - 1) :]
    chance = _SURE * float(last.std(ddof=1))
    if found[0] - last.mean() >= chance or chance > _FINE * found[0]:
        return None
    flat = f"nothing was learned: the mean loss was {found[0]:.3g} at first and is {last.mean():.3g}"
    if settings.h == AUTO:
        what = "give `h` a number" if settings.mu is None else "give `h` a number, or another `mu`"
    elif rule.zeroth_order and compared:
        what = "is probably too small" if answers > _MANY * steps else "is probably too large"
        what = f"`h` {rate_text(settings.h)} {what} for `mu` {settings.mu:g}; try `h` auto"
    else:
        what = f"`h` {rate_text(settings.h)} is probably too small or too large; try `h` auto"
    return f"{flat}; {what}, unless there is nothing left to learn"
