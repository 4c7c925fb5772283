"""The paper's claims (Sec. 4 to 6 and its supplement), and those on what is not in the paper, checked against the runs.

    for claim in check_claims(experiment):
        print(claim.title, claim.verdict, claim.words)

A comparison of two learners is of their means over seeds, seed by seed where both have the same ones
(comparisons.py). A claim about several pairs holds when each of them does, and does not when one is found the other way
round, which is asked after Holm's correction for all comparisons of the report. That two are equal is claimed up to a
margin, the task's ``margin``, and shown by two one-sided tests; a difference that is merely not seen shows nothing.

Speed is the mean loss of the best outputs at w on dev over a run, the area under its curve, with h and mu that were
tuned for it. The paper's own quantity, the average cumulative loss of what was shown on the way, which is at w + mu u
for some rules, has claims of its own beside it, at the paper's fixed settings: in two readings of them, where both ran.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean

import numpy as np

from sparsezo.study.reports.comparisons import (
    FAILS,
    HOLDS,
    UNDECIDED,
    Comparison,
    Quantity,
    corrected,
    resampled_beside,
    resampled_lead,
)
from sparsezo.study.reports.results import SETTINGS, LearnerRuns, ReportedExperiment, Spread
from sparsezo.study.reports.tables import range_text

PAPER_RULES = ("two-point", "baseline", "comparison")  # from best to worst, says the paper
NOT_PAPER = "not in the paper"
_SFO = "first-order"
_EARLY = 1_000_000  # iterations: the others of the paper's SMT are best on dev from here on
_LEAST_WAY = 1e-6  # between two bounds of which there is a share; all metrics are from 0 to 1
_SHARE = 1.6 / 2.7  # of the way from the out-of-domain to the in-domain model, that the paper's two-point goes

Pair = tuple[str, LearnerRuns | None, str, LearnerRuns | None]  # name and runs of the better, then of the worse
Found = tuple[list[Comparison], list[str]]  # and the names of what is missing


@dataclass(frozen=True)
class Claim:
    title: str
    source: str
    verdict: str
    words: str  # one sentence: why this verdict
    evidence: tuple[Comparison, ...]


@dataclass(frozen=True)
class _Asked:
    """A claim before its verdict."""

    title: str
    source: str
    found: Sequence[Comparison]
    missing: Sequence[str] = ()
    words: str | None = None  # why it is none that anything could decide


def check_claims(experiment: ReportedExperiment) -> tuple[Claim, ...]:
    """All of them of a built-in experiment; of one's own, those that there is something to compare for. None of runs
    that are shorter than the paper's."""
    if experiment.shorter:
        return ()
    asked = [each for each in _Claims(experiment) if each.found or not experiment.own]
    every = corrected([each.found for each in asked])
    return tuple(_concluded(replace(each, found=found)) for each, found in zip(asked, every, strict=True))


