"""Update rules, which feedback a learner asks for (what it makes of it, c, is ``kernels.coefficient``); and laws of u.

>>> RULES["comparison"].feedback
'whether the candidate is better'

A rule of one's own is a function (``own_rule``, docs/rules.md). A package brings it by an entry point:

    [project.entry-points."sparsezo.rules"]
    parabola = "mypackage.parabola:PARABOLA"    # the rule's name = the module, and the object in it
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sparsezo.entry_points import EntryPoints
from sparsezo.errors import UsageError, shown
from sparsezo.kernels import codes

if TYPE_CHECKING:
    from sparsezo.kernels.own import OwnFunction

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
    points: tuple[float, ...] = ()  # zeroth-order: where outputs are made, in multiples of mu u; the candidate's first
    coefficient: Callable[..., float] | None = None  # somebody's own: (losses, h, mu, mean) -> c
    like: str | None = None  # somebody's own: the built-in rule whose h and mu it has where none are given

    @property
    def zeroth_order(self) -> bool:
        return self.family == ZEROTH_ORDER

    @property
    def asks(self) -> bool:
        return self.family == QUERY

    @property
    def losses(self) -> int:
        """How many losses a step asks for: the candidate's, and the incumbent's where the rule compares."""
        return len(self.points) or (1 if self.incumbent is None else 2)

    @property
    def usual(self) -> str:
        """The rule by whose name tasks know the usual h and mu."""
        return self.like or self.name

    def compiled(self) -> OwnFunction | None:
        """Somebody's own coefficient, as compiled code calls it; UsageError where it cannot be compiled."""
        if self.coefficient is None:
            return None
        from numba import float64

        from sparsezo.kernels.own import OwnFunction

        return OwnFunction(self.coefficient, f"rule {self.name}").compiled(float64[::1], float64, float64, float64)


_LOSSES, _LOSS = "the losses of the two outputs", "the loss of the output"
_BETTER, _WHICH = "whether the candidate is better", "which output is better"

BUILT_IN = {
    rule.name: rule
    for rule in (
        Rule("two-point", codes.TWO_POINT, _LOSSES, ZEROTH_ORDER, "w", points=(1, 0)),  # paper Sec. 4, eq. (2-point)
        Rule(
            "symmetric", codes.SYMMETRIC, _LOSSES, ZEROTH_ORDER, "w - mu u", points=(1, -1)
        ),  # two-point, of both sides
        Rule(
            "comparison", codes.COMPARISON, _BETTER, ZEROTH_ORDER, "w", True, points=(1, 0)
        ),  # paper Sec. 4; from a yes only
        Rule(
            "preference", codes.PREFERENCE, _WHICH, ZEROTH_ORDER, "w", True, points=(1, 0)
        ),  # learns from both answers
        Rule(
            "baseline", codes.BASELINE, _LOSS, ZEROTH_ORDER, points=(1,)
        ),  # paper Sec. 4; against the mean loss so far
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


class _Rules(Mapping[str, Rule]):
    """Built-in rules, those that this program has made (``own_rule``), and those of installed packages."""

    def __init__(self) -> None:
        self.own: dict[str, Rule] = {}
        self.installed = EntryPoints("sparsezo.rules", "rule", Rule, BUILT_IN)

    def __getitem__(self, name: str) -> Rule:
        if name in BUILT_IN:
            return BUILT_IN[name]
        if name not in self.own and name in self.installed:
            self.own[name] = self.installed.load(name)
        return self.own[name]

    def __iter__(self) -> Iterator[str]:
        yield from BUILT_IN  # before anybody looks for packages
        yield from dict.fromkeys(itertools.chain(self.own, self.installed.names()))

    def __contains__(self, name: object) -> bool:
        return name in BUILT_IN or name in self.own or name in self.installed

    def __len__(self) -> int:
        return len(list(iter(self)))


_RULES = _Rules()
RULES: Mapping[str, Rule] = _RULES


def own_rule(
    name: str, points: tuple[float, ...] = (1.0, 0.0), like: str = "two-point"
) -> Callable[[Callable[..., float]], Rule]:
    """Makes a rule of a function (losses, h, mu, mean) -> c, which is compiled, and by which W += c u.

    ``points``: where outputs are made, in multiples of mu u, that of w + mu u first; ``losses`` has a loss for each, as
    told. ``mean``: of the first ones' losses so far. c is in proportion to h. ``like``: the built-in rule whose h and
    mu it has where none are given.

        @own_rule("still", points=(1, 0, -1))
        def STILL(losses, h, mu, mean):
            return -h * (losses[0] - losses[2]) / (2 * mu) if losses[1] >= min(losses[0], losses[2]) else 0.0
    """
    if not name or name in BUILT_IN or not name.replace("-", "").replace("_", "").isalnum():
        raise UsageError(
            f"rule {shown(name, repr)}: give it a name of letters, digits and -, that no built-in rule has"
        )
    if like not in BUILT_IN or not BUILT_IN[like].zeroth_order:
        raise UsageError(f"rule {name}: like {shown(like, repr)} is no built-in rule that perturbs the weights")
    numbers = tuple(float(point) for point in points)
    if not 1 <= len(numbers) <= codes.MOST_POINTS or numbers[0] == 0 or len(set(numbers)) < len(numbers):
        raise UsageError(
            f"rule {name}: points {shown(points)}: give 1 to {codes.MOST_POINTS} different numbers, the first not 0"
        )
    feedback = _LOSS if len(numbers) == 1 else f"the losses of the {len(numbers)} outputs"
    incumbent = None if len(numbers) == 1 else "w" if numbers[1] == 0 else f"w {numbers[1]:+g} mu u"

    def made(function: Callable[..., float]) -> Rule:
        rule = Rule(name, codes.OWN, feedback, ZEROTH_ORDER, incumbent, points=numbers, coefficient=function, like=like)
        _RULES.own[name] = rule
        return rule

    return made


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
