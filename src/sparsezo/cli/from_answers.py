"""train --from-answers, and what serve --from-answers starts from: people's answers, learned from again."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sparsezo.cli.options import flag, given
from sparsezo.errors import UsageError, need
from sparsezo.messages import counted
from sparsezo.options import Values, described
from sparsezo.settings import SETTINGS
from sparsezo.tasks.loading import is_count

if TYPE_CHECKING:
    from sparsezo.model import Model
    from sparsezo.serve.answers import Answers, RecordedAnswer
    from sparsezo.settings import Settings
    from sparsezo.tasks.base import AnyArray, Json, Task
    from sparsezo.tasks.spec import TaskSpec

_OF_ANSWERS = ("rule", "h", "step", "rater_error", "rehearse", "seed")  # settings that answers are learned with
_NO_PLACE = ("iterations", "answers", "evaluate_every", "resume")


def from_answers_parameters(logs: bool = False) -> list[inspect.Parameter]:
    """Of train and serve: people's answers that were given already. ``logs``: there are logs of feedback, too."""
    answers = "Learn from the answers of a session with people: its folder, or its export answers.jsonl."
    passes = f"With --from-answers{' or --log' if logs else ''}: so many times over all of them."
    return [
        flag("from_answers", str | None, answers, metavar="SESSION|FILE"),
        flag("passes", int | None, passes, show_default="5; 1 for thumbs of --log" if logs else "5"),
    ]


@dataclass(frozen=True, eq=False)
class Start:
    """Answers with the task and the inputs that they are learned with."""

    answers: Answers
    task: Task
    data: Sized
    W: AnyArray | None  # the weights to start from
    recorded: list[RecordedAnswer]  # the answers, as ones to questions of this task
    dev: Sized | None = None
    test: Sized | None = None


def run_from_answers(kind: TaskSpec, values: Values) -> None:
    """``values``: the command line of train, by the parameters' names."""
    from sparsezo.cli import show
    from sparsezo.cli.train import alone, places
    from sparsezo.serve.answers import PASSES, read_answers, settings_for

    refuse_what_has_no_place(values, "from_answers", _OF_ANSWERS)
    passes = passes_of(values, PASSES)
    need(kind.reading_extra, kind.metric_extra if values["dev"] or values["test"] else None)
    output: Path = values["output"]
    checkpoint = places(output, resume=False, force=values["force"])
    answers = read_answers(values["from_answers"], kind.name)
    settings = settings_for(answers, given(values, dict.fromkeys(_OF_ANSWERS)))
    with alone(output, checkpoint):
        own = {"init": values["init"], "error": values["rater_error"]}
        start = begun(answers, values, train=values["train"] or (), **own)
        show.note(introduced(start, passes))
        show.note_compiling()
        model = learned(start, settings, passes)
        model.save(output)
        show.note(f"wrote {output}")
    show.result(model.result, as_json=values["json"], title=f"{kind.name}: {settings}")


def passes_of(values: Values, usual: int) -> int:
    passes: int = usual if values["passes"] is None else values["passes"]
    if passes < 1:
        raise UsageError(f"`passes` {passes}: must be at least 1")
    return passes


def refuse_what_has_no_place(values: Values, source: str, settings: Sequence[str]) -> None:
    """``source``: the option that says what is learned from; ``settings``: those that go with it."""
    from sparsezo.scorers import ScorerOptions
    from sparsezo.tasks.streams import StreamOptions

    others = {name: None for name in SETTINGS if name not in settings}
    for options in (ScorerOptions, StreamOptions):
        others |= dict.fromkeys(described(options))
    for name in given(values, {**others, **dict.fromkeys(_NO_PLACE)}):
        raise UsageError(f"`{name}` has no place with `{source}`, of which all is learned from; leave it out")


def begun(
    answers: Answers,
    values: Values,
    *,
    train: Sequence[str],
    init: str | None,
    error: str | None = None,
    defaults: Values | None = None,
) -> Start:
    """``values``: the command line. ``train``: files of inputs, none where the answers' own are taken.

    ``error``: believed of all who answered; None: what was believed of each. ``defaults``: of the task's options.
    """
    from sparsezo.model import load_model
    from sparsezo.serve.answers import placed
    from sparsezo.tasks.loading import Files
    from sparsezo.training import joined

    kind = answers.kind
    if train:
        labels = kind.serving().labels_option(answers.made)
        options = {**labels, **(defaults or {}), **given(values, kind.options)}
        loaded = kind.load(Files(tuple(train), values["dev"], values.get("test"), options))
        task, data, W = loaded.task, loaded.data.train, loaded.W
        held = [loaded.data.dev, loaded.data.test]
        recorded = placed(answers, task, data, error)
    else:
        task, data, W, held = _own(answers, values)
        recorded = placed(answers, task, None, error)
    if init is not None:
        W = joined(load_model(init, kind.name), task).W
    return Start(answers, task, data, W, recorded, *held)


