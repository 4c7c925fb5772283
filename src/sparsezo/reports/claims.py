"""The paper's claims (Sec. 5 and its supplement), and ours on SCORE, each checked against an experiment's runs.

    for claim in check_claims(experiment):
        print(claim.title, claim.verdict, *claim.evidence, sep="\n  ")

A comparison of two learners is of their means over seeds. It counts where the 95% interval of the difference (Welch's,
for unequal variances) excludes 0; within it, or with a single seed, nothing can be said. A claim about several pairs
holds when all of them do, and does not when one is found the other way round.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from sparsezo.reports.results import LearnerRuns, ReportedExperiment, Spread

HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "cannot be said"
PAPER_RULES = ("two-point", "baseline", "comparison")  # from best to worst, says the paper
PAPER_GROUPS = ("all", "active")

# Student's t, 0.975 quantile, for 1 to 30 degrees of freedom
_T: tuple[float, ...] = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131),
    *(2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)


@dataclass(frozen=True)
class Quantity:
    key: str  # in a run's result
    name: str
    lower_is_better: bool
    phases: tuple[str, ...]  # where to look, best first


@dataclass(frozen=True)
class Comparison:
    """``left`` is claimed to be better than ``right``."""

    left: str
    right: str
    left_values: Spread
    right_values: Spread
    quantity: Quantity
    phase: str
    aside: str = ""

    @property
    def lead(self) -> float:
        """How much better left is: positive where the claim is right."""
        difference = self.left_values.mean - self.right_values.mean
        return -difference if self.quantity.lower_is_better else difference

    @property
    def margin(self) -> float | None:
        """Half of the 95% interval of the lead; None where a single seed leaves it unknown."""
        shares = []  # of the variance of the difference: (sd^2 / seeds, degrees of freedom)
        for side in (self.left_values, self.right_values):
            if side.exact:
                continue
            if side.variance is None:
                return None
            shares.append((side.variance / len(side.values), len(side.values) - 1))
        variance = sum(share for share, _ in shares)
        if variance == 0:
            return 0.0
        freedom = variance**2 / sum(share**2 / df for share, df in shares)  # Welch-Satterthwaite
        return _T[min(max(int(freedom + 1e-9), 1), len(_T)) - 1] * math.sqrt(variance)

    @property
    def verdict(self) -> str:
        if self.margin is None or abs(self.lead) <= self.margin:
            return UNDECIDED
        return HOLDS if self.lead > 0 else FAILS

    def __str__(self) -> str:
        margin = "a single seed" if self.margin is None else f"95% interval ± {self.margin:.4f}"
        side = "better" if self.lead >= 0 else "worse"
        line = (
            f"{self.left} {_figure(self.left_values)}, {self.right} {_figure(self.right_values)} "
            f"({self.quantity.name}, {self.phase}): {abs(self.lead):.4f} {side}, {margin}; {self.verdict}"
        )
        return line + (f". {self.aside}" if self.aside else "")


@dataclass(frozen=True)
class Claim:
    title: str
    source: str
    verdict: str
    words: str  # one sentence: why this verdict
    evidence: tuple[Comparison, ...]


def check_claims(experiment: ReportedExperiment) -> tuple[Claim, ...]:
    """All of them of a built-in experiment; of one's own, those that there is something to compare for."""
    return tuple(claim for claim in _every_claim(experiment) if claim.evidence or not experiment.own)


def _every_claim(experiment: ReportedExperiment) -> list[Claim]:
    """Speed is the paper's average cumulative loss: at its figure's fixed settings, and again at tuned ones."""
    test = Quantity("test", f"test {experiment.metric_name}", False, ("tuned", "fixed"))
    losses = _losses(experiment)
    claims = []
    for quantity, at in losses:
        claims.append(_active_against_all(experiment, quantity, "learns faster than", at))
    claims.append(_active_against_all(experiment, test, "ends better on test than"))
    for quantity, at in losses:
        claims.append(_order_of_rules(experiment, quantity, f"in speed{at}"))
    claims.append(_order_of_rules(experiment, test, "on test"))
    about = experiment.about
    for quantity, at in losses if about is not None and about.speed_against_first_order else [(test, "")]:
        claims.append(_against_first_order(experiment, quantity, at))
    if experiment.bounds:
        claims.append(_above_out_of_domain(experiment, test))
    for quantity, at in losses:
        claims.append(_score_against_active(experiment, quantity, "learns faster than", at))
    claims.append(_score_against_active(experiment, test, "ends better on test than"))
    from sparsezo.reports.annealed import annealed_claims  # it is made of what stands here

    return [*claims, *annealed_claims(experiment, test)]


