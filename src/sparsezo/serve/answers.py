"""The answers of a session, to learn from again: with other features, other settings, another rule, or other inputs.

    answers = read_answers("np.serve")                          # a session's folder, or its answers.jsonl
    task, data = fitted(answers, {"order": 1})                  # its inputs, with other features
    lessons = placed(answers, task)                             # each answer as a question of this task
    learner = Learner(task.problem(data, asks=True), settings)
    learn(learner, lessons, passes=5)

Answers outlive the model. An answer to a question that was flagged, one of an audit, and one that was taken back are
not among them, and a skipped question has none. In other data an answer is found again by the words of its input.
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from sparsezo.errors import DataError, UsageError, quoted
from sparsezo.learner import Learner
from sparsezo.options import make_options
from sparsezo.questions import Question
from sparsezo.raters import parse_error
from sparsezo.serve import folder as folders
from sparsezo.serve.folder import Contents, serving
from sparsezo.serve.log import FLAG, EventRow, Log, QuestionRow
from sparsezo.settings import Settings
from sparsezo.storage.files import numbered_lines
from sparsezo.tasks.kind import TaskKind
from sparsezo.tasks.registry import kind as kind_of
from sparsezo.tasks.registry import names

PASSES = 5  # over all answers (docs/answers.md)
_MOST_NAMES = 8  # of labels in a message


@dataclass(frozen=True, eq=False)
class Recorded:
    """One answer. Labels in the question are places in ``Answers.labels``, x is a number of ``Answers.inputs``."""

    where: str  # for messages
    question: Question
    answer: Any  # as it taught
    kind: str  # that it was answered as
    error: tuple[float, float]  # believed of who gave it


@dataclass(frozen=True, eq=False)
class Answers:
    path: str
    id: str  # what the session is known by
    kind: TaskKind
    made: Mapping[str, Any]  # the task, as ``serving.about_task`` tells it
    settings: Mapping[str, Any]  # of the session's learner
    labels: tuple[str, ...]  # tags, classes; none for lists
    recorded: list[Recorded]
    left_out: Mapping[str, int]  # by reason
    inputs: Any  # that the answers are about
    options: Mapping[str, Any]  # that the session's task was made with, where they are known
    contents: Contents | None = None  # of a session's folder


@dataclass(frozen=True, eq=False)
class Lesson:
    """An answer as a learner takes it."""

    question: Question
    answer: Any
    kind: str
    error: tuple[float, float]


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
    log = Log(folder / folders.LOG)
    try:
        flagged = flagged_tasks(log)
        own = contents.serving
        recorded: list[Recorded] = []
        left_out = Counter[str]()
        for event, row in log.answers():
            if why := _left_out(row.audit is not None, _task_of(row) in flagged):
                left_out[why] += 1
                continue
            answer = json.loads(event.answer or "null") if event.taught is None else event.taught
            error = (float(event.e0 or 0), float(event.e1 or 0))
            where = f"{log.path}: event {event.seq}"
            recorded.append(Recorded(where, row.question(), answer, event.kind or row.kind, error))
    finally:
        log.close()
    settings = contents.settings.as_dict()
    labels = tuple(own.answer_labels(contents.task))
    made = own.about_task(contents.task)
    return Answers(
        str(folder),
        str(log.meta["id"]),
        contents.kind,
        made,
        settings,
        labels,
        recorded,
        left_out,
        contents.data,
        log.meta.get("options", {}),
        contents,
    )


def _task_of(row: QuestionRow) -> int:
    return row.again or row.id


def flagged_tasks(log: Log) -> set[int]:
    """The numbers of questions that somebody has flagged; of one that was asked twice, the first's."""
    flagged = {event.question for event in log.events() if event.what == FLAG}
    return {_task_of(log.question(number)) for number in flagged if number is not None}


def _left_out(audit: bool, flagged: bool) -> str | None:
    return "of audits" if audit else "to flagged questions" if flagged else None


# A file


def to_file(contents: Contents, id: str, row: QuestionRow, event: EventRow, flagged: set[int]) -> dict[str, Any]:
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
        "taught": json.loads(event.answer or "null") if event.taught is None else event.taught,
        "e0": event.e0,
        "e1": event.e1,
        "flagged": _task_of(row) in flagged,
        "columns": own.columns_of(contents.data, row.x),
        "session": session,
    }


