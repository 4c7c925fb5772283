"""Update rules: which feedback a learner asks for. What it makes of it, c, is ``kernels.coefficient``.

>>> RULES["comparison"].feedback
'whether the candidate is better'
"""

from __future__ import annotations

from dataclasses import dataclass

from sparsezo.kernels import codes


@dataclass(frozen=True)
class Rule:
    name: str
    code: int
    feedback: str  # what ``tell`` takes
    summary: str
    zeroth_order: bool  # learns from perturbed weights, so it needs a perturbation and mu
    incumbent: str | None = None  # where the output stands that the candidate, of w + mu u, is compared with


_LOSSES, _LOSS = "the losses of the two outputs", "the loss of the output"
_BETTER, _WHICH = "whether the candidate is better", "which output is better"

RULES = {
    rule.name: rule
    for rule in (
        Rule("two-point", codes.TWO_POINT, _LOSSES, "paper Sec. 4, eq. (2-point)", True, "w"),
        Rule("symmetric", codes.SYMMETRIC, _LOSSES, "two-point at w + mu u and w - mu u", True, "w - mu u"),
        Rule("comparison", codes.COMPARISON, _BETTER, "paper Sec. 4; learns from a yes only", True, "w"),
        Rule("preference", codes.PREFERENCE, _WHICH, "comparison that learns from both answers", True, "w"),
        Rule("baseline", codes.BASELINE, _LOSS, "paper Sec. 4; against the mean loss so far", True),
        Rule("first-order", codes.FIRST_ORDER, _LOSS, "paper's SFO: expected loss minimisation", False),
        Rule("supervised", codes.SUPERVISED, "the correct output", "full information: the upper bound", False),
    )
}
