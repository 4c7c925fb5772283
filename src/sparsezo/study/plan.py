"""Experiments as data: which task, data, learners, seeds and how long, in a TOML file (paper Sec. 5, appendix B).

    plan = builtin("chunking")                              # the paper's own: chunking, smt, text; and noise
    plan = read_experiment("mine.toml")                     # a key that is not known is an error
    plan.learners[0].settings(seed=0)                       # at the settings that are fixed for all learners
    Path("experiment.toml").write_text(plan.to_toml())      # read again, it is equal

docs/experiments.md has all keys. A learner's own h, mu and grid come before the common ones ([fixed], [grid]), and
these before the task's defaults. With ``looks`` an experiment is one of answers (reports/answers).
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import pairwise
from pathlib import PurePath

from sparsezo.errors import DataError, UsageError, quoted
from sparsezo.options import Values, make_options
from sparsezo.rules import RULES
from sparsezo.settings import LEARNER_KEYS, Settings, learner_name
from sparsezo.storage import limits
from sparsezo.storage.files import STANDARD_INPUT, open_bytes, reading
from sparsezo.study.experiments import EXPERIMENTS, experiment_text, paper_on
from sparsezo.study.toml import NUMBERS, Table, pairs, parse_toml, toml_key
from sparsezo.tasks.base import Json
from sparsezo.tasks.loading import is_number
from sparsezo.tasks.registry import task_spec
from sparsezo.tasks.spec import Grid
from sparsezo.training import default_interval

# "fixed": the same h and mu for all learners of a kind; "undivided": likewise, for steps that are not divided by mu,
# h times mu; "tune": the trials of the search; "tuned": what it chose by dev at the end; "speed": what it chose by the
# area under the curve of dev's loss; "gamma": as tuned, at gammas ten times apart
PHASES = ("fixed", "undivided", "tune", "tuned", "speed", "gamma")  # that a run can be of
RESULT_PHASES = tuple(phase for phase in PHASES if phase != "tune")  # that can be asked for
SHOWN_PHASES = tuple(phase for phase in RESULT_PHASES if phase != "gamma")  # by tables and figures, with all seeds
USUAL_PHASES = ("fixed", "tuned")
SEARCHED = ("tuned", "speed", "gamma")  # phases that begin with a search
LEAST_CONFIDENT = "least-confident"
CHOICES = ("random", LEAST_CONFIDENT)  # which inputs are labelled next
STARTS = ("labels", "output")  # labels:N, a model of N labelled inputs; output:N, of what such a model says of all
PASSES = 30  # over the labelled inputs
FIRST_TUNING_SEED = 1000  # far from what people count from 0
FEW_SEEDS = 3  # of tuning, and of several gammas
EVERY = 10  # inputs labelled between two choices of the least sure
STATED = "stated"  # what a single table of seconds is called
# A person's time is linear in what a curve counts: answers, inputs labelled from nothing, tokens shown, tokens of
# these that are looked at one by one, and what is set or marked by hand
COSTS = ("answers", "inputs", "tokens", "looked", "corrections")
_PAIRS = ("pair", "pairwise", "preference", "comparison")
_LOSSES = ("rate", "first-order", "cross-entropy", "baseline")
FORMS = ("part", "label", "span", "review", "marked", "pair", "best", "rate", "whole", "two-point", "symmetric")
_SHORT = {  # the keys of a short table -> the rules whose answers take that long, beside reading an input
    "yes_no": ("part",),
    "label": ("label", "span"),
    "pair": ("pair",),
    "rate": ("rate",),
}
SECONDS = ("read", *_SHORT, "token")
_LONGEST_NAME = 80
_FEEDBACK = "a feedback model, or a list of them"

Point = tuple[float | None, ...]  # of a grid: h, mu (None where nothing is perturbed) and, if searched for, gamma


Clock = Mapping[str, Mapping[str, float]]  # a form of FORMS -> what of COSTS takes how many seconds


def clocks(seconds: Mapping[str, object]) -> dict[str, Clock]:
    """Tables of seconds by name, of a plan's [seconds]: as they stand there, or of one short table (SECONDS).

    >>> clocks({"read": 5.0, "yes_no": 1.5, "token": 1.0})
    {'stated': {'part': {'answers': 6.5}, 'whole': {'inputs': 5.0, 'answers': 1.0}}}
    """
    plain = {name: float(value) for name, value in seconds.items() if isinstance(value, int | float)}
    if not plain:
        return {name: table for name, table in seconds.items() if isinstance(table, Mapping)}
    read = plain.get("read", 0.0)
    short: dict[str, dict[str, float]] = {
        rule: {"answers": read + plain[key]} for key, rules in _SHORT.items() if key in plain for rule in rules
    }
    if "rate" in plain:
        short |= {rule: {"answers": read + 2 * plain["rate"]} for rule in ("two-point", "symmetric")}
    if "token" in plain:
        short["whole"] = {"inputs": read, "answers": plain["token"]}
    return {STATED: short}


def seconds_of(clock: Clock, rule: str, review: str | None = None, labels: str | None = None) -> Mapping[str, float]:
    """What a learner's answers take by a table; nothing where that does not say."""
    if labels is not None:
        return clock.get("whole", {})
    if (rule, review) == ("review", "auto"):
        return _either(clock.get("review", {}), clock.get("marked", {}))
    form = "marked" if (rule, review) == ("review", "marked") else rule
    kind = next((rules[0] for rules in (_PAIRS, _LOSSES) if rule in rules), form)
    return clock.get(form, clock.get(kind, {}))