def _of_file(path: str) -> Answers:
    session: dict[str, Any] | None = None
    rows: list[tuple[str, dict[str, Any]]] = []
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        row = _row(f"{path}:{number}", line)
        if session is None:
            session = row["session"]
        elif row["session"] != session:
            raise DataError(
                f"{path}:{number}", "is of another session than the lines before; give one session's answers"
            )
        rows.append((f"{path}:{number}", row))
    if session is None:
        raise DataError(path, "has no answers in it; export answers.jsonl from a session, or name its folder")
    kind = _kind_of(session, path)
    try:
        make_options(Settings, session["settings"], "a session")
    except UsageError as error:
        raise DataError(path, f"has settings that no session has ({error}); export it again") from None
    own = serving(kind)
    if not hasattr(own, "from_columns"):
        raise UsageError(
            f"`from_answers` {path}: answers about {kind.inputs} are learned from the session's folder alone"
        )
    left_out = Counter[str]()
    taken = []
    for where, row in rows:
        if why := _left_out(bool(row.get("audit")), bool(row.get("flagged"))):
            left_out[why] += 1
        else:
            taken.append((where, row))
    inputs, places = _inputs(own, taken, session, path)
    recorded = [_recorded(where, row, x) for (where, row), x in zip(taken, places, strict=True)]
    given = (session["made"], session["settings"], tuple(session["labels"]))
    return Answers(path, str(session["id"]), kind, *given, recorded, left_out, inputs, {})


_FIELDS: dict[str, Any] = {"about": str, "asked": str, "kind": str, "numbers": list, "outputs": list, "session": dict}
_OF_SESSION: dict[str, Any] = {"id": str, "task": str, "labels": list, "made": dict, "settings": dict}


def _row(where: str, line: str) -> dict[str, Any]:
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


def _kind_of(session: Mapping[str, Any], path: str) -> TaskKind:
    if session["task"] not in names():
        raise DataError(path, f"is of task {quoted(session['task'])}, which is not known here")
    return kind_of(session["task"])


def _inputs(
    own: Any, rows: Sequence[tuple[str, dict[str, Any]]], session: Mapping[str, Any], path: str
) -> tuple[Any, list[int]]:
    """The inputs that the answers are about, each once, and the input of each answer."""
    place: dict[str, int] = {}
    different: list[tuple[str, Any]] = []
    places = []
    for where, row in rows:
        key = json.dumps(row.get("columns"))
        if key not in place:
            place[key] = len(place)
            different.append((where, row.get("columns")))
        places.append(place[key])
    return own.from_columns(different, session["made"], path), places


def _recorded(where: str, row: Mapping[str, Any], x: int) -> Recorded:
    rest = {"owner": "", "step": 0, "x": x, "chance": 1.0, "choices": [], "codes": []}
    content = {"kind": row["asked"], "about": row["about"], "numbers": row["numbers"], "outputs": row["outputs"]}
    try:
        question = Question.from_json({**rest, **content})
        error = float(row.get("e0") or 0), float(row.get("e1") or 0)
    except (UsageError, TypeError, ValueError) as wrong:
        raise DataError(where, f"{wrong}; export the file again") from None
    return Recorded(where, question, row.get("taught"), row["kind"], error)


# Learning from them


def fitted(answers: Answers, options: Mapping[str, Any]) -> tuple[Any, Any]:
    """(task, its data) of the answers' own inputs. ``options``: of the task, those that make other features.

    Without any, a session's own task is taken as it is.
    """
    own = serving(answers.kind)
    if not options and answers.contents is not None:
        return answers.contents.task, answers.contents.data
    usual = {name: value for name, value in answers.options.items() if name in own.REFITTED}
    for one, other in (("template", "features"), ("features", "template")):
        if one in options:
            usual.pop(other, None)
    made: tuple[Any, Any] = own.fitted(answers.made, answers.inputs, {**usual, **options})
    return made


def placed(answers: Answers, task: Any, data: Any = None, error: str | None = None) -> list[Lesson]:
    """The answers as questions of a task with the same labels.

    ``data``: other inputs than the answers' own, in which those of the same words are looked for; answers about what is
    not there are left out. ``error``: a rater's, as `rater_error` has it, instead of what was believed of each person.
    """
    numbers = _numbers(answers, tuple(serving(answers.kind).answer_labels(task)))
    find = _finder(answers, data)
    lessons = []
    for each in answers.recorded:
        x = find(each)
        if x is None:
            continue
        believed = each.error if error is None else _believed(error, each.kind)
        lessons.append(Lesson(_renumbered(each, x, numbers), each.answer, each.kind, believed))
    if not lessons:
        raise UsageError(
            f"`from_answers` {answers.path}: none of its answers is about one of these {answers.kind.inputs}"
        )
    return lessons


