"""Models of raters, for simulated feedback: people are not exact (``--feedback`` in train).

exact          the loss itself
flip:P         an answer wrong with probability P; for rules comparison, preference, part, label and pair
rating:K       K grades from a number of raters, each with a bias of its own, and noise: rating:5 or
               rating:5,NOISE,BIAS (standard deviations, 0.1 each unless given)
binary         a thumb up or down for an output, down with probability equal to its loss

>>> parse_feedback("flip:0.1")
Feedback(model='flip', noise=0.1, bias=0.0, levels=0)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from sparsezo.errors import UsageError, quoted
from sparsezo.kernels import codes

MODELS = {"exact": codes.EXACT, "flip": codes.FLIP, "rating": codes.RATING, "binary": codes.BINARY}
_MOST_GRADES = 1000
_SPREAD = 0.1  # of a rating's noise, and of raters' biases, where nothing is said


@dataclass(frozen=True)
class Feedback:
    """A model of raters and its numbers."""

    model: str = "exact"
    noise: float = 0.0
    bias: float = 0.0
    levels: int = 0

    @property
    def code(self) -> int:
        return MODELS[self.model]


def parse_feedback(text: str) -> Feedback:
    """A model from the way it is written on the command line, which also stands in settings and signatures."""
    name, _, rest = text.partition(":")
    try:
        rest.encode("ascii")  # float() reads the digits of other scripts, too
        numbers = [float(part) for part in rest.split(",")] if rest else []
        if name in ("exact", "binary") and not numbers:
            return Feedback(name)
        if name == "flip" and len(numbers) == 1 and 0 <= numbers[0] <= 1:
            return Feedback(name, noise=numbers[0])
        if name == "rating" and 1 <= len(numbers) <= 3 and 2 <= numbers[0] <= _MOST_GRADES and numbers[0].is_integer():
            noise, bias = (*numbers[1:], *[_SPREAD] * (3 - len(numbers)))
            if all(math.isfinite(spread) and spread >= 0 for spread in (noise, bias)):
                return Feedback(name, noise, bias, int(numbers[0]))
    except ValueError:
        pass
    raise UsageError(
        f"`feedback` {quoted(text)}: write exact, binary, flip:P with P from 0 to 1, or rating:K[,NOISE,BIAS] with K "
        f"from 2 to {_MOST_GRADES}"
    )


def parse_error(text: str) -> tuple[float, float]:
    """(Pr(yes, though wrong), Pr(no, though right)) that a learner believes of its raters, of "E" or "E0,E1".

    >>> parse_error("0.1"), parse_error("0,0.2")
    ((0.1, 0.1), (0.0, 0.2))
    """
    try:
        numbers = [float(part) for part in text.split(",")]
        e0, e1 = numbers if len(numbers) == 2 else numbers * 2
        if min(e0, e1) >= 0 and e0 + e1 < 1:
            return e0, e1
    except (ValueError, AttributeError):
        pass
    raise UsageError(f"`rater_error` {text}: write E below 0.5, or E0,E1 with a sum below 1, none below 0")


def checked_error(kind: str, e0: float, e1: float) -> tuple[float, float]:
    """Error rates that may be believed of an answer of this kind; only part and review have two kinds of error."""
    if kind == "rate" and (e0, e1) != (0, 0):
        raise UsageError(f"error {e0:g}, {e1:g}: rule rate takes losses, which are not right or wrong")
    if kind not in ("part", "review") and e0 != e1:
        two = "only part and review have two kinds of error; give the same number twice"
        raise UsageError(f"error {e0:g}, {e1:g}: {two}")
    if not (min(e0, e1) >= 0 and e0 + e1 < 1):
        raise UsageError(f"error {e0:g}, {e1:g}: none below 0, and a sum below 1")
    return float(e0), float(e1)