def _either(review: Mapping[str, float], marked: Mapping[str, float]) -> Mapping[str, float]:
    """Reviews of both forms, of which a curve counts the tokens of whole ones apart: looked - whole are marked."""
    if not review or not marked:
        return {}
    parts = {cost: marked.get(cost, 0.0) for cost in ("tokens", "looked")}
    whole = sum(review.get(cost, 0.0) - each for cost, each in parts.items())
    return {cost: review.get(cost, 0.0) for cost in ("answers", "corrections")} | parts | {"whole": whole}


def _check_seconds(seconds: Mapping[str, object]) -> None:
    def check(value: object, where: str) -> None:
        number = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf
        _require(number, f"{where}: must be a number of seconds")

    tables = [name for name, value in seconds.items() if isinstance(value, Mapping)]
    for name, table in seconds.items():
        if not tables:
            _require(name in SECONDS, f"seconds.{quoted(name)}: known are {', '.join(SECONDS)}, or tables of seconds")
            check(table, f"seconds.{name}")
            continue
        _require(isinstance(table, Mapping), f"seconds.{quoted(name)}: give tables of seconds, or one short table")
        for form, costs in table.items() if isinstance(table, Mapping) else ():
            where = f"seconds.{quoted(name)}.{quoted(form)}"
            _require(form in FORMS, f"{where}: known are {', '.join(FORMS)}")
            _require(isinstance(costs, Mapping), f"{where}: give seconds for some of {', '.join(COSTS)}")
            for cost, value in costs.items():
                _require(cost in COSTS, f"{where}.{quoted(cost)}: known are {', '.join(COSTS)}")
                check(value, f"{where}.{cost}")


# The data


@dataclass(frozen=True)
class DataSpec:
    """Files by their paths in a folder of data; ``dev`` may be a number: that many inputs at the start of train.

    DataSpec(("text/train.tsv",), "1000", "text/test.tsv", instead=DataSpec(("rcv1",), split=True))
    """

    train: tuple[str, ...]
    dev: str | None = None
    test: str | None = None
    options: Values = field(default_factory=dict)  # of the task, as on train's command line
    split: bool = False  # train is a folder that brings dev and test of its own (text: RCV1's)
    instead: DataSpec | None = None  # comes first where the folder of data has it

    @property
    def has_dev(self) -> bool:
        return self.dev is not None or self.split

    def check(self) -> None:
        _require(bool(self.train) and all(self.train), "data has no train; name a file")
        many = self.dev is not None and self.dev.isdigit() and len(self.dev) >= 19
        _require(not many, "data.dev: no data has so many inputs")
        _require(not (self.split and (self.dev or self.test)), "data.split: train brings dev and test; leave them out")
        if self.instead is not None:
            self.instead.check()

    def as_toml(self) -> Json:
        """The keys of a TOML file, without tables."""
        return {"train": self.train, "dev": self.dev, "test": self.test, "split": self.split or None}


