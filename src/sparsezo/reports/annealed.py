"""What the paper says of the annealed criterion (Sec. 4 and 6), checked: similar results, and MAP's as gamma grows.

Similar is a claim of its own: the whole 95% interval of the difference lies within SIMILAR of 0.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

from sparsezo.reports.claims import FAILS, HOLDS, UNDECIDED, Claim, Comparison, Quantity
from sparsezo.reports.results import LearnerRuns, ReportedExperiment, ReportedRun, Spread

SIMILAR = 0.01  # one point of F1, accuracy or BLEU
_NOTHING = "there is nothing to compare"


def annealed_claims(experiment: ReportedExperiment, test: Quantity) -> list[Claim]:
    """None where no learner minimises the expected loss by perturbation."""
    annealed = [item for item in experiment.learners if item.annealed and item.zeroth_order]
    if not annealed:
        return []
    return [_similar(experiment, annealed, test), _approaches(annealed, experiment.runs)]


def _similar(experiment: ReportedExperiment, annealed: list[LearnerRuns], test: Quantity) -> Claim:
    title = f"The annealed criterion ends within {SIMILAR:g} of MAP on test, for every rule and perturbation"
    found: list[Comparison] = []
    near: list[str] = []
    far: list[str] = []
    for item in annealed:
        other = experiment.find(item.rule, item.perturb)
        values = item.spread("tuned", test.key)
        others = other.spread("tuned", test.key) if other is not None else None
        if other is None or values is None or others is None:
            continue
        pair = Comparison(item.name, other.name, values, others, test, "tuned")
        found.append(pair)
        if pair.margin is not None and abs(pair.lead) + pair.margin <= SIMILAR:
            near.append(item.name)
        elif pair.margin is not None and abs(pair.lead) - pair.margin > SIMILAR:
            far.append(f"{item.name} ({pair.lead:+.4f})")
    words = f"{len(near)} of {len(found)} are shown to be" if found else _NOTHING
    words += f"; farther away: {', '.join(far)}" if far else ""
    verdict = FAILS if far else HOLDS if found and len(near) == len(found) else UNDECIDED
    return Claim(
        title, "paper Sec. 6: a smooth annealed criterion yields similar results", verdict, words, tuple(found)
    )


def _approaches(annealed: list[LearnerRuns], runs: tuple[ReportedRun, ...]) -> Claim:
    """Of runs that differ in gamma alone, by how much the expected loss is from that of the best outputs."""
    gaps: dict[tuple[object, ...], dict[float, float]] = defaultdict(dict)
    names = {item.name for item in annealed}
    for run in runs:
        expected, best, gamma = (run.value("average_loss"), run.value("map_average_loss"), run.settings.get("gamma"))
        if run.learner in names and expected is not None and best is not None and isinstance(gamma, int | float):
            alike = (run.learner, run.iterations, run.seed, run.settings.get("h"), run.settings.get("mu"))
            gaps[alike][float(gamma)] = abs(expected - best)
    gap = Quantity("gap", "distance of the expected loss from that of the best outputs", True, ("tune",))
    found = []
    for low, high in pairwise(sorted({gamma for each in gaps.values() for gamma in each})):
        changes = [each[high] - each[low] for each in gaps.values() if low in each and high in each]
        if changes:
            left, right = f"gamma {high:g} less gamma {low:g}", "no change"
            found.append(Comparison(left, right, Spread(tuple(changes)), Spread((0.0,), exact=True), gap, "tune"))
    smaller = sum(item.verdict == HOLDS for item in found)
    verdict = FAILS if any(item.verdict == FAILS for item in found) else HOLDS if smaller else UNDECIDED
    verdict = UNDECIDED if verdict == HOLDS and smaller < len(found) else verdict
    words = f"the distance shrinks in {smaller} of {len(found)} steps of gamma" if found else _NOTHING
    title = "The annealed criterion approaches MAP as gamma grows"
    return Claim(title, "paper Sec. 4, after eq. (annealed)", verdict, words, tuple(found))
