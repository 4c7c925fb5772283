"""The tools that claims are checked with: comparisons of two learners, put together into one verdict in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sparsezo.reports.bootstrap import resampled_lead
from sparsezo.reports.comparisons import FAILS, HOLDS, UNDECIDED, Comparison, Quantity, corrected
from sparsezo.reports.results import LearnerRuns, ReportedExperiment

Pair = tuple[str, LearnerRuns | None, str, LearnerRuns | None]  # name and runs of the better, then of the worse


@dataclass(frozen=True)
class Claim:
    title: str
    source: str
    verdict: str
    words: str  # one sentence: why this verdict
    evidence: tuple[Comparison, ...]


def margin_of(experiment: ReportedExperiment) -> float:
    return experiment.about.margin if experiment.about is not None else 0.01


def compared(
    experiment: ReportedExperiment,
    pairs: Sequence[Pair],
    quantity: Quantity,
    equal_within: float | None = None,
    around: float = 0.0,
) -> tuple[list[Comparison], list[str]]:
    """Each pair in the best phase that both learners have; and what is missing for the others."""
    found, missing = [], []
    for left_name, left, right_name, right in pairs:
        for phase in quantity.phases:
            mine = left.spread(phase, quantity.key) if left else None
            theirs = right.spread(phase, quantity.key) if right else None
            if left and right and mine and theirs:
                aside = _points_ahead(left, right, phase) if quantity.lower_is_better else ""
                inputs = resampled_lead(left, right, phase, experiment.metric) if quantity.key == "test" else None
                one = Comparison(left_name, right_name, mine, theirs, quantity, phase, aside, equal_within, around)
                found.append(replace(one, inputs=inputs))
                break
        else:
            without = [
                name
                for name, side in ((left_name, left), (right_name, right))
                if side is None or not any(side.spread(phase, quantity.key) for phase in quantity.phases)
            ]
            missing.append(" and ".join(without) or f"{left_name} and {right_name} in the same phase")
    return found, list(dict.fromkeys(missing))


def _points_ahead(left: LearnerRuns, right: LearnerRuns, phase: str) -> str:
    """How much of the way the mean curve lay below the other's."""
    mine, theirs = left.mean_curve(phase, "average_loss"), right.mean_curve(phase, "average_loss")
    if mine is None or theirs is None:
        return ""
    common, i, j = np.intersect1d(mine.at, theirs.at, return_indices=True)
    learned = common > 0  # before the first step all are alike
    if not learned.any():
        return ""
    below = int((mine.mean[i] < theirs.mean[j])[learned].sum())
    return f"Its mean curve is below at {below} of {int(learned.sum())} points"


def claimed(title: str, source: str, found: Sequence[Comparison], missing: Sequence[str]) -> Claim:
    found = corrected(found)
    against = [item for item in found if item.verdict == FAILS]
    open_ = [item for item in found if item.verdict == UNDECIDED]
    lacking = f"not run, or without this result: {', '.join(missing)}" if missing else ""
    if against:
        verdict, words = FAILS, _against_words(against)
    elif open_:
        verdict, words = UNDECIDED, _open_words(found, open_)
    elif found and not missing:
        verdict, words = HOLDS, _all_show(len(found))
    else:
        verdict, words = UNDECIDED, _all_show(len(found), " that there {}") if found else "there is nothing to compare"
    words = "; ".join(part for part in (words, lacking, _over_inputs(found)) if part)
    return Claim(title, source, verdict, words, tuple(found))


def _pair(item: Comparison) -> str:
    return f"{item.left} against {item.right}"


def _against_words(against: Sequence[Comparison]) -> str:
    """Of a claim to be equal, with the side that each is on."""
    sides: dict[str, list[str]] = {}
    for item in against:
        better = "better than that" if item.lead > item.around else "worse than that"
        sides.setdefault("the other way round" if item.equal_within is None else better, []).append(_pair(item))
    return "; ".join(f"{side} for {', '.join(pairs)}" for side, pairs in sides.items())


def _all_show(count: int, which: str = "") -> str:
    if count == 1:
        return f"the only comparison{which.format('is')} shows it"
    return f"all {count} comparisons{which.format('are')} show it"


def _open_words(found: Sequence[Comparison], open_: Sequence[Comparison]) -> str:
    single = any(item.margin is None for item in found)
    doubt = "a single seed says nothing of chance" if single else f"within seed noise: {', '.join(map(_gap, open_))}"
    if len(found) == 1:
        return f"the only comparison does not decide it, {doubt}"
    shown = sum(item.verdict == HOLDS for item in found)
    return f"{shown} of {len(found)} comparisons show it, but {doubt}"


def _gap(item: Comparison) -> str:
    """With the gap that could have been seen; of a claim to be equal, with what it is known up to."""
    digits = item.quantity.digits
    if item.equal_within is not None and item.margin is not None:
        return f"{_pair(item)} ({item.lead:+.{digits}f} ± {item.margin:.{digits}f})"
    seen = f" ({item.detectable:.{digits}f} could have been seen)" if item.detectable is not None else ""
    return _pair(item) + seen


def _over_inputs(found: Sequence[Comparison]) -> str:
    """Where another test set of the size might have told otherwise."""
    doubtful = [_pair(item) for item in found if item.over_inputs is False]
    return f"over drawn test sets not sure for {', '.join(doubtful)}" if doubtful else ""