def _data_of(table: Table) -> DataSpec:
    """From the table [data] of a TOML file."""

    def spec(table: Table) -> DataSpec:
        dev = table.take("dev", (str, int), "a path, or a number of inputs")
        train, test = table.texts("train", "a path, or a list of them"), table.get("test", "str")
        return DataSpec(train, None if dev is None else str(dev), test, split=bool(table.get("split", "bool")))

    instead = table.table("instead")
    other = spec(instead)
    instead.finish()
    return replace(spec(table), options=table.table("options").values, instead=other if other.train else None)


# The learners


@dataclass(frozen=True)
class LearnerSpec(Settings):
    """A learner: its settings with the h and mu of the figure, and the grid of the table. Its runs bring the seeds."""

    grid_h: tuple[float, ...] = ()
    grid_mu: tuple[float, ...] = ()  # empty where nothing is perturbed
    grid_gamma: tuple[float, ...] = ()  # of the annealed criterion; empty where gamma is not searched for
    fixed: bool = True  # False: no runs at the settings that are fixed for all
    walk: bool = True  # False: the search is halving over the grid, and no more
    paper: float | None = None  # the paper's figure on test
    labels: str | None = None  # of CHOICES: whole inputs are labelled; the learner is trained anew at every look
    passes: int = PASSES  # over what is labelled, of ``labels`` and ``start``
    every: int = EVERY  # inputs between two choices of the least sure, of ``labels`` least-confident
    answers: int | None = None  # that end its runs, where these are fewer than the experiment's
    mistakes: float = 0.0  # the share of inputs in which the person errs where it is hard (labels.mistaken)
    start: str | None = None  # labels:N or output:N, of STARTS
    figure: str | None = None  # what its line is called in the main figure; None: it is in tables alone

    def __post_init__(self) -> None:
        super().__post_init__()
        labelled = self.labels is None or self.rule == "supervised"
        _require(labelled, f"labels belong to rule supervised, not to {self.rule}")
        if self.labels not in (None, *CHOICES):
            raise UsageError(f"labels '{quoted(self.labels)}': choose from {', '.join(CHOICES)}")
        for name in ("passes", "every", "answers"):
            value = getattr(self, name)
            _require(value is None or value >= 1, f"{name} {value}: must be at least 1")
        _require(0 <= self.mistakes <= 1, f"mistakes {self.mistakes:g}: must be a share, from 0 to 1")
        if self.start is not None:
            parse_start(self.start)
            _require(self.labels is None, "a learner has labels, or a start, not both")
        if self.points > limits.RUNS:
            limits.refuse(self.name, f"a grid of {self.points:,} points, more than {limits.RUNS:,}")
        annealed = not self.grid_gamma or self.criterion == "annealed"
        _require(annealed, "its grid has values of gamma, which is of `criterion` annealed")
        for point in self.grid():
            self.settings(0, *point)

    @property
    def name(self) -> str:
        """The settings' own, with labels and start."""
        return spec_name(asdict(self))

    def settings(
        self, seed: int, h: float | None = None, mu: float | None = None, gamma: float | None = None
    ) -> Settings:
        """At the fixed h, mu and gamma, or at others."""
        other = {"h": h, "mu": mu, "gamma": gamma}
        return Settings(**{**self.as_dict(), "seed": seed, **{k: v for k, v in other.items() if v is not None}})

    @property
    def points(self) -> int:
        """How many points the grid has."""
        return len(self.grid_h) * max(1, len(self.grid_mu)) * max(1, len(self.grid_gamma))

    def grid(self) -> list[Point]:
        return grid_points(self.grid_h, self.grid_mu, self.grid_gamma)


