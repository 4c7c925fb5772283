"""The answers of a session, to learn from again: with other features, other settings, another rule, or other inputs.

    answers = read_answers("np.serve")                          # a session's folder, or its answers.jsonl
    task, data = fitted(answers, {"order": 1})                  # its inputs, with other features
    learner = QueryLearner(task.problem(data, asks=True), settings)
    learn(learner, placed(answers, task), passes=5)             # each answer as one to a question of this task

Answers outlive the model. An answer to a question that was flagged, one of an audit, and one that was taken back are
not among them, and a skipped question has none. In other data an answer is found again by the words of its input.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import DataError, UsageError, quoted
from sparsezo.query_learner import QueryLearner
from sparsezo.questions import Answer, Question, reviewed
from sparsezo.raters import parse_error
from sparsezo.serve import folder as folders
from sparsezo.serve.folder import Contents
from sparsezo.serve.quality import error_for
from sparsezo.serve.store import FLAG, EventRow, QuestionRow, Store
from sparsezo.settings import Settings
from sparsezo.storage.files import numbered_lines
from sparsezo.tasks.base import Json, Task
from sparsezo.tasks.registry import names, task_spec
from sparsezo.tasks.spec import TaskSpec

PASSES = 5  # over all answers (docs/answers.md)
_MOST_NAMES = 8  # of labels in a message
_AUDIT, _FLAGGED, _DECIDED = "of audits", "to flagged questions", "that a third person has decided between"  # left out


@dataclass(frozen=True, eq=False)
class RecordedAnswer:
    """An answer as a learner takes it."""

    question: Question
    answer: Answer
    kind: str  # that it was answered as
    error: tuple[float, float]  # believed of who gave it
    where: str = ""  # for messages


@dataclass(frozen=True, eq=False)
class Answers:
    """What a session has gathered. Labels in ``recorded`` are places in ``labels``, x is a number of ``inputs``."""

    path: str
    id: str  # what the session is known by
    kind: TaskSpec
    made: Json  # the task, as ``serving.about_task`` tells it
    settings: Json  # of the session's learner
    labels: tuple[str, ...]  # tags, classes; none for lists
    recorded: list[RecordedAnswer]
    left_out: Mapping[str, int]  # by reason
    inputs: Sized  # that the answers are about
    options: Json  # that the session's task was made with, where they are known
    contents: Contents | None = None  # of a session's folder


def read_answers(path: str | os.PathLike[str], task: str | None = None) -> Answers:
    """Of a session's folder, or of a file answers.jsonl that a session has exported. ``task``: what it must be of."""
    found = _of_folder(Path(path)) if Path(path).is_dir() else _of_file(str(path))
    if task is not None and found.kind.name != task:
        raise UsageError(f"`from_answers` {path}: has answers of task {found.kind.name}, not of {task}")
    if not found.recorded:
        left = ", ".join(f"{n:,} {why}" for why, n in found.left_out.items() if n)
        raise DataError(str(path), f"has no answer to learn from{f' ({left})' if left else ''}")
    return found


# A session's folder


def _of_folder(folder: Path) -> Answers:
    contents = folders.read(folder)
    recorded: list[RecordedAnswer] = []
    left_out = Counter[str]()
    with contextlib.closing(Store(folder / folders.LOG)) as store:
        flagged, answers = flagged_tasks(store), store.answers()
        decided = decided_tasks(answers)
        for event, row in answers:
            number = row.again or row.id
            why = _AUDIT if row.audit is not None else _FLAGGED if number in flagged else ""
            if why := why or (_DECIDED if row.decides is None and number in decided else ""):
                left_out[why] += 1
                continue
            error = (float(event.e0 or 0), float(event.e1 or 0))
            where = f"{store.path}: event {event.seq}"
            recorded.append(RecordedAnswer(row.question(), event.to_learn(), event.kind or row.kind, error, where))
    own, task = contents.serving, contents.task
    settings, labels = contents.settings.as_dict(), tuple(own.answer_labels(task))
    about = (str(store.meta["id"]), contents.kind, own.about_task(task), settings, labels)
    return Answers(str(folder), *about, recorded, left_out, contents.data, store.meta.get("options", {}), contents)


def flagged_tasks(store: Store) -> set[int]:
    """The numbers of questions that somebody has flagged; of one that was asked twice, the first's."""
    flagged = {event.question for event in store.rows(EventRow, "WHERE what = ?", FLAG)}
    rows = [store.question(number) for number in flagged if number is not None]
    return {row.again or row.id for row in rows}


def decided_tasks(answers: Iterable[tuple[EventRow, QuestionRow]]) -> dict[int, int]:
    """Who has decided, by the number of the question that was asked first: of its answers only theirs stands."""
    return {row.again: event.person for event, row in answers if row.again is not None and row.decides is not None}


# A file