def _losses(experiment: ReportedExperiment) -> list[tuple[Quantity, str]]:
    """The average loss in each phase that has it, and the words for the phase where there are two."""
    loss = Quantity("average_loss", f"average cumulative {experiment.loss_name}", True, ("fixed", "tuned"))
    phases = experiment.phases(loss.key)
    if len(phases) < 2:
        return [(loss, "")]
    return [(replace(loss, phases=(phase,)), f", {phase} settings") for phase in phases]


Pair = tuple[str, LearnerRuns | None, str, LearnerRuns | None]  # name and runs of the better, then of the worse


def _active_against_all(experiment: ReportedExperiment, quantity: Quantity, verb: str, at: str = "") -> Claim:
    title = f"ACTIVE {verb} ALL, for every rule{at}"
    source = "paper Sec. 5, chunking; supplement, text classification"
    found, missing = _compare(_same_rule(experiment, "active", "all", PAPER_RULES), quantity)
    if experiment.dense:
        words = "every feature is active in every input here, so ACTIVE is ALL in law and the paper makes no such claim"
        words += "; what differs below is chance" if found else ""
        return Claim(title, source, UNDECIDED, words, tuple(found))
    return _claim(title, source, found, missing)


def _score_against_active(experiment: ReportedExperiment, quantity: Quantity, verb: str, at: str = "") -> Claim:
    """Of the paper's rules, and of others where both were run."""
    mine = [item.rule for item in experiment.learners if item.perturb == "score" and item.plain]
    rules = [rule for rule in mine if rule in PAPER_RULES or experiment.find(rule, "active")]
    other, title = "active", f"SCORE {verb} ACTIVE, for every rule{at}"
    if experiment.dense and not any(experiment.find(rule, "active") for rule in rules):
        other, title = "all", f"SCORE {verb} ACTIVE (here the same as ALL), for every rule{at}"
    found, missing = _compare(_same_rule(experiment, "score", other, rules), quantity)
    return _claim(title, "ours", found, missing)


def _order_of_rules(experiment: ReportedExperiment, quantity: Quantity, where: str) -> Claim:
    groups = [group for group in PAPER_GROUPS if any(experiment.find(rule, group) for rule in PAPER_RULES)]
    pairs = [
        (f"{better} {group}", experiment.find(better, group), f"{worse} {group}", experiment.find(worse, group))
        for group in groups
        for better, worse in pairwise(PAPER_RULES)
    ]
    found, missing = _compare(pairs, quantity)
    return _claim(f"two-point > baseline > comparison {where}", "paper Sec. 5, Table 1", found, missing)


def _against_first_order(experiment: ReportedExperiment, quantity: Quantity, at: str = "") -> Claim:
    """On SMT all of the paper's SZO beat SFO (same criterion in training and test); elsewhere SFO stays above."""
    sfo = experiment.find("first-order", None)
    mine = [
        item for item in experiment.learners if item.plain and item.rule in PAPER_RULES and item.perturb in PAPER_GROUPS
    ]
    first = "first-order"
    if experiment.about is not None and experiment.about.beats_first_order is not None:
        title, source = "Every SZO learner of the paper beats SFO on SMT", experiment.about.beats_first_order
        pairs: list[Pair] = [(item.name, item, first, sfo) for item in mine]
    else:
        title, source = "SFO stays above every SZO learner of the paper", "paper Table 1; supplement, in speed"
        pairs = [(first, sfo, item.name, item) for item in mine]
    found, missing = _compare(pairs, quantity)
    return _claim(title + at, source, found, missing)


