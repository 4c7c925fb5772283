"""What raters that err cost: the learners of an experiment with several feedback models, set side by side.

    for line in noise_lines(experiment):
        line.name, line.at("exact"), line.flips, line.of("rating")
    list(noise_sentences(experiment))           # for the summary, one for each rule
    noise_lines(experiment, "tuned")            # where h was tuned for some raters: these
    noise_figure(experiment, folder, "noise")   # None where all raters are of one kind

A line is what differs in its feedback alone: a rule with its perturbation (and step, and criterion). Along it h is the
same, so noise and an h that does not suit it cost together; where h was tuned for one noise and for exact answers, the
cost of both is told apart.

The figure has a column for wrong comparisons and one for noisy ratings, and a row for each perturbation; what perturbs
nothing stands in every row. Mean over seeds, two standard deviations as bars, open marks for ACTIVE. Beside the ratings
stand exact losses on the left and thumbs (binary) on the right, which have no such noise, nor a line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sparsezo.errors import UsageError
from sparsezo.raters import Feedback, parse_feedback
from sparsezo.rules import PERTURBATIONS
from sparsezo.study.reports.comparisons import Comparison, Quantity
from sparsezo.study.reports.figures import (
    WIDTH,
    Figure,
    Style,
    draw_legend,
    legend_rows,
    line_style,
    new_sheet,
    save,
    split,
    within_range,
)
from sparsezo.study.reports.results import LearnerRuns, ReportedExperiment, Spread
from sparsezo.study.reports.tables import signature

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TELLING = 0.1  # the noise that the summary names
_DODGE = 0.011  # of the axis, between lines: so that bars at one place can be told apart
_BESIDE = 0.26  # of the axis, from the ratings to exact and to binary
_GAP = 0.3  # inches between panels
_CROSSES: Style = {"linestyle": (0, (1, 2)), "linewidth": 0.8, "markersize": 6, "markeredgewidth": 1.4}


@dataclass(frozen=True)
class NoisePoint:
    """The test metric of a learner at one feedback model."""

    feedback: Feedback
    written: str  # the model, as in settings
    test: Spread


@dataclass(frozen=True, eq=False)
class NoiseLine:
    """Learners that differ in their feedback alone, by rising noise."""

    learner: LearnerRuns  # under the name that they share, for its style and its place in a legend
    points: tuple[NoisePoint, ...]

    @property
    def name(self) -> str:
        return self.learner.name

    def of(self, model: str) -> tuple[NoisePoint, ...]:
        """All of a model: flip, rating."""
        return tuple(point for point in self.points if point.feedback.model == model)

    def at(self, model: str) -> NoisePoint | None:
        """The first of a model: exact, binary."""
        return next(iter(self.of(model)), None)

    @property
    def flips(self) -> tuple[NoisePoint, ...]:
        """From exact, a comparison that is never wrong, on; none where nothing is flipped."""
        return (*self.of("exact")[:1], *self.of("flip")) if self.of("flip") else ()

    @property
    def variant(self) -> str:
        """with active: what its name has beside the rule, in a sentence."""
        rest = self.name.removeprefix(self.learner.rule).strip()
        return f" with {rest}" if rest else ""


def noise_phase(experiment: ReportedExperiment) -> str:
    """Tuned where all learners are, else fixed: figures at different settings would not be comparable."""
    tuned = experiment.learners and all(item.spread("tuned", "test") for item in experiment.learners)
    return "tuned" if tuned else "fixed"


def noise_lines(experiment: ReportedExperiment, phase: str | None = None) -> list[NoiseLine]:
    """Those with more than one feedback model; none in an experiment whose raters are all of one kind."""
    families: dict[str, tuple[LearnerRuns, list[NoisePoint]]] = {}
    for learner in experiment.learners:
        test = learner.spread(phase or noise_phase(experiment), "test")
        with suppress(UsageError):  # of a version that knows other models
            if test is not None:
                point = NoisePoint(parse_feedback(learner.feedback), learner.feedback, test)
                families.setdefault(learner.base_name, (learner, []))[1].append(point)
    return [
        NoiseLine(replace(first, name=name), tuple(sorted(points, key=_order)))
        for name, (first, points) in families.items()
        if len(points) > 1
    ]


def _order(point: NoisePoint) -> tuple[str, float, float, int]:
    feedback = point.feedback
    return feedback.model, feedback.noise, feedback.bias, feedback.levels


# For the summary


def noise_sentences(experiment: ReportedExperiment) -> Iterator[str]:
    """For each rule what a tenth of wrong answers costs, or of noise in its ratings where it asks for losses.

    Where h was tuned for some raters, then what one noise costs at the h of exact answers, and with h tuned for each.
    """
    metric, phase = experiment.metric_name, noise_phase(experiment)
    quantity = Quantity("test", f"test {metric}", False, (phase,))
    rules: dict[str, dict[str, list[str]]] = {}
    for line in noise_lines(experiment):
        noisy = next((each for each in (*line.of("flip"), *line.of("rating")) if each.feedback.noise == TELLING), None)
        exact = line.at("exact")
        if exact is not None and noisy is not None:
            cost = Comparison("exact", noisy.written, exact.test, noisy.test, quantity, phase)
            doubt = f", {cost.doubt}" if cost.doubt else ""
            told = f"{cost.lead:.4f}{line.variant} ({exact.test.mean:.4f} to {noisy.test.mean:.4f}{doubt})"
            rules.setdefault(line.learner.rule, {}).setdefault(noisy.written, []).append(told)
    for rule, models in rules.items():
        parts = [f"{model} costs {rule} {' and '.join(costs)}" for model, costs in models.items()]
        yield f"In test {metric}, {'; '.join(parts)}."
    retuned: dict[tuple[str, str], list[str]] = {}
    fixed, tuned = ({line.name: line for line in noise_lines(experiment, each)} for each in ("fixed", "tuned"))
    for line in tuned.values() if experiment.retuned else ():
        noisy = next((each for each in line.points if each.feedback.model != "exact"), None)
        both = [fixed[line.name], line] if line.name in fixed else []
        means = [{point.written: point.test.mean for point in each.points} for each in both]
        if noisy is not None and means and all({"exact", noisy.written} <= set(each) for each in means):
            costs = " and ".join(f"{each['exact'] - each[noisy.written]:.4f}" for each in means)
            retuned.setdefault((line.learner.rule, noisy.written), []).append(costs + line.variant)
    for (rule, written), each in retuned.items():
        yield f"At one h, and with h tuned for each rater, {written} costs {rule} {', '.join(each)}."


# The figure


def noise_figure(experiment: ReportedExperiment, folder: Path, slug: str) -> Figure | None:
    """Drawn into ``folder`` as noise-SLUG; None where all raters are of one kind."""
    lines = noise_lines(experiment)
    flips = [line for line in lines if line.of("flip")]
    ratings = [line for line in lines if line.of("rating") or line.at("binary")]
    columns = [column for column in (_Column(flips, False), _Column(ratings, True)) if column.lines]
    if not columns:
        return None
    phase, metric = noise_phase(experiment), experiment.metric_name
    shown = [line.learner for line in lines if line in flips or line in ratings]
    members = [item for item in experiment.learners if item.base_name in {learner.name for learner in shown}]
    mark = signature(experiment, phase, members)
    perturbed = {learner.perturb for learner in shown}
    rows: list[str | None] = [perturb for perturb in PERTURBATIONS if perturb in perturbed] or [None]
    drawing, whole = new_sheet(3.4 if len(rows) == 1 else 2.1 * len(rows), legend_rows(shown), mark)
    panels = split(drawing, whole, len(rows), len(columns), _GAP / WIDTH, _GAP / WIDTH / 2)
    tuned = {line.name: line for line in noise_lines(experiment, "tuned")} if experiment.retuned else {}
    for perturb, row in zip(rows, panels, strict=True):
        for axes, column in zip(row, columns, strict=True):
            column.draw(axes, perturb, tuned, shown)
            if row is not panels[-1]:
                axes.tick_params(labelbottom=False)
                axes.set_xlabel("")
        row[0].set_ylabel(f"{perturb.upper()}: test {metric}" if perturb and len(rows) > 1 else f"test {metric}")
    crossed = " (crosses: h tuned)" if tuned else ""
    panels[0][0].set_title(f"{experiment.title}, {phase} settings{crossed}", fontsize=10.5, loc="left")
    draw_legend(drawing, panels[-1][0], shown, _style)
    title, name = f"Test {metric} against the raters' noise", f"noise-{slug}"
    several = any(point.test.sd is not None for line in lines for point in line.points)
    spread = "bars are 2 standard deviations" if several else "too few seeds for a spread"
    parts = [f"{title}, {phase} settings: mean over seeds, {spread}."]
    if flips:
        parts.append("Comparisons are answered wrongly with the probability below; at 0 they are exact.")
    if bias := _listed(point.feedback.bias for line in ratings for point in line.of("rating")):
        parts.append(f"Ratings are of raters whose biases have standard deviation {bias}.")
    if ratings:
        parts.append("Exact: the loss itself; binary: a thumb up or down.")
    parts.append("ALL solid, ACTIVE dashed with open marks, SCORE dash-dotted; a colour and a marker for each rule.")
    if tuned:
        parts.append("Crosses on thin dotted lines: h tuned on dev, for exact answers and for this noise.")
    return Figure(name, title, " ".join(parts), mark, save(drawing, folder, name))


class _Column:
    """A column of panels with one x axis: wrong comparisons, or ratings with exact losses and thumbs beside them."""

    def __init__(self, lines: Sequence[NoiseLine], ratings: bool) -> None:
        self.lines, self.ratings = lines, ratings
        points = [point for line in lines for point in self._joined(line)]
        self.noises = sorted({point.feedback.noise for point in points})
        self.levels = _listed(point.feedback.levels for point in points)
        self.low, self.high = (self.noises[0], self.noises[-1]) if self.noises else (0.0, 0.0)
        self.span = self.high - self.low or 1.0
        self.gap = _BESIDE * self.span
        self.beside = {"exact": self.low - self.gap, "binary": self.high + self.gap} if ratings else {}

    def _joined(self, line: NoiseLine) -> tuple[NoisePoint, ...]:
        return line.of("rating") if self.ratings else line.flips

    def draw(
        self, axes: Axes, perturb: str | None, tuned: Mapping[str, NoiseLine], shown: Sequence[LearnerRuns]
    ) -> None:
        """A panel: the lines with ``perturb``, or with none, and ``tuned``, the same with h tuned, by name."""
        here = [line for line in self.lines if line.learner.perturb in (perturb, None)]
        wide = self.span * (1 + 2 * _BESIDE) if self.ratings else self.span
        for k, line in enumerate(here):
            shift, style = (k - (len(here) - 1) / 2) * _DODGE * wide, _style(line.learner, shown)
            alone = [(point,) for model in self.beside if (point := line.at(model))]
            for points in (self._joined(line), *alone):
                _bars(axes, points, self._places(points, shift), style)
            if (other := tuned.get(line.name)) and (crosses := other.points if self.ratings else other.flips):
                means = [point.test.mean for point in crosses]
                axes.plot(self._places(crosses, shift), means, "x", color=style["color"], **_CROSSES)
        ticks = {place: model for model, place in self.beside.items()} | {noise: f"{noise:g}" for noise in self.noises}
        axes.set_xticks(sorted(ticks), [ticks[place] for place in sorted(ticks)])
        room = 1.5 * self.gap if self.ratings else 0.05 * self.span
        axes.set_xlim(self.low - room, self.high + room)
        for place in (self.low - self.gap / 2, self.high + self.gap / 2) if self.ratings and self.noises else ():
            axes.axvline(place, color="#b0b0b0", linewidth=0.8, zorder=0.5)
        axes.grid(axis="x", visible=False)
        rated = f"ratings in {self.levels} grades: sd of their noise" if self.levels else "losses"
        axes.set_xlabel(rated if self.ratings else "comparisons: probability of a wrong answer")

    def _places(self, points: Sequence[NoisePoint], shift: float) -> list[float]:
        return [self.beside.get(point.feedback.model, point.feedback.noise) + shift for point in points]


def _bars(axes: Axes, points: Sequence[NoisePoint], places: Sequence[float], style: Style) -> None:
    if points:
        means = np.array([point.test.mean for point in points])
        sds = np.array([np.nan if point.test.sd is None else point.test.sd for point in points])  # nan: no bar
        down, up = means - within_range(means - 2 * sds), within_range(means + 2 * sds) - means
        thin = {"linewidth": 1.4, "markersize": 5}
        axes.errorbar(places, means, yerr=[down, up], elinewidth=1.1, capsize=2, **{**style, **thin})


def _style(learner: LearnerRuns, shown: Sequence[LearnerRuns]) -> Style:
    """Marks without a line must tell the perturbations apart, too."""
    return line_style(learner, shown) | ({"markerfacecolor": "white"} if learner.perturb == "active" else {})


def _listed(values: Iterable[float]) -> str:
    return ", ".join(f"{value:g}" for value in sorted(set(values)))
