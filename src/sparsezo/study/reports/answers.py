"""Quality against a person's time and answers: the curves of an experiment with looks, and what they say in tables.

    for line in lines(experiment):                      # in the plan's order
        line.title, line.curve("test"), line.at("test", 5000)
    needed(line.curve("test"), 0.9)                     # answers, between looks by the line on a log axis
    for name, clock in stated(experiment).items():      # the plan's tables of seconds
        line.minutes(clock), line.after("test", clock, 60.0)
    findings(experiment)                                # in sentences made from these figures

Curves of different rules meet at numbers of answers. Each answer is one decision, and so is each token of a sentence
that is labelled as a whole. Minutes are linear in what a curve counts (plan.COSTS), by a table that the plan states.
What is shown is of the weights of the moment, or with the plan's ``keep_best`` of those best on dev up to there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import UsageError
from sparsezo.raters import parse_feedback
from sparsezo.settings import SETTINGS, usually_rehearsed
from sparsezo.study.plan import LEAST_CONFIDENT, Clock, clocks, parse_start, seconds_of
from sparsezo.study.reports.comparisons import Comparison, Quantity
from sparsezo.study.reports.reading import declared_learners
from sparsezo.study.reports.results import Fields, LearnerRuns, MeanCurve, ReportedExperiment, Spread, curve_column
from sparsezo.study.reports.tables import NOTHING, PlainTable, count_text, spread_text

PHASE = "fixed"
_WORDS = {"review": "{}", "ask": "asked at {}", "rehearse": "rehearsing {}", "about": "about {}s"}
_REVIEWS = {"marked": "of what is marked", "auto": "in the form that gains more"}
_BY_CHANCE = {"part": 0.5, "pair": 0.6667}  # the share of wrong answers of somebody who says anything


def of_answers(experiment: ReportedExperiment) -> bool:
    """Whether its runs are looked at after the same numbers of answers."""
    looks = experiment.declared.get("looks")
    return isinstance(looks, list) and bool(looks)


def section_title(experiment: ReportedExperiment) -> str:
    """Of a built-in experiment the task's; one's own have their own."""
    return experiment.title if experiment.own or experiment.about is None else experiment.about.title


def inputs_of(experiment: ReportedExperiment) -> str:
    """What its task calls inputs."""
    return experiment.about.inputs if experiment.about else "inputs"


@dataclass(frozen=True, eq=False)
class Line:
    """A learner with its place in the plan."""

    learner: LearnerRuns
    declared: Fields
    inputs: str  # what the task calls these

    @property
    def label(self) -> str | None:
        """In the main figure; None: it is not there."""
        label = self.declared.get("figure")
        return label if isinstance(label, str) else None

    @property
    def labels(self) -> str | None:
        """How whole inputs are chosen, where they are labelled."""
        return self.declared.get("labels")

    @property
    def start(self) -> str | None:
        return self.declared.get("start")

    @property
    def wrong(self) -> float:
        """The share of wrong answers."""
        try:
            feedback = parse_feedback(self.learner.feedback)
        except UsageError:  # of a version that knows other models
            return math.nan
        return {"flip": feedback.noise, "exact": 0.0}.get(feedback.model, math.nan)

    @property
    def answered_at_random(self) -> bool:
        """Its answers say nothing: what such a line gains, choosing on dev alone gives."""
        return self.wrong == _BY_CHANCE.get(self.learner.rule)

    @property
    def variant(self) -> Fields:
        """What of some options is not as it is by default."""
        plain = {name: SETTINGS[name].default for name in _WORDS} | {"rehearse": usually_rehearsed(self.declared)}
        if self.declared.get("rule") == "span":
            plain["about"] = "chunk"
        given = {name: self.declared[name] for name in _WORDS if self.declared.get(name) is not None}
        return {name: value for name, value in given.items() if value != plain[name]}

    @property
    def plain(self) -> bool:
        """Cold, with right answers, and as by default."""
        return self.start is None and self.wrong == 0 and not self.variant and not self.declared.get("mistakes")

    @property
    def title(self) -> str:
        item = self.declared
        mistakes = f"mistakes in {share:.0%} where it is hard" if (share := item.get("mistakes")) else ""
        if self.labels:
            how = "at random" if self.labels == "random" else "least sure first"
            return f"whole {self.inputs} labelled, {how}{', ' if mistakes else ''}{mistakes}"
        words = [str(item.get("rule")), *([str(item["perturb"])] if item.get("perturb") else [])]
        words += ["with baseline"] if item.get("baseline") else []
        words += [_WORDS[name].format(_REVIEWS.get(value, value)) for name, value in self.variant.items()]
        feedback, error = str(item.get("feedback", "exact")), str(item.get("rater_error", "0"))
        if self.answered_at_random:
            words.append("answered at random")
        elif feedback != "exact":
            words.append(f"{feedback}, {'not known' if error == '0' else f'believed {error}'}")
        if self.start:
            how, count = parse_start(self.start)
            words.append("from" if how == "labels" else "from the output of a model of")
            words.append(f"{count} labelled {self.inputs}")
        return " ".join(words) + (f", {mistakes}" if mistakes else "")

    def curve(self, column: str) -> MeanCurve | None:
        return self.learner.mean_curve(PHASE, column, "answers")

    def at(self, column: str, look: int) -> Spread | None:
        """Over seeds, after so many answers."""
        values = {}
        for run in self.learner.runs(PHASE):
            found = [] if run.curve is None else curve_column(run.curve, column)[run.curve["answers"] == look].tolist()
            if found and math.isfinite(found[0]):
                values[run.seed] = found[0]
        return Spread(tuple(values.values()), seeds=tuple(values)) if values else None

    def seconds(self, clock: Clock) -> Mapping[str, float]:
        """What of a curve's counts takes how long."""
        return seconds_of(clock, self.learner.rule, self.declared.get("review"), self.labels)

    def minutes(self, clock: Clock) -> NDArray[np.float64] | None:
        """A person's time at each point of the curve of dev; None where the table, or the curve, does not say."""
        curve, costs = self.curve("dev"), self.seconds(clock)
        counts = [self.curve(column) for column in costs]
        if curve is None or not costs or any(each is None or each.at.size != curve.at.size for each in counts):
            return None
        means = [each.mean for each in counts if each is not None]
        return np.asarray(sum(value * mean for value, mean in zip(costs.values(), means, strict=True)) / 60)

    def after(self, column: str, clock: Clock, minutes: float) -> Spread | None:
        """Over seeds, after so many minutes, between looks by the line on a log axis; None where one has not come so
        far, or was not looked at before."""
        costs, values = self.seconds(clock), {}
        for run in self.learner.runs(PHASE):
            if run.curve is None or not costs:
                return None
            spent = np.sum([value * run.curve[name] for name, value in costs.items()], axis=0) / 60
            known = (spent > 0) & np.isfinite(y := curve_column(run.curve, column))
            if not known.any() or not spent[known][0] <= minutes <= spent[known][-1]:
                return None
            values[run.seed] = float(np.interp(math.log(minutes), np.log(spent[known]), y[known]))
        return Spread(tuple(values.values()), seeds=tuple(values)) if values else None


