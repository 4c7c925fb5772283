"""What curves against answers say, in sentences made from their figures: none is written down before.

    for sentence in findings(experiment):
        print(sentence)

Where two learners are compared at one number of answers, the 95% interval of the difference says whether it counts.
"""

from __future__ import annotations

from collections.abc import Iterator

from sparsezo.reports.answers import (
    Line,
    digits,
    lines,
    main_column,
    minutes,
    needed,
    noise_rows,
    shown_looks,
    spoken,
    thresholds,
)
from sparsezo.reports.comparisons import UNDECIDED, Comparison, Quantity
from sparsezo.reports.results import ReportedExperiment, Spread
from sparsezo.reports.tables import spread_text

_TELLING = (1000, 5000, 20_000)  # numbers of answers that people ask about


class Findings:
    """The sentences about one experiment."""

    def __init__(self, experiment: ReportedExperiment) -> None:
        self.experiment, self.lines = experiment, lines(experiment)
        self.column = main_column(experiment, self.lines)
        self.metric, self.digits = experiment.metric_name, digits(experiment)
        self.looks = shown_looks(experiment)
        self.cold = [line for line in self.lines if line.plain]

    def __iter__(self) -> Iterator[str]:
        yield from self._best()
        yield from self._labels()
        yield from self._zeroth_order()
        yield from self._variants()
        yield from self._noise()
        yield from self._starts()
        yield from self._time()

    def _told(self, spread: Spread) -> str:
        return spread_text(spread, self.digits)

    @property
    def asker(self) -> Line | None:
        """The first rule of the plan that learns from answers, as it is by default."""
        return next((line for line in self.cold if line.label and not line.labels and not line.learner.perturb), None)

    def _telling(self) -> list[int]:
        """Looks that people ask about, of those there are; else the last."""
        return [look for look in _TELLING if look in self.looks] or self.looks[-1:]

    def _best(self) -> Iterator[str]:
        for look in dict.fromkeys((*self._telling()[:1], self.looks[-1])):
            ranked = [(spread.mean, line, spread) for line in self.cold if (spread := line.at(self.column, look))]
            if len(ranked) > 1:
                ranked.sort(key=lambda each: -each[0])
                best, second = ranked[0], ranked[1]
                yield (
                    f"After {look:,} decisions {best[1].title} is ahead, {spoken(self.column)} {self.metric} "
                    f"{self._told(best[2])}; next is {second[1].title} with {self._told(second[2])}."
                )

    def _labels(self) -> Iterator[str]:
        """What so many answers are worth in labels of whole inputs."""
        asker = self.asker
        for line in self.cold:
            curve = line.curve(self.column) if line.labels else None
            if asker is None or curve is None:
                continue
            worth = []
            for look in self._telling():
                if (spread := asker.at(self.column, look)) is not None:
                    found = needed(curve, spread.mean)
                    worth.append(f"{look:,} answers reach {spread.mean:.{self.digits}f}, which takes {found}")
            if worth:
                yield f"{asker.title} against {line.title}: {'; '.join(worth)} labels."

    def _zeroth_order(self) -> Iterator[str]:
        asker = self.asker
        curve = asker.curve(self.column) if asker else None
        for line in self.cold:
            last = line.at(self.column, self.looks[-1])
            if asker is None or curve is None or line is asker or line.label is None or line.labels or last is None:
                continue
            if line.learner.perturb is not None:
                found = needed(curve, last.mean)
                yield (
                    f"{line.title} has {self._told(last)} after {self.looks[-1]:,} answers; {asker.title} needs "
                    f"{found} for as much."
                )

    def _variants(self) -> Iterator[str]:
        """What each option changes, against the same rule without it."""
        for line in self.lines:
            plain = next((other for other in self.cold if other.learner.rule == line.learner.rule), None)
            if plain is None or not line.variant or line.start or line.wrong:
                continue
            told = [text for look in self._telling() if (text := self._difference(line, plain, look))]
            if told:
                yield f"{line.title}, against {plain.title}: {'; '.join(told)}."

    def _difference(self, line: Line, other: Line, look: int) -> str | None:
        mine, theirs = line.at(self.column, look), other.at(self.column, look)
        if mine is None or theirs is None:
            return None
        found = self._compared(line, other, mine, theirs)
        return f"{found.lead:+.{self.digits}f}{_doubt(found)} at {look:,}"

    def _compared(self, line: Line, other: Line, mine: Spread, theirs: Spread) -> Comparison:
        quantity = Quantity(self.column, f"{spoken(self.column)} {self.metric}", False, ("fixed",))
        return Comparison(line.title, other.title, mine, theirs, quantity, "fixed")

    def _noise(self) -> Iterator[str]:
        for rule, wrong, known, unknown in noise_rows(self.lines):
            exact = next((line for line in self.cold if line.learner.rule == rule), None)
            if exact is None:
                continue
            costs = []
            for line, word in ((known, "known"), (unknown, "not known")):
                found = [
                    text for look in self._telling()[-2:] if line and (text := self._difference(line, exact, look))
                ]
                costs += [f"where that is {word}, {' and '.join(found)}"] if found else []
            if costs:
                yield f"{rule} with {wrong:.0%} of the answers wrong: {'; '.join(costs)}."

    def _starts(self) -> Iterator[str]:
        asker = self.asker
        cold = asker.curve(self.column) if asker else None
        for line in self.lines:
            first = line.at(self.column, 0) if line.start else None
            if asker is None or cold is None or first is None:
                continue
            told = [text for look in self._telling()[:2] if (text := self._difference(line, asker, look))]
            yield (
                f"{line.title}: it begins at {self._told(first)}, where a cold start is after "
                f"{needed(cold, first.mean)} answers; then, against cold, {'; '.join(told)}. What the "
                "start has cost is not counted."
            )

    def _time(self) -> Iterator[str]:
        """For the highest threshold that at least two lines of the figure reach."""
        for threshold in reversed(thresholds(self.experiment)):
            found = []
            for line in self.cold:
                curve, x = line.curve(self.column), minutes(line, self.experiment)
                if line.label and curve is not None and x is not None:
                    time = needed(curve, threshold, x)
                    found += [(time.at, f"{line.title} {time}")] if time.at is not None else []
            if len(found) > 1:
                found.sort(key=lambda each: each[0] or 0.0)
                words = "; ".join(text for _, text in found)
                yield f"By the model of time, {self.metric} {threshold:g} takes, in minutes: {words}."
                return


def findings(experiment: ReportedExperiment) -> list[str]:
    return list(Findings(experiment))


def _doubt(found: Comparison) -> str:
    if found.verdict != UNDECIDED:
        return ""
    return " (one seed)" if found.margin is None else " (within seed noise)"
