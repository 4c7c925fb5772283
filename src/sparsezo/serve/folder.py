"""A session's folder, one thing to copy: the log, and all that its model is made of.

    NAME.serve/log.sqlite       questions and answers, people, audits, the learning curve
    NAME.serve/log.sqlite-wal   the newest of them, while it is served and after a crash: belongs to the log
    NAME.serve/task.szo         the task (tags, features, classes), the learner's settings, the weights to start from
    NAME.serve/inputs.szo       what is asked about, without any labels (reranking: inputs/, a store of lists)
    NAME.serve/links.key        what links are made of, for its owner alone
    NAME.serve/guidelines.md    how to answer, where that was said
    NAME.serve/*.snapshot       the model now and then, to start faster; may be removed

The log is made last: a folder without it is one that was never finished.

    contents = read(folder)             # task, inputs, settings, weights to start from
    store = open_store(folder)          # refused where answers of it are missing
    backup(folder, "copy.serve")        # whole, also while it is served
    made_with(options, ("raw.txt",))    # for the store's meta, by which ``differences`` knows what is given otherwise

A session goes on as it was made. What is given again must be as it was; files are compared by their content.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass
from pathlib import Path

from sparsezo.errors import DataError, SparsezoError, UsageError, quoted, shown
from sparsezo.messages import counted
from sparsezo.serve.store import AuditRow, Store
from sparsezo.settings import Settings
from sparsezo.storage.container import damage, read_container, write_container
from sparsezo.storage.files import STANDARD_INPUT
from sparsezo.storage.fingerprint import hasher, known_by
from sparsezo.storage.locks import FOLDER_LOCK, temporary_folder
from sparsezo.tasks.base import AnyArray, Arrays, Json, Task
from sparsezo.tasks.registry import task_spec
from sparsezo.tasks.serving import TaskServing
from sparsezo.tasks.spec import TaskSpec

LOG, TASK, SNAPSHOT = "log.sqlite", "task.szo", ".snapshot"
_KIND, _OF_TASK, _START = "serve", "task.", "W"
_NAMES = ("tags", "classes")  # options that are names parted by commas, in any order
_NOT_KNOWN = "?"  # the sum of what cannot be read twice


@dataclass(frozen=True, eq=False)
class Contents:
    """What a model is made of, beside the answers."""

    kind: TaskSpec
    task: Task
    data: Sized
    settings: Settings
    W: AnyArray | None = None

    @property
    def serving(self) -> TaskServing[Task, Sized]:
        return self.kind.serving()

    @property
    def has_chunks(self) -> bool:
        return self.serving.has_chunks(self.task)


def is_session(folder: Path) -> bool:
    return (folder / LOG).is_file()


def make(folder: Path, contents: Contents, meta: Mapping[str, object], audit_set: Sequence[AuditRow]) -> Store:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SparsezoError(f"{folder}: cannot be made ({error.strerror}); name another folder") from None
    own, arrays = _task_arrays(contents)
    head = {"task": contents.kind.name, "task_settings": own, "settings": contents.settings.as_dict()}
    write_container(folder / TASK, _KIND, head, arrays)
    inputs = contents.serving.keep(folder, contents.data)
    known = {"id": secrets.token_hex(8), "task": contents.kind.name, "known_by": identity(contents, inputs)}
    return Store.create(folder / LOG, {**known, **meta}, audit_set)


def open_store(folder: Path) -> Store:
    """The store of a session's folder; refused where a snapshot beside it has learned from answers that it has not."""
    with contextlib.ExitStack() as failed:
        store = Store(folder / LOG)
        failed.callback(store.close)
        last = store.last_event()
        for path in sorted(folder.glob(f"*{SNAPSHOT}"), reverse=True):
            seq = _event_of(path, store.meta["id"], last)
            if seq > last:
                raise DataError(
                    str(store.path),
                    f"ends at event {last:,}, but {path.name} has learned from event {seq:,}: answers are missing; "
                    f"copy {LOG} again together with {LOG}-wal, or take a backup (serve --backup); if they are lost "
                    f"for good, remove the files *{SNAPSHOT} to go on without them",
                )
        failed.pop_all()
    return store


def _event_of(path: Path, id: str, last: int) -> int:
    """The last event that a snapshot has learned from; 0 where it is of another session, not newer, or damaged."""
    with contextlib.suppress(ValueError):
        if int(path.name.removesuffix(SNAPSHOT)) <= last:
            return 0
    with contextlib.suppress(SparsezoError, KeyError, TypeError, ValueError):
        meta, _ = read_container(path, "snapshot")
        return int(meta["seq"]) if meta["log"] == id else 0
    return 0


