"""Quality against answers: the curves of an experiment with looks, what they say in tables, and a person's time.

    for line in lines(experiment):                      # in the plan's order
        line.title, line.curve("test"), line.at("test", 5000)
    needed(line.curve("test"), 0.9)                     # answers, between looks by the line on a log axis
    minutes(line, experiment)                           # by the plan's model of seconds

Curves of different rules meet at numbers of answers. Each answer is one decision, and so is each token of a sentence
that is labelled as a whole. What is shown is of the weights of the moment, or with the plan's ``keep_best`` of those
best on dev up to there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import UsageError
from sparsezo.experiments.learners import parse_start
from sparsezo.raters import parse_feedback
from sparsezo.reports.reading import declared_learners
from sparsezo.reports.render import PlainTable
from sparsezo.reports.results import LearnerRuns, MeanCurve, ReportedExperiment, Spread
from sparsezo.reports.tables import NOTHING, count_text, spread_text
from sparsezo.settings import SETTINGS, usually_rehearsed

PHASE = "fixed"
_ROUND = ("1", "2", "3", "5")  # first digits of looks that tables show
_TIME = {  # rule -> (key of seconds, how many such answers a step takes)
    "part": ("yes_no", 1),
    "label": ("label", 1),
    "span": ("label", 1),
    "pair": ("pair", 1),
    "pairwise": ("pair", 1),
    "preference": ("pair", 1),
    "comparison": ("pair", 1),
    "rate": ("rate", 1),
    "first-order": ("rate", 1),
    "cross-entropy": ("rate", 1),
    "baseline": ("rate", 1),
    "two-point": ("rate", 2),
    "symmetric": ("rate", 2),
}
_WORDS = {"ask": "asked at {}", "rehearse": "rehearsing {}", "about": "about {}s"}


def _varied(declared: Mapping[str, Any]) -> dict[str, Any]:
    """What of these options is not as it is by default."""
    plain = {name: SETTINGS[name].default for name in _WORDS} | {"rehearse": usually_rehearsed(declared)}
    if declared.get("rule") == "span":
        plain["about"] = "chunk"
    given = {name: declared[name] for name in _WORDS if declared.get(name) is not None}
    return {name: value for name, value in given.items() if value != plain[name]}


def of_answers(experiment: ReportedExperiment) -> bool:
    """Whether its runs are looked at after the same numbers of answers."""
    looks = experiment.declared.get("looks")
    return isinstance(looks, list) and bool(looks)


def section_title(experiment: ReportedExperiment) -> str:
    """Of a built-in experiment the task's; one's own have their own."""
    return experiment.title if experiment.own or experiment.about is None else experiment.about.title


@dataclass(frozen=True, eq=False)
class Line:
    """A learner with its place in the plan."""

    learner: LearnerRuns
    declared: Mapping[str, Any]
    title: str

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
        return feedback.noise if feedback.model == "flip" else 0.0 if feedback.model == "exact" else math.nan

    @property
    def known(self) -> bool:
        """Whether the learner knows how often answers are wrong."""
        return str(self.declared.get("rater_error", "0")) == f"{self.wrong:g}"

    @property
    def variant(self) -> dict[str, Any]:
        """What differs from the rule as it is by default."""
        return _varied(self.declared)

    @property
    def plain(self) -> bool:
        """Cold, with right answers, and as by default."""
        return self.start is None and self.wrong == 0 and not self.variant

    def curve(self, column: str, along: str = "answers") -> MeanCurve | None:
        return self.learner.mean_curve(PHASE, column, along)

    def at(self, column: str, look: int) -> Spread | None:
        """Over seeds, after so many answers."""
        values, seeds = [], []
        for run in self.learner.runs(PHASE):
            if run.curve is None or (answers := run.curve.answers) is None:
                continue
            known = getattr(run.curve, column)
            found = [] if known is None else known[answers == look][:1].tolist()
            values += [value for value in found if math.isfinite(value)]
            seeds += [run.seed for value in found if math.isfinite(value)]
        return Spread(tuple(values), seeds=tuple(seeds)) if values else None


def lines(experiment: ReportedExperiment) -> list[Line]:
    """Those with curves, in the plan's order."""
    found = {learner.name: learner for learner in experiment.learners}
    return [
        Line(found[name], item, _title(item, experiment))
        for name, item in declared_learners(experiment.declared).items()
        if name in found and found[name].mean_curve(PHASE, "dev", "answers") is not None
    ]


def _title(item: Mapping[str, Any], experiment: ReportedExperiment) -> str:
    inputs = experiment.about.inputs if experiment.about else "inputs"
    labels, start = item.get("labels"), item.get("start")
    if labels:
        return f"whole {inputs} labelled, " + ("at random" if labels == "random" else "least sure first")
    words = [str(item.get("rule"))]
    words += [str(item["perturb"])] if item.get("perturb") else []
    words += ["with baseline"] if item.get("baseline") else []
    words += [_WORDS[name].format(value) for name, value in _varied(item).items()]
    feedback, error = str(item.get("feedback", "exact")), str(item.get("rater_error", "0"))
    if feedback != "exact":
        words.append(f"{feedback}, {'not known' if error == '0' else f'believed {error}'}")
    if start:
        how, count = parse_start(start)
        model = f"{count} labelled {inputs}"
        words.append(f"from {model}" if how == "labels" else f"from the output of a model of {model}")
    return " ".join(words)


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