def _own(answers: Answers, values: Values) -> tuple[Task, Sized, AnyArray | None, list[Sized | None]]:
    """(task, data, W, [dev, test]) of the answers' own inputs."""
    from sparsezo.serve.answers import fitted

    kind, own = answers.kind, answers.kind.serving()
    options = given(values, kind.options)
    reading = {name: options.pop(name) for name in described(kind.read_options) if name in options}
    check_held(values, reading)
    labels = {name: options.pop(name) for name in own.labels_option(answers.made) if name in options}
    refs: Json = {name: options.pop(name) for name in ("dev_ref", "test_ref") if name in options}
    for name in options:
        if name not in own.REFITTED:
            raise UsageError(
                f"`{name}`: the inputs are the session's own, as it has them; leave it out, or give `train`"
            )
    task, data = fitted(answers, options)
    _check_labels(answers, labels)
    return task, data, _session_start(answers, task), read_held(kind, task, values, reading, refs)


def check_held(values: Values, reading: Values) -> None:
    """Whether dev and test are files, and there is one where it is said how files are read."""
    if is_count(values["dev"]):
        raise UsageError(f"`dev` {values['dev']}: the inputs have no labels to look at; name a dev file")
    if reading and not (values["dev"] or values.get("test")):
        raise UsageError(f"`{next(iter(reading))}` says how files are read, and none is; leave it out")


def read_held(kind: TaskSpec, task: Task, values: Values, reading: Values, refs: Values) -> list[Sized | None]:
    """[dev, test], where they were given."""
    found: list[Sized | None] = []
    for name in ("dev", "test"):
        ref = {"ref": refs[f"{name}_ref"]} if f"{name}_ref" in refs else {}
        path = values.get(name)
        found.append(None if path is None else kind.read(task, path, {**reading, **ref}))
    return found


def _check_labels(answers: Answers, options: Values) -> None:
    """Tags, or classes, that are named must be those of the answers."""
    known = answers.kind.serving().labels_option(answers.made)
    for name, value in options.items():
        mine, its = ({each.partition("=")[0].strip() for each in text.split(",")} for text in (value, known[name]))
        if mine != its:
            missing, new = (", ".join(sorted(each)) for each in (its - mine, mine - its))
            parts = [*([f"{missing} missing"] if missing else []), *([f"{new} new"] if new else [])]
            raise UsageError(
                f"`{name}` {value}: the answers are about {known[name]} ({', '.join(parts)}); answers say which of all "
                "is right, so the same are needed: leave it out"
            )


def _session_start(answers: Answers, task: Task) -> AnyArray | None:
    """What the session itself started from, for this task's features."""
    from sparsezo.cli import show
    from sparsezo.model import Model
    from sparsezo.training import joined

    contents = answers.contents
    if contents is None or contents.W is None or task is contents.task:
        return None if contents is None else contents.W
    W = contents.W.reshape(contents.task.n_features, contents.task.n_labels)
    try:
        return joined(Model(contents.task, W, {}, {}), task).W
    except UsageError as error:
        show.note(f"not started from the weights that the session started from: {error}")
        return None


def introduced(start: Start, passes: int) -> str:
    answers = start.answers
    left = [f"{n:,} {why}" for why, n in answers.left_out.items() if n]
    if missing := len(answers.recorded) - len(start.recorded):
        left.append(f"{missing:,} about inputs that are not there")
    rest = f"; left out: {', '.join(left)}" if left else ""
    number = counted(len(start.recorded), "answer")
    return f"{answers.path}: {number} about {answers.kind.inputs}, gone over {counted(passes, 'time')}{rest}"


def learned(start: Start, settings: Settings, passes: int) -> Model:
    """The model after all passes; with dev, the best of those after each pass."""
    from sparsezo.query_learner import QueryLearner
    from sparsezo.serve.answers import learn
    from sparsezo.training import best_of_passes

    learner = QueryLearner(start.task.problem(start.data, asks=True), settings, start.W)
    about = {"from_answers": start.answers.path, "answers": len(start.recorded), "passes": passes}

    def go(look: Callable[[int], None]) -> None:
        learn(learner, start.recorded, passes, look)

    return best_of_passes(start.task, learner, about, go, start.dev, start.test)


def taken_over(start: Start, passes: int, *, audits: bool) -> Json:
    """For a new session: what its log says of the answers, parts that need not be asked again, what may be audited.

    ``audits``: the inputs are the session's own, so that its audit set, never learned from, can be the new one's.
    """
    from sparsezo.serve.answers import reviewed_inputs, settled
    from sparsezo.serve.folder import LOG
    from sparsezo.serve.store import AuditRow, Store

    answers = start.answers
    taken = {"path": answers.path, "session": answers.id, "answers": len(start.recorded), "passes": passes}
    labels = answers.kind.serving().answer_labels(start.task)
    reviewed = reviewed_inputs(start.recorded, labels)
    about = {"from_answers": taken, "settled": settled(start.recorded), **({"reviewed": reviewed} if reviewed else {})}
    if answers.contents is None and start.data is answers.inputs:
        raise UsageError(f"`from_answers` {answers.path}: has no inputs beside those that were answered; give `inputs`")
    if audits:
        with contextlib.closing(Store(Path(answers.path) / LOG)) as store:
            rows, meta = store.rows(AuditRow), store.meta
        if rows:
            names = ("audit", "audit_whole", "audit_parts", "audit_inputs", "audit_seed")
            return {"about": about | {name: meta[name] for name in names if name in meta}, "audit_set": rows}
    return {"about": about, "answered": {each.question.x for each in start.recorded}}