class _Claims:
    """Those on one experiment."""

    def __init__(self, experiment: ReportedExperiment) -> None:
        self.experiment, self.margin, self.find = experiment, experiment.paper.margin, experiment.find
        self.sparse = experiment.least_active <= 0.5  # else nothing that the paper says of SPARSE is about it
        self.sfo = experiment.find(_SFO, None)
        # the perturbations that were run; where the paper has ALL alone and it was run, this
        groups = [group for group in ("all", "active") if any(self.find(rule, group) for rule in PAPER_RULES)]
        self.groups = groups if self.sparse else groups[:1]
        self.test = Quantity("test", f"test {experiment.metric_name}", False, ("tuned", "fixed"))
        area = Quantity("dev_loss_area", f"mean {experiment.loss_name} on dev over the run", True, ("speed", "fixed"))
        loss = Quantity("average_loss", f"average cumulative {experiment.loss_name}", True, ("tuned",))
        self.losses = []
        if experiment.phases(area.key):
            tuned = "speed" in experiment.phases(area.key)
            self.losses.append((area, ", settings tuned for it" if tuned else ", fixed settings"))
        for phase in ("fixed", "undivided"):
            if phase in experiment.phases(loss.key):
                self.losses.append((replace(loss, phases=(phase,)), f", by the paper's measure, {SETTINGS[phase]}"))
        self.losses = self.losses or [(loss, ", by the paper's measure")]

    def __iter__(self) -> Iterator[_Asked]:
        paper = self.experiment.paper
        speed = [(loss, "learns faster than", at) for loss, at in self.losses]
        both = [*speed, (self.test, "ends better on test than", "")]
        yield from (self._active_against_all(*each) for each in both)
        for quantity, at in (*((loss, f"in speed{at}") for loss, at in self.losses), (self.test, "on test")):
            rules = list(pairwise(PAPER_RULES))
            pairs = [self._pair((good, group), (bad, group)) for group in self.groups for good, bad in rules]
            title = f"two-point > baseline > comparison {at}"
            yield _Asked(title, "paper Sec. 5, Table 1", *self._compared(pairs, quantity))
        for quantity, at in self.losses if paper.speed_against_first_order else [(self.test, "")]:
            yield self._against_first_order(quantity, at)
        if paper.close_to_first_order:
            for quantity, at in (*self.losses, (self.test, "")):
                yield self._close_to_first_order(quantity, at)
        if paper.beats_first_order is not None:
            yield self._gain_over_first_order()
            yield self._best_early()
        if paper.undertrained:
            yield self._best_at_the_end()
        if self.experiment.bounds:
            yield from self._bounds()
        other, pairs = self._score_pairs()
        for quantity, verb, at in both:
            title = f"SCORE {verb} {other}, for every rule{at}"
            yield _Asked(title, NOT_PAPER, *self._compared(pairs, quantity))
        if not self.sparse:
            title = f"SCORE ends as good on test as {other}, for every rule, up to {self.margin:g}"
            yield _Asked(title, NOT_PAPER, *self._compared(pairs, self.test, equal_within=self.margin))
        if annealed := [item for item in self.experiment.learners if item.annealed and item.zeroth_order]:
            yield self._annealed_as_good(annealed)
            yield self._annealed_approaches({item.name for item in annealed})

    def _pair(self, better: tuple[str, str], worse: tuple[str, str]) -> Pair:
        return " ".join(better), self.find(*better), " ".join(worse), self.find(*worse)

    def _same_rule(self, better: str, worse: str, rules: Iterable[str]) -> list[Pair]:
        return [self._pair((rule, better), (rule, worse)) for rule in rules]

    def _active_against_all(self, quantity: Quantity, verb: str, at: str) -> _Asked:
        title = f"ACTIVE {verb} ALL, for every rule{at}"
        source = "paper Sec. 5, chunking; supplement, text classification"
        found, missing = self._compared(self._same_rule("active", "all", PAPER_RULES), quantity)
        if not self.experiment.dense:
            return _Asked(title, source if self.sparse else NOT_PAPER, found, missing)
        words = "every feature is active in every input here, so ACTIVE is ALL in law and the paper makes no such claim"
        words += "; what differs below is chance" if found else ""
        return _Asked(title, source, found, words=words)

    def _score_pairs(self) -> tuple[str, list[Pair]]:
        """Of the paper's rules, and of others where both were run; with all, where that is the same law and was run."""
        mine = [item.rule for item in self.experiment.learners if item.perturb == "score" and item.plain]
        rules = [rule for rule in mine if rule in PAPER_RULES or self.find(rule, "active")]
        if self.experiment.dense and not any(self.find(rule, "active") for rule in rules):
            return "ACTIVE (here the same as ALL)", self._same_rule("score", "all", rules)
        return "ACTIVE", self._same_rule("score", "active", rules)

    # Beside first-order learning

    def _paper_learners(self) -> list[LearnerRuns]:
        mine = [item for item in self.experiment.learners if item.plain and item.rule in PAPER_RULES]
        return [item for item in mine if item.perturb in self.groups]

    def _of_paper(self, rule: str) -> tuple[str, LearnerRuns | None]:
        """What the paper's learner with a rule is called, and its runs."""
        runs = next((item for item in self._paper_learners() if item.rule == rule), None)
        return f"{rule} {self.groups[0]}" if self.groups else rule, runs

    def _against_first_order(self, quantity: Quantity, at: str) -> _Asked:
        """On SMT all of the paper's SZO beat SFO (same criterion in training and test); elsewhere SFO stays above."""
        if (source := self.experiment.paper.beats_first_order) is not None:
            title = "Every SZO learner of the paper beats SFO on SMT"
            pairs: list[Pair] = [(item.name, item, _SFO, self.sfo) for item in self._paper_learners()]
        else:
            title, source = "SFO stays above every SZO learner of the paper", "paper Table 1; supplement, in speed"
            pairs = [(_SFO, self.sfo, item.name, item) for item in self._paper_learners()]
        return _Asked(title + at, source, *self._compared(pairs, quantity))

    def _close_to_first_order(self, quantity: Quantity, at: str) -> _Asked:
        """Up to what the paper itself calls close: 0.888 against 0.908."""
        how, words = "ends as good on test", "SPARSE two-point updates coming close to the SFO result"
        if quantity.lower_is_better:
            how, words = "learns as fast", "a similar convergence speed as the SFO algorithm"
        title = f"Two-point ACTIVE {how} as SFO, up to {self.margin:g}{at}"
        pairs = [("two-point active", self.find("two-point", "active"), _SFO, self.sfo)]
        found = self._compared(pairs, quantity, equal_within=self.margin)
        return _Asked(title, f'paper Sec. 5, chunking: "{words}"', *found)

    def _gain_over_first_order(self) -> _Asked:
        title = f"Two-point gains 1.0 BLEU points over SFO, up to {100 * self.margin:g}"
        source = 'paper Sec. 5, SMT: "also an improvement of 1.0 BLEU points over the SFO Algorithm"'
        pairs = [(*self._of_paper("two-point"), _SFO, self.sfo)]
        return _Asked(title, source, *self._compared(pairs, self.test, equal_within=self.margin, around=0.01))

    def _best_early(self) -> _Asked:
        """Iterations until the model that is best on dev: two-point before the first million, the others after it."""
        title = "Two-point is best on dev within 1M iterations (the paper: about 100k), baseline and comparison later"
        source = (
            'paper Sec. 5, SMT: "Best development settings for all algorithms are obtained at 1-4M iterations, except '
            'for two-point feedback that reached an optimum already around 100k iterations"'
        )
        quantity = Quantity("best_iteration", "iterations to the best on dev", True, ("tuned", "fixed"), digits=0)
        bound = ("1M", Spread((float(_EARLY),), exact=True))

        def compared(item: LearnerRuns, phase: str, values: Spread) -> Comparison:
            sides = ((item.name, values), bound)
            (left, mine), (right, theirs) = sides if item.rule == "two-point" else sides[::-1]
            return Comparison(left, right, mine, theirs, quantity, phase)

        return _Asked(title, source, *_of_each(map(self._of_paper, PAPER_RULES), quantity, compared))

    def _best_at_the_end(self) -> _Asked:
        """All of the paper's rows are best on dev in the last tenth of the run: they could go on."""
        title = "All learners of the paper are best on dev in the last tenth of the run"
        source = (
            'paper Sec. 5, chunking: "Best development settings for all algorithms were obtained close to the time '
            'horizon of 4M iterations, showing an undertraining behavior in all cases"'
        )
        quantity = Quantity("best_iteration", "iterations to the best on dev", False, ("tuned", "fixed"), digits=0)

        def compared(item: LearnerRuns, phase: str, values: Spread) -> Comparison:
            last = 0.9 * max(run.iterations for run in item.runs(phase))
            return Comparison(item.name, f"{last:,.0f}", values, Spread((last,), exact=True), quantity, phase)

        learners = [(f"{rule} {group}", self.find(rule, group)) for rule in PAPER_RULES for group in self.groups]
        return _Asked(title, source, *_of_each([*learners, (_SFO, self.sfo)], quantity, compared))

    # Beside weights that were only evaluated

    def _bounds(self) -> Iterator[_Asked]:
        source = (
            "paper Sec. 5, SMT: two-point gains 1.6 of the 2.7 BLEU points between the out-of-domain and in-domain "
            "models"
        )
        title = "SZO improves on the out-of-domain model it starts from"
        yield _Asked(title, source, *self._beside_bound("out-of-domain"))
        title = f"Two-point goes {_SHARE:.0%} of the way to the in-domain model, or more"
        yield _Asked(title, source, *self._share())
        found, missing = self._beside_bound("in-domain")
        found = [replace(item, equal_within=self.margin, aside="", more=self._making_of_bound(item)) for item in found]
        yield _Asked(f"SZO ends as good as the in-domain model, up to {self.margin:g}", NOT_PAPER, found, missing)

    def _share(self) -> Found:
        """Of the way from the out-of-domain to the in-domain model, by seeds and over drawn test sets."""
        name, item = self._of_paper("two-point")
        phase, values = item.best() if item else ("", None)
        low, high = (self.experiment.bound(each, self.experiment.metric) for each in ("out-of-domain", "in-domain"))
        if item is None or values is None or low is None or high is None or not _LEAST_WAY < high - low <= 1:
            return [], [name]
        shares = Spread(tuple((value - low) / (high - low) for value in values.values), seeds=values.seeds)
        share = Quantity("share", "share of the way to the in-domain model", False, (phase,), digits=2)
        one = Comparison(item.name, "the paper's", shares, Spread((_SHARE,), exact=True), share, phase)
        counts = [self.experiment.bound_counts.get(each) for each in ("out-of-domain", "in-domain")]
        inputs = resampled_beside(item, phase, self.experiment.metric, counts, _SHARE)
        variance, freedom = item.variances.get(phase, (0.0, 1.0))
        return [replace(one, inputs=inputs, more=((variance / (high - low) ** 2, freedom),))], []

    def _making_of_bound(self, item: Comparison) -> tuple[tuple[float, float], ...]:
        """The in-domain weights are one run of a decoder's own tuning. How far another one would end elsewhere is not
        known; learning from the same references (supervised) tells how far that does."""
        supervised = self.find("supervised", None)
        spread = supervised.spread(item.phase, "test") if supervised else None
        if spread is None or spread.sd is None:
            return item.more
        return (*item.more, (spread.sd**2, len(spread.values) - 1))

    def _beside_bound(self, name: str) -> Found:
        """Every zeroth-order learner against weights that were only evaluated."""
        low, high, value = (
            self.experiment.bound(each, self.experiment.metric) for each in ("out-of-domain", "in-domain", name)
        )
        if value is None:
            return [], [f"the score of the {name} model"]
        found = []
        for item in self.experiment.learners:
            phase, values = item.best()
            if item.zeroth_order and not item.annealed and values is not None:
                aside = ""
                if low is not None and high is not None and high > low:
                    aside = f"{(values.mean - low) / (high - low):.0%} of the way to the in-domain model"
                bound = Spread((value,), exact=True)
                metric, counts = self.experiment.metric, self.experiment.bound_counts.get(name)
                one = Comparison(item.name, name, values, bound, self.test, phase, aside)
                inputs = resampled_beside(item, phase, metric, [counts])
                found.append(replace(one, inputs=inputs, more=_of_tuning(phase, self.test, item)))
        return found, []

    # The annealed criterion: similar results, and MAP's as gamma grows

    def _annealed_as_good(self, annealed: Sequence[LearnerRuns]) -> _Asked:
        title = f"The annealed criterion ends as good as MAP on test, up to {self.margin:g}"
        pairs = [(e.name, e, f"{e.rule} {e.perturb}", self.find(e.rule, e.perturb)) for e in annealed]
        found = self._compared(pairs, replace(self.test, phases=("tuned",)), equal_within=self.margin)
        source = "paper Sec. 6: a smooth annealed criterion yields similar results"
        return _Asked(f"{title}, for every rule and perturbation", source, *found)

    def _annealed_approaches(self, annealed: set[str]) -> _Asked:
        """Of runs that differ in gamma alone, by how much the expected loss is from that of the best outputs; over the
        learners' means, learner by learner, as the seeds of one are no more learners."""
        gaps: dict[str, dict[float, list[float]]] = defaultdict(lambda: defaultdict(list))
        for run in self.experiment.runs:
            expected, best, gamma = run.value("average_loss"), run.value("map_average_loss"), run.settings.get("gamma")
            if run.phase != "gamma" or run.learner not in annealed or expected is None or best is None:
                continue
            if isinstance(gamma, int | float):
                gaps[run.learner][float(gamma)].append(abs(expected - best))
        gap = Quantity("gap", "distance of the expected loss from that of the best outputs", True, ("gamma",))
        found = []
        for low, high in pairwise(sorted({gamma for each in gaps.values() for gamma in each})):
            both = [each for each in gaps.values() if low in each and high in each]
            if any(round(fmean(each[low]), gap.digits) for each in both):  # else nothing is left that could shrink
                alike = tuple(range(len(both)))  # differences are taken learner by learner
                above, below = (Spread(tuple(fmean(each[at]) for each in both), seeds=alike) for at in (high, low))
                found.append(Comparison(f"gamma {high:g}", f"gamma {low:g}", above, below, gap, "gamma"))
        title = "The annealed criterion approaches MAP as gamma grows"
        return _Asked(title, "paper Sec. 4, after eq. (annealed)", found)

    def _compared(
        self, pairs: Sequence[Pair], quantity: Quantity, equal_within: float | None = None, around: float = 0.0
    ) -> Found:
        """Each pair in the best phase that both learners have; and what is missing for the others."""
        found, missing = [], []
        for left_name, left, right_name, right in pairs:
            for phase in quantity.phases:
                mine, theirs = (side.spread(phase, quantity.key) if side else None for side in (left, right))
                if left and right and mine and theirs:
                    aside = _points_ahead(left, right, phase, quantity.key) if quantity.lower_is_better else ""
                    one = Comparison(left_name, right_name, mine, theirs, quantity, phase, aside, equal_within, around)
                    one = replace(one, more=_of_tuning(phase, quantity, left, right))
                    if quantity.key == "test":
                        one = replace(one, inputs=resampled_lead(left, right, phase, self.experiment.metric))
                    found.append(one)
                    break
            else:
                without = [
                    name
                    for name, side in ((left_name, left), (right_name, right))
                    if side is None or not any(side.spread(phase, quantity.key) for phase in quantity.phases)
                ]
                missing.append(" and ".join(without) or f"{left_name} and {right_name} in the same phase")
        return found, list(dict.fromkeys(missing))


