"""predict and evaluate: what a model does with a file."""

from __future__ import annotations

import sys
from glob import has_magic
from pathlib import Path

from sparsezo.cli import show
from sparsezo.cli.log import evaluate_on_log
from sparsezo.cli.options import given
from sparsezo.errors import SparsezoError, UsageError, need
from sparsezo.messages import counted
from sparsezo.model import load_model
from sparsezo.options import Values, make_options
from sparsezo.storage.checksummed import read_checksummed, write_checksummed
from sparsezo.storage.files import working_folder
from sparsezo.storage.fingerprint import fingerprint
from sparsezo.study.engines.base import ENGINE_OPTIONS, RAY, EngineOptions
from sparsezo.study.engines.tagging import Predictor, find_parts, predict_file, predict_parts
from sparsezo.tasks.registry import task_spec


def run_predict(values: Values) -> None:
    where = given(values, ENGINE_OPTIONS)
    options = given(values, values, but=("model", "input", "output", *ENGINE_OPTIONS))
    path, *more = values["input"]
    if where or more or (has_magic(path) and not Path(path).exists()):
        _predict_collection(values, options, EngineOptions(**where))
        return
    model = load_model(values["model"])
    task = task_spec(model.task.name)
    need(task.reading_extra)
    sys.stdout.flush()
    if values["output"] is not None:
        predict_file(model, path, options, values["output"])
        show.note(f"wrote {values['output']}")
    elif not task.predict_spans(model, path, options, sys.stdout.buffer):
        show.lines(task.predict(model, path, options))
    sys.stdout.flush()


def _predict_collection(values: Values, options: Values, where: EngineOptions) -> None:
    """Many files, each into a file of the folder that ``output`` names."""
    out: Path | None = values["output"]
    if out is None:
        raise UsageError("several files become files of a folder: name it with `output`")
    if options.get("format") == "brat":
        raise UsageError("`format` brat is a folder for each input; give one input, or another `format`")
    model = load_model(values["model"])
    task = task_spec(model.task.name)
    make_options(task.predict_options, options, f"task {task.name}")  # refused before any work
    need(task.reading_extra)
    parts = find_parts(values["input"], out)
    made = {"model": fingerprint(values["model"].read_bytes()), "options": dict(options)}
    with show.stopping_cleanly(), working_folder(out):
        record = out / "predict.json"
        if read_checksummed(record) not in (None, made):
            raise UsageError(f"{out}: has outputs of another model or with other options; name another folder with -o")
        write_checksummed(record, made)
        predictor = Predictor(model if where.engine == RAY else values["model"], options)
        with show.counting("predicting", "files") as count:
            failures = predict_parts(predictor, parts, where, count)
    for why in failures:
        show.note(f"failed: {why}")
    if failures:
        raise SparsezoError(
            f"{counted(len(failures), 'file')} failed, for the reasons above; the same command tries them again, "
            "and only them"
        )
    show.note(f"wrote {counted(len(parts), 'file')} in {out}")


def run_evaluate(values: Values) -> None:
    path, test = values["model"], values["test"]
    if test is None and values["log"] is None:
        raise UsageError("give a file with the correct outputs, or `log`")
    model = load_model(path)
    task = task_spec(model.task.name)
    need(*task.extras)
    options = given(values, values, but=("model", "test", "json", "log"))
    if values["log"] is not None:
        evaluate_on_log(model, path, task, values, options)
        return
    data = task.read(model.task, test, options)
    scores = model.task.scores(data, model.predict(data))
    fields = {"task": model.task.name, "metric": scores.metric, **scores.report, "model": str(path), "test": test}
    show.result(fields, as_json=values["json"], title=f"{path} on {test}")