def _above_out_of_domain(experiment: ReportedExperiment, quantity: Quantity) -> Claim:
    title = "SZO improves on the out-of-domain model it starts from"
    source = (
        "paper Sec. 5, SMT: two-point gains 1.6 of the 2.7 BLEU points between the out-of-domain and in-domain models"
    )
    low = experiment.bound("out-of-domain", experiment.metric)
    high = experiment.bound("in-domain", experiment.metric)
    found, missing = [], [] if low is not None else ["the score of the out-of-domain model"]
    for item in experiment.learners if low is not None else ():
        phase = item.best_phase(quantity.key)
        values = item.spread(phase, quantity.key) if phase else None
        if not item.zeroth_order or item.annealed or low is None or phase is None or values is None:
            continue
        aside = ""
        if high is not None and high > low:
            aside = f"{(values.mean - low) / (high - low):.0%} of the way to the in-domain model"
        bound = Spread((low,), exact=True)
        found.append(Comparison(item.name, "out-of-domain", values, bound, quantity, phase, aside))
    return _claim(title, source, found, missing)


def _same_rule(experiment: ReportedExperiment, better: str, worse: str, rules: Iterable[str]) -> list[Pair]:
    return [
        (f"{rule} {better}", experiment.find(rule, better), f"{rule} {worse}", experiment.find(rule, worse))
        for rule in rules
    ]


def _compare(pairs: Sequence[Pair], quantity: Quantity) -> tuple[list[Comparison], list[str]]:
    """Each pair in the best phase that both learners have; and what is missing for the others."""
    found, missing = [], []
    for left_name, left, right_name, right in pairs:
        for phase in quantity.phases:
            ours = left.spread(phase, quantity.key) if left else None
            theirs = right.spread(phase, quantity.key) if right else None
            if left and right and ours and theirs:
                aside = _points_ahead(left, right, phase) if quantity.lower_is_better else ""
                found.append(Comparison(left_name, right_name, ours, theirs, quantity, phase, aside))
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
    ours, theirs = left.mean_curve(phase, "average_loss"), right.mean_curve(phase, "average_loss")
    if ours is None or theirs is None:
        return ""
    common, i, j = np.intersect1d(ours.at, theirs.at, return_indices=True)
    learned = common > 0  # before the first step all are alike
    if not learned.any():
        return ""
    below = int((ours.mean[i] < theirs.mean[j])[learned].sum())
    return f"Its mean curve is below at {below} of {int(learned.sum())} points"


def _claim(title: str, source: str, found: Sequence[Comparison], missing: Sequence[str]) -> Claim:
    against = [f"{item.left} against {item.right}" for item in found if item.verdict == FAILS]
    open_ = [f"{item.left} against {item.right}" for item in found if item.verdict == UNDECIDED]
    lacking = f"not run, or without this result: {', '.join(missing)}" if missing else ""
    if against:
        verdict, words = FAILS, f"the other way round for {', '.join(against)}"
    elif open_:
        verdict, words = UNDECIDED, _open_words(found, open_)
    elif found and not missing:
        verdict, words = HOLDS, _all_show(len(found))
    else:
        verdict, words = UNDECIDED, _all_show(len(found), " that there {}") if found else "there is nothing to compare"
    words = "; ".join(part for part in (words, lacking) if part)
    return Claim(title, source, verdict, words, tuple(found))


def _all_show(count: int, which: str = "") -> str:
    if count == 1:
        return f"the only comparison{which.format('is')} shows it"
    return f"all {count} comparisons{which.format('are')} show it"


def _open_words(found: Sequence[Comparison], open_: Sequence[str]) -> str:
    single = any(item.margin is None for item in found)
    doubt = "a single seed says nothing of chance" if single else f"within seed noise: {', '.join(open_)}"
    if len(found) == 1:
        return f"the only comparison does not decide it, {doubt}"
    shown = sum(item.verdict == HOLDS for item in found)
    return f"{shown} of {len(found)} comparisons show it, but {doubt}"


def _figure(values: Spread) -> str:
    return f"{values.mean:.4f}" + (f" ± {values.sd:.4f}" if values.sd is not None else "")