def _of_each(
    learners: Iterable[tuple[str, LearnerRuns | None]],
    quantity: Quantity,
    compared: Callable[[LearnerRuns, str, Spread], Comparison],
) -> Found:
    """A comparison of each learner in its best phase; and the names of those that have no such figure."""
    found, missing = [], []
    for name, item in learners:
        phase, values = item.best(quantity.key) if item else ("", None)
        if item is None or values is None:
            missing.append(name)
        else:
            found.append(compared(item, phase, values))
    return found, missing


def _of_tuning(phase: str, quantity: Quantity, *sides: LearnerRuns) -> tuple[tuple[float, float], ...]:
    """What another choice of tuning's seeds would have changed in each side, in what that chose by."""
    if (phase, quantity.key) not in (("tuned", "test"), ("speed", "dev_loss_area")):
        return ()
    return tuple(side.variances[phase] for side in sides if phase in side.variances)


def _points_ahead(left: LearnerRuns, right: LearnerRuns, phase: str, key: str) -> str:
    """How much of the way the mean curve lay below the other's."""
    column = "dev_loss" if key == "dev_loss_area" else "average_loss"
    mine, theirs = (side.mean_curve(phase, column) for side in (left, right))
    if mine is None or theirs is None:
        return ""
    common, i, j = np.intersect1d(mine.at, theirs.at, return_indices=True)
    below = (mine.mean[i] < theirs.mean[j])[common > 0]  # before the first step all are alike
    return f"Its mean curve is below at {below.sum()} of {below.size} points" if below.size else ""