def needed(curve: MeanCurve, threshold: float, x: NDArray[Any] | None = None) -> Needed:
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


def minutes(line: Line, experiment: ReportedExperiment) -> NDArray[np.float64] | None:
    """A person's time at each point of the line's curves; None where the model does not say."""
    seconds = experiment.declared.get("seconds")
    curve = line.curve("dev")
    if not isinstance(seconds, Mapping) or curve is None:
        return None
    read = float(seconds.get("read", 0.0))
    if line.labels:
        inputs = line.curve("inputs")
        if inputs is None or "token" not in seconds:
            return None
        return np.asarray((read * inputs.mean + float(seconds["token"]) * curve.at) / 60)
    key, times = _TIME.get(line.learner.rule, ("", 0))
    if key not in seconds:
        return None
    return np.asarray((read + times * float(seconds[key])) * curve.at / 60)


# Tables


def shown_looks(experiment: ReportedExperiment) -> list[int]:
    """Round ones, and the last."""
    looks = [look for look in experiment.declared["looks"] if isinstance(look, int)]
    return [look for look in looks if (str(look)[0] in _ROUND and str(look)[1:].strip("0") == "") or look == looks[-1]]


def thresholds(experiment: ReportedExperiment) -> list[float]:
    values = experiment.declared.get("thresholds")
    return [float(value) for value in values] if isinstance(values, list) else []


def quality_table(experiment: ReportedExperiment, shown: Sequence[Line], column: str) -> PlainTable:
    looks = shown_looks(experiment)
    rows = [(line.title, *_qualities(line, column, looks, digits(experiment))) for line in shown]
    return PlainTable(("learner", *(count_text(look) for look in looks)), rows)


def digits(experiment: ReportedExperiment) -> int:
    """Of quality: three, or as many as its thresholds have."""
    return max([3, *(len(f"{value:.6f}".rstrip("0").partition(".")[2]) for value in thresholds(experiment))])


def _qualities(line: Line, column: str, looks: Sequence[int], digits: int) -> list[str]:
    """Where everything is labelled before a look, that stands there once."""
    cells = [spread_text(line.at(column, look), digits) for look in looks]
    curve = line.curve(column) if line.labels else None
    last = int(curve.at[-1]) if curve is not None else looks[-1]
    beyond = [k for k, look in enumerate(looks) if look > last]
    if beyond and last not in looks:
        cells[beyond[0]] = f"{spread_text(line.at(column, last), digits)} (all {last:,})"
    return cells


def needed_table(experiment: ReportedExperiment, shown: Sequence[Line], column: str, *, time: bool) -> PlainTable:
    """Answers for each threshold, or minutes."""
    rows = []
    for line in shown:
        curve, x = line.curve(column), minutes(line, experiment) if time else None
        if curve is None or (time and x is None):
            continue
        rows.append((line.title, *(str(needed(curve, value, x)) for value in thresholds(experiment))))
    head = (f"{'minutes' if time else 'answers'} for {experiment.metric_name}", *map(str, thresholds(experiment)))
    return PlainTable(head, rows)


def noise_rows(shown: Sequence[Line]) -> Iterator[tuple[str, float, Line | None, Line | None]]:
    """(rule, share of wrong answers, line that knows it, line that does not), for cold learners as by default."""
    plain = [line for line in shown if line.start is None and not line.variant and not line.labels]
    noisy = sorted({(line.learner.rule, line.wrong) for line in plain if line.wrong > 0})
    for rule, wrong in noisy:
        mine = [line for line in plain if (line.learner.rule, line.wrong) == (rule, wrong)]
        yield rule, wrong, _first(mine, known=True), _first(mine, known=False)


def _first(mine: Sequence[Line], *, known: bool) -> Line | None:
    return next((line for line in mine if line.known == known), None)


def noise_table(experiment: ReportedExperiment, shown: Sequence[Line], column: str) -> PlainTable | None:
    noisy = list(noise_rows(shown))
    if not noisy:
        return None
    looks, places, rows = shown_looks(experiment), digits(experiment), []
    for rule in dict.fromkeys(rule for rule, *_ in noisy):
        exact = next((line for line in shown if line.plain and line.learner.rule == rule), None)
        rows.append((rule, "0%", "", *_cells(exact, column, looks, places)))
        for other, wrong, known, unknown in noisy:
            told = ((known, "known"), (unknown, "not known"))
            mine = [(line, word) for line, word in told if line is not None and other == rule]
            rows += [(rule, f"{wrong:.0%}", word, *_cells(line, column, looks, places)) for line, word in mine]
    return PlainTable(("rule", "wrong answers", "e is", *(count_text(look) for look in looks)), rows, words=(2,))


def _cells(line: Line | None, column: str, looks: Sequence[int], digits: int) -> list[str]:
    return [NOTHING if line is None else spread_text(line.at(column, look), digits) for look in looks]
