"""train --log and evaluate --log: a log of what another system showed and what people said of it."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING

from sparsezo.cli.from_answers import check_held, passes_of, read_held, refuse_what_has_no_place
from sparsezo.cli.options import flag, given
from sparsezo.errors import UsageError, need
from sparsezo.messages import counted
from sparsezo.options import Values, described

if TYPE_CHECKING:
    from sparsezo.logged import Log
    from sparsezo.model import Model
    from sparsezo.settings import Settings
    from sparsezo.tasks.base import AnyArray
    from sparsezo.tasks.spec import TaskSpec

_SETTINGS = ("rule", "h", "step", "rater_error", "seed")  # that go with a log


def log_parameter(help: str) -> inspect.Parameter:
    return flag("log", str | None, f"{help} (docs/logged.md)", metavar="FILE")


def run_from_log(kind: TaskSpec, values: Values) -> None:
    """``values``: the command line of train, by the parameters' names."""
    from sparsezo.cli import show
    from sparsezo.cli.train import alone, places
    from sparsezo.logged import learn_log, settings_for, usual_passes
    from sparsezo.serve.folder import is_session

    if values.get("from_answers") is not None:
        raise UsageError("`log` and `from_answers`: give one of them")
    refuse_what_has_no_place(values, "log", _SETTINGS)
    passes_of(values, 1)  # refused before a file is read
    if is_session(Path(values["log"])):
        raise UsageError(f"`log` {values['log']}: is a session's folder; learn from its answers with `from_answers`")
    need(kind.reading_extra, kind.metric_extra if values["dev"] or values["test"] else None)
    output: Path = values["output"]
    checkpoint = places(output, resume=False, force=values["force"])
    with alone(output, checkpoint):
        log, W, held = _read(kind, values)
        settings = settings_for(log, given(values, dict.fromkeys(_SETTINGS)))
        passes = passes_of(values, usual_passes(settings.rule))
        show.note(introduced(log, settings, passes))
        show.note_compiling()
        only = values["rule"] is not None
        model = learn_log(log, settings, W=W, passes=passes, only=only, dev=held[0], test=held[1])
        model.save(output)
        show.note(f"wrote {output}")
    show.result(model.result, as_json=values["json"], title=f"{kind.name}: {settings}")


def _read(kind: TaskSpec, values: Values) -> tuple[Log, AnyArray | None, list[object]]:
    """(log, weights to start from, [dev, test])."""
    from sparsezo.logged import read_log
    from sparsezo.model import load_model
    from sparsezo.storage.container import is_container
    from sparsezo.tasks.loading import Files
    from sparsezo.training import joined

    init, options = values["init"], given(values, kind.options)
    model = None
    if init is not None and (is_container(init) or "init" not in kind.options):
        model = load_model(init, kind.name)
        options.pop("init", None)
    held: list[object]
    if kind.logs().FROM_FILE:
        if not values["train"]:
            raise UsageError(
                f"the lines of a log are about {kind.inputs} by number; give their file, too, with `train`"
            )
        loaded = kind.load(Files(tuple(values["train"]), values["dev"], values["test"], options))
        log = read_log(values["log"], kind, loaded.task, loaded.data.train)
        W, held = loaded.W, [loaded.data.dev, loaded.data.test]
    else:
        if values["train"]:
            raise UsageError("`log` has its inputs in it; leave out `train`, or start from a model of it with `init`")
        reading = {name: options.pop(name) for name in described(kind.read_options) if name in options}
        check_held(values, reading)
        W, log = None, read_log(values["log"], kind, options=options)
        held = [*read_held(kind, log.task, values, reading, {})]
    if model is not None:
        W = joined(model, log.task).W
    return log, W, held


def introduced(log: Log, settings: Settings, passes: int) -> str:
    """A line: what was read, how much of it is good, and what is made of it."""
    rewards = [row.reward for row in log.rows if row.reward is not None]
    parts = [right for row in log.rows for _, right in row.parts]
    corrected = sum(row.corrected is not None for row in log.rows)
    said = [f"reward {sum(rewards) / len(rewards):.3f} in the mean"] if rewards else []
    said += [f"{counted(len(parts), 'span')} judged, {sum(parts) / len(parts):.0%} right"] if parts else []
    said += [f"{corrected:,} corrected"] if corrected else []
    known = sum(row.propensity is not None for row in log.rows)
    said.append(f"propensities of {known:,}" if known else "no propensities")
    how = f"rule {settings.rule}, gone over {counted(passes, 'time')}"
    return f"{log.path}: {counted(len(log.rows), 'line')}, {', '.join(said)}; {how}"


def evaluate_on_log(model: Model, path: Path, kind: TaskSpec, values: Values, options: Values) -> None:
    """``values``: the command line of evaluate; ``options``: how a file of inputs is read."""
    from sparsezo.cli import show
    from sparsezo.logged import evaluate_log, read_log

    data = None
    if kind.logs().FROM_FILE:
        if values["test"] is None:
            raise UsageError(f"the lines of a log are about {kind.inputs} by number; give their file, too")
        data = kind.read(model.task, values["test"], options)
    elif values["test"] is not None or options:
        odd = values["test"] if values["test"] is not None else f"`{next(iter(options))}`"
        raise UsageError(f"{odd}: `log` has its inputs in it; leave this out")
    report = evaluate_log(model, read_log(values["log"], kind, model.task, data))
    for warning in report["warnings"]:
        show.note(f"warning: {warning}")
    fields = {"task": kind.name, "model": str(path), "log": values["log"], **report}
    if not values["json"]:
        fields = {name: _in_words(value) for name, value in fields.items() if name != "warnings"}
    show.result(fields, as_json=values["json"], title=f"{path} on {values['log']}")


def _in_words(value: object) -> object:
    """An estimate with its interval, for people."""
    if not isinstance(value, list):
        return value
    numbers = [f"{each:.4f}" for each in value]
    return f"{numbers[0]} ({numbers[1]} to {numbers[2]})" if len(numbers) == 3 else " to ".join(numbers)
