"""predict and evaluate: what a model does with a file."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from sparsezo.cli.options import command, given, insist_parameter, parameter, parameters
from sparsezo.cli.train import json_parameter
from sparsezo.options import described
from sparsezo.tasks.registry import kinds


def add_predict(app: typer.Typer) -> None:
    output = typer.Option("-o", "--output", help="Where it goes.", show_default="standard output", metavar="FILE")
    params = [
        _argument("model", Path, "A model that train wrote."),
        _argument("input", str, "The inputs, with or without the correct outputs."),
        parameter("output", Path | None, output),
        insist_parameter(),
        *_of_all_tasks("predict_options"),
    ]
    about = "Write the best outputs: spans of texts, columns with a predicted tag, label TAB text, 1-best translations."
    command(app, "predict", run_predict, params, about)


def add_evaluate(app: typer.Typer) -> None:
    params = [
        _argument("model", Path, "A model that train wrote."),
        _argument("test", str, "A file with the correct outputs."),
        *_of_all_tasks("read_options"),
        insist_parameter(),
        json_parameter(),
    ]
    command(app, "evaluate", run_evaluate, params, "Evaluate a model on a test file, by the task's own metric.")


def _argument(name: str, kind: Any, help: str) -> inspect.Parameter:
    return parameter(name, kind, typer.Argument(help=help), inspect.Parameter.empty)


def _of_all_tasks(which: str) -> list[inspect.Parameter]:
    """The model knows its task, the command line does not yet: options of all of them, each once."""
    found: dict[str, inspect.Parameter] = {}
    for kind in kinds():
        for each in parameters(described(getattr(kind, which)), f"Task {kind.name}"):
            found.setdefault(each.name, each)
    return list(found.values())


def _given(values: Mapping[str, Any], *own: str) -> dict[str, Any]:
    return given(values, {name: None for name in values if name not in own})


def run_predict(**values: Any) -> None:
    from sparsezo import extras
    from sparsezo.cli import show
    from sparsezo.model import load_model
    from sparsezo.storage.files import atomic_write
    from sparsezo.tasks.registry import kind

    model = load_model(values["model"])
    extras.need(kind(model.task.name).reading_extra)
    options = _given(values, "model", "input", "output")
    task = kind(model.task.name)
    sys.stdout.flush()
    if task.predict_spans(model, values["input"], options, values["output"] or sys.stdout.buffer):
        sys.stdout.flush()
        if values["output"] is not None:
            show.note(f"wrote {values['output']}")
        return
    lines = task.predict(model, values["input"], options)
    if values["output"] is None:
        show.lines(lines)
        return
    with atomic_write(values["output"]) as stream:
        stream.writelines(line.encode() for line in lines)
    show.note(f"wrote {values['output']}")


def run_evaluate(**values: Any) -> None:
    from sparsezo import extras
    from sparsezo.cli import show
    from sparsezo.model import load_model
    from sparsezo.tasks.registry import kind

    path, test = values["model"], values["test"]
    model = load_model(path)
    task = kind(model.task.name)
    extras.need(*task.extras)
    data = task.read(model.task, test, _given(values, "model", "test", "json"))
    scores = model.task.scores(data, model.predict(data))
    fields = {"task": model.task.name, "metric": scores.metric, **scores.report, "model": str(path), "test": test}
    show.result(fields, as_json=values["json"], title=f"{path} on {test}")
