"""The paper's claims (Sec. 5 and its supplement), and those on what is not in the paper, checked against the runs.

    for claim in check_claims(experiment):
        print(claim.title, claim.verdict, *claim.evidence, sep="\n  ")

A comparison of two learners is of their means over seeds, seed by seed where both have the same ones
(comparisons.py). A claim about several pairs corrects for their number (Holm), whichever way they fall. It holds when
all of them do, and does not when one is found the other way round. That two are equal is claimed up to a margin, the
task's ``margin``, and shown by two one-sided tests; a difference that is merely not seen shows nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

from sparsezo.reports.annealed import annealed_claims
from sparsezo.reports.claiming import Claim, Pair, claimed, compared, margin_of
from sparsezo.reports.comparisons import UNDECIDED, Comparison, Quantity
from sparsezo.reports.results import LearnerRuns, ReportedExperiment, Spread

PAPER_RULES = ("two-point", "baseline", "comparison")  # from best to worst, says the paper
PAPER_GROUPS = ("all", "active")
NOT_PAPER = "not in the paper"
_SFO = "first-order"
_EARLY = 1_000_000  # iterations: the others of the paper's SMT are best on dev from here on


def check_claims(experiment: ReportedExperiment) -> tuple[Claim, ...]:
    """All of them of a built-in experiment; of one's own, those that there is something to compare for."""
    return tuple(claim for claim in _every_claim(experiment) if claim.evidence or not experiment.own)


def _every_claim(experiment: ReportedExperiment) -> list[Claim]:
    """Speed is the paper's average cumulative loss: at its figure's fixed settings, and again at tuned ones."""
    test = Quantity("test", f"test {experiment.metric_name}", False, ("tuned", "fixed"))
    losses = _losses(experiment)
    claims = [_active_against_all(experiment, loss, "learns faster than", at) for loss, at in losses]
    claims.append(_active_against_all(experiment, test, "ends better on test than"))
    claims += [_order_of_rules(experiment, loss, f"in speed{at}") for loss, at in losses]
    claims.append(_order_of_rules(experiment, test, "on test"))
    about = experiment.about
    for quantity, at in losses if about is not None and about.speed_against_first_order else [(test, "")]:
        claims.append(_against_first_order(experiment, quantity, at))
    if about is not None and about.close_to_first_order:
        claims += [_close_to_first_order(experiment, quantity, at) for quantity, at in (*losses, (test, ""))]
    if about is not None and about.beats_first_order is not None:
        claims += [_gain_over_first_order(experiment, test), _best_early(experiment)]
    if experiment.bounds:
        claims += [_above_out_of_domain(experiment, test), _reaches_in_domain(experiment, test)]
    claims += [_score_against_active(experiment, loss, "learns faster than", at) for loss, at in losses]
    claims.append(_score_against_active(experiment, test, "ends better on test than"))
    if experiment.mostly_active:
        claims.append(_score_as_good(experiment, test))
    return [*claims, *annealed_claims(experiment, test)]


def _losses(experiment: ReportedExperiment) -> list[tuple[Quantity, str]]:
    """The average loss in each phase that has it, and the words for the phase where there are two."""
    loss = Quantity("average_loss", f"average cumulative {experiment.loss_name}", True, ("fixed", "tuned"))
    phases = experiment.phases(loss.key)
    if len(phases) < 2:
        return [(loss, "")]
    return [(replace(loss, phases=(phase,)), f", {phase} settings") for phase in phases]


def _active_against_all(experiment: ReportedExperiment, quantity: Quantity, verb: str, at: str = "") -> Claim:
    title = f"ACTIVE {verb} ALL, for every rule{at}"
    source = "paper Sec. 5, chunking; supplement, text classification"
    found, missing = compared(experiment, _same_rule(experiment, "active", "all", PAPER_RULES), quantity)
    if experiment.dense:
        words = "every feature is active in every input here, so ACTIVE is ALL in law and the paper makes no such claim"
        words += "; what differs below is chance" if found else ""
        return Claim(title, source, UNDECIDED, words, tuple(found))
    return claimed(title, NOT_PAPER if experiment.mostly_active else source, found, missing)