def backup(folder: Path, to: Path) -> int:
    """Copy a session's whole folder, also while it is served; the copy is whole or not there at all.

    Returns how many events it has.
    """
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
            with contextlib.closing(open_store(folder)) as store:  # after the snapshots: it is never behind them
                store.backup(whole / LOG)
            with contextlib.closing(open_store(whole)) as copied:  # every row is looked at
                events = copied.last_event()
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
    """What a session was made of, from its folder alone."""
    if not is_session(folder):
        raise DataError(str(folder), f"is no folder of a session: it has no {LOG}; check the path")
    head, arrays = read_container(folder / TASK, _KIND)
    with damage(folder / TASK):
        kind = task_spec(str(head["task"]))
        own = {name.removeprefix(_OF_TASK): each for name, each in arrays.items() if name.startswith(_OF_TASK)}
        task = kind.from_arrays(head["task_settings"], own)
        settings = Settings.from_dict(head["settings"], "a session")
    return Contents(kind, task, kind.serving().kept(folder, task), settings, arrays.get(_START))


def identity(contents: Contents, inputs: str | None = None) -> str:
    """What the same task, start and settings on the same inputs are known by."""
    own, arrays = _task_arrays(contents)
    inputs = contents.serving.identity(contents.data) if inputs is None else inputs
    return known_by(contents.kind.name, own, arrays, inputs, contents.settings.as_dict())


def _task_arrays(contents: Contents) -> tuple[Json, Arrays]:
    own, arrays = contents.task.to_arrays()
    named = {_OF_TASK + name: each for name, each in arrays.items()}
    return own, named if contents.W is None else {**named, _START: contents.W}


# What a session was made with


def made_with(options: Mapping[str, object], inputs: Sequence[str], files: Mapping[str, str]) -> Json:
    """For a store's meta: options by name, the inputs' sums, and the sums of files that other options name."""
    plain = {name: list(value) if isinstance(value, tuple | list) else value for name, value in options.items()}
    sums = {name: sum_of(path) for name, path in files.items()}
    return {"inputs": [sum_of(path) for path in inputs], "options": plain, "files": sums}


def sum_of(path: str | os.PathLike[str]) -> str:
    """What a file, or a folder of files, is known by: its content; a session's folder by its id."""
    place = Path(path)
    if str(path) == STANDARD_INPUT or not (place.is_file() or place.is_dir()):
        return _NOT_KNOWN
    if is_session(place):  # it goes on
        with contextlib.closing(Store(place / LOG)) as store:
            return str(store.meta["id"])
    found = hasher()
    if place.is_file():
        with open(place, "rb") as stream:
            return hashlib.file_digest(stream, lambda: found).hexdigest()
    for each in sorted(each for each in place.rglob("*") if each.is_file()):
        found.update(f"{each.relative_to(place)}\0{sum_of(each)}\0".encode("utf-8", "surrogateescape"))
    return found.hexdigest()


def differences(
    meta: Json,
    kept: Mapping[str, object],
    options: Mapping[str, object],
    defaults: Mapping[str, object],
    inputs: Sequence[str],
    files: Mapping[str, str],
) -> list[str]:
    """What ``options``, ``inputs`` and ``files`` say otherwise than the session, in words.

    ``kept``: options as the session's own task and settings have them, which tell what was chosen by default, too.
    """
    made: Json = dict(meta.get("options", {}))
    found = []
    for name, value in options.items():
        was = kept.get(name, made.get(name, defaults.get(name)))
        known = [each[name] for each in (kept, made) if each.get(name) is not None]
        if not known and "options" in meta:
            known = [defaults.get(name)]
        if all(_plain(name, value) != _plain(name, each) for each in known):
            has = "it was made without" if was is None or was == [] or was == () else f"it has {_worded(was)}"
            found.append(f"`{name}` {_worded(value)} ({has})")
    for name, path in files.items():
        known = meta.get("files", {}).get(name)
        if known in (None, _NOT_KNOWN) or known != sum_of(path):
            found.append(f"`{name}` {quoted(path)} (it began {'without' if known is None else 'with another'})")
    return found + _other_inputs(meta.get("inputs", []), inputs, older="options" not in meta)


def _other_inputs(known: Sequence[str], inputs: Sequence[str], *, older: bool) -> list[str]:
    """``older``: a session that does not know folders and pipes."""
    if not inputs or (older and not known):
        return []
    sums = [sum_of(path) for path in inputs]
    names = ", ".join(quoted(path) for path in inputs)
    if _NOT_KNOWN in sums:
        return [f"`inputs` {names} (which cannot be compared with the inputs that it has)"]
    if sums == list(known):
        return []
    if len(sums) != len(known):
        return [f"`inputs` {names} (it is about other inputs: {counted(len(known), 'file')}, not {len(sums)})"]
    odd = [path for path, mine, its in zip(inputs, sums, known, strict=True) if mine != its]
    return [f"`inputs` {', '.join(map(quoted, odd))} (it is about other inputs: the content differs)"]


def _plain(name: str, value: object) -> object:
    if name in _NAMES and isinstance(value, str):
        return frozenset(each.strip() for each in value.split(","))
    return tuple(value) if isinstance(value, list) else value


def _worded(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else shown(value)
