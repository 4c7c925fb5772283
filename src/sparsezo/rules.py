"""Update rules, which feedback a learner asks for (what it makes of it, c, is ``kernels.coefficient``); and laws of u.

>>> RULES["comparison"].feedback
'whether the candidate is better'
"""

from __future__ import annotations

from dataclasses import dataclass

from sparsezo.kernels import codes

ZEROTH_ORDER = "zeroth-order"  # learns from perturbed weights, so it needs a perturbation and mu
FIRST_ORDER = "first-order"  # learns from the model's own distribution
QUERY = "query"  # learns from what an answer to a question says under that distribution (docs/answers.md)


@dataclass(frozen=True)
class Rule:
    """An update rule. Its ``family`` says which learner has it, and which settings it takes."""

    name: str
    code: int
    feedback: str  # what ``tell`` takes
    family: str
    incumbent: str | None = None  # where the output stands that the candidate is compared with
    chooses: bool = False  # of the two it is enough to say which is better
    rehearse: int = 0  # earlier answers usually gone over again after each new one: pairs gain nothing by it
    finish: int = 0  # times that all of them usually are at the end of a run

    @property
    def zeroth_order(self) -> bool:
        return self.family == ZEROTH_ORDER

    @property
    def asks(self) -> bool:
        return self.family == QUERY

    @property
    def losses(self) -> int:
        """How many losses a step asks for: the candidate's, and the incumbent's where the rule compares."""
        return 1 if self.incumbent is None else 2


_LOSSES, _LOSS = "the losses of the two outputs", "the loss of the output"
_BETTER, _WHICH = "whether the candidate is better", "which output is better"

RULES = {
    rule.name: rule
    for rule in (
        Rule("two-point", codes.TWO_POINT, _LOSSES, ZEROTH_ORDER, "w"),  # paper Sec. 4, eq. (2-point)
        Rule("symmetric", codes.SYMMETRIC, _LOSSES, ZEROTH_ORDER, "w - mu u"),  # two-point at w + mu u and w - mu u
        Rule("comparison", codes.COMPARISON, _BETTER, ZEROTH_ORDER, "w", True),  # paper Sec. 4; from a yes only
        Rule("preference", codes.PREFERENCE, _WHICH, ZEROTH_ORDER, "w", True),  # learns from both answers
        Rule("baseline", codes.BASELINE, _LOSS, ZEROTH_ORDER),  # paper Sec. 4; against the mean loss so far
        Rule("first-order", codes.FIRST_ORDER, _LOSS, FIRST_ORDER),  # paper's SFO: expected loss minimisation
        Rule("pairwise", codes.PAIRWISE, f"{_WHICH}, or {_LOSSES}", FIRST_ORDER, "-w", True),  # Sokolov et al. 2016
        Rule("cross-entropy", codes.CROSS_ENTROPY, _LOSS, FIRST_ORDER),  # by 1 - loss (Sokolov et al. 2016)
        Rule("supervised", codes.SUPERVISED, "the correct output", FIRST_ORDER),  # full information: the upper bound
        Rule("part", codes.PART, "yes or no", QUERY, rehearse=2),  # is this part of the output right?
        Rule("label", codes.LABEL, "the name of the right label", QUERY, rehearse=2),
        Rule("span", codes.SPAN, "the span that is there", QUERY, rehearse=2),
        Rule("review", codes.REVIEW, "right, or the output as it should be", QUERY, rehearse=10, finish=5),
        Rule("pair", codes.PAIR, "first, second or tie", QUERY),  # which of two outputs is better?
        Rule("best", codes.BEST, "the place of the best one", QUERY),  # which of some outputs is the best?
        Rule("rate", codes.RATE, "a loss from 0 to 1", QUERY, rehearse=2),  # how bad is this output?
    )
}


@dataclass(frozen=True)
class Perturbation:
    """A law of the direction u in w + mu u (design 2), by its name and its number in compiled code."""

    name: str
    code: int


PERTURBATIONS = {  # all three cost about what the active features cost
    law.name: law
    for law in (
        Perturbation("all", codes.ALL),  # every weight; sleeping ones are owed their share until they wake (2.2)
        Perturbation("active", codes.ACTIVE),  # those active in the input, the paper's SPARSE (2.1)
        Perturbation("score", codes.SCORE),  # what the loss can see of it, E[u given C u]: less variance (2.3)
    )
}
