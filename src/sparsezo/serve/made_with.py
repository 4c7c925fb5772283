"""What a session was made with, kept in its log, and where a later call says otherwise.

    about = made_with(options, inputs=("raw.txt",), files={"model": "m.szo"})        # for the log's meta
    found = differences(log.meta, kept_options, options, defaults, inputs=("raw.txt",))
    raise made_otherwise(folder, found)             # one line: each difference, and what to do

A session goes on as it was made. What is given again must be as it was; files are compared by their content.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sparsezo.errors import UsageError, quoted, shown
from sparsezo.serve.folder import LOG
from sparsezo.serve.log import Log
from sparsezo.storage.files import STANDARD_INPUT
from sparsezo.words import counted

_NAMES = ("tags", "classes")  # options that are names parted by commas, in any order
_NOT_KNOWN = "?"  # the sum of what cannot be read twice


def made_with(
    options: Mapping[str, Any], *, inputs: Sequence[str] = (), files: Mapping[str, str | None] | None = None
) -> dict[str, Any]:
    """For a log's meta: options by name, the inputs' sums, and the sums of files that other options name."""
    plain = {name: list(value) if isinstance(value, tuple | list) else value for name, value in options.items()}
    sums = {name: sum_of(path) for name, path in (files or {}).items() if path is not None}
    return {"inputs": [sum_of(path) for path in inputs], "options": plain, "files": sums}


def sum_of(path: str | os.PathLike[str]) -> str:
    """What a file, or a folder of files, is known by: its content; a session's folder by its id."""
    place = Path(path)
    if str(path) == STANDARD_INPUT or not (place.is_file() or place.is_dir()):
        return _NOT_KNOWN
    if (place / LOG).is_file():  # a session, which goes on
        log = Log(place / LOG)
        log.close()
        return str(log.meta["id"])
    found = hashlib.blake2b(digest_size=16)
    if place.is_file():
        with open(place, "rb") as stream:
            return hashlib.file_digest(stream, lambda: found).hexdigest()
    for each in sorted(each for each in place.rglob("*") if each.is_file()):
        found.update(f"{each.relative_to(place)}\0{sum_of(each)}\0".encode("utf-8", "surrogateescape"))
    return found.hexdigest()


def differences(
    meta: Mapping[str, Any],
    kept: Mapping[str, Any],
    options: Mapping[str, Any],
    defaults: Mapping[str, Any],
    *,
    inputs: Sequence[str] = (),
    files: Mapping[str, str | None] | None = None,
) -> list[str]:
    """What ``options``, ``inputs`` and ``files`` say otherwise than the session, in words.

    ``meta``: the log's. ``kept``: options as the session's own task and settings have them, which tell what was chosen
    by default, too. ``defaults``: of options that were not given when it was made.
    """
    made: dict[str, Any] = dict(meta.get("options", {}))
    found = []
    for name, value in options.items():
        was = kept.get(name, made.get(name, defaults.get(name)))
        known = [each[name] for each in (kept, made) if each.get(name) is not None]
        if not known and "options" in meta:
            known = [defaults.get(name)]
        if all(_plain(name, value) != _plain(name, each) for each in known):
            found.append(f"`{name}` {_worded(value)} ({_has(was)})")
    for name, path in (files or {}).items():
        if path is not None and not _same_file(meta, name, path):
            without = "began without" if name not in meta.get("files", {}) else "began with another"
            found.append(f"`{name}` {quoted(path)} (it {without})")
    return found + _other_inputs(meta.get("inputs", []), inputs, older="options" not in meta)


def made_otherwise(folder: Path, found: Sequence[str]) -> UsageError:
    """One line: each difference, and what to do."""
    return UsageError(
        f"{folder}: the session in it was made otherwise: {'; '.join(found)}. Leave out what differs to go on with it, "
        f"or begin a new session in another folder (`log`); `from_answers` {folder} takes the answers along"
    )


def _same_file(meta: Mapping[str, Any], name: str, path: str) -> bool:
    known = meta.get("files", {}).get(name)
    return known is not None and known == sum_of(path) != _NOT_KNOWN


def _other_inputs(known: Sequence[str], inputs: Sequence[str], *, older: bool) -> list[str]:
    """``older``: a log that does not know folders and pipes."""
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


def _plain(name: str, value: Any) -> Any:
    if name in _NAMES and isinstance(value, str):
        return frozenset(each.strip() for each in value.split(","))
    return tuple(value) if isinstance(value, list) else value


def _worded(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else shown(value)


def _has(was: Any) -> str:
    return "it was made without" if was is None or was == [] or was == () else f"it has {_worded(was)}"