def stated(experiment: ReportedExperiment) -> dict[str, Clock]:
    """The tables of seconds of its plan, by name, the main one first."""
    seconds = experiment.declared.get("seconds")
    return clocks(seconds) if isinstance(seconds, Mapping) else {}


def rival_of(shown: Sequence[Line]) -> Line | None:
    """What others are measured by in minutes: whole inputs labelled from nothing, the least sure first."""
    return next((line for line in shown if line.labels == LEAST_CONFIDENT and line.plain), None)


def lines(experiment: ReportedExperiment) -> list[Line]:
    """Those with curves, in the plan's order."""
    found = {item.name: item for item in experiment.learners if item.mean_curve(PHASE, "dev", "answers") is not None}
    planned = declared_learners(experiment.declared)
    return [Line(found[name], item, inputs_of(experiment)) for name, item in planned.items() if name in found]


def main_column(experiment: ReportedExperiment, shown: Sequence[Line]) -> str:
    """test, where it was looked at; kept, where the plan wants that; else dev."""
    if not any(line.curve("test") is not None for line in shown):
        return "dev"
    return "kept" if experiment.declared.get("keep_best") else "test"


def spoken(column: str) -> str:
    """On which data it is."""
    return "test" if column == "kept" else column


def of_weights(column: str) -> str:
    """Of which weights it is."""
    return "best on dev up to there, as train keeps them" if column == "kept" else "of the moment, not chosen on dev"


# Where a curve reaches a threshold


@dataclass(frozen=True)
class Needed:
    """``at``: None where it was not reached by ``most``; ``bound``: by then, or before."""

    at: float | None
    most: float
    bound: bool = False

    def __str__(self) -> str:
        if self.at is None:
            return f"more than {_rounded(self.most)}"
        return f"at most {_rounded(self.at)}" if self.bound else _rounded(self.at)


