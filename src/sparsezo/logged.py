"""Logged feedback: a model learned from what another system showed and what people said of it; and what people would
say of a model, by such a log (docs/logged.md).

    log = read_log("thumbs.jsonl", "text")
    model = learn_log(log)                              # by the rule that fits the feedback; learn_log(log, settings)
    report = evaluate_log(model, read_log("later.jsonl", "text", model.task))
    report["snips"]                                     # the reward that the model would get, with an interval

Likelihoods of answers do not depend on how an output was chosen, so they need no propensities. Rule first-order does:
it climbs the self-normalised estimate of the reward, sum rho r / sum rho with rho = p_w(shown) / propensity
(Swaminathan and Joachims 2015); where the log has no propensities, with 1 in their place (deterministic propensity
matching, reweighted: Lawrence, Sokolov and Riezler 2017).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from sparsezo import off_policy
from sparsezo.errors import DataError, UsageError
from sparsezo.kernels import random
from sparsezo.kernels.codes import STANDING
from sparsezo.kernels.coefficient import MOST_LATE
from sparsezo.learner import Learner, log_chances, predict
from sparsezo.messages import counted, say
from sparsezo.model import Model
from sparsezo.query_learner import QueryLearner, make_learner
from sparsezo.questions import Answer, Question, Questions
from sparsezo.raters import parse_error
from sparsezo.rules import RULES
from sparsezo.settings import Settings
from sparsezo.storage.files import ending, open_bytes
from sparsezo.storage.fingerprint import fingerprint
from sparsezo.tasks.base import Json, Problem, Read, Task
from sparsezo.tasks.chunking.io.formats.json_formats import json_objects
from sparsezo.tasks.logs import Logged, table_lines
from sparsezo.tasks.registry import task_spec
from sparsezo.tasks.spec import TaskSpec
from sparsezo.training import best_of_passes
from sparsezo.validation import Array

_SHORTER = 0.1  # first-order's steps, of the task's usual ones: a log is gone over many times (docs/logged.md)
THUMB = "part"  # the rule whose likelihood a thumb on a whole output has
THUMB_ERROR = "0.1"  # believed of people, unless `rater_error` says otherwise (docs/logged.md)
_CORRECTED = ("review", "label", "pair")  # rules that learn from an output as it should be; a task has one of them
_NO_PART = (0, 0, 0, 0)  # a question's numbers, where it is about whole outputs
_FEW = 30.0  # rows, of which no interval can be trusted
_ODD = 4.0  # standard errors: the mean of weights is not 1


@dataclass(frozen=True, eq=False)
class Log:
    """A log in the numbers of a task. ``id``: what its lines are known by."""

    path: str
    kind: TaskSpec
    task: Task
    data: Read
    rows: list[Logged]
    id: str

    @property
    def deterministic(self) -> bool:
        """No line says that something else might have been shown."""
        return all(row.propensity in (None, 1.0) for row in self.rows)


def read_log(
    path: str | os.PathLike[str],
    kind: str | TaskSpec,
    task: Task | None = None,
    data: Read = None,
    options: Mapping[str, object] | None = None,
) -> Log:
    """The log in a file of JSON lines, or of task text in a table (.csv, .tsv); plain, .gz, .xz, or JSON lines
    as ``-``. DataError with its line where one is no log's.

    ``task``: whose outputs these are; None: it is made of the log itself, with ``options`` of train. ``data``: the
    inputs that lines are about, where the task's logs have but their numbers (rerank).
    """
    spec = kind if isinstance(kind, TaskSpec) else task_spec(kind)
    logs, name = spec.logs(), os.fspath(path)
    table = ending(path) in (".csv", ".tsv", ".tab")
    if table and not logs.TABLES:
        raise DataError(name, f"is a table, which has no place for outputs of task {spec.name}; give JSON lines")
    with open_bytes(path) as stream:
        lines = list(table_lines(path, stream) if table else json_objects(path, stream))
    if not lines:
        raise DataError(name, "is empty; a log has a line for each output that was shown")
    made = logs.read(lines, name, task, data, options or {})
    said = fingerprint(repr([row for _, row in lines]).encode("utf-8", "surrogatepass"))
    return Log(name, spec, made.task, made.data, made.rows, said)


# Learning


@dataclass(frozen=True, eq=False)
class Lesson:
    """What one line, or a part of it, says of an input. ``question`` None: a thumb on ``output``, all of it."""

    where: str
    x: int
    kind: str
    answer: Answer
    question: Question | None = None
    output: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))


def usual_rule(log: Log) -> str:
    """The rule that fits most lines: part (thumbs), review, label or pair (corrected outputs), rate (scores), and where
    the task has no such question, first-order."""
    counts = Counter(kind for row in log.rows for kind in _kinds(row, log.kind.asks))
    best = max(counts, key=counts.__getitem__, default="first-order")
    return best if best in log.kind.asks else "first-order"


def _kinds(row: Logged, asks: Sequence[str]) -> list[str]:
    if row.corrected is not None:
        return [next((rule for rule in _CORRECTED if rule in asks), "first-order")]
    return [*([THUMB] if row.parts else []), *([] if row.reward is None else [THUMB if row.thumb else "rate"])]


def lessons(log: Log, rule: str | None, offered: Questions) -> list[Lesson]:
    """What a learner of likelihoods learns from; ``rule``: from lines of that kind alone (rate: thumbs are losses of 0
    and 1); None: from each by its own kind. Lines that say nothing of the kind, or of outputs that the task cannot
    have, are left out."""
    found: list[Lesson] = []
    for row in log.rows:
        if row.last - row.first != 1:
            raise UsageError(
                f"{row.where}: is of several sentences; learn from a log with the task that it makes itself"
            )
        found += [each for each in _of_row(row, rule, offered) if rule in (None, each.kind)]
    return found


def _of_row(row: Logged, rule: str | None, offered: Questions) -> list[Lesson]:
    x = row.first
    made = [
        Lesson(row.where, x, THUMB, _thumb(right), _question(x, THUMB, "chunk", numbers))
        for numbers, right in row.parts
    ]
    right = None if row.corrected is None or rule in (THUMB, "rate") else row.corrected[0]
    if row.shown is None:
        return made
    shown = row.shown[0]
    if right is not None:
        return [*made, *_of_corrected(row, shown, right, offered)]
    if row.reward is None:
        return made
    if row.thumb and rule != "rate":
        answer, whole = _thumb(bool(row.reward)), ("review", "token") in offered
        if whole:  # outputs have parts, and a thumb is on all of them
            made.append(Lesson(row.where, x, THUMB, answer, None, shown))
        elif (THUMB, "token") in offered:
            made.append(Lesson(row.where, x, THUMB, answer, _question(x, THUMB, "token", (0, int(shown[0]), 0, 0))))
    elif ("rate", "token") in offered:
        made.append(Lesson(row.where, x, "rate", 1 - row.reward, _question(x, "rate", "token", _NO_PART, (shown,))))
    return made


def _thumb(up: bool) -> str:
    return "yes" if up else "no"


def _of_corrected(row: Logged, shown: NDArray[np.int32], right: NDArray[np.int32], offered: Questions) -> list[Lesson]:
    x, answer, question = row.first, right.tolist(), None
    if ("review", "token") in offered:
        outputs = (shown, np.full(shown.size, STANDING, np.int32))
        question = _question(x, "review", "token", _NO_PART, outputs)
    elif ("label", "token") in offered:
        question, answer = _question(x, "label", "token", (0, int(shown[0]), 0, 0)), int(right[0])
    elif ("pair", "token") in offered and int(right[0]) != int(shown[0]):
        question, answer = _question(x, "pair", "token", _NO_PART, (right, shown)), "first"
    return [] if question is None else [Lesson(row.where, x, question.kind, answer, question)]


def _question(
    x: int, kind: str, about: str, numbers: tuple[int, ...], outputs: tuple[NDArray[np.int32], ...] = ()
) -> Question:
    return Question("", 0, x, kind, about, numbers, outputs, 1.0, (), ())


def settings_for(log: Log, given: Mapping[str, object]) -> Settings:
    """What was given, with the rest by default: the rule that fits the log, and what the task has for that. People are
    believed to give a wrong thumb one time in ten; first-order's estimate is self-normalised (`baseline`)."""
    rule = str(given.get("rule", usual_rule(log)))
    if rule not in (*log.kind.asks, "first-order") or rule in ("span", "best"):
        rules = [*(each for each in log.kind.asks if each not in ("span", "best")), "first-order"]
        raise UsageError(f"`rule` {rule} learns from no log; use {', '.join(rules)}")
    own: dict[str, object] = {"baseline": True} if rule == "first-order" else {"rehearse": 0}
    own |= {"rater_error": THUMB_ERROR} if rule == THUMB else {}
    settings = Settings.complete({"rule": rule, **own, **given}, *log.kind.usual)
    if rule == "first-order" and "h" not in given and not isinstance(settings.h, str):
        return replace(settings, h=_SHORTER * settings.h)
    return settings


