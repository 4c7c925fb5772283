"""A session's folder, one thing to copy: the log, and all that its model is made of.

    NAME.serve/log.sqlite       questions and answers, people, audits, the learning curve
    NAME.serve/log.sqlite-wal   the newest of them, while it is served and after a crash: belongs to the log
    NAME.serve/task.szo         the task (tags, features, classes), the learner's settings, the weights to start from
    NAME.serve/inputs.szo       what is asked about, without any labels (reranking: inputs/, a store of lists)
    NAME.serve/links.key        what links are made of, for its owner alone
    NAME.serve/guidelines.md    how to answer, where that was said
    NAME.serve/*.snapshot       the model now and then, to start faster; may be removed

The log is made last: a folder without it is one that was never finished.

    log = open_log(folder)              # refused where answers of it are missing
    backup(folder, "copy.serve")        # whole, also while it is served
"""

from __future__ import annotations

import contextlib
import importlib
import os
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from sparsezo.errors import DataError, SparsezoError, UsageError
from sparsezo.identity import known_by
from sparsezo.options import make_options
from sparsezo.serve.log import Log
from sparsezo.settings import Settings
from sparsezo.storage.container import damage, read_container, write_container
from sparsezo.storage.locks import FOLDER_LOCK, temporary_folder
from sparsezo.tasks.kind import TaskKind
from sparsezo.tasks.registry import kind as kind_of

LOG, TASK, SNAPSHOT = "log.sqlite", "task.szo", ".snapshot"
_KIND, _OF_TASK, _START = "serve", "task.", "W"


@dataclass(frozen=True, eq=False)
class Contents:
    """What a model is made of, beside the answers."""

    kind: TaskKind
    task: Any
    data: Any
    settings: Settings
    W: NDArray[Any] | None

    @property
    def serving(self) -> Any:
        return serving(self.kind)

    @property
    def has_chunks(self) -> bool:
        """Whether outputs have chunks, which precision and recall are of."""
        return hasattr(self.serving, "chunks_in") and self.task.metric == "f1"


def serving(kind: TaskKind) -> Any:
    """The task's own part of a session."""
    if not kind.asks:
        raise SparsezoError(f"task {kind.name} asks no questions, so there is nothing to serve")
    return importlib.import_module(f"{kind.home}.serving")


def is_log(folder: Path) -> bool:
    return (folder / LOG).is_file()


def make(folder: Path, contents: Contents, meta: Mapping[str, Any], rows: Any) -> Log:
    """A new session's folder."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SparsezoError(f"{folder}: cannot be made ({error.strerror}); name another folder") from None
    own, arrays = _task_arrays(contents)
    head = {"task": contents.kind.name, "task_settings": own, "settings": contents.settings.as_dict()}
    write_container(folder / TASK, _KIND, head, arrays)
    inputs = contents.serving.keep(folder, contents.data)
    known = {"id": secrets.token_hex(8), "task": contents.kind.name, "known_by": identity(contents, inputs)}
    return Log.create(folder / LOG, {**known, **meta}, rows)


def open_log(folder: Path) -> Log:
    """The log of a session's folder; refused where a snapshot beside it has learned from answers that it has not."""
    log = Log(folder / LOG)
    try:
        last = log.last_event()
        for path in sorted(folder.glob(f"*{SNAPSHOT}"), reverse=True):
            seq = _event_of(path, log)
            if seq is not None and seq > last:
                raise DataError(
                    str(log.path),
                    f"ends at event {last:,}, but {path.name} has learned from event {seq:,}: answers are missing; "
                    f"copy {LOG} again together with {LOG}-wal, or take a backup (serve --backup); if they are lost "
                    f"for good, remove the files *{SNAPSHOT} to go on without them",
                )
    except BaseException:
        log.close()
        raise
    return log


def _event_of(path: Path, log: Log) -> int | None:
    """The last event that a snapshot has learned from; None where it is not of this log, not newer, or damaged."""
    with contextlib.suppress(ValueError):
        if int(path.name.removesuffix(SNAPSHOT)) <= log.last_event():
            return None
    with contextlib.suppress(SparsezoError, KeyError, TypeError, ValueError):
        meta, _ = read_container(path, "snapshot")
        if meta["log"] == log.meta["id"]:
            return int(meta["seq"])
    return None


def backup(folder: Path, to: Path) -> int:
    """A copy of a session's whole folder, also while it is served; whole or not there at all. So many events."""
    if not is_log(folder):
        raise DataError(str(folder), f"is no folder of a session: it has no {LOG}; check the path")
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise UsageError(f"`backup` {to}: is there already; name a new folder")
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        with temporary_folder(to.parent, f".{to.name}.", ".unfinished") as made:
            whole = made / "whole"
            whole.mkdir()
            for path in sorted(folder.iterdir()):
                if not path.name.startswith((".", LOG)) and path.name != FOLDER_LOCK:
                    with contextlib.suppress(FileNotFoundError):  # a snapshot that was removed meanwhile
                        _copy(path, whole / path.name)
            log = open_log(folder)  # after the snapshots: it is never behind them
            try:
                log.backup(whole / LOG)
            finally:
                log.close()
            copied = open_log(whole)  # every row is looked at
            events = copied.last_event()
            copied.close()
            if to.is_dir():
                to.rmdir()
            os.rename(whole, to)
            return events
    except OSError as error:
        raise SparsezoError(f"{to}: cannot be written ({error.strerror or error}); name another folder") from None


def _copy(path: Path, to: Path) -> None:
    if path.is_dir():
        to.mkdir()
        for each in path.iterdir():
            _copy(each, to / each.name)
        return
    mode = path.stat().st_mode & 0o777  # who may not read the key of links may not read its copy
    with open(path, "rb") as source, open(os.open(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as copy:
        shutil.copyfileobj(source, copy, 1 << 20)
        copy.flush()
        os.fsync(copy.fileno())


def read(folder: Path) -> Contents:
    """From the folder alone."""
    if not is_log(folder):
        raise DataError(str(folder), f"is no folder of a session: it has no {LOG}; check the path")
    head, arrays = read_container(folder / TASK, _KIND)
    with damage(folder / TASK):
        kind = kind_of(str(head["task"]))
        own = {name.removeprefix(_OF_TASK): each for name, each in arrays.items() if name.startswith(_OF_TASK)}
        task = kind.from_arrays(head["task_settings"], own)
        settings = make_options(Settings, head["settings"], "a session")
    return Contents(kind, task, serving(kind).kept(folder, task), settings, arrays.get(_START))


def identity(contents: Contents, inputs: str | None = None) -> str:
    """What the same task, start and settings on the same inputs are known by."""
    own, arrays = _task_arrays(contents)
    inputs = contents.serving.identity(contents.data) if inputs is None else inputs
    return known_by(contents.kind.name, own, arrays, inputs, contents.settings.as_dict())


def _task_arrays(contents: Contents) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    own, arrays = contents.task.to_arrays()
    named = {_OF_TASK + name: each for name, each in arrays.items()}
    return own, named if contents.W is None else {**named, _START: contents.W}