def to_file(contents: Contents, id: str, row: QuestionRow, event: EventRow, flagged: set[int]) -> Json:
    """What a line of answers.jsonl has beside the rest, so that the file alone is enough to learn from."""
    own, question = contents.serving, row.question()
    session = {
        "id": id,
        "task": contents.kind.name,
        "labels": list(own.answer_labels(contents.task)),
        "made": own.about_task(contents.task),
        "settings": contents.settings.as_dict(),
    }
    return {
        "about": row.about,
        "asked": row.kind,
        "numbers": list(question.numbers),
        "outputs": [each.tolist() for each in question.outputs],
        "taught": event.to_learn(),
        "e0": event.e0,
        "e1": event.e1,
        "flagged": (row.again or row.id) in flagged,
        "columns": own.columns_of(contents.data, row.x),
        "session": session,
    }


def _of_file(path: str) -> Answers:
    rows = [(f"{path}:{n}", _row(f"{path}:{n}", line)) for n, line in numbered_lines(path) if line.strip()]
    if not rows:
        raise DataError(path, "has no answers in it; export answers.jsonl from a session, or name its folder")
    session = rows[0][1]["session"]
    for where, row in rows:
        if row["session"] != session:
            raise DataError(where, "is of another session than the lines before; give one session's answers")
    if session["task"] not in names():
        raise DataError(path, f"is of task {quoted(session['task'])}, which is not known here")
    kind = task_spec(session["task"])
    try:
        Settings.from_dict(session["settings"], "a session")
    except UsageError as error:
        raise DataError(path, f"has settings that no session has ({error}); export it again") from None
    marks = {"audit": _AUDIT, "flagged": _FLAGGED, "adjudicated_by": _DECIDED}
    why = [next((words for mark, words in marks.items() if row.get(mark)), "") for _, row in rows]
    left_out = Counter(why)
    del left_out[""]
    taken = [each for each, words in zip(rows, why, strict=True) if not words]
    place: dict[str, int] = {}  # of each input
    different: list[tuple[str, object]] = []
    recorded = []
    for where, row in taken:
        key = json.dumps(row.get("columns"))
        if key not in place:
            place[key] = len(place)
            different.append((where, row.get("columns")))
        recorded.append(_recorded(where, row, place[key]))
    inputs = kind.serving().from_columns(different, session["made"], path)
    given = (session["made"], session["settings"], tuple(session["labels"]))
    return Answers(path, session["id"], kind, *given, recorded, left_out, inputs, {})


_FIELDS: dict[str, type] = {"about": str, "asked": str, "kind": str, "numbers": list, "outputs": list, "session": dict}
_OF_SESSION: dict[str, type] = {"id": str, "task": str, "labels": list, "made": dict, "settings": dict}


def _row(where: str, line: str) -> Json:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(where, f"is no JSON ({error}); give answers.jsonl as a session exports it") from None
    if not isinstance(row, dict) or "label" not in row:
        raise DataError(where, "is no answer; give answers.jsonl as a session exports it, or the session's folder")
    if "session" not in row:
        raise DataError(where, "has no `session`: an earlier version wrote it; export it again, or name the folder")
    session = row["session"]
    for fields, given in ((_FIELDS, row), (_OF_SESSION, session)):
        for name, wanted in fields.items():
            if not isinstance(given, dict) or not isinstance(given.get(name), wanted):
                raise DataError(where, f"`{name}` is missing or not as a session exports it; export it again")
    if not all(isinstance(each, str) for each in session["labels"]):
        raise DataError(where, "`labels` are not names; export the file again")
    return row


def _recorded(where: str, row: Json, x: int) -> RecordedAnswer:
    rest = {"owner": "", "step": 0, "x": x, "chance": 1.0, "choices": [], "codes": []}
    content = {"kind": row["asked"], "about": row["about"], "numbers": row["numbers"], "outputs": row["outputs"]}
    try:
        question = Question.from_json({**rest, **content})
        error = float(row.get("e0") or 0), float(row.get("e1") or 0)
    except (UsageError, TypeError, ValueError) as wrong:
        raise DataError(where, f"{wrong}; export the file again") from None
    return RecordedAnswer(question, row.get("taught", ""), row["kind"], error, where)


# Learning from them


def fitted(answers: Answers, options: Json) -> tuple[Task, Sized]:
    """(task, its data) of the answers' own inputs. ``options``: of the task, those that make other features.

    Without any, a session's own task is taken as it is.
    """
    own = answers.kind.serving()
    if not options and answers.contents is not None:
        return answers.contents.task, answers.contents.data
    usual = {name: value for name, value in answers.options.items() if name in own.REFITTED}
    for one, other in (("template", "features"), ("features", "template")):
        if one in options:
            usual.pop(other, None)
    made: tuple[Task, Sized] = own.fitted(answers.made, answers.inputs, {**usual, **options})
    return made


