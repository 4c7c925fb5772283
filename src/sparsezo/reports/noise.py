"""What raters that err cost: the learners of an experiment with several feedback models, set side by side.

    for line in noise_lines(experiment):
        line.name, line.at("exact"), line.flips, line.ratings
    list(noise_sentences(experiment))           # for the summary, one for each rule
    noise_lines(experiment, "tuned")            # where h was tuned for some raters: these

A line is what differs in its feedback alone: a rule with its perturbation (and step, and criterion). Along it h is the
same, so noise and an h that does not suit it cost together; where h was tuned for one noise and for exact answers, the
cost of both is told apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from sparsezo.errors import UsageError
from sparsezo.raters import Feedback, parse_feedback
from sparsezo.reports.comparisons import UNDECIDED, Comparison, Quantity
from sparsezo.reports.results import LearnerRuns, ReportedExperiment, Spread

TELLING = 0.1  # the noise that the summary names


@dataclass(frozen=True)
class NoisePoint:
    """The test metric of a learner at one feedback model."""

    feedback: Feedback
    written: str  # the model, as in settings
    test: Spread


@dataclass(frozen=True, eq=False)
class NoiseLine:
    """Learners that differ in their feedback alone, by rising noise."""

    name: str
    learner: LearnerRuns  # under the name that they share, for its style and its place in a legend
    points: tuple[NoisePoint, ...]

    def at(self, model: str) -> NoisePoint | None:
        """The first of a model: exact, binary."""
        return next((point for point in self.points if point.feedback.model == model), None)

    def of(self, model: str) -> tuple[NoisePoint, ...]:
        """All of a model: flip, rating."""
        return tuple(point for point in self.points if point.feedback.model == model)

    @property
    def flips(self) -> tuple[NoisePoint, ...]:
        """From exact, a comparison that is never wrong, on; none where nothing is flipped."""
        exact, flips = self.at("exact"), self.of("flip")
        return (exact, *flips) if exact and flips else flips

    @property
    def ratings(self) -> tuple[NoisePoint, ...]:
        return self.of("rating")


def noise_phase(experiment: ReportedExperiment) -> str:
    """Tuned where all learners are, else fixed: figures at different settings would not be comparable."""
    tuned = experiment.learners and all(item.spread("tuned", "test") for item in experiment.learners)
    return "tuned" if tuned else "fixed"


def noise_lines(experiment: ReportedExperiment, phase: str | None = None) -> list[NoiseLine]:
    """Those with more than one feedback model; none in an experiment whose raters are all of one kind."""
    phase = phase or noise_phase(experiment)
    families: dict[str, list[tuple[LearnerRuns, NoisePoint]]] = {}
    for learner in experiment.learners:
        test, feedback = learner.spread(phase, "test"), _parsed(learner.feedback)
        if test is not None and feedback is not None:
            found = NoisePoint(feedback, learner.feedback, test)
            families.setdefault(learner.base_name, []).append((learner, found))
    return [
        NoiseLine(name, replace(members[0][0], name=name), tuple(sorted((point for _, point in members), key=_order)))
        for name, members in families.items()
        if len(members) > 1
    ]


def _parsed(text: str) -> Feedback | None:
    try:
        return parse_feedback(text)
    except UsageError:  # of a version that knows other models
        return None


def _order(point: NoisePoint) -> tuple[str, float, float, int]:
    feedback = point.feedback
    return feedback.model, feedback.noise, feedback.bias, feedback.levels


def noise_sentences(experiment: ReportedExperiment) -> Iterator[str]:
    """For each rule what a tenth of wrong answers costs, or of noise in its ratings where it asks for losses."""
    metric, phase = experiment.metric_name, noise_phase(experiment)
    quantity = Quantity("test", f"test {metric}", False, (phase,))
    rules: dict[str, dict[str, list[str]]] = {}
    for line in noise_lines(experiment):
        exact, noisy = line.at("exact"), _telling(line)
        if exact is None or noisy is None:
            continue
        cost = Comparison("exact", noisy.written, exact.test, noisy.test, quantity, phase)
        models = rules.setdefault(line.learner.rule, {})
        models.setdefault(noisy.written, []).append(_cost_text(line, cost))
    for rule, models in rules.items():
        yield _sentence(rule, metric, models)
    if experiment.retuned:
        yield from _retuned_sentences(experiment)


def _retuned_sentences(experiment: ReportedExperiment) -> Iterator[str]:
    """For each rule what one noise costs at the h of exact answers, and with h tuned for each."""
    fixed = {line.name: line for line in noise_lines(experiment, "fixed")}
    told: dict[tuple[str, str], list[str]] = {}
    for line in noise_lines(experiment, "tuned"):
        exact, noisy = line.at("exact"), next((point for point in line.points if point.feedback.model != "exact"), None)
        before = fixed.get(line.name)
        if exact is None or noisy is None or before is None:
            continue
        same = next((point for point in before.points if point.written == noisy.written), None)
        start = before.at("exact")
        if same is None or start is None:
            continue
        variant = line.name.removeprefix(line.learner.rule).strip()
        costs = f"{start.test.mean - same.test.mean:.4f} and {exact.test.mean - noisy.test.mean:.4f}"
        told.setdefault((line.learner.rule, noisy.written), []).append(costs + (f" with {variant}" if variant else ""))
    for (rule, written), each in told.items():
        yield f"At one h, and with h tuned for each rater, {written} costs {rule} {', '.join(each)}."


def _telling(line: NoiseLine) -> NoisePoint | None:
    return next((point for point in (*line.of("flip"), *line.ratings) if point.feedback.noise == TELLING), None)


def _cost_text(line: NoiseLine, cost: Comparison) -> str:
    """0.0120 with active (0.8500 to 0.8380)."""
    variant = line.name.removeprefix(line.learner.rule).strip()
    doubt = "" if cost.verdict != UNDECIDED else ", one seed" if cost.margin is None else ", within seed noise"
    figures = f"({cost.left_values.mean:.4f} to {cost.right_values.mean:.4f}{doubt})"
    return f"{cost.lead:.4f}" + (f" with {variant}" if variant else "") + f" {figures}"


def _sentence(rule: str, metric: str, models: Mapping[str, list[str]]) -> str:
    parts = [f"{model} costs {rule} {' and '.join(costs)}" for model, costs in models.items()]
    return f"In test {metric}, {'; '.join(parts)}."