def _score_pairs(experiment: ReportedExperiment) -> tuple[str, list[Pair]]:
    """Of the paper's rules, and of others where both were run; with all, where that is the same law and was run."""
    mine = [item.rule for item in experiment.learners if item.perturb == "score" and item.plain]
    rules = [rule for rule in mine if rule in PAPER_RULES or experiment.find(rule, "active")]
    if experiment.dense and not any(experiment.find(rule, "active") for rule in rules):
        return "ACTIVE (here the same as ALL)", _same_rule(experiment, "score", "all", rules)
    return "ACTIVE", _same_rule(experiment, "score", "active", rules)


def _score_against_active(experiment: ReportedExperiment, quantity: Quantity, verb: str, at: str = "") -> Claim:
    other, pairs = _score_pairs(experiment)
    found, missing = compared(experiment, pairs, quantity)
    return claimed(f"SCORE {verb} {other}, for every rule{at}", NOT_PAPER, found, missing)


def _score_as_good(experiment: ReportedExperiment, quantity: Quantity) -> Claim:
    other, pairs = _score_pairs(experiment)
    margin = margin_of(experiment)
    found, missing = compared(experiment, pairs, quantity, equal_within=margin)
    title = f"SCORE ends as good on test as {other}, for every rule, up to {margin:g}"
    return claimed(title, NOT_PAPER, found, missing)


def _order_of_rules(experiment: ReportedExperiment, quantity: Quantity, where: str) -> Claim:
    pairs = [
        (f"{better} {group}", experiment.find(better, group), f"{worse} {group}", experiment.find(worse, group))
        for group in _paper_groups(experiment)
        for better, worse in pairwise(PAPER_RULES)
    ]
    found, missing = compared(experiment, pairs, quantity)
    return claimed(f"two-point > baseline > comparison {where}", "paper Sec. 5, Table 1", found, missing)


def _paper_groups(experiment: ReportedExperiment) -> list[str]:
    """Those that were run; where the paper has ALL alone and it was run, this."""
    groups = [group for group in PAPER_GROUPS if any(experiment.find(rule, group) for rule in PAPER_RULES)]
    return groups[:1] if experiment.mostly_active else groups


def _paper_learners(experiment: ReportedExperiment) -> list[LearnerRuns]:
    groups = _paper_groups(experiment)
    return [item for item in experiment.learners if item.plain and item.rule in PAPER_RULES and item.perturb in groups]


def _against_first_order(experiment: ReportedExperiment, quantity: Quantity, at: str = "") -> Claim:
    """On SMT all of the paper's SZO beat SFO (same criterion in training and test); elsewhere SFO stays above."""
    sfo, mine = experiment.find(_SFO, None), _paper_learners(experiment)
    if experiment.about is not None and experiment.about.beats_first_order is not None:
        title, source = "Every SZO learner of the paper beats SFO on SMT", experiment.about.beats_first_order
        pairs: list[Pair] = [(item.name, item, _SFO, sfo) for item in mine]
    else:
        title, source = "SFO stays above every SZO learner of the paper", "paper Table 1; supplement, in speed"
        pairs = [(_SFO, sfo, item.name, item) for item in mine]
    found, missing = compared(experiment, pairs, quantity)
    return claimed(title + at, source, found, missing)


def _close_to_first_order(experiment: ReportedExperiment, quantity: Quantity, at: str) -> Claim:
    """Up to what the paper itself calls close: 0.888 against 0.908."""
    margin = margin_of(experiment)
    pairs = [("two-point active", experiment.find("two-point", "active"), _SFO, experiment.find(_SFO, None))]
    found, missing = compared(experiment, pairs, quantity, equal_within=margin)
    if quantity.lower_is_better:
        title = f"Two-point ACTIVE learns as fast as SFO, up to {margin:g}{at}"
        source = 'paper Sec. 5, chunking: "a similar convergence speed as the SFO algorithm"'
    else:
        title = f"Two-point ACTIVE ends as good on test as SFO, up to {margin:g}"
        source = 'paper Sec. 5, chunking: "SPARSE two-point updates coming close to the SFO result"'
    return claimed(title, source, found, missing)