def placed(answers: Answers, task: Task, data: Sized | None = None, error: str | None = None) -> list[RecordedAnswer]:
    """The answers as questions of a task with the same labels.

    ``data``: other inputs than the answers' own, in which those of the same words are looked for; answers about what is
    not there are left out. ``error``: a rater's, as `rater_error` has it, instead of what was believed of each person.
    """
    own = answers.kind.serving()
    numbers = _numbers(answers, tuple(own.answer_labels(task)))
    by_words: dict[object, list[int]] = defaultdict(list)
    for x in range(0 if data is None else len(data)):
        by_words[own.words_of(data, x)].append(x)
    found = []
    for each in answers.recorded:
        x = each.question.x
        if data is not None:
            words = own.words_of(answers.inputs, x)
            there = by_words.get(words, []) if words is not None else []
            if not there:
                continue
            x = x if x in there else there[0]
        believed = each.error if error is None else error_for(each.kind, parse_error(error))
        found.append(replace(each, question=_renumbered(each, x, numbers), error=believed))
    if not found:
        raise UsageError(
            f"`from_answers` {answers.path}: none of its answers is about one of these {answers.kind.inputs}"
        )
    return found


def _numbers(answers: Answers, labels: tuple[str, ...]) -> NDArray[np.int32] | None:
    """The new number of each label; None: they are the same. Refused where there are others."""
    if labels == answers.labels:
        return None
    parts = []
    for one, other, what in ((answers.labels, labels, "missing"), (labels, answers.labels, "new")):
        if odd := [quoted(name) for name in one if name not in other]:
            more = ", ..." if len(odd) > _MOST_NAMES else ""
            parts.append(f"{', '.join(odd[:_MOST_NAMES])}{more} {'is' if len(odd) == 1 else 'are'} {what}")
    if parts:
        raise UsageError(
            f"`from_answers` {answers.path}: its answers are about other labels: {' and '.join(parts)}; answers say "
            "which of all labels is right, so the same are needed"
        )
    return np.array([labels.index(name) for name in answers.labels], np.int32)


def _renumbered(each: RecordedAnswer, x: int, numbers: NDArray[np.int32] | None) -> Question:
    question = replace(each.question, x=x)
    if numbers is None:
        return question
    first, label, last, rest = question.numbers
    try:
        of_labels = question.outputs[: 1 if question.kind == "review" else None]  # a review also has what it is about
        outputs = (*(numbers[output] for output in of_labels), *question.outputs[len(of_labels) :])
        return replace(question, numbers=(first, int(numbers[label]), last, rest), outputs=outputs).frozen()
    except IndexError:
        raise DataError(each.where, "is about a label that is not there") from None


def settings_for(answers: Answers, given: Json) -> Settings:
    """The session's own settings with what is given in their place; h is that of the rule and step."""
    wanted = ("rule", "about", "review", "rater_error", "seed")
    was: Json = {name: answers.settings[name] for name in wanted if name in answers.settings}
    if given.get("rule", was.get("rule")) != was.get("rule"):
        was = {"seed": was["seed"]} if "seed" in was else {}
    elif "step" not in given:
        was |= {name: answers.settings[name] for name in ("h", "step") if name in answers.settings}
    if (rule := given.get("rule", was.get("rule"))) not in answers.kind.asks:
        raise UsageError(f"`rule` {rule} learns from no answers; use {', '.join(answers.kind.asks)}")
    if rule == "review" and all(each.kind == "review" for each in answers.recorded):
        was |= {"rehearse": answers.settings["rehearse"]} if "rehearse" in answers.settings and "rule" in was else {}
    else:  # what is gone over again is of one kind
        was["rehearse"] = 0
    return Settings.complete({**was, **given}, answers.kind.defaults, answers.kind.usual_step)


def learn(
    learner: QueryLearner,
    answers: Iterable[RecordedAnswer],
    passes: int = PASSES,
    look: Callable[[int], None] | None = None,
) -> None:
    """Over all of them, in the order in which they were given, so many times; ``look(done)`` after each.

    Reviews as a session learns from them: once in that order, earlier ones being gone over again, then so many times
    more as before an export."""
    every = list(answers)
    if learner.settings.rule == "review" and learner.settings.rehearse:
        for each in every:
            learner.learn_from(each.question, each.answer, error=each.error)
        learner.finish(passes)
        if look is not None:
            look(passes)
        return
    for done in range(1, passes + 1):
        for each in every:
            learner.learn_from(each.question, each.answer, kind=each.kind, error=each.error)
        if look is not None:
            look(done)


def reviewed_inputs(answers: Iterable[RecordedAnswer], labels: Sequence[str]) -> list[list[object]]:
    """[input, labels by number] of what reviews leave of each: not to be asked again where the model says the same."""
    numbers = {name: k for k, name in enumerate(labels)}
    found = {}
    for each in answers:
        if each.kind == "review":
            found[each.question.x] = reviewed(each.question.offering(numbers), each.answer)[0].tolist()
    return [[x, output] for x, output in found.items()]


def settled(answers: Iterable[RecordedAnswer]) -> list[list[int]]:
    """[input, first, last, 1 where a span was answered] of what is known by the answers: not to be asked again."""
    found: dict[tuple[int, int, int, int], None] = {}
    for each in answers:
        first, _, last, _ = each.question.numbers
        if each.kind == "span":
            ends = each.answer if isinstance(each.answer, dict) else {"first": first, "last": last}
            found[each.question.x, min(first, ends["first"]), ends["last"], 1] = None
        elif each.kind == "label" or (each.kind == "part" and each.answer == "yes"):
            found[each.question.x, first, last, 0] = None
    return [list(each) for each in found]