def _numbers(answers: Answers, labels: tuple[str, ...]) -> Any:
    """The new number of each label; None: they are the same. Refused where there are others."""
    if labels == answers.labels:
        return None
    gone = [name for name in answers.labels if name not in labels]
    new = [name for name in labels if name not in answers.labels]
    if gone or new:
        parts = [f"{_some(gone)} {'is' if len(gone) == 1 else 'are'} missing"] if gone else []
        parts += [f"{_some(new)} {'is' if len(new) == 1 else 'are'} new"] if new else []
        raise UsageError(
            f"`from_answers` {answers.path}: its answers are about other labels: {' and '.join(parts)}; answers say "
            "which of all labels is right, so the same are needed"
        )
    return np.array([labels.index(name) for name in answers.labels], np.int32)


def _some(labels: Sequence[str]) -> str:
    return ", ".join(map(quoted, labels[:_MOST_NAMES])) + (", ..." if len(labels) > _MOST_NAMES else "")


def _finder(answers: Answers, data: Any) -> Callable[[Recorded], int | None]:
    """An answer -> its input's number, None where it is not in the data."""
    if data is None:
        return lambda each: each.question.x
    own = serving(answers.kind)
    by_words: dict[Any, list[int]] = defaultdict(list)
    for x in range(len(data)):
        by_words[own.words_of(data, x)].append(x)

    def find(each: Recorded) -> int | None:
        x = each.question.x
        words = own.words_of(answers.inputs, x)
        there = by_words.get(words) if words is not None else None
        return None if not there else x if x in there else there[0]

    return find


def _renumbered(each: Recorded, x: int, numbers: Any) -> Question:
    question = replace(each.question, x=x)
    if numbers is None:
        return question
    first, label, last, rest = question.numbers
    try:
        outputs = tuple(numbers[output] for output in question.outputs)
        return replace(question, numbers=(first, int(numbers[label]), last, rest), outputs=outputs).frozen()
    except IndexError:
        raise DataError(each.where, "is about a label that is not there") from None


def _believed(error: str, kind: str) -> tuple[float, float]:
    """Only yes and no have two rates, and a rating none."""
    e0, e1 = parse_error(error)
    if kind == "rate":
        return 0.0, 0.0
    return (e0, e1) if kind == "part" else ((e0 + e1) / 2, (e0 + e1) / 2)


def settings_for(answers: Answers, given: Mapping[str, Any]) -> Settings:
    """The session's own settings with what is given in their place; h is that of the rule and step."""
    was = {
        name: answers.settings[name] for name in ("rule", "about", "rater_error", "seed") if name in answers.settings
    }
    if given.get("rule", was.get("rule")) != was.get("rule"):
        was = {"seed": was["seed"]} if "seed" in was else {}
    elif "step" not in given:
        was |= {name: answers.settings[name] for name in ("h", "step") if name in answers.settings}
    if (rule := given.get("rule", was.get("rule"))) not in answers.kind.asks:
        raise UsageError(f"`rule` {rule} learns from no answers; use {', '.join(answers.kind.asks)}")
    return Settings.complete({**was, "rehearse": 0, **given}, answers.kind.defaults, answers.kind.usual_step)


def learn(
    learner: Learner, lessons: Iterable[Lesson], passes: int = PASSES, look: Callable[[int], None] | None = None
) -> None:
    """Over all of them, in the order in which they were given, so many times; ``look(done)`` after each."""
    every = list(lessons)
    for done in range(1, passes + 1):
        for each in every:
            learner.learn_from(each.question, each.answer, kind=each.kind, error=each.error)
        if look is not None:
            look(done)


def settled(lessons: Iterable[Lesson]) -> list[list[int]]:
    """[input, first, last, 1 where a span was answered] of what is known by the answers: not to be asked again."""
    found: dict[tuple[int, int, int, int], None] = {}
    for each in lessons:
        first, _, last, _ = each.question.numbers
        if each.kind == "span":
            ends = each.answer if isinstance(each.answer, dict) else {"first": first, "last": last}
            found[each.question.x, min(first, ends["first"]), ends["last"], 1] = None
        elif each.kind == "label" or (each.kind == "part" and each.answer == "yes"):
            found[each.question.x, first, last, 0] = None
    return [list(each) for each in found]