def needed(curve: MeanCurve, threshold: float, x: NDArray[np.float64] | None = None) -> Needed:
    """The first look at or above it, and from the one before by a straight line on the log axis."""
    places = np.asarray(curve.at if x is None else x, np.float64)
    above = np.flatnonzero(curve.mean >= threshold)
    if not above.size:
        return Needed(None, float(places[-1]))
    k = int(above[0])
    if k == 0 or places[k - 1] <= 0:
        return Needed(float(places[k]), float(places[-1]), bound=places[k] > 0)
    share = (threshold - curve.mean[k - 1]) / (curve.mean[k] - curve.mean[k - 1])
    at = math.exp(math.log(places[k - 1]) + share * math.log(places[k] / places[k - 1]))
    return Needed(at, float(places[-1]))


def _rounded(value: float) -> str:
    """Two digits, as there are no more to be had: 1,200."""
    if value < 1:
        return f"{value:.1g}" if value else "0"
    size = 10 ** max(math.floor(math.log10(value)) - 1, 0)
    return f"{round(value / size) * size:,.0f}"


# Tables


def shown_looks(experiment: ReportedExperiment) -> list[int]:
    """Round ones, and the last."""
    looks = [look for look in experiment.declared["looks"] if isinstance(look, int)]
    return [look for look in looks if str(look).rstrip("0") in ("1", "2", "3", "5") or look == looks[-1]]


def thresholds(experiment: ReportedExperiment) -> list[float]:
    values = experiment.declared.get("thresholds")
    return [float(value) for value in values] if isinstance(values, list) else []


def digits(experiment: ReportedExperiment) -> int:
    """Of quality: three, or as many as its thresholds have."""
    return max([3, *(len(f"{value:.6f}".rstrip("0").partition(".")[2]) for value in thresholds(experiment))])


def quality_table(experiment: ReportedExperiment, shown: Sequence[Line], column: str) -> PlainTable:
    """After looks; where everything is labelled before one, that stands there once."""
    looks, places, rows = shown_looks(experiment), digits(experiment), []
    for line in shown:
        cells = [spread_text(line.at(column, look), places) for look in looks]
        curve = line.curve(column) if line.labels else None
        last = int(curve.at[-1]) if curve is not None else looks[-1]
        beyond = [k for k, look in enumerate(looks) if look > last]
        if beyond and last not in looks:
            cells[beyond[0]] = f"{spread_text(line.at(column, last), places)} (all {last:,})"
        rows.append((line.title, *cells))
    return PlainTable(("learner", *map(count_text, looks)), rows)


def needed_table(experiment: ReportedExperiment, shown: Sequence[Line], column: str) -> PlainTable:
    """Answers for each threshold."""
    curves = [(line.title, line.curve(column)) for line in shown if not line.answered_at_random]
    rows = [
        (title, *(str(needed(curve, value)) for value in thresholds(experiment)))
        for title, curve in curves
        if curve is not None
    ]
    return PlainTable((f"answers for {experiment.metric_name}", *map(str, thresholds(experiment))), rows)


def needed_minutes(line: Line, clock: Clock, column: str, threshold: float) -> Needed | None:
    """None where the table or the curve does not say."""
    curve, dev, x = line.curve(column), line.curve("dev"), line.minutes(clock)
    if curve is None or dev is None or x is None:
        return None
    return needed(curve, threshold, x[np.isin(dev.at, curve.at)])


def times_faster(mine: Needed | None, rival: Needed | None) -> str | None:
    """How many times as long the rival takes, as far as is known; None where nothing is."""
    if mine is None or rival is None or not mine.at or mine.bound or (rival.bound and rival.at):
        return None
    if rival.at is None:
        return f"> {rival.most / mine.at:.2g}" if rival.most > mine.at else None
    return f"{rival.at / mine.at:.2g}"


def minutes_table(experiment: ReportedExperiment, shown: Sequence[Line], column: str, clock: Clock) -> PlainTable:
    """Minutes for each threshold, and in brackets how many times as long the rival takes by the same table."""
    rival, wanted, rows = rival_of(shown), thresholds(experiment), []
    theirs = [None if rival is None else needed_minutes(rival, clock, column, value) for value in wanted]
    for line in shown:
        mine = [needed_minutes(line, clock, column, value) for value in wanted]
        if line.answered_at_random or not all(mine):
            continue
        faster = [None if line is rival else times_faster(*pair) for pair in zip(mine, theirs, strict=True)]
        cells = (f"{each} ({times})" if times else str(each) for each, times in zip(mine, faster, strict=True))
        rows.append((line.title, *cells))
    return PlainTable((f"minutes for {experiment.metric_name}", *map(str, wanted)), rows)