def usual_passes(rule: str) -> int:
    """Over all lines: thumbs are learned from once, as more would learn their errors by heart, all else five times."""
    return 1 if rule == THUMB else 5


def learn_log(
    log: Log,
    settings: Settings | None = None,
    *,
    W: Array | None = None,
    passes: int | None = None,
    only: bool = False,
    dev: Read = None,
    test: Read = None,
) -> Model:
    """A model learned from a log; with ``dev``, the best on it of those after each pass.

    ``settings``: as ``settings_for`` makes them. ``W``: the weights to start from. ``passes``: ``usual_passes`` unless
    given. ``only``: from lines of the rule's own kind alone.
    """
    settings = settings_for(log, {}) if settings is None else settings
    passes = usual_passes(settings.rule) if passes is None else passes
    if passes < 1:
        raise UsageError(f"`passes` {passes}: must be at least 1")
    learner = make_learner(log.task.problem(log.data, asks=RULES[settings.rule].asks), settings, W)
    about: Json = {"log": log.path, "log_id": log.id, "rows": len(log.rows), "passes": passes}

    def go(look: Callable[[int], None]) -> None:
        about["learned_from"] = go_over(learner, log, range(passes), only=only, look=look)

    return best_of_passes(log.task, learner, about, go, dev, test)


