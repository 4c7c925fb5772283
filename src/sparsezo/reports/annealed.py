"""What the paper says of the annealed criterion (Sec. 4 and 6), checked: similar results, and MAP's as gamma grows.

Similar is equal up to the task's margin, which two one-sided tests show.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import pairwise

from sparsezo.reports.claiming import Claim, Pair, claimed, compared, margin_of
from sparsezo.reports.comparisons import Comparison, Quantity
from sparsezo.reports.results import LearnerRuns, ReportedExperiment, ReportedRun, Spread


def annealed_claims(experiment: ReportedExperiment, test: Quantity) -> list[Claim]:
    """None where no learner minimises the expected loss by perturbation."""
    annealed = [item for item in experiment.learners if item.annealed and item.zeroth_order]
    if not annealed:
        return []
    return [_similar(experiment, annealed, test), _approaches(annealed, experiment.runs)]


def _similar(experiment: ReportedExperiment, annealed: list[LearnerRuns], test: Quantity) -> Claim:
    margin = margin_of(experiment)
    title = f"The annealed criterion ends as good as MAP on test, up to {margin:g}, for every rule and perturbation"
    source = "paper Sec. 6: a smooth annealed criterion yields similar results"
    pairs: list[Pair] = []
    for item in annealed:
        other = experiment.find(item.rule, item.perturb)
        pairs.append((item.name, item, f"{item.rule} {item.perturb}", other))
    tuned = replace(test, phases=("tuned",))
    return claimed(title, source, *compared(experiment, pairs, tuned, equal_within=margin))


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
        both = [each for each in gaps.values() if low in each and high in each]
        if any(round(each[low], gap.digits) for each in both):  # else nothing is left that could shrink
            runs_alike = tuple(range(len(both)))  # differences are taken run by run
            above, below = (Spread(tuple(each[gamma] for each in both), seeds=runs_alike) for gamma in (high, low))
            found.append(Comparison(f"gamma {high:g}", f"gamma {low:g}", above, below, gap, "tune"))
    title = "The annealed criterion approaches MAP as gamma grows"
    return claimed(title, "paper Sec. 4, after eq. (annealed)", found, [])