def after_table(experiment: ReportedExperiment, shown: Sequence[Line], column: str, clock: Clock) -> PlainTable | None:
    """Quality after so many minutes; None where the plan names none."""
    asked = experiment.declared.get("after") or []
    rows = [
        (line.title, *(spread_text(line.after(column, clock, float(value)), digits(experiment)) for value in asked))
        for line in shown
        if line.minutes(clock) is not None
    ]
    return PlainTable(("minutes", *(f"{value:g}" for value in asked)), rows) if asked and rows else None


def noise_rows(shown: Sequence[Line]) -> Iterator[tuple[str, float, Line | None, Line | None]]:
    """(rule, share of wrong answers, line that knows it, line that does not), for cold learners as by default."""
    plain = [line for line in shown if line.start is None and not line.variant and not line.labels]
    plain = [line for line in plain if not line.answered_at_random]
    for rule, wrong in sorted({(line.learner.rule, line.wrong) for line in plain if line.wrong > 0}):
        mine = [line for line in plain if (line.learner.rule, line.wrong) == (rule, wrong)]
        told = [str(line.declared.get("rater_error", "0")) == f"{wrong:g}" for line in mine]
        known, unknown = (dict(zip(told[::-1], mine[::-1], strict=True)).get(whether) for whether in (True, False))
        yield rule, wrong, known, unknown


def noise_table(experiment: ReportedExperiment, shown: Sequence[Line], column: str) -> PlainTable | None:
    """Quality where answers are wrong, beside right ones, or None where there are no wrong ones."""
    noisy, looks, places = list(noise_rows(shown)), shown_looks(experiment), digits(experiment)
    rows: list[tuple[str, ...]] = []

    def add(rule: str, share: float, word: str, line: Line | None) -> None:
        cells = (NOTHING if line is None else spread_text(line.at(column, look), places) for look in looks)
        rows.append((rule, f"{share:.0%}", word, *cells))

    for rule in dict.fromkeys(rule for rule, *_ in noisy):
        add(rule, 0.0, "", next((line for line in shown if line.plain and line.learner.rule == rule), None))
        for _, wrong, known, unknown in (each for each in noisy if each[0] == rule):
            for line, word in ((known, "known"), (unknown, "not known")):
                if line is not None:
                    add(rule, wrong, word, line)
    head = ("rule", "wrong answers", "e is", *map(count_text, looks))
    return PlainTable(head, rows, words=(2,)) if rows else None


# In sentences. Where two learners are compared at one number of answers, the 95% interval of the difference says
# whether it counts.

_TELLING = (1000, 5000, 20_000)  # numbers of answers that people ask about


def findings(experiment: ReportedExperiment) -> list[str]:
    """What the curves say, made from their figures: none is written down before."""
    return list(_Findings(experiment))