def go_over(
    learner: Learner | QueryLearner,
    log: Log,
    passes: range,
    *,
    only: bool = False,
    look: Callable[[int], None] | None = None,
) -> int:
    """Learn from all lines, once for each of ``passes``, whose numbers say in which order: range(2, 5) goes on where
    range(2) ended, bit for bit. Returns how many lines, or parts of them, there are to learn from."""
    if isinstance(learner, QueryLearner):
        found = lessons(log, learner.settings.rule if only else None, learner.problem.questions)
        if not found:
            raise UsageError(f"{log.path}: no line has feedback for rule {learner.settings.rule}")
        _warn_left_out(log, len({each.where for each in found}))
        n, learn = len(found), _likelihoods(learner, found)
    else:
        shown = _Shown(log, learner)
        n, learn = len(shown.x_of), shown.learn
    key = random.stream_key(learner.settings.seed, random.INPUTS)
    for turn in passes:
        learn(turn, (int(random.permuted(key, turn * n + k, n)) for k in range(n)))
        if look is not None:
            look(turn + 1)
    return n


def _likelihoods(learner: QueryLearner, found: Sequence[Lesson]) -> Callable[[int, Iterator[int]], None]:
    """A pass over lessons, each by the likelihood of its answer."""
    errors = {THUMB: parse_error(THUMB_ERROR), learner.settings.rule: parse_error(learner.settings.rater_error)}
    begin = np.zeros_like(learner.state.W)
    if learner.problem.start is not None:
        begin[learner.problem.start[0]] = learner.problem.start[1]
    cold = np.array_equal(learner.state.W, begin)

    def learn(turn: int, order: Iterator[int]) -> None:
        whole = errors[THUMB]
        # a model that knows nothing finds no whole output likely, and would take every yes for an error
        if turn == 0 and cold:
            whole = 0.0, whole[1]
        for each in map(found.__getitem__, order):
            if each.question is None:
                learner.learn_from_thumb(each.x, each.output, each.answer == "yes", error=whole)
            else:
                try:
                    learner.learn_from(each.question, each.answer, error=errors.get(each.kind, (0.0, 0.0)))
                except UsageError as wrong:
                    raise DataError(each.where, str(wrong)) from None

    return learn