def grid_points(h: Sequence[float], mu: Sequence[float], gamma: Sequence[float]) -> list[Point]:
    """All points of a grid; mu is None where nothing is perturbed."""
    pairs = [(each, other) for each in h for other in (mu or (None,))]
    return [(*pair, each) for pair in pairs for each in gamma] if gamma else [*pairs]


def named(point: Point) -> dict[str, float | None]:
    """h and mu by name, and gamma where it is searched for."""
    return dict(zip(("h", "mu", "gamma"), point, strict=False))


def spec_name(values: Values) -> str:
    """What a learner with these keys is called, wherever they come from; a gamma that is searched for is not named."""
    labels, start, grid = values.get("labels"), values.get("start"), values.get("grid")
    mistakes = values.get("mistakes")
    more = [f"labelled {labels}" if labels else "", f"from {start}" if start else ""]
    more += [f"mistakes {mistakes:g}" if mistakes else ""]
    searched = values.get("grid_gamma") or (isinstance(grid, Mapping) and grid.get("gamma"))
    return " ".join([learner_name(values, gamma=not searched), *filter(None, more)])


def parse_start(text: str) -> tuple[str, int]:
    """(labels or output, number of labelled inputs)."""
    how, _, count = text.partition(":")
    if how not in STARTS or not (is_number(count) and len(count) < 10 and int(count)):
        raise UsageError(f"start '{quoted(text)}': give labels:N or output:N, such as labels:100")
    return how, int(count)


def _learners(table: Table, task: str, common: Json, grids: Json) -> list[LearnerSpec]:
    """Of a table [[learner]]: one for each of its feedback models."""
    rule = table.get("rule", "str")
    rule = Settings.rule if rule is None else rule
    perturbs = rule not in RULES or RULES[rule].zeroth_order
    grid = table.table("grid")
    plain = [each for each in fields(LearnerSpec) if each.name not in ("rule", "feedback", "seed")]
    own = {each.name: table.get(each.name, str(each.type)) for each in plain if not each.name.startswith("grid_")}
    searched = {
        "grid_h": grid.get("h", NUMBERS) or grids["h"],
        "grid_mu": grid.get("mu", NUMBERS) or (grids["mu"] if perturbs else None),
        "grid_gamma": grid.get("gamma", NUMBERS),
    }
    tuned_for = grid.texts("feedback", _FEEDBACK)
    shared = {"h": common["h"], "mu": common["mu"] if perturbs else None, "step": common["step"]}
    feedbacks = table.texts("feedback", _FEEDBACK, default=(Settings.feedback,))
    grid.finish()
    table.finish()
    try:
        if searched["grid_mu"] and not searched["grid_h"]:
            raise UsageError("its grid has values of mu and none of h; give both")
        if strange := next((each for each in tuned_for if each not in feedbacks), None):
            raise UsageError(f"grid.feedback '{quoted(strange)}': must be one of the learner's own")
        return [
            LearnerSpec.complete(
                {
                    **_known(shared),
                    **_known(own),
                    **(_known(searched) if each in (tuned_for or feedbacks) else {}),
                    "rule": rule,
                    "feedback": each,
                },
                *task_spec(task).usual,
            )
            for each in feedbacks
        ]
    except UsageError as error:
        raise DataError(table.where, f"{table.title}: {error}") from None


def _known(values: Values) -> Json:
    return {name: value for name, value in values.items() if value is not None}


# The experiment


