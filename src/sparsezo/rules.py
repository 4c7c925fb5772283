"""Update rules: which feedback a learner asks for. What it makes of it, c, is ``kernels.rules.coefficient``.

>>> RULES["comparison"].feedback
'whether the candidate is better'
"""

from __future__ import annotations

from dataclasses import dataclass

from sparsezo.kernels import coefficient as codes


@dataclass(frozen=True)
class Rule:
    name: str
    code: int
    feedback: str  # what ``Learner.tell`` takes
    summary: str

    @property
    def zeroth_order(self) -> bool:
        """Learns from perturbed weights, so it needs a perturbation and mu."""
        return self.code < codes.FIRST_ORDER

    @property
    def incumbent(self) -> str | None:
        """What the candidate output, of w + mu u, is compared with."""
        if not self.zeroth_order or self.code == codes.BASELINE:
            return None
        return "w - mu u" if self.code == codes.SYMMETRIC else "w"


RULES = {
    rule.name: rule
    for rule in (
        Rule("two-point", codes.TWO_POINT, "the losses of the two outputs", "paper Sec. 4, eq. (2-point)"),
        Rule("symmetric", codes.SYMMETRIC, "the losses of the two outputs", "two-point at w + mu u and w - mu u"),
        Rule("comparison", codes.COMPARISON, "whether the candidate is better", "paper Sec. 4; learns from a yes only"),
        Rule("preference", codes.PREFERENCE, "which output is better", "comparison that learns from both answers"),
        Rule("baseline", codes.BASELINE, "the loss of the output", "paper Sec. 4; against the mean loss so far"),
        Rule("first-order", codes.FIRST_ORDER, "the loss of the output", "paper's SFO: expected loss minimisation"),
        Rule("supervised", codes.SUPERVISED, "the correct output", "full information: the upper bound"),
    )
}