class _Shown:
    """The outputs of a log whose rewards are known, for rule first-order."""

    def __init__(self, log: Log, learner: Learner) -> None:
        rows = [
            row for row in log.rows if row.shown is not None and row.reward is not None and row.last == row.first + 1
        ]
        if log.deterministic:
            say(
                f"{log.path}: a deterministic log: no line says that anything else might have been shown; first-order "
                "learns with propensities of 1, and nothing of outputs that were never shown; rules that learn from "
                "answers need no propensities"
            )
        else:
            rows = [row for row in rows if row.propensity is not None]
        if not rows:
            raise UsageError(f"{log.path}: no line has feedback on a whole output for rule {learner.settings.rule}")
        _warn_left_out(log, len(rows))
        self.log, self.learner = log, learner
        self.x_of = np.array([row.first for row in rows], np.int64)
        self.outputs = [row.shown[0] for row in rows if row.shown is not None]
        self.rewards = np.array([row.reward for row in rows])
        if learner.settings.baseline and np.ptp(self.rewards) == 0:
            raise UsageError(
                f"{log.path}: every reward is {self.rewards[0]:g}; rule first-order learns from their differences, so "
                "there is nothing to learn; use another `rule`"
            )
        self.log_propensity = np.log([row.propensity or 1.0 for row in rows])

    def weights(self) -> NDArray[np.float64]:
        """rho of each line at the present weights, at most MOST_LATE, where a step is cut, too."""
        learner = self.learner
        now = log_chances(learner.problem, learner.state.W, self.x_of, self.outputs)
        return np.minimum(np.exp(np.minimum(now - self.log_propensity, MOST_LATE)), MOST_LATE)

    def learn(self, turn: int, order: Iterator[int]) -> None:
        """A pass up the gradient of sum rho r / sum rho, which is sum rho (r - that) d log p_w / sum rho; without
        `baseline`, down that of the mean of rho (1 - r)."""
        rho = self.weights()
        mean = 1.0
        if self.learner.settings.baseline and rho.sum() > 0:
            mean = float((rho * self.rewards).sum() / rho.sum())
        if turn > 0 and (n := off_policy.effective_size(rho)) < _FEW:
            say(f"{self.log.path}: the weights of {rho.size:,} lines say as much as {n:.1f}: they degenerate")
        for k in order:
            gain = float(self.rewards[k]) - mean
            if gain:
                self.learner.learn_from_output(int(self.x_of[k]), self.outputs[k], gain, float(self.log_propensity[k]))


def _warn_left_out(log: Log, used: int) -> None:
    if used < len(log.rows):
        left = f"{counted(len(log.rows) - used, 'line')} of {len(log.rows):,} left out"
        say(f"{log.path}: {left}: no feedback, propensity or output that the rule can learn from")


# Evaluating