@dataclass(frozen=True)
class Experiment:
    """What is to be run, and on what; checked when it is made, with a ``UsageError`` that names the key at fault."""

    name: str
    task: str
    data: DataSpec
    learners: tuple[LearnerSpec, ...]
    iterations: int = 1_000_000  # as train has it
    seeds: tuple[int, ...] = (0, 1, 2)
    tuning_seeds: tuple[int, ...] | None = None  # of the search for h and mu, none of seeds; None: see search_seeds
    evaluate_every: int | None = None  # a hundredth of the run
    init: str | None = None  # rerank: the decoder's weights that all learners start from
    bounds: Mapping[str, str] = field(default_factory=dict)  # rerank: name -> weights that are evaluated as they are
    origin: str | None = None  # in a folder of runs: where their data came from, "generated" or "files"
    identity: str | None = None  # likewise: what that data is known by
    note: str | None = None
    title: str | None = None  # of the report; None in built-in ones, which have the task's
    phases: tuple[str, ...] | None = None  # fixed, and tuned where there is a grid
    answers: int | None = None  # runs end by these, as with train's --answers; iterations are then a bound
    looks: tuple[int, ...] = ()  # numbers of answers at which dev is looked at; the last ends a run
    test_looks: bool = False  # likewise at test, with the weights of the moment
    keep_best: bool = False  # the report is on the weights best on dev up to each look, as train keeps them
    thresholds: tuple[float, ...] = ()  # of quality: the report says how many answers each takes
    losses: tuple[float, ...] = ()  # of dev, by the best outputs at w: the report says how many iterations each takes
    after: tuple[float, ...] = ()  # minutes: the report says what quality each brings
    seconds: Mapping[str, object] = field(default_factory=dict)  # models of a person's time: see ``clocks``
    rivals: Mapping[str, str] = field(default_factory=dict)  # text: name -> Vowpal Wabbit's options (wabbit.py)
    rival_rates: tuple[float, ...] = ()  # learning rates, of which each rival gets the best; none: its own default

    def __post_init__(self) -> None:
        about = task_spec(self.task)  # known
        plain = _is_printable(self.name) and not self.name.startswith(".") and not set(self.name) & set("/\\")
        _require(
            plain and len(self.name) <= _LONGEST_NAME and self.name == self.name.strip(),
            f"name '{quoted(self.name)}': must do as the name of a folder: up to {_LONGEST_NAME} letters, none of them "
            "/ or \\, and no dot at its beginning",
        )
        _require(self.title is None or _is_printable(self.title), "title: must be one line of text")
        _require(bool(self.learners), "it has no [[learner]]; give at least one")
        self.data.check()
        for name in ("iterations", "answers"):
            value = getattr(self, name)
            _require(value is None or value >= 1, f"{name} {value}: must be at least 1")
        self._check_looks()
        self._check_seeds()
        _require(self.evaluate_every is None or self.evaluate_every >= 1, "evaluate_every: must be at least 1")
        _require(all(isinstance(path, str) for path in self.bounds.values()), "bounds: give name = path")
        starts = "init" in about.options or not (self.init or self.bounds)
        _require(starts, f"init and bounds do not belong to task {self.task}")
        _require(all(0 < loss < 1 for loss in self.losses), "losses: must be between 0 and 1")
        _require(self.phases is None or bool(self.phases), "phases: name at least one of " + ", ".join(RESULT_PHASES))
        for phase in self.phases or ():
            _require(phase in RESULT_PHASES, f"phases '{quoted(phase)}': choose from {', '.join(RESULT_PHASES)}")
        make_options(about.train_options, self.data.options, f"task {self.task}")
        names = set[str]()
        for name in (learner.name for learner in self.learners):
            _require(name not in names, f"learner '{name}' is there twice; a learner is known by its name")
            names.add(name)

    def _check_seeds(self) -> None:
        for name, seeds in (("seeds", self.seeds), ("tuning_seeds", self.search_seeds)):
            _require(bool(seeds) and len(set(seeds)) == len(seeds), f"{name}: give at least one, each once")
        if both := sorted({*self.seeds} & {*self.search_seeds}):
            raise UsageError(
                f"tuning_seeds: {both[0]} is one of seeds; results must not be of seeds that chose h and mu, so give "
                "others"
            )

    def _check_looks(self) -> None:
        looks, offered = self.looks, task_spec(self.task).asks
        if not looks:
            of_looks = ("test_looks", "keep_best", "thresholds", "after", "seconds", "rivals", "rival_rates")
            lonely = next((name for name in of_looks if getattr(self, name)), None)
            _require(lonely is None, f"{lonely} goes with looks; give both")
            lonely = next(
                (each.name for each in self.learners if each.labels or each.start or each.answers or each.mistakes),
                None,
            )
            _require(lonely is None, f"learner '{lonely}': labels, start, answers and mistakes go with looks")
            return
        rising = all(a < b for a, b in pairwise((0, *looks)))
        _require(rising, "looks: must be whole numbers from 1, each larger than the one before")
        _require(self.answers == looks[-1], f"answers {self.answers}: the last of looks, {looks[-1]}, ends a run")
        _require(self.test_looks or not self.keep_best, "keep_best goes with test_looks; give both")
        _require(self.evaluate_every is None, "give looks or evaluate_every, not both")
        _require(all(math.isfinite(value) for value in self.thresholds), "thresholds: must be numbers")
        _require(all(0 < value < math.inf for value in self.after), "after: must be minutes above 0")
        _require(bool(self.seconds) or not self.after, "after goes with seconds; give both")
        _check_seconds(self.seconds)
        _require(all(isinstance(each, str) for each in self.rivals.values()), "rivals: give name = options")
        _require(not self.rivals or self.task == "text", f"rivals do not belong to task {self.task}")
        _require(all(0 < rate < math.inf for rate in self.rival_rates), "rival_rates: must be numbers above 0")
        _require(bool(self.rivals) or not self.rival_rates, "rival_rates goes with rivals; give both")
        for each in self.learners:
            whole = each.labels is not None or each.start is not None
            _require(not whole or "label" in offered, f"task {self.task} has no labels to give for '{each.name}'")
            _require(each.rule != "supervised" or whole, f"learner '{each.name}' asks nobody; give it labels")
            _require(not each.mistakes or self.task == "chunking", f"mistakes do not belong to task {self.task}")

    @property
    def from_zero(self) -> bool:
        """Whether learning starts with all weights 0."""
        return self.init is None and "init" not in self.data.options

    @property
    def search_seeds(self) -> tuple[int, ...]:
        """Those that choose h and mu: where none are given, up to three that no result is of."""
        if self.tuning_seeds is not None:
            return self.tuning_seeds
        return seed_range(min(len(self.seeds), FEW_SEEDS), max([FIRST_TUNING_SEED, *(seed + 1 for seed in self.seeds)]))

    @property
    def has_grid(self) -> bool:
        """Whether there is anything to tune."""
        return any(learner.grid_h for learner in self.learners)

    @property
    def length(self) -> int:
        """How long a run is, in answers or iterations."""
        return self.answers or self.iterations

    @property
    def unit(self) -> str:
        return "answers" if self.answers else "iterations"

    @property
    def interval(self) -> int:
        """Between looks at dev, in the same unit."""
        return self.evaluate_every or default_interval(self.length)

    def with_data(self, data: DataSpec) -> Experiment:
        """On one of its data sets, and nothing more about the other."""
        return replace(self, data=replace(data, instead=None), note=self.note if data is self.data else None)

    def phases_of(self, asked: Sequence[str] | None = None) -> tuple[str, ...]:
        """Those that were asked for, or else the plan's own: fixed, and tuned where it has a grid."""
        if asked is not None:
            return tuple(asked)
        return self.phases or (USUAL_PHASES if self.has_grid else ("fixed",))

    def to_tune(self) -> Experiment:
        """With something to tune: where no learner has a grid, all have the one that ``tune`` has."""
        if self.has_grid:
            return self
        learners = []
        for each in self.learners:
            h, mu = grid_of(self.task, each.step)
            learners.append(replace(each, grid_h=h, grid_mu=mu if each.perturb else ()))
        return replace(self, learners=tuple(learners))

    def refuse_size(self, phases: Sequence[str]) -> None:
        """What can only be a mistake, before any work is done."""
        at_once = sum(phase in phases for phase in ("fixed", "undivided"))
        runs = at_once * sum(each.fixed for each in self.learners) * len(self.seeds)
        if searched := sum(phase in phases for phase in SEARCHED):
            # every point once, the best with every seed of tuning, what is chosen with every seed
            more = searched * (3 * len(self.search_seeds) + len(self.seeds))
            runs += sum(each.points + more for each in self.learners if each.points)
        looks = len(self.looks) or -(-self.length // self.interval)
        for count, most, what in (
            (runs, limits.RUNS, "runs"),
            (self.iterations, limits.ITERATIONS, "iterations in one run"),
            (looks, limits.LOOKS, "looks at dev in one run"),
        ):
            if count > most:
                limits.refuse(self.name, f"{count:,} {what}, more than {most:,}")

    def shortened(self, answers: int) -> Experiment:
        """Ended by so many answers, and looked at up to there."""
        _require(answers >= 1, f"`answers` {answers}: must be at least 1")
        looks = (*(look for look in self.looks if look < answers), answers) if self.looks else ()
        return replace(self, answers=answers, looks=looks)

    def clash(self, other: Experiment) -> str | None:
        """What keeps the runs of both from standing in one folder: the name of a field; None where nothing does."""
        for name in ("name", "task", "identity", "iterations", "answers", "evaluate_every", "looks", "test_looks"):
            if getattr(self, name) != getattr(other, name):
                return name
        mine, theirs = (
            {spec.name: (spec.settings(0), spec.passes, spec.every, spec.answers) for spec in plan.learners}
            for plan in (self, other)
        )
        different = next((name for name in theirs if mine.get(name, theirs[name]) != theirs[name]), None)
        return f"learner '{different}'" if different else None

    def to_toml(self) -> str:
        """The text of a file that ``read_experiment`` makes an equal plan of."""
        top = {name: getattr(self, name) for name in _TOP} | {name: getattr(self, name) or None for name in _IF_GIVEN}
        lines = [*pairs(top), "", "[data]", *pairs(self.data.as_toml())]
        tables = {"data.options": self.data.options, "bounds": self.bounds}
        if self.data.instead is not None:
            tables["data.instead"] = self.data.instead.as_toml()
        stated = {name: table for name, table in self.seconds.items() if isinstance(table, Mapping)}
        tables |= {f"seconds.{toml_key(name)}": table for name, table in stated.items()} or {"seconds": self.seconds}
        for title, table in (tables | {"rivals": self.rivals}).items():
            lines += ["", f"[{title}]", *pairs(table)] if table else []
        for learner in self.learners:
            own = {name: learner.as_dict().get(name) for name in LEARNER_KEYS}
            own |= {name: getattr(learner, name) for name in ("paper", "labels", "start", "answers", "figure")}
            own["mistakes"] = learner.mistakes or None
            own["passes"] = learner.passes if learner.labels or learner.start else None
            own["every"] = learner.every if learner.labels == LEAST_CONFIDENT else None
            own |= {name: None if getattr(learner, name) else False for name in ("fixed", "walk")}
            grid = {f"grid.{name}": getattr(learner, f"grid_{name}") or None for name in ("h", "mu", "gamma")}
            lines += ["", "[[learner]]", *pairs({**own, **grid}, bare=True)]
        return "\n".join(lines) + "\n"


_TOP = (
    *("name", "title", "task", "note", "origin", "identity", "phases", "iterations", "answers", "evaluate_every"),
    *("seeds", "tuning_seeds", "init"),
)
_IF_GIVEN = ("losses", "looks", "test_looks", "keep_best", "thresholds", "after", "rival_rates")


def builtin(name: str) -> Experiment:
    """A built-in one: of the paper's, or past it."""
    if name not in EXPERIMENTS:
        raise UsageError(f"experiment {name}: choose from {', '.join(EXPERIMENTS)}, or name a .toml file")
    return parse_experiment(experiment_text(name), f"{name}.toml")


def grid_of(task: str, step: str) -> Grid:
    """Where tune looks for h and mu: the task's own grid, or that of the paper's experiment."""
    one = task_spec(task)
    if step == "adagrad" and one.adagrad_grid is not None:
        return one.adagrad_grid
    if one.grid is not None:
        return one.grid
    papers = paper_on(task).experiment
    if papers is None:
        raise UsageError(f"task {task} has no grid of its own; give values of h and mu")
    learner = builtin(papers).learners[0]
    return learner.grid_h, learner.grid_mu


def seed_range(count: int, first: int = 0, where: str = "seeds") -> tuple[int, ...]:
    """So many seeds, counted from ``first``."""
    if count > limits.RUNS:
        limits.refuse(where, f"{count:,} seeds, more than {limits.RUNS:,}")
    return tuple(range(first, first + count))


def read_experiment(path: str | os.PathLike[str]) -> Experiment:
    """One's own: it is called like its file (mine for mine.toml), and titled so, unless it says so itself."""
    with open_bytes(path) as stream, reading(path):
        raw = stream.read(4 * limits.PLAN + 1)
    if len(raw) > 4 * limits.PLAN:
        limits.refuse(str(path), f"an experiment of more than {limits.PLAN >> 10} kB: is this the right file?")
    name = PurePath(path).name.removesuffix(".gz").removesuffix(".xz").removesuffix(".toml")
    name = "experiment" if os.fspath(path) == STANDARD_INPUT else name
    try:
        plan = parse_experiment(raw.decode("utf-8-sig"), str(path), name)
    except UnicodeDecodeError as error:
        raise DataError(str(path), f"is not UTF-8 text ({error.reason})") from None
    return plan if plan.title is not None else replace(plan, title=plan.name)


def parse_experiment(text: str, where: str, name: str | None = None) -> Experiment:
    """An experiment from TOML; ``where`` is named in messages, ``name`` is for a text that has none."""
    top = Table(_with_likeness(parse_toml(text, where), where), where)
    data, fixed, grid = top.table("data"), top.table("fixed"), top.table("grid")
    common = {"h": fixed.get("h", "float | str"), "mu": fixed.get("mu", "float"), "step": fixed.get("step", "str")}
    grids = {key: grid.get(key, NUMBERS) for key in ("h", "mu")}
    task = top.get("task", "str", required=True)
    try:
        task_spec(task)
        values = {
            each.name: top.get(each.name, str(each.type), required=each.name == "name" and name is None)
            for each in fields(Experiment)
            if each.name not in ("task", "data", "learners", "seeds", "tuning_seeds", "phases")
        }
        values["seeds"], values["tuning_seeds"] = _seeds(top, "seeds"), _seeds(top, "tuning_seeds", FIRST_TUNING_SEED)
        values["phases"] = top.texts("phases", "a phase, or a list of them") or None
        values["data"] = _data_of(data)
        learners = [each for table in top.tables("learner") for each in _learners(table, task, common, grids)]
        for table in (top, data, fixed, grid):
            table.finish()
        if values["name"] is None:
            values["name"] = name
        if values["answers"] is None and values["looks"]:
            values["answers"] = values["looks"][-1]
        if values["answers"] and values["iterations"] is None:
            values["iterations"] = limits.ITERATIONS
        return Experiment(task=task, learners=tuple(learners), **_known(values))
    except UsageError as error:
        raise DataError(where, str(error)) from None


def _with_likeness(values: Json, where: str) -> Json:
    """What a text does not say itself is as in the built-in experiment that it is like; names are its own."""
    if "like" not in values:
        return values
    like = values.pop("like")
    if like not in EXPERIMENTS:
        raise DataError(where, f"like {quoted(str(like))}: choose from {', '.join(EXPERIMENTS)}")
    other = _with_likeness(parse_toml(experiment_text(like), f"{like}.toml"), where)
    return {key: value for key, value in other.items() if key not in ("name", "title")} | values


def _seeds(top: Table, name: str, first: int = 0) -> tuple[int, ...] | None:
    value = top.take(name, (int, list), "a number of seeds, or a list of them")
    if value is None:
        return None
    if isinstance(value, int):
        return seed_range(value, first, where=top.where)
    if not all(isinstance(seed, int) and not isinstance(seed, bool) and seed >= 0 for seed in value):
        raise DataError(top.where, f"{name}: must be whole numbers from 0")
    return tuple(value)


def _is_printable(text: str) -> bool:
    return bool(text.strip()) and text.isprintable()


def _require(true: bool, message: str) -> None:
    if not true:
        raise UsageError(message)
