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
    incumbent: str | None = None  # where the output stands that the candidate is compared with
    chooses: bool = False  # of the two it is enough to say which is better
    asks: bool = False  # learns from what an answer says under the model's own distribution (docs/answers.md)
    rehearse: int = 0  # earlier answers usually gone over again after each new one: pairs gain nothing by it


_LOSSES, _LOSS = "the losses of the two outputs", "the loss of the output"
_BETTER, _WHICH = "whether the candidate is better", "which output is better"
_PAIR = f"{_WHICH}, or {_LOSSES}"

RULES = {
    rule.name: rule
    for rule in (
        Rule("two-point", codes.TWO_POINT, _LOSSES, "paper Sec. 4, eq. (2-point)", True, "w"),
        Rule("symmetric", codes.SYMMETRIC, _LOSSES, "two-point at w + mu u and w - mu u", True, "w - mu u"),
        Rule("comparison", codes.COMPARISON, _BETTER, "paper Sec. 4; learns from a yes only", True, "w", True),
        Rule("preference", codes.PREFERENCE, _WHICH, "comparison that learns from both answers", True, "w", True),
        Rule("baseline", codes.BASELINE, _LOSS, "paper Sec. 4; against the mean loss so far", True),
        Rule("first-order", codes.FIRST_ORDER, _LOSS, "paper's SFO: expected loss minimisation", False),
        Rule("pairwise", codes.PAIRWISE, _PAIR, "pairs sampled at w and -w (Sokolov et al. 2016)", False, "-w", True),
        Rule("cross-entropy", codes.CROSS_ENTROPY, _LOSS, "first-order, by 1 - loss (Sokolov et al. 2016)", False),
        Rule("supervised", codes.SUPERVISED, "the correct output", "full information: the upper bound", False),
        Rule("part", codes.PART, "yes or no", "is this part of the output right?", False, asks=True, rehearse=2),
        Rule("label", codes.LABEL, "the name of the right label", "which label is it?", False, asks=True, rehearse=2),
        Rule("span", codes.SPAN, "the span that is there", "which span is here, if any?", False, asks=True, rehearse=2),
        Rule("pair", codes.PAIR, "first, second or tie", "which of two outputs is better?", False, asks=True),
        Rule("rate", codes.RATE, "a loss from 0 to 1", "how bad is this output?", False, asks=True, rehearse=2),
    )
}
