"""Two learners compared in one quantity: their lead, how sure it is, and what follows for a claim.

    found = Comparison("a", "b", left.spread("tuned", "test"), right.spread("tuned", "test"), quantity, "tuned")
    found.lead, found.margin, found.p_value, found.verdict, found.detectable

Where both have the same seeds the difference is taken seed by seed: runs with one seed see the same inputs in the same
order, and with the same perturbation the same draws (how much that takes out: docs/experiments.md). Otherwise it is
Welch's, for groups with variances of their own.
With ``equal_within`` the claim is that the two are equal, up to so much (two one-sided tests).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from sparsezo.reports.results import Spread
from sparsezo.reports.statistics import LEVEL, Difference, against, holm, paired, welch

HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "cannot be said"


@dataclass(frozen=True)
class Quantity:
    key: str  # in a run's result
    name: str
    lower_is_better: bool
    phases: tuple[str, ...]  # where to look, best first
    digits: int = 4


@dataclass(frozen=True)
class Comparison:
    """``left`` is claimed to be better than ``right``, or as good."""

    left: str
    right: str
    left_values: Spread
    right_values: Spread
    quantity: Quantity
    phase: str
    aside: str = ""
    equal_within: float | None = None  # the claim: the lead is ``around``, up to so much
    around: float = 0.0
    p_adjusted: float | None = None  # by Holm, among the comparisons of its claim
    inputs: tuple[float, float] | None = None  # 95% interval of the lead over drawn test sets (bootstrap.py)

    @property
    def lead(self) -> float:
        """How much better left is: positive where a claim that it is better is right."""
        difference = self.left_values.mean - self.right_values.mean
        return -difference if self.quantity.lower_is_better else difference

    @property
    def has_bound(self) -> bool:
        """One side is a number that no seed changes."""
        return self.left_values.exact or self.right_values.exact

    @property
    def paired(self) -> bool:
        seeds = self.left_values.seeds
        return bool(seeds) and seeds == self.right_values.seeds and not self.has_bound

    @cached_property
    def difference(self) -> Difference | None:
        """Of the lead; None where a single seed leaves its spread unknown."""
        sides = (self.left_values, self.right_values)
        if all(side.exact for side in sides) or any(len(side.values) < 2 and not side.exact for side in sides):
            return None
        left, right = (side.values for side in sides)
        if self.right_values.exact:
            found = against(left, right[0])
        elif self.left_values.exact:
            found = against([-value for value in right], -left[0])
        else:
            found = paired(left, right) if self.paired else welch(left, right)
        return replace(found, mean=self.lead)

    @property
    def margin(self) -> float | None:
        """Half of the 95% interval of the lead; None where a single seed leaves it unknown."""
        return None if self.difference is None else self.difference.margin

    @property
    def p_value(self) -> float | None:
        """Of what the verdict rests on, before any correction."""
        found = self.difference
        if found is None:
            return None
        if self.equal_within is None:
            return found.p_value
        return min(found.p_within(self.equal_within, self.around), found.p_outside(self.equal_within, self.around))

    @property
    def verdict(self) -> str:
        found, p = self.difference, self.p_value if self.p_adjusted is None else self.p_adjusted
        if found is None or p is None or p > LEVEL:
            return UNDECIDED
        if self.equal_within is None:
            return HOLDS if self.lead > 0 else FAILS
        within, outside = (test(self.equal_within, self.around) for test in (found.p_within, found.p_outside))
        return HOLDS if within < outside else FAILS

    @property
    def detectable(self) -> float | None:
        """Where nothing can be said: the gap that four of five such experiments would have shown."""
        found = self.difference
        return None if found is None or found.error == 0 or self.verdict != UNDECIDED else found.detectable

    @property
    def over_inputs(self) -> bool | None:
        """Whether drawn test sets agree that there is a difference; None where there are none, or nothing to agree."""
        if self.inputs is None or self.equal_within is not None or self.verdict == UNDECIDED:
            return None
        return self.inputs[0] > 0 if self.lead > 0 else self.inputs[1] < 0

    def figure(self, values: Spread) -> str:
        text = f"{values.mean:.{self.quantity.digits}f}"
        return text + (f" ± {values.sd:.{self.quantity.digits}f}" if values.sd is not None else "")

    def __str__(self) -> str:
        digits = self.quantity.digits
        side = "better" if self.lead >= 0 else "worse"
        lead = f"{abs(self.lead):.{digits}f} {side}, {self.sureness()}; {self.verdict}"
        line = (
            f"{self.left} {self.figure(self.left_values)}, {self.right} {self.figure(self.right_values)} "
            f"({self.quantity.name}, {self.phase}): {lead}"
        )
        return line + (f". {self.aside}" if self.aside else "")

    def sureness(self) -> str:
        """95% interval ± 0.0039, paired; p 0.012 by Holm; over test inputs 0.0010 to 0.0090."""
        found, digits = self.difference, self.quantity.digits
        if found is None:
            return "a single seed"
        parts = [f"95% interval ± {found.margin:.{digits}f}{', paired' if self.paired else ''}"]
        if self.equal_within is not None:
            wanted = f"{self.around:.{digits}f} ± " if self.around else "± "
            parts.append(f"equal means {wanted}{self.equal_within:g}")
        if self.p_adjusted is not None:
            parts.append(f"p {self.p_adjusted:.2g} by Holm")
        if self.detectable is not None and self.equal_within is None:
            parts.append(f"{self.detectable:.{digits}f} could have been seen")
        if self.inputs is not None:
            parts.append(f"over test inputs {self.inputs[0]:+.{digits}f} to {self.inputs[1]:+.{digits}f}")
        return "; ".join(parts)


def corrected(found: Sequence[Comparison]) -> list[Comparison]:
    """By Holm, where a claim looks at several; a comparison that says nothing is none of them."""
    told = [p for item in found if (p := item.p_value) is not None]
    if len(told) < 2:
        return list(found)
    adjusted = iter(holm(told))
    return [item if item.p_value is None else replace(item, p_adjusted=next(adjusted)) for item in found]