def _gain_over_first_order(experiment: ReportedExperiment, quantity: Quantity) -> Claim:
    margin, name = margin_of(experiment), _name(experiment, "two-point")
    title = f"Two-point gains 1.0 BLEU points over SFO, up to {100 * margin:g}"
    source = 'paper Sec. 5, SMT: "also an improvement of 1.0 BLEU points over the SFO Algorithm"'
    pairs = [(name, _of_paper(experiment, "two-point"), _SFO, experiment.find(_SFO, None))]
    found, missing = compared(experiment, pairs, quantity, equal_within=margin, around=0.01)
    return claimed(title, source, found, missing)


def _best_early(experiment: ReportedExperiment) -> Claim:
    """Iterations until the model that is best on dev: two-point before the first million, the others after it."""
    title = "Two-point is best on dev within 1M iterations (the paper: about 100k), baseline and comparison later"
    source = (
        'paper Sec. 5, SMT: "Best development settings for all algorithms are obtained at 1-4M iterations, except for '
        'two-point feedback that reached an optimum already around 100k iterations"'
    )
    quantity = Quantity("best_iteration", "iterations to the best on dev", True, ("tuned", "fixed"), digits=0)
    bound = Spread((float(_EARLY),), exact=True)
    found, missing = [], []
    for rule in PAPER_RULES:
        item = _of_paper(experiment, rule)
        phase = item.best_phase(quantity.key) if item else None
        values = item.spread(phase, quantity.key) if item and phase else None
        if item is None or phase is None or values is None:
            missing.append(_name(experiment, rule))
        elif rule == "two-point":
            found.append(Comparison(item.name, "1M", values, bound, quantity, phase))
        else:
            found.append(Comparison("1M", item.name, bound, values, quantity, phase))
    return claimed(title, source, found, missing)


def _above_out_of_domain(experiment: ReportedExperiment, quantity: Quantity) -> Claim:
    title = "SZO improves on the out-of-domain model it starts from"
    source = (
        "paper Sec. 5, SMT: two-point gains 1.6 of the 2.7 BLEU points between the out-of-domain and in-domain models"
    )
    return claimed(title, source, *_beside_bound(experiment, quantity, "out-of-domain"))


def _reaches_in_domain(experiment: ReportedExperiment, quantity: Quantity) -> Claim:
    margin = margin_of(experiment)
    found, missing = _beside_bound(experiment, quantity, "in-domain")
    found = [replace(item, equal_within=margin, aside="") for item in found]
    return claimed(f"SZO ends as good as the in-domain model, up to {margin:g}", NOT_PAPER, found, missing)


def _beside_bound(experiment: ReportedExperiment, quantity: Quantity, name: str) -> tuple[list[Comparison], list[str]]:
    """Every zeroth-order learner against weights that were only evaluated."""
    low, high = (experiment.bound(each, experiment.metric) for each in ("out-of-domain", "in-domain"))
    value = experiment.bound(name, experiment.metric)
    if value is None:
        return [], [f"the score of the {name} model"]
    found = []
    for item in experiment.learners:
        phase = item.best_phase(quantity.key)
        values = item.spread(phase, quantity.key) if phase else None
        if not item.zeroth_order or item.annealed or phase is None or values is None:
            continue
        aside = ""
        if low is not None and high is not None and high > low:
            aside = f"{(values.mean - low) / (high - low):.0%} of the way to the in-domain model"
        found.append(Comparison(item.name, name, values, Spread((value,), exact=True), quantity, phase, aside))
    return found, []


def _of_paper(experiment: ReportedExperiment, rule: str) -> LearnerRuns | None:
    return next((item for item in _paper_learners(experiment) if item.rule == rule), None)


def _name(experiment: ReportedExperiment, rule: str) -> str:
    groups = _paper_groups(experiment)
    return f"{rule} {groups[0]}" if groups else rule


def _same_rule(experiment: ReportedExperiment, better: str, worse: str, rules: Iterable[str]) -> list[Pair]:
    return [
        (f"{rule} {better}", experiment.find(rule, better), f"{rule} {worse}", experiment.find(rule, worse))
        for rule in rules
    ]