class _Findings:
    """The sentences about one experiment."""

    def __init__(self, experiment: ReportedExperiment) -> None:
        self.experiment, self.lines = experiment, lines(experiment)
        self.column = main_column(experiment, self.lines)
        self.metric, self.digits = experiment.metric_name, digits(experiment)
        self.looks = shown_looks(experiment)
        self.telling = [look for look in _TELLING if look in self.looks] or self.looks[-1:]
        self.cold = [line for line in self.lines if line.plain]

    def __iter__(self) -> Iterator[str]:
        # the first rule of the plan that learns from answers, as it is by default
        asker = next((line for line in self.cold if line.label and not line.labels and not line.learner.perturb), None)
        curve = asker.curve(self.column) if asker else None
        yield from self._best()
        if asker is not None:
            yield from self._labels(asker)
        if asker is not None and curve is not None:
            yield from self._zeroth_order(asker, curve)
        yield from self._options()
        if asker is not None and curve is not None:
            yield from self._starts(asker, curve)
        yield from self._time()

    def _told(self, spread: Spread) -> str:
        return spread_text(spread, self.digits)

    def _differences(self, line: Line, other: Line, looks: Sequence[int]) -> list[str]:
        """By how much a line is above another at looks that both have."""
        quantity = Quantity(self.column, f"{spoken(self.column)} {self.metric}", False, (PHASE,))
        told = []
        for look in looks:
            mine, theirs = line.at(self.column, look), other.at(self.column, look)
            if mine is not None and theirs is not None:
                found = Comparison(line.title, "", mine, theirs, quantity, PHASE)
                doubt = f" ({found.doubt})" if found.doubt else ""
                told.append(f"{found.lead:+.{self.digits}f}{doubt} at {look:,}")
        return told

    def _best(self) -> Iterator[str]:
        for look in dict.fromkeys((*self.telling[:1], self.looks[-1])):
            ranked = [(spread, line.title) for line in self.cold if (spread := line.at(self.column, look))]
            if len(ranked) > 1:
                (best, first), (next_best, second), *_ = sorted(ranked, key=lambda each: -each[0].mean)
                yield (
                    f"After {look:,} decisions {first} is ahead, {spoken(self.column)} {self.metric} "
                    f"{self._told(best)}; next is {second} with {self._told(next_best)}."
                )

    def _labels(self, asker: Line) -> Iterator[str]:
        """What so many answers are worth in labels of whole inputs."""
        reached = [(look, spread.mean) for look in self.telling if (spread := asker.at(self.column, look)) is not None]
        for line in self.cold:
            curve = line.curve(self.column) if line.labels else None
            if curve is not None and reached:
                worth = (
                    f"{look:,} answers reach {mean:.{self.digits}f}, which takes {needed(curve, mean)}"
                    for look, mean in reached
                )
                yield f"{asker.title} against {line.title}: {'; '.join(worth)} labels."

    def _zeroth_order(self, asker: Line, curve: MeanCurve) -> Iterator[str]:
        for line in self.cold:
            last = line.at(self.column, self.looks[-1])
            if last is not None and line.label is not None and not line.labels and line.learner.perturb is not None:
                yield (
                    f"{line.title} has {self._told(last)} after {self.looks[-1]:,} answers; {asker.title} needs "
                    f"{needed(curve, last.mean)} for as much."
                )

    def _options(self) -> Iterator[str]:
        """What each option changes, and what wrong answers do, against the same rule without it."""
        plain = {line.learner.rule: line for line in reversed(self.cold)}
        for line in self.lines:
            if line.learner.rule in plain and line.variant and not line.start and not line.wrong:
                base = plain[line.learner.rule]
                if told := self._differences(line, base, self.telling):
                    yield f"{line.title}, against {base.title}: {'; '.join(told)}."
        for rule, wrong, known, unknown in noise_rows(self.lines):
            costs = [
                f"where that is {word}, {' and '.join(found)}"
                for line, word in ((known, "known"), (unknown, "not known"))
                if line and rule in plain and (found := self._differences(line, plain[rule], self.telling[-2:]))
            ]
            if costs:
                yield f"{rule} with {wrong:.0%} of the answers wrong: {'; '.join(costs)}."

    def _starts(self, asker: Line, cold: MeanCurve) -> Iterator[str]:
        for line in self.lines:
            first = line.at(self.column, 0) if line.start else None
            if first is not None:
                yield (
                    f"{line.title}: it begins at {self._told(first)}, where a cold start is after "
                    f"{needed(cold, first.mean)} answers; then, against cold, "
                    f"{'; '.join(self._differences(line, asker, self.telling[:2]))}. What the "
                    "start has cost is not counted."
                )

    def _time(self) -> Iterator[str]:
        """By each table, for the highest threshold that at least two lines of the figure reach, the fastest first."""
        main, rival = [line for line in self.lines if line.label and line.wrong == 0], rival_of(self.lines)
        for name, clock in stated(self.experiment).items():
            for threshold in reversed(thresholds(self.experiment)):
                times = [(line, needed_minutes(line, clock, self.column, threshold)) for line in main]
                reached = [(time.at, line, time) for line, time in times if time and time.at is not None]
                if len(reached) < 2:
                    continue
                found = sorted(reached, key=lambda each: each[0])
                _, best, its = found[0]
                theirs = None if rival is None else needed_minutes(rival, clock, self.column, threshold)
                faster = None if best is rival else times_faster(its, theirs)
                words = "; ".join(f"{line.title} {time}" for _, line, time in found)
                lead = f" {best.title} is {faster} times as fast as {rival.title}." if faster and rival else ""
                yield f"By the table {name}, {self.metric} {threshold:g} takes, in minutes: {words}.{lead}"
                break