# From comparisons to a verdict in words


def _concluded(asked: _Asked) -> Claim:
    """The claim with the verdict that its comparisons lead to, and why."""
    found, missing = asked.found, asked.missing
    if asked.words is not None:
        return Claim(asked.title, asked.source, UNDECIDED, asked.words, tuple(found))
    against, undecided = ([item for item in found if item.verdict == verdict] for verdict in (FAILS, UNDECIDED))
    if against:
        verdict, words = FAILS, _against_words(against)
    elif undecided:
        verdict, words = UNDECIDED, _undecided_words(found, undecided)
    elif found:
        verdict, there = (UNDECIDED, " that there {}") if missing else (HOLDS, "")
        words = f"all {len(found)} comparisons{there.format('are')} show it"
        if len(found) == 1:
            words = f"the only comparison{there.format('is')} shows it"
    else:
        verdict, words = UNDECIDED, "there is nothing to compare"
    if missing:
        words += f"; not run, or without this result: {', '.join(missing)}"
    return Claim(asked.title, asked.source, verdict, words, tuple(found))


def _against_words(against: Sequence[Comparison]) -> str:
    """Of a claim to be equal, with the side that each is on."""
    sides: dict[str, list[str]] = {}
    for item in against:
        better = "better than that" if item.lead > item.around else "worse than that"
        sides.setdefault("the other way round" if item.equal_within is None else better, []).append(item.pair)
    return "; ".join(f"{side} for {', '.join(pairs)}" for side, pairs in sides.items())


def _undecided_words(found: Sequence[Comparison], undecided: Sequence[Comparison]) -> str:
    doubts: dict[str, list[str]] = {}
    for item in undecided:
        doubts.setdefault(item.doubt or "", []).append(_gap(item))
    doubt = "; ".join(f"{why}: {', '.join(pairs)}" for why, pairs in doubts.items())
    if any(item.margin is None for item in found):
        doubt = "a single seed says nothing of chance"
    if len(found) == 1:
        return f"the only comparison does not decide it, {doubt}"
    return f"{sum(item.verdict == HOLDS for item in found)} of {len(found)} comparisons show it, but {doubt}"


def _gap(item: Comparison) -> str:
    """With the gap that could have been seen; of a claim to be equal, with what it is known up to."""
    digits = item.quantity.digits
    if item.over_inputs is False and item.inputs is not None:
        return f"{item.pair} ({range_text(item.inputs, digits)})"
    if item.equal_within is not None and item.interval is not None:
        return f"{item.pair} ({range_text(item.interval, digits)})"
    return item.pair + (f" ({item.detectable:.{digits}f} could have been seen)" if item.detectable is not None else "")