def evaluate_log(model: Model, log: Log) -> Json:
    """What people would say of a model's best outputs, by a log that was read for the model's own task.

    ``rows``, ``matches`` (the share of lines where the model would have shown the same), ``reward_shown`` (the mean of
    what people said), and

    - ``known``, where each line has the right output: the share of lines on which the model has it, with its interval;
    - else ``ips``, ``snips`` and ``doubly_robust``, [value, low, high], with ``effective_size`` and ``mean_weight``;
    - and where the log is deterministic, no estimate: ``bounds``, the least and most that the reward can be.

    ``warnings`` says what speaks against the estimates.
    """
    if log.task is not model.task:
        raise UsageError("read the log for the model: read_log(path, model.task.name, model.task)")
    rows = [row for row in log.rows if row.reward is not None]
    if not rows:
        raise UsageError(f"{log.path}: no line has feedback on a whole output")
    problem = model.task.problem(log.data, learn=False)
    best, as_shown = _best(model, problem, log), log.kind.logs().as_shown
    same, right, known = [], [], True  # right: where each line has the right output
    for row in rows:
        mine = [as_shown(model.task, each) for each in best[row.first : row.last]]
        same.append(row.shown is not None and _alike(mine, row.shown))
        truth = row.corrected if row.corrected is not None else row.shown if row.thumb and row.reward == 1 else None
        known = known and truth is not None
        right.append(truth is not None and _alike(mine, truth))
    matches, rewards = np.array(same), np.array([row.reward for row in rows], np.float64)
    warnings = []
    if model.result.get("log_id") == log.id:
        warnings.append("the model has learned from this very log: estimates are too good; hold lines back for this")
    report: Json = {"rows": len(rows), "matches": float(matches.mean()), "reward_shown": float(rewards.mean())}
    if known:
        report |= {"known": list(off_policy.wilson(float(np.mean(right)), len(right)))}
    elif log.deterministic:
        low = float((rewards * matches).mean())
        report["bounds"] = [low, low + 1 - report["matches"]]
        warnings.append(
            "a deterministic log: what people would say of outputs that were never shown it cannot say; only bounds"
        )
    else:
        with_it = np.array([row.propensity is not None for row in rows])
        if not with_it.all():
            warnings.append(f"{counted(int((~with_it).sum()), 'line')} without a propensity left out")
        kept = [row for row in rows if row.propensity is not None]
        weights = matches[with_it] / np.array([row.propensity for row in kept], np.float64)
        chances = _chances(model, problem, kept, best)
        report |= _estimates(weights, rewards[with_it], *chances, warnings)
    return {**report, "warnings": warnings}


def _best(model: Model, problem: Problem, log: Log) -> list[NDArray[np.int32]]:
    return np.split(predict(problem, model.W), problem.output_start[1:-1])


def _alike(some: Sequence[NDArray[np.int32]], others: Sequence[NDArray[np.int32]]) -> bool:
    return len(some) == len(others) and all(map(np.array_equal, some, others))


def _chances(
    model: Model, problem: Problem, rows: Sequence[Logged], best: Sequence[NDArray[np.int32]]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The model's probabilities of what was shown, and of its best outputs, line by line."""
    x_of = [x for row in rows for x in range(row.first, row.last)]
    firsts = np.cumsum([0, *(row.last - row.first for row in rows)])[:-1]
    shown = [each for row in rows for each in (row.shown or best[row.first : row.last])]
    found = []
    for outputs in (shown, [best[x] for x in x_of]):
        logs = log_chances(problem, model.W, np.array(x_of, np.int64), outputs)
        found.append(np.exp(np.minimum(np.add.reduceat(logs, firsts), 0)))
    found[0][[row.shown is None for row in rows]] = 0  # no output that the model can have
    return found[0], found[1]


def _estimates(
    weights: NDArray[np.float64],
    rewards: NDArray[np.float64],
    of_shown: NDArray[np.float64],
    of_best: NDArray[np.float64],
    warnings: list[str],
) -> Json:
    n, off = off_policy.effective_size(weights), off_policy.misfit(weights)
    if n < _FEW:
        warnings.append(f"the weights say as much as {n:.1f} lines: too few, no interval can be trusted")
    if abs(off) > _ODD:
        warnings.append(
            f"weights are {weights.mean():.3g} in the mean, {abs(off):.0f} standard errors from 1: propensities are "
            "wrong, or the system could not show what the model does; estimates and intervals are wrong, too"
        )
    predicted = off_policy.predicted_rewards(rewards, of_shown, of_best)
    return {
        "ips": list(off_policy.ips(weights, rewards)),
        "snips": list(off_policy.snips(weights, rewards)),
        "doubly_robust": list(off_policy.doubly_robust(weights, rewards, *predicted)),
        "effective_size": n,
        "mean_weight": float(weights.mean()),
    }
